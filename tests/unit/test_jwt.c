/* Tokens: each checked rule of RFC 7515, 7519, 8725 and 9068 has a token that breaks this
 * rule alone. Keys are made anew for each run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/test_mem.h"
#include "support/token_maker.h"
#include "wire/jwt.h"

#define NOW 1764000000
#define ISSUER "https://as.example.com"
#define OURS "https://mcp.example.com/mcp"
#define COMMON "\"iss\":\"" ISSUER "\",\"sub\":\"ada\""
#define TIMES "\"exp\":1764000100,\"iat\":1763999900"
#define GOOD "{" COMMON ",\"aud\":\"" OURS "\"," TIMES ",\"scope\":\"read write\"}"

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static segue_hooks hooks = {.random = no_chance};
static token_key rsa, p256, p384, ed, foreign;

typedef struct bench {
    test_mem mem;
    sgi_env env;
    sgi_json_reader reader;
    sgi_jwks keys;
    sgi_jwt jwt;
    sgi_jwt_rules rules;
} bench;

static void begin(bench *b, const char *set)
{
    const char *problem;
    test_mem_init(&b->mem);
    b->env = (sgi_env){&b->mem.mem, &hooks};
    sgi_json_reader_init(&b->reader, &b->env, 1 << 20, 64);
    sgi_jwks_init(&b->keys, &b->mem.mem);
    sgi_jwt_init(&b->jwt, &b->mem.mem);
    b->rules = (sgi_jwt_rules){.schemes = (1u << SGI_CRYPTO_SCHEMES) - 2,
                               .issuer = SGI_STR(ISSUER),
                               .audiences = SGI_STR(OURS),
                               .leeway_s = 30};
    if (!sgi_jwks_read(&b->keys, &b->reader, sgi_str_of(set), &problem))
        fail_msg("%s: %s", problem, set);
}

static void end(bench *b)
{
    sgi_jwt_free(&b->jwt);
    sgi_jwks_free(&b->keys);
    sgi_json_reader_free(&b->reader);
    assert_int_equal(b->mem.live, 0);
}

static void begin_all(bench *b)
{
    const token_key *all[] = {&rsa, &p256, &p384, &ed};
    char *set = token_key_set(all, 4);
    begin(b, set);
    free(set);
    assert_int_equal(b->keys.count, 4);
}

static sgi_jwt_fault check(bench *b, const char *token)
{
    return sgi_jwt_check(&b->jwt, &b->reader, sgi_str_of(token), &b->keys, &b->rules,
                         NOW);
}

static void expect_text(bench *b, char *token, sgi_jwt_fault fault)
{
    sgi_jwt_fault found = check(b, token);
    if (found != fault)
        fail_msg("%s: %s instead of %s", token, sgi_jwt_fault_text(found),
                 sgi_jwt_fault_text(fault));
    free(token);
}

/* Checks a token that is signed as its header says. */
static void expect_signed(bench *b, const char *header, const char *claims,
                          sgi_jwt_fault fault)
{
    expect_text(b, token_sign(&p256, "ES256", header, claims), fault);
}

#define ES256 "{\"alg\":\"ES256\",\"kid\":\"ec\"}"

static void expect_claims(bench *b, const char *claims, sgi_jwt_fault fault)
{
    expect_signed(b, ES256, claims, fault);
}

/* ---- algorithms ---- */

static void every_algorithm_is_checked_by_its_own_key(void **state)
{
    static const struct {
        const char *alg;
        token_key *key;
    } ways[] = {{"RS256", &rsa},  {"RS384", &rsa},  {"RS512", &rsa},
                {"PS256", &rsa},  {"PS384", &rsa},  {"PS512", &rsa},
                {"ES256", &p256}, {"ES384", &p384}, {"EdDSA", &ed}};
    bench b;
    (void)state;
    begin_all(&b);
    for (size_t i = 0; i < 9; i++) {
        char header[128];
        snprintf(header, sizeof header, "{\"alg\":\"%s\",\"kid\":\"%s\"}", ways[i].alg,
                 ways[i].key->kid);
        char *token = token_sign(ways[i].key, ways[i].alg, header, GOOD);
        assert_int_equal(check(&b, token), SGI_JWT_OK);
        assert_true(sgi_str_eq(sgi_buf_str(&b.jwt.subject), SGI_STR("ada")));
        assert_true(sgi_str_eq(sgi_buf_str(&b.jwt.scopes), SGI_STR("read write")));
        assert_int_equal(b.jwt.expires_s, 1764000100);
        /* A change in any part is found. */
        for (char *dot = token; dot; dot = strchr(dot + 1, '.')) {
            char *at = dot == token ? dot + 8 : dot + 6, was = *at;
            *at = was == 'A' ? 'B' : 'A';
            assert_int_not_equal(check(&b, token), SGI_JWT_OK);
            *at = was;
        }
        assert_int_equal(check(&b, token), SGI_JWT_OK);
        b.rules.schemes &= ~(1u << sgi_jwa_scheme(sgi_str_of(ways[i].alg)));
        assert_int_equal(check(&b, token), SGI_JWT_ALGORITHM);
        b.rules.schemes = (1u << SGI_CRYPTO_SCHEMES) - 2;
        /* The token is signed with one algorithm and names another. */
        char *other = token_sign(ways[i].key, ways[i].alg,
                                 i < 6 ? i == 0 ? "{\"alg\":\"PS256\",\"kid\":\"rsa\"}"
                                                : "{\"alg\":\"RS256\",\"kid\":\"rsa\"}"
                                       : "{\"alg\":\"RS384\",\"kid\":\"rsa\"}",
                                 GOOD);
        assert_int_equal(check(&b, other), SGI_JWT_SIGNATURE);
        free(other);
        free(token);
    }
    end(&b);
}

/* RFC 8725 2.1 and 3.1: no signature, and a public key used as an HMAC secret. */
static void no_signature_and_shared_secrets_are_refused(void **state)
{
    static const char *const nones[] = {"{\"alg\":\"none\"}",
                                        "{\"alg\":\"None\",\"kid\":\"rsa\"}",
                                        "{\"alg\":\"nOnE\"}",
                                        "{\"alg\":\"\"}",
                                        "{}",
                                        "{\"alg\":null}",
                                        "{\"alg\":256}"};
    bench b;
    (void)state;
    begin_all(&b);
    for (size_t i = 0; i < sizeof nones / sizeof *nones; i++) {
        expect_text(&b, token_sign(NULL, "none", nones[i], GOOD), SGI_JWT_ALGORITHM);
    }
    char *pem = token_key_pem(&rsa), *jwk = token_key_jwk(&rsa, "");
    static const char hs[] = "{\"alg\":\"HS256\",\"kid\":\"rsa\"}";
    expect_text(&b, token_sign_hs(pem, strlen(pem), hs, GOOD), SGI_JWT_ALGORITHM);
    expect_text(&b, token_sign_hs(jwk, strlen(jwk), hs, GOOD), SGI_JWT_ALGORITHM);
    static const char rs[] = "{\"alg\":\"RS256\",\"kid\":\"rsa\"}";
    expect_text(&b, token_sign_hs(pem, strlen(pem), rs, GOOD), SGI_JWT_SIGNATURE);
    expect_text(&b, token_sign(NULL, "none", rs, GOOD), SGI_JWT_MALFORMED);
    free(pem);
    free(jwk);
    end(&b);
}

static void keys_are_chosen_by_their_names(void **state)
{
    bench b;
    token_key twin;
    (void)state;
    begin_all(&b);
    expect_signed(&b, "{\"alg\":\"ES256\",\"kid\":\"gone\"}", GOOD, SGI_JWT_UNKNOWN_KEY);
    expect_signed(&b, "{\"alg\":\"ES256\",\"kid\":\"rsa\"}", GOOD, SGI_JWT_UNKNOWN_KEY);
    expect_signed(&b, "{\"alg\":\"ES256\",\"kid\":7}", GOOD, SGI_JWT_MALFORMED);
    expect_signed(&b, "{\"alg\":\"ES256\",\"kid\":\"\"}", GOOD, SGI_JWT_UNKNOWN_KEY);
    /* The only key of its type needs no key id. */
    expect_signed(&b, "{\"alg\":\"ES256\"}", GOOD, SGI_JWT_OK);
    expect_text(&b, token_sign(&foreign, "ES256", "{\"alg\":\"ES256\"}", GOOD),
                SGI_JWT_SIGNATURE);
    expect_text(&b, token_sign(&foreign, "ES256", ES256, GOOD), SGI_JWT_SIGNATURE);
    end(&b);
    /* With two keys and no key id none is guessed; two keys with one id are both
     * tried. */
    token_key_make(&twin, TOKEN_P256, "ec");
    const token_key *both[] = {&twin, &p256};
    char *set = token_key_set(both, 2);
    begin(&b, set);
    expect_signed(&b, "{\"alg\":\"ES256\"}", GOOD, SGI_JWT_UNKNOWN_KEY);
    expect_signed(&b, ES256, GOOD, SGI_JWT_OK);
    free(set);
    token_key_free(&twin);
    end(&b);
}

/* Keys inside a token are ignored. */
static void a_token_brings_no_key(void **state)
{
    bench b;
    char header[2048];
    (void)state;
    begin_all(&b);
    char *jwk = token_key_jwk(&foreign, "");
    snprintf(header, sizeof header, "{\"alg\":\"ES256\",\"kid\":\"ec\",\"jwk\":%s}", jwk);
    expect_text(&b, token_sign(&foreign, "ES256", header, GOOD), SGI_JWT_SIGNATURE);
    expect_text(&b,
                token_sign(&foreign, "ES256",
                           "{\"alg\":\"ES256\",\"kid\":\"x\",\"jku\":\"https://evil/\"}",
                           GOOD),
                SGI_JWT_UNKNOWN_KEY);
    free(jwk);
    end(&b);
}

/* ---- header ---- */

static void headers_are_read_strictly(void **state)
{
    static const struct {
        const char *header;
        sgi_jwt_fault fault;
    } rows[] = {
        {"{\"alg\":\"ES256\",\"typ\":\"JWT\"}", SGI_JWT_OK},
        {"{\"alg\":\"ES256\",\"typ\":\"jwt\"}", SGI_JWT_OK},
        {"{\"alg\":\"ES256\",\"typ\":\"at+jwt\"}", SGI_JWT_OK},
        {"{\"alg\":\"ES256\",\"typ\":\"application/AT+JWT\"}", SGI_JWT_OK},
        {"{\"alg\":\"ES256\",\"typ\":\"dpop+jwt\"}", SGI_JWT_TYPE},
        {"{\"alg\":\"ES256\",\"typ\":\"logout+jwt\"}", SGI_JWT_TYPE},
        {"{\"alg\":\"ES256\",\"typ\":\"\"}", SGI_JWT_TYPE},
        {"{\"alg\":\"ES256\",\"typ\":1}", SGI_JWT_TYPE},
        {"{\"alg\":\"ES256\",\"crit\":[\"b64\"],\"b64\":false}", SGI_JWT_CRITICAL},
        {"{\"alg\":\"ES256\",\"crit\":[]}", SGI_JWT_CRITICAL},
        {"{\"alg\":\"ES256\",\"crit\":null}", SGI_JWT_CRITICAL},
        {"{\"alg\":\"ES256\",\"alg\":\"ES256\"}", SGI_JWT_MALFORMED},
        {"[\"ES256\"]", SGI_JWT_MALFORMED},
        {"{\"alg\":\"ES256\"", SGI_JWT_MALFORMED},
        {"{\"alg\":\"ES256\"}x", SGI_JWT_MALFORMED},
    };
    bench b;
    (void)state;
    begin_all(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_signed(&b, rows[i].header, GOOD, rows[i].fault);
    b.rules.access_only = true;
    expect_signed(&b, "{\"alg\":\"ES256\",\"typ\":\"at+jwt\"}", GOOD, SGI_JWT_OK);
    expect_signed(&b, "{\"alg\":\"ES256\",\"typ\":\"JWT\"}", GOOD, SGI_JWT_TYPE);
    expect_signed(&b, "{\"alg\":\"ES256\"}", GOOD, SGI_JWT_TYPE);
    end(&b);
}

static void shapes_are_refused(void **state)
{
    static const char *const shapes[] = {"",
                                         ".",
                                         "..",
                                         "...",
                                         "a.b",
                                         "a.b.c.d",
                                         "a.b.c",
                                         "a.b.c.d.e",
                                         "!!.e30.e",
                                         "e30..e30",
                                         ".e30.e30",
                                         "e30=.e30.e30",
                                         "e30.e30.e",
                                         "e30 .e30.e30",
                                         "eyJhbGciOiJFUzI1NiJ9.e30."};
    bench b;
    (void)state;
    begin_all(&b);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        sgi_jwt_fault fault = check(&b, shapes[i]);
        assert_true(fault == SGI_JWT_MALFORMED || fault == SGI_JWT_ALGORITHM);
    }
    /* The limit, and one byte beyond it. */
    char *large = malloc(SGI_JWT_MAX + 2);
    memset(large, 'A', SGI_JWT_MAX + 1);
    large[SGI_JWT_MAX + 1] = 0;
    assert_int_equal(check(&b, large), SGI_JWT_TOO_LARGE);
    large[SGI_JWT_MAX] = 0;
    assert_int_equal(check(&b, large), SGI_JWT_MALFORMED);
    free(large);
    end(&b);
}

/* ---- claims ---- */

#define AUD ",\"aud\":\"" OURS "\""
#define WITH(times) "{" COMMON AUD "," times "}"

static void times_are_kept(void **state)
{
    static const struct {
        const char *claims;
        sgi_jwt_fault fault;
    } rows[] = {
        {WITH("\"exp\":1764000001"), SGI_JWT_OK},
        {WITH("\"exp\":1763999971"), SGI_JWT_OK}, /* expired, but within the leeway */
        {WITH("\"exp\":1763999970"), SGI_JWT_EXPIRED},
        {WITH("\"exp\":1764000001.5"), SGI_JWT_OK},
        {WITH("\"exp\":1e300"), SGI_JWT_OK},
        {WITH("\"exp\":1e400"), SGI_JWT_CLAIMS},
        {WITH("\"exp\":0"), SGI_JWT_EXPIRED},
        {WITH("\"exp\":-1"), SGI_JWT_CLAIMS},
        {WITH("\"exp\":\"1764000001\""), SGI_JWT_CLAIMS},
        {WITH("\"exp\":null"), SGI_JWT_CLAIMS},
        {WITH("\"x\":1"), SGI_JWT_CLAIMS},
        {WITH("\"exp\":1764000001,\"nbf\":1764000030"), SGI_JWT_OK},
        {WITH("\"exp\":1764000001,\"nbf\":1764000031"), SGI_JWT_EARLY},
        {WITH("\"exp\":1764000001,\"nbf\":\"x\""), SGI_JWT_CLAIMS},
        {WITH("\"exp\":1764000001,\"iat\":1764000031"), SGI_JWT_EARLY},
        {WITH("\"exp\":1764000001,\"iat\":false"), SGI_JWT_CLAIMS},
    };
    bench b;
    (void)state;
    begin_all(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_claims(&b, rows[i].claims, rows[i].fault);
    end(&b);
}

static void issuer_and_subject_are_required(void **state)
{
    char longest[SGI_JWT_SUBJECT_MAX + 200];
    bench b;
    (void)state;
    begin_all(&b);
    expect_claims(&b, "{\"sub\":\"ada\"" AUD "," TIMES "}", SGI_JWT_ISSUER);
    expect_claims(&b, "{\"iss\":\"" ISSUER "/\",\"sub\":\"ada\"" AUD "," TIMES "}",
                  SGI_JWT_ISSUER);
    expect_claims(&b,
                  "{\"iss\":\"HTTPS://as.example.com\",\"sub\":\"a\"" AUD "," TIMES "}",
                  SGI_JWT_ISSUER);
    expect_claims(&b, "{\"iss\":[\"" ISSUER "\"],\"sub\":\"ada\"" AUD "," TIMES "}",
                  SGI_JWT_ISSUER);
    expect_claims(&b, "{\"iss\":\"" ISSUER "\"" AUD "," TIMES "}", SGI_JWT_SUBJECT);
    expect_claims(&b, "{\"iss\":\"" ISSUER "\",\"sub\":\"\"" AUD "," TIMES "}",
                  SGI_JWT_SUBJECT);
    expect_claims(&b, "{\"iss\":\"" ISSUER "\",\"sub\":7" AUD "," TIMES "}",
                  SGI_JWT_SUBJECT);
    expect_claims(&b, "{\"iss\":\"" ISSUER "\",\"sub\":\"a\\u0000b\"" AUD "," TIMES "}",
                  SGI_JWT_SUBJECT);
    static const char *const controls[] = {"\\n", "\\r", "\\u001b", "\\u007f", "\\u0085"};
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        snprintf(longest, sizeof longest,
                 "{\"iss\":\"" ISSUER "\",\"sub\":\"a%sb\"" AUD "," TIMES "}",
                 controls[i]);
        expect_claims(&b, longest, SGI_JWT_SUBJECT);
    }
    expect_claims(&b,
                  "{\"iss\":\"" ISSUER "\",\"sub\":\"\\u00a0\\u00e9\"" AUD "," TIMES "}",
                  SGI_JWT_OK);
    for (int more = 0; more < 2; more++) {
        snprintf(longest, sizeof longest,
                 "{\"iss\":\"" ISSUER "\",\"sub\":\"%0*d\"" AUD "," TIMES "}",
                 SGI_JWT_SUBJECT_MAX + more, 0);
        expect_claims(&b, longest, more ? SGI_JWT_SUBJECT : SGI_JWT_OK);
    }
    expect_claims(&b, "[]", SGI_JWT_MALFORMED);
    expect_claims(&b, "{" COMMON ",\"sub\":\"eve\"" AUD "," TIMES "}", SGI_JWT_MALFORMED);
    expect_claims(&b, "{" COMMON AUD "," TIMES ",\"cnf\":{\"jkt\":\"x\"}}",
                  SGI_JWT_BOUND);
    end(&b);
}

/* RFC 8707: a token for another audience is refused. */
static void audiences_are_compared(void **state)
{
    static const struct {
        const char *audience;
        sgi_jwt_fault fault;
    } rows[] = {
        {"\"https://mcp.example.com/mcp\"", SGI_JWT_OK},
        {"[\"https://mcp.example.com/mcp\"]", SGI_JWT_OK},
        {"[\"x\",\"https://mcp.example.com/mcp\",7]", SGI_JWT_OK},
        {"\"HTTPS://MCP.example.COM/mcp\"", SGI_JWT_OK},
        {"\"https://mcp.example.com/MCP\"", SGI_JWT_AUDIENCE},
        {"\"https://mcp.example.com/mcp/\"", SGI_JWT_AUDIENCE},
        {"\"https://mcp.example.com\"", SGI_JWT_AUDIENCE},
        {"\"https://mcp.example.com.evil.org/mcp\"", SGI_JWT_AUDIENCE},
        {"\"http://mcp.example.com/mcp\"", SGI_JWT_AUDIENCE},
        {"\"https://mcp.example.com/mc\"", SGI_JWT_AUDIENCE},
        {"\"\"", SGI_JWT_AUDIENCE},
        {"[]", SGI_JWT_AUDIENCE},
        {"null", SGI_JWT_AUDIENCE},
        {"{\"a\":\"https://mcp.example.com/mcp\"}", SGI_JWT_AUDIENCE},
        {"\"https://mcp.example.com/mcp https://other\"", SGI_JWT_AUDIENCE},
    };
    bench b;
    char claims[512];
    (void)state;
    begin_all(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(claims, sizeof claims, "{" COMMON ",\"aud\":%s," TIMES "}",
                 rows[i].audience);
        expect_claims(&b, claims, rows[i].fault);
    }
    expect_claims(&b, "{" COMMON "," TIMES "}", SGI_JWT_AUDIENCE);
    b.rules.audiences = SGI_STR("one  two https://three.example");
    expect_claims(&b, "{" COMMON ",\"aud\":\"two\"," TIMES "}", SGI_JWT_OK);
    expect_claims(&b, "{" COMMON ",\"aud\":\"https://three.example/\"," TIMES "}",
                  SGI_JWT_OK);
    expect_claims(&b, "{" COMMON ",\"aud\":\"three\"," TIMES "}", SGI_JWT_AUDIENCE);
    expect_claims(&b, "{" COMMON ",\"aud\":\"\"," TIMES "}", SGI_JWT_AUDIENCE);
    end(&b);
}

static void scopes_come_in_three_forms(void **state)
{
    static const struct {
        const char *claim;
        const char *scopes; /* NULL = refused */
    } rows[] = {
        {"\"scope\":\"a b\"", "a b"},
        {"\"scope\":[\"a\",\"b\"]", "a b"},
        {"\"scp\":\"a b\"", "a b"},
        {"\"scp\":[\"a\",\"b\"]", "a b"},
        {"\"scope\":\"a\",\"scp\":\"b\"", "a"},
        {"\"scope\":\"\"", ""},
        {"\"scope\":null", ""},
        {"\"x\":1", ""},
        {"\"scope\":7", NULL},
        {"\"scope\":[7]", NULL},
        {"\"scope\":\"a\\u0000b\"", NULL},
    };
    bench b;
    char claims[512];
    (void)state;
    begin_all(&b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(claims, sizeof claims, "{" COMMON AUD "," TIMES ",%s}", rows[i].claim);
        expect_claims(&b, claims, rows[i].scopes ? SGI_JWT_OK : SGI_JWT_CLAIMS);
        if (rows[i].scopes)
            assert_true(
                sgi_str_eq(sgi_buf_str(&b.jwt.scopes), sgi_str_of(rows[i].scopes)));
    }
    end(&b);
}

/* ---- memory ---- */

/* Each allocation fails once, and all from each one on. Nothing leaks. A token that
 * cannot be checked is neither accepted nor refused for good. */
static void want_of_memory_is_told_apart(void **state)
{
    bench b;
    (void)state;
    begin_all(&b);
    char *token = token_sign(&p256, "ES256", ES256, GOOD);
    for (int all = 0; all < 2; all++) {
        bool failed = true;
        for (size_t at = 1; failed; at++) {
            sgi_jwt_free(&b.jwt);
            sgi_jwt_init(&b.jwt, &b.mem.mem);
            test_mem_rearm(&b.mem);
            b.mem.fail_at = all ? 0 : at;
            b.mem.fail_from = all ? at : 0;
            sgi_jwt_fault fault = check(&b, token);
            b.mem.fail_at = b.mem.fail_from = 0;
            failed = b.mem.failed > 0;
            assert_int_equal(fault, failed ? SGI_JWT_NOMEM : SGI_JWT_OK);
            assert_true(at < 100);
        }
    }
    free(token);
    end(&b);
}

static int make_keys(void **state)
{
    (void)state;
    token_key_make(&rsa, TOKEN_RSA, "rsa");
    token_key_make(&p256, TOKEN_P256, "ec");
    token_key_make(&p384, TOKEN_P384, "ec384");
    token_key_make(&ed, TOKEN_ED25519, "ed");
    token_key_make(&foreign, TOKEN_P256, "ec");
    return 0;
}

static int free_keys(void **state)
{
    (void)state;
    token_key_free(&rsa);
    token_key_free(&p256);
    token_key_free(&p384);
    token_key_free(&ed);
    token_key_free(&foreign);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_checked_by_its_own_key),
        cmocka_unit_test(no_signature_and_shared_secrets_are_refused),
        cmocka_unit_test(keys_are_chosen_by_their_names),
        cmocka_unit_test(a_token_brings_no_key),
        cmocka_unit_test(headers_are_read_strictly),
        cmocka_unit_test(shapes_are_refused),
        cmocka_unit_test(times_are_kept),
        cmocka_unit_test(issuer_and_subject_are_required),
        cmocka_unit_test(audiences_are_compared),
        cmocka_unit_test(scopes_come_in_three_forms),
        cmocka_unit_test(want_of_memory_is_told_apart),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
