/* The cache of a client over HTTP. It keeps no private entry of a user whom the
 * application does not represent any more ("a different access token requires a different
 * cache"). Calls keep their headers although a list came from the cache. */
#include "support/http_script.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define READ(text, scope)                                                                \
    "\"resultType\":\"complete\",\"contents\":[{\"uri\":\"x:a\",\"text\":\"" text        \
    "\"}],\"ttlMs\":5000,\"cacheScope\":\"" scope "\""
#define PAGE(tools, more)                                                                \
    "\"resultType\":\"complete\",\"tools\":[" tools "]," more                            \
    "\"ttlMs\":5000,\"cacheScope\":\"public\""
#define TOOL(name)                                                                       \
    "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"       \
    "\"r\":{\"type\":\"string\",\"x-mcp-header\":\"R\"}}}}"

static record *ask(http_script *s, const char *method, const char *params)
{
    segue_request_events events;
    record *r = kit_record(&s->k, &events);
    events.on_progress = NULL;
    assert_int_equal(segue_request_start(s->k.session, method, params, strlen(params),
                                         NULL, &events, &r->request, NULL),
                     SEGUE_OK);
    return r;
}

static void fetch(http_script *s, const char *method, const char *params,
                  const char *result)
{
    record *r = ask(s, method, params);
    script_result(script_expect(s, method), "%s", result);
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
}

static void find(http_script *s, const char *method, const char *params)
{
    record *r = ask(s, method, params);
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_OK);
    script_expect_silence(s);
}

static void begin(http_script *s)
{
    script_prepare(s);
    kit_prepare(&s->k, 0);
    assert_int_equal(
        segue_transport_http(s->k.runtime, s->url, &s->options, &s->k.transport, NULL),
        SEGUE_OK);
    assert_int_equal(
        segue_transport_set_header(s->k.transport, "Authorization", "A", NULL), SEGUE_OK);
    script_connect(s, NULL);
    script_discover(s, SERVER_PLAIN);
}

static void who_asks_next_gets_nothing_private(void **state)
{
    (void)state;
    http_script s;
    begin(&s);
    fetch(&s, "resources/read", "{\"uri\":\"x:a\"}", READ("mine", "private"));
    fetch(&s, "resources/read", "{\"uri\":\"x:b\"}", READ("all", "public"));
    find(&s, "resources/read", "{\"uri\":\"x:a\"}");
    /* the same header as before */
    segue_transport_set_header(s.k.transport, "Authorization", "A", NULL);
    find(&s, "resources/read", "{\"uri\":\"x:a\"}");
    segue_transport_set_header(s.k.transport, "Authorization", "B", NULL);
    fetch(&s, "resources/read", "{\"uri\":\"x:a\"}", READ("theirs", "private"));
    find(&s, "resources/read", "{\"uri\":\"x:b\"}");
    segue_transport_set_header(s.k.transport, "Authorization", NULL, NULL);
    fetch(&s, "resources/read", "{\"uri\":\"x:a\"}", READ("nobody's", "private"));
    segue_transport_set_header(s.k.transport, "Authorization", NULL, NULL);
    find(&s, "resources/read", "{\"uri\":\"x:a\"}");
    script_end(&s);
}

/* The request was sent for one user, and its answer came when the client represented
 * another. */
static void what_was_under_way_is_not_kept_for_another(void **state)
{
    (void)state;
    http_script s;
    begin(&s);
    record *r = ask(&s, "resources/read", "{\"uri\":\"x:a\"}");
    heard *h = script_expect(&s, "resources/read");
    segue_transport_set_header(s.k.transport, "Authorization", "B", NULL);
    script_result(h, READ("mine", "private"));
    script_until(&s, r->completed);
    fetch(&s, "resources/read", "{\"uri\":\"x:a\"}", READ("theirs", "private"));
    script_end(&s);
}

/* A first page starts the list anew. A cached second page still teaches the client its
 * tools. */
static void kept_pages_are_learnt_from(void **state)
{
    (void)state;
    http_script s;
    begin(&s);
    fetch(&s, "tools/list", "{\"cursor\":\"2\"}", PAGE(TOOL("b"), ""));
    fetch(&s, "tools/list", "{}", PAGE(TOOL("a"), "\"nextCursor\":\"2\","));
    find(&s, "tools/list", "{\"cursor\":\"2\"}");
    record *r = ask(&s, "tools/call", "{\"name\":\"b\",\"arguments\":{\"r\":\"x\"}}");
    heard *h = script_expect(&s, "tools/call");
    assert_header(h, "Mcp-Param-R", "x");
    script_result(h, "\"resultType\":\"complete\",\"content\":[]");
    script_until(&s, r->completed);
    script_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_next_gets_nothing_private),
        cmocka_unit_test(what_was_under_way_is_not_kept_for_another),
        cmocka_unit_test(kept_pages_are_learnt_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
