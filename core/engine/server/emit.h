/* Functions that build the parts of a result as entries of a list. The whole list is
 * later appended to the log. Each function returns false when out of memory. */
#ifndef SGI_EMIT_H
#define SGI_EMIT_H

#include "engine/server/call.h"

/* Adds an entry of this kind to the list. */
bool sgi_emit_add_entry(const sgi_mem *mem, struct sgi_entry_list *list, int32_t kind,
                        sgi_str payload);
/* Adds the blocks and the structuredContent of the content to the list. */
bool sgi_emit_add_content(const sgi_op *op, struct sgi_entry_list *list,
                          const segue_content *content);
/* Adds a segment with one block to the list. i: number of blocks that the list already
 * has. */
bool sgi_emit_add_block(const sgi_op *op, struct sgi_entry_list *list, size_t i,
                        sgi_str block);
/* Adds a field of the result to the list. name: any text. */
bool sgi_emit_add_field(const sgi_mem *mem, struct sgi_entry_list *list, sgi_str name,
                        sgi_json value);
/* Adds the member _meta to the list, without the members by which another server names
 * itself and its task. The library writes the own ones. */
bool sgi_emit_add_meta(const sgi_mem *mem, struct sgi_entry_list *list, sgi_json meta);
/* True for a field that the version of the call does not know: a cache hint (ttlMs,
 * cacheScope) in an answer of a version before 2026-07-28. Such a field is not sent. */
bool sgi_emit_is_untold(const sgi_op *op, sgi_str name);
/* True when a new segment must name the index of its block. While every segment has made
 * a new block, no segment needs an index: the index follows from the number of the
 * segment. */
bool sgi_emit_needs_place(const sgi_op *op);
/* Writes the beginning of a segment that names the index of its block. The text ends with
 * "]". */
void sgi_emit_write_place(sgi_buf *out, uint64_t place);
/* Describes the limit that a result has reached, and what the author of the result can
 * do. */
sgi_limit_text sgi_emit_describe_limit(const sgi_op *op);
/* Adds the final entry of a result to the list. If the result is too large for a plain
 * call, the function first makes the call a task. */
bool sgi_emit_add_final(segue_call *call, struct sgi_entry_list *list, bool is_error);
/* Refuses a text that is not UTF-8. what: names the text in the error's message. */
segue_status sgi_call_check_text(const segue_call *call, const char *what,
                                 const char *text);

#endif
