#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_free(text *t)
{
    sgi_easy_drop(t);
}

void text_add(text *t, const char *bytes, size_t len)
{
    sgi_easy_add(t, bytes, len);
}

void text_add_str(text *t, const char *str)
{
    text_add(t, str, strlen(str));
}

void text_add_json(text *t, json value)
{
    text_add(t, value.n ? value.p : "null", value.n ? value.n : 4);
}

void text_add_quoted(text *t, const char *str, size_t len)
{
    if (sgi_easy_add_quoted(t, str, len) != SEGUE_OK)
        text_add_str(t, "\"?\"");
}

void text_add_format(text *t, const char *format, ...)
{
    va_list args;
    char room[512];
    va_start(args, format);
    int len = vsnprintf(room, sizeof room, format, args);
    va_end(args);
    if (len < 0)
        t->failed = true;
    else
        text_add(t, room, (size_t)len < sizeof room ? (size_t)len : sizeof room - 1);
}

static void add_comma(text *t)
{
    if (t->len && t->p[t->len - 1] != '{' && t->p[t->len - 1] != '[')
        text_add_str(t, ",");
}

void text_add_key(text *t, const char *name)
{
    add_comma(t);
    text_add_quoted(t, name, strlen(name));
    text_add_str(t, ":");
}

static bool is_one_of(json key, const char *const *names)
{
    for (; names && *names; names++)
        if (json_is(key, *names))
            return true;
    return false;
}

void text_add_members(text *t, json object, const char *const *except)
{
    json key, value;
    for (size_t at = 0; json_next(object, &at, &key, &value);) {
        if (is_one_of(key, except))
            continue;
        add_comma(t);
        text_add_json(t, key);
        text_add_str(t, ":");
        text_add_json(t, value);
    }
}

json json_get(json object, const char *name)
{
    json found = {NULL, 0};
    if (object.n)
        segue_json_get(object.p, object.n, name, &found.p, &found.n);
    return found;
}

bool json_is_true(json value)
{
    return value.n == 4 && !memcmp(value.p, "true", 4);
}

bool json_is_object(json value)
{
    return value.n && *value.p == '{';
}

bool json_is_array(json value)
{
    return value.n && *value.p == '[';
}

bool json_is(json value, const char *str)
{
    char *decoded = NULL;
    size_t len = strlen(str);
    if (value.n == len + 2 && !memcmp(value.p + 1, str, len))
        return *value.p == '"' && !memchr(str, '\\', len);
    if (!value.n || !memchr(value.p, '\\', value.n))
        return false;
    decoded = json_string(value);
    bool same = decoded && !strcmp(decoded, str);
    free(decoded);
    return same;
}

char *json_string(json value)
{
    size_t len = value.n + 1; /* the decoded text is never longer than the JSON string */
    char *room = value.n ? malloc(len) : NULL;
    if (!room)
        return NULL;
    if (segue_json_text(value.p, value.n, room, &len) == SEGUE_OK &&
        !memchr(room, 0, len))
        return room;
    free(room);
    return NULL;
}

int64_t json_int(json value, int64_t otherwise)
{
    int64_t number = 0;
    return value.n && segue_json_int(value.p, value.n, &number) == SEGUE_OK ? number
                                                                            : otherwise;
}

bool json_next(json value, size_t *at, json *key, json *item)
{
    json unused;
    if (!value.n)
        return false;
    if (!key)
        key = &unused;
    return segue_json_next(value.p, value.n, at, &key->p, &key->n, &item->p, &item->n) ==
           SEGUE_OK;
}

char *copy_string(const char *str)
{
    size_t size = str ? strlen(str) + 1 : 0;
    char *copy = str ? malloc(size) : NULL;
    if (copy)
        memcpy(copy, str, size);
    return copy;
}
