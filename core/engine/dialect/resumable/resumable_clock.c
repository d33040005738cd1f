/* The clock of a resumable request runs at the owner of the operation. When the client is
 * attached to another server, that server sends forwarded commands to the owner
 * (forwarding.h): one when the client has come, one when the client has gone, and one at
 * each interval while the client is there. If that server dies, these commands stop, and
 * the owner's clock ends the wait for the client. */
#include "engine/dialect/resumable/resumable_clock.h"

#include "base/thresholds.h"
#include "engine/log/dropping.h"
#include "engine/cluster/forwarding.h"
#include "engine/server/task.h"

#define RETRY_MS SGI_THRESHOLD(expire_retry_ms)

/* Closes the request. If the operation is not a task and has no key, the operation is
 * also deleted from the store, because no client can ask for it any more. */
void sgi_resumable_close(sgi_resumable *r, const char *why)
{
    sgi_op *op = r->lasting.op;
    if (r->closed)
        return;
    r->closed = why;
    sgi_lasting_call_leave_peer(&r->lasting);
    sgi_engine_clear_timer(op->engine, &r->clock);
    if (sgi_op_is_task(op) || op->key)
        return;
    op->deleting = true;
    sgi_committer_mark_dirty(op->committer, op);
    sgi_server_on_op_delivered(op);
}

static int64_t wait_of(const sgi_resumable *r)
{
    return r->max_wait_ms ? r->max_wait_ms : SGI_UNTOLD_WAIT_MS;
}

static void start_clock(sgi_resumable *r, int64_t wait);

static void time_over(sgi_timer *timer)
{
    sgi_resumable *r = SGI_OWNER(timer, sgi_resumable, clock);
    sgi_op *op = r->lasting.op;
    if (!sgi_op_is_owned_here(op))
        return;
    sgi_op_ref(op);
    if (sgi_op_has_ended(op)) {
        sgi_resumable_close(r, "expired");
    } else if (!sgi_op_is_task(op)) {
        /* a task does not expire here, because it has its own time to live (C-8) */
        sgi_task_expire(op);
        if (!sgi_op_has_ended(op)) /* there was no memory for the end */
            start_clock(r, RETRY_MS);
    }
    sgi_op_unref(op);
}

static void start_clock(sgi_resumable *r, int64_t wait)
{
    if (!r->closed && sgi_op_server(r->lasting.op)->stage < SGI_SERVER_DEAD &&
        sgi_op_is_owned_here(r->lasting.op))
        sgi_engine_set_timer(r->lasting.op->engine, &r->clock, wait > 0 ? wait : 0,
                             time_over);
}

void sgi_resumable_begin_clock(sgi_resumable *r)
{
    sgi_engine_clear_timer(r->lasting.op->engine, &r->clock);
    start_clock(r, wait_of(r));
}

static void still_here(sgi_timer *timer)
{
    sgi_resumable *r = SGI_OWNER(timer, sgi_resumable, clock);
    if (!sgi_op_runs_elsewhere(r->lasting.op) || r->detached)
        return;
    sgi_resumable_append_presence(r, false);
    sgi_resumable_end_clock(r);
}

void sgi_resumable_end_clock(sgi_resumable *r)
{
    sgi_engine *engine = r->lasting.op->engine;
    sgi_engine_clear_timer(engine, &r->clock);
    if (sgi_op_runs_elsewhere(r->lasting.op) && !r->detached &&
        sgi_op_server(r->lasting.op)->stage < SGI_SERVER_DEAD)
        sgi_engine_set_timer(engine, &r->clock, wait_of(r) / 3 + 1, still_here);
}

/* Appends to the log whether the client is away. After the end of the operation nothing
 * can be appended, and the time of the end counts as the time at which the client left.
 * When there is no room or memory for the entry, the last entry stays valid. */
void sgi_resumable_append_presence(sgi_resumable *r, bool away)
{
    sgi_op *op = r->lasting.op;
    if (!sgi_op_is_logged(op) || sgi_op_has_ended(op))
        return;
    if (sgi_op_runs_elsewhere(op))
        sgi_forward_presence(op, away, r->attached_at);
    else
        sgi_op_append(op, SGI_ENTRY_PRESENCE,
                      away ? SGI_STR("{\"away\":1}") : SGI_STR("{\"away\":0}"));
}

/* The position of the arrival orders it among the reports of other servers, even of a
 * server that died before its report was read (`attached_at`). So the owner logs each
 * arrival behind whatever another server can have read. */
void sgi_resumable_append_arrival(sgi_resumable *r)
{
    const sgi_op *op = r->lasting.op;
    bool is_own = !sgi_op_runs_elsewhere(op);
    if (!is_own)
        r->attached_at = op->durable;
    sgi_resumable_append_presence(r, false);
    if (is_own)
        r->attached_at = op->head.next_log - 1;
}

/* Returns by how many ms the times in the log may be too old, because not every contact
 * with the client is logged. The caller adds the result to such a time, so that no
 * request expires too early. */
static int64_t slack_of(const sgi_resumable *r)
{
    return wait_of(r) / 8;
}

void sgi_resumable_restart_clock(sgi_resumable *r)
{
    int64_t now = sgi_wall_now(&r->lasting.op->engine->env);
    if (!r->detached)
        return;
    start_clock(r, wait_of(r));
    if (!r->away || sgi_time_sub(now, r->away_ms) >= slack_of(r))
        sgi_resumable_append_presence(r, true);
}

/* Returns how many ms the request still waits for its client, according to the log. While
 * the client is connected, the result is the whole time. After the end of the operation,
 * the time counts from the moment the client left, or from the end if the client has not
 * left. */
static int64_t left_of(const sgi_resumable *r)
{
    int64_t now = sgi_wall_now(&r->lasting.op->engine->env);
    if (!r->away && !sgi_op_has_ended(r->lasting.op))
        return wait_of(r);
    int64_t since = r->away ? r->away_ms : r->lasting.op->head.ended_ms;
    int64_t parted = sgi_time_add(since, slack_of(r));
    return parted < now ? sgi_time_sub(sgi_time_add(parted, wait_of(r)), now)
                        : wait_of(r);
}

/* True when the request has waited too long for its client. Never true for a task,
 * because a task has its own time to live (C-8). */
bool sgi_resumable_client_is_away_too_long(const sgi_lasting_call *lasting)
{
    const sgi_resumable *r = sgi_resumable_at(lasting);
    return r->detached && !r->closed && !sgi_op_is_task(lasting->op) && left_of(r) <= 0;
}

void sgi_resumable_close_if_away_too_long(sgi_lasting_call *lasting)
{
    if (sgi_op_has_ended(lasting->op) && sgi_resumable_client_is_away_too_long(lasting))
        sgi_resumable_close(sgi_resumable_at(lasting), "expired");
}

/* Starts the clock after a restart. The log decides how much time is left, because this
 * process does not know when the client left. If the client was attached to this server
 * before this server took over the call, the client stays attached. */
void sgi_resumable_begin_clock_at_restart(sgi_lasting_call *lasting)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    if (!r->detached) {
        sgi_resumable_end_clock(r);
        sgi_resumable_append_arrival(r);
        return;
    }
    start_clock(r, left_of(r));
    if (!r->away && !sgi_op_has_ended(lasting->op))
        sgi_resumable_append_presence(r, true);
}

void sgi_resumable_note_presence(sgi_resumable *r, const sgi_entry *entry)
{
    sgi_op *op = r->lasting.op;
    int64_t away = 0;
    sgi_json_read_int(sgi_json_get((sgi_json){entry->data, entry->len}, "away"), &away);
    r->away = away != 0;
    r->away_ms = entry->at_ms;
    if (r->marked_seq) { /* the new PRESENCE entry replaces the previous one */
        sgi_op_drop_entries(op, SGI_DROP_MARKS, r->marked_seq);
        /* PRESENCE entries have the same length, so this is the length of the dropped
         * entry */
        op->head.log_bytes -= entry->len;
    }
    r->marked_seq = entry->seq;
}
