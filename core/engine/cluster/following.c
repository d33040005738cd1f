/* Follows operations that another server runs. Each followed operation has at most one
 * running read of its log. When the store reports growth during a read, another read
 * follows. New entries are appended to the tail in memory, so the readers of the
 * operation need not read from the store.
 *
 * An operation has one timer. While this server owns the operation, the timer ends the
 * operation when its time to live is over. While this server follows the operation, the
 * timer checks at intervals whether a client still uses the operation, and whether the
 * operation still exists, because the store does not report purges.
 *
 * When a commit was refused because another server has taken over the operation, the
 * operation is `stale`: only a part of its head (the state that follows from the log) was
 * reverted (op_head.c). The head of the operation is then rebuilt from the store before
 * new entries are read. */
#include "engine/cluster/following.h"

#include "base/rare.h"
#include "base/thresholds.h"
#include "engine/error.h"
#include "wire/jsonrpc.h"
#include "engine/log/op_head.h"
#include "engine/cluster/rebuild.h"
#include "engine/cluster/recovery.h"
#include "engine/log/refusal.h"

#define KEEP_MS SGI_THRESHOLD(follow_keep_ms)
#define RETRY_MS SGI_THRESHOLD(follow_retry_ms)
#define MOVE_AT_MOST SGI_THRESHOLD(follow_move_most)

static void on_timer(sgi_timer *timer);

static void set_timer(sgi_op *op, int64_t ms)
{
    sgi_engine_set_timer(op->engine, &op->shared->timer, ms, on_timer);
}

/* ---- followed operations ---- */

static bool is_looked_at(const sgi_op *op)
{
    return !TAILQ_EMPTY(&op->readers) || !TAILQ_EMPTY(&op->waiters) ||
           !LIST_EMPTY(&op->watches) || !LIST_EMPTY(&op->shared->forwards) ||
           op->shared->claimed || sgi_op_cluster(op)->observer->is_looked_at(op);
}

static void move_to_end(sgi_op *op)
{
    struct sgi_cluster_op_list *all = &sgi_op_cluster(op)->followed_ops;
    TAILQ_REMOVE(all, op->shared, link);
    TAILQ_INSERT_TAIL(all, op->shared, link);
}

/* Forgets operations that other servers run (followed operations) and that no client
 * uses, beginning with the least recently used operation. `fresh` is not forgotten,
 * because the client that asked for `fresh` uses it next. */
static void make_room(sgi_cluster *cluster, const sgi_op *fresh)
{
    for (int i = 0; i < MOVE_AT_MOST && cluster->followed > SGI_FOLLOWED_MAX; i++) {
        sgi_op *op = TAILQ_FIRST(&cluster->followed_ops)->op;
        if (is_looked_at(op) || op == fresh)
            move_to_end(op);
        else
            sgi_op_cluster(op)->observer->forget(op);
    }
}

void sgi_followed_add(sgi_op *op)
{
    sgi_cluster *cluster = sgi_op_cluster(op);
    op->shared->state = SGI_CLUSTER_OP_FOLLOWED;
    TAILQ_INSERT_TAIL(&cluster->followed_ops, op->shared, link);
    cluster->followed++;
    set_timer(op, KEEP_MS);
    make_room(cluster, op);
}

void sgi_followed_note_use(sgi_op *op)
{
    if (op->shared->state != SGI_CLUSTER_OP_FOLLOWED)
        return;
    move_to_end(op);
    set_timer(op, KEEP_MS);
}

static void left(sgi_store_job *job)
{
    sgi_cluster *cluster = job->user;
    sgi_store_job_free(job);
    sgi_cluster_unref(cluster);
}

/* Asks the store not to report growth of this operation any more. When out of memory, the
 * store is not asked; its next report of growth causes another attempt. */
void sgi_followed_unsubscribe(sgi_cluster *cluster, const uint8_t *id)
{
    sgi_store_job *job = NULL;
    if (!cluster->committer->closed && !sgi_rebuild_is_running(cluster, id))
        job = sgi_store_job_new(cluster->committer, SGI_STORE_JOB_LEAVE, left, cluster);
    if (!job)
        return;
    memcpy(job->id, id, sizeof job->id);
    sgi_cluster_ref(cluster);
    sgi_committer_add_job(cluster->committer, job);
}

void sgi_followed_end(sgi_op *op)
{
    sgi_cluster *cluster = sgi_op_cluster(op);
    if (op->shared->state != SGI_CLUSTER_OP_FOLLOWED)
        return;
    op->shared->state = SGI_CLUSTER_OP_KNOWN;
    TAILQ_REMOVE(&cluster->followed_ops, op->shared, link);
    cluster->followed--;
    sgi_engine_clear_timer(op->engine, &op->shared->timer);
    sgi_followed_unsubscribe(cluster, op->id);
}

/* ---- growth of operations ---- */

static bool is_reading(const sgi_op *op)
{
    return op->shared->growth >= SGI_GROWTH_READING;
}

/* True when the log in the store has entries that the running read does not return. */
static bool is_due(const sgi_op *op)
{
    return op->shared->growth == SGI_GROWTH_DUE ||
           op->shared->growth == SGI_GROWTH_READING_ON;
}

static void note_growth(sgi_op *op)
{
    op->shared->growth = is_reading(op) ? SGI_GROWTH_READING_ON : SGI_GROWTH_DUE;
}

static void note_read(sgi_op *op)
{
    op->shared->growth = is_due(op) ? SGI_GROWTH_DUE : SGI_GROWTH_READ;
}

bool sgi_op_may_be_behind(const sgi_op *op)
{
    if (!sgi_op_runs_elsewhere(op))
        return sgi_op_is_in_doubt(op) ||
               (sgi_op_is_logged(op) && sgi_op_cluster(op)->cut_off);
    return op->shared->stale || op->shared->growth != SGI_GROWTH_READ;
}

/* ---- the end of following ---- */

/* Ends an operation in memory, because its log in the store is gone or unreadable.
 * Nothing is written to the store. */
static void end_here(sgi_op *op, sgi_entry_kind kind, const char *text, sgi_json data)
{
    sgi_followed_end(op);
    sgi_op_set_hold(op, SGI_HOLD_HERE);
    op->shared->stale = false;
    sgi_op_set_stored(op, SGI_STORED_NOT);
    if (sgi_op_fail(op, kind, SGI_RPC_INTERNAL_ERROR, sgi_str_of(text), data) ==
        SEGUE_E_NOMEM)
        sgi_op_end_internal_error(op, text);
}

/* True while a handler of this process has a question without an outcome, or reads the
 * outcome. The handler must first get the outcome that no answer will come. */
static bool is_being_left(const sgi_op *op)
{
    const sgi_op_question *input;
    if (op->pins)
        return true;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (input->bound && !input->delivered)
            return true;
    return false;
}

/* Prepares the questions for another run of the handler, which may ask them again. */
static void free_inputs(sgi_op *op)
{
    sgi_op_question *input;
    sgi_op_head_free_reverted_questions(op);
    TAILQ_FOREACH(input, &op->head.inputs, link)
        input->bound = input->delivered = false;
}

/* Makes this server the owner of the operation. Called when the whole log was read. */
static void take_over(sgi_op *op)
{
    sgi_cluster *cluster = sgi_op_cluster(op);
    if (is_being_left(op) && !cluster->committer->closed) {
        note_growth(op);
        set_timer(op, RETRY_MS);
        return;
    }
    op->shared->claimed = false;
    if (sgi_op_runs_elsewhere(op)) {
        sgi_followed_end(op);
        sgi_op_set_hold(op, SGI_HOLD_HERE);
        free_inputs(op);
    }
    sgi_recover_claimed_op(cluster, op);
}

static void went_wrong(sgi_op *op, segue_status status)
{
    if (status == SEGUE_E_NOT_FOUND) {
        end_here(op, SGI_ENTRY_EXPIRED, "Task TTL expired", (sgi_json){0});
    } else if (status == SEGUE_E_STORE_CORRUPT) {
        sgi_store_refusal refusal = sgi_store_refusal_of(SGI_UNREADABLE, status);
        end_here(op, SGI_ENTRY_ERROR, refusal.text, sgi_str_of(refusal.data));
    } else {
        SGI_RARE(follow_failed);
        note_growth(op);
        set_timer(op, RETRY_MS);
    }
}

static void look_on(sgi_op *op, segue_status status, bool more)
{
    if (sgi_op_runs_elsewhere(op) && sgi_op_is_known(op) && status != SEGUE_OK)
        went_wrong(op, status);
    if (sgi_op_runs_elsewhere(op) && sgi_op_is_known(op) && status == SEGUE_OK &&
        (more || is_due(op)))
        sgi_followed_read_more(op);
    else if (op->shared->claimed && (status == SEGUE_OK || !sgi_op_runs_elsewhere(op)))
        take_over(op);
}

/* ---- reading the log ---- */

static void arrived(sgi_store_job *job)
{
    sgi_op *op = job->user;
    bool more = job->bytes >= job->max_bytes;
    segue_status status = job->status;
    note_read(op);
    if (sgi_op_runs_elsewhere(op) && sgi_op_is_known(op) && status == SEGUE_OK)
        status = sgi_followed_append_entries(op, &job->entries);
    sgi_store_job_free(job);
    look_on(op, status, more);
    sgi_op_unref(op);
}

static void refreshed(void *user, sgi_op *fresh, segue_status status)
{
    sgi_op *op = user;
    note_read(op);
    if (sgi_op_runs_elsewhere(op) && sgi_op_is_known(op) && status == SEGUE_OK) {
        SGI_RARE(head_rebuilt);
        op->shared->stale = false;
        sgi_op_take_head_of(op, fresh);
    }
    look_on(op, status, false);
    sgi_op_unref(op);
}

static void record_found(sgi_store_job *job)
{
    sgi_op *op = job->user;
    sgi_found_record *found = TAILQ_FIRST(&job->found);
    segue_status status = job->status;
    if (status == SEGUE_OK && !found)
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK)
        sgi_rebuild_op_copy(sgi_op_cluster(op), &found->record, refreshed, op);
    else
        refreshed(op, NULL, status);
    sgi_store_job_free(job);
}

static sgi_store_job *make_job(sgi_op *op)
{
    sgi_committer *committer = op->committer;
    sgi_store_job *job;
    if (!op->shared->stale) {
        job = sgi_store_job_new(committer, SGI_STORE_JOB_READ, arrived, op);
        if (!job)
            return NULL;
        memcpy(job->id, op->id, sizeof job->id);
        job->after = op->durable;
        job->max_bytes = op->committer->read_bytes;
        return job;
    }
    job = sgi_store_job_new(committer, SGI_STORE_JOB_FIND, record_found, op);
    if (job)
        job->task_id = sgi_text_dup(job->mem, sgi_str_of(op->task_id));
    if (!job || job->task_id)
        return job;
    sgi_store_job_free(job);
    return NULL;
}

void sgi_followed_read_more(sgi_op *op)
{
    if (!sgi_op_runs_elsewhere(op) || !sgi_op_is_known(op))
        return;
    note_growth(op);
    if (is_reading(op) || op->pins)
        return;
    sgi_store_job *job = make_job(op);
    if (!job) {
        set_timer(op, RETRY_MS);
        return;
    }
    op->shared->growth = SGI_GROWTH_READING;
    sgi_op_ref(op);
    sgi_committer_add_job(op->committer, job);
}

void sgi_op_pin_head(sgi_op *op)
{
    op->pins++;
}

void sgi_op_unpin_head(sgi_op *op)
{
    if (--op->pins == 0)
        sgi_followed_read_more(op);
}

void sgi_followed_read_all(sgi_cluster *cluster)
{
    sgi_cluster_op_data *shared = TAILQ_FIRST(&cluster->followed_ops);
    while (shared) {
        sgi_cluster_op_data *next = TAILQ_NEXT(shared, link);
        sgi_followed_read_more(shared->op);
        shared = next;
    }
}

static void on_timer(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_cluster_op_data, timer)->op;
    sgi_op_ref(op);
    if (is_due(op) || is_looked_at(op)) {
        set_timer(op, KEEP_MS);
        sgi_followed_read_more(op);
    } else {
        sgi_op_cluster(op)->observer->forget(op);
    }
    sgi_op_unref(op);
}

void sgi_followed_take_over(sgi_op *op)
{
    SGI_RARE(taken_over_followed);
    op->shared->claimed = true;
    sgi_followed_read_more(op);
}
