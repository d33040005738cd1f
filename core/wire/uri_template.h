/* Matches a URI against a URI template (RFC 6570) and finds the values of its
 * variables. The supported variables are {var}, whose value has no reserved character
 * (level 1), and one {+var} per template, whose value may have any character. No value
 * is empty.
 *
 * A match takes time linear in the URI, does not recurse and allocates nothing,
 * because URIs come from untrusted clients. When several matches are possible, each
 * {var} matches as little as it can, and the remaining text goes to {+var}, or to the
 * last variable. If a match exists, it is found. */
#ifndef SGI_URI_TEMPLATE_H
#define SGI_URI_TEMPLATE_H

#include "base/buf.h"

#define SGI_URI_MAX 8192
#define SGI_URI_TEMPLATE_MAX 1024
#define SGI_URI_VARIABLES_MAX 16

/* A variable and the text after it. */
typedef struct sgi_uri_part {
    sgi_str name;
    bool reserved; /* the variable is {+var} */
    sgi_str text;
} sgi_uri_part;

typedef struct sgi_uri_template {
    sgi_str text; /* the text before the first variable */
    sgi_uri_part parts[SGI_URI_VARIABLES_MAX];
    size_t count;
    size_t pivot; /* index of the variable that matches the rest */
} sgi_uri_template;

/* Reads a template; its parts are views of text. Returns NULL, or a text that says what
 * is wrong with the template. */
const char *sgi_uri_template_read(sgi_uri_template *t, sgi_str text);

/* True when the URI matches. values[i] is then the value of variable i, as it is
 * written in the URI. */
bool sgi_uri_template_match(const sgi_uri_template *t, sgi_str uri, sgi_str *values);

/* Appends a value with its %XX decoded. The result need not be UTF-8. Returns false
 * when an escape is invalid or is %00; a part of the value may then be appended. */
bool sgi_uri_decode(sgi_str value, sgi_buf *out);

#endif
