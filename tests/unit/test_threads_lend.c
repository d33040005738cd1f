/* Lent input: the thread that dispatches reads it while the loop sleeps. The runtime
 * takes the input back only when asked, unless a test sets a short patience.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/inlet.h"
#include "support/fake_engine_body.h"
#include "support/threads_rig.h"

#define AT_ONCE 16 /* inlets that one dispatch reads */
#define CALM_READS 8
#define SMALL "a message\n"

/* A conversation on pipes whose other ends belong to the test. */
typedef struct line {
    sgi_conn *conn;
    int in;
    int out;
} line;

typedef struct rig {
    threads_rig r;
    line one;
    int32_t fd; /* the descriptor that an application waits on */
} rig;

static void open_line(threads_rig *r, line *l)
{
    int there[2], back[2];
    segue_transport *near;
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    l->in = there[0];
    l->out = back[1];
    assert_int_equal(sgi_transport_fds(r->rt, back[0], there[1], &near), SEGUE_OK);
    l->conn = fake_conn_new(r->rt, near);
    fake_conn_attach(l->conn);
}

static void until_detached(line *l)
{
    while (!fake_conn_is_detached(l->conn))
        threads_pause();
}

static void forget_line(line *l)
{
    fake_conn_free(l->conn);
    close(l->in);
    if (l->out >= 0)
        close(l->out);
}

static void begin_with(rig *g, const segue_hooks *hooks)
{
    threads_begin_lending(&g->r, hooks);
    assert_int_equal(sgi_runtime_fd(g->r.rt, &g->fd), SEGUE_OK);
    open_line(&g->r, &g->one);
    threads_until_asleep(&g->r);
    threads_until_lent(&g->r);
}

static void begin(rig *g)
{
    begin_with(g, &threads_standing);
}

static void end(rig *g)
{
    threads_end(&g->r);
    forget_line(&g->one);
}

static bool is_asleep(rig *g)
{
    sgi_runtime_lock(g->r.rt);
    bool asleep = g->r.rt->loop.asleep;
    sgi_runtime_unlock(g->r.rt);
    return asleep;
}

static size_t received(line *l)
{
    sgi_runtime_lock(l->conn->rt);
    size_t len = l->conn->in_len;
    sgi_runtime_unlock(l->conn->rt);
    return len;
}

static void say(line *l, const char *bytes, size_t len)
{
    assert_int_equal(write(l->out, bytes, len), (ssize_t)len);
}

static int32_t dispatch(rig *g)
{
    int32_t ran = 0;
    assert_int_equal(sgi_runtime_dispatch(g->r.rt, 0, 0, &ran), SEGUE_OK);
    return ran;
}

static void until_received(line *l, size_t len)
{
    while (received(l) < len)
        threads_pause();
}

static void who_dispatches_reads(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    for (size_t i = 0; i < 100; i++) {
        assert_false(threads_readable(g.fd));
        say(&g.one, SMALL, 10);
        assert_true(threads_readable(g.fd));
        assert_int_equal(received(&g.one), 10 * i);
        dispatch(&g);
        assert_int_equal(received(&g.one), 10 * (i + 1));
        assert_true(is_asleep(&g));
    }
    assert_int_equal(atomic_load(&g.r.woken), 0);
    end(&g);
}

static void messages_come_byte_by_byte(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    for (size_t i = 0; i < 10; i++) {
        say(&g.one, SMALL + i, 1);
        dispatch(&g);
    }
    assert_int_equal(g.one.conn->in.len, 10);
    assert_memory_equal(g.one.conn->in.p, SMALL, 10);
    end(&g);
}

static void an_answer_leaves_before_dispatch_returns(void **state)
{
    char got[64];
    rig g;
    (void)state;
    begin(&g);
    g.one.conn->echo = true;
    for (int i = 0; i < 100; i++) {
        say(&g.one, SMALL, 10);
        dispatch(&g);
        assert_true(threads_readable(g.one.in));
        assert_int_equal(read(g.one.in, got, sizeof got), 10);
        assert_true(is_asleep(&g));
    }
    end(&g);
}

static event told;

static void queue_told(sgi_conn *conn)
{
    told.left++;
    sgi_ready_queue_add(conn->engine, &told.ready);
}

/* Input causes a callback in the same dispatch, and no thread is woken. */
static void callbacks_run_in_the_dispatch_that_read(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    event_prepare(&g.r, &told, 0, NULL);
    g.one.conn->on_feed = queue_told;
    for (int i = 0; i < 100; i++) {
        say(&g.one, SMALL, 10);
        assert_int_equal(dispatch(&g), 1);
        assert_false(threads_readable(g.fd));
    }
    assert_true(pthread_equal(told.thread, pthread_self()));
    assert_int_equal(atomic_load(&g.r.woken), 0);
    end(&g);
}

static void *say_small(void *user)
{
    say(user, SMALL, 10);
    return NULL;
}

static void a_dispatch_that_waits_is_ended_by_input(void **state)
{
    pthread_t peer;
    int32_t ran = 0;
    rig g;
    (void)state;
    begin(&g);
    event_prepare(&g.r, &told, 0, NULL);
    g.one.conn->on_feed = queue_told;
    assert_int_equal(pthread_create(&peer, NULL, say_small, &g.one), 0);
    assert_int_equal(sgi_runtime_dispatch(g.r.rt, -1, 0, &ran), SEGUE_OK);
    assert_int_equal(ran, 1);
    pthread_join(peer, NULL);
    end(&g);
}

static void want_no_more(sgi_conn *conn)
{
    conn->wants = false;
}

/* The application is not woken by input that a conversation does not want to read. */
static void a_reader_that_is_ahead_pauses_input(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    g.one.conn->on_feed = want_no_more;
    say(&g.one, SMALL, 10);
    dispatch(&g);
    say(&g.one, SMALL, 10);
    assert_false(threads_readable(g.fd));
    dispatch(&g);
    assert_int_equal(received(&g.one), 10);
    fake_conn_want(g.one.conn, true);
    threads_until_asleep(&g.r);
    assert_true(threads_readable(g.fd));
    assert_int_equal(received(&g.one), 10);
    dispatch(&g);
    assert_int_equal(received(&g.one), 20);
    end(&g);
}

static void the_end_of_the_input_is_the_loops(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    say(&g.one, SMALL, 10);
    close(g.one.out);
    g.one.out = -1;
    dispatch(&g);
    assert_int_equal(received(&g.one), 10);
    while (!fake_conn_is_detached(g.one.conn)) {
        dispatch(&g);
        threads_pause();
    }
    assert_false(threads_readable(g.fd));
    end(&g);
}

static void closing_does_not_wait_for_unread_input(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    say(&g.one, SMALL, 10);
    fake_conn_close(g.one.conn);
    until_detached(&g.one);
    assert_false(threads_readable(g.fd));
    dispatch(&g);
    assert_int_equal(received(&g.one), 0);
    end(&g);
}

static void freeing_does_not_wait_for_unread_input(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    say(&g.one, SMALL, 10);
    end(&g);
}

static void a_stopped_runtime_reads_no_more(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    sgi_runtime_stop(g.r.rt);
    say(&g.one, SMALL, 10);
    assert_true(threads_readable(g.fd));
    assert_int_equal(sgi_runtime_dispatch(g.r.rt, 0, 0, NULL), SEGUE_E_CLOSED);
    assert_int_equal(received(&g.one), 0);
    end(&g);
}

/* The I/O thread reads a flood of input until the flood is over. */
static void a_flood_is_the_loops(void **state)
{
    char *much = calloc(1, SGI_FLOOD_SIZE);
    size_t sum = SGI_FLOOD_SIZE;
    rig g;
    (void)state;
    begin(&g);
    say(&g.one, much, SGI_FLOOD_SIZE);
    dispatch(&g);
    assert_int_equal(received(&g.one), sum);
    for (int i = 0; i < CALM_READS; i++) {
        say(&g.one, SMALL, 10);
        until_received(&g.one, sum += 10); /* the loop reads without a dispatch */
    }
    threads_until_asleep(&g.r);
    say(&g.one, SMALL, 10);
    assert_true(threads_readable(g.fd));
    assert_int_equal(received(&g.one), sum);
    dispatch(&g);
    assert_int_equal(received(&g.one), sum + 10);
    end(&g);
    free(much);
}

static void set_patience(rig *g, int64_t ms)
{
    sgi_runtime_lock(g->r.rt);
    g->r.rt->lending.patience_ms = ms;
    sgi_loop_request_turn(g->r.rt);
    sgi_runtime_unlock(g->r.rt);
}

static void the_loop_reads_when_nobody_dispatches(void **state)
{
    rig g;
    (void)state;
    begin(&g);
    say(&g.one, SMALL, 10);
    set_patience(&g, 1);
    until_received(&g.one, 10);
    say(&g.one, SMALL, 10);
    until_received(&g.one, 20);
    set_patience(&g, 3600 * 1000);
    threads_until_lent(&g.r); /* dispatch gets the input again */
    say(&g.one, SMALL, 10);
    assert_int_equal(received(&g.one), 20);
    dispatch(&g);
    assert_int_equal(received(&g.one), 30);
    end(&g);
}

static void one_dispatch_alone_has_nothing_lent(void **state)
{
    rig g;
    (void)state;
    threads_begin_lending(&g.r, &threads_standing);
    open_line(&g.r, &g.one);
    assert_int_equal(sgi_runtime_dispatch(g.r.rt, 0, 0, NULL), SEGUE_OK);
    say(&g.one, SMALL, 10);
    until_received(&g.one, 10);
    end(&g);
}

typedef struct deadline {
    sgi_timer timer;
    line *line;
    size_t received;
    atomic_bool passed;
} deadline;

static void on_deadline(sgi_timer *timer)
{
    deadline *d = SGI_OWNER(timer, deadline, timer);
    d->received = d->line->conn->in_len;
    atomic_store(&d->passed, true);
}

/* The application computes while the answer waits in the pipe. */
static void a_deadline_does_not_overtake_input(void **state)
{
    deadline d = {0};
    rig g;
    (void)state;
    begin_with(&g, NULL);
    d.line = &g.one;
    say(&g.one, SMALL, 10);
    sgi_runtime_lock(g.r.rt);
    sgi_engine_set_timer(g.r.engine, &d.timer, 1, on_deadline);
    sgi_runtime_unlock(g.r.rt);
    while (!atomic_load(&d.passed))
        threads_pause();
    assert_int_equal(d.received, 10);
    end(&g);
}

/* When a dispatch has reached its limit of inlets, the other inlets wait for the next
 * dispatch. */
static void many_conversations_take_turns(void **state)
{
    enum { LINES = 2 * AT_ONCE - 1 };
    line lines[LINES];
    int read_first = 0;
    rig g;
    (void)state;
    begin(&g);
    for (int i = 0; i < LINES; i++)
        open_line(&g.r, &lines[i]);
    threads_until_asleep(&g.r);
    for (int i = 0; i < LINES; i++)
        say(&lines[i], SMALL, 10);
    dispatch(&g);
    for (int i = 0; i < LINES; i++)
        read_first += received(&lines[i]) == 10;
    assert_int_equal(read_first, AT_ONCE);
    assert_true(threads_readable(g.fd));
    dispatch(&g);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(received(&lines[i]), 10);
    assert_false(threads_readable(g.fd));
    end(&g);
    for (int i = 0; i < LINES; i++)
        forget_line(&lines[i]);
}

/* epoll takes no files, so the loop goes on reading them. */
static void a_file_is_not_lent(void **state)
{
    char name[] = "/tmp/segue_lend_XXXXXX";
    int file = mkstemp(name), back[2];
    segue_transport *near;
    rig g;
    (void)state;
    assert_true(file >= 0);
    unlink(name);
    assert_int_equal(write(file, SMALL, 10), 10);
    lseek(file, 0, SEEK_SET);
    begin(&g);
    assert_int_equal(pipe(back), 0);
    assert_int_equal(sgi_transport_fds(g.r.rt, file, back[1], &near), SEGUE_OK);
    line two = {.conn = fake_conn_new(g.r.rt, near), .in = back[0], .out = -1};
    fake_conn_attach(two.conn);
    until_received(&two, 10);
    until_detached(&two);
    forget_line(&two);
    end(&g);
}

/* Dispatch, the loop and the peer run at the same time, with a runtime of short patience:
 * bytes arrive whole and in order. */
static void *say_much(void *user)
{
    char part[64 + 1];
    for (int i = 0; i < 2000; i++) {
        int n = snprintf(part, sizeof part, "%06d%.*s\n", i, i % 50,
                         "..................................................");
        say(user, part, (size_t)n);
    }
    return NULL;
}

static void who_reads_changes_and_nothing_is_lost(void **state)
{
    pthread_t peer;
    size_t at = 0;
    rig g;
    (void)state;
    begin(&g);
    set_patience(&g, 1);
    assert_int_equal(pthread_create(&peer, NULL, say_much, &g.one), 0);
    for (size_t len = 0, want = 2000 * 7 + 40 * 49 * 50 / 2; len < want;) {
        dispatch(&g);
        if (received(&g.one) == len)
            threads_pause();
        len = received(&g.one);
    }
    pthread_join(peer, NULL);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(atoi(g.one.conn->in.p + at), i);
        at += 7 + (size_t)(i % 50);
    }
    assert_int_equal(at, g.one.conn->in.len);
    end(&g);
}

static void without_the_option_the_loop_reads(void **state)
{
    rig g;
    (void)state;
    threads_begin_with(&g.r, &threads_standing);
    assert_int_equal(sgi_runtime_start(g.r.rt), SEGUE_OK);
    open_line(&g.r, &g.one);
    for (size_t i = 0; i < 10; i++) {
        dispatch(&g);
        say(&g.one, SMALL, 10);
        until_received(&g.one, 10 * (i + 1));
    }
    end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_dispatches_reads),
        cmocka_unit_test(messages_come_byte_by_byte),
        cmocka_unit_test(an_answer_leaves_before_dispatch_returns),
        cmocka_unit_test(callbacks_run_in_the_dispatch_that_read),
        cmocka_unit_test(a_dispatch_that_waits_is_ended_by_input),
        cmocka_unit_test(a_reader_that_is_ahead_pauses_input),
        cmocka_unit_test(the_end_of_the_input_is_the_loops),
        cmocka_unit_test(closing_does_not_wait_for_unread_input),
        cmocka_unit_test(freeing_does_not_wait_for_unread_input),
        cmocka_unit_test(a_stopped_runtime_reads_no_more),
        cmocka_unit_test(a_flood_is_the_loops),
        cmocka_unit_test(the_loop_reads_when_nobody_dispatches),
        cmocka_unit_test(one_dispatch_alone_has_nothing_lent),
        cmocka_unit_test(a_deadline_does_not_overtake_input),
        cmocka_unit_test(many_conversations_take_turns),
        cmocka_unit_test(a_file_is_not_lent),
        cmocka_unit_test(who_reads_changes_and_nothing_is_lost),
        cmocka_unit_test(without_the_option_the_loop_reads),
    };
    return cmocka_run_group_tests_name("threads_lend", tests, NULL, NULL);
}
