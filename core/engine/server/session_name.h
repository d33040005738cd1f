/* The id of a wire session (Mcp-Session-Id) for servers that share a key: a sealed text
 * that contains everything that initialize negotiated. So each of these servers can
 * continue a session that began on another server. The other parts of a session stay on
 * its first server: streams, running calls, the log level, subscriptions. */
#ifndef SGI_SESSION_NAME_H
#define SGI_SESSION_NAME_H

#include "engine/server/wire_session.h"

/* Gives the session a name that other servers can read. Does nothing if the server shares
 * no key. Called at the end of the handshake. Returns false when out of memory. */
bool sgi_wire_session_give_name(sgi_wire_session *session);
/* Makes a session from a name that another server has given. Returns SEGUE_E_NOT_FOUND
 * when the text is not such a name, belongs to another principal, is too old, or names a
 * session that the client has ended on this server. Returns SEGUE_E_LIMIT and
 * SEGUE_E_NOMEM like sgi_wire_session_new. */
segue_status sgi_wire_session_new_from_name(segue_server *server, sgi_principal *who,
                                            sgi_str name, int32_t most, int64_t idle_ms,
                                            sgi_wire_session **out);
/* Remembers the name of a session that the client has ended, so that this server refuses
 * the name from now on. */
void sgi_wire_session_note_ended(const sgi_wire_session *session);

#endif
