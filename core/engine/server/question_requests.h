/* Questions by request, in 2024-11-05 to 2025-11-25: the server sends each question as a
 * request, and the client answers with a response. Over a byte stream the request is sent
 * on the connection. Over HTTP a call's request is sent on the event stream of that call.
 * A task's request is sent on an open stream of the conversation that made the task, or
 * of a conversation that waits for the task's result (2025-11-25 basic/transports,
 * "Sending Messages to the Server"; basic/utilities/tasks). Until there is such a stream,
 * the question waits.
 *
 * A request is in the table of its server, under its id (question_id.h), until the
 * request is answered or withdrawn, or its session ends. When the session ends, the
 * question is asked again in each session that waits for the operation. The number of
 * unanswered requests in a session is limited; further requests wait.
 *
 * An answer is accepted only for the question that its id names. The answer must come in
 * the session in which the question was asked. If the question is in the store, the
 * answer can also come in another session of the same principal. All other answers are
 * dropped and logged. */
#ifndef SGI_QUESTION_REQUESTS_H
#define SGI_QUESTION_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "wire/json_read.h"

typedef struct sgi_question_request sgi_question_request;
typedef struct sgi_op_question sgi_op_question;
typedef struct sgi_message sgi_message;
typedef struct sgi_op sgi_op;
typedef struct sgi_peer sgi_peer;
typedef struct sgi_wire_session sgi_wire_session;

TAILQ_HEAD(sgi_question_request_list, sgi_question_request);

/* The requests that ask questions in one session. */
typedef struct sgi_question_requests {
    /* the requests that were sent and have no answer yet */
    struct sgi_question_request_list out;
    /* the requests that wait because `out` is full */
    struct sgi_question_request_list waiting;
    int32_t out_count;
    /* the wire session; NULL = the requests go over a byte stream */
    sgi_wire_session *session;
} sgi_question_requests;

void sgi_question_requests_init(sgi_question_requests *questions,
                                sgi_wire_session *session);
/* Ends the requests of a session that has ended. Their questions are asked again in other
 * sessions. */
void sgi_question_requests_abandon(sgi_question_requests *questions);
/* What the server has done with a response of the client to one of the server's
 * requests. */
typedef enum sgi_answered {
    /* the response was not used: no open question of this client has its id */
    SGI_ANSWERED_NOTHING = 0,
    /* the response was accepted, or its question is being looked up in the store */
    SGI_ANSWERED_ONE,
    /* the POST of the response gets its status later, when the store has the response */
    SGI_ANSWERED_AWAITED,
    /* The client must send the response again: another server has asked the question, or
     * too many answers are being handled now. */
    SGI_ANSWERED_LATER
} sgi_answered;

sgi_answered sgi_question_requests_take_answer(sgi_peer *peer, const sgi_message *msg);
/* Handles a response that another server has received and forwarded (mailbox.h). session:
 * the session in which the response came. who: the digest of the client's principal.
 * Returns false when this server has no open request with the response's id. */
bool sgi_question_requests_take_forwarded(segue_server *server, sgi_str session,
                                          const uint8_t *who, const sgi_message *msg);
/* Handles a malformed response: its question is answered with an error. Returns false
 * when no open question has the response's id. */
bool sgi_question_requests_take_malformed(sgi_peer *peer, const sgi_message *msg);

/* Handles a client's notification about a task that the client runs. */
void sgi_question_requests_take_notification(sgi_peer *peer, const sgi_message *msg);

/* True when a question of the operation must be sent and can be sent now. */
bool sgi_question_requests_are_due(const sgi_op *op);
/* Sends the open questions of the operation that were not sent yet. */
void sgi_question_requests_send(sgi_op *op);
/* Sends the operation's questions after its callbacks have run. Called when a stream for
 * questions may have become available. */
void sgi_question_requests_send_soon(sgi_op *op);
/* Called when the log of an operation that another server runs has grown. Sends new
 * questions to the client of this server, and withdraws answered questions. */
void sgi_question_requests_send_followed(sgi_op *op);
/* Handles the answer to a question that the server has sent as a request. The answer is
 * an error object or a result. The caller holds a reference to the operation and has
 * checked that the client owns the operation. Returns SGI_ANSWERED_NOTHING when the
 * answer names another task. */
sgi_answered sgi_question_take_answer(sgi_op *op, sgi_op_question *input, bool is_error,
                                      sgi_json answer);
/* Calls sgi_question_requests_send_soon for each operation that can ask questions in this
 * session. Called when the client has opened the session's GET stream. */
void sgi_question_requests_send_all_soon(const sgi_wire_session *session);
/* Calls sgi_question_requests_send_soon for each operation that has an unanswered request
 * in this session. Called when a stream of such requests has had no reader for a
 * while. */
void sgi_question_requests_send_again_soon(sgi_question_requests *questions);
/* Tell the client that a question needs no answer any more.
 * sgi_question_requests_withdraw withdraws all requests of an operation that has ended.
 * sgi_question_withdraw_sent withdraws the request of one answered question. */
void sgi_question_requests_withdraw(sgi_op *op);
void sgi_question_withdraw_sent(sgi_op_question *input);

#endif
