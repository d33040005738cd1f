/* The task state machine (core/docs/requirements.md 5.4.1): what may happen to an
 * operation that outlives its request. Everything is an append to the log; the order of
 * the log decides races. */
#ifndef SGI_TASK_H
#define SGI_TASK_H

#include "engine/log/op.h"

/* Makes a task of the operation: id, lifetime, store. SEGUE_E_LIMIT when its principal
 * has too many. ttl_ms 0 = as the tool says, -1 = unlimited. */
segue_status sgi_task_make(sgi_op *op, int64_t ttl_ms);

/* Say in the log that a task has begun, and how it has ended. */
void sgi_task_tell_begin(const sgi_op *op);
void sgi_task_tell_end(const sgi_op *op);

/* Keeps a plain operation in the store, for its key's sake or to be resumed. */
segue_status sgi_task_make_keyed(sgi_op *op);

/* Appends a STATUS entry; status (a literal) or message may be absent. */
segue_status sgi_task_status(sgi_op *op, const char *status, sgi_str message);

/* Ends it as cancelled; a no-op after the end. One of another server: asks that server to
 * (errands.h), which SEGUE_E_NOMEM and SEGUE_E_LIMIT say could not be done. */
segue_status sgi_task_cancel(sgi_op *op);

/* Its tool cannot be stopped: a wish that it be cancelled has no effect (D, X). */
bool sgi_task_is_unstoppable(const sgi_op *op);

/* Ends it because its time to live has passed. */
void sgi_task_expire(sgi_op *op);

/* An answer to an open question. A key that is not open is ignored (R-2557-26); an answer
 * that does not fit leaves the question open and says so in statusMessage (R-2557-27).
 * If sgi_task_is_put_off, it was not taken and is to be sent again. */
segue_status sgi_task_answer(sgi_op *op, sgi_str key, sgi_json response);

/* There was no memory for it, or too much waits for the server that runs it. */
static inline bool sgi_task_is_put_off(const sgi_op *op, segue_status status)
{
    return status == SEGUE_E_NOMEM ||
           (status == SEGUE_E_LIMIT && sgi_op_is_elsewhere(op));
}

/* Would it be taken, or ignored? */
bool sgi_task_answer_fits(sgi_op *op, sgi_str key, sgi_json response);

/* The same for one that could not, or would not, answer: a JSON-RPC error object. */
segue_status sgi_task_answer_error(sgi_op *op, sgi_str key, sgi_json error);

/* What is known of an earlier run (recall.h) answers what is open. SEGUE_E_NOMEM,
 * SEGUE_E_LIMIT: some of it was not taken. */
segue_status sgi_task_answer_recalled(sgi_op *op);

/* What a client must declare to be asked this (sgi_cap, several together); a bit that
 * nobody has when it cannot be asked. */
uint32_t sgi_input_needs(const char *method, sgi_json params);
/* The data of an error of -32021 for it. */
void sgi_input_missing(const char *method, char *data, size_t size);
/* "<key>":{"method","params"} */
void sgi_input_write(sgi_jw *w, const sgi_input *input);

/* "working" and so on, as X and D say it. */
const char *sgi_state_name(sgi_state state);

#endif
