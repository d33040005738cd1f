/* Compares an answer with the schema of its form. Schema or answer may come from an
 * attacker, and each member of the schema is compared with each member of the answer. So
 * the number of bytes that are read is limited. If the limit is exceeded while the schema
 * is read, no member is required. If the limit is exceeded while the answer is read, the
 * answer does not fit.
 *
 * Keywords outside the restricted subset (client/elicitation, "Requested Schema") are
 * ignored. `format` is also ignored: a handler that needs a valid address must try the
 * address in any case. A malformed part of the schema is not checked.
 *
 * Two strings with escapes that are spelt differently are decoded before they are
 * compared. When out of memory, they count as equal, because the handler gets the answer
 * in any case. */
#include "engine/input/answer_form.h"

/* The maximum number of bytes that are read for one answer: about 0.1 s of work. */
#define WALK_MAX ((size_t)64 << 20)

typedef struct form {
    const sgi_mem *mem;
    size_t left; /* number of bytes that may still be read; WALK_MAX at the beginning */
} form;

/* Counts bytes before they are read. Returns false when the maximum is exceeded. */
static bool walk(form *f, size_t bytes)
{
    bool may = bytes < f->left;
    f->left = may ? f->left - bytes - 1 : 0;
    return may;
}

/* ---- strings ---- */

static bool same_text(sgi_json a, sgi_json b, const sgi_mem *mem)
{
    sgi_str text;
    sgi_buf decoded;
    if (sgi_json_plain_string(a, &text))
        return sgi_json_string_is(b, text);
    if (sgi_json_plain_string(b, &text))
        return sgi_json_string_is(a, text);
    if (sgi_str_eq(a, b))
        return true;
    sgi_buf_init(&decoded, mem);
    bool same = !sgi_json_decode(a, &decoded) || decoded.failed ||
                sgi_json_string_is(b, sgi_buf_str(&decoded));
    sgi_buf_free(&decoded);
    return same;
}

static bool is_high_surrogate(const char *digits)
{
    return (digits[0] | 0x20) == 'd' &&
           ((digits[1] >= '8' && digits[1] <= '9') || (digits[1] | 0x20) == 'a' ||
            (digits[1] | 0x20) == 'b');
}

/* Returns the number of characters of a JSON string, which is given with its quotes. */
static int64_t length_of(sgi_json string)
{
    int64_t count = 0;
    size_t end = string.n - 1;
    for (size_t i = 1; i < end; count++) {
        if (string.p[i] != '\\') {
            for (i++; i < end && ((unsigned char)string.p[i] & 0xc0) == 0x80;)
                i++;
        } else if (string.p[i + 1] != 'u') {
            i += 2;
        } else {
            i += is_high_surrogate(string.p + i + 2) ? 12 : 6;
        }
    }
    return count;
}

/* ---- minimum and maximum ---- */

static bool is_within(sgi_json schema, const char *least, const char *most, int64_t n)
{
    int64_t bound;
    return !(sgi_json_read_int(sgi_json_get(schema, least), &bound) && n < bound) &&
           !(sgi_json_read_int(sgi_json_get(schema, most), &bound) && n > bound);
}

/* True when the number is within the schema's range. A number that is too large for a
 * double is above every maximum, or below every minimum. */
static bool is_in_range(sgi_json schema, sgi_json number)
{
    double n, least, most;
    bool has_least = sgi_json_read_double(sgi_json_get(schema, "minimum"), &least);
    bool has_most = sgi_json_read_double(sgi_json_get(schema, "maximum"), &most);
    if (!sgi_json_read_double(number, &n))
        return number.p[0] == '-' ? !has_least : !has_most;
    return !(has_least && n < least) && !(has_most && n > most);
}

/* True for a whole number. A double that is too large for 64 bits is always whole. */
static bool is_whole(sgi_json number)
{
    int64_t whole;
    double n;
    return sgi_json_read_int(number, &whole) || !sgi_json_read_double(number, &n) ||
           n > 9.3e18 || n < -9.3e18;
}

/* ---- lists of choices ---- */

/* True when the value is one of the options. An option is a string, or an object whose
 * member "const" is a string. */
static bool is_one_of(sgi_json options, sgi_json value, form *f)
{
    sgi_json option;
    if (sgi_json_kind_of(options) != SGI_JSON_ARRAY)
        return true;
    if (!walk(f, options.n + value.n))
        return false;
    for (size_t at = 0; sgi_json_next_item(options, &at, &option);) {
        if (sgi_json_kind_of(option) == SGI_JSON_OBJECT)
            option = sgi_json_get(option, "const");
        if (sgi_json_kind_of(option) == SGI_JSON_STRING &&
            same_text(option, value, f->mem))
            return true;
    }
    return false;
}

static bool text_fits(sgi_json schema, sgi_json value, form *f)
{
    return sgi_json_kind_of(value) == SGI_JSON_STRING &&
           is_within(schema, "minLength", "maxLength", length_of(value)) &&
           is_one_of(sgi_json_get(schema, "enum"), value, f) &&
           is_one_of(sgi_json_get(schema, "oneOf"), value, f) &&
           is_one_of(sgi_json_get(schema, "anyOf"), value, f);
}

static bool list_fits(sgi_json schema, sgi_json value, form *f)
{
    sgi_json items = sgi_json_get(schema, "items");
    sgi_json item;
    int64_t count = 0;
    if (sgi_json_kind_of(value) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; sgi_json_next_item(value, &at, &item); count++)
        if (!walk(f, items.n) || !text_fits(items, item, f))
            return false;
    return is_within(schema, "minItems", "maxItems", count);
}

/* ---- the whole form ---- */

static bool field_fits(sgi_json schema, sgi_json value, form *f)
{
    sgi_json type = sgi_json_get(schema, "type");
    sgi_json_kind kind = sgi_json_kind_of(value);
    if (sgi_json_string_is(type, SGI_STR("string")))
        return text_fits(schema, value, f);
    if (sgi_json_string_is(type, SGI_STR("boolean")))
        return kind == SGI_JSON_TRUE || kind == SGI_JSON_FALSE;
    if (sgi_json_string_is(type, SGI_STR("number")))
        return kind == SGI_JSON_NUMBER && is_in_range(schema, value);
    if (sgi_json_string_is(type, SGI_STR("integer")))
        return kind == SGI_JSON_NUMBER && is_whole(value) && is_in_range(schema, value);
    if (sgi_json_string_is(type, SGI_STR("array")))
        return list_fits(schema, value, f);
    return true;
}

/* Returns the key of a member with its quotes. */
static sgi_json name_of(const sgi_json_member *member)
{
    return (sgi_json){member->key.p - 1, member->key.n + 2};
}

static sgi_json schema_of(sgi_json properties, sgi_json name, const sgi_mem *mem)
{
    sgi_json_member member;
    if (sgi_json_kind_of(properties) != SGI_JSON_OBJECT)
        return (sgi_json){0};
    for (size_t at = 0; sgi_json_next_member(properties, &at, &member);)
        if (same_text(name_of(&member), name, mem))
            return member.value;
    return (sgi_json){0};
}

/* True when the name is among the first `most` items of `required`. */
static bool is_listed(sgi_json required, size_t most, sgi_json name, const sgi_mem *mem)
{
    sgi_json one;
    for (size_t at = 0; most-- && sgi_json_next_item(required, &at, &one);)
        if (sgi_json_kind_of(one) == SGI_JSON_STRING && same_text(one, name, mem))
            return true;
    return false;
}

/* Counts the different names in `required`. Returns false when the maximum of bytes to
 * read is exceeded. */
static bool count_required(sgi_json required, form *f, size_t *count)
{
    sgi_json one;
    *count = 0;
    for (size_t at = 0, i = 0; sgi_json_next_item(required, &at, &one); i++) {
        if (!walk(f, at))
            return false;
        *count += sgi_json_kind_of(one) == SGI_JSON_STRING &&
                  !is_listed(required, i, one, f->mem);
    }
    return true;
}

/* True when the content fits the schema. content: an object, null or empty (some clients
 * write null for a missing content). The content is read only once, because it can be
 * large. */
static bool form_fits(sgi_json schema, sgi_json content, const sgi_mem *mem)
{
    form f = {mem, WALK_MAX};
    sgi_json properties = sgi_json_get(schema, "properties");
    sgi_json required = sgi_json_get(schema, "required");
    sgi_json_member given;
    if (sgi_json_kind_of(required) != SGI_JSON_ARRAY)
        required = SGI_STR("[]");
    size_t missing;
    if (!count_required(required, &f, &missing))
        return true;
    for (size_t at = 0; content.n && sgi_json_next_member(content, &at, &given);) {
        if (!walk(&f, properties.n + required.n + given.value.n))
            return false;
        bool is_required = is_listed(required, SIZE_MAX, name_of(&given), mem);
        bool is_none = sgi_json_kind_of(given.value) == SGI_JSON_NULL && !is_required;
        sgi_json field = schema_of(properties, name_of(&given), mem);
        if (!is_none && sgi_json_kind_of(field) == SGI_JSON_OBJECT &&
            !field_fits(field, given.value, &f))
            return false;
        missing -= is_required && missing;
    }
    return !missing;
}

/* ---- the shape of an answer ---- */

static bool has_action(sgi_json answer)
{
    sgi_json action = sgi_json_get(answer, "action");
    sgi_json content = sgi_json_get(answer, "content");
    bool is_form = !content.n || sgi_json_kind_of(content) == SGI_JSON_OBJECT;
    if (sgi_json_string_is(action, SGI_STR("accept")))
        return is_form;
    return (sgi_json_string_is(action, SGI_STR("decline")) ||
            sgi_json_string_is(action, SGI_STR("cancel"))) &&
           (is_form || sgi_json_kind_of(content) == SGI_JSON_NULL);
}

/* True when the answer has a content: one block, or in versions since 2025-11-25 an array
 * of blocks. */
static bool has_content(sgi_json answer)
{
    sgi_json_kind content = sgi_json_kind_of(sgi_json_get(answer, "content"));
    return content == SGI_JSON_OBJECT || content == SGI_JSON_ARRAY;
}

bool sgi_answer_is_valid(sgi_str method, sgi_json answer)
{
    if (sgi_json_kind_of(answer) != SGI_JSON_OBJECT)
        return false;
    if (sgi_str_eq(method, SGI_STR("elicitation/create")))
        return has_action(answer);
    if (sgi_str_eq(method, SGI_STR("sampling/createMessage")))
        return has_content(answer);
    if (sgi_str_eq(method, SGI_STR("roots/list")))
        return sgi_json_kind_of(sgi_json_get(answer, "roots")) == SGI_JSON_ARRAY;
    return true;
}

bool sgi_answer_fits_form(sgi_json schema, sgi_json answer, const sgi_mem *mem)
{
    sgi_json action = sgi_json_get(answer, "action");
    return !sgi_json_string_is(action, SGI_STR("accept")) ||
           sgi_json_kind_of(schema) != SGI_JSON_OBJECT ||
           form_fits(schema, sgi_json_get(answer, "content"), mem);
}
