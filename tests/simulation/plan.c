/* Makes the plan of a run from its seed. Each kind of fault is rare, so that most runs
 * have few kinds of them and many combinations occur. */
#include "simulation/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sim_knob_names[SIM_KNOBS] = {
#define PLAN(name, calm) #name,
#include "simulation/plan.def"
#undef PLAN
};

const int64_t sim_knob_calm[SIM_KNOBS] = {
#define PLAN(name, calm) calm,
#include "simulation/plan.def"
#undef PLAN
};

const composition_row *sim_row(const sim_plan *plan)
{
    return &composition_rows[plan->at[SIM_row]];
}

bool sim_forgets_calls(const sim_plan *plan)
{
    bool is_stored =
        sim_row(plan)->flags & (ROW_TASK | ROW_LASTS) || !plan->at[SIM_keyless];
    return plan->at[SIM_store] == SIM_MEMORY || !is_stored;
}

static uint32_t one_of(dice *d, const uint32_t *values, uint32_t count)
{
    return values[dice_roll(d, count)];
}
#define ONE_OF(d, ...)                                                                   \
    (int64_t) one_of(d, (const uint32_t[]){__VA_ARGS__},                                 \
                     sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void plan_shape(int64_t *at, dice *d)
{
    at[SIM_row] = dice_roll(d, (uint32_t)composition_row_count);
    at[SIM_servers] = ONE_OF(d, 1, 1, 2, 2, 3);
    at[SIM_clients] = ONE_OF(d, 1, 1, 2, 3, 4);
    at[SIM_calls] = at[SIM_clients] + dice_roll(d, 3);
    at[SIM_people] = 1 + dice_roll(d, COMPOSITION_PEOPLE);
    at[SIM_store] = dice_roll(d, SIM_STORES);
    at[SIM_http] = dice_once_in(d, 16);
    at[SIM_balance] = dice_roll(d, 3);
    at[SIM_children] = dice_once_in(d, 8);
    at[SIM_restartable] = !dice_once_in(d, 4);
}

static void plan_sizes(int64_t *at, dice *d)
{
    at[SIM_batch] = ONE_OF(d, 1, 2, 5, COMPOSITION_STEPS);
    at[SIM_piece] = ONE_OF(d, 100, 1000, 100000, 100000);
    at[SIM_room] = ONE_OF(d, 100, 4000, 1 << 20, 1 << 20);
    at[SIM_largest] =
        at[SIM_room] < 1000 || at[SIM_piece] < 1000 ? 200 : ONE_OF(d, 200, 1000, 4000);
    at[SIM_slowness] = at[SIM_largest] == 200 ? 1 : ONE_OF(d, 1, 1, 2, 10);
    at[SIM_step] = ONE_OF(d, 20, 100, 400, 1000);
    at[SIM_queue] = ONE_OF(d, 0, 0, 3000, 100000);
    at[SIM_read] = ONE_OF(d, 0, 1, 100, 500, 5000);
    at[SIM_replay] = ONE_OF(d, 0, 300, 2048);
    at[SIM_keeps] = dice_once_in(d, 2);
    at[SIM_lease] = ONE_OF(d, 300, 1000, 3000);
    at[SIM_credit] = ONE_OF(d, 0, 0, 1, 5);
    at[SIM_discard] = dice_once_in(d, 8);
    at[SIM_gap] = dice_once_in(d, 10) ? 1 + dice_roll(d, 1000) : 0;
    at[SIM_tiny] = dice_once_in(d, 2) ? 0 : 1 + dice_roll(d, 1000000);
}

/* What applications do, whether something goes wrong or not. */
static void plan_habits(int64_t *at, dice *d)
{
    at[SIM_cancels] = ONE_OF(d, 0, 0, 0, 0, 0, 0, 1, 2);
    at[SIM_watches] = dice_once_in(d, 6);
    at[SIM_hasty] = ONE_OF(d, 1, 3, 10, 10, 20, 40, 200);
    at[SIM_keyless] = dice_once_in(d, 6);
    at[SIM_asks] = dice_once_in(d, 5);
    at[SIM_thinks] = ONE_OF(d, 3, 3, 20, 60, 300);
}

/* Habits with dice of their own: the other parts of a seed's plan stay as they are. */
static void plan_more_habits(int64_t *at, dice *d)
{
    at[SIM_limit] = dice_once_in(d, 8) ? ONE_OF(d, 50, 1000, 20000, 300000) : 0;
    at[SIM_overtime] = dice_once_in(d, 2);
    at[SIM_levels] = dice_once_in(d, 4) ? 1 + dice_roll(d, 3) : 0;
    at[SIM_hushes] = dice_once_in(d, 8);
}

static void plan_faults(int64_t *at, dice *d)
{
    if (dice_once_in(d, 6))
        return; /* nothing goes wrong, so the judge allows no failure */
    at[SIM_cuts] = ONE_OF(d, 0, 0, 1, 2, 6);
    at[SIM_holes] = ONE_OF(d, 0, 0, 0, 0, 1);
    at[SIM_refused] = ONE_OF(d, 0, 0, 1, 2, 6);
    at[SIM_outages] = ONE_OF(d, 0, 0, 0, 0, 1, 2);
    at[SIM_kills] = ONE_OF(d, 0, 0, 0, 1, 2);
    at[SIM_stops] = ONE_OF(d, 0, 0, 0, 1, 2);
    at[SIM_crashes] = ONE_OF(d, 0, 1, 3, 40);
    at[SIM_powers] = dice_once_in(d, 24);
    at[SIM_pauses] = ONE_OF(d, 0, 0, 0, 0, 1, 2);
    at[SIM_deaths] = ONE_OF(d, 0, 0, 0, 1, 2);
    at[SIM_losses] = dice_once_in(d, 24);
    at[SIM_refusals] = ONE_OF(d, 0, 0, 0, 0, 1, 3);
    at[SIM_partitions] = ONE_OF(d, 0, 0, 0, 0, 0, 1);
    at[SIM_jumps] = ONE_OF(d, 0, 0, 0, 0, 1, 2);
    at[SIM_drift] = ONE_OF(d, 0, 0, 0, 2, 20);
    at[SIM_repeats] = ONE_OF(d, 0, 0, 2, 10);
    at[SIM_reorders] = ONE_OF(d, 0, 0, 2, 10);
    at[SIM_twice] = dice_once_in(d, 8);
}

/* A fault with dice of its own. Only plans with broken connections have it. */
static void plan_more_faults(int64_t *at, dice *d)
{
    at[SIM_ghosts] = at[SIM_cuts] ? ONE_OF(d, 0, 0, 0, 1, 3) : 0;
}

#define FEW_CRASHES 3
#define SHORT_THOUGHT 60

/* A child has one client, and its pipes break only with a process. A child that dies each
 * time when its question is answered asks it again. So a person who thinks for long would
 * think until the task expires. */
static void fit_children(int64_t *at)
{
    if (!at[SIM_children]) {
        at[SIM_crashes] = 0;
        return;
    }
    at[SIM_http] = at[SIM_cuts] = at[SIM_holes] = at[SIM_balance] = 0;
    if (at[SIM_clients] > SIM_SERVERS)
        at[SIM_clients] = SIM_SERVERS;
    at[SIM_servers] = at[SIM_clients];
    if (at[SIM_crashes] > FEW_CRASHES && at[SIM_thinks] > SHORT_THOUGHT)
        at[SIM_thinks] = SHORT_THOUGHT;
}

void sim_plan_fit(sim_plan *plan)
{
    int64_t *at = plan->at;
    const composition_row *row = sim_row(plan);
    if (!at[SIM_cancels])
        at[SIM_hasty] = sim_knob_calm[SIM_hasty];
    if (at[SIM_calls] < at[SIM_clients])
        at[SIM_clients] = at[SIM_calls];
    if (at[SIM_store] == SIM_MEMORY)
        at[SIM_servers] = 1;
    if (at[SIM_store] == SIM_MEMORY)
        at[SIM_losses] = at[SIM_partitions] = at[SIM_powers] = 0;
    if (at[SIM_store] == SIM_SQLITE)
        at[SIM_losses] = at[SIM_partitions] = 0;
    fit_children(at);
    if (at[SIM_children] || at[SIM_refused] || at[SIM_outages])
        at[SIM_watches] = 0;
    if (at[SIM_watches] && at[SIM_http] && row->era == SEGUE_ERA_LEGACY)
        at[SIM_balance] = SIM_STICKY; /* each server has its own subscriptions */
    if (row->era != SEGUE_ERA_LEGACY)
        at[SIM_hushes] = 0; /* each call of 2026-07-28 has a level of its own */
    if (row->era != SEGUE_ERA_LEGACY)
        at[SIM_ghosts] = 0; /* a client of 2026-07-28 cancels by leaving its stream */
    if (at[SIM_hushes] && at[SIM_http])
        at[SIM_balance] = SIM_STICKY; /* each server has the level of its sessions */
    if (!at[SIM_limit])
        at[SIM_overtime] = 0;
    if (!at[SIM_http])
        at[SIM_refused] = at[SIM_outages] = at[SIM_ghosts] = 0;
    if (row->flags & ROW_STAYS)
        at[SIM_deaths] = 0;
    if (row->flags & ROW_LASTS && at[SIM_keyless] && !at[SIM_http])
        at[SIM_holes] = 0; /* what was written to a pipe counts as delivered (R-975-17) */
    bool knows_ids_only = row->flags & ROW_LASTS && at[SIM_keyless] && at[SIM_http];
    if (sim_forgets_calls(plan) || knows_ids_only)
        at[SIM_balance] = SIM_STICKY; /* answers and cancels reach the call's server */
    if (at[SIM_http] || !(row->flags & ROW_TASK))
        at[SIM_gap] = 0;
    if (at[SIM_gap]) /* a client takes a repeated event for one of its new stream */
        at[SIM_repeats] = 0;
    if (!at[SIM_deaths])
        at[SIM_twice] = 0;
    if (!(row->flags & ROW_REPEATS))
        at[SIM_repeats] = 0;
    if (!(row->flags & ROW_REORDERS))
        at[SIM_reorders] = 0;
    if (!(row->flags & ROW_ASKS))
        at[SIM_asks] = 0;
}

void sim_plan_make(sim_plan *plan, uint64_t seed)
{
    dice d = dice_of(seed, 101);
    memcpy(plan->at, sim_knob_calm, sizeof plan->at);
    plan_shape(plan->at, &d);
    plan_sizes(plan->at, &d);
    plan_habits(plan->at, &d);
    plan_faults(plan->at, &d);
    d = dice_of(seed, 104);
    plan_more_habits(plan->at, &d);
    d = dice_of(seed, 105);
    plan_more_faults(plan->at, &d);
    sim_plan_fit(plan);
}

void sim_plan_print(const sim_plan *plan, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "%s:", sim_row(plan)->name);
    for (int i = 0; i < SIM_KNOBS && n < size; i++)
        if (plan->at[i] != sim_knob_calm[i])
            n += (size_t)snprintf(out + n, size - n, " %s=%lld", sim_knob_names[i],
                                  (long long)plan->at[i]);
}
