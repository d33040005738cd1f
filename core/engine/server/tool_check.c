/* Arguments are checked when the call starts, before the handler runs. If the arguments
 * do not fit, the handler is not called, and the result is an error from which a model
 * can learn (2025-11-25 server/tools, "Error Handling"). In versions before 2025-11-25
 * the answer is the protocol error -32602 instead.
 *
 * Results are checked later, because callbacks never run inside the function that caused
 * them. The last entries of a handler wait in `closing` and are appended after the check,
 * when the call next delivers its events. From the handler's view the call has already
 * ended. During the check the operation can still be cancelled or expire; it then ends in
 * that way. Segments that were streamed before the check have reached the client, so
 * after a failed check the task fails behind these segments. A missing structuredContent
 * is found without user code. A result that is an error need not fit the outputSchema. */
#include "engine/server/tool_check.h"

#include "engine/cluster/following.h"
#include "engine/validation.h"

static sgi_json schema_of(const sgi_op *op, const char *name)
{
    if (op->served->kind != &sgi_call_tool || !op->served->item)
        return (sgi_json){0};
    return sgi_json_get((sgi_json){op->served->item->json, op->served->item->json_len},
                        name);
}

static sgi_validation validation_of(const sgi_op *op, int32_t what)
{
    const segue_server_options *options = &sgi_op_server(op)->options;
    return (sgi_validation){.fn = options->on_validate,
                            .user = options->user,
                            .tool = op->served->item_name,
                            .what = what,
                            .schema = schema_of(op, what == SEGUE_VALIDATE_ARGUMENTS
                                                        ? "inputSchema"
                                                        : "outputSchema")};
}

/* ---- checking arguments ---- */

/* Ends the operation with a result that is an error and contains this text. */
static segue_status end_with_text(segue_call *call, sgi_str text)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    sgi_str end = SGI_STR("{\"isError\":true}");
    sgi_entry *entry;
    sgi_buf block;
    sgi_buf_init(&block, mem);
    sgi_write_text_block(&block, text);
    entry =
        block.failed ? NULL : sgi_entry_new(mem, SGI_ENTRY_SEGMENT, block.p, block.len);
    sgi_buf_free(&block);
    if (entry)
        TAILQ_INSERT_TAIL(&list, entry, link);
    sgi_entry *last = entry ? sgi_entry_new(mem, SGI_ENTRY_RESULT, end.p, end.n) : NULL;
    if (!last) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    TAILQ_INSERT_TAIL(&list, last, link);
    return sgi_call_end(call, &list);
}

static segue_status refuse_arguments(segue_call *call, segue_status verdict,
                                     const char *reason)
{
    sgi_op *op = call->op;
    sgi_buf text;
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    if (verdict == SEGUE_E_INVALID)
        sgi_buf_add_lit(&text, "The arguments do not fit the tool's inputSchema: ");
    else
        sgi_buf_add_lit(
            &text, "The arguments cannot be checked against the tool's inputSchema: ");
    sgi_buf_add_str(&text, sgi_str_of(reason));
    segue_status status = SEGUE_E_NOMEM;
    if (!text.failed && verdict != SEGUE_E_INVALID)
        status = sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR,
                             sgi_buf_str(&text), (sgi_json){0});
    else if (!text.failed && op->served->refuses_arguments)
        status = sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INVALID_PARAMS,
                             sgi_buf_str(&text), (sgi_json){0});
    else if (!text.failed)
        status = end_with_text(call, sgi_buf_str(&text));
    sgi_buf_free(&text);
    return status;
}

bool sgi_tool_check_arguments(segue_call *call)
{
    sgi_op *op = call->op;
    if (!sgi_op_server(op)->options.on_validate || sgi_op_has_ended(op))
        return true;
    sgi_validation validation = validation_of(op, SEGUE_VALIDATE_ARGUMENTS);
    if (!validation.schema.n)
        return true;
    validation.value = sgi_op_arguments(op);
    if (!validation.value.n)
        validation.value = SGI_STR("{}");
    segue_status verdict = sgi_validate(op->engine, &validation);
    if (verdict == SEGUE_OK)
        return true;
    if (verdict != SEGUE_E_INVALID)
        sgi_engine_log(op->engine, SEGUE_LOG_ERROR, "tool %s: inputSchema: %s",
                       op->served->item_name, validation.reason);
    if (refuse_arguments(call, verdict, validation.reason) == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(op, "Out of memory");
    return false;
}

/* ---- checking results ---- */

segue_status sgi_tool_result_needs_check(const segue_call *call,
                                         const segue_content *content)
{
    const sgi_op *op = call->op;
    bool promised = op->served->kind == &sgi_call_tool && op->served->item &&
                    op->served->item->has_output;
    if (!promised || (content && content->is_error) ||
        sgi_op_server(op)->stage == SGI_SERVER_DEAD)
        return SEGUE_OK;
    if (!(content && content->structured.len)) {
        if (op->head.result->structured_lost)
            return SEGUE_E_NOMEM;
        if (!op->head.result->structured)
            return SEGUE_E_INVALID;
    }
    return sgi_op_server(op)->options.on_validate ? SEGUE_E_STATE : SEGUE_OK;
}

/* Returns the structured content of the result: that of the closing entries, or otherwise
 * that of the log. */
static sgi_json structured_of(const segue_call *call)
{
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, &call->closing, link)
        if (entry->kind == SGI_ENTRY_FIELDS)
            return sgi_json_get((sgi_json){entry->data, entry->len}, "structuredContent");
    return (sgi_json){call->op->head.result->structured,
                      call->op->head.result->structured_len};
}

void sgi_tool_check_fail_result(segue_call *call, const char *why)
{
    sgi_op *op = call->op;
    sgi_buf text;
    sgi_engine_log(op->engine, SEGUE_LOG_ERROR, "tool %s: outputSchema: %s",
                   op->served->item_name, why);
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    sgi_buf_add_lit(&text, "The tool made a result that does not fit its outputSchema: ");
    sgi_buf_add_str(&text, sgi_str_of(why));
    if (text.failed || sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR,
                                   sgi_buf_str(&text), (sgi_json){0}) == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(
            op, "The tool made a result that does not fit its outputSchema");
    sgi_buf_free(&text);
}

void sgi_tool_check_result(segue_call *call)
{
    sgi_op *op = call->op;
    sgi_validation validation = validation_of(op, SEGUE_VALIDATE_RESULT);
    validation.value = structured_of(call);
    /* keeps the structured content in memory, because the validator reads it without the
     * lock */
    sgi_op_pin_head(op);
    segue_status verdict = sgi_validate(op->engine, &validation);
    sgi_op_unpin_head(op);
    /* the operation can end in another way while the validator runs */
    if (sgi_op_has_ended(op))
        sgi_entry_list_free(sgi_engine_mem(op->engine), &call->closing);
    else if (verdict != SEGUE_OK)
        sgi_tool_check_fail_result(call, validation.reason);
    else if (sgi_call_end(call, &call->closing) == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(op, "Out of memory");
    sgi_entry_list_free(sgi_engine_mem(op->engine), &call->closing);
}
