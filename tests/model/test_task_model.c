/* AS-115 without randomness: every interleaving, up to a depth, of what can happen to a
 * task (race_world.h), with the real engine. race_judge.c has the checks.
 *
 *     SEGUE_DEPTH=<n>      this depth, instead of the one that CI has time for
 *     SEGUE_MINUTES=<n>    as deep as this time allows, shared by the rows
 *     SEGUE_COMPARE=<n>    this depth without merging
 *     SEGUE_PATH="..."     only this path, as a failure prints it; with SEGUE_ROW=<name>
 *
 * It has a directory of its own. It is no scenario, because no order of events is written
 * down, and no unit test, because it runs the engine of both sides. */
#include "support/race_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* One of everything that a side decides; two segments, so that they have an order. */
#define BUDGET                                                                           \
    {                                                                                    \
        [RACE_SEND] = 2, [RACE_ASK] = 1, [RACE_COMPLETE] = 1, [RACE_IS_ERROR] = 1,       \
        [RACE_FAIL] = 1, [RACE_GIVE_UP] = 1, [RACE_CANCEL] = 1, [RACE_ANSWER] = 1,       \
        [RACE_OTHER_GET] = 1, [RACE_OTHER_CANCEL] = 1, [RACE_OTHER_WATCH] = 1,           \
        [RACE_TICK] = 2, [RACE_CRASH] = 1, [RACE_CRASH_LATE] = 1, [RACE_RESTART] = 1,    \
    }
#define BUDGET_REFUSED                                                                   \
    {                                                                                    \
        [RACE_SEND] = 1, [RACE_COMPLETE] = 1, [RACE_FAIL] = 1, [RACE_CANCEL] = 1,        \
        [RACE_OTHER_GET] = 1, [RACE_OTHER_CANCEL] = 1, [RACE_TICK] = 2,                  \
        [RACE_REFUSE] = 1,                                                               \
    }

#define PIECES SEGUE_TOOL_INCREMENTAL
#define AGAIN SEGUE_TOOL_RESTARTABLE
#define ASKED AT_WORK " ask take ack read read" /* and has its question */
#define AT_WORK "take ack serve read" /* the handler runs, its client knows the task */

static const race_row rows[] = {
    {"X", RACE_X, PIECES, "", BUDGET},
    {"X again", RACE_X, PIECES | AGAIN, "", BUDGET},
    {"X refused", RACE_X, PIECES, "", BUDGET_REFUSED},
    {"X at work", RACE_X, PIECES, AT_WORK, BUDGET},
    {"X at work again", RACE_X, PIECES | AGAIN, AT_WORK, BUDGET},
    {"X asked", RACE_X, PIECES | AGAIN, ASKED, BUDGET},
    {"X refused later", RACE_X, PIECES, AT_WORK, BUDGET_REFUSED},
    {"L", RACE_L, PIECES, "", BUDGET},
    {"L at work", RACE_L, PIECES, AT_WORK, BUDGET},
    {"L asked", RACE_L, PIECES, AT_WORK " ask take ack serve read read", BUDGET},
    {"L at work again", RACE_L, AGAIN, AT_WORK, BUDGET},
    {"D", RACE_D, AGAIN, "", BUDGET},
    {"D at work", RACE_D, 0, AT_WORK, BUDGET},
    {"D asked", RACE_D, 0, ASKED " read", BUDGET},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* The depth that CI has time for; a row that starts later has more events to choose
 * from. */
static int short_depth(const race_row *row, int depth)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    depth--;
#endif
    return *row->from ? depth - 2 : depth;
}

static race_world world;
static explorer_world explorer;

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static void explore(const race_row *row, int depth, bool compare)
{
    explorer_limits limits = {.depth = depth, .compare = compare};
    explorer_report report;
    struct timespec from, to;
    int minutes = number_of("SEGUE_MINUTES", 0);
    if (minutes && !compare)
        limits = (explorer_limits){.depth = EXPLORER_DEPTH - 1,
                                   .seconds = minutes * 60 / ROWS};
    race_world_explorer(&world, row, &explorer);
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_true(explorer_run(&explorer, &limits, &report));
    clock_gettime(CLOCK_MONOTONIC, &to);
    print_message("%-16s depth %d%s: %.0f schedules, %llu distinct states, %llu steps, "
                  "%llu ends judged, %.1f s\n",
                  row->name, report.depth, compare ? ", nothing merged" : "",
                  report.schedules, (unsigned long long)report.states,
                  (unsigned long long)report.steps, (unsigned long long)report.judged,
                  (double)(to.tv_sec - from.tv_sec) +
                      (double)(to.tv_nsec - from.tv_nsec) / 1e9);
    if (!limits.seconds)
        assert_int_equal(report.depth, depth);
}

static void every_interleaving(void **state)
{
    const char *path = getenv("SEGUE_PATH"), *name = getenv("SEGUE_ROW");
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        if (name && strcmp(name, rows[i].name) != 0)
            continue;
        race_world_explorer(&world, &rows[i], &explorer);
        if (path)
            assert_true(explorer_replay(&explorer, path));
        else
            explore(&rows[i], number_of("SEGUE_DEPTH", short_depth(&rows[i], 5)), false);
    }
}

static void what_is_merged_goes_on_alike(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        explore(&rows[i], number_of("SEGUE_COMPARE", short_depth(&rows[i], 4)), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"AS-115 every interleaving of cancel, completion, expiry, death and restart",
         every_interleaving, NULL, NULL, NULL},
        {"states that are merged go on alike", what_is_merged_goes_on_alike, NULL, NULL,
         NULL},
    };
    return cmocka_run_group_tests_name("task_model", tests, NULL, NULL);
}
