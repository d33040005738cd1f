/* The head of a request comes from an application. Headers that it does not mean for the
 * library are left out here; everything else is checked while the head is filled
 * (wire/http1_head.h). */
#include "transport/http_exchange_text.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include "wire/http1_text.h"

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
        if (names[i].n == name.n && sgi_http1_same_ignoring_case(name, names[i]))
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

/* Returns the number of bytes of all texts of the head. */
static size_t size_of(const segue_exchange_head *given, sgi_str method, sgi_str target)
{
    size_t size = method.n + target.n + 2;
    for (size_t i = 0; i < given->header_count; i++)
        size += given->headers[i].name_len + given->headers[i].value_len + 2;
    return size;
}

static bool add_headers(sgi_http1_head *head, const segue_exchange_head *given)
{
    const segue_http_field *host = find_host(given);
    if (host && !sgi_http1_head_add(head, SGI_STR("host"), value_of(host)))
        return false;
    for (size_t i = 0; i < given->header_count; i++) {
        sgi_str name = name_of(&given->headers[i]);
        bool is_ours = (!name.n || *name.p != ':') && !is_of_connection(name);
        if (is_ours && !sgi_http1_head_add(head, name, value_of(&given->headers[i])))
            return false;
    }
    return true;
}

const char *sgi_http_fill_head(sgi_http1_head *head, const segue_exchange_head *given)
{
    sgi_str method = sgi_str_of(given->method), target = sgi_str_of(given->target);
    size_t room = size_of(given, method, target);
    if (sgi_http1_head_begin(head, method, target, room) && add_headers(head, given))
        sgi_http1_head_end(head);
    else if (head->fault.status == 400)
        return head->fault.problem;
    return NULL;
}

/* ---- the answer ---- */

void sgi_http_show_fields(const sgi_http_fields *fields,
                          segue_http_field shown[SGI_HTTP_FIELDS])
{
    const char *text = fields->text.p;
    for (uint32_t i = 0; i < fields->count; i++) {
        const sgi_http1_field *at = &fields->at[i];
        shown[i] = (segue_http_field){text + at->name_at, at->name_len,
                                      text + at->value_at, at->value_len};
    }
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
