/* subscriptions/listen of 2026-07-28: states of tasks, changes of the tool list. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define ACK "notifications/subscriptions/acknowledged"
#define OF_LISTEN(id) "\"io.modelcontextprotocol/subscriptionId\":" id

static void listen_to(wire *c, const char *id, const char *task)
{
    char params[256];
    snprintf(params, sizeof params, "\"notifications\":{\"taskIds\":[\"%s\"]}", task);
    wire_ask(c, id, "subscriptions/listen", params, CAPS_TASKS);
}

static void tells_each_state(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "confirm_delete", NULL, CAPS_ALL);
    wire_get_until(c, id, "input_required", NULL);
    listen_to(c, "\"sub\"", id);
    const char *first = wire_due(c);
    char quoted[200];
    snprintf(quoted, sizeof quoted, "[\"%s\"]", id);
    assert_at(first, "method", "\"" ACK "\"");
    assert_at(first, "params.notifications.taskIds", quoted);
    assert_non_null(strstr(first, OF_LISTEN("\"sub\"")));
    assert_golden(first, "listen_ack_tasks");
    const char *now = wire_due(c);
    assert_at(now, "method", "\"notifications/tasks\"");
    assert_at(now, "params.status", "\"input_required\"");
    assert_golden(now, "notification_input_required");
    wire_task(c, "2", "tasks/update", id,
              "\"inputResponses\":{\"input-1\":{\"action\":\"decline\"}}");
    const char *n;
    do {
        n = wire_notification(c, "notifications/tasks");
        assert_non_null(strstr(n, OF_LISTEN("\"sub\"")));
    } while (strcmp(json_at(n, "params.status"), "\"completed\"") != 0);
    assert_at(n, "params.result.content.0.text", "\"{\\\"action\\\":\\\"decline\\\"}\"");
    assert_golden(n, "notification_completed");
    wire_quiet(c);
}

static void tells_the_state_of_now(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *running = wire_make_task(c, "1", "hang", NULL, NULL);
    const char *failed = wire_make_task(c, "2", "protocol_error_job", NULL, NULL);
    wire_get_until(c, failed, "failed", NULL);
    listen_to(c, "3", running);
    assert_golden(wire_notification(c, "notifications/tasks"), "notification_working");
    listen_to(c, "4", failed);
    assert_golden(wire_notification(c, "notifications/tasks"), "notification_failed");
    wire_task(c, "5", "tasks/cancel", running, NULL);
    assert_golden(wire_notification(c, "notifications/tasks"), "notification_cancelled");
}

static void tells_nothing_else(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "chatty_task", "\"n\":50", NULL);
    listen_to(c, "2", id);
    const char *n;
    do
        n = wire_notification(c, "notifications/tasks");
    while (strcmp(json_at(n, "params.status"), "\"completed\"") != 0);
    assert_null(strstr(wire_history(c), "notifications/progress"));
    assert_null(strstr(wire_history(c), "notifications/message"));
    assert_null(strstr(wire_history(c), "notifications/tasks/event"));
}

static void needs_the_extension(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "subscriptions/listen", "\"notifications\":{\"taskIds\":[\"x\"]}",
             NULL);
    assert_code(wire_response(c, "1"), -32021);
}

static void bad_filters(world *w)
{
    static const char *const bad[] = {
        NULL,
        "\"notifications\":[]",
        "\"notifications\":{\"taskIds\":\"x\"}",
        "\"notifications\":{\"taskIds\":[1]}",
    };
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(wire_do(c, "1", "subscriptions/listen", bad[i], CAPS_TASKS), -32602);
}

static void unknown_ids_are_left_out(world *w)
{
    wire *c = world_connect(w, NULL);
    listen_to(c, "1", "no-such-task");
    assert_at(wire_notification(c, ACK), "params.notifications.taskIds", "[]");
    wire_ask(c, "2", "subscriptions/listen", "\"notifications\":{}", NULL);
    assert_at(wire_notification(c, ACK), "params.notifications", "{}");
}

static void told_once_however_often_named(world *w)
{
    char params[256];
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    snprintf(params, sizeof params,
             "\"notifications\":{\"taskIds\":[\"%s\",\"%s\",\"%s\"]}", id, id, id);
    wire_ask(c, "2", "subscriptions/listen", params, CAPS_TASKS);
    snprintf(params, sizeof params, "[\"%s\"]", id);
    assert_at(wire_notification(c, ACK), "params.notifications.taskIds", params);
    wire_notification(c, "notifications/tasks");
    wire_task(c, "3", "tasks/cancel", id, NULL);
    assert_at(wire_notification(c, "notifications/tasks"), "params.status",
              "\"cancelled\"");
    wire_quiet(c);
}

static void cancelled_ends_it(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    listen_to(c, "2", id);
    wire_notification(c, ACK);
    wire_notification(c, "notifications/tasks");
    wire_notify(c, "notifications/cancelled", "\"requestId\":2");
    wire_task(c, "3", "tasks/cancel", id, NULL);
    assert_at(wire_task(c, "4", "tasks/get", id, NULL), "result.status", "\"cancelled\"");
    wire_quiet(c);
    assert_null(strstr(wire_history(c), "\"id\":2,"));
}

static void refuse_call(void *user, segue_call *call)
{
    (void)user;
    segue_call_free(call);
}

static void add_tool(world *w)
{
    static const char tool[] =
        "{\"name\":\"late\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = refuse_call;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
    world_run(w);
}

static void tool_list_changes(world *w)
{
    static const char changed[] = "notifications/tools/list_changed";
    wire *c = world_connect(w, NULL);
    wire *deaf = world_connect(w, NULL);
    wire_ask(c, "\"t\"", "subscriptions/listen",
             "\"notifications\":{\"toolsListChanged\":true}", NULL);
    wire_ask(deaf, "1", "subscriptions/listen",
             "\"notifications\":{\"toolsListChanged\":false}", NULL);
    assert_golden(wire_notification(c, ACK), "listen_ack_tools");
    wire_notification(deaf, ACK);
    add_tool(w);
    assert_golden(wire_notification(c, changed), "tools_list_changed");
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_TOOL, "late"), SEGUE_OK);
    wire_notification(c, changed);
    wire_quiet(c);
    wire_quiet(deaf);
}

static void closing_ends_it_with_a_result(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "subscriptions/listen",
             "\"notifications\":{\"toolsListChanged\":true}", NULL);
    wire_notification(c, ACK);
    segue_server_close(w->server);
    assert_golden(wire_response(c, "1"), "listen_end");
    wire_until_closed(c);
}

static const scenario scenarios[] = {
    {"AS-68 acknowledged, then each state until the end", tells_each_state, 0, NULL},
    {"AS-68 the present state is reported once", tells_the_state_of_now, 0, NULL},
    {"AS-68 no progress, message or event on a subscription", tells_nothing_else, 0,
     NULL},
    {"AS-68 without the extension: -32021", needs_the_extension, 0, NULL},
    {"filters that are none are refused", bad_filters, 0, NULL},
    {"R-2557-45 unknown tasks are left out silently", unknown_ids_are_left_out, 0, NULL},
    {"a task named twice is told of once", told_once_however_often_named, 0, NULL},
    {"notifications/cancelled ends a subscription", cancelled_ends_it, 0, NULL},
    {"changes of the tool list reach who asked for them", tool_list_changes,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"a server that closes ends a subscription with a result",
     closing_ends_it_with_a_result, ONLY_HERE | ONE_DRIVE, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
