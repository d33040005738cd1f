/* Each new connection checks whether Redis may have lost data since the last check of
 * this instance.
 *
 *     open -> INFO (redis_server_info.c) -> scripts -> HISTORY -> ready
 *
 * The key `history` says which server process wrote the data (r), and counts the breaks
 * (n). A break is counted when another server process has the data, or a process that may
 * have lost some of the data. Field h of each operation has the break count at which its
 * owner last knew that the log was complete. A living owner notices lost entries with its
 * next commit, because the entry numbers are then not consecutive. To make the owner
 * check soon, this instance reports SEGUE_STORE_DOUBT, and its servers check all
 * operations that they run. When an owner died before that check, the newest entries of
 * its operation may be missing although clients have seen them. A claim reports such an
 * operation as SEGUE_STORE_TORN: it must be ended and not run again.
 *
 * The data are complete when all owners had closed before a server with an append-only
 * file stopped. The closing of the last owner is then the last write in the data, so
 * the file has all earlier writes, too. (One loss goes unnoticed: an instance opened,
 * claimed and wrote in the very last moments, and all of its writes were lost.)
 *
 * The end of an operation can be lost, too. Then the operation is open again in Redis,
 * but its owner has finished with it. Therefore each instance remembers the operations
 * that ended lately, and releases those that are open again.
 *
 * Claims can also be lost. Then an operation belongs again to an owner whose lease had
 * lapsed, although another instance had already continued the operation. The remaining
 * data show such a loss unless more than a sixth of a lease is missing: the other
 * instances prolonged their leases (`seen`, by the clock of one Redis server) half a
 * lease or more after that owner did. Such an owner is recorded in `away`, and its
 * operations count as torn. */
#include "store/redis_store.h"

#include <stdio.h>

#define RECALL_STEP 64

static void lose(sgi_redis_link *link, const char *why)
{
    snprintf(link->fault, sizeof link->fault, "%s", why);
    sgi_redis_link_close(link);
}

/* Stores which data the server of a new connection has (its history), and how often
 * data may have been lost (breaks). Sets `doubt` or `retell` when Redis may have lost
 * data since this instance last checked on any of its connections. */
static void note(sgi_redis_store *store, const sgi_redis_server_info *peer,
                 long long breaks)
{
    bool doubt = false;
    pthread_mutex_lock(&store->feed.lock);
    if (*store->history) {
        bool other = strcmp(store->history, peer->history) != 0;
        doubt = breaks != store->breaks ||
                !sgi_redis_server_info_has_history(peer, store->history);
        store->feed.retell = store->feed.retell || other;
        store->feed.doubt = store->feed.doubt || doubt;
    }
    memcpy(store->history, peer->history, sizeof store->history);
    store->breaks = breaks;
    pthread_mutex_unlock(&store->feed.lock);
    if (doubt)
        sgi_store_feed_wake(&store->feed);
}

static segue_status look(sgi_redis_store *store, sgi_redis_link *link, int64_t deadline)
{
    const sgi_redis_server_info *peer = &link->peer;
    char sha[SGI_REDIS_SHA + 1];
    memcpy(sha, link->shas[SGI_REDIS_HISTORY], SGI_REDIS_SHA);
    sha[SGI_REDIS_SHA] = 0;
    const char *args[] = {"EVALSHA",
                          sha,
                          "1",
                          store->keys,
                          SGI_REDIS_FORMAT_TEXT,
                          peer->history,
                          peer->keeps  ? "2"
                          : peer->logs ? "1"
                                       : "0",
                          peer->promoted ? "1" : "0"};
    redisReply *reply = sgi_redis_link_execute(link, 8, args, deadline);
    if (!reply)
        return SEGUE_E_STORE;
    bool ok = reply->type == REDIS_REPLY_INTEGER;
    if (ok)
        note(store, peer, reply->integer);
    else
        lose(link, "Redis sent an unexpected answer");
    freeReplyObject(reply);
    return ok ? SEGUE_OK : SEGUE_E_STORE;
}

void sgi_redis_remember_ended_op(sgi_redis_store *store, const uint8_t *id)
{
    memcpy(store->ends[store->end_count++ % SGI_REDIS_ENDS], id, SEGUE_STORE_ID_SIZE);
}

segue_status sgi_redis_release_reopened_ops(sgi_redis_store *store)
{
    segue_store_write writes[RECALL_STEP];
    size_t all =
        store->end_count < SGI_REDIS_ENDS ? (size_t)store->end_count : SGI_REDIS_ENDS;
    for (size_t at = 0; at < all; at += RECALL_STEP) {
        size_t count = all - at < RECALL_STEP ? all - at : RECALL_STEP;
        memset(writes, 0, sizeof writes);
        for (size_t i = 0; i < count; i++) {
            writes[i].kind = SEGUE_STORE_RELEASE;
            memcpy(writes[i].id, store->ends[at + i], SEGUE_STORE_ID_SIZE);
        }
        segue_status status = sgi_redis_commit(store, writes, count);
        if (status)
            return status;
    }
    if (all)
        /* the released operations can be claimed, so orphans are reported */
        sgi_store_feed_set_flag(&store->feed, &store->feed.orphans);
    return SEGUE_OK;
}

segue_status sgi_redis_connect(sgi_redis_store *store, sgi_redis_link *link,
                               int64_t deadline)
{
    segue_status status = sgi_redis_link_open(link, deadline);
    return status ? status : look(store, link, deadline);
}
