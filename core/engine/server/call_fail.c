/* A handler ends its call with an error. */
#include "engine/server/call.h"

#include "engine/server/dialects.h"
#include "engine/server/emit.h"

/* True when a handler may send this error code. A handler must not send a code that MCP
 * reserves and does not define (R-0-4). */
static bool may_send_code(int32_t code)
{
    return !(code >= -32099 && code <= -32000) || code == SGI_RPC_HEADER_MISMATCH ||
           code == SGI_RPC_MISSING_CAPABILITY || code == SGI_RPC_UNSUPPORTED_VERSION;
}

/* Ends the operation with the error "Resource not found". The error code depends on the
 * protocol version. The message and the data name the URI. */
static segue_status fail_not_found(segue_call *call, const char *message)
{
    const sgi_op *op = call->op;
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    sgi_buf data, text;
    sgi_buf_init(&text, mem);
    sgi_buf_init(&data, mem);
    sgi_write_unknown_name(&text, sgi_str_of(message), sgi_str_of(op->served->item_name));
    sgi_jw w = sgi_jw_to(&data);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "uri", sgi_str_of(op->served->item_name));
    sgi_jw_close(&w, '}');
    segue_status status =
        data.failed || text.failed
            ? SEGUE_E_NOMEM
            : sgi_op_fail(call->op, SGI_ENTRY_ERROR, sgi_call_not_found_code(op),
                          sgi_buf_str(&text), sgi_buf_str(&data));
    sgi_buf_free(&text);
    sgi_buf_free(&data);
    return status;
}

segue_status sgi_call_fail(segue_call *call, int32_t code, const char *message,
                           const char *data, size_t len)
{
    sgi_json value = {0};
    if (call->is_closing || call->lost)
        return sgi_call_refuse_ended(call);
    segue_status status = sgi_call_check_text(call, "the message", message);
    if (status != SEGUE_OK)
        return status;
    if (call->op->served->kind == &sgi_call_resource &&
        code == SGI_RPC_RESOURCE_NOT_FOUND)
        return fail_not_found(call, message);
    if (!may_send_code(code))
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "the error code %d is reserved by the protocol", (int)code);
    if (data)
        status = sgi_engine_check_json(call->handle.engine, data, len, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    status = sgi_op_fail(call->op, SGI_ENTRY_ERROR, code, sgi_str_of(message), value);
    sgi_call_end_turn(call);
    return status;
}
