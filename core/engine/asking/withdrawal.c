/* States of a withdrawal:
 *
 *     WAITS   the session is not open, or the pause behind a loss is not over
 *     OUT     over HTTP: an exchange carries it, whose end settles it or loses it
 *     TOLD    over a byte stream: a connection that breaks may have lost it, so the next
 *             one is told as well; who knows the key already does nothing
 *
 * A withdrawal is dropped when the server has answered it or its time is over. A
 * withdrawal without a key names the call by its id, which is valid in one wire session
 * only, and is dropped when that session ends. Over a byte stream the connection is the
 * wire session, so such a withdrawal is told once. */
#include "engine/asking/withdrawal.h"

#include "engine/asking/ask_exchange.h"
#include "engine/sending.h"

typedef enum sgi_withdrawal_state {
    SGI_WITHDRAWAL_WAITS = 0,
    SGI_WITHDRAWAL_OUT,
    SGI_WITHDRAWAL_TOLD
} sgi_withdrawal_state;

struct sgi_withdrawal {
    TAILQ_ENTRY(sgi_withdrawal) link;
    segue_session *session; /* has it in its list */
    sgi_withdrawal_state state;
    int64_t id;
    char *key;            /* or NULL */
    int32_t wire_session; /* in which the call was sent */
    const char *reason;   /* or NULL */
    int64_t until_ms;     /* monotonic */
    sgi_timer timer;      /* the next try, or the end */
};

/* ---- the message ---- */

static void write_key(sgi_jw *w, const char *key)
{
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "dev.segue/idempotencyKey", sgi_str_of(key));
    sgi_jw_close(w, '}');
}

/* false: it could not be sent. */
static bool tell(segue_session *session, int64_t id, const char *key, const char *reason)
{
    char room[SGI_QUESTION_JSON];
    sgi_sending sending;
    sgi_conn *conn = sgi_session_is_open(session) ? sgi_session_tell(session) : NULL;
    if (!conn)
        return false;
    sgi_send_notification(&sending, conn, "notifications/cancelled");
    if (*session->question.text)
        sgi_jw_member_raw(&sending.w, "requestId",
                          sgi_question_id_json(&session->question, id, room));
    else
        sgi_jw_member_int(&sending.w, "requestId", id);
    if (reason)
        sgi_jw_member_string(&sending.w, "reason", sgi_str_of(reason));
    if (key)
        write_key(&sending.w, key);
    sgi_send_end(&sending);
    if (conn->exchange)
        conn->exchange->withdraws = id;
    return sgi_session_told(session, conn);
}

/* ---- life ---- */

static void drop(struct sgi_withdrawal *w)
{
    segue_session *session = w->session;
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    sgi_engine_timer_clear(session->engine, &w->timer);
    TAILQ_REMOVE(&session->withdrawals, w, link);
    session->withdrawal_count--;
    sgi_text_free(mem, w->key);
    sgi_release(mem, w, sizeof *w);
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
    if (w->state != SGI_WITHDRAWAL_TOLD)
        sgi_engine_log(session->engine, SEGUE_LOG_WARNING,
                       "the server could not be told within %d ms that a call was "
                       "cancelled: its tool may go on",
                       SGI_WITHDRAWAL_MS);
    drop(w);
}

/* The timer fires then, or at the end. */
static void set_timer(struct sgi_withdrawal *w, int64_t ms)
{
    int64_t left = w->until_ms - sgi_now(&w->session->engine->env);
    left = left < 0 ? 0 : left;
    sgi_engine_timer(w->session->engine, &w->timer, ms < left ? ms : left, timer_fired);
}

static void go(struct sgi_withdrawal *w)
{
    if (!w->key && w->wire_session != w->session->wire_session) {
        drop(w);
        return;
    }
    bool is_sent = tell(w->session, w->id, w->key, w->reason);
    if (is_sent)
        w->state =
            w->session->conn->exchanging ? SGI_WITHDRAWAL_OUT : SGI_WITHDRAWAL_TOLD;
    bool is_tried_again = !is_sent && sgi_session_is_open(w->session);
    set_timer(w, is_tried_again ? SGI_WITHDRAWAL_AGAIN_MS : SGI_WITHDRAWAL_MS);
}

static struct sgi_withdrawal *keep(segue_session *session, const char *key)
{
    const sgi_mem *mem = sgi_engine_mem(session->engine);
    struct sgi_withdrawal *w;
    if (session->stage == SGI_STAGE_CLOSED ||
        session->withdrawal_count >= session->max_withdrawals ||
        !(key || session->conn->exchanging))
        return NULL;
    w = sgi_zalloc(mem, sizeof *w);
    if (!w)
        return NULL;
    w->key = key ? sgi_text_dup(mem, sgi_str_of(key)) : NULL;
    if (key && !w->key) {
        sgi_release(mem, w, sizeof *w);
        return NULL;
    }
    w->session = session;
    w->wire_session = session->wire_session;
    w->until_ms = sgi_time_add(sgi_now(&session->engine->env), SGI_WITHDRAWAL_MS);
    TAILQ_INSERT_TAIL(&session->withdrawals, w, link);
    session->withdrawal_count++;
    return w;
}

void sgi_withdraw(segue_session *session, int64_t id, const char *key, const char *reason)
{
    struct sgi_withdrawal *w = keep(session, key);
    if (!w) {
        tell(session, id, key, reason);
        return;
    }
    w->id = id;
    w->reason = reason;
    go(w);
}

/* ---- what becomes of them ---- */

static struct sgi_withdrawal *find(segue_session *session, int64_t id)
{
    struct sgi_withdrawal *w;
    TAILQ_FOREACH(w, &session->withdrawals, link)
        if (w->id == id)
            return w;
    return NULL;
}

void sgi_withdrawal_settled(segue_session *session, int64_t id)
{
    struct sgi_withdrawal *w = find(session, id);
    if (w)
        drop(w);
}

void sgi_withdrawal_lost(segue_session *session, int64_t id)
{
    struct sgi_withdrawal *w = find(session, id);
    if (!w)
        return;
    w->state = SGI_WITHDRAWAL_WAITS;
    set_timer(w, SGI_WITHDRAWAL_AGAIN_MS);
}

void sgi_withdrawals_revoke(segue_session *session, const char *key)
{
    struct sgi_withdrawal *w, *next;
    SGI_TAILQ_EACH(w, &session->withdrawals, link, next) {
        if (w->key && !strcmp(w->key, key))
            drop(w);
    }
}

void sgi_withdrawals_opened(segue_session *session)
{
    struct sgi_withdrawal *w, *next;
    SGI_TAILQ_EACH(w, &session->withdrawals, link, next) {
        if (w->state != SGI_WITHDRAWAL_OUT)
            go(w);
    }
}

void sgi_withdrawals_end(segue_session *session)
{
    struct sgi_withdrawal *w;
    while ((w = TAILQ_FIRST(&session->withdrawals))) {
        if (w->state == SGI_WITHDRAWAL_WAITS)
            tell(session, w->id, w->key, w->reason);
        drop(w);
    }
}
