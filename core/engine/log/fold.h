/* A fold merges segments and fields into a result. The server uses a fold to write a
 * result, and the client uses a fold to collect a result (R-C-8). */
#ifndef SGI_FOLD_H
#define SGI_FOLD_H

#include "engine/log/fields.h"
#include "engine/log/text_blocks.h"

/* The opening of a fold whose list has the name "content". */
#define SGI_FOLD_OPENING "{\"content\":["

/* Says whether the last block of a fold is a plain text. */
typedef enum sgi_last_block {
    SGI_LAST_UNKNOWN = 0,
    SGI_LAST_IS_PLAIN, /* the last block is a text without other members */
    SGI_LAST_IS_OTHER
} sgi_last_block;

typedef struct sgi_fold {
    /* name of the result's member that is the list of blocks; NULL = the result has no
     * list */
    const char *list;
    /* the JSON texts of the blocks, joined by commas, without brackets; before them
     * stands the opening */
    sgi_buf content;
    /* The text of a result up to its first block; NULL = no such text. With an opening,
     * sgi_fold_move turns `content` into the result without copying the blocks. */
    const char *opening;
    /* the members besides the list; the last value of a name is used */
    sgi_fields fields;
    uint64_t count;    /* number of blocks in content */
    uint64_t segments; /* number of segments that were added, including void segments */
    uint64_t voided;   /* number of the last void segment; 0 = no segment became void */
    sgi_text_blocks texts; /* the set of blocks that are texts */
    size_t last;           /* position in `content` at which the last block begins */
    /* a structuredContent that is not an object is left out of the result */
    bool only_objects;
    /* the segments are pieces of one message: text pieces are joined, and a single block
     * has no list around it */
    bool is_message;
    sgi_last_block last_kind;
    /* for fold.c: an array with one `joint` for each text that continues an earlier
     * block; the joint names the block */
    sgi_buf joints;
    /* for fold.c: the texts that continue earlier blocks (joints), one after another,
     * without quotes */
    sgi_buf joined;
    /* each segment becomes a separate block, even if the segment names the index of
     * another block */
    bool keeps_segments;
} sgi_fold;

/* Makes an empty fold. The list has the name "content" until the caller sets `list`. */
void sgi_fold_init(sgi_fold *fold, const sgi_env *env);
void sgi_fold_free(sgi_fold *fold);
/* True when memory ran out, or when there were too many fields. */
bool sgi_fold_failed(const sgi_fold *fold);
/* Returns the number of bytes of the result's text. When there are too many fields,
 * returns a number above any limit. */
size_t sgi_fold_size(const sgi_fold *fold);

/* Appends one content block, which must be a valid JSON object. */
void sgi_fold_add_segment(sgi_fold *fold, sgi_json block);
/* Adds a content block with its index in the list. place: the index. If a text block has
 * this index, the new text is appended to that block. If the index is the end of the
 * list, the block is appended. Returns false in all other cases. */
bool sgi_fold_add_indexed_segment(sgi_fold *fold, uint64_t place, sgi_json block);
/* True when the list has fewer blocks than segments, because a text was joined to a
 * block. */
bool sgi_fold_has_joined_segments(const sgi_fold *fold);
/* Adds the members of an object. A new member replaces an earlier member of the same
 * name; _meta objects are merged key by key. */
void sgi_fold_add_fields(sgi_fold *fold, sgi_json members);
/* Drops all segments and fields that were added so far. upto: number of the last void
 * segment. This number can be higher than the number of added segments, because void
 * segments leave the log. */
void sgi_fold_drop_replaced(sgi_fold *fold, uint64_t upto);

/* Writes the members of the result into an open JSON object: the list (if it has a name),
 * the fields, and isError if `is_error` is true. extra_meta: members without braces that
 * are written at the beginning of _meta; can be empty. */
void sgi_fold_write(const sgi_fold *fold, sgi_jw *w, bool is_error, sgi_str extra_meta);
/* Makes the whole result, with braces, and moves it to `out`, which must be empty. The
 * blocks are not copied if the fold has an opening and no text continues an earlier
 * block. The fold is then empty. Returns false, and leaves the fold unchanged, when
 * memory runs out. */
bool sgi_fold_move(sgi_fold *fold, bool is_error, sgi_buf *out);
/* True when the fields say that the result is an error. */
bool sgi_fold_is_error(const sgi_fold *fold);
/* Writes the fields of the result into an open JSON object, without the list and without
 * isError. extra_meta: members without braces that are written at the beginning of
 * _meta. */
void sgi_fold_write_fields(const sgi_fold *fold, sgi_jw *w, sgi_str extra_meta);
/* Writes the blocks of the list, separated by commas, without brackets. */
void sgi_fold_write_blocks(const sgi_fold *fold, sgi_buf *out);
/* Writes the field of this name. Does nothing when there is no such field. */
void sgi_fold_write_field(const sgi_fold *fold, sgi_jw *w, const char *name);

#endif
