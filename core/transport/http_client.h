/* http_client: the transport of a client over Streamable HTTP. Any thread, lock not held.
 * Its insides are in http_ask.h. */
#ifndef SGI_HTTP_CLIENT_H
#define SGI_HTTP_CLIENT_H

#include "transport/transport.h"

/* options: full size. why: more about a failure. */
segue_status sgi_transport_http(segue_runtime *rt, const char *url,
                                const segue_http_options *options, segue_transport **out,
                                char why[SGI_WHY_SIZE]);
segue_status sgi_transport_set_header(segue_transport *transport, const char *name,
                                      const char *value, char why[SGI_WHY_SIZE]);
/* options: full size. */
segue_status sgi_transport_set_oauth(segue_transport *transport,
                                     const segue_oauth_options *options,
                                     char why[SGI_WHY_SIZE]);
/* Lock not held; whichever transport waits for it. */
segue_status sgi_http_authorize(segue_runtime *rt, const char *redirect_url);

#endif
