/* The operations of a server that a peer may name: by task id, or by an idempotency key.
 *
 * One is in the maps (`known`) from its creation until it is purged, or, once it has
 * ended and is in the store, until nobody asked for it for a while; then it is looked up
 * in the store again. Its timer runs for the next of these. */
#include "engine/serving/call.h"
#include "engine/error.h"
#include "engine/log/following.h"
#include "engine/log/recovery.h"
#include "engine/serving/errands.h"
#include "engine/serving/mail.h"
#include "engine/serving/resumable.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"

#define LINGER_MS 30000
#define LINGER_MAX 1024
#define PURGE_MAX_MS 60000
#define PURGE_MIN_MS 1000
#define EXPIRE_RETRY_MS 1000
#define LEAST_KEPT_MS 600000 /* of one that can be resumed, when it has ended */

/* ---- purging ---- */

static void schedule_purge(segue_server *server, int64_t delay_ms);

static void purged(sgi_job *job)
{
    segue_server *server = job->user;
    int64_t delay = PURGE_MAX_MS;
    if (job->status == SEGUE_OK && job->next_ms != INT64_MAX)
        delay = sgi_time_sub(job->next_ms, sgi_wall(&server->engine->env));
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

/* ---- the maps ---- */

void sgi_server_op_known(sgi_op *op)
{
    segue_server *server = op->server;
    op->known = true;
    sgi_op_ref(op);
    sgi_map_put(&server->by_task, &op->by_task, sgi_str_of(op->task_id));
    sgi_map_put(&server->by_id, &op->by_id, (sgi_str){(char *)op->id, sizeof op->id});
    if (op->key)
        sgi_map_put(&server->by_key, &op->key->node,
                    (sgi_str){(char *)op->key->key, sizeof op->key->key});
    if (!server->keeper.purge.slot)
        schedule_purge(server, PURGE_MAX_MS);
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
    sgi_followed_end(op);
    sgi_map_remove(&server->by_task, &op->by_task);
    sgi_map_remove(&server->by_id, &op->by_id);
    if (op->key)
        sgi_map_remove(&server->by_key, &op->key->node);
    sgi_engine_timer_clear(op->engine, &op->timer);
    if (op->call)
        sgi_call_let_go(op->call);
    sgi_errands_end(op);
    sgi_op_unref(op);
}

/* ---- time ---- */

int64_t sgi_server_purge_time(const sgi_op *op)
{
    int64_t grace = op->server->options.grace_ms;
    int64_t kept_ms = sgi_time_add(op->ended_ms, grace);
    if (op->resumable && op->ttl_ms < 0) {
        int64_t waits_ms = sgi_time_mul(op->resumable->max_wait_ms, 2);
        kept_ms = sgi_time_add(kept_ms, sgi_time_add(waits_ms, LEAST_KEPT_MS));
        return sgi_op_has_ended(op) ? kept_ms : INT64_MAX;
    }
    if (op->final == SGI_FINAL_EXPIRED)
        return kept_ms;
    if (op->ttl_ms < 0)
        return INT64_MAX;
    return sgi_time_add(sgi_op_expiry(op), sgi_op_has_ended(op) ? 0 : grace);
}

static void on_timer(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_op, timer);
    if (sgi_op_has_ended(op)) {
        /* an end that is not stored yet is only here: who looked in the store would find
         * an operation that goes on, and hear no more of it */
        if (op->final_seq <= sgi_op_horizon(op))
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
                         sgi_time_sub(sgi_op_expiry(op), sgi_wall(&op->engine->env)),
                         on_timer);
}

/* An ended operation stays in memory for a while, the newest ones only; the store has it
 * longer. One that the store does not have stays as long as its record would have. */
static void start_linger(sgi_op *op)
{
    segue_server *server = op->server;
    int64_t left = sgi_time_sub(sgi_server_purge_time(op), sgi_wall(&op->engine->env));
    if (!op->store_broken && left > LINGER_MS && !op->resumable)
        left = LINGER_MS;
    sgi_engine_timer(op->engine, &op->timer, left, on_timer);
    if (op->lingers || op->store_broken)
        return;
    op->lingers = true;
    TAILQ_INSERT_TAIL(&server->lingering, op, linger_link);
    if (++server->linger_count > LINGER_MAX)
        sgi_server_op_forget(TAILQ_FIRST(&server->lingering));
    sgi_server_forget_lingering(server);
}

void sgi_server_op_closed(sgi_op *op)
{
    if (op->known)
        sgi_engine_timer(op->engine, &op->timer, op->server->options.grace_ms, on_timer);
}

/* ---- what becomes of one ---- */

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
    /* a keyed call runs from here on: its key is known to be ours; and one that can be
     * resumed, whose client has been told of it */
    bool waited = op->key || (op->resumable && !op->is_task);
    if (waited && op->hold == SGI_HOLD_NEW && !op->call && !sgi_op_has_ended(op) &&
        op->server->stage < SGI_SERVER_DEAD) {
        op->hold = SGI_HOLD_HERE; /* once, whatever comes of it */
        if (sgi_call_start(op, false) != SEGUE_OK)
            sgi_op_give_up(op, "Out of memory");
    }
    if (op->call)
        sgi_call_progressed(op->call);
    if (!sgi_op_has_ended(op) || op->final_seq > sgi_op_horizon(op))
        return;
    if (sgi_op_is_elsewhere(op)) {
        sgi_followed_end(op);
        op->hold = SGI_HOLD_HERE; /* nobody's any more */
        op->stale = false;
    }
    if (op->counted && op->is_task) /* once, by the server that ran it */
        sgi_task_tell_end(op);
    uncount(op);
    sgi_asks_withdraw(op);         /* before its end is told */
    if (!sgi_round_is_awaited(op)) /* else who comes again gets the end */
        sgi_round_end(op);
    if (op->known)
        start_linger(op);
    if (op->call && op->final == SGI_FINAL_CANCELLED)
        sgi_call_cancel(op->call); /* the last chance to tell a plain one */
    if (op->call)
        sgi_call_let_go(op->call);
}

void sgi_server_op_fenced(sgi_op *op)
{
    if (sgi_mail_is_box(op)) {
        sgi_mail_lost(op);
        return;
    }
    uncount(op);
    sgi_engine_timer_clear(op->engine, &op->timer);
    sgi_engine_timer_clear(op->engine, &op->promote);
    if (op->call)
        sgi_call_lose(op->call);
}

void sgi_server_op_lost(sgi_op *op, segue_status status)
{
    if (status != SEGUE_E_EXISTS || !op->key) /* its key says it is a retry */
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
    bool has_owner;
    uint8_t owner[SGI_DIGEST_SIZE]; /* whose it has to be */
    sgi_op *op;                     /* that is known; counted */
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
    if (status == SEGUE_OK && find->has_owner &&
        memcmp(found->record.principal, find->owner, SGI_DIGEST_SIZE) != 0)
        status = SEGUE_E_NOT_FOUND; /* before its log is read, which may take long */
    if (status == SEGUE_OK)
        sgi_rebuild(server, &found->record, rebuilt, find);
    else
        tell(find, NULL, status);
    sgi_job_free(job);
}

static void ask_store(segue_server *server, const sgi_principal *who, sgi_str task_id,
                      const uint8_t *key, sgi_found_fn found, void *user)
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
    *find = (finding){.server = server, .has_owner = who, .found = found, .user = user};
    if (who)
        memcpy(find->owner, who->digest, sizeof find->owner);
    sgi_server_ref(server);
    sgi_keeper_ask(&server->keeper, job);
}

static void caught_up(sgi_job *job);

/* False when out of memory. */
static bool read_on(finding *find)
{
    const sgi_op *op = find->op;
    sgi_keeper *keeper = &find->server->keeper;
    sgi_job_kind kind = sgi_op_is_elsewhere(op) ? SGI_JOB_READ : SGI_JOB_NOTHING;
    sgi_job *job = sgi_job_new(keeper, kind, caught_up, find);
    if (!job)
        return false;
    memcpy(job->id, op->id, sizeof job->id);
    job->after = op->durable;
    job->max_bytes = find->server->read_bytes;
    sgi_keeper_ask(keeper, job);
    return true;
}

/* Its client may have seen more of it at another server: here it is to see no less. Of
 * one that is ours others may know of a commit before we do. */
static void caught_up(sgi_job *job)
{
    finding *find = job->user;
    sgi_op *op = find->op;
    segue_status status = job->status;
    bool is_followed = sgi_op_is_elsewhere(op) && op->known;
    bool more = is_followed && job->bytes >= job->max_bytes;
    if (is_followed && status == SEGUE_OK)
        status = sgi_op_grow(op, &job->entries);
    sgi_job_free(job);
    if (status == SEGUE_OK && more && read_on(find))
        return;
    if (sgi_op_is_elsewhere(op) && op->known && (status != SEGUE_OK || more))
        sgi_followed_look(op); /* the rest, or what became of it */
    sgi_followed_seen(op);
    tell(find, status == SEGUE_E_NOT_FOUND ? NULL : op,
         status == SEGUE_E_NOT_FOUND ? status : SEGUE_OK);
    sgi_op_unref(op);
}

static void catch_up(sgi_op *op, sgi_found_fn found, void *user)
{
    segue_server *server = op->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    finding *find = op->stale ? NULL : sgi_alloc(mem, sizeof *find);
    if (find)
        *find = (finding){.server = server, .op = op, .found = found, .user = user};
    if (!find || !read_on(find)) { /* what is known of it has been true */
        sgi_release(mem, find, sizeof *find);
        found(user, op, SEGUE_OK);
        return;
    }
    sgi_op_ref(op);
    sgi_server_ref(server);
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

/* One of somebody else takes the way of one that there is not: neither the answer nor the
 * time it takes tells them apart (R-0-5). */
void sgi_server_find_task(segue_server *server, const sgi_principal *who, sgi_str task_id,
                          sgi_found_fn found, void *user)
{
    sgi_map_node *node = sgi_map_find(&server->by_task, task_id);
    sgi_op *op = node ? SGI_OWNER(node, sgi_op, by_task) : NULL;
    if (op && op->who == who && (sgi_op_is_elsewhere(op) || op->committing))
        catch_up(op, found, user);
    else if (op && op->who == who)
        found(user, op, SEGUE_OK);
    else if (!is_task_id(task_id))
        found(user, NULL, SEGUE_E_NOT_FOUND);
    else
        ask_store(server, who, task_id, NULL, found, user);
}

void sgi_server_find_key(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE],
                         sgi_found_fn found, void *user)
{
    ask_store(server, NULL, (sgi_str){0}, key, found, user);
}
