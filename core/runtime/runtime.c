/* The life of a runtime.
 *
 *     NEW --run, dispatch--> INLINE     \
 *        \--start--> BACKGROUND -------> stopped --free--> draining --> dead
 *
 * The struct has a reference count: the application's handle is one reference, and every
 * other handle and every transport holds one more. The lock protects `refs`. The
 * thread that takes the count to zero frees the struct in the unlock that follows. No
 * other thread can be waiting for the lock then, because a thread that waits holds a
 * reference.
 *
 * sgi_runtime_free does the following in this order. It stops and joins the I/O thread;
 * from then on the caller of sgi_runtime_free is the loop thread and runs the
 * callbacks. The stop hooks let servers and sessions close themselves. Every transport
 * is asked to close and gets its grace time to write its remaining output; transports
 * that are left are then cut off. The store workers commit what is dirty, and
 * callbacks run until no callback is due. Then workers, loop and descriptors are freed.
 * During all these steps the engine's time follows the real clock, even with an injected
 * clock: no thread could move the injected clock now, and only a timer may end the wait.
 *
 * `outside` records which thread is in the application's code. Only that thread writes
 * the record, without the lock, and writes its thread id first. Therefore a thread finds
 * its own id in the record only if it is inside the application's code. */
#include "runtime/state.h"

#include "base/thresholds.h"
#include "runtime/pool.h"
#include <assert.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include "engine/error.h"
#include "runtime/standard_fds.h"

#define DEFAULT_MESSAGE_BYTES ((size_t)64 * 1024 * 1024)
#define DEFAULT_QUEUE_BYTES SGI_THRESHOLD(queue_bytes)
#define DRAIN_BUDGET SGI_THRESHOLD(drain_callbacks)

enum { OUTSIDE_CALLBACK = 0, OUTSIDE_TRANSPORT = 1 };

/* ---- time and random numbers ---- */

static int64_t clock_ms(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t sgi_system_monotonic_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

static int64_t default_monotonic(void *user)
{
    (void)user;
    return clock_ms(CLOCK_MONOTONIC);
}

/* The default wall clock, which gives each log entry its time stamp. The system's coarse
 * clock is cheap, and is a few milliseconds behind, which is exact enough for time
 * stamps. */
static int64_t default_wall(void *user)
{
    (void)user;
    return clock_ms(CLOCK_REALTIME_COARSE);
}

static int64_t hook_monotonic(void *user)
{
    const segue_runtime *rt = user;
    if (rt->life != SGI_LIFE_LIVE)
        return rt->drain.base_ms + (sgi_system_monotonic_ms() - rt->drain.real_ms);
    return rt->given.monotonic_ms(rt->given.user);
}

static int64_t hook_wall(void *user)
{
    const segue_runtime *rt = user;
    return rt->given.wall_ms(rt->given.user);
}

/* Takes random bytes from a pool, because one call of the system's generator takes longer
 * than making the ids that need the bytes. Used bytes are wiped from the pool. The caller
 * holds the lock, unless no other thread uses the runtime yet. */
static int32_t pooled_random(segue_runtime *rt, void *bytes, size_t len)
{
    if (len > sizeof rt->entropy.bytes / 4)
        return sgi_crypto_random(NULL, bytes, len);
    if (rt->entropy.left < len) {
        if (sgi_crypto_random(NULL, rt->entropy.bytes, sizeof rt->entropy.bytes) != 0)
            return -1;
        rt->entropy.left = sizeof rt->entropy.bytes;
    }
    rt->entropy.left -= len;
    memcpy(bytes, rt->entropy.bytes + rt->entropy.left, len);
    memset(rt->entropy.bytes + rt->entropy.left, 0, len);
    return 0;
}

static int32_t hook_random(void *user, void *bytes, size_t len)
{
    segue_runtime *rt = user;
    return rt->given.random ? rt->given.random(rt->given.user, bytes, len)
                            : pooled_random(rt, bytes, len);
}

static void set_hooks(segue_runtime *rt, const segue_hooks *given)
{
    if (given)
        rt->given = *given;
    if (!rt->given.monotonic_ms)
        rt->given.monotonic_ms = default_monotonic;
    if (!rt->given.wall_ms)
        rt->given.wall_ms = default_wall;
    rt->hooks =
        (segue_hooks){sizeof rt->hooks, rt, hook_monotonic, hook_wall, hook_random};
    if (rt->given.monotonic_ms == default_monotonic)
        /* the system's clock goes on at the end of the runtime, too */
        rt->hooks.monotonic_ms = default_monotonic;
}

/* ---- the lock ---- */

static void destroy(segue_runtime *rt)
{
    sgi_mem mem = rt->mem;
    sgi_engine_free(&rt->engine);
    sgi_crypto_hasher_free(&rt->hasher);
    pthread_cond_destroy(&rt->dispatch.left);
    pthread_cond_destroy(&rt->helper.wanted);
    pthread_mutex_destroy(&rt->mutex);
    rt->magic = 0;
    sgi_free(&mem, rt, sizeof *rt);
    sgi_pool_close(&mem);
}

void sgi_runtime_lock(segue_runtime *rt)
{
    pthread_mutex_lock(&rt->mutex);
}

/* Runs callbacks that become due after the runtime was freed, such as the free_user of a
 * handle that is freed later. The caller holds the lock. */
static void deliver_late(segue_runtime *rt)
{
    /* the added reference keeps the runtime in memory while a free_user frees the last
     * handle */
    rt->refs++;
    while (sgi_dispatch_deliver(rt, DRAIN_BUDGET))
        ;
    rt->refs--;
}

void sgi_runtime_unlock(segue_runtime *rt)
{
    assert(!rt->loop.works_here);
    if (rt->life == SGI_LIFE_DEAD && !rt->dispatch.delivering)
        deliver_late(rt);
    bool last = rt->refs == 0;
    sgi_loop_wake_threads(rt);
    pthread_mutex_unlock(&rt->mutex);
    if (last)
        destroy(rt);
}

static void enter_outside(sgi_thread_in_user_code *outside)
{
    atomic_store_explicit(&outside->thread, (uintptr_t)pthread_self(),
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&outside->depth, 1, memory_order_release);
}

static void leave_outside(sgi_thread_in_user_code *outside)
{
    atomic_fetch_sub_explicit(&outside->depth, 1, memory_order_release);
}

static bool is_outside(const sgi_thread_in_user_code *outside)
{
    return atomic_load_explicit(&outside->depth, memory_order_acquire) > 0 &&
           atomic_load_explicit(&outside->thread, memory_order_relaxed) ==
               (uintptr_t)pthread_self();
}

bool sgi_runtime_is_in_callback(const segue_runtime *rt)
{
    return is_outside(&rt->outside[OUTSIDE_CALLBACK]) ||
           is_outside(&rt->outside[OUTSIDE_TRANSPORT]);
}

void sgi_runtime_user_code_begin(segue_runtime *rt)
{
    enter_outside(&rt->outside[OUTSIDE_TRANSPORT]);
    sgi_runtime_unlock(rt);
}

void sgi_runtime_user_code_end(segue_runtime *rt)
{
    sgi_runtime_lock(rt);
    leave_outside(&rt->outside[OUTSIDE_TRANSPORT]);
}

static void host_unlock(void *user)
{
    segue_runtime *rt = user;
    enter_outside(&rt->outside[OUTSIDE_CALLBACK]);
    sgi_runtime_unlock(rt);
}

static void host_lock(void *user)
{
    segue_runtime *rt = user;
    sgi_runtime_lock(rt);
    leave_outside(&rt->outside[OUTSIDE_CALLBACK]);
}

static void host_log(void *user, int32_t level, const char *text)
{
    const segue_runtime *rt = user;
    if (rt->log && level >= rt->engine.log_level)
        rt->log(rt->user, level, text);
}

/* ---- references ---- */

static void host_retain(void *user)
{
    segue_runtime *rt = user;
    rt->refs++;
}

static void host_release(void *user)
{
    segue_runtime *rt = user;
    rt->refs--;
}

void sgi_runtime_ref(segue_runtime *rt)
{
    sgi_runtime_lock(rt);
    rt->refs++;
    sgi_runtime_unlock(rt);
}

void sgi_runtime_unref(segue_runtime *rt)
{
    sgi_runtime_lock(rt);
    rt->refs--;
    sgi_runtime_unlock(rt);
}

sgi_engine *sgi_runtime_engine(segue_runtime *rt)
{
    return &rt->engine;
}

bool sgi_runtime_is_open(const segue_runtime *rt)
{
    return atomic_load(&rt->open);
}

/* ---- creation ---- */

static void set_up_engine(segue_runtime *rt, const segue_runtime_options *options)
{
    sgi_env env = {&rt->mem, &rt->hooks};
    sgi_host_functions host = {.user = rt,
                               .lock = host_lock,
                               .unlock = host_unlock,
                               .log = host_log,
                               .retain = host_retain,
                               .release = host_release};
    sgi_loop_fill_host_functions(&host);
    sgi_stores_fill_host_functions(&host);
    sgi_engine_init(&rt->engine, &env, &host, sgi_crypto_digest, &sgi_crypto_aead);
    rt->engine.hasher = &rt->hasher;
    rt->engine.memory_outlives = !options->allocator;
    rt->engine.log_level = options->log_level;
    rt->engine.is_camel = options->camel_case != 0;
    sgi_engine_set_limits(
        &rt->engine,
        options->max_message_bytes > 0 ? (size_t)options->max_message_bytes
                                       : DEFAULT_MESSAGE_BYTES,
        options->max_depth > 0 ? options->max_depth : SGI_JSON_DEFAULT_DEPTH,
        options->max_queue_bytes > 0 ? (size_t)options->max_queue_bytes
                                     : DEFAULT_QUEUE_BYTES);
}

static segue_runtime *make(const segue_runtime_options *options)
{
    sgi_mem mem;
    if (options->allocator)
        mem = *options->allocator;
    else if (!sgi_pool_open(&mem))
        return NULL;
    segue_runtime *rt = sgi_zalloc(&mem, sizeof *rt);
    if (!rt) {
        sgi_pool_close(&mem);
        return NULL;
    }
    rt->magic = SGI_MAGIC_RUNTIME;
    rt->mem = mem;
    rt->refs = 1;
    rt->user = options->user;
    rt->log = options->log;
    rt->on_wake = options->on_wake;
    rt->lending.front_fd = -1;
    atomic_init(&rt->open, true);
    pthread_mutex_init(&rt->mutex, NULL);
    pthread_cond_init(&rt->dispatch.left, NULL);
    sgi_helper_init(rt);
    TAILQ_INIT(&rt->stores.slots);
    TAILQ_INIT(&rt->stores.closing);
    LIST_INIT(&rt->hooks_on_stop);
    set_hooks(rt, options->hooks);
    set_up_engine(rt, options);
    return rt;
}

segue_status sgi_runtime_new(const segue_runtime_options *options, segue_runtime **out,
                             segue_error **error)
{
    segue_runtime *rt = make(options);
    sgi_standard_fds_occupy();
    if (!rt)
        return sgi_error_return(error,
                                options->allocator ? options->allocator : &sgi_mem_libc,
                                SEGUE_E_NOMEM, "out of memory");
    segue_status status = sgi_loop_open(rt);
    rt->dispatch.ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (status == SEGUE_OK && rt->dispatch.ready_fd < 0)
        status = SEGUE_E_IO;
    if (status == SEGUE_OK && options->lend_input)
        status = sgi_inlets_enable_lending(rt);
    if (status != SEGUE_OK) {
        sgi_error_return(error, &rt->mem, status, "%s",
                         status == SEGUE_E_NOMEM
                             ? "out of memory"
                             : "the system has no free file descriptor for the runtime");
        sgi_inlets_disable_lending(rt);
        sgi_loop_close(rt);
        if (rt->dispatch.ready_fd >= 0)
            close(rt->dispatch.ready_fd);
        destroy(rt);
        return status;
    }
    *out = rt;
    return SEGUE_OK;
}

/* ---- stopping and freeing ---- */

void sgi_runtime_add_stop_hook(segue_runtime *rt, sgi_stop_hook *hook)
{
    hook->set = true;
    LIST_INSERT_HEAD(&rt->hooks_on_stop, hook, link);
}

void sgi_runtime_remove_stop_hook(segue_runtime *rt, sgi_stop_hook *hook)
{
    (void)rt;
    if (!hook->set)
        return;
    hook->set = false;
    LIST_REMOVE(hook, link);
}

/* Stops the runtime. A signal handler may call the function, even on a thread that holds
 * the lock. Therefore the function takes no lock and uses only what is safe in a signal
 * handler: an atomic flag, write, and libev's wake-up, which saves errno itself. The flag
 * is set first, and every thread checks the flag before it waits. When the I/O thread
 * ends, it makes ready_fd readable for good (run_io_thread), so a dispatch that clears
 * ready_fd at this moment does not hide the stop. */
segue_status sgi_runtime_stop(segue_runtime *rt)
{
    uint64_t one = 1;
    int fault = errno;
    if (!atomic_exchange(&rt->open, false))
        return SEGUE_OK;
    ssize_t written = write(rt->dispatch.ready_fd, &one, sizeof one);
    /* with EAGAIN the counter is full, so the descriptor is already readable */
    (void)written;
    errno = fault;
    ev_async_send(rt->loop.ev, &rt->loop.wake_up);
    return SEGUE_OK;
}

segue_status sgi_runtime_cork(segue_runtime *rt)
{
    sgi_runtime_lock(rt);
    rt->loop.corks++;
    sgi_runtime_unlock(rt);
    return SEGUE_OK;
}

segue_status sgi_runtime_uncork(segue_runtime *rt)
{
    segue_status status = SEGUE_E_STATE;
    sgi_runtime_lock(rt);
    if (rt->loop.corks > 0) {
        rt->loop.corks--;
        status = SEGUE_OK;
    }
    sgi_runtime_unlock(rt);
    return status;
}

static void run_stop_hooks(segue_runtime *rt)
{
    sgi_stop_hook *hook;
    while ((hook = LIST_FIRST(&rt->hooks_on_stop))) {
        sgi_runtime_remove_stop_hook(rt, hook);
        hook->fn(hook);
    }
}

/* Runs callbacks and does the work of stores until no callback and no work of a store is
 * left. */
static void deliver_all(segue_runtime *rt)
{
    do {
        while (sgi_dispatch_deliver(rt, DRAIN_BUDGET))
            ;
        sgi_stores_run_due_work(rt);
        sgi_stores_wait_idle(rt);
    } while (!TAILQ_EMPTY(&rt->engine.ready) || rt->stores.due);
}

static sgi_carrier *first_attached(const segue_runtime *rt)
{
    sgi_carrier *carrier;
    TAILQ_FOREACH(carrier, &rt->loop.carriers, link)
        if (carrier->attached)
            return carrier;
    return NULL;
}

static void close_carriers(segue_runtime *rt)
{
    sgi_carrier *carrier;
    int64_t grace = 0;
    TAILQ_FOREACH(carrier, &rt->loop.carriers, link) {
        sgi_carrier_request_work(carrier, SGI_WORK_CLOSE);
        if (carrier->attached && carrier->grace_ms > grace)
            grace = carrier->grace_ms;
    }
    int64_t deadline = sgi_system_monotonic_ms() + grace;
    while (first_attached(rt)) {
        int64_t left = deadline - sgi_system_monotonic_ms();
        if (left <= 0)
            break;
        sgi_loop_turn(rt, left, DRAIN_BUDGET);
    }
}

/* Makes all carriers (the loop's part of each transport) release everything except
 * memory. Attached carriers are destroyed at the end of the turn. The other carriers
 * belong to the application, which can still drop them at any time. */
static void abandon_carriers(segue_runtime *rt)
{
    sgi_carrier *carrier;
    while ((carrier = TAILQ_FIRST(&rt->loop.carriers))) {
        if (!carrier->attached) {
            carrier->listed = false;
            TAILQ_REMOVE(&rt->loop.carriers, carrier, link);
        }
        carrier->ops->abandon(carrier);
    }
    sgi_loop_destroy_retired(rt);
}

/* Moves the runtime to the next stage of its life: LIVE -> DRAINING -> DEAD. No other
 * function changes the stage. */
static void live_on(segue_runtime *rt, sgi_runtime_life life)
{
    assert((int)life == (int)rt->life + 1);
    rt->life = life;
}

void sgi_runtime_free(segue_runtime *rt)
{
    if (!rt || sgi_runtime_is_in_callback(rt))
        return;
    sgi_runtime_stop(rt);
    if (rt->dispatch.joinable)
        pthread_join(rt->dispatch.io_thread, NULL);
    sgi_runtime_lock(rt);
    while (rt->dispatch.looping)
        pthread_cond_wait(&rt->dispatch.left, &rt->mutex);
    rt->drain.base_ms = sgi_now(&rt->engine.env);
    rt->drain.real_ms = sgi_system_monotonic_ms();
    live_on(rt, SGI_LIFE_DRAINING);
    sgi_inlets_take_back(rt);
    run_stop_hooks(rt);
    close_carriers(rt);
    abandon_carriers(rt);
    deliver_all(rt);
    sgi_helper_close(rt);
    sgi_stores_close(rt);
    while (sgi_dispatch_deliver(rt, DRAIN_BUDGET))
        ;
    live_on(rt, SGI_LIFE_DEAD);
    rt->loop.kick_due = rt->loop.flush_due = rt->dispatch.notify_due = rt->loop.asleep =
        false;
    sgi_inlets_disable_lending(rt);
    sgi_loop_close(rt);
    close(rt->dispatch.ready_fd);
    rt->refs--;
    sgi_runtime_unlock(rt);
}
