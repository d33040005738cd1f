/* The parts of a request, which are found once and then used by all that handle it. */
#ifndef SGI_INBOUND_H
#define SGI_INBOUND_H

#include "engine/server/peer.h"

/* Fills *in with the parts of a request message. Returns false when out of memory; the
 * request then gets no answer. */
bool sgi_inbound_read(sgi_inbound *in, sgi_peer *peer, const sgi_message *msg);
/* True when the request belongs to the modern era (2026-07-28 and later). shaken = true:
 * the conversation had a handshake. Without a handshake, every request whose _meta names
 * a version is modern, except initialize. After a handshake, and for initialize, an older
 * version in _meta is ignored, and only a modern or unknown version in _meta makes the
 * request modern (2026-07-28 basic/versioning). */
bool sgi_inbound_is_stateless(const sgi_inbound *in, sgi_json method, bool shaken);

#endif
