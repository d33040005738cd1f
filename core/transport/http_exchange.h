/* An HTTP exchange by hand: one request and its answer, carried by the application's own
 * HTTP server. To the listener it is a connection with one request (http_conn.h), whose
 * link is not a socket but this struct. The caller of all functions holds the lock. */
#ifndef SGI_HTTP_EXCHANGE_H
#define SGI_HTTP_EXCHANGE_H

#include <segue/segue_ext.h>

#include "transport/http_listener.h"

/* Begins an exchange. head and events: structs with all members of this version; every
 * length in them is set. The result is a reference of the caller, which
 * sgi_http_exchange_unref drops. On failure `why` receives the reason. */
segue_status sgi_http_exchange_open(segue_listener *listener,
                                    const segue_exchange_head *head,
                                    const segue_exchange_events *events,
                                    segue_exchange **out, char why[SGI_WHY_SIZE]);
/* The next functions do the same as the public functions of segue_ext.h. */
segue_status sgi_http_exchange_feed(segue_exchange *exchange, const char *bytes,
                                    size_t len);
segue_status sgi_http_exchange_end(segue_exchange *exchange);
segue_status sgi_http_exchange_sent(segue_exchange *exchange, size_t len);
segue_status sgi_http_exchange_closed(segue_exchange *exchange);
void sgi_http_exchange_unref(segue_exchange *exchange);

#endif
