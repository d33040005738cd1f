/* Calls the functions of all dialects, in the order of sgi_cli_dialects. Other files call
 * dialects only through this file. */
#include "engine/client/dialects.h"

#include "wire/json_copy.h"

#define EACH_ROW(row)                                                                    \
    for (const sgi_cli_dialect *const *at_ = sgi_cli_dialects, *row;                     \
         (row = *at_) != NULL; at_++)

/* ---- the states of requests and sessions ---- */

static void *find(sgi_cli_dialect_state *state, const sgi_cli_dialect *dialect)
{
    while (state && state->dialect != dialect)
        state = state->next;
    return state;
}

void *sgi_cli_dialect_state_find(const segue_request *request,
                                 const sgi_cli_dialect *dialect)
{
    return find(request->states, dialect);
}

void *sgi_cli_dialect_state_find_or_new(segue_request *request,
                                        const sgi_cli_dialect *dialect)
{
    sgi_cli_dialect_state *state = sgi_cli_dialect_state_find(request, dialect);
    if (state)
        return state;
    state = sgi_zalloc(sgi_engine_mem(request->engine), dialect->state_size);
    if (!state)
        return NULL;
    state->dialect = dialect;
    state->next = request->states;
    request->states = state;
    return state;
}

static void free_state(segue_request *request, sgi_cli_dialect_state *state)
{
    const sgi_cli_dialect *dialect = state->dialect;
    if (dialect->free_state)
        dialect->free_state(request, state);
    sgi_free(sgi_engine_mem(request->engine), state, dialect->state_size);
}

void sgi_cli_dialect_state_drop(segue_request *request, const sgi_cli_dialect *dialect)
{
    sgi_cli_dialect_state **at = &request->states;
    while (*at && (*at)->dialect != dialect)
        at = &(*at)->next;
    sgi_cli_dialect_state *state = *at;
    if (!state)
        return;
    *at = state->next;
    free_state(request, state);
}

void sgi_cli_dialect_states_free(segue_request *request)
{
    while (request->states)
        sgi_cli_dialect_state_drop(request, request->states->dialect);
}

/* ---- sessions ---- */

#define EACH_GREETING(row)                                                               \
    EACH_ROW(row)                                                                        \
        if (row->session_hooks)

void *sgi_cli_dialect_session_state(const segue_session *session,
                                    const sgi_cli_dialect *dialect)
{
    return find(session->states, dialect);
}

bool sgi_cli_dialect_session_states_new(segue_session *session)
{
    EACH_GREETING(row) {
        size_t size = row->session_hooks->state_size;
        sgi_cli_dialect_state *state =
            size ? sgi_zalloc(sgi_engine_mem(session->engine), size) : NULL;
        if (size && !state)
            return false;
        if (state) {
            state->dialect = row;
            state->next = session->states;
            session->states = state;
        }
        if (row->session_hooks->begin)
            row->session_hooks->begin(session, state);
    }
    return true;
}

void sgi_cli_dialect_session_states_free(segue_session *session)
{
    sgi_cli_dialect_state *state;
    while ((state = session->states)) {
        const sgi_cli_session_hooks *session_hooks = state->dialect->session_hooks;
        session->states = state->next;
        session_hooks->free(session, state);
        sgi_free(sgi_engine_mem(session->engine), state, session_hooks->state_size);
    }
}

sgi_version sgi_cli_version_to_offer(const segue_session *session)
{
    EACH_GREETING(row)
        if (row->session_hooks->version != SGI_VERSION_UNKNOWN &&
            row->session_hooks->declares(session))
            return row->session_hooks->version;
    return SGI_VERSION_UNKNOWN;
}

void sgi_cli_write_capabilities(const segue_session *session, sgi_json given, sgi_jw *w)
{
    EACH_GREETING(row)
        if (row->session_hooks->write_capabilities)
            row->session_hooks->write_capabilities(session, given, w);
}

void sgi_cli_write_empty_capabilities(const segue_session *session, sgi_json given,
                                      sgi_jw *w)
{
    EACH_GREETING(row) {
        const char *name = row->session_hooks->capability;
        if (name && row->session_hooks->declares(session) && !sgi_json_get(given, name).n)
            sgi_jw_member_raw(w, name, SGI_STR("{}"));
    }
}

/* True for a capability that a dialect declares. The application must not declare such a
 * capability. */
static bool is_owned(const sgi_json_member *member)
{
    EACH_GREETING(row)
        if (row->session_hooks->modern_capability &&
            sgi_json_key_is(member, row->session_hooks->modern_capability))
            return true;
    return false;
}

void sgi_cli_write_modern_capabilities(const segue_session *session, sgi_json given,
                                       const char *except, sgi_jw *w)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(given, &at, &member);)
        if (!sgi_json_key_is(&member, except) && !is_owned(&member))
            sgi_jw_copy_member(w, &member);
    EACH_GREETING(row)
        if (row->session_hooks->modern_capability &&
            row->session_hooks->declares(session))
            sgi_jw_member_raw(w, row->session_hooks->modern_capability, SGI_STR("{}"));
}

bool sgi_cli_declares_experimental(const segue_session *session, sgi_json given)
{
    EACH_GREETING(row)
        if (row->session_hooks->experimental &&
            row->session_hooks->experimental(session, given))
            return true;
    return false;
}

void sgi_cli_write_experimental(const segue_session *session, sgi_json given,
                                sgi_json own, sgi_jw *w)
{
    EACH_GREETING(row) {
        const char *name = row->session_hooks->experimental
                               ? row->session_hooks->experimental(session, given)
                               : NULL;
        if (name && !sgi_json_get(own, name).n)
            sgi_jw_member_raw(w, name, SGI_STR("{}"));
    }
}

void sgi_cli_note_declared_capabilities(segue_session *session, sgi_json capabilities)
{
    EACH_GREETING(row)
        if (row->session_hooks->declared)
            row->session_hooks->declared(session, capabilities);
}

void sgi_cli_read_server_capabilities(segue_session *session, sgi_json capabilities)
{
    EACH_GREETING(row)
        if (row->session_hooks->read_server_capabilities)
            row->session_hooks->read_server_capabilities(session, capabilities);
}

bool sgi_cli_handle_possible_era_change(sgi_emitter *emitter)
{
    EACH_GREETING(row)
        if (row->session_hooks->may_be_another_era &&
            row->session_hooks->may_be_another_era(emitter))
            return true;
    return false;
}

const sgi_cli_follow_ops *sgi_cli_follow_ops_of(const segue_session *session)
{
    EACH_ROW(row)
        if (row->following && row->following->fits(session))
            return row->following;
    return NULL;
}

/* ---- tokens ---- */

bool sgi_cli_restore_resumed_request(segue_request *request, const sgi_request_spec *spec)
{
    EACH_ROW(row)
        if (row->take_over && !row->take_over(request, spec))
            return false;
    return true;
}

bool sgi_cli_write_token_part(const segue_request *request, sgi_jw *w)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->write_token) {
            state->dialect->write_token(request, w);
            return true;
        }
    return false;
}

bool sgi_cli_read_token_part(sgi_json token, sgi_request_spec *spec, segue_status *status)
{
    EACH_ROW(row)
        if (row->read_token && row->read_token(token, spec, status))
            return true;
    return false;
}

/* ---- the call ---- */

static const sgi_cli_dialect *resuming(const segue_request *request)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->send_again)
            return state->dialect;
    return NULL;
}

bool sgi_cli_is_resumable(const segue_request *request)
{
    return resuming(request) != NULL;
}

bool sgi_cli_can_ask_answer_again(segue_request *request)
{
    EACH_ROW(row)
        if (row->fits && !row->fits(request))
            return false;
    return true;
}

bool sgi_cli_ask_answer_again(segue_request *request)
{
    const sgi_cli_dialect *row = resuming(request);
    if (row)
        row->send_again(request);
    return row != NULL;
}

sgi_str sgi_cli_server_resume_token(const segue_request *request)
{
    const sgi_cli_dialect *row = resuming(request);
    return row && row->resume_token ? row->resume_token(request) : (sgi_str){0};
}

sgi_emitter *sgi_cli_resume_ended_call(segue_session *session, int64_t id, sgi_str token)
{
    sgi_emitter *emitter = NULL;
    EACH_ROW(row)
        if (!emitter && row->resume)
            emitter = row->resume(session, id, token);
    return emitter;
}

bool sgi_cli_prepare_call(segue_request *request)
{
    EACH_ROW(row)
        if (row->prepare && !row->prepare(request))
            return false;
    return true;
}

void sgi_cli_offer_dialects(segue_request *request, sgi_emitter *emitter)
{
    EACH_ROW(row)
        if (row->offer)
            row->offer(request, emitter);
}

void sgi_cli_write_call_params(const segue_request *request, sgi_jw *w)
{
    EACH_ROW(row)
        if (row->write_params)
            row->write_params(request, w);
}

void sgi_cli_write_call_meta(const segue_request *request, sgi_buf *out, int64_t id)
{
    EACH_ROW(row)
        if (row->write_meta)
            row->write_meta(request, out, id);
}

/* ---- messages of the server ---- */

bool sgi_cli_take_answer(segue_request *request, const sgi_result *result)
{
    EACH_ROW(row)
        if (row->answer && row->answer(request, result))
            return true;
    return false;
}

bool sgi_cli_retry_in_other_form(segue_request *request, sgi_json error)
{
    EACH_ROW(row)
        if (row->change_form && row->change_form(request, error))
            return true;
    return false;
}

bool sgi_cli_take_notification(segue_session *session, sgi_str method,
                               const sgi_message *msg, bool *taken)
{
    EACH_ROW(row)
        if (row->notified && row->notified(session, method, msg, taken))
            return true;
    return false;
}

bool sgi_cli_is_inquiry(sgi_str method)
{
    EACH_ROW(row)
        if (row->inquiry && sgi_str_eq(method, sgi_str_of(row->inquiry->method)))
            return true;
    return false;
}

sgi_str sgi_cli_last_event_id(const segue_request *request, sgi_str method)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->position)
            return state->dialect->position(request, method);
    return (sgi_str){0};
}

void sgi_cli_set_last_event_id(segue_request *request, sgi_str id)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->set_position)
            state->dialect->set_position(request, id);
}

void sgi_cli_note_exchange_lost(segue_request *request)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->lost)
            state->dialect->lost(request);
}

/* ---- tasks ---- */

bool sgi_cli_keep_cancelled_exchange(sgi_emitter *emitter)
{
    EACH_ROW(row)
        if (row->keep_exchange && row->keep_exchange(emitter))
            return true;
    return false;
}

bool sgi_cli_asks_for_task(const segue_request *request)
{
    EACH_ROW(row)
        if (row->asks_for_task && row->asks_for_task(request))
            return true;
    return false;
}

bool sgi_cli_may_be_task(const segue_request *request)
{
    EACH_ROW(row)
        if (row->may_be_task && row->may_be_task(request))
            return true;
    return false;
}

bool sgi_cli_type_is_round(const segue_session *session, sgi_json type)
{
    EACH_ROW(row)
        if (row->is_round && row->is_round(session, type))
            return true;
    return false;
}

sgi_json sgi_cli_task_in_answer(const segue_session *session, sgi_json result)
{
    EACH_ROW(row) {
        sgi_json task = row->task_in ? row->task_in(session, result) : (sgi_json){0};
        if (task.n)
            return task;
    }
    return (sgi_json){0};
}

void sgi_cli_became_task(segue_request *request)
{
    EACH_ROW(row)
        if (row->became_task)
            row->became_task(request);
}

void sgi_cli_note_task(segue_request *request, sgi_json task, bool is_answer)
{
    EACH_ROW(row)
        if (row->note_task)
            row->note_task(request, task, is_answer);
}

void sgi_cli_note_listed_tools(const segue_request *request, sgi_json result)
{
    EACH_ROW(row)
        if (row->tools_listed)
            row->tools_listed(request, result);
}

void sgi_cli_note_lost_message(segue_request *request)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->note_lost_message)
            state->dialect->note_lost_message(request);
}

void sgi_cli_exclude_user_time(segue_request *request, int64_t ms)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->exclude_user_time)
            state->dialect->exclude_user_time(request, ms);
}

sgi_emitter *sgi_cli_streaming_exchange(const segue_request *request)
{
    const sgi_cli_follow_ops *follower = request->follower;
    return follower && follower->streaming ? follower->streaming(request) : NULL;
}

/* ---- parts of a result ---- */

static const sgi_cli_dialect *receiving(const segue_request *request)
{
    for (const sgi_cli_dialect_state *state = request->states; state;
         state = state->next) {
        const sgi_cli_dialect *row = state->dialect;
        if (row->has_received && row->has_received(request))
            return row;
    }
    return NULL;
}

bool sgi_cli_has_received_result_part(const segue_request *request)
{
    return receiving(request) != NULL;
}

bool sgi_cli_write_received_result_part(const segue_request *request, sgi_jw *w)
{
    const sgi_cli_dialect *row = receiving(request);
    if (row)
        row->write_received(request, w);
    return row != NULL;
}

int64_t sgi_cli_segments_received_up_to(const segue_request *request)
{
    for (const sgi_cli_dialect_state *state = request->states; state; state = state->next)
        if (state->dialect->received_up_to)
            return state->dialect->received_up_to(request);
    return 0;
}
