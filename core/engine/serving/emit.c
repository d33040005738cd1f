/* What a handler says: each verb becomes entries of the log, or a notification while the
 * request is open. A limit that is reached ends the operation with a clean error
 * (R-C-10). */
#include "engine/serving/call.h"

#include "engine/dialect/tasks_2025.h"
#include "engine/serving/task.h"
#include "engine/serving/tool_check.h"

#include <stdio.h>

#define COMPLETION_MAX 100 /* schema, CompleteResult */

/* ---- arguments ---- */

segue_status sgi_call_meta(const segue_call *call, const char *key, sgi_json *value)
{
    sgi_json params = {call->op->params, call->op->params_len};
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
    sgi_decoded *decoded =
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

/* ---- emitting ---- */

static segue_status refuse(const segue_call *call, const char *why)
{
    return sgi_refuse(call->handle.engine, SEGUE_E_INVALID, "%s", why);
}

static segue_status check_text(const segue_call *call, const char *what, const char *text)
{
    size_t at = 0;
    return sgi_utf8_valid(sgi_str_of(text), &at)
               ? SEGUE_OK
               : sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                            "%s is not UTF-8 at byte %zu", what, at);
}

segue_status sgi_call_over(const segue_call *call)
{
    return sgi_refuse(call->handle.engine, SEGUE_E_TERMINAL, "%s",
                      call->lost ? "another server has taken the call over"
                                 : "the call has ended");
}

/* What stopped a result, and how the next one passes. */
static sgi_limit_told tell_size(const sgi_op *op)
{
    if (op->logged)
        return sgi_limit_advise("The result is larger than the server keeps", op->reached,
                                "log_overflow", "raise the limit on the server");
    if (op->passes) /* what was sent before does not count */
        return sgi_limit_advise("A part of the result is too large", op->reached, "limit",
                                "send it in smaller blocks, or raise the limit on the "
                                "server");
    return sgi_limit_advise(
        "The result is too large for one answer", op->reached, "partial_results_required",
        op->reply && op->reply->modern
            ? "let the call be a task, or raise the limit on the server"
            : "ask for it in pieces (allowPartial) or as a task, or raise the limit on "
              "the "
              "server");
}

static segue_status after_append(segue_call *call, segue_status status)
{
    sgi_op *op = call->op;
    if (status != SEGUE_E_LIMIT)
        return status;
    sgi_limit_told told = tell_size(op);
    sgi_refuse(call->handle.engine, status, "%s", told.text);
    if (sgi_op_fail(op, SGI_ENTRY_ERROR, SGI_RPC_INTERNAL_ERROR, sgi_str_of(told.text),
                    sgi_str_of(told.data)) == SEGUE_E_NOMEM)
        sgi_op_give_up(op, told.text);
    return status;
}

/* A plain call that may become a task does so before its result is larger than what is
 * kept of a plain one. */
static void turn_in_time(segue_call *call)
{
    sgi_op *op = call->op;
    if (op->may_turn && !op->is_task && op->log_bytes > op->limits.max_result_bytes / 2) {
        op->may_turn = false;
        sgi_call_defer(call, op->asked_ttl_ms);
    }
}

static segue_status may_emit(segue_call *call)
{
    sgi_op *op = call->op;
    if (op->server->stage == SGI_SERVER_DEAD)
        return sgi_refuse(call->handle.engine, SEGUE_E_CLOSED, "the server was closed");
    if (sgi_call_is_over(call))
        return sgi_call_over(call);
    turn_in_time(call);
    if (sgi_op_is_full(op)) {
        call->wants_drain = true;
        return SEGUE_E_WOULD_BLOCK;
    }
    return SEGUE_OK;
}

static bool add_entry(const sgi_mem *mem, struct sgi_entry_list *list, int32_t kind,
                      sgi_str payload)
{
    if (payload.n > UINT32_MAX / 2)
        return false;
    sgi_entry *entry = sgi_entry_new(mem, kind, payload.p, payload.n);
    if (entry)
        TAILQ_INSERT_TAIL(list, entry, link);
    return entry != NULL;
}

static bool add_field(const sgi_mem *mem, struct sgi_entry_list *list, sgi_str name,
                      sgi_json value)
{
    sgi_buf payload;
    sgi_buf_init(&payload, mem);
    sgi_jw w = sgi_jw_on(&payload);
    sgi_jw_open(&w, '{');
    sgi_jw_key_str(&w, name);
    sgi_jw_raw(&w, value);
    sgi_jw_close(&w, '}');
    bool ok =
        !payload.failed && add_entry(mem, list, SGI_ENTRY_FIELDS, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return ok;
}

/* Each stands behind the others. Its number tells where that is, unless some went on in
 * a block that was there. */
static bool tells_place(const sgi_op *op)
{
    return op->blocks != op->next_seg - 1 - op->voided_seg;
}

static void write_place(sgi_buf *out, uint64_t place)
{
    sgi_buf_add_char(out, '[');
    sgi_buf_add_uint(out, place);
    sgi_buf_add_char(out, ',');
}

static bool add_placed(const sgi_mem *mem, struct sgi_entry_list *list, uint64_t place,
                       sgi_str block)
{
    sgi_buf payload;
    sgi_buf_init(&payload, mem);
    write_place(&payload, place);
    sgi_buf_add_str(&payload, block);
    sgi_buf_add_char(&payload, ']');
    bool ok =
        !payload.failed && add_entry(mem, list, SGI_ENTRY_SEGMENT, sgi_buf_str(&payload));
    sgi_buf_free(&payload);
    return ok;
}

static bool add_block(const sgi_op *op, struct sgi_entry_list *list, size_t i,
                      sgi_str block)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    return tells_place(op) ? add_placed(mem, list, op->blocks + i, block)
                           : add_entry(mem, list, SGI_ENTRY_SEGMENT, block);
}

static bool add_content(const sgi_op *op, struct sgi_entry_list *list,
                        const segue_content *content)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    for (size_t i = 0; i < sgi_content_count(content); i++)
        if (!add_block(op, list, i, sgi_content_block(content, i)))
            return false;
    if (content->structured.len)
        return add_field(mem, list, SGI_STR("structuredContent"),
                         sgi_buf_str(&content->structured));
    return true;
}

static segue_status refuse_content(const segue_call *call)
{
    return sgi_refuse(
        call->handle.engine, SEGUE_E_INVALID,
        "the content has something that no result of %s has: that is made of "
        "%s",
        call->op->kind->method, sgi_shape_text(call->op->kind));
}

segue_status sgi_call_send(segue_call *call, const segue_content *content)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    segue_status status =
        sgi_content_fits(content, call->op->kind) ? may_emit(call) : refuse_content(call);
    if (status != SEGUE_OK)
        return status;
    if (!add_content(call->op, &list, content)) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    return after_append(call, sgi_op_append_list(call->op, &list));
}

/* With its place, where that has to be told. */
static segue_status append_text(segue_call *call, const uint64_t *place, sgi_str text)
{
    sgi_buf *scratch = &call->handle.engine->scratch;
    sgi_buf_reset(scratch, 64 * 1024);
    if (place)
        write_place(scratch, *place);
    sgi_text_block(scratch, text);
    if (place)
        sgi_buf_add_char(scratch, ']');
    if (scratch->failed)
        return SEGUE_E_NOMEM;
    return after_append(call,
                        sgi_op_append(call->op, SGI_ENTRY_SEGMENT, sgi_buf_str(scratch)));
}

segue_status sgi_call_send_text(segue_call *call, sgi_str text)
{
    const sgi_op *op = call->op;
    segue_status status =
        op->kind->shape == SGI_SHAPE_BLOCK ? may_emit(call) : refuse_content(call);
    if (status != SEGUE_OK)
        return status;
    return append_text(call, tells_place(op) ? &op->blocks : NULL, text);
}

segue_status sgi_call_extend_text(segue_call *call, int64_t index, sgi_str text)
{
    const sgi_op *op = call->op;
    uint64_t count = op->blocks - op->anew;
    bool is_there = index >= 0 && (uint64_t)index < count;
    uint64_t place = is_there ? op->anew + (uint64_t)index : op->blocks;
    if (op->kind != &sgi_call_tool)
        return refuse(call, "text goes on in the result of a tool only");
    segue_status status = may_emit(call);
    if (status != SEGUE_OK)
        return status;
    if (sgi_texts_has(&op->texts, place))
        return append_text(call, &place, text);
    if (is_there)
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "block %lld of the result is no text: only a text goes on",
                          (long long)index);
    return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                      "the result has no block %lld yet: it has %llu, counted from 0",
                      (long long)index, (unsigned long long)count);
}

/* SEP-1905 cannot take back what was pushed: whoever merges the segments has all of them,
 * but for a client that knows better. So all of them are in the result (R-1905-34). */
static bool keeps_segments(const sgi_op *op)
{
    return op->streams && !(op->caps & SGI_CAP_REPLACE);
}

segue_status sgi_call_replace(segue_call *call)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    const char *opening = call->op->kind->opening;
    segue_status status = may_emit(call);
    if (status != SEGUE_OK)
        return status;
    if (keeps_segments(call->op))
        return call->op->anew == call->op->blocks
                   ? SEGUE_OK
                   : after_append(call,
                                  sgi_op_append(call->op, SGI_ENTRY_ANEW, SGI_STR("{}")));
    if (!add_entry(mem, &list, SGI_ENTRY_REPLACE, SGI_STR("{}")) ||
        (opening && !add_entry(mem, &list, SGI_ENTRY_FIELDS, sgi_str_of(opening)))) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    return after_append(call, sgi_op_append_list(call->op, &list));
}

/* Of the hints for caches, each has its form. */
static bool is_hint(const char *name, sgi_json value)
{
    int64_t ttl;
    int32_t scope;
    if (!strcmp(name, "ttlMs"))
        return sgi_ttl_read(value, &ttl);
    return strcmp(name, "cacheScope") != 0 || sgi_scope_read(value, &scope);
}

/* Answers before 2026-07-28 have no hints for caches. */
static bool is_untold(const sgi_op *op, const char *name)
{
    return op->kind->ages && op->reply && !op->reply->modern &&
           (!strcmp(name, "ttlMs") || !strcmp(name, "cacheScope"));
}

segue_status sgi_call_set_field(segue_call *call, const char *name, const char *json,
                                size_t len)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    sgi_json value = {0};
    const char *taken = call->op->kind->list;
    if ((taken && !strcmp(name, taken)) || !strcmp(name, "isError") ||
        !strcmp(name, "resultType"))
        return refuse(call, "the library sets this member of the result itself");
    segue_status status = check_text(call, "the name", name);
    if (status == SEGUE_OK)
        status = sgi_engine_json(call->handle.engine, json, len, &value, NULL);
    if (status == SEGUE_OK && call->op->kind->ages && !is_hint(name, value))
        status = refuse(call, "ttlMs is a number from 0 on, cacheScope \"private\" or "
                              "\"public\"");
    if (status == SEGUE_OK)
        status = may_emit(call);
    if (status != SEGUE_OK || is_untold(call->op, name))
        return status;
    if (!add_field(mem, &list, sgi_str_of(name), value)) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    return after_append(call, sgi_op_append_list(call->op, &list));
}

segue_status sgi_call_set_completion(segue_call *call, const char *const *values,
                                     size_t count, int64_t total, bool has_more)
{
    sgi_buf text;
    if (call->op->kind != &sgi_call_completion)
        return refuse(call, "the call is not one of completion/complete");
    if (count > COMPLETION_MAX)
        return refuse(call, "there are more than 100 values");
    for (size_t i = 0; i < count; i++)
        if (!values[i] || !sgi_utf8_valid(sgi_str_of(values[i]), NULL))
            return refuse(call, "a value is NULL or not UTF-8");
    sgi_buf_init(&text, sgi_engine_mem(call->handle.engine));
    sgi_jw w = sgi_jw_on(&text);
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
    segue_status status = check_text(call, "the message", message);
    if (status == SEGUE_OK)
        status = may_emit(call);
    if (status != SEGUE_OK)
        return status;
    return after_append(call, sgi_task_status(call->op, NULL, sgi_str_of(message)));
}

segue_status sgi_call_checkpoint(segue_call *call, const void *data, size_t len)
{
    segue_status status = may_emit(call);
    if (status != SEGUE_OK)
        return status;
    if (!call->op->logged)
        return sgi_refuse(call->handle.engine, SEGUE_E_STATE,
                          "the call is not in the store: it is neither a task nor has it "
                          "a key");
    return after_append(
        call, sgi_op_append(call->op, SGI_ENTRY_CHECKPOINT, (sgi_str){data, len}));
}

/* ---- the end ---- */

/* A task that tracks an immediate result is there only because of it, and says so. What
 * outgrows a plain call is no immediate result. */
static sgi_str final_payload(const segue_call *call, bool is_error)
{
    const sgi_op *op = call->op;
    bool fits = op->log_bytes <= op->limits.max_result_bytes / 2;
    if (fits && !call->turned && sgi_tasks_2025_tracks(op))
        return is_error ? SGI_STR("{\"isError\":true,\"immediate\":true}")
                        : SGI_STR("{\"immediate\":true}");
    return is_error ? SGI_STR("{\"isError\":true}") : SGI_STR("{}");
}

segue_status sgi_call_complete(segue_call *call, const segue_content *content)
{
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    struct sgi_entry_list list = TAILQ_HEAD_INITIALIZER(list);
    sgi_op *op = call->op;
    sgi_str payload = final_payload(call, content && content->is_error);
    if (content && !sgi_content_fits(content, op->kind))
        return refuse_content(call);
    if (sgi_call_is_over(call))
        return sgi_call_over(call);
    segue_status check = sgi_tool_check_begin(call, content);
    if (check == SEGUE_E_INVALID) {
        sgi_tool_check_refuse(call, "there is no structuredContent");
        return refuse(call, "the tool has an outputSchema and the result has no "
                            "structuredContent: the call has failed");
    }
    if (check != SEGUE_OK && check != SEGUE_E_STATE)
        return check;
    if ((content && !add_content(op, &list, content)) ||
        !add_entry(mem, &list, SGI_ENTRY_RESULT, payload)) {
        sgi_entry_list_free(mem, &list);
        return SEGUE_E_NOMEM;
    }
    if (check == SEGUE_OK)
        return sgi_call_end(call, &list);
    sgi_call_close_later(call, &list);
    return SEGUE_OK;
}

segue_status sgi_call_end(segue_call *call, struct sgi_entry_list *list)
{
    sgi_op *op = call->op;
    uint64_t before = op->next_seg;
    segue_status status = after_append(call, sgi_op_append_list(op, list));
    if (status != SEGUE_OK)
        return status;
    if (op->final == SGI_FINAL_RESULT || op->final == SGI_FINAL_RESULT_IS_ERROR)
        op->closing_segments = op->next_seg - before;
    sgi_op_settle(op);
    sgi_call_end_turn(call);
    return SEGUE_OK;
}

/* Codes that MCP reserves and does not define may not be sent (R-0-4). */
static bool may_send_code(int32_t code)
{
    return !(code >= -32099 && code <= -32000) || code == SGI_RPC_HEADER_MISMATCH ||
           code == SGI_RPC_MISSING_CAPABILITY || code == SGI_RPC_UNSUPPORTED_VERSION;
}

/* Each revision has a code of its own for it; the message and the data name the URI in
 * all of them. */
static segue_status fail_not_found(segue_call *call, const char *message)
{
    const sgi_op *op = call->op;
    const sgi_mem *mem = sgi_engine_mem(call->handle.engine);
    sgi_buf data, text;
    sgi_buf_init(&text, mem);
    sgi_buf_init(&data, mem);
    sgi_say_which(&text, sgi_str_of(message), sgi_str_of(op->item_name));
    sgi_jw w = sgi_jw_on(&data);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "uri", sgi_str_of(op->item_name));
    sgi_jw_close(&w, '}');
    segue_status status =
        data.failed || text.failed
            ? SEGUE_E_NOMEM
            : sgi_op_fail(call->op, SGI_ENTRY_ERROR,
                          sgi_not_found_code(!op->reply || op->reply->modern),
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
        return sgi_call_over(call);
    segue_status status = check_text(call, "the message", message);
    if (status != SEGUE_OK)
        return status;
    if (call->op->kind == &sgi_call_resource && code == SGI_RPC_RESOURCE_NOT_FOUND)
        return fail_not_found(call, message);
    if (!may_send_code(code))
        return sgi_refuse(call->handle.engine, SEGUE_E_INVALID,
                          "the protocol keeps the code %d for itself", (int)code);
    if (data)
        status = sgi_engine_json(call->handle.engine, data, len, &value, NULL);
    if (status != SEGUE_OK)
        return status;
    status = sgi_op_fail(call->op, SGI_ENTRY_ERROR, code, sgi_str_of(message), value);
    sgi_call_end_turn(call);
    return status;
}
