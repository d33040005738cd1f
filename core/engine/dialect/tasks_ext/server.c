/* The extension io.modelcontextprotocol/tasks of 2026-07-28 (X, SEP-2663) on the server.
 * tasks/get only reads. tasks/update and tasks/cancel are acknowledged when their effect
 * is durable. The members have the names of the extension: ttlMs and pollIntervalMs. The
 * members ttl, task and requestState are never written. */
#include "engine/dialect/rows.h"
#include "engine/server/task_form.h"
#include "engine/log/reader.h"
#include "engine/cluster/forwarding.h"
#include "engine/server/inputs.h"
#include "engine/server/task.h"
#include "engine/log/refusal.h"

static const sgi_task_member_names names = {.ttl = "ttlMs", .poll = "pollIntervalMs"};

/* ---- writing a task ---- */

static void write_task(sgi_jw *w, const sgi_op *op, const sgi_fold *fold)
{
    sgi_state state = sgi_op_state(op);
    sgi_task_write(w, op, sgi_task_state_name(state), &names);
    if (state == SGI_STATE_INPUT_REQUIRED)
        sgi_task_write_questions(w, op);
    if (state == SGI_STATE_FAILED)
        sgi_jw_member_raw(w, "error", (sgi_str){op->head.final_data, op->head.final_len});
    if (state == SGI_STATE_COMPLETED && fold) {
        sgi_jw_key(w, "result");
        sgi_jw_open(w, '{');
        /* The examples of the extension leave out resultType. But every result of this
         * version has resultType, and a client that validates the result inside the task
         * refuses a result without it. */
        sgi_jw_member_string(w, "resultType", SGI_STR("complete"));
        sgi_task_write_result(w, op, fold);
        sgi_jw_close(w, '}');
    }
}

/* Answers a call with its new task. The answer always reports a new task as "working"
 * (R-2557-9). The first tasks/get shows the present state of the task. */
static void created(sgi_reply *reply, sgi_op *op)
{
    sgi_sending sending;
    if (sgi_reply_begin_result(&sending, reply, "task")) {
        sgi_task_write(&sending.w, op, sgi_task_state_name(SGI_STATE_WORKING), &names);
        sgi_write_server_info_meta(&sending, sgi_op_server(op));
        sgi_send_end(&sending);
    }
    sgi_reply_close(reply);
}

/* ---- requests ---- */

static void send_task(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    sgi_reply *reply = user;
    sgi_sending sending;
    if (!fold && sgi_op_state(op) == SGI_STATE_COMPLETED) {
        sgi_task_answer_unreadable(reply, status);
    } else if (sgi_reply_begin_result(&sending, reply, "complete")) {
        sgi_reply_note_end_sent(reply, op);
        write_task(&sending.w, op, fold);
        sgi_write_server_info_meta(&sending, sgi_op_server(op));
        sgi_send_end(&sending);
    }
    sgi_reply_close(reply);
}

static void get_found(void *user, sgi_op *op, segue_status status)
{
    sgi_reply *reply = user;
    op = sgi_task_check_found(reply, op, status, &sgi_srv_tasks_ext);
    if (!op)
        sgi_reply_close(reply);
    else if (sgi_op_state(op) == SGI_STATE_COMPLETED)
        sgi_op_fold(op, send_task, reply);
    else
        send_task(reply, op, NULL, SEGUE_OK);
}

static void tasks_get(const sgi_inbound *in)
{
    sgi_str id;
    sgi_reply *reply;
    if (sgi_task_read_id(in, &id) && (reply = sgi_reply_open(in, false)))
        sgi_server_find_task(in->peer->server, in->peer->who, id, get_found, reply);
}

static void send_ack(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_sending sending;
    /* a timeout is not a failure, because the command for the task's server is durable in
     * the store */
    if (status != SEGUE_OK && status != SEGUE_E_TIMEOUT) {
        sgi_reply_refuse_change(reply, op, status);
    } else if (sgi_reply_begin_result(&sending, reply, "complete")) {
        sgi_write_server_info_meta(&sending, sgi_op_server(op));
        sgi_send_end(&sending);
    }
    sgi_reply_close(reply);
}

/* Acknowledges a request when all entries that the log has now are durable. */
static void ack_when_durable(sgi_reply *reply, sgi_op *op)
{
    if (sgi_op_has_unstored_end(op)) {
        sgi_reply_store_error(reply, SGI_UNSTORED, SEGUE_E_STORE);
        sgi_reply_close(reply);
        return;
    }
    reply->waiter.fire = send_ack;
    sgi_op_wait_for_requested_changes(op, &reply->waiter);
}

static void cancel_found(void *user, sgi_op *op, segue_status status)
{
    sgi_reply *reply = user;
    op = sgi_task_check_found(reply, op, status, &sgi_srv_tasks_ext);
    if (!op) {
        sgi_reply_close(reply);
        return;
    }
    status = sgi_task_is_unstoppable(op) ? SEGUE_OK : sgi_task_cancel(op);
    if (status == SEGUE_OK) {
        ack_when_durable(reply, op);
        return;
    }
    sgi_reply_store_error(reply, SGI_PUT_OFF, status);
    sgi_reply_close(reply);
}

static void tasks_cancel(const sgi_inbound *in)
{
    sgi_str id;
    sgi_reply *reply;
    if (sgi_task_read_id(in, &id) && (reply = sgi_reply_open(in, false)))
        sgi_server_find_task(in->peer->server, in->peer->who, id, cancel_found, reply);
}

/* A copy of the answers in a tasks/update. The message is freed before the store has
 * found the task, and the answers are needed after that. */
typedef struct updating {
    sgi_reply *reply;
    size_t len;
    char responses[];
} updating;

static void update_found(void *user, sgi_op *op, segue_status status)
{
    updating *update = user;
    sgi_reply *reply = update->reply;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_json responses = {update->responses, update->len};
    sgi_json_member member;
    op = sgi_task_check_found(reply, op, status, &sgi_srv_tasks_ext);
    status = SEGUE_OK;
    bool put_off = false;
    for (size_t at = 0;
         op && !put_off && sgi_json_next_member(responses, &at, &member);) {
        status = sgi_task_take_answer(op, member.key, member.value);
        put_off = sgi_task_is_put_off(op, status);
    }
    if (op && !put_off) {
        ack_when_durable(reply, op);
    } else {
        /* no answer was stored; the client can send the answers again, because each
         * answer is stored only once */
        if (op)
            sgi_reply_store_error(reply, SGI_PUT_OFF, status);
        sgi_reply_close(reply);
    }
    sgi_free(mem, update, sizeof *update + update->len);
}

static void tasks_update(const sgi_inbound *in)
{
    sgi_str id;
    sgi_json responses = sgi_json_get(in->params, "inputResponses");
    if (!sgi_task_read_id(in, &id))
        return;
    if (sgi_json_kind_of(responses) != SGI_JSON_OBJECT) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.inputResponses is not an object", NULL);
        return;
    }
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    updating *update =
        sgi_alloc(sgi_engine_mem(reply->engine), sizeof *update + responses.n);
    if (!update) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                        (sgi_json){0});
        sgi_reply_close(reply);
        return;
    }
    update->reply = reply;
    update->len = responses.n;
    memcpy(update->responses, responses.p, responses.n);
    sgi_server_find_task(in->peer->server, in->peer->who, id, update_found, update);
}

static bool serves(const sgi_peer *peer, sgi_version version)
{
    return sgi_facts(version)->has_extensions && peer->server->dialects & SGI_DIALECT_X;
}

static uint32_t says(const sgi_inbound *in, sgi_call_request *request)
{
    (void)request;
    return in->caps & SGI_CAP_TASKS ? SGI_SAYS_TASKS_EXTENSION : 0;
}

static const sgi_method methods[] = {
    {"tasks/get", SGI_CAP_TASKS, tasks_get},
    {"tasks/update", SGI_CAP_TASKS, tasks_update},
    {"tasks/cancel", SGI_CAP_TASKS, tasks_cancel},
    {NULL, 0, NULL},
};

const sgi_srv_dialect sgi_srv_tasks_ext = {
    .name = "X",
    .bit = SGI_DIALECT_X,
    .is_modern = true,
    .extension = "io.modelcontextprotocol/tasks",
    .methods = methods,
    .serves = serves,
    .says = says,
    .created = created,
    .write = write_task,
    .is_watched = true,
    .retains = true,
    .cancel = SGI_CANCEL_ACKNOWLEDGED,
};
