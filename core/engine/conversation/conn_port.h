/* The functions of a conversation that a transport uses. The transport hands over
 * received bytes, takes bytes to send, and reports the end. The caller of every function
 * holds the runtime's lock. */
#ifndef SGI_CONN_PORT_H
#define SGI_CONN_PORT_H

#include "engine/port.h"

/* Starts the conversation. Called when the transport is connected, also after a reopen. A
 * client then begins its handshake. */
void sgi_conn_start(sgi_conn *conn);

/* Notes that the conversation uses the standard input and output of this process, so that
 * the peer has no other connection to this process. Called before sgi_conn_start. */
void sgi_conn_set_uses_stdio(sgi_conn *conn);

/* Hands over bytes that were received from the peer, in order. */
void sgi_conn_add_input(sgi_conn *conn, const char *bytes, size_t len);

/* Hands over one whole message. Called by a transport that does the framing itself. */
void sgi_conn_add_message(sgi_conn *conn, sgi_str text);

/* Returns false when the conversation accepts no more input now. The transport must then
 * stop reading until host.input is called. */
bool sgi_conn_wants_input(sgi_conn *conn);

/* Discards the messages that wait for the transport. Called when the peer can receive no
 * more messages, while its last messages are still being read. */
void sgi_conn_drop_output(sgi_conn *conn);

/* Moves all output into `into`, which must be empty. Memory that `into` owns is used
 * again for later output. `into` stays empty when there is no output; host.output then
 * reports new output. */
void sgi_conn_take_output(sgi_conn *conn, sgi_buf *into);

/* Reports that the connection has ended. After this call only sgi_conn_start (after a
 * reopen) and sgi_conn_detach may be called. */
void sgi_conn_on_lost(sgi_conn *conn, const char *why);

/* Reports that the transport will not carry this conversation again. Calls
 * sgi_conn_on_lost if that was not done before. After this call the transport must not
 * use the conversation. */
void sgi_conn_detach(sgi_conn *conn);

/* Returns the pointer that the transport gave when the conversation was made. For an HTTP
 * exchange, returns the pointer of the connection that carries the exchange now. Returns
 * NULL when no transport carries the conversation. */
void *sgi_conn_transport(const sgi_conn *conn);

/* True when the transport must close the connection. */
bool sgi_conn_is_closing(const sgi_conn *conn);

/* Add or drop a reference. Code holds a reference when it can use a conversation after
 * the conversation has ended or has moved to another transport. */
void sgi_conn_ref(sgi_conn *conn);
void sgi_conn_unref(sgi_conn *conn);

/* ---- functions for a client over HTTP ---- */

/* Makes each message of a session a separate HTTP exchange. The conversation of the
 * session itself then has no output; host.output reports that sgi_exchange_next has a
 * message. Called before sgi_conn_start. endpoint: a number that identifies the endpoint
 * and is not 0; the era memory stores the server's era under this number. name: the URL
 * of the endpoint without secrets; must stay valid as long as the transport. */
void sgi_conn_use_http_exchanges(sgi_conn *conn, uint64_t endpoint, const char *name);
/* Notes that the credentials have changed. Later requests may belong to another user, so
 * the cached results of the earlier user are not used any more. */
void sgi_conn_on_credentials_changed(sgi_conn *conn);

#endif
