#include "engine/log/text_blocks.h"

#define FIRST 64

void sgi_text_blocks_init(sgi_text_blocks *texts, const sgi_mem *mem)
{
    texts->from = texts->first = 0;
    sgi_buf_init(&texts->more, mem);
}

void sgi_text_blocks_free(sgi_text_blocks *texts)
{
    sgi_buf_free(&texts->more);
}

void sgi_text_blocks_reset(sgi_text_blocks *texts, uint64_t from)
{
    texts->from = from;
    texts->first = 0;
    sgi_buf_truncate(&texts->more, 0);
}

bool sgi_text_blocks_reserve(sgi_text_blocks *texts, uint64_t end)
{
    sgi_buf *more = &texts->more;
    uint64_t known = end > texts->from ? end - texts->from : 0;
    uint64_t bytes = known > FIRST ? (known - FIRST - 1) / 8 + 1 : 0;
    if (bytes <= more->len)
        return true;
    uint64_t missing = bytes - more->len;
    if (missing > SIZE_MAX / 2 || !sgi_buf_reserve(more, (size_t)missing)) {
        /* reserving memory has failed; the bits that are already set stay valid */
        more->failed = false;
        return false;
    }
    memset(more->p + more->len, 0, (size_t)missing);
    more->len += (size_t)missing;
    return true;
}

bool sgi_text_blocks_add(sgi_text_blocks *texts, uint64_t place)
{
    if (!sgi_text_blocks_reserve(texts, place + 1))
        return false;
    place -= texts->from;
    if (place < FIRST) {
        texts->first |= UINT64_C(1) << place;
        return true;
    }
    place -= FIRST;
    char *bits = &texts->more.p[place / 8];
    *bits = (char)((unsigned char)*bits | 1U << place % 8);
    return true;
}

bool sgi_text_blocks_has(const sgi_text_blocks *texts, uint64_t place)
{
    if (place < texts->from)
        return false;
    place -= texts->from;
    if (place < FIRST)
        return texts->first >> place & 1;
    place -= FIRST;
    return place / 8 < texts->more.len &&
           ((unsigned char)texts->more.p[place / 8] >> place % 8 & 1);
}

sgi_str sgi_block_plain_text(sgi_json block)
{
    sgi_str inner;
    return sgi_json_text_block(block, &inner) == block.n ? inner : (sgi_str){0};
}

static bool has_string(sgi_json block, const char *name)
{
    return sgi_json_kind_of(sgi_json_get(block, name)) == SGI_JSON_STRING;
}

bool sgi_block_is_text(sgi_json block)
{
    if (sgi_json_begins_text_block(block))
        return true;
    sgi_json type = sgi_json_get(block, "type");
    return has_string(block, "text") &&
           (type.n ? sgi_json_string_is(type, SGI_STR("text"))
                   : has_string(block, "uri"));
}
