/* Updates of resources that a session over HTTP subscribed to: the updates are sent on
 * the stream of a GET, wait while there is no such stream, and end with the session. */
#include "support/http_wire.h"

#include "engine/conversation/replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define UPDATED "notifications/resources/updated"
#define WATCHED "\"uri\":\"test://watched\""

static http_rig t;

static void on_call(void *user, segue_call *call)
{
    (void)user;
    sgi_call_free(call);
}

static int begin(void **state)
{
    segue_item_options options = {.struct_size = sizeof options, .on_call = on_call};
    (void)state;
    http_rig_begin(&t, "ada");
    return sgi_item_add(t.server, SEGUE_ITEM_RESOURCE,
                        SGI_STR("{\"uri\":\"test://watched\",\"name\":\"w\"}"), &options,
                        NULL) == SEGUE_OK
               ? 0
               : 1;
}

static int end(void **state)
{
    (void)state;
    http_rig_end(&t);
    return 0;
}

static void subscribe(void)
{
    assert_int_equal(http_wire_legacy(&t.b, "2", "resources/subscribe", WATCHED), 200);
    assert_true(http_wire_says(&t.b, "\"result\":{}"));
}

static void update(void)
{
    sgi_resource_report_updated(t.server, SGI_STR("test://watched"));
}

static void come_on_the_stream_of_get(void **state)
{
    (void)state;
    http_rig_open(&t);
    subscribe();
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    update();
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 1);
    update();
    update();
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 2);
    assert_int_equal(http_wire_legacy(&t.b, "3", "resources/unsubscribe", WATCHED), 200);
    update();
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 2);
}

static void wait_for_a_stream(void **state)
{
    (void)state;
    http_rig_open(&t);
    subscribe();
    update();
    update();
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 1);
    http_wire_cut(&t.a); /* the client is disconnected, but its stream is kept */
    update();
    update();
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 1);
}

/* The stream breaks when an update is on its way. A client that names the event has it;
 * one that names no event may have missed it. */
static void missed_ones_are_repeated(void **state)
{
    char event[64];
    (void)state;
    http_rig_open(&t);
    subscribe();
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    update();
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 1);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 1);
    const sgi_replay *replay = t.a.conn->replay;
    snprintf(event, sizeof event, "%lld-%llu", (long long)replay->stream,
             (unsigned long long)replay->next - 1);
    http_wire_cut(&t.a);
    assert_int_equal(http_wire_get(&t.a, event), 0);
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 0);
}

static void end_with_the_session(void **state)
{
    (void)state;
    http_rig_open(&t);
    subscribe();
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    update(); /* this update is not written yet */
    assert_int_equal(http_wire_delete(&t.b), 204);
    update();
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 0);
}

static void are_of_the_session_that_asked(void **state)
{
    (void)state;
    http_rig_open(&t);
    subscribe();
    assert_true(http_wire_open(&t.a, "2025-06-18"));
    assert_int_equal(http_wire_get(&t.a, ""), 0);
    update();
    assert_int_equal(http_wire_count(http_wire_text(&t.a), UPDATED), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(come_on_the_stream_of_get, begin, end),
        cmocka_unit_test_setup_teardown(wait_for_a_stream, begin, end),
        cmocka_unit_test_setup_teardown(missed_ones_are_repeated, begin, end),
        cmocka_unit_test_setup_teardown(end_with_the_session, begin, end),
        cmocka_unit_test_setup_teardown(are_of_the_session_that_asked, begin, end),
    };
    return cmocka_run_group_tests_name("wire_session_updates", tests, NULL, NULL);
}
