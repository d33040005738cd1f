/* The Bearer challenge of a server in WWW-Authenticate (RFC 9110, section 11.6.1; RFC
 * 6750, section 3; RFC 9728, section 5.1). The functions do no input or output and have
 * no state. */
#ifndef SGI_CHALLENGE_H
#define SGI_CHALLENGE_H

#include "base/buf.h"

/* Finds a parameter of a Bearer challenge. `value` receives the parameter's value and
 * loses its old content. `header` may contain several challenges, and may be several
 * headers joined by commas. Returns false when the parameter is missing, or when out of
 * memory (value->failed). In a malformed header, only the part before the error is
 * used. */
bool sgi_challenge_find(sgi_str header, const char *name, sgi_buf *value);

/* Appends a parameter to a Bearer challenge; begins the challenge if `out` is empty. The
 * value must not have quotes, backslashes or control characters. A parameter with an
 * empty value is not appended. */
void sgi_challenge_add(sgi_buf *out, const char *name, sgi_str value);

#endif
