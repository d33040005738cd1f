/* Arguments are checked in the turn of the handler, before it: a call that is refused was
 * never given to it. What does not fit is a result of the tool that a model can learn
 * from (2025-11-25 server/tools, "Error Handling"); before 2025-11-25 it is an error of
 * the protocol, -32602.
 *
 * Results: callbacks never run inside the call that caused them, so the end that a
 * handler wrote waits in `closing` for the next turn, and only what passed goes into the
 * log. Meanwhile the call counts as ended for its handler; it can still be cancelled or
 * expire, and then that is its end. What was streamed has been seen by then: a task
 * fails behind it. That structured content is there at all is checked without asking
 * anybody. A result that is an error promises nothing. */
#include "engine/serving/tool_check.h"

#include "engine/validation.h"

static sgi_json schema_of(const sgi_op *op, const char *name)
{
    if (op->kind != &sgi_call_tool || !op->item)
        return (sgi_json){0};
    return sgi_json_get((sgi_json){op->item->json, op->item->json_len}, name);
}

static sgi_validation validation_of(const sgi_op *op, int32_t what)
{
    const segue_server_options *options = &op->server->options;
    return (sgi_validation){.fn = options->on_validate,
                            .user = options->user,
                            .tool = op->item_name,
                            .what = what,
                            .schema = schema_of(op, what == SEGUE_VALIDATE_ARGUMENTS
                                                        ? "inputSchema"
                                                        : "outputSchema")};
}

/* ---- arguments ---- */

/* A result that is an error, with a text. */
static segue_status end_with_text(segue_call *call, sgi_str text)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    sgi_str end = SGI_STR("{\"isError\":true}");
    sgi_entry *entry;
    sgi_buf block;
    sgi_buf_init(&block, mem);
    sgi_text_block(&block, text);
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
        sgi_buf_add_lit(&text, "Invalid arguments: ");
    else
        sgi_buf_add_lit(&text, "The arguments cannot be validated: ");
    sgi_buf_add_str(&text, sgi_str_of(reason));
    segue_status status = SEGUE_E_NOMEM;
    if (!text.failed && verdict != SEGUE_E_INVALID)
        status = sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR,
                             sgi_buf_str(&text), (sgi_json){0});
    else if (!text.failed && op->refuses_arguments)
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
    if (!op->server->options.on_validate || sgi_op_has_ended(op))
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
                       op->item_name, validation.reason);
    if (refuse_arguments(call, verdict, validation.reason) == SEGUE_E_NOMEM)
        sgi_op_give_up(op, "Out of memory");
    return false;
}

/* ---- results ---- */

segue_status sgi_tool_check_begin(const segue_call *call, const segue_content *content)
{
    const sgi_op *op = call->op;
    bool promised = op->kind == &sgi_call_tool && op->item && op->item->has_output;
    if (!promised || (content && content->is_error) ||
        op->server->stage == SGI_SERVER_DEAD)
        return SEGUE_OK;
    if (!(content && content->structured.len)) {
        if (op->structured_lost)
            return SEGUE_E_NOMEM;
        if (!op->structured)
            return SEGUE_E_INVALID;
    }
    return op->server->options.on_validate ? SEGUE_E_STATE : SEGUE_OK;
}

/* What was set last counts; what a content sets comes with it. */
static sgi_json structured_of(const segue_call *call)
{
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, &call->closing, link)
        if (entry->kind == SGI_ENTRY_FIELDS)
            return sgi_json_get((sgi_json){entry->data, entry->len}, "structuredContent");
    return (sgi_json){call->op->structured, call->op->structured_len};
}

void sgi_tool_check_refuse(segue_call *call, const char *why)
{
    sgi_op *op = call->op;
    sgi_buf text;
    sgi_engine_log(op->engine, SEGUE_LOG_ERROR, "tool %s: outputSchema: %s",
                   op->item_name, why);
    sgi_buf_init(&text, sgi_engine_mem(op->engine));
    sgi_buf_add_lit(&text, "The result does not fit the tool's outputSchema: ");
    sgi_buf_add_str(&text, sgi_str_of(why));
    if (text.failed || sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR,
                                   sgi_buf_str(&text), (sgi_json){0}) == SEGUE_E_NOMEM)
        sgi_op_give_up(op, "The result does not fit the tool's outputSchema");
    sgi_buf_free(&text);
}

void sgi_tool_check_result(segue_call *call)
{
    sgi_op *op = call->op;
    sgi_validation validation = validation_of(op, SEGUE_VALIDATE_RESULT);
    validation.value = structured_of(call);
    segue_status verdict = sgi_validate(op->engine, &validation);
    if (sgi_op_has_ended(op)) /* otherwise, meanwhile */
        sgi_entry_list_free(sgi_engine_mem(op->engine), &call->closing);
    else if (verdict != SEGUE_OK)
        sgi_tool_check_refuse(call, validation.reason);
    else if (sgi_call_end(call, &call->closing) == SEGUE_E_NOMEM)
        sgi_op_give_up(op, "Out of memory");
    sgi_entry_list_free(sgi_engine_mem(op->engine), &call->closing);
}
