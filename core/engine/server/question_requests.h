/* Questions in the handshake eras (2024-11-05 to 2025-11-25): the server sends a request,
 * and the client answers with a response. Over a byte stream the request is sent on the
 * connection. Over HTTP a call's request is sent on the event stream of that call. A
 * task's request is sent on any open stream of the conversation that made the task, or of
 * a conversation that waits for its result (2025-11-25 basic/transports, "Sending
 * Messages to the Server"; basic/utilities/tasks). Until there is such a stream, the
 * question waits.
 *
 * A request is in the table of its server under its id (question_id.h) until it is
 * answered or withdrawn, or until the session ends. When the session ends, the question
 * is asked again in each session that waits for the operation. The number of unanswered
 * requests in a session is limited. Further requests wait.
 *
 * An answer is accepted only for the question that its id names. It must come in the
 * session in which the question was asked or, when the question is in the store, from the
 * same principal. All other answers are dropped and logged. */
#ifndef SGI_QUESTION_REQUESTS_H
#define SGI_QUESTION_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "wire/json_read.h"

typedef struct sgi_question_request sgi_question_request;
typedef struct sgi_input sgi_input;
typedef struct sgi_message sgi_message;
typedef struct sgi_op sgi_op;
typedef struct sgi_peer sgi_peer;
typedef struct sgi_wire_session sgi_wire_session;

TAILQ_HEAD(sgi_question_request_list, sgi_question_request);

/* The requests of one session. */
typedef struct sgi_question_requests {
    /* requests that were sent and not answered */
    struct sgi_question_request_list out;
    /* requests that wait, because `out` is full */
    struct sgi_question_request_list waiting;
    int32_t out_count;
    /* the wire session; NULL = the requests go over a byte stream */
    sgi_wire_session *session;
} sgi_question_requests;

void sgi_question_requests_init(sgi_question_requests *questions,
                                sgi_wire_session *session);
/* Ends the requests of a session that has ended. No answer to them will come. */
void sgi_question_requests_abandon(sgi_question_requests *questions);
/* The outcome of handling a response to one of the server's requests. */
typedef enum sgi_answered {
    /* this server has sent this client no request with that id */
    SGI_ANSWERED_NOTHING = 0,
    /* the response was taken, or its question is being looked up in the store */
    SGI_ANSWERED_ONE,
    /* The client must send the response again, because another server has asked, or
     * because too many answers are being handled now. */
    SGI_ANSWERED_LATER
} sgi_answered;

sgi_answered sgi_question_requests_take_answer(sgi_peer *peer, const sgi_message *msg);
/* Handles a response that another server has received and forwarded (mailbox.h). session,
 * who: the session of the response, and the digest of its principal. Returns false when
 * this server has sent no request with its id. */
bool sgi_question_requests_take_forwarded(segue_server *server, sgi_str session,
                                          const uint8_t *who, const sgi_message *msg);
/* Handles a malformed response: its question gets an error as the answer. Returns false
 * when there is no such question. */
bool sgi_question_requests_take_malformed(sgi_peer *peer, const sgi_message *msg);

/* Handles a notification of the client about a task that the client runs. */
void sgi_question_requests_take_notification(sgi_peer *peer, const sgi_message *msg);

/* True when the operation has an open question that has to be sent and can be sent
 * now. */
bool sgi_question_requests_are_due(const sgi_op *op);
/* Sends the open questions of the operation that were not sent yet. */
void sgi_question_requests_send(sgi_op *op);
/* Sends the operation's questions when the callbacks have run, because a stream for them
 * may have become available. */
void sgi_question_requests_send_soon(sgi_op *op);
/* Called when the log of an operation of another server has grown. Sends its new
 * questions to the client at this server, and withdraws the questions that were
 * answered. */
void sgi_question_requests_send_followed(sgi_op *op);
/* Handles the answer to a question of the handshake eras: an error object, or a result.
 * The caller holds a reference to the operation and has checked that the client owns the
 * operation. Returns false when the answer names another task. */
bool sgi_question_take_answer(sgi_op *op, sgi_input *input, bool is_error,
                              sgi_json answer);
/* Calls sgi_question_requests_send_soon for each operation that can ask in this session.
 * Called when the client has opened the session's GET stream. */
void sgi_question_requests_send_all_soon(const sgi_wire_session *session);
/* Tell the client that no answer is needed any more. sgi_question_requests_withdraw: for
 * all requests of an operation that has ended. sgi_question_withdraw_sent: for the
 * request of one question that was answered. */
void sgi_question_requests_withdraw(sgi_op *op);
void sgi_question_withdraw_sent(sgi_input *input);

#endif
