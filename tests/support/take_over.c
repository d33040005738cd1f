#include "support/take_over.h"

#include "support/fixture_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

world take_over_other; /* server B; the world of the scenario is server A */

shared_place *take_over_place;

shared_store *take_over_instance;

void take_over_open_instance(segue_store **out, shared_store **self)
{
    shared_options options = {0};
    assert_int_equal(shared_store_new(take_over_place, &options, self, out), SEGUE_OK);
}

static int64_t clock_of(void *user)
{
    return ((const world *)user)->clock_ms;
}

void take_over_with_shared(world *w)
{
    if (take_over_place)
        shared_place_free(take_over_place);
    take_over_place = shared_place_new(LEASE_MS, clock_of, w);
    take_over_open_instance(&w->custom, &take_over_instance);
}

void take_over_begin(world *w)
{
    take_over_other = (world){.tune = w->tune, .furnish = w->furnish};
    if (take_over_place)
        take_over_open_instance(&take_over_other.custom, NULL);
    world_begin_beside(w, &take_over_other);
}

void take_over_end(void)
{
    world_end(&take_over_other);
}

int take_over_count_of(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

void take_over_let_all_go(world *w)
{
    segue_server_close(w->server);
    for (job *j = w->fixtures->jobs; j; j = j->next)
        fixture_drop(j);
    world_advance(w, 100);
}
