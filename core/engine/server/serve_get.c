/* GET requests of the handshake eras. A GET opens the stream of a session, or resumes an
 * exchange after the event that Last-Event-ID names. */
#include "engine/conversation/replay.h"
#include "engine/server/serve_session.h"

/* The verdict for a GET that asks for a lost stream. Status 410 makes the client stop
 * trying. 404 would mean that the session is over, and 405 that the server has no
 * streams. */
static const sgi_http_serve_verdict gone = {
    .status = 410,
    .problem = "The stream that Last-Event-ID names has ended, and the server keeps none "
               "of its events"};
/* The verdict for a GET that asks for events that the server has dropped. Without this
 * verdict, the client would get an answer with a gap that the client cannot notice. */
static const sgi_http_serve_verdict partly_gone = {
    .status = 410,
    .problem =
        "The server no longer has all events after Last-Event-ID, because it keeps a "
        "limited number of bytes: send the request again, with its idempotency key if "
        "the request has one"};

/* Notes that the client misses the events after `after` and before `from`. A client can
 * miss events several times. */
static void note_missed(sgi_peer *peer, uint64_t after, uint64_t from)
{
    if (peer == peer->session->listening && from > after + 1)
        sgi_updates_repeat(peer);
    if (!peer->read_from || after < peer->missed_after)
        peer->missed_after = after;
    if (from > peer->read_from)
        peer->read_from = from;
}

/* Continues an exchange after the event that the client has received last. Returns false
 * when out of memory. */
static bool resume_stream(sgi_peer *peer, uint64_t event, void *transport)
{
    uint64_t first = peer->conn->replay->first;
    if (event + 1 < first)
        note_missed(peer, event, first);
    return sgi_wire_session_resume_exchange(peer, event, transport);
}

/* Returns the exchange for a GET: the exchange that the event id names, or the session's
 * GET stream. Returns NULL with a status in *verdict when the GET fails. Returns NULL
 * without a status when the caller must open a new GET stream. */
static sgi_peer *find_stream(const sgi_wire_session *session, sgi_str last_event,
                             uint64_t *event, sgi_http_serve_verdict *verdict)
{
    int64_t stream;
    sgi_peer *peer = NULL;
    bool is_ours = sgi_replay_parse_id(last_event, &stream, event);
    if (is_ours)
        peer = sgi_wire_session_find_exchange(session, stream, *event);
    if (peer && peer != session->listening &&
        sgi_replay_has_gap(peer->conn->replay, *event)) {
        *verdict = partly_gone;
        return NULL;
    }
    if (peer)
        return peer;
    if (is_ours && sgi_wire_session_stream_is_lost(session, stream)) {
        /* the GET fails, because the server can never send the answer of the lost
         * stream */
        *verdict = gone;
        return NULL;
    }
    /* an unknown event id is ignored (R-975-18), and the GET stream is resumed */
    peer = session->listening;
    if (peer && peer->conn->closing && !peer->conn->transport)
        peer = NULL; /* this GET stream has run out of memory and sends no more events */
    /* A client whose event id names the GET stream of another server has received no
     * event of this server's GET stream. */
    bool is_new = is_ours && session->is_named && stream & SGI_STREAM_OF_GET;
    *event = peer && !is_new ? peer->conn->replay->next - 1 : 0;
    if (peer && !peer->conn->transport)
        note_missed(peer, 0, *event + 1);
    if (peer && peer->conn->transport) {
        *verdict = (sgi_http_serve_verdict){
            .status = 409,
            .problem = "The session already has an open stream: a "
                       "session may have one stream at a time"};
        return NULL;
    }
    return peer;
}

/* Opens the GET stream of a session. Returns NULL when out of memory. */
static sgi_peer *open_stream(sgi_wire_session *session, const sgi_http_request_head *head,
                             void *transport)
{
    sgi_peer *peer =
        sgi_wire_session_new_exchange(session, (size_t)head->max_replay, transport);
    if (!peer)
        return NULL;
    session->listening = peer;
    if (session->is_named)
        peer->conn->replay->stream |= SGI_STREAM_OF_GET;
    session->listened = peer->conn->replay->stream;
    sgi_send_open_event_stream(peer->conn);
    sgi_updates_send_missed(peer);
    return peer;
}

void sgi_serve_get(segue_server *server, sgi_principal *who,
                   const sgi_http_request_head *head, void *transport,
                   sgi_http_serve_verdict *verdict)
{
    uint64_t event = 0;
    if (sgi_serve_is_closed(server)) {
        *verdict = sgi_serve_closing;
        return;
    }
    if (!head->session.n) {
        *verdict = (sgi_http_serve_verdict){
            .status = 405, .problem = "GET needs the Mcp-Session-Id of a session"};
        return;
    }
    sgi_wire_session *session = sgi_serve_find_session(server, who, head, verdict);
    if (!session)
        return;
    sgi_peer *peer = find_stream(session, head->last_event, &event, verdict);
    if (verdict->status)
        return;
    if (head->ending && (!peer || peer == session->listening)) {
        *verdict = sgi_serve_closing;
        return;
    }
    if (!(peer && peer->got) && who->use.streams >= head->max_streams) {
        *verdict =
            (sgi_http_serve_verdict){.status = 429,
                                     .problem = "Too many streams",
                                     .limit = {SGI_LIMIT_MAX_STREAMS, head->max_streams}};
        return;
    }
    if (!peer)
        peer = open_stream(session, head, transport);
    else if (!resume_stream(peer, event, transport))
        peer = NULL;
    *verdict =
        peer ? (sgi_http_serve_verdict){.conn = peer->conn} : sgi_serve_out_of_memory;
    if (!peer)
        return;
    sgi_wire_session_count_get_stream(peer);
    sgi_question_requests_send_all_soon(session);
}
