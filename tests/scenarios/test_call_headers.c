/* What a handler learns of the HTTP request that made its call: the headers, and the
 * context that the application gives with an exchange by hand. Over both listeners, in
 * both eras, for tasks, and over byte streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/mount_stage.h"

#define SECRET "Bearer s3cret"
#define LINES                                                                            \
    "X-Tenant: blue\r\nx-tag: one\r\nX-Tag:  two \r\nAuthorization: " SECRET             \
    "\r\nX-Bytes: \xff\xfe\r\n"
#define INITIALIZE                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                            \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"
#define LEGACY_CALL                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"      \
    "\"look\",\"arguments\":{}}}"

/* ---- tools ---- */

static segue_call *kept; /* the last call of "keep" */
static int freed;

static void count_free(void *context)
{
    (void)context;
    freed++;
}

static const char *value_of(const segue_call *call, const char *name, size_t index)
{
    const char *value = NULL;
    size_t len = 0;
    segue_status status = segue_call_header(call, name, index, &value, &len);
    if (status == SEGUE_E_NOT_FOUND)
        return "-";
    assert_int_equal(status, SEGUE_OK);
    assert_int_equal(strlen(value), len);
    return value;
}

/* Checks that header_at gives the same headers as the search by name. */
static size_t count_headers(const segue_call *call)
{
    const char *name, *value;
    size_t count = 0, hits = 0;
    for (; segue_call_header_at(call, count, &name, &value, NULL) == SEGUE_OK; count++) {
        for (const char *p = name; *p; p++)
            assert_false(*p >= 'A' && *p <= 'Z');
        if (strcmp(name, "x-tag"))
            assert_string_equal(value_of(call, name, 0), value);
        else
            assert_string_equal(value, hits++ ? "two" : "one");
    }
    return count;
}

static void answer(segue_call *call)
{
    char text[512];
    const char *context = segue_call_context(call);
    const char *bytes = value_of(call, "x-bytes", 0);
    snprintf(text, sizeof text, "%s %s %s %s %s %d ctx:%s", value_of(call, "x-tenant", 0),
             value_of(call, "X-TAG", 0), value_of(call, "X-Tag", 1),
             value_of(call, "x-tag", 2), value_of(call, "authorization", 0),
             !strcmp(bytes, "\xff\xfe"), context ? context : "-");
    count_headers(call);
    segue_call_send_text(call, text, strlen(text), NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void look(void *user, segue_call *call)
{
    (void)user;
    answer(call);
}

static void keep(void *user, segue_call *call)
{
    (void)user;
    kept = call;
}

static void add_tool(segue_server *server, const char *json, segue_call_fn run,
                     int32_t task)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = run;
    options.task = task;
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL),
        SEGUE_OK);
}

static void add_tools(segue_server *server)
{
    add_tool(server, "{\"name\":\"look\",\"inputSchema\":{\"type\":\"object\"}}", look,
             SEGUE_TASK_NEVER);
    add_tool(server, "{\"name\":\"keep\",\"inputSchema\":{\"type\":\"object\"}}", keep,
             SEGUE_TASK_MUST);
}

#define SEEN "blue one two - " SECRET " 1 ctx:"

/* Adds lines to the head of a request, which is freed. */
static char *with_lines(char *request, const char *lines)
{
    char *rest = strstr(request, "\r\n") + 2;
    size_t size = strlen(request) + strlen(lines) + 1;
    char *changed = malloc(size);
    snprintf(changed, size, "%.*s%s%s", (int)(rest - request), request, lines, rest);
    free(request);
    return changed;
}

/* ---- the own listener ---- */

static void ask_for(http_caller *c, char *request, const char *text)
{
    http_reply reply;
    http_caller_ask(c, request, &reply);
    if (!strstr(reply.body, text))
        fail_msg("there is no %s in %s", text, reply.body);
    http_reply_free(&reply);
}

static void a_handler_reads_the_headers_of_its_request(void **state)
{
    http_stage s = {.add = add_tools};
    http_caller c;
    (void)state;
    http_stage_open(&s, &c);
    ask_for(&c, with_lines(http_call("1", "look", "{}"), LINES), SEEN "-");
    /* the next request on the connection has its own headers */
    ask_for(&c, http_call("2", "look", "{}"), "- - - - - 0 ctx:-");
    ask_for(&c, with_lines(http_call("3", "look", "{}"), "X-Tenant: red\r\n"),
            "red - - - - 0 ctx:-");
    http_stage_close(&s, &c);
}

static void a_session_has_the_headers_of_each_request(void **state)
{
    http_stage s = {.add = add_tools};
    http_caller c;
    http_reply reply;
    char lines[512];
    (void)state;
    http_stage_open(&s, &c);
    http_caller_ask(&c, http_post("X-Tenant: opener\r\n", INITIALIZE), &reply);
    snprintf(lines, sizeof lines, "Mcp-Session-Id: %s\r\n" LINES,
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    ask_for(&c, http_post(lines, LEGACY_CALL), SEEN "-");
    /* a request without a session */
    ask_for(&c, http_post("MCP-Protocol-Version: 2025-11-25\r\n" LINES, LEGACY_CALL),
            SEEN "-");
    http_stage_close(&s, &c);
}

static void long_heads_and_many_headers_arrive(void **state)
{
    http_stage s = {.add = add_tools};
    http_caller c;
    static char lines[12000];
    size_t len = 0;
    (void)state;
    for (int i = 0; i < 60; i++)
        len +=
            (size_t)snprintf(lines + len, sizeof lines - len, "X-%d: %0150d\r\n", i, i);
    snprintf(lines + len, sizeof lines - len, LINES);
    http_stage_open(&s, &c);
    for (int round = 0; round < 3; round++) {
        ask_for(&c, with_lines(http_call("1", "look", "{}"), lines), SEEN "-");
        ask_for(&c, with_lines(http_call("2", "look", "{}"), LINES), SEEN "-");
    }
    http_stage_close(&s, &c);
}

/* ---- tasks ---- */

static int64_t log_bytes(http_stage *s)
{
    char text[4096];
    size_t len = sizeof text;
    assert_int_equal(segue_server_stats(s->server, text, &len), SEGUE_OK);
    const char *found = strstr(text, "\"logBytes\":");
    assert_non_null(found);
    return atoll(found + strlen("\"logBytes\":"));
}

static void a_task_keeps_the_headers_until_its_handler_ends(void **state)
{
    http_stage s = {.add = add_tools};
    http_caller c;
    static char lines[6100];
    (void)state;
    memset(lines, 0, sizeof lines);
    snprintf(lines, sizeof lines, "X-Long: %05000d\r\n" LINES, 1);
    http_stage_open(&s, &c);
    ask_for(
        &c,
        with_lines(http_request("1", "tools/call", "keep",
                                "\"name\":\"keep\",\"arguments\":{}", HTTP_CAPS_TASKS),
                   lines),
        "\"working\"");
    http_caller_close(&c);
    http_stage_run(&s);
    assert_non_null(kept);
    assert_string_equal(value_of(kept, "Authorization", 0), SECRET);
    /* they count as bytes that the call holds */
    assert_true(log_bytes(&s) > 5000);
    answer(kept);
    http_stage_run(&s);
    assert_true(log_bytes(&s) < 5000);
    http_stage_end(&s);
}

/* ---- exchanges by hand ---- */

static void begin(http_stage *s)
{
    s->by_hand = true;
    s->add = add_tools;
    freed = 0;
    http_stage_begin(s);
}

static mount_call with_context(const char *text)
{
    return (mount_call){.context = (void *)(uintptr_t)text, .free_context = count_free};
}

static void a_mounted_handler_has_headers_and_context(void **state)
{
    http_stage s = {0};
    mount_call c = with_context("app"), plain = {0};
    mount_call old = with_context("old");
    (void)state;
    begin(&s);
    mount_ask(&c, &s, with_lines(http_call("1", "look", "{}"), LINES), 200);
    assert_non_null(strstr(c.body, SEEN "app"));
    http_stage_run(&s);
    assert_int_equal(freed, 1);
    mount_ask(&plain, &s, with_lines(http_call("1", "look", "{}"), LINES), 200);
    assert_non_null(strstr(plain.body, SEEN "-"));
    mount_ask(&old, &s,
              http_post("MCP-Protocol-Version: 2025-11-25\r\n" LINES, LEGACY_CALL), 200);
    assert_non_null(strstr(old.body, SEEN "old"));
    http_stage_run(&s);
    assert_int_equal(freed, 2);
    mount_free(&c);
    mount_free(&plain);
    mount_free(&old);
    http_stage_end(&s);
    assert_int_equal(freed, 2);
}

/* Begins a stage, and a call with a context, which its handler keeps beyond its
 * exchange. */
static void begin_kept_call(http_stage *s)
{
    mount_call c = with_context("app");
    begin(s);
    mount_ask(&c, s,
              http_request("1", "tools/call", "keep",
                           "\"name\":\"keep\",\"arguments\":{}", HTTP_CAPS_TASKS),
              200);
    mount_free(&c);
    http_stage_run(s);
}

static void a_context_lives_as_long_as_the_exchange_and_its_calls(void **state)
{
    http_stage s = {0};
    (void)state;
    begin_kept_call(&s);
    assert_int_equal(freed, 0);
    assert_string_equal(segue_call_context(kept), "app");
    answer(kept);
    http_stage_run(&s);
    assert_int_equal(freed, 1);
    http_stage_end(&s);
    assert_int_equal(freed, 1);
}

static void the_end_of_the_runtime_frees_the_context(void **state)
{
    http_stage s = {0};
    (void)state;
    begin_kept_call(&s);
    segue_call *call = kept;
    segue_listener_free(s.listener);
    segue_server_free(s.server);
    segue_runtime_free(s.rt);
    assert_int_equal(freed, 1);
    assert_null(segue_call_context(call));
    segue_call_free(call);
    fixtures_free(s.fixtures);
    assert_int_equal(s.mem.live, 0);
}

static void a_refused_exchange_takes_no_context(void **state)
{
    http_stage s = {0};
    mount_call c = with_context("app");
    char *request = with_lines(http_call("1", "look", "{}"), "X y: z\r\n");
    (void)state;
    begin(&s);
    c.principal = "\xff";
    assert_int_equal(mount_begin(&c, &s, request), SEGUE_E_INVALID);
    http_stage_run(&s);
    assert_int_equal(freed, 0);
    c.principal = NULL;
    assert_int_equal(mount_begin(&c, &s, request), SEGUE_E_INVALID);
    http_stage_run(&s);
    assert_int_equal(freed, 0);
    free(request);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_reads_the_headers_of_its_request),
        cmocka_unit_test(a_session_has_the_headers_of_each_request),
        cmocka_unit_test(long_heads_and_many_headers_arrive),
        cmocka_unit_test(a_task_keeps_the_headers_until_its_handler_ends),
        cmocka_unit_test(a_mounted_handler_has_headers_and_context),
        cmocka_unit_test(a_context_lives_as_long_as_the_exchange_and_its_calls),
        cmocka_unit_test(the_end_of_the_runtime_frees_the_context),
        cmocka_unit_test(a_refused_exchange_takes_no_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
