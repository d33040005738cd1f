/* The end of an event stream over HTTP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

static void start_task(http_caller *c, char task[64])
{
    http_reply reply;
    http_caller_ask(
        c,
        http_request("1", "tools/call", "slow_compute",
                     "\"name\":\"slow_compute\",\"arguments\":{\"seconds\":1}",
                     HTTP_CAPS_TASKS),
        &reply);
    const char *at = strstr(reply.body, "\"taskId\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"taskId\":\"%60[^\"]", task), 1);
    http_reply_free(&reply);
}

static char *ask_stream(const char *task)
{
    char params[128];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", task);
    return http_request("2", "tasks/stream", task, params, HTTP_CAPS_TASKS);
}

/* R-E-5: the result of tasks/stream is its last event. The result is written while the
 * stream is asked for output. The last chunk must follow nevertheless, and the connection
 * must stay usable. */
static void expect_end(http_caller *c)
{
    char *event = NULL;
    char *last = NULL;
    while ((event = http_caller_event(c))) {
        free(last);
        last = event;
    }
    assert_non_null(last);
    assert_non_null(strstr(last, "\"result\""));
    free(last);
}

static void stream_task(bool ended_before)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    char task[64];
    http_stage_open(&s, &c);
    start_task(&c, task);
    if (ended_before)
        http_stage_advance(&s, 2000);
    char *request = ask_stream(task);
    for (int i = 0; i < 2; i++) { /* two streams on one connection */
        http_caller_say(&c, request);
        http_caller_read(&c, &reply);
        assert_int_equal(reply.status, 200);
        http_stage_advance(&s, 2000);
        expect_end(&c);
        http_reply_free(&reply);
    }
    free(request);
    http_stage_close(&s, &c);
}

static void a_stream_of_a_running_task_ends(void **state)
{
    (void)state;
    stream_task(false);
}

static void a_stream_of_an_ended_task_ends(void **state)
{
    (void)state;
    stream_task(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_of_a_running_task_ends),
        cmocka_unit_test(a_stream_of_an_ended_task_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
