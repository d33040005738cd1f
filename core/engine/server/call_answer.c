/* Answers the request of a call that has ended, with the result or the error of the
 * call. */
#include "engine/server/tool_call.h"

#include "engine/log/reader.h"
#include "engine/log/refusal.h"
#include "engine/server/lasting.h"
#include "engine/server/task_form.h"

#include <stdio.h>

static void write_unless_set(sgi_jw *w, const sgi_fold *fold, const char *name,
                             sgi_json value)
{
    if (!sgi_fields_has(&fold->fields, name))
        sgi_jw_member_raw(w, name, value);
}

/* Writes ttlMs and cacheScope, which tell the client how long the result stays fresh. A
 * member that the handler has set is left as it is. A result that depends on the client's
 * answers to questions must not be cached, because the key of a cache does not contain
 * these answers (2026-07-28 server/utilities/caching, "Cache Key"). */
static void write_freshness(sgi_jw *w, const sgi_op *op, const sgi_fold *fold)
{
    const segue_item_options *options =
        op->served->item ? &op->served->item->options : NULL;
    bool ages = options && !op->head.input_count;
    char ttl[24];
    snprintf(ttl, sizeof ttl, "%lld", ages ? (long long)options->read_ttl_ms : 0LL);
    write_unless_set(w, fold, "ttlMs", sgi_str_of(ttl));
    write_unless_set(
        w, fold, "cacheScope",
        sgi_cache_scope_json(ages ? options->read_scope : SEGUE_CACHE_PRIVATE));
}

/* Writes the required members of the result that the handler has not set. */
static void write_defaults(sgi_jw *w, const sgi_op *op, const sgi_fold *fold,
                           bool has_cache_hints)
{
    const sgi_call_default_member *standard = &op->served->kind->standard;
    if (standard->name)
        write_unless_set(w, fold, standard->name, sgi_str_of(standard->json));
    if (op->served->kind->ages && has_cache_hints)
        write_freshness(w, op, fold);
}

/* Returns the member _meta of a result. A client that received pieces must match the
 * pieces with the blocks of the whole result. For this match, _meta says how many
 * segments were replaced, and whether texts were joined. room: an empty buffer, for a
 * text that must be put together. */
static sgi_str meta_of(sgi_buf *room, const sgi_reply *reply, const sgi_op *op,
                       const sgi_fold *fold)
{
    sgi_str info = {0};
    if (sgi_facts(reply->version)->has_result_types)
        info = sgi_buf_str(&sgi_op_server(op)->info);
    if (!reply->tells_void)
        return info;
    sgi_buf_add_str(room, info);
    sgi_task_write_void_segments(room, fold);
    return sgi_buf_str(room);
}

/* Notes that the client is sent the end of the call. So a client that resumes the call
 * does not get the end again. */
static void note_end(sgi_reply *reply, sgi_op *op)
{
    sgi_reply_note_end_sent(reply, op);
    sgi_lasting_call_note_position(reply, op->head.final_seq);
}

static void answer_final(sgi_reply *reply, sgi_op *op, const sgi_fold *fold,
                         segue_status status)
{
    sgi_sending sending;
    sgi_buf room;
    bool is_error = op->head.final == SGI_FINAL_RESULT_IS_ERROR;
    if (op->head.final == SGI_FINAL_ERROR || op->head.final == SGI_FINAL_EXPIRED) {
        sgi_json error = {op->head.final_data, op->head.final_len};
        note_end(reply, op);
        if (reply->peer)
            sgi_send_error_object(reply->peer->conn, sgi_str_of(reply->id), error);
        return;
    }
    if (!fold) {
        sgi_reply_store_error(reply, SGI_UNREADABLE, status);
        return;
    }
    note_end(reply, op);
    if (op->head.final == SGI_FINAL_CANCELLED) {
        sgi_reply_error(reply, SGI_RPC_INTERNAL_ERROR,
                        SGI_STR("The operation was cancelled"), (sgi_json){0});
        return;
    }
    if (!sgi_reply_begin_result(&sending, reply, "complete"))
        return;
    sgi_buf_init(&room, sgi_engine_mem(reply->engine));
    write_defaults(&sending.w, op, fold, sgi_facts(reply->version)->has_cache_hints);
    sgi_fold_write(fold, &sending.w, is_error, meta_of(&room, reply, op, fold));
    sending.w.buf->failed |= room.failed;
    sgi_send_end(&sending);
    sgi_buf_free(&room);
}

static void folded(void *user, sgi_op *op, const sgi_fold *fold, segue_status status)
{
    sgi_reply *reply = user;
    answer_final(reply, op, fold, status);
    sgi_reply_close(reply);
}

void sgi_call_answer_reply(sgi_reply *reply, sgi_op *op)
{
    sgi_op_fold(op, folded, reply);
}
