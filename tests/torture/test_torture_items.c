/* Resources, prompts and completion while memory fails everywhere. */
#include "support/torture.h"

#include <stdio.h>
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

/* ---- in pieces (PR 776) ---- */

#define LONG 300 /* more items than one piece has */

static segue_call *held;
static int step;

static void hold(void *user, segue_call *call)
{
    (void)user;
    held = call;
    step = 0;
}

static void let_go(void)
{
    if (held)
        segue_call_free(held);
    held = NULL;
}

/* Sends one piece of the text at each turn. What memory refuses is tried again. */
static void go_on(torture *t)
{
    (void)t;
    if (!held)
        return;
    segue_status status = step < 3 ? segue_call_send_text(held, "piece", 5, NULL)
                                   : segue_call_complete(held, NULL, NULL);
    step += status == SEGUE_OK;
    if (step > 3 ||
        (status != SEGUE_OK && status != SEGUE_E_NOMEM && status != SEGUE_E_WOULD_BLOCK))
        let_go();
}

static int add(torture *t, int32_t type, const char *json)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = hold;
    return segue_server_add(t->server, type, json, strlen(json), &options, NULL) ==
           SEGUE_OK;
}

/* Adds a resource and many prompts. Their allocations do not fail. */
static int serve_more(torture *t)
{
    char json[64];
    if (!torture_serve(t))
        return 0;
    t->mem.fail_at = t->mem.fail_from = 0;
    int ok = add(t, SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://held\",\"name\":\"n\"}");
    for (int i = 0; i < LONG; i++) {
        snprintf(json, sizeof json, "{\"name\":\"long%d\"}", i);
        ok &= add(t, SEGUE_ITEM_PROMPT, json);
    }
    test_mem_rearm(&t->mem);
    t->mem.fail_at = t->fail_at;
    t->mem.fail_from = t->fail_from;
    return ok;
}

static int lists_in_pieces(torture *t)
{
    segue_session *session = serve_more(t) ? torture_open(t) : NULL;
    asked *a = session ? torture_ask(t, session, "prompts/list", "{}") : NULL;
    if (!a)
        return 0;
    torture_settle(t, a);
    return a->status == SEGUE_OK && a->segments >= LONG;
}

static int reads_in_pieces(torture *t)
{
    t->play = go_on;
    segue_session *session = serve_more(t) ? torture_open(t) : NULL;
    asked *a =
        session ? torture_ask(t, session, "resources/read", "{\"uri\":\"test://held\"}")
                : NULL;
    if (a)
        torture_settle(t, a);
    let_go();
    return a && a->status == SEGUE_OK && strstr(a->result, "piecepiecepiece") &&
           a->segments == 3;
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
    {"R-776-31 a long list comes in pieces", lists_in_pieces, 0, SEGUE_ERA_LEGACY, 0},
    {"R-776-32 a text comes in pieces", reads_in_pieces, 0, SEGUE_ERA_LEGACY, 0},
};

int main(void)
{
    return torture_run("torture_items", scenarios, sizeof scenarios / sizeof *scenarios);
}
