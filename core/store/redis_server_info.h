/* The server at the other end of a connection: whether the server can be used as a store,
 * which history its data belong to, and which data it keeps when it stops. */
#ifndef SGI_REDIS_SERVER_INFO_H
#define SGI_REDIS_SERVER_INFO_H

#include "base/base.h"

#define SGI_REDIS_RUN 40 /* number of characters of a run_id and of a master_replid */

typedef struct sgi_redis_server_info {
    /* run_id of the server process, followed by master_replid of its data */
    char history[2 * SGI_REDIS_RUN + 1];
    bool promoted; /* true = the server once was a replica and can lack the newest data */
    /* true = the server has an append-only file, so a stop loses at most the last
     * moments */
    bool logs;
    /* true = the server syncs each write before it answers, so a stop loses nothing */
    bool keeps;
} sgi_redis_server_info;

/* Reads the reply to INFO and the value of appendfsync (NULL = unknown). When the server
 * cannot be used as a store, returns SEGUE_E_UNSUPPORTED or SEGUE_E_STORE, and `fault`
 * receives one line with the reason. */
segue_status sgi_redis_server_info_read(sgi_redis_server_info *peer, const char *info,
                                        const char *appendfsync, char *fault,
                                        size_t size);
/* True when this server still has all data that the server with the given history had. */
bool sgi_redis_server_info_has_history(const sgi_redis_server_info *peer,
                                       const char *history);

#endif
