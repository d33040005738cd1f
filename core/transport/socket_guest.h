/* The guest: libwebsockets, which takes part in the runtime's loop. It watches and
 * reads connected sockets in its raw-skt role, and reports their events. A runtime has
 * one guest, which is made for the runtime's first socket. All functions run on the
 * loop thread with the lock held. */
#ifndef SGI_SOCKET_GUEST_H
#define SGI_SOCKET_GUEST_H

#include "transport/transport.h"

typedef struct sgi_socket_guest sgi_socket_guest;
typedef struct sgi_guest_socket sgi_guest_socket;

/* The events of a socket. Each callback may drop any socket, even the socket of the
 * event. */
typedef struct sgi_guest_socket_events {
    void (*bytes)(sgi_guest_socket *socket, const char *bytes, size_t len);
    void (*writable)(sgi_guest_socket *socket);
    /* Called when the peer has disconnected (ends: false) or when the runtime ends (ends:
     * true). The descriptor is already closed, and no further event comes. */
    void (*gone)(sgi_guest_socket *socket, bool ends);
} sgi_guest_socket_events;

/* A socket that libwebsockets (the guest) watches and reads. The struct is a member of
 * the object that owns the socket. */
struct sgi_guest_socket {
    sgi_socket_guest *guest;
    const sgi_guest_socket_events *events;
    /* libwebsockets' object for the socket; NULL = the socket was not adopted */
    void *handle;
    /* the descriptor; the owner writes to it, and libwebsockets reads and closes it */
    int fd;
    LIST_ENTRY(sgi_guest_socket) link;
};

/* Takes over the descriptor and starts reading it. On failure the function closes the
 * descriptor. */
segue_status sgi_guest_socket_adopt(segue_runtime *rt, sgi_guest_socket *socket, int fd,
                                    const sgi_guest_socket_events *events);
/* Returns a buffer for output that is built and sent at once. All sockets that
 * libwebsockets watches share the buffer, which is empty between uses. */
sgi_buf *sgi_guest_socket_scratch(const sgi_guest_socket *socket);
/* Asks for one call of `writable`, which comes as soon as the descriptor accepts bytes
 * again. */
void sgi_guest_socket_want_writable(sgi_guest_socket *socket);
/* Turns reading on or off. While reading is off, the end of the connection is not
 * noticed. */
void sgi_guest_socket_set_reading(sgi_guest_socket *socket, bool on);
/* Closes the descriptor; no event comes any more. The memory of the socket may then be
 * freed. */
void sgi_guest_socket_close(sgi_guest_socket *socket);

#endif
