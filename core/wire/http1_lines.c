/* Reads the lines of HTTP/1.1 of a head, and its trailers. A line is checked when it is
 * complete, so the result never depends on how its bytes arrived. */
#include "wire/http1_head.h"

#include "wire/http1_text.h"

/* Reads the version; only HTTP/1.0 and HTTP/1.1 are accepted. HTTP/1.2 to 1.9 could be
 * read like 1.1, but other readers refuse these versions and no client sends them. */
static bool read_version(sgi_http1_head *head, sgi_str text)
{
    if (text.n != 8 || memcmp(text.p, "HTTP/", 5) != 0 ||
        !sgi_http1_is(text.p[5], SGI_HTTP1_DIGIT) || text.p[6] != '.' ||
        !sgi_http1_is(text.p[7], SGI_HTTP1_DIGIT))
        return sgi_http1_refuse(head, 400, "the request line has no HTTP version");
    if (text.p[5] != '1' || text.p[7] > '1')
        return sgi_http1_refuse(head, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    head->minor = (unsigned char)(text.p[7] - '0');
    return true;
}

bool sgi_http1_read_request_line(sgi_http1_head *head, sgi_str line)
{
    sgi_str method = {line.p, sgi_http1_span(line, SGI_HTTP1_TOKEN)};
    if (!method.n || method.n == line.n || line.p[method.n] != ' ')
        return sgi_http1_refuse(head, 400,
                                "the HTTP method has a character that is not allowed");
    sgi_str rest = sgi_http1_skip(line, method.n + 1);
    sgi_str target = {rest.p, sgi_http1_span(rest, SGI_HTTP1_TARGET)};
    if (!target.n || target.n == rest.n || rest.p[target.n] != ' ')
        return sgi_http1_refuse(head, 400,
                                "the request target has a byte that is not allowed");
    return read_version(head, sgi_http1_skip(rest, target.n + 1)) &&
           sgi_http1_take_request(head, method.n, target.n);
}

static const char *fault_of_name(sgi_str line, size_t span)
{
    if (*line.p == ' ' || *line.p == '\t')
        return "a header is continued on a second line";
    if (span == line.n)
        return "a header has no colon";
    if (line.p[span] == ' ' || line.p[span] == '\t')
        return "a header name is followed by a blank";
    return line.p[span] == ':' ? "a header name is empty"
                               : "a header name has a character that is not allowed";
}

static bool split_header(sgi_http1_head *head, sgi_str line, sgi_str *name,
                         sgi_str *value)
{
    size_t span = sgi_http1_span(line, SGI_HTTP1_TOKEN);
    if (!span || span == line.n || line.p[span] != ':')
        return sgi_http1_refuse(head, 400, fault_of_name(line, span));
    *name = (sgi_str){line.p, span};
    *value = sgi_http1_skip(line, span + 1);
    if (!sgi_http1_is_value(*value))
        return sgi_http1_refuse(head, 400, "a header value has a control character");
    *value = sgi_http1_trim(*value);
    return true;
}

bool sgi_http1_read_trailer(sgi_http1_head *head, sgi_str line, size_t number)
{
    sgi_str name, value;
    if (!split_header(head, line, &name, &value))
        return false;
    if (number > head->limits.max_headers)
        return sgi_http1_refuse_over_limit(head, 431, "the body has too many trailers",
                                           SGI_HTTP1_MAX_HEADERS);
    if (sgi_http1_name_of(name) != SGI_HTTP1_NAMES)
        return sgi_http1_refuse(
            head, 400, "a trailer has the name of a header that must not be a trailer");
    return true;
}

bool sgi_http1_read_header(sgi_http1_head *head, sgi_str line)
{
    sgi_str name, value;
    return split_header(head, line, &name, &value) &&
           sgi_http1_take_header(head, name, value);
}
