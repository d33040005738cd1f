/* The trace that a request belongs to (W3C trace context and baggage), which 2026-07-28
 * reserves names for in _meta. */
#ifndef SGI_TRACE_H
#define SGI_TRACE_H

#include "engine/engine.h"

/* Is it a member of the trace? */
bool sgi_trace_has(const sgi_json_member *member);
/* The members of _meta that belong to the trace of a request, for what the library asks
 * on its behalf. */
void sgi_trace_write(const segue_request *request, sgi_jw *w);
/* Has it any? */
bool sgi_trace_is_set(const segue_request *request);

#endif
