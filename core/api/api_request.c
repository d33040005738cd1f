/* Functions of the requests of a client, and of the handles of its tasks. */
#include "api/guard.h"
#include "engine/client/request.h"
#include "engine/dialect/following/follow.h"
#include "engine/dialect/tasks_2025/follow_2025.h"
#include "engine/response_modes.h"

/* Gives the application a handle of the request in *out, unless out is NULL. The caller
 * holds the lock. */
static void hand_out(segue_request *request, segue_request **out)
{
    if (out) {
        *out = request;
        sgi_handle_note_given(request);
    } else {
        sgi_request_unref(request);
    }
}

/* Returns the name of the first option with a wrong value, or NULL when all options
 * are right. */
static const char *wrong_request_option(const segue_request_options *o)
{
    sgi_str key = sgi_str_of(o->idempotency_key);
    if (o->timeout_ms < 0)
        return "timeout_ms";
    if (o->credit < 0)
        return "credit";
    if (o->ttl_ms < 0)
        return "ttl_ms";
    if (o->seen < 0 || o->seen >= SGI_COUNT_MAX)
        return "seen";
    if (o->response_modes & ~(uint32_t)SGI_MODES_ALL)
        return "response_modes";
    if (!sgi_utf8_valid(sgi_str_of(o->log_level), NULL))
        return "log_level";
    if (key.p && (key.n < 16 || key.n > 128 || !sgi_utf8_valid(key, NULL)))
        return "idempotency_key";
    if (key.p && o->no_idempotency)
        return "no_idempotency";
    return NULL;
}

/* Checks the capabilities of a request, and skips white space before them. */
static segue_status check_capabilities(sgi_engine *engine, segue_request_options *options)
{
    sgi_json value = {0};
    const char *given = options->capabilities;
    if (!given)
        return SEGUE_OK;
    segue_status status =
        sgi_engine_check_json(engine, given, strlen(given), &value, NULL);
    if (status == SEGUE_OK && sgi_json_kind_of(value) != SGI_JSON_OBJECT)
        status = sgi_refuse(engine, SEGUE_E_INVALID,
                            "the request option capabilities is not a JSON object");
    options->capabilities = value.p;
    return status;
}

static segue_status take_request_structs(sgi_engine *engine,
                                         segue_request_options *options,
                                         const segue_request_options *given_options,
                                         segue_request_events *events,
                                         const segue_request_events *given_events)
{
    segue_status status = sgi_copy_struct_in(options, sizeof *options, given_options);
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(events, sizeof *events, given_events);
    if (status != SEGUE_OK)
        return status;
    const char *wrong = wrong_request_option(options);
    return wrong
               ? sgi_refuse(engine, SEGUE_E_INVALID, "the request option %s is %s", wrong,
                            !strcmp(wrong, "idempotency_key")
                                ? "not 16 to 128 bytes of UTF-8"
                                : "out of range")
               : check_capabilities(engine, options);
}

segue_status segue_request_start(segue_session *session, const char *method,
                                 const char *params, size_t len,
                                 const segue_request_options *options,
                                 const segue_request_events *events, segue_request **out,
                                 segue_error **error)
{
    len = sgi_given_len(params, len);
    segue_request_options full;
    segue_request_events callbacks;
    segue_request *request;
    sgi_request_spec spec = {.options = &full, .events = &callbacks};
    segue_status status =
        sgi_enter(SGI_FN_segue_request_start, session, SGI_MAGIC_SESSION);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    spec.method = sgi_str_of(method);
    if (!spec.method.n || !sgi_utf8_valid(spec.method, NULL))
        status = sgi_refuse(session->engine, SEGUE_E_INVALID,
                            "the method is NULL, empty or not UTF-8");
    if (status == SEGUE_OK)
        status =
            take_request_structs(session->engine, &full, options, &callbacks, events);
    if (status == SEGUE_OK && params)
        status = sgi_engine_check_json(session->engine, params, len, &spec.params, NULL);
    if (status == SEGUE_OK && params && sgi_json_kind_of(spec.params) != SGI_JSON_OBJECT)
        status = sgi_refuse(session->engine, SEGUE_E_INVALID,
                            "the params are not a JSON object");
    if (status == SEGUE_OK)
        status = sgi_2025_check_modes_of_call(session, full.response_modes);
    if (status == SEGUE_OK)
        status = sgi_request_new(session, &spec, &request);
    if (status == SEGUE_OK)
        hand_out(request, out);
    return sgi_leave_with_error(session, status, error);
}

segue_status segue_session_take_input(segue_session *session,
                                      const segue_request_events *events,
                                      segue_request **out, segue_error **error)
{
    segue_request_options defaults = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events callbacks;
    segue_request *request;
    sgi_request_spec spec = {.options = &defaults, .events = &callbacks};
    segue_status status =
        sgi_enter(SGI_FN_segue_session_take_input, session, SGI_MAGIC_SESSION);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = sgi_copy_struct_in(&callbacks, sizeof callbacks, events);
    if (status == SEGUE_OK && !callbacks.on_input)
        status = sgi_refuse(session->engine, SEGUE_E_INVALID,
                            "the callback on_input is missing");
    if (status == SEGUE_OK)
        status = sgi_request_new(session, &spec, &request);
    if (status == SEGUE_OK)
        hand_out(request, out);
    return sgi_leave_with_error(session, status, error);
}

segue_status segue_request_resume(segue_session *session, const char *token,
                                  const segue_request_options *options,
                                  const segue_request_events *events, segue_request **out,
                                  segue_error **error)
{
    segue_request_options full;
    segue_request_events callbacks;
    segue_request *request;
    segue_status status =
        sgi_enter(SGI_FN_segue_request_resume, session, SGI_MAGIC_SESSION);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status =
        token ? take_request_structs(session->engine, &full, options, &callbacks, events)
              : SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_request_new_from_token(session, token, &full, &callbacks, &request);
    if (status == SEGUE_OK)
        hand_out(request, out);
    return sgi_leave_with_error(session, status, error);
}

segue_status segue_request_token(segue_request *request, char *buf, size_t *len)
{
    sgi_buf token;
    segue_status status =
        sgi_enter(SGI_FN_segue_request_token, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return status;
    sgi_buf_init(&token, sgi_engine_mem(request->engine));
    status = len ? sgi_resume_token_write(request, &token) : SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_copy_text_out(sgi_buf_str(&token), buf, len);
    sgi_buf_free(&token);
    sgi_leave(request);
    return status;
}

segue_status segue_request_take_result(segue_request *request, char **text, size_t *len,
                                       size_t *size, int32_t *is_error)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_request_take_result, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return status;
    if (!text || !len || !size || !is_error)
        status = SEGUE_E_INVALID;
    else if (request->phase != SGI_PHASE_REPORTED)
        status = SEGUE_E_STATE;
    else if (!request->result.len)
        status = SEGUE_E_NOT_FOUND;
    if (status == SEGUE_OK) {
        *text = request->result.p;
        *len = request->result.len;
        *size = request->result.cap;
        *is_error = request->says_error;
        sgi_buf_init(&request->result, request->result.mem);
    }
    sgi_leave(request);
    return status;
}

segue_status segue_token_era(segue_runtime *runtime, const char *token, int32_t *era,
                             segue_error **error)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_token_era, runtime);
    if (status == SEGUE_OK && (!token || !era))
        status = SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    sgi_enter_runtime(runtime);
    status = sgi_resume_token_era(sgi_runtime_engine(runtime), token, era);
    return sgi_leave_runtime(runtime, status, error);
}

segue_status segue_request_meta(segue_request *request, const char *key, char *buf,
                                size_t *len)
{
    sgi_json value = {0};
    segue_status status =
        sgi_enter(SGI_FN_segue_request_meta, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return status;
    if (key)
        value = sgi_follow_meta(request, key);
    if (!key || !len)
        status = SEGUE_E_INVALID;
    else
        status = value.n ? sgi_copy_text_out(value, buf, len) : SEGUE_E_NOT_FOUND;
    sgi_leave(request);
    return status;
}

static segue_status no_question(segue_request *request, const char *key,
                                segue_status status)
{
    return status == SEGUE_E_NOT_FOUND
               ? sgi_refuse(request->engine, status,
                            "the request has no open question with the key %s", key)
               : status;
}

segue_status segue_request_answer(segue_request *request, const char *key,
                                  const char *json, size_t len, segue_error **error)
{
    len = sgi_given_len(json, len);
    sgi_json value = {0};
    segue_status status =
        sgi_enter(SGI_FN_segue_request_answer, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = key ? sgi_engine_check_json(request->engine, json, len, &value, NULL)
                 : SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = no_question(request, key, sgi_request_answer(request, key, value));
    return sgi_leave_with_error(request, status, error);
}

segue_status segue_request_answer_error(segue_request *request, const char *key,
                                        int32_t code, const char *message,
                                        const char *data, size_t len, segue_error **error)
{
    len = sgi_given_len(data, len);
    sgi_json value = {0};
    sgi_str text = sgi_str_of(message);
    segue_status status =
        sgi_enter(SGI_FN_segue_request_answer_error, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    if (!key || !message || !sgi_utf8_valid(text, NULL))
        status = SEGUE_E_INVALID;
    else if (data)
        status = sgi_engine_check_json(request->engine, data, len, &value, NULL);
    if (status == SEGUE_OK)
        status = no_question(request, key,
                             sgi_request_answer_error(request, key, code, text, value));
    return sgi_leave_with_error(request, status, error);
}

segue_status segue_request_grant(segue_request *request, int64_t n)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_request_grant, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return status;
    status = sgi_request_grant_credit(request, n);
    sgi_leave(request);
    return status;
}

segue_status segue_request_cancel(segue_request *request)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_request_cancel, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return status;
    status = sgi_request_cancel(request);
    sgi_leave(request);
    return status;
}

segue_status segue_request_detach(segue_request *request)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_request_detach, request, SGI_MAGIC_REQUEST);
    if (status != SEGUE_OK)
        return status;
    status = sgi_request_detach(request);
    sgi_leave(request);
    return status;
}

void segue_request_free(segue_request *request)
{
    if (sgi_enter(SGI_FN_segue_request_free, request, SGI_MAGIC_REQUEST) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(request);
    sgi_engine *engine = request->engine;
    sgi_request_unref(request);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}

/* ---- task ---- */

typedef segue_status (*attach_fn)(segue_session *session, const char *text,
                                  segue_task **out);

static segue_status attach(sgi_fn fn, attach_fn by, segue_session *session,
                           const char *text, segue_task **out, segue_error **error)
{
    segue_task *task;
    segue_status status = sgi_enter(fn, session, SGI_MAGIC_SESSION);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = out ? by(session, text, &task) : SEGUE_E_INVALID;
    if (status == SEGUE_OK) {
        sgi_handle_note_given(task);
        *out = task;
    }
    return sgi_leave_with_error(session, status, error);
}

segue_status segue_task_attach(segue_session *session, const char *task_id,
                               segue_task **out, segue_error **error)
{
    return attach(SGI_FN_segue_task_attach, sgi_task_handle_new_for_id, session, task_id,
                  out, error);
}

segue_status segue_task_attach_token(segue_session *session, const char *token,
                                     segue_task **out, segue_error **error)
{
    return attach(SGI_FN_segue_task_attach_token, sgi_task_handle_new_from_token, session,
                  token, out, error);
}

const char *segue_task_id(const segue_task *task)
{
    return task && task->handle.magic == SGI_MAGIC_TASK ? task->id : "";
}

typedef segue_status (*ask_fn)(segue_task *task, const segue_request_events *events,
                               segue_request **out);

static segue_status ask(sgi_fn fn, segue_task *task, ask_fn send,
                        const segue_request_events *events, segue_request **out)
{
    segue_request_events callbacks;
    segue_request *request;
    segue_status status = sgi_enter(fn, task, SGI_MAGIC_TASK);
    if (status != SEGUE_OK)
        return status;
    status = sgi_copy_struct_in(&callbacks, sizeof callbacks, events);
    if (status == SEGUE_OK)
        status = send(task, &callbacks, &request);
    if (status == SEGUE_OK)
        hand_out(request, out);
    sgi_leave(task);
    return status;
}

segue_status segue_task_get(segue_task *task, const segue_request_events *events,
                            segue_request **out)
{
    return ask(SGI_FN_segue_task_get, task, sgi_task_handle_get, events, out);
}

segue_status segue_task_cancel(segue_task *task, const segue_request_events *events,
                               segue_request **out)
{
    return ask(SGI_FN_segue_task_cancel, task, sgi_task_handle_cancel, events, out);
}

int32_t segue_task_get_state(const segue_task *task)
{
    if (sgi_enter(SGI_FN_segue_task_get_state, task, SGI_MAGIC_TASK) != SEGUE_OK)
        return SEGUE_TASK_UNKNOWN;
    int32_t state = task->state;
    sgi_leave(task);
    return state;
}

segue_status segue_task_watch(segue_task *task, const segue_request_options *options,
                              const segue_request_events *events, segue_request **out,
                              segue_error **error)
{
    segue_request_options full;
    segue_request_events callbacks;
    segue_request *request;
    segue_status status = sgi_enter(SGI_FN_segue_task_watch, task, SGI_MAGIC_TASK);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status =
        take_request_structs(task->handle.engine, &full, options, &callbacks, events);
    if (status == SEGUE_OK)
        status = sgi_task_handle_watch(task, &full, &callbacks, &request);
    if (status == SEGUE_OK)
        hand_out(request, out);
    return sgi_leave_with_error(task, status, error);
}

void segue_task_free(segue_task *task)
{
    if (sgi_enter(SGI_FN_segue_task_free, task, SGI_MAGIC_TASK) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(task);
    sgi_engine *engine = task->handle.engine;
    sgi_task_handle_unref(task);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}
