/* Templates of URIs. When a URI matches a template, its values, put back, must make the
 * URI. A template must match its own expansion. When nothing matches, no way to cut the
 * URI into values may match (all ways are tried for small ones).
 *
 * Input: the template up to the first newline, then the URI. */
#include "support/fuzz_input.h"
#include "wire/uri_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_reserved(char c)
{
    return c && strchr(":/?#[]@!$&'()*+,;=", c);
}

static bool is_value(const sgi_uri_part *part, sgi_str value)
{
    for (size_t i = 0; i < value.n && !part->reserved; i++)
        if (is_reserved(value.p[i]))
            return false;
    return value.n > 0;
}

/* Tries every way, by recursion: for short texts only. */
static bool matches_somehow(const sgi_uri_template *t, size_t index, sgi_str rest)
{
    if (index == t->count)
        return !rest.n;
    const sgi_uri_part *part = &t->parts[index];
    for (size_t n = 1; n <= rest.n; n++) {
        sgi_str behind = {rest.p + n, rest.n - n};
        if (!is_value(part, (sgi_str){rest.p, n}))
            return false;
        if (behind.n >= part->text.n &&
            sgi_str_eq((sgi_str){behind.p, part->text.n}, part->text) &&
            matches_somehow(t, index + 1,
                            (sgi_str){behind.p + part->text.n, behind.n - part->text.n}))
            return true;
    }
    return false;
}

static void check_values(const sgi_uri_template *t, sgi_str uri, const sgi_str *values)
{
    sgi_buf again, decoded;
    sgi_buf_init(&again, &sgi_mem_libc);
    sgi_buf_init(&decoded, &sgi_mem_libc);
    sgi_buf_add_str(&again, t->text);
    for (size_t i = 0; i < t->count; i++) {
        fuzz_check(is_value(&t->parts[i], values[i]));
        sgi_buf_add_str(&again, values[i]);
        sgi_buf_add_str(&again, t->parts[i].text);
        sgi_buf_reset(&decoded, SIZE_MAX);
        if (sgi_uri_decode(values[i], &decoded))
            fuzz_check(decoded.len <= values[i].n && decoded.len > 0);
    }
    fuzz_check(sgi_str_eq(sgi_buf_str(&again), uri));
    sgi_buf_free(&again);
    sgi_buf_free(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char own[] = "v";
    sgi_uri_template t;
    sgi_str values[SGI_URI_VARIABLES_MAX];
    char *copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, data, size);
    char *end = size ? memchr(copy, '\n', size) : NULL;
    sgi_str text = {copy, end ? (size_t)(end - copy) : size};
    sgi_str uri = end ? (sgi_str){end + 1, size - text.n - 1} : (sgi_str){copy, 0};
    if (!sgi_uri_template_read(&t, text)) {
        bool matched = sgi_uri_template_match(&t, uri, values);
        bool fits = uri.n <= 24 && t.count <= 4;
        bool begins = uri.n >= t.text.n && sgi_str_eq((sgi_str){uri.p, t.text.n}, t.text);
        if (matched)
            check_values(&t, uri, values);
        else if (fits && begins)
            fuzz_check(
                !matches_somehow(&t, 0, (sgi_str){uri.p + t.text.n, uri.n - t.text.n}));
        sgi_buf made;
        sgi_buf_init(&made, &sgi_mem_libc);
        sgi_buf_add_str(&made, t.text);
        for (size_t i = 0; i < t.count; i++) {
            sgi_buf_add(&made, own, 1);
            sgi_buf_add_str(&made, t.parts[i].text);
        }
        fuzz_check(sgi_uri_template_match(&t, sgi_buf_str(&made), values));
        check_values(&t, sgi_buf_str(&made), values);
        sgi_buf_free(&made);
    }
    free(copy);
    return 0;
}
