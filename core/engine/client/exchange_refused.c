/* Handles a response that is not an answer: an HTTP error status, a body without an
 * answer, or the transport's report that no answer will come. Each of these gives the
 * waiting emitter an outcome: ERROR when the body is a JSON-RPC error, LOST when another
 * attempt may help, otherwise REFUSED. When the server does not know the wire session or
 * the era, the client first begins a new wire session and then sends the refused message
 * again. */
#include "engine/client/exchange_state.h"

#include "engine/client/era_change.h"
#include "engine/client/request.h"
#include "engine/client/server_questions.h"
#include "engine/client/withdrawal.h"

#include <stdio.h>

/* Returns the JSON-RPC error object in a body; empty when the body has no such object.
 * The id of the error is not checked: an error without an id also counts as the
 * answer. */
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
        !sgi_json_read_int(sgi_json_get(error, "code"), &number))
        return (sgi_json){0};
    return error;
}

bool sgi_http_status_is_temporary(int32_t status)
{
    return status == 408 || status == 429 || status == 502 || status == 503 ||
           status == 504;
}

void sgi_exchange_on_status(sgi_conn *conn, int32_t status)
{
    sgi_exchange *exchange = conn->exchange;
    exchange->settled = !sgi_http_status_is_temporary(status);
    if (exchange->answers.len && exchange->settled)
        sgi_server_question_note_taken(exchange->session,
                                       sgi_buf_str(&exchange->answers));
    if (exchange->withdraws && exchange->settled)
        sgi_withdrawal_on_settled(exchange->session, exchange->withdraws, status);
    if (exchange->emitter && exchange->emitter->late && status == 200)
        sgi_withdrawal_on_resumed(exchange->session, exchange->emitter->id);
}

/* True for a status that denies access. The status then decides, even when the body has a
 * JSON-RPC error. Status 403 denies access only while the session is not open. */
static bool is_denied(const sgi_exchange *exchange, int32_t status)
{
    return status == 401 || status == 407 ||
           (status == 403 && !sgi_session_is_open(exchange->session));
}

static void lose(sgi_emitter *emitter, int32_t status, sgi_json error, sgi_loss loss)
{
    char what[32], room[SGI_NAME_MAX], why[SGI_WHY_MAX];
    snprintf(what, sizeof what, "HTTP status %d", (int)status);
    sgi_explain_failure(why, what, sgi_method_text(sgi_json_get(error, "message"), room));
    sgi_emitter_on_lost_exchange(emitter, why, loss);
}

void sgi_exchange_on_refusal(sgi_conn *conn, int32_t status, sgi_str body)
{
    sgi_exchange *exchange = conn->exchange;
    if (exchange->kind == SGI_EXCHANGE_LISTEN) {
        /* The server has refused the GET stream of the session. Status 409 means that
         * the server has not noticed yet that the connection of the last stream is gone.
         * Any other status that is not temporary means that the server offers no such
         * stream. */
        exchange->over = !sgi_http_status_is_temporary(status) && status != 409;
        return;
    }
    if (!exchange->emitter)
        return;
    sgi_json error =
        is_denied(exchange, status) ? (sgi_json){0} : find_error(exchange, body);
    sgi_json id = error.n ? sgi_json_get(body, "id") : (sgi_json){0};
    bool passes = sgi_http_status_is_temporary(status);
    if (sgi_era_change_handle(exchange->emitter, exchange->version, status, error, id))
        return;
    /* a server that starts or closes may send any error during the handshake, so a
     * temporary status during the handshake does not show which versions the server
     * speaks */
    bool shakes = !exchange->emitter->request && !sgi_session_is_open(exchange->session);
    exchange->emitter->http_status = status;
    /* a server that is closing has not run the call, so the call is sent again and can
     * reach another server */
    bool ending = passes && sgi_error_is_server_closing(error);
    bool lost = ending || (passes && sgi_error_is_unanswered(error));
    if (error.n && !lost && !(passes && shakes)) {
        sgi_emitter_on_error(exchange->emitter, error);
    } else if (passes) {
        lose(exchange->emitter, status, error,
             ending ? SGI_LOSS_UNSENT : SGI_LOSS_ANSWERED);
    } else {
        sgi_emitter_on_refused(exchange->emitter, status, NULL);
    }
}

/* True while the request may be sent again: at most max_reconnects times in a row,
 * because several servers may fail one after another. The time limit of the request may
 * end it earlier. This function counts the failures only while the session is not open.
 * While the session is open, the code that sends the request again counts them. */
static bool may_go_again(segue_request *request)
{
    bool may = request->tries.failures < request->session->options.max_reconnects;
    request->tries.failures += !sgi_session_is_open(request->session);
    return may;
}

static bool is_unknown_method(sgi_json error)
{
    int64_t code = 0;
    return sgi_json_read_int(sgi_json_get(error, "code"), &code) &&
           code == SGI_RPC_METHOD_NOT_FOUND;
}

/* Begins a new wire session, because the server no longer knows the old one. A message
 * that was refused for this reason did not run, so it is sent again in the new wire
 * session. A message that the server had accepted may have run, so it is not sent again.
 * Every other exchange of the old wire session gets its own 404 (2025-11-25
 * basic/transports, "Session Management", 4). */
void sgi_exchange_on_session_gone(sgi_conn *conn, bool taken, sgi_str body)
{
    static const char why[] = "the server does not know the session any more";
    sgi_exchange *exchange = conn->exchange;
    segue_session *session = exchange->session;
    sgi_emitter *emitter = exchange->emitter;
    segue_request *request = emitter ? emitter->request : NULL;
    if (exchange->kind == SGI_EXCHANGE_LISTEN && !exchange->has_response) {
        /* status 404 for the first GET means that the server offers no GET stream */
        exchange->over = true;
        return;
    }
    sgi_json error = emitter ? find_error(exchange, body) : (sgi_json){0};
    /* in 2026-07-28 a server answers an unknown method with status 404, although the wire
     * session still exists */
    if (is_unknown_method(error)) {
        sgi_emitter_on_error(emitter, error);
        return;
    }
    if (exchange->wire_session == session->wire_session)
        sgi_session_renew_wire_session(session, why);
    bool again = request && !taken && may_go_again(request);
    if (again || (emitter && taken))
        sgi_emitter_on_lost_exchange(emitter, why,
                                     again ? SGI_LOSS_UNSENT : SGI_LOSS_ANSWERED);
    else if (emitter)
        sgi_emitter_on_refused(emitter, 404, NULL);
}

/* Returns the time until the next try of a pause of which `left_ms` are left, and counts
 * it as lost. */
static int64_t pause_for(sgi_exchange *exchange, int64_t left_ms)
{
    int64_t ms = left_ms;
    if (exchange->probing.until_ms) {
        ms = sgi_probing_ms(ms, exchange->lost_ms, exchange->session->request_count);
        exchange->probing.next_ms = sgi_now(&exchange->session->engine->env) + ms;
    }
    exchange->lost_ms += ms;
    return ms;
}

/* Counts the time as lost by which the last try, or its failure, was later than planned.
 * A try that reached the server lost no time, however long its stream lasted. */
static void count_delay(sgi_exchange *exchange, sgi_loss loss)
{
    int64_t now = sgi_now(&exchange->session->engine->env);
    int64_t planned = exchange->probing.next_ms;
    if (loss == SGI_LOSS_UNSENT && planned && now > planned)
        exchange->lost_ms += now - planned;
    exchange->probing.next_ms = 0;
}

int64_t sgi_exchange_probe_ms(sgi_conn *conn, sgi_loss loss)
{
    sgi_exchange *exchange = conn->exchange;
    int64_t now = sgi_now(&exchange->session->engine->env);
    if (loss == SGI_LOSS_ANSWERED || !sgi_probing_lasts(&exchange->probing, now))
        return 0;
    count_delay(exchange, loss);
    int64_t left = sgi_probing_go_on(&exchange->probing, now, loss == SGI_LOSS_BROKEN);
    return pause_for(exchange, left);
}

/* Ends an exchange whose stream is not opened again. */
static void end_reopening(sgi_exchange *exchange, const char *why)
{
    if (exchange->emitter)
        sgi_emitter_on_lost_exchange(exchange->emitter, why, SGI_LOSS_ANSWERED);
}

/* Ends an exchange whose stream was lost, and then max_reconnects times in a row. */
static void end_row(sgi_exchange *exchange, int32_t times, const char *why)
{
    const segue_request *request = exchange->emitter ? exchange->emitter->request : NULL;
    char text[SGI_ROW_MAX];
    sgi_explain_row(exchange->session, request ? request->method : "an answer", times,
                    why, text);
    end_reopening(exchange, times > 1 ? text : why);
}

bool sgi_exchange_may_reopen(sgi_conn *conn, const char *why, int32_t attempt,
                             bool is_polled, sgi_loss loss, int64_t *ms)
{
    sgi_exchange *exchange = conn->exchange;
    segue_request *request = exchange->emitter ? exchange->emitter->request : NULL;
    char text[SGI_WHY_MAX];
    if (exchange->emitter && exchange->emitter->late)
        return false;
    exchange->resumed = true;
    /* no time limit applies, because no request waits for the stream, or because the
     * server had announced the end of the stream */
    if (exchange->kind == SGI_EXCHANGE_LISTEN || is_polled)
        return true;
    if (attempt > exchange->session->options.max_reconnects) {
        end_row(exchange, attempt, why);
        return false;
    }
    if (attempt <= 1)
        exchange->lost_ms = exchange->probing.next_ms = 0;
    count_delay(exchange, loss);
    int64_t left = sgi_session_reconnect_ms_left(exchange->session, exchange->lost_ms);
    if (left <= 0) {
        sgi_explain_unreachable(exchange->session, text, why);
        /* the time that this exchange has lost also counts as lost time of the request */
        if (request)
            request->tries.lost_ms = exchange->lost_ms;
        end_reopening(exchange, text);
        return false;
    }
    if (*ms > left)
        *ms = left;
    sgi_session_report_retry(exchange->session, request ? request->method : "an answer",
                             attempt, *ms, why);
    sgi_probing_begin(&exchange->probing, sgi_now(&exchange->session->engine->env), *ms,
                      loss != SGI_LOSS_ANSWERED);
    *ms = pause_for(exchange, *ms);
    return true;
}

void sgi_exchange_on_no_answer(sgi_conn *conn, sgi_str body)
{
    sgi_exchange *exchange = conn->exchange;
    sgi_json error;
    if (exchange->emitter && exchange->emitter->begun)
        sgi_emitter_on_lost_exchange(
            exchange->emitter,
            "the server answered with JSON instead of continuing the event stream",
            SGI_LOSS_ANSWERED);
    else if (exchange->emitter && (error = find_error(exchange, body)).n)
        sgi_emitter_on_error(exchange->emitter, error);
    else if (exchange->emitter)
        sgi_emitter_on_malformed_answer(exchange->emitter);
}

void sgi_exchange_on_permanent_failure(sgi_conn *conn, const char *why)
{
    if (conn->exchange->emitter)
        sgi_emitter_on_refused(conn->exchange->emitter, 0, why);
}

void sgi_exchange_on_wrong_type(sgi_conn *conn, const char *why)
{
    if (conn->exchange->emitter)
        sgi_emitter_on_no_mcp_message(conn->exchange->emitter, why);
}

void sgi_exchange_on_too_large(sgi_conn *conn)
{
    if (conn->exchange->emitter)
        sgi_emitter_on_too_large_answer(conn->exchange->emitter);
}

void sgi_exchange_on_access_refused(sgi_conn *conn, int32_t status, const char *why)
{
    sgi_exchange *exchange = conn->exchange;
    if (exchange->kind == SGI_EXCHANGE_LISTEN)
        exchange->over = true;
    else if (exchange->emitter)
        sgi_emitter_on_access_refused(exchange->emitter, status, why);
}

void sgi_exchange_on_no_token(sgi_conn *conn)
{
    conn->exchange->loss = SGI_LOSS_UNSENT;
    conn->exchange->settled = false;
}
