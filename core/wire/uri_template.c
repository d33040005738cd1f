/* All variables except one (the pivot) match as little text as possible: the variables
 * before the pivot are matched from the left, the variables after the pivot from the
 * right. This order loses no match. If a {var} before the pivot matched more text, less
 * text would be left for the parts after it. Either the next variable can match the
 * additional text as well, or this text has a character that no {var} may have. Therefore
 * the search never goes back to an earlier variable.
 *
 * The text after a variable is found by the algorithm of Knuth, Morris and Pratt.
 * Therefore the number of comparisons is linear in the length of the URI, whatever the
 * template repeats. */
#include "wire/uri_template.h"

/* ---- reading ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.';
}

/* Reads one variable {...}. *at: the position after the opening brace; receives the
 * position after the variable. Returns NULL, or a text that tells what is wrong. */
static const char *read_variable(sgi_uri_template *t, sgi_str text, size_t *at)
{
    if (t->count == SGI_URI_VARIABLES_MAX)
        return "it has more than 16 variables";
    sgi_uri_part *part = &t->parts[t->count];
    *part = (sgi_uri_part){.reserved = *at < text.n && text.p[*at] == '+'};
    *at += part->reserved;
    part->name.p = text.p + *at;
    while (*at < text.n && is_name_char(text.p[*at]))
        (*at)++;
    part->name.n = (size_t)(text.p + *at - part->name.p);
    if (*at == text.n)
        return "a brace is not closed";
    if (!part->name.n || text.p[*at] != '}')
        return "only {name} and {+name} are supported, with a name of letters, digits, "
               "\"_\" and \".\"; the value of {+name} may have slashes";
    (*at)++;
    for (size_t i = 0; i < t->count; i++)
        if (sgi_str_eq(t->parts[i].name, part->name))
            return "a variable is used twice";
    t->count++;
    return NULL;
}

static sgi_str read_text(sgi_str text, size_t *at)
{
    size_t start = *at;
    while (*at < text.n && text.p[*at] != '{' && text.p[*at] != '}')
        (*at)++;
    return (sgi_str){text.p + start, *at - start};
}

/* Returns the variable whose opening brace is at `begin`, with its braces. */
static sgi_str variable_at(sgi_str text, size_t begin)
{
    size_t end = begin;
    while (end < text.n && text.p[end] != '}')
        end++;
    return (sgi_str){text.p + begin, (end < text.n ? end + 1 : end) - begin};
}

/* Chooses the pivot, the variable that matches the remaining text: {+var} if the template
 * has one, otherwise the last variable. Returns NULL, or a text that tells what is
 * wrong. */
static const char *choose_pivot(sgi_uri_template *t)
{
    bool found = false;
    t->pivot = t->count ? t->count - 1 : 0;
    for (size_t i = 0; i < t->count; i++) {
        if (i + 1 < t->count && !t->parts[i].text.n)
            return "there is no text between two variables";
        if (t->parts[i].reserved && found)
            return "there is more than one {+var}";
        if (t->parts[i].reserved)
            t->pivot = i;
        found |= t->parts[i].reserved;
    }
    return NULL;
}

const char *sgi_uri_template_read(sgi_uri_template *t, sgi_str text)
{
    const char *problem = NULL;
    size_t at = 0;
    *t = (sgi_uri_template){.count = 0};
    if (!text.n)
        return "it is empty";
    if (text.n > SGI_URI_TEMPLATE_MAX)
        return "it is longer than 1024 bytes";
    t->text = read_text(text, &at);
    while (!problem && at < text.n) {
        size_t begin = at;
        if (text.p[at++] == '}')
            return "a brace is not opened";
        problem = read_variable(t, text, &at);
        if (problem)
            t->wrong = variable_at(text, begin);
        else
            t->parts[t->count - 1].text = read_text(text, &at);
    }
    return problem ? problem : choose_pivot(t);
}

/* ---- matching ---- */

/* A text that is read either forward from its beginning or backward from its end. */
typedef struct view {
    const char *p;
    size_t n;
    bool backwards;
} view;

static char at(view v, size_t i)
{
    return v.backwards ? v.p[v.n - 1 - i] : v.p[i];
}

/* True when c is a reserved character of RFC 3986. A {var} must not match reserved
 * characters. */
static bool is_reserved(char c)
{
    return c && strchr(":/?#[]@!$&'()*+,;=", c);
}

static bool starts_with(view v, size_t from, view text)
{
    if (v.n - from < text.n)
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (at(v, from + i) != at(text, i))
            return false;
    return true;
}

/* Fills the failure table of Knuth, Morris and Pratt. fail[i] is the length of the
 * longest proper beginning of the text that is also an end of its first i + 1
 * characters. */
static void prepare(view text, uint16_t *fail)
{
    size_t matched = 0;
    fail[0] = 0;
    for (size_t i = 1; i < text.n; i++) {
        while (matched && at(text, i) != at(text, matched))
            matched = fail[matched - 1];
        matched += at(text, i) == at(text, matched);
        fail[i] = (uint16_t)matched;
    }
}

/* Finds the first place where `text` begins, from `from` to `last`. Returns false when
 * there is no such place. */
static bool find(view v, size_t from, size_t last, view text, size_t *place)
{
    uint16_t fail[SGI_URI_TEMPLATE_MAX];
    size_t matched = 0;
    size_t end = v.n - last < text.n ? v.n : last + text.n;
    prepare(text, fail);
    for (size_t i = from; i < end; i++) {
        while (matched && at(v, i) != at(text, matched))
            matched = fail[matched - 1];
        matched += at(v, i) == at(text, matched);
        if (matched == text.n) {
            *place = i + 1 - text.n;
            return true;
        }
    }
    return false;
}

/* Returns the position at which the value of a {var} must end at the latest. The value
 * begins at `from`. */
static size_t value_stop(view v, size_t from)
{
    while (from < v.n && !is_reserved(at(v, from)))
        from++;
    return from;
}

/* Matches a {var} that begins at *pos and ends where `text` occurs next; `text` is not
 * empty. Moves *pos past `text`. Returns false when there is no match. */
static bool take(view v, size_t *pos, view text, sgi_str *value)
{
    size_t place;
    size_t start = *pos;
    size_t stop = value_stop(v, start);
    if (stop == start || !find(v, start + 1, stop, text, &place))
        return false;
    value->n = place - start;
    value->p = v.backwards ? v.p + (v.n - place) : v.p + start;
    *pos = place + text.n;
    return true;
}

static view forwards(sgi_str text)
{
    return (view){text.p, text.n, false};
}

static view backwards(sgi_str text)
{
    return (view){text.p, text.n, true};
}

bool sgi_uri_template_match(const sgi_uri_template *t, sgi_str uri, sgi_str *values)
{
    view left = forwards(uri);
    view right = backwards(uri);
    size_t front = t->text.n;
    if (uri.n > SGI_URI_MAX || !starts_with(left, 0, forwards(t->text)))
        return false;
    if (!t->count)
        return uri.n == t->text.n;
    for (size_t i = 0; i < t->pivot; i++)
        if (!take(left, &front, forwards(t->parts[i].text), &values[i]))
            return false;
    size_t back = t->parts[t->count - 1].text.n;
    if (!starts_with(right, 0, backwards(t->parts[t->count - 1].text)))
        return false;
    for (size_t i = t->count - 1; i > t->pivot; i--)
        if (!take(right, &back, backwards(t->parts[i - 1].text), &values[i]))
            return false;
    if (front + back >= uri.n)
        return false;
    values[t->pivot] = (sgi_str){uri.p + front, uri.n - front - back};
    return t->parts[t->pivot].reserved ||
           value_stop(forwards(values[t->pivot]), 0) == values[t->pivot].n;
}

/* ---- values ---- */

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sgi_uri_decode(sgi_str value, sgi_buf *out)
{
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c == '%') {
            int high = value.n - i > 2 ? hex(value.p[i + 1]) : -1;
            int low = value.n - i > 2 ? hex(value.p[i + 2]) : -1;
            if (high < 0 || low < 0 || !(high | low))
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        sgi_buf_add_char(out, c);
    }
    return true;
}
