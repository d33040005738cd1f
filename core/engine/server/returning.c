/* Decides whether clients may still come back to a server whose listener closes. These
 * clients wait for a call that runs here; they were cut off, or were asked to connect
 * again. Such a client has a resume token, a task id, a key or an event id. When the
 * store ends with the process, the server also waits for clients whose call has ended,
 * because no other server has the outcome. No store has the answer to a call of the
 * handshake eras, so the server always waits for that client. */
#include "engine/server/call.h"
#include "engine/server/wire_session.h"

/* True when the client of this call can come back. An operation has a call until the end
 * of the operation is stored. After that the client has received the end, or can find it
 * in the store. */
static bool can_come_back(const segue_call *call)
{
    const sgi_op *op = call->op;
    return op->served->call == call &&
           (sgi_op_is_known(op) || (op->served->reply && op->served->reply->peer &&
                                    op->served->reply->peer->session));
}

/* True when no other server has the end of the operation and no client has received
 * it. */
static bool is_unheard(const sgi_op *op)
{
    return sgi_op_server(op)->forgets && op->head.final != SGI_FINAL_CANCELLED &&
           !op->end_received;
}

bool sgi_serve_client_may_return(const segue_server *server)
{
    const segue_call *call;
    const sgi_wire_session *session;
    const sgi_shared *shared;
    if (server->stage >= SGI_SERVER_CLOSED)
        return false;
    LIST_FOREACH(call, &server->calls, link)
        if (can_come_back(call))
            return true;
    TAILQ_FOREACH(shared, &server->lingering, link)
        if (is_unheard(shared->op))
            return true;
    TAILQ_FOREACH(session, &server->sessions.by_use, by_use)
        if (sgi_wire_session_has_unsent(session))
            return true;
    return false;
}
