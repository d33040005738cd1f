/* Lists of OAuth scopes: words separated by blanks (RFC 6749 3.3). This code does not
 * know what a scope means. */
#ifndef SGI_SCOPES_H
#define SGI_SCOPES_H

#include "base/buf.h"

/* Removes the first scope from *list and puts it into *scope. Returns false when the
 * list is empty. */
bool sgi_scopes_next(sgi_str *list, sgi_str *scope);
/* True when the list has only characters that scopes may have, and blanks. */
bool sgi_scopes_valid(sgi_str list);
bool sgi_scopes_have(sgi_str list, sgi_str scope);
/* True when the list has every wanted scope. */
bool sgi_scopes_cover(sgi_str list, sgi_str wanted);
/* Appends the scopes of `more` that `out` lacks, with a blank between scopes. */
void sgi_scopes_join(sgi_buf *out, sgi_str more);
/* Appends the scopes that the scopes in `out` imply. Each line of `implied` is a scope
 * followed by the scopes that it implies. */
void sgi_scopes_add_implied(sgi_buf *out, sgi_str implied);

#endif
