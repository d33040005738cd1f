/* Selects the places, stores and drives of each scenario. */
#include "support/tap.h"
#include "support/world.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- the matrix ---- */

typedef struct run {
    const scenario *scenario;
    world_place place;
    world_store store;
    world_drive drive;
    void (*prepare)(world *w);
    char name[200];
} run;

static const char *const places[] = {"pair", "stdio", "http"};
static const char *const stores[] = {"memory", "sqlite"};
static const char *const drives[] = {"whole", "bytes", "random"};

static void run_one(void **state)
{
    const run *r = *state;
    world w = {.place = r->place, .store_kind = r->store, .drive = r->drive};
    w.tune = r->scenario->tune;
    tap_test(r->name);
    if (r->prepare)
        r->prepare(&w);
    world_begin(&w);
    r->scenario->run(&w);
    world_end(&w);
}

int scenarios_run(const scenario *scenarios, size_t count)
{
    return scenarios_run_prepared(scenarios, count, NULL);
}

/* Over HTTP the SQLite store runs with one drive only. Cutting bytes tests the transport,
 * which the memory store covers. */
static int is_wanted(const scenario *s, const run *r)
{
    const char *only = getenv("SEGUE_SCENARIO");
    if (only && !strstr(r->name, only))
        return 0;
    if ((s->flags & ONLY_HERE && r->place == WORLD_STDIO) ||
        (s->flags & ONLY_STDIO && r->place != WORLD_STDIO) ||
        (s->flags & ONLY_HTTP && r->place != WORLD_HTTP) ||
        (s->flags & ONLY_KEYED && r->place == WORLD_STDIO && r->store == WORLD_MEMORY) ||
        (s->flags & NOT_HTTP && r->place == WORLD_HTTP) ||
        (s->flags & ONLY_SQLITE && r->store != WORLD_SQLITE))
        return 0;
    return r->drive == WORLD_WHOLE ||
           !(s->flags & ONE_DRIVE || r->place == WORLD_STDIO ||
             (r->place == WORLD_HTTP && r->store == WORLD_SQLITE));
}

#define VARIANTS 18

int scenarios_run_prepared(const scenario *scenarios, size_t count,
                           void (*prepare)(world *w))
{
    run *runs = calloc(count * VARIANTS, sizeof *runs);
    struct CMUnitTest *tests = calloc(count * VARIANTS, sizeof *tests);
    size_t n = 0;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < count * VARIANTS; i++) {
        const scenario *s = &scenarios[i / VARIANTS];
        size_t variant = i % VARIANTS;
        run *r = &runs[n];
        *r = (run){.scenario = s, .prepare = prepare};
        r->place = (world_place)(variant / 6);
        r->store = (world_store)(variant / 3 % 2);
        r->drive = (world_drive)(variant % 3);
        snprintf(r->name, sizeof r->name, "%s [%s %s %s]", s->name, places[r->place],
                 stores[r->store], drives[r->drive]);
        if (!is_wanted(s, r))
            continue;
        tests[n++] = (struct CMUnitTest){r->name, run_one, NULL, NULL, r};
    }
    int failed = _cmocka_run_group_tests("scenarios", tests, n, NULL, NULL);
    free(tests);
    free(runs);
    return failed;
}
