/* Limits how many events of a task can be sent again (R-E-3), by number, by bytes and by
 * age (options of the server). Events are counted in groups. A group has at most a
 * certain part of each limit, and the oldest group is dropped as a whole. So the retained
 * events never exceed a limit, and can be fewer than a limit allows. */
#ifndef SGI_RETENTION_H
#define SGI_RETENTION_H

#include "engine/log/committer.h"

#define SGI_RETENTION_GROUPS 16

typedef struct sgi_retention_group {
    uint64_t event; /* 1 + the number of the group's last event */
    /* position in the log of the group's last event */
    uint64_t seq;
    int64_t events;
    size_t bytes;
    /* number of bytes of the group's segments; segments stay in the log until they are
     * void */
    size_t segment_bytes;
    int64_t first_ms, last_ms;
} sgi_retention_group;

typedef struct sgi_retention {
    sgi_retention_limits limits;
    /* the groups; the oldest group has index 0 */
    sgi_retention_group groups[SGI_RETENTION_GROUPS];
    int32_t count;
    int64_t events; /* number of events in all groups */
    size_t bytes;
    uint64_t earliest; /* 1 + the number of the earliest event that can still be sent */
    uint64_t seq;      /* position in the log up to which events are not sent any more */
    /* number of bytes of segments in dropped groups that are still in the log, because
     * the segments are not void yet */
    size_t gone_bytes;
} sgi_retention;

bool sgi_retention_is_bounded(const sgi_retention_limits *limits);
/* Counts an event that was appended to the log or read from the store. */
void sgi_retention_count_event(sgi_retention *kept, const sgi_entry *entry);
/* Drops the oldest groups until no limit is exceeded at the wall clock time now_ms. */
void sgi_retention_apply_limits(sgi_retention *kept, int64_t now_ms);

#endif
