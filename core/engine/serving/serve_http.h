/* The serving side of HTTP exchanges: which era a request speaks, whether its headers say
 * what its body says, which session it belongs to, and what becomes of it. The engine
 * sees heads as texts that a transport has read; it knows no socket and no HTTP framing.
 *
 * The declarations that transports use stand in exchange.h. */
#ifndef SGI_SERVE_HTTP_H
#define SGI_SERVE_HTTP_H

#include "engine/serving/peer.h"

/* header_check.c: NULL when the head says what the body says, else what is wrong. */
const char *sgi_header_mismatch(const sgi_http_head *head, const sgi_inbound *in,
                                sgi_json method);

#endif
