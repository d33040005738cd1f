/* A rig for tests of a runtime: an inline runtime with an injected clock and a counting
 * allocator. */
#ifndef RUNTIME_RIG_H
#define RUNTIME_RIG_H

#include "runtime/runtime.h"
#include "support/test_mem.h"

typedef struct rig {
    test_mem mem;
    segue_hooks hooks;
    int64_t now;
    segue_runtime *rt;
    sgi_engine *engine;
} rig;

void rig_set_up(rig *r);

void rig_tear_down(rig *r);

int32_t rig_dispatch(rig *r, int32_t max_events);

#endif
