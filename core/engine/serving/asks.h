/* Questions in the handshake eras (2024-11-05 to 2025-11-25): the server sends a request
 * of its own, and the client answers it with a response. Over a byte stream it goes on
 * the connection; over HTTP on the event stream of the call that asks, a task's on any
 * stream that the conversation which made it has open, or that waits for its result
 * (2025-11-25 basic/transports, "Sending Messages to the Server"; basic/utilities/tasks).
 * A question without a place waits until there is one.
 *
 * A request stands in the table of its server, under its id (question_id.h), until it is
 * answered, withdrawn, or the session ends: then its question is asked anew wherever its
 * operation is waited for. The number that is out in a session is bounded; others wait.
 *
 * An answer is taken for the question that its id names, and for no other: in the session
 * that was asked, or from the same principal when the question is in the store. One that
 * names no open question of its sender is dropped, and the log says so. */
#ifndef SGI_ASKS_H
#define SGI_ASKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "wire/json_read.h"

typedef struct sgi_ask sgi_ask;
typedef struct sgi_input sgi_input;
typedef struct sgi_message sgi_message;
typedef struct sgi_op sgi_op;
typedef struct sgi_peer sgi_peer;
typedef struct sgi_wire_session sgi_wire_session;

TAILQ_HEAD(sgi_ask_list, sgi_ask);

/* Those of a session. */
typedef struct sgi_asks {
    struct sgi_ask_list out;     /* sent and not answered */
    struct sgi_ask_list waiting; /* too many are out */
    int32_t out_count;
    sgi_wire_session *session; /* over HTTP; NULL = a byte stream */
} sgi_asks;

void sgi_asks_init(sgi_asks *asks, sgi_wire_session *session);
/* Nothing will be answered here any more. */
void sgi_asks_lose(sgi_asks *asks);
/* What became of a response. */
typedef enum sgi_answered {
    SGI_ANSWERED_NOTHING = 0, /* its client was asked nothing that it answers */
    SGI_ANSWERED_ONE,         /* it was taken, or its question is being looked for */
    SGI_ANSWERED_LATER        /* another server asked, or there is no room for it now: its
                                 client is to send it again */
} sgi_answered;

sgi_answered sgi_asks_answer(sgi_peer *peer, const sgi_message *msg);
/* The same for one that came to another server (mail.h), in this session, from the
 * principal with this digest. False: they were asked nothing that it answers. */
bool sgi_asks_brought(segue_server *server, sgi_str session, const uint8_t *who,
                      const sgi_message *msg);
/* The same for one that is INVALID: who asked hears an error. */
bool sgi_asks_malformed(sgi_peer *peer, const sgi_message *msg);

/* A notification about a task of the client's. */
void sgi_asks_notified(sgi_peer *peer, const sgi_message *msg);

/* Something was asked that is not on its way, and could be. */
bool sgi_asks_are_due(const sgi_op *op);
/* Sends it. */
void sgi_asks_send(sgi_op *op);
/* There may be a place for it now: it is sent soon. */
void sgi_asks_place(sgi_op *op);
/* The log of one that another server runs has grown: its client, here, is asked what is
 * open, and is not asked any more what has its answer. */
void sgi_asks_follow(sgi_op *op);
/* The answer to a question of the handshake eras: an error object, or a result. The
 * caller holds the operation, and the client owns it. false: it is about another task. */
bool sgi_ask_take(sgi_op *op, sgi_input *input, bool is_error, sgi_json answer);
/* The same as sgi_asks_place, for all that the session could be asked: it has opened its
 * stream. */
void sgi_asks_place_all(const sgi_wire_session *session);
/* The operation has ended, or this question has its answer: the client need not trouble
 * any more. */
void sgi_asks_withdraw(sgi_op *op);
void sgi_ask_withdraw(sgi_input *input);

#endif
