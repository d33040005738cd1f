/* The handshake eras, 2024-11-05 to 2025-11-25, and the draft DRAFT-2026-v1 where the
 * application has switched it on: initialize, then requests of the session.
 * Here items are listed and called plainly; what else these revisions have are
 * dialects. */
#include "engine/dialect/dialect.h"
#include "engine/dialect/response_modes.h"
#include "engine/log_level.h"
#include "engine/serving/session_name.h"

static bool has_object(sgi_json object, const char *name)
{
    return sgi_json_kind_of(sgi_json_get(object, name)) == SGI_JSON_OBJECT;
}

/* What the client can be asked as a task. */
static uint32_t read_task_caps(sgi_json tasks)
{
    sgi_json requests = sgi_json_get(tasks, "requests");
    uint32_t caps = 0;
    if (has_object(sgi_json_get(requests, "sampling"), "createMessage"))
        caps |= SGI_CAP_SAMPLING_TASK;
    if (has_object(sgi_json_get(requests, "elicitation"), "create"))
        caps |= SGI_CAP_ELICITATION_TASK;
    if (has_object(tasks, "cancel"))
        caps |= SGI_CAP_TASK_CANCEL;
    return caps;
}

/* They hold for the session (R-C-14). */
static void read_capabilities(sgi_handshake *handshake, sgi_json capabilities)
{
    sgi_json tasks = sgi_json_get(capabilities, "tasks");
    sgi_json modes = sgi_json_get(sgi_json_get(tasks, "responses"), "modes");
    if (!sgi_response_modes_read(modes, &handshake->modes))
        handshake->modes = 0; /* not declared in a way that could be read */
    handshake->caps = sgi_read_caps(capabilities) & SGI_CAPS_ASK;
    if (handshake->version == SGI_VERSION_2025_11_25)
        handshake->caps |= read_task_caps(tasks);
    if (has_object(sgi_json_get(capabilities, "experimental"), SGI_REPLACE))
        handshake->caps |= SGI_CAP_REPLACE;
    handshake->resumable =
        sgi_json_kind_of(sgi_json_get(capabilities, "resumableRequests")) ==
        SGI_JSON_OBJECT;
}

/* One that is not spoken here is answered with our own newest: the client decides. */
static sgi_version agree(const segue_server *server, sgi_str asked)
{
    sgi_version version = sgi_version_parse(asked);
    if (version == SGI_VERSION_DRAFT_2026_V1 && server->dialects & SGI_DIALECT_D)
        return version;
    return version == SGI_VERSION_UNKNOWN || version > SGI_VERSION_2025_11_25
               ? SGI_VERSION_2025_11_25
               : version;
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
    sgi_version version = agree(server, text);
    peer->handshake->version = version;
    peer->handshake->lists = sgi_lists_served(server);
    read_capabilities(peer->handshake, sgi_json_get(in->params, "capabilities"));
    if (peer->session && !sgi_session_name(peer->session)) {
        peer->handshake->version = SGI_VERSION_UNKNOWN;
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
        return;
    }
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
    int32_t level = sgi_log_level_json(sgi_json_get(in->params, "level"));
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

/* D: every server has its methods (R-2557-35), also for those who get no tasks. */
static uint32_t task_dialects(const sgi_peer *peer)
{
    sgi_version version = peer->handshake->version;
    if (version == SGI_VERSION_DRAFT_2026_V1)
        return SGI_DIALECT_D;
    return sgi_tasks_2025_are_for(peer, version) ? SGI_DIALECT_L : 0;
}

static const sgi_method *find_method(const sgi_peer *peer, sgi_str name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (sgi_str_eq(sgi_str_of(methods[i].name), name))
            return &methods[i];
    const sgi_method *method =
        sgi_item_method(peer->server, peer->handshake->version, name);
    uint32_t dialects = task_dialects(peer);
    if (sgi_resumables_are_for(peer))
        dialects |= SGI_DIALECT_Z;
    return method ? method : sgi_dialect_method(dialects, name);
}

/* A server asks its client: it shook hands as such, and knows no items. */
static const sgi_method *find_host_method(const sgi_peer *peer, sgi_str name)
{
    const sgi_method *method = sgi_question_method(peer->server, name);
    return method ? method : sgi_dialect_method(task_dialects(peer), name);
}

void sgi_legacy_request(sgi_inbound *given, sgi_str name)
{
    sgi_inbound in = *given;
    sgi_peer *peer = in.peer;
    const sgi_method *method =
        peer->is_host ? find_host_method(peer, name) : find_method(peer, name);
    in.version = peer->handshake->version;
    in.log_level = peer->handshake->log_level;
    in.caps = peer->handshake->caps;
    if (sgi_tasks_2557_are_for(peer, in.version))
        in.caps |= SGI_CAP_TASKS; /* there everybody takes them (R-2557-57) */
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
