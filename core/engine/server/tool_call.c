/* Handles tools/call, and questions to a host (a server inside a client's session), which
 * run in the same way. The server decides how a call is answered (call_request.h) and
 * makes an operation for the call. The request waits for the operation (call_wait.c). */
#include "engine/server/tool_call.h"

#include "engine/server/call.h"
#include "engine/server/clients.h"
#include "engine/server/grant.h"
#include "engine/server/origin.h"
#include "engine/server/pieces.h"
#include "engine/server/carried_answers.h"
#include "engine/server/lasting.h"
#include "engine/server/session_mark.h"
#include "engine/server/task.h"

static void promote(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_served_op_data, promote)->shared.op;
    segue_call *call = op->served->call;
    bool starts_later = !call && op->hold == SGI_HOLD_NEW && !sgi_op_has_ended(op);
    /* The timer is set again while the call cannot become a task yet: its creation is not
     * durable, or a question to the client is open (SEGUE_E_STATE). */
    if (starts_later || (call && sgi_call_defer(call, 0) == SEGUE_E_STATE))
        sgi_engine_set_timer(op->engine, &op->served->promote,
                             op->served->item->options.promote_after_ms, promote);
}

/* Called at the end of the handler's first turn (when on_call returns, or later if the
 * handler holds its turn). A call that has not ended becomes a task (immediate mode). */
static void turned_without_end(sgi_reply *reply, sgi_op *op)
{
    (void)reply;
    if (op->served->call && !sgi_op_has_ended(op))
        sgi_call_defer(op->served->call, 0);
}

/* Sets the arguments of the call. The arguments of a question are all params of the
 * question. */
static void set_arguments(sgi_op *op, const sgi_inbound *in)
{
    if (sgi_call_is_question(op->served->kind))
        op->served->arguments = (sgi_json){op->served->params, op->served->params_len};
    else if (in->arguments.n)
        op->served->arguments = (sgi_json){
            op->served->params + (in->arguments.p - in->params.p), in->arguments.n};
}

/* Writes the members that every answer to a question has. Returns false when out of
 * memory. An answer that is not a task itself also names the task that asks the question
 * (2025-11-25 basic/utilities/tasks, "Associating Task-Related Messages"). */
static bool open_result(sgi_op *op, sgi_verdict verdict)
{
    sgi_buf fields;
    if (!sgi_call_is_question(op->served->kind))
        return true;
    sgi_json meta =
        sgi_json_get((sgi_json){op->served->params, op->served->params_len}, "_meta");
    sgi_json related = sgi_json_get(meta, SGI_RELATED_TASK);
    bool ok = sgi_op_append(op, SGI_ENTRY_FIELDS,
                            sgi_str_of(op->served->kind->opening)) == SEGUE_OK;
    if (!ok || verdict != SGI_VERDICT_PLAIN || !related.n)
        return ok;
    sgi_buf_init(&fields, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_to(&fields);
    sgi_jw_open(&w, '{');
    sgi_jw_key(&w, "_meta");
    sgi_jw_open(&w, '{');
    sgi_jw_member_raw(&w, SGI_RELATED_TASK, related);
    sgi_jw_close(&w, '}');
    sgi_jw_close(&w, '}');
    ok = !fields.failed &&
         sgi_op_append(op, SGI_ENTRY_FIELDS, sgi_buf_str(&fields)) == SEGUE_OK;
    sgi_buf_free(&fields);
    return ok;
}

/* True when the call is stored before its handler runs although no request can name it:
 * the tool has SEGUE_TOOL_STORED. */
static bool is_stored_without_key(const sgi_inbound *in, const sgi_call_request *request)
{
    return request->tool->options.flags & SEGUE_TOOL_STORED && !request->has_key &&
           !request->lasting && !(in->peer->server->forgets && in->peer->conn->sole);
}

/* True when the call asks for a task and can begin as a plain call. The result can then
 * be the answer. While servers of an older version use the store, a stored call becomes
 * its task at once, because they cannot read a later change. */
static bool begins_plain(const sgi_op *op, const sgi_inbound *in,
                         const sgi_call_request *request)
{
    if (request->verdict != SGI_VERDICT_TASK || request->has_key ||
        (is_stored_without_key(in, request) &&
         sgi_committer_records(op->committer) < SGI_RECORDS_WITH_TASK_ENTRY))
        return false;
    if (op->served->dialect && op->served->dialect->begins_plain)
        return op->served->dialect->begins_plain(op);
    return op->served->item->options.promote_after_ms > 0 &&
           op->served->item->options.task == SEGUE_TASK_MAY;
}

/* Gives the operation the idempotency key of the request. A call that is stored without a
 * key, and is not a task from its start, gets a random key, which no request can name.
 * Returns false when out of memory or without random bytes. */
static bool give_key(sgi_op *op, const sgi_inbound *in, const sgi_call_request *request)
{
    if (request->has_key)
        return sgi_op_set_idempotency_key(op, request->key, request->digest);
    if (!is_stored_without_key(in, request) ||
        (request->verdict == SGI_VERDICT_TASK && op->head.tasking != SGI_TASKING_MAY))
        return true;
    return sgi_op_set_random_key(op);
}

static sgi_op *make_op(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_op *op = sgi_served_op_new(in->peer->server, request->name, in->params);
    if (!op)
        return NULL;
    op->served->kind = request->kind;
    sgi_served_set_item(op, request->tool);
    set_arguments(op, in);
    sgi_budget_set_owner(op, in->peer->who);
    sgi_principal_ref(op->served->who);
    sgi_op_set_grant_of(op, in->peer);
    sgi_op_set_origin_of(op, in->peer);
    op->served->client = sgi_peer_client_number(in->peer);
    op->served->caps = request->caps;
    op->served->dialect = request->dialect;
    op->served->asked_ttl_ms = request->ttl_ms;
    op->served->listed_modes = request->listed_modes;
    op->served->modes = request->modes;
    op->served->streams = request->kind->list && sgi_srv_streams_segments(request);
    op->served->refuses_arguments = sgi_facts(in->version)->refuses_arguments;
    op->served->only_objects = !sgi_facts(in->version)->has_any_output;
    if (begins_plain(op, in, request))
        op->head.tasking = SGI_TASKING_MAY;
    bool is_marked = !op->served->dialect || sgi_op_set_session_of(op, in->peer);
    if (!is_marked || !give_key(op, in, request)) {
        sgi_op_unref(op);
        return NULL;
    }
    return op;
}

/* True when a call that asks for a task stays a plain call for promote_after_ms. A call
 * that can stream becomes a task at once (SEP-1905, "Server Response Decision
 * Process"). */
static bool takes_its_time(const sgi_op *op)
{
    return op->head.tasking == SGI_TASKING_MAY &&
           op->served->item->options.promote_after_ms > 0 && !op->served->streams;
}

/* Makes the operation a task or a stored call if needed, and starts its handler. A call
 * with an idempotency key, or a lasting call (its client can leave and come back), starts
 * later, when its creation is durable: another process may have used the key first, and
 * the client of a lasting call must first learn how to come back. */
static segue_status launch(sgi_op *op, sgi_verdict verdict)
{
    int64_t promote_ms = op->served->item->options.promote_after_ms;
    bool later = takes_its_time(op);
    segue_status status = open_result(op, verdict) ? SEGUE_OK : SEGUE_E_NOMEM;
    if (status != SEGUE_OK)
        return status;
    if (verdict == SGI_VERDICT_TASK && op->head.tasking != SGI_TASKING_MAY)
        status = sgi_op_turn_into_task(op, op->served->asked_ttl_ms);
    else if (op->key || op->served->lasting)
        status = sgi_op_store_without_task(op);
    if (status == SEGUE_OK && !op->key && !sgi_op_is_lasting_call(op))
        status = sgi_call_start(op, false);
    if (status == SEGUE_OK && later)
        sgi_engine_set_timer(op->engine, &op->served->promote, promote_ms, promote);
    return status;
}

static void begin_waiting(sgi_reply *reply, sgi_op *op, const sgi_call_request *request)
{
    if (sgi_op_is_lasting_call(op)) {
        if (op->key)
            /* The pieces are offered now, because later the reply may wait for another
             * operation. */
            sgi_pieces_new_if_negotiated(reply, request);
        sgi_tool_call_wait_stored(reply, op);
    } else {
        sgi_pieces_new_if_negotiated(reply, request);
        sgi_pieces_begin(reply, op, false);
        sgi_reply_wait_for_op(reply, op);
    }
}

static bool make_handles(sgi_op *op, const sgi_reply *reply,
                         const sgi_call_request *request)
{
    return sgi_lasting_call_make(op, reply, request) &&
           launch(op, request->verdict) == SEGUE_OK;
}

void sgi_tool_call_start(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_reply *reply = sgi_reply_open_call(in);
    if (!reply)
        return;
    sgi_op *op = make_op(in, request);
    if (!op || !sgi_carried_answers_read(op, in) || !make_handles(op, reply, request)) {
        sgi_tool_call_fail_no_memory(reply, op);
    } else {
        if (op->head.tasking == SGI_TASKING_MAY && !takes_its_time(op))
            reply->turned = turned_without_end;
        begin_waiting(reply, op, request);
    }
    if (op)
        sgi_op_unref(op);
}

void sgi_tools_call(const sgi_inbound *in)
{
    sgi_call_request request;
    if (!sgi_call_request_read(in, &request))
        return;
    if (in->state.n)
        sgi_call_request_read_pieces(in, &request);
    if (sgi_rejoin_round(in, &request) || !sgi_call_request_negotiate(in, &request))
        return;
    sgi_op *known = sgi_rejoin_find_op(in, &request);
    if (!known) {
        sgi_tool_call_start(in, &request);
        return;
    }
    sgi_reply *reply = sgi_reply_open(in, false);
    if (reply)
        sgi_rejoin_answer(reply, known, &request);
}
