/* What the dialects of tasks share: the look-up of a task, and the members that all of
 * them write. */
#ifndef SGI_TASK_FORM_H
#define SGI_TASK_FORM_H

#include "engine/server/dialects.h"

#define SGI_TASK_NOT_FOUND "Failed to retrieve task: Task not found"

/* ---- writing a task ---- */

/* Returns the name of a state in dialects X and D, such as "working". */
const char *sgi_state_name(sgi_state state);

/* The members whose names differ between dialects. All other members have the same names
 * in each dialect. */
typedef struct sgi_task_names {
    const char *ttl, *poll;
    int64_t ttl_unit_ms; /* unit in which the ttl member is written, in ms; 0 = 1 ms */
} sgi_task_names;

/* Writes taskId, status, statusMessage, timestamps, ttl and poll interval into an open
 * object. */
void sgi_task_write(sgi_jw *w, const sgi_op *op, const char *status,
                    const sgi_task_names *names);
/* Writes "inputRequests":{...} with all open questions. */
void sgi_task_write_inputs(sgi_jw *w, const sgi_op *op);
/* Writes members of _meta for a client that may have received segments of the result: the
 * number of the last replaced segment, if there is one, and the number of segments, if
 * some of them continue earlier texts, so that there are more segments than blocks. */
void sgi_task_write_void_segments(sgi_buf *meta, const sgi_fold *fold);
/* Writes the members of a completed task that are its result (dialects D and X). */
void sgi_task_write_result(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
/* Writes the member _meta with related-task into an open object. */
void sgi_task_write_related(sgi_jw *w, const sgi_op *op);
/* Returns the member of _meta that names the task (related-task), without braces. `out`
 * is emptied first and may fail. */
sgi_str sgi_task_related(sgi_buf *out, const sgi_op *op);

/* ---- finding a task ---- */

/* Reads and decodes params.taskId. Returns false when the request is refused; the error
 * has then been sent. */
bool sgi_task_id_of(const sgi_inbound *in, sgi_str *id);
/* True when the operation is a task of this dialect and this peer may access it. */
bool sgi_task_is_visible(const sgi_peer *peer, const sgi_op *op,
                         const sgi_srv_dialect *dialect);
/* Checks the outcome of sgi_server_find_task. Returns the operation if the client may
 * access it. Otherwise answers the reply with an error and returns NULL. */
sgi_op *sgi_task_check_found(sgi_reply *reply, sgi_op *op, segue_status status,
                             const sgi_srv_dialect *dialect);

/* ---- answering with an error ---- */

/* Answers that the task has already ended with this status, so that it cannot be
 * cancelled (dialects L and D). */
void sgi_task_refuse_cancel(sgi_reply *reply, const char *status);
/* Answers that the result is in the store but cannot be read. */
void sgi_task_answer_unreadable(sgi_reply *reply);
/* Answer with error -32021, because the client has not declared the tasks extension. */
void sgi_answer_missing_tasks(const sgi_inbound *in);
void sgi_reply_missing_tasks(sgi_reply *reply);

#endif
