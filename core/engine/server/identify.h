/* Asks the application for the principal at the other end of a transport. Transports use
 * the declarations in server_port.h. */
#ifndef SGI_IDENTIFY_H
#define SGI_IDENTIFY_H

#include "engine/server/server.h"

/* Asks the application for the principal. Called with the lock held; the lock is released
 * while the application's function runs. The caller keeps the transport in memory. On
 * SEGUE_OK, *who is set, and the caller owns a reference to it. *named: true when the
 * application gave a name. */
segue_status sgi_identify_principal(segue_server *server, void *transport,
                                    sgi_principal **who, bool *named);

#endif
