/* The era of 2026-07-28 as a raw client sees it: discovery, the fields of every request,
 * tools/list and plain tools/call, progress, log messages, cancel, a call that becomes a
 * task later. */
#include "support/world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define VERSION "\"io.modelcontextprotocol/protocolVersion\":"
#define CAPABILITIES "\"io.modelcontextprotocol/clientCapabilities\":"

static const char *do_meta(wire *c, const char *id, const char *method,
                           const char *params, const char *meta)
{
    char line[2048];
    snprintf(line, sizeof line,
             "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\",\"params\":{%s%s\"_meta\":"
             "{%s}}}",
             id, method, params ? params : "", params ? "," : "", meta);
    wire_send(c, line);
    return wire_response(c, id);
}

/* ---- discovery and versions ---- */

/* Clients may learn the versions from either answer, so both must agree. */
#define VERSIONS                                                                         \
    "[\"2026-07-28\",\"2025-11-25\",\"2025-06-18\",\"2025-03-26\",\"2024-11-05\"]"

static void discovers(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "server/discover", NULL, NULL);
    assert_at(r, "result.supportedVersions", VERSIONS);
    const char *extensions = json_at(r, "result.capabilities.extensions");
    assert_non_null(strstr(extensions, "\"io.modelcontextprotocol/tasks\":{}"));
    assert_non_null(strstr(extensions, "\"dev.segue/eventStreams\":{}"));
    assert_golden(r, world_takes_keys(w) ? "discover" : "discover_without_keys");
}

static void unknown_versions(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r =
        do_meta(c, "1", "tools/list", NULL, VERSION "\"2099-01-01\"," CAPABILITIES "{}");
    assert_code(r, -32022);
    assert_at(r, "error.data.requested", "\"2099-01-01\"");
    assert_at(r, "error.data.supported", VERSIONS);
    assert_golden(r, "unsupported_version");
    /* A handshake version does not belong to this era, and the version is checked
     * first. */
    r = do_meta(c, "2", "no/such", NULL, VERSION "\"2025-11-25\"");
    assert_code(r, -32022);
}

static void missing_meta(world *w)
{
    static const char *const bad[] = {
        VERSION "\"2026-07-28\"",
        VERSION "\"2026-07-28\"," CAPABILITIES "[]",
    };
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(do_meta(c, "1", "tools/list", NULL, bad[i]), -32602);
    /* No header can repeat it, and headers are checked first. */
    const char *mistyped =
        do_meta(c, "1", "tools/list", NULL, VERSION "7," CAPABILITIES "{}");
    if (w->place == WORLD_HTTP)
        assert_code(mistyped, -32020);
    else
        assert_code(mistyped, -32602);
    wire_ask_plain(c, "2", "tools/list", NULL);
    const char *r = wire_response(c, "2");
    assert_code(r, -32602);
    if (w->place != WORLD_HTTP) /* over HTTP a header has named the era already */
        assert_golden(r, "missing_meta");
}

static void unknown_methods(world *w)
{
    static const char *const methods[] = {"no/such", "initialize", "ping", "tasks/result",
                                          "logging/setLevel"};
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        assert_code(wire_do(c, "1", methods[i], NULL, CAPS_ALL), -32601);
    if (w->place != WORLD_HTTP) /* over HTTP a header would have to be empty */
        assert_code(wire_do(c, "1", "", NULL, CAPS_ALL), -32601);
}

static void ids_are_echoed(world *w)
{
    static const char *const ids[] = {"0",
                                      "-1",
                                      "9223372036854775807",
                                      "\"\"",
                                      "\"1\"",
                                      "-9223372036854775808",
                                      "1",
                                      "\"a\\\"b\\\\\"",
                                      "\"\xc3\xa9\xf0\x9f\x98\x80\""};
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const char *r = wire_do(c, ids[i], "tools/call", "\"name\":\"greet\"", NULL);
        assert_at(r, "result.content.0.text", "\"Hello, World!\"");
    }
}

static void ids_keep_their_type(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"slow_compute\",\"arguments\":{\"ms\":100}",
             NULL);
    wire_ask(c, "\"1\"", "tools/call", "\"name\":\"greet\"", NULL);
    assert_at(wire_response(c, "\"1\""), "result.content.0.text", "\"Hello, World!\"");
    world_advance(w, 100);
    assert_at(wire_response(c, "1"), "result.content.0.text", "\"Computed: done\"");
}

/* ---- tools ---- */

static void three_per_page(segue_server_options *options)
{
    options->page_size = 3;
}

static void pages_of_tools(world *w)
{
    wire *c = world_connect(w, NULL);
    char params[256] = "", seen[4096] = "";
    int pages = 0, tools = 0;
    for (;;) {
        const char *r = wire_do(c, "1", "tools/list", params, NULL);
        int here = 0;
        char path[32];
        for (;
             snprintf(path, sizeof path, "result.tools.%d.name", here), *json_at(r, path);
             here++) {
            assert_null(strstr(seen, json_at(r, path)));
            strcat(seen, json_at(r, path));
        }
        tools += here;
        if (!pages++)
            assert_golden(r, "tools_list_page");
        if (!*json_at(r, "result.nextCursor"))
            break;
        assert_int_equal(here, 3);
        snprintf(params, sizeof params, "\"cursor\":%s", json_at(r, "result.nextCursor"));
    }
    assert_true(tools > 20);
    assert_int_equal(pages, (tools + 2) / 3);
}

static void bad_list_cursors(world *w)
{
    static const char *const bad[] = {"\"cursor\":7",
                                      "\"cursor\":\"\"",
                                      "\"cursor\":\"abc\"",
                                      "\"cursor\":null",
                                      "\"cursor\":\"99999999999999999999999\"",
                                      "\"cursor\":\"3\""};
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(wire_do(c, "1", "tools/list", bad[i], NULL), -32602);
}

static void bad_calls(world *w)
{
    static const char *const bad[] = {
        NULL, "\"name\":7", "\"name\":\"greet\",\"arguments\":[]",
        "\"name\":\"greet\",\"arguments\":\"x\"", "\"name\":\"no_such_tool\""};
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(wire_do(c, "1", "tools/call", bad[i], NULL), -32602);
    assert_golden(wire_do(c, "2", "tools/call", bad[4], NULL), "unknown_tool");
}

static void blocks_of_every_type(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r = wire_do(c, "1", "tools/call", "\"name\":\"blocks\"", NULL);
    assert_at(r, "result.content.0.text", "\"a\\u0000b\"");
    assert_at(r, "result.content.5.n", "1e400");
    assert_at(r, "result.structuredContent.big", "18446744073709551616");
    assert_golden(r, "call_blocks");
}

static void errors_of_calls(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"protocol_error_job\"", NULL);
    world_advance(w, 100);
    assert_golden(wire_response(c, "1"), "call_error");
    assert_golden(wire_do(c, "2", "tools/call", "\"name\":\"fail_after\"", NULL),
                  "call_tool_error");
    assert_code(wire_do(c, "3", "tools/call", "\"name\":\"give_up\"", NULL), -32603);
    assert_golden(wire_do(c, "4", "tools/call", "\"name\":\"fields\"", NULL),
                  "call_fields");
}

/* ---- progress, messages, cancel ---- */

static void progress_on_demand(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_do(c, "1", "tools/call", "\"name\":\"chatty\"", NULL);
    assert_null(strstr(wire_history(c), "notifications/"));
    do_meta(c, "2", "tools/call", "\"name\":\"chatty\"",
            VERSION "\"2026-07-28\"," CAPABILITIES "{},\"progressToken\":\"tok\"");
    for (int i = 1; i <= 3; i++) {
        const char *n = wire_notification(c, "notifications/progress");
        assert_at(n, "params.progressToken", "\"tok\"");
        assert_int_equal(atoi(json_at(n, "params.progress")), i);
        if (i == 1)
            assert_golden(n, "progress");
    }
    assert_null(strstr(wire_history(c), "notifications/message"));
}

static void messages_from_a_level(world *w)
{
    wire *c = world_connect(w, NULL);
    do_meta(c, "1", "tools/call", "\"name\":\"chatty\"",
            VERSION "\"2026-07-28\"," CAPABILITIES
                    "{},\"io.modelcontextprotocol/logLevel\":\"info\"");
    assert_golden(wire_notification(c, "notifications/message"), "message");
    assert_null(strstr(wire_history(c), "\"level\":\"debug\""));
    /* Nothing is remembered from one request to the next. */
    wire_do(c, "2", "tools/call", "\"name\":\"chatty\"", NULL);
    assert_null(strstr(strstr(wire_history(c), "\"id\":1"), "notifications/message"));
    do_meta(c, "3", "tools/call", "\"name\":\"chatty\"",
            VERSION "\"2026-07-28\"," CAPABILITIES
                    "{},\"io.modelcontextprotocol/logLevel\":\"debug\"");
    for (int i = 0; i < 4; i++)
        wire_notification(c, "notifications/message");
}

/* 2026-07-28 server/utilities/logging, "Error Handling"; checked after what R-0-7 puts
 * first. */
static void levels_that_are_none(world *w)
{
    static const char level[] =
        VERSION "\"2026-07-28\"," CAPABILITIES "{},\"io.modelcontextprotocol/logLevel\":"
                "\"verbose\"";
    wire *c = world_connect(w, NULL);
    assert_code(do_meta(c, "1", "tools/call", "\"name\":\"chatty\"", level), -32602);
    assert_code(do_meta(c, "2", "no/such", NULL, level), -32601);
    assert_code(do_meta(c, "3", "tasks/get", "\"taskId\":\"x\"", level), -32021);
    if (w->place != WORLD_STDIO)
        assert_int_equal(world_runs(w, "chatty"), 0);
}

/* A token is echoed where the schema wants a string or an integer. */
static void progress_tokens_that_are_none(world *w)
{
    static const char *const none[] = {"1.5", "true", "null", "[]", "{}"};
    wire *c = world_connect(w, NULL);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char meta[256];
        snprintf(meta, sizeof meta,
                 VERSION "\"2026-07-28\"," CAPABILITIES "{},\"progressToken\":%s",
                 none[i]);
        do_meta(c, "1", "tools/call", "\"name\":\"chatty\"", meta);
    }
    assert_null(strstr(wire_history(c), "notifications/progress"));
}

static void tell_no_number(void *user, segue_call *call)
{
    (void)user;
    assert_int_equal(segue_call_progress(call, NAN, 1, NULL, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_call_progress(call, 1, INFINITY, NULL, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_call_progress(call, -INFINITY, 0, NULL, NULL),
                     SEGUE_E_INVALID);
    segue_call_progress(call, 1.5, 3, NULL, NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add_tool(world *w, const char *name, segue_call_fn run)
{
    char json[1024];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = run;
    snprintf(json, sizeof json, "{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}",
             name);
    assert_int_equal(
        segue_server_add(w->server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL),
        SEGUE_OK);
    world_run(w);
}

/* JSON has no such numbers, and the schema of progress does not allow null. */
static void progress_is_a_number(world *w)
{
    wire *c = world_connect(w, NULL);
    add_tool(w, "odd", tell_no_number);
    do_meta(c, "1", "tools/call", "\"name\":\"odd\"",
            VERSION "\"2026-07-28\"," CAPABILITIES "{},\"progressToken\":1");
    const char *n = wire_notification(c, "notifications/progress");
    assert_at(n, "params.progress", "1.5");
    assert_at(n, "params.total", "3");
    wire_quiet(c);
}

#define REPORTS 3000

/* Reports more than the output of a client may hold, without a pause. */
static void report_much(void *user, segue_call *call)
{
    char filler[1024];
    (void)user;
    memset(filler, 'f', sizeof filler - 1);
    filler[sizeof filler - 1] = 0;
    for (int i = 1; i <= REPORTS; i++) {
        char json[16];
        snprintf(json, sizeof json, "%d", i);
        assert_int_equal(segue_call_progress(call, i, REPORTS, filler, NULL), SEGUE_OK);
        assert_int_equal(segue_call_log(call, "info", json, strlen(json), NULL),
                         SEGUE_OK);
    }
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

/* Counts the notifications that come before the answer, in order; returns how many. The
 * last one has the number REPORTS. */
static int count_notes(const char *history, const char *mark)
{
    int count = 0;
    int last = 0;
    const char *answer = strstr(history, "\"id\":1");
    assert_non_null(answer);
    for (const char *at = history; (at = strstr(at, mark)); at++, count++) {
        int number = atoi(at + strlen(mark));
        assert_true(number > last);
        last = number;
    }
    assert_int_equal(last, REPORTS);
    return count;
}

static void the_last_report_always_arrives(world *w)
{
    wire *c = world_connect(w, NULL);
    add_tool(w, "much", report_much);
    do_meta(c, "1", "tools/call", "\"name\":\"much\"",
            VERSION "\"2026-07-28\"," CAPABILITIES "{},\"progressToken\":1,"
                    "\"io.modelcontextprotocol/logLevel\":\"info\"");
    const char *history = wire_history(c);
    int arrived =
        count_notes(history, "\"progress\":") + count_notes(history, "\"data\":");
    assert_true(arrived < 2 * REPORTS);
    assert_int_equal(world_stat(w, "use.thinned"), 2 * REPORTS - arrived);
}

/* Some writers escape all text beyond ASCII. */
static void names_are_found_however_they_are_written(world *w)
{
    char name[257] = "", escaped[2048] = "\"name\":\"";
    for (int i = 0; i < 64; i++) {
        strcat(name, "\xf0\x9f\x98\x80");
        strcat(escaped, "\\ud83d\\ude00");
    }
    strcat(escaped, "\"");
    wire *c = world_connect(w, NULL);
    add_tool(w, name, tell_no_number);
    assert_at(wire_do(c, "1", "tools/call", escaped, NULL), "result.resultType",
              "\"complete\"");
}

static void cancel_reaches_the_handler(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"hang_plain\"", NULL);
    wire_ask(c, "2", "tools/call", "\"name\":\"hang_plain\"", NULL);
    assert_int_equal(fixtures_jobs(w->fixtures), 2);
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    assert_int_equal(fixtures_jobs(w->fixtures), 1);
    /* a late cancel is ignored */
    wire_notify(c, "notifications/cancelled", "\"requestId\":99");
    wire_cut(c);
    world_run(w);
    assert_int_equal(fixtures_jobs(w->fixtures), 0);
    wire_quiet(c);
}

static void cancelled_request_is_not_answered(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"slow_compute\",\"arguments\":{\"ms\":50}",
             NULL);
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    wire_ask(c, "2", "tools/call", "\"name\":\"slow_compute\",\"arguments\":{\"ms\":100}",
             NULL);
    world_advance(w, 100);
    wire_response(c, "2");
    assert_null(strstr(wire_history(c), "\"id\":1,"));
}

static void slow_ones_do_not_block(world *w)
{
    char slow[100];
    wire *c = world_connect(w, NULL);
    snprintf(slow, sizeof slow, "\"name\":\"slow_compute\",\"arguments\":{%s}",
             world_lasting(w, 200));
    wire_ask(c, "1", "tools/call", slow, NULL);
    assert_at(wire_do(c, "2", "tools/call", "\"name\":\"greet\"", NULL),
              "result.content.0.text", "\"Hello, World!\"");
    assert_null(strstr(wire_history(c), "\"id\":1,"));
    world_advance(w, 200);
    wire_response(c, "1");
}

static void id_in_flight_is_not_used_twice(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"slow_compute\",\"arguments\":{\"ms\":100}",
             NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"greet\"", NULL);
    world_advance(w, 100);
    assert_at(wire_response(c, "1"), "result.content.0.text", "\"Computed: done\"");
    assert_at(wire_do(c, "1", "tools/call", "\"name\":\"greet\"", NULL),
              "result.content.0.text", "\"Hello, World!\"");
}

/* ---- a call that becomes a task later ---- */

static void promoted_after_a_while(world *w)
{
    wire *c = world_connect(w, NULL);
    wire_ask(c, "1", "tools/call", "\"name\":\"promote\",\"arguments\":{\"ms\":499}",
             CAPS_TASKS);
    world_advance(w, 499);
    assert_at(wire_response(c, "1"), "result.resultType", "\"complete\"");
    wire_ask(c, "2", "tools/call", "\"name\":\"promote\",\"arguments\":{\"ms\":700}",
             CAPS_TASKS);
    world_advance(w, 499);
    wire_quiet(c);
    world_advance(w, 1);
    const char *r = wire_response(c, "2");
    assert_at(r, "result.resultType", "\"task\"");
    char id[160];
    snprintf(id, sizeof id, "%.*s", (int)strlen(json_at(r, "result.taskId")) - 2,
             json_at(r, "result.taskId") + 1);
    r = wire_get_until(c, id, "completed", NULL);
    assert_at(r, "result.result.content.0.text", "\"Computed: done\"");
    wire_ask(c, "3", "tools/call", "\"name\":\"promote\",\"arguments\":{\"ms\":700}",
             NULL);
    world_advance(w, 700);
    assert_at(wire_response(c, "3"), "result.resultType", "\"complete\"");
}

static void deferred_by_the_handler(world *w)
{
    wire *c = world_connect(w, NULL);
    const char *r =
        wire_do(c, "1", "tools/call", "\"name\":\"defer\",\"arguments\":{\"ttl\":7000}",
                CAPS_TASKS);
    assert_at(r, "result.resultType", "\"task\"");
    assert_at(r, "result.ttlMs", "7000");
    char id[160];
    snprintf(id, sizeof id, "%.*s", (int)strlen(json_at(r, "result.taskId")) - 2,
             json_at(r, "result.taskId") + 1);
    r = wire_get_until(c, id, "completed", NULL);
    assert_at(r, "result.result.content.0.text", "\"defer: SEGUE_OK\"");
    wire_ask(c, "2", "tools/call", "\"name\":\"defer\"", NULL);
    world_advance(w, 100);
    assert_at(wire_response(c, "2"), "result.content.0.text",
              "\"defer: SEGUE_E_UNSUPPORTED\"");
}

static const scenario scenarios[] = {
    {"server/discover equals its golden file", discovers, 0, NULL},
    {"unknown versions get -32022", unknown_versions, 0, NULL},
    {"requests without their _meta are refused", missing_meta, 0, NULL},
    {"methods of other eras are unknown", unknown_methods, 0, NULL},
    {"R-0-1 ids are echoed as they are", ids_are_echoed, 0, NULL},
    {"1 and \"1\" are two ids", ids_keep_their_type, 0, NULL},
    {"tools/list comes in pages", pages_of_tools, ONLY_HERE, three_per_page},
    {"cursors that are none are refused", bad_list_cursors, 0, NULL},
    {"malformed calls are refused", bad_calls, 0, NULL},
    {"R-0-3 blocks of every type pass unchanged", blocks_of_every_type, 0, NULL},
    {"errors of plain calls equal their golden files", errors_of_calls, 0, NULL},
    {"progress comes to who gave a token", progress_on_demand, 0, NULL},
    {"messages come from the level asked for", messages_from_a_level, 0, NULL},
    {"R-0-7 a level that is none is refused", levels_that_are_none, 0, NULL},
    {"progress tokens that are none are not echoed", progress_tokens_that_are_none, 0,
     NULL},
    {"progress is a number", progress_is_a_number, ONLY_HERE | ONE_DRIVE, NULL},
    {"the last report always arrives", the_last_report_always_arrives,
     ONLY_HERE | ONE_DRIVE, NULL},
    /* Over HTTP the header of this client repeats a name as it is written. */
    {"a tool is found however its name is written",
     names_are_found_however_they_are_written, ONLY_HERE | ONE_DRIVE | NOT_HTTP, NULL},
    {"cancelling, and leaving, reach the handler of a plain call",
     cancel_reaches_the_handler, ONLY_HERE, NULL},
    {"a cancelled request is not answered", cancelled_request_is_not_answered, 0, NULL},
    {"a slow call does not block the others", slow_ones_do_not_block, 0, NULL},
    /* Over HTTP each request has its own connection, and so its own ids. */
    {"R-0-1 a request with an id in flight is ignored", id_in_flight_is_not_used_twice,
     NOT_HTTP, NULL},
    {"a call is promoted to a task after promote_after_ms", promoted_after_a_while,
     ONLY_HERE, NULL},
    {"a handler defers its call", deferred_by_the_handler, 0, NULL},
};

int main(void)
{
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
}
