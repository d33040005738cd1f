/* A lasting call: its client can lose the connection and get the remaining messages over
 * another connection, even from another server on the same store or from a later process.
 * Dialects make such calls (dialects.h). The dialect's data of a lasting call is a struct
 * that begins with sgi_lasting_call and belongs to the operation. The messages are
 * entries of the operation's log. The server sends the messages on the channel, which is
 * the newest reply on which the client has asked for the messages (pieces.h). */
#ifndef SGI_LASTING_H
#define SGI_LASTING_H

#include "engine/server/pieces.h"

typedef struct sgi_lasting_call sgi_lasting_call;

/* The functions of a dialect for its lasting calls: calls whose client can leave and come
 * back. Every function is set, unless its comment allows NULL. */
struct sgi_lasting_call_ops {
    /* ---- the call ---- */

    /* Makes the state of a lasting call. Called before the operation is stored. Returns
     * NULL when out of memory. */
    sgi_lasting_call *(*make)(sgi_op *op, const sgi_reply *reply,
                              const sgi_call_request *request);
    void (*free)(sgi_lasting_call *lasting);
    /* Called when the call is durable, as a task or as a plain call. Notes that the
     * client is present, and sends the first message, which tells the client how to come
     * back. When a plain call becomes a task later, the function is called a second time
     * and does nothing. */
    void (*created)(sgi_lasting_call *lasting, sgi_reply *reply);
    /* `write` and `read` handle the dialect's member of the stored record. When the
     * record of an operation lacks the member, `read` sets *out to NULL. `read` returns
     * false when out of memory or when the member is corrupt. */
    void (*write)(const sgi_lasting_call *lasting, sgi_jw *w);
    bool (*read)(sgi_op *op, sgi_json data, sgi_lasting_call **out);
    /* Returns how long the store keeps the record after the end of the call, in ms. This
     * time is added to the time for which the server keeps every ended operation. */
    int64_t (*kept_ms)(const sgi_lasting_call *lasting);

    /* Called when a client has repeated the call with its idempotency key, and the call's
     * client is away. Makes the reply the channel, on which the messages of the call are
     * sent from now on. Returns false when this is not possible. */
    bool (*repeated)(sgi_lasting_call *lasting, sgi_reply *reply);
    /* Makes the newest waiting reply the channel, if the call has no channel
     * (sgi_rejoin_offer_channel). The table has this function of the server because
     * lasting.c may not call the files that find calls again. */
    void (*offer_channel)(sgi_op *op);

    /* ---- the call's log ---- */

    /* Appends a progress or log message of the handler to the log. */
    segue_status (*note)(sgi_lasting_call *lasting, sgi_str message);
    /* Called when an entry was appended to the log of the call. */
    void (*joined)(sgi_lasting_call *lasting, const sgi_entry *entry);
    /* Drops entries that are no longer needed, to make room for `bytes` more bytes. */
    void (*make_room)(sgi_lasting_call *lasting, size_t bytes, size_t limit);

    /* ---- the call's client ---- */

    /* Called when the client's transport has gone and no longer carries the peer's
     * conversation. Another transport can carry the conversation later. */
    void (*parted)(sgi_lasting_call *lasting);
    /* Called when a transport carries the peer's conversation again after `parted`. */
    void (*rejoined)(sgi_lasting_call *lasting);
    /* Called when the transport has written its earlier output and is about to take more.
     * Returns true when the dialect needs the next such call too. */
    bool (*passed)(sgi_lasting_call *lasting);
    /* Called when another server reports about the client. away = false: the client has
     * connected to that server. away = true: the client has disconnected from that
     * server. attached_at: position up to which that server had read the log when the
     * client came; a report that is older than the client's return to this server has no
     * effect. */
    void (*elsewhere)(sgi_lasting_call *lasting, bool away, uint64_t attached_at);
    /* True when the log shows that the client is away. */
    bool (*is_away)(const sgi_lasting_call *lasting);
    /* True when the log shows that the client has been away for too long. */
    bool (*is_over)(const sgi_lasting_call *lasting);

    /* ---- the call's channel ---- */

    /* Sends an entry that becomes a separate message to the client. */
    void (*send)(sgi_segment_reader *cursor, const sgi_entry *entry);
    /* Sends a question again, because the client's answer did not reach the log: its
     * commit was refused, it could not be forwarded, or it did not fit the question. */
    void (*ask)(sgi_pieces *pieces, sgi_op_question *input);
    /* Withdraws the open questions of the call. Called before the answer of the call is
     * sent. */
    void (*withdraw)(const sgi_pieces *pieces);

    /* ---- several servers: see sgi_cluster_observer in cluster.h ---- */

    void (*rebuilt)(sgi_lasting_call *lasting);
    void (*adopted)(sgi_lasting_call *lasting, const sgi_lasting_call *fresh);
    void (*taken_over)(sgi_lasting_call *lasting);
    void (*moved)(sgi_lasting_call *lasting);
};

struct sgi_lasting_call {
    const sgi_lasting_call_ops *form;
    sgi_op *op;
    /* the form of the pieces in which the client gets a growing result; NULL = only the
     * whole result is sent */
    const sgi_pieces_ops *pieces;
    /* JSON text of the client's progress token; NULL = the client wants no progress */
    char *progress_token;
    /* index of the lowest level of log messages at the beginning of the call; -1 = no log
     * messages */
    int32_t log_level;
    /* position in the log up to which the client has confirmed that it received
     * entries */
    uint64_t confirmed;
    /* position in the log up to which entries were written into the output */
    uint64_t sent;
    /* the reply on which the messages are sent; NULL = the client is not connected */
    sgi_reply *channel;
    /* the peer of `channel`; while the client is not connected, the peer of the last
     * channel; NULL = that peer was freed */
    sgi_peer *peer;
    LIST_ENTRY(sgi_lasting_call) by_peer;
    sgi_timer offer; /* fires when a waiting reply can perhaps become the channel */
};

/* Makes the call of an operation a lasting call (its client can leave and come back) if
 * the request allows it. Returns false when out of memory. */
bool sgi_lasting_call_make(sgi_op *op, const sgi_reply *reply,
                           const sgi_call_request *request);
/* Reads the state of a lasting call from a stored record. A record without this state is
 * valid. Returns false when out of memory or when the state is corrupt. */
bool sgi_lasting_call_read(sgi_op *op, sgi_json data);
void sgi_lasting_call_free(sgi_op *op);

/* True for a lasting call that is not a task. The handler of such a call starts when the
 * call is durable, and the handler's progress and log messages are written to the log. */
static inline bool sgi_op_is_lasting_call(const sgi_op *op)
{
    return op->served->lasting && !sgi_op_is_task(op);
}

/* sgi_lasting_call_join_peer adds the call to the peer's list of lasting calls (calls
 * whose client can leave and come back). sgi_lasting_call_leave_peer removes the call
 * from that list. */
void sgi_lasting_call_join_peer(sgi_lasting_call *lasting, sgi_peer *peer);
void sgi_lasting_call_leave_peer(sgi_lasting_call *lasting);
/* Notes that the messages of a lasting call are not sent on this reply any more. */
void sgi_lasting_call_leave_reply(sgi_reply *reply);
/* Notes that the next message on the reply contains the log up to this position. Does
 * nothing when the reply does not carry the messages of a lasting call (is no
 * channel). */
void sgi_lasting_call_note_position(sgi_reply *reply, uint64_t seq);

/* Makes the newest waiting reply the channel, later in this turn of the loop, if the call
 * has no channel then. Called when the channel may have gone, or when a transport carries
 * a waiting reply again. */
void sgi_lasting_call_offer_channel_soon(sgi_lasting_call *lasting);

/* ---- functions called for a peer ---- */

/* Report a change of the peer's conversation to the peer's lasting calls. parted: the
 * transport has left the conversation. rejoined: a transport carries the conversation
 * again. lost: the conversation has ended. */
void sgi_lasting_calls_on_peer_parted(sgi_peer *peer);
void sgi_lasting_calls_on_peer_rejoined(sgi_peer *peer);
void sgi_lasting_calls_on_peer_lost(sgi_peer *peer);
/* Reports to the peer's lasting calls that the transport has written its earlier output
 * and is about to take more. Returns true when a lasting call needs the next such report
 * too. */
bool sgi_lasting_calls_on_output_written(sgi_peer *peer);

#endif
