/* Makes the plan of a run from its seed. */
#include "support/composition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cutting_line.h"

const char *const composition_people[COMPOSITION_PEOPLE] = {"ada", "bob"};

dice dice_of(uint64_t seed, uint64_t purpose)
{
    uint64_t state = cutting_mix(seed, 0x5e90e, purpose);
    return (dice){state ? state : 1};
}

uint32_t dice_roll(dice *d, uint32_t n)
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return n ? (uint32_t)(d->state >> 24) % n : 0;
}

bool dice_once_in(dice *d, uint32_t n)
{
    return n && dice_roll(d, n) == 0;
}

static uint32_t one_of(dice *d, const uint32_t *values, uint32_t count)
{
    return values[dice_roll(d, count)];
}
#define ONE_OF(d, ...)                                                                   \
    one_of(d, (const uint32_t[]){__VA_ARGS__},                                           \
           sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Draws a random row. With SEGUE_ROW in the environment, takes the row of that name. */
static const composition_row *draw_row(dice *d)
{
    const char *name = getenv("SEGUE_ROW");
    uint32_t drawn = dice_roll(d, (uint32_t)composition_row_count);
    for (size_t i = 0; name && i < composition_row_count; i++)
        if (!strcmp(composition_rows[i].name, name))
            return &composition_rows[i];
    return &composition_rows[drawn];
}

/* Plans a run in which several operations have open questions while servers start and
 * end. */
static void ask_much(composition_plan *plan, dice *d)
{
    plan->asks_much = true;
    plan->http = dice_once_in(d, 2);
    plan->calls = COMPOSITION_CALLS;
    plan->kills = 1 + (int)dice_roll(d, 2);
    plan->thinks = (int)ONE_OF(d, 20, 60, 300);
}

void composition_plan_make(composition_plan *plan, uint64_t seed)
{
    dice d = dice_of(seed, 1);
    const composition_row *row = draw_row(&d);
    *plan = (composition_plan){.row = row};
    plan->http = dice_once_in(&d, 8);
    plan->sqlite = dice_once_in(&d, 12);
    plan->restartable = !dice_once_in(&d, 4);
    plan->calls = 1 + (int)dice_roll(&d, COMPOSITION_CALLS);
    plan->batch = (int)ONE_OF(&d, 1, 2, 5, COMPOSITION_STEPS);
    plan->piece = ONE_OF(&d, 7, 64, 1000, 100000);
    plan->room = ONE_OF(&d, 7, 100, 4000, 1 << 20);
    /* A line of few bytes a turn is slow, so its blocks are small. */
    plan->largest =
        plan->room < 1000 || plan->piece < 1000 ? 200 : ONE_OF(&d, 1000, 10000, 90000);
    plan->slowness = ONE_OF(&d, 1, 1, 2, 10);
    plan->cuts = (int)ONE_OF(&d, 0, 0, 1, 2, 4);
    plan->kills = (int)ONE_OF(&d, 0, 0, 0, 1, 2);
    plan->restarts = (int)ONE_OF(&d, 0, 0, 0, 1, 2);
    if (row->flags & ROW_STAYS)
        plan->restarts = 0;
    plan->repeats = row->flags & ROW_REPEATS ? (int)ONE_OF(&d, 0, 2, 10) : 0;
    plan->reorders = row->flags & ROW_REORDERS ? (int)ONE_OF(&d, 0, 2, 10) : 0;
    plan->max_queue = ONE_OF(&d, 0, 0, 3000, 100000);
    plan->credit = ONE_OF(&d, 0, 0, 1, 5);
    plan->discard = dice_once_in(&d, 8);
    plan->cancels = dice_once_in(&d, 16);
    plan->read_bytes = (size_t)ONE_OF(&d, 0, 1, 500, 20000);
    plan->keeps = dice_once_in(&d, 2);
    plan->people = 1 + (int)dice_roll(&d, COMPOSITION_PEOPLE);
    plan->thinks = (int)ONE_OF(&d, 3, 3, 60, 300);
    if (row->flags & ROW_ASKS && dice_once_in(&d, 4))
        ask_much(plan, &d);
}

void composition_plan_print(const composition_plan *plan, char *out, size_t size)
{
    snprintf(
        out, size,
        "%s, %s, %s, %s, %d calls, batch %d, piece %u, room %u, slowness %u, "
        "%d cuts, %d kills, %d restarts, repeats %d, reorders %d, queue %d, "
        "credit %d, read %zu, %d people, thinks %d%s%s%s%s",
        plan->row->name, plan->http ? "HTTP" : "line", plan->sqlite ? "SQLite" : "memory",
        plan->restartable ? "restartable" : "not restartable", plan->calls, plan->batch,
        plan->piece, plan->room, plan->slowness, plan->cuts, plan->kills, plan->restarts,
        plan->repeats, plan->reorders, (int)plan->max_queue, (int)plan->credit,
        plan->read_bytes, plan->people, plan->thinks,
        plan->asks_much ? ", asks much" : "", plan->keeps ? ", keeps" : "",
        plan->discard ? ", discard" : "", plan->cancels ? ", cancels" : "");
}
