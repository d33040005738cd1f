/* The numbers of entries: the position in the log, the segment number and the event
 * number. An appended entry gets the next numbers. An entry from the store must have the
 * numbers that follow the log. */
#include "engine/log/dropping.h"
#include "engine/log/op_head.h"

static bool is_event(int32_t kind)
{
    /* true for the kinds of entries that the event stream of a task numbers as events
     * (R-E-2) */
    return kind <= SGI_ENTRY_STATUS;
}

/* Returns the segment number of the next entry of this kind. A segment gets the next
 * number. A replacement gets the number of the last segment that it makes void. Other
 * entries get 0. */
static uint64_t segment_of(const sgi_op *op, int32_t kind)
{
    if (kind == SGI_ENTRY_SEGMENT)
        return op->head.next_seg;
    return kind == SGI_ENTRY_REPLACE ? op->head.next_seg - 1 : 0;
}

void sgi_op_head_number_entry(const sgi_op *op, sgi_entry *entry)
{
    entry->seq = op->head.next_log;
    entry->segment = segment_of(op, entry->kind);
    entry->event = is_event(entry->kind) ? op->head.next_evt : 0;
}

/* Skips the numbers of dropped entries before this entry. Returns false when the numbers
 * of the entry cannot follow such a gap. */
static bool continues_behind_gap(sgi_op *op, const sgi_entry *entry)
{
    bool is_segment = entry->kind == SGI_ENTRY_SEGMENT;
    uint64_t expected = segment_of(op, entry->kind);
    bool has_number = is_segment || entry->kind == SGI_ENTRY_REPLACE;
    if (entry->seq < op->head.next_log || entry->segment < expected ||
        (!has_number && entry->segment) ||
        (is_event(entry->kind) ? entry->event < op->head.next_evt : entry->event != 0))
        return false;
    uint64_t before = entry->seq - 1;
    sgi_op_result *result = op->head.result;
    if (entry->seq > op->head.next_log)
        result->drop_upto[SGI_DROP_NOTES] = result->gone_upto[SGI_DROP_NOTES] = before;
    if (entry->segment > expected)
        result->drop_upto[SGI_DROP_SEGMENTS] = result->gone_upto[SGI_DROP_SEGMENTS] =
            before;
    return true;
}

/* True when the entry has the numbers that come next in the log. */
static bool continues(const sgi_op *op, const sgi_entry *entry)
{
    uint64_t event = is_event(entry->kind) ? op->head.next_evt : 0;
    return entry->seq == op->head.next_log && entry->event == event &&
           entry->segment == segment_of(op, entry->kind);
}

/* True when the entry can follow entries that the store has lost. Only an end without a
 * result can follow them. */
static bool fails_behind_hole(const sgi_op *op, const sgi_entry *entry)
{
    return sgi_entry_is_final(entry->kind) && entry->kind != SGI_ENTRY_RESULT &&
           entry->seq > op->head.next_log && !entry->segment && !entry->event;
}

/* True when the entry is an error behind the end of the operation. A commit whose answer
 * was lost has stored the end, and the next attempt was refused, so that the server ended
 * the operation with an error. The first end stands. */
static bool is_second_end(const sgi_op *op, const sgi_entry *entry)
{
    return sgi_op_has_ended(op) && sgi_entry_is_final(entry->kind) &&
           entry->kind != SGI_ENTRY_RESULT && entry->seq >= op->head.next_log;
}

/* True when a segment from the store fits its index: the segment begins the next block,
 * or continues a text block. If early blocks have left the log, only their number is
 * known, so only the range of the index is checked. */
static bool can_stand(const sgi_op *op, const sgi_entry *entry)
{
    sgi_str block;
    uint64_t index = sgi_op_head_index_of_block(op, entry, &block);
    const sgi_op_result *result = op->head.result;
    if (!sgi_op_log_has_whole_result(op))
        return index <= entry->segment - 1 - result->voided_seg;
    return index == result->blocks ||
           (sgi_text_blocks_has(&result->texts, index) && sgi_block_is_text(block));
}

segue_status sgi_op_apply_stored_entry(sgi_op *op, const sgi_entry *entry)
{
    if (is_second_end(op, entry)) {
        op->durable = entry->seq;
        op->head.next_log = entry->seq + 1;
        return SEGUE_OK;
    }
    bool needs_result =
        sgi_entry_is_of_result(entry->kind) || sgi_op_log_can_have_gaps(op);
    if (needs_result && !sgi_op_head_make_result(op))
        return SEGUE_E_NOMEM;
    bool fits = sgi_entry_is_known(entry->kind) && !sgi_op_has_ended(op) &&
                (continues(op, entry) || fails_behind_hole(op, entry) ||
                 (sgi_op_log_can_have_gaps(op) && continues_behind_gap(op, entry)));
    if (!fits || (entry->kind == SGI_ENTRY_SEGMENT && !can_stand(op, entry)) ||
        (entry->kind == SGI_ENTRY_TASK && op->head.tasking != SGI_TASKING_MAY))
        return SEGUE_E_STORE_CORRUPT;
    if (!sgi_op_head_apply_entry(op, entry))
        return SEGUE_E_NOMEM;
    sgi_op_head_note_visible(op, entry);
    op->durable = entry->seq;
    return SEGUE_OK;
}
