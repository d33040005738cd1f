/* An exchange is carried by a transport, or parked; it is settled when it is parked and
 * nothing more is to come.
 *
 *   carried --let go--> parked --answered--> settled --trim, expiry--> gone
 *      ^                  |                     |
 *      +----- take up ----+---------------------+
 *
 * Only an event stream can be taken up: of another answer the client has no event to
 * name, so what is left of one is of no use to anybody. The session owns its exchanges by
 * their place in its list; their memory is that of their conversations, which a transport
 * may hold longer. */
#include "engine/serving/wire_session.h"

#include "engine/serving/origin.h"
#include "engine/serving/replay.h"
#include "engine/serving/resumable.h"
#include "wire/sse.h"

/* So many streams that are over may still be asked for, per session. */
#define SETTLED_MAX 16
/* Looking for something to give up stops here: it is done for a request. */
#define LOOK_AT_MOST 256

/* A conversation that was closed had no memory for a message: it says no more. */
static bool is_settled(const sgi_peer *peer)
{
    return !peer->conn->transport && (peer->conn->answered || peer->conn->closing);
}

/* Nothing more happens to it before its client comes: what it has to say is a stream that
 * is read when there is somebody to read it. */
static bool waits_for_client(const sgi_peer *peer)
{
    return !peer->conn->transport && !TAILQ_EMPTY(&peer->conn->sources);
}

static bool can_be_taken_up(const sgi_peer *peer)
{
    return peer->conn->frames == SGI_FRAMES_EVENTS && !peer->conn->closing;
}

/* What a parked exchange keeps. */
static void count_parked(sgi_peer *peer, size_t bytes)
{
    peer->server->parked_bytes += bytes - peer->parked_bytes;
    peer->parked_bytes = bytes;
}

static void count_replay(sgi_peer *peer)
{
    count_parked(peer, sgi_replay_size(peer->conn->replay));
}

/* Takes an exchange out of its session, which is not asked for anything afterwards. */
static void set_apart(sgi_peer *peer)
{
    sgi_wire_session *session = peer->session;
    sgi_reply *reply;
    LIST_FOREACH(reply, &peer->replies, by_peer) {
        sgi_map_remove(peer->in_flight, &reply->node);
        sgi_map_put(&peer->own_in_flight, &reply->node, sgi_str_of(reply->id));
    }
    TAILQ_REMOVE(&session->exchanges, peer, by_session);
    count_parked(peer, 0);
    if (session->listening == peer)
        session->listening = NULL;
    peer->own_handshake = session->handshake;
    peer->session = NULL;
    peer->asks = &peer->own_asks;
    peer->in_flight = &peer->own_in_flight;
    peer->handshake = &peer->own_handshake;
}

/* Ends an exchange. What it had in flight is cancelled; its transport, if it has one,
 * closes and lets go of it later. */
static void discard(sgi_peer *peer)
{
    sgi_conn *conn = peer->conn;
    sgi_conn_ref(conn);
    sgi_conn_lost(conn, "the session has ended");
    set_apart(peer);
    if (conn->transport)
        sgi_conn_close(conn);
    else
        sgi_conn_detach(conn);
    sgi_conn_unref(conn);
}

void sgi_wire_session_drop(sgi_peer *peer)
{
    if (peer->session)
        discard(peer);
    else
        sgi_conn_close(peer->conn);
}

/* Is there a transport that waits for an answer, which is there or may still come? */
static bool is_awaited(const sgi_peer *peer, bool drains)
{
    return peer->conn->transport && (peer->conn->answered || drains) &&
           peer != peer->session->listening;
}

static void end_session(sgi_wire_session *session, bool drains)
{
    segue_server *server = session->server;
    sgi_peer *peer;
    sgi_origins_lose_session(session);
    while ((peer = TAILQ_FIRST(&session->exchanges))) {
        if (is_awaited(peer, drains))
            set_apart(peer);
        else
            discard(peer);
    }
    sgi_asks_lose(&session->asks);
    sgi_engine_timer_clear(server->engine, &session->expiry);
    sgi_map_remove(&server->sessions, &session->node);
    TAILQ_REMOVE(&server->sessions_by_use, session, by_use);
    TAILQ_REMOVE(&session->who->sessions, session, by_who);
    session->who->session_count--;
    sgi_map_free(&session->in_flight);
    sgi_marks_free(session->marks);
    sgi_principal_unref(session->who);
    sgi_release(sgi_engine_mem(server->engine), session, sizeof *session);
}

void sgi_wire_session_end(sgi_wire_session *session)
{
    end_session(session, false);
}

void sgi_wire_sessions_end(segue_server *server)
{
    sgi_wire_session *session;
    while ((session = TAILQ_FIRST(&server->sessions_by_use)))
        end_session(session, true);
}

/* ---- beginning and expiry ---- */

static bool is_idle(const sgi_wire_session *session)
{
    const sgi_peer *peer;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (!is_settled(peer) && !waits_for_client(peer) &&
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
        sgi_engine_timer(engine, timer, left > 0 ? left : session->idle_ms, maybe_expire);
}

static void touch(sgi_wire_session *session)
{
    segue_server *server = session->server;
    session->used_ms = sgi_now(&server->engine->env);
    TAILQ_REMOVE(&server->sessions_by_use, session, by_use);
    TAILQ_INSERT_TAIL(&server->sessions_by_use, session, by_use);
    TAILQ_REMOVE(&session->who->sessions, session, by_who);
    TAILQ_INSERT_TAIL(&session->who->sessions, session, by_who);
}

/* Of the sessions that are not in use the one unused longest. */
static sgi_wire_session *find_idle(const segue_server *server)
{
    sgi_wire_session *session;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &server->sessions_by_use, by_use) {
        if (++looked > LOOK_AT_MOST)
            break;
        if (is_idle(session))
            return session;
    }
    return NULL;
}

/* The same, of theirs. */
static sgi_wire_session *find_idle_of(const sgi_principal *who)
{
    sgi_wire_session *session;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &who->sessions, by_who) {
        if (++looked > LOOK_AT_MOST)
            break;
        if (is_idle(session))
            return session;
    }
    return NULL;
}

/* One goes for the new one: of the same principal if it has one to give, so that who
 * opens many takes the place of nobody else; nor does who has half of them in use. */
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
    if (server->sessions.count >= (size_t)most && !make_room(server, who, most))
        return SEGUE_E_LIMIT;
    sgi_wire_session *session = sgi_zalloc(sgi_engine_mem(engine), sizeof *session);
    if (!session)
        return SEGUE_E_NOMEM;
    if (!sgi_engine_random_text(engine, session->id)) {
        sgi_release(sgi_engine_mem(engine), session, sizeof *session);
        return SEGUE_E_NOMEM;
    }
    session->server = server;
    session->who = who;
    sgi_principal_ref(who);
    session->handshake.log_level = -1;
    session->first_stream = session->next_stream = 1;
    session->idle_ms = idle_ms;
    sgi_map_init(&session->in_flight, &engine->env);
    TAILQ_INIT(&session->exchanges);
    LIST_INIT(&session->origins);
    sgi_asks_init(&session->asks, session);
    TAILQ_INSERT_TAIL(&server->sessions_by_use, session, by_use);
    TAILQ_INSERT_TAIL(&who->sessions, session, by_who);
    who->session_count++;
    sgi_map_put(&server->sessions, &session->node, sgi_str_of(session->id));
    session->used_ms = sgi_now(&engine->env);
    sgi_engine_timer(engine, &session->expiry, idle_ms, maybe_expire);
    *out = session;
    return SEGUE_OK;
}

sgi_wire_session *sgi_wire_session_find(segue_server *server, const sgi_principal *who,
                                        sgi_str id)
{
    sgi_map_node *node = sgi_map_find(&server->sessions, id);
    sgi_wire_session *session = node ? SGI_OWNER(node, sgi_wire_session, node) : NULL;
    if (!session || session->who != who)
        return NULL;
    touch(session);
    return session;
}

/* ---- exchanges ---- */

static void trim(sgi_wire_session *session)
{
    sgi_peer *peer, *next;
    int32_t settled = 0;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        settled += is_settled(peer);
    SGI_TAILQ_EACH(peer, &session->exchanges, by_session, next) {
        if (!is_settled(peer) || (settled <= SETTLED_MAX && can_be_taken_up(peer)))
            continue;
        discard(peer);
        settled--;
    }
}

/* ---- what parked exchanges keep ---- */

/* It keeps nothing any more. With its answer it has nothing to come back for: it closes,
 * and goes with the next trim, because somebody may be at work with it just now. */
static void forget_all(sgi_peer *peer)
{
    if (is_settled(peer))
        peer->conn->closing = true;
    sgi_replay_forget(peer->conn->replay);
    count_replay(peer);
}

/* Its client finds a gap in it. */
static void forget_half(sgi_peer *peer)
{
    if (is_settled(peer)) {
        forget_all(peer);
        return;
    }
    sgi_replay_halve(peer->conn->replay);
    count_replay(peer);
}

/* Of the sessions that were not used for the longest time first. */
static void give_up_settled(const segue_server *server)
{
    sgi_wire_session *session;
    sgi_peer *peer;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &server->sessions_by_use, by_use) {
        if (++looked > LOOK_AT_MOST)
            return;
        TAILQ_FOREACH(peer, &session->exchanges, by_session) {
            if (server->parked_bytes <= server->max_parked)
                return;
            if (peer->parked_bytes && is_settled(peer))
                forget_all(peer);
        }
    }
}

/* The exchange that keeps most: this one, or another. */
static sgi_peer *find_largest(sgi_peer *peer)
{
    sgi_wire_session *session;
    sgi_peer *other;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &peer->server->sessions_by_use, by_use) {
        if (++looked > LOOK_AT_MOST)
            break;
        TAILQ_FOREACH(other, &session->exchanges, by_session)
            if (other->parked_bytes > peer->parked_bytes)
                peer = other;
    }
    return peer;
}

/* When all parked exchanges together keep too much, those pay first that are over, then
 * of those that go on whichever keeps most. */
void sgi_wire_session_kept(sgi_peer *peer)
{
    const segue_server *server = peer->server;
    sgi_peer *largest;
    if (!peer->session || peer->conn->transport)
        return;
    count_replay(peer);
    if (server->parked_bytes > server->max_parked)
        give_up_settled(server);
    while (server->parked_bytes > server->max_parked &&
           (largest = find_largest(peer))->parked_bytes)
        forget_half(largest);
}

bool sgi_wire_session_is_owed(const sgi_wire_session *session)
{
    const sgi_peer *peer;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (waits_for_client(peer) ||
            (is_settled(peer) && can_be_taken_up(peer) && peer != session->listening &&
             peer->conn->replay->next > peer->left_at))
            return true;
    return false;
}

/* ---- taken up and let go ---- */

sgi_peer *sgi_wire_session_exchange(sgi_wire_session *session, size_t max_replay,
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
                    session->handshake.version >= SGI_VERSION_2025_11_25);
    peer->session = session;
    peer->asks = &session->asks;
    peer->in_flight = &session->in_flight;
    peer->handshake = &session->handshake;
    TAILQ_INSERT_TAIL(&session->exchanges, peer, by_session);
    sgi_conn_start(peer->conn);
    peer->conn->frames = SGI_FRAMES_OPEN;
    return peer;
}

sgi_peer *sgi_wire_session_stream(const sgi_wire_session *session, int64_t stream,
                                  uint64_t event)
{
    sgi_peer *peer;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (peer->conn->replay->stream == stream && can_be_taken_up(peer) &&
            event < peer->conn->replay->next)
            return peer;
    return NULL;
}

bool sgi_wire_session_is_lost(const sgi_wire_session *session, int64_t stream)
{
    const sgi_peer *peer;
    if (session->is_named && stream & SGI_STREAM_OF_GET)
        return false;
    if (session->is_named && stream > 0 && stream < session->first_stream)
        return true; /* it was at another server */
    if (stream < 1 || stream >= session->next_stream || stream == session->listened)
        return session->is_named && stream >= session->next_stream;
    TAILQ_FOREACH(peer, &session->exchanges, by_session)
        if (peer->conn->replay->stream == stream)
            return peer->conn->closing;
    return true;
}

static void uncount_stream(sgi_peer *peer)
{
    peer->who->streams -= peer->got;
    peer->got = false;
}

bool sgi_wire_session_take_up(sgi_peer *peer, uint64_t after, void *transport)
{
    sgi_conn *conn = peer->conn;
    sgi_buf again;
    sgi_buf_init(&again, sgi_engine_mem(conn->engine));
    sgi_replay_copy(conn->replay, after, &again);
    if (again.failed) {
        sgi_buf_free(&again);
        return false;
    }
    if (conn->transport)
        conn->engine->host.close(conn->engine->host.user, conn); /* the newest one wins */
    conn->told = conn->parting = false;
    sgi_buf_free(&conn->out);
    conn->out = again;
    conn->transport = transport;
    peer->server->counts.resumes++;
    peer->server->counts.sent_again += conn->out.len;
    count_parked(peer, 0);
    sgi_conn_tell(conn);
    sgi_resumables_rejoined(peer);
    return true;
}

void sgi_wire_session_got(sgi_peer *peer)
{
    peer->who->streams += !peer->got;
    peer->got = true;
}

void sgi_wire_session_let_go(sgi_peer *peer)
{
    sgi_wire_session *session = peer->session;
    sgi_conn *conn = peer->conn;
    sgi_reply *reply;
    uncount_stream(peer);
    conn->transport = NULL;
    conn->parting = false;
    peer->left_at = conn->replay->next;
    sgi_buf_reset(&conn->out, 0); /* what can be sent again is in the replay */
    if (conn->frames == SGI_FRAMES_OPEN)
        conn->no_events = true; /* the call runs on, but nobody can ask for its answer */
    LIST_FOREACH(reply, &peer->replies, by_peer)
        if (reply->parked)
            reply->parked(reply);
    sgi_resumables_parted(peer);
    touch(session);
    sgi_wire_session_kept(peer);
    trim(session);
    if (session->handshake.version == SGI_VERSION_UNKNOWN &&
        TAILQ_EMPTY(&session->exchanges))
        sgi_wire_session_end(session); /* initialize failed */
}

/* A client can come again when it has an event to name: the one that primes the stream,
 * or any other. */
segue_status sgi_wire_session_hang_up(sgi_peer *peer, int64_t retry_ms)
{
    sgi_conn *conn = peer->conn;
    const sgi_replay *replay = conn->replay;
    size_t before = conn->out.len;
    bool primes = replay && replay->primes && conn->frames == SGI_FRAMES_OPEN;
    if (!peer->session || conn->closing || conn->answered || conn->no_events ||
        (replay->next == 1 && !replay->primes))
        return SEGUE_E_UNSUPPORTED;
    sgi_send_open_events(conn);
    if (primes && conn->out.len == before)
        return SEGUE_E_NOMEM; /* it goes on, but without an event to name */
    if (!conn->transport || conn->parting)
        return SEGUE_OK; /* it is away already */
    before = conn->out.len;
    sgi_sse_write_retry(&conn->out, retry_ms);
    if (conn->out.failed)
        sgi_buf_cut(&conn->out, before); /* without the retry line the client waits one
                                            second, or the time it was told last */
    conn->parting = true;
    sgi_conn_tell(conn);
    return SEGUE_OK;
}
