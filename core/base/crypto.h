/* Randomness and digests; crypto.c is the one file that sees OpenSSL. */
#ifndef SGI_CRYPTO_H
#define SGI_CRYPTO_H

#include "base/base.h"

#define SGI_DIGEST_SIZE 32

/* From the system's generator; 0 = success. */
int32_t sgi_crypto_random(void *user, void *bytes, size_t len);
/* SHA-256 of the parts, each preceded by its length so that no two lists collide. False
 * when the crypto library is out of memory. */
bool sgi_crypto_digest(uint8_t out[SGI_DIGEST_SIZE], const sgi_str *parts, size_t count);
/* Compares in time that depends on len only. */
bool sgi_crypto_equal(const void *a, const void *b, size_t len);

#endif
