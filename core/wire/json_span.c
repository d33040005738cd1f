/* The functions that walk and read the values of an accepted text. They validate nothing:
 * brackets are counted, and a string ends at the first quote without a backslash before
 * it. Every step stays inside the span and moves forward. Therefore a text that was never
 * validated can give wrong values, but it causes no read outside of the span and no
 * endless loop.
 *
 * Strings are compared without decoding them as a whole: plain runs are compared
 * unchanged, and each escape as its UTF-8 of at most four bytes. Numbers are decimal
 * text: digits with leading and trailing zeros removed, and a power of ten. */
#include "wire/json_read.h"
#include "wire/json_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The number of digits that strtod needs. A number halfway between two doubles has fewer
 * digits. Of the digits after the first 800, it only matters whether all of them are
 * zero. */
#define MAX_DIGITS 800

static const unsigned char *span_start(sgi_str span)
{
    return (const unsigned char *)span.p;
}

static sgi_str span_of(const unsigned char *p, const unsigned char *end)
{
    return (sgi_str){(const char *)p, (size_t)(end - p)};
}

/* Skips a string. p: the position after the opening quote. Returns the position after the
 * closing quote. *escaped becomes true when the string contains a backslash. */
static inline const unsigned char *skip_string(const unsigned char *p,
                                               const unsigned char *end, bool *escaped)
{
    for (*escaped = false;; *escaped = true) {
        p = sgi_json_scan(p, end, sgi_json_block_quote, sgi_json_is_quote);
        if (p == end)
            return end;
        if (*p == '"')
            return p + 1;
        p = end - p < 2 ? end : p + 2;
    }
}

static bool ends_scalar(unsigned char c)
{
    return c == ',' || c == ']' || c == '}' || sgi_json_is_space(c);
}

static const unsigned char *skip_value(const unsigned char *p, const unsigned char *end)
{
    bool escaped;
    if (p == end)
        return end;
    if (*p == '"')
        return skip_string(p + 1, end, &escaped);
    if (*p != '{' && *p != '[') {
        while (p < end && !ends_scalar(*p))
            p++;
        return p;
    }
    size_t depth = 0;
    while ((p = sgi_json_scan(p, end, sgi_json_block_bracket, sgi_json_is_bracket)) <
           end) {
        unsigned char c = *p++;
        if (c == '"')
            p = skip_string(p, end, &escaped);
        else if (c == '{' || c == '[')
            depth++;
        else if (--depth == 0)
            return p;
    }
    return end;
}

sgi_json sgi_json_trim(sgi_str text)
{
    while (text.n && sgi_json_is_space((unsigned char)text.p[text.n - 1]))
        text.n--;
    while (text.n && sgi_json_is_space((unsigned char)text.p[0])) {
        text.p++;
        text.n--;
    }
    return text;
}

static const char text_block_head[] = "{\"type\":\"text\",\"text\":\"";
#define TEXT_BLOCK_HEAD (sizeof text_block_head - 1)

bool sgi_json_begins_text_block(sgi_str text)
{
    return text.n > TEXT_BLOCK_HEAD &&
           memcmp(text.p, text_block_head, TEXT_BLOCK_HEAD) == 0;
}

size_t sgi_json_text_block(sgi_str text, sgi_str *inner)
{
    if (!sgi_json_begins_text_block(text))
        return 0;
    const unsigned char *end = span_start(text) + text.n;
    const unsigned char *from = span_start(text) + TEXT_BLOCK_HEAD;
    /* memchr is the fastest search, but it also finds an escaped quote */
    const unsigned char *quote = memchr(from, '"', (size_t)(end - from));
    bool escaped;
    if (quote && quote[-1] == '\\')
        quote = skip_string(from, end, &escaped) - 1;
    if (!quote || end - quote < 2 || quote[1] != '}')
        return 0;
    *inner = span_of(from, quote);
    return (size_t)(quote + 2 - span_start(text));
}

/* Skips an item of an array. Text blocks are skipped in one step, because most items of
 * most arrays are text blocks. */
static const unsigned char *skip_item(const unsigned char *p, const unsigned char *end)
{
    sgi_str inner;
    size_t block = sgi_json_text_block(span_of(p, end), &inner);
    return block ? p + block : skip_value(p, end);
}

/* Takes the value from p to stop. *at receives the offset of the next value, after the
 * comma. */
static bool next_value(sgi_json whole, const unsigned char *p, const unsigned char *stop,
                       size_t *at, sgi_json *value)
{
    const unsigned char *end = span_start(whole) + whole.n;
    if (stop == p)
        return false;
    *value = span_of(p, stop);
    stop = sgi_json_skip_space(stop, end);
    if (stop < end && *stop == ',')
        stop++;
    *at = (size_t)(stop - span_start(whole));
    return true;
}

/* Returns the next byte of the container `whole` that is not white space, from offset
 * `at` on. Returns NULL at the end, or when `whole` does not begin with `opener`. */
static const unsigned char *next_start(sgi_json whole, size_t at, char opener)
{
    if (at >= whole.n || whole.p[0] != opener)
        return NULL;
    const unsigned char *end = span_start(whole) + whole.n;
    const unsigned char *p = sgi_json_skip_space(span_start(whole) + (at ? at : 1), end);
    return p < end ? p : NULL;
}

bool sgi_json_next_member(sgi_json object, size_t *at, sgi_json_member *member)
{
    const unsigned char *p = next_start(object, *at, '{');
    if (!p || *p != '"')
        return false;
    const unsigned char *end = span_start(object) + object.n;
    const unsigned char *key = p + 1;
    sgi_json_member found;
    p = skip_string(key, end, &found.escaped);
    if (p == key)
        return false;
    found.key = span_of(key, p - 1);
    p = sgi_json_skip_space(p, end);
    if (p == end)
        return false;
    p = sgi_json_skip_space(p + 1, end);
    size_t before = *at;
    (void)before;
    if (!next_value(object, p, skip_value(p, end), at, &found.value))
        return false;
    SGI_WORK(*at - before);
    *member = found;
    return true;
}

bool sgi_json_next_item(sgi_json array, size_t *at, sgi_json *item)
{
    const unsigned char *end = span_start(array) + array.n;
    const unsigned char *p = next_start(array, *at, '[');
    size_t before = *at;
    (void)before;
    if (!p || !next_value(array, p, skip_item(p, end), at, item))
        return false;
    SGI_WORK(*at - before);
    return true;
}

static size_t put_utf8(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static uint32_t hex_unit(const unsigned char *p)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++)
        unit = unit << 4 | ((uint32_t)sgi_json_hex(p[i]) & 15);
    return unit;
}

/* Decodes the escape at *at into `out`, and moves *at past the escape. Returns the number
 * of bytes written to `out`. */
static size_t decode_escape(const unsigned char **at, const unsigned char *end,
                            char out[4])
{
    const unsigned char *p = *at;
    if (end - p < 2 || (p[1] == 'u' && end - p < 6)) {
        *at = end;
        return 0;
    }
    if (p[1] != 'u') {
        static const char letters[] = "\"\\/bfnrt";
        static const char meanings[] = "\"\\/\b\f\n\r\t";
        const char *letter = memchr(letters, p[1], sizeof letters - 1);
        out[0] = letter ? meanings[letter - letters] : (char)p[1];
        *at = p + 2;
        return 1;
    }
    uint32_t code = hex_unit(p + 2);
    *at = p + 6;
    if (code >= 0xd800 && code <= 0xdbff && end - p >= 12) {
        code = 0x10000 + ((code & 0x3ff) << 10) + (hex_unit(p + 8) & 0x3ff);
        *at = p + 12;
    }
    return put_utf8(code, out);
}

/* True when the text between the quotes of a string, in decoded form, equals `text`. */
static bool decoded_is(sgi_str inner, sgi_str text)
{
    const unsigned char *p = span_start(inner);
    const unsigned char *end = p + inner.n;
    while (p < end) {
        const unsigned char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t run = (size_t)((slash ? slash : end) - p);
        if (!sgi_str_skip(&text, (sgi_str){(const char *)p, run}))
            return false;
        if (!slash)
            break;
        char out[4];
        p = slash;
        size_t len = decode_escape(&p, end, out);
        if (!sgi_str_skip(&text, (sgi_str){out, len}))
            return false;
    }
    return text.n == 0;
}

static bool key_is(const sgi_json_member *member, sgi_str name)
{
    return member->escaped ? decoded_is(member->key, name)
                           : sgi_str_eq(member->key, name);
}

bool sgi_json_key_is(const sgi_json_member *member, const char *name)
{
    return key_is(member, sgi_str_of(name));
}

sgi_json sgi_json_get(sgi_json object, const char *name)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);)
        if (sgi_json_key_is(&member, name))
            return member.value;
    return (sgi_json){NULL, 0};
}

/* Stores the member's value in `found` if its name is one of `names`. `left` is the
 * number of names that are still to be found; returns the new number. */
static inline size_t pick_one(const sgi_json_member *member, const sgi_str *names,
                              size_t count, sgi_json *found, size_t left)
{
    for (size_t i = 0; i < count; i++)
        if (!found[i].n && key_is(member, names[i])) {
            found[i] = member->value;
            return left - 1;
        }
    return left;
}

void sgi_json_pick(sgi_json object, const sgi_str *names, size_t count, sgi_json *found)
{
    sgi_json_member member;
    size_t left = count;
    memset(found, 0, count * sizeof *found);
    for (size_t at = 0; left && sgi_json_next_member(object, &at, &member);)
        left = pick_one(&member, names, count, found, left);
}

void sgi_json_pick_part(const sgi_json_part *part, sgi_json object, const sgi_str *names,
                        size_t count, sgi_json *found)
{
    size_t left = count;
    if (!object.n || part->object.p != object.p || part->count > SGI_JSON_PART_MEMBERS) {
        sgi_json_pick(object, names, count, found);
        return;
    }
    memset(found, 0, count * sizeof *found);
    for (size_t k = 0; left && k < part->count; k++)
        left = pick_one(&part->members[k], names, count, found, left);
}

/* Stores the text between the quotes in *inner. Returns false when value is not a
 * string. */
static bool strip_quotes(sgi_json value, sgi_str *inner)
{
    if (value.n < 2 || value.p[0] != '"')
        return false;
    *inner = (sgi_str){value.p + 1, value.n - 2};
    return true;
}

bool sgi_json_string_is(sgi_json value, sgi_str text)
{
    sgi_str inner;
    if (!strip_quotes(value, &inner) || inner.n < text.n)
        return false;
    if (inner.n > text.n)
        return decoded_is(inner, text);
    /* each escape is longer than what it stands for, so there is none */
    return sgi_str_eq(inner, text) && (!text.n || !memchr(text.p, '\\', text.n));
}

bool sgi_json_decode(sgi_json value, sgi_buf *out)
{
    sgi_str inner;
    if (!strip_quotes(value, &inner))
        return false;
    if (!inner.n || !sgi_buf_reserve(out, inner.n))
        return true;
    /* decoded text is never longer than escaped text, so the reserved memory is enough */
    const unsigned char *p = span_start(inner);
    const unsigned char *end = p + inner.n;
    for (;;) {
        const unsigned char *slash = memchr(p, '\\', (size_t)(end - p));
        sgi_buf_add(out, p, (size_t)((slash ? slash : end) - p));
        if (!slash)
            return true;
        char bytes[4];
        p = slash;
        sgi_buf_add(out, bytes, decode_escape(&p, end, bytes));
    }
}

bool sgi_json_decode_without_nul(sgi_json value, sgi_buf *out)
{
    size_t mark = out->len;
    if (!sgi_json_decode(value, out))
        return false;
    if (out->failed || out->len == mark || !memchr(out->p + mark, 0, out->len - mark))
        return true;
    sgi_buf raw;
    sgi_buf_init(&raw, out->mem);
    sgi_buf_add(&raw, out->p + mark, out->len - mark);
    sgi_buf_shorten(out, mark);
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.p[i])
            sgi_buf_add_char(out, raw.p[i]);
        else
            sgi_buf_add_str(out, SGI_STR("\xef\xbf\xbd"));
    }
    out->failed |= raw.failed;
    sgi_buf_free(&raw);
    return true;
}

bool sgi_json_plain_string(sgi_json value, sgi_str *text)
{
    sgi_str inner;
    if (!strip_quotes(value, &inner) || (inner.n && memchr(inner.p, '\\', inner.n)))
        return false;
    *text = inner;
    return true;
}

/* The parts of a number. `digits` has `count` digits and can contain a point, which is
 * skipped. The number is the value of the digits times ten to the power of `exponent`.
 * Zero has no digits. */
typedef struct decimal {
    bool negative;
    const unsigned char *digits;
    const unsigned char *end;
    int64_t count;
    int64_t exponent;
} decimal;

/* The limit of an exponent. The limit is far beyond any double, and small enough that
 * adding the length of a text does not overflow int64_t. */
#define EXPONENT_LIMIT (INT64_C(1) << 40)

static int64_t parse_exponent(const unsigned char *p, const unsigned char *end)
{
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    int64_t exponent = 0;
    for (; p < end && exponent < EXPONENT_LIMIT; p++)
        exponent = exponent * 10 + (*p & 15);
    return negative ? -exponent : exponent;
}

static bool parse_decimal(sgi_json value, decimal *out)
{
    const unsigned char *p = span_start(value);
    if (!value.n || (*p != '-' && (*p < '0' || *p > '9')))
        return false;
    const unsigned char *end = p + value.n;
    *out = (decimal){.negative = *p == '-'};
    int64_t scale = 0; /* number of digits after the point */
    int64_t zeros = 0; /* number of zeros at the end of the digits so far */
    bool point = false;
    for (p += out->negative; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        scale += point;
        if (*p == '0') {
            zeros++;
            continue;
        }
        if (!out->count)
            out->digits = p;
        else
            out->count += zeros;
        out->count++;
        out->end = p + 1;
        zeros = 0;
    }
    if (!out->count)
        return true;
    out->exponent = zeros - scale;
    if (p < end)
        out->exponent += parse_exponent(p + 1, end);
    return true;
}

bool sgi_json_read_int(sgi_json value, int64_t *out)
{
    decimal d;
    /* the value of the digits, for the fast path; most integers have only a few digits */
    uint64_t plain = 0;
    size_t len = 0;
    for (; len < value.n && len < 19 && value.p[len] >= '0' && value.p[len] <= '9'; len++)
        plain = plain * 10 + (unsigned char)(value.p[len] & 15);
    if (len && len == value.n && len < 19) {
        *out = (int64_t)plain;
        return true;
    }
    if (!parse_decimal(value, &d) || (d.count && d.exponent < 0) ||
        d.count + d.exponent > 19)
        return false;
    uint64_t whole = 0; /* never overflows, because 19 digits always fit */
    for (const unsigned char *p = d.digits; p < d.end; p++)
        if (*p != '.')
            whole = whole * 10 + (*p & 15);
    for (int64_t i = 0; i < d.exponent; i++)
        whole *= 10;
    if (whole > (uint64_t)INT64_MAX + d.negative)
        return false;
    *out = (int64_t)(d.negative ? 0 - whole : whole);
    return true;
}

/* Reads a number as a double by strtod. strtod gets digits and an exponent without a
 * point, because it reads such a text alike in every locale. */
bool sgi_json_read_double(sgi_json value, double *out)
{
    decimal d;
    if (!parse_decimal(value, &d))
        return false;
    char text[MAX_DIGITS + 32];
    size_t len = 0;
    text[len++] = d.negative ? '-' : '+';
    text[len++] = '0';
    int64_t left = d.count;
    for (const unsigned char *p = d.digits; p < d.end && len < MAX_DIGITS; p++)
        if (*p != '.') {
            text[len++] = (char)*p;
            left--;
        }
    if (left) {
        /* the remaining digits are left out; the last digit of a number is never zero, so
         * a 1 stands for all of them */
        text[len++] = '1';
        left--;
    }
    snprintf(text + len, sizeof text - len, "e%lld", (long long)(d.exponent + left));
    double number = strtod(text, NULL);
    if (!isfinite(number))
        return false;
    *out = number;
    return true;
}

bool sgi_utf8_valid(sgi_str text, size_t *at)
{
    if (!text.n)
        return true;
    const unsigned char *start = span_start(text);
    const unsigned char *end = start + text.n;
    const unsigned char *p = start;
    while ((p = sgi_json_scan(p, end, sgi_json_block_wide, sgi_json_is_wide)) < end) {
        do {
            size_t len = sgi_json_utf8_length(p, end);
            if (!len) {
                if (at)
                    *at = (size_t)(p - start);
                return false;
            }
            p += len;
        } while (p < end && *p >= 0x80);
    }
    return true;
}
