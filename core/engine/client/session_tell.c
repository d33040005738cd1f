/* Sends the messages of a session that are not requests, and lets a session read input
 * again. Over HTTP each message has an exchange of its own. */
#include "engine/client/exchange_start.h"
#include "engine/client/dialects.h"

sgi_conn *sgi_session_begin_message(segue_session *session)
{
    return session->conn->exchanging ? sgi_exchange_new(session) : session->conn;
}

bool sgi_session_send_message(segue_session *session, sgi_conn *conn)
{
    (void)session;
    if (!conn->exchange)
        return true;
    if (conn->out.len)
        return sgi_exchange_send(conn, NULL);
    sgi_exchange_end(conn);
    return false;
}

void sgi_session_resume_input(segue_session *session, const segue_request *request)
{
    if (sgi_session_is_closed(session))
        return;
    if (!session->conn->exchanging) {
        sgi_conn_resume_input(session->conn);
        return;
    }
    if (request->calling)
        sgi_exchange_resume_input(request->calling->conn);
    const sgi_emitter *streaming = sgi_cli_streaming_exchange(request);
    /* of the exchanges about a task, only the one that streams the result waits for room
     * in the inbox */
    if (streaming)
        sgi_exchange_resume_input(streaming->conn);
}
