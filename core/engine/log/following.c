/* One read at a time for each; what is told meanwhile (`grew`) leads to the next. What
 * arrives joins the tail, so that readers that follow need no look at the store of their
 * own. The operation's timer, which for an own one is its time to live, looks from time
 * to time: whether anybody still cares, and, if so, whether it is still there, since what
 * is purged is not told.
 *
 * One that was ours until its commit was fenced is `stale`: its head was put back, but
 * not to the last bit (op_head.c), and is taken from the store before anything else. */
#include "engine/log/following.h"

#include "engine/error.h"
#include "engine/log/op_head.h"
#include "engine/log/recovery.h"
#include "engine/serving/budget.h"
#include "engine/serving/resumable.h"
#include "engine/refusal.h"

#define KEEP_MS 30000
#define RETRY_MS 250
#define MOVE_AT_MOST 16

static void on_timer(sgi_timer *timer);

static void set_timer(sgi_op *op, int64_t ms)
{
    sgi_engine_timer(op->engine, &op->timer, ms, on_timer);
}

/* ---- who is followed ---- */

static bool is_looked_at(const sgi_op *op)
{
    return !TAILQ_EMPTY(&op->readers) || !TAILQ_EMPTY(&op->waiters) ||
           !LIST_EMPTY(&op->watches) || !LIST_EMPTY(&op->errands) || op->claimed ||
           (op->resumable && op->resumable->peer);
}

static void move_to_end(sgi_op *op)
{
    struct sgi_op_list *all = &op->server->followed_ops;
    TAILQ_REMOVE(all, op, linger_link);
    TAILQ_INSERT_TAIL(all, op, linger_link);
}

/* Those that are looked at are as many as there are clients. */
static void make_room(segue_server *server)
{
    for (int i = 0; i < MOVE_AT_MOST && server->followed > SGI_FOLLOWED_MAX; i++) {
        sgi_op *op = TAILQ_FIRST(&server->followed_ops);
        if (is_looked_at(op))
            move_to_end(op);
        else
            sgi_server_op_forget(op);
    }
}

void sgi_followed_known(sgi_op *op)
{
    segue_server *server = op->server;
    op->follows = true;
    TAILQ_INSERT_TAIL(&server->followed_ops, op, linger_link);
    server->followed++;
    set_timer(op, KEEP_MS);
    make_room(server);
}

void sgi_followed_seen(sgi_op *op)
{
    if (!op->follows)
        return;
    move_to_end(op);
    set_timer(op, KEEP_MS);
}

static void left(sgi_job *job)
{
    segue_server *server = job->user;
    sgi_job_free(job);
    sgi_server_unref(server);
}

/* Without memory for it the next growth, which is nobody's then, comes here again. */
void sgi_followed_leave(segue_server *server, const uint8_t *id)
{
    sgi_job *job = NULL;
    if (server->stage < SGI_SERVER_DEAD && !sgi_is_rebuilt(server, id))
        job = sgi_job_new(&server->keeper, SGI_JOB_LEAVE, left, server);
    if (!job)
        return;
    memcpy(job->id, id, sizeof job->id);
    sgi_server_ref(server);
    sgi_keeper_ask(&server->keeper, job);
}

void sgi_followed_end(sgi_op *op)
{
    segue_server *server = op->server;
    if (!op->follows)
        return;
    op->follows = false;
    TAILQ_REMOVE(&server->followed_ops, op, linger_link);
    server->followed--;
    sgi_engine_timer_clear(op->engine, &op->timer);
    sgi_followed_leave(server, op->id);
}

/* ---- what became of it ---- */

/* The store has nothing of it any more, or nothing that can be read: it ends here, and
 * nothing is written. */
static void end_here(sgi_op *op, sgi_entry_kind kind, const char *text, sgi_json data)
{
    sgi_followed_end(op);
    op->hold = SGI_HOLD_HERE;
    op->stale = false;
    op->logged = false;
    if (sgi_op_fail(op, kind, SGI_RPC_INTERNAL_ERROR, sgi_str_of(text), data) ==
        SEGUE_E_NOMEM)
        sgi_op_give_up(op, text);
}

/* What the handler of an earlier run here waited for; it has not been told yet. */
static bool is_being_left(const sgi_op *op)
{
    const sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (input->bound && !input->delivered)
            return true;
    return false;
}

static void free_inputs(sgi_op *op)
{
    sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        input->bound = input->delivered = false;
}

/* All of its log is here. */
static void take_over(sgi_op *op)
{
    segue_server *server = op->server;
    if (is_being_left(op) && server->stage < SGI_SERVER_DEAD) {
        op->grew = true;
        set_timer(op, RETRY_MS);
        return;
    }
    op->claimed = false;
    if (sgi_op_is_elsewhere(op)) {
        sgi_followed_end(op);
        op->hold = SGI_HOLD_HERE;
        free_inputs(op);
    }
    sgi_recover_one(server, op);
}

static void went_wrong(sgi_op *op, segue_status status)
{
    if (status == SEGUE_E_NOT_FOUND) {
        end_here(op, SGI_ENTRY_EXPIRED, "Task TTL expired", (sgi_json){0});
    } else if (status == SEGUE_E_STORE_CORRUPT) {
        sgi_refusal refusal = sgi_refusal_of(SGI_UNREADABLE, status);
        end_here(op, SGI_ENTRY_ERROR, refusal.text, sgi_str_of(refusal.data));
    } else {
        op->grew = true;
        set_timer(op, RETRY_MS);
    }
}

static void look_on(sgi_op *op, segue_status status, bool more)
{
    if (sgi_op_is_elsewhere(op) && op->known && status != SEGUE_OK)
        went_wrong(op, status);
    if (sgi_op_is_elsewhere(op) && op->known && status == SEGUE_OK && (more || op->grew))
        sgi_followed_look(op);
    else if (op->claimed && (status == SEGUE_OK || !sgi_op_is_elsewhere(op)))
        take_over(op);
}

/* ---- reading ---- */

static void arrived(sgi_job *job)
{
    sgi_op *op = job->user;
    bool more = job->bytes >= job->max_bytes;
    segue_status status = job->status;
    op->reading = false;
    if (sgi_op_is_elsewhere(op) && op->known && status == SEGUE_OK)
        status = sgi_op_grow(op, &job->entries);
    sgi_job_free(job);
    look_on(op, status, more);
    sgi_op_unref(op);
}

static void refreshed(void *user, sgi_op *fresh, segue_status status)
{
    sgi_op *op = user;
    op->reading = false;
    if (sgi_op_is_elsewhere(op) && op->known && status == SEGUE_OK) {
        op->stale = false;
        sgi_op_adopt(op, fresh);
    }
    look_on(op, status, false);
    sgi_op_unref(op);
}

static void record_found(sgi_job *job)
{
    sgi_op *op = job->user;
    sgi_found *found = TAILQ_FIRST(&job->found);
    segue_status status = job->status;
    if (status == SEGUE_OK && !found)
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK)
        sgi_rebuild_apart(op->server, &found->record, refreshed, op);
    else
        refreshed(op, NULL, status);
    sgi_job_free(job);
}

static sgi_job *make_job(sgi_op *op)
{
    sgi_keeper *keeper = &op->server->keeper;
    sgi_job *job;
    if (!op->stale) {
        job = sgi_job_new(keeper, SGI_JOB_READ, arrived, op);
        if (!job)
            return NULL;
        memcpy(job->id, op->id, sizeof job->id);
        job->after = op->durable;
        job->max_bytes = op->server->read_bytes;
        return job;
    }
    job = sgi_job_new(keeper, SGI_JOB_FIND, record_found, op);
    if (job)
        job->task_id = sgi_text_dup(job->mem, sgi_str_of(op->task_id));
    if (!job || job->task_id)
        return job;
    sgi_job_free(job);
    return NULL;
}

void sgi_followed_look(sgi_op *op)
{
    if (!sgi_op_is_elsewhere(op) || !op->known)
        return;
    op->grew = true;
    if (op->reading)
        return;
    sgi_job *job = make_job(op);
    if (!job) {
        set_timer(op, RETRY_MS);
        return;
    }
    op->grew = false;
    op->reading = true;
    sgi_op_ref(op);
    sgi_keeper_ask(&op->server->keeper, job);
}

void sgi_followed_look_all(segue_server *server)
{
    sgi_op *op = TAILQ_FIRST(&server->followed_ops);
    while (op) {
        sgi_op *next = TAILQ_NEXT(op, linger_link);
        sgi_followed_look(op);
        op = next;
    }
}

static void on_timer(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_op, timer);
    sgi_op_ref(op);
    if (op->grew || is_looked_at(op)) {
        set_timer(op, KEEP_MS);
        sgi_followed_look(op);
    } else {
        sgi_server_op_forget(op);
    }
    sgi_op_unref(op);
}

void sgi_followed_own(sgi_op *op)
{
    op->claimed = true;
    sgi_followed_look(op);
}
