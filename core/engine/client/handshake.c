/* Finds out which era the server speaks: the modern era (2026-07-28) or the versions that
 * begin with `initialize` (2026-07-28 basic/transports/stdio, backward compatibility).
 * The client first sends server/discover. A DiscoverResult or a modern error means the
 * modern era. After any other error, or no answer in time, the client sends initialize.
 * Over a byte stream a server may be silent because it is still starting. So a
 * DiscoverResult is accepted until the answer to initialize comes. When initialize is
 * refused, the client waits once more for the answer to server/discover. The era is valid
 * for one connection only. After a reconnect the client finds out the era again, because
 * another program may be at the other end. */
#include "engine/client/dialects.h"
#include "engine/client/emitter.h"
#include "engine/client/hosting.h"
#include "engine/client/session.h"
#include "wire/json_copy.h"

#include <stdio.h>

#define META "io.modelcontextprotocol/"

/* ---- what the server declares ---- */

static bool keep_peer(segue_session *session, sgi_json info, sgi_json capabilities,
                      sgi_json instructions)
{
    sgi_buf *peer = &session->peer;
    sgi_buf_reset(peer, SIZE_MAX);
    sgi_jw w = sgi_jw_to(peer);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "protocolVersion",
                         sgi_str_of(sgi_version_name(session->version)));
    if (info.n)
        sgi_jw_member_raw(&w, "serverInfo", info);
    if (capabilities.n)
        sgi_jw_member_raw(&w, "capabilities", capabilities);
    if (instructions.n)
        sgi_jw_member_raw(&w, "instructions", instructions);
    if (sgi_facts(session->version)->is_stateless)
        sgi_jw_member_raw(&w, "isStateless", SGI_STR("true"));
    sgi_jw_close(&w, '}');
    return sgi_buf_terminate(peer) && !peer->failed;
}

/* Remembers which era the server speaks. If the server needs `initialize`, the next
 * session with this server sends `initialize` first. Remembers nothing when the options
 * of the session name the era. */
static void remember(segue_session *session, bool legacy)
{
    if (session->conn->exchanging && session->options.era == SEGUE_ERA_AUTO)
        sgi_era_memory_note(&session->engine->eras, session->conn->endpoint, legacy);
    session->handshake.guessed = false;
}

static void open_modern(segue_session *session, sgi_json result)
{
    sgi_json capabilities = sgi_json_get(result, "capabilities");
    sgi_json extensions = sgi_json_get(capabilities, "extensions");
    sgi_json info = sgi_json_get(sgi_json_get(result, "_meta"), META "serverInfo");
    session->server.idempotency = !session->options.no_idempotency &&
                                  sgi_json_get(extensions, "dev.segue/idempotency").n > 0;
    sgi_cli_read_server_capabilities(session, capabilities);
    if (keep_peer(session, info, capabilities, sgi_json_get(result, "instructions"))) {
        remember(session, false);
        sgi_session_on_opened(session);
    } else {
        sgi_session_fail(session, SEGUE_E_NOMEM, "out of memory");
    }
}

static const char *method_of(const segue_session *session)
{
    return session->stage == SGI_STAGE_PROBING ? "server/discover" : "initialize";
}

static const char *advice_on(int32_t status)
{
    if (status == 404 || status == 405)
        return ": is the path right? (MCP servers often use /mcp)";
    if (status == 407)
        return ": a proxy requires credentials";
    return status == 401 ? ": the server requires authorization" : "";
}

/* Writes why the handshake failed, with the server's own words. Over HTTP the text also
 * names the URL and the status, because the URL may not lead to an MCP server. */
static void explain(const segue_session *session, const char *method,
                    const sgi_outcome *outcome, char why[SGI_WHY_MAX])
{
    char what[512], room[SGI_NAME_MAX];
    sgi_str said = {0};
    if (outcome->kind == SGI_OUTCOME_ERROR)
        said = sgi_method_text(sgi_json_get(outcome->json, "message"), room);
    else if (outcome->kind == SGI_OUTCOME_REFUSED && outcome->has_reason)
        said = sgi_str_of(outcome->why);
    if (outcome->status)
        snprintf(what, sizeof what, "%.256s answered HTTP %d to %s%s",
                 session->conn->endpoint_name, (int)outcome->status, method,
                 outcome->has_reason ? "" : advice_on(outcome->status));
    else if (outcome->kind == SGI_OUTCOME_REFUSED)
        snprintf(what, sizeof what, "%.256s%s%s",
                 session->conn->exchanging ? session->conn->endpoint_name : "",
                 session->conn->exchanging ? ", asked for " : "", method);
    else
        snprintf(what, sizeof what, "the server refused %s", method);
    sgi_explain_failure(why, what, said);
}

/* True when the outcome says nothing about the era, because no server has answered or the
 * client was not let in. The function then reports the session as lost or ends it. Over a
 * byte stream the session notices a loss by itself, and silence means a version that
 * begins with `initialize`. Over HTTP a refusal means such a version, and silence means a
 * busy server (2026-07-28 basic/versioning, "Backward Compatibility"). */
static bool is_out_of_reach(segue_session *session, const sgi_outcome *outcome)
{
    bool silent = outcome->kind == SGI_OUTCOME_TIMEOUT && session->conn->exchanging;
    char why[96], text[SGI_WHY_MAX];
    snprintf(why, sizeof why, "the server did not answer %s within %lld ms",
             method_of(session), (long long)session->options.request_timeout_ms);
    silent |=
        outcome->kind == SGI_OUTCOME_TIMEOUT && session->options.era == SEGUE_ERA_MODERN;
    if (silent && session->reach.was_open && session->conn->exchanging) {
        sgi_session_on_connection_lost(session, why);
        return true;
    }
    if (silent) {
        sgi_session_fail(session, SEGUE_E_NEGOTIATION, why);
        return true;
    }
    if (outcome->kind == SGI_OUTCOME_LOST) {
        if (session->conn->exchanging)
            sgi_session_on_connection_lost(session, outcome->why);
        return true;
    }
    bool is_let_in =
        outcome->status != 401 && outcome->status != 403 && outcome->status != 407;
    if (outcome->kind != SGI_OUTCOME_REFUSED || (outcome->status && is_let_in))
        return false;
    explain(session, method_of(session), outcome, text);
    sgi_session_fail(session, sgi_outcome_status(outcome), text);
    return true;
}

/* Sends a message of the handshake. Returns false when out of memory. The connection then
 * counts as lost: sgi_send_end has closed a byte stream, and an HTTP session is reported
 * as lost here. */
static bool send_it(sgi_emitter *emitter, sgi_sending *sending)
{
    segue_session *session = emitter->session;
    bool sent = sgi_emitter_send(emitter, sending, (sgi_str){0}, (sgi_json){0});
    if (!sent && session->conn->exchanging)
        sgi_session_on_connection_lost(session, "out of memory");
    return sent;
}

/* ---- initialize ---- */

static void send_discover(segue_session *session);
static void send_initialize(segue_session *session);

/* Drops the exchange of server/discover if it is under way, because the era is known and
 * no answer is needed. */
static void forget_probe(segue_session *session)
{
    if (session->handshake.probing)
        sgi_emitter_drop(session->handshake.probing, false);
    session->handshake.probing = NULL;
}

/* Sends server/discover when the session began with `initialize` only because the server
 * of this endpoint needed `initialize` earlier, and the server has refused `initialize`
 * now. Returns false, and does nothing, when the session began in another way. */
static bool guessed_wrong(segue_session *session)
{
    if (!session->handshake.guessed)
        return false;
    remember(session, false);
    send_discover(session);
    return true;
}

static bool announce(segue_session *session)
{
    sgi_sending sending;
    sgi_conn *conn = sgi_session_begin_message(session);
    if (!conn)
        return false;
    sgi_send_begin_notification(&sending, conn, "notifications/initialized");
    bool sent = sgi_send_end(&sending);
    return sgi_session_send_message(session, conn) && sent;
}

/* Opens the session although the server has not acknowledged notifications/initialized in
 * time. The server may have received the message. */
static void announced_in_vain(sgi_timer *timer)
{
    sgi_session_on_initialized_accepted(SGI_OWNER(timer, segue_session, reach.timer));
}

/* True when initialize offers a version that only one dialect has. */
static bool offers_own_version(const segue_session *session)
{
    return !session->handshake.own_version_refused &&
           sgi_cli_version_to_offer(session) != SGI_VERSION_UNKNOWN;
}

static sgi_version version_to_offer(const segue_session *session)
{
    return offers_own_version(session) ? sgi_cli_version_to_offer(session)
                                       : SGI_VERSION_HANDSHAKE;
}

/* Sends initialize again without the version that only one dialect has. Some servers
 * refuse this version instead of offering another one. Returns false, and sends nothing,
 * when initialize did not offer this version or was not refused. */
static bool goes_without_own_version(segue_session *session, const sgi_outcome *outcome)
{
    if (!offers_own_version(session) || outcome->kind != SGI_OUTCOME_ERROR)
        return false;
    session->handshake.own_version_refused = true;
    send_initialize(session);
    return true;
}

static bool speaks(const segue_session *session, sgi_version version)
{
    return sgi_facts(version)->has_handshake || version == version_to_offer(session);
}

/* Reads the server's experimental capabilities. Versions that begin with `initialize`
 * declare features there that the protocol does not have. */
static void read_experimental(segue_session *session, sgi_json capabilities)
{
    sgi_json experimental = sgi_json_get(capabilities, "experimental");
    session->server.idempotency =
        !session->options.no_idempotency &&
        sgi_json_get(experimental, "dev.segue/idempotency").n > 0;
}

static void was_refused(segue_session *session, const sgi_outcome *outcome)
{
    char why[SGI_WHY_MAX];
    if (outcome->kind == SGI_OUTCOME_TIMEOUT)
        snprintf(why, sizeof why, "the server did not answer initialize within %lld ms",
                 (long long)session->options.request_timeout_ms);
    else
        explain(session, "initialize", outcome, why);
    sgi_session_fail(session, SEGUE_E_NEGOTIATION, why);
}

static void fell_silent(sgi_timer *timer);
static bool lists_modern(sgi_json versions);

/* Handles a refusal of initialize. Returns true when the client still waits for a
 * DiscoverResult, because a program that was starting may have read server/discover late.
 * If the refusal names 2026-07-28 as a supported version, the client sends
 * server/discover once more. The refusal is stored, and is reported if no DiscoverResult
 * comes. */
static bool is_waited_for(segue_session *session, const sgi_outcome *outcome)
{
    char why[SGI_WHY_MAX];
    sgi_json data = sgi_json_get(outcome->json, "data");
    bool names_it = lists_modern(sgi_json_get(data, "supported"));
    if (outcome->kind != SGI_OUTCOME_ERROR || session->handshake.refusal ||
        session->conn->exchanging || session->options.era != SEGUE_ERA_AUTO ||
        (!session->handshake.probing && !names_it))
        return false;
    explain(session, "initialize", outcome, why);
    session->handshake.refusal =
        sgi_text_dup(sgi_engine_mem(session->engine), sgi_str_of(why));
    if (!session->handshake.refusal)
        return false;
    if (!session->handshake.probing) {
        send_discover(session);
        return true;
    }
    sgi_session_set_stage(session, SGI_STAGE_PROBING);
    session->version = SGI_VERSION_MODERN;
    sgi_engine_set_timer(session->engine, &session->reach.timer,
                         session->options.probe_timeout_ms, fell_silent);
    return true;
}

static void initialized(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    sgi_str version;
    session->handshake.shaking = NULL;
    if (is_out_of_reach(session, outcome))
        return;
    if (outcome->kind != SGI_OUTCOME_RESULT) {
        if (is_waited_for(session, outcome) ||
            goes_without_own_version(session, outcome) || guessed_wrong(session))
            return;
        was_refused(session, outcome);
        return;
    }
    if (!sgi_json_plain_string(sgi_json_get(outcome->json, "protocolVersion"),
                               &version) ||
        !speaks(session, session->version = sgi_version_parse(version))) {
        sgi_session_fail(
            session, SEGUE_E_NEGOTIATION,
            "the server chose a protocol version that this library does not support");
        return;
    }
    read_experimental(session, sgi_json_get(outcome->json, "capabilities"));
    sgi_cli_read_server_capabilities(session,
                                     sgi_json_get(outcome->json, "capabilities"));
    sgi_session_forget_log_level(session, sgi_json_get(outcome->json, "capabilities"));
    if (!keep_peer(session, sgi_json_get(outcome->json, "serverInfo"),
                   sgi_json_get(outcome->json, "capabilities"),
                   sgi_json_get(outcome->json, "instructions")) ||
        !announce(session)) {
        sgi_session_fail(session, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    remember(session, true);
    forget_probe(session);
    /* over HTTP, requests wait until the server has accepted notifications/initialized */
    if (!session->conn->exchanging)
        sgi_session_on_opened(session);
    else
        sgi_engine_set_timer(session->engine, &session->reach.timer,
                             session->options.probe_timeout_ms, announced_in_vain);
}

void sgi_session_on_initialized_accepted(segue_session *session)
{
    if (session->stage == SGI_STAGE_INITIALIZING)
        sgi_session_on_opened(session);
}

static void send_initialize(segue_session *session)
{
    sgi_sending sending;
    sgi_session_set_stage(session, SGI_STAGE_INITIALIZING);
    session->wire_session++;
    session->version = SGI_VERSION_HANDSHAKE;
    sgi_emitter *emitter = sgi_emitter_begin(session, &sending, SGI_STR("initialize"));
    if (!emitter) {
        sgi_session_fail(session, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    emitter->done = initialized;
    sgi_jw_member_string(&sending.w, "protocolVersion",
                         sgi_str_of(sgi_version_name(version_to_offer(session))));
    sgi_jw_member_raw(&sending.w, "capabilities",
                      sgi_buf_str(&session->handshake.capabilities));
    sgi_declare_client_info(&sending.w, session, "clientInfo");
    if (send_it(emitter, &sending))
        session->handshake.shaking = emitter;
}

/* ---- server/discover ---- */

static bool lists_modern(sgi_json versions)
{
    sgi_json version;
    if (sgi_json_kind_of(versions) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; sgi_json_next_item(versions, &at, &version);)
        if (sgi_json_string_is(version, sgi_str_of(sgi_version_name(SGI_VERSION_MODERN))))
            return true;
    return false;
}

static bool is_modern_error(sgi_json error)
{
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    return code == SGI_RPC_UNSUPPORTED_VERSION || code == SGI_RPC_MISSING_CAPABILITY ||
           code == SGI_RPC_HEADER_MISMATCH;
}

static bool lists_legacy(sgi_json error)
{
    sgi_json versions = sgi_json_get(sgi_json_get(error, "data"), "supported");
    sgi_json version;
    sgi_str text;
    if (sgi_json_kind_of(versions) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; sgi_json_next_item(versions, &at, &version);) {
        sgi_version known = sgi_json_plain_string(version, &text)
                                ? sgi_version_parse(text)
                                : SGI_VERSION_UNKNOWN;
        if (sgi_facts(known)->has_handshake)
            return true;
    }
    return false;
}

static void fall_back(segue_session *session, const sgi_outcome *outcome)
{
    char why[SGI_WHY_MAX];
    if (session->handshake.refusal) {
        sgi_session_fail(session, SEGUE_E_NEGOTIATION, session->handshake.refusal);
    } else if (session->options.era == SEGUE_ERA_MODERN && outcome->status) {
        explain(session, "server/discover", outcome, why);
        sgi_session_fail(session, SEGUE_E_NEGOTIATION, why);
    } else if (session->options.era == SEGUE_ERA_MODERN) {
        sgi_session_fail(session, SEGUE_E_NEGOTIATION,
                         "the server does not support protocol version 2026-07-28");
    } else {
        send_initialize(session);
    }
}

/* Sends initialize, because the server did not answer server/discover in time. A later
 * answer to server/discover is still used. */
static void fell_silent(sgi_timer *timer)
{
    segue_session *session = SGI_OWNER(timer, segue_session, reach.timer);
    if (session->stage == SGI_STAGE_PROBING)
        fall_back(session, &(sgi_outcome){.kind = SGI_OUTCOME_TIMEOUT});
}

/* True when the client sends server/discover once more, because the server's list of
 * versions contains 2026-07-28. Several servers may share an address, and another one of
 * them may accept the version (2026-07-28 basic/versioning: "select a mutually supported
 * version from the list and retry the request"). */
static bool may_ask_again(const segue_session *session, const sgi_outcome *outcome)
{
    int64_t code = 0;
    sgi_json_read_int(sgi_json_get(outcome->json, "code"), &code);
    return !session->handshake.probed_again && code == SGI_RPC_UNSUPPORTED_VERSION &&
           lists_modern(sgi_json_get(sgi_json_get(outcome->json, "data"), "supported"));
}

/* True when resultType is "complete" or missing. A missing resultType means "complete"
 * (R-2557-5). */
static bool is_complete(sgi_json result)
{
    sgi_json type = sgi_json_get(result, "resultType");
    return !type.n || sgi_json_string_is(type, SGI_STR("complete"));
}

/* True when initialize is under way and the late answer to server/discover is not a
 * DiscoverResult. The caller then ignores this answer. A late DiscoverResult drops
 * initialize instead. */
static bool came_late(segue_session *session, bool is_modern)
{
    if (session->stage != SGI_STAGE_INITIALIZING)
        return false;
    if (is_modern && session->handshake.shaking) {
        sgi_emitter_drop(session->handshake.shaking, false);
        session->handshake.shaking = NULL;
        session->version = SGI_VERSION_MODERN;
    }
    return !is_modern;
}

static void discovered(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    bool is_modern = outcome->kind == SGI_OUTCOME_RESULT && is_complete(outcome->json) &&
                     lists_modern(sgi_json_get(outcome->json, "supportedVersions"));
    session->handshake.probing = NULL;
    if (came_late(session, is_modern) || is_out_of_reach(session, outcome))
        return;
    if (is_modern) {
        open_modern(session, outcome->json);
    } else if (outcome->kind == SGI_OUTCOME_ERROR && may_ask_again(session, outcome)) {
        session->handshake.probed_again = true;
        send_discover(session);
    } else if (outcome->kind == SGI_OUTCOME_ERROR && is_modern_error(outcome->json) &&
               !lists_legacy(outcome->json)) {
        sgi_session_fail(
            session, SEGUE_E_NEGOTIATION,
            "the server supports no protocol version that this library supports");
    } else {
        fall_back(session, outcome);
    }
}

static void send_discover(segue_session *session)
{
    sgi_sending sending;
    sgi_session_set_stage(session, SGI_STAGE_PROBING);
    session->version = SGI_VERSION_MODERN;
    sgi_emitter *emitter =
        sgi_emitter_begin(session, &sending, SGI_STR("server/discover"));
    if (!emitter) {
        sgi_session_fail(session, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    emitter->done = discovered;
    if (!send_it(emitter, &sending))
        return;
    session->handshake.probing = emitter;
    if (!session->conn->exchanging && session->options.era == SEGUE_ERA_AUTO)
        sgi_engine_set_timer(session->engine, &session->reach.timer,
                             session->options.probe_timeout_ms, fell_silent);
}

void sgi_handshake_begin(segue_session *session)
{
    int32_t era = session->options.era;
    session->handshake.probed_again = session->handshake.own_version_refused = false;
    sgi_text_free(sgi_engine_mem(session->engine), session->handshake.refusal);
    session->handshake.refusal = NULL;
    session->handshake.guessed =
        era == SEGUE_ERA_AUTO && session->conn->exchanging &&
        sgi_era_memory_is_legacy(&session->engine->eras, session->conn->endpoint);
    if (era == SEGUE_ERA_LEGACY || session->handshake.guessed)
        send_initialize(session);
    else
        send_discover(session);
}
