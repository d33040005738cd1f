/* The functions that serve a server's conversations. They are passed to the server when
 * it is made. */
#ifndef SGI_SERVING_H
#define SGI_SERVING_H

#include "engine/server/peer.h"

struct sgi_serving_ops {
    /* the role of each conversation, whose `self` is the sgi_peer */
    const sgi_role *role;
    /* Asks the application for the principal of a peer. Called from the ready queue. */
    int32_t (*identify)(sgi_ready *ready, int32_t budget);
    /* Delivers the events of a call. Called from the ready queue. */
    int32_t (*run_call)(sgi_ready *ready, int32_t budget);
    /* Fills the source `updates` of a peer. */
    bool (*fill_updates)(sgi_source *source, size_t room);
};

/* The functions that serve MCP, in all revisions. */
extern const sgi_serving_ops sgi_serving_mcp;

/* Handles any message of the client. */
void sgi_peer_message(sgi_peer *peer, const sgi_message *msg);
/* Handles a response of the client. */
sgi_answered sgi_peer_answer(sgi_peer *peer, const sgi_message *msg);
/* Fills the parts of a request from its message. Returns false when the request gets no
 * answer. */
bool sgi_inbound_read(sgi_inbound *in, sgi_peer *peer, const sgi_message *msg);
void sgi_inbound_handle(sgi_inbound *in, const sgi_message *msg);
/* True when the request is of the modern era: its _meta names a modern version. shaken:
 * the request belongs to a session with a handshake, or is its initialize. For such a
 * request a handshake version in _meta is ignored, and the version of the session counts
 * (2026-07-28 basic/versioning). */
bool sgi_inbound_is_stateless(const sgi_inbound *in, sgi_json method, bool shaken);
/* Ends a request that the client has cancelled. */
void sgi_peer_cancel(sgi_reply *reply);

#endif
