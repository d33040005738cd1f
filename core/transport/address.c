/* The special-purpose address registries of IANA (RFC 6890 and its successors), without
 * the globally reachable ranges. For an IPv6 address that contains an IPv4 address, the
 * registry of IPv4 decides. */
#include "transport/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

typedef struct range {
    uint8_t bytes[16];
    int32_t bits;
} range;

static const range special_4[] = {
    {{0}, 8},             /* "this network", which includes 0.0.0.0 */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* address space that providers share */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local, which includes the metadata services of clouds */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocol assignments */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 88, 99}, 24},  /* 6to4 relays */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 3},           /* multicast, reserved, broadcast */
};

static const range special_6[] = {
    {{0}, 96},                         /* ::, ::1, IPv4-compatible */
    {{0, 0x64, 0xff, 0x9b, 0, 1}, 48}, /* IPv4/IPv6 translation, for local use */
    {{1}, 64},                         /* discard-only */
    {{0x20, 0x01}, 23},                /* protocol assignments, Teredo */
    {{0x20, 0x01, 0x0d, 0xb8}, 32},    /* documentation */
    {{0x3f, 0xff}, 20},                /* documentation */
    {{0x5f}, 16},                      /* segment routing */
    {{0xfc}, 7},                       /* unique local */
    {{0xfe, 0x80}, 10},                /* link-local */
    {{0xfe, 0xc0}, 10},                /* site-local (deprecated) */
    {{0xff}, 8},                       /* multicast */
};

/* The IPv6 prefixes that are followed by an IPv4 address. */
static const range carriers[] = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96}, /* IPv4-mapped */
    {{0, 0x64, 0xff, 0x9b}, 96},                      /* IPv4/IPv6 translation */
    {{0x20, 0x02}, 16},                               /* 6to4 */
};

static bool is_within(const range *r, const uint8_t *bytes)
{
    int32_t whole = r->bits / 8, rest = r->bits % 8;
    uint8_t mask = (uint8_t)(0xff00 >> rest);
    return memcmp(r->bytes, bytes, (size_t)whole) == 0 &&
           (!rest || !((r->bytes[whole] ^ bytes[whole]) & mask));
}

static void unwrap(sgi_ip_address *address)
{
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (is_within(&carriers[i], address->bytes)) {
            uint8_t inner[4];
            memcpy(inner, address->bytes + carriers[i].bits / 8, sizeof inner);
            *address = (sgi_ip_address){.family = AF_INET};
            memcpy(address->bytes, inner, sizeof inner);
            return;
        }
}

bool sgi_ip_address_from_sockaddr(const struct sockaddr *from, sgi_ip_address *address,
                                  uint16_t *port)
{
    const struct sockaddr_in *in = (const void *)from;
    const struct sockaddr_in6 *in6 = (const void *)from;
    *address = (sgi_ip_address){.family = from->sa_family};
    if (from->sa_family == AF_INET) {
        memcpy(address->bytes, &in->sin_addr, 4);
        *port = ntohs(in->sin_port);
        return true;
    }
    if (from->sa_family != AF_INET6)
        return false;
    memcpy(address->bytes, &in6->sin6_addr, 16);
    *port = ntohs(in6->sin6_port);
    unwrap(address);
    return true;
}

bool sgi_ip_address_parse(sgi_str host, sgi_ip_address *address)
{
    char text[INET6_ADDRSTRLEN + 1];
    struct in_addr in;
    bool bracket = host.n > 2 && host.p[0] == '[';
    sgi_str bare = {host.p + bracket, host.n - 2 * (size_t)bracket};
    *address = (sgi_ip_address){0};
    if (!bare.n || bare.n >= sizeof text)
        return false;
    memcpy(text, bare.p, bare.n);
    text[bare.n] = 0;
    if (inet_pton(AF_INET6, text, address->bytes) == 1) {
        address->family = AF_INET6;
        unwrap(address);
    } else if (inet_aton(text, &in)) { /* inet_aton accepts even forms such as 0x7f.1 */
        address->family = AF_INET;
        memcpy(address->bytes, &in, sizeof in);
    }
    return address->family != 0;
}

bool sgi_ip_address_is_public(const sgi_ip_address *address)
{
    bool is_4 = address->family == AF_INET;
    const range *ranges = is_4 ? special_4 : special_6;
    size_t count = is_4 ? sizeof special_4 / sizeof *special_4
                        : sizeof special_6 / sizeof *special_6;
    for (size_t i = 0; i < count; i++)
        if (is_within(&ranges[i], address->bytes))
            return false;
    return address->family != 0;
}

bool sgi_ip_address_is_loopback(const sgi_ip_address *address)
{
    static const uint8_t one[16] = {[15] = 1};
    return address->family == AF_INET
               ? address->bytes[0] == 127
               : address->family == AF_INET6 && !memcmp(address->bytes, one, sizeof one);
}

bool sgi_ip_address_same(const sgi_ip_address *a, const sgi_ip_address *b)
{
    return a->family && a->family == b->family &&
           !memcmp(a->bytes, b->bytes, sizeof a->bytes);
}
