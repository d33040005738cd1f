/* The functions that serve the conversations of a server. The server gets this table when
 * it is made. */
#ifndef SGI_SERVING_H
#define SGI_SERVING_H

#include "engine/server/inbound.h"
#include "engine/server/peer.h"

struct sgi_server_ops {
    /* the role of each conversation; the role's `self` is the sgi_peer */
    const sgi_conn_role *role;
    /* Asks the application for the principal of a peer. The ready queue calls this
     * function. */
    int32_t (*identify)(sgi_ready_object *ready, int32_t budget);
    /* Delivers the events of a call. The ready queue calls this function. */
    int32_t (*run_call)(sgi_ready_object *ready, int32_t budget);
    /* Writes messages of the source `updates` of a peer. */
    bool (*fill_updates)(sgi_output_source *source, size_t room);
};

/* The functions that serve MCP, in all protocol versions. */
extern const sgi_server_ops sgi_serving_mcp;

/* Handles one message of the client, of any kind. Returns false when the server has no
 * room for a notification now, so that the client has to send it again. */
bool sgi_peer_take_message(sgi_peer *peer, const sgi_message *msg);
/* Does what sgi_peer_take_message does, where the client cannot be asked to send a
 * message again: what had no room is logged. */
void sgi_peer_hear(sgi_peer *peer, const sgi_message *msg);
/* Handles a response of the client to a request of the server. */
sgi_answered sgi_peer_take_answer(sgi_peer *peer, const sgi_message *msg);
void sgi_inbound_handle(sgi_inbound *in, const sgi_message *msg);
/* Ends a request that the client has cancelled. */
void sgi_peer_end_cancelled_request(sgi_reply *reply);

#endif
