#include "engine/log/texts.h"

#define FIRST 64

void sgi_texts_init(sgi_texts *texts, const sgi_mem *mem)
{
    texts->from = texts->first = 0;
    sgi_buf_init(&texts->more, mem);
}

void sgi_texts_free(sgi_texts *texts)
{
    sgi_buf_free(&texts->more);
}

void sgi_texts_begin(sgi_texts *texts, uint64_t from)
{
    texts->from = from;
    texts->first = 0;
    sgi_buf_cut(&texts->more, 0);
}

bool sgi_texts_reserve(sgi_texts *texts, uint64_t end)
{
    sgi_buf *more = &texts->more;
    uint64_t known = end > texts->from ? end - texts->from : 0;
    uint64_t bytes = known > FIRST ? (known - FIRST - 1) / 8 + 1 : 0;
    if (bytes <= more->len)
        return true;
    uint64_t missing = bytes - more->len;
    if (missing > SIZE_MAX / 2 || !sgi_buf_reserve(more, (size_t)missing)) {
        more->failed = false; /* those that are known still are */
        return false;
    }
    memset(more->p + more->len, 0, (size_t)missing);
    more->len += (size_t)missing;
    return true;
}

bool sgi_texts_add(sgi_texts *texts, uint64_t place)
{
    if (!sgi_texts_reserve(texts, place + 1))
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

bool sgi_texts_has(const sgi_texts *texts, uint64_t place)
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

static const char head[] = "{\"type\":\"text\",\"text\":\"";

static bool has_head(sgi_json block)
{
    return block.n > sizeof head && !memcmp(block.p, head, sizeof head - 1);
}

sgi_str sgi_block_plain_text(sgi_json block)
{
    size_t n = sizeof head - 1;
    if (!has_head(block))
        return (sgi_str){0};
    sgi_json text = sgi_json_get(block, "text");
    if (text.p + 1 != block.p + n || text.n != block.n - n)
        return (sgi_str){0};
    return (sgi_str){text.p + 1, text.n - 2};
}

bool sgi_block_is_text(sgi_json block)
{
    return has_head(block) ||
           (sgi_json_string_is(sgi_json_get(block, "type"), SGI_STR("text")) &&
            sgi_json_kind_of(sgi_json_get(block, "text")) == SGI_JSON_STRING);
}
