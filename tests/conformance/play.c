/* The play goes through
 *
 *   lists, page by page --> one call after the other --> the end
 *
 * A call that asks waits until all others were made, so that the parts of one call show
 * up in no other. Then each call gets its answers. */
#include "conformance/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void advance(play *p);

void play_init(play *p, segue_runtime *runtime, const char *scenario, json_t *context)
{
    *p = (play){.runtime = runtime, .scenario = scenario, .context = context};
    p->last = &p->calls;
    p->tools = json_array();
}

void play_free(play *p)
{
    call *c;
    while ((c = p->calls)) {
        p->calls = c->next;
        segue_request_free(c->request);
        json_decref(c->params);
        json_decref(c->questions);
        free(c);
    }
    json_decref(p->tools);
}

void play_failed(play *p, const char *what, const char *why)
{
    fprintf(stderr, "client: %s: %s\n", what, why);
    p->has_failed = true;
}

/* Takes over params. */
static void plan(play *p, const char *method, json_t *params, bool is_list)
{
    call *c = calloc(1, sizeof *c);
    if (!c || !params)
        abort();
    *c = (call){.p = p, .method = method, .params = params, .is_list = is_list};
    c->questions = json_array();
    *p->last = c;
    p->last = &c->next;
}

/* ---- the items of a list ---- */

static void plan_tool(play *p, const json_t *tool)
{
    json_array_append(p->tools, (json_t *)tool);
}

static void plan_item(play *p, const char *method, const char *by, const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, by));
    if (name)
        plan(p, method, json_pack("{s:s}", by, name), false);
}

static void plan_prompt(play *p, const json_t *prompt)
{
    json_t *arguments = json_object();
    const json_t *argument;
    size_t i;
    json_array_foreach(json_object_get(prompt, "arguments"), i, argument)
    {
        const char *name = json_string_value(json_object_get(argument, "name"));
        if (name && json_is_true(json_object_get(argument, "required")))
            json_object_set_new(arguments, name, json_string("text"));
    }
    const char *name = json_string_value(json_object_get(prompt, "name"));
    plan(p, "prompts/get",
         json_pack("{s:s,s:o}", "name", name ? name : "", "arguments", arguments), false);
}

static void take_list(play *p, const char *method, const json_t *result)
{
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(result, "tools"), i, item) plan_tool(p, item);
    json_array_foreach(json_object_get(result, "resources"), i, item)
        plan_item(p, "resources/read", "uri", item);
    json_array_foreach(json_object_get(result, "prompts"), i, item) plan_prompt(p, item);
    const json_t *cursor = json_object_get(result, "nextCursor");
    if (cursor)
        plan(p, method, json_pack("{s:O}", "cursor", cursor), true);
}

/* Plans the calls that the suite wants, or one call of each tool. */
static void plan_tools(play *p)
{
    const json_t *wanted = json_object_get(p->context, "toolCalls");
    const json_t *item;
    size_t i;
    if (!strcmp(p->scenario, "json-schema-ref-no-deref"))
        return; /* its tool is only listed */
    if (wanted) {
        json_array_foreach(wanted, i, item)
            plan(p, "tools/call", json_deep_copy(item), false);
        return;
    }
    json_array_foreach(p->tools, i, item)
        plan(p, "tools/call", tool_params(p, item), false);
}

/* ---- one call ---- */

static void complete(void *user, segue_request *request, segue_status status,
                     const char *json, size_t len, const segue_error *error)
{
    call *c = user;
    play *p = c->p;
    (void)request;
    c->state = CALL_ENDED;
    if (status != SEGUE_OK) {
        play_failed(p, c->method, segue_error_read(error)->message);
    } else {
        json_t *result = json_loadb(json, len, JSON_ALLOW_NUL, NULL);
        if (!result)
            play_failed(p, c->method, "the result is no JSON");
        else if (c->is_list)
            take_list(p, c->method, result);
        else if (json_is_true(json_object_get(result, "isError")))
            play_failed(p, c->method, "the tool says that it has failed");
        json_decref(result);
    }
    advance(p);
}

static void asked(void *user, segue_request *request, const char *key, const char *method,
                  const char *params, size_t len)
{
    call *c = user;
    (void)request;
    json_t *read = json_loadb(params, len, JSON_ALLOW_NUL, NULL);
    json_array_append_new(c->questions,
                          json_pack("{s:s,s:s,s:o}", "key", key, "method", method,
                                    "params", read ? read : json_null()));
    c->state = CALL_ASKING;
    advance(c->p);
}

static void answer(call *c)
{
    json_t *question;
    size_t i;
    c->state = CALL_RUNNING;
    json_array_foreach(c->questions, i, question)
    {
        const char *key = json_string_value(json_object_get(question, "key"));
        json_t *said = answer_to(json_string_value(json_object_get(question, "method")),
                                 json_object_get(question, "params"));
        char *text = json_dumps(said, JSON_COMPACT);
        segue_status status =
            text ? segue_request_answer(c->request, key, text, strlen(text), NULL)
                 : SEGUE_E_NOMEM;
        /* or the question was withdrawn */
        if (status != SEGUE_OK && status != SEGUE_E_NOT_FOUND)
            play_failed(c->p, c->method, segue_status_name(status));
        free(text);
        json_decref(said);
    }
    json_array_clear(c->questions);
}

static void start(call *c)
{
    play *p = c->p;
    char *text = json_dumps(c->params, JSON_COMPACT | JSON_REAL_PRECISION(15));
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = c;
    events.on_input = asked;
    events.on_complete = complete;
    c->state = CALL_RUNNING;
    segue_status status =
        text ? segue_request_start(p->session, c->method, text, strlen(text), NULL,
                                   &events, &c->request, NULL)
             : SEGUE_E_NOMEM;
    free(text);
    if (status == SEGUE_OK)
        return;
    play_failed(p, c->method, segue_status_name(status));
    c->state = CALL_ENDED;
}

/* ---- the whole play ---- */

static call *first_in(const play *p, call_state state)
{
    call *c = p->calls;
    while (c && c->state != state)
        c = c->next;
    return c;
}

/* One call runs at a time, so a list is complete before its items are played. */
static void advance(play *p)
{
    call *c;
    while (!first_in(p, CALL_RUNNING)) {
        if ((c = first_in(p, CALL_PLANNED))) {
            start(c);
        } else if (!p->has_tools) {
            p->has_tools = true;
            plan_tools(p);
        } else if ((c = first_in(p, CALL_ASKING))) {
            answer(c);
        } else {
            segue_session_close(p->session);
            return;
        }
    }
}

/* Plans the lists that the server announces; tools are always listed. */
void play_begin(play *p)
{
    char about[64 * 1024];
    size_t len = sizeof about;
    if (p->is_open)
        return; /* the session was lost, and is open again */
    p->is_open = true;
    segue_status status = segue_session_peer(p->session, about, &len);
    json_t *peer =
        status == SEGUE_OK ? json_loadb(about, len, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *capabilities = json_object_get(peer, "capabilities");
    if (!peer)
        play_failed(p, "the server's description", segue_status_name(status));
    plan(p, "tools/list", json_object(), true);
    if (json_object_get(capabilities, "resources"))
        plan(p, "resources/list", json_object(), true);
    if (json_object_get(capabilities, "prompts"))
        plan(p, "prompts/list", json_object(), true);
    json_decref(peer);
    advance(p);
}
