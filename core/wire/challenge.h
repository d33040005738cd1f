/* WWW-Authenticate (RFC 9110, section 11.6.1): what a server says in its Bearer challenge
 * (RFC 6750, section 3; RFC 9728, section 5.1). Sans-IO, without state. */
#ifndef SGI_CHALLENGE_H
#define SGI_CHALLENGE_H

#include "base/buf.h"

/* Looks for a parameter of a Bearer challenge; its value replaces what value holds. The
 * header may hold several challenges, and may be several headers joined by commas. False
 * when there is none, or when out of memory (value->failed). Of what is malformed, all
 * that stands before counts. */
bool sgi_challenge_find(sgi_str header, const char *name, sgi_buf *value);

/* Appends a parameter to a Bearer challenge, which begins with the first one. The value
 * holds what a quoted string may without escapes: no quotes, backslashes or controls. An
 * empty one is left out. */
void sgi_challenge_add(sgi_buf *out, const char *name, sgi_str value);

#endif
