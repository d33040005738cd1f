/* The operations that clients can name, by task id or by idempotency key, and the times
 * to live of these operations.
 *
 * An operation is in the maps (sgi_op_is_known) from its creation until it is purged. A
 * stored operation that has ended leaves the maps earlier, when no client has asked for
 * the operation for a while; later requests find the operation in the store. One timer of
 * each operation fires when the operation must leave the maps or end. */
#include "engine/server/call.h"

#include "base/rare.h"
#include "base/thresholds.h"
#include "engine/cluster/following.h"
#include "engine/cluster/rebuild.h"
#include "engine/cluster/recovery.h"
#include "engine/cluster/forwarding.h"
#include "engine/server/lasting.h"
#include "engine/server/task.h"
#include "engine/server/waiting_ops.h"

#define LINGER_MS SGI_THRESHOLD(linger_ms)
#define LINGER_MAX SGI_THRESHOLD(linger_max)
#define PURGE_MAX_MS SGI_THRESHOLD(purge_most_ms)
#define PURGE_MIN_MS SGI_THRESHOLD(purge_least_ms)
#define PURGE_AGAIN_MS SGI_THRESHOLD(purge_again_ms)
#define EXPIRE_RETRY_MS SGI_THRESHOLD(expire_retry_ms)

/* ---- purging the store ---- */

static void schedule_purge(segue_server *server, int64_t delay_ms);

/* Returns the pause until the next purge. A store purges in bounded steps. While more is
 * due, the steps follow each other, so that the store does not grow however many
 * operations end. */
static int64_t pause_after(const sgi_store_job *job, const segue_server *server)
{
    if (job->status != SEGUE_OK || job->next_ms == INT64_MAX)
        return PURGE_MAX_MS;
    if (job->next_ms <= job->now_ms)
        return PURGE_AGAIN_MS;
    int64_t ms = sgi_time_sub(job->next_ms, sgi_wall_now(&server->engine->env));
    if (ms < PURGE_MIN_MS)
        return PURGE_MIN_MS;
    return ms < PURGE_MAX_MS ? ms : PURGE_MAX_MS;
}

static void purged(sgi_store_job *job)
{
    segue_server *server = job->user;
    int64_t delay = pause_after(job, server);
    sgi_store_job_free(job);
    if (server->stage < SGI_SERVER_DEAD)
        schedule_purge(server, delay);
    sgi_server_unref(server);
}

static void purge_now(sgi_timer *timer)
{
    sgi_committer *committer = SGI_OWNER(timer, sgi_committer, purge);
    segue_server *server = SGI_OWNER(committer, segue_server, committer);
    sgi_store_job *job =
        sgi_store_job_new(committer, SGI_STORE_JOB_PURGE, purged, server);
    if (!job) {
        schedule_purge(server, PURGE_MAX_MS);
        return;
    }
    job->now_ms = sgi_wall_now(&server->engine->env);
    sgi_server_ref(server);
    sgi_committer_add_job(committer, job);
}

static void schedule_purge(segue_server *server, int64_t delay_ms)
{
    sgi_engine_set_timer(server->engine, &server->committer.purge, delay_ms, purge_now);
}

void sgi_server_start_purging(segue_server *server)
{
    if (!server->committer.purge.slot)
        schedule_purge(server, PURGE_MAX_MS);
}

/* ---- the maps ---- */

static sgi_op_idempotency_key *key_of_node(const sgi_index_node *node)
{
    return SGI_OWNER((sgi_index_node *)node, sgi_op_idempotency_key, node);
}

static sgi_str text_of_node(const sgi_index_node *node)
{
    return (sgi_str){(const char *)key_of_node(node)->key, SGI_DIGEST_SIZE};
}

const sgi_index_keys sgi_idempotency_keys = {.of = text_of_node, .are_random = true};

sgi_op *sgi_server_op_with_key(const segue_server *server,
                               const uint8_t key[SGI_DIGEST_SIZE])
{
    sgi_str text = {(const char *)key, SGI_DIGEST_SIZE};
    const sgi_index_node *node = sgi_index_find(&server->by_key, text);
    return node ? key_of_node(node)->op : NULL;
}

void sgi_server_put_in_maps(sgi_op *op)
{
    segue_server *server = sgi_op_server(op);
    op->shared->state = SGI_CLUSTER_OP_KNOWN;
    sgi_op_ref(op);
    sgi_index_put(&server->cluster.by_task, &op->shared->by_task);
    sgi_index_put(&server->cluster.by_id, &op->shared->by_id);
    if (op->key)
        sgi_index_put(&server->by_key, &op->key->node);
    sgi_server_start_purging(server);
}

void sgi_server_end_lingering(sgi_op *op)
{
    segue_server *server = sgi_op_server(op);
    if (op->shared->state != SGI_CLUSTER_OP_LINGERS)
        return;
    op->shared->state = SGI_CLUSTER_OP_KNOWN;
    TAILQ_REMOVE(&server->lingering.ops, op->shared, link);
    server->lingering.count--;
}

void sgi_server_take_from_maps(sgi_op *op)
{
    segue_server *server = sgi_op_server(op);
    sgi_server_stop_waiting_to_run(op);
    if (!sgi_op_is_known(op))
        return;
    sgi_server_end_lingering(op);
    sgi_followed_end(op);
    op->shared->state = SGI_CLUSTER_OP_UNKNOWN;
    sgi_index_remove(&server->cluster.by_task, &op->shared->by_task);
    sgi_index_remove(&server->cluster.by_id, &op->shared->by_id);
    if (op->key)
        sgi_index_remove(&server->by_key, &op->key->node);
    sgi_engine_clear_timer(op->engine, &op->shared->timer);
    if (op->served->call)
        sgi_call_release_by_op(op->served->call);
    sgi_forwards_drop_all(op);
    sgi_recover_leave_op(op);
    sgi_op_unref(op);
}

void sgi_server_op_release(sgi_op *op)
{
    /* the store gave this operation to this server, and the server has not read the whole
     * log yet */
    if (op->shared->claimed) {
        SGI_RARE(closed_in_take_over);
        op->shared->claimed = false;
        sgi_op_set_hold(op, SGI_HOLD_HERE);
        /* the server is closing, so this call ends the recovery of the operation and runs
         * no handler */
        sgi_recover_claimed_op(sgi_op_cluster(op), op);
    }
    if (!sgi_op_has_ended(op) && sgi_op_is_owned_here(op)) {
        op->releasing = true;
        sgi_committer_mark_dirty(op->committer, op);
    }
    sgi_server_take_from_maps(op);
}

void sgi_server_release_waiting(segue_server *server)
{
    while (!LIST_EMPTY(&server->calls.waiting)) {
        sgi_op *op = LIST_FIRST(&server->calls.waiting)->shared.op;
        sgi_server_stop_waiting_to_run(op);
        if (!sgi_op_has_ended(op))
            sgi_server_op_release(op);
    }
}

/* ---- times ---- */

/* True when a client can still ask for the operation: by the id of a task, by an
 * idempotency key, by the handle of a lasting call, by the answer to a round, or as a
 * reader of this server. */
static bool can_be_asked_for(const sgi_op *op)
{
    return sgi_op_is_task(op) || op->served->lasting || !sgi_op_has_random_key(op) ||
           op->served->round || !TAILQ_EMPTY(&op->readers);
}

int64_t sgi_server_purge_time(const sgi_op *op)
{
    int64_t grace = sgi_op_server(op)->options.grace_ms;
    int64_t kept_ms = sgi_time_add(op->head.ended_ms, grace);
    const sgi_lasting_call *lasting = op->served->lasting;
    if (lasting && op->ttl_ms < 0)
        return sgi_op_has_ended(op)
                   ? sgi_time_add(kept_ms, lasting->form->kept_ms(lasting))
                   : INT64_MAX;
    /* a call that can become a task can get a longer time to live, and the store learns
     * the time of the purge again at the end only */
    if (op->head.tasking == SGI_TASKING_MAY && !sgi_op_has_ended(op))
        return INT64_MAX;
    if (op->head.final == SGI_FINAL_EXPIRED ||
        (sgi_op_has_ended(op) && !can_be_asked_for(op)))
        return kept_ms;
    if (op->ttl_ms < 0)
        return INT64_MAX;
    return sgi_time_add(sgi_op_expiry(op), sgi_op_has_ended(op) ? 0 : grace);
}

static void on_timer(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_cluster_op_data, timer)->op;
    if (sgi_op_has_ended(op)) {
        /* The operation stays in the maps while its end is not stored. Until then only
         * this server knows the end; in the store the operation still seems to run, so a
         * client that found the operation there would never get the end. */
        if (op->head.final_seq <= sgi_op_horizon(op))
            sgi_server_take_from_maps(op);
        return;
    }
    sgi_server_expire(op);
}

void sgi_server_expire(sgi_op *op)
{
    sgi_op_ref(op);
    sgi_task_expire(op);
    if (!sgi_op_has_ended(op) && sgi_op_is_known(op))
        sgi_engine_set_timer(op->engine, &op->shared->timer, EXPIRE_RETRY_MS, on_timer);
    sgi_op_unref(op);
}

void sgi_server_start_ttl(sgi_op *op)
{
    if (op->ttl_ms >= 0)
        sgi_engine_set_timer(
            op->engine, &op->shared->timer,
            sgi_time_sub(sgi_op_expiry(op), sgi_wall_now(&op->engine->env)), on_timer);
    else
        sgi_engine_clear_timer(op->engine, &op->shared->timer);
}

bool sgi_server_keep_ended_op(sgi_op *op)
{
    segue_server *server = sgi_op_server(op);
    int64_t left =
        sgi_time_sub(sgi_server_purge_time(op), sgi_wall_now(&op->engine->env));
    if (!sgi_op_is_broken(op) && left > LINGER_MS && !op->served->lasting)
        left = LINGER_MS;
    sgi_engine_set_timer(op->engine, &op->shared->timer, left, on_timer);
    if (op->shared->state == SGI_CLUSTER_OP_LINGERS || sgi_op_is_broken(op))
        return false;
    op->shared->state = SGI_CLUSTER_OP_LINGERS;
    op->heard.last_ms = sgi_now(&op->engine->env);
    TAILQ_INSERT_TAIL(&server->lingering.ops, op->shared, link);
    if (++server->lingering.count > LINGER_MAX)
        sgi_server_take_from_maps(TAILQ_FIRST(&server->lingering.ops)->op);
    return true;
}

void sgi_server_on_op_delivered(sgi_op *op)
{
    if (sgi_op_is_known(op))
        sgi_engine_set_timer(op->engine, &op->shared->timer,
                             sgi_op_server(op)->options.grace_ms, on_timer);
}

/* ---- finding an operation ---- */

typedef struct finding {
    segue_server *server; /* a counted reference */
    bool has_owner;
    /* digest of the principal that must own the operation; valid if `has_owner` is
     * true */
    uint8_t owner[SGI_DIGEST_SIZE];
    /* a counted reference to the operation if it is in memory; NULL = only the store can
     * have the operation */
    sgi_op *op;
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
    sgi_free(sgi_engine_mem(server->engine), find, sizeof *find);
    sgi_server_unref(server);
}

static void rebuilt(void *user, sgi_op *op, segue_status status)
{
    tell(user, op, status);
}

static void record_found(sgi_store_job *job)
{
    finding *find = job->user;
    segue_server *server = find->server;
    sgi_found_record *found = TAILQ_FIRST(&job->found);
    segue_status status = job->status;
    if (status == SEGUE_OK && !found)
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK &&
        found->record.purge_ms <= sgi_wall_now(&server->engine->env))
        /* the purge time of the record is over, although the store has not purged it
         * yet */
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK && find->has_owner &&
        memcmp(found->record.principal, find->owner, SGI_DIGEST_SIZE) != 0)
        /* the owner is checked before the log is read, because reading the log can take
         * long */
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK)
        sgi_rebuild_op(&server->cluster, &found->record, rebuilt, find);
    else
        tell(find, NULL, status);
    sgi_store_job_free(job);
}

static void ask_store(segue_server *server, const sgi_principal *who, sgi_str task_id,
                      const uint8_t *key, sgi_found_fn found, void *user)
{
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    finding *find = sgi_alloc(mem, sizeof *find);
    sgi_store_job *job = find ? sgi_store_job_new(&server->committer, SGI_STORE_JOB_FIND,
                                                  record_found, find)
                              : NULL;
    if (job && !key)
        job->task_id = sgi_text_dup(mem, task_id);
    if (!job || (!key && !job->task_id)) {
        if (job)
            sgi_store_job_free(job);
        sgi_free(mem, find, sizeof *find);
        found(user, NULL, SEGUE_E_NOMEM);
        return;
    }
    if (key)
        memcpy(job->key, key, sizeof job->key);
    *find = (finding){.server = server, .has_owner = who, .found = found, .user = user};
    if (who)
        memcpy(find->owner, who->digest, sizeof find->owner);
    sgi_server_ref(server);
    sgi_committer_add_job(&server->committer, job);
}

static void caught_up(sgi_store_job *job);

/* Reads the newest entries of an operation in memory; caught_up then returns the
 * operation. Returns false when out of memory. */
static bool read_on(finding *find)
{
    const sgi_op *op = find->op;
    sgi_committer *committer = &find->server->committer;
    sgi_store_job_kind kind =
        sgi_op_runs_elsewhere(op) ? SGI_STORE_JOB_READ : SGI_STORE_JOB_NOTHING;
    sgi_store_job *job = sgi_store_job_new(committer, kind, caught_up, find);
    if (!job)
        return false;
    memcpy(job->id, op->id, sizeof job->id);
    job->after = op->durable;
    job->max_bytes = find->server->committer.read_bytes;
    sgi_committer_add_job(committer, job);
    return true;
}

/* Returns the operation after its newest entries were read. The client may have received
 * these entries from another server and must not see an older log here. Another server
 * can know of a commit earlier than this server, even for an operation of this server. */
static void caught_up(sgi_store_job *job)
{
    finding *find = job->user;
    sgi_op *op = find->op;
    segue_status status = job->status;
    bool is_followed = sgi_op_runs_elsewhere(op) && sgi_op_is_known(op);
    bool more = is_followed && job->bytes >= job->max_bytes;
    if (is_followed && status == SEGUE_OK)
        status = sgi_followed_append_entries(op, &job->entries);
    sgi_store_job_free(job);
    if (status == SEGUE_OK && more && read_on(find))
        return;
    if (sgi_op_runs_elsewhere(op) && sgi_op_is_known(op) && (status != SEGUE_OK || more))
        /* the log has more entries; the server reads them later */
        sgi_followed_read_more(op);
    sgi_followed_note_use(op);
    tell(find, status == SEGUE_E_NOT_FOUND ? NULL : op,
         status == SEGUE_E_NOT_FOUND ? status : SEGUE_OK);
    sgi_op_unref(op);
}

static void catch_up(sgi_op *op, sgi_found_fn found, void *user)
{
    segue_server *server = sgi_op_server(op);
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    finding *find = op->shared->stale ? NULL : sgi_alloc(mem, sizeof *find);
    if (find)
        *find = (finding){.server = server, .op = op, .found = found, .user = user};
    if (!find || !read_on(find)) {
        sgi_free(mem, find, sizeof *find);
        /* the operation is returned without its newest entries, which are read later */
        sgi_followed_read_more(op);
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

/* Finds a task. A task of another owner is handled like a missing task: the answer is the
 * same and takes the same time (R-0-5). */
void sgi_server_find_task(segue_server *server, const sgi_principal *who, sgi_str task_id,
                          sgi_found_fn found, void *user)
{
    sgi_op *op = sgi_cluster_known_task(&server->cluster, task_id);
    if (op && op->served->who == who)
        op->heard.last_ms = sgi_now(&server->engine->env);
    if (op && op->served->who == who &&
        (sgi_op_runs_elsewhere(op) || op->writing == SGI_WRITING_NOW))
        catch_up(op, found, user);
    else if (op && op->served->who == who)
        found(user, op, SEGUE_OK);
    else if (!is_task_id(task_id))
        found(user, NULL, SEGUE_E_NOT_FOUND);
    else
        ask_store(server, who, task_id, NULL, found, user);
}

void sgi_server_find_by_key(segue_server *server, const uint8_t key[SGI_DIGEST_SIZE],
                            sgi_found_fn found, void *user)
{
    ask_store(server, NULL, (sgi_str){0}, key, found, user);
}
