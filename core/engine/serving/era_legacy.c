/* The handshake eras, 2024-11-05 to 2025-11-25: initialize, then requests of the session.
 * Here items are listed and called plainly; what else these revisions have are
 * dialects. */
#include "engine/dialect/dialect.h"
#include "engine/dialect/response_modes.h"

/* They hold for the session (R-C-14). */
static void read_capabilities(sgi_handshake *handshake, sgi_json capabilities)
{
    sgi_json tasks = sgi_json_get(capabilities, "tasks");
    sgi_json modes = sgi_json_get(sgi_json_get(tasks, "responses"), "modes");
    if (!sgi_response_modes_read(modes, &handshake->modes))
        handshake->modes = 0; /* not declared in a way that could be read */
    handshake->caps = sgi_read_caps(capabilities) & SGI_CAPS_ASK;
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
    sgi_version version = sgi_version_parse(text);
    if (version == SGI_VERSION_UNKNOWN || version > SGI_VERSION_2025_11_25)
        version = SGI_VERSION_2025_11_25; /* our own newest: the client decides */
    peer->handshake->version = version;
    peer->handshake->lists = sgi_lists_served(server);
    read_capabilities(peer->handshake, sgi_json_get(in->params, "capabilities"));
    sgi_answer_result(&sending, in, NULL);
    sgi_jw_member_string(&sending.w, "protocolVersion",
                         sgi_str_of(sgi_version_name(version)));
    sgi_inbound agreed = *in;
    agreed.version = version;
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
    sgi_answer_result(&sending, in, NULL);
    sgi_send_end(&sending);
}

static void set_level(const sgi_inbound *in)
{
    sgi_sending sending;
    sgi_str text;
    int32_t level = -1;
    if (sgi_json_plain_string(sgi_json_get(in->params, "level"), &text))
        level = sgi_log_level(text);
    if (level < 0) {
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, "params.level is not a log level",
                         NULL);
        return;
    }
    in->peer->handshake->log_level = level;
    sgi_answer_result(&sending, in, NULL);
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
    const sgi_method *method =
        sgi_item_method(peer->server, peer->handshake->version, name);
    if (method)
        return method;
    return sgi_tasks_2025_are_for(peer, peer->handshake->version)
               ? sgi_dialect_method(SGI_DIALECT_L, name)
               : NULL;
}

void sgi_legacy_request(sgi_inbound *given, sgi_str name)
{
    sgi_inbound in = *given;
    sgi_peer *peer = in.peer;
    const sgi_method *method = find_method(peer, name);
    in.version = peer->handshake->version;
    in.log_level = peer->handshake->log_level;
    in.caps = peer->handshake->caps;
    bool opening = method && (method->run == initialize || method->run == ping);
    if (peer->handshake->version == SGI_VERSION_UNKNOWN && !opening)
        sgi_answer_error(&in, SGI_RPC_INVALID_PARAMS,
                         "_meta lacks io.modelcontextprotocol/protocolVersion, "
                         "and no initialize came before",
                         NULL);
    else if (!method)
        sgi_answer_error(&in, SGI_RPC_METHOD_NOT_FOUND, "Method not found", NULL);
    else
        method->run(&in);
}
