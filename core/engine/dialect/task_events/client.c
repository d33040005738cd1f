/* The event stream (E, SEP-2694) of a task that a request of the client follows. The
 * stream brings segments, and its events show when tasks/get is due. A stream that
 * breaks is opened again after the last received event, with growing pauses. When
 * STREAM_TRIES_MAX streams in a row have broken without an event, the task is polled
 * too, until a stream brings an event again. The task is also polled while the
 * application lacks the questions that the stream has reported. The pauses are limited.
 * If the server is gone, a failed tasks/get ends the request. */
#include "engine/dialect/rows.h"

#include "base/thresholds.h"
#include "engine/dialect/task_events/stream.h"

#include <string.h>

#define META "io.modelcontextprotocol/"

/* The number of streams in a row without an event after which the task is polled too. */
#define STREAM_TRIES_MAX SGI_THRESHOLD(stream_tries)

static bool has_stream(const segue_request *request)
{
    return request->session->server.streams && !sgi_task_stream_of(request)->off;
}

/* True when the task waits for answers, and the application has no question of the task.
 * Another server may have answered tasks/get, which had not read the question from the
 * store. */
static bool lacks_questions(const segue_request *request)
{
    return sgi_task_stream_of(request)->asks && !sgi_questions_are_under_way(request);
}

bool sgi_task_stream_needs_polling(const segue_request *request)
{
    return !has_stream(request) ||
           sgi_task_stream_of(request)->tries.failures >= STREAM_TRIES_MAX ||
           lacks_questions(request);
}

/* ---- streams that were dropped ---- */

static sgi_dropped_stream *find_left(segue_session *session, sgi_str task_id)
{
    sgi_dropped_stream *left = sgi_session_task_streams_of(session)->left;
    for (size_t i = 0; i < SGI_STREAMS_LEFT_MAX; i++)
        if (left[i].task_id && sgi_str_eq(sgi_str_of(left[i].task_id), task_id))
            return &left[i];
    return NULL;
}

static void forget_left(segue_session *session, sgi_dropped_stream *left)
{
    if (left) {
        sgi_text_free(sgi_engine_mem(session->engine), left->task_id);
        left->task_id = NULL;
    }
}

static void forget_all_left(segue_session *session, sgi_session_task_streams *streams)
{
    for (size_t i = 0; i < SGI_STREAMS_LEFT_MAX; i++)
        forget_left(session, &streams->left[i]);
}

/* Remembers a dropped stream, because its events may still arrive. A stream that has
 * brought no event is not remembered. Its late events are also the first events of the
 * next stream. Over HTTP no stream is remembered, because the exchange shows to which
 * stream an event belongs. */
static void note_left(const segue_request *request)
{
    sgi_session_task_streams *streams = sgi_session_task_streams_of(request->session);
    uint64_t next = sgi_task_stream_of(request)->next;
    if (!next || request->session->conn->exchanging)
        return;
    sgi_dropped_stream *left = find_left(request->session, sgi_str_of(request->task_id));
    if (!left) {
        left = &streams->left[streams->left_at];
        streams->left_at = (streams->left_at + 1) % SGI_STREAMS_LEFT_MAX;
        forget_left(request->session, left);
        left->task_id =
            sgi_text_dup(sgi_engine_mem(request->engine), sgi_str_of(request->task_id));
    }
    left->next = next;
    left->late = false;
}

/* True when the event belongs to the dropped stream, because its number continues the
 * numbers of that stream, or repeats its last late event. The first event with another
 * number belongs to the new stream, and so does every later event. */
static bool continues(sgi_dropped_stream *left, uint64_t seq)
{
    if (!left || (left->next != seq && (!left->late || left->next != seq + 1)))
        return false;
    left->next = seq + 1;
    left->late = true;
    return true;
}

bool sgi_task_stream_is_stale_event(segue_request *request, uint64_t seq)
{
    sgi_dropped_stream *left = find_left(request->session, sgi_str_of(request->task_id));
    if (continues(left, seq))
        return true;
    forget_left(request->session, left);
    return false;
}

/* ---- opening and ending ---- */

/* Removes the stream of the request from the open streams of the session. Called when the
 * stream has ended or is dropped. */
static void forget_stream(segue_request *request)
{
    if (sgi_task_stream_of(request)->emitter)
        sgi_map_remove(&sgi_session_task_streams_of(request->session)->open,
                       &sgi_task_stream_of(request)->node);
    sgi_task_stream_of(request)->emitter = NULL;
}

void sgi_task_stream_drop(segue_request *request)
{
    sgi_emitter *emitter = sgi_task_stream_of(request)->emitter;
    forget_stream(request);
    if (!emitter)
        return;
    note_left(request);
    sgi_emitter_drop(emitter, true);
}

void sgi_task_stream_reopen(segue_request *request)
{
    sgi_task_stream_drop(request);
    sgi_tries_set_timer(&sgi_task_stream_of(request)->tries, 0);
}

/* Ends the request when the stream has reported that the task is completed. The result of
 * the request is then the merge of all events. Returns false, and does nothing, when
 * events are missing or the task did not complete. */
static bool complete_from_events(segue_request *request, sgi_json result)
{
    sgi_json final = sgi_json_get(sgi_json_get(result, "_meta"), "dev.segue/final");
    bool is_error = sgi_json_kind_of(sgi_json_get(final, "isError")) == SGI_JSON_TRUE;
    if (sgi_task_state_from_status(sgi_json_get(final, "status")) !=
            SEGUE_TASK_COMPLETED ||
        request->follow->partial || sgi_task_stream_of(request)->unsure ||
        sgi_fold_failed(&request->fold))
        return false;
    sgi_buf merged;
    sgi_buf_init(&merged, sgi_engine_mem(request->engine));
    bool says_error = is_error || sgi_fold_is_error(&request->fold);
    bool ok = sgi_fold_move(&request->fold, is_error, &merged);
    if (ok) {
        sgi_task_note_status(request, final);
        sgi_request_finish_with_buffer(request, &merged, says_error);
    }
    sgi_buf_free(&merged);
    return ok;
}

/* Skips the events that the server no longer has (R-E-3), so that the stream continues
 * after them. Returns false when the error does not name the earliest event that the
 * server has. */
static bool skip_gone(segue_request *request, sgi_json data)
{
    int64_t earliest;
    if (!sgi_json_read_int(sgi_json_get(data, "earliestSeq"), &earliest) ||
        earliest < 0 || earliest >= SGI_COUNT_MAX ||
        (uint64_t)earliest <= sgi_task_stream_of(request)->next)
        return false;
    sgi_task_stream_skip_lost_events(request, (uint64_t)earliest);
    return true;
}

/* Handles a failure of the stream. Sends the message that is due, such as a tasks/get,
 * which may still work and shows whether the task is lost. lost: the outcome, if the
 * stream was lost; else NULL. */
static void stream_failed(segue_request *request, const char *why,
                          const sgi_outcome *lost, int64_t at_least_ms)
{
    sgi_engine_log(request->engine, SEGUE_LOG_WARNING,
                   "tasks/stream failed (%s), %d times in a row%s", why,
                   (int)sgi_task_stream_of(request)->tries.failures + 1,
                   sgi_task_stream_of(request)->tries.failures + 1 == STREAM_TRIES_MAX
                       ? ": the task is polled as well"
                       : "");
    bool waits =
        sgi_session_is_open(request->session) || !request->session->conn->exchanging;
    if (waits && lost)
        sgi_tries_back_off_lost(&sgi_task_stream_of(request)->tries, lost);
    else if (waits)
        sgi_tries_back_off(&sgi_task_stream_of(request)->tries, at_least_ms);
    else
        /* the failure is only counted, without a pause, because the stream is opened when
         * the session opens */
        sgi_task_stream_of(request)->tries.failures++;
    if (request->session->options.max_reconnects < 0)
        sgi_task_stream_of(request)->off = true;
    if (sgi_session_is_open(request->session))
        sgi_follow_send_due(request);
}

static void take_stream_error(segue_request *request, const sgi_outcome *outcome)
{
    int64_t code = sgi_outcome_error_code(outcome);
    char room[SGI_NAME_MAX], why[SGI_WHY_MAX];
    sgi_json data = sgi_json_get(outcome->json, "data");
    sgi_json reason = sgi_json_get(data, "reason");
    bool is_gone = sgi_json_string_is(reason, SGI_STR("events_gone"));
    sgi_explain_failure(why, "an error",
                        sgi_method_text(sgi_json_get(outcome->json, "message"), room));
    if (is_gone && skip_gone(request, data)) {
        stream_failed(request, why, NULL, 0);
        return;
    }
    if (is_gone) {
        /* the stream cannot continue, so tasks/get must bring the result with all
         * segments */
        sgi_task_stream_of(request)->off = request->follow->partial = true;
        sgi_follow_send_tasks_get(request);
    } else if (sgi_follow_is_missing_method(code)) {
        request->session->server.streams = false;
        sgi_follow_send_tasks_get(request);
    } else if (code == SGI_RPC_INVALID_PARAMS) {
        /* either another request has the stream of this task, or the task is gone;
         * tasks/get shows which */
        sgi_task_stream_of(request)->off = true;
        sgi_follow_send_tasks_get(request);
    } else {
        stream_failed(request, why, NULL, sgi_error_retry_after_ms(outcome->json));
    }
}

/* Sends tasks/get, because the task has no stream at present. If the task continues, the
 * stream is opened after a poll interval. Without this interval, a server could make the
 * client send messages without a pause. */
static void look_instead(segue_request *request)
{
    sgi_tries_set_timer(&sgi_task_stream_of(request)->tries,
                        sgi_task_poll_interval(request));
    sgi_follow_send_tasks_get(request);
}

static void stream_ended(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_request *request = emitter->request;
    forget_stream(request);
    /* no event of an earlier, dropped stream comes after the end of this stream, so the
     * dropped stream is forgotten */
    forget_left(request->session,
                find_left(request->session, sgi_str_of(request->task_id)));
    if (request->phase != SGI_PHASE_FOLLOW || request->cancel_due)
        return;
    if (outcome->kind == SGI_OUTCOME_ERROR) {
        take_stream_error(request, outcome);
    } else if (outcome->kind == SGI_OUTCOME_RESULT && outcome->json.n) {
        sgi_tries_reset(&sgi_task_stream_of(request)->tries);
        if (!complete_from_events(request, outcome->json))
            look_instead(request);
    } else if (outcome->needs_auth) {
        sgi_request_fail(request, SEGUE_E_UNAUTHORIZED, outcome->why);
    } else if (sgi_session_is_open(request->session) &&
               sgi_tries_was_probe(&sgi_task_stream_of(request)->tries, outcome)) {
        sgi_tries_back_off_lost(&sgi_task_stream_of(request)->tries, outcome);
    } else {
        stream_failed(request, outcome->why ? outcome->why : "no answer",
                      outcome->kind == SGI_OUTCOME_LOST ? outcome : NULL, 0);
    }
}

static void send_stream(segue_request *request)
{
    sgi_sending sending;
    sgi_map *streams = &sgi_session_task_streams_of(request->session)->open;
    sgi_str id = sgi_str_of(request->task_id);
    /* a connection may have only one stream of each task (R-E-4) */
    if (sgi_map_find(streams, id)) {
        look_instead(request);
        return;
    }
    sgi_emitter *emitter =
        sgi_task_begin_request(request, &sending, "tasks/stream", stream_ended);
    if (emitter) {
        /* no time limit, because the stream lasts as long as the task */
        emitter->timeout_ms = 0;
        if (sgi_task_stream_of(request)->next)
            sgi_jw_member_int(&sending.w, "after",
                              (int64_t)sgi_task_stream_of(request)->next - 1);
    }
    if (emitter && sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0})) {
        sgi_task_stream_of(request)->emitter = emitter;
        sgi_map_put(streams, &sgi_task_stream_of(request)->node, id);
    } else {
        sgi_tries_back_off(&sgi_task_stream_of(request)->tries, SGI_BACKOFF_FIRST_MS);
    }
}

void sgi_task_stream_open_if_due(segue_request *request)
{
    if (has_stream(request) && !sgi_task_stream_of(request)->emitter &&
        !request->follow->paused &&
        !sgi_tries_is_waiting(&sgi_task_stream_of(request)->tries))
        send_stream(request);
}

/* ---- the begin and the end of the state ---- */

bool sgi_task_stream_new(segue_request *request)
{
    sgi_task_stream *stream = sgi_task_stream_of(request);
    if (stream)
        return true;
    stream = sgi_cli_dialect_state_find_or_new(request, &sgi_cli_task_events);
    if (!stream)
        return false;
    stream->request = request;
    sgi_tries_init(&stream->tries, request, "tasks/stream");
    return true;
}

static bool take_over(segue_request *request, const sgi_request_spec *spec)
{
    if (!spec->next_event)
        return true;
    if (!sgi_task_stream_new(request))
        return false;
    sgi_task_stream_of(request)->next = spec->next_event;
    sgi_task_stream_of(request)->asks = spec->asks;
    return true;
}

static void free_state(segue_request *request, sgi_cli_dialect_state *state)
{
    (void)request;
    sgi_tries_stop(&((sgi_task_stream *)state)->tries);
}

sgi_emitter *sgi_task_stream_emitter(const segue_request *request)
{
    const sgi_task_stream *stream = sgi_task_stream_of(request);
    return stream ? stream->emitter : NULL;
}

void sgi_task_stream_end(segue_request *request)
{
    sgi_task_stream *stream = sgi_task_stream_of(request);
    if (!stream)
        return;
    sgi_tries_stop(&stream->tries);
    sgi_task_stream_drop(request);
}

/* ---- the dialect's table ---- */

/* Finds the request whose stream brings the events of this task. Over HTTP, the event
 * must come on the exchange of that stream, because a dropped stream may bring events
 * until its exchange is closed. */
static segue_request *find_by_stream(segue_session *session, sgi_str task_id)
{
    sgi_map_node *node =
        sgi_map_find(&sgi_session_task_streams_of(session)->open, task_id);
    const sgi_task_stream *stream = node ? SGI_OWNER(node, sgi_task_stream, node) : NULL;
    if (!stream || (session->conn->exchanging && stream->emitter != session->hearing))
        return NULL;
    return stream->request;
}

/* Handles an event that names no readable task. Each stream that may have brought this
 * event may lack the event now. */
static void lose_event(segue_session *session)
{
    session->engine->warnings++;
    if (!session->conn->exchanging)
        sgi_requests_fetch_results(session);
    else if (session->hearing && session->hearing->request)
        sgi_cli_note_lost_message(session->hearing->request);
}

/* Reads the task id of an event. Returns false when the id is not a string, or when out
 * of memory. */
static bool read_id(segue_session *session, sgi_json value, sgi_str *id)
{
    sgi_buf *room = &session->engine->scratch;
    if (sgi_json_plain_string(value, id))
        return true;
    sgi_buf_reset(room, 64 * 1024);
    bool is_text = sgi_json_decode(value, room);
    *id = sgi_buf_str(room);
    return is_text && !room->failed;
}

/* Drops an event of a stream that is not open. */
static void drop_event(segue_session *session, sgi_str task_id, sgi_json seq)
{
    int64_t number;
    session->engine->warnings++;
    if (sgi_json_read_int(seq, &number) && number >= 0 && number < SGI_COUNT_MAX)
        continues(find_left(session, task_id), (uint64_t)number);
}

static bool notified(segue_session *session, sgi_str method, const sgi_message *msg,
                     bool *taken)
{
    static const sgi_str names[] = {SGI_STR_INIT("taskId"), SGI_STR_INIT("seq"),
                                    SGI_STR_INIT("type"), SGI_STR_INIT("payload")};
    sgi_json found[4];
    if (!sgi_str_eq(method, SGI_STR("notifications/tasks/event")))
        return false;
    sgi_json_pick_part(&msg->parts[0], msg->params, names, 4, found);
    sgi_task_event event = {found[1], found[2], found[3], &msg->parts[1]};
    sgi_str id;
    segue_request *request = NULL;
    if (!read_id(session, found[0], &id))
        lose_event(session);
    else if ((request = find_by_stream(session, id)))
        sgi_task_stream_take_event(request, &event);
    else
        drop_event(session, id, event.seq);
    *taken = true;
    return true;
}

/* Called when a message could not be read, because the message may have been an event of
 * the stream. Marks the merged result as incomplete, so that the client fetches the
 * result at the end. */
static void note_lost_message(segue_request *request)
{
    if (sgi_task_stream_emitter(request))
        request->follow->partial = true;
}

static void exclude_user_time(segue_request *request, int64_t ms)
{
    sgi_tries_exclude_time(&sgi_task_stream_of(request)->tries, ms);
}

static void begin(segue_session *session, sgi_cli_dialect_state *state)
{
    sgi_map_init(&((sgi_session_task_streams *)state)->open, &session->engine->env);
}

static void free_streams(segue_session *session, sgi_cli_dialect_state *state)
{
    sgi_session_task_streams *streams = (sgi_session_task_streams *)state;
    sgi_map_free(&streams->open);
    forget_all_left(session, streams);
}

static void read_server_capabilities(segue_session *session, sgi_json capabilities)
{
    sgi_json extensions = sgi_json_get(capabilities, "extensions");
    sgi_json tasks = sgi_json_get(extensions, META "tasks");
    session->server.streams = sgi_facts(session->version)->has_extensions &&
                              session->server.tasks &&
                              (sgi_json_get(tasks, "eventStreams").n > 0 ||
                               sgi_json_get(extensions, "dev.segue/eventStreams").n > 0);
    /* the dropped streams belonged to an earlier connection, so their events can no
     * longer arrive */
    forget_all_left(session, sgi_session_task_streams_of(session));
}

static const sgi_cli_session_hooks session_hooks = {
    .state_size = sizeof(sgi_session_task_streams),
    .begin = begin,
    .free = free_streams,
    .read_server_capabilities = read_server_capabilities};

const sgi_cli_dialect sgi_cli_task_events = {
    .name = "streams of events",
    .session_hooks = &session_hooks,
    .state_size = sizeof(sgi_task_stream),
    .free_state = free_state,
    .take_over = take_over,
    .notified = notified,
    .note_lost_message = note_lost_message,
    .exclude_user_time = exclude_user_time,
};
