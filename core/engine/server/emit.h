/* Functions that build the parts of a result as entries of a list, which is then appended
 * to the log as a whole. They return false when out of memory. */
#ifndef SGI_EMIT_H
#define SGI_EMIT_H

#include "engine/server/call.h"

/* Adds a segment with a block. i: number of the blocks in the list before it. */
bool sgi_emit_add_block(const sgi_op *op, struct sgi_entry_list *list, size_t i,
                        sgi_str block);
/* Adds a field. name: any text. */
bool sgi_emit_add_field(const sgi_mem *mem, struct sgi_entry_list *list, sgi_str name,
                        sgi_json value);
/* Adds the final entry of a result. If the result is too large for a plain call, makes
 * the call a task first. */
bool sgi_emit_add_final(segue_call *call, struct sgi_entry_list *list, bool is_error);

#endif
