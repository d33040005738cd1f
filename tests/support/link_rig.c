#include "support/link_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "support/fake_engine.h"

/* ---- files, made once ---- */

static char directory[] = "/tmp/segue_link_XXXXXX";

const char *rig_path(const char *name)
{
    static _Thread_local char paths[32][128];
    static _Thread_local int next;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

test_cert rig_client_cert, rig_strange_cert;
static test_cert authority, stranger, old_cert, new_cert;

int rig_files_make(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to sockets with plain write, which raises
                               * SIGPIPE */
    assert_non_null(mkdtemp(directory));
    test_cert_make(&authority, "authority", TEST_KEY_EC, NULL);
    test_cert_make(&stranger, "stranger", TEST_KEY_EC, NULL);
    test_cert_make(&old_cert, "old", TEST_KEY_RSA, &authority);
    test_cert_make(&new_cert, "new", TEST_KEY_EC, &authority);
    test_cert_make(&rig_client_cert, "Ada, \xc3\xa9", TEST_KEY_EC, &authority);
    test_cert_make(&rig_strange_cert, "Eve", TEST_KEY_EC, &stranger);
    test_cert_save(&authority, rig_path("ca"), NULL);
    test_cert_save(&old_cert, rig_path("old"), rig_path("old.key"));
    test_cert_save(&new_cert, rig_path("new"), rig_path("new.key"));
    FILE *file = fopen(rig_path("garbage"), "w");
    fputs("neither key nor certificate\n", file);
    fclose(file);
    return 0;
}

int rig_files_remove(void **state)
{
    static const char *const names[] = {"ca",      "old",     "old.key", "new",
                                        "new.key", "garbage", "socket"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(rig_path(names[i]));
    rmdir(directory);
    test_cert *const certs[] = {&authority, &stranger,        &old_cert,
                                &new_cert,  &rig_client_cert, &rig_strange_cert};
    for (size_t i = 0; i < sizeof certs / sizeof *certs; i++)
        test_cert_free(certs[i]);
    return 0;
}

/* ---- rig ---- */

unsigned rig_sum(unsigned sum, const char *bytes, size_t len)
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
    o->sum = rig_sum(o->sum, bytes, len);
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

const sgi_link_events rig_events = {took_bytes, took_writable, took_closed, NULL};

static void took_connection(void *user, int fd)
{
    rig *r = user;
    owner *o = &r->owners[r->count++ % 8];
    *o = (owner){.r = r, .fd = fd, .echo = r->echo, .may_write = true};
    if (sgi_link_adopt(r->gate, fd, &rig_events, o, &o->link) != SEGUE_OK)
        o->closes = -1;
}

static int64_t rig_clock(void *user)
{
    return ((rig *)user)->clock_ms;
}

void rig_begin_runtime(rig *r, bool still)
{
    *r = (rig){.clock_ms = 1000};
    test_mem_init(&r->mem);
    segue_hooks hooks = {sizeof hooks, r, rig_clock, NULL, NULL};
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &r->mem.mem,
                                     .hooks = still ? &hooks : NULL};
    assert_int_equal(sgi_runtime_new(&options, &r->rt, NULL), SEGUE_OK);
    sgi_timer timer = {0};
    sgi_runtime_lock(r->rt); /* allocates the memory for timers before the tests count
                              * blocks */
    sgi_engine_set_timer(&r->rt->engine, &timer, 1, NULL);
    sgi_engine_clear_timer(&r->rt->engine, &timer);
    sgi_runtime_unlock(r->rt);
}

void rig_listen(rig *r, carriage how, const sgi_tls_files *files)
{
    char why[SGI_WHY_SIZE];
    int small = 4 * K;
    sgi_listen_options options = {.address = "127.0.0.1", .path = rig_path("socket")};
    options.kind = how == UNIX ? SGI_LISTEN_UNIX : SGI_LISTEN_TCP;
    assert_int_equal(sgi_listen_open(&r->listening, &r->mem.mem, &options, why), 0);
    setsockopt(r->listening.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    assert_int_equal(sgi_link_gate_new(r->rt, how == TLS ? files : NULL, &r->gate, why),
                     SEGUE_OK);
    sgi_runtime_lock(r->rt);
    sgi_acceptor_start(&r->acceptor, r->rt, &r->listening, 2000, took_connection, r);
    sgi_runtime_unlock(r->rt);
}

sgi_tls_files rig_old_files(void)
{
    return (sgi_tls_files){.cert = rig_path("old"), .key = rig_path("old.key")};
}

void rig_begin(rig *r, carriage how, bool still)
{
    sgi_tls_files files = rig_old_files();
    rig_begin_runtime(r, still);
    rig_listen(r, how, &files);
}

void rig_end(rig *r)
{
    sgi_runtime_lock(r->rt);
    sgi_acceptor_stop(&r->acceptor);
    sgi_runtime_unlock(r->rt);
    sgi_listen_close(&r->listening);
    sgi_link_gate_free(r->gate);
    sgi_runtime_free(r->rt);
    assert_int_equal(r->mem.live, 0);
}

void rig_turn(rig *r)
{
    assert_int_equal(sgi_runtime_dispatch(r->rt, 0, 0, NULL), SEGUE_OK);
}

/* ---- the peer ---- */

int peer_connect(rig *r, int receive_buffer)
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

peer peer_meet(rig *r, int receive_buffer)
{
    size_t before = r->count;
    peer p = {.fd = peer_connect(r, receive_buffer)};
    RUN_UNTIL(r->rt, r->count > before);
    return p;
}

void peer_begin_tls(peer *p, const client_setup *setup)
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

bool peer_shake_hands(rig *r, peer *p)
{
    for (int i = 0; i < 5000; i++) {
        ERR_clear_error();
        int done = SSL_do_handshake(p->ssl);
        if (done == 1)
            return true;
        int error = SSL_get_error(p->ssl, done);
        if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
            return false;
        rig_turn(r);
    }
    fail_msg("a handshake that does not end");
    return false;
}

peer peer_meet_as(rig *r, carriage how, int receive_buffer)
{
    static const client_setup plain_client = {NULL, 0, NULL};
    peer p = peer_meet(r, receive_buffer);
    if (how == TLS) {
        peer_begin_tls(&p, &plain_client);
        assert_true(peer_shake_hands(r, &p));
        for (int i = 0; i < 10; i++)
            rig_turn(r); /* the server reads the last bytes */
    }
    return p;
}

void peer_part(peer *p)
{
    SSL_free(p->ssl);
    if (p->fd >= 0)
        close(p->fd);
    *p = (peer){.fd = -1};
}

size_t peer_say(peer *p, const char *bytes, size_t len)
{
    if (p->ssl) {
        int sent = SSL_write(p->ssl, bytes, (int)len);
        return sent > 0 ? (size_t)sent : 0;
    }
    ssize_t sent = send(p->fd, bytes, len, MSG_NOSIGNAL);
    return sent > 0 ? (size_t)sent : 0;
}

int peer_hear(peer *p, char *to, size_t size)
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

unsigned peer_hear_all(rig *r, peer *p, size_t len)
{
    static _Thread_local char got[64 * K];
    unsigned sum = 0;
    for (int idle = 0; len > 0 && idle < 5000;) {
        int n = peer_hear(p, got, len < sizeof got ? len : sizeof got);
        if (n == NOTHING) {
            rig_turn(r);
            idle++;
            continue;
        }
        assert_true(n > 0);
        idle = 0;
        sum = rig_sum(sum, got, (size_t)n);
        len -= (size_t)n;
    }
    assert_int_equal(len, 0);
    return sum;
}

int peer_hear_end(rig *r, peer *p, size_t *len)
{
    static _Thread_local char got[64 * K];
    for (int i = 0; i < 20000; i++) {
        int n = peer_hear(p, got, sizeof got);
        if (n == 0 || n == BROKEN)
            return n;
        if (n > 0 && len)
            *len += (size_t)n;
        if (n == NOTHING)
            rig_turn(r);
    }
    fail_msg("an end that does not come");
    return NOTHING;
}

const char *rig_pattern(void)
{
    static char bytes[SGI_LINK_WRITE_MAX];
    if (!bytes[1])
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(i * 7 + i / 251);
    return bytes;
}

void peer_reset(peer *p)
{
    struct linger at_once = {1, 0};
    setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    peer_part(p);
}
