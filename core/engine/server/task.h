/* The task state machine (core/docs/requirements.md 5.4.1): the changes of an operation
 * that outlives its request. Each change is an entry that is appended to the log. If two
 * changes happen at the same time, the first entry in the log decides. */
#ifndef SGI_TASK_H
#define SGI_TASK_H

#include "engine/log/op.h"

/* Makes the operation a task with a time to live. Stores an operation that is not stored.
 * Logs the change of one that is: it must be SGI_TASKING_MAY.
 * ttl_ms: the time to live in ms; 0 = the time that the tool sets; -1 = unlimited.
 * Returns SEGUE_E_LIMIT when the principal has too many tasks. */
segue_status sgi_op_turn_into_task(sgi_op *op, int64_t ttl_ms);

/* sgi_task_log_begin logs that a task was created. sgi_task_log_end logs how a task
 * ended. */
void sgi_task_log_begin(const sgi_op *op);
void sgi_task_log_end(const sgi_op *op);

/* Stores an operation that is not a task, because it has an idempotency key, its client
 * can leave and come back (a lasting call), or its tool has SEGUE_TOOL_STORED. */
segue_status sgi_op_store_without_task(sgi_op *op);

/* ---- changes (task_change.c) ---- */

/* Appends a STATUS entry to the log. status: a string literal, or NULL = the status
 * stays. message: the new statusMessage; message.p = NULL: the statusMessage stays. */
segue_status sgi_task_append_status(sgi_op *op, const char *status, sgi_str message);

/* Ends the operation as cancelled. Does nothing when the operation has already ended. If
 * another server runs the operation, sends a forwarded command to that server
 * (forwarding.h). SEGUE_E_NOMEM and SEGUE_E_LIMIT then mean that the command was not
 * sent. */
segue_status sgi_task_cancel(sgi_op *op);

/* True when the tool of the operation cannot be stopped. In DRAFT-2026-v1 and 2026-07-28
 * (dialects D and X) a request to cancel such a task has no effect. */
bool sgi_task_is_unstoppable(const sgi_op *op);

/* Ends the operation because its time to live has passed. */
void sgi_task_expire(sgi_op *op);

/* Asks the handler to stop, because its result is no longer needed. status: the outcome
 * of appending the final entry. If there was no memory for the final entry, the operation
 * ends when the handler frees the call. */
void sgi_task_stop_handler(sgi_op *op, segue_status status);

#endif
