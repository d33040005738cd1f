/* Sends the messages of a session that are not requests, and lets a session read input
 * again. Over HTTP each message has an exchange of its own. */
#include "engine/client/exchange_start.h"
#include "engine/client/dialects.h"
#include "wire/json_copy.h"

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

segue_status sgi_session_notify(segue_session *session, const char *method,
                                const char *params, size_t len)
{
    sgi_json value = {0};
    sgi_sending sending;
    if (params) {
        segue_status status =
            sgi_engine_check_json(session->engine, params, len, &value, NULL);
        if (status != SEGUE_OK)
            return status;
    }
    if (value.n && sgi_json_kind_of(value) != SGI_JSON_OBJECT)
        return sgi_refuse(session->engine, SEGUE_E_INVALID,
                          "the params of the notification are not a JSON object");
    if (sgi_session_is_closed(session))
        return SEGUE_E_CLOSED;
    if (!sgi_session_is_open(session))
        return sgi_refuse(session->engine, SEGUE_E_STATE,
                          "the session is not open, or its connection is lost");
    sgi_conn *conn = sgi_session_begin_message(session);
    if (!conn)
        return SEGUE_E_NOMEM;
    sgi_send_begin_notification(&sending, conn, method);
    if (value.n)
        sgi_jw_copy_members(&sending.w, value, SGI_JSON_NAMES(NULL));
    bool sent = sgi_send_end(&sending);
    return sgi_session_send_message(session, conn) && sent ? SEGUE_OK : SEGUE_E_NOMEM;
}
