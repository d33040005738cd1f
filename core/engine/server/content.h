/* segue_content: the blocks of a result that the application is building. */
#ifndef SGI_CONTENT_H
#define SGI_CONTENT_H

#include "engine/log/call_kind.h"
#include "engine/engine.h"
#include "engine/handle.h"

struct segue_content {
    sgi_handle handle;
    sgi_buf blocks; /* the JSON texts of the blocks, joined by commas */
    /* one size_t for each block: the position in `blocks` at which the block ends */
    sgi_buf ends;
    /* the JSON text of structuredContent; empty = the content has no structuredContent */
    sgi_buf structured;
    bool is_error;
    /* The role of the prompt messages into which new blocks are wrapped, one message for
     * each block. NULL = new blocks are not wrapped. */
    const char *role;
    /* the forms of the blocks that were added so far: a set of sgi_shape */
    uint32_t shapes;
    char refusal[SGI_REFUSAL]; /* the reason why the last block was not added */
};

segue_content *sgi_content_new(sgi_engine *engine);
void sgi_content_free(segue_content *content);
segue_status sgi_content_add_text(segue_content *content, sgi_str text);
segue_status sgi_content_add_blob(segue_content *content, const char *type,
                                  const char *mime_type, const void *data, size_t len);
segue_status sgi_content_add_json(segue_content *content, const char *json, size_t len);
segue_status sgi_content_set_structured(segue_content *content, const char *json,
                                        size_t len);
segue_status sgi_content_add_resource(segue_content *content, const char *uri,
                                      const char *mime_type, const char *member,
                                      sgi_str text, bool encode);
segue_status sgi_content_set_role(segue_content *content, const char *role);
/* True when the blocks have the forms that a call of this kind may send. */
bool sgi_content_fits(const segue_content *content, const sgi_call_kind *kind);
size_t sgi_content_block_count(const segue_content *content);
sgi_json sgi_content_block(const segue_content *content, size_t index);

/* Appends the block {"type":"text","text":"..."}. */
void sgi_write_text_block(sgi_buf *out, sgi_str text);

#endif
