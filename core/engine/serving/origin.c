#include "engine/serving/origin.h"

#include "engine/serving/wire_session.h"

static void lose_peer(sgi_origin *origin)
{
    if (origin->peer)
        LIST_REMOVE(origin, by_peer);
    origin->peer = NULL;
}

static void lose_session(sgi_origin *origin)
{
    if (origin->session)
        LIST_REMOVE(origin, by_session);
    origin->session = NULL;
}

/* peer, session: NULL = not this one. NULL when out of memory. */
static sgi_origin *make(sgi_op *op, sgi_peer *peer, sgi_wire_session *session)
{
    sgi_origin_free(op);
    sgi_origin *origin = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *origin);
    if (!origin)
        return NULL;
    origin->op = op;
    origin->peer = peer;
    if (peer)
        LIST_INSERT_HEAD(&peer->origins, origin, by_peer);
    origin->session = session;
    if (session)
        LIST_INSERT_HEAD(&session->origins, origin, by_session);
    op->origin = origin;
    return origin;
}

static bool is_living(const sgi_origin *origin)
{
    return origin && (origin->peer || origin->session);
}

void sgi_origin_set(sgi_op *op, sgi_reply *reply,
                    void (*changed)(sgi_watch *watch, sgi_op *op))
{
    sgi_peer *peer = reply->peer;
    if (is_living(op->origin) && !op->origin->only_asked)
        return;
    sgi_origin *origin = make(op, peer, peer->session);
    if (!origin)
        return;
    origin->watch.changed = changed;
    LIST_INSERT_HEAD(&op->watches, &origin->watch, link);
    origin->progress_token = reply->progress_token;
    reply->progress_token = NULL;
}

/* Is there somebody who reads what is asked? */
static bool is_heard(const sgi_origin *origin)
{
    const sgi_peer *listening = origin->session ? origin->session->listening : NULL;
    return origin->peer || (listening && listening->conn->transport);
}

void sgi_origin_move(sgi_op *op, sgi_peer *peer)
{
    const sgi_origin *origin = op->origin;
    sgi_wire_session *session = peer->session;
    bool stays = origin && (origin->only_asked ? is_heard(origin) : is_living(origin));
    if (stays || (peer->is_exchange && !session))
        return;
    sgi_origin *moved = make(op, peer->is_exchange ? NULL : peer, session);
    if (moved)
        moved->told = moved->only_asked = true;
}

void sgi_origin_free(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_origin *origin = op->origin;
    if (!origin)
        return;
    op->origin = NULL;
    lose_peer(origin);
    lose_session(origin);
    if (!origin->only_asked)
        LIST_REMOVE(&origin->watch, link);
    sgi_text_free(mem, origin->progress_token);
    sgi_release(mem, origin, sizeof *origin);
}

/* Can it carry more than what answers its request? */
static bool is_open(const sgi_conn *conn)
{
    return conn->up && !conn->closing && !conn->answered && !conn->no_events &&
           conn->frames != SGI_FRAMES_BODY;
}

sgi_conn *sgi_origin_conn(const sgi_op *op)
{
    const sgi_origin *origin = op->origin;
    sgi_conn *conn = NULL;
    if (origin && origin->only_asked)
        return NULL;
    if (origin && origin->peer && is_open(origin->peer->conn))
        conn = origin->peer->conn;
    else if (origin && origin->session && origin->session->listening &&
             is_open(origin->session->listening->conn))
        conn = origin->session->listening->conn;
    return conn && !sgi_conn_is_full(conn) ? conn : NULL;
}

int32_t sgi_origin_log_level(const sgi_op *op)
{
    const sgi_origin *origin = op->origin;
    if (origin && origin->peer)
        return origin->peer->handshake->log_level;
    return origin && origin->session ? origin->session->handshake.log_level : -1;
}

void sgi_origins_lose_peer(sgi_peer *peer)
{
    sgi_origin *origin;
    while ((origin = LIST_FIRST(&peer->origins)))
        lose_peer(origin);
}

void sgi_origins_lose_session(sgi_wire_session *session)
{
    sgi_origin *origin;
    while ((origin = LIST_FIRST(&session->origins)))
        lose_session(origin);
}
