/* Results that a client keeps because its server said how long they stay fresh (SEP-2549,
 * 2026-07-28 server/utilities/caching): which requests are answered from the cache, which
 * are not, and what makes an entry invalid. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define FRESH(ms) "\"ttlMs\":" #ms ",\"cacheScope\":\"private\""
#define TOOLS(hints) "\"resultType\":\"complete\",\"tools\":[]," hints
#define READ(text, hints)                                                                \
    "\"resultType\":\"complete\",\"contents\":[{\"uri\":\"x:a\",\"text\":\"" text        \
    "\"}]," hints

static segue_session_options session_options(int64_t cache_bytes)
{
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    options.cache_bytes = cache_bytes;
    return options;
}

/* Starts a request without on_progress: a request with on_progress is never answered from
 * the cache. */
static record *ask_with(kit *k, const char *method, const char *params,
                        const segue_request_options *options)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    events.on_progress = NULL;
    assert_int_equal(segue_request_start(k->session, method, params,
                                         params ? strlen(params) : 0, options, &events,
                                         &r->request, NULL),
                     SEGUE_OK);
    assert_int_equal(r->completed, 0); /* callbacks never run inside the call */
    kit_run(k);
    return r;
}

static record *ask(kit *k, const char *method, const char *params)
{
    return ask_with(k, method, params, NULL);
}

/* Starts a request, which must go to the server, and answers it. */
static void fetch(kit *k, const char *method, const char *params, const char *result)
{
    record *r = ask(k, method, params);
    kit_result(k, kit_expect(k, method), "%s", result);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_OK);
}

/* Starts a request, which must be answered without the server. */
static const char *find(kit *k, const char *method, const char *params)
{
    record *r = ask(k, method, params);
    kit_expect_silence(k);
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_OK);
    return r->result;
}

/* Starts a request, which must go to the server. */
static void miss(kit *k, const char *method, const char *params)
{
    fetch(k, method, params, TOOLS(FRESH(0)));
}

/* ---- fresh ---- */

static void fresh_results_need_no_wire(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "resources/read", "{\"uri\":\"x:a\"}", READ("one", FRESH(5000)));
    assert_non_null(strstr(find(&k, "resources/read", "{\"uri\":\"x:a\"}"), "one"));
    assert_non_null(strstr(find(&k, "resources/read", "{ \"uri\" : \"x:\\u0061\" }"),
                           "\"ttlMs\":5000"));
    kit_end(&k);
}

static void all_that_can_be_cached_is(void **state)
{
    (void)state;
    static const char *const methods[] = {"server/discover", "tools/list",
                                          "prompts/list",    "resources/list",
                                          "resources/read",  "resources/templates/list"};
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const char *params = strstr(methods[i], "read") ? "{\"uri\":\"x:a\"}" : "{}";
        const char *result =
            strstr(methods[i], "read") ? READ("a", FRESH(5000)) : TOOLS(FRESH(5000));
        fetch(&k, methods[i], params, result);
        find(&k, methods[i], params);
    }
    fetch(&k, "prompts/get", "{\"name\":\"p\"}",
          "\"resultType\":\"complete\",\"messages\":[]," FRESH(5000));
    fetch(&k, "prompts/get", "{\"name\":\"p\"}",
          "\"resultType\":\"complete\",\"messages\":[]," FRESH(5000));
    kit_end(&k);
}

/* "fresh while now < t_received + ttlMs" */
static void a_result_ages_from_its_arrival(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = ask(&k, "tools/list", NULL);
    const char *request = kit_expect(&k, "tools/list");
    kit_advance(&k, 500);
    kit_result(&k, request, TOOLS(FRESH(1000)));
    assert_int_equal(r->status, SEGUE_OK);
    kit_advance(&k, 999);
    find(&k, "tools/list", NULL);
    kit_advance(&k, 1);
    miss(&k, "tools/list", NULL);
    miss(&k, "tools/list", NULL);
    kit_end(&k);
}

static void what_differs_is_another_result(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "resources/read", "{\"uri\":\"x:a\"}", READ("one", FRESH(5000)));
    fetch(&k, "resources/read", "{\"uri\":\"x:b\"}", READ("two", FRESH(5000)));
    fetch(&k, "resources/read", "{\"uri\":\"x:a\",\"n\":1}", READ("six", FRESH(5000)));
    assert_non_null(
        strstr(find(&k, "resources/read", "{\"n\":1,\"uri\":\"x:a\"}"), "six"));
    assert_non_null(strstr(find(&k, "resources/read", "{\"uri\":\"x:a\"}"), "one"));
    fetch(&k, "tools/list", NULL, TOOLS("\"nextCursor\":\"c\"," FRESH(5000)));
    fetch(&k, "tools/list", "{\"cursor\":\"c\"}", TOOLS(FRESH(1000)));
    assert_non_null(strstr(find(&k, "tools/list", NULL), "nextCursor"));
    assert_null(strstr(find(&k, "tools/list", "{\"cursor\":\"c\"}"), "nextCursor"));
    kit_advance(&k, 1000); /* each page has its own time */
    find(&k, "tools/list", NULL);
    miss(&k, "tools/list", "{\"cursor\":\"c\"}");
    kit_end(&k);
}

/* ---- never kept ---- */

static void what_is_not_fresh_is_not_kept(void **state)
{
    (void)state;
    static const struct {
        const char *hints;
        int warns;
    } rows[] = {
        {FRESH(0), 0},
        {"\"cacheScope\":\"private\"", 0},
        {FRESH(-1), 1},
        {FRESH(1.5), 1},
        {FRESH("5000"), 1},
        {FRESH(9007199254740992), 1},
        {FRESH(1e400), 1},
        {FRESH(null), 1},
        {"\"ttlMs\":5000,\"cacheScope\":\"shared\"", 1},
        {"\"ttlMs\":5000,\"cacheScope\":7", 1},
    };
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char result[256];
        snprintf(result, sizeof result, TOOLS("%s"), rows[i].hints);
        k.last_warning[0] = 0;
        fetch(&k, "tools/list", NULL, result);
        assert_int_equal(*k.last_warning != 0, rows[i].warns);
        miss(&k, "tools/list", NULL);
    }
    fetch(&k, "tools/list", NULL, TOOLS(FRESH(9007199254740991)));
    find(&k, "tools/list", NULL);
    kit_end(&k);
}

static void errors_are_not_kept(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = ask(&k, "tools/list", NULL);
    kit_error(&k, kit_expect(&k, "tools/list"), -32603, "{\"ttlMs\":5000}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    miss(&k, "tools/list", NULL);
    kit_end(&k);
}

static void answer_it(record *r, const char *key)
{
    assert_int_equal(
        segue_request_answer(r->request, key, "{\"action\":\"accept\"}", 19, NULL),
        SEGUE_OK);
}

/* "MUST NOT be cached, as they depend on inputs that are not part of the cache key" */
static void what_came_of_a_round_is_not_kept(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_events events;
    segue_session_options options = session_options(0);
    options.capabilities = "{\"elicitation\":{}}";
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    record *r = kit_record(&k, &events);
    events.on_progress = NULL;
    r->on_input = answer_it;
    segue_request_start(k.session, "resources/read", "{\"uri\":\"x:a\"}", 13, NULL,
                        &events, &r->request, NULL);
    kit_result(&k, kit_expect(&k, "resources/read"),
               "\"resultType\":\"input_required\",\"inputRequests\":{\"k\":{"
               "\"method\":\"elicitation/create\",\"params\":{}}}," FRESH(5000));
    kit_result(&k, kit_expect(&k, "resources/read"), READ("mine", FRESH(5000)));
    assert_int_equal(r->status, SEGUE_OK);
    fetch(&k, "resources/read", "{\"uri\":\"x:a\"}", READ("any", FRESH(0)));
    fetch(&k, "resources/read", "{\"uri\":\"x:a\",\"requestState\":\"s\"}",
          READ("any", FRESH(5000)));
    fetch(&k, "resources/read", "{\"uri\":\"x:a\",\"requestState\":\"s\"}",
          READ("any", FRESH(5000)));
    kit_end(&k);
}

/* Requests with progress, log messages or own members in _meta are not answered from the
 * cache. */
static void requests_with_more_to_them_are_left_alone(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.log_level = "info";
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "tools/list", NULL, TOOLS(FRESH(5000)));
    kit_start(&k, "tools/list", NULL, NULL); /* this request has on_progress */
    kit_result(&k, kit_expect(&k, "tools/list"), TOOLS(FRESH(5000)));
    ask_with(&k, "tools/list", NULL, &options);
    kit_result(&k, kit_expect(&k, "tools/list"), TOOLS(FRESH(5000)));
    miss(&k, "tools/list", "{\"_meta\":{\"com.example/tenant\":1}}");
    miss(&k, "tools/list", "{\"_meta\":7}");
    find(&k, "tools/list", "{\"_meta\":{\"traceparent\":\"00-1-2-01\"}}");
    find(&k, "tools/list", "{\"_meta\":{}}");
    kit_end(&k);
}

static void earlier_eras_have_no_cache(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_2025(&k, NULL, SERVER_2025);
    fetch(&k, "tools/list", NULL, "\"tools\":[]," FRESH(5000));
    fetch(&k, "tools/list", NULL, "\"tools\":[]," FRESH(5000));
    kit_end(&k);
}

static void it_can_be_switched_off(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = session_options(-1);
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    fetch(&k, "tools/list", NULL, TOOLS(FRESH(5000)));
    miss(&k, "tools/list", NULL);
    kit_end(&k);
}

static void no_cache_asks_and_what_comes_is_kept(void **state)
{
    (void)state;
    kit k = {0};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.no_cache = 1;
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "resources/read", "{\"uri\":\"x:a\"}", READ("one", FRESH(5000)));
    record *r = ask_with(&k, "resources/read", "{\"uri\":\"x:a\"}", &options);
    kit_result(&k, kit_expect(&k, "resources/read"), READ("two", FRESH(5000)));
    assert_non_null(strstr(r->result, "two"));
    assert_non_null(strstr(find(&k, "resources/read", "{\"uri\":\"x:a\"}"), "two"));
    r = ask_with(&k, "resources/read", "{\"uri\":\"x:a\"}", &options);
    kit_result(&k, kit_expect(&k, "resources/read"), READ("six", FRESH(0)));
    fetch(&k, "resources/read", "{\"uri\":\"x:a\"}", READ("ten", FRESH(0)));
    kit_end(&k);
}

/* ---- invalid entries ---- */

static void notify(kit *k, const char *method, const char *params)
{
    kit_say(k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/%s\",\"params\":%s}",
            method, params);
}

static void notifications_make_void(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "tools/list", NULL, TOOLS(FRESH(5000)));
    fetch(&k, "tools/list", "{\"cursor\":\"c\"}", TOOLS(FRESH(5000)));
    fetch(&k, "prompts/list", NULL, TOOLS(FRESH(5000)));
    fetch(&k, "resources/list", NULL, TOOLS(FRESH(5000)));
    fetch(&k, "resources/templates/list", NULL, TOOLS(FRESH(5000)));
    fetch(&k, "resources/read", "{\"uri\":\"x:a\"}", READ("a", FRESH(5000)));
    fetch(&k, "resources/read", "{\"uri\":\"x:b\"}", READ("b", FRESH(5000)));
    notify(&k, "tools/list_changed", "{}");
    miss(&k, "tools/list", NULL);
    miss(&k, "tools/list", "{\"cursor\":\"c\"}");
    find(&k, "prompts/list", NULL);
    notify(&k, "prompts/list_changed", "{}");
    miss(&k, "prompts/list", NULL);
    find(&k, "resources/list", NULL);
    notify(&k, "resources/list_changed", "{}");
    miss(&k, "resources/list", NULL);
    miss(&k, "resources/templates/list", NULL);
    notify(&k, "resources/updated", "{\"uri\":\"x:\\u0061\"}");
    find(&k, "resources/read", "{\"uri\":\"x:b\"}");
    miss(&k, "resources/read", "{\"uri\":\"x:a\"}");
    kit_end(&k);
}

/* The client cannot tell whether the answer includes the change. */
static void what_was_asked_before_a_change_is_not_kept(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = ask(&k, "tools/list", NULL);
    const char *request = kit_expect(&k, "tools/list");
    notify(&k, "tools/list_changed", "{}");
    kit_result(&k, request, TOOLS(FRESH(5000)));
    assert_int_equal(r->status, SEGUE_OK);
    miss(&k, "tools/list", NULL);
    kit_end(&k);
}

/* "reason to believe the data has changed" */
static void an_error_of_a_call_makes_its_list_void(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "tools/list", NULL, TOOLS(FRESH(5000)));
    kit_call(&k, "t");
    kit_error(&k, kit_expect(&k, "tools/call"), -32603, NULL);
    find(&k, "tools/list", NULL);
    kit_call(&k, "t");
    kit_error(&k, kit_expect(&k, "tools/call"), -32602, NULL);
    miss(&k, "tools/list", NULL);
    kit_end(&k);
}

static void a_refused_cursor_makes_all_pages_void(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "tools/list", NULL, TOOLS("\"nextCursor\":\"c\"," FRESH(5000)));
    fetch(&k, "prompts/list", NULL, TOOLS(FRESH(5000)));
    ask(&k, "tools/list", "{\"cursor\":\"c\"}");
    kit_error(&k, kit_expect(&k, "tools/list"), -32602, NULL);
    miss(&k, "tools/list", NULL);
    find(&k, "prompts/list", NULL);
    kit_end(&k);
}

/* The client missed changes meanwhile, and the server may be another one. */
static void a_new_connection_begins_with_nothing(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "tools/list", NULL, TOOLS(FRESH(5000)));
    kit_cut(&k);
    kit_handshake(&k, SERVER_PLAIN);
    miss(&k, "tools/list", NULL);
    kit_end(&k);
}

/* ---- bounds ---- */

static void read_some(kit *k, int i, int fresh)
{
    char params[64], result[600];
    snprintf(params, sizeof params, "{\"uri\":\"x:%d\"}", i);
    if (fresh) {
        snprintf(result, sizeof result, READ("%0400d", FRESH(5000)), i);
        fetch(k, "resources/read", params, result);
    } else {
        find(k, "resources/read", params);
    }
}

/* About six of these fit into 4 KiB. */
static void what_was_unused_longest_makes_room(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = session_options(4096);
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    for (int i = 0; i < 5; i++)
        read_some(&k, i, 1);
    for (int i = 5; i < 100; i++) {
        read_some(&k, 0, 0); /* stays, because it is used */
        read_some(&k, i, 1);
    }
    read_some(&k, 99, 0);
    read_some(&k, 1, 1); /* this entry was dropped long ago */
    kit_end(&k);
}

static void a_bound_that_is_none_is_refused(void **state)
{
    (void)state;
    kit k = {0};
    segue_transport *a, *b;
    segue_session *session = NULL;
    segue_session_options options = session_options(-2);
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    assert_int_equal(segue_transport_pair(k.runtime, &a, &b), SEGUE_OK);
    assert_int_equal(segue_session_open(k.runtime, a, &options, NULL, &session, NULL),
                     SEGUE_E_INVALID);
    segue_transport_free(a);
    segue_transport_free(b);
    kit_end(&k);
}

static void what_is_larger_than_the_cache_is_not_kept(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = session_options(200);
    kit_begin_modern(&k, &options, SERVER_PLAIN);
    read_some(&k, 1, 1);
    read_some(&k, 1, 1);
    fetch(&k, "tools/list", NULL, TOOLS(FRESH(9)));
    kit_end(&k);
}

static void nothing_is_kept_without_memory(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    fetch(&k, "prompts/list", NULL, TOOLS(FRESH(5000)));
    for (size_t n = 1; n < 60; n++) {
        record *r = ask(&k, "tools/list", NULL);
        const char *request = kit_heard(&k);
        if (!request) {
            /* the result was stored in the turn before */
            assert_int_equal(r->status, SEGUE_OK);
            notify(&k, "tools/list_changed", "{}");
            continue;
        }
        test_mem_rearm(&k.mem);
        k.mem.fail_at = n;
        kit_result(&k, request, TOOLS(FRESH(5000)));
        test_mem_rearm(&k.mem);
        assert_int_equal(r->completed, 1);
    }
    find(&k, "prompts/list", NULL);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_results_need_no_wire),
        cmocka_unit_test(all_that_can_be_cached_is),
        cmocka_unit_test(a_result_ages_from_its_arrival),
        cmocka_unit_test(what_differs_is_another_result),
        cmocka_unit_test(what_is_not_fresh_is_not_kept),
        cmocka_unit_test(errors_are_not_kept),
        cmocka_unit_test(what_came_of_a_round_is_not_kept),
        cmocka_unit_test(requests_with_more_to_them_are_left_alone),
        cmocka_unit_test(earlier_eras_have_no_cache),
        cmocka_unit_test(it_can_be_switched_off),
        cmocka_unit_test(no_cache_asks_and_what_comes_is_kept),
        cmocka_unit_test(notifications_make_void),
        cmocka_unit_test(what_was_asked_before_a_change_is_not_kept),
        cmocka_unit_test(an_error_of_a_call_makes_its_list_void),
        cmocka_unit_test(a_refused_cursor_makes_all_pages_void),
        cmocka_unit_test(a_new_connection_begins_with_nothing),
        cmocka_unit_test(what_was_unused_longest_makes_room),
        cmocka_unit_test(a_bound_that_is_none_is_refused),
        cmocka_unit_test(what_is_larger_than_the_cache_is_not_kept),
        cmocka_unit_test(nothing_is_kept_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
