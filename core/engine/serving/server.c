/* Life of a server, the doors to it, and what ends with them.
 *
 * Stages: NEW -> (first accept) RECOVERING -> OPEN -> CLOSED, and DEAD when the runtime
 * goes. Its operations stand in catalog.c. */
#include "engine/serving/call.h"
#include "engine/log/recovery.h"
#include "engine/serving/mail.h"
#include "engine/serving/rounds.h"
#include "engine/serving/wire_session.h"

#define MAX_PARKED ((size_t)64 * 1024 * 1024)
#define READ_BYTES ((size_t)256 * 1024)

static int32_t run_free_user(sgi_ready *ready, int32_t budget);
static int32_t run_idle(sgi_ready *ready, int32_t budget);

/* ---- life ---- */

static bool write_info(segue_server *server)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_buf *info = &server->legacy_info;
    sgi_buf_init(info, mem);
    sgi_jw w = sgi_jw_on(info);
    sgi_jw_key(&w, "serverInfo");
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "name", sgi_str_of(server->options.name));
    sgi_jw_member_string(&w, "version", sgi_str_of(server->options.version));
    if (server->options.title)
        sgi_jw_member_string(&w, "title", sgi_str_of(server->options.title));
    sgi_jw_close(&w, '}');
    sgi_buf_init(&server->info, mem);
    sgi_buf_add_lit(&server->info, "\"io.modelcontextprotocol/");
    sgi_buf_add(&server->info, info->p + 1, info->len ? info->len - 1 : 0);
    return !info->failed && !server->info.failed;
}

static bool copy_texts(segue_server *server)
{
    segue_server_options *o = &server->options;
    const char **slots[] = {&o->name, &o->version, &o->title, &o->instructions};
    for (size_t i = 0; i < 4; i++) {
        if (!*slots[i])
            continue;
        server->texts[i] =
            sgi_text_dup(sgi_engine_mem(server->engine), sgi_str_of(*slots[i]));
        if (!server->texts[i])
            return false;
        *slots[i] = server->texts[i];
    }
    return true;
}

/* The keys of the options are the application's again. */
static segue_status make_seal(segue_server *server)
{
    segue_server_options *o = &server->options;
    const void *key = o->seal_key;
    const void *older = o->seal_key_before;
    o->seal_key = o->seal_key_before = NULL;
    bool ok = sgi_seal_init(&server->seal, server->engine, key, older) &&
              sgi_random(&server->engine->env, server->mark, sizeof server->mark) &&
              sgi_engine_random_text(server->engine, server->name);
    return ok ? SEGUE_OK : SEGUE_E_FATAL;
}

segue_status sgi_server_new(sgi_engine *engine, const segue_server_options *options,
                            bool idempotency, segue_server **out)
{
    segue_server *server = sgi_zalloc(sgi_engine_mem(engine), sizeof *server);
    if (!server)
        return SEGUE_E_NOMEM;
    server->handle = (sgi_handle){SGI_MAGIC_SERVER, engine};
    server->engine = engine;
    server->refs = 1;
    server->options = *options;
    server->options.free_user = NULL; /* until nothing can fail any more */
    server->idempotency = idempotency;
    server->dialects =
        (SGI_DIALECTS_DEFAULT | options->dialects_on) & ~options->dialects_off;
    server->limits =
        (sgi_limits){(size_t)options->max_result_bytes, (size_t)options->max_log_bytes,
                     (uint64_t)options->max_segments, options->max_inputs};
    server->retention = (sgi_retention_limits){
        options->max_events, options->max_event_bytes, options->event_ttl_ms};
    server->freshness = (sgi_freshness){options->list_ttl_ms, options->list_scope};
    server->ready.run = run_free_user;
    server->idle.run = run_idle;
    for (size_t i = 0; i < SGI_ITEM_TYPES; i++) {
        TAILQ_INIT(&server->shelves[i].items);
        sgi_map_init(&server->shelves[i].by_key, &engine->env);
    }
    TAILQ_INIT(&server->peers);
    LIST_INIT(&server->doors);
    TAILQ_INIT(&server->sessions_by_use);
    sgi_map_init(&server->sessions, &engine->env);
    server->max_parked = MAX_PARKED;
    server->read_bytes = READ_BYTES;
    LIST_INIT(&server->calls);
    TAILQ_INIT(&server->lingering);
    TAILQ_INIT(&server->followed_ops);
    LIST_INIT(&server->rebuilds);
    TAILQ_INIT(&server->claims);
    sgi_map_init(&server->principals, &engine->env);
    sgi_map_init(&server->by_task, &engine->env);
    sgi_map_init(&server->by_id, &engine->env);
    sgi_map_init(&server->by_key, &engine->env);
    sgi_map_init(&server->claims_by_id, &engine->env);
    sgi_map_init(&server->rounds, &engine->env);
    sgi_map_init(&server->asks, &engine->env);
    sgi_keeper_init(&server->keeper, engine);
    segue_status status = make_seal(server);
    if (status == SEGUE_OK && (!copy_texts(server) || !write_info(server)))
        status = SEGUE_E_NOMEM;
    if (status != SEGUE_OK) {
        sgi_server_unref(server);
        return status;
    }
    server->options.free_user = options->free_user;
    *out = server;
    return SEGUE_OK;
}

void sgi_server_ref(segue_server *server)
{
    server->refs++;
}

static void free_server(segue_server *server)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    server->handle.magic = SGI_MAGIC_FREED;
    if (server->gone)
        server->gone(server, server->gone_user);
    sgi_engine_timer_clear(server->engine, &server->claim_timer);
    sgi_keeper_free(&server->keeper);
    sgi_claims_free(server);
    sgi_items_clear(server);
    for (size_t i = 0; i < SGI_ITEM_TYPES; i++)
        sgi_map_free(&server->shelves[i].by_key);
    sgi_map_free(&server->sessions);
    sgi_principals_clear(&server->principals);
    sgi_map_free(&server->principals);
    sgi_map_free(&server->by_task);
    sgi_map_free(&server->by_id);
    sgi_map_free(&server->by_key);
    sgi_map_free(&server->claims_by_id);
    sgi_map_free(&server->rounds);
    sgi_map_free(&server->asks);
    sgi_buf_free(&server->info);
    sgi_buf_free(&server->legacy_info);
    for (size_t i = 0; i < 4; i++)
        sgi_text_free(mem, server->texts[i]);
    sgi_release(mem, server, sizeof *server);
}

static int32_t run_free_user(sgi_ready *ready, int32_t budget)
{
    segue_server *server = SGI_OWNER(ready, segue_server, ready);
    sgi_engine *engine = server->engine;
    segue_free_fn fn = server->options.free_user;
    void *user = server->options.user;
    (void)budget;
    free_server(server);
    return sgi_user_free(engine, fn, user);
}

void sgi_server_unref(segue_server *server)
{
    if (--server->refs)
        return;
    if (server->options.free_user)
        sgi_ready_add(server->engine, &server->ready);
    else
        free_server(server);
}

void sgi_server_close(segue_server *server)
{
    sgi_peer *peer;
    sgi_door *door;
    if (server->stage >= SGI_SERVER_CLOSED)
        return;
    server->stage = SGI_SERVER_CLOSED;
    sgi_server_ref(server);
    LIST_FOREACH(door, &server->doors, link)
        door->close(door);
    sgi_wire_sessions_end(server);
    TAILQ_FOREACH(peer, &server->peers, link)
        if (peer->is_exchange)
            sgi_listens_close(peer); /* the rest drains through its door */
        else
            sgi_peer_close(peer);
    sgi_server_unref(server);
}

/* ---- doors ---- */

void sgi_server_begin(segue_server *server)
{
    if (server->stage == SGI_SERVER_NEW)
        sgi_recover(server);
}

void sgi_server_open(segue_server *server)
{
    sgi_peer *peer;
    sgi_door *door;
    server->stage = SGI_SERVER_OPEN;
    TAILQ_FOREACH(peer, &server->peers, link)
        sgi_peer_open(peer);
    LIST_FOREACH(door, &server->doors, link)
        door->open(door);
}

segue_status sgi_server_add_door(segue_server *server, sgi_door *door)
{
    if (server->stage >= SGI_SERVER_CLOSED)
        return SEGUE_E_CLOSED;
    LIST_INSERT_HEAD(&server->doors, door, link);
    server->is_idle = false;
    sgi_server_ref(server);
    if (server->stage == SGI_SERVER_OPEN)
        door->open(door);
    else
        sgi_server_begin(server);
    return SEGUE_OK;
}

void sgi_server_remove_door(segue_server *server, sgi_door *door)
{
    LIST_REMOVE(door, link);
    sgi_server_peer_left(server); /* perhaps before the door */
    sgi_server_unref(server);
}

sgi_principal *sgi_server_principal(segue_server *server, const char *name)
{
    uint8_t digest[SGI_DIGEST_SIZE] = {0};
    sgi_str text = sgi_str_of(name);
    if (text.n && !sgi_engine_digest(server->engine, digest, &text, 1))
        return NULL;
    sgi_principal *who = sgi_principal_get(&server->principals, server->engine, digest);
    if (!who || sgi_principal_set_name(who, text))
        return who;
    sgi_principal_unref(who);
    return NULL;
}

/* Nobody can ask for an operation any more, nor bring somebody who could. */
static bool is_deserted(const segue_server *server)
{
    return server->abandoned && TAILQ_EMPTY(&server->peers) && LIST_EMPTY(&server->doors);
}

/* An operation holds its server, and so does an exchange that waits for its client: what
 * only lingers must not keep a deserted one alive. */
void sgi_server_forget_lingering(segue_server *server)
{
    sgi_server_ref(server);
    if (server->abandoned && LIST_EMPTY(&server->doors))
        sgi_wire_sessions_end(server);
    if (is_deserted(server)) {
        sgi_mail_close(server);
        sgi_rounds_desert(server);
    }
    while (is_deserted(server) && !TAILQ_EMPTY(&server->lingering))
        sgi_server_op_forget(TAILQ_FIRST(&server->lingering));
    while (is_deserted(server) && !TAILQ_EMPTY(&server->followed_ops))
        sgi_server_op_forget(TAILQ_FIRST(&server->followed_ops));
    sgi_server_unref(server);
}

void sgi_server_abandon(segue_server *server)
{
    server->abandoned = true;
    sgi_server_forget_lingering(server);
    sgi_server_unref(server);
}

static int32_t run_idle(sgi_ready *ready, int32_t budget)
{
    segue_server *server = SGI_OWNER(ready, segue_server, idle);
    sgi_engine *engine = server->engine;
    (void)budget;
    sgi_user_begin(engine);
    server->options.on_idle(server->options.user);
    sgi_user_end(engine);
    sgi_server_unref(server);
    return 1;
}

/* Exchanges that are parked wait for clients, who have no way to come any more. */
static bool has_parted(const segue_server *server)
{
    const sgi_peer *peer;
    if (!LIST_EMPTY(&server->doors))
        return false;
    TAILQ_FOREACH(peer, &server->peers, link)
        if (!peer->session || peer->conn->transport)
            return false;
    return true;
}

void sgi_server_peer_left(segue_server *server)
{
    if (server->options.on_idle && !server->is_idle && has_parted(server)) {
        server->is_idle = true;
        sgi_server_ref(server);
        sgi_ready_add(server->engine, &server->idle);
    }
    sgi_server_forget_lingering(server);
}

void sgi_server_op_release(sgi_op *op)
{
    if (op->claimed) { /* it was ours, though not here yet */
        op->claimed = false;
        op->hold = SGI_HOLD_HERE;
    }
    if (!sgi_op_has_ended(op) && sgi_op_is_ours(op)) {
        op->releasing = true;
        sgi_keeper_dirty(&op->server->keeper, op);
    }
    sgi_server_op_forget(op);
}

void sgi_server_die(segue_server *server)
{
    sgi_map_node *node;
    segue_call *call;
    sgi_server_ref(server);
    sgi_server_close(server);
    server->stage = SGI_SERVER_DEAD;
    sgi_engine_timer_clear(server->engine, &server->claim_timer);
    sgi_mail_close(server);
    sgi_rounds_die(server);
    LIST_FOREACH(call, &server->calls, link)
        sgi_call_die(call);
    while ((node = sgi_map_any(&server->by_task)))
        sgi_server_op_release(SGI_OWNER(node, sgi_op, by_task));
    /* a plain operation is in no map: it and its call hold each other */
    for (call = LIST_FIRST(&server->calls); call;) {
        segue_call *next = LIST_NEXT(call, link);
        if (call->op->call == call)
            sgi_call_let_go(call);
        call = next;
    }
    sgi_keeper_die(&server->keeper);
    sgi_server_unref(server);
}
