/* Listening sockets: opened, closed and accepted from. Knows nothing of what comes over
 * the connections. Open and close: any thread; the acceptor: loop thread, lock held. */
#ifndef SGI_LISTEN_SOCKET_H
#define SGI_LISTEN_SOCKET_H

#include <ev.h>
#include <sys/types.h>

#include "transport/transport.h"

typedef enum sgi_listen_kind {
    SGI_LISTEN_TCP = 0,
    SGI_LISTEN_UNIX,
    SGI_LISTEN_INHERITED /* from who started the process, as systemd does it */
} sgi_listen_kind;

typedef struct sgi_listen_options {
    sgi_listen_kind kind;
    int32_t backlog; /* 0 = what the system allows */
    /* TCP */
    const char *address; /* IPv4, IPv6 or "localhost"; no other name is looked up */
    int32_t port;        /* 0 = a free one */
    bool reuse_port;     /* several sockets of this user may share the port */
    /* Unix */
    const char *path;
    int32_t mode; /* of the file; 0 = 0600 */
    /* inherited */
    const char *name; /* NULL = by index */
    int32_t index;
} sgi_listen_options;

typedef struct sgi_listen_socket {
    int fd;
    int32_t port; /* TCP; else 0 */
    const sgi_mem *mem;
    char *path; /* a file that is removed at close, if it is still ours */
    dev_t device;
    ino_t inode;
} sgi_listen_socket;

/* Listens when it returns. On failure the reason is in why: SEGUE_E_INVALID for what can
 * never be listened on, SEGUE_E_EXISTS where somebody else listens, SEGUE_E_NOT_FOUND
 * when nothing was inherited by that name, SEGUE_E_IO for the rest. */
segue_status sgi_listen_open(sgi_listen_socket *socket, const sgi_mem *mem,
                             const sgi_listen_options *options, char why[SGI_WHY_SIZE]);
/* Takes one that is closed. */
void sgi_listen_close(sgi_listen_socket *socket);

/* ---- accepting ---- */

typedef struct sgi_acceptor sgi_acceptor;

/* The descriptor is the callee's, non-blocking and closed on exec. It may stop the
 * acceptor. */
typedef void (*sgi_accept_fn)(void *user, int fd);

struct sgi_acceptor {
    segue_runtime *rt;
    sgi_accept_fn accepted;
    void *user;
    int32_t max;   /* connections at once */
    int32_t count; /* given out and not returned */
    bool running;
    bool paused; /* the system has no descriptor or memory to spare */
    ev_io readable;
    sgi_timer retry;
};

/* The socket stays the owner's and open until the acceptor has stopped. */
void sgi_acceptor_start(sgi_acceptor *acceptor, segue_runtime *rt,
                        const sgi_listen_socket *socket, int32_t max,
                        sgi_accept_fn accepted, void *user);
/* Takes one that is not running. Connections may still be returned. */
void sgi_acceptor_stop(sgi_acceptor *acceptor);
/* One of the connections is closed. */
void sgi_acceptor_return(sgi_acceptor *acceptor);

#endif
