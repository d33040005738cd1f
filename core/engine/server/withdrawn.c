/* Remembers the idempotency keys of withdrawn calls that do not exist yet. The keys are
 * in a ring, in which the newest key replaces the oldest key. */
#include "engine/server/withdrawn.h"

#include "base/backoff.h"
#include "base/thresholds.h"
#include "engine/server/call.h"
#include "engine/server/principal.h"
#include "engine/server/task.h"

#define SEARCHES_MAX SGI_THRESHOLD(withdrawn_searches)
#define LOOKS_MAX SGI_THRESHOLD(withdrawn_looks)
#define AGAIN_MS SGI_THRESHOLD(withdrawn_again_ms)
#define KEY_MIN 16
#define KEY_MAX 128

bool sgi_call_key_is_valid(sgi_str text)
{
    return text.n >= KEY_MIN && text.n <= KEY_MAX;
}

bool sgi_call_key_digest(segue_server *server, const sgi_principal *who, sgi_str key,
                         uint8_t digest[SGI_DIGEST_SIZE])
{
    sgi_str owner = {(const char *)who->digest, SGI_DIGEST_SIZE};
    sgi_str of_key[] = {owner, SGI_STR("tools/call"), key};
    return sgi_engine_digest(server->engine, digest, of_key, 3);
}

bool sgi_call_key_is_withdrawn(const segue_server *server,
                               const uint8_t key[SGI_DIGEST_SIZE])
{
    return sgi_digest_ring_has(server->withdrawn.keys, key);
}

static void look_again_later(segue_server *server);

static void cancel(sgi_op *op)
{
    if (sgi_op_has_ended(op) || (sgi_op_is_task(op) && sgi_task_is_unstoppable(op)))
        return;
    if (sgi_task_cancel(op) != SEGUE_OK)
        sgi_engine_log(op->engine, SEGUE_LOG_WARNING,
                       "a client cancelled a call that runs on another server: the call "
                       "continues, because too many commands wait for other servers");
}

/* Called after the search in the store for a withdrawn call. If the call exists, cancels
 * the call and removes its key from the ring. Otherwise the key stays in the ring,
 * because the call may arrive later, here or at another server. */
static void found(void *user, sgi_op *op, segue_status status)
{
    segue_server *server = user;
    (void)status;
    server->withdrawn.searches--;
    if (!op || !op->key) {
        look_again_later(server);
        return;
    }
    sgi_digest_ring_remove(server->withdrawn.keys, op->key->key);
    cancel(op);
}

static void search(segue_server *server, const uint8_t digest[SGI_DIGEST_SIZE])
{
    server->withdrawn.searches++;
    sgi_server_find_by_key(server, digest, found, server);
}

static void look_again(sgi_timer *timer)
{
    sgi_withdrawn_calls *withdrawn = SGI_OWNER(timer, sgi_withdrawn_calls, again);
    segue_server *server = SGI_OWNER(withdrawn, segue_server, withdrawn);
    uint8_t digest[SGI_DIGEST_SIZE];
    if (server->stage != SGI_SERVER_OPEN)
        return;
    withdrawn->looks++;
    for (size_t i = 0; i < sgi_digest_ring_places(withdrawn->keys) &&
                       withdrawn->searches < SEARCHES_MAX;
         i++) {
        const uint8_t *key = sgi_digest_ring_at(withdrawn->keys, i);
        if (!key)
            continue;
        memcpy(digest, key, sizeof digest); /* the ring may change during the search */
        search(server, digest);
    }
}

static void look_again_later(segue_server *server)
{
    sgi_withdrawn_calls *withdrawn = &server->withdrawn;
    const sgi_backoff waits = {.first_ms = AGAIN_MS, .most_ms = AGAIN_MS << LOOKS_MAX};
    if (!withdrawn->searches && withdrawn->looks < LOOKS_MAX &&
        server->stage == SGI_SERVER_OPEN)
        sgi_engine_set_timer(server->engine, &withdrawn->again,
                             sgi_backoff_ms(&waits, withdrawn->looks + 1), look_again);
}

void sgi_withdrawn_clear(segue_server *server)
{
    sgi_engine_clear_timer(server->engine, &server->withdrawn.again);
    sgi_digest_ring_free(server->withdrawn.keys);
}

bool sgi_withdrawn_cancel_call(const sgi_peer *peer, const sgi_message *msg)
{
    segue_server *server = peer->server;
    uint8_t digest[SGI_DIGEST_SIZE];
    char room[SGI_NAME_MAX];
    sgi_json key =
        sgi_json_get(sgi_json_get(msg->params, "_meta"), "dev.segue/idempotencyKey");
    if (!sgi_json_string_is(msg->method, SGI_STR("notifications/cancelled")) || !key.n ||
        !peer->who || !sgi_peer_keeps_keys(peer))
        return true;
    sgi_str text = sgi_method_text(key, room);
    if (!sgi_call_key_is_valid(text) ||
        !sgi_call_key_digest(server, peer->who, text, digest))
        return true;
    sgi_str of = {(const char *)digest, SGI_DIGEST_SIZE};
    sgi_map_node *node = sgi_map_find(&server->by_key, of);
    if (node) {
        cancel(SGI_OWNER(node, sgi_op_idempotency_key, node)->op);
    } else if (!sgi_call_key_is_withdrawn(server, digest)) {
        if (server->withdrawn.searches >= SEARCHES_MAX)
            return false;
        server->withdrawn.looks = 0;
        sgi_digest_ring_add(server->withdrawn.keys, digest);
        search(server, digest);
    }
    return true;
}
