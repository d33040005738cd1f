/* The host of a runtime: the doorbell, the batch of events, the side queue, the counting
 * allocator, and the end.
 *
 * Callbacks of the library run inside of runtimeDispatch and append to host->batch, the
 * array that it returns; without a batch (the environment ends, or the garbage collector
 * frees the runtime) events are dropped, and no JavaScript is touched.
 *
 * The bell is one thread-safe function, rung at most once until JavaScript has heard it,
 * so that its queue never holds more than one entry. It does not keep the process alive
 * unless it is told to (runtimeHold). Where the runtime lends its input there is a front
 * besides, for all but the side queue (front.c).
 *
 * What other threads have to say (log lines, custom transports) goes to the side queue,
 * under a mutex: dispatch moves it into the batch. Log lines are dropped beyond
 * MAX_LINES; entries of a transport are bounded by what it may have under way.
 *
 * The end, in this order: the runtime is freed, which joins its threads; from then on
 * nobody rings; then the bell goes. When the environment ends first, our clean-up hook
 * does the former, as it was set behind the bell's own and hooks run from the last to the
 * first; the bell is then left to Node. A process that exits from inside of a callback
 * cannot free the runtime, which is busy: it is stopped, and its threads are waited for,
 * as long as STOP_WAIT_S, so that the loop's is not in a library that the process takes
 * down. A thread that has rung tells by a destructor of its own when it ends. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_LINES 1024
/* Of a function that is called with the values of an array: they pass by the stack. */
#define MAX_ARGUMENTS 4096
/* The loop's thread of a stopped runtime ends within a turn of its loop. A store's worker
 * does so only when the runtime is freed, which cannot be here: one that has rung is
 * waited for all of this time, and left behind. */
#define STOP_WAIT_S 1

struct sgnode_side {
    sgnode_side *next;
    sgnode_user *user; /* NULL = the host's log */
    int64_t number;
    int kind;
    size_t len;
    char text[];
};

/* ---- who rings ---- */

/* Threads of the library that have rung and not ended. Held by the host and by each of
 * them: a store's thread may outlive the runtime. */
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

/* A thread that has rung ends. */
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

/* Notes, once for each thread of the library, that it is there. */
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
    host->last = &host->first;
    pthread_mutex_init(&host->mutex, NULL);
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

/* The last one goes on the environment's thread: other threads hold none that outlives
 * the runtime's. */
void sgnode_host_unref(sgnode_host *host)
{
    if (atomic_fetch_sub(&host->refs, 1) != 1)
        return;
    while (host->first) {
        sgnode_side *next = host->first->next;
        free(host->first);
        host->first = next;
    }
    free(host->batch.items);
    pthread_mutex_destroy(&host->mutex);
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
    if (!env) /* it was in the queue when the bell went, and the host with it */
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

/* ---- the end ---- */

static void forget_log(sgnode_host *host)
{
    if (host->log && host->self->env)
        napi_delete_reference(host->self->env, host->log);
    host->log = NULL;
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
    forget_log(host);
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
        sgnode_push(host, NULL, SGNODE_EXCEPTION, error,
                    sgnode_string(host->self->env, where), NULL);
}

/* ---- the side queue ---- */

/* After the end only what frees a transport that was never attached still comes. */
static bool put_late(sgnode_user *user, int kind)
{
    if (kind == SGNODE_TRANSPORT_FREE)
        sgnode_user_free(user);
    return false;
}

bool sgnode_side_put(sgnode_host *host, int kind, sgnode_user *user, int64_t number,
                     const char *text, size_t len)
{
    bool is_line = kind == SGNODE_RUNTIME_LOG;
    if (host->is_ended)
        return put_late(user, kind);
    sgnode_side *side = malloc(sizeof *side + len);
    if (!side)
        return false;
    side->next = NULL;
    side->user = user;
    side->number = number;
    side->kind = kind;
    side->len = len;
    if (len)
        memcpy(side->text, text, len);
    pthread_mutex_lock(&host->mutex);
    bool room = !is_line || host->side_count < MAX_LINES;
    if (room) {
        *host->last = side;
        host->last = &side->next;
        host->side_count += is_line;
        atomic_store_explicit(&host->side_due, true, memory_order_release);
    }
    pthread_mutex_unlock(&host->mutex);
    if (room)
        sgnode_wake(host);
    else
        free(side);
    return room;
}

static sgnode_side *take_side(sgnode_host *host)
{
    pthread_mutex_lock(&host->mutex);
    sgnode_side *first = host->first;
    host->first = NULL;
    host->last = &host->first;
    host->side_count = 0;
    atomic_store(&host->side_due, false);
    pthread_mutex_unlock(&host->mutex);
    return first;
}

static void push_side(sgnode_host *host, const sgnode_side *side)
{
    napi_env env = host->self->env;
    napi_value a = NULL, b = NULL;
    if (side->kind == SGNODE_RUNTIME_LOG) {
        a = sgnode_number(env, (double)side->number);
        b = sgnode_text(env, side->text, side->len);
    } else if (side->kind == SGNODE_TRANSPORT_SEND) {
        a = sgnode_bytes(env, side->text, side->len);
    } else if (side->kind == SGNODE_TRANSPORT_PAUSE) {
        a = sgnode_bool(env, side->number != 0);
    } else if (side->kind == SGNODE_TRANSPORT_START) {
        a = sgnode_wire_show(side->user);
    }
    sgnode_push(host, side->user ? side->user->handler : host->log, side->kind, a, b,
                NULL);
}

static void drain_side(sgnode_host *host)
{
    if (!atomic_load_explicit(&host->side_due, memory_order_acquire))
        return;
    sgnode_side *side = take_side(host);
    while (side) {
        sgnode_side *next = side->next;
        if (host->has_batch)
            push_side(host, side);
        if (side->kind == SGNODE_TRANSPORT_FREE)
            sgnode_user_free(side->user);
        free(side);
        side = next;
    }
}

void sgnode_on_log(void *host, int32_t level, const char *text)
{
    sgnode_side_put(host, SGNODE_RUNTIME_LOG, NULL, level, text, strlen(text));
}

/* ---- the counting allocator; any thread ---- */

static _Atomic long long allocated;

static void *track_alloc(void *user, size_t size)
{
    (void)user;
    void *ptr = malloc(size);
    if (ptr)
        atomic_fetch_add(&allocated, (long long)size);
    return ptr;
}

static void *track_resize(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user;
    void *moved = realloc(ptr, new_size);
    if (moved)
        atomic_fetch_add(&allocated, (long long)new_size - (long long)old_size);
    return moved;
}

static void track_release(void *user, void *ptr, size_t size)
{
    (void)user;
    if (ptr)
        atomic_fetch_sub(&allocated, (long long)size);
    free(ptr);
}

const segue_allocator *sgnode_tracking(void)
{
    static const segue_allocator tracking = {track_alloc, track_resize, track_release,
                                             NULL};
    return &tracking;
}

long long sgnode_allocated(void)
{
    return atomic_load(&allocated);
}
