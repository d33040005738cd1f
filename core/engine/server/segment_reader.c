#include "engine/server/segment_reader.h"

#include "engine/server/served.h"

void sgi_segment_reader_init(sgi_segment_reader *cursor, sgi_op *op,
                             void (*ready)(sgi_reader *))
{
    sgi_fold_init(&cursor->fields, &op->engine->env);
    cursor->fields.only_objects = op->served->only_objects;
    cursor->voided = cursor->replaced = cursor->from = cursor->has = cursor->shown = 0;
    cursor->mute = cursor->counts = cursor->just_voided = cursor->structured = false;
    cursor->other = NULL;
    sgi_reader_init(&cursor->reader, op, 0, ready);
    cursor->reader.tells = true;
}

void sgi_segment_reader_end(sgi_segment_reader *cursor)
{
    sgi_reader_end(&cursor->reader);
    sgi_fold_free(&cursor->fields);
}

/* Decides whether a replacement of earlier segments is reported to the client with this
 * segment. A replacement is reported with the first segment after it. If that first
 * segment has left the log, the client has already received it together with the report,
 * so no report is needed. */
static void meet_segment(sgi_segment_reader *cursor, uint64_t number)
{
    if (cursor->just_voided && number > cursor->voided + 1)
        cursor->voided = 0;
    cursor->just_voided = false;
}

/* Handles an entry of another kind than segments: fields, a replacement, a note or a
 * question. Returns false when the message must end before this entry. */
static bool take_other(sgi_segment_reader *cursor, const sgi_entry *entry, bool fresh)
{
    if (entry->kind == SGI_ENTRY_FIELDS) {
        sgi_json fields = {entry->data, entry->len};
        sgi_fold_add_fields(&cursor->fields, fields);
        cursor->structured |= sgi_json_get(fields, "structuredContent").n > 0;
    } else if (entry->kind == SGI_ENTRY_REPLACE) {
        if (!fresh)
            return false;
        sgi_fold_drop_replaced(&cursor->fields, entry->segment);
        cursor->structured = false;
        cursor->replaced = entry->segment;
        cursor->voided = entry->segment;
        cursor->just_voided = true;
    } else if (cursor->other &&
               (entry->kind == SGI_ENTRY_NOTIFY || entry->kind == SGI_ENTRY_INPUT_ASK)) {
        if (!fresh)
            return false;
        cursor->other(cursor, entry);
    }
    return true;
}

static bool is_shown(const sgi_segment_reader *cursor, const sgi_entry *entry)
{
    if (entry->kind != SGI_ENTRY_SEGMENT || cursor->mute)
        return false;
    return cursor->counts ? entry->segment > cursor->has : entry->seq > cursor->from;
}

const sgi_entry *sgi_segment_reader_next(sgi_segment_reader *cursor, bool fresh)
{
    const sgi_entry *entry;
    while ((entry = sgi_reader_next(&cursor->reader)) && !is_shown(cursor, entry)) {
        if (!take_other(cursor, entry, fresh))
            return NULL;
        if (entry->kind == SGI_ENTRY_SEGMENT)
            /* The client received the report of the replacement with this segment, so no
             * second report is needed. */
            cursor->voided = 0;
        sgi_reader_advance(&cursor->reader);
    }
    if (entry)
        meet_segment(cursor, entry->segment);
    else if (sgi_reader_at_end(&cursor->reader))
        meet_segment(cursor, cursor->reader.op->head.next_seg);
    return entry;
}

void sgi_segment_reader_advance(sgi_segment_reader *cursor)
{
    sgi_reader_advance(&cursor->reader);
    cursor->shown = cursor->reader.segment;
}

bool sgi_segment_reader_at_end(const sgi_segment_reader *cursor)
{
    return sgi_reader_at_end(&cursor->reader);
}

bool sgi_segment_reader_read_indexed_block(const sgi_segment_reader *cursor,
                                           const sgi_entry *entry, sgi_str *block,
                                           uint64_t *place)
{
    bool placed = sgi_entry_read_indexed_block(entry, block, place) &&
                  !sgi_op_keeps_segments_apart(cursor->reader.op);
    if (!placed)
        *place = entry->segment - 1 - cursor->replaced;
    return placed;
}
