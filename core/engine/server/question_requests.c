/* A request (sgi_question_request) holds a reference to its operation and, once the
 * request was sent, a reference to its conversation. The question in the operation
 * (sgi_op_question) points to its request. When a stream for questions becomes available,
 * the questions are not sent at once: the call is queued, because the handler's callbacks
 * must run first.
 *
 * A client that resumes a broken stream can ask for a question that was sent on the
 * stream, as for every other event. The id of the question stays the same.
 *
 * A question can be asked as a task of the client. Then a question task
 * (input/question_task.h) sends several messages for it and gets the client's answers to
 * these messages. All messages are sent on the conversation on which the question was
 * sent. The request stays in server->questions from the first of these messages to the
 * last. */
#include "engine/server/question_requests.h"

#include "base/thresholds.h"
#include "base/rare.h"
#include "engine/response_modes.h"
#include "engine/conversation/replay.h"
#include "engine/input/question_task.h"
#include "engine/server/question_target.h"
#include "engine/server/question_wire.h"
#include "engine/server/call.h"
#include "engine/server/clients.h"
#include "engine/cluster/forwarding.h"
#include "engine/server/late_answer.h"
#include "engine/server/mailbox.h"
#include "engine/server/task_creator.h"
#include "engine/server/lasting.h"
#include "engine/server/rounds.h"
#include "engine/server/inputs.h"
#include "engine/server/task_form.h"
#include "engine/server/tool_call.h"
#include "engine/server/wire_session.h"

#include <stdio.h>

/* The maximum number of sent and unanswered requests in one session. */
#define OUT_MAX SGI_THRESHOLD(questions_out_max)

struct sgi_question_request {
    TAILQ_ENTRY(sgi_question_request) link;
    sgi_question_requests *questions;
    sgi_op *op; /* a counted reference */
    sgi_op_question *input;
    /* the conversation on which the request was sent, a counted reference; NULL = the
     * request waits and was not sent yet */
    sgi_conn *conn;
    /* number of the event that contains the request; 0 if `conn` does not number its
     * events */
    uint64_t event;
    sgi_question_id_text id;
    /* node of server->questions; in that map only after the request was sent */
    sgi_map_node by_id;
    /* the client has declared that the server can cancel tasks of the client */
    bool cancels;
};

void sgi_question_requests_init(sgi_question_requests *questions,
                                sgi_wire_session *session)
{
    *questions = (sgi_question_requests){.session = session};
    TAILQ_INIT(&questions->out);
    TAILQ_INIT(&questions->waiting);
}

/* Frees a request, so that the session has room for another request. The caller holds a
 * reference to the operation. */
static void forget(sgi_question_request *question)
{
    sgi_question_requests *questions = question->questions;
    sgi_op *op = question->op;
    question->input->question_request = NULL;
    if (question->conn) {
        sgi_map_remove(&sgi_op_server(op)->questions, &question->by_id);
        TAILQ_REMOVE(&questions->out, question, link);
        questions->out_count--;
        sgi_conn_unref(question->conn);
    } else {
        TAILQ_REMOVE(&questions->waiting, question, link);
    }
    sgi_free(sgi_engine_mem(op->engine), question, sizeof *question);
    sgi_op_unref(op);
}

/* ---- asking a question ---- */

/* True when the client reads the stream on which the question was sent, and has not
 * missed the event of the question. */
static bool is_read(const sgi_question_request *question)
{
    const sgi_conn *conn = question->conn;
    const sgi_peer *peer = conn->self;
    bool is_missed =
        question->event > peer->missed_after && question->event < peer->read_from;
    return sgi_question_target_has_reader(conn) && !is_missed;
}

/* True when the question was sent on a stream that no client reads, and a stream that a
 * client reads now exists. The question is then sent again on the second stream. Within
 * one session this happens only when the client has repeated the call or waits for the
 * result again. */
static bool is_stranded(const sgi_op *op, const sgi_question_request *question)
{
    sgi_question_target where;
    const sgi_wire_session *session = question->questions->session;
    if (!session || (question->conn && is_read(question)) ||
        !sgi_question_target_find(op, &where) ||
        !sgi_question_target_has_reader(where.conn))
        return false;
    return where.questions != question->questions
               ? !sgi_question_target_session_stream(session)
               : question->conn &&
                     sgi_question_target_is_awaited(op, question->questions);
}

/* True when the question must be sent: a handler waits for the answer, the entry of the
 * question is visible, and the question has no answer. */
static bool is_due(const sgi_op *op, const sgi_op_question *input)
{
    return (input->bound || sgi_op_runs_elsewhere(op)) && !input->answered &&
           (!input->question_request || is_stranded(op, input->question_request)) &&
           input->asked <= sgi_op_horizon(op) &&
           !sgi_question_answer_is_being_forwarded(op, input->key) &&
           !(input->question_task && sgi_question_task_is_over(input->question_task));
}

/* True when the question must be sent and a connected client can answer the question.
 * *where is then the target. */
static bool can_be_sent(const sgi_op *op, const sgi_op_question *input,
                        sgi_question_target *where)
{
    sgi_json params = {input->params, input->params_len};
    return is_due(op, input) && sgi_question_target_find(op, where) &&
           !(sgi_question_required_caps(input->method, params) & ~where->caps);
}

/* Returns the conversation on which the messages of a question task can be sent now, or
 * NULL when no conversation is available. */
static sgi_conn *way_of(const sgi_question_request *question)
{
    sgi_question_target where;
    if (sgi_question_target_find(question->op, &where) &&
        where.questions == question->questions)
        return where.conn;
    if (sgi_question_target_is_open(question->conn))
        return question->conn;
    return question->questions->session
               ? sgi_question_target_session_stream(question->questions->session)
               : NULL;
}

static bool has_output(const sgi_op_question *input)
{
    return input->question_request && input->question_request->conn &&
           input->question_task && sgi_question_task_has_output(input->question_task) &&
           way_of(input->question_request);
}

/* True when a handler of the operation runs on this server or on another server. */
static bool has_asker(const sgi_op *op)
{
    return sgi_op_runs_elsewhere(op) ||
           (op->served->call && !op->served->call->cancelled);
}

/* True when an answer reaches the operation, whichever server of the store receives the
 * answer. */
static bool can_be_answered(const sgi_op *op)
{
    return sgi_op_is_logged(op) || !sgi_mailbox_is_being_stored(sgi_op_server(op));
}

/* Returns the pieces whose reader sends the questions of a lasting call (its client can
 * leave and come back). Returns NULL when the client is not connected. */
static sgi_pieces *channel_of(const sgi_op *op)
{
    const sgi_reply *channel = op->served->lasting->channel;
    sgi_pieces *pieces = channel ? channel->pieces : NULL;
    return pieces && pieces->cursor.reader.op && sgi_conn_transport(pieces->conn) ? pieces
                                                                                  : NULL;
}

/* True when the channel has sent the question and its answer was lost. The reader of the
 * channel sends each question only once. */
static bool is_lost(const sgi_op *op, const sgi_op_question *input)
{
    const sgi_pieces *pieces = channel_of(op);
    return pieces && !input->awaited && pieces->cursor.reader.seq >= input->asked &&
           is_due(op, input);
}

static void ask_again(sgi_op *op)
{
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (is_lost(op, input))
            op->served->lasting->form->ask(channel_of(op), input);
}

bool sgi_question_requests_are_due(const sgi_op *op)
{
    const sgi_op_question *input;
    sgi_question_target where;
    if (TAILQ_EMPTY(&op->head.inputs) || sgi_op_has_ended(op) || !has_asker(op) ||
        sgi_op_server(op)->stage == SGI_SERVER_DEAD || !can_be_answered(op))
        return false;
    if (sgi_op_is_lasting_call(op)) {
        TAILQ_FOREACH(input, &op->head.inputs, link)
            if (is_lost(op, input))
                return true;
        return false;
    }
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (has_output(input))
            return true;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (can_be_sent(op, input, &where))
            return true;
    return false;
}

/* Sends the first waiting request that can be sent now. A request before it that has no
 * stream in this session leaves the waiting list, and its question becomes due again. */
static void let_next_go(sgi_question_requests *questions)
{
    bool goes = false;
    sgi_question_request *question;
    sgi_question_target where;
    while (!goes && questions->out_count < OUT_MAX &&
           (question = TAILQ_FIRST(&questions->waiting))) {
        sgi_op *op = question->op;
        const sgi_op_question *input = question->input;
        sgi_op_ref(op);
        forget(question);
        goes = sgi_question_requests_are_due(op) && can_be_sent(op, input, &where) &&
               where.questions == questions;
        sgi_question_requests_send_soon(op);
        sgi_op_unref(op);
    }
}

static void asker_ended(sgi_op *op, sgi_op_question *input, sgi_question_task_end how,
                        sgi_json json);

static const sgi_question_task_events asker_events = {
    .has_output = sgi_question_requests_send_soon, .ended = asker_ended};

static sgi_question_task *make_asker(sgi_op *op, sgi_op_question *input,
                                     const sgi_question_target *where)
{
    sgi_buf params;
    sgi_buf_init(&params, sgi_engine_mem(op->engine));
    sgi_jw w = sgi_jw_to(&params);
    sgi_jw_open(&w, '{');
    sgi_question_write_params(&w, op, input);
    sgi_question_write_task(&w, op, where);
    sgi_jw_close(&w, '}');
    sgi_question_task *question_task =
        params.failed ? NULL
                      : sgi_question_task_new(op->engine, op, input, sgi_buf_str(&params),
                                              &asker_events);
    sgi_buf_free(&params);
    return question_task;
}

static void send_question(const sgi_question_request *question)
{
    char room[SGI_QUESTION_JSON];
    sgi_sending sending;
    const sgi_op_question *input = question->input;
    sgi_send_begin_request_with_id(&sending, question->conn,
                                   sgi_question_id_write_json(&question->id, 0, room),
                                   sgi_str_of(input->method));
    sgi_question_write_params(&sending.w, question->op, input);
    /* when out of memory, the conversation closes, and its end also ends this request */
    sgi_send_end(&sending);
}

/* Connects the question task with a new stream. Over HTTP the client's messages have no
 * order, so the client must send one response per request, and further requests fetch the
 * rest of the answer. */
static void join_asker(const sgi_question_request *question,
                       const sgi_question_target *where)
{
    sgi_question_task *question_task = question->input->question_task;
    uint8_t modes = where->modes;
    if (question->questions->session)
        modes = (uint8_t)(modes & ~(unsigned)SGI_MODE_STREAMING);
    sgi_question_task_connect(question_task, &question->id, modes);
    sgi_question_task_send(question_task, question->conn);
}

/* Decides whether the question is asked as a task. A question that was already asked as a
 * task stays a task if the client accepts tasks. Returns false when out of memory. */
static bool choose_form(sgi_op *op, sgi_op_question *input,
                        const sgi_question_target *where)
{
    bool as_task = sgi_question_is_sent_as_task(op, input, where);
    if (as_task && !input->question_task)
        input->question_task = make_asker(op, input, where);
    if (!as_task && input->question_task) {
        sgi_question_task_free(input->question_task);
        input->question_task = NULL;
    }
    return !as_task || input->question_task;
}

static bool make_id(const sgi_op *op, const sgi_op_question *input,
                    sgi_question_id_text *id)
{
    bool lasts = op->task_id && strlen(op->task_id) == SGI_RANDOM_TEXT;
    const char *name = lasts ? op->task_id : sgi_op_server(op)->name;
    return sgi_question_id_make(id, op->engine, sgi_str_of(name),
                                lasts ? input->asked : 0);
}

/* Removes the request from its session. late_answer.c handles an answer that arrives in
 * this session later. */
static void leave(sgi_question_request *question)
{
    sgi_question_requests *questions = question->questions;
    if (question->input->question_task)
        sgi_question_task_disconnect(question->input->question_task);
    forget(question);
    let_next_go(questions);
}

/* Sends the question. If too many questions of the session are unanswered, the question
 * waits instead. Returns false when out of memory. */
static bool put_out(sgi_op *op, sgi_op_question *input, const sgi_question_target *where)
{
    sgi_question_requests *questions = where->questions;
    if (input->question_request)
        leave(input->question_request);
    if (!choose_form(op, input, where))
        return false;
    sgi_question_request *question =
        sgi_zalloc(sgi_engine_mem(op->engine), sizeof *question);
    if (!question)
        return false;
    *question = (sgi_question_request){.questions = questions,
                                       .op = op,
                                       .input = input,
                                       .cancels = where->caps & SGI_CAP_TASK_CANCEL};
    if (!make_id(op, input, &question->id)) {
        sgi_free(sgi_engine_mem(op->engine), question, sizeof *question);
        return false;
    }
    sgi_op_ref(op);
    input->question_request = question;
    if (questions->out_count >= OUT_MAX) {
        TAILQ_INSERT_TAIL(&questions->waiting, question, link);
        return true;
    }
    question->conn = where->conn;
    question->event = where->conn->replay ? where->conn->replay->next : 0;
    sgi_conn_ref(question->conn);
    sgi_map_put(&sgi_op_server(op)->questions, &question->by_id,
                sgi_str_of(question->id.text));
    TAILQ_INSERT_TAIL(&questions->out, question, link);
    questions->out_count++;
    if (input->question_task)
        join_asker(question, where);
    else
        send_question(question);
    return true;
}

static void say_more(sgi_op *op)
{
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (has_output(input))
            sgi_question_task_send(input->question_task, way_of(input->question_request));
}

void sgi_question_requests_send(sgi_op *op)
{
    sgi_op_question *input;
    sgi_question_target where;
    bool ok = true;
    if (!sgi_question_requests_are_due(op))
        return;
    sgi_op_ref(op);
    if (sgi_op_is_lasting_call(op)) {
        ask_again(op);
        sgi_op_unref(op);
        return;
    }
    say_more(op);
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (ok && can_be_sent(op, input, &where))
            ok = put_out(op, input, &where);
    if (!ok)
        sgi_op_end_internal_error(op,
                                  "Out of memory: the server cannot ask its question");
    sgi_op_unref(op);
}

void sgi_question_requests_send_soon(sgi_op *op)
{
    if (!sgi_question_requests_are_due(op))
        return;
    if (op->served->call)
        sgi_call_queue_events(op->served->call);
    else
        sgi_question_requests_send(op);
}

void sgi_question_requests_send_followed(sgi_op *op)
{
    sgi_op_question *input;
    if (TAILQ_EMPTY(&op->head.inputs))
        return;
    sgi_op_ref(op);
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (input->question_request && input->answered)
            sgi_question_withdraw_sent(input);
    sgi_question_requests_send(op);
    sgi_round_send_followed(op);
    sgi_op_unref(op);
}

void sgi_question_requests_send_all_soon(const sgi_wire_session *session)
{
    const sgi_task_creator *creator;
    const sgi_peer *peer;
    const sgi_reply *reply;
    sgi_client_note_reading(session->handshake.client);
    LIST_FOREACH(creator, &session->creators, by_session)
        sgi_question_requests_send_soon(creator->op);
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        LIST_FOREACH(reply, &peer->replies, by_peer) {
            sgi_op *op = sgi_reply_awaited_op(reply);
            if (op)
                sgi_question_requests_send_soon(op);
        }
}

/* ---- receiving an answer ---- */

/* Returns the sent request that has this id, or NULL when there is no such request. */
static sgi_question_request *find(const segue_server *server,
                                  const sgi_question_id_parts *parts, sgi_json id)
{
    sgi_map_node *node = sgi_map_find(&server->questions, parts->whole);
    sgi_question_request *question =
        node ? SGI_OWNER(node, sgi_question_request, by_id) : NULL;
    if (!question)
        return NULL;
    const sgi_question_task *question_task = question->input->question_task;
    bool is_one =
        question_task ? sgi_question_task_awaits(question_task, id) : !parts->is_numbered;
    return is_one ? question : NULL;
}

/* Stores the result that answers a question, in the form that the handler expects. */
static segue_status take_result(sgi_op *op, sgi_str key, sgi_json result)
{
    sgi_buf answer;
    sgi_buf_init(&answer, sgi_engine_mem(op->engine));
    sgi_json value = sgi_question_strip_task_members(result, &answer);
    segue_status status =
        answer.failed ? SEGUE_E_NOMEM : sgi_task_take_answer(op, key, value);
    sgi_buf_free(&answer);
    return status;
}

/* Continues the operation after one of its questions was answered. status: the outcome of
 * storing the answer. The caller holds a reference to the operation. */
static void settle(sgi_op *op, segue_status status)
{
    if (sgi_op_runs_elsewhere(op) && sgi_task_is_put_off(op, status))
        /* the answer could not be accepted, so the question is sent again */
        sgi_question_requests_send_soon(op);
    /* there is no memory for the answer, and the client cannot be asked to repeat the
     * answer, so the operation ends */
    else if (status == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(
            op, "Out of memory: the server cannot keep the answer to a question");
    sgi_round_on_answer_without_state(op);
    if (op->served->call)
        /* sends the question again if the answer did not fit the question */
        sgi_call_queue_events(op->served->call);
}

/* True when the result's _meta names this task as the related task, or names no task
 * (2025-11-25 basic/utilities/tasks, "Associating Task-Related Messages"). */
static bool is_about(const sgi_op *op, sgi_json result)
{
    sgi_json related = sgi_json_get(sgi_json_get(result, "_meta"), SGI_RELATED_TASK);
    sgi_json id = sgi_json_get(related, "taskId");
    return !id.n ||
           (op->served->is_task && sgi_json_string_is(id, sgi_str_of(op->task_id)));
}

static segue_status take(sgi_op *op, const sgi_op_question *input, bool is_error,
                         sgi_json answer)
{
    const sgi_str key = sgi_str_of(input->key);
    return is_error ? sgi_task_take_error_answer(op, key, answer)
                    : take_result(op, key, answer);
}

sgi_answered sgi_question_take_answer(sgi_op *op, sgi_op_question *input, bool is_error,
                                      sgi_json answer)
{
    if (!is_error && !is_about(op, answer))
        return SGI_ANSWERED_NOTHING;
    input->awaited = false;
    /* if the question was also sent in another session, the client of that session need
     * not answer */
    sgi_question_withdraw_sent(input);
    segue_status status = take(op, input, is_error, answer);
    settle(op, status);
    bool is_put_off = sgi_op_runs_elsewhere(op) && sgi_task_is_put_off(op, status);
    return is_put_off ? SGI_ANSWERED_LATER : SGI_ANSWERED_ONE;
}

static sgi_answered answer_ask(sgi_question_request *question, bool is_error,
                               sgi_json answer)
{
    sgi_question_requests *questions = question->questions;
    sgi_op *op = question->op;
    const sgi_op_question *input = question->input;
    if (!is_error && !is_about(op, answer))
        return SGI_ANSWERED_NOTHING;
    sgi_op_ref(op);
    forget(question);
    let_next_go(questions);
    settle(op, take(op, input, is_error, answer));
    sgi_op_unref(op);
    return SGI_ANSWERED_ONE;
}

static sgi_answered hear(sgi_question_request *question, const sgi_message *msg)
{
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    if (!question->input->question_task)
        return answer_ask(question, is_error, is_error ? msg->error : msg->result);
    sgi_question_task_take_message(question->input->question_task, msg);
    return SGI_ANSWERED_ONE;
}

/* Handles the answer to a question of a lasting call (its client can leave and come
 * back). The question has the same id in every session. If another server runs the call,
 * the call is looked up in the store. Over HTTP the client may have got the question from
 * another server, so its POST waits for the store. */
static sgi_answered answer_lasting(sgi_peer *peer, const sgi_question_id_parts *parts,
                                   bool is_error, sgi_json answer)
{
    sgi_map_node *node = sgi_map_find(&peer->server->cluster.by_task, parts->operation);
    sgi_op *op = sgi_op_by_task(node);
    if (!op || peer->is_post_of_answer) {
        SGI_RARE(answer_elsewhere);
        return sgi_take_late_answer(peer, parts, is_error, answer);
    }
    if (!op->served->lasting || op->served->who != peer->who || parts->is_numbered)
        return SGI_ANSWERED_NOTHING;
    sgi_op_question *input = sgi_op_find_question_at(op, parts->position);
    if (!input)
        return sgi_take_late_answer(peer, parts, is_error, answer);
    input->awaited = false;
    sgi_op_ref(op);
    settle(op, take(op, input, is_error, answer));
    sgi_op_unref(op);
    return SGI_ANSWERED_ONE;
}

sgi_answered sgi_question_requests_take_answer(sgi_peer *peer, const sgi_message *msg)
{
    sgi_question_id_parts parts;
    bool is_error = msg->kind == SGI_MESSAGE_ERROR;
    sgi_json answer = is_error ? msg->error : msg->result;
    if (!sgi_question_id_parse(msg->id, &parts))
        return SGI_ANSWERED_NOTHING;
    if (parts.is_lasting)
        return answer_lasting(peer, &parts, is_error, answer);
    sgi_question_request *question = find(peer->server, &parts, msg->id);
    if (question && question->questions == peer->questions &&
        question->op->served->who == peer->who)
        return hear(question, msg);
    return sgi_take_late_answer(peer, &parts, is_error, answer);
}

bool sgi_question_requests_take_forwarded(segue_server *server, sgi_str session,
                                          const uint8_t *who, const sgi_message *msg)
{
    sgi_question_id_parts parts;
    bool is_answer = msg->kind == SGI_MESSAGE_RESULT || msg->kind == SGI_MESSAGE_ERROR;
    if (!is_answer || !sgi_question_id_parse(msg->id, &parts))
        return false;
    sgi_question_request *question = find(server, &parts, msg->id);
    const sgi_wire_session *asked = question ? question->questions->session : NULL;
    return asked && sgi_str_eq(sgi_str_of(asked->id), session) &&
           !memcmp(question->op->served->who->digest, who, SGI_DIGEST_SIZE) &&
           hear(question, msg) == SGI_ANSWERED_ONE;
}

/* Handles a malformed answer as an error, because the client sends no second answer with
 * the same id (R-0-2). */
bool sgi_question_requests_take_malformed(sgi_peer *peer, const sgi_message *msg)
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
           sgi_question_requests_take_answer(peer, &answer) == SGI_ANSWERED_ONE;
}

/* ---- questions that are tasks ---- */

/* Frees the question task of a question, and removes the question's request from
 * server->questions. */
static void drop_asker(sgi_op_question *input)
{
    sgi_question_request *question = input->question_request;
    sgi_question_requests *questions = question ? question->questions : NULL;
    sgi_question_task *question_task = input->question_task;
    input->question_task = NULL;
    sgi_question_task_free(question_task);
    if (!question)
        return;
    forget(question);
    let_next_go(questions);
}

static void asker_ended(sgi_op *op, sgi_op_question *input, sgi_question_task_end how,
                        sgi_json json)
{
    sgi_str key = sgi_str_of(input->key);
    segue_status status = SEGUE_OK;
    sgi_op_ref(op);
    if (how == SGI_QUESTION_TASK_ANSWER)
        status = take_result(op, key, json);
    else if (how == SGI_QUESTION_TASK_ERROR)
        status = json.n ? sgi_task_take_error_answer(op, key, json) : SEGUE_E_NOMEM;
    if (input->question_task)
        drop_asker(input);
    settle(op, status);
    sgi_op_unref(op);
}

void sgi_question_requests_take_notification(sgi_peer *peer, const sgi_message *msg)
{
    sgi_question_request *question;
    TAILQ_FOREACH(question, &peer->questions->out, link)
        if (question->input->question_task)
            sgi_question_task_take_message(question->input->question_task, msg);
}

/* ---- the end of a question ---- */

void sgi_question_requests_abandon(sgi_question_requests *questions)
{
    sgi_question_request *question;
    while ((question = TAILQ_FIRST(&questions->out)) ||
           (question = TAILQ_FIRST(&questions->waiting))) {
        sgi_op *op = question->op;
        sgi_op_ref(op);
        if (question->input->question_task)
            sgi_question_task_disconnect(question->input->question_task);
        forget(question);
        sgi_question_requests_send_soon(op);
        sgi_op_unref(op);
    }
}

/* Asks the client to cancel the task that the client has made for the question. Returns
 * false when there is no such task. */
static bool cancel_task(const sgi_question_request *question)
{
    sgi_question_task *question_task = question->input->question_task;
    sgi_conn *conn = question->conn ? way_of(question) : NULL;
    if (!question_task || sgi_question_task_number(question_task))
        return false;
    if (conn && question->cancels)
        sgi_question_task_cancel(question_task);
    if (conn && sgi_question_task_has_output(question_task))
        sgi_question_task_send(question_task, conn);
    return true;
}

static void tell_withdrawn(const sgi_question_request *question)
{
    char room[SGI_QUESTION_JSON];
    sgi_sending sending;
    sgi_conn *conn = question->conn;
    const sgi_question_task *question_task = question->input->question_task;
    if (cancel_task(question))
        return;
    if (conn && !sgi_question_target_is_open(conn))
        conn = question->questions->session
                   ? sgi_question_target_session_stream(question->questions->session)
                   : NULL;
    if (!conn)
        return;
    sgi_send_begin_notification(&sending, conn, "notifications/cancelled");
    sgi_jw_member_raw(&sending.w, "requestId",
                      sgi_question_id_write_json(
                          &question->id,
                          question_task ? sgi_question_task_number(question_task) : 0,
                          room));
    if (question->op->served->is_task)
        sgi_task_write_related(&sending.w, question->op);
    sgi_send_end(&sending);
}

void sgi_question_withdraw_sent(sgi_op_question *input)
{
    sgi_question_request *question = input->question_request;
    if (question)
        tell_withdrawn(question);
    if (input->question_task) {
        drop_asker(input);
    } else if (question) {
        sgi_question_requests *questions = question->questions;
        forget(question);
        let_next_go(questions);
    }
}

void sgi_question_requests_withdraw(sgi_op *op)
{
    sgi_op_question *input;
    sgi_op_ref(op);
    TAILQ_FOREACH(input, &op->head.inputs, link)
        sgi_question_withdraw_sent(input);
    sgi_op_unref(op);
}
