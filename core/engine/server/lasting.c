#include "engine/server/lasting.h"

#include "engine/conversation/replay.h"
#include "engine/server/tool_call.h"

static bool keep(sgi_op *op, sgi_lasting_call *lasting)
{
    if (lasting) {
        op->served->lasting = lasting;
        op->drops = true;
    }
    return lasting;
}

bool sgi_lasting_call_make(sgi_op *op, const sgi_reply *reply,
                           const sgi_call_request *request)
{
    return !request->lasting || keep(op, request->lasting->make(op, reply, request));
}

bool sgi_lasting_call_read(sgi_op *op, sgi_json data)
{
    for (const sgi_srv_dialect *const *row = sgi_srv_dialects; *row; row++) {
        sgi_lasting_call *lasting = NULL;
        if ((*row)->lasting && !(*row)->lasting->read(op, data, &lasting))
            return false;
        keep(op, lasting);
    }
    return true;
}

void sgi_lasting_call_free(sgi_op *op)
{
    sgi_lasting_call *lasting = op->served->lasting;
    if (!lasting)
        return;
    op->served->lasting = NULL;
    op->drops = false;
    sgi_engine_clear_timer(op->engine, &lasting->offer);
    if (lasting->channel)
        sgi_lasting_call_leave_reply(lasting->channel);
    sgi_lasting_call_leave_peer(lasting);
    lasting->form->free(lasting);
}

/* ---- the channel of a call ---- */

void sgi_lasting_call_join_peer(sgi_lasting_call *lasting, sgi_peer *peer)
{
    lasting->peer = peer;
    LIST_INSERT_HEAD(&peer->lasting, lasting, by_peer);
}

void sgi_lasting_call_leave_peer(sgi_lasting_call *lasting)
{
    if (lasting->peer)
        LIST_REMOVE(lasting, by_peer);
    lasting->peer = NULL;
}

void sgi_lasting_call_leave_reply(sgi_reply *reply)
{
    if (reply->lasting)
        reply->lasting->channel = NULL;
    reply->lasting = NULL;
}

void sgi_lasting_call_note_position(sgi_reply *reply, uint64_t seq)
{
    if (!reply->lasting || !reply->peer)
        return;
    reply->lasting->sent = seq;
    if (reply->peer->conn->replay)
        reply->peer->conn->replay->at = seq;
}

static void offer_channel(sgi_timer *timer)
{
    const sgi_lasting_call *lasting = SGI_OWNER(timer, sgi_lasting_call, offer);
    sgi_op *op = lasting->op;
    sgi_op_ref(op); /* a reply that leaves the call may have the last reference */
    lasting->form->offer_channel(op);
    sgi_op_unref(op);
}

void sgi_lasting_call_offer_channel_soon(sgi_lasting_call *lasting)
{
    const sgi_op *op = lasting->op;
    if (sgi_call_find_carried_reply(op) && sgi_op_server(op)->stage < SGI_SERVER_DEAD)
        sgi_engine_set_timer(op->engine, &lasting->offer, 0, offer_channel);
}

/* ---- the calls of a peer ---- */

void sgi_lasting_calls_on_peer_parted(sgi_peer *peer)
{
    sgi_lasting_call *lasting;
    LIST_FOREACH(lasting, &peer->lasting, by_peer) {
        lasting->form->parted(lasting);
        sgi_lasting_call_offer_channel_soon(lasting);
    }
}

void sgi_lasting_calls_on_peer_rejoined(sgi_peer *peer)
{
    sgi_lasting_call *lasting;
    sgi_reply *reply;
    LIST_FOREACH(lasting, &peer->lasting, by_peer)
        lasting->form->rejoined(lasting);
    LIST_FOREACH(reply, &peer->replies, by_peer) {
        const sgi_op *op = sgi_reply_awaited_op(reply);
        if (op && op->served->lasting)
            sgi_lasting_call_offer_channel_soon(op->served->lasting);
    }
}

void sgi_lasting_calls_on_peer_lost(sgi_peer *peer)
{
    sgi_lasting_call *lasting;
    while ((lasting = LIST_FIRST(&peer->lasting))) {
        sgi_lasting_call_leave_peer(lasting);
        lasting->form->parted(lasting);
        sgi_lasting_call_offer_channel_soon(lasting);
    }
}

bool sgi_lasting_calls_on_output_written(sgi_peer *peer)
{
    bool more = false;
    sgi_lasting_call *next, *lasting = LIST_FIRST(&peer->lasting);
    for (; lasting && !peer->is_exchange; lasting = next) {
        sgi_op *op = lasting->op;
        next = LIST_NEXT(lasting, by_peer);
        /* this reference is needed, because `passed` can end the call and drop the other
         * references to the operation */
        sgi_op_ref(op);
        more |= lasting->form->passed(lasting);
        sgi_op_unref(op);
    }
    return more;
}
