/* A listener closes while results of ended calls wait for clients that are away. A client
 * that may come back gets time that follows from when it was asked to come back. A client
 * that left before that time is not waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define SLOW                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"               \
    "\"name\":\"slow_compute\",\"arguments\":{\"ms\":1500}}}"
#define LATER                                                                            \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"               \
    "\"name\":\"later\",\"arguments\":{}}}"
#define DRAIN_MS 60000

static int idles;

static void count_idle(void *user)
{
    (void)user;
    idles++;
}

static void begin(http_stage *s)
{
    idles = 0;
    s->on_idle = count_idle;
    s->listen.drain_ms = DRAIN_MS;
    s->listen.stream_after_ms = 200;
    assert_int_equal(segue_store_memory(NULL, &s->store), SEGUE_OK);
    http_stage_begin(s);
}

static void end(http_stage *s)
{
    http_stage_end(s);
    segue_store_free(s->store);
}

/* Closes the listener, and checks that this takes between `least` and `most` ms. */
static void expect_close(http_stage *s, int64_t least, int64_t most)
{
    segue_listener_close(s->listener);
    http_stage_run(s);
    if (least) {
        http_stage_advance(s, least);
        assert_int_equal(idles, 0);
    }
    http_stage_advance(s, most - least);
    assert_int_equal(idles, 1);
}

static void say(http_caller *c, char *request)
{
    http_caller_say(c, request);
    free(request);
    http_stage_run(c->s);
}

/* Calls, and leaves the call after this time, as a client that is closed. */
static void call_and_leave(http_stage *s, const char *body, int64_t after_ms)
{
    http_caller c;
    char lines[160];
    http_stage_begin_session(s, lines);
    http_caller_open(s, &c);
    say(&c, http_post(lines, body));
    http_stage_advance(s, after_ms);
    http_caller_close(&c);
    http_stage_run(s);
    assert_int_equal(fixtures_jobs(s->fixtures), 1);
}

/* With and without an open event stream. */
static void a_legacy_client_that_left_long_ago_is_not_waited_for(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        http_stage s = {0};
        begin(&s);
        call_and_leave(&s, SLOW, streams ? 500 : 150);
        http_stage_advance(&s, 4000);
        assert_int_equal(fixtures_jobs(s.fixtures), 0);
        expect_close(&s, 0, 200);
        end(&s);
    }
}

/* The call ends in the drain. The client may come back for 2 s then. */
static void a_legacy_client_has_time_after_the_end_of_its_call(void **state)
{
    http_stage s = {0};
    (void)state;
    begin(&s);
    call_and_leave(&s, SLOW, 500);
    expect_close(&s, 2900, 3300);
    end(&s);
}

/* ---- a stream that was ended, with a retry time ---- */

static segue_call *away;

static void run_later(void *user, segue_call *call)
{
    (void)user;
    assert_int_equal(segue_call_hang_up(call, 5000, NULL), SEGUE_OK);
    away = call;
}

static void add_later(segue_server *server)
{
    static const char json[] =
        "{\"name\":\"later\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    item.on_call = run_later;
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &item, NULL),
        SEGUE_OK);
}

static void a_client_has_the_time_that_it_was_told(void **state)
{
    http_stage s = {.add = add_later};
    http_caller c;
    char lines[160];
    (void)state;
    begin(&s);
    http_stage_begin_session(&s, lines);
    http_caller_open(&s, &c);
    say(&c, http_post(lines, LATER));
    http_stage_run(&s);
    assert_int_equal(segue_call_complete(away, NULL, NULL), SEGUE_OK);
    segue_call_free(away);
    expect_close(&s, 5800, 6200);
    http_caller_close(&c);
    end(&s);
}

/* ---- tasks ---- */

static void a_task_that_nobody_fetches_is_not_waited_for(void **state)
{
    http_stage s = {0};
    char id[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "slow_compute", "{\"ms\":500}", id);
    http_stage_advance(&s, 3000);
    assert_int_equal(fixtures_jobs(s.fixtures), 0);
    expect_close(&s, 0, 200);
    end(&s);
}

/* The poll interval is 1 s. The result is kept for 1 s more. */
static void a_client_that_polls_has_its_poll_interval(void **state)
{
    http_stage s = {0};
    char id[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "slow_compute", "{\"ms\":500}", id);
    expect_close(&s, 2400, 2700);
    end(&s);
}

/* The poll interval of this tool is 100 ms. */
static void a_short_poll_interval_is_a_short_wait(void **state)
{
    http_stage s = {0};
    char id[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "story", "{\"n\":2,\"delayMs\":100}", id);
    http_stage_advance(&s, 500);
    assert_int_equal(fixtures_jobs(s.fixtures), 0);
    expect_close(&s, 500, 1300);
    end(&s);
}

/* ---- tasks that were taken over ---- */

static void leave(void *user, segue_call *call)
{
    (void)user;
    segue_call_free(call);
}

static void keep_call(void *user, segue_call *call)
{
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    (void)user;
    events.on_cancel = leave;
    assert_int_equal(segue_call_watch(call, &events), SEGUE_OK);
    away = call;
}

static void add_kept(segue_server *server)
{
    static const char json[] =
        "{\"name\":\"kept\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    item.on_call = keep_call;
    item.task = SEGUE_TASK_MUST;
    item.flags = SEGUE_TOOL_RESTARTABLE;
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &item, NULL),
        SEGUE_OK);
}

/* The handler may not run yet, when many calls run. The next server can begin the task as
 * well. Once the handler has sent something, its call is waited for. */
static void a_task_that_was_taken_over_and_not_begun_is_not_waited_for(void **state)
{
    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        http_stage first = {.add = add_kept}, next = {.add = add_kept};
        char id[64];
        begin(&first);
        http_stage_start_task(&first, "kept", "{}", id);
        http_stage_end(&first);
        away = NULL;
        idles = 0;
        next.on_idle = count_idle;
        next.listen.drain_ms = DRAIN_MS;
        next.store = first.store;
        http_stage_begin(&next);
        http_stage_run(&next);
        assert_non_null(away);
        if (begun)
            assert_int_equal(segue_call_send_text(away, "one", 3, NULL), SEGUE_OK);
        http_stage_run(&next);
        expect_close(&next, begun ? DRAIN_MS - 1000 : 0, begun ? DRAIN_MS + 1000 : 200);
        end(&next);
    }
}

/* ---- streams without a call ---- */

static void a_get_stream_is_not_waited_for(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    char lines[160], get[400];
    (void)state;
    for (int open = 0; open < 2; open++) {
        begin(&s);
        http_stage_begin_session(&s, lines);
        snprintf(get, sizeof get,
                 "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                 "%s\r\n",
                 lines);
        http_caller_open(&s, &c);
        http_caller_say(&c, get);
        http_caller_read(&c, &reply);
        assert_int_equal(reply.status, 200);
        http_reply_free(&reply);
        if (!open)
            http_caller_close(&c);
        http_stage_run(&s);
        add_later(s.server); /* a message for the stream */
        expect_close(&s, 0, 200);
        if (open)
            http_caller_close(&c);
        end(&s);
        memset(&s, 0, sizeof s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_legacy_client_that_left_long_ago_is_not_waited_for),
        cmocka_unit_test(a_legacy_client_has_time_after_the_end_of_its_call),
        cmocka_unit_test(a_client_has_the_time_that_it_was_told),
        cmocka_unit_test(a_task_that_nobody_fetches_is_not_waited_for),
        cmocka_unit_test(a_client_that_polls_has_its_poll_interval),
        cmocka_unit_test(a_short_poll_interval_is_a_short_wait),
        cmocka_unit_test(a_task_that_was_taken_over_and_not_begun_is_not_waited_for),
        cmocka_unit_test(a_get_stream_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
