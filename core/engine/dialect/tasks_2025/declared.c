/* What a server and its client declare about tasks of 2025-11-25, in the handshake and
 * with each call. This file has the server's functions. */
#include "engine/dialect/tasks_2025/tasks_2025.h"

#include "engine/response_modes.h"
#include "engine/server/call_request.h"

/* ---- the handshake ---- */

bool sgi_tasks_2025_serves(const sgi_peer *peer, sgi_version version)
{
    return version == SGI_VERSION_2025_11_25 && !peer->stranger &&
           peer->server->dialects & SGI_DIALECT_L;
}

static bool has_object(sgi_json object, const char *name)
{
    return sgi_json_kind_of(sgi_json_get(object, name)) == SGI_JSON_OBJECT;
}

/* Reads which kinds of questions the client can answer with a task. Returns a set of
 * capabilities. */
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

void sgi_tasks_2025_read_capabilities(sgi_handshake *handshake, sgi_json capabilities)
{
    sgi_json tasks = sgi_json_get(capabilities, "tasks");
    sgi_json modes = sgi_json_get(sgi_json_get(tasks, "responses"), "modes");
    if (!sgi_response_modes_read(modes, &handshake->modes))
        /* a malformed list of modes is treated like a missing one */
        handshake->modes = 0;
    if (handshake->version == SGI_VERSION_2025_11_25)
        handshake->caps |= read_task_caps(tasks);
    if (has_object(sgi_json_get(capabilities, "experimental"), SGI_REPLACE))
        handshake->caps |= SGI_CAP_REPLACE;
}

/* Writes the capability `tasks`. One of its members lists the response modes of SEP-1905.
 * When SEP-1905 (dialect S) is switched off, this member is left out (AS-14). tasks.list
 * is declared only if the server can distinguish its clients (R-2557-56). */
void sgi_tasks_2025_write_capabilities(sgi_jw *w, const sgi_inbound *in)
{
    const segue_server *server = in->peer->server;
    uint8_t modes = sgi_response_modes_of(server->dialects);
    if (!sgi_tasks_2025_serves(in->peer, in->version))
        return;
    sgi_jw_key(w, "tasks");
    sgi_jw_open(w, '{');
    if (sgi_peer_may_list_tasks(in->peer))
        sgi_jw_member_raw(w, "list", SGI_STR("{}"));
    sgi_jw_member_raw(w, "cancel", SGI_STR("{}"));
    sgi_jw_member_raw(w, "requests", SGI_STR("{\"tools\":{\"call\":{}}}"));
    if (modes != SGI_MODE_TASK) {
        sgi_jw_key(w, "responses");
        sgi_jw_open(w, '{');
        sgi_response_modes_write(w, "modes", modes);
        sgi_jw_close(w, '}');
    }
    sgi_jw_close(w, '}');
}

const char *sgi_tasks_2025_experiment_name(const segue_server *server)
{
    return server->dialects & SGI_DIALECT_FROM_START ? "dev.segue/fromSeqNr" : NULL;
}

/* ---- lists and methods ---- */

/* Returns taskSupport of a tool, which says whether the tool runs as a task. A tool
 * without taskSupport refuses calls that ask for a task. A taskSupport in the
 * application's JSON has no effect, because registry.c removes it. */
const char *sgi_tasks_2025_task_support(const sgi_inbound *in, int32_t policy)
{
    if (!sgi_tasks_2025_serves(in->peer, in->version))
        return NULL;
    return policy == SEGUE_TASK_MAY ? "\"optional\"" : "\"required\"";
}

/* True when a client of 2026-07-28 may use this method on tasks of 2025-11-25 without
 * having declared tasks of its own version. Such a client may read and cancel these tasks
 * (R-2557-17). */
bool sgi_tasks_2025_serves_old_method(const sgi_inbound *in, sgi_str method)
{
    return in->caps & SGI_CAP_TASKS_2025 && in->peer->server->dialects & SGI_DIALECT_L &&
           (sgi_str_eq(method, SGI_STR("tasks/get")) ||
            sgi_str_eq(method, SGI_STR("tasks/cancel")));
}

/* ---- a call ---- */

/* Reads params.task: {"ttl"?, "responseModes"?}. In other revisions params.task is
 * unknown and ignored (R-2557-7). */
bool sgi_tasks_2025_read_call(const sgi_inbound *in, sgi_call_request *request)
{
    const char *wrong = NULL;
    if (!request || !in->task.n || !sgi_tasks_2025_serves(in->peer, in->version))
        return true;
    sgi_json ttl = sgi_json_get(in->task, "ttl");
    if (sgi_json_kind_of(in->task) != SGI_JSON_OBJECT)
        wrong = "params.task is not an object";
    else if (ttl.n && (!sgi_json_read_int(ttl, &request->ttl_ms) || request->ttl_ms < 0))
        wrong = "params.task.ttl is not a non-negative integer";
    else if (!sgi_response_modes_read(sgi_json_get(in->task, "responseModes"),
                                      &request->listed_modes))
        wrong = "params.task.responseModes is not an array of strings";
    if (wrong)
        sgi_answer_error(in, SGI_RPC_INVALID_PARAMS, wrong, NULL);
    return !wrong;
}

/* Returns the modes that the request lists and that both client and server have declared
 * (R-1905-8). */
static uint8_t effective_modes(const sgi_inbound *in, uint8_t listed)
{
    uint32_t dialects = in->peer->server->dialects;
    const sgi_handshake *handshake = in->peer->handshake;
    uint8_t ours = sgi_response_modes_of(dialects);
    if (!handshake->modes && dialects & SGI_DIALECT_UNDECLARED_MODES)
        return listed & ours;
    return listed & ours & handshake->modes;
}

uint32_t sgi_tasks_2025_read_declared(const sgi_inbound *in, sgi_call_request *request)
{
    if (!request || !in->task.n || !sgi_tasks_2025_serves(in->peer, in->version))
        return 0;
    request->caps |= SGI_CAP_TASKS;
    request->modes = effective_modes(in, request->listed_modes);
    return SGI_SAYS_TASK_PARAM;
}

/* True when the modes of the call contain the mode "immediate" (SEP-1905). A tool that
 * never makes tasks then gives its result at once. */
bool sgi_tasks_2025_answers_at_once(const sgi_call_request *request)
{
    return request->modes & SGI_MODE_IMMEDIATE;
}

bool sgi_tasks_2025_streams_segments(const sgi_call_request *request)
{
    bool incremental = request->tool->options.flags & SEGUE_TOOL_INCREMENTAL;
    return sgi_response_form_decide(request->modes, false, incremental) >=
           SGI_FORM_STREAM;
}

bool sgi_tasks_2025_answers_after_turn(const sgi_op *op)
{
    return op->served->modes & (SGI_MODE_IMMEDIATE | SGI_MODE_STREAMING);
}

/* True when the client accepts the plain result as the answer to a call that asks for a
 * task. */
bool sgi_tasks_2025_may_begin_plain(const sgi_op *op)
{
    return op->served->modes & SGI_MODE_IMMEDIATE &&
           !(sgi_op_server(op)->dialects & SGI_DIALECT_TRACKING);
}
