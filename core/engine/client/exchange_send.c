/* The sending side of a client's HTTP exchange: makes an exchange, sends its message, and
 * ends it. exchange_receive.c has the functions that the transport and the conversation
 * of the exchange call. */
#include "engine/client/exchange_state.h"

#include "engine/client/tool_headers.h"
#include "wire/mcp_headers.h"

/* Adds the exchange to the list of exchanges that the transport has to handle. */
static void mark(sgi_exchange *exchange)
{
    segue_session *session = exchange->session;
    sgi_host_functions *host = &session->engine->host;
    if (exchange->marked || session->conn->detached)
        return;
    exchange->marked = true;
    sgi_conn_ref(exchange->conn);
    TAILQ_INSERT_TAIL(&session->exchanges, exchange, link);
    host->output(host->user, session->conn);
}

sgi_conn *sgi_exchange_new(segue_session *session)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_exchange *exchange = sgi_zalloc(mem, sizeof *exchange);
    if (!exchange)
        return NULL;
    exchange->conn = sgi_conn_new(session->engine, &sgi_exchange_role, exchange, NULL);
    if (!exchange->conn) {
        sgi_free(mem, exchange, sizeof *exchange);
        return NULL;
    }
    exchange->conn->exchange = exchange;
    exchange->session = session;
    sgi_session_ref(session);
    session->answers.under_way++;
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

/* True in 2026-07-28 and in DRAFT-2026-v1, where a header repeats the method of the
 * message. */
bool sgi_exchange_has_method_header(const sgi_exchange *exchange)
{
    return sgi_facts(exchange->version)->header_repeats;
}

/* Returns the name of the member of params that the header Mcp-Name repeats; NULL when
 * there is no such member. In DRAFT-2026-v1 the header repeats only the id of a task
 * (core/docs/requirements.md 2.1). */
static const char *name_member(const sgi_exchange *exchange, sgi_str method)
{
    const char *member = sgi_mcp_name_member(method);
    bool all = sgi_facts(exchange->version)->header_repeats == SGI_REPEATS_ALL;
    return member && (all || !strcmp(member, "taskId")) ? member : NULL;
}

/* Reads from the message the values that the headers repeat. The library wrote the
 * message, so the message is well-formed. Returns false when out of memory. */
static bool read_head(sgi_exchange *exchange)
{
    static const sgi_str parts[] = {SGI_STR_INIT("id"), SGI_STR_INIT("method"),
                                    SGI_STR_INIT("params")};
    sgi_json found[3];
    sgi_json whole = sgi_buf_str(&exchange->conn->out);
    size_t at = exchange->conn->params_at;
    if (at) {
        sgi_json_pick((sgi_json){whole.p, at}, parts, 2, found);
        found[2] = (sgi_json){whole.p + at, whole.n - at};
    } else {
        sgi_json_pick(whole, parts, 3, found);
    }
    sgi_json method = found[1];
    sgi_json params = found[2];
    /* without a method, the message is an answer to a question of the server */
    if (!method.n) {
        sgi_buf_add_str(&exchange->answers, found[0]);
        return !exchange->answers.failed;
    }
    sgi_json_decode(method, &exchange->method);
    sgi_str plain = sgi_buf_str(&exchange->method);
    if (sgi_str_eq(plain, SGI_STR("initialize")))
        exchange->kind = SGI_EXCHANGE_INITIALIZE;
    exchange->announces = sgi_str_eq(plain, SGI_STR("notifications/initialized"));
    if (!sgi_exchange_has_method_header(exchange))
        return !exchange->method.failed;
    const char *member = name_member(exchange, plain);
    sgi_json name = member ? sgi_json_get(params, member) : (sgi_json){0};
    exchange->has_name = sgi_json_kind_of(name) == SGI_JSON_STRING;
    if (exchange->has_name) {
        sgi_buf text;
        sgi_buf_init(&text, sgi_engine_mem(exchange->conn->engine));
        sgi_json_decode(name, &text);
        sgi_mcp_add_header_value(&exchange->name, sgi_buf_str(&text));
        if (sgi_str_eq(plain, SGI_STR("tools/call")) &&
            exchange->session->tools.headers.tools.count)
            sgi_tool_headers_write(&exchange->session->tools.headers, sgi_buf_str(&text),
                                   sgi_json_get(params, "arguments"), &exchange->params);
        exchange->name.failed |= text.failed;
        sgi_buf_free(&text);
    }
    return !exchange->method.failed && !exchange->name.failed && !exchange->params.failed;
}

bool sgi_exchange_send(sgi_conn *conn, sgi_emitter *emitter)
{
    sgi_exchange *exchange = conn->exchange;
    bool fits = read_head(exchange);
    exchange->emitter = emitter;
    /* without an emitter, no code waits for an answer, so the exchange is over */
    exchange->over = !emitter;
    if (emitter) {
        exchange->waited_for = true;
        exchange->session->answers.under_way--;
    }
    if (fits)
        mark(exchange);
    if (!emitter)
        sgi_conn_unref(exchange->conn);
    return fits;
}

void sgi_exchange_end(sgi_conn *conn)
{
    sgi_exchange *exchange = conn->exchange;
    exchange->emitter = NULL;
    exchange->over = true;
    if (!exchange->taken)
        /* the transport does not have the message yet, and does not send it */
        conn->up = false;
    else if (!conn->answered && conn->transport)
        /* an exchange that has its answer is not marked, so that the transport may read
         * the stream of the response to its end */
        mark(exchange);
    sgi_conn_unref(exchange->conn);
}

void sgi_exchange_open_session_stream(segue_session *session)
{
    sgi_conn *conn = sgi_exchange_new(session);
    if (!conn)
        return; /* out of memory: the session continues without the GET stream */
    session->listening.conn = conn;
    conn->exchange->kind = SGI_EXCHANGE_LISTEN;
    mark(conn->exchange);
}

void sgi_exchange_resume_input(sgi_conn *conn)
{
    if (conn->stalled && conn->up && sgi_conn_wants_input(conn))
        mark(conn->exchange);
}

void sgi_exchanges_clear_queue(segue_session *session)
{
    sgi_exchange *exchange;
    while ((exchange = TAILQ_FIRST(&session->exchanges))) {
        TAILQ_REMOVE(&session->exchanges, exchange, link);
        exchange->marked = false;
        sgi_conn_unref(exchange->conn);
    }
}

bool sgi_exchange_is_held(const sgi_conn *conn)
{
    return conn->exchange && conn->exchange->held;
}
