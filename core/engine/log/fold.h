/* The merge of segments and fields into a result: one piece of code, used by the server
 * to render a result and by the client to collect one (R-C-8). */
#ifndef SGI_FOLD_H
#define SGI_FOLD_H

#include "engine/log/fields.h"
#include "engine/log/texts.h"

typedef struct sgi_fold {
    const char *list;  /* the member that the blocks make; NULL = there are none */
    sgi_buf content;   /* blocks joined by commas, without brackets */
    sgi_fields fields; /* members beside the content, last one wins */
    uint64_t count;    /* blocks in content */
    uint64_t segments; /* that were taken, with those that are void */
    uint64_t voided;   /* segments that were thrown away */
    sgi_texts texts;   /* which of the blocks are texts */
    size_t last;       /* where the last block begins in content */
    bool only_objects; /* structuredContent that is no object is not written */
    bool is_message;   /* pieces of one: text is joined, and one block is no list */
    bool
        ends_in_text; /* text was joined to the last block, whose JSON ends in a quote and
                          a brace */
    sgi_buf joints;   /* texts that go on in a block before the last: where, */
    sgi_buf joined;   /* ... and what is to stand there, between the quotes */
} sgi_fold;

/* The list is "content" until another is named. */
void sgi_fold_init(sgi_fold *fold, const sgi_env *env);
void sgi_fold_free(sgi_fold *fold);
/* Out of memory, or too many fields. */
bool sgi_fold_failed(const sgi_fold *fold);
/* Of its text; with too many fields it is larger than any limit. */
size_t sgi_fold_size(const sgi_fold *fold);

/* One content block, valid JSON: behind the others. */
void sgi_fold_segment(sgi_fold *fold, sgi_json block);
/* ... at its place in the list: behind the others, or its text goes on in the block that
 * is there. False: it has no place there. */
bool sgi_fold_placed(sgi_fold *fold, uint64_t place, sgi_json block);
/* Does the list have fewer blocks than there were segments? */
bool sgi_fold_has_joined(const sgi_fold *fold);
/* An object whose members replace those of the same name; _meta is merged key by key. */
void sgi_fold_fields(sgi_fold *fold, sgi_json members);
/* Throws away what came before. upto: number of the last segment that is void, which may
 * be more than were taken, because void segments leave the log. */
void sgi_fold_replace(sgi_fold *fold, uint64_t upto);

/* Writes the members of the result into an object that is open: the list (always, when it
 * has a name), the fields, and isError when set. extra_meta (members without braces, or
 * empty) is put in front of what _meta holds. */
void sgi_fold_write(const sgi_fold *fold, sgi_jw *w, bool is_error, sgi_str extra_meta);
/* The same without the list. */
void sgi_fold_write_fields(const sgi_fold *fold, sgi_jw *w, sgi_str extra_meta);
/* The blocks of the list alone, with commas between them. */
void sgi_fold_write_blocks(const sgi_fold *fold, sgi_buf *out);
/* The field of this name, if there is one that is written. */
void sgi_fold_write_field(const sgi_fold *fold, sgi_jw *w, const char *name);

#endif
