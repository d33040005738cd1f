/* The asking side of HTTP exchanges: each message of a session travels by itself, and
 * what answers it comes back on the same exchange. A child of the session's conversation,
 * which itself carries nothing then. The declarations that transports use stand in
 * exchange.h.
 *
 * References: one of the engine, given up by sgi_ask_end; one of the transport, from
 * sgi_ask_next to sgi_ask_release; one while it stands in the list of those on which
 * there is something to do. */
#ifndef SGI_ASK_HTTP_H
#define SGI_ASK_HTTP_H

#include "engine/asking/emitter.h"
#include "engine/asking/session.h"

/* A message of the session, to be written into the conversation that is returned and then
 * given to sgi_ask_send, or to sgi_ask_end when nothing came of it. NULL when out of
 * memory. */
sgi_conn *sgi_ask_new(segue_session *session);
/* The message is in its output: off it goes. emitter: who waits for the answer, or NULL.
 * False when out of memory: nothing goes; with an emitter sgi_ask_end is still due. */
bool sgi_ask_send(sgi_conn *conn, sgi_emitter *emitter);
/* Nobody waits for the answer any more. */
void sgi_ask_end(sgi_conn *conn);
/* The stream on which a server of the handshake eras speaks first. */
void sgi_ask_listen(segue_session *session);
/* The transport is gone: nothing is to be done any more. */
void sgi_ask_forget(segue_session *session);
/* More may be read from it. */
void sgi_ask_resume(sgi_conn *conn);

/* Of a conversation that is none of these: false. */
bool sgi_ask_is_held(const sgi_conn *conn);

#endif
