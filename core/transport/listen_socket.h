/* Listening sockets: opening, closing, and accepting connections. This code does not
 * know what is sent over the connections. Any thread may open and close. The acceptor
 * runs on the loop thread with the lock held. */
#ifndef SGI_LISTEN_SOCKET_H
#define SGI_LISTEN_SOCKET_H

#include <ev.h>
#include <sys/types.h>

#include "transport/transport.h"

typedef enum sgi_listen_kind {
    SGI_LISTEN_TCP = 0,
    SGI_LISTEN_UNIX,
    /* a socket that the starter of the process has opened, as systemd does */
    SGI_LISTEN_INHERITED
} sgi_listen_kind;

typedef struct sgi_listen_options {
    sgi_listen_kind kind;
    int32_t backlog; /* number of connections that may wait; 0 = the system's maximum */
    /* ---- for TCP ---- */
    /* an IPv4 or IPv6 address, or "localhost"; names are not looked up */
    const char *address;
    int32_t port;    /* the TCP port; 0 = any free port */
    bool reuse_port; /* other sockets of this user may use the same port */
    /* ---- for Unix ---- */
    const char *path;
    int32_t mode; /* permissions of the socket's file; 0 = 0600 */
    /* ---- for inherited sockets ---- */
    const char *name; /* name of the inherited socket; NULL = `index` selects it */
    int32_t index;
} sgi_listen_options;

typedef struct sgi_listen_socket {
    int fd;
    int32_t port; /* the TCP port; 0 for other sockets */
    const sgi_mem *mem;
    char *path; /* the file to remove at close, if its inode is still the same */
    dev_t device;
    ino_t inode;
} sgi_listen_socket;

/* Opens a socket, which listens when the function returns. On failure `why` receives
 * the reason. Returns SEGUE_E_INVALID for impossible options, SEGUE_E_EXISTS when
 * another server listens on this address, SEGUE_E_NOT_FOUND when no socket of that name
 * was inherited, otherwise SEGUE_E_IO. */
segue_status sgi_listen_open(sgi_listen_socket *socket, const sgi_mem *mem,
                             const sgi_listen_options *options, char why[SGI_WHY_SIZE]);
/* Closes the socket. May be called for a socket that is already closed. */
void sgi_listen_close(sgi_listen_socket *socket);

/* ---- accepting ---- */

typedef struct sgi_acceptor sgi_acceptor;

/* Called for each accepted connection. The descriptor (non-blocking, close-on-exec)
 * belongs to the callee. The callee may stop the acceptor. */
typedef void (*sgi_accept_fn)(void *user, int fd);

struct sgi_acceptor {
    segue_runtime *rt;
    sgi_accept_fn accepted;
    void *user;
    int32_t max; /* maximum number of connections */
    /* number of accepted connections that were not returned to the acceptor yet */
    int32_t count;
    bool running;
    /* accepting failed for lack of descriptors or memory, or for another lasting
     * reason, and is tried again later */
    bool paused;
    ev_io readable;
    sgi_timer retry;
};

/* Starts accepting. The owner must keep the socket open until it stops the acceptor. */
void sgi_acceptor_start(sgi_acceptor *acceptor, segue_runtime *rt,
                        const sgi_listen_socket *socket, int32_t max,
                        sgi_accept_fn accepted, void *user);
/* Stops accepting. May be called when the acceptor is not running. Connections may
 * still be returned to it. */
void sgi_acceptor_stop(sgi_acceptor *acceptor);
/* Called when an accepted connection is closed: the acceptor may then accept another. */
void sgi_acceptor_return(sgi_acceptor *acceptor);

#endif
