/* The format application/x-www-form-urlencoded, for the query of a URL and the bodies of
 * OAuth requests. The functions do no input or output and have no state. */
#ifndef SGI_FORM_H
#define SGI_FORM_H

#include "base/buf.h"

/* Appends name=value. Puts an ampersand before the name, unless `out` is empty or ends in
 * a question mark or an ampersand. */
void sgi_url_form_add(sgi_buf *out, const char *name, sgi_str value);
/* Appends the text. Writes every character except letters, digits and -._~ as %XX. */
void sgi_url_form_escape(sgi_buf *out, sgi_str text);

typedef enum sgi_form_found {
    SGI_FORM_ABSENT = 0,
    SGI_FORM_ONE,
    /* the name occurs twice, or its value is not UTF-8 or has control characters */
    SGI_FORM_MALFORMED,
    SGI_FORM_NOMEM
} sgi_form_found;

/* Finds a name in the form. `value` receives the decoded value and loses its old
 * content. */
sgi_form_found sgi_url_form_find(sgi_str form, const char *name, sgi_buf *value);

#endif
