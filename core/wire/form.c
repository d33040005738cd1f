/* Reads and writes forms. A name that occurs twice has no value, because two readers of
 * the form could choose different values. A value with a control character is refused, so
 * that later code need not handle NUL or line ends. */
#include "wire/form.h"

#include "base/percent.h"
#include "wire/json_read.h"

static bool is_unreserved(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

void sgi_url_form_escape(sgi_buf *out, sgi_str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (is_unreserved(text.p[i])) {
            sgi_buf_add_char(out, text.p[i]);
        } else {
            sgi_buf_add_char(out, '%');
            sgi_buf_add_char(out, digits[c >> 4]);
            sgi_buf_add_char(out, digits[c & 15]);
        }
    }
}

void sgi_url_form_add(sgi_buf *out, const char *name, sgi_str value)
{
    if (out->len && !strchr("?&", out->p[out->len - 1]))
        sgi_buf_add_char(out, '&');
    sgi_url_form_escape(out, sgi_str_of(name));
    sgi_buf_add_char(out, '=');
    sgi_url_form_escape(out, value);
}

/* Decodes percent escapes, and plus signs as blanks. Returns false when an escape is
 * invalid. */
static bool decode(sgi_str text, sgi_buf *out)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '%') {
            sgi_buf_add_char(out, text.p[i] == '+' ? ' ' : text.p[i]);
            continue;
        }
        int high = i + 2 < text.n ? sgi_hex_digit(text.p[i + 1]) : -1;
        int low = i + 2 < text.n ? sgi_hex_digit(text.p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return false;
        sgi_buf_add_char(out, (char)(high << 4 | low));
        i += 2;
    }
    return true;
}

static bool is_text(sgi_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
            return false;
    return sgi_utf8_valid(text, NULL);
}

/* True when the pair "name=value" has this name; *value receives the value of the pair. A
 * name that is written with escapes is not recognised, because no name that this library
 * looks for needs escapes. */
static bool is_named(sgi_str pair, const char *name, sgi_str *value)
{
    size_t n = strlen(name);
    if (pair.n < n || memcmp(pair.p, name, n) != 0 || (pair.n > n && pair.p[n] != '='))
        return false;
    *value =
        pair.n > n ? (sgi_str){pair.p + n + 1, pair.n - n - 1} : (sgi_str){pair.p + n, 0};
    return true;
}

sgi_form_found sgi_url_form_find(sgi_str form, const char *name, sgi_buf *value)
{
    sgi_form_found found = SGI_FORM_ABSENT;
    sgi_buf_reset(value, SIZE_MAX);
    for (size_t at = 0; at < form.n;) {
        const char *end = memchr(form.p + at, '&', form.n - at);
        size_t n = end ? (size_t)(end - form.p) - at : form.n - at;
        sgi_str raw;
        if (is_named((sgi_str){form.p + at, n}, name, &raw)) {
            if (found != SGI_FORM_ABSENT || !decode(raw, value))
                return SGI_FORM_MALFORMED;
            found = SGI_FORM_ONE;
        }
        at += n + 1;
    }
    if (value->failed)
        return SGI_FORM_NOMEM;
    return is_text(sgi_buf_str(value)) ? found : SGI_FORM_MALFORMED;
}
