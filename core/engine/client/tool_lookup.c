/* Connects requests with the headers of tools, over HTTP in 2026-07-28. Every result of
 * tools/list is read for header parameters, and invalid tools are removed before the
 * application gets the result. If the server refuses a tools/call because of its headers,
 * the client reads tools/list page by page and sends the call again once (2026-07-28
 * basic/transports/streamable-http, "Client Behavior"). The refusal means that the tool
 * did not run, so a second call is safe. The exchanges of these pages belong to the
 * request itself: cancel, timeout and the end of the session end them like the call. */
#include "engine/client/dialects.h"

#define PAGES_MAX 100

static bool has_headers(const segue_session *session)
{
    return session->conn->exchanging &&
           sgi_facts(session->version)->header_repeats == SGI_REPEATS_ALL;
}

static bool send_list(segue_request *request, sgi_json cursor);

static void listed(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    sgi_json cursor = sgi_json_get(outcome->json, "nextCursor");
    request->calling = NULL;
    if (outcome->kind == SGI_OUTCOME_LOST) {
        sgi_tries_retry_lost(&request->tries, outcome);
        return;
    }
    if (outcome->kind == SGI_OUTCOME_RESULT) {
        bool begins = request->pages == 1;
        sgi_tool_headers_learn(&request->session->tools.headers, outcome->json, begins,
                               NULL);
        sgi_tool_schemas_learn(&request->session->tools.schemas, outcome->json, begins);
        if (sgi_json_kind_of(cursor) == SGI_JSON_STRING && request->pages < PAGES_MAX &&
            send_list(request, cursor))
            return;
    }
    /* the call is sent once more; a second refusal of its headers is the answer of the
     * call */
    sgi_request_send_due(request);
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

bool sgi_request_look_up_tool_headers(segue_request *request, sgi_json error)
{
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (code != SGI_RPC_HEADER_MISMATCH || !request->is_call || request->pages ||
        !has_headers(request->session))
        return false;
    return send_list(request, (sgi_json){0});
}

/* True for a request of tools/list. Sets *begins to true when the request asks for the
 * first page. */
static bool is_list(const segue_request *request, bool *begins)
{
    sgi_json params = request->params;
    if (strcmp(request->method, "tools/list") != 0)
        return false;
    *begins = !sgi_json_get(params, "cursor").n;
    return true;
}

void sgi_request_store_listed_tools(segue_request *request, sgi_json result)
{
    bool begins;
    if (!is_list(request, &begins))
        return;
    sgi_cli_note_listed_tools(request, result);
    sgi_tool_schemas_learn(&request->session->tools.schemas, result, begins);
}

bool sgi_tool_list_remove_invalid(segue_request *request, sgi_json result, sgi_buf *out)
{
    bool begins;
    return is_list(request, &begins) && has_headers(request->session) &&
           sgi_tool_headers_learn(&request->session->tools.headers, result, begins, out);
}
