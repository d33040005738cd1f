/* link: the byte stream of one accepted socket, with or without TLS. A link knows no
 * HTTP. A gate makes the links, and holds what the connections of a listener share. The
 * functions run on the loop thread with the lock held, unless a comment says
 * otherwise.
 *
 *     open --close--> flushing --all is sent--> draining --the peer ends too--> gone
 *       \--abort, or the peer ends (closed)----------------------------------/ */
#ifndef SGI_LINK_H
#define SGI_LINK_H

#include "transport/tls.h"

/* Maximum bytes of one write. A link stores at most this much output, plus the bytes that
 * TLS adds. */
#define SGI_LINK_WRITE_MAX ((size_t)128 * 1024)

typedef struct sgi_link_gate sgi_link_gate;
typedef struct sgi_link sgi_link;

/* The events of a link. In each callback the owner may close or abort any link, even the
 * link of the event. */
typedef struct sgi_link_events {
    /* Called with the bytes of one read, at most SGI_READ_SIZE bytes. */
    void (*bytes)(void *user, const char *bytes, size_t len);
    /* Called after a write that returned false, as soon as the next write is allowed. */
    void (*writable)(void *user);
    /* Called once: when the peer has disconnected, when TLS or a write has failed, or
     * when the runtime ends. The owner must not use the link afterwards. */
    void (*closed)(void *user, const char *why);
} sgi_link_events;

/* Makes a gate. files: NULL = without TLS. Returns SEGUE_E_INVALID with the reason in
 * `why` when a file cannot be used. The runtime must outlive the gate. Any thread may
 * call the function without the lock. */
segue_status sgi_link_gate_new(segue_runtime *rt, const sgi_tls_files *files,
                               sgi_link_gate **out, char why[SGI_WHY_SIZE]);
/* Reads TLS files for a gate, which goes on with its present ones. The caller gives the
 * setup to sgi_link_gate_use, or frees it. Returns SEGUE_E_STATE for a gate without TLS.
 * Any thread may call both functions without the lock. */
segue_status sgi_link_gate_read(sgi_link_gate *gate, const sgi_tls_files *files,
                                sgi_tls_setup **fresh, char why[SGI_WHY_SIZE]);
/* Changes the TLS files of a gate: new connections use the new files, existing
 * connections keep the old ones. */
void sgi_link_gate_use(sgi_link_gate *gate, sgi_tls_setup *fresh);
/* Frees a gate; the links of the gate continue. Does nothing for NULL. Any thread may
 * call the function. */
void sgi_link_gate_free(sgi_link_gate *gate);

/* Makes a link from a connected stream socket, and makes the socket non-blocking. On
 * failure the socket is closed. No event comes before the function returns. */
segue_status sgi_link_adopt(sgi_link_gate *gate, int fd, const sgi_link_events *events,
                            void *user, sgi_link **out);
/* Sends at most SGI_LINK_WRITE_MAX bytes in one send. The link stores the bytes that the
 * socket does not accept. Returns false when the owner must wait for the event `writable`
 * before the next write. An error is reported later by `closed`. With TLS nothing can be
 * written before the peer has sent something. */
bool sgi_link_write(sgi_link *link, const char *bytes, size_t len);
/* Returns a number that changes whenever the system accepts more output, even before the
 * event `writable`. A number that stays the same shows that the peer does not read. */
uint64_t sgi_link_output_progress(const sgi_link *link);
/* Stops or continues reading. Bytes that were already read are still delivered. While
 * reading is off, the link does not notice the end of the connection. */
void sgi_link_set_reading(sgi_link *link, bool on);
/* Closes the link; no event comes any more. Written bytes are still sent, as long as the
 * peer reads at least some of them every SGI_LINGER_MS, and for at most SGI_GRACE_MS.
 * Then the link waits up to SGI_LINGER_MS for the peer to end its side. Without this
 * wait, unread input of the peer can cause a reset that overtakes the last answer. */
void sgi_link_close(sgi_link *link);
/* Closes the link at once and drops unsent bytes. */
void sgi_link_abort(sgi_link *link);

/* Size of a buffer for an address as text: "127.0.0.1:4711", "[::1]:4711" or "unix". */
#define SGI_LINK_ADDRESS_SIZE 80
typedef struct sgi_link_peer {
    char address[SGI_LINK_ADDRESS_SIZE];
    bool is_local; /* true = the peer is connected by loopback or by a Unix socket */
    bool is_tls;
} sgi_link_peer;

void sgi_link_get_peer(const sgi_link *link, sgi_link_peer *peer);
/* Describes the peer of any connected socket, as sgi_link_get_peer does for a link.
 * peer->is_tls becomes false. */
void sgi_link_peer_of_fd(int fd, sgi_link_peer *peer);
/* Appends the subject of the client's verified certificate to `into`. Returns false when
 * the client has shown no verified certificate. */
bool sgi_link_add_cert_subject(const sgi_link *link, sgi_buf *into);
/* True when the TLS handshake has ended, or when the link has no TLS. */
bool sgi_link_is_ready(const sgi_link *link);

#endif
