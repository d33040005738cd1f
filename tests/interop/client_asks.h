/* Checks of questions from servers: by requests in the handshake eras, by results that
 * require input in 2026-07-28. */
#ifndef CLIENT_ASKS_H
#define CLIENT_ASKS_H

#include "probe.h"

const char *check_form(peer *p);
const char *check_decline(peer *p);
const char *check_rounds(peer *p);
const char *check_sampling(peer *p);
const char *check_roots(peer *p);

#endif
