/* The checks of what servers ask: by requests of theirs in the handshake eras, by results
 * that want input since. */
#ifndef CLIENT_ASKS_H
#define CLIENT_ASKS_H

#include "probe.h"

const char *check_form(peer *p);
const char *check_decline(peer *p);
const char *check_rounds(peer *p);
const char *check_sampling(peer *p);
const char *check_roots(peer *p);

#endif
