/* What a complete head means: its host, target, framing, expectation and persistence.
 *
 * Where the standard allows several readings, the head is refused. A proxy in front of
 * the server can read a request differently, and two different readings of one request
 * allow request smuggling. Therefore a body has exactly one framing, Content-Length
 * occurs once, the only transfer coding is chunked, and the host is named once. */
#include "wire/http1_head.h"

#include "wire/http1_text.h"

/* Returns the length of the host name, or of the IPv6 address in brackets, at the
 * beginning of the text; 0 = no host. The address itself is not checked. */
static size_t host_len(sgi_str text)
{
    if (!text.n || *text.p != '[')
        return sgi_http1_span(text, SGI_HTTP1_REG);
    size_t n = 1;
    while (n < text.n && (sgi_http1_is(text.p[n], SGI_HTTP1_HEX) || text.p[n] == ':' ||
                          text.p[n] == '.'))
        n++;
    return n > 2 && n < text.n && text.p[n] == ']' ? n + 1 : 0;
}

/* Splits host [":" [port]] into name and port. The function is stricter than RFC 3986: it
 * refuses commas and similar characters. A real host name has no comma, but a header that
 * was joined from two host names has one. */
static bool split_host(sgi_str text, sgi_str *name, sgi_str *port)
{
    size_t len = host_len(text);
    *name = (sgi_str){text.p, len};
    *port = (sgi_str){0};
    if (!len || len == text.n)
        return len != 0;
    *port = sgi_http1_skip(text, len + 1);
    return text.p[len] == ':' && port->n <= 5 &&
           sgi_http1_span(*port, SGI_HTTP1_DIGIT) == port->n;
}

/* True when two hosts are the same. A missing port means the default port of the
 * scheme. */
static bool is_same_host(sgi_str a, sgi_str b, sgi_str scheme_port)
{
    sgi_str name_a, name_b, port_a, port_b;
    if (!split_host(a, &name_a, &port_a) || !split_host(b, &name_b, &port_b))
        return false;
    return sgi_http1_same_ignoring_case(name_a, name_b) &&
           sgi_str_eq(port_a.n ? port_a : scheme_port, port_b.n ? port_b : scheme_port);
}

static bool check_host(sgi_http1_head *head)
{
    sgi_str name, port;
    head->host = sgi_http1_header(head, SGI_HTTP1_HOST);
    if (!head->host.p)
        return head->minor == 0 ||
               sgi_http1_refuse(head, 400, "the request has no Host header");
    if (sgi_http1_is_repeated(head, SGI_HTTP1_HOST))
        return sgi_http1_refuse(head, 400, "the request has several Host headers");
    if (!split_host(head->host, &name, &port))
        return sgi_http1_refuse(head, 400, "the Host header is malformed");
    return true;
}

static bool starts_with(sgi_str text, sgi_str start)
{
    return text.n >= start.n &&
           sgi_http1_same_ignoring_case((sgi_str){text.p, start.n}, start);
}

/* Reads a target of the form http://host/path. Clients send this form to proxies, but
 * every server must understand it (RFC 9112 3.2.2). *rest receives the path and
 * everything after the path. */
static bool read_absolute(sgi_http1_head *head, sgi_str *rest)
{
    bool secure = starts_with(*rest, SGI_STR("https://"));
    if (!secure && !starts_with(*rest, SGI_STR("http://")))
        return sgi_http1_refuse(head, 400,
                                "the request target is neither a path nor a URL");
    *rest = sgi_http1_skip(*rest, secure ? 8 : 7);
    size_t len = 0;
    while (len < rest->n && rest->p[len] != '/' && rest->p[len] != '?')
        len++;
    sgi_str host = {rest->p, len}, name, port;
    *rest = sgi_http1_skip(*rest, len);
    if (!split_host(host, &name, &port))
        return sgi_http1_refuse(head, 400, "the host in the request target is malformed");
    if (head->host.p &&
        !is_same_host(host, head->host, secure ? SGI_STR("443") : SGI_STR("80")))
        return sgi_http1_refuse(
            head, 400, "the request target and the Host header name different hosts");
    head->host = host;
    return true;
}

static bool read_target(sgi_http1_head *head)
{
    sgi_str rest = head->target;
    bool is_options = sgi_str_eq(head->method, SGI_STR("OPTIONS"));
    bool is_absolute = *rest.p != '/' && *rest.p != '*';
    if (*rest.p == '*' && (rest.n > 1 || !is_options))
        return sgi_http1_refuse(head, 400,
                                "the request target is neither a path nor a URL");
    if (is_absolute && !read_absolute(head, &rest))
        return false;
    const char *mark = rest.n ? memchr(rest.p, '?', rest.n) : NULL;
    head->path = rest;
    if (mark) {
        head->path.n = (size_t)(mark - rest.p);
        head->query = sgi_http1_skip(rest, head->path.n + 1);
    }
    /* a target without a path means "*" for OPTIONS without a query, otherwise "/" */
    if (!head->path.n)
        head->path = is_options && !mark ? SGI_STR("*") : SGI_STR("/");
    return true;
}

/* Reads a sequence of digits as a number below 2^64. Returns false for any other text. */
static bool read_length(sgi_str text, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint64_t digit = (uint64_t)(text.p[i] - '0');
        if (!sgi_http1_is(text.p[i], SGI_HTTP1_DIGIT) ||
            *length > (UINT64_MAX - digit) / 10)
            return false;
        *length = *length * 10 + digit;
    }
    return text.n != 0;
}

/* True when a tab follows the value, perhaps after blanks. Programs differ in how they
 * read a tab after a value such as a length. */
static bool has_tab_behind(sgi_str value)
{
    const char *p = value.p + value.n;
    while (*p == ' ') /* the CR of the line, or the NUL behind a text, stops this loop */
        p++;
    return *p == '\t';
}

static bool read_framing(sgi_http1_head *head)
{
    sgi_str length = sgi_http1_header(head, SGI_HTTP1_CONTENT_LENGTH);
    sgi_str coding = sgi_http1_header(head, SGI_HTTP1_TRANSFER_ENCODING);
    if (length.p && coding.p)
        return sgi_http1_refuse(
            head, 400, "Content-Length and Transfer-Encoding must not both be sent");
    if (coding.p) {
        if (head->minor == 0)
            return sgi_http1_refuse(head, 400,
                                    "Transfer-Encoding is not allowed in HTTP/1.0");
        if (sgi_http1_is_repeated(head, SGI_HTTP1_TRANSFER_ENCODING))
            return sgi_http1_refuse(head, 400, "Transfer-Encoding is repeated");
        if (has_tab_behind(coding))
            return sgi_http1_refuse(
                head, 400, "the value of Transfer-Encoding is followed by a tab");
        if (!sgi_http1_same_ignoring_case(coding, SGI_STR("chunked")))
            return sgi_http1_refuse(head, 501,
                                    "the only supported transfer coding is chunked");
        head->is_chunked = true;
    }
    if (!length.p)
        return true;
    if (sgi_http1_is_repeated(head, SGI_HTTP1_CONTENT_LENGTH))
        return sgi_http1_refuse(head, 400, "Content-Length is repeated");
    if (has_tab_behind(length))
        return sgi_http1_refuse(head, 400,
                                "the value of Content-Length is followed by a tab");
    if (!read_length(length, &head->content_length))
        return sgi_http1_refuse(head, 400, "Content-Length is not a number");
    if (head->content_length > head->limits.max_body)
        return sgi_http1_refuse_over_limit(head, 413, "the body is too large",
                                           SGI_HTTP1_MAX_BODY);
    return true;
}

/* Reads the Expect header. In HTTP/1.0 the header is ignored, because an HTTP/1.0 client
 * would take 100 Continue for the final answer. */
static bool read_expectation(sgi_http1_head *head)
{
    sgi_str expected = sgi_http1_header(head, SGI_HTTP1_EXPECT);
    if (!expected.p)
        return true;
    if (sgi_http1_is_repeated(head, SGI_HTTP1_EXPECT) ||
        !sgi_http1_same_ignoring_case(expected, SGI_STR("100-continue")))
        return sgi_http1_refuse(head, 417,
                                "the only supported value of Expect is 100-continue");
    head->expects_continue =
        head->minor > 0 && (head->is_chunked || head->content_length);
    return true;
}

bool sgi_http1_head_end(sgi_http1_head *head)
{
    if (head->fault.status)
        return false;
    sgi_http1_note_missing(head);
    head->method.p = head->text.p;
    head->target.p = head->text.p + head->method.n + 1;
    if (!check_host(head) || !read_target(head) || !read_framing(head) ||
        !read_expectation(head))
        return false;
    head->keep_alive = !head->says_close && (head->minor > 0 || head->says_keep_alive);
    return true;
}
