/* Finds the stream on which a question of an operation can be sent to its client. */
#ifndef SGI_QUESTION_TARGET_H
#define SGI_QUESTION_TARGET_H

#include "engine/server/peer.h"

typedef struct sgi_question_target {
    /* the question requests of the session to which the stream belongs */
    sgi_question_requests *questions;
    sgi_conn *conn;
    /* the kinds of questions that the client can answer: a set of sgi_cap */
    uint32_t caps;
    /* the response modes that the client declared: a set of sgi_response_mode */
    uint8_t modes;
} sgi_question_target;

/* Finds a stream on which questions of the operation can be sent now. Returns false when
 * there is no such stream. */
bool sgi_question_target_find(const sgi_op *op, sgi_question_target *found);
/* True when further messages can be sent on this conversation. */
bool sgi_question_target_is_open(const sgi_conn *conn);
/* True when a client reads this conversation's output now. */
bool sgi_question_target_has_reader(const sgi_conn *conn);
/* True when, in this session, a request waits for the end of the operation or receives
 * its segments, and a client is reading the stream of that request now. */
bool sgi_question_target_is_awaited(const sgi_op *op,
                                    const sgi_question_requests *questions);
/* Returns the conversation of the wire session's GET stream. Returns NULL when no client
 * is reading a GET stream. */
sgi_conn *sgi_question_target_session_stream(const sgi_wire_session *session);

#endif
