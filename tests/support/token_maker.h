/* Keys of an authorization server, and JSON Web Tokens and key sets made with them, for
 * tests. A failure ends the program, because the code under test did not cause it. */
#ifndef TOKEN_MAKER_H
#define TOKEN_MAKER_H

#include <stddef.h>

#include <openssl/evp.h>

typedef enum token_key_kind {
    TOKEN_RSA,
    TOKEN_RSA_WEAK, /* RSA with 1024 bits */
    TOKEN_P256,
    TOKEN_P384,
    TOKEN_P521,
    TOKEN_ED25519
} token_key_kind;

typedef struct token_key {
    token_key_kind kind;
    const char *kid; /* key id; NULL = none */
    EVP_PKEY *key;
} token_key;

/* kid must live as long as the key. */
void token_key_make(token_key *made, token_key_kind kind, const char *kid);
void token_key_free(token_key *key);
/* Returns the key as a JWK with these further members (",\"alg\":...") or ""; the caller
 * frees it. */
char *token_key_jwk(const token_key *key, const char *more);
/* Returns a set of keys: {"keys":[...]}. */
char *token_key_set(const token_key *const *keys, size_t count);

/* Makes a token from a header and claims (JSON), signed with `alg` ("RS256", ..., "HS256"
 * with the secret, "none"), whatever the header says. The caller frees the token. */
char *token_sign(const token_key *key, const char *alg, const char *header,
                 const char *claims);
/* Signs any bytes with HS256. */
char *token_sign_hs(const void *secret, size_t len, const char *header,
                    const char *claims);
/* Returns the public key as PEM, for attacks that use it as an HMAC secret. */
char *token_key_pem(const token_key *key);
/* Returns the bytes in base64url. */
char *token_encode(const void *bytes, size_t len);

#endif
