/* The server's tasks of 2025-11-25 (dialect L, SEP-1686), and their streaming (dialect S,
 * SEP-1905), which adds segments: functions that the files of both share. server.c has
 * the methods, segments_push.c the responses that follow a request, segments_pull.c the
 * segments that a client asks for by number. */
#ifndef SGI_TASKS_2025_H
#define SGI_TASKS_2025_H

#include "engine/server/task_form.h"
#include "engine/log/reader.h"

/* ---- what server and client declare (declared.c); functions of the dialect's table
 * ---- */

bool sgi_tasks_2025_serves(const sgi_peer *peer, sgi_version version);
bool sgi_tasks_2025_serves_older(const sgi_inbound *in, sgi_str method);
void sgi_tasks_2025_read_capabilities(sgi_handshake *handshake, sgi_json capabilities);
void sgi_tasks_2025_write_capabilities(sgi_jw *w, const sgi_inbound *in);
const char *sgi_tasks_2025_experiment_name(const segue_server *server);
const char *sgi_tasks_2025_task_support(const sgi_inbound *in, int32_t policy);
bool sgi_tasks_2025_read_call(const sgi_inbound *in, sgi_call_request *request);
uint32_t sgi_tasks_2025_read_declared(const sgi_inbound *in, sgi_call_request *request);
bool sgi_tasks_2025_answers_at_once(const sgi_call_request *request);
bool sgi_tasks_2025_streams(const sgi_call_request *request);
bool sgi_tasks_2025_waits_for_turn(const sgi_op *op);
bool sgi_tasks_2025_begins_plain(const sgi_op *op);

/* ---- tasks (server.c, list.c, notes.c) ---- */

/* Writes "task":{...} of CreateTaskResult into an open result. */
void sgi_tasks_2025_write_created(sgi_jw *w, const sgi_op *op);
/* Writes the members of a Task into an open object, as they are reported to this peer
 * (NULL = any peer). */
void sgi_tasks_2025_write(sgi_jw *w, const sgi_op *op, const sgi_peer *question_task);
/* Answers with the whole result, with the error that ended the call, or with a failure
 * when the log cannot be read. The function does not wait, and it closes the reply. */
void sgi_tasks_2025_answer_result(sgi_reply *reply, sgi_op *op);

/* Reports what has changed since the task was made, and from now on every later change
 * (notes.c). Called when the client has received the answer that names the task. */
void sgi_tasks_2025_start_notifying(sgi_op *op);
/* Notes that the client of this request knows the task, because the request asks about
 * it. If the conversation that made the task is gone, the task's questions go to this
 * client. */
void sgi_tasks_2025_on_request(sgi_op *op, const sgi_reply *reply);
/* Makes the conversation of this request receive the notifications about the task. The
 * task was made for this request. */
void sgi_tasks_2025_notify_creator(sgi_op *op, sgi_reply *reply);

/* tasks/list (list.c) */
void sgi_tasks_2025_list(const sgi_inbound *in);

/* ---- S: streaming of the result ---- */

/* Answers the request of a streaming task with the segments that exist, and later with
 * new segments as they are made. Takes ownership of the reply. */
void sgi_push_begin(sgi_reply *reply, sgi_op *op);
/* Like sgi_push_begin, for a lasting call whose client has come back: sends the segments
 * after the ones that the client has. */
void sgi_push_resume(sgi_reply *reply, sgi_op *op);
/* True while this conversation's own request has not received its last response. */
bool sgi_push_is_unfinished(const sgi_op *op, const sgi_peer *peer);
/* Returns a request to which segments are pushed and whose client knows of the task: the
 * one after `before` (NULL = the first). */
const sgi_reply *sgi_push_next_reply(const sgi_op *op, const sgi_reply *before);
/* True while further responses to a request of the task may follow. */
bool sgi_push_is_open(const sgi_op *op);
/* Answers with the segments after number `after`, and says whether they are the last.
 * Takes ownership of the reply. */
void sgi_pull_begin(sgi_reply *reply, sgi_op *op, uint64_t after);

/* Writes {"seqNr":n,...}: a block with its number. The block must be an object. */
void sgi_segment_write(sgi_buf *out, uint64_t number, sgi_str block);
/* Writes the error that ended the call as a text block with the error's message
 * (R-1905-44). When out of memory, `out` fails. */
void sgi_segment_of_error(sgi_buf *out, const sgi_op *op);
/* True when the task's end is visible to clients, so that no segment follows. */
bool sgi_segments_are_all(const sgi_op *op);
/* True when the task was cancelled or has expired. Segments that were not sent are then
 * withheld (R-1905-40, R-1905-47). */
bool sgi_segments_are_withheld(const sgi_op *op);
/* Returns the value of isError in the last response. */
bool sgi_segments_failed(const sgi_op *op);

#endif
