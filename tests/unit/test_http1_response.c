/* Responses of HTTP/1.1 as a client reads them. Each row is read in many ways: whole, cut
 * in two at each place, byte by byte, in random pieces, and with failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/http1_response.h"

#define HEAD_MAX ((size_t)200)

static test_mem mem;
static char seen[4096];
static size_t seen_len;
static uint64_t chance = 1;

typedef struct row {
    const char *text;
    /* what the text is understood as: status, header lines, "[body]", "keep" or "close",
     * or "!" and the problem; "(end)" stands before what the end of the connection
     * brings */
    const char *expected;
} row;

static void note(const char *text, size_t len)
{
    assert_true(seen_len + len < sizeof seen);
    if (len)
        memcpy(seen + seen_len, text, len);
    seen_len += len;
    seen[seen_len] = 0;
}

static void note_text(const char *text)
{
    note(text, strlen(text));
}

typedef struct run {
    sgi_http1_response reader;
    sgi_buf head;
    bool over;
} run;

static void begin(run *r)
{
    seen_len = 0;
    seen[0] = 0;
    r->over = false;
    sgi_buf_init(&r->head, &mem.mem);
    sgi_http1_response_begin(&r->reader, &r->head, HEAD_MAX);
}

static void note_event(run *r, sgi_http1_response_event event)
{
    char status[16];
    switch (event) {
    case SGI_HTTP1_RESPONSE_HEAD:
        note(status, (size_t)snprintf(status, sizeof status, "%d ", r->reader.status));
        for (size_t i = 0; i < r->head.len; i++)
            note(r->head.p[i] == '\n' ? "|" : r->head.p + i, r->head.p[i] != '\r');
        note_text("[");
        break;
    case SGI_HTTP1_RESPONSE_BYTES:
        assert_true(r->reader.bytes.n > 0);
        note(r->reader.bytes.p, r->reader.bytes.n);
        break;
    case SGI_HTTP1_RESPONSE_DONE:
        note_text(r->reader.keep_alive ? "] keep" : "] close");
        r->over = true;
        break;
    case SGI_HTTP1_RESPONSE_BAD:
        note_text("!");
        note_text(r->reader.problem);
        r->over = true;
        break;
    case SGI_HTTP1_RESPONSE_MORE:
        break;
    }
}

/* Feeds a copy of the bytes, which ends where the bytes end. */
static void feed(run *r, const char *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    sgi_str input = {copy, len};
    while (!r->over) {
        sgi_http1_response_event event = sgi_http1_response_next(&r->reader, &input);
        assert_ptr_equal(input.p + input.n, copy + len);
        if (event == SGI_HTTP1_RESPONSE_MORE)
            break;
        note_event(r, event);
    }
    free(copy);
}

static void end(run *r, const row *expected, const char *drive)
{
    if (!r->over) {
        note_text("(end)");
        note_event(r, sgi_http1_response_end(&r->reader));
    }
    sgi_buf_free(&r->head);
    if (strcmp(seen, expected->expected) != 0)
        fail_msg("%s, %s: %s, not %s", expected->text, drive, seen, expected->expected);
}

static size_t next_len(size_t most)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return 1 + (size_t)(chance >> 33) % most;
}

static void in_pieces(const row *r, size_t most, const char *drive)
{
    run one;
    size_t n = strlen(r->text);
    begin(&one);
    for (size_t at = 0, len; at < n; at += len) {
        len = next_len(most);
        len = len < n - at ? len : n - at;
        feed(&one, r->text + at, len);
    }
    end(&one, r, drive);
}

/* Without memory, the text that was seen is a beginning of the expected text, and the
 * problem is the lack of memory. */
static void without_memory(const row *r)
{
    bool failed = true;
    for (size_t n = 1; failed; n++) {
        run one;
        test_mem_rearm(&mem);
        mem.fail_at = n;
        begin(&one);
        for (size_t at = 0; r->text[at]; at++)
            feed(&one, r->text + at, 1);
        failed = mem.failed;
        if (failed) {
            assert_int_equal(one.reader.fault, SGI_HTTP1_RESPONSE_NOMEM);
            assert_string_equal(strchr(seen, '!'), "!out of memory");
            sgi_buf_free(&one.head);
        } else {
            end(&one, r, "with memory");
        }
        assert_int_equal(mem.live, 0);
    }
    test_mem_rearm(&mem);
}

static void every_way(const row *r)
{
    size_t n = strlen(r->text);
    for (size_t cut = 0; cut <= n; cut++) {
        run one;
        begin(&one);
        feed(&one, r->text, cut);
        feed(&one, r->text + cut, n - cut);
        end(&one, r, "cut in two");
    }
    in_pieces(r, 1, "byte by byte");
    for (int i = 0; i < 30; i++)
        in_pieces(r, i % 2 ? 5 : 40, "in pieces");
    without_memory(r);
}

static void every_row(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        every_way(&rows[i]);
}

#define EVERY(rows) every_row(rows, sizeof rows / sizeof *rows)
#define OK_LINE "HTTP/1.1 200 OK\r\n"

static void a_body_ends_where_its_framing_says(void **state)
{
    static const row rows[] = {
        {OK_LINE "Content-Length: 5\r\n\r\nhello", "200 Content-Length: 5|[hello] keep"},
        {OK_LINE "Content-Length: 0\r\n\r\n", "200 Content-Length: 0|[] keep"},
        {OK_LINE "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
         "200 Content-Length: 2|Content-Length: 2|[hi] keep"},
        {OK_LINE "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;a=b\r\n, y\r\n0\r\n"
                 "\r\n",
         "200 Transfer-Encoding: chunked|[hello, y] keep"},
        {OK_LINE
         "Transfer-Encoding: Chunked\r\n\r\n00a\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
         "200 Transfer-Encoding: Chunked|[0123456789] keep"},
        {OK_LINE "\r\nto the end", "200 [to the end(end)] close"},
        {OK_LINE "\r\n", "200 [(end)] close"},
        {"HTTP/1.1 204 No Content\r\n\r\n", "204 [] keep"},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
         "304 Content-Length: 9|[] close"},
        {"HTTP/1.1 202\r\nContent-Length: 0\r\n\r\n", "202 Content-Length: 0|[] keep"},
    };
    (void)state;
    EVERY(rows);
}

static void a_connection_is_kept_only_if_both_agree(void **state)
{
    static const row rows[] = {
        {OK_LINE "Connection: close\r\nContent-Length: 1\r\n\r\nx",
         "200 Connection: close|Content-Length: 1|[x] close"},
        {OK_LINE "Connection: x, Close\r\nContent-Length: 1\r\n\r\nx",
         "200 Connection: x, Close|Content-Length: 1|[x] close"},
        {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
         "200 Content-Length: 1|[x] close"},
        {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
         "200 Connection: Keep-Alive|Content-Length: 1|[x] keep"},
        {"HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\n",
         "204 Content-Length: 3|[] close"},
        {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
         "0\r\n\r\n",
         "200 Connection: keep-alive|Transfer-Encoding: chunked|[] close"},
        /* two framings: the chunks count, and the connection is not trusted further */
        {OK_LINE "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
                 "\r\n",
         "200 Content-Length: 9|Transfer-Encoding: chunked|[x] close"},
    };
    (void)state;
    EVERY(rows);
}

static void provisional_responses_are_skipped(void **state)
{
    static const row rows[] = {
        {"HTTP/1.1 100 Continue\r\nContent-Length: 7\r\nConnection: close\r\n\r\n"
         "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" OK_LINE "Content-Length: 1\r\n\r\nx",
         "200 Content-Length: 1|[x] keep"},
        {"HTTP/1.1 101 Switching\r\n\r\n", "!the answer has a status that was not asked "
                                           "for"},
    };
    (void)state;
    EVERY(rows);
}

static void odd_lines_are_understood(void **state)
{
    static const row rows[] = {
        {"HTTP/1.1 200 OK\nContent-Length: 1\nA:b\n\nx",
         "200 Content-Length: 1|A:b|[x] keep"},
        {OK_LINE "Transfer-Encoding: chunked\n\n1\nx\n0\n\n",
         "200 Transfer-Encoding: chunked|[x] keep"},
        /* a folded line (RFC 9112 5.2) */
        {OK_LINE "A: b\r\n c\r\nContent-Length: 1\r\n\r\nx",
         "200 A: b   c|Content-Length: 1|[x] keep"},
        {OK_LINE "Content-Length: 2, 2\r\n\r\nhi", "200 Content-Length: 2, 2|[hi] keep"},
        {OK_LINE "Transfer-Encoding: identity\r\nContent-Length: 1\r\n\r\nx",
         "200 Transfer-Encoding: identity|Content-Length: 1|[x] keep"},
        {OK_LINE "Transfer-Encoding: chunked, chunked\r\nTransfer-Encoding: chunked\r\n"
                 "\r\n1\r\nx\r\n0\r\n\r\n",
         "200 Transfer-Encoding: chunked, chunked|Transfer-Encoding: chunked|[x] keep"},
        {OK_LINE "X Y: 1\r\nX (1) : 2\r\n: 3\r\nContent-Length: 1\r\n\r\nx",
         "200 X Y: 1|X (1) : 2|: 3|Content-Length: 1|[x] keep"},
        {OK_LINE "content-LENGTH:   1  \r\n\r\nx", "200 content-LENGTH:   1  |[x] keep"},
    };
    (void)state;
    EVERY(rows);
}

static void what_is_no_response_is_refused(void **state)
{
#define NOT_HTTP "!the answer is not HTTP/1.1"
#define BAD_LENGTH "!the answer's Content-Length is malformed"
#define BAD_SIZE "200 Transfer-Encoding: chunked|[!the size of a chunk is malformed"
#define CHUNKED OK_LINE "Transfer-Encoding: chunked\r\n\r\n"
    static const row rows[] = {
        {"220 mail.test ESMTP\r\n", NOT_HTTP},
        {"HTTP/2 200\r\n\r\n", NOT_HTTP},
        {"HTTP/1.2 200 OK\r\n\r\n", NOT_HTTP},
        {"HTTP/1.1 20 OK\r\n\r\n", NOT_HTTP},
        {"HTTP/1.1 2000 OK\r\n\r\n", NOT_HTTP},
        {"HTTP/1.1 099 OK\r\n\r\n", "!the answer has a status that was not asked for"},
        {OK_LINE "no colon\r\n\r\n", "!a header of the answer is malformed"},
        {OK_LINE "Content-Length : 1\r\n\r\n", "!a header of the answer is malformed"},
        {OK_LINE "Connection:\r\n close\r\n\r\n", "!a header of the answer is malformed"},
        {OK_LINE "Content-Length: -1\r\n\r\n", BAD_LENGTH},
        {OK_LINE "Content-Length: 5, 6\r\n\r\n", BAD_LENGTH},
        {OK_LINE "Content-Length:\r\n\r\n", BAD_LENGTH},
        {OK_LINE "Content-Length: 9223372036854775808\r\n\r\n", BAD_LENGTH},
        {OK_LINE "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", BAD_LENGTH},
        {OK_LINE "Transfer-Encoding: gzip, chunked\r\n\r\n",
         "!the answer's only supported transfer coding is chunked"},
        {CHUNKED "x\r\n", BAD_SIZE},
        {CHUNKED "\r\n", BAD_SIZE},
        {CHUNKED "5 x\r\n", "200 Transfer-Encoding: chunked|[(end)!the response was cut "
                            "off"},
        {CHUNKED "5x\r\n", BAD_SIZE},
        {CHUNKED "00000000000000001\r\n", BAD_SIZE},
        {CHUNKED "1\r\nxy\r\n",
         "200 Transfer-Encoding: chunked|[x!a chunk is longer than its size"},
    };
    (void)state;
    EVERY(rows);
}

static void a_response_that_is_cut_off_is_refused(void **state)
{
    static const row rows[] = {
        {"", "(end)!the server closed the connection without an answer"},
        {"H", "(end)!the response was cut off"},
        {OK_LINE "Content-", "(end)!the response was cut off"},
        {OK_LINE "Content-Length: 5\r\n\r\nhel",
         "200 Content-Length: 5|[hel(end)!the response was cut off"},
        {CHUNKED "5\r\nhel",
         "200 Transfer-Encoding: chunked|[hel(end)!the response was cut off"},
        {CHUNKED "3\r\nhel\r\n",
         "200 Transfer-Encoding: chunked|[hel(end)!the response was cut off"},
    };
    (void)state;
    EVERY(rows);
}

static char *repeated(const char *before, size_t count, const char *behind)
{
    size_t at = strlen(before);
    char *text = malloc(at + count + strlen(behind) + 1);
    memcpy(text, before, at);
    memset(text + at, 'x', count);
    strcpy(text + at + count, behind);
    return text;
}

static void expect_at_limit(const char *before, size_t count, const char *behind,
                            const char *expected)
{
    char *text = repeated(before, count, behind);
    run one;
    begin(&one);
    for (size_t at = 0; text[at]; at++)
        feed(&one, text + at, 1);
    if (expected[0] == '!')
        assert_string_equal(strchr(seen, '!'), expected);
    else
        assert_true(one.over && !strchr(seen, '!'));
    sgi_buf_free(&one.head);
    free(text);
}

static void each_limit_holds(void **state)
{
    (void)state;
    const char *large = "!the response's headers are too large";
    /* the header lines count, without status line and empty line */
    expect_at_limit(OK_LINE "Content-Length: 0\r\nA: ", HEAD_MAX - 24, "\r\n\r\n", "");
    expect_at_limit(OK_LINE "Content-Length: 0\r\nA: ", HEAD_MAX - 23, "\r\n\r\n", large);
    expect_at_limit("HTTP/1.1 200 ", 1000, "\r\n\r\n", large);
    /* provisional responses count together */
    expect_at_limit("HTTP/1.1 100 Continue\r\nA: ", 150,
                    "\r\n\r\nHTTP/1.1 100 Continue"
                    "\r\n\r\n",
                    large);
    expect_at_limit(CHUNKED "1;", 1022, "\r\nx\r\n0\r\n\r\n", "");
    expect_at_limit(CHUNKED "1;", 1023, "\r\nx\r\n0\r\n\r\n",
                    "!the extensions of a chunk are too long");
    expect_at_limit(CHUNKED "0\r\nA:", 4090, "\r\n\r\n", "");
    expect_at_limit(CHUNKED "0\r\nA:", 4091, "\r\n\r\n",
                    "!the trailers of the answer are too large");
}

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&mem);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(mem.live, 0);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_body_ends_where_its_framing_says),
        CASE(a_connection_is_kept_only_if_both_agree),
        CASE(provisional_responses_are_skipped),
        CASE(odd_lines_are_understood),
        CASE(what_is_no_response_is_refused),
        CASE(a_response_that_is_cut_off_is_refused),
        CASE(each_limit_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
