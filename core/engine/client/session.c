/* The life of a session: it is made, connects and reconnects, passes the server's
 * messages to its requests, and ends once. After its handle is freed, the session stays
 * in memory while requests, exchanges or events refer to it (refs). handshake.c has the
 * handshake, request.c the requests. */
#include "engine/client/session.h"

#include "base/thresholds.h"

#include "base/backoff.h"
#include "engine/client/exchange_start.h"
#include "engine/client/server_questions.h"
#include "engine/client/dialects.h"
#include "engine/client/emitter.h"
#include "engine/client/withdrawal.h"
#include "engine/error.h"
#include "engine/client/hosting.h"

#include <stdio.h>

static const sgi_backoff reconnecting = {.first_ms = 250, .most_ms = 30000, .spread = 50};

/* A connection that has lasted this long (ms) shows that its server works, even without a
 * request. */
#define STEADY_MS SGI_THRESHOLD(steady_ms)

static void start(void *self);
static void message(void *self, const sgi_message *msg);
static void bad_input(void *self, int32_t rpc_code, const char *problem);
static bool batch(void *self, sgi_str text);
static void lost(void *self, const char *why);
static bool wants_input(void *self);
static void detached(void *self);
static int32_t deliver(sgi_ready_object *ready, int32_t budget);

static const sgi_conn_role asking = {.start = start,
                                     .message = message,
                                     .bad_input = bad_input,
                                     .batch = batch,
                                     .lost = lost,
                                     .wants_input = wants_input,
                                     .detached = detached};

/* ---- life ---- */

static bool copy_texts(segue_session *session)
{
    const char **slots[] = {&session->options.name, &session->options.version};
    for (size_t i = 0; i < 2; i++) {
        session->texts[i] =
            sgi_text_dup(sgi_engine_mem(session->engine), sgi_str_of(*slots[i]));
        if (!session->texts[i])
            return false;
        *slots[i] = session->texts[i];
    }
    /* meta and handshake.capabilities have copies, so the application's text is not used
     * any more */
    session->options.capabilities = NULL;
    return true;
}

static segue_status set_up(segue_session *session, void *transport, sgi_json capabilities)
{
    segue_server *host = session->options.host;
    session->conn = sgi_conn_new(session->engine, &asking, session, transport);
    if (!session->conn || !copy_texts(session) ||
        !sgi_cli_dialect_session_states_new(session) ||
        !sgi_declare(session, capabilities))
        return SEGUE_E_NOMEM;
    /* cleared, because the application may free the host before the session */
    session->options.host = NULL;
    return sgi_question_host_join(session, host);
}

segue_status sgi_session_new(sgi_engine *engine, void *transport,
                             const segue_session_options *options, sgi_json capabilities,
                             const segue_session_events *events, segue_session **out)
{
    const sgi_mem *mem = sgi_engine_mem(engine);
    segue_session *session = sgi_zalloc(mem, sizeof *session);
    if (!session)
        return SEGUE_E_NOMEM;
    session->handle = (sgi_handle){SGI_MAGIC_SESSION, engine};
    session->engine = engine;
    session->options = *options;
    session->ready.run = deliver;
    session->max_empty_pieces = SGI_EMPTY_PIECES_MAX;
    session->withdrawals.max = SGI_WITHDRAWALS_MAX;
    TAILQ_INIT(&session->requests);
    TAILQ_INIT(&session->exchanges);
    TAILQ_INIT(&session->withdrawals.list);
    sgi_map_init(&session->in_flight, &engine->env);
    sgi_tool_headers_init(&session->tools.headers, engine);
    sgi_tool_schemas_init(&session->tools.schemas, engine, events && events->on_validate);
    sgi_result_cache_init(&session->cache, engine, options->cache_bytes);
    sgi_session_init_log_level(session);
    sgi_buf_init(&session->meta, mem);
    sgi_buf_init(&session->handshake.capabilities, mem);
    sgi_buf_init(&session->peer, mem);
    sgi_buf_init(&session->notifications.waiting, mem);
    segue_status status = set_up(session, transport, capabilities);
    if (status != SEGUE_OK) {
        sgi_conn *conn = session->conn;
        sgi_session_free(session);
        if (conn)
            sgi_conn_unref(conn);
        return status;
    }
    session->refs = 2; /* one reference belongs to the handle, one to the conversation */
    if (events)
        session->events = *events;
    *out = session;
    return SEGUE_OK;
}

/* ---- messages of the server ---- */

static void handle_notification(segue_session *session, const sgi_message *msg)
{
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_method_text(msg->method, room);
    if (!method.n) {
        session->engine->warnings++;
        return;
    }
    if (sgi_str_eq(method, SGI_STR("notifications/cancelled")) &&
        (sgi_server_question_withdraw(session, msg->params) ||
         sgi_question_host_takes(session, msg)))
        return;
    sgi_result_cache_drop_by_notification(session, method, msg->params);
    if (sgi_str_eq(method, SGI_STR("notifications/tools/list_changed")))
        sgi_tool_schemas_clear(&session->tools.schemas);
    if (!sgi_requests_take_notification(session, method, msg))
        sgi_notifications_keep(session, method, msg->params);
}

/* Reports a message of the server that is ignored, because it fits nothing. A server that
 * sends many of them cannot fill the log: only the first, the second, the fourth, the
 * eighth and so on are reported. */
static void report_ignored(const segue_session *session, uint64_t count, int32_t level,
                           const char *what, const char *problem)
{
    if (count & (count - 1))
        return;
    if (count == 1)
        sgi_engine_log(session->engine, level, "the server sent %s, which is ignored: %s",
                       what, problem);
    else
        sgi_engine_log(session->engine, level,
                       "the server sent %s, which is ignored: %s (%llu messages so far)",
                       what, problem, (unsigned long long)count);
}

static void report_invalid(segue_session *session, const char *problem)
{
    report_ignored(session, ++session->ignored.invalid, SEGUE_LOG_WARNING,
                   "something invalid", problem);
}

static void message(void *self, const sgi_message *msg)
{
    segue_session *session = self;
    sgi_emitter *emitter = NULL;
    switch (msg->kind) {
    case SGI_MESSAGE_RESULT:
    case SGI_MESSAGE_ERROR:
        emitter = sgi_emitter_find(session, msg->id);
        session->reach.answered |= emitter && emitter->request;
        if (!emitter) {
            session->engine->warnings++; /* AS-118 */
            report_ignored(session, ++session->ignored.answers, SEGUE_LOG_INFO,
                           "an answer",
                           "no request waits for it; the request has ended, or was "
                           "answered before, or never existed");
        } else if (msg->kind == SGI_MESSAGE_RESULT)
            sgi_emitter_on_result(emitter, msg);
        else
            sgi_emitter_on_error(emitter, msg->error);
        break;
    case SGI_MESSAGE_NOTIFICATION:
        handle_notification(session, msg);
        break;
    case SGI_MESSAGE_REQUEST:
        if (!sgi_question_host_takes(session, msg))
            sgi_server_question_handle(session, msg);
        break;
    case SGI_MESSAGE_INVALID:
        session->engine->warnings++;
        report_invalid(session, msg->problem);
        emitter = msg->id.n && !msg->is_call ? sgi_emitter_find(session, msg->id) : NULL;
        if (emitter && msg->is_cut)
            sgi_emitter_on_too_large_answer(emitter);
        else if (emitter)
            sgi_emitter_on_malformed_answer(emitter);
        else if (msg->is_call)
            sgi_server_question_refuse_malformed(session, msg);
        if (!msg->id.n)
            sgi_requests_fetch_results(session);
    }
}

static void bad_input(void *self, int32_t rpc_code, const char *problem)
{
    segue_session *session = self;
    (void)rpc_code;
    report_invalid(session, problem);
    sgi_requests_fetch_results(session);
}

static bool batch(void *self, sgi_str text)
{
    segue_session *session = self;
    return sgi_session_read_batch(session, session->conn, text);
}

bool sgi_session_read_batch(const segue_session *session, sgi_conn *conn, sgi_str text)
{
    if (!sgi_facts(session->version)->has_batches ||
        !sgi_conn_is_batch(session->engine, text))
        return false;
    sgi_conn_handle_batch(conn, text);
    return true;
}

static bool wants_input(void *self)
{
    return !sgi_session_is_behind(self) && sgi_question_host_wants_input(self);
}

/* ---- connection ---- */

static void start(void *self)
{
    segue_session *session = self;
    if (sgi_session_is_closed(session))
        return;
    if (session->handshake.agreed)
        sgi_session_on_opened(session);
    else if (sgi_question_host_is_ready(session))
        sgi_handshake_begin(session);
}

/* Ends all exchanges. Returns whether a request of the application goes on: it has
 * counted this failure itself (tries.c), and is sent again. A request that ends with its
 * exchange does not go on, even if the application repeats it at once. Neither do
 * messages of the session itself, such as logging/setLevel, nor tasks/cancel. */
static bool lose_emitters(segue_session *session, const char *why)
{
    bool goes_on = false;
    sgi_map_node *node;
    while ((node = sgi_map_any_node(&session->in_flight))) {
        sgi_emitter *emitter = SGI_OWNER(node, sgi_emitter, node);
        segue_request *request = emitter->request;
        if (request)
            sgi_request_ref(request);
        sgi_emitter_on_lost_exchange(emitter, why, SGI_LOSS_ANSWERED);
        if (!request)
            continue;
        goes_on |= !request->cancel_due && !sgi_request_is_over(request);
        sgi_request_unref(request);
    }
    return goes_on;
}

/* ---- the GET stream, on which the server sends its own messages ---- */

static const sgi_backoff listening = {.first_ms = 1000, .most_ms = 32000};

static void stop_listening(segue_session *session)
{
    sgi_conn *conn = session->listening.conn;
    session->listening.conn = NULL;
    sgi_engine_clear_timer(session->engine, &session->listening.again);
    if (conn)
        sgi_exchange_end(conn);
}

static void listen_again(sgi_timer *timer)
{
    segue_session *session = SGI_OWNER(timer, segue_session, listening.again);
    if (sgi_session_is_open(session) && !session->listening.conn)
        sgi_exchange_open_session_stream(session);
}

void sgi_session_on_stream_ended(segue_session *session, bool brought_input)
{
    stop_listening(session);
    session->listening.failures = brought_input ? 1 : session->listening.failures + 1;
    int64_t ms = sgi_backoff_ms(&listening, session->listening.failures);
    if (sgi_session_is_open(session))
        sgi_engine_set_timer(session->engine, &session->listening.again,
                             sgi_session_retry_delay_ms(session, ms), listen_again);
}

static void try_again(sgi_timer *timer)
{
    segue_session *session = SGI_OWNER(timer, segue_session, reach.timer);
    sgi_engine *engine = session->engine;
    if (session->stage == SGI_STAGE_LOST &&
        !engine->host.reopen(engine->host.user, session->conn))
        sgi_session_fail(session, SEGUE_E_DISCONNECTED, "the connection is lost");
}

static void lost(void *self, const char *why)
{
    sgi_session_on_connection_lost(self, why);
}

static void try_later(segue_session *session, int64_t ms, const char *why)
{
    int32_t attempt = session->reach.attempts > 0 ? session->reach.attempts : 1;
    sgi_session_report_retry(session, NULL, attempt, ms, why);
    sgi_engine_set_timer(session->engine, &session->reach.timer, ms, try_again);
}

static void end_attempts(segue_session *session, const char *why)
{
    char text[SGI_WHY_MAX];
    snprintf(text, sizeof text, "the connection failed %d times in a row (%s): %.1900s",
             (int)session->reach.attempts,
             session->reach.was_open ? "max_reconnects"
                                     : "max_reconnects or first_attempts",
             why);
    sgi_session_fail(session, SEGUE_E_DISCONNECTED,
                     session->reach.attempts > 1 ? text : why);
}

static void out_of_reach(segue_session *session, const char *why)
{
    char text[SGI_WHY_MAX];
    sgi_explain_unreachable(session, text, why);
    sgi_session_fail(session, SEGUE_E_DISCONNECTED, text);
}

/* Returns whether the server has worked: it has answered, or its connection has lasted
 * STEADY_MS. A server that dies at once after each start has not worked, so the session
 * stops trying as with an unreachable server. */
static bool has_worked(const segue_session *session)
{
    int64_t up_ms =
        sgi_time_sub(sgi_now(&session->engine->env), session->reach.opened_ms);
    return sgi_session_is_open(session) &&
           (session->reach.answered || up_ms >= STEADY_MS);
}

/* Returns how often in a row the session may try to connect. The limit is max_reconnects.
 * For a server that was never reached, the limit is first_attempts if that option is set
 * and the server has not asked the client to try again. */
static int32_t most_attempts(const segue_session *session)
{
    bool is_asked = sgi_session_retry_delay_ms(session, 0) > 0;
    int32_t first =
        session->reach.was_open || is_asked ? 0 : session->options.first_attempts;
    return first ? first - 1 : session->options.max_reconnects;
}

void sgi_session_on_connection_lost(segue_session *session, const char *why)
{
    if (sgi_session_is_closed(session) || session->stage == SGI_STAGE_LOST)
        return;
    bool worked = has_worked(session);
    sgi_session_ref(session);
    sgi_session_set_stage(session, SGI_STAGE_LOST);
    /* A failure that a request counts does not count towards the session's limit. It does
     * not set the session's pauses to 0 either, because the server has not worked. */
    bool is_counted_by_request = lose_emitters(session, why);
    if (worked)
        session->reach.attempts = 0;
    int32_t most = most_attempts(session);
    int64_t now = sgi_now(&session->engine->env);
    int64_t ms = sgi_backoff_random_ms(&reconnecting, session->reach.attempts,
                                       &session->engine->env);
    if (!session->reach.attempts || is_counted_by_request ||
        session->reach.wait_until_ms > now)
        session->reach.lost_ms =
            session->reach.wait_until_ms > now ? session->reach.wait_until_ms : now;
    int64_t asked = sgi_session_retry_delay_ms(session, ms);
    int64_t left = sgi_session_reconnect_ms_left(session, now - session->reach.lost_ms);
    stop_listening(session);
    sgi_question_host_cut(session, why);
    if (session->handshake.agreed)
        /* another session carries this session and starts it again, so nothing is done
         * here */
        ;
    else if (!session->conn->can_reopen)
        sgi_session_fail(session, SEGUE_E_DISCONNECTED, why);
    else if (most < 0 || (!is_counted_by_request && ++session->reach.attempts > most))
        end_attempts(session, why);
    else if (left <= 0)
        out_of_reach(session, why);
    else if (asked > ms) /* the server can be reached, but has asked for a longer pause */
        try_later(session, asked, why);
    else
        try_later(session, ms < left ? ms : left, why);
    sgi_session_unref(session);
}

void sgi_session_renew_wire_session(segue_session *session, const char *why)
{
    if (!sgi_session_is_open(session))
        return;
    sgi_engine_log(session->engine, SEGUE_LOG_INFO,
                   "the client begins a new session with the server: %s", why);
    sgi_session_set_stage(session, SGI_STAGE_LOST);
    stop_listening(session);
    sgi_question_host_cut(session, why);
    int64_t ms = sgi_backoff_random_ms(&reconnecting, session->reach.renewals++,
                                       &session->engine->env);
    sgi_engine_set_timer(session->engine, &session->reach.timer, ms, try_again);
}

static void detached(void *self)
{
    segue_session *session = self;
    sgi_conn *conn = session->conn;
    sgi_session_fail(session, SEGUE_E_DISCONNECTED, "the transport has ended");
    sgi_exchanges_clear_queue(session);
    sgi_conn_unref(conn);
    sgi_session_unref(session);
}

/* Reports that the session is open. Drops cached results and schemas, because the client
 * may have missed notifications of their changes. */
static void tell_open(segue_session *session)
{
    sgi_result_cache_clear(&session->cache);
    sgi_tool_schemas_clear(&session->tools.schemas);
    session->open_due = true;
    if (!session->ready.queued)
        sgi_session_ref(session);
    sgi_ready_queue_add(session->engine, &session->ready);
}

void sgi_session_on_server_replaced(segue_session *session)
{
    if (!sgi_session_is_open(session))
        return;
    sgi_engine_log(session->engine, SEGUE_LOG_INFO,
                   "another server has taken over the session");
    sgi_session_set_log_level_again(session);
    tell_open(session);
}

void sgi_session_on_opened(segue_session *session)
{
    sgi_session_set_stage(session, SGI_STAGE_OPEN);
    session->reach.was_open = true;
    session->reach.answered = false;
    session->reach.opened_ms = sgi_now(&session->engine->env);
    if (session->conn->exchanging)
        session->reach.attempts = 0;
    sgi_engine_clear_timer(session->engine, &session->reach.timer);
    tell_open(session);
    sgi_question_host_open(session);
    if (session->conn->exchanging && !sgi_facts(session->version)->is_stateless)
        sgi_exchange_open_session_stream(session);
    sgi_session_restore_log_level(session);
    sgi_withdrawals_on_session_open(session);
    sgi_requests_on_session_open(session);
}

void sgi_session_fail(segue_session *session, segue_status status, const char *text)
{
    segue_request *request;
    if (sgi_session_is_closed(session))
        return;
    if (status == SEGUE_E_CLOSED)
        TAILQ_FOREACH(request, &session->requests, link)
            sgi_request_cancel_at_close(request);
    sgi_withdrawals_on_session_close(session);
    sgi_session_set_stage(session, SGI_STAGE_CLOSED);
    sgi_engine_clear_timer(session->engine, &session->reach.timer);
    if (status != SEGUE_E_CLOSED)
        session->error = sgi_error_new(sgi_engine_mem(session->engine), status, 0,
                                       sgi_str_of(text), (sgi_str){0});
    if (!session->ready.queued)
        sgi_session_ref(session);
    sgi_ready_queue_add(session->engine, &session->ready);
    /* the requests are closed first, because a lost exchange would end its request with
     * another status */
    sgi_requests_on_session_close(session, status, text);
    lose_emitters(session, text);
    stop_listening(session);
    sgi_question_host_end(session);
    sgi_conn_close(session->conn);
}

void sgi_session_close(segue_session *session)
{
    sgi_session_fail(session, SEGUE_E_CLOSED, "the session was closed");
}

/* ---- callbacks of the application ---- */

static int32_t deliver_closed(segue_session *session)
{
    sgi_engine *engine = session->engine;
    session->retry.due = false;
    sgi_session_set_stage(session, SGI_STAGE_TOLD);
    sgi_user_code_begin(engine);
    if (session->events.on_closed)
        session->events.on_closed(session->events.user, session, session->error);
    if (session->events.free_user)
        session->events.free_user(session->events.user);
    sgi_user_code_end(engine);
    return 1;
}

/* Reports the next attempt to the application. The values are copied before the callback,
 * because the engine may overwrite them while the callback runs without the lock. */
static int32_t deliver_retry(segue_session *session)
{
    sgi_engine *engine = session->engine;
    char why[sizeof session->retry.why];
    int32_t attempt = session->retry.attempt;
    int64_t ms = session->retry.delay_ms;
    snprintf(why, sizeof why, "%s", session->retry.why);
    session->retry.due = false;
    sgi_user_code_begin(engine);
    session->events.on_reconnect(session->events.user, session, attempt, ms, why);
    sgi_user_code_end(engine);
    return 1;
}

static int32_t deliver(sgi_ready_object *ready, int32_t budget)
{
    segue_session *session = SGI_OWNER(ready, segue_session, ready);
    sgi_engine *engine = session->engine;
    int32_t ran = 0;
    (void)budget; /* a session has only a few events, so the budget does not limit them */
    if (session->retry.due && session->stage != SGI_STAGE_TOLD)
        ran += deliver_retry(session);
    if (session->open_due) {
        session->open_due = false;
        sgi_user_code_begin(engine);
        if (session->events.on_open)
            session->events.on_open(session->events.user, session);
        sgi_user_code_end(engine);
        ran++;
    }
    if (session->notifications.waiting.len && session->stage != SGI_STAGE_TOLD)
        ran += sgi_notifications_deliver(session);
    /* the session may have opened again while on_open ran without the lock */
    if (session->stage == SGI_STAGE_CLOSED && !session->open_due &&
        TAILQ_EMPTY(&session->requests))
        ran += deliver_closed(session);
    sgi_session_unref(session);
    return ran;
}
