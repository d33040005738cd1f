/* Limits how many events of a task can be sent again (R-E-3): by number, by bytes and by
 * age (options of the server). Events are counted in shares: a share is at most a certain
 * part of each limit, and the oldest share is dropped as a whole. So the retained events
 * never exceed a limit, but may be fewer than the limit allows. */
#ifndef SGI_RETENTION_H
#define SGI_RETENTION_H

#include "engine/log/committer.h"

#define SGI_RETENTION_SHARES 16

typedef struct sgi_retention_share {
    uint64_t event; /* 1 + the number of the last event of the share */
    /* bytes of the share's segments, which stay in the log until they are void */
    uint64_t seq;
    int64_t events;
    size_t bytes;
    /* bytes of the share's segments; the segments stay in the log until they are void */
    size_t segment_bytes;
    int64_t first_ms, last_ms;
} sgi_retention_share;

typedef struct sgi_retention {
    sgi_retention_limits limits;
    sgi_retention_share shares[SGI_RETENTION_SHARES]; /* the shares, the oldest first */
    int32_t count;
    int64_t events; /* number of events in all shares */
    size_t bytes;
    uint64_t earliest; /* 1 + the number of the earliest event that can be sent */
    uint64_t seq;      /* position in the log up to which no event is sent any more */
    /* Counts an event that was appended, or read from the store. */
    size_t gone_bytes;
} sgi_retention;

bool sgi_retention_is_bounded(const sgi_retention_limits *limits);
/* Counts an event that was appended, or read back. */
void sgi_retention_add(sgi_retention *kept, const sgi_entry *entry);
/* Drops the shares that exceed a limit at the time now_ms. */
void sgi_retention_apply_limits(sgi_retention *kept, int64_t now_ms);

#endif
