/* The trace of a call (W3C Trace Context): the span to which the events of the call
 * belong. The caller's is stored with the call, so that a server that goes on with the
 * call stays in the trace. */
#ifndef SGI_CALL_TRACE_H
#define SGI_CALL_TRACE_H

#include "engine/server/call.h"

/* Returns the traceparent of the operation: that which the handler has set, else that of
 * _meta, else that of the HTTP request. Returns an empty text when there is none; a text
 * from a client may be malformed. */
sgi_str sgi_op_trace(const sgi_op *op);
/* Sets the span that the events of the call belong to from now on. */
segue_status sgi_call_set_trace_parent(segue_call *call, sgi_str trace_parent);

/* Keeps the trace of the HTTP request for the events after the end of the handler. The
 * headers of the request end with the handler. */
void sgi_op_trace_keep(sgi_op *op);

/* Write and read the part of the stored record. sgi_op_trace_read returns false when out
 * of memory. */
void sgi_op_trace_write(const sgi_op *op, sgi_jw *w);
bool sgi_op_trace_read(sgi_op *op, sgi_json data);

#endif
