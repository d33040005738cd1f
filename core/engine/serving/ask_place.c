/* A task is asked where it was made: by the conversation of that request, or the stream
 * that its session listens on. Otherwise it is asked, like a plain call, on a stream that
 * waits for its end or receives its segments, for example that of a client that repeated
 * the call with its key. */
#include "engine/serving/ask_place.h"

#include "engine/dialect/tasks_2025.h"
#include "engine/serving/origin.h"
#include "engine/serving/wire_session.h"

bool sgi_place_is_open(const sgi_conn *conn)
{
    return conn->up && !conn->closing && !conn->answered && !conn->no_events &&
           conn->frames != SGI_FRAMES_BODY;
}

bool sgi_place_is_read(const sgi_conn *conn)
{
    return sgi_place_is_open(conn) && conn->transport && !conn->parting;
}

sgi_conn *sgi_place_listening(const sgi_wire_session *session)
{
    const sgi_peer *peer = session->listening;
    return peer && sgi_place_is_read(peer->conn) ? peer->conn : NULL;
}

/* The conversation of a request. With `now` a client must read the conversation at this
 * moment. Without it a parked stream, which the client may take up later, is good
 * enough. */
static bool find_in(const sgi_peer *peer, bool now, sgi_place *found)
{
    sgi_conn *conn = peer->conn;
    if (peer->is_exchange && !peer->session)
        return false; /* its session has ended: no answer could come */
    if (!(now && peer->is_exchange ? sgi_place_is_read(conn) : sgi_place_is_open(conn)))
        conn = peer->session ? sgi_place_listening(peer->session) : NULL;
    *found = (sgi_place){peer->asks, conn, peer->handshake->caps, peer->handshake->modes};
    return conn != NULL;
}

static bool find_by_origin(const sgi_origin *origin, sgi_place *found)
{
    if (!origin || !origin->told)
        return false;
    if (origin->peer && find_in(origin->peer, true, found))
        return true;
    sgi_wire_session *session = origin->session;
    if (!session)
        return false;
    *found = (sgi_place){&session->asks, sgi_place_listening(session),
                         session->handshake.caps, session->handshake.modes};
    return found->conn != NULL;
}

static bool is_read_in(const sgi_reply *reply, const sgi_asks *asks)
{
    return reply->peer->asks == asks && sgi_place_is_read(reply->peer->conn);
}

bool sgi_place_is_called(const sgi_op *op, const sgi_asks *asks)
{
    const sgi_reply *reply = NULL;
    while ((reply = sgi_push_reading(op, reply)))
        if (is_read_in(reply, asks))
            return true;
    while ((reply = op->is_task ? sgi_tasks_2025_waiting(op, reply)
                                : sgi_call_listening(op, reply)))
        if (is_read_in(reply, asks))
            return true;
    return false;
}

/* Of several calls of one key, one whose stream is read. */
static bool find_reading_call(const sgi_op *op, sgi_place *found)
{
    const sgi_reply *reply = NULL;
    while ((reply = sgi_call_listening(op, reply)))
        if (sgi_place_is_read(reply->peer->conn) && find_in(reply->peer, true, found))
            return true;
    return false;
}

bool sgi_place_find(const sgi_op *op, sgi_place *found)
{
    const sgi_reply *reply = NULL;
    if (op->is_task ? find_by_origin(op->origin, found) : find_reading_call(op, found))
        return true;
    while ((reply = op->is_task ? sgi_tasks_2025_waiting(op, reply)
                                : sgi_call_listening(op, reply)))
        if (find_in(reply->peer, op->is_task, found))
            return true;
    while (op->is_task && (reply = sgi_push_reading(op, reply)))
        if (find_in(reply->peer, true, found))
            return true;
    return false;
}
