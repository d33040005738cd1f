/* Each case is a made-up text, most of whose lines occur more than once, and what arrived
 * instead. Line numbers of the cases count from 0. */
#include "self_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "plan.h"
#include "verdict.h"

#define LINES 300
#define HUGE_LINES 6000 /* more lines than the comparison aligns */

typedef enum damage { LOSE, DOUBLE, ALTER, SWAP } damage;

typedef struct step {
    damage what;
    size_t line;
} step;

typedef struct test_case {
    const char *name;
    size_t lines;
    size_t lost, duplicated, altered;
    size_t count;
    step steps[3];
} test_case;

static const test_case cases[] = {
    {"nothing done", LINES, 0, 0, 0, 0, {{0}}},
    {"first lost", LINES, 1, 0, 0, 1, {{LOSE, 0}}},
    {"one lost", LINES, 1, 0, 0, 1, {{LOSE, 150}}},
    {"empty line lost", LINES, 1, 0, 0, 1, {{LOSE, 105}}},
    {"last lost", LINES, 1, 0, 0, 1, {{LOSE, LINES - 1}}},
    {"one doubled", LINES, 0, 1, 0, 1, {{DOUBLE, 77}}},
    {"empty line doubled", LINES, 0, 1, 0, 1, {{DOUBLE, 105}}},
    {"last doubled", LINES, 0, 1, 0, 1, {{DOUBLE, LINES - 1}}},
    {"one altered", LINES, 0, 0, 1, 1, {{ALTER, 200}}},
    {"last altered", LINES, 0, 0, 1, 1, {{ALTER, LINES - 1}}},
    {"all three", LINES, 1, 1, 1, 3, {{LOSE, 10}, {DOUBLE, 120}, {ALTER, 290}}},
    {"two lost, far apart", LINES, 2, 0, 0, 2, {{LOSE, 3}, {LOSE, 280}}},
    {"two exchanged", LINES, 0, 0, 2, 1, {{SWAP, 44}}},
    {"altered at both ends of a huge text",
     HUGE_LINES,
     0,
     0,
     2,
     2,
     {{ALTER, 1}, {ALTER, HUGE_LINES - 1}}},
};

/* Every seventh line is empty, the others repeat after 50; the last has no newline. */
static size_t make_line(size_t number, size_t count, char *buf, size_t size)
{
    const char *end = number + 1 == count ? "" : "\n";
    if (number % 7 == 0 && number + 1 < count)
        return (size_t)snprintf(buf, size, "%s", end);
    return (size_t)snprintf(buf, size, "line %zu%s", number % 50, end);
}

/* The fate of a line: how often it arrives, and as which line. */
static size_t arrive(const test_case *test, size_t number, char *buf, size_t size)
{
    size_t len = make_line(number, test->lines, buf, size);
    for (size_t i = 0; i < test->count; i++) {
        const step *s = &test->steps[i];
        if (s->what == SWAP && (number == s->line || number == s->line + 1))
            return make_line(2 * s->line + 1 - number, test->lines, buf, size);
        if (s->line != number)
            continue;
        if (s->what == LOSE)
            return 0;
        if (s->what == ALTER)
            buf[0] = '#';
        if (s->what == DOUBLE) {
            buf[len] = '\n'; /* the last line gets a newline when it is repeated */
            size_t first = buf[len - 1] == '\n' ? len : len + 1;
            return first + make_line(number, test->lines, buf + first, size - first);
        }
    }
    return len;
}

static bool make_texts(const test_case *test, text *sent, text *arrived)
{
    char *to = malloc(test->lines * 16), *from = malloc(test->lines * 16 + 64);
    size_t to_len = 0, from_len = 0;
    char buf[64];
    bool ok = to && from;
    for (size_t i = 0; ok && i < test->lines; i++) {
        size_t len = make_line(i, test->lines, buf, sizeof buf);
        memcpy(to + to_len, buf, len);
        to_len += len;
        len = arrive(test, i, buf, sizeof buf);
        memcpy(from + from_len, buf, len);
        from_len += len;
    }
    ok = ok && text_copy(sent, to, to_len);
    if (ok && !text_copy(arrived, from, from_len)) {
        text_free(sent);
        ok = false;
    }
    free(to);
    free(from);
    return ok;
}

static bool check(const test_case *test)
{
    const totals enough = {
        .http = true, .cuts = 5, .server_kills = 2, .client_restarts = 1};
    text sent, arrived;
    comparison found;
    if (!make_texts(test, &sent, &arrived))
        return false;
    bool ok = compare_texts(&sent, &arrived, &found);
    text_free(&sent);
    text_free(&arrived);
    bool damaged = test->count > 0;
    printf("%s: ", test->name);
    int status = verdict(&found, &enough);
    ok = ok && found.lost == test->lost && found.duplicated == test->duplicated &&
         found.altered == test->altered && found.same_bytes == !damaged &&
         (status != 0) == damaged;
    if (!ok)
        printf("  expected %zu lost, %zu duplicated, %zu altered\n", test->lost,
               test->duplicated, test->altered);
    return ok;
}

/* A faultless text proves nothing when no process was killed and nothing was cut. */
static bool check_counts(void)
{
    const comparison good = {.segments = 1, .same_bytes = true};
    const totals few[] = {{true, 5, 1, 1}, {true, 5, 2, 0},  {true, 4, 2, 1},
                          {true, 0, 0, 0}, {false, 0, 1, 1}, {false, 0, 2, 0}};
    const totals enough = {.server_kills = 2, .client_restarts = 1};
    bool ok = true;
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        printf("too few kills or cuts: ");
        ok = verdict(&good, &few[i]) != 0 && ok;
    }
    printf("enough for stdio: ");
    return verdict(&good, &enough) == 0 && ok;
}

/* Checks a machine on which all allowed lines arrive before the next step is done. */
static bool all_steps_come(uint64_t seed, size_t lines, bool cuts)
{
    plan p;
    size_t let = 0, cut_from = 0;
    plan_make(&p, &seed, lines, cuts);
    while (p.next < p.count) {
        const plan_step *next = &p.steps[p.next];
        size_t now = plan_gate(&p, let, lines), before = let;
        let = now > let ? now : let;
        if (let >= lines)
            return false; /* the text is over */
        if (let < next->at) {
            if (let == before)
                return false; /* the number of segments is never reached */
            cut_from = let;
        } else if (next->what != CUT || let + 1 == lines || let - cut_from > lines / 20) {
            p.next++;
            cut_from = let;
        } else if (let == before) {
            return false;
        }
    }
    return plan_gate(&p, let, lines) == lines;
}

static bool check_plans(void)
{
    static const size_t lines[] = {1, 2, 3, 10, 202, 674, 100000};
    bool ok = true;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (uint64_t seed = 0; seed < 200; seed++)
            ok = ok && all_steps_come(seed, lines[i], seed % 2);
    printf("the text waits for all steps: %s\n", ok ? "ok" : "FAILED");
    return ok;
}

int self_test_run(void)
{
    size_t count = sizeof cases / sizeof *cases, wrong = !check_counts();
    wrong += !check_plans();
    for (size_t i = 0; i < count; i++)
        wrong += !check(&cases[i]);
    printf("self-test %s: %zu cases, %zu wrong\n", wrong ? "FAILED" : "ok", count + 2,
           wrong);
    return wrong ? 1 : 0;
}
