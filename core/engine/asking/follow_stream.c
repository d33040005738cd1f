/* The stream of a task that is followed (E): it brings segments, and says when to look.
 * A stream that breaks is opened again behind what came, ever later. When it has broken
 * STREAM_TRIES_MAX times in a row and brought nothing, the task is polled as well, until
 * a stream brings something again. The pauses between the tries have a bound, and
 * tasks/get ends the request when the server is gone. */
#include "engine/asking/request.h"

/* So often in a row a stream brings nothing before the task is polled as well. */
#define STREAM_TRIES_MAX 3

static bool has_stream(const segue_request *request)
{
    return request->session->has_streams && !request->no_stream;
}

/* The stream is not enough, or there is none. */
bool sgi_follow_is_polled(const segue_request *request)
{
    return !has_stream(request) || request->stream_tries.failures >= STREAM_TRIES_MAX;
}

/* The stream of this request is over, or is being dropped. */
static void forget_stream(segue_request *request)
{
    if (request->streaming)
        sgi_map_remove(&request->session->streams, &request->by_stream);
    request->streaming = NULL;
}

void sgi_follow_stream_drop(segue_request *request)
{
    sgi_emitter *emitter = request->streaming;
    forget_stream(request);
    request->session->left_stream |= emitter != NULL;
    if (emitter)
        sgi_emitter_drop(emitter, true);
}

void sgi_follow_reopen(segue_request *request)
{
    sgi_follow_stream_drop(request);
    sgi_tries_later(&request->stream_tries, 0);
}

/* The stream ended and said how: the merged events are the result, if they are all
 * there. */
static bool complete_from_events(segue_request *request, sgi_json result)
{
    sgi_json final = sgi_json_get(sgi_json_get(result, "_meta"), "dev.segue/final");
    bool is_error = sgi_json_kind_of(sgi_json_get(final, "isError")) == SGI_JSON_TRUE;
    if (sgi_task_state_of(sgi_json_get(final, "status")) != SEGUE_TASK_COMPLETED ||
        request->partial || request->unsure || sgi_fold_failed(&request->fold))
        return false;
    sgi_buf merged;
    sgi_buf_init(&merged, sgi_engine_mem(request->engine));
    sgi_jw w = sgi_jw_on(&merged);
    sgi_jw_open(&w, '{');
    sgi_fold_write(&request->fold, &w, is_error, (sgi_str){0});
    sgi_jw_close(&w, '}');
    bool ok = !merged.failed;
    if (ok) {
        sgi_task_note_status(request, final);
        sgi_request_finish_by(request, &merged);
    }
    sgi_buf_free(&merged);
    return ok;
}

/* What came before is gone at the server: the stream goes on behind that (R-E-3). */
static bool skip_gone(segue_request *request, sgi_json data)
{
    int64_t earliest;
    if (!sgi_json_int(sgi_json_get(data, "earliestSeq"), &earliest) || earliest < 0 ||
        earliest >= SGI_COUNT_MAX || (uint64_t)earliest <= request->next_event)
        return false;
    sgi_follow_lack(request, (uint64_t)earliest);
    return true;
}

/* What fails here may work as tasks/get: that tells whether the task is lost. */
static void stream_failed(segue_request *request, const char *why, int64_t at_least_ms)
{
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "tasks/stream failed (%s), %d times in a row%s", why,
                   (int)request->stream_tries.failures + 1,
                   request->stream_tries.failures + 1 == STREAM_TRIES_MAX
                       ? ": the task is polled as well"
                       : "");
    if (sgi_session_is_open(request->session) || !request->session->conn->exchanging)
        sgi_tries_back_off(&request->stream_tries, at_least_ms);
    else
        request->stream_tries.failures++; /* it goes again when the session is open */
    if (request->session->options.max_reconnects < 0)
        request->no_stream = true;
    if (sgi_session_is_open(request->session))
        sgi_follow_go(request);
}

static void take_stream_error(segue_request *request, const sgi_outcome *outcome)
{
    int64_t code = sgi_outcome_code(outcome);
    char room[SGI_NAME_MAX], why[SGI_WHY_MAX];
    sgi_json data = sgi_json_get(outcome->json, "data");
    sgi_json reason = sgi_json_get(data, "reason");
    bool is_gone = sgi_json_string_is(reason, SGI_STR("events_gone"));
    sgi_explain(why, "an error",
                sgi_name_text(sgi_json_get(outcome->json, "message"), room));
    if (is_gone && skip_gone(request, data)) {
        stream_failed(request, why, 0);
        return;
    }
    if (is_gone) {
        request->no_stream = request->partial = true; /* the result has it all */
        sgi_follow_get(request);
    } else if (sgi_follow_is_unable(code)) {
        request->session->has_streams = false;
        sgi_follow_get(request);
    } else if (code == SGI_RPC_INVALID_PARAMS) {
        request->no_stream = true; /* streamed by another request, or gone: get tells */
        sgi_follow_get(request);
    } else {
        stream_failed(request, why, sgi_task_retry_after(outcome->json));
    }
}

static void stream_ended(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    forget_stream(request);
    if (request->phase != SGI_PHASE_FOLLOW || request->cancel_due)
        return;
    if (outcome->kind == SGI_OUTCOME_ERROR) {
        take_stream_error(request, outcome);
    } else if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        sgi_tries_good(&request->stream_tries);
        if (!complete_from_events(request, outcome->json))
            sgi_follow_get(request);
    } else if (outcome->needs_auth) {
        sgi_request_fail(request, SEGUE_E_UNAUTHORIZED, outcome->why);
    } else {
        stream_failed(request, outcome->why ? outcome->why : "no answer", 0);
    }
}

static void send_stream(segue_request *request)
{
    sgi_sending sending;
    sgi_map *streams = &request->session->streams;
    sgi_str id = sgi_str_of(request->task_id);
    if (sgi_map_find(streams, id)) { /* one stream per task and connection (R-E-4) */
        sgi_follow_get(request);
        return;
    }
    sgi_emitter *emitter = sgi_task_ask(request, &sending, "tasks/stream", stream_ended);
    if (emitter) {
        emitter->timeout_ms = 0; /* it lasts as long as the task */
        if (request->next_event)
            sgi_jw_member_int(&sending.w, "after", (int64_t)request->next_event - 1);
    }
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0})) {
        request->streaming = emitter;
        sgi_map_put(streams, &request->by_stream, id);
    } else {
        sgi_tries_back_off(&request->stream_tries, SGI_BACKOFF_FIRST_MS);
    }
}

void sgi_follow_stream_go(segue_request *request)
{
    if (has_stream(request) && !request->streaming && !request->paused &&
        !sgi_tries_wait(&request->stream_tries))
        send_stream(request);
}

void sgi_follow_pause(segue_request *request)
{
    request->paused = true;
    sgi_follow_stream_drop(request);
    if (request->task_2025)
        sgi_follow_2025_pause(request);
}

void sgi_follow_resume(segue_request *request)
{
    request->paused = false;
    if (sgi_session_is_open(request->session))
        sgi_follow_go(request);
}
