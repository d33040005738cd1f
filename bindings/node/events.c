/* Callbacks of the library that become events. Each callback runs inside runtimeDispatch
 * (or runtimeFree), copies its arguments into JavaScript values and appends one event.
 * The JavaScript handlers run later, when the batch is read.
 *
 * V8 ends the process when memory is short. In two cases V8 fails without ending the
 * process: V8 makes no string beyond 512 MB, and no value for a worker that is being
 * terminated. A request that lost an event in such a case is cancelled. The request then
 * receives no further event except its COMPLETE, with SEGUE_E_NOMEM.
 *
 * Segments of one request in one batch share one event, as long as no other event of that
 * request comes between them. The event's list has the values of one segment after the
 * other (segment.ts reads the list). A segment has one of two forms:
 *
 *     text                                 a plain text block; number and index follow
 *                                          those of the preceding segment
 *     null number index replaces text JSON any other segment; if JSON is null, the block
 *                                          is a plain text block */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

/* ---- users ---- */

static bool refer(sgnode_frame *frame, napi_value function, napi_ref *ref)
{
    *ref = NULL;
    if (sgnode_is_none(frame, function))
        return true;
    if (sgnode_typeof(frame, function) != napi_function) {
        sgnode_type_error(frame, "a function", "handler");
        return false;
    }
    if (napi_create_reference(frame->env, function, 1, ref) == napi_ok)
        return true;
    sgnode_throw(frame, SEGUE_E_NOMEM);
    return false;
}

bool sgnode_user_new(sgnode_frame *frame, sgnode_host *host, napi_value handler,
                     sgnode_user **user)
{
    sgnode_user *made = calloc(1, sizeof *made);
    if (!made) {
        sgnode_throw(frame, SEGUE_E_NOMEM);
        return false;
    }
    if (handler && !refer(frame, handler, &made->handler)) {
        free(made);
        return false;
    }
    made->host = sgnode_host_ref(host);
    *user = made;
    return true;
}

bool sgnode_user_hook(sgnode_frame *frame, sgnode_user *user, int which,
                      napi_value function)
{
    return refer(frame, function, &user->hooks[which]);
}

/* Makes the reference from an idle user (of a request that has ended) to its handler
 * weak. With a strong reference nothing could be collected: the handler keeps the box
 * alive, and the box keeps the idle user. */
static void become_idle(sgnode_user *user)
{
    napi_env env = user->host->self->env;
    uint32_t count;
    sgnode_segments_end(user);
    user->is_idle = true;
    user->is_broken = false;
    if (env && user->handler)
        napi_reference_unref(env, user->handler, &count);
}

bool sgnode_user_again(sgnode_frame *frame, sgnode_user *user, sgnode_host *host)
{
    napi_value handler = NULL;
    uint32_t count;
    if (!user->is_idle || user->host != host || !user->handler ||
        napi_get_reference_value(frame->env, user->handler, &handler) != napi_ok ||
        !handler) {
        sgnode_throw(frame, SEGUE_E_STATE);
        return false;
    }
    if (napi_reference_ref(frame->env, user->handler, &count) != napi_ok) {
        sgnode_throw(frame, SEGUE_E_NOMEM);
        return false;
    }
    user->is_idle = false;
    return true;
}

void sgnode_user_free(void *opaque)
{
    sgnode_user *user = opaque;
    if (!user)
        return;
    if (user->keeper) {
        become_idle(user);
        return;
    }
    sgnode_host *host = user->host;
    napi_env env = host->self->env;
    if (env && user->handler)
        napi_delete_reference(env, user->handler);
    for (int i = 0; i < SGNODE_HOOKS; i++)
        if (env && user->hooks[i])
            napi_delete_reference(env, user->hooks[i]);
    sgnode_segments_end(user);
    free(user->segments.items);
    free(user->answer);
    free(user);
    sgnode_host_unref(host);
}

static napi_env begin(const sgnode_user *user)
{
    return user->host->has_batch ? user->host->self->env : NULL;
}

static void tell(sgnode_user *user, int kind, napi_value a, napi_value b, napi_value c)
{
    sgnode_push(user->host, user->handler, kind, a, b, c);
}

/* ---- server ---- */

static void push_call(sgnode_user *user, segue_call *call, int kind)
{
    size_t len;
    napi_env env = begin(user);
    if (!env) {
        segue_call_free(call);
        return;
    }
    const char *params = segue_call_params(call, &len);
    napi_value b = sgnode_text(env, params, len);
    napi_value c = sgnode_string(env, segue_call_name(call));
    napi_value a = NULL;
    if (b && c)
        a = sgnode_wrap(user->host->self, SGNODE_CALL, call, user->host);
    else
        segue_call_free(call);
    if (a)
        tell(user, kind, a, b, c);
}

/* Appends a CALLED event. The handler runs later, when the batch is read. The call's
 * first turn stays open until the handler has run. */
void sgnode_on_call(void *user, segue_call *call)
{
    bool waits = segue_call_hold_turn(call) == SEGUE_OK;
    push_call(user, call, waits ? SGB_CALLED_NOW : SGB_CALLED);
}

void sgnode_on_completion(void *user, segue_call *call)
{
    push_call(user, call, SGB_COMPLETION);
}

static void push_plain(sgnode_user *user, int kind)
{
    if (begin(user))
        tell(user, kind, NULL, NULL, NULL);
}

void sgnode_on_cancel(void *user, segue_call *call)
{
    (void)call;
    push_plain(user, SGB_CANCEL);
}

void sgnode_on_drain(void *user, segue_call *call)
{
    (void)call;
    push_plain(user, SGB_DRAIN);
}

void sgnode_on_idle(void *user)
{
    push_plain(user, SGB_IDLE);
}

void sgnode_on_client_open(void *opaque, uint64_t client, const char *principal,
                           const char *json, size_t len)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    if (env)
        tell(user, SGB_CLIENT_OPEN, sgnode_number(env, (double)client),
             sgnode_string(env, principal), sgnode_text(env, json, len));
}

void sgnode_on_client_closed(void *opaque, uint64_t client)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    if (env)
        tell(user, SGB_CLIENT_CLOSED, sgnode_number(env, (double)client), NULL, NULL);
}

void sgnode_on_input(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len)
{
    napi_env env = begin(user);
    (void)call;
    if (!env)
        return;
    napi_value answer = sgnode_text(env, json, len);
    tell(user, SGB_INPUT, sgnode_number(env, answer ? status : SEGUE_E_NOMEM), answer,
         NULL);
}

/* ---- session ---- */

void sgnode_on_open(void *user, segue_session *session)
{
    (void)session;
    push_plain(user, SGB_OPEN);
}

void sgnode_on_closed(void *opaque, segue_session *session, const segue_error *error)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    (void)session;
    if (env)
        tell(user, SGB_CLOSED, sgnode_error_info(env, error), NULL, NULL);
}

void sgnode_on_reconnect(void *opaque, segue_session *session, int32_t attempt,
                         int64_t delay_ms, const char *reason)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    (void)session;
    if (env)
        tell(user, SGB_RECONNECT, sgnode_number(env, attempt),
             sgnode_number(env, (double)delay_ms), sgnode_string(env, reason));
}

void sgnode_on_notification(void *opaque, segue_session *session, const char *method,
                            const char *params, size_t len)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    (void)session;
    if (env)
        tell(user, SGB_NOTIFICATION, sgnode_string(env, method),
             sgnode_text(env, params, len), NULL);
}

/* ---- request ---- */

static napi_env goes_on(const sgnode_user *user)
{
    return user->is_broken ? NULL : begin(user);
}

static void break_off(sgnode_user *user, segue_request *request)
{
    user->is_broken = true;
    segue_request_cancel(request);
}

/* Appends an event of the request. If a, b or c is NULL (not the JavaScript null), a
 * value could not be made. The request has then lost the event and is cancelled. */
static void pass(sgnode_user *user, segue_request *request, int kind, napi_value a,
                 napi_value b, napi_value c)
{
    sgnode_segments_end(user);
    if (!a || !b || !c || !sgnode_push(user->host, user->handler, kind, a, b, c))
        break_off(user, request);
}

void sgnode_segments_end(sgnode_user *user)
{
    sgnode_host *host = user->host;
    if (!user->is_open)
        return;
    sgnode_user **place = &host->open;
    while (*place != user)
        place = &(*place)->next;
    *place = user->next;
    user->is_open = false;
    napi_value array = sgnode_list_end(host->self, &user->segments);
    if (array)
        host->batch.items[user->slot] = array;
}

static bool begin_list(sgnode_user *user)
{
    sgnode_host *host = user->host;
    if (!sgnode_push(host, user->handler, SGB_SEGMENTS, NULL, NULL, NULL))
        return false;
    user->slot = host->batch.count - 3;
    user->segments.count = 0;
    user->is_open = true;
    user->next = host->open;
    host->open = user;
    return true;
}

static bool add_full(sgnode_user *user, napi_env env, const segue_segment_view *view,
                     napi_value text, bool plain)
{
    sgnode_list *list = &user->segments;
    return sgnode_list_add(list, sgnode_null(env)) &&
           sgnode_list_add(list, sgnode_number(env, (double)view->number)) &&
           sgnode_list_add(list, sgnode_number(env, (double)view->index)) &&
           sgnode_list_add(list, sgnode_bool(env, view->replaces)) &&
           sgnode_list_add(list, text) &&
           sgnode_list_add(list,
                           sgnode_text(env, plain ? NULL : view->data, view->data_len));
}

static bool add_segment(sgnode_user *user, napi_env env, const segue_segment *segment)
{
    const segue_segment_view *view = segue_segment_read(segment);
    size_t text_len = 0;
    const char *bare = sgb_bare_text(view->data, view->data_len, &text_len);
    const char *text = bare ? bare : segue_segment_text(segment, &text_len);
    bool follows = user->segments.count > 0 && view->number == user->number + 1 &&
                   view->index == user->index + 1 && !view->replaces;
    bool plain = bare || (text && sgb_is_plain_block(view->data, view->data_len));
    napi_value decoded = sgnode_text(env, text, text_len);
    user->number = view->number;
    user->index = view->index;
    if (plain && follows)
        return sgnode_list_add(&user->segments, decoded);
    return add_full(user, env, view, decoded, plain);
}

static void on_segments(void *opaque, segue_request *request, segue_segment_batch *batch)
{
    sgnode_user *user = opaque;
    napi_env env = goes_on(user);
    const segue_segment *segment;
    if (!env)
        return;
    bool told = user->is_open || begin_list(user);
    while (told && (segment = segue_segment_batch_next(batch)))
        told = add_segment(user, env, segment);
    if (!told)
        break_off(user, request);
}

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    napi_env env = goes_on(user);
    if (env)
        pass(user, request, SGB_PROGRESS, sgnode_number(env, progress),
             sgnode_number(env, total), sgnode_string(env, message));
}

static void on_log(void *user, segue_request *request, const char *json, size_t len)
{
    napi_env env = goes_on(user);
    if (env)
        pass(user, request, SGB_LOG, sgnode_text(env, json, len), sgnode_null(env),
             sgnode_null(env));
}

static void on_question(void *user, segue_request *request, const char *key,
                        const char *method, const char *params, size_t len)
{
    napi_env env = goes_on(user);
    if (env)
        pass(user, request, SGB_QUESTION, sgnode_string(env, key),
             sgnode_string(env, method), sgnode_text(env, params, len));
}

/* Returns the current token of the request. The token covers the segments that arrived
 * before this event, and no later segment of the same batch. */
static napi_value token_now(napi_env env, segue_request *request)
{
    napi_value token;
    if (sgnode_read_text(env, request, sgnode_read_token, &token) != SEGUE_OK)
        token = sgnode_null(env);
    return token;
}

static void on_task(void *user, segue_request *request, const char *task_id)
{
    napi_env env = goes_on(user);
    if (env)
        pass(user, request, SGB_BECAME_TASK, sgnode_string(env, task_id),
             token_now(env, request), sgnode_null(env));
}

static void on_resumable(void *user, segue_request *request)
{
    napi_env env = goes_on(user);
    if (env)
        pass(user, request, SGB_BECAME_RESUMABLE, token_now(env, request),
             sgnode_null(env), sgnode_null(env));
}

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    napi_env env = goes_on(user);
    if (env)
        pass(user, request, SGB_STATUS, sgnode_string(env, status),
             sgnode_string(env, message), sgnode_null(env));
}

static void on_complete(void *opaque, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    bool says_error;
    (void)json;
    (void)len;
    if (!env)
        return;
    sgnode_segments_end(user);
    napi_value result =
        user->is_broken ? NULL : sgnode_take_result(user->host, request, &says_error);
    if (result && status == SEGUE_OK && user->keeper)
        /* frees the request: it has ended, so its token is not needed any more */
        sgnode_empty_kept(user->keeper);
    if (result)
        tell(user, SGB_COMPLETE, sgnode_number(env, status), result,
             error ? sgnode_error_info(env, error) : sgnode_bool(env, says_error));
    else
        tell(user, SGB_COMPLETE, sgnode_number(env, SEGUE_E_NOMEM), NULL, NULL);
}

void sgnode_request_table(segue_request_events *table, sgnode_user *user, int32_t events)
{
    *table = SEGUE_REQUEST_EVENTS_INIT;
    if (!user)
        return;
    table->user = user;
    table->free_user = sgnode_user_free;
    table->on_complete = on_complete;
    if (events & 1 << SGB_SEGMENTS)
        table->on_segments = on_segments;
    if (events & 1 << SGB_PROGRESS)
        table->on_progress = on_progress;
    if (events & 1 << SGB_LOG)
        table->on_log = on_log;
    if (events & 1 << SGB_QUESTION)
        table->on_input = on_question;
    if (events & 1 << SGB_BECAME_TASK)
        table->on_task = on_task;
    if (events & 1 << SGB_BECAME_RESUMABLE)
        table->on_resumable = on_resumable;
    if (events & 1 << SGB_STATUS)
        table->on_status = on_status;
}

/* ---- transports ---- */

void sgnode_on_stderr(void *opaque, const char *text, size_t len)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    if (env)
        tell(user, SGB_STDERR, sgnode_text(env, text, len), NULL, NULL);
}

void sgnode_on_stderr_end(void *opaque)
{
    push_plain(opaque, SGB_STDERR);
    sgnode_user_free(opaque);
}

void sgnode_on_authorize(void *opaque, const char *url, const char *state)
{
    sgnode_user *user = opaque;
    napi_env env = begin(user);
    if (env)
        tell(user, SGB_AUTHORIZE, sgnode_string(env, url), sgnode_string(env, state),
             NULL);
}
