/* A question, and its answer, as they are on the wire. */
#ifndef SGI_ASK_WIRE_H
#define SGI_ASK_WIRE_H

#include "engine/serving/ask_place.h"

/* The members of its params; a task's say which task, beside what the tool has in _meta.
 * Whether it is to be a task itself is not the tool's to say. */
void sgi_ask_write_params(sgi_jw *w, const sgi_op *op, const sgi_input *input);
/* Is it asked as a task there? The server is told to, and the client takes it. */
bool sgi_ask_is_task(const sgi_op *op, const sgi_input *input, const sgi_place *where);
/* The member task: how long it lives, and the modes of SEP-1905 that both sides know. */
void sgi_ask_write_task(sgi_jw *w, const sgi_op *op, const sgi_place *where);

/* What a result says of its task is for this library: the handler gets the answer as
 * other revisions carry it. Out of memory fails out. */
sgi_json sgi_ask_clean_answer(sgi_json result, sgi_buf *out);

#endif
