/* Who holds what: a request that is out, or waits to be, holds its operation and the
 * conversation that it was sent on; its question points to it. What is due is sent when
 * the handler's callbacks have run, so that a place that is lost or found only wakes the
 * call.
 *
 * A question that was sent on a stream which broke is in what the client may ask for
 * again, with its id. */
#include "engine/serving/asks.h"

#include "engine/dialect/tasks_2025.h"
#include "engine/serving/call.h"
#include "engine/serving/origin.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"
#include "engine/serving/tool_call.h"
#include "engine/serving/wire_session.h"

/* So many of a session are out at once. */
#define OUT_MAX 256

struct sgi_ask {
    TAILQ_ENTRY(sgi_ask) link;
    sgi_asks *asks;
    sgi_op *op; /* counted */
    sgi_input *input;
    sgi_conn *conn; /* counted: the way that it went; NULL = it waits */
    int64_t id;
};

void sgi_asks_init(sgi_asks *asks, sgi_wire_session *session)
{
    *asks = (sgi_asks){.session = session};
    TAILQ_INIT(&asks->out);
    TAILQ_INIT(&asks->waiting);
}

/* Forgets a request; another may take its place. The caller holds the operation. */
static void forget(sgi_ask *ask)
{
    sgi_asks *asks = ask->asks;
    sgi_op *op = ask->op;
    ask->input->ask = NULL;
    if (ask->conn) {
        TAILQ_REMOVE(&asks->out, ask, link);
        asks->out_count--;
        sgi_conn_unref(ask->conn);
    } else {
        TAILQ_REMOVE(&asks->waiting, ask, link);
    }
    sgi_release(sgi_engine_mem(op->engine), ask, sizeof *ask);
    sgi_op_unref(op);
}

/* One of those that wait has its turn. */
static void let_next_go(sgi_asks *asks)
{
    sgi_ask *ask = TAILQ_FIRST(&asks->waiting);
    if (!ask || asks->out_count >= OUT_MAX)
        return;
    sgi_op *op = ask->op;
    sgi_op_ref(op);
    forget(ask);
    sgi_asks_place(op);
    sgi_op_unref(op);
}

/* ---- where ---- */

typedef struct place {
    sgi_asks *asks;
    sgi_conn *conn;
    uint32_t caps; /* of its client */
} place;

/* Can more than one message go out on it? */
static bool is_open(const sgi_conn *conn)
{
    return conn->up && !conn->closing && !conn->answered && !conn->no_events &&
           conn->frames != SGI_FRAMES_BODY;
}

/* Somebody reads it now. */
static bool is_read(const sgi_conn *conn)
{
    return is_open(conn) && conn->transport && !conn->parting;
}

static sgi_conn *listening(const sgi_wire_session *session)
{
    const sgi_peer *peer = session->listening;
    return peer && is_read(peer->conn) ? peer->conn : NULL;
}

/* The conversation of a request. now: only if somebody reads it; else what is sent may
 * be for who comes for it. */
static bool find_in(const sgi_peer *peer, bool now, place *found)
{
    sgi_conn *conn = peer->conn;
    if (peer->is_exchange && !peer->session)
        return false; /* its session has ended: no answer could come */
    if (!(now && peer->is_exchange ? is_read(conn) : is_open(conn)))
        conn = peer->session ? listening(peer->session) : NULL;
    *found = (place){peer->asks, conn, peer->handshake->caps};
    return conn != NULL;
}

static bool find_by_origin(const sgi_origin *origin, place *found)
{
    if (!origin || !origin->told)
        return false;
    if (origin->peer && find_in(origin->peer, true, found))
        return true;
    sgi_wire_session *session = origin->session;
    if (!session)
        return false;
    *found = (place){&session->asks, listening(session), session->handshake.caps};
    return found->conn != NULL;
}

static bool find_place(const sgi_op *op, place *found)
{
    const sgi_reply *reply = NULL;
    if (op->is_task && find_by_origin(op->origin, found))
        return true;
    while ((reply = op->is_task ? sgi_tasks_2025_waiting(op, reply)
                                : sgi_call_listening(op, reply)))
        if (find_in(reply->peer, op->is_task, found))
            return true;
    return false;
}

/* ---- asking ---- */

/* The handler waits for it, peers may see it, and it is not on its way. */
static bool is_due(const sgi_op *op, const sgi_input *input)
{
    return input->bound && !input->answered && !input->ask &&
           input->asked <= sgi_op_horizon(op);
}

static bool is_askable(const sgi_input *input, const place *where)
{
    return !(
        sgi_input_needs(input->method, (sgi_json){input->params, input->params_len}) &
        ~where->caps);
}

bool sgi_asks_are_due(const sgi_op *op)
{
    const sgi_input *input;
    place where;
    if (TAILQ_EMPTY(&op->inputs) || sgi_op_has_ended(op) || !op->call ||
        op->call->cancelled || op->server->stage == SGI_SERVER_DEAD)
        return false;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (is_due(op, input))
            return find_place(op, &where) && is_askable(input, &where);
    return false;
}

/* Its params; a task's say which task, beside what the tool has in _meta. */
static void write_params(sgi_sending *sending, const sgi_op *op, const sgi_input *input)
{
    sgi_json params = {input->params, input->params_len};
    sgi_json_member member;
    sgi_buf related;
    for (size_t at = 0; sgi_json_next_member(params, &at, &member);) {
        if (op->is_task && sgi_json_key_is(&member, "_meta"))
            continue;
        sgi_jw_key_json(&sending->w, member.key);
        sgi_jw_raw(&sending->w, member.value);
    }
    if (!op->is_task)
        return;
    sgi_buf_init(&related, sgi_engine_mem(op->engine));
    sgi_jw_key(&sending->w, "_meta");
    sgi_jw_open(&sending->w, '{');
    sgi_buf_add_str(sending->w.buf, sgi_related_task(&related, op));
    sending->w.comma = true;
    sending->w.buf->failed |= related.failed;
    params = sgi_json_get(params, "_meta");
    for (size_t at = 0; sgi_json_kind_of(params) == SGI_JSON_OBJECT &&
                        sgi_json_next_member(params, &at, &member);) {
        if (sgi_json_key_is(&member, "io.modelcontextprotocol/related-task"))
            continue;
        sgi_jw_key_json(&sending->w, member.key);
        sgi_jw_raw(&sending->w, member.value);
    }
    sgi_jw_close(&sending->w, '}');
    sgi_buf_free(&related);
}

/* False when out of memory. */
static bool put_out(sgi_op *op, sgi_input *input, const place *where)
{
    sgi_sending sending;
    sgi_asks *asks = where->asks;
    sgi_ask *ask = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *ask);
    if (!ask)
        return false;
    *ask = (sgi_ask){.asks = asks, .op = op, .input = input};
    sgi_op_ref(op);
    input->ask = ask;
    if (asks->out_count >= OUT_MAX) {
        TAILQ_INSERT_TAIL(&asks->waiting, ask, link);
        return true;
    }
    ask->conn = where->conn;
    sgi_conn_ref(ask->conn);
    ask->id = ++asks->last_id;
    TAILQ_INSERT_TAIL(&asks->out, ask, link);
    asks->out_count++;
    sgi_send_request(&sending, ask->conn, ask->id, sgi_str_of(input->method));
    write_params(&sending, op, input);
    sgi_send_end(&sending); /* without memory the conversation closes: it is lost then */
    return true;
}

void sgi_asks_send(sgi_op *op)
{
    sgi_input *input;
    place where;
    bool ok = true;
    if (!sgi_asks_are_due(op))
        return;
    sgi_op_ref(op);
    TAILQ_FOREACH(input, &op->inputs, link)
        if (ok && is_due(op, input) && find_place(op, &where) &&
            is_askable(input, &where))
            ok = put_out(op, input, &where);
    if (!ok)
        sgi_op_give_up(op, "Out of memory for a question");
    sgi_op_unref(op);
}

void sgi_asks_place(sgi_op *op)
{
    if (sgi_asks_are_due(op))
        sgi_call_look(op->call);
}

void sgi_asks_place_all(const sgi_wire_session *session)
{
    const sgi_origin *origin;
    const sgi_peer *peer;
    const sgi_reply *reply;
    LIST_FOREACH(origin, &session->origins, by_session)
        sgi_asks_place(origin->op);
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        LIST_FOREACH(reply, &peer->replies, by_peer) {
            sgi_op *op = sgi_call_of(reply);
            if (op)
                sgi_asks_place(op);
        }
}

/* ---- answers ---- */

static sgi_ask *find(const sgi_asks *asks, sgi_json id)
{
    sgi_ask *ask;
    int64_t number;
    if (sgi_json_kind_of(id) != SGI_JSON_NUMBER || !sgi_json_int(id, &number))
        return NULL;
    TAILQ_FOREACH(ask, &asks->out, link)
        if (ask->id == number)
            return ask;
    return NULL;
}

/* The members of an object but one; false when there are none. */
static bool write_but(sgi_jw *w, sgi_json object, const char *name)
{
    sgi_json_member member;
    bool any = false;
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);) {
        if (sgi_json_key_is(&member, name))
            continue;
        any = true;
        sgi_jw_key_json(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    return any;
}

/* What a result says of its task is for this library: the handler gets the answer as
 * other revisions carry it. Out of memory fails out. */
static sgi_json answer_of(sgi_json result, sgi_buf *out)
{
    sgi_json meta = sgi_json_get(result, "_meta");
    if (!sgi_json_get(meta, SGI_RELATED_TASK).n)
        return result;
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    write_but(&w, result, "_meta");
    size_t mark = out->len;
    sgi_jw_key(&w, "_meta");
    sgi_jw_open(&w, '{');
    bool any = write_but(&w, meta, SGI_RELATED_TASK);
    sgi_jw_close(&w, '}');
    if (!any)
        sgi_buf_cut(out, mark);
    sgi_jw_close(&w, '}');
    return sgi_buf_str(out);
}

/* As the call's handler is to have it. */
static segue_status take_result(sgi_op *op, sgi_str key, sgi_json result)
{
    sgi_buf answer;
    sgi_buf_init(&answer, sgi_engine_mem(op->engine));
    sgi_json value = answer_of(result, &answer);
    segue_status status = answer.failed ? SEGUE_E_NOMEM : sgi_task_answer(op, key, value);
    sgi_buf_free(&answer);
    return status;
}

bool sgi_asks_answer(sgi_peer *peer, const sgi_message *msg)
{
    sgi_asks *asks = peer->asks;
    sgi_ask *ask = find(asks, msg->id);
    if (!ask)
        return false;
    sgi_op *op = ask->op;
    sgi_str key = sgi_str_of(ask->input->key);
    sgi_op_ref(op);
    forget(ask);
    let_next_go(asks);
    segue_status status = msg->kind == SGI_MESSAGE_ERROR
                              ? sgi_task_answer_error(op, key, msg->error)
                              : take_result(op, key, msg->result);
    if (status == SEGUE_E_NOMEM) /* nobody can be told to send it again */
        sgi_op_give_up(op, "Out of memory for an answer");
    sgi_round_settle(op);
    if (op->call)
        sgi_call_look(op->call); /* one that did not fit is asked again */
    sgi_op_unref(op);
    return true;
}

/* ---- the end ---- */

void sgi_asks_lose(sgi_asks *asks)
{
    sgi_ask *ask;
    while ((ask = TAILQ_FIRST(&asks->out)) || (ask = TAILQ_FIRST(&asks->waiting))) {
        sgi_op *op = ask->op;
        sgi_op_ref(op);
        forget(ask);
        sgi_asks_place(op);
        sgi_op_unref(op);
    }
}

static void tell_withdrawn(const sgi_ask *ask)
{
    sgi_sending sending;
    sgi_conn *conn = ask->conn;
    if (conn && !is_open(conn))
        conn = ask->asks->session ? listening(ask->asks->session) : NULL;
    if (!conn)
        return;
    sgi_send_notification(&sending, conn, "notifications/cancelled");
    sgi_jw_member_int(&sending.w, "requestId", ask->id);
    if (ask->op->is_task)
        sgi_tasks_2025_write_related(&sending.w, ask->op);
    sgi_send_end(&sending);
}

void sgi_ask_withdraw(sgi_input *input)
{
    sgi_ask *ask = input->ask;
    if (!ask)
        return;
    sgi_asks *asks = ask->asks;
    tell_withdrawn(ask);
    forget(ask);
    let_next_go(asks);
}

void sgi_asks_withdraw(sgi_op *op)
{
    sgi_input *input;
    sgi_op_ref(op);
    TAILQ_FOREACH(input, &op->inputs, link)
        sgi_ask_withdraw(input);
    sgi_op_unref(op);
}
