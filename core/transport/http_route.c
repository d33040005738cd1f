/* The checks of a request's head come in this order: health, metadata, Host, Origin,
 * path, method, repeated headers, Accept, Content-Type. The first check that fails
 * decides the answer.
 *
 * The checks of Host and Origin keep a web page in a user's browser from talking to a
 * server on the user's machine (DNS rebinding; 2026-07-28
 * basic/transports/streamable-http, "Security & Transport"). An attacker can bind a host
 * name to any address, but cannot change what an address means. By default a listener
 * therefore accepts as Host only addresses, and names that nobody else can have. A
 * listener that only this machine can reach accepts only local addresses and names. With
 * TLS, or when every caller needs a token, a listener that other machines can reach
 * accepts every name: a hostile page has no certificate for its name, and a browser never
 * adds the token by itself. If the operator lists hosts, exactly the listed hosts are
 * accepted. Pages of the server's own origin are accepted unless the operator lists the
 * origins. The task board is for its own page alone: a request of another page is
 * refused, whatever the origins of the listener are. The health check comes first,
 * because a program that asks for it may send no Host, and the answer reveals nothing.
 *
 * Accept is read leniently: a missing Accept allows every type, and an Accept that allows
 * one of the two types of an answer (JSON, events) is enough. */
#include "transport/http_route.h"

#include "wire/http1_text.h"
#include "wire/jsonrpc.h"
#include "wire/version.h"

static const char methods[] = "POST, GET, DELETE";
static const char methods_with_cors[] = "POST, GET, DELETE, OPTIONS";

static void refuse(sgi_http_head_verdict *route, int32_t status, const char *problem)
{
    route->kind = SGI_HTTP_REFUSED;
    route->status = status;
    route->code = SGI_RPC_INVALID_REQUEST;
    route->problem = problem;
}

/* ---- lists in headers ---- */

/* Stores the part of *list before the first separator in *item, and removes this part
 * from *list. Returns false when the list is empty. */
static bool next_of(sgi_str *list, char separator, sgi_str *item)
{
    if (!list->n)
        return false;
    const char *end = memchr(list->p, separator, list->n);
    size_t len = end ? (size_t)(end - list->p) : list->n;
    *item = sgi_http1_trim((sgi_str){list->p, len});
    *list = sgi_http1_skip(*list, end ? len + 1 : len);
    return true;
}

/* ---- Host and Origin ---- */

/* Returns the host without its port. An IPv6 address such as [::1] keeps its brackets. */
static sgi_str without_port(sgi_str host)
{
    size_t at = host.n;
    while (at && sgi_http1_is(host.p[at - 1], SGI_HTTP1_DIGIT))
        at--;
    if (at && host.p[at - 1] == ':' && (host.p[0] != '[' || host.p[at - 2] == ']'))
        host.n = at - 1;
    return host;
}

bool sgi_http_is_local_name(sgi_str name)
{
    return sgi_http1_same_ignoring_case(name, SGI_STR("localhost")) ||
           sgi_http1_same_ignoring_case(name, SGI_STR("127.0.0.1")) ||
           sgi_http1_same_ignoring_case(name, SGI_STR("[::1]"));
}

/* True when the text is a number from 0 to 255 without a leading zero. A leading zero is
 * not allowed, because some programs read 010 as eight. */
static bool is_octet(sgi_str text)
{
    int32_t value = 0;
    if (!text.n || text.n > 3 || sgi_http1_span(text, SGI_HTTP1_DIGIT) < text.n)
        return false;
    for (size_t i = 0; i < text.n; i++)
        value = value * 10 + (text.p[i] - '0');
    return value <= 255 && (text.n == 1 || *text.p != '0');
}

bool sgi_http_is_address(sgi_str name)
{
    sgi_str octet;
    int32_t count = 0;
    /* a name in brackets is an address, because the parser allows brackets only around an
     * address */
    if (name.n && *name.p == '[')
        return name.n > 2 && name.p[name.n - 1] == ']';
    if (name.n < 7 || name.n > 15 || name.p[name.n - 1] == '.')
        return false;
    while (next_of(&name, '.', &octet)) {
        if (!is_octet(octet))
            return false;
        count++;
    }
    return count == 4;
}

/* True when the name is the address that the listener is bound to, with or without
 * brackets. */
static bool is_bound(const sgi_http_policy *policy, sgi_str name)
{
    if (!policy->bound.n)
        return false;
    if (name.n > 2 && *name.p == '[')
        name = (sgi_str){name.p + 1, name.n - 2};
    return sgi_http1_same_ignoring_case(name, policy->bound);
}

static bool is_listed_host(sgi_str list, sgi_str host)
{
    sgi_str item, name = without_port(host);
    while (next_of(&list, ',', &item))
        if (item.n &&
            (sgi_str_eq(item, SGI_STR("*")) || sgi_http1_same_ignoring_case(item, host) ||
             sgi_http1_same_ignoring_case(item, name)))
            return true;
    return false;
}

static bool is_host_allowed(const sgi_http_policy *policy, sgi_str host)
{
    if (policy->hosts.p)
        return is_listed_host(policy->hosts, host);
    if ((policy->secure || policy->tokens) && !policy->local)
        return true;
    sgi_str name = without_port(host);
    return sgi_http_is_local_name(name) || is_bound(policy, name) ||
           (!policy->local && sgi_http_is_address(name));
}

/* Returns host:port of an http or https origin, otherwise an empty text. If the listener
 * uses TLS, an http origin counts as foreign, because the page was transferred without
 * protection and can be forged. */
static sgi_str host_of_origin(sgi_str origin, bool secure)
{
    static const sgi_str schemes[] = {SGI_STR_INIT("https://"), SGI_STR_INIT("http://")};
    for (size_t i = 0; i < (secure ? 1 : 2); i++)
        if (origin.n > schemes[i].n &&
            sgi_http1_same_ignoring_case((sgi_str){origin.p, schemes[i].n}, schemes[i]))
            return sgi_http1_skip(origin, schemes[i].n);
    return (sgi_str){0};
}

static bool is_origin_allowed(const sgi_http_policy *policy, sgi_str origin, sgi_str host)
{
    sgi_str item, list = policy->origins;
    while (next_of(&list, ',', &item))
        if (sgi_str_eq(item, SGI_STR("*")) || sgi_http1_same_ignoring_case(item, origin))
            return true;
    if (policy->origins.p)
        return false;
    sgi_str own = host_of_origin(origin, policy->secure && !policy->local);
    if (!own.n)
        return false;
    return policy->local ? sgi_http_is_local_name(without_port(own))
                         : sgi_http1_same_ignoring_case(own, host);
}

/* Checks the headers Host and Origin. Returns false when the request is refused; `route`
 * then has the refusal. */
static bool check_caller(const sgi_http_policy *policy, const sgi_http1_head *head,
                         sgi_http_head_verdict *route)
{
    sgi_str origin = sgi_http1_header(head, SGI_HTTP1_ORIGIN);
    if (!is_host_allowed(policy, head->host)) {
        refuse(route, 403,
               "The Host header names a host that this server does not serve: add it to "
               "the option hosts");
    } else if (!origin.p) {
        return true;
    } else if (sgi_http1_is_repeated(head, SGI_HTTP1_ORIGIN)) {
        refuse(route, 400, "The header Origin is repeated");
    } else if (!is_origin_allowed(policy, origin, head->host)) {
        refuse(route, 403,
               "The server does not allow requests from this Origin: add it to the "
               "option origins");
    } else {
        if (policy->cors)
            route->origin = origin;
        return true;
    }
    return false;
}

/* ---- repeated headers ---- */

static const struct {
    sgi_http1_name name;
    const char *problem;
} singles[] = {
    {SGI_HTTP1_MCP_PROTOCOL_VERSION, "Header mismatch: MCP-Protocol-Version is repeated"},
    {SGI_HTTP1_MCP_METHOD, "Header mismatch: Mcp-Method is repeated"},
    {SGI_HTTP1_MCP_NAME, "Header mismatch: Mcp-Name is repeated"},
    {SGI_HTTP1_MCP_SESSION_ID, "Header mismatch: Mcp-Session-Id is repeated"},
    {SGI_HTTP1_LAST_EVENT_ID, "Header mismatch: Last-Event-ID is repeated"},
    {SGI_HTTP1_AUTHORIZATION, "Header mismatch: Authorization is repeated"},
    {SGI_HTTP1_CONTENT_TYPE, "Header mismatch: Content-Type is repeated"},
};

/* True when the protocol version of the request defines an error code for header
 * mismatches. */
static bool has_mismatch_code(const sgi_http1_head *head)
{
    return sgi_version_name_has_mismatch_code(
        sgi_http1_header(head, SGI_HTTP1_MCP_PROTOCOL_VERSION));
}

static bool check_singles(const sgi_http1_head *head, sgi_http_head_verdict *route)
{
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        if (!sgi_http1_is_repeated(head, singles[i].name))
            continue;
        refuse(route, 400, singles[i].problem);
        if (has_mismatch_code(head))
            route->code = SGI_RPC_HEADER_MISMATCH;
        return false;
    }
    return true;
}

/* ---- types ---- */

/* True when the weight of a type in Accept is zero, which means that the client refuses
 * the type (RFC 9110 12.4.2). */
static bool is_refused_range(sgi_str parameters)
{
    sgi_str item;
    while (next_of(&parameters, ';', &item)) {
        if (item.n < 3 || (*item.p | 0x20) != 'q' || item.p[1] != '=')
            continue;
        for (size_t i = 2; i < item.n; i++)
            if (item.p[i] != '0' && item.p[i] != '.')
                return false;
        return true;
    }
    return false;
}

static void read_accept(sgi_str list, bool *json, bool *events)
{
    sgi_str item, type;
    *json = *events = !list.p;
    while (next_of(&list, ',', &item)) {
        sgi_str parameters = item;
        if (!next_of(&parameters, ';', &type) || is_refused_range(parameters))
            continue;
        bool any = sgi_str_eq(type, SGI_STR("*/*"));
        *json |= any || sgi_http1_same_ignoring_case(type, SGI_STR("application/json")) ||
                 sgi_http1_same_ignoring_case(type, SGI_STR("application/*"));
        *events |= any ||
                   sgi_http1_same_ignoring_case(type, SGI_STR("text/event-stream")) ||
                   sgi_http1_same_ignoring_case(type, SGI_STR("text/*"));
    }
}

/* Reads all Accept headers of a request, which may have several. */
static void read_accepts(const sgi_http1_head *head, bool *json, bool *events)
{
    sgi_str name, value;
    read_accept(sgi_http1_header(head, SGI_HTTP1_ACCEPT), json, events);
    if (!sgi_http1_is_repeated(head, SGI_HTTP1_ACCEPT))
        return;
    for (size_t i = 0; sgi_http1_header_at(head, i, &name, &value); i++) {
        bool more_json, more_events;
        if (!sgi_http1_same_ignoring_case(name, SGI_STR("accept")))
            continue;
        read_accept(value, &more_json, &more_events);
        *json |= more_json;
        *events |= more_events;
    }
}

static bool is_json(sgi_str type)
{
    sgi_str name;
    return next_of(&type, ';', &name) &&
           sgi_http1_same_ignoring_case(name, SGI_STR("application/json"));
}

static void route_post(const sgi_http1_head *head, sgi_http_head_verdict *route)
{
    bool json, events;
    read_accepts(head, &json, &events);
    if (!json && !events)
        refuse(route, 406,
               "The header Accept allows neither application/json nor text/event-stream");
    else if (!is_json(sgi_http1_header(head, SGI_HTTP1_CONTENT_TYPE)))
        refuse(route, 415, "The header Content-Type is not application/json");
    else
        route->kind = SGI_HTTP_POST;
    route->takes_events = events;
}

static void route_get(const sgi_http1_head *head, sgi_http_head_verdict *route)
{
    bool json, events;
    read_accepts(head, &json, &events);
    if (events)
        route->kind = SGI_HTTP_GET;
    else
        refuse(route, 406, "The header Accept does not allow text/event-stream");
    route->takes_events = events;
}

/* ---- the route ---- */

static void refuse_method(sgi_http_head_verdict *route, const char *allow)
{
    refuse(route, 405, "This path does not allow this HTTP method: see the header Allow");
    route->allow = allow;
}

static void route_endpoint(const sgi_http_policy *policy, const sgi_http1_head *head,
                           sgi_http_head_verdict *route)
{
    if (policy->cors && sgi_str_eq(head->method, SGI_STR("OPTIONS"))) {
        route->kind = SGI_HTTP_PREFLIGHT;
        return;
    }
    if (!check_singles(head, route))
        return;
    if (sgi_str_eq(head->method, SGI_STR("POST")))
        route_post(head, route);
    else if (sgi_str_eq(head->method, SGI_STR("GET")))
        route_get(head, route);
    else if (sgi_str_eq(head->method, SGI_STR("DELETE")))
        route->kind = SGI_HTTP_DELETE;
    else
        refuse_method(route, policy->cors ? methods_with_cors : methods);
}

/* Decides about a request for the protected resource metadata. The metadata are public,
 * and clients in browsers ask for them from any origin. */
static void route_metadata(const sgi_http1_head *head, sgi_http_head_verdict *route)
{
    if (sgi_str_eq(head->method, SGI_STR("OPTIONS")))
        route->kind = SGI_HTTP_METADATA_PREFLIGHT;
    else if (route->bare || sgi_str_eq(head->method, SGI_STR("GET")))
        route->kind = SGI_HTTP_METADATA;
    else
        refuse_method(route, "GET, HEAD, OPTIONS");
}

/* ---- the task board ---- */

/* Returns what of the board is at the path, or NULL. */
static const sgi_board_item *board_item(const sgi_http_policy *policy, sgi_str path)
{
    if (!policy->board_path.n || !sgi_str_skip(&path, policy->board_path))
        return NULL;
    if (path.n && policy->board_path.n > 1 && !sgi_str_skip(&path, SGI_STR("/")))
        return NULL;
    return sgi_board_find(path);
}

/* True when the board's own page, or no page, makes the request. Browsers add both
 * headers by themselves. */
static bool is_of_own_page(const sgi_http_policy *policy, const sgi_http1_head *head)
{
    sgi_str origin = sgi_http1_header(head, SGI_HTTP1_ORIGIN);
    size_t count = 0;
    sgi_str site = sgi_http1_find_header(head, SGI_STR("sec-fetch-site"), &count);
    if (origin.p &&
        !sgi_http1_same_ignoring_case(
            host_of_origin(origin, policy->secure && !policy->local), head->host))
        return false;
    return !count || (count == 1 && (sgi_str_eq(site, SGI_STR("same-origin")) ||
                                     sgi_str_eq(site, SGI_STR("none"))));
}

static void route_board(const sgi_http_policy *policy, const sgi_http1_head *head,
                        const sgi_board_item *item, sgi_http_head_verdict *route)
{
    bool changes = item->kind == SGI_BOARD_CHANGE;
    bool reads = route->bare || sgi_str_eq(head->method, SGI_STR("GET"));
    route->origin = (sgi_str){0};
    if (changes ? !sgi_str_eq(head->method, SGI_STR("POST")) : !reads) {
        refuse_method(route, changes ? "POST" : "GET, HEAD");
    } else if (item->kind == SGI_BOARD_FILE) {
        route->kind = SGI_HTTP_BOARD_FILE;
    } else if (!is_of_own_page(policy, head)) {
        refuse(route, 403, "Only the page of the task board may send this request");
    } else if (changes && !is_json(sgi_http1_header(head, SGI_HTTP1_CONTENT_TYPE))) {
        refuse(route, 415, "The header Content-Type is not application/json");
    } else {
        route->kind = SGI_HTTP_BOARD;
    }
    route->board = item;
}

/* Returns the kind of check that has this path; SGI_HTTP_REFUSED when none has it. */
static sgi_http_kind check_of(const sgi_http_policy *policy, sgi_str path)
{
    if (policy->health_path.n && sgi_str_eq(path, policy->health_path))
        return SGI_HTTP_HEALTH;
    if (policy->ready_path.n && sgi_str_eq(path, policy->ready_path))
        return SGI_HTTP_READY;
    if (policy->live_path.n && sgi_str_eq(path, policy->live_path))
        return SGI_HTTP_LIVE;
    return SGI_HTTP_REFUSED;
}

static sgi_http_endpoint_state endpoint_at(const sgi_http_policy *policy, sgi_str path)
{
    if (policy->endpoint_at)
        return policy->endpoint_at(policy->user, path);
    return sgi_str_eq(path, policy->path) ? SGI_HTTP_ENDPOINT_OPEN
                                          : SGI_HTTP_ENDPOINT_NONE;
}

void sgi_http_route_head(const sgi_http_policy *policy, const sgi_http1_head *head,
                         sgi_http_head_verdict *route)
{
    *route = (sgi_http_head_verdict){.bare = sgi_str_eq(head->method, SGI_STR("HEAD"))};
    sgi_http_kind check = check_of(policy, head->path);
    if (check != SGI_HTTP_REFUSED) {
        if (route->bare || sgi_str_eq(head->method, SGI_STR("GET")))
            route->kind = check;
        else
            refuse_method(route, "GET, HEAD");
        return;
    }
    if (policy->is_public && policy->is_public(policy->user, head->path)) {
        route_metadata(head, route);
        return;
    }
    if (!check_caller(policy, head, route))
        return;
    if (policy->metrics_path.n && sgi_str_eq(head->path, policy->metrics_path)) {
        if (route->bare || sgi_str_eq(head->method, SGI_STR("GET")))
            route->kind = SGI_HTTP_METRICS;
        else
            refuse_method(route, "GET, HEAD");
        return;
    }
    const sgi_board_item *item = board_item(policy, head->path);
    if (item) {
        route_board(policy, head, item, route);
        return;
    }
    switch (endpoint_at(policy, head->path)) {
    case SGI_HTTP_ENDPOINT_OPEN:
        route_endpoint(policy, head, route);
        break;
    case SGI_HTTP_ENDPOINT_STARTS:
        refuse(route, 503, "The server at this path is starting: send the request again");
        break;
    default:
        refuse(route, 404, "Not found: the server has no such path");
    }
}
