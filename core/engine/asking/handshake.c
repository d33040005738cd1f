/* Which era does the server speak? (2026-07-28 basic/transports/stdio, backward
 * compatibility): server/discover first. A DiscoverResult or a modern error means modern;
 * any other error, or silence, means initialize. Over a byte stream silence may be a
 * program that starts: a DiscoverResult that comes before the answer to initialize is
 * taken, and who refuses initialize is waited for once more. What is found out holds for
 * the connection, and is found out again after a reconnect: the program at the other end
 * may be another. */
#include "engine/asking/emitter.h"
#include "engine/asking/session.h"
#include "engine/dialect/response_modes.h"
#include "engine/hosting/host.h"

#include <stdio.h>

#define META "io.modelcontextprotocol/"

/* ---- what this client says of itself ---- */

static void write_client_info(sgi_jw *w, const segue_session *session, const char *name)
{
    sgi_jw_key(w, name);
    sgi_jw_open(w, '{');
    sgi_jw_member_string(w, "name", sgi_str_of(session->options.name));
    sgi_jw_member_string(w, "version", sgi_str_of(session->options.version));
    sgi_jw_close(w, '}');
}

/* The application's capabilities, and among their extensions the tasks of this
 * library. */
static void write_capabilities(sgi_jw *w, const segue_session *session, sgi_json given)
{
    sgi_json_member member;
    sgi_json extensions = sgi_json_get(given, "extensions");
    sgi_jw_open(w, '{');
    for (size_t at = 0; given.n && sgi_json_next_member(given, &at, &member);) {
        if (sgi_json_key_is(&member, "extensions") ||
            sgi_json_key_is(&member, "partialResults"))
            continue;
        sgi_jw_key_str(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    if (!(session->options.dialects_off & SEGUE_DIALECT_PARTIAL_RESULTS))
        sgi_jw_member_raw(w, "partialResults", SGI_STR("{}"));
    if (extensions.n || !session->options.no_tasks) {
        sgi_jw_key(w, "extensions");
        sgi_jw_open(w, '{');
        for (size_t at = 0;
             extensions.n && sgi_json_next_member(extensions, &at, &member);) {
            if (sgi_json_key_is(&member, META "tasks"))
                continue;
            sgi_jw_key_str(w, member.key);
            sgi_jw_raw(w, member.value);
        }
        if (!session->options.no_tasks)
            sgi_jw_member_raw(w, META "tasks", SGI_STR("{}"));
        sgi_jw_close(w, '}');
    }
    sgi_jw_close(w, '}');
}

/* The application's, and that segments may be made void by whoever streams them. */
static void write_experimental(sgi_jw *w, const segue_session *session, sgi_json given)
{
    sgi_json_member member;
    bool streams = sgi_task_calls_modes_of(session, given) & SGI_MODE_STREAMING;
    sgi_json own = sgi_json_get(given, "experimental");
    if (!streams && !own.n)
        return;
    sgi_jw_key(w, "experimental");
    if (!streams || (own.n && sgi_json_kind_of(own) != SGI_JSON_OBJECT)) {
        sgi_jw_raw(w, own);
        return;
    }
    sgi_jw_open(w, '{');
    if (!sgi_json_get(own, SGI_REPLACE).n)
        sgi_jw_member_raw(w, SGI_REPLACE, SGI_STR("{}"));
    for (size_t at = 0; own.n && sgi_json_next_member(own, &at, &member);) {
        sgi_jw_key_str(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    sgi_jw_close(w, '}');
}

/* For initialize. Of tasks the application may say something else itself. */
static void write_legacy_capabilities(sgi_jw *w, const segue_session *session,
                                      sgi_json given)
{
    sgi_json_member member;
    sgi_jw_open(w, '{');
    if (!session->options.no_tasks && !sgi_json_get(given, "tasks").n)
        sgi_task_calls_write_capability(w, session);
    sgi_hosting_write_questions(w, session->options.host, given);
    if (session->options.dialects_on & SEGUE_DIALECT_RESUMABLE &&
        !sgi_json_get(given, "resumableRequests").n)
        sgi_jw_member_raw(w, "resumableRequests", SGI_STR("{}"));
    write_experimental(w, session, given);
    for (size_t at = 0; given.n && sgi_json_next_member(given, &at, &member);) {
        if (sgi_json_key_is(&member, "experimental"))
            continue;
        sgi_jw_key_str(w, member.key);
        sgi_jw_raw(w, member.value);
    }
    sgi_jw_close(w, '}');
}

bool sgi_handshake_prepare(segue_session *session, sgi_json capabilities)
{
    sgi_jw w = sgi_jw_on(&session->meta);
    sgi_jw_member_string(&w, META "protocolVersion", SGI_STR("2026-07-28"));
    write_client_info(&w, session, META "clientInfo");
    sgi_jw_key(&w, META "clientCapabilities");
    write_capabilities(&w, session, capabilities);
    w = sgi_jw_on(&session->capabilities);
    write_legacy_capabilities(&w, session, capabilities);
    if (!session->capabilities.failed)
        session->our_modes = sgi_task_calls_modes(sgi_buf_str(&session->capabilities));
    return !session->meta.failed && !session->capabilities.failed;
}

/* ---- what the server says of itself ---- */

static bool keep_peer(segue_session *session, sgi_json info, sgi_json capabilities,
                      sgi_json instructions)
{
    sgi_buf *peer = &session->peer;
    sgi_buf_reset(peer, SIZE_MAX);
    sgi_jw w = sgi_jw_on(peer);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "protocolVersion",
                         sgi_str_of(sgi_version_name(session->version)));
    if (info.n)
        sgi_jw_member_raw(&w, "serverInfo", info);
    if (capabilities.n)
        sgi_jw_member_raw(&w, "capabilities", capabilities);
    if (instructions.n)
        sgi_jw_member_raw(&w, "instructions", instructions);
    sgi_jw_close(&w, '}');
    return sgi_buf_terminate(peer) && !peer->failed;
}

/* Which era the server spoke last: where it was the handshakes', the next session begins
 * with it. A session that was told which era to speak has learnt nothing. */
static void remember(segue_session *session, bool legacy)
{
    if (session->conn->exchanging && session->options.era == SEGUE_ERA_AUTO)
        sgi_places_note(&session->engine->places, session->conn->place, legacy);
    session->guessed = false;
}

static void open_modern(segue_session *session, sgi_json result)
{
    sgi_json capabilities = sgi_json_get(result, "capabilities");
    sgi_json extensions = sgi_json_get(capabilities, "extensions");
    sgi_json tasks = sgi_json_get(extensions, META "tasks");
    sgi_json info = sgi_json_get(sgi_json_get(result, "_meta"), META "serverInfo");
    session->has_tasks =
        !session->options.no_tasks && sgi_json_kind_of(tasks) == SGI_JSON_OBJECT;
    session->has_streams =
        session->has_tasks && (sgi_json_get(tasks, "eventStreams").n > 0 ||
                               sgi_json_get(extensions, "dev.segue/eventStreams").n > 0);
    session->left_stream = false; /* of an earlier connection */
    session->has_idempotency = !session->options.no_idempotency &&
                               sgi_json_get(extensions, "dev.segue/idempotency").n > 0;
    sgi_task_calls_begin(session, (sgi_json){0});
    if (keep_peer(session, info, capabilities, sgi_json_get(result, "instructions"))) {
        remember(session, false);
        sgi_session_opened(session);
    } else {
        sgi_session_failed(session, SEGUE_E_NOMEM, "out of memory");
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
        return ": a proxy on the way asks for credentials";
    return status == 401 ? ": it asks for authorization" : "";
}

/* With what the server said, so that somebody can find out why; over HTTP with the URL
 * and the status, for it may be no MCP server, or not at this path. */
static void explain(const segue_session *session, const char *method,
                    const sgi_outcome *outcome, char why[SGI_WHY_MAX])
{
    char what[512], room[SGI_NAME_MAX];
    sgi_str said = {0};
    if (outcome->kind == SGI_OUTCOME_ERROR)
        said = sgi_name_text(sgi_json_get(outcome->json, "message"), room);
    else if (outcome->kind == SGI_OUTCOME_REFUSED && outcome->has_reason)
        said = sgi_str_of(outcome->why);
    if (outcome->status)
        snprintf(what, sizeof what, "%.256s answered HTTP %d to %s%s",
                 session->conn->place_name, (int)outcome->status, method,
                 outcome->has_reason ? "" : advice_on(outcome->status));
    else if (outcome->kind == SGI_OUTCOME_REFUSED)
        snprintf(what, sizeof what, "%.256s%s%s",
                 session->conn->exchanging ? session->conn->place_name : "",
                 session->conn->exchanging ? ", asked for " : "", method);
    else
        snprintf(what, sizeof what, "the server refused %s", method);
    sgi_explain(why, what, said);
}

/* No answer of a server. Over a byte stream the session hears of a loss by itself, and
 * silence tells the era; over HTTP a refusal does, and who is silent is busy
 * (2026-07-28 basic/versioning, "Backward Compatibility"). */
static bool is_out_of_reach(segue_session *session, const sgi_outcome *outcome)
{
    bool silent = outcome->kind == SGI_OUTCOME_TIMEOUT && session->conn->exchanging;
    char why[96], text[SGI_WHY_MAX];
    snprintf(why, sizeof why, "the server did not answer %s within %lld ms",
             method_of(session), (long long)session->options.request_timeout_ms);
    silent |=
        outcome->kind == SGI_OUTCOME_TIMEOUT && session->options.era == SEGUE_ERA_MODERN;
    if (silent && session->was_open && session->conn->exchanging) {
        sgi_session_lost(session, why);
        return true;
    }
    if (silent) {
        sgi_session_failed(session, SEGUE_E_NEGOTIATION, why);
        return true;
    }
    if (outcome->kind == SGI_OUTCOME_LOST) {
        if (session->conn->exchanging)
            sgi_session_lost(session, outcome->why);
        return true;
    }
    bool is_let_in =
        outcome->status != 401 && outcome->status != 403 && outcome->status != 407;
    if (outcome->kind != SGI_OUTCOME_REFUSED || (outcome->status && is_let_in))
        return false;
    explain(session, method_of(session), outcome, text);
    sgi_session_failed(session, sgi_outcome_status(outcome), text);
    return true;
}

/* Out of memory is a loss like others: a byte stream closes by itself then. */
static bool send_it(sgi_emitter *emitter, sgi_sending *sending)
{
    segue_session *session = emitter->session;
    bool sent = sgi_emitter_send(emitter, sending, (sgi_str){0}, (sgi_json){0});
    if (!sent && session->conn->exchanging)
        sgi_session_lost(session, "out of memory");
    return sent;
}

/* ---- initialize ---- */

static void send_discover(segue_session *session);
static void send_initialize(segue_session *session);

/* Whatever comes to server/discover now, the era is settled. */
static void forget_probe(segue_session *session)
{
    if (session->probing)
        sgi_emitter_drop(session->probing, false);
    session->probing = NULL;
}

/* The server is another than it was: what it speaks is found out anew. */
static bool guessed_wrong(segue_session *session)
{
    if (!session->guessed)
        return false;
    remember(session, false);
    send_discover(session);
    return true;
}

static bool announce(segue_session *session)
{
    sgi_sending sending;
    sgi_conn *conn = sgi_session_tell(session);
    if (!conn)
        return false;
    sgi_send_notification(&sending, conn, "notifications/initialized");
    bool sent = sgi_send_end(&sending);
    return sgi_session_told(session, conn) && sent;
}

/* A server that does not answer a notification may have heard it. */
static void announced_in_vain(sgi_timer *timer)
{
    sgi_session_announced(SGI_OWNER(timer, segue_session, timer));
}

/* Is the draft DRAFT-2026-v1 offered? */
static bool offers_draft(const segue_session *session)
{
    return session->options.dialects_on & SEGUE_DIALECT_DRAFT_TASKS &&
           !session->options.no_tasks && !session->draft_refused;
}

/* Some servers refuse a version where they should name another. */
static bool goes_without_draft(segue_session *session, const sgi_outcome *outcome)
{
    if (!offers_draft(session) || outcome->kind != SGI_OUTCOME_ERROR)
        return false;
    session->draft_refused = true;
    send_initialize(session);
    return true;
}

static bool speaks(const segue_session *session, sgi_version version)
{
    if (version == SGI_VERSION_DRAFT_2026_V1)
        return offers_draft(session);
    return version != SGI_VERSION_UNKNOWN && version <= SGI_VERSION_2025_11_25;
}

/* Where the handshake eras say what is not of the protocol. */
static void read_experimental(segue_session *session, sgi_json capabilities)
{
    sgi_json experimental = sgi_json_get(capabilities, "experimental");
    session->has_idempotency = !session->options.no_idempotency &&
                               sgi_json_get(experimental, "dev.segue/idempotency").n > 0;
    session->pulls_from_start = sgi_json_get(experimental, "dev.segue/fromSeqNr").n > 0;
}

static void was_refused(segue_session *session, const sgi_outcome *outcome)
{
    char why[SGI_WHY_MAX];
    if (outcome->kind == SGI_OUTCOME_TIMEOUT)
        snprintf(why, sizeof why, "the server did not answer initialize within %lld ms",
                 (long long)session->options.request_timeout_ms);
    else
        explain(session, "initialize", outcome, why);
    sgi_session_failed(session, SEGUE_E_NEGOTIATION, why);
}

static void fell_silent(sgi_timer *timer);
static bool lists_modern(sgi_json versions);

/* A program that starts may have read server/discover late, and answers it later. One
 * that names 2026-07-28 is asked once more. What it said is kept for the case that
 * nothing comes of it. */
static bool is_waited_for(segue_session *session, const sgi_outcome *outcome)
{
    char why[SGI_WHY_MAX];
    sgi_json data = sgi_json_get(outcome->json, "data");
    bool names_it = lists_modern(sgi_json_get(data, "supported"));
    if (outcome->kind != SGI_OUTCOME_ERROR || session->refusal ||
        session->conn->exchanging || session->options.era != SEGUE_ERA_AUTO ||
        (!session->probing && !names_it))
        return false;
    explain(session, "initialize", outcome, why);
    session->refusal = sgi_text_dup(sgi_engine_mem(session->engine), sgi_str_of(why));
    if (!session->refusal)
        return false;
    if (!session->probing) {
        send_discover(session);
        return true;
    }
    session->stage = SGI_STAGE_PROBING;
    session->version = SGI_VERSION_2026_07_28;
    sgi_engine_timer(session->engine, &session->timer, session->options.probe_timeout_ms,
                     fell_silent);
    return true;
}

static void initialized(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    sgi_str version;
    session->shaking = NULL;
    if (is_out_of_reach(session, outcome))
        return;
    if (outcome->kind != SGI_OUTCOME_RESULT) {
        if (is_waited_for(session, outcome) || goes_without_draft(session, outcome) ||
            guessed_wrong(session))
            return;
        was_refused(session, outcome);
        return;
    }
    if (!sgi_json_plain_string(sgi_json_get(outcome->json, "protocolVersion"),
                               &version) ||
        !speaks(session, session->version = sgi_version_parse(version))) {
        sgi_session_failed(session, SEGUE_E_NEGOTIATION,
                           "the server chose a protocol version unknown here");
        return;
    }
    session->has_tasks = session->version == SGI_VERSION_DRAFT_2026_V1;
    session->has_streams = false;
    read_experimental(session, sgi_json_get(outcome->json, "capabilities"));
    sgi_task_calls_begin(session, sgi_json_get(outcome->json, "capabilities"));
    sgi_log_wish_begin(session, sgi_json_get(outcome->json, "capabilities"));
    if (!keep_peer(session, sgi_json_get(outcome->json, "serverInfo"),
                   sgi_json_get(outcome->json, "capabilities"),
                   sgi_json_get(outcome->json, "instructions")) ||
        !announce(session)) {
        sgi_session_failed(session, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    remember(session, true);
    forget_probe(session);
    if (!session->conn->exchanging) /* else requests might overtake what was announced */
        sgi_session_opened(session);
    else
        sgi_engine_timer(session->engine, &session->timer,
                         session->options.probe_timeout_ms, announced_in_vain);
}

void sgi_session_announced(segue_session *session)
{
    if (session->stage == SGI_STAGE_INITIALIZING)
        sgi_session_opened(session);
}

static void send_initialize(segue_session *session)
{
    sgi_sending sending;
    session->stage = SGI_STAGE_INITIALIZING;
    session->wire_session++;
    session->version = SGI_VERSION_2025_11_25;
    sgi_emitter *emitter = sgi_emitter_begin(session, &sending, SGI_STR("initialize"));
    if (!emitter) {
        sgi_session_failed(session, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    emitter->done = initialized;
    sgi_version offer =
        offers_draft(session) ? SGI_VERSION_DRAFT_2026_V1 : SGI_VERSION_2025_11_25;
    sgi_jw_member_string(&sending.w, "protocolVersion",
                         sgi_str_of(sgi_version_name(offer)));
    sgi_jw_member_raw(&sending.w, "capabilities", sgi_buf_str(&session->capabilities));
    write_client_info(&sending.w, session, "clientInfo");
    if (send_it(emitter, &sending))
        session->shaking = emitter;
}

/* ---- server/discover ---- */

static bool lists_modern(sgi_json versions)
{
    sgi_json version;
    if (sgi_json_kind_of(versions) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; sgi_json_next_item(versions, &at, &version);)
        if (sgi_json_string_is(version, SGI_STR("2026-07-28")))
            return true;
    return false;
}

static bool is_modern_error(sgi_json error)
{
    int64_t code = 0;
    sgi_json_int(sgi_json_get(error, "code"), &code);
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
        if (known != SGI_VERSION_UNKNOWN && known <= SGI_VERSION_2025_11_25)
            return true;
    }
    return false;
}

static void fall_back(segue_session *session, const sgi_outcome *outcome)
{
    char why[SGI_WHY_MAX];
    if (session->refusal) {
        sgi_session_failed(session, SEGUE_E_NEGOTIATION, session->refusal);
    } else if (session->options.era == SEGUE_ERA_MODERN && outcome->status) {
        explain(session, "server/discover", outcome, why);
        sgi_session_failed(session, SEGUE_E_NEGOTIATION, why);
    } else if (session->options.era == SEGUE_ERA_MODERN) {
        sgi_session_failed(session, SEGUE_E_NEGOTIATION,
                           "the server does not speak 2026-07-28");
    } else {
        send_initialize(session);
    }
}

/* Nothing has come to server/discover, which may still come. */
static void fell_silent(sgi_timer *timer)
{
    segue_session *session = SGI_OWNER(timer, segue_session, timer);
    if (session->stage == SGI_STAGE_PROBING)
        fall_back(session, &(sgi_outcome){.kind = SGI_OUTCOME_TIMEOUT});
}

/* A server that refuses a version and lists it, as one of several behind an address may,
 * is taken at its word once (2026-07-28 basic/versioning: "select a mutually supported
 * version from the list and retry the request"). */
static bool may_ask_again(const segue_session *session, const sgi_outcome *outcome)
{
    int64_t code = 0;
    sgi_json_int(sgi_json_get(outcome->json, "code"), &code);
    return !session->probed_again && code == SGI_RPC_UNSUPPORTED_VERSION &&
           lists_modern(sgi_json_get(sgi_json_get(outcome->json, "data"), "supported"));
}

/* Absent means "complete" (R-2557-5). */
static bool is_complete(sgi_json result)
{
    sgi_json type = sgi_json_get(result, "resultType");
    return !type.n || sgi_json_string_is(type, SGI_STR("complete"));
}

/* true: it came late. The one that is no DiscoverResult leaves it to initialize. */
static bool came_late(segue_session *session, bool is_modern)
{
    if (session->stage != SGI_STAGE_INITIALIZING)
        return false;
    if (is_modern && session->shaking) {
        sgi_emitter_drop(session->shaking, false);
        session->shaking = NULL;
        session->version = SGI_VERSION_2026_07_28;
    }
    return !is_modern;
}

static void discovered(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    bool is_modern = outcome->kind == SGI_OUTCOME_RESULT && is_complete(outcome->json) &&
                     lists_modern(sgi_json_get(outcome->json, "supportedVersions"));
    session->probing = NULL;
    if (came_late(session, is_modern) || is_out_of_reach(session, outcome))
        return;
    if (is_modern) {
        open_modern(session, outcome->json);
    } else if (outcome->kind == SGI_OUTCOME_ERROR && may_ask_again(session, outcome)) {
        session->probed_again = true;
        send_discover(session);
    } else if (outcome->kind == SGI_OUTCOME_ERROR && is_modern_error(outcome->json) &&
               !lists_legacy(outcome->json)) {
        sgi_session_failed(session, SEGUE_E_NEGOTIATION,
                           "the server speaks no protocol version known here");
    } else {
        fall_back(session, outcome);
    }
}

static void send_discover(segue_session *session)
{
    sgi_sending sending;
    session->stage = SGI_STAGE_PROBING;
    session->version = SGI_VERSION_2026_07_28;
    sgi_emitter *emitter =
        sgi_emitter_begin(session, &sending, SGI_STR("server/discover"));
    if (!emitter) {
        sgi_session_failed(session, SEGUE_E_NOMEM, "out of memory");
        return;
    }
    emitter->done = discovered;
    if (!send_it(emitter, &sending))
        return;
    session->probing = emitter;
    if (!session->conn->exchanging && session->options.era == SEGUE_ERA_AUTO)
        sgi_engine_timer(session->engine, &session->timer,
                         session->options.probe_timeout_ms, fell_silent);
}

void sgi_handshake_begin(segue_session *session)
{
    int32_t era = session->options.era;
    session->probed_again = session->draft_refused = false;
    sgi_text_free(sgi_engine_mem(session->engine), session->refusal);
    session->refusal = NULL;
    session->guessed =
        era == SEGUE_ERA_AUTO && session->conn->exchanging &&
        sgi_places_is_legacy(&session->engine->places, session->conn->place);
    if (era == SEGUE_ERA_LEGACY || session->guessed)
        send_initialize(session);
    else
        send_discover(session);
}
