/* Reads the lines of a head and determines their meaning.
 *
 * A line is checked when it is complete, so the result never depends on how its bytes
 * arrived. Headers are stored as offsets, because the head moves in memory while it
 * grows. The views in the parser are made when the head is complete.
 *
 * Where the standard allows several readings, this parser refuses. A proxy in front of
 * the server can read a request differently, and two different readings of one request
 * allow request smuggling. Therefore a body has exactly one framing, Content-Length
 * occurs once, the only transfer coding is chunked, and the host is named once. */
#include "wire/http1_head.h"

/* The character classes of each byte, as bits of http1_head.h; 16 bytes per row. Bytes
 * beyond ASCII are allowed only in header values. */
// clang-format off
const unsigned char sgi_http1_class[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    2, 7, 6, 3, 7, 7, 7, 7, 6, 6, 7, 7, 6, 15, 15, 6,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 6, 6, 6, 6, 6, 6,
    6, 31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6, 6, 6, 7, 15,
    7, 31, 31, 31, 31, 31, 31, 15, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 6, 7, 6, 15, 0,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
};
// clang-format on

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Returns the eight bytes at p with their ASCII letters in lower case. The additions
 * use each byte without its top bit, so that no carry reaches the next byte. */
static uint64_t lower_block(const char *p)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    uint64_t block;
    memcpy(&block, p, 8);
    uint64_t low = block & ~tops;
    uint64_t from_a = low + ones * (0x80 - 'A'), beyond_z = low + ones * (0x7f - 'Z');
    uint64_t upper = (from_a ^ beyond_z) & ~block & tops;
    return block | upper >> 2;
}

bool sgi_http1_same_ignoring_case(sgi_str a, sgi_str b)
{
    size_t i = 0;
    if (a.n != b.n)
        return false;
    for (; i + 8 <= a.n; i += 8)
        if (lower_block(a.p + i) != lower_block(b.p + i))
            return false;
    /* compares the last eight bytes of the texts; some of these bytes were compared
     * before */
    if (i && i < a.n)
        return lower_block(a.p + a.n - 8) == lower_block(b.p + b.n - 8);
    for (; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

bool sgi_http1_refuse(sgi_http1 *parser, int32_t status, const char *problem)
{
    parser->state = SGI_HTTP1_AT_FAULT;
    parser->status = status;
    parser->problem = problem;
    return false;
}

bool sgi_http1_refuse_over_limit(sgi_http1 *parser, int32_t status, const char *problem,
                                 const size_t *limit)
{
    parser->reached = limit;
    return sgi_http1_refuse(parser, status, problem);
}

/* ---- request line ---- */

/* Reads the version; only HTTP/1.0 and HTTP/1.1 are accepted. HTTP/1.2 to 1.9 could be
 * read like 1.1, but other readers refuse these versions and no client sends them. */
static bool read_version(sgi_http1 *parser, sgi_str text)
{
    if (text.n != 8 || memcmp(text.p, "HTTP/", 5) != 0 ||
        !sgi_http1_is(text.p[5], SGI_HTTP1_DIGIT) || text.p[6] != '.' ||
        !sgi_http1_is(text.p[7], SGI_HTTP1_DIGIT))
        return sgi_http1_refuse(parser, 400, "the request line has no HTTP version");
    if (text.p[5] != '1' || text.p[7] > '1')
        return sgi_http1_refuse(parser, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    parser->minor = (unsigned char)(text.p[7] - '0');
    return true;
}

bool sgi_http1_read_request_line(sgi_http1 *parser, sgi_str line)
{
    sgi_str method = {line.p, sgi_http1_span(line, SGI_HTTP1_TOKEN)};
    if (!method.n || method.n == line.n || line.p[method.n] != ' ')
        return sgi_http1_refuse(parser, 400,
                                "the HTTP method has a character that is not allowed");
    if (method.n > SGI_HTTP1_MAX_METHOD)
        return sgi_http1_refuse(parser, 501, "the method is too long");
    sgi_str rest = sgi_http1_skip(line, method.n + 1);
    sgi_str target = {rest.p, sgi_http1_span(rest, SGI_HTTP1_TARGET)};
    if (!target.n || target.n == rest.n || rest.p[target.n] != ' ')
        return sgi_http1_refuse(parser, 400,
                                "the request target has a byte that is not allowed");
    if (!read_version(parser, sgi_http1_skip(rest, target.n + 1)))
        return false;
    if (sgi_str_eq(method, SGI_STR("CONNECT")))
        return sgi_http1_refuse(parser, 501, "the method CONNECT is not supported");
    parser->method.n = method.n;
    parser->target.n = target.n;
    return true;
}

/* ---- headers ---- */

static const sgi_str names[SGI_HTTP1_NAMES] = {
    [SGI_HTTP1_HOST] = SGI_STR_INIT("host"),
    [SGI_HTTP1_ACCEPT] = SGI_STR_INIT("accept"),
    [SGI_HTTP1_EXPECT] = SGI_STR_INIT("expect"),
    [SGI_HTTP1_ORIGIN] = SGI_STR_INIT("origin"),
    [SGI_HTTP1_MCP_NAME] = SGI_STR_INIT("mcp-name"),
    [SGI_HTTP1_CONNECTION] = SGI_STR_INIT("connection"),
    [SGI_HTTP1_MCP_METHOD] = SGI_STR_INIT("mcp-method"),
    [SGI_HTTP1_CONTENT_TYPE] = SGI_STR_INIT("content-type"),
    [SGI_HTTP1_AUTHORIZATION] = SGI_STR_INIT("authorization"),
    [SGI_HTTP1_LAST_EVENT_ID] = SGI_STR_INIT("last-event-id"),
    [SGI_HTTP1_CONTENT_LENGTH] = SGI_STR_INIT("content-length"),
    [SGI_HTTP1_MCP_SESSION_ID] = SGI_STR_INIT("mcp-session-id"),
    [SGI_HTTP1_TRANSFER_ENCODING] = SGI_STR_INIT("transfer-encoding"),
    [SGI_HTTP1_MCP_PROTOCOL_VERSION] = SGI_STR_INIT("mcp-protocol-version"),
};

/* Returns the first of the known names with this length, or SGI_HTTP1_NAMES when there is
 * none. In the table, names with the same length stand next to each other. */
static sgi_http1_name first_of_length(size_t len)
{
    switch (len) {
    case 4:
        return SGI_HTTP1_HOST;
    case 6:
        return SGI_HTTP1_ACCEPT;
    case 8:
        return SGI_HTTP1_MCP_NAME;
    case 10:
        return SGI_HTTP1_CONNECTION;
    case 12:
        return SGI_HTTP1_CONTENT_TYPE;
    case 13:
        return SGI_HTTP1_AUTHORIZATION;
    case 14:
        return SGI_HTTP1_CONTENT_LENGTH;
    case 17:
        return SGI_HTTP1_TRANSFER_ENCODING;
    case 20:
        return SGI_HTTP1_MCP_PROTOCOL_VERSION;
    default:
        return SGI_HTTP1_NAMES;
    }
}

static sgi_http1_name name_of(sgi_str name)
{
    sgi_http1_name at = first_of_length(name.n);
    for (; at < SGI_HTTP1_NAMES && names[at].n == name.n; at++)
        if (sgi_http1_same_ignoring_case(names[at], name))
            return at;
    return SGI_HTTP1_NAMES;
}

sgi_str sgi_http1_trim(sgi_str text)
{
    while (text.n && (*text.p == ' ' || *text.p == '\t'))
        text = sgi_http1_skip(text, 1);
    while (text.n && (text.p[text.n - 1] == ' ' || text.p[text.n - 1] == '\t'))
        text.n--;
    return text;
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

/* True when all bytes are allowed in a header value. Eight bytes are checked at once: no
 * byte may be below a blank, and no byte may be DEL. A block that fails this check is
 * checked again byte by byte, because a tab is allowed. */
static bool is_value(sgi_str text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    while (text.n >= 8) {
        uint64_t block;
        memcpy(&block, text.p, 8);
        uint64_t del = block ^ ones * 0x7f;
        uint64_t odd = ((block - ones * 0x20) & ~block) | ((del - ones) & ~del);
        if ((odd & tops) && sgi_http1_span((sgi_str){text.p, 8}, SGI_HTTP1_VALUE) < 8)
            return false;
        text = sgi_http1_skip(text, 8);
    }
    return sgi_http1_span(text, SGI_HTTP1_VALUE) == text.n;
}

static bool split_header(sgi_http1 *parser, sgi_str line, sgi_str *name, sgi_str *value)
{
    size_t span = sgi_http1_span(line, SGI_HTTP1_TOKEN);
    if (!span || span == line.n || line.p[span] != ':')
        return sgi_http1_refuse(parser, 400, fault_of_name(line, span));
    *name = (sgi_str){line.p, span};
    *value = sgi_http1_skip(line, span + 1);
    if (!is_value(*value))
        return sgi_http1_refuse(parser, 400, "a header value has a control character");
    *value = sgi_http1_trim(*value);
    return true;
}

bool sgi_http1_read_trailer(sgi_http1 *parser, sgi_str line)
{
    sgi_str name, value;
    if (!split_header(parser, line, &name, &value))
        return false;
    if (++parser->trailer_count > parser->limits.max_headers)
        return sgi_http1_refuse_over_limit(parser, 431, "the body has too many trailers",
                                           &parser->limits.max_headers);
    if (name_of(name) != SGI_HTTP1_NAMES)
        return sgi_http1_refuse(
            parser, 400, "a trailer has the name of a header that must not be a trailer");
    return true;
}

/* Reads the elements of a Connection header. A request may have several Connection
 * headers (RFC 9110 7.6.1). */
static bool read_connection(sgi_http1 *parser, sgi_str list)
{
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t len = comma ? (size_t)(comma - list.p) : list.n;
        sgi_str option = sgi_http1_trim((sgi_str){list.p, len});
        list = sgi_http1_skip(list, comma ? len + 1 : len);
        if (sgi_http1_span(option, SGI_HTTP1_TOKEN) < option.n)
            return sgi_http1_refuse(parser, 400, "the Connection header is malformed");
        parser->says_close |= sgi_http1_same_ignoring_case(option, SGI_STR("close"));
        parser->says_keep_alive |=
            sgi_http1_same_ignoring_case(option, SGI_STR("keep-alive"));
    }
    return true;
}

static bool grow_fields(sgi_http1 *parser)
{
    uint32_t cap = parser->field_cap ? parser->field_cap * 2 : 16;
    void *fields = sgi_realloc(parser->head.mem, parser->fields,
                               parser->field_cap * sizeof *parser->fields,
                               cap * sizeof *parser->fields);
    if (!fields)
        return sgi_http1_refuse(parser, 503, "out of memory");
    parser->fields = fields;
    parser->field_cap = cap;
    return true;
}

static uint32_t offset_in_head(const sgi_http1 *parser, sgi_str text)
{
    return (uint32_t)(text.p - parser->head.p);
}

bool sgi_http1_read_header(sgi_http1 *parser, sgi_str line)
{
    sgi_str name, value;
    if (!split_header(parser, line, &name, &value))
        return false;
    if (parser->field_count >= parser->limits.max_headers)
        return sgi_http1_refuse_over_limit(
            parser, 431, "the request has too many headers", &parser->limits.max_headers);
    if (parser->field_count == parser->field_cap && !grow_fields(parser))
        return false;
    parser->fields[parser->field_count++] =
        (sgi_http1_field){offset_in_head(parser, name), (uint32_t)name.n,
                          offset_in_head(parser, value), (uint32_t)value.n};
    sgi_http1_name known = name_of(name);
    if (known == SGI_HTTP1_NAMES)
        return true;
    if (parser->known[known])
        parser->repeated |= 1u << known;
    else
        parser->known[known] = (uint16_t)parser->field_count;
    return known != SGI_HTTP1_CONNECTION || read_connection(parser, value);
}

/* ---- the whole head ---- */

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

static bool check_host(sgi_http1 *parser)
{
    sgi_str name, port;
    parser->host = sgi_http1_header(parser, SGI_HTTP1_HOST);
    if (!parser->host.p)
        return parser->minor == 0 ||
               sgi_http1_refuse(parser, 400, "the request has no Host header");
    if (sgi_http1_is_repeated(parser, SGI_HTTP1_HOST))
        return sgi_http1_refuse(parser, 400, "the request has several Host headers");
    if (!split_host(parser->host, &name, &port))
        return sgi_http1_refuse(parser, 400, "the Host header is malformed");
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
static bool read_absolute(sgi_http1 *parser, sgi_str *rest)
{
    bool secure = starts_with(*rest, SGI_STR("https://"));
    if (!secure && !starts_with(*rest, SGI_STR("http://")))
        return sgi_http1_refuse(parser, 400,
                                "the request target is neither a path nor a URL");
    *rest = sgi_http1_skip(*rest, secure ? 8 : 7);
    size_t len = 0;
    while (len < rest->n && rest->p[len] != '/' && rest->p[len] != '?')
        len++;
    sgi_str host = {rest->p, len}, name, port;
    *rest = sgi_http1_skip(*rest, len);
    if (!split_host(host, &name, &port))
        return sgi_http1_refuse(parser, 400,
                                "the host in the request target is malformed");
    if (parser->host.p &&
        !is_same_host(host, parser->host, secure ? SGI_STR("443") : SGI_STR("80")))
        return sgi_http1_refuse(
            parser, 400, "the request target and the Host header name different hosts");
    parser->host = host;
    return true;
}

static bool read_target(sgi_http1 *parser)
{
    sgi_str rest = parser->target;
    bool is_options = sgi_str_eq(parser->method, SGI_STR("OPTIONS"));
    bool is_absolute = *rest.p != '/' && *rest.p != '*';
    if (*rest.p == '*' && (rest.n > 1 || !is_options))
        return sgi_http1_refuse(parser, 400,
                                "the request target is neither a path nor a URL");
    if (is_absolute && !read_absolute(parser, &rest))
        return false;
    const char *mark = rest.n ? memchr(rest.p, '?', rest.n) : NULL;
    parser->path = rest;
    if (mark) {
        parser->path.n = (size_t)(mark - rest.p);
        parser->query = sgi_http1_skip(rest, parser->path.n + 1);
    }
    /* a target without a path means "*" for OPTIONS without a query, otherwise "/" */
    if (!parser->path.n)
        parser->path = is_options && !mark ? SGI_STR("*") : SGI_STR("/");
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
    while (*p == ' ') /* the CR at the end of the line stops this loop */
        p++;
    return *p == '\t';
}

static bool read_framing(sgi_http1 *parser)
{
    sgi_str length = sgi_http1_header(parser, SGI_HTTP1_CONTENT_LENGTH);
    sgi_str coding = sgi_http1_header(parser, SGI_HTTP1_TRANSFER_ENCODING);
    if (length.p && coding.p)
        return sgi_http1_refuse(
            parser, 400, "Content-Length and Transfer-Encoding must not both be sent");
    if (coding.p) {
        if (parser->minor == 0)
            return sgi_http1_refuse(parser, 400,
                                    "Transfer-Encoding is not allowed in HTTP/1.0");
        if (sgi_http1_is_repeated(parser, SGI_HTTP1_TRANSFER_ENCODING))
            return sgi_http1_refuse(parser, 400, "Transfer-Encoding is repeated");
        if (has_tab_behind(coding))
            return sgi_http1_refuse(
                parser, 400, "the value of Transfer-Encoding is followed by a tab");
        if (!sgi_http1_same_ignoring_case(coding, SGI_STR("chunked")))
            return sgi_http1_refuse(parser, 501,
                                    "the only supported transfer coding is chunked");
        parser->is_chunked = true;
    }
    if (!length.p)
        return true;
    if (sgi_http1_is_repeated(parser, SGI_HTTP1_CONTENT_LENGTH))
        return sgi_http1_refuse(parser, 400, "Content-Length is repeated");
    if (has_tab_behind(length))
        return sgi_http1_refuse(parser, 400,
                                "the value of Content-Length is followed by a tab");
    if (!read_length(length, &parser->content_length))
        return sgi_http1_refuse(parser, 400, "Content-Length is not a number");
    if (parser->content_length > parser->limits.max_body)
        return sgi_http1_refuse_over_limit(parser, 413, "the body is too large",
                                           &parser->limits.max_body);
    return true;
}

/* Reads the Expect header. In HTTP/1.0 the header is ignored, because an HTTP/1.0 client
 * would take 100 Continue for the final answer. */
static bool read_expectation(sgi_http1 *parser)
{
    sgi_str expected = sgi_http1_header(parser, SGI_HTTP1_EXPECT);
    if (!expected.p)
        return true;
    if (sgi_http1_is_repeated(parser, SGI_HTTP1_EXPECT) ||
        !sgi_http1_same_ignoring_case(expected, SGI_STR("100-continue")))
        return sgi_http1_refuse(parser, 417,
                                "the only supported value of Expect is 100-continue");
    parser->expects_continue =
        parser->minor > 0 && (parser->is_chunked || parser->content_length);
    return true;
}

bool sgi_http1_finish_head(sgi_http1 *parser)
{
    parser->method.p = parser->head.p;
    parser->target.p = parser->head.p + parser->method.n + 1;
    if (!check_host(parser) || !read_target(parser) || !read_framing(parser) ||
        !read_expectation(parser))
        return false;
    parser->keep_alive =
        !parser->says_close && (parser->minor > 0 || parser->says_keep_alive);
    return true;
}
