/* The key of a server to which the application gave none (seal_key). A store that
 * survives its process keeps this key, so that the next server on the store opens what
 * this server has sealed: it continues its sessions. All servers on the store use one
 * key: that of the server which stored its own first. */
#ifndef SGI_KEPT_KEY_H
#define SGI_KEPT_KEY_H

#include "engine/server/server.h"

/* Gets the key from the store, or stores the key that the server has made. Called when
 * the server gets a listener: only sessions over HTTP need the key. Does nothing if the
 * server has asked before, or has no use for a stored key. then_recover: the server has
 * begun to recover; recovery starts when the store has answered, so that no session comes
 * before the key. While the store fails, the server goes on with its own key, which it
 * shares with no other server, and asks the store again later. */
void sgi_kept_key_get(segue_server *server, bool then_recover);

#endif
