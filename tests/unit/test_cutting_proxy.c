/* The cutting proxy between real sockets: the test is client and target of each
 * connection. label: threads (the proxy has its own thread). */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/cutting_line.h"

#define MUCH ((size_t)10 * 1000 * 1000)
#define PATIENCE_MS 120000

typedef struct rig {
    cutting_proxy *proxy;
    int listener;
    char directory[64];
    char path[96];
} rig;

/* ---- sockets ---- */

static void be_patient(int fd)
{
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static int listen_on_loopback(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    be_patient(fd);
    return fd;
}

static int listen_on_path(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strcpy(address.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    be_patient(fd);
    return fd;
}

/* Returns -1 when the connection is refused. small: the socket's buffer is small. */
static int try_connect(const rig *r, bool small)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(cutting_proxy_port(r->proxy)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int size = 4096;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    be_patient(fd);
    if (small)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
    return -1;
}

static int open_client(const rig *r)
{
    int fd = try_connect(r, false);
    assert_true(fd >= 0);
    return fd;
}

static int take_target(const rig *r)
{
    int fd = accept(r->listener, NULL, NULL);
    assert_true(fd >= 0);
    be_patient(fd);
    return fd;
}

static void open_pair(const rig *r, int *client, int *target)
{
    *client = open_client(r);
    *target = take_target(r);
}

static void reset(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

/* Reads until the end; *end is 0 for a FIN, otherwise the errno. Returns the number of
 * bytes. */
static size_t read_to_end(int fd, int *end)
{
    static char waste[65536];
    size_t sum = 0;
    ssize_t got;
    while ((got = recv(fd, waste, sizeof waste, 0)) > 0)
        sum += (size_t)got;
    *end = got < 0 ? errno : 0;
    return sum;
}

static void send_all(int fd, size_t count)
{
    static const char zeros[65536];
    for (ssize_t put; count; count -= (size_t)put) {
        put = send(fd, zeros, count < sizeof zeros ? count : sizeof zeros, MSG_NOSIGNAL);
        assert_true(put > 0);
    }
}

/* Sends until all is sent or the connection breaks. */
static void send_until_broken(int fd, size_t count)
{
    static const char zeros[65536];
    for (ssize_t put; count; count -= (size_t)put) {
        put = send(fd, zeros, count < sizeof zeros ? count : sizeof zeros, MSG_NOSIGNAL);
        if (put < 0)
            return;
    }
}

/* Sends until nothing moves: the buffers of the kernel are full, too. */
static size_t send_until_stuck(int fd)
{
    static const char zeros[65536];
    size_t sent = 0;
    for (;;) {
        ssize_t put = send(fd, zeros, sizeof zeros, MSG_DONTWAIT);
        struct pollfd set = {.fd = fd, .events = POLLOUT};
        sent += put > 0 ? (size_t)put : 0;
        if (put < 0 && poll(&set, 1, 300) == 0)
            return sent;
        assert_true(sent < 100 * MUCH);
    }
}

static void assert_ends(int fd, size_t count, int end)
{
    int seen;
    assert_int_equal(read_to_end(fd, &seen), count);
    assert_int_equal(seen, end);
    close(fd);
}

static void assert_carries(int from, int to, char byte)
{
    char seen = 0;
    assert_int_equal(send(from, &byte, 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(to, &seen, 1, 0), 1);
    assert_int_equal(seen, byte);
}

/* ---- the rig ---- */

static rig open_rig(cutting_options options, bool by_path)
{
    rig r = {.directory = "/tmp/cutting_proxy.XXXXXX"};
    if (by_path) {
        assert_non_null(mkdtemp(r.directory));
        snprintf(r.path, sizeof r.path, "%s/socket", r.directory);
        r.listener = listen_on_path(r.path);
        options.target_path = r.path;
    } else {
        r.listener = listen_on_loopback(&options.target_port);
    }
    assert_true(cutting_proxy_start(&options, &r.proxy));
    return r;
}

static void close_rig(rig *r)
{
    cutting_proxy_stop(r->proxy);
    close(r->listener);
    if (r->path[0]) {
        unlink(r->path);
        rmdir(r->directory);
    }
}

static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for a count that falls, because the proxy can only wait for a count that
 * rises. */
static void until_open(const rig *r, uint64_t count)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    while (cutting_proxy_get(r->proxy, CUTTING_OPEN) != count)
        assert_true(clock_ms() < end);
}

/* ---- what it carries ---- */

/* One end of a connection: it sends its own bytes and checks those of the other end. */
typedef struct end {
    int fd;
    uint64_t seed;
    size_t sent, seen;
    bool over;
} end;

static void fill(char *bytes, size_t count, size_t at, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(cutting_mix(seed, (at + i) / 512, 0) >> (at + i) % 57);
}

static void send_some(end *e, size_t total)
{
    static char bytes[16384];
    size_t count = total - e->sent < sizeof bytes ? total - e->sent : sizeof bytes;
    fill(bytes, count, e->sent, e->seed);
    ssize_t put = send(e->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    assert_true(put > 0 || errno == EAGAIN);
    e->sent += put > 0 ? (size_t)put : 0;
    if (e->sent == total)
        shutdown(e->fd, SHUT_WR);
}

static void check_some(end *e, uint64_t seed)
{
    static char bytes[16384], wanted[16384];
    ssize_t got = recv(e->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    assert_true(got >= 0 || errno == EAGAIN);
    e->over = got == 0;
    if (got <= 0)
        return;
    fill(wanted, (size_t)got, e->seen, seed);
    assert_memory_equal(bytes, wanted, (size_t)got);
    e->seen += (size_t)got;
}

static void carry_both_ways(cutting_options options, bool by_path, size_t total)
{
    rig r = open_rig(options, by_path);
    end ends[2] = {{.seed = 11}, {.seed = 22}};
    open_pair(&r, &ends[0].fd, &ends[1].fd);
    while (!ends[0].over || !ends[1].over) {
        struct pollfd set[2];
        for (int i = 0; i < 2; i++)
            set[i] = (struct pollfd){
                .fd = ends[i].over && ends[i].sent == total ? -1 : ends[i].fd,
                .events = (short)((ends[i].sent < total ? POLLOUT : 0) |
                                  (ends[i].over ? 0 : POLLIN))};
        assert_true(poll(set, 2, PATIENCE_MS) > 0);
        for (int i = 0; i < 2; i++) {
            if (set[i].revents & POLLOUT)
                send_some(&ends[i], total);
            if (set[i].revents & POLLIN)
                check_some(&ends[i], ends[!i].seed);
        }
    }
    until_open(&r, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ends[i].seen, total);
        assert_int_equal(
            cutting_proxy_get(r.proxy, i ? CUTTING_BYTES_DOWN : CUTTING_BYTES_UP), total);
        close(ends[i].fd);
    }
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CUTS), 0);
    close_rig(&r);
}

static void carries_much_both_ways_unchanged(void **state)
{
    (void)state;
    carry_both_ways((cutting_options){0}, false, MUCH);
}

static void carries_much_in_random_pieces(void **state)
{
    (void)state;
    carry_both_ways((cutting_options){.piece_max = 2000, .seed = 3}, false, MUCH);
    carry_both_ways((cutting_options){.piece_max = 2000, .seed = 4}, true, MUCH);
}

static void carries_byte_by_byte_through_little_room(void **state)
{
    (void)state;
    carry_both_ways((cutting_options){.piece_max = 1}, false, 20000);
    carry_both_ways((cutting_options){.piece_max = 3, .room = 2}, true, 20000);
    carry_both_ways((cutting_options){.room = 1}, false, 20000);
}

static void passes_on_a_half_close(void **state)
{
    (void)state;
    for (int by_path = 0; by_path < 2; by_path++) {
        rig r = open_rig((cutting_options){0}, by_path);
        int client, target, seen;
        open_pair(&r, &client, &target);
        send_all(client, 1000);
        shutdown(client, SHUT_WR);
        assert_int_equal(read_to_end(target, &seen), 1000);
        assert_int_equal(seen, 0);
        send_all(target, 100000);
        close(target);
        assert_ends(client, 100000, 0);
        until_open(&r, 0);
        close_rig(&r);
    }
}

static void passes_on_a_reset(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    int client, target;
    open_pair(&r, &client, &target);
    assert_carries(target, client, 'x');
    reset(target);
    assert_ends(client, 0, ECONNRESET);
    open_pair(&r, &client, &target);
    assert_carries(client, target, 'x');
    reset(client);
    assert_ends(target, 0, ECONNRESET);
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CUTS), 0);
    close_rig(&r);
}

/* The proxy stops reading from a client whose bytes the target does not take. */
static void passes_on_a_reset_behind_a_full_room(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){.room = 100}, false);
    int client, target, seen;
    open_pair(&r, &client, &target);
    size_t sent = send_until_stuck(client);
    reset(client);
    until_open(&r, 0);
    assert_true(read_to_end(target, &seen) < sent);
    assert_int_equal(seen, ECONNRESET);
    close(target);
    close_rig(&r);
}

static void without_a_target_clients_are_reset(void **state)
{
    (void)state;
    for (int by_path = 0; by_path < 2; by_path++) {
        rig r = open_rig((cutting_options){0}, by_path);
        close(r.listener);
        assert_ends(open_client(&r), 0, ECONNRESET);
        assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CONNECTIONS), 1);
        until_open(&r, 0);
        r.listener = -1;
        close_rig(&r);
    }
}

/* The writer is stopped when the room is full, and nothing is lost. */
static void holds_no_more_than_its_room(void **state)
{
    (void)state;
    const size_t room = 5000;
    rig r = open_rig((cutting_options){.room = room}, false);
    int client, target;
    open_pair(&r, &client, &target);
    size_t sent = send_until_stuck(client);
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_MOST_HELD), room);
    assert_true(cutting_proxy_get(r.proxy, CUTTING_BYTES_UP) + room < sent);
    shutdown(client, SHUT_WR);
    assert_ends(target, sent, 0);
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_MOST_HELD), room);
    close(client);
    close_rig(&r);
}

static void more_connections_than_allowed_wait(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){.most = 2}, false);
    int clients[3], targets[3];
    for (int i = 0; i < 2; i++)
        open_pair(&r, &clients[i], &targets[i]);
    clients[2] = open_client(&r);
    assert_carries(clients[0], targets[0], 'a');
    assert_carries(clients[1], targets[1], 'b');
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CONNECTIONS), 2);
    close(clients[0]);
    assert_ends(targets[0], 0, 0);
    targets[2] = take_target(&r);
    assert_carries(targets[2], clients[2], 'c');
    for (int i = 1; i < 3; i++) {
        close(clients[i]);
        close(targets[i]);
    }
    close_rig(&r);
}

/* ---- cuts ---- */

static void cuts_all_on_command(void **state)
{
    (void)state;
    static const cutting_how hows[] = {CUTTING_FIN, CUTTING_RST};
    rig r = open_rig((cutting_options){0}, false);
    for (size_t i = 0; i < 2; i++) {
        int clients[3], targets[3];
        for (int k = 0; k < 3; k++) {
            open_pair(&r, &clients[k], &targets[k]);
            assert_carries(clients[k], targets[k], 'x');
        }
        assert_int_equal(cutting_proxy_cut_all(r.proxy, hows[i]), 3);
        for (int k = 0; k < 3; k++) {
            assert_ends(clients[k], 0, hows[i] == CUTTING_RST ? ECONNRESET : 0);
            assert_ends(targets[k], 0, hows[i] == CUTTING_RST ? ECONNRESET : 0);
        }
        until_open(&r, 0);
        assert_int_equal(cutting_proxy_cut_all(r.proxy, hows[i]), 0);
        assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CUTS), 3 * (i + 1));
    }
    close_rig(&r);
}

/* Sends more than the plan lets through; checks what arrives and how it ends. */
static void cut_at(const rig *r, const cutting_plan *plan, size_t exactly)
{
    int client, target, seen;
    open_pair(r, &client, &target);
    bool up = plan->direction == CUTTING_UP;
    send_until_broken(up ? client : target, exactly + 100000);
    assert_int_equal(read_to_end(up ? target : client, &seen), exactly);
    assert_int_equal(seen, plan->how == CUTTING_RST ? ECONNRESET : 0);
    close(client);
    close(target);
    until_open(r, 0);
}

static void cuts_at_the_planned_byte(void **state)
{
    (void)state;
    static const size_t bytes[] = {0, 1, 2, 999, 65535, 65536, 65537, 300000};
    for (size_t piece = 0; piece < 3; piece++) {
        rig r = open_rig((cutting_options){.piece_max = piece * 500}, false);
        for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
            for (int k = 0; k < 4; k++) {
                const cutting_plan plan = {.direction = k & 1 ? CUTTING_UP : CUTTING_DOWN,
                                           .how = k & 2 ? CUTTING_RST : CUTTING_FIN,
                                           .min = bytes[i],
                                           .max = bytes[i]};
                cutting_proxy_plan(r.proxy, &plan);
                cut_at(&r, &plan, bytes[i]);
                cutting_proxy_plan_nothing(r.proxy, plan.direction);
            }
        }
        assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CUTS), 32);
        close_rig(&r);
    }
}

/* All bytes before a planned reset reach the reader. */
static void a_planned_reset_comes_behind_its_bytes(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    const cutting_plan plan = {
        .direction = CUTTING_DOWN, .min = 60000, .max = 60000, .how = CUTTING_RST};
    cutting_proxy_plan(r.proxy, &plan);
    int client = try_connect(&r, true), target = take_target(&r);
    send_all(target, 60000);
    assert_true(cutting_proxy_await(r.proxy, CUTTING_CUTS, 1, PATIENCE_MS));
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_OPEN), 1);
    assert_ends(client, 60000, ECONNRESET);
    assert_ends(target, 0, ECONNRESET);
    close_rig(&r);
}

static void cut_by_seed(uint64_t seed, size_t passed[20])
{
    rig r = open_rig((cutting_options){.seed = seed, .piece_max = 700}, false);
    const cutting_plan plan = {
        .direction = CUTTING_DOWN, .min = 100, .max = 5000, .how = CUTTING_FIN};
    cutting_proxy_plan(r.proxy, &plan);
    for (int i = 0; i < 20; i++) {
        int client, target, seen;
        open_pair(&r, &client, &target);
        send_until_broken(target, 6000);
        passed[i] = read_to_end(client, &seen);
        assert_in_range(passed[i], 100, 5000);
        close(client);
        close(target);
    }
    close_rig(&r);
}

static void cuts_come_as_the_seed_says(void **state)
{
    (void)state;
    size_t first[20], again[20], other[20];
    int same = 0;
    cut_by_seed(1, first);
    cut_by_seed(1, again);
    cut_by_seed(2, other);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    for (int i = 1; i < 20; i++)
        same += first[i] == first[i - 1];
    assert_true(same < 3);
}

/* A plan counts from its start on open connections, and ends after its cuts. */
static void a_plan_begins_and_ends(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    const cutting_plan plan = {
        .direction = CUTTING_UP, .min = 5, .max = 5, .how = CUTTING_FIN, .times = 2};
    int client, target;
    open_pair(&r, &client, &target);
    assert_carries(client, target, 'x');
    cutting_proxy_plan(r.proxy, &plan);
    send_all(client, 4);
    send_all(client, 1);
    assert_ends(target, 5, 0);
    assert_ends(client, 0, 0);
    cut_at(&r, &plan, 5);
    open_pair(&r, &client, &target);
    send_all(client, 1000);
    shutdown(client, SHUT_WR);
    assert_ends(target, 1000, 0);
    assert_ends(client, 0, 0);
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CUTS), 2);
    close_rig(&r);
}

static void a_plan_can_be_taken_back(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    const cutting_plan plan = {.direction = CUTTING_UP, .min = 5, .max = 5};
    int client, target;
    cutting_proxy_plan(r.proxy, &plan);
    open_pair(&r, &client, &target);
    assert_carries(client, target, 'x');
    cutting_proxy_plan_nothing(r.proxy, CUTTING_UP);
    send_all(client, 1000);
    shutdown(client, SHUT_WR);
    assert_ends(target, 1000, 0);
    assert_ends(client, 0, 0);
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_CUTS), 0);
    close_rig(&r);
}

static void silence_keeps_the_connection(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    int clients[2], targets[2];
    char byte;
    open_pair(&r, &clients[0], &targets[0]);
    assert_carries(clients[0], targets[0], 'a');
    assert_int_equal(cutting_proxy_cut_all(r.proxy, CUTTING_SILENCE), 1);
    send_all(clients[0], 1000);
    send_all(targets[0], 1000);
    shutdown(clients[0], SHUT_WR);
    open_pair(&r, &clients[1], &targets[1]); /* by now the thread has handled those
                                              * bytes */
    assert_carries(clients[1], targets[1], 'b');
    assert_carries(targets[1], clients[1], 'c');
    assert_int_equal(recv(clients[0], &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(recv(targets[0], &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_OPEN), 2);
    assert_int_equal(cutting_proxy_cut_all(r.proxy, CUTTING_RST), 2);
    for (int i = 0; i < 2; i++) {
        assert_ends(clients[i], 0, ECONNRESET);
        assert_ends(targets[i], 0, ECONNRESET);
    }
    close_rig(&r);
}

static void silence_by_plan_comes_at_its_byte(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){.piece_max = 7}, false);
    const cutting_plan plan = {
        .direction = CUTTING_DOWN, .min = 1234, .max = 1234, .how = CUTTING_SILENCE};
    char bytes[1234];
    int client, target;
    cutting_proxy_plan(r.proxy, &plan);
    open_pair(&r, &client, &target);
    send_all(target, 2000);
    assert_int_equal(recv(client, bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
    assert_true(cutting_proxy_await(r.proxy, CUTTING_CUTS, 1, PATIENCE_MS));
    assert_int_equal(cutting_proxy_get(r.proxy, CUTTING_BYTES_DOWN), 1234);
    assert_int_equal(recv(client, bytes, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    close(client);
    close(target);
    until_open(&r, 0);
    close_rig(&r);
}

/* ---- the port ---- */

static void refuses_and_returns_on_the_same_port(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    int client, target;
    open_pair(&r, &client, &target);
    for (int i = 0; i < 3; i++) {
        assert_true(cutting_proxy_refuse(r.proxy, -1));
        assert_int_equal(try_connect(&r, false), -1);
        assert_carries(client, target, 'a'); /* open connections go on */
        assert_true(cutting_proxy_refuse(r.proxy, 0));
        int other, far;
        open_pair(&r, &other, &far);
        assert_carries(far, other, 'b');
        close(other);
        close(far);
    }
    close(client);
    close(target);
    close_rig(&r);
}

static void returns_by_itself_after_its_time(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    int64_t begin = clock_ms();
    int client = -1, refused = 0;
    assert_true(cutting_proxy_refuse(r.proxy, 500));
    while ((client = try_connect(&r, false)) < 0) {
        assert_true(clock_ms() < begin + PATIENCE_MS);
        refused++;
    }
    assert_true(clock_ms() >= begin + 500);
    assert_true(refused > 0);
    int target = take_target(&r);
    assert_carries(client, target, 'x');
    close(client);
    close(target);
    close_rig(&r);
}

static void stop_closes_what_is_open(void **state)
{
    (void)state;
    rig r = open_rig((cutting_options){0}, false);
    int client, target;
    open_pair(&r, &client, &target);
    assert_carries(client, target, 'x');
    assert_false(cutting_proxy_await(r.proxy, CUTTING_CUTS, 1, 1));
    close_rig(&r);
    assert_ends(client, 0, 0);
    assert_ends(target, 0, 0);
}

static void cannot_start_on_a_port_in_use_or_a_long_path(void **state)
{
    (void)state;
    char path[200] = "/tmp/";
    uint16_t port;
    int listener = listen_on_loopback(&port);
    cutting_proxy *proxy = NULL;
    assert_false(cutting_proxy_start(&(cutting_options){.port = port}, &proxy));
    assert_int_equal(errno, EADDRINUSE);
    memset(path + 5, 'x', sizeof path - 6);
    assert_false(cutting_proxy_start(&(cutting_options){.target_path = path}, &proxy));
    assert_int_equal(errno, EINVAL);
    assert_false(
        cutting_proxy_start(&(cutting_options){.target_host = "localhost"}, &proxy));
    assert_int_equal(errno, EINVAL);
    assert_null(proxy);
    cutting_proxy_stop(NULL);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_much_both_ways_unchanged),
        cmocka_unit_test(carries_much_in_random_pieces),
        cmocka_unit_test(carries_byte_by_byte_through_little_room),
        cmocka_unit_test(passes_on_a_half_close),
        cmocka_unit_test(passes_on_a_reset),
        cmocka_unit_test(passes_on_a_reset_behind_a_full_room),
        cmocka_unit_test(without_a_target_clients_are_reset),
        cmocka_unit_test(holds_no_more_than_its_room),
        cmocka_unit_test(more_connections_than_allowed_wait),
        cmocka_unit_test(cuts_all_on_command),
        cmocka_unit_test(cuts_at_the_planned_byte),
        cmocka_unit_test(a_planned_reset_comes_behind_its_bytes),
        cmocka_unit_test(cuts_come_as_the_seed_says),
        cmocka_unit_test(a_plan_begins_and_ends),
        cmocka_unit_test(a_plan_can_be_taken_back),
        cmocka_unit_test(silence_keeps_the_connection),
        cmocka_unit_test(silence_by_plan_comes_at_its_byte),
        cmocka_unit_test(refuses_and_returns_on_the_same_port),
        cmocka_unit_test(returns_by_itself_after_its_time),
        cmocka_unit_test(stop_closes_what_is_open),
        cmocka_unit_test(cannot_start_on_a_port_in_use_or_a_long_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
