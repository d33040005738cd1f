/* The texts of OAuth that strangers write and that are not JSON: a challenge, a URL, a
 * form. The same bytes are tried as each. A part found in a challenge must be in its
 * text. A URL is put together again from its parts. A value read from a form can be
 * written into a form and found there again. */
#include "support/fuzz_input.h"
#include "wire/challenge.h"
#include "wire/form.h"
#include "wire/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_challenge(sgi_str text)
{
    static const char *const names[] = {"scope", "error", "resource_metadata"};
    sgi_buf value;
    sgi_buf_init(&value, &sgi_mem_libc);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool found = sgi_challenge_find(text, names[i], &value);
        fuzz_check(value.len <= text.n);
        fuzz_check(found || !value.len);
    }
    sgi_buf_free(&value);
}

static void try_url(sgi_str text)
{
    sgi_url url, again;
    sgi_buf whole;
    if (!sgi_url_parse(text, &url))
        return;
    sgi_buf_init(&whole, &sgi_mem_libc);
    sgi_buf_add_str(&whole, url.origin);
    sgi_buf_add_str(&whole, url.path);
    if (url.query.p)
        sgi_buf_add_lit(&whole, "?");
    sgi_buf_add_str(&whole, url.query);
    fuzz_check(whole.len <= text.n && !memcmp(whole.p, text.p, whole.len));
    fuzz_check(url.has_fragment ? text.p[whole.len] == '#' : whole.len == text.n);
    fuzz_check(sgi_url_parse(sgi_buf_str(&whole), &again));
    fuzz_check(sgi_url_same_origin(&url, &again));
    fuzz_check(url.port != 0 && url.host.n);
    sgi_buf_reset(&whole, SIZE_MAX);
    if (sgi_url_resolve_location(&url, url.path, &whole))
        fuzz_check(sgi_url_parse(sgi_buf_str(&whole), &again) &&
                   sgi_url_same_origin(&url, &again));
    sgi_buf_free(&whole);
}

static void try_form(sgi_str text)
{
    sgi_buf value, again, form;
    sgi_buf_init(&value, &sgi_mem_libc);
    sgi_buf_init(&again, &sgi_mem_libc);
    sgi_buf_init(&form, &sgi_mem_libc);
    if (sgi_url_form_find(text, "a", &value) == SGI_FORM_ONE) {
        sgi_url_form_add(&form, "a", sgi_buf_str(&value));
        fuzz_check(sgi_url_form_find(sgi_buf_str(&form), "a", &again) == SGI_FORM_ONE);
        fuzz_check(sgi_str_eq(sgi_buf_str(&value), sgi_buf_str(&again)));
    }
    sgi_buf_free(&value);
    sgi_buf_free(&again);
    sgi_buf_free(&form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* a copy of exact size, so a sanitizer sees reads beyond its end */
    char *copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, data, size);
    try_challenge((sgi_str){copy, size});
    try_url((sgi_str){copy, size});
    try_form((sgi_str){copy, size});
    free(copy);
    return 0;
}
