/* A client withdraws a call by its idempotency key: notifications/cancelled has the key
 * in its _meta (dev.segue/idempotencyKey). When the connection of such a call closes, the
 * call continues, because its client can come back for the answer. A client that wants no
 * answer must therefore withdraw the call. The key finds the call in every state: as a
 * task, after its answer was lost, or running at another server.
 *
 * The notification and the call come over different connections, in any order. If no call
 * has the key yet, the server remembers the key and refuses to begin a call with it
 * later. */
#ifndef SGI_WITHDRAWN_H
#define SGI_WITHDRAWN_H

#include "engine/server/peer.h"

/* True when a text of a client is valid as an idempotency key. */
bool sgi_call_key_is(sgi_str text);
/* Computes the digest of a key of this client; calls are stored under this digest.
 * Returns false when out of memory. */
bool sgi_call_key_digest(segue_server *server, const sgi_principal *who, sgi_str key,
                         uint8_t digest[SGI_DIGEST_SIZE]);

/* Cancels the call whose key the notification names. Does nothing when the notification
 * has no key. */
void sgi_withdrawn_cancel_call(const sgi_peer *peer, const sgi_message *msg);
/* True when the client has withdrawn the call with this key before the call came. */
bool sgi_is_withdrawn(const segue_server *server, const uint8_t key[SGI_DIGEST_SIZE]);

#endif
