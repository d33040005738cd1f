/* libwebsockets as a guest of the runtime's loop: it watches and reads connected sockets
 * in its raw-skt role and says what happens to them. One guest per runtime, made when the
 * first socket comes. Loop thread, lock held, everywhere. */
#ifndef SGI_SOCKET_GUEST_H
#define SGI_SOCKET_GUEST_H

#include "transport/transport.h"

typedef struct sgi_socket_guest sgi_socket_guest;
typedef struct sgi_guest_socket sgi_guest_socket;

/* Any of them may let go of any socket, its own included. */
typedef struct sgi_guest_events {
    void (*bytes)(sgi_guest_socket *socket, const char *bytes, size_t len);
    void (*writable)(sgi_guest_socket *socket);
    /* The peer has gone, or the runtime ends (ends is true): the descriptor is closed and
     * nothing more comes. */
    void (*gone)(sgi_guest_socket *socket, bool ends);
} sgi_guest_events;

/* Part of what owns the socket. */
struct sgi_guest_socket {
    sgi_socket_guest *guest;
    const sgi_guest_events *events;
    void *handle; /* NULL = not with the guest */
    int fd;       /* to write to; the guest reads and closes it */
    LIST_ENTRY(sgi_guest_socket) link;
};

/* Begins to read the descriptor, which is the guest's in any case. */
segue_status sgi_guest_adopt(segue_runtime *rt, sgi_guest_socket *socket, int fd,
                             const sgi_guest_events *events);
/* The guest of a socket that was adopted keeps room for output that is made in one go
 * and written at once; empty between uses. */
sgi_buf *sgi_guest_room(const sgi_guest_socket *socket);
/* Writable is called once, as soon as the descriptor takes bytes again. */
void sgi_guest_want_writable(sgi_guest_socket *socket);
/* While it is off, the end of the connection is not seen either. */
void sgi_guest_read(sgi_guest_socket *socket, bool on);
/* Closes the descriptor; no event comes any more. The memory may go. */
void sgi_guest_drop(sgi_guest_socket *socket);

#endif
