/* link: the byte stream of one connection of a listener. There are two kinds: an accepted
 * socket, with or without TLS (link.c), and an exchange that the application carries
 * (http_exchange.c). A link knows no HTTP. A gate makes the links of sockets, and holds
 * what the connections of a listener share. The functions run on the loop thread with the
 * lock held, unless a comment says otherwise.
 *
 *     open --close--> flushing --all is sent--> draining --the peer ends too--> gone
 *       \--abort, or the peer ends (closed)----------------------------------/ */
#ifndef SGI_LINK_H
#define SGI_LINK_H

#include "transport/tls.h"

/* Maximum bytes of one write. A link stores at most this much output, plus the bytes that
 * TLS adds. */
#define SGI_LINK_WRITE_MAX ((size_t)128 * 1024)

/* Size of a buffer for an address as text: "127.0.0.1:4711", "[::1]:4711" or "unix". */
#define SGI_LINK_ADDRESS_SIZE 80
typedef struct sgi_link_peer {
    char address[SGI_LINK_ADDRESS_SIZE];
    bool is_local; /* true = the peer is connected by loopback or by a Unix socket */
    bool is_tls;
} sgi_link_peer;

typedef struct sgi_link_gate sgi_link_gate;
typedef struct sgi_link sgi_link;

/* The functions of one kind of link. Each does what the function sgi_link_NAME does. */
typedef struct sgi_link_ops {
    bool (*write)(sgi_link *link, const char *bytes, size_t len);
    uint64_t (*output_progress)(const sgi_link *link);
    void (*set_reading)(sgi_link *link, bool on);
    void (*close)(sgi_link *link);
    void (*abort)(sgi_link *link);
    void (*get_peer)(const sgi_link *link, sgi_link_peer *peer);
    bool (*add_cert_subject)(const sgi_link *link, sgi_buf *into);
    bool (*is_ready)(const sgi_link *link);
    void (*work)(sgi_link *link); /* NULL = the kind has no such work */
} sgi_link_ops;

/* The first member of every kind of link. */
struct sgi_link {
    const sgi_link_ops *ops;
};

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
    /* Called once, when all input of the only request of the link was delivered. NULL for
     * sockets, whose requests say where they end. */
    void (*ended)(void *user);
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

/* Sends at most SGI_LINK_WRITE_MAX bytes in one send. The link stores the bytes that
 * cannot be sent yet. Returns false when the owner must wait for the event `writable`
 * before the next write. An error is reported later by `closed`. With TLS nothing can be
 * written before the peer has sent something. */
static inline bool sgi_link_write(sgi_link *link, const char *bytes, size_t len)
{
    return link->ops->write(link, bytes, len);
}

/* Returns a number that changes whenever more output is accepted, even before the event
 * `writable`. A number that stays the same shows that the peer does not read. */
static inline uint64_t sgi_link_output_progress(const sgi_link *link)
{
    return link->ops->output_progress(link);
}

/* Stops or continues reading. Bytes that were already read are still delivered. While
 * reading is off, a socket does not notice the end of the connection. */
static inline void sgi_link_set_reading(sgi_link *link, bool on)
{
    link->ops->set_reading(link, on);
}

/* Closes the link; no event comes any more. Written bytes are still sent. On a socket, as
 * long as the peer reads at least some of them every SGI_LINGER_MS, and for at most
 * SGI_GRACE_MS. Then the link waits up to SGI_LINGER_MS for the peer to end its side.
 * Without this wait, unread input of the peer can cause a reset that overtakes the last
 * answer. */
static inline void sgi_link_close(sgi_link *link)
{
    link->ops->close(link);
}

/* Closes the link at once and drops unsent bytes. */
static inline void sgi_link_abort(sgi_link *link)
{
    link->ops->abort(link);
}

static inline void sgi_link_get_peer(const sgi_link *link, sgi_link_peer *peer)
{
    link->ops->get_peer(link, peer);
}

/* Appends the subject of the client's verified certificate to `into`. Returns false when
 * the client has shown no verified certificate. */
static inline bool sgi_link_add_cert_subject(const sgi_link *link, sgi_buf *into)
{
    return link->ops->add_cert_subject(link, into);
}

/* True when the TLS handshake has ended, or when the link has no TLS. */
static inline bool sgi_link_is_ready(const sgi_link *link)
{
    return link->ops->is_ready(link);
}

/* Does what other threads have requested of the link. May report any event. */
static inline void sgi_link_work(sgi_link *link)
{
    if (link->ops->work)
        link->ops->work(link);
}

/* ---- links of sockets ---- */

/* Makes a link from a connected stream socket, and makes the socket non-blocking. On
 * failure the socket is closed. No event comes before the function returns. */
segue_status sgi_link_adopt(sgi_link_gate *gate, int fd, const sgi_link_events *events,
                            void *user, sgi_link **out);
/* Describes the peer of any connected socket, as sgi_link_get_peer does for a link.
 * peer->is_tls becomes false. */
void sgi_link_peer_of_fd(int fd, sgi_link_peer *peer);

#endif
