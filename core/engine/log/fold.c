/* The list of blocks can be large. So blocks are appended when they arrive, and are read
 * again only when the result is written. A text that continues a block other than the
 * last block is stored separately until the result is written. */
#include "engine/log/fold.h"

void sgi_fold_init(sgi_fold *fold, const sgi_env *env)
{
    *fold = (sgi_fold){.list = "content"};
    sgi_buf_init(&fold->content, env->mem);
    sgi_buf_init(&fold->joints, env->mem);
    sgi_buf_init(&fold->joined, env->mem);
    sgi_text_blocks_init(&fold->texts, env->mem);
    sgi_fields_init(&fold->fields, env);
}

void sgi_fold_free(sgi_fold *fold)
{
    sgi_buf_free(&fold->content);
    sgi_buf_free(&fold->joints);
    sgi_buf_free(&fold->joined);
    sgi_text_blocks_free(&fold->texts);
    sgi_fields_clear(&fold->fields);
}

bool sgi_fold_failed(const sgi_fold *fold)
{
    return fold->content.failed || fold->joints.failed || fold->joined.failed ||
           fold->fields.failed || fold->fields.full;
}

static size_t opening_size(const sgi_fold *fold)
{
    return fold->opening && fold->content.len ? strlen(fold->opening) : 0;
}

/* Returns the texts of the blocks, joined by commas. */
static sgi_str blocks_of(const sgi_fold *fold)
{
    size_t skipped = opening_size(fold);
    if (!skipped)
        return sgi_buf_str(&fold->content);
    return (sgi_str){fold->content.p + skipped, fold->content.len - skipped};
}

size_t sgi_fold_size(const sgi_fold *fold)
{
    size_t blocks = blocks_of(fold).n + fold->joints.len + fold->joined.len;
    return fold->fields.full ? SIZE_MAX : blocks + fold->fields.bytes;
}

/* ---- blocks ---- */

static void append(sgi_fold *fold, sgi_json block)
{
    if (fold->content.len)
        sgi_buf_add_char(&fold->content, ',');
    else if (fold->opening)
        sgi_buf_add_str(&fold->content, sgi_str_of(fold->opening));
    fold->last = fold->content.len;
    fold->last_kind = SGI_LAST_UNKNOWN;
    sgi_buf_add_str(&fold->content, block);
    if (sgi_block_is_text(block) && !sgi_text_blocks_add(&fold->texts, fold->count))
        fold->content.failed = true;
    fold->count++;
}

static sgi_str inside(sgi_json string)
{
    return (sgi_str){string.p + 1, string.n - 2};
}

/* True when the last block is a text without other members, so that the block ends with a
 * quote and a brace. The outcome is stored in last_kind, because a peer can continue a
 * long block by many short texts. */
static bool last_is_plain(sgi_fold *fold)
{
    sgi_str last = {fold->content.p + fold->last, fold->content.len - fold->last};
    if (fold->last_kind == SGI_LAST_UNKNOWN)
        fold->last_kind =
            sgi_block_plain_text(last).p ? SGI_LAST_IS_PLAIN : SGI_LAST_IS_OTHER;
    return fold->last_kind == SGI_LAST_IS_PLAIN;
}

/* Appends a text to the last block. Returns false when the last block has members other
 * than "type" and "text". */
static bool join_last(sgi_fold *fold, sgi_str text)
{
    sgi_buf *content = &fold->content;
    if (!last_is_plain(fold))
        return false;
    sgi_buf_shorten(content, content->len - 2);
    sgi_buf_add_str(content, text);
    sgi_buf_add_lit(content, "\"}");
    return true;
}

/* A joint: a text that continues a block other than the last block. The text is inserted
 * into its block when the result is written. */
typedef struct joint {
    uint64_t place;
    size_t at, len; /* position and length of the text in `joined` */
} joint;

static void join_later(sgi_fold *fold, uint64_t place, sgi_str text)
{
    joint j = {place, fold->joined.len, text.n};
    sgi_buf_add_str(&fold->joined, text);
    sgi_buf_add(&fold->joints, &j, sizeof j);
}

static void join(sgi_fold *fold, uint64_t place, sgi_json block)
{
    sgi_str text = inside(sgi_json_get(block, "text"));
    bool is_last = place + 1 == fold->count && !fold->content.failed;
    if (!is_last || !join_last(fold, text))
        join_later(fold, place, text);
}

void sgi_fold_add_segment(sgi_fold *fold, sgi_json block)
{
    bool may_join = fold->is_message && fold->count && !fold->content.failed;
    sgi_str text = may_join ? sgi_block_plain_text(block) : (sgi_str){0};
    fold->segments++;
    if (!text.p || !join_last(fold, text))
        append(fold, block);
}

bool sgi_fold_add_indexed_segment(sgi_fold *fold, uint64_t place, sgi_json block)
{
    bool goes_on = place < fold->count;
    if (place > fold->count || (goes_on && !(sgi_block_is_text(block) &&
                                             sgi_text_blocks_has(&fold->texts, place))))
        return false;
    fold->segments++;
    if (goes_on)
        join(fold, place, block);
    else
        append(fold, block);
    return true;
}

bool sgi_fold_has_joined_segments(const sgi_fold *fold)
{
    return !fold->is_message && fold->segments - fold->voided > fold->count;
}

void sgi_fold_add_fields(sgi_fold *fold, sgi_json members)
{
    sgi_fields_add_object(&fold->fields, members);
}

void sgi_fold_drop_replaced(sgi_fold *fold, uint64_t upto)
{
    sgi_buf_reset(&fold->content, SIZE_MAX);
    sgi_buf_reset(&fold->joints, SIZE_MAX);
    sgi_buf_reset(&fold->joined, SIZE_MAX);
    sgi_text_blocks_reset(&fold->texts, 0);
    sgi_fields_clear(&fold->fields);
    fold->voided = fold->segments = upto;
    fold->count = 0;
    fold->last_kind = SGI_LAST_UNKNOWN;
}

/* Finds the field _meta. Returns false when there is no such field, or when its value is
 * not a JSON object. */
static bool find_meta(const sgi_fold *fold, sgi_fields_walk *walk)
{
    *walk = (sgi_fields_walk){0};
    while (sgi_fields_next(&fold->fields, walk))
        if (sgi_fields_current_is(walk, "_meta"))
            return sgi_fields_current_kind(walk) == SGI_JSON_OBJECT;
    return false;
}

static bool is_written(const sgi_fold *fold, const sgi_fields_walk *walk)
{
    if (sgi_fields_current_kind(walk) == SGI_JSON_OBJECT)
        return !sgi_fields_current_is(walk, "_meta");
    return !fold->only_objects || !sgi_fields_current_is(walk, "structuredContent");
}

static void write_members(const sgi_fold *fold, sgi_jw *w)
{
    sgi_fields_walk walk = {0};
    while (sgi_fields_next(&fold->fields, &walk))
        if (is_written(fold, &walk))
            sgi_fields_current_write(&walk, w);
}

void sgi_fold_write_field(const sgi_fold *fold, sgi_jw *w, const char *name)
{
    sgi_fields_walk walk = {0};
    while (sgi_fields_next(&fold->fields, &walk))
        if (sgi_fields_current_is(&walk, name) && is_written(fold, &walk))
            sgi_fields_current_write(&walk, w);
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
        sgi_fields_current_write_members(&walk, w);
    sgi_jw_close(w, '}');
}

void sgi_fold_write_fields(const sgi_fold *fold, sgi_jw *w, sgi_str extra_meta)
{
    write_members(fold, w);
    write_meta(fold, w, extra_meta);
    w->buf->failed |= sgi_fold_failed(fold);
}

/* The joints (texts that continue an earlier block) of each block as a linked list, in
 * the order in which they were added. Joints are numbered from 1; 0 = no joint. */
typedef struct chains {
    const sgi_fold *fold;
    /* first[i]: number of the first joint (text that continues a block) of the block with
     * index i */
    uint32_t *first;
    /* next[i]: number of the joint (text that continues a block) that follows joint i + 1
     * in the same block */
    uint32_t *next;
} chains;

static joint joint_at(const sgi_fold *fold, size_t i)
{
    joint j;
    memcpy(&j, fold->joints.p + i * sizeof j, sizeof j);
    return j;
}

static void link_joints(chains *c)
{
    for (size_t i = c->fold->joints.len / sizeof(joint); i--;) {
        joint j = joint_at(c->fold, i);
        c->next[i] = c->first[j.place];
        c->first[j.place] = (uint32_t)i + 1;
    }
}

/* Writes a text block together with the later texts that continue the block (its joints).
 * from: number of the first of these texts. */
static void write_joined(const chains *c, sgi_buf *out, sgi_json block, uint32_t from)
{
    sgi_json text = sgi_json_get(block, "text");
    /* length of the block up to the closing quote of its text */
    size_t head = (size_t)(text.p + text.n - 1 - block.p);
    sgi_buf_add(out, block.p, head);
    for (; from; from = c->next[from - 1]) {
        joint j = joint_at(c->fold, from - 1);
        sgi_buf_add(out, c->fold->joined.p + j.at, j.len);
    }
    sgi_buf_add(out, block.p + head, block.n - head);
}

/* Writes the blocks, each with the later texts that continue the block (its joints). The
 * opening bracket of the list was written before. */
static void write_chained(const chains *c, sgi_buf *out)
{
    /* the blocks with brackets around them, so that they can be read as a JSON array */
    sgi_buf whole;
    sgi_json block;
    uint64_t place = 0;
    sgi_buf_init(&whole, out->mem);
    sgi_buf_add_char(&whole, '[');
    sgi_buf_add_str(&whole, blocks_of(c->fold));
    sgi_buf_add_char(&whole, ']');
    out->failed |= whole.failed;
    for (size_t at = 0;
         !whole.failed && sgi_json_next_item(sgi_buf_str(&whole), &at, &block); place++) {
        if (place)
            sgi_buf_add_char(out, ',');
        if (c->first[place])
            write_joined(c, out, block, c->first[place]);
        else
            sgi_buf_add_str(out, block);
    }
    sgi_buf_free(&whole);
}

void sgi_fold_write_blocks(const sgi_fold *fold, sgi_buf *out)
{
    size_t joints = fold->joints.len / sizeof(joint);
    size_t size = (joints + (size_t)fold->count) * sizeof(uint32_t);
    uint32_t *room = joints && !sgi_fold_failed(fold) ? sgi_zalloc(out->mem, size) : NULL;
    if (!joints) {
        sgi_buf_add_str(out, blocks_of(fold));
    } else if (!room) {
        out->failed = true;
    } else {
        chains c = {fold, room, room + fold->count};
        link_joints(&c);
        write_chained(&c, out);
        sgi_free(out->mem, room, size);
    }
}

static void write_list(const sgi_fold *fold, sgi_jw *w)
{
    sgi_jw_key(w, fold->list);
    if (fold->is_message && fold->count == 1) {
        sgi_jw_raw(w, blocks_of(fold));
        return;
    }
    sgi_jw_open(w, '[');
    sgi_fold_write_blocks(fold, w->buf);
    sgi_jw_close(w, ']');
}

static void write_rest(const sgi_fold *fold, sgi_jw *w, bool is_error, sgi_str extra_meta)
{
    write_members(fold, w);
    if (is_error) {
        sgi_jw_key(w, "isError");
        sgi_jw_bool(w, true);
    }
    write_meta(fold, w, extra_meta);
    w->buf->failed |= sgi_fold_failed(fold);
}

void sgi_fold_write(const sgi_fold *fold, sgi_jw *w, bool is_error, sgi_str extra_meta)
{
    if (fold->list)
        write_list(fold, w);
    write_rest(fold, w, is_error, extra_meta);
}

bool sgi_fold_is_error(const sgi_fold *fold)
{
    sgi_fields_walk walk = {0};
    while (sgi_fields_next(&fold->fields, &walk))
        if (sgi_fields_current_is(&walk, "isError") &&
            sgi_fields_current_kind(&walk) == SGI_JSON_TRUE)
            return true;
    return false;
}

/* Ends the list that `content` contains, and appends the other members. */
static bool move_content(sgi_fold *fold, bool is_error, sgi_buf *out)
{
    sgi_buf *content = &fold->content;
    size_t len = content->len;
    sgi_jw w = sgi_jw_to(content);
    sgi_jw_close(&w, ']');
    write_rest(fold, &w, is_error, (sgi_str){0});
    sgi_jw_close(&w, '}');
    if (content->failed) {
        sgi_buf_truncate(content, len);
        return false;
    }
    sgi_buf_free(out);
    *out = *content;
    sgi_buf_init(content, out->mem);
    sgi_fold_drop_replaced(fold, fold->voided);
    return true;
}

bool sgi_fold_move(sgi_fold *fold, bool is_error, sgi_buf *out)
{
    if (sgi_fold_failed(fold))
        return false;
    if (opening_size(fold) && !fold->joints.len)
        return move_content(fold, is_error, out);
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    sgi_fold_write(fold, &w, is_error, (sgi_str){0});
    sgi_jw_close(&w, '}');
    return !out->failed;
}
