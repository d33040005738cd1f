/* How far back the events of a task can be had (R-E-3): within the server's limits of
 * number, bytes and age. Events are counted in shares, each a part of a limit, and the
 * oldest share goes as one; so what can be had is never more than a limit, and a little
 * less than it may be. */
#ifndef SGI_RETENTION_H
#define SGI_RETENTION_H

#include "engine/log/keeper.h"

#define SGI_RETENTION_SHARES 16

typedef struct sgi_retention_limits {
    int64_t max_events; /* 0 = any number; the same of the others */
    int64_t max_bytes;
    int64_t ttl_ms;
} sgi_retention_limits;

typedef struct sgi_retention_share {
    uint64_t event; /* number + 1 of its last one, */
    uint64_t seq;   /* ... which stands there */
    int64_t events;
    size_t bytes;
    size_t segment_bytes; /* of these; in the log they are until they are void, too */
    int64_t first_ms, last_ms;
} sgi_retention_share;

typedef struct sgi_retention {
    sgi_retention_limits limits;
    sgi_retention_share shares[SGI_RETENTION_SHARES]; /* oldest first */
    int32_t count;
    int64_t events; /* in all shares */
    size_t bytes;
    uint64_t earliest; /* number + 1 of the first that can be had */
    uint64_t seq;      /* nobody is shown what stands up to here, */
    size_t gone_bytes; /* ... of which so much is in the log: the result is made of it */
} sgi_retention;

bool sgi_retention_is_bounded(const sgi_retention_limits *limits);
/* Counts an event that was appended, or read back. */
void sgi_retention_add(sgi_retention *kept, const sgi_entry *entry);
/* Lets go of what is beyond the limits at this moment. */
void sgi_retention_look(sgi_retention *kept, int64_t now_ms);

#endif
