/* Commas separate challenges from each other, and also the parameters of one challenge.
 * Therefore a word after a comma is a parameter if an equals sign follows the word;
 * otherwise the word is the scheme of the next challenge. A challenge of a scheme other
 * than Bearer can have another syntax (such as a token68). Text in another syntax is
 * skipped up to the next comma. */
#include "wire/challenge.h"

typedef struct cursor {
    sgi_str text;
    size_t at;
} cursor;

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_named(sgi_str text, const char *name)
{
    if (text.n != strlen(name))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (lower(text.p[i]) != lower(name[i]))
            return false;
    return true;
}

static void skip(cursor *c, const char *set)
{
    while (c->at < c->text.n && c->text.p[c->at] && strchr(set, c->text.p[c->at]))
        c->at++;
}

static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static sgi_str token(cursor *c)
{
    size_t start = c->at;
    while (c->at < c->text.n && is_token_char(c->text.p[c->at]))
        c->at++;
    return (sgi_str){c->text.p + start, c->at - start};
}

/* Reads a quoted string and appends its text to `out` (may be NULL). Returns false when
 * the closing quote is missing. */
static bool quoted(cursor *c, sgi_buf *out)
{
    for (c->at++; c->at < c->text.n; c->at++) {
        char now = c->text.p[c->at];
        if (now == '"') {
            c->at++;
            return true;
        }
        if (now == '\\' && ++c->at < c->text.n)
            now = c->text.p[c->at];
        if (out)
            sgi_buf_add_char(out, now);
    }
    return false;
}

/* Reads the value of a parameter, after the equals sign, and appends it to `out` (may be
 * NULL). Returns false when there is no value. */
static bool param_value(cursor *c, sgi_buf *out)
{
    skip(c, " \t");
    if (c->at < c->text.n && c->text.p[c->at] == '"')
        return quoted(c, out);
    sgi_str plain = token(c);
    if (out)
        sgi_buf_add_str(out, plain);
    return plain.n > 0;
}

/* True when an equals sign with a value follows. (A token68 can end in equals signs,
 * which are not followed by a value.) */
static bool is_param(const cursor *c)
{
    cursor ahead = *c;
    skip(&ahead, " \t");
    if (ahead.at >= ahead.text.n || ahead.text.p[ahead.at] != '=')
        return false;
    ahead.at++;
    skip(&ahead, " \t");
    return ahead.at < ahead.text.n && !strchr("=,", ahead.text.p[ahead.at]);
}

bool sgi_challenge_find(sgi_str header, const char *name, sgi_buf *value)
{
    cursor c = {header, 0};
    bool bearer = false;
    sgi_buf_reset(value, SIZE_MAX);
    for (;;) {
        skip(&c, " \t,");
        sgi_str word = token(&c);
        if (!word.n)
            return false; /* the header has ended, or is malformed from here on */
        if (!is_param(&c)) {
            bearer = is_named(word, "Bearer");
            size_t blank = c.at;
            skip(&c, " \t");
            cursor first = c;
            if (c.at == blank || (token(&first).n && is_param(&first)))
                continue;
            while (c.at < c.text.n && c.text.p[c.at] != ',')
                c.at++;
            continue;
        }
        skip(&c, " \t");
        c.at++;
        bool wanted = bearer && is_named(word, name);
        if (!param_value(&c, wanted ? value : NULL)) {
            sgi_buf_truncate(value, 0);
            return false;
        }
        if (wanted)
            return !value->failed;
    }
}

/* ---- writing ---- */

void sgi_challenge_add(sgi_buf *out, const char *name, sgi_str value)
{
    if (!value.n)
        return;
    if (out->len)
        sgi_buf_add_lit(out, ", ");
    else
        sgi_buf_add_lit(out, "Bearer ");
    sgi_buf_add_str(out, sgi_str_of(name));
    sgi_buf_add_lit(out, "=\"");
    sgi_buf_add_str(out, value);
    sgi_buf_add_char(out, '"');
}
