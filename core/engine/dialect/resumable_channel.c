/* What the channel of a request that can be resumed carries beside the result: entries
 * of its log that are messages of their own, in their place among the others. A question
 * goes out as often as somebody comes who may not have it, under the same id
 * (R-975-16). */
#include "engine/dialect/pieces.h"

#include "engine/serving/resumable.h"

static void send_question(sgi_pieces *pieces, const sgi_entry *entry)
{
    const sgi_op *op = pieces->cursor.reader.op;
    const sgi_input *input;
    sgi_sending sending;
    sgi_json_member member;
    sgi_buf id;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (input->asked == entry->seq)
            break;
    if (!input || input->answered)
        return;
    sgi_buf_init(&id, sgi_engine_mem(op->engine));
    sgi_resumable_ask_id(op->resumable, input, &id);
    sgi_send_request_as(&sending, pieces->conn, sgi_buf_str(&id),
                        sgi_str_of(input->method));
    sgi_json params = {input->params, input->params_len};
    for (size_t at = 0; sgi_json_next_member(params, &at, &member);) {
        sgi_jw_key_json(&sending.w, member.key);
        sgi_jw_raw(&sending.w, member.value);
    }
    sending.w.buf->failed |= id.failed;
    sgi_send_end(&sending);
    sgi_buf_free(&id);
}

void sgi_channel_send(sgi_cursor *cursor, const sgi_entry *entry)
{
    sgi_pieces *pieces = SGI_OWNER(cursor, sgi_pieces, cursor);
    const sgi_resumable *r = cursor->reader.op->resumable;
    sgi_str text = {entry->data, entry->len};
    bool is_new = entry->seq > cursor->from;
    if (is_new)
        sgi_resumable_mark(pieces->reply, entry->seq);
    if (entry->kind == SGI_ENTRY_INPUT_ASK)
        send_question(pieces, entry); /* delivered or not: it has no answer */
    else if (is_new && entry->seq > r->notes.dropped)
        sgi_send_members(pieces->conn, text);
}

/* Asked on this channel or one before it, and now without need of an answer. */
void sgi_channel_withdraw(const sgi_pieces *pieces)
{
    const sgi_op *op = pieces->cursor.reader.op;
    const sgi_input *input;
    sgi_sending sending;
    sgi_buf id;
    sgi_buf_init(&id, sgi_engine_mem(op->engine));
    TAILQ_FOREACH(input, &op->inputs, link) {
        if (input->answered || input->asked > sgi_op_horizon(op))
            continue;
        sgi_buf_cut(&id, 0);
        sgi_resumable_ask_id(op->resumable, input, &id);
        sgi_send_notification(&sending, pieces->conn, "notifications/cancelled");
        sgi_jw_member_raw(&sending.w, "requestId", sgi_buf_str(&id));
        sending.w.buf->failed |= id.failed;
        sgi_send_end(&sending);
    }
    sgi_buf_free(&id);
}
