/* Writes questions in the form in which the client gets them, and reads the client's
 * answers. */
#ifndef SGI_QUESTION_WIRE_H
#define SGI_QUESTION_WIRE_H

#include "engine/server/question_target.h"

/* Writes the params of the question: the members that the tool gave. If the operation is
 * a task, _meta also names this task. A member `task` from the tool is left out. */
void sgi_question_write_params(sgi_jw *w, const sgi_op *op, const sgi_op_question *input);
/* True when a question is sent to this target as a task: the server's options allow tasks
 * for questions, and the client accepts tasks for this method. */
bool sgi_question_is_sent_as_task(const sgi_op *op, const sgi_op_question *input,
                                  const sgi_question_target *where);
/* Writes the member `task` of a question: the ttl, and the response modes of SEP-1905
 * that client and server know. */
void sgi_question_write_task(sgi_jw *w, const sgi_op *op,
                             const sgi_question_target *where);

/* Removes the members about tasks from the params of a question or from its answer, so
 * that both have the same form in each protocol version. Returns the new text in `out`,
 * or `value` if nothing was removed. When out of memory, out->failed is true. */
sgi_json sgi_question_strip_task_members(sgi_json value, sgi_buf *out);

#endif
