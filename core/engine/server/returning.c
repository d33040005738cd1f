/* Decides whether a server whose listener closes must still wait for clients to come
 * back. Such a client was disconnected, or was asked to connect again, while its call
 * runs here. The client can come back with a resume token, a task id, an idempotency key
 * or an event id. When the store ends with the process, the server also waits for clients
 * whose call has ended, because no other server has the outcome. In versions that begin
 * with `initialize`, no store has the answer to a plain call, so the server always waits
 * for the client of such a call. */
#include "engine/server/call.h"
#include "engine/server/wire_session.h"

/* True when the client of this call can come back. An operation has a call until the end
 * of the operation is stored. After that the client has the end, or finds the end in the
 * store. */
static bool can_come_back(const segue_call *call)
{
    const sgi_op *op = call->op;
    return op->served->call == call &&
           (sgi_op_is_known(op) || (op->served->reply && op->served->reply->peer &&
                                    op->served->reply->peer->session));
}

/* True when no client has received the end of the operation, and no other server can send
 * the end. */
static bool is_unheard(const sgi_op *op)
{
    return sgi_op_server(op)->forgets && op->head.final != SGI_FINAL_CANCELLED &&
           !op->end_received;
}

bool sgi_serve_client_may_return(const segue_server *server)
{
    const segue_call *call;
    const sgi_wire_session *session;
    const sgi_cluster_op_data *shared;
    if (server->stage >= SGI_SERVER_CLOSED)
        return false;
    LIST_FOREACH(call, &server->calls.running, link)
        if (can_come_back(call))
            return true;
    TAILQ_FOREACH(shared, &server->lingering.ops, link)
        if (is_unheard(shared->op))
            return true;
    TAILQ_FOREACH(session, &server->sessions.by_use, by_use)
        if (sgi_wire_session_has_unsent(session))
            return true;
    return false;
}
