/* Names and patterns. A string that begins with $ is a name. In a pattern, a name is one
 * of the matchers of this file, or the name of a value: the first match binds the value,
 * and later matches must be equal. In a message that is sent, a name stands for its
 * value. "$$x" is the string "$x".
 *
 * An object of a pattern lists all members, unless it has "$more": true. An array lists
 * all items, unless its last item is "$more". A key that is a name stands for one member
 * that no other key of the pattern takes. */
#include "support/vector.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MORE "$more"

char *vector_text(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = malloc((size_t)n + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

/* ---- names ---- */

void bindings_free(bindings *b)
{
    for (size_t i = 0; i < b->count; i++) {
        free(b->list[i].name);
        free(b->list[i].json);
    }
    free(b->list);
    *b = (bindings){0};
}

sgi_json bindings_get(const bindings *b, sgi_str name)
{
    for (size_t i = 0; i < b->count; i++) {
        const binding *one = &b->list[i];
        if (strlen(one->name) == name.n && memcmp(one->name, name.p, name.n) == 0)
            return (sgi_json){one->json, strlen(one->json)};
    }
    return (sgi_json){0};
}

void bindings_set(bindings *b, sgi_str name, sgi_json value)
{
    b->list = realloc(b->list, (b->count + 1) * sizeof *b->list);
    b->list[b->count++] = (binding){strndup(name.p, name.n), strndup(value.p, value.n)};
}

static bool is_name(sgi_str text)
{
    return text.n > 1 && text.p[0] == '$' && text.p[1] != '$';
}

/* Returns the name in a value, without its $. */
static bool name_of(sgi_json value, sgi_str *name)
{
    sgi_str text;
    if (!sgi_json_plain_string(value, &text) || !is_name(text))
        return false;
    *name = (sgi_str){text.p + 1, text.n - 1};
    return true;
}

/* ---- filling in ---- */

typedef struct filling {
    const bindings *b;
    FILE *out;
    char *wrong;
} filling;

static void fill(filling *f, sgi_json value);

static void fill_name(filling *f, sgi_str name, bool is_key)
{
    sgi_json bound = bindings_get(f->b, name);
    if (!bound.n && !f->wrong)
        f->wrong = vector_text("$%.*s is not bound", (int)name.n, name.p);
    else if (is_key && sgi_json_kind_of(bound) != SGI_JSON_STRING && !f->wrong)
        f->wrong = vector_text("$%.*s is no string", (int)name.n, name.p);
    else if (bound.n)
        fill(f, bound); /* a value of "let" may hold names */
}

static void fill_string(filling *f, sgi_str text, bool is_key)
{
    if (is_name(text))
        fill_name(f, (sgi_str){text.p + 1, text.n - 1}, is_key);
    else if (text.n > 1 && text.p[0] == '$')
        fprintf(f->out, "\"%.*s\"", (int)text.n - 1, text.p + 1);
    else
        fprintf(f->out, "\"%.*s\"", (int)text.n, text.p);
}

static void fill(filling *f, sgi_json value)
{
    sgi_json_member member;
    sgi_json item;
    size_t at = 0;
    const char *comma = "";
    switch (sgi_json_kind_of(value)) {
    case SGI_JSON_OBJECT:
        fputc('{', f->out);
        for (; sgi_json_next_member(value, &at, &member); comma = ",") {
            fputs(comma, f->out);
            fill_string(f, member.key, true);
            fputc(':', f->out);
            fill(f, member.value);
        }
        fputc('}', f->out);
        break;
    case SGI_JSON_ARRAY:
        fputc('[', f->out);
        for (; sgi_json_next_item(value, &at, &item); comma = ",") {
            fputs(comma, f->out);
            fill(f, item);
        }
        fputc(']', f->out);
        break;
    case SGI_JSON_STRING:
        fill_string(f, (sgi_str){value.p + 1, value.n - 2}, false);
        break;
    default:
        fprintf(f->out, "%.*s", (int)value.n, value.p);
    }
}

char *vector_fill(const bindings *b, sgi_json value, char **wrong)
{
    char *text = NULL;
    size_t len = 0;
    filling f = {b, open_memstream(&text, &len), NULL};
    fill(&f, value);
    fclose(f.out);
    *wrong = f.wrong;
    if (f.wrong) {
        free(text);
        text = NULL;
    }
    return text;
}

/* ---- comparing ---- */

static char *differ(const char *at, sgi_json expected, sgi_json found)
{
    return vector_text("%s: expected %.*s, found %.*s", *at ? at : "the message",
                       (int)(expected.n < 400 ? expected.n : 400), expected.p,
                       found.n ? (int)(found.n < 800 ? found.n : 800) : 7,
                       found.n ? found.p : "nothing");
}

/* Accepts 2025-11-24T16:00:00Z, with or without a fraction, with Z or an offset. */
static bool is_stamp(sgi_json value)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    sgi_str text;
    if (!sgi_json_plain_string(value, &text) || text.n < sizeof shape)
        return false;
    for (size_t i = 0; i < sizeof shape - 1; i++)
        if (shape[i] == 'd' ? !isdigit((unsigned char)text.p[i]) : text.p[i] != shape[i])
            return false;
    char last = text.p[text.n - 1];
    return last == 'Z' || text.p[text.n - 6] == '+' || text.p[text.n - 6] == '-';
}

/* Returns 1 when the value matches, 0 when it does not match, -1 when there is no such
 * matcher. */
static int matches_kind(sgi_str name, sgi_json value)
{
    sgi_json_kind kind = sgi_json_kind_of(value);
    char text[16];
    int64_t number;
    snprintf(text, sizeof text, "%.*s", (int)name.n, name.p);
    if (!strcmp(text, "any"))
        return kind != SGI_JSON_NONE;
    if (!strcmp(text, "string"))
        return kind == SGI_JSON_STRING && value.n > 2;
    if (!strcmp(text, "integer"))
        return sgi_json_read_int(value, &number);
    if (!strcmp(text, "object"))
        return kind == SGI_JSON_OBJECT;
    if (!strcmp(text, "array"))
        return kind == SGI_JSON_ARRAY;
    if (!strcmp(text, "stamp"))
        return is_stamp(value);
    return -1;
}

static char *match(bindings *b, sgi_json pattern, sgi_json found, const char *at);

static char *match_name(bindings *b, sgi_str name, sgi_json pattern, sgi_json found,
                        const char *at)
{
    int is = matches_kind(name, found);
    sgi_json bound = bindings_get(b, name);
    if (is >= 0)
        return is ? NULL : differ(at, pattern, found);
    if (bound.n)
        return match(b, bound, found, at);
    if (!found.n)
        return differ(at, pattern, found);
    bindings_set(b, name, found);
    return NULL;
}

/* Appends the decoded text of a string that is given without its quotes. */
static void decode_inner(sgi_str inner, sgi_buf *out)
{
    char *quoted = vector_text("\"%.*s\"", (int)inner.n, inner.p);
    sgi_json_decode((sgi_json){quoted, inner.n + 2}, out);
    free(quoted);
}

/* Returns the decoded text of a string; the caller frees the text. */
static char *decoded(sgi_str inner)
{
    sgi_buf out;
    sgi_buf_init(&out, &sgi_mem_libc);
    decode_inner(inner, &out);
    char *text = strndup(out.len ? out.p : "", out.len);
    sgi_buf_free(&out);
    return text;
}

static char *match_string(sgi_json pattern, sgi_json found, const char *at)
{
    sgi_str inner = {pattern.p + 1, pattern.n - 2};
    sgi_buf text; /* the decoded text may hold NUL */
    if (inner.n > 1 && inner.p[0] == '$')
        inner = (sgi_str){inner.p + 1, inner.n - 1};
    sgi_buf_init(&text, &sgi_mem_libc);
    decode_inner(inner, &text);
    bool same = sgi_json_kind_of(found) == SGI_JSON_STRING &&
                sgi_json_string_is(found, (sgi_str){text.len ? text.p : "", text.len});
    sgi_buf_free(&text);
    return same ? NULL : differ(at, pattern, found);
}

/* Returns whether another key of the pattern takes the member: a literal, or a bound
 * name. */
static bool is_taken(const bindings *b, sgi_json pattern, sgi_str name, sgi_json quoted)
{
    sgi_json_member other;
    for (size_t at = 0; sgi_json_next_member(pattern, &at, &other);) {
        sgi_str inner = {quoted.p + 1, quoted.n - 2};
        if (is_name(other.key)) {
            sgi_str its = {other.key.p + 1, other.key.n - 1};
            sgi_json bound = bindings_get(b, its);
            if (bound.n == quoted.n && memcmp(bound.p, quoted.p, quoted.n) == 0 &&
                (its.n != name.n || memcmp(its.p, name.p, name.n) != 0))
                return true;
        } else if (other.key.n == inner.n && memcmp(other.key.p, inner.p, inner.n) == 0) {
            return true;
        }
    }
    return false;
}

/* Matches a key that is a name with the first member that no other key takes. */
static char *match_key(bindings *b, sgi_json pattern, sgi_json found, sgi_str name,
                       sgi_json_member *taken)
{
    sgi_json bound = bindings_get(b, name);
    for (size_t at = 0; sgi_json_next_member(found, &at, taken);) {
        sgi_json quoted = {taken->key.p - 1, taken->key.n + 2};
        bool is_other =
            bound.n && (bound.n != quoted.n || memcmp(bound.p, quoted.p, quoted.n) != 0);
        if (is_other || is_taken(b, pattern, name, quoted))
            continue;
        if (!bound.n)
            bindings_set(b, name, quoted);
        return NULL;
    }
    return vector_text("no member is $%.*s", (int)name.n, name.p);
}

static char *match_members(bindings *b, sgi_json pattern, sgi_json found, const char *at,
                           size_t *count)
{
    sgi_json_member member, taken;
    char *wrong = NULL;
    for (size_t i = 0; !wrong && sgi_json_next_member(pattern, &i, &member);) {
        if (sgi_json_key_is(&member, MORE))
            continue;
        char *key = decoded(member.key);
        char *path = vector_text("%s%s%s", at, *at ? "." : "", key);
        sgi_json value = sgi_json_get(found, key);
        if (is_name(member.key)) {
            wrong = match_key(b, pattern, found,
                              (sgi_str){member.key.p + 1, member.key.n - 1}, &taken);
            value = wrong ? value : taken.value;
        }
        ++*count;
        if (!wrong)
            wrong = match(b, member.value, value, path);
        free(path);
        free(key);
    }
    return wrong;
}

static char *match_object(bindings *b, sgi_json pattern, sgi_json found, const char *at)
{
    size_t expected = 0, there = 0;
    sgi_json_member member;
    if (sgi_json_kind_of(found) != SGI_JSON_OBJECT)
        return differ(at, pattern, found);
    char *wrong = match_members(b, pattern, found, at, &expected);
    if (wrong || sgi_json_get(pattern, MORE).n)
        return wrong;
    for (size_t i = 0; sgi_json_next_member(found, &i, &member);)
        there++;
    return there == expected ? NULL : differ(at, pattern, found);
}

static char *match_array(bindings *b, sgi_json pattern, sgi_json found, const char *at)
{
    sgi_json expected, item;
    size_t i = 0, j = 0, n = 0;
    char *wrong = NULL;
    if (sgi_json_kind_of(found) != SGI_JSON_ARRAY)
        return differ(at, pattern, found);
    for (; !wrong && sgi_json_next_item(pattern, &i, &expected); n++) {
        if (sgi_json_string_is(expected, (sgi_str){MORE, sizeof MORE - 1}))
            return NULL;
        char *path = vector_text("%s.%d", at, (int)n);
        wrong = sgi_json_next_item(found, &j, &item)
                    ? match(b, expected, item, path)
                    : differ(path, expected, (sgi_str){0});
        free(path);
    }
    if (!wrong && sgi_json_next_item(found, &j, &item))
        wrong = differ(at, pattern, found);
    return wrong;
}

static char *match(bindings *b, sgi_json pattern, sgi_json found, const char *at)
{
    sgi_str name;
    int64_t one, other;
    if (name_of(pattern, &name))
        return match_name(b, name, pattern, found, at);
    switch (sgi_json_kind_of(pattern)) {
    case SGI_JSON_OBJECT:
        return match_object(b, pattern, found, at);
    case SGI_JSON_ARRAY:
        return match_array(b, pattern, found, at);
    case SGI_JSON_STRING:
        return match_string(pattern, found, at);
    default:
        break;
    }
    bool same = pattern.n == found.n && memcmp(pattern.p, found.p, found.n) == 0;
    if (!same && sgi_json_read_int(pattern, &one) && sgi_json_read_int(found, &other))
        same = one == other;
    return same ? NULL : differ(at, pattern, found);
}

char *vector_match(bindings *b, sgi_json pattern, sgi_json message)
{
    return match(b, pattern, message, "");
}
