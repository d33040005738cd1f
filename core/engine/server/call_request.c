/* Reads a call. The whole request is checked before anything changes, so a refused
 * request has no effect (R-1905-9). */
#include "engine/server/call_request.h"

#include "base/fingerprint.h"
#include "engine/server/metrics.h"
#include "engine/server/pieces.h"
#include "engine/server/task_form.h"
#include "engine/server/grant.h"
#include "engine/server/sight.h"
#include "engine/server/withdrawn.h"

#include <stdio.h>

/* ---- reading the request ---- */

/* The digest tells whether a later request with the key is the same: its fingerprint, and
 * the lengths of its parts. It protects a client from its own mistakes, so it needs no
 * cryptographic hash. */
static void digest_request(const sgi_inbound *in, sgi_call_request *request)
{
    sgi_str parts[] = {request->name, in->arguments};
    uint64_t lengths[] = {request->name.n, in->arguments.n};
    sgi_fingerprint(request->digest, request->key, parts, 2);
    for (size_t i = 0; i < 2 * sizeof *lengths; i++)
        request->digest[SGI_FINGERPRINT_SIZE + i] =
            (uint8_t)(lengths[i / 8] >> (8 * (i % 8)));
}

static bool read_key(const sgi_inbound *in, sgi_call_request *request)
{
    segue_server *server = in->peer->server;
    char room[SGI_NAME_MAX];
    if (!in->key.n || !sgi_peer_keeps_keys(in->peer))
        return true;
    sgi_str text = sgi_method_text(in->key, room);
    if (!sgi_call_key_is_valid(text)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "An idempotency key is a string of 16 to 128 bytes", NULL);
        return false;
    }
    request->has_key = true;
    sgi_call_key_digest(in->peer->who, text, request->key);
    digest_request(in, request);
    if (!sgi_call_key_is_withdrawn(server, request->key))
        return true;
    sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "The request was cancelled", NULL);
    return false;
}

static bool find_tool(const sgi_inbound *in, sgi_call_request *request)
{
    request->tool = sgi_item_find(in->peer->server, SEGUE_ITEM_TOOL, request->name);
    sgi_sight sight = sgi_item_sight(in, request->tool, sgi_tools_call);
    if (sight == SGI_SIGHT_LATER)
        return false;
    if (sight == SGI_SHOWN) {
        /* the name of the tool as registered, without JSON escapes */
        request->name = sgi_str_of(request->tool->key);
        return true;
    }
    sgi_metrics_count_unknown(in, SEGUE_ITEM_TOOL);
    sgi_refuse_unknown_name(in, SGI_RPC_INVALID_PARAMS, "Unknown tool", NULL,
                            request->name);
    return false;
}

bool sgi_call_request_read(const sgi_inbound *in, sgi_call_request *request)
{
    char room[SGI_NAME_MAX];
    *request = (sgi_call_request){.kind = &sgi_call_tool, .caps = in->caps};
    request->name = sgi_method_text(in->name, room);
    if (!request->name.n) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "params.name is missing or is not a string that can name a tool",
                         NULL);
        return false;
    }
    if (in->arguments.n && sgi_json_kind_of(in->arguments) != SGI_JSON_OBJECT) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.arguments is not an object",
                         NULL);
        return false;
    }
    return sgi_srv_read_call(in, request) && find_tool(in, request) &&
           sgi_inbound_may_use_item(in, request->tool) && read_key(in, request);
}

bool sgi_call_request_read_question(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_call_request *request)
{
    *request = (sgi_call_request){
        .kind = kind, .name = sgi_str_of(kind->method), .caps = in->caps};
    request->tool = sgi_item_find(in->peer->server, SEGUE_ITEM_QUESTION, request->name);
    return sgi_srv_read_call(in, request);
}

/* ---- negotiating the answer ---- */

static void take_pieces(const sgi_inbound *in, sgi_call_request *request,
                        uint32_t dialects)
{
    const sgi_pieces_ops *form = sgi_srv_pieces_ops(dialects);
    if (!form)
        return;
    request->pieces = form;
    if (form->begin)
        request->token = in->token;
}

static uint32_t piece_dialects(const sgi_inbound *in, sgi_call_request *request)
{
    uint32_t says = sgi_srv_read_declared(in, request, sgi_srv_dialects_with_pieces());
    return sgi_negotiate_dialects(in->version, says, in->peer->server->dialects);
}

void sgi_call_request_read_pieces(const sgi_inbound *in, sgi_call_request *request)
{
    take_pieces(in, request,
                sgi_srv_usable_dialects(in, request, piece_dialects(in, request)));
}

bool sgi_request_allows_several_responses(const sgi_inbound *in)
{
    if (!sgi_pieces_are_allowed(in->peer->conn, in->id))
        return false;
    const sgi_pieces_ops *form = sgi_srv_pieces_ops(piece_dialects(in, NULL));
    return form && form->is_for_lists;
}

static void negotiate(const sgi_inbound *in, sgi_call_request *request)
{
    uint32_t says = sgi_srv_read_declared(in, request, UINT32_MAX);
    uint32_t dialects = sgi_srv_usable_dialects(
        in, request,
        sgi_negotiate_dialects(in->version, says, in->peer->server->dialects));
    take_pieces(in, request, dialects);
    request->dialect = sgi_srv_task_dialect_in_set(dialects);
    request->verdict =
        sgi_decide_task(in->version, dialects, request->tool->options.task);
    if (request->tool->options.task == SEGUE_TASK_NEVER &&
        sgi_srv_answers_at_once(request))
        request->verdict = SGI_VERDICT_PLAIN;
    request->lasting = sgi_srv_lasting_call_ops(in, request, dialects);
}

static const char *wrong_form(const sgi_call_request *request)
{
    if (sgi_call_is_question(request->kind))
        return "This question is only answered as a task: send it with the member task";
    return request->tool->options.task == SEGUE_TASK_NEVER
               ? "This tool cannot run as a task: call it without the member task"
               : "This tool only runs as a task: call it with the member task";
}

static void refuse_missing_capability(const sgi_inbound *in)
{
    if (in->peer->stranger)
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR,
                         "This tool runs only as a task, and only authenticated callers "
                         "get tasks: authenticate",
                         "{\"reason\":\"unauthenticated\"}");
    else
        sgi_answer_tasks_not_declared(in);
}

/* Returns true when the call was refused: its principal has too many tasks, and the call
 * cannot be answered without a task. A call that can be answered without a task becomes
 * plain. */
static bool too_many_tasks(const sgi_inbound *in, sgi_call_request *request)
{
    if (request->verdict != SGI_VERDICT_TASK ||
        in->peer->who->live_tasks < in->peer->server->options.max_tasks)
        return false;
    if (request->tool->options.task == SEGUE_TASK_MUST ||
        (request->dialect && request->dialect->never_plain)) {
        sgi_limit limit = {SGI_LIMIT_MAX_TASKS, in->peer->server->options.max_tasks};
        sgi_limit_text told = sgi_engine_describe_limit(
            in->peer->server->engine, "Too many tasks", limit, "too_many_tasks", NULL);
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, told.text, told.data);
        return true;
    }
    request->verdict = SGI_VERDICT_PLAIN;
    return false;
}

bool sgi_call_request_negotiate(const sgi_inbound *in, sgi_call_request *request)
{
    negotiate(in, request);
    bool is_stranger_of_draft = request->verdict == SGI_VERDICT_METHOD_NOT_FOUND &&
                                sgi_srv_has_version(in->peer->server, in->version);
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
