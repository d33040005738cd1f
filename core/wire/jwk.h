/* The public keys of an authorization server (JWK Set, RFC 7517), which check the
 * signatures of tokens. */
#ifndef SGI_JWK_H
#define SGI_JWK_H

#include "base/crypto.h"
#include "wire/json_read.h"

#define SGI_JWKS_MAX 64 /* maximum number of keys in a set; further keys are ignored */
#define SGI_JWKS_BYTES ((size_t)256 * 1024)

typedef struct sgi_jwk {
    /* the name of the key, as a view of the set's `names`; p is NULL when the key has no
     * name */
    sgi_str kid;
    /* offset of kid in `names`; used while `names` grows, because the view is then
     * invalid */
    size_t kid_at;
    /* the signature schemes for which the key may be used; a set bit 1 <<
     * sgi_crypto_scheme allows a scheme */
    uint32_t schemes;
    sgi_crypto_key *key;
} sgi_jwk;

typedef struct sgi_jwks {
    sgi_jwk *keys;
    size_t count;
    sgi_buf names;
} sgi_jwks;

/* Returns the signature scheme with a name such as "RS256", or SGI_CRYPTO_NONE for any
 * other name, including "none" and "HS256". */
sgi_crypto_scheme sgi_jwa_scheme(sgi_str name);

void sgi_jwks_init(sgi_jwks *set, const sgi_mem *mem);
void sgi_jwks_free(sgi_jwks *set);
/* Replaces the keys of the set by the keys in the text. Ignores keys that are weak, of an
 * unknown kind or not for signatures (RFC 7517 5). Returns false when the text is not a
 * key set (*problem then has the reason) or when out of memory; the set is then
 * unchanged. */
bool sgi_jwks_read(sgi_jwks *set, sgi_json_reader *reader, sgi_str text,
                   const char **problem);
/* Returns the next key after *at that can check this scheme and has this name (kid.p NULL
 * = any name). Returns NULL when there is no further key. *at must be 0 at the first
 * call. */
const sgi_jwk *sgi_jwks_find_next(const sgi_jwks *set, sgi_crypto_scheme scheme,
                                  sgi_str kid, size_t *at);

#endif
