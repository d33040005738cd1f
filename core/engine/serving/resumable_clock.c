/* The clock is its owner's. Another server, at which the client is, tells it (letters,
 * errands.h) when the client comes and goes, and from time to time that it is still
 * there: should that server die, the owner's clock runs out as it must. */
#include "engine/serving/resumable_clock.h"

#include "engine/log/dropping.h"
#include "engine/serving/errands.h"
#include "engine/serving/task.h"

/* What has no other handle leaves the store. */
void sgi_resumable_close(sgi_resumable *r, const char *why)
{
    sgi_op *op = r->op;
    if (r->closed)
        return;
    r->closed = why;
    sgi_resumable_leave_peer(r);
    sgi_engine_timer_clear(op->engine, &r->clock);
    if (op->is_task || op->key)
        return;
    op->deleting = true;
    sgi_keeper_dirty(&op->server->keeper, op);
    sgi_server_op_closed(op);
}

static int64_t wait_of(const sgi_resumable *r)
{
    return r->max_wait_ms ? r->max_wait_ms : SGI_UNTOLD_WAIT_MS;
}

static void time_over(sgi_timer *timer)
{
    sgi_resumable *r = SGI_OWNER(timer, sgi_resumable, clock);
    sgi_op *op = r->op;
    if (!sgi_op_is_ours(op))
        return;
    sgi_op_ref(op);
    if (sgi_op_has_ended(op))
        sgi_resumable_close(r, "expired");
    else if (!op->is_task) /* a task has its own time to live (C-8) */
        sgi_task_expire(op);
    sgi_op_unref(op);
}

static void start_clock(sgi_resumable *r, int64_t wait)
{
    if (!r->closed && r->op->server->stage < SGI_SERVER_DEAD && sgi_op_is_ours(r->op))
        sgi_engine_timer(r->op->engine, &r->clock, wait > 0 ? wait : 0, time_over);
}

void sgi_resumable_begin_clock(sgi_resumable *r)
{
    sgi_engine_timer_clear(r->op->engine, &r->clock);
    start_clock(r, wait_of(r));
}

static void still_here(sgi_timer *timer)
{
    sgi_resumable *r = SGI_OWNER(timer, sgi_resumable, clock);
    if (!sgi_op_is_elsewhere(r->op) || r->detached)
        return;
    sgi_resumable_say(r, false);
    sgi_resumable_end_clock(r);
}

void sgi_resumable_end_clock(sgi_resumable *r)
{
    sgi_engine *engine = r->op->engine;
    sgi_engine_timer_clear(engine, &r->clock);
    if (sgi_op_is_elsewhere(r->op) && !r->detached &&
        r->op->server->stage < SGI_SERVER_DEAD)
        sgi_engine_timer(engine, &r->clock, wait_of(r) / 3 + 1, still_here);
}

/* Behind the end there is no log any more: from there the time of the end counts. A log
 * without room or memory for it says what it said before. */
void sgi_resumable_say(sgi_resumable *r, bool away)
{
    sgi_op *op = r->op;
    if (!op->logged || sgi_op_has_ended(op))
        return;
    if (sgi_op_is_elsewhere(op))
        sgi_errand_presence(op, away);
    else
        sgi_op_append(op, SGI_ENTRY_PRESENCE,
                      away ? SGI_STR("{\"away\":1}") : SGI_STR("{\"away\":0}"));
}

/* Not each contact is written down: the time that is written is so much short of the last
 * one at most, and who reads it adds that (nobody is cancelled early). */
static int64_t slack_of(const sgi_resumable *r)
{
    return wait_of(r) / 8;
}

void sgi_resumable_touch(sgi_resumable *r)
{
    int64_t now = sgi_wall(&r->op->engine->env);
    if (!r->detached)
        return;
    start_clock(r, wait_of(r));
    if (!r->away || sgi_time_sub(now, r->away_ms) >= slack_of(r))
        sgi_resumable_say(r, true);
}

/* How long a client that is away is waited for: as its log says, and all the time when
 * that says nothing. What has ended was left at its end at the latest. */
static int64_t left_of(const sgi_resumable *r)
{
    int64_t now = sgi_wall(&r->op->engine->env);
    if (!r->away && !sgi_op_has_ended(r->op))
        return wait_of(r);
    int64_t since = r->away ? r->away_ms : r->op->ended_ms;
    int64_t parted = sgi_time_add(since, slack_of(r));
    return parted < now ? sgi_time_sub(sgi_time_add(parted, wait_of(r)), now)
                        : wait_of(r);
}

bool sgi_resumable_is_over(const sgi_op *op)
{
    const sgi_resumable *r = op->resumable;
    return r && r->detached && !r->closed && !op->is_task && left_of(r) <= 0;
}

void sgi_resumable_look(sgi_op *op)
{
    if (sgi_op_has_ended(op) && sgi_resumable_is_over(op))
        sgi_resumable_close(op->resumable, "expired");
}

/* Who was there when the server died parted then; when that was nobody knows. Who came
 * here before it was ours is here. */
void sgi_resumable_wake(sgi_op *op)
{
    sgi_resumable *r = op->resumable;
    if (!r)
        return;
    if (!r->detached) {
        sgi_resumable_end_clock(r);
        if (r->away)
            sgi_resumable_say(r, false);
        return;
    }
    start_clock(r, left_of(r));
    if (!r->away && !sgi_op_has_ended(op))
        sgi_resumable_say(r, true);
}

void sgi_resumable_note_presence(sgi_resumable *r, const sgi_entry *entry)
{
    sgi_op *op = r->op;
    int64_t away = 0;
    sgi_json_int(sgi_json_get((sgi_json){entry->data, entry->len}, "away"), &away);
    r->away = away != 0;
    r->away_ms = entry->at_ms;
    if (r->marked_seq) { /* the one before says nothing any more */
        sgi_op_drop(op, SGI_DROP_MARKS, r->marked_seq);
        op->log_bytes -= entry->len; /* they are all as long */
    }
    r->marked_seq = entry->seq;
}
