/* tools/list and tools/call. A call is decided on (negotiate.h), becomes an operation,
 * and its request waits: for the creation when it is a task, else for the end. */
#include "engine/serving/call.h"
#include "engine/dialect/dialect.h"
#include "engine/error.h"
#include "engine/log/reader.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"

#include <stdio.h>

#define UNKNOWN_STATE "Unknown requestState"

/* ---- tools/list ---- */

/* A cursor is the order number of the last tool shown; a tool that was removed meanwhile
 * makes no hole and no repeat. */
static bool read_cursor(const sgi_inbound *in, uint64_t *after)
{
    sgi_json cursor = sgi_json_get(in->params, "cursor");
    sgi_str text;
    *after = 0;
    if (!cursor.n)
        return true;
    if (!sgi_json_plain_string(cursor, &text) || !text.n || text.n > 19)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        *after = *after * 10 + (uint64_t)(text.p[i] - '0');
    }
    return true;
}

void sgi_tools_list(const sgi_inbound *in)
{
    segue_server *server = in->peer->server;
    sgi_sending sending;
    sgi_tool *tool;
    uint64_t after;
    uint64_t last = 0;
    int32_t shown = 0;
    if (!read_cursor(in, &after)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "Invalid cursor", NULL);
        return;
    }
    sgi_answer_result(&sending, in, "complete");
    sgi_jw_key(&sending.w, "tools");
    sgi_jw_open(&sending.w, '[');
    TAILQ_FOREACH(tool, &server->tools, link) {
        if (tool->order <= after)
            continue;
        if (shown == server->options.page_size)
            break;
        sgi_jw_raw(&sending.w, (sgi_str){tool->json, tool->json_len});
        last = tool->order;
        shown++;
    }
    sgi_jw_close(&sending.w, ']');
    if (tool) {
        char cursor[24];
        snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)last);
        sgi_jw_member_string(&sending.w, "nextCursor", sgi_str_of(cursor));
    }
    if (sgi_version_is_modern(in->version)) {
        sgi_jw_member_int(&sending.w, "ttlMs", 0);
        sgi_jw_member_string(&sending.w, "cacheScope", SGI_STR("private"));
        sgi_send_meta(&sending, server);
    }
    sgi_send_end(&sending);
}

/* ---- answering a call ---- */

static void answer_final(sgi_reply *reply, sgi_op *op, const sgi_fold *fold)
{
    sgi_sending sending;
    sgi_str meta = {0};
    bool is_error = op->final == SGI_FINAL_RESULT_IS_ERROR;
    if (op->final == SGI_FINAL_ERROR || op->final == SGI_FINAL_EXPIRED) {
        sgi_json error = {op->final_data, op->final_len};
        if (reply->peer)
            sgi_send_error_object(reply->peer->conn, sgi_str_of(reply->id), error);
        return;
    }
    if (op->final == SGI_FINAL_CANCELLED || !fold) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                        fold ? SGI_STR("The operation was cancelled")
                             : SGI_STR("The result cannot be read back"),
                        (sgi_json){0});
        return;
    }
    if (!sgi_reply_result(&sending, reply, "complete"))
        return;
    if (reply->modern)
        meta = sgi_buf_str(&op->server->info);
    sgi_fold_write(fold, &sending.w, is_error, meta);
    sgi_send_end(&sending);
}

static void folded(void *user, sgi_op *op, const sgi_fold *fold)
{
    sgi_reply *reply = user;
    answer_final(reply, op, fold);
    sgi_reply_close(reply);
}

void sgi_call_unhook(sgi_reply *reply, sgi_op *op)
{
    reply->cancelled = NULL;
    if (op->reply == reply)
        op->reply = NULL;
}

static void rejoin_by_key(sgi_reply *reply, sgi_op *op);

/* The operation could not be created. */
static void creation_failed(sgi_reply *reply, sgi_op *op, segue_status status)
{
    if (status == SEGUE_E_EXISTS && op->has_key && reply->peer) {
        rejoin_by_key(reply, op);
        return;
    }
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                    SGI_STR("The server cannot store the operation"), (sgi_json){0});
    sgi_reply_close(reply);
}

static void call_ended(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_call_unhook(reply, op);
    if (status != SEGUE_OK)
        creation_failed(reply, op, status);
    else if (reply->peer)
        sgi_op_fold(op, folded, reply);
    else
        sgi_reply_close(reply);
}

static void task_created(sgi_waiter *waiter, sgi_op *op, segue_status status)
{
    sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
    sgi_call_unhook(reply, op);
    if (status != SEGUE_OK) {
        creation_failed(reply, op, status);
        return;
    }
    if (reply->peer)
        op->dialect->created(reply, op);
    else if (!op->has_key)
        sgi_task_cancel(op); /* nobody ever learnt of it (R-2557-38) */
    sgi_reply_close(reply);
}

/* The client withdrew the call, or left, before it was answered. */
static void call_withdrawn(sgi_reply *reply)
{
    sgi_op *op = reply->user;
    op->reply = NULL;
    if (!op->has_key || !reply->lost) /* else it can be asked for again (R-2557-11) */
        sgi_task_cancel(op);
}

static void wait_for(sgi_reply *reply, sgi_op *op)
{
    bool as_task = op->is_task && (op->caps & SGI_CAP_TASKS);
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
    wait_for(reply, op);
}

/* The handshake eras know no rounds: what waits there, by its key, waits for the end. */
sgi_reply *sgi_call_waiting(const sgi_op *op)
{
    sgi_waiter *waiter;
    TAILQ_FOREACH(waiter, &op->waiters, link) {
        sgi_reply *reply = SGI_OWNER(waiter, sgi_reply, waiter);
        if (waiter->fire == call_ended && reply->modern)
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
    wait_for(reply, call->op);
}

/* ---- making a call ---- */

typedef struct sgi_call_request {
    sgi_str name;
    sgi_tool *tool;
    sgi_verdict verdict;
    const sgi_dialect *dialect; /* that a task of it is born in */
    bool has_key;
    uint8_t key[SGI_DIGEST_SIZE];
    uint8_t digest[SGI_DIGEST_SIZE];
} sgi_call_request;

static bool read_key(const sgi_inbound *in, sgi_call_request *request)
{
    segue_server *server = in->peer->server;
    sgi_json key = in->key;
    sgi_json arguments = in->arguments;
    sgi_str text;
    if (!key.n || !server->idempotency)
        return true;
    if (!sgi_json_plain_string(key, &text) || text.n < 16 || text.n > 128) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "An idempotency key is a string of 16 to 128 bytes", NULL);
        return false;
    }
    sgi_str owner = {(const char *)in->peer->who->digest, SGI_DIGEST_SIZE};
    sgi_str of_key[] = {owner, SGI_STR("tools/call"), text};
    sgi_str of_params[] = {request->name, arguments};
    request->has_key = server->engine->digest(request->key, of_key, 3) &&
                       server->engine->digest(request->digest, of_params, 2);
    if (!request->has_key)
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    return request->has_key;
}

static bool read_request(const sgi_inbound *in, sgi_call_request *request)
{
    segue_server *server = in->peer->server;
    sgi_json arguments = in->arguments;
    *request = (sgi_call_request){.has_key = false};
    if (!sgi_json_plain_string(in->name, &request->name)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.name is not a tool's name",
                         NULL);
        return false;
    }
    if (arguments.n && sgi_json_kind_of(arguments) != SGI_JSON_OBJECT) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.arguments is not an object",
                         NULL);
        return false;
    }
    request->tool = sgi_tool_find(server, request->name);
    if (!request->tool) {
        char text[160];
        snprintf(text, sizeof text, "Unknown tool: %.*s",
                 (int)(request->name.n < 120 ? request->name.n : 120), request->name.p);
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         sgi_utf8_valid(sgi_str_of(text), NULL) ? text : "Unknown tool",
                         NULL);
        return false;
    }
    return read_key(in, request);
}

static bool decide(const sgi_inbound *in, sgi_call_request *request)
{
    segue_server *server = in->peer->server;
    uint32_t says = in->caps & SGI_CAP_TASKS ? SGI_SAYS_TASKS_EXTENSION : 0;
    uint32_t dialects = sgi_negotiate(in->version, says, server->dialects);
    request->dialect = sgi_dialect_of(dialects);
    request->verdict = sgi_decide(in->version, dialects, request->tool->options.task);
    if (request->verdict == SGI_VERDICT_MISSING_CAPABILITY && in->peer->stranger) {
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR,
                         "This tool runs only as a task, and tasks are for callers that "
                         "are known",
                         "{\"reason\":\"unauthenticated\"}");
        return false;
    }
    if (request->verdict == SGI_VERDICT_MISSING_CAPABILITY) {
        sgi_answer_missing_tasks(in);
        return false;
    }
    if (request->verdict == SGI_VERDICT_METHOD_NOT_FOUND) {
        sgi_answer_error(in, SGI_RPC_METHOD_NOT_FOUND,
                         "This tool runs only as a task, which this client cannot take",
                         NULL);
        return false;
    }
    if (request->verdict == SGI_VERDICT_TASK &&
        in->peer->who->live_tasks >= server->options.max_tasks) {
        if (request->tool->options.task == SEGUE_TASK_MUST) {
            sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Too many tasks",
                             "{\"reason\":\"too_many_tasks\"}");
            return false;
        }
        request->verdict = SGI_VERDICT_PLAIN;
    }
    return true;
}

static void promote(sgi_timer *timer)
{
    sgi_op *op = SGI_OWNER(timer, sgi_op, promote);
    if (op->call &&
        sgi_call_defer(op->call, 0) == SEGUE_E_STATE) /* its client is asked */
        sgi_engine_timer(op->engine, &op->promote, op->tool->options.promote_after_ms,
                         promote);
}

static sgi_op *make_op(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_op *op = sgi_op_new(in->peer->server, request->name, in->params);
    if (!op)
        return NULL;
    op->tool = request->tool;
    if (in->arguments.n)
        op->arguments =
            (sgi_json){op->params + (in->arguments.p - in->params.p), in->arguments.n};
    sgi_tool_ref(op->tool);
    op->who = in->peer->who;
    sgi_principal_ref(op->who);
    op->caps = in->caps;
    op->dialect = request->dialect;
    op->has_key = request->has_key;
    memcpy(op->key, request->key, sizeof op->key);
    memcpy(op->digest, request->digest, sizeof op->digest);
    return op;
}

/* Gives the operation its handles and its handler. A keyed one runs only once it is
 * durable: until then another process may have created it. */
static segue_status launch(sgi_op *op, sgi_verdict verdict)
{
    int64_t promote_ms = op->tool->options.promote_after_ms;
    bool later =
        promote_ms > 0 && op->tool->options.task == SEGUE_TASK_MAY && !op->has_key;
    segue_status status = SEGUE_OK;
    if (verdict == SGI_VERDICT_TASK && !later)
        status = sgi_task_make(op, 0);
    else if (op->has_key)
        status = sgi_task_make_keyed(op);
    if (status == SEGUE_OK && !op->has_key)
        status = sgi_call_start(op, false);
    if (status == SEGUE_OK && verdict == SGI_VERDICT_TASK && later)
        sgi_engine_timer(op->engine, &op->promote, promote_ms, promote);
    return status;
}

static void give_up(sgi_reply *reply, sgi_op *op)
{
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR("Out of memory"),
                    (sgi_json){0});
    sgi_reply_close(reply);
    if (op)
        sgi_op_end(op, SGI_ENTRY_CANCELLED, SGI_STR("{}"));
}

static void start_call(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    sgi_op *op = make_op(in, request);
    if (!op || launch(op, request->verdict) != SEGUE_OK) {
        give_up(reply, op);
    } else {
        sgi_call_attach(reply, op);
    }
    if (op)
        sgi_op_unref(op);
}

/* A second request with a key that is known: the same task, or the same answer. */
static void join_call(sgi_reply *reply, sgi_op *op, const uint8_t digest[SGI_DIGEST_SIZE],
                      uint32_t caps)
{
    if (memcmp(op->digest, digest, SGI_DIGEST_SIZE) != 0) {
        sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS,
                        SGI_STR("The idempotency key belongs to another call"),
                        SGI_STR("{\"reason\":\"idempotency_mismatch\"}"));
        sgi_reply_close(reply);
        return;
    }
    bool as_task = op->is_task && (caps & SGI_CAP_TASKS);
    reply->waiter.fire = as_task ? task_created : call_ended;
    sgi_op_ref(op);
    sgi_op_wait(op, &reply->waiter, as_task ? 0 : SGI_WAIT_FINAL);
    if (op->call && sgi_round_is_due(op))
        sgi_call_look(op->call); /* it is asked what the others were asked */
    sgi_op_unref(op);
}

/* The creation met the key in the store: another process, or an earlier run of this one,
 * has the operation. Who waited for ours joins that one. */
typedef struct sgi_rejoin {
    sgi_reply *reply;
    uint8_t digest[SGI_DIGEST_SIZE];
    uint32_t caps;
    bool retries; /* it has a requestState, so there was such an operation */
} sgi_rejoin;

static void rejoin(void *user, sgi_op *op, segue_status status)
{
    sgi_rejoin *again = user;
    sgi_reply *reply = again->reply;
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    if (op) {
        join_call(reply, op, again->digest, again->caps);
    } else if (again->retries && status == SEGUE_E_NOT_FOUND) {
        sgi_answer_not_found(reply, UNKNOWN_STATE);
        sgi_reply_close(reply);
    } else {
        sgi_engine_log(reply->engine, SEGUE_LOG_ERROR, "idempotency key: %s",
                       sgi_status_name(status));
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                        SGI_STR("The operation cannot be read back"), (sgi_json){0});
        sgi_reply_close(reply);
    }
    sgi_release(mem, again, sizeof *again); /* the reply may be gone */
}

static void rejoin_by(sgi_reply *reply, const sgi_rejoin *wanted, segue_server *server,
                      const uint8_t key[SGI_DIGEST_SIZE])
{
    sgi_rejoin *again = sgi_alloc(sgi_engine_mem(server->engine), sizeof *again);
    if (!again) {
        give_up(reply, NULL);
        return;
    }
    *again = *wanted;
    again->reply = reply;
    sgi_server_find_key(server, key, rejoin, again);
}

static void rejoin_by_key(sgi_reply *reply, sgi_op *op)
{
    sgi_rejoin wanted = {.caps = op->caps};
    memcpy(wanted.digest, op->digest, sizeof wanted.digest);
    rejoin_by(reply, &wanted, op->server, op->key);
}

static sgi_op *find_known(const sgi_inbound *in, const sgi_call_request *request)
{
    sgi_str key = {(const char *)request->key, SGI_DIGEST_SIZE};
    sgi_map_node *node =
        request->has_key ? sgi_map_find(&in->peer->server->by_key, key) : NULL;
    return node ? SGI_OWNER(node, sgi_op, by_key) : NULL;
}

/* ---- a call that comes again ---- */

static bool is_retry_readable(const sgi_inbound *in)
{
    if (sgi_json_kind_of(in->state) != SGI_JSON_STRING)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.requestState is not a string", NULL);
    else if (in->responses.n && sgi_json_kind_of(in->responses) != SGI_JSON_OBJECT)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.inputResponses is not an object", NULL);
    else
        return true;
    return false;
}

/* With answers to a round. A state that is not good any more says nothing where there is
 * a key: that finds the operation, and what it asks now is asked again. */
static void retry_call(const sgi_inbound *in, const sgi_call_request *request)
{
    segue_server *server = in->peer->server;
    uint32_t says = in->caps & SGI_CAP_TASKS ? SGI_SAYS_TASKS_EXTENSION : 0;
    if (!is_retry_readable(in))
        return;
    sgi_op *known = find_known(in, request);
    sgi_op *op = sgi_round_find(in, request->name);
    if (op && (!request->has_key || op == known)) {
        sgi_round_answer(
            op, in, sgi_dialect_of(sgi_negotiate(in->version, says, server->dialects)));
        return;
    }
    sgi_reply *reply = sgi_reply_open(in, false);
    if (!reply)
        return;
    if (known) {
        join_call(reply, known, request->digest, in->caps);
    } else if (request->has_key) {
        sgi_rejoin wanted = {.caps = in->caps, .retries = true};
        memcpy(wanted.digest, request->digest, sizeof wanted.digest);
        rejoin_by(reply, &wanted, server, request->key);
    } else {
        sgi_answer_not_found(reply, UNKNOWN_STATE);
        sgi_reply_close(reply);
    }
}

void sgi_tools_call(const sgi_inbound *in)
{
    sgi_call_request request;
    if (!read_request(in, &request))
        return;
    if (in->state.n && sgi_version_is_modern(in->version)) {
        retry_call(in, &request);
        return;
    }
    if (!decide(in, &request))
        return;
    sgi_op *known = find_known(in, &request);
    if (!known) {
        start_call(in, &request);
        return;
    }
    sgi_reply *reply = sgi_reply_open(in, false);
    if (reply)
        join_call(reply, known, request.digest, in->caps);
}
