/* Links, for their tests: a runtime that accepts connections, an owner for each link, and
 * a peer that is the test's own socket on the same thread, non-blocking, so that each
 * step of either side is the test's to choose. */
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
/* Of a name there: old, old.key, new, new.key, ca, garbage, socket. */
const char *rig_path(const char *name);
extern test_cert rig_client_cert, rig_strange_cert; /* known to ca, and not */

/* ---- the rig ---- */

typedef enum carriage { TCP, UNIX, TLS } carriage;

typedef struct rig rig;

/* The owner of a link. */
typedef struct owner {
    rig *r;
    sgi_link *link; /* NULL once it was closed */
    int fd;
    bool echo;
    bool may_write;
    size_t got; /* bytes, */
    unsigned sum;
    char first[64]; /* the first of them */
    size_t largest; /* of one event */
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
    int64_t clock_ms; /* when still */
    sgi_link_gate *gate;
    sgi_listen_socket listening;
    sgi_acceptor acceptor;
    owner owners[8];
    size_t count; /* of links */
    bool echo;    /* what owners begin with */
    atomic_int echoed;
};

/* What owners do. */
extern const sgi_link_events rig_events;

/* still: its clock is clock_ms. */
void rig_begin(rig *r, carriage how, bool still);
void rig_end(rig *r);
/* The same in two steps. */
void rig_begin_runtime(rig *r, bool still);
void rig_listen(rig *r, carriage how, const sgi_tls_files *files);
sgi_tls_files rig_old_files(void);
void rig_turn(rig *r);

/* A call on the loop thread: the test's, between two turns. */
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
/* Without TLS; returns when the server has it. */
peer peer_meet(rig *r, int receive_buffer);
/* Whatever it is: with its handshake. */
peer peer_meet_as(rig *r, carriage how, int receive_buffer);
typedef struct client_setup {
    const test_cert *cert;
    int version; /* 0 = any */
    const char *alpn;
} client_setup;

void peer_begin_tls(peer *p, const client_setup *setup);
/* True when the handshake succeeds on the client's side. */
bool peer_shake_hands(rig *r, peer *p);
void peer_part(peer *p);
/* The same by a reset. */
void peer_reset(peer *p);
/* What was taken; 0 when nothing can be now. */
size_t peer_say(peer *p, const char *bytes, size_t len);
enum { NOTHING = -1, BROKEN = -2 };

/* Bytes, 0 at the end, NOTHING yet, BROKEN by a reset or by TLS. */
int peer_hear(peer *p, char *to, size_t size);
/* Reads until len bytes have come, returns their sum. */
unsigned peer_hear_all(rig *r, peer *p, size_t len);
/* How it ends: 0 or BROKEN; what comes before is counted. */
int peer_hear_end(rig *r, peer *p, size_t *len);

/* SGI_LINK_WRITE_MAX bytes, and the sum of any. */
const char *rig_pattern(void);
unsigned rig_sum(unsigned sum, const char *bytes, size_t len);

#endif
