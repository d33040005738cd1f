#include "text.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for more bytes and a NUL. */
static bool reserve(sgi_easy_text *text, size_t more)
{
    size_t wanted = text->len + more + 1;
    size_t room = text->room ? text->room : 64;
    if (text->failed)
        return false;
    while (room < wanted && room <= SIZE_MAX / 2)
        room *= 2;
    if (wanted <= more || room < wanted) {
        text->failed = true;
        return false;
    }
    if (room == text->room)
        return true;
    char *grown = realloc(text->p, room);
    text->failed = !grown;
    if (!grown)
        return false;
    text->p = grown;
    text->room = room;
    return true;
}

void sgi_easy_add(sgi_easy_text *text, const char *bytes, size_t len)
{
    if (!reserve(text, len))
        return;
    if (len)
        memcpy(text->p + text->len, bytes, len);
    text->len += len;
    text->p[text->len] = 0;
}

segue_status sgi_easy_add_quoted(sgi_easy_text *text, const char *bytes, size_t len)
{
    size_t room = 0;
    segue_status status = segue_json_quote(bytes, len, NULL, &room);
    if (status == SEGUE_OK && reserve(text, room)) {
        room++;
        status = segue_json_quote(bytes, len, text->p + text->len, &room);
        if (status == SEGUE_OK)
            text->len += room;
    }
    text->failed |= status == SEGUE_E_NOMEM;
    return status == SEGUE_E_NOMEM ? SEGUE_OK : status;
}

segue_status sgi_easy_give(sgi_easy_text *text, char **out)
{
    sgi_easy_add(text, "", 0);
    if (text->failed) {
        sgi_easy_drop(text);
        return SEGUE_E_NOMEM;
    }
    *out = text->p;
    return SEGUE_OK;
}

void sgi_easy_drop(sgi_easy_text *text)
{
    free(text->p);
    *text = (sgi_easy_text){0};
}
