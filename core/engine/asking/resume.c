/* Z on the client (SEP-975): a server of the handshake eras told how the request can be
 * resumed. When the connection breaks, the request waits for the next one and for
 * minWait, and is asked for again under its old id (R-975-9): what comes then is what
 * would have come.
 *
 * Over HTTP the position goes with it, of the last event that was taken. What was taken
 * is not asked for again: over other transports the server knows. */
#include "engine/asking/merge.h"
#include "engine/asking/request.h"

#include <stdio.h>
#include <string.h>

#define WAIT_MOST_S 86400 /* what asks for more is no wait */

/* A bound that is none is passed over, and told (R-975-3). */
static void warn_of_bound(segue_session *session)
{
    session->engine->warnings++;
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                   "the server sent: a resume policy with a wait that is none");
}

static bool read_wait(segue_session *session, sgi_json value, int64_t *ms)
{
    int64_t seconds;
    *ms = 0;
    if (!value.n)
        return false;
    if (!sgi_json_int(value, &seconds) || seconds < 0 || seconds > WAIT_MOST_S) {
        warn_of_bound(session);
        return false;
    }
    *ms = seconds * 1000;
    return true;
}

/* The policy comes again with what a resume repeats: then its token is known. A call that
 * asks for a task is about to be one, and on_task has its token then. */
static void take_token(segue_request *request, char *token)
{
    sgi_inbox_head head = {.kind = SGI_RECORD_RESUMABLE};
    bool is_new = !request->resume_token || strcmp(request->resume_token, token) != 0;
    sgi_text_free(sgi_engine_mem(request->engine), request->resume_token);
    request->resume_token = token; /* a second one replaces the first */
    if (!is_new || request->asks_task || !request->events.on_resumable)
        return;
    if (sgi_deliver_is_full(request) ||
        !sgi_deliver(request, &head, (sgi_str){0})) /* it can be asked for all the same */
        request->dropped++;
}

void sgi_resume_policy(segue_session *session, sgi_json params)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_emitter *emitter = sgi_emitter_find(session, sgi_json_get(params, "requestId"));
    segue_request *request = emitter ? emitter->request : NULL;
    sgi_json token = sgi_json_get(params, "resumeToken");
    int64_t min_ms, max_ms;
    if (!request || request->calling != emitter ||
        !(session->options.dialects_on & SEGUE_DIALECT_RESUMABLE) ||
        sgi_json_kind_of(token) != SGI_JSON_STRING) {
        session->engine->warnings++; /* nobody waits for it (R-975-3) */
        return;
    }
    bool has_max = read_wait(session, sgi_json_get(params, "maxWait"), &max_ms);
    read_wait(session, sgi_json_get(params, "minWait"), &min_ms);
    if (has_max && min_ms > max_ms) {
        warn_of_bound(session);
        min_ms = 0;
    }
    char *copy = sgi_text_dup(mem, token);
    if (!copy)
        return; /* it goes on without */
    request->resume_min_ms = min_ms;
    take_token(request, copy);
}

void sgi_resume_free(segue_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    sgi_text_free(mem, request->resume_token);
    sgi_text_free(mem, request->last_event);
}

void sgi_resume_event(segue_request *request, sgi_str id)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    if (!request->resume_token || !id.n)
        return;
    if (!request->last_event || !sgi_str_eq(id, sgi_str_of(request->last_event)))
        sgi_tries_good(&request->tries);
    char *copy = sgi_text_dup(mem, id);
    if (!copy)
        return; /* what comes twice is known by its number */
    sgi_text_free(mem, request->last_event);
    request->last_event = copy;
}

void sgi_resume_lost(segue_request *request)
{
    request->resume_due_ms =
        sgi_time_add(sgi_now(&request->engine->env), request->resume_min_ms);
}

/* Of several servers on one store this is not the one that runs it. */
static bool is_elsewhere(const segue_request *request, sgi_json error)
{
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    return sgi_json_string_is(reason, SGI_STR("elsewhere")) &&
           request->tries.failures < request->session->options.max_reconnects;
}

static void resumed(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    request->calling = NULL;
    if (outcome->kind == SGI_OUTCOME_ERROR && is_elsewhere(request, outcome->json)) {
        sgi_tries_back_off(&request->tries, sgi_task_retry_after(outcome->json));
    } else if (outcome->kind == SGI_OUTCOME_ERROR) {
        sgi_task_handle_refused(request, outcome->json);
        sgi_request_fail_error(request, SEGUE_E_REMOTE, NULL, outcome->json);
    } else {
        if (outcome->kind == SGI_OUTCOME_RESULT)
            sgi_task_handle_note(request, outcome->json);
        sgi_request_take(request, outcome);
    }
}

/* The number of its first piece; 0 = it is told none. */
static int64_t first_of(sgi_json result)
{
    int64_t number = 0;
    sgi_json_int(sgi_json_get(sgi_json_get(result, "_meta"), "dev.segue/seq"), &number);
    return number;
}

/* A server that knows no better begins with the first piece: then all that was merged
 * comes again. */
static bool take_more(sgi_emitter *emitter, sgi_json result)
{
    segue_request *request = emitter->request;
    if (first_of(result) == 1 && request->merge)
        sgi_pieces_free(request);
    return sgi_pieces_more(emitter, result);
}

bool sgi_resume_lacks(const segue_request *request, sgi_json result)
{
    return request->taken_over && first_of(result) > 1;
}

/* What stands before it went to an earlier process, which made this token: the places
 * that are told count from there, and the result is no whole one. */
void sgi_resume_begin_merge(segue_request *request, sgi_json result)
{
    if (!sgi_resume_lacks(request, result))
        return;
    sgi_json_int(sgi_json_get(sgi_json_get(result, "_meta"), "index"),
                 &request->merge->base);
    request->merge->lacks = true;
    request->gone = (uint64_t)first_of(result) - 1;
    request->handled = request->delivered_segment;
}

/* It ends so as often as its token is tried: what is gone stays gone. */
void sgi_resume_fail_partial(segue_request *request)
{
    char text[200];
    size_t n = (size_t)snprintf(
        text, sizeof text,
        "segments 1 to %llu are kept neither here nor at the server, so the result is "
        "not whole",
        (unsigned long long)request->gone);
    if (request->gone > request->handled)
        n += (size_t)snprintf(
            text + n, sizeof text - n, ", and segments %llu to %llu never came",
            (unsigned long long)request->handled + 1, (unsigned long long)request->gone);
    snprintf(text + n, sizeof text - n, ": make the call anew, without the token");
    sgi_request_fail(request, SEGUE_E_INCOMPLETE, text);
}

/* A token may have come from anywhere, and its server be another by now. */
bool sgi_resume_fits(segue_request *request)
{
    const segue_session *session = request->session;
    bool fits = session->version <= SGI_VERSION_2025_11_25 &&
                session->options.dialects_on & SEGUE_DIALECT_RESUMABLE;
    if (!fits)
        sgi_request_fail(request, SEGUE_E_NOT_RESUMABLE,
                         "in this session no request can be asked for again");
    return fits;
}

/* Which segments are here: a server of this library sends those behind, whatever was
 * confirmed, as far as it has them. Nobody knows where they are not numbered. */
static void write_has(const segue_request *request, sgi_buf *out)
{
    const sgi_merge *merge = request->merge;
    if (merge && !merge->next)
        return;
    sgi_buf_add_lit(out, ",\"dev.segue/after\":");
    sgi_buf_add_int(out, merge ? merge->next - 1 : 0);
}

static bool send_resume(segue_request *request, sgi_emitter *emitter,
                        sgi_sending *sending)
{
    sgi_buf extra;
    sgi_buf_init(&extra, sgi_engine_mem(request->engine));
    write_has(request, &extra);
    sgi_jw_member_raw(&sending->w, "resumeToken", sgi_str_of(request->resume_token));
    sending->w.buf->failed |= extra.failed;
    bool sent = sgi_emitter_send(emitter, sending, sgi_buf_str(&extra), (sgi_json){0});
    sgi_buf_free(&extra);
    return sent;
}

void sgi_resume_send(segue_request *request)
{
    segue_session *session = request->session;
    sgi_sending sending;
    if (!sgi_resume_fits(request))
        return;
    int64_t left = request->resume_due_ms - sgi_now(&request->engine->env);
    if (left > 0) {
        sgi_tries_later(&request->tries, left + left / 9 + 1); /* nor a tenth sooner */
        return;
    }
    if (sgi_emitter_is_out(session, request->call_id)) {
        sgi_request_fail(request, SEGUE_E_STATE, "its id is in flight in this session");
        return;
    }
    sgi_emitter *emitter = sgi_emitter_begin_as(session, &sending, request->call_id,
                                                SGI_STR("requests/resume"));
    if (emitter) {
        emitter->request = request;
        emitter->done = resumed;
        emitter->repeats = true;
        emitter->more = request->may_stream ? sgi_follow_2025_more : take_more;
        request->calling = emitter; /* its head names the last event */
        if (send_resume(request, emitter, &sending))
            return;
        request->calling = NULL;
    }
    sgi_request_fail(request, SEGUE_E_NOMEM, "out of memory");
}

sgi_str sgi_resume_position(const segue_request *request)
{
    return request->resume_token ? sgi_str_of(request->last_event) : (sgi_str){0};
}

/* Progress only rises: what does not, was told before (R-975-20), and is no sign that the
 * request gets on. */
bool sgi_resume_is_repeat(segue_request *request, double progress)
{
    bool repeat = request->has_progress && progress <= request->last_progress;
    if (!repeat) {
        request->last_progress = progress;
        sgi_tries_good(&request->tries);
    }
    request->has_progress = true;
    return repeat && request->resume_token;
}

/* ---- tokens ---- */

/* Of pieces the server is to send all again, as the result is made of all: those that
 * were handled are not shown. */
void sgi_resume_write(const segue_request *request, sgi_jw *w)
{
    sgi_jw_member_string(w, "m", sgi_str_of(request->method));
    sgi_jw_member_raw(w, "z", sgi_str_of(request->resume_token));
    sgi_jw_member_int(w, "i", request->call_id);
    sgi_jw_member_int(w, "w", request->resume_min_ms);
    if (request->last_event && !request->merge)
        sgi_jw_member_string(w, "l", sgi_str_of(request->last_event));
}

bool sgi_resume_read(sgi_json state, sgi_request_spec *spec)
{
    int64_t min_ms = 0;
    spec->resume_token = sgi_json_get(state, "z");
    sgi_json_int(sgi_json_get(state, "w"), &min_ms);
    if (!sgi_json_plain_string(sgi_json_get(state, "m"), &spec->method) ||
        sgi_json_kind_of(spec->resume_token) != SGI_JSON_STRING ||
        !sgi_json_int(sgi_json_get(state, "i"), &spec->resume_id) ||
        spec->resume_id < 1 || spec->resume_id > SGI_COUNT_MAX || min_ms < 0)
        return false;
    if (sgi_json_get(state, "l").n &&
        !sgi_json_plain_string(sgi_json_get(state, "l"), &spec->resume_event))
        return false;
    spec->resume_min_ms = min_ms;
    return true;
}

bool sgi_resume_take(segue_request *request, const sgi_request_spec *spec)
{
    const sgi_mem *mem = sgi_engine_mem(request->engine);
    if (!spec->resume_token.n)
        return true;
    request->taken_over = true;
    request->call_id = spec->resume_id;
    request->resume_min_ms = spec->resume_min_ms;
    request->resume_token = sgi_text_dup(mem, spec->resume_token);
    if (spec->resume_event.n)
        request->last_event = sgi_text_dup(mem, spec->resume_event);
    return request->resume_token && (request->last_event || !spec->resume_event.n);
}
