/* Who holds what: a request that is out, or waits to be, holds its operation and the
 * conversation that it was sent on; its question points to it. What is due is sent when
 * the handler's callbacks have run, so that a place that is lost or found only wakes the
 * call.
 *
 * A question that was sent on a stream which broke is in what the client may ask for
 * again, with its id.
 *
 * One that is asked as a task (hosting/asker.h) stands in the table from the first
 * message of it to the last: what its asker says goes the way of the question, and what
 * the client answers to any of that goes to it. */
#include "engine/serving/asks.h"

#include "engine/dialect/response_modes.h"
#include "engine/dialect/tasks_2025.h"
#include "engine/hosting/asker.h"
#include "engine/serving/ask_place.h"
#include "engine/serving/ask_wire.h"
#include "engine/serving/call.h"
#include "engine/serving/errands.h"
#include "engine/serving/late_answer.h"
#include "engine/serving/mail.h"
#include "engine/serving/origin.h"
#include "engine/serving/resumable.h"
#include "engine/serving/rounds.h"
#include "engine/serving/task.h"
#include "engine/serving/tool_call.h"
#include "engine/serving/wire_session.h"

#include <stdio.h>

/* So many of a session are out at once. */
#define OUT_MAX 256

struct sgi_ask {
    TAILQ_ENTRY(sgi_ask) link;
    sgi_asks *asks;
    sgi_op *op; /* counted */
    sgi_input *input;
    sgi_conn *conn; /* counted: the way that it went; NULL = it waits */
    sgi_question_id id;
    sgi_map_node by_id; /* in the table of the server, once it went */
    bool cancels;       /* its client cancels tasks */
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
        sgi_map_remove(&op->server->asks, &ask->by_id);
        TAILQ_REMOVE(&asks->out, ask, link);
        asks->out_count--;
        sgi_conn_unref(ask->conn);
    } else {
        TAILQ_REMOVE(&asks->waiting, ask, link);
    }
    sgi_release(sgi_engine_mem(op->engine), ask, sizeof *ask);
    sgi_op_unref(op);
}

/* ---- asking ---- */

/* The question was sent on a stream that nobody reads and that the client may never take
 * up again. It is asked anew where the client reads now; within the same session only
 * after the client has repeated the call or waits for the result again. */
static bool is_stranded(const sgi_op *op, const sgi_ask *ask)
{
    sgi_place where;
    const sgi_wire_session *session = ask->asks->session;
    if (!session || (ask->conn && sgi_place_is_read(ask->conn)) ||
        !sgi_place_find(op, &where) || !sgi_place_is_read(where.conn))
        return false;
    return where.asks != ask->asks ? !sgi_place_listening(session)
                                   : ask->conn && sgi_place_is_called(op, ask->asks);
}

/* The handler waits for it, peers may see it, and it is not on its way. */
static bool is_due(const sgi_op *op, const sgi_input *input)
{
    return (input->bound || sgi_op_is_elsewhere(op)) && !input->answered &&
           (!input->ask || is_stranded(op, input->ask)) &&
           input->asked <= sgi_op_horizon(op) && !sgi_errand_answers(op, input->key) &&
           !(input->asker && sgi_asker_is_over(input->asker));
}

/* It is due, and there is a place whose client answers what it asks for. */
static bool can_be_sent(const sgi_op *op, const sgi_input *input, sgi_place *where)
{
    sgi_json params = {input->params, input->params_len};
    return is_due(op, input) && sgi_place_find(op, where) &&
           !(sgi_input_needs(input->method, params) & ~where->caps);
}

/* Where the asker of a question can go on; NULL = nowhere now. */
static sgi_conn *way_of(const sgi_ask *ask)
{
    sgi_place where;
    if (sgi_place_find(ask->op, &where) && where.asks == ask->asks)
        return where.conn;
    if (sgi_place_is_open(ask->conn))
        return ask->conn;
    return ask->asks->session ? sgi_place_listening(ask->asks->session) : NULL;
}

static bool has_words(const sgi_input *input)
{
    return input->ask && input->ask->conn && input->asker &&
           sgi_asker_has_words(input->asker) && way_of(input->ask);
}

/* A handler, here or at another server. */
static bool has_asker(const sgi_op *op)
{
    return sgi_op_is_elsewhere(op) || (op->call && !op->call->cancelled);
}

/* Its answer reaches it, wherever it is sent. */
static bool can_be_answered(const sgi_op *op)
{
    return op->logged || !sgi_mail_is_opening(op->server);
}

bool sgi_asks_are_due(const sgi_op *op)
{
    const sgi_input *input;
    sgi_place where;
    if (op->resumable && !op->is_task)
        return false; /* on its channel they go with the rest (dialect/pieces.c) */
    if (TAILQ_EMPTY(&op->inputs) || sgi_op_has_ended(op) || !has_asker(op) ||
        op->server->stage == SGI_SERVER_DEAD || !can_be_answered(op))
        return false;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (has_words(input))
            return true;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (can_be_sent(op, input, &where))
            return true;
    return false;
}

/* The first of those that wait that can be sent here now has its turn. One before it has
 * no place, or another one: it is due like any other that is not out. */
static void let_next_go(sgi_asks *asks)
{
    bool goes = false;
    sgi_ask *ask;
    sgi_place where;
    while (!goes && asks->out_count < OUT_MAX && (ask = TAILQ_FIRST(&asks->waiting))) {
        sgi_op *op = ask->op;
        const sgi_input *input = ask->input;
        sgi_op_ref(op);
        forget(ask);
        goes =
            sgi_asks_are_due(op) && can_be_sent(op, input, &where) && where.asks == asks;
        sgi_asks_place(op);
        sgi_op_unref(op);
    }
}

static void asker_ended(sgi_op *op, sgi_input *input, sgi_asked_end how, sgi_json json);

static sgi_asker *make_asker(sgi_op *op, sgi_input *input, const sgi_place *where)
{
    sgi_buf params;
    sgi_buf_init(&params, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_on(&params);
    sgi_jw_open(&w, '{');
    sgi_ask_write_params(&w, op, input);
    sgi_ask_write_task(&w, op, where);
    sgi_jw_close(&w, '}');
    sgi_asker *asker = params.failed ? NULL
                                     : sgi_asker_new(op, input, sgi_buf_str(&params),
                                                     sgi_asks_place, asker_ended);
    sgi_buf_free(&params);
    return asker;
}

static void send_question(const sgi_ask *ask)
{
    char room[SGI_QUESTION_JSON];
    sgi_sending sending;
    const sgi_input *input = ask->input;
    sgi_send_request_as(&sending, ask->conn, sgi_question_id_json(&ask->id, 0, room),
                        sgi_str_of(input->method));
    sgi_ask_write_params(&sending.w, ask->op, input);
    sgi_send_end(&sending); /* without memory the conversation closes: it is lost then */
}

/* Over HTTP what a client says has no order: it gives one response to a request, and what
 * is left of an answer is pulled. */
static void join_asker(const sgi_ask *ask, const sgi_place *where)
{
    sgi_asker *asker = ask->input->asker;
    uint8_t modes = where->modes;
    if (ask->asks->session)
        modes = (uint8_t)(modes & ~(unsigned)SGI_MODE_STREAMING);
    sgi_asker_join(asker, &ask->id, modes);
    sgi_asker_say(asker, ask->conn);
}

/* As a task, if that can be; one that was made goes on where clients take tasks. False
 * when out of memory. */
static bool choose_form(sgi_op *op, sgi_input *input, const sgi_place *where)
{
    bool as_task = sgi_ask_is_task(op, input, where);
    if (as_task && !input->asker)
        input->asker = make_asker(op, input, where);
    if (!as_task && input->asker) {
        sgi_asker_free(input->asker);
        input->asker = NULL;
    }
    return !as_task || input->asker;
}

static bool make_id(const sgi_op *op, const sgi_input *input, sgi_question_id *id)
{
    bool lasts = op->task_id && strlen(op->task_id) == SGI_RANDOM_TEXT;
    const char *name = lasts ? op->task_id : op->server->name;
    return sgi_question_id_make(id, op->engine, sgi_str_of(name),
                                lasts ? input->asked : 0);
}

/* Its session forgets it; who answers it there all the same is heard (late_answer.c). */
static void leave(sgi_ask *ask)
{
    sgi_asks *asks = ask->asks;
    if (ask->input->asker)
        sgi_asker_cut(ask->input->asker);
    forget(ask);
    let_next_go(asks);
}

/* False when out of memory. */
static bool put_out(sgi_op *op, sgi_input *input, const sgi_place *where)
{
    sgi_asks *asks = where->asks;
    if (input->ask)
        leave(input->ask);
    if (!choose_form(op, input, where))
        return false;
    sgi_ask *ask = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *ask);
    if (!ask)
        return false;
    *ask = (sgi_ask){.asks = asks,
                     .op = op,
                     .input = input,
                     .cancels = where->caps & SGI_CAP_TASK_CANCEL};
    if (!make_id(op, input, &ask->id)) {
        sgi_release(sgi_engine_mem(op->engine), ask, sizeof *ask);
        return false;
    }
    sgi_op_ref(op);
    input->ask = ask;
    if (asks->out_count >= OUT_MAX) {
        TAILQ_INSERT_TAIL(&asks->waiting, ask, link);
        return true;
    }
    ask->conn = where->conn;
    sgi_conn_ref(ask->conn);
    sgi_map_put(&op->server->asks, &ask->by_id, sgi_str_of(ask->id.text));
    TAILQ_INSERT_TAIL(&asks->out, ask, link);
    asks->out_count++;
    if (input->asker)
        join_asker(ask, where);
    else
        send_question(ask);
    return true;
}

static void say_more(sgi_op *op)
{
    sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (has_words(input))
            sgi_asker_say(input->asker, way_of(input->ask));
}

void sgi_asks_send(sgi_op *op)
{
    sgi_input *input;
    sgi_place where;
    bool ok = true;
    if (!sgi_asks_are_due(op))
        return;
    sgi_op_ref(op);
    say_more(op);
    TAILQ_FOREACH(input, &op->inputs, link)
        if (ok && can_be_sent(op, input, &where))
            ok = put_out(op, input, &where);
    if (!ok)
        sgi_op_give_up(op, "Out of memory for a question");
    sgi_op_unref(op);
}

void sgi_asks_place(sgi_op *op)
{
    if (!sgi_asks_are_due(op))
        return;
    if (op->call)
        sgi_call_look(op->call);
    else
        sgi_asks_send(op);
}

void sgi_asks_follow(sgi_op *op)
{
    sgi_input *input;
    if (TAILQ_EMPTY(&op->inputs))
        return;
    sgi_op_ref(op);
    TAILQ_FOREACH(input, &op->inputs, link)
        if (input->ask && input->answered)
            sgi_ask_withdraw(input);
    sgi_asks_send(op);
    sgi_round_follow(op);
    sgi_op_unref(op);
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

/* The request that this answers. */
static sgi_ask *find(const segue_server *server, const sgi_question_parts *parts,
                     sgi_json id)
{
    sgi_map_node *node = sgi_map_find(&server->asks, parts->whole);
    sgi_ask *ask = node ? SGI_OWNER(node, sgi_ask, by_id) : NULL;
    if (!ask)
        return NULL;
    const sgi_asker *asker = ask->input->asker;
    bool is_one = asker ? sgi_asker_waits(asker, id) : !parts->is_numbered;
    return is_one ? ask : NULL;
}

/* As the call's handler is to have it. */
static segue_status take_result(sgi_op *op, sgi_str key, sgi_json result)
{
    sgi_buf answer;
    sgi_buf_init(&answer, sgi_engine_mem(op->engine));
    sgi_json value = sgi_ask_clean_answer(result, &answer);
    segue_status status = answer.failed ? SEGUE_E_NOMEM : sgi_task_answer(op, key, value);
    sgi_buf_free(&answer);
    return status;
}

/* The question has its answer, or what came instead. The caller holds the operation. */
static void settle(sgi_op *op, segue_status status)
{
    if (sgi_op_is_elsewhere(op) && sgi_task_is_put_off(op, status))
        sgi_asks_place(op);           /* it is asked again */
    else if (status == SEGUE_E_NOMEM) /* nobody can be told to send it again */
        sgi_op_give_up(op, "Out of memory for an answer");
    sgi_round_settle(op);
    if (op->call)
        sgi_call_look(op->call); /* one that did not fit is asked again */
}

/* What is said of a task names it (2025-11-25 basic/utilities/tasks, "Associating
 * Task-Related Messages"). */
static bool is_about(const sgi_op *op, sgi_json result)
{
    sgi_json related = sgi_json_get(sgi_json_get(result, "_meta"), SGI_RELATED_TASK);
    sgi_json id = sgi_json_get(related, "taskId");
    return !id.n || (op->is_task && sgi_json_string_is(id, sgi_str_of(op->task_id)));
}

static segue_status take(sgi_op *op, const sgi_input *input, bool is_error,
                         sgi_json answer)
{
    const sgi_str key = sgi_str_of(input->key);
    return is_error ? sgi_task_answer_error(op, key, answer)
                    : take_result(op, key, answer);
}

bool sgi_ask_take(sgi_op *op, sgi_input *input, bool is_error, sgi_json answer)
{
    if (!is_error && !is_about(op, answer))
        return false;
    sgi_ask_withdraw(input); /* it may be out in another session */
    settle(op, take(op, input, is_error, answer));
    return true;
}

static sgi_answered answer_ask(sgi_ask *ask, bool is_error, sgi_json answer)
{
    sgi_asks *asks = ask->asks;
    sgi_op *op = ask->op;
    const sgi_input *input = ask->input;
    if (!is_error && !is_about(op, answer))
        return SGI_ANSWERED_NOTHING;
    sgi_op_ref(op);
    forget(ask);
    let_next_go(asks);
    settle(op, take(op, input, is_error, answer));
    sgi_op_unref(op);
    return SGI_ANSWERED_ONE;
}

static sgi_answered hear(sgi_ask *ask, const sgi_message *msg)
{
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    if (!ask->input->asker)
        return answer_ask(ask, is_error, is_error ? msg->error : msg->result);
    sgi_asker_hear(ask->input->asker, msg);
    return SGI_ANSWERED_ONE;
}

/* A question of a request that can be resumed is known by its name, to every session. */
static sgi_answered answer_resumable(const sgi_peer *peer, sgi_json id, bool is_error,
                                     sgi_json answer)
{
    sgi_op *op;
    const sgi_input *input = sgi_resumable_asked(peer, id, &op);
    if (!input)
        return SGI_ANSWERED_NOTHING;
    sgi_op_ref(op);
    settle(op, take(op, input, is_error, answer));
    sgi_op_unref(op);
    return SGI_ANSWERED_ONE;
}

sgi_answered sgi_asks_answer(sgi_peer *peer, const sgi_message *msg)
{
    sgi_question_parts parts;
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    sgi_json answer = is_error ? msg->error : msg->result;
    if (!sgi_question_id_read(msg->id, &parts))
        return SGI_ANSWERED_NOTHING;
    if (parts.is_lasting)
        return answer_resumable(peer, msg->id, is_error, answer);
    sgi_ask *ask = find(peer->server, &parts, msg->id);
    if (ask && ask->asks == peer->asks && ask->op->who == peer->who)
        return hear(ask, msg);
    return sgi_late_answer(peer, &parts, is_error, answer);
}

bool sgi_asks_brought(segue_server *server, sgi_str session, const uint8_t *who,
                      const sgi_message *msg)
{
    sgi_question_parts parts;
    bool is_answer = msg->kind == SGI_MESSAGE_RESULT || msg->kind == SGI_MESSAGE_ERROR;
    if (!is_answer || !sgi_question_id_read(msg->id, &parts))
        return false;
    sgi_ask *ask = find(server, &parts, msg->id);
    const sgi_wire_session *asked = ask ? ask->asks->session : NULL;
    return asked && sgi_str_eq(sgi_str_of(asked->id), session) &&
           !memcmp(ask->op->who->digest, who, SGI_DIGEST_SIZE) &&
           hear(ask, msg) == SGI_ANSWERED_ONE;
}

/* Nothing better will come under that id (R-0-2). */
bool sgi_asks_malformed(sgi_peer *peer, const sgi_message *msg)
{
    char cut[160];
    sgi_message answer = {.kind = SGI_MESSAGE_ERROR,
                          .id = msg->id,
                          .error = SGI_STR("{\"code\":-32603,\"message\":"
                                           "\"The client's answer is malformed\"}")};
    if (msg->is_cut) {
        snprintf(cut, sizeof cut,
                 "{\"code\":-32603,\"message\":\"The client's answer is too large: "
                 "max_message_bytes is %zu\"}",
                 peer->server->engine->max_message);
        answer.error = sgi_str_of(cut);
    }
    return !msg->is_call && msg->id.n &&
           sgi_asks_answer(peer, &answer) == SGI_ANSWERED_ONE;
}

/* ---- as a task ---- */

/* The asker of a question goes, and with it its place in the table. */
static void drop_asker(sgi_input *input)
{
    sgi_ask *ask = input->ask;
    sgi_asks *asks = ask ? ask->asks : NULL;
    sgi_asker *asker = input->asker;
    input->asker = NULL;
    sgi_asker_free(asker);
    if (!ask)
        return;
    forget(ask);
    let_next_go(asks);
}

static void asker_ended(sgi_op *op, sgi_input *input, sgi_asked_end how, sgi_json json)
{
    sgi_str key = sgi_str_of(input->key);
    segue_status status = SEGUE_OK;
    sgi_op_ref(op);
    if (how == SGI_ASKED_ANSWER)
        status = take_result(op, key, json);
    else if (how == SGI_ASKED_ERROR)
        status = json.n ? sgi_task_answer_error(op, key, json) : SEGUE_E_NOMEM;
    if (input->asker)
        drop_asker(input);
    settle(op, status);
    sgi_op_unref(op);
}

void sgi_asks_notified(sgi_peer *peer, const sgi_message *msg)
{
    sgi_ask *ask;
    TAILQ_FOREACH(ask, &peer->asks->out, link)
        if (ask->input->asker)
            sgi_asker_hear(ask->input->asker, msg);
}

/* ---- the end ---- */

void sgi_asks_lose(sgi_asks *asks)
{
    sgi_ask *ask;
    while ((ask = TAILQ_FIRST(&asks->out)) || (ask = TAILQ_FIRST(&asks->waiting))) {
        sgi_op *op = ask->op;
        sgi_op_ref(op);
        if (ask->input->asker)
            sgi_asker_cut(ask->input->asker);
        forget(ask);
        sgi_asks_place(op);
        sgi_op_unref(op);
    }
}

/* Its task is to be cancelled, if it has come to that. */
static bool cancel_task(const sgi_ask *ask)
{
    sgi_asker *asker = ask->input->asker;
    sgi_conn *conn = ask->conn ? way_of(ask) : NULL;
    if (!asker || sgi_asker_number(asker))
        return false;
    if (conn && ask->cancels)
        sgi_asker_cancel_task(asker);
    if (conn && sgi_asker_has_words(asker))
        sgi_asker_say(asker, conn);
    return true;
}

static void tell_withdrawn(const sgi_ask *ask)
{
    char room[SGI_QUESTION_JSON];
    sgi_sending sending;
    sgi_conn *conn = ask->conn;
    const sgi_asker *asker = ask->input->asker;
    if (cancel_task(ask))
        return;
    if (conn && !sgi_place_is_open(conn))
        conn = ask->asks->session ? sgi_place_listening(ask->asks->session) : NULL;
    if (!conn)
        return;
    sgi_send_notification(&sending, conn, "notifications/cancelled");
    sgi_jw_member_raw(
        &sending.w, "requestId",
        sgi_question_id_json(&ask->id, asker ? sgi_asker_number(asker) : 0, room));
    if (ask->op->is_task)
        sgi_tasks_2025_write_related(&sending.w, ask->op);
    sgi_send_end(&sending);
}

void sgi_ask_withdraw(sgi_input *input)
{
    sgi_ask *ask = input->ask;
    if (ask)
        tell_withdrawn(ask);
    if (input->asker) {
        drop_asker(input);
    } else if (ask) {
        sgi_asks *asks = ask->asks;
        forget(ask);
        let_next_go(asks);
    }
}

void sgi_asks_withdraw(sgi_op *op)
{
    sgi_input *input;
    sgi_op_ref(op);
    TAILQ_FOREACH(input, &op->inputs, link)
        sgi_ask_withdraw(input);
    sgi_op_unref(op);
}
