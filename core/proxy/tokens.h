/* Access tokens in a file (--tokens), for clients without an authorization server. The
 * file has one line for each token: the name of the principal, a blank, and the SHA-256
 * of the token in hexadecimal digits. So the file does not show the tokens. */
#ifndef PROXY_TOKENS_H
#define PROXY_TOKENS_H

#include <stdbool.h>

typedef struct tokens tokens;

/* Reads the file. Returns NULL when it cannot be used, and reports why. */
tokens *tokens_read(const char *path);
void tokens_free(tokens *all);
/* True when the file has no token, so that nobody is let in. */
bool tokens_is_empty(const tokens *all);
/* Returns the principal whose token the header Authorization has. Returns NULL when the
 * header has no valid token. authorization: NULL = the request has no such header. */
const char *tokens_principal(const tokens *all, const char *authorization);

#endif
