#include "engine/server/call_trace.h"

#include "engine/event.h"
#include "engine/server/origin.h"

/* Returns the header of the HTTP request that made the call. */
static sgi_str header_of(const sgi_op *op)
{
    sgi_str value;
    sgi_origin *origin = op->served->call ? op->served->call->origin : op->served->origin;
    return sgi_origin_header(origin, SGI_STR("traceparent"), 0, &value) ? value
                                                                        : (sgi_str){0};
}

static sgi_str trace_of_meta(const sgi_op *op)
{
    sgi_json params = {op->served->params, op->served->params_len};
    return sgi_meta_trace_parent(sgi_json_get(params, "_meta"));
}

sgi_str sgi_op_trace(const sgi_op *op)
{
    if (op->served->trace_parent)
        return sgi_str_of(op->served->trace_parent);
    sgi_str text = trace_of_meta(op);
    return text.n ? text : header_of(op);
}

static bool set(sgi_op *op, sgi_str trace_parent)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    char *copy = sgi_text_dup(mem, trace_parent);
    if (!copy)
        return false;
    sgi_text_free(mem, op->served->trace_parent);
    op->served->trace_parent = copy;
    return true;
}

segue_status sgi_call_set_trace_parent(segue_call *call, sgi_str trace_parent)
{
    if (!sgi_is_trace_parent(trace_parent))
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "this is no traceparent of version 00 of W3C Trace Context");
    return set(call->op, trace_parent) ? SEGUE_OK : SEGUE_E_NOMEM;
}

void sgi_op_trace_keep(sgi_op *op)
{
    sgi_str text = header_of(op);
    if (!op->served->trace_parent && sgi_is_trace_parent(text) && !trace_of_meta(op).n)
        set(op, text); /* without memory, later events have no trace */
}

/* The trace of _meta is stored with the params. A span that the handler has set is not
 * stored: it ends with this process. */
void sgi_op_trace_write(const sgi_op *op, sgi_jw *w)
{
    sgi_str text = header_of(op);
    if (sgi_is_trace_parent(text) && !trace_of_meta(op).n)
        sgi_jw_member_string(w, "trace", text);
}

bool sgi_op_trace_read(sgi_op *op, sgi_json data)
{
    sgi_str text;
    return !sgi_json_plain_string(sgi_json_get(data, "trace"), &text) ||
           !sgi_is_trace_parent(text) || trace_of_meta(op).n || set(op, text);
}
