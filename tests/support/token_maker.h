/* Keys of an authorization server, and what it signs with them: JSON Web Tokens and key
 * sets, made for a test. What fails ends the program: it is no fault of the code under
 * test. */
#ifndef TOKEN_MAKER_H
#define TOKEN_MAKER_H

#include <stddef.h>

#include <openssl/evp.h>

typedef enum token_key_kind {
    TOKEN_RSA,
    TOKEN_RSA_WEAK, /* 1024 bits */
    TOKEN_P256,
    TOKEN_P384,
    TOKEN_P521,
    TOKEN_ED25519
} token_key_kind;

typedef struct token_key {
    token_key_kind kind;
    const char *kid; /* NULL = none */
    EVP_PKEY *key;
} token_key;

/* kid must last. */
void token_key_make(token_key *made, token_key_kind kind, const char *kid);
void token_key_free(token_key *key);
/* The key as a JWK, with more members (",\"alg\":...") or "". Freed by the caller. */
char *token_key_jwk(const token_key *key, const char *more);
/* A set of them: {"keys":[...]}. */
char *token_key_set(const token_key *const *keys, size_t count);

/* A token: header and claims as JSON, signed as alg ("RS256", ..., "HS256" with the
 * secret, "none") says, whatever the header does. Freed by the caller. */
char *token_sign(const token_key *key, const char *alg, const char *header,
                 const char *claims);
/* HS256 over whatever bytes. */
char *token_sign_hs(const void *secret, size_t len, const char *header,
                    const char *claims);
/* The public key as PEM, for whoever takes it for a secret. */
char *token_key_pem(const token_key *key);
/* Base64url of a text. */
char *token_encode(const void *bytes, size_t len);

#endif
