/* tools/call as a task of 2025-11-25: there the client says params.task, and only to a
 * tool that takes it (R-1905-10). What tools/list says of the tools is looked up once,
 * by the session itself, before the first call; calls wait for that. A call that the
 * server refuses for its form is sent once more after another look: a refusal by -32601
 * means that nothing was run. */
#include "engine/asking/request.h"
#include "engine/dialect/response_modes.h"
#include "engine/hosting/host.h"

#define PAGES_MAX 100

/* ---- modes of SEP-1905 ---- */

/* A list that is none says nothing. */
static uint8_t modes_of(sgi_json list)
{
    uint8_t bits;
    return sgi_response_modes_read(list, &bits) ? bits : 0;
}

void sgi_task_calls_write_capability(sgi_jw *w, const segue_server *host)
{
    sgi_jw_key(w, "tasks");
    sgi_jw_open(w, '{');
    sgi_jw_key(w, "responses");
    sgi_jw_open(w, '{');
    sgi_response_modes_write(w, "modes",
                             SGI_MODE_TASK | SGI_MODE_IMMEDIATE | SGI_MODE_STREAMING);
    sgi_jw_close(w, '}');
    sgi_hosting_write_tasks(w, host);
    sgi_jw_close(w, '}');
}

uint8_t sgi_task_calls_modes(sgi_json capabilities)
{
    sgi_json tasks = sgi_json_get(capabilities, "tasks");
    return modes_of(sgi_json_get(sgi_json_get(tasks, "responses"), "modes"));
}

void sgi_task_calls_begin(segue_session *session, sgi_json capabilities)
{
    sgi_json requests = sgi_json_get(sgi_json_get(capabilities, "tasks"), "requests");
    sgi_json call = sgi_json_get(sgi_json_get(requests, "tools"), "call");
    bool on = session->version == SGI_VERSION_2025_11_25 && !session->options.no_tasks &&
              sgi_json_kind_of(call) == SGI_JSON_OBJECT;
    session->has_task_calls = on;
    session->peer_modes = on ? sgi_task_calls_modes(capabilities) : 0;
    sgi_tool_tasks_forget(&session->tool_tasks);
}

/* ---- what is known of the tools ---- */

static bool send_list(segue_session *session, sgi_json cursor);

/* The look is over, whatever it brought: calls that waited for it go. */
static void look_ended(segue_session *session)
{
    segue_request *request, *next;
    session->tool_tasks.whole = true; /* what is not known is called plainly */
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        if (!sgi_session_is_open(session))
            return;
        if (request->phase == SGI_PHASE_WAIT)
            sgi_request_go(request);
    }
    if (session->list_stale)
        sgi_tool_tasks_forget(&session->tool_tasks);
    session->list_stale = false;
}

void sgi_task_calls_changed(segue_session *session)
{
    if (session->listing)
        session->list_stale = true;
    else
        sgi_tool_tasks_forget(&session->tool_tasks);
}

static void listed(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    sgi_json next = sgi_json_get(outcome->json, "nextCursor");
    sgi_buf cursor;
    session->listing = NULL;
    if (!sgi_session_is_open(session))
        return; /* looked again when it is */
    sgi_buf_init(&cursor, sgi_engine_mem(session->engine));
    sgi_buf_add_str(&cursor, sgi_buf_str(&session->list_cursor));
    if (outcome->kind == SGI_OUTCOME_RESULT && !cursor.failed) {
        sgi_tool_tasks_learn(&session->tool_tasks, sgi_buf_str(&cursor), outcome->json);
        sgi_tool_schemas_learn(&session->tool_schemas, outcome->json, !cursor.len);
    }
    sgi_buf_free(&cursor);
    bool more = outcome->kind == SGI_OUTCOME_RESULT &&
                sgi_json_kind_of(next) == SGI_JSON_STRING &&
                session->list_pages < PAGES_MAX;
    if (!more || !send_list(session, next))
        look_ended(session);
}

static bool send_list(segue_session *session, sgi_json cursor)
{
    sgi_sending sending;
    sgi_buf_reset(&session->list_cursor, SIZE_MAX);
    sgi_buf_add_str(&session->list_cursor, cursor);
    sgi_emitter *emitter = sgi_emitter_begin(session, &sending, SGI_STR("tools/list"));
    if (!emitter)
        return false;
    emitter->done = listed;
    if (cursor.n)
        sgi_jw_member_raw(&sending.w, "cursor", cursor);
    if (!sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        return false;
    session->listing = emitter;
    session->list_pages++;
    return true;
}

/* true: the call waits. Without memory it goes as it is. */
static bool looks(segue_session *session)
{
    if (session->listing)
        return true;
    session->list_pages = 0;
    session->list_stale = false;
    return send_list(session, (sgi_json){0});
}

void sgi_task_calls_learn(const segue_request *request, sgi_json result)
{
    segue_session *session = request->session;
    sgi_json params = {request->params, request->params_len};
    if (session->has_task_calls)
        sgi_tool_tasks_learn(&session->tool_tasks, sgi_json_get(params, "cursor"),
                             result);
}

/* ---- a call ---- */

static bool tool_may(const segue_request *request, sgi_json params)
{
    sgi_buf name;
    sgi_buf_init(&name, sgi_engine_mem(request->engine));
    bool may = sgi_json_decode(sgi_json_get(params, "name"), &name) && !name.failed &&
               name.len &&
               sgi_tool_tasks_may(&request->session->tool_tasks, sgi_buf_str(&name));
    sgi_buf_free(&name);
    return may;
}

bool sgi_task_calls_prepare(segue_request *request)
{
    segue_session *session = request->session;
    sgi_json params = {request->params, request->params_len};
    sgi_json own = sgi_json_get(params, "task");
    uint8_t listed_modes = session->our_modes & session->peer_modes;
    bool era = session->version == SGI_VERSION_2025_11_25;
    request->asks_task = request->adds_task = request->may_stream = false;
    if (!era || (!own.n && (!request->is_call || !session->has_task_calls)))
        return true;
    if (own.n) { /* the application decides */
        request->asks_task = true;
        listed_modes = modes_of(sgi_json_get(own, "responseModes"));
    } else {
        if (!session->tool_tasks.whole && looks(session))
            return false;
        request->asks_task = request->adds_task = tool_may(request, params);
    }
    request->may_stream =
        request->asks_task && (listed_modes & session->peer_modes & SGI_MODE_STREAMING);
    return true;
}

void sgi_task_calls_write(const segue_request *request, sgi_jw *w)
{
    const segue_session *session = request->session;
    if (!request->adds_task)
        return;
    sgi_jw_key(w, "task");
    sgi_jw_open(w, '{');
    if (request->options.ttl_ms > 0)
        sgi_jw_member_int(w, "ttl", request->options.ttl_ms);
    if (session->our_modes & session->peer_modes)
        sgi_response_modes_write(w, "responseModes",
                                 session->our_modes & session->peer_modes);
    sgi_jw_close(w, '}');
}

bool sgi_task_calls_reform(segue_request *request, sgi_json error)
{
    segue_session *session = request->session;
    sgi_json params = {request->params, request->params_len};
    int64_t code = 0;
    sgi_json_int(sgi_json_get(error, "code"), &code);
    if (code != SGI_RPC_METHOD_NOT_FOUND || !request->is_call || request->reformed ||
        !session->has_task_calls || sgi_json_get(params, "task").n)
        return false;
    request->reformed = true;
    if (!session->listing)
        sgi_tool_tasks_forget(&session->tool_tasks);
    sgi_request_go(request);
    return true;
}
