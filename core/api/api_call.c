/* Functions of segue_call, the handler's handle of a call. */
#include "api/guard.h"
#include "engine/error.h"
#include "engine/event.h"
#include "engine/server/call_trace.h"
#include "engine/server/grant.h"
#include "wire/log_level.h"

/* Takes no lock, because a call keeps its runtime. */
segue_runtime *segue_call_runtime(const segue_call *call)
{
    return call && call->handle.magic == SGI_MAGIC_CALL ? sgi_handle_runtime(call) : NULL;
}

const char *segue_call_method(const segue_call *call)
{
    return call && call->handle.magic == SGI_MAGIC_CALL ? call->op->served->kind->method
                                                        : "";
}

const char *segue_call_name(const segue_call *call)
{
    return call && call->handle.magic == SGI_MAGIC_CALL ? call->op->served->item_name
                                                        : "";
}

/* Takes the lock, because the name may change. A caller that was recovered from the store
 * without a name gets its name when it calls again. */
const char *segue_call_principal(const segue_call *call)
{
    if (sgi_enter(SGI_FN_segue_call_principal, call, SGI_MAGIC_CALL) != SEGUE_OK)
        return "";
    const char *name = call->op->served->who->name;
    sgi_leave(call);
    return name ? name : "";
}

/* Takes no lock, because the scopes of a call never change. */
int32_t segue_call_has_scope(const segue_call *call, const char *scope)
{
    bool ok = call && call->handle.magic == SGI_MAGIC_CALL && scope;
    return ok && sgi_op_has_scope(call->op, sgi_str_of(scope));
}

const char *segue_call_params(const segue_call *call, size_t *len)
{
    /* the text can be a part of a record, so it is useless without its length */
    bool ok = call && call->handle.magic == SGI_MAGIC_CALL && len;
    if (len)
        *len = ok ? call->op->served->params_len : 0;
    return ok ? call->op->served->params : "";
}

/* The functions that read the params of a call take no lock, because the params never
 * change. */
segue_status segue_call_argument(const segue_call *call, const char *name,
                                 const char **json, size_t *len)
{
    sgi_json value = {0};
    if (!call || call->handle.magic != SGI_MAGIC_CALL || !name || !json || !len)
        return SEGUE_E_INVALID;
    segue_status status = sgi_call_argument(call, name, &value);
    if (status != SEGUE_OK)
        return status;
    *json = value.p;
    *len = value.n;
    return SEGUE_OK;
}

segue_status segue_call_meta(const segue_call *call, const char *key, const char **json,
                             size_t *len)
{
    sgi_json value = {0};
    if (!call || call->handle.magic != SGI_MAGIC_CALL || !key || !json || !len)
        return SEGUE_E_INVALID;
    segue_status status = sgi_call_meta(call, key, &value);
    if (status != SEGUE_OK)
        return status;
    *json = value.p;
    *len = value.n;
    return SEGUE_OK;
}

/* This function and the next one take the lock, because reading the first header changes
 * the copy of all headers. */
segue_status segue_call_header(const segue_call *call, const char *name, size_t index,
                               const char **value, size_t *len)
{
    sgi_str found = {0};
    if (!name || !value)
        return SEGUE_E_INVALID;
    segue_status status = sgi_enter(SGI_FN_segue_call_header, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    status = sgi_call_header(call, sgi_str_of(name), index, &found);
    sgi_leave(call);
    if (status != SEGUE_OK)
        return status;
    *value = found.p;
    if (len)
        *len = found.n;
    return SEGUE_OK;
}

segue_status segue_call_header_at(const segue_call *call, size_t index, const char **name,
                                  const char **value, size_t *len)
{
    sgi_str title = {0}, found = {0};
    if (!name || !value)
        return SEGUE_E_INVALID;
    segue_status status = sgi_enter(SGI_FN_segue_call_header_at, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    status = sgi_call_header_at(call, index, &title, &found);
    sgi_leave(call);
    if (status != SEGUE_OK)
        return status;
    *name = title.p;
    *value = found.p;
    if (len)
        *len = found.n;
    return SEGUE_OK;
}

/* Takes the lock, because the context is dropped when the runtime ends. */
void *segue_call_context(const segue_call *call)
{
    if (sgi_enter(SGI_FN_segue_call_context, call, SGI_MAGIC_CALL) != SEGUE_OK)
        return NULL;
    void *context = sgi_call_context(call);
    sgi_leave(call);
    return context;
}

segue_status segue_call_argument_int(const segue_call *call, const char *name,
                                     int64_t *value)
{
    sgi_json json = {0};
    int64_t number;
    if (!call || call->handle.magic != SGI_MAGIC_CALL || !name || !value)
        return SEGUE_E_INVALID;
    segue_status status = sgi_call_argument(call, name, &json);
    if (status != SEGUE_OK)
        return status;
    if (!sgi_json_read_int(json, &number))
        return SEGUE_E_INVALID;
    *value = number;
    return SEGUE_OK;
}

segue_status segue_call_argument_text(segue_call *call, const char *name,
                                      const char **text, size_t *len)
{
    sgi_str decoded = {0};
    segue_status status =
        sgi_enter(SGI_FN_segue_call_argument_text, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    status =
        name && text ? sgi_call_argument_text(call, name, &decoded) : SEGUE_E_INVALID;
    sgi_leave(call);
    if (status != SEGUE_OK)
        return status;
    *text = decoded.p;
    if (len)
        *len = decoded.n;
    return SEGUE_OK;
}

segue_status segue_call_watch(segue_call *call, const segue_call_events *events)
{
    segue_call_events full;
    segue_status status = sgi_enter(SGI_FN_segue_call_watch, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    status = events ? sgi_copy_struct_in(&full, sizeof full, events) : SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_call_set_events(call, &full);
    sgi_leave(call);
    return status;
}

int32_t segue_call_is_cancelled(const segue_call *call)
{
    if (sgi_enter(SGI_FN_segue_call_is_cancelled, call, SGI_MAGIC_CALL) != SEGUE_OK)
        return 0;
    int32_t cancelled = call->cancelled;
    sgi_leave(call);
    return cancelled;
}

segue_status segue_call_send(segue_call *call, const segue_content *content,
                             segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_send, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = content && content->handle.magic == SGI_MAGIC_CONTENT
                 ? sgi_call_send(call, content)
                 : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_replace(segue_call *call, segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_replace, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = sgi_call_replace_segments(call);
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_set_field(segue_call *call, const char *name, const char *json,
                                  size_t len, segue_error **error)
{
    len = sgi_given_len(json, len);
    segue_status status = sgi_enter(SGI_FN_segue_call_set_field, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = name ? sgi_call_set_field(call, name, json, len) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_set_completion(segue_call *call, const char *const *values,
                                       size_t count, int64_t total, int32_t has_more,
                                       segue_error **error)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_call_set_completion, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = values || !count
                 ? sgi_call_set_completion(call, values, count, total, has_more != 0)
                 : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_progress(segue_call *call, double progress, double total,
                                 const char *message, segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_progress, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = sgi_call_progress(call, progress, total, message);
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_log(segue_call *call, const char *level, const char *json,
                            size_t len, segue_error **error)
{
    len = sgi_given_len(json, len);
    segue_status status = sgi_enter(SGI_FN_segue_call_log, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = level ? sgi_call_log(call, level, json, len) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_set_status(segue_call *call, const char *message,
                                   segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_set_status, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = message ? sgi_call_set_status(call, message) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_require_input(segue_call *call, const char *key,
                                      const char *method, const char *params, size_t len,
                                      segue_input_fn on_input, void *user,
                                      segue_free_fn free_user, segue_error **error)
{
    len = sgi_given_len(params, len);
    segue_status status =
        sgi_enter(SGI_FN_segue_call_require_input, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = method && on_input ? sgi_call_require_input(call, key, method, params, len,
                                                         on_input, user, free_user)
                                : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_hang_up(segue_call *call, int64_t retry_ms, segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_hang_up, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = retry_ms >= 0 ? sgi_call_hang_up(call, retry_ms) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_hold_turn(segue_call *call)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_hold_turn, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    status = sgi_call_hold_turn(call);
    sgi_leave(call);
    return status;
}

segue_status segue_call_set_trace_parent(segue_call *call, const char *trace_parent,
                                         segue_error **error)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_call_set_trace_parent, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = trace_parent ? sgi_call_set_trace_parent(call, sgi_str_of(trace_parent))
                          : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_trace_parent(segue_call *call, char *buf, size_t *len)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_trace_parent, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    sgi_str text = sgi_op_trace(call->op);
    if (!len)
        status = SEGUE_E_INVALID;
    else if (!sgi_is_trace_parent(text))
        status = SEGUE_E_NOT_FOUND;
    else
        status = sgi_copy_text_out(text, buf, len);
    sgi_leave(call);
    return status;
}

segue_status segue_call_end_turn(segue_call *call)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_end_turn, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    sgi_call_end_turn(call);
    sgi_leave(call);
    return SEGUE_OK;
}

segue_status segue_call_defer(segue_call *call, int64_t ttl_ms, segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_defer, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = ttl_ms >= -1 ? sgi_call_defer(call, ttl_ms) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_checkpoint(segue_call *call, const void *data, size_t len,
                                   segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_checkpoint, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = data || !len ? sgi_call_checkpoint(call, data, len) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_complete(segue_call *call, const segue_content *content,
                                 segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_complete, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = !content || content->handle.magic == SGI_MAGIC_CONTENT
                 ? sgi_call_complete(call, content)
                 : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_fail(segue_call *call, int32_t code, const char *message,
                             const char *data, size_t len, segue_error **error)
{
    len = sgi_given_len(data, len);
    segue_status status = sgi_enter(SGI_FN_segue_call_fail, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = message ? sgi_call_fail(call, code, message, data, len) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_complete_json(segue_call *call, const char *json, size_t len,
                                      segue_error **error)
{
    len = sgi_given_len(json, len);
    segue_status status =
        sgi_enter(SGI_FN_segue_call_complete_json, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = json ? sgi_call_complete_json(call, json, len) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_fail_with(segue_call *call, const segue_error *why,
                                  segue_error **error)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_fail_with, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = why ? sgi_call_fail_with(call, segue_error_read(why)) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_log_json(segue_call *call, const char *json, size_t len,
                                 segue_error **error)
{
    len = sgi_given_len(json, len);
    segue_status status = sgi_enter(SGI_FN_segue_call_log_json, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = json ? sgi_call_log_json(call, json, len) : SEGUE_E_INVALID;
    return sgi_leave_with_error(call, status, error);
}

const char *segue_call_log_level(const segue_call *call)
{
    if (sgi_enter(SGI_FN_segue_call_log_level, call, SGI_MAGIC_CALL) != SEGUE_OK)
        return NULL;
    int32_t level = sgi_call_log_level(call);
    sgi_leave(call);
    return level < 0 ? NULL : sgi_log_level_name(level);
}

/* Checks the text before the lock is taken, because streams call the function very
 * often. */
static segue_status check_text(const char *text, size_t len, segue_error **error)
{
    size_t at = 0;
    if (!text && len)
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    if (!sgi_utf8_valid((sgi_str){text, len}, &at))
        return sgi_error_return(error, &sgi_mem_libc, SEGUE_E_INVALID,
                                "the text is not UTF-8 at byte %zu", at);
    return SEGUE_OK;
}

segue_status segue_call_extend_text(segue_call *call, int64_t index, const char *text,
                                    size_t len, segue_error **error)
{
    len = sgi_given_len(text, len);
    segue_status status = check_text(text, len, error);
    if (status != SEGUE_OK)
        return status;
    status = sgi_enter(SGI_FN_segue_call_extend_text, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = sgi_call_extend_text(call, index, (sgi_str){text, len});
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_send_text(segue_call *call, const char *text, size_t len,
                                  segue_error **error)
{
    len = sgi_given_len(text, len);
    segue_status status = check_text(text, len, error);
    if (status != SEGUE_OK)
        return status;
    status = sgi_enter(SGI_FN_segue_call_send_text, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = sgi_call_send_text(call, (sgi_str){text, len});
    return sgi_leave_with_error(call, status, error);
}

segue_status segue_call_resumed(const segue_call *call, uint64_t *last_segment,
                                const void **data, size_t *len)
{
    segue_status status = sgi_enter(SGI_FN_segue_call_resumed, call, SGI_MAGIC_CALL);
    if (status != SEGUE_OK)
        return status;
    status = sgi_call_resumed(call, last_segment, data, len);
    sgi_leave(call);
    return status;
}

void segue_call_free(segue_call *call)
{
    if (sgi_enter(SGI_FN_segue_call_free, call, SGI_MAGIC_CALL) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(call);
    sgi_engine *engine = call->handle.engine;
    sgi_call_free(call);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}
