/* Random numbers, digests, encryption and signatures. crypto.c is the only file that
 * uses OpenSSL. */
#ifndef SGI_CRYPTO_H
#define SGI_CRYPTO_H

#include "base/buf.h"

#define SGI_DIGEST_SIZE 32

/* Fills `bytes` with random bytes from the operating system. Returns 0 on success. */
int32_t sgi_crypto_random(void *user, void *bytes, size_t len);
/* The digest algorithm. The first digest looks it up and keeps it, because the look-up
 * costs more than the digest of a key, and OpenSSL takes much memory when it is first
 * used. A hasher of zeros is valid. One thread at a time may use a hasher. OpenSSL owns
 * the memory of the algorithm. */
typedef struct sgi_hasher {
    void *sha256; /* NULL = not looked up */
} sgi_hasher;
void sgi_crypto_hasher_free(sgi_hasher *hasher);
/* Computes SHA-256 of the parts. The length of each part comes before the part, so two
 * different lists never have the same input. hasher: NULL = this call looks the algorithm
 * up. Returns false when OpenSSL is out of memory. */
bool sgi_crypto_digest(sgi_hasher *hasher, uint8_t out[SGI_DIGEST_SIZE],
                       const sgi_str *parts, size_t count);
/* True when two byte strings are equal. The duration of the comparison depends only on
 * len. */
bool sgi_crypto_equal(const void *a, const void *b, size_t len);

/* ---- authenticated encryption: AES-256-GCM ---- */

#define SGI_AEAD_KEY 32
#define SGI_AEAD_NONCE 12
#define SGI_AEAD_TAG 16

/* The engine's interface to encryption. The interface is injected, like time and random
 * numbers. aad is authenticated but not encrypted. The same nonce must not be used twice
 * with one key. */
typedef struct sgi_aead {
    /* Encrypts `plain`. out has plain.n + SGI_AEAD_TAG bytes. Returns false when out
     * of memory. */
    bool (*seal)(const uint8_t key[SGI_AEAD_KEY], const uint8_t nonce[SGI_AEAD_NONCE],
                 sgi_str aad, sgi_str plain, uint8_t *out);
    /* Decrypts `sealed` into `out`, which has sealed.n - SGI_AEAD_TAG bytes. Returns
     * false when the key, the nonce or aad differ from those of `seal`, when the bytes
     * were changed, or when out of memory. `out` is valid only when the result is
     * true. */
    bool (*open)(const uint8_t key[SGI_AEAD_KEY], const uint8_t nonce[SGI_AEAD_NONCE],
                 sgi_str aad, sgi_str sealed, uint8_t *out);
} sgi_aead;

extern const sgi_aead sgi_crypto_aead;

/* ---- checking signatures ---- */

/* The signature schemes. Each scheme has its own kind of key and its own digest (RFC
 * 7518, RFC 8037). A key is never used with a scheme for which it was not made. */
typedef enum sgi_crypto_scheme {
    SGI_CRYPTO_NONE = 0,
    SGI_CRYPTO_RS256, /* RSA with PKCS #1 v1.5 */
    SGI_CRYPTO_RS384,
    SGI_CRYPTO_RS512,
    SGI_CRYPTO_PS256, /* RSA with PSS; the salt is as long as the digest */
    SGI_CRYPTO_PS384,
    SGI_CRYPTO_PS512,
    SGI_CRYPTO_ES256, /* P-256; the signature is the numbers r and s, 32 bytes each */
    SGI_CRYPTO_ES384, /* P-384 */
    SGI_CRYPTO_EDDSA, /* Ed25519 */
    SGI_CRYPTO_SCHEMES
} sgi_crypto_scheme;

/* A public key in OpenSSL's memory. */
typedef struct sgi_crypto_key sgi_crypto_key;

/* Makes an RSA public key from its numbers, which are big-endian. Returns NULL when the
 * numbers are not a valid key, when the key does not have 2048 to 8192 bits, or when out
 * of memory. */
sgi_crypto_key *sgi_crypto_key_new_rsa(sgi_str modulus, sgi_str exponent);
/* Makes an EC public key. bits: 256 or 384; x and y have this many bits each. Returns
 * NULL when the point is not on the curve, or when out of memory. */
sgi_crypto_key *sgi_crypto_key_new_ec(int32_t bits, sgi_str x, sgi_str y);
sgi_crypto_key *sgi_crypto_key_new_ed25519(sgi_str x);
/* Frees the key. key may be NULL. */
void sgi_crypto_key_free(sgi_crypto_key *key);
/* True when the signature of the text was made by this scheme with the private key that
 * matches `key`. Returns false for a key of another kind than the scheme needs. */
bool sgi_crypto_verify(const sgi_crypto_key *key, sgi_crypto_scheme scheme, sgi_str text,
                       sgi_str signature);

/* ---- making digests and signatures ---- */

/* Computes SHA-256 of the text, without a length before it. PKCE (RFC 7636) needs this
 * form. */
bool sgi_crypto_sha256(uint8_t out[SGI_DIGEST_SIZE], sgi_str text);
/* Returns the scheme with which a private key in PEM signs: RS256, ES256, ES384 or EDDSA.
 * Returns SGI_CRYPTO_NONE when the text is not a key for one of these schemes, when the
 * key has a password, or when the key is weak. */
sgi_crypto_scheme sgi_crypto_pem_scheme(sgi_str pem);
/* Signs the text with a private key in PEM, and appends the signature in the form of RFC
 * 7518. Returns false on failure. */
bool sgi_crypto_sign(sgi_str pem, sgi_str text, sgi_buf *signature);

/* Returns the address of the function OpenSSL_version_num that this library uses
 * (late_library.c). */
void *sgi_crypto_address(void);

#endif
