/* The questions of an operation to its client, and the answers, as entries of the log
 * (sgi_input). This file does not know how a question reaches the client: by request
 * (question_requests.h), by round (rounds.h), or as a part of a task. */
#ifndef SGI_INPUTS_H
#define SGI_INPUTS_H

#include "engine/log/op.h"

/* ---- answers (inputs.c) ---- */

/* Handles an answer to an open question. An answer is ignored when no open question has
 * its key (R-2557-26). An answer that does not fit leaves the question open, and the
 * statusMessage says so (R-2557-27). If sgi_task_is_put_off is true for the returned
 * status, the client must send the answer again. */
segue_status sgi_task_answer(sgi_op *op, sgi_str key, sgi_json response);

/* True when an answer could not be taken now, because memory ran out or because too many
 * commands wait for the server that runs the operation. */
static inline bool sgi_task_is_put_off(const sgi_op *op, segue_status status)
{
    return status == SEGUE_E_NOMEM ||
           (status == SEGUE_E_LIMIT && sgi_op_runs_elsewhere(op));
}

/* True when sgi_task_answer would accept or ignore this answer; false when the answer
 * does not fit. */
bool sgi_task_answer_fits(sgi_op *op, sgi_str key, sgi_json response);

/* Handles an answer that is a JSON-RPC error object: the client could not answer, or
 * refused to. */
segue_status sgi_task_answer_error(sgi_op *op, sgi_str key, sgi_json error);

/* Gives the carried answers (carried_answers.h) to the open questions. Returns
 * SEGUE_E_NOMEM or SEGUE_E_LIMIT when some answers were not used. */
segue_status sgi_task_answer_carried(sgi_op *op);

/* ---- the form of a question (question_form.c) ---- */

/* Returns the capabilities (sgi_cap) that a client must have declared before it is asked
 * this question; SGI_CAP_NOBODY when no client can be asked. */
uint32_t sgi_input_required_caps(const char *method, sgi_json params);
/* Writes the data of error -32021, which names the capabilities that this question
 * needs. */
void sgi_input_write_missing_caps(const char *method, char *data, size_t size);
/* Writes "<key>":{"method":...,"params":...}. */
void sgi_input_write(sgi_jw *w, const sgi_input *input);

#endif
