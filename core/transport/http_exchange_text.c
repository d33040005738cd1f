/* The answer's head needs no checks, because http_answer.c has written it. The request's
 * head comes from an application: a text that could add a line is refused here, and the
 * parser checks everything else. */
#include "transport/http_exchange_text.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "wire/http1_head.h"

/* ---- the request ---- */

/* True for a header about the connection of the application's server, or about the
 * framing of the body, which that server has removed. */
static bool is_of_connection(sgi_str name)
{
    static const sgi_str names[] = {
        SGI_STR_INIT("connection"),       SGI_STR_INIT("transfer-encoding"),
        SGI_STR_INIT("expect"),           SGI_STR_INIT("keep-alive"),
        SGI_STR_INIT("proxy-connection"), SGI_STR_INIT("te"),
        SGI_STR_INIT("upgrade"),          SGI_STR_INIT("trailer")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sgi_http1_same_ignoring_case(name, names[i]))
            return true;
    return false;
}

static sgi_str name_of(const segue_http_field *field)
{
    return (sgi_str){field->name, field->name_len};
}

static sgi_str value_of(const segue_http_field *field)
{
    return (sgi_str){field->value, field->value_len};
}

/* Returns the host that the request names: Host, otherwise :authority. */
static const segue_http_field *find_host(const segue_exchange_head *head)
{
    const segue_http_field *found = NULL;
    for (size_t i = 0; i < head->header_count; i++) {
        sgi_str name = name_of(&head->headers[i]);
        if (sgi_http1_same_ignoring_case(name, SGI_STR("host")))
            return NULL;
        if (sgi_str_eq(name, SGI_STR(":authority")))
            found = &head->headers[i];
    }
    return found;
}

/* Appends a header, unless it is about the connection. Returns false when the name or the
 * value is not allowed. */
static bool add_header(sgi_buf *out, const segue_http_field *field)
{
    sgi_str name = name_of(field);
    if ((name.n && *name.p == ':') || is_of_connection(name))
        return true;
    return sgi_http1_add_header(out, name, value_of(field));
}

const char *sgi_http_write_request_head(sgi_buf *out, const segue_exchange_head *head)
{
    sgi_str method = sgi_str_of(head->method), target = sgi_str_of(head->target);
    if (!method.n || sgi_http1_span(method, SGI_HTTP1_TOKEN) < method.n)
        return "the HTTP method has a character that is not allowed";
    if (!target.n || sgi_http1_span(target, SGI_HTTP1_TARGET) < target.n)
        return "the request target has a byte that is not allowed";
    sgi_buf_add_str(out, method);
    sgi_buf_add_char(out, ' ');
    sgi_buf_add_str(out, target);
    sgi_buf_add_lit(out, " HTTP/1.1\r\n");
    const segue_http_field *host = find_host(head);
    if (host && !sgi_http1_add_header(out, SGI_STR("host"), value_of(host)))
        return "the host has a character that is not allowed";
    for (size_t i = 0; i < head->header_count; i++)
        if (!add_header(out, &head->headers[i]))
            return "a header has a character that is not allowed";
    sgi_http1_add_head_end(out);
    return NULL;
}

/* ---- the answer ---- */

/* Ends the text at `end` with a NUL. */
static sgi_str cut(char *begin, char *end)
{
    *end = 0;
    return (sgi_str){begin, (size_t)(end - begin)};
}

static void to_lower_case(char *name)
{
    for (; *name; name++)
        if (*name >= 'A' && *name <= 'Z')
            *name = (char)(*name | 0x20);
}

/* Reads the header line that begins at `line`. Returns the next line. */
static char *read_field(char *line, char *end, sgi_http_read_head *head)
{
    char *newline = memchr(line, '\r', (size_t)(end - line));
    char *colon = memchr(line, ':', (size_t)(newline - line));
    sgi_str name = cut(line, colon), value = cut(colon + 2, newline);
    to_lower_case(line);
    if (head->count < SGI_HTTP_ANSWER_FIELDS)
        head->fields[head->count++] =
            (segue_http_field){name.p, name.n, value.p, value.n};
    return newline + 2;
}

sgi_str sgi_http_read_answer_head(sgi_buf *answer, sgi_http_read_head *head)
{
    char *end = answer->p + answer->len;
    char *line = (char *)memchr(answer->p, '\n', answer->len) + 1;
    const char *status = answer->p + sizeof "HTTP/1.1 " - 1;
    head->status = (status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0');
    head->count = 0;
    while (*line != '\r')
        line = read_field(line, end, head);
    return (sgi_str){line + 2, (size_t)(end - line) - 2};
}

/* ---- addresses ---- */

sgi_str sgi_http_address_in(const char *address)
{
    sgi_str text = sgi_str_of(address);
    const char *colon = memchr(text.p, ':', text.n);
    if (text.n && *text.p == '[') {
        const char *bracket = memchr(text.p, ']', text.n);
        return bracket ? (sgi_str){text.p + 1, (size_t)(bracket - text.p) - 1} : text;
    }
    if (!colon || memchr(colon + 1, ':', text.n - (size_t)(colon - text.p) - 1))
        return text; /* no port, or an IPv6 address without brackets */
    return (sgi_str){text.p, (size_t)(colon - text.p)};
}

bool sgi_http_is_local_address(const char *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    struct in_addr in;
    struct in6_addr in6;
    sgi_str host = sgi_http_address_in(address);
    if (sgi_http1_same_ignoring_case(host, SGI_STR("localhost")) ||
        sgi_str_eq(host, SGI_STR("unix")))
        return true;
    if (host.n >= sizeof text)
        return false;
    memcpy(text, host.p, host.n);
    if (inet_pton(AF_INET, text, &in) == 1)
        return ntohl(in.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, text, &in6) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&in6) ||
            (IN6_IS_ADDR_V4MAPPED(&in6) && in6.s6_addr[12] == 127));
}

void sgi_http_read_peer(const char *address, sgi_link_peer *peer)
{
    *peer = (sgi_link_peer){0};
    if (!address)
        return;
    snprintf(peer->address, sizeof peer->address, "%s", address);
    peer->is_local = sgi_http_is_local_address(address);
}
