#include "support/threads_rig.h"

#include <poll.h>
#include <sched.h>
#include <stdarg.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void count_wake(void *user)
{
    atomic_fetch_add(&((threads_rig *)user)->woken, 1);
}

static void begin(threads_rig *r, const segue_hooks *hooks, int32_t lend_input)
{
    *r = (threads_rig){0};
    test_mem_init(&r->mem);
    segue_runtime_options options = {.struct_size = sizeof options,
                                     .allocator = &r->mem.mem,
                                     .hooks = hooks,
                                     .user = r,
                                     .on_wake = count_wake,
                                     .lend_input = lend_input};
    assert_int_equal(sgi_runtime_new(&options, &r->rt, NULL), SEGUE_OK);
    r->engine = sgi_runtime_engine(r->rt);
}

void threads_begin_with(threads_rig *r, const segue_hooks *hooks)
{
    begin(r, hooks, 0);
}

static int64_t still_clock(void *user)
{
    (void)user;
    return 1000;
}

const segue_hooks threads_standing = {sizeof threads_standing, NULL, still_clock, NULL,
                                      NULL};

void threads_begin(threads_rig *r)
{
    threads_begin_with(r, NULL);
}

void threads_begin_lending(threads_rig *r, const segue_hooks *hooks)
{
    begin(r, hooks, 1);
    r->rt->lending.patience_ms = 3600 * 1000;
    assert_int_equal(sgi_runtime_start(r->rt), SEGUE_OK);
}

void threads_until_lent(threads_rig *r)
{
    bool lent = false;
    assert_int_equal(sgi_runtime_dispatch(r->rt, 0, 0, NULL), SEGUE_OK);
    assert_int_equal(sgi_runtime_dispatch(r->rt, 0, 0, NULL), SEGUE_OK);
    for (; !lent; sched_yield()) {
        sgi_runtime_lock(r->rt);
        lent = r->rt->lending.lent && r->rt->loop.asleep && !r->rt->loop.work_count;
        sgi_runtime_unlock(r->rt);
    }
}

void threads_until_asleep(threads_rig *r)
{
    for (bool asleep = false; !asleep; sched_yield()) {
        sgi_runtime_lock(r->rt);
        asleep = r->rt->loop.asleep && !r->rt->loop.work_count;
        sgi_runtime_unlock(r->rt);
    }
}

void threads_until_awaiting_quiet(threads_rig *r)
{
    for (bool awaiting = false; !awaiting; sched_yield()) {
        sgi_runtime_lock(r->rt);
        awaiting = !TAILQ_EMPTY(&r->rt->loop.awaiting);
        sgi_runtime_unlock(r->rt);
    }
}

void threads_end(threads_rig *r)
{
    sgi_runtime_free(r->rt);
    assert_int_equal(r->mem.live, 0);
}

static int32_t run_event(sgi_ready_object *ready, int32_t budget)
{
    event *e = SGI_OWNER(ready, event, ready);
    int32_t ran = 0;
    while (e->left > 0 && ran < budget) {
        e->left--;
        ran++;
        e->thread = pthread_self();
        sgi_user_code_begin(e->r->engine);
        if (e->body)
            e->body(e);
        sgi_user_code_end(e->r->engine);
        atomic_fetch_add(&e->ran, 1);
    }
    if (e->left)
        sgi_ready_queue_add(e->r->engine, &e->ready);
    return ran;
}

void event_prepare(threads_rig *r, event *e, int32_t times, void (*body)(event *))
{
    *e = (event){.ready = {.run = run_event}, .r = r, .left = times, .body = body};
}

void event_queue(threads_rig *r, event *e)
{
    sgi_runtime_lock(r->rt);
    sgi_ready_queue_add(r->engine, &e->ready);
    sgi_runtime_unlock(r->rt);
}

bool threads_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1;
}

void threads_pause(void)
{
    sched_yield();
}
