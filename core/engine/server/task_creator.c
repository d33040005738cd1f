#include "engine/server/task_creator.h"

#include "engine/server/wire_session.h"

static void lose_peer(sgi_task_creator *creator)
{
    if (creator->peer)
        LIST_REMOVE(creator, by_peer);
    creator->peer = NULL;
}

static void lose_session(sgi_task_creator *creator)
{
    if (creator->session)
        LIST_REMOVE(creator, by_session);
    creator->session = NULL;
}

/* Makes a creator for the operation. peer and session can be NULL. Returns NULL when out
 * of memory. */
static sgi_task_creator *make(sgi_op *op, sgi_peer *peer, sgi_wire_session *session)
{
    sgi_task_creator_free(op);
    sgi_task_creator *creator = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *creator);
    if (!creator)
        return NULL;
    creator->op = op;
    creator->peer = peer;
    if (peer)
        LIST_INSERT_HEAD(&peer->creators, creator, by_peer);
    creator->session = session;
    if (session)
        LIST_INSERT_HEAD(&session->creators, creator, by_session);
    op->served->creator = creator;
    return creator;
}

static bool is_living(const sgi_task_creator *creator)
{
    return creator && (creator->peer || creator->session);
}

void sgi_task_creator_set(sgi_op *op, sgi_reply *reply,
                          void (*changed)(sgi_op_watch *watch, sgi_op *op))
{
    sgi_peer *peer = reply->peer;
    if (is_living(op->served->creator) && !op->served->creator->only_asked)
        return;
    sgi_task_creator *creator = make(op, peer, peer->session);
    if (!creator)
        return;
    creator->watch.changed = changed;
    LIST_INSERT_HEAD(&op->watches, &creator->watch, link);
    creator->progress_token = reply->progress_token;
    reply->progress_token = NULL;
}

/* True when a connected client can receive messages of this creator. */
static bool is_heard(const sgi_task_creator *creator)
{
    const sgi_peer *listening = creator->session ? creator->session->listening : NULL;
    return creator->peer || (listening && listening->conn->transport);
}

void sgi_task_creator_replace_gone(sgi_op *op, sgi_peer *peer)
{
    const sgi_task_creator *creator = op->served->creator;
    sgi_wire_session *session = peer->session;
    bool stays =
        creator && (creator->only_asked ? is_heard(creator) : is_living(creator));
    if (stays || (peer->is_exchange && !session))
        return;
    sgi_task_creator *moved = make(op, peer->is_exchange ? NULL : peer, session);
    if (moved)
        moved->told = moved->only_asked = true;
}

void sgi_task_creator_free(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_task_creator *creator = op->served->creator;
    if (!creator)
        return;
    op->served->creator = NULL;
    lose_peer(creator);
    lose_session(creator);
    if (!creator->only_asked)
        LIST_REMOVE(&creator->watch, link);
    sgi_text_free(mem, creator->progress_token);
    sgi_free(mem, creator, sizeof *creator);
}

/* True when further messages can be sent on this conversation. */
static bool is_open(const sgi_conn *conn)
{
    return conn->up && !conn->closing && !conn->answered && !conn->no_events &&
           conn->frames != SGI_FRAMES_BODY;
}

sgi_conn *sgi_task_creator_conn(const sgi_op *op)
{
    const sgi_task_creator *creator = op->served->creator;
    sgi_conn *conn = NULL;
    if (creator && creator->only_asked)
        return NULL;
    if (creator && creator->peer && is_open(creator->peer->conn))
        conn = creator->peer->conn;
    else if (creator && creator->session && creator->session->listening &&
             is_open(creator->session->listening->conn))
        conn = creator->session->listening->conn;
    return conn && !sgi_conn_is_full(conn) ? conn : NULL;
}

int32_t sgi_task_creator_log_level(const sgi_op *op)
{
    const sgi_task_creator *creator = op->served->creator;
    if (creator && creator->peer)
        return creator->peer->handshake->log_level;
    return creator && creator->session ? creator->session->handshake.log_level : -1;
}

void sgi_task_creators_forget_peer(sgi_peer *peer)
{
    sgi_task_creator *creator;
    while ((creator = LIST_FIRST(&peer->creators)))
        lose_peer(creator);
}

void sgi_task_creators_forget_session(sgi_wire_session *session)
{
    sgi_task_creator *creator;
    while ((creator = LIST_FIRST(&session->creators)))
        lose_session(creator);
}
