/* The functions by which a handler acts on its operation. Each function appends entries
 * to the log, or sends a notification while the request is open. When a limit is reached,
 * the operation ends with an error that names the limit (R-C-10). */
#include "engine/server/call.h"
#include "engine/server/call_report.h"

#include "engine/server/dialects.h"
#include "engine/server/emit.h"
#include "engine/server/shown.h"
#include "engine/server/task.h"
#include "engine/server/tool_check.h"

#include <stdio.h>

/* the maximum number of values in a CompleteResult, as the schema of MCP requires */
#define COMPLETION_MAX 100
#define FINAL_LONGEST "{\"isError\":true,\"immediate\":true}"

/* ---- appending results ---- */

static segue_status refuse(const segue_call *call, const char *why)
{
    return sgi_refuse(call->handle.engine, SEGUE_E_INVALID, "%s", why);
}

segue_status sgi_call_check_text(const segue_call *call, const char *what,
                                 const char *text)
{
    size_t at = 0;
    return sgi_utf8_valid(sgi_str_of(text), &at)
               ? SEGUE_OK
               : sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                            "%s is not UTF-8 at byte %zu", what, at);
}

static segue_status after_append(segue_call *call, segue_status status)
{
    sgi_op *op = call->op;
    if (status == SEGUE_OK)
        sgi_call_event_note_segments(call);
    if (status != SEGUE_E_LIMIT)
        return status;
    sgi_limit_text told = sgi_emit_describe_limit(op);
    sgi_refuse(call->handle.engine, status, "%s", told.text);
    if (sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(told.text),
                    sgi_str_of(told.data)) == SEGUE_E_NOMEM)
        sgi_op_end_internal_error(op, told.text);
    return status;
}

static bool fits_plain(const sgi_op *op, size_t more)
{
    return op->head.log_bytes + more <= op->committer->limits.max_result_bytes;
}

/* Turns a plain call into a task when `more` further bytes would make its result exceed
 * the limit for plain calls. A call that cannot become a task stays plain; appending the
 * bytes then ends the call with an error. */
static segue_status turn_in_time(segue_call *call, size_t more)
{
    const sgi_op *op = call->op;
    if (op->head.tasking != SGI_TASKING_MAY || sgi_op_is_logged(op) ||
        fits_plain(op, more))
        return SEGUE_OK;
    segue_status status = sgi_call_defer(call, 0);
    return status == SEGUE_E_NOMEM ? status : SEGUE_OK;
}

static size_t bytes_of(const struct sgi_entry_list *list)
{
    size_t bytes = 0;
    const sgi_entry *entry;
    TAILQ_FOREACH(entry, list, link)
        bytes += entry->len;
    return bytes;
}

/* Appends the entries of the list to the log. On failure, frees the entries. */
static segue_status append_list(segue_call *call, struct sgi_entry_list *list)
{
    segue_status status = turn_in_time(call, bytes_of(list));
    if (status == SEGUE_OK)
        return after_append(call, sgi_op_append_list(call->op, list));
    sgi_entry_list_free(sgi_engine_mem(call->handle.engine), list);
    return status;
}

static segue_status append(segue_call *call, sgi_entry_kind kind, sgi_str payload)
{
    segue_status status = turn_in_time(call, payload.n);
    return status == SEGUE_OK ? after_append(call, sgi_op_append(call->op, kind, payload))
                              : status;
}

static segue_status may_emit(segue_call *call)
{
    sgi_op *op = call->op;
    if (sgi_op_server(op)->stage == SGI_SERVER_DEAD)
        return sgi_refuse(call->handle.engine, SEGUE_E_CLOSED, "the server was closed");
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    if (sgi_op_handler_must_wait(op)) {
        call->wants_drain = true;
        return SEGUE_E_WOULD_BLOCK;
    }
    return SEGUE_OK;
}

static segue_status refuse_content(const segue_call *call)
{
    return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                      "the content has a part that a result of %s cannot have: such a "
                      "result consists of %s",
                      call->op->served->kind->method,
                      sgi_call_kind_shape_text(call->op->served->kind));
}

segue_status sgi_call_send(segue_call *call, const segue_content *content)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    segue_status status = sgi_content_fits(content, call->op->served->kind)
                              ? may_emit(call)
                              : refuse_content(call);
    if (status != SEGUE_OK)
        return status;
    if (!sgi_emit_add_content(call->op, &list, content)) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    return append_list(call, &list);
}

/* Writes a piece of the text of a resource. Only the first piece has the MIME type. */
static void write_contents(sgi_buf *out, const sgi_op *op, bool begins, sgi_str text)
{
    const sgi_item *item = op->served->item;
    sgi_json type = sgi_json_get((sgi_json){item->json, item->json_len}, "mimeType");
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "uri", sgi_str_of(op->served->item_name));
    if (begins && sgi_json_kind_of(type) == SGI_JSON_STRING)
        sgi_jw_member_raw(&w, "mimeType", type);
    else if (begins)
        sgi_jw_member_string(&w, "mimeType", SGI_STR("text/plain"));
    sgi_jw_member_string(&w, "text", text);
    sgi_jw_close(&w, '}');
}

/* Appends a text segment. place: the index of the block that the text extends or begins;
 * NULL = the segment names no index. */
static segue_status append_text(segue_call *call, const uint64_t *place, sgi_str text)
{
    sgi_buf *scratch = &call->handle.engine->scratch;
    sgi_buf_reset(scratch, 64 * 1024);
    if (place)
        sgi_emit_write_place(scratch, *place);
    if (call->op->served->kind == &sgi_call_resource)
        write_contents(scratch, call->op, !call->has_text, text);
    else
        sgi_write_text_block(scratch, text);
    if (place)
        sgi_buf_add_char(scratch, ']');
    if (scratch->failed)
        return SEGUE_E_NOMEM;
    return append(call, SGI_ENTRY_SEGMENT, sgi_buf_str(scratch));
}

segue_status sgi_call_send_text(segue_call *call, sgi_str text)
{
    const sgi_op *op = call->op;
    const sgi_call_kind *kind = op->served->kind;
    bool is_resource = kind == &sgi_call_resource;
    bool goes_on = is_resource && call->has_text;
    uint64_t place = goes_on ? call->text : op->head.result->blocks;
    segue_status status = is_resource || kind->shape == SGI_SHAPE_BLOCK
                              ? may_emit(call)
                              : refuse_content(call);
    if (status == SEGUE_OK)
        status =
            append_text(call, goes_on || sgi_emit_needs_place(op) ? &place : NULL, text);
    if (status == SEGUE_OK && is_resource) {
        call->has_text = true;
        call->text = place;
    }
    return status;
}

segue_status sgi_call_extend_text(segue_call *call, int64_t index, sgi_str text)
{
    const sgi_op *op = call->op;
    uint64_t count = op->head.result->blocks - op->head.result->anew;
    bool is_there = index >= 0 && (uint64_t)index < count;
    uint64_t place =
        is_there ? op->head.result->anew + (uint64_t)index : op->head.result->blocks;
    if (op->served->kind != &sgi_call_tool)
        return refuse(call, "only the result of a tool has numbered blocks: continue the "
                            "text of a resource by segue_call_send_text");
    segue_status status = may_emit(call);
    if (status != SEGUE_OK)
        return status;
    if (sgi_text_blocks_has(&op->head.result->texts, place))
        return append_text(call, &place, text);
    if (is_there)
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "block %lld of the result is not a text block, so no text can "
                          "be appended to it",
                          (long long)index);
    return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                      "there is no block %lld in the result yet: the result has %llu "
                      "blocks, counted from 0",
                      (long long)index, (unsigned long long)count);
}

/* True when replaced segments must stay in the result. SEP-1905 cannot withdraw sent
 * segments, so a client that merges segments keeps all segments. Only a client that
 * declared SGI_CAP_REPLACE drops replaced segments (R-1905-34). */
static bool keeps_segments(const sgi_op *op)
{
    return op->served->streams && !(op->served->caps & SGI_CAP_REPLACE);
}

segue_status sgi_call_replace_segments(segue_call *call)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    const char *opening = call->op->served->kind->opening;
    segue_status status = may_emit(call);
    if (status != SEGUE_OK)
        return status;
    if (keeps_segments(call->op))
        return call->op->head.result->anew == call->op->head.result->blocks
                   ? SEGUE_OK
                   : append(call, SGI_ENTRY_ANEW, SGI_STR("{}"));
    if (!sgi_emit_add_entry(mem, &list, SGI_ENTRY_REPLACE, SGI_STR("{}")) ||
        (opening &&
         !sgi_emit_add_entry(mem, &list, SGI_ENTRY_FIELDS, sgi_str_of(opening)))) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    status = append_list(call, &list);
    if (status == SEGUE_OK)
        call->has_text = false;
    return status;
}

/* True when the value is valid for the field of this name. Only the cache hints, ttlMs
 * and cacheScope, have rules for their values. */
static bool is_hint(const char *name, sgi_json value)
{
    int64_t ttl;
    int32_t scope;
    if (!strcmp(name, "ttlMs"))
        return sgi_ttl_read(value, &ttl);
    return strcmp(name, "cacheScope") != 0 || sgi_cache_scope_read(value, &scope);
}

segue_status sgi_call_set_field(segue_call *call, const char *name, const char *json,
                                size_t len)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    sgi_json value = {0};
    const char *taken = call->op->served->kind->list;
    if ((taken && !strcmp(name, taken)) || !strcmp(name, "isError") ||
        !strcmp(name, "resultType"))
        return refuse(call, "the library sets this member of the result itself");
    segue_status status = sgi_call_check_text(call, "the name", name);
    if (status == SEGUE_OK)
        status = sgi_engine_check_json(call->handle.engine, json, len, &value, NULL);
    if (status == SEGUE_OK && call->op->served->kind == &sgi_call_list &&
        !sgi_shown_is_field(name, value))
        status = refuse(call, "a list has only the field \"shown\", an array of strings");
    if (status == SEGUE_OK && call->op->served->kind->ages && !is_hint(name, value))
        status = refuse(call, "ttlMs has to be a number of at least 0, and cacheScope "
                              "\"private\" or \"public\"");
    if (status == SEGUE_OK)
        status = may_emit(call);
    if (status != SEGUE_OK || sgi_emit_is_untold(call->op, sgi_str_of(name)))
        return status;
    if (strcmp(name, "_meta") != 0
            ? !sgi_emit_add_field(mem, &list, sgi_str_of(name), value)
            : !sgi_emit_add_meta(mem, &list, value)) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    return TAILQ_EMPTY(&list) ? SEGUE_OK : append_list(call, &list);
}

segue_status sgi_call_set_completion(segue_call *call, const char *const *values,
                                     size_t count, int64_t total, bool has_more)
{
    sgi_buf text;
    if (call->op->served->kind != &sgi_call_completion)
        return refuse(call, "this is not a call of completion/complete");
    if (count > COMPLETION_MAX)
        return refuse(call, "a completion may have 100 values at most");
    for (size_t i = 0; i < count; i++)
        if (!values[i] || !sgi_utf8_valid(sgi_str_of(values[i]), NULL))
            return refuse(call, "a value is NULL or not UTF-8");
    sgi_buf_init(&text, sgi_engine_mem(call->handle.engine));
    sgi_jw w = sgi_jw_to(&text);
    sgi_jw_open(&w, '{');
    sgi_jw_key(&w, "values");
    sgi_jw_open(&w, '[');
    for (size_t i = 0; i < count; i++)
        sgi_jw_string(&w, sgi_str_of(values[i]));
    sgi_jw_close(&w, ']');
    if (total >= 0)
        sgi_jw_member_int(&w, "total", total);
    sgi_jw_key(&w, "hasMore");
    sgi_jw_bool(&w, has_more);
    sgi_jw_close(&w, '}');
    segue_status status = text.failed
                              ? SEGUE_E_NOMEM
                              : sgi_call_set_field(call, "completion", text.p, text.len);
    sgi_buf_free(&text);
    return status;
}

segue_status sgi_call_set_status(segue_call *call, const char *message)
{
    segue_status status = sgi_call_check_text(call, "the message", message);
    if (status == SEGUE_OK)
        status = may_emit(call);
    if (status == SEGUE_OK)
        status = turn_in_time(call, sgi_str_of(message).n);
    if (status != SEGUE_OK)
        return status;
    return after_append(call,
                        sgi_task_append_status(call->op, NULL, sgi_str_of(message)));
}

/* Appends the checkpoint to the log. */
static segue_status append_checkpoint(segue_call *call, const void *data, size_t len)
{
    const sgi_op *op = call->op;
    segue_status status = may_emit(call);
    if (status != SEGUE_OK)
        return status;
    if (!sgi_op_is_logged(op) && op->head.tasking != SGI_TASKING_MAY)
        return sgi_refuse(
            call->handle.engine, SEGUE_E_STATE,
            "the call cannot store a checkpoint, because it is not a task, cannot become "
            "one, and has no idempotency key");
    if (sgi_op_is_logged(op))
        return append(call, SGI_ENTRY_CHECKPOINT, (sgi_str){data, len});
    status = turn_in_time(call, len);
    if (status != SEGUE_OK)
        return status;
    status = sgi_op_append(call->op, SGI_ENTRY_CHECKPOINT, (sgi_str){data, len});
    if (sgi_op_is_logged(op) || status != SEGUE_E_LIMIT)
        return after_append(call, status);
    /* a checkpoint without room does not end a plain call */
    return sgi_refuse(call->handle.engine, status, "%s",
                      sgi_emit_describe_limit(op).text);
}

segue_status sgi_call_checkpoint(segue_call *call, const void *data, size_t len)
{
    segue_status status = append_checkpoint(call, data, len);
    if (status != SEGUE_OK)
        return status;
    call->checkpoint = call->op->head.next_log - 1;
    if (sgi_call_checkpoint_is_due(call))
        sgi_call_queue_events(call);
    return SEGUE_OK;
}

/* ---- ending the operation ---- */

/* Returns the payload of the final entry of a result. The member "immediate" means that
 * the result is the answer to a call that asked for a task. A result that is too large
 * for a plain call is sent as a task instead. */
static sgi_str final_payload(const segue_call *call, bool is_error, size_t more)
{
    const sgi_op *op = call->op;
    if (fits_plain(op, more) && !call->turned && sgi_srv_keeps_task_beside_result(op))
        return is_error ? SGI_STR(FINAL_LONGEST) : SGI_STR("{\"immediate\":true}");
    return is_error ? SGI_STR("{\"isError\":true}") : SGI_STR("{}");
}

bool sgi_emit_add_final(segue_call *call, struct sgi_entry_list *list, bool is_error)
{
    size_t more = bytes_of(list);
    return turn_in_time(call, more + strlen(FINAL_LONGEST)) == SEGUE_OK &&
           sgi_emit_add_entry(sgi_engine_mem(call->handle.engine), list, SGI_ENTRY_RESULT,
                              final_payload(call, is_error, more));
}

segue_status sgi_call_complete(segue_call *call, const segue_content *content)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    sgi_op *op = call->op;
    bool is_error = content && content->is_error;
    if (content && !sgi_content_fits(content, op->served->kind))
        return refuse_content(call);
    if (sgi_call_is_over(call))
        return sgi_call_refuse_ended(call);
    segue_status check = sgi_tool_result_needs_check(call, content);
    if (check == SEGUE_E_INVALID) {
        sgi_tool_check_fail_result(call, "the result has no structuredContent");
        return refuse(call, "the tool has an outputSchema, but its result has no "
                            "structuredContent: the call fails");
    }
    if (check != SEGUE_OK && check != SEGUE_E_STATE)
        return check;
    bool ok = !content || sgi_emit_add_content(op, &list, content);
    if (!ok || !sgi_emit_add_final(call, &list, is_error)) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    if (check == SEGUE_OK)
        return sgi_call_end(call, &list);
    sgi_call_check_then_end(call, &list);
    return SEGUE_OK;
}

segue_status sgi_call_end(segue_call *call, struct sgi_entry_list *list)
{
    sgi_op *op = call->op;
    uint64_t before = op->head.next_seg;
    segue_status status = after_append(call, sgi_op_append_list(op, list));
    if (status != SEGUE_OK)
        return status;
    if (op->head.final == SGI_FINAL_RESULT || op->head.final == SGI_FINAL_RESULT_IS_ERROR)
        op->served->closing_segments = op->head.next_seg - before;
    sgi_op_on_plain_end(op);
    sgi_call_end_turn(call);
    return SEGUE_OK;
}
