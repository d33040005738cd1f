/* One CURLM per runtime: libcurl's sockets and libcurl's one timer on the runtime's loop,
 * and the fetches from start to end.
 *
 * The pool is a carrier (an object to which the loop gives work, as it does to a
 * transport) without a conversation. The pool counts as attached while it has fetches:
 * only an attached carrier gets work, and an ending runtime waits for it. A runtime has
 * one pool, which is found by its ops (sgi_carrier_find).
 *
 *   sgi_fetch_start -> to_do -> work step: launch -> libcurl: connect, send, ...
 *   socket or timer -> curl_multi_socket_action -> callbacks of fetch_easy.c -> reap
 *
 * Latency: a fetch that is started in an event of libcurl is launched in the same
 * turn of the loop. A fetch that is started in the work of another carrier is
 * launched in the next turn, which begins without waiting.
 *
 * The pool allocates the watchers for a fetch's sockets before the fetch starts,
 * because libcurl fails as a whole when it cannot watch a socket. Lack of memory then
 * makes only the start of this fetch fail, and not all streams.
 *
 * libcurl writes to sockets with MSG_NOSIGNAL. The TLS library below libcurl may write
 * without MSG_NOSIGNAL: see sigpipe.h. */
#include "transport/fetch_state.h"

#include <pthread.h>
#include <stdio.h>

#include "transport/sigpipe.h"

/* Number of sockets that one fetch may need: two for addresses that are tried at the
 * same time, one for name look-up, and one in reserve. */
#define SOCKETS_PER_FETCH 4
#define SPARE_WATCHES ((size_t)64)
/* Maximum number of open connections that no fetch uses. libcurl's own limit counts
 * used connections, too. */
#define IDLE_CONNECTIONS ((size_t)64)

static segue_runtime *runtime_of(const sgi_fetch_pool *pool)
{
    return pool->carrier.runtime;
}

static struct ev_loop *loop_of(const sgi_fetch_pool *pool)
{
    return sgi_runtime_loop(runtime_of(pool));
}

static const sgi_mem *mem_of(const sgi_fetch_pool *pool)
{
    return sgi_engine_mem(sgi_runtime_engine(runtime_of(pool)));
}

/* ---- initialising libcurl ---- */

static pthread_once_t library_once = PTHREAD_ONCE_INIT;
static CURLcode library_fault;

/* Initialises libcurl. The library never calls curl_global_cleanup, because other code in
 * the process can use libcurl. */
static void init_library(void)
{
    library_fault = curl_global_init(CURL_GLOBAL_DEFAULT);
}

bool sgi_fetch_is_possible(char why[SGI_WHY_SIZE])
{
    pthread_once(&library_once, init_library);
    const curl_version_info_data *about = curl_version_info(CURLVERSION_NOW);
    if (library_fault)
        snprintf(why, SGI_WHY_SIZE, "libcurl: %s", curl_easy_strerror(library_fault));
    else if (!(about->features & CURL_VERSION_ASYNCHDNS))
        snprintf(why, SGI_WHY_SIZE,
                 "libcurl %s resolves host names on the calling thread, which would "
                 "block: use a libcurl with AsynchDNS",
                 about->version);
    else if (!(about->features & CURL_VERSION_SSL))
        snprintf(why, SGI_WHY_SIZE, "libcurl %s was built without TLS", about->version);
    else
        return true;
    return false;
}

/* ---- watchers ---- */

static void reap(sgi_fetch_pool *pool);
static void drive(sgi_fetch_pool *pool, curl_socket_t fd, int what);

static void on_socket(struct ev_loop *loop, ev_io *io, int revents)
{
    sgi_fetch_watch *watch = SGI_OWNER(io, sgi_fetch_watch, io);
    sgi_fetch_pool *pool = watch->pool;
    sgi_sigpipe held;
    int what = 0;
    (void)loop;
    if (revents & EV_READ)
        what |= CURL_CSELECT_IN;
    if (revents & EV_WRITE)
        what |= CURL_CSELECT_OUT;
    if (revents & EV_ERROR)
        what |= CURL_CSELECT_ERR;
    sgi_sigpipe_block(&held, runtime_of(pool));
    /* `drive` can free the watcher of this event, so the watcher's members are read
     * before the call */
    drive(pool, io->fd, what);
    sgi_sigpipe_unblock(&held, true);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
    sgi_fetch_pool *pool = SGI_OWNER(timer, sgi_fetch_pool, timer);
    sgi_sigpipe held;
    (void)loop;
    (void)revents;
    sgi_sigpipe_block(&held, runtime_of(pool));
    drive(pool, CURL_SOCKET_TIMEOUT, 0);
    sgi_sigpipe_unblock(&held, true);
}

static bool add_spare(sgi_fetch_pool *pool)
{
    sgi_fetch_watch *watch = sgi_zalloc(mem_of(pool), sizeof *watch);
    if (!watch)
        return false;
    watch->pool = pool;
    ev_io_init(&watch->io, on_socket, -1, 0);
    LIST_INSERT_HEAD(&pool->spare, watch, link);
    pool->watches++;
    return true;
}

static bool reserve_watches(sgi_fetch_pool *pool, size_t count)
{
    while (pool->watches < count)
        if (!add_spare(pool))
            return false;
    return true;
}

static void trim_watches(sgi_fetch_pool *pool, size_t keep)
{
    sgi_fetch_watch *watch;
    while (pool->watches > keep && (watch = LIST_FIRST(&pool->spare))) {
        LIST_REMOVE(watch, link);
        sgi_free(mem_of(pool), watch, sizeof *watch);
        pool->watches--;
    }
}

static void put_away(sgi_fetch_pool *pool, sgi_fetch_watch *watch)
{
    ev_io_stop(loop_of(pool), &watch->io);
    LIST_REMOVE(watch, link);
    LIST_INSERT_HEAD(&pool->spare, watch, link);
}

static sgi_fetch_watch *take_watch(sgi_fetch_pool *pool)
{
    if (LIST_EMPTY(&pool->spare) && !add_spare(pool))
        return NULL;
    sgi_fetch_watch *watch = LIST_FIRST(&pool->spare);
    LIST_REMOVE(watch, link);
    LIST_INSERT_HEAD(&pool->watched, watch, link);
    return watch;
}

/* The callback of CURLMOPT_SOCKETFUNCTION. Starts or stops watching a socket. Returns -1
 * when out of memory, which makes the whole CURLM fail. */
static int set_watch(CURL *easy, curl_socket_t fd, int what, void *user, void *of_socket)
{
    sgi_fetch_pool *pool = user;
    sgi_fetch_watch *watch = of_socket;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch)
            put_away(pool, watch);
        return 0;
    }
    int events =
        (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0);
    if (!watch) {
        watch = take_watch(pool);
        if (!watch || curl_multi_assign(pool->multi, fd, watch) != CURLM_OK)
            return -1;
    }
    ev_io_stop(loop_of(pool), &watch->io);
    ev_io_set(&watch->io, fd, events);
    if (events)
        ev_io_start(loop_of(pool), &watch->io);
    return 0;
}

/* The callback of CURLMOPT_TIMERFUNCTION. Sets or stops libcurl's timer. */
static int set_timer(CURLM *multi, long timeout_ms, void *user)
{
    sgi_fetch_pool *pool = user;
    (void)multi;
    ev_timer_stop(loop_of(pool), &pool->timer);
    if (timeout_ms < 0)
        return 0;
    ev_timer_set(&pool->timer, (double)timeout_ms / 1000., 0.);
    ev_timer_start(loop_of(pool), &pool->timer);
    return 0;
}

/* ---- the CURLM ---- */

static bool open_multi(sgi_fetch_pool *pool)
{
    if (!pool->multi)
        pool->multi = curl_multi_init();
    if (!pool->multi)
        return false;
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, set_watch);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
#if LIBCURL_VERSION_NUM >= 0x081400
    /* the end does not wait for lookups; CURLOPT_QUICK_EXIT was enough before 8.20 */
    curl_multi_setopt(pool->multi, CURLMOPT_QUICK_EXIT, 1L);
#endif
    return true;
}

static void close_multi(sgi_fetch_pool *pool)
{
    sgi_fetch_watch *watch;
    if (pool->multi)
        curl_multi_cleanup(pool->multi);
    pool->multi = NULL;
    ev_timer_stop(loop_of(pool), &pool->timer);
    while ((watch = LIST_FIRST(&pool->watched)))
        put_away(pool, watch);
}

static void allow_idle(const sgi_fetch_pool *pool)
{
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS,
                      (long)(pool->live + IDLE_CONNECTIONS));
}

/* ---- the end of a fetch ---- */

/* Removes the fetch from libcurl. If the response has not ended, libcurl closes its
 * stream. The caller does not hold the lock. */
static void take_back(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    if (!fetch->easy)
        return;
    if (fetch->stage == SGI_FETCH_RUNNING) {
        curl_multi_remove_handle(pool->multi, fetch->easy);
        pool->live--;
        allow_idle(pool);
    }
    curl_easy_cleanup(fetch->easy);
    fetch->easy = NULL;
}

/* Ends the fetch and calls the owner's callback `done`. outcome: NULL = the fetch
 * was cancelled, and `done` is not called. The caller holds the lock. */
static void end(sgi_fetch_pool *pool, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    sgi_fetch_end_wait(fetch);
    fetch->stage = SGI_FETCH_ENDED;
    if (outcome && !fetch->cancelled)
        fetch->events->done(fetch->user, fetch, outcome);
    if (fetch->asked) {
        TAILQ_REMOVE(&pool->to_do, fetch, to_do);
        pool->to_do_count--;
    }
    TAILQ_REMOVE(&pool->fetches, fetch, link);
    sgi_fetch_end(fetch);
    if (TAILQ_EMPTY(&pool->fetches))
        sgi_carrier_request_work(&pool->carrier, SGI_WORK_OWN);
}

/* Ends the fetch with this fault. The caller holds the lock, which the function
 * releases for a time and takes again. */
static void end_with(sgi_fetch_pool *pool, sgi_fetch *fetch, sgi_fetch_fault fault,
                     const char *text)
{
    sgi_fetch_outcome outcome = {fault, text};
    sgi_runtime_unlock(runtime_of(pool));
    take_back(pool, fetch);
    sgi_runtime_lock(runtime_of(pool));
    end(pool, fetch, &outcome);
}

/* Ends the fetch with libcurl's result. The connection is back in the pool before the
 * callback `done` runs. The caller does not hold the lock. */
static void finish(sgi_fetch_pool *pool, sgi_fetch *fetch, CURLcode result)
{
    sgi_fetch_outcome outcome;
    sgi_fetch_read_outcome(fetch, result, &outcome);
    take_back(pool, fetch);
    sgi_runtime_lock(runtime_of(pool));
    end(pool, fetch, &outcome);
    sgi_runtime_unlock(runtime_of(pool));
}

static void reap(sgi_fetch_pool *pool)
{
    CURLMsg *message;
    int left;
    while (pool->multi && (message = curl_multi_info_read(pool->multi, &left))) {
        sgi_fetch *fetch = NULL;
        CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&fetch);
        if (message->msg == CURLMSG_DONE)
            finish(pool, fetch, result);
    }
}

/* Ends all running fetches with a fault, because libcurl has failed as a whole. The
 * caller does not hold the lock. */
static void break_down(sgi_fetch_pool *pool, CURLMcode fault)
{
    sgi_fetch *fetch;
    segue_runtime *rt = runtime_of(pool);
    sgi_runtime_lock(rt);
    do {
        TAILQ_FOREACH(fetch, &pool->fetches, link)
            if (fetch->stage == SGI_FETCH_RUNNING)
                break;
        if (fetch)
            end_with(pool, fetch, SGI_FETCH_BROKEN, curl_multi_strerror(fault));
    } while (fetch);
    sgi_runtime_unlock(rt);
    close_multi(pool);
}

/* Lets libcurl handle an event of a socket, or the end of libcurl's timer. The caller
 * does not hold the lock. */
static void drive(sgi_fetch_pool *pool, curl_socket_t fd, int what)
{
    int running;
    CURLMcode fault = curl_multi_socket_action(pool->multi, fd, what, &running);
    if (fault != CURLM_OK)
        break_down(pool, fault);
    else
        reap(pool);
}

/* ---- work ---- */

/* Makes the fetch's handle and adds the handle to libcurl. The caller does not hold
 * the lock. */
static CURLcode open_fetch(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    size_t sockets = (pool->live + 1) * SOCKETS_PER_FETCH;
    if (!reserve_watches(pool, sockets) || !open_multi(pool))
        return CURLE_OUT_OF_MEMORY;
    CURLcode result = sgi_fetch_easy_open(fetch);
    if (result == CURLE_OK && curl_multi_add_handle(pool->multi, fetch->easy) != CURLM_OK)
        result = CURLE_OUT_OF_MEMORY;
    return result;
}

/* Starts the fetch in libcurl. The caller holds the lock, which the function releases
 * for a time. */
static void launch(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    sgi_fetch_outcome outcome;
    if (fetch->events->started)
        fetch->events->started(fetch->user, fetch);
    if (fetch->cancelled)
        return; /* the fetch stays queued; the pool ends it in its next work step */
    sgi_runtime_unlock(runtime_of(pool));
    CURLcode result = open_fetch(pool, fetch);
    if (result == CURLE_OK) {
        pool->live++;
        allow_idle(pool);
    } else {
        sgi_fetch_read_outcome(fetch, result, &outcome);
        take_back(pool, fetch);
    }
    sgi_runtime_lock(runtime_of(pool));
    if (result == CURLE_OK)
        fetch->stage = SGI_FETCH_RUNNING;
    else
        end(pool, fetch, &outcome);
}

/* Lets libcurl deliver the bytes that it kept during a pause. The caller holds the lock,
 * which the function releases for a time. */
static void resume(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    fetch->held = false;
    sgi_runtime_unlock(runtime_of(pool));
    curl_easy_pause(fetch->easy, CURLPAUSE_CONT);
    sgi_runtime_lock(runtime_of(pool));
}

static void look_at(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    if (fetch->cancelled)
        end_with(pool, fetch, SGI_FETCH_OK, "");
    else if (fetch->stage == SGI_FETCH_QUEUED)
        launch(pool, fetch);
    else if (fetch->held && !fetch->paused)
        resume(pool, fetch);
}

/* Handles the fetches that are in the to_do list at the time of the call. A fetch
 * that fails at once and is started again waits for the next turn, so that it does not
 * block the loop. */
static void do_what_was_asked(sgi_fetch_pool *pool)
{
    sgi_fetch *fetch;
    for (size_t n = pool->to_do_count; n > 0 && (fetch = TAILQ_FIRST(&pool->to_do));
         n--) {
        TAILQ_REMOVE(&pool->to_do, fetch, to_do);
        pool->to_do_count--;
        fetch->asked = false;
        look_at(pool, fetch);
    }
    if (pool->to_do_count)
        sgi_carrier_request_work(&pool->carrier, SGI_WORK_OWN);
}

/* True when the runtime is ending and no fetcher is left. The pool then closes its idle
 * connections, because the server at the other end can belong to the same runtime and
 * wait for the close. */
static bool is_over(const sgi_fetch_pool *pool)
{
    return pool->stopping && !pool->fetchers;
}

static void look_whether_over(sgi_fetch_pool *pool)
{
    if (!is_over(pool))
        return;
    pool->carrier.attached = true;
    sgi_carrier_request_work(&pool->carrier, SGI_WORK_OWN);
}

static void on_stop(sgi_stop_hook *hook)
{
    sgi_fetch_pool *pool = SGI_OWNER(hook, sgi_fetch_pool, on_stop);
    pool->stopping = true;
    look_whether_over(pool);
}

/* Closes all connections. The caller holds the lock, which the function releases for a
 * time. */
static void hang_up(sgi_fetch_pool *pool)
{
    sgi_sigpipe held;
    sgi_sigpipe_block(&held, runtime_of(pool));
    sgi_runtime_unlock(runtime_of(pool));
    close_multi(pool);
    sgi_runtime_lock(runtime_of(pool));
    sgi_sigpipe_unblock(&held, true);
}

static void work(sgi_carrier *carrier, uint32_t work)
{
    sgi_fetch_pool *pool = SGI_OWNER(carrier, sgi_fetch_pool, carrier);
    sgi_sigpipe held;
    (void)work;
    if (pool->to_do_count) {
        sgi_sigpipe_block(&held, runtime_of(pool));
        do_what_was_asked(pool);
        sgi_runtime_unlock(runtime_of(pool));
        if (pool->multi)
            /* this event makes libcurl connect for the new fetches */
            drive(pool, CURL_SOCKET_TIMEOUT, 0);
        sgi_runtime_lock(runtime_of(pool));
        sgi_sigpipe_unblock(&held, true);
    }
    if (TAILQ_EMPTY(&pool->fetches)) {
        if (is_over(pool))
            hang_up(pool);
        carrier->attached = carrier->queued;
        trim_watches(pool, SPARE_WATCHES);
    }
}

static void abandon(sgi_carrier *carrier)
{
    sgi_fetch_pool *pool = SGI_OWNER(carrier, sgi_fetch_pool, carrier);
    sgi_sigpipe held;
    sgi_fetch *fetch;
    pool->closed = true;
    sgi_sigpipe_block(&held, runtime_of(pool));
    while ((fetch = TAILQ_FIRST(&pool->fetches)))
        end_with(pool, fetch, SGI_FETCH_CLOSED, "the runtime was stopped");
    sgi_sigpipe_unblock(&held, true);
    hang_up(pool);
    trim_watches(pool, 0);
    if (carrier->attached)
        sgi_carrier_retire(carrier);
    else
        sgi_carrier_drop(carrier);
}

static void free_pool(sgi_fetch_pool *pool)
{
    sgi_free(mem_of(pool), pool, sizeof *pool);
}

static void destroy(sgi_carrier *carrier)
{
    sgi_fetch_pool *pool = SGI_OWNER(carrier, sgi_fetch_pool, carrier);
    pool->orphaned = true;
    if (!pool->fetchers)
        free_pool(pool);
}

static const sgi_carrier_ops pool_ops = {
    .work = work, .abandon = abandon, .destroy = destroy};

/* ---- the pool of a runtime ---- */

static sgi_fetch_pool *make_pool(segue_runtime *rt)
{
    sgi_fetch_pool *pool =
        sgi_zalloc(sgi_engine_mem(sgi_runtime_engine(rt)), sizeof *pool);
    if (!pool)
        return NULL;
    TAILQ_INIT(&pool->fetches);
    TAILQ_INIT(&pool->to_do);
    LIST_INIT(&pool->watched);
    LIST_INIT(&pool->spare);
    ev_timer_init(&pool->timer, on_timer, 0., 0.);
    pool->carrier.ops = &pool_ops;
    sgi_carrier_add(rt, &pool->carrier);
    pool->on_stop.fn = on_stop;
    sgi_runtime_add_stop_hook(rt, &pool->on_stop);
    return pool;
}

sgi_fetch_pool *sgi_fetch_pool_join(segue_runtime *rt)
{
    sgi_carrier *carrier = sgi_carrier_find(rt, &pool_ops);
    sgi_fetch_pool *pool =
        carrier ? SGI_OWNER(carrier, sgi_fetch_pool, carrier) : make_pool(rt);
    if (pool)
        pool->fetchers++;
    return pool;
}

void sgi_fetch_pool_leave(sgi_fetch_pool *pool)
{
    pool->fetchers--;
    if (!pool->fetchers && pool->orphaned)
        free_pool(pool);
    else
        look_whether_over(pool);
}

void sgi_fetch_pool_queue_new(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    TAILQ_INSERT_TAIL(&pool->fetches, fetch, link);
    pool->carrier.attached = true;
}

void sgi_fetch_pool_queue_change(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    if (!fetch->asked) {
        fetch->asked = true;
        TAILQ_INSERT_TAIL(&pool->to_do, fetch, to_do);
        pool->to_do_count++;
    }
    sgi_carrier_request_work(&pool->carrier, SGI_WORK_OWN);
}
