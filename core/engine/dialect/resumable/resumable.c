/* The token of a resumable request is "<the operation's id in the store>.<secret>". The
 * store has only the digest of the secret, so the content of the store does not give
 * access to requests. The id finds the operation by one look-up, in memory or in the
 * store.
 *
 * A resumable operation that was closed stays in the store for a while. Its client can
 * then still learn why it was closed (R-975-12). */
#include "engine/dialect/resumable/resumable.h"

#include "base/thresholds.h"

#include "engine/server/pieces.h"
#include "engine/log/dropping.h"
#include "engine/server/call_request.h"
#include "engine/conversation/replay.h"
#include "engine/dialect/resumable/resumable_clock.h"
#include "engine/server/task.h"
#include "engine/server/tool_call.h"
#include "engine/server/wire_session.h"

/* The entries of a log are counted in groups, and each group is dropped as a whole
 * (log/notes.h). A group has at most PIECE_GROUP bytes, and at most the limit of the log
 * divided by NOTE_GROUPS. */
#define NOTE_GROUPS 16
#define PIECE_GROUP 65536
/* the shortest time in ms for which an ended request stays in the store */
#define LEAST_KEPT_MS SGI_THRESHOLD(resumable_kept_ms)

/* ---- making ---- */

static bool make_tag(sgi_engine *engine, sgi_resumable *r)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_buf text;
    const sgi_str parts[] = {SGI_STR("segue resume tag 1"),
                             {(const char *)r->hash, sizeof r->hash}};
    sgi_buf_init(&text, sgi_engine_mem(engine));
    if (sgi_engine_digest(engine, digest, parts, 2))
        sgi_buf_add_base64(&text, digest, SGI_RESUME_TAG * 6 / 8, true);
    bool ok = text.len == SGI_RESUME_TAG;
    if (ok)
        memcpy(r->tag, text.p, SGI_RESUME_TAG);
    sgi_buf_free(&text);
    return ok;
}

static void free_it(const sgi_mem *mem, sgi_resumable *r)
{
    sgi_text_free(mem, r->id);
    sgi_text_free(mem, r->lasting.progress_token);
    sgi_free(mem, r, sizeof *r);
}

static void free_resumable(sgi_lasting_call *lasting)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    sgi_engine *engine = lasting->op->engine;
    sgi_engine_clear_timer(engine, &r->clock);
    free_it(sgi_engine_mem(engine), r);
}

static bool copy_request(sgi_resumable *r, const sgi_mem *mem, const sgi_reply *reply)
{
    r->id = sgi_text_dup(mem, sgi_str_of(reply->id));
    if (reply->progress_token)
        r->lasting.progress_token = sgi_text_dup(mem, sgi_str_of(reply->progress_token));
    r->lasting.log_level = sgi_reply_log_level(reply);
    return r->id && (r->lasting.progress_token || !reply->progress_token);
}

static sgi_resumable *new_resumable(sgi_op *op)
{
    sgi_resumable *r = sgi_zalloc(sgi_engine_mem(op->engine), sizeof *r);
    if (r)
        r->lasting = (sgi_lasting_call){.form = &sgi_resumable_form, .op = op};
    return r;
}

static sgi_lasting_call *make(sgi_op *op, const sgi_reply *reply,
                              const sgi_call_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    const segue_item_options *options = &op->served->item->options;
    sgi_resumable *r = new_resumable(op);
    if (!r)
        return NULL;
    r->min_wait_ms = options->resume_min_wait_ms;
    r->max_wait_ms =
        options->resume_max_wait_ms ? options->resume_max_wait_ms : SGI_UNTOLD_WAIT_MS;
    if (r->max_wait_ms < 0)
        r->max_wait_ms = 0;
    r->lasting.pieces = request->pieces;
    const sgi_str secret = {r->secret, SGI_RANDOM_TEXT};
    if (!copy_request(r, mem, reply) || !sgi_engine_random_text(op->engine, r->secret) ||
        !sgi_engine_digest(op->engine, r->hash, &secret, 1) || !make_tag(op->engine, r)) {
        free_it(mem, r);
        return NULL;
    }
    return &r->lasting;
}

/* ---- the stored form ---- */

static void write_record(const sgi_lasting_call *lasting, sgi_jw *w)
{
    const sgi_resumable *r = sgi_resumable_at(lasting);
    sgi_jw_key(w, "resume");
    sgi_jw_open(w, '{');
    sgi_jw_member_raw(w, "id", sgi_str_of(r->id));
    sgi_jw_key(w, "token");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, r->hash, sizeof r->hash, true);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
    if (r->lasting.progress_token)
        sgi_jw_member_raw(w, "progress", sgi_str_of(r->lasting.progress_token));
    sgi_jw_member_int(w, "level", r->lasting.log_level);
    sgi_jw_member_int(w, "min", r->min_wait_ms);
    sgi_jw_member_int(w, "max", r->max_wait_ms);
    sgi_jw_member_int(w, "partial", r->lasting.pieces != NULL);
    sgi_jw_close(w, '}');
}

static bool read_hash(sgi_engine *engine, sgi_resumable *r, sgi_json text)
{
    sgi_str plain = {0};
    sgi_buf bytes;
    sgi_buf_init(&bytes, sgi_engine_mem(engine));
    bool ok = sgi_json_plain_string(text, &plain) &&
              sgi_buf_add_unbase64(&bytes, plain) && bytes.len == sizeof r->hash;
    if (ok)
        memcpy(r->hash, bytes.p, sizeof r->hash);
    sgi_buf_free(&bytes);
    return ok && make_tag(engine, r);
}

static int64_t number(sgi_json object, const char *name)
{
    int64_t value = 0;
    sgi_json_read_int(sgi_json_get(object, name), &value);
    return value > 0 ? value : 0;
}

static bool read_record(sgi_op *op, sgi_json data, sgi_lasting_call **out)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_json resume = sgi_json_get(data, "resume");
    sgi_json id = sgi_json_get(resume, "id");
    sgi_json progress = sgi_json_get(resume, "progress");
    if (!resume.n)
        return true;
    sgi_resumable *r = new_resumable(op);
    if (!r)
        return false;
    int64_t level = -1;
    r->detached = true;
    sgi_json_read_int(sgi_json_get(resume, "level"), &level);
    r->lasting.log_level = (int32_t)level;
    r->min_wait_ms = number(resume, "min");
    r->max_wait_ms = number(resume, "max");
    if (number(resume, "partial"))
        r->lasting.pieces = sgi_srv_lasting_pieces_ops();
    r->id = id.n ? sgi_text_dup(mem, id) : NULL;
    r->lasting.progress_token = progress.n ? sgi_text_dup(mem, progress) : NULL;
    if (!r->id || (progress.n && !r->lasting.progress_token) ||
        !read_hash(op->engine, r, sgi_json_get(resume, "token"))) {
        free_it(mem, r);
        return false;
    }
    *out = &r->lasting;
    return true;
}

/* Returns the time in ms for which an ended request stays in the store: twice the time
 * that the server promised to its client, and at least LEAST_KEPT_MS. So a client that
 * comes late can still learn why there is no answer. */
static int64_t kept_ms(const sgi_lasting_call *lasting)
{
    int64_t waits_ms = sgi_time_mul(sgi_resumable_at(lasting)->max_wait_ms, 2);
    return sgi_time_add(waits_ms, LEAST_KEPT_MS);
}

/* ---- the policy ---- */

static void write_seconds(sgi_jw *w, const char *name, int64_t ms)
{
    if (ms > 0)
        sgi_jw_member_int(w, name, ms / 1000 + (ms % 1000 != 0));
}

/* Sends the resume token to the client. The token is sent once, as the first message
 * (R-975-2). */
static void tell(sgi_resumable *r, sgi_reply *reply)
{
    sgi_sending sending;
    sgi_buf token;
    if (!sgi_reply_begin_notification(&sending, reply,
                                      "notifications/requests/resumePolicy"))
        return;
    sgi_buf_init(&token, sgi_engine_mem(reply->engine));
    sgi_buf_add_str(&token, sgi_str_of(r->lasting.op->task_id));
    sgi_buf_add_char(&token, '.');
    sgi_buf_add_str(&token, sgi_str_of(r->secret));
    sgi_jw_member_raw(&sending.w, "requestId", sgi_str_of(r->id));
    sgi_jw_member_string(&sending.w, "resumeToken", sgi_buf_str(&token));
    write_seconds(&sending.w, "minWait", r->min_wait_ms);
    write_seconds(&sending.w, "maxWait", r->max_wait_ms);
    sending.w.buf->failed |= token.failed;
    sgi_send_end(&sending);
    sgi_buf_free(&token);
    memset(r->secret, 0, sizeof r->secret);
}

/* Compares the digests in constant time, so that the duration does not reveal the
 * secret. */
bool sgi_resumable_token_matches(const sgi_resumable *r,
                                 const uint8_t hash[SGI_DIGEST_SIZE])
{
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < SGI_DIGEST_SIZE; i++)
        differs = differs | (uint8_t)(r->hash[i] ^ hash[i]);
    return !differs;
}

/* ---- coming and going ---- */

static void parted(sgi_resumable *r)
{
    r->lasting.sent = r->handed = r->lasting.confirmed;
    if (r->detached)
        return;
    r->detached = true;
    sgi_resumable_begin_clock(r);
    sgi_resumable_append_presence(r, true);
}

/* Called when a client is attached to the call again. Stops the clock, and logs that the
 * client is back. */
static void arrived(sgi_resumable *r)
{
    r->detached = false;
    sgi_resumable_end_clock(r);
    sgi_resumable_append_arrival(r);
}

/* ---- its channel ---- */

/* Ends a request whose messages go to a newer request from now on. */
static void end_request(sgi_reply *reply)
{
    sgi_lasting_call_leave_reply(reply);
    reply->lost = true;
    sgi_reply_cancel(reply);
}

/* Leaves the present channel, the reply on which the client gets the messages of the
 * call. The conversation of the channel gets no more messages, and the stream of its
 * exchange ends (R-975-13). */
static void leave_channel(sgi_resumable *r, const sgi_peer *next)
{
    sgi_peer *before = r->lasting.peer;
    sgi_reply *reply = r->lasting.channel;
    sgi_lasting_call_leave_peer(&r->lasting);
    if (reply)
        end_request(reply);
    if (before && before != next && before->is_exchange)
        sgi_wire_session_end_answered_exchange(before);
}

/* Ends another request of the same session that has the id of this reply, over HTTP only.
 * Such a request is an older request for the same result, and the newest request wins
 * (R-975-13). The older request is not always the channel: it can belong to an earlier
 * object of an operation that has left memory since. */
static void end_older_request(const sgi_reply *reply)
{
    const sgi_map_node *node =
        sgi_map_find(&reply->peer->in_flight->by_id, sgi_str_of(reply->id));
    sgi_reply *older = node ? SGI_OWNER(node, sgi_reply, node) : NULL;
    sgi_peer *peer = older ? older->peer : NULL;
    if (!peer || peer == reply->peer || !peer->is_exchange)
        return;
    end_request(older);
    sgi_wire_session_end_answered_exchange(peer);
}

/* The new channel sends all questions without an answer. */
static void forget_questions(const sgi_op *op)
{
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link)
        input->awaited = false;
}

bool sgi_resumable_attach(sgi_resumable *r, sgi_reply *reply)
{
    sgi_peer *peer = reply->peer;
    sgi_replay *replay = peer->conn->replay;
    leave_channel(r, peer);
    forget_questions(r->lasting.op);
    parted(r);
    if (reply->state != SGI_REPLY_IN_TABLE)
        end_older_request(reply);
    if (!sgi_reply_put_in_flight(reply))
        return false;
    r->lasting.channel = reply;
    reply->lasting = &r->lasting;
    sgi_lasting_call_join_peer(&r->lasting, peer);
    arrived(r);
    if (replay) {
        /* every event has an id here, so the stream needs no empty first event */
        replay->primes = false;
        replay->at = r->lasting.confirmed;
        memcpy(replay->tag, r->tag, sizeof replay->tag);
    }
    return true;
}

/* Sends the token of a new call. Does nothing for a call that has or had a channel (a
 * reply that carries its messages), or that was read from the store. */
static void created(sgi_lasting_call *lasting, sgi_reply *reply)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    if (!lasting->peer && r->secret[0] && sgi_resumable_attach(r, reply))
        tell(r, reply);
}

/* The client has the key of the call and no token: it lost its connection, or its process
 * died, before the token came. It is shown everything from the beginning on, except what
 * it was sent on this reply while the call had another channel. */
static bool repeated(sgi_lasting_call *lasting, sgi_reply *reply)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    sgi_op *op = lasting->op;
    if (!sgi_resumable_attach(r, reply))
        return false;
    sgi_send_open_event_stream(reply->peer->conn);
    sgi_pieces_repeat(reply, op);
    sgi_reply_wait_for_op(reply, op);
    return true;
}

static bool is_away(const sgi_lasting_call *lasting)
{
    return sgi_resumable_at(lasting)->away;
}

/* Drops notes (progress and log messages) that the client has confirmed, because no
 * client asks for them again (R-975-19). Confirmed segments stay while there is room. If
 * the client's process dies before it has handled them, the next process needs all
 * segments for the whole result. */
static void drop_confirmed(sgi_resumable *r)
{
    sgi_op *op = r->lasting.op;
    if (sgi_droppable_entries_drop_upto(&r->notes, r->lasting.confirmed,
                                        &op->head.log_bytes))
        sgi_op_drop_entries(op, SGI_DROP_NOTES, r->notes.dropped);
}

/* Drops confirmed segments when they fill half of the log. The other half is reserved for
 * messages that are not confirmed. After a restart the handler runs before its client
 * comes back, so for a while no client confirms anything. Segments of a task are kept,
 * because clients can also ask for them by the id of the task (C-12). */
static void make_room(sgi_lasting_call *lasting, size_t bytes, size_t limit)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    sgi_op *op = lasting->op;
    if (op->head.log_bytes + bytes > limit / 2 && !sgi_op_is_task(op) &&
        sgi_droppable_entries_drop_upto(&r->pieces, r->lasting.confirmed,
                                        &op->head.log_bytes))
        sgi_op_drop_entries(op, SGI_DROP_SEGMENTS, r->pieces.dropped);
    while (op->head.log_bytes + bytes > limit &&
           sgi_droppable_entries_drop_oldest(&r->notes, &op->head.log_bytes))
        sgi_op_drop_entries(op, SGI_DROP_NOTES, r->notes.dropped);
}

void sgi_resumable_note_received(sgi_resumable *r, uint64_t seq)
{
    const sgi_op *op = r->lasting.op;
    if (seq > r->lasting.confirmed && seq < op->head.next_log) {
        r->lasting.confirmed = seq;
        drop_confirmed(r);
    }
    if (op->head.final != SGI_FINAL_NONE && op->head.final_seq <= sgi_op_horizon(op) &&
        r->lasting.confirmed >= op->head.final_seq)
        sgi_resumable_close(r, "completed");
}

bool sgi_resumable_has_pending(const sgi_resumable *r)
{
    return r->last_message > r->lasting.confirmed;
}

/* ---- the log ---- */

static segue_status note(sgi_lasting_call *lasting, sgi_str message)
{
    sgi_op *op = lasting->op;
    const sgi_droppable_entries *notes = &sgi_resumable_at(lasting)->notes;
    if (sgi_op_handler_must_wait(op) ||
        message.n > 2 * op->committer->limits.max_log_bytes - notes->all_bytes ||
        notes->all_bytes > 2 * op->committer->limits.max_log_bytes)
        /* there is no room, so this note (a progress or log message) is dropped; a later
         * note has newer information */
        return SEGUE_OK;
    segue_status status = sgi_op_append(op, SGI_ENTRY_NOTIFY, message);
    return status == SEGUE_E_LIMIT ? SEGUE_OK : status;
}

static void joined(sgi_lasting_call *lasting, const sgi_entry *entry)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    bool is_note = entry->kind == SGI_ENTRY_NOTIFY;
    if (entry->kind == SGI_ENTRY_PRESENCE)
        sgi_resumable_note_presence(r, entry);
    size_t group = r->lasting.op->committer->limits.max_log_bytes / NOTE_GROUPS;
    if (entry->kind == SGI_ENTRY_SEGMENT && r->lasting.pieces)
        sgi_droppable_entries_add(&r->pieces, entry->seq, entry->len,
                                  group < PIECE_GROUP ? group : PIECE_GROUP);
    if (is_note)
        sgi_droppable_entries_add(&r->notes, entry->seq, entry->len,
                                  group < PIECE_GROUP ? group : PIECE_GROUP);
    if (is_note || entry->kind == SGI_ENTRY_INPUT_ASK ||
        sgi_entry_is_final(entry->kind) ||
        (entry->kind == SGI_ENTRY_SEGMENT &&
         (r->lasting.pieces || sgi_op_is_task(r->lasting.op))))
        r->last_message = entry->seq;
}

/* ---- several servers ---- */

static void elsewhere(sgi_lasting_call *lasting, bool away, uint64_t attached_at)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    if (!r->detached && attached_at < r->attached_at)
        return; /* the client has come here since */
    /* the client is now connected to another server, so this server no longer sends the
     * messages of the call */
    leave_channel(r, NULL);
    r->lasting.sent = r->handed = r->lasting.confirmed;
    r->detached = true;
    sgi_resumable_begin_clock(r);
    if (away || r->away)
        sgi_resumable_append_presence(r, away);
}

static void moved(sgi_lasting_call *lasting)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    sgi_resumable_end_clock(r);
    if (!r->detached)
        arrived(r);
}

static void adopted(sgi_lasting_call *lasting, const sgi_lasting_call *from)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    const sgi_resumable *fresh = sgi_resumable_at(from);
    r->away = fresh->away;
    r->away_ms = fresh->away_ms;
    r->marked_seq = fresh->marked_seq;
    r->last_message = fresh->last_message;
    r->notes = fresh->notes;
    r->pieces = fresh->pieces;
}

/* ---- the form ---- */

static void peer_parted(sgi_lasting_call *lasting)
{
    parted(sgi_resumable_at(lasting));
}

static void peer_rejoined(sgi_lasting_call *lasting)
{
    arrived(sgi_resumable_at(lasting));
    if (lasting->channel)
        sgi_pieces_continue(lasting->channel);
}

static bool passed(sgi_lasting_call *lasting)
{
    sgi_resumable *r = sgi_resumable_at(lasting);
    uint64_t written = r->handed;
    r->handed = lasting->sent;
    bool more = r->handed > written;
    sgi_resumable_note_received(r, written);
    return more;
}

const sgi_lasting_call_ops sgi_resumable_form = {
    .make = make,
    .free = free_resumable,
    .created = created,
    .write = write_record,
    .read = read_record,
    .kept_ms = kept_ms,
    .note = note,
    .joined = joined,
    .make_room = make_room,
    .parted = peer_parted,
    .rejoined = peer_rejoined,
    .repeated = repeated,
    .offer_channel = sgi_rejoin_offer_channel,
    .passed = passed,
    .elsewhere = elsewhere,
    .is_away = is_away,
    .is_over = sgi_resumable_client_is_away_too_long,
    .send = sgi_resumable_send_entry,
    .ask = sgi_resumable_send_question,
    .withdraw = sgi_resumable_withdraw_questions,
    .rebuilt = sgi_resumable_close_if_away_too_long,
    .adopted = adopted,
    .taken_over = sgi_resumable_begin_clock_at_restart,
    .moved = moved,
};
