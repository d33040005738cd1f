/* States of a withdrawal:
 *   WAITS    the session is not open, or the pause after a loss is not over
 *   RESUMES  over HTTP: the call is being resumed, and no response has arrived. The
 *            cancellation might overtake the resume, so the client sends the cancellation
 *            only when the server has begun to answer. A server that answers only at the
 *            end never gets the cancellation in time
 *   OUT      over HTTP: an exchange carries the withdrawal, and its end settles or loses
 *            the withdrawal
 *   SENT     over a byte stream: the message was sent, and is lost if the connection
 *            breaks. So the message is sent on the next connection once more. A server
 *            that received the first message ignores the second one
 *
 * A withdrawal is dropped when the server has answered it or when its time is over. The
 * id of a call is valid in one wire session only. In the next wire session a call with a
 * token is resumed before it is cancelled, and the answer to the resume ends the
 * withdrawal. A withdrawal without a key and a token is dropped with its wire session.
 * Over a byte stream the connection is the wire session, so such a withdrawal is sent
 * once. */
#include "engine/client/withdrawal.h"

#include "engine/client/exchange_state.h"
#include "engine/client/dialects.h"
#include "engine/conversation/sending.h"

#define MAY_GO_ON "the tool may still run"

typedef enum sgi_withdrawal_state {
    SGI_WITHDRAWAL_WAITS = 0,
    SGI_WITHDRAWAL_RESUMES,
    SGI_WITHDRAWAL_OUT,
    SGI_WITHDRAWAL_SENT
} sgi_withdrawal_state;

struct sgi_withdrawal {
    TAILQ_ENTRY(sgi_withdrawal) link;
    /* the session that sends the withdrawal and has it in its list */
    segue_session *session;
    sgi_withdrawal_state state;
    int64_t id;
    char *key; /* idempotency key of the call; NULL = the call has no key */
    /* resume token of the call (JSON); NULL = the call has no token */
    char *token;
    /* the exchange of requests/resume; NULL = no such exchange is under way */
    sgi_emitter *resuming;
    /* number of the wire session in which the call was sent or resumed */
    int32_t wire_session;
    const char *reason; /* text of the reason that the server gets; NULL = no reason */
    /* monotonic time after which the client no longer sends the withdrawal */
    int64_t until_ms;
    sgi_timer timer; /* fires at the next attempt, or at until_ms */
};

/* ---- the message ---- */

static void write_key(sgi_jw *w, const char *key)
{
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "dev.segue/idempotencyKey", sgi_str_of(key));
    sgi_jw_close(w, '}');
}

/* Sends notifications/cancelled for the call. Returns false when the message could not be
 * sent. */
static bool tell(segue_session *session, const sgi_withdrawn_call *call)
{
    char room[SGI_QUESTION_JSON];
    sgi_sending sending;
    sgi_conn *conn =
        sgi_session_is_open(session) ? sgi_session_begin_message(session) : NULL;
    if (!conn)
        return false;
    sgi_send_begin_notification(&sending, conn, "notifications/cancelled");
    if (*session->question.text)
        sgi_jw_member_raw(&sending.w, "requestId",
                          sgi_question_id_write_json(&session->question, call->id, room));
    else
        sgi_jw_member_int(&sending.w, "requestId", call->id);
    if (call->reason)
        sgi_jw_member_string(&sending.w, "reason", sgi_str_of(call->reason));
    if (call->key)
        write_key(&sending.w, call->key);
    sgi_send_end(&sending);
    if (conn->exchange)
        conn->exchange->withdraws = call->id;
    return sgi_session_send_message(session, conn);
}

/* ---- life ---- */

static void free_withdrawal(const sgi_mem *mem, struct sgi_withdrawal *w)
{
    sgi_text_free(mem, w->key);
    sgi_text_free(mem, w->token);
    sgi_free(mem, w, sizeof *w);
}

static void drop(struct sgi_withdrawal *w)
{
    segue_session *session = w->session;
    if (w->resuming)
        sgi_emitter_drop(w->resuming, false);
    sgi_engine_clear_timer(session->engine, &w->timer);
    TAILQ_REMOVE(&session->withdrawals.list, w, link);
    session->withdrawals.count--;
    free_withdrawal(sgi_engine_mem(session->engine), w);
}

static void go(struct sgi_withdrawal *w);

static void timer_fired(sgi_timer *timer)
{
    struct sgi_withdrawal *w = SGI_OWNER(timer, struct sgi_withdrawal, timer);
    segue_session *session = w->session;
    if (sgi_now(&session->engine->env) < w->until_ms) {
        go(w);
        return;
    }
    if (w->state != SGI_WITHDRAWAL_SENT)
        sgi_engine_log(
            session->engine, SEGUE_LOG_WARNING,
            "the server did not get the cancellation of a call within %d ms: " MAY_GO_ON,
            (int)SGI_WITHDRAWAL_MS);
    drop(w);
}

/* Sets the timer to fire after ms, or at until_ms if that is earlier. */
static void set_timer(struct sgi_withdrawal *w, int64_t ms)
{
    int64_t left = w->until_ms - sgi_now(&w->session->engine->env);
    left = left < 0 ? 0 : left;
    sgi_engine_set_timer(w->session->engine, &w->timer, ms < left ? ms : left,
                         timer_fired);
}

static void wait(struct sgi_withdrawal *w)
{
    w->state = SGI_WITHDRAWAL_WAITS;
    set_timer(w, SGI_WITHDRAWAL_AGAIN_MS);
}

/* ---- a call of another wire session ---- */

/* True when the server can find the call by the name in the cancellation: by its key, or
 * by its id if the wire session is still the same. */
static bool is_known(const struct sgi_withdrawal *w)
{
    return w->key || w->wire_session == w->session->wire_session;
}

static struct sgi_withdrawal *find(segue_session *session, int64_t id)
{
    struct sgi_withdrawal *w;
    TAILQ_FOREACH(w, &session->withdrawals.list, link)
        if (w->id == id)
            return w;
    return NULL;
}

static bool may_be_asked_again(const sgi_outcome *outcome)
{
    sgi_json reason = sgi_json_get(sgi_json_get(outcome->json, "data"), "reason");
    return outcome->kind == SGI_OUTCOME_LOST || sgi_outcome_may_pass(outcome) ||
           (outcome->kind == SGI_OUTCOME_ERROR &&
            sgi_json_string_is(reason, SGI_STR("elsewhere")));
}

/* Handles the end of requests/resume. The answer to requests/resume is the answer of the
 * call, or says that the call has no answer. In both cases the server has nothing left to
 * cancel. If the answer is lost after the cancellation was sent, this function does
 * nothing, because the cancellation may have closed the exchange. */
static void resume_ended(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    struct sgi_withdrawal *w = find(emitter->session, emitter->id);
    if (!w || w->resuming != emitter)
        return;
    w->resuming = NULL;
    bool is_cancelled =
        outcome->kind == SGI_OUTCOME_LOST && w->state != SGI_WITHDRAWAL_RESUMES;
    if (is_cancelled)
        return;
    if (!may_be_asked_again(outcome)) {
        if (outcome->kind == SGI_OUTCOME_REFUSED)
            sgi_engine_log(
                w->session->engine, SEGUE_LOG_WARNING,
                "the server did not get the cancellation of a call, so " MAY_GO_ON ": %s",
                outcome->why);
        drop(w);
        return;
    }
    w->wire_session = SGI_NO_WIRE_SESSION;
    wait(w);
}

static bool resume(struct sgi_withdrawal *w)
{
    segue_session *session = w->session;
    if (!sgi_session_is_open(session) || sgi_emitter_id_is_in_flight(session, w->id))
        return false;
    w->resuming = sgi_cli_resume_ended_call(session, w->id, sgi_str_of(w->token));
    if (!w->resuming)
        return false;
    w->resuming->late = true;
    w->resuming->more = sgi_emitter_skip_piece;
    w->resuming->done = resume_ended;
    w->wire_session = session->wire_session;
    if (session->conn->exchanging)
        w->state = SGI_WITHDRAWAL_RESUMES;
    return true;
}

/* ---- sending the withdrawal ---- */

static bool tell_of(const struct sgi_withdrawal *w)
{
    return tell(w->session,
                &(sgi_withdrawn_call){.id = w->id, .key = w->key, .reason = w->reason});
}

static void go(struct sgi_withdrawal *w)
{
    segue_session *session = w->session;
    if (!is_known(w) && !w->token) {
        drop(w);
        return;
    }
    bool is_first = w->state != SGI_WITHDRAWAL_RESUMES;
    bool is_sent = is_known(w) || resume(w);
    if (is_sent && w->state == SGI_WITHDRAWAL_RESUMES) {
        if (!is_first)
            tell_of(w);
        set_timer(w, SGI_WITHDRAWAL_AGAIN_MS);
        return;
    }
    is_sent = is_sent && tell_of(w);
    if (is_sent)
        w->state = session->conn->exchanging ? SGI_WITHDRAWAL_OUT : SGI_WITHDRAWAL_SENT;
    bool is_tried_again = !is_sent && sgi_session_is_open(session);
    set_timer(w, is_tried_again ? SGI_WITHDRAWAL_AGAIN_MS : SGI_WITHDRAWAL_MS);
}

static bool copy_names(struct sgi_withdrawal *w, const sgi_withdrawn_call *call)
{
    const sgi_mem *mem = sgi_engine_mem(w->session->engine);
    w->key = call->key ? sgi_text_dup(mem, sgi_str_of(call->key)) : NULL;
    w->token = call->token.n ? sgi_text_dup(mem, call->token) : NULL;
    return (w->key || !call->key) && (w->token || !call->token.n);
}

static struct sgi_withdrawal *keep(segue_session *session, const sgi_withdrawn_call *call)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    struct sgi_withdrawal *w;
    if (sgi_session_is_closed(session) ||
        session->withdrawals.count >= session->withdrawals.max ||
        !(call->key || call->token.n || session->conn->exchanging))
        return NULL;
    w = sgi_zalloc(mem, sizeof *w);
    if (!w)
        return NULL;
    w->session = session;
    if (!copy_names(w, call)) {
        free_withdrawal(mem, w);
        return NULL;
    }
    w->id = call->id;
    w->wire_session = call->wire_session;
    w->reason = call->reason;
    w->until_ms = sgi_time_add(sgi_now(&session->engine->env), SGI_WITHDRAWAL_MS);
    TAILQ_INSERT_TAIL(&session->withdrawals.list, w, link);
    session->withdrawals.count++;
    return w;
}

void sgi_withdraw_call(segue_session *session, const sgi_withdrawn_call *call)
{
    struct sgi_withdrawal *w = keep(session, call);
    if (w)
        go(w);
    else
        tell(session, call);
}

/* ---- events that end a withdrawal ---- */

/* Ends the withdrawal, because the server has answered its message with a final status.
 * Status 404 means that the wire session is gone. A call with a token is then resumed in
 * the next wire session. While the call is being resumed, resume_ended ends the
 * withdrawal instead. */
void sgi_withdrawal_on_settled(segue_session *session, int64_t id, int32_t status)
{
    struct sgi_withdrawal *w = find(session, id);
    if (w && status == 404 && w->token)
        wait(w);
    else if (w && w->state != SGI_WITHDRAWAL_RESUMES)
        drop(w);
}

/* Sends the withdrawal again after a pause. After until_ms, timer_fired drops the
 * withdrawal and logs that the server did not get it. */
void sgi_withdrawal_on_lost(segue_session *session, int64_t id)
{
    struct sgi_withdrawal *w = find(session, id);
    if (w && w->state != SGI_WITHDRAWAL_RESUMES)
        wait(w);
}

void sgi_withdrawal_on_resumed(segue_session *session, int64_t id)
{
    struct sgi_withdrawal *w = find(session, id);
    if (!w || w->state != SGI_WITHDRAWAL_RESUMES)
        return;
    w->state = SGI_WITHDRAWAL_WAITS;
    go(w);
}

void sgi_withdrawals_revoke(segue_session *session, const char *name)
{
    struct sgi_withdrawal *w, *next;
    SGI_TAILQ_EACH(w, &session->withdrawals.list, link, next) {
        if ((w->key && !strcmp(w->key, name)) || (w->token && !strcmp(w->token, name)))
            drop(w);
    }
}

void sgi_withdrawals_on_session_open(segue_session *session)
{
    struct sgi_withdrawal *w, *next;
    SGI_TAILQ_EACH(w, &session->withdrawals.list, link, next) {
        if (w->state == SGI_WITHDRAWAL_WAITS || w->state == SGI_WITHDRAWAL_SENT)
            go(w);
    }
}

void sgi_withdrawals_on_session_close(segue_session *session)
{
    struct sgi_withdrawal *w;
    while ((w = TAILQ_FIRST(&session->withdrawals.list))) {
        bool waits = w->state == SGI_WITHDRAWAL_WAITS;
        bool can_resume = w->token && !session->conn->exchanging;
        if (waits && (is_known(w) || (can_resume && resume(w))))
            tell_of(w);
        drop(w);
    }
}
