/* Access tokens in a file (--tokens), for clients without an authorization server. The
 * file has one line for each token: the name of the principal, a blank, and the SHA-256
 * of the token in hexadecimal digits. So the file does not show the tokens. */
#ifndef PROXY_TOKENS_H
#define PROXY_TOKENS_H

typedef struct token token;

/* Reads the file. Returns NULL when it cannot be used, and reports why. */
token *tokens_read(const char *path);
void tokens_free(token *list);
/* Returns the principal whose token the header Authorization has. Returns NULL when the
 * header has no valid token. authorization: NULL = the request has no such header. */
const char *tokens_principal(const token *list, const char *authorization);

#endif
