/* Reads the reply to INFO and checks the server, at each connect. Therefore a server that
 * replaces another server is checked as thoroughly as the first one.
 *
 * A history consists of a process (run_id) and a line of replicated data (master_replid,
 * which changes when a replica becomes the primary). When either has changed, confirmed
 * commits can be missing. No commit is missing in two cases: the same server was only
 * restarted, and syncs each write before it answers; or the process is the same and has
 * only dropped its replicas. After any other change the data are in doubt. */
#include "store/redis_server_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The oldest version of Redis that can be a store. It is the first version with streams,
 * and with scripts that are replicated by their effects. */
#define MAJOR_LEAST 5

/* Copies the value of the line "name:value" of INFO into `value`, at most size - 1 bytes.
 * Returns `value`, which is empty when INFO has no such line. */
static const char *info_of(const char *info, const char *name, char *value, size_t size)
{
    size_t len = strlen(name), n = 0;
    const char *at = info;
    while (at && (strncmp(at, name, len) != 0 || at[len] != ':')) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (at)
        for (at += len + 1; *at && *at != '\r' && *at != '\n' && n + 1 < size; at++)
            value[n++] = *at;
    value[n] = 0;
    return value;
}

static bool is(const char *info, const char *name, const char *value)
{
    char text[32];
    return !strcmp(info_of(info, name, text, sizeof text), value);
}

static segue_status refuse(char *fault, size_t size, segue_status status,
                           const char *format, const char *value)
{
    snprintf(fault, size, format, value);
    return status;
}

static segue_status check(const char *info, char *fault, size_t size)
{
    char value[64];
    if (is(info, "redis_mode", "sentinel"))
        return refuse(fault, size, SEGUE_E_UNSUPPORTED,
                      "the URL names a Redis Sentinel, which stores nothing: use the URL "
                      "of the primary%s",
                      "");
    if (is(info, "cluster_enabled", "1"))
        return refuse(fault, size, SEGUE_E_UNSUPPORTED,
                      "the URL names a node of a Redis Cluster, which is not supported: "
                      "use a standalone Redis server%s",
                      "");
    /* a server that is loading does not report aof_enabled:1 yet, so loading is checked
     * first */
    if (is(info, "loading", "1"))
        return refuse(fault, size, SEGUE_E_STORE,
                      "LOADING Redis is loading its data from disk%s", "");
    info_of(info, "redis_version", value, sizeof value);
    if (atoi(value) < MAJOR_LEAST)
        return refuse(fault, size, SEGUE_E_UNSUPPORTED,
                      "Redis 5 or newer is needed, but the server is %s",
                      *value ? value : "of an unknown version");
    info_of(info, "maxmemory_policy", value, sizeof value);
    if (*value && strcmp(value, "noeviction") != 0)
        return refuse(fault, size, SEGUE_E_STORE,
                      "maxmemory-policy is %s, which deletes tasks when memory is short: "
                      "set it to noeviction",
                      value);
    if (is(info, "role", "slave"))
        return refuse(fault, size, SEGUE_E_STORE,
                      "the URL names a replica: use the URL of the primary%s", "");
    return SEGUE_OK;
}

static void read_id(const char *info, const char *name, char id[SGI_REDIS_RUN + 1])
{
    char value[SGI_REDIS_RUN + 1];
    size_t len = strlen(info_of(info, name, value, sizeof value));
    memset(id, '0', SGI_REDIS_RUN);
    memcpy(id, value, len);
    id[SGI_REDIS_RUN] = 0;
}

segue_status sgi_redis_server_info_read(sgi_redis_server_info *peer, const char *info,
                                        const char *appendfsync, char *fault, size_t size)
{
    char before[SGI_REDIS_RUN + 1];
    read_id(info, "run_id", peer->history);
    read_id(info, "master_replid", peer->history + SGI_REDIS_RUN);
    read_id(info, "master_replid2", before);
    peer->promoted = strspn(before, "0") < SGI_REDIS_RUN;
    peer->logs = !peer->promoted && is(info, "aof_enabled", "1");
    peer->keeps = peer->logs && appendfsync && !strcmp(appendfsync, "always");
    return check(info, fault, size);
}

bool sgi_redis_server_info_has_history(const sgi_redis_server_info *peer,
                                       const char *history)
{
    if (!strcmp(peer->history, history))
        return true;
    return peer->keeps ||
           (!peer->promoted && !memcmp(peer->history, history, SGI_REDIS_RUN));
}
