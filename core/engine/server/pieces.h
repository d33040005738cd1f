/* Pieces: the parts of a result that the client of a plain call receives before the end,
 * if the client has asked for them. There are two forms: further responses to the request
 * (dialect P), and notifications beside it (dialect PN). Each form belongs to a dialect
 * (dialects.h).
 *
 * The pieces of a call are a source of its conversation, so they are sent as fast as the
 * client reads. They belong to the reply. The code that answers the call owns the reply
 * until the operation has ended. Then the pieces own the reply, and answer it after the
 * last piece.
 *
 * Whether the client wants pieces is known before the operation is known, because the key
 * of the call may belong to another operation. So the pieces are requested first
 * (sgi_pieces_offer), and attached to an operation later (sgi_pieces_begin). */
#ifndef SGI_PIECES_H
#define SGI_PIECES_H

#include "engine/server/segment_reader.h"
#include "engine/server/gather.h"
#include "engine/server/call_request.h"

typedef struct sgi_pieces sgi_pieces;

typedef enum sgi_pieces_outcome {
    SGI_PIECES_SENT = 0,
    SGI_PIECES_LAST, /* a piece was sent, and it is the answer */
    /* no memory: no further piece is sent, and the answer contains all of the result */
    SGI_PIECES_STOP,
    /* no memory, and the answer would lack a piece: nothing more is sent */
    SGI_PIECES_LOST
} sgi_pieces_outcome;

typedef struct sgi_pieces_form {
    /* Writes the beginning of all messages. token: the client's name for the pieces, may
     * be empty. NULL = the form has no common beginning. Returns false when out of
     * memory. */
    bool (*begin)(sgi_pieces *pieces, sgi_json token);
    /* Writes one message, which begins with the segment at the cursor. */
    sgi_pieces_outcome (*send)(sgi_pieces *pieces);
    /* Answers the request with the rest of the result, when all pieces were sent. NULL =
     * the request is answered as if there had been no pieces. */
    void (*finish)(sgi_pieces *pieces);
    /* Pieces that were sent are not repeated in the answer, so their memory can be
     * freed. */
    bool frees_consumed;
    bool is_for_lists; /* pages of lists are sent in the same form */
    /* a message has several segments, except on the channel of a lasting call */
    bool gathers;
    bool lasts; /* the form is used on the channel of a lasting call */
} sgi_pieces_form;

struct sgi_pieces {
    const sgi_pieces_form *form;
    sgi_segment_reader cursor;
    sgi_source source;
    sgi_gather gather;
    sgi_conn *conn; /* a counted reference */
    sgi_reply *reply;
    bool resumes; /* the reply is the channel of a lasting call */
    bool again;   /* the client may have received some pieces of an earlier request */
    bool open;    /* pieces may be sent now */
    bool begun;   /* at least one piece was sent */
    bool ended;   /* the operation has ended: the pieces own the reply */
    /* the last message ended before a segment that belongs to another index of the
     * list */
    bool broken;
    sgi_buf head; /* dialect PN: the common beginning of the messages */
};

/* True when more than one message can be sent for this request of the conversation. */
bool sgi_pieces_are_allowed(const sgi_conn *conn, sgi_str id);
/* Makes pieces for the reply, if they were negotiated for the request. Without memory the
 * reply gets no pieces. */
void sgi_pieces_offer(sgi_reply *reply, const sgi_call_request *request);
/* Begins the pieces of the reply, if it has any. Called before the reply waits for the
 * operation. again: an earlier request has asked for the same operation. */
void sgi_pieces_begin(sgi_reply *reply, sgi_op *op, bool again);
/* Detaches the reply from its operation, because another operation has the key. The reply
 * can still get pieces. */
void sgi_pieces_detach(sgi_reply *reply);
/* Begins the pieces on the channel of a lasting call, after the last piece that the
 * client has. has: the number of segments that the client reports; NULL = up to the
 * confirmed position. Without memory the conversation is closed, so that the client
 * resumes again. */
void sgi_pieces_resume(sgi_reply *reply, sgi_op *op, const uint64_t *has);
/* Sends more pieces, because a transport carries the conversation of the reply again. */
void sgi_pieces_continue(sgi_reply *reply);
/* Gives the reply to its pieces, because its operation has ended. */
void sgi_pieces_end(sgi_reply *reply);
/* Ends the pieces. The caller still has the reply. */
void sgi_pieces_drop(sgi_reply *reply);

/* Notes that the next message contains the log up to this position. */
void sgi_pieces_note_position(const sgi_pieces *pieces, uint64_t seq);

#endif
