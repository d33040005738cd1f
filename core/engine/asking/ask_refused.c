/* What comes back on an exchange and is no answer: a status of HTTP, a body that answers
 * nothing, or word of the transport that there will be none. Each becomes an outcome of
 * the emitter that waits: an error where the body is one, a loss where it may pass, else
 * a refusal. A wire session, or an era, that the server knows no more is begun anew
 * before, and then what was refused goes again. */
#include "engine/asking/ask_exchange.h"

#include "engine/asking/era_change.h"
#include "engine/asking/request.h"
#include "engine/asking/withdrawal.h"

#include <stdio.h>

/* The error that a body is, or empty. One without an id, or with null: whose else than
 * this exchange's? */
static sgi_json find_error(sgi_exchange *exchange, sgi_str body)
{
    sgi_json_member members[SGI_MESSAGE_MEMBERS];
    size_t count = 0;
    sgi_json_error fault;
    if (!body.n ||
        !sgi_json_read(&exchange->conn->engine->reader, body, members,
                       SGI_MESSAGE_MEMBERS, &count, &fault) ||
        sgi_json_kind_of(sgi_json_trim(body)) != SGI_JSON_OBJECT)
        return (sgi_json){0};
    sgi_json error = sgi_json_get(body, "error");
    int64_t number;
    if (sgi_json_kind_of(error) != SGI_JSON_OBJECT ||
        !sgi_json_int(sgi_json_get(error, "code"), &number))
        return (sgi_json){0};
    return error;
}

bool sgi_ask_may_pass(int32_t status)
{
    return status == 408 || status == 429 || status == 502 || status == 503 ||
           status == 504;
}

void sgi_ask_heard(sgi_conn *conn, int32_t status)
{
    sgi_exchange *exchange = conn->exchange;
    exchange->settled = !sgi_ask_may_pass(status);
    if (exchange->withdraws && exchange->settled)
        sgi_withdrawal_settled(exchange->session, exchange->withdraws);
}

/* To be let in is a matter of HTTP, whatever JSON says it; before anything is known of
 * the server, so is what it lets nobody do. */
static bool is_denied(const sgi_exchange *exchange, int32_t status)
{
    return status == 401 || status == 407 ||
           (status == 403 && !sgi_session_is_open(exchange->session));
}

static void lose(sgi_emitter *emitter, int32_t status, sgi_json error, bool unsent)
{
    char what[32], room[SGI_NAME_MAX], why[SGI_WHY_MAX];
    snprintf(what, sizeof what, "HTTP status %d", (int)status);
    sgi_explain(why, what, sgi_name_text(sgi_json_get(error, "message"), room));
    sgi_emitter_lost(emitter, why, unsent);
}

void sgi_ask_refused(sgi_conn *conn, int32_t status, sgi_str body)
{
    sgi_exchange *exchange = conn->exchange;
    if (exchange->kind == SGI_ASK_LISTEN) {
        exchange->over = !sgi_ask_may_pass(status); /* it offers none */
        return;
    }
    if (!exchange->emitter)
        return;
    sgi_json error =
        is_denied(exchange, status) ? (sgi_json){0} : find_error(exchange, body);
    sgi_json id = error.n ? sgi_json_get(body, "id") : (sgi_json){0};
    bool passes = sgi_ask_may_pass(status);
    if (sgi_era_changed(exchange->emitter, exchange->version, status, error, id))
        return;
    /* Who is starting, or about to close, says nothing of its era, whatever JSON says. */
    bool shakes = !exchange->emitter->request && !sgi_session_is_open(exchange->session);
    exchange->emitter->http_status = status;
    bool ending = passes && sgi_error_is_ending(error); /* it goes to the next server */
    if (error.n && !ending && !(passes && shakes)) {
        sgi_emitter_error(exchange->emitter, error);
    } else if (passes) {
        lose(exchange->emitter, status, error, ending);
    } else {
        sgi_emitter_refused(exchange->emitter, status, NULL);
    }
}

/* As often as it may reconnect in a row: servers die more than once, and a request that
 * is to end sooner has a time of its own. Counted here while the session is not open;
 * else by who sends it again, which it then does at once or later. */
static bool may_go_again(segue_request *request)
{
    bool may = request->tries.failures < request->session->options.max_reconnects;
    request->tries.failures += !sgi_session_is_open(request->session);
    return may;
}

static bool is_unknown_method(sgi_json error)
{
    int64_t code = 0;
    return sgi_json_int(sgi_json_get(error, "code"), &code) &&
           code == SGI_RPC_METHOD_NOT_FOUND;
}

/* What was refused so was not done: it is asked again in a new wire session. Not so what
 * had been taken: nobody knows whether it ran. What else is under way in the old
 * session hears for itself (2025-11-25 basic/transports, "Session Management", 4). */
void sgi_ask_forgotten(sgi_conn *conn, bool taken, sgi_str body)
{
    static const char why[] = "the server has forgotten the session";
    sgi_exchange *exchange = conn->exchange;
    segue_session *session = exchange->session;
    sgi_emitter *emitter = exchange->emitter;
    segue_request *request = emitter ? emitter->request : NULL;
    if (exchange->kind == SGI_ASK_LISTEN && !exchange->heard) {
        exchange->over = true; /* it offers none, and says so in this way */
        return;
    }
    sgi_json error = emitter ? find_error(exchange, body) : (sgi_json){0};
    if (is_unknown_method(error)) { /* 404 as of 2026-07-28: the session is there */
        sgi_emitter_error(emitter, error);
        return;
    }
    if (exchange->wire_session == session->wire_session)
        sgi_session_renew(session, why);
    bool again = request && !taken && may_go_again(request);
    if (again || (emitter && taken))
        sgi_emitter_lost(emitter, why, again);
    else if (emitter)
        sgi_emitter_refused(emitter, 404, NULL);
}

bool sgi_ask_again(sgi_conn *conn, const char *why, int32_t attempt, bool is_polled,
                   int64_t *ms)
{
    sgi_exchange *exchange = conn->exchange;
    segue_request *request = exchange->emitter ? exchange->emitter->request : NULL;
    char text[SGI_WHY_MAX];
    if (exchange->emitter && exchange->emitter->late)
        return false;
    if (exchange->kind == SGI_ASK_LISTEN || is_polled)
        return true; /* nobody waits for what it may bring; or the server said so */
    if (attempt <= 1)
        exchange->lost_ms = 0;
    int64_t left = sgi_session_reach_ms(exchange->session, exchange->lost_ms);
    if (left <= 0) {
        sgi_explain_reach(exchange->session, text, why);
        if (request) /* which is not asked for anew for as long again */
            request->tries.lost_ms = exchange->lost_ms;
        if (exchange->emitter)
            sgi_emitter_lost(exchange->emitter, text, false);
        return false;
    }
    if (*ms > left)
        *ms = left;
    exchange->lost_ms += *ms;
    sgi_session_tell_retry(exchange->session, request ? request->method : "an answer",
                           attempt, *ms, why);
    return true;
}

void sgi_ask_unanswered(sgi_conn *conn, sgi_str body)
{
    sgi_exchange *exchange = conn->exchange;
    sgi_json error;
    if (exchange->emitter && exchange->emitter->begun)
        sgi_emitter_lost(exchange->emitter, "the answer was JSON: no more can follow it",
                         false);
    else if (exchange->emitter && (error = find_error(exchange, body)).n)
        sgi_emitter_error(exchange->emitter, error);
    else if (exchange->emitter)
        sgi_emitter_malformed(exchange->emitter);
}

void sgi_ask_denied(sgi_conn *conn, const char *why)
{
    if (conn->exchange->emitter)
        sgi_emitter_refused(conn->exchange->emitter, 0, why);
}

void sgi_ask_page(sgi_conn *conn, const char *why)
{
    if (conn->exchange->emitter)
        sgi_emitter_page(conn->exchange->emitter, why);
}

void sgi_ask_too_large(sgi_conn *conn)
{
    if (conn->exchange->emitter)
        sgi_emitter_too_large(conn->exchange->emitter);
}

void sgi_ask_unauthorized(sgi_conn *conn, int32_t status, const char *why)
{
    sgi_exchange *exchange = conn->exchange;
    if (exchange->kind == SGI_ASK_LISTEN)
        exchange->over = true;
    else if (exchange->emitter)
        sgi_emitter_unauthorized(exchange->emitter, status, why);
}

void sgi_ask_put_off(sgi_conn *conn)
{
    conn->exchange->unsent = true;
    conn->exchange->settled = false;
}
