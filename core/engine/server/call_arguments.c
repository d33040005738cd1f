/* What a handler reads of its call: the arguments and _meta. Decoded texts live as long
 * as the call. */
#include "engine/server/call.h"

segue_status sgi_call_meta(const segue_call *call, const char *key, sgi_json *value)
{
    sgi_json params = {call->op->served->params, call->op->served->params_len};
    sgi_json found = sgi_json_get(sgi_json_get(params, "_meta"), key);
    if (!found.n)
        return SEGUE_E_NOT_FOUND;
    *value = found;
    return SEGUE_OK;
}

segue_status sgi_call_argument(const segue_call *call, const char *name, sgi_json *value)
{
    sgi_json found = sgi_json_get(sgi_op_arguments(call->op), name);
    if (!found.n)
        return SEGUE_E_NOT_FOUND;
    *value = found;
    return SEGUE_OK;
}

segue_status sgi_call_argument_text(segue_call *call, const char *name, sgi_str *text)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    sgi_json value = {0};
    segue_status status = sgi_call_argument(call, name, &value);
    if (status != SEGUE_OK)
        return status;
    sgi_buf bytes;
    sgi_buf_init(&bytes, mem);
    if (!sgi_json_decode(value, &bytes)) {
        sgi_buf_free(&bytes);
        return SEGUE_E_INVALID;
    }
    sgi_decoded_argument *decoded =
        bytes.failed ? NULL : sgi_alloc(mem, sizeof *decoded + bytes.len + 1);
    if (decoded) {
        decoded->len = bytes.len;
        if (bytes.len)
            memcpy(decoded->text, bytes.p, bytes.len);
        decoded->text[bytes.len] = 0;
        TAILQ_INSERT_TAIL(&call->decoded, decoded, link);
        *text = (sgi_str){decoded->text, decoded->len};
    }
    sgi_buf_free(&bytes);
    return decoded ? SEGUE_OK : SEGUE_E_NOMEM;
}
