/* Checks of connections that break and servers that die. */
#ifndef CLIENT_LIFE_H
#define CLIENT_LIFE_H

#include "probe.h"

/* The server dies during a call: without a restart, over HTTP where it comes back by
 * itself, and where the transport starts it again. */
const char *check_death(peer *p);
const char *check_return(peer *p);
const char *check_restart(peer *p);
/* The connection of a call is cut. */
const char *check_cut(peer *p);

#endif
