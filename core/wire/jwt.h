/* Checks that a text is a signed token (JWT, RFC 7519, as a compact JWS, RFC 7515) that a
 * trusted issuer made for this server. The check has no state between calls; the caller
 * passes the time and the keys. */
#ifndef SGI_JWT_H
#define SGI_JWT_H

#include "wire/jwk.h"

#define SGI_JWT_MAX ((size_t)16 * 1024) /* maximum bytes of a token */
#define SGI_JWT_SUBJECT_MAX 1024        /* maximum bytes of a token's subject */

/* The conditions that a token must meet. The texts are views of the caller's memory. */
typedef struct sgi_jwt_rules {
    /* the accepted signature schemes; a set bit 1 << sgi_crypto_scheme accepts a
     * scheme */
    uint32_t schemes;
    sgi_str issuer;
    /* the names of this server, separated by blanks; the token's audience must contain
     * one of these names */
    sgi_str audiences;
    bool access_only; /* true = the token's type must be "at+jwt" (RFC 9068) */
    /* the accepted difference in s between the clocks of server and issuer */
    int64_t leeway_s;
} sgi_jwt_rules;

typedef enum sgi_jwt_fault {
    SGI_JWT_OK = 0,
    /* the token's key is not in the set; all other checks have succeeded */
    SGI_JWT_UNKNOWN_KEY,
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
    /* the token is bound to a key of its holder, and a bearer token does not prove that
     * the sender has this key */
    SGI_JWT_BOUND,
    SGI_JWT_NOMEM
} sgi_jwt_fault;

/* Returns a description of the fault for the client, which contains no part of the
 * token. */
const char *sgi_jwt_fault_text(sgi_jwt_fault fault);

/* The content of a valid token, and the buffers of the check. */
typedef struct sgi_jwt {
    sgi_buf subject;
    sgi_buf scopes; /* the scopes, separated by blanks */
    int64_t expires_s;
    /* The remaining buffers are scratch memory of the check. */
    sgi_buf header;
    sgi_buf claims;
    sgi_buf signature;
} sgi_jwt;

void sgi_jwt_init(sgi_jwt *jwt, const sgi_mem *mem);
void sgi_jwt_free(sgi_jwt *jwt);
/* Checks a token and fills *jwt with its content. now_s: the time in seconds since
 * 1970. */
sgi_jwt_fault sgi_jwt_check(sgi_jwt *jwt, sgi_json_reader *reader, sgi_str token,
                            const sgi_jwks *keys, const sgi_jwt_rules *rules,
                            int64_t now_s);

/* True when two resource identifiers name the same resource. They are compared as texts,
 * except that the case of scheme and host does not matter, and an empty path equals
 * "/". */
bool sgi_resource_same(sgi_str a, sgi_str b);

#endif
