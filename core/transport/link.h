/* link: one connected byte stream of an accepted socket, with TLS or without. It knows no
 * HTTP. Links come through a gate, which holds what a listener's connections have in
 * common. Loop thread, lock held, everywhere except where the text says otherwise.
 *
 *   open --close--> flushing --all is out--> draining --the peer ends too--> gone
 *      \--abort, or the peer goes (closed)----------------------------------/
 */
#ifndef SGI_LINK_H
#define SGI_LINK_H

#include "transport/tls.h"

/* Most that one write takes, and so, with what TLS adds, most that a link holds. */
#define SGI_LINK_WRITE_MAX ((size_t)128 * 1024)

typedef struct sgi_link_gate sgi_link_gate;
typedef struct sgi_link sgi_link;

/* The owner may close or abort the link, or any other, in each of them. */
typedef struct sgi_link_events {
    /* What a read brought, at most SGI_READ_SIZE bytes. */
    void (*bytes)(void *user, const char *bytes, size_t len);
    /* After a write that returned false: the next may follow. */
    void (*writable)(void *user);
    /* The peer has gone, TLS or a write has failed, the runtime ends. Once; the link is
     * no longer the owner's. */
    void (*closed)(void *user, const char *why);
} sgi_link_events;

/* Any thread, lock not held. Without files: no TLS. SEGUE_E_INVALID with the reason in
 * why. The runtime outlives the gate. */
segue_status sgi_link_gate_new(segue_runtime *rt, const sgi_tls_files *files,
                               sgi_link_gate **out, char why[SGI_WHY_SIZE]);
/* Any thread, lock not held: connections from now on use these files, those that are
 * there live on. On failure everything stays as it is. SEGUE_E_STATE for a gate without
 * TLS. */
segue_status sgi_link_gate_reload(sgi_link_gate *gate, const sgi_tls_files *files,
                                  char why[SGI_WHY_SIZE]);
/* Any thread. Its links live on. Takes NULL. */
void sgi_link_gate_free(sgi_link_gate *gate);

/* Takes a connected stream socket, which is non-blocking from here on; on failure it is
 * closed. No event comes before this has returned. */
segue_status sgi_link_adopt(sgi_link_gate *gate, int fd, const sgi_link_events *events,
                            void *user, sgi_link **out);
/* Hands at most SGI_LINK_WRITE_MAX bytes to the socket, in one send; what it does not
 * take is kept. False: no other write before writable. A failure is told by closed,
 * later. With TLS nothing can be written before the peer has sent something. */
bool sgi_link_write(sgi_link *link, const char *bytes, size_t len);
/* Changes when the peer takes something, which may be long before writable: the system
 * holds much. Tells one who reads slowly from one who does not. */
uint64_t sgi_link_taken(const sgi_link *link);
/* Stops and continues reading; what was read already still comes. While it is off, the
 * end of the connection is not noticed. */
void sgi_link_read(sgi_link *link, bool on);
/* No event comes any more. What was written is sent, as long as the peer takes some of it
 * every SGI_LINGER_MS, and for SGI_GRACE_MS at most; then the peer has SGI_LINGER_MS to
 * end the connection from its side, so that it reads the last answer before it hears that
 * its own bytes were not wanted. */
void sgi_link_close(sgi_link *link);
/* The same at once, whatever is left. */
void sgi_link_abort(sgi_link *link);

/* "127.0.0.1:4711", "[::1]:4711", "unix" */
#define SGI_LINK_ADDRESS_SIZE 80
typedef struct sgi_link_peer {
    char address[SGI_LINK_ADDRESS_SIZE];
    bool is_local; /* by loopback or a Unix socket */
    bool is_tls;
} sgi_link_peer;

void sgi_link_describe(const sgi_link *link, sgi_link_peer *peer);
/* The same of any connected socket; is_tls is false. */
void sgi_link_peer_of(int fd, sgi_link_peer *peer);
/* Appends the subject of the client's verified certificate; false when there is none. */
bool sgi_link_subject(const sgi_link *link, sgi_buf *into);
/* Without TLS, or its handshake is over. */
bool sgi_link_is_ready(const sgi_link *link);

#endif
