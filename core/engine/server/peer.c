/* The conversation holds a reference to the peer. The peer holds a reference to the
 * server. */
#include "engine/server/origin.h"
#include "engine/server/serving.h"

void sgi_peer_free(sgi_peer *peer)
{
    segue_server *server = peer->server;
    sgi_map_free(&peer->own_in_flight.by_id);
    sgi_buf_free(&peer->id_text);
    sgi_subscribed_uris_free(peer->uris);
    if (peer->got)
        sgi_budget_count_stream(peer, -1);
    if (peer->who)
        sgi_principal_unref(peer->who);
    sgi_grant_unref(peer->grant);
    sgi_origin_unref(peer->origin);
    sgi_conn_unref(peer->conn);
    sgi_free(sgi_engine_mem(server->engine), peer, sizeof *peer);
    sgi_server_unref(server);
}

sgi_peer *sgi_peer_new(segue_server *server, void *transport, sgi_principal *who)
{
    sgi_engine *engine = server->engine;
    sgi_peer *peer = sgi_zalloc(sgi_engine_mem(engine), sizeof *peer);
    if (!peer)
        return NULL;
    peer->conn = sgi_conn_new(engine, server->serving->role, peer, transport);
    if (!peer->conn) {
        sgi_free(sgi_engine_mem(engine), peer, sizeof *peer);
        return NULL;
    }
    peer->who = who;
    if (who)
        sgi_principal_ref(who);
    peer->server = server;
    sgi_server_ref(server);
    peer->own_handshake.log_level = server->first_log_level;
    peer->handshake = &peer->own_handshake;
    peer->max_streams = server->options.max_streams;
    peer->ready.run = server->serving->identify;
    peer->updates.fill = server->serving->fill_updates;
    LIST_INIT(&peer->listens);
    LIST_INIT(&peer->creators);
    LIST_INIT(&peer->replies);
    LIST_INIT(&peer->lasting);
    sgi_buf_init(&peer->id_text, sgi_engine_mem(engine));
    sgi_in_flight_init(&peer->own_in_flight, engine);
    peer->in_flight = &peer->own_in_flight;
    sgi_question_requests_init(&peer->own_questions, NULL);
    peer->questions = &peer->own_questions;
    TAILQ_INSERT_TAIL(&server->peers, peer, link);
    return peer;
}

void sgi_peer_open(sgi_peer *peer)
{
    if (!peer->who)
        /* the principal is not known yet; sgi_peer_open is called again when it is
         * known */
        return;
    peer->reading = true;
    sgi_conn_resume_input(peer->conn);
}

void sgi_peer_close(sgi_peer *peer)
{
    sgi_subscriptions_close(peer);
    sgi_conn_close(peer->conn);
}
