/* Pieces: what the client of a plain call sees of its result before the end, if it said
 * that it wants to. Two forms: further responses to the request (P, partial.c), and
 * notifications beside it (PN, partial_result.c).
 *
 * The pieces of a call are a source of its conversation, like every stream: as fast as
 * the client reads. They hang on the reply, whose owner goes on to be who answers the
 * call, until the operation has ended: from then on the reply is theirs, and is answered
 * behind the last piece.
 *
 * A reply knows what its client wants before it knows of which operation: a creation may
 * meet the key of another one. So the pieces are wanted first (sgi_pieces_want), and then
 * those of an operation, or of another one (sgi_pieces_of). */
#ifndef SGI_PIECES_H
#define SGI_PIECES_H

#include "engine/dialect/cursor.h"
#include "engine/dialect/gather.h"
#include "engine/serving/call_request.h"

typedef struct sgi_pieces sgi_pieces;

typedef enum sgi_pieces_step {
    SGI_PIECES_SENT = 0,
    SGI_PIECES_LAST, /* ... and it was the answer */
    SGI_PIECES_STOP, /* no memory: no further piece, the answer says it all */
    SGI_PIECES_LOST  /* no memory, and the answer would lack it: nothing may follow */
} sgi_pieces_step;

typedef struct sgi_pieces_form {
    /* Writes one message, from a segment that is there on. */
    sgi_pieces_step (*send)(sgi_pieces *pieces);
    /* All is sent that there is: answers the request with what is left to say. NULL = as
     * if there had been no pieces. */
    void (*finish)(sgi_pieces *pieces);
    /* What was sent is not needed for the answer. */
    bool passes;
    bool gathers; /* a message has several segments, but on the channel of a resume */
} sgi_pieces_form;

struct sgi_pieces {
    const sgi_pieces_form *form;
    sgi_cursor cursor;
    sgi_source source;
    sgi_gather gather;
    sgi_conn *conn; /* counted */
    sgi_reply *reply;
    bool resumes; /* it is the channel of a request that can be resumed */
    bool again;   /* the client may have seen some of them, by an earlier request */
    bool open;    /* something may be sent */
    bool begun;   /* ... and was */
    bool ended;   /* the operation has: the reply is theirs */
    bool broken;  /* what was sent last ends before a segment that stands elsewhere */
    sgi_buf head; /* PN: what each of its messages begins with */
};

/* The reply is to have pieces, if that was negotiated for the request. Without memory
 * there are none. */
void sgi_pieces_want(sgi_reply *reply, const sgi_call_request *request);
/* Begins them, if there are to be any; before the reply waits for the operation. again:
 * the operation was asked for before. */
void sgi_pieces_of(sgi_reply *reply, sgi_op *op, bool again);
/* The operation is not the one that there is: they are still wanted. */
void sgi_pieces_leave(sgi_reply *reply);
/* The same for the channel of a request that can be resumed (Z): from where its client
 * has all. has: the number of segments it says to have; NULL = what is confirmed.
 * Without memory the conversation closes: its client comes again. */
void sgi_pieces_resume(sgi_reply *reply, sgi_op *op, const uint64_t *has);
/* Somebody carries its conversation again. */
void sgi_pieces_wake(sgi_reply *reply);
/* The operation has ended, its reply has pieces: takes the reply. */
void sgi_pieces_end(sgi_reply *reply);
/* No further piece; the reply is not theirs. */
void sgi_pieces_drop(sgi_reply *reply);

/* resumable_channel.c: an entry that is a message of its own; the questions that were put
 * are put no more. */
void sgi_channel_send(sgi_cursor *cursor, const sgi_entry *entry);
void sgi_channel_withdraw(const sgi_pieces *pieces);
/* The next message holds the log up to this entry. */
void sgi_pieces_mark(const sgi_pieces *pieces, uint64_t seq);

extern const sgi_pieces_form sgi_pieces_partial;        /* P */
extern const sgi_pieces_form sgi_pieces_partial_result; /* PN */

#endif
