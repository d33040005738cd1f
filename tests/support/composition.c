/* One run. The client, the line and the server take turns until all calls have ended.
 * When none of them has anything to do, time passes. Between turns, the run cuts, kills
 * and restarts as planned. A run that takes too long counts as hanging, which is a
 * failure. */
#include "support/composition.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "support/scratch.h"
#include "support/world.h"

/* The longest time of a run, which is shorter than any time to live. */
#define PATIENCE_MS (40 * 60 * 1000)
#define MAX_TURNS 1000000
/* The number of bytes that a server may hold in addition to its memory at the start: for
 * a listener, the writing of a response, and tables. */
#define GROWN_BYTES (192 * 1024)
#define IDLE_TURNS 3      /* turns in which nothing seems to happen */
#define IDLE_TURNS_WEB 10 /* over HTTP a request takes some invisible turns */

void composition_fail(composition *c, const char *format, ...)
{
    char plan[300];
    va_list args;
    composition_plan_print(&c->whole, plan, sizeof plan);
    fprintf(stderr, "SEGUE_SEED=%llu: ", (unsigned long long)c->seed);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n    (%s; turn %llu, %lld ms)\n", plan,
            (unsigned long long)c->turns, (long long)c->clock_ms);
    fail();
    abort();
}

/* ---- clock and chance ---- */

static int64_t now(void *user)
{
    return ((composition *)user)->clock_ms;
}

static int64_t wall(void *user)
{
    return WORLD_EPOCH + ((composition *)user)->clock_ms;
}

static int32_t draw(dice *d, void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)dice_roll(d, 256);
    return 0;
}

static int32_t draw_for_server(void *user, void *bytes, size_t len)
{
    return draw(&((composition *)user)->engine_dice[0], bytes, len);
}

static int32_t draw_for_client(void *user, void *bytes, size_t len)
{
    return draw(&((composition *)user)->engine_dice[1], bytes, len);
}

void composition_trace(const composition *c, const char *what, const char *text,
                       size_t len)
{
    if (c->is_traced)
        fprintf(stderr, "%llu %lld %s %.*s\n", (unsigned long long)c->turns,
                (long long)c->clock_ms, what, (int)(len > 3000 ? 3000 : len), text);
}

static void say(void *user, int32_t level, const char *text)
{
    (void)level;
    composition_trace(user, "..", text, strlen(text));
}

segue_runtime *composition_runtime(composition *c, int which)
{
    segue_runtime *runtime = NULL;
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    hooks.user = c;
    hooks.monotonic_ms = now;
    hooks.wall_ms = wall;
    hooks.random = which ? draw_for_client : draw_for_server;
    options.allocator = which ? &c->client_mem.mem : &c->server_mem.mem;
    options.hooks = &hooks;
    options.user = c;
    options.log = say;
    options.max_queue_bytes = which ? 0 : c->plan.max_queue;
    composition_check(c, segue_runtime_new(&options, &runtime, NULL) == SEGUE_OK);
    return runtime;
}

/* ---- what goes wrong ---- */

static void plan_death(composition *c)
{
    fault_where where = dice_once_in(&c->dice, 2) ? FAULT_BEFORE : FAULT_AFTER;
    fault_store_die(c->faults, where, 0, 1 + (int)dice_roll(&c->dice, 4), &c->dead);
}

static void stop_for_a_while(composition *c)
{
    server_stop(c);
    c->kills_done++;
    c->down_until =
        c->clock_ms + dice_roll(&c->dice, dice_once_in(&c->dice, 4) ? 20000 : 200);
}

/* Causes at most one cut, kill or restart, in one of several turns. */
static void go_wrong(composition *c)
{
    composition_plan *plan = &c->plan;
    uint32_t patience = plan->piece < 10 ? 600 : 60;
    if (plan->cuts && dice_once_in(&c->dice, patience)) {
        plan->cuts--;
        c->carrier->cut(c);
    }
    if (plan->kills && c->server_runtime && dice_once_in(&c->dice, 2 * patience)) {
        plan->kills--;
        if (dice_once_in(&c->dice, 3))
            stop_for_a_while(c);
        else
            plan_death(c);
    }
    if (plan->restarts && dice_once_in(&c->dice, 2 * patience)) {
        plan->restarts--;
        c->restarts_done++;
        client_die(c);
        client_start(c);
    }
    if (c->dead && c->server_runtime)
        stop_for_a_while(c);
    if (!c->server_runtime && c->clock_ms >= c->down_until)
        server_start(c);
}

/* ---- turns ---- */

/* Gives each side a turn. A callback that reports the death of the store ends the
 * turn. */
static bool take_turn(composition *c)
{
    int32_t ran = 0;
    bool any;
    c->turns++;
    client_turn(c);
    segue_runtime_dispatch(c->client_runtime, 0, 0, &ran);
    any = ran > 0;
    any |= c->carrier->turn(c);
    any |= server_turn(c);
    any |= c->dead && c->server_runtime;
    go_wrong(c);
    return any;
}

static void let_time_pass(composition *c)
{
    int64_t step = 1 + dice_roll(&c->dice, 200);
    int64_t wakes = server_wakes(c);
    if (wakes > 0 && wakes - c->clock_ms < step)
        step = wakes - c->clock_ms;
    if (!c->server_runtime && c->down_until - c->clock_ms < step)
        step = c->down_until - c->clock_ms;
    c->clock_ms += step > 0 ? step : 1;
}

static void play(composition *c)
{
    int idle = 0, patience = c->plan.http ? IDLE_TURNS_WEB : IDLE_TURNS;
    while (!client_is_done(c)) {
        if (c->clock_ms > PATIENCE_MS || c->turns > MAX_TURNS)
            composition_fail(c, "it hangs");
        idle = take_turn(c) ? 0 : idle + 1;
        if (idle < patience)
            continue;
        let_time_pass(c);
        idle = 0;
    }
}

/* ---- beginning and end ---- */

static void begin(composition *c, uint64_t seed)
{
    static unsigned runs;
    *c = (composition){.seed = seed, .clock_ms = 1000};
    composition_plan_make(&c->plan, seed);
    c->whole = c->plan;
    c->is_traced = getenv("SEGUE_TEST_LOG") != NULL;
    c->dice = dice_of(seed, 2);
    c->line_dice = dice_of(seed, 3);
    c->engine_dice[0] = dice_of(seed, 4);
    c->engine_dice[1] = dice_of(seed, 5);
    c->carrier = c->plan.http ? &carrier_web : &carrier_line;
    test_mem_init(&c->server_mem);
    test_mem_init(&c->client_mem);
    /* A failed run still listens on its path, so each run has a path of its own. */
    snprintf(c->path, sizeof c->path, "/dev/shm/segue-composition-%d-%u.db",
             (int)getpid(), ++runs);
    scratch_clear(c->path);
    c->faults = fault_store_new(c->plan.sqlite ? c->path : NULL, &c->store);
    if (c->plan.keeps)
        fault_store_keep(c->faults);
    for (int i = 0; i < c->plan.calls; i++) {
        dice d = dice_of(seed, 10 + (uint64_t)i);
        c->apps[i].c = c;
        c->apps[i].index = i;
        c->apps[i].person = composition_people[i % c->plan.people];
        program_make(&c->apps[i].program, &d,
                     c->plan.row->flags | (c->plan.asks_much ? ROW_ASKS_MUCH : 0),
                     c->plan.largest);
    }
}

/* Checks the memory of the server at the end. All operations have ended, or expired after
 * a cancel, and are purged. So the server must hold as many bytes as at its start, except
 * for grown tables and two buffers of the largest block. Escapes make a block up to half
 * as long again. */
static void judge_memory(composition *c)
{
    for (int i = 0; i < 40; i++) {
        c->clock_ms += 10 * 60 * 1000;
        for (int turn = 0; turn < 8; turn++)
            server_turn(c);
    }
    if (c->server_mem.live > c->server_base + GROWN_BYTES + 3 * c->plan.largest)
        composition_fail(c, "the server holds %zu bytes, %zu at first",
                         (size_t)c->server_mem.live, c->server_base);
}

static void end(composition *c)
{
    client_end(c);
    if (c->dead)
        server_stop(c);
    if (!c->server_runtime)
        server_start(c);
    judge_memory(c);
    server_stop(c);
    c->carrier->end(c);
    segue_store_free(c->store);
    scratch_clear(c->path);
    for (int i = 0; i < c->plan.calls; i++) {
        program_free(&c->apps[i].program);
        free(c->apps[i].result);
    }
}

void composition_run(uint64_t seed)
{
    static composition run;
    composition *c = &run;
    begin(c, seed);
    server_start(c);
    client_start(c);
    play(c);
    client_judge(c);
    end(c);
}
