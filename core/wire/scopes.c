/* Lists of scopes. The lists are short, so they are searched word by word. */
#include "wire/scopes.h"

bool sgi_scopes_next(sgi_str *list, sgi_str *scope)
{
    while (list->n && *list->p == ' ')
        *list = (sgi_str){list->p + 1, list->n - 1};
    *scope = *list;
    if (!list->n)
        return false;
    size_t len = 0;
    while (len < list->n && list->p[len] != ' ')
        len++;
    *scope = (sgi_str){list->p, len};
    *list = (sgi_str){list->p + len, list->n - len};
    return len > 0;
}

/* True when the list has only visible ASCII and blanks, without quotes and backslashes,
 * which would have to be escaped in a quoted string. */
bool sgi_scopes_are_valid(sgi_str list)
{
    for (size_t i = 0; i < list.n; i++) {
        char c = list.p[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            return false;
    }
    return true;
}

bool sgi_scopes_have(sgi_str list, sgi_str scope)
{
    sgi_str one;
    while (sgi_scopes_next(&list, &one))
        if (sgi_str_eq(one, scope))
            return true;
    return false;
}

bool sgi_scopes_cover(sgi_str list, sgi_str wanted)
{
    sgi_str one;
    while (sgi_scopes_next(&wanted, &one))
        if (!sgi_scopes_have(list, one))
            return false;
    return true;
}

void sgi_scopes_join(sgi_buf *out, sgi_str more)
{
    sgi_str one;
    while (sgi_scopes_next(&more, &one)) {
        if (sgi_scopes_have(sgi_buf_str(out), one))
            continue;
        if (out->len)
            sgi_buf_add_char(out, ' ');
        sgi_buf_add_str(out, one);
    }
}

static sgi_str next_line(sgi_str *text)
{
    size_t len = 0;
    while (len < text->n && text->p[len] != '\n')
        len++;
    sgi_str line = {text->p, len};
    size_t skip = len < text->n ? len + 1 : len;
    *text = (sgi_str){text->p + skip, text->n - skip};
    return line;
}

/* An added scope can imply further scopes, so the loop repeats until it adds no scope. */
void sgi_scopes_add_implied(sgi_buf *out, sgi_str implied)
{
    size_t before;
    do {
        sgi_str text = implied, scope;
        before = out->len;
        while (text.n) {
            sgi_str line = next_line(&text);
            if (sgi_scopes_next(&line, &scope) &&
                sgi_scopes_have(sgi_buf_str(out), scope))
                sgi_scopes_join(out, line);
        }
    } while (out->len > before && !out->failed);
}
