/* What kind of server is at the other end of a connection: whether it is fit to be the
 * store, which history its data belong to, and what it keeps when it stops. */
#ifndef SGI_REDIS_PEER_H
#define SGI_REDIS_PEER_H

#include "base/base.h"

#define SGI_REDIS_RUN 40 /* bytes of a run id, and of a replication id */

typedef struct sgi_redis_peer {
    /* The process, and the line of data that it carries on. */
    char history[2 * SGI_REDIS_RUN + 1];
    bool promoted; /* it was a replica once, and perhaps had not got all */
    bool logs;     /* what it has answered is on its disk, but for the last moments, */
    bool keeps;    /* ... or all of it */
} sgi_redis_peer;

/* Reads INFO and the value of appendfsync (NULL = it does not tell). SEGUE_E_UNSUPPORTED
 * or SEGUE_E_STORE with one line in `fault` when it is not fit. */
segue_status sgi_redis_peer_read(sgi_redis_peer *peer, const char *info,
                                 const char *appendfsync, char *fault, size_t size);
/* The data that this one has are all that was there when that history was last seen. */
bool sgi_redis_peer_continues(const sgi_redis_peer *peer, const char *history);

#endif
