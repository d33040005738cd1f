/* Bytes into lines. Whatever the bytes and the cuts, the lines and complaints must be
 * those of a splitter that has all bytes at once. Memory stays near the limit of a line.
 * When memory runs out, lines are lost and this is reported, but none is made up.
 *
 * Input: limit, way of failing, number of cuts, their sizes, and then the bytes. */
#include "support/fuzz_input.h"
#include "support/test_mem.h"
#include "wire/ndjson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was seen: lines as they are, each with a newline at its end; other events as a
 * mark. */
#define MARK_LONG 1
#define MARK_NOMEM 2

static void note(sgi_buf *seen, sgi_str text, char mark)
{
    sgi_buf_add_char(seen, mark);
    sgi_buf_add_str(seen, text);
    sgi_buf_add_char(seen, '\n');
}

/* Splits the whole text in the simple way. */
static void split(sgi_buf *seen, sgi_str text, size_t limit)
{
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        sgi_str line = {text.p, end ? (size_t)(end - text.p) : text.n};
        size_t used = end ? line.n + 1 : line.n;
        if (line.n > limit) {
            note(seen, (sgi_str){line.p, limit}, MARK_LONG);
        } else if (end) {
            while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
                line.n--;
            if (line.n)
                note(seen, line, 0);
        }
        text.p += used;
        text.n -= used;
    }
}

static void feed(sgi_ndjson *framing, sgi_buf *seen, const char *bytes, size_t len)
{
    /* ends where the bytes end, and is freed at once */
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    sgi_str input = {copy, len};
    sgi_str line = {0};
    sgi_ndjson_event event;
    while ((event = sgi_ndjson_next(framing, &input, &line)) != SGI_NDJSON_MORE) {
        fuzz_check(input.p + input.n == copy + len);
        if (event == SGI_NDJSON_NOMEM)
            note(seen, (sgi_str){0}, MARK_NOMEM);
        else
            note(seen, line, event == SGI_NDJSON_TOO_LONG ? MARK_LONG : 0);
    }
    fuzz_check(input.n == 0);
    free(copy);
}

/* Takes the next note from the text. */
static sgi_str take_note(sgi_str *text)
{
    const char *end = memchr(text->p, '\n', text->n);
    sgi_str one = {text->p, (size_t)(end - text->p)};
    text->p += one.n + 1;
    text->n -= one.n + 1;
    return one;
}

/* Without memory the beginning of a long line is not reported. */
static bool is_same(sgi_str one, sgi_str of_all)
{
    bool untold = one.n == 1 && one.p[0] == MARK_LONG;
    return untold ? of_all.p[0] == MARK_LONG : sgi_str_eq(one, of_all);
}

/* Every note of `seen`, except complaints about memory, must be in `all`, in the same
 * order. */
static void check_none_made_up(sgi_str seen, sgi_str all)
{
    while (seen.n) {
        sgi_str one = take_note(&seen);
        if (one.p[0] == MARK_NOMEM)
            continue;
        bool found = false;
        while (!found && all.n)
            found = is_same(one, take_note(&all));
        fuzz_check(found);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    size_t limit = (size_t)1 + fuzz_byte(&in) * 4u;
    uint8_t fails = fuzz_byte(&in);
    size_t cuts = fuzz_below(&in, 32);
    const uint8_t *sizes = in.p;
    if (in.left < cuts)
        return 0;
    sgi_str text = {(const char *)in.p + cuts, in.left - cuts};

    test_mem tm;
    sgi_ndjson framing;
    sgi_buf seen, all;
    test_mem_init(&tm);
    tm.fail_at = fails & 7;
    tm.fail_from = fails & 128 ? (fails >> 3) & 15 : 0;
    sgi_buf_init(&seen, &sgi_mem_libc);
    sgi_buf_init(&all, &sgi_mem_libc);
    split(&all, text, limit);
    sgi_ndjson_init(&framing, &tm.mem, limit);
    size_t at = 0;
    for (size_t i = 0; at < text.n; i++) {
        size_t len = i < cuts ? sizes[i] : cuts ? (size_t)sizes[i % cuts] + 1 : text.n;
        if (len > text.n - at)
            len = text.n - at;
        feed(&framing, &seen, text.p + at, len);
        at += len;
    }
    fuzz_check(tm.peak <= 4 * limit + 1024);
    if (tm.failed)
        check_none_made_up(sgi_buf_str(&seen), sgi_buf_str(&all));
    else
        fuzz_check(sgi_str_eq(sgi_buf_str(&seen), sgi_buf_str(&all)));
    sgi_ndjson_free(&framing);
    fuzz_check(tm.live == 0);
    sgi_buf_free(&seen);
    sgi_buf_free(&all);
    return 0;
}
