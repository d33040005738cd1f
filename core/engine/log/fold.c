/* Content is large: blocks are appended as they come and never looked at again. */
#include "engine/log/fold.h"

void sgi_fold_init(sgi_fold *fold, const sgi_env *env)
{
    *fold = (sgi_fold){.list = "content"};
    sgi_buf_init(&fold->content, env->mem);
    sgi_fields_init(&fold->fields, env);
}

void sgi_fold_free(sgi_fold *fold)
{
    sgi_buf_free(&fold->content);
    sgi_fields_clear(&fold->fields);
}

bool sgi_fold_failed(const sgi_fold *fold)
{
    return fold->content.failed || fold->fields.failed || fold->fields.full;
}

size_t sgi_fold_size(const sgi_fold *fold)
{
    return fold->fields.full ? SIZE_MAX : fold->content.len + fold->fields.bytes;
}

/* A block of text, and nothing else, as this library writes them: its text, between the
 * quotes; empty p = it is another. */
static sgi_str plain_text(sgi_json block)
{
    static const char head[] = "{\"type\":\"text\",\"text\":\"";
    sgi_json text = sgi_json_get(block, "text");
    size_t n = sizeof head - 1;
    if (block.n < n + 2 || memcmp(block.p, head, n) != 0 || text.p + 1 != block.p + n ||
        text.n != block.n - n)
        return (sgi_str){0};
    return (sgi_str){text.p + 1, text.n - 2};
}

/* Is it more of the text that the message ends with? */
static bool join(sgi_fold *fold, sgi_json block)
{
    sgi_str text = plain_text(block);
    bool joins = text.p && fold->ends_in_text && !fold->content.failed;
    fold->ends_in_text = text.p != NULL;
    if (!joins)
        return false;
    sgi_buf_cut(&fold->content, fold->content.len - 2);
    sgi_buf_add_str(&fold->content, text);
    sgi_buf_add_lit(&fold->content, "\"}");
    return true;
}

void sgi_fold_segment(sgi_fold *fold, sgi_json block)
{
    if (fold->is_message && join(fold, block))
        return;
    if (fold->content.len)
        sgi_buf_add_char(&fold->content, ',');
    sgi_buf_add_str(&fold->content, block);
    fold->count++;
}

void sgi_fold_fields(sgi_fold *fold, sgi_json members)
{
    sgi_fields_take(&fold->fields, members);
}

void sgi_fold_replace(sgi_fold *fold)
{
    sgi_buf_reset(&fold->content, SIZE_MAX);
    sgi_fields_clear(&fold->fields);
    fold->voided += fold->count;
    fold->count = 0;
    fold->ends_in_text = false;
}

/* _meta that is an object has its own place: false when there is none. */
static bool find_meta(const sgi_fold *fold, sgi_fields_walk *walk)
{
    *walk = (sgi_fields_walk){0};
    while (sgi_fields_next(&fold->fields, walk))
        if (sgi_fields_walk_is(walk, "_meta"))
            return sgi_fields_walk_kind(walk) == SGI_JSON_OBJECT;
    return false;
}

static bool is_written(const sgi_fold *fold, const sgi_fields_walk *walk)
{
    if (sgi_fields_walk_kind(walk) == SGI_JSON_OBJECT)
        return !sgi_fields_walk_is(walk, "_meta");
    return !fold->only_objects || !sgi_fields_walk_is(walk, "structuredContent");
}

static void write_members(const sgi_fold *fold, sgi_jw *w)
{
    sgi_fields_walk walk = {0};
    while (sgi_fields_next(&fold->fields, &walk))
        if (is_written(fold, &walk))
            sgi_fields_walk_write(&walk, w);
}

void sgi_fold_write_field(const sgi_fold *fold, sgi_jw *w, const char *name)
{
    sgi_fields_walk walk = {0};
    while (sgi_fields_next(&fold->fields, &walk))
        if (sgi_fields_walk_is(&walk, name) && is_written(fold, &walk))
            sgi_fields_walk_write(&walk, w);
    w->buf->failed |= sgi_fold_failed(fold);
}

static void write_meta(const sgi_fold *fold, sgi_jw *w, sgi_str extra)
{
    sgi_fields_walk walk;
    bool found = find_meta(fold, &walk);
    if (!found && !extra.n)
        return;
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    if (extra.n) {
        sgi_buf_add_str(w->buf, extra);
        w->comma = true;
    }
    if (found)
        sgi_fields_walk_write_members(&walk, w);
    sgi_jw_close(w, '}');
}

void sgi_fold_write_fields(const sgi_fold *fold, sgi_jw *w, sgi_str extra_meta)
{
    write_members(fold, w);
    write_meta(fold, w, extra_meta);
    w->buf->failed |= sgi_fold_failed(fold);
}

static void write_list(const sgi_fold *fold, sgi_jw *w)
{
    sgi_str content = sgi_buf_str(&fold->content);
    sgi_jw_key(w, fold->list);
    if (fold->is_message && fold->count == 1) {
        sgi_jw_raw(w, content);
        return;
    }
    sgi_jw_open(w, '[');
    sgi_buf_add_str(w->buf, content);
    sgi_jw_close(w, ']');
}

void sgi_fold_write(const sgi_fold *fold, sgi_jw *w, bool is_error, sgi_str extra_meta)
{
    if (fold->list)
        write_list(fold, w);
    write_members(fold, w);
    if (is_error) {
        sgi_jw_key(w, "isError");
        sgi_jw_bool(w, true);
    }
    write_meta(fold, w, extra_meta);
    w->buf->failed |= sgi_fold_failed(fold);
}
