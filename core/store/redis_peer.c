/* Reading INFO. Whatever is asked for at each connect is here, so that a server that took
 * the place of another is looked at as closely as the first one was.
 *
 * A history is a process (run_id) and a line of data (master_replid, which changes when a
 * replica is made the primary). When either is another one, commits that were answered
 * may be missing. They are not if the server has only been started again and syncs each
 * write before it answers; nor if it is the same process, which has merely forgotten its
 * replicas. Everything else is a doubt. */
#include "store/redis_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAJOR_LEAST 5 /* streams, and scripts that are replicated by their effects */

/* The value of a line "name:value", cut to size. */
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
                      "this is a Sentinel, which keeps nothing: name the primary%s", "");
    if (is(info, "cluster_enabled", "1"))
        return refuse(fault, size, SEGUE_E_UNSUPPORTED,
                      "this is a node of a Redis Cluster, over which one store cannot be "
                      "spread: name a server that runs by itself%s",
                      "");
    if (is(info, "loading", "1")) /* it says aof_enabled:0 until that is over */
        return refuse(fault, size, SEGUE_E_STORE, "LOADING Redis reads its file back%s",
                      "");
    info_of(info, "redis_version", value, sizeof value);
    if (atoi(value) < MAJOR_LEAST)
        return refuse(fault, size, SEGUE_E_UNSUPPORTED,
                      "Redis 5 or newer is needed, this is %s",
                      *value ? value : "something else");
    info_of(info, "maxmemory_policy", value, sizeof value);
    if (*value && strcmp(value, "noeviction") != 0)
        return refuse(fault, size, SEGUE_E_STORE,
                      "maxmemory-policy is %s, which throws tasks away when memory is "
                      "short: set it to noeviction",
                      value);
    if (is(info, "role", "slave"))
        return refuse(fault, size, SEGUE_E_STORE,
                      "this is a replica, the primary is needed%s", "");
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

segue_status sgi_redis_peer_read(sgi_redis_peer *peer, const char *info,
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

bool sgi_redis_peer_continues(const sgi_redis_peer *peer, const char *history)
{
    if (!strcmp(peer->history, history))
        return true;
    return peer->keeps ||
           (!peer->promoted && !memcmp(peer->history, history, SGI_REDIS_RUN));
}
