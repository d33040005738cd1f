#include "handle.h"

#include <segue/segue_util.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HANDLES_MAX 1000
#define HANDLE_TEXT 32
#define KEPT_MS (60 * 60 * 1000)
#define NOTE_SIZE 400

/* A waiting call of the tool that returns results. It waits for the end of the call that
 * has the handle. */
typedef struct waiter {
    struct waiter *next;
    handle *handle;
    segue_call *call;
    segue_timer *timer;
} waiter;

struct handle {
    handle *next;
    proxy *proxy;
    char id[HANDLE_TEXT + 1];
    char *principal;
    /* the call that was answered with the handle; NULL = the call has ended */
    relay *relay;
    bool done;
    text result;        /* the result of the call; empty = no result */
    segue_error *error; /* the upstream's error; NULL = no such error */
    /* the message of an error of the proxy itself; empty = no such error */
    text message;
    text data;
    char note[NOTE_SIZE];
    waiter *waiters;
};

static const char *const tools[] = {
    "{\"name\":\"segue_proxy_result\",\"description\":\"Gives the result of a call that "
    "was "
    "answered with a handle. Waits a while if it still runs.\",\"inputSchema\":{\"type\":"
    "\"object\",\"properties\":{\"handle\":{\"type\":\"string\"}},\"required\":["
    "\"handle\"]},\"annotations\":{\"readOnlyHint\":true}}",
    "{\"name\":\"segue_proxy_status\",\"description\":\"Says whether a call that was "
    "answered with a handle still runs.\",\"inputSchema\":{\"type\":\"object\","
    "\"properties\":{\"handle\":{\"type\":\"string\"}},\"required\":[\"handle\"]},"
    "\"annotations\":{\"readOnlyHint\":true}}",
    "{\"name\":\"segue_proxy_cancel\",\"description\":\"Cancels a call that was answered "
    "with a handle.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"handle\":{"
    "\"type\":\"string\"}},\"required\":[\"handle\"]}}",
};

/* ---- answers ---- */

static void say(segue_call *call, const char *words)
{
    segue_call_send_text(call, words, strlen(words), NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void say_running(const handle *h, segue_call *call)
{
    char words[NOTE_SIZE + 200];
    snprintf(words, sizeof words,
             "The call still runs%s%s. Ask again with segue_proxy_result, handle %s.",
             h->note[0] ? ": " : "", h->note, h->id);
    say(call, words);
}

static void give(const handle *h, segue_call *call)
{
    segue_status status = SEGUE_OK;
    if (h->error)
        status = segue_call_fail_with(call, h->error, NULL);
    else if (h->message.len)
        status =
            segue_call_fail(call, -32603, h->message.p, h->data.p, h->data.len, NULL);
    else
        status = segue_call_complete_json(call, h->result.p, h->result.len, NULL);
    if (status != SEGUE_OK)
        segue_call_fail(call, -32603, "The proxy cannot send the result of the call",
                        NULL, 0, NULL);
    segue_call_free(call);
}

/* ---- waiters ---- */

static void remove_waiter(waiter *w)
{
    waiter **link = &w->handle->waiters;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    segue_timer_free(w->timer);
    free(w);
}

static void wait_is_over(void *user)
{
    waiter *w = user;
    say_running(w->handle, w->call);
    remove_waiter(w);
}

static void wait_for_end(handle *h, segue_call *call)
{
    waiter *w = calloc(1, sizeof *w);
    if (!w) {
        say_running(h, call);
        return;
    }
    *w = (waiter){h->waiters, h, call, NULL};
    h->waiters = w;
    if (segue_timer_start(h->proxy->runtime, h->proxy->config.task_after_ms, wait_is_over,
                          w, NULL, &w->timer) == SEGUE_OK)
        return;
    remove_waiter(w);
    say_running(h, call);
}

/* ---- the end ---- */

static void free_handle(handle *h)
{
    handle **link = &h->proxy->handles;
    while (*link != h)
        link = &(*link)->next;
    *link = h->next;
    h->proxy->handle_count--;
    while (h->waiters) { /* the runtime has ended, so these calls can only be freed */
        segue_call_free(h->waiters->call);
        remove_waiter(h->waiters);
    }
    segue_error_free(h->error);
    text_free(&h->result);
    text_free(&h->message);
    text_free(&h->data);
    free(h->principal);
    free(h);
}

static void kept_long_enough(void *user)
{
    free_handle(user);
}

static void end(handle *h)
{
    h->done = true;
    h->relay = NULL;
    while (h->waiters) {
        waiter *w = h->waiters;
        segue_timer_cancel(w->timer);
        give(h, w->call);
        remove_waiter(w);
    }
    if (!h->proxy->ending)
        segue_timer_start(h->proxy->runtime, KEPT_MS, kept_long_enough, h, NULL, NULL);
}

void handle_finish(handle *h, const char *result, size_t len, const segue_error *error)
{
    if (error)
        segue_error_copy(error, &h->error);
    else
        text_add(&h->result, result, len);
    end(h);
}

void handle_fail(handle *h, const char *message, json data)
{
    text_add_str(&h->message, message);
    text_add_json(&h->data, data);
    end(h);
}

void handle_note(handle *h, const char *message)
{
    snprintf(h->note, sizeof h->note, "%s", message);
}

void handles_free(proxy *p)
{
    while (p->handles)
        free_handle(p->handles);
}

/* ---- making a handle ---- */

static bool make_id(char id[HANDLE_TEXT + 1])
{
    unsigned char bytes[HANDLE_TEXT / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

handle *handle_make(relay *r)
{
    proxy *p = r->up->source->proxy;
    char words[400];
    if (segue_call_defer(r->call, 0, NULL) == SEGUE_OK || p->handle_count >= HANDLES_MAX)
        return NULL;
    handle *h = calloc(1, sizeof *h);
    if (!h || !make_id(h->id)) {
        free(h);
        return NULL;
    }
    h->proxy = p;
    h->relay = r;
    h->principal = copy_string(segue_call_principal(r->call));
    h->next = p->handles;
    p->handles = h;
    p->handle_count++;
    snprintf(
        words, sizeof words,
        "The call still runs and continues. Its handle is %s. Call segue_proxy_result "
        "with {\"handle\":\"%s\"} for its result, segue_proxy_status for its status, "
        "or segue_proxy_cancel to end it.",
        h->id, h->id);
    /* The result has no structuredContent, although the tool's outputSchema requires it.
     * segue_call_complete_json completes the call without a check. */
    segue_call_send_text(r->call, words, strlen(words), NULL);
    segue_call_complete_json(r->call, "{}", 2, NULL);
    return h;
}

/* ---- the tools ---- */

/* Returns the handle that the arguments of the call name, if it belongs to the caller;
 * otherwise NULL. */
static handle *find(proxy *p, segue_call *call)
{
    const char *id = NULL;
    size_t len = 0;
    if (segue_call_argument_text(call, "handle", &id, &len) != SEGUE_OK)
        return NULL;
    for (handle *h = p->handles; h; h = h->next)
        if (len == HANDLE_TEXT && !memcmp(h->id, id, len) && h->principal &&
            !strcmp(h->principal, segue_call_principal(call)))
            return h;
    return NULL;
}

static void unknown(segue_call *call)
{
    segue_call_fail(
        call, -32602,
        "There is no such handle: the handle is wrong, or its call ended more "
        "than an hour ago",
        NULL, 0, NULL);
    segue_call_free(call);
}

static void give_result(void *user, segue_call *call)
{
    handle *h = find(user, call);
    if (!h)
        unknown(call);
    else if (h->done)
        give(h, call);
    else
        wait_for_end(h, call);
}

static void give_status(void *user, segue_call *call)
{
    handle *h = find(user, call);
    if (!h)
        unknown(call);
    else if (h->done)
        say(call, "The call has ended. segue_proxy_result gives its result.");
    else
        say_running(h, call);
}

static void cancel(void *user, segue_call *call)
{
    handle *h = find(user, call);
    if (!h) {
        unknown(call);
        return;
    }
    if (h->relay && h->relay->request)
        segue_request_cancel(h->relay->request);
    say(call, h->done ? "The call had ended." : "The call is being cancelled.");
}

void handles_add_tools(proxy *p)
{
    static const segue_call_fn handlers[] = {give_result, give_status, cancel};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
        options.user = p;
        options.on_call = handlers[i];
        segue_server_add(p->server, SEGUE_ITEM_TOOL, tools[i], strlen(tools[i]), &options,
                         NULL);
    }
}
