/* Rounds of input (SEP-2322): a plain call of 2026-07-28 that asks its client. The
 * handler runs once and the operation waits in memory; what the client sees are
 * independent requests. One that cannot be finished yet is answered with
 * "input_required": the open questions, and a requestState by which the client comes
 * again with answers. The result, or the task that the call becomes, is the answer of the
 * request that brought the last of them.
 *
 * A round is `out` from then until all its questions are answered, or until its time is
 * over and the operation is cancelled. requestState (request_state.h) tells a client
 * nothing: it is the sealed id of a round, which stands in a map of the server while the
 * round is out, and is spent with the last answer.
 *
 * A state of another server that has the same key tells what was asked and answered
 * there. It begins a call anew, which finds the answers (recall.h); so a call that asks
 * survives the server that asked. That one cannot know: should it be there still, what
 * waits in it is cancelled when its time is over.
 *
 * In the handshake eras nothing of this is on the wire: a call asks by requests (asks.h),
 * and its round counts it and limits its time.
 *
 * An operation with a key does not depend on it: whoever asks with the key waits with the
 * others and gets the questions that are open, so a lost round is asked for again. */
#ifndef SGI_ROUNDS_H
#define SGI_ROUNDS_H

#include "engine/serving/peer.h"

typedef struct sgi_round {
    sgi_map_node node;            /* in the server's rounds, while out */
    char id[SGI_RANDOM_TEXT + 1]; /* good once */
    sgi_buf state;                /* the requestState that holds it */
    int64_t expires_ms;           /* wall clock */
    sgi_op *op;                   /* counted while out */
    sgi_timer timer;
    int32_t shown; /* questions of the operation that have been in a round */
    bool out;
    bool told;  /* somebody has this id */
    bool stale; /* there are answers that the state does not tell */
} sgi_round;

/* The operation is about to ask: it counts among the live tasks of its principal from now
 * on. SEGUE_E_LIMIT when there are too many of them. */
segue_status sgi_round_begin(sgi_op *op);
/* Questions are open that somebody who waits has not been told, and nothing is on its way
 * to the handler that might change them. */
bool sgi_round_is_due(const sgi_op *op);
/* Another server runs the operation, and it may ask: who waits for it here is told. */
void sgi_round_follow(sgi_op *op);
/* Answers who waits for the operation with the open questions, if that is due. */
void sgi_round_send(sgi_op *op);
/* It is out, and who has it will come again: nobody waits meanwhile. */
bool sgi_round_is_awaited(const sgi_op *op);
/* An answer came in another way. The caller holds the operation. */
void sgi_round_settle(sgi_op *op);
/* It is over: the operation has ended and its end is told, or it has become a task. */
void sgi_round_end(sgi_op *op);

/* The operation that waits for a request with this state, made by the same principal for
 * the same item and arguments; NULL when there is none. *elsewhere: a server with the
 * same key made the state, and the call can be taken over. */
sgi_op *sgi_round_find(const sgi_inbound *in, const sgi_call_kind *kind, sgi_str name,
                       bool *elsewhere);
struct sgi_call_request;
/* Takes the answers of a request, whose reply then waits for the operation. */
void sgi_round_answer(sgi_op *op, const sgi_inbound *in,
                      const struct sgi_call_request *request,
                      const struct sgi_dialect *dialect);

/* Nobody can come again: what waits is cancelled. */
void sgi_rounds_desert(segue_server *server);
/* The runtime goes away. */
void sgi_rounds_die(segue_server *server);

#endif
