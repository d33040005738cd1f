/* The request of a fetch. A fetch for libcurl is one block of memory: the struct, the
 * list of headers, and the texts of the headers. A direct fetch (see fetch_direct.c) has
 * the head of its request as a text instead. */
#include "transport/fetch_state.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/http1.h"
#include "wire/http1_text.h"
#include "wire/url.h"

/* The usual size in bytes of the head of a direct request. */
#define USUAL_HEAD 512

/* ---- the request ---- */

/* True when the name is a token (RFC 9110, section 5.6.2), and no character of the value
 * can end the line. */
static bool is_header(sgi_str name, sgi_str value)
{
    return name.n && sgi_http1_span(name, SGI_HTTP1_TOKEN) == name.n &&
           sgi_http1_is_value(value);
}

bool sgi_fetch_request_is_valid(const sgi_fetch_request *request)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (!is_header(request->headers[i].name, request->headers[i].value))
            return false;
    return request->method == SGI_FETCH_POST || !request->body || !request->body->len;
}

/* The headers that libcurl adds by itself; a line without value removes such a header.
 * "Expect" is removed because no body waits for "100 Continue". "Content-Type" is removed
 * because the caller sets the type of its body. */
static const sgi_str unwanted[] = {SGI_STR_INIT("Expect"), SGI_STR_INIT("Content-Type")};

#define UNWANTED_COUNT (sizeof unwanted / sizeof *unwanted)

static bool is_given(const sgi_fetch_request *request, sgi_str name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (sgi_http1_same_ignoring_case(request->headers[i].name, name))
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
        to += sprintf(to, "%s:", unwanted[i].p) + 1;
    }
    for (size_t i = 0; i + 1 < count; i++)
        nodes[i].next = &nodes[i + 1];
    fetch->headers = count ? nodes : NULL;
}

/* ---- direct fetches ---- */

/* True when the environment names a proxy for plain HTTP. */
static bool has_proxy_of_environment(void)
{
    static const char *const names[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *proxy = getenv(names[i]);
        if (proxy && *proxy)
            return true;
    }
    return false;
}

/* True when libcurl could write the host in another form, as 127.0.0.1 for 127.1. */
static bool is_odd_address(sgi_str host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr address;
    if (host.p[0] < '0' || host.p[0] > '9')
        return false;
    for (size_t i = 0; i < host.n; i++)
        if (!host.p[i] || !strchr("0123456789.xXabcdefABCDEF", host.p[i]))
            return false;
    snprintf(text, sizeof text, "%.*s", (int)host.n, host.p);
    return host.n >= sizeof text || inet_pton(AF_INET, text, &address) != 1;
}

/* Finds out where direct fetches go. libcurl carries the fetches if they need TLS or a
 * proxy, or if the URL has a form that libcurl would change. */
void sgi_fetcher_find_route(sgi_fetcher *fetcher)
{
    const sgi_fetch_settings *settings = &fetcher->settings;
    const char *proxy = settings->unix_socket ? "" : settings->proxy;
    sgi_url url;
    if (settings->by_libcurl || (proxy ? *proxy != 0 : has_proxy_of_environment()) ||
        !sgi_url_parse(sgi_str_of(settings->url), &url) || url.https ||
        url.has_fragment || url.path.n == 0 || strstr(settings->url, "/.") ||
        is_odd_address(url.host))
        return;
    size_t scheme = sizeof "http://" - 1;
    fetcher->authority = (sgi_str){url.origin.p + scheme, url.origin.n - scheme};
    if (url.port == 80)
        fetcher->authority.n = url.host.n;
    fetcher->target = sgi_str_of(url.path.p);
}

/* True when the request has no header that decides how the request is sent. */
static bool is_plain(const sgi_fetch_request *request)
{
    static const sgi_str special[] = {SGI_STR_INIT("Host"),
                                      SGI_STR_INIT("Content-Length"),
                                      SGI_STR_INIT("Connection"),
                                      SGI_STR_INIT("User-Agent"),
                                      SGI_STR_INIT("Expect"),
                                      SGI_STR_INIT("Upgrade"),
                                      SGI_STR_INIT("Transfer-Encoding")};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (is_given(request, special[i]))
            return false;
    return true;
}

static bool goes_direct(const sgi_fetcher *fetcher, const sgi_fetch_request *request)
{
    return fetcher->target.p && !request->url && !request->public_only &&
           is_plain(request);
}

static void add_request_head(sgi_buf *head, const sgi_fetcher *fetcher,
                             const sgi_fetch_request *request)
{
    static const sgi_str methods[] = {SGI_STR_INIT("GET "), SGI_STR_INIT("POST "),
                                      SGI_STR_INIT("DELETE ")};
    sgi_buf_add_str(head, methods[request->method]);
    sgi_buf_add_str(head, fetcher->target);
    sgi_buf_add_lit(head, " HTTP/1.1\r\nHost: ");
    sgi_buf_add_str(head, fetcher->authority);
    sgi_buf_add_lit(head, "\r\nUser-Agent: segue/" SGI_VERSION "\r\n");
    if (!is_given(request, SGI_STR("Accept")))
        sgi_buf_add_lit(head, "Accept: */*\r\n");
    for (size_t i = 0; i < request->header_count; i++) {
        sgi_buf_add_str(head, request->headers[i].name);
        sgi_buf_add(head, ": ", request->headers[i].value.n ? 2 : 1);
        sgi_buf_add_str(head, request->headers[i].value);
        sgi_buf_add_lit(head, "\r\n");
    }
    if (request->method == SGI_FETCH_POST) {
        sgi_buf_add_lit(head, "Content-Length: ");
        sgi_buf_add_int(head, request->body ? (int64_t)request->body->len : 0);
        sgi_buf_add_lit(head, "\r\n");
    }
    sgi_buf_add_lit(head, "\r\n");
}

/* ---- making a fetch ---- */

/* Makes the fetch with the request's headers for libcurl in the same block of memory. */
static sgi_fetch *make_for_libcurl(const sgi_mem *mem, const sgi_fetch_request *request)
{
    size_t nodes = (request->header_count + UNWANTED_COUNT) * sizeof(struct curl_slist);
    size_t texts = 0;
    for (size_t i = 0; i < request->header_count; i++)
        texts += request->headers[i].name.n + request->headers[i].value.n + sizeof ": ";
    for (size_t i = 0; i < UNWANTED_COUNT; i++)
        texts += unwanted[i].n + sizeof ":";
    size_t url = request->url ? strlen(request->url) + 1 : 0;
    size_t size = sizeof(sgi_fetch) + nodes + texts + url;
    sgi_fetch *fetch = sgi_zalloc(mem, size);
    if (!fetch)
        return NULL;
    fetch->size = size;
    put_headers(fetch, request, (char *)(fetch + 1) + nodes);
    if (url)
        fetch->url = memcpy((char *)(fetch + 1) + nodes + texts, request->url, url);
    return fetch;
}

static sgi_fetch *make_direct(const sgi_mem *mem, const sgi_fetcher *fetcher,
                              const sgi_fetch_request *request)
{
    sgi_fetch *fetch = sgi_zalloc(mem, sizeof *fetch);
    if (!fetch)
        return NULL;
    fetch->size = sizeof *fetch;
    fetch->is_direct = true;
    sgi_buf_init(&fetch->request_head, mem);
    sgi_buf_reserve(&fetch->request_head, USUAL_HEAD);
    add_request_head(&fetch->request_head, fetcher, request);
    if (!fetch->request_head.failed)
        return fetch;
    sgi_buf_free(&fetch->request_head);
    sgi_free(mem, fetch, fetch->size);
    return NULL;
}

/* Fills in what a fetch of either kind has. Takes the body out of the request. */
static void take_request(sgi_fetch *fetch, const sgi_mem *mem,
                         const sgi_fetch_request *request)
{
    fetch->method = request->method;
    fetch->once = request->once;
    fetch->lane = request->lane;
    fetch->public_only = request->public_only;
    if (request->excepted)
        fetch->excepted = *request->excepted;
    sgi_buf_init(&fetch->head, mem);
    sgi_buf_init(&fetch->body, mem);
    if (request->body) {
        fetch->body = *request->body;
        sgi_buf_init(request->body, request->body->mem);
    }
}

sgi_fetch *sgi_fetch_make(const sgi_fetcher *fetcher, const sgi_fetch_request *request)
{
    const sgi_mem *mem =
        sgi_engine_mem(sgi_runtime_engine(fetcher->pool->carrier.runtime));
    sgi_fetch *fetch = goes_direct(fetcher, request) ? make_direct(mem, fetcher, request)
                                                     : make_for_libcurl(mem, request);
    if (!fetch)
        return NULL;
    take_request(fetch, mem, request);
    if (!fetch->url)
        fetch->url = fetcher->settings.url;
    return fetch;
}
