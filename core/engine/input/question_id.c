#include "engine/input/question_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool sgi_question_id_make(sgi_question_id_text *id, sgi_engine *engine, sgi_str of,
                          uint64_t position)
{
    char chance[SGI_RANDOM_TEXT + 1];
    if (!sgi_engine_random_text(engine, chance))
        return false;
    snprintf(id->text, sizeof id->text, "%.*s:%" PRIu64 ":%s", SGI_OPERATION_TEXT, of.p,
             position, chance);
    return true;
}

sgi_json sgi_question_id_write_json(const sgi_question_id_text *id, int64_t number,
                                    char room[SGI_QUESTION_JSON])
{
    int n =
        number ? snprintf(room, SGI_QUESTION_JSON, "\"%s/%" PRId64 "\"", id->text, number)
               : snprintf(room, SGI_QUESTION_JSON, "\"%s\"", id->text);
    return (sgi_json){room, (size_t)n};
}

/* Removes a number from the beginning of the text. Returns false when the text does not
 * begin with a digit, or when the number has too many digits. */
static bool take_number(sgi_str *text, uint64_t *number)
{
    size_t n = 0;
    *number = 0;
    for (; n < text->n && text->p[n] >= '0' && text->p[n] <= '9'; n++)
        *number = *number * 10 + (uint64_t)(text->p[n] - '0');
    text->p += n;
    text->n -= n;
    return n > 0 && n < SGI_POSITION_DIGITS;
}

static bool take_part(sgi_str *text, size_t len, sgi_str *part)
{
    if (text->n < len)
        return false;
    *part = (sgi_str){text->p, len};
    text->p += len;
    text->n -= len;
    return memchr(part->p, ':', len) == NULL && memchr(part->p, '/', len) == NULL;
}

static bool take_char(sgi_str *text, char c)
{
    if (!text->n || *text->p != c)
        return false;
    text->p++;
    text->n--;
    return true;
}

bool sgi_question_id_parse(sgi_json id, sgi_question_id_parts *parts)
{
    sgi_str text, chance;
    uint64_t number = 0;
    *parts = (sgi_question_id_parts){0};
    if (!sgi_json_plain_string(id, &text))
        return false;
    const char *from = text.p;
    if (!take_part(&text, SGI_OPERATION_TEXT, &parts->operation) ||
        !take_char(&text, ':') || !take_number(&text, &parts->position))
        return false;
    parts->is_lasting = !take_char(&text, ':');
    if (!parts->is_lasting && !take_part(&text, SGI_RANDOM_TEXT, &chance))
        return false;
    parts->whole = (sgi_str){from, (size_t)(text.p - from)};
    parts->is_numbered = take_char(&text, '/');
    if (parts->is_numbered && !take_number(&text, &number))
        return false;
    parts->number = (int64_t)number;
    return !text.n;
}
