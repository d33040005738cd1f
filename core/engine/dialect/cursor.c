#include "engine/dialect/cursor.h"

void sgi_cursor_init(sgi_cursor *cursor, sgi_op *op, void (*ready)(sgi_reader *))
{
    sgi_fold_init(&cursor->fields, &op->engine->env);
    cursor->fields.only_objects = op->only_objects;
    cursor->voided = cursor->replaced = cursor->from = cursor->has = 0;
    cursor->mute = cursor->counts = cursor->just_voided = cursor->structured = false;
    cursor->other = NULL;
    sgi_reader_init(&cursor->reader, op, 0, ready);
    cursor->reader.tells = true;
}

void sgi_cursor_end(sgi_cursor *cursor)
{
    sgi_reader_end(&cursor->reader);
    sgi_fold_free(&cursor->fields);
}

/* A replacement is told with the segment behind it: a note between the two may be what
 * was delivered last. That segment may have left the log since, here or at another
 * server: then the first that is met has another number. */
static void meet_segment(sgi_cursor *cursor, uint64_t number)
{
    if (cursor->just_voided && number > cursor->voided + 1)
        cursor->voided = 0;
    cursor->just_voided = false;
}

/* What stands between segments; false when a message must end before it. */
static bool take_other(sgi_cursor *cursor, const sgi_entry *entry, bool fresh)
{
    if (entry->kind == SGI_ENTRY_FIELDS) {
        sgi_json fields = {entry->data, entry->len};
        sgi_fold_fields(&cursor->fields, fields);
        cursor->structured |= sgi_json_get(fields, "structuredContent").n > 0;
    } else if (entry->kind == SGI_ENTRY_REPLACE) {
        if (!fresh)
            return false;
        sgi_fold_replace(&cursor->fields, entry->segment);
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

static bool is_shown(const sgi_cursor *cursor, const sgi_entry *entry)
{
    if (entry->kind != SGI_ENTRY_SEGMENT || cursor->mute)
        return false;
    return cursor->counts ? entry->segment > cursor->has : entry->seq > cursor->from;
}

const sgi_entry *sgi_cursor_next(sgi_cursor *cursor, bool fresh)
{
    const sgi_entry *entry;
    while ((entry = sgi_reader_next(&cursor->reader)) && !is_shown(cursor, entry)) {
        if (!take_other(cursor, entry, fresh))
            return NULL;
        if (entry->kind == SGI_ENTRY_SEGMENT)
            cursor->voided = 0; /* it was told with this one */
        sgi_reader_advance(&cursor->reader);
    }
    if (entry)
        meet_segment(cursor, entry->segment);
    else if (sgi_reader_at_end(&cursor->reader))
        meet_segment(cursor, cursor->reader.op->next_seg);
    return entry;
}

void sgi_cursor_advance(sgi_cursor *cursor)
{
    sgi_reader_advance(&cursor->reader);
}

bool sgi_cursor_at_end(const sgi_cursor *cursor)
{
    return sgi_reader_at_end(&cursor->reader);
}

bool sgi_cursor_placed(const sgi_cursor *cursor, const sgi_entry *entry, sgi_str *block,
                       uint64_t *place)
{
    bool placed =
        sgi_entry_placed(entry, block, place) && !sgi_op_keeps_apart(cursor->reader.op);
    if (!placed)
        *place = entry->segment - 1 - cursor->replaced;
    return placed;
}
