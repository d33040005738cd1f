/* What clients want changed of an operation that another server runs: a letter goes to
 * its owner, by way of the store, which keeps it until it has been dealt with, also if
 * the owner dies first. The errand is done when what it led to is in the log; whoever
 * waits for that (sgi_op_wait_done) hears of it, or, after a while, that nobody answers.
 *
 * And the other end: what the owner does with a letter. It goes the same way as what a
 * client of its own asks, and coming twice it does nothing twice. */
#ifndef SGI_ERRANDS_H
#define SGI_ERRANDS_H

#include "engine/log/op.h"

/* Errands that are not done: of one operation, of all; bytes that they hold. A letter by
 * itself goes, whatever its size. */
#define SGI_ERRANDS_EACH 64
#define SGI_ERRANDS_EACH_BYTES ((size_t)16 * 1024 * 1024)
#define SGI_ERRANDS_MAX 1024
#define SGI_ERRANDS_BYTES ((size_t)64 * 1024 * 1024)

/* SEGUE_E_NOMEM, SEGUE_E_LIMIT (too many are not done): it was not sent. */
segue_status sgi_errand_cancel(sgi_op *op);
/* payload: that of an INPUT_ANSWER entry. awaited: its question will close. */
segue_status sgi_errand_answer(sgi_op *op, const char *key, sgi_str payload,
                               bool awaited);
/* Is an answer to this question on its way? */
bool sgi_errand_answers(const sgi_op *op, const char *key);
/* Z: its client is away, or here. Nobody waits for it. */
void sgi_errand_presence(sgi_op *op, bool away);

/* Is one of those up to this number not done? */
bool sgi_errands_are_open(const sgi_op *op, uint64_t number);
/* More of the log is visible: some may be done. */
void sgi_errands_look(sgi_op *op);
/* Nobody waits for them any more. */
void sgi_errands_end(sgi_op *op);

/* The owner has got a letter. SEGUE_E_NOMEM: to be read again. */
segue_status sgi_letter_read(sgi_op *op, sgi_str letter);

#endif
