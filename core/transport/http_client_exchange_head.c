/* Writes the headers of a request in this order: the headers of MCP, of the tool's
 * parameters, and of the application. The application's headers are stored packed (name
 * NUL value NUL), in the order in which they were set. The application cannot set a
 * header that MCP sets. */
#include "transport/http_client_exchange.h"

#include <strings.h>

/* ---- headers of a request ---- */

size_t sgi_http_unpack_headers(sgi_str packed, sgi_fetch_header_line *lines, size_t room)
{
    const char *at = packed.p;
    const char *end = packed.p + packed.n;
    size_t count = 0;
    for (; count < room && at < end; count++) {
        lines[count].name = sgi_str_of(at);
        at += lines[count].name.n + 1;
        lines[count].value = sgi_str_of(at);
        at += lines[count].value.n + 1;
    }
    return count;
}

static void add_line(sgi_fetch_request *request, sgi_fetch_header_line *lines,
                     const char *name, sgi_str value)
{
    if (value.p)
        lines[request->header_count++] = (sgi_fetch_header_line){sgi_str_of(name), value};
}

static void add_token(sgi_client_exchange *exchange, sgi_fetch_request *request,
                      sgi_fetch_header_line *lines)
{
    sgi_str header = sgi_http_auth_header(exchange->client->auth, &exchange->token);
    if (header.n)
        add_line(request, lines, "Authorization", header);
}

void sgi_client_exchange_add_headers(sgi_client_exchange *exchange,
                                     sgi_fetch_request *request,
                                     sgi_fetch_header_line *lines)
{
    sgi_http_client *client = exchange->client;
    sgi_exchange_head head;
    sgi_exchange_get_head(exchange->conn, &head);
    bool gets = request->method == SGI_FETCH_GET;
    bool in_session = !head.stateless && exchange->kind != SGI_EXCHANGE_INITIALIZE;
    sgi_str last = sgi_sse_last_id(&exchange->response.sse);
    add_line(request, lines, "Accept",
             gets ? SGI_STR("text/event-stream")
                  : SGI_STR("application/json, text/event-stream"));
    if (!gets)
        add_line(request, lines, "Content-Type", SGI_STR("application/json"));
    if (head.version.n)
        add_line(request, lines, "MCP-Protocol-Version", head.version);
    if (head.method.n)
        add_line(request, lines, "Mcp-Method", head.method);
    add_line(request, lines, "Mcp-Name", head.name);
    if (in_session && !client->version.len)
        sgi_buf_add_str(&client->version, head.version);
    exchange->in_session = in_session && client->session.len;
    if (exchange->in_session)
        add_line(request, lines, "Mcp-Session-Id", sgi_buf_str(&client->session));
    if (!gets)
        last = head.last_event;
    if (last.n)
        add_line(request, lines, "Last-Event-ID", last);
    add_token(exchange, request, lines);
    if (!gets)
        request->header_count += sgi_http_unpack_headers(
            head.params, lines + request->header_count, SGI_MCP_MAX_PARAMS);
    request->header_count +=
        sgi_http_unpack_headers(sgi_buf_str(&client->headers),
                                lines + request->header_count, SGI_HTTP_HEADERS_MAX);
}

/* ---- headers of a response ---- */

/* The longest accepted Retry-After in ms. A longer wait is shortened to this time. */
#define RETRY_AFTER_MOST_MS 300000

void sgi_client_exchange_read_head(sgi_client_exchange *exchange, const sgi_fetch *fetch)
{
    int64_t ms = 0;
    sgi_exchange_on_status(exchange->conn, exchange->response.status);
    if (exchange->response.status == 429 || exchange->response.status == 503)
        ms = sgi_fetch_retry_after_ms(fetch);
    if (!ms)
        return;
    exchange->resumptions.retry_ms = ms < RETRY_AFTER_MOST_MS ? ms : RETRY_AFTER_MOST_MS;
    sgi_exchange_on_retry_after(exchange->conn, exchange->resumptions.retry_ms);
}

/* ---- headers of the application ---- */

static bool is_token(sgi_str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                    name.p[i]))
            return false;
    return name.n > 0;
}

static bool is_value(sgi_str value)
{
    for (size_t i = 0; i < value.n; i++)
        if ((value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] > '~')
            return false;
    return true;
}

static bool is_ours(const char *name)
{
    static const char *const ours[] = {"accept",
                                       "content-type",
                                       "content-length",
                                       "transfer-encoding",
                                       "connection",
                                       "mcp-method",
                                       "mcp-protocol-version",
                                       "mcp-session-id",
                                       "mcp-name",
                                       "last-event-id",
                                       "expect",
                                       "host"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!strcasecmp(name, ours[i]))
            return true;
    return !strncasecmp(name, "mcp-param-", 10);
}

/* Returns the position of a header in the packed headers, or the end of the packed
 * headers when the header is not set. *len receives the length of the header's entry. */
static size_t find(const sgi_http_client *client, const char *name, size_t *len)
{
    const sgi_buf *headers = &client->headers;
    size_t at = 0;
    while (at < headers->len) {
        const char *entry = headers->p + at;
        size_t name_len = strlen(entry) + 1;
        *len = name_len + strlen(entry + name_len) + 1;
        if (!strcasecmp(entry, name))
            break;
        at += *len;
    }
    return at;
}

bool sgi_http_client_has_custom_header(const sgi_http_client *client, const char *name)
{
    size_t len;
    return find(client, name, &len) < client->headers.len;
}

static void take_out(sgi_http_client *client, size_t at, size_t len)
{
    sgi_buf *headers = &client->headers;
    memmove(headers->p + at, headers->p + at + len, headers->len - at - len);
    headers->len -= len;
    client->header_count--;
}

static sgi_engine *engine_of(const sgi_http_client *client)
{
    return sgi_runtime_engine(sgi_transport_runtime(&client->base));
}

static segue_status may_be_set(const sgi_http_client *client, const char *name,
                               const char *value)
{
    sgi_engine *engine = engine_of(client);
    if (!is_token(sgi_str_of(name)))
        return sgi_refuse(engine, SEGUE_E_INVALID,
                          "the name of a header has an invalid character");
    if (is_ours(name))
        return sgi_refuse(
            engine, SEGUE_E_INVALID,
            "the header %.64s cannot be set, because the library sets it itself", name);
    if (client->auth && !strcasecmp(name, "authorization"))
        return sgi_refuse(
            engine, SEGUE_E_INVALID,
            "the header Authorization cannot be set, because the transport uses OAuth");
    return value && !is_value(sgi_str_of(value))
               ? sgi_refuse(engine, SEGUE_E_INVALID,
                            "the value of the header %.64s has a character that is not "
                            "visible ASCII",
                            name)
               : SEGUE_OK;
}

/* Sets, replaces or removes a header; value: NULL = remove. When out of memory, the old
 * value stays. */
segue_status sgi_http_set_header(sgi_http_client *client, const char *name,
                                 const char *value)
{
    sgi_buf *headers = &client->headers;
    size_t before = headers->len;
    size_t len = 0;
    size_t at = find(client, name, &len);
    bool is_set = at < before;
    sgi_conn *conn = sgi_transport_conn(&client->base);
    segue_status status = may_be_set(client, name, value);
    if (status != SEGUE_OK)
        return status;
    if (value && !is_set && client->header_count == SGI_HTTP_HEADERS_MAX)
        return sgi_refuse(engine_of(client), SEGUE_E_LIMIT,
                          "too many headers: at most %d can be set",
                          SGI_HTTP_HEADERS_MAX);
    if (is_set ? value && !strcmp(headers->p + at + strlen(name) + 1, value) : !value)
        return SEGUE_OK; /* the value has not changed */
    if (value) {
        sgi_buf_add(headers, name, strlen(name) + 1);
        sgi_buf_add(headers, value, strlen(value) + 1);
        if (headers->failed) {
            sgi_buf_truncate(headers, before);
            return SEGUE_E_NOMEM;
        }
        client->header_count++;
    }
    if (is_set)
        take_out(client, at, len);
    if (conn)
        sgi_conn_on_credentials_changed(conn);
    return SEGUE_OK;
}
