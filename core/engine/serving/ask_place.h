/* Where a question of an operation can be put to its client. */
#ifndef SGI_ASK_PLACE_H
#define SGI_ASK_PLACE_H

#include "engine/serving/peer.h"

typedef struct sgi_place {
    sgi_asks *asks; /* the table of its session */
    sgi_conn *conn;
    uint32_t caps; /* of its client */
    uint8_t modes; /* sgi_response_mode: those it declared */
} sgi_place;

/* false: nowhere now. */
bool sgi_place_find(const sgi_op *op, sgi_place *found);
/* Can more than one message go out on it? */
bool sgi_place_is_open(const sgi_conn *conn);
/* Does somebody read it now? */
bool sgi_place_is_read(const sgi_conn *conn);
/* Does somebody in that session wait for the end of the operation, or read its segments,
 * on a stream that is read now? */
bool sgi_place_is_called(const sgi_op *op, const sgi_asks *asks);
/* The stream that a session of HTTP listens on, or NULL. */
sgi_conn *sgi_place_listening(const sgi_wire_session *session);

#endif
