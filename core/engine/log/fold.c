/* Fields are few and small: kept as one object text, rewritten when a member is replaced.
 * Content is large: blocks are appended as they come and never looked at again. */
#include "engine/log/fold.h"

void sgi_fold_init(sgi_fold *fold, const sgi_mem *mem)
{
    *fold = (sgi_fold){.list = "content"};
    sgi_buf_init(&fold->content, mem);
    sgi_buf_init(&fold->fields, mem);
}

void sgi_fold_free(sgi_fold *fold)
{
    sgi_buf_free(&fold->content);
    sgi_buf_free(&fold->fields);
}

bool sgi_fold_failed(const sgi_fold *fold)
{
    return fold->content.failed || fold->fields.failed;
}

size_t sgi_fold_size(const sgi_fold *fold)
{
    return fold->content.len + fold->fields.len;
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

static sgi_json quoted(const sgi_json_member *member)
{
    return (sgi_json){member->key.p - 1, member->key.n + 2};
}

/* Compares decoded: two spellings of a name are one name. Out of memory fails out. */
static bool is_same_name(sgi_buf *out, const sgi_json_member *a, const sgi_json_member *b)
{
    if (!a->escaped && !b->escaped)
        return sgi_str_eq(a->key, b->key);
    if (!a->escaped)
        return sgi_json_string_is(quoted(b), a->key);
    if (!b->escaped)
        return sgi_json_string_is(quoted(a), b->key);
    sgi_buf name;
    sgi_buf_init(&name, out->mem);
    sgi_json_decode(quoted(a), &name);
    bool same = !name.failed && sgi_json_string_is(quoted(b), sgi_buf_str(&name));
    out->failed |= name.failed;
    sgi_buf_free(&name);
    return same;
}

static sgi_json find_same(sgi_buf *out, sgi_json object, const sgi_json_member *member)
{
    sgi_json_member other;
    for (size_t at = 0; sgi_json_next_member(object, &at, &other);)
        if (is_same_name(out, &other, member))
            return other.value;
    return (sgi_json){0};
}

static void write_member(sgi_jw *w, const sgi_json_member *member, sgi_json value)
{
    sgi_jw_key_json(w, member->key);
    sgi_jw_raw(w, value);
}

/* The members of a that b lacks, then those of b; an object in both is merged once more
 * when deep. */
static void write_merged(sgi_jw *w, sgi_json a, sgi_json b, bool deep)
{
    sgi_json_member member;
    sgi_jw_open(w, '{');
    for (size_t at = 0; sgi_json_next_member(a, &at, &member);)
        if (!find_same(w->buf, b, &member).n)
            write_member(w, &member, member.value);
    for (size_t at = 0; sgi_json_next_member(b, &at, &member);) {
        sgi_json old = deep ? find_same(w->buf, a, &member) : (sgi_json){0};
        if (sgi_json_key_is(&member, "_meta") && old.n &&
            sgi_json_kind_of(old) == SGI_JSON_OBJECT &&
            sgi_json_kind_of(member.value) == SGI_JSON_OBJECT) {
            sgi_jw_key(w, "_meta");
            write_merged(w, old, member.value, false);
        } else {
            write_member(w, &member, member.value);
        }
    }
    sgi_jw_close(w, '}');
}

void sgi_fold_fields(sgi_fold *fold, sgi_json members)
{
    if (fold->fields.failed)
        return; /* what is lost stays lost, whatever can be merged now */
    if (!fold->fields.len) {
        sgi_buf_add_str(&fold->fields, members);
        return;
    }
    sgi_buf merged;
    sgi_buf_init(&merged, fold->fields.mem);
    sgi_jw w = sgi_jw_on(&merged);
    write_merged(&w, sgi_buf_str(&fold->fields), members, true);
    if (merged.failed) {
        sgi_buf_free(&merged);
        fold->fields.failed = true;
        return;
    }
    sgi_buf_free(&fold->fields);
    fold->fields = merged;
}

void sgi_fold_replace(sgi_fold *fold)
{
    sgi_buf_reset(&fold->content, SIZE_MAX);
    sgi_buf_reset(&fold->fields, SIZE_MAX);
    fold->voided += fold->count;
    fold->count = 0;
    fold->ends_in_text = false;
}

static void write_meta(sgi_jw *w, sgi_str extra, sgi_json meta)
{
    sgi_json_member member;
    sgi_jw_key(w, "_meta");
    sgi_jw_open(w, '{');
    if (extra.n) {
        sgi_buf_add_str(w->buf, extra);
        w->comma = true;
    }
    for (size_t at = 0; sgi_json_next_member(meta, &at, &member);)
        write_member(w, &member, member.value);
    sgi_jw_close(w, '}');
}

static sgi_json meta_of(const sgi_fold *fold)
{
    sgi_json meta = sgi_json_get(sgi_buf_str(&fold->fields), "_meta");
    return sgi_json_kind_of(meta) == SGI_JSON_OBJECT ? meta : (sgi_json){0};
}

/* _meta that is an object has its own place. */
static bool is_written(const sgi_fold *fold, const sgi_json_member *member)
{
    bool is_object = sgi_json_kind_of(member->value) == SGI_JSON_OBJECT;
    if (is_object)
        return !sgi_json_key_is(member, "_meta");
    return !fold->only_objects || !sgi_json_key_is(member, "structuredContent");
}

static void write_members(const sgi_fold *fold, sgi_jw *w)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(sgi_buf_str(&fold->fields), &at, &member);)
        if (is_written(fold, &member))
            write_member(w, &member, member.value);
}

void sgi_fold_write_fields(const sgi_fold *fold, sgi_jw *w, sgi_str extra_meta)
{
    sgi_json meta = meta_of(fold);
    write_members(fold, w);
    if (meta.n || extra_meta.n)
        write_meta(w, extra_meta, meta);
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
    sgi_json meta = meta_of(fold);
    if (fold->list)
        write_list(fold, w);
    write_members(fold, w);
    if (is_error) {
        sgi_jw_key(w, "isError");
        sgi_jw_bool(w, true);
    }
    if (meta.n || extra_meta.n)
        write_meta(w, extra_meta, meta);
    w->buf->failed |= sgi_fold_failed(fold);
}
