/* segue_call_hang_up as tools and clients see it. Over HTTP the stream ends, the
 * connection stays open, and the client comes back for the rest. Over other transports
 * nothing happens. test_wire_session.c checks which messages are kept in between. */
#include <segue/segue_ext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define INITIALIZE                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"               \
    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"                            \
    "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}"
#define CALL_AWAY                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"               \
    "\"name\":\"away\"}}"

/* A tool that hangs up first and then does nothing by itself. */
typedef struct tool {
    segue_call *call;
    segue_status said;
} tool;

/* The outcome of a client's request. */
typedef struct outcome {
    int completed;
    segue_status status;
    char result[200];
} outcome;

static void run_away(void *user, segue_call *call)
{
    tool *away = user;
    away->call = call;
    away->said = segue_call_hang_up(call, 700, NULL);
}

static void begin(http_stage *s, tool *away)
{
    static const char json[] =
        "{\"name\":\"away\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    http_stage_begin(s);
    item.user = away;
    item.on_call = run_away;
    assert_int_equal(
        segue_server_add(s->server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &item, NULL),
        SEGUE_OK);
}

static void finish(http_stage *s, tool *away)
{
    assert_int_equal(segue_call_send_text(away->call, "back", 4, NULL), SEGUE_OK);
    assert_int_equal(segue_call_complete(away->call, NULL, NULL), SEGUE_OK);
    assert_int_equal(segue_call_hang_up(away->call, 1, NULL), SEGUE_E_TERMINAL);
    segue_call_free(away->call);
    away->call = NULL;
    http_stage_run(s);
}

static void say_post(http_caller *c, const char *lines, const char *body)
{
    char *request = http_post(lines, body);
    http_caller_say(c, request);
    free(request);
}

static void the_connection_goes_on(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    tool away = {0};
    char lines[160], get[400];
    (void)state;
    begin(&s, &away);
    http_caller_open(&s, &c);
    http_caller_ask(&c, http_post("", INITIALIZE), &reply);
    snprintf(lines, sizeof lines,
             "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    say_post(&c, lines, CALL_AWAY);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Content-Type"), "text/event-stream");
    char *event = http_caller_event(&c);
    assert_string_equal(event, "id: 2-0\ndata: ");
    free(event);
    event = http_caller_event(&c);
    assert_string_equal(event, "retry: 700");
    free(event);
    assert_null(http_caller_event(&c)); /* the last chunk */
    assert_int_equal(away.said, SEGUE_OK);
    assert_false(segue_call_is_cancelled(away.call));
    finish(&s, &away);
    snprintf(get, sizeof get,
             "GET /mcp HTTP/1.1\r\nHost: localhost\r\n%sLast-Event-ID: 2-0\r\n\r\n",
             lines);
    http_caller_say(&c, get); /* the client resumes on the same connection */
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 200);
    event = http_caller_event(&c);
    assert_non_null(strstr(event, "\"id\":7,\"result\""));
    free(event);
    assert_null(http_caller_event(&c));
    http_caller_close(&c);
    http_stage_end(&s);
}

/* ---- clients of the library ---- */

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    outcome *o = user;
    (void)request;
    (void)error;
    o->completed++;
    o->status = status;
    snprintf(o->result, sizeof o->result, "%.*s", json ? (int)len : 0, json ? json : "");
}

static segue_session *call_over(http_stage *s, segue_transport *transport, int32_t era,
                                outcome *o)
{
    static const char params[] = "{\"name\":\"away\"}";
    segue_session *session;
    segue_session_options options = SEGUE_SESSION_OPTIONS_INIT;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    options.era = era;
    events.user = o;
    events.on_complete = on_complete;
    assert_int_equal(segue_session_open(s->rt, transport, &options, NULL, &session, NULL),
                     SEGUE_OK);
    assert_int_equal(segue_request_start(session, "tools/call", params, sizeof params - 1,
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
    return session;
}

/* The network takes real time: turns the loop until the condition holds. */
#define UNTIL(s, condition)                                                              \
    for (int64_t turns_ = 0; !(condition); turns_++) {                                   \
        if (turns_ > 2000000)                                                            \
            fail_msg("in vain: %s", #condition);                                         \
        http_stage_run(s);                                                               \
    }

static void a_client_comes_back(void **state)
{
    http_stage s = {0};
    tool away = {0};
    outcome o = {0};
    segue_transport *transport;
    (void)state;
    begin(&s, &away);
    assert_int_equal(segue_transport_http(s.rt, segue_listener_url(s.listener), NULL,
                                          &transport, NULL),
                     SEGUE_OK);
    segue_session *session = call_over(&s, transport, SEGUE_ERA_LEGACY, &o);
    UNTIL(&s, away.call);
    assert_int_equal(away.said, SEGUE_OK);
    for (int i = 0; i < 20; i++) /* the client comes back and waits */
        http_stage_advance(&s, 50);
    assert_int_equal(o.completed, 0);
    assert_false(segue_call_is_cancelled(away.call));
    finish(&s, &away);
    for (int i = 0; i < 200 && !o.completed; i++)
        http_stage_advance(&s, 50);
    UNTIL(&s, o.completed);
    assert_int_equal(o.status, SEGUE_OK);
    assert_non_null(strstr(o.result, "\"text\":\"back\""));
    segue_session_free(session);
    http_stage_end(&s);
}

static void elsewhere_nothing_happens(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        http_stage s = {0};
        tool away = {0};
        outcome o = {0};
        segue_transport *near_end, *far_end;
        begin(&s, &away);
        if (how == 0) {
            assert_int_equal(segue_transport_http(s.rt, segue_listener_url(s.listener),
                                                  NULL, &near_end, NULL),
                             SEGUE_OK);
        } else {
            assert_int_equal(segue_transport_pair(s.rt, &near_end, &far_end), SEGUE_OK);
            assert_int_equal(segue_server_attach(s.server, far_end, NULL), SEGUE_OK);
        }
        segue_session *session =
            call_over(&s, near_end, how == 2 ? SEGUE_ERA_LEGACY : SEGUE_ERA_MODERN, &o);
        UNTIL(&s, away.call);
        assert_int_equal(away.said, SEGUE_E_UNSUPPORTED);
        assert_int_equal(segue_call_hang_up(away.call, -1, NULL), SEGUE_E_INVALID);
        finish(&s, &away);
        UNTIL(&s, o.completed);
        assert_int_equal(o.status, SEGUE_OK);
        assert_non_null(strstr(o.result, "\"text\":\"back\""));
        segue_session_free(session);
        http_stage_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_connection_goes_on),
        cmocka_unit_test(a_client_comes_back),
        cmocka_unit_test(elsewhere_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
