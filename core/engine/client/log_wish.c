/* Sets the log level in the versions that begin with `initialize`. In these versions the
 * log level belongs to the session and is set by logging/setLevel. Before a request that
 * wants log messages is sent, the session sets the level of this request. The session
 * does so once per wire session and level. It sends nothing when the present level
 * already includes the level of the request. A request gets no messages below its own
 * level. If logging/setLevel fails, the request is still sent. A new wire session begins
 * with the level that the last one had, as far as the application or a running request
 * needs it. */
#include "base/backoff.h"
#include "engine/client/request.h"
#include "wire/log_level.h"

#define AGAIN_MOST_MS (64 * SGI_BACKOFF_FIRST_MS)

void sgi_session_init_log_level(segue_session *session)
{
    session->log.level = session->log.chosen = SGI_LOG_LEVELS;
}

void sgi_session_forget_log_level(segue_session *session, sgi_json capabilities)
{
    session->server.logging =
        sgi_json_kind_of(sgi_json_get(capabilities, "logging")) == SGI_JSON_OBJECT;
    session->log.level = SGI_LOG_LEVELS;
    session->log.wishing = NULL;
    session->log.restoring = false;
}

static void try_again(sgi_timer *timer)
{
    segue_session *session = SGI_OWNER(timer, segue_session, log.again);
    if (sgi_session_is_open(session) && !session->log.wishing)
        sgi_session_restore_log_level(session);
}

/* Counts what became of a message that should set the level of the last wire session
 * again. A lost one is sent again after a pause. */
static void restored(segue_session *session, const sgi_outcome *outcome)
{
    const sgi_backoff pauses = {.first_ms = SGI_BACKOFF_FIRST_MS,
                                .most_ms = AGAIN_MOST_MS};
    bool is_lost = outcome->kind == SGI_OUTCOME_LOST && sgi_session_is_open(session);
    session->log.restoring = false;
    session->log.failures = is_lost ? session->log.failures + 1 : 0;
    if (is_lost)
        sgi_engine_set_timer(session->engine, &session->log.again,
                             sgi_backoff_ms(&pauses, session->log.failures), try_again);
}

static void wished(sgi_emitter *emitter, const sgi_outcome *outcome)
{
    segue_session *session = emitter->session;
    segue_request *request, *next;
    char room[SGI_NAME_MAX];
    sgi_str said = sgi_str_of(outcome->why ? outcome->why : "");
    if (emitter != session->log.wishing)
        return; /* another message sets the level now */
    if (outcome->kind == SGI_OUTCOME_ERROR)
        said = sgi_method_text(sgi_json_get(outcome->json, "message"), room);
    session->log.wishing = NULL;
    if (outcome->kind != SGI_OUTCOME_RESULT)
        sgi_engine_log(
            session->engine, SEGUE_LOG_WARNING,
            "logging/setLevel failed, so log messages of the server may be missing: %.*s",
            (int)said.n, said.p);
    if (outcome->kind != SGI_OUTCOME_LOST)
        session->log.level = session->log.wish_level;
    if (session->log.restoring)
        restored(session, outcome);
    SGI_TAILQ_EACH(request, &session->requests, link, next)
        if (request->phase == SGI_PHASE_WAIT && sgi_session_is_open(session))
            sgi_request_send_due(request);
}

static bool send_wish(segue_session *session, const char *text, int32_t level)
{
    sgi_sending sending;
    sgi_emitter *emitter =
        sgi_emitter_begin(session, &sending, SGI_STR("logging/setLevel"));
    if (!emitter)
        return false;
    emitter->done = wished;
    sgi_jw_member_string(&sending.w, "level", sgi_str_of(text));
    if (!sgi_emitter_send(emitter, &sending, (sgi_str){0}, (sgi_json){0}))
        return false;
    session->log.wishing = emitter;
    session->log.wish_level = level;
    return true;
}

/* Sends logging/setLevel for the session itself. */
static void restore(segue_session *session, int32_t level)
{
    session->log.restoring =
        level < SGI_LOG_LEVELS && send_wish(session, sgi_log_level_name(level), level);
}

void sgi_session_set_log_level_again(segue_session *session)
{
    /* the former server may have handled a message that is under way */
    int32_t level = session->log.wishing ? session->log.wish_level : session->log.level;
    session->log.level = SGI_LOG_LEVELS;
    session->log.wishing = NULL;
    restore(session, level);
}

/* Returns the lowest level that the application or a running request has asked for in an
 * earlier wire session; SGI_LOG_LEVELS = no level was asked for. */
static int32_t level_asked_for(const segue_session *session)
{
    const segue_request *request;
    int32_t least = session->log.chosen;
    TAILQ_FOREACH(request, &session->requests, link) {
        int32_t level = request->wish.session && !request->wish.overruled &&
                                !sgi_request_is_over(request)
                            ? sgi_log_level_parse(sgi_str_of(request->log_level))
                            : SGI_LOG_LEVELS;
        if (level < least)
            least = level;
    }
    return least;
}

void sgi_session_restore_log_level(segue_session *session)
{
    if (sgi_facts(session->version)->has_log_level_in_meta || !session->server.logging)
        return;
    restore(session, level_asked_for(session));
}

/* Over a byte stream the server handles logging/setLevel before the next message. */
bool sgi_session_awaits_log_level(const segue_session *session)
{
    return session->log.restoring && session->conn->exchanging;
}

bool sgi_request_prepare_log_level(segue_request *request)
{
    segue_session *session = request->session;
    int32_t level =
        request->log_level ? sgi_log_level_parse(sgi_str_of(request->log_level)) : -1;
    if (level < 0 || sgi_facts(session->version)->has_log_level_in_meta ||
        !session->server.logging || request->wish.overruled ||
        request->wish.session == session->wire_session)
        return true;
    if (level >= session->log.level) {
        /* the wish is granted; a later logging/setLevel of the application holds for the
         * further rounds of this request */
        request->wish.session = session->wire_session;
        return true;
    }
    if (session->log.wishing)
        /* another logging/setLevel is under way and may set the wanted level, so the
         * request waits for its end */
        return false;
    request->wish.session = session->wire_session;
    return !send_wish(session, request->log_level, level);
}

void sgi_request_note_set_log_level(segue_request *request)
{
    segue_session *session = request->session;
    segue_request *other;
    sgi_json params = request->params;
    if (!sgi_str_eq(sgi_str_of(request->method), SGI_STR("logging/setLevel")))
        return;
    int32_t level = sgi_log_level_parse_json(sgi_json_get(params, "level"));
    if (level < 0)
        return;
    session->log.level = session->log.chosen = level;
    TAILQ_FOREACH(other, &session->requests, link)
        other->wish.overruled |= other->wish.session && !session->log.wishing;
}

/* Returns the lowest level that the request wants. Before 2026-07-28 the level belongs to
 * the session, and a request that names none gets what the session gets. */
static int32_t least_level(const segue_request *request)
{
    if (request->log_level)
        return sgi_log_level_parse(sgi_str_of(request->log_level));
    return sgi_facts(request->session->version)->has_log_level_in_meta ? SGI_LOG_LEVELS
                                                                       : -1;
}

/* True when the request wants log messages of this level. A message with an invalid level
 * has level -1, and every request that wants any messages wants it. */
static bool wants(const segue_request *request, int32_t level)
{
    int32_t least = least_level(request);
    if (least == SGI_LOG_LEVELS)
        return false;
    bool goes_on = request->calling || request->phase == SGI_PHASE_FOLLOW;
    return goes_on && request->events.on_log && (level < 0 || level >= least);
}

bool sgi_requests_take_log_message(segue_session *session, sgi_json params)
{
    sgi_inbox_record_head head = {.kind = SGI_RECORD_LOG};
    int32_t level = sgi_log_level_parse_json(sgi_json_get(params, "level"));
    segue_request *request = session->hearing ? session->hearing->request : NULL;
    /* since 2026-07-28, over HTTP, a message belongs to the request of its stream, and
     * to no other one when the request has ended */
    bool is_its_own =
        session->conn->exchanging && sgi_facts(session->version)->has_log_level_in_meta;
    if (request && !wants(request, level))
        request = NULL;
    if (!request && !is_its_own)
        TAILQ_FOREACH(request, &session->requests, link)
            if (wants(request, level))
                break;
    if (!request)
        return false;
    if (sgi_inbox_is_full(request))
        request->delivery.dropped++;
    else
        sgi_inbox_add_record(request, &head, params.n ? params : SGI_STR("{}"));
    return true;
}
