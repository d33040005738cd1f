/* Events from bytes, however these are cut (AS-117, by the rules of the WHATWG's "event
 * stream interpretation"), and bytes from events. Every stream is read whole, byte by
 * byte, cut in two at every offset and cut at random. Each piece is freed before the next
 * one is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/sse.h"

#define LIMIT 64

static test_mem tm;
static sgi_sse sse;
static char seen[8192]; /* one line for each event and each error */
static size_t seen_len;
static uint32_t chance;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_sse_init(&sse, &tm.mem, LIMIT);
    seen_len = 0;
    seen[0] = 0;
    chance = 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_sse_free(&sse);
    assert_int_equal(tm.live, 0);
    return 0;
}

/* Writes LF as / and NUL as 0. */
static void note(sgi_str text)
{
    assert_true(seen_len + text.n + 1 < sizeof seen);
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        seen[seen_len++] = c == '\n' ? '/' : c ? c : '0';
    }
    seen[seen_len] = 0;
}

/* Writes type[data] id=<id> retry=<ms>, each part only when the event has it. */
static void note_event(const sgi_sse_event *event)
{
    char retry[40];
    note(event->type);
    if (event->has_data) {
        note(SGI_STR("["));
        note(event->data);
        note(SGI_STR("]"));
    } else {
        assert_int_equal(event->data.n, 0);
    }
    if (event->has_id) {
        note(SGI_STR(" id="));
        note(event->last_id);
    }
    if (event->has_retry) {
        snprintf(retry, sizeof retry, " retry=%lld", (long long)event->retry_ms);
        note(sgi_str_of(retry));
    }
    note(SGI_STR(";"));
}

static void feed(const char *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    sgi_str input = {copy, len};
    sgi_sse_event event;
    sgi_sse_step step;
    while ((step = sgi_sse_next(&sse, &input, &event)) != SGI_SSE_MORE) {
        if (step == SGI_SSE_EVENT) {
            assert_true(sgi_str_eq(event.last_id, sgi_sse_last_id(&sse)));
            note_event(&event);
        } else {
            note(step == SGI_SSE_TOO_LONG ? SGI_STR("(too long);")
                                          : SGI_STR("(failed);"));
        }
    }
    assert_int_equal(input.n, 0);
    free(copy);
}

static void begin(size_t limit)
{
    sgi_sse_free(&sse);
    sgi_sse_init(&sse, &tm.mem, limit);
    seen_len = 0;
    seen[0] = 0;
}

static size_t below(size_t n)
{
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 8) % n;
}

/* Reads the text in all ways of cutting it. mid = the text ends within an event. */
static void every_way_at(size_t limit, sgi_str text, const char *expected, bool mid)
{
    for (size_t cut = 0; cut <= text.n; cut++) {
        begin(limit);
        feed(text.p, cut);
        feed(text.p + cut, text.n - cut);
        assert_string_equal(seen, expected);
        assert_int_equal(sgi_sse_is_mid_event(&sse), mid);
    }
    for (int run = 0; run < 100; run++) {
        begin(limit);
        for (size_t at = 0, len; at < text.n; at += len) {
            len = run ? 1 + below(9) : 1;
            if (len > text.n - at)
                len = text.n - at;
            feed(text.p + at, len);
        }
        assert_string_equal(seen, expected);
        assert_int_equal(sgi_sse_is_mid_event(&sse), mid);
    }
}

#define every_way(text, expected) every_way_at(LIMIT, SGI_STR(text), expected, false)

static void lines_end_in_cr_or_lf_or_both(void **state)
{
    (void)state;
    every_way("data: a\n\ndata: b\n\n", "message[a];message[b];");
    every_way("data: a\r\n\r\ndata: b\r\n\r\n", "message[a];message[b];");
    every_way("data: a\r\rdata: b\r\r", "message[a];message[b];");
    every_way("data: a\r\ndata: b\r\nid: 1\r\n\r\n", "message[a/b] id=1;");
    every_way("data: a\r\n\rdata: b\n\r\ndata: c\r\n\ndata: d\n\r",
              "message[a];message[b];message[c];message[d];");
    every_way("\n\r\r\n\n\rdata:a\n\n\n\r\n\r", "message[a];");
    every_way("data:a\rdata:b\ndata:c\r\n\n", "message[a/b/c];");
}

static void long_lines_end_where_they_end(void **state)
{
    (void)state;
    static const char *const ends[] = {"\n\n", "\r\r", "\r\n\r\n"};
    char text[1200];
    for (size_t len = 6; len < 1100; len++) {
        begin(sizeof text);
        memset(text, 'x', sizeof text);
        memcpy(text, "data: ", 6);
        strcpy(text + len, ends[len % 3]);
        feed(text, strlen(text));
        assert_int_equal(seen_len, len - 6 + strlen("message[];"));
    }
}

static void an_event_is_given_with_its_cr(void **state)
{
    (void)state;
    feed("data: a\r\n\r", 10);
    assert_string_equal(seen, "message[a];");
    feed("\ndata: b\r\r", 10);
    assert_string_equal(seen, "message[a];message[b];");
}

static void comments_and_unknown_fields_are_ignored(void **state)
{
    (void)state;
    every_way(": hello\n\ndata: a\n:\n: b\ndata: c\n:data: d\n\n:", "message[a/c];");
    every_way("DATA: x\nData: x\n data: x\ndata : x\nfoo\nfoo: x\ndata: a\n\n",
              "message[a];");
    every_way("Data: x\n\nfoo: x\n\n", "");
}

static void data_is_joined_by_lf_and_loses_one_blank(void **state)
{
    (void)state;
    every_way("data: a\ndata: b\ndata:c\n\n", "message[a/b/c];");
    every_way("data:  a \n\n", "message[ a ];");
    every_way("data: a:b: c\n\n", "message[a:b: c];");
    every_way("data\n\n", "message[];");
    every_way("data\ndata\n\n", "message[/];");
    every_way("data: \ndata: x\ndata:\n\n", "message[/x/];");
    every_way_at(LIMIT, (sgi_str){"data: a\0b\n\n", 11}, "message[a0b];", false);
}

static void a_type_is_of_its_event_only(void **state)
{
    (void)state;
    every_way("event: ping\ndata: a\n\ndata: b\n\n", "ping[a];message[b];");
    every_way("event: x\nevent: yy\ndata: a\n\n", "yy[a];");
    every_way("event: x\nevent\ndata: a\n\n", "message[a];");
    every_way("event: lost\n\ndata: a\n\n", "message[a];");
}

static void a_byte_order_mark_is_skipped_once(void **state)
{
    (void)state;
    every_way("\xef\xbb\xbf"
              "data: a\n\n",
              "message[a];");
    every_way("\xef\xbb\xbf\xef\xbb\xbf"
              "data: a\n\ndata: b\n\n",
              "message[b];");
    every_way("data: a\n\n\xef\xbb\xbf"
              "data: b\n\n",
              "message[a];");
    every_way("\xef\xbb"
              "data: a\ndata: b\n\n",
              "message[b];");
    every_way("\xef\ndata: b\n\n", "message[b];");
}

static void ids_stay_until_the_next(void **state)
{
    (void)state;
    every_way("id: 1\ndata: a\n\ndata: b\n\nid: 2\ndata: c\n\n",
              "message[a] id=1;message[b];message[c] id=2;");
    assert_true(sgi_str_eq(sgi_sse_last_id(&sse), SGI_STR("2")));
    every_way("id: 1\nid: 22\ndata: a\n\n", "message[a] id=22;");
    every_way("id: 1\ndata: a\n\nid\ndata: b\n\n", "message[a] id=1;message[b] id=;");
    assert_int_equal(sgi_sse_last_id(&sse).n, 0);
    every_way("id: 1\ndata: a\n\nid:\n\n", "message[a] id=1;message id=;");
}

static void an_id_with_nul_is_ignored(void **state)
{
    (void)state;
    static const char text[] = "id: 1\ndata: a\n\nid: 2\0003\ndata: b\n\nid: \0\n\n";
    every_way_at(LIMIT, (sgi_str){text, sizeof text - 1}, "message[a] id=1;message[b];",
                 false);
    assert_true(sgi_str_eq(sgi_sse_last_id(&sse), SGI_STR("1")));
}

/* 2025-11-25 basic/transports: the client learns an id before there is any message. */
static void a_priming_event_is_seen(void **state)
{
    (void)state;
    every_way("id: p-1\ndata:\n\n", "message[] id=p-1;");
    every_way("id: p-1\nretry: 500\ndata: \n\n", "message[] id=p-1 retry=500;");
    every_way("id: p-1\n\n", "message id=p-1;");
    assert_true(sgi_str_eq(sgi_sse_last_id(&sse), SGI_STR("p-1")));
}

static void retry_is_digits_up_to_a_day(void **state)
{
    (void)state;
    every_way("retry: 3000\n\n", "message retry=3000;");
    every_way("retry: 0\ndata: a\n\ndata: b\n\n", "message[a] retry=0;message[b];");
    every_way("retry: 007\n\n", "message retry=7;");
    every_way("retry: 86400000\n\nretry: 86400001\n\n",
              "message retry=86400000;message retry=86400000;");
    every_way("retry: 99999999999999999999999999999999999999\n\n",
              "message retry=86400000;");
    every_way("retry\n\nretry:\n\nretry: -1\n\nretry: 1.5\n\nretry: 1 \n\n", "");
    every_way("retry:  1\n\nretry: 1e3\n\nretry: 99999999999999999999x\n\n", "");
    every_way("retry: 5\nretry: x\n\n", "message retry=5;");
}

static void an_unfinished_event_is_dropped(void **state)
{
    (void)state;
    every_way_at(LIMIT, SGI_STR("data: a\n\nid: 7\ndata: b\n"), "message[a];", true);
    assert_int_equal(sgi_sse_last_id(&sse).n, 0);
    every_way_at(LIMIT, SGI_STR("data: a\n\ndat"), "message[a];", true);
    every_way_at(LIMIT, SGI_STR("id: 1"), "", true);
    every_way_at(LIMIT, SGI_STR("event: x\n"), "", true);
    every_way_at(LIMIT, SGI_STR("retry: 1\n"), "", true);
    every_way_at(LIMIT, SGI_STR("data: a\n\n: comment"), "message[a];", false);
}

static void a_new_stream_forgets_all_but_the_id(void **state)
{
    (void)state;
    feed("id: 1\ndata: a\n\nid: 2\ndata: b\n", 30);
    sgi_sse_reset(&sse);
    assert_false(sgi_sse_is_mid_event(&sse));
    assert_true(sgi_str_eq(sgi_sse_last_id(&sse), SGI_STR("1")));
    feed("\xef\xbb\xbf"
         "data: c\n\n",
         12);
    assert_string_equal(seen, "message[a] id=1;message[c];");
    feed(": torn comment", 14);
    sgi_sse_reset(&sse);
    feed("data: d\n\r", 9);
    sgi_sse_reset(&sse);
    feed("\ndata: e\n\n", 10);
    assert_string_equal(seen, "message[a] id=1;message[c];message[d];message[e];");
}

/* ---- limits ---- */

static void an_event_of_just_the_limit_passes(void **state)
{
    (void)state;
    every_way_at(10, SGI_STR("data:12345\n\ndata:12345\n\n"),
                 "message[12345];message[12345];", false);
    every_way_at(14, SGI_STR("data: a\nid: 123\n: comments are not counted\n\n"),
                 "message[a] id=123;", false);
    every_way_at(14, SGI_STR("data: a\nid: 1234\n\n"), "(too long);", false);
    every_way_at(15, SGI_STR("data:123\ndata:45\n\n"), "message[123/45];", false);
    every_way_at(14, SGI_STR("data:123\ndata:45\n\n"), "(too long);", false);
}

static void one_byte_more_is_said_once_and_the_next_event_is_read(void **state)
{
    (void)state;
    every_way_at(10, SGI_STR("data:123456\n\ndata:ok\n\n"), "(too long);message[ok];",
                 false);
    every_way_at(10, SGI_STR("data:1\nunknown: x\ndata:2\r\n\r\ndata:ok\r\r"),
                 "(too long);message[ok];", false);
    every_way_at(10, SGI_STR("data:1234567890123\ndata:x\n:c\nid:9\n\ndata:ok\n\n"),
                 "(too long);message[ok];", false);
    every_way_at(10, SGI_STR("data:1234567\n\ndata:1234567\n\n"),
                 "(too long);(too long);", false);
    every_way_at(10, SGI_STR("data:1234567\ndata:ok"), "(too long);", true);
    every_way_at(2, SGI_STR("\xef\xbb data:1\n\n:\n\n"), "(too long);", false);
}

/* A client that resumes must ask again for an event that it has not seen. */
static void an_id_of_a_lost_event_is_not_taken(void **state)
{
    (void)state;
    every_way_at(12, SGI_STR("id:1\ndata:a\n\nid:2\ndata:1234\n\n"),
                 "message[a] id=1;(too long);", false);
    assert_true(sgi_str_eq(sgi_sse_last_id(&sse), SGI_STR("1")));
}

static void an_id_that_fits_no_header_is_ignored(void **state)
{
    (void)state;
    char text[SGI_SSE_MAX_ID + 32];
    for (size_t n = SGI_SSE_MAX_ID; n <= SGI_SSE_MAX_ID + 1; n++) {
        begin(2 * SGI_SSE_MAX_ID);
        memset(text, 'x', sizeof text);
        memcpy(text, "id: ", 4);
        memcpy(text + 4 + n, "\n\n", 2);
        feed(text, 4 + n + 2);
        assert_int_equal(sgi_sse_last_id(&sse).n, n == SGI_SSE_MAX_ID ? n : 0);
        assert_int_equal(seen_len != 0, n == SGI_SSE_MAX_ID);
    }
}

static void an_endless_comment_takes_no_memory(void **state)
{
    (void)state;
    char chunk[1000];
    memset(chunk, ':', sizeof chunk);
    for (int i = 0; i < 1000; i++)
        feed(chunk, sizeof chunk);
    assert_int_equal(tm.calls, 0);
    for (int i = 0; i < 1000; i++)
        feed(":\r\n", 3);
    assert_int_equal(tm.calls, 0);
    feed("data: a\n\n", 9);
    assert_string_equal(seen, "message[a];");
}

static void an_endless_event_takes_no_more_memory_than_the_limit(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "data: xxxxxxxxxxxxxxxxxxxxxxxxx\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "event: xxxxxxxxxxxxxxxxxxxxxxxx\n", "id: xxxxxxxxxxxxxxxxxxxxxxxxxxx\n"};
    size_t limit = 100 * 1000;
    for (size_t k = 0; k < 4; k++) {
        begin(limit);
        tm.peak = 0;
        for (int i = 0; i < 100 * 1000; i++)
            feed(pieces[k], 32);
        assert_string_equal(seen, "(too long);");
        assert_true(tm.peak <= 4 * limit);
        assert_true(tm.live <= 64 * 1024);
    }
}

static void a_large_event_does_not_keep_its_room(void **state)
{
    (void)state;
    size_t len = 1000 * 1000;
    char *text = malloc(len);
    memset(text, 'x', len);
    memcpy(text, "data: ", 6);
    begin(len);
    sgi_str input = {text, len};
    sgi_sse_event event;
    assert_int_equal(sgi_sse_next(&sse, &input, &event), SGI_SSE_MORE);
    input = SGI_STR("\n\ndata: x\n\n");
    assert_int_equal(sgi_sse_next(&sse, &input, &event), SGI_SSE_EVENT);
    assert_int_equal(event.data.n, len - 6);
    assert_int_equal(sgi_sse_next(&sse, &input, &event), SGI_SSE_EVENT);
    assert_int_equal(event.data.n, 1);
    assert_int_equal(tm.live, 0);
    free(text);
}

/* ---- memory ---- */

static void whole_events_are_handed_on_without_a_copy(void **state)
{
    (void)state;
    sgi_sse_event event;
    sgi_str input = SGI_STR("data: {}\n\ndata:[]\r\n\r\n");
    const char *start = input.p;
    assert_int_equal(sgi_sse_next(&sse, &input, &event), SGI_SSE_EVENT);
    assert_ptr_equal(event.data.p, start + 6);
    assert_int_equal(event.data.n, 2);
    assert_int_equal(sgi_sse_next(&sse, &input, &event), SGI_SSE_EVENT);
    assert_ptr_equal(event.data.p, start + 15);
    assert_int_equal(tm.calls, 0);
    /* The reader copies the id, but the event's data points into the input. */
    input = SGI_STR("id: 4\ndata: {}\n\n");
    start = input.p;
    assert_int_equal(sgi_sse_next(&sse, &input, &event), SGI_SSE_EVENT);
    assert_ptr_equal(event.data.p, start + 12);
}

static void steady_streams_do_not_allocate(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        feed("event: e\nid: 1\ndata: a", 22);
        feed("bc\ndata: d\n", 11);
        feed("\n", 1);
        seen_len = 0;
        if (i == 2)
            test_mem_rearm(&tm);
    }
    assert_int_equal(tm.calls, 0);
}

/* Each allocation is refused, alone and with all later ones. Lost events are reported, no
 * event is invented, and the stream goes on. */
static void without_memory_events_are_lost_and_said_so(void **state)
{
    (void)state;
    static const char text[] = "event: e\nid: 1\ndata: a\ndata: b\ndata: d\n\n"
                               "id: 2\n\ndata: c\n\n";
    for (int from = 0; from < 2; from++) {
        for (size_t k = 1; k < 8; k++) {
            for (size_t cut = 0; cut < sizeof text; cut++) {
                begin(LIMIT);
                test_mem_rearm(&tm);
                tm.fail_at = from ? 0 : k;
                tm.fail_from = from ? k : 0;
                feed(text, cut);
                feed(text + cut, sizeof text - 1 - cut);
                bool said = strstr(seen, "(failed);") != NULL;
                bool first = strstr(seen, "e[a/b/d] id=1;") != NULL;
                bool second = strstr(seen, "message id=2;") != NULL;
                bool third = strstr(seen, "message[c];") != NULL;
                assert_int_equal(said, tm.failed != 0);
                assert_int_equal(said, !(first && second && third));
                int len = (first ? 14 : 9) + (second ? 13 : 9) + (third ? 11 : 9);
                assert_int_equal(seen_len, len);
                test_mem_rearm(&tm);
                feed("id: 3\ndata: back\n\n", 18);
                assert_non_null(strstr(seen, "message[back] id=3;"));
            }
        }
    }
}

/* ---- writing ---- */

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_sse_write_priming(&out, SGI_STR("0"), 250);
    sgi_sse_write_keep_alive(&out);
    sgi_sse_write_event(&out, SGI_STR("s.1"), -1, SGI_STR("{\"a\":1}"));
    sgi_sse_write_event(&out, (sgi_str){0}, 0, SGI_STR("[]"));
    sgi_sse_write_event(&out, (sgi_str){0}, -1, SGI_STR("{}"));
    sgi_buf_terminate(&out);
    assert_string_equal(out.p, "id: 0\nretry: 250\ndata: \n\n:\n\n"
                               "id: s.1\ndata: {\"a\":1}\n\nretry: 0\ndata: []\n\n"
                               "data: {}\n\n");
    every_way_at(LIMIT, sgi_buf_str(&out),
                 "message[] id=0 retry=250;message[{\"a\":1}] id=s.1;"
                 "message[[]] retry=0;message[{}];",
                 false);
    sgi_buf_free(&out);
}

/* JSON that an application laid out over several lines is still one message. */
static void line_ends_between_tokens_become_blanks(void **state)
{
    (void)state;
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_sse_write_event(&out, (sgi_str){0}, -1, SGI_STR("\n{\r\n\"a\":\n\n1\r}\n"));
    sgi_buf_terminate(&out);
    assert_string_equal(out.p, "data:  {  \"a\":  1 } \n\n");
    sgi_buf_free(&out);
}

static void writing_without_memory_fails_and_stays_so(void **state)
{
    (void)state;
    char json[600];
    memset(json, 'x', sizeof json);
    for (size_t k = 1; k <= 2; k++) {
        sgi_buf out;
        sgi_buf_init(&out, &tm.mem);
        test_mem_rearm(&tm);
        tm.fail_at = k;
        sgi_sse_write_event(&out, SGI_STR("1"), 5, (sgi_str){json, sizeof json});
        assert_true(out.failed);
        sgi_buf_free(&out);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lines_end_in_cr_or_lf_or_both),
        CASE(long_lines_end_where_they_end),
        CASE(an_event_is_given_with_its_cr),
        CASE(comments_and_unknown_fields_are_ignored),
        CASE(data_is_joined_by_lf_and_loses_one_blank),
        CASE(a_type_is_of_its_event_only),
        CASE(a_byte_order_mark_is_skipped_once),
        CASE(ids_stay_until_the_next),
        CASE(an_id_with_nul_is_ignored),
        CASE(a_priming_event_is_seen),
        CASE(retry_is_digits_up_to_a_day),
        CASE(an_unfinished_event_is_dropped),
        CASE(a_new_stream_forgets_all_but_the_id),
        CASE(an_event_of_just_the_limit_passes),
        CASE(one_byte_more_is_said_once_and_the_next_event_is_read),
        CASE(an_id_of_a_lost_event_is_not_taken),
        CASE(an_id_that_fits_no_header_is_ignored),
        CASE(an_endless_comment_takes_no_memory),
        CASE(an_endless_event_takes_no_more_memory_than_the_limit),
        CASE(a_large_event_does_not_keep_its_room),
        CASE(whole_events_are_handed_on_without_a_copy),
        CASE(steady_streams_do_not_allocate),
        CASE(without_memory_events_are_lost_and_said_so),
        CASE(what_is_written_is_read_back),
        CASE(line_ends_between_tokens_become_blanks),
        CASE(writing_without_memory_fails_and_stays_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
