/* Each kind of entry has one function that applies it. They copy what they need out of
 * the payload; on lack of memory they change nothing, so an entry is applied whole or
 * not. */
#include "engine/log/op_head.h"

#include "engine/log/dropping.h"

#include "engine/serving/resumable.h"

static void free_input(const sgi_mem *mem, sgi_input *input)
{
    sgi_text_free(mem, input->key);
    sgi_text_free(mem, input->method);
    if (input->params)
        sgi_release(mem, input->params, input->params_len + 1);
    if (input->answer)
        sgi_release(mem, input->answer, input->answer_len + 1);
    sgi_release(mem, input, sizeof *input);
}

static void remove_remark(sgi_op *op, sgi_remark *remark)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    TAILQ_REMOVE(&op->remarks, remark, link);
    sgi_text_free(mem, remark->text);
    sgi_release(mem, remark, sizeof *remark);
}

static void forget_structured(sgi_op *op)
{
    if (op->structured)
        sgi_release(sgi_engine_mem(op->engine), op->structured, op->structured_len + 1);
    op->structured = NULL;
    op->structured_lost = false;
}

void sgi_head_free(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_input *input, *next;
    SGI_TAILQ_EACH(input, &op->inputs, link, next)
        free_input(mem, input);
    while (!TAILQ_EMPTY(&op->remarks))
        remove_remark(op, TAILQ_FIRST(&op->remarks));
    if (op->final_data)
        sgi_release(mem, op->final_data, op->final_len + 1);
    forget_structured(op);
    sgi_release(mem, op->checkpoint, op->checkpoint_len);
}

/* ---- state as a fold over the log ---- */

static bool keep_text(const sgi_mem *mem, char **slot, size_t *len, sgi_str text)
{
    char *copy = sgi_text_dup(mem, text);
    if (!copy)
        return false;
    if (*slot)
        sgi_release(mem, *slot, *len + 1);
    *slot = copy;
    *len = text.n;
    return true;
}

/* Up to the first NUL: this process writes none, but who knows what the store holds. */
static char *decode_text(const sgi_mem *mem, sgi_json value)
{
    sgi_buf text;
    sgi_buf_init(&text, mem);
    sgi_json_decode(value, &text);
    char *copy = sgi_buf_terminate(&text) ? sgi_text_dup(mem, sgi_str_of(text.p)) : NULL;
    sgi_buf_free(&text);
    return copy;
}

static sgi_remark *visible_remark(const sgi_op *op)
{
    uint64_t horizon = sgi_op_horizon(op);
    sgi_remark *remark;
    TAILQ_FOREACH_REVERSE(remark, &op->remarks, sgi_remark_list, link)
    if (remark->seq <= horizon)
        return remark;
    return NULL;
}

const char *sgi_op_status_message(const sgi_op *op)
{
    const sgi_remark *remark = visible_remark(op);
    return remark ? remark->text : NULL;
}

static bool apply_status(sgi_op *op, uint64_t seq, sgi_json payload)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_json message = sgi_json_get(payload, "statusMessage");
    if (!message.n)
        return true;
    sgi_remark *remark = sgi_alloc(mem, sizeof *remark);
    char *text = decode_text(mem, message);
    if (!remark || !text) {
        sgi_release(mem, remark, sizeof *remark);
        sgi_text_free(mem, text);
        return false;
    }
    sgi_remark *visible = visible_remark(op);
    while (visible && TAILQ_FIRST(&op->remarks) != visible)
        remove_remark(op, TAILQ_FIRST(&op->remarks));
    remark->seq = seq;
    remark->text = text;
    TAILQ_INSERT_TAIL(&op->remarks, remark, link);
    return true;
}

static bool apply_ask(sgi_op *op, uint64_t seq, sgi_json payload)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_input *input = sgi_zalloc(mem, sizeof *input);
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
    TAILQ_INSERT_TAIL(&op->inputs, input, link);
    op->input_count++;
    return true;
}

static bool apply_answer(sgi_op *op, uint64_t seq, sgi_json payload)
{
    sgi_str key;
    if (!sgi_json_plain_string(sgi_json_get(payload, "key"), &key))
        return true;
    sgi_input *input = sgi_op_input(op, key);
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
        !keep_text(sgi_engine_mem(op->engine), &op->final_data, &op->final_len, payload))
        return false;
    op->final = final;
    op->final_seq = seq;
    op->immediate = sgi_json_kind_of(sgi_json_get(payload, "immediate")) == SGI_JSON_TRUE;
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
    sgi_release(mem, op->checkpoint, op->checkpoint_len);
    op->checkpoint = copy;
    op->checkpoint_len = bytes.n;
    return true;
}

/* What is checked at the end: the log may have left memory by then. It never fails, as
 * an entry may stand behind others that are in force. */
static void note_structured(sgi_op *op, sgi_json members)
{
    if (!op->item || !op->item->has_output)
        return;
    sgi_json value = sgi_json_get(members, "structuredContent");
    if (!value.n)
        return;
    if (!op->server->options.on_validate)
        value.n = 0;
    op->structured_lost = !keep_text(sgi_engine_mem(op->engine), &op->structured,
                                     &op->structured_len, value);
}

/* Where a segment stands in the list. */
static uint64_t place_of(const sgi_op *op, const sgi_entry *entry, sgi_str *block)
{
    uint64_t place;
    return sgi_entry_placed(entry, block, &place) ? place
                                                  : entry->segment - 1 - op->voided_seg;
}

/* Can a segment of a stored log stand where it says? It begins the next block, or its
 * text goes on in a text. Of blocks that have left the log nothing is known, but that
 * each had a segment. */
static bool can_stand(const sgi_op *op, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t place = place_of(op, entry, &block);
    if (!sgi_op_is_whole(op))
        return place <= entry->segment - 1 - op->voided_seg;
    return place == op->blocks ||
           (sgi_texts_has(&op->texts, place) && sgi_block_is_text(block));
}

/* Counts the block, unless the segment continues a block that exists. */
static bool apply_segment(sgi_op *op, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t place = place_of(op, entry, &block);
    if (place < op->blocks)
        return true;
    bool is_text = sgi_block_is_text(block);
    if (place == op->blocks) {
        if (is_text && !sgi_texts_add(&op->texts, place))
            return false;
    } else { /* those between have left the log, and so have all before them */
        sgi_texts_begin(&op->texts, place);
        if (is_text)
            sgi_texts_add(&op->texts, place); /* the first needs no memory */
    }
    op->blocks = place + 1;
    return true;
}

static void apply_replace(sgi_op *op, const sgi_entry *entry)
{
    forget_structured(op);
    op->voided_seg = entry->segment;
    op->anew = op->blocks = 0;
    sgi_texts_begin(&op->texts, 0);
}

bool sgi_head_apply(sgi_op *op, const sgi_entry *entry)
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
        op->anew = op->blocks;
        break;
    default:
        if (sgi_entry_is_final(entry->kind))
            ok = apply_final(op, entry->kind, entry->seq, payload);
    }
    if (!ok)
        return false;
    op->next_log = entry->seq + 1;
    if (entry->kind == SGI_ENTRY_SEGMENT || entry->kind == SGI_ENTRY_REPLACE)
        op->next_seg = entry->segment + 1;
    if (entry->kind == SGI_ENTRY_REPLACE) {
        op->first_fields = 0; /* they are void too */
        op->voided_seq = entry->seq;
    } else if (entry->kind == SGI_ENTRY_FIELDS && !op->first_fields) {
        op->first_fields = entry->seq;
    }
    if (entry->event)
        op->next_evt = entry->event + 1;
    if (sgi_entry_is_final(entry->kind))
        op->ended_ms = entry->at_ms;
    op->log_bytes += entry->len;
    op->appended_bytes += entry->len;
    if (op->resumable)
        sgi_resumable_note_entry(op->resumable, entry);
    if (entry->event)
        sgi_op_note_event(op, entry);
    return true;
}

void sgi_head_show(sgi_op *op, const sgi_entry *entry)
{
    if (entry->kind != SGI_ENTRY_CHECKPOINT && entry->kind != SGI_ENTRY_PRESENCE &&
        entry->kind != SGI_ENTRY_ANEW && entry->at_ms > op->updated_ms)
        op->updated_ms = entry->at_ms;
}

static bool is_event(int32_t kind)
{
    return kind <= SGI_ENTRY_STATUS; /* the kinds that E numbers (R-E-2) */
}

/* A replacement carries the number of the last segment that it voids. */
static uint64_t segment_of(const sgi_op *op, int32_t kind)
{
    if (kind == SGI_ENTRY_SEGMENT)
        return op->next_seg;
    return kind == SGI_ENTRY_REPLACE ? op->next_seg - 1 : 0;
}

void sgi_head_number(const sgi_op *op, sgi_entry *entry)
{
    entry->seq = op->next_log;
    entry->segment = segment_of(op, entry->kind);
    entry->event = is_event(entry->kind) ? op->next_evt : 0;
}

/* The numbers of what was dropped are passed over. */
static bool continues_behind_gap(sgi_op *op, const sgi_entry *entry)
{
    bool is_segment = entry->kind == SGI_ENTRY_SEGMENT;
    uint64_t expected = segment_of(op, entry->kind);
    bool has_number = is_segment || entry->kind == SGI_ENTRY_REPLACE;
    if (entry->seq < op->next_log || entry->segment < expected ||
        (!has_number && entry->segment) ||
        (is_event(entry->kind) ? entry->event < op->next_evt : entry->event != 0))
        return false;
    uint64_t before = entry->seq - 1;
    if (entry->seq > op->next_log)
        op->drop_upto[SGI_DROP_NOTES] = op->gone_upto[SGI_DROP_NOTES] = before;
    if (entry->segment > expected)
        op->drop_upto[SGI_DROP_SEGMENTS] = op->gone_upto[SGI_DROP_SEGMENTS] = before;
    return true;
}

/* Is it what would have been appended next? */
static bool continues(const sgi_op *op, const sgi_entry *entry)
{
    uint64_t event = is_event(entry->kind) ? op->next_evt : 0;
    return entry->seq == op->next_log && entry->event == event &&
           entry->segment == segment_of(op, entry->kind);
}

/* What was lost by the store can only be followed by an end that promises nothing. */
static bool fails_behind_hole(const sgi_op *op, const sgi_entry *entry)
{
    return sgi_entry_is_final(entry->kind) && entry->kind != SGI_ENTRY_RESULT &&
           entry->seq > op->next_log && !entry->segment && !entry->event;
}

segue_status sgi_op_apply(sgi_op *op, const sgi_entry *entry)
{
    bool fits = sgi_entry_is_known(entry->kind) && !sgi_op_has_ended(op) &&
                (continues(op, entry) || fails_behind_hole(op, entry) ||
                 (sgi_op_may_have_gaps(op) && continues_behind_gap(op, entry)));
    if (!fits || (entry->kind == SGI_ENTRY_SEGMENT && !can_stand(op, entry)))
        return SEGUE_E_STORE_CORRUPT;
    if (!sgi_head_apply(op, entry))
        return SEGUE_E_NOMEM;
    sgi_head_show(op, entry);
    op->durable = entry->seq;
    return SEGUE_OK;
}
/* ---- what peers may see ---- */

bool sgi_input_is_open(const sgi_op *op, const sgi_input *input)
{
    uint64_t horizon = sgi_op_horizon(op);
    return input->asked <= horizon && !(input->answered && input->answered <= horizon);
}

sgi_state sgi_op_state(const sgi_op *op)
{
    const sgi_input *input;
    if (sgi_op_has_ended(op) && op->final_seq <= sgi_op_horizon(op)) {
        if (op->final == SGI_FINAL_CANCELLED)
            return SGI_STATE_CANCELLED;
        return op->final >= SGI_FINAL_ERROR ? SGI_STATE_FAILED : SGI_STATE_COMPLETED;
    }
    TAILQ_FOREACH(input, &op->inputs, link)
        if (sgi_input_is_open(op, input))
            return SGI_STATE_INPUT_REQUIRED;
    return SGI_STATE_WORKING;
}

sgi_input *sgi_op_input(sgi_op *op, sgi_str key)
{
    sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link)
        if (sgi_str_eq(sgi_str_of(input->key), key))
            return input;
    return NULL;
}

/* ---- taking back ---- */

void sgi_head_revert(sgi_op *op)
{
    const sgi_mem *mem = sgi_engine_mem(op->engine);
    sgi_input *input;
    TAILQ_FOREACH(input, &op->inputs, link) {
        if (input->answered > op->durable) {
            sgi_release(mem, input->answer, input->answer_len + 1);
            input->answer = NULL;
            input->answered = 0;
            input->failed = false;
        }
        if (input->asked > op->durable)
            input->asked = UINT64_MAX; /* never was; its handler still has to be told */
    }
    sgi_remark *remark;
    while ((remark = TAILQ_LAST(&op->remarks, sgi_remark_list)) &&
           remark->seq > op->durable)
        remove_remark(op, remark);
    if (op->final_data)
        sgi_release(mem, op->final_data, op->final_len + 1);
    op->final_data = NULL;
    op->final = SGI_FINAL_NONE;
    if (op->first_fields > op->durable)
        op->first_fields = 0;
}

/* ---- another head ---- */

/* The answer, and when: the question itself never changes. */
static void swap_answers(sgi_input *input, sgi_input *other)
{
    sgi_input kept = *input;
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
    sgi_input *input, *next;
    SGI_TAILQ_EACH(input, &fresh->inputs, link, next) {
        sgi_input *here = sgi_op_input(op, sgi_str_of(input->key));
        if (here) {
            swap_answers(here, input);
            continue;
        }
        TAILQ_REMOVE(&fresh->inputs, input, link);
        TAILQ_INSERT_TAIL(&op->inputs, input, link);
        op->input_count++;
    }
}

#define SWAP(type, member)                                                               \
    do {                                                                                 \
        type kept = op->member;                                                          \
        op->member = fresh->member;                                                      \
        fresh->member = kept;                                                            \
    } while (0)

void sgi_head_swap(sgi_op *op, sgi_op *fresh)
{
    op->next_log = fresh->next_log;
    op->next_seg = fresh->next_seg;
    op->next_evt = fresh->next_evt;
    op->durable = fresh->durable;
    op->first_fields = fresh->first_fields;
    op->voided_seq = fresh->voided_seq;
    op->voided_seg = fresh->voided_seg;
    op->anew = fresh->anew;
    op->blocks = fresh->blocks;
    memcpy(op->drop_upto, fresh->drop_upto, sizeof op->drop_upto);
    memcpy(op->gone_upto, fresh->gone_upto, sizeof op->gone_upto);
    op->log_bytes = fresh->log_bytes;
    op->appended_bytes = fresh->appended_bytes;
    op->updated_ms = fresh->updated_ms;
    op->ended_ms = fresh->ended_ms;
    op->final = fresh->final;
    op->final_seq = fresh->final_seq;
    op->immediate = fresh->immediate;
    op->structured_lost = fresh->structured_lost;
    SWAP(sgi_texts, texts);
    SWAP(char *, final_data);
    SWAP(size_t, final_len);
    SWAP(char *, structured);
    SWAP(size_t, structured_len);
    SWAP(void *, checkpoint);
    SWAP(size_t, checkpoint_len);
    SWAP(struct sgi_retention *, retention);
    while (!TAILQ_EMPTY(&op->remarks))
        remove_remark(op, TAILQ_FIRST(&op->remarks));
    TAILQ_CONCAT(&op->remarks, &fresh->remarks, link);
    swap_inputs(op, fresh);
}
