/* Pieces: parts of a result that the client of a plain call receives before the call
 * ends, if the client asks for pieces. Pieces have two forms: further responses to the
 * request (dialect P, PR 776), and notifications (dialect PN, SEP-2998). Each form
 * belongs to a dialect (dialects.h).
 *
 * The pieces of a call are a source of its conversation, so a piece is written only when
 * the client has read enough. While the operation runs, the pieces belong to the reply.
 * When the operation has ended, the pieces own the reply and answer it after the last
 * piece.
 *
 * The request shows whether the client wants pieces. At that time the operation of the
 * call is not known yet: the idempotency key of the call may belong to an earlier
 * operation. So the pieces are made first (sgi_pieces_new_if_negotiated) and get their
 * operation later (sgi_pieces_begin). */
#ifndef SGI_PIECES_H
#define SGI_PIECES_H

#include "engine/server/segment_reader.h"
#include "engine/server/gather.h"
#include "engine/server/call_request.h"

typedef struct sgi_pieces sgi_pieces;

typedef enum sgi_pieces_outcome {
    SGI_PIECES_SENT = 0,
    SGI_PIECES_LAST, /* the sent piece was also the answer */
    /* out of memory: no further piece is sent, and the answer has the whole result */
    SGI_PIECES_STOP,
    /* out of memory, and an answer would lack a piece: nothing more is sent */
    SGI_PIECES_LOST
} sgi_pieces_outcome;

typedef struct sgi_pieces_ops {
    /* Writes the beginning that all messages with pieces share. token: the name that the
     * client chose for the pieces, perhaps empty. Returns false when out of memory. NULL
     * = the messages share no beginning. */
    bool (*begin)(sgi_pieces *pieces, sgi_json token);
    /* Writes one message, whose first segment is the segment at the cursor. */
    sgi_pieces_outcome (*send)(sgi_pieces *pieces);
    /* Answers the request with the remaining part of the result, when all pieces were
     * sent. NULL = the answer has the whole result. */
    void (*finish)(sgi_pieces *pieces);
    /* the answer does not repeat sent pieces, so the memory of sent pieces can be
     * freed */
    bool frees_consumed;
    /* long pages of lists (such as tools/list) are also sent in this form of pieces */
    bool is_for_lists;
    /* one message can contain several segments, except in a lasting call (its client can
     * leave and come back) */
    bool gathers;
    /* this form of pieces can be used in a lasting call (its client can leave and come
     * back) */
    bool lasts;
} sgi_pieces_ops;

struct sgi_pieces {
    const sgi_pieces_ops *form;
    sgi_segment_reader cursor;
    sgi_output_source source;
    sgi_response_pacer gather;
    sgi_conn *conn; /* a counted reference */
    sgi_reply *reply;
    /* the reply carries the messages of a lasting call (its client can leave and come
     * back) */
    bool resumes;
    /* an earlier request has asked for the same call, so the client may already have some
     * pieces */
    bool again;
    bool open;  /* pieces may be sent now */
    bool begun; /* at least one piece was sent */
    bool ended; /* the operation has ended, and the pieces own the reply */
    /* the last message ended early, because the index of the next segment does not follow
     * the index before it */
    bool broken;
    /* for pieces as notifications (SEP-2998): the beginning that all messages with pieces
     * share */
    sgi_buf head;
};

/* True when this request can be answered with more than one message. */
bool sgi_pieces_are_allowed(const sgi_conn *conn, sgi_str id);
/* Makes pieces for the reply if the request has negotiated pieces. When out of memory,
 * the reply gets no pieces. */
void sgi_pieces_new_if_negotiated(sgi_reply *reply, const sgi_call_request *request);
/* Begins to send the pieces of the reply; does nothing if the reply has no pieces. Called
 * before the reply waits for the operation. again = true: an earlier request has asked
 * for the same operation. */
void sgi_pieces_begin(sgi_reply *reply, sgi_op *op, bool again);
/* Separates the pieces from their operation, because the idempotency key belongs to
 * another operation. The reply can then get pieces of that other operation. */
void sgi_pieces_detach(sgi_reply *reply);
/* Begins to send pieces of a lasting call to a client that has come back, after the last
 * piece that the client has. has: the number of segments that the client reports to have;
 * NULL = continue after the position that the client confirmed. When out of memory, the
 * conversation is closed and the client must resume again. */
void sgi_pieces_resume(sgi_reply *reply, sgi_op *op, const uint64_t *has);
/* The same for a client that has repeated the call, with or without pieces, as this
 * request asks for. The client gets the segments behind those that were sent on this
 * reply. */
void sgi_pieces_repeat(sgi_reply *reply, sgi_op *op);
/* Sends further pieces. Called when a transport carries the reply's conversation
 * again. */
void sgi_pieces_continue(sgi_reply *reply);
/* Makes the pieces the owner of the reply, because the operation has ended. The pieces
 * then answer and close the reply. */
void sgi_pieces_finish_reply(sgi_reply *reply);
/* Frees the pieces without an answer. The caller must still answer and close the
 * reply. */
void sgi_pieces_drop(sgi_reply *reply);

/* Notes that the next message contains the log up to this position. */
void sgi_pieces_note_position(const sgi_pieces *pieces, uint64_t seq);

#endif
