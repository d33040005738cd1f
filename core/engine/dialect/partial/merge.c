#include "engine/dialect/partial/merge.h"

#include "engine/response_modes.h"
#include "wire/json_copy.h"

#define INDEX_MAX (INT64_C(1) << 53)

void sgi_partial_merge_init(sgi_partial_merge *merge, const sgi_env *env,
                            const char *list)
{
    *merge =
        (sgi_partial_merge){.env = env, .list = list, .max_blocks = SGI_MERGE_BLOCKS_MAX};
    sgi_fold_init(&merge->fields, env);
    merge->fields.list = NULL;
}

static void free_text(sgi_partial_merge *merge, sgi_partial_merge_block *block)
{
    if (!block->text)
        return;
    sgi_fields_clear(&block->text->others);
    sgi_buf_free(&block->text->inside);
    sgi_free(merge->env->mem, block->text, sizeof *block->text);
    block->text = NULL;
}

static void drop_blocks(sgi_partial_merge *merge)
{
    while (merge->count) {
        sgi_partial_merge_block *block = &merge->blocks[--merge->count];
        free_text(merge, block);
        sgi_buf_free(&block->json);
    }
    merge->bytes = 0;
}

void sgi_partial_merge_free(sgi_partial_merge *merge)
{
    drop_blocks(merge);
    if (merge->blocks)
        sgi_free(merge->env->mem, merge->blocks, merge->room * sizeof *merge->blocks);
    merge->blocks = NULL;
    merge->room = 0;
    sgi_fold_free(&merge->fields);
}

static sgi_merged wrong(sgi_partial_merge *merge, const char *what)
{
    merge->wrong = what;
    return SGI_MERGE_WRONG;
}

/* ---- writing an object without some members ---- */

static void write_without(sgi_json object, const char *const *names, sgi_buf *out)
{
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_jw_copy_members(&w, object, names);
    sgi_jw_close(&w, '}');
}

/* ---- blocks ---- */

static bool grow(sgi_partial_merge *merge)
{
    if (merge->count < merge->room)
        return true;
    size_t room = merge->room ? merge->room * 2 : 16;
    sgi_partial_merge_block *blocks =
        sgi_realloc(merge->env->mem, merge->blocks, merge->room * sizeof *blocks,
                    room * sizeof *blocks);
    if (!blocks)
        return false;
    merge->blocks = blocks;
    merge->room = room;
    return true;
}

/* Copies the block into memory of exactly its size. A larger buffer would waste memory,
 * because a peer may send many small blocks. */
static bool set_json(sgi_partial_merge *merge, sgi_partial_merge_block *block,
                     sgi_json json)
{
    sgi_buf text = {.mem = merge->env->mem, .cap = json.n};
    text.p = sgi_alloc(merge->env->mem, json.n);
    if (!text.p)
        return false;
    sgi_buf_add_str(&text, json);
    sgi_buf_free(&block->json);
    block->json = text;
    return true;
}

static sgi_merged add_block(sgi_partial_merge *merge, sgi_json json)
{
    merge->full = merge->count >= merge->max_blocks;
    if (merge->full)
        return SGI_MERGE_LIMIT;
    if (!grow(merge))
        return SGI_MERGE_NOMEM;
    sgi_partial_merge_block *block = &merge->blocks[merge->count];
    *block = (sgi_partial_merge_block){.json = {.mem = merge->env->mem}};
    if (!set_json(merge, block, json))
        return SGI_MERGE_NOMEM;
    merge->count++;
    merge->bytes += json.n;
    return SGI_MERGED;
}

static sgi_str inside(sgi_json string)
{
    return (sgi_str){string.p + 1, string.n - 2};
}

/* Appends a piece to a text block. The texts are joined as JSON, without decoding their
 * escapes. Each other member of the piece replaces the older member of the same name. */
static void add_piece(sgi_partial_merge_text *text, sgi_json piece)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(piece, &at, &member);) {
        if (sgi_json_key_is(&member, "text"))
            sgi_buf_add_str(&text->inside, inside(member.value));
        else
            sgi_fields_add_member(&text->others, &member, member.value);
    }
}

/* Turns a stored block into a text block to which pieces can be appended. Returns false
 * when out of memory. */
static bool open_text(sgi_partial_merge *merge, sgi_partial_merge_block *block)
{
    if (block->text)
        return true;
    block->text = sgi_alloc(merge->env->mem, sizeof *block->text);
    if (!block->text)
        return false;
    sgi_fields_init(&block->text->others, merge->env);
    block->text->others.max = merge->fields.fields.max;
    sgi_buf_init(&block->text->inside, merge->env->mem);
    add_piece(block->text, sgi_buf_str(&block->json));
    sgi_buf_free(&block->json);
    return true;
}

static size_t size_of(const sgi_partial_merge_block *block)
{
    return block->text ? block->text->others.bytes + block->text->inside.len
                       : block->json.len;
}

/* Merges a piece into the block at this index: appends the text of a text block, and
 * replaces any other block. */
static sgi_merged go_on(sgi_partial_merge *merge, size_t index, sgi_json piece)
{
    sgi_partial_merge_block *block = &merge->blocks[index];
    size_t before = size_of(block);
    if (sgi_block_is_text(piece) &&
        (block->text || sgi_block_is_text(sgi_buf_str(&block->json)))) {
        if (!open_text(merge, block))
            return SGI_MERGE_NOMEM;
        add_piece(block->text, piece);
        if (block->text->others.failed || block->text->inside.failed)
            return SGI_MERGE_NOMEM;
        if (block->text->others.full)
            return SGI_MERGE_LIMIT;
    } else {
        if (!set_json(merge, block, piece))
            return SGI_MERGE_NOMEM;
        free_text(merge, block);
        merge->warnings++;
    }
    merge->bytes = merge->bytes - before + size_of(block);
    return SGI_MERGED;
}

/* Reads the index of a block or of a response. When `value` is missing, leaves *index
 * unchanged. Returns false when the index is invalid. */
static bool read_index(sgi_json value, int64_t *index)
{
    return !value.n ||
           (sgi_json_read_int(value, index) && *index >= 0 && *index < INDEX_MAX);
}

static sgi_merged take_block(sgi_partial_merge *merge, sgi_json block, int64_t index)
{
    index -= merge->base;
    if (merge->forgets && (index <= 0 || merge->lacks)) {
        merge->base += index >= 0 ? index + 1 : 0;
        return SGI_MERGED;
    }
    if (merge->lacks)
        return add_block(merge, block);
    if (index < 0 || index > (int64_t)merge->count)
        return wrong(merge, "the server left out a piece of the result");
    if (index < (int64_t)merge->count)
        return go_on(merge, (size_t)index, block);
    return add_block(merge, block);
}

/* Merges one block. *next: the index of the block when its response has _meta.index; -1 =
 * the block is appended. A member `index` of the block overrides *next. */
static sgi_merged take_item(sgi_partial_merge *merge, sgi_json item, int64_t *next,
                            sgi_partial_merge_block_fn each, void *user)
{
    static const char *const names[] = {"index", NULL};
    sgi_json own = sgi_json_get(item, "index");
    int64_t index = *next >= 0 ? *next : merge->base + (int64_t)merge->count;
    sgi_buf bare;
    if (sgi_json_kind_of(item) != SGI_JSON_OBJECT)
        return wrong(merge, "the server sent a block that is not an object");
    if (!read_index(own, &index))
        return wrong(merge,
                     "the server sent an index that is not a valid place in the list");
    sgi_buf_init(&bare, merge->env->mem);
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

/* Merges a list of blocks. repeats: number of blocks at the beginning of the list that
 * were merged before and are skipped. */
static sgi_merged take_list(sgi_partial_merge *merge, sgi_json list, int64_t index,
                            int64_t repeats, sgi_partial_merge_block_fn each, void *user)
{
    sgi_merged merged = SGI_MERGED;
    sgi_json item;
    int64_t count = 0;
    if (list.n && sgi_json_kind_of(list) != SGI_JSON_ARRAY)
        return wrong(merge, "the server sent a list of blocks that is not an array");
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

/* Stores _meta of a response without the members that say how to merge. These members are
 * not a part of the result. */
static void put_meta(sgi_partial_merge *merge, const sgi_json_member *whole)
{
    static const char *const names[] = {"hasMore",       "index",      "mergeStrategy",
                                        "dev.segue/seq", SGI_SEGMENTS, NULL};
    sgi_buf meta;
    sgi_buf_init(&meta, merge->env->mem);
    write_without(whole->value, names, &meta);
    if (meta.len > 2)
        sgi_fields_add_member(&merge->fields.fields, whole, sgi_buf_str(&meta));
    merge->fields.fields.failed |= meta.failed;
    sgi_buf_free(&meta);
}

/* Merges the members of a response outside the list. With mergeStrategy "append",
 * structuredContent is continued: objects are merged member by member, and arrays are
 * concatenated. Any other new value replaces the old value. */
static sgi_merged take_fields(sgi_partial_merge *merge, sgi_json result, bool appends)
{
    sgi_fields *fields = &merge->fields.fields;
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(result, &at, &member);) {
        if (sgi_json_key_is(&member, merge->list))
            continue;
        if (sgi_json_key_is(&member, "_meta") &&
            sgi_json_kind_of(member.value) == SGI_JSON_OBJECT)
            put_meta(merge, &member);
        else if (appends && sgi_json_key_is(&member, "structuredContent"))
            sgi_fields_continue_member(fields, &member, member.value);
        else
            sgi_fields_add_member(fields, &member, member.value);
    }
    return fields->failed ? SGI_MERGE_NOMEM : fields->full ? SGI_MERGE_LIMIT : SGI_MERGED;
}

/* ---- responses ---- */

/* Returns how many blocks at the beginning of this response have been merged already. */
static int64_t repeats_of(sgi_partial_merge *merge, sgi_json meta)
{
    int64_t first;
    if (!sgi_json_read_int(sgi_json_get(meta, "dev.segue/seq"), &first) || first <= 0 ||
        first >= INDEX_MAX)
        return 0;
    if (first < merge->next)
        return merge->next - first;
    merge->next = first;
    return 0;
}

sgi_merged sgi_partial_merge_add(sgi_partial_merge *merge, sgi_json result,
                                 sgi_partial_merge_block_fn each, void *user)
{
    sgi_json meta = sgi_json_get(result, "_meta");
    sgi_json strategy = sgi_json_get(meta, "mergeStrategy");
    int64_t index = -1;
    bool replaces = sgi_json_string_is(strategy, SGI_STR("replace"));
    bool appends = sgi_json_string_is(strategy, SGI_STR("append"));
    if (strategy.n && !replaces && !appends)
        return wrong(merge, "the server sent an unknown mergeStrategy");
    if (!read_index(sgi_json_get(meta, "index"), &index))
        return wrong(merge,
                     "the server sent an index that is not a valid place in the list");
    int64_t repeats = repeats_of(merge, meta);
    if (replaces && !repeats) {
        merge->base = 0;
        merge->lacks = false;
        drop_blocks(merge);
        sgi_fold_drop_replaced(&merge->fields, merge->fields.segments);
        merge->replacements++;
    }
    sgi_merged merged =
        take_list(merge, sgi_json_get(result, merge->list), index, repeats, each, user);
    return merged == SGI_MERGED ? take_fields(merge, result, appends) : merged;
}

static void write_block(const sgi_partial_merge_block *block, sgi_jw *w)
{
    sgi_fields_walk walk = {0};
    if (!block->text) {
        sgi_jw_raw(w, sgi_buf_str(&block->json));
        return;
    }
    sgi_jw_open(w, '{');
    while (sgi_fields_next(&block->text->others, &walk))
        sgi_fields_current_write(&walk, w);
    sgi_jw_key(w, "text");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_str(w->buf, sgi_buf_str(&block->text->inside));
    sgi_buf_add_char(w->buf, '"');
    sgi_jw_close(w, '}');
    w->buf->failed |= block->text->inside.failed || block->text->others.failed;
}

void sgi_partial_merge_write(const sgi_partial_merge *merge, sgi_jw *w)
{
    sgi_jw_key(w, merge->list);
    sgi_jw_open(w, '[');
    for (size_t i = 0; i < merge->count; i++)
        write_block(&merge->blocks[i], w);
    sgi_jw_close(w, ']');
    sgi_fold_write_fields(&merge->fields, w, (sgi_str){0});
}
