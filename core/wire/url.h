/* An absolute http or https URL and its parts (RFC 3986), for deciding whom to trust:
 * what is not plainly such a URL is none. Sans-IO, without state. */
#ifndef SGI_URL_H
#define SGI_URL_H

#include "base/buf.h"

#define SGI_URL_MAX ((size_t)4096) /* bytes; longer ones are none */

/* Views of the text. */
typedef struct sgi_url {
    sgi_str origin; /* scheme, host and port as written */
    sgi_str host;   /* with the brackets of IPv6 */
    sgi_str path;   /* empty, or begins with a slash */
    sgi_str query;  /* behind the question mark; p NULL = none */
    uint16_t port;  /* that of the scheme when none is written */
    bool https;
    bool has_fragment;
} sgi_url;

/* False for other schemes, for one with a user or a password in it, and for characters
 * that no URL has. */
bool sgi_url_parse(sgi_str text, sgi_url *url);
bool sgi_url_same_origin(const sgi_url *a, const sgi_url *b);
bool sgi_url_same_host(const sgi_url *a, const sgi_url *b);
/* This machine: localhost, 127.0.0.0/8, ::1. */
bool sgi_url_is_loopback(const sgi_url *url);
/* Is the endpoint the resource, or below it (RFC 8707, section 2)? */
bool sgi_url_covers(const sgi_url *resource, const sgi_url *endpoint);
/* Appends what a Location means, if that can be told from one that is absolute, or
 * begins with a slash: else false. */
bool sgi_url_follow(const sgi_url *from, sgi_str location, sgi_buf *out);

#endif
