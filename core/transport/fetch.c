/* The interface of fetchers and fetches. A fetch keeps the body of its request until the
 * end, because the body is sent again when a pooled connection turns out to be dead. */
#include "transport/fetch_state.h"

#include <stdio.h>
#include <strings.h>

static const sgi_mem *mem_of(const sgi_fetch_pool *pool)
{
    return sgi_engine_mem(sgi_runtime_engine(pool->carrier.runtime));
}

/* ---- settings ---- */

static const size_t settings_texts[] = {
    offsetof(sgi_fetch_settings, url),        offsetof(sgi_fetch_settings, ca_file),
    offsetof(sgi_fetch_settings, ca_path),    offsetof(sgi_fetch_settings, client_cert),
    offsetof(sgi_fetch_settings, client_key), offsetof(sgi_fetch_settings, key_password),
    offsetof(sgi_fetch_settings, proxy),      offsetof(sgi_fetch_settings, unix_socket),
};

#define TEXT_COUNT (sizeof settings_texts / sizeof *settings_texts)

static const char **text_of(sgi_fetch_settings *settings, size_t i)
{
    return (const char **)(void *)((char *)settings + settings_texts[i]);
}

static void free_settings(const sgi_mem *mem, sgi_fetch_settings *settings)
{
    for (size_t i = 0; i < TEXT_COUNT; i++)
        sgi_text_free(mem, (char *)(uintptr_t)*text_of(settings, i));
}

static bool copy_settings(const sgi_mem *mem, sgi_fetch_settings *copy,
                          const sgi_fetch_settings *settings)
{
    bool ok = true;
    *copy = *settings;
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        const char **text = text_of(copy, i);
        if (*text) {
            *text = sgi_text_dup(mem, sgi_str_of(*text));
            ok = ok && *text;
        }
    }
    return ok;
}

/* ---- fetchers ---- */

static segue_status check_url(const char *url, char why[SGI_WHY_SIZE])
{
    segue_status status = SEGUE_E_INVALID;
    char *scheme = NULL;
    CURLU *parts = sgi_curl.curl_url();
    if (!parts)
        return SEGUE_E_NOMEM;
    CURLUcode fault = sgi_curl.curl_url_set(parts, CURLUPART_URL, url ? url : "", 0);
    if (fault == CURLUE_OK)
        fault = sgi_curl.curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
    if (fault == CURLUE_OUT_OF_MEMORY)
        status = SEGUE_E_NOMEM;
    else if (fault != CURLUE_OK)
        snprintf(why, SGI_WHY_SIZE, "the URL is malformed");
    else if (strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0)
        snprintf(why, SGI_WHY_SIZE, "the URL is neither http nor https");
    else
        status = SEGUE_OK;
    sgi_curl.curl_free(scheme);
    sgi_curl.curl_url_cleanup(parts);
    return status;
}

static sgi_fetcher *make(segue_runtime *rt, const sgi_fetch_settings *settings)
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(rt));
    sgi_fetcher *fetcher = sgi_zalloc(mem, sizeof *fetcher);
    if (!fetcher)
        return NULL;
    fetcher->refs = 1;
    for (int lane = 0; lane < SGI_FETCH_LANES; lane++)
        TAILQ_INIT(&fetcher->waiting[lane]);
    if (copy_settings(mem, &fetcher->settings, settings)) {
        sgi_fetcher_find_route(fetcher);
        fetcher->pool = sgi_fetch_pool_join(rt);
    }
    if (fetcher->pool)
        return fetcher;
    free_settings(mem, &fetcher->settings);
    sgi_free(mem, fetcher, sizeof *fetcher);
    return NULL;
}

segue_status sgi_fetcher_new(segue_runtime *rt, const sgi_fetch_settings *settings,
                             sgi_fetcher **out, char why[SGI_WHY_SIZE])
{
    char scrap[SGI_WHY_SIZE];
    segue_status status = SEGUE_E_CLOSED;
    why = why ? why : scrap;
    *why = 0;
    if (!sgi_fetch_is_possible(why))
        return SEGUE_E_FATAL;
    segue_status valid = check_url(settings->url, why);
    if (valid != SEGUE_OK)
        return valid;
    sgi_runtime_lock(rt);
    if (sgi_runtime_is_open(rt)) {
        sgi_fetcher *fetcher = make(rt, settings);
        status = fetcher ? SEGUE_OK : SEGUE_E_NOMEM;
        if (fetcher)
            *out = fetcher;
    }
    sgi_runtime_unlock(rt);
    return status;
}

const sgi_ip_address *sgi_fetcher_last_address(const sgi_fetcher *fetcher)
{
    static const sgi_ip_address local = {AF_INET, {127, 0, 0, 1}};
    if (fetcher->settings.unix_socket)
        return &local;
    return fetcher->address.family ? &fetcher->address : NULL;
}

segue_status sgi_fetcher_new_for_other_hosts(const sgi_fetcher *like, sgi_fetcher **out)
{
    sgi_fetch_settings settings = like->settings;
    settings.unix_socket = NULL;
    sgi_fetcher *fetcher = make(like->pool->carrier.runtime, &settings);
    if (!fetcher)
        return SEGUE_E_NOMEM;
    *out = fetcher;
    return SEGUE_OK;
}

static void unref(sgi_fetcher *fetcher)
{
    sgi_fetch_pool *pool = fetcher->pool;
    const sgi_mem *mem = mem_of(pool);
    if (--fetcher->refs)
        return;
    free_settings(mem, &fetcher->settings);
    sgi_free(mem, fetcher, sizeof *fetcher);
    sgi_fetch_pool_leave(pool);
}

void sgi_fetcher_free(sgi_fetcher *fetcher)
{
    sgi_fetch *fetch;
    if (!fetcher)
        return;
    TAILQ_FOREACH(fetch, &fetcher->pool->fetches, link)
        if (fetch->fetcher == fetcher)
            sgi_fetch_cancel(fetch);
    unref(fetcher);
}

/* ---- fetches ---- */

static void enqueue(sgi_fetch *fetch)
{
    fetch->stage = SGI_FETCH_QUEUED;
    fetch->counted = true;
    fetch->fetcher->busy[fetch->lane]++;
    sgi_fetch_pool_queue_change(fetch->fetcher->pool, fetch);
}

void sgi_fetch_end_wait(sgi_fetch *fetch)
{
    if (fetch->stage != SGI_FETCH_WAITING)
        return;
    fetch->stage = SGI_FETCH_QUEUED;
    TAILQ_REMOVE(&fetch->fetcher->waiting[fetch->lane], fetch, to_do);
}

static bool has_room(const sgi_fetcher *fetcher, sgi_fetch_lane lane)
{
    size_t most = fetcher->settings.max_fetches;
    const size_t *busy = fetcher->busy;
    size_t turning = busy[SGI_FETCH_REQUEST] + busy[SGI_FETCH_STREAM];
    bool may_turn = lane == SGI_FETCH_REQUEST || lane == SGI_FETCH_STREAM;
    return !most || (busy[lane] < most && (!may_turn || turning < 2 * most));
}

/* Starts the next waiting fetch of a lane (a kind of fetch with its own maximum
 * number), if the lane has room. Called when a fetch has ended or has left the
 * lane. */
static void start_next(sgi_fetcher *fetcher, sgi_fetch_lane lane)
{
    sgi_fetch *next = TAILQ_FIRST(&fetcher->waiting[lane]);
    if (next && has_room(fetcher, lane)) {
        sgi_fetch_end_wait(next);
        enqueue(next);
    }
}

segue_status sgi_fetch_start(sgi_fetcher *fetcher, const sgi_fetch_request *request,
                             const sgi_fetch_events *events, void *user, sgi_fetch **out)
{
    sgi_fetch_pool *pool = fetcher->pool;
    if (pool->closed)
        return SEGUE_E_CLOSED;
    if (!sgi_fetch_request_is_valid(request))
        return SEGUE_E_INVALID;
    sgi_fetch *fetch = sgi_fetch_make(fetcher, request);
    if (!fetch)
        return SEGUE_E_NOMEM;
    fetch->fetcher = fetcher;
    fetch->events = events;
    fetch->user = user;
    fetcher->refs++;
    sgi_fetch_pool_queue_new(pool, fetch);
    if (has_room(fetcher, fetch->lane))
        enqueue(fetch);
    else
        TAILQ_INSERT_TAIL(&fetcher->waiting[fetch->lane], fetch, to_do);
    *out = fetch;
    return SEGUE_OK;
}

void sgi_fetch_move_to_stream_lane(sgi_fetch *fetch)
{
    sgi_fetcher *fetcher = fetch->fetcher;
    if (fetch->lane != SGI_FETCH_REQUEST)
        return;
    fetch->lane = SGI_FETCH_STREAM;
    fetcher->busy[SGI_FETCH_REQUEST]--;
    fetcher->busy[SGI_FETCH_STREAM]++;
    start_next(fetcher, SGI_FETCH_REQUEST);
}

void sgi_fetch_set_paused(sgi_fetch *fetch, bool paused)
{
    fetch->paused = paused;
    if (!paused && fetch->held)
        sgi_fetch_pool_queue_change(fetch->fetcher->pool, fetch);
}

void sgi_fetch_cancel(sgi_fetch *fetch)
{
    if (fetch->cancelled || fetch->stage == SGI_FETCH_ENDED)
        return;
    fetch->cancelled = true;
    sgi_fetch_end_wait(fetch);
    sgi_fetch_pool_queue_change(fetch->fetcher->pool, fetch);
}

void sgi_fetch_end(sgi_fetch *fetch)
{
    sgi_fetcher *fetcher = fetch->fetcher;
    const sgi_mem *mem = mem_of(fetcher->pool);
    if (fetch->counted)
        fetcher->busy[fetch->lane]--;
    if (fetch->is_direct)
        sgi_buf_free(&fetch->request_head);
    sgi_buf_free(&fetch->body);
    sgi_buf_free(&fetch->head);
    sgi_free(mem, fetch, fetch->size);
    for (int lane = 0; lane < SGI_FETCH_LANES; lane++)
        start_next(fetcher, (sgi_fetch_lane)lane);
    unref(fetcher);
}
