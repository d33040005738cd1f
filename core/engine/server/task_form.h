/* Functions that the dialects of tasks share: the look-up of a task, and the members that
 * every such dialect writes. */
#ifndef SGI_TASK_FORM_H
#define SGI_TASK_FORM_H

#include "engine/server/dialects.h"

#define SGI_TASK_NOT_FOUND "Failed to retrieve task: Task not found"

/* ---- writing a task ---- */

/* Returns the name of a task's state in 2026-07-28 and DRAFT-2026-v1 (dialects X and D),
 * such as "working". */
const char *sgi_task_state_name(sgi_state state);

/* The names of the members whose names differ between dialects. All other members of a
 * task have the same name in each dialect. */
typedef struct sgi_task_member_names {
    const char *ttl, *poll;
    int64_t ttl_unit_ms; /* unit of the ttl member, in ms; 0 = the ttl is written in ms */
} sgi_task_member_names;

/* Writes taskId, status, statusMessage, timestamps, ttl and poll interval into an open
 * JSON object. */
void sgi_task_write(sgi_jw *w, const sgi_op *op, const char *status,
                    const sgi_task_member_names *names);
/* Writes the member "inputRequests":{...} with all open questions. */
void sgi_task_write_questions(sgi_jw *w, const sgi_op *op);
/* Writes members of _meta for a client that may have received segments of the result. If
 * segments were replaced, writes the number of the last replaced segment. If some
 * segments continue earlier texts, writes the number of segments, which is then larger
 * than the number of blocks. */
void sgi_task_write_void_segments(sgi_buf *meta, const sgi_fold *fold);
/* Writes the result of a completed task as members of an open JSON object (tasks of
 * DRAFT-2026-v1 and of 2026-07-28). */
void sgi_task_write_result(sgi_jw *w, const sgi_op *op, const sgi_fold *fold);
/* Writes the member _meta, which names the task of the operation, into an open JSON
 * object. */
void sgi_task_write_related(sgi_jw *w, const sgi_op *op);
/* Returns the member of _meta that names the task (related-task), without braces. The
 * text is in `out`, which is emptied first. When out of memory, out->failed is true. */
sgi_str sgi_task_related_meta(sgi_buf *out, const sgi_op *op);

/* ---- finding a task ---- */

/* Reads params.taskId. Returns false when the request is refused; the error has then been
 * sent. */
bool sgi_task_read_id(const sgi_inbound *in, sgi_str *id);
/* True when the operation is a task of this dialect and belongs to the principal of the
 * peer. */
bool sgi_task_is_visible(const sgi_peer *peer, const sgi_op *op,
                         const sgi_srv_dialect *dialect);
/* Checks the outcome of sgi_server_find_task. Returns the operation if the client can
 * access it. Otherwise sends an error as the answer on the reply and returns NULL; the
 * caller closes the reply. */
sgi_op *sgi_task_check_found(sgi_reply *reply, sgi_op *op, segue_status status,
                             const sgi_srv_dialect *dialect);

/* ---- answering with an error ---- */

/* Answers with the error that the task cannot be cancelled, because it has ended with
 * this status (tasks of 2025-11-25 and of DRAFT-2026-v1). */
void sgi_task_refuse_cancel(sgi_reply *reply, const char *status);
/* Answers with the error that the result cannot be read. status: of the store. */
void sgi_task_answer_unreadable(sgi_reply *reply, segue_status status);
/* Both functions answer with error -32021: the client has not declared the tasks
 * extension. */
void sgi_answer_tasks_not_declared(const sgi_inbound *in);
void sgi_reply_tasks_not_declared(sgi_reply *reply);

#endif
