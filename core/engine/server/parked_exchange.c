#include "engine/server/parked_exchange.h"

#include "engine/conversation/replay.h"
#include "engine/server/away_client.h"
#include "engine/server/wire_session.h"

bool sgi_parked_is_settled(const sgi_peer *peer)
{
    return !peer->conn->transport && (peer->conn->answered || peer->conn->closing);
}

static bool is_spare(const sgi_reply *reply)
{
    return reply->spare;
}

static bool is_complete(const sgi_reply *reply)
{
    return reply->complete;
}

/* True when a parked exchange has replies, and all of them are like this. */
static bool has_only(const sgi_peer *peer, bool (*is)(const sgi_reply *reply))
{
    const sgi_reply *reply;
    if (peer->conn->transport)
        return false;
    LIST_FOREACH(reply, &peer->replies, by_peer)
        if (!is(reply))
            return false;
    return !LIST_EMPTY(&peer->replies);
}

bool sgi_parked_is_dispensable(const sgi_peer *peer)
{
    return sgi_parked_is_settled(peer) || has_only(peer, is_spare);
}

bool sgi_parked_is_complete(const sgi_peer *peer)
{
    return has_only(peer, is_complete);
}

bool sgi_parked_waits_for_client(const sgi_peer *peer)
{
    return !peer->conn->transport && !TAILQ_EMPTY(&peer->conn->sources);
}

void sgi_parked_note_rest(sgi_peer *peer)
{
    peer->rest_ms = sgi_now(&peer->server->engine->env);
}

/* True when an answer, or the rest of an answer, waits for the client. */
static bool has_rest(const sgi_peer *peer)
{
    return peer != peer->session->listening &&
           (sgi_parked_waits_for_client(peer) ||
            (sgi_parked_is_settled(peer) && peer->conn->frames == SGI_FRAMES_EVENTS &&
             !peer->conn->closing && peer->conn->replay->next > peer->left_at));
}

bool sgi_parked_is_expected_back(const sgi_peer *peer)
{
    int64_t since = peer->session->used_ms;
    return has_rest(peer) &&
           sgi_client_is_expected(peer->server,
                                  peer->rest_ms > since ? peer->rest_ms : since,
                                  peer->retry_ms);
}

static void set_count(sgi_peer *peer, size_t bytes)
{
    peer->server->sessions.parked_bytes += bytes - peer->parked_bytes;
    peer->parked_bytes = bytes;
}

static void count_events(sgi_peer *peer)
{
    set_count(peer, sgi_replay_size(peer->conn->replay));
}

void sgi_parked_uncount(sgi_peer *peer)
{
    set_count(peer, 0);
}

/* ---- the limit of stored events ---- */

/* Drops all stored events of an exchange. If the exchange was answered, its client can no
 * longer get the answer, so the exchange closes. The next call of trim frees the
 * exchange; it is not freed now, because the caller may be using it. */
static void forget_all(sgi_peer *peer)
{
    if (sgi_parked_is_settled(peer))
        peer->conn->closing = true;
    sgi_replay_drop_all(peer->conn->replay);
    count_events(peer);
}

/* Drops the older half of an exchange's stored events. A client that resumes the exchange
 * then finds a gap. If the exchange gets no more events (is settled), all events are
 * dropped. */
static void forget_half(sgi_peer *peer)
{
    if (sgi_parked_is_settled(peer)) {
        forget_all(peer);
        return;
    }
    sgi_replay_drop_half(peer->conn->replay);
    count_events(peer);
}

/* Drops the events of exchanges that get no more events (settled), until parked_bytes is
 * within its limit. The search begins with the session that has been unused for the
 * longest time. */
static void give_up_settled(const segue_server *server)
{
    sgi_wire_session *session;
    sgi_peer *peer;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &server->sessions.by_use, by_use) {
        if (++looked > SGI_SESSION_LOOKS_MAX)
            return;
        TAILQ_FOREACH(peer, &session->exchanges, by_session) {
            if (server->sessions.parked_bytes <= server->sessions.max_parked)
                return;
            if (peer->parked_bytes && sgi_parked_is_settled(peer))
                forget_all(peer);
        }
    }
}

/* Returns the exchange that stores the most bytes. peer: an exchange that is compared
 * too, and is returned when the search finds no larger exchange. */
static sgi_peer *find_largest(sgi_peer *peer)
{
    sgi_wire_session *session;
    sgi_peer *other;
    int32_t looked = 0;
    TAILQ_FOREACH(session, &peer->server->sessions.by_use, by_use) {
        if (++looked > SGI_SESSION_LOOKS_MAX)
            break;
        TAILQ_FOREACH(other, &session->exchanges, by_session)
            if (other->parked_bytes > peer->parked_bytes)
                peer = other;
    }
    return peer;
}

/* Drops the events of exchanges that get no more events (settled) first. If this does not
 * suffice, the running exchange that stores the most bytes loses events. */
void sgi_parked_drop_excess_events(sgi_peer *peer)
{
    const segue_server *server = peer->server;
    sgi_peer *largest;
    if (!peer->session || peer->conn->transport)
        return;
    sgi_parked_note_rest(peer);
    count_events(peer);
    if (server->sessions.parked_bytes > server->sessions.max_parked)
        give_up_settled(server);
    while (server->sessions.parked_bytes > server->sessions.max_parked &&
           (largest = find_largest(peer))->parked_bytes)
        forget_half(largest);
}
