/* tools/call as a task of 2025-11-25: there the client says params.task, and only to a
 * tool that takes it (R-1905-10). What tools/list says of the tools is looked up once,
 * by the session itself, before the first call; calls wait for that. A look that fails
 * says nothing about the tools, so it is repeated: a call is sent when its form is known,
 * or it fails. A call that the server refuses for its form is sent once more after
 * another look: a refusal by -32601 means that nothing was run. */
#include "engine/asking/request.h"
#include "engine/dialect/response_modes.h"
#include "engine/hosting/host.h"

#define PAGES_MAX 100
#define LOOKS_MAX 4 /* of one call, that the server answers with an error or not at all */

/* ---- modes of SEP-1905 ---- */

/* A list that is none says nothing. */
static uint8_t modes_of(sgi_json list)
{
    uint8_t bits;
    return sgi_response_modes_read(list, &bits) ? bits : 0;
}

uint8_t sgi_task_calls_modes_of(const segue_session *session, sgi_json given)
{
    const segue_session_options *options = &session->options;
    if (options->no_tasks || sgi_json_get(given, "tasks").n)
        return sgi_task_calls_modes(given);
    return options->response_modes ? (uint8_t)options->response_modes : SGI_MODES_ALL;
}

void sgi_task_calls_write_capability(sgi_jw *w, const segue_session *session)
{
    sgi_jw_key(w, "tasks");
    sgi_jw_open(w, '{');
    sgi_jw_key(w, "responses");
    sgi_jw_open(w, '{');
    sgi_response_modes_write(w, "modes", sgi_task_calls_modes_of(session, (sgi_json){0}));
    sgi_jw_close(w, '}');
    sgi_hosting_write_tasks(w, session->options.host);
    sgi_jw_close(w, '}');
}

uint8_t sgi_task_calls_modes(sgi_json capabilities)
{
    sgi_json tasks = sgi_json_get(capabilities, "tasks");
    return modes_of(sgi_json_get(sgi_json_get(tasks, "responses"), "modes"));
}

segue_status sgi_task_calls_may_declare(sgi_engine *engine,
                                        const segue_session_options *options,
                                        sgi_json capabilities)
{
    bool own = sgi_json_get(capabilities, "tasks").n > 0;
    return options->response_modes && own
               ? sgi_refuse(engine, SEGUE_E_INVALID,
                            "the option response_modes and the member tasks of the "
                            "capabilities both declare response modes: leave one out")
               : SEGUE_OK;
}

segue_status sgi_task_calls_may_list(segue_session *session, uint32_t modes)
{
    uint32_t missing = modes & ~(uint32_t)session->our_modes;
    uint8_t first = (uint8_t)(missing & (0u - missing));
    return missing ? sgi_refuse(session->engine, SEGUE_E_INVALID,
                                "the session does not declare the response mode \"%s\", "
                                "so that a call cannot list it: open the session with it",
                                sgi_response_mode_name(first))
                   : SEGUE_OK;
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

/* The tools are known: calls that waited for that go. */
static void look_ended(segue_session *session)
{
    segue_request *request, *next;
    session->tool_tasks.whole = true; /* what stands on no page is called plainly */
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

#define LOOKING "tools/list, which says whether the tool runs as a task, failed"

/* Nothing of the call was sent, so another look is safe. */
static void look_again(segue_request *request, const sgi_outcome *outcome)
{
    bool may = request->tries.failures + 1 < LOOKS_MAX;
    char why[SGI_WHY_MAX];
    sgi_outcome lost = *outcome;
    if (outcome->kind == SGI_OUTCOME_LOST || outcome->kind == SGI_OUTCOME_REFUSED) {
        sgi_explain(why, LOOKING, sgi_str_of(outcome->why));
        lost.why = why;
        sgi_tries_cut_off(&request->tries, &lost);
    } else if (may) {
        sgi_tries_back_off(&request->tries, SGI_BACKOFF_FIRST_MS);
    } else if (outcome->kind == SGI_OUTCOME_ERROR) {
        sgi_request_finish_error(request, LOOKING, outcome->json);
    } else if (outcome->kind == SGI_OUTCOME_TIMEOUT) {
        sgi_request_fail(request, SEGUE_E_TIMEOUT, LOOKING ": it was not answered");
    } else {
        sgi_request_fail(request, SEGUE_E_PROTOCOL, LOOKING ": the answer is no list");
    }
}

static void look_failed(segue_session *session, const sgi_outcome *outcome)
{
    segue_request *request, *next;
    char room[SGI_NAME_MAX], why[SGI_WHY_MAX];
    sgi_str said = outcome->why ? sgi_str_of(outcome->why) : SGI_STR("no list came");
    if (outcome->kind == SGI_OUTCOME_ERROR)
        said = sgi_name_text(sgi_json_get(outcome->json, "message"), room);
    sgi_explain(why, LOOKING, said);
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING, "%s", why);
    sgi_tool_tasks_forget(&session->tool_tasks);
    SGI_TAILQ_EACH(request, &session->requests, link, next)
        if (request->waits_for_tools) {
            request->waits_for_tools = false;
            if (request->phase == SGI_PHASE_WAIT)
                look_again(request, outcome);
        }
}

bool sgi_task_calls_doubt(segue_session *session)
{
    segue_request *request;
    bool is_new = false;
    TAILQ_FOREACH(request, &session->requests, link)
        if (request->waits_for_tools) {
            is_new |= !request->era_doubted;
            request->era_doubted = true;
        }
    return is_new;
}

void sgi_task_calls_changed(segue_session *session)
{
    if (session->listing)
        session->list_stale = true;
    else
        sgi_tool_tasks_forget(&session->tool_tasks);
}

static bool is_page(const sgi_outcome *outcome)
{
    return outcome->kind == SGI_OUTCOME_RESULT &&
           sgi_json_kind_of(sgi_json_get(outcome->json, "tools")) == SGI_JSON_ARRAY;
}

/* The page under way: what it says, and whether another one is asked for. */
static void take_page(segue_session *session, sgi_json result)
{
    sgi_json next = sgi_json_get(result, "nextCursor");
    bool more = sgi_json_kind_of(next) == SGI_JSON_STRING;
    sgi_buf cursor = session->list_cursor; /* given back below */
    sgi_buf_init(&session->list_cursor, sgi_engine_mem(session->engine));
    sgi_tool_tasks_learn(&session->tool_tasks, sgi_buf_str(&cursor), result);
    sgi_tool_schemas_learn(&session->tool_schemas, result, !cursor.len);
    sgi_buf_free(&cursor);
    bool fits = session->list_pages < PAGES_MAX;
    if (more && !fits)
        sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                       "tools/list has more than %d pages: tools on later ones are not "
                       "called as tasks",
                       PAGES_MAX);
    sgi_outcome unsent = {.kind = SGI_OUTCOME_LOST, .why = "out of memory"};
    if (!more || !fits)
        look_ended(session);
    else if (!send_list(session, next))
        look_failed(session, &unsent);
}

/* -32601: a server without a list has nothing to say about its tools. */
static bool has_no_list(const sgi_outcome *outcome)
{
    int64_t code = 0;
    sgi_json_int(sgi_json_get(outcome->json, "code"), &code);
    return outcome->kind == SGI_OUTCOME_ERROR && code == SGI_RPC_METHOD_NOT_FOUND;
}

static void listed(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    session->listing = NULL;
    if (!sgi_session_is_open(session))
        return; /* looked again when it is */
    if (is_page(outcome))
        take_page(session, outcome->json);
    else if (has_no_list(outcome))
        look_ended(session);
    else
        look_failed(session, outcome);
}

static bool send_list(segue_session *session, sgi_json cursor)
{
    sgi_sending sending;
    sgi_buf_reset(&session->list_cursor, SIZE_MAX);
    sgi_buf_add_str(&session->list_cursor, cursor);
    if (session->list_cursor.failed)
        return false;
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

/* A look is under way; false: there is no memory for one. */
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

/* What is chosen, as far as the server knows it. When it knows none of it, all is listed:
 * then it says that it falls back (R-1905-3, R-1905-6). */
static uint8_t modes_to_list(const segue_request *request)
{
    const segue_session *session = request->session;
    uint8_t chosen = request->options.response_modes
                         ? (uint8_t)request->options.response_modes
                         : session->our_modes;
    if (!session->peer_modes)
        return 0; /* a server without SEP-1905 */
    chosen &= SGI_MODES_ALL;
    return chosen & session->peer_modes ? chosen & session->peer_modes : chosen;
}

bool sgi_task_calls_prepare(segue_request *request)
{
    segue_session *session = request->session;
    sgi_json params = {request->params, request->params_len};
    sgi_json own = sgi_json_get(params, "task");
    bool era = session->version == SGI_VERSION_2025_11_25;
    request->asks_task = request->adds_task = request->may_stream = false;
    request->listed_modes = modes_to_list(request);
    if (!era || (!own.n && (!request->is_call || !session->has_task_calls)))
        return true;
    if (own.n) { /* the application decides */
        request->asks_task = true;
        request->listed_modes = modes_of(sgi_json_get(own, "responseModes"));
    } else {
        if (!session->tool_tasks.whole) {
            request->waits_for_tools = looks(session);
            if (!request->waits_for_tools)
                sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
            return false;
        }
        request->asks_task = request->adds_task = tool_may(request, params);
    }
    request->may_stream =
        request->asks_task &&
        (request->listed_modes & session->peer_modes & SGI_MODE_STREAMING);
    return true;
}

void sgi_task_calls_write(const segue_request *request, sgi_jw *w)
{
    if (!request->adds_task)
        return;
    sgi_jw_key(w, "task");
    sgi_jw_open(w, '{');
    if (request->options.ttl_ms > 0)
        sgi_jw_member_int(w, "ttl", request->options.ttl_ms);
    if (request->listed_modes)
        sgi_response_modes_write(w, "responseModes", request->listed_modes);
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
