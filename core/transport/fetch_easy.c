/* One fetch as libcurl sees it: the options of its handle, the callbacks for the
 * response, and the meaning of the result.
 *
 * Headers are stored line by line. A new status line (for example after a 100) clears the
 * stored headers; the empty line after the last block completes the head. Trailers arrive
 * after the head and are dropped.
 *
 * Pause: while the owner has paused the fetch, on_bytes refuses bytes
 * (CURL_WRITEFUNC_PAUSE). libcurl keeps the refused piece, stops reading, and delivers
 * the same piece again later. A piece that was delivered before the owner paused is
 * consumed whole. With HTTP/1.1 libcurl keeps no more than one piece. With HTTP/2 the
 * window of the stream is closed; while libcurl reads other streams of the connection, it
 * stores what the peer may still send on the paused stream: up to the window, 32 MiB in
 * 7.88. The option http1_only avoids this memory use.
 *
 * When this code ends a transfer itself (cancelled, redirected, head too large), it
 * refuses what libcurl delivers; `fault` and `why` then have the reason. */
#include "transport/fetch_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/thresholds.h"
#include "wire/url.h"

#define DEFAULT_CONNECT_MS 30000
#define DEFAULT_KEEPALIVE_S 30
/* The size of libcurl's read buffer, of which each running fetch has one. The buffer has
 * space for what a peer writes at once, if the peer collects its output up to 64 KiB. A
 * larger buffer is not faster, and after a stall its pages stay in memory. */
#define READ_BYTES (64L * 1024)

/* ---- callbacks ---- */

static void set_fault(sgi_fetch *fetch, sgi_fetch_fault fault, const char *why)
{
    fetch->fault = fault;
    snprintf(fetch->why, sizeof fetch->why, "%s", why);
}

/* Handles the end of a head. Returns false when the transfer has to end. The caller holds
 * the lock. */
static bool take_head(sgi_fetch *fetch, int32_t status)
{
    char *text = NULL;
    sgi_ip_address address;
    bool known =
        status >= 200 &&
        sgi_curl.curl_easy_getinfo(fetch->easy, CURLINFO_PRIMARY_IP, &text) == CURLE_OK &&
        text && sgi_ip_address_parse(sgi_str_of(text), &address);
    if (status < 200)
        return true; /* a status below 200 is provisional; another head follows */
    return sgi_fetch_take_head(fetch, status, known ? &address : NULL);
}

/* Handles one line of the head. Returns false when the transfer has to end. The caller
 * holds the lock. */
static bool take_line(sgi_fetch *fetch, const char *line, size_t n, int32_t status)
{
    if (fetch->cancelled)
        return false;
    if (fetch->headed)
        return true; /* the line is a trailer, which is dropped */
    if (n <= 2 && (line[0] == '\r' || line[0] == '\n'))
        return take_head(fetch, status);
    if (n >= 5 && memcmp(line, "HTTP/", 5) == 0) {
        fetch->head.len = 0;
        return true;
    }
    if (n > SGI_FETCH_HEAD_MAX - fetch->head.len) {
        set_fault(fetch, SGI_FETCH_TOO_LARGE, "the response's headers are too large");
        return false;
    }
    sgi_buf_add(&fetch->head, line, n);
    if (fetch->head.failed)
        set_fault(fetch, SGI_FETCH_NOMEM, "out of memory");
    return !fetch->head.failed;
}

/* The callback of CURLOPT_HEADERFUNCTION. libcurl calls it with one header line at a
 * time. */
static size_t on_line(char *line, size_t size, size_t n, void *user)
{
    sgi_fetch *fetch = user;
    segue_runtime *rt = sgi_fetch_runtime(fetch);
    long status = 0;
    (void)size; /* libcurl always passes 1 as the size */
    if (n == 0)
        return 0;
    sgi_curl.curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    sgi_runtime_lock(rt);
    bool go_on = take_line(fetch, line, n, (int32_t)status);
    sgi_runtime_unlock(rt);
    return go_on ? n : 0;
}

/* The callback of CURLOPT_WRITEFUNCTION. libcurl calls it with each piece of the body. */
static size_t on_bytes(char *bytes, size_t size, size_t n, void *user)
{
    sgi_fetch *fetch = user;
    segue_runtime *rt = sgi_fetch_runtime(fetch);
    size_t taken = n;
    (void)size; /* libcurl always passes 1 as the size */
    sgi_runtime_lock(rt);
    if (!fetch->cancelled && fetch->paused) {
        fetch->held = true;
        taken = CURL_WRITEFUNC_PAUSE;
    } else if (!fetch->cancelled && n) {
        fetch->events->bytes(fetch->user, fetch, bytes, n);
    }
    if (fetch->cancelled)
        /* libcurl takes any number other than n as an error, and ends the transfer */
        taken = n + 1;
    sgi_runtime_unlock(rt);
    return taken;
}

/* The callback of CURLOPT_READFUNCTION. Copies the next bytes of a body that must be sent
 * only once. */
static size_t on_body(char *into, size_t size, size_t n, void *user)
{
    sgi_fetch *fetch = user;
    size_t room = size * n;
    size_t left = fetch->body.len - fetch->sent;
    size_t take = left < room ? left : room;
    if (take)
        memcpy(into, fetch->body.p + fetch->sent, take);
    fetch->sent += take;
    return take;
}

/* The callback of CURLOPT_SEEKFUNCTION. libcurl calls it to send the body again, after a
 * reused connection has died without an answer. When a part of the body was already sent,
 * the function refuses, because the server can have processed this part. */
static int on_seek(void *user, curl_off_t offset, int origin)
{
    sgi_fetch *fetch = user;
    if (fetch->sent || offset || origin != SEEK_SET)
        return CURL_SEEKFUNC_FAIL;
    return CURL_SEEKFUNC_OK;
}

/* ---- options ---- */

/* Sets an option of libcurl. On failure, SET returns from the function that uses it. */
#define SET(option, value)                                                               \
    do {                                                                                 \
        CURLcode fault_ = sgi_curl.curl_easy_setopt(easy, option, value);                \
        if (fault_ != CURLE_OK)                                                          \
            return fault_;                                                               \
    } while (0)

static bool has_http2(void)
{
    return sgi_curl.curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2;
}

static CURLcode set_callbacks(CURL *easy, sgi_fetch *fetch)
{
    SET(CURLOPT_PRIVATE, fetch);
    SET(CURLOPT_ERRORBUFFER, fetch->text);
    SET(CURLOPT_HEADERFUNCTION, on_line);
    SET(CURLOPT_HEADERDATA, fetch);
    SET(CURLOPT_WRITEFUNCTION, on_bytes);
    SET(CURLOPT_WRITEDATA, fetch);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_BUFFERSIZE, READ_BYTES);
    SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* without this option libcurl waits for the end of a cancelled name look-up */
    SET(CURLOPT_QUICK_EXIT, 1L);
#endif
    return CURLE_OK;
}

static CURLcode set_request(CURL *easy, sgi_fetch *fetch)
{
    if (fetch->method == SGI_FETCH_POST) {
        SET(CURLOPT_POST, 1L);
        if (fetch->once) {
            SET(CURLOPT_READFUNCTION, on_body);
            SET(CURLOPT_READDATA, fetch);
            SET(CURLOPT_SEEKFUNCTION, on_seek);
            SET(CURLOPT_SEEKDATA, fetch);
            SET(CURLOPT_MAXAGE_CONN, (long)(SGI_THRESHOLD(once_idle_ms) / 1000));
        } else {
            SET(CURLOPT_POSTFIELDS, fetch->body.len ? fetch->body.p : "");
        }
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)fetch->body.len);
    } else {
        SET(CURLOPT_HTTPGET, 1L);
        if (fetch->method == SGI_FETCH_DELETE)
            SET(CURLOPT_CUSTOMREQUEST, "DELETE");
    }
    SET(CURLOPT_HTTPHEADER, fetch->headers);
    SET(CURLOPT_USERAGENT, "segue/" SGI_VERSION);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    return CURLE_OK;
}

static CURLcode set_protocols(CURL *easy, const sgi_fetch *fetch)
{
    bool http2 = !fetch->fetcher->settings.http1_only && has_http2();
    SET(CURLOPT_URL, fetch->url);
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    SET(CURLOPT_HTTP_VERSION,
        (long)(http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    return CURLE_OK;
}

/* Sets the route of the connection: Unix socket, proxy and time limits. A proxy of the
 * settings is used even if NO_PROXY excludes the host. */
static CURLcode set_route(CURL *easy, const sgi_fetch *fetch)
{
    const sgi_fetch_settings *settings = &fetch->fetcher->settings;
    const char *proxy = fetch->is_direct ? "" : settings->proxy;
    int64_t connect_ms = settings->connect_timeout_ms;
    int64_t keepalive_s =
        settings->keepalive_s ? settings->keepalive_s : DEFAULT_KEEPALIVE_S;
    if (settings->unix_socket) {
        SET(CURLOPT_UNIX_SOCKET_PATH, settings->unix_socket);
        proxy = "";
    }
    if (proxy) {
        SET(CURLOPT_PROXY, proxy);
        SET(CURLOPT_NOPROXY, "");
    }
    SET(CURLOPT_CONNECTTIMEOUT_MS,
        (long)(connect_ms > 0 ? connect_ms : DEFAULT_CONNECT_MS));
    SET(CURLOPT_TCP_NODELAY, 1L);
    if (keepalive_s > 0) {
        SET(CURLOPT_TCP_KEEPALIVE, 1L);
        SET(CURLOPT_TCP_KEEPIDLE, (long)keepalive_s);
        SET(CURLOPT_TCP_KEEPINTVL, (long)keepalive_s);
    }
    return CURLE_OK;
}

static CURLcode set_tls(CURL *easy, const sgi_fetch_settings *settings)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, settings->insecure ? 0L : 1L);
    SET(CURLOPT_SSL_VERIFYHOST, settings->insecure ? 0L : 2L);
    if (settings->ca_file || settings->ca_path) {
        SET(CURLOPT_CAINFO, settings->ca_file);
        SET(CURLOPT_CAPATH, settings->ca_path);
    }
    if (settings->client_cert) {
        SET(CURLOPT_SSLCERT, settings->client_cert);
        SET(CURLOPT_SSLKEY,
            settings->client_key ? settings->client_key : settings->client_cert);
        SET(CURLOPT_KEYPASSWD, settings->key_password);
    }
    return CURLE_OK;
}

/* ---- allowed addresses ---- */

static bool is_allowed(const sgi_fetch *fetch, const sgi_ip_address *address)
{
    const sgi_ip_address *excepted = &fetch->excepted;
    return sgi_ip_address_is_public(address) || sgi_ip_address_same(address, excepted) ||
           (sgi_ip_address_is_loopback(address) && sgi_ip_address_is_loopback(excepted));
}

static void shut_out(sgi_fetch *fetch, sgi_str what)
{
    fetch->shut_out = true;
    snprintf(fetch->why, sizeof fetch->why,
             "%.*s is not a public address, so a URL that the server named is refused: "
             "set allow_private_addresses to allow it",
             (int)what.n, what.p);
}

/* The callback of CURLOPT_OPENSOCKETFUNCTION. Checks the address after the name look-up,
 * so that a name that resolves to different addresses cannot get around the check. The
 * address of a proxy is not checked, because the application has chosen the proxy. A
 * proxy is recognised by its port, which differs from the URL's port. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    sgi_fetch *fetch = user;
    sgi_ip_address address;
    sgi_url url;
    char text[INET6_ADDRSTRLEN];
    uint16_t port;
    (void)purpose;
    if (sgi_ip_address_from_sockaddr(&to->addr, &address, &port) &&
        !is_allowed(fetch, &address) &&
        (!sgi_url_parse(sgi_str_of(fetch->url), &url) || url.port == port)) {
        if (!inet_ntop(address.family, address.bytes, text, sizeof text))
            *text = 0;
        shut_out(fetch, sgi_str_of(text));
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* True when the host of the URL is itself an address that is not allowed. Such a URL is
 * refused before the connection, because a proxy would connect to the address without a
 * check. */
static bool names_private(sgi_fetch *fetch)
{
    sgi_url url;
    sgi_ip_address address;
    if (!sgi_url_parse(sgi_str_of(fetch->url), &url) ||
        !sgi_ip_address_parse(url.host, &address) || is_allowed(fetch, &address))
        return false;
    shut_out(fetch, url.host);
    return true;
}

/* Restricts the fetch to public addresses. The fetch must not reuse a connection of
 * the pool, because a pooled connection can have been made without this restriction. */
static CURLcode set_public(CURL *easy, sgi_fetch *fetch)
{
    if (!fetch->public_only)
        return CURLE_OK;
    if (names_private(fetch))
        return CURLE_COULDNT_CONNECT;
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_OPENSOCKETDATA, fetch);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    return CURLE_OK;
}

/* Makes libcurl connect and nothing else. The connection then belongs to
 * fetch_direct.c. */
static CURLcode set_connection(CURL *easy, sgi_fetch *fetch)
{
    SET(CURLOPT_CONNECT_ONLY, 1L);
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_CLOSESOCKETFUNCTION, sgi_fetch_direct_on_close);
    SET(CURLOPT_CLOSESOCKETDATA, fetch->fetcher->pool);
    return CURLE_OK;
}

CURLcode sgi_fetch_easy_open(sgi_fetch *fetch)
{
    const sgi_fetch_settings *settings = &fetch->fetcher->settings;
    CURL *easy = fetch->easy = sgi_curl.curl_easy_init();
    if (!easy)
        return CURLE_OUT_OF_MEMORY;
    CURLcode fault = set_callbacks(easy, fetch);
    if (fault == CURLE_OK)
        fault = fetch->is_direct ? set_connection(easy, fetch) : set_request(easy, fetch);
    if (fault == CURLE_OK)
        fault = set_protocols(easy, fetch);
    if (fault == CURLE_OK)
        fault = set_route(easy, fetch);
    if (fault == CURLE_OK)
        fault = set_tls(easy, settings);
    if (fault == CURLE_OK)
        fault = set_public(easy, fetch);
    return fault;
}

/* ---- the outcome ---- */

static bool was_refused_by_proxy(CURL *easy)
{
    long status = 0;
    sgi_curl.curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &status);
    return status && (status < 200 || status > 299);
}

static bool is_within_head(const sgi_fetch *fetch)
{
    long bytes = 0;
    if (fetch->easy)
        sgi_curl.curl_easy_getinfo(fetch->easy, CURLINFO_HEADER_SIZE, &bytes);
    return bytes > 0 && !fetch->headed;
}

/* True when the connection was lost during the handshake of TLS, perhaps because the
 * server was killed. libcurl has the same code for this as for a certificate that is
 * refused, so the error of the system or libcurl's text decides. */
static bool was_lost_in_handshake(const sgi_fetch *fetch)
{
    static const char *const texts[] = {"SSL_ERROR_SYSCALL", "Recv failure",
                                        "Send failure", "unexpected eof"};
    long fault = 0;
    if (fetch->easy)
        sgi_curl.curl_easy_getinfo(fetch->easy, CURLINFO_OS_ERRNO, &fault);
    bool is_lost = fault == ECONNRESET || fault == EPIPE || fault == ECONNABORTED;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        is_lost |= strstr(fetch->text, texts[i]) != NULL;
    return is_lost;
}

static sgi_fetch_fault fault_of(const sgi_fetch *fetch, CURLcode result)
{
    switch (result) {
    /* the transfer was complete, or the connection ended within the headers */
    case CURLE_OK:
        return fetch->headed ? SGI_FETCH_OK : SGI_FETCH_BROKEN;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return SGI_FETCH_UNRESOLVED;
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
        return SGI_FETCH_UNREACHABLE;
    case CURLE_SSL_CONNECT_ERROR:
        return was_lost_in_handshake(fetch) ? SGI_FETCH_UNREACHABLE : SGI_FETCH_UNTRUSTED;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_BAD_FUNCTION_ARGUMENT: /* of newer ones, for the client's key */
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
        return SGI_FETCH_UNTRUSTED;
    case CURLE_OPERATION_TIMEDOUT:
        return SGI_FETCH_TIMEOUT;
    /* libcurl is out of memory, or a header line is too long for libcurl */
    case CURLE_OUT_OF_MEMORY:
        return is_within_head(fetch) ? SGI_FETCH_TOO_LARGE : SGI_FETCH_NOMEM;
#if LIBCURL_VERSION_NUM >= 0x080600
    case CURLE_TOO_LARGE:
        return SGI_FETCH_TOO_LARGE;
#endif
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL: /* the answer has no valid status line */
    case CURLE_BAD_CONTENT_ENCODING:
        return SGI_FETCH_MALFORMED;
    default:
        return fetch->easy && was_refused_by_proxy(fetch->easy) ? SGI_FETCH_UNREACHABLE
                                                                : SGI_FETCH_BROKEN;
    }
}

/* Names the Unix socket in the error text. libcurl's own text would name the host and
 * port of the URL, to which no connection was made. */
static void name_unix_socket(sgi_fetch *fetch, CURLcode result)
{
    const char *path = fetch->fetcher->settings.unix_socket;
    long fault = 0;
    char text[96];
    if (result != CURLE_COULDNT_CONNECT || !path || !fetch->easy)
        return;
    sgi_curl.curl_easy_getinfo(fetch->easy, CURLINFO_OS_ERRNO, &fault);
    const char *reason = fault ? sgi_transport_describe((int)fault, text, sizeof text)
                               : "no server listens there";
    snprintf(fetch->text, sizeof fetch->text, "Failed to connect to the socket %s: %s",
             path, reason);
}

void sgi_fetch_read_outcome(sgi_fetch *fetch, CURLcode result, sgi_fetch_outcome *outcome)
{
    outcome->fault = fetch->fault ? fetch->fault : fault_of(fetch, result);
    name_unix_socket(fetch, result);
    if (!fetch->fault && result == CURLE_COULDNT_CONNECT && fetch->shut_out) {
        outcome->fault = SGI_FETCH_SHUT_OUT;
        outcome->text = fetch->why;
        return;
    }
    if (fetch->once && fetch->sent &&
        (outcome->fault == SGI_FETCH_UNREACHABLE || outcome->fault == SGI_FETCH_TIMEOUT))
        /* the request was sent over an older connection that then died, so the server can
         * have received the request */
        outcome->fault = SGI_FETCH_BROKEN;
    if (outcome->fault == SGI_FETCH_OK)
        outcome->text = "";
    else if (fetch->fault)
        outcome->text = fetch->why;
    /* libcurl reports CURLE_SEND_FAIL_REWIND when on_seek has refused to send the body
     * again */
    else if (result == CURLE_SEND_FAIL_REWIND)
        outcome->text = "the connection was lost before the answer came";
    else if (fetch->text[0])
        outcome->text = fetch->text;
    else
        outcome->text =
            result ? sgi_curl.curl_easy_strerror(result) : "the response was cut off";
}
