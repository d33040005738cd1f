/* Asking the application who is at the other end of a transport. The declarations that
 * transports use stand in exchange.h. */
#ifndef SGI_IDENTIFY_H
#define SGI_IDENTIFY_H

#include "engine/serving/server.h"

/* Under the lock, which it lets go around the application's function; the caller keeps
 * the transport in memory. *who is counted, and set when the status is SEGUE_OK. *named:
 * the application gave a name. */
segue_status sgi_identify(segue_server *server, void *transport, sgi_principal **who,
                          bool *named);

#endif
