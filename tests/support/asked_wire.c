#include "support/asked_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

void asker_call(wire *c, const char *id, const char *tool)
{
    char params[128];
    snprintf(params, sizeof params, "\"name\":\"%s\",\"arguments\":{}", tool);
    wire_ask_plain(c, id, "tools/call", params);
}

const char *asker_asked(wire *c, const char *method, char id[WIRE_ID])
{
    const char *line = wire_request(c, method);
    snprintf(id, WIRE_ID, "%s", json_at(line, "id"));
    assert_true(*id);
    return line;
}

const char *asker_polled(world *w, wire *c, const char *method, char id[WIRE_ID])
{
    world_advance(w, 120);
    const char *line = asker_asked(c, method, id);
    assert_at(line, "params.taskId", "\"H\"");
    return line;
}

void asker_reply(wire *c, const char *id, const char *result)
{
    char line[2048];
    snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", id,
             result);
    wire_send(c, line);
}

void asker_refuse(wire *c, const char *id, int code)
{
    char line[256];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":\"no\"}}",
             id, code);
    wire_send(c, line);
}

void asker_got(const char *response, const char *what)
{
    char expected[2048];
    size_t n = 0;
    expected[n++] = '"';
    for (; *what; what++) {
        if (*what == '"')
            expected[n++] = '\\';
        expected[n++] = *what;
    }
    expected[n++] = '"';
    expected[n] = 0;
    assert_at(response, "result.content.0.text", expected);
}

void asker_got_error(const char *response, const char *code)
{
    assert_at(response, "result.isError", "true");
    if (!strstr(json_at(response, "result.content.0.text"), code))
        fail_msg("no %s in %s", code, response);
}

wire *asker_begin_task(world *w, const char *caps, const char *tool)
{
    char id[WIRE_ID];
    wire *c = legacy_connect(w, NULL, caps);
    asker_call(c, "1", tool);
    asker_asked(c, SAMPLE, id);
    asker_reply(c, id, "{" CREATED "}");
    return c;
}

void asker_tune(segue_server_options *options)
{
    options->question_ttl_ms = 60000;
}
