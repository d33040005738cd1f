#include "support/draft_wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

void draft_on(segue_server_options *options)
{
    options->dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
}

wire *draft_connect(world *w, const char *principal, const char *capabilities)
{
    wire *c = world_connect(w, principal);
    assert_at(legacy_hello(c, DRAFT, capabilities), "result.protocolVersion",
              "\"" DRAFT "\"");
    wire_notify(c, "notifications/initialized", NULL);
    return c;
}

const char *draft_make_task(wire *c, const char *id, const char *tool,
                            const char *arguments)
{
    static char ids[64][64];
    static unsigned turn;
    char params[512];
    char *text = ids[turn++ % 64];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s}", tool,
             arguments ? arguments : "");
    const char *r = wire_do_plain(c, id, "tools/call", params);
    assert_at(r, "result.resultType", "\"task\"");
    assert_at(r, "result.task.status", "\"working\"");
    const char *quoted = json_at(r, "result.task.taskId");
    snprintf(text, sizeof *ids, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    return text;
}

const char *draft_state_of(const char *response)
{
    const char *state = json_at(response, "result.requestState");
    if (!*state)
        state = json_at(response, "result.task.requestState");
    if (!*state)
        fail_msg("no requestState in %s", response);
    return state;
}
