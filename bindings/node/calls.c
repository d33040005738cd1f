/* Calls: the functions with which a handler reads a call, sends its result and ends
 * it. */
#include "addon.h"

#define CALL(name)                                                                       \
    segue_call *name = sgnode_unwrap(frame, frame->arg[0], SGNODE_CALL);                 \
    if (!(name))                                                                         \
    return NULL

/* Makes a string of the text. Returns null for SEGUE_E_NOT_FOUND, and throws for any
 * other failure. */
static napi_value text_or_null(sgnode_frame *frame, segue_status status, const char *text,
                               size_t len)
{
    if (status == SEGUE_E_NOT_FOUND)
        return sgnode_null(frame->env);
    if (status != SEGUE_OK)
        return sgnode_throw(frame, status);
    return sgnode_text(frame->env, text, len);
}

static napi_value call_method(sgnode_frame *frame)
{
    CALL(call);
    return sgnode_string(frame->env, segue_call_method(call));
}

static napi_value call_name(sgnode_frame *frame)
{
    CALL(call);
    return sgnode_string(frame->env, segue_call_name(call));
}

static napi_value call_client(sgnode_frame *frame)
{
    CALL(call);
    return sgnode_number(frame->env, (double)segue_call_client(call));
}

static napi_value call_principal(sgnode_frame *frame)
{
    CALL(call);
    return sgnode_string(frame->env, segue_call_principal(call));
}

static napi_value call_has_scope(sgnode_frame *frame)
{
    const char *scope;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &scope))
        return NULL;
    return sgnode_bool(frame->env, segue_call_has_scope(call, scope));
}

static napi_value call_params(sgnode_frame *frame)
{
    size_t len;
    CALL(call);
    const char *params = segue_call_params(call, &len);
    return sgnode_text(frame->env, params, len);
}

static napi_value call_meta(sgnode_frame *frame)
{
    const char *key, *json = NULL;
    size_t len = 0;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &key))
        return NULL;
    segue_status status = segue_call_meta(call, key, &json, &len);
    return text_or_null(frame, status, json, len);
}

static napi_value header_text(sgnode_frame *frame, const char *text, size_t len)
{
    napi_value value;
    return napi_create_string_latin1(frame->env, text, len, &value) == napi_ok ? value
                                                                               : NULL;
}

static napi_value call_header(sgnode_frame *frame)
{
    const char *name, *text = NULL;
    size_t len = 0;
    int64_t index;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &name) ||
        !sgnode_int64(frame, frame->arg[2], 0, &index))
        return NULL;
    segue_status status = segue_call_header(call, name, (size_t)index, &text, &len);
    return status == SEGUE_OK ? header_text(frame, text, len)
                              : text_or_null(frame, status, NULL, 0);
}

/* Returns the array [name, value], or null. */
static napi_value call_header_at(sgnode_frame *frame)
{
    const char *name = NULL, *text = NULL;
    size_t len = 0;
    int64_t index;
    napi_value pair;
    CALL(call);
    if (!sgnode_int64(frame, frame->arg[1], 0, &index))
        return NULL;
    segue_status status = segue_call_header_at(call, (size_t)index, &name, &text, &len);
    if (status != SEGUE_OK)
        return text_or_null(frame, status, NULL, 0);
    napi_value title = sgnode_string(frame->env, name);
    napi_value value = header_text(frame, text, len);
    bool ok = title && value &&
              napi_create_array_with_length(frame->env, 2, &pair) == napi_ok &&
              napi_set_element(frame->env, pair, 0, title) == napi_ok &&
              napi_set_element(frame->env, pair, 1, value) == napi_ok;
    return ok ? pair : NULL;
}

/* Returns the function that the exchange was opened with, or null. */
static napi_value call_context(sgnode_frame *frame)
{
    napi_value value = NULL;
    CALL(call);
    const sgnode_user *context = segue_call_context(call);
    bool is_there =
        context && context->handler &&
        napi_get_reference_value(frame->env, context->handler, &value) == napi_ok;
    return is_there && value ? value : sgnode_null(frame->env);
}

static napi_value call_argument(sgnode_frame *frame)
{
    const char *name, *json = NULL;
    size_t len = 0;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &name))
        return NULL;
    segue_status status = segue_call_argument(call, name, &json, &len);
    return text_or_null(frame, status, json, len);
}

static napi_value call_argument_text(sgnode_frame *frame)
{
    const char *name, *text = NULL;
    size_t len = 0;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &name))
        return NULL;
    segue_status status = segue_call_argument_text(call, name, &text, &len);
    return text_or_null(frame, status, text, len);
}

static napi_value call_argument_int(sgnode_frame *frame)
{
    const int64_t safe = INT64_C(9007199254740991);
    const char *name;
    int64_t number = 0;
    napi_value value;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &name))
        return NULL;
    segue_status status = segue_call_argument_int(call, name, &number);
    if (status != SEGUE_OK)
        return text_or_null(frame, status, NULL, 0);
    if (number >= -safe && number <= safe)
        return sgnode_number(frame->env, (double)number);
    return napi_create_bigint_int64(frame->env, number, &value) == napi_ok ? value : NULL;
}

static napi_value call_watch(sgnode_frame *frame)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    sgnode_host *host;
    sgnode_user *user;
    segue_call *call = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_CALL, &host);
    if (!call || !sgnode_user_new(frame, host, frame->arg[1], &user))
        return NULL;
    events.user = user;
    events.free_user = sgnode_user_free;
    events.on_cancel = sgnode_on_cancel;
    events.on_drain = sgnode_on_drain;
    segue_status status = segue_call_watch(call, &events);
    if (status != SEGUE_OK)
        sgnode_user_free(user);
    return sgnode_done(frame, status);
}

static napi_value call_is_cancelled(sgnode_frame *frame)
{
    CALL(call);
    return sgnode_bool(frame->env, segue_call_is_cancelled(call));
}

/* ---- sending ---- */

static napi_value call_send(sgnode_frame *frame)
{
    CALL(call);
    segue_content *content = sgnode_unwrap(frame, frame->arg[1], SGNODE_CONTENT);
    return content ? sgnode_sent(frame, segue_call_send(call, content, &frame->error))
                   : NULL;
}

static napi_value call_send_text(sgnode_frame *frame)
{
    const char *text;
    size_t len;
    CALL(call);
    if (!sgnode_view(frame, frame->arg[1], false, &text, &len))
        return NULL;
    return sgnode_sent(frame, segue_call_send_text(call, text, len, &frame->error));
}

static napi_value call_extend_text(sgnode_frame *frame)
{
    const char *text;
    size_t len;
    int64_t index;
    CALL(call);
    if (!sgnode_int64(frame, frame->arg[1], -1, &index) ||
        !sgnode_view(frame, frame->arg[2], false, &text, &len))
        return NULL;
    return sgnode_sent(frame,
                       segue_call_extend_text(call, index, text, len, &frame->error));
}

static napi_value call_send_json(sgnode_frame *frame)
{
    const char *json;
    size_t len;
    sgnode_host *host;
    segue_content *content;
    segue_call *call = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_CALL, &host);
    if (!call || !sgnode_view(frame, frame->arg[1], false, &json, &len))
        return NULL;
    segue_status status = segue_content_new(host->runtime, &content);
    if (status != SEGUE_OK)
        return sgnode_throw(frame, status);
    status = segue_content_add_json(content, json, len, &frame->error);
    if (status == SEGUE_OK)
        status = segue_call_send(call, content, &frame->error);
    segue_content_free(content);
    return sgnode_sent(frame, status);
}

static napi_value call_replace(sgnode_frame *frame)
{
    CALL(call);
    return sgnode_sent(frame, segue_call_replace(call, &frame->error));
}

static napi_value call_set_field(sgnode_frame *frame)
{
    const char *name, *json;
    size_t len;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &name) ||
        !sgnode_view(frame, frame->arg[2], false, &json, &len))
        return NULL;
    return sgnode_sent(frame, segue_call_set_field(call, name, json, len, &frame->error));
}

static napi_value call_set_completion(sgnode_frame *frame)
{
    const char *const *values;
    size_t count;
    int64_t total;
    bool has_more;
    CALL(call);
    if (!sgnode_names(frame, frame->arg[1], &values, &count) ||
        !sgnode_int64(frame, frame->arg[2], -1, &total) ||
        !sgnode_flag(frame, frame->arg[3], &has_more))
        return NULL;
    return sgnode_sent(frame, segue_call_set_completion(call, values, count, total,
                                                        has_more, &frame->error));
}

static napi_value call_progress(sgnode_frame *frame)
{
    double progress, total;
    const char *message;
    CALL(call);
    if (!sgnode_double(frame, frame->arg[1], 0, &progress) ||
        !sgnode_double(frame, frame->arg[2], 0, &total) ||
        !sgnode_message(frame, frame->arg[3], true, &message))
        return NULL;
    return sgnode_done(
        frame, segue_call_progress(call, progress, total, message, &frame->error));
}

static napi_value call_log(sgnode_frame *frame)
{
    const char *level, *json;
    size_t len;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &level) ||
        !sgnode_view(frame, frame->arg[2], false, &json, &len))
        return NULL;
    return sgnode_done(frame, segue_call_log(call, level, json, len, &frame->error));
}

static napi_value call_log_json(sgnode_frame *frame)
{
    const char *json;
    size_t len;
    CALL(call);
    if (!sgnode_view(frame, frame->arg[1], false, &json, &len))
        return NULL;
    return sgnode_done(frame, segue_call_log_json(call, json, len, &frame->error));
}

static napi_value call_log_level(sgnode_frame *frame)
{
    CALL(call);
    const char *level = segue_call_log_level(call);
    return level ? sgnode_string(frame->env, level) : sgnode_null(frame->env);
}

static napi_value call_set_trace_parent(sgnode_frame *frame)
{
    const char *trace_parent;
    CALL(call);
    if (!sgnode_name(frame, frame->arg[1], false, &trace_parent))
        return NULL;
    return sgnode_done(frame,
                       segue_call_set_trace_parent(call, trace_parent, &frame->error));
}

static segue_status read_trace(void *handle, char *buf, size_t *len)
{
    return segue_call_trace_parent(handle, buf, len);
}

static napi_value call_trace_parent(sgnode_frame *frame)
{
    napi_value text;
    CALL(call);
    segue_status status = sgnode_read_text(frame->env, call, read_trace, &text);
    if (status == SEGUE_E_NOT_FOUND)
        return sgnode_null(frame->env);
    return status == SEGUE_OK ? text : sgnode_throw(frame, status);
}

static napi_value call_complete_json(sgnode_frame *frame)
{
    const char *json;
    size_t len;
    CALL(call);
    if (!sgnode_view(frame, frame->arg[1], false, &json, &len))
        return NULL;
    return sgnode_done(frame, segue_call_complete_json(call, json, len, &frame->error));
}

static napi_value call_set_status(sgnode_frame *frame)
{
    const char *message;
    CALL(call);
    if (!sgnode_message(frame, frame->arg[1], false, &message))
        return NULL;
    return sgnode_sent(frame, segue_call_set_status(call, message, &frame->error));
}

static napi_value call_require_input(sgnode_frame *frame)
{
    const char *key, *method, *json;
    size_t len;
    sgnode_host *host;
    sgnode_user *user;
    segue_call *call = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_CALL, &host);
    if (!call || !sgnode_name(frame, frame->arg[1], true, &key) ||
        !sgnode_name(frame, frame->arg[2], false, &method) ||
        !sgnode_view(frame, frame->arg[3], true, &json, &len) ||
        !sgnode_user_new(frame, host, frame->arg[4], &user))
        return NULL;
    segue_status status =
        segue_call_require_input(call, key, method, json, len, sgnode_on_input, user,
                                 sgnode_user_free, &frame->error);
    if (status != SEGUE_OK)
        sgnode_user_free(user);
    return sgnode_done(frame, status);
}

static napi_value call_hang_up(sgnode_frame *frame)
{
    int64_t retry_ms;
    CALL(call);
    if (!sgnode_int64(frame, frame->arg[1], 0, &retry_ms))
        return NULL;
    return sgnode_done(frame, segue_call_hang_up(call, retry_ms, &frame->error));
}

static napi_value call_end_turn(sgnode_frame *frame)
{
    CALL(call);
    return sgnode_done(frame, segue_call_end_turn(call));
}

static napi_value call_defer(sgnode_frame *frame)
{
    int64_t ttl_ms;
    CALL(call);
    if (!sgnode_int64(frame, frame->arg[1], 0, &ttl_ms))
        return NULL;
    return sgnode_done(frame, segue_call_defer(call, ttl_ms, &frame->error));
}

static napi_value call_checkpoint(sgnode_frame *frame)
{
    const char *data;
    size_t len;
    CALL(call);
    if (!sgnode_view(frame, frame->arg[1], false, &data, &len))
        return NULL;
    return sgnode_sent(frame, segue_call_checkpoint(call, data, len, &frame->error));
}

static napi_value call_resumed(sgnode_frame *frame)
{
    uint64_t last = 0;
    const void *data = NULL;
    size_t len = 0;
    napi_value list;
    CALL(call);
    segue_status status = segue_call_resumed(call, &last, &data, &len);
    if (status != SEGUE_OK)
        return text_or_null(frame, status, NULL, 0);
    napi_value number = sgnode_number(frame->env, (double)last);
    napi_value bytes = sgnode_bytes(frame->env, data, len);
    if (!number || !bytes ||
        napi_create_array_with_length(frame->env, 2, &list) != napi_ok ||
        napi_set_element(frame->env, list, 0, number) != napi_ok ||
        napi_set_element(frame->env, list, 1, bytes) != napi_ok)
        return NULL;
    return list;
}

/* ---- ending a call ---- */

static napi_value call_complete(sgnode_frame *frame)
{
    segue_content *content = NULL;
    CALL(call);
    if (!sgnode_is_none(frame, frame->arg[1])) {
        content = sgnode_unwrap(frame, frame->arg[1], SGNODE_CONTENT);
        if (!content)
            return NULL;
    }
    return sgnode_done(frame, segue_call_complete(call, content, &frame->error));
}

/* Adds the blocks of an array of JSON texts to the content. Returns SEGUE_E_INVALID, with
 * an exception or with details in frame->error, when an item is not valid. */
static segue_status add_blocks(sgnode_frame *frame, segue_content *content,
                               napi_value blocks)
{
    uint32_t count = 0;
    napi_value item;
    const char *json;
    size_t len;
    segue_status status = SEGUE_OK;
    if (napi_get_array_length(frame->env, blocks, &count) != napi_ok) {
        sgnode_type_error(frame, "an array", "blocks");
        return SEGUE_E_INVALID;
    }
    for (uint32_t i = 0; status == SEGUE_OK && i < count; i++) {
        if (napi_get_element(frame->env, blocks, i, &item) == napi_ok &&
            sgnode_view(frame, item, false, &json, &len))
            status = segue_content_add_json(content, json, len, &frame->error);
        else
            status = SEGUE_E_INVALID;
    }
    return status;
}

static segue_status fill_content(sgnode_frame *frame, segue_content *content)
{
    segue_status status = SEGUE_OK;
    const char *text;
    size_t len;
    bool is_error;
    if (!sgnode_view(frame, frame->arg[1], true, &text, &len))
        return SEGUE_E_INVALID;
    if (text)
        status = segue_content_add_text(content, text, len, &frame->error);
    if (status == SEGUE_OK && !sgnode_is_none(frame, frame->arg[2]))
        status = add_blocks(frame, content, frame->arg[2]);
    if (status != SEGUE_OK)
        return status;
    if (!sgnode_view(frame, frame->arg[3], true, &text, &len) ||
        !sgnode_flag(frame, frame->arg[4], &is_error))
        return SEGUE_E_INVALID;
    if (text)
        status = segue_content_set_structured(content, text, len, &frame->error);
    if (status == SEGUE_OK && is_error)
        status = segue_content_set_error(content, 1);
    return status;
}

static napi_value call_reply(sgnode_frame *frame)
{
    sgnode_host *host;
    segue_content *content;
    segue_call *call = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_CALL, &host);
    if (!call)
        return NULL;
    segue_status status = segue_content_new(host->runtime, &content);
    if (status == SEGUE_OK) {
        status = fill_content(frame, content);
        if (status == SEGUE_OK)
            status = segue_call_complete(call, content, &frame->error);
        segue_content_free(content);
    }
    /* After a failure the call has not ended: the caller must end and free the call. */
    if (status == SEGUE_OK)
        return sgnode_release(frame, SGNODE_CALL);
    return sgnode_throw(frame, status);
}

static napi_value call_fail(sgnode_frame *frame)
{
    int32_t code;
    const char *message, *data;
    size_t len;
    CALL(call);
    if (!sgnode_int32(frame, frame->arg[1], 0, &code) ||
        !sgnode_message(frame, frame->arg[2], false, &message) ||
        !sgnode_view(frame, frame->arg[3], true, &data, &len))
        return NULL;
    return sgnode_done(frame,
                       segue_call_fail(call, code, message, data, len, &frame->error));
}

static napi_value call_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_CALL);
}

const sgnode_row sgnode_call_rows[] = {
    {"callMethod", call_method},
    {"callName", call_name},
    {"callPrincipal", call_principal},
    {"callClient", call_client},
    {"callHasScope", call_has_scope},
    {"callParams", call_params},
    {"callMeta", call_meta},
    {"callHeader", call_header},
    {"callHeaderAt", call_header_at},
    {"callContext", call_context},
    {"callArgument", call_argument},
    {"callArgumentText", call_argument_text},
    {"callArgumentInt", call_argument_int},
    {"callWatch", call_watch},
    {"callIsCancelled", call_is_cancelled},
    {"callSend", call_send},
    {"callSendText", call_send_text},
    {"callExtendText", call_extend_text},
    {"callSendJson", call_send_json},
    {"callReplace", call_replace},
    {"callSetField", call_set_field},
    {"callSetCompletion", call_set_completion},
    {"callProgress", call_progress},
    {"callLog", call_log},
    {"callLogJson", call_log_json},
    {"callLogLevel", call_log_level},
    {"callSetTraceParent", call_set_trace_parent},
    {"callTraceParent", call_trace_parent},
    {"callCompleteJson", call_complete_json},
    {"callSetStatus", call_set_status},
    {"callRequireInput", call_require_input},
    {"callHangUp", call_hang_up},
    {"callEndTurn", call_end_turn},
    {"callDefer", call_defer},
    {"callCheckpoint", call_checkpoint},
    {"callResumed", call_resumed},
    {"callComplete", call_complete},
    {"callReply", call_reply},
    {"callFail", call_fail},
    {"callFree", call_free},
    {NULL, NULL},
};
