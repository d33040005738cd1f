/* Which texts are URLs, which host they name, and which URL lies below another. The
 * library trusts a URL because of these checks, so every doubtful text is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/test_mem.h"
#include "wire/url.h"

static sgi_url parse(const char *text)
{
    sgi_url url;
    if (!sgi_url_parse(sgi_str_of(text), &url))
        fail_msg("%s is refused", text);
    return url;
}

static void is(sgi_str part, const char *text)
{
    if (!sgi_str_eq(part, sgi_str_of(text)))
        fail_msg("%.*s is not %s", (int)part.n, part.p ? part.p : "", text);
}

static void a_url_has_parts(void **state)
{
    (void)state;
    sgi_url url = parse("HTTPS://A.example:8443/b/c?d=e?f#g");
    is(url.origin, "HTTPS://A.example:8443");
    is(url.host, "A.example");
    is(url.path, "/b/c");
    is(url.query, "d=e?f");
    assert_int_equal(url.port, 8443);
    assert_true(url.https);
    assert_true(url.has_fragment);
    url = parse("http://[::1]");
    is(url.host, "[::1]");
    is(url.path, "");
    assert_null(url.query.p);
    assert_int_equal(url.port, 80);
    assert_false(url.https);
    assert_false(url.has_fragment);
    assert_int_equal(parse("https://a:").port, 443);
    is(parse("https://a?").query, "");
    assert_non_null(parse("https://a?").query.p);
}

static void what_is_no_plain_url_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "a",
        "//a/b",
        "/b",
        "ftp://a/",
        "javascript:alert(1)",
        "http:/a",
        "http://",
        "http:///b",
        "http://:80/",
        "http://a:b/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:123456/",
        "http://u@a/",
        "http://u:p@a/",
        "http://a@b@c/",
        "http://a b/",
        "http://a/b c",
        "http://a/\xc3\xa9",
        "http://a/\x7f",
        "http://a\n/",
        "http://a\\b/",
        "http://a/<b>",
        "http://[::1/",
        "http://[g]/",
        "http://[]/",
        "http://[::1]x/",
        "http://.a/",
        "http://a,b/",
    };
    sgi_url url;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (sgi_url_parse(sgi_str_of(bad[i]), &url))
            fail_msg("%s is let pass", bad[i]);
    assert_false(sgi_url_parse((sgi_str){"http://a/\0b", 11}, &url));
    char *text = malloc(SGI_URL_MAX + 1);
    memset(text, 'a', SGI_URL_MAX + 1);
    memcpy(text, "http://a/", 9);
    assert_true(sgi_url_parse((sgi_str){text, SGI_URL_MAX}, &url));
    assert_false(sgi_url_parse((sgi_str){text, SGI_URL_MAX + 1}, &url));
    free(text);
}

static void origins_are_scheme_host_and_port(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"https://a/x", "HTTPS://A:443/y", true}, {"http://a", "http://a:80", true},
        {"http://a", "https://a", false},         {"https://a", "https://a:444", false},
        {"https://a", "https://b", false},        {"https://a.b", "https://a", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_url a = parse(rows[i].a), b = parse(rows[i].b);
        assert_int_equal(sgi_url_same_origin(&a, &b), rows[i].same);
        assert_int_equal(sgi_url_same_origin(&b, &a), rows[i].same);
    }
}

static void this_machine_has_few_names(void **state)
{
    (void)state;
    static const char *const ours[] = {"http://localhost", "http://LOCALHOST:1/a",
                                       "http://127.0.0.1", "http://127.1.2.3",
                                       "http://[::1]:8/"};
    static const char *const others[] = {"http://localhost.a",  "http://127.0.0.1.a",
                                         "http://127.0.0.a",    "http://127.0.0",
                                         "http://127.0.0.",     "http://127.0.0.1.2",
                                         "http://127.0.0.1111", "http://128.0.0.1",
                                         "http://[::2]",        "http://a127.0.0.1"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        sgi_url url = parse(ours[i]);
        assert_true(sgi_url_is_loopback(&url));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        sgi_url url = parse(others[i]);
        if (sgi_url_is_loopback(&url))
            fail_msg("%s is taken for this machine", others[i]);
    }
}

static void a_resource_covers_what_is_below_it(void **state)
{
    (void)state;
    static const struct {
        const char *resource, *endpoint;
        bool covers;
    } rows[] = {
        {"https://a/mcp", "https://a/mcp", true},
        {"https://a/mcp/", "https://a/mcp", true},
        {"https://a/mcp", "https://a/mcp/", true},
        {"https://a", "https://a/mcp", true},
        {"https://a/", "https://a/mcp", true},
        {"https://a/m", "https://a/m/n/o", true},
        {"https://A:443/m", "https://a/m", true},
        {"https://a/mcp", "https://a/mcp2", false},
        {"https://a/mcp", "https://a/", false},
        {"https://a/mcp", "https://a", false},
        {"https://a/MCP", "https://a/mcp", false},
        {"https://a/mcp#x", "https://a/mcp", false},
        {"https://evil/mcp", "https://a/mcp", false},
        {"http://a/mcp", "https://a/mcp", false},
        {"https://a/m?x", "https://a/m?x", true},
        {"https://a/m?x", "https://a/m", false},
        {"https://a/m?x", "https://a/m?y", false},
        {"https://a/m", "https://a/m?x", true},
        {"https://a/m", "https://a/m/../n", false},
        {"https://a/m/..", "https://a/m/..", false},
        {"https://a/m", "https://a/m/%2e%2E/n", false},
        {"https://a/m", "https://a/m/.", false},
        {"https://a", "https://a/m/../n", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_url resource = parse(rows[i].resource), endpoint = parse(rows[i].endpoint);
        if (sgi_url_covers(&resource, &endpoint) != rows[i].covers)
            fail_msg("%s and %s", rows[i].resource, rows[i].endpoint);
    }
}

static void a_location_is_absolute_or_begins_with_a_slash(void **state)
{
    (void)state;
    static const struct {
        const char *location, *to; /* to: the resolved URL, or NULL when the reference
                                    * cannot be resolved. */
    } rows[] = {
        {"/c?d", "https://a:1/c?d"},
        {"http://b/c", "http://b/c"},
        {"//b/c", NULL},
        {"c", NULL},
        {"", NULL},
        {"../c", NULL},
        {"/c d", NULL},
        {"javascript:1", NULL},
    };
    test_mem tm;
    sgi_buf out;
    sgi_url from = parse("https://a:1/b?x");
    test_mem_init(&tm);
    sgi_buf_init(&out, &tm.mem);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_buf_reset(&out, SIZE_MAX);
        bool told = sgi_url_resolve_location(&from, sgi_str_of(rows[i].location), &out);
        assert_int_equal(told, rows[i].to != NULL);
        is(sgi_buf_str(&out), rows[i].to ? rows[i].to : "");
    }
    sgi_buf_free(&out);
    test_mem_rearm(&tm);
    tm.fail_from = 1;
    assert_false(sgi_url_resolve_location(&from, SGI_STR("/c"), &out));
    sgi_buf_free(&out);
    assert_int_equal(tm.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_parts),
        cmocka_unit_test(what_is_no_plain_url_is_none),
        cmocka_unit_test(origins_are_scheme_host_and_port),
        cmocka_unit_test(this_machine_has_few_names),
        cmocka_unit_test(a_resource_covers_what_is_below_it),
        cmocka_unit_test(a_location_is_absolute_or_begins_with_a_slash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
