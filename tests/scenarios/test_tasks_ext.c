/* X: tasks of the extension io.modelcontextprotocol/tasks, as a raw client sees them. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void creates_a_task(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call",
                            "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":1}", CAPS_TASKS);
    static const char *const absent[] = {"task",  "ttl",           "pollInterval", "result",
                                         "error", "inputRequests", "requestState"};
    assert_at(r, "result.resultType", "\"task\"");
    assert_at(r, "result.status", "\"working\"");
    assert_at(r, "result.ttlMs", "3600000");
    assert_at(r, "result.pollIntervalMs", "1000");
    assert_true(strlen(json_at(r, "result.taskId")) > 20);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strcmp(absent[i], "result") != 0)
            assert_false(json_mentions(r, absent[i]));
    assert_golden(r, "tasks_ext_create");
}

static void undeclared_runs_plainly(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":1}", NULL);
    world_advance(w, 1000);
    const char *r = wire_response(c, "1");
    assert_at(r, "result.resultType", "\"complete\"");
    assert_at(r, "result.content.0.text", "\"Computed: done\"");
    r = wire_do(c, "2", "tools/call", "\"name\":\"failing_job\"", NULL);
    assert_code(r, -32021);
    assert_golden(r, "missing_tasks_capability");
}

static const scenario scenarios[] = {
    {"AS-33 a task is created", creates_a_task, 0, NULL},
    {"AS-34 undeclared: plain, or -32021", undeclared_runs_plainly, 0, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
