/* All steps come before four fifths of the text, so that there is always something left
 * to lose. Cuts come a little earlier, because a pair of them takes some time. */
#include "plan.h"

#include <stdlib.h>

#define MOST_DELAY_MS 60
#define CUT_PAIRS 4
#define GATE_PART 25 /* the part of the text that may be under way: 1/25 */

/* splitmix64 */
uint64_t plan_draw(uint64_t *random, uint64_t below)
{
    uint64_t x = *random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

/* places: thousandths of the text. */
static void add_step(plan *p, uint64_t *random, deed what, size_t segments,
                     uint64_t first, uint64_t places)
{
    uint64_t place = first + plan_draw(random, places);
    p->steps[p->count++] =
        (plan_step){.what = what,
                    .at = (size_t)((uint64_t)segments * place / 1000),
                    .delay_ms = (int64_t)plan_draw(random, MOST_DELAY_MS)};
}

static int by_place(const void *a, const void *b)
{
    const plan_step *one = a, *other = b;
    return (one->at > other->at) - (one->at < other->at);
}

void plan_make(plan *p, uint64_t *random, size_t segments, bool cuts)
{
    size_t kills = 3 + (size_t)plan_draw(random, 2);
    *p = (plan){0};
    for (size_t i = 0; i < kills; i++)
        add_step(p, random, KILL_SERVER, segments, 50, 750);
    p->steps[plan_draw(random, kills)].what = KILL_CLIENT;
    if (cuts)
        p->steps[p->count++] = (plan_step){.what = CUT};
    for (size_t i = 1; cuts && i < CUT_PAIRS; i++)
        add_step(p, random, CUT, segments, 50, 600);
    qsort(p->steps, p->count, sizeof *p->steps, by_place);
}

/* A cut needs bytes on their way, so the text goes on until the cut has come. */
size_t plan_gate(const plan *p, size_t segments, size_t lines)
{
    const plan_step *next = &p->steps[p->next];
    if (p->next == p->count)
        return lines;
    size_t from = next->what == CUT && segments > next->at ? segments : next->at;
    from += lines / GATE_PART + 1;
    return from < lines ? from : lines - 1;
}
