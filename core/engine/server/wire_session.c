/* An exchange is carried by a transport, or is parked. A parked exchange is settled when
 * no further event will be added to the exchange.
 *     carried --transport leaves--> parked --answered--> settled --trim, expiry--> gone
 *        ^                            |                     |
 *        +---------- resume ---------+---------------------+
 *
 * Only an event stream can be resumed. Other answers have no event id that a client
 * could name, so the unsent part of such an answer is dropped. The session owns the
 * exchanges in its list. The conversation owns the memory of the exchange, and a
 * transport can hold a reference to the conversation for longer. */
#include "engine/server/wire_session.h"

#include "base/thresholds.h"
#include "engine/server/call_report.h"
#include "engine/server/clients.h"
#include "engine/server/task_creator.h"
#include "engine/conversation/replay.h"
#include "engine/server/lasting.h"
#include "engine/server/parked_exchange.h"
#include "wire/sse.h"

/* the time in ms after which a question is sent on another stream than the lost one */
#define ASK_AGAIN_MS SGI_THRESHOLD(ask_again_ms)
/* The maximum number of parked exchanges that one session keeps although they get no more
 * events (settled) or the client can do without them (spare). */
#define SPARE_MAX SGI_THRESHOLD(spare_exchanges_max)
/* The maximum number of exchanges that one session keeps although their operations have
 * ended while the client was away (complete). The client of a task may have got the rest
 * from another server. The client of a plain call loses the rest with the oldest
 * exchange. */
#define COMPLETE_MAX SGI_THRESHOLD(left_exchanges_max)

static bool can_be_resumed(const sgi_peer *peer)
{
    return peer->conn->frames == SGI_FRAMES_EVENTS && !peer->conn->closing;
}

/* Removes an exchange from its session. From now on the exchange uses its own tables. */
static void remove_from_session(sgi_peer *peer)
{
    sgi_wire_session *session = peer->session;
    sgi_reply *reply;
    LIST_FOREACH(reply, &peer->replies, by_peer) {
        sgi_reply_remove_from_flight(reply);
        sgi_reply_add_to_flight(reply, &peer->own_in_flight);
    }
    TAILQ_REMOVE(&session->exchanges, peer, by_session);
    sgi_parked_uncount(peer);
    if (session->listening == peer)
        session->listening = NULL;
    peer->own_handshake = session->handshake;
    peer->own_handshake.client = NULL; /* the client is the session */
    peer->session = NULL;
    peer->questions = &peer->own_questions;
    peer->in_flight = &peer->own_in_flight;
    peer->handshake = &peer->own_handshake;
}

/* Ends one exchange of a session and cancels its requests in flight. If a transport still
 * carries the exchange, the transport is asked to close and detaches later. */
static void discard(sgi_peer *peer)
{
    sgi_conn *conn = peer->conn;
    sgi_conn_ref(conn);
    sgi_conn_on_lost(conn, "the session has ended");
    remove_from_session(peer);
    if (conn->transport)
        sgi_conn_close(conn);
    else
        sgi_conn_detach(conn);
    sgi_conn_unref(conn);
}

void sgi_wire_session_end_answered_exchange(sgi_peer *peer)
{
    if (peer->session)
        discard(peer);
    else
        sgi_conn_close(peer->conn);
}

/* True when a transport waits for the answer of the exchange. drains = true: an answer
 * that is not ready yet counts too. */
static bool is_awaited(const sgi_peer *peer, bool drains)
{
    return peer->conn->transport && (peer->conn->answered || drains) &&
           peer != peer->session->listening;
}

static void end_session(sgi_wire_session *session, bool drains)
{
    segue_server *server = session->server;
    sgi_peer *peer;
    sgi_task_creators_forget_session(session);
    sgi_client_end(session->handshake.client);
    session->handshake.client = NULL;
    while ((peer = TAILQ_FIRST(&session->exchanges))) {
        if (is_awaited(peer, drains))
            remove_from_session(peer);
        else
            discard(peer);
    }
    sgi_question_requests_abandon(&session->questions);
    sgi_engine_clear_timer(server->engine, &session->expiry);
    sgi_engine_clear_timer(server->engine, &session->ask_again);
    sgi_map_remove(&server->sessions.by_id, &session->node);
    TAILQ_REMOVE(&server->sessions.by_use, session, by_use);
    TAILQ_REMOVE(&session->who->sessions, session, by_who);
    session->who->session_count--;
    sgi_map_free(&session->in_flight.by_id);
    sgi_subscribed_uris_free(session->uris);
    sgi_principal_unref(session->who);
    sgi_free(sgi_engine_mem(server->engine), session, sizeof *session);
    sgi_session_event_report(server, SGI_EVENT_session_closed);
}

void sgi_wire_session_end(sgi_wire_session *session)
{
    end_session(session, false);
}

void sgi_wire_sessions_end(segue_server *server)
{
    sgi_wire_session *session;
    while ((session = TAILQ_FIRST(&server->sessions.by_use)))
        end_session(session, true);
}

/* ---- beginning and expiry ---- */

static bool is_idle(const sgi_wire_session *session)
{
    const sgi_peer *peer;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (!sgi_parked_is_settled(peer) && !sgi_parked_waits_for_client(peer) &&
            (peer != session->listening || peer->conn->transport))
            return false;
    return true;
}

static void maybe_expire(sgi_timer *timer)
{
    sgi_wire_session *session = SGI_OWNER(timer, sgi_wire_session, expiry);
    sgi_engine *engine = session->server->engine;
    int64_t left = sgi_time_sub(sgi_time_add(session->used_ms, session->idle_ms),
                                sgi_now(&engine->env));
    if (left <= 0 && is_idle(session))
        sgi_wire_session_end(session);
    else
        sgi_engine_set_timer(engine, timer, left > 0 ? left : session->idle_ms,
                             maybe_expire);
}

static void touch(sgi_wire_session *session)
{
    segue_server *server = session->server;
    session->used_ms = sgi_now(&server->engine->env);
    TAILQ_REMOVE(&server->sessions.by_use, session, by_use);
    TAILQ_INSERT_TAIL(&server->sessions.by_use, session, by_use);
    TAILQ_REMOVE(&session->who->sessions, session, by_who);
    TAILQ_INSERT_TAIL(&session->who->sessions, session, by_who);
}

/* Returns the idle session that has been unused for the longest time. Returns NULL when
 * the search finds no idle session. */
static sgi_wire_session *find_idle(const segue_server *server)
{
    sgi_wire_session *session;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &server->sessions.by_use, by_use) {
        if (++looked > SGI_SESSION_LOOKS_MAX)
            break;
        if (is_idle(session))
            return session;
    }
    return NULL;
}

/* Returns the idle session of this principal that has been unused for the longest time.
 * Returns NULL when the search finds no idle session. */
static sgi_wire_session *find_idle_of(const sgi_principal *who)
{
    sgi_wire_session *session;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &who->sessions, by_who) {
        if (++looked > SGI_SESSION_LOOKS_MAX)
            break;
        if (is_idle(session))
            return session;
    }
    return NULL;
}

/* Ends one session to make room for a new session. An idle session of the same principal
 * is chosen first, so that a caller that opens many sessions does not end sessions of
 * others. A caller that has half of the maximum number of sessions never ends sessions of
 * others. */
static bool make_room(const segue_server *server, const sgi_principal *who, int32_t most)
{
    sgi_wire_session *session = find_idle_of(who);
    if (!session && who->session_count < most - most / 2)
        session = find_idle(server);
    if (session)
        sgi_wire_session_end(session);
    return session != NULL;
}

segue_status sgi_wire_session_new(segue_server *server, sgi_principal *who, int32_t most,
                                  int64_t idle_ms, sgi_wire_session **out)
{
    sgi_engine *engine = server->engine;
    if (server->sessions.by_id.count >= (size_t)most && !make_room(server, who, most))
        return SEGUE_E_LIMIT;
    sgi_wire_session *session = sgi_zalloc(sgi_engine_mem(engine), sizeof *session);
    if (!session)
        return SEGUE_E_NOMEM;
    if (!sgi_engine_random_text(engine, session->id)) {
        sgi_free(sgi_engine_mem(engine), session, sizeof *session);
        return SEGUE_E_NOMEM;
    }
    session->server = server;
    session->who = who;
    sgi_principal_ref(who);
    session->handshake.log_level = server->first_log_level;
    session->first_stream = session->next_stream = 1;
    session->idle_ms = idle_ms;
    sgi_in_flight_init(&session->in_flight, engine);
    TAILQ_INIT(&session->exchanges);
    LIST_INIT(&session->creators);
    sgi_question_requests_init(&session->questions, session);
    TAILQ_INSERT_TAIL(&server->sessions.by_use, session, by_use);
    TAILQ_INSERT_TAIL(&who->sessions, session, by_who);
    who->session_count++;
    sgi_map_put(&server->sessions.by_id, &session->node, sgi_str_of(session->id));
    session->used_ms = sgi_now(&engine->env);
    sgi_engine_set_timer(engine, &session->expiry, idle_ms, maybe_expire);
    sgi_session_event_report(server, SGI_EVENT_session_opened);
    *out = session;
    return SEGUE_OK;
}

sgi_wire_session *sgi_wire_session_find(segue_server *server, const sgi_principal *who,
                                        sgi_str id)
{
    sgi_map_node *node = sgi_map_find(&server->sessions.by_id, id);
    sgi_wire_session *session = node ? SGI_OWNER(node, sgi_wire_session, node) : NULL;
    if (!session || session->who != who)
        return NULL;
    touch(session);
    return session;
}

/* ---- exchanges ---- */

/* Drops exchanges that no client can resume. If too many exchanges remain that get no
 * more events (settled), that the client can do without (spare), or that are complete,
 * also drops the oldest of them. */
static void trim(sgi_wire_session *session)
{
    sgi_peer *peer, *next;
    int32_t dispensable = 0, complete = 0;
    TAILQ_FOREACH(peer, &session->exchanges, by_session) {
        dispensable += sgi_parked_is_dispensable(peer);
        complete += !sgi_parked_is_dispensable(peer) && sgi_parked_is_complete(peer);
    }
    SGI_TAILQ_EACH(peer, &session->exchanges, by_session, next) {
        bool is_dispensable = sgi_parked_is_dispensable(peer);
        int32_t *kept = is_dispensable ? &dispensable : &complete;
        bool excess = is_dispensable
                          ? dispensable > SPARE_MAX
                          : sgi_parked_is_complete(peer) && complete > COMPLETE_MAX;
        if (!excess && (!sgi_parked_is_settled(peer) || can_be_resumed(peer)))
            continue;
        discard(peer);
        --*kept;
    }
}

bool sgi_wire_session_expects_client(const sgi_wire_session *session)
{
    const sgi_peer *peer;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (sgi_parked_is_expected_back(peer))
            return true;
    return false;
}

/* ---- exchanges and transports ---- */

sgi_peer *sgi_wire_session_new_exchange(sgi_wire_session *session, size_t max_replay,
                                        void *transport)
{
    segue_server *server = session->server;
    const sgi_mem *mem = sgi_engine_mem(server->engine);
    trim(session);
    sgi_peer *peer = sgi_peer_new(server, transport, session->who);
    if (!peer)
        return NULL;
    peer->is_exchange = true;
    peer->conn->replay = sgi_zalloc(mem, sizeof *peer->conn->replay);
    if (!peer->conn->replay) {
        sgi_conn_detach(peer->conn);
        return NULL;
    }
    sgi_replay_init(peer->conn->replay, mem, max_replay, session->next_stream++,
                    sgi_facts(session->handshake.version)->primes_streams);
    peer->session = session;
    peer->questions = &session->questions;
    peer->in_flight = &session->in_flight;
    peer->handshake = &session->handshake;
    TAILQ_INSERT_TAIL(&session->exchanges, peer, by_session);
    sgi_conn_start(peer->conn);
    peer->conn->frames = SGI_FRAMES_OPEN;
    return peer;
}

sgi_peer *sgi_wire_session_find_exchange(const sgi_wire_session *session, int64_t stream,
                                         uint64_t event)
{
    sgi_peer *peer;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (peer->conn->replay->stream == stream && can_be_resumed(peer) &&
            event < peer->conn->replay->next)
            return peer;
    return NULL;
}

bool sgi_wire_session_stream_is_lost(const sgi_wire_session *session, int64_t stream)
{
    const sgi_peer *peer;
    if (session->is_named && stream & SGI_STREAM_OF_GET)
        return false;
    if (session->is_named && stream > 0 && stream < session->first_stream)
        /* another server gave this number to a stream, and this server does not have the
         * events of that stream */
        return true;
    if (stream < 1 || stream >= session->next_stream || stream == session->listened)
        return session->is_named && stream >= session->next_stream;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (peer->conn->replay->stream == stream)
            return peer->conn->closing;
    return true;
}

static void uncount_stream(sgi_peer *peer)
{
    if (peer->got)
        sgi_budget_count_stream(peer, -1);
    peer->got = false;
}

bool sgi_wire_session_resume_exchange(sgi_peer *peer, uint64_t after, void *transport)
{
    sgi_conn *conn = peer->conn;
    sgi_buf again;
    sgi_buf_init(&again, sgi_engine_mem(conn->engine));
    sgi_replay_copy(conn->replay, after, &again);
    if (again.failed) {
        sgi_buf_free(&again);
        return false;
    }
    /* Closes the transport that carried the exchange before. */
    if (conn->transport)
        conn->engine->host.close(conn->engine->host.user, conn);
    conn->output_notified = conn->parting = false;
    peer->retry_ms = 0;
    sgi_buf_free(&conn->out);
    conn->out = again;
    conn->transport = transport;
    peer->server->counts.resumes++;
    peer->server->counts.sent_again += conn->out.len;
    sgi_parked_uncount(peer);
    sgi_conn_notify_output(conn);
    sgi_lasting_calls_on_peer_rejoined(peer);
    return true;
}

void sgi_wire_session_count_get_stream(sgi_peer *peer)
{
    if (!peer->got)
        sgi_budget_count_stream(peer, 1);
    peer->got = true;
}

static void ask_again(sgi_timer *timer)
{
    sgi_question_requests_send_again_soon(
        &SGI_OWNER(timer, sgi_wire_session, ask_again)->questions);
}

/* A client can resume the stream that it has lost, and then gets its questions from the
 * replay. If the client does not do this in time, perhaps because another server carries
 * its next stream, the questions are sent on other streams of the session. */
static void ask_again_later(sgi_wire_session *session)
{
    if (!TAILQ_EMPTY(&session->questions.out))
        sgi_engine_set_timer(session->server->engine, &session->ask_again, ASK_AGAIN_MS,
                             ask_again);
}

void sgi_wire_session_detach_transport(sgi_peer *peer)
{
    sgi_wire_session *session = peer->session;
    sgi_conn *conn = peer->conn;
    sgi_reply *reply, *next;
    uncount_stream(peer);
    conn->transport = NULL;
    conn->parting = false;
    peer->left_at = conn->replay->next;
    /* unsent output is dropped, because the replay keeps every event that can be sent
     * again */
    sgi_buf_reset(&conn->out, 0);
    if (conn->frames == SGI_FRAMES_OPEN)
        /* the call continues, although no client can receive its answer */
        conn->no_events = true;
    for (reply = LIST_FIRST(&peer->replies); reply; reply = next) {
        /* `next` is read before the call, because `parked` can answer and free the
         * reply */
        next = LIST_NEXT(reply, by_peer);
        if (reply->parked)
            reply->parked(reply);
    }
    sgi_lasting_calls_on_peer_parted(peer);
    touch(session);
    ask_again_later(session);
    sgi_parked_drop_excess_events(peer);
    trim(session);
    if (session->handshake.version == SGI_VERSION_UNKNOWN &&
        TAILQ_EMPTY(&session->exchanges))
        /* initialize has failed on this exchange, so the session ends */
        sgi_wire_session_end(session);
}

/* Ends the stream of an exchange, and asks the client to connect again later. A client
 * can connect again only with an event id, at least the id of the first, empty event. */
segue_status sgi_wire_session_hang_up(sgi_peer *peer, int64_t retry_ms)
{
    sgi_conn *conn = peer->conn;
    const sgi_replay *replay = conn->replay;
    size_t before = conn->out.len;
    bool primes = replay && replay->primes && conn->frames == SGI_FRAMES_OPEN;
    if (!peer->session || conn->closing || conn->answered || conn->no_events ||
        (replay->next == 1 && !replay->primes))
        return SEGUE_E_UNSUPPORTED;
    sgi_send_open_event_stream(conn);
    if (primes && conn->out.len == before)
        /* the client has no event id with which it could come back, so the stream stays
         * open */
        return SEGUE_E_NOMEM;
    if (!conn->transport || conn->parting)
        return SEGUE_OK; /* no client is connected, so there is no stream to end */
    before = conn->out.len;
    sgi_sse_write_retry(&conn->out, retry_ms);
    if (conn->out.failed)
        /* without memory for the retry time the stream still ends; the client then
         * chooses the time itself */
        sgi_buf_truncate(&conn->out, before);
    conn->parting = true;
    peer->retry_ms = retry_ms;
    sgi_conn_notify_output(conn);
    return SEGUE_OK;
}
