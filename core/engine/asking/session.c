/* A session's life: it is made, its connection comes and goes, what the server says is
 * passed on, and it ends once. It outlives its handle while requests, exchanges or events
 * need it (refs). The handshake is handshake.c's, requests are request.c's. */
#include "engine/asking/session.h"

#include "base/backoff.h"
#include "engine/asking/ask_http.h"
#include "engine/asking/asked.h"
#include "engine/asking/emitter.h"
#include "engine/asking/follow_2025.h"
#include "engine/asking/request.h"
#include "engine/asking/withdrawal.h"
#include "engine/error.h"
#include "engine/hosting/host.h"

#include <stdio.h>

static const sgi_backoff reconnecting = {.first_ms = 250, .most_ms = 30000, .spread = 50};

/* A server that was there for so long works, though nobody asked it for anything. */
#define STEADY_MS 5000

static void start(void *self);
static void message(void *self, const sgi_message *msg);
static void bad_input(void *self, int32_t rpc_code, const char *problem);
static bool batch(void *self, sgi_str text);
static void lost(void *self, const char *why);
static bool wants_input(void *self);
static void detached(void *self);
static int32_t deliver(sgi_ready *ready, int32_t budget);

static const sgi_role asking = {.start = start,
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
    session->options.capabilities = NULL; /* lives on in meta and capabilities */
    return true;
}

static void free_session(segue_session *session)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    session->handle.magic = SGI_MAGIC_FREED;
    if (session->gone)
        session->gone(session, session->gone_user);
    sgi_hosting_free(session);
    sgi_engine_timer_clear(session->engine, &session->timer);
    sgi_engine_timer_clear(session->engine, &session->listen_again);
    sgi_map_free(&session->in_flight);
    sgi_map_free(&session->streams);
    sgi_tool_headers_free(&session->tools);
    sgi_tool_schemas_free(&session->tool_schemas);
    sgi_early_free(session);
    sgi_cache_free(&session->cache);
    sgi_tool_tasks_free(&session->tool_tasks);
    sgi_text_free(mem, session->refusal);
    sgi_buf_free(&session->list_cursor);
    sgi_buf_free(&session->meta);
    sgi_buf_free(&session->capabilities);
    sgi_buf_free(&session->peer);
    sgi_buf_free(&session->notifications);
    sgi_error_free(session->error);
    for (size_t i = 0; i < 2; i++)
        sgi_text_free(mem, session->texts[i]);
    sgi_release(mem, session, sizeof *session);
}

static segue_status set_up(segue_session *session, void *transport, sgi_json capabilities)
{
    segue_server *host = session->options.host;
    session->conn = sgi_conn_new(session->engine, &asking, session, transport);
    if (!session->conn || !copy_texts(session) ||
        !sgi_handshake_prepare(session, capabilities))
        return SEGUE_E_NOMEM;
    session->options.host = NULL; /* it may go before the session does */
    return host ? sgi_hosting_new(session, host) : SEGUE_OK;
}

/* Ids of an earlier process may still be in flight, for who resumes them: others
 * (R-975-30). Exact in a double, whatever reads them. */
static int64_t first_id(sgi_engine *engine)
{
    uint8_t bytes[5] = {0};
    int64_t id = 0;
    sgi_random(&engine->env, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        id = id << 8 | bytes[i];
    return id << 8;
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
    session->max_waits = SGI_WAITS_MAX;
    session->max_withdrawals = SGI_WITHDRAWALS_MAX;
    if (options->dialects_on & SEGUE_DIALECT_RESUMABLE)
        session->last_id = first_id(engine);
    TAILQ_INIT(&session->requests);
    TAILQ_INIT(&session->exchanges);
    TAILQ_INIT(&session->withdrawals);
    TAILQ_INIT(&session->early.all);
    sgi_map_init(&session->in_flight, &engine->env);
    sgi_map_init(&session->streams, &engine->env);
    sgi_tool_headers_init(&session->tools, engine);
    sgi_tool_schemas_init(&session->tool_schemas, engine, events && events->on_validate);
    sgi_cache_init(&session->cache, engine, options->cache_bytes);
    sgi_tool_tasks_init(&session->tool_tasks, engine);
    sgi_buf_init(&session->list_cursor, mem);
    sgi_buf_init(&session->meta, mem);
    sgi_buf_init(&session->capabilities, mem);
    sgi_buf_init(&session->peer, mem);
    sgi_buf_init(&session->notifications, mem);
    segue_status status = set_up(session, transport, capabilities);
    if (status != SEGUE_OK) {
        sgi_conn *conn = session->conn;
        free_session(session);
        if (conn)
            sgi_conn_unref(conn);
        return status;
    }
    session->refs = 2; /* the handle and the conversation */
    if (events)
        session->events = *events;
    *out = session;
    return SEGUE_OK;
}

void sgi_session_ref(segue_session *session)
{
    session->refs++;
}

void sgi_session_unref(segue_session *session)
{
    if (--session->refs == 0)
        free_session(session);
}

/* ---- messages that are no requests ---- */

sgi_conn *sgi_session_tell(segue_session *session)
{
    return session->conn->exchanging ? sgi_ask_new(session) : session->conn;
}

bool sgi_session_told(segue_session *session, sgi_conn *conn)
{
    (void)session;
    if (!conn->exchange)
        return true;
    if (conn->out.len)
        return sgi_ask_send(conn, NULL);
    sgi_ask_end(conn);
    return false;
}

/* ---- what the server says ---- */

static void handle_notification(segue_session *session, const sgi_message *msg)
{
    char room[SGI_NAME_MAX];
    sgi_str method = sgi_name_text(msg->method, room);
    if (!method.n) {
        session->engine->warnings++;
        return;
    }
    if (sgi_str_eq(method, SGI_STR("notifications/cancelled")) &&
        (sgi_asked_withdraw(session, msg->params) || sgi_hosting_takes(session, msg)))
        return;
    sgi_cache_notified(session, method, msg->params);
    if (sgi_str_eq(method, SGI_STR("notifications/tools/list_changed")))
        sgi_tool_schemas_forget(&session->tool_schemas);
    if (!sgi_requests_notified(session, method, msg))
        sgi_notifications_keep(session, method, msg->params);
}

static void message(void *self, const sgi_message *msg)
{
    segue_session *session = self;
    sgi_emitter *emitter = NULL;
    switch (msg->kind) {
    case SGI_MESSAGE_RESULT:
    case SGI_MESSAGE_ERROR:
        emitter = sgi_emitter_find(session, msg->id);
        session->answered |= emitter && emitter->request;
        if (!emitter)
            session->engine->warnings++; /* late, or never asked: dropped (AS-118) */
        else if (msg->kind == SGI_MESSAGE_RESULT)
            sgi_emitter_result(emitter, msg->result);
        else
            sgi_emitter_error(emitter, msg->error);
        break;
    case SGI_MESSAGE_NOTIFICATION:
        handle_notification(session, msg);
        break;
    case SGI_MESSAGE_REQUEST:
        if (!sgi_hosting_takes(session, msg))
            sgi_asked_handle(session, msg);
        break;
    case SGI_MESSAGE_INVALID:
        session->engine->warnings++;
        sgi_engine_log(session->engine, SEGUE_LOG_WARNING, "the server sent: %s",
                       msg->problem);
        emitter = msg->id.n && !msg->is_call ? sgi_emitter_find(session, msg->id) : NULL;
        if (emitter && msg->is_cut)
            sgi_emitter_too_large(emitter);
        else if (emitter)
            sgi_emitter_malformed(emitter);
        else if (msg->is_call)
            sgi_asked_malformed(session, msg);
        if (!msg->id.n)
            sgi_requests_lack(session);
    }
}

static void bad_input(void *self, int32_t rpc_code, const char *problem)
{
    segue_session *session = self;
    (void)rpc_code;
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING, "the server sent: %s", problem);
    sgi_requests_lack(session);
}

static bool batch(void *self, sgi_str text)
{
    segue_session *session = self;
    return sgi_session_batch(session, session->conn, text);
}

bool sgi_session_batch(const segue_session *session, sgi_conn *conn, sgi_str text)
{
    if (!sgi_conn_is_batch(session->engine, session->version, text))
        return false;
    sgi_conn_each(conn, text);
    return true;
}

static bool wants_input(void *self)
{
    return !sgi_session_is_behind(self) && sgi_hosting_wants_input(self);
}

void sgi_session_resume_input(segue_session *session, const segue_request *request)
{
    if (session->stage == SGI_STAGE_CLOSED)
        return;
    if (!session->conn->exchanging) {
        sgi_conn_resume_input(session->conn);
        return;
    }
    if (request->calling)
        sgi_ask_resume(request->calling->conn);
    if (request->streaming)
        sgi_ask_resume(request->streaming->conn); /* no other of its exchanges waits */
}

/* ---- connection ---- */

static void start(void *self)
{
    segue_session *session = self;
    if (session->stage == SGI_STAGE_CLOSED)
        return;
    if (session->agreed)
        sgi_session_opened(session);
    else if (sgi_hosting_is_ready(session))
        sgi_handshake_begin(session);
}

static void lose_emitters(segue_session *session, const char *why)
{
    sgi_map_node *node;
    while ((node = sgi_map_any(&session->in_flight)))
        sgi_emitter_lost(SGI_OWNER(node, sgi_emitter, node), why, false);
}

/* ---- the stream on which the server speaks first ---- */

static const sgi_backoff listening = {.first_ms = 1000, .most_ms = 32000};

static void stop_listening(segue_session *session)
{
    sgi_conn *conn = session->listening;
    session->listening = NULL;
    sgi_engine_timer_clear(session->engine, &session->listen_again);
    if (conn)
        sgi_ask_end(conn);
}

static void listen_again(sgi_timer *timer)
{
    segue_session *session = SGI_OWNER(timer, segue_session, listen_again);
    if (sgi_session_is_open(session) && !session->listening)
        sgi_ask_listen(session);
}

void sgi_session_unheard(segue_session *session, bool heard)
{
    stop_listening(session);
    session->unheard = heard ? 1 : session->unheard + 1;
    int64_t ms = sgi_backoff_ms(&listening, session->unheard);
    if (sgi_session_is_open(session))
        sgi_engine_timer(session->engine, &session->listen_again,
                         sgi_session_patience(session, ms), listen_again);
}

int64_t sgi_session_patience(const segue_session *session, int64_t ms)
{
    int64_t left = sgi_time_sub(session->wait_until_ms, sgi_now(&session->engine->env));
    return left > ms ? left : ms;
}

static void try_again(sgi_timer *timer)
{
    segue_session *session = SGI_OWNER(timer, segue_session, timer);
    sgi_engine *engine = session->engine;
    if (session->stage == SGI_STAGE_LOST &&
        !engine->host.reopen(engine->host.user, session->conn))
        sgi_session_failed(session, SEGUE_E_DISCONNECTED, "the connection is lost");
}

static void lost(void *self, const char *why)
{
    sgi_session_lost(self, why);
}

int64_t sgi_session_reach_ms(const segue_session *session, int64_t gone_ms)
{
    int64_t most = session->options.reconnect_timeout_ms;
    return most > 0 ? most - gone_ms : INT64_MAX;
}

void sgi_session_tell_retry(segue_session *session, const char *what, int32_t attempt,
                            int64_t ms, const char *why)
{
    sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                   "%s%slost (%s): attempt %d to reach the server again in %lld ms",
                   what ? what : "the connection is ", what ? " is " : "", why,
                   (int)attempt, (long long)ms);
    if (!session->events.on_reconnect || (!what && session->retry.due))
        return; /* what is told of a request that was lost with it says more */
    session->retry.due = true;
    session->retry.attempt = attempt;
    session->retry.delay_ms = ms;
    sgi_text_write(session->retry.why, sizeof session->retry.why, "%s%s%s",
                   what ? what : "", what ? ": " : "", why);
    if (!session->ready.queued)
        sgi_session_ref(session);
    sgi_ready_add(session->engine, &session->ready);
}

static void try_later(segue_session *session, int64_t ms, const char *why)
{
    sgi_session_tell_retry(session, NULL, session->attempts, ms, why);
    sgi_engine_timer(session->engine, &session->timer, ms, try_again);
}

static void end_attempts(segue_session *session, const char *why)
{
    char text[SGI_WHY_MAX];
    snprintf(text, sizeof text, "the connection failed %d times in a row (%s): %.1900s",
             (int)session->attempts,
             session->was_open ? "max_reconnects" : "max_reconnects or first_attempts",
             why);
    sgi_session_failed(session, SEGUE_E_DISCONNECTED, session->attempts > 1 ? text : why);
}

static void out_of_reach(segue_session *session, const char *why)
{
    char text[SGI_WHY_MAX];
    sgi_explain_reach(session, text, why);
    sgi_session_failed(session, SEGUE_E_DISCONNECTED, text);
}

/* A server that works: its loss is the first of a row. Of requests that are lost with it
 * each counts for itself (retry.c). One that dies as soon as it has begun is given up as
 * one that cannot be reached. */
static void note_works(segue_session *session)
{
    int64_t up_ms = sgi_time_sub(sgi_now(&session->engine->env), session->opened_ms);
    if (sgi_session_is_open(session) &&
        (session->answered || session->in_flight.count || up_ms >= STEADY_MS))
        session->attempts = 0;
}

/* How often it may be tried again. first_attempts is for a server that is not there, and
 * not for one that asks to come again. */
static int32_t most_attempts(const segue_session *session)
{
    bool is_asked = sgi_session_patience(session, 0) > 0;
    int32_t first = session->was_open || is_asked ? 0 : session->options.first_attempts;
    return first ? first - 1 : session->options.max_reconnects;
}

void sgi_session_lost(segue_session *session, const char *why)
{
    note_works(session);
    int32_t most = most_attempts(session);
    int64_t now = sgi_now(&session->engine->env);
    int64_t ms =
        sgi_backoff_wait(&reconnecting, session->attempts, &session->engine->env);
    if (session->stage == SGI_STAGE_CLOSED || session->stage == SGI_STAGE_LOST)
        return;
    if (!session->attempts || session->wait_until_ms > now)
        session->lost_ms = session->wait_until_ms > now ? session->wait_until_ms : now;
    int64_t asked = sgi_session_patience(session, ms);
    int64_t left = sgi_session_reach_ms(session, now - session->lost_ms);
    session->stage = SGI_STAGE_LOST;
    sgi_session_ref(session);
    lose_emitters(session, why);
    stop_listening(session);
    sgi_hosting_cut(session, why);
    if (session->agreed)
        ; /* begins again with what carries it */
    else if (!session->conn->can_reopen)
        sgi_session_failed(session, SEGUE_E_DISCONNECTED, why);
    else if (++session->attempts > most)
        end_attempts(session, why);
    else if (left <= 0)
        out_of_reach(session, why);
    else if (asked > ms) /* the server is there, and wants to be left alone */
        try_later(session, asked, why);
    else
        try_later(session, ms < left ? ms : left, why);
    sgi_session_unref(session);
}

void sgi_session_renew(segue_session *session, const char *why)
{
    if (!sgi_session_is_open(session))
        return;
    sgi_engine_log(session->engine, SEGUE_LOG_INFO, "a new wire session: %s", why);
    session->stage = SGI_STAGE_LOST;
    stop_listening(session);
    sgi_hosting_cut(session, why);
    int64_t ms =
        sgi_backoff_wait(&reconnecting, session->renewals++, &session->engine->env);
    sgi_engine_timer(session->engine, &session->timer, ms, try_again);
}

static void detached(void *self)
{
    segue_session *session = self;
    sgi_conn *conn = session->conn;
    sgi_session_failed(session, SEGUE_E_DISCONNECTED, "the transport has ended");
    sgi_ask_forget(session);
    sgi_conn_unref(conn);
    sgi_session_unref(session);
}

/* What changed before, nobody has heard. */
static void tell_open(segue_session *session)
{
    sgi_cache_forget(&session->cache);
    sgi_tool_schemas_forget(&session->tool_schemas);
    session->open_due = true;
    if (!session->ready.queued)
        sgi_session_ref(session);
    sgi_ready_add(session->engine, &session->ready);
}

void sgi_session_taken_over(segue_session *session)
{
    if (!sgi_session_is_open(session))
        return;
    sgi_engine_log(session->engine, SEGUE_LOG_INFO,
                   "another server goes on with the session");
    sgi_log_wish_again(session);
    tell_open(session);
}

void sgi_session_opened(segue_session *session)
{
    session->stage = SGI_STAGE_OPEN;
    session->was_open = true;
    session->answered = false;
    session->opened_ms = sgi_now(&session->engine->env);
    if (session->conn->exchanging)
        session->attempts = 0;
    sgi_engine_timer_clear(session->engine, &session->timer);
    tell_open(session);
    sgi_hosting_open(session);
    if (session->conn->exchanging && !sgi_version_is_modern(session->version))
        sgi_ask_listen(session);
    sgi_withdrawals_opened(session);
    sgi_requests_opened(session);
}

void sgi_session_failed(segue_session *session, segue_status status, const char *text)
{
    segue_request *request;
    if (session->stage == SGI_STAGE_CLOSED)
        return;
    if (status == SEGUE_E_CLOSED)
        TAILQ_FOREACH(request, &session->requests, link)
            sgi_request_withdraw(request);
    sgi_withdrawals_end(session);
    session->stage = SGI_STAGE_CLOSED;
    sgi_engine_timer_clear(session->engine, &session->timer);
    if (status != SEGUE_E_CLOSED)
        session->error = sgi_error_new(sgi_engine_mem(session->engine), status, 0,
                                       sgi_str_of(text), (sgi_str){0});
    session->closed_due = true;
    if (!session->ready.queued)
        sgi_session_ref(session);
    sgi_ready_add(session->engine, &session->ready);
    sgi_requests_closed(session, status, text); /* first: they end with this status */
    lose_emitters(session, text);
    stop_listening(session);
    sgi_hosting_end(session);
    sgi_conn_close(session->conn);
}

void sgi_session_close(segue_session *session)
{
    sgi_session_failed(session, SEGUE_E_CLOSED, "the session was closed");
}

/* ---- the application ---- */

static int32_t deliver_closed(segue_session *session)
{
    sgi_engine *engine = session->engine;
    session->closed_due = session->retry.due = false;
    session->closed_told = true;
    sgi_user_begin(engine);
    if (session->events.on_closed)
        session->events.on_closed(session->events.user, session, session->error);
    if (session->events.free_user)
        session->events.free_user(session->events.user);
    sgi_user_end(engine);
    return 1;
}

/* The engine may write the next one meanwhile. */
static int32_t deliver_retry(segue_session *session)
{
    sgi_engine *engine = session->engine;
    char why[sizeof session->retry.why];
    int32_t attempt = session->retry.attempt;
    int64_t ms = session->retry.delay_ms;
    snprintf(why, sizeof why, "%s", session->retry.why);
    session->retry.due = false;
    sgi_user_begin(engine);
    session->events.on_reconnect(session->events.user, session, attempt, ms, why);
    sgi_user_end(engine);
    return 1;
}

static int32_t deliver(sgi_ready *ready, int32_t budget)
{
    segue_session *session = SGI_OWNER(ready, segue_session, ready);
    sgi_engine *engine = session->engine;
    int32_t ran = 0;
    (void)budget; /* what waits is bounded */
    if (session->retry.due && !session->closed_told)
        ran += deliver_retry(session);
    if (session->open_due) {
        session->open_due = false;
        sgi_user_begin(engine);
        if (session->events.on_open)
            session->events.on_open(session->events.user, session);
        sgi_user_end(engine);
        ran++;
    }
    if (session->notifications.len && !session->closed_told)
        ran += sgi_notifications_deliver(session);
    if (session->closed_due && TAILQ_EMPTY(&session->requests))
        ran += deliver_closed(session);
    sgi_session_unref(session);
    return ran;
}
