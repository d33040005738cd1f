#include "support/token_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "token_maker: %s\n", what);
    abort();
}

static char *print(const char *format, const char *a, const char *b, const char *c)
{
    size_t size = strlen(format) + strlen(a) + strlen(b) + strlen(c) + 1;
    char *text = malloc(size);
    must(text != NULL, "memory");
    snprintf(text, size, format, a, b, c);
    return text;
}

char *token_encode(const void *bytes, size_t len)
{
    char *text = malloc(len / 3 * 4 + 8);
    must(text != NULL, "memory");
    int n = EVP_EncodeBlock((unsigned char *)text, bytes, (int)len);
    while (n && text[n - 1] == '=')
        n--;
    text[n] = 0;
    for (char *p = text; *p; p++)
        *p = (char)(*p == '+' ? '-' : *p == '/' ? '_' : *p);
    return text;
}

/* ---- keys ---- */

void token_key_make(token_key *made, token_key_kind kind, const char *kid)
{
    static const char *const curves[] = {
        [TOKEN_P256] = "P-256", [TOKEN_P384] = "P-384", [TOKEN_P521] = "P-521"};
    *made = (token_key){.kind = kind, .kid = kid};
    if (kind == TOKEN_RSA || kind == TOKEN_RSA_WEAK)
        made->key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA",
                                      (size_t)(kind == TOKEN_RSA ? 2048 : 1024));
    else if (kind == TOKEN_ED25519)
        made->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    else
        made->key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", curves[kind]);
    must(made->key != NULL, "a key");
}

void token_key_free(token_key *key)
{
    EVP_PKEY_free(key->key);
    key->key = NULL;
}

static char *number(const token_key *key, const char *name, int size)
{
    unsigned char bytes[1024];
    BIGNUM *value = NULL;
    must(EVP_PKEY_get_bn_param(key->key, name, &value), name);
    if (!size)
        size = BN_num_bytes(value);
    must(BN_bn2binpad(value, bytes, size) == size, name);
    BN_free(value);
    return token_encode(bytes, (size_t)size);
}

static char *jwk_of_ec(const token_key *key)
{
    static const struct {
        const char *name;
        int size;
    } curves[] = {[TOKEN_P256] = {"P-256", 32},
                  [TOKEN_P384] = {"P-384", 48},
                  [TOKEN_P521] = {"P-521", 66}};
    char *x = number(key, OSSL_PKEY_PARAM_EC_PUB_X, curves[key->kind].size);
    char *y = number(key, OSSL_PKEY_PARAM_EC_PUB_Y, curves[key->kind].size);
    char *text = print("\"kty\":\"EC\",\"crv\":\"%s\",\"x\":\"%s\",\"y\":\"%s\"",
                       curves[key->kind].name, x, y);
    free(x);
    free(y);
    return text;
}

static char *jwk_of_rsa(const token_key *key)
{
    char *n = number(key, OSSL_PKEY_PARAM_RSA_N, 0);
    char *e = number(key, OSSL_PKEY_PARAM_RSA_E, 0);
    char *text = print("\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s", n, e, "");
    free(n);
    free(e);
    return text;
}

static char *jwk_of_ed(const token_key *key)
{
    unsigned char bytes[32];
    size_t len = sizeof bytes;
    must(EVP_PKEY_get_raw_public_key(key->key, bytes, &len) == 1, "a raw key");
    char *x = token_encode(bytes, len);
    char *text = print("\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\"%s%s", x, "", "");
    free(x);
    return text;
}

char *token_key_jwk(const token_key *key, const char *more)
{
    char kid[128] = "";
    char *own = key->kind == TOKEN_ED25519                              ? jwk_of_ed(key)
                : key->kind == TOKEN_RSA || key->kind == TOKEN_RSA_WEAK ? jwk_of_rsa(key)
                                                                        : jwk_of_ec(key);
    if (key->kid)
        snprintf(kid, sizeof kid, ",\"kid\":\"%s\"", key->kid);
    char *text = print("{%s%s%s}", own, kid, more);
    free(own);
    return text;
}

char *token_key_set(const token_key *const *keys, size_t count)
{
    char *set = print("{\"keys\":[%s%s%s", "", "", "");
    for (size_t i = 0; i < count; i++) {
        char *one = token_key_jwk(keys[i], "");
        char *longer = print("%s%s%s", set, i ? "," : "", one);
        free(one);
        free(set);
        set = longer;
    }
    char *whole = print("%s%s%s", set, "]}", "");
    free(set);
    return whole;
}

char *token_key_pem(const token_key *key)
{
    char *bytes;
    BIO *out = BIO_new(BIO_s_mem());
    must(out && PEM_write_bio_PUBKEY(out, key->key) == 1, "PEM");
    size_t len = (size_t)BIO_get_mem_data(out, &bytes);
    char *text = malloc(len + 1);
    must(text != NULL, "memory");
    memcpy(text, bytes, len);
    text[len] = 0;
    BIO_free(out);
    return text;
}

/* ---- tokens ---- */

static char *sign_input(const char *header, const char *claims)
{
    char *h = token_encode(header, strlen(header));
    char *c = token_encode(claims, strlen(claims));
    char *text = print("%s.%s%s", h, c, "");
    free(h);
    free(c);
    return text;
}

/* Reads r and s from the ASN.1 form of a signature. Each is as long as the curve. */
static size_t flatten(unsigned char *signature, size_t len, int size)
{
    const unsigned char *p = signature;
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &p, (long)len);
    must(pair != NULL, "an EC signature");
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, size);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + size, size);
    ECDSA_SIG_free(pair);
    return (size_t)size * 2;
}

static size_t sign(const token_key *key, const char *alg, const char *text,
                   unsigned char *signature, size_t size)
{
    EVP_PKEY_CTX *options = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const char *digest = key->kind == TOKEN_ED25519 ? NULL
                         : strstr(alg, "512")       ? "SHA512"
                         : strstr(alg, "384")       ? "SHA384"
                                                    : "SHA256";
    size_t len = size;
    must(EVP_DigestSignInit_ex(context, &options, digest, NULL, NULL, key->key, NULL) ==
             1,
         "signing");
    if (alg[0] == 'P') {
        EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
        EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
    }
    must(EVP_DigestSign(context, signature, &len, (const unsigned char *)text,
                        strlen(text)) == 1,
         "a signature");
    EVP_MD_CTX_free(context);
    if (key->kind == TOKEN_P256 || key->kind == TOKEN_P384 || key->kind == TOKEN_P521)
        len = flatten(signature, len,
                      key->kind == TOKEN_P256   ? 32
                      : key->kind == TOKEN_P384 ? 48
                                                : 66);
    return len;
}

static char *join(char *text, const unsigned char *signature, size_t len)
{
    char *encoded = token_encode(signature, len);
    char *token = print("%s.%s%s", text, encoded, "");
    free(encoded);
    free(text);
    return token;
}

char *token_sign_hs(const void *secret, size_t len, const char *header,
                    const char *claims)
{
    unsigned char signature[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    char *text = sign_input(header, claims);
    HMAC(EVP_sha256(), secret, (int)len, (const unsigned char *)text, strlen(text),
         signature, &size);
    return join(text, signature, size);
}

char *token_sign(const token_key *key, const char *alg, const char *header,
                 const char *claims)
{
    unsigned char signature[1024];
    char *text = sign_input(header, claims);
    if (strcmp(alg, "none") == 0)
        return join(text, signature, 0);
    return join(text, signature, sign(key, alg, text, signature, sizeof signature));
}
