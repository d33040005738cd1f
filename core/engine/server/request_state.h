/* The requestState of 2026-07-28: a sealed text (seal.h) that a client sends back with
 * the answers to a round. A round is an answer of the server that asks questions in place
 * of a result. A requestState is valid for one principal, method, item and set of
 * arguments, while the round waits for the client's answers. It contains the id under
 * which the call waits in the server that asked.
 *
 * When the application has given several servers the same key, the text also contains the
 * questions and answers so far (carried_answers.h). Each of these servers can then take
 * over the call: the server runs the tool from the start, even if the server that asked
 * has gone. Questions and answers that are too large are left out. Without them, only the
 * server where the call waits can use the requestState.
 */
#ifndef SGI_REQUEST_STATE_H
#define SGI_REQUEST_STATE_H

#include "engine/server/peer.h"

/* maximum number of bytes of questions and answers in a requestState */
#define SGI_RECALL_MAX 16384

/* Appends the requestState of a round with this id to `out`. Returns false when out of
 * memory. */
bool sgi_request_state_write(const sgi_op *op, const char *id, int64_t expires_ms,
                             sgi_buf *out);

typedef struct sgi_request_state {
    /* this server made the requestState, so the call waits on this server, or has
     * waited */
    bool is_ours;
    sgi_str id; /* id of the round; points into `bytes` */
    /* the questions and answers of an earlier run, which point into `bytes`; empty = the
     * requestState has none, so another server cannot take over the call */
    sgi_json carried;
    sgi_buf bytes; /* the decrypted requestState */
} sgi_request_state;

/* Opens the requestState of a request. On SEGUE_OK, the caller must free *state. On
 * SEGUE_E_INVALID, SEGUE_E_TIMEOUT or SEGUE_E_NOMEM, the requestState cannot be used. */
segue_status sgi_request_state_open(const sgi_inbound *in, const sgi_call_kind *kind,
                                    sgi_str name, sgi_request_state *state);
void sgi_request_state_free(sgi_request_state *state);

#endif
