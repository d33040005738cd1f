#include "support/runtime_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t read_clock(void *user)
{
    return ((rig *)user)->now;
}

void rig_set_up(rig *r)
{
    *r = (rig){.now = 5000};
    test_mem_init(&r->mem);
    r->hooks = (segue_hooks){sizeof r->hooks, r, read_clock, NULL, NULL};
    segue_runtime_options options = {
        .struct_size = sizeof options, .allocator = &r->mem.mem, .hooks = &r->hooks};
    assert_int_equal(sgi_runtime_new(&options, &r->rt, NULL), SEGUE_OK);
    r->engine = sgi_runtime_engine(r->rt);
}

void rig_tear_down(rig *r)
{
    sgi_runtime_free(r->rt);
    assert_int_equal(r->mem.live, 0);
}

int32_t rig_dispatch(rig *r, int32_t max_events)
{
    int32_t ran = -1;
    assert_int_equal(sgi_runtime_dispatch(r->rt, 0, max_events, &ran), SEGUE_OK);
    return ran;
}
