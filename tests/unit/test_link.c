/* Links: bytes of accepted sockets, plain and with TLS. The peer is the test's own socket
 * on the same thread, non-blocking, so each step of either side is the test's to choose.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "runtime/state.h"
#include "support/certificates.h"
#include "support/fake_engine.h"
#include "support/test_mem.h"
#include "transport/link.h"
#include "transport/listen_socket.h"

#define K 1024

/* ---- files, made once ---- */

static char directory[] = "/tmp/segue_link_XXXXXX";

static const char *path_of(const char *name)
{
    static _Thread_local char paths[32][128];
    static _Thread_local int next;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static test_cert authority, stranger, old_cert, new_cert, client_cert, strange_cert;

static int make_files(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* for the peers; OpenSSL writes as it is */
    assert_non_null(mkdtemp(directory));
    test_cert_make(&authority, "authority", TEST_KEY_EC, NULL);
    test_cert_make(&stranger, "stranger", TEST_KEY_EC, NULL);
    test_cert_make(&old_cert, "old", TEST_KEY_RSA, &authority);
    test_cert_make(&new_cert, "new", TEST_KEY_EC, &authority);
    test_cert_make(&client_cert, "Ada, \xc3\xa9", TEST_KEY_EC, &authority);
    test_cert_make(&strange_cert, "Eve", TEST_KEY_EC, &stranger);
    test_cert_save(&authority, path_of("ca"), NULL);
    test_cert_save(&old_cert, path_of("old"), path_of("old.key"));
    test_cert_save(&new_cert, path_of("new"), path_of("new.key"));
    FILE *file = fopen(path_of("garbage"), "w");
    fputs("neither key nor certificate\n", file);
    fclose(file);
    return 0;
}

static int remove_files(void **state)
{
    static const char *const names[] = {"ca",      "old",     "old.key", "new",
                                        "new.key", "garbage", "socket"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    rmdir(directory);
    test_cert *const certs[] = {&authority, &stranger,    &old_cert,
                                &new_cert,  &client_cert, &strange_cert};
    for (size_t i = 0; i < sizeof certs / sizeof *certs; i++)
        test_cert_free(certs[i]);
    return 0;
}

/* ---- rig ---- */

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

static unsigned sum_of(unsigned sum, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}

static void took_bytes(void *user, const char *bytes, size_t len)
{
    owner *o = user;
    size_t room = o->got < sizeof o->first ? sizeof o->first - o->got : 0;
    memcpy(o->first + (o->got < sizeof o->first ? o->got : 0), bytes,
           len < room ? len : room);
    o->got += len;
    o->sum = sum_of(o->sum, bytes, len);
    o->largest = len > o->largest ? len : o->largest;
    atomic_fetch_add(&o->r->echoed, (int)len);
    if (o->echo)
        o->may_write = sgi_link_write(o->link, bytes, len);
    if (o->on_bytes)
        o->on_bytes(o);
}

static void took_writable(void *user)
{
    owner *o = user;
    o->may_write = true;
    o->writables++;
    if (o->on_writable)
        o->on_writable(o);
}

static void took_closed(void *user, const char *why)
{
    owner *o = user;
    o->link = NULL;
    o->closes++;
    snprintf(o->why, sizeof o->why, "%s", why);
    if (o->on_closed)
        o->on_closed(o);
}

static const sgi_link_events events = {took_bytes, took_writable, took_closed};

static void took_connection(void *user, int fd)
{
    rig *r = user;
    owner *o = &r->owners[r->count++ % 8];
    *o = (owner){.r = r, .fd = fd, .echo = r->echo, .may_write = true};
    if (sgi_link_adopt(r->gate, fd, &events, o, &o->link) != SEGUE_OK)
        o->closes = -1;
}

static int64_t rig_clock(void *user)
{
    return ((rig *)user)->clock_ms;
}

static void set_up_runtime(rig *r, bool still)
{
    *r = (rig){.clock_ms = 1000};
    test_mem_init(&r->mem);
    segue_hooks hooks = {sizeof hooks, r, rig_clock, NULL, NULL};
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &r->mem.mem,
                                     .hooks = still ? &hooks : NULL};
    assert_int_equal(sgi_runtime_new(&options, &r->rt, NULL), SEGUE_OK);
    sgi_timer timer = {0};
    sgi_runtime_lock(r->rt); /* the room for timers is there when blocks are counted */
    sgi_engine_timer(&r->rt->engine, &timer, 1, NULL);
    sgi_engine_timer_clear(&r->rt->engine, &timer);
    sgi_runtime_unlock(r->rt);
}

static void listen_on(rig *r, carriage how, const sgi_tls_files *files)
{
    char why[SGI_WHY_SIZE];
    int small = 4 * K;
    sgi_listen_options options = {.address = "127.0.0.1", .path = path_of("socket")};
    options.kind = how == UNIX ? SGI_LISTEN_UNIX : SGI_LISTEN_TCP;
    assert_int_equal(sgi_listen_open(&r->listening, &r->mem.mem, &options, why), 0);
    setsockopt(r->listening.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    assert_int_equal(sgi_link_gate_new(r->rt, how == TLS ? files : NULL, &r->gate, why),
                     SEGUE_OK);
    sgi_runtime_lock(r->rt);
    sgi_acceptor_start(&r->acceptor, r->rt, &r->listening, 2000, took_connection, r);
    sgi_runtime_unlock(r->rt);
}

static sgi_tls_files old_files(void)
{
    return (sgi_tls_files){.cert = path_of("old"), .key = path_of("old.key")};
}

static void set_up(rig *r, carriage how, bool still)
{
    sgi_tls_files files = old_files();
    set_up_runtime(r, still);
    listen_on(r, how, &files);
}

static void tear_down(rig *r)
{
    sgi_runtime_lock(r->rt);
    sgi_acceptor_stop(&r->acceptor);
    sgi_runtime_unlock(r->rt);
    sgi_listen_close(&r->listening);
    sgi_link_gate_free(r->gate);
    sgi_runtime_free(r->rt);
    assert_int_equal(r->mem.live, 0);
}

static void turn(rig *r)
{
    assert_int_equal(sgi_runtime_dispatch(r->rt, 0, 0, NULL), SEGUE_OK);
}

/* ---- the peer ---- */

typedef struct peer {
    int fd;
    SSL *ssl;
} peer;

static int connect_fd(rig *r, int receive_buffer)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    assert_int_equal(getsockname(r->listening.fd, (struct sockaddr *)&address, &len), 0);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

/* Without TLS; returns when the server has it. */
static peer meet(rig *r, int receive_buffer)
{
    size_t before = r->count;
    peer p = {.fd = connect_fd(r, receive_buffer)};
    RUN_UNTIL(r->rt, r->count > before);
    return p;
}

typedef struct client_setup {
    const test_cert *cert;
    int version; /* 0 = any */
    const char *alpn;
} client_setup;

static void begin_tls(peer *p, const client_setup *setup)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (setup->version)
        assert_true(SSL_CTX_set_max_proto_version(context, setup->version));
    if (setup->version && setup->version < TLS1_2_VERSION) {
        SSL_CTX_set_min_proto_version(context, setup->version);
        SSL_CTX_set_security_level(context, 0);
    }
    if (setup->cert) {
        SSL_CTX_use_certificate(context, setup->cert->cert);
        SSL_CTX_use_PrivateKey(context, setup->cert->key);
    }
    if (setup->alpn)
        SSL_CTX_set_alpn_protos(context, (const unsigned char *)setup->alpn,
                                (unsigned)strlen(setup->alpn));
    p->ssl = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_fd(p->ssl, p->fd);
    SSL_set_connect_state(p->ssl);
}

/* True when the handshake succeeds on the client's side. */
static bool shake_hands(rig *r, peer *p)
{
    for (int i = 0; i < 5000; i++) {
        ERR_clear_error();
        int done = SSL_do_handshake(p->ssl);
        if (done == 1)
            return true;
        int error = SSL_get_error(p->ssl, done);
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
            return false;
        turn(r);
    }
    fail_msg("a handshake that does not end");
    return false;
}

static peer meet_as(rig *r, carriage how, int receive_buffer)
{
    static const client_setup plain_client = {NULL, 0, NULL};
    peer p = meet(r, receive_buffer);
    if (how == TLS) {
        begin_tls(&p, &plain_client);
        assert_true(shake_hands(r, &p));
        for (int i = 0; i < 10; i++)
            turn(r); /* the server has the last of it */
    }
    return p;
}

static void part(peer *p)
{
    SSL_free(p->ssl);
    if (p->fd >= 0)
        close(p->fd);
    *p = (peer){.fd = -1};
}

/* What was taken; 0 when nothing can be now. */
static size_t say(peer *p, const char *bytes, size_t len)
{
    if (p->ssl) {
        int sent = SSL_write(p->ssl, bytes, (int)len);
        return sent > 0 ? (size_t)sent : 0;
    }
    ssize_t sent = send(p->fd, bytes, len, MSG_NOSIGNAL);
    return sent > 0 ? (size_t)sent : 0;
}

enum { NOTHING = -1, BROKEN = -2 };

/* Bytes, 0 at the end, NOTHING yet, BROKEN by a reset or by TLS. */
static int hear(peer *p, char *to, size_t size)
{
    if (!p->ssl) {
        ssize_t got = recv(p->fd, to, size, 0);
        return got >= 0 ? (int)got : errno == EAGAIN ? NOTHING : BROKEN;
    }
    ERR_clear_error();
    int got = SSL_read(p->ssl, to, (int)size);
    if (got > 0)
        return got;
    int error = SSL_get_error(p->ssl, got);
    return error == SSL_ERROR_WANT_READ     ? NOTHING
           : error == SSL_ERROR_ZERO_RETURN ? 0
                                            : BROKEN;
}

/* Reads until len bytes have come, returns their sum. */
static unsigned hear_all(rig *r, peer *p, size_t len)
{
    static _Thread_local char got[64 * K];
    unsigned sum = 0;
    for (int idle = 0; len > 0 && idle < 5000;) {
        int n = hear(p, got, len < sizeof got ? len : sizeof got);
        if (n == NOTHING) {
            turn(r);
            idle++;
            continue;
        }
        assert_true(n > 0);
        idle = 0;
        sum = sum_of(sum, got, (size_t)n);
        len -= (size_t)n;
    }
    assert_int_equal(len, 0);
    return sum;
}

/* How it ends: 0 or BROKEN; what comes before is counted. */
static int hear_end(rig *r, peer *p, size_t *len)
{
    static _Thread_local char got[64 * K];
    for (int i = 0; i < 20000; i++) {
        int n = hear(p, got, sizeof got);
        if (n == 0 || n == BROKEN)
            return n;
        if (n > 0 && len)
            *len += (size_t)n;
        if (n == NOTHING)
            turn(r);
    }
    fail_msg("an end that does not come");
    return NOTHING;
}

static const char *pattern(void)
{
    static char bytes[SGI_LINK_WRITE_MAX];
    if (!bytes[1])
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(i * 7 + i / 251);
    return bytes;
}

/* A call on the loop thread: the test's, between two turns. */
#define WITH_LOCK(r, call)                                                               \
    do {                                                                                 \
        sgi_runtime_lock((r)->rt);                                                       \
        call;                                                                            \
        sgi_runtime_unlock((r)->rt);                                                     \
    } while (0)

/* ---- bytes ---- */

static void echo_over(carriage how, size_t largest_step)
{
    static const char text[] = "a text that is sent and comes back, whatever its pieces";
    char got[sizeof text] = "";
    rig r;
    set_up(&r, how, false);
    r.echo = true;
    peer p = meet_as(&r, how, 0);
    for (size_t at = 0, step; at < sizeof text - 1; at += step) {
        step = largest_step ? largest_step : 1 + (at * 2654435761u >> 7) % 9;
        step = step < sizeof text - 1 - at ? step : sizeof text - 1 - at;
        assert_int_equal(say(&p, text + at, step), step);
        size_t len = 0;
        while (len < step) {
            int n = hear(&p, got + at + len, step - len);
            assert_true(n == NOTHING || n > 0);
            len += n > 0 ? (size_t)n : 0;
            turn(&r);
        }
    }
    assert_string_equal(got, text);
    assert_int_equal(r.owners[0].got, sizeof text - 1);
    part(&p);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    tear_down(&r);
}

static void what_is_sent_comes_back(void **state)
{
    static const size_t steps[] = {1000, 1, 0};
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            echo_over((carriage)how, steps[i]);
}

/* Each write of the largest size, the next when it may follow. */
static void push(owner *o)
{
    while (o->may_write && o->got > 0) {
        o->got--; /* as many as the peer asked for in bytes */
        o->may_write = sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX);
    }
}

static void the_largest_write_arrives_whole(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        unsigned sum = 0;
        set_up(&r, (carriage)how, false);
        peer p = meet_as(&r, (carriage)how, 4 * K);
        r.owners[0].on_bytes = r.owners[0].on_writable = push;
        assert_int_equal(say(&p, "twelve bytes", 12), 12);
        for (int i = 0; i < 12; i++)
            sum = sum_of(sum, pattern(), SGI_LINK_WRITE_MAX);
        assert_int_equal(hear_all(&r, &p, 12 * SGI_LINK_WRITE_MAX), sum);
        assert_true(r.owners[0].writables > 0);
        part(&p);
        tear_down(&r);
    }
}

/* Also: input and the end of the connection are seen while output waits, and none of it
 * keeps the loop busy. */
static void a_peer_that_never_reads_costs_bounded_memory(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        set_up(&r, (carriage)how, false);
        peer p = meet_as(&r, (carriage)how, 4 * K);
        owner *o = &r.owners[0];
        size_t before = r.mem.live;
        for (int i = 0; i < 1000 && o->may_write; i++)
            WITH_LOCK(&r, o->may_write =
                              sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX));
        assert_false(o->may_write);
        assert_true(r.mem.live - before < 4 * SGI_LINK_WRITE_MAX);
        assert_int_equal(say(&p, "more", 4), 4);
        RUN_UNTIL(r.rt, o->got == 4);
        unsigned turns = ev_iteration(sgi_runtime_loop(r.rt));
        sgi_runtime_dispatch(r.rt, 50, 0, NULL);
        assert_true(ev_iteration(sgi_runtime_loop(r.rt)) - turns < 20);
        assert_int_equal(o->writables, 0);
        part(&p);
        RUN_UNTIL(r.rt, o->closes == 1);
        tear_down(&r);
    }
}

static void a_write_too_many_ends_the_link(void **state)
{
    rig r;
    (void)state;
    set_up(&r, TCP, false);
    peer p = meet(&r, 4 * K);
    owner *o = &r.owners[0];
    for (int i = 0; i < 100 && !o->closes; i++)
        WITH_LOCK(&r, sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX));
    RUN_UNTIL(r.rt, o->closes == 1);
    assert_non_null(strstr(o->why, "writing failed"));
    part(&p);
    tear_down(&r);
}

static void a_write_too_large_for_tls_ends_the_link(void **state)
{
    static char bytes[SGI_TLS_MAX_OUT + 1];
    rig r;
    (void)state;
    set_up(&r, TLS, false);
    peer p = meet_as(&r, TLS, 0);
    WITH_LOCK(&r, assert_false(sgi_link_write(r.owners[0].link, bytes, sizeof bytes)));
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    assert_non_null(strstr(r.owners[0].why, "writing failed"));
    part(&p);
    tear_down(&r);
}

static void reading_stops_and_goes_on(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        set_up(&r, (carriage)how, false);
        peer p = meet_as(&r, (carriage)how, 0);
        owner *o = &r.owners[0];
        for (int i = 0; i < 20; i++)
            turn(&r); /* tickets and what else belongs to a handshake */
        WITH_LOCK(&r, sgi_link_read(o->link, false));
        assert_int_equal(say(&p, "wait", 4), 4);
        for (int i = 0; i < 50; i++)
            turn(&r);
        assert_int_equal(o->got, 0);
        WITH_LOCK(&r, sgi_link_read(o->link, true));
        RUN_UNTIL(r.rt, o->got == 4);
        assert_memory_equal(o->first, "wait", 4);
        part(&p);
        tear_down(&r);
    }
}

static void one_event_brings_a_bounded_number_of_bytes(void **state)
{
    rig r;
    size_t sent = 0;
    (void)state;
    set_up(&r, TCP, false);
    peer p = meet(&r, 0);
    while (sent < 8 * SGI_LINK_WRITE_MAX) {
        sent += say(&p, pattern(), SGI_LINK_WRITE_MAX);
        turn(&r);
    }
    RUN_UNTIL(r.rt, r.owners[0].got == sent);
    assert_in_range(r.owners[0].largest, 1, SGI_READ_SIZE);
    part(&p);
    tear_down(&r);
}

/* ---- ends ---- */

static void reset(peer *p)
{
    struct linger at_once = {1, 0};
    setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    part(p);
}

static void the_end_of_the_peer_is_noticed(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (int variant = 0; variant < 4; variant++) {
            bool by_reset = variant & 1, answering = variant & 2;
            rig r;
            set_up(&r, (carriage)how, false);
            peer p = meet_as(&r, (carriage)how, 4 * K);
            owner *o = &r.owners[0];
            for (int i = 0; answering && o->may_write && i < 1000; i++)
                WITH_LOCK(&r, o->may_write =
                                  sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX));
            if (by_reset)
                reset(&p);
            else
                shutdown(p.fd, SHUT_WR);
            RUN_UNTIL(r.rt, o->closes == 1);
            assert_string_equal(o->why, "the peer closed the connection");
            part(&p);
            tear_down(&r);
        }
}

/* Writing to a peer that is gone raises no signal and is told once, by closed. */
static void a_failed_write_is_told_later(void **state)
{
    struct sigaction now, before = {.sa_handler = SIG_DFL};
    (void)state;
    sigaction(SIGPIPE, &before, NULL);
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        set_up(&r, (carriage)how, false);
        peer p = meet_as(&r, (carriage)how, 0);
        owner *o = &r.owners[0];
        reset(&p);
        for (int i = 0; i < 3; i++)
            WITH_LOCK(&r, sgi_link_write(o->link, "late", 4));
        assert_int_equal(o->closes, 0);
        RUN_UNTIL(r.rt, o->closes == 1);
        tear_down(&r);
        sigaction(SIGPIPE, NULL, &now);
        assert_true(now.sa_handler == SIG_DFL);
    }
    signal(SIGPIPE, SIG_IGN);
}

/* The answer is read to its last byte, also by a peer whose own bytes were not wanted. */
static void closing_sends_what_was_written(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (int talking = 0; talking < 2; talking++) {
            rig r;
            size_t len = 0;
            set_up(&r, (carriage)how, false);
            peer p = meet_as(&r, (carriage)how, 4 * K);
            owner *o = &r.owners[0];
            size_t blocks = r.mem.blocks;
            for (int i = 0; talking && i < 20; i++)
                say(&p, pattern(), 8 * K);
            WITH_LOCK(&r, sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX);
                      sgi_link_close(o->link));
            assert_int_equal(hear_end(&r, &p, &len), 0);
            assert_int_equal(len, SGI_LINK_WRITE_MAX);
            part(&p);
            RUN_UNTIL(r.rt, r.mem.blocks < blocks);
            assert_int_equal(o->closes, 0);
            tear_down(&r);
        }
}

static void a_closed_link_does_not_wait_for_ever(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (int flushed = 0; flushed < 2; flushed++) {
            rig r;
            set_up(&r, (carriage)how, true);
            peer p = meet_as(&r, (carriage)how, 4 * K);
            owner *o = &r.owners[0];
            size_t blocks = r.mem.blocks;
            for (int i = 0; !flushed && o->may_write && i < 1000; i++)
                WITH_LOCK(&r, o->may_write =
                                  sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX));
            WITH_LOCK(&r, sgi_link_close(o->link));
            r.clock_ms += SGI_LINGER_MS - 1;
            turn(&r);
            turn(&r);
            assert_true(r.mem.blocks >= blocks);
            r.clock_ms += 1;
            RUN_UNTIL(r.rt, r.mem.blocks < blocks);
            assert_int_equal(o->closes, 0);
            part(&p);
            tear_down(&r);
        }
}

static void a_slow_reader_gets_its_grace_and_no_more(void **state)
{
    rig r;
    char got[2 * K];
    (void)state;
    set_up(&r, TCP, true);
    peer p = meet(&r, 4 * K);
    owner *o = &r.owners[0];
    size_t blocks = r.mem.blocks;
    for (int i = 0; o->may_write && i < 1000; i++)
        WITH_LOCK(&r,
                  o->may_write = sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX));
    WITH_LOCK(&r, sgi_link_close(o->link));
    int64_t closed_ms = r.clock_ms;
    while (r.mem.blocks >= blocks) {
        hear(&p, got, sizeof got);
        turn(&r);
        r.clock_ms += 100;
        assert_true(r.clock_ms - closed_ms <= SGI_GRACE_MS + 2 * SGI_LINGER_MS);
    }
    part(&p);
    tear_down(&r);
}

static void aborting_ends_at_once(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        set_up(&r, (carriage)how, true);
        peer p = meet_as(&r, (carriage)how, 0);
        owner *o = &r.owners[0];
        size_t blocks = r.mem.blocks;
        WITH_LOCK(&r, sgi_link_abort(o->link));
        assert_true(r.mem.blocks < blocks);
        assert_int_not_equal(hear_end(&r, &p, NULL), NOTHING);
        assert_int_equal(o->closes, 0);
        part(&p);
        tear_down(&r);
    }
}

static void close_own(owner *o)
{
    sgi_link_close(o->link);
    o->link = NULL;
}

static void abort_own(owner *o)
{
    sgi_link_abort(o->link);
    o->link = NULL;
}

static void close_other(owner *o)
{
    if (o->other->link)
        sgi_link_close(o->other->link);
    o->other->link = NULL;
}

static void abort_other(owner *o)
{
    if (o->other->link)
        sgi_link_abort(o->other->link);
    o->other->link = NULL;
}

static void abort_both(owner *o)
{
    abort_other(o);
    if (o->link)
        abort_own(o);
}

/* In each event, with each way to let go, of each link. */
static void links_may_go_in_their_events(void **state)
{
    static void (*const ways[])(owner *) = {close_own, abort_own, close_other,
                                            abort_other, abort_both};
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (size_t way = 0; way < 5; way++)
            for (int event = 0; event < 3; event++) {
                rig r;
                if (event == 2 && way < 2)
                    continue; /* there is no own one any more */
                set_up(&r, (carriage)how, false);
                peer a = meet_as(&r, (carriage)how, 4 * K);
                peer b = meet_as(&r, (carriage)how, 4 * K);
                owner *o = &r.owners[0];
                o->other = &r.owners[1];
                size_t blocks = r.mem.blocks;
                *(event == 0   ? &o->on_bytes
                  : event == 1 ? &o->on_writable
                               : &o->on_closed) = ways[way];
                if (event == 1)
                    for (int i = 0; o->may_write && i < 1000; i++)
                        WITH_LOCK(&r, o->may_write = sgi_link_write(o->link, pattern(),
                                                                    SGI_LINK_WRITE_MAX));
                if (event == 0) {
                    say(&a, pattern(), 20 * K);
                    say(&b, "b", 1);
                }
                if (event == 2)
                    part(&a);
                for (int i = 0; i < 2000 && o->link && o->other->link; i++) {
                    if (event == 1)
                        hear(&a, (char[4 * K]){0}, 4 * K);
                    turn(&r);
                }
                assert_true(!o->link || !o->other->link);
                part(&a);
                part(&b);
                RUN_UNTIL(r.rt, r.mem.blocks < blocks && !o->closes + !o->link >= 1);
                tear_down(&r);
            }
}

static void the_end_of_the_runtime_closes_links(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        set_up(&r, (carriage)how, false);
        peer p = meet_as(&r, (carriage)how, 0);
        tear_down(&r);
        assert_int_equal(r.owners[0].closes, 1);
        assert_string_equal(r.owners[0].why, "the runtime ends");
        part(&p);
    }
}

static int open_descriptors(void)
{
    int count = 0;
    DIR *fds = opendir("/proc/self/fd");
    while (readdir(fds))
        count++;
    closedir(fds);
    return count;
}

static void a_thousand_connections_leave_nothing_behind(void **state)
{
    rig r;
    (void)state;
    set_up(&r, TCP, false);
    r.echo = true;
    peer first = meet(&r, 0);
    part(&first);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    int before = open_descriptors();
    size_t live = r.mem.live;
    for (int i = 0; i < 1000; i++) {
        peer p = meet(&r, 0);
        owner *o = &r.owners[(r.count - 1) % 8];
        say(&p, "x", 1);
        hear_all(&r, &p, 1);
        if (i % 3 == 0)
            WITH_LOCK(&r, close_own(o));
        part(&p);
        RUN_UNTIL(r.rt, r.mem.live == live);
    }
    assert_int_equal(open_descriptors(), before);
    tear_down(&r);
}

/* ---- TLS ---- */

/* Plain HTTP and noise: an end with a reason, nothing delivered. */
static void what_is_not_tls_is_refused(void **state)
{
    char noise[300];
    rig r;
    (void)state;
    set_up(&r, TLS, false);
    for (int i = 0; i < 50; i++) {
        size_t len = sizeof noise;
        peer p = meet(&r, 0);
        owner *o = &r.owners[(r.count - 1) % 8];
        for (size_t at = 0; at < len; at++)
            noise[at] = (char)(((size_t)i * 8191 + at) * 2654435761u >> 13);
        if (i == 0)
            len = (size_t)snprintf(noise, sizeof noise, "GET / HTTP/1.1\r\n\r\n");
        else if (i % 2)
            memcpy(noise, "\x16\x03\x01\x00\x80\x01\x00\x00\x7c\x03\x03", 11);
        say(&p, noise, len);
        shutdown(p.fd, SHUT_WR);
        RUN_UNTIL(r.rt, o->closes == 1);
        assert_int_equal(o->got, 0);
        assert_true(strstr(o->why, "handshake failed") || strstr(o->why, "peer closed"));
        if (i == 0)
            assert_non_null(strstr(o->why, "http request"));
        part(&p);
    }
    tear_down(&r);
}

/* What becomes of a client: refused, or what its subject is. */
static const char *admit(rig *r, const client_setup *setup)
{
    static char subject[128];
    sgi_buf text;
    peer p = meet(r, 0);
    owner *o = &r->owners[(r->count - 1) % 8];
    begin_tls(&p, setup);
    bool up = shake_hands(r, &p) && say(&p, "x", 1) == 1;
    RUN_UNTIL(r->rt, !up || o->got || o->closes);
    snprintf(subject, sizeof subject, "%s", "refused");
    if (o->got) {
        sgi_buf_init(&text, &sgi_mem_libc);
        WITH_LOCK(r, if (!sgi_link_subject(o->link, &text)) sgi_buf_add_lit(&text, "-"));
        snprintf(subject, sizeof subject, "%.*s", (int)text.len, text.p);
        sgi_buf_free(&text);
    } else {
        RUN_UNTIL(r->rt, o->closes == 1);
    }
    part(&p);
    return subject;
}

static void client_certificates_are_verified(void **state)
{
    static const client_setup none = {NULL, 0, NULL}, known = {&client_cert, 0, NULL},
                              unknown = {&strange_cert, 0, NULL},
                              known_1_2 = {&client_cert, TLS1_2_VERSION, NULL};
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        sgi_tls_files files = old_files();
        rig r;
        files.client_ca = mode ? path_of("ca") : NULL;
        files.client_required = mode == 2;
        set_up_runtime(&r, false);
        listen_on(&r, TLS, &files);
        const char *subject = mode ? "CN=Ada\\, \xc3\xa9" : "-";
        assert_string_equal(admit(&r, &none), mode == 2 ? "refused" : "-");
        assert_string_equal(admit(&r, &known), subject);
        assert_string_equal(admit(&r, &known_1_2), subject);
        assert_string_equal(admit(&r, &unknown), mode ? "refused" : "-");
        tear_down(&r);
    }
}

static void old_versions_and_other_protocols_are_refused(void **state)
{
    static const client_setup tls11 = {NULL, TLS1_1_VERSION, NULL},
                              tls12 = {NULL, TLS1_2_VERSION, NULL},
                              h2 = {NULL, 0, "\x02h2"},
                              both = {NULL, 0, "\x02h2\x08http/1.1"};
    rig r;
    (void)state;
    set_up(&r, TLS, false);
    assert_string_equal(admit(&r, &tls11), "refused");
    assert_string_equal(admit(&r, &tls12), "-");
    assert_string_equal(admit(&r, &h2), "refused");
    assert_string_equal(admit(&r, &both), "-");
    tear_down(&r);
}

static void renegotiation_is_refused(void **state)
{
    static const client_setup tls12 = {NULL, TLS1_2_VERSION, NULL};
    char got[16];
    rig r;
    (void)state;
    set_up(&r, TLS, false);
    r.echo = true;
    peer p = meet(&r, 0);
    begin_tls(&p, &tls12);
    assert_true(shake_hands(&r, &p));
    assert_true(SSL_renegotiate(p.ssl));
    int n = NOTHING;
    SSL_do_handshake(p.ssl);
    for (int i = 0; i < 5000 && n == NOTHING; i++) {
        turn(&r);
        n = hear(&p, got, sizeof got);
    }
    assert_int_equal(n, BROKEN);
    part(&p);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    tear_down(&r);
}

static void assert_served(peer *p, const char *name)
{
    char text[64];
    X509 *cert = SSL_get0_peer_certificate(p->ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, text,
                              sizeof text);
    assert_string_equal(text, name);
}

static void a_reload_is_for_new_connections(void **state)
{
    char why[SGI_WHY_SIZE];
    rig r;
    (void)state;
    set_up(&r, TLS, false);
    r.echo = true;
    peer before = meet_as(&r, TLS, 0);
    assert_served(&before, "old");
    sgi_tls_files bad[] = {{.cert = path_of("new"), .key = path_of("old.key")},
                           {.cert = path_of("none"), .key = path_of("new.key")},
                           {.cert = path_of("garbage"), .key = path_of("new.key")},
                           {.cert = path_of("new"), .key = path_of("garbage")},
                           {.cert = path_of("new")},
                           {.key = path_of("new.key")}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        *why = 0;
        assert_int_equal(sgi_link_gate_reload(r.gate, &bad[i], why), SEGUE_E_INVALID);
        assert_true(strlen(why) > 10);
    }
    peer still = meet_as(&r, TLS, 0);
    assert_served(&still, "old");
    sgi_tls_files fresh = {.cert = path_of("new"), .key = path_of("new.key")};
    assert_int_equal(sgi_link_gate_reload(r.gate, &fresh, why), SEGUE_OK);
    peer after = meet_as(&r, TLS, 0);
    assert_served(&after, "new");
    say(&before, "alive", 5);
    hear_all(&r, &before, 5);
    part(&before);
    part(&still);
    part(&after);
    tear_down(&r);
}

static void a_gate_without_tls_has_nothing_to_reload(void **state)
{
    sgi_tls_files files = old_files();
    sgi_tls_files lacking = {.cert = path_of("old"), .client_required = true};
    char why[SGI_WHY_SIZE] = "";
    sgi_link_gate *gate = NULL;
    rig r;
    (void)state;
    set_up(&r, TCP, false);
    assert_int_equal(sgi_link_gate_reload(r.gate, &files, why), SEGUE_E_STATE);
    assert_int_equal(sgi_link_gate_new(r.rt, &lacking, &gate, why), SEGUE_E_INVALID);
    assert_null(gate);
    tear_down(&r);
}

/* A TLS peer that closes its side and one that only begins a handshake are ends too. */
static void a_tls_end_is_an_end(void **state)
{
    rig r;
    (void)state;
    set_up(&r, TLS, false);
    peer p = meet_as(&r, TLS, 0);
    SSL_shutdown(p.ssl);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    assert_string_equal(r.owners[0].why, "the peer closed the connection");
    assert_int_equal(hear_end(&r, &p, NULL), 0);
    peer half = meet(&r, 0);
    say(&half, "\x16\x03\x01", 3);
    part(&half);
    RUN_UNTIL(r.rt, r.owners[1].closes == 1);
    part(&p);
    tear_down(&r);
}

/* ---- the peer, and limits ---- */

static void a_link_knows_its_peer(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        sgi_link_peer described;
        rig r;
        set_up(&r, (carriage)how, false);
        peer p = meet_as(&r, (carriage)how, 0);
        WITH_LOCK(&r, sgi_link_describe(r.owners[0].link, &described));
        assert_true(described.is_local);
        assert_int_equal(described.is_tls, how == TLS);
        if (how == UNIX)
            assert_string_equal(described.address, "unix");
        else
            assert_memory_equal(described.address, "127.0.0.1:", 10);
        int value = 0;
        socklen_t len = sizeof value;
        int fd = r.owners[0].fd;
        if (how == TCP) {
            getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &len);
            assert_true(value);
            getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len);
            assert_true(value);
        }
        part(&p);
        tear_down(&r);
    }
}

/* A descriptor for which libwebsockets has no place is refused. */
static void descriptors_beyond_the_tables_are_refused(void **state)
{
    struct rlimit old, low;
    int fds[2];
    rig r;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){256, old.rlim_max};
    set_up(&r, TCP, false);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    peer p = meet(&r, 0); /* the tables are made now */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    int high = fcntl(fds[0], F_DUPFD_CLOEXEC, 256);
    sgi_link *link = NULL;
    WITH_LOCK(&r, assert_int_equal(sgi_link_adopt(r.gate, high, &events, NULL, &link),
                                   SEGUE_E_LIMIT));
    assert_null(link);
    assert_int_equal(fcntl(high, F_GETFD), -1);
    close(fds[0]);
    close(fds[1]);
    part(&p);
    tear_down(&r);
}

/* Each allocation fails once: adopting says so and closes, or the link ends. */
static void memory_may_run_out(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        bool failed = true;
        for (size_t at = 1; failed; at++) {
            rig r;
            set_up(&r, (carriage)how, false);
            r.mem.calls = r.mem.failed = 0;
            r.mem.fail_at = at;
            peer p = meet(&r, 4 * K);
            owner *o = &r.owners[0];
            bool up = true;
            if (how == TLS) {
                begin_tls(&p, &(client_setup){NULL, 0, NULL});
                up = shake_hands(&r, &p);
                for (int i = 0; i < 20; i++)
                    turn(&r);
            }
            for (int i = 0; up && o->link && o->may_write && i < 1000; i++)
                WITH_LOCK(&r, o->may_write =
                                  sgi_link_write(o->link, pattern(), SGI_LINK_WRITE_MAX));
            failed = r.mem.failed > 0;
            if (failed)
                RUN_UNTIL(r.rt, o->closes);
            else
                assert_int_equal(o->closes, 0);
            r.mem.fail_at = 0;
            part(&p);
            tear_down(&r);
            assert_true(at < 200);
        }
    }
}

/* ---- on a thread of the runtime's own ---- */

static void links_work_on_the_io_thread(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        char got[4];
        set_up(&r, (carriage)how, false);
        r.echo = true;
        assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
        for (int i = 0; i < 8; i++) {
            peer p = {.fd = connect_fd(&r, 0)};
            fcntl(p.fd, F_SETFL, 0);
            if (how == TLS) {
                begin_tls(&p, &(client_setup){NULL, 0, NULL});
                assert_int_equal(SSL_do_handshake(p.ssl), 1);
            }
            assert_int_equal(say(&p, "four", 4), 4);
            assert_int_equal(hear(&p, got, sizeof got), 4);
            if (i % 2)
                part(&p);
            else
                reset(&p);
        }
        sgi_runtime_lock(r.rt);
        sgi_runtime_unlock(r.rt);
        sgi_runtime_stop(r.rt);
        pthread_join(r.rt->io_thread, NULL);
        r.rt->joinable = false;
        tear_down(&r);
        assert_int_equal(r.echoed, 32);
    }
}

static void *serve_alone(void *user)
{
    (void)user;
    for (int i = 0; i < 10; i++) {
        rig r;
        set_up(&r, TCP, false);
        r.echo = true;
        peer p = meet(&r, 0);
        say(&p, "x", 1);
        hear_all(&r, &p, 1);
        part(&p);
        tear_down(&r);
    }
    return NULL;
}

static void runtimes_have_a_guest_each(void **state)
{
    pthread_t threads[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, serve_alone, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_comes_back),
        cmocka_unit_test(the_largest_write_arrives_whole),
        cmocka_unit_test(a_peer_that_never_reads_costs_bounded_memory),
        cmocka_unit_test(a_write_too_many_ends_the_link),
        cmocka_unit_test(a_write_too_large_for_tls_ends_the_link),
        cmocka_unit_test(reading_stops_and_goes_on),
        cmocka_unit_test(one_event_brings_a_bounded_number_of_bytes),
        cmocka_unit_test(the_end_of_the_peer_is_noticed),
        cmocka_unit_test(a_failed_write_is_told_later),
        cmocka_unit_test(closing_sends_what_was_written),
        cmocka_unit_test(a_closed_link_does_not_wait_for_ever),
        cmocka_unit_test(a_slow_reader_gets_its_grace_and_no_more),
        cmocka_unit_test(aborting_ends_at_once),
        cmocka_unit_test(links_may_go_in_their_events),
        cmocka_unit_test(the_end_of_the_runtime_closes_links),
        cmocka_unit_test(a_thousand_connections_leave_nothing_behind),
        cmocka_unit_test(what_is_not_tls_is_refused),
        cmocka_unit_test(client_certificates_are_verified),
        cmocka_unit_test(old_versions_and_other_protocols_are_refused),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(a_reload_is_for_new_connections),
        cmocka_unit_test(a_gate_without_tls_has_nothing_to_reload),
        cmocka_unit_test(a_tls_end_is_an_end),
        cmocka_unit_test(a_link_knows_its_peer),
        cmocka_unit_test(descriptors_beyond_the_tables_are_refused),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(links_work_on_the_io_thread),
        cmocka_unit_test(runtimes_have_a_guest_each),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
