/* Schemas, cached results, and other things that accompany a call, while memory fails
 * everywhere. */
#include "support/small_validator.h"
#include "support/torture.h"

#include <segue/segue.h>
#include <string.h>

static void give(void *user, segue_call *call)
{
    torture *t = user;
    const char *text = NULL;
    segue_content *content = NULL;
    if (segue_call_argument_text(call, "give", &text, NULL) == SEGUE_OK &&
        segue_call_send_text(call, "piece", 5, NULL) == SEGUE_OK &&
        segue_call_set_field(call, "structuredContent", text, strlen(text), NULL) ==
            SEGUE_OK &&
        segue_content_new(t->runtime, &content) == SEGUE_OK &&
        segue_content_add_text(content, "done", 4, NULL) == SEGUE_OK)
        segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

static void read_it(void *user, segue_call *call)
{
    torture *t = user;
    segue_content *content = NULL;
    if (segue_content_new(t->runtime, &content) == SEGUE_OK &&
        segue_content_add_resource_text(content, "x:y", NULL, "kept", 4, NULL) ==
            SEGUE_OK)
        segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

static segue_session *begin(torture *t)
{
    static const char tool[] =
        "{\"name\":\"give\",\"inputSchema\":{\"type\":\"object\",\"required\":[\"give\"]}"
        ","
        "\"outputSchema\":{\"type\":\"object\",\"required\":[\"n\"]}}";
    static const char resource[] = "{\"name\":\"y\",\"uri\":\"x:y\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    t->validate = small_validate;
    if (!torture_serve(t))
        return NULL;
    options.on_call = give;
    options.user = t;
    options.task = SEGUE_TASK_MAY;
    if (segue_server_add(t->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &options,
                         NULL) != SEGUE_OK)
        return NULL;
    options.on_call = read_it;
    options.task = SEGUE_TASK_NEVER;
    options.read_ttl_ms = 60000;
    if (segue_server_add(t->server, SEGUE_ITEM_RESOURCE, resource, sizeof resource - 1,
                         &options, NULL) != SEGUE_OK)
        return NULL;
    return torture_open(t);
}

static int call_it(torture *t, const char *arguments, segue_status status,
                   const char *in_result)
{
    segue_session *session = begin(t);
    asked *a = session ? torture_call(t, session, "give", arguments) : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == status && strstr(a->result, in_result);
}

static int fits(torture *t)
{
    return call_it(t, "{\"give\":\"{\\\"n\\\":1}\"}", SEGUE_OK, "done");
}

static int arguments_misfit(torture *t)
{
    return call_it(t, "{}", SEGUE_OK, "is missing");
}

static int result_misfits(torture *t)
{
    return call_it(t, "{\"give\":\"{}\"}", SEGUE_E_REMOTE, "");
}

/* The client checks results against the schemas that it has learnt. */
static int client_checks(torture *t)
{
    segue_session *session = begin(t);
    asked *list = session ? torture_ask(t, session, "tools/list", "{}") : NULL;
    if (!list)
        return 0;
    torture_settle(t, list);
    asked *a = torture_call(t, session, "give", "{\"give\":\"{\\\"n\\\":1}\"}");
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK && strstr(a->result, "done");
}

static int read_twice(torture *t)
{
    segue_session *session = begin(t);
    for (int i = 0; i < 2; i++) {
        asked *a = session
                       ? torture_ask(t, session, "resources/read", "{\"uri\":\"x:y\"}")
                       : NULL;
        if (!a)
            return 0;
        torture_settle(t, a);
        if (a->status != SEGUE_OK || !strstr(a->result, "kept"))
            return 0;
    }
    return 1;
}

/* Requests about a task carry the trace of its call. */
static int traced(torture *t)
{
    segue_session *session = begin(t);
    asked *a = session
                   ? torture_ask(t, session, "tools/call",
                                 "{\"name\":\"slow_compute\",\"arguments\":{\"ms\":30},"
                                 "\"_meta\":{\"traceparent\":\"00-1-2-01\",\"x\":1}}")
                   : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK;
}

static const torture_scenario scenarios[] = {
    {"a result fits", fits, 0, 0, 0},
    {"a result fits, before", fits, 0, SEGUE_ERA_LEGACY, 0},
    {"arguments do not fit", arguments_misfit, 0, 0, 0},
    {"a result does not fit", result_misfits, 0, 0, 0},
    {"a client checks", client_checks, 0, 0, 0},
    {"what is read is kept", read_twice, 0, 0, 0},
    {"a task is traced", traced, 0, 0, 0},
};

int main(void)
{
    return torture_run("torture_schemas", scenarios,
                       sizeof scenarios / sizeof *scenarios);
}
