/* The address of a Redis server and the credentials, parsed from a URL.
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
    int32_t port; /* the TCP port; 0 = the server has a Unix socket */
    int32_t db;
    char host[256]; /* the host, or the path of the Unix socket */
    char user[128];
    char password[512];
    char ca_file[512];
    char prefix[SGI_REDIS_PREFIX_MAX + 1]; /* prefix of all keys, default "segue" */
    char shown[320];                       /* the URL for messages, without secrets */
} sgi_redis_url;

/* Parses a URL. Returns SEGUE_E_INVALID when it is malformed. *reason then says why; it
 * never contains the user or the password. */
segue_status sgi_redis_url_parse(sgi_redis_url *url, const char *text,
                                 const char **reason);

#endif
