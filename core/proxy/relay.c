/* Turns a call of a client into a request to an upstream. Progress, log messages and
 * questions of the upstream go to the client. When the call ends, the request ends, and
 * when the request ends, the call ends. */
#include "client.h"
#include "handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void relay_unref(relay *r)
{
    if (--r->refs)
        return;
    upstream_leave(r->up);
    segments_free(&r->passage);
    relay_forget_former(r);
    text_free(&r->params);
    free(r->token);
    free(r);
}

static void unref(void *user)
{
    relay_unref(user);
}

/* ---- params ---- */

/* True for a member of _meta that belongs only to the conversation with the client. The
 * session with the upstream writes its own member of this name. */
static bool is_own_meta(json key)
{
    static const char *const prefixes[] = {"\"io.modelcontextprotocol/", "\"dev.segue/"};
    static const char *const names[] = {"progressToken", "partialResultToken",
                                        "allowPartial", "resumable"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t len = strlen(prefixes[i]);
        if (key.n > len && !memcmp(key.p, prefixes[i], len))
            return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is(key, names[i]))
            return true;
    return false;
}

void relay_add_meta(text *params, json client_params)
{
    json meta = json_get(client_params, "_meta"), key, value;
    bool begun = false;
    for (size_t at = 0; json_next(meta, &at, &key, &value);) {
        if (is_own_meta(key))
            continue;
        if (!begun) {
            text_add_key(params, "_meta");
            text_add_str(params, "{");
        } else {
            text_add_str(params, ",");
        }
        begun = true;
        text_add_json(params, key);
        text_add_str(params, ":");
        text_add_json(params, value);
    }
    if (begun)
        text_add_str(params, "}");
}

/* ---- the end ---- */

static void end_call(relay *r)
{
    relay_stop_timers(r);
    segue_call_free(r->call);
    r->call = NULL;
}

void relay_fail(relay *r, const char *reason, const char *message)
{
    relay_fail_with(r, reason, message, (json){NULL, 0});
}

void relay_fail_with(relay *r, const char *reason, const char *message, json received)
{
    text data = {.p = NULL}, words = {.p = NULL};
    const char *name = r->up->source->config->name;
    text_add_str(&data, "{");
    text_add_key(&data, "reason");
    text_add_quoted(&data, reason, strlen(reason));
    text_add_key(&data, "upstream");
    text_add_quoted(&data, name, strlen(name));
    text_add_key(&data, "stderr");
    upstream_add_errors(r->up, &data);
    if (received.n) {
        text_add_key(&data, "received");
        text_add_json(&data, received);
    }
    text_add_str(&data, "}");
    text_add_str(&words, "upstream ");
    text_add_str(&words, name);
    text_add_str(&words, ": ");
    text_add_str(&words, message);
    if (r->call && !data.failed && !words.failed)
        segue_call_fail(r->call, -32603, words.p, data.p, data.len, NULL);
    log_event(SEGUE_LOG_INFO, "call_failed", name, "%s %s: %s: %s", r->method,
              r->item ? r->item->name : "", reason, message);
    text_free(&data);
    text_free(&words);
    end_call(r);
}

static void fail_lost(relay *r, segue_status status, json received,
                      const segue_error *error)
{
    char words[700];
    const char *why = segue_error_read(error)->message;
    if (segue_error_read(error)->unsent) {
        snprintf(words, sizeof words, "the server cannot be reached: %s",
                 r->up->last_error[0] ? r->up->last_error : why);
        relay_fail(r, "upstream_unavailable", words);
    } else if (status == SEGUE_E_TIMEOUT) {
        relay_fail(r, "timeout",
                   "the server did not answer in time; the call was cancelled");
    } else if (r->is_tool) {
        snprintf(words, sizeof words,
                 "outcome unknown: %s. The call may have run, so it is not sent again",
                 r->up->last_error[0] ? r->up->last_error : why);
        relay_fail_with(r, "outcome_unknown", words, received);
    } else {
        relay_fail(r, "upstream_failed", why);
    }
}

static bool is_lost(segue_status status)
{
    return status == SEGUE_E_DISCONNECTED || status == SEGUE_E_CLOSED ||
           status == SEGUE_E_INCOMPLETE || status == SEGUE_E_TASK_LOST ||
           status == SEGUE_E_NOT_RESUMABLE;
}

/* Stores the result until the log of the call has room. */
static void let_result_wait(relay *r, json result)
{
    text *waiting = &r->passage.result;
    if (result.p == waiting->p)
        return;
    text_add_json(waiting, result);
    if (waiting->failed)
        relay_fail(r, "result_refused", "out of memory");
}

void relay_finish(relay *r, json result)
{
    segue_error *error = NULL;
    segue_status status = segments_finish(r, result, &error);
    if (status == SEGUE_E_WOULD_BLOCK)
        let_result_wait(r, result);
    else if (status != SEGUE_OK && status != SEGUE_E_TERMINAL)
        relay_fail(r, "result_refused", segue_error_read(error)->message);
    else
        end_call(r);
    segue_error_free(error);
}

/* Ends a call that was cancelled, or whose former call was. The call itself may run on in
 * the store, and nobody has its handle. */
static void fail_cancelled(relay *r)
{
    if (r->call)
        segue_call_fail(r->call, -32603, "The call was cancelled", NULL, 0, NULL);
    end_call(r);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *result, size_t len, const segue_error *error)
{
    relay *r = user;
    segue_request_free(request);
    r->request = NULL;
    segments_end(r);
    if (status == SEGUE_OK || status == SEGUE_E_REMOTE)
        upstream_set_lost(r->up, false);
    if (!r->call)
        return;
    if (status == SEGUE_OK)
        relay_finish(r, (json){result, len});
    else if (status == SEGUE_E_REMOTE) {
        segue_call_fail_with(r->call, error, NULL);
        end_call(r);
    } else if (r->cancelled)
        fail_cancelled(r);
    else if (r->up->source->proxy->stage == PROXY_ENDING)
        end_call(r); /* a task stays in the store, unfinished, for the next process */
    else if (is_lost(status) && relay_may_repeat(r))
        relay_send(r);
    else if (is_lost(status) || status == SEGUE_E_TIMEOUT)
        fail_lost(r, status, (json){result, result ? len : 0}, error);
    else
        relay_fail(r, "upstream_failed", segue_error_read(error)->message);
}

/* ---- what comes before the end ---- */

static void on_progress(void *user, segue_request *request, double progress, double total,
                        const char *message)
{
    relay *r = user;
    (void)request;
    if (!r->call)
        return;
    r->progress = progress;
    segue_call_progress(r->call, progress, total, message, NULL);
    if (message && r->is_tool)
        segue_call_set_status(r->call, message, NULL);
}

static void on_log(void *user, segue_request *request, const char *message, size_t len)
{
    relay *r = user;
    (void)request;
    if (r->call)
        segue_call_log_json(r->call, message, len, NULL);
}

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    relay *r = user;
    (void)request;
    (void)status;
    if (r->call && message && r->is_tool)
        segue_call_set_status(r->call, message, NULL);
}

static void on_resumable(void *user, segue_request *request)
{
    relay *r = user;
    r->request = r->request ? r->request : request;
    r->resumable = true;
    relay_renew_checkpoint(r);
}

/* A task of the upstream becomes a task of the proxy at once, if the client supports
 * tasks. */
static void on_task(void *user, segue_request *request, const char *task_id)
{
    relay *r = user;
    (void)task_id;
    log_event(SEGUE_LOG_DEBUG, "upstream_task", r->up->source->config->name,
              "%s is a task of the upstream", r->item ? r->item->name : r->method);
    on_resumable(user, request);
    if (r->call)
        segue_call_defer(r->call, 0, NULL);
}

static void on_cancel(void *user, segue_call *call)
{
    relay *r = user;
    if (call == r->former.call) /* nobody gets the handle, so nobody wants the result */
        relay_forget_former(r);
    r->cancelled = true;
    if (r->request)
        segue_request_cancel(r->request);
    else
        fail_cancelled(r); /* the call was not sent yet, or its result waits for room */
}

static void on_drain(void *user, segue_call *call)
{
    relay *r = user;
    if (call == r->former.call)
        relay_drain_former(r);
    else
        segments_drain(user, call);
}

/* ---- the beginning ---- */

static segue_request_events events_of(relay *r)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = r;
    events.free_user = unref;
    events.on_progress = on_progress;
    events.on_log = on_log;
    events.on_input = relay_question;
    events.on_task = on_task;
    events.on_resumable = on_resumable;
    events.on_status = on_status;
    events.on_complete = on_complete;
    events.on_segment = r->is_tool ? segments_take : NULL;
    return events;
}

/* Starts the upstream request of a relay. token: the token of an earlier request that the
 * new one continues; NULL = a new call. */
static void start_request(relay *r, const char *token)
{
    segue_request_events events = events_of(r);
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    segue_session *session = upstream_session(r->up);
    segue_error *error = NULL;
    if (!session) {
        relay_fail(r, "upstream_unavailable", r->up->last_error);
        return;
    }
    options.timeout_ms = r->item ? r->item->timeout_ms : 0;
    options.on_timeout = 1;
    options.credit = 1; /* one segment at a time (segments.c) */
    options.seen = token ? (int64_t)r->passage.number : 0;
    options.log_level = client_log_level(r->up, r->call);
    char *capabilities = client_call_capabilities(r->up->source->service, r->call);
    options.capabilities = capabilities;
    if (!relay_has_key(r))
        options.no_idempotency = 1;
    else if (!token)
        options.idempotency_key = r->key;
    r->attempts++;
    r->refs++;
    segue_status status =
        token
            ? segue_request_resume(session, token, &options, &events, &r->request, &error)
            : segue_request_start(session, r->method, r->params.p, r->params.len,
                                  &options, &events, &r->request, &error);
    free(capabilities);
    if (status != SEGUE_OK) {
        r->refs--;
        relay_fail(r, token ? "outcome_unknown" : "upstream_failed",
                   segue_error_read(error)->message);
    }
    segue_error_free(error);
}

void relay_send(relay *r)
{
    bool is_same_run = r->is_tool && r->up->source->can.keys && relay_has_key(r);
    if (is_same_run)
        segments_repeat(r);
    else
        segments_begin_anew(r);
    free(r->token);
    r->token = NULL;
    r->resumable = r->unsent = false;
    start_request(r, NULL);
}

void relay_follow(relay *r, const char *token)
{
    r->token = copy_string(token);
    r->resumable = true;
    start_request(r, token);
}

static bool make_key(char key[RELAY_KEY + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[RELAY_KEY / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        key[2 * i] = digits[bytes[i] >> 4];
        key[2 * i + 1] = digits[bytes[i] & 15];
    }
    key[RELAY_KEY] = 0;
    return true;
}

static void on_checkpoint(void *user, segue_call *call)
{
    relay *r = user;
    if (call == r->call && r->unsent)
        relay_send(r);
}

static void watch(relay *r)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    events.user = r;
    events.free_user = unref;
    events.on_cancel = on_cancel;
    events.on_drain = on_drain;
    events.on_checkpoint = on_checkpoint;
    r->refs++;
    if (segue_call_watch(r->call, &events) != SEGUE_OK)
        r->refs--;
}

bool relay_continue_as(relay *r, const item *i, segue_call *call, int64_t ttl_ms)
{
    segue_call *call_before = r->call;
    passage passage_before = r->passage;
    if (!call_before || !r->request || r->cancelled)
        return false;
    r->call = call;
    segments_hold_back(&r->passage);
    if (relay_mark(r) != SEGUE_OK || segue_call_defer(call, ttl_ms, NULL) != SEGUE_OK) {
        r->call = call_before;
        r->passage = passage_before;
        return false;
    }
    r->former = (former){.call = call_before, .has_segments = passage_before.stored > 0};
    if (r->passage.waiting.block.n) { /* the result contains this segment */
        segments_end(r);
        segue_request_grant(r->request, 1);
    }
    r->item = i;
    watch(r);
    return true;
}

void relay_begin(const item *i, source *to, segue_call *call, const char *method,
                 text *params)
{
    char key[RELAY_KEY + 1];
    relay *r = params->failed ? NULL : calloc(1, sizeof *r);
    upstream *up = r ? source_upstream(to, call) : NULL;
    if (!up || !make_key(key)) {
        segue_call_fail(
            call, -32603,
            r ? "The proxy has too many upstreams at present (--max-upstreams)"
              : "Out of memory",
            NULL, 0, NULL);
        segue_call_free(call);
        text_free(params);
        free(r);
        return;
    }
    *r = (relay){.refs = 1,
                 .item = i,
                 .up = up,
                 .method = method,
                 .call = call,
                 .params = *params,
                 .is_tool = !strcmp(method, "tools/call")};
    *params = (text){.p = NULL};
    memcpy(r->key, key, sizeof key);
    upstream_use(up);
    watch(r);
    relay_set_timers(r);
    uint64_t segment;
    if (r->is_tool && segue_call_resumed(call, &segment, NULL, NULL) == SEGUE_OK) {
        relay_resume(r);
    } else {
        relay_send_when_stored(r);
    }
    relay_unref(r);
}
