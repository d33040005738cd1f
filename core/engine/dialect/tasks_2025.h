/* L: the tasks of 2025-11-25 (SEP-1686), and what S (SEP-1905) adds to them: between the
 * files of both. tasks_2025.c has the methods, segments_push.c the responses that follow
 * a request, segments_pull.c those that are asked for by number. */
#ifndef SGI_TASKS_2025_H
#define SGI_TASKS_2025_H

#include "engine/dialect/dialect.h"
#include "engine/log/reader.h"

/* "task":{...} of CreateTaskResult, into a result that is open. */
void sgi_tasks_2025_write_created(sgi_jw *w, const sgi_op *op);
/* The members of a Task, as it is shown to this conversation (NULL = to nobody in
 * particular), into an object that is open. */
void sgi_tasks_2025_write(sgi_jw *w, const sgi_op *op, const sgi_peer *asker);
/* "_meta":{...} with related-task, into an object that is open. */
void sgi_tasks_2025_write_related(sgi_jw *w, const sgi_op *op);
/* Members of _meta without braces: related-task. out is cut first; may fail. */
sgi_str sgi_related_task(sgi_buf *out, const sgi_op *op);
/* Answers with the whole result, or what the request would have got instead; the fold is
 * NULL when it cannot be read. Waits for nothing; closes the reply. */
void sgi_tasks_2025_answer_result(sgi_reply *reply, sgi_op *op);

/* Who waits for its result and is there; the one after `before` (NULL = the first). */
const sgi_reply *sgi_tasks_2025_waiting(const sgi_op *op, const sgi_reply *before);

/* Its client knows of the task from here on: what has changed since is told, and so is
 * every later change (tasks_2025_notes.c). */
void sgi_tasks_2025_told(sgi_op *op);
/* This request asks about the task, so its client knows it, and is asked what the task
 * wants to know, if the conversation that made it is gone. */
void sgi_tasks_2025_follow(sgi_op *op, const sgi_reply *reply);
/* S: a task that has the result too, should that be the answer itself (R-1905-13). */
bool sgi_tasks_2025_tracks(const sgi_op *op);
/* A task was made for this request, whose conversation is to hear of it. */
void sgi_tasks_2025_listen(sgi_op *op, sgi_reply *reply);

/* tasks/list (tasks_2025_list.c) */
void sgi_tasks_2025_list(const sgi_inbound *in);

/* ---- S ---- */

/* Answers the request of a streaming task, now and as its segments come. Takes the
 * reply. */
void sgi_push_begin(sgi_reply *reply, sgi_op *op);
/* The same for a request that is resumed (Z): from where its client has all. */
void sgi_push_resume(sgi_reply *reply, sgi_op *op);
/* Has this conversation not been sent the end yet that its own request is owed? */
bool sgi_push_is_owed(const sgi_op *op, const sgi_peer *peer);
/* Whose request its segments go to, with the task told; the one after `before` (NULL =
 * the first). */
const sgi_reply *sgi_push_reading(const sgi_op *op, const sgi_reply *before);
/* Do responses to its own request still follow, as long as somebody takes them? */
bool sgi_push_is_open(const sgi_op *op);
/* The segments after `after`, and whether they are the last. Takes the reply. */
void sgi_pull_begin(sgi_reply *reply, sgi_op *op, uint64_t after);

/* {"seqNr":n,...}: a block with its number; blocks are objects. */
void sgi_segment_write(sgi_buf *out, uint64_t number, sgi_str block);
/* The block that stands for a JSON-RPC error: its message as text (R-1905-44). Out of
 * memory fails out. */
void sgi_segment_of_error(sgi_buf *out, const sgi_op *op);
/* The end is there, for peers to see: no segment follows. */
bool sgi_segments_are_all(const sgi_op *op);
/* The end is told without what was not sent yet: nobody may send it any more
 * (R-1905-40, R-1905-47). */
bool sgi_segments_are_cut(const sgi_op *op);
/* isError of the last response. */
bool sgi_segments_failed(const sgi_op *op);

#endif
