/* Bytes into server-sent events. Whatever the bytes and the cuts, events and complaints
 * must be those of a simple reader that has all bytes at once. Memory stays near the
 * limit of an event. When memory runs out, events are lost and this is reported, but none
 * is made up.
 *
 * Input: limit, way of failing, number of cuts, their sizes, and then the bytes. */
#include "support/fuzz_input.h"
#include "support/test_mem.h"
#include "wire/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was seen: an event as its parts, a complaint as its mark. */
#define MARK_EVENT 0
#define MARK_LONG 1
#define MARK_NOMEM 2

typedef struct notes {
    sgi_buf text; /* each part behind its length */
} notes;

static void note(notes *seen, char mark, const sgi_sse_event *event)
{
    size_t at = seen->text.len;
    uint32_t len = 0;
    sgi_buf_add(&seen->text, &len, sizeof len);
    sgi_buf_add_char(&seen->text, mark);
    if (event) {
        sgi_buf_add_str(&seen->text, event->type);
        sgi_buf_add_char(&seen->text, '\n'); /* a byte that is in no type and in no id */
        sgi_buf_add_str(&seen->text, event->last_id);
        sgi_buf_add_char(&seen->text, '\n');
        sgi_buf_add_int(&seen->text, event->has_retry ? event->retry_ms : -1);
        sgi_buf_add_char(&seen->text, event->has_data ? 'd' : '-');
        sgi_buf_add_char(&seen->text, event->has_id ? 'i' : '-');
        sgi_buf_add_str(&seen->text, event->data);
    }
    len = (uint32_t)(seen->text.len - at - sizeof len);
    memcpy(seen->text.p + at, &len, sizeof len);
}

/* ---- the simple reader ---- */

/* Takes the next line from the text; returns false when none is complete. *line gets what
 * there is. */
static bool take_line(sgi_str *text, sgi_str *line)
{
    size_t n = 0;
    while (n < text->n && text->p[n] != '\r' && text->p[n] != '\n')
        n++;
    *line = (sgi_str){text->p, n};
    if (n == text->n)
        return false;
    size_t end = n + 1 < text->n && text->p[n] == '\r' && text->p[n + 1] == '\n' ? 2 : 1;
    text->p += n + end;
    text->n -= n + end;
    return true;
}

/* Finds the value of a line with this field; returns false for other lines. */
static bool has_field(sgi_str line, const char *name, sgi_str *value)
{
    size_t n = strlen(name);
    if (line.n < n || memcmp(line.p, name, n) != 0 || (line.n > n && line.p[n] != ':'))
        return false;
    n += line.n > n;
    n += line.n > n && line.p[n] == ' ';
    *value = (sgi_str){line.p + n, line.n - n};
    return true;
}

static bool is_number(sgi_str value, int64_t *number)
{
    double sum = 0;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return false;
        sum = sum * 10 + (value.p[i] - '0');
    }
    *number = sum > 86400000.0 ? 86400000 : (int64_t)sum;
    return value.n > 0;
}

/* Makes one event of its lines. */
static void read_event(notes *all, sgi_str lines, sgi_buf *last_id)
{
    sgi_sse_event event = {.type = SGI_STR("message")};
    sgi_str line, value, id = {0};
    sgi_buf joined;
    sgi_buf_init(&joined, &sgi_mem_libc);
    while (take_line(&lines, &line) && line.n) {
        if (has_field(line, "data", &value)) {
            if (event.has_data)
                sgi_buf_add_char(&joined, '\n');
            sgi_buf_add_str(&joined, value);
            event.has_data = true;
        } else if (has_field(line, "event", &value)) {
            event.type = value.n ? value : SGI_STR("message");
        } else if (has_field(line, "id", &value)) {
            if (value.n > SGI_SSE_MAX_ID || (value.n && memchr(value.p, 0, value.n)))
                continue;
            id = value;
            event.has_id = true;
        } else if (has_field(line, "retry", &value)) {
            int64_t ms;
            if (is_number(value, &ms)) {
                event.retry_ms = ms;
                event.has_retry = true;
            }
        }
    }
    if (event.has_id) {
        last_id->len = 0;
        sgi_buf_add_str(last_id, id);
    }
    event.data = sgi_buf_str(&joined);
    event.last_id = sgi_buf_str(last_id);
    if (event.has_data || event.has_id || event.has_retry)
        note(all, MARK_EVENT, &event);
    sgi_buf_free(&joined);
}

/* Reads the whole stream, event by event. */
static void split(notes *all, sgi_str text, size_t limit, sgi_buf *last_id, bool *mid)
{
    size_t mark = text.n < 3 ? text.n : 3;
    if (mark && memcmp(text.p, "\xef\xbb\xbf", mark) == 0) {
        text.p += mark; /* also for bytes that may still become a mark */
        text.n -= mark;
    }
    while (text.n) {
        sgi_str lines = text;
        sgi_str line;
        size_t used = 0;
        bool whole;
        while ((whole = take_line(&text, &line)) && line.n)
            used += line.p[0] == ':' ? 0 : line.n;
        if (!whole && line.n && line.p[0] != ':')
            used += line.n;
        if (used > limit)
            note(all, MARK_LONG, NULL);
        else if (whole)
            read_event(all, lines, last_id);
        *mid = !whole && used > limit;
        if (!whole)
            break;
    }
}

/* ---- the reader under test ---- */

static void feed(sgi_sse *sse, notes *seen, const char *bytes, size_t len)
{
    /* ends where the bytes end, and is freed at once */
    char *copy = malloc(len ? len : 1);
    memcpy(copy, bytes, len);
    sgi_str input = {copy, len};
    sgi_sse_event event;
    sgi_sse_step step;
    while ((step = sgi_sse_next(sse, &input, &event)) != SGI_SSE_MORE) {
        fuzz_check(input.p + input.n == copy + len);
        if (step == SGI_SSE_EVENT)
            note(seen, MARK_EVENT, &event);
        else
            note(seen, step == SGI_SSE_TOO_LONG ? MARK_LONG : MARK_NOMEM, NULL);
    }
    fuzz_check(input.n == 0);
    free(copy);
}

static sgi_str take_note(sgi_str *text)
{
    uint32_t len;
    memcpy(&len, text->p, sizeof len);
    sgi_str one = {text->p + sizeof len, len};
    text->p += sizeof len + len;
    text->n -= sizeof len + len;
    return one;
}

/* Returns the data of an event, if it has any. Its id is that of the last event that was
 * not lost, so after a loss whole notes cannot be compared. */
static sgi_str data_of(sgi_str one)
{
    if (one.p[0] != MARK_EVENT)
        return one;
    for (int lines = 0; lines < 2; lines++) {
        const char *end = memchr(one.p, '\n', one.n);
        one.n -= (size_t)(end + 1 - one.p);
        one.p = end + 1;
    }
    return one;
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
            found = sgi_str_eq(data_of(take_note(&all)), data_of(one));
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
    sgi_sse sse;
    notes seen, all;
    sgi_buf last_id;
    bool mid = false;
    test_mem_init(&tm);
    tm.fail_at = fails & 7;
    tm.fail_from = fails & 128 ? (fails >> 3) & 15 : 0;
    sgi_buf_init(&seen.text, &sgi_mem_libc);
    sgi_buf_init(&all.text, &sgi_mem_libc);
    sgi_buf_init(&last_id, &sgi_mem_libc);
    split(&all, text, limit, &last_id, &mid);
    sgi_sse_init(&sse, &tm.mem, limit);
    size_t at = 0;
    for (size_t i = 0; at < text.n; i++) {
        size_t len = i < cuts ? sizes[i] : cuts ? (size_t)sizes[i % cuts] + 1 : text.n;
        if (len > text.n - at)
            len = text.n - at;
        feed(&sse, &seen, text.p + at, len);
        at += len;
    }
    fuzz_check(tm.peak <= 6 * limit + 2048);
    if (tm.failed) {
        check_none_made_up(sgi_buf_str(&seen.text), sgi_buf_str(&all.text));
    } else {
        fuzz_check(sgi_str_eq(sgi_buf_str(&seen.text), sgi_buf_str(&all.text)));
        fuzz_check(sgi_str_eq(sgi_sse_last_id(&sse), sgi_buf_str(&last_id)));
        fuzz_check(!mid || sgi_sse_is_mid_event(&sse));
    }
    sgi_sse_free(&sse);
    fuzz_check(tm.live == 0);
    sgi_buf_free(&seen.text);
    sgi_buf_free(&all.text);
    sgi_buf_free(&last_id);
    return 0;
}
