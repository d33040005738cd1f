/* The keys that found nothing stand in a ring: the oldest makes room. */
#include "engine/serving/withdrawn.h"

#include "engine/serving/call.h"
#include "engine/serving/principal.h"
#include "engine/serving/task.h"

#define KEY_MIN 16
#define KEY_MAX 128

bool sgi_call_key_is(sgi_str text)
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

bool sgi_is_withdrawn(const segue_server *server, const uint8_t key[SGI_DIGEST_SIZE])
{
    size_t count = server->withdrawn_count < SGI_WITHDRAWN_MAX ? server->withdrawn_count
                                                               : SGI_WITHDRAWN_MAX;
    for (size_t i = 0; i < count; i++)
        if (!memcmp(server->withdrawn[i], key, SGI_DIGEST_SIZE))
            return true;
    return false;
}

static void remember(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE])
{
    size_t place = server->withdrawn_count++ % SGI_WITHDRAWN_MAX;
    memcpy(server->withdrawn[place], key, SGI_DIGEST_SIZE);
}

static void cancel(sgi_op *op)
{
    if (sgi_op_has_ended(op) || (op->is_task && sgi_task_is_unstoppable(op)))
        return;
    if (sgi_task_cancel(op) != SEGUE_OK)
        sgi_engine_log(op->engine, SEGUE_LOG_WARNING,
                       "a call that its client cancelled goes on at another server: too "
                       "many requests to other servers are under way");
}

/* The place is empty from now on: no key has this digest. */
static void forget(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE])
{
    for (size_t i = 0; i < SGI_WITHDRAWN_MAX; i++)
        if (!memcmp(server->withdrawn[i], key, SGI_DIGEST_SIZE))
            memset(server->withdrawn[i], 0, SGI_DIGEST_SIZE);
}

/* A call that is not in the store either comes later, or never. */
static void found(void *user, sgi_op *op, segue_status status)
{
    (void)user;
    (void)status;
    if (!op || !op->key)
        return;
    forget(op->server, op->key->key);
    cancel(op);
}

void sgi_withdraw_said(const sgi_peer *peer, const sgi_message *msg)
{
    segue_server *server = peer->server;
    uint8_t digest[SGI_DIGEST_SIZE];
    char room[SGI_NAME_MAX];
    sgi_json key =
        sgi_json_get(sgi_json_get(msg->params, "_meta"), "dev.segue/idempotencyKey");
    if (!sgi_json_string_is(msg->method, SGI_STR("notifications/cancelled")) || !key.n ||
        !peer->who || !sgi_peer_takes_keys(peer))
        return;
    sgi_str text = sgi_name_text(key, room);
    if (!sgi_call_key_is(text) || !sgi_call_key_digest(server, peer->who, text, digest))
        return;
    sgi_str of = {(const char *)digest, SGI_DIGEST_SIZE};
    sgi_map_node *node = sgi_map_find(&server->by_key, of);
    if (node) {
        cancel(SGI_OWNER(node, sgi_op_key, node)->op);
    } else if (!sgi_is_withdrawn(server, digest)) {
        remember(server, digest);
        sgi_server_find_key(server, digest, found, NULL);
    }
}
