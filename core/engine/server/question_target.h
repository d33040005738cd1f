/* Finds the stream on which a question of an operation can be sent to its client. */
#ifndef SGI_QUESTION_TARGET_H
#define SGI_QUESTION_TARGET_H

#include "engine/server/peer.h"

typedef struct sgi_question_target {
    /* the table of requests of the session to which the stream belongs */
    sgi_question_requests *questions;
    sgi_conn *conn;
    uint32_t caps; /* sgi_cap: the kinds of questions that the client can be asked */
    uint8_t modes; /* sgi_response_mode: the modes that the client declared */
} sgi_question_target;

/* Finds a stream for the operation's questions (a target). Returns false when there
 * is none now. */
bool sgi_question_target_find(const sgi_op *op, sgi_question_target *found);
/* True when more than one message can be sent on this conversation. */
bool sgi_question_target_is_open(const sgi_conn *conn);
/* True when a client reads this conversation's output now. */
bool sgi_question_target_is_read(const sgi_conn *conn);
/* True when a request of that session waits for the end of the operation, or reads its
 * segments, on a stream that its client reads now. */
bool sgi_question_target_is_awaited(const sgi_op *op,
                                    const sgi_question_requests *questions);
/* Returns the conversation of the GET stream of a session over HTTP, or NULL. */
sgi_conn *sgi_question_target_session_stream(const sgi_wire_session *session);

#endif
