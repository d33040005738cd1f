/* The trace to which a request belongs (W3C trace context and baggage). 2026-07-28
 * reserves names in _meta for the trace. */
#ifndef SGI_TRACE_H
#define SGI_TRACE_H

#include "engine/engine.h"

/* True when this member of _meta is part of the trace. */
bool sgi_meta_member_is_trace(const sgi_json_member *member);
/* Writes the members of _meta that belong to the trace of a request, for a message that
 * the library sends on behalf of the request. */
void sgi_trace_write(const segue_request *request, sgi_jw *w);
/* True when the application has set a trace for the request. */
bool sgi_trace_is_set(const segue_request *request);

#endif
