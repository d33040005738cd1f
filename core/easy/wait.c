/* Requests that a thread waits for.
 *
 * The waiting thread runs the runtime by segue_runtime_dispatch, unless another thread
 * does: dispatch then says SEGUE_E_THREAD, and the thread sleeps until its request has
 * ended or another waiting thread has stopped to dispatch. A thread outside of this file
 * says nothing when it stops to dispatch, so the sleeping thread tries again after
 * NAP_MS.
 *
 * The callbacks of a request can outlive the wait, after a timeout. So the wait is
 * counted: one reference is the waiting thread's, and free_user drops the other. One lock
 * guards all waits of the process. It is held for a few instructions only, and never
 * while the library is called. */
#include "text.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAP_MS 20
/* The time after the timeout of the request in which its end must be reported. A task is
 * cancelled then, which may take one second. */
#define GRACE_MS 3000

typedef struct wait {
    int refs;
    bool done;
    segue_status status;
    char *result;
    segue_error *error;
} wait;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void drop(void *user)
{
    wait *w = user;
    pthread_mutex_lock(&lock);
    bool last = --w->refs == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    free(w->result);
    segue_error_free(w->error);
    free(w);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    wait *w = user;
    char *result = NULL;
    segue_error *copy = NULL;
    (void)request;
    if (status == SEGUE_OK) {
        sgi_easy_text text = {0};
        sgi_easy_add(&text, json, len);
        status = sgi_easy_give(&text, &result);
    } else {
        segue_error_copy(error, &copy);
    }
    pthread_mutex_lock(&lock);
    w->status = status;
    w->result = result;
    w->error = copy;
    w->done = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- time ---- */

static int64_t now_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns the milliseconds until the deadline; -1 when there is none. */
static int64_t time_left(int64_t deadline)
{
    if (deadline < 0)
        return -1;
    int64_t left = deadline - now_ms(CLOCK_MONOTONIC);
    return left > 0 ? left : 0;
}

/* Sleeps until something has changed, at most NAP_MS. Returns whether the wait is
 * over. */
static bool nap(const wait *w)
{
    int64_t until = now_ms(CLOCK_REALTIME) + NAP_MS;
    struct timespec at = {.tv_sec = (time_t)(until / 1000),
                          .tv_nsec = (long)(until % 1000) * 1000000};
    pthread_mutex_lock(&lock);
    if (!w->done)
        pthread_cond_timedwait(&changed, &lock, &at);
    bool done = w->done;
    pthread_mutex_unlock(&lock);
    return done;
}

static bool is_done(const wait *w)
{
    pthread_mutex_lock(&lock);
    bool done = w->done;
    pthread_mutex_unlock(&lock);
    return done;
}

/* Lets another waiting thread dispatch. */
static void hand_over(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- waiting ---- */

/* Waits until the request has ended. Returns another status when it cannot be waited for
 * any longer. */
static segue_status await_end(segue_runtime *runtime, const wait *w, int64_t deadline)
{
    while (!is_done(w)) {
        int64_t left = time_left(deadline);
        if (left == 0)
            return SEGUE_E_TIMEOUT;
        segue_status status = segue_runtime_dispatch(runtime, left, 0, NULL);
        if (status == SEGUE_E_THREAD)
            nap(w);
        else
            hand_over();
        if (status != SEGUE_OK && status != SEGUE_E_THREAD && !is_done(w))
            return status;
    }
    return SEGUE_OK;
}

static segue_status fail(segue_status status, const char *why, segue_error **error)
{
    if (error)
        segue_error_new(status, why, error);
    return status;
}

/* Gives the outcome to the caller. */
static segue_status take(wait *w, char **result, segue_error **error)
{
    if (w->status == SEGUE_OK) {
        *result = w->result;
        w->result = NULL;
    } else if (error && w->error) {
        *error = w->error;
        w->error = NULL;
    } else {
        fail(w->status, segue_status_text(w->status), error);
    }
    return w->status;
}

/* Starts the request. The wait then has a reference of the request's callbacks. */
static segue_status start(segue_session *session, const char *method, const char *params,
                          int64_t timeout_ms, wait *w, segue_request **request,
                          segue_error **error)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    options.timeout_ms = timeout_ms;
    options.on_timeout = 1;
    events.user = w;
    events.free_user = drop;
    events.on_complete = on_complete;
    w->refs = 2;
    segue_status status =
        segue_request_start(session, method, params, params ? SEGUE_TO_NUL : 0, &options,
                            &events, request, error);
    if (status != SEGUE_OK)
        w->refs = 1;
    return status;
}

/* Says whether this thread may wait. Callbacks that are due run, because only dispatch
 * knows whether this thread runs a callback. */
static segue_status may_wait(segue_runtime *runtime, segue_error **error)
{
    if (segue_runtime_dispatch(runtime, 0, 1, NULL) != SEGUE_E_REENTRANT)
        return SEGUE_OK;
    return fail(SEGUE_E_REENTRANT,
                "a callback cannot wait for a request, because the thread that runs the "
                "callback would have to notice its end: use segue_request_start, or wait "
                "on another thread",
                error);
}

segue_status segue_request_run(segue_session *session, const char *method,
                               const char *params, int64_t timeout_ms, char **result,
                               segue_error **error)
{
    segue_runtime *runtime = segue_session_runtime(session);
    segue_request *request = NULL;
    if (!runtime || !method || !result || timeout_ms < 0)
        return fail(SEGUE_E_INVALID,
                    "the session was freed, or an argument is NULL or negative", error);
    segue_status status = may_wait(runtime, error);
    if (status != SEGUE_OK)
        return status;
    wait *w = calloc(1, sizeof *w);
    if (!w)
        return fail(SEGUE_E_NOMEM, segue_status_text(SEGUE_E_NOMEM), error);
    status = start(session, method, params, timeout_ms, w, &request, error);
    if (status == SEGUE_OK) {
        int64_t limit = timeout_ms > INT64_MAX / 2 ? INT64_MAX / 2 : timeout_ms;
        int64_t deadline = limit ? now_ms(CLOCK_MONOTONIC) + limit + GRACE_MS : -1;
        status = await_end(runtime, w, deadline);
        if (status == SEGUE_OK) {
            status = take(w, result, error);
        } else {
            segue_request_cancel(request);
            fail(status, segue_status_text(status), error);
        }
    }
    segue_request_free(request);
    drop(w);
    return status;
}

segue_status segue_call_tool(segue_session *session, const char *name,
                             const char *arguments, int64_t timeout_ms, char **result,
                             segue_error **error)
{
    char *params = NULL;
    if (!session || !name)
        return fail(SEGUE_E_INVALID, "the session or the name of the tool is NULL",
                    error);
    /* The arguments are checked alone, so that they cannot end their object. */
    segue_status status = arguments ? segue_json_check(segue_session_runtime(session),
                                                       arguments, SEGUE_TO_NUL, error)
                                    : SEGUE_OK;
    if (status != SEGUE_OK)
        return status;
    status = segue_json_pairs(&params, "name=%s arguments:%s", name,
                              arguments ? arguments : "{}");
    if (status != SEGUE_OK)
        return fail(status, "the name of the tool is not UTF-8, or there is no memory",
                    error);
    status = segue_request_run(session, "tools/call", params, timeout_ms, result, error);
    free(params);
    return status;
}
