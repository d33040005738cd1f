/* Who may come back to a server whose listener closes: a client that was cut off, or told
 * to come again, from a call that runs here. It has a resume token, a task id, a key or
 * an event of the stream. A server whose store ends with the process also waits for a
 * client whose call has already ended, because no other server has the answer. The answer
 * to a call of the handshake eras is in no store, so its client is always waited for. */
#include "engine/serving/call.h"
#include "engine/serving/wire_session.h"

/* op->call is set until the end of the operation is stored. After that the client is told
 * the end, or finds it in the store. */
static bool can_come_back(const segue_call *call)
{
    const sgi_op *op = call->op;
    return op->call == call &&
           (op->known || (op->reply && op->reply->peer && op->reply->peer->session));
}

/* It ended here alone, and nobody has read how. */
static bool is_unheard(const sgi_op *op)
{
    return op->server->forgets && op->final != SGI_FINAL_CANCELLED && !op->heard;
}

bool sgi_serve_may_return(const segue_server *server)
{
    const segue_call *call;
    const sgi_wire_session *session;
    const sgi_op *op;
    if (server->stage >= SGI_SERVER_CLOSED)
        return false;
    LIST_FOREACH(call, &server->calls, link)
        if (can_come_back(call))
            return true;
    TAILQ_FOREACH(op, &server->lingering, linger_link)
        if (is_unheard(op))
            return true;
    TAILQ_FOREACH(session, &server->sessions_by_use, by_use)
        if (sgi_wire_session_is_owed(session))
            return true;
    return false;
}
