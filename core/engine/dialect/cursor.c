#include "engine/dialect/cursor.h"

void sgi_cursor_init(sgi_cursor *cursor, sgi_op *op, void (*ready)(sgi_reader *))
{
    sgi_fold_init(&cursor->fields, &op->engine->env);
    cursor->fields.only_objects = op->only_objects;
    cursor->voided = cursor->replaced = cursor->from = cursor->has = 0;
    cursor->mute = cursor->counts = false;
    cursor->other = NULL;
    sgi_reader_init(&cursor->reader, op, 0, ready);
}

void sgi_cursor_end(sgi_cursor *cursor)
{
    sgi_reader_end(&cursor->reader);
    sgi_fold_free(&cursor->fields);
}

/* A replacement is told with the segment behind it: a note between the two may be what
 * was delivered last. Of what was dropped a segment was the last. */
static bool is_told(const sgi_cursor *cursor, const sgi_entry *replacement)
{
    return cursor->reader.op->drop_upto[SGI_DROP_SEGMENTS] > replacement->seq;
}

/* What stands between segments; false when a message must end before it. */
static bool take_other(sgi_cursor *cursor, const sgi_entry *entry, bool fresh)
{
    if (entry->kind == SGI_ENTRY_FIELDS) {
        sgi_fold_fields(&cursor->fields, (sgi_str){entry->data, entry->len});
    } else if (entry->kind == SGI_ENTRY_REPLACE) {
        if (!fresh)
            return false;
        sgi_fold_replace(&cursor->fields);
        cursor->replaced = entry->segment;
        cursor->voided = is_told(cursor, entry) ? 0 : entry->segment;
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
