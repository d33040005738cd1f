/* Resources, prompts and completion while memory fails everywhere. */
#include "support/torture.h"

#include <string.h>

static int begin(torture *t, segue_session **session)
{
    *session = torture_serve(t) ? torture_open(t) : NULL;
    return *session != NULL;
}

static int ask_once(torture *t, const char *method, const char *params,
                    const char *in_result)
{
    segue_session *session;
    asked *a = begin(t, &session) ? torture_ask(t, session, method, params) : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK && strstr(a->result, in_result);
}

static int reads_text(torture *t)
{
    return ask_once(t, "resources/read", "{\"uri\":\"test://static-text\"}",
                    "static text resource");
}

static int reads_many(torture *t)
{
    return ask_once(t, "resources/read", "{\"uri\":\"test://many\"}", "test://many/3");
}

static int reads_by_template(torture *t)
{
    return ask_once(t, "resources/read", "{\"uri\":\"file:///a/b%20c\"}", "a/b c");
}

static int gets_a_prompt(torture *t)
{
    return ask_once(t, "prompts/get",
                    "{\"name\":\"arguments\",\"arguments\":{\"arg1\":\"x\"}}",
                    "arg1='x'");
}

static int gets_blocks(torture *t)
{
    return ask_once(t, "prompts/get", "{\"name\":\"blocks\"}", "As JSON.");
}

static int asks_in_a_round(torture *t)
{
    return ask_once(t, "prompts/get", "{\"name\":\"ask\"}", "action");
}

static int completes(torture *t)
{
    return ask_once(t, "completion/complete",
                    "{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"arguments\"},"
                    "\"argument\":{\"name\":\"arg1\",\"value\":\"word-14\"}}",
                    "word-149");
}

static int lists(torture *t)
{
    return ask_once(t, "resources/templates/list", "{}", "file:///{+path}");
}

/* A session gets updates of its subscription, and the subscription's memory is freed with
 * the session. */
static int subscribes(torture *t)
{
    segue_session *session;
    asked *a = begin(t, &session) ? torture_ask(t, session, "resources/subscribe",
                                                "{\"uri\":\"test://watched\"}")
                                  : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    segue_server_resource_updated(t->server, "test://watched");
    torture_pump(t);
    return a->status == SEGUE_OK;
}

static int has_none(torture *t)
{
    segue_session *session;
    asked *a = begin(t, &session) ? torture_ask(t, session, "resources/read",
                                                "{\"uri\":\"test://gone\"}")
                                  : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_E_REMOTE;
}

static const torture_scenario scenarios[] = {
    {"text is read", reads_text, 0, 0, 0},
    {"many contents are read", reads_many, 0, 0, 0},
    {"a template is read", reads_by_template, 0, 0, 0},
    {"a prompt is got", gets_a_prompt, 0, 0, 0},
    {"a prompt with blocks is got", gets_blocks, 0, 0, 0},
    {"a prompt asks", asks_in_a_round, 0, 0, 0},
    {"an argument is completed", completes, 0, 0, 0},
    {"templates are listed", lists, 0, 0, 0},
    {"items are registered", lists, 0, 0, 1},
    {"a session subscribes", subscribes, 0, SEGUE_ERA_LEGACY, 0},
    {"a resource is gone", has_none, 0, SEGUE_ERA_LEGACY, 0},
};

int main(void)
{
    return torture_run("torture_items", scenarios, sizeof scenarios / sizeof *scenarios);
}
