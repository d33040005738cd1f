/* Rounds of input (SEP-2322): how a plain call of 2026-07-28 asks its client. The handler
 * runs once, and the operation waits in memory, while the client sends independent
 * requests. When a request cannot be answered with the result yet, its answer is
 * "input_required" with the open questions and a requestState. The client sends its next
 * request with this requestState and with answers. The request that brings the last
 * answer is answered with the result, or with the task that the call becomes.
 *
 * A round is `out` from the first of these answers until all its questions are answered,
 * or until its time is over and the operation is cancelled. A requestState
 * (request_state.h) is opaque to the client: it contains the sealed id of a round. While
 * the round is out, the server finds it by this id. The last answer makes the id invalid.
 *
 * When another server with the same key made the requestState, the requestState contains
 * the questions and answers of the call there. The call then begins anew at this server
 * and uses those answers (carried_answers.h). So a call that asks survives the end of its
 * server. If that server still runs, its waiting operation is cancelled when the time of
 * its round is over.
 *
 * In the handshake eras questions are sent as requests (question_requests.h), and no
 * rounds are on the wire. A call then has a round only to be counted among the live tasks
 * and to limit its time.
 *
 * An operation with a key does not need the requestState: each request with the key waits
 * for the operation and gets its open questions. So a client that has lost a round can
 * ask for it again. */
#ifndef SGI_ROUNDS_H
#define SGI_ROUNDS_H

#include "engine/server/peer.h"

typedef struct sgi_round {
    /* node of the server's map of rounds; used while the round is out */
    sgi_map_node node;
    char id[SGI_RANDOM_TEXT + 1]; /* id of the round; each new round gets a new id */
    sgi_buf state;                /* the requestState that contains the id */
    int64_t expires_ms;           /* wall clock time at which the round expires, in ms */
    /* the operation; a counted reference while the round is out */
    sgi_op *op;
    sgi_timer timer;
    /* number of the operation's questions that were sent in rounds so far */
    int32_t shown;
    bool out;
    bool told;  /* a client has received the id */
    bool stale; /* answers have arrived that the sent requestState does not contain */
} sgi_round;

/* Counts the operation among the live tasks of its principal. Called before the operation
 * asks its first question. Returns SEGUE_E_LIMIT when the principal has too many live
 * tasks. */
segue_status sgi_round_begin(sgi_op *op);
/* True when the open questions have to be sent: a waiting client has not received all of
 * them, and no answer is about to be delivered to the handler, which might change the
 * questions. */
bool sgi_round_is_due(const sgi_op *op);
/* Sends the open questions of an operation that another server runs to the clients that
 * wait for it at this server. */
void sgi_round_send_followed(sgi_op *op);
/* Answers the requests that wait for the operation with its open questions, if
 * sgi_round_is_due. */
void sgi_round_send(sgi_op *op);
/* True when the round is out and no request waits for it: the client is expected to come
 * with answers. */
bool sgi_round_is_awaited(const sgi_op *op);
/* Handles an answer that came without the round's requestState. The caller holds a
 * reference to the operation. */
void sgi_round_take_other_answer(sgi_op *op);
/* Ends the round, because the operation has ended and the client has received the end, or
 * because the operation has become a task. */
void sgi_round_end(sgi_op *op);

/* Returns the operation that waits for a request with this requestState, principal, item
 * and arguments; NULL = there is none. *elsewhere: true when another server with the same
 * key made the requestState and this server can take the call over. */
sgi_op *sgi_round_find(const sgi_inbound *in, const sgi_call_kind *kind, sgi_str name,
                       bool *elsewhere);
/* True when a round has to contain this question: a handler, here or at another server,
 * waits for its answer. */
bool sgi_round_shows(const sgi_op *op, const sgi_input *input);

/* Cancels all operations that wait for a round, because no client can connect any
 * more. */
void sgi_rounds_cancel_all(segue_server *server);
/* Ends all rounds, because the runtime ends. */
void sgi_rounds_end_all(segue_server *server);

#endif
