/* The stages of a server, the listeners of a server, and the work at the end of a
 * stage. */
#include "engine/server/call.h"
#include "engine/cluster/recovery.h"
#include "engine/server/kept_key.h"
#include "engine/server/late_answer.h"
#include "engine/server/mailbox.h"
#include "engine/server/rounds.h"
#include "engine/server/waiting_ops.h"
#include "engine/server/wire_session.h"

#include <assert.h>

#define TO(stage) (1u << (stage))

/* The allowed changes of the stage. Any other change is a defect of the caller and stops
 * a debug build. NEW -> RECOVERING: the first listener or conversation exists. RECOVERING
 * -> OPEN: the server has claimed the operations that an earlier server left. CLOSED ->
 * DEAD: the runtime ends. */
static const unsigned moves[] = {
    [SGI_SERVER_NEW] = TO(SGI_SERVER_RECOVERING) | TO(SGI_SERVER_CLOSED),
    [SGI_SERVER_RECOVERING] = TO(SGI_SERVER_OPEN) | TO(SGI_SERVER_CLOSED),
    [SGI_SERVER_OPEN] = TO(SGI_SERVER_CLOSED),
    [SGI_SERVER_CLOSED] = TO(SGI_SERVER_DEAD),
    [SGI_SERVER_DEAD] = 0,
};

static void set_stage(segue_server *server, sgi_server_stage to)
{
    assert(moves[server->stage] & TO(to));
    (void)moves;
    server->stage = to;
}

static void prepare_recovery(segue_server *server)
{
    set_stage(server, SGI_SERVER_RECOVERING);
    sgi_server_start_purging(server);
}

void sgi_server_start_recovery(segue_server *server)
{
    if (server->stage != SGI_SERVER_NEW)
        return;
    prepare_recovery(server);
    sgi_recover_ops(&server->cluster);
}

void sgi_server_open(segue_server *server)
{
    sgi_peer *peer;
    sgi_server_listener *listener;
    set_stage(server, SGI_SERVER_OPEN);
    TAILQ_FOREACH(peer, &server->peers, link)
        sgi_peer_open(peer);
    LIST_FOREACH(listener, &server->listeners, link)
        listener->open(listener);
}

void sgi_server_close(segue_server *server)
{
    sgi_peer *peer;
    sgi_server_listener *listener;
    if (server->stage >= SGI_SERVER_CLOSED)
        return;
    set_stage(server, SGI_SERVER_CLOSED);
    server->cluster.takes = false;
    sgi_engine_clear_timer(server->engine, &server->kept_key.again);
    sgi_server_ref(server);
    LIST_FOREACH(listener, &server->listeners, link)
        listener->close(listener);
    sgi_wire_sessions_end(server);
    sgi_server_release_waiting(server);
    TAILQ_FOREACH(peer, &server->peers, link)
        if (peer->is_exchange)
            /* only the subscriptions of an exchange end now; the listener sends all other
             * answers before it closes */
            sgi_subscriptions_close(peer);
        else
            sgi_peer_close(peer);
    sgi_server_unref(server);
}

/* ---- listeners ---- */

struct sgi_committer *sgi_serve_committer(segue_server *server)
{
    return &server->committer;
}

segue_status sgi_server_add_listener(segue_server *server, sgi_server_listener *listener)
{
    if (server->stage >= SGI_SERVER_CLOSED)
        return SEGUE_E_CLOSED;
    LIST_INSERT_HEAD(&server->listeners, listener, link);
    server->is_idle = false;
    sgi_server_ref(server);
    bool is_new = server->stage == SGI_SERVER_NEW;
    bool is_open = server->stage == SGI_SERVER_OPEN;
    if (is_new)
        prepare_recovery(server);
    sgi_kept_key_get(server, is_new);
    if (is_open)
        listener->open(listener);
    return SEGUE_OK;
}

/* True when no client can connect any more, and no transport carries the exchanges that
 * are left (parked exchanges), which no client can resume. */
static bool has_parted(const segue_server *server)
{
    const sgi_peer *peer;
    if (!LIST_EMPTY(&server->listeners))
        return false;
    TAILQ_FOREACH(peer, &server->peers, link)
        if (!peer->session || peer->conn->transport)
            return false;
    return true;
}

void sgi_server_note_peer_gone(segue_server *server)
{
    if (server->options.on_idle && !server->is_idle && has_parted(server)) {
        server->is_idle = true;
        sgi_server_ref(server);
        sgi_ready_queue_add(server->engine, &server->idle);
    }
    sgi_server_free_lingering_ops(server);
}

void sgi_server_remove_listener(segue_server *server, sgi_server_listener *listener)
{
    LIST_REMOVE(listener, link);
    /* Needed when the last conversation ended before the last listener: no other call
     * would notice that the server is idle. */
    sgi_server_note_peer_gone(server);
    sgi_server_unref(server);
}

/* ---- the end ---- */

/* True when no client is connected and no client can connect any more. */
static bool is_deserted(const segue_server *server)
{
    return server->abandoned && TAILQ_EMPTY(&server->peers) &&
           LIST_EMPTY(&server->listeners);
}

/* Operations, and exchanges that wait for their client, hold a reference to the server.
 * When no client can connect any more, this function frees them, so that the server can
 * be freed. */
void sgi_server_free_lingering_ops(segue_server *server)
{
    sgi_server_ref(server);
    if (server->abandoned && LIST_EMPTY(&server->listeners))
        sgi_wire_sessions_end(server);
    if (is_deserted(server)) {
        sgi_mailbox_delete(server);
        sgi_rounds_cancel_all(server);
    }
    while (is_deserted(server) && !TAILQ_EMPTY(&server->lingering.ops))
        sgi_server_take_from_maps(TAILQ_FIRST(&server->lingering.ops)->op);
    while (is_deserted(server) && !TAILQ_EMPTY(&server->cluster.followed_ops))
        sgi_server_take_from_maps(TAILQ_FIRST(&server->cluster.followed_ops)->op);
    sgi_server_unref(server);
}

void sgi_server_on_handle_freed(segue_server *server)
{
    server->abandoned = true;
    sgi_server_free_lingering_ops(server);
    sgi_server_unref(server);
}

void sgi_server_shut_down(segue_server *server)
{
    const sgi_index_node *node;
    segue_call *call;
    sgi_server_ref(server);
    sgi_server_close(server);
    set_stage(server, SGI_SERVER_DEAD);
    server->committer.closed = true;
    sgi_mailbox_delete(server);
    sgi_late_answers_end_all(server);
    sgi_rounds_end_all(server);
    LIST_FOREACH(call, &server->calls.running, link)
        sgi_call_shut_down(call);
    while ((node = sgi_index_any_node(&server->cluster.by_task)))
        sgi_server_op_release(sgi_op_of_task_node(node));
    /* Plain operations are in no map, so they are found through their calls. Each call
     * holds a reference to its operation. */
    for (call = LIST_FIRST(&server->calls.running); call;) {
        segue_call *next = LIST_NEXT(call, link);
        if (call->op->served->call == call)
            sgi_call_release_by_op(call);
        call = next;
    }
    sgi_cluster_close(&server->cluster);
    sgi_committer_shut_down(&server->committer);
    sgi_server_unref(server);
}
