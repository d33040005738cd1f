/* The server at the other end of a connection: whether it can be used as a store, which
 * history its data belong to, and what it keeps when it stops. */
#ifndef SGI_REDIS_SERVER_INFO_H
#define SGI_REDIS_SERVER_INFO_H

#include "base/base.h"

#define SGI_REDIS_RUN 40 /* bytes of a run id, and of a replication id */

typedef struct sgi_redis_server_info {
    /* run_id of the process, then master_replid of its data */
    char history[2 * SGI_REDIS_RUN + 1];
    bool promoted; /* the server once was a replica and may lack the newest data */
    /* the server has an append-only file, so a stop loses at most the last moments */
    bool logs;
    /* the server syncs each write before it answers, so a stop loses nothing */
    bool keeps;
} sgi_redis_server_info;

/* Reads INFO and the value of appendfsync (NULL = unknown). When the server cannot be
 * used, returns SEGUE_E_UNSUPPORTED or SEGUE_E_STORE, with one line in `fault`. */
segue_status sgi_redis_server_info_read(sgi_redis_server_info *peer, const char *info,
                                        const char *appendfsync, char *fault,
                                        size_t size);
/* True when this server still has all data that the server with the given history had. */
bool sgi_redis_server_info_continues(const sgi_redis_server_info *peer,
                                     const char *history);

#endif
