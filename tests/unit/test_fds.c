/* Descriptors and stdio: the suite over pipes and over a socket with small buffers, and
 * tests of features that only descriptors have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fake_engine_body.h"
#include "support/transport_suite.h"

/* ---- kinds ---- */

static segue_status open_ends(suite_rig *rig, int near_in, int near_out, int far_in,
                              int far_out)
{
    segue_transport *far;
    segue_status status = sgi_transport_fds(rig->rt, near_in, near_out, &rig->near);
    if (status == SEGUE_OK) {
        status = sgi_transport_fds(rig->rt, far_in, far_out, &far);
        if (status == SEGUE_OK) {
            rig->far = fake_conn_new(rig->rt, far);
            rig->far->echo = true;
            return SEGUE_OK;
        }
        sgi_transport_free(rig->near);
    } else {
        close(near_in);
        if (near_out != near_in)
            close(near_out);
    }
    close(far_in);
    if (far_out != far_in)
        close(far_out);
    return status;
}

static segue_status open_pipes(suite_rig *rig)
{
    int there[2], back[2];
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    return open_ends(rig, back[0], there[1], there[0], back[1]);
}

static void make_sockets(int fds[2])
{
    int size = 1; /* the system rounds up to its minimum */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static segue_status open_sockets(suite_rig *rig)
{
    int fds[2];
    make_sockets(fds);
    return open_ends(rig, fds[0], fds[0], fds[1], fds[1]);
}

static void end_far(suite_rig *rig)
{
    fake_conn_close(rig->far);
}

static const suite_kind pipe_kind = {
    .name = "pipe", .open = open_pipes, .end_far = end_far};
static const suite_kind socket_kind = {
    .name = "socket", .open = open_sockets, .end_far = end_far};

/* ---- one end is the test's ---- */

static segue_status open_raw(suite_rig *rig)
{
    int fds[2];
    make_sockets(fds);
    rig->fd = fds[1];
    return sgi_transport_fds(rig->rt, fds[0], fds[0], &rig->near);
}

static void close_raw(suite_rig *rig)
{
    if (rig->fd >= 0)
        close(rig->fd);
}

static const suite_kind raw_kind = {.name = "raw", .open = open_raw, .clean = close_raw};

static void set_up_raw(suite_rig *rig, bool echo)
{
    suite_set_up(rig, &raw_kind);
    rig->conn->echo = echo;
    fake_conn_attach(rig->conn);
    RUN_UNTIL(rig->rt, rig->conn->up);
}

/* Reads the available bytes without waiting. */
static size_t read_raw(int fd, char *to, size_t size)
{
    ssize_t got = recv(fd, to, size, MSG_DONTWAIT);
    return got > 0 ? (size_t)got : 0;
}

static void a_peer_may_write_byte_by_byte(void **state)
{
    static const char text[] = "{\"a\":1}\n{\"b\":2}\n";
    char got[sizeof text] = "";
    size_t len = 0;
    suite_rig rig;
    (void)state;
    set_up_raw(&rig, true);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        assert_int_equal(write(rig.fd, text + i, 1), 1);
        RUN_UNTIL(rig.rt, rig.conn->in_len == i + 1);
        RUN_UNTIL(rig.rt,
                  (len += read_raw(rig.fd, got + len, sizeof got - len)) == i + 1);
    }
    assert_string_equal(got, text);
    assert_false(rig.conn->sole); /* descriptors may be of any kind */
    suite_tear_down(&rig);
}

static void a_peer_may_read_byte_by_byte(void **state)
{
    static char text[20000];
    suite_rig rig;
    char byte;
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 23);
    set_up_raw(&rig, false);
    fake_conn_send(rig.conn, text, sizeof text);
    for (size_t i = 0; i < sizeof text; i++) {
        RUN_UNTIL(rig.rt, read_raw(rig.fd, &byte, 1) == 1);
        assert_int_equal(byte, text[i]);
    }
    suite_tear_down(&rig);
}

static void output_is_still_written_after_the_end_of_input(void **state)
{
    static char text[300000];
    size_t len = 0;
    suite_rig rig;
    char *got = malloc(sizeof text);
    (void)state;
    memset(text, 'x', sizeof text);
    set_up_raw(&rig, false);
    fake_conn_send(rig.conn, text, sizeof text);
    shutdown(rig.fd, SHUT_WR);
    for (int i = 0; i < 5; i++)
        sgi_runtime_dispatch(rig.rt, 0, 0, NULL);
    assert_int_equal(rig.conn->losses, 0);
    RUN_UNTIL(rig.rt,
              (len += read_raw(rig.fd, got + len, sizeof text - len)) == sizeof text);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(rig.conn->losses, 1);
    assert_string_equal(rig.conn->why, "the peer closed the connection");
    assert_memory_equal(got, text, sizeof text);
    free(got);
    suite_tear_down(&rig);
}

/* A callback that input makes due, and that sends an answer. */
typedef struct answer {
    sgi_ready_object ready;
    sgi_conn *conn;
} answer;

static int32_t give_answer(sgi_ready_object *ready, int32_t budget)
{
    answer *a = SGI_OWNER(ready, answer, ready);
    (void)budget;
    fake_conn_put(a->conn, "answer\n", 7);
    return 1;
}

static answer late = {.ready = {.run = give_answer}};

static void queue_answer(sgi_conn *conn)
{
    late.conn = conn;
    sgi_ready_queue_add(conn->engine, &late.ready);
}

static void callbacks_answer_before_the_end_of_input_counts(void **state)
{
    suite_rig rig;
    char got[16] = "";
    (void)state;
    set_up_raw(&rig, false);
    rig.conn->on_feed = queue_answer;
    assert_int_equal(write(rig.fd, "question\n", 9), 9);
    shutdown(rig.fd, SHUT_WR);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(read_raw(rig.fd, got, sizeof got), 7);
    assert_string_equal(got, "answer\n");
    suite_tear_down(&rig);
}

/* ---- pipes that break ---- */

typedef struct pipes {
    int in;  /* the test writes here what the transport reads */
    int out; /* the test reads here what the transport writes */
} pipes;

static segue_status open_pipe_raw(suite_rig *rig)
{
    int there[2], back[2];
    pipes *p = rig->state = malloc(sizeof *p);
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    *p = (pipes){there[1], back[0]};
    return sgi_transport_fds(rig->rt, there[0], back[1], &rig->near);
}

static void close_pipe_raw(suite_rig *rig)
{
    pipes *p = rig->state;
    if (p->in >= 0)
        close(p->in);
    if (p->out >= 0)
        close(p->out);
    free(p);
}

static const suite_kind broken_kind = {
    .name = "broken", .open = open_pipe_raw, .clean = close_pipe_raw};

static void a_peer_that_stops_reading_is_lost_and_raises_no_signal(void **state)
{
    suite_rig rig;
    struct sigaction now;
    sigset_t pending;
    (void)state;
    signal(SIGPIPE, SIG_DFL); /* a SIGPIPE would end the test */
    suite_set_up(&rig, &broken_kind);
    pipes *p = rig.state;
    rig.conn->wants = false; /* the failed write must be seen before the last input */
    fake_conn_attach(rig.conn);
    RUN_UNTIL(rig.rt, rig.conn->up);
    close(p->out);
    p->out = -1;
    assert_int_equal(write(p->in, "last words\n", 11), 11);
    rig.conn->wants = true;
    fake_conn_send(rig.conn, "hello\n", 6);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "the peer closed the connection");
    assert_int_equal(rig.conn->in_len, 11); /* input from before the failure was read */
    assert_int_equal(sigaction(SIGPIPE, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    suite_tear_down(&rig);
}

static void a_blocked_sigpipe_of_the_application_stays_as_it_was(void **state)
{
    const struct timespec at_once = {0, 0};
    suite_rig rig;
    sigset_t pipe_only, mask;
    (void)state;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, NULL);
    raise(SIGPIPE); /* a pending signal of the application */
    suite_set_up(&rig, &broken_kind);
    pipes *p = rig.state;
    close(p->out);
    p->out = -1;
    fake_conn_attach(rig.conn);
    fake_conn_send(rig.conn, "hello\n", 6);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    sigpending(&mask);
    assert_int_equal(sigismember(&mask, SIGPIPE), 1);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGPIPE), 1);
    assert_int_equal(sigtimedwait(&pipe_only, NULL, &at_once), SIGPIPE);
    pthread_sigmask(SIG_UNBLOCK, &pipe_only, NULL);
    suite_tear_down(&rig);
}

/* ---- files ---- */

static int temporary_file(const char *text)
{
    char name[] = "fds_XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    if (text) {
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

/* Makes a runtime with one fds transport that echoes. */
static void open_files(suite_rig *rig, int in, int out)
{
    *rig = (suite_rig){.kind = &raw_kind, .fd = -1};
    test_mem_init(&rig->mem);
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &rig->mem.mem};
    assert_int_equal(sgi_runtime_new(&options, &rig->rt, NULL), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(rig->rt, in, out, &rig->near), SEGUE_OK);
    rig->conn = fake_conn_new(rig->rt, rig->near);
    rig->conn->echo = true;
    fake_conn_attach(rig->conn);
}

static void regular_files_work(void **state)
{
    char got[32] = "";
    suite_rig rig;
    int in = temporary_file("one\ntwo\nthree\n");
    int out = temporary_file(NULL);
    int look = dup(out);
    (void)state;
    open_files(&rig, in, out);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_int_equal(pread(look, got, sizeof got, 0), 14);
    assert_string_equal(got, "one\ntwo\nthree\n");
    close(look);
    suite_tear_down(&rig);
}

static void a_full_disk_is_a_loss_with_a_reason(void **state)
{
    suite_rig rig;
    int full = open("/dev/full", O_WRONLY);
    (void)state;
    if (full < 0)
        skip();
    open_files(&rig, temporary_file("one\n"), full);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "writing failed: No space left on device");
    suite_tear_down(&rig);
}

static void input_that_cannot_be_read_is_a_loss_with_a_reason(void **state)
{
    suite_rig rig;
    int directory = open(".", O_RDONLY | O_DIRECTORY);
    (void)state;
    open_files(&rig, directory, temporary_file(NULL));
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_string_equal(rig.conn->why, "reading failed: Is a directory");
    suite_tear_down(&rig);
}

/* ---- a peer that does not read ---- */

typedef struct fake_clock {
    int64_t now;
} fake_clock;

static int64_t read_clock(void *user)
{
    return ((fake_clock *)user)->now;
}

static void a_peer_that_reads_nothing_does_not_keep_a_closed_conversation(void **state)
{
    static char text[1000000];
    fake_clock clock = {1000};
    segue_hooks hooks = {sizeof hooks, &clock, read_clock, NULL, NULL};
    segue_runtime_options options = {.struct_size = sizeof options, .hooks = &hooks};
    segue_runtime *rt;
    segue_transport *near;
    int fds[2];
    (void)state;
    make_sockets(fds);
    assert_int_equal(sgi_runtime_new(&options, &rt, NULL), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(rt, fds[0], fds[0], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(rt, near);
    fake_conn_attach(conn);
    fake_conn_send(conn, text, sizeof text);
    fake_conn_close(conn);
    sgi_runtime_dispatch(rt, 0, 0, NULL);
    clock.now += SGI_LINGER_MS - 1;
    sgi_runtime_dispatch(rt, 0, 0, NULL);
    assert_false(conn->detached);
    /* Progress restarts the time limit. */
    assert_int_not_equal(read_raw(fds[1], text, 10000), 0);
    sgi_runtime_dispatch(rt, 0, 0, NULL);
    clock.now += SGI_LINGER_MS - 1;
    sgi_runtime_dispatch(rt, 0, 0, NULL);
    assert_false(conn->detached);
    clock.now += 1;
    sgi_runtime_dispatch(rt, 0, 0, NULL);
    assert_true(conn->detached);
    sgi_runtime_free(rt);
    fake_conn_free(conn);
    close(fds[1]);
}

/* ---- descriptors ---- */

static void closed_standard_input_is_refused_whatever_is_opened_before(void **state)
{
    segue_transport *transport = NULL;
    segue_runtime *rt;
    int saved = dup(0);
    (void)state;
    close(0);
    assert_int_equal(segue_runtime_new(NULL, &rt, NULL), SEGUE_OK);
    assert_int_equal(segue_transport_stdio(rt, &transport), SEGUE_E_IO);
    assert_null(transport);
    segue_runtime_free(rt);
    dup2(saved, 0);
    close(saved);
}

static void descriptors_are_closed_at_the_end(void **state)
{
    int fds[2];
    segue_transport *transport = NULL;
    segue_runtime *rt;
    segue_runtime_options options = {.struct_size = sizeof options};
    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(sgi_runtime_new(&options, &rt, NULL), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(rt, fds[0], 4000, &transport), SEGUE_E_INVALID);
    assert_int_equal(sgi_transport_fds(rt, -1, fds[1], &transport), SEGUE_E_INVALID);
    assert_null(transport);
    assert_true(fcntl(fds[0], F_GETFD) >= 0);
    assert_int_equal(sgi_transport_fds(rt, fds[0], fds[1], &transport), SEGUE_OK);
    sgi_transport_free(transport);
    assert_int_equal(fcntl(fds[0], F_GETFD), -1);
    assert_int_equal(fcntl(fds[1], F_GETFD), -1);
    sgi_runtime_free(rt);
}

static void a_shared_descriptor_gets_its_flags_back(void **state)
{
    suite_rig rig;
    int fds[2];
    (void)state;
    make_sockets(fds);
    int shared = dup(fds[0]);
    open_files(&rig, fds[0], fds[0]);
    RUN_UNTIL(rig.rt, rig.conn->up);
    assert_true(fcntl(shared, F_GETFL) & O_NONBLOCK);
    close(fds[1]);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    assert_false(fcntl(shared, F_GETFL) & O_NONBLOCK);
    close(shared);
    suite_tear_down(&rig);
}

/* ---- stdio ---- */

static segue_status open_stdio(suite_rig *rig)
{
    return sgi_transport_stdio(rig->rt, &rig->near);
}

static const suite_kind stdio_kind = {.name = "stdio", .open = open_stdio};

static void stdio_is_taken_over_and_given_back(void **state)
{
    int saved_in = dup(0), saved_out = dup(1), there[2], back[2];
    char got[16] = "";
    suite_rig rig;
    (void)state;
    fflush(stdout);
    assert_int_equal(pipe(there) | pipe(back), 0);
    dup2(there[0], 0);
    dup2(back[1], 1);
    suite_set_up(&rig, &stdio_kind);
    rig.conn->echo = true;
    fake_conn_attach(rig.conn);
    assert_int_equal(write(there[1], "hello\n", 6), 6);
    RUN_UNTIL(rig.rt, rig.conn->in_len == 6);
    bool sole = rig.conn->sole;
    int during = fcntl(0, F_GETFL) & fcntl(1, F_GETFL) & O_NONBLOCK;
    close(there[1]);
    RUN_UNTIL(rig.rt, rig.conn->detached);
    int after = (fcntl(0, F_GETFL) | fcntl(1, F_GETFL)) & O_NONBLOCK;
    bool still_open = fcntl(0, F_GETFD) >= 0 && fcntl(1, F_GETFD) >= 0;
    assert_int_equal(read(back[0], got, sizeof got), 6);
    suite_tear_down(&rig);
    dup2(saved_in, 0);
    dup2(saved_out, 1);
    close(saved_in);
    close(saved_out);
    close(there[0]);
    close(back[0]);
    close(back[1]);
    assert_int_equal(during, O_NONBLOCK);
    assert_int_equal(after, 0);
    assert_true(still_open);
    assert_true(sole);
    assert_string_equal(got, "hello\n");
}

static void stdio_needs_open_descriptors(void **state)
{
    segue_transport *transport = NULL;
    segue_runtime_options options = {.struct_size = sizeof options};
    segue_runtime *rt;
    (void)state;
    assert_int_equal(sgi_runtime_new(&options, &rt, NULL), SEGUE_OK);
    int saved = dup(0);
    close(0);
    segue_status status = sgi_transport_stdio(rt, &transport);
    dup2(saved, 0);
    close(saved);
    assert_int_equal(status, SEGUE_E_IO);
    assert_null(transport);
    sgi_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_may_write_byte_by_byte),
        cmocka_unit_test(a_peer_may_read_byte_by_byte),
        cmocka_unit_test(output_is_still_written_after_the_end_of_input),
        cmocka_unit_test(callbacks_answer_before_the_end_of_input_counts),
        cmocka_unit_test(a_peer_that_stops_reading_is_lost_and_raises_no_signal),
        cmocka_unit_test(a_blocked_sigpipe_of_the_application_stays_as_it_was),
        cmocka_unit_test(regular_files_work),
        cmocka_unit_test(a_full_disk_is_a_loss_with_a_reason),
        cmocka_unit_test(input_that_cannot_be_read_is_a_loss_with_a_reason),
        cmocka_unit_test(a_peer_that_reads_nothing_does_not_keep_a_closed_conversation),
        cmocka_unit_test(closed_standard_input_is_refused_whatever_is_opened_before),
        cmocka_unit_test(descriptors_are_closed_at_the_end),
        cmocka_unit_test(a_shared_descriptor_gets_its_flags_back),
        cmocka_unit_test(stdio_is_taken_over_and_given_back),
        cmocka_unit_test(stdio_needs_open_descriptors),
    };
    return run_transport_suite(&pipe_kind) + run_transport_suite(&socket_kind) +
           cmocka_run_group_tests_name("fds", tests, NULL, NULL);
}
