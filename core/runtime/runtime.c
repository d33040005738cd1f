/* Life of a runtime.
 *
 *   NEW --run, dispatch--> INLINE \
 *    \--start--> BACKGROUND -------> stopped --free--> draining --> dead
 *
 * The struct is counted: the application's handle is one reference, every handle that was
 * given out, every transport one more. `refs` is guarded by the lock, and whoever takes
 * it to zero frees the struct in the unlock that follows: nobody else can be waiting for
 * the lock then, because waiting takes a reference.
 *
 * What sgi_runtime_free does, in this order: stops and joins the I/O thread; from here on
 * its caller is the loop thread and runs the callbacks. The stop hooks let servers and
 * sessions close themselves. Every transport is asked to close and gets its grace to
 * write what is left; then those that are still there are cut off. The store workers
 * finish what is dirty, the callbacks that come of it run, until nothing is due. Then
 * workers, loop and descriptors go. While this goes on engine time follows the real
 * clock, also under an injected one: nobody could move it, and a timer might be all that
 * ends the wait.
 *
 * `outside` records who is in code of the application. It is written without the lock by
 * the thread it names, thread first, so that a thread finds itself there only if it is
 * inside. */
#include "runtime/state.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include "engine/error.h"
#include "runtime/standard_fds.h"

#define DEFAULT_MESSAGE_BYTES ((size_t)64 * 1024 * 1024)
#define DEFAULT_DEPTH 512
#define DEFAULT_QUEUE_BYTES ((size_t)1024 * 1024)
#define DRAIN_BUDGET 1024

enum { OUTSIDE_CALLBACK = 0, OUTSIDE_TRANSPORT = 1 };

/* ---- time and chance ---- */

static int64_t clock_ms(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t sgi_real_now(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

static int64_t default_monotonic(void *user)
{
    (void)user;
    return clock_ms(CLOCK_MONOTONIC);
}

/* Stamps need no more than the few milliseconds that the coarse clock is behind, and each
 * entry of a log gets one. */
static int64_t default_wall(void *user)
{
    (void)user;
    return clock_ms(CLOCK_REALTIME_COARSE);
}

static int64_t hook_monotonic(void *user)
{
    const segue_runtime *rt = user;
    if (rt->draining)
        return rt->drain_base_ms + (sgi_real_now() - rt->drain_real_ms);
    return rt->given.monotonic_ms(rt->given.user);
}

static int64_t hook_wall(void *user)
{
    const segue_runtime *rt = user;
    return rt->given.wall_ms(rt->given.user);
}

/* A draw from the system's generator costs more than the ids made of it: it is made for
 * many at once. What is handed out is wiped. Lock held, or nobody else there yet. */
static int32_t pooled_random(segue_runtime *rt, void *bytes, size_t len)
{
    if (len > sizeof rt->chance / 4)
        return sgi_crypto_random(NULL, bytes, len);
    if (rt->chance_left < len) {
        if (sgi_crypto_random(NULL, rt->chance, sizeof rt->chance) != 0)
            return -1;
        rt->chance_left = sizeof rt->chance;
    }
    rt->chance_left -= len;
    memcpy(bytes, rt->chance + rt->chance_left, len);
    memset(rt->chance + rt->chance_left, 0, len);
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
}

/* ---- the lock ---- */

static void destroy(segue_runtime *rt)
{
    sgi_mem mem = rt->mem;
    sgi_engine_free(&rt->engine);
    sgi_crypto_hasher_free(rt->engine.hasher);
    pthread_cond_destroy(&rt->left);
    pthread_mutex_destroy(&rt->mutex);
    rt->magic = 0;
    sgi_release(&mem, rt, sizeof *rt);
}

void sgi_runtime_lock(segue_runtime *rt)
{
    pthread_mutex_lock(&rt->mutex);
}

/* Lock held. What a handle leaves that is freed after its runtime, which is its free_user
 * at most, has nobody else to run it. */
static void deliver_late(segue_runtime *rt)
{
    rt->refs++; /* a free_user may free the last handle */
    while (sgi_dispatch_deliver(rt, DRAIN_BUDGET))
        ;
    rt->refs--;
}

void sgi_runtime_unlock(segue_runtime *rt)
{
    if (rt->dead && !rt->delivering)
        deliver_late(rt);
    bool last = rt->refs == 0;
    sgi_loop_signal(rt);
    pthread_mutex_unlock(&rt->mutex);
    if (last)
        destroy(rt);
}

static void enter_outside(sgi_outside *outside)
{
    atomic_store_explicit(&outside->thread, (uintptr_t)pthread_self(),
                          memory_order_relaxed);
    atomic_fetch_add_explicit(&outside->depth, 1, memory_order_release);
}

static void leave_outside(sgi_outside *outside)
{
    atomic_fetch_sub_explicit(&outside->depth, 1, memory_order_release);
}

static bool is_outside(const sgi_outside *outside)
{
    return atomic_load_explicit(&outside->depth, memory_order_acquire) > 0 &&
           atomic_load_explicit(&outside->thread, memory_order_relaxed) ==
               (uintptr_t)pthread_self();
}

bool sgi_runtime_in_callback(const segue_runtime *rt)
{
    return is_outside(&rt->outside[OUTSIDE_CALLBACK]) ||
           is_outside(&rt->outside[OUTSIDE_TRANSPORT]);
}

void sgi_runtime_leave(segue_runtime *rt)
{
    enter_outside(&rt->outside[OUTSIDE_TRANSPORT]);
    sgi_runtime_unlock(rt);
}

void sgi_runtime_return(segue_runtime *rt)
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

/* ---- beginning ---- */

static void set_up_engine(segue_runtime *rt, const segue_runtime_options *options)
{
    sgi_env env = {&rt->mem, &rt->hooks};
    sgi_host host = {.user = rt,
                     .lock = host_lock,
                     .unlock = host_unlock,
                     .log = host_log,
                     .retain = host_retain,
                     .release = host_release};
    sgi_loop_host(&host);
    sgi_stores_host(&host);
    sgi_engine_init(&rt->engine, &env, &host, sgi_crypto_digest, &sgi_crypto_aead);
    rt->engine.hasher = sgi_crypto_hasher();
    rt->engine.log_level = options->log_level;
    sgi_engine_set_limits(&rt->engine,
                          options->max_message_bytes > 0
                              ? (size_t)options->max_message_bytes
                              : DEFAULT_MESSAGE_BYTES,
                          options->max_depth > 0 ? options->max_depth : DEFAULT_DEPTH,
                          options->max_queue_bytes > 0 ? (size_t)options->max_queue_bytes
                                                       : DEFAULT_QUEUE_BYTES);
}

static segue_runtime *make(const segue_runtime_options *options)
{
    const sgi_mem *mem = options->allocator ? options->allocator : &sgi_mem_libc;
    segue_runtime *rt = sgi_zalloc(mem, sizeof *rt);
    if (!rt)
        return NULL;
    rt->magic = SGI_MAGIC_RUNTIME;
    rt->mem = *mem;
    rt->refs = 1;
    rt->user = options->user;
    rt->log = options->log;
    rt->on_wake = options->on_wake;
    rt->front_fd = -1;
    atomic_init(&rt->open, true);
    pthread_mutex_init(&rt->mutex, NULL);
    pthread_cond_init(&rt->left, NULL);
    TAILQ_INIT(&rt->stores);
    TAILQ_INIT(&rt->closing_stores);
    LIST_INIT(&rt->hooks_on_stop);
    set_hooks(rt, options->hooks);
    set_up_engine(rt, options);
    return rt;
}

segue_status sgi_runtime_new(const segue_runtime_options *options, segue_runtime **out,
                             segue_error **error)
{
    segue_runtime *rt = make(options);
    sgi_hold_standard_fds();
    if (!rt)
        return sgi_error_give(error,
                              options->allocator ? options->allocator : &sgi_mem_libc,
                              SEGUE_E_NOMEM, "out of memory");
    segue_status status = sgi_loop_open(rt);
    rt->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (status == SEGUE_OK && rt->ready_fd < 0)
        status = SEGUE_E_IO;
    if (status == SEGUE_OK && options->lend_input)
        status = sgi_inlets_open(rt);
    if (status != SEGUE_OK) {
        sgi_error_give(error, &rt->mem, status, "%s",
                       status == SEGUE_E_NOMEM ? "out of memory"
                                               : "the system has no descriptor to spare");
        sgi_inlets_close(rt);
        sgi_loop_close(rt);
        if (rt->ready_fd >= 0)
            close(rt->ready_fd);
        destroy(rt);
        return status;
    }
    *out = rt;
    return SEGUE_OK;
}

/* ---- end ---- */

void sgi_runtime_on_stop(segue_runtime *rt, sgi_stop_hook *hook)
{
    hook->set = true;
    LIST_INSERT_HEAD(&rt->hooks_on_stop, hook, link);
}

void sgi_runtime_off_stop(segue_runtime *rt, sgi_stop_hook *hook)
{
    (void)rt;
    if (!hook->set)
        return;
    hook->set = false;
    LIST_REMOVE(hook, link);
}

/* A signal handler may call this, on a thread that holds the lock. So it takes no lock
 * and uses only what is safe there: an atomic flag, write, and libev's wake-up, which
 * saves errno itself. The flag is set first, and every thread looks at it before it
 * waits. The I/O thread of a background runtime rings for good when it ends
 * (run_io_thread): a dispatch that clears the descriptor at this moment does not hide the
 * stop. */
segue_status sgi_runtime_stop(segue_runtime *rt)
{
    uint64_t one = 1;
    int fault = errno;
    if (!atomic_exchange(&rt->open, false))
        return SEGUE_OK;
    ssize_t written = write(rt->ready_fd, &one, sizeof one);
    (void)written; /* EAGAIN: the counter is full, so it is readable */
    errno = fault;
    ev_async_send(rt->loop, &rt->wake_up);
    return SEGUE_OK;
}

segue_status sgi_runtime_cork(segue_runtime *rt)
{
    sgi_runtime_lock(rt);
    rt->corks++;
    sgi_runtime_unlock(rt);
    return SEGUE_OK;
}

segue_status sgi_runtime_uncork(segue_runtime *rt)
{
    segue_status status = SEGUE_E_STATE;
    sgi_runtime_lock(rt);
    if (rt->corks > 0) {
        rt->corks--;
        status = SEGUE_OK;
    }
    sgi_runtime_unlock(rt);
    return status;
}

static void run_stop_hooks(segue_runtime *rt)
{
    sgi_stop_hook *hook;
    while ((hook = LIST_FIRST(&rt->hooks_on_stop))) {
        sgi_runtime_off_stop(rt, hook);
        hook->fn(hook);
    }
}

/* Lets callbacks and stores go on until neither has anything left. */
static void deliver_all(segue_runtime *rt)
{
    do {
        while (sgi_dispatch_deliver(rt, DRAIN_BUDGET))
            ;
        sgi_stores_work(rt);
        sgi_stores_settle(rt);
    } while (!TAILQ_EMPTY(&rt->engine.ready) || rt->loop_stores_due);
}

static sgi_carrier *first_attached(const segue_runtime *rt)
{
    sgi_carrier *carrier;
    TAILQ_FOREACH(carrier, &rt->carriers, link)
        if (carrier->attached)
            return carrier;
    return NULL;
}

static void close_carriers(segue_runtime *rt)
{
    sgi_carrier *carrier;
    int64_t grace = 0;
    TAILQ_FOREACH(carrier, &rt->carriers, link) {
        sgi_carrier_raise(carrier, SGI_WORK_CLOSE);
        if (carrier->attached && carrier->grace_ms > grace)
            grace = carrier->grace_ms;
    }
    int64_t deadline = sgi_real_now() + grace;
    while (first_attached(rt)) {
        int64_t left = deadline - sgi_real_now();
        if (left <= 0)
            break;
        sgi_loop_turn(rt, left, DRAIN_BUDGET);
    }
}

/* Attached ones retire; the others are their owner's, who may drop them at any time. */
static void abandon_carriers(segue_runtime *rt)
{
    sgi_carrier *carrier;
    while ((carrier = TAILQ_FIRST(&rt->carriers))) {
        if (!carrier->attached) {
            carrier->listed = false;
            TAILQ_REMOVE(&rt->carriers, carrier, link);
        }
        carrier->ops->abandon(carrier);
    }
    sgi_loop_bury(rt);
}

void sgi_runtime_free(segue_runtime *rt)
{
    if (!rt || sgi_runtime_in_callback(rt))
        return;
    sgi_runtime_stop(rt);
    if (rt->joinable)
        pthread_join(rt->io_thread, NULL);
    sgi_runtime_lock(rt);
    while (rt->looping)
        pthread_cond_wait(&rt->left, &rt->mutex);
    rt->drain_base_ms = sgi_now(&rt->engine.env);
    rt->drain_real_ms = sgi_real_now();
    rt->draining = true;
    sgi_inlets_take_back(rt);
    run_stop_hooks(rt);
    close_carriers(rt);
    abandon_carriers(rt);
    deliver_all(rt);
    sgi_stores_close(rt);
    while (sgi_dispatch_deliver(rt, DRAIN_BUDGET))
        ;
    rt->dead = true;
    rt->kick_due = rt->flush_due = rt->ring_due = rt->asleep = false;
    sgi_inlets_close(rt);
    sgi_loop_close(rt);
    close(rt->ready_fd);
    rt->refs--;
    sgi_runtime_unlock(rt);
}
