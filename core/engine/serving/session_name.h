/* The name of a wire session (Mcp-Session-Id) where servers share a key: a sealed text
 * that says what initialize settled, so that any of them takes up a session which began
 * at another. What else one of them has of a session stays there: its streams, calls
 * under way, the log level, subscriptions. */
#ifndef SGI_SESSION_NAME_H
#define SGI_SESSION_NAME_H

#include "engine/serving/wire_session.h"

/* The handshake is settled: the session gets its name, if its server shares a key. False
 * when out of memory. */
bool sgi_session_name(sgi_wire_session *session);
/* Makes a session of a name that another server gave. SEGUE_E_NOT_FOUND when it is none,
 * somebody else's, too old, or was ended here; SEGUE_E_LIMIT and SEGUE_E_NOMEM as of
 * sgi_wire_session_new. */
segue_status sgi_session_adopt(segue_server *server, sgi_principal *who, sgi_str name,
                               int32_t most, int64_t idle_ms, sgi_wire_session **out);
/* Its client has ended it: here it is not taken up again. */
void sgi_session_ended(const sgi_wire_session *session);

#endif
