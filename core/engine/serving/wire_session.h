/* A session of the handshake eras over HTTP (2025-03-26 to 2025-11-25 basic/transports,
 * session management): what initialize settled, the exchanges under way, and those that
 * are over but may be asked for again by Last-Event-ID. Over a byte stream the connection
 * is the session and none of this is needed.
 *
 * An exchange outlives its connection here: a call whose client was cut off runs on, and
 * what it sends is kept (replay.h) until a GET with Last-Event-ID takes it up. */
#ifndef SGI_WIRE_SESSION_H
#define SGI_WIRE_SESSION_H

#include "engine/serving/peer.h"

#define SGI_SESSION_ID_MAX 160
/* Streams of GET have this bit in their number, where a session may go to several
 * servers: at each of them such a stream can be begun anew. */
#define SGI_STREAM_OF_GET (INT64_C(1) << 49)

struct sgi_wire_session {
    segue_server *server; /* not counted: it ends its sessions */
    sgi_map_node node;
    char id[SGI_SESSION_ID_MAX];
    bool is_named; /* by a text that other servers know; see session_name.h */
    TAILQ_ENTRY(sgi_wire_session) by_use;
    TAILQ_ENTRY(sgi_wire_session) by_who;
    sgi_principal *who; /* counted */
    sgi_handshake handshake;
    sgi_map in_flight;                /* sgi_reply by id, of all exchanges */
    TAILQ_HEAD(, sgi_peer) exchanges; /* oldest first */
    sgi_peer *listening;              /* the stream of GET, or NULL */
    int64_t listened;                 /* number of the newest one; 0 = there was none */
    sgi_marks *marks;                 /* resources it subscribed to, or NULL; updates.c */
    LIST_HEAD(, sgi_origin) origins;  /* origin.c */
    sgi_asks asks;
    int64_t first_stream; /* numbers of its streams at this server: from here on */
    int64_t next_stream;
    int64_t idle_ms;
    int64_t used_ms; /* monotonic */
    sgi_timer expiry;
};

/* SEGUE_E_LIMIT when there are `most` already and none of them is idle. */
segue_status sgi_wire_session_new(segue_server *server, sgi_principal *who, int32_t most,
                                  int64_t idle_ms, sgi_wire_session **out);
/* NULL when there is none, or it is somebody else's. */
sgi_wire_session *sgi_wire_session_find(segue_server *server, const sgi_principal *who,
                                        sgi_str id);
/* Cancels what is under way and closes its streams. */
void sgi_wire_session_end(sgi_wire_session *session);
/* Nobody can come any more: all sessions end, and what a transport carries may still be
 * answered. */
void sgi_wire_sessions_end(segue_server *server);

/* A new exchange of the session, which keeps at most max_replay bytes of events for a
 * client that comes again (replay.h); NULL when out of memory. */
sgi_peer *sgi_wire_session_exchange(sgi_wire_session *session, size_t max_replay,
                                    void *transport);
/* The exchange that sent this event; NULL when there is none, or it is not kept any
 * more. */
sgi_peer *sgi_wire_session_stream(const sgi_wire_session *session, int64_t stream,
                                  uint64_t event);
/* Has this stream been, and is no more? Then what it had to say is lost. Not so the
 * stream of GET, which may go on as another. */
bool sgi_wire_session_is_lost(const sgi_wire_session *session, int64_t stream);
/* An exchange that nobody carries keeps more than before: all of them together keep only
 * so much. */
void sgi_wire_session_kept(sgi_peer *peer);
/* A transport takes up an exchange that was let go of, or takes it over: what came after
 * the event is sent again. False when out of memory: then nothing has changed. */
bool sgi_wire_session_take_up(sgi_peer *peer, uint64_t after, void *transport);
/* A GET carries it: until it is let go of it counts as a stream of its principal. */
void sgi_wire_session_got(sgi_peer *peer);
/* The stream of an exchange ends, for now: the client is told to come again so much
 * later, and what is sent meanwhile is kept for it. SEGUE_E_UNSUPPORTED, without effect,
 * when it could not. */
segue_status sgi_wire_session_hang_up(sgi_peer *peer, int64_t retry_ms);
/* Is there an answer that came while its client was away? */
bool sgi_wire_session_is_owed(const sgi_wire_session *session);
/* An exchange ends: its request is answered on another. */
void sgi_wire_session_drop(sgi_peer *peer);
/* The transport of an exchange is through with it, or was cut off. */
void sgi_wire_session_let_go(sgi_peer *peer);

#endif
