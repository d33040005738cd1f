/* Handles: how they are made, and the tools that take one. The tasks of handles are made,
 * read and cancelled by errands (errand.h).
 *
 *     a client's call --handle_begin--> errand: tools/call --handle_adopt--> task
 *
 * The relay of the client's call then goes on with the call of the errand, which is a
 * task, and the client's call is answered with the id of this task. */
#include "handle.h"

#include "errand.h"
#include "limits.h"
#include "service.h"

#include <segue/segue.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the member of _meta that names the relay of a call that an errand makes */
#define RELAY_META "dev.segue/relay"

static const char *const tools[] = {
    [GIVE_RESULT] =
        "{\"name\":\"segue_proxy_result\",\"description\":\"Gives the result "
        "of a call that was answered with a handle. Waits a while if it still "
        "runs.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
        "\"handle\":{\"type\":\"string\"}},\"required\":[\"handle\"]},"
        "\"annotations\":{\"readOnlyHint\":true}}",
    [GIVE_STATUS] =
        "{\"name\":\"segue_proxy_status\",\"description\":\"Says whether a call "
        "that was answered with a handle still runs.\",\"inputSchema\":{"
        "\"type\":\"object\",\"properties\":{\"handle\":{\"type\":\"string\"}},"
        "\"required\":[\"handle\"]},\"annotations\":{\"readOnlyHint\":true}}",
    [CANCEL] =
        "{\"name\":\"segue_proxy_cancel\",\"description\":\"Cancels a call that was "
        "answered with a handle.\",\"inputSchema\":{\"type\":\"object\","
        "\"properties\":{\"handle\":{\"type\":\"string\"}},\"required\":["
        "\"handle\"]}}",
};

/* ---- answers to the client ---- */

/* Answers the client's call with the outcome of the task. */
static void give(errand *e, segue_status status, const char *result, size_t len,
                 const segue_error *error)
{
    if (status == SEGUE_OK && e->adopted)
        relay_answer_former(e->relay, (json){result, len});
    else if (e->adopted)
        relay_fail_former(e->relay, error);
    if (!e->call)
        return;
    if (status == SEGUE_OK)
        status = segue_call_complete_json(e->call, result, len, NULL);
    else
        status = segue_call_fail_with(e->call, error, NULL);
    if (status != SEGUE_OK)
        segue_call_fail(e->call, -32603, "The proxy cannot send the result of the call",
                        NULL, 0, NULL);
    segue_call_free(e->call);
    e->call = NULL;
}

/* Answers the client's call with a text. The result has no structuredContent, although
 * the tool's outputSchema may require it. segue_call_complete_json does not check
 * this. */
static void say(errand *e, const char *words)
{
    text result = {.p = NULL};
    text_add_str(&result, "{\"content\":[{\"type\":\"text\",\"text\":");
    text_add_quoted(&result, words, strlen(words));
    text_add_str(&result, "}]}");
    give(e, result.failed ? SEGUE_E_NOMEM : SEGUE_OK, result.p, result.len, NULL);
    text_free(&result);
}

static void say_running(errand *e)
{
    char words[NOTE_BYTES + HANDLE_MAX + 200];
    snprintf(words, sizeof words,
             "The call still runs%s%s. Ask again with segue_proxy_result, handle %s.",
             e->note[0] ? ": " : "", e->note, segue_task_id(e->task));
    say(e, words);
}

static void say_failed(segue_call *call)
{
    segue_call_fail(call, -32603, "The proxy cannot ask for the call", NULL, 0, NULL);
    segue_call_free(call);
}

static void say_unknown(segue_call *call)
{
    segue_call_fail(call, -32602,
                    "There is no such handle: the handle is wrong, or it is more than a "
                    "day old",
                    NULL, 0, NULL);
    segue_call_free(call);
}

/* ---- making a handle ---- */

static void on_made(void *user, segue_request *request, const char *id)
{
    errand *e = user;
    char words[2 * HANDLE_MAX + 300];
    if (!e->adopted)
        return;
    snprintf(words, sizeof words,
             "The call still runs and continues. Its handle is %s. Call "
             "segue_proxy_result with {\"handle\":\"%s\"} for its result, "
             "segue_proxy_status for its status, or segue_proxy_cancel to end it.",
             id, id);
    say(e, words);
    segue_request_detach(request);
}

static void on_make_complete(void *user, segue_request *request, segue_status status,
                             const char *result, size_t len, const segue_error *error)
{
    errand *e = user;
    (void)request;
    /* answers the client only when the call ended before it was a task */
    give(e, status, result, len, error);
    errand_end(e);
}

/* Writes the params of the client's call again, as the proxy's own clients send them. */
static void write_params(const relay *r, text *to)
{
    static const char *const changed[] = {"name", "_meta", NULL};
    json given = {r->params.p, r->params.len}, meta = json_get(given, "_meta");
    text_add_str(to, "{");
    text_add_key(to, "name");
    text_add_quoted(to, r->item->key, strlen(r->item->key));
    text_add_members(to, given, changed);
    text_add_key(to, "_meta");
    text_add_str(to, "{");
    text_add_key(to, RELAY_META);
    text_add_quoted(to, r->key, strlen(r->key));
    text_add_members(to, meta, NULL);
    text_add_str(to, "}}");
}

void handle_begin(relay *r)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    text params = {.p = NULL};
    errand *e = errand_begin(r->up->source->service, MAKE, segue_call_principal(r->call));
    if (!e)
        return;
    write_params(r, &params);
    e->relay = r;
    r->refs++;
    events.user = e;
    events.free_user = errand_unref;
    events.on_task = on_made;
    events.on_complete = on_make_complete;
    e->refs++;
    if (params.failed ||
        segue_request_start(e->session, "tools/call", params.p, params.len, NULL, &events,
                            &e->request, NULL) != SEGUE_OK) {
        errand_unref(e);
        errand_end(e);
    }
    text_free(&params);
}

static errand *find_maker(service *v, segue_call *call)
{
    json ticket = {NULL, 0};
    if (segue_call_meta(call, RELAY_META, &ticket.p, &ticket.n) != SEGUE_OK)
        return NULL;
    for (errand *e = v->errands; e; e = e->next)
        if (e->relay && !e->adopted && json_is(ticket, e->relay->key) &&
            !strcmp(e->principal, segue_call_principal(call)))
            return e;
    return NULL;
}

bool handle_adopt(const item *i, segue_call *call)
{
    errand *e = find_maker(i->source->service, call);
    if (!e)
        return false;
    e->adopted = relay_continue_as(e->relay, i, call, HANDLE_TTL_MS);
    if (!e->adopted) {
        segue_call_fail(call, -32603, "The call cannot become a task", NULL, 0, NULL);
        segue_call_free(call);
    }
    return true;
}

/* ---- the tools ---- */

static void on_status(void *user, segue_request *request, const char *status,
                      const char *message)
{
    errand *e = user;
    (void)request;
    (void)status;
    if (message)
        snprintf(e->note, sizeof e->note, "%s", message);
}

static segue_request_events events_of(errand *e, segue_complete_fn on_complete)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = e;
    events.free_user = errand_unref;
    events.on_status = on_status;
    events.on_complete = on_complete;
    e->refs++; /* the caller drops the reference when the request does not start */
    return events;
}

static void fail(errand *e)
{
    say_failed(e->call);
    e->call = NULL;
    errand_end(e);
}

static void on_result(void *user, segue_request *request, segue_status status,
                      const char *result, size_t len, const segue_error *error)
{
    errand *e = user;
    (void)request;
    if (e->call)
        give(e, status, result, len, error);
    errand_end(e);
}

static void on_cancelled(void *user, segue_request *request, segue_status status,
                         const char *result, size_t len, const segue_error *error)
{
    errand *e = user;
    (void)request;
    (void)result;
    (void)len;
    if (status == SEGUE_OK)
        say(e, "The call is being cancelled.");
    else
        give(e, status, NULL, 0, error);
    errand_end(e);
}

static void wait_is_over(void *user)
{
    errand *e = user;
    if (!e->call)
        return;
    say_running(e);
    segue_request_detach(e->request);
}

static void wait_for_result(errand *e)
{
    segue_request_events events = events_of(e, on_result);
    if (segue_task_watch(e->task, NULL, &events, &e->request, NULL) != SEGUE_OK) {
        errand_unref(e);
        fail(e);
        return;
    }
    e->refs++;
    proxy *p = e->service->proxy;
    if (segue_timer_start(p->runtime, p->config.task_after_ms, wait_is_over, e,
                          errand_unref, &e->timer) != SEGUE_OK)
        errand_unref(e);
}

void handles_end(service *v)
{
    for (errand *e = v->errands, *next; e; e = next) {
        next = e->next;
        if (e->purpose != GIVE_RESULT || !e->call || !e->task)
            continue;
        say_running(e);
        errand_end(e);
    }
}

static void cancel(errand *e)
{
    segue_request_events events = events_of(e, on_cancelled);
    if (segue_task_cancel(e->task, &events, NULL) == SEGUE_OK)
        return;
    errand_unref(e);
    fail(e);
}

static bool is_not_found(segue_status status)
{
    return status == SEGUE_E_NOT_FOUND || status == SEGUE_E_TASK_LOST;
}

static void on_state(void *user, segue_request *request, segue_status status,
                     const char *result, size_t len, const segue_error *error)
{
    errand *e = user;
    int32_t state = segue_task_get_state(e->task);
    bool runs = state == SEGUE_TASK_WORKING || state == SEGUE_TASK_INPUT_REQUIRED;
    char *note = json_string(json_get((json){result, result ? len : 0}, "statusMessage"));
    (void)request;
    (void)error;
    if (note)
        snprintf(e->note, sizeof e->note, "%s", note);
    free(note);
    if (!e->call) /* handles_end has answered it */
        return;
    if (status != SEGUE_OK && !is_not_found(status)) {
        fail(e);
        return;
    }
    if (status != SEGUE_OK) {
        say_unknown(e->call);
        e->call = NULL;
    } else if (e->purpose == GIVE_RESULT) {
        wait_for_result(e);
        return;
    } else if (e->purpose == CANCEL && runs) {
        cancel(e);
        return;
    } else if (e->purpose == CANCEL) {
        say(e, "The call had ended.");
    } else if (runs) {
        say_running(e);
    } else {
        say(e, "The call has ended. segue_proxy_result gives its result.");
    }
    errand_end(e);
}

/* Asks for the state of the task that the client's call names. */
static void ask(service *v, purpose why, segue_call *call)
{
    const char *id = NULL;
    size_t len = 0;
    if (segue_call_argument_text(call, "handle", &id, &len) != SEGUE_OK ||
        len > HANDLE_MAX) {
        say_unknown(call);
        return;
    }
    errand *e = errand_begin(v, why, segue_call_principal(call));
    segue_status status =
        e ? segue_task_attach(e->session, id, &e->task, NULL) : SEGUE_E_CLOSED;
    if (status != SEGUE_OK) {
        if (status == SEGUE_E_INVALID)
            say_unknown(call);
        else
            say_failed(call);
        if (e)
            errand_end(e);
        return;
    }
    e->call = call;
    segue_request_events events = events_of(e, on_state);
    if (segue_task_get(e->task, &events, NULL) == SEGUE_OK)
        return;
    errand_unref(e);
    fail(e);
}

static void give_result(void *user, segue_call *call)
{
    ask(user, GIVE_RESULT, call);
}

static void give_status(void *user, segue_call *call)
{
    ask(user, GIVE_STATUS, call);
}

static void give_cancel(void *user, segue_call *call)
{
    ask(user, CANCEL, call);
}

void handles_add_tools(service *v)
{
    static const segue_call_fn handlers[] = {give_result, give_status, give_cancel};
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
        options.user = v;
        options.on_call = handlers[i];
        segue_server_add(v->server, SEGUE_ITEM_TOOL, tools[i], strlen(tools[i]), &options,
                         NULL);
    }
}
