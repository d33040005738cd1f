/* One connection of the cutting proxy, on the clock of the test. Packet sockets show
 * where each write began and ended. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/cutting_line.h"

#define TEXT_SIZE 3000
#define PIECES 4096

typedef struct rig {
    cutting_options options;
    cutting_line *line;
    int client, target;
    int64_t now;
    uint64_t moved[2];
} rig;

static void open_at_stage(rig *r, const cutting_options *options, uint64_t number,
                          bool connected)
{
    int up[2], down[2];
    const int kind = SOCK_SEQPACKET | SOCK_NONBLOCK;
    *r = (rig){.options = *options, .now = 1000};
    r->options.room = options->room ? options->room : 64 * 1024;
    assert_int_equal(socketpair(AF_UNIX, kind, 0, up), 0);
    assert_int_equal(socketpair(AF_UNIX, kind, 0, down), 0);
    r->client = up[0];
    r->target = down[0];
    r->line = cutting_line_new(&r->options, number, up[1], down[1], connected, r->now);
    assert_non_null(r->line);
}

static void open_rig(rig *r, const cutting_options *options, uint64_t number)
{
    open_at_stage(r, options, number, true);
}

static void close_rig(rig *r)
{
    cutting_line_free(r->line);
    close(r->client);
    close(r->target);
}

/* Turns until there is nothing to do at this time. Returns the time of the line's next
 * turn. */
static int64_t settle(rig *r)
{
    for (;;) {
        struct pollfd pair[2];
        int64_t at = cutting_line_wants(r->line, pair, r->now);
        int ready = poll(pair, 2, 0);
        if (r->line->stage == LINE_OVER || (ready == 0 && at > r->now))
            return at;
        cutting_line_turn(r->line, pair, r->now, r->moved);
    }
}

/* Takes the packets that arrived. Their bytes must continue the text after offset `at`.
 * Returns the new offset and notes the sizes. */
static size_t collect(int fd, const char *text, size_t at, size_t sizes[PIECES],
                      size_t *count)
{
    char packet[TEXT_SIZE];
    ssize_t got;
    while ((got = recv(fd, packet, sizeof packet, 0)) > 0) {
        assert_memory_equal(packet, text + at, (size_t)got);
        at += (size_t)got;
        sizes[(*count)++] = (size_t)got;
    }
    return at;
}

/* Sends a text in this many parts; returns in how many pieces it arrived. */
static size_t pieces_of(uint64_t seed, uint64_t number, size_t parts,
                        size_t sizes[PIECES])
{
    static char text[TEXT_SIZE];
    const cutting_options options = {.seed = seed, .piece_max = 20};
    rig r;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < TEXT_SIZE; i++)
        text[i] = (char)(i % 251);
    open_rig(&r, &options, number);
    for (size_t i = 0; i < parts; i++) {
        size_t from = TEXT_SIZE * i / parts, to = TEXT_SIZE * (i + 1) / parts;
        assert_int_equal(send(r.client, text + from, to - from, 0), to - from);
        for (size_t before = SIZE_MAX; before != at;) { /* sockets hold few packets, so
                                                         * read in between */
            before = at;
            settle(&r);
            at = collect(r.target, text, at, sizes, &count);
        }
        assert_int_equal(at, to);
    }
    assert_int_equal(r.moved[CUTTING_UP], TEXT_SIZE);
    assert_int_equal(r.moved[CUTTING_DOWN], 0);
    close_rig(&r);
    return count;
}

static void writes_are_split_as_the_seed_says(void **state)
{
    (void)state;
    size_t first[PIECES], again[PIECES], other[PIECES], next[PIECES], most = 0;
    size_t count = pieces_of(7, 0, 1, first);
    for (size_t i = 0; i < count; i++)
        most = first[i] > most ? first[i] : most;
    assert_int_equal(most, 20);
    assert_in_range(count, TEXT_SIZE / 20 + 1, TEXT_SIZE / 5);
    assert_int_equal(pieces_of(7, 0, 1, again), count);
    assert_memory_equal(first, again, count * sizeof *first);
    assert_true(pieces_of(8, 0, 1, other) != count ||
                memcmp(first, other, count * sizeof *first) != 0);
    assert_true(pieces_of(7, 1, 1, next) != count ||
                memcmp(first, next, count * sizeof *first) != 0);
}

/* The arrival of the bytes does not change where pieces end. */
static void ends_of_pieces_do_not_move(void **state)
{
    (void)state;
    static size_t whole[PIECES], torn[PIECES];
    size_t count = pieces_of(7, 0, 1, whole), parts = pieces_of(7, 0, 50, torn);
    size_t end = 0, at = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        end += whole[i];
        while (at < end)
            at += torn[used++];
        assert_int_equal(at, end);
    }
    assert_int_equal(used, parts);
    assert_true(parts > count);
}

static void bytes_wait_before_each_write(void **state)
{
    (void)state;
    const cutting_options options = {.piece_max = 1, .delay_ms = 30};
    size_t sizes[PIECES], count = 0;
    rig r;
    open_rig(&r, &options, 0);
    assert_int_equal(settle(&r), CUTTING_NEVER);
    assert_int_equal(send(r.target, "abc", 3, 0), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(settle(&r), r.now + 30);
        r.now += 29;
        settle(&r);
        assert_int_equal(collect(r.client, "abc", i, sizes, &count), i);
        r.now += 1;
        settle(&r);
        assert_int_equal(collect(r.client, "abc", i, sizes, &count), i + 1);
    }
    assert_int_equal(settle(&r), CUTTING_NEVER);
    close_rig(&r);
}

/* After a FIN cut later bytes are dropped, but not for ever. */
static void patience_after_a_fin_ends(void **state)
{
    (void)state;
    const cutting_options options = {0};
    rig r;
    char byte;
    open_rig(&r, &options, 0);
    assert_true(cutting_line_cut(r.line, CUTTING_FIN, true, r.now));
    assert_false(cutting_line_cut(r.line, CUTTING_FIN, true, r.now));
    int64_t until = settle(&r);
    assert_in_range(until, r.now + 1, r.now + 60000);
    assert_int_equal(recv(r.client, &byte, 1, 0), 0);
    assert_int_equal(recv(r.target, &byte, 1, 0), 0);
    assert_int_equal(send(r.client, "x", 1, MSG_NOSIGNAL), 1);
    r.now = until - 1;
    settle(&r);
    assert_int_equal(r.line->stage, LINE_ENDING);
    assert_int_equal(recv(r.target, &byte, 1, 0), 0);
    r.now = until;
    settle(&r);
    assert_int_equal(r.line->stage, LINE_OVER);
    assert_int_equal(send(r.client, "x", 1, MSG_NOSIGNAL), -1);
    assert_int_equal(errno, EPIPE);
    close_rig(&r);
}

static void ends_at_once_when_both_close_after_a_fin(void **state)
{
    (void)state;
    const cutting_options options = {0};
    rig r;
    open_rig(&r, &options, 0);
    assert_true(cutting_line_cut(r.line, CUTTING_FIN, true, r.now));
    shutdown(r.client, SHUT_WR);
    settle(&r);
    assert_int_equal(r.line->stage, LINE_ENDING);
    shutdown(r.target, SHUT_WR);
    settle(&r);
    assert_int_equal(r.line->stage, LINE_OVER);
    assert_false(cutting_line_cut(r.line, CUTTING_RST, true, r.now));
    close_rig(&r);
}

static void is_silent_until_both_have_closed(void **state)
{
    (void)state;
    const cutting_options options = {0};
    rig r;
    char byte;
    open_rig(&r, &options, 0);
    assert_true(cutting_line_cut(r.line, CUTTING_SILENCE, true, r.now));
    assert_int_equal(send(r.client, "x", 1, 0), 1);
    shutdown(r.client, SHUT_WR);
    assert_int_equal(settle(&r), CUTTING_NEVER);
    assert_int_equal(recv(r.target, &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    shutdown(r.target, SHUT_WR);
    settle(&r);
    assert_int_equal(r.line->stage, LINE_OVER);
    close_rig(&r);
}

/* Bytes that the target sent before its end are still passed on. */
static void a_write_that_fails_ends_both(void **state)
{
    (void)state;
    const cutting_options options = {.piece_max = 1};
    size_t sizes[PIECES], count = 0;
    rig r;
    open_rig(&r, &options, 0);
    assert_int_equal(send(r.target, "abc", 3, 0), 3);
    close(r.target);
    assert_int_equal(send(r.client, "x", 1, 0), 1);
    settle(&r);
    assert_int_equal(collect(r.client, "abc", 0, sizes, &count), 3);
    assert_int_equal(r.line->stage, LINE_OVER);
    assert_int_equal(r.moved[CUTTING_UP], 0);
    r.target = -1;
    close_rig(&r);
}

static void a_reset_shows_while_nothing_is_read(void **state)
{
    (void)state;
    const cutting_options options = {.room = 1};
    struct pollfd pair[2];
    rig r;
    open_rig(&r, &options, 0);
    while (send(r.client, "x", 1, 0) == 1)
        settle(&r);
    cutting_line_wants(r.line, pair, r.now);
    assert_int_equal(pair[CUTTING_UP].events, 0);
    assert_int_equal(send(r.target, "y", 1, 0), 1);
    settle(&r);
    assert_int_equal(r.line->stage, LINE_OPEN);
    close(r.client); /* with one byte that the client has not read */
    settle(&r);
    assert_int_equal(r.line->stage, LINE_OVER);
    r.client = -1;
    close_rig(&r);
}

static void is_cut_on_its_way_to_the_target(void **state)
{
    (void)state;
    const cutting_options options = {0};
    for (int how = CUTTING_FIN; how <= CUTTING_SILENCE; how++) {
        rig r;
        char byte;
        open_at_stage(&r, &options, 0, false);
        assert_true(cutting_line_cut(r.line, (cutting_how)how, true, r.now));
        assert_int_equal(r.line->stage, how == CUTTING_SILENCE ? LINE_SILENT : LINE_OVER);
        assert_int_equal(recv(r.client, &byte, 1, 0), how == CUTTING_SILENCE ? -1 : 0);
        close_rig(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_are_split_as_the_seed_says),
        cmocka_unit_test(ends_of_pieces_do_not_move),
        cmocka_unit_test(bytes_wait_before_each_write),
        cmocka_unit_test(patience_after_a_fin_ends),
        cmocka_unit_test(ends_at_once_when_both_close_after_a_fin),
        cmocka_unit_test(a_write_that_fails_ends_both),
        cmocka_unit_test(a_reset_shows_while_nothing_is_read),
        cmocka_unit_test(is_cut_on_its_way_to_the_target),
        cmocka_unit_test(is_silent_until_both_have_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
