/* Where a Redis server is and who we are there: the parsed form of a URL.
 *
 *     redis://[[user]:password@]host[:port][/db][?prefix=name]
 *     rediss://...  the same over TLS        [?ca=file]
 *     unix:///path/of.sock[?db=0&user=u&password=p&prefix=name] */
#ifndef SGI_REDIS_URL_H
#define SGI_REDIS_URL_H

#include "base/base.h"

#define SGI_REDIS_PREFIX_MAX 64

typedef struct sgi_redis_url {
    bool tls;
    int32_t port; /* 0 = a Unix socket */
    int32_t db;
    char host[256]; /* or the path of the socket */
    char user[128];
    char password[512];
    char ca_file[512];
    char prefix[SGI_REDIS_PREFIX_MAX + 1]; /* of all keys, default "segue" */
    char shown[320];                       /* for messages: no secrets */
} sgi_redis_url;

/* SEGUE_E_INVALID with a reason (never any part of user or password). */
segue_status sgi_redis_url_parse(sgi_redis_url *url, const char *text,
                                 const char **reason);

#endif
