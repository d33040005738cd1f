/* Key sets: which keys are used, which keys are left out, and which texts are not key
 * sets. Also lists of scopes, which a gate uses with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/test_mem.h"
#include "support/token_maker.h"
#include "wire/jwk.h"
#include "wire/scopes.h"

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static segue_hooks hooks = {.random = no_chance};
static token_key rsa, weak, p256, p384, p521, ed;

typedef struct bench {
    test_mem mem;
    sgi_env env;
    sgi_json_reader reader;
    sgi_jwks set;
} bench;

static void begin(bench *b)
{
    test_mem_init(&b->mem);
    b->env = (sgi_env){&b->mem.mem, &hooks};
    sgi_json_reader_init(&b->reader, &b->env, 1 << 20, 64);
    sgi_jwks_init(&b->set, &b->mem.mem);
}

static void end(bench *b)
{
    sgi_jwks_free(&b->set);
    sgi_json_reader_free(&b->reader);
    assert_int_equal(b->mem.live, 0);
}

static bool read_set(bench *b, const char *text)
{
    const char *problem = NULL;
    bool ok = sgi_jwks_read(&b->set, &b->reader, sgi_str_of(text), &problem);
    assert_int_equal(ok, problem == NULL);
    return ok;
}

/* Returns how many keys remain of a set of one. */
static size_t count_of(bench *b, const token_key *key, const char *more)
{
    char text[4096];
    char *jwk = token_key_jwk(key, more);
    snprintf(text, sizeof text, "{\"keys\":[%s]}", jwk);
    free(jwk);
    assert_true(read_set(b, text));
    return b->set.count;
}

static const sgi_jwk *find(bench *b, sgi_crypto_scheme scheme, const char *kid)
{
    size_t at = 0;
    return sgi_jwks_find_next(&b->set, scheme, sgi_str_of(kid), &at);
}

static void keys_are_used_for_what_they_are_made_for(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    assert_int_equal(count_of(&b, &rsa, ""), 1);
    assert_non_null(find(&b, SGI_CRYPTO_RS256, "rsa"));
    assert_non_null(find(&b, SGI_CRYPTO_PS512, NULL));
    assert_null(find(&b, SGI_CRYPTO_ES256, NULL));
    assert_null(find(&b, SGI_CRYPTO_RS256, "other"));
    assert_int_equal(count_of(&b, &rsa, ",\"alg\":\"PS256\",\"use\":\"sig\""), 1);
    assert_non_null(find(&b, SGI_CRYPTO_PS256, "rsa"));
    assert_null(find(&b, SGI_CRYPTO_RS256, "rsa"));
    assert_int_equal(count_of(&b, &p256, ",\"key_ops\":[\"verify\"]"), 1);
    assert_non_null(find(&b, SGI_CRYPTO_ES256, "ec"));
    assert_null(find(&b, SGI_CRYPTO_ES384, "ec"));
    assert_int_equal(count_of(&b, &p384, ""), 1);
    assert_non_null(find(&b, SGI_CRYPTO_ES384, NULL));
    assert_int_equal(count_of(&b, &ed, ",\"alg\":\"Ed25519\""), 1);
    assert_non_null(find(&b, SGI_CRYPTO_EDDSA, NULL));
    end(&b);
}

static void what_is_no_good_is_left_out(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    assert_int_equal(count_of(&b, &weak, ""), 0);
    assert_int_equal(count_of(&b, &p521, ""), 0);
    assert_int_equal(count_of(&b, &rsa, ",\"use\":\"enc\""), 0);
    assert_int_equal(count_of(&b, &rsa, ",\"key_ops\":[\"encrypt\"]"), 0);
    assert_int_equal(count_of(&b, &rsa, ",\"key_ops\":\"verify\""), 0);
    assert_int_equal(count_of(&b, &rsa, ",\"alg\":\"ES256\""), 0);
    assert_int_equal(count_of(&b, &rsa, ",\"alg\":\"RSA-OAEP\""), 0);
    assert_int_equal(count_of(&b, &p256, ",\"alg\":\"ES384\""), 0);
    assert_int_equal(count_of(&b, &p256, ",\"alg\":7"), 0);
    static const char *const sets[] = {
        "{\"keys\":[]}",
        "{\"keys\":[null,7,\"x\",[],{}]}",
        "{\"keys\":[{\"kty\":\"oct\",\"k\":\"c2VjcmV0\",\"kid\":\"s\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"!!!\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"e\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":\"AA\",\"y\":\"AA\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"AA\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AA\"}]}",
        /* The right length, and not a point of the curve. */
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\","
        "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}]}",
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        assert_true(read_set(&b, sets[i]));
        assert_int_equal(b.set.count, 0);
    }
    end(&b);
}

/* An exponent of one makes every signature valid. Even exponents, and those that take too
 * long to check, are refused as well. */
static void exponents_are_looked_at(void **state)
{
    static const struct {
        const char *e;
        size_t count;
    } rows[] = {{"AQAB", 1}, {"Aw", 1}, {"AQ", 0},
                {"Ag", 0},   {"", 0},   {"AAAAAAAAAAAAAAAB", 0}};
    bench b;
    (void)state;
    begin(&b);
    char *jwk = token_key_jwk(&rsa, "");
    char *at = strstr(jwk, "\"e\":\"AQAB\"");
    assert_non_null(at);
    *at = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2048];
        snprintf(text, sizeof text, "{\"keys\":[%s\"e\":\"%s\"}]}", jwk, rows[i].e);
        assert_true(read_set(&b, text));
        assert_int_equal(b.set.count, rows[i].count);
    }
    free(jwk);
    end(&b);
}

static void what_is_no_set_changes_nothing(void **state)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "[]",
                                        "{}",
                                        "{\"keys\":{}}",
                                        "{\"keys\":[]} x",
                                        "{\"keys\":[],\"keys\":[]}"};
    bench b;
    (void)state;
    begin(&b);
    assert_int_equal(count_of(&b, &p256, ""), 1);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(read_set(&b, texts[i]));
        assert_non_null(find(&b, SGI_CRYPTO_ES256, "ec"));
    }
    char *large = malloc(SGI_JWKS_BYTES + 32);
    int len = sprintf(large, "{\"keys\":[]");
    memset(large + len, ' ', SGI_JWKS_BYTES);
    strcpy(large + SGI_JWKS_BYTES - 1, "}");
    assert_true(read_set(&b, large)); /* this set is exactly at the limit */
    strcpy(large + SGI_JWKS_BYTES - 1, " }");
    assert_false(read_set(&b, large));
    free(large);
    end(&b);
}

/* Keys beyond the limit are ignored. */
static void sets_are_bounded(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    const token_key *many[SGI_JWKS_MAX + 2];
    for (size_t i = 0; i < SGI_JWKS_MAX + 2; i++)
        many[i] = i == SGI_JWKS_MAX + 1 ? &ed : &p256;
    char *text = token_key_set(many, SGI_JWKS_MAX + 2);
    assert_true(read_set(&b, text));
    assert_int_equal(b.set.count, SGI_JWKS_MAX);
    assert_null(find(&b, SGI_CRYPTO_EDDSA, NULL));
    free(text);
    end(&b);
}

static void names_may_have_escapes_or_be_empty(void **state)
{
    bench b;
    char text[2048];
    (void)state;
    begin(&b);
    token_key bare = p256;
    bare.kid = NULL;
    char *one = token_key_jwk(&bare, ",\"kid\":\"\\u00e4\\\"x\"");
    char *two = token_key_jwk(&bare, ",\"kid\":\"\"");
    char *three = token_key_jwk(&bare, ",\"kid\":7");
    snprintf(text, sizeof text, "{\"keys\":[%s,%s,%s]}", one, two, three);
    assert_true(read_set(&b, text));
    assert_int_equal(b.set.count, 2);
    assert_non_null(find(&b, SGI_CRYPTO_ES256, "\xc3\xa4\"x"));
    assert_non_null(find(&b, SGI_CRYPTO_ES256, ""));
    free(one);
    free(two);
    free(three);
    end(&b);
}

/* Each allocation fails in turn: the set is the old or the new one. */
static void want_of_memory_leaves_the_set(void **state)
{
    bench b;
    (void)state;
    begin(&b);
    const token_key *both[] = {&rsa, &p384};
    char *text = token_key_set(both, 2);
    for (int all = 0; all < 2; all++) {
        bool failed = true;
        for (size_t at = 1; failed; at++) {
            assert_int_equal(count_of(&b, &p256, ""), 1);
            test_mem_rearm(&b.mem);
            b.mem.fail_at = all ? 0 : at;
            b.mem.fail_from = all ? at : 0;
            bool ok = read_set(&b, text);
            failed = b.mem.failed > 0;
            test_mem_rearm(&b.mem);
            assert_int_equal(ok, !failed);
            assert_int_equal(b.set.count, ok ? 2 : 1);
            assert_true(at < 100);
        }
    }
    free(text);
    end(&b);
}

/* ---- scopes ---- */

static void scopes_are_words(void **state)
{
    (void)state;
    assert_true(sgi_scopes_have(SGI_STR("a b  c"), SGI_STR("b")));
    assert_true(sgi_scopes_have(SGI_STR("  c"), SGI_STR("c")));
    assert_false(sgi_scopes_have(SGI_STR("files:read"), SGI_STR("files")));
    assert_false(sgi_scopes_have(SGI_STR("a b"), SGI_STR("")));
    assert_false(sgi_scopes_have(SGI_STR("a b"), SGI_STR("a b")));
    assert_false(sgi_scopes_have((sgi_str){0}, SGI_STR("a")));
    assert_true(sgi_scopes_cover(SGI_STR("c b a"), SGI_STR(" a  c")));
    assert_false(sgi_scopes_cover(SGI_STR("c b a"), SGI_STR("a d")));
    assert_true(sgi_scopes_cover((sgi_str){0}, (sgi_str){0}));
    assert_true(sgi_scopes_are_valid(SGI_STR("a:b https://x/y?z=1")));
    assert_false(sgi_scopes_are_valid(SGI_STR("a\"b")));
    assert_false(sgi_scopes_are_valid(SGI_STR("a\\b")));
    assert_false(sgi_scopes_are_valid(SGI_STR("a\tb")));
    assert_false(sgi_scopes_are_valid(SGI_STR("\xc3\xa4")));
}

static void expect_implied(const char *have, const char *implied, const char *all)
{
    sgi_buf out;
    sgi_buf_init(&out, &sgi_mem_libc);
    sgi_scopes_join(&out, sgi_str_of(have));
    sgi_scopes_add_implied(&out, sgi_str_of(implied));
    if (!sgi_str_eq(sgi_buf_str(&out), sgi_str_of(all)))
        fail_msg("%.*s instead of %s", (int)out.len, out.p, all);
    sgi_buf_free(&out);
}

static void broader_scopes_imply_narrower_ones(void **state)
{
    static const char table[] = "write read\nadmin write\n\n loop pool\npool loop";
    (void)state;
    expect_implied("read", table, "read");
    expect_implied("write", table, "write read");
    expect_implied("admin x", table, "admin x write read");
    expect_implied("loop", table, "loop pool");
    expect_implied("", table, "");
    expect_implied("a a", "", "a");
}

static int make_keys(void **state)
{
    (void)state;
    token_key_make(&rsa, TOKEN_RSA, "rsa");
    token_key_make(&weak, TOKEN_RSA_WEAK, "weak");
    token_key_make(&p256, TOKEN_P256, "ec");
    token_key_make(&p384, TOKEN_P384, "ec384");
    token_key_make(&p521, TOKEN_P521, "ec521");
    token_key_make(&ed, TOKEN_ED25519, "ed");
    return 0;
}

static int free_keys(void **state)
{
    token_key *all[] = {&rsa, &weak, &p256, &p384, &p521, &ed};
    (void)state;
    for (size_t i = 0; i < 6; i++)
        token_key_free(all[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_used_for_what_they_are_made_for),
        cmocka_unit_test(what_is_no_good_is_left_out),
        cmocka_unit_test(exponents_are_looked_at),
        cmocka_unit_test(what_is_no_set_changes_nothing),
        cmocka_unit_test(sets_are_bounded),
        cmocka_unit_test(names_may_have_escapes_or_be_empty),
        cmocka_unit_test(want_of_memory_leaves_the_set),
        cmocka_unit_test(scopes_are_words),
        cmocka_unit_test(broader_scopes_imply_narrower_ones),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
