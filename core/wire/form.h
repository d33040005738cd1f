/* application/x-www-form-urlencoded: the query of a URL, and bodies of OAuth. Sans-IO,
 * without state. */
#ifndef SGI_FORM_H
#define SGI_FORM_H

#include "base/buf.h"

/* Appends name=value, with an ampersand before it unless it begins the form: out is empty
 * or ends in a question mark or an ampersand. */
void sgi_form_add(sgi_buf *out, const char *name, sgi_str value);
/* Appends the text with all but letters, digits and -._~ as %XX. */
void sgi_form_escape(sgi_buf *out, sgi_str text);

typedef enum sgi_form_found {
    SGI_FORM_ABSENT = 0,
    SGI_FORM_ONE,
    SGI_FORM_MALFORMED, /* it stands there twice, or is not UTF-8, or holds controls */
    SGI_FORM_NOMEM
} sgi_form_found;

/* Looks for a member; its value, decoded, replaces what value holds. */
sgi_form_found sgi_form_find(sgi_str form, const char *name, sgi_buf *value);

#endif
