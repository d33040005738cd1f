/* Output that the sending thread writes itself while the loop waits, and output that cork
 * holds back. The clock stands still, so that no timer ends a wait.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fake_engine_body.h"
#include "support/threads_rig.h"

#define LARGE ((size_t)300 * 1024)

typedef struct rig {
    threads_rig r;
    sgi_conn *conn;
    int in; /* the peer's socket, from which the test reads */
    int out;
} rig;

static bool is_asleep(rig *g)
{
    sgi_runtime_lock(g->r.rt);
    bool asleep = g->r.rt->loop.asleep;
    sgi_runtime_unlock(g->r.rt);
    return asleep;
}

static void begin(rig *g, bool sockets)
{
    int there[2], back[2];
    segue_transport *near;
    threads_begin_with(&g->r, &threads_standing);
    assert_int_equal(sgi_runtime_start(g->r.rt), SEGUE_OK);
    if (sockets) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, there), 0);
        back[0] = there[0];
        g->in = g->out = there[1];
        assert_int_equal(sgi_transport_fds(g->r.rt, there[0], there[0], &near), SEGUE_OK);
    } else {
        assert_int_equal(pipe(there), 0);
        assert_int_equal(pipe(back), 0);
        g->in = there[0];
        g->out = back[1];
        assert_int_equal(sgi_transport_fds(g->r.rt, back[0], there[1], &near), SEGUE_OK);
    }
    g->conn = fake_conn_new(g->r.rt, near);
    fake_conn_attach(g->conn);
    threads_until_asleep(&g->r);
}

static void end(rig *g)
{
    close(g->out);
    while (!fake_conn_is_detached(g->conn))
        threads_pause();
    threads_end(&g->r);
    fake_conn_free(g->conn);
    if (g->in >= 0 && g->in != g->out)
        close(g->in);
}

static void read_all(rig *g, char *to, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t got = read(g->in, to + at, len - at);
        assert_true(got > 0);
        at += (size_t)got;
    }
}

static void written_without_the_loop(bool sockets)
{
    char got[64];
    rig g;
    begin(&g, sockets);
    for (int i = 0; i < 100; i++) {
        fake_conn_send(g.conn, "a message\n", 10);
        assert_true(threads_readable(g.in)); /* the message was written before the send
                                              * returned */
        assert_true(is_asleep(&g));
        assert_int_equal(read(g.in, got, sizeof got), 10);
    }
    end(&g);
}

static void a_message_on_a_pipe_is_written_by_who_sends_it(void **state)
{
    (void)state;
    written_without_the_loop(false);
}

static void a_message_on_a_socket_is_written_by_who_sends_it(void **state)
{
    (void)state;
    written_without_the_loop(true);
}

static void corked_messages_leave_in_one_write(void **state)
{
    char got[4096];
    rig g;
    (void)state;
    begin(&g, false);
    assert_int_equal(sgi_runtime_cork(g.r.rt), SEGUE_OK);
    assert_int_equal(sgi_runtime_cork(g.r.rt), SEGUE_OK);
    for (int i = 0; i < 100; i++)
        fake_conn_send(g.conn, "a message\n", 10);
    assert_int_equal(sgi_runtime_uncork(g.r.rt), SEGUE_OK);
    assert_false(threads_readable(g.in));
    assert_int_equal(sgi_runtime_uncork(g.r.rt), SEGUE_OK);
    assert_int_equal(read(g.in, got, sizeof got), 1000);
    assert_true(is_asleep(&g));
    assert_int_equal(sgi_runtime_uncork(g.r.rt), SEGUE_E_STATE);
    end(&g);
}

/* Cork does not hold back the end of a conversation, which the loop handles. */
static void a_cork_does_not_keep_a_conversation_open(void **state)
{
    char got[64];
    rig g;
    (void)state;
    begin(&g, false);
    assert_int_equal(sgi_runtime_cork(g.r.rt), SEGUE_OK);
    fake_conn_send(g.conn, "a message\n", 10);
    fake_conn_close(g.conn);
    while (!fake_conn_is_detached(g.conn))
        threads_pause();
    assert_int_equal(read(g.in, got, sizeof got), 10);
    assert_int_equal(read(g.in, got, sizeof got), 0);
    end(&g);
}

static void freeing_a_corked_runtime_writes_what_is_left(void **state)
{
    char got[64];
    rig g;
    (void)state;
    begin(&g, false);
    assert_int_equal(sgi_runtime_cork(g.r.rt), SEGUE_OK);
    fake_conn_send(g.conn, "a message\n", 10);
    threads_end(&g.r);
    assert_int_equal(read(g.in, got, sizeof got), 10);
    close(g.in);
    close(g.out);
    fake_conn_free(g.conn);
}

static bool written_by_sender(rig *g)
{
    char got[10];
    threads_until_asleep(&g->r);
    fake_conn_send(g->conn, "a message\n", 10);
    bool written = threads_readable(g->in);
    read_all(g, got, sizeof got);
    return written;
}

static void assert_counted(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != (char)('a' + i % 23))
            fail_msg("byte %zu is not the one that was sent", i);
}

/* The sender writes as many bytes as the pipe takes, and the loop writes the rest in
 * order. */
static void what_does_not_fit_is_left_to_the_loop(size_t piece)
{
    char *sent = malloc(LARGE), *got = malloc(LARGE);
    rig g;
    begin(&g, false);
    for (size_t i = 0; i < LARGE; i++)
        sent[i] = (char)('a' + i % 23);
    for (size_t at = 0; at < LARGE; at += piece)
        fake_conn_send(g.conn, sent + at, LARGE - at < piece ? LARGE - at : piece);
    read_all(&g, got, LARGE);
    assert_counted(got, LARGE);
    while (!written_by_sender(&g)) /* When the loop has written the rest, the sender
                                    * writes again. */
        threads_pause();
    end(&g);
    free(sent);
    free(got);
}

static void many_small_messages_fill_a_pipe(void **state)
{
    (void)state;
    what_does_not_fit_is_left_to_the_loop(1000);
}

static void one_message_is_larger_than_a_pipe(void **state)
{
    (void)state;
    what_does_not_fit_is_left_to_the_loop(LARGE);
}

/* The conversation gives its output in parts. */
static void output_in_parts_arrives_whole(void **state)
{
    char got[1000];
    rig g;
    (void)state;
    begin(&g, false);
    g.conn->chunk = 7;
    for (int i = 0; i < 100; i++)
        fake_conn_send(g.conn, "a message\n", 10);
    read_all(&g, got, sizeof got);
    for (int i = 0; i < 100; i++)
        assert_memory_equal(got + i * 10, "a message\n", 10);
    end(&g);
}

/* With the default disposition a SIGPIPE would end the test. */
static void who_sends_to_a_peer_that_has_gone_gets_no_signal(void **state)
{
    rig g;
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    begin(&g, false);
    close(g.in);
    g.in = -1;
    fake_conn_send(g.conn, "a message\n", 10);
    while (!fake_conn_is_detached(g.conn))
        threads_pause();
    end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_on_a_pipe_is_written_by_who_sends_it),
        cmocka_unit_test(a_message_on_a_socket_is_written_by_who_sends_it),
        cmocka_unit_test(corked_messages_leave_in_one_write),
        cmocka_unit_test(a_cork_does_not_keep_a_conversation_open),
        cmocka_unit_test(freeing_a_corked_runtime_writes_what_is_left),
        cmocka_unit_test(many_small_messages_fill_a_pipe),
        cmocka_unit_test(one_message_is_larger_than_a_pipe),
        cmocka_unit_test(output_in_parts_arrives_whole),
        cmocka_unit_test(who_sends_to_a_peer_that_has_gone_gets_no_signal),
    };
    return cmocka_run_group_tests_name("threads_flush", tests, NULL, NULL);
}
