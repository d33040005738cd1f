/* Serves HTTP exchanges: decides the era of a request, checks the headers against the
 * body, finds the session, and passes on the request. A transport reads the headers and
 * passes them as texts. This code uses neither sockets nor HTTP framing. Transports
 * include server_port.h. */
#ifndef SGI_SERVE_HTTP_H
#define SGI_SERVE_HTTP_H

#include "engine/server/peer.h"

/* Compares the headers of a request with its body. Returns NULL when headers and body
 * match, otherwise a description of the difference (header_check.c). */
const char *sgi_find_header_mismatch(const sgi_http_request_head *head,
                                     const sgi_inbound *in, sgi_json method);

/* ---- requests without a session (serve_sessionless.c) ---- */

/* True for a request of a handshake version whose method needs no session, without the
 * header Mcp-Session-Id. A header that is sent must name a session. */
bool sgi_needs_no_session(const sgi_http_request_head *head, sgi_json method);
/* Serves such a request on a spare conversation. */
void sgi_serve_sessionless(const sgi_http_request_head *head, sgi_inbound *in,
                           const sgi_message *msg);

#endif
