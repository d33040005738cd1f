/* The receiving side of a client's HTTP exchange. Passes the messages of the response to
 * the session. Also has the functions by which the transport gets exchanges and reports
 * what happens to them. exchange_send.c has the sending side. */
#include "engine/client/exchange_state.h"

#include "engine/client/server_questions.h"
#include "engine/client/dialects.h"
#include "engine/client/withdrawal.h"
#include "engine/client/hosting.h"

/* ---- callbacks of the exchange's conversation ---- */

static void start(void *self)
{
    (void)self;
}

/* True for an answer that comes after the request has left this exchange. A later request
 * can have the same id (requests/resume). The late answer must not become the answer to
 * that later request. */
static bool is_late_answer(const sgi_exchange *exchange, const sgi_message *msg)
{
    return exchange->over && exchange->waited_for &&
           (msg->kind == SGI_MESSAGE_RESULT || msg->kind == SGI_MESSAGE_ERROR);
}

static void message(void *self, const sgi_message *msg)
{
    const sgi_exchange *exchange = self;
    /* a reference of the exchange keeps the session in memory */
    segue_session *session = exchange->session;
    if (is_late_answer(exchange, msg)) {
        session->engine->warnings++;
        return;
    }
    session->hearing = exchange->emitter;
    if (exchange->kind != SGI_EXCHANGE_INITIALIZE &&
        exchange->wire_session == session->wire_session)
        /* the server has answered a message in this wire session, so the count of
         * renewals in a row starts at 0 again */
        session->reach.renewals = 0;
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
    return sgi_session_read_batch(exchange->session, exchange->conn, text);
}

static void lost(void *self, const char *why)
{
    sgi_exchange *exchange = self;
    if (exchange->answers.len && !exchange->settled)
        sgi_server_question_resend_answer(exchange->session,
                                          sgi_buf_str(&exchange->answers));
    if (exchange->withdraws && !exchange->settled)
        sgi_withdrawal_on_lost(exchange->session, exchange->withdraws);
    if (exchange->emitter)
        sgi_emitter_on_lost_exchange(exchange->emitter, why, exchange->loss);
    else if (exchange->announces && exchange->loss == SGI_LOSS_UNSENT)
        sgi_session_on_connection_lost(exchange->session, why);
    else if (exchange->announces)
        sgi_session_on_initialized_accepted(exchange->session);
    else if (exchange->kind == SGI_EXCHANGE_LISTEN && !exchange->over)
        sgi_session_on_stream_ended(exchange->session, exchange->has_response);
}

/* Returns false while the inbox is full, for an exchange that can bring more messages
 * than its answer. An exchange that brings only its answer is always read. */
static bool wants_input(void *self)
{
    sgi_exchange *exchange = self;
    const sgi_emitter *emitter = exchange->emitter;
    const segue_request *request = emitter ? emitter->request : NULL;
    if (exchange->kind != SGI_EXCHANGE_LISTEN &&
        (!request ||
         (emitter != request->calling && emitter != sgi_cli_streaming_exchange(request))))
        return true;
    return !exchange->session->notifications.full &&
           !(request && request->delivery.behind);
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
        session->answers.under_way--;
    sgi_free(mem, exchange, sizeof *exchange);
    sgi_server_questions_send_answers(session);
    sgi_question_host_resume_input(session);
    sgi_session_unref(session);
}

const sgi_conn_role sgi_exchange_role = {.start = start,
                                         .message = message,
                                         .bad_input = bad_input,
                                         .batch = batch,
                                         .lost = lost,
                                         .wants_input = wants_input,
                                         .detached = detached,
                                         .freed = freed};

/* ---- functions for the transport ---- */

sgi_conn *sgi_exchange_next(sgi_conn *parent)
{
    segue_session *session = parent->self;
    sgi_exchange *exchange;
    while ((exchange = TAILQ_FIRST(&session->exchanges))) {
        sgi_conn *conn = exchange->conn;
        TAILQ_REMOVE(&session->exchanges, exchange, link);
        exchange->marked = false;
        if (!exchange->taken && conn->up) {
            /* the reference that the list had now belongs to the transport */
            exchange->taken = true;
            return conn;
        }
        /* If the exchange never had a transport, sgi_conn_unref drops the last reference
         * and frees conn. So conn is returned only if it has a transport. */
        bool carried = conn->transport != NULL;
        sgi_conn_unref(conn);
        if (carried)
            return conn;
    }
    return NULL;
}

void sgi_exchange_set_transport(sgi_conn *conn, void *transport)
{
    conn->transport = transport;
}

bool sgi_exchange_is_over(const sgi_conn *conn)
{
    return conn->exchange->over && !conn->answered;
}

bool sgi_exchange_is_awaited(const sgi_conn *conn)
{
    const sgi_exchange *exchange = conn->exchange;
    return exchange->emitter ||
           (exchange->kind == SGI_EXCHANGE_LISTEN && !exchange->over);
}

/* True when the transport must not send the message again, and only the client's request
 * may do so. A call without an idempotency key would run twice. A repeated tasks/result
 * would use an id that may still be in use in its wire session, so the request sends the
 * message under a new id. */
static bool goes_once(const sgi_exchange *exchange, bool stateless)
{
    const segue_request *request = exchange->emitter ? exchange->emitter->request : NULL;
    sgi_str method = sgi_buf_str(&exchange->method);
    if (sgi_str_eq(method, SGI_STR("tools/call")))
        return !stateless || !request || !request->key.sent;
    return !stateless && sgi_str_eq(method, SGI_STR("tasks/result"));
}

/* True for a message that the server answers at once. Three kinds of messages may be
 * answered late: a call, which may wait for the answer to a question; tasks/result, which
 * waits for the end of its task; and a message that is sent before the handshake is
 * over. */
static bool is_brief(const sgi_exchange *exchange)
{
    static const char *const methods[] = {"initialize",   "server/discover",
                                          "ping",         "tasks/get",
                                          "tasks/update", "tasks/cancel"};
    sgi_str method = sgi_buf_str(&exchange->method);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (sgi_str_eq(method, sgi_str_of(methods[i])))
            return true;
    /* no emitter ever waited: the message is an answer or a notification, which the
     * server accepts at once */
    return sgi_cli_is_inquiry(method) || !exchange->waited_for;
}

static sgi_exchange_span span_of(const sgi_exchange *exchange)
{
    const sgi_emitter *emitter = exchange->emitter;
    if (exchange->kind == SGI_EXCHANGE_LISTEN ||
        sgi_str_eq(sgi_buf_str(&exchange->method), SGI_STR("subscriptions/listen")))
        return SGI_EXCHANGE_STANDING;
    if (is_brief(exchange))
        return SGI_EXCHANGE_BRIEF;
    return emitter && !emitter->timeout_ms ? SGI_EXCHANGE_LONG : SGI_EXCHANGE_REQUEST;
}

void sgi_exchange_get_head(const sgi_conn *conn, sgi_exchange_head *head)
{
    const sgi_exchange *exchange = conn->exchange;
    bool stateless = sgi_facts(exchange->version)->is_stateless;
    bool names_version = stateless || exchange->kind != SGI_EXCHANGE_INITIALIZE;
    *head = (sgi_exchange_head){.kind = exchange->kind,
                                .stateless = stateless,
                                .span = span_of(exchange),
                                .params = sgi_buf_str(&exchange->params)};
    if (names_version)
        head->version = sgi_str_of(sgi_version_name(exchange->version));
    if (sgi_exchange_has_method_header(exchange))
        head->method = sgi_buf_str(&exchange->method);
    const segue_request *request = exchange->emitter ? exchange->emitter->request : NULL;
    if (request)
        head->last_event = sgi_cli_last_event_id(request, sgi_buf_str(&exchange->method));
    head->once = goes_once(exchange, stateless);
    if (exchange->has_name)
        head->name =
            (sgi_str){exchange->name.p ? exchange->name.p : "", exchange->name.len};
}

void sgi_exchange_on_event_id(sgi_conn *conn, sgi_str event)
{
    const sgi_emitter *emitter = conn->exchange->emitter;
    if (emitter && emitter->request)
        sgi_cli_set_last_event_id(emitter->request, event);
}

void sgi_exchange_on_sign_of_life(sgi_conn *conn)
{
    sgi_emitter *emitter = conn->exchange->emitter;
    conn->exchange->has_response = true;
    /* an emitter without a request belongs to the handshake, whose time limit is never
     * restarted */
    if (emitter && emitter->request)
        sgi_emitter_note_sign_of_life(emitter);
}

void sgi_exchange_on_server_name(sgi_conn *conn, sgi_str name)
{
    segue_session *session = conn->exchange->session;
    char *known = session->listening.server_name;
    if (conn->exchange->kind == SGI_EXCHANGE_INITIALIZE)
        *known = 0; /* the session begins, so no server has settings of it */
    if (!name.n || name.n > SGI_SERVER_NAME_MAX || sgi_str_eq(name, sgi_str_of(known)))
        return;
    bool is_another = *known != 0;
    memcpy(known, name.p, name.n);
    known[name.n] = 0;
    if (is_another)
        sgi_session_on_server_replaced(session);
}

void sgi_exchange_on_retry_after(sgi_conn *conn, int64_t ms)
{
    segue_session *session = conn->exchange->session;
    int64_t until = sgi_time_add(sgi_now(&session->engine->env), ms);
    if (until > session->reach.wait_until_ms)
        session->reach.wait_until_ms = until;
}

void sgi_exchange_set_held(sgi_conn *conn, bool held)
{
    sgi_exchange *exchange = conn->exchange;
    if (exchange->held && !held && exchange->emitter)
        sgi_emitter_note_sign_of_life(exchange->emitter);
    exchange->held = held;
}

void sgi_exchange_set_user_deciding(sgi_conn *parent, bool decides)
{
    segue_session *session = parent->self;
    segue_request *request;
    int64_t now = sgi_now(&session->engine->env);
    if (decides == (session->reach.user_ms != 0))
        return;
    int64_t took = decides ? 0 : now - session->reach.user_ms;
    session->reach.user_ms = decides ? now : 0;
    session->reach.lost_ms += took;
    TAILQ_FOREACH(request, &session->requests, link) {
        sgi_tries_exclude_time(&request->tries, took);
        sgi_cli_exclude_user_time(request, took);
    }
}

void sgi_exchanges_on_connection_lost(sgi_conn *parent, const char *why)
{
    sgi_session_on_connection_lost(parent->self, why);
}

void sgi_exchange_on_unsent(sgi_conn *conn)
{
    conn->exchange->loss = SGI_LOSS_UNSENT;
}

void sgi_exchange_set_broken(sgi_conn *conn, bool broken)
{
    sgi_exchange *exchange = conn->exchange;
    if (exchange->loss != SGI_LOSS_UNSENT)
        exchange->loss = broken ? SGI_LOSS_BROKEN : SGI_LOSS_ANSWERED;
}

void sgi_exchange_release(sgi_conn *conn)
{
    conn->transport = NULL;
    conn->up = false;
    sgi_conn_unref(conn);
}
