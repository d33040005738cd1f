/* URI templates: which texts are valid, what matches, and the values of their
 * variables. */
#include "wire/uri_template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void refuses_what_it_does_not_know(void **state)
{
    static const char *const bad[] = {
        "",          "a{",      "a}",    "a{}",  "{a",    "{a}{b}",
        "{+a}/{+b}", "{a}/{a}", "{a,b}", "{?q}", "{#f}",  "{/p}",
        "{a*}",      "{a:3}",   "{a b}", "{+}",  "{{a}}", "x{a}y}",
    };
    sgi_uri_template t;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(sgi_uri_template_read(&t, sgi_str_of(bad[i])));
    char many[17 * 4 + 1] = "";
    for (int i = 0; i < 17; i++)
        snprintf(many + i * 4, 5, "{%c}/", 'a' + i);
    assert_non_null(sgi_uri_template_read(&t, sgi_str_of(many)));
    assert_null(sgi_uri_template_read(&t, (sgi_str){many, 16 * 4}));
    char *huge = malloc(SGI_URI_TEMPLATE_MAX + 1);
    memset(huge, 'a', SGI_URI_TEMPLATE_MAX + 1);
    assert_non_null(sgi_uri_template_read(&t, (sgi_str){huge, SGI_URI_TEMPLATE_MAX + 1}));
    assert_null(sgi_uri_template_read(&t, (sgi_str){huge, SGI_URI_TEMPLATE_MAX}));
    free(huge);
}

/* values: the expected values, joined by '|', or NULL when the URI must not match. */
typedef struct row {
    const char *text;
    const char *uri;
    const char *values;
} row;

static const row rows[] = {
    {"plain", "plain", ""},
    {"plain", "plainer", NULL},
    {"{a}", "x", "x"},
    {"{a}", "", NULL},
    {"{a}", "x/y", NULL},
    {"{+a}", "x/y?z#", "x/y?z#"},
    {"test://template/{id}/data", "test://template/123/data", "123"},
    {"test://template/{id}/data", "test://template//data", NULL},
    {"test://template/{id}/data", "test://template/1/2/data", NULL},
    {"test://template/{id}/data", "test://template/123/dat", NULL},
    {"test://template/{id}/data", "test://template/123/data/", NULL},
    {"{y}-{m}", "2026-07", "2026|07"},
    {"{y}-{m}", "2026-07-28", "2026|07-28"}, /* the left variable takes as little as
                                              * possible */
    {"{y}-{m}/{d}", "2026-07-28/1", "2026|07-28|1"},
    {"file:///{+path}/{name}", "file:///a/b/c.txt", "a/b|c.txt"},
    {"file:///{+path}/{name}", "file:///c.txt", NULL},
    {"file:///{+path}.{ext}", "file:///a.b/c.d.e", "a.b/c.d|e"},
    {"{s}://{+rest}", "http://x/y?z", "http|x/y?z"},
    {"{a}ab{b}/x", "aababc/x", "a|abc"},
    {"{a}ab{b}", "ab", NULL},
    {"{a}aab{b}", "xaaab1", "xa|1"},
    {"{+p}/{a}-{b}/z", "m/n/1-2/z", "m/n|1|2"},
    {"{+p}/{a}-{b}/z", "m/n/1-2-3/z", "m/n|1-2|3"}, /* here the right variable takes as
                                                     * little as possible */
    {"x{+p}x", "xx", NULL},
    {"x{+p}x", "xxx", "x"},
    {"a{+p}aa", "aaa", NULL},
    {"{a}%20{b}", "1%202", "1|2"},
};

static void check_row(const row *r)
{
    sgi_uri_template t;
    sgi_str values[SGI_URI_VARIABLES_MAX];
    char seen[128] = "";
    assert_null(sgi_uri_template_read(&t, sgi_str_of(r->text)));
    bool matched = sgi_uri_template_match(&t, sgi_str_of(r->uri), values);
    for (size_t i = 0; matched && i < t.count; i++) {
        size_t used = strlen(seen);
        snprintf(seen + used, sizeof seen - used, "%s%.*s", i ? "|" : "",
                 (int)values[i].n, values[i].p);
    }
    if (matched != (r->values != NULL) || (matched && strcmp(seen, r->values) != 0))
        fail_msg("%s of %s: %s", r->text, r->uri, matched ? seen : "no match");
}

static void matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

static void names_are_views(void **state)
{
    sgi_uri_template t;
    (void)state;
    assert_null(sgi_uri_template_read(&t, SGI_STR("a{one}b{+two.x}")));
    assert_int_equal(t.count, 2);
    assert_true(sgi_str_eq(t.parts[0].name, SGI_STR("one")));
    assert_true(sgi_str_eq(t.parts[1].name, SGI_STR("two.x")));
    assert_true(t.parts[1].reserved);
}

static void long_uris_do_not_match(void **state)
{
    sgi_uri_template t;
    sgi_str value;
    (void)state;
    char *uri = malloc(SGI_URI_MAX + 1);
    memset(uri, 'a', SGI_URI_MAX + 1);
    assert_null(sgi_uri_template_read(&t, SGI_STR("{a}")));
    assert_true(sgi_uri_template_match(&t, (sgi_str){uri, SGI_URI_MAX}, &value));
    assert_int_equal(value.n, SGI_URI_MAX);
    assert_false(sgi_uri_template_match(&t, (sgi_str){uri, SGI_URI_MAX + 1}, &value));
    free(uri);
}

static const char *decoded(const char *value, char *room)
{
    sgi_buf out;
    sgi_buf_init(&out, &sgi_mem_libc);
    bool ok = sgi_uri_decode(sgi_str_of(value), &out);
    memcpy(room, out.p ? out.p : "", out.len);
    room[out.len] = 0;
    sgi_buf_free(&out);
    return ok ? room : NULL;
}

static void decodes(void **state)
{
    char room[64];
    (void)state;
    assert_string_equal(decoded("plain", room), "plain");
    assert_string_equal(decoded("a%2Fb%c3%A9", room), "a/b\xc3\xa9");
    assert_string_equal(decoded("%41%4a", room), "AJ");
    assert_null(decoded("%", room));
    assert_null(decoded("%4", room));
    assert_null(decoded("a%4", room));
    assert_null(decoded("%g0", room));
    assert_null(decoded("%0g", room));
    assert_null(decoded("%00", room));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(matches),
        cmocka_unit_test(names_are_views),
        cmocka_unit_test(long_uris_do_not_match),
        cmocka_unit_test(decodes),
    };
    return cmocka_run_group_tests_name("uri_template", tests, NULL, NULL);
}
