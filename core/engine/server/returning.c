/* Decides whether a server whose listener closes must still wait for clients to come
 * back. It waits for
 *   - a call that runs and whose client can come back with a resume token, a task id, an
 *     idempotency key or an event id, until the call has ended. A call that this server
 *     has taken over counts as soon as it has made something here. Before that the next
 *     server can begin it as well;
 *   - a client that reads the rest of a task, until the client has the end or has left;
 *   - a client that is away and does not have the end of its call, for the time after
 *     which it was asked to come back (the poll interval of a task, the retry time of a
 *     stream) and some more. The time counts from the end of the call, or from the last
 *     sign of the client if that was later. So a client that left long ago is not waited
 *     for.
 * Only this process has the end if the store ends with the process. In versions that
 * begin with `initialize`, no store has the answer to a plain call. Every other end is in
 * the store, where the next server finds it. */
#include "engine/log/reader.h"
#include "engine/server/away_client.h"
#include "engine/server/call.h"
#include "engine/server/wire_session.h"

/* True for a call that was taken over from another server and has made nothing here. Its
 * handler may not even run yet: in the SDKs it waits while many calls run. */
static bool is_unbegun(const segue_call *call)
{
    return call->earlier && call->op->head.next_log == call->earlier->log;
}

/* True when the client of this call can come back. An operation has a call until the end
 * of the operation is stored. After that the client has the end, or finds the end in the
 * store. */
static bool can_come_back(const segue_call *call)
{
    const sgi_op *op = call->op;
    return op->served->call == call && !is_unbegun(call) &&
           (sgi_op_is_known(op) || (op->served->reply && op->served->reply->peer &&
                                    op->served->reply->peer->session));
}

/* True when no client has received the end of the operation, and no other server can send
 * the end. */
static bool is_unheard(const sgi_op *op)
{
    return sgi_op_server(op)->forgets && op->head.final != SGI_FINAL_CANCELLED &&
           !op->heard.end;
}

/* True when a connected client reads the log of the operation. */
static bool is_read(const sgi_op *op)
{
    const sgi_reader *reader;
    TAILQ_FOREACH(reader, &op->readers, link)
        if (reader->tells && !sgi_reader_is_paused(reader))
            return true;
    return false;
}

static bool is_awaited(const sgi_op *op)
{
    int64_t poll_ms = sgi_op_is_task(op) ? op->served->poll_ms : 0;
    return is_unheard(op) &&
           (is_read(op) ||
            sgi_client_is_expected(sgi_op_server(op), op->heard.last_ms, poll_ms));
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
        if (is_awaited(shared->op))
            return true;
    TAILQ_FOREACH(session, &server->sessions.by_use, by_use)
        if (sgi_wire_session_expects_client(session))
            return true;
    return false;
}
