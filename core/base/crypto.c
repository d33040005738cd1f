#include "base/crypto.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <errno.h>
#include <sys/random.h>

int32_t sgi_crypto_random(void *user, void *bytes, size_t len)
{
    uint8_t *at = bytes;
    (void)user;
    /* This is not RAND_bytes, because OpenSSL takes much memory when it is first used. */
    while (len) {
        ssize_t got = getrandom(at, len, 0);
        if (got < 0 && errno != EINTR)
            return -1;
        if (got > 0) {
            at += got;
            len -= (size_t)got;
        }
    }
    return 0;
}

void sgi_crypto_hasher_free(sgi_hasher *hasher)
{
    EVP_MD_free(hasher->sha256);
    hasher->sha256 = NULL;
}

/* Returns the digest algorithm, and keeps it in the hasher. */
static const EVP_MD *algorithm_of(sgi_hasher *hasher)
{
    if (hasher && !hasher->sha256) {
        hasher->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        ERR_clear_error();
    }
    return hasher && hasher->sha256 ? hasher->sha256 : EVP_sha256();
}

bool sgi_crypto_digest(sgi_hasher *hasher, uint8_t out[SGI_DIGEST_SIZE],
                       const sgi_str *parts, size_t count)
{
    const EVP_MD *sha256 = algorithm_of(hasher);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, sha256, NULL);
    for (size_t i = 0; ok && i < count; i++) {
        uint64_t len = parts[i].n;
        ok = EVP_DigestUpdate(context, &len, sizeof len) &&
             EVP_DigestUpdate(context, parts[i].p, parts[i].n);
    }
    ok = ok && EVP_DigestFinal_ex(context, out, NULL);
    EVP_MD_CTX_free(context);
    return ok;
}

bool sgi_crypto_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

/* ---- authenticated encryption ---- */

static bool is_int(size_t n)
{
    return n <= INT32_MAX - SGI_AEAD_TAG;
}

static bool seal(const uint8_t key[SGI_AEAD_KEY], const uint8_t nonce[SGI_AEAD_NONCE],
                 sgi_str aad, sgi_str plain, uint8_t *out)
{
    int n;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    const uint8_t *text = (const uint8_t *)plain.p;
    bool ok =
        c && is_int(aad.n) && is_int(plain.n) &&
        EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
        EVP_EncryptUpdate(c, NULL, &n, (const uint8_t *)aad.p, (int)aad.n) == 1 &&
        EVP_EncryptUpdate(c, out, &n, text, (int)plain.n) == 1 &&
        EVP_EncryptFinal_ex(c, out + n, &n) == 1 &&
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, SGI_AEAD_TAG, out + plain.n) == 1;
    EVP_CIPHER_CTX_free(c);
    return ok;
}

static bool open_sealed(const uint8_t key[SGI_AEAD_KEY],
                        const uint8_t nonce[SGI_AEAD_NONCE], sgi_str aad, sgi_str sealed,
                        uint8_t *out)
{
    int n;
    uint8_t tag[SGI_AEAD_TAG];
    if (sealed.n < SGI_AEAD_TAG || !is_int(sealed.n) || !is_int(aad.n))
        return false;
    const uint8_t *text = (const uint8_t *)sealed.p;
    int len = (int)sealed.n - SGI_AEAD_TAG;
    memcpy(tag, text + len, sizeof tag);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool ok = c && EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce) == 1 &&
              EVP_DecryptUpdate(c, NULL, &n, (const uint8_t *)aad.p, (int)aad.n) == 1 &&
              EVP_DecryptUpdate(c, out, &n, text, len) == 1 &&
              EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, SGI_AEAD_TAG, tag) == 1 &&
              EVP_DecryptFinal_ex(c, out + n, &n) == 1;
    EVP_CIPHER_CTX_free(c);
    return ok;
}

const sgi_aead sgi_crypto_aead = {seal, open_sealed};

/* ---- checking signatures ---- */

#define RSA_MIN_BITS 2048
/* The most bits of a key. Checking a signature with a larger key takes too long. */
#define RSA_MAX_BITS 8192
#define RSA_MAX_EXPONENT 64

/* Makes a key from the builder's parameters and frees the builder. Returns NULL when
 * the parameters are not a valid key. */
static sgi_crypto_key *make_key(const char *type, OSSL_PARAM_BLD *builder, bool ok)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    OSSL_PARAM *params = ok ? OSSL_PARAM_BLD_to_param(builder) : NULL;
    if (!params || !context || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    EVP_PKEY_CTX_free(context);
    /* OpenSSL keeps a queue of errors for each thread. The queue is cleared here, so that
     * another user of OpenSSL on this thread does not read an error of this library. */
    ERR_clear_error();
    return (sgi_crypto_key *)key;
}

static bool is_key(sgi_crypto_key *key)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new((EVP_PKEY *)key, NULL);
    bool ok = context && EVP_PKEY_public_check(context) == 1;
    EVP_PKEY_CTX_free(context);
    ERR_clear_error();
    return ok;
}

sgi_crypto_key *sgi_crypto_key_new_rsa(sgi_str modulus, sgi_str exponent)
{
    if (!modulus.n || !exponent.n || modulus.n > RSA_MAX_BITS / 8 + 1 ||
        exponent.n > RSA_MAX_EXPONENT / 8)
        return NULL;
    sgi_crypto_key *key = NULL;
    BIGNUM *n = BN_bin2bn((const unsigned char *)modulus.p, (int)modulus.n, NULL);
    BIGNUM *e = BN_bin2bn((const unsigned char *)exponent.p, (int)exponent.n, NULL);
    bool is_fit = n && e && BN_is_odd(n) && BN_is_odd(e) && !BN_is_one(e) &&
                  BN_num_bits(n) >= RSA_MIN_BITS && BN_num_bits(n) <= RSA_MAX_BITS;
    OSSL_PARAM_BLD *builder = is_fit ? OSSL_PARAM_BLD_new() : NULL;
    if (builder)
        key = make_key("RSA", builder,
                       OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) &&
                           OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e));
    BN_free(n);
    BN_free(e);
    return key;
}

sgi_crypto_key *sgi_crypto_key_new_ec(int32_t bits, sgi_str x, sgi_str y)
{
    unsigned char point[1 + 2 * 48] = {POINT_CONVERSION_UNCOMPRESSED};
    const char *group = bits == 256 ? "P-256" : "P-384";
    size_t size = (size_t)bits / 8;
    if ((bits != 256 && bits != 384) || x.n != size || y.n != size)
        return NULL;
    memcpy(point + 1, x.p, size);
    memcpy(point + 1 + size, y.p, size);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (!builder)
        return NULL;
    sgi_crypto_key *key = make_key(
        "EC", builder,
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) &&
            OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point,
                                             1 + 2 * size));
    if (key && !is_key(key)) {
        sgi_crypto_key_free(key);
        return NULL;
    }
    return key;
}

sgi_crypto_key *sgi_crypto_key_new_ed25519(sgi_str x)
{
    if (x.n != 32)
        return NULL;
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                (const unsigned char *)x.p, x.n);
    ERR_clear_error();
    return (sgi_crypto_key *)key;
}

void sgi_crypto_key_free(sgi_crypto_key *key)
{
    EVP_PKEY_free((EVP_PKEY *)key);
}

static const struct {
    int type; /* the type of the key in OpenSSL */
    int bits; /* number of bits of the EC curve; 0 = not an EC key */
    const char *digest;
    bool is_pss;
} schemes[SGI_CRYPTO_SCHEMES] = {
    [SGI_CRYPTO_RS256] = {EVP_PKEY_RSA, 0, "SHA256", false},
    [SGI_CRYPTO_RS384] = {EVP_PKEY_RSA, 0, "SHA384", false},
    [SGI_CRYPTO_RS512] = {EVP_PKEY_RSA, 0, "SHA512", false},
    [SGI_CRYPTO_PS256] = {EVP_PKEY_RSA, 0, "SHA256", true},
    [SGI_CRYPTO_PS384] = {EVP_PKEY_RSA, 0, "SHA384", true},
    [SGI_CRYPTO_PS512] = {EVP_PKEY_RSA, 0, "SHA512", true},
    [SGI_CRYPTO_ES256] = {EVP_PKEY_EC, 256, "SHA256", false},
    [SGI_CRYPTO_ES384] = {EVP_PKEY_EC, 384, "SHA384", false},
    [SGI_CRYPTO_EDDSA] = {EVP_PKEY_ED25519, 0, NULL, false},
};

static bool verify(EVP_PKEY *key, sgi_crypto_scheme scheme, sgi_str text,
                   const unsigned char *signature, size_t len)
{
    EVP_PKEY_CTX *options = NULL; /* `context` owns `options` */
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok =
        context && EVP_DigestVerifyInit_ex(context, &options, schemes[scheme].digest,
                                           NULL, NULL, key, NULL) == 1;
    if (ok && schemes[scheme].is_pss)
        ok = EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
             EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1;
    ok = ok && EVP_DigestVerify(context, signature, len, (const unsigned char *)text.p,
                                text.n) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return ok;
}

/* Checks an ECDSA signature. In a JWT, the signature is the number r followed by the
 * number s. OpenSSL needs both numbers as ASN.1. */
static bool verify_ec(EVP_PKEY *key, sgi_crypto_scheme scheme, sgi_str text,
                      sgi_str signature)
{
    int size = schemes[scheme].bits / 8;
    unsigned char *der = NULL;
    if (signature.n != (size_t)size * 2)
        return false;
    const unsigned char *bytes = (const unsigned char *)signature.p;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, size, NULL);
    BIGNUM *s = BN_bin2bn(bytes + size, size, NULL);
    if (!pair || !r || !s || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(pair);
        return false;
    }
    int len = i2d_ECDSA_SIG(pair, &der);
    ECDSA_SIG_free(pair);
    bool ok = len > 0 && verify(key, scheme, text, der, (size_t)len);
    OPENSSL_free(der);
    return ok;
}

bool sgi_crypto_verify(const sgi_crypto_key *key, sgi_crypto_scheme scheme, sgi_str text,
                       sgi_str signature)
{
    EVP_PKEY *pkey = (EVP_PKEY *)(uintptr_t)key;
    if (scheme <= SGI_CRYPTO_NONE || scheme >= SGI_CRYPTO_SCHEMES ||
        EVP_PKEY_get_base_id(pkey) != schemes[scheme].type ||
        (schemes[scheme].bits && EVP_PKEY_get_bits(pkey) != schemes[scheme].bits))
        return false;
    if (schemes[scheme].bits)
        return verify_ec(pkey, scheme, text, signature);
    return verify(pkey, scheme, text, (const unsigned char *)signature.p, signature.n);
}

/* ---- making digests and signatures ---- */

bool sgi_crypto_sha256(uint8_t out[SGI_DIGEST_SIZE], sgi_str text)
{
    bool ok = EVP_Digest(text.p, text.n, out, NULL, EVP_sha256(), NULL) == 1;
    ERR_clear_error();
    return ok;
}

/* Gives OpenSSL no password for an encrypted key. Without this callback OpenSSL would ask
 * for a password on the terminal. */
static int no_password(char *into, int size, int writes, void *user)
{
    (void)into;
    (void)size;
    (void)writes;
    (void)user;
    return -1;
}

static EVP_PKEY *read_pem(sgi_str pem)
{
    BIO *bio = pem.n && pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    return key;
}

/* True for an EC key on one of the two NIST curves of JWT, and for every key that is not
 * an EC key. The curve is checked by its name, because other curves also have 256
 * bits. */
static bool is_nist(const EVP_PKEY *key)
{
    char group[32] = "";
    return EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
           (EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
            (!strcmp(group, SN_X9_62_prime256v1) || !strcmp(group, SN_secp384r1)));
}

static sgi_crypto_scheme scheme_of(const EVP_PKEY *key)
{
    static const sgi_crypto_scheme ours[] = {SGI_CRYPTO_RS256, SGI_CRYPTO_ES256,
                                             SGI_CRYPTO_ES384, SGI_CRYPTO_EDDSA};
    if (!key || !is_nist(key) ||
        (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
         EVP_PKEY_get_bits(key) < RSA_MIN_BITS))
        return SGI_CRYPTO_NONE;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (EVP_PKEY_get_base_id(key) == schemes[ours[i]].type &&
            (!schemes[ours[i]].bits || EVP_PKEY_get_bits(key) == schemes[ours[i]].bits))
            return ours[i];
    return SGI_CRYPTO_NONE;
}

sgi_crypto_scheme sgi_crypto_pem_scheme(sgi_str pem)
{
    EVP_PKEY *key = read_pem(pem);
    sgi_crypto_scheme scheme = scheme_of(key);
    EVP_PKEY_free(key);
    return scheme;
}

/* Appends the numbers r and s of an ECDSA signature, one after the other. der: the
 * signature in ASN.1, as OpenSSL makes it. */
static bool add_pair(sgi_buf *out, int bits, const unsigned char *der, size_t len)
{
    int size = bits / 8;
    unsigned char pair[2 * 48];
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, (long)len);
    bool ok = signature &&
              BN_bn2binpad(ECDSA_SIG_get0_r(signature), pair, size) == size &&
              BN_bn2binpad(ECDSA_SIG_get0_s(signature), pair + size, size) == size;
    ECDSA_SIG_free(signature);
    if (ok)
        sgi_buf_add(out, pair, 2 * (size_t)size);
    return ok;
}

static bool sign(EVP_PKEY *key, sgi_crypto_scheme scheme, sgi_str text, sgi_buf *out)
{
    unsigned char bytes[RSA_MAX_BITS / 8];
    size_t len = sizeof bytes;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok =
        context && EVP_PKEY_get_size(key) <= (int)sizeof bytes &&
        EVP_DigestSignInit_ex(context, NULL, schemes[scheme].digest, NULL, NULL, key,
                              NULL) == 1 &&
        EVP_DigestSign(context, bytes, &len, (const unsigned char *)text.p, text.n) == 1;
    EVP_MD_CTX_free(context);
    if (ok && schemes[scheme].bits)
        ok = add_pair(out, schemes[scheme].bits, bytes, len);
    else if (ok)
        sgi_buf_add(out, bytes, len);
    ERR_clear_error();
    return ok && !out->failed;
}

bool sgi_crypto_sign(sgi_str pem, sgi_str text, sgi_buf *signature)
{
    EVP_PKEY *key = read_pem(pem);
    sgi_crypto_scheme scheme = scheme_of(key);
    bool ok = scheme != SGI_CRYPTO_NONE && sign(key, scheme, text, signature);
    EVP_PKEY_free(key);
    return ok;
}

void *sgi_crypto_address(void)
{
    unsigned long (*function)(void) = OpenSSL_version_num;
    void *address;
    memcpy(&address, &function, sizeof address);
    return address;
}
