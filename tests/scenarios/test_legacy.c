/* The plain parts of the handshake eras as a raw client sees them: initialize and its
 * versions, tools, ping, log level, progress, cancel, list_changed. */
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define HELLO(version)                                                                   \
    "\"protocolVersion\":\"" version "\",\"capabilities\":{},\"clientInfo\":{\"name\":"  \
    "\"raw\",\"version\":\"1\"}"

static wire *shake_hands(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_do_plain(c, "0", "initialize", HELLO("2025-11-25"));
    wire_notify(c, "notifications/initialized", NULL);
    return c;
}

static void negotiates_the_version(world *w)
{
    static const char *const cases[][2] = {
        {HELLO("2025-11-25"), "\"2025-11-25\""}, {HELLO("2025-06-18"), "\"2025-06-18\""},
        {HELLO("2025-03-26"), "\"2025-03-26\""}, {HELLO("2024-11-05"), "\"2024-11-05\""},
        {HELLO("2099-01-01"), "\"2025-11-25\""}, {HELLO("2026-07-28"), "\"2025-11-25\""},
        {HELLO("2023-01-01"), "\"2025-11-25\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wire *c = world_connect(w, NULL);
        const char *r = wire_do_plain(c, "1", "initialize", cases[i][0]);
        assert_at(r, "result.protocolVersion", cases[i][1]);
        assert_at(r, "result.serverInfo.name", "\"fixtures\"");
        assert_at(r, "result.resultType", "");
        assert_at(r, "result.capabilities.extensions", "");
    }
}

static void initialize_golden(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_golden(wire_do_plain(c, "1", "initialize", HELLO("2025-11-25")),
                  world_takes_keys(w) ? "legacy_initialize"
                                      : "legacy_initialize_without_keys");
    assert_code(wire_do_plain(c, "2", "initialize", "\"protocolVersion\":7"), -32602);
    assert_code(wire_do_plain(c, "3", "initialize", NULL), -32602);
}

static void nothing_before_initialize(world *w)
{
    wire *c = world_connect(w, NULL);
    assert_code(wire_do_plain(c, "1", "tools/list", NULL), -32602);
    assert_code(wire_do_plain(c, "2", "tools/call", "\"name\":\"greet\""), -32602);
    assert_at(wire_do_plain(c, "3", "ping", NULL), "result", "{}");
    wire_do_plain(c, "4", "initialize", HELLO("2025-11-25"));
    assert_at(wire_do_plain(c, "5", "tools/call", "\"name\":\"greet\""),
              "result.content.0.text", "\"Hello, World!\"");
}

static void tools_plainly(world *w)
{
    wire *c = shake_hands(w);
    assert_at(wire_do_plain(c, "1", "ping", NULL), "result", "{}");
    const char *r = wire_do_plain(c, "2", "tools/list", NULL);
    assert_at(r, "result.tools.0.name", "\"greet\"");
    assert_at(r, "result.ttlMs", "");
    assert_at(r, "result.resultType", "");
    assert_at(r, "result._meta", "");
    r = wire_do_plain(c, "3", "tools/call",
                      "\"name\":\"greet\",\"arguments\":{\"name\":\"Ada\"}");
    assert_golden(r, "legacy_call");
    /* A tool that may be a task runs to its end; one that must be is refused. */
    wire_ask_plain(c, "4", "tools/call",
                   "\"name\":\"slow_compute\",\"arguments\":{\"ms\":100}");
    world_advance(w, 100);
    assert_at(wire_response(c, "4"), "result.content.0.text", "\"Computed: done\"");
    r = wire_do_plain(c, "5", "tools/call", "\"name\":\"failing_job\"");
    assert_code(r, -32601);
    assert_golden(r, "legacy_task_required");
    assert_code(wire_do_plain(c, "6", "no/such", NULL), -32601);
    assert_code(wire_do_plain(c, "7", "server/discover", NULL), -32601);
    assert_code(wire_do_plain(c, "8", "tools/list", "\"cursor\":\"9999\""), -32602);
}

static void two_per_page(segue_server_options *options)
{
    options->page_size = 2;
}

static void list_golden(world *w)
{
    wire *c = shake_hands(w);
    assert_golden(wire_do_plain(c, "1", "tools/list", NULL), "legacy_tools_list_page");
}

static void log_level(world *w)
{
    wire *c = shake_hands(w);
    wire_do_plain(c, "1", "tools/call", "\"name\":\"chatty\"");
    assert_null(strstr(wire_history(c), "notifications/message"));
    assert_at(wire_do_plain(c, "2", "logging/setLevel", "\"level\":\"info\""), "result",
              "{}");
    wire_do_plain(c, "3", "tools/call", "\"name\":\"chatty\"");
    assert_at(wire_notification(c, "notifications/message"), "params.level", "\"info\"");
    assert_null(strstr(wire_history(c), "\"level\":\"debug\""));
    assert_code(wire_do_plain(c, "4", "logging/setLevel", "\"level\":\"loud\""), -32602);
    assert_code(wire_do_plain(c, "5", "logging/setLevel", NULL), -32602);
}

/* The level of the session holds at once, also for a call that runs. */
static void log_level_changes(world *w)
{
    wire *c = shake_hands(w);
    wire_do_plain(c, "1", "logging/setLevel", "\"level\":\"info\"");
    wire_ask_plain(c, "2", "tools/call",
                   "\"name\":\"reporter\",\"arguments\":{\"n\":4,\"delayMs\":50}");
    world_advance(w, 60);
    const char *first = strstr(wire_history(c), "notifications/message");
    assert_non_null(first);
    assert_null(strstr(first + 1, "notifications/message"));
    wire_do_plain(c, "3", "logging/setLevel", "\"level\":\"error\"");
    world_advance(w, 400);
    assert_at(wire_response(c, "2"), "result.content.0.text", "\"reported\"");
    first = strstr(wire_history(c), "notifications/message");
    assert_null(strstr(first + 1, "notifications/message"));
}

static void progress_and_cancel(world *w)
{
    wire *c = shake_hands(w);
    wire_do_plain(c, "1", "tools/call",
                  "\"name\":\"chatty\",\"_meta\":{\"progressToken\":7}");
    for (int i = 1; i <= 3; i++) {
        const char *n = wire_notification(c, "notifications/progress");
        assert_at(n, "params.progressToken", "7");
        assert_int_equal(atoi(json_at(n, "params.progress")), i);
    }
    wire_ask_plain(c, "\"x\"", "tools/call", "\"name\":\"hang_plain\"");
    wire_notify(c, "notifications/cancelled", "\"requestId\":\"x\"");
    wire_do_plain(c, "2", "ping", NULL);
    /* ends the stream: otherwise the connection stays taken */
    if (w->place == WORLD_HTTP)
        wire_expect_status(c, 200);
    assert_null(strstr(wire_history(c), "\"id\":\"x\""));
    if (w->place != WORLD_STDIO)
        assert_int_equal(fixtures_jobs(w->fixtures), 0);
}

static void list_changed(world *w)
{
    wire *eager = world_connect(w, NULL);
    wire *c = shake_hands(w);
    wire_do_plain(eager, "0", "initialize", HELLO("2025-11-25"));
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_TOOL, "hang"), SEGUE_OK);
    assert_int_equal(segue_server_remove(w->server, SEGUE_ITEM_TOOL, "hang_plain"),
                     SEGUE_OK);
    world_run(w);
    assert_golden(wire_notification(c, "notifications/tools/list_changed"),
                  "legacy_list_changed");
    wire_quiet(c); /* two changes at once are reported once */
    wire_quiet(eager);
    wire_notify(eager, "notifications/initialized", NULL);
    assert_golden(wire_notification(eager, "notifications/tools/list_changed"),
                  "legacy_list_changed");
    wire_quiet(eager);
}

static void both_eras_on_one_connection(world *w)
{
    wire *c = shake_hands(w);
    const char *id = wire_make_task(c, "1", "hang", NULL, NULL);
    assert_at(wire_do_plain(c, "2", "tools/call", "\"name\":\"greet\""),
              "result.resultType", "");
    assert_at(wire_task(c, "3", "tasks/get", id, NULL), "result.status", "\"working\"");
    /* The task does not exist in that era. */
    char params[200];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    assert_code(wire_do_plain(c, "4", "tasks/get", params), -32602);
}

#define SAYS(version)                                                                    \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version "\"}"

/* The member belongs to 2026-07-28. In the handshake eras a handshake version in it has
 * no effect, and the session's version counts (2026-07-28 basic/versioning). */
static void versions_in_meta(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do_plain(c, "0", "initialize", HELLO("2025-11-25") "," SAYS("2025-11-25"));
    assert_at(r, "result.protocolVersion", "\"2025-11-25\"");
    wire_notify(c, "notifications/initialized", NULL);
    r = wire_do_plain(c, "1", "tools/call", "\"name\":\"greet\"," SAYS("2025-11-25"));
    assert_at(r, "result.content.0.text", "\"Hello, World!\"");
    assert_at(r, "result.resultType", "");
    assert_at(wire_do_plain(c, "2", "ping", SAYS("2025-11-25")), "result", "{}");
    r = wire_do_plain(c, "3", "tools/list", SAYS("2099-01-01"));
    assert_code(r, -32022); /* a version that no era has */
    if (w->place == WORLD_HTTP)
        return; /* over HTTP a header names the version as well */
    assert_at(wire_do_plain(c, "4", "ping", SAYS("2025-06-18")), "result", "{}");
    wire *fresh = world_connect(w, NULL); /* without a handshake it is refused */
    assert_code(wire_do_plain(fresh, "1", "tools/list", SAYS("2025-11-25")), -32022);
}

static const scenario scenarios[] = {
    {"initialize answers a version it knows, else its own newest", negotiates_the_version,
     ONE_DRIVE, NULL},
    {"initialize equals its golden file", initialize_golden, 0, NULL},
    /* Over HTTP a request with neither version nor session is refused because of its
     * headers. */
    {"before initialize only ping is answered", nothing_before_initialize, NOT_HTTP,
     NULL},
    {"tools are listed and called plainly", tools_plainly, 0, NULL},
    {"tools/list equals its golden file", list_golden, ONLY_HERE | ONE_DRIVE,
     two_per_page},
    {"logging/setLevel holds for the session", log_level, 0, NULL},
    {"logging/setLevel holds for a call that runs", log_level_changes, ONLY_HERE, NULL},
    {"progress and cancel of a plain call", progress_and_cancel, 0, NULL},
    {"list_changed waits for initialized, and is not lost", list_changed,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"both eras on one connection", both_eras_on_one_connection, 0, NULL},
    {"R-C-14 a version of the handshake in _meta names nothing", versions_in_meta, 0,
     NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
