/* Makes and frees servers. stages.c has the stages of a server, known_ops.c its
 * operations. */
#include "engine/server/dialects.h"
#include "engine/server/peer.h"
#include "wire/log_level.h"

#include "base/thresholds.h"
#define MAX_PARKED ((size_t)64 * 1024 * 1024)
#define READ_BYTES SGI_THRESHOLD(log_read_bytes)

static int32_t run_free_user(sgi_ready_object *ready, int32_t budget);
static int32_t run_idle(sgi_ready_object *ready, int32_t budget);

/* ---- making a server ---- */

static bool write_info(segue_server *server)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_buf *info = &server->legacy_info;
    sgi_buf_init(info, mem);
    sgi_jw w = sgi_jw_to(info);
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

/* Makes the seal from the keys in the options, and then clears the pointers to the keys,
 * because the application owns that memory. */
static segue_status make_seal(segue_server *server)
{
    segue_server_options *o = &server->options;
    const void *key = o->seal_key;
    const void *older = o->seal_key_before;
    o->seal_key = o->seal_key_before = NULL;
    bool ok = sgi_seal_init(&server->seal, server->engine, key, older) &&
              sgi_random(&server->engine->env, server->cluster.mark,
                         sizeof server->cluster.mark) &&
              sgi_operation_text(&server->engine->env, server->mailbox.name);
    return ok ? SEGUE_OK : SEGUE_E_FATAL;
}

/* Makes the two rings that remember ended sessions and withdrawn calls. Returns false
 * when out of memory. */
static bool make_parts(segue_server *server)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    server->ended_sessions = sgi_digest_ring_new(mem, SGI_ENDED_SESSIONS);
    server->withdrawn.keys = sgi_digest_ring_new(mem, SGI_WITHDRAWN_MAX);
    return server->ended_sessions && server->withdrawn.keys;
}

segue_status sgi_server_new(sgi_engine *engine, const sgi_server_ops *serving,
                            const segue_server_options *options, bool idempotency,
                            segue_server **out)
{
    segue_server *server = sgi_zalloc(sgi_engine_mem(engine), sizeof *server);
    if (!server)
        return SEGUE_E_NOMEM;
    server->handle = (sgi_handle){SGI_MAGIC_SERVER, engine};
    server->engine = engine;
    server->refs = 1;
    server->serving = serving;
    server->options = *options;
    /* free_user is set after the last step that can fail, because on failure the caller
     * frees `user`. */
    server->options.free_user = NULL;
    server->idempotency = idempotency;
    server->first_log_level =
        options->log_level ? sgi_log_level_parse(sgi_str_of(options->log_level)) : -1;
    server->options.log_level = NULL; /* cleared, because the application owns the text */
    server->dialects =
        ((SGI_DIALECTS_DEFAULT | options->dialects_on) & ~options->dialects_off) ^
        SGI_DIALECTS_FLIPPED(options->draft_ways);
    server->keeps_segments_apart = sgi_srv_keeps_segments_apart(server);
    sgi_committer_init(&server->committer, engine, &sgi_server_observer);
    sgi_cluster_init(&server->cluster, &server->committer, &sgi_server_cluster_observer);
    server->cluster.abstains = options->tool_wait_ms > 0;
    server->use.account.limit =
        (sgi_limit){SGI_LIMIT_MAX_SERVER_BYTES, options->max_server_bytes};
    server->committer.account = &server->use.account;
    server->committer.limits =
        (sgi_op_limits){(size_t)options->max_result_bytes, (size_t)options->max_log_bytes,
                        (uint64_t)options->max_segments, options->max_inputs};
    server->committer.retention = (sgi_retention_limits){
        options->max_events, options->max_event_bytes, options->event_ttl_ms};
    server->freshness = (sgi_freshness){options->list_ttl_ms, options->list_scope};
    server->ready.run = run_free_user;
    server->idle.run = run_idle;
    for (size_t i = 0; i < SGI_ITEM_TYPES; i++) {
        TAILQ_INIT(&server->shelves[i].items);
        sgi_map_init(&server->shelves[i].by_key, &engine->env);
    }
    TAILQ_INIT(&server->peers);
    TAILQ_INIT(&server->withdrawn.waiting);
    LIST_INIT(&server->listeners);
    TAILQ_INIT(&server->sessions.by_use);
    sgi_map_init(&server->sessions.by_id, &engine->env);
    sgi_map_init(&server->clients.by_number, &engine->env);
    server->sessions.max_parked = MAX_PARKED;
    server->committer.read_bytes = READ_BYTES;
    LIST_INIT(&server->calls.running);
    LIST_INIT(&server->calls.waiting);
    TAILQ_INIT(&server->lingering.ops);
    sgi_map_init(&server->principals, &engine->env);
    sgi_index_init(&server->by_key, &engine->env, &sgi_idempotency_keys);
    sgi_map_init(&server->rounds, &engine->env);
    sgi_map_init(&server->questions, &engine->env);
    segue_status status = make_seal(server);
    if (status == SEGUE_OK &&
        (!make_parts(server) || !copy_texts(server) || !write_info(server)))
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

static void forget_withdrawn(segue_server *server)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    sgi_withdrawn_search *search;
    while ((search = TAILQ_FIRST(&server->withdrawn.waiting))) {
        TAILQ_REMOVE(&server->withdrawn.waiting, search, link);
        sgi_engine_clear_timer(server->engine, &search->again);
        sgi_free(mem, search, sizeof *search);
    }
    sgi_digest_ring_free(server->withdrawn.keys);
}

static void free_server(segue_server *server)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    server->handle.magic = SGI_MAGIC_FREED;
    sgi_engine_clear_timer(server->engine, &server->kept_key.again);
    if (server->gone)
        server->gone(server, server->gone_user);
    sgi_committer_free(&server->committer);
    sgi_cluster_free(&server->cluster);
    sgi_items_clear(server);
    for (size_t i = 0; i < SGI_ITEM_TYPES; i++)
        sgi_map_free(&server->shelves[i].by_key);
    sgi_map_free(&server->sessions.by_id);
    sgi_map_free(&server->clients.by_number);
    sgi_principals_clear(&server->principals);
    sgi_map_free(&server->principals);
    sgi_index_free(&server->by_key);
    sgi_map_free(&server->rounds);
    sgi_map_free(&server->questions);
    sgi_digest_ring_free(server->ended_sessions);
    forget_withdrawn(server);
    sgi_buf_free(&server->info);
    sgi_buf_free(&server->legacy_info);
    for (size_t i = 0; i < 4; i++)
        sgi_text_free(mem, server->texts[i]);
    sgi_free(mem, server, sizeof *server);
}

static int32_t run_free_user(sgi_ready_object *ready, int32_t budget)
{
    segue_server *server = SGI_OWNER(ready, segue_server, ready);
    sgi_engine *engine = server->engine;
    segue_free_fn fn = server->options.free_user;
    void *user = server->options.user;
    segue_client_events events = server->clients.events;
    (void)budget;
    free_server(server);
    return sgi_user_data_free(engine, events.free_user, events.user) +
           sgi_user_data_free(engine, fn, user);
}

void sgi_server_unref(segue_server *server)
{
    if (--server->refs)
        return;
    if (server->options.free_user || server->clients.events.free_user)
        sgi_ready_queue_add(server->engine, &server->ready);
    else
        free_server(server);
}

/* ---- callers ---- */

sgi_principal *sgi_server_get_principal(segue_server *server, const char *name)
{
    uint8_t digest[SGI_DIGEST_SIZE] = {0};
    sgi_str text = sgi_str_of(name);
    if (text.n && !sgi_engine_digest(server->engine, digest, &text, 1))
        return NULL;
    sgi_principal *who =
        sgi_principal_find_or_new(&server->principals, server->engine, digest);
    if (!who || sgi_principal_set_name(who, text))
        return who;
    sgi_principal_unref(who);
    return NULL;
}

/* Reports to the application that no client is connected and that no client can connect
 * any more. */
static int32_t run_idle(sgi_ready_object *ready, int32_t budget)
{
    segue_server *server = SGI_OWNER(ready, segue_server, idle);
    sgi_engine *engine = server->engine;
    (void)budget;
    sgi_user_code_begin(engine);
    server->options.on_idle(server->options.user);
    sgi_user_code_end(engine);
    sgi_server_unref(server);
    return 1;
}
