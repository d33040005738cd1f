/* Asks the application for the principal at the other end of a transport. Transports see
 * these functions through server_port.h. */
#ifndef SGI_IDENTIFY_H
#define SGI_IDENTIFY_H

#include "engine/server/server.h"

/* Asks the application for the principal. The caller holds the lock; the lock is released
 * while the application's function runs. The caller keeps the transport in memory. On
 * SEGUE_OK, *who is the principal, with a reference that the caller owns. *named is true
 * when the application gave a name. */
segue_status sgi_identify_principal(segue_server *server, void *transport,
                                    sgi_principal **who, bool *named);

#endif
