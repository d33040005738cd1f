/* Everything is looked at before anything is done (R-1905-9): a request that is refused
 * has left no trace. */
#include "engine/serving/call_request.h"

#include "engine/dialect/pieces.h"
#include "engine/dialect/response_modes.h"
#include "engine/serving/batch.h"
#include "engine/serving/grant.h"
#include "engine/serving/withdrawn.h"

#include <stdio.h>

/* ---- reading ---- */

static bool read_key(const sgi_inbound *in, sgi_call_request *request)
{
    segue_server *server = in->peer->server;
    char room[SGI_NAME_MAX];
    if (!in->key.n || !sgi_peer_takes_keys(in->peer))
        return true;
    sgi_str text = sgi_name_text(in->key, room);
    if (!sgi_call_key_is(text)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "An idempotency key is a string of 16 to 128 bytes", NULL);
        return false;
    }
    sgi_str of_params[] = {request->name, in->arguments};
    request->has_key = sgi_call_key_digest(server, in->peer->who, text, request->key) &&
                       sgi_engine_digest(server->engine, request->digest, of_params, 2);
    if (!request->has_key)
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
    else if (sgi_is_withdrawn(server, request->key))
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "The request was cancelled", NULL);
    else
        return true;
    return false;
}

static bool find_tool(const sgi_inbound *in, sgi_call_request *request)
{
    request->tool = sgi_item_find(in->peer->server, SEGUE_ITEM_TOOL, request->name);
    if (request->tool) {
        request->name = sgi_str_of(request->tool->key); /* it was perhaps decoded */
        return true;
    }
    sgi_refuse_which(in, SGI_RPC_INVALID_PARAMS, "Unknown tool", NULL, request->name);
    return false;
}

/* params.task: {"ttl"?, "responseModes"?}. Elsewhere it is an unknown field
 * (R-2557-7). */
static bool read_task(const sgi_inbound *in, sgi_call_request *request)
{
    const char *wrong = NULL;
    if (!in->task.n || !sgi_tasks_2025_are_for(in->peer, in->version))
        return true;
    sgi_json ttl = sgi_json_get(in->task, "ttl");
    if (sgi_json_kind_of(in->task) != SGI_JSON_OBJECT)
        wrong = "params.task is not an object";
    else if (ttl.n && (!sgi_json_int(ttl, &request->ttl_ms) || request->ttl_ms < 0))
        wrong = "params.task.ttl is not a non-negative integer";
    else if (!sgi_response_modes_read(sgi_json_get(in->task, "responseModes"),
                                      &request->listed_modes))
        wrong = "params.task.responseModes is not an array of strings";
    if (wrong)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, wrong, NULL);
    return !wrong;
}

bool sgi_call_request_read(const sgi_inbound *in, sgi_call_request *request)
{
    char room[SGI_NAME_MAX];
    *request = (sgi_call_request){.kind = &sgi_call_tool, .caps = in->caps};
    request->name = sgi_name_text(in->name, room);
    if (!request->name.n) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.name is not a tool's name",
                         NULL);
        return false;
    }
    if (in->arguments.n && sgi_json_kind_of(in->arguments) != SGI_JSON_OBJECT) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.arguments is not an object",
                         NULL);
        return false;
    }
    return read_task(in, request) && find_tool(in, request) &&
           sgi_item_is_open_to(in, request->tool) && read_key(in, request);
}

bool sgi_call_request_read_question(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_call_request *request)
{
    *request = (sgi_call_request){
        .kind = kind, .name = sgi_str_of(kind->method), .caps = in->caps};
    request->tool = sgi_item_find(in->peer->server, SEGUE_ITEM_QUESTION, request->name);
    return read_task(in, request);
}

/* ---- deciding ---- */

/* R-1905-8: what the request lists, as far as both sides said they know it. */
static uint8_t effective_modes(const sgi_inbound *in, uint8_t listed)
{
    uint32_t dialects = in->peer->server->dialects;
    const sgi_handshake *handshake = in->peer->handshake;
    uint8_t ours = sgi_response_modes_of(dialects);
    if (!handshake->modes && dialects & SGI_DIALECT_UNDECLARED_MODES)
        return listed & ours;
    return listed & ours & handshake->modes;
}

/* Does its client want to see the result grow (R-776-1, R-776-17)? */
static uint32_t reads_pieces(const sgi_inbound *in)
{
    sgi_json_kind partial = sgi_json_kind_of(in->partial);
    bool is_token = sgi_id_is_usable(in->token);
    if (in->partial.n && partial != SGI_JSON_TRUE && partial != SGI_JSON_FALSE)
        in->peer->server->engine->warnings++;
    return (partial == SGI_JSON_TRUE ? SGI_SAYS_ALLOW_PARTIAL : 0) |
           (is_token && in->caps & SGI_CAP_PARTIAL ? SGI_SAYS_PARTIAL_RESULTS : 0);
}

static void take_pieces(const sgi_inbound *in, sgi_call_request *request,
                        uint32_t dialects)
{
    if (dialects & SGI_DIALECT_P)
        request->pieces = &sgi_pieces_partial;
    if (dialects & SGI_DIALECT_PN) {
        request->pieces = &sgi_pieces_partial_result;
        request->token = in->token;
    }
}

void sgi_call_request_pieces(const sgi_inbound *in, sgi_call_request *request)
{
    take_pieces(in, request,
                sgi_negotiate(in->version, reads_pieces(in), in->peer->server->dialects));
}

/* A call that becomes a task has that for its handle, unless it is answered as long as it
 * runs (C-15). */
static bool is_resumable(const sgi_inbound *in, const sgi_call_request *request)
{
    const sgi_conn *conn = in->peer->conn;
    bool streams =
        request->modes & SGI_MODE_STREAMING && !(request->modes & SGI_MODE_IMMEDIATE);
    return request->tool->options.flags & SEGUE_TOOL_RESUMABLE && !conn->no_events &&
           !sgi_batch_of(conn, in->id) &&
           in->peer->who->live_tasks < in->peer->server->options.max_tasks &&
           (request->verdict == SGI_VERDICT_PLAIN ||
            (request->verdict == SGI_VERDICT_TASK && streams));
}

static void negotiate(const sgi_inbound *in, sgi_call_request *request)
{
    uint32_t says = in->caps & SGI_CAP_TASKS ? SGI_SAYS_TASKS_EXTENSION : 0;
    if (in->task.n && sgi_tasks_2025_are_for(in->peer, in->version)) {
        says |= SGI_SAYS_TASK_PARAM;
        request->caps |= SGI_CAP_TASKS;
        request->modes = effective_modes(in, request->listed_modes);
    }
    says |= reads_pieces(in) | (in->peer->handshake->resumable ? SGI_SAYS_RESUMABLE : 0);
    uint32_t dialects = sgi_negotiate(in->version, says, in->peer->server->dialects);
    if (!(request->caps & SGI_CAP_TASKS))
        dialects &= ~(uint32_t)SGI_DIALECT_D; /* R-2557-53 */
    take_pieces(in, request, dialects);
    request->dialect = sgi_dialect_of(dialects);
    request->verdict = sgi_decide(in->version, dialects, request->tool->options.task);
    /* a tool that is never a task gives its result at once: just what this mode is for */
    if (request->tool->options.task == SEGUE_TASK_NEVER &&
        request->modes & SGI_MODE_IMMEDIATE)
        request->verdict = SGI_VERDICT_PLAIN;
    request->resumable = dialects & SGI_DIALECT_Z && is_resumable(in, request);
}

static const char *wrong_form(const sgi_call_request *request)
{
    if (sgi_call_is_question(request->kind))
        return "This is answered only as a task, which was not asked for";
    return request->tool->options.task == SEGUE_TASK_NEVER
               ? "This tool does not run as a task"
               : "This tool runs only as a task, which was not asked for";
}

static void refuse_missing_capability(const sgi_inbound *in)
{
    if (in->peer->stranger)
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR,
                         "This tool runs only as a task, and tasks are for callers that "
                         "are known",
                         "{\"reason\":\"unauthenticated\"}");
    else
        sgi_answer_missing_tasks(in);
}

/* L knows no plain answer to a call that asks for a task: too many is an error there. */
static bool too_many_tasks(const sgi_inbound *in, sgi_call_request *request)
{
    if (request->verdict != SGI_VERDICT_TASK ||
        in->peer->who->live_tasks < in->peer->server->options.max_tasks)
        return false;
    if (request->tool->options.task == SEGUE_TASK_MUST ||
        request->dialect == &sgi_dialect_tasks_2025) {
        sgi_limit limit = {"max_tasks", in->peer->server->options.max_tasks};
        sgi_limit_told told = sgi_limit_tell("Too many tasks", limit, "too_many_tasks");
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, told.text, told.data);
        return true;
    }
    request->verdict = SGI_VERDICT_PLAIN;
    return false;
}

bool sgi_call_request_decide(const sgi_inbound *in, sgi_call_request *request)
{
    negotiate(in, request);
    bool is_stranger_of_draft = request->verdict == SGI_VERDICT_METHOD_NOT_FOUND &&
                                in->version == SGI_VERSION_DRAFT_2026_V1;
    if (request->verdict == SGI_VERDICT_MISSING_CAPABILITY || is_stranger_of_draft) {
        refuse_missing_capability(in);
        return false;
    }
    if (request->verdict == SGI_VERDICT_METHOD_NOT_FOUND) {
        sgi_answer_error(in, SGI_RPC_METHOD_NOT_FOUND, wrong_form(request), NULL);
        return false;
    }
    return !too_many_tasks(in, request);
}
