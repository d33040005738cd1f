/* Over HTTP all exchanges of a session share the table of requests in flight. A request
 * of a batch counts as repeated only when the same exchange already has a request with
 * the same id. */
#include "engine/server/serve_batch.h"

#include "engine/conversation/batch.h"

static void refuse(sgi_conn *conn, sgi_batch_answer *batch, sgi_str id, int32_t code,
                   const char *problem)
{
    if (sgi_batch_expect(batch, id))
        sgi_send_error(conn, id, code, sgi_str_of(problem), (sgi_json){0});
    else
        /* There is no memory for the error. The conversation closes, so that the client
         * does not wait for an answer. */
        sgi_conn_close(conn);
}

/* True when the same exchange has a request with this id in flight. An answer to the
 * second request would look like an answer to the first request (C-3). */
static bool is_repeated(const sgi_peer *peer, sgi_str id)
{
    const sgi_map_node *node = sgi_map_find(&peer->in_flight->by_id, id);
    if (!node || SGI_OWNER(node, sgi_reply, node)->peer != peer)
        return false;
    peer->server->engine->warnings++;
    sgi_engine_log(peer->server->engine, SEGUE_LOG_WARNING,
                   "a request of a batch has an id that is in flight already: the "
                   "request is ignored");
    return true;
}

static void serve_request(sgi_peer *peer, sgi_batch_answer *batch, const sgi_message *msg)
{
    sgi_inbound in;
    if (!sgi_inbound_read(&in, peer, msg))
        sgi_conn_close(peer->conn);
    else if (is_repeated(peer, in.id))
        return;
    else if (sgi_json_string_is(msg->method, SGI_STR("initialize")))
        refuse(peer->conn, batch, in.id, SGI_RPC_INVALID_REQUEST,
               "initialize must not be part of a batch");
    else if (sgi_inbound_is_stateless(&in, msg->method, true))
        refuse(peer->conn, batch, in.id, SGI_RPC_INVALID_REQUEST,
               "JSON-RPC batches exist in protocol version 2025-03-26 only");
    else if (sgi_batch_expect(batch, in.id))
        sgi_inbound_handle(&in, msg);
    else
        sgi_conn_close(peer->conn);
}

static void serve_item(sgi_peer *peer, sgi_batch_answer *batch, sgi_json item)
{
    sgi_engine *engine = peer->server->engine;
    sgi_message msg;
    int32_t code;
    const char *problem;
    if (!sgi_conn_parse(engine, NULL, item, &msg, &code, &problem)) {
        refuse(peer->conn, batch, (sgi_str){0}, code, problem);
    } else if (msg.kind == SGI_MESSAGE_REQUEST) {
        serve_request(peer, batch, &msg);
    } else if (msg.kind == SGI_MESSAGE_INVALID && !msg.is_response) {
        engine->warnings++;
        refuse(peer->conn, batch, msg.id, SGI_RPC_INVALID_REQUEST, msg.problem);
    } else {
        sgi_peer_hear(peer, &msg);
    }
}

void sgi_serve_batch(sgi_peer *peer, sgi_str text)
{
    sgi_conn *conn = peer->conn;
    sgi_json items = sgi_json_trim(text), item;
    const char *problem = sgi_batch_find_problem(text);
    sgi_batch_answer *batch = NULL;
    size_t at = 0;
    if (peer->server->stage == SGI_SERVER_DEAD)
        return; /* the runtime has ended, so the server begins no new work */
    if (problem) {
        peer->server->engine->warnings++;
        sgi_send_error(conn, (sgi_str){0}, SGI_RPC_INVALID_REQUEST, sgi_str_of(problem),
                       (sgi_json){0});
        return;
    }
    batch = sgi_batch_open(conn);
    if (!batch) {
        sgi_conn_close(conn);
        return;
    }
    while (conn->up && !conn->closing && sgi_json_next_item(items, &at, &item))
        serve_item(peer, batch, item);
    sgi_batch_close(conn, batch);
}

bool sgi_peer_serve_batch(void *self, sgi_str text)
{
    sgi_peer *peer = self;
    if (!sgi_facts(peer->handshake->version)->has_batches ||
        !sgi_conn_is_batch(peer->server->engine, text))
        return false;
    sgi_serve_batch(peer, text);
    return true;
}
