/* Parses and compares URLs. Nothing is decoded or normalised, except the case of scheme
 * and host and a missing default port. Two spellings of one path count as two paths,
 * which is the safe choice.
 *
 * Another program can resolve a path with dot segments to another path. Therefore a
 * resource with such a path covers no endpoint, and an endpoint with such a path is
 * covered only by a resource that is the whole host. */
#include "wire/url.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool same_text(sgi_str a, sgi_str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

static bool has_prefix(sgi_str text, sgi_str prefix)
{
    return text.n >= prefix.n && same_text((sgi_str){text.p, prefix.n}, prefix);
}

static sgi_str behind(sgi_str text, size_t n)
{
    return n ? (sgi_str){text.p + n, text.n - n} : text;
}

static size_t find_any(sgi_str text, const char *stops)
{
    size_t at = 0;
    while (at < text.n && !strchr(stops, text.p[at]))
        at++;
    return at;
}

static bool is_visible(sgi_str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~' || strchr("\"<>\\^`{|}", text.p[i]))
            return false;
    return true;
}

/* ---- parts ---- */

static bool take_port(sgi_str digits, uint16_t *port)
{
    uint32_t value = 0;
    if (!digits.n)
        return true; /* a colon without digits means the default port */
    if (digits.n > 5)
        return false;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(digits.p[i] - '0');
    }
    *port = (uint16_t)value;
    return value > 0 && value <= UINT16_MAX;
}

/* True when the text is a host: letters, digits, dots and hyphens, or an address in
 * brackets. */
static bool is_host(sgi_str host)
{
    bool bracket = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    for (size_t i = bracket; i + bracket < host.n; i++) {
        char c = lower(host.p[i]);
        bool digit = c >= '0' && c <= '9';
        bool fits = bracket ? digit || (c >= 'a' && c <= 'f') || c == ':' || c == '.'
                            : digit || (c >= 'a' && c <= 'z') || strchr(".-_", c);
        if (!fits)
            return false;
    }
    return host.n > 0 && host.p[0] != '.';
}

static bool take_authority(sgi_str authority, sgi_url *url)
{
    size_t end = authority.n;
    if (authority.n && authority.p[0] == '[') {
        end = find_any(authority, "]");
        end += end < authority.n;
    } else {
        end = find_any(authority, ":");
    }
    url->host = (sgi_str){authority.p, end};
    if (end < authority.n && authority.p[end] != ':')
        return false;
    return is_host(url->host) &&
           (end == authority.n || take_port(behind(authority, end + 1), &url->port));
}

bool sgi_url_parse(sgi_str text, sgi_url *url)
{
    *url = (sgi_url){.port = 80};
    if (text.n > SGI_URL_MAX || !is_visible(text))
        return false;
    sgi_str rest;
    if (has_prefix(text, SGI_STR("https://"))) {
        url->https = true;
        url->port = 443;
        rest = behind(text, 8);
    } else if (has_prefix(text, SGI_STR("http://"))) {
        rest = behind(text, 7);
    } else {
        return false;
    }
    size_t end = find_any(rest, "/?#");
    if (!take_authority((sgi_str){rest.p, end}, url))
        return false;
    url->origin = (sgi_str){text.p, (size_t)(rest.p + end - text.p)};
    rest = behind(rest, end);
    end = find_any(rest, "?#");
    url->path = (sgi_str){rest.p, end};
    rest = behind(rest, end);
    if (rest.n && rest.p[0] == '?') {
        rest = behind(rest, 1);
        end = find_any(rest, "#");
        url->query = (sgi_str){rest.p, end};
        rest = behind(rest, end);
    }
    url->has_fragment = rest.n > 0;
    return true;
}

/* ---- comparing hosts ---- */

bool sgi_url_same_host(const sgi_url *a, const sgi_url *b)
{
    return same_text(a->host, b->host);
}

bool sgi_url_same_origin(const sgi_url *a, const sgi_url *b)
{
    return a->https == b->https && a->port == b->port && same_text(a->host, b->host);
}

/* True when the host is an address 127.x.x.x: four numbers and three dots. A test of the
 * prefix "127." is not enough, because a host name can begin with "127.". */
static bool is_loopback_address(sgi_str host)
{
    size_t dots = 0, digits = 0;
    for (size_t i = 0; i < host.n; i++) {
        bool dot = host.p[i] == '.';
        if (dot ? !digits : host.p[i] < '0' || host.p[i] > '9' || digits == 3)
            return false;
        dots += dot;
        digits = dot ? 0 : digits + 1;
    }
    return dots == 3 && digits && has_prefix(host, SGI_STR("127."));
}

bool sgi_url_is_loopback(const sgi_url *url)
{
    return same_text(url->host, SGI_STR("localhost")) ||
           same_text(url->host, SGI_STR("[::1]")) || is_loopback_address(url->host);
}

static bool has_dots(sgi_str path)
{
    for (size_t at = 0; at < path.n;) {
        sgi_str rest = behind(path, at + 1);
        sgi_str segment = {rest.p, find_any(rest, "/")};
        if (same_text(segment, SGI_STR(".")) || same_text(segment, SGI_STR("..")) ||
            has_prefix(segment, SGI_STR("%2e")) || has_prefix(segment, SGI_STR(".%2e")))
            return true;
        at += 1 + segment.n;
    }
    return false;
}

bool sgi_url_covers(const sgi_url *resource, const sgi_url *endpoint)
{
    sgi_str path = resource->path;
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    if (!sgi_url_same_origin(resource, endpoint) || resource->has_fragment)
        return false;
    if (resource->query.p &&
        !(endpoint->query.p && sgi_str_eq(resource->query, endpoint->query)))
        return false;
    if (!path.n)
        return true;
    if (has_dots(path) || has_dots(endpoint->path) ||
        !sgi_str_begins(endpoint->path, path))
        return false;
    return endpoint->path.n == path.n || endpoint->path.p[path.n] == '/';
}

bool sgi_url_resolve_location(const sgi_url *from, sgi_str location, sgi_buf *out)
{
    sgi_url url;
    size_t start = out->len;
    if (location.n && location.p[0] == '/' && !(location.n > 1 && location.p[1] == '/'))
        sgi_buf_add_str(out, from->origin);
    sgi_buf_add_str(out, location);
    if (out->failed)
        return false;
    if (sgi_url_parse(behind(sgi_buf_str(out), start), &url))
        return true;
    sgi_buf_truncate(out, start);
    return false;
}
