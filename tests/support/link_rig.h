/* A rig for tests of links: a runtime that accepts connections, an owner for each link,
 * and a peer. The peer is a non-blocking socket of the test on the same thread, so the
 * test chooses each step of either side. */
#ifndef LINK_RIG_H
#define LINK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <openssl/ssl.h>

#include "runtime/state.h"
#include "support/certificates.h"
#include "support/test_mem.h"
#include "transport/link.h"
#include "transport/listen_socket.h"

#define K 1024

/* ---- files: for the group of tests ---- */

int rig_files_make(void **state);
int rig_files_remove(void **state);
/* Returns the path of a file by its name: old, old.key, new, new.key, ca, garbage,
 * socket. */
const char *rig_path(const char *name);
extern test_cert rig_client_cert, rig_strange_cert; /* ca has signed rig_client_cert and
                                                     * has not signed rig_strange_cert */

/* ---- the rig ---- */

typedef enum carriage { TCP, UNIX, TLS } carriage;

typedef struct rig rig;

/* The owner of a link. */
typedef struct owner {
    rig *r;
    sgi_link *link; /* NULL once the link was closed */
    int fd;
    bool echo;
    bool may_write;
    size_t got; /* number of received bytes */
    unsigned sum;
    char first[64]; /* the first received bytes */
    size_t largest; /* most bytes in one event */
    int writables, closes;
    char why[SGI_WHY_SIZE];
    void (*on_bytes)(struct owner *o);
    void (*on_writable)(struct owner *o);
    void (*on_closed)(struct owner *o);
    struct owner *other;
} owner;

struct rig {
    test_mem mem;
    segue_runtime *rt;
    int64_t clock_ms; /* the clock of a still rig */
    sgi_link_gate *gate;
    sgi_listen_socket listening;
    sgi_acceptor acceptor;
    owner owners[8];
    size_t count; /* number of links */
    bool echo;    /* value of `echo` in new owners */
    atomic_int echoed;
};

/* The link events of all owners. */
extern const sgi_link_events rig_events;

/* Starts the rig. still: true = the runtime uses clock_ms as its clock. */
void rig_begin(rig *r, carriage how, bool still);
void rig_end(rig *r);
/* rig_begin_runtime and rig_listen are rig_begin in two steps. */
void rig_begin_runtime(rig *r, bool still);
void rig_listen(rig *r, carriage how, const sgi_tls_files *files);
sgi_tls_files rig_old_files(void);
void rig_turn(rig *r);

/* Makes a call with the lock held. Between two turns, the test's thread is the loop
 * thread. */
#define WITH_LOCK(r, call)                                                               \
    do {                                                                                 \
        sgi_runtime_lock((r)->rt);                                                       \
        call;                                                                            \
        sgi_runtime_unlock((r)->rt);                                                     \
    } while (0)

/* ---- the peer ---- */

typedef struct peer {
    int fd;
    SSL *ssl;
} peer;

int peer_connect(rig *r, int receive_buffer);
/* Connects without TLS; returns when the server has accepted. */
peer peer_meet(rig *r, int receive_buffer);
/* Connects over TCP, Unix socket or TLS and does the handshake of that carriage. */
peer peer_meet_as(rig *r, carriage how, int receive_buffer);
typedef struct client_setup {
    const test_cert *cert;
    int version; /* TLS version; 0 = any */
    const char *alpn;
} client_setup;

void peer_begin_tls(peer *p, const client_setup *setup);
/* Returns true when the handshake succeeds on the client's side. */
bool peer_shake_hands(rig *r, peer *p);
void peer_part(peer *p);
/* Closes the peer with a reset. */
void peer_reset(peer *p);
/* Writes bytes; returns how many were taken, 0 when none can be written now. */
size_t peer_say(peer *p, const char *bytes, size_t len);
enum { NOTHING = -1, BROKEN = -2 };

/* Reads bytes. Returns their number, 0 at the end, NOTHING when no byte has arrived,
 * BROKEN after a reset or a TLS error. */
int peer_hear(peer *p, char *to, size_t size);
/* Reads until len bytes have come; returns their sum. */
unsigned peer_hear_all(rig *r, peer *p, size_t len);
/* Reads to the end; returns 0 or BROKEN and counts the bytes before it. */
int peer_hear_end(rig *r, peer *p, size_t *len);

/* rig_pattern returns SGI_LINK_WRITE_MAX bytes; rig_sum adds bytes to a sum. */
const char *rig_pattern(void);
unsigned rig_sum(unsigned sum, const char *bytes, size_t len);

#endif
