/* The address of a Redis server and its credentials, parsed from a URL.
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
    int32_t port; /* the TCP port; 0 = the server listens on a Unix socket */
    int32_t db;
    char host[256]; /* the host, or the path of the Unix socket */
    char user[128];
    char password[512];
    char ca_file[512];
    char prefix[SGI_REDIS_PREFIX_MAX + 1]; /* the prefix of all keys; default "segue" */
    /* the URL for messages, without user and password */
    char shown[320];
} sgi_redis_url;

/* Parses a URL. Returns SEGUE_E_INVALID when the URL is malformed. *reason then has the
 * reason, which never contains the user or the password. */
segue_status sgi_redis_url_parse(sgi_redis_url *url, const char *text,
                                 const char **reason);

#endif
