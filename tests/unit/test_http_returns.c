/* A listener closes while calls run: a client that was cut off from its call comes back
 * and gets the rest, no new request is accepted, and the listener waits only for a
 * limited time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "support/http_stage.h"

#define META                                                                             \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","             \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"},"         \
    "\"io.modelcontextprotocol/clientCapabilities\":{},"                                 \
    "\"dev.segue/idempotencyKey\":\"0123456789abcdef\"}"
#define KEYED(ms)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"      \
    "\"slow_compute\",\"arguments\":{\"ms\":" #ms "}," META "}}"
#define MODERN                                                                           \
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"                     \
    "Mcp-Name: slow_compute\r\n"
#define INITIALIZE                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                            \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"
#define SLOW                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"               \
    "\"name\":\"slow_compute\",\"arguments\":{\"ms\":3000}}}"

static int idles;

static void count_idle(void *user)
{
    (void)user;
    idles++;
}

static bool is_listening(const http_stage *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is = connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
    close(fd);
    return is;
}

static void say(http_caller *c, char *request)
{
    http_caller_say(c, request);
    free(request);
    http_stage_run(c->s);
}

/* The test owns the store, so the server knows idempotency keys. The data ends with the
 * process. */
static void begin(http_stage *s)
{
    idles = 0;
    s->on_idle = count_idle;
    s->listen.health_path = "/health";
    s->listen.ready_path = "/health/ready";
    s->listen.live_path = "/health/live";
    assert_int_equal(segue_store_memory(NULL, &s->store), SEGUE_OK);
    http_stage_begin(s);
}

static void end(http_stage *s)
{
    http_stage_end(s);
    segue_store_free(s->store);
}

/* Makes a call with a key and cuts its client off. */
static void call_and_lose(http_stage *s, const char *body)
{
    http_caller c;
    http_caller_open(s, &c);
    say(&c, http_post(MODERN, body));
    assert_int_equal(fixtures_jobs(s->fixtures), 1);
    http_caller_close(&c);
    http_stage_run(s);
    assert_int_equal(fixtures_jobs(s->fixtures), 1);
}

static void expect_turned_away(http_stage *s, char *request)
{
    http_caller c;
    http_reply reply;
    http_caller_open(s, &c);
    http_caller_ask(&c, request, &reply);
    assert_int_equal(reply.status, 503);
    assert_string_equal(http_reply_header(&reply, "Retry-After"), "1");
    assert_non_null(strstr(reply.body, "\"reason\":\"server_ending\""));
    http_reply_free(&reply);
    http_caller_until_closed(&c);
    http_caller_close(&c);
}

static void the_rest_of_a_call_is_had_and_nothing_new_begins(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    begin(&s);
    call_and_lose(&s, KEYED(3000));
    segue_listener_close(s.listener);
    http_stage_run(&s);
    expect_turned_away(&s, http_call("2", "greet", NULL));
    expect_turned_away(&s, http_request("1", "subscriptions/listen", NULL,
                                        "\"notifications\":{\"toolsListChanged\":true}",
                                        NULL));
    expect_turned_away(&s, http_post("", INITIALIZE));
    http_caller_open(&s, &c);
    http_caller_say(&c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(http_caller_status(&c), 503); /* a load balancer tries another
                                                    * server */
    http_caller_close(&c);
    http_caller_open(&s, &c);
    http_caller_say(&c, "GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(http_caller_status(&c), 503);
    http_caller_close(&c);
    http_caller_open(&s, &c);
    http_caller_say(&c, "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(http_caller_status(&c), 200);
    http_caller_close(&c);
    http_caller_open(&s, &c);
    say(&c, http_post(MODERN, KEYED(3000)));
    http_caller_quiet(&c);
    assert_int_equal(idles, 0);
    http_stage_advance(&s, 3000);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Connection"), "close");
    char *event = reply.body ? NULL : http_caller_event(&c);
    assert_non_null(strstr(event ? event : reply.body, "Computed: done"));
    free(event);
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_advance(&s, 100);
    assert_false(is_listening(&s));
    assert_int_equal(idles, 1);
    end(&s);
}

/* No other server has the result, so the listener gives the client time to come back for
 * it. It does not wait until the end of drain_ms. */
static void a_result_that_nobody_heard_is_kept_for_a_while(void **state)
{
    (void)state;
    for (int fetched = 0; fetched < 2; fetched++) {
        http_stage s = {.listen = {.drain_ms = 8000}};
        http_caller c;
        http_reply reply;
        begin(&s);
        call_and_lose(&s, KEYED(2000));
        segue_listener_close(s.listener);
        http_stage_advance(&s, 3900);
        assert_int_equal(fixtures_jobs(s.fixtures), 0);
        assert_int_equal(idles, 0);
        if (fetched) {
            http_caller_open(&s, &c);
            http_caller_ask(&c, http_post(MODERN, KEYED(2000)), &reply);
            assert_non_null(strstr(reply.body, "Computed: done"));
            http_reply_free(&reply);
            http_caller_close(&c);
            http_stage_advance(&s, 100);
        } else {
            http_stage_advance(&s, 300);
        }
        assert_false(is_listening(&s));
        assert_int_equal(idles, 1);
        end(&s);
    }
}

/* The listener counts its calls between the end of a call and the moment its end is
 * stored. Until then the client cannot get the end elsewhere. */
static void what_has_just_ended_is_waited_for(void **state)
{
    http_stage s = {.listen = {.drain_ms = 8000}};
    http_caller c;
    http_reply reply;
    int32_t ran;
    (void)state;
    begin(&s);
    call_and_lose(&s, KEYED(2000));
    segue_listener_close(s.listener);
    http_stage_advance(&s, 1950);
    s.clock_ms += 50;
    assert_int_equal(segue_runtime_dispatch(s.rt, 0, 0, &ran), SEGUE_OK);
    fixtures_tick(s.fixtures); /* the handler ends the call without a turn of the loop */
    assert_int_equal(fixtures_jobs(s.fixtures), 0);
    http_stage_advance(&s, 1000);
    assert_true(is_listening(&s));
    assert_int_equal(idles, 0);
    http_caller_open(&s, &c);
    http_caller_ask(&c, http_post(MODERN, KEYED(2000)), &reply);
    assert_non_null(strstr(reply.body, "Computed: done"));
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_advance(&s, 100);
    assert_false(is_listening(&s));
    assert_int_equal(idles, 1);
    end(&s);
}

static void stream_task(http_stage *s, http_caller *c, const char *id)
{
    char params[128];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    http_caller_open(s, c);
    say(c, http_request("2", "tasks/stream", id, params, HTTP_CAPS_TASKS));
}

/* A client that has asked for the status of a task that runs does not have its result. */
static void a_task_that_was_polled_is_waited_for(void **state)
{
    http_stage s = {.listen = {.drain_ms = 60000}};
    http_caller c;
    http_reply reply;
    char id[64], params[128];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "slow_compute", "{\"ms\":2000}", id);
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", id);
    for (int ended = 0; ended < 2; ended++) {
        http_caller_open(&s, &c);
        http_caller_ask(&c, http_request("2", "tasks/get", id, params, HTTP_CAPS_TASKS),
                        &reply);
        assert_non_null(strstr(reply.body, ended ? "Computed: done" : "\"working\""));
        http_reply_free(&reply);
        http_caller_close(&c);
        if (!ended)
            segue_listener_close(s.listener);
        http_stage_advance(&s, ended ? 100 : 3000);
        assert_int_equal(is_listening(&s), !ended);
    }
    assert_int_equal(idles, 1);
    end(&s);
}

/* The stream of a task also delivers the result, and then no client fetches the
 * result. */
static void what_a_stream_told_was_heard(void **state)
{
    http_stage s = {.listen = {.drain_ms = 60000}};
    http_caller c;
    http_reply reply;
    char id[64];
    (void)state;
    begin(&s);
    http_stage_start_task(&s, "slow_compute", "{\"ms\":2000}", id);
    segue_listener_close(s.listener);
    http_stage_advance(&s, 3000);
    assert_true(is_listening(&s));
    stream_task(&s, &c, id);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    http_caller_close(&c);
    http_stage_advance(&s, 200);
    assert_false(is_listening(&s));
    assert_int_equal(idles, 1);
    end(&s);
}

static void set_room(const http_caller *c, int bytes)
{
    assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
}

/* The client reads slowly or is cut off. A stream that was open when the task ended has
 * not delivered the end yet. 8 MB are more than the system buffers for a client with a
 * small receive buffer. */
static void what_a_stream_has_not_told_yet_was_not_heard(void **state)
{
    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        http_stage s = {.listen = {.drain_ms = 60000}};
        http_caller c;
        http_reply reply;
        char id[64];
        char *event;
        size_t events = 0;
        begin(&s);
        http_stage_start_task(&s, "story", "{\"n\":2000,\"chunk\":4000,\"delayMs\":1}",
                              id);
        segue_listener_close(s.listener);
        http_stage_run(&s);
        stream_task(&s, &c, id);
        set_room(&c, 32 * 1024);
        for (int i = 0; fixtures_jobs(s.fixtures) && i < 10000; i++) {
            s.clock_ms++;
            http_stage_run(&s);
        }
        assert_int_equal(fixtures_jobs(s.fixtures), 0);
        http_stage_advance(&s, 200);
        assert_true(is_listening(&s));
        set_room(&c, 1024 * 1024);
        if (cut) {
            http_caller_reset(&c);
            http_stage_advance(&s, 200);
            assert_true(is_listening(&s));
            stream_task(&s, &c, id);
        }
        http_caller_read(&c, &reply);
        assert_int_equal(reply.status, 200);
        while ((event = http_caller_event(&c))) {
            events++;
            free(event);
        }
        assert_true(events >= 2000);
        http_caller_close(&c);
        http_stage_advance(&s, 200);
        assert_false(is_listening(&s));
        assert_int_equal(idles, 1);
        end(&s);
    }
}

static void nobody_is_waited_for_without_end(void **state)
{
    http_stage s = {.listen = {.drain_ms = 4000}};
    (void)state;
    begin(&s);
    call_and_lose(&s, KEYED(60000));
    segue_listener_close(s.listener);
    http_stage_advance(&s, 3900);
    assert_true(is_listening(&s));
    assert_int_equal(idles, 0);
    http_stage_advance(&s, 200);
    assert_false(is_listening(&s));
    assert_int_equal(idles, 1);
    end(&s);
}

static void a_server_that_closes_lets_nobody_back(void **state)
{
    http_stage s = {0};
    (void)state;
    begin(&s);
    call_and_lose(&s, KEYED(3000));
    segue_listener_close(s.listener);
    http_stage_run(&s);
    assert_true(is_listening(&s));
    segue_server_close(s.server);
    http_stage_run(&s);
    assert_false(is_listening(&s));
    end(&s);
}

/* A client that comes back may reach another listener on the same address. */
static void a_socket_that_others_share_goes_at_once(void **state)
{
    http_stage s = {.listen = {.reuse_port = 1}};
    (void)state;
    begin(&s);
    call_and_lose(&s, KEYED(3000));
    segue_listener_close(s.listener);
    http_stage_run(&s);
    assert_false(is_listening(&s));
    end(&s);
}

/* The answer to a call of the handshake eras is in no store. The stream of a call that
 * was cut off can be taken up; a new stream for other messages of the server cannot be
 * opened any more. */
static void a_stream_of_the_handshake_eras_is_taken_up(void **state)
{
    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        http_stage s = {.listen = {.stream_after_ms = 100}};
        http_caller c;
        http_reply reply;
        char lines[160], get[400];
        begin(&s);
        http_stage_begin_session(&s, lines);
        http_caller_open(&s, &c);
        say(&c, http_post(lines, SLOW));
        http_stage_advance(&s, 200);
        http_caller_read(&c, &reply);
        assert_string_equal(http_reply_header(&reply, "Content-Type"),
                            "text/event-stream");
        free(http_caller_event(&c)); /* skips the event with the id 2-0 */
        http_caller_close(&c);
        http_stage_run(&s);
        segue_listener_close(s.listener);
        http_stage_advance(&s, ended ? 4000 : 10); /* 1.2 s behind the end */
        snprintf(get, sizeof get, "GET /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                 lines);
        http_caller_open(&s, &c);
        http_caller_say(&c, get);
        assert_int_equal(http_caller_status(&c), 503);
        http_caller_close(&c);
        snprintf(get, sizeof get,
                 "GET /mcp HTTP/1.1\r\nHost: localhost\r\n%sLast-Event-ID: 2-0\r\n\r\n",
                 lines);
        http_caller_open(&s, &c);
        http_caller_say(&c, get);
        http_stage_advance(&s, 3000);
        http_caller_read(&c, &reply);
        assert_int_equal(reply.status, 200);
        char *event = http_caller_event(&c);
        assert_non_null(event);
        assert_non_null(strstr(event, "Computed: done"));
        free(event);
        assert_null(http_caller_event(&c));
        http_caller_close(&c);
        http_stage_advance(&s, 100);
        assert_false(is_listening(&s));
        assert_int_equal(idles, 1);
        end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_of_a_call_is_had_and_nothing_new_begins),
        cmocka_unit_test(a_result_that_nobody_heard_is_kept_for_a_while),
        cmocka_unit_test(what_has_just_ended_is_waited_for),
        cmocka_unit_test(a_task_that_was_polled_is_waited_for),
        cmocka_unit_test(what_a_stream_told_was_heard),
        cmocka_unit_test(what_a_stream_has_not_told_yet_was_not_heard),
        cmocka_unit_test(nobody_is_waited_for_without_end),
        cmocka_unit_test(a_server_that_closes_lets_nobody_back),
        cmocka_unit_test(a_socket_that_others_share_goes_at_once),
        cmocka_unit_test(a_stream_of_the_handshake_eras_is_taken_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
