/* The form of a URI (RFC 3986) or of a template of URIs, as far as clients check it. */
#ifndef SGI_URI_FORM_H
#define SGI_URI_FORM_H

#include "base/base.h"

/* Returns NULL, or a text that tells what is wrong with the URI. Characters that are not
 * ASCII are allowed. Of a template the parts outside of braces are checked, and its
 * scheme may be, or contain, a variable. */
const char *sgi_uri_form_fault(sgi_str text, bool is_template);

#endif
