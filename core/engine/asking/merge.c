#include "engine/asking/merge.h"

#include "engine/dialect/response_modes.h"

#define INDEX_MAX (INT64_C(1) << 53)

void sgi_merge_init(sgi_merge *merge, const sgi_env *env, const char *list)
{
    *merge = (sgi_merge){.env = env, .list = list, .max_blocks = SGI_MERGE_BLOCKS_MAX};
    sgi_fold_init(&merge->fields, env);
    merge->fields.list = NULL;
}

static void free_text(sgi_merge *merge, sgi_merge_block *block)
{
    if (!block->text)
        return;
    sgi_fields_clear(&block->text->others);
    sgi_buf_free(&block->text->inside);
    sgi_release(merge->env->mem, block->text, sizeof *block->text);
    block->text = NULL;
}

static void drop_blocks(sgi_merge *merge)
{
    while (merge->count) {
        sgi_merge_block *block = &merge->blocks[--merge->count];
        free_text(merge, block);
        sgi_buf_free(&block->json);
    }
    merge->bytes = 0;
}

void sgi_merge_free(sgi_merge *merge)
{
    drop_blocks(merge);
    if (merge->blocks)
        sgi_release(merge->env->mem, merge->blocks, merge->room * sizeof *merge->blocks);
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
    sgi_merge_block *blocks =
        sgi_resize(merge->env->mem, merge->blocks, merge->room * sizeof *blocks,
                   room * sizeof *blocks);
    if (!blocks)
        return false;
    merge->blocks = blocks;
    merge->room = room;
    return true;
}

/* In a room that is no larger: a peer may send very many small ones. */
static bool set_json(sgi_merge *merge, sgi_merge_block *block, sgi_json json)
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

static sgi_merged add_block(sgi_merge *merge, sgi_json json)
{
    merge->full = merge->count >= merge->max_blocks;
    if (merge->full)
        return SGI_MERGE_LIMIT;
    if (!grow(merge))
        return SGI_MERGE_NOMEM;
    sgi_merge_block *block = &merge->blocks[merge->count];
    *block = (sgi_merge_block){.json = {.mem = merge->env->mem}};
    if (!set_json(merge, block, json))
        return SGI_MERGE_NOMEM;
    merge->count++;
    merge->bytes += json.n;
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
static void add_piece(sgi_merge_text *text, sgi_json piece)
{
    sgi_json_member member;
    for (size_t at = 0; sgi_json_next_member(piece, &at, &member);) {
        if (sgi_json_key_is(&member, "text"))
            sgi_buf_add_str(&text->inside, inside(member.value));
        else
            sgi_fields_put(&text->others, &member, member.value);
    }
}

/* The text of a block becomes one that pieces are appended to. */
static bool open_text(sgi_merge *merge, sgi_merge_block *block)
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

static size_t size_of(const sgi_merge_block *block)
{
    return block->text ? block->text->others.bytes + block->text->inside.len
                       : block->json.len;
}

/* A block that is there already: a text goes on, anything else is another. */
static sgi_merged go_on(sgi_merge *merge, size_t index, sgi_json piece)
{
    sgi_merge_block *block = &merge->blocks[index];
    size_t before = size_of(block);
    if (is_text(piece) && (block->text || is_text(sgi_buf_str(&block->json)))) {
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

/* Of a block or of the response; *index stays as it is when there is none. */
static bool read_index(sgi_json value, int64_t *index)
{
    return !value.n || (sgi_json_int(value, index) && *index >= 0 && *index < INDEX_MAX);
}

static sgi_merged take_block(sgi_merge *merge, sgi_json block, int64_t index)
{
    index -= merge->base;
    if (merge->forgets && (index <= 0 || merge->lacks)) {
        merge->base += index >= 0 ? index + 1 : 0;
        return SGI_MERGED;
    }
    if (merge->lacks)
        return add_block(merge, block);
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

/* What is ours in _meta says how to merge, and is no part of the result. */
static void put_meta(sgi_merge *merge, const sgi_json_member *whole)
{
    static const char *const names[] = {"hasMore",       "index",      "mergeStrategy",
                                        "dev.segue/seq", SGI_SEGMENTS, NULL};
    sgi_buf meta;
    sgi_buf_init(&meta, merge->env->mem);
    write_without(whole->value, names, &meta);
    if (meta.len > 2)
        sgi_fields_put(&merge->fields.fields, whole, sgi_buf_str(&meta));
    merge->fields.fields.failed |= meta.failed;
    sgi_buf_free(&meta);
}

/* structuredContent of a response that says "append": objects shallowly, arrays one
 * behind the other; else the new one wins. */
static sgi_merged take_fields(sgi_merge *merge, sgi_json result, bool appends)
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
            sgi_fields_append(fields, &member, member.value);
        else
            sgi_fields_put(fields, &member, member.value);
    }
    return fields->failed ? SGI_MERGE_NOMEM : fields->full ? SGI_MERGE_LIMIT : SGI_MERGED;
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
        merge->lacks = false;
        drop_blocks(merge);
        sgi_fold_replace(&merge->fields, merge->fields.segments);
        merge->replacements++;
    }
    sgi_merged merged =
        take_list(merge, sgi_json_get(result, merge->list), index, repeats, each, user);
    return merged == SGI_MERGED ? take_fields(merge, result, appends) : merged;
}

static void write_block(const sgi_merge_block *block, sgi_jw *w)
{
    sgi_fields_walk walk = {0};
    if (!block->text) {
        sgi_jw_raw(w, sgi_buf_str(&block->json));
        return;
    }
    sgi_jw_open(w, '{');
    while (sgi_fields_next(&block->text->others, &walk))
        sgi_fields_walk_write(&walk, w);
    sgi_jw_key(w, "text");
    sgi_buf_add_char(w->buf, '"');
    sgi_buf_add_str(w->buf, sgi_buf_str(&block->text->inside));
    sgi_buf_add_char(w->buf, '"');
    sgi_jw_close(w, '}');
    w->buf->failed |= block->text->inside.failed || block->text->others.failed;
}

void sgi_merge_write(const sgi_merge *merge, sgi_jw *w)
{
    sgi_jw_key(w, merge->list);
    sgi_jw_open(w, '[');
    for (size_t i = 0; i < merge->count; i++)
        write_block(&merge->blocks[i], w);
    sgi_jw_close(w, ']');
    sgi_fold_write_fields(&merge->fields, w, (sgi_str){0});
}
