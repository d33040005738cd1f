/* The keys of an authorization server. Only one fetch runs at a time.
 *
 * A token with an unknown key shows a new key of the issuer, or is forged. Unknown keys
 * cause at most LOOKS_MAX fetches per refresh_ms, however many such tokens arrive. A
 * single fetch per refresh_ms would not be enough: a forged token could use up this fetch
 * right before the issuer changes its keys. While there are no keys at all, fetches are
 * repeated sooner, because no caller can be served. When a fetch fails, the old keys stay
 * valid: an issuer that is down must not lock out callers with valid tokens. */
#include "transport/bearer_keys.h"

#include <stdio.h>

#include "wire/url.h"

#define LOOKS_MAX 2
/* while there are no keys, the length in ms of the period in which at most LOOKS_MAX
 * fetches are allowed */
#define RETRY_MS 1000

static sgi_engine *engine_of(const sgi_bearer_keys *keys)
{
    return sgi_runtime_engine(keys->runtime);
}

/* ---- texts and files ---- */

/* Replaces the keys by the key set in the text. Returns NULL, or a text that tells what
 * is wrong. A key set without usable keys is an error. */
static const char *replace_set(sgi_bearer_keys *keys, sgi_str text)
{
    const char *problem = NULL;
    sgi_jwks fresh;
    sgi_jwks_init(&fresh, keys->set.names.mem);
    if (!sgi_jwks_read(&fresh, sgi_engine_json_reader(engine_of(keys)), text, &problem))
        return problem;
    if (!fresh.count || keys->closed) {
        sgi_jwks_free(&fresh);
        return keys->closed ? "the listener has closed" : "the key set has no usable key";
    }
    sgi_jwks_free(&keys->set);
    keys->set = fresh;
    keys->loaded = true;
    return NULL;
}

static segue_status take_text(sgi_bearer_keys *keys, sgi_str text, char why[SGI_WHY_SIZE])
{
    sgi_runtime_lock(keys->runtime);
    const char *problem = replace_set(keys, text);
    sgi_runtime_unlock(keys->runtime);
    if (!problem)
        return SEGUE_OK;
    snprintf(why, SGI_WHY_SIZE, "%s", problem);
    return SEGUE_E_INVALID;
}

static segue_status read_file(sgi_bearer_keys *keys, char why[SGI_WHY_SIZE])
{
    sgi_buf text;
    FILE *file = fopen(keys->path, "re");
    segue_status status = SEGUE_E_IO;
    snprintf(why, SGI_WHY_SIZE, "the key set cannot be read from %s", keys->path);
    if (!file)
        return status;
    sgi_buf_init(&text, keys->set.names.mem);
    if (sgi_buf_reserve(&text, SGI_JWKS_BYTES + 1)) {
        text.len = fread(text.p, 1, SGI_JWKS_BYTES + 1, file);
        if (!ferror(file))
            status = take_text(keys, sgi_buf_str(&text), why);
    } else {
        status = SEGUE_E_NOMEM;
    }
    sgi_buf_free(&text);
    fclose(file);
    return status;
}

segue_status sgi_bearer_keys_reload(sgi_bearer_keys *keys, char why[SGI_WHY_SIZE])
{
    segue_status status = read_file(keys, why);
    return status == SEGUE_E_INVALID ? SEGUE_E_IO : status;
}

/* ---- fetching ---- */

static void on_deadline(sgi_timer *timer);

static void on_head(void *user, sgi_fetch *fetch, int32_t status)
{
    sgi_bearer_keys *keys = user;
    (void)fetch;
    keys->status = status;
}

static void on_bytes(void *user, sgi_fetch *fetch, const char *bytes, size_t len)
{
    sgi_bearer_keys *keys = user;
    (void)fetch;
    if (keys->failed || keys->body.len + len > SGI_JWKS_BYTES)
        /* the body is too long; the rest of the body is read and dropped */
        keys->failed = true;
    else
        sgi_buf_add(&keys->body, bytes, len);
}

/* Replaces the keys by the fetched key set. Returns NULL, or a text that tells what is
 * wrong. *changed becomes true when the key set differs from the last one. */
static const char *take_body(sgi_bearer_keys *keys, bool *changed)
{
    sgi_engine *engine = engine_of(keys);
    uint8_t digest[SGI_DIGEST_SIZE];
    const char *problem = NULL;
    sgi_str text = sgi_buf_str(&keys->body);
    if (keys->status != 200)
        return "the HTTP status is not 200";
    if (keys->failed || keys->body.failed)
        return "the answer is too large";
    if (!sgi_engine_digest(engine, digest, &text, 1))
        return "out of memory";
    *changed = !keys->loaded || memcmp(digest, keys->digest, sizeof digest) != 0;
    if (*changed &&
        !sgi_jwks_read(&keys->set, sgi_engine_json_reader(engine), text, &problem)) {
        *changed = false;
        return problem;
    }
    memcpy(keys->digest, digest, sizeof digest);
    keys->loaded = true;
    keys->fetched_ms = sgi_now(sgi_engine_env(engine));
    return NULL;
}

static void end_fetch(sgi_bearer_keys *keys, const char *problem)
{
    bool changed = false;
    keys->fetch = NULL;
    sgi_engine_clear_timer(engine_of(keys), &keys->deadline);
    if (!problem)
        problem = take_body(keys, &changed);
    keys->answered = !problem;
    if (problem)
        sgi_engine_log(engine_of(keys), SEGUE_LOG_WARNING,
                       "the key set cannot be fetched from jwks_url: %s", problem);
    sgi_buf_free(&keys->body);
    keys->done(keys, changed);
}

static void on_done(void *user, sgi_fetch *fetch, const sgi_fetch_outcome *outcome)
{
    (void)fetch;
    end_fetch(user, outcome->fault == SGI_FETCH_OK ? NULL : outcome->text);
}

static void on_deadline(sgi_timer *timer)
{
    sgi_bearer_keys *keys = SGI_OWNER(timer, sgi_bearer_keys, deadline);
    sgi_fetch_cancel(keys->fetch);
    end_fetch(keys, "no answer in time");
}

/* Starts the time limit of a fetch when the fetch is sent. A fetch can first wait for the
 * slot of an earlier, cancelled fetch; this wait does not count. */
static void on_start(void *user, sgi_fetch *fetch)
{
    sgi_bearer_keys *keys = user;
    (void)fetch;
    sgi_engine_set_timer(engine_of(keys), &keys->deadline, keys->timeout_ms, on_deadline);
}

/* Returns the time in ms until the current window of fetches ends; 0 or less = the window
 * is over. The next window counts its fetches from 0. */
static int64_t window_left(const sgi_bearer_keys *keys)
{
    int64_t window =
        keys->loaded || keys->refresh_ms < RETRY_MS ? keys->refresh_ms : RETRY_MS;
    if (!keys->looks)
        return 0;
    return window - (sgi_now(sgi_engine_env(engine_of(keys))) - keys->looked_ms);
}

int64_t sgi_bearer_keys_pause_ms(const sgi_bearer_keys *keys)
{
    int64_t left = window_left(keys);
    return left > 0 && keys->looks >= (keys->loaded ? LOOKS_MAX : 1) ? left : 0;
}

bool sgi_bearer_keys_may_come(const sgi_bearer_keys *keys)
{
    return keys->fetcher && !keys->answered;
}

/* Starts a fetch of the key set. Returns false when the fetch cannot be started. */
static bool fetch(sgi_bearer_keys *keys)
{
    static const sgi_fetch_events events = {on_start, on_head, on_bytes, on_done};
    static const sgi_fetch_header_line accept = {SGI_STR_INIT("Accept"),
                                                 SGI_STR_INIT("application/json")};
    sgi_fetch_request request = {.headers = &accept, .header_count = 1};
    sgi_engine *engine = engine_of(keys);
    if (window_left(keys) <= 0) {
        keys->looks = 0;
        keys->looked_ms = sgi_now(sgi_engine_env(engine));
    }
    keys->looks++;
    keys->answered = false;
    keys->status = 0;
    keys->failed = false;
    if (sgi_fetch_start(keys->fetcher, &request, &events, keys, &keys->fetch) !=
        SEGUE_OK) {
        keys->fetch = NULL;
        return false;
    }
    return true;
}

void sgi_bearer_keys_refresh(sgi_bearer_keys *keys)
{
    if (keys->fetcher && keys->loaded && !keys->fetch &&
        sgi_now(sgi_engine_env(engine_of(keys))) - keys->fetched_ms >= keys->age_ms &&
        window_left(keys) <= 0)
        fetch(keys);
}

bool sgi_bearer_keys_fetch_missing(sgi_bearer_keys *keys)
{
    return keys->fetch ||
           (keys->fetcher && !sgi_bearer_keys_pause_ms(keys) && fetch(keys));
}

/* ---- making and freeing ---- */

static segue_status open_url(sgi_bearer_keys *keys, const segue_bearer_options *o,
                             char why[SGI_WHY_SIZE])
{
    sgi_url url;
    sgi_fetch_settings settings = {.url = o->jwks_url,
                                   .ca_file = o->ca_file,
                                   .connect_timeout_ms = o->check_timeout_ms,
                                   .max_fetches = 1};
    if (!sgi_url_parse(sgi_str_of(o->jwks_url), &url) ||
        (!url.https && !sgi_url_is_loopback(&url))) {
        snprintf(why, SGI_WHY_SIZE, "jwks_url has to be an https URL");
        return SEGUE_E_INVALID;
    }
    return sgi_fetcher_new(keys->runtime, &settings, &keys->fetcher, why);
}

segue_status sgi_bearer_keys_open(sgi_bearer_keys *keys, segue_runtime *rt,
                                  const segue_bearer_options *o, char why[SGI_WHY_SIZE])
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(rt));
    *keys = (sgi_bearer_keys){.runtime = rt,
                              .path = o->jwks_file,
                              .age_ms = o->jwks_age_ms,
                              .refresh_ms = o->jwks_refresh_ms,
                              .timeout_ms = o->check_timeout_ms};
    sgi_jwks_init(&keys->set, mem);
    sgi_buf_init(&keys->body, mem);
    if (o->jwks)
        return take_text(keys, sgi_str_of(o->jwks), why);
    return o->jwks_file ? read_file(keys, why) : open_url(keys, o, why);
}

void sgi_bearer_keys_close(sgi_bearer_keys *keys)
{
    if (!keys->runtime || keys->closed)
        return;
    keys->closed = true;
    sgi_engine_clear_timer(engine_of(keys), &keys->deadline);
    sgi_fetcher_free(keys->fetcher);
    keys->fetcher = NULL;
    keys->fetch = NULL;
    sgi_buf_free(&keys->body);
    sgi_jwks_free(&keys->set);
}
