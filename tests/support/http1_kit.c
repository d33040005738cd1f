/* The requests that the parser has read are written as text and compared with the text in
 * the row. So a row states its whole expectation in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/http1_kit.h"

test_mem http1_mem;
static char seen[1 << 16];
static size_t seen_len;
static uint64_t chance;

int http1_set_up(void **state)
{
    (void)state;
    test_mem_init(&http1_mem);
    chance = 1;
    return 0;
}

int http1_tear_down(void **state)
{
    (void)state;
    assert_int_equal(http1_mem.live, 0);
    return 0;
}

static uint32_t next_chance(uint32_t below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance >> 33) % below;
}

/* ---- what a request was understood as, as a text ---- */

static void note(const char *text, size_t len)
{
    assert_true(seen_len + len < sizeof seen);
    if (len)
        memcpy(seen + seen_len, text, len);
    seen_len += len;
    seen[seen_len] = 0;
}

static void note_str(const char *before, sgi_str text)
{
    note(before, strlen(before));
    note(text.p, text.n);
}

static void note_head(const sgi_http1_head *head)
{
    note_str("", head->method);
    note_str(" ", head->path);
    if (head->query.p)
        note_str("?", head->query);
    if (head->host.p)
        note_str(" @", head->host);
    note_str(head->minor ? "" : " 1.0", SGI_STR(""));
    note_str(head->keep_alive ? "" : " close", SGI_STR(""));
    note_str(head->expects_continue ? " continue" : "", SGI_STR(""));
}

static void note_event(const sgi_http1 *parser, sgi_http1_event event)
{
    char status[8];
    switch (event) {
    case SGI_HTTP1_HEAD:
        note_head(&parser->head);
        break;
    case SGI_HTTP1_DONE:
        note_str(" [", sgi_buf_str(&parser->body));
        note("] ", 2);
        break;
    default:
        assert_non_null(parser->head.fault.problem);
        note(status,
             (size_t)snprintf(status, sizeof status, "!%d", parser->head.fault.status));
        break;
    }
}

/* Feeds a copy of the bytes, which is freed at once. Returns false when the parser
 * refused the bytes. */
static bool feed(sgi_http1 *parser, const char *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    sgi_str input = {copy, len};
    sgi_http1_event event;
    while ((event = sgi_http1_next(parser, &input)) != SGI_HTTP1_MORE) {
        assert_ptr_equal(input.p + input.n, copy + len);
        note_event(parser, event);
        if (event == SGI_HTTP1_BAD)
            break;
        if (event == SGI_HTTP1_DONE)
            sgi_http1_reset(parser);
    }
    if (event == SGI_HTTP1_MORE)
        assert_int_equal(input.n, 0);
    free(copy);
    return event != SGI_HTTP1_BAD;
}

/* ---- drives ---- */

static void begin(sgi_http1 *parser, const sgi_http1_limits *limits)
{
    sgi_http1_init(parser, &http1_mem.mem, limits);
    seen_len = 0;
    seen[0] = 0;
}

static void end(sgi_http1 *parser, const http1_row *r, const char *drive)
{
    sgi_http1_free(parser);
    if (strcmp(seen, r->expected) != 0)
        fail_msg("%s, %s: %s, not %s", r->name, drive, seen, r->expected);
}

static void drive_cuts(const http1_row *r, const sgi_http1_limits *limits)
{
    sgi_http1 parser;
    for (size_t cut = 0; cut <= r->text.n; cut++) {
        begin(&parser, limits);
        if (feed(&parser, r->text.p, cut))
            feed(&parser, r->text.p + cut, r->text.n - cut);
        end(&parser, r, "cut in two");
    }
}

/* Feeds pieces of 1 to `most` bytes. */
static void drive_pieces(const http1_row *r, const sgi_http1_limits *limits,
                         uint32_t most)
{
    sgi_http1 parser;
    begin(&parser, limits);
    bool good = true;
    for (size_t at = 0, len; good && at < r->text.n; at += len) {
        len = 1 + next_chance(most);
        if (len > r->text.n - at)
            len = r->text.n - at;
        good = feed(&parser, r->text.p + at, len);
    }
    end(&parser, r, "in pieces");
}

/* Reads the row with failing allocations. The text is then a beginning of the expected
 * text, followed by 503. */
static void drive_failures(const http1_row *r, const sgi_http1_limits *limits,
                           bool bytewise)
{
    sgi_http1 parser;
    for (size_t n = 1, refused = 1; refused; n++) {
        refused = 0;
        for (int from = 0; from < 2; from++) {
            test_mem_rearm(&http1_mem);
            http1_mem.fail_at = from ? 0 : n;
            http1_mem.fail_from = from ? n : 0;
            begin(&parser, limits);
            bool good = true;
            for (size_t at = 0; good && at < r->text.n; at += bytewise ? 1 : r->text.n)
                good = feed(&parser, r->text.p + at, bytewise ? 1 : r->text.n);
            refused += http1_mem.failed;
            if (http1_mem.failed && parser.head.fault.status == 503) {
                seen[seen_len - 4] = 0;
                assert_memory_equal(seen, r->expected, strlen(seen));
                sgi_http1_free(&parser);
            } else {
                end(&parser, r, "without memory");
            }
            assert_int_equal(http1_mem.live, 0);
        }
    }
    test_mem_rearm(&http1_mem);
}

void http1_every_way(const http1_row *r, const sgi_http1_limits *limits)
{
    drive_pieces(r, limits, 1);
    if (r->text.n < 2000)
        drive_cuts(r, limits);
    for (int i = 0; i < 20; i++)
        drive_pieces(r, limits, i % 2 ? 7 : 60);
    drive_failures(r, limits, false);
    drive_failures(r, limits, true);
}

void http1_every_row(const http1_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        http1_every_way(&rows[i], NULL);
}

void http1_read_head(sgi_http1 *parser, sgi_str input)
{
    sgi_http1_init(parser, &http1_mem.mem, NULL);
    assert_int_equal(sgi_http1_next(parser, &input), SGI_HTTP1_HEAD);
}
