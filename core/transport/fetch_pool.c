/* The fetches of a runtime from start to end.
 *
 * The pool is a carrier (an object to which the loop gives work, as it does to a
 * transport) without a conversation. The pool counts as attached while it has fetches:
 * only an attached carrier gets work, and an ending runtime waits for it. A runtime has
 * one pool, which is found by its ops (sgi_carrier_find).
 *
 *   sgi_fetch_start -> to_do -> work step: launch -> libcurl: connect, send, ...
 *   socket or timer -> curl_multi_socket_action -> callbacks of fetch_easy.c -> reap
 *
 * A direct fetch (fetch_direct.c) uses libcurl only to connect, and skips it when a
 * connection is idle.
 *
 * Latency: a fetch that is started in an event of libcurl is launched in the same
 * turn of the loop. A fetch that is started in the work of another carrier is
 * launched in the next turn, which begins without waiting. */
#include "transport/fetch_state.h"

#include <unistd.h>

#include "base/thresholds.h"
#include "transport/sigpipe.h"

/* Number of sockets that one fetch may need: two for addresses that are tried at the
 * same time, one for name look-up, and one in reserve. */
#define SOCKETS_PER_FETCH 4
#define SPARE_WATCHES ((size_t)64)

static segue_runtime *runtime_of(const sgi_fetch_pool *pool)
{
    return pool->carrier.runtime;
}

static const sgi_mem *mem_of(const sgi_fetch_pool *pool)
{
    return sgi_engine_mem(sgi_runtime_engine(runtime_of(pool)));
}

/* ---- the end of a fetch ---- */

/* Removes the fetch from libcurl. If the response has not ended, libcurl closes its
 * stream. The fetch has no direct connection. The caller does not hold the lock. */
static void take_back(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    if (!fetch->easy)
        return;
    if (fetch->stage == SGI_FETCH_RUNNING) {
        sgi_curl.curl_multi_remove_handle(pool->multi, fetch->easy);
        pool->live--;
        sgi_fetch_multi_allow_idle(pool);
    }
    sgi_curl.curl_easy_cleanup(fetch->easy);
    fetch->easy = NULL;
}

void sgi_fetch_pool_end(sgi_fetch_pool *pool, sgi_fetch *fetch,
                        const sgi_fetch_outcome *outcome)
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
    if (fetch->direct)
        sgi_fetch_direct_close(fetch->direct);
    sgi_runtime_unlock(runtime_of(pool));
    take_back(pool, fetch);
    sgi_runtime_lock(runtime_of(pool));
    sgi_fetch_pool_end(pool, fetch, &outcome);
}

/* Takes the connection that libcurl has made for a direct fetch, and sends the request.
 * The caller does not hold the lock. */
static void begin_direct(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    sgi_fetch_outcome outcome = {SGI_FETCH_NOMEM, "out of memory"};
    sgi_curl.curl_easy_getinfo(fetch->easy, CURLINFO_ACTIVESOCKET, &fd);
    pool->adopted = fd;
    take_back(pool, fetch);
    bool is_ours = fd != CURL_SOCKET_BAD && pool->adopted == CURL_SOCKET_BAD;
    pool->adopted = CURL_SOCKET_BAD;
    if (!is_ours)
        outcome = (sgi_fetch_outcome){SGI_FETCH_BROKEN, "libcurl kept the connection"};
    sgi_runtime_lock(runtime_of(pool));
    if (is_ours && fetch->cancelled)
        close(fd); /* the work step ends the fetch */
    else if (!is_ours || !sgi_fetch_direct_begin(fetch, fd))
        sgi_fetch_pool_end(pool, fetch, &outcome);
    sgi_runtime_unlock(runtime_of(pool));
}

/* Ends the fetch with libcurl's result. The connection is back in the pool before the
 * callback `done` runs. The caller does not hold the lock. */
static void finish(sgi_fetch_pool *pool, sgi_fetch *fetch, CURLcode result)
{
    sgi_fetch_outcome outcome;
    sgi_fetch_read_outcome(fetch, result, &outcome);
    take_back(pool, fetch);
    sgi_runtime_lock(runtime_of(pool));
    sgi_fetch_pool_end(pool, fetch, &outcome);
    sgi_runtime_unlock(runtime_of(pool));
}

static void reap(sgi_fetch_pool *pool)
{
    CURLMsg *message;
    int left;
    while (pool->multi && (message = sgi_curl.curl_multi_info_read(pool->multi, &left))) {
        sgi_fetch *fetch = NULL;
        CURLcode result = message->data.result;
        sgi_curl.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                                   (char **)&fetch);
        if (message->msg != CURLMSG_DONE)
            continue;
        if (fetch->is_direct && result == CURLE_OK)
            begin_direct(pool, fetch);
        else
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
            if (fetch->easy)
                break;
        if (fetch)
            end_with(pool, fetch, SGI_FETCH_BROKEN, sgi_curl.curl_multi_strerror(fault));
    } while (fetch);
    sgi_runtime_unlock(rt);
    sgi_fetch_multi_close(pool);
}

void sgi_fetch_pool_drive(sgi_fetch_pool *pool, curl_socket_t fd, int what)
{
    int running;
    CURLMcode fault = sgi_curl.curl_multi_socket_action(pool->multi, fd, what, &running);
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
    if (!sgi_fetch_multi_reserve(pool, sockets) || !sgi_fetch_multi_open(pool))
        return CURLE_OUT_OF_MEMORY;
    CURLcode result = sgi_fetch_easy_open(fetch);
    if (result == CURLE_OK &&
        sgi_curl.curl_multi_add_handle(pool->multi, fetch->easy) != CURLM_OK)
        result = CURLE_OUT_OF_MEMORY;
    return result;
}

/* Starts the fetch over an idle connection or in libcurl. The caller holds the lock,
 * which the function releases for a time. */
static void launch(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    sgi_fetch_outcome outcome;
    if (fetch->events->started && !fetch->needs_new)
        fetch->events->started(fetch->user, fetch);
    if (fetch->cancelled)
        return; /* the fetch stays queued; the pool ends it in its next work step */
    if (fetch->is_direct && !fetch->needs_new && sgi_fetch_direct_reuse(fetch))
        return;
    sgi_runtime_unlock(runtime_of(pool));
    CURLcode result = open_fetch(pool, fetch);
    if (result == CURLE_OK) {
        pool->live++;
        sgi_fetch_multi_allow_idle(pool);
    } else {
        sgi_fetch_read_outcome(fetch, result, &outcome);
        take_back(pool, fetch);
    }
    sgi_runtime_lock(runtime_of(pool));
    if (result == CURLE_OK)
        fetch->stage = SGI_FETCH_RUNNING;
    else
        sgi_fetch_pool_end(pool, fetch, &outcome);
}

/* Lets libcurl deliver the bytes that it kept during a pause. The caller holds the lock,
 * which the function releases for a time. */
static void resume(sgi_fetch_pool *pool, sgi_fetch *fetch)
{
    fetch->held = false;
    if (fetch->direct) {
        sgi_fetch_direct_resume(fetch);
        return;
    }
    sgi_runtime_unlock(runtime_of(pool));
    sgi_curl.curl_easy_pause(fetch->easy, CURLPAUSE_CONT);
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
    sgi_fetch_direct_close_idle(pool, 0);
    sgi_sigpipe_block(&held, runtime_of(pool));
    sgi_runtime_unlock(runtime_of(pool));
    sgi_fetch_multi_close(pool);
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
            sgi_fetch_pool_drive(pool, CURL_SOCKET_TIMEOUT, 0);
        sgi_runtime_lock(runtime_of(pool));
        sgi_sigpipe_unblock(&held, true);
    }
    if (TAILQ_EMPTY(&pool->fetches)) {
        if (is_over(pool))
            hang_up(pool);
        carrier->attached = carrier->queued;
        sgi_fetch_multi_trim(pool, SPARE_WATCHES);
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
    sgi_fetch_multi_trim(pool, 0);
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
    TAILQ_INIT(&pool->idle);
    pool->adopted = CURL_SOCKET_BAD;
    sgi_fetch_multi_init(pool);
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
