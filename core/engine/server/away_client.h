/* A client that is away, and how long a server whose listener closes waits for it
 * (returning.c). */
#ifndef SGI_AWAY_CLIENT_H
#define SGI_AWAY_CLIENT_H

#include "engine/server/server.h"

/* True while a client that is away can still be expected. since_ms: monotonic time in ms
 * at which the client was last seen, or at which the rest was ready if that was later.
 * asked_ms: the time after which the client was asked to come back; 0 = it was not
 * asked. */
bool sgi_client_is_expected(const segue_server *server, int64_t since_ms,
                            int64_t asked_ms);

#endif
