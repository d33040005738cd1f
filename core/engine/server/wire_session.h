/* A session of the handshake eras over HTTP (2025-03-26 to 2025-11-25 basic/transports,
 * session management). It has what initialize negotiated, the exchanges under way, and
 * ended exchanges whose events the client may still request by Last-Event-ID. Over a byte
 * stream the connection is the session, and wire sessions are not used.
 *
 * An exchange can outlive its connection. When the client of a call is cut off, the call
 * continues and its events are stored (replay.h), until a GET with Last-Event-ID resumes
 * the exchange. */
#ifndef SGI_WIRE_SESSION_H
#define SGI_WIRE_SESSION_H

#include "engine/server/peer.h"

#define SGI_SESSION_ID_MAX 160
/* This bit is set in the number of each GET stream of a session that other servers can
 * continue, because each server can open such a stream anew. */
#define SGI_STREAM_OF_GET (INT64_C(1) << 49)

struct sgi_wire_session {
    /* a pointer without a reference: the server ends its sessions before it is freed */
    segue_server *server;
    sgi_map_node node;
    char id[SGI_SESSION_ID_MAX];
    /* the id of the session is a text that other servers can open (session_name.h) */
    bool is_named;
    TAILQ_ENTRY(sgi_wire_session) by_use;
    TAILQ_ENTRY(sgi_wire_session) by_who;
    sgi_principal *who; /* a counted reference */
    sgi_handshake handshake;
    /* the requests in flight of all exchanges of this session */
    sgi_in_flight in_flight;
    TAILQ_HEAD(, sgi_peer) exchanges; /* the exchanges, the oldest first */
    sgi_peer *listening;              /* the exchange of the GET stream, or NULL */
    /* number of the newest GET stream; 0 = there was no such stream */
    int64_t listened;
    /* the resources that the client has subscribed to, or NULL (updates.c) */
    sgi_subscribed_uris *uris;
    /* the creators of tasks that this session has made (task_creator.c) */
    LIST_HEAD(, sgi_task_creator) creators;
    sgi_question_requests questions;
    /* the lowest number that this server gives to streams of the session */
    int64_t first_stream;
    int64_t next_stream;
    int64_t idle_ms;
    int64_t used_ms; /* monotonic time at which the session was used last */
    sgi_timer expiry;
};

/* Makes a session. most: the largest number of sessions of one principal. Returns
 * SEGUE_E_LIMIT when the principal has this number and none of them is idle. */
segue_status sgi_wire_session_new(segue_server *server, sgi_principal *who, int32_t most,
                                  int64_t idle_ms, sgi_wire_session **out);
/* Finds a session by its id. Returns NULL when there is none, or when it belongs to
 * another principal. */
sgi_wire_session *sgi_wire_session_find(segue_server *server, const sgi_principal *who,
                                        sgi_str id);
/* Ends the session: cancels its requests and closes its streams. */
void sgi_wire_session_end(sgi_wire_session *session);
/* Ends all sessions, because no client can connect any more. Exchanges with a transport
 * may still be answered first. */
void sgi_wire_sessions_end(segue_server *server);

/* Makes a new exchange of the session. max_replay: largest number of bytes of events that
 * it stores for a client that resumes (replay.h). Returns NULL when out of memory. */
sgi_peer *sgi_wire_session_exchange(sgi_wire_session *session, size_t max_replay,
                                    void *transport);
/* Returns the exchange that has sent this event; NULL when there is none, or when its
 * events are no longer stored. */
sgi_peer *sgi_wire_session_stream(const sgi_wire_session *session, int64_t stream,
                                  uint64_t event);
/* True when a stream with this number existed and its events are lost. False for a GET
 * stream, because a new GET stream can replace it. */
bool sgi_wire_session_is_lost(const sgi_wire_session *session, int64_t stream);
/* Drops stored events when the exchanges without a transport together store too many
 * bytes. Called when one of them, `peer`, has stored another event. */
void sgi_wire_session_drop_excess_events(sgi_peer *peer);
/* Makes a transport carry a parked exchange. If another transport carries the exchange,
 * it is replaced. The events after number `after` are sent again. Returns false, and
 * changes nothing, when out of memory. */
bool sgi_wire_session_resume_exchange(sgi_peer *peer, uint64_t after, void *transport);
/* Counts the exchange as a stream of its principal, because a GET carries it. The count
 * ends when the transport leaves. */
void sgi_wire_session_count_get_stream(sgi_peer *peer);
/* Ends the stream of an exchange. The client is asked to connect again after retry_ms,
 * and later events are stored for it. Returns SEGUE_E_UNSUPPORTED, and does nothing, when
 * the client could not resume. */
segue_status sgi_wire_session_hang_up(sgi_peer *peer, int64_t retry_ms);
/* True when the session has an answer that was made while no client was connected to its
 * exchange. */
bool sgi_wire_session_has_unsent(const sgi_wire_session *session);
/* Ends an exchange whose request is answered on another exchange. */
void sgi_wire_session_end_answered_exchange(sgi_peer *peer);
/* Separates an exchange from its transport, which has finished the exchange or was cut
 * off. */
void sgi_wire_session_detach_transport(sgi_peer *peer);

#endif
