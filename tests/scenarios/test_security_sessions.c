/* Handles of Streamable HTTP in the handshake eras: the id of a session and the ids of
 * its events. They are valid only for the principal who opened the session (2025-11-25
 * basic/security_best_practices, "Session Hijacking"). A foreign handle is answered like
 * an unknown one, byte for byte (R-0-5). Forged event ids give nothing extra. Streams of
 * GET count against the limit of their principal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/http_stage.h"

#define INVENTED "AAAAAAAAAAAAAAAAAAAAAA"

static segue_status name_caller(void *user, segue_transport *transport,
                                const char **principal)
{
    (void)user;
    *principal = segue_transport_header(transport, "X-User");
    return SEGUE_OK;
}

static void begin_stage(http_stage *s)
{
    s->principal = name_caller;
    http_stage_begin(s);
}

/* Opens a session of 2025-03-26, which takes batches as well. */
static void begin_session(http_stage *s, const char *user, char id[64])
{
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{},"
        "\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}";
    char lines[64];
    http_caller c;
    http_reply reply;
    snprintf(lines, sizeof lines, "X-User: %s\r\n", user);
    http_caller_open(s, &c);
    http_caller_ask(&c, http_post(lines, body), &reply);
    assert_int_equal(reply.status, 200);
    snprintf(id, 64, "%s", http_reply_header(&reply, "Mcp-Session-Id"));
    assert_int_equal(strlen(id), strlen(INVENTED));
    http_reply_free(&reply);
    http_caller_close(&c);
}

/* method: "GET", "DELETE", or the body of a POST; event: for Last-Event-ID, NULL = not
 * sent. */
static char *request_of(const char *user, const char *id, const char *method,
                        const char *event)
{
    char lines[32 * 1024], *request = NULL;
    int used =
        snprintf(lines, sizeof lines, "X-User: %s\r\nMcp-Session-Id: %s\r\n", user, id);
    if (event)
        snprintf(lines + used, sizeof lines - (size_t)used, "Last-Event-ID: %s\r\n",
                 event);
    if (*method == '{' || *method == '[')
        return http_post(lines, method);
    if (asprintf(&request, "%s /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method,
                 lines) < 0)
        abort();
    return request;
}

static int say(http_caller *c, const char *user, const char *id, const char *method,
               const char *event)
{
    http_reply reply;
    char *request = request_of(user, id, method, event);
    http_caller_say(c, request);
    free(request);
    http_caller_read(c, &reply);
    int status = reply.status;
    http_reply_free(&reply);
    return status;
}

/* ---- ids of sessions ---- */

/* Copies the whole answer without its date. */
static void whole(http_stage *s, char *text, size_t size, const char *user,
                  const char *id, const char *method, const char *event)
{
    http_caller c;
    http_reply reply;
    http_caller_open(s, &c);
    char *request = request_of(user, id, method, event);
    http_caller_say(&c, request);
    free(request);
    http_caller_read(&c, &reply);
    char *date = strstr(reply.head, "Date: ");
    assert_non_null(date);
    char *end = strstr(date, "\r\n") + 2;
    memmove(date, end, strlen(end) + 1);
    snprintf(text, size, "%s%s", reply.head, reply.body ? reply.body : "(events)");
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_run(s);
}

static void a_foreign_session_is_like_none(void **state)
{
    static const struct {
        const char *method, *event;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
         "\"name\":\"greet\"}}",
         NULL},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
         "\"requestId\":7}}",
         NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", NULL},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", NULL},
        {"GET", NULL},
        {"GET", "1-0"},
        {"GET", "2-1"},
        {"DELETE", NULL},
    };
    static const char *const others[] = {"Bob", ""};
    http_stage s = {0};
    http_caller c;
    char id[64], foreign[3000], none[3000];
    (void)state;
    begin_stage(&s);
    begin_session(&s, "Ada", id);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t o = 0; o < 2; o++) {
            whole(&s, none, sizeof none, others[o], INVENTED, rows[i].method,
                  rows[i].event);
            assert_memory_equal(none, "HTTP/1.1 404 ", 13);
            whole(&s, foreign, sizeof foreign, others[o], id, rows[i].method,
                  rows[i].event);
            assert_string_equal(foreign, none);
        }
    }
    assert_int_equal(fixtures_runs(s.fixtures, "greet"), 0);
    http_caller_open(&s, &c); /* the session lives */
    assert_int_equal(say(&c, "Ada", id, rows[1].method, NULL), 200);
    http_caller_close(&c);
    http_stage_end(&s);
}

/* An ended session is answered like a guessed id. */
static void a_session_that_has_ended_is_like_none(void **state)
{
    http_stage s = {0};
    http_caller c;
    char id[64], ended[3000], none[3000];
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    (void)state;
    begin_stage(&s);
    begin_session(&s, "Ada", id);
    http_caller_open(&s, &c);
    assert_int_equal(say(&c, "Ada", id, "DELETE", NULL), 204);
    http_caller_close(&c);
    whole(&s, none, sizeof none, "Ada", INVENTED, ping, NULL);
    whole(&s, ended, sizeof ended, "Ada", id, ping, NULL);
    assert_string_equal(ended, none);
    http_stage_end(&s);
}

/* ---- ids of events ---- */

/* Both sessions count alike: an event id of Ada's session names a position in Bob's own
 * streams. */
static void a_foreign_event_brings_nothing_of_its_stream(void **state)
{
    http_stage s = {0};
    http_caller a, b;
    char ada[64], bob[64];
    (void)state;
    begin_stage(&s);
    begin_session(&s, "Ada", ada);
    begin_session(&s, "Bob", bob);
    http_caller_open(&s, &a);
    assert_int_equal(say(&a, "Ada", ada,
                         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
                         NULL),
                     202);
    assert_int_equal(say(&a, "Ada", ada, "GET", NULL), 200);
    assert_int_equal(segue_server_remove(s.server, SEGUE_ITEM_TOOL, "greet"), SEGUE_OK);
    char *event = http_caller_event(&a);
    assert_non_null(strstr(event, "id: 2-1\n"));
    free(event);
    http_caller_open(&s, &b);
    assert_int_equal(say(&b, "Bob", bob, "GET", "2-0"), 200);
    http_stage_run(&s);
    http_caller_look(&b);
    assert_null(strstr(b.in, "list_changed"));
    http_caller_close(&a);
    http_caller_close(&b);
    http_stage_end(&s);
}

/* A forged event id gives only an empty stream of the session. */
static void a_forged_event_is_as_good_as_none(void **state)
{
    static const char *const forged[] = {
        "0-0",
        "1",
        "1-",
        "-1",
        "1-1-1",
        "+1-0",
        "1-0x0",
        "01-00",
        "999999999999999-0",
        "2-999999999999999",
        "18446744073709551616-18446744073709551616",
        "9223372036854775807-18446744073709551615",
        "../1-0",
        "1-0\tx",
        "\xff\xfe",
        "=?base64?MS0w?=",
        "*",
    };
    (void)state;
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        http_stage s = {0};
        http_caller c;
        char id[64];
        begin_stage(&s);
        begin_session(&s, "Ada", id);
        http_caller_open(&s, &c);
        int status = say(&c, "Ada", id, "GET", forged[i]);
        if (status != 200 && status != 410)
            fail_msg("%s: %d", forged[i], status);
        if (status == 200) {
            http_stage_run(&s);
            http_caller_look(&c);
            assert_true(!c.len || !strstr(c.in, "data: {"));
        }
        http_caller_close(&c);
        http_stage_end(&s);
    }
}

static void an_event_of_many_bytes_is_none(void **state)
{
    http_stage s = {0};
    http_caller c;
    char id[64], event[8001];
    (void)state;
    begin_stage(&s);
    begin_session(&s, "Ada", id);
    memset(event, '1', sizeof event - 1);
    event[sizeof event - 1] = 0;
    event[4000] = '-';
    http_caller_open(&s, &c);
    assert_int_equal(say(&c, "Ada", id, "GET", event), 200);
    http_caller_close(&c);
    http_stage_end(&s);
}

/* ---- streams of GET are counted ---- */

static void streams_of_get_are_bounded_per_principal(void **state)
{
    enum { MOST = 3 };
    http_stage s = {.listen = {.max_streams = MOST}};
    http_caller c[MOST], late, other;
    char ids[MOST + 1][64], bob[64];
    (void)state;
    begin_stage(&s);
    for (int i = 0; i <= MOST; i++)
        begin_session(&s, "Ada", ids[i]);
    begin_session(&s, "Bob", bob);
    for (int i = 0; i < MOST; i++) {
        http_caller_open(&s, &c[i]);
        assert_int_equal(say(&c[i], "Ada", ids[i], "GET", NULL), 200);
    }
    http_caller_open(&s, &late);
    assert_int_equal(say(&late, "Ada", ids[MOST], "GET", NULL), 429);
    char *listen = http_request("1", "subscriptions/listen", NULL, "\"notifications\":{}",
                                NULL); /* a stream of another principal: the anonymous
                                        * one */
    http_caller_say(&late, listen);
    free(listen);
    assert_int_equal(http_caller_status(&late), 200);
    http_caller_close(&late);
    http_caller_open(&s, &other);
    assert_int_equal(say(&other, "Bob", bob, "GET", NULL), 200);
    http_caller_close(&other);
    /* a stream that ends makes room, however it ends */
    for (int way = 0; way < 2; way++) {
        http_caller_open(&s, &other);
        if (way)
            assert_int_equal(say(&other, "Ada", ids[0], "DELETE", NULL), 204);
        http_caller_close(&c[way ? 0 : 1]);
        http_stage_run(&s);
        http_caller_open(&s, &late);
        assert_int_equal(say(&late, "Ada", ids[way ? 1 : MOST], "GET", NULL), 200);
        if (way)
            http_caller_close(&late);
        else
            c[1] = late;
        http_caller_close(&other);
    }
    http_caller_close(&c[1]);
    http_caller_close(&c[2]);
    http_stage_end(&s);
}

/* Taking a stream over from a connection that hangs opens no second stream. */
static void taking_a_stream_over_is_no_second_one(void **state)
{
    http_stage s = {.listen = {.max_streams = 1}};
    http_caller first, second, third;
    char id[64], other[64];
    (void)state;
    begin_stage(&s);
    begin_session(&s, "Ada", id);
    begin_session(&s, "Ada", other);
    http_caller_open(&s, &first);
    assert_int_equal(say(&first, "Ada", id, "GET", NULL), 200);
    for (int i = 0; i < 3; i++) {
        http_caller_open(&s, &second);
        assert_int_equal(say(&second, "Ada", id, "GET", "2-0"), 200);
        http_caller_close(&first);
        http_stage_run(&s);
        first = second;
    }
    http_caller_open(&s, &third);
    assert_int_equal(say(&third, "Ada", other, "GET", NULL), 429);
    http_caller_close(&first);
    http_stage_run(&s);
    assert_int_equal(say(&third, "Ada", other, "GET", NULL), 200);
    http_caller_close(&third);
    http_stage_end(&s);
}

/* ---- sessions are counted ---- */

/* One principal opens as many sessions as it can. Unused sessions of others stay, even
 * when they were unused for longer and are more than the search examines. */
static void sessions_of_others_are_not_pushed_out(void **state)
{
    enum { OTHERS = 300, MOST = 320 };
    http_stage s = {.listen = {.max_sessions = MOST}};
    http_caller c;
    static char ids[OTHERS][64];
    char scrap[64];
    (void)state;
    begin_stage(&s);
    for (int i = 0; i < OTHERS; i++)
        begin_session(&s, "Ada", ids[i]);
    for (int i = 0; i < 2 * (MOST - OTHERS); i++)
        begin_session(&s, "Bob", scrap);
    http_caller_open(&s, &c);
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(say(&c, "Ada", ids[i],
                             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", NULL),
                         200);
    http_caller_close(&c);
    http_stage_end(&s);
}

/* They also stay when a principal has half of all sessions in use. */
static void half_of_the_sessions_in_use_are_enough(void **state)
{
    enum { MOST = 4 };
    http_stage s = {.listen = {.max_sessions = MOST}};
    http_caller streams[MOST / 2], c;
    http_reply reply;
    char ada[64], bob[MOST / 2][64];
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-11-25\"}}";
    (void)state;
    begin_stage(&s);
    begin_session(&s, "Ada", ada);
    begin_session(&s, "Ada", ada);
    for (int i = 0; i < MOST / 2; i++) {
        begin_session(&s, "Bob", bob[i]);
        http_caller_open(&s, &streams[i]);
        assert_int_equal(say(&streams[i], "Bob", bob[i], "GET", NULL), 200);
    }
    http_caller_open(&s, &c);
    http_caller_ask(&c, http_post("X-User: Bob\r\n", hello), &reply);
    assert_int_equal(reply.status, 503);
    assert_string_equal(http_reply_header(&reply, "Retry-After"), "1");
    http_reply_free(&reply);
    assert_int_equal(
        say(&c, "Ada", ada, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", NULL),
        200);
    http_caller_ask(&c, http_post("X-User: Cem\r\n", hello), &reply);
    /* Bob has none, and Ada's other session is unused */
    assert_int_equal(reply.status, 200);
    http_reply_free(&reply);
    http_caller_close(&c);
    for (int i = 0; i < MOST / 2; i++)
        http_caller_close(&streams[i]);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_foreign_session_is_like_none),
        cmocka_unit_test(a_session_that_has_ended_is_like_none),
        cmocka_unit_test(a_foreign_event_brings_nothing_of_its_stream),
        cmocka_unit_test(a_forged_event_is_as_good_as_none),
        cmocka_unit_test(an_event_of_many_bytes_is_none),
        cmocka_unit_test(streams_of_get_are_bounded_per_principal),
        cmocka_unit_test(taking_a_stream_over_is_no_second_one),
        cmocka_unit_test(sessions_of_others_are_not_pushed_out),
        cmocka_unit_test(half_of_the_sessions_in_use_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
