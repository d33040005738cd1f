/* A lasting call: its client may lose the connection and get the rest of the messages
 * over another connection, even from another server on the store or from a later process.
 * Dialects make such calls (dialects.h). The dialect's data of a lasting call is a struct
 * that begins with sgi_lasting and belongs to the operation. The messages are entries of
 * the operation's log. They are sent on the channel, which is the newest reply on which
 * the client has asked for them (pieces.h). */
#ifndef SGI_LASTING_H
#define SGI_LASTING_H

#include "engine/server/pieces.h"

typedef struct sgi_lasting sgi_lasting;

/* The functions of a dialect for its lasting calls. No function is NULL, except where a
 * comment says so. */
struct sgi_lasting_form {
    /* ---- the call ---- */

    /* Makes the state of a lasting call. Called before the operation is stored. Returns
     * NULL when out of memory. */
    sgi_lasting *(*make)(sgi_op *op, const sgi_reply *reply,
                         const sgi_call_request *request);
    void (*free)(sgi_lasting *lasting);
    /* Called when the call is durable, as a task or as a plain call. Notes that the
     * client is present and sends the first message, which says how the client can come
     * back. When the call becomes a task later, the function is called a second time and
     * does nothing. */
    void (*created)(sgi_lasting *lasting, sgi_reply *reply);
    /* Write and read the dialect's member of the stored record. When an operation lacks
     * the member, read sets *out to NULL. read returns false when out of memory or when
     * the member is corrupt. */
    void (*write)(const sgi_lasting *lasting, sgi_jw *w);
    bool (*read)(sgi_op *op, sgi_json data, sgi_lasting **out);
    /* Returns for how long the record stays in the store after the end of the call, in
     * addition to the time that the server always grants. */
    int64_t (*kept_ms)(const sgi_lasting *lasting);

    /* ---- the call's log ---- */

    /* Appends a progress or log message of the handler to the log. */
    segue_status (*note)(sgi_lasting *lasting, sgi_str message);
    /* Called when an entry was appended to the log of the call. */
    void (*joined)(sgi_lasting *lasting, const sgi_entry *entry);
    /* Drops entries that may be dropped, because more bytes are to be appended. */
    void (*make_room)(sgi_lasting *lasting, size_t bytes, size_t limit);

    /* ---- the call's client ---- */

    /* Called when no transport carries the peer's conversation any more. Another
     * transport may carry it later. */
    void (*parted)(sgi_lasting *lasting);
    /* Called when a transport carries the peer's conversation again. */
    void (*rejoined)(sgi_lasting *lasting);
    /* Called when the transport has written the output that it took earlier and is about
     * to take more. Returns true to be called again after the next output was written. */
    bool (*passed)(sgi_lasting *lasting);
    /* Called when another server reports the client's presence. away false: the client
     * has connected to that server. away true: it has disconnected from there. */
    void (*elsewhere)(sgi_lasting *lasting, bool away);
    /* True when the log shows that the client has been away for too long. */
    bool (*is_over)(const sgi_lasting *lasting);

    /* ---- the call's channel ---- */

    /* Sends an entry that is a message of its own to the client. */
    void (*send)(sgi_segment_reader *cursor, const sgi_entry *entry);
    /* Withdraws the questions that need no answer any more, before the answer of the call
     * is sent. */
    void (*withdraw)(const sgi_pieces *pieces);

    /* ---- several servers: see sgi_cluster_observer in cluster.h ---- */

    void (*rebuilt)(sgi_lasting *lasting);
    void (*adopted)(sgi_lasting *lasting, const sgi_lasting *fresh);
    void (*taken_over)(sgi_lasting *lasting);
    void (*moved)(sgi_lasting *lasting);
};

struct sgi_lasting {
    const sgi_lasting_form *form;
    sgi_op *op;
    /* the form in which the client gets the result while it grows; NULL = only the whole
     * result is sent */
    const sgi_pieces_form *pieces;
    char *progress_token; /* JSON text or NULL */
    int32_t log_level;    /* index of the level; -1 = no log messages */
    /* position in the log up to which the client has confirmed that it received
     * entries */
    uint64_t confirmed;
    /* position in the log up to which entries were written into the output */
    uint64_t sent;
    sgi_reply *channel; /* the reply on which the messages are sent, or NULL */
    /* the peer of the channel or, when there is no channel, of the last one; NULL = that
     * peer is gone */
    sgi_peer *peer;
    LIST_ENTRY(sgi_lasting) by_peer;
};

/* Makes the call of an operation a lasting one, if the request allows it. Returns false
 * when out of memory. */
bool sgi_lasting_make(sgi_op *op, const sgi_reply *reply,
                      const sgi_call_request *request);
/* Reads the state of a lasting call from a stored record. Returns true also for a record
 * without such a state, and false when out of memory or when the state is corrupt. */
bool sgi_lasting_read(sgi_op *op, sgi_json data);
void sgi_lasting_free(sgi_op *op);

/* True for a lasting call that is not a task: the messages of its handler go into the
 * log, and the handler starts when the call is durable. */
static inline bool sgi_op_is_lasting_call(const sgi_op *op)
{
    return op->served->lasting && !op->served->is_task;
}

/* sgi_lasting_join_peer adds the call to the peer's list of lasting calls,
 * sgi_lasting_leave_peer removes it. */
void sgi_lasting_join_peer(sgi_lasting *lasting, sgi_peer *peer);
void sgi_lasting_leave_peer(sgi_lasting *lasting);
/* Notes that the reply is no longer the channel of a lasting call. */
void sgi_lasting_leave_reply(sgi_reply *reply);
/* Notes that the next message on the reply reaches up to this position of the log. Does
 * nothing for a reply that is no channel. */
void sgi_lasting_note_position(sgi_reply *reply, uint64_t seq);

/* ---- functions called for a peer ---- */

/* Report a change of the peer's conversation to its lasting calls: no transport carries
 * the conversation any more (parted), a transport carries it again (rejoined), or it has
 * ended (lost). */
void sgi_lasting_peer_parted(sgi_peer *peer);
void sgi_lasting_peer_rejoined(sgi_peer *peer);
void sgi_lasting_peer_lost(sgi_peer *peer);
/* Reports to the peer's lasting calls that the transport has written the output that it
 * took earlier and is about to take more. Returns true to be called again after the next
 * output was written. */
bool sgi_lasting_peer_confirm_written(sgi_peer *peer);

#endif
