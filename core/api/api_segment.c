/* Segment: views of one callback, which need no lock. */
#include "api/guard.h"
#include "engine/asking/request.h"

uint64_t segue_segment_number(const segue_segment *segment)
{
    return segment ? segment->number : 0;
}

uint64_t segue_segment_index(const segue_segment *segment)
{
    return segment ? segment->index : 0;
}

int32_t segue_segment_replaces(const segue_segment *segment)
{
    return segment && segment->replaces;
}

/* Decodes a string member into the scratch of the segment. */
static const char *decode_member(sgi_buf *scratch, sgi_json value)
{
    sgi_buf_cut(scratch, 0);
    if (!sgi_json_decode(value, scratch) || !sgi_buf_terminate(scratch))
        return NULL;
    return scratch->p;
}

const char *segue_segment_get_type(const segue_segment *segment)
{
    segue_segment *own = (segue_segment *)segment;
    const char *type = NULL;
    if (segment)
        type = decode_member(&own->type, sgi_json_get(segment->block, "type"));
    return type && strlen(type) == own->type.len ? type : ""; /* no other type's name */
}

const char *segue_segment_data(const segue_segment *segment, size_t *len)
{
    if (len)
        *len = segment ? segment->block.n : 0;
    return segment ? segment->block.p : "";
}

const char *segue_segment_text(const segue_segment *segment, size_t *len)
{
    static const sgi_str names[] = {SGI_STR_INIT("type"), SGI_STR_INIT("text")};
    segue_segment *own = (segue_segment *)segment;
    sgi_json found[2];
    if (!segment)
        return NULL;
    sgi_json_pick(segment->block, names, 2, found);
    if (!sgi_json_string_is(found[0], SGI_STR("text")))
        return NULL;
    const char *text = decode_member(&own->text, found[1]);
    if (text && len)
        *len = own->text.len;
    return text;
}
