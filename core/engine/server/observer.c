/* Functions of the server that the log and the cluster call to report changes to the
 * server. */
#include "engine/log/observer.h"

#include "engine/error.h"
#include "engine/cluster/following.h"
#include "engine/cluster/forwarding.h"
#include "engine/cluster/recovery.h"
#include "engine/server/question_requests.h"
#include "engine/server/call.h"
#include "engine/server/call_report.h"
#include "engine/server/clients.h"
#include "engine/server/commands.h"
#include "engine/server/grant.h"
#include "engine/server/mailbox.h"
#include "engine/server/origin.h"
#include "engine/server/task_creator.h"
#include "engine/server/carried_answers.h"
#include "engine/server/lasting.h"
#include "engine/server/rounds.h"
#include "engine/server/task.h"
#include "engine/server/tool_call.h"
#include "engine/server/waiting_ops.h"

/* ---- the log ---- */

static void uncount(sgi_op *op)
{
    if (op->served->counted)
        op->served->who->live_tasks--;
    op->served->counted = false;
}

static void linger(sgi_op *op)
{
    if (sgi_server_keep_ended_op(op))
        sgi_server_free_lingering_ops(sgi_op_server(op));
}

/* Called when further entries of the operation's log have become visible. The final entry
 * can be among them. */
static void became_visible(sgi_op *op)
{
    /* A call with an idempotency key, or a lasting call (its client can leave and come
     * back), starts only when its creation is durable. Before that, the store can still
     * find another operation with the same key, and the client of a lasting call could
     * not come back. */
    bool waited = op->key || sgi_op_is_lasting_call(op);
    if (waited && op->hold == SGI_HOLD_NEW && !op->served->call &&
        !sgi_op_has_ended(op) && sgi_op_server(op)->stage < SGI_SERVER_DEAD) {
        /* The hold is set before the start, so that a failed start is not repeated. */
        sgi_op_set_hold(op, SGI_HOLD_HERE);
        if (sgi_call_start(op, false) != SEGUE_OK)
            sgi_op_end_internal_error(op, "Out of memory");
    }
    if (op->served->call)
        sgi_call_on_room(op->served->call);
    if (!sgi_op_has_ended(op) || op->head.final_seq > sgi_op_horizon(op))
        return;
    if (sgi_op_runs_elsewhere(op)) {
        sgi_followed_end(op);
        /* the operation has ended and no server runs it, so this server can keep its
         * log */
        sgi_op_set_hold(op, SGI_HOLD_HERE);
        op->shared->stale = false;
    }
    /* only the server that ran the task logs the end of the task */
    if (op->served->counted && sgi_op_is_task(op))
        sgi_task_log_end(op);
    uncount(op);
    /* questions are withdrawn before the client gets the end */
    sgi_question_requests_withdraw(op);
    /* A round is an answer that asks the client questions. A round that the client will
     * still answer stays open, and the client's next request gets the end of the call as
     * its answer. */
    if (!sgi_round_awaits_client(op))
        sgi_round_end(op);
    if (sgi_op_is_known(op))
        linger(op);
    bool lacks_checkpoint =
        op->served->call && op->served->call->checkpoint && sgi_op_is_broken(op);
    if (op->served->call && (op->head.final == SGI_FINAL_CANCELLED || lacks_checkpoint))
        /* must run before sgi_call_release_by_op, which separates the handler from the
         * operation */
        sgi_call_cancel(op->served->call);
    if (op->served->call)
        sgi_call_release_by_op(op->served->call);
}

/* Called when another server has taken over the operation. Stops the handler on this
 * server. */
static void fenced(sgi_op *op)
{
    if (sgi_op_is_mailbox(op)) {
        sgi_mailbox_replace(op);
        return;
    }
    sgi_call_event_report(op, SGI_EVENT_call_fenced);
    uncount(op);
    sgi_server_stop_waiting_to_run(op);
    sgi_server_end_lingering(op);
    sgi_engine_clear_timer(op->engine, &op->shared->timer);
    sgi_engine_clear_timer(op->engine, &op->served->promote);
    if (op->served->call)
        sgi_call_on_taken_over(op->served->call);
}

static void not_created(sgi_op *op, segue_status status)
{
    /* An existing idempotency key is not a failure: the client has repeated its
     * request. */
    if (status != SEGUE_E_EXISTS || !op->key)
        sgi_engine_log(op->engine, SEGUE_LOG_WARNING,
                       "the store could not create an operation: %s",
                       sgi_status_name(status));
    uncount(op);
    if (op->served->call)
        sgi_call_cancel(op->served->call);
    sgi_server_take_from_maps(op);
}

static void freed(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_served_op_data *served = op->served;
    sgi_engine_clear_timer(op->engine, &served->shared.timer);
    sgi_engine_clear_timer(op->engine, &served->promote);
    sgi_round_end(op);
    sgi_carried_answers_free(op);
    sgi_lasting_call_free(op);
    sgi_task_creator_free(op);
    sgi_client_forget_op(op);
    if (served->item)
        sgi_item_unref(served->item);
    sgi_text_free(mem, served->own_arguments);
    sgi_text_free(mem, served->session);
    sgi_text_free(mem, served->trace_parent);
    if (served->who)
        sgi_principal_unref(served->who);
    sgi_grant_unref(served->grant);
    sgi_origin_unref(served->origin);
}

static void readers_were_woken(sgi_op *op)
{
    if (!LIST_EMPTY(&op->shared->forwards))
        sgi_forwards_end_done(op);
}

static void waiters_were_fired(sgi_op *op)
{
    if (!sgi_op_runs_elsewhere(op))
        return;
    sgi_op_ref(op); /* a reply that leaves the call may have the last reference */
    sgi_rejoin_offer_channel(op);
    sgi_question_requests_send_followed(op);
    sgi_op_unref(op);
}

static void released(sgi_committer *committer)
{
    sgi_server_unref(SGI_OWNER(committer, segue_server, committer));
}

static void joined(sgi_op *op, const sgi_entry *entry)
{
    op->served->lasting->form->joined(op->served->lasting, entry);
}

static void make_room(sgi_op *op, size_t bytes, size_t limit)
{
    op->served->lasting->form->make_room(op->served->lasting, bytes, limit);
}

static void stored(sgi_op *op, uint64_t entries, uint64_t took_us)
{
    if (!sgi_op_is_mailbox(op))
        sgi_call_event_note_stored(op, entries, took_us);
}

const struct sgi_log_observer sgi_server_observer = {
    .room = sizeof(sgi_served_op_data),
    .visible = became_visible,
    .readers_woken = readers_were_woken,
    .waiters_fired = waiters_were_fired,
    .failing = sgi_call_on_failing,
    .lost = not_created,
    .stored = stored,
    .fenced = sgi_op_give_up_to_new_owner,
    .moved_on = sgi_op_may_have_moved_on,
    .freed = freed,
    .released = released,
    .joined = joined,
    .make_room = make_room,
    .purge_ms = sgi_server_purge_time,
    .set_form = sgi_served_configure_fold,
    .name = sgi_served_name,
    .moves = sgi_served_moves_texts,
    .write = sgi_served_write_record,
    .made = sgi_served_op_from_record,
};

/* ---- functions for the cluster ---- */

static void hold(sgi_cluster *cluster)
{
    sgi_server_ref(sgi_cluster_server(cluster));
}

static void let(sgi_cluster *cluster)
{
    sgi_server_unref(sgi_cluster_server(cluster));
}

static void recovered(sgi_cluster *cluster)
{
    segue_server *server = sgi_cluster_server(cluster);
    if (server->stage == SGI_SERVER_RECOVERING)
        sgi_server_open(server);
}

/* Replaces the mailbox, because another server may have claimed and deleted the
 * mailbox. */
static void doubted(sgi_cluster *cluster)
{
    sgi_mailbox_renew(sgi_cluster_server(cluster));
}

static void adopted(sgi_op *op, const sgi_op *fresh)
{
    sgi_lasting_call *lasting = op->served->lasting;
    if (lasting && fresh->served->lasting)
        lasting->form->adopted(lasting, fresh->served->lasting);
}

static void rebuilt(sgi_op *op)
{
    if (op->served->lasting)
        op->served->lasting->form->rebuilt(op->served->lasting);
}

static void moved(sgi_op *op)
{
    if (op->served->lasting)
        op->served->lasting->form->moved(op->served->lasting);
}

/* True when this server has asked its client a question of the operation. The operation
 * must then stay in memory, so that the client's answer finds the operation. */
static bool asks_here(const sgi_op *op)
{
    const sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (input->question_request)
            return true;
    return false;
}

static bool is_looked_at(const sgi_op *op)
{
    return (op->served->lasting && op->served->lasting->peer) || asks_here(op);
}

const sgi_cluster_observer sgi_server_cluster_observer = {
    .hold = hold,
    .let = let,
    .recovered = recovered,
    .doubted = doubted,
    .known = sgi_server_put_in_maps,
    .forget = sgi_server_take_from_maps,
    .release = sgi_server_op_release,
    .rebuilt = rebuilt,
    .adopted = adopted,
    .taken_over = sgi_server_on_op_taken_over,
    .fenced = fenced,
    .moved = moved,
    .is_looked_at = is_looked_at,
    .command = sgi_forwarded_command_run,
    .acknowledges = sgi_command_is_answered_when_durable,
    .is_box = sgi_op_is_mailbox,
    .box_lost = sgi_mailbox_replace,
};
