/* The head of a response: its header lines, and the decision whether the response goes on
 * to the owner of the fetch. */
#include "transport/fetch_state.h"

#include <stdio.h>
#include <time.h>

#include "wire/http1_text.h"

/* ---- header lines ---- */

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
        if (colon && sgi_http1_same_ignoring_case((sgi_str){line, (size_t)(colon - line)},
                                                  sgi_str_of(name)))
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

/* Returns the value of Retry-After as a number of seconds, or -1 when the value is a date
 * or malformed. */
static int64_t seconds_of(sgi_str value)
{
    int64_t seconds = 0;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] < '0' || value.p[i] > '9')
            return -1;
        if (seconds < INT32_MAX)
            seconds = seconds * 10 + (value.p[i] - '0');
    }
    return value.n ? seconds : -1;
}

int64_t sgi_fetch_retry_after_ms(const sgi_fetch *fetch)
{
    char date[64];
    sgi_str value = sgi_fetch_get_header(fetch, "retry-after");
    const sgi_env *env = sgi_engine_env(sgi_runtime_engine(sgi_fetch_runtime(fetch)));
    if (!value.p || value.n >= sizeof date)
        return 0;
    int64_t seconds = seconds_of(value);
    if (seconds < 0) {
        snprintf(date, sizeof date, "%.*s", (int)value.n, value.p);
        time_t then = sgi_curl.curl_getdate(date, NULL);
        seconds = then < 0 ? 0 : (int64_t)then - sgi_wall_now(env) / 1000;
    }
    if (seconds <= 0)
        return 0;
    return seconds < INT32_MAX ? seconds * 1000 : INT64_C(1000) * INT32_MAX;
}

/* ---- redirects ---- */

/* Writes "scheme://host:port/path" of the redirect's target into `to`, or "elsewhere" if
 * the target cannot be parsed. "?..." stands for the query, which may have secrets, and
 * "..." for the end of a long path. */
static void name_target(const sgi_fetch *fetch, sgi_str location, char *to, size_t size)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL, *query = NULL;
    char text[1024];
    CURLU *url = sgi_curl.curl_url();
    snprintf(to, size, "elsewhere");
    if (url && location.n < sizeof text) {
        snprintf(text, sizeof text, "%.*s", (int)location.n, location.p);
        if (!sgi_curl.curl_url_set(url, CURLUPART_URL, fetch->url, 0) &&
            !sgi_curl.curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) &&
            !sgi_curl.curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) &&
            !sgi_curl.curl_url_get(url, CURLUPART_HOST, &host, 0) &&
            !sgi_curl.curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) &&
            !sgi_curl.curl_url_get(url, CURLUPART_PATH, &path, 0)) {
            sgi_curl.curl_url_get(url, CURLUPART_QUERY, &query, 0);
            int len = snprintf(to, size, "%s://%s:%s%s%s", scheme, host, port, path,
                               query ? "?..." : "");
            if (len >= (int)size)
                memcpy(to + size - sizeof "...", "...", sizeof "...");
        }
    }
    sgi_curl.curl_free(scheme);
    sgi_curl.curl_free(host);
    sgi_curl.curl_free(port);
    sgi_curl.curl_free(path);
    sgi_curl.curl_free(query);
    sgi_curl.curl_url_cleanup(url);
}

/* True when the response is a redirect; `fault` and `why` are then set. Redirects are
 * refused, because the headers and the body could go to the wrong server. */
static bool is_redirect(sgi_fetch *fetch, int32_t status)
{
    char target[SGI_WHY_SIZE - 70];
    sgi_str location = sgi_fetch_get_header(fetch, "location");
    if (status < 300 || status > 399 || !location.p)
        return false;
    name_target(fetch, location, target, sizeof target);
    snprintf(fetch->why, sizeof fetch->why,
             "the server redirects to %s (%d), and redirects are not followed", target,
             (int)status);
    fetch->fault = SGI_FETCH_REDIRECTED;
    return true;
}

/* ---- the whole head ---- */

bool sgi_fetch_take_head(sgi_fetch *fetch, int32_t status, const sgi_ip_address *address)
{
    if (is_redirect(fetch, status))
        return false;
    fetch->headed = true;
    if (address)
        fetch->fetcher->address = *address;
    fetch->events->head(fetch->user, fetch, status);
    return !fetch->cancelled;
}
