#include "engine/asking/merge.h"

#define INDEX_MAX (INT64_C(1) << 53)

void sgi_merge_init(sgi_merge *merge, const sgi_mem *mem, const char *list)
{
    *merge = (sgi_merge){.mem = mem, .list = list};
    sgi_fold_init(&merge->fields, mem);
    merge->fields.list = NULL;
}

static void drop_blocks(sgi_merge *merge)
{
    while (merge->count)
        sgi_buf_free(&merge->blocks[--merge->count]);
    merge->bytes = 0;
}

void sgi_merge_free(sgi_merge *merge)
{
    drop_blocks(merge);
    if (merge->blocks)
        sgi_release(merge->mem, merge->blocks, merge->room * sizeof *merge->blocks);
    merge->blocks = NULL;
    merge->room = 0;
    sgi_fold_free(&merge->fields);
}

static sgi_merged wrong(sgi_merge *merge, const char *what)
{
    merge->wrong = what;
    return SGI_MERGE_WRONG;
}

/* ---- members left out ---- */

static void write_member(sgi_jw *w, const sgi_json_member *member)
{
    sgi_jw_key_json(w, member->key);
    sgi_jw_raw(w, member->value);
}

static bool is_one_of(const sgi_json_member *member, const char *const *names)
{
    for (; *names; names++)
        if (sgi_json_key_is(member, *names))
            return true;
    return false;
}

static void write_without(sgi_json object, const char *const *names, sgi_buf *out)
{
    sgi_json_member member;
    sgi_jw w = sgi_jw_on(out);
    sgi_jw_open(&w, '{');
    for (size_t at = 0; sgi_json_next_member(object, &at, &member);)
        if (!is_one_of(&member, names))
            write_member(&w, &member);
    sgi_jw_close(&w, '}');
}

/* ---- blocks ---- */

static bool grow(sgi_merge *merge)
{
    if (merge->count < merge->room)
        return true;
    size_t room = merge->room ? merge->room * 2 : 16;
    sgi_buf *blocks = sgi_resize(merge->mem, merge->blocks, merge->room * sizeof *blocks,
                                 room * sizeof *blocks);
    if (!blocks)
        return false;
    merge->blocks = blocks;
    merge->room = room;
    return true;
}

static sgi_merged add_block(sgi_merge *merge, sgi_json block)
{
    if (!grow(merge))
        return SGI_MERGE_NOMEM;
    sgi_buf *text = &merge->blocks[merge->count];
    sgi_buf_init(text, merge->mem);
    sgi_buf_add_str(text, block);
    if (text->failed) {
        sgi_buf_free(text);
        return SGI_MERGE_NOMEM;
    }
    merge->count++;
    merge->bytes += block.n;
    return SGI_MERGED;
}

static bool is_text(sgi_json block)
{
    return sgi_json_string_is(sgi_json_get(block, "type"), SGI_STR("text")) &&
           sgi_json_kind_of(sgi_json_get(block, "text")) == SGI_JSON_STRING;
}

static sgi_str inside(sgi_json string)
{
    return (sgi_str){string.p + 1, string.n - 2};
}

/* Escapes stand for themselves, so two strings are one when their quotes meet. Other
 * members of the new piece win. */
static void write_longer(sgi_json old, sgi_json piece, sgi_buf *out)
{
    static const char *const text[] = {"text", NULL};
    sgi_fold others;
    sgi_buf mine, theirs;
    sgi_jw w = sgi_jw_on(out);
    sgi_fold_init(&others, out->mem);
    sgi_buf_init(&mine, out->mem);
    sgi_buf_init(&theirs, out->mem);
    others.list = NULL;
    write_without(old, text, &mine);
    write_without(piece, text, &theirs);
    sgi_fold_fields(&others, sgi_buf_str(&mine));
    sgi_fold_fields(&others, sgi_buf_str(&theirs));
    sgi_jw_open(&w, '{');
    sgi_fold_write(&others, &w, false, (sgi_str){0});
    sgi_jw_key(&w, "text");
    sgi_buf_add_char(out, '"');
    sgi_buf_add_str(out, inside(sgi_json_get(old, "text")));
    sgi_buf_add_str(out, inside(sgi_json_get(piece, "text")));
    sgi_buf_add_char(out, '"');
    sgi_jw_close(&w, '}');
    out->failed |= mine.failed || theirs.failed;
    sgi_buf_free(&mine);
    sgi_buf_free(&theirs);
    sgi_fold_free(&others);
}

/* A block that is there already: a text goes on, anything else is another. */
static sgi_merged go_on(sgi_merge *merge, size_t index, sgi_json piece)
{
    sgi_buf *block = &merge->blocks[index];
    sgi_buf longer;
    sgi_buf_init(&longer, merge->mem);
    if (is_text(sgi_buf_str(block)) && is_text(piece)) {
        write_longer(sgi_buf_str(block), piece, &longer);
    } else {
        sgi_buf_add_str(&longer, piece);
        merge->warnings++;
    }
    if (longer.failed) {
        sgi_buf_free(&longer);
        return SGI_MERGE_NOMEM;
    }
    merge->bytes = merge->bytes - block->len + longer.len;
    sgi_buf_free(block);
    *block = longer;
    return SGI_MERGED;
}

/* Of a block or of the response; *index stays as it is when there is none. */
static bool read_index(sgi_json value, int64_t *index)
{
    return !value.n || (sgi_json_int(value, index) && *index >= 0 && *index < INDEX_MAX);
}

static sgi_merged take_block(sgi_merge *merge, sgi_json block, int64_t index)
{
    index -= merge->base;
    if (index < 0 || index > (int64_t)merge->count)
        return wrong(merge, "a piece behind a hole");
    if (index < (int64_t)merge->count)
        return go_on(merge, (size_t)index, block);
    return add_block(merge, block);
}

/* One block; *next: the place that _meta.index gives it, -1 = behind the others. */
static sgi_merged take_item(sgi_merge *merge, sgi_json item, int64_t *next,
                            sgi_merge_block_fn each, void *user)
{
    static const char *const names[] = {"index", NULL};
    sgi_json own = sgi_json_get(item, "index");
    int64_t index = *next >= 0 ? *next : merge->base + (int64_t)merge->count;
    sgi_buf bare;
    if (sgi_json_kind_of(item) != SGI_JSON_OBJECT)
        return wrong(merge, "a block that is no object");
    if (!read_index(own, &index))
        return wrong(merge, "an index that is no place in a list");
    sgi_buf_init(&bare, merge->mem);
    if (own.n)
        write_without(item, names, &bare);
    else
        sgi_buf_add_str(&bare, item);
    sgi_merged merged =
        bare.failed ? SGI_MERGE_NOMEM : take_block(merge, sgi_buf_str(&bare), index);
    if (merged == SGI_MERGED && each)
        each(user, (uint64_t)index, sgi_buf_str(&bare));
    if (*next >= 0)
        *next = index + 1;
    sgi_buf_free(&bare);
    return merged;
}

/* repeats: so many were merged before. */
static sgi_merged take_list(sgi_merge *merge, sgi_json list, int64_t index,
                            int64_t repeats, sgi_merge_block_fn each, void *user)
{
    sgi_merged merged = SGI_MERGED;
    sgi_json item;
    int64_t count = 0;
    if (list.n && sgi_json_kind_of(list) != SGI_JSON_ARRAY)
        return wrong(merge, "a list of blocks that is none");
    for (size_t at = 0;
         merged == SGI_MERGED && list.n && sgi_json_next_item(list, &at, &item);) {
        if (count++ >= repeats)
            merged = take_item(merge, item, &index, each, user);
        else if (index >= 0)
            index++;
    }
    if (merge->next && count > repeats)
        merge->next += count - repeats;
    return merged;
}

/* ---- members beside the list ---- */

/* structuredContent of a response that says "append": objects shallowly, arrays one
 * behind the other; else the new one wins. */
static void write_appended(sgi_json old, sgi_json added, sgi_jw *w)
{
    sgi_json_kind kind = sgi_json_kind_of(added);
    sgi_fold both;
    if (!old.n || sgi_json_kind_of(old) != kind ||
        (kind != SGI_JSON_OBJECT && kind != SGI_JSON_ARRAY)) {
        sgi_jw_raw(w, added);
    } else if (kind == SGI_JSON_OBJECT) {
        sgi_fold_init(&both, w->buf->mem);
        both.list = NULL;
        sgi_fold_fields(&both, old);
        sgi_fold_fields(&both, added);
        sgi_jw_open(w, '{');
        sgi_fold_write(&both, w, false, (sgi_str){0});
        sgi_jw_close(w, '}');
        sgi_fold_free(&both);
    } else {
        sgi_json items[] = {old, added};
        sgi_json item;
        sgi_jw_open(w, '[');
        for (size_t i = 0; i < 2; i++)
            for (size_t at = 0; sgi_json_next_item(items[i], &at, &item);)
                sgi_jw_raw(w, item);
        sgi_jw_close(w, ']');
    }
}

static void write_meta(sgi_jw *w, sgi_json meta)
{
    static const char *const names[] = {"hasMore", "index", "mergeStrategy",
                                        "dev.segue/seq", NULL};
    sgi_json_member member;
    bool some = false;
    for (size_t at = 0; sgi_json_next_member(meta, &at, &member);) {
        if (is_one_of(&member, names))
            continue;
        if (!some) {
            sgi_jw_key(w, "_meta");
            sgi_jw_open(w, '{');
        }
        some = true;
        write_member(w, &member);
    }
    if (some)
        sgi_jw_close(w, '}');
}

static sgi_merged take_fields(sgi_merge *merge, sgi_json result, bool appends)
{
    sgi_json_member member;
    sgi_buf fields;
    sgi_buf_init(&fields, merge->mem);
    sgi_jw w = sgi_jw_on(&fields);
    sgi_jw_open(&w, '{');
    for (size_t at = 0; sgi_json_next_member(result, &at, &member);) {
        if (sgi_json_key_is(&member, merge->list))
            continue;
        if (appends && sgi_json_key_is(&member, "structuredContent")) {
            sgi_jw_key_json(&w, member.key);
            write_appended(
                sgi_json_get(sgi_buf_str(&merge->fields.fields), "structuredContent"),
                member.value, &w);
        } else if (sgi_json_key_is(&member, "_meta") &&
                   sgi_json_kind_of(member.value) == SGI_JSON_OBJECT) {
            write_meta(&w, member.value);
        } else {
            write_member(&w, &member);
        }
    }
    sgi_jw_close(&w, '}');
    if (!fields.failed && fields.len > 2)
        sgi_fold_fields(&merge->fields, sgi_buf_str(&fields));
    bool failed = fields.failed || sgi_fold_failed(&merge->fields);
    sgi_buf_free(&fields);
    return failed ? SGI_MERGE_NOMEM : SGI_MERGED;
}

/* ---- responses ---- */

/* How many of its segments were merged before. */
static int64_t repeats_of(sgi_merge *merge, sgi_json meta)
{
    int64_t first;
    if (!sgi_json_int(sgi_json_get(meta, "dev.segue/seq"), &first) || first <= 0 ||
        first >= INDEX_MAX)
        return 0;
    if (first < merge->next)
        return merge->next - first;
    merge->next = first;
    return 0;
}

sgi_merged sgi_merge_take(sgi_merge *merge, sgi_json result, sgi_merge_block_fn each,
                          void *user)
{
    sgi_json meta = sgi_json_get(result, "_meta");
    sgi_json strategy = sgi_json_get(meta, "mergeStrategy");
    int64_t index = -1;
    bool replaces = sgi_json_string_is(strategy, SGI_STR("replace"));
    bool appends = sgi_json_string_is(strategy, SGI_STR("append"));
    if (strategy.n && !replaces && !appends)
        return wrong(merge, "a mergeStrategy that is none");
    if (!read_index(sgi_json_get(meta, "index"), &index))
        return wrong(merge, "an index that is no place in a list");
    int64_t repeats = repeats_of(merge, meta);
    if (replaces && !repeats) {
        merge->base = 0;
        drop_blocks(merge);
        sgi_fold_replace(&merge->fields);
        merge->replacements++;
    }
    sgi_merged merged =
        take_list(merge, sgi_json_get(result, merge->list), index, repeats, each, user);
    return merged == SGI_MERGED ? take_fields(merge, result, appends) : merged;
}

void sgi_merge_write(const sgi_merge *merge, sgi_jw *w)
{
    sgi_jw_key(w, merge->list);
    sgi_jw_open(w, '[');
    for (size_t i = 0; i < merge->count; i++)
        sgi_jw_raw(w, sgi_buf_str(&merge->blocks[i]));
    sgi_jw_close(w, ']');
    sgi_fold_write_fields(&merge->fields, w, (sgi_str){0});
}
