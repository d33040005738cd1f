/* A client withdraws a call by its idempotency key: notifications/cancelled has the key
 * in its _meta (dev.segue/idempotencyKey). A call with such a key continues when its
 * connection closes, because its client can come back for the answer. So a client that
 * wants no answer any more must withdraw the call. The key finds the call in each state:
 * as a task, with a lost answer, or running at another server.
 *
 * The notification and the call come over different connections. So the server remembers
 * a key that belongs to no call yet, and does not begin a call with this key that comes
 * later. */
#ifndef SGI_WITHDRAWN_H
#define SGI_WITHDRAWN_H

#include "engine/server/peer.h"

/* True when a text of a client is valid as an idempotency key. */
bool sgi_call_key_is(sgi_str text);
/* Computes the digest under which a call of this client is found. Returns false when out
 * of memory. */
bool sgi_call_key_digest(segue_server *server, const sgi_principal *who, sgi_str key,
                         uint8_t digest[SGI_DIGEST_SIZE]);

/* Cancels the call whose key the notification names. Does nothing when the notification
 * has no key. */
void sgi_withdrawn_cancel_call(const sgi_peer *peer, const sgi_message *msg);
/* True when the client has withdrawn the call before the call came. */
bool sgi_is_withdrawn(const segue_server *server, const uint8_t key[SGI_DIGEST_SIZE]);

#endif
