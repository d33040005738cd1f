#include "wire/uri_form.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* True when a URI cannot have this character. */
static bool is_foreign(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte <= 0x20 || byte == 0x7f || strchr("\"<>\\^`{|}", c);
}

/* Returns the offset after the variable that begins at `at`. */
static size_t variable_end(sgi_str text, size_t at)
{
    while (at < text.n && text.p[at] != '}')
        at++;
    return at < text.n ? at + 1 : at;
}

static const char *characters_fault(sgi_str text, bool is_template)
{
    for (size_t i = 0; i < text.n;) {
        if (is_template && text.p[i] == '{') {
            i = variable_end(text, i);
            continue;
        }
        if (is_foreign(text.p[i]))
            return "it has a blank or another character that a URI cannot have: write "
                   "such a character as %XX, a blank as %20";
        if (text.p[i] == '%' &&
            !(text.n - i > 2 && is_hex(text.p[i + 1]) && is_hex(text.p[i + 2])))
            return "after a % it needs two hexadecimal digits; a % itself is %25";
        i++;
    }
    return NULL;
}

static const char *scheme_fault(sgi_str text, bool is_template)
{
    static const char *const fault =
        "it has no scheme: a URI begins with one, such as data://";
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (is_template && c == '{')
            return NULL;
        if (c == ':')
            return i ? NULL : fault;
        if (!is_letter(c) && (!i || (!is_digit(c) && !strchr("+-.", c))))
            return fault;
    }
    return fault;
}

const char *sgi_uri_form_fault(sgi_str text, bool is_template)
{
    const char *fault = characters_fault(text, is_template);
    return fault ? fault : scheme_fault(text, is_template);
}
