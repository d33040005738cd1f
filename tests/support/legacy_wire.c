#include "support/legacy_wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/world_inside.h"

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

const char *legacy_hello(wire *c, const char *version, const char *capabilities)
{
    char params[1024];
    snprintf(params, sizeof params,
             "\"protocolVersion\":\"%s\",\"capabilities\":%s,\"clientInfo\":{\"name\":"
             "\"raw\",\"version\":\"1\"}",
             version, capabilities ? capabilities : "{}");
    return wire_do_plain(c, "0", "initialize", params);
}

wire *legacy_connect_as(world *w, const char *principal, const char *version,
                        const char *capabilities)
{
    wire *c = world_connect(w, principal);
    legacy_hello(c, version, capabilities);
    wire_notify(c, "notifications/initialized", NULL);
    return c;
}

wire *legacy_connect(world *w, const char *principal, const char *capabilities)
{
    return legacy_connect_as(w, principal, "2025-11-25", capabilities);
}

void legacy_ask_task(wire *c, const char *id, const char *tool, const char *arguments,
                     const char *task)
{
    char params[2048];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{%s},\"task\":%s",
             tool, arguments ? arguments : "", task ? task : "{}");
    wire_ask_plain(c, id, "tools/call", params);
}

const char *legacy_call(wire *c, const char *id, const char *tool, const char *arguments,
                        const char *task)
{
    legacy_ask_task(c, id, tool, arguments, task);
    return wire_response(c, id);
}

const char *legacy_make_task(wire *c, const char *id, const char *tool,
                             const char *arguments, const char *task)
{
    static char ids[64][64];
    static unsigned turn;
    char *text = ids[turn++ % 64];
    const char *r = legacy_call(c, id, tool, arguments, task);
    assert_at(r, "result.task.status", "\"working\"");
    const char *quoted = json_at(r, "result.task.taskId");
    snprintf(text, sizeof *ids, "%.*s", (int)strlen(quoted) - 2, quoted + 1);
    return text;
}

void legacy_ask_about(wire *c, const char *id, const char *method, const char *task_id,
                      const char *more)
{
    char params[2048];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"%s%s", task_id, more ? "," : "",
             more ? more : "");
    wire_ask_plain(c, id, method, params);
}

const char *legacy_task(wire *c, const char *id, const char *method, const char *task_id,
                        const char *more)
{
    legacy_ask_about(c, id, method, task_id, more);
    return wire_response(c, id);
}

/* Polls until the member has the wanted value; NULL = any value. */
static const char *get_until(wire *c, const char *task_id, const char *member,
                             const char *wanted)
{
    char id[32];
    int64_t deadline = world_real_ms() + WAIT_MS;
    for (int i = 0; i < 2000 && world_real_ms() < deadline; i++) {
        snprintf(id, sizeof id, "\"until-%d\"", i);
        const char *got = legacy_task(c, id, "tasks/get", task_id, NULL);
        const char *now = json_at(got, member);
        if (*now && (!wanted || !strcmp(now, wanted)))
            return got;
        if (*json_at(got, "error"))
            fail_msg("tasks/get: %s", got);
        world_advance(c->w, 50);
        if (c->w->place == WORLD_STDIO)
            wire_stdio_read(c, 10); /* over stdio the server runs in real time */
    }
    fail_msg("%s never became %s", member, wanted ? wanted : "known");
    return NULL;
}

const char *legacy_get_until(wire *c, const char *task_id, const char *status)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\"", status);
    return get_until(c, task_id, "result.status", quoted);
}

const char *legacy_get_until_asked(wire *c, const char *task_id, const char *key)
{
    char member[64];
    snprintf(member, sizeof member, "result.inputRequests.%s", key);
    return get_until(c, task_id, member, NULL);
}
