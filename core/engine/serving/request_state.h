/* requestState of 2026-07-28: a sealed text (engine/seal.h) by which a client comes again
 * with the answers to a round, good for the principal, the method, the item and the
 * arguments of the call, and for as long as the round waits. It holds the id under which
 * the call waits in the server that asked.
 *
 * Where several servers have the same key it also holds what was asked and answered so
 * far (recall.h): then any of them can take the call over, by running its tool from the
 * start, after the one that asked is gone, or instead of it. What is too large for that
 * is left out, and the state is good where the call waits. */
#ifndef SGI_REQUEST_STATE_H
#define SGI_REQUEST_STATE_H

#include "engine/serving/peer.h"

#define SGI_RECALL_MAX 16384 /* bytes of questions and answers in a state */

/* Appends the state of a round with this id. False when out of memory. */
bool sgi_request_state_write(const sgi_op *op, const char *id, int64_t expires_ms,
                             sgi_buf *out);

typedef struct sgi_request_state {
    bool is_ours;    /* of this server: the call waits here, or not any more */
    sgi_str id;      /* of its round */
    sgi_json recall; /* what was asked and answered; empty = it cannot be taken over */
    sgi_buf bytes;   /* what the others are views of */
} sgi_request_state;

/* Opens the requestState of a call; with SEGUE_OK *state is to be freed. Whatever is
 * wrong with it is SEGUE_E_INVALID, SEGUE_E_TIMEOUT or SEGUE_E_NOMEM. */
segue_status sgi_request_state_open(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_str name, sgi_request_state *state);
void sgi_request_state_free(sgi_request_state *state);

#endif
