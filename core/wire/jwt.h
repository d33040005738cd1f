/* Is a text a signed token (JWT, RFC 7519, as a compact JWS, RFC 7515) that an issuer
 * made for us? One function, and no state between its calls; what it knows of time and
 * keys it is given. */
#ifndef SGI_JWT_H
#define SGI_JWT_H

#include "wire/jwk.h"

#define SGI_JWT_MAX ((size_t)16 * 1024) /* bytes of a token */
#define SGI_JWT_SUBJECT_MAX 1024        /* ... and of the subject in it */

/* Views of the caller's. */
typedef struct sgi_jwt_rules {
    uint32_t schemes; /* bits 1 << sgi_crypto_scheme: those that are taken */
    sgi_str issuer;
    sgi_str audiences; /* separated by blanks; the token is for one of them */
    bool access_only;  /* its type has to be "at+jwt" (RFC 9068) */
    int64_t leeway_s;  /* that clocks may be apart */
} sgi_jwt_rules;

typedef enum sgi_jwt_fault {
    SGI_JWT_OK = 0,
    SGI_JWT_UNKNOWN_KEY, /* well-formed as far as was looked, but its key is not here */
    SGI_JWT_MALFORMED,
    SGI_JWT_TOO_LARGE,
    SGI_JWT_ALGORITHM,
    SGI_JWT_TYPE,
    SGI_JWT_CRITICAL,
    SGI_JWT_SIGNATURE,
    SGI_JWT_CLAIMS,
    SGI_JWT_ISSUER,
    SGI_JWT_AUDIENCE,
    SGI_JWT_EXPIRED,
    SGI_JWT_EARLY,
    SGI_JWT_SUBJECT,
    SGI_JWT_BOUND, /* to a key of its holder, of which a bearer proves nothing */
    SGI_JWT_NOMEM
} sgi_jwt_fault;

/* What a caller may be told; no word of the token. */
const char *sgi_jwt_fault_text(sgi_jwt_fault fault);

/* What a good token says. */
typedef struct sgi_jwt {
    sgi_buf subject;
    sgi_buf scopes; /* separated by blanks */
    int64_t expires_s;
    /* room */
    sgi_buf header;
    sgi_buf claims;
    sgi_buf signature;
} sgi_jwt;

void sgi_jwt_init(sgi_jwt *jwt, const sgi_mem *mem);
void sgi_jwt_free(sgi_jwt *jwt);
/* now_s: since 1970. */
sgi_jwt_fault sgi_jwt_check(sgi_jwt *jwt, sgi_json_reader *reader, sgi_str token,
                            const sgi_jwks *keys, const sgi_jwt_rules *rules,
                            int64_t now_s);

/* Do two resource identifiers name the same? By their characters, but for the case of
 * scheme and host, and for a slash that is the whole path. */
bool sgi_resource_same(sgi_str a, sgi_str b);

#endif
