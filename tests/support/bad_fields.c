#include "support/bad_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/vector.h"

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define HUGE_STRING (64 * 1024)

/* The position of a field in the text: its value, and the start of its member with the
 * key. */
typedef struct place {
    sgi_json value;
    const char *member;
} place;

static bool step_in(place *at, const char *name)
{
    sgi_json_member member;
    sgi_json item;
    size_t i = 0;
    if (sgi_json_kind_of(at->value) == SGI_JSON_ARRAY) {
        for (int left = atoi(name); sgi_json_next_item(at->value, &i, &item); left--)
            if (!left) {
                *at = (place){item, item.p};
                return true;
            }
        return false;
    }
    while (sgi_json_next_member(at->value, &i, &member))
        if (sgi_json_key_is(&member, name)) {
            *at = (place){member.value, member.key.p - 1};
            return true;
        }
    return false;
}

static place find(const char *message, const char *path)
{
    place at = {sgi_json_trim((sgi_str){message, strlen(message)}), message};
    char *names = strdup(path);
    for (char *rest = names, *name; (name = strsep(&rest, ">"));)
        if (!step_in(&at, name))
            fail_msg("no field %s in %s", path, message);
    free(names);
    return at;
}

/* Returns a copy of the text in which [from, to) is replaced. */
static char *splice(const char *message, const char *from, const char *to,
                    const char *text)
{
    return vector_text("%.*s%s%s", (int)(from - message), message, text, to);
}

static char *without(const char *message, const place *at)
{
    const char *from = at->member;
    const char *to = at->value.p + at->value.n;
    if (*to == ',')
        to++;
    else if (from > message && from[-1] == ',')
        from--;
    return splice(message, from, to, "");
}

char *bad_field_set(const char *message, const char *path, const char *json)
{
    place at = find(message, path);
    return json ? splice(message, at.value.p, at.value.p + at.value.n, json)
                : without(message, &at);
}

static const char *const values[BAD_FIELD_VALUES] = {
    NULL,   "null",  "true",  "7",
    "-1",   "1.5",   "1e400", "99999999999999999999",
    "\"\"", "\"x\"", "huge",  "\"a\\u0000b\"",
    "[]",   "{}"};

const char *bad_field_name(int value)
{
    return values[value] ? values[value] : "missing";
}

char *bad_field_line(const char *message, const char *path, int value)
{
    static char huge[HUGE_STRING + 3];
    if (!values[value] || strcmp(values[value], "huge") != 0)
        return bad_field_set(message, path, values[value]);
    memset(huge, 'x', sizeof huge - 1);
    huge[0] = huge[sizeof huge - 2] = '"';
    return bad_field_set(message, path, huge);
}

char *bad_field_text(const char *message, const char *path, int text)
{
    static const char *const texts[] = {"\"\\ud800\"", "\"\\udc00\\ud800\"", "\"\x01\""};
    if (text < 3)
        return bad_field_set(message, path, texts[text]);
    /* makes a message with the same key twice */
    place at = find(message, path);
    const char *end = at.value.p + at.value.n;
    char *again = vector_text("%.*s,", (int)(end - at.member), at.member);
    if (at.member == at.value.p) { /* an item of an array has no key */
        free(again);
        return bad_field_set(message, path, "tru");
    }
    char *line = splice(message, at.member, at.member, again);
    free(again);
    return line;
}

char *bad_field_fill(const char *message, const char *name, const char *text)
{
    char *line = strdup(message);
    for (char *at; (at = strstr(line, name));) {
        char *next = splice(line, at, at + strlen(name), text);
        free(line);
        line = next;
    }
    return line;
}
