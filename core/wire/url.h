/* An absolute http or https URL and its parts (RFC 3986), for decisions about trust:
 * everything in doubt is refused. This code does no I/O and has no state. */
#ifndef SGI_URL_H
#define SGI_URL_H

#include "base/buf.h"

#define SGI_URL_MAX ((size_t)4096) /* maximum number of bytes; longer URLs are refused */

/* The parts of a URL, as views of its text. */
typedef struct sgi_url {
    sgi_str origin; /* scheme, host and port, as they are written in the URL */
    sgi_str host;   /* the host; an IPv6 address has its brackets */
    sgi_str path;   /* the path, which is empty or begins with a slash */
    sgi_str query;  /* the text after the question mark; p is NULL when there is none */
    uint16_t port;  /* the port; if none is written, the default port of the scheme */
    bool https;
    bool has_fragment;
} sgi_url;

/* Reads a URL. Returns false for other schemes than http and https, for a URL with
 * user or password, and for characters that a URL must not have. */
bool sgi_url_parse(sgi_str text, sgi_url *url);
bool sgi_url_same_origin(const sgi_url *a, const sgi_url *b);
bool sgi_url_same_host(const sgi_url *a, const sgi_url *b);
/* True when the host is this machine: localhost, 127.0.0.0/8, ::1. */
bool sgi_url_is_loopback(const sgi_url *url);
/* True when the endpoint is the resource or lies below it (RFC 8707, section 2). */
bool sgi_url_covers(const sgi_url *resource, const sgi_url *endpoint);
/* Appends the absolute URL for a Location header that came in an answer to `from`.
 * Returns false when the Location is neither absolute nor begins with a slash. */
bool sgi_url_resolve_location(const sgi_url *from, sgi_str location, sgi_buf *out);

#endif
