#include "support/model_fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tools ---- */

typedef struct asking {
    segue_runtime *runtime;
    segue_call *call;
} asking;

static void finish(asking *a, const char *text, size_t len, int is_error)
{
    segue_content *content;
    if (segue_content_new(a->runtime, &content) == SEGUE_OK) {
        segue_content_add_text(content, text, len, NULL);
        segue_content_set_error(content, is_error);
        segue_call_complete(a->call, content, NULL);
        segue_content_free(content);
    }
    segue_call_free(a->call);
    a->call = NULL;
}

static void on_answer(void *user, segue_call *call, segue_status status, const char *json,
                      size_t len)
{
    asking *a = user;
    (void)call;
    if (status == SEGUE_E_CANCELLED)
        segue_call_free(a->call);
    else
        finish(a, json ? json : segue_status_name(status),
               json ? len : strlen(segue_status_name(status)), status != SEGUE_OK);
}

/* Asks a second question at the same time if the arguments say so. */
static void ask_person(asking *a)
{
    static const char question[] =
        "{\"message\":\"Sure?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":"
        "{}}}";
    size_t len;
    const char *params = segue_call_params(a->call, &len);
    if (params && strstr(params, "\"and_person\""))
        segue_call_require_input(a->call, NULL, "elicitation/create", question,
                                 sizeof question - 1, on_answer, a, NULL, NULL);
}

static void run_ask(void *user, segue_call *call)
{
    static const char question[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
        "\"Say hello\"}}],\"maxTokens\":100}";
    asking *a = malloc(sizeof *a);
    *a = (asking){user, call};
    segue_status status =
        segue_call_require_input(call, NULL, "sampling/createMessage", question,
                                 sizeof question - 1, on_answer, a, free, NULL);
    if (status == SEGUE_OK) {
        ask_person(a);
        return;
    }
    finish(a, segue_status_name(status), strlen(segue_status_name(status)), 1);
    free(a);
}

segue_status model_tools_add(segue_runtime *runtime, segue_server *server)
{
    static const struct {
        const char *json;
        int32_t task;
    } rows[] = {{"{\"name\":\"ask_model\"}", SEGUE_TASK_NEVER},
                {"{\"name\":\"ask_model_task\"}", SEGUE_TASK_MUST}};
    segue_status status = SEGUE_OK;
    for (size_t i = 0; i < 2 && status == SEGUE_OK; i++) {
        segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
        options.user = runtime;
        options.on_call = run_ask;
        options.task = rows[i].task;
        options.poll_ms = 100;
        status = segue_server_add(server, SEGUE_ITEM_TOOL, rows[i].json,
                                  strlen(rows[i].json), &options, NULL);
    }
    return status;
}

/* ---- the model ---- */

static void on_cancel(void *user, segue_call *call)
{
    model_call *c = user;
    (void)call;
    c->cancelled = 1;
}

static void answer_at_once(model_call *c)
{
    model_say(c, "At once.");
    model_complete(c);
}

static void on_call(void *user, segue_call *call)
{
    model *m = user;
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    size_t len;
    model_call *c = calloc(1, sizeof *c);
    const char *params = segue_call_params(call, &len);
    snprintf(c->params, sizeof c->params, "%.*s", (int)len, params);
    c->model = m;
    c->call = call;
    c->next = m->calls;
    m->calls = c;
    m->count++;
    events.user = c;
    events.on_cancel = on_cancel;
    segue_call_watch(call, &events);
    if (m->first)
        model_say(c, m->first);
    if (m->at_once)
        answer_at_once(c);
}

static int make(model *m, segue_runtime *runtime, const segue_server_options *options,
                const segue_item_options *item)
{
    static const char *const questions[] = {"{\"method\":\"sampling/createMessage\"}",
                                            "{\"method\":\"elicitation/create\"}"};
    segue_item_options full = SEGUE_ITEM_OPTIONS_INIT;
    full.flags = SEGUE_TOOL_INCREMENTAL;
    full.task = SEGUE_TASK_MAY;
    if (item)
        full = *item;
    full.user = m;
    full.on_call = on_call;
    m->runtime = runtime;
    if (segue_server_new(runtime, options, &m->host, NULL) != SEGUE_OK)
        return 0;
    for (size_t i = 0; i < 2; i++)
        if (segue_server_add(m->host, SEGUE_ITEM_QUESTION, questions[i],
                             strlen(questions[i]), &full, NULL) != SEGUE_OK)
            return 0;
    return 1;
}

void model_begin(model *m, segue_runtime *runtime, const segue_server_options *options,
                 const segue_item_options *item)
{
    if (!make(m, runtime, options, item))
        abort();
}

int model_try(model *m, segue_runtime *runtime)
{
    return make(m, runtime, NULL, NULL);
}

static void let_go(model_call *c)
{
    if (c->call)
        segue_call_free(c->call);
    c->call = NULL;
}

void model_end(model *m)
{
    model_call *c;
    while ((c = m->calls)) {
        m->calls = c->next;
        let_go(c);
        free(c);
    }
    segue_server_free(m->host);
}

segue_status model_say(model_call *c, const char *text)
{
    return segue_call_send_text(c->call, text, strlen(text), NULL);
}

segue_status model_field(model_call *c, const char *name, const char *json)
{
    return segue_call_set_field(c->call, name, json, strlen(json), NULL);
}

segue_status model_complete(model_call *c)
{
    model_field(c, "model", "\"m-1\"");
    model_field(c, "stopReason", "\"endTurn\"");
    segue_status status = segue_call_complete(c->call, NULL, NULL);
    let_go(c);
    return status;
}

segue_status model_fail(model_call *c, int code, const char *message)
{
    segue_status status = segue_call_fail(c->call, code, message, NULL, 0, NULL);
    let_go(c);
    return status;
}
