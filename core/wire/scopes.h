/* Scopes of OAuth as they travel: words between blanks (RFC 6749 3.3). What they stand
 * for is nobody's business here. */
#ifndef SGI_SCOPES_H
#define SGI_SCOPES_H

#include "base/buf.h"

/* Cuts *list at the next blank; false when it is used up. */
bool sgi_scopes_next(sgi_str *list, sgi_str *scope);
/* Only words that may be scopes, with single blanks or more between them. */
bool sgi_scopes_valid(sgi_str list);
bool sgi_scopes_have(sgi_str list, sgi_str scope);
/* Every scope that is wanted is there. */
bool sgi_scopes_cover(sgi_str list, sgi_str wanted);
/* Appends those that `out` lacks, a blank before each but the first. */
void sgi_scopes_join(sgi_buf *out, sgi_str more);
/* Appends what the scopes in `out` stand for beside themselves. Each line of `implied` is
 * a scope and those that go with it. */
void sgi_scopes_imply(sgi_buf *out, sgi_str implied);

#endif
