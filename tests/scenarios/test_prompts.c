/* Prompts as raw clients of both eras see them: the list, arguments, messages with every
 * kind of content, questions, changes of the list. */
#include "support/legacy_wire.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void announces_them(world *w)
{
    const char *r = wire_do(world_connect(w, NULL), "1", "server/discover", NULL, NULL);
    assert_at(r, "result.capabilities.prompts", "{\"listChanged\":true}");
    r = legacy_hello(world_connect(w, NULL), "2025-03-26", NULL);
    assert_at(r, "result.capabilities.prompts", "{\"listChanged\":true}");
}

static void lists_them(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_golden(wire_do(c, "1", "prompts/list", NULL, NULL), "prompts_list");
    wire *old = legacy_connect(w, NULL, NULL);
    const char *r = wire_do_plain(old, "2", "prompts/list", NULL);
    assert_at(r, "result.prompts.1.arguments.0.required", "true");
    assert_at(r, "result.ttlMs", "");
    assert_code(wire_do_plain(old, "3", "prompts/list", "\"cursor\":\"-1\""), -32602);
}

static void gets_a_simple_one(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_golden(wire_do(c, "1", "prompts/get", "\"name\":\"simple\"", NULL),
                  "prompt_simple");
    wire *old = legacy_connect(w, NULL, NULL);
    assert_golden(wire_do_plain(old, "2", "prompts/get", "\"name\":\"simple\""),
                  "legacy_prompt_simple");
}

static void gets_one_with_arguments(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "prompts/get",
                            "\"name\":\"arguments\",\"arguments\":{\"arg1\":\"a\\\"b\","
                            "\"arg2\":\"2\",\"more\":\"is ignored\"}",
                            NULL);
    assert_at(r, "result.messages.0.role", "\"user\"");
    assert_at(r, "result.messages.0.content.text",
              "\"Prompt with arguments: arg1='a\\\"b', arg2='2'\"");
    r = wire_do(c, "2", "prompts/get",
                "\"name\":\"arguments\",\"arguments\":{\"ar\\u00671\":\"1\"}", NULL);
    assert_at(r, "result.messages.0.content.text",
              "\"Prompt with arguments: arg1='1', arg2='none'\"");
}

static void gets_every_kind_of_content(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_golden(wire_do(c, "1", "prompts/get", "\"name\":\"blocks\"", NULL),
                  "prompt_blocks");
}

static void refuses(world *w)
{
    static const char *const bad[] = {
        NULL,
        "\"name\":7",
        "\"name\":\"\"",
        "\"name\":\"no_such_prompt\"",
        "\"name\":\"greet\"", /* a tool, not a prompt */
        "\"name\":\"arguments\"",
        "\"name\":\"arguments\",\"arguments\":{\"arg2\":\"x\"}",
        "\"name\":\"arguments\",\"arguments\":{\"arg1\":7}",
        "\"name\":\"arguments\",\"arguments\":[]",
    };
    wire *c = world_connect(w, NULL);
    wire *old = legacy_connect(w, NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_code(wire_do(c, "1", "prompts/get", bad[i], NULL), -32602);
        assert_code(wire_do_plain(old, "1", "prompts/get", bad[i]), -32602);
    }
    assert_at(wire_do(c, "2", "prompts/get", bad[5], NULL), "error.data.argument",
              "\"arg1\"");
    assert_at(wire_do(c, "3", "prompts/get", bad[3], NULL), "error.data.name",
              "\"no_such_prompt\"");
}

static void asks_before_it_answers(world *w)
{
    char params[512];
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "prompts/get", "\"name\":\"ask\"", CAPS_ALL);
    assert_at(r, "result.resultType", "\"input_required\"");
    snprintf(params, sizeof params,
             "\"name\":\"ask\",\"requestState\":%s,\"inputResponses\":{\"input-1\":{"
             "\"action\":\"decline\"}}",
             json_at(r, "result.requestState"));
    /* A tool of that name would be another call. */
    assert_code(wire_do(c, "2", "tools/call", params, CAPS_ALL), -32602);
    r = wire_do(c, "3", "prompts/get", params, CAPS_ALL);
    assert_at(r, "result.messages.0.content.text",
              "\"{\\\"action\\\":\\\"decline\\\"}\"");
    assert_code(wire_do(c, "4", "prompts/get", params, CAPS_ALL), -32602);
    /* A client that cannot be asked gets an error, not a task or a round. */
    assert_code(wire_do(c, "5", "prompts/get", "\"name\":\"ask\"", NULL), -32603);
}

static void list_changes(world *w)
{
    static const char changed[] = "notifications/prompts/list_changed";
    wire *c = world_connect(w, NULL);
    wire *other = world_connect(w, NULL);
    wire *old = legacy_connect(w, NULL, NULL);
    wire_ask(c, "1", "subscriptions/listen",
             "\"notifications\":{\"promptsListChanged\":true}", NULL);
    wire_ask(
        other, "1", "subscriptions/listen",
        "\"notifications\":{\"toolsListChanged\":true,\"resourcesListChanged\":true}",
        NULL);
    assert_at(wire_notification(c, "notifications/subscriptions/acknowledged"),
              "params.notifications", "{\"promptsListChanged\":true}");
    assert_at(wire_notification(other, "notifications/subscriptions/acknowledged"),
              "params.notifications",
              "{\"toolsListChanged\":true,\"resourcesListChanged\":true}");
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_PROMPT, "simple"),
                     SEGUE_OK);
    world_run(w);
    wire_notification(c, changed);
    wire_notification(old, changed);
    wire_quiet(c);
    wire_quiet(other);
    assert_code(wire_do_plain(old, "2", "prompts/get", "\"name\":\"simple\""), -32602);
    /* The capability stays announced when all prompts are removed. */
    const char *names[] = {"arguments", "blocks", "ask"};
    for (size_t i = 0; i < 3; i++)
        segue_server_remove(w->server, SEGUE_ITEM_PROMPT, names[i]);
    assert_at(wire_do(other, "2", "prompts/list", NULL, NULL), "result.prompts", "[]");
}

static const scenario scenarios[] = {
    {"prompts are announced", announces_them, ONE_DRIVE, NULL},
    {"prompts are listed", lists_them, 0, NULL},
    {"a prompt is got", gets_a_simple_one, 0, NULL},
    {"a prompt has arguments", gets_one_with_arguments, 0, NULL},
    {"a prompt has messages of every kind", gets_every_kind_of_content, 0, NULL},
    {"what is no prompt, or lacks an argument, is refused", refuses, 0, NULL},
    {"a prompt can ask its client", asks_before_it_answers, 0, NULL},
    {"changes of the list are told", list_changes, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
