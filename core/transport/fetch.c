/* The interface of fetchers and fetches. A fetch is one block of memory: the
 * struct, the list of headers for libcurl, and the texts of the headers. The fetch
 * takes over the buffer of the request's body and keeps the body until the end, because
 * libcurl sends the body again when a pooled connection turns out to be dead. */
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
    CURLU *parts = curl_url();
    if (!parts)
        return SEGUE_E_NOMEM;
    CURLUcode fault = curl_url_set(parts, CURLUPART_URL, url ? url : "", 0);
    if (fault == CURLUE_OK)
        fault = curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
    if (fault == CURLUE_OUT_OF_MEMORY)
        status = SEGUE_E_NOMEM;
    else if (fault != CURLUE_OK)
        snprintf(why, SGI_WHY_SIZE, "the URL is malformed");
    else if (strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0)
        snprintf(why, SGI_WHY_SIZE, "the URL is neither http nor https");
    else
        status = SEGUE_OK;
    curl_free(scheme);
    curl_url_cleanup(parts);
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
    if (copy_settings(mem, &fetcher->settings, settings))
        fetcher->pool = sgi_fetch_pool_join(rt);
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

/* ---- the request ---- */

/* True when the text is a valid header name: a token (RFC 9110, section 5.6.2). */
static bool is_token(sgi_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool alnum =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return text.n > 0;
}

/* True when the text is a valid header value: no character of the text can end the
 * line. */
static bool is_value(sgi_str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_named(sgi_str name, const char *other)
{
    return name.n == strlen(other) && strncasecmp(name.p, other, name.n) == 0;
}

static bool is_valid(const sgi_fetch_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (!is_token(request->headers[i].name) || !is_value(request->headers[i].value))
            return false;
    return request->method == SGI_FETCH_POST || !request->body || !request->body->len;
}

/* The headers that libcurl adds by itself; a line without value removes such a header.
 * "Expect" is removed because no body waits for "100 Continue". "Content-Type" is removed
 * because the caller sets the type of its body. */
static const char *const unwanted[] = {"Expect", "Content-Type"};

#define UNWANTED_COUNT (sizeof unwanted / sizeof *unwanted)

static bool is_given(const sgi_fetch_request *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (is_named(request->headers[i].name, name))
            return true;
    return false;
}

/* Writes a header line, ends the line with a NUL, and returns the position after the NUL.
 * A semicolon after the name makes libcurl send the header with an empty value. */
static char *put_line(char *to, sgi_str name, sgi_str value)
{
    memcpy(to, name.p, name.n);
    to += name.n;
    if (value.n) {
        memcpy(to, ": ", 2);
        memcpy(to + 2, value.p, value.n);
        to += 2 + value.n;
    } else {
        *to++ = ';';
    }
    *to++ = 0;
    return to;
}

static void put_headers(sgi_fetch *fetch, const sgi_fetch_request *request, char *to)
{
    struct curl_slist *nodes = (struct curl_slist *)(fetch + 1);
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        nodes[count++].data = to;
        to = put_line(to, request->headers[i].name, request->headers[i].value);
    }
    for (size_t i = 0; i < UNWANTED_COUNT; i++) {
        if (is_given(request, unwanted[i]))
            continue;
        nodes[count++].data = to;
        to += sprintf(to, "%s:", unwanted[i]) + 1;
    }
    for (size_t i = 0; i + 1 < count; i++)
        nodes[i].next = &nodes[i + 1];
    fetch->headers = count ? nodes : NULL;
}

static sgi_fetch *make_fetch(const sgi_mem *mem, const sgi_fetch_request *request)
{
    size_t nodes = (request->header_count + UNWANTED_COUNT) * sizeof(struct curl_slist);
    size_t texts = 0;
    for (size_t i = 0; i < request->header_count; i++)
        texts += request->headers[i].name.n + request->headers[i].value.n + sizeof ": ";
    for (size_t i = 0; i < UNWANTED_COUNT; i++)
        texts += strlen(unwanted[i]) + sizeof ":";
    size_t url = request->url ? strlen(request->url) + 1 : 0;
    size_t size = sizeof(sgi_fetch) + nodes + texts + url;
    sgi_fetch *fetch = sgi_zalloc(mem, size);
    if (!fetch)
        return NULL;
    fetch->size = size;
    fetch->method = request->method;
    fetch->once = request->once;
    fetch->lane = request->lane;
    fetch->public_only = request->public_only;
    if (request->excepted)
        fetch->excepted = *request->excepted;
    put_headers(fetch, request, (char *)(fetch + 1) + nodes);
    if (url)
        fetch->url = memcpy((char *)(fetch + 1) + nodes + texts, request->url, url);
    sgi_buf_init(&fetch->head, mem);
    sgi_buf_init(&fetch->body, mem);
    if (request->body) {
        fetch->body = *request->body;
        sgi_buf_init(request->body, request->body->mem);
    }
    return fetch;
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
    if (!is_valid(request))
        return SEGUE_E_INVALID;
    sgi_fetch *fetch = make_fetch(mem_of(pool), request);
    if (!fetch)
        return SEGUE_E_NOMEM;
    fetch->fetcher = fetcher;
    if (!fetch->url)
        fetch->url = fetcher->settings.url;
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
    sgi_buf_free(&fetch->body);
    sgi_buf_free(&fetch->head);
    sgi_free(mem, fetch, fetch->size);
    for (int lane = 0; lane < SGI_FETCH_LANES; lane++)
        start_next(fetcher, (sgi_fetch_lane)lane);
    unref(fetcher);
}

/* ---- response headers ---- */

static sgi_str trimmed(const char *p, size_t n)
{
    while (n && (*p == ' ' || *p == '\t'))
        p++, n--;
    while (n && strchr(" \t\r\n", p[n - 1]))
        n--;
    return (sgi_str){p, n};
}

/* Returns the value of the next response header with this name at or after *at, and moves
 * *at past this header. The result's p is NULL when there is no further header with this
 * name. */
static sgi_str next_header(const sgi_fetch *fetch, const char *name, size_t *at)
{
    while (*at < fetch->head.len) {
        const char *line = fetch->head.p + *at;
        size_t left = fetch->head.len - *at;
        const char *end = memchr(line, '\n', left);
        size_t n = end ? (size_t)(end + 1 - line) : left;
        const char *colon = memchr(line, ':', n);
        *at += n;
        if (colon && is_named((sgi_str){line, (size_t)(colon - line)}, name))
            return trimmed(colon + 1, n - (size_t)(colon + 1 - line));
    }
    return (sgi_str){NULL, 0};
}

sgi_str sgi_fetch_get_header(const sgi_fetch *fetch, const char *name)
{
    size_t at = 0;
    return next_header(fetch, name, &at);
}

void sgi_fetch_add_headers(const sgi_fetch *fetch, const char *name, sgi_buf *out)
{
    size_t at = 0;
    sgi_str value = next_header(fetch, name, &at);
    for (bool more = false; value.p; more = true) {
        if (more)
            sgi_buf_add_lit(out, ", ");
        sgi_buf_add_str(out, value);
        value = next_header(fetch, name, &at);
    }
}
