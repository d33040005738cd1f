/* A client of 2025-03-26 accepts batches: arrays of messages, each handled as if it
 * had come alone (basic, "Batching"). It sends none, and accepts none in any other
 * revision. */
#include "engine/engine.h"
#include "runtime/runtime.h"
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

#define RESULT_OF(text)                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\","        \
    "\"text\":\"" text "\"}]}}"
#define NOTICE "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}"

static void begin(kit *k, const char *version)
{
    segue_session_options options = kit_legacy_options();
    kit_begin(k, &options);
    kit_shake_hands(k, version, "{}");
}

static uint64_t warnings(kit *k)
{
    return sgi_runtime_engine(k->runtime)->warnings;
}

static char *id_of(const char *request)
{
    return strdup(json_at(request, "id"));
}

static void each_message_counts_as_if_alone(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "2025-03-26");
    record *one = kit_call(&k, "t"), *other = kit_call(&k, "t"),
           *late = kit_call(&k, "t");
    char *ids[3];
    for (int i = 0; i < 3; i++)
        ids[i] = id_of(kit_expect(&k, "tools/call"));
    kit_say(&k, " [" RESULT_OF("b") "," NOTICE "," PING "," RESULT_OF("a") "] ", ids[1],
            ids[0]);
    assert_int_equal(one->status, SEGUE_OK);
    assert_int_equal(other->status, SEGUE_OK);
    assert_at(one->result, "content.0.text", "\"a\"");
    assert_at(other->result, "content.0.text", "\"b\"");
    assert_int_equal(late->completed, 0);
    assert_int_equal(k.notifications, 1);
    const char *pong = kit_heard(&k); /* the client sends no batches */
    assert_at(pong, "id", "\"p\"");
    assert_at(pong, "result", "{}");
    kit_say(&k, "[" RESULT_OF("c") "]", ids[2]);
    assert_at(late->result, "content.0.text", "\"c\"");
    for (int i = 0; i < 3; i++)
        free(ids[i]);
    kit_end(&k);
}

static void bad_items_are_counted_and_the_others_heard(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "2025-03-26");
    record *r = kit_call(&k, "t");
    char *id = id_of(kit_expect(&k, "tools/call"));
    uint64_t before = warnings(&k);
    kit_say(&k,
            "[7,[" RESULT_OF("x") "],{},{\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}"
                                  "," RESULT_OF("a") "]",
            id, id);
    assert_int_equal(warnings(&k), before + 4);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content.0.text", "\"a\"");
    kit_say(&k, "[]"); /* an empty batch is no fault */
    kit_say(&k, "[" NOTICE ",]");
    assert_int_equal(k.notifications, 0);
    assert_int_equal(warnings(&k), before + 5);
    kit_expect_silence(&k);
    free(id);
    kit_end(&k);
}

/* Messages behind the end of the session are ignored. */
static void a_session_that_is_closed_hears_no_more(void **state)
{
    (void)state;
    kit k = {0};
    begin(&k, "2025-03-26");
    record *r = kit_call(&k, "t");
    char *id = id_of(kit_expect(&k, "tools/call"));
    segue_session_close(k.session);
    kit_say(&k, "[" RESULT_OF("a") "," NOTICE "]", id);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
    assert_int_equal(k.notifications, 0);
    free(id);
    kit_end(&k);
}

static void no_other_revision_has_them(void **state)
{
    static const char *const versions[] = {"2024-11-05", "2025-06-18", "2025-11-25"};
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        kit k = {0};
        begin(&k, versions[i]);
        record *r = kit_call(&k, "t");
        const char *call = kit_expect(&k, "tools/call");
        uint64_t before = warnings(&k);
        kit_say(&k, "[" RESULT_OF("a") "," NOTICE "]", json_at(call, "id"));
        assert_int_equal(warnings(&k), before + 1);
        assert_int_equal(r->completed, 0);
        assert_int_equal(k.notifications, 0);
        kit_result(&k, call, "\"content\":[]");
        assert_int_equal(r->status, SEGUE_OK);
        kit_end(&k);
    }
}

static void begin_http(http_script *s)
{
    segue_session_options options = kit_legacy_options();
    script_begin(s, &options);
    script_result(script_expect(s, "initialize"),
                  "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{}");
    script_accept(script_expect(s, "notifications/initialized"));
    script_until(s, s->k.opened);
    script_say(script_expect(s, "GET"), "405 Method Not Allowed", "", "");
}

/* A batch as the answer to one request, whole or in small pieces, and as an event. */
static void over_http_they_answer_a_request(void **state)
{
    (void)state;
    for (size_t piece = 0; piece < 3; piece++) {
        http_script s;
        begin_http(&s);
        s.piece = piece;
        record *r = kit_call(&s.k, "t");
        heard *h = script_expect(&s, "tools/call");
        script_json(h, "[" NOTICE "," RESULT_OF("a") "]", json_at(h->body, "id"));
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_OK);
        assert_at(r->result, "content.0.text", "\"a\"");
        script_until(&s, s.k.notifications == 1);
        r = kit_call(&s.k, "t");
        h = script_expect(&s, "tools/call");
        script_stream(h);
        script_event(h, NULL, "[" NOTICE "," RESULT_OF("b") "]", json_at(h->body, "id"));
        script_finish(h);
        script_until(&s, r->completed);
        assert_at(r->result, "content.0.text", "\"b\"");
        script_until(&s, s.k.notifications == 2);
        r = kit_call(&s.k, "t"); /* an array without the answer counts as no answer */
        script_json(script_expect(&s, "tools/call"), "[" NOTICE "]");
        script_until(&s, r->completed);
        assert_int_equal(r->status, SEGUE_E_PROTOCOL);
        script_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_counts_as_if_alone),
        cmocka_unit_test(bad_items_are_counted_and_the_others_heard),
        cmocka_unit_test(a_session_that_is_closed_hears_no_more),
        cmocka_unit_test(no_other_revision_has_them),
        cmocka_unit_test(over_http_they_answer_a_request),
    };
    return cmocka_run_group_tests_name("client_batches", tests, NULL, NULL);
}
