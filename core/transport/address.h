/* Which addresses are of the public network: what a peer names may not lead a client to
 * machines that only it can reach. */
#ifndef SGI_ADDRESS_H
#define SGI_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/base.h"

typedef struct sgi_address {
    int32_t family; /* AF_INET or AF_INET6; 0 = none */
    uint8_t bytes[16];
} sgi_address;

/* False for what is no IP address. An IPv4 address within one of IPv6 becomes IPv4. */
bool sgi_address_of(const struct sockaddr *from, sgi_address *address, uint16_t *port);
/* A host of a URL that is an address, in any spelling that systems take for one. */
bool sgi_address_parse(sgi_str host, sgi_address *address);

/* Neither private, nor of this machine or link, nor set apart for another purpose. */
bool sgi_address_is_public(const sgi_address *address);
bool sgi_address_is_loopback(const sgi_address *address);
bool sgi_address_same(const sgi_address *a, const sgi_address *b);

#endif
