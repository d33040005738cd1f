/* The host of a runtime: the bell that wakes JavaScript, the batch of events, the side
 * queue, and the end of the runtime.
 *
 * Callbacks of the library run inside runtimeDispatch and append events to host->batch,
 * from which runtimeDispatch makes the array that it returns. There is no batch when the
 * environment ends or when the garbage collector frees the runtime. Without a batch,
 * events are dropped, and no JavaScript is touched.
 *
 * The bell is one thread-safe function of N-API. The bell is called ("rung") again only
 * after its callback has run, so its queue never has more than one entry. The bell keeps
 * the process alive only after runtimeHold. A runtime that lends its input also has a
 * front (front.c), which replaces the bell for everything except the side queue.
 *
 * Events of other threads (log lines, custom transports) are put into the side queue,
 * under a mutex. Dispatch moves these events into the batch. Log lines beyond
 * SGB_LINES_MAX are dropped. A transport's limit of unwritten bytes also limits its
 * entries.
 *
 * A host ends in this order. First the runtime is freed, which joins its threads, so no
 * thread calls the bell any more. Then the bell is freed. If the environment ends first,
 * the clean-up hook frees the runtime, and Node frees the bell. Hooks run in reverse
 * order, and the host's hook was set after the bell's own hook.
 *
 * A process that exits inside a callback cannot free the runtime, which is busy. The host
 * then stops the runtime and waits up to STOP_WAIT_S for its threads. Without this wait,
 * a thread could still run in a library that the process unloads. A thread that has
 * called the bell reports its end with a destructor of thread-specific data. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Maximum number of values that become an array in one call. The call passes the values
 * as arguments on the stack. */
#define MAX_ARGUMENTS 4096
/* How long to wait for the threads of a stopped runtime, in seconds. The I/O thread ends
 * within one turn of its loop. A store's thread ends only when the runtime is freed,
 * which is not possible while the runtime is busy. If a store's thread has ever woken
 * JavaScript (called the bell), the wait therefore lasts its full time, and the thread
 * continues to run. */
#define STOP_WAIT_S 1

/* ---- threads that call the bell ---- */

/* Counts the threads of the library that have called the bell (woken JavaScript) and have
 * not ended. The host and each of these threads hold a reference to the watch, because a
 * store's thread may outlive the runtime. */
struct sgnode_watch {
    _Atomic int refs;
    pthread_mutex_t mutex;
    pthread_cond_t gone;
    int threads;
};

static pthread_key_t ringer_key;
static pthread_once_t ringer_once = PTHREAD_ONCE_INIT;

static sgnode_watch *make_watch(void)
{
    sgnode_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    watch->refs = 1;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->gone, NULL);
    return watch;
}

static void unref_watch(sgnode_watch *watch)
{
    if (atomic_fetch_sub(&watch->refs, 1) != 1)
        return;
    pthread_cond_destroy(&watch->gone);
    pthread_mutex_destroy(&watch->mutex);
    free(watch);
}

/* The destructor of a thread that has called the bell (woken JavaScript). Runs when the
 * thread ends. */
static void leave_watch(void *value)
{
    sgnode_watch *watch = value;
    pthread_mutex_lock(&watch->mutex);
    watch->threads--;
    pthread_cond_broadcast(&watch->gone);
    pthread_mutex_unlock(&watch->mutex);
    unref_watch(watch);
}

static void make_key(void)
{
    pthread_key_create(&ringer_key, leave_watch);
}

/* Counts the calling thread when it calls the bell (wakes JavaScript) for the first time.
 * The environment's own thread is not counted. */
static void enter_watch(sgnode_host *host)
{
    sgnode_watch *watch = host->watch;
    pthread_once(&ringer_once, make_key);
    if (pthread_getspecific(ringer_key) || pthread_equal(pthread_self(), host->owner))
        return;
    pthread_mutex_lock(&watch->mutex);
    if (pthread_setspecific(ringer_key, watch) == 0) {
        watch->threads++;
        atomic_fetch_add(&watch->refs, 1);
    }
    pthread_mutex_unlock(&watch->mutex);
}

/* ---- the host ---- */

sgnode_host *sgnode_host_new(sgnode_env *self)
{
    sgnode_host *host = calloc(1, sizeof *host);
    if (!host)
        return NULL;
    host->refs = 1;
    host->self = sgnode_env_ref(self);
    sgb_side_init(&host->side, sgnode_wake, host);
    host->watch = make_watch();
    if (host->watch)
        return host;
    sgnode_host_unref(host);
    return NULL;
}

sgnode_host *sgnode_host_ref(sgnode_host *host)
{
    atomic_fetch_add(&host->refs, 1);
    return host;
}

/* Releases a reference to the host. Only the environment's thread releases the last
 * reference: a reference of another thread never outlives the runtime. */
void sgnode_host_unref(sgnode_host *host)
{
    if (atomic_fetch_sub(&host->refs, 1) != 1)
        return;
    free(host->batch.items);
    sgb_side_free(&host->side);
    if (host->watch)
        unref_watch(host->watch);
    sgnode_env_unref(host->self);
    free(host);
}

/* ---- the bell ---- */

void sgnode_ring(sgnode_host *host)
{
    if (!atomic_exchange(&host->rung, true))
        napi_call_threadsafe_function(host->bell, NULL, napi_tsfn_nonblocking);
}

void sgnode_wake(void *host)
{
    enter_watch(host);
    sgnode_ring(host);
}

void sgnode_note_thread(void *host)
{
    enter_watch(host);
}

static void hear_bell(napi_env env, napi_value on_wake, void *context, void *data)
{
    sgnode_host *host = context;
    napi_value receiver, result;
    (void)data;
    if (!env) /* the environment has ended, and the host was freed */
        return;
    atomic_store(&host->rung, false);
    if (on_wake && host->runtime && napi_get_undefined(env, &receiver) == napi_ok)
        napi_call_function(env, receiver, on_wake, 0, NULL, &result);
}

static void finalize_bell(napi_env env, void *data, void *context)
{
    (void)env;
    (void)context;
    sgnode_host_unref(data);
}

static void end_with_environment(void *data)
{
    sgnode_host *host = data;
    host->has_hook = false;
    host->leaves_bell = true;
    sgnode_host_end(host);
}

bool sgnode_host_open(sgnode_host *host, napi_value on_wake)
{
    napi_env env = host->self->env;
    napi_value name = sgnode_string(env, "segue");
    host->owner = pthread_self();
    if (!name || napi_create_threadsafe_function(
                     env, on_wake, NULL, name, 0, 1, sgnode_host_ref(host), finalize_bell,
                     host, hear_bell, &host->bell) != napi_ok) {
        sgnode_host_unref(host);
        return false;
    }
    napi_unref_threadsafe_function(env, host->bell);
    host->has_hook =
        napi_add_env_cleanup_hook(env, end_with_environment, host) == napi_ok;
    return host->has_hook;
}

/* ---- ending a host ---- */

static void forget(const sgnode_host *host, napi_ref *handler)
{
    if (*handler && host->self->env)
        napi_delete_reference(host->self->env, *handler);
    *handler = NULL;
}

static void drain_side(sgnode_host *host);

void sgnode_host_end(sgnode_host *host)
{
    napi_env env = host->self->env;
    segue_runtime *runtime = host->runtime;
    bool had_hook = host->has_hook;
    sgnode_host_ref(host);
    host->busy = true;
    host->has_hook = false;
    if (host->front)
        sgnode_front_end(host->front);
    host->front = NULL;
    if (runtime)
        segue_runtime_free(runtime);
    host->runtime = NULL;
    host->is_ended = true;
    drain_side(host);
    forget(host, &host->log);
    forget(host, &host->observer);
    if (had_hook)
        napi_remove_env_cleanup_hook(env, end_with_environment, host);
    if (host->bell && !host->leaves_bell)
        napi_release_threadsafe_function(host->bell, napi_tsfn_abort);
    host->bell = NULL;
    sgnode_host_unref(host);
}

void sgnode_host_stop(sgnode_host *host)
{
    sgnode_watch *watch = host->watch;
    struct timespec until;
    segue_runtime_stop(host->runtime);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STOP_WAIT_S;
    pthread_mutex_lock(&watch->mutex);
    while (watch->threads > 0)
        if (pthread_cond_timedwait(&watch->gone, &watch->mutex, &until) != 0)
            break;
    pthread_mutex_unlock(&watch->mutex);
}

/* ---- the batch ---- */

bool sgnode_list_add(sgnode_list *list, napi_value value)
{
    if (!value)
        return false;
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        napi_value *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return false;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = value;
    return true;
}

static napi_value fill_array(napi_env env, const sgnode_list *list)
{
    napi_value array;
    if (napi_create_array_with_length(env, list->count, &array) != napi_ok)
        return NULL;
    for (uint32_t i = 0; i < list->count; i++)
        if (napi_set_element(env, array, i, list->items[i]) != napi_ok)
            return NULL;
    return array;
}

napi_value sgnode_list_end(sgnode_env *self, sgnode_list *list)
{
    napi_env env = self->env;
    napi_value gather, receiver, array = NULL;
    if (list->count > MAX_ARGUMENTS)
        array = fill_array(env, list);
    else if (napi_get_reference_value(env, self->gather, &gather) == napi_ok &&
             napi_get_undefined(env, &receiver) == napi_ok &&
             napi_call_function(env, receiver, gather, list->count, list->items,
                                &array) != napi_ok)
        array = NULL;
    list->count = 0;
    return array;
}

bool sgnode_batch_begin(sgnode_frame *frame, sgnode_host *host)
{
    if (host->busy) {
        sgnode_throw(frame, SEGUE_E_REENTRANT);
        return false;
    }
    host->batch.count = 0;
    host->batches++;
    host->has_batch = true;
    host->busy = true;
    return true;
}

napi_value sgnode_batch_end(sgnode_host *host)
{
    drain_side(host);
    while (host->open)
        sgnode_segments_end(host->open);
    host->has_batch = false;
    host->busy = false;
    return sgnode_list_end(host->self, &host->batch);
}

bool sgnode_push(sgnode_host *host, napi_ref handler, int kind, napi_value a,
                 napi_value b, napi_value c)
{
    napi_env env = host->self->env;
    napi_value null = sgnode_null(env), function = null, number;
    sgnode_list *batch = &host->batch;
    size_t before = batch->count;
    if (!null || napi_create_int32(env, kind, &number) != napi_ok ||
        (handler && napi_get_reference_value(env, handler, &function) != napi_ok))
        return false;
    if (sgnode_list_add(batch, function) && sgnode_list_add(batch, number) &&
        sgnode_list_add(batch, a ? a : null) && sgnode_list_add(batch, b ? b : null) &&
        sgnode_list_add(batch, c ? c : null))
        return true;
    batch->count = before;
    return false;
}

void sgnode_push_exception(sgnode_host *host, const char *where)
{
    napi_value error;
    if (napi_get_and_clear_last_exception(host->self->env, &error) == napi_ok)
        sgnode_push(host, NULL, SGB_EXCEPTION, error,
                    sgnode_string(host->self->env, where), NULL);
}

/* ---- the side queue ---- */

/* Handles an entry that arrives after the end of the host. The only entry that still has
 * an effect is SGB_TRANSPORT_FREE of a transport that was never attached: its user is
 * freed. */
static bool put_late(sgnode_user *user, int kind)
{
    if (kind == SGB_TRANSPORT_FREE)
        sgnode_user_free(user);
    return false;
}

bool sgnode_side_put(sgnode_host *host, int kind, sgnode_user *user, int64_t number,
                     const char *text, size_t len)
{
    if (host->is_ended)
        return put_late(user, kind);
    return sgb_side_put(&host->side, kind, user, number, text, len);
}

static void push_side(sgnode_host *host, const sgb_side *side)
{
    const sgnode_user *user = side->user;
    napi_env env = host->self->env;
    napi_value a = NULL, b = NULL;
    napi_ref handler = side->kind == SGB_RUNTIME_EVENT ? host->observer : host->log;
    if (side->kind == SGB_RUNTIME_LOG || side->kind == SGB_RUNTIME_EVENT) {
        a = sgnode_number(env, (double)side->number);
        b = sgnode_text(env, side->text, side->len);
    } else if (side->kind == SGB_TRANSPORT_SEND) {
        a = sgnode_bytes(env, side->text, side->len);
    } else if (side->kind == SGB_TRANSPORT_PAUSE) {
        a = sgnode_bool(env, side->number != 0);
    } else if (side->kind == SGB_TRANSPORT_START) {
        a = sgnode_wire_show(user);
    }
    sgnode_push(host, user ? user->handler : handler, side->kind, a, b, NULL);
}

static void drain_side(sgnode_host *host)
{
    if (!sgb_side_is_due(&host->side))
        return;
    sgb_side *side = sgb_side_take(&host->side);
    while (side) {
        sgb_side *next = side->next;
        if (host->has_batch)
            push_side(host, side);
        if (side->kind == SGB_TRANSPORT_FREE)
            sgnode_user_free(side->user);
        free(side);
        side = next;
    }
}

void sgnode_on_log(void *host, int32_t level, const char *text)
{
    sgnode_side_put(host, SGB_RUNTIME_LOG, NULL, level, text, strlen(text));
}

void sgnode_on_event(void *opaque, const segue_event *event)
{
    sgnode_host *host = opaque;
    if (!host->is_ended)
        sgb_side_put_event(&host->side, event);
}
