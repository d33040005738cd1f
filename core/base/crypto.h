/* Randomness, digests and sealing; crypto.c is the one file that sees OpenSSL. */
#ifndef SGI_CRYPTO_H
#define SGI_CRYPTO_H

#include "base/buf.h"

#define SGI_DIGEST_SIZE 32

/* From the system's generator; 0 = success. */
int32_t sgi_crypto_random(void *user, void *bytes, size_t len);
/* What it takes to digest, looked up once: the look-up costs more than hashing a key
 * does. Never changes, so threads may share it; belongs to the crypto library's memory.
 * NULL when that is out of it. */
typedef struct sgi_hasher sgi_hasher;
sgi_hasher *sgi_crypto_hasher(void);
/* Takes NULL. */
void sgi_crypto_hasher_free(sgi_hasher *hasher);
/* SHA-256 of the parts, each preceded by its length so that no two lists collide. hasher:
 * NULL = it is looked up each time. False when the crypto library is out of memory. */
bool sgi_crypto_digest(const sgi_hasher *hasher, uint8_t out[SGI_DIGEST_SIZE],
                       const sgi_str *parts, size_t count);
/* Compares in time that depends on len only. */
bool sgi_crypto_equal(const void *a, const void *b, size_t len);

/* ---- authenticated encryption: AES-256-GCM ---- */

#define SGI_AEAD_KEY 32
#define SGI_AEAD_NONCE 12
#define SGI_AEAD_TAG 16

/* How the engine sees it: injected like time and chance. aad is authenticated, not
 * hidden. A nonce is used once with a key. */
typedef struct sgi_aead {
    /* out: plain.n + SGI_AEAD_TAG bytes. False when out of memory. */
    bool (*seal)(const uint8_t key[SGI_AEAD_KEY], const uint8_t nonce[SGI_AEAD_NONCE],
                 sgi_str aad, sgi_str plain, uint8_t *out);
    /* out: sealed.n - SGI_AEAD_TAG bytes, to be read only when it says true. False when
     * it was not sealed just so, or out of memory. */
    bool (*open)(const uint8_t key[SGI_AEAD_KEY], const uint8_t nonce[SGI_AEAD_NONCE],
                 sgi_str aad, sgi_str sealed, uint8_t *out);
} sgi_aead;

extern const sgi_aead sgi_crypto_aead;

/* ---- signatures that others have made ---- */

/* Each with its kind of key and its digest (RFC 7518, RFC 8037): a key is never tried in
 * a way that was not made for it. */
typedef enum sgi_crypto_scheme {
    SGI_CRYPTO_NONE = 0,
    SGI_CRYPTO_RS256, /* RSA, PKCS #1 v1.5 */
    SGI_CRYPTO_RS384,
    SGI_CRYPTO_RS512,
    SGI_CRYPTO_PS256, /* RSA, PSS; the salt is as long as the digest */
    SGI_CRYPTO_PS384,
    SGI_CRYPTO_PS512,
    SGI_CRYPTO_ES256, /* P-256; the signature is r and s, 32 bytes each */
    SGI_CRYPTO_ES384, /* P-384 */
    SGI_CRYPTO_EDDSA, /* Ed25519 */
    SGI_CRYPTO_SCHEMES
} sgi_crypto_scheme;

/* A public key; belongs to the crypto library's memory. */
typedef struct sgi_crypto_key sgi_crypto_key;

/* Made of their numbers, big-endian. NULL for what is no such key or a weak one (RSA:
 * 2048 to 8192 bits; a point has to lie on its curve), and when out of memory. */
sgi_crypto_key *sgi_crypto_key_rsa(sgi_str modulus, sgi_str exponent);
/* bits: 256 or 384. x and y have as many. */
sgi_crypto_key *sgi_crypto_key_ec(int32_t bits, sgi_str x, sgi_str y);
sgi_crypto_key *sgi_crypto_key_ed25519(sgi_str x);
/* Takes NULL. */
void sgi_crypto_key_free(sgi_crypto_key *key);
/* True when the text was signed so with the private half. The key may be of any kind. */
bool sgi_crypto_verify(const sgi_crypto_key *key, sgi_crypto_scheme scheme, sgi_str text,
                       sgi_str signature);

/* ---- digests and signatures that we make ---- */

/* SHA-256 of the text and nothing else: RFC 7636. */
bool sgi_crypto_sha256(uint8_t out[SGI_DIGEST_SIZE], sgi_str text);
/* What a private key in PEM signs by: RS256, ES256, ES384 or EDDSA. NONE for what is no
 * such key, has a password, or is a weak one. */
sgi_crypto_scheme sgi_crypto_pem_scheme(sgi_str pem);
/* Appends the signature in the form of RFC 7518. */
bool sgi_crypto_sign(sgi_str pem, sgi_str text, sgi_buf *signature);

#endif
