/* The events that an observer gets: their fields, their levels, their lines of JSON, and
 * that no event has a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/event_log.h"
#include "support/http_stage.h"

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

static void a_call_starts_and_ends(void **state)
{
    http_stage s = {0};
    event_log log;
    (void)state;
    http_stage_begin(&s);
    event_log_begin(&log, s.rt, 0);
    ask(&s, http_call("1", "greet", "{\"name\":\"Ada\"}"));
    event_log_sees(&log, "call_started",
                   "\"level\":\"debug\",\"event\":\"call_started\",\"server\":\"");
    event_log_sees(&log, "call_ended",
                   "\"method\":\"tools/call\",\"item\":\"greet\",\"era\":\"modern\","
                   "\"status\":\"ok\",\"duration_us\":0}");
    event_log_has_nowhere(&log, "Ada");
    event_log_end(&log);
    http_stage_end(&s);
}

static http_stage *early;
static event_log early_log;

static void observe_early(segue_server *server)
{
    (void)server;
    event_log_begin(&early_log, early->rt, 0);
}

static void a_listener_and_its_connections_are_reported(void **state)
{
    http_stage s = {.add = observe_early};
    http_caller c;
    char address[40];
    (void)state;
    early = &s;
    http_stage_begin(&s);
    http_stage_run(&s);
    snprintf(address, sizeof address, "\"address\":\"http://127.0.0.1:%d/", s.port);
    event_log_sees(&early_log, "listener_opened", address);
    http_caller_open(&s, &c);
    http_stage_run(&s);
    event_log_sees(&early_log, "connection_opened", address);
    assert_int_equal(event_log_count(&early_log, "connection_closed", NULL), 0);
    http_caller_close(&c);
    http_stage_run(&s);
    event_log_sees(&early_log, "connection_closed", address);
    assert_int_equal(event_log_count(&early_log, "connection_closed", NULL), 1);
    segue_listener_close(s.listener);
    http_stage_advance(&s, 1000);
    event_log_sees(&early_log, "listener_closed", address);
    assert_int_equal(event_log_count(&early_log, "listener_closed", NULL), 1);
    event_log_end(&early_log);
    http_stage_end(&s);
}

/* ---- levels ---- */

static void count_event(void *user, const segue_event *event)
{
    assert_true(event->level >= SEGUE_LOG_INFO);
    ++*(int *)user;
}

static void only_wanted_levels_come(void **state)
{
    http_stage s = {0};
    int count = 0;
    segue_observer_options observer = SEGUE_OBSERVER_OPTIONS_INIT;
    (void)state;
    http_stage_begin(&s);
    observer.user = &count;
    observer.on_event = count_event;
    observer.level = SEGUE_LOG_INFO;
    assert_int_equal(segue_runtime_observe(s.rt, &observer), SEGUE_OK);
    ask(&s, http_call("1", "greet", "{\"name\":\"Ada\"}"));
    assert_int_equal(count, 1); /* call_ended */
    assert_int_equal(segue_runtime_observe(s.rt, NULL), SEGUE_OK);
    ask(&s, http_call("1", "greet", "{\"name\":\"Ada\"}"));
    assert_int_equal(count, 1);
    http_stage_end(&s);
}

/* ---- the line of JSON ---- */

static segue_event plain_event(void)
{
    return (segue_event){.struct_size = sizeof(segue_event),
                         .name = "call_ended",
                         .level = SEGUE_LOG_INFO,
                         .time_ms = 1785240000123,
                         .duration_us = -1,
                         .count = -1};
}

static void a_line_has_the_fields_that_are_there(void **state)
{
    segue_event event = plain_event();
    char line[400];
    size_t len = sizeof line;
    (void)state;
    event.item = "a \"quoted\"\nname";
    event.count = 0;
    assert_int_equal(segue_event_json(&event, line, &len), SEGUE_OK);
    assert_string_equal(line, "{\"time\":\"2026-07-28T12:00:00.123Z\",\"level\":\"info\","
                              "\"event\":\"call_ended\","
                              "\"item\":\"a \\\"quoted\\\"\\nname\",\"count\":0}");
    assert_int_equal(len, strlen(line));
}

static void a_long_text_is_cut_and_an_invalid_one_is_mended(void **state)
{
    segue_event event = plain_event();
    char line[4096], text[3000];
    size_t len = sizeof line;
    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    memcpy(text + 2047, "\xc3\xa4", 2); /* the limit is in the middle of this character */
    event.message = text;
    event.item = "caf\xe9 au lait\xff";
    assert_int_equal(segue_event_json(&event, line, &len), SEGUE_OK);
    assert_non_null(strstr(line, "\"item\":\"caf\xef\xbf\xbd au lait\xef\xbf\xbd\""));
    const char *message = strstr(line, "\"message\":\"");
    assert_non_null(message);
    assert_int_equal(strspn(message + 11, "x"), 2047);
    assert_string_equal(message + 11 + 2047, "\"}");
}

static void wrong_arguments_are_refused(void **state)
{
    segue_event event = plain_event();
    segue_observer_options observer = SEGUE_OBSERVER_OPTIONS_INIT;
    char line[8];
    size_t len = sizeof line;
    http_stage s = {0};
    (void)state;
    assert_int_equal(segue_event_json(&event, line, &len), SEGUE_E_TOO_SMALL);
    assert_int_equal(segue_event_json(&event, line, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_event_json(NULL, line, &len), SEGUE_E_INVALID);
    event.name = NULL;
    assert_int_equal(segue_event_json(&event, line, &len), SEGUE_E_INVALID);
    http_stage_begin(&s);
    assert_int_equal(segue_runtime_observe(s.rt, &observer), SEGUE_E_INVALID);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_starts_and_ends),
        cmocka_unit_test(a_listener_and_its_connections_are_reported),
        cmocka_unit_test(only_wanted_levels_come),
        cmocka_unit_test(a_line_has_the_fields_that_are_there),
        cmocka_unit_test(a_long_text_is_cut_and_an_invalid_one_is_mended),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
