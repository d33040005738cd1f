/* The functions of a conversation that a transport uses. The transport hands over
 * received bytes, takes bytes to send, and reports the end. All functions are called with
 * the runtime's lock held. */
#ifndef SGI_CONN_PORT_H
#define SGI_CONN_PORT_H

#include "engine/port.h"

/* Starts the conversation when the transport is connected, and again after each reopen. A
 * client begins its handshake. */
void sgi_conn_start(sgi_conn *conn);

/* Notes that the conversation uses the standard input and output of this process. The
 * peer then has no other connection to this process. Called before sgi_conn_start. */
void sgi_conn_set_sole(sgi_conn *conn);

/* Receives bytes from the peer, in order. */
void sgi_conn_add_input(sgi_conn *conn, const char *bytes, size_t len);

/* Receives one whole message, from a transport that does the framing. */
void sgi_conn_message(sgi_conn *conn, sgi_str text);

/* Returns false when the conversation cannot take more input now. The transport stops
 * reading until host.input is called. */
bool sgi_conn_wants_input(sgi_conn *conn);

/* Moves all output into `into`, which must be empty but may own memory: that memory is
 * reused for later output. Leaves `into` empty when there is no output. host.output
 * reports when there is output again. */
void sgi_conn_output(sgi_conn *conn, sgi_buf *into);

/* Reports that the connection has ended. Afterwards only sgi_conn_start (after a reopen)
 * and sgi_conn_detach may be called. */
void sgi_conn_lost(sgi_conn *conn, const char *why);

/* Reports that the transport will not come back. Includes sgi_conn_lost, if that was not
 * called before. Afterwards the transport must not use the conversation. */
void sgi_conn_detach(sgi_conn *conn);

/* Returns the transport's own pointer: the one given when the conversation was made or,
 * for an HTTP exchange, that of the connection which carries the exchange now. NULL =
 * none. */
void *sgi_conn_transport(const sgi_conn *conn);

/* True when the conversation wants its transport to close the connection. */
bool sgi_conn_is_closing(const sgi_conn *conn);

/* Add or drop a reference. Code that may use a conversation after it has ended, or after
 * it moved to another transport, holds a reference. */
void sgi_conn_ref(sgi_conn *conn);
void sgi_conn_unref(sgi_conn *conn);

/* ---- functions for a client over HTTP ---- */

/* Turns each message of a session into an HTTP exchange. The session's conversation
 * itself has no output; host.output then reports that sgi_exchange_next has a message.
 * Called before sgi_conn_start. endpoint: a number other than 0 that identifies the
 * endpoint; the era of the endpoint's server is remembered under it. name: the URL of the
 * endpoint without secrets; must stay valid as long as the transport. */
void sgi_conn_set_exchanging(sgi_conn *conn, uint64_t endpoint, const char *name);
/* Notes that the credentials have changed. Later requests may belong to another user, so
 * cached results of the earlier user are not used. */
void sgi_conn_new_credentials(sgi_conn *conn);

#endif
