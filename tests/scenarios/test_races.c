/* Several ends of one task at once: only one counts, and every client is told the same,
 * for ever. The store's own log decides. The test starts threads, so the thread sanitizer
 * checks it too (AS-123). */
#include "support/fault_store.h"
#include "support/scratch.h"
#include "support/world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* Number of runs in the long form (SEGUE_LONG); the short form has a tenth. */
#define MANY 10000
#define MOST 100000 /* where a run is cheap */

#define BATCH 50

static fault_store *faults;

static int runs_of(int many)
{
    return getenv("SEGUE_LONG") ? many : many / 10;
}

static void open_again(world *w)
{
    if (w->dead)
        fault_store_revive(faults);
}

static void with_faults(world *w)
{
    scratch_name(w->path, sizeof w->path, "/tmp/segue-races");
    faults = fault_store_new(w->store_kind == WORLD_SQLITE ? w->path : NULL, &w->custom);
    w->between = open_again;
}

static void many_tasks(segue_server_options *options)
{
    options->max_tasks = 10000;
}

/* ---- many tasks ---- */

typedef struct bulk {
    wire *wire;
    char ids[BATCH][160];
    char status[BATCH][16];
} bulk;

static void make_all(bulk *b, world *w, const char *tool, int64_t ms, uint32_t spread)
{
    for (int i = 0; i < BATCH; i++) {
        char params[128], id[16];
        snprintf(params, sizeof params, "\"name\":\"%s%s\",\"arguments\":{\"ms\":%d}",
                 tool, spread && world_chance(w, 2) ? "_again" : "",
                 (int)(ms + (spread ? world_chance(w, spread) : 0)));
        snprintf(id, sizeof id, "%d", i);
        char *line = wire_line(id, "tools/call", params, CAPS_TASKS);
        wire_feed(b->wire, line, strlen(line));
        wire_feed(b->wire, "\n", 1);
        free(line);
    }
    world_run(w);
    for (int i = 0; i < BATCH; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        const char *quoted = json_at(wire_response(b->wire, id), "result.taskId");
        assert_true(strlen(quoted) > 2);
        snprintf(b->ids[i], sizeof b->ids[i], "%.*s", (int)strlen(quoted) - 2,
                 quoted + 1);
    }
}

static void ask_cancel(bulk *b, int i)
{
    char params[200];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"", b->ids[i]);
    char *line = wire_line("\"cancel\"", "tasks/cancel", params, CAPS_TASKS);
    line = realloc(line, strlen(line) + 2);
    strcat(line, "\n");
    wire_feed(b->wire, line, strlen(line));
    free(line);
}

/* Checks that tasks/get shows the members of the task's state, and that an end never
 * changes. A task may be gone only when its time has passed. */
static void check(bulk *b, int i, int may_work, int may_be_gone)
{
    const char *r = wire_task(b->wire, "\"get\"", "tasks/get", b->ids[i], NULL);
    if (may_be_gone && *json_at(r, "error")) {
        assert_code(r, -32602);
        return;
    }
    const char *status = json_at(r, "result.status");
    int completed = !strcmp(status, "\"completed\"");
    int failed = !strcmp(status, "\"failed\"");
    assert_int_equal(completed, *json_at(r, "result.result") != 0);
    assert_int_equal(failed, *json_at(r, "result.error") != 0);
    if (*b->status[i])
        assert_string_equal(b->status[i], status);
    else if (completed || failed || !strcmp(status, "\"cancelled\""))
        snprintf(b->status[i], sizeof b->status[i], "%s", status);
    else if (!may_work)
        fail_msg("not ended: %s", r);
}

static void check_all(bulk *b, int may_be_gone)
{
    for (int i = 0; i < BATCH; i++)
        check(b, i, 0, may_be_gone);
}

static void check_store(bulk *b, int seen[3])
{
    for (int i = 0; i < BATCH; i++) {
        seen[0] += !strcmp(b->status[i], "\"completed\"");
        seen[1] += !strcmp(b->status[i], "\"cancelled\"");
        seen[2] += !strcmp(b->status[i], "\"failed\"");
    }
    for (size_t i = 0; fault_store_task(faults, i); i++)
        assert_int_equal(fault_store_finals(faults, i), 1);
    assert_int_equal(fault_store_changed(faults), 0);
    fault_store_forget(faults);
}

/* ---- AS-55 ---- */

static void cancel_against_completion(world *w)
{
    int seen[3] = {0};
    for (int run = 0; run < runs_of(MANY); run += BATCH) {
        bulk b = {.wire = world_connect(w, NULL)};
        make_all(&b, w, "stubborn", 10, 0);
        w->clock_ms += 10;
        /* All are due now, and all are cancelled now; chance decides which comes
         * first. */
        for (int i = 0; i < BATCH; i++) {
            ask_cancel(&b, i);
            if (world_chance(w, BATCH) == 0)
                fixtures_tick(w->fixtures);
            if (world_chance(w, 4) == 0)
                segue_runtime_dispatch(w->runtime, 0, (int32_t)world_chance(w, 3), NULL);
        }
        world_run(w);
        check_all(&b, 0);
        check_all(&b, 0);
        world_jump(w, 60000); /* now read from the store */
        check_all(&b, 0);
        check_store(&b, seen);
        wire_drop(b.wire);
        world_jump(w, 3600000);
    }
    assert_true(seen[0] > 0);
    assert_true(seen[1] > 0);
    assert_int_equal(seen[2], 0);
}

/* ---- the same with a handler on another thread ---- */

typedef struct finisher {
    pthread_mutex_t lock;
    pthread_cond_t more;
    segue_call *calls[MANY];
    int count;
    int stop;
} finisher;

static void hand_over(void *user, segue_call *call)
{
    finisher *f = user;
    pthread_mutex_lock(&f->lock);
    f->calls[f->count++] = call;
    pthread_cond_signal(&f->more);
    pthread_mutex_unlock(&f->lock);
}

static void *finish_calls(void *user)
{
    finisher *f = user;
    pthread_mutex_lock(&f->lock);
    while (!f->stop || f->count) {
        if (!f->count) {
            pthread_cond_wait(&f->more, &f->lock);
            continue;
        }
        segue_call *call = f->calls[--f->count];
        pthread_mutex_unlock(&f->lock);
        segue_call_send_text(call, "done", 4, NULL);
        segue_call_complete(call, NULL, NULL);
        segue_call_free(call);
        pthread_mutex_lock(&f->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void cancel_against_a_thread(world *w)
{
    static const char tool[] =
        "{\"name\":\"threaded\",\"inputSchema\":{\"type\":\"object\"}}";
    static finisher f = {.lock = PTHREAD_MUTEX_INITIALIZER,
                         .more = PTHREAD_COND_INITIALIZER};
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    pthread_t thread;
    int seen[3] = {0};
    f.stop = 0;
    options.user = &f;
    options.on_call = hand_over;
    options.task = SEGUE_TASK_MAY;
    assert_int_equal(segue_server_add(w->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1,
                                      &options, NULL),
                     SEGUE_OK);
    pthread_create(&thread, NULL, finish_calls, &f);
    for (int run = 0; run < runs_of(MANY); run += BATCH) {
        bulk b = {.wire = world_connect(w, NULL)};
        make_all(&b, w, "threaded", 0, 0);
        /* in the other order, so that they meet in the middle */
        for (int i = BATCH; i-- > 0;) {
            ask_cancel(&b, i);
            segue_runtime_dispatch(w->runtime, 0, 0, NULL);
        }
        for (int i = 0; i < BATCH; i++)
            wire_get_until(b.wire, b.ids[i], "completed|cancelled", NULL);
        check_all(&b, 0);
        check_store(&b, seen);
        wire_drop(b.wire);
    }
    world_run(w);
    pthread_mutex_lock(&f.lock);
    f.stop = 1;
    pthread_cond_signal(&f.more);
    pthread_mutex_unlock(&f.lock);
    pthread_join(thread, NULL);
    assert_true(seen[0] + seen[1] > 0);
}

/* ---- AS-115 ---- */

static void restart_somehow(world *w, bulk *b)
{
    if (world_chance(w, 2)) {
        fault_store_die(faults, world_chance(w, 2) ? FAULT_BEFORE : FAULT_AFTER, 0,
                        1 + (int)world_chance(w, 3), &w->dead);
        for (int i = 0; i < 3; i++) {
            fixtures_tick(w->fixtures);
            segue_runtime_dispatch(w->runtime, 0, 0, NULL);
        }
    }
    world_restart(w);
    fault_store_die(faults, FAULT_NONE, 0, 0, NULL);
    b->wire = world_connect(w, NULL);
}

static void everything_at_once(world *w)
{
    int seen[3] = {0};
    /* The whole number where a run is cheap, a tenth where it takes sockets or
     * commits. */
    int is_cheap = w->place == WORLD_PAIR && w->store_kind == WORLD_MEMORY;
    int runs = runs_of(is_cheap ? MOST : MANY);
    for (int run = 0; run < runs; run += BATCH) {
        bulk b = {.wire = world_connect(w, NULL)};
        int restart_at = (int)world_chance(w, 24);
        make_all(&b, w, "race", 4994, 12);
        world_jump(w, 4993);
        for (int step = 0; step < 12; step++) {
            w->clock_ms++;
            for (int n = 0; n < 4; n++)
                ask_cancel(&b, (int)world_chance(w, BATCH));
            if (step == restart_at)
                restart_somehow(w, &b);
            if (world_chance(w, 2))
                fixtures_tick(w->fixtures);
            segue_runtime_dispatch(w->runtime, 0, 0, NULL);
            fixtures_tick(w->fixtures);
            world_run(w);
            for (int n = 0; n < 4; n++)
                check(&b, (int)world_chance(w, BATCH), 1, step >= 6);
        }
        world_jump(w, 20);
        world_jump(w, 5000);
        check_all(&b, 1);
        world_jump(w, 60000); /* now read from the store */
        check_all(&b, 1);
        check_store(&b, seen);
        wire_drop(b.wire);
        world_jump(w, 400000);
    }
    for (int i = 0; i < 3; i++)
        assert_true(seen[i] > 0);
}

static const scenario scenarios[] = {
    {"AS-55 AS-123 cancel against completion: one end, the same for ever",
     cancel_against_completion, ONLY_HERE | ONE_DRIVE, many_tasks},
    {"AS-55 AS-123 cancel against a handler on another thread", cancel_against_a_thread,
     ONLY_HERE | ONE_DRIVE, many_tasks},
    {"AS-115 AS-123 time to live, cancel, completion and restart at once: one end",
     everything_at_once, ONLY_HERE | ONE_DRIVE, many_tasks},
};

int main(void)
{
    return scenarios_run_prepared(scenarios, sizeof scenarios / sizeof *scenarios,
                                  with_faults);
}
