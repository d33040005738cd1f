/* The versions in which a conversation begins with `initialize`: 2024-11-05 to
 * 2025-11-25, and the draft DRAFT-2026-v1 if the application has switched it on. First
 * comes `initialize`; then the requests of the session follow. This file handles lists
 * and plain calls of items. The dialects handle the other features of these versions. */
#include "engine/server/clients.h"
#include "engine/server/dialects.h"
#include "engine/server/metrics.h"
#include "wire/log_level.h"
#include "engine/server/session_name.h"

/* Returns the version for the answer to initialize: the client's version if the server
 * supports it, otherwise the newest version of the server. The client then decides
 * whether to continue. */
static sgi_version agree(const segue_server *server, sgi_str asked)
{
    sgi_version version = sgi_version_parse(asked);
    if (sgi_srv_has_version(server, version))
        return version;
    return sgi_facts(version)->has_handshake ? version : SGI_VERSION_HANDSHAKE;
}

static void initialize(const sgi_inbound *in)
{
    sgi_peer *peer = in->peer;
    segue_server *server = peer->server;
    sgi_sending sending;
    sgi_str text;
    if (!sgi_json_plain_string(sgi_json_get(in->params, "protocolVersion"), &text)) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "protocolVersion is not a string",
                         NULL);
        return;
    }
    sgi_json capabilities = sgi_json_get(in->params, "capabilities");
    sgi_version version = agree(server, text);
    peer->handshake->version = version;
    peer->handshake->lists = sgi_lists_served(server);
    peer->handshake->caps = sgi_read_caps(capabilities) & SGI_CAPS_ASK;
    /* a client declares its capabilities once, for the whole session (R-C-14) */
    sgi_srv_read_capabilities(peer->handshake, capabilities);
    if (peer->session && !sgi_wire_session_give_name(peer->session)) {
        peer->handshake->version = SGI_VERSION_UNKNOWN;
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
        return;
    }
    sgi_answer_begin_result(&sending, in, NULL);
    sgi_jw_member_string(&sending.w, "protocolVersion",
                         sgi_str_of(sgi_version_name(version)));
    sgi_inbound agreed = *in;
    agreed.version = version;
    sgi_client_begin(&agreed);
    sgi_write_capabilities(&sending.w, &agreed);
    sgi_buf_add_char(sending.w.buf, ',');
    sgi_buf_add_str(sending.w.buf, sgi_buf_str(&server->legacy_info));
    if (server->options.instructions)
        sgi_jw_member_string(&sending.w, "instructions",
                             sgi_str_of(server->options.instructions));
    sgi_send_end(&sending);
}

static void ping(const sgi_inbound *in)
{
    sgi_sending sending;
    sgi_answer_begin_result(&sending, in, NULL);
    sgi_send_end(&sending);
}

static void set_level(const sgi_inbound *in)
{
    sgi_sending sending;
    int32_t level = sgi_log_level_parse_json(sgi_json_get(in->params, "level"));
    if (level < 0) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.level is not a log level",
                         NULL);
        return;
    }
    in->peer->handshake->log_level = level;
    sgi_client_note_level(in->peer->handshake->client);
    sgi_answer_begin_result(&sending, in, NULL);
    sgi_send_end(&sending);
}

static const sgi_method methods[] = {
    {"tools/call", 0, sgi_tools_call},
    {"tools/list", 0, sgi_tools_list},
    {"ping", 0, ping},
    {"initialize", 0, initialize},
    {"logging/setLevel", 0, set_level},
};

static const sgi_method *find_method(const sgi_peer *peer, sgi_str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (sgi_str_eq(sgi_str_of(methods[i].name), name))
            return &methods[i];
    sgi_version version = peer->handshake->version;
    const sgi_method *method = sgi_item_find_method(peer->server, version, name);
    return method ? method : sgi_srv_find_method(peer, version, name);
}

/* Returns the method for a request that an MCP server sends to a host (a server of the
 * application inside a client's session). The host only answers questions. No client can
 * call items of the host. */
static const sgi_method *find_host_method(const sgi_peer *peer, sgi_str name)
{
    const sgi_method *method = sgi_question_find_method(peer->server, name);
    return method ? method : sgi_srv_find_method(peer, peer->handshake->version, name);
}

void sgi_handle_legacy_request(sgi_inbound *given, sgi_str name)
{
    sgi_inbound in = *given;
    sgi_peer *peer = in.peer;
    const sgi_method *method =
        peer->is_host ? find_host_method(peer, name) : find_method(peer, name);
    in.version = peer->handshake->version;
    in.log_level = peer->handshake->log_level;
    sgi_metrics_count_request(&in, method);
    in.caps = peer->handshake->caps | sgi_srv_assumed_caps(peer, in.version);
    bool opening = method && (method->run == initialize || method->run == ping);
    if (peer->handshake->version == SGI_VERSION_UNKNOWN && !opening)
        sgi_answer_error(&in, SGI_RPC_INVALID_PARAMS,
                         "_meta lacks io.modelcontextprotocol/protocolVersion, and the "
                         "client has not sent initialize",
                         NULL);
    else if (!method)
        sgi_answer_error(&in, SGI_RPC_METHOD_NOT_FOUND, "Method not found", NULL);
    else
        method->run(&in);
}
