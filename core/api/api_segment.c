/* Functions of segments. A segment is a view that is valid during one callback, so no
 * lock is needed. */
#include "api/guard.h"
#include "engine/client/request.h"

static sgi_json block(const segue_segment *segment)
{
    return (sgi_json){segment->view.data, segment->view.data_len};
}

/* Decodes a JSON string into a buffer of the segment and returns the text. Returns NULL
 * when the value is not a string or when out of memory. */
static const char *decode_member(sgi_buf *scratch, sgi_json value)
{
    sgi_buf_truncate(scratch, 0);
    if (!sgi_json_decode(value, scratch) || !sgi_buf_terminate(scratch))
        return NULL;
    return scratch->p;
}

static const char *find_type(segue_segment *segment)
{
    if (sgi_json_begins_text_block(block(segment)))
        return "text";
    const char *type =
        decode_member(&segment->type, sgi_json_get(block(segment), "type"));
    /* a type with an embedded NUL is refused, because it would look like another type */
    return type && strlen(type) == segment->type.len ? type : "";
}

const segue_segment_view *segue_segment_read(const segue_segment *segment)
{
    static const segue_segment_view none = {.type = "", .data = ""};
    segue_segment *own = (segue_segment *)segment;
    if (!segment)
        return &none;
    if (!own->view.type)
        own->view.type = find_type(own);
    return &own->view;
}

const char *segue_segment_text(const segue_segment *segment, size_t *len)
{
    static const sgi_str names[] = {SGI_STR_INIT("type"), SGI_STR_INIT("text")};
    segue_segment *own = (segue_segment *)segment;
    sgi_json found[2];
    if (!segment)
        return NULL;
    sgi_str inner;
    if (sgi_json_text_block(block(segment), &inner) == block(segment).n) {
        found[1] = (sgi_json){inner.p - 1, inner.n + 2};
    } else {
        sgi_json_pick(block(segment), names, 2, found);
        if (!sgi_json_string_is(found[0], SGI_STR("text")))
            return NULL;
    }
    const char *text = decode_member(&own->text, found[1]);
    if (text && len)
        *len = own->text.len;
    return text;
}

const segue_segment *segue_segment_batch_next(segue_segment_batch *batch)
{
    return batch ? sgi_segment_batch_next(batch) : NULL;
}
