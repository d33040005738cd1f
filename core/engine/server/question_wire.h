/* Writes questions to the client, and reads their answers, in the form of the
 * protocol. */
#ifndef SGI_QUESTION_WIRE_H
#define SGI_QUESTION_WIRE_H

#include "engine/server/question_target.h"

/* Writes the params of the question: the members that the tool gave and, in _meta, the
 * task that asks, if the operation is a task. A member `task` that the tool gave is left
 * out. */
void sgi_question_write_params(sgi_jw *w, const sgi_op *op, const sgi_input *input);
/* True when the question is sent on this stream as a task: the server's options allow it,
 * and the client accepts it. */
bool sgi_question_is_task(const sgi_op *op, const sgi_input *input,
                          const sgi_question_target *where);
/* Writes the member `task` of a question: its ttl, and the response modes of SEP-1905
 * that both sides know. */
void sgi_question_write_task(sgi_jw *w, const sgi_op *op,
                             const sgi_question_target *where);

/* Removes the members about the task from a result, so that the handler gets the answer
 * in the same form in each revision. When out of memory, `out` fails. */
sgi_json sgi_question_strip_task_members(sgi_json result, sgi_buf *out);

#endif
