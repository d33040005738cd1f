/* What a transport needs to know of the engine: a conversation that takes bytes, gives
 * bytes and hears of the end. Every function here is called with the runtime's lock
 * held. */
#ifndef SGI_EXCHANGE_H
#define SGI_EXCHANGE_H

#include "engine/engine.h"

/* The transport is connected: for a client the handshake begins. Also after each
 * reopen. */
void sgi_conn_start(sgi_conn *conn);

/* Bytes from the peer, in order. */
void sgi_conn_feed(sgi_conn *conn, const char *bytes, size_t len);

/* false: the engine is ahead of its reader; stop reading until host.input says
 * otherwise. */
bool sgi_conn_wants_input(const sgi_conn *conn);

/* Moves what is to be sent into `into`, which must be empty; its room is recycled. Leaves
 * it empty when there is nothing. Afterwards host.output is called when there is more. */
void sgi_conn_output(sgi_conn *conn, sgi_buf *into);

/* The connection has ended; no more calls but sgi_conn_start (after a reopen) and
 * sgi_conn_detach. */
void sgi_conn_lost(sgi_conn *conn, const char *why);

/* The transport is going away for good and forgets the conversation. Implies lost. */
void sgi_conn_detach(sgi_conn *conn);

/* The pointer given when the conversation was made. */
void *sgi_conn_transport(const sgi_conn *conn);

#endif
