/* Lists of OAuth scopes: words separated by blanks (RFC 6749 3.3). The functions do not
 * know what a scope means. */
#ifndef SGI_SCOPES_H
#define SGI_SCOPES_H

#include "base/buf.h"

/* Removes the first scope from *list and stores it in *scope. Returns false when the list
 * is empty. */
bool sgi_scopes_next(sgi_str *list, sgi_str *scope);
/* True when the list has only blanks and characters that are allowed in scopes. */
bool sgi_scopes_are_valid(sgi_str list);
bool sgi_scopes_have(sgi_str list, sgi_str scope);
/* True when the list has every wanted scope. */
bool sgi_scopes_cover(sgi_str list, sgi_str wanted);
/* Appends the scopes of `more` that are not in `out`, with a blank between scopes. */
void sgi_scopes_join(sgi_buf *out, sgi_str more);
/* Appends the scopes that the scopes in `out` imply. Each line of `implied` is a scope,
 * followed by the scopes that this scope implies. */
void sgi_scopes_add_implied(sgi_buf *out, sgi_str implied);

#endif
