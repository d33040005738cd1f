/* The client's side of HTTP exchanges. Each message of a session is sent by an exchange
 * of its own, and the answer comes back on the same exchange. The conversation of an
 * exchange is a child of the session's conversation. The session's conversation itself
 * carries no message. exchange_port.h declares the functions for transports.
 *
 * An exchange has up to three references: one of the engine, until sgi_exchange_end; one
 * of the transport, from sgi_exchange_next to sgi_exchange_release; and one of the list
 * of exchanges that the transport has to handle next. */
#ifndef SGI_EXCHANGE_START_H
#define SGI_EXCHANGE_START_H

#include "engine/client/emitter.h"
#include "engine/client/exchange_port.h"
#include "engine/client/session.h"

/* Makes an exchange for a message of the session. The caller writes the message into the
 * returned conversation and then calls sgi_exchange_send, or sgi_exchange_end to drop the
 * exchange. Returns NULL when out of memory. */
sgi_conn *sgi_exchange_new(segue_session *session);
/* Sends the message that was written into the conversation. emitter: receives the answer;
 * may be NULL. Returns false, and sends nothing, when out of memory. A caller with an
 * emitter must then still call sgi_exchange_end. */
bool sgi_exchange_send(sgi_conn *conn, sgi_emitter *emitter);
/* Ends the exchange, because no code waits for its answer any more. The engine's
 * reference is dropped. */
void sgi_exchange_end(sgi_conn *conn);
/* Opens the GET stream on which a server sends requests and notifications of its own, in
 * versions that begin with `initialize`. */
void sgi_exchange_open_session_stream(segue_session *session);
/* Empties the list of exchanges that the transport has to handle next. Called when the
 * session's transport is gone. */
void sgi_exchanges_clear_queue(segue_session *session);
/* Allows the transport to read more input from this exchange. */
void sgi_exchange_resume_input(sgi_conn *conn);

/* True when the exchange waits for an access token or a free connection. False for a
 * conversation without an HTTP exchange. */
bool sgi_exchange_is_held(const sgi_conn *conn);

#endif
