/* The token is "<the operation's id in the store>.<secret>"; of the secret only the
 * digest is kept, so what the store holds opens nothing. The first half finds the
 * operation with one look, in memory or in the store.
 *
 * A resumable one that has been closed stays for a while as its own tombstone: it has
 * nothing any more but the reason (R-975-12). */
#include "engine/serving/resumable.h"

#include "engine/dialect/pieces.h"
#include "engine/log/dropping.h"
#include "engine/serving/call_request.h"
#include "engine/serving/replay.h"
#include "engine/serving/resumable_clock.h"
#include "engine/serving/task.h"
#include "engine/serving/wire_session.h"

#define NOTE_SHARES 16 /* of the log */
#define PIECE_SHARE 65536

static void parted(sgi_resumable *r);

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
    sgi_text_free(mem, r->progress_token);
    sgi_release(mem, r, sizeof *r);
}

static bool copy_request(sgi_resumable *r, const sgi_mem *mem, const sgi_reply *reply)
{
    r->id = sgi_text_dup(mem, sgi_str_of(reply->id));
    if (reply->progress_token)
        r->progress_token = sgi_text_dup(mem, sgi_str_of(reply->progress_token));
    r->log_level = reply->log_level;
    return r->id && (r->progress_token || !reply->progress_token);
}

bool sgi_resumable_make(sgi_op *op, const sgi_reply *reply,
                        const sgi_call_request *request)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    const segue_item_options *options = &op->item->options;
    sgi_resumable *r = sgi_zalloc(mem, sizeof *r);
    if (!r)
        return false;
    r->op = op;
    r->min_wait_ms = options->resume_min_wait_ms;
    r->max_wait_ms =
        options->resume_max_wait_ms ? options->resume_max_wait_ms : SGI_UNTOLD_WAIT_MS;
    if (r->max_wait_ms < 0)
        r->max_wait_ms = 0;
    r->partial = request->pieces == &sgi_pieces_partial;
    const sgi_str secret = {r->secret, SGI_RANDOM_TEXT};
    if (!copy_request(r, mem, reply) || !sgi_engine_random_text(op->engine, r->secret) ||
        !sgi_engine_digest(op->engine, r->hash, &secret, 1) || !make_tag(op->engine, r)) {
        free_it(mem, r);
        return false;
    }
    op->resumable = r;
    return true;
}

void sgi_resumable_leave_peer(sgi_resumable *r)
{
    if (r->peer)
        LIST_REMOVE(r, by_peer);
    r->peer = NULL;
}

void sgi_resumable_unhook(sgi_reply *reply)
{
    if (reply->resumable)
        reply->resumable->reply = NULL;
    reply->resumable = NULL;
}

void sgi_resumable_free(sgi_op *op)
{
    sgi_resumable *r = op->resumable;
    if (!r)
        return;
    op->resumable = NULL;
    if (r->reply)
        sgi_resumable_unhook(r->reply);
    sgi_resumable_leave_peer(r);
    sgi_engine_timer_clear(op->engine, &r->clock);
    free_it(sgi_engine_mem(op->engine), r);
}

/* ---- the stored form ---- */

void sgi_resumable_write(const sgi_op *op, sgi_jw *w)
{
    const sgi_resumable *r = op->resumable;
    if (!r)
        return;
    sgi_jw_key(w, "resume");
    sgi_jw_open(w, '{');
    sgi_jw_member_raw(w, "id", sgi_str_of(r->id));
    sgi_jw_key(w, "token");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_base64(w->buf, r->hash, sizeof r->hash, true);
    sgi_buf_add_char(w->buf, '"');
    w->comma = true;
    if (r->progress_token)
        sgi_jw_member_raw(w, "progress", sgi_str_of(r->progress_token));
    sgi_jw_member_int(w, "level", r->log_level);
    sgi_jw_member_int(w, "min", r->min_wait_ms);
    sgi_jw_member_int(w, "max", r->max_wait_ms);
    sgi_jw_member_int(w, "partial", r->partial);
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
    sgi_json_int(sgi_json_get(object, name), &value);
    return value > 0 ? value : 0;
}

bool sgi_resumable_read(sgi_op *op, sgi_json data)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_json resume = sgi_json_get(data, "resume");
    sgi_json id = sgi_json_get(resume, "id");
    sgi_json progress = sgi_json_get(resume, "progress");
    if (!resume.n)
        return true;
    sgi_resumable *r = sgi_zalloc(mem, sizeof *r);
    if (!r)
        return false;
    int64_t level = -1;
    r->op = op;
    r->detached = true;
    sgi_json_int(sgi_json_get(resume, "level"), &level);
    r->log_level = (int32_t)level;
    r->min_wait_ms = number(resume, "min");
    r->max_wait_ms = number(resume, "max");
    r->partial = number(resume, "partial") != 0;
    r->id = id.n ? sgi_text_dup(mem, id) : NULL;
    r->progress_token = progress.n ? sgi_text_dup(mem, progress) : NULL;
    if (!r->id || (progress.n && !r->progress_token) ||
        !read_hash(op->engine, r, sgi_json_get(resume, "token"))) {
        free_it(mem, r);
        return false;
    }
    op->resumable = r;
    return true;
}

/* ---- the policy ---- */

static void write_seconds(sgi_jw *w, const char *name, int64_t ms)
{
    if (ms > 0)
        sgi_jw_member_int(w, name, ms / 1000 + (ms % 1000 != 0));
}

void sgi_resumable_tell(sgi_resumable *r, sgi_reply *reply)
{
    sgi_sending sending;
    sgi_buf token;
    if (!sgi_reply_notification(&sending, reply, "notifications/requests/resumePolicy"))
        return;
    sgi_buf_init(&token, sgi_engine_mem(reply->engine));
    sgi_buf_add_str(&token, sgi_str_of(r->op->task_id));
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

/* In a time that does not tell where they differ. */
bool sgi_resumable_knows(const sgi_resumable *r, const uint8_t hash[SGI_DIGEST_SIZE])
{
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < SGI_DIGEST_SIZE; i++)
        differs = differs | (uint8_t)(r->hash[i] ^ hash[i]);
    return !differs;
}

/* ---- coming and going ---- */

static void parted(sgi_resumable *r)
{
    r->sent = r->handed = r->confirmed;
    if (r->detached)
        return;
    r->detached = true;
    sgi_resumable_begin_clock(r);
    sgi_resumable_say(r, true);
}

/* Its client is there, and the clock stands still. */
static void arrived(sgi_resumable *r)
{
    r->detached = false;
    sgi_resumable_end_clock(r);
    if (r->away || sgi_op_is_elsewhere(r->op))
        sgi_resumable_say(r, false);
}

/* ---- its channel ---- */

/* What it was sent on gets nothing more; of an exchange the stream ends (R-975-13). */
static void leave_channel(sgi_resumable *r, const sgi_peer *next)
{
    sgi_peer *before = r->peer;
    sgi_reply *reply = r->reply;
    sgi_resumable_leave_peer(r);
    if (reply) {
        sgi_resumable_unhook(reply);
        reply->lost = true;
        sgi_reply_cancel(reply);
    }
    if (before && before != next && before->is_exchange)
        sgi_wire_session_drop(before);
}

bool sgi_resumable_attach(sgi_resumable *r, sgi_reply *reply)
{
    sgi_peer *peer = reply->peer;
    sgi_replay *replay = peer->conn->replay;
    leave_channel(r, peer);
    parted(r);
    if (!sgi_reply_place(reply))
        return false;
    r->reply = reply;
    r->peer = peer;
    reply->resumable = r;
    LIST_INSERT_HEAD(&peer->resumables, r, by_peer);
    arrived(r);
    if (replay) {
        replay->primes = false; /* its first event has an id */
        replay->at = r->confirmed;
        memcpy(replay->tag, r->tag, sizeof replay->tag);
    }
    return true;
}

void sgi_resumable_mark(sgi_reply *reply, uint64_t seq)
{
    sgi_resumable *r = reply->resumable;
    if (!r || !reply->peer)
        return;
    r->sent = seq;
    if (reply->peer->conn->replay)
        reply->peer->conn->replay->at = seq;
}

/* Notes that are confirmed nobody asks for again (R-975-19). Segments stay while there is
 * room: what its client has received, and not handled, dies with its process, and the
 * next one makes the whole result of all of them. */
static void drop_confirmed(sgi_resumable *r)
{
    sgi_op *op = r->op;
    if (sgi_notes_drop_upto(&r->notes, r->confirmed, &op->log_bytes))
        sgi_op_drop(op, SGI_DROP_NOTES, r->notes.dropped);
}

/* Half of the log is for what is not confirmed: after a restart, when nothing is known to
 * be, the handler goes on before its client comes. Of a task, its own handle asks for
 * segments as well (C-12). */
void sgi_resumable_make_room(sgi_resumable *r, size_t bytes, size_t limit)
{
    sgi_op *op = r->op;
    if (op->log_bytes + bytes > limit / 2 && !op->is_task &&
        sgi_notes_drop_upto(&r->pieces, r->confirmed, &op->log_bytes))
        sgi_op_drop(op, SGI_DROP_SEGMENTS, r->pieces.dropped);
    while (op->log_bytes + bytes > limit && sgi_notes_drop(&r->notes, &op->log_bytes))
        sgi_op_drop(op, SGI_DROP_NOTES, r->notes.dropped);
}

void sgi_resumable_confirm(sgi_resumable *r, uint64_t seq)
{
    const sgi_op *op = r->op;
    if (seq > r->confirmed && seq < op->next_log) {
        r->confirmed = seq;
        drop_confirmed(r);
    }
    if (op->final != SGI_FINAL_NONE && op->final_seq <= sgi_op_horizon(op) &&
        r->confirmed >= op->final_seq)
        sgi_resumable_close(r, "completed");
}

bool sgi_resumable_has_pending(const sgi_resumable *r)
{
    return r->last_message > r->confirmed;
}

/* ---- the log ---- */

segue_status sgi_resumable_note(sgi_op *op, sgi_str message)
{
    const sgi_notes *notes = &op->resumable->notes;
    if (sgi_op_is_full(op) ||
        message.n > 2 * op->limits.max_log_bytes - notes->all_bytes ||
        notes->all_bytes > 2 * op->limits.max_log_bytes)
        return SEGUE_OK; /* the next one says more */
    segue_status status = sgi_op_append(op, SGI_ENTRY_NOTIFY, message);
    return status == SEGUE_E_LIMIT ? SEGUE_OK : status;
}

void sgi_resumable_note_entry(sgi_resumable *r, const sgi_entry *entry)
{
    bool is_note = entry->kind == SGI_ENTRY_NOTIFY;
    if (entry->kind == SGI_ENTRY_PRESENCE)
        sgi_resumable_note_presence(r, entry);
    size_t share = r->op->limits.max_log_bytes / NOTE_SHARES;
    if (entry->kind == SGI_ENTRY_SEGMENT && r->partial)
        sgi_notes_add(&r->pieces, entry->seq, entry->len,
                      share < PIECE_SHARE ? share : PIECE_SHARE);
    if (is_note)
        sgi_notes_add(&r->notes, entry->seq, entry->len,
                      share < PIECE_SHARE ? share : PIECE_SHARE);
    if (is_note || entry->kind == SGI_ENTRY_INPUT_ASK ||
        sgi_entry_is_final(entry->kind) ||
        (entry->kind == SGI_ENTRY_SEGMENT && (r->partial || r->op->is_task)))
        r->last_message = entry->seq;
}

/* ---- several servers ---- */

void sgi_resumable_elsewhere(sgi_resumable *r, bool away)
{
    leave_channel(r, NULL); /* who was here is there now */
    r->sent = r->handed = r->confirmed;
    r->detached = true;
    sgi_resumable_begin_clock(r);
    if (away || r->away)
        sgi_resumable_say(r, away);
}

void sgi_resumable_moved(sgi_op *op)
{
    sgi_resumable *r = op->resumable;
    if (!r)
        return;
    sgi_resumable_end_clock(r);
    if (!r->detached)
        arrived(r);
}

void sgi_resumable_adopt(sgi_resumable *r, const sgi_resumable *fresh)
{
    r->away = fresh->away;
    r->away_ms = fresh->away_ms;
    r->marked_seq = fresh->marked_seq;
    r->last_message = fresh->last_message;
    r->notes = fresh->notes;
    r->pieces = fresh->pieces;
}

/* ---- peers ---- */

void sgi_resumables_parted(sgi_peer *peer)
{
    sgi_resumable *r;
    LIST_FOREACH(r, &peer->resumables, by_peer)
        parted(r);
}

void sgi_resumables_rejoined(sgi_peer *peer)
{
    sgi_resumable *r;
    LIST_FOREACH(r, &peer->resumables, by_peer) {
        arrived(r);
        if (r->reply)
            sgi_pieces_wake(r->reply);
    }
}

void sgi_resumables_lost(sgi_peer *peer)
{
    sgi_resumable *r;
    while ((r = LIST_FIRST(&peer->resumables))) {
        sgi_resumable_leave_peer(r);
        parted(r);
    }
}

bool sgi_resumables_passed(sgi_peer *peer)
{
    bool more = false;
    sgi_resumable *r = LIST_FIRST(&peer->resumables);
    while (r && !peer->is_exchange) {
        sgi_resumable *next = LIST_NEXT(r, by_peer);
        uint64_t written = r->handed;
        r->handed = r->sent;
        more |= r->handed > written;
        sgi_op_ref(r->op);
        sgi_op *op = r->op;
        sgi_resumable_confirm(r, written);
        sgi_op_unref(op);
        r = next;
    }
    return more;
}
