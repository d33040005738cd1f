/* Each kind of entry has a function that applies the entry to the head of the operation
 * (the state that follows from its log). The function copies what it needs from the
 * payload. When out of memory, the function changes nothing, so an entry is applied
 * completely or not at all. */
#include "engine/log/op_head.h"

#include "engine/log/dropping.h"
#include "engine/log/observer.h"

static void free_input(const sgi_mem *mem, sgi_op_question *input)
{
    sgi_text_free(mem, input->key);
    sgi_text_free(mem, input->method);
    if (input->params)
        sgi_free(mem, input->params, input->params_len + 1);
    if (input->answer)
        sgi_free(mem, input->answer, input->answer_len + 1);
    sgi_free(mem, input, sizeof *input);
}

static void remove_remark(sgi_op *op, sgi_status_message *remark)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    TAILQ_REMOVE(&op->head.remarks, remark, link);
    sgi_text_free(mem, remark->text);
    sgi_free(mem, remark, sizeof *remark);
}

/* ---- the result so far ---- */

const sgi_op_result sgi_op_no_result;

static bool has_result(const sgi_op *op)
{
    return op->head.result != &sgi_op_no_result;
}

bool sgi_op_head_make_result(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    if (has_result(op))
        return true;
    sgi_op_result *result =
        op->start ? &op->start->result : sgi_alloc(mem, sizeof *result);
    if (!result)
        return false;
    *result = (sgi_op_result){.blocks = 0};
    sgi_text_blocks_init(&result->texts, mem);
    op->head.result = result;
    return true;
}

static void forget_structured(const sgi_op *op)
{
    sgi_op_result *result = op->head.result;
    if (result->structured)
        sgi_free(sgi_engine_mem(op->engine), result->structured,
                 result->structured_len + 1);
    result->structured = NULL;
    result->structured_lost = false;
}

static bool result_is_in_start(const sgi_op *op)
{
    return op->start && op->head.result == &op->start->result;
}

static void free_result(sgi_op *op)
{
    if (!has_result(op))
        return;
    forget_structured(op);
    sgi_text_blocks_free(&op->head.result->texts);
    if (!result_is_in_start(op))
        sgi_free(sgi_engine_mem(op->engine), op->head.result, sizeof *op->head.result);
    op->head.result = (sgi_op_result *)&sgi_op_no_result;
}

/* Gives `op` the result of `fresh`, which has none afterwards. This function needs no
 * memory: an operation that has no block `start` takes that of `fresh`, which nobody uses
 * after the exchange. */
static void take_result(sgi_op *op, sgi_op *fresh)
{
    free_result(op);
    if (!has_result(fresh))
        return;
    bool moves = result_is_in_start(fresh);
    if (moves && op->start) {
        op->start->result = *fresh->head.result;
        op->head.result = &op->start->result;
    } else {
        op->head.result = fresh->head.result;
        if (moves) {
            op->start = fresh->start;
            fresh->start = NULL;
        }
    }
    fresh->head.result = (sgi_op_result *)&sgi_op_no_result;
}

void sgi_op_head_free(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_op_question *input, *next;
    SGI_TAILQ_EACH(input, &op->head.inputs, link, next)
        free_input(mem, input);
    while (!TAILQ_EMPTY(&op->head.remarks))
        remove_remark(op, TAILQ_FIRST(&op->head.remarks));
    if (op->head.final_data)
        sgi_free(mem, op->head.final_data, op->head.final_len + 1);
    free_result(op);
    sgi_free(mem, op->head.checkpoint, op->head.checkpoint_len);
}

/* ---- the state as a fold over the log ---- */

static bool keep_text(const sgi_mem *mem, char **slot, size_t *len, sgi_str text)
{
    char *copy = sgi_text_dup(mem, text);
    if (!copy)
        return false;
    if (*slot)
        sgi_free(mem, *slot, *len + 1);
    *slot = copy;
    *len = text.n;
    return true;
}

/* Decodes a JSON string up to its first NUL. This library writes no NUL; a text in the
 * store may still contain a NUL. */
static char *decode_text(const sgi_mem *mem, sgi_json value)
{
    sgi_buf text;
    sgi_buf_init(&text, mem);
    sgi_json_decode(value, &text);
    char *copy = sgi_buf_terminate(&text) ? sgi_text_dup(mem, sgi_str_of(text.p)) : NULL;
    sgi_buf_free(&text);
    return copy;
}

static sgi_status_message *visible_remark(const sgi_op *op)
{
    uint64_t horizon = sgi_op_horizon(op);
    sgi_status_message *remark;
    TAILQ_FOREACH_REVERSE(remark, &op->head.remarks, sgi_status_message_list, link)
    if (remark->seq <= horizon)
        return remark;
    return NULL;
}

const char *sgi_op_status_message(const sgi_op *op)
{
    const sgi_status_message *remark = visible_remark(op);
    return remark ? remark->text : NULL;
}

static bool apply_status(sgi_op *op, uint64_t seq, sgi_json payload)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_json message = sgi_json_get(payload, "statusMessage");
    if (!message.n)
        return true;
    sgi_status_message *remark = sgi_alloc(mem, sizeof *remark);
    char *text = decode_text(mem, message);
    if (!remark || !text) {
        sgi_free(mem, remark, sizeof *remark);
        sgi_text_free(mem, text);
        return false;
    }
    sgi_status_message *visible = visible_remark(op);
    while (visible && TAILQ_FIRST(&op->head.remarks) != visible)
        remove_remark(op, TAILQ_FIRST(&op->head.remarks));
    remark->seq = seq;
    remark->text = text;
    TAILQ_INSERT_TAIL(&op->head.remarks, remark, link);
    return true;
}

static bool apply_ask(sgi_op *op, uint64_t seq, sgi_json payload)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_op_question *input = sgi_zalloc(mem, sizeof *input);
    if (!input)
        return false;
    sgi_json params = sgi_json_get(payload, "params");
    input->key = decode_text(mem, sgi_json_get(payload, "key"));
    input->method = decode_text(mem, sgi_json_get(payload, "method"));
    input->asked = seq;
    if (!input->key || !input->method ||
        !keep_text(mem, &input->params, &input->params_len, params)) {
        free_input(mem, input);
        return false;
    }
    TAILQ_INSERT_TAIL(&op->head.inputs, input, link);
    op->head.input_count++;
    return true;
}

static bool apply_answer(sgi_op *op, uint64_t seq, sgi_json payload)
{
    sgi_str key;
    if (!sgi_json_plain_string(sgi_json_get(payload, "key"), &key))
        return true;
    sgi_op_question *input = sgi_op_find_question(op, key);
    if (!input || input->answered)
        return true;
    sgi_json error = sgi_json_get(payload, "error");
    if (!keep_text(sgi_engine_mem(op->engine), &input->answer, &input->answer_len,
                   error.n ? error : sgi_json_get(payload, "response")))
        return false;
    input->failed = error.n > 0;
    input->answered = seq;
    return true;
}

static bool apply_final(sgi_op *op, int32_t kind, uint64_t seq, sgi_json payload)
{
    sgi_final final = SGI_FINAL_RESULT;
    if (kind == SGI_ENTRY_CANCELLED)
        final = SGI_FINAL_CANCELLED;
    else if (kind == SGI_ENTRY_ERROR)
        final = SGI_FINAL_ERROR;
    else if (kind == SGI_ENTRY_EXPIRED)
        final = SGI_FINAL_EXPIRED;
    else if (sgi_json_kind_of(sgi_json_get(payload, "isError")) == SGI_JSON_TRUE)
        final = SGI_FINAL_RESULT_IS_ERROR;
    if (final >= SGI_FINAL_ERROR && final != SGI_FINAL_CANCELLED &&
        !keep_text(sgi_engine_mem(op->engine), &op->head.final_data, &op->head.final_len,
                   payload))
        return false;
    op->head.final = final;
    op->head.final_seq = seq;
    op->head.immediate =
        sgi_json_kind_of(sgi_json_get(payload, "immediate")) == SGI_JSON_TRUE;
    return true;
}

static bool apply_checkpoint(sgi_op *op, sgi_str bytes)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    void *copy = bytes.n ? sgi_alloc(mem, bytes.n) : NULL;
    if (bytes.n && !copy)
        return false;
    if (bytes.n)
        memcpy(copy, bytes.p, bytes.n);
    sgi_free(mem, op->head.checkpoint, op->head.checkpoint_len);
    op->head.checkpoint = copy;
    op->head.checkpoint_len = bytes.n;
    return true;
}

/* Keeps structuredContent for the check at the end of the call, because the entry may
 * have left memory by then. Out of memory is only noted (structured_lost), because
 * earlier entries of the same list are already applied. */
static void note_structured(sgi_op *op, sgi_json members)
{
    if (op->output == SGI_OUTPUT_NONE)
        return;
    sgi_json value = sgi_json_get(members, "structuredContent");
    if (!value.n)
        return;
    if (op->output == SGI_OUTPUT_THERE)
        value.n = 0;
    op->head.result->structured_lost =
        !keep_text(sgi_engine_mem(op->engine), &op->head.result->structured,
                   &op->head.result->structured_len, value);
}

uint64_t sgi_op_head_index_of_block(const sgi_op *op, const sgi_entry *entry,
                                    sgi_str *block)
{
    uint64_t index;
    return sgi_entry_read_indexed_block(entry, block, &index)
               ? index
               : entry->segment - 1 - op->head.result->voided_seg;
}

/* Counts the block of a segment. Does nothing for a segment that continues an earlier
 * block. Returns false when out of memory. */
static bool apply_segment(sgi_op *op, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t index = sgi_op_head_index_of_block(op, entry, &block);
    if (index < op->head.result->blocks)
        return true;
    bool is_text = sgi_block_is_text(block);
    if (index == op->head.result->blocks) {
        if (is_text && !sgi_text_blocks_add(&op->head.result->texts, index))
            return false;
    } else { /* a gap: blocks before this block have left the log */
        sgi_text_blocks_reset(&op->head.result->texts, index);
        if (is_text)
            /* this call cannot fail, because the first block after a reset needs no
             * memory */
            sgi_text_blocks_add(&op->head.result->texts, index);
    }
    op->head.result->blocks = index + 1;
    return true;
}

static void apply_replace(sgi_op *op, const sgi_entry *entry)
{
    forget_structured(op);
    op->head.result->voided_seg = entry->segment;
    op->head.result->anew = op->head.result->blocks = 0;
    sgi_text_blocks_reset(&op->head.result->texts, 0);
}

static void apply_task(sgi_op *op, uint64_t seq, sgi_json payload)
{
    op->head.tasking = SGI_TASKING_YES;
    op->head.task_seq = seq;
    sgi_json_read_int(sgi_json_get(payload, "ttl"), &op->ttl_ms);
}

bool sgi_op_head_apply_entry(sgi_op *op, const sgi_entry *entry)
{
    sgi_str payload = {entry->data, entry->len};
    bool ok = true;
    switch (entry->kind) {
    case SGI_ENTRY_SEGMENT:
        ok = apply_segment(op, entry);
        break;
    case SGI_ENTRY_STATUS:
        ok = apply_status(op, entry->seq, payload);
        break;
    case SGI_ENTRY_INPUT_ASK:
        ok = apply_ask(op, entry->seq, payload);
        break;
    case SGI_ENTRY_INPUT_ANSWER:
        ok = apply_answer(op, entry->seq, payload);
        break;
    case SGI_ENTRY_CHECKPOINT:
        ok = apply_checkpoint(op, payload);
        break;
    case SGI_ENTRY_FIELDS:
        note_structured(op, payload);
        break;
    case SGI_ENTRY_REPLACE:
        apply_replace(op, entry);
        break;
    case SGI_ENTRY_ANEW:
        op->head.result->anew = op->head.result->blocks;
        break;
    case SGI_ENTRY_TASK:
        apply_task(op, entry->seq, payload);
        break;
    default:
        if (sgi_entry_is_final(entry->kind))
            ok = apply_final(op, entry->kind, entry->seq, payload);
    }
    if (!ok)
        return false;
    op->head.next_log = entry->seq + 1;
    if (entry->kind == SGI_ENTRY_SEGMENT || entry->kind == SGI_ENTRY_REPLACE)
        op->head.next_seg = entry->segment + 1;
    if (entry->kind == SGI_ENTRY_REPLACE) {
        op->head.result->first_fields = 0; /* the fields before a replacement are void */
        op->head.result->voided_seq = entry->seq;
    } else if (entry->kind == SGI_ENTRY_FIELDS && !op->head.result->first_fields) {
        op->head.result->first_fields = entry->seq;
    }
    if (entry->event)
        op->head.next_evt = entry->event + 1;
    if (sgi_entry_is_final(entry->kind))
        op->head.ended_ms = entry->at_ms;
    op->head.log_bytes += entry->len;
    op->head.appended_bytes += entry->len;
    if (op->drops)
        op->committer->observer->joined(op, entry);
    if (entry->event)
        sgi_op_count_event(op, entry);
    return true;
}

void sgi_op_head_note_visible(sgi_op *op, const sgi_entry *entry)
{
    if (entry->kind != SGI_ENTRY_CHECKPOINT && entry->kind != SGI_ENTRY_PRESENCE &&
        entry->kind != SGI_ENTRY_ANEW && entry->at_ms > op->head.updated_ms)
        op->head.updated_ms = entry->at_ms;
}

/* ---- what peers may see ---- */

sgi_state sgi_op_state(const sgi_op *op)
{
    const sgi_op_question *input;
    if (sgi_op_has_ended(op) && op->head.final_seq <= sgi_op_horizon(op)) {
        if (op->head.final == SGI_FINAL_CANCELLED)
            return SGI_STATE_CANCELLED;
        return op->head.final >= SGI_FINAL_ERROR ? SGI_STATE_FAILED : SGI_STATE_COMPLETED;
    }
    TAILQ_FOREACH(input, &op->head.inputs, link)
        if (sgi_op_question_is_open(op, input))
            return SGI_STATE_INPUT_REQUIRED;
    return SGI_STATE_WORKING;
}

/* ---- undoing entries ---- */

void sgi_op_head_revert(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_op_question *input;
    TAILQ_FOREACH(input, &op->head.inputs, link) {
        if (input->answered > op->durable) {
            sgi_free(mem, input->answer, input->answer_len + 1);
            input->answer = NULL;
            input->answered = 0;
            input->failed = false;
        }
        if (input->asked > op->durable)
            /* The question will never be sent; its handler must still get an outcome. */
            input->asked = UINT64_MAX;
    }
    sgi_status_message *remark;
    while ((remark = TAILQ_LAST(&op->head.remarks, sgi_status_message_list)) &&
           remark->seq > op->durable)
        remove_remark(op, remark);
    if (op->head.final_seq > op->durable) {
        if (op->head.final_data)
            sgi_free(mem, op->head.final_data, op->head.final_len + 1);
        op->head.final_data = NULL;
        op->head.final = SGI_FINAL_NONE;
        op->head.final_seq = 0;
    }
    if (op->head.result->first_fields > op->durable)
        op->head.result->first_fields = 0;
    if (op->head.task_seq > op->durable) {
        op->head.tasking = SGI_TASKING_MAY;
        op->head.task_seq = 0;
    }
}

void sgi_op_head_free_reverted_questions(sgi_op *op)
{
    sgi_op_question *input, *next;
    SGI_TAILQ_EACH(input, &op->head.inputs, link, next) {
        if (input->asked != UINT64_MAX)
            continue;
        TAILQ_REMOVE(&op->head.inputs, input, link);
        op->head.input_count--;
        free_input(sgi_engine_mem(op->engine), input);
    }
}

/* ---- exchanging heads ---- */

/* Swaps the answers, and the positions of the entries, of two copies of the same
 * question. Key, method and params of a question never change. */
static void swap_answers(sgi_op_question *input, sgi_op_question *other)
{
    sgi_op_question kept = *input;
    input->awaited = kept.awaited && kept.asked == other->asked;
    input->asked = other->asked;
    input->answered = other->answered;
    input->answer = other->answer;
    input->answer_len = other->answer_len;
    input->failed = other->failed;
    other->answer = kept.answer;
    other->answer_len = kept.answer_len;
}

static void swap_inputs(sgi_op *op, sgi_op *fresh)
{
    sgi_op_question *input, *next;
    SGI_TAILQ_EACH(input, &fresh->head.inputs, link, next) {
        sgi_op_question *here = sgi_op_find_question(op, sgi_str_of(input->key));
        if (here) {
            swap_answers(here, input);
            continue;
        }
        TAILQ_REMOVE(&fresh->head.inputs, input, link);
        TAILQ_INSERT_TAIL(&op->head.inputs, input, link);
        op->head.input_count++;
    }
}

#define SWAP(type, member)                                                               \
    do {                                                                                 \
        type kept = op->member;                                                          \
        op->member = fresh->member;                                                      \
        fresh->member = kept;                                                            \
    } while (0)

void sgi_op_head_swap(sgi_op *op, sgi_op *fresh)
{
    op->head.next_log = fresh->head.next_log;
    op->head.next_seg = fresh->head.next_seg;
    op->head.next_evt = fresh->head.next_evt;
    op->head.tasking = fresh->head.tasking;
    op->head.task_seq = fresh->head.task_seq;
    op->ttl_ms = fresh->ttl_ms;
    op->durable = fresh->durable;
    op->head.log_bytes = fresh->head.log_bytes;
    op->head.appended_bytes = fresh->head.appended_bytes;
    op->head.updated_ms = fresh->head.updated_ms;
    op->head.ended_ms = fresh->head.ended_ms;
    op->head.final = fresh->head.final;
    op->head.final_seq = fresh->head.final_seq;
    op->head.immediate = fresh->head.immediate;
    take_result(op, fresh);
    SWAP(char *, head.final_data);
    SWAP(size_t, head.final_len);
    SWAP(void *, head.checkpoint);
    SWAP(size_t, head.checkpoint_len);
    SWAP(struct sgi_retention *, retention);
    while (!TAILQ_EMPTY(&op->head.remarks))
        remove_remark(op, TAILQ_FIRST(&op->head.remarks));
    TAILQ_CONCAT(&op->head.remarks, &fresh->head.remarks, link);
    swap_inputs(op, fresh);
}
