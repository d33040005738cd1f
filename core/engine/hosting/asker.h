/* A question that is asked as a task (2025-11-25 basic/utilities/tasks: here the server
 * is the requestor). It is a request like that of a client (asking/request.h): it has a
 * session of its own, which the conversation of the client carries inside. So following
 * a task, its segments (SEP-1905), their merge, and what happens when the client goes and
 * comes back, is here by the same code.
 *
 * An asker belongs to its question (sgi_input) and outlives the wire session it was put
 * in: it is cut off, and joined to the next one, where it goes on with the task that it
 * has. */
#ifndef SGI_ASKER_H
#define SGI_ASKER_H

#include "engine/conn.h"
#include "engine/log/op.h"
#include "engine/question_id.h"

typedef struct sgi_asker sgi_asker;

/* How it ended. */
typedef enum sgi_asked_end {
    SGI_ASKED_ANSWER = 0, /* json: the result */
    SGI_ASKED_ERROR,      /* json: an error object */
    SGI_ASKED_AGAIN       /* the client has nothing of it any more: it is asked anew */
} sgi_asked_end;

/* Makes the request that asks; params have the member task. told: there is something to
 * say (sgi_asker_say); ended: once, out of the ready queue; both under the lock. NULL
 * when out of memory. */
sgi_asker *sgi_asker_new(sgi_op *op, sgi_input *input, sgi_json params,
                         void (*told)(sgi_op *op),
                         void (*ended)(sgi_op *op, sgi_input *input, sgi_asked_end how,
                                       sgi_json json));
void sgi_asker_free(sgi_asker *asker);

/* A client is there, which declared these modes of SEP-1905. question: what the ids of
 * all that is said from now on begin with. */
void sgi_asker_join(sgi_asker *asker, const sgi_question_id *question, uint8_t modes);
/* ... and is gone. */
void sgi_asker_cut(sgi_asker *asker);
/* Nothing more is said: ended is called, or has been. */
bool sgi_asker_is_over(const sgi_asker *asker);

bool sgi_asker_has_words(const sgi_asker *asker);
/* Moves what it has to say to this conversation. */
void sgi_asker_say(sgi_asker *asker, sgi_conn *conn);
/* Is it waiting for a response with this id? */
bool sgi_asker_waits(const sgi_asker *asker, sgi_json id);
void sgi_asker_hear(sgi_asker *asker, const sgi_message *msg);

/* The number, in its ids, of the request that asks, while it is not answered; 0 = it
 * is. */
int64_t sgi_asker_number(const sgi_asker *asker);
/* Asks for its task to be cancelled, if there is one; nothing waits for the answer. */
void sgi_asker_cancel_task(sgi_asker *asker);

#endif
