/* Requests in flight are in the table `in_flight`, by their canonical id. A reply leaves
 * the table when the reply is closed or cancelled, or when the conversation is lost. From
 * then on the reply's peer is NULL, and messages on the reply are dropped. So the owner
 * of a reply need not check whether the client is still connected. */
#include "engine/server/peer.h"

#include "engine/server/late_notes.h"
#include "engine/server/pieces.h"
#include "wire/ending.h"
#include "engine/conversation/batch.h"
#include "engine/log/refusal.h"
#include "engine/server/lasting.h"

#include <stdio.h>
#include <string.h>

#define WHICH_MAX 120 /* maximum number of bytes of a name in an error message */

/* ---- making and ending replies ---- */

sgi_str sgi_peer_canonical_id(sgi_peer *peer, sgi_json id)
{
    sgi_buf_reset(&peer->id_text, 1024);
    sgi_id_write_canonical(id, &peer->id_text);
    return peer->id_text.failed ? (sgi_str){0} : sgi_buf_str(&peer->id_text);
}

static char *copy_id(sgi_reply *reply, sgi_str id)
{
    if (id.n >= sizeof reply->id_room)
        return sgi_text_dup(sgi_engine_mem(reply->engine), id);
    memcpy(reply->id_room, id.p, id.n);
    reply->id_room[id.n] = 0;
    return reply->id_room;
}

static char *copy_token(const sgi_mem *mem, const sgi_inbound *in, bool *ok)
{
    sgi_json token = in->progress;
    *ok = true;
    if (!sgi_id_is_usable(token))
        /* a malformed token would make the messages invalid, so the token is ignored */
        return NULL;
    char *copy = sgi_text_dup(mem, token);
    *ok = copy != NULL;
    return copy;
}

static void free_reply(sgi_reply *reply)
{
    const sgi_mem *mem = sgi_engine_mem(reply->engine);
    if (reply->id != reply->id_room)
        sgi_text_free(mem, reply->id);
    sgi_text_free(mem, reply->progress_token);
    sgi_free(mem, reply, sizeof *reply);
}

/* The sort of a request decides which limits apply, and whether the reply is put into the
 * table of requests in flight. */
typedef enum reply_sort {
    SORT_PLAIN,
    SORT_CALL,         /* a request that begins an operation */
    SORT_STREAM,       /* a request that is answered with many messages */
    SORT_OUT_OF_TABLE, /* a request whose id can be the id of another request in flight */
} reply_sort;

static const char *over_limit(const sgi_peer *peer, reply_sort sort, sgi_limit *limit)
{
    bool is_stream = sort == SORT_STREAM;
    int32_t status;
    const char *refusal =
        sgi_budget_find_refusal(peer, sort == SORT_CALL, &status, limit);
    const segue_server_options *options = &peer->server->options;
    int32_t streams = peer->is_exchange ? peer->who->use.streams : peer->stream_count;
    if (refusal) {
        peer->conn->http_status = status;
    } else if (peer->in_flight->by_id.count >= (size_t)options->max_requests) {
        refusal = "Too many requests in flight";
        *limit = (sgi_limit){SGI_LIMIT_MAX_REQUESTS, options->max_requests};
    } else if (is_stream && streams >= peer->max_streams) {
        peer->conn->http_status = 429;
        refusal = "Too many streams";
        *limit = (sgi_limit){SGI_LIMIT_MAX_STREAMS, peer->max_streams};
    }
    return refusal;
}

bool sgi_refuse_when_ending(const sgi_inbound *in)
{
    if (!in->peer->ending)
        return false;
    in->peer->conn->http_status = 503;
    sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, SGI_ENDING_TEXT, SGI_ENDING_DATA);
    return true;
}

/* Checks the limits for a new reply. Returns true when the request is refused; the error
 * has then been sent. */
static bool refuse_reply(const sgi_inbound *in, reply_sort sort)
{
    sgi_peer *peer = in->peer;
    sgi_limit limit;
    if (sort == SORT_CALL && sgi_refuse_when_ending(in))
        return true;
    const char *what = over_limit(peer, sort, &limit);
    if (what) {
        sgi_limit_text told =
            sgi_engine_describe_limit(peer->server->engine, what, limit, "limit", NULL);
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, told.text, told.data);
    } else if (sort == SORT_STREAM && peer->conn->no_events) {
        peer->conn->http_status = 406;
        sgi_answer_error(
            in, SGI_RPC_INTERNAL_ERROR,
            "The answer to this method is a stream: the header Accept has to "
            "admit text/event-stream",
            NULL);
    } else {
        return false;
    }
    peer->server->counts.refused++;
    return true;
}

int32_t sgi_reply_log_level(const sgi_reply *reply)
{
    if (sgi_facts(reply->version)->has_log_level_in_meta)
        return reply->own_log_level;
    return reply->peer ? reply->peer->handshake->log_level : -1;
}

static sgi_reply *make_reply(const sgi_inbound *in)
{
    sgi_engine *engine = in->peer->server->engine;
    const sgi_mem *mem = sgi_engine_mem(engine);
    bool token_ok;
    sgi_reply *reply = sgi_zalloc(mem, sizeof *reply);
    if (!reply)
        return NULL;
    reply->engine = engine;
    reply->id = copy_id(reply, in->id);
    reply->progress_token = copy_token(mem, in, &token_ok);
    reply->version = in->version;
    reply->own_log_level = in->log_level;
    if (!reply->id || !token_ok) {
        free_reply(reply);
        return NULL;
    }
    return reply;
}

void sgi_in_flight_init(sgi_in_flight *in_flight, sgi_engine *engine)
{
    sgi_map_init(&in_flight->by_id, &engine->env);
    LIST_INIT(&in_flight->out_of_table);
}

void sgi_reply_add_to_flight(sgi_reply *reply, sgi_in_flight *in_flight)
{
    if (reply->state == SGI_REPLY_IN_TABLE)
        sgi_map_put(&in_flight->by_id, &reply->node, sgi_str_of(reply->id));
    else
        LIST_INSERT_HEAD(&in_flight->out_of_table, reply, out_of_table_link);
}

void sgi_reply_remove_from_flight(sgi_reply *reply)
{
    if (reply->state == SGI_REPLY_IN_TABLE)
        sgi_map_remove(&reply->peer->in_flight->by_id, &reply->node);
    else
        LIST_REMOVE(reply, out_of_table_link);
}

static sgi_reply *open_reply(const sgi_inbound *in, reply_sort sort)
{
    sgi_peer *peer = in->peer;
    if (refuse_reply(in, sort))
        return NULL;
    sgi_reply *reply = make_reply(in);
    if (!reply) {
        sgi_answer_error(in, SGI_RPC_INTERNAL_ERROR, "Out of memory", NULL);
        return NULL;
    }
    reply->peer = peer;
    reply->is_stream = sort == SORT_STREAM;
    sgi_budget_count_request(peer, 1);
    peer->stream_count += reply->is_stream;
    if (reply->is_stream)
        sgi_budget_count_stream(peer, 1);
    LIST_INSERT_HEAD(&peer->replies, reply, by_peer);
    reply->state =
        sort == SORT_OUT_OF_TABLE ? SGI_REPLY_OUT_OF_TABLE : SGI_REPLY_IN_TABLE;
    sgi_reply_add_to_flight(reply, peer->in_flight);
    return reply;
}

sgi_reply *sgi_reply_open(const sgi_inbound *in, bool is_stream)
{
    return open_reply(in, is_stream ? SORT_STREAM : SORT_PLAIN);
}

sgi_reply *sgi_reply_open_call(const sgi_inbound *in)
{
    return open_reply(in, SORT_CALL);
}

sgi_reply *sgi_reply_open_out_of_table(const sgi_inbound *in)
{
    return open_reply(in, SORT_OUT_OF_TABLE);
}

bool sgi_reply_put_in_flight(sgi_reply *reply)
{
    const sgi_map *by_id = &reply->peer->in_flight->by_id;
    if (reply->state == SGI_REPLY_IN_TABLE)
        return true;
    if (sgi_map_find(by_id, sgi_str_of(reply->id)))
        return false;
    sgi_reply_remove_from_flight(reply);
    reply->state = SGI_REPLY_IN_TABLE;
    sgi_reply_add_to_flight(reply, reply->peer->in_flight);
    return true;
}

void sgi_reply_leave_id_out(sgi_reply *reply)
{
    if (reply->id != reply->id_room)
        sgi_text_free(sgi_engine_mem(reply->engine), reply->id);
    reply->id = reply->id_room;
    reply->id_room[0] = 0;
}

static void unlink_reply(sgi_reply *reply)
{
    sgi_peer *peer = reply->peer;
    if (!peer)
        return;
    sgi_late_notes_drop(reply);
    sgi_budget_count_request(peer, -1);
    peer->stream_count -= reply->is_stream;
    if (reply->is_stream)
        sgi_budget_count_stream(peer, -1);
    LIST_REMOVE(reply, by_peer);
    sgi_reply_remove_from_flight(reply);
    reply->peer = NULL;
    /* this call has no effect if the batch already has the answer to this request */
    sgi_batch_note_no_answer(peer->conn, sgi_str_of(reply->id));
}

void sgi_reply_close(sgi_reply *reply)
{
    sgi_pieces_drop(reply);
    sgi_lasting_call_leave_reply(reply);
    sgi_op_wait_cancel(&reply->waiter);
    unlink_reply(reply);
    free_reply(reply);
}

void sgi_reply_cancel(sgi_reply *reply)
{
    void (*cancelled)(sgi_reply *) = reply->cancelled;
    sgi_op *op = reply->pieces ? reply->pieces->cursor.reader.op : NULL;
    unlink_reply(reply);
    reply->cancelled = NULL;
    if (op)
        /* a reference for this function: the reply can be freed below, and the pieces can
         * hold the last other reference to the operation */
        sgi_op_ref(op);
    if (reply->pieces && !reply->pieces->ended)
        /* The pieces are freed, because no client will receive them. */
        sgi_pieces_drop(reply);
    if (cancelled)
        cancelled(reply);
    if (op)
        sgi_op_unref(op);
}

/* ---- answers ---- */

void sgi_answer_error(const sgi_inbound *in, int32_t code, const char *text,
                      const char *data)
{
    sgi_send_error(in->peer->conn, in->id, code, sgi_str_of(text), sgi_str_of(data));
}

static bool contains(sgi_str text, sgi_str part)
{
    for (size_t i = 0; i + part.n <= text.n; i++)
        if (!memcmp(text.p + i, part.p, part.n))
            return true;
    return false;
}

void sgi_write_unknown_name(sgi_buf *message, sgi_str why, sgi_str which)
{
    size_t n = which.n < WHICH_MAX ? which.n : WHICH_MAX;
    while (n > 0 && n < which.n && ((unsigned char)which.p[n] & 0xc0) == 0x80)
        n--; /* a text must not be cut in the middle of a UTF-8 character */
    sgi_buf_add(message, why.p, why.n);
    if (!which.n || contains(why, which))
        return;
    sgi_buf_add_lit(message, ": ");
    sgi_buf_add(message, which.p, n);
    if (n < which.n)
        sgi_buf_add_lit(message, "...");
}

void sgi_refuse_unknown_name(const sgi_inbound *in, int32_t code, const char *why,
                             const char *member, sgi_str which)
{
    const sgi_mem *mem = sgi_engine_mem(in->peer->server->engine);
    sgi_buf data, message;
    sgi_buf_init(&data, mem);
    sgi_buf_init(&message, mem);
    if (member) {
        sgi_jw w = sgi_jw_to(&data);
        sgi_jw_open(&w, '{');
        sgi_jw_member_string(&w, member, which);
        sgi_jw_close(&w, '}');
    }
    sgi_write_unknown_name(&message, sgi_str_of(why), which);
    sgi_send_error(in->peer->conn, in->id, code,
                   message.failed ? sgi_str_of(why) : sgi_buf_str(&message),
                   data.failed ? (sgi_json){0} : sgi_buf_str(&data));
    sgi_buf_free(&message);
    sgi_buf_free(&data);
}

void sgi_answer_begin_result(sgi_sending *sending, const sgi_inbound *in,
                             const char *result_type)
{
    bool typed = sgi_facts(in->version)->has_result_types;
    sgi_send_begin_result(sending, in->peer->conn, in->id, typed ? result_type : NULL);
}

void sgi_write_server_info_meta(sgi_sending *sending, segue_server *server)
{
    sgi_jw_key(&sending->w, "_meta");
    sgi_jw_open(&sending->w, '{');
    sgi_buf_add_str(sending->w.buf, sgi_buf_str(&server->info));
    sgi_jw_close(&sending->w, '}');
}

bool sgi_reply_begin_result(sgi_sending *sending, sgi_reply *reply,
                            const char *result_type)
{
    if (!reply->peer)
        return false;
    sgi_late_notes_send(reply);
    sgi_send_begin_result(sending, reply->peer->conn, sgi_str_of(reply->id),
                          sgi_facts(reply->version)->has_result_types ? result_type
                                                                      : NULL);
    return true;
}

bool sgi_reply_begin_notification(sgi_sending *sending, sgi_reply *reply,
                                  const char *method)
{
    if (!reply->peer)
        return false;
    sgi_send_begin_notification(sending, reply->peer->conn, method);
    return true;
}

void sgi_reply_error(sgi_reply *reply, int32_t code, sgi_str text, sgi_json data)
{
    if (reply->peer)
        sgi_send_error(reply->peer->conn, sgi_str_of(reply->id), code, text, data);
}

void sgi_reply_ending(sgi_reply *reply)
{
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, SGI_STR(SGI_ENDING_TEXT),
                    SGI_STR(SGI_ENDING_DATA));
}

void sgi_reply_store_error(sgi_reply *reply, sgi_store_failure failure,
                           segue_status status)
{
    sgi_store_refusal refusal = sgi_store_refusal_of(failure, status);
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, sgi_str_of(refusal.text),
                    sgi_str_of(refusal.data));
}

void sgi_reply_refuse_change(sgi_reply *reply, const sgi_op *op, segue_status status)
{
    sgi_reply_store_error(reply, sgi_op_is_broken(op) ? SGI_UNSTORED : SGI_PUT_OFF,
                          status);
}

static void answer_wait(sgi_reply *reply, const char *what, sgi_limit limit,
                        int64_t wait_ms)
{
    char data[192];
    sgi_limit_text told = sgi_engine_describe_limit(reply->peer->server->engine, what,
                                                    limit, "rate_limited", NULL);
    snprintf(data, sizeof data, "%.*s,\"retryAfterMs\":%lld}", (int)strlen(told.data) - 1,
             told.data, (long long)wait_ms);
    sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR, sgi_str_of(told.text),
                    sgi_str_of(data));
}

void sgi_answer_not_found(sgi_reply *reply, const char *text)
{
    sgi_peer *peer = reply->peer;
    if (!peer)
        return;
    int32_t rate = peer->server->options.lookups_per_second;
    int64_t wait_ms = sgi_principal_count_miss(peer->who, rate);
    if (wait_ms)
        answer_wait(reply, "Too many failed look-ups",
                    (sgi_limit){SGI_LIMIT_LOOKUPS_PER_SECOND, rate}, wait_ms);
    else
        sgi_reply_error(reply, SGI_RPC_INVALID_PARAMS, sgi_str_of(text), (sgi_json){0});
}

bool sgi_answer_if_rate_limited(sgi_reply *reply)
{
    sgi_peer *peer = reply->peer;
    int32_t rate = peer->server->options.fetches_per_second;
    int64_t wait_ms = sgi_principal_count_fetch(peer->who, rate);
    if (wait_ms) {
        answer_wait(reply, "Too many fetches",
                    (sgi_limit){SGI_LIMIT_FETCHES_PER_SECOND, rate}, wait_ms);
        sgi_reply_close(reply);
    }
    return wait_ms != 0;
}
