/* An answer larger than the limit fails its call as soon as the client knows the size.
 * The client does not wait for the rest, because the server controls its timing. */
#include "support/http_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define LIMIT 20000

static heard *begin_call(http_script *s, record **r)
{
    script_prepare(s);
    s->most = LIMIT;
    script_connect(s, NULL);
    script_discover(s, SERVER_PLAIN);
    *r = kit_call(&s->k, "t");
    return script_expect(s, "tools/call");
}

/* Pushes `count` bytes without any end, until the call has ended. */
static void push_bytes(heard *h, size_t count, const record *r)
{
    char bytes[1000];
    memset(bytes, 'a', sizeof bytes);
    for (size_t sent = 0; sent < count && !r->completed;) {
        sent += script_push(h, bytes, sizeof bytes);
        script_pump(h->script);
    }
}

static void expect_failure(http_script *s, record *r, heard *h)
{
    script_until(s, r->completed);
    assert_int_equal(r->status, SEGUE_E_TOO_LARGE);
    assert_string_equal(r->message,
                        "the answer is too large: max_message_bytes is 20000; let the "
                        "server send it in pieces or as a task, or raise the limit");
    assert_true(heard_is_closed(h));     /* nothing more is read */
    record *next = kit_call(&s->k, "t"); /* the session goes on */
    script_result(script_expect(s, "tools/call"), "\"content\":[]");
    script_until(s, next->completed);
    assert_int_equal(next->status, SEGUE_OK);
    script_end(s);
}

/* An event that is too large in a stream that does not end. */
static void an_event_is_not_waited_for(void **state)
{
    http_script s;
    record *r;
    (void)state;
    heard *h = begin_call(&s, &r);
    script_stream(h);
    script_text(h, "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"x\":\"");
    char bytes[1001];
    memset(bytes, 'a', 1000);
    bytes[1000] = 0;
    for (int i = 0; i < LIMIT / 1000 + 1 && !r->completed; i++) {
        script_text(h, bytes);
        script_pump(&s);
    }
    expect_failure(&s, r, h);
}

/* Many short lines of one event count together. */
static void lines_of_one_event_count_together(void **state)
{
    http_script s;
    record *r;
    (void)state;
    heard *h = begin_call(&s, &r);
    script_stream(h);
    for (int i = 0; i < LIMIT / 100 + 10 && !r->completed; i++) {
        char line[128];
        snprintf(line, sizeof line, "data: %0100d\n", i);
        script_text(h, line);
        script_pump(&s);
    }
    expect_failure(&s, r, h);
}

static void a_body_is_not_waited_for(void **state)
{
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Content-Length: 400000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n17d78400\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        http_script s;
        record *r;
        heard *h = begin_call(&s, &r);
        script_push(h, heads[i], strlen(heads[i]));
        push_bytes(h, LIMIT + 1000, r);
        expect_failure(&s, r, h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_not_waited_for),
        cmocka_unit_test(lines_of_one_event_count_together),
        cmocka_unit_test(a_body_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
