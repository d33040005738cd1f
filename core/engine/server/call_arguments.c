/* What a handler reads of its call: the arguments, _meta, and the headers of its HTTP
 * request. Decoded texts live as long as the call. */
#include "engine/server/call.h"

#include "engine/server/origin.h"

segue_status sgi_call_meta(const segue_call *call, const char *key, sgi_json *value)
{
    sgi_json params = {call->op->served->params, call->op->served->params_len};
    sgi_json found = sgi_json_get(sgi_json_get(params, "_meta"), key);
    if (!found.n)
        return SEGUE_E_NOT_FOUND;
    *value = found;
    return SEGUE_OK;
}

segue_status sgi_call_header(const segue_call *call, sgi_str name, size_t index,
                             sgi_str *value)
{
    return sgi_origin_header(call->origin, name, index, value) ? SEGUE_OK
                                                               : SEGUE_E_NOT_FOUND;
}

segue_status sgi_call_header_at(const segue_call *call, size_t index, sgi_str *name,
                                sgi_str *value)
{
    return sgi_origin_header_at(call->origin, index, name, value) ? SEGUE_OK
                                                                  : SEGUE_E_NOT_FOUND;
}

void *sgi_call_context(const segue_call *call)
{
    bool has = call->origin && call->origin->context;
    return has ? sgi_app_context_user(call->origin->context) : NULL;
}

segue_status sgi_call_argument(const segue_call *call, const char *name, sgi_json *value)
{
    sgi_json found = sgi_json_get(sgi_op_arguments(call->op), name);
    if (!found.n)
        return SEGUE_E_NOT_FOUND;
    *value = found;
    return SEGUE_OK;
}

/* Makes room for a text that lives as long as the call. Returns NULL when out of
 * memory. */
static sgi_decoded_argument *keep(segue_call *call, const char *bytes, size_t len)
{
    sgi_decoded_argument *kept =
        sgi_alloc(sgi_engine_mem(call->handle.engine), sizeof *kept + len + 1);
    if (!kept)
        return NULL;
    kept->len = len;
    if (len)
        memcpy(kept->text, bytes, len);
    kept->text[len] = 0;
    kept->next = call->decoded;
    call->decoded = kept;
    return kept;
}

/* Decodes a string with escapes. Returns NULL when out of memory. */
static sgi_decoded_argument *decode(segue_call *call, sgi_json value)
{
    sgi_buf bytes;
    sgi_buf_init(&bytes, sgi_engine_mem(call->handle.engine));
    sgi_json_decode(value, &bytes);
    sgi_decoded_argument *kept = bytes.failed ? NULL : keep(call, bytes.p, bytes.len);
    sgi_buf_free(&bytes);
    return kept;
}

segue_status sgi_call_argument_text(segue_call *call, const char *name, sgi_str *text)
{
    sgi_json value = {0};
    sgi_str plain;
    segue_status status = sgi_call_argument(call, name, &value);
    if (status != SEGUE_OK)
        return status;
    if (sgi_json_kind_of(value) != SGI_JSON_STRING)
        return SEGUE_E_INVALID;
    const sgi_decoded_argument *kept = sgi_json_plain_string(value, &plain)
                                           ? keep(call, plain.p, plain.n)
                                           : decode(call, value);
    if (!kept)
        return SEGUE_E_NOMEM;
    *text = (sgi_str){kept->text, kept->len};
    return SEGUE_OK;
}
