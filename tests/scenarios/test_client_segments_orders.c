/* Segments (SEP-1905) in any order, by any way, with gaps and repeats: the result is the
 * same, and nothing is left behind. */
#include "engine/client/session.h"
#include "support/segment_stage.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define MOST 24

static uint32_t below(kit *k, uint32_t n)
{
    k->chance = k->chance * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(k->chance >> 33) % n;
}

static void write_segments(char *out, size_t size, int from, int to, bool numbered)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = from; i <= to; i++) {
        n += (size_t)snprintf(out + n, size - n, "%s{\"type\":\"text\",\"text\":\"%d\"",
                              i > from ? "," : "", i);
        if (numbered)
            n += (size_t)snprintf(out + n, size - n, ",\"seqNr\":%d", i);
        n += (size_t)snprintf(out + n, size - n, "}");
    }
}

static void say_part(kit *k, const char *to_whom, int from, int to, bool complete)
{
    char list[4096];
    write_segments(list, sizeof list, from, to, true);
    kit_result(k, to_whom, "\"partial-content\":[%s],\"isComplete\":%s", list,
               complete ? "true" : "false");
}

/* Answers all requests correctly, for a task that has ended with `count` segments;
 * sometimes answers with nothing, or an error. */
static void answer_all(kit *k, int count)
{
    const char *line;
    char list[4096];
    while ((line = kit_heard(k))) {
        const char *after = json_at(line, "params.lastSeqNr");
        if (below(k, 8) == 0) {
            kit_error(k, line, -32603, "{\"retryAfterMs\":10}");
        } else if (!strcmp(json_at(line, "method"), "\"tasks/get\"")) {
            kit_result(k, line, TASK_2025("T", "completed"));
        } else if (*after) {
            assert_true(atoi(after) > 0);
            say_part(k, line, atoi(after) + 1, count, true);
        } else {
            write_segments(list, sizeof list, 1, count, false);
            kit_result(k, line, "\"content\":[%s]", list);
        }
    }
}

static void push_somehow(kit *k, const char *call, int count)
{
    uint32_t bad = below(k, 4);
    for (int at = 1; at <= count;) {
        int to = at + (int)below(k, 4);
        if (to > count)
            to = count;
        if (below(k, 8) >= bad)
            say_part(k, call, at, to, false);
        if (below(k, 8) < bad)
            say_part(k, call, 1 + (int)below(k, (uint32_t)count), to, false);
        if (below(k, 8) >= bad) /* otherwise in another order, or never */
            at = to + 1;
        else
            at += 1 + (int)below(k, 3);
    }
    if (below(k, 3)) /* with the last segment: otherwise its loss could not be seen */
        say_part(k, call, count ? count : 1, count, true);
}

static void any_way_gives_the_same_result(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        kit k = {.can_reopen = 1, .chance = seed};
        const char *call;
        char list[4096], content[4200];
        record *r = segments_begin_task(&k, NULL, &call);
        int count = (int)below(&k, MOST);
        push_somehow(&k, call, count);
        if (!r->completed && below(&k, 4) == 0) {
            kit_cut(&k);
            kit_handshake_2025(&k, SERVER_2025_STREAMS);
        }
        for (int i = 0; !r->completed && i < 200; i++) {
            answer_all(&k, count);
            kit_advance(&k, 100);
        }
        write_segments(list, sizeof list, 1, count, false);
        snprintf(content, sizeof content, "[%s]", list);
        assert_int_equal(r->status, SEGUE_OK);
        assert_at(r->result, "content", content);
        assert_int_equal(r->segments, count);
        assert_int_equal(r->last_segment, count);
        assert_int_equal(k.session->in_flight.count, 0);
        kit_end(&k);
    }
}

/* Half of the calls are streamed, half become a task that is never streamed. */
static void ten_thousand_calls_leave_nothing_behind(void **state)
{
    (void)state;
    kit k = {.quiet = 1};
    const char *call;
    size_t live = 0;
    record *r = segments_begin(&k, NULL, &call);
    for (int i = 0; i < 10000; i++) {
        if (i % 2) {
            kit_result(&k, call, CREATED_2025("T"));
            kit_advance(&k, 1200);
            kit_result(&k, kit_expect(&k, "tasks/get"), TASK_2025("T", "completed"));
            kit_result(&k, segments_expect_pull(&k, ""), "\"content\":[" BLOCK("a") "]");
        } else {
            kit_result(&k, call, CREATED_2025("T") "," PART(SEG(1, "a")));
            kit_result(&k, call, LAST(SEG(2, "b")));
        }
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(k.session->in_flight.count, 0);
        record_drop(r);
        if (i == 100)
            live = k.mem.live;
        r = segments_call(&k, NULL, &call);
    }
    assert_in_range(k.mem.live, 0, live + 4096);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("AS-29 any way gives the same result", any_way_gives_the_same_result),
        NAMED("AS-32 10,000 calls leave nothing behind",
              ten_thousand_calls_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
