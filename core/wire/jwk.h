/* A set of public keys of an authorization server (JWK Set, RFC 7517): those in it that
 * can check a signature of a token. */
#ifndef SGI_JWK_H
#define SGI_JWK_H

#include "base/crypto.h"
#include "wire/json_read.h"

#define SGI_JWKS_MAX 64 /* keys of a set; the others are not seen */
#define SGI_JWKS_BYTES ((size_t)256 * 1024)

typedef struct sgi_jwk {
    sgi_str kid;      /* in the set's names; p NULL = it has none */
    size_t kid_at;    /* ... while they grow */
    uint32_t schemes; /* bits 1 << sgi_crypto_scheme: what it may be used for */
    sgi_crypto_key *key;
} sgi_jwk;

typedef struct sgi_jwks {
    sgi_jwk *keys;
    size_t count;
    sgi_buf names;
} sgi_jwks;

/* "RS256" and so on; SGI_CRYPTO_NONE for any other, "none" and "HS256" among them. */
sgi_crypto_scheme sgi_jwa_scheme(sgi_str name);

void sgi_jwks_init(sgi_jwks *set, const sgi_mem *mem);
void sgi_jwks_free(sgi_jwks *set);
/* Replaces what the set holds. Keys that are no good for this, are too weak or of an
 * unknown kind are left out, as RFC 7517 5 wants it. False when the text is no set
 * (*problem says why; the set is as before) or when out of memory (the same). */
bool sgi_jwks_read(sgi_jwks *set, sgi_json_reader *reader, sgi_str text,
                   const char **problem);
/* The next key behind *at that may check this scheme; kid.p NULL = of any name. NULL when
 * there is none. Start with *at = 0. */
const sgi_jwk *sgi_jwks_find(const sgi_jwks *set, sgi_crypto_scheme scheme, sgi_str kid,
                             size_t *at);

#endif
