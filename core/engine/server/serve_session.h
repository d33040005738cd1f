/* The wire session of an HTTP request. A function that fails sets *verdict, with which
 * the transport answers the request. */
#ifndef SGI_SERVE_SESSION_H
#define SGI_SERVE_SESSION_H

#include "engine/server/wire_session.h"

extern const sgi_http_serve_verdict sgi_serve_out_of_memory;
/* The verdict for a request that is not served because the server closes. A server can
 * close while the application names the principal of the request. */
extern const sgi_http_serve_verdict sgi_serve_closing;

/* Makes the session that `initialize` begins. Returns NULL on failure. */
sgi_wire_session *sgi_serve_open_session(segue_server *server, sgi_principal *who,
                                         const sgi_http_request_head *head,
                                         sgi_http_serve_verdict *verdict);
/* Returns the session that the request names; it may have begun on another server.
 * Returns NULL on failure. */
sgi_wire_session *sgi_serve_find_session(segue_server *server, sgi_principal *who,
                                         const sgi_http_request_head *head,
                                         sgi_http_serve_verdict *verdict);
/* Makes a new exchange of the session for this request. Returns NULL when out of
 * memory. */
sgi_peer *sgi_serve_begin_exchange(sgi_wire_session *session,
                                   const sgi_http_request_head *head, void *transport,
                                   sgi_http_serve_verdict *verdict);

#endif
