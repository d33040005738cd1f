/* Access tokens in a file (segue_listen_options.tokens_file), for callers without an
 * authorization server. A line has the name of a principal, a blank, and the SHA-256 of
 * its token in hexadecimal digits, so the file does not show the tokens. Empty lines and
 * lines that begin with # are skipped. */
#ifndef SGI_BEARER_TOKENS_H
#define SGI_BEARER_TOKENS_H

#include "base/buf.h"
#include "transport/transport.h"

typedef struct sgi_bearer_tokens {
    /* the file, in which the names of the principals are NUL-terminated */
    sgi_buf text;
    sgi_buf list; /* an array of entries (bearer_tokens.c) */
    size_t count; /* 0 = nobody is let in */
} sgi_bearer_tokens;

void sgi_bearer_tokens_init(sgi_bearer_tokens *tokens, const sgi_mem *mem);
void sgi_bearer_tokens_free(sgi_bearer_tokens *tokens);
/* Reads a file. Returns SEGUE_E_IO when it cannot be read, and SEGUE_E_INVALID when it is
 * no such file; `why` then says why. Needs no lock. */
segue_status sgi_bearer_tokens_read(sgi_bearer_tokens *tokens, const char *path,
                                    char why[SGI_WHY_SIZE]);
/* Like sgi_bearer_tokens_read. A file without a token is refused, too: when a listener is
 * made, such a file is a mistake. */
segue_status sgi_bearer_tokens_open(sgi_bearer_tokens *tokens, const char *path,
                                    char why[SGI_WHY_SIZE]);
/* Returns the principal of the token with this digest, or NULL. The time tells nothing
 * about the digests of the file. */
const char *sgi_bearer_tokens_find(const sgi_bearer_tokens *tokens,
                                   const uint8_t digest[SGI_DIGEST_SIZE]);

#endif
