/* Distinguishes public IP addresses from all other addresses. A URL that a peer names
 * must not lead a client to machines that only this client can reach. */
#ifndef SGI_ADDRESS_H
#define SGI_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/base.h"

typedef struct sgi_ip_address {
    int32_t family; /* AF_INET or AF_INET6; 0 = the struct has no address */
    uint8_t bytes[16];
} sgi_ip_address;

/* Reads the IP address and port of a socket address. Returns false when `from` is not an
 * IP address. An IPv4 address inside an IPv6 address is stored as IPv4. */
bool sgi_ip_address_from_sockaddr(const struct sockaddr *from, sgi_ip_address *address,
                                  uint16_t *port);
/* Reads the host of a URL as an address, in any form that operating systems accept.
 * Returns false when the host is not an address. */
bool sgi_ip_address_parse(sgi_str host, sgi_ip_address *address);

/* True when the address is public: it is not private, not of this machine or link, and
 * not reserved for a special purpose. */
bool sgi_ip_address_is_public(const sgi_ip_address *address);
bool sgi_ip_address_is_loopback(const sgi_ip_address *address);
bool sgi_ip_address_same(const sgi_ip_address *a, const sgi_ip_address *b);

#endif
