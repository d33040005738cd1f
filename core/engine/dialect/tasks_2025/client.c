/* Sends tools/call as a task of 2025-11-25. In this revision the client asks for a task
 * by params.task. The client may ask only if the tool accepts tasks (R-1905-10). So the
 * session itself reads tools/list once, before the first call, and calls wait for this.
 * If reading fails, tools/list is read again. In the end each call is sent with or
 * without params.task, or fails. If the server refuses a call because it has, or lacks,
 * params.task, tools/list is read again and the call is sent once more. This is safe,
 * because the error -32601 means that the tool did not run. */
#include "engine/dialect/rows.h"

#include "base/thresholds.h"
#include "engine/client/hosting.h"
#include "engine/response_modes.h"
#include "engine/dialect/tasks_2025/follow_2025.h"

#define PAGES_MAX 100
/* the largest number of times that tools/list is read for one call */
#define LOOKS_MAX SGI_THRESHOLD(task_looks)

/* ---- modes of SEP-1905 ---- */

/* Returns the set of response modes in a list. The set is empty when the list is
 * malformed. */
static uint8_t modes_of(sgi_json list)
{
    uint8_t bits;
    return sgi_response_modes_read(list, &bits) ? bits : 0;
}

static uint8_t modes_to_declare(const segue_session *session, sgi_json given)
{
    const segue_session_options *options = &session->options;
    if (options->no_tasks || sgi_json_get(given, "tasks").n)
        return sgi_2025_modes_of_capabilities(given);
    return options->response_modes ? (uint8_t)options->response_modes : SGI_MODES_ALL;
}

uint8_t sgi_2025_modes_of_capabilities(sgi_json capabilities)
{
    sgi_json tasks = sgi_json_get(capabilities, "tasks");
    return modes_of(sgi_json_get(sgi_json_get(tasks, "responses"), "modes"));
}

segue_status sgi_2025_check_modes_of_session(sgi_engine *engine,
                                             const segue_session_options *options,
                                             sgi_json capabilities)
{
    bool own = sgi_json_get(capabilities, "tasks").n > 0;
    return options->response_modes && own
               ? sgi_refuse(
                     engine, SEGUE_E_INVALID,
                     "the option response_modes and the member tasks of the "
                     "capabilities both declare response modes: set only one of the two")
               : SEGUE_OK;
}

segue_status sgi_2025_check_modes_of_call(segue_session *session, uint32_t modes)
{
    uint32_t missing = modes & ~(uint32_t)session->handshake.modes;
    uint8_t first = (uint8_t)(missing & (0u - missing));
    return missing
               ? sgi_refuse(session->engine, SEGUE_E_INVALID,
                            "the session does not declare the response mode \"%s\", so a "
                            "call cannot list this mode: open the session with the mode",
                            sgi_response_mode_name(first))
               : SEGUE_OK;
}

/* ---- the handshake ---- */

/* Writes the capability `tasks`. Writes nothing when the application declares this
 * capability itself. */
static void write_capabilities(const segue_session *session, sgi_json given, sgi_jw *w)
{
    if (session->options.no_tasks || sgi_json_get(given, "tasks").n)
        return;
    sgi_jw_key(w, "tasks");
    sgi_jw_open(w, '{');
    sgi_jw_key(w, "responses");
    sgi_jw_open(w, '{');
    sgi_response_modes_write(w, "modes", modes_to_declare(session, (sgi_json){0}));
    sgi_jw_close(w, '}');
    sgi_question_host_write_tasks(w, session);
    sgi_jw_close(w, '}');
}

/* Returns the name of the experimental capability for void segments if the client
 * declares streaming, otherwise NULL. With this capability the client accepts that
 * segments become void. */
static const char *experimental(const segue_session *session, sgi_json given)
{
    return modes_to_declare(session, given) & SGI_MODE_STREAMING ? SGI_REPLACE : NULL;
}

static void declared(segue_session *session, sgi_json capabilities)
{
    session->handshake.modes = sgi_2025_modes_of_capabilities(capabilities);
}

static void read_server_capabilities(segue_session *session, sgi_json capabilities)
{
    sgi_json extra = sgi_json_get(capabilities, "experimental");
    sgi_json requests = sgi_json_get(sgi_json_get(capabilities, "tasks"), "requests");
    sgi_json call = sgi_json_get(sgi_json_get(requests, "tools"), "call");
    bool on = session->version == SGI_VERSION_2025_11_25 && !session->options.no_tasks &&
              sgi_json_kind_of(call) == SGI_JSON_OBJECT;
    session->server.task_calls = on;
    session->server.modes = on ? sgi_2025_modes_of_capabilities(capabilities) : 0;
    session->server.pulls_from_start = sgi_json_get(extra, "dev.segue/fromSeqNr").n > 0;
    sgi_tool_tasks_clear(&sgi_session_2025_of(session)->tools);
}

/* ---- reading tools/list ---- */

/* Returns the state of dialect L (tasks of 2025-11-25) for this request; NULL when the
 * request has no such state. */
static sgi_call_2025 *call_of(const segue_request *request)
{
    return sgi_cli_dialect_state_find(request, &sgi_cli_tasks_2025);
}

static bool send_list(segue_session *session, sgi_json cursor);

/* Sends the calls that have waited for the list of tools. The list was read. */
static void look_ended(segue_session *session)
{
    sgi_session_2025 *own = sgi_session_2025_of(session);
    segue_request *request, *next;
    /* the whole list was read, so a tool that was on no page is called without
     * params.task */
    own->tools.whole = true;
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        if (!sgi_session_is_open(session))
            return;
        if (request->phase == SGI_PHASE_WAIT)
            sgi_request_send_due(request);
    }
    if (own->stale)
        sgi_tool_tasks_clear(&own->tools);
    own->stale = false;
}

#define LOOKING "the client could not learn by tools/list whether the tool runs as a task"

/* Schedules another read of tools/list for a waiting call, or ends the call when no
 * attempt is left. The call was not sent yet, so it is safe to try again. */
static void look_again(segue_request *request, const sgi_outcome *outcome)
{
    bool may = request->tries.failures + 1 < LOOKS_MAX;
    char why[SGI_WHY_MAX];
    sgi_outcome lost = *outcome;
    if (outcome->kind == SGI_OUTCOME_LOST || outcome->kind == SGI_OUTCOME_REFUSED) {
        sgi_explain_failure(why, LOOKING, sgi_str_of(outcome->why));
        lost.why = why;
        sgi_tries_retry_lost(&request->tries, &lost);
    } else if (may) {
        sgi_tries_back_off(&request->tries, SGI_BACKOFF_FIRST_MS);
    } else if (outcome->kind == SGI_OUTCOME_ERROR) {
        sgi_request_finish_error(request, LOOKING, outcome->json);
    } else if (outcome->kind == SGI_OUTCOME_TIMEOUT) {
        sgi_request_fail(request, SEGUE_E_TIMEOUT, LOOKING ": the server did not answer");
    } else {
        sgi_request_fail(request, SEGUE_E_PROTOCOL,
                         LOOKING ": the answer has no list of tools");
    }
}

static void look_failed(segue_session *session, const sgi_outcome *outcome)
{
    segue_request *request, *next;
    char room[SGI_NAME_MAX], why[SGI_WHY_MAX];
    sgi_str said = outcome->why ? sgi_str_of(outcome->why)
                                : SGI_STR("the answer has no list of tools");
    if (outcome->kind == SGI_OUTCOME_ERROR)
        said = sgi_method_text(sgi_json_get(outcome->json, "message"), room);
    sgi_explain_failure(why, LOOKING, said);
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING, "%s", why);
    sgi_tool_tasks_clear(&sgi_session_2025_of(session)->tools);
    SGI_TAILQ_EACH(request, &session->requests, link, next) {
        sgi_call_2025 *call = call_of(request);
        if (!call || !call->form.waits)
            continue;
        call->form.waits = false;
        if (request->phase == SGI_PHASE_WAIT)
            look_again(request, outcome);
    }
}

/* Handles a refusal of tools/list, which may come from a server of another era. Each
 * waiting call notes the refusal once. Returns false when every waiting call had noted a
 * refusal before. */
static bool may_be_another_era(sgi_emitter *emitter)
{
    segue_session *session = emitter->session;
    segue_request *request;
    bool is_new = false;
    if (emitter != sgi_session_2025_of(session)->listing)
        return false;
    TAILQ_FOREACH(request, &session->requests, link)
        if (sgi_2025_form(request).waits) {
            is_new |= !request->era_doubted;
            request->era_doubted = true;
        }
    return is_new;
}

/* Forgets the tools when the server reports that its list of tools has changed. Returns
 * false, because the application gets the notification too. */
static bool notified(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken)
{
    sgi_session_2025 *own = sgi_session_2025_of(session);
    (void)msg;
    (void)taken;
    if (!sgi_str_eq(method, SGI_STR("notifications/tools/list_changed")))
        return false;
    if (own->listing)
        own->stale = true;
    else
        sgi_tool_tasks_clear(&own->tools);
    return false;
}

static bool is_page(const sgi_outcome *outcome)
{
    return outcome->kind == SGI_OUTCOME_RESULT &&
           sgi_json_kind_of(sgi_json_get(outcome->json, "tools")) == SGI_JSON_ARRAY;
}

/* Reads a page of tools/list, and requests the next page if there is one. */
static void take_page(segue_session *session, sgi_json result)
{
    sgi_session_2025 *own = sgi_session_2025_of(session);
    sgi_json next = sgi_json_get(result, "nextCursor");
    bool more = sgi_json_kind_of(next) == SGI_JSON_STRING;
    /* The code below overwrites own->cursor. So the old text is kept here until the end
     * of the function. */
    sgi_buf cursor = own->cursor;
    sgi_buf_init(&own->cursor, sgi_engine_mem(session->engine));
    sgi_tool_tasks_learn(&own->tools, sgi_buf_str(&cursor), result);
    sgi_tool_schemas_learn(&session->tools.schemas, result, !cursor.len);
    sgi_buf_free(&cursor);
    bool fits = own->pages < PAGES_MAX;
    if (more && !fits)
        sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                       "tools/list has more than %d pages: tools on later pages are not "
                       "called as tasks",
                       PAGES_MAX);
    sgi_outcome unsent = {.kind = SGI_OUTCOME_LOST, .why = "out of memory"};
    if (!more || !fits)
        look_ended(session);
    else if (!send_list(session, next))
        look_failed(session, &unsent);
}

/* True for error -32601: the server has no tools/list, so the client cannot learn which
 * tools accept tasks. */
static bool has_no_list(const sgi_outcome *outcome)
{
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(outcome->json, "code"), &code);
    return outcome->kind == SGI_OUTCOME_ERROR && code == SGI_RPC_METHOD_NOT_FOUND;
}

static void listed(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    sgi_session_2025_of(session)->listing = NULL;
    if (!sgi_session_is_open(session))
        return; /* the session is not open; when it opens, it sends tools/list again */
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
    sgi_session_2025 *own = sgi_session_2025_of(session);
    sgi_buf_reset(&own->cursor, SIZE_MAX);
    sgi_buf_add_str(&own->cursor, cursor);
    if (own->cursor.failed)
        return false;
    sgi_emitter *emitter = sgi_emitter_begin(session, &sending, SGI_STR("tools/list"));
    if (!emitter)
        return false;
    emitter->done = listed;
    if (cursor.n)
        sgi_jw_member_raw(&sending.w, "cursor", cursor);
    if (!sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        return false;
    own->listing = emitter;
    own->pages++;
    return true;
}

/* Begins to read tools/list, unless the session reads it already. Returns false when out
 * of memory. */
static bool looks(segue_session *session)
{
    sgi_session_2025 *own = sgi_session_2025_of(session);
    if (own->listing)
        return true;
    own->pages = 0;
    own->stale = false;
    return send_list(session, (sgi_json){0});
}

/* Learns from a page of tools/list that the application has requested. */
static void tools_listed(const segue_request *request, sgi_json result)
{
    segue_session *session = request->session;
    sgi_json params = request->params;
    if (session->server.task_calls)
        sgi_tool_tasks_learn(&sgi_session_2025_of(session)->tools,
                             sgi_json_get(params, "cursor"), result);
}

/* ---- the params of a call ---- */

static bool tool_may(const segue_request *request, sgi_json params)
{
    sgi_buf name;
    sgi_buf_init(&name, sgi_engine_mem(request->engine));
    bool may = sgi_json_decode(sgi_json_get(params, "name"), &name) && !name.failed &&
               name.len &&
               sgi_tool_tasks_allow(&sgi_session_2025_of(request->session)->tools,
                                    sgi_buf_str(&name));
    sgi_buf_free(&name);
    return may;
}

/* Returns the response modes that the call lists: those of the application's modes that
 * the server also has. If the server has none of them, the call lists all of the
 * application's modes, and the server reports which other mode it uses (R-1905-3,
 * R-1905-6). */
static uint8_t modes_to_list(const segue_request *request)
{
    const segue_session *session = request->session;
    uint8_t chosen = request->options.response_modes
                         ? (uint8_t)request->options.response_modes
                         : session->handshake.modes;
    if (!session->server.modes)
        /* the server declares no response modes (SEP-1905), so the call lists none */
        return 0;
    chosen &= SGI_MODES_ALL;
    return chosen & session->server.modes ? chosen & session->server.modes : chosen;
}

/* Decides by the tool whether the call asks for a task. Returns false when the call must
 * wait for tools/list, or has ended. */
static bool ask_tool(segue_request *request, sgi_2025_call_members *form, sgi_json params)
{
    segue_session *session = request->session;
    if (!sgi_session_2025_of(session)->tools.whole) {
        form->waits = looks(session);
        if (!form->waits)
            sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
        return false;
    }
    if (tool_may(request, params))
        form->wish = SGI_TASK_WISH_ADDED;
    return true;
}

static bool prepare(segue_request *request)
{
    segue_session *session = request->session;
    sgi_json params = request->params;
    bool era = session->version == SGI_VERSION_2025_11_25;
    sgi_json own = era ? sgi_json_get(params, "task") : (sgi_json){0};
    sgi_call_2025 *call = call_of(request);
    if (call)
        call->form = (sgi_2025_call_members){.reformed = call->form.reformed};
    bool asks =
        request->is_call && session->server.task_calls && !request->options.no_task;
    if (!era || (!own.n && !asks))
        return true;
    call = sgi_cli_dialect_state_find_or_new(request, &sgi_cli_tasks_2025);
    if (!call) {
        sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
        return false;
    }
    sgi_2025_call_members *form = &call->form;
    form->modes = modes_to_list(request);
    if (own.n) { /* the application's own params have the member `task` */
        form->wish = SGI_TASK_WISH_OWN;
        form->modes = modes_of(sgi_json_get(own, "responseModes"));
    } else if (!ask_tool(request, form, params)) {
        return false;
    }
    form->may_stream = form->wish != SGI_TASK_WISH_NONE &&
                       (form->modes & session->server.modes & SGI_MODE_STREAMING);
    return true;
}

static void write_params(const segue_request *request, sgi_jw *w)
{
    sgi_2025_call_members form = sgi_2025_form(request);
    if (form.wish != SGI_TASK_WISH_ADDED)
        return;
    sgi_jw_key(w, "task");
    sgi_jw_open(w, '{');
    if (request->options.ttl_ms > 0)
        sgi_jw_member_int(w, "ttl", request->options.ttl_ms);
    if (form.modes)
        sgi_response_modes_write(w, "responseModes", form.modes);
    sgi_jw_close(w, '}');
}

static bool change_form(segue_request *request, sgi_json error)
{
    segue_session *session = request->session;
    sgi_session_2025 *own = sgi_session_2025_of(session);
    sgi_call_2025 *call = call_of(request);
    sgi_json params = request->params;
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (code != SGI_RPC_METHOD_NOT_FOUND || !call || call->form.reformed ||
        !request->is_call || !session->server.task_calls ||
        sgi_json_get(params, "task").n)
        return false;
    call->form.reformed = true;
    if (!own->listing)
        sgi_tool_tasks_clear(&own->tools);
    sgi_request_send_due(request);
    return true;
}

static void offer(segue_request *request, sgi_emitter *emitter)
{
    if (sgi_2025_form(request).may_stream)
        emitter->more = sgi_2025_take_partial_answer;
}

static bool answer(segue_request *request, const sgi_result *result)
{
    return request->session->version == SGI_VERSION_2025_11_25 &&
           sgi_2025_take_first_answer(request, result->json);
}

static bool asks_for_task(const segue_request *request)
{
    return sgi_2025_form(request).wish != SGI_TASK_WISH_NONE;
}

static sgi_json task_in(const segue_session *session, sgi_json result)
{
    sgi_2025_response reply;
    if (session->version != SGI_VERSION_2025_11_25)
        return (sgi_json){0};
    sgi_2025_response_read(result, &reply);
    return reply.kind == SGI_2025_RESPONSE_PLAIN || reply.complete ? (sgi_json){0}
                                                                   : reply.named;
}

/* ---- tokens and states ---- */

static bool read_token(sgi_json token, sgi_request_spec *spec, segue_status *status)
{
    int64_t version = 0;
    sgi_json_read_int(sgi_json_get(token, "d"), &version);
    if (version != 1 || !sgi_follow_read_token(token, spec, status))
        return false;
    spec->follower = &sgi_2025_following;
    return true;
}

static void free_state(segue_request *request, sgi_cli_dialect_state *state)
{
    sgi_2025_free_task(request, (sgi_call_2025 *)state);
}

static void begin(segue_session *session, sgi_cli_dialect_state *state)
{
    sgi_session_2025 *own = (sgi_session_2025 *)state;
    sgi_tool_tasks_init(&own->tools, session->engine);
    sgi_buf_init(&own->cursor, sgi_engine_mem(session->engine));
    own->waits.max = SGI_WAITS_MAX;
}

static void free_session(segue_session *session, sgi_cli_dialect_state *state)
{
    sgi_session_2025 *own = (sgi_session_2025 *)state;
    (void)session;
    sgi_tool_tasks_free(&own->tools);
    sgi_buf_free(&own->cursor);
}

static const sgi_cli_session_hooks session_hooks = {
    .state_size = sizeof(sgi_session_2025),
    .begin = begin,
    .free = free_session,
    .write_capabilities = write_capabilities,
    .experimental = experimental,
    .declared = declared,
    .read_server_capabilities = read_server_capabilities,
    .may_be_another_era = may_be_another_era};

const sgi_cli_dialect sgi_cli_tasks_2025 = {
    .name = "tasks of 2025-11-25",
    .following = &sgi_2025_following,
    .session_hooks = &session_hooks,
    .state_size = sizeof(sgi_call_2025),
    .free_state = free_state,
    .read_token = read_token,
    .prepare = prepare,
    .offer = offer,
    .write_params = write_params,
    .answer = answer,
    .change_form = change_form,
    .notified = notified,
    .asks_for_task = asks_for_task,
    .may_be_task = asks_for_task,
    .task_in = task_in,
    .tools_listed = tools_listed,
};
