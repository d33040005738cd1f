/* The mark of a wire session: the digest of its id (Mcp-Session-Id). A task of 2025-11-25
 * keeps the mark of the session that made it. A server that does not know the names of
 * its callers lists tasks by this mark: the id of a session is a secret of one client,
 * and servers that share a key continue the session after a restart. */
#ifndef SGI_SESSION_MARK_H
#define SGI_SESSION_MARK_H

#include "engine/server/peer.h"

#define SGI_SESSION_MARK 43 /* a digest in base64, in bytes */

struct sgi_session_mark {
    char text[SGI_SESSION_MARK + 1]; /* "" = no mark */
};

/* Sets *mark to the mark of the peer's session, or to no mark when the peer has no
 * session or the server knows its caller. Returns false when out of memory. */
bool sgi_session_mark_make(const sgi_peer *peer, sgi_session_mark *mark);
/* True when a caller whose session has this mark may see the task in a list. other: the
 * mark of the task; empty = none. A caller without a mark is known, and sees all tasks of
 * its principal. */
bool sgi_session_mark_fits(const sgi_session_mark *mark, sgi_str other);

/* The functions below keep the mark of the session that made an operation. The first one
 * sets it from the peer that called, and the last one from the member "session" of the
 * stored record. Both return false when out of memory. */
bool sgi_op_set_session_of(sgi_op *op, const sgi_peer *peer);
sgi_str sgi_op_session(const sgi_op *op);
void sgi_op_session_write(const sgi_op *op, sgi_jw *w);
bool sgi_op_session_read(sgi_op *op, sgi_json data);

/* Returns the mark in the data of a stored record; empty = the record has none. */
sgi_str sgi_session_mark_of_record(sgi_json data);

#endif
