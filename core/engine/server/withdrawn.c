/* Remembers the idempotency keys of withdrawn calls that do not exist yet. The keys are
 * in a ring, in which the newest key replaces the oldest key. */
#include "engine/server/withdrawn.h"

#include "base/backoff.h"
#include "base/fingerprint.h"
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

/* The second half of the digest is half of the principal's SHA-256, so keys of two
 * principals never have the same digest. The first half needs no cryptographic hash:
 * whoever makes two keys with one fingerprint is one principal, to whom they then are one
 * key. */
void sgi_call_key_digest(const sgi_principal *who, sgi_str key,
                         uint8_t digest[SGI_DIGEST_SIZE])
{
    const uint8_t *other_half = who->digest + SGI_FINGERPRINT_SIZE;
    sgi_str of_key[] = {SGI_STR("tools/call"), key};
    sgi_fingerprint(digest, other_half, of_key, 2);
    memcpy(digest + SGI_FINGERPRINT_SIZE, who->digest, SGI_FINGERPRINT_SIZE);
}

bool sgi_call_key_is_withdrawn(const segue_server *server,
                               const uint8_t key[SGI_DIGEST_SIZE])
{
    return sgi_digest_ring_has(server->withdrawn.keys, key);
}

static void cancel(sgi_op *op)
{
    if (sgi_op_has_ended(op) || (sgi_op_is_task(op) && sgi_task_is_unstoppable(op)))
        return;
    if (sgi_task_cancel(op) != SEGUE_OK)
        sgi_engine_log(op->engine, SEGUE_LOG_WARNING,
                       "a client cancelled a call that runs on another server: the call "
                       "continues, because too many commands wait for other servers");
}

static void free_call(sgi_withdrawn_search *call)
{
    sgi_free(sgi_engine_mem(call->server->engine), call, sizeof *call);
}

static void stop_waiting(sgi_withdrawn_search *call)
{
    sgi_withdrawn_calls *withdrawn = &call->server->withdrawn;
    sgi_engine_clear_timer(call->server->engine, &call->again);
    TAILQ_REMOVE(&withdrawn->waiting, call, link);
    withdrawn->waiting_count--;
}

static void search(sgi_withdrawn_search *call);

static void look_again(sgi_timer *timer)
{
    sgi_withdrawn_search *call = SGI_OWNER(timer, sgi_withdrawn_search, again);
    segue_server *server = call->server;
    if (server->withdrawn.searches >= SEARCHES_MAX / 2) {
        /* half of the searches are for calls that are withdrawn now */
        sgi_engine_set_timer(server->engine, &call->again, AGAIN_MS, look_again);
        return;
    }
    stop_waiting(call);
    search(call);
}

/* Looks for the call again later, because another server may begin it. The newest calls
 * wait; the oldest one makes room. */
static void look_again_later(sgi_withdrawn_search *call)
{
    const sgi_backoff waits = {.first_ms = AGAIN_MS, .most_ms = AGAIN_MS << LOOKS_MAX};
    segue_server *server = call->server;
    sgi_withdrawn_calls *withdrawn = &server->withdrawn;
    if (++call->looks > LOOKS_MAX || server->stage != SGI_SERVER_OPEN) {
        free_call(call);
        return;
    }
    if (withdrawn->waiting_count >= SGI_WITHDRAWN_MAX) {
        sgi_withdrawn_search *oldest = TAILQ_FIRST(&withdrawn->waiting);
        stop_waiting(oldest);
        free_call(oldest);
    }
    TAILQ_INSERT_TAIL(&withdrawn->waiting, call, link);
    withdrawn->waiting_count++;
    sgi_engine_set_timer(server->engine, &call->again,
                         sgi_backoff_ms(&waits, call->looks), look_again);
}

/* Called after the search in the store for a withdrawn call. If the call exists, cancels
 * the call and removes its key from the ring. Otherwise the key stays in the ring,
 * because the call may arrive later, here or at another server. */
static void found(void *user, sgi_op *op, segue_status status)
{
    sgi_withdrawn_search *call = user;
    (void)status;
    call->server->withdrawn.searches--;
    if (!op || !op->key) {
        look_again_later(call);
        return;
    }
    free_call(call);
    sgi_digest_ring_remove(sgi_op_server(op)->withdrawn.keys, op->key->key);
    cancel(op);
}

static void search(sgi_withdrawn_search *call)
{
    call->server->withdrawn.searches++;
    sgi_server_find_by_key(call->server, call->key, found, call);
}

/* Returns false when the server looks for too many calls, or is out of memory. */
static bool look_for(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE])
{
    bool has_room = server->withdrawn.searches < SEARCHES_MAX;
    sgi_withdrawn_search *call =
        has_room ? sgi_zalloc(sgi_engine_mem(server->engine), sizeof *call) : NULL;
    if (!call)
        return false;
    call->server = server;
    memcpy(call->key, key, sizeof call->key);
    sgi_digest_ring_add(server->withdrawn.keys, key);
    search(call);
    return true;
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
    if (!sgi_call_key_is_valid(text))
        return true;
    sgi_call_key_digest(peer->who, text, digest);
    sgi_op *op = sgi_server_op_with_key(server, digest);
    if (op) {
        cancel(op);
    } else if (!sgi_call_key_is_withdrawn(server, digest)) {
        return look_for(server, digest);
    }
    return true;
}
