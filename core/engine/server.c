/* Life of a server and its operations.
 *
 * Stages: NEW -> (first accept) RECOVERING -> OPEN -> CLOSED, and DEAD when the runtime
 * goes.
 *
 * An operation is in the maps (`known`) while a peer may name it: from its creation until
 * it is purged, or, once it has ended and is in the store, until nobody asked for it for
 * a while; then it is looked up in the store again. Its timer runs for the next of
 * these. */
#include "engine/call.h"
#include "engine/error.h"
#include "engine/record.h"
#include "engine/recovery.h"
#include "engine/rounds.h"
#include "engine/task.h"
#include "engine/wire_session.h"

#define LINGER_MS 30000
#define LINGER_MAX 1024
#define PURGE_MAX_MS 60000
#define PURGE_MIN_MS 1000
#define EXPIRE_RETRY_MS 1000

static int32_t run_free_user(sgi_ready *ready, int32_t budget);
static int32_t run_idle(sgi_ready *ready, int32_t budget);
static void schedule_purge(segue_server *server, int64_t delay_ms);
static void forget_lingering(segue_server *server);

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
    server->dialects = SGI_DIALECT_X | SGI_DIALECT_E;
    server->limits =
        (sgi_limits){(size_t)options->max_result_bytes, (size_t)options->max_log_bytes,
                     (uint64_t)options->max_segments, options->max_inputs};
    server->ready.run = run_free_user;
    server->idle.run = run_idle;
    TAILQ_INIT(&server->tools);
    TAILQ_INIT(&server->peers);
    LIST_INIT(&server->doors);
    TAILQ_INIT(&server->sessions_by_use);
    sgi_map_init(&server->sessions, &engine->env);
    LIST_INIT(&server->calls);
    TAILQ_INIT(&server->lingering);
    sgi_map_init(&server->tools_by_name, &engine->env);
    sgi_map_init(&server->principals, &engine->env);
    sgi_map_init(&server->by_task, &engine->env);
    sgi_map_init(&server->by_key, &engine->env);
    sgi_map_init(&server->rounds, &engine->env);
    sgi_keeper_init(&server->keeper, engine);
    if (!copy_texts(server) || !write_info(server)) {
        sgi_server_unref(server);
        return SEGUE_E_NOMEM;
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
    sgi_keeper_free(&server->keeper);
    sgi_tools_clear(server);
    sgi_map_free(&server->tools_by_name);
    sgi_map_free(&server->sessions);
    sgi_map_free(&server->principals);
    sgi_map_free(&server->by_task);
    sgi_map_free(&server->by_key);
    sgi_map_free(&server->rounds);
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
    sgi_user_begin(engine);
    fn(user);
    sgi_user_end(engine);
    return 1;
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
    if (text.n && !server->engine->digest(digest, &text, 1))
        return NULL;
    return sgi_principal_get(&server->principals, &server->engine->env, digest);
}

void sgi_server_op_forget(sgi_op *op)
{
    segue_server *server = op->server;
    if (!op->known)
        return;
    op->known = false;
    if (op->lingers) {
        TAILQ_REMOVE(&server->lingering, op, linger_link);
        server->linger_count--;
    }
    op->lingers = false;
    sgi_map_remove(&server->by_task, &op->by_task);
    if (op->has_key)
        sgi_map_remove(&server->by_key, &op->by_key);
    sgi_engine_timer_clear(op->engine, &op->timer);
    if (op->call)
        sgi_call_let_go(op->call);
    sgi_op_unref(op);
}

/* Nobody can ask for an operation any more, nor bring somebody who could. */
static bool is_deserted(const segue_server *server)
{
    return server->abandoned && TAILQ_EMPTY(&server->peers) && LIST_EMPTY(&server->doors);
}

/* An operation holds its server, and so does an exchange that waits for its client: what
 * only lingers must not keep a deserted one alive. */
static void forget_lingering(segue_server *server)
{
    sgi_server_ref(server);
    if (server->abandoned && LIST_EMPTY(&server->doors))
        sgi_wire_sessions_end(server);
    if (is_deserted(server))
        sgi_rounds_desert(server);
    while (is_deserted(server) && !TAILQ_EMPTY(&server->lingering))
        sgi_server_op_forget(TAILQ_FIRST(&server->lingering));
    sgi_server_unref(server);
}

void sgi_server_abandon(segue_server *server)
{
    server->abandoned = true;
    forget_lingering(server);
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

void sgi_server_peer_left(segue_server *server)
{
    if (TAILQ_EMPTY(&server->peers) && LIST_EMPTY(&server->doors) &&
        server->options.on_idle && !server->idle.queued) {
        sgi_server_ref(server);
        sgi_ready_add(server->engine, &server->idle);
    }
    forget_lingering(server);
}

/* What has not ended is let go in the store: a later server goes on with it. */
static void release(sgi_op *op)
{
    if (!sgi_op_has_ended(op)) {
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
    sgi_rounds_die(server);
    LIST_FOREACH(call, &server->calls, link)
        sgi_call_die(call);
    while ((node = sgi_map_any(&server->by_task)))
        release(SGI_OWNER(node, sgi_op, by_task));
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

/* ---- time ---- */

int64_t sgi_server_purge_time(const sgi_op *op)
{
    int64_t grace = op->server->options.grace_ms;
    if (op->final == SGI_FINAL_EXPIRED)
        return op->ended_ms + grace;
    if (op->ttl_ms < 0)
        return INT64_MAX;
    return op->created_ms + op->ttl_ms + (sgi_op_has_ended(op) ? 0 : grace);
}

static void on_timer(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_op, timer);
    if (sgi_op_has_ended(op)) {
        sgi_server_op_forget(op);
        return;
    }
    sgi_op_ref(op);
    sgi_task_expire(op);
    if (!sgi_op_has_ended(op) && op->known) /* no memory for it: again, a little later */
        sgi_engine_timer(op->engine, &op->timer, EXPIRE_RETRY_MS, on_timer);
    sgi_op_unref(op);
}

void sgi_server_start_ttl(sgi_op *op)
{
    if (op->ttl_ms >= 0)
        sgi_engine_timer(op->engine, &op->timer,
                         op->created_ms + op->ttl_ms - sgi_wall(&op->engine->env),
                         on_timer);
}

/* An ended operation stays in memory for a while, the newest ones only; the store has it
 * longer. One that the store does not have stays as long as its record would have. */
static void start_linger(sgi_op *op)
{
    segue_server *server = op->server;
    int64_t left = sgi_server_purge_time(op) - sgi_wall(&op->engine->env);
    if (!op->store_broken && left > LINGER_MS)
        left = LINGER_MS;
    sgi_engine_timer(op->engine, &op->timer, left, on_timer);
    if (op->lingers || op->store_broken)
        return;
    op->lingers = true;
    TAILQ_INSERT_TAIL(&server->lingering, op, linger_link);
    if (++server->linger_count > LINGER_MAX)
        sgi_server_op_forget(TAILQ_FIRST(&server->lingering));
    forget_lingering(server);
}

static void purged(sgi_job *job)
{
    segue_server *server = job->user;
    int64_t delay = PURGE_MAX_MS;
    if (job->status == SEGUE_OK && job->next_ms != INT64_MAX)
        delay = job->next_ms - sgi_wall(&server->engine->env);
    if (delay < PURGE_MIN_MS)
        delay = PURGE_MIN_MS;
    if (delay > PURGE_MAX_MS)
        delay = PURGE_MAX_MS;
    sgi_job_free(job);
    if (server->stage < SGI_SERVER_DEAD)
        schedule_purge(server, delay);
    sgi_server_unref(server);
}

static void purge_now(sgi_timer *timer)
{
    sgi_keeper *keeper = SGI_OWNER(timer, sgi_keeper, purge);
    segue_server *server = SGI_OWNER(keeper, segue_server, keeper);
    sgi_job *job = sgi_job_new(keeper, SGI_JOB_PURGE, purged, server);
    if (!job) {
        schedule_purge(server, PURGE_MAX_MS);
        return;
    }
    job->now_ms = sgi_wall(&server->engine->env);
    sgi_server_ref(server);
    sgi_keeper_ask(keeper, job);
}

static void schedule_purge(segue_server *server, int64_t delay_ms)
{
    sgi_engine_timer(server->engine, &server->keeper.purge, delay_ms, purge_now);
}

/* ---- operations ---- */

void sgi_server_op_known(sgi_op *op)
{
    segue_server *server = op->server;
    op->known = true;
    sgi_op_ref(op);
    sgi_map_put(&server->by_task, &op->by_task, sgi_str_of(op->task_id));
    if (op->has_key)
        sgi_map_put(&server->by_key, &op->by_key,
                    (sgi_str){(char *)op->key, sizeof op->key});
    if (!server->keeper.purge.slot)
        schedule_purge(server, PURGE_MAX_MS);
}

segue_status sgi_server_run(sgi_op *op, bool again)
{
    return sgi_call_start(op, again);
}

static void uncount(sgi_op *op)
{
    if (op->counted)
        op->who->live_tasks--;
    op->counted = false;
}

void sgi_server_op_visible(sgi_op *op)
{
    /* a keyed call runs from here on: its key is known to be ours */
    if (op->has_key && !op->call && !sgi_op_has_ended(op) && !op->ran &&
        op->server->stage < SGI_SERVER_DEAD) {
        op->ran = true;
        if (sgi_call_start(op, false) != SEGUE_OK)
            sgi_op_give_up(op, "Out of memory");
    }
    if (op->call)
        sgi_call_progressed(op->call);
    if (!sgi_op_has_ended(op) || op->final_seq > sgi_op_horizon(op))
        return;
    uncount(op);
    if (!sgi_round_is_out(op)) /* else who comes again gets the end */
        sgi_round_end(op);
    if (op->known)
        start_linger(op);
    if (op->call && op->final == SGI_FINAL_CANCELLED)
        sgi_call_cancel(op->call); /* the last chance to tell a plain one */
    if (op->call)
        sgi_call_let_go(op->call);
}

void sgi_server_op_lost(sgi_op *op, segue_status status)
{
    sgi_engine_log(op->engine, SEGUE_LOG_WARNING, "an operation was not created: %s",
                   sgi_status_name(status));
    uncount(op);
    if (op->call)
        sgi_call_cancel(op->call);
    sgi_server_op_forget(op);
}

/* ---- finding ---- */

typedef struct finding {
    segue_server *server; /* counted */
    sgi_found_fn found;
    void *user;
} finding;

static void tell(finding *find, sgi_op *op, segue_status status)
{
    segue_server *server = find->server;
    if (op)
        sgi_op_ref(op);
    find->found(find->user, op, status);
    if (op)
        sgi_op_unref(op);
    sgi_release(sgi_engine_mem(server->engine), find, sizeof *find);
    sgi_server_unref(server);
}

static void rebuilt(void *user, sgi_op *op, segue_status status)
{
    tell(user, op, status);
}

static void record_found(sgi_job *job)
{
    finding *find = job->user;
    segue_server *server = find->server;
    sgi_found *found = TAILQ_FIRST(&job->found);
    segue_status status = job->status;
    if (status == SEGUE_OK && !found)
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK && found->record.purge_ms <= sgi_wall(&server->engine->env))
        status = SEGUE_E_NOT_FOUND; /* due, only not purged yet */
    if (status == SEGUE_OK)
        sgi_rebuild(server, &found->record, rebuilt, find);
    else
        tell(find, NULL, status);
    sgi_job_free(job);
}

static void ask_store(segue_server *server, sgi_str task_id, const uint8_t *key,
                      sgi_found_fn found, void *user)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    finding *find = sgi_alloc(mem, sizeof *find);
    sgi_job *job =
        find ? sgi_job_new(&server->keeper, SGI_JOB_FIND, record_found, find) : NULL;
    if (job && !key)
        job->task_id = sgi_text_dup(mem, task_id);
    if (!job || (!key && !job->task_id)) {
        if (job)
            sgi_job_free(job);
        sgi_release(mem, find, sizeof *find);
        found(user, NULL, SEGUE_E_NOMEM);
        return;
    }
    if (key)
        memcpy(job->key, key, sizeof job->key);
    *find = (finding){server, found, user};
    sgi_server_ref(server);
    sgi_keeper_ask(&server->keeper, job);
}

static bool is_task_id(sgi_str id)
{
    if (!id.n || id.n > 128)
        return false;
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] <= ' ' || id.p[i] >= 127 || id.p[i] == '"' || id.p[i] == '\\')
            return false;
    return true;
}

void sgi_server_find_task(segue_server *server, sgi_str task_id, sgi_found_fn found,
                          void *user)
{
    sgi_map_node *node = sgi_map_find(&server->by_task, task_id);
    if (node)
        found(user, SGI_OWNER(node, sgi_op, by_task), SEGUE_OK);
    else if (!is_task_id(task_id))
        found(user, NULL, SEGUE_E_NOT_FOUND);
    else
        ask_store(server, task_id, NULL, found, user);
}

void sgi_server_find_key(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE],
                         sgi_found_fn found, void *user)
{
    ask_store(server, (sgi_str){0}, key, found, user);
}
