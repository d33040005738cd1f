/* Sending formatted text, and bytes that are perhaps not UTF-8. */
#include "text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

segue_status segue_call_printf(segue_call *call, const char *format, ...)
{
    char room[256], *text = room;
    va_list args, again;
    if (!call || !format)
        return SEGUE_E_INVALID;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(room, sizeof room, format, args);
    va_end(args);
    segue_status status = len < 0 ? SEGUE_E_INVALID : SEGUE_OK;
    if (len >= (int)sizeof room) {
        text = malloc((size_t)len + 1);
        if (!text)
            status = SEGUE_E_NOMEM;
        else if (vsnprintf(text, (size_t)len + 1, format, again) != len)
            status = SEGUE_E_INVALID;
    }
    va_end(again);
    if (status == SEGUE_OK)
        status = segue_call_send_text(call, text, (size_t)len, NULL);
    if (text != room)
        free(text);
    return status;
}

/* ---- bytes that are perhaps not UTF-8 ---- */

typedef enum found {
    CHARACTER, /* a whole character */
    BROKEN,    /* bytes that begin no character, or a character that does not go on */
    CUT        /* the bytes end within a character */
} found;

/* Looks at the bytes at p, of which there are n > 0, and returns the length of what it
 * finds. */
static size_t look(const unsigned char *p, size_t n, found *what)
{
    unsigned char first = p[0], low = 0x80, high = 0xbf;
    size_t more = first >= 0xc2 && first <= 0xdf   ? 1
                  : (first & 0xf0) == 0xe0         ? 2
                  : first >= 0xf0 && first <= 0xf4 ? 3
                                                   : 0;
    *what = first < 0x80 || more ? CHARACTER : BROKEN;
    if (first == 0xe0)
        low = 0xa0; /* lower ones would have a shorter form */
    if (first == 0xed)
        high = 0x9f; /* higher ones would be surrogates */
    if (first == 0xf0)
        low = 0x90;
    if (first == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i <= more; i++) {
        if (i == n || p[i] < low || p[i] > high) {
            *what = i == n ? CUT : BROKEN;
            return i;
        }
        low = 0x80;
        high = 0xbf;
    }
    return more + 1;
}

segue_status segue_call_send_lossy(segue_call *call, const void *bytes, size_t len,
                                   size_t *rest, segue_error **error)
{
    sgi_easy_text text = {0};
    const unsigned char *p = bytes;
    size_t at = 0, left = 0;
    char *made = NULL;
    if (!call || (!bytes && len) || len > SIZE_MAX / 4)
        return SEGUE_E_INVALID;
    while (at < len) {
        found what;
        size_t n = look(p + at, len - at, &what);
        if (what == CUT && rest) {
            left = n;
            break;
        }
        if (what == CHARACTER)
            sgi_easy_add(&text, (const char *)p + at, n);
        else
            sgi_easy_add(&text, REPLACEMENT, sizeof REPLACEMENT - 1);
        at += n;
    }
    size_t made_len = text.len;
    segue_status status = sgi_easy_give(&text, &made);
    if (status == SEGUE_OK && (made_len || !left))
        status = segue_call_send_text(call, made, made_len, error);
    free(made);
    if (status == SEGUE_OK && rest)
        *rest = left;
    return status;
}
