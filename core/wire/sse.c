/* The reader finds lines and handles each line at once, so it never holds a whole
 * event:
 *
 *     input --line--> take_line --blank line--> give
 *       |                ^
 *       +--> partial ----+   a line that is split between two inputs
 *
 * Data is copied as late as possible. A single data line that is whole in the input is
 * borrowed. Borrowed data is copied only when a second data line arrives, or when the
 * input ends before the event ends. A split line was already copied into `partial`, which
 * then becomes `text`.
 *
 * A line ends at its CR; the reader does not wait for the next byte, which can take
 * long. If the next byte is an LF, it is skipped (`after_cr`).
 *
 * When an event is lost (too long, out of memory), everything up to the next blank
 * line is dropped. `skipping`: a lost event is being dropped. `discarding`: the
 * current line has begun and its rest is dropped. Comments use only `discarding`, so they
 * need no memory however long they are. Whether an event is lost must not depend on
 * how the input is cut, so a line that is whole in the input is checked against the
 * same limit as a line that grows. */
#include "wire/sse.h"

#define KEEP_ROOM (64 * 1024)
/* The number of bytes in which LF and CR are searched at a time. Without this limit, the
 * search for LF could run far past a CR. */
#define WINDOW 512

static const unsigned char mark[] = {0xef, 0xbb, 0xbf};

enum { BOM_PAST = sizeof mark + 1 };

void sgi_sse_init(sgi_sse *sse, const sgi_mem *mem, size_t max_event)
{
    *sse = (sgi_sse){.max_event = max_event};
    sgi_buf_init(&sse->partial, mem);
    sgi_buf_init(&sse->text, mem);
    sgi_buf_init(&sse->type, mem);
    sgi_buf_init(&sse->id, mem);
    sgi_buf_init(&sse->last_id, mem);
}

void sgi_sse_free(sgi_sse *sse)
{
    sgi_buf_free(&sse->partial);
    sgi_buf_free(&sse->text);
    sgi_buf_free(&sse->type);
    sgi_buf_free(&sse->id);
    sgi_buf_free(&sse->last_id);
}

/* Clears the state of the current event, for the next event. */
static void clear_event(sgi_sse *sse)
{
    sgi_buf_reset(&sse->partial, KEEP_ROOM);
    sgi_buf_reset(&sse->text, KEEP_ROOM);
    sgi_buf_reset(&sse->type, KEEP_ROOM);
    sgi_buf_reset(&sse->id, KEEP_ROOM);
    sse->borrowed = (sgi_str){0};
    sse->data_at = 0;
    sse->used = 0;
    sse->is_borrowed = false;
    sse->has_data = false;
    sse->has_type = false;
    sse->has_id = false;
    sse->has_retry = false;
    sse->given = false;
}

void sgi_sse_reset(sgi_sse *sse)
{
    clear_event(sse);
    sse->bom = 0;
    sse->after_cr = false;
    sse->discarding = false;
    sse->skipping = false;
}

bool sgi_sse_is_mid_event(const sgi_sse *sse)
{
    if (sse->given)
        return false;
    return sse->skipping || sse->partial.len || sse->has_data || sse->has_type ||
           sse->has_id || sse->has_retry;
}

sgi_str sgi_sse_last_id(const sgi_sse *sse)
{
    return sgi_buf_str(&sse->last_id);
}

static sgi_sse_step lose(sgi_sse *sse, sgi_sse_step why)
{
    clear_event(sse);
    sse->skipping = true;
    return why;
}

/* ---- fields ---- */

static void swap(sgi_buf *a, sgi_buf *b)
{
    sgi_buf kept = *a;
    *a = *b;
    *b = kept;
}

static void set(sgi_buf *buf, sgi_str value)
{
    buf->len = 0;
    sgi_buf_add_str(buf, value);
}

static void stop_borrowing(sgi_sse *sse)
{
    if (!sse->is_borrowed)
        return;
    set(&sse->text, sse->borrowed);
    sse->data_at = 0;
    sse->is_borrowed = false;
    sse->borrowed = (sgi_str){0};
}

static void take_data(sgi_sse *sse, sgi_str value, bool torn)
{
    if (sse->has_data) {
        stop_borrowing(sse);
        sgi_buf_add_char(&sse->text, '\n');
        sgi_buf_add_str(&sse->text, value);
    } else if (torn) {
        sse->data_at = (size_t)(value.p - sse->partial.p);
        swap(&sse->partial, &sse->text);
    } else {
        sse->borrowed = value;
        sse->is_borrowed = true;
    }
    sse->has_data = true;
}

static void take_retry(sgi_sse *sse, sgi_str value)
{
    int64_t ms = 0;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return;
        ms = ms * 10 + (value.p[i] - '0');
        if (ms > SGI_SSE_MAX_RETRY_MS)
            ms = SGI_SSE_MAX_RETRY_MS;
    }
    if (!value.n)
        return;
    sse->retry_ms = ms;
    sse->has_retry = true;
}

static void take_field(sgi_sse *sse, sgi_str name, sgi_str value, bool torn)
{
    if (sgi_str_eq(name, SGI_STR("data"))) {
        take_data(sse, value, torn);
    } else if (sgi_str_eq(name, SGI_STR("event"))) {
        set(&sse->type, value);
        sse->has_type = true;
    } else if (sgi_str_eq(name, SGI_STR("id"))) {
        if (value.n > SGI_SSE_MAX_ID || (value.n && memchr(value.p, 0, value.n)))
            return;
        set(&sse->id, value);
        sse->has_id = true;
    } else if (sgi_str_eq(name, SGI_STR("retry"))) {
        take_retry(sse, value);
    }
}

/* Handles a line that is neither blank nor a comment. torn: true = the line was split
 * between two inputs, and is in `partial`. */
static sgi_sse_step take_line(sgi_sse *sse, sgi_str line, bool torn)
{
    const char *colon = memchr(line.p, ':', line.n);
    sgi_str name = {line.p, colon ? (size_t)(colon - line.p) : line.n};
    sgi_str value = {line.p + name.n, 0};
    if (colon) {
        value = (sgi_str){colon + 1, line.n - name.n - 1};
        if (value.n && value.p[0] == ' ') {
            value.p++;
            value.n--;
        }
    }
    sse->used += line.n;
    take_field(sse, name, value, torn);
    if (torn)
        sse->partial.len = 0;
    if (sse->text.failed || sse->type.failed || sse->id.failed)
        return lose(sse, SGI_SSE_FAILED);
    return SGI_SSE_MORE;
}

/* Ends the current event and returns it. An event with neither data, id nor retry is
 * dropped. */
static sgi_sse_step give(sgi_sse *sse, sgi_sse_event *event)
{
    if (!sse->has_data && !sse->has_id && !sse->has_retry) {
        clear_event(sse);
        return SGI_SSE_MORE;
    }
    if (sse->has_id)
        swap(&sse->id, &sse->last_id);
    *event = (sgi_sse_event){.type = SGI_STR("message"),
                             .last_id = sgi_buf_str(&sse->last_id),
                             .has_data = sse->has_data,
                             .has_id = sse->has_id,
                             .has_retry = sse->has_retry,
                             .retry_ms = sse->has_retry ? sse->retry_ms : 0};
    if (sse->type.len)
        event->type = sgi_buf_str(&sse->type);
    if (sse->is_borrowed)
        event->data = sse->borrowed;
    else if (sse->has_data && sse->text.len > sse->data_at)
        event->data = (sgi_str){sse->text.p + sse->data_at, sse->text.len - sse->data_at};
    sse->given = true;
    return SGI_SSE_EVENT;
}

/* ---- lines ---- */

/* Returns the number of bytes before the first CR or LF, or the length of the input when
 * it has no CR and no LF. */
static size_t line_length(sgi_str input)
{
    for (size_t at = 0; at < input.n;) {
        const char *start = input.p + at;
        size_t len = input.n - at < WINDOW ? input.n - at : WINDOW;
        const char *end = memchr(start, '\n', len);
        const char *cr = memchr(start, '\r', end ? (size_t)(end - start) : len);
        if (cr)
            end = cr;
        if (end)
            return (size_t)(end - input.p);
        at += len;
    }
    return input.n;
}

static bool has_room(const sgi_sse *sse, size_t n)
{
    return n <= sse->max_event - sse->used - sse->partial.len;
}

/* Handles a piece of a line whose end is not in the input: stores the piece in `partial`
 * or drops it. */
static sgi_sse_step keep_rest(sgi_sse *sse, sgi_str rest)
{
    if (sse->discarding)
        return SGI_SSE_MORE;
    if (sse->skipping || (!sse->partial.len && rest.p[0] == ':')) {
        sse->discarding = true;
        return SGI_SSE_MORE;
    }
    sgi_sse_step why = SGI_SSE_TOO_LONG;
    if (has_room(sse, rest.n)) {
        sgi_buf_add_str(&sse->partial, rest);
        if (!sse->partial.failed)
            return SGI_SSE_MORE;
        why = SGI_SSE_FAILED;
    }
    sse->discarding = true;
    return lose(sse, why);
}

/* Handles a line whose end is in the input. `partial` has the beginning of the line if
 * the line was split. */
static sgi_sse_step end_line(sgi_sse *sse, sgi_str line, sgi_sse_event *event)
{
    bool torn = sse->partial.len != 0;
    if (sse->discarding) {
        sse->discarding = false;
        return SGI_SSE_MORE;
    }
    if (!torn && !line.n) {
        if (!sse->skipping)
            return give(sse, event);
        sse->skipping = false;
        return SGI_SSE_MORE;
    }
    if (sse->skipping || (!torn && line.p[0] == ':'))
        return SGI_SSE_MORE;
    if (!has_room(sse, line.n))
        return lose(sse, SGI_SSE_TOO_LONG);
    if (torn) {
        sgi_buf_add_str(&sse->partial, line);
        if (sse->partial.failed)
            return lose(sse, SGI_SSE_FAILED);
        line = sgi_buf_str(&sse->partial);
    }
    return take_line(sse, line, torn);
}

/* Skips a byte order mark at the beginning of the stream. If only a part of a byte order
 * mark arrives, its bytes belong to the first line. */
static sgi_sse_step skip_mark(sgi_sse *sse, sgi_str *input)
{
    while (sse->bom < sizeof mark && input->n &&
           (unsigned char)input->p[0] == mark[sse->bom]) {
        sse->bom++;
        input->p++;
        input->n--;
    }
    if (sse->bom < sizeof mark && !input->n)
        return SGI_SSE_MORE;
    sgi_str begun = {(const char *)mark, sse->bom < sizeof mark ? sse->bom : 0};
    sse->bom = BOM_PAST;
    return begun.n ? keep_rest(sse, begun) : SGI_SSE_MORE;
}

/* Called when the input is used up. Copies borrowed data, so that no view points into the
 * input afterwards. */
static sgi_sse_step end_input(sgi_sse *sse, sgi_sse_step step)
{
    if (step != SGI_SSE_MORE)
        return step;
    stop_borrowing(sse);
    if (!sse->text.failed)
        return SGI_SSE_MORE;
    sse->discarding = sse->discarding || sse->partial.len != 0;
    return lose(sse, SGI_SSE_FAILED);
}

sgi_sse_step sgi_sse_next(sgi_sse *sse, sgi_str *input, sgi_sse_event *event)
{
    sgi_sse_step step = SGI_SSE_MORE;
    if (sse->given)
        clear_event(sse);
    if (sse->bom != BOM_PAST)
        step = skip_mark(sse, input);
    while (step == SGI_SSE_MORE && input->n) {
        if (sse->after_cr) {
            sse->after_cr = false;
            if (input->p[0] == '\n') {
                input->p++;
                input->n--;
                continue;
            }
        }
        sgi_str line = {input->p, line_length(*input)};
        bool ended = line.n < input->n;
        sse->after_cr = ended && input->p[line.n] == '\r';
        input->p += line.n + ended;
        input->n -= line.n + ended;
        step = ended ? end_line(sse, line, event) : keep_rest(sse, line);
    }
    return step == SGI_SSE_EVENT ? step : end_input(sse, step);
}

/* ---- writing ---- */

static void write_marks(sgi_buf *out, sgi_str id, int64_t retry_ms)
{
    if (id.n) {
        sgi_buf_add_lit(out, "id: ");
        sgi_buf_add_str(out, id);
        sgi_buf_add_char(out, '\n');
    }
    if (retry_ms >= 0) {
        sgi_buf_add_lit(out, "retry: ");
        sgi_buf_add_int(out, retry_ms);
        sgi_buf_add_char(out, '\n');
    }
}

static void blank_out(char *bytes, size_t len, char end)
{
    char *at = bytes;
    while (len && (at = memchr(bytes, end, len))) {
        *at = ' ';
        len -= (size_t)(at + 1 - bytes);
        bytes = at + 1;
    }
}

void sgi_sse_write_event(sgi_buf *out, sgi_str id, int64_t retry_ms, sgi_str json)
{
    write_marks(out, id, retry_ms);
    sgi_buf_add_lit(out, "data: ");
    size_t at = out->len;
    sgi_buf_add_str(out, json);
    if (!out->failed && json.n) {
        blank_out(out->p + at, json.n, '\n');
        blank_out(out->p + at, json.n, '\r');
    }
    sgi_buf_add_lit(out, "\n\n");
}

void sgi_sse_write_priming(sgi_buf *out, sgi_str id, int64_t retry_ms)
{
    sgi_sse_write_event(out, id, retry_ms, (sgi_str){0});
}

void sgi_sse_write_retry(sgi_buf *out, int64_t retry_ms)
{
    sgi_buf_add_lit(out, "retry: ");
    sgi_buf_add_int(out, retry_ms);
    sgi_buf_add_lit(out, "\n\n");
}

void sgi_sse_write_keep_alive(sgi_buf *out)
{
    sgi_buf_add_lit(out, ":\n\n");
}
