/* The id of a wire session (Mcp-Session-Id) for servers that share a key. It is a sealed
 * text with everything that initialize negotiated. So each of these servers can continue
 * a session that began at another server. The other parts of a session stay at its first
 * server: streams, calls under way, the log level, subscriptions. */
#ifndef SGI_SESSION_NAME_H
#define SGI_SESSION_NAME_H

#include "engine/server/wire_session.h"

/* Gives the session its name, if its server shares a key. Called at the end of the
 * handshake. Returns false when out of memory. */
bool sgi_wire_session_give_name(sgi_wire_session *session);
/* Makes a session from a name that another server has given. SEGUE_E_NOT_FOUND: the text
 * is no such name, belongs to another principal, is too old, or names a session that was
 * ended at this server. SEGUE_E_LIMIT and SEGUE_E_NOMEM: as for sgi_wire_session_new. */
segue_status sgi_wire_session_from_name(segue_server *server, sgi_principal *who,
                                        sgi_str name, int32_t most, int64_t idle_ms,
                                        sgi_wire_session **out);
/* Remembers the name of a session that its client has ended, so that this server refuses
 * the name from now on. */
void sgi_wire_session_note_ended(const sgi_wire_session *session);

#endif
