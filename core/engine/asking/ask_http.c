#include "engine/asking/ask_exchange.h"

#include "engine/asking/asked.h"
#include "engine/asking/request.h"
#include "engine/asking/tool_headers.h"
#include "engine/asking/withdrawal.h"
#include "engine/hosting/host.h"
#include "wire/mcp_headers.h"

/* ---- as a conversation ---- */

static void start(void *self)
{
    (void)self;
}

static void message(void *self, const sgi_message *msg)
{
    const sgi_exchange *exchange = self;
    segue_session *session = exchange->session; /* held with the exchange */
    session->hearing = exchange->emitter;
    if (exchange->kind != SGI_ASK_INITIALIZE &&
        exchange->wire_session == session->wire_session)
        session->renewals = 0; /* it is good for something */
    session->conn->role->message(session, msg);
    session->hearing = NULL;
}

static void bad_input(void *self, int32_t rpc_code, const char *problem)
{
    const sgi_exchange *exchange = self;
    exchange->session->conn->role->bad_input(exchange->session, rpc_code, problem);
}

static bool batch(void *self, sgi_str text)
{
    const sgi_exchange *exchange = self;
    return sgi_session_batch(exchange->session, exchange->conn, text);
}

static void lost(void *self, const char *why)
{
    sgi_exchange *exchange = self;
    if (exchange->answers.len && !exchange->settled)
        sgi_asked_lost(exchange->session, sgi_buf_str(&exchange->answers));
    if (exchange->withdraws && !exchange->settled)
        sgi_withdrawal_lost(exchange->session, exchange->withdraws);
    if (exchange->emitter)
        sgi_emitter_lost(exchange->emitter, why, exchange->unsent);
    else if (exchange->announces && exchange->unsent)
        sgi_session_lost(exchange->session, why);
    else if (exchange->announces)
        sgi_session_announced(exchange->session);
    else if (exchange->kind == SGI_ASK_LISTEN && !exchange->over)
        sgi_session_unheard(exchange->session, exchange->heard);
}

/* Only what may bring more than its answer waits for the application. */
static bool wants_input(void *self)
{
    sgi_exchange *exchange = self;
    const sgi_emitter *emitter = exchange->emitter;
    const segue_request *request = emitter ? emitter->request : NULL;
    if (exchange->kind != SGI_ASK_LISTEN &&
        (!request || (emitter != request->calling && emitter != request->streaming)))
        return true;
    return !exchange->session->notifications_full && !(request && request->behind);
}

static void detached(void *self)
{
    (void)self;
}

static void freed(void *self)
{
    sgi_exchange *exchange = self;
    const sgi_mem *mem = sgi_engine_mem(exchange->conn->engine);
    segue_session *session = exchange->session;
    sgi_buf_free(&exchange->method);
    sgi_buf_free(&exchange->name);
    sgi_buf_free(&exchange->params);
    sgi_buf_free(&exchange->answers);
    if (!exchange->waited_for)
        session->telling--;
    sgi_release(mem, exchange, sizeof *exchange);
    sgi_asked_go(session);
    sgi_hosting_go(session);
    sgi_session_unref(session);
}

static const sgi_role asking_once = {.start = start,
                                     .message = message,
                                     .bad_input = bad_input,
                                     .batch = batch,
                                     .lost = lost,
                                     .wants_input = wants_input,
                                     .detached = detached,
                                     .freed = freed};

/* ---- life ---- */

/* The transport is to look at it. */
static void mark(sgi_exchange *exchange)
{
    segue_session *session = exchange->session;
    sgi_host *host = &session->engine->host;
    if (exchange->marked || session->conn->detached)
        return;
    exchange->marked = true;
    sgi_conn_ref(exchange->conn);
    TAILQ_INSERT_TAIL(&session->exchanges, exchange, link);
    host->output(host->user, session->conn);
}

sgi_conn *sgi_ask_new(segue_session *session)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_exchange *exchange = sgi_zalloc(mem, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->conn = sgi_conn_new(session->engine, &asking_once, exchange, NULL);
    if (!exchange->conn) {
        sgi_release(mem, exchange, sizeof *exchange);
        return NULL;
    }
    exchange->conn->exchange = exchange;
    exchange->session = session;
    sgi_session_ref(session);
    session->telling++;
    exchange->version = session->version;
    exchange->wire_session = session->wire_session;
    sgi_buf_init(&exchange->method, mem);
    sgi_buf_init(&exchange->name, mem);
    sgi_buf_init(&exchange->params, mem);
    sgi_buf_init(&exchange->answers, mem);
    sgi_conn_start(exchange->conn);
    exchange->conn->frames = SGI_FRAMES_BODY;
    return exchange->conn;
}

/* 2026-07-28, and the draft before it. */
static bool repeats_method(const sgi_exchange *exchange)
{
    return exchange->version >= SGI_VERSION_DRAFT_2026_V1;
}

/* Of the draft: the id of a task alone (core/docs/requirements.md 2.1). */
static const char *name_member(const sgi_exchange *exchange, sgi_str method)
{
    const char *member = sgi_mcp_name_member(method);
    bool all = sgi_version_is_modern(exchange->version);
    return member && (all || !strcmp(member, "taskId")) ? member : NULL;
}

/* What the headers repeat of the body, which is our own and so well-formed. False when
 * out of memory. */
static bool read_head(sgi_exchange *exchange)
{
    sgi_str body = sgi_buf_str(&exchange->conn->out);
    sgi_json method = sgi_json_get(body, "method");
    sgi_json params = sgi_json_get(body, "params");
    if (!method.n) { /* an answer to the server */
        sgi_buf_add_str(&exchange->answers, sgi_json_get(body, "id"));
        return !exchange->answers.failed;
    }
    sgi_json_decode(method, &exchange->method);
    sgi_str plain = sgi_buf_str(&exchange->method);
    if (sgi_str_eq(plain, SGI_STR("initialize")))
        exchange->kind = SGI_ASK_INITIALIZE;
    exchange->announces = sgi_str_eq(plain, SGI_STR("notifications/initialized"));
    if (!repeats_method(exchange))
        return !exchange->method.failed;
    const char *member = name_member(exchange, plain);
    sgi_json name = member ? sgi_json_get(params, member) : (sgi_json){0};
    exchange->has_name = sgi_json_kind_of(name) == SGI_JSON_STRING;
    if (exchange->has_name) {
        sgi_buf text;
        sgi_buf_init(&text, sgi_engine_mem(exchange->conn->engine));
        sgi_json_decode(name, &text);
        sgi_mcp_add_value(&exchange->name, sgi_buf_str(&text));
        if (sgi_str_eq(plain, SGI_STR("tools/call")))
            sgi_tool_headers_write(&exchange->session->tools, sgi_buf_str(&text),
                                   sgi_json_get(params, "arguments"), &exchange->params);
        exchange->name.failed |= text.failed;
        sgi_buf_free(&text);
    }
    return !exchange->method.failed && !exchange->name.failed && !exchange->params.failed;
}

bool sgi_ask_send(sgi_conn *conn, sgi_emitter *emitter)
{
    sgi_exchange *exchange = conn->exchange;
    bool fits = read_head(exchange);
    exchange->emitter = emitter;
    exchange->over = !emitter; /* heard or not, nobody waits */
    if (emitter) {
        exchange->waited_for = true;
        exchange->session->telling--;
    }
    if (fits)
        mark(exchange);
    if (!emitter)
        sgi_conn_unref(exchange->conn);
    return fits;
}

void sgi_ask_end(sgi_conn *conn)
{
    sgi_exchange *exchange = conn->exchange;
    exchange->emitter = NULL;
    exchange->over = true;
    if (!exchange->taken)
        conn->up = false; /* never sent: the transport passes it over */
    else if (!conn->answered && conn->transport)
        mark(exchange); /* else what is left of its stream may end in peace */
    sgi_conn_unref(exchange->conn);
}

void sgi_ask_listen(segue_session *session)
{
    sgi_conn *conn = sgi_ask_new(session);
    if (!conn)
        return; /* nothing is promised on it */
    session->listening = conn;
    conn->exchange->kind = SGI_ASK_LISTEN;
    mark(conn->exchange);
}

void sgi_ask_resume(sgi_conn *conn)
{
    if (conn->stalled && conn->up && sgi_conn_wants_input(conn))
        mark(conn->exchange);
}

void sgi_ask_forget(segue_session *session)
{
    sgi_exchange *exchange;
    while ((exchange = TAILQ_FIRST(&session->exchanges))) {
        TAILQ_REMOVE(&session->exchanges, exchange, link);
        exchange->marked = false;
        sgi_conn_unref(exchange->conn);
    }
}

/* ---- for the transport ---- */

sgi_conn *sgi_ask_next(sgi_conn *parent)
{
    segue_session *session = parent->self;
    sgi_exchange *exchange;
    while ((exchange = TAILQ_FIRST(&session->exchanges))) {
        sgi_conn *conn = exchange->conn;
        TAILQ_REMOVE(&session->exchanges, exchange, link);
        exchange->marked = false;
        if (!exchange->taken && conn->up) {
            exchange->taken = true; /* the reference of the list becomes its own */
            return conn;
        }
        bool carried = conn->transport != NULL; /* then it has a reference of its own */
        sgi_conn_unref(conn);
        if (carried)
            return conn;
    }
    return NULL;
}

void sgi_ask_bind(sgi_conn *conn, void *transport)
{
    conn->transport = transport;
}

bool sgi_ask_is_over(const sgi_conn *conn)
{
    return conn->exchange->over && !conn->answered;
}

bool sgi_ask_waits(const sgi_conn *conn)
{
    const sgi_exchange *exchange = conn->exchange;
    return exchange->emitter || (exchange->kind == SGI_ASK_LISTEN && !exchange->over);
}

/* Nobody but the request itself may send it again. A call without a key would run twice.
 * And what waits may still wait in its wire session, where its id is in use: it goes
 * again under another. */
static bool goes_once(const sgi_exchange *exchange, bool modern)
{
    const segue_request *request = exchange->emitter ? exchange->emitter->request : NULL;
    sgi_str method = sgi_buf_str(&exchange->method);
    if (sgi_str_eq(method, SGI_STR("tools/call")))
        return !modern || !request || !request->key_sent;
    return !modern && sgi_str_eq(method, SGI_STR("tasks/result"));
}

/* A call may wait for the answer to a question, a task for that or for its end, and
 * everything for the handshake. */
static bool is_brief(const sgi_exchange *exchange)
{
    static const char *const methods[] = {
        "initialize",   "server/discover",   "ping", "tasks/get", "tasks/update",
        "tasks/cancel", "requests/getStatus"};
    sgi_str method = sgi_buf_str(&exchange->method);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (sgi_str_eq(method, sgi_str_of(methods[i])))
            return true;
    return !exchange->waited_for; /* an answer, or a notification */
}

static sgi_ask_span span_of(const sgi_exchange *exchange)
{
    const sgi_emitter *emitter = exchange->emitter;
    if (exchange->kind == SGI_ASK_LISTEN ||
        sgi_str_eq(sgi_buf_str(&exchange->method), SGI_STR("subscriptions/listen")))
        return SGI_ASK_STANDING;
    if (is_brief(exchange))
        return SGI_ASK_BRIEF;
    return emitter && !emitter->timeout_ms ? SGI_ASK_LONG : SGI_ASK_REQUEST;
}

void sgi_ask_look(const sgi_conn *conn, sgi_ask_head *head)
{
    const sgi_exchange *exchange = conn->exchange;
    bool modern = sgi_version_is_modern(exchange->version);
    bool names_version = modern || exchange->kind != SGI_ASK_INITIALIZE;
    *head = (sgi_ask_head){.kind = exchange->kind,
                           .modern = modern,
                           .span = span_of(exchange),
                           .params = sgi_buf_str(&exchange->params)};
    if (names_version)
        head->version = sgi_str_of(sgi_version_name(exchange->version));
    if (repeats_method(exchange))
        head->method = sgi_buf_str(&exchange->method);
    const segue_request *request = exchange->emitter ? exchange->emitter->request : NULL;
    if (request && sgi_str_eq(sgi_buf_str(&exchange->method), SGI_STR("requests/resume")))
        head->last_event = sgi_resume_position(request);
    head->once = goes_once(exchange, modern);
    if (exchange->has_name)
        head->name =
            (sgi_str){exchange->name.p ? exchange->name.p : "", exchange->name.len};
}

void sgi_ask_position(sgi_conn *conn, sgi_str event)
{
    const sgi_emitter *emitter = conn->exchange->emitter;
    if (emitter && emitter->request)
        sgi_resume_event(emitter->request, event);
}

void sgi_ask_alive(sgi_conn *conn)
{
    sgi_emitter *emitter = conn->exchange->emitter;
    conn->exchange->heard = true;
    if (emitter && emitter->request) /* a handshake that only begins is none */
        sgi_emitter_touch(emitter);
}

void sgi_ask_server(sgi_conn *conn, sgi_str name)
{
    segue_session *session = conn->exchange->session;
    char *known = session->server_name;
    if (!name.n || name.n > SGI_SERVER_NAME_MAX || sgi_str_eq(name, sgi_str_of(known)))
        return;
    bool is_another = *known != 0;
    memcpy(known, name.p, name.n);
    known[name.n] = 0;
    if (is_another)
        sgi_session_taken_over(session);
}

void sgi_ask_wait(sgi_conn *conn, int64_t ms)
{
    segue_session *session = conn->exchange->session;
    int64_t until = sgi_time_add(sgi_now(&session->engine->env), ms);
    if (until > session->wait_until_ms)
        session->wait_until_ms = until;
}

void sgi_ask_hold(sgi_conn *conn, bool held)
{
    sgi_exchange *exchange = conn->exchange;
    if (exchange->held && !held && exchange->emitter)
        sgi_emitter_touch(exchange->emitter);
    exchange->held = held;
}

void sgi_ask_user_decides(sgi_conn *parent, bool decides)
{
    segue_session *session = parent->self;
    segue_request *request;
    int64_t now = sgi_now(&session->engine->env);
    if (decides == (session->user_ms != 0))
        return;
    int64_t took = decides ? 0 : now - session->user_ms;
    session->user_ms = decides ? now : 0;
    session->lost_ms += took;
    TAILQ_FOREACH(request, &session->requests, link) {
        sgi_tries_pass(&request->tries, took);
        sgi_tries_pass(&request->stream_tries, took);
    }
}

bool sgi_ask_is_held(const sgi_conn *conn)
{
    return conn->exchange && conn->exchange->held;
}

void sgi_ask_unsent(sgi_conn *conn)
{
    conn->exchange->unsent = true;
}

void sgi_ask_release(sgi_conn *conn)
{
    conn->transport = NULL;
    conn->up = false;
    sgi_conn_unref(conn);
}
