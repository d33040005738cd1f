/* Matches a URI against a URI template (RFC 6570) and finds the values of its variables.
 * The supported variables are {var}, whose value has no reserved character (level 1), and
 * one {+var} per template, whose value may have any character. No value is empty.
 *
 * A match takes time linear in the length of the URI, does not recurse and allocates
 * nothing, because URIs come from untrusted clients. When several matches are possible,
 * each {var} matches as little text as possible, and {+var}, or else the last variable,
 * gets the remaining text. If a match exists, it is found. */
#ifndef SGI_URI_TEMPLATE_H
#define SGI_URI_TEMPLATE_H

#include "base/buf.h"

#define SGI_URI_MAX 8192
#define SGI_URI_TEMPLATE_MAX 1024
#define SGI_URI_VARIABLES_MAX 16

/* A variable and the text after it. */
typedef struct sgi_uri_part {
    sgi_str name;
    bool reserved; /* true = the variable is {+var}; false = it is {var} */
    sgi_str text;
} sgi_uri_part;

typedef struct sgi_uri_template {
    sgi_str text; /* the text before the first variable */
    sgi_uri_part parts[SGI_URI_VARIABLES_MAX];
    size_t count;
    size_t pivot; /* index of the variable that matches the remaining text */
    /* the variable with its braces that makes the template invalid; empty = none does */
    sgi_str wrong;
} sgi_uri_template;

/* Reads a template. The parts of *t are views of `text`. Returns NULL, or a text that
 * tells what is wrong with the template. */
const char *sgi_uri_template_read(sgi_uri_template *t, sgi_str text);

/* True when the URI matches the template. values[i] then receives the value of variable
 * i, undecoded. */
bool sgi_uri_template_match(const sgi_uri_template *t, sgi_str uri, sgi_str *values);

/* Decodes the %XX of a value and appends the result, which need not be UTF-8. Returns
 * false when an escape is invalid or is %00; a part of the value may then be appended. */
bool sgi_uri_decode(sgi_str value, sgi_buf *out);

#endif
