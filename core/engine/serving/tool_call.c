/* tools/call, and questions like it: a call is decided on (call_request.h), becomes an
 * operation, and its request waits: for the creation when it is a task, else for the
 * end. */
#include "engine/serving/tool_call.h"

#include "engine/dialect/pieces.h"
#include "engine/dialect/response_modes.h"
#include "engine/error.h"
#include "engine/log/reader.h"
#include "engine/serving/call.h"
#include "engine/serving/recall.h"
#include "engine/serving/resumable.h"
#include "engine/serving/grant.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"
#include "engine/refusal.h"

#include <stdio.h>

/* ---- answering a call ---- */

static void write_unless_set(sgi_jw *w, const sgi_fold *fold, const char *name,
                             sgi_json value)
{
    if (!sgi_fields_has(&fold->fields, name))
        sgi_jw_member_raw(w, name, value);
}

/* How long it stays fresh, where its handler did not say. What came of answers must not
 * be kept, as these are no part of what it would be found by (2026-07-28
 * server/utilities/caching, "Cache Key"). */
static void write_freshness(sgi_jw *w, const sgi_op *op, const sgi_fold *fold)
{
    const segue_item_options *options = op->item ? &op->item->options : NULL;
    bool ages = options && !op->input_count;
    char ttl[24];
    snprintf(ttl, sizeof ttl, "%lld", ages ? (long long)options->read_ttl_ms : 0LL);
    write_unless_set(w, fold, "ttlMs", sgi_str_of(ttl));
    write_unless_set(w, fold, "cacheScope",
                     sgi_scope_json(ages ? options->read_scope : SEGUE_CACHE_PRIVATE));
}

/* What has to be in a result, and is not. */
static void write_defaults(sgi_jw *w, const sgi_op *op, const sgi_fold *fold, bool modern)
{
    const sgi_call_default *standard = &op->kind->standard;
    if (standard->name)
        write_unless_set(w, fold, standard->name, sgi_str_of(standard->json));
    if (op->kind->ages && modern)
        write_freshness(w, op, fold);
}

/* A result that is whole has the number of its first block only if it is told how many
 * were replaced, and of its other blocks only if no text of it went on: that is said to a
 * client that may have seen some of them, as pieces. */
static void write_meta(sgi_buf *out, const sgi_reply *reply, const sgi_op *op,
                       const sgi_fold *fold)
{
    if (reply->modern)
        sgi_buf_add_str(out, sgi_buf_str(&op->server->info));
    if (reply->tells_void)
        sgi_task_add_shown(out, fold);
}

static void answer_final(sgi_reply *reply, sgi_op *op, const sgi_fold *fold)
{
    sgi_sending sending;
    sgi_buf meta;
    bool is_error = op->final == SGI_FINAL_RESULT_IS_ERROR;
    if (op->final == SGI_FINAL_ERROR || op->final == SGI_FINAL_EXPIRED) {
        sgi_json error = {op->final_data, op->final_len};
        if (reply->peer)
            sgi_send_error_object(reply->peer->conn, sgi_str_of(reply->id), error);
        return;
    }
    if (!fold) {
        sgi_reply_refuse(reply, SGI_UNREADABLE, SEGUE_E_STORE);
        return;
    }
    if (op->final == SGI_FINAL_CANCELLED) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                        SGI_STR("The operation was cancelled"), (sgi_json){0});
        return;
    }
    if (!sgi_reply_result(&sending, reply, "complete"))
        return;
    sgi_buf_init(&meta, sgi_engine_mem(reply->engine));
    write_meta(&meta, reply, op, fold);
    write_defaults(&sending.w, op, fold, reply->modern);
    sgi_fold_write(fold, &sending.w, is_error, sgi_buf_str(&meta));
    sending.w.buf->failed |= meta.failed;
    sgi_send_end(&sending);
    sgi_buf_free(&meta);
}

static void folded(void *user, sgi_op *op, const sgi_fold *fold)
{
    sgi_reply *reply = user;
    op->heard |= reply->peer != NULL;
    sgi_resumable_mark(reply, op->final_seq);
    answer_final(reply, op, fold);
    sgi_reply_close(reply);
}

void sgi_call_answer(sgi_reply *reply, sgi_op *op)
{
    sgi_op_fold(op, folded, reply);
}

void sgi_call_unhook(sgi_reply *reply, sgi_op *op)
{
    reply->cancelled = NULL;
    if (op->reply == reply)
        op->reply = NULL;
}

/* The operation could not be created. */
static void creation_failed(sgi_reply *reply, sgi_op *op, segue_status status)
{
    if (status == SEGUE_E_EXISTS && op->key && reply->peer) {
        sgi_rejoin_by_key(reply, op);
        return;
    }
    sgi_reply_refuse(reply, SGI_UNSTORED, status);
    sgi_reply_close(reply);
}

static void call_ended(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_call_unhook(reply, op);
    if (status != SEGUE_OK)
        creation_failed(reply, op, status);
    else if (reply->pieces)
        sgi_pieces_end(reply);
    else if (reply->peer)
        sgi_call_answer(reply, op);
    else
        sgi_reply_close(reply);
}

/* Its client is told before anything else (R-975-2). */
static void begin_resumable(sgi_reply *reply, sgi_op *op)
{
    if (op->resumable && !op->resumable->peer && op->resumable->secret[0] &&
        sgi_resumable_attach(op->resumable, reply))
        sgi_resumable_tell(op->resumable, reply);
}

/* One that can be resumed is in the store: its messages may go out. */
static void resumable_created(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status != SEGUE_OK) {
        creation_failed(reply, op, status);
    } else if (reply->peer) {
        sgi_op_ref(op);
        begin_resumable(reply, op);
        sgi_pieces_resume(reply, op, NULL);
        sgi_call_attach(reply, op);
        sgi_op_unref(op);
    } else {
        if (!op->key)
            sgi_task_cancel(op); /* nobody ever learnt of it */
        sgi_reply_close(reply);
    }
}

static void task_created(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_call_unhook(reply, op);
    if (status != SEGUE_OK) {
        creation_failed(reply, op, status);
        return;
    }
    if (reply->peer) {
        begin_resumable(reply, op);
        op->dialect->created(reply, op);
        return;
    }
    if (!op->key)
        sgi_task_cancel(op); /* nobody ever learnt of it (R-2557-38) */
    sgi_reply_close(reply);
}

/* The client withdrew the call, or left, before it was answered. */
static void call_withdrawn(sgi_reply *reply)
{
    sgi_op *op = reply->user;
    sgi_op_ref(op); /* its pieces may have been what held it */
    op->reply = NULL;
    sgi_pieces_drop(reply);
    /* else it can be asked for again (R-2557-11), or resumed */
    if (!reply->lost || !(op->key || op->resumable))
        sgi_task_cancel(op);
    sgi_op_unref(op);
}

void sgi_tool_call_wait(sgi_reply *reply, sgi_op *op, uint32_t caps)
{
    bool as_task = op->is_task && caps & SGI_CAP_TASKS;
    if (as_task)
        sgi_pieces_drop(reply); /* they end with the task (R-776-20) */
    reply->waiter.fire = as_task ? task_created : call_ended;
    sgi_op_wait(op, &reply->waiter, as_task ? 0 : SGI_WAIT_FINAL);
}

void sgi_call_attach(sgi_reply *reply, sgi_op *op)
{
    if (!op->reply) {
        reply->user = op;
        reply->cancelled = call_withdrawn;
        op->reply = reply;
    }
    sgi_tool_call_wait(reply, op, op->caps);
}

sgi_op *sgi_call_of(const sgi_reply *reply)
{
    return reply->cancelled == call_withdrawn ? reply->user : NULL;
}

static sgi_reply *first_waiting(const sgi_op *op)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link) {
        sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == call_ended && reply->peer)
            return reply;
    }
    return NULL;
}

void sgi_call_cut(sgi_op *op)
{
    sgi_reply *reply;
    while ((reply = first_waiting(op))) {
        sgi_conn_close(reply->peer->conn);
        reply->lost = true;
        sgi_reply_cancel(reply);
    }
}

const sgi_reply *sgi_call_listening(const sgi_op *op, const sgi_reply *before)
{
    const sgi_waiter *waiter =
        before ? TAILQ_NEXT(&before->waiter, link) : TAILQ_FIRST(&op->waiters);
    for (; waiter; waiter = TAILQ_NEXT(waiter, link)) {
        const sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == call_ended && !reply->takes_rounds && reply->peer)
            return reply;
    }
    return NULL;
}

/* The handshake eras know no rounds: they are asked by requests. */
sgi_reply *sgi_call_waiting(const sgi_op *op)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link) {
        sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == call_ended && reply->takes_rounds)
            return reply;
    }
    return NULL;
}

void sgi_call_became_task(segue_call *call)
{
    sgi_reply *reply = call->op->reply;
    if (!reply)
        return;
    sgi_op_wait_end(&reply->waiter);
    sgi_tool_call_wait(reply, call->op, call->op->caps);
}

/* ---- making a call ---- */

static void promote(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_op, promote);
    if (op->call && sgi_call_defer(op->call, op->asked_ttl_ms) ==
                        SEGUE_E_STATE) /* its client is asked */
        sgi_engine_timer(op->engine, &op->promote, op->item->options.promote_after_ms,
                         promote);
}

/* Immediate mode: what the handler did not finish in its first turn is a task. */
static void turned_without_end(sgi_reply *reply, sgi_op *op)
{
    (void)reply;
    if (op->call && !sgi_op_has_ended(op))
        sgi_call_defer(op->call, op->asked_ttl_ms);
}

/* Will its segments be shown as they are made, if it does not end at once? */
static bool will_stream(const sgi_call_request *request)
{
    bool incremental = request->tool->options.flags & SEGUE_TOOL_INCREMENTAL;
    return request->kind->list &&
           sgi_response_decide(request->modes, false, incremental) >= SGI_FORM_STREAM;
}

/* The handler of a question sees its params as they are. */
static void set_arguments(sgi_op *op, const sgi_inbound *in)
{
    if (sgi_call_is_question(op->kind))
        op->arguments = (sgi_json){op->params, op->params_len};
    else if (in->arguments.n)
        op->arguments =
            (sgi_json){op->params + (in->arguments.p - in->params.p), in->arguments.n};
}

/* What its result has from the beginning; out of memory: false. An answer about a task of
 * the one who asks names it (2025-11-25 basic/utilities/tasks, "Associating Task-Related
 * Messages"), but where it is a task itself. */
static bool open_result(sgi_op *op, sgi_verdict verdict)
{
    sgi_buf fields;
    if (!sgi_call_is_question(op->kind))
        return true;
    sgi_json meta = sgi_json_get((sgi_json){op->params, op->params_len}, "_meta");
    sgi_json related = sgi_json_get(meta, SGI_RELATED_TASK);
    bool ok =
        sgi_op_append(op, SGI_ENTRY_FIELDS, sgi_str_of(op->kind->opening)) == SEGUE_OK;
    if (!ok || verdict != SGI_VERDICT_PLAIN || !related.n)
        return ok;
    sgi_buf_init(&fields, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_on(&fields);
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

static sgi_op *make_op(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_op *op = sgi_op_new(in->peer->server, request->name, in->params);
    if (!op)
        return NULL;
    op->kind = request->kind;
    op->item = request->tool;
    set_arguments(op, in);
    sgi_item_ref(op->item);
    sgi_budget_own(op, in->peer->who);
    sgi_principal_ref(op->who);
    sgi_op_take_grant(op, in->peer);
    op->caps = request->caps;
    op->dialect = request->dialect;
    op->asked_ttl_ms = request->ttl_ms;
    op->listed_modes = request->listed_modes;
    op->modes = request->modes;
    op->streams = will_stream(request);
    op->refuses_arguments = in->version < SGI_VERSION_2025_11_25;
    op->only_objects = !sgi_version_is_modern(in->version);
    if (request->has_key && !sgi_op_set_key(op, request->key, request->digest)) {
        sgi_op_unref(op);
        return NULL;
    }
    return op;
}

/* May a call that is to be a task begin as a plain one, whose result may be the answer?
 * Where the client asks for a task, only if it would take the result at once too. */
static bool begins_plain(const sgi_op *op)
{
    if (op->key)
        return false;
    if (op->dialect == &sgi_dialect_tasks_2025)
        return op->modes & SGI_MODE_IMMEDIATE &&
               !(op->server->dialects & SGI_DIALECT_TRACKING);
    return op->item->options.promote_after_ms > 0 &&
           op->item->options.task == SEGUE_TASK_MAY;
}

/* Does such a call stay plain for promote_after_ms? What can stream does so at once
 * (SEP-1905, "Server Response Decision Process"). */
static bool takes_its_time(const sgi_op *op)
{
    return begins_plain(op) && op->item->options.promote_after_ms > 0 && !op->streams;
}

/* Gives the operation its handles and its handler. A keyed one runs only once it is
 * durable: until then another process may have created it. So does one that can be
 * resumed, that its client is told first. */
static segue_status launch(sgi_op *op, sgi_verdict verdict)
{
    int64_t promote_ms = op->item->options.promote_after_ms;
    bool later = takes_its_time(op);
    segue_status status = open_result(op, verdict) ? SEGUE_OK : SEGUE_E_NOMEM;
    if (status != SEGUE_OK)
        return status;
    if (verdict == SGI_VERDICT_TASK && !begins_plain(op))
        status = sgi_task_make(op, op->asked_ttl_ms);
    else if (op->key || op->resumable)
        status = sgi_task_make_keyed(op);
    if (status == SEGUE_OK && !op->key && !(op->resumable && !op->is_task))
        status = sgi_call_start(op, false);
    if (status == SEGUE_OK && verdict == SGI_VERDICT_TASK && later)
        sgi_engine_timer(op->engine, &op->promote, promote_ms, promote);
    return status;
}

void sgi_tool_call_give_up(sgi_reply *reply, sgi_op *op)
{
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                    (sgi_json){0});
    sgi_reply_close(reply);
    if (op)
        sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}"));
}

static void begin_waiting(sgi_reply *reply, sgi_op *op, const sgi_call_request *request)
{
    if (op->resumable && !op->is_task) {
        if (op->key)
            sgi_pieces_want(reply, request); /* it may join another one */
        reply->waiter.fire = resumable_created;
        sgi_op_wait(op, &reply->waiter, 0);
    } else {
        sgi_pieces_want(reply, request);
        sgi_pieces_of(reply, op, false);
        sgi_call_attach(reply, op);
    }
}

static bool make_handles(sgi_op *op, const sgi_reply *reply,
                         const sgi_call_request *request)
{
    return (!request->resumable || sgi_resumable_make(op, reply, request)) &&
           launch(op, request->verdict) == SEGUE_OK;
}

void sgi_tool_call_start(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_reply *reply = sgi_reply_open_call(in);
    if (!reply)
        return;
    sgi_op *op = make_op(in, request);
    if (!op || !sgi_recall_take(op, in) || !make_handles(op, reply, request)) {
        sgi_tool_call_give_up(reply, op);
    } else {
        if (request->verdict == SGI_VERDICT_TASK && begins_plain(op) &&
            !takes_its_time(op))
            reply->turned = turned_without_end;
        op->may_turn = request->verdict == SGI_VERDICT_TASK && !op->is_task;
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
        sgi_call_request_pieces(in, &request);
    if (sgi_rejoin_retry(in, &request) || !sgi_call_request_decide(in, &request))
        return;
    sgi_op *known = sgi_rejoin_find(in, &request);
    if (!known) {
        sgi_tool_call_start(in, &request);
        return;
    }
    sgi_reply *reply = sgi_reply_open(in, false);
    if (reply)
        sgi_rejoin_known(reply, known, &request);
}
