/* Listening sockets: opening, closing, and accepting connections. The code of this file
 * does not know what is sent over the connections. Any thread may open and close sockets.
 * The acceptor runs on the loop thread with the lock held. */
#ifndef SGI_LISTEN_SOCKET_H
#define SGI_LISTEN_SOCKET_H

#include <ev.h>
#include <sys/types.h>

#include "transport/transport.h"

typedef enum sgi_listen_kind {
    SGI_LISTEN_TCP = 0,
    SGI_LISTEN_UNIX,
    /* a socket that another program, such as systemd, has opened for this process */
    SGI_LISTEN_INHERITED
} sgi_listen_kind;

typedef struct sgi_listen_options {
    sgi_listen_kind kind;
    /* maximum number of connections that wait to be accepted; 0 = the system's maximum */
    int32_t backlog;
    /* ---- for TCP ---- */
    /* an IPv4 or IPv6 address, or "localhost"; other host names are not looked up */
    const char *address;
    int32_t port;    /* the TCP port; 0 = any free port */
    bool reuse_port; /* true = other sockets of this user may use the same port */
    /* ---- for Unix ---- */
    const char *path;
    int32_t mode; /* permissions of the socket's file; 0 = 0600 */
    /* ---- for inherited sockets ---- */
    const char *name; /* name of the inherited socket; NULL = `index` selects it */
    int32_t index;
} sgi_listen_options;

typedef struct sgi_listen_socket {
    int fd;
    /* the TCP port that the socket listens on; 0 = the socket is not a TCP socket */
    int32_t port;
    const sgi_mem *mem;
    /* the file to remove at close, if its inode is still the same; NULL = no file */
    char *path;
    dev_t device;
    ino_t inode;
} sgi_listen_socket;

/* Opens a socket, which listens when the function returns. Returns SEGUE_E_INVALID for
 * impossible options, SEGUE_E_EXISTS when another server listens on this address,
 * SEGUE_E_NOT_FOUND when no socket with this name was inherited, and SEGUE_E_IO after
 * other failures. On failure `why` receives the reason. */
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
    /* number of accepted connections that were not returned by
     * sgi_acceptor_on_conn_closed yet */
    int32_t count;
    bool running;
    /* true = accepting has failed for a lasting reason, such as lack of descriptors, and
     * is tried again later */
    bool paused;
    ev_io readable;
    sgi_timer retry;
};

/* Starts accepting connections. The owner must keep the socket open until it stops the
 * acceptor. */
void sgi_acceptor_start(sgi_acceptor *acceptor, segue_runtime *rt,
                        const sgi_listen_socket *socket, int32_t max,
                        sgi_accept_fn accepted, void *user);
/* Accepts all connections that wait now, as far as there is room. Called before the
 * socket is closed, because closing resets those that wait. */
void sgi_acceptor_take_waiting(sgi_acceptor *acceptor);
/* Stops accepting connections. May be called when the acceptor is not running.
 * sgi_acceptor_on_conn_closed may still be called afterwards. */
void sgi_acceptor_stop(sgi_acceptor *acceptor);
/* Called when an accepted connection is closed. The acceptor can then accept another
 * connection. */
void sgi_acceptor_on_conn_closed(sgi_acceptor *acceptor);

#endif
