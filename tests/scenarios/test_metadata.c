/* Members that the library passes on unchanged: _meta, annotations, icons, titles, sizes
 * and types; in lists, results and their parts, in both directions, in all eras. The
 * trace of a request (2026-07-28 basic, "OpenTelemetry trace context") goes along with
 * the requests that the library makes on its behalf. */
#include "support/client_kit.h"
#include "support/legacy_wire.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define META "\"_meta\":{\"com.example/a\":{\"b\":[1,2.50,1e400]},\"n\":\"\\u00fc\"}"
#define NOTES                                                                            \
    "\"annotations\":{\"audience\":[\"user\"],\"priority\":0.50,"                        \
    "\"lastModified\":\"2025-01-12T15:00:58Z\",\"odd\":null}"
#define ICONS                                                                            \
    "\"icons\":[{\"src\":\"https://x.example/i.png\",\"mimeType\":\"image/png\","        \
    "\"sizes\":[\"48x48\"],\"theme\":\"dark\"}]"
#define TOOL                                                                             \
    "{\"name\":\"noted\",\"title\":\"T\",\"description\":\"d\"," ICONS                   \
    ",\"inputSchema\":{\"type\":\"object\",\"x-more\":true},\"outputSchema\":{\"type\":" \
    "\"object\"},\"annotations\":{\"readOnlyHint\":true,\"title\":\"A\"}," META "}"
#define RESOURCE                                                                         \
    "{\"uri\":\"x:noted\",\"name\":\"noted\",\"title\":\"T\",\"mimeType\":"              \
    "\"text/plain\",\"size\":1234567890123," NOTES "," ICONS "," META "}"
#define TEMPLATE                                                                         \
    "{\"uriTemplate\":\"y:{id}\",\"name\":\"noted\",\"title\":\"T\",\"mimeType\":"       \
    "\"text/plain\"," NOTES "," ICONS "," META "}"
#define PROMPT                                                                           \
    "{\"name\":\"noted\",\"title\":\"T\",\"arguments\":[{\"name\":\"a\",\"title\":"      \
    "\"A\",\"description\":\"d\"}]," ICONS "," META "}"
#define BLOCK "{\"type\":\"text\",\"text\":\"t\"," NOTES "," META "}"
#define LINK                                                                             \
    "{\"type\":\"resource_link\",\"uri\":\"x:noted\",\"name\":\"n\",\"size\":5,"         \
    "\"mimeType\":\"text/plain\"," NOTES "," META "}"
#define CONTENTS                                                                         \
    "{\"uri\":\"x:noted\",\"mimeType\":\"text/plain\",\"text\":\"t\"," META "}"
#define MESSAGE "{\"role\":\"assistant\",\"content\":" LINK "}"

#define PARENT                                                                           \
    "\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01\""
#define TRACE PARENT ",\"tracestate\":\"v=1\",\"baggage\":\"k=v;p\""

/* ---- the server's side ---- */

static char heard_meta[256];

static void hear_meta(segue_call *call)
{
    const char *json;
    size_t len;
    heard_meta[0] = 0;
    if (segue_call_meta(call, "traceparent", &json, &len) == SEGUE_OK)
        snprintf(heard_meta, sizeof heard_meta, "%.*s", (int)len, json);
    assert_int_equal(segue_call_meta(call, "absent", &json, &len), SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_call_meta(call, NULL, &json, &len), SEGUE_E_INVALID);
    assert_int_equal(segue_call_meta(NULL, "x", &json, &len), SEGUE_E_INVALID);
}

static void give_noted(void *user, segue_call *call)
{
    /* as a handler has it that passes on the result of another server */
    static const char other[] = "{\"io.modelcontextprotocol/serverInfo\":"
                                "{\"name\":\"another\",\"version\":\"1\"}}";
    static const char own[] = "{\"io.modelcontextprotocol/serverInfo\":"
                              "{\"name\":\"another\",\"version\":\"1\"},"
                              "\"com.example/own\":[\"r\"]}";
    world *w = user;
    segue_content *content;
    const char *method = segue_call_method(call);
    assert_int_equal(segue_content_new(w->runtime, &content), SEGUE_OK);
    hear_meta(call);
    assert_int_equal(segue_call_set_field(call, "_meta", other, sizeof other - 1, NULL),
                     SEGUE_OK);
    assert_int_equal(segue_call_set_field(call, "_meta", own, sizeof own - 1, NULL),
                     SEGUE_OK);
    if (!strcmp(method, "tools/call")) {
        segue_call_set_field(call, "structuredContent", "{\"s\":1.0}", 9, NULL);
        segue_content_add_json(content, BLOCK, strlen(BLOCK), NULL);
        segue_content_add_json(content, LINK, strlen(LINK), NULL);
    } else if (!strcmp(method, "resources/read")) {
        segue_content_add_json(content, CONTENTS, strlen(CONTENTS), NULL);
    } else {
        segue_content_add_json(content, MESSAGE, strlen(MESSAGE), NULL);
    }
    assert_int_equal(segue_call_complete(call, content, NULL), SEGUE_OK);
    segue_content_free(content);
    segue_call_free(call);
}

static void set_up(world *w)
{
    static const struct {
        int32_t item;
        const char *json;
    } items[] = {{SEGUE_ITEM_TOOL, TOOL},
                 {SEGUE_ITEM_RESOURCE, RESOURCE},
                 {SEGUE_ITEM_RESOURCE_TEMPLATE, TEMPLATE},
                 {SEGUE_ITEM_PROMPT, PROMPT}};
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = give_noted;
    options.user = w;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        assert_int_equal(segue_server_add(w->server, items[i].item, items[i].json,
                                          strlen(items[i].json), &options, NULL),
                         SEGUE_OK);
}

static void assert_in(const char *message, const char *part)
{
    if (!strstr(message, part))
        fail_msg("%s is not in %s", part, message);
}

/* Tests one client of each era; ask: sends a request in its form. */
static void pass_through(const char *(*ask)(wire *, const char *, const char *,
                                            const char *),
                         wire *c)
{
    assert_in(ask(c, "1", "tools/list", NULL), TOOL);
    assert_in(ask(c, "2", "resources/list", NULL), RESOURCE);
    assert_in(ask(c, "3", "resources/templates/list", NULL), TEMPLATE);
    assert_in(ask(c, "4", "prompts/list", NULL), PROMPT);
    const char *r = ask(c, "5", "tools/call", "\"name\":\"noted\"");
    assert_in(r, "\"content\":[" BLOCK "," LINK "]");
    assert_in(r, "\"structuredContent\":{\"s\":1.0}");
    assert_in(r, "\"com.example/own\":[\"r\"]");
    assert_null(strstr(r, "\"another\""));
    r = ask(c, "6", "resources/read", "\"uri\":\"x:noted\"");
    assert_in(r, "\"contents\":[" CONTENTS "]");
    assert_in(r, "\"com.example/own\":[\"r\"]");
    assert_null(strstr(r, "\"another\""));
    r = ask(c, "7", "prompts/get", "\"name\":\"noted\"");
    assert_in(r, "\"messages\":[" MESSAGE "]");
    assert_in(r, "\"com.example/own\":[\"r\"]");
    assert_null(strstr(r, "\"another\""));
}

static const char *ask_modern(wire *c, const char *id, const char *method,
                              const char *params)
{
    return wire_do(c, id, method, params, NULL);
}

static void all_of_it_passes_in_2026_07_28(world *w)
{
    set_up(w);
    pass_through(ask_modern, world_connect(w, NULL));
}

static void all_of_it_passes_in_the_handshake_eras(world *w)
{
    static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26"};
    set_up(w);
    for (size_t i = 0; i < 3; i++)
        pass_through(wire_do_plain, legacy_connect_as(w, NULL, versions[i], NULL));
}

static void handlers_read_the_meta_of_requests(world *w)
{
    set_up(w);
    wire *c = legacy_connect(w, NULL, NULL);
    wire_do_plain(c, "1", "tools/call", "\"name\":\"noted\",\"_meta\":{" PARENT "}");
    assert_string_equal(heard_meta,
                        "\"00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01\"");
    wire_do_plain(c, "2", "resources/read", "\"uri\":\"y:1\"");
    assert_string_equal(heard_meta, "");
    wire_do_plain(c, "3", "prompts/get",
                  "\"name\":\"noted\",\"_meta\":{\"traceparent\":7}");
    assert_string_equal(heard_meta, "7");
    wire_do_plain(c, "4", "tools/call", "\"name\":\"noted\",\"_meta\":[]");
    assert_string_equal(heard_meta, "");
    wire *m = world_connect(w, NULL);
    wire_send(m, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"noted\",\"_meta\":{"
                 "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                 "\"io.modelcontextprotocol/clientCapabilities\":{}," PARENT "}}}");
    wire_response(m, "5");
    assert_in(heard_meta, "0af7651916cd43dd8448eb211c80319c");
}

/* ---- the client's side ---- */

static void requests_say_what_the_application_says(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    kit_start(&k, "tools/call", "{\"name\":\"t\",\"x\":{\"y\":1.50}," META "}", NULL);
    const char *line = kit_expect(&k, "tools/call");
    assert_in(line, "\"com.example/a\":{\"b\":[1,2.50,1e400]},\"n\":\"\\u00fc\"");
    assert_in(line, "\"x\":{\"y\":1.50}");
    kit_result(&k, line, "\"resultType\":\"complete\",\"content\":[" BLOCK "]," META);
    kit_end(&k);
}

static void results_come_as_they_were_sent(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"complete\",\"content\":[" BLOCK "],\"odd\":[ ]," META);
    assert_in(r->result, "\"content\":[" BLOCK "],\"odd\":[ ]," META);
    r = kit_start(&k, "tools/list", NULL, NULL);
    kit_result(&k, kit_expect(&k, "tools/list"),
               "\"resultType\":\"complete\",\"tools\":[" TOOL "],\"ttlMs\":0,"
               "\"cacheScope\":\"private\"," META);
    assert_in(r->result, "\"tools\":[" TOOL "]");
    r = kit_start(&k, "resources/read", "{\"uri\":\"x:noted\"}", NULL);
    kit_result(&k, kit_expect(&k, "resources/read"),
               "\"resultType\":\"complete\",\"contents\":[" CONTENTS "],\"ttlMs\":0,"
               "\"cacheScope\":\"private\"," META);
    assert_in(r->result, CONTENTS);
    r = kit_start(&k, "prompts/get", "{\"name\":\"p\"}", NULL);
    kit_result(&k, kit_expect(&k, "prompts/get"),
               "\"resultType\":\"complete\",\"messages\":[" MESSAGE "]," META);
    assert_in(r->result, MESSAGE);
    kit_end(&k);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

/* Members of the protocol are written once: servers refuse JSON with a repeated name. */
static void names_of_the_protocol_are_said_once(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.log_level = "info";
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    kit_start(&k, "tools/call",
              "{\"name\":\"t\",\"_meta\":{\"progressToken\":\"mine\",\"name\":1,"
              "\"io.modelcontextprotocol/protocolVersion\":\"mine\","
              "\"io.modelcontextprotocol/logLevel\":\"mine\","
              "\"io.modelcontextprotocol/clientInfo\":\"mine\","
              "\"io.modelcontextprotocol/clientCapabilities\":\"mine\","
              "\"dev.segue/idempotencyKey\":\"mine\",\"yours\":\"ours\"}}",
              &options);
    const char *line = kit_expect(&k, "tools/call");
    assert_int_equal(count_of(line, "mine"), 0);
    assert_int_equal(count_of(line, "\"progressToken\":"), 1);
    assert_int_equal(count_of(line, "clientInfo\":"), 1);
    assert_in(line, "\"name\":1");
    assert_in(line, "\"yours\":\"ours\"");
    kit_result(&k, line, "\"resultType\":\"complete\",\"content\":[]");
    kit_start(&k, "prompts/get", "{\"name\":\"p\",\"_meta\":[]}", NULL);
    kit_result(&k, kit_expect(&k, "prompts/get"),
               "\"resultType\":\"complete\",\"messages\":[]");
    kit_end(&k);
}

/* ---- the trace ---- */

#define TRACED "{\"name\":\"t\",\"_meta\":{\"com.example/a\":1," TRACE "}}"

static void assert_traced(const char *line)
{
    assert_in(line, TRACE);
    assert_null(strstr(line, "com.example/a"));
}

static void a_task_is_followed_in_the_trace_of_its_call(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    record *r = kit_start(&k, "tools/call", TRACED, NULL);
    const char *call = kit_expect(&k, "tools/call");
    assert_in(call, "\"com.example/a\":1," TRACE);
    kit_result(&k, call, CREATED("T"));
    const char *get = kit_expect(&k, "tasks/get");
    assert_traced(get);
    kit_result(&k, get,
               TASK("T", "input_required") ",\"inputRequests\":{\"q\":{\"method\":"
                                           "\"elicitation/create\",\"params\":{}}}");
    segue_request_answer(r->request, "q", "{\"action\":\"decline\"}", 20, NULL);
    const char *update = kit_expect(&k, "tasks/update");
    assert_traced(update);
    kit_result(&k, update, "\"resultType\":\"complete\"");
    assert_traced(kit_expect(&k, "tasks/get"));
    segue_request_cancel(r->request);
    assert_traced(kit_expect(&k, "tasks/cancel"));
    kit_end(&k);
}

static void a_stream_is_in_the_trace_too(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    kit_start(&k, "tools/call", TRACED, NULL);
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    assert_traced(kit_expect(&k, "tasks/stream"));
    kit_end(&k);
}

/* In 2025-11-25 the tools are looked up for all waiting calls, so in no trace. */
static void tasks_of_2025_11_25_are_in_it(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_start(&k, "tools/call", TRACED, NULL);
    kit_list_tools(&k);
    const char *call = kit_expect(&k, "tools/call");
    assert_in(call, TRACE);
    kit_result(&k, call, CREATED_2025("T"));
    kit_advance(&k, 1200);
    const char *get = kit_expect(&k, "tasks/get");
    assert_traced(get);
    kit_result(&k, get, TASK_2025("T", "completed"));
    const char *result = kit_expect(&k, "tasks/result");
    assert_traced(result);
    kit_result(&k, result, "\"content\":[]," RELATED("T"));
    kit_end(&k);
}

static void answer_it(record *r, const char *key)
{
    segue_request_answer(r->request, key, "{\"action\":\"decline\"}", 20, NULL);
}

/* A request that is sent again has all its members again. */
static void a_request_sent_again_says_all_again(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.capabilities = "{\"elicitation\":{}}";
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    record *r = kit_start(&k, "tools/call", TRACED, NULL);
    r->on_input = answer_it;
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{"
               "\"method\":\"elicitation/create\",\"params\":{}}}");
    const char *again = kit_expect(&k, "tools/call");
    assert_in(again, "\"com.example/a\":1," TRACE);
    assert_in(again, "inputResponses");
    kit_result(&k, again, "\"resultType\":\"complete\",\"content\":[]");
    kit_end(&k);
}

static void without_a_trace_nothing_is_added(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    kit_start(&k, "tools/call", "{\"name\":\"t\",\"_meta\":{\"com.example/a\":1}}", NULL);
    kit_list_tools(&k);
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED_2025("T"));
    kit_advance(&k, 1200);
    assert_null(strstr(kit_expect(&k, "tasks/get"), "_meta"));
    kit_end(&k);
}

static const scenario scenarios[] = {
    {"all of it passes in 2026-07-28", all_of_it_passes_in_2026_07_28, ONLY_HERE, NULL},
    {"all of it passes in the handshake eras", all_of_it_passes_in_the_handshake_eras,
     ONLY_HERE, NULL},
    {"handlers read the _meta of requests", handlers_read_the_meta_of_requests, ONLY_HERE,
     NULL},
};

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_say_what_the_application_says),
        cmocka_unit_test(results_come_as_they_were_sent),
        cmocka_unit_test(names_of_the_protocol_are_said_once),
        cmocka_unit_test(a_task_is_followed_in_the_trace_of_its_call),
        cmocka_unit_test(a_stream_is_in_the_trace_too),
        cmocka_unit_test(tasks_of_2025_11_25_are_in_it),
        cmocka_unit_test(a_request_sent_again_says_all_again),
        cmocka_unit_test(without_a_trace_nothing_is_added),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios) || failed;
}
