/* Heads that repeat the head before. A client that keeps its connection sends nearly the
 * same head with each request. Bytes that were read before have the same meaning again,
 * so they are compared and not read.
 *
 * The head before stays where it was read: its bytes in `text`, its headers in `fields`.
 * A new head is written over it from the start. Two cases save work:
 *
 *   whole   All bytes are equal. Then all parts of the head before are valid again.
 *   line    A header line is equal to the old line that stood at the same offset of
 *           `text` and had the same number. Then its entry in `fields` is valid again.
 *           The bytes behind the offset and the entries behind the number are still the
 *           old ones, because a head is written without gaps and an empty line before
 *           it ends the memory. When a line has another length than the old
 *           line, the later lines are not at their old offsets, and they are read.
 *
 * Limits need no check here: equal bytes at the same offset with the same number were
 * within the limits before, and the limits of a head never change. */
#include "wire/http1_head.h"

#include "wire/http1_text.h"

void sgi_http1_remember_head(sgi_http1_head *head)
{
    if (head->is_altered)
        head->past = (sgi_http1_past){0};
    else
        head->past = (sgi_http1_past){(uint32_t)head->text.len, head->field_count};
}

/* Makes the head empty. What is remembered stays. */
static void clear(sgi_http1_head *head)
{
    sgi_http1_head kept = *head;
    *head = (sgi_http1_head){
        .limits = kept.limits,
        .text = kept.text,
        .fields = kept.fields,
        .field_cap = kept.field_cap,
        .changed = kept.past.size ? 0 : UINT32_MAX,
        .past = kept.past,
    };
}

static bool begins_with(sgi_str input, const char *bytes, size_t len)
{
    return sgi_str_begins(input, (sgi_str){bytes, len});
}

/* Takes bytes that are already in `text`. */
static void take(sgi_http1_head *head, size_t end, sgi_str *input)
{
    *input = sgi_http1_skip(*input, end - head->text.len);
    head->text.len = end;
}

static bool repeat_request_line(sgi_http1_head *head, sgi_str *input)
{
    sgi_http1_head old = *head;
    clear(head);
    if (!old.past.fields || !begins_with(*input, head->text.p, head->fields[0].name_at)) {
        head->changed |= SGI_HTTP1_REQUEST_CHANGED;
        return false;
    }
    head->method.n = old.method.n;
    head->target.n = old.target.n;
    head->minor = old.minor;
    take(head, head->fields[0].name_at, input);
    return true;
}

sgi_http1_repetition sgi_http1_repeat_start(sgi_http1_head *head, sgi_str *input)
{
    size_t size = head->past.size;
    if (!size || !begins_with(*input, head->text.p, size))
        return repeat_request_line(head, input) ? SGI_HTTP1_REPEATS_LINE
                                                : SGI_HTTP1_REPEATS_NOTHING;
    head->changed = 0;
    take(head, size, input);
    return SGI_HTTP1_REPEATS_HEAD;
}

void sgi_http1_note_change(sgi_http1_head *head, sgi_http1_name known)
{
    uint32_t number = head->field_count;
    head->changed |= 1u << known;
    if (number < head->past.fields)
        head->changed |= 1u << head->fields[number].known;
}

void sgi_http1_note_missing(sgi_http1_head *head)
{
    for (uint32_t i = head->field_count; i < head->past.fields; i++)
        head->changed |= 1u << head->fields[i].known;
}

bool sgi_http1_repeat_line(sgi_http1_head *head, sgi_str *input)
{
    uint32_t number = head->field_count, count = head->past.fields;
    size_t at = head->text.len;
    if (number >= count || head->fields[number].name_at != at)
        return false;
    size_t end = number + 1 < count ? head->fields[number + 1].name_at
                                    : head->past.size - (uint32_t)(sizeof "\r\n" - 1);
    if (!begins_with(*input, head->text.p + at, end - at))
        return false;
    take(head, end, input);
    return sgi_http1_note_field(head);
}
