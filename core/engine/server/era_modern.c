/* The version 2026-07-28. Every request has the version, the client's capabilities and
 * perhaps a log level in params._meta. The server does not keep these values for the next
 * request (R-C-14). The checks of a request follow the order of R-0-7. */
#include "engine/server/clients.h"
#include "engine/server/metrics.h"
#include "engine/server/task_form.h"
#include "wire/log_level.h"

#define META "io.modelcontextprotocol/"

/* ---- server/discover ---- */

static void write_extensions(sgi_jw *w, const sgi_peer *peer)
{
    const segue_server *server = peer->server;
    sgi_jw_key(w, "extensions");
    sgi_jw_open(w, '{');
    sgi_srv_write_extensions(w, server);
    if (sgi_peer_keeps_keys(peer))
        sgi_jw_member_raw(w, "dev.segue/idempotency", SGI_STR("{}"));
    sgi_jw_close(w, '}');
}

/* Writes capabilities.experimental for the versions that begin with `initialize`. These
 * versions have no capabilities.extensions, so capabilities.experimental lists the
 * features beyond the protocol. */
static void write_experimental(sgi_jw *w, const sgi_peer *peer)
{
    size_t mark = w->buf->len;
    sgi_jw_key(w, "experimental");
    sgi_jw_open(w, '{');
    size_t empty = w->buf->len;
    if (sgi_peer_keeps_keys(peer))
        sgi_jw_member_raw(w, "dev.segue/idempotency", SGI_STR("{}"));
    sgi_srv_write_experiments(w, peer->server);
    bool any = w->buf->len > empty;
    sgi_jw_close(w, '}');
    if (!any)
        sgi_buf_shorten(w->buf, mark);
}

void sgi_write_capabilities(sgi_jw *w, const sgi_inbound *in)
{
    segue_server *server = in->peer->server;
    sgi_jw_key(w, "capabilities");
    sgi_jw_open(w, '{');
    sgi_jw_member_raw(w, "logging", SGI_STR("{}"));
    sgi_jw_member_raw(w, "tools", SGI_STR("{\"listChanged\":true}"));
    if (sgi_items_served(server, SEGUE_ITEM_RESOURCE))
        sgi_jw_member_raw(w, "resources",
                          SGI_STR("{\"subscribe\":true,\"listChanged\":true}"));
    if (sgi_items_served(server, SEGUE_ITEM_PROMPT))
        sgi_jw_member_raw(w, "prompts", SGI_STR("{\"listChanged\":true}"));
    if (server->completes)
        sgi_jw_member_raw(w, "completions", SGI_STR("{}"));
    if (sgi_facts(in->version)->has_extensions) {
        write_extensions(w, in->peer);
    } else {
        write_experimental(w, in->peer);
        sgi_srv_write_capabilities(w, in);
    }
    sgi_jw_close(w, '}');
}

static void discover(const sgi_inbound *in)
{
    segue_server *server = in->peer->server;
    sgi_sending sending;
    sgi_answer_begin_result(&sending, in, "complete");
    sgi_jw_member_raw(&sending.w, "supportedVersions", SGI_STR(SGI_VERSIONS_JSON));
    sgi_write_capabilities(&sending.w, in);
    if (server->options.instructions)
        sgi_jw_member_string(&sending.w, "instructions",
                             sgi_str_of(server->options.instructions));
    sgi_freshness_write(&sending.w, server->freshness);
    sgi_write_server_info_meta(&sending, server);
    sgi_send_end(&sending);
}

/* ---- methods ---- */

static const sgi_method methods[] = {
    {"tools/call", 0, sgi_tools_call},
    {"tools/list", 0, sgi_tools_list},
    {"server/discover", 0, discover},
    {"subscriptions/listen", 0, sgi_subscriptions_listen},
};

static const sgi_method *find_method(const sgi_peer *peer, sgi_str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (sgi_str_eq(sgi_str_of(methods[i].name), name))
            return &methods[i];
    const sgi_method *method =
        sgi_item_find_method(peer->server, SGI_VERSION_MODERN, name);
    return method ? method : sgi_srv_find_method(peer, SGI_VERSION_MODERN, name);
}

static bool is_object(sgi_json value)
{
    return sgi_json_kind_of(value) == SGI_JSON_OBJECT;
}

/* Reads the capability elicitation. An empty object declares elicitation by forms
 * (client/elicitation, "Capabilities"). */
static uint32_t elicitation_caps(sgi_json elicitation)
{
    bool url = is_object(sgi_json_get(elicitation, "url"));
    bool form = !url || is_object(sgi_json_get(elicitation, "form"));
    return (form ? SGI_CAP_ELICITATION : 0u) | (url ? SGI_CAP_ELICITATION_URL : 0u);
}

/* Reads all capabilities in one pass over the text. This saves time, because every
 * request of 2026-07-28 declares capabilities. */
uint32_t sgi_read_caps(sgi_json capabilities)
{
    static const sgi_str names[] = {
        SGI_STR_INIT("elicitation"), SGI_STR_INIT("sampling"),
        SGI_STR_INIT("roots"),       SGI_STR_INIT("partialResults"),
        SGI_STR_INIT("tasks"),       SGI_STR_INIT("extensions"),
    };
    static const uint32_t meanings[] = {SGI_CAP_ELICITATION, SGI_CAP_SAMPLING,
                                        SGI_CAP_ROOTS, SGI_CAP_PARTIAL,
                                        SGI_CAP_TASKS_2025};
    enum { NAMES = sizeof names / sizeof *names, CAPS = NAMES - 1 };
    sgi_json found[NAMES];
    uint32_t caps = 0;
    sgi_json_pick(capabilities, names, NAMES, found);
    for (size_t i = 0; i < CAPS; i++)
        if (is_object(found[i]))
            caps |= meanings[i];
    if (caps & SGI_CAP_ELICITATION)
        caps = (caps & ~(uint32_t)SGI_CAP_ELICITATION) | elicitation_caps(found[0]);
    if (caps & SGI_CAP_SAMPLING && is_object(sgi_json_get(found[1], "tools")))
        caps |= SGI_CAP_SAMPLING_TOOLS;
    if (is_object(sgi_json_get(found[CAPS], META "tasks")))
        caps |= SGI_CAP_TASKS;
    return caps;
}

/* Returns what sgi_read_caps returns, without reading a text that was read before. */
static uint32_t read_known_caps(sgi_known_caps *known, sgi_json capabilities)
{
    if (sgi_str_eq(capabilities, (sgi_str){known->text, known->len}))
        return known->caps;
    uint32_t caps = sgi_read_caps(capabilities);
    if (capabilities.n <= sizeof known->text) {
        memcpy(known->text, capabilities.p, capabilities.n);
        known->len = (uint32_t)capabilities.n;
        known->caps = caps;
    }
    return caps;
}

static void refuse_version(const sgi_inbound *in, sgi_json version)
{
    sgi_buf data;
    sgi_buf_init(&data, sgi_engine_mem(in->peer->server->engine));
    sgi_jw w = sgi_jw_to(&data);
    sgi_jw_open(&w, '{');
    /* the list has versions of both eras, because a client may choose from either era */
    sgi_jw_member_raw(&w, "supported", SGI_STR(SGI_VERSIONS_JSON));
    sgi_jw_member_raw(&w, "requested", version);
    sgi_jw_close(&w, '}');
    sgi_send_error(in->peer->conn, in->id, SGI_RPC_UNSUPPORTED_VERSION,
                   SGI_STR("Unsupported protocol version"),
                   data.failed ? (sgi_json){0} : sgi_buf_str(&data));
    sgi_buf_free(&data);
}

/* Reads the members of _meta that every request must have. Returns false when the request
 * is refused; the error has then been sent. */
static bool read_context(sgi_inbound *in)
{
    sgi_json version = in->protocol;
    sgi_json capabilities = in->capabilities;
    sgi_str text;
    if (!sgi_json_plain_string(version, &text)) {
        in->peer->conn->http_status =
            400; /* A missing protocol version has HTTP status 400 (R-0-4). */
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "_meta: " META "protocolVersion is not a string", NULL);
        return false;
    }
    in->version = sgi_version_parse(text);
    if (!sgi_facts(in->version)->is_stateless) {
        refuse_version(in, version);
        return false;
    }
    if (sgi_json_kind_of(capabilities) != SGI_JSON_OBJECT) {
        in->peer->conn->http_status = 400;
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                         "_meta: " META "clientCapabilities is not an object", NULL);
        return false;
    }
    in->caps = read_known_caps(&in->peer->server->known_caps, capabilities);
    if (in->peer->stranger)
        /* a client on another machine gets no tasks unless it has a principal
         * (R-2557-53) */
        in->caps &= ~(uint32_t)(SGI_CAP_TASKS | SGI_CAP_TASKS_2025);
    return true;
}

/* Reads the log level. Returns false when the request is refused because the level is
 * invalid; the error has then been sent (2026-07-28 server/utilities/logging, "Error
 * Handling"). */
static bool read_level(sgi_inbound *in)
{
    in->log_level = sgi_log_level_parse_json(in->level);
    if (!in->level.n || in->log_level >= 0)
        return true;
    sgi_answer_error(in, SGI_RPC_INVALID_PARAMS,
                     "_meta: " META "logLevel is not a log level", NULL);
    return false;
}

void sgi_handle_modern_request(sgi_inbound *in, sgi_str name)
{
    in->version = SGI_VERSION_MODERN;
    if (!read_context(in))
        return;
    sgi_client_begin(in);
    const sgi_method *method = find_method(in->peer, name);
    sgi_metrics_count_request(in, method);
    if (method && (method->caps & in->caps) != method->caps) {
        method = sgi_srv_find_old_method(in, name);
        if (!method) {
            sgi_answer_tasks_not_declared(in);
            return;
        }
    }
    if (!method)
        sgi_answer_error(in, SGI_RPC_METHOD_NOT_FOUND, "Method not found", NULL);
    else if (read_level(in))
        method->run(in);
}
