/* The functions of the addon for sessions, requests and tasks. */
#include "addon.h"

#define REQUEST(name)                                                                    \
    segue_request *name = sgnode_unwrap(frame, frame->arg[0], SGNODE_REQUEST);           \
    if (!(name))                                                                         \
    return NULL

/* ---- sessions ---- */

static bool hook_session(sgnode_frame *frame, sgnode_user *user,
                         segue_session_events *table, int32_t events)
{
    if (!sgnode_user_hook(frame, user, SGNODE_HOOK_SECOND, frame->arg[5]))
        return false;
    *table = SEGUE_SESSION_EVENTS_INIT;
    table->user = user;
    table->free_user = sgnode_user_free;
    table->on_open = user->handler ? sgnode_on_open : NULL;
    table->on_closed = user->handler ? sgnode_on_closed : NULL;
    if (user->handler && events & 1 << SGB_NOTIFICATION)
        table->on_notification = sgnode_on_notification;
    if (user->handler && events & 1 << SGB_RECONNECT)
        table->on_reconnect = sgnode_on_reconnect;
    table->on_validate = user->hooks[SGNODE_HOOK_SECOND] ? sgnode_ask_validate : NULL;
    return true;
}

static napi_value session_open(sgnode_frame *frame)
{
    segue_session_options full;
    segue_session_events table;
    segue_session *session;
    sgnode_host *host;
    sgnode_user *user;
    int32_t events;
    segue_runtime *runtime =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_RUNTIME, &host);
    if (!runtime || !sgnode_options(frame, frame->arg[2], OPTIONS_SESSION, &full) ||
        !sgnode_int32(frame, frame->arg[4], -1, &events))
        return NULL;
    segue_transport *transport = sgnode_unwrap(frame, frame->arg[1], SGNODE_TRANSPORT);
    if (!transport || !sgnode_user_new(frame, host, frame->arg[3], &user))
        return NULL;
    segue_status status = SEGUE_E_INVALID;
    if (hook_session(frame, user, &table, events))
        status = segue_session_open(runtime, transport, &full, &table, &session,
                                    &frame->error);
    if (status != SEGUE_OK) {
        sgnode_user_free(user);
        return sgnode_throw(frame, status);
    }
    sgnode_consume(frame, frame->arg[1]);
    return sgnode_wrap(frame->self, SGNODE_SESSION, session, host);
}

static napi_value give_text(sgnode_frame *frame, void *handle, sgnode_read_fn read)
{
    napi_value text;
    segue_status status = sgnode_read_text(frame->env, handle, read, &text);
    return status == SEGUE_OK ? text : sgnode_throw(frame, status);
}

static segue_status read_peer(void *handle, char *buf, size_t *len)
{
    return segue_session_peer(handle, buf, len);
}

static napi_value session_peer(sgnode_frame *frame)
{
    segue_session *session = sgnode_unwrap(frame, frame->arg[0], SGNODE_SESSION);
    return session ? give_text(frame, session, read_peer) : NULL;
}

static napi_value session_close(sgnode_frame *frame)
{
    segue_session *session = sgnode_unwrap(frame, frame->arg[0], SGNODE_SESSION);
    return session ? sgnode_done(frame, segue_session_close(session)) : NULL;
}

static napi_value session_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_SESSION);
}

/* ---- requests ---- */

/* The values that each function needs to start a request. */
typedef struct asking {
    segue_request_options options;
    segue_request_events events;
    sgnode_host *host;
    sgnode_user *user;
    segue_request *request;
    bool is_kept; /* true = the JavaScript value of the request can serve another
                   * request later */
} asking;

/* Reads the options, the handler and the mask of events from the arguments. The options
 * are at index `at`, and the handler and the mask follow. If `at` is negative, there are
 * no options, and the handler is the second argument. Returns false with an exception on
 * failure. */
static bool begin_request(sgnode_frame *frame, asking *self, int at)
{
    int32_t events;
    int handler = at < 0 ? 1 : at + 1;
    napi_value options = at < 0 ? NULL : frame->arg[at];
    self->user = NULL;
    self->request = NULL;
    self->is_kept = false;
    if (!sgnode_options(frame, options, OPTIONS_REQUEST, &self->options) ||
        !sgnode_int32(frame, frame->arg[handler + 1], -1, &events))
        return false;
    if (!sgnode_is_none(frame, frame->arg[handler]) &&
        !sgnode_user_new(frame, self->host, frame->arg[handler], &self->user))
        return false;
    sgnode_request_table(&self->events, self->user, events);
    return true;
}

static napi_value end_request(sgnode_frame *frame, asking *self, segue_status status)
{
    if (status == SEGUE_OK && self->is_kept)
        return sgnode_wrap_kept(frame->self, self->request, self->user);
    if (status == SEGUE_OK)
        return sgnode_wrap(frame->self, SGNODE_REQUEST, self->request, self->host);
    sgnode_user_free(self->user);
    return sgnode_throw(frame, status);
}

static napi_value request_start(sgnode_frame *frame)
{
    asking self;
    const char *method, *params;
    size_t len;
    segue_session *session =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_SESSION, &self.host);
    if (!session || !begin_request(frame, &self, 3))
        return NULL;
    if (!sgnode_name(frame, frame->arg[1], false, &method) ||
        !sgnode_view(frame, frame->arg[2], true, &params, &len) ||
        !sgnode_flag(frame, frame->arg[6], &self.is_kept)) {
        sgnode_user_free(self.user);
        return NULL;
    }
    self.is_kept = self.is_kept && self.user;
    segue_status status = segue_request_start(session, method, params, len, &self.options,
                                              &self.events, &self.request, &frame->error);
    return end_request(frame, &self, status);
}

/* Starts a request with the JavaScript value and the handler of an earlier request that
 * was freed. */
static napi_value request_again(sgnode_frame *frame)
{
    asking self;
    const char *method, *params;
    size_t len;
    int32_t events;
    sgnode_box *box = sgnode_find_kept(frame, frame->arg[0], &self.user);
    if (!box)
        return NULL;
    segue_session *session =
        sgnode_unwrap_of(frame, frame->arg[1], SGNODE_SESSION, &self.host);
    if (!session || !sgnode_name(frame, frame->arg[2], false, &method) ||
        !sgnode_view(frame, frame->arg[3], true, &params, &len) ||
        !sgnode_options(frame, frame->arg[4], OPTIONS_REQUEST, &self.options) ||
        !sgnode_int32(frame, frame->arg[5], -1, &events) ||
        !sgnode_user_again(frame, self.user, self.host))
        return NULL;
    sgnode_request_table(&self.events, self.user, events);
    segue_status status = segue_request_start(session, method, params, len, &self.options,
                                              &self.events, &self.request, &frame->error);
    if (status == SEGUE_OK)
        sgnode_fill_kept(box, self.request);
    else
        sgnode_user_free(self.user);
    return sgnode_done(frame, status);
}

static napi_value session_take_input(sgnode_frame *frame)
{
    asking self;
    segue_session *session =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_SESSION, &self.host);
    if (!session || !begin_request(frame, &self, -1))
        return NULL;
    segue_status status =
        segue_session_take_input(session, &self.events, &self.request, &frame->error);
    return end_request(frame, &self, status);
}

static napi_value session_notify(sgnode_frame *frame)
{
    const char *method, *params;
    size_t len;
    segue_session *session = sgnode_unwrap(frame, frame->arg[0], SGNODE_SESSION);
    if (!session || !sgnode_name(frame, frame->arg[1], false, &method) ||
        !sgnode_view(frame, frame->arg[2], true, &params, &len))
        return NULL;
    return sgnode_done(frame,
                       segue_session_notify(session, method, params, len, &frame->error));
}

static napi_value request_resume(sgnode_frame *frame)
{
    asking self;
    const char *token;
    segue_session *session =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_SESSION, &self.host);
    if (!session || !sgnode_name(frame, frame->arg[1], false, &token) ||
        !begin_request(frame, &self, 2))
        return NULL;
    segue_status status = segue_request_resume(
        session, token, &self.options, &self.events, &self.request, &frame->error);
    return end_request(frame, &self, status);
}

segue_status sgnode_read_token(void *request, char *buf, size_t *len)
{
    return segue_request_token(request, buf, len);
}

static napi_value token_era(sgnode_frame *frame)
{
    const char *token;
    int32_t era = SEGUE_ERA_AUTO;
    segue_runtime *runtime = sgnode_unwrap(frame, frame->arg[0], SGNODE_RUNTIME);
    if (!runtime || !sgnode_name(frame, frame->arg[1], false, &token))
        return NULL;
    segue_status status = segue_token_era(runtime, token, &era, &frame->error);
    return status == SEGUE_OK ? sgnode_number(frame->env, era)
                              : sgnode_done(frame, status);
}

static napi_value request_token(sgnode_frame *frame)
{
    REQUEST(request);
    return give_text(frame, request, sgnode_read_token);
}

typedef struct member {
    segue_request *request;
    const char *key;
} member;

static segue_status read_meta(void *handle, char *buf, size_t *len)
{
    const member *self = handle;
    return segue_request_meta(self->request, self->key, buf, len);
}

static napi_value request_meta(sgnode_frame *frame)
{
    napi_value text;
    member self;
    REQUEST(request);
    self.request = request;
    if (!sgnode_name(frame, frame->arg[1], false, &self.key))
        return NULL;
    segue_status status = sgnode_read_text(frame->env, &self, read_meta, &text);
    if (status == SEGUE_E_NOT_FOUND)
        return sgnode_null(frame->env);
    return status == SEGUE_OK ? text : sgnode_throw(frame, status);
}

static napi_value request_answer(sgnode_frame *frame)
{
    const char *key, *json;
    size_t len;
    REQUEST(request);
    if (!sgnode_name(frame, frame->arg[1], false, &key) ||
        !sgnode_view(frame, frame->arg[2], false, &json, &len))
        return NULL;
    return sgnode_done(frame,
                       segue_request_answer(request, key, json, len, &frame->error));
}

static napi_value request_answer_error(sgnode_frame *frame)
{
    const char *key, *message, *data;
    size_t len;
    int32_t code;
    REQUEST(request);
    if (!sgnode_name(frame, frame->arg[1], false, &key) ||
        !sgnode_int32(frame, frame->arg[2], 0, &code) ||
        !sgnode_message(frame, frame->arg[3], false, &message) ||
        !sgnode_view(frame, frame->arg[4], true, &data, &len))
        return NULL;
    return sgnode_done(frame, segue_request_answer_error(request, key, code, message,
                                                         data, len, &frame->error));
}

static napi_value request_grant(sgnode_frame *frame)
{
    int64_t n;
    REQUEST(request);
    if (!sgnode_int64(frame, frame->arg[1], 0, &n))
        return NULL;
    return sgnode_done(frame, segue_request_grant(request, n));
}

static napi_value request_cancel(sgnode_frame *frame)
{
    REQUEST(request);
    return sgnode_done(frame, segue_request_cancel(request));
}

static napi_value request_detach(sgnode_frame *frame)
{
    REQUEST(request);
    return sgnode_done(frame, segue_request_detach(request));
}

static napi_value request_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_REQUEST);
}

/* ---- tasks ---- */

typedef segue_status (*attach_fn)(segue_session *session, const char *text,
                                  segue_task **out, segue_error **error);

static napi_value attach(sgnode_frame *frame, attach_fn by)
{
    const char *text;
    segue_task *task;
    sgnode_host *host;
    segue_session *session =
        sgnode_unwrap_of(frame, frame->arg[0], SGNODE_SESSION, &host);
    if (!session || !sgnode_name(frame, frame->arg[1], false, &text))
        return NULL;
    segue_status status = by(session, text, &task, &frame->error);
    if (status != SEGUE_OK)
        return sgnode_throw(frame, status);
    return sgnode_wrap(frame->self, SGNODE_TASK, task, host);
}

static napi_value task_attach(sgnode_frame *frame)
{
    return attach(frame, segue_task_attach);
}

static napi_value task_attach_token(sgnode_frame *frame)
{
    return attach(frame, segue_task_attach_token);
}

static napi_value task_id(sgnode_frame *frame)
{
    segue_task *task = sgnode_unwrap(frame, frame->arg[0], SGNODE_TASK);
    return task ? sgnode_string(frame->env, segue_task_id(task)) : NULL;
}

static napi_value task_get(sgnode_frame *frame)
{
    asking self;
    segue_task *task = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_TASK, &self.host);
    if (!task || !begin_request(frame, &self, -1))
        return NULL;
    segue_status status = segue_task_get(task, &self.events, &self.request);
    return end_request(frame, &self, status);
}

static napi_value task_get_state(sgnode_frame *frame)
{
    segue_task *task = sgnode_unwrap(frame, frame->arg[0], SGNODE_TASK);
    return task ? sgnode_number(frame->env, segue_task_get_state(task)) : NULL;
}

static napi_value task_watch(sgnode_frame *frame)
{
    asking self;
    segue_task *task = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_TASK, &self.host);
    if (!task || !begin_request(frame, &self, 1))
        return NULL;
    segue_status status =
        segue_task_watch(task, &self.options, &self.events, &self.request, &frame->error);
    return end_request(frame, &self, status);
}

static napi_value task_cancel(sgnode_frame *frame)
{
    asking self;
    segue_task *task = sgnode_unwrap_of(frame, frame->arg[0], SGNODE_TASK, &self.host);
    if (!task || !begin_request(frame, &self, -1))
        return NULL;
    segue_status status = segue_task_cancel(task, &self.events, &self.request);
    return end_request(frame, &self, status);
}

static napi_value task_free(sgnode_frame *frame)
{
    return sgnode_release(frame, SGNODE_TASK);
}

const sgnode_row sgnode_client_rows[] = {
    {"sessionOpen", session_open},
    {"sessionPeer", session_peer},
    {"sessionNotify", session_notify},
    {"sessionClose", session_close},
    {"sessionFree", session_free},
    {"taskAttach", task_attach},
    {"taskAttachToken", task_attach_token},
    {"taskId", task_id},
    {"taskGet", task_get},
    {"taskGetState", task_get_state},
    {"taskWatch", task_watch},
    {"taskCancel", task_cancel},
    {"taskFree", task_free},
    {NULL, NULL},
};

const sgnode_row sgnode_request_rows[] = {
    {"requestStart", request_start},
    {"requestAgain", request_again},
    {"sessionTakeInput", session_take_input},
    {"requestResume", request_resume},
    {"requestToken", request_token},
    {"tokenEra", token_era},
    {"requestMeta", request_meta},
    {"requestAnswer", request_answer},
    {"requestAnswerError", request_answer_error},
    {"requestGrant", request_grant},
    {"requestCancel", request_cancel},
    {"requestDetach", request_detach},
    {"requestFree", request_free},
    {NULL, NULL},
};
