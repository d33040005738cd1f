/* SEP-1905, segments by number: tasks/result with lastSeqNr (core/docs/requirements.md
 * 1.7), what is refused, and what a restart leaves. */
#include "support/fault_store.h"
#include "support/legacy_wire.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define STREAMING "{\"responseModes\":[\"streaming\"]}"

/* Makes a story a task; pushed segments are ignored. */
static const char *begin(wire *c, const char *id, const char *arguments)
{
    return legacy_make_task(c, id, "story", arguments, STREAMING);
}

static const char *fetch(wire *c, const char *id, const char *task, const char *last)
{
    char more[64];
    snprintf(more, sizeof more, "\"lastSeqNr\":%s", last);
    return legacy_task(c, id, "tasks/result", task, more);
}

static void assert_fetched(const char *r, int from, int to, int complete)
{
    char path[64], number[16];
    for (int i = 0; from + i <= to; i++) {
        snprintf(path, sizeof path, "result.partial-content.%d.seqNr", i);
        snprintf(number, sizeof number, "%d", from + i);
        assert_at(r, path, number);
    }
    snprintf(path, sizeof path, "result.partial-content.%d", to - from + 1);
    assert_at(r, path, "");
    assert_true(*json_at(r, "result.partial-content"));
    assert_at(r, "result.isComplete", complete ? "true" : "false");
    assert_at(r, "result.isError", "false");
    assert_non_null(strstr(r, "io.modelcontextprotocol/related-task"));
}

static void bad_numbers(world *w)
{
    static const char *const bad[] = {
        "0", "-1", "1.5", "\"3\"", "null", "true", "1e300", "[1]", "9007199254740992",
        "-0"};
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task = begin(c, "1", "\"n\":5");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_code(fetch(c, "2", task, bad[i]), -32602);
    legacy_get_until(c, task, "completed");
    assert_fetched(fetch(c, "3", task, "2.0"), 3, 5, 1);
    assert_fetched(fetch(c, "4", task, "2e0"), 3, 5, 1);
    assert_fetched(fetch(c, "5", task, "9007199254740991"), 1, 0, 1);
}

static void at_and_behind_the_end(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task = begin(c, "1", "\"n\":6,\"delayMs\":1000");
    if (w->place != WORLD_STDIO) {
        world_advance(w, 4500);
        assert_fetched(fetch(c, "2", task, "2"), 3, 5, 0);
        assert_fetched(fetch(c, "3", task, "5"), 6, 5, 0);
        assert_fetched(fetch(c, "4", task, "7"), 8, 7, 0);
        assert_fetched(fetch(c, "5", task, "9007199254740991"), 1, 0, 0);
    }
    task = begin(c, "6", "\"n\":5");
    legacy_get_until(c, task, "completed");
    assert_fetched(fetch(c, "7", task, "1"), 2, 5, 1);
    assert_fetched(fetch(c, "8", task, "5"), 6, 5, 1);
    assert_fetched(fetch(c, "9", task, "7"), 8, 7, 1);
}

/* For a task that does not stream, lastSeqNr has no meaning (R-1905-31). */
static void not_a_stream(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task = legacy_make_task(c, "1", "story", "\"n\":3", NULL);
    const char *r = fetch(c, "2", task, "2");
    assert_true(*json_at(r, "result.content.2"));
    assert_at(r, "result.partial-content", "");
    assert_code(fetch(c, "3", task, "0"), -32602);
}

static void of_somebody_else(world *w)
{
    wire *a = legacy_connect(w, "ada", MODES_ALL);
    wire *b = legacy_connect(w, "bob", MODES_ALL);
    const char *task = begin(a, "1", "\"n\":3");
    char *foreign = strdup(fetch(b, "7", task, "1"));
    assert_code(foreign, -32602);
    assert_string_equal(foreign, fetch(b, "7", "AAAAAAAAAAAAAAAAAAAAAA", "1"));
    free(foreign);
}

static void five_per_second(segue_server_options *options)
{
    options->fetches_per_second = 5;
}

static void too_fast(world *w)
{
    wire *a = legacy_connect(w, "ada", MODES_ALL);
    wire *b = legacy_connect(w, "bob", MODES_ALL);
    const char *task = begin(a, "1", "\"n\":3");
    const char *other = begin(b, "1", "\"n\":3");
    legacy_get_until(a, task, "completed");
    legacy_get_until(b, other, "completed");
    for (int i = 0; i < 5; i++)
        assert_fetched(fetch(a, "2", task, "1"), 2, 3, 1);
    const char *r = fetch(a, "3", task, "1");
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"rate_limited\"");
    int wait_ms = atoi(json_at(r, "error.data.retryAfterMs"));
    assert_true(wait_ms > 0 && wait_ms <= 201);
    /* the limit does not concern this principal */
    assert_fetched(fetch(b, "4", other, "1"), 2, 3, 1);
    assert_at(legacy_task(a, "5", "tasks/get", task, NULL), "result.status",
              "\"completed\"");
    world_jump(w, wait_ms);
    assert_fetched(fetch(a, "6", task, "1"), 2, 3, 1);
}

static void from_start(segue_server_options *options)
{
    options->draft_ways = SEGUE_WAY_FROM_START;
}

static void from_the_first(world *w)
{
    static const char first[] = "\"_meta\":{\"dev.segue/fromSeqNr\":1}";
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task = begin(c, "1", "\"n\":3,\"delayMs\":1000");
    assert_fetched(legacy_task(c, "2", "tasks/result", task, first), 1, 1, 0);
    world_advance(w, 5000);
    assert_fetched(legacy_task(c, "3", "tasks/result", task, first), 1, 3, 1);
}

static void not_from_the_first(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task = begin(c, "1", "\"n\":3,\"delayMs\":20");
    legacy_ask_about(c, "2", "tasks/result", task,
                     "\"_meta\":{\"dev.segue/fromSeqNr\":1}");
    world_advance(w, 200);
    /* the request waited */
    assert_true(*json_at(wire_response(c, "2"), "result.content.2"));
}

/* The result of a failed task is the error alone, so the client asks for the segments
 * from the first one on. That works at the end without the switch, and in a new
 * session. */
static void from_the_first_at_the_end(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    char task[64];
    snprintf(task, sizeof task, "%s", begin(c, "1", "\"n\":3,\"delayMs\":20"));
    world_advance(w, 200);
    legacy_get_until(c, task, "completed");
    c = legacy_connect(w, NULL, MODES_ALL);
    assert_fetched(legacy_task(c, "2", "tasks/result", task,
                               "\"_meta\":{\"dev.segue/fromSeqNr\":1}"),
                   1, 3, 1);
}

/* More than one response can hold: the client asks again for the rest. */
static void in_several_fetches(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task = begin(c, "1", "\"n\":2000,\"chunk\":3500");
    char last[16] = "1", path[64];
    int fetches = 0, done = 0;
    legacy_get_until(c, task, "completed");
    while (!done) {
        const char *r = fetch(c, "2", task, last);
        int count = 0;
        for (;; count++) {
            snprintf(path, sizeof path, "result.partial-content.%d.seqNr", count);
            if (count && count % 100)
                continue; /* only some are tried */
            if (!*json_at(r, path))
                break;
            assert_int_equal(atoi(json_at(r, path)), atoi(last) + 1 + count);
        }
        while (count &&
               (snprintf(path, sizeof path, "result.partial-content.%d.seqNr", count - 1),
                !*json_at(r, path)))
            count--;
        snprintf(last, sizeof last, "%d", atoi(last) + count);
        done = !strcmp(json_at(r, "result.isComplete"), "true");
        fetches++;
    }
    assert_string_equal(last, "2000");
    assert_int_equal(fetches, 2);
}

/* ---- a trimmed log ---- */

static fault_store *faults;

static void with_faults(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-segments");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
}

static void segments_gone(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    const char *task = begin(c, "1", "\"n\":100,\"delayMs\":1,\"chunk\":3000");
    wire_notify(c, "notifications/cancelled", "\"requestId\":1");
    world_advance(w, 50);
    fault_store_trim(faults, 9);
    const char *r = fetch(c, "2", task, "3");
    assert_code(r, -32603);
    assert_at(r, "error.data.reason", "\"segments_gone\"");
    assert_at(r, "error.data.earliestSeqNr", "10");
    r = fetch(c, "3", task, "9"); /* the first segment asked for is the first one kept */
    assert_at(r, "result.partial-content.0.seqNr", "10");
    world_advance(w, 200);
    /* The remaining segments are not returned as the whole result. */
    assert_code(legacy_task(c, "4", "tasks/result", task, NULL), -32603);
}

/* ---- a restart ---- */

static void same_after_a_restart(world *w)
{
    wire *c = legacy_connect(w, NULL, MODES_ALL);
    char task[64];
    snprintf(task, sizeof task, "%s", begin(c, "1", "\"n\":8,\"delayMs\":20"));
    world_advance(w, 70);
    while (!strstr(wire_history(c), "\"seqNr\":3,"))
        wire_response(c, "1"); /* pushed segments can be fetched */
    const char *r = fetch(c, "3", task, "1");
    assert_true(*json_at(r, "result.partial-content.1"));
    char *before = strdup(json_at(r, "result.partial-content"));
    world_restart(w);
    c = legacy_connect(w, NULL, MODES_ALL);
    legacy_get_until(c, task, "completed"); /* the task ran again from where it stopped */
    r = fetch(c, "4", task, "1");
    assert_fetched(r, 2, 8, 1);
    before[strlen(before) - 1] = 0; /* the same bytes, and more behind them */
    assert_non_null(strstr(r, before));
    free(before);
}

static const scenario scenarios[] = {
    {"AS-18 invalid numbers", bad_numbers, 0, NULL},
    {"AS-19 a fetch at the end and behind it", at_and_behind_the_end, 0, NULL},
    {"AS-6 a task that does not stream ignores the number", not_a_stream, ONE_DRIVE,
     NULL},
    {"AS-30 the segments of others are answered like unknown ones", of_somebody_else,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-6 R-1905-55 a client that fetches too fast must wait", too_fast,
     ONLY_HERE | ONE_DRIVE, five_per_second},
    {"AS-6 from the first one, where that is switched on", from_the_first,
     ONLY_HERE | ONE_DRIVE, from_start},
    {"AS-6 segments are not fetched from the first one where that is switched off",
     not_from_the_first, ONE_DRIVE, NULL},
    {"AS-6 segments are fetched from the first one when the task has ended",
     from_the_first_at_the_end, ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-6 more segments than one response can hold", in_several_fetches,
     ONLY_HERE | ONE_DRIVE, NULL},
    {"AS-113 a number has the same bytes after a restart", same_after_a_restart,
     ONLY_SQLITE | ONE_DRIVE, NULL},
};

static const scenario trimmed[] = {
    {"AS-20 a trimmed log says where it begins", segments_gone, ONLY_HERE | ONE_DRIVE,
     NULL},
};

int main(void)
{
    int failed = scenarios_run(scenarios, sizeof scenarios / sizeof *scenarios);
    return failed + scenarios_run_prepared(trimmed, 1, with_faults);
}
