/* Tasks of 2025-11-25 (L) on the server. A client asks for a task by params.task, gets
 * the state by tasks/get, and gets the result by tasks/result, which waits for the end of
 * the task. The members have the names of this revision: ttl and pollInterval, in
 * milliseconds. The member resultType is never written. */
#include "engine/dialect/rows.h"
#include "engine/dialect/tasks_2025/tasks_2025.h"

#include "engine/response_modes.h"
#include "engine/cluster/forwarding.h"
#include "engine/server/call.h"
#include "engine/server/task.h"
#include "engine/server/tool_call.h"
#include "engine/log/refusal.h"

#define FALLBACK_MODE "io.modelcontextprotocol/fallback-mode"

static const sgi_task_member_names names = {.ttl = "ttl", .poll = "pollInterval"};

/* ---- writing a task ---- */

/* Returns the status word of a task for a peer; NULL = for any peer. A result with
 * isError counts as failed (R-1905-49), unless that result was the plain answer of the
 * call (R-1905-13). A peer with a stream gets the end of the task only after the last
 * response on that stream (R-1905-36). */
static const char *status_of(const sgi_op *op, const sgi_peer *peer)
{
    sgi_state state = sgi_op_state(op);
    if (state == SGI_STATE_COMPLETED && op->head.final == SGI_FINAL_RESULT_IS_ERROR &&
        !op->head.immediate)
        state = SGI_STATE_FAILED;
    if (state >= SGI_STATE_COMPLETED && peer && sgi_segments_push_is_unfinished(op, peer))
        state = SGI_STATE_WORKING;
    return sgi_task_state_name(state);
}

void sgi_tasks_2025_write_task(sgi_jw *w, const sgi_op *op, const sgi_peer *peer)
{
    sgi_task_write(w, op, status_of(op, peer), &names);
}

void sgi_tasks_2025_write_created(sgi_jw *w, const sgi_op *op)
{
    sgi_jw_key(w, "task");
    sgi_jw_open(w, '{');
    sgi_task_write(w, op, sgi_task_state_name(SGI_STATE_WORKING), &names);
    sgi_jw_close(w, '}');
}

static void answer_task(sgi_reply *reply, const sgi_op *op)
{
    sgi_sending sending;
    if (!sgi_reply_begin_result(&sending, reply, "complete"))
        return;
    sgi_tasks_2025_write_task(&sending.w, op, reply->peer);
    if (sgi_facts(reply->version)->has_result_types)
        sgi_write_server_info_meta(&sending, sgi_op_server(op));
    sgi_send_end(&sending);
}

/* ---- making a task ---- */

static void answer_created(sgi_reply *reply, sgi_op *op)
{
    sgi_sending sending;
    if (!sgi_reply_begin_result(&sending, reply, NULL))
        return;
    sgi_tasks_2025_write_created(&sending.w, op);
    if (sgi_response_is_fallback(SGI_FORM_TASK, op->served->listed_modes)) {
        sgi_jw_key(&sending.w, "_meta");
        sgi_jw_open(&sending.w, '{');
        sgi_jw_member_string(&sending.w, FALLBACK_MODE, SGI_STR("task"));
        sgi_jw_close(&sending.w, '}');
    }
    sgi_send_end(&sending);
    sgi_tasks_2025_start_notifying(op);
}

static void answer_running(sgi_reply *reply, sgi_op *op)
{
    if (op->served->streams) {
        sgi_segments_push_begin(reply, op);
        return;
    }
    answer_created(reply, op);
    sgi_reply_close(reply);
}

/* True when a call must be a task from the start, although its plain result may become
 * its answer. If the client repeats the call with its key, the server must find the
 * task. */
static bool tracks(const sgi_op *op)
{
    return sgi_op_is_task(op) && op->served->modes & SGI_MODE_IMMEDIATE &&
           (op->key || sgi_op_server(op)->dialects & SGI_DIALECT_TRACKING);
}

/* Answers a call that is a task from the start, after the first turn of its handler
 * (on_call has returned). The answer is the result if it is ready, otherwise the task.
 * When another server has taken the task over, what the first turn sent is lost, but the
 * task goes on. When the store has refused what the first turn sent, the task exists and
 * has failed. */
static void tracked(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    bool exists = status == SEGUE_OK || status == SEGUE_E_FENCED || sgi_op_is_broken(op);
    if (!exists || !reply->peer) {
        sgi_reply_store_error(reply, SGI_UNSTORED, status);
        sgi_reply_close(reply);
    } else if (op->head.immediate) {
        sgi_tasks_2025_answer_result(reply, op);
    } else {
        answer_running(reply, op);
    }
}

static void turned(sgi_reply *reply, sgi_op *op)
{
    sgi_reply_separate_from_op(reply, op);
    reply->waiter.fire = tracked;
    sgi_op_wait_until_visible(op, &reply->waiter, op->head.next_log - 1);
}

static void left(sgi_reply *reply)
{
    sgi_op *op = reply->user;
    sgi_reply_separate_from_op(reply, op);
    sgi_reply_close(reply);
}

static void created(sgi_reply *reply, sgi_op *op)
{
    sgi_tasks_2025_set_creator(op, reply);
    /* Without a creator, the task could not ask questions or send notifications. So the
     * call is given up. */
    if (!op->served->creator) {
        sgi_tool_call_fail_no_memory(reply, op->key ? NULL : op);
        return;
    }
    bool is_tracked = tracks(op);
    if (is_tracked && op->head.immediate) {
        turned(reply, op);
    } else if (is_tracked && op->served->call && !op->served->call->turned &&
               !op->served->reply) {
        op->served->reply = reply;
        reply->user = op;
        reply->cancelled = left;
        reply->turned = turned;
    } else {
        answer_running(reply, op);
    }
}

/* ---- tasks/get, tasks/cancel ---- */

/* The client has asked for the task by its id, so it can do without the streams that it
 * left: they are marked as spare and may be dropped. */
static void mark_spare(const sgi_reply *reply, const sgi_op *op)
{
    if (reply->peer)
        sgi_segments_push_mark_spare(op, reply->peer->session);
}

static void get_found(void *user, sgi_op *op, segue_status status)
{
    sgi_reply *reply = user;
    op = sgi_task_check_found(reply, op, status, &sgi_srv_tasks_2025);
    if (op) {
        mark_spare(reply, op);
        answer_task(reply, op);
        /* the task's questions are asked only by the server that runs the task */
        if (!sgi_op_runs_elsewhere(op))
            sgi_tasks_2025_on_request(op, reply);
    }
    sgi_reply_close(reply);
}

static void tasks_get(const sgi_inbound *in)
{
    sgi_str id;
    sgi_reply *reply;
    if (sgi_task_read_id(in, &id) && (reply = sgi_reply_open(in, false)))
        sgi_server_find_task(in->peer->server, in->peer->who, id, get_found, reply);
}

static void too_late(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status != SEGUE_OK)
        sgi_reply_refuse_change(reply, op, status);
    else
        sgi_task_refuse_cancel(reply, status_of(op, NULL));
    sgi_reply_close(reply);
}

static void cancelled(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status != SEGUE_OK)
        sgi_reply_refuse_change(reply, op, status);
    else if (sgi_op_state(op) != SGI_STATE_CANCELLED)
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                        SGI_STR("The server cannot cancel the task now: try again later"),
                        (sgi_json){0});
    else
        answer_task(reply, op);
    sgi_reply_close(reply);
}

static void cancel_found(void *user, sgi_op *op, segue_status status)
{
    sgi_reply *reply = user;
    op = sgi_task_check_found(reply, op, status, &sgi_srv_tasks_2025);
    if (!op) {
        sgi_reply_close(reply);
        return;
    }
    reply->waiter.fire = sgi_op_has_ended(op) ? too_late : cancelled;
    reply->cancelled = sgi_reply_close;
    sgi_op_ref(op);
    status = sgi_op_has_unstored_end(op) ? SEGUE_E_STORE
             : sgi_op_has_ended(op)      ? SEGUE_OK
                                         : sgi_task_cancel(op);
    if (status == SEGUE_OK) {
        sgi_op_wait_for_requested_changes(op, &reply->waiter);
    } else {
        sgi_reply_refuse_change(reply, op, status);
        sgi_reply_close(reply);
    }
    sgi_op_unref(op);
}

static void tasks_cancel(const sgi_inbound *in)
{
    sgi_str id;
    sgi_reply *reply;
    if (sgi_task_read_id(in, &id) && (reply = sgi_reply_open(in, false)))
        sgi_server_find_task(in->peer->server, in->peer->who, id, cancel_found, reply);
}

/* ---- tasks/result ---- */

/* Answers tasks/result of a cancelled task. The answer has the segments that were made
 * and says that the call was cancelled (R-1905-48). */
static void write_cancelled(sgi_sending *sending, const sgi_fold *fold, sgi_str meta)
{
    sgi_jw *w = &sending->w;
    sgi_jw_key(w, "content");
    sgi_jw_open(w, '[');
    sgi_fold_write_blocks(fold, w->buf);
    if (fold->count)
        sgi_buf_add_char(w->buf, ',');
    sgi_buf_add_lit(w->buf, "{\"type\":\"text\",\"text\":\"Task was cancelled\"}");
    sgi_jw_close(w, ']');
    sgi_fold_write_fields(fold, w, meta);
    sgi_jw_key(w, "isError");
    sgi_jw_bool(w, true);
}

/* Adds the number of void segments to _meta. The client may have received segments that
 * were replaced later. */
static void add_shown(sgi_buf *meta, const sgi_reply *reply, const sgi_op *op,
                      const sgi_fold *fold)
{
    if (op->served->streams && reply->peer &&
        reply->peer->handshake->caps & SGI_CAP_REPLACE)
        sgi_task_write_void_segments(meta, fold);
}

static void send_result(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    sgi_reply *reply = user;
    sgi_sending sending;
    sgi_buf related;
    sgi_buf_init(&related, sgi_engine_mem(op->engine));
    bool is_error =
        op->head.final == SGI_FINAL_ERROR || op->head.final == SGI_FINAL_EXPIRED;
    if (fold || is_error)
        sgi_reply_note_end_sent(reply, op);
    if (is_error) {
        if (reply->peer)
            sgi_send_error_object(reply->peer->conn, sgi_str_of(reply->id),
                                  (sgi_json){op->head.final_data, op->head.final_len});
    } else if (op->head.final == SGI_FINAL_CANCELLED &&
               op->served->kind != &sgi_call_tool) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Task was cancelled"),
                        (sgi_json){0});
    } else if (!fold) {
        sgi_task_answer_unreadable(reply, status);
    } else if (sgi_reply_begin_result(&sending, reply, NULL)) {
        sgi_task_related_meta(&related, op);
        add_shown(&related, reply, op, fold);
        sgi_str meta = sgi_buf_str(&related);
        if (op->head.final == SGI_FINAL_CANCELLED)
            write_cancelled(&sending, fold, meta);
        else
            sgi_fold_write(fold, &sending.w, op->head.final == SGI_FINAL_RESULT_IS_ERROR,
                           meta);
        sending.w.buf->failed |= related.failed;
        sgi_send_end(&sending);
    }
    sgi_buf_free(&related);
    sgi_reply_close(reply);
}

void sgi_tasks_2025_answer_result(sgi_reply *reply, sgi_op *op)
{
    reply->cancelled = NULL;
    sgi_op_fold(op, send_result, reply);
}

static void result_there(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status == SEGUE_OK) {
        sgi_tasks_2025_answer_result(reply, op);
        return;
    }
    if (sgi_op_server(op)->stage >= SGI_SERVER_CLOSED)
        /* the closed server has released the task, which continues at another server */
        sgi_reply_ending(reply);
    else
        /* the task was removed while this tasks/result waited for its end */
        sgi_answer_not_found(reply, SGI_TASK_NOT_FOUND);
    sgi_reply_close(reply);
}

static void wait_for_result(sgi_reply *reply, sgi_op *op)
{
    reply->waiter.fire = result_there;
    /* a cancelled tasks/result ends only its own wait, not the task (R-1905-35) */
    reply->cancelled = sgi_reply_close;
    sgi_op_ref(op);
    sgi_op_wait_until_visible(op, &reply->waiter, SGI_WAIT_FINAL);
    /* the task's questions can now be sent on the stream of this request */
    sgi_question_requests_send_soon(op);
    sgi_op_unref(op);
}

static const sgi_reply *waiting(const sgi_op *op, const sgi_reply *before)
{
    const sgi_waiter *waiter =
        before ? TAILQ_NEXT(&before->waiter, link) : TAILQ_FIRST(&op->waiters);
    for (; waiter; waiter = TAILQ_NEXT(waiter, link)) {
        const sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == result_there && reply->peer)
            return reply;
    }
    return NULL;
}

/* What a tasks/result asks for. */
typedef enum wanted_part {
    WANTED_WHOLE = 0,
    WANTED_AFTER,     /* the segments after a number (lastSeqNr) */
    WANTED_FROM_START /* the segments from segment 1 on (dev.segue/fromSeqNr) */
} wanted_part;

typedef struct fetching {
    sgi_reply *reply;
    wanted_part part;
    uint64_t after;
} fetching;

/* True when this tasks/result is answered with segments and does not wait. Only a task
 * with segments has numbers to read by. A client gets the segments from segment 1 on
 * when the task has ended, because its result may be an error without segments; before
 * the end only with SEGUE_WAY_FROM_START. */
static bool is_pull(const fetching *fetch, const sgi_op *op)
{
    bool from_start = fetch->part == WANTED_FROM_START &&
                      (sgi_op_server(op)->dialects & SGI_DIALECT_FROM_START ||
                       sgi_segments_are_complete(op));
    return op->served->streams && (fetch->part == WANTED_AFTER || from_start);
}

static void result_found(void *user, sgi_op *op, segue_status status)
{
    fetching *fetch = user;
    fetching f = *fetch;
    sgi_free(sgi_engine_mem(f.reply->engine), fetch, sizeof *fetch);
    op = sgi_task_check_found(f.reply, op, status, &sgi_srv_tasks_2025);
    if (op) {
        mark_spare(f.reply, op);
        sgi_tasks_2025_on_request(op, f.reply);
    }
    if (!op)
        sgi_reply_close(f.reply);
    else if (is_pull(&f, op))
        sgi_segments_answer_pull(f.reply, op, f.after);
    else
        wait_for_result(f.reply, op);
}

/* Reads lastSeqNr, or dev.segue/fromSeqNr. The latter is a member of this library by
 * which a client asks for all segments from segment 1 (R-1905-32). Returns false, and
 * answers with an error, when lastSeqNr is invalid. */
static bool read_cursor(const sgi_inbound *in, fetching *fetch)
{
    sgi_json last = sgi_json_get(in->params, "lastSeqNr");
    int64_t number = 0;
    bool from_start =
        sgi_json_read_int(sgi_json_get(in->meta, "dev.segue/fromSeqNr"), &number) &&
        number == 1;
    number = 0;
    fetch->part = last.n ? WANTED_AFTER : from_start ? WANTED_FROM_START : WANTED_WHOLE;
    if (!last.n)
        return true;
    if (!sgi_json_read_int(last, &number) || number < 1 || number >= INT64_C(1) << 53) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.lastSeqNr is not a positive integer", NULL);
        return false;
    }
    fetch->after = (uint64_t)number;
    return true;
}

static void tasks_result(const sgi_inbound *in)
{
    sgi_str id;
    fetching wanted = {.reply = NULL};
    if (!sgi_task_read_id(in, &id) || !read_cursor(in, &wanted))
        return;
    wanted.reply = sgi_reply_open(in, false);
    if (!wanted.reply)
        return;
    fetching *fetch = sgi_alloc(sgi_engine_mem(wanted.reply->engine), sizeof *fetch);
    if (!fetch) {
        sgi_reply_error(wanted.reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        sgi_reply_close(wanted.reply);
        return;
    }
    *fetch = wanted;
    sgi_server_find_task(in->peer->server, in->peer->who, id, result_found, fetch);
}

static const sgi_method methods[] = {
    {"tasks/get", 0, tasks_get},
    {"tasks/result", 0, tasks_result},
    {"tasks/cancel", 0, tasks_cancel},
    {"tasks/list", 0, sgi_tasks_2025_list},
    {NULL, 0, NULL},
};

const sgi_srv_dialect sgi_srv_tasks_2025 = {
    .name = "L",
    .bit = SGI_DIALECT_L,
    .read_capabilities = sgi_tasks_2025_read_capabilities,
    .write_capabilities = sgi_tasks_2025_write_capabilities,
    .experiment = sgi_tasks_2025_experiment_name,
    .methods = methods,
    .serves = sgi_tasks_2025_serves,
    .serves_older = sgi_tasks_2025_serves_old_method,
    .task_support = sgi_tasks_2025_task_support,
    .read_call = sgi_tasks_2025_read_call,
    .says = sgi_tasks_2025_read_declared,
    .created = created,
    .never_plain = true,
    .answers_at_once = sgi_tasks_2025_answers_at_once,
    .streams = sgi_tasks_2025_streams_segments,
    .waits_for_turn = sgi_tasks_2025_answers_after_turn,
    .begins_plain = sgi_tasks_2025_may_begin_plain,
    .tracks = tracks,
    .cancel = SGI_CANCEL_OUTCOME,
    .waiting = waiting,
    .reading = sgi_segments_push_next_reply,
    .returned = sgi_segments_push_resume,
};
