/* What the metrics of a server count, and the text of names that the library did not
 * choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/histogram.h"
#include "base/thresholds.h"
#include "engine/server/metrics.h"
#include "support/http_stage.h"

#define TOOL(name) "mcp_method_name=\"tools/call\",gen_ai_tool_name=\"" name "\""

static char *read_metrics(const http_stage *s)
{
    size_t len = 0;
    assert_int_equal(segue_server_metrics(s->server, NULL, &len), SEGUE_OK);
    char *text = malloc(len += 4096);
    assert_int_equal(segue_server_metrics(s->server, text, &len), SEGUE_OK);
    return text;
}

static bool has(const http_stage *s, const char *line)
{
    char whole[600];
    char *text = read_metrics(s);
    snprintf(whole, sizeof whole, "\n%s\n", line);
    bool found = strstr(text, whole) != NULL;
    if (!found)
        fputs(text, stderr);
    free(text);
    return found;
}

static void expect(const http_stage *s, const char *line)
{
    if (!has(s, line))
        fail_msg("%s is not there", line);
}

static void expect_nowhere(const http_stage *s, const char *part)
{
    char *text = read_metrics(s);
    if (strstr(text, part))
        fail_msg("%s is in %s", part, text);
    free(text);
}

static void ask(http_stage *s, char *request)
{
    http_caller c;
    http_reply reply;
    http_caller_open(s, &c);
    http_caller_ask(&c, request, &reply);
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_run(s);
}

/* Sends a request in a session of the handshake versions, which repeat no name in a
 * header. */
static void ask_in_session(http_stage *s, const char *lines, const char *method,
                           const char *params)
{
    char body[1024];
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}", method,
             params);
    ask(s, http_post(lines, body));
}

/* ---- items ---- */

static void succeed(void *user, segue_call *call)
{
    (void)user;
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void end_wrongly(void *user, segue_call *call)
{
    segue_content *content = NULL;
    assert_int_equal(segue_content_new(user, &content), SEGUE_OK);
    segue_content_set_error(content, 1);
    segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

static void fail_call(void *user, segue_call *call)
{
    (void)user;
    segue_call_fail(call, -32603, "no", NULL, 0, NULL);
    segue_call_free(call);
}

static void add_tool(const http_stage *s, const char *name, segue_call_fn on_call)
{
    char json[512];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_call;
    options.user = s->rt;
    snprintf(json, sizeof json, "{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}",
             name);
    assert_int_equal(
        segue_server_add(s->server, SEGUE_ITEM_TOOL, json, strlen(json), &options, NULL),
        SEGUE_OK);
}

static void calls_are_counted_by_item_era_and_end(void **state)
{
    http_stage s = {0};
    char lines[160];
    (void)state;
    http_stage_begin(&s);
    add_tool(&s, "wrong", end_wrongly);
    add_tool(&s, "fails", fail_call);
    http_stage_begin_session(&s, lines);
    ask(&s, http_call("1", "greet", "{\"name\":\"Ada\"}"));
    ask(&s, http_call("1", "greet", "{\"name\":\"Bob\"}"));
    ask(&s, http_call("1", "wrong", "{}"));
    ask(&s, http_call("1", "fails", "{}"));
    ask(&s, http_call("1", "no_such_tool", "{}"));
    ask_in_session(&s, lines, "tools/call", "\"name\":\"greet\"");
    ask_in_session(&s, lines, "prompts/get", "\"name\":\"simple\"");
    ask_in_session(&s, lines, "prompts/get", "\"name\":\"no_such_prompt\"");
    ask_in_session(&s, lines, "resources/read", "\"uri\":\"no:such\"");
    expect(&s, "segue_operations_calls_total 6");
    expect(&s, "segue_calls_total{" TOOL("greet") ",era=\"modern\"} 2");
    expect(&s, "segue_calls_total{" TOOL("greet") ",era=\"legacy\"} 1");
    expect(&s, "segue_calls_total{" TOOL("wrong") ",era=\"modern\","
                                                  "error_type=\"tool_error\"} 1");
    expect(&s, "segue_calls_total{" TOOL("fails") ",era=\"modern\","
                                                  "error_type=\"error\"} 1");
    expect(&s, "segue_calls_total{" TOOL("_other") ",era=\"modern\","
                                                   "error_type=\"unknown_name\"} 1");
    expect(&s, "segue_calls_total{mcp_method_name=\"prompts/get\",gen_ai_prompt_name=\""
               "simple\",era=\"legacy\"} 1");
    expect(&s, "segue_calls_total{mcp_method_name=\"prompts/get\",gen_ai_prompt_name=\""
               "_other\",era=\"legacy\",error_type=\"unknown_name\"} 1");
    expect(&s, "segue_calls_total{mcp_method_name=\"resources/read\",mcp_resource_uri=\""
               "_other\",era=\"legacy\",error_type=\"unknown_name\"} 1");
    expect(&s, "mcp_server_operation_duration_seconds_count{" TOOL("greet") "} 3");
    expect_nowhere(&s, "no_such");
    expect_nowhere(&s, "no:such");
    http_stage_end(&s);
}

/* A call of 100 ms is in the bucket that ends at 0.1 s and in all later ones. */
static void durations_are_in_seconds(void **state)
{
    http_stage s = {0};
    http_caller c;
    char *slow = http_call("1", "slow_compute", "{\"ms\":100}");
    (void)state;
    http_stage_open(&s, &c);
    http_caller_say(&c, slow);
    http_stage_run(&s);
    http_stage_advance(&s, 100);
    assert_int_equal(http_caller_status(&c), 200);
#define TOOK "mcp_server_operation_duration_seconds"
    expect(&s, TOOK "_bucket{" TOOL("slow_compute") ",le=\"0.05\"} 0");
    expect(&s, TOOK "_bucket{" TOOL("slow_compute") ",le=\"0.1\"} 1");
    expect(&s, TOOK "_bucket{" TOOL("slow_compute") ",le=\"300\"} 1");
    expect(&s, TOOK "_bucket{" TOOL("slow_compute") ",le=\"+Inf\"} 1");
    expect(&s, TOOK "_sum{" TOOL("slow_compute") "} 0.1");
    expect(&s, TOOK "_count{" TOOL("slow_compute") "} 1");
    free(slow);
    http_stage_close(&s, &c);
}

static void a_value_is_in_the_bucket_that_it_fits(void **state)
{
    sgi_histogram one = {0}, sum = {0};
    (void)state;
    sgi_histogram_add(&one, &sgi_scale_of_calls, 0);
    sgi_histogram_add(&one, &sgi_scale_of_calls, 10);
    sgi_histogram_add(&one, &sgi_scale_of_calls, 11);
    sgi_histogram_add(&one, &sgi_scale_of_calls, 300000);
    sgi_histogram_add(&one, &sgi_scale_of_calls, 300001);
    sgi_histogram_merge(&sum, &one);
    sgi_histogram_merge(&sum, &one);
    assert_int_equal(sum.counts[0], 4);
    assert_int_equal(sum.counts[1], 2);
    assert_int_equal(sum.counts[SGI_HISTOGRAM_BOUNDS - 1], 2);
    assert_int_equal(sum.counts[SGI_HISTOGRAM_BOUNDS], 2);
    assert_int_equal(sum.sum, 2 * 600022);
}

/* ---- names ---- */

static void call_by_name(http_stage *s, const char *lines, const char *name)
{
    char params[512];
    snprintf(params, sizeof params, "\"name\":\"%s\"", name);
    ask_in_session(s, lines, "tools/call", params);
}

static void any_text_can_be_a_label(void **state)
{
    sgi_buf labels;
    (void)state;
    sgi_buf_init(&labels, &sgi_mem_libc);
    sgi_metrics_add_label(&labels, "a", "\"} 1\n\\\xc3\xa9");
    sgi_metrics_add_label(&labels, "b", "");
    sgi_buf_add_char(&labels, 0);
    assert_string_equal(labels.p, "a=\"\\\"} 1\\n\\\\\xc3\xa9\",b=\"\"");
    sgi_buf_free(&labels);
}

/* The registry refuses quotes, backslashes and control characters in names. */
static void hostile_names_stay_in_their_label(void **state)
{
    http_stage s = {0};
    char lines[160];
    (void)state;
    http_stage_begin(&s);
    http_stage_begin_session(&s, lines);
    static const char name[] = "a} 1,era=# {\xc3\xa9";
    add_tool(&s, name, succeed);
    call_by_name(&s, lines, name);
    expect(&s, "segue_calls_total{" TOOL("a} 1,era=# {\xc3\xa9") ",era=\"legacy\"} 1");
    http_stage_end(&s);
}

#ifdef SGI_KNOBS
static void the_number_and_length_of_names_are_limited(void **state)
{
    http_stage s = {0};
    char lines[160], name[200];
    size_t items = sgi_thresholds.metric_items;
    (void)state;
    sgi_thresholds.metric_items = 3;
    http_stage_begin(&s);
    http_stage_begin_session(&s, lines);
    memset(name, 'x', sizeof name);
    name[sgi_thresholds.metric_name_bytes + 1] = 0;
    add_tool(&s, name, succeed);
    call_by_name(&s, lines, name);
    add_tool(&s, "_other", succeed);
    call_by_name(&s, lines, "_other");
    name[sgi_thresholds.metric_name_bytes] = 0;
    add_tool(&s, name, succeed);
    call_by_name(&s, lines, name);
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "t%d", i);
        add_tool(&s, name, succeed);
        call_by_name(&s, lines, name);
    }
    expect(&s, "segue_calls_total{" TOOL("t1") ",era=\"legacy\"} 1");
    expect(&s, "segue_calls_total{" TOOL("_other") ",era=\"legacy\"} 5");
    expect(&s, "mcp_server_operation_duration_seconds_count{" TOOL("_other") "} 5");
    expect_nowhere(&s, "\"t2\"");
    /* what was counted of a tool goes with the tool, and another takes its place */
    assert_int_equal(segue_server_remove(s.server, SEGUE_ITEM_TOOL, "t1"), SEGUE_OK);
    expect_nowhere(&s, "\"t1\"");
    expect(&s, "segue_calls_total{" TOOL("t2") ",era=\"legacy\"} 1");
    http_stage_end(&s);
    sgi_thresholds.metric_items = items;
}
#endif

/* ---- requests, limits, segments, streams ---- */

static void requests_are_counted_by_method_and_era(void **state)
{
    http_stage s = {0};
    char lines[160];
    (void)state;
    http_stage_begin(&s);
    http_stage_begin_session(&s, lines);
    ask_in_session(&s, lines, "tools/list", "");
    ask_in_session(&s, lines, "prompts/list", "");
    ask_in_session(&s, lines, "no/such", "");
    ask(&s, http_request("1", "tools/list", NULL, NULL, "{}"));
    ask(&s, http_request("1", "prompts/list", NULL, NULL, "{}"));
    ask(&s, http_request("1", "no/such", NULL, NULL, "{}"));
    ask(&s, http_request("1", "no/such/either", NULL, NULL, "{}"));
#define METHOD(name, era)                                                                \
    "segue_requests_total{mcp_method_name=\"" name "\",era=\"" era "\"} "
    expect(&s, METHOD("initialize", "legacy") "1");
    expect(&s, METHOD("tools/list", "legacy") "1");
    expect(&s, METHOD("tools/list", "modern") "1");
    expect(&s, METHOD("prompts/list", "legacy") "1");
    expect(&s, METHOD("prompts/list", "modern") "1");
    expect(&s, METHOD("_other", "legacy") "1");
    expect(&s, METHOD("_other", "modern") "2");
    expect_nowhere(&s, "no/such");
    http_stage_end(&s);
}

static void streams_and_limits_are_counted(void **state)
{
    http_stage s = {.listen = {.max_streams = 1}};
    http_caller a, b;
    http_reply reply;
    (void)state;
    http_stage_open(&s, &a);
    char *listen = http_request("1", "subscriptions/listen", NULL,
                                "\"notifications\":{\"toolsListChanged\":true}", "{}");
    http_caller_say(&a, listen);
    http_stage_run(&s);
    expect(&s, "segue_use_streams 1");
    expect(&s, "segue_limits_reached_total{limit=\"max_streams\"} 0");
    http_caller_open(&s, &b);
    http_caller_ask(&b, listen, &reply);
    assert_int_equal(reply.status, 429);
    http_reply_free(&reply);
    http_caller_close(&b);
    expect(&s, "segue_use_streams 1");
    expect(&s, "segue_use_streams_opened_total 1");
    expect(&s, "segue_use_refused_total 1");
    expect(&s, "segue_limits_reached_total{limit=\"max_streams\"} 1");
    http_caller_close(&a);
    http_stage_run(&s);
    expect(&s, "segue_use_streams 0");
    http_stage_end(&s);
}

static void segments_and_commits_are_counted(void **state)
{
    http_stage s = {0};
    char id[64];
    (void)state;
    http_stage_begin(&s);
    ask(&s, http_call("1", "greet", "{\"name\":\"Ada\"}"));
    expect(&s, "segue_operations_segments_total 1");
    expect(&s, "segue_operations_segment_bytes_total 36");
    expect(&s, "segue_store_commits_total 0");
    expect(&s, "segue_store_commit_writes_count 0");
    http_stage_start_task(&s, "slow_compute", "{\"ms\":10}", id);
    http_stage_advance(&s, 20);
    expect(&s, "segue_operations_segments_total 2");
    expect(&s, "segue_store_commit_duration_seconds_count 2");
    expect(&s, "segue_store_commit_writes_count 2");
    expect(&s, "segue_store_commits_total 2");
    http_stage_end(&s);
}

static void the_function_checks_its_arguments(void **state)
{
    http_stage s = {0};
    char small[16];
    size_t len = sizeof small;
    (void)state;
    http_stage_begin(&s);
    assert_int_equal(segue_server_metrics(s.server, small, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_server_metrics(NULL, small, &len), SEGUE_E_INVALID);
    assert_int_equal(segue_server_metrics(s.server, small, &len), SEGUE_E_TOO_SMALL);
    assert_true(len > 1000);
    expect(&s, "# TYPE process_resident_memory_bytes gauge");
    http_stage_end(&s);
}

static void without_memory_there_is_no_text(void **state)
{
    http_stage s = {0};
    size_t len = 0, at = 0;
    segue_status status;
    (void)state;
    http_stage_begin(&s);
    ask(&s, http_call("1", "greet", "{\"name\":\"Ada\"}"));
    do {
        test_mem_rearm(&s.mem);
        s.mem.fail_at = ++at;
        status = segue_server_metrics(s.server, NULL, &len);
        assert_int_equal(status, s.mem.failed ? SEGUE_E_NOMEM : SEGUE_OK);
    } while (status != SEGUE_OK);
    assert_true(at > 3);
    test_mem_rearm(&s.mem);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_by_item_era_and_end),
        cmocka_unit_test(durations_are_in_seconds),
        cmocka_unit_test(a_value_is_in_the_bucket_that_it_fits),
        cmocka_unit_test(any_text_can_be_a_label),
        cmocka_unit_test(hostile_names_stay_in_their_label),
#ifdef SGI_KNOBS
        cmocka_unit_test(the_number_and_length_of_names_are_limited),
#endif
        cmocka_unit_test(requests_are_counted_by_method_and_era),
        cmocka_unit_test(streams_and_limits_are_counted),
        cmocka_unit_test(segments_and_commits_are_counted),
        cmocka_unit_test(the_function_checks_its_arguments),
        cmocka_unit_test(without_memory_there_is_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
