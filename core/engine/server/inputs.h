/* The questions of an operation to its client, and their answers, as entries of the log
 * (sgi_op_question). This file does not know how a question reaches the client: as a
 * request of the server (question_requests.h), as a part of an answer (a round,
 * rounds.h), or as a part of a task. */
#ifndef SGI_INPUTS_H
#define SGI_INPUTS_H

#include "engine/log/op.h"

/* ---- answers (inputs.c) ---- */

/* Handles an answer to an open question. An answer is ignored when no open question has
 * its key (R-2557-26). An answer that does not fit its question leaves the question open,
 * and the statusMessage of the task says so (R-2557-27). If sgi_task_is_put_off is true
 * for the returned status, the client must send the answer again. */
segue_status sgi_task_take_answer(sgi_op *op, sgi_str key, sgi_json response);

/* True when an answer could not be accepted now: memory ran out, too many commands wait
 * for the server that runs the operation, or this server does not know whether another
 * server has asked the question (SEGUE_E_STORE). status: the result of
 * sgi_task_take_answer. */
static inline bool sgi_task_is_put_off(const sgi_op *op, segue_status status)
{
    return status == SEGUE_E_NOMEM || status == SEGUE_E_STORE ||
           (status == SEGUE_E_LIMIT && sgi_op_runs_elsewhere(op));
}

/* True when sgi_task_take_answer would accept or ignore this answer; false when the
 * answer does not fit. */
bool sgi_task_answer_fits(sgi_op *op, sgi_str key, sgi_json response);

/* Handles an answer that is a JSON-RPC error object: the client cannot answer the
 * question, or refuses to answer. */
segue_status sgi_task_take_error_answer(sgi_op *op, sgi_str key, sgi_json error);

/* Answers open questions with the answers that the client has brought along from an
 * earlier run (carried_answers.h). Returns SEGUE_E_NOMEM or SEGUE_E_LIMIT when some of
 * these answers could not be accepted. */
segue_status sgi_task_take_carried_answers(sgi_op *op);

/* ---- the form of a question (question_form.c) ---- */

/* Returns the capabilities (sgi_cap) that a client must have declared before a server may
 * ask this question. Returns SGI_CAP_NOBODY when no client can answer the question. */
uint32_t sgi_question_required_caps(const char *method, sgi_json params);
/* Writes the data of error -32021: the capabilities that this question requires. */
void sgi_question_write_missing_caps(const char *method, char *data, size_t size);
/* Writes the question as the member "<key>":{"method":...,"params":...}. */
void sgi_question_write_request(sgi_jw *w, const sgi_op_question *input);

#endif
