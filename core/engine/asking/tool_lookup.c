/* Where requests meet the headers of tools, over HTTP in the modern era: a result of
 * tools/list is learnt from and cleaned before the application sees it; a tools/call
 * that is refused for its headers is preceded by tools/list, page by page, and sent
 * again, once (2026-07-28 basic/transports/streamable-http, "Client Behavior"). The
 * refusal means that nothing was run, so that is safe for any call.
 *
 * The pages travel as exchanges of the request itself: cancel, timeout and the end of the
 * session find them where they find the call. */
#include "engine/asking/request.h"

#define PAGES_MAX 100

static bool has_headers(const segue_session *session)
{
    return session->conn->exchanging && sgi_version_is_modern(session->version);
}

static bool send_list(segue_request *request, sgi_json cursor);

static void listed(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_json cursor = sgi_json_get(outcome->json, "nextCursor");
    request->calling = NULL;
    if (outcome->kind == SGI_OUTCOME_LOST) {
        sgi_tries_cut_off(&request->tries, outcome);
        return;
    }
    if (outcome->kind == SGI_OUTCOME_RESULT) {
        bool begins = request->pages == 1;
        sgi_tool_headers_learn(&request->session->tools, outcome->json, begins, NULL);
        sgi_tool_schemas_learn(&request->session->tool_schemas, outcome->json, begins);
        if (sgi_json_kind_of(cursor) == SGI_JSON_STRING && request->pages < PAGES_MAX &&
            send_list(request, cursor))
            return;
    }
    sgi_request_go(request); /* what stands in its way now, the server says */
}

static bool send_list(segue_request *request, sgi_json cursor)
{
    sgi_sending sending;
    sgi_emitter *emitter =
        sgi_emitter_begin(request->session, &sending, SGI_STR("tools/list"));
    if (!emitter)
        return false;
    emitter->request = request;
    emitter->done = listed;
    if (cursor.n)
        sgi_jw_member_raw(&sending.w, "cursor", cursor);
    if (!sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        return false;
    request->calling = emitter;
    request->pages++;
    return true;
}

bool sgi_tool_lookup(segue_request *request, sgi_json error)
{
    int64_t code = 0;
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (code != SGI_RPC_HEADER_MISMATCH || !request->is_call || request->pages ||
        !has_headers(request->session))
        return false;
    return send_list(request, (sgi_json){0});
}

bool sgi_tool_lookup_clean(segue_request *request, sgi_json result, sgi_buf *out)
{
    sgi_json params = {request->params, request->params_len};
    bool begins = !sgi_json_get(params, "cursor").n;
    if (!sgi_str_eq(sgi_str_of(request->method), SGI_STR("tools/list")))
        return false;
    sgi_task_calls_learn(request, result);
    sgi_tool_schemas_learn(&request->session->tool_schemas, result, begins);
    if (!has_headers(request->session))
        return false;
    return sgi_tool_headers_learn(&request->session->tools, result, begins, out);
}
