/* A fold merges segments and fields into a result. The server uses it to write a result,
 * and the client to collect one (R-C-8). */
#ifndef SGI_FOLD_H
#define SGI_FOLD_H

#include "engine/log/fields.h"
#include "engine/log/text_blocks.h"

/* What is known of the last block of a fold. */
typedef enum sgi_last_block {
    SGI_LAST_UNKNOWN = 0,
    SGI_LAST_IS_PLAIN, /* a text without other members */
    SGI_LAST_IS_OTHER
} sgi_last_block;

typedef struct sgi_fold {
    /* name of the member that is the list of blocks; NULL = the result has no list */
    const char *list;
    sgi_buf content;   /* the blocks of the list, joined by commas, without brackets */
    sgi_fields fields; /* the members beside the list; the last value of a name is used */
    uint64_t count;    /* number of blocks in content */
    uint64_t segments; /* number of segments that were added, void ones included */
    uint64_t voided;   /* number of segments that became void */
    sgi_text_blocks texts; /* which blocks are texts */
    size_t last;           /* position in `content` at which the last block begins */
    /* a structuredContent that is not an object is left out of the result */
    bool only_objects;
    /* the segments are pieces of one message: text pieces are joined, and a single block
     * has no list around it */
    bool is_message;
    sgi_last_block last_kind;
    /* for fold.c: an entry for each text that continues an earlier block; the entry says
     * which block */
    sgi_buf joints;
    /* for fold.c: the texts of all joints, one after another, without quotes */
    sgi_buf joined;
    /* each segment stays a block of its own, even if it names the index of another
     * block */
    bool keeps_segments;
} sgi_fold;

/* Makes an empty fold. The list is called "content" until `list` is set. */
void sgi_fold_init(sgi_fold *fold, const sgi_env *env);
void sgi_fold_free(sgi_fold *fold);
/* True when memory ran out, or when there were too many fields. */
bool sgi_fold_failed(const sgi_fold *fold);
/* Returns the size of the result's text in bytes. When there are too many fields, returns
 * a size above any limit. */
size_t sgi_fold_size(const sgi_fold *fold);

/* Appends one content block, which must be valid JSON. */
void sgi_fold_add_segment(sgi_fold *fold, sgi_json block);
/* Adds a content block with its index in the list (place). Appends the block, or appends
 * its text to the text block at that index. Returns false when neither is possible. */
bool sgi_fold_add_placed_segment(sgi_fold *fold, uint64_t place, sgi_json block);
/* True when the list has fewer blocks than there were segments. */
bool sgi_fold_has_joined(const sgi_fold *fold);
/* Adds the members of an object. A member replaces an earlier one of the same name; _meta
 * objects are merged key by key. */
void sgi_fold_add_fields(sgi_fold *fold, sgi_json members);
/* Drops all segments and fields that were added so far. upto: number of the last void
 * segment; it can be higher than the number of segments that were added, because void
 * segments leave the log. */
void sgi_fold_replace(sgi_fold *fold, uint64_t upto);

/* Writes the members of the result into an open object: the list (if it has a name), the
 * fields, and isError if set. extra_meta: members without braces, which are written
 * before the other members of _meta; may be empty. */
void sgi_fold_write(const sgi_fold *fold, sgi_jw *w, bool is_error, sgi_str extra_meta);
/* Writes the members of the result like sgi_fold_write, without the list. */
void sgi_fold_write_fields(const sgi_fold *fold, sgi_jw *w, sgi_str extra_meta);
/* Writes the blocks of the list alone, with commas between them. */
void sgi_fold_write_blocks(const sgi_fold *fold, sgi_buf *out);
/* Writes the field of this name, if there is one. */
void sgi_fold_write_field(const sgi_fold *fold, sgi_jw *w, const char *name);

#endif
