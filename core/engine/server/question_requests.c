/* When a stream for questions becomes available, the questions are not sent at once: the
 * call is queued, because the handler's callbacks must run first.
 *
 * A client that resumes a broken stream can ask for a question that was sent on the
 * stream, as for every other event. The id of the question stays the same.
 *
 * A question can be asked as a task of the client. Then a question task
 * (input/question_task.h) sends several messages for it and gets the client's answers to
 * these messages. All messages are sent on the conversation on which the question was
 * sent. The request stays in server->questions from the first of these messages to the
 * last. */
#include "engine/server/question_request.h"

#include "base/thresholds.h"
#include "engine/response_modes.h"
#include "engine/conversation/replay.h"
#include "engine/server/call.h"
#include "engine/server/clients.h"
#include "engine/server/lasting.h"
#include "engine/server/rounds.h"
#include "engine/server/task_creator.h"
#include "engine/server/task_form.h"
#include "engine/server/tool_call.h"
#include "engine/server/wire_session.h"

/* The maximum number of sent and unanswered requests in one session. */
#define OUT_MAX SGI_THRESHOLD(questions_out_max)

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

/* ---- sending ---- */

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
        goes = sgi_question_requests_are_due(op) &&
               sgi_question_can_be_sent(op, input, &where) &&
               where.questions == questions;
        sgi_question_requests_send_soon(op);
        sgi_op_unref(op);
    }
}

void sgi_question_request_remove(sgi_question_request *question)
{
    sgi_question_requests *questions = question->questions;
    forget(question);
    let_next_go(questions);
}

static void ask_again(sgi_op *op)
{
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_question_is_lost(op, input))
            op->served->lasting->form->ask(sgi_question_channel(op), input);
}

static sgi_question_task *make_task(sgi_op *op, sgi_op_question *input,
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
                                              &sgi_question_answer_events);
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
static void join_task(const sgi_question_request *question,
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
        input->question_task = make_task(op, input, where);
    if (!as_task && input->question_task) {
        sgi_question_task_free(input->question_task);
        input->question_task = NULL;
    }
    return !as_task || input->question_task;
}

static bool make_id(const sgi_op *op, const sgi_op_question *input,
                    sgi_question_id_text *id)
{
    bool lasts = op->task_id && strlen(op->task_id) == SGI_OPERATION_TEXT;
    const char *name = lasts ? op->task_id : sgi_op_server(op)->mailbox.name;
    return sgi_question_id_make(id, op->engine, sgi_str_of(name),
                                lasts ? input->asked : 0);
}

/* Removes the request from its session. late_answer.c handles an answer that arrives in
 * this session later. */
static void leave_session(sgi_question_request *question)
{
    if (question->input->question_task)
        sgi_question_task_disconnect(question->input->question_task);
    sgi_question_request_remove(question);
}

/* Sends the question. If too many questions of the session are unanswered, the question
 * waits instead. Returns false when out of memory. */
static bool put_out(sgi_op *op, sgi_op_question *input, const sgi_question_target *where)
{
    sgi_question_requests *questions = where->questions;
    if (input->question_request)
        leave_session(input->question_request);
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
        join_task(question, where);
    else
        send_question(question);
    return true;
}

static void say_more(sgi_op *op)
{
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_question_has_output(input))
            sgi_question_task_send(
                input->question_task,
                sgi_question_request_conversation(input->question_request));
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
        if (ok && sgi_question_can_be_sent(op, input, &where))
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
        LIST_FOREACH(reply, &peer->replies, by_peer)
            if (reply->waiter.op)
                sgi_question_requests_send_soon(reply->waiter.op);
}

void sgi_question_requests_send_again_soon(sgi_question_requests *questions)
{
    for (int32_t left = questions->out_count; left > 0 && questions->out_count; left--) {
        sgi_question_request *question = TAILQ_FIRST(&questions->out);
        sgi_op *op = question->op;
        TAILQ_REMOVE(&questions->out, question, link);
        TAILQ_INSERT_TAIL(&questions->out, question, link);
        sgi_op_ref(op);
        sgi_question_requests_send_soon(op);
        sgi_op_unref(op);
    }
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
    sgi_conn *conn = question->conn ? sgi_question_request_conversation(question) : NULL;
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
    if (sgi_op_is_task(question->op))
        sgi_task_write_related(&sending.w, question->op);
    sgi_send_end(&sending);
}

void sgi_question_end_task(sgi_op_question *input)
{
    sgi_question_request *question = input->question_request;
    sgi_question_task *question_task = input->question_task;
    input->question_task = NULL;
    sgi_question_task_free(question_task);
    if (question)
        sgi_question_request_remove(question);
}

void sgi_question_withdraw_sent(sgi_op_question *input)
{
    sgi_question_request *question = input->question_request;
    if (question) {
        tell_withdrawn(question);
        /* The question gives back its place among OUT_MAX, although it may be unsent. */
        if (question->conn)
            sgi_conn_count_output(question->conn);
    }
    if (input->question_task)
        sgi_question_end_task(input);
    else if (question)
        sgi_question_request_remove(question);
}

void sgi_question_requests_withdraw(sgi_op *op)
{
    sgi_op_question *input;
    sgi_op_ref(op);
    TAILQ_FOREACH(input, &op->head.inputs, link)
        sgi_question_withdraw_sent(input);
    sgi_op_unref(op);
}
