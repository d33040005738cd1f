/* The server's tasks of 2025-11-25 (dialect L, SEP-1686), and their segments (dialect S,
 * SEP-1905): functions that several files of these dialects use. server.c has the
 * methods. segments_push.c sends segments as further responses to a request.
 * segments_pull.c sends the segments that a client requests by number. */
#ifndef SGI_TASKS_2025_H
#define SGI_TASKS_2025_H

#include "engine/server/task_form.h"
#include "engine/log/reader.h"

/* ---- what server and client declare (declared.c); functions of the dialect's table
 * ---- */

bool sgi_tasks_2025_serves(const sgi_peer *peer, sgi_version version);
bool sgi_tasks_2025_serves_old_method(const sgi_inbound *in, sgi_str method);
void sgi_tasks_2025_read_capabilities(sgi_handshake *handshake, sgi_json capabilities);
void sgi_tasks_2025_write_capabilities(sgi_jw *w, const sgi_inbound *in);
const char *sgi_tasks_2025_experiment_name(const segue_server *server);
const char *sgi_tasks_2025_task_support(const sgi_inbound *in, int32_t policy);
bool sgi_tasks_2025_read_call(const sgi_inbound *in, sgi_call_request *request);
uint32_t sgi_tasks_2025_read_declared(const sgi_inbound *in, sgi_call_request *request);
bool sgi_tasks_2025_answers_at_once(const sgi_call_request *request);
bool sgi_tasks_2025_streams_segments(const sgi_call_request *request);
bool sgi_tasks_2025_answers_after_turn(const sgi_op *op);
bool sgi_tasks_2025_may_begin_plain(const sgi_op *op);

/* ---- tasks (server.c, list.c, notes.c) ---- */

/* Writes "task":{...} of CreateTaskResult into an open result. */
void sgi_tasks_2025_write_created(sgi_jw *w, const sgi_op *op);
/* Writes the members of a task into an open object. A peer that waits for its last
 * response about the task still gets the status "working". peer NULL: writes the present
 * status. */
void sgi_tasks_2025_write_task(sgi_jw *w, const sgi_op *op, const sgi_peer *peer);
/* Answers with the whole result, or with the error that ended the call. When the log
 * cannot be read, answers with an error. Does not wait for the end of the task. Closes
 * the reply. */
void sgi_tasks_2025_answer_result(sgi_reply *reply, sgi_op *op);

/* Makes the server send a notification for each later change of the task (notes.c). Sends
 * one at once if the task has changed since it was made. Called when the client has
 * received the answer that names the task. */
void sgi_tasks_2025_start_notifying(sgi_op *op);
/* Notes that the client of this request knows the task, because it has asked about the
 * task. If the conversation that made the task is gone, this client gets the task's
 * questions. */
void sgi_tasks_2025_on_request(sgi_op *op, const sgi_reply *reply);
/* Makes the conversation of this request the task creator, which gets the notifications
 * about the task. Called for the request that has made the task. */
void sgi_tasks_2025_set_creator(sgi_op *op, sgi_reply *reply);

/* Answers tasks/list (list.c). */
void sgi_tasks_2025_list(const sgi_inbound *in);

/* ---- S: streaming of the result ---- */

/* Answers the request that made the task: with the segments that exist, and with further
 * responses when more segments are made. Takes ownership of the reply. */
void sgi_segments_push_begin(sgi_reply *reply, sgi_op *op);
/* Like sgi_segments_push_begin, for a lasting call (its client can leave and come back)
 * whose client has come back. Sends only the segments that the client does not have. */
void sgi_segments_push_resume(sgi_reply *reply, sgi_op *op);
/* True while a request of this conversation still waits for its last response about the
 * task. */
bool sgi_segments_push_is_unfinished(const sgi_op *op, const sgi_peer *peer);
/* Returns the next request that gets pushed segments and whose client knows the task.
 * before: the result of the previous call; NULL = returns the first such request. */
const sgi_reply *sgi_segments_push_next_reply(const sgi_op *op, const sgi_reply *before);
/* Marks as spare (they may be dropped) the requests of this session to which segments of
 * the task are pushed. Called when the session asks for the task by its id: a client that
 * has the id gets all segments by tasks/result. */
void sgi_segments_push_mark_spare(const sgi_op *op, const sgi_wire_session *session);
/* True while the request that made the task may get further responses. */
bool sgi_segments_push_is_open(const sgi_op *op);
/* Answers with the segments after this number, and says whether they are the last
 * segments. Takes ownership of the reply. */
void sgi_segments_answer_pull(sgi_reply *reply, sgi_op *op, uint64_t after);

/* Writes a block with its number: {"seqNr":n,...}. The block must be an object. */
void sgi_segment_write(sgi_buf *out, uint64_t number, sgi_str block);
/* Writes the error that ended the call as a text block. The text is the error's message
 * (R-1905-44). When out of memory, sets out->failed. */
void sgi_segment_write_error(sgi_buf *out, const sgi_op *op);
/* True when clients may see the end of the task, so that no further segment follows. */
bool sgi_segments_are_complete(const sgi_op *op);
/* Adds the error that ended the call to the members of _meta, as an object for clients of
 * this library (R-1905-46). In the segments this error is only a text. */
void sgi_segments_write_error_meta(sgi_buf *meta, const sgi_op *op);
/* True when the task was cancelled or has expired. Segments that were not sent before are
 * then never sent (R-1905-40, R-1905-47). */
bool sgi_segments_are_withheld(const sgi_op *op);
/* Returns whether the last response has isError. */
bool sgi_segments_end_in_error(const sgi_op *op);

#endif
