/* A client withdraws a call by its idempotency key: notifications/cancelled has the key
 * in its _meta (dev.segue/idempotencyKey). A call that has such a key goes on when its
 * connection closes, since its client can come back for the answer; so a client that
 * wants no answer says it in this way. The key finds the call whatever became of it: one
 * that has turned into a task, one whose answer was lost, one that another server runs.
 *
 * The notification and the call travel on connections of their own. A key that finds
 * nothing is therefore remembered, and a call that comes behind it does not begin. */
#ifndef SGI_WITHDRAWN_H
#define SGI_WITHDRAWN_H

#include "engine/serving/peer.h"

/* Is this text, of a client, an idempotency key? */
bool sgi_call_key_is(sgi_str text);
/* What a call of this client is found by. false: out of memory. */
bool sgi_call_key_digest(segue_server *server, const sgi_principal *who, sgi_str key,
                         uint8_t digest[SGI_DIGEST_SIZE]);

/* If the notification is one that names a call by its key, cancels the call. */
void sgi_withdraw_said(const sgi_peer *peer, const sgi_message *msg);
/* Was this call withdrawn before it came? */
bool sgi_is_withdrawn(const segue_server *server, const uint8_t key[SGI_DIGEST_SIZE]);

#endif
