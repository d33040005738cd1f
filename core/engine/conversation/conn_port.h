/* A conversation as a transport sees it: the transport gives it bytes, takes bytes from
 * it and reports the end. Every function here is called with the runtime's lock held. */
#ifndef SGI_CONN_PORT_H
#define SGI_CONN_PORT_H

#include "engine/port.h"

/* Starts the conversation when the transport is connected, and again after each reopen. A
 * client begins its handshake. */
void sgi_conn_start(sgi_conn *conn);

/* Says that the conversation runs over this process's own standard input and output, so
 * the peer has no other connection to this process. Called before sgi_conn_start. */
void sgi_conn_set_sole(sgi_conn *conn);

/* Receives bytes from the peer, in order. */
void sgi_conn_add_input(sgi_conn *conn, const char *bytes, size_t len);

/* Receives one whole message, from a transport that does the framing. */
void sgi_conn_message(sgi_conn *conn, sgi_str text);

/* Returns false when the conversation has more input than it can handle now. The
 * transport then stops reading until host.input is called. */
bool sgi_conn_wants_input(sgi_conn *conn);

/* Moves the output into `into`, which must be empty; the memory of `into` is reused.
 * Leaves `into` empty when there is no output. host.output is called later when there is
 * more output. */
void sgi_conn_output(sgi_conn *conn, sgi_buf *into);

/* Reports that the connection has ended. Afterwards only sgi_conn_start (after a reopen)
 * and sgi_conn_detach may be called. */
void sgi_conn_lost(sgi_conn *conn, const char *why);

/* Reports that the transport ends for good and forgets the conversation. Does what
 * sgi_conn_lost does, if that was not called. */
void sgi_conn_detach(sgi_conn *conn);

/* Returns the pointer that was given when the conversation was made. For an HTTP
 * exchange: the pointer of the transport that carries it now, or NULL. */
void *sgi_conn_transport(const sgi_conn *conn);

/* True when the conversation wants its transport to close the connection. */
bool sgi_conn_is_closing(const sgi_conn *conn);

/* Add or drop a reference. Code that may use a conversation after it has ended, or after
 * it moved to another transport, holds a reference. */
void sgi_conn_ref(sgi_conn *conn);
void sgi_conn_unref(sgi_conn *conn);

/* ---- functions for a client over HTTP ---- */

/* Makes each message of a session an HTTP exchange of its own. The session's conversation
 * then has no transport output: host.output means that sgi_exchange_next has a message.
 * Called before sgi_conn_start. endpoint: a number for the endpoint, not 0, under which
 * the era of its server is remembered. name: the URL of the endpoint without secret
 * parts; the text must live as long as the transport. */
void sgi_conn_set_exchanging(sgi_conn *conn, uint64_t endpoint, const char *name);
/* Notes that the credentials have changed, so that later messages may be sent for another
 * user. The cache then gives no answers of the earlier user. */
void sgi_conn_new_credentials(sgi_conn *conn);

#endif
