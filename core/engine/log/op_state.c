/* The three states of an operation, and the allowed changes of each state. A change that
 * is not in its table is a defect of the caller and stops a debug build. */
#include "engine/log/op.h"

#include <assert.h>

#define TO(state) (1u << (state))

/* NOT -> CREATING: the operation becomes a task or a lasting call, or gets a key. NOT ->
 * YES: the operation was read from the store. CREATING -> NOT: the store refused the
 * creation. CREATING -> PERHAPS: the outcome of the creation is unknown. PERHAPS -> NOT:
 * the store does not have the operation. PERHAPS -> BROKEN: the store refused to repeat
 * the creation, which may have succeeded. YES -> NOT: the store has lost the whole
 * operation. YES -> BROKEN: the store refused further entries of the log. */
static const unsigned stored_moves[] = {
    [SGI_STORED_NOT] = TO(SGI_STORED_CREATING) | TO(SGI_STORED_YES),
    [SGI_STORED_CREATING] =
        TO(SGI_STORED_NOT) | TO(SGI_STORED_PERHAPS) | TO(SGI_STORED_YES),
    [SGI_STORED_PERHAPS] =
        TO(SGI_STORED_NOT) | TO(SGI_STORED_YES) | TO(SGI_STORED_BROKEN),
    [SGI_STORED_YES] = TO(SGI_STORED_NOT) | TO(SGI_STORED_BROKEN),
    [SGI_STORED_BROKEN] = 0,
};

/* DIRTY -> NOTHING: another server owns the operation now, or the store has lost the
 * operation, or the runtime has ended; so nothing is written. NOW -> DIRTY: the commit of
 * the operation has failed and is tried again. */
static const unsigned writing_moves[] = {
    [SGI_WRITING_NOTHING] = TO(SGI_WRITING_DIRTY),
    [SGI_WRITING_DIRTY] = TO(SGI_WRITING_NOTHING) | TO(SGI_WRITING_NOW),
    [SGI_WRITING_NOW] = TO(SGI_WRITING_NOTHING) | TO(SGI_WRITING_DIRTY),
};

/* NEW -> UNREAD: the log of the operation is about to be read from the store. HERE ->
 * ELSEWHERE: another server has taken over the operation. ELSEWHERE -> HERE: this server
 * has taken over the operation, or the operation has ended and no server owns it. */
static const unsigned hold_moves[] = {
    [SGI_HOLD_NEW] = TO(SGI_HOLD_HERE) | TO(SGI_HOLD_ELSEWHERE) | TO(SGI_HOLD_UNREAD),
    [SGI_HOLD_HERE] = TO(SGI_HOLD_HERE) | TO(SGI_HOLD_ELSEWHERE),
    [SGI_HOLD_ELSEWHERE] = TO(SGI_HOLD_HERE),
    [SGI_HOLD_UNREAD] = TO(SGI_HOLD_HERE) | TO(SGI_HOLD_ELSEWHERE),
};

void sgi_op_set_stored(sgi_op *op, sgi_stored to)
{
    assert(stored_moves[op->stored] & TO(to));
    (void)stored_moves;
    op->stored = to;
}

void sgi_op_set_writing(sgi_op *op, sgi_writing to)
{
    assert(writing_moves[op->writing] & TO(to));
    (void)writing_moves;
    op->writing = to;
}

void sgi_op_set_hold(sgi_op *op, sgi_hold to)
{
    assert(hold_moves[op->hold] & TO(to));
    (void)hold_moves;
    op->hold = to;
}
