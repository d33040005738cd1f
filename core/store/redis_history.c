/* Connections, each looked at before it is used: is what was written still there?
 *
 *     open -> INFO (redis_peer.c) -> scripts -> HISTORY -> ready
 *
 * Redis holds which history its data are of, and counts the breaks: `n` goes up by one
 * each time that another server, or one that may have forgotten something, is found to be
 * serving them. Each operation has the count of when its owner last knew all of its log
 * to be there (`h`). An owner that lives finds out with its next commit, which either
 * follows on what is there or does not; so that this is soon, this instance tells
 * SEGUE_STORE_DOUBT and its servers say of all that they run how far it is. An operation
 * whose owner went before it could say so may lack the newest entries, which clients may
 * have seen: a claim shows it as SEGUE_STORE_TORN, to be ended and never run again.
 *
 * When all owners had said good-bye before a server with an append-only file went, there
 * is no doubt: that they had is the last that happened, or nothing they did would be
 * known. (One that opened, claimed and wrote in the very last moments, and went with all
 * of that, is not seen; nothing in the data tells of it.)
 *
 * An end may be lost, too, and its operation be alive again, with an owner that is done
 * with it. So this instance remembers what has ended here lately, and lets go of it.
 *
 * Claims may be lost as well: then the operation is again that of an owner which had been
 * silent for a lease, while another one went on with it. What is left shows that, if less
 * is missing than a sixth of a lease: the others have prolonged theirs (`seen`, by the
 * clock of one server) half a lease after it did, or later. Such an owner is noted as
 * `away`, and cannot vouch for its operations any more.
 */
#include "store/redis_store.h"

#include <stdio.h>

#define RECALL_STEP 64

static void lose(sgi_redis_link *link, const char *why)
{
    snprintf(link->fault, sizeof link->fault, "%s", why);
    sgi_redis_link_close(link);
}

/* What has changed since this instance last looked, on whichever connection. */
static void note(sgi_redis_store *store, const sgi_redis_peer *peer, long long breaks)
{
    bool doubt = false;
    pthread_mutex_lock(&store->lock);
    if (*store->history) {
        bool other = strcmp(store->history, peer->history) != 0;
        doubt =
            breaks != store->breaks || !sgi_redis_peer_continues(peer, store->history);
        store->retell = store->retell || other;
        store->doubt = store->doubt || doubt;
    }
    memcpy(store->history, peer->history, sizeof store->history);
    store->breaks = breaks;
    pthread_mutex_unlock(&store->lock);
    if (doubt)
        sgi_redis_ring(store);
}

static segue_status look(sgi_redis_store *store, sgi_redis_link *link, int64_t deadline)
{
    const sgi_redis_peer *peer = &link->peer;
    char sha[SGI_REDIS_SHA + 1];
    memcpy(sha, link->shas[SGI_REDIS_HISTORY], SGI_REDIS_SHA);
    sha[SGI_REDIS_SHA] = 0;
    const char *args[] = {"EVALSHA",
                          sha,
                          "1",
                          store->keys,
                          SGI_REDIS_FORMAT,
                          peer->history,
                          peer->keeps  ? "2"
                          : peer->logs ? "1"
                                       : "0",
                          peer->promoted ? "1" : "0"};
    redisReply *reply = sgi_redis_link_demand(link, 8, args, deadline);
    if (!reply)
        return SEGUE_E_STORE;
    bool ok = reply->type == REDIS_REPLY_INTEGER;
    if (ok)
        note(store, peer, reply->integer);
    else
        lose(link, "an unexpected answer");
    freeReplyObject(reply);
    return ok ? SEGUE_OK : SEGUE_E_STORE;
}

void sgi_redis_note_end(sgi_redis_store *store, const uint8_t *id)
{
    memcpy(store->ends[store->end_count++ % SGI_REDIS_ENDS], id, SEGUE_STORE_ID_SIZE);
}

segue_status sgi_redis_recall_ends(sgi_redis_store *store)
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
        sgi_redis_set_flag(store, &store->orphans); /* perhaps */
    return SEGUE_OK;
}

segue_status sgi_redis_connect(sgi_redis_store *store, sgi_redis_link *link,
                               int64_t deadline)
{
    segue_status status = sgi_redis_link_open(link, deadline);
    return status ? status : look(store, link, deadline);
}
