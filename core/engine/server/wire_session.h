/* A session over HTTP that began with `initialize` (2025-03-26 to 2025-11-25
 * basic/transports, session management). It has everything that initialize negotiated,
 * the running exchanges, and ended exchanges whose events the client can still request by
 * Last-Event-ID. Over a byte stream the connection is the session, and wire sessions are
 * not used.
 *
 * An exchange can outlive its connection. When the connection of a call is lost, the call
 * continues, and its events are stored (replay.h) until a GET with Last-Event-ID resumes
 * the exchange. */
#ifndef SGI_WIRE_SESSION_H
#define SGI_WIRE_SESSION_H

#include "base/thresholds.h"
#include "engine/server/peer.h"

#define SGI_SESSION_ID_MAX 160
/* The maximum number of sessions that are visited in one search for a session or an
 * exchange to drop. The search is limited because it runs within a request. */
#define SGI_SESSION_LOOKS_MAX SGI_THRESHOLD(settled_look_most)
/* A bit in the number of each GET stream of a session that other servers can continue.
 * The bit shows that the stream is a GET stream, which every server can open anew. */
#define SGI_STREAM_OF_GET (INT64_C(1) << 49)

struct sgi_wire_session {
    /* not a counted reference, because the server ends its sessions before it is freed */
    segue_server *server;
    sgi_map_node node;
    char id[SGI_SESSION_ID_MAX];
    /* the id of the session is a sealed text that other servers can open
     * (session_name.h) */
    bool is_named;
    TAILQ_ENTRY(sgi_wire_session) by_use;
    TAILQ_ENTRY(sgi_wire_session) by_who;
    sgi_principal *who; /* a counted reference */
    sgi_handshake handshake;
    /* the requests in flight, of all exchanges of this session */
    sgi_in_flight in_flight;
    /* the exchanges of the session; the oldest exchange is first */
    TAILQ_HEAD(, sgi_peer) exchanges;
    /* the exchange that carries the GET stream; NULL = the session has no GET stream */
    sgi_peer *listening;
    /* number of the newest GET stream; 0 = the session has had no GET stream */
    int64_t listened;
    /* the resources that the client has subscribed to; NULL = no resource (updates.c) */
    sgi_subscribed_uris *uris;
    /* the task creators of the tasks that were made in this session (task_creator.c) */
    LIST_HEAD(, sgi_task_creator) creators;
    sgi_question_requests questions;
    /* the lowest number of a stream that this server opened in the session */
    int64_t first_stream;
    int64_t next_stream;
    int64_t idle_ms;
    int64_t used_ms; /* monotonic time in ms at which the session was last used */
    sgi_timer expiry;
    /* fires when a stream on which questions were sent has had no reader for a while */
    sgi_timer ask_again;
};

/* Makes a session. most: the maximum number of sessions of the server. Returns
 * SEGUE_E_LIMIT when the server has this number of sessions and cannot end an idle
 * session for the new session. */
segue_status sgi_wire_session_new(segue_server *server, sgi_principal *who, int32_t most,
                                  int64_t idle_ms, sgi_wire_session **out);
/* Returns the session with this id. Returns NULL when there is no such session, or when
 * the session belongs to another principal. */
sgi_wire_session *sgi_wire_session_find(segue_server *server, const sgi_principal *who,
                                        sgi_str id);
/* Ends the session: cancels its requests and closes its streams. */
void sgi_wire_session_end(sgi_wire_session *session);
/* Ends all sessions, because no client can connect any more. An exchange that a transport
 * carries can still be answered. */
void sgi_wire_sessions_end(segue_server *server);

/* Makes a new exchange of the session. max_replay: maximum number of bytes of events that
 * the exchange stores for a client that resumes (replay.h). Returns NULL when out of
 * memory. */
sgi_peer *sgi_wire_session_new_exchange(sgi_wire_session *session, size_t max_replay,
                                        void *transport);
/* Returns the exchange that has sent this event. Returns NULL when no exchange has sent
 * the event, or when the exchange cannot be resumed any more. */
sgi_peer *sgi_wire_session_find_exchange(const sgi_wire_session *session, int64_t stream,
                                         uint64_t event);
/* True when a stream with this number existed and its events are lost. Always false for a
 * GET stream, because a new GET stream can replace it. */
bool sgi_wire_session_stream_is_lost(const sgi_wire_session *session, int64_t stream);
/* Makes this transport carry an exchange whose transport has gone (a parked exchange). A
 * transport that still carries the exchange is closed. The events after number `after`
 * are sent again. Returns false and changes nothing when out of memory. */
bool sgi_wire_session_resume_exchange(sgi_peer *peer, uint64_t after, void *transport);
/* Counts the exchange as a stream of its principal, because a GET carries the exchange.
 * The exchange is counted until the transport leaves. */
void sgi_wire_session_count_get_stream(sgi_peer *peer);
/* Ends the stream of an exchange. The client is asked to connect again after retry_ms;
 * until then later events are stored. Returns SEGUE_E_UNSUPPORTED and does nothing when
 * the client could not resume the exchange. */
segue_status sgi_wire_session_hang_up(sgi_peer *peer, int64_t retry_ms);
/* True while the client may come back for an answer of the session that it has not
 * received (returning.c). */
bool sgi_wire_session_expects_client(const sgi_wire_session *session);
/* Ends an exchange whose request was answered on another exchange. */
void sgi_wire_session_end_answered_exchange(sgi_peer *peer);
/* Separates an exchange from its transport. Called when the transport has sent everything
 * or has lost its connection. */
void sgi_wire_session_detach_transport(sgi_peer *peer);

#endif
