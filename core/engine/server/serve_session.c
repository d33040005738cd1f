#include "engine/server/serve_session.h"

#include "engine/conversation/replay.h"
#include "engine/server/grant.h"
#include "engine/server/session_name.h"

const sgi_http_serve_verdict sgi_serve_out_of_memory = {.status = 503,
                                                        .problem = "Out of memory"};
const sgi_http_serve_verdict sgi_serve_closing = {.status = 503, .ending = true};

static sgi_http_serve_verdict too_many_sessions(const sgi_http_request_head *head)
{
    return (sgi_http_serve_verdict){
        .status = 503,
        .problem = "Too many sessions",
        .limit = {SGI_LIMIT_MAX_SESSIONS, head->max_sessions}};
}

static bool is_known_version(sgi_str version)
{
    return !version.n || sgi_version_parse(version) != SGI_VERSION_UNKNOWN;
}

/* Continues a session that began on another server, if the session id is a valid name of
 * such a session. On failure, returns NULL and sets *verdict. */
static sgi_wire_session *adopt_session(segue_server *server, sgi_principal *who,
                                       const sgi_http_request_head *head,
                                       sgi_http_serve_verdict *verdict)
{
    sgi_wire_session *session = NULL;
    segue_status status = sgi_wire_session_new_from_name(
        server, who, head->session, head->max_sessions, head->session_idle_ms, &session);
    if (status == SEGUE_E_LIMIT)
        *verdict = too_many_sessions(head);
    else if (status == SEGUE_E_NOMEM)
        *verdict = sgi_serve_out_of_memory;
    else if (status != SEGUE_OK)
        *verdict =
            (sgi_http_serve_verdict){.status = 404,
                                     .problem = "Unknown session: Mcp-Session-Id is not "
                                                "known here, or its session has ended"};
    return session;
}

sgi_wire_session *sgi_serve_open_session(segue_server *server, sgi_principal *who,
                                         const sgi_http_request_head *head,
                                         sgi_http_serve_verdict *verdict)
{
    sgi_wire_session *session = NULL;
    if (head->ending) {
        *verdict = sgi_serve_closing;
        return NULL;
    }
    segue_status status = sgi_wire_session_new(server, who, head->max_sessions,
                                               head->session_idle_ms, &session);
    if (status == SEGUE_E_LIMIT)
        *verdict = too_many_sessions(head);
    else if (status != SEGUE_OK)
        *verdict = sgi_serve_out_of_memory;
    return session;
}

sgi_wire_session *sgi_serve_find_session(segue_server *server, sgi_principal *who,
                                         const sgi_http_request_head *head,
                                         sgi_http_serve_verdict *verdict)
{
    sgi_wire_session *session = NULL;
    if (!head->session.n)
        *verdict = (sgi_http_serve_verdict){
            .status = 400,
            .problem = "Mcp-Session-Id is missing: send it after initialize, or send "
                       "MCP-Protocol-Version: 2026-07-28. Only lists, reads and plain "
                       "calls need no session"};
    else if (!is_known_version(head->version))
        *verdict = (sgi_http_serve_verdict){
            .status = 400,
            .problem =
                "MCP-Protocol-Version names a version that this server does not know"};
    else if (!(session = sgi_wire_session_find(server, who, head->session)))
        session = adopt_session(server, who, head, verdict);
    return session;
}

sgi_peer *sgi_serve_begin_exchange(sgi_wire_session *session,
                                   const sgi_http_request_head *head, void *transport,
                                   sgi_http_serve_verdict *verdict)
{
    sgi_peer *peer =
        sgi_wire_session_new_exchange(session, (size_t)head->max_replay, transport);
    if (!peer) {
        *verdict = sgi_serve_out_of_memory;
        return NULL;
    }
    peer->stranger = head->stranger;
    peer->ending = head->ending;
    peer->max_streams = head->max_streams;
    sgi_peer_set_grant(peer, head->grant);
    peer->conn->no_events = !head->takes_events;
    if (!sgi_replay_parse_id_position(head->last_event, peer->after_tag,
                                      &peer->after_seq))
        peer->after_tag[0] = 0;
    *verdict = (sgi_http_serve_verdict){.conn = peer->conn};
    return peer;
}
