#include "plain_block.h"

#include <string.h>

/* The first and the last characters of the JSON of a text block whose text is its last
 * member. */
static const char head[] = "{\"type\":\"text\",\"text\":\"";
static const char tail[] = "\"}";
enum { HEAD = sizeof head - 1, TAIL = sizeof tail - 1 };

bool sgb_is_plain_block(const char *data, size_t len)
{
    size_t at = HEAD;
    if (len < HEAD + TAIL || memcmp(data, head, HEAD) != 0)
        return false;
    while (at < len && data[at] != '"')
        at += data[at] == '\\' ? 2 : 1;
    return at + TAIL == len && data[at + 1] == '}';
}

const char *sgb_bare_text(const char *data, size_t len, size_t *text_len)
{
    if (len < HEAD + TAIL || memcmp(data, head, HEAD) != 0 ||
        memcmp(data + len - TAIL, tail, TAIL) != 0 ||
        memchr(data + HEAD, '\\', len - HEAD - TAIL) ||
        memchr(data + HEAD, '"', len - HEAD - TAIL))
        return NULL;
    *text_len = len - HEAD - TAIL;
    return data + HEAD;
}
