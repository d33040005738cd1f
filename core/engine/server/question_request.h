/* One question that was sent as a request, or waits to be sent (question_requests.h).
 * Three files share it: question_due.c decides what must be sent, question_requests.c
 * sends and withdraws, question_answers.c receives the answers.
 *
 * A request holds a reference to its operation and, once it was sent, a reference to its
 * conversation. The question in the operation (sgi_op_question) points to its request. */
#ifndef SGI_QUESTION_REQUEST_H
#define SGI_QUESTION_REQUEST_H

#include "engine/input/question_task.h"
#include "engine/server/pieces.h"
#include "engine/server/question_requests.h"
#include "engine/server/question_target.h"
#include "engine/server/question_wire.h"

struct sgi_question_request {
    TAILQ_ENTRY(sgi_question_request) link;
    sgi_question_requests *questions;
    sgi_op *op; /* a counted reference */
    sgi_op_question *input;
    /* the conversation on which the request was sent, a counted reference; NULL = the
     * request waits and was not sent yet */
    sgi_conn *conn;
    /* number of the event that contains the request; 0 if `conn` does not number its
     * events */
    uint64_t event;
    sgi_question_id_text id;
    /* node of server->questions; in that map only after the request was sent */
    sgi_map_node by_id;
    /* the client has declared that the server can cancel tasks of the client */
    bool cancels;
};

/* ---- question_due.c ---- */

/* True when the question must be sent and a connected client can answer the question.
 * *where is then the target. */
bool sgi_question_can_be_sent(const sgi_op *op, const sgi_op_question *input,
                              sgi_question_target *where);
/* True when the question's task has messages for the client, and they can be sent now. */
bool sgi_question_has_output(const sgi_op_question *input);
/* Returns the conversation on which the messages of a question task can be sent now, or
 * NULL when no conversation is available. */
sgi_conn *sgi_question_request_conversation(const sgi_question_request *question);
/* Returns the pieces whose reader sends the questions of a lasting call (its client can
 * leave and come back). Returns NULL when the client is not connected. */
sgi_pieces *sgi_question_channel(const sgi_op *op);
/* True when the channel has sent the question and its answer was lost. The reader of the
 * channel sends each question only once. */
bool sgi_question_is_lost(const sgi_op *op, const sgi_op_question *input);

/* ---- question_requests.c ---- */

/* Removes the request from its session and frees it, and sends the next request that
 * waits. The caller holds a reference to the operation. */
void sgi_question_request_remove(sgi_question_request *question);
/* Frees the question task of a question, and removes the question's request. */
void sgi_question_end_task(sgi_op_question *input);

/* ---- question_answers.c ---- */

/* What the task of a question tells: it has messages, or it has ended. */
extern const sgi_question_task_events sgi_question_answer_events;

#endif
