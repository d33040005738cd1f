/* The writer has one state: whether the next value needs a comma. Opening a container and
 * writing a key clear this state; writing a value and closing a container set it.
 * Therefore the writer needs no stack, and the caller may append bytes to the buffer
 * between two calls. */
#include "wire/json_write.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/json_scan.h"

static void begin_value(sgi_jw *w)
{
    if (w->comma)
        sgi_buf_add_char(w->buf, ',');
    w->comma = true;
}

void sgi_jw_open(sgi_jw *w, char bracket)
{
    begin_value(w);
    sgi_buf_add_char(w->buf, bracket);
    w->comma = false;
}

void sgi_jw_close(sgi_jw *w, char bracket)
{
    sgi_buf_add_char(w->buf, bracket);
    w->comma = true;
}

static void end_key(sgi_jw *w)
{
    sgi_buf_add_lit(w->buf, "\":");
    w->comma = false;
}

void sgi_jw_key(sgi_jw *w, const char *name)
{
    sgi_jw_key_json(w, sgi_str_of(name));
}

void sgi_jw_key_json(sgi_jw *w, sgi_str name)
{
    begin_value(w);
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_str(w->buf, name);
    end_key(w);
}

void sgi_jw_key_str(sgi_jw *w, sgi_str name)
{
    begin_value(w);
    sgi_buf_add_char(w->buf, '"');
    sgi_json_escape(w->buf, name);
    end_key(w);
}

void sgi_jw_string(sgi_jw *w, sgi_str text)
{
    begin_value(w);
    sgi_buf_add_char(w->buf, '"');
    sgi_json_escape(w->buf, text);
    sgi_buf_add_char(w->buf, '"');
}

void sgi_jw_raw(sgi_jw *w, sgi_str json)
{
    begin_value(w);
    sgi_buf_add_str(w->buf, json.n ? json : SGI_STR("null"));
}

void sgi_jw_int(sgi_jw *w, int64_t value)
{
    begin_value(w);
    sgi_buf_add_int(w->buf, value);
}

void sgi_jw_bool(sgi_jw *w, bool value)
{
    sgi_jw_raw(w, value ? SGI_STR("true") : SGI_STR("false"));
}

void sgi_jw_null(sgi_jw *w)
{
    sgi_jw_raw(w, SGI_STR("null"));
}

/* Replaces the locale's decimal point, which can have several bytes, by the point of
 * JSON. Returns the new length of the text. */
static size_t use_json_point(char *text)
{
    size_t len = 0;
    for (const char *p = text; *p; p++) {
        if ((*p >= '0' && *p <= '9') || *p == 'e' || *p == '-' || *p == '+')
            text[len++] = *p;
        else if (text[len - 1] != '.')
            text[len++] = '.';
    }
    return len;
}

void sgi_jw_double(sgi_jw *w, double value)
{
    if (!isfinite(value)) {
        sgi_jw_null(w);
        return;
    }
    /* 15 digits are tried first, so that every double that was read from at most 15
     * digits is written with the same digits. A subnormal double can need fewer digits,
     * so the search then begins at 1. */
    char text[64];
    int digits = fabs(value) < DBL_MIN ? 1 : 15;
    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    size_t len = use_json_point(text);
    begin_value(w);
    sgi_buf_add(w->buf, text, len);
}

void sgi_jw_member_string(sgi_jw *w, const char *name, sgi_str text)
{
    sgi_jw_key(w, name);
    sgi_jw_string(w, text);
}

void sgi_jw_member_raw(sgi_jw *w, const char *name, sgi_str json)
{
    sgi_jw_key(w, name);
    sgi_jw_raw(w, json);
}

void sgi_jw_member_int(sgi_jw *w, const char *name, int64_t value)
{
    sgi_jw_key(w, name);
    sgi_jw_int(w, value);
}

static void add_escape(sgi_buf *buf, unsigned char c)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char letter = c < 0x20 ? letters[c] : (char)c;
    if (letter) {
        sgi_buf_add(buf, (char[2]){'\\', letter}, 2);
        return;
    }
    static const char hex[] = "0123456789abcdef";
    sgi_buf_add(buf, (char[6]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

void sgi_json_escape(sgi_buf *buf, sgi_str text)
{
    if (!text.n)
        return;
    const unsigned char *p = (const unsigned char *)text.p;
    const unsigned char *end = p + text.n;
    for (;;) {
        const unsigned char *stop =
            sgi_json_scan(p, end, sgi_json_block_escaped, sgi_json_is_escaped);
        sgi_buf_add(buf, p, (size_t)(stop - p));
        if (stop == end)
            return;
        add_escape(buf, *stop);
        p = stop + 1;
    }
}
