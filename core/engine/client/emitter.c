/* An emitter is in the map `in_flight` from the moment its request is written until the
 * emitter gets its outcome or is dropped. Then the emitter is freed. Over a byte stream
 * all emitters share the session's conversation. Over HTTP each emitter has the
 * conversation of its own exchange, which ends with the emitter. `done` may drop other
 * emitters and end the session, so a reference keeps the session in memory while `done`
 * runs. */
#include "engine/client/emitter.h"

#include "engine/client/exchange_state.h"
#include "engine/client/exchange_start.h"
#include "engine/client/server_questions.h"
#include "engine/client/dialects.h"
#include "engine/client/session.h"
#include "engine/client/trace.h"
#include "engine/client/withdrawal.h"
#include "base/limit.h"
#include "wire/json_copy.h"

#include <stdio.h>
#include <string.h>

void sgi_explain_failure(char why[SGI_WHY_MAX], const char *what, sgi_str said)
{
    bool fits = said.n && strlen(what) + said.n + sizeof ": " <= SGI_WHY_MAX;
    snprintf(why, SGI_WHY_MAX, "%s%s%.*s", what, fits ? ": " : "", fits ? (int)said.n : 0,
             fits ? said.p : "");
}

int64_t sgi_outcome_error_code(const sgi_outcome *outcome)
{
    int64_t code = 0;
    if (outcome->kind == SGI_OUTCOME_ERROR)
        sgi_json_read_int(sgi_json_get(outcome->json, "code"), &code);
    return code;
}

static sgi_str id_key(const sgi_emitter *emitter)
{
    return (sgi_str){(const char *)&emitter->id, sizeof emitter->id};
}

sgi_emitter *sgi_emitter_begin(segue_session *session, sgi_sending *sending,
                               sgi_str method)
{
    return sgi_emitter_begin_with_id(session, sending, session->last_id + 1, method);
}

sgi_emitter *sgi_emitter_begin_with_id(segue_session *session, sgi_sending *sending,
                                       int64_t id, sgi_str method)
{
    char room[SGI_QUESTION_JSON];
    sgi_emitter *emitter = sgi_zalloc(sgi_engine_mem(session->engine), sizeof *emitter);
    if (!emitter)
        return NULL;
    emitter->session = session;
    emitter->conn = sgi_session_begin_message(session);
    if (!emitter->conn) {
        sgi_free(sgi_engine_mem(session->engine), emitter, sizeof *emitter);
        return NULL;
    }
    emitter->id = id;
    emitter->wire_session = session->wire_session;
    if (id > session->last_id)
        session->last_id = id;
    emitter->timeout_ms = session->options.request_timeout_ms;
    if (*session->question.text)
        sgi_send_begin_request_with_id(
            sending, emitter->conn,
            sgi_question_id_write_json(&session->question, id, room), method);
    else
        sgi_send_begin_request(sending, emitter->conn, id, method);
    return emitter;
}

static void free_emitter(sgi_emitter *emitter)
{
    if (emitter->conn->exchange)
        sgi_exchange_end(emitter->conn);
    sgi_engine_clear_timer(emitter->session->engine, &emitter->timer);
    sgi_free(sgi_engine_mem(emitter->session->engine), emitter, sizeof *emitter);
}

bool sgi_emitter_id_is_in_flight(segue_session *session, int64_t id)
{
    return sgi_map_find(&session->in_flight, (sgi_str){(const char *)&id, sizeof id});
}

static bool read_id(const segue_session *session, sgi_json id, int64_t *number)
{
    sgi_question_id_parts parts;
    if (!*session->question.text)
        return sgi_json_read_int(id, number);
    bool ours = sgi_question_id_parse(id, &parts) && parts.is_numbered &&
                sgi_str_eq(parts.whole, sgi_str_of(session->question.text));
    *number = parts.number;
    return ours;
}

sgi_emitter *sgi_emitter_find(segue_session *session, sgi_json id)
{
    int64_t number;
    if (!read_id(session, id, &number))
        return NULL;
    sgi_map_node *node =
        sgi_map_find(&session->in_flight, (sgi_str){(char *)&number, sizeof number});
    return node ? SGI_OWNER(node, sgi_emitter, node) : NULL;
}

/* ---- outcomes ---- */

/* Reports the outcome of an emitter. If the answer came on the emitter's own exchange,
 * the transport may read the stream of this exchange to its end. If the answer came on
 * another exchange, the emitter's own stream is closed, because it might stay open for
 * ever. */
static void conclude(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    if (outcome->kind == SGI_OUTCOME_RESULT || outcome->kind == SGI_OUTCOME_ERROR)
        emitter->conn->answered = emitter->conn->exchange && session->hearing == emitter;
    sgi_map_remove(&session->in_flight, &emitter->node);
    sgi_engine_clear_timer(session->engine, &emitter->timer);
    sgi_session_ref(session);
    emitter->done(emitter, outcome);
    free_emitter(emitter);
    sgi_session_unref(session);
}

static void conclude_with(sgi_emitter *emitter, sgi_outcome_kind kind, sgi_json json)
{
    sgi_outcome outcome = {.kind = kind, .json = json, .status = emitter->http_status};
    conclude(emitter, &outcome);
}

void sgi_emitter_on_lost_exchange(sgi_emitter *emitter, const char *why, sgi_loss loss)
{
    sgi_outcome outcome = {.kind = SGI_OUTCOME_LOST, .why = why, .loss = loss};
    conclude(emitter, &outcome);
}

void sgi_emitter_on_refused(sgi_emitter *emitter, int32_t status, const char *why)
{
    char text[64];
    snprintf(text, sizeof text, "the server answered with HTTP status %d", (int)status);
    sgi_outcome outcome = {.kind = SGI_OUTCOME_REFUSED,
                           .status = status,
                           .why = why ? why : text,
                           .has_reason = why != NULL,
                           .needs_auth = status == 401};
    conclude(emitter, &outcome);
}

void sgi_emitter_on_no_mcp_message(sgi_emitter *emitter, const char *why)
{
    sgi_outcome outcome = {
        .kind = SGI_OUTCOME_REFUSED, .why = why, .has_reason = true, .is_page = true};
    conclude(emitter, &outcome);
}

void sgi_emitter_on_access_refused(sgi_emitter *emitter, int32_t status, const char *why)
{
    sgi_outcome outcome = {.kind = SGI_OUTCOME_REFUSED,
                           .status = status,
                           .why = why,
                           .has_reason = true,
                           .needs_auth = true};
    conclude(emitter, &outcome);
}

void sgi_emitter_on_too_large_answer(sgi_emitter *emitter)
{
    sgi_limit limit = {SGI_LIMIT_MAX_MESSAGE_BYTES,
                       (int64_t)emitter->session->engine->max_message};
    sgi_limit_text told = sgi_engine_describe_limit(
        emitter->session->engine, "the answer is too large", limit, "limit",
        "let the server send it in pieces or as a task, or raise the limit");
    sgi_outcome outcome = {.kind = SGI_OUTCOME_REFUSED,
                           .why = told.text,
                           .has_reason = true,
                           .too_large = true};
    conclude(emitter, &outcome);
}

/* True for the error that a server sends in place of an answer that the server no longer
 * has. The error has this meaning only on a reopened stream. On any other stream a tool
 * may have sent the same error. */
static bool is_stand_in(const sgi_emitter *emitter, sgi_json error)
{
    sgi_json reason = sgi_json_get(sgi_json_get(error, "data"), "reason");
    return emitter->conn->exchange && emitter->conn->exchange->resumed &&
           sgi_json_string_is(reason, SGI_STR("answer_gone"));
}

static bool is_one_of_several(sgi_emitter *emitter, sgi_json result)
{
    segue_session *session = emitter->session;
    if (!emitter->more || !result.n)
        return false;
    sgi_session_ref(session);
    bool taken = emitter->more(emitter, result);
    sgi_session_unref(session);
    return taken;
}

bool sgi_emitter_skip_piece(sgi_emitter *emitter, sgi_json result)
{
    sgi_json more = sgi_json_get(sgi_json_get(result, "_meta"), "hasMore");
    (void)emitter;
    return sgi_str_eq(more, SGI_STR("true"));
}

void sgi_emitter_on_result(sgi_emitter *emitter, const sgi_message *msg)
{
    sgi_outcome outcome = {.kind = SGI_OUTCOME_RESULT,
                           .json = msg->result,
                           .parts = msg->parts,
                           .status = emitter->http_status};
    if (!is_one_of_several(emitter, msg->result))
        conclude(emitter, &outcome);
}

void sgi_emitter_on_error(sgi_emitter *emitter, sgi_json error)
{
    sgi_outcome outcome = {.kind = SGI_OUTCOME_ERROR,
                           .json = error,
                           .status = emitter->http_status,
                           .is_gone = is_stand_in(emitter, error)};
    if (emitter->repeats && outcome.is_gone)
        sgi_emitter_on_lost_exchange(emitter, SGI_WHY_GONE, SGI_LOSS_ANSWERED);
    else
        conclude(emitter, &outcome);
}

void sgi_emitter_on_malformed_answer(sgi_emitter *emitter)
{
    conclude_with(emitter, SGI_OUTCOME_RESULT, (sgi_json){0});
}

/* ---- timeouts ---- */

/* Reports to the server that the client has cancelled a request. In 2026-07-28 over HTTP
 * the closed stream is the report (basic/patterns/cancellation). A call with an
 * idempotency key also needs a message, because the server continues such a call for a
 * client that reconnects. */
static void tell_cancelled(const sgi_emitter *emitter, const char *reason)
{
    const segue_request *request = emitter->request;
    sgi_withdrawn_call call = {
        .id = emitter->id, .wire_session = emitter->wire_session, .reason = reason};
    if (request && request->calling == emitter && request->key.sent)
        call.key = request->key.text;
    else if (request && request->calling == emitter)
        call.token = sgi_cli_server_resume_token(request);
    if (call.key || !emitter->conn->exchange ||
        !sgi_facts(emitter->session->version)->cancels_by_closing)
        sgi_withdraw_call(emitter->session, &call);
}

void sgi_emitter_withdraw_lost_call(const segue_request *request)
{
    sgi_withdrawn_call call = {.id = request->call_id,
                               .wire_session = request->call_session};
    if (request->key.sent)
        call.key = request->key.text;
    else
        call.token = sgi_cli_server_resume_token(request);
    if (call.key || call.token.n)
        sgi_withdraw_call(request->session, &call);
}

/* True when the client reads no input until callbacks have run. The answer may then have
 * arrived unread. */
static bool is_unread(const sgi_emitter *emitter)
{
    const sgi_conn *conn = emitter->conn;
    return conn->exchange ? !conn->role->wants_input(conn->self)
                          : sgi_session_is_behind(emitter->session);
}

static void timed_out(sgi_timer *timer)
{
    sgi_emitter *emitter = SGI_OWNER(timer, sgi_emitter, timer);
    if (sgi_exchange_is_held(emitter->conn) || is_unread(emitter) ||
        (emitter->request && sgi_server_questions_are_open(emitter->request))) {
        /* the application or a user has to act first, so the time limit starts anew */
        sgi_emitter_note_sign_of_life(emitter);
        return;
    }
    /* No message is sent when a part of the answer has arrived, or when the request has
     * already ended (late). */
    if (!emitter->begun && !emitter->late)
        tell_cancelled(emitter, "timeout");
    conclude_with(emitter, SGI_OUTCOME_TIMEOUT, (sgi_json){0});
}

void sgi_emitter_note_sign_of_life(sgi_emitter *emitter)
{
    if (emitter->timeout_ms)
        sgi_engine_set_timer(emitter->session->engine, &emitter->timer,
                             emitter->timeout_ms, timed_out);
}

/* ---- sending ---- */

/* True for a member of _meta that every request of 2026-07-28 has. declarations.c writes
 * these members. */
static bool is_of_session(const sgi_json_member *member)
{
    return sgi_json_key_is(member, "io.modelcontextprotocol/protocolVersion") ||
           sgi_json_key_is(member, "io.modelcontextprotocol/clientInfo") ||
           sgi_json_key_is(member, "io.modelcontextprotocol/clientCapabilities");
}

/* True when the JSON text `members` has a member with the same key. The search looks for
 * the key in quotes and a colon. In JSON text these characters can occur only where a key
 * is. */
static bool is_said(sgi_str members, const sgi_json_member *member)
{
    const char *at = members.p;
    const char *end = members.n ? at + members.n : at;
    size_t n = member->key.n;
    while (at && (at = memchr(at, '"', (size_t)(end - at)))) {
        at++;
        if ((size_t)(end - at) > n + 1 && !memcmp(at, member->key.p, n) && at[n] == '"' &&
            at[n + 1] == ':')
            return true;
    }
    return false;
}

/* Writes the application's own members of _meta. Members that the protocol defines are
 * left out, because the library writes them itself. A message that the library sends on
 * behalf of a request gets only the trace of the request. */
static void write_own_meta(const sgi_emitter *emitter, sgi_jw *w, bool stateless,
                           sgi_str extra, sgi_json user)
{
    sgi_json_member member;
    for (size_t at = 0; user.n && sgi_json_next_member(user, &at, &member);) {
        if ((stateless && is_of_session(&member)) || is_said(extra, &member))
            continue;
        sgi_jw_copy_member(w, &member);
    }
    if (!user.n && emitter->request)
        sgi_trace_write(emitter->request, w);
}

/* Returns what a message declares: a request may declare other capabilities than its
 * session. */
static sgi_str declared(const sgi_emitter *emitter)
{
    const segue_request *request = emitter->request;
    return request && request->meta ? sgi_str_of(request->meta)
                                    : sgi_buf_str(&emitter->session->meta);
}

static void write_meta(const sgi_emitter *emitter, sgi_sending *sending, sgi_str extra,
                       sgi_json user)
{
    segue_session *session = emitter->session;
    sgi_jw *w = &sending->w;
    bool stateless = sgi_facts(session->version)->is_stateless;
    if (sgi_json_kind_of(user) != SGI_JSON_OBJECT)
        user.n = 0;
    if (!stateless && !extra.n && !user.n &&
        !(emitter->request && sgi_trace_is_set(emitter->request)))
        return;
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    if (stateless) {
        sgi_buf_add_str(w->buf, declared(emitter));
        w->comma = true;
    }
    if (extra.n) {
        sgi_str members = extra;
        if (!w->comma) {
            members.p++; /* skips the comma before the first member */
            members.n--;
        }
        sgi_buf_add_str(w->buf, members);
        w->comma = true;
    }
    write_own_meta(emitter, w, stateless, extra, user);
    sgi_jw_close(w, '}');
}

bool sgi_emitter_send(sgi_emitter *emitter, sgi_sending *sending, sgi_str extra,
                      sgi_json user)
{
    segue_session *session = emitter->session;
    write_meta(emitter, sending, extra, user);
    if (!sgi_send_end(sending)) {
        free_emitter(emitter);
        return false;
    }
    if (emitter->conn->exchange && !sgi_exchange_send(emitter->conn, emitter)) {
        free_emitter(emitter);
        return false;
    }
    sgi_map_put(&session->in_flight, &emitter->node, id_key(emitter));
    sgi_emitter_note_sign_of_life(emitter);
    return true;
}

void sgi_emitter_drop(sgi_emitter *emitter, bool notify)
{
    segue_session *session = emitter->session;
    if (notify)
        tell_cancelled(emitter, NULL);
    if (notify && sgi_cli_keep_cancelled_exchange(emitter))
        return;
    sgi_map_remove(&session->in_flight, &emitter->node);
    free_emitter(emitter);
}
