/* Decides which questions of an operation must be sent to a client now. Nothing here
 * sends or changes anything. */
#include "engine/cluster/forwarding.h"
#include "engine/conversation/replay.h"
#include "engine/server/call.h"
#include "engine/server/inputs.h"
#include "engine/server/lasting.h"
#include "engine/server/mailbox.h"
#include "engine/server/question_request.h"
#include "engine/server/rounds.h"
#include "engine/server/tool_call.h"
#include "engine/server/wire_session.h"

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

bool sgi_question_can_be_sent(const sgi_op *op, const sgi_op_question *input,
                              sgi_question_target *where)
{
    sgi_json params = {input->params, input->params_len};
    return is_due(op, input) && sgi_question_target_find(op, where) &&
           !(sgi_question_required_caps(input->method, params) & ~where->caps);
}

sgi_conn *sgi_question_request_conversation(const sgi_question_request *question)
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

bool sgi_question_has_output(const sgi_op_question *input)
{
    return input->question_request && input->question_request->conn &&
           input->question_task && sgi_question_task_has_output(input->question_task) &&
           sgi_question_request_conversation(input->question_request);
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

sgi_pieces *sgi_question_channel(const sgi_op *op)
{
    const sgi_reply *channel = op->served->lasting->channel;
    sgi_pieces *pieces = channel ? channel->pieces : NULL;
    return pieces && pieces->cursor.reader.op && sgi_conn_transport(pieces->conn) ? pieces
                                                                                  : NULL;
}

bool sgi_question_is_lost(const sgi_op *op, const sgi_op_question *input)
{
    const sgi_pieces *pieces = sgi_question_channel(op);
    return pieces && !input->awaited && pieces->cursor.reader.seq >= input->asked &&
           is_due(op, input);
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
            if (sgi_question_is_lost(op, input))
                return true;
        return false;
    }
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_question_has_output(input))
            return true;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_question_can_be_sent(op, input, &where))
            return true;
    return false;
}
