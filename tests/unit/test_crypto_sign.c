/* Digests and signatures of the library: published vectors, and the reader of signatures
 * accepts what the writer makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/crypto.h"
#include "support/test_mem.h"

static test_mem tm;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(tm.live, 0);
    return 0;
}

/* RFC 7636, appendix B. */
static void a_verifier_has_the_challenge_of_the_rfc(void **state)
{
    (void)state;
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_buf text;
    sgi_buf_init(&text, &tm.mem);
    assert_true(sgi_crypto_sha256(
        digest, SGI_STR("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")));
    sgi_buf_add_base64(&text, digest, sizeof digest, true);
    assert_true(sgi_str_eq(sgi_buf_str(&text),
                           SGI_STR("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")));
    sgi_buf_free(&text);
}

static char *pem_of(EVP_PKEY *key, const char *password)
{
    char *bytes, *text;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(
                         bio, key, password ? EVP_aes_128_cbc() : NULL, password,
                         password ? (int)strlen(password) : 0, NULL, NULL),
                     1);
    long len = BIO_get_mem_data(bio, &bytes);
    text = calloc(1, (size_t)len + 1);
    memcpy(text, bytes, (size_t)len);
    BIO_free(bio);
    return text;
}

static size_t part_of(const EVP_PKEY *key, const char *name, char out[1024])
{
    BIGNUM *number = NULL;
    assert_int_equal(EVP_PKEY_get_bn_param(key, name, &number), 1);
    int len = BN_num_bytes(number);
    BN_bn2bin(number, (unsigned char *)out);
    BN_free(number);
    return (size_t)len;
}

static sgi_crypto_key *ec_half(const EVP_PKEY *key, int bits)
{
    char x[1024] = {0}, y[1024] = {0};
    size_t size = (size_t)bits / 8;
    char raw[1024];
    size_t len = part_of(key, OSSL_PKEY_PARAM_EC_PUB_X, raw);
    memcpy(x + size - len, raw, len);
    len = part_of(key, OSSL_PKEY_PARAM_EC_PUB_Y, raw);
    memcpy(y + size - len, raw, len);
    return sgi_crypto_key_new_ec(bits, (sgi_str){x, size}, (sgi_str){y, size});
}

static sgi_crypto_key *public_half(const EVP_PKEY *key)
{
    char n[1024], e[1024];
    size_t len = 32;
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        len = part_of(key, OSSL_PKEY_PARAM_RSA_N, n);
        return sgi_crypto_key_new_rsa(
            (sgi_str){n, len}, (sgi_str){e, part_of(key, OSSL_PKEY_PARAM_RSA_E, e)});
    case EVP_PKEY_EC:
        return ec_half(key, EVP_PKEY_get_bits(key));
    default:
        assert_int_equal(EVP_PKEY_get_raw_public_key(key, (unsigned char *)n, &len), 1);
        return sgi_crypto_key_new_ed25519((sgi_str){n, len});
    }
}

static void signs_by(EVP_PKEY *key, sgi_crypto_scheme scheme, size_t size)
{
    char *pem = pem_of(key, NULL);
    char *locked = pem_of(key, "secret");
    sgi_crypto_key *half = public_half(key);
    sgi_buf signature;
    assert_non_null(half);
    sgi_buf_init(&signature, &tm.mem);
    assert_int_equal(sgi_crypto_pem_scheme(sgi_str_of(pem)), scheme);
    assert_int_equal(sgi_crypto_pem_scheme(sgi_str_of(locked)), SGI_CRYPTO_NONE);
    assert_true(sgi_crypto_sign(sgi_str_of(pem), SGI_STR("text"), &signature));
    assert_int_equal(signature.len, size);
    assert_true(
        sgi_crypto_verify(half, scheme, SGI_STR("text"), sgi_buf_str(&signature)));
    assert_false(
        sgi_crypto_verify(half, scheme, SGI_STR("texT"), sgi_buf_str(&signature)));
    sgi_buf_free(&signature);
    test_mem_rearm(&tm);
    tm.fail_from = 1;
    assert_false(sgi_crypto_sign(sgi_str_of(pem), SGI_STR("text"), &signature));
    test_mem_rearm(&tm);
    sgi_buf_free(&signature);
    sgi_crypto_key_free(half);
    EVP_PKEY_free(key);
    free(locked);
    free(pem);
}

static void keys_sign_by_what_they_are(void **state)
{
    (void)state;
    signs_by(EVP_EC_gen("P-256"), SGI_CRYPTO_ES256, 64);
    signs_by(EVP_EC_gen("P-384"), SGI_CRYPTO_ES384, 96);
    signs_by(EVP_RSA_gen(2048), SGI_CRYPTO_RS256, 256);
    signs_by(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), SGI_CRYPTO_EDDSA, 64);
}

static void what_is_no_such_key_does_not_sign(void **state)
{
    (void)state;
    sgi_buf signature;
    EVP_PKEY *keys[] = {EVP_EC_gen("P-521"), EVP_EC_gen("secp256k1"), EVP_RSA_gen(1024),
                        EVP_PKEY_Q_keygen(NULL, NULL, "X25519")};
    sgi_buf_init(&signature, &tm.mem);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *pem = pem_of(keys[i], NULL);
        assert_int_equal(sgi_crypto_pem_scheme(sgi_str_of(pem)), SGI_CRYPTO_NONE);
        assert_false(sgi_crypto_sign(sgi_str_of(pem), SGI_STR("text"), &signature));
        EVP_PKEY_free(keys[i]);
        free(pem);
    }
    assert_int_equal(sgi_crypto_pem_scheme(SGI_STR("")), SGI_CRYPTO_NONE);
    assert_int_equal(sgi_crypto_pem_scheme(SGI_STR("-----BEGIN PRIVATE KEY-----\nAAAA\n"
                                                   "-----END PRIVATE KEY-----\n")),
                     SGI_CRYPTO_NONE);
    assert_int_equal(signature.len, 0);
    sgi_buf_free(&signature);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_verifier_has_the_challenge_of_the_rfc, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(keys_sign_by_what_they_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_such_key_does_not_sign, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
