/* application/x-www-form-urlencoded: the query of a URL and the bodies of OAuth
 * requests. This code does no I/O and has no state. */
#ifndef SGI_FORM_H
#define SGI_FORM_H

#include "base/buf.h"

/* Appends name=value. An ampersand comes before the name, unless `out` is empty or
 * ends in a question mark or an ampersand. */
void sgi_form_add(sgi_buf *out, const char *name, sgi_str value);
/* Appends the text; all characters except letters, digits and -._~ are written as %XX. */
void sgi_form_escape(sgi_buf *out, sgi_str text);

typedef enum sgi_form_found {
    SGI_FORM_ABSENT = 0,
    SGI_FORM_ONE,
    /* the name occurs twice, or its value is not UTF-8 or has control characters */
    SGI_FORM_MALFORMED,
    SGI_FORM_NOMEM
} sgi_form_found;

/* Finds a name in the form and puts its decoded value into `value`, whose old content
 * is replaced. */
sgi_form_found sgi_form_find(sgi_str form, const char *name, sgi_buf *value);

#endif
