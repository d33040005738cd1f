/* The client asks for the task (params.task), fetches its state by tasks/get and its
 * result by tasks/result, which waits for it. Field names are L's own: ttl and
 * pollInterval, in milliseconds; never resultType. */
#include "engine/dialect/tasks_2025.h"

#include "engine/dialect/response_modes.h"
#include "engine/serving/call.h"
#include "engine/serving/task.h"
#include "engine/serving/tool_call.h"
#include "engine/refusal.h"

#define FALLBACK_MODE "io.modelcontextprotocol/fallback-mode"

static const sgi_task_names names = {.ttl = "ttl", .poll = "pollInterval"};

/* ---- who has them ---- */

bool sgi_tasks_2025_are_for(const sgi_peer *peer, sgi_version version)
{
    return version == SGI_VERSION_2025_11_25 && !peer->stranger &&
           peer->server->dialects & SGI_DIALECT_L;
}

/* S says which modes there are; with none beside that of L, nothing is said, so that the
 * whole is L's (AS-14). A list of tasks is only for servers that can tell who asks
 * (R-2557-56). */
void sgi_tasks_2025_write_capability(sgi_jw *w, const sgi_inbound *in)
{
    const segue_server *server = in->peer->server;
    uint8_t modes = sgi_response_modes_of(server->dialects);
    if (!sgi_tasks_2025_are_for(in->peer, in->version))
        return;
    sgi_jw_key(w, "tasks");
    sgi_jw_open(w, '{');
    if (sgi_peer_lists(in->peer))
        sgi_jw_member_raw(w, "list", SGI_STR("{}"));
    sgi_jw_member_raw(w, "cancel", SGI_STR("{}"));
    sgi_jw_member_raw(w, "requests", SGI_STR("{\"tools\":{\"call\":{}}}"));
    if (modes != SGI_MODE_TASK) {
        sgi_jw_key(w, "responses");
        sgi_jw_open(w, '{');
        sgi_response_modes_write(w, "modes", modes);
        sgi_jw_close(w, '}');
    }
    sgi_jw_close(w, '}');
}

/* ---- rendering ---- */

/* A result that is an error is a failure here (R-1905-49), but for one that was the
 * answer itself (R-1905-13). Who is owed the end of its stream sees no end before it
 * (R-1905-36). */
static const char *status_of(const sgi_op *op, const sgi_peer *asker)
{
    sgi_state state = sgi_op_state(op);
    if (state == SGI_STATE_COMPLETED && op->final == SGI_FINAL_RESULT_IS_ERROR &&
        !op->immediate)
        state = SGI_STATE_FAILED;
    if (state >= SGI_STATE_COMPLETED && asker && sgi_push_is_owed(op, asker))
        state = SGI_STATE_WORKING;
    return sgi_state_name(state);
}

void sgi_tasks_2025_write(sgi_jw *w, const sgi_op *op, const sgi_peer *asker)
{
    sgi_task_write(w, op, status_of(op, asker), &names);
}

void sgi_tasks_2025_write_related(sgi_jw *w, const sgi_op *op)
{
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_jw_key(w, SGI_RELATED_TASK);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "taskId", sgi_str_of(op->task_id));
    sgi_jw_close(w, '}');
    sgi_jw_close(w, '}');
}

sgi_str sgi_related_task(sgi_buf *out, const sgi_op *op)
{
    sgi_buf_cut(out, 0);
    sgi_buf_add_lit(out, "\"" SGI_RELATED_TASK "\":{\"taskId\":\"");
    sgi_buf_add_str(out, sgi_str_of(op->task_id));
    sgi_buf_add_lit(out, "\"}");
    return sgi_buf_str(out);
}

void sgi_tasks_2025_write_created(sgi_jw *w, const sgi_op *op)
{
    sgi_jw_key(w, "task");
    sgi_jw_open(w, '{');
    sgi_task_write(w, op, sgi_state_name(SGI_STATE_WORKING), &names);
    sgi_jw_close(w, '}');
}

static void answer_task(sgi_reply *reply, const sgi_op *op)
{
    sgi_sending sending;
    if (!sgi_reply_result(&sending, reply, "complete"))
        return;
    sgi_tasks_2025_write(&sending.w, op, reply->peer);
    if (reply->modern)
        sgi_send_meta(&sending, op->server);
    sgi_send_end(&sending);
}

/* ---- creation ---- */

static void answer_created(sgi_reply *reply, sgi_op *op)
{
    sgi_sending sending;
    if (!sgi_reply_result(&sending, reply, NULL))
        return;
    sgi_tasks_2025_write_created(&sending.w, op);
    if (sgi_response_is_fallback(SGI_FORM_TASK, op->listed_modes)) {
        sgi_jw_key(&sending.w, "_meta");
        sgi_jw_open(&sending.w, '{');
        sgi_jw_member_string(&sending.w, FALLBACK_MODE, SGI_STR("task"));
        sgi_jw_close(&sending.w, '}');
    }
    sgi_send_end(&sending);
    sgi_tasks_2025_told(op);
}

static void answer_running(sgi_reply *reply, sgi_op *op)
{
    if (op->streams) {
        sgi_push_begin(reply, op);
        return;
    }
    answer_created(reply, op);
    sgi_reply_close(reply);
}

/* A keyed call is a task from the start: whoever comes with its key shall find it. */
bool sgi_tasks_2025_tracks(const sgi_op *op)
{
    return op->is_task && op->modes & SGI_MODE_IMMEDIATE &&
           (op->key || op->server->dialects & SGI_DIALECT_TRACKING);
}

/* With a tracking task the result itself may be the answer: known when the handler has
 * had its turn. */
static void tracked(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status != SEGUE_OK || !reply->peer) {
        sgi_reply_refuse(reply, SGI_UNSTORED, status);
        sgi_reply_close(reply);
    } else if (op->immediate) {
        sgi_tasks_2025_answer_result(reply, op);
    } else {
        answer_running(reply, op);
    }
}

static void turned(sgi_reply *reply, sgi_op *op)
{
    sgi_call_unhook(reply, op);
    reply->waiter.fire = tracked;
    sgi_op_wait(op, &reply->waiter, op->next_log - 1);
}

static void left(sgi_reply *reply)
{
    sgi_op *op = reply->user;
    sgi_call_unhook(reply, op);
    sgi_reply_close(reply);
}

static void created(sgi_reply *reply, sgi_op *op)
{
    sgi_tasks_2025_listen(op, reply);
    if (!op->origin) { /* it could ask nobody, and nobody would hear of it */
        sgi_tool_call_give_up(reply, op->key ? NULL : op);
        return;
    }
    bool tracks = sgi_tasks_2025_tracks(op);
    if (tracks && op->immediate) {
        turned(reply, op);
    } else if (tracks && op->call && !op->call->turned && !op->reply) {
        op->reply = reply;
        reply->user = op;
        reply->cancelled = left;
        reply->turned = turned;
    } else {
        answer_running(reply, op);
    }
}

/* ---- tasks/get, tasks/cancel ---- */

static void get_found(void *user, sgi_op *op, segue_status status)
{
    sgi_reply *reply = user;
    op = sgi_task_found(reply, op, status, &sgi_dialect_tasks_2025);
    if (op) {
        answer_task(reply, op);
        if (!sgi_op_is_elsewhere(op)) /* else its client may be asked there */
            sgi_tasks_2025_follow(op, reply);
    }
    sgi_reply_close(reply);
}

static void tasks_get(const sgi_inbound *in)
{
    sgi_str id;
    sgi_reply *reply;
    if (sgi_task_id_of(in, &id) && (reply = sgi_reply_open(in, false)))
        sgi_server_find_task(in->peer->server, in->peer->who, id, get_found, reply);
}

static void too_late(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    (void)status;
    sgi_task_refuse_cancel(reply, status_of(op, NULL));
    sgi_reply_close(reply);
}

static void cancelled(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    if (status != SEGUE_OK)
        sgi_reply_refuse(reply, SGI_UNSTORED, status);
    else if (sgi_op_state(op) != SGI_STATE_CANCELLED)
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                        SGI_STR("The task cannot be cancelled now"), (sgi_json){0});
    else
        answer_task(reply, op);
    sgi_reply_close(reply);
}

static void cancel_found(void *user, sgi_op *op, segue_status status)
{
    sgi_reply *reply = user;
    op = sgi_task_found(reply, op, status, &sgi_dialect_tasks_2025);
    if (!op) {
        sgi_reply_close(reply);
        return;
    }
    reply->waiter.fire = sgi_op_has_ended(op) ? too_late : cancelled;
    reply->cancelled = sgi_reply_close;
    sgi_op_ref(op);
    status = sgi_op_has_ended(op) ? SEGUE_OK : sgi_task_cancel(op);
    if (status == SEGUE_OK) {
        sgi_op_wait_done(op, &reply->waiter);
    } else {
        sgi_reply_refuse(reply, SGI_UNSTORED, status);
        sgi_reply_close(reply);
    }
    sgi_op_unref(op);
}

static void tasks_cancel(const sgi_inbound *in)
{
    sgi_str id;
    sgi_reply *reply;
    if (sgi_task_id_of(in, &id) && (reply = sgi_reply_open(in, false)))
        sgi_server_find_task(in->peer->server, in->peer->who, id, cancel_found, reply);
}

/* ---- tasks/result ---- */

/* What a cancelled call made, and that it was cancelled (R-1905-48). */
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

/* Its client may have been shown segments that were replaced since. */
static void add_shown(sgi_buf *meta, const sgi_reply *reply, const sgi_op *op,
                      const sgi_fold *fold)
{
    if (op->streams && reply->peer && reply->peer->handshake->caps & SGI_CAP_REPLACE)
        sgi_task_add_shown(meta, fold);
}

static void send_result(void *user, sgi_op *op, const sgi_fold *fold)
{
    sgi_reply *reply = user;
    sgi_sending sending;
    sgi_buf related;
    sgi_buf_init(&related, sgi_engine_mem(op->engine));
    op->heard |= reply->peer != NULL;
    if (op->final == SGI_FINAL_ERROR || op->final == SGI_FINAL_EXPIRED) {
        if (reply->peer)
            sgi_send_error_object(reply->peer->conn, sgi_str_of(reply->id),
                                  (sgi_json){op->final_data, op->final_len});
    } else if (op->final == SGI_FINAL_CANCELLED && op->kind != &sgi_call_tool) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Task was cancelled"),
                        (sgi_json){0});
    } else if (!fold) {
        sgi_task_answer_unreadable(reply);
    } else if (sgi_reply_result(&sending, reply, NULL)) {
        sgi_related_task(&related, op);
        add_shown(&related, reply, op, fold);
        sgi_str meta = sgi_buf_str(&related);
        if (op->final == SGI_FINAL_CANCELLED)
            write_cancelled(&sending, fold, meta);
        else
            sgi_fold_write(fold, &sending.w, op->final == SGI_FINAL_RESULT_IS_ERROR,
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
    sgi_answer_not_found(reply, SGI_TASK_NOT_FOUND); /* purged while it was waited for */
    sgi_reply_close(reply);
}

static void wait_for_result(sgi_reply *reply, sgi_op *op)
{
    reply->waiter.fire = result_there;
    reply->cancelled = sgi_reply_close; /* ends the wait, not the task (R-1905-35) */
    sgi_op_ref(op);
    sgi_op_wait(op, &reply->waiter, SGI_WAIT_FINAL);
    sgi_asks_place(op); /* its questions may come on this stream */
    sgi_op_unref(op);
}

const sgi_reply *sgi_tasks_2025_waiting(const sgi_op *op, const sgi_reply *before)
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

typedef struct fetching {
    sgi_reply *reply;
    bool by_number;
    uint64_t after;
} fetching;

static void result_found(void *user, sgi_op *op, segue_status status)
{
    fetching *fetch = user;
    fetching f = *fetch;
    sgi_release(sgi_engine_mem(f.reply->engine), fetch, sizeof *fetch);
    op = sgi_task_found(f.reply, op, status, &sgi_dialect_tasks_2025);
    if (op)
        sgi_tasks_2025_follow(op, f.reply);
    if (!op)
        sgi_reply_close(f.reply);
    else if (f.by_number && op->streams) /* of others the number says nothing */
        sgi_pull_begin(f.reply, op, f.after);
    else
        wait_for_result(f.reply, op);
}

/* lastSeqNr, or our own way to begin at the beginning (R-1905-32). */
static bool read_cursor(const sgi_inbound *in, fetching *fetch)
{
    sgi_json last = sgi_json_get(in->params, "lastSeqNr");
    int64_t number = 0;
    bool from_start =
        in->peer->server->dialects & SGI_DIALECT_FROM_START &&
        sgi_json_int(sgi_json_get(in->meta, "dev.segue/fromSeqNr"), &number) &&
        number == 1;
    number = 0;
    fetch->by_number = last.n || from_start;
    if (!last.n)
        return true;
    if (!sgi_json_int(last, &number) || number < 1 || number >= INT64_C(1) << 53) {
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
    if (!sgi_task_id_of(in, &id) || !read_cursor(in, &wanted))
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

const sgi_dialect sgi_dialect_tasks_2025 = {
    .name = "L",
    .bit = SGI_DIALECT_L,
    .methods = methods,
    .created = created,
};
