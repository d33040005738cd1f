/* A client withdraws a call by its idempotency key: notifications/cancelled has the key
 * in its _meta (dev.segue/idempotencyKey). When the connection of a call with a key
 * closes, the call continues, because its client can come back for the answer. So a
 * client that does not want the answer must withdraw the call. The server finds the call
 * by its key in every state: as a task, after its answer was lost, or while another
 * server runs the call.
 *
 * The notification and the call come over different connections, in any order. If no call
 * has the key yet, the server remembers the key and later refuses a call with this
 * key. Another server may begin such a call, so the server looks for the call in the
 * store again, a few times. */
#ifndef SGI_WITHDRAWN_H
#define SGI_WITHDRAWN_H

#include "engine/server/peer.h"

/* True when a text from a client is valid as an idempotency key. */
bool sgi_call_key_is_valid(sgi_str text);
/* Computes the digest of a client's idempotency key, under which its call is stored. */
void sgi_call_key_digest(const sgi_principal *who, sgi_str key,
                         uint8_t digest[SGI_DIGEST_SIZE]);

/* Cancels the call whose idempotency key the notification names. Does nothing when the
 * notification has no key. Returns false when the server looks up too many calls now, so
 * that the client should send the notification again. */
bool sgi_withdrawn_cancel_call(const sgi_peer *peer, const sgi_message *msg);
/* True when the client withdrew the call with this key before the call arrived. */
bool sgi_call_key_is_withdrawn(const segue_server *server,
                               const uint8_t key[SGI_DIGEST_SIZE]);
#endif
