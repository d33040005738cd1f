/* Who may come back to a server whose listener closes: a client that was cut off, or told
 * to come again, from a call that runs here. It has a resume token, a task id, a key or
 * an event of the stream. Where what the server stores ends with its process, such a
 * client is also waited for when the call has ended meanwhile: no other server can answer
 * it. The answer to a call of the handshake eras is in no store at all. */
#include "engine/serving/call.h"
#include "engine/serving/wire_session.h"

/* The operation keeps its call until its end is stored, and is told or found from then
 * on. A call that is over and whose end is not stored yet still belongs to its client. */
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
