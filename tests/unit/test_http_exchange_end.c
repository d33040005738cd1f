/* Unusual ends of an exchange: a stream that opens while the listener drains, and a close
 * request that was meant for the exchange before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"
#include "transport/http_conn.h"

#define INITIALIZE                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                            \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"
#define SLOW                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"               \
    "\"name\":\"slow_compute\",\"arguments\":{\"ms\":60000}}}"

static void begin_session(http_caller *c, char lines[160])
{
    http_reply reply;
    http_caller_ask(c, http_post("", INITIALIZE), &reply);
    snprintf(lines, 160, "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
}

/* No other server has the answer to a call of the handshake eras. So its stream opens
 * while the listener drains, and brings the answer. */
static void a_stream_that_opens_while_it_drains_brings_the_answer(void **state)
{
    http_stage s = {.listen = {.drain_ms = 90000, .stream_after_ms = 1000}};
    http_caller c;
    http_reply reply;
    char lines[160];
    (void)state;
    http_stage_open(&s, &c);
    begin_session(&c, lines);
    char *request = http_post(lines, SLOW);
    http_caller_say(&c, request);
    free(request);
    http_stage_run(&s);
    segue_listener_close(s.listener);
    http_stage_advance(&s, 500);
    http_caller_quiet(&c); /* the call may still be answered in time */
    http_stage_advance(&s, 600);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Content-Type"), "text/event-stream");
    char *event = http_caller_event(&c); /* the event id to resume from */
    assert_non_null(event);
    assert_non_null(strstr(event, "id: "));
    free(event);
    http_caller_quiet(&c);
    http_stage_advance(&s, 60000);
    event = http_caller_event(&c);
    while (*event == ':') { /* keep-alive comments */
        free(event);
        event = http_caller_event(&c);
    }
    assert_non_null(strstr(event, "Computed: done"));
    free(event);
    assert_null(http_caller_event(&c));
    http_caller_until_closed(&c);
    http_stage_close(&s, &c);
}

static void raise_close(http_stage *s)
{
    sgi_http_conn *conn = TAILQ_FIRST(&s->listener->conns);
    sgi_runtime_lock(s->rt);
    sgi_carrier_request_work(&conn->transport.carrier, SGI_WORK_CLOSE);
    sgi_runtime_unlock(s->rt);
    http_stage_run(s);
}

/* Raises the close as if for an exchange that has ended in the same turn. */
static void a_late_close_leaves_the_next_exchange_alone(void **state)
{
    http_stage s = {.listen = {.stream_after_ms = 200}};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_open(&s, &c);
    http_caller_ask(&c, http_call("1", "greet", NULL), &reply);
    assert_int_equal(reply.status, 200);
    http_reply_free(&reply);
    raise_close(&s); /* no exchange is under way */
    http_caller_quiet(&c);
    for (int ms = 100; ms <= 500; ms += 400) { /* as one JSON text, and as a stream */
        char arguments[40];
        snprintf(arguments, sizeof arguments, "{\"ms\":%d}", ms);
        char *request = http_call("2", "slow_compute", arguments);
        http_caller_say(&c, request);
        free(request);
        http_stage_advance(&s, ms - 50);
        raise_close(&s);
        assert_int_equal(fixtures_jobs(s.fixtures), 1);
        http_stage_advance(&s, 100);
        http_caller_read(&c, &reply);
        assert_int_equal(reply.status, 200);
        assert_string_equal(http_reply_header(&reply, "Connection"), "");
        if (!reply.body) {
            char *event = http_caller_event(&c);
            while (event && !strstr(event, "\"result\"")) {
                free(event);
                event = http_caller_event(&c);
            }
            assert_non_null(event);
            free(event);
            assert_null(http_caller_event(&c));
        }
        http_reply_free(&reply);
    }
    http_stage_close(&s, &c);
}

/* An exchange that asks for its end gets it, however it asks. */
static void an_exchange_that_closes_ends(void **state)
{
    http_stage s = {0};
    http_caller c, other;
    http_reply reply;
    char lines[160], text[320];
    (void)state;
    http_stage_open(&s, &c);
    begin_session(&c, lines);
    char *request = http_post(lines, SLOW);
    http_caller_say(&c, request);
    free(request);
    http_stage_run(&s);
    http_caller_open(&s, &other);
    snprintf(text, sizeof text, "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
             lines);
    http_caller_say(&other, text);
    assert_int_equal(http_caller_status(&other), 204);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 503);
    assert_non_null(strstr(reply.body, "\"reason\":\"request_ended\""));
    http_reply_free(&reply);
    http_caller_until_closed(&c);
    http_caller_quiet(&other);
    http_caller_close(&other);
    http_stage_close(&s, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_that_opens_while_it_drains_brings_the_answer),
        cmocka_unit_test(a_late_close_leaves_the_next_exchange_alone),
        cmocka_unit_test(an_exchange_that_closes_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
