/* Determines the address of the peer of a connected socket, and whether the peer is on
 * this machine. When the system does not know the address, the address is empty. */
#include "transport/link.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include <arpa/inet.h>

static bool is_loopback6(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

void sgi_link_peer_of_fd(int fd, sgi_link_peer *peer)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_storage room;
    } from = {0};
    char host[INET6_ADDRSTRLEN] = "";
    socklen_t len = sizeof from;
    *peer = (sgi_link_peer){0};
    if (getpeername(fd, &from.any, &len) != 0)
        return;
    if (from.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &from.in.sin_addr, host, sizeof host);
        snprintf(peer->address, sizeof peer->address, "%s:%u", host,
                 (unsigned)ntohs(from.in.sin_port));
        peer->is_local = ntohl(from.in.sin_addr.s_addr) >> 24 == 127;
    } else if (from.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &from.in6.sin6_addr, host, sizeof host);
        snprintf(peer->address, sizeof peer->address, "[%s]:%u", host,
                 (unsigned)ntohs(from.in6.sin6_port));
        peer->is_local = is_loopback6(&from.in6.sin6_addr);
    } else if (from.any.sa_family == AF_UNIX) {
        snprintf(peer->address, sizeof peer->address, "unix");
        peer->is_local = true;
    }
}
