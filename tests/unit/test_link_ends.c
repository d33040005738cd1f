/* How links end: by the peer, by their owner, in their own events, with the runtime. */
#include "support/link_rig.h"

#include <dirent.h>
#include <sys/socket.h>

#include "support/fake_engine.h"

static void the_end_of_the_peer_is_noticed(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (int variant = 0; variant < 4; variant++) {
            bool by_reset = variant & 1, answering = variant & 2;
            rig r;
            rig_begin(&r, (carriage)how, false);
            peer p = peer_meet_as(&r, (carriage)how, 4 * K);
            owner *o = &r.owners[0];
            for (int i = 0; answering && o->may_write && i < 200; i++)
                WITH_LOCK(&r, o->may_write = sgi_link_write(o->link, rig_pattern(),
                                                            SGI_LINK_WRITE_MAX));
            if (by_reset)
                peer_reset(&p);
            else
                shutdown(p.fd, SHUT_WR);
            RUN_UNTIL(r.rt, o->closes == 1);
            assert_string_equal(o->why, "the peer closed the connection");
            peer_part(&p);
            rig_end(&r);
        }
}

/* A write to a peer that is gone raises no signal; `closed` reports it once. */
static void a_failed_write_is_told_later(void **state)
{
    struct sigaction now, before = {.sa_handler = SIG_DFL};
    (void)state;
    sigaction(SIGPIPE, &before, NULL);
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        rig_begin(&r, (carriage)how, false);
        peer p = peer_meet_as(&r, (carriage)how, 0);
        owner *o = &r.owners[0];
        peer_reset(&p);
        for (int i = 0; i < 3; i++)
            WITH_LOCK(&r, sgi_link_write(o->link, "late", 4));
        assert_int_equal(o->closes, 0);
        RUN_UNTIL(r.rt, o->closes == 1);
        rig_end(&r);
        sigaction(SIGPIPE, NULL, &now);
        assert_true(now.sa_handler == SIG_DFL);
    }
    signal(SIGPIPE, SIG_IGN);
}

/* The peer reads the answer to its last byte, even when its own bytes were not read. */
static void closing_sends_what_was_written(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (int talking = 0; talking < 2; talking++) {
            rig r;
            size_t len = 0;
            rig_begin(&r, (carriage)how, false);
            peer p = peer_meet_as(&r, (carriage)how, 4 * K);
            owner *o = &r.owners[0];
            size_t blocks = r.mem.blocks;
            for (int i = 0; talking && i < 20; i++)
                peer_say(&p, rig_pattern(), 8 * K);
            WITH_LOCK(&r, sgi_link_write(o->link, rig_pattern(), SGI_LINK_WRITE_MAX);
                      sgi_link_close(o->link));
            assert_int_equal(peer_hear_end(&r, &p, &len), 0);
            assert_int_equal(len, SGI_LINK_WRITE_MAX);
            peer_part(&p);
            RUN_UNTIL(r.rt, r.mem.blocks < blocks);
            assert_int_equal(o->closes, 0);
            rig_end(&r);
        }
}

static void a_closed_link_does_not_wait_for_ever(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++)
        for (int flushed = 0; flushed < 2; flushed++) {
            rig r;
            rig_begin(&r, (carriage)how, true);
            peer p = peer_meet_as(&r, (carriage)how, 4 * K);
            owner *o = &r.owners[0];
            size_t blocks = r.mem.blocks;
            for (int i = 0; !flushed && o->may_write && i < 200; i++)
                WITH_LOCK(&r, o->may_write = sgi_link_write(o->link, rig_pattern(),
                                                            SGI_LINK_WRITE_MAX));
            WITH_LOCK(&r, sgi_link_close(o->link));
            r.clock_ms += SGI_LINGER_MS - 1;
            rig_turn(&r);
            rig_turn(&r);
            assert_true(r.mem.blocks >= blocks);
            r.clock_ms += 1;
            /* Space that the system reports late is used, and the link waits for more. */
            RUN_UNTIL(r.rt, r.mem.blocks < blocks || (r.clock_ms += 5, false));
            assert_int_equal(o->closes, 0);
            peer_part(&p);
            rig_end(&r);
        }
}

static void a_slow_reader_gets_its_grace_and_no_more(void **state)
{
    rig r;
    char got[2 * K];
    (void)state;
    rig_begin(&r, TCP, true);
    peer p = peer_meet(&r, 4 * K);
    owner *o = &r.owners[0];
    size_t blocks = r.mem.blocks;
    for (int i = 0; o->may_write && i < 200; i++)
        WITH_LOCK(&r, o->may_write =
                          sgi_link_write(o->link, rig_pattern(), SGI_LINK_WRITE_MAX));
    WITH_LOCK(&r, sgi_link_close(o->link));
    int64_t closed_ms = r.clock_ms;
    while (r.mem.blocks >= blocks) {
        peer_hear(&p, got, sizeof got);
        rig_turn(&r);
        r.clock_ms += 100;
        assert_true(r.clock_ms - closed_ms <= SGI_GRACE_MS + 2 * SGI_LINGER_MS);
    }
    peer_part(&p);
    rig_end(&r);
}

static void aborting_ends_at_once(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        rig_begin(&r, (carriage)how, true);
        peer p = peer_meet_as(&r, (carriage)how, 0);
        owner *o = &r.owners[0];
        size_t blocks = r.mem.blocks;
        WITH_LOCK(&r, sgi_link_abort(o->link));
        assert_true(r.mem.blocks < blocks);
        assert_int_not_equal(peer_hear_end(&r, &p, NULL), NOTHING);
        assert_int_equal(o->closes, 0);
        peer_part(&p);
        rig_end(&r);
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

/* Frees a link in each way, in each event, for each link. */
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
                    continue; /* this link is gone already */
                rig_begin(&r, (carriage)how, false);
                peer a = peer_meet_as(&r, (carriage)how, 4 * K);
                peer b = peer_meet_as(&r, (carriage)how, 4 * K);
                owner *o = &r.owners[0];
                o->other = &r.owners[1];
                size_t blocks = r.mem.blocks;
                *(event == 0   ? &o->on_bytes
                  : event == 1 ? &o->on_writable
                               : &o->on_closed) = ways[way];
                if (event == 1)
                    for (int i = 0; o->may_write && i < 200; i++)
                        WITH_LOCK(&r, o->may_write = sgi_link_write(
                                          o->link, rig_pattern(), SGI_LINK_WRITE_MAX));
                if (event == 0) {
                    peer_say(&a, rig_pattern(), 20 * K);
                    peer_say(&b, "b", 1);
                }
                if (event == 2)
                    peer_part(&a);
                for (int i = 0; i < 2000 && o->link && o->other->link; i++) {
                    if (event == 1)
                        peer_hear(&a, (char[4 * K]){0}, 4 * K);
                    rig_turn(&r);
                }
                assert_true(!o->link || !o->other->link);
                peer_part(&a);
                peer_part(&b);
                RUN_UNTIL(r.rt, r.mem.blocks < blocks && !o->closes + !o->link >= 1);
                rig_end(&r);
            }
}

static void the_end_of_the_runtime_closes_links(void **state)
{
    (void)state;
    for (int how = TCP; how <= TLS; how++) {
        rig r;
        rig_begin(&r, (carriage)how, false);
        peer p = peer_meet_as(&r, (carriage)how, 0);
        rig_end(&r);
        assert_int_equal(r.owners[0].closes, 1);
        assert_string_equal(r.owners[0].why, "the runtime was stopped");
        peer_part(&p);
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

static void many_connections_leave_nothing_behind(void **state)
{
    rig r;
    (void)state;
    rig_begin(&r, TCP, false);
    r.echo = true;
    peer first = peer_meet(&r, 0);
    peer_part(&first);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    int before = open_descriptors();
    size_t live = r.mem.live;
    for (int i = 0; i < 200; i++) {
        peer p = peer_meet(&r, 0);
        owner *o = &r.owners[(r.count - 1) % 8];
        peer_say(&p, "x", 1);
        peer_hear_all(&r, &p, 1);
        if (i % 3 == 0)
            WITH_LOCK(&r, close_own(o));
        peer_part(&p);
        RUN_UNTIL(r.rt, r.mem.live == live);
    }
    assert_int_equal(open_descriptors(), before);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_the_peer_is_noticed),
        cmocka_unit_test(a_failed_write_is_told_later),
        cmocka_unit_test(closing_sends_what_was_written),
        cmocka_unit_test(a_closed_link_does_not_wait_for_ever),
        cmocka_unit_test(a_slow_reader_gets_its_grace_and_no_more),
        cmocka_unit_test(aborting_ends_at_once),
        cmocka_unit_test(links_may_go_in_their_events),
        cmocka_unit_test(the_end_of_the_runtime_closes_links),
        cmocka_unit_test(many_connections_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, rig_files_make, rig_files_remove);
}
