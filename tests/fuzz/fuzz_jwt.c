/* Bytes into tokens and key sets. Nothing may be read outside of them. A token is
 * accepted only when one of the set's keys has signed it; the fuzzer has none of their
 * private keys, so this never happens. The answer must not depend on earlier checks. When
 * memory runs out no token is accepted either.
 *
 * Input: way of failing; the kind of the input: 0 a token as it is; 1 header and claims,
 * separated by a NUL, to be encoded; 2 a key set; and then the bytes. */
#include "support/fuzz_input.h"
#include "support/test_mem.h"
#include "wire/jwt.h"
#include "wire/scopes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* RFC 7515 A.3 (P-256), RFC 8037 A.2 (Ed25519). */
static const char keys[] = "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"ec\","
                           "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
                           "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"},"
                           "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"ed\","
                           "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static segue_hooks hooks = {.struct_size = sizeof hooks, .random = no_chance};

typedef struct bench {
    test_mem mem;
    sgi_env env;
    sgi_json_reader reader;
    sgi_jwks keys;
    sgi_jwt jwt;
} bench;

static void begin(bench *b)
{
    const char *problem;
    test_mem_init(&b->mem);
    b->env = (sgi_env){&b->mem.mem, &hooks};
    sgi_json_reader_init(&b->reader, &b->env, 1 << 20, 64);
    sgi_jwks_init(&b->keys, &b->mem.mem);
    sgi_jwt_init(&b->jwt, &b->mem.mem);
    fuzz_check(sgi_jwks_read(&b->keys, &b->reader, SGI_STR(keys), &problem));
    fuzz_check(b->keys.count == 2);
}

static void end(bench *b)
{
    sgi_jwt_free(&b->jwt);
    sgi_jwks_free(&b->keys);
    sgi_json_reader_free(&b->reader);
    fuzz_check(b->mem.live == 0);
}

static sgi_jwt_fault check(bench *b, sgi_str token)
{
    sgi_jwt_rules rules = {.schemes = (1u << SGI_CRYPTO_SCHEMES) - 2,
                           .issuer = SGI_STR("https://as"),
                           .audiences = SGI_STR("https://mcp other"),
                           .leeway_s = 30};
    return sgi_jwt_check(&b->jwt, &b->reader, token, &b->keys, &rules, 1764000000);
}

static void check_token(bench *b, sgi_str token, uint32_t fail)
{
    sgi_jwt_fault fault = check(b, token);
    fuzz_check(fault != SGI_JWT_OK && fault < SGI_JWT_NOMEM);
    fuzz_check(*sgi_jwt_fault_text(fault));
    fuzz_check(check(b, token) == fault);
    if (!fail)
        return;
    sgi_jwt_free(&b->jwt);
    sgi_jwt_init(&b->jwt, &b->mem.mem);
    test_mem_rearm(&b->mem);
    b->mem.fail_at = fail;
    sgi_jwt_fault short_of = check(b, token);
    fuzz_check(short_of == (b->mem.failed ? SGI_JWT_NOMEM : fault));
    test_mem_rearm(&b->mem);
}

static void encode(sgi_buf *token, sgi_str header, sgi_str claims)
{
    sgi_buf_init(token, &sgi_mem_libc);
    sgi_buf_add_base64(token, header.p, header.n, true);
    sgi_buf_add_char(token, '.');
    sgi_buf_add_base64(token, claims.p, claims.n, true);
    sgi_buf_add_lit(token, ".");
    for (int i = 0; i < 86; i++) /* as long as a signature */
        sgi_buf_add_char(token, 'A');
}

static void check_parts(bench *b, sgi_str text, uint32_t fail)
{
    sgi_buf token;
    const char *cut = text.n ? memchr(text.p, 0, text.n) : NULL;
    size_t head = cut ? (size_t)(cut - text.p) : text.n;
    sgi_str claims = {cut ? cut + 1 : "", cut ? text.n - head - 1 : 0};
    encode(&token, (sgi_str){text.p, head}, claims);
    check_token(b, sgi_buf_str(&token), fail);
    sgi_buf_free(&token);
    /* For a known key the signature is checked before the claims. */
    encode(&token, SGI_STR("{\"alg\":\"ES256\",\"kid\":\"ec\"}"), claims);
    sgi_jwt_fault fault = check(b, sgi_buf_str(&token));
    fuzz_check(fault == SGI_JWT_SIGNATURE || fault == SGI_JWT_TOO_LARGE);
    sgi_buf_free(&token);
}

static void check_set(bench *b, sgi_str text, uint32_t fail)
{
    const char *problem = NULL;
    size_t at = 0;
    test_mem_rearm(&b->mem);
    b->mem.fail_at = fail;
    bool ok = sgi_jwks_read(&b->keys, &b->reader, text, &problem);
    test_mem_rearm(&b->mem);
    fuzz_check(ok == !problem);
    fuzz_check(ok || b->keys.count == 2);
    fuzz_check(b->keys.count <= SGI_JWKS_MAX);
    for (size_t i = 0; i < b->keys.count; i++) {
        const sgi_jwk *key = &b->keys.keys[i];
        fuzz_check(key->key && key->schemes);
        fuzz_check(!sgi_crypto_verify(key->key, SGI_CRYPTO_ES256, text, SGI_STR("")));
    }
    while (sgi_jwks_find_next(&b->keys, SGI_CRYPTO_RS256, (sgi_str){0}, &at))
        fuzz_check(at <= b->keys.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    bench b;
    uint32_t fail = fuzz_below(&in, 32);
    uint32_t what = fuzz_below(&in, 3);
    /* A copy of its exact size, so that a read beyond its end is seen. */
    char *bytes = malloc(in.left + !in.left);
    if (!bytes)
        return 0;
    if (in.left)
        memcpy(bytes, in.p, in.left);
    sgi_str text = {bytes, in.left};
    begin(&b);
    if (what == 0)
        check_token(&b, text, fail);
    else if (what == 1)
        check_parts(&b, text, fail);
    else
        check_set(&b, text, fail);
    end(&b);
    free(bytes);
    return 0;
}
