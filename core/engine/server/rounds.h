/* Rounds of input (SEP-2322): how a plain call of 2026-07-28 asks its client. The client
 * sends independent requests; meanwhile the handler runs once, and the operation waits in
 * memory. A request that cannot be answered with the result yet is answered with
 * "input_required", the open questions and a requestState. The client's next request
 * brings this requestState and answers. The request that brings the last answer is
 * answered with the result, or with the task that the call becomes.
 *
 * A round is `out` from the first "input_required" until all its questions are answered.
 * If the time of the round is over first, the operation is cancelled. A requestState
 * (request_state.h) is opaque to the client: it contains the sealed id of a round. While
 * the round is out, the server finds the round by this id. The last answer makes the id
 * invalid.
 *
 * When another server with the same key made the requestState, the requestState contains
 * the questions and answers of the call on that server. The call then begins anew on this
 * server and uses those answers (carried_answers.h). So a call that asks questions
 * survives the end of its server. If the other server still runs, its waiting operation
 * is cancelled when the time of its round is over.
 *
 * In versions that begin with `initialize`, each question is a request of the server
 * (question_requests.h), and no rounds are on the wire. In these versions a call has a
 * round only to be counted among the live tasks and to be limited in time.
 *
 * An operation with an idempotency key does not need the requestState: each request with
 * this key waits for the operation and gets its open questions. So a client that has lost
 * a round can ask for the round again. */
#ifndef SGI_ROUNDS_H
#define SGI_ROUNDS_H

#include "engine/server/peer.h"

typedef struct sgi_round {
    /* node of the server's map of rounds; in the map only while the round waits for
     * answers (is `out`) */
    sgi_map_node node;
    /* id of the round; the id changes each time the questions are sent to the client */
    char id[SGI_RANDOM_TEXT + 1];
    sgi_buf state;      /* the requestState that contains the id */
    int64_t expires_ms; /* wall clock time at which the round expires, in ms */
    /* the operation; a counted reference while the round waits for answers (is `out`) */
    sgi_op *op;
    sgi_timer timer;
    /* number of the operation's questions when they were last sent to the client */
    int32_t shown;
    bool out;
    bool told;  /* a client has received the current id */
    bool stale; /* answers have arrived that the current requestState does not contain */
} sgi_round;

/* Makes the round of the operation, in which its questions are sent, and counts the
 * operation among the live tasks of its principal. Called before the operation asks its
 * first question. Returns SEGUE_E_LIMIT when the principal has too many live tasks. */
segue_status sgi_round_new(sgi_op *op);
/* True when the open questions must be sent: a waiting client has not received all open
 * questions, and no answer is on its way to the handler. The handler might ask more
 * questions when it gets an answer, so open questions are not sent before that. */
bool sgi_round_is_due(const sgi_op *op);
/* Sends the open questions of an operation that another server runs to the clients that
 * wait for the operation on this server. */
void sgi_round_send_followed(sgi_op *op);
/* Answers the requests that wait for the operation with the operation's open questions.
 * Does nothing unless sgi_round_is_due is true. */
void sgi_round_send(sgi_op *op);
/* True when a client has the requestState and is expected to come back with answers. */
bool sgi_round_awaits_client(const sgi_op *op);
/* Ends the round's wait if no question is open any more. Called after an answer that came
 * without the round's requestState. The caller holds a reference to the operation. */
void sgi_round_on_answer_without_state(sgi_op *op);
/* Ends and frees the round. Called when the operation has ended or has become a task. */
void sgi_round_end(sgi_op *op);

/* Returns the operation that waits for a request with this requestState, principal, item
 * and arguments, or NULL when no operation waits. *elsewhere: true when another server
 * with the same key made the requestState and this server can take over the call. */
sgi_op *sgi_round_find_op(const sgi_inbound *in, const sgi_call_kind *kind, sgi_str name,
                          bool *elsewhere);
/* True when an answer that asks questions (a round) must contain this question: a
 * handler, on this server or another server, waits for the answer. */
bool sgi_round_includes_question(const sgi_op *op, const sgi_op_question *input);

/* Cancels all operations that wait for the answers of a round. Called when no client can
 * connect any more. */
void sgi_rounds_cancel_all(segue_server *server);
/* Ends all rounds. Called when the runtime ends. */
void sgi_rounds_end_all(segue_server *server);

#endif
