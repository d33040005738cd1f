/* segue_json_pairs: a JSON object from a format of pairs. */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* The arguments of the format. A struct, because a va_list cannot be passed by pointer
 * everywhere. */
typedef struct values {
    va_list list;
} values;

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

/* ---- values ---- */

/* Writes a double with the fewest of 15 to 17 digits that give the same double. The
 * decimal point of the locale becomes a point. */
static segue_status add_double(sgi_easy_text *text, double value)
{
    char digits[40];
    if (!isfinite(value))
        return SEGUE_E_INVALID;
    for (int count = 15; count <= 17; count++) {
        snprintf(digits, sizeof digits, "%.*g", count, value);
        if (strtod(digits, NULL) >= value && strtod(digits, NULL) <= value)
            break;
    }
    for (const char *at = digits; *at; at++)
        if (strchr("0123456789+-e", *at))
            sgi_easy_add(text, at, 1);
        else if (at[1] && strchr("0123456789", at[1]))
            sgi_easy_add(text, ".", 1);
    return SEGUE_OK;
}

static segue_status add_text(sgi_easy_text *text, const char *value, size_t len,
                             bool is_json)
{
    if (is_json && (!value || !len))
        return SEGUE_E_INVALID;
    if (is_json) {
        sgi_easy_add(text, value, len);
        return SEGUE_OK;
    }
    if (value)
        return sgi_easy_add_quoted(text, value, len);
    sgi_easy_add(text, "null", 4);
    return SEGUE_OK;
}

typedef enum size { INT, LONG, LONG_LONG, SIZE } size;

static void add_integer(sgi_easy_text *text, size wide, bool is_signed, values *given)
{
    char digits[24];
    intmax_t below = 0;
    uintmax_t above = 0;
    if (is_signed)
        below = wide == INT         ? va_arg(given->list, int)
                : wide == LONG      ? va_arg(given->list, long)
                : wide == LONG_LONG ? va_arg(given->list, long long)
                                    : va_arg(given->list, ssize_t);
    else
        above = wide == INT         ? va_arg(given->list, unsigned)
                : wide == LONG      ? va_arg(given->list, unsigned long)
                : wide == LONG_LONG ? va_arg(given->list, unsigned long long)
                                    : va_arg(given->list, size_t);
    int len = is_signed ? snprintf(digits, sizeof digits, "%jd", below)
                        : snprintf(digits, sizeof digits, "%ju", above);
    sgi_easy_add(text, digits, (size_t)len);
}

/* Reads a directive behind its '%' and adds its value. *at is then behind it. */
static segue_status add_directive(sgi_easy_text *text, const char **at, bool is_json,
                                  values *given)
{
    const char *p = *at;
    size wide = INT;
    segue_status status = SEGUE_E_INVALID;
    if (!strncmp(p, "s", 1)) {
        const char *value = va_arg(given->list, const char *);
        status = add_text(text, value, value ? strlen(value) : 0, is_json);
    } else if (!strncmp(p, ".*s", 3)) {
        int len = va_arg(given->list, int);
        const char *value = va_arg(given->list, const char *);
        p += 2;
        if (len >= 0)
            status = add_text(text, value, (size_t)len, is_json);
    } else if (!is_json && *p && strchr("fge", *p)) {
        status = add_double(text, va_arg(given->list, double));
    } else if (!is_json) {
        if (*p == 'z')
            wide = SIZE;
        else if (*p == 'l')
            wide = p[1] == 'l' ? LONG_LONG : LONG;
        p += wide == LONG_LONG ? 2 : wide != INT;
        if (*p && strchr("diu", *p)) {
            add_integer(text, wide, *p != 'u', given);
            status = SEGUE_OK;
        }
    }
    *at = p + 1;
    return status;
}

/* ---- pairs ---- */

/* Adds JSON that stands in the format, up to the next blank. */
static segue_status add_literal(sgi_easy_text *text, const char **at)
{
    const char *from = *at;
    while (**at && !is_blank(**at))
        ++*at;
    return add_text(text, from, (size_t)(*at - from), true);
}

static segue_status add_pair(sgi_easy_text *text, const char **at, values *given)
{
    size_t len = strcspn(*at, "=: \n\t\"%");
    char kind = (*at)[len];
    if (!len || (kind != '=' && kind != ':'))
        return SEGUE_E_INVALID;
    if (text->len > 1)
        sgi_easy_add(text, ",", 1);
    segue_status status = sgi_easy_add_quoted(text, *at, len);
    sgi_easy_add(text, ":", 1);
    *at += len + 1;
    if (status == SEGUE_OK && **at == '%') {
        ++*at;
        status = add_directive(text, at, kind == ':', given);
    } else if (status == SEGUE_OK) {
        status = kind == ':' ? add_literal(text, at) : SEGUE_E_INVALID;
    }
    return status == SEGUE_OK && **at && !is_blank(**at) ? SEGUE_E_INVALID : status;
}

segue_status segue_json_pairs(char **json, const char *pairs, ...)
{
    sgi_easy_text text = {0};
    segue_status status = SEGUE_OK;
    values given;
    if (!json || !pairs)
        return SEGUE_E_INVALID;
    sgi_easy_add(&text, "{", 1);
    va_start(given.list, pairs);
    while (status == SEGUE_OK && *(pairs += strspn(pairs, " \n\t")))
        status = add_pair(&text, &pairs, &given);
    va_end(given.list);
    sgi_easy_add(&text, "}", 1);
    if (status == SEGUE_OK)
        return sgi_easy_give(&text, json);
    sgi_easy_drop(&text);
    return status;
}
