/* Reads lines. `partial` has the bytes of an unfinished line; while `skipping` is set,
 * the bytes of the line are dropped instead. Blank lines, and the CR of CR LF, are
 * removed, because peers on other systems send them. A line that is returned from
 * `partial` stays there until the next call, so sgi_ndjson_next resets `partial` at its
 * beginning. */
#include "wire/ndjson.h"

#define KEEP_ROOM (64 * 1024)

void sgi_ndjson_init(sgi_ndjson *framing, const sgi_mem *mem, size_t max_line)
{
    *framing = (sgi_ndjson){.max_line = max_line};
    sgi_buf_init(&framing->partial, mem);
}

void sgi_ndjson_free(sgi_ndjson *framing)
{
    sgi_buf_free(&framing->partial);
}

void sgi_ndjson_reset(sgi_ndjson *framing)
{
    sgi_buf_reset(&framing->partial, 0);
    framing->skipping = framing->given = false;
}

static sgi_str strip(sgi_str line)
{
    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
        line.n--;
    return line;
}

static sgi_ndjson_event no_memory(sgi_ndjson *framing)
{
    sgi_buf_reset(&framing->partial, 0);
    return SGI_NDJSON_NOMEM;
}

/* Reports that the line has become too long with the bytes of `rest`. *line receives the
 * first max_line bytes of the line. */
static sgi_ndjson_event too_long(sgi_ndjson *framing, sgi_str rest, sgi_str *line)
{
    sgi_buf *partial = &framing->partial;
    *line = (sgi_str){rest.p, framing->max_line};
    if (!partial->len)
        return SGI_NDJSON_TOO_LONG;
    sgi_buf_add(partial, rest.p, framing->max_line - partial->len);
    *line = partial->failed ? (sgi_str){0} : sgi_buf_str(partial);
    framing->given = true;
    return SGI_NDJSON_TOO_LONG;
}

/* Stores the rest of the input, which has no newline, for the next call. */
static sgi_ndjson_event keep_rest(sgi_ndjson *framing, sgi_str *input, sgi_str *line)
{
    sgi_str rest = *input;
    input->p += input->n;
    input->n = 0;
    if (framing->skipping || !rest.n)
        return SGI_NDJSON_MORE;
    framing->skipping = rest.n > framing->max_line - framing->partial.len;
    if (framing->skipping)
        return too_long(framing, rest, line);
    sgi_buf_add_str(&framing->partial, rest);
    framing->skipping = framing->partial.failed;
    return framing->skipping ? no_memory(framing) : SGI_NDJSON_MORE;
}

sgi_ndjson_event sgi_ndjson_next(sgi_ndjson *framing, sgi_str *input, sgi_str *line)
{
    sgi_buf *partial = &framing->partial;
    if (framing->given)
        sgi_buf_reset(partial, KEEP_ROOM);
    framing->given = false;
    while (input->n) {
        const char *end = memchr(input->p, '\n', input->n);
        if (!end)
            return keep_rest(framing, input, line);
        sgi_str head = {input->p, (size_t)(end - input->p)};
        input->n -= head.n + 1;
        input->p = end + 1;
        if (framing->skipping) {
            framing->skipping = false;
            continue;
        }
        if (head.n > framing->max_line - partial->len)
            return too_long(framing, head, line);
        if (partial->len) {
            sgi_buf_add_str(partial, head);
            if (partial->failed)
                return no_memory(framing);
            head = sgi_buf_str(partial);
        }
        *line = strip(head);
        framing->given = partial->len > 0 && line->n > 0;
        if (line->n)
            return SGI_NDJSON_LINE;
        sgi_buf_reset(partial, KEEP_ROOM);
    }
    return SGI_NDJSON_MORE;
}
