/* libcurl's CURLM of a runtime: its sockets and its one timer on the runtime's loop.
 *
 * The watchers for a fetch's sockets are allocated before the fetch starts, because
 * libcurl fails as a whole when it cannot watch a socket. Lack of memory then makes only
 * the start of this fetch fail, and not all streams.
 *
 * libcurl writes to sockets with MSG_NOSIGNAL. The TLS library below libcurl may write
 * without MSG_NOSIGNAL: see sigpipe.h. */
#include "transport/fetch_state.h"

#include <pthread.h>
#include <stdio.h>

#include "base/thresholds.h"
#include "transport/sigpipe.h"

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
    library_fault = sgi_curl.curl_global_init(CURL_GLOBAL_DEFAULT);
}

bool sgi_fetch_is_possible(char why[SGI_WHY_SIZE])
{
    if (!sgi_curl_load(why, SGI_WHY_SIZE))
        return false;
    pthread_once(&library_once, init_library);
    const curl_version_info_data *about = sgi_curl.curl_version_info(CURLVERSION_NOW);
    if (library_fault)
        snprintf(why, SGI_WHY_SIZE, "libcurl: %s",
                 sgi_curl.curl_easy_strerror(library_fault));
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
    sgi_fetch_pool_drive(pool, io->fd, what);
    sgi_sigpipe_unblock(&held, true);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
    sgi_fetch_pool *pool = SGI_OWNER(timer, sgi_fetch_pool, timer);
    sgi_sigpipe held;
    (void)loop;
    (void)revents;
    sgi_sigpipe_block(&held, runtime_of(pool));
    sgi_fetch_pool_drive(pool, CURL_SOCKET_TIMEOUT, 0);
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

bool sgi_fetch_multi_reserve(sgi_fetch_pool *pool, size_t count)
{
    while (pool->watches < count)
        if (!add_spare(pool))
            return false;
    return true;
}

void sgi_fetch_multi_trim(sgi_fetch_pool *pool, size_t keep)
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
        if (!watch || sgi_curl.curl_multi_assign(pool->multi, fd, watch) != CURLM_OK)
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

bool sgi_fetch_multi_open(sgi_fetch_pool *pool)
{
    if (!pool->multi)
        pool->multi = sgi_curl.curl_multi_init();
    if (!pool->multi)
        return false;
    sgi_curl.curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, set_watch);
    sgi_curl.curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    sgi_curl.curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    sgi_curl.curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
#if LIBCURL_VERSION_NUM >= 0x081400
    /* the end does not wait for lookups; CURLOPT_QUICK_EXIT was enough before 8.20 */
    sgi_curl.curl_multi_setopt(pool->multi, CURLMOPT_QUICK_EXIT, 1L);
#endif
    return true;
}

void sgi_fetch_multi_close(sgi_fetch_pool *pool)
{
    sgi_fetch_watch *watch;
    if (pool->multi)
        sgi_curl.curl_multi_cleanup(pool->multi);
    pool->multi = NULL;
    ev_timer_stop(loop_of(pool), &pool->timer);
    while ((watch = LIST_FIRST(&pool->watched)))
        put_away(pool, watch);
}

void sgi_fetch_multi_allow_idle(const sgi_fetch_pool *pool)
{
    sgi_curl.curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS,
                               (long)(pool->live + SGI_THRESHOLD(idle_connections)));
}

void sgi_fetch_multi_init(sgi_fetch_pool *pool)
{
    LIST_INIT(&pool->watched);
    LIST_INIT(&pool->spare);
    ev_timer_init(&pool->timer, on_timer, 0., 0.);
}
