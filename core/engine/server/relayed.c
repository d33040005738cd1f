/* A handler can pass on what another server has sent for a call: a result, an error or a
 * log message. The values are sent unchanged and are not checked again: unknown types of
 * blocks, results that do not fit the schema of their tool, and reserved error codes are
 * accepted. */
#include "engine/server/emit.h"

static segue_status refuse(const segue_call *call, const char *why)
{
    return sgi_refuse(call->handle.engine, SEGUE_E_INVALID, "%s", why);
}

/* ---- results ---- */

static bool add_list(const sgi_op *op, struct sgi_entry_list *list, sgi_json blocks)
{
    sgi_json block;
    size_t count = 0;
    for (size_t at = 0; sgi_json_next_item(blocks, &at, &block);)
        if (!sgi_emit_add_block(op, list, count++, block))
            return false;
    return true;
}

/* Adds a member with this name (decoded), unless the version of the call does not know
 * the member. */
static bool add_field(const sgi_op *op, struct sgi_entry_list *list, sgi_str name,
                      sgi_json value)
{
    return sgi_emit_is_untold(op, name) ||
           sgi_emit_add_field(sgi_engine_mem(op->engine), list, name, value);
}

/* Adds a member of the result, except the list of blocks. The member "resultType" is left
 * out, because each protocol version writes its own value. The member "isError" with the
 * value true only sets *is_error. */
static bool add_member(const sgi_op *op, struct sgi_entry_list *list,
                       const sgi_json_member *member, bool *is_error)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_buf name;
    if (sgi_json_key_is(member, "resultType"))
        return true;
    if (sgi_json_key_is(member, "_meta"))
        return sgi_emit_add_meta(mem, list, member->value);
    if (sgi_json_key_is(member, "isError")) {
        *is_error = sgi_json_kind_of(member->value) == SGI_JSON_TRUE;
        if (*is_error)
            return true;
    }
    if (!member->escaped)
        return add_field(op, list, member->key, member->value);
    sgi_buf_init(&name, mem);
    sgi_json quoted = {member->key.p - 1, member->key.n + 2};
    bool ok = sgi_json_decode(quoted, &name) && !name.failed &&
              add_field(op, list, sgi_buf_str(&name), member->value);
    sgi_buf_free(&name);
    return ok;
}

static segue_status check_result(const segue_call *call, sgi_json result)
{
    const char *name = call->op->served->kind->list;
    if (sgi_json_kind_of(result) != SGI_JSON_OBJECT)
        return refuse(call, "the result is not an object");
    sgi_json blocks = name ? sgi_json_get(result, name) : (sgi_json){0};
    return !blocks.n || sgi_json_kind_of(blocks) == SGI_JSON_ARRAY
               ? SEGUE_OK
               : refuse(call, "the list of the result is not an array");
}

segue_status sgi_call_complete_json(segue_call *call, const char *json, size_t len)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    const char *blocks = call->op->served->kind->list;
    sgi_json result = {0};
    sgi_json_member member;
    bool ok = true, is_error = false;
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    segue_status status =
        sgi_engine_check_json(call->handle.engine, json, len, &result, NULL);
    if (status == SEGUE_OK)
        status = check_result(call, result);
    if (status != SEGUE_OK)
        return status;
    for (size_t at = 0; ok && sgi_json_next_member(result, &at, &member);)
        ok = blocks && sgi_json_key_is(&member, blocks)
                 ? add_list(call->op, &list, member.value)
                 : add_member(call->op, &list, &member, &is_error);
    if (ok && sgi_emit_add_final(call, &list, is_error))
        return sgi_call_end(call, &list);
    sgi_entry_list_free(mem, &list);
    return SEGUE_E_NOMEM;
}

/* ---- errors ---- */

segue_status sgi_call_fail_with(segue_call *call, const segue_error_view *error)
{
    const sgi_op *op = call->op;
    int32_t code = error->rpc_code ? error->rpc_code : SGI_RPC_INTERNAL_ERROR;
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    if (op->served->kind == &sgi_call_resource && code == SGI_RPC_RESOURCE_NOT_FOUND)
        code = sgi_call_not_found_code(op);
    segue_status status =
        sgi_op_fail(call->op, SGI_ENTRY_ERROR, code, sgi_str_of(error->message),
                    (sgi_json){error->data, error->data ? error->data_len : 0});
    if (status == SEGUE_OK)
        sgi_call_end_turn(call);
    return status;
}
