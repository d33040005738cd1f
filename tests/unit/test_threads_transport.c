/* Transports of background runtimes: their I/O runs on the runtime's thread, their
 * callbacks on the host's thread. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fake_engine_body.h"
#include "support/threads_rig.h"

static size_t received(sgi_conn *conn)
{
    sgi_runtime_lock(conn->rt);
    size_t len = conn->in_len;
    sgi_runtime_unlock(conn->rt);
    return len;
}

static void output_of_the_hosts_thread_is_written(void **state)
{
    threads_rig r;
    int fds[2];
    char got[4096];
    segue_transport *near;
    size_t total = 0;
    (void)state;
    threads_begin(&r);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(r.rt, fds[0], fds[0], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    conn->echo = true;
    conn->hello = "hello\n";
    fake_conn_attach(conn);
    assert_int_equal(read(fds[1], got, sizeof got), 6);
    for (int i = 0; i < 1000; i++)
        fake_conn_send(conn, "0123456789", 10);
    while (total < 10000) {
        ssize_t n = read(fds[1], got, sizeof got);
        assert_true(n > 0);
        total += (size_t)n;
    }
    assert_int_equal(write(fds[1], "echo\n", 5), 5);
    assert_int_equal(read(fds[1], got, sizeof got), 5);
    close(fds[1]);
    while (!fake_conn_is_detached(conn))
        threads_pause();
    threads_end(&r);
    fake_conn_free(conn);
}

static event *due_by_feed;

static void queue_due(sgi_conn *conn)
{
    sgi_ready_queue_add(conn->engine, &due_by_feed->ready);
}

/* Answers only when the host dispatches, after several turns of the loop. */
static void answer_it(event *e)
{
    sgi_conn *conn = e->user;
    fake_conn_want(conn, true);
    threads_until_asleep(e->r);
    assert_false(fake_conn_is_detached(conn));
    fake_conn_send(conn, "answer\n", 7);
}

/* Sends a question and the end of input before the host dispatches; returns the answer's
 * bytes. */
static ssize_t ask_and_end(void (*body)(event *), char *got, size_t size)
{
    threads_rig r;
    event e;
    int fds[2];
    segue_transport *near;
    threads_begin_with(&r, &threads_standing);
    event_prepare(&r, &e, 1, body);
    due_by_feed = &e;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(r.rt, fds[0], fds[0], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    conn->on_feed = queue_due;
    e.user = conn;
    fake_conn_attach(conn);
    assert_int_equal(write(fds[1], "question\n", 9), 9);
    shutdown(fds[1], SHUT_WR);
    threads_until_awaiting_quiet(&r);
    threads_until_asleep(&r);
    assert_int_equal(sgi_runtime_dispatch(r.rt, -1, 0, NULL), SEGUE_OK);
    ssize_t len = recv(fds[1], got, size, 0);
    while (!fake_conn_is_detached(conn))
        threads_pause();
    threads_end(&r);
    fake_conn_free(conn);
    close(fds[1]);
    return len;
}

static void the_end_of_input_waits_for_the_host(void **state)
{
    char got[16];
    (void)state;
    assert_int_equal(ask_and_end(answer_it, got, sizeof got), 7);
}

static void the_end_of_input_comes_when_nobody_answers(void **state)
{
    char got[16];
    (void)state;
    assert_int_equal(ask_and_end(NULL, got, sizeof got), 0);
}

static void the_io_thread_takes_no_signals(void **state)
{
    threads_rig r;
    int fds[2];
    segue_transport *near;
    (void)state;
    signal(SIGPIPE, SIG_DFL); /* with the default disposition a SIGPIPE would end the
                               * test */
    threads_begin(&r);
    assert_int_equal(pipe(fds), 0);
    int unused = dup(fds[0]); /* the transport's input */
    close(fds[0]);
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_fds(r.rt, unused, fds[1], &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    fake_conn_attach(conn);
    fake_conn_send(conn, "into the void\n", 14);
    while (!fake_conn_is_detached(conn))
        threads_pause();
    threads_end(&r);
    fake_conn_free(conn);
}

/* A custom transport that counts what is sent; several threads feed it. */
typedef struct feeder {
    segue_transport *transport;
    sem_t started;
    atomic_size_t sent;
} feeder;

static void feeder_start(void *self, segue_transport *transport)
{
    feeder *f = self;
    f->transport = transport;
    sem_post(&f->started);
}

static size_t feeder_send(void *self, const char *bytes, size_t len)
{
    (void)bytes;
    atomic_fetch_add(&((feeder *)self)->sent, len);
    return len;
}

static void feeder_close(void *self)
{
    sgi_transport_closed(((feeder *)self)->transport);
}

#define FEEDS 2000

static void *feed_it(void *user)
{
    feeder *f = user;
    for (int i = 0; i < FEEDS; i++)
        while (sgi_transport_feed(f->transport, "0123456789\n", 11) != SEGUE_OK)
            threads_pause();
    return NULL;
}

static void a_custom_transport_is_fed_by_several_threads(void **state)
{
    threads_rig r;
    feeder f = {0};
    pthread_t threads[3];
    segue_transport *near;
    segue_transport_vtable vtable = {.struct_size = sizeof vtable,
                                     .start = feeder_start,
                                     .send = feeder_send,
                                     .close = feeder_close};
    (void)state;
    threads_begin(&r);
    sem_init(&f.started, 0, 0);
    assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
    assert_int_equal(sgi_transport_custom(r.rt, &vtable, &f, &near), SEGUE_OK);
    sgi_conn *conn = fake_conn_new(r.rt, near);
    conn->echo = true;
    fake_conn_attach(conn);
    sem_wait(&f.started);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, feed_it, &f);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    while (received(conn) < 3 * FEEDS * 11 || f.sent < 3 * FEEDS * 11)
        threads_pause();
    assert_int_equal(received(conn), 3 * FEEDS * 11);
    fake_conn_close(conn);
    while (!fake_conn_is_detached(conn))
        threads_pause();
    threads_end(&r);
    fake_conn_free(conn);
    sem_destroy(&f.started);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_of_the_hosts_thread_is_written),
        cmocka_unit_test(the_end_of_input_waits_for_the_host),
        cmocka_unit_test(the_end_of_input_comes_when_nobody_answers),
        cmocka_unit_test(the_io_thread_takes_no_signals),
        cmocka_unit_test(a_custom_transport_is_fed_by_several_threads),
    };
    return cmocka_run_group_tests_name("threads_transport", tests, NULL, NULL);
}
