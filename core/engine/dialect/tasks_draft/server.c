/* The stateless tasks of SEP-2557 (D) on the server, in DRAFT-2026-v1, a version that
 * begins with `initialize`. They are the predecessor of the extension in tasks_ext/. Any
 * call may be answered with a task. The answer to tasks/get contains the result, and a
 * tasks/get may contain answers to the task's questions. A tasks/get with answers is a
 * write: the server stores all answers or none, and responds when they are durable. The
 * members have the names of this draft: a new task is in the member "task", its ttl is in
 * whole seconds, and each answer about the task has resultType "task".
 *
 * requestState is a text of this server that the client sends back. It contains the time
 * at which it was written, authenticated for the task and its owner. The server can find
 * the task without requestState. But a requestState that the server did not make is
 * refused as if the task did not exist (R-0-5). The key is made from data of the
 * operation that are in the store and that no client knows. So a requestState stays valid
 * after a restart, and at every server on that store. */
#include "engine/dialect/rows.h"
#include "engine/server/call_request.h"
#include "engine/server/task_form.h"
#include "engine/log/reader.h"
#include "engine/cluster/forwarding.h"
#include "engine/server/question_wire.h"
#include "engine/server/task_creator.h"
#include "engine/server/inputs.h"
#include "engine/server/task.h"
#include "engine/log/refusal.h"

#define UNIT_MS 1000
#define STATE_MAX 4096 /* the longest requestState that is read, in bytes (R-2557-33) */
#define MOMENT 8

static const sgi_task_member_names names = {
    .ttl = "ttl", .poll = "pollInterval", .ttl_unit_ms = UNIT_MS};

/* ---- requestState ---- */

/* Makes the key that protects the requestState of a task. Returns false when the digest
 * cannot be computed. */
static bool make_seal(const sgi_op *op, sgi_seal *seal)
{
    uint8_t key[SGI_DIGEST_SIZE];
    const sgi_str parts[] = {SGI_STR("segue task state 1"),
                             {(const char *)op->id, sizeof op->id}};
    return sgi_engine_digest(op->engine, key, parts, 2) &&
           sgi_seal_init(seal, op->engine, key, NULL);
}

static void write_state(sgi_jw *w, const sgi_op *op)
{
    const sgi_str id = sgi_str_of(op->task_id);
    const sgi_seal_purpose subject = {SGI_SEAL_TASK, op->served->who->digest, &id, 1};
    uint64_t now = (uint64_t)sgi_wall_now(&op->engine->env);
    char moment[MOMENT];
    sgi_seal seal;
    for (size_t i = 0; i < MOMENT; i++)
        moment[i] = (char)(uint8_t)(now >> (56 - 8 * i));
    sgi_jw_key(w, "requestState");
    sgi_buf_add_char(w->buf, '"');
    if (!make_seal(op, &seal) ||
        !sgi_seal_write(&seal, &subject, 0, (sgi_str){moment, MOMENT}, w->buf))
        w->buf->failed = true;
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
}

/* Checks a requestState that a client has sent. An old requestState is valid, because a
 * client that sends several requests at once repeats the same one. */
static segue_status check_state(const sgi_op *op, sgi_json state)
{
    const sgi_str id = sgi_str_of(op->task_id);
    const sgi_seal_purpose subject = {SGI_SEAL_TASK, op->served->who->digest, &id, 1};
    sgi_str text;
    sgi_seal seal;
    sgi_buf moment;
    if (!state.n)
        return SEGUE_OK;
    if (!sgi_json_plain_string(state, &text) || text.n > STATE_MAX)
        /* The server writes requestState without JSON escapes. So this server did not
         * make a text with escapes. */
        return SEGUE_E_INVALID;
    if (!make_seal(op, &seal))
        return SEGUE_E_NOMEM;
    sgi_buf_init(&moment, sgi_engine_mem(op->engine));
    segue_status status = sgi_seal_open(&seal, &subject, text, &moment);
    sgi_buf_free(&moment);
    return status;
}

/* ---- writing a task ---- */

static void write_head(sgi_jw *w, const sgi_op *op, sgi_state state)
{
    sgi_task_write(w, op, sgi_task_state_name(state), &names);
    write_state(w, op);
}

/* Writes the open questions of a task. Each question names its task, like every message
 * about a task. The _meta that the handler gave a question is kept. */
static void write_inputs(sgi_jw *w, const sgi_op *op)
{
    const sgi_op_question *input;
    sgi_jw_key(w, "inputRequests");
    sgi_jw_open(w, '{');
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        if (!sgi_op_question_is_open(op, input))
            continue;
        sgi_jw_key(w, input->key);
        sgi_jw_open(w, '{');
        sgi_jw_member_string(w, "method", sgi_str_of(input->method));
        sgi_jw_key(w, "params");
        sgi_jw_open(w, '{');
        sgi_question_write_params(w, op, input);
        sgi_jw_close(w, '}');
        sgi_jw_close(w, '}');
    }
    sgi_jw_close(w, '}');
}

static void write_task(sgi_jw *w, const sgi_op *op, const sgi_fold *fold)
{
    sgi_state state = sgi_op_state(op);
    write_head(w, op, state);
    if (state == SGI_STATE_INPUT_REQUIRED)
        write_inputs(w, op);
    if (state == SGI_STATE_FAILED)
        sgi_jw_member_raw(w, "error", (sgi_str){op->head.final_data, op->head.final_len});
    if (state == SGI_STATE_COMPLETED && fold) {
        sgi_jw_key(w, "result");
        sgi_jw_open(w, '{');
        sgi_task_write_result(w, op, fold);
        sgi_jw_close(w, '}');
    }
}

/* Begins the answer to a request about a task. Returns false when the client is no longer
 * connected. */
static bool begin_task(sgi_sending *sending, sgi_reply *reply)
{
    if (!sgi_reply_begin_result(sending, reply, NULL))
        return false;
    sgi_jw_member_string(&sending->w, "resultType", SGI_STR("task"));
    return true;
}

/* ---- notifications/tasks/status ---- */

/* Sends the present state of the task to the task's client. If this is impossible,
 * nothing is sent, because the client can ask for the state (R-2557-44). */
static void tell(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    sgi_sending sending;
    sgi_conn *conn = sgi_task_creator_conn(op);
    (void)user;
    (void)status;
    if (!conn || (!fold && sgi_op_state(op) == SGI_STATE_COMPLETED))
        return;
    sgi_send_begin_notification(&sending, conn, "notifications/tasks/status");
    write_task(&sending.w, op, fold);
    sgi_send_end(&sending);
}

/* Reports a change of the task by a notification. Over HTTP no notification is sent,
 * because it would belong to the stream of a tasks/get, and that stream has ended. */
static void changed(sgi_op_watch *watch, sgi_op *op)
{
    const sgi_task_creator *creator = op->served->creator;
    (void)watch;
    if (!creator->peer || creator->peer->is_exchange)
        return;
    if (sgi_op_state(op) == SGI_STATE_COMPLETED)
        sgi_op_fold(op, tell, NULL);
    else
        tell(NULL, op, NULL, SEGUE_OK);
}

/* ---- making a task ---- */

/* Answers a call with its new task. The answer always reports a new task as "working"
 * (R-2557-9). A notification then reports the present state. */
static void created(sgi_reply *reply, sgi_op *op)
{
    sgi_sending sending;
    if (begin_task(&sending, reply)) {
        sgi_jw_key(&sending.w, "task");
        sgi_jw_open(&sending.w, '{');
        write_head(&sending.w, op, SGI_STATE_WORKING);
        sgi_jw_close(&sending.w, '}');
        sgi_send_end(&sending);
        sgi_task_creator_set(op, reply, changed);
        if (op->served->creator && sgi_op_state(op) != SGI_STATE_WORKING)
            changed(&op->served->creator->watch, op);
    }
    sgi_reply_close(reply);
}

/* ---- the parameters of tasks/get and tasks/cancel ---- */

/* A copy of the parameters of a request. The message is freed before the store has found
 * the task, and the parameters are needed after that. */
typedef struct asking {
    sgi_reply *reply;
    size_t state_len, responses_len;
    char text[]; /* the JSON of requestState, followed by the JSON of inputResponses */
} asking;

static sgi_json state_of(const asking *ask)
{
    return (sgi_json){ask->text, ask->state_len};
}

static sgi_json responses_of(const asking *ask)
{
    return (sgi_json){ask->text + ask->state_len, ask->responses_len};
}

static void free_asking(asking *ask, const sgi_mem *mem)
{
    sgi_free(mem, ask, sizeof *ask + ask->state_len + ask->responses_len);
}

static void refuse_memory(sgi_reply *reply)
{
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                    (sgi_json){0});
    sgi_reply_close(reply);
}

/* Checks the types of the parameters. Sends an error and returns false when a type is
 * wrong. */
static bool are_readable(const sgi_inbound *in, sgi_json responses)
{
    const char *problem = NULL;
    if (in->state.n && sgi_json_kind_of(in->state) != SGI_JSON_STRING)
        problem = "params.requestState is not a string";
    else if (responses.n && sgi_json_kind_of(responses) != SGI_JSON_OBJECT)
        problem = "params.inputResponses is not an object";
    if (problem)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, problem, NULL);
    return !problem;
}

/* Looks the task up, in memory or in the store, then calls `found`. */
static void ask_for_task(const sgi_inbound *in, sgi_json responses, sgi_found_fn found)
{
    sgi_str id;
    sgi_reply *reply;
    if (!sgi_task_read_id(in, &id) || !are_readable(in, responses) ||
        !(reply = sgi_reply_open(in, false)))
        return;
    asking *ask =
        sgi_alloc(sgi_engine_mem(reply->engine), sizeof *ask + in->state.n + responses.n);
    if (!ask) {
        refuse_memory(reply);
        return;
    }
    *ask = (asking){reply, in->state.n, responses.n};
    if (in->state.n)
        memcpy(ask->text, in->state.p, in->state.n);
    if (responses.n)
        memcpy(ask->text + in->state.n, responses.p, responses.n);
    sgi_server_find_task(in->peer->server, in->peer->who, id, found, ask);
}

/* Returns the task if this client may access it. Otherwise answers the request with an
 * error and returns NULL. */
static sgi_op *let_in(const asking *ask, sgi_op *op, segue_status status)
{
    sgi_reply *reply = ask->reply;
    op = sgi_task_check_found(reply, op, status, &sgi_srv_tasks_draft);
    status = op ? check_state(op, state_of(ask)) : SEGUE_OK;
    if (status == SEGUE_E_NOMEM) {
        refuse_memory(reply);
        return NULL;
    }
    if (status != SEGUE_OK)
        sgi_answer_not_found(reply, SGI_TASK_NOT_FOUND);
    if (!op || status != SEGUE_OK)
        sgi_reply_close(reply);
    return status == SEGUE_OK ? op : NULL;
}

/* ---- tasks/get ---- */

static void send_task(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    sgi_reply *reply = user;
    sgi_sending sending;
    if (!fold && sgi_op_state(op) == SGI_STATE_COMPLETED) {
        sgi_task_answer_unreadable(reply, status);
    } else if (begin_task(&sending, reply)) {
        sgi_reply_note_end_sent(reply, op);
        write_task(&sending.w, op, fold);
        sgi_send_end(&sending);
    }
    sgi_reply_close(reply);
}

static void show(sgi_reply *reply, sgi_op *op)
{
    if (sgi_op_state(op) == SGI_STATE_COMPLETED)
        sgi_op_fold(op, send_task, reply);
    else
        send_task(reply, op, NULL, SEGUE_OK);
}

static void refuse_change(sgi_reply *reply, const sgi_op *op, segue_status status)
{
    sgi_reply_refuse_change(reply, op, status);
    sgi_reply_close(reply);
}

/* Returns the status of a cancel whose entries the log has. When the store has refused
 * the entries, the task has failed. The cancel is acknowledged only when the end is
 * stored: otherwise a server that continues the task knows neither of the cancel nor of
 * the end. */
static segue_status status_of_cancel(const sgi_op *op, segue_status status)
{
    if (!sgi_op_is_broken(op))
        return status;
    if (!sgi_op_has_unstored_end(op))
        return SEGUE_OK;
    return status == SEGUE_OK ? SEGUE_E_STORE : status;
}

static void answers_stored(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    /* A task that has failed because the store refused the answers is shown: the client
     * would otherwise repeat its answers for as long as the server keeps the task. */
    if (status == SEGUE_OK || sgi_op_is_broken(op))
        show(reply, op);
    else
        refuse_change(reply, op, status);
}

static bool all_fit(sgi_op *op, sgi_json responses)
{
    sgi_json_member member;
    for (size_t at = 0; responses.n && sgi_json_next_member(responses, &at, &member);)
        if (!sgi_task_answer_fits(op, member.key, member.value))
            return false;
    return true;
}

/* Stores answers to questions of the task. An answer to a question that is not open is
 * ignored (R-2557-22). */
static void take_answers(sgi_reply *reply, sgi_op *op, sgi_json responses)
{
    sgi_json_member member;
    segue_status status = SEGUE_OK;
    sgi_op_ref(op);
    for (size_t at = 0; !sgi_task_is_put_off(op, status) &&
                        sgi_json_next_member(responses, &at, &member);)
        status = sgi_task_take_answer(op, member.key, member.value);
    if (sgi_task_is_put_off(op, status)) {
        /* no answer was stored; the client can send the answers again, because each
         * answer is stored only once */
        refuse_change(reply, op, status);
    } else {
        reply->waiter.fire = answers_stored;
        sgi_op_wait_for_requested_changes(op, &reply->waiter);
    }
    sgi_op_unref(op);
}

static void get_found(void *user, sgi_op *op, segue_status status)
{
    asking *ask = user;
    sgi_reply *reply = ask->reply;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    sgi_json responses = responses_of(ask);
    op = let_in(ask, op, status);
    if (op && !all_fit(op, responses)) {
        sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS,
                        SGI_STR("An answer does not fit its question"), (sgi_json){0});
        sgi_reply_close(reply);
    } else if (op && responses.n) {
        take_answers(reply, op, responses);
    } else if (op) {
        show(reply, op);
    }
    free_asking(ask, mem);
}

static void tasks_get(const sgi_inbound *in)
{
    ask_for_task(in, in->responses, get_found);
}

/* ---- tasks/cancel ---- */

/* Answers tasks/cancel when the cancel is durable. The task may still continue
 * (R-2557-35). */
static void cancel_stored(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_sending sending;
    status = status_of_cancel(op, status);
    if (status != SEGUE_OK) {
        refuse_change(reply, op, status);
        return;
    }
    if (begin_task(&sending, reply)) {
        write_head(&sending.w, op, sgi_op_state(op));
        sgi_send_end(&sending);
    }
    sgi_reply_close(reply);
}

static void too_late(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    status = status_of_cancel(op, status);
    if (status != SEGUE_OK) {
        refuse_change(reply, op, status);
        return;
    }
    sgi_task_refuse_cancel(reply, sgi_task_state_name(sgi_op_state(op)));
    sgi_reply_close(reply);
}

static void cancel_found(void *user, sgi_op *op, segue_status status)
{
    asking *ask = user;
    sgi_reply *reply = ask->reply;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    op = let_in(ask, op, status);
    free_asking(ask, mem);
    if (!op)
        return;
    sgi_op_ref(op);
    reply->waiter.fire = sgi_op_has_ended(op) ? too_late : cancel_stored;
    status = SEGUE_OK;
    if (!sgi_op_has_ended(op) && !sgi_task_is_unstoppable(op))
        status = sgi_task_cancel(op);
    if (status == SEGUE_OK)
        sgi_op_wait_for_requested_changes(op, &reply->waiter);
    else
        refuse_change(reply, op, status);
    sgi_op_unref(op);
}

static void tasks_cancel(const sgi_inbound *in)
{
    ask_for_task(in, (sgi_json){0}, cancel_found);
}

/* True when the conversation uses DRAFT-2026-v1. Every server of this draft has these
 * methods (R-2557-35), even for clients that get no tasks. */
static bool serves(const sgi_peer *peer, sgi_version version)
{
    (void)peer;
    return version == SGI_VERSION_DRAFT_2026_V1;
}

/* True when this conversation uses DRAFT-2026-v1 and its client can get tasks. */
static bool is_for(const sgi_peer *peer, sgi_version version)
{
    return version == SGI_VERSION_DRAFT_2026_V1 && !peer->stranger;
}

/* Returns the capability of tasks, because every client of DRAFT-2026-v1 has this
 * capability (R-2557-57). */
static uint32_t given_caps(const sgi_peer *peer, sgi_version version)
{
    return is_for(peer, version) ? SGI_CAP_TASKS : 0;
}

/* Returns taskSupport of a tool: whether the tool can run as a task (R-2557-58). */
static const char *task_support(const sgi_inbound *in, int32_t policy)
{
    (void)policy;
    return is_for(in->peer, in->version) ? "true" : NULL;
}

/* True when the client can get tasks (R-2557-53). */
static bool takes(const sgi_inbound *in, const sgi_call_request *request)
{
    (void)in;
    return request->caps & SGI_CAP_TASKS;
}

static const sgi_method methods[] = {
    {"tasks/get", 0, tasks_get},
    {"tasks/cancel", 0, tasks_cancel},
    {NULL, 0, NULL},
};

const sgi_srv_dialect sgi_srv_tasks_draft = {
    .name = "D",
    .bit = SGI_DIALECT_D,
    .version = SGI_VERSION_DRAFT_2026_V1,
    .given_caps = given_caps,
    .methods = methods,
    .serves = serves,
    .task_support = task_support,
    .takes = takes,
    .created = created,
    .write = write_task,
    .ttl_unit_ms = UNIT_MS,
    .cancel = SGI_CANCEL_STATE,
};
