#ifndef PROXY_SHA256_H
#define PROXY_SHA256_H

#include <stddef.h>

#define SHA256_SIZE 32 /* bytes */

/* Calculates the SHA-256 (FIPS 180-4) of the bytes. */
void sha256(const void *bytes, size_t len, unsigned char digest[SHA256_SIZE]);

#endif
