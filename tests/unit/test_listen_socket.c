/* Listening sockets and the acceptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/state.h"
#include "support/fake_engine.h"
#include "support/test_mem.h"
#include "transport/listen_socket.h"

/* ---- opening ---- */

static char why[SGI_WHY_SIZE];
static char directory[] = "/tmp/segue_listen_XXXXXX";
static char path[64];

static int make_directory(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory); /* fails when a file is left */
}

static segue_status open_tcp(sgi_listen_socket *s, const char *address, int32_t port)
{
    sgi_listen_options options = {.address = address, .port = port};
    *why = 0;
    return sgi_listen_open(s, &sgi_mem_libc, &options, why);
}

static segue_status open_path(sgi_listen_socket *s, const char *at, int32_t mode)
{
    sgi_listen_options options = {.kind = SGI_LISTEN_UNIX, .path = at, .mode = mode};
    *why = 0;
    return sgi_listen_open(s, &sgi_mem_libc, &options, why);
}

/* Returns a connected socket or -1. */
static int reach(const sgi_listen_socket *s)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    getsockname(s->fd, (struct sockaddr *)&address, &len);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (struct sockaddr *)&address, len) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

static void addresses_are_taken_as_they_are(void **state)
{
    static const char *const good[] = {"127.0.0.1", "localhost", "0.0.0.0"};
    static const char *const bad[] = {"example.org", "",  "127.0.0.1:80", "[::1]",
                                      "127.1",       " ", "::1%nowhere"};
    sgi_listen_socket s;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(open_tcp(&s, good[i], 0), SEGUE_OK);
        assert_in_range(s.port, 1, 65535);
        assert_int_equal(fcntl(s.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(fcntl(s.fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
        close(reach(&s));
        sgi_listen_close(&s);
        sgi_listen_close(&s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(open_tcp(&s, bad[i], 0), SEGUE_E_INVALID);
        assert_true(strlen(why) > 10);
        assert_int_equal(s.fd, -1);
    }
    assert_int_equal(open_tcp(&s, "127.0.0.1", 65536), SEGUE_E_INVALID);
    assert_int_equal(open_tcp(&s, "127.0.0.1", -1), SEGUE_E_INVALID);
    assert_int_equal(open_tcp(&s, NULL, 0), SEGUE_E_INVALID);
}

/* Needs a machine with IPv6. */
static void ipv6_is_listened_on(void **state)
{
    sgi_listen_socket s;
    (void)state;
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool there = bind(probe, (struct sockaddr *)&loopback, sizeof loopback) == 0;
    if (probe >= 0)
        close(probe);
    segue_status status = open_tcp(&s, "::1", 0);
    assert_int_equal(status, there ? SEGUE_OK : SEGUE_E_IO);
    if (there)
        close(reach(&s));
    sgi_listen_close(&s);
}

static void a_port_is_shared_only_when_all_say_so(void **state)
{
    sgi_listen_socket a, b;
    sgi_listen_options options = {.address = "127.0.0.1", .reuse_port = true};
    (void)state;
    assert_int_equal(sgi_listen_open(&a, &sgi_mem_libc, &options, why), SEGUE_OK);
    assert_int_equal(open_tcp(&b, "127.0.0.1", a.port), SEGUE_E_EXISTS);
    char place[32];
    snprintf(place, sizeof place, "127.0.0.1:%d: ", a.port);
    assert_non_null(strstr(why, place));
    options.port = a.port;
    assert_int_equal(sgi_listen_open(&b, &sgi_mem_libc, &options, why), SEGUE_OK);
    sgi_listen_close(&a);
    sgi_listen_close(&b);
}

static void a_path_has_its_mode_and_goes_with_the_socket(void **state)
{
    struct stat file;
    sgi_listen_socket s;
    (void)state;
    mode_t old = umask(0177);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_path(&s, path, i ? 0666 : 0), SEGUE_OK);
        assert_int_equal(stat(path, &file), 0);
        assert_int_equal(file.st_mode & 0777, i ? 0666 : 0600);
        int fd = reach(&s);
        assert_true(fd >= 0);
        close(fd);
        sgi_listen_close(&s);
        assert_int_equal(stat(path, &file), -1);
    }
    umask(old);
}

static void a_dead_servers_file_is_replaced_and_a_living_ones_is_not(void **state)
{
    sgi_listen_socket s, other, heir;
    (void)state;
    assert_int_equal(open_path(&s, path, 0), SEGUE_OK);
    assert_int_equal(open_path(&other, path, 0), SEGUE_E_EXISTS);
    assert_non_null(strstr(why, "another server listens on this path"));
    close(s.fd); /* closes the socket as the death of the process would */
    sgi_text_free(&sgi_mem_libc, s.path);
    assert_int_equal(open_path(&other, path, 0), SEGUE_OK);
    unlink(path);
    assert_int_equal(open_path(&heir, path, 0), SEGUE_OK);
    sgi_listen_close(&other); /* the file belongs to another socket now */
    int fd = reach(&heir);
    assert_true(fd >= 0);
    close(fd);
    sgi_listen_close(&heir);
    assert_int_equal(access(path, F_OK), -1);
}

static void what_is_no_socket_is_left_alone(void **state)
{
    char longest[300];
    sgi_listen_socket s;
    (void)state;
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_int_equal(open_path(&s, path, 0), SEGUE_E_INVALID);
    assert_non_null(strstr(why, "is not a socket"));
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
    assert_int_equal(open_path(&s, "/nowhere/at/all", 0), SEGUE_E_IO);
    assert_int_equal(open_path(&s, "", 0), SEGUE_E_INVALID);
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(open_path(&s, longest, 0), SEGUE_E_INVALID);
}

static void memory_may_run_out(void **state)
{
    test_mem mem;
    sgi_listen_socket s;
    sgi_listen_options options = {.kind = SGI_LISTEN_UNIX, .path = path};
    (void)state;
    test_mem_init(&mem);
    mem.fail_at = 1;
    assert_int_equal(sgi_listen_open(&s, &mem.mem, &options, why), SEGUE_E_NOMEM);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(mem.live, 0);
}

/* Runs in a child process, because the descriptors have fixed numbers. Returns its exit
 * status. */
static int in_child(int (*body)(int listening, int other))
{
    sgi_listen_socket s;
    int fds[2], status;
    assert_int_equal(open_tcp(&s, "127.0.0.1", 0), SEGUE_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char number[24];
        snprintf(number, sizeof number, "%d", (int)getpid());
        setenv("LISTEN_PID", number, 1);
        setenv("LISTEN_FDS", "2", 1);
        setenv("LISTEN_FDNAMES", "other:web", 1);
        int high = fcntl(s.fd, F_DUPFD, 20), pair = fcntl(fds[0], F_DUPFD, 20);
        dup2(pair, 3);
        dup2(high, 4);
        _exit(body(4, 3));
    }
    waitpid(pid, &status, 0);
    close(fds[0]);
    close(fds[1]);
    sgi_listen_close(&s);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static segue_status inherit(sgi_listen_socket *s, const char *name, int32_t index)
{
    sgi_listen_options options = {
        .kind = SGI_LISTEN_INHERITED, .name = name, .index = index};
    return sgi_listen_open(s, &sgi_mem_libc, &options, why);
}

static int take_inherited(int listening, int other)
{
    sgi_listen_socket s;
    (void)other;
    if (inherit(&s, "nobody", 0) != SEGUE_E_NOT_FOUND ||
        inherit(&s, NULL, 2) != SEGUE_E_NOT_FOUND ||
        inherit(&s, NULL, -1) != SEGUE_E_NOT_FOUND ||
        inherit(&s, "other", 0) != SEGUE_E_INVALID)
        return 1;
    if (inherit(&s, "web", 0) != SEGUE_OK || s.fd != listening || s.port == 0)
        return 2;
    if (inherit(&s, NULL, 1) != SEGUE_OK || s.fd != listening)
        return 3;
    if (!(fcntl(s.fd, F_GETFD) & FD_CLOEXEC) || !(fcntl(s.fd, F_GETFL) & O_NONBLOCK))
        return 4;
    setenv("LISTEN_PID", "1", 1);
    return inherit(&s, NULL, 1) == SEGUE_E_NOT_FOUND ? 0 : 5;
}

static void inherited_sockets_are_found_by_name_and_index(void **state)
{
    (void)state;
    assert_int_equal(in_child(take_inherited), 0);
}

/* ---- accepting ---- */

typedef struct rig {
    test_mem mem;
    segue_runtime *rt;
    int64_t clock_ms;
    int logs;
    sgi_listen_socket socket;
    sgi_acceptor acceptor;
    int fds[64];
    int count;
    bool stops;
} rig;

static void took(void *user, int fd)
{
    rig *r = user;
    r->fds[r->count++] = fd;
    if (r->stops)
        sgi_acceptor_stop(&r->acceptor);
}

static int64_t rig_clock(void *user)
{
    return ((rig *)user)->clock_ms;
}

static void count_log(void *user, int32_t level, const char *text)
{
    (void)text;
    ((rig *)user)->logs += level == SEGUE_LOG_WARNING;
}

static void set_up(rig *r, int32_t max)
{
    *r = (rig){.clock_ms = 1000};
    test_mem_init(&r->mem);
    segue_hooks hooks = {sizeof hooks, r, rig_clock, NULL, NULL};
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &r->mem.mem,
                                     .hooks = &hooks,
                                     .user = r,
                                     .log = count_log};
    assert_int_equal(sgi_runtime_new(&options, &r->rt, NULL), SEGUE_OK);
    assert_int_equal(open_tcp(&r->socket, "127.0.0.1", 0), SEGUE_OK);
    sgi_runtime_lock(r->rt);
    sgi_acceptor_start(&r->acceptor, r->rt, &r->socket, max, took, r);
    sgi_runtime_unlock(r->rt);
}

static void give_back(rig *r)
{
    close(r->fds[--r->count]);
    sgi_runtime_lock(r->rt);
    sgi_acceptor_on_conn_closed(&r->acceptor);
    sgi_runtime_unlock(r->rt);
}

static void tear_down(rig *r)
{
    sgi_runtime_lock(r->rt);
    sgi_acceptor_stop(&r->acceptor);
    sgi_acceptor_stop(&r->acceptor);
    sgi_runtime_unlock(r->rt);
    while (r->count)
        give_back(r);
    sgi_listen_close(&r->socket);
    sgi_runtime_free(r->rt);
    assert_int_equal(r->mem.live, 0);
}

/* Returns the number of turns of the loop in which something happened, within some
 * milliseconds. */
static unsigned busy_turns(rig *r)
{
    unsigned before = ev_iteration(sgi_runtime_loop(r->rt));
    sgi_runtime_dispatch(r->rt, 30, 0, NULL);
    return ev_iteration(sgi_runtime_loop(r->rt)) - before;
}

static void at_the_limit_others_wait_their_turn(void **state)
{
    int peers[40];
    rig r;
    (void)state;
    set_up(&r, 20);
    for (int i = 0; i < 40; i++)
        peers[i] = reach(&r.socket);
    RUN_UNTIL(r.rt, r.count == 20);
    assert_true(busy_turns(&r) < 10);
    assert_int_equal(r.count, 20);
    assert_int_equal(fcntl(r.fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(r.fds[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    give_back(&r);
    RUN_UNTIL(r.rt, r.count == 20);
    assert_true(busy_turns(&r) < 10);
    for (int i = 0; i < 40; i++)
        close(peers[i]);
    tear_down(&r);
}

/* No descriptor is left: the listener warns once, does not spin, and goes on after a
 * pause or when a connection is returned. */
static void exhaustion_pauses(void **state)
{
    struct rlimit old, low;
    int peers[3];
    rig r;
    (void)state;
    set_up(&r, 100);
    busy_turns(&r); /* the loop needs descriptors of its own first */
    for (int i = 0; i < 3; i++)
        peers[i] = reach(&r.socket);
    int next = dup(peers[0]);
    close(next);
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){(rlim_t)next + 1, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    RUN_UNTIL(r.rt, r.logs == 1);
    assert_int_equal(r.count, 1);
    assert_true(busy_turns(&r) < 10);
    r.clock_ms += 1000;
    RUN_UNTIL(r.rt, r.logs == 2); /* the acceptor tried again and failed */
    assert_int_equal(r.count, 1);
    give_back(&r);
    RUN_UNTIL(r.rt, r.count == 1);
    RUN_UNTIL(r.rt, r.logs == 3);
    setrlimit(RLIMIT_NOFILE, &old);
    r.clock_ms += 1000;
    RUN_UNTIL(r.rt, r.count == 2);
    for (int i = 0; i < 3; i++)
        close(peers[i]);
    tear_down(&r);
}

static void an_acceptor_may_be_stopped_while_it_accepts(void **state)
{
    int peers[3];
    rig r;
    (void)state;
    set_up(&r, 100);
    r.stops = true;
    for (int i = 0; i < 3; i++)
        peers[i] = reach(&r.socket);
    RUN_UNTIL(r.rt, r.count == 1);
    assert_true(busy_turns(&r) < 10);
    assert_int_equal(r.count, 1);
    for (int i = 0; i < 3; i++)
        close(peers[i]);
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_taken_as_they_are),
        cmocka_unit_test(ipv6_is_listened_on),
        cmocka_unit_test(a_port_is_shared_only_when_all_say_so),
        cmocka_unit_test(a_path_has_its_mode_and_goes_with_the_socket),
        cmocka_unit_test(a_dead_servers_file_is_replaced_and_a_living_ones_is_not),
        cmocka_unit_test(what_is_no_socket_is_left_alone),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(inherited_sockets_are_found_by_name_and_index),
        cmocka_unit_test(at_the_limit_others_wait_their_turn),
        cmocka_unit_test(exhaustion_pauses),
        cmocka_unit_test(an_acceptor_may_be_stopped_while_it_accepts),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
