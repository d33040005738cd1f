/* A batch is open while its messages are handed on (`reading`) or one of its requests has
 * no answer. Each such request has a slot: its id in `waiting`. A message without a
 * usable id has one with an empty id, for as long as it takes to refuse it. A slot goes
 * when its answer is sent, or when it is known that none will be.
 *
 * Answers are kept one per line: frames hold no line ends. Over HTTP, once the exchange
 * is an event stream, nothing is kept: each answer goes out as it comes. */
#include "engine/serving/batch.h"

#include "engine/serving/peer.h"

struct sgi_batch_answer {
    sgi_batch_answer *next;
    bool reading;
    bool asks;       /* something in it is to be answered */
    bool lost;       /* the conversation has ended while it was read */
    sgi_buf waiting; /* ids, each with a NUL behind it */
    sgi_buf kept;    /* answers, each with a newline behind it */
};

/* ---- life ---- */

static sgi_batch_answer *open_batch(sgi_conn *conn)
{
    const sgi_mem *mem = sgi_engine_mem(conn->engine);
    sgi_batch_answer *batch = sgi_zalloc(mem, sizeof *batch);
    if (!batch)
        return NULL;
    sgi_buf_init(&batch->waiting, mem);
    sgi_buf_init(&batch->kept, mem);
    batch->reading = true;
    batch->next = conn->batches;
    conn->batches = batch;
    return batch;
}

static void free_batch(const sgi_mem *mem, sgi_batch_answer *batch)
{
    sgi_buf_free(&batch->waiting);
    sgi_buf_free(&batch->kept);
    sgi_release(mem, batch, sizeof *batch);
}

static void unlink_batch(sgi_conn *conn, const sgi_batch_answer *batch)
{
    sgi_batch_answer **at = &conn->batches;
    while (*at != batch)
        at = &(*at)->next;
    *at = batch->next;
    conn->batch_bytes -= batch->kept.len;
}

void sgi_batches_free(sgi_conn *conn)
{
    sgi_batch_answer *batch;
    while ((batch = conn->batches)) {
        unlink_batch(conn, batch);
        if (batch->reading)
            batch->lost = true; /* whoever reads it frees it */
        else
            free_batch(sgi_engine_mem(conn->engine), batch);
    }
}

/* All answers are there, or none will come. */
static void end_batch(sgi_conn *conn, sgi_batch_answer *batch)
{
    unlink_batch(conn, batch);
    if (!batch->asks) {
        /* notifications and answers only: nothing comes back */
    } else if (batch->kept.len && conn->frames != SGI_FRAMES_EVENTS) {
        sgi_send_array(conn, sgi_buf_str(&batch->kept));
    } else if (conn->frames != SGI_FRAMES_LINES) {
        sgi_send_nothing(conn); /* an exchange needs an end */
    }
    free_batch(sgi_engine_mem(conn->engine), batch);
}

static void maybe_end(sgi_conn *conn, sgi_batch_answer *batch)
{
    if (!batch->reading && !batch->waiting.len)
        end_batch(conn, batch);
}

/* ---- going out ---- */

static char *find_slot(const sgi_batch_answer *batch, sgi_str id)
{
    char *at = batch->waiting.p;
    size_t left = batch->waiting.len;
    while (left) {
        size_t n = strlen(at);
        if (sgi_str_eq((sgi_str){at, n}, id))
            return at;
        at += n + 1;
        left -= n + 1;
    }
    return NULL;
}

sgi_batch_answer *sgi_batch_of(const sgi_conn *conn, sgi_str id)
{
    sgi_batch_answer *batch = conn->batches;
    while (batch && !find_slot(batch, id))
        batch = batch->next;
    return batch;
}

/* Nobody can come for an answer that was given up before it was a stream: it is not
 * kept. */
bool sgi_batch_keep(sgi_conn *conn, sgi_batch_answer *batch, sgi_str message)
{
    size_t before = batch->kept.len;
    if (!conn->transport)
        return true;
    sgi_buf_add_str(&batch->kept, message);
    sgi_buf_add_char(&batch->kept, '\n');
    if (batch->kept.failed) {
        sgi_buf_cut(&batch->kept, before);
        return false;
    }
    conn->batch_bytes += batch->kept.len - before;
    return true;
}

void sgi_batch_answered(sgi_conn *conn, sgi_batch_answer *batch, sgi_str id)
{
    sgi_buf *waiting = &batch->waiting;
    char *slot = find_slot(batch, id);
    size_t n = id.n + 1;
    memmove(slot, slot + n, waiting->len - (size_t)(slot - waiting->p) - n);
    sgi_buf_cut(waiting, waiting->len - n);
    maybe_end(conn, batch);
}

void sgi_batch_drop(sgi_conn *conn, sgi_str id)
{
    sgi_batch_answer *batch = sgi_batch_of(conn, id);
    if (batch)
        sgi_batch_answered(conn, batch, id);
}

/* Only an exchange comes here, and it has one batch at most. */
void sgi_batch_release(sgi_conn *conn)
{
    sgi_batch_answer *batch = conn->batches;
    if (!batch)
        return;
    sgi_str left = sgi_buf_str(&batch->kept);
    while (left.n) {
        const char *end = memchr(left.p, '\n', left.n);
        sgi_str message = {left.p, (size_t)(end - left.p)};
        sgi_send_kept(conn, message);
        left = (sgi_str){end + 1, left.n - message.n - 1};
    }
    conn->batch_bytes -= batch->kept.len;
    sgi_buf_reset(&batch->kept, 0);
}

/* ---- coming in ---- */

static const char *wrong_size(sgi_str text)
{
    sgi_json items = sgi_json_trim(text), item;
    size_t at = 0;
    int32_t count = 0;
    while (count <= SGI_BATCH_MAX && sgi_json_next_item(items, &at, &item))
        count++;
    if (!count)
        return "a batch without messages";
    return count > SGI_BATCH_MAX ? "a batch of more than 64 messages" : NULL;
}

static bool add_slot(sgi_batch_answer *batch, sgi_str id)
{
    size_t before = batch->waiting.len;
    batch->asks = true;
    sgi_buf_add_str(&batch->waiting, id);
    sgi_buf_add_char(&batch->waiting, 0);
    if (!batch->waiting.failed)
        return true;
    sgi_buf_cut(&batch->waiting, before);
    return false;
}

static void refuse(sgi_conn *conn, sgi_batch_answer *batch, sgi_str id, int32_t code,
                   const char *problem)
{
    if (add_slot(batch, id))
        sgi_send_error(conn, id, code, sgi_str_of(problem), (sgi_json){0});
    else
        sgi_conn_close(conn); /* whoever cannot be answered must not wait */
}

/* A second answer would look like that of the first (C-3). */
static bool is_repeated(const sgi_peer *peer, sgi_str id)
{
    const sgi_map_node *node = sgi_map_find(peer->in_flight, id);
    if (!node || SGI_OWNER(node, sgi_reply, node)->peer != peer)
        return false;
    peer->server->engine->warnings++;
    sgi_engine_log(peer->server->engine, SEGUE_LOG_WARNING,
                   "a batch reuses an id that is in flight: ignored");
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
    else if (sgi_inbound_is_modern(&in, msg->method, true))
        refuse(peer->conn, batch, in.id, SGI_RPC_INVALID_REQUEST,
               "this revision has no batches");
    else if (add_slot(batch, in.id))
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
    if (!sgi_conn_parse(engine, item, &msg, &code, &problem)) {
        refuse(peer->conn, batch, (sgi_str){0}, code, problem);
    } else if (msg.kind == SGI_MESSAGE_REQUEST) {
        serve_request(peer, batch, &msg);
    } else if (msg.kind == SGI_MESSAGE_INVALID && !msg.is_response) {
        engine->warnings++;
        refuse(peer->conn, batch, msg.id, SGI_RPC_INVALID_REQUEST, msg.problem);
    } else {
        sgi_peer_message(peer, &msg);
    }
}

void sgi_batch_serve(sgi_peer *peer, sgi_str text)
{
    sgi_conn *conn = peer->conn;
    sgi_json items = sgi_json_trim(text), item;
    const char *problem = wrong_size(text);
    sgi_batch_answer *batch = NULL;
    size_t at = 0;
    if (peer->server->stage == SGI_SERVER_DEAD)
        return; /* what it began now nobody would end */
    if (problem) {
        peer->server->engine->warnings++;
        sgi_send_error(conn, (sgi_str){0}, SGI_RPC_INVALID_REQUEST, sgi_str_of(problem),
                       (sgi_json){0});
        return;
    }
    batch = open_batch(conn);
    if (!batch) {
        sgi_conn_close(conn);
        return;
    }
    while (conn->up && !conn->closing && sgi_json_next_item(items, &at, &item))
        serve_item(peer, batch, item);
    batch->reading = false;
    if (batch->lost)
        free_batch(sgi_engine_mem(conn->engine), batch);
    else
        maybe_end(conn, batch);
}

bool sgi_peer_batch(void *self, sgi_str text)
{
    sgi_peer *peer = self;
    if (!sgi_conn_is_batch(peer->server->engine, peer->handshake->version, text))
        return false;
    sgi_batch_serve(peer, text);
    return true;
}

bool sgi_batch_wants_answer(sgi_engine *engine, sgi_str text)
{
    sgi_json items = sgi_json_trim(text), item;
    sgi_message msg;
    size_t at = 0;
    if (wrong_size(text))
        return true;
    while (sgi_json_next_item(items, &at, &item))
        if (!sgi_conn_peek(engine, item, &msg) || msg.kind == SGI_MESSAGE_REQUEST ||
            (msg.kind == SGI_MESSAGE_INVALID && !msg.is_response))
            return true;
    return false;
}
