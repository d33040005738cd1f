/* A task's questions are sent on the conversation of the request that made the task, or
 * on the GET stream of that request's session. If both are impossible, a task's questions
 * are sent like the questions of a plain call: on a stream whose client waits for the end
 * of the operation or receives its segments. A client that has repeated the call with its
 * idempotency key, for example, has such a stream. */
#include "engine/server/question_target.h"

#include "engine/server/clients.h"
#include "engine/server/dialects.h"
#include "engine/server/task_creator.h"
#include "engine/server/wire_session.h"

bool sgi_question_target_is_open(const sgi_conn *conn)
{
    return conn->up && !conn->closing && !conn->answered && !conn->no_events &&
           conn->frames != SGI_FRAMES_BODY;
}

bool sgi_question_target_has_reader(const sgi_conn *conn)
{
    return sgi_question_target_is_open(conn) && conn->transport && !conn->parting;
}

sgi_conn *sgi_question_target_session_stream(const sgi_wire_session *session)
{
    const sgi_peer *peer = session->listening;
    return peer && sgi_question_target_has_reader(peer->conn) ? peer->conn : NULL;
}

/* Finds a target on the conversation of a request. now = true: a client must be reading
 * the conversation now. now = false: the conversation can also be a stream that no
 * transport carries now and that the client may resume. */
static bool find_in(const sgi_peer *peer, bool now, sgi_question_target *found)
{
    sgi_conn *conn = peer->conn;
    if (peer->is_exchange && !peer->session)
        return false; /* the wire session has ended, so no answer would arrive */
    if (!(now && peer->is_exchange ? sgi_question_target_has_reader(conn)
                                   : sgi_question_target_is_open(conn)))
        conn = peer->session ? sgi_question_target_session_stream(peer->session) : NULL;
    *found = (sgi_question_target){peer->questions, conn, peer->handshake->caps,
                                   peer->handshake->modes};
    return conn != NULL;
}

static bool find_by_origin(const sgi_task_creator *creator, sgi_question_target *found)
{
    if (!creator || !creator->told)
        return false;
    if (creator->peer && find_in(creator->peer, true, found))
        return true;
    sgi_wire_session *session = creator->session;
    if (!session)
        return false;
    *found = (sgi_question_target){&session->questions,
                                   sgi_question_target_session_stream(session),
                                   session->handshake.caps, session->handshake.modes};
    return found->conn != NULL;
}

static bool is_read_in(const sgi_reply *reply, const sgi_question_requests *questions)
{
    return reply->peer->questions == questions &&
           sgi_question_target_has_reader(reply->peer->conn);
}

bool sgi_question_target_is_awaited(const sgi_op *op,
                                    const sgi_question_requests *questions)
{
    const sgi_reply *reply = NULL;
    sgi_question_target where;
    if (op->served->asks)
        return sgi_client_question_target(op->served->asks, &where) &&
               where.questions == questions;
    while ((reply = sgi_srv_find_reading_reply(op, reply)))
        if (is_read_in(reply, questions))
            return true;
    while ((reply = sgi_op_is_task(op) ? sgi_srv_find_waiting_reply(op, reply)
                                       : sgi_call_find_stream_reply(op, reply)))
        if (is_read_in(reply, questions))
            return true;
    return false;
}

/* Finds a target on a request of the operation whose stream a client is reading now.
 * Several requests can wait for an operation with an idempotency key. */
static bool find_reading_call(const sgi_op *op, sgi_question_target *found)
{
    const sgi_reply *reply = NULL;
    while ((reply = sgi_call_find_stream_reply(op, reply)))
        if (sgi_question_target_has_reader(reply->peer->conn) &&
            find_in(reply->peer, true, found))
            return true;
    return false;
}

bool sgi_question_target_find(const sgi_op *op, sgi_question_target *found)
{
    const sgi_reply *reply = NULL;
    if (op->served->asks)
        return sgi_client_question_target(op->served->asks, found);
    if (sgi_op_is_task(op) ? find_by_origin(op->served->creator, found)
                           : find_reading_call(op, found))
        return true;
    while ((reply = sgi_op_is_task(op) ? sgi_srv_find_waiting_reply(op, reply)
                                       : sgi_call_find_stream_reply(op, reply)))
        if (find_in(reply->peer, sgi_op_is_task(op), found))
            return true;
    while (sgi_op_is_task(op) && (reply = sgi_srv_find_reading_reply(op, reply)))
        if (find_in(reply->peer, true, found))
            return true;
    return false;
}
