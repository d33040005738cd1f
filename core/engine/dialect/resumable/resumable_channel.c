/* Sends the messages of a resumable request that are not pieces of its result: entries of
 * the log such as questions. They are sent on the channel (the newest reply of the call)
 * between the pieces of the result, in the order of the log. A question is sent again,
 * under the same id, to each client that may not have received it (R-975-16). */
#include "engine/dialect/resumable/resumable.h"

#include "wire/json_copy.h"
#include "wire/log_level.h"

/* Appends the JSON-RPC id of the message that asks the client this question
 * (engine/input/question_id.h). The id is valid on every connection. */
static void add_id(const sgi_op *op, const sgi_op_question *input, sgi_buf *out)
{
    sgi_buf_add_char(out, '"');
    sgi_buf_add_str(out, sgi_str_of(op->task_id));
    sgi_buf_add_char(out, ':');
    sgi_buf_add_uint(out, input->asked);
    sgi_buf_add_char(out, '"');
}

void sgi_resumable_send_question(sgi_pieces *pieces, sgi_op_question *input)
{
    const sgi_op *op = pieces->cursor.reader.op;
    sgi_sending sending;
    sgi_buf id;
    input->awaited = true;
    sgi_buf_init(&id, sgi_engine_mem(op->engine));
    add_id(op, input, &id);
    sgi_send_begin_request_with_id(&sending, pieces->conn, sgi_buf_str(&id),
                                   sgi_str_of(input->method));
    sgi_jw_copy_members(&sending.w, (sgi_json){input->params, input->params_len}, NULL);
    sending.w.buf->failed |= id.failed;
    sgi_send_end(&sending);
    sgi_buf_free(&id);
}

/* True for a log message below the level that the session of this reply has now. The
 * level may have been another one when the message was written, or the message may come
 * from another server, which does not know the level. */
static bool is_unwanted(const sgi_reply *reply, sgi_str members)
{
    sgi_json params;
    return sgi_read_notification_members(members, "notifications/message", &params) &&
           sgi_log_level_parse_json(sgi_json_get(params, "level")) <
               sgi_reply_log_level(reply);
}

void sgi_resumable_send_entry(sgi_segment_reader *cursor, const sgi_entry *entry)
{
    sgi_pieces *pieces = SGI_OWNER(cursor, sgi_pieces, cursor);
    const sgi_resumable *r = sgi_resumable_of(cursor->reader.op);
    sgi_op_question *input = NULL;
    sgi_str text = {entry->data, entry->len};
    bool is_new = entry->seq > cursor->from;
    if (is_new)
        sgi_lasting_call_note_position(pieces->reply, entry->seq);
    if (entry->kind == SGI_ENTRY_INPUT_ASK)
        input = sgi_op_find_question_at(cursor->reader.op, entry->seq);
    if (input && !input->answered)
        /* a question without an answer is sent again, even to a client that has received
         * it */
        sgi_resumable_send_question(pieces, input);
    if (entry->kind == SGI_ENTRY_INPUT_ASK)
        return;
    if (is_new && entry->seq > r->notes.dropped && !is_unwanted(pieces->reply, text))
        sgi_send_notification_members(pieces->conn, text);
}

/* Withdraws the questions that no longer need an answer and that were sent to the client,
 * on this reply or an earlier one. */
void sgi_resumable_withdraw_questions(const sgi_pieces *pieces)
{
    const sgi_op *op = pieces->cursor.reader.op;
    const sgi_op_question *input;
    sgi_sending sending;
    sgi_buf id;
    sgi_buf_init(&id, sgi_engine_mem(op->engine));
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        if (input->answered || input->asked > sgi_op_horizon(op))
            continue;
        sgi_buf_truncate(&id, 0);
        add_id(op, input, &id);
        sgi_send_begin_notification(&sending, pieces->conn, "notifications/cancelled");
        sgi_jw_member_raw(&sending.w, "requestId", sgi_buf_str(&id));
        sending.w.buf->failed |= id.failed;
        sgi_send_end(&sending);
    }
    sgi_buf_free(&id);
}
