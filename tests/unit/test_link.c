/* Links: bytes of accepted sockets, plain and with TLS, on the caller's thread and on a
 * thread of the runtime, and their bounds. label: threads */
#include "support/link_rig.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fake_engine.h"

/* ---- bytes ---- */

static void echo_over(carriage how, size_t largest_step)
{
    static const char text[] = "a text that is sent and comes back, whatever its pieces";
    char got[sizeof text] = "";
    rig r;
    rig_begin(&r, how, false);
    r.echo = true;
    peer p = peer_meet_as(&r, how, 0);
    for (size_t at = 0, step; at < sizeof text - 1; at += step) {
        step = largest_step ? largest_step : 1 + (at * 2654435761u >> 7) % 9;
        step = step < sizeof text - 1 - at ? step : sizeof text - 1 - at;
        assert_int_equal(peer_say(&p, text + at, step), step);
        size_t len = 0;
        while (len < step) {
            int n = peer_hear(&p, got + at + len, step - len);
            assert_true(n == NOTHING || n > 0);
            len += n > 0 ? (size_t)n : 0;
            rig_turn(&r);
        }
    }
    assert_string_equal(got, text);
    assert_int_equal(r.owners[0].got, sizeof text - 1);
    peer_part(&p);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    rig_end(&r);
}

static void what_is_sent_comes_back(void **state)
{
    static const size_t steps[] = {1000, 1, 0};
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            echo_over((carriage)how, steps[i]);
}

/* Each write has the largest size, and the next write follows as soon as it may. */
static void push(owner *o)
{
    while (o->may_write && o->got > 0) {
        o->got--; /* the peer's bytes say how many writes it wants */
        o->may_write = sgi_link_write(o->link, rig_pattern(), SGI_LINK_WRITE_MAX);
    }
}

static void the_largest_write_arrives_whole(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        unsigned sum = 0;
        rig_begin(&r, (carriage)how, false);
        peer p = peer_meet_as(&r, (carriage)how, 4 * K);
        r.owners[0].on_bytes = r.owners[0].on_writable = push;
        assert_int_equal(peer_say(&p, "twelve bytes", 12), 12);
        for (int i = 0; i < 12; i++)
            sum = rig_sum(sum, rig_pattern(), SGI_LINK_WRITE_MAX);
        assert_int_equal(peer_hear_all(&r, &p, 12 * SGI_LINK_WRITE_MAX), sum);
        assert_true(r.owners[0].writables > 0);
        peer_part(&p);
        rig_end(&r);
    }
}

/* Input and the end of the connection are noticed while output waits, and the loop does
 * not spin. */
static void a_peer_that_never_reads_costs_bounded_memory(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        rig_begin(&r, (carriage)how, false);
        peer p = peer_meet_as(&r, (carriage)how, 4 * K);
        owner *o = &r.owners[0];
        size_t before = r.mem.live;
        for (int i = 0; i < 1000 && o->may_write; i++)
            WITH_LOCK(&r, o->may_write =
                              sgi_link_write(o->link, rig_pattern(), SGI_LINK_WRITE_MAX));
        assert_false(o->may_write);
        assert_true(r.mem.live - before < 4 * SGI_LINK_WRITE_MAX);
        assert_int_equal(peer_say(&p, "more", 4), 4);
        RUN_UNTIL(r.rt, o->got == 4);
        unsigned turns = ev_iteration(sgi_runtime_loop(r.rt));
        sgi_runtime_dispatch(r.rt, 50, 0, NULL);
        assert_true(ev_iteration(sgi_runtime_loop(r.rt)) - turns < 20);
        assert_int_equal(o->writables, 0);
        peer_part(&p);
        RUN_UNTIL(r.rt, o->closes == 1);
        rig_end(&r);
    }
}

static void a_write_too_many_ends_the_link(void **state)
{
    rig r;
    (void)state;
    rig_begin(&r, TCP, false);
    peer p = peer_meet(&r, 4 * K);
    owner *o = &r.owners[0];
    for (int i = 0; i < 100 && !o->closes; i++)
        WITH_LOCK(&r, sgi_link_write(o->link, rig_pattern(), SGI_LINK_WRITE_MAX));
    RUN_UNTIL(r.rt, o->closes == 1);
    assert_non_null(strstr(o->why, "writing failed"));
    peer_part(&p);
    rig_end(&r);
}

static void a_write_too_large_for_tls_ends_the_link(void **state)
{
    static char bytes[SGI_TLS_MAX_OUT + 1];
    rig r;
    (void)state;
    rig_begin(&r, TLS, false);
    peer p = peer_meet_as(&r, TLS, 0);
    WITH_LOCK(&r, assert_false(sgi_link_write(r.owners[0].link, bytes, sizeof bytes)));
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    assert_non_null(strstr(r.owners[0].why, "writing failed"));
    peer_part(&p);
    rig_end(&r);
}

static void reading_stops_and_goes_on(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        rig_begin(&r, (carriage)how, false);
        peer p = peer_meet_as(&r, (carriage)how, 0);
        owner *o = &r.owners[0];
        for (int i = 0; i < 20; i++)
            rig_turn(&r); /* tickets and other messages of the handshake */
        WITH_LOCK(&r, sgi_link_set_reading(o->link, false));
        assert_int_equal(peer_say(&p, "wait", 4), 4);
        for (int i = 0; i < 50; i++)
            rig_turn(&r);
        assert_int_equal(o->got, 0);
        WITH_LOCK(&r, sgi_link_set_reading(o->link, true));
        RUN_UNTIL(r.rt, o->got == 4);
        assert_memory_equal(o->first, "wait", 4);
        peer_part(&p);
        rig_end(&r);
    }
}

static void one_event_brings_a_bounded_number_of_bytes(void **state)
{
    rig r;
    size_t sent = 0;
    (void)state;
    rig_begin(&r, TCP, false);
    peer p = peer_meet(&r, 0);
    while (sent < 8 * SGI_LINK_WRITE_MAX) {
        sent += peer_say(&p, rig_pattern(), SGI_LINK_WRITE_MAX);
        rig_turn(&r);
    }
    RUN_UNTIL(r.rt, r.owners[0].got == sent);
    assert_in_range(r.owners[0].largest, 1, SGI_READ_SIZE);
    peer_part(&p);
    rig_end(&r);
}

/* ---- the peer, and limits ---- */

static void a_link_knows_its_peer(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        sgi_link_peer described;
        rig r;
        rig_begin(&r, (carriage)how, false);
        peer p = peer_meet_as(&r, (carriage)how, 0);
        WITH_LOCK(&r, sgi_link_get_peer(r.owners[0].link, &described));
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
        peer_part(&p);
        rig_end(&r);
    }
}

/* A descriptor too large for the tables of libwebsockets is refused. */
static void descriptors_beyond_the_tables_are_refused(void **state)
{
    struct rlimit old, low;
    int fds[2];
    rig r;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){256, old.rlim_max};
    rig_begin(&r, TCP, false);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    peer p = peer_meet(&r, 0); /* this makes the tables */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    int high = fcntl(fds[0], F_DUPFD_CLOEXEC, 256);
    sgi_link *link = NULL;
    WITH_LOCK(&r, assert_int_equal(sgi_link_adopt(r.gate, high, &rig_events, NULL, &link),
                                   SEGUE_E_LIMIT));
    assert_null(link);
    assert_int_equal(fcntl(high, F_GETFD), -1);
    close(fds[0]);
    close(fds[1]);
    peer_part(&p);
    rig_end(&r);
}

/* Each allocation fails once: either the link is refused and its socket closed, or the
 * link ends. */
static void memory_may_run_out(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        bool failed = true;
        for (size_t at = 1; failed; at++) {
            rig r;
            rig_begin(&r, (carriage)how, false);
            r.mem.calls = r.mem.failed = 0;
            r.mem.fail_at = at;
            peer p = peer_meet(&r, 4 * K);
            owner *o = &r.owners[0];
            bool up = true;
            if (how == TLS) {
                peer_begin_tls(&p, &(client_setup){NULL, 0, NULL});
                up = peer_shake_hands(&r, &p);
                for (int i = 0; i < 20; i++)
                    rig_turn(&r);
            }
            for (int i = 0; up && o->link && o->may_write && i < 1000; i++)
                WITH_LOCK(&r, o->may_write = sgi_link_write(o->link, rig_pattern(),
                                                            SGI_LINK_WRITE_MAX));
            failed = r.mem.failed > 0;
            if (failed)
                RUN_UNTIL(r.rt, o->closes);
            else
                assert_int_equal(o->closes, 0);
            r.mem.fail_at = 0;
            peer_part(&p);
            rig_end(&r);
            assert_true(at < 200);
        }
    }
}

/* ---- on a thread of the runtime ---- */

static void links_work_on_the_io_thread(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        char got[4];
        rig_begin(&r, (carriage)how, false);
        r.echo = true;
        assert_int_equal(sgi_runtime_start(r.rt), SEGUE_OK);
        for (int i = 0; i < 8; i++) {
            peer p = {.fd = peer_connect(&r, 0)};
            fcntl(p.fd, F_SETFL, 0);
            if (how == TLS) {
                peer_begin_tls(&p, &(client_setup){NULL, 0, NULL});
                assert_int_equal(SSL_do_handshake(p.ssl), 1);
            }
            assert_int_equal(peer_say(&p, "four", 4), 4);
            assert_int_equal(peer_hear(&p, got, sizeof got), 4);
            if (i % 2)
                peer_part(&p);
            else
                peer_reset(&p);
        }
        sgi_runtime_lock(r.rt);
        sgi_runtime_unlock(r.rt);
        sgi_runtime_stop(r.rt);
        pthread_join(r.rt->dispatch.io_thread, NULL);
        r.rt->dispatch.joinable = false;
        rig_end(&r);
        assert_int_equal(r.echoed, 32);
    }
}

static void *serve_alone(void *user)
{
    (void)user;
    for (int i = 0; i < 10; i++) {
        rig r;
        rig_begin(&r, TCP, false);
        r.echo = true;
        peer p = peer_meet(&r, 0);
        peer_say(&p, "x", 1);
        peer_hear_all(&r, &p, 1);
        peer_part(&p);
        rig_end(&r);
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
        cmocka_unit_test(a_link_knows_its_peer),
        cmocka_unit_test(descriptors_beyond_the_tables_are_refused),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(links_work_on_the_io_thread),
        cmocka_unit_test(runtimes_have_a_guest_each),
    };
    return cmocka_run_group_tests(tests, rig_files_make, rig_files_remove);
}
