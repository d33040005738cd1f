/* Bad input that is ignored or gets an error: bytes that are no JSON, JSON that is no
 * message, responses without a request. The conversation goes on, memory stays
 * bounded. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MIB ((size_t)1024 * 1024)

/* Checks that the conversation works, and that only the answer to this request comes. */
static void assert_alive(wire *c)
{
    const char *r = wire_do(c, "\"alive\"", "tools/call", "\"name\":\"greet\"", NULL);
    assert_at(r, "result.content.0.text", "\"Hello, World!\"");
}

static void assert_parse_error(wire *c, const char *line)
{
    wire_send(c, line);
    const char *r = wire_due(c);
    assert_non_null(r);
    assert_code(r, -32700);
    assert_at(r, "id", "");
    assert_alive(c);
}

static char *filled(const char *head, char fill, size_t count, const char *tail)
{
    size_t before = strlen(head);
    char *text = malloc(before + count + strlen(tail) + 1);
    memcpy(text, head, before);
    memset(text + before, fill, count);
    strcpy(text + before + count, tail);
    return text;
}

static void not_json(world *w)
{
    static const char *const bad[] = {
        "hello",
        "{",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc0\xaf\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xed\xa0\x80\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\udc00\\ud800\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1.,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}",
        "\xef\xbb\xbf{}",
    };
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_parse_error(c, bad[i]);
    assert_at(wire_do(c, "1", "tools/list", NULL, NULL), "result.resultType",
              "\"complete\"");
    wire_send(c, "hello");
    assert_golden(wire_due(c), "parse_error");
}

static void duplicate_task_id(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    char params[400];
    snprintf(params, sizeof params, "\"taskId\":\"x\",\"taskId\":\"%s\"", id);
    char *line = wire_line("2", "tasks/cancel", params, CAPS_TASKS);
    assert_parse_error(c, line);
    free(line);
    assert_at(wire_task(c, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
}

static void nul_in_strings(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call",
                "\"name\":\"echo\",\"arguments\":{\"text\":\"a\\u0000b\"}", NULL);
    assert_at(r, "result.resultType", "\"complete\"");
    assert_code(wire_do(c, "2", "tools/call", "\"name\":\"greet\\u0000\"", NULL), -32602);
    /* No header can carry that. */
    r = wire_do(c, "3", "tools/call\\u0000", "\"name\":\"greet\"", NULL);
    if (w->place == WORLD_HTTP)
        assert_code(r, -32020);
    else
        assert_code(r, -32601);
    r = wire_do(c, "\"a\\u0000b\"", "tools/call", "\"name\":\"greet\"", NULL);
    assert_at(r, "id", "\"a\\u0000b\"");
    /* The raw byte is not JSON. */
    static const char raw[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\0b\"}\n";
    if (w->place != WORLD_STDIO) {
        wire_feed(c, raw, sizeof raw - 1);
        world_run(w);
        assert_code(wire_due(c), -32700);
        assert_alive(c);
    }
}

static void deep_nesting(world *w)
{
    wire *c = world_connect(w, NULL);
    char *open = filled(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":", '[',
        10000, "");
    char *closed = filled(open, ']', 10000, "}}");
    assert_parse_error(c, closed);
    assert_parse_error(c, open);
    free(open);
    free(closed);
}

static void numbers_pass_untouched(world *w)
{
    static const char *const numbers[] = {"1e400", "-1e-400", "18446744073709551616",
                                          "1.000000000000000000000001"};
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char params[200];
        snprintf(params, sizeof params, "\"name\":\"greet\",\"arguments\":{\"n\":%s}",
                 numbers[i]);
        assert_at(wire_do(c, "1", "tools/call", params, NULL), "result.content.0.text",
                  "\"Hello, World!\"");
        snprintf(params, sizeof params, "\"taskId\":\"x\",\"after\":%s", numbers[i]);
        assert_code(wire_do(c, "2", "tasks/stream", params, CAPS_TASKS), -32602);
        /* Such a value is no valid id. */
        char line[200];
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}",
                 numbers[i]);
        wire_send(c, line);
        assert_code(wire_due(c), -32600);
    }
}

static void huge_line(world *w)
{
    wire *c = world_connect(w, NULL);
    char *line =
        filled("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"", 'x', 100 * MIB, "\"}");
    size_t before = w->mem.live;
    w->mem.peak = before;
    for (size_t at = 0, len = strlen(line); at < len; at += MIB) {
        wire_feed(c, line + at, len - at < MIB ? len - at : MIB);
        segue_runtime_dispatch(w->runtime, 0, 0, NULL);
    }
    free(line);
    wire_send(c, "");
    const char *r = wire_due(c);
    assert_code(r, -32600);
    assert_golden(r, "message_too_large");
    assert_alive(c);
    /* The limit is 64 MiB, in a buffer that grows by half its size. */
    assert_in_range(w->mem.peak - before, 64 * MIB, 165 * MIB);
    assert_in_range(w->mem.live, 0, before + 2 * MIB);
}

static void huge_task_id(world *w)
{
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/update",
                                          "tasks/stream"};
    wire *c = world_connect(w, NULL);
    char *params = filled("\"inputResponses\":{},\"taskId\":\"", 'A', MIB, "\"");
    for (size_t i = 0; i < 4; i++)
        assert_code(wire_do(c, "1", methods[i], params, CAPS_TASKS), -32602);
    free(params);
    char *filter = filled("\"notifications\":{\"taskIds\":[\"", 'A', MIB, "\"]}");
    wire_ask(c, "2", "subscriptions/listen", filter, CAPS_TASKS);
    free(filter);
    assert_at(wire_notification(c, "notifications/subscriptions/acknowledged"),
              "params.notifications.taskIds", "[]");
    assert_alive(c);
}

/* ---- JSON that is no message ---- */

static void bad_envelopes(world *w)
{
    static const struct {
        const char *line, *id;
    } bad[] = {
        {"[]", ""},
        {"7", ""},
        {"null", ""},
        {"\"ping\"", ""},
        {"{}", ""},
        {"{\"id\":1,\"method\":\"ping\"}", "1"},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", "1"},
        {"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"ping\"}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", ""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}", "1"},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", ""},
    };
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wire_send(c, bad[i].line);
        const char *r = wire_due(c);
        assert_code(r, -32600);
        assert_at(r, "id", bad[i].id);
        assert_alive(c);
    }
    wire_send(c, bad[5].line);
    assert_golden(wire_due(c), "invalid_request");
}

static void responses_to_nothing(world *w)
{
    static const char *const lines[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"x\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}",
        "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"x\"}}",
    };
    wire *c = world_connect(w, NULL);
    if (w->place == WORLD_HTTP) { /* over HTTP only a session takes responses */
        wire_do_plain(c, "0", "initialize",
                      "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                      "\"clientInfo\":{\"name\":\"raw\",\"version\":\"1\"}");
        wire_notify(c, "notifications/initialized", NULL);
    }
    /* The same id is in flight in the other direction: the two are independent. */
    wire_ask(c, "1", "tools/call", "\"name\":\"hang_plain\"", NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        wire_send(c, lines[i]);
        assert_alive(c);
    }
    const char *r;
    while (w->place == WORLD_HTTP && (r = wire_next(c))) {
        assert_code(r, -32600); /* a refused POST gets an error without an id */
        assert_at(r, "id", "");
    }
    if (w->place != WORLD_HTTP)
        assert_null(strstr(wire_history(c), "\"error\""));
    wire_quiet(c);
}

static void odd_notifications(world *w)
{
    static const char *const lines[] = {
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
        "cancelled\",\"params\":{\"requestId\":{}}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
        "progress\",\"params\":{\"progress\":1e400}}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"greet\"}}",
        "",
        " ",
        "\r",
    };
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        wire_send(c, lines[i]);
        assert_alive(c);
    }
    assert_null(strstr(wire_history(c), "\"error\""));
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "greet"), (int)(sizeof lines / sizeof *lines));
}

/* 1.5 is no valid id, and must not match the request whose id is the empty string. */
static void ids_that_are_none_cancel_nothing(world *w)
{
    static const char *const ids[] = {
        "1.5", "1e400", "18446744073709551616", "true", "null", "{}", "[\"\"]"};
    wire *c = world_connect(w, NULL);
    wire_do_plain(c, "0", "initialize",
                  "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                  "\"clientInfo\":{\"name\":\"raw\",\"version\":\"1\"}");
    wire_notify(c, "notifications/initialized", NULL);
    wire_ask_plain(c, "\"\"", "tools/call",
                   "\"name\":\"slow_compute\",\"arguments\":{\"ms\":100}");
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char params[64];
        snprintf(params, sizeof params, "\"requestId\":%s", ids[i]);
        wire_notify(c, "notifications/cancelled", params);
    }
    world_advance(w, 100);
    assert_at(wire_response(c, "\"\""), "result.content.0.text", "\"Computed: done\"");
}

/* Mutations of good messages: an answer or none, never the end of the server. */
static void random_bytes(world *w)
{
    static const char *const seeds[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
        "call\",\"params\":{\"name\":\"echo\","
        "\"arguments\":{\"text\":\"\\u00e9\\n\"},\"_meta\":{"
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tasks/"
        "stream\",\"params\":{\"taskId\":"
        "\"T\",\"after\":3,\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
        "\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{"
        "\"io.modelcontextprotocol/tasks\":{}}}}}}",
        ("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
         "cancelled\",\"params\":{\"requestId\":1}}"),
    };
    wire *c = world_connect(w, NULL);
    for (int i = 0; i < 3000; i++) {
        char line[512];
        size_t len =
            (size_t)snprintf(line, sizeof line, "%s\n", seeds[world_chance(w, 3)]);
        for (uint32_t n = 1 + world_chance(w, 4); n; n--) {
            size_t at = world_chance(w, (uint32_t)len - 1);
            line[at] = (char)world_chance(w, 256);
        }
        wire_feed(c, line, len);
        segue_runtime_dispatch(w->runtime, 0, 0, NULL);
        if (i % 100 == 0)
            assert_alive(c);
    }
    assert_alive(c);
}

static const scenario scenarios[] = {
    {"AS-116 text that is not JSON gets a parse error", not_json, 0, NULL},
    {"AS-116 a task id given twice does nothing", duplicate_task_id, 0, NULL},
    {"AS-116 NUL in strings is a character like any other", nul_in_strings, 0, NULL},
    {"AS-116 10,000 levels are refused", deep_nesting, ONE_DRIVE, NULL},
    {"AS-116 numbers beyond double pass untouched", numbers_pass_untouched, 0, NULL},
    /* Over HTTP a length that is too large is refused at the head (413), and so is a name
     * of that length (431): test_http1_limits.c, test_http_torture.c. */
    {"AS-116 a line of 100 MiB is refused in bounded memory", huge_line,
     ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL},
    {"AS-116 a task id of 1 MiB is unknown", huge_task_id, ONE_DRIVE | NOT_HTTP, NULL},
    {"AS-116 JSON that is no message is refused", bad_envelopes, 0, NULL},
    {"AS-116 invalid ids cancel nothing", ids_that_are_none_cancel_nothing, 0, NULL},
    {"AS-116 mutated messages do no harm", random_bytes, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-118 responses without a request are dropped", responses_to_nothing, 0, NULL},
    {"notifications nobody understands are ignored", odd_notifications, 0, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
