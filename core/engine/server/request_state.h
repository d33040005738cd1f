/* The requestState of 2026-07-28: a sealed text (seal.h) that a client sends back with
 * the answers to a round. It is valid for one principal, method, item and set of
 * arguments, as long as the round waits. It contains the id under which the call waits in
 * the server that asked.
 *
 * When several servers have the same key, the text also contains the questions and
 * answers so far (carried_answers.h). Each of these servers can then take the call over
 * by running its tool from the start, even when the server that asked has gone. Questions
 * and answers that are too large are left out; then only the server where the call waits
 * can use the requestState. */
#ifndef SGI_REQUEST_STATE_H
#define SGI_REQUEST_STATE_H

#include "engine/server/peer.h"

/* the largest number of bytes of questions and answers in a requestState */
#define SGI_RECALL_MAX 16384

/* Appends the requestState of a round with this id. Returns false when out of memory. */
bool sgi_request_state_write(const sgi_op *op, const char *id, int64_t expires_ms,
                             sgi_buf *out);

typedef struct sgi_request_state {
    /* this server made the requestState: the call waits here, or has waited here */
    bool is_ours;
    sgi_str id; /* id of the round */
    /* the carried questions and answers; empty = the requestState has none, so this
     * server cannot take the call over */
    sgi_json carried;
    sgi_buf bytes; /* the memory to which id and carried point */
} sgi_request_state;

/* Opens the requestState of a request. On SEGUE_OK the caller must free *state.
 * SEGUE_E_INVALID, SEGUE_E_TIMEOUT or SEGUE_E_NOMEM: the requestState cannot be used. */
segue_status sgi_request_state_open(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_str name, sgi_request_state *state);
void sgi_request_state_free(sgi_request_state *state);

#endif
