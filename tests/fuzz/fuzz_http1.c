/* Bytes into requests. The result must not depend on where the input is cut. Views and
 * headers must be valid. Memory must stay proportional to the received bytes. When memory
 * runs out, the requests before that are right and then 503 comes.
 *
 * Input: limits, way of failing, two bytes that choose the cuts, and then the bytes of
 * the connection. */
#include "support/fuzz_input.h"
#include "support/test_mem.h"
#include "wire/http1.h"
#include "wire/http1_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct run {
    sgi_http1 parser;
    sgi_buf seen;
    size_t fed; /* number of bytes of the connection given to the parser so far */
} run;

static void note(sgi_buf *seen, sgi_str text)
{
    sgi_buf_add_str(seen, text);
    sgi_buf_add_char(seen, '\n');
}

/* Checks that the text lies in the head and has only these bytes. */
static void check_view(const sgi_http1_head *head, sgi_str text, unsigned bytes)
{
    fuzz_check(text.p >= head->text.p &&
               text.p + text.n <= head->text.p + head->text.len);
    fuzz_check(sgi_http1_span(text, bytes) == text.n);
}

static void check_values(const sgi_http1_head *head)
{
    sgi_str name, value;
    size_t i = 0, count;
    for (; sgi_http1_header_at(head, i, &name, &value); i++) {
        check_view(head, name, SGI_HTTP1_TOKEN);
        check_view(head, value, SGI_HTTP1_VALUE);
        fuzz_check(name.n > 0 && sgi_http1_find_header(head, name, &count).p &&
                   count > 0);
    }
    fuzz_check(i <= head->limits.max_headers);
    for (int n = 0; n < SGI_HTTP1_NAMES; n++) {
        static const char *const all[] = {"host",
                                          "accept",
                                          "expect",
                                          "origin",
                                          "mcp-name",
                                          "connection",
                                          "mcp-method",
                                          "content-type",
                                          "authorization",
                                          "last-event-id",
                                          "content-length",
                                          "mcp-session-id",
                                          "transfer-encoding",
                                          "mcp-protocol-version"};
        sgi_str found = sgi_http1_find_header(head, sgi_str_of(all[n]), &count);
        fuzz_check(found.p == sgi_http1_header(head, (sgi_http1_name)n).p);
        fuzz_check(sgi_http1_is_repeated(head, (sgi_http1_name)n) == (count > 1));
    }
}

static void note_head(run *r)
{
    const sgi_http1_head *head = &r->parser.head;
    check_view(head, head->method, SGI_HTTP1_TOKEN);
    check_view(head, head->target, SGI_HTTP1_TARGET);
    fuzz_check(head->path.n > 0);
    fuzz_check(head->host.p || head->minor == 0);
    fuzz_check(!head->is_chunked || (!head->content_length && head->minor > 0));
    check_values(head);
    note(&r->seen, SGI_STR("head"));
    note(&r->seen, sgi_buf_str(&head->text));
    note(&r->seen, head->path);
    note(&r->seen, head->query);
    note(&r->seen, head->host);
    sgi_buf_add_uint(&r->seen, head->content_length);
    const char flags[] = {' ', head->is_chunked ? 'c' : '-',
                          head->expects_continue ? 'e' : '-',
                          head->keep_alive ? 'k' : '-'};
    note(&r->seen, (sgi_str){flags, sizeof flags});
}

static void note_event(run *r, sgi_http1_event event, size_t at)
{
    if (event == SGI_HTTP1_HEAD) {
        note_head(r);
    } else if (event == SGI_HTTP1_DONE) {
        fuzz_check(r->parser.body.len <= r->parser.head.limits.max_body);
        note(&r->seen, SGI_STR("done"));
        note(&r->seen, sgi_buf_str(&r->parser.body));
        sgi_buf_add_uint(&r->seen, at);
        sgi_http1_reset(&r->parser);
    } else {
        note(&r->seen, SGI_STR("bad"));
        sgi_buf_add_int(&r->seen, r->parser.head.fault.status);
        note(&r->seen, sgi_str_of(r->parser.head.fault.problem));
    }
}

/* Feeds a block that ends where the bytes end, and frees it at once. */
static bool feed(run *r, const uint8_t *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    sgi_str input = {copy, len};
    sgi_http1_event event;
    while ((event = sgi_http1_next(&r->parser, &input)) != SGI_HTTP1_MORE) {
        fuzz_check(input.p + input.n == copy + len);
        note_event(r, event, r->fed + len - input.n);
        if (event == SGI_HTTP1_BAD)
            break;
    }
    fuzz_check(event == SGI_HTTP1_BAD || input.n == 0);
    r->fed += len;
    free(copy);
    return event != SGI_HTTP1_BAD;
}

static void begin(run *r, const sgi_mem *mem, uint8_t limits)
{
    sgi_http1_limits some = {0};
    if (limits)
        some = (sgi_http1_limits){.max_request_line = 16 + (limits & 15) * 8u,
                                  .max_head = 64 + (limits & 15) * 16u,
                                  .max_headers = 1 + (limits >> 4 & 7),
                                  .max_body = 1 + (limits >> 3)};
    sgi_http1_init(&r->parser, mem, &some);
    sgi_buf_init(&r->seen, &sgi_mem_libc);
    r->fed = 0;
}

static void drive(run *r, fuzz_input text, uint32_t seed)
{
    uint32_t chance = seed * 2654435761u + 1;
    uint32_t most = seed % 5 == 0 ? 2 : seed % 5 == 1 ? 200 : 20;
    while (text.left) {
        size_t len = 1;
        if (seed)
            len += (chance >> 16) % most;
        chance = chance * 1664525 + 1013904223;
        if (len > text.left)
            len = text.left;
        if (!feed(r, text.p, len))
            return;
        text.p += len;
        text.left -= len;
    }
}

static void check_same(run *r, sgi_str whole)
{
    fuzz_check(sgi_str_eq(sgi_buf_str(&r->seen), whole));
    sgi_http1_free(&r->parser);
    sgi_buf_free(&r->seen);
}

/* Checks that the requests are a beginning of the right ones, followed by the
 * complaint. */
static void check_beginning(run *r, sgi_str whole)
{
    sgi_str end = SGI_STR("bad\n503out of memory\n");
    fuzz_check(r->seen.len >= end.n);
    sgi_str before = {r->seen.p, r->seen.len - end.n};
    fuzz_check(sgi_str_eq((sgi_str){r->seen.p + before.n, end.n}, end));
    fuzz_check(before.n <= whole.n);
    fuzz_check(sgi_str_eq(before, (sgi_str){whole.p, before.n}));
    sgi_http1_free(&r->parser);
    sgi_buf_free(&r->seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint8_t limits = fuzz_byte(&in);
    uint8_t fails = fuzz_byte(&in);
    uint32_t seed = fuzz_byte(&in);
    seed = seed << 8 | fuzz_byte(&in);
    test_mem tm;
    run whole, other;
    test_mem_init(&tm);
    begin(&whole, &tm.mem, limits);
    feed(&whole, in.p, in.left);
    fuzz_check(tm.peak <= 16 * in.left + 8192);
    sgi_str truth = sgi_buf_str(&whole.seen);
    begin(&other, &tm.mem, limits);
    drive(&other, in, 0);
    check_same(&other, truth);
    begin(&other, &tm.mem, limits);
    drive(&other, in, seed);
    check_same(&other, truth);

    test_mem_rearm(&tm);
    tm.fail_at = fails & 7;
    tm.fail_from = fails & 128 ? (fails >> 3) & 15 : 0;
    begin(&other, &tm.mem, limits);
    drive(&other, in, seed);
    if (other.parser.head.fault.status == 503)
        check_beginning(&other, truth);
    else
        check_same(&other, truth);
    sgi_http1_free(&whole.parser);
    sgi_buf_free(&whole.seen);
    fuzz_check(tm.live == 0);
    return 0;
}
