/* One run. Clients, network and servers take turns until all calls have ended. When none
 * of them has anything to do, time passes to the next moment at which somebody has.
 * Between turns things go wrong, as planned. When nothing is left to go wrong, everything
 * starts again, and from then on every call has to end within a bound. */
#include "simulation/sim.h"

#include "base/thresholds.h"
#include "runtime/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scratch.h"
#include "support/world.h"

#define PATIENCE_MS (INT64_C(40) * 60 * 1000)
#define MAX_TURNS 800000
#define BUSY_TURNS 32
#define IDLE_TURNS 2
/* Messages for each open call in PACE_MS without news. At most 17 were seen. */
#define PACE_MS 10000
#define PACE_LIMIT 60
#define SETTLE_STEP_MS 100
#define LONG_PAUSE_MS 20000
#define IDLE_TURNS_WEB 8 /* over HTTP a request takes some invisible turns */
/* What a server may hold in addition to its memory at the start. */
#define GROWN_BYTES (256 * 1024)

/* ---- the history ---- */

void sim_fail(sim *s, const char *format, ...)
{
    char plan[1000];
    va_list args;
    sim_plan_print(&s->plan, plan, sizeof plan);
    if (s->trace)
        fflush(s->trace);
    printf("SEED=%llu: ", (unsigned long long)s->seed);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n    (%s; turn %llu, %lld ms)\n", plan, (unsigned long long)s->turns,
           (long long)s->now_ms);
    fflush(stdout);
    _exit(1);
}

void sim_note(sim *s, const char *what, const char *text, size_t len)
{
    s->digest = judge_digest(s->digest, text, len);
    if (s->trace)
        fprintf(s->trace, "%llu %lld %s %.*s\n", (unsigned long long)s->turns,
                (long long)s->now_ms, what, (int)(len > 2000 ? 2000 : len), text);
}

void sim_tell(sim *s, const char *format, ...)
{
    char line[400];
    va_list args;
    int n = snprintf(line, sizeof line, "%lld ", (long long)s->now_ms);
    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    if (n >= (int)sizeof line)
        n = sizeof line - 1;
    sim_note(s, "##", line, (size_t)n);
    if (s->history)
        fprintf(s->history, "%s\n", line);
    const char *why = judge_line(s->judge, line);
    if (why)
        sim_fail(s, "%s", why);
}

void sim_fault(sim *s, const char *name)
{
    sim_tell(s, "fault %s", name);
}

void sim_show(const sim_server *server, const char *what, int64_t number)
{
    const sim *s = server->s;
    if (s->trace)
        fprintf(s->trace, "%llu %lld server%d %s %lld\n", (unsigned long long)s->turns,
                (long long)s->now_ms, server->index, what, (long long)number);
}

/* ---- clocks and chance ---- */

typedef struct process {
    sim *s;
    sim_server *server;
    dice *dice;
} process;

static process processes[SIM_SERVERS + SIM_CLIENTS];

static int64_t now(void *user)
{
    const process *p = user;
    int64_t ms = p->s->now_ms;
    return p->server && p->server->index % 2
               ? ms + ms * sim_planned(p->s, SIM_drift) / 1000
               : ms;
}

static int64_t wall(void *user)
{
    const process *p = user;
    return WORLD_EPOCH + p->s->now_ms + (p->server ? p->server->wall_off : 0);
}

static int32_t draw(void *user, void *bytes, size_t len)
{
    const process *p = user;
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)dice_roll(p->dice, 256);
    return 0;
}

static void say(void *user, int32_t level, const char *text)
{
    const process *p = user;
    char who[16];
    (void)level;
    snprintf(who, sizeof who, "%s%d", p->server ? "server" : "client",
             (int)(p - processes) - (p->server ? 0 : SIM_SERVERS));
    sim_note(p->s, who, text, strlen(text));
}

static int64_t true_time(void *user)
{
    return ((sim *)user)->now_ms;
}

segue_runtime *sim_runtime(sim *s, test_mem *mem, sim_server *server, sim_client *client)
{
    segue_runtime *runtime = NULL;
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_hooks hooks = SEGUE_HOOKS_INIT;
    process *p = &processes[server ? server->index : SIM_SERVERS + client->index];
    *p = (process){s, server, server ? &server->dice : &client->dice};
    hooks.user = p;
    hooks.monotonic_ms = now;
    hooks.wall_ms = wall;
    hooks.random = draw;
    options.allocator = &mem->mem;
    options.hooks = &hooks;
    options.user = p;
    options.log = say;
    options.max_queue_bytes = server ? sim_planned(s, SIM_queue) : 0;
    sim_check(s, segue_runtime_new(&options, &runtime, NULL) == SEGUE_OK);
    return runtime;
}

/* Lets a runtime do what is due. Without sockets, nothing can be due that its loop does
 * not know, and then the turn is saved. */
bool sim_dispatch(sim *s, segue_runtime *runtime)
{
    int32_t ran = 0;
    bool due =
        s->carrier == &sim_web || sgi_loop_turn_is_due(runtime) ||
        atomic_load(&runtime->stores.woken) ||
        sgi_timers_next_due_ms(&runtime->engine.timers) <= sgi_now(&runtime->engine.env);
    if (due)
        segue_runtime_dispatch(runtime, 0, 0, &ran);
    return ran > 0;
}

/* ---- servers ---- */

bool sim_is_up(const sim_server *server)
{
    return server->runtime && !server->is_dead && !server->ends_at;
}

bool sim_is_paused(const sim_server *server)
{
    return server->paused_until > server->s->now_ms;
}

sim_server *sim_next_up(sim *s, int from)
{
    for (int i = 0; i < sim_planned(s, SIM_servers); i++) {
        sim_server *server = &s->servers[(from + i) % sim_planned(s, SIM_servers)];
        if (sim_is_up(server))
            return server;
    }
    return NULL;
}

sim_server *sim_balance(sim_client *client)
{
    sim *s = client->s;
    int64_t how = sim_planned(s, SIM_balance);
    int from = client->server;
    if (how == SIM_IN_TURN)
        from = s->next_server++;
    else if (how == SIM_AT_RANDOM)
        from = (int)dice_roll(&s->line_dice, (uint32_t)sim_planned(s, SIM_servers));
    sim_server *server = sim_next_up(s, from);
    if (server && how == SIM_STICKY)
        client->server = server->index;
    return server;
}

/* ---- turns ---- */

static bool take_turn(sim *s)
{
    bool any = false;
    if (++s->turns % BUSY_TURNS == 0)
        s->now_ms++; /* work takes time, too */
    for (int i = 0; i < sim_planned(s, SIM_clients); i++)
        any |= sim_client_turn(&s->clients[i]);
    any |= s->carrier->turn(s);
    for (int i = 0; i < sim_planned(s, SIM_servers); i++)
        any |= sim_server_turn(&s->servers[i]);
    sim_go_wrong(s);
    sim_put_right(s);
    if (!s->is_calm && sim_is_all_well(s)) {
        s->is_calm = true;
        sim_tell(s, "calm");
    }
    return any;
}

static void at_most(int64_t *step, int64_t ms)
{
    if (ms > 0 && ms < *step)
        *step = ms;
}

static void let_time_pass(sim *s)
{
    int64_t step = 1 + dice_roll(&s->dice, (uint32_t)sim_planned(s, SIM_step));
    if (sim_planned(s, SIM_store) >= SIM_REDIS)
        at_most(&step, sim_planned(s, SIM_lease) / 6);
    for (int i = 0; i < sim_planned(s, SIM_servers); i++) {
        const sim_server *server = &s->servers[i];
        at_most(&step, sim_server_wakes(server) - s->now_ms);
        if (!server->runtime)
            at_most(&step, server->down_until - s->now_ms);
        at_most(&step, server->paused_until - s->now_ms);
        at_most(&step, server->ends_at - s->now_ms);
    }
    s->now_ms += step;
}

static void play(sim *s)
{
    sim_tell(s, "pace ms=%d limit=%d", PACE_MS, PACE_LIMIT);
    int idle = 0;
    int patience = sim_planned(s, SIM_http) ? IDLE_TURNS_WEB : IDLE_TURNS;
    while (!sim_clients_done(s)) {
        if (s->now_ms > PATIENCE_MS || s->turns > MAX_TURNS)
            sim_fail(s, "ends: it hangs");
        idle = take_turn(s) ? 0 : idle + 1;
        if (idle < patience)
            continue;
        let_time_pass(s);
        idle = 0;
    }
}

/* Lets every process take some turns. Nothing goes wrong any more. */
static void take_calm_turns(sim *s)
{
    for (int turn = 0; turn < 5; turn++) {
        for (int k = 0; k < sim_planned(s, SIM_clients); k++)
            sim_client_turn(&s->clients[k]);
        s->carrier->turn(s);
        for (int k = 0; k < sim_planned(s, SIM_servers); k++)
            sim_server_turn(&s->servers[k]);
        sim_put_right(s);
    }
}

/* Lets what is under way arrive: a cancel, for instance. Little time passes, so that a
 * handler whose cancel is lost still runs. */
static void settle(sim *s)
{
    for (int i = 0; i < 20; i++) {
        take_calm_turns(s);
        s->now_ms += 1 + dice_roll(&s->dice, SETTLE_STEP_MS);
    }
}

static void wait_for_watches(sim *s)
{
    take_calm_turns(s);
    let_time_pass(s);
}

/* ---- thresholds ---- */

/* Makes one in four of the thresholds small or tiny, as the plan says. */
static void set_thresholds(const sim *s)
{
#ifdef SGI_KNOBS
    static const uint32_t shares[] = {1, 16, 256, 4096};
    dice d = dice_of((uint64_t)sim_planned(s, SIM_tiny), 140);
    bool any = sim_planned(s, SIM_tiny) != 0;
#define THRESHOLD(type, name, value, least, unit, sentence)                              \
    sgi_thresholds.name = (value);                                                       \
    if (any && dice_once_in(&d, 4)) {                                                    \
        uint32_t share = shares[dice_roll(&d, 4)];                                       \
        int64_t less = (int64_t)(value) / (share * 4);                                   \
        sgi_thresholds.name = (type)(less > (least) ? less : (least));                   \
    }
#include "base/thresholds.def"
#undef THRESHOLD
#else
    (void)s;
#endif
}

/* ---- beginning and end ---- */

/* People cancel what takes long. */
static void stretch(program *p)
{
    for (int i = 0; i < p->count; i++) {
        int64_t longer = p->steps[i].ms * 100;
        p->steps[i].ms = longer < LONG_PAUSE_MS ? longer : LONG_PAUSE_MS;
    }
}

static void begin_apps(sim *s)
{
    for (int i = 0; i < sim_planned(s, SIM_calls); i++) {
        sim_app *a = &s->apps[i], *twin = &s->apps[SIM_CALLS + i];
        dice d = dice_of(s->seed, 110 + (uint64_t)i);
        a->s = s;
        a->index = i;
        a->client = &s->clients[i % sim_planned(s, SIM_clients)];
        a->person = a->client->person;
        program_make(&a->program, &d,
                     sim_row(&s->plan)->flags |
                         (sim_planned(s, SIM_asks) ? ROW_ASKS_MUCH : 0),
                     (uint32_t)sim_planned(s, SIM_largest));
        if (i < sim_planned(s, SIM_cancels))
            stretch(&a->program);
        *twin = *a;
        twin->index = SIM_CALLS + i;
    }
    s->gap = sim_gap(s);
}

static void begin(sim *s, uint64_t seed, const sim_plan *plan)
{
    *s = (sim){.seed = seed, .now_ms = 1000, .digest = JUDGE_DIGEST};
    if (plan)
        s->plan = *plan;
    else
        sim_plan_make(&s->plan, seed);
    memcpy(s->left, s->plan.at, sizeof s->left);
    set_thresholds(s);
    s->dice = dice_of(seed, 102);
    s->line_dice = dice_of(seed, 103);
    s->judge = judge_new();
    s->carrier = sim_planned(s, SIM_http) ? &sim_web : &sim_line;
    snprintf(s->path, sizeof s->path, "/dev/shm/segue-simulation-%d", (int)getpid());
    s->place = shared_place_new(sim_planned(s, SIM_lease), true_time, s);
    if (!sim_planned(s, SIM_keeps))
        shared_place_drop(s->place);
    for (int i = 0; i < SIM_SERVERS; i++) {
        s->servers[i] =
            (sim_server){.s = s, .index = i, .dice = dice_of(seed, 120 + (uint64_t)i)};
        test_mem_init(&s->servers[i].mem);
    }
    for (int i = 0; i < SIM_CLIENTS; i++) {
        s->clients[i] =
            (sim_client){.s = s, .index = i, .dice = dice_of(seed, 130 + (uint64_t)i)};
        s->clients[i].person = composition_people[i % sim_planned(s, SIM_people)];
        test_mem_init(&s->clients[i].mem);
    }
    begin_apps(s);
}

/* All operations have ended, or expire, and are purged. So a server holds as many bytes
 * as at its start, except for grown tables and buffers. */
static void judge_memory(sim *s)
{
    for (int i = 0; i < 40; i++) {
        s->now_ms += 10 * 60 * 1000;
        for (int turn = 0; turn < 4; turn++)
            for (int k = 0; k < sim_planned(s, SIM_servers); k++)
                sim_server_turn(&s->servers[k]);
    }
    for (int i = 0; i < sim_planned(s, SIM_servers); i++)
        sim_tell(
            s, "size server%d bytes=%zu limit=%zu", i, (size_t)s->servers[i].mem.live,
            s->servers[i].base + GROWN_BYTES + 4 * (size_t)sim_planned(s, SIM_largest));
}

static void end(sim *s)
{
    for (int i = 0; i < sim_planned(s, SIM_clients); i++)
        sim_client_end(&s->clients[i]);
    for (int i = 0; i < sim_planned(s, SIM_servers); i++) {
        sim_server *server = &s->servers[i];
        server->paused_until = 0;
        if (server->is_dead)
            sim_server_end(server, true);
        if (!server->runtime)
            sim_server_start(server);
        if (server->away_until && server->instance)
            shared_store_away(server->instance, 0);
    }
    if (s->seed % 4 == 0)
        judge_memory(s);
    for (int i = 0; i < sim_planned(s, SIM_servers); i++)
        sim_server_end(&s->servers[i], false);
    s->carrier->end(s);
    shared_place_free(s->place);
    for (int i = 0; i < sim_planned(s, SIM_calls); i++)
        program_free(&s->apps[i].program);
}

void sim_run(uint64_t seed, const sim_plan *plan, FILE *trace, FILE *history,
             sim_outcome *outcome)
{
    static sim run;
    sim *s = &run;
    begin(s, seed, plan);
    s->trace = trace;
    s->history = history;
    sim_clock_show(s);
    for (int i = 0; i < sim_planned(s, SIM_servers) && !sim_planned(s, SIM_children); i++)
        sim_server_start(&s->servers[i]);
    for (int i = 0; i < sim_planned(s, SIM_clients); i++)
        sim_client_start(&s->clients[i]);
    play(s);
    int64_t ms = s->now_ms;
    if (sim_planned(s, SIM_cancels))
        settle(s);
    sim_watch_settle(s, wait_for_watches);
    sim_tell(s, "over");
    end(s);
    sim_clock_show(NULL);
    *outcome = (sim_outcome){s->digest, ms, s->turns};
    judge_free(s->judge);
}
