/* An absolute http or https URL and its parts (RFC 3986), for decisions about trust:
 * everything in doubt is refused. The functions do no input or output and have no
 * state. */
#ifndef SGI_URL_H
#define SGI_URL_H

#include "base/buf.h"

#define SGI_URL_MAX ((size_t)4096) /* maximum number of bytes; a longer URL is refused */

/* The parts of a URL, as views of the URL's text. */
typedef struct sgi_url {
    sgi_str origin; /* scheme, host and port, as the URL spells them */
    sgi_str host;   /* the host; an IPv6 address has brackets */
    sgi_str path;   /* the path, which is empty or begins with a slash */
    /* the query after the question mark; p is NULL when the URL has no query */
    sgi_str query;
    /* the port; the default port of the scheme when the URL names no port */
    uint16_t port;
    bool https;
    bool has_fragment;
} sgi_url;

/* Reads a URL. Returns false for schemes other than http and https, for a URL with user
 * or password, and for characters that are not allowed in a URL. */
bool sgi_url_parse(sgi_str text, sgi_url *url);
bool sgi_url_same_origin(const sgi_url *a, const sgi_url *b);
bool sgi_url_same_host(const sgi_url *a, const sgi_url *b);
/* True when the host is this machine: localhost, 127.0.0.0/8 or ::1. */
bool sgi_url_is_loopback(const sgi_url *url);
/* True when the endpoint equals the resource or lies below the resource (RFC 8707,
 * section 2). */
bool sgi_url_covers(const sgi_url *resource, const sgi_url *endpoint);
/* Appends the absolute URL of a Location header. from: the URL whose answer had the
 * header. Returns false when the Location is neither absolute nor begins with a slash. */
bool sgi_url_resolve_location(const sgi_url *from, sgi_str location, sgi_buf *out);

#endif
