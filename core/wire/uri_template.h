/* Templates of URIs (RFC 6570), read backwards: which values of its variables make a
 * template this URI? Known are {var}, whose value has no reserved character (level 1),
 * and one {+var} per template, whose value may have any. No value is empty.
 *
 * A match takes time linear in the URI, does not recurse and allocates nothing: URIs come
 * from strangers. Where several ways to match exist, a {var} takes as little as it can;
 * what is left over goes to {+var}, or else to the last variable. If there is any way to
 * match, one is found. */
#ifndef SGI_URI_TEMPLATE_H
#define SGI_URI_TEMPLATE_H

#include "base/buf.h"

#define SGI_URI_MAX 8192
#define SGI_URI_TEMPLATE_MAX 1024
#define SGI_URI_VARIABLES_MAX 16

/* A variable and the text behind it. */
typedef struct sgi_uri_part {
    sgi_str name;
    bool reserved; /* {+var} */
    sgi_str text;
} sgi_uri_part;

typedef struct sgi_uri_template {
    sgi_str text; /* in front of the first variable */
    sgi_uri_part parts[SGI_URI_VARIABLES_MAX];
    size_t count;
    size_t pivot; /* the part that takes what the others leave over */
} sgi_uri_template;

/* Reads a template; its parts are views of text. NULL, or what is wrong with it. */
const char *sgi_uri_template_read(sgi_uri_template *t, sgi_str text);

/* Does it make this URI? Then values[i], one per part, are the values as they stand in
 * the URI. */
bool sgi_uri_template_match(const sgi_uri_template *t, sgi_str uri, sgi_str *values);

/* Appends a value with its %XX decoded; false, with something appended, when an escape is
 * none, or is one of NUL. What comes out need not be UTF-8. */
bool sgi_uri_decode(sgi_str value, sgi_buf *out);

#endif
