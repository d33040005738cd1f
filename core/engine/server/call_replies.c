/* Functions for the replies that wait for the end of an operation. */
#include "engine/server/peer.h"

#include "engine/server/late_notes.h"
#include "engine/server/pieces.h"

static void end_came(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_late_notes_send(reply);
    reply->ended(reply, op, status);
}

void sgi_reply_await_end(sgi_reply *reply, sgi_op *op,
                         void (*ended)(sgi_reply *reply, sgi_op *op, segue_status status))
{
    reply->ended = ended;
    reply->waiter.fire = end_came;
    sgi_op_wait_until_visible(op, &reply->waiter, SGI_WAIT_FINAL);
}

void sgi_reply_separate_from_op(sgi_reply *reply, sgi_op *op)
{
    reply->cancelled = NULL;
    if (op->served->reply == reply)
        op->served->reply = NULL;
}

void sgi_reply_note_end_sent(const sgi_reply *reply, sgi_op *op)
{
    op->heard.end |=
        reply->peer && sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op);
}

sgi_op *sgi_reply_awaited_op(const sgi_reply *reply)
{
    return reply->waiter.fire == end_came ? reply->waiter.op : NULL;
}

static sgi_reply *find_waiting_reply(const sgi_op *op)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link) {
        sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == end_came && reply->peer)
            return reply;
    }
    return NULL;
}

sgi_reply *sgi_call_find_carried_reply(const sgi_op *op)
{
    sgi_reply *newest = NULL;
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link) {
        sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == end_came && reply->peer &&
            sgi_conn_transport(reply->peer->conn))
            newest = reply;
    }
    return newest;
}

void sgi_call_cut_connections(sgi_op *op)
{
    sgi_reply *reply;
    while ((reply = find_waiting_reply(op))) {
        sgi_conn_close(reply->peer->conn);
        reply->lost = true;
        sgi_reply_cancel(reply);
    }
}

const sgi_reply *sgi_call_find_stream_reply(const sgi_op *op, const sgi_reply *before)
{
    const sgi_waiter *waiter =
        before ? TAILQ_NEXT(&before->waiter, link) : TAILQ_FIRST(&op->waiters);
    for (; waiter; waiter = TAILQ_NEXT(waiter, link)) {
        const sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == end_came && !sgi_facts(reply->version)->has_rounds &&
            reply->peer)
            return reply;
    }
    return NULL;
}

int32_t sgi_call_not_found_code(const sgi_op *op)
{
    const sgi_reply *reply = op->served->reply;
    return sgi_facts(reply ? reply->version : SGI_VERSION_MODERN)->not_found_code;
}

/* Returns the waiting reply on which a round of questions can be sent. A round is an
 * answer that asks questions in place of a result; only clients of 2026-07-28 get rounds.
 * Clients of earlier versions get each question as a request of the server. */
sgi_reply *sgi_call_find_round_reply(const sgi_op *op)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link) {
        sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == end_came && sgi_facts(reply->version)->has_rounds)
            return reply;
    }
    return NULL;
}
