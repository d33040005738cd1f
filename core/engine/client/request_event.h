/* Events about the requests of a session (engine/event.h), without params and results. */
#ifndef SGI_REQUEST_EVENT_H
#define SGI_REQUEST_EVENT_H

#include "engine/client/request.h"

/* Reports that the request was sent, for the first time or again. */
void sgi_request_event_report_sent(const segue_request *request);
/* Reports that the request has ended. */
void sgi_request_event_report_end(const segue_request *request);

#endif
