/* The mark of a wire session: the digest of its id (Mcp-Session-Id). A task of 2025-11-25
 * keeps the mark of the session that made it. A server that does not know the names of
 * its callers lists tasks by this mark: the id of a session is a secret of one client,
 * and servers that share a key continue the session after a restart. */
#ifndef SGI_SESSION_MARK_H
#define SGI_SESSION_MARK_H

#include "engine/server/peer.h"

/* Sets *mark to the mark of the peer's session, or to no mark when the peer has no
 * session or the server knows its caller. Returns false when out of memory. */
bool sgi_session_mark_make(const sgi_peer *peer, sgi_session_mark *mark);
/* True when a caller whose session has the mark `asked` may see the other mark in a list.
 * asked without a mark: the server knows the caller, who sees all tasks of its
 * principal. */
bool sgi_session_mark_fits(const sgi_session_mark *asked, const sgi_session_mark *other);
/* Both functions write and read the member "session" of the stored record. A record
 * without the member, or with a malformed one, has no mark. */
void sgi_session_mark_write(sgi_jw *w, const sgi_session_mark *mark);
void sgi_session_mark_read(sgi_json data, sgi_session_mark *mark);

#endif
