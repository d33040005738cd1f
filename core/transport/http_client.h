/* http_client: the transport of a Streamable HTTP client. The functions may be called
 * on any thread, without the lock. The private state is in http_client_exchange.h. */
#ifndef SGI_HTTP_CLIENT_H
#define SGI_HTTP_CLIENT_H

#include "transport/transport.h"

/* Makes the transport. options: a struct with all members of this version. On failure
 * `why` receives the reason. */
segue_status sgi_transport_http(segue_runtime *rt, const char *url,
                                const segue_http_options *options, segue_transport **out,
                                char why[SGI_WHY_SIZE]);
segue_status sgi_transport_set_header(segue_transport *transport, const char *name,
                                      const char *value, char why[SGI_WHY_SIZE]);
/* Sets up OAuth for the transport. options: a struct with all members of this version. */
segue_status sgi_transport_set_oauth(segue_transport *transport,
                                     const segue_oauth_options *options,
                                     char why[SGI_WHY_SIZE]);
/* Gives the URL with which the browser returned to the transport that waits for this URL.
 * The caller does not hold the lock. */
segue_status sgi_http_pass_redirect(segue_runtime *rt, const char *redirect_url);

#endif
