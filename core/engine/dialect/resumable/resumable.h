/* Dialect Z: a request that can be resumed (SEP-975, core/docs/requirements.md 4). A
 * client that knows the request's id and token gets the messages that were not
 * delivered. The client can ask over another connection, and also after a restart of
 * the server. Such a request is a lasting call: its client can leave and come back
 * (server/lasting.h).
 *
 *    ATTACHED --the client leaves--> DETACHED --requests/resume--> ATTACHED
 *                                        \-- maxWait is over --> EXPIRED
 *    any state -- final message confirmed --> CLOSED
 *
 * The clock runs only while no client is attached. Each valid request about the operation
 * resets the clock (R-975-5). The log says when the client left and when it came back. So
 * the clock continues after a restart, and also counts the time during which no server
 * ran. The clock also continues at another server (R-975-27). A message is delivered when
 * it is confirmed. Over a byte stream a message is confirmed when it was written. Over
 * HTTP a message is confirmed by the Last-Event-ID of a client that resumes
 * (R-975-17). */
#ifndef SGI_RESUMABLE_H
#define SGI_RESUMABLE_H

#include "engine/log/notes.h"
#include "engine/server/lasting.h"

#define SGI_RESUME_TAG 8

typedef struct sgi_resumable {
    sgi_lasting_call lasting;
    char *id; /* JSON-RPC id of the request, as canonical JSON */
    /* the secret part of the token; empty when the token was sent to the client */
    char secret[SGI_RANDOM_TEXT + 1];
    uint8_t hash[SGI_DIGEST_SIZE]; /* digest of the secret part of the token */
    char tag[SGI_RESUME_TAG + 1];  /* tag that the ids of the stream's events contain */
    /* the shortest wait in ms that was promised to the client (minWait); 0 = no
     * promise */
    int64_t min_wait_ms;
    /* the longest wait in ms that was promised to the client (maxWait); 0 = no promise */
    int64_t max_wait_ms;
    sgi_droppable_entries notes;
    /* for a result that is sent in pieces (PR 776): the segments that the client has
     * confirmed; they may be dropped from the log */
    sgi_droppable_entries pieces;
    uint64_t last_message; /* position of the newest entry that is a message */
    uint64_t handed;       /* position up to which the log was passed to the transport */
    bool detached;
    /* position in the log of the moment at which the client was attached to this server.
     * A report of another server that does not know the log up to this position is older,
     * so the client has left that server since. */
    uint64_t attached_at;
    /* true when the newest PRESENCE entry of the log says that the client is away */
    bool away;
    int64_t away_ms; /* wall clock time in ms at which the client left */
    /* position of the newest PRESENCE entry; 0 = the log has no such entry */
    uint64_t marked_seq;
    sgi_timer clock;
    /* the reason why the request is closed and nothing more is sent for it; NULL = not
     * closed */
    const char *closed;
} sgi_resumable;

extern const sgi_lasting_call_ops sgi_resumable_form;

static inline sgi_resumable *sgi_resumable_at(const sgi_lasting_call *lasting)
{
    return SGI_OWNER(lasting, sgi_resumable, lasting);
}

/* Returns the data of a resumable request (SEP-975) that belongs to this operation; NULL
 * when the operation is not resumable. */
static inline sgi_resumable *sgi_resumable_of(const sgi_op *op)
{
    const sgi_lasting_call *lasting = op->served->lasting;
    return lasting && lasting->form == &sgi_resumable_form ? sgi_resumable_at(lasting)
                                                           : NULL;
}

/* Makes `reply` the channel of the call: the messages of the call are now sent on this
 * reply and no longer on an earlier one. Returns false when another request in flight has
 * the same id. */
bool sgi_resumable_attach(sgi_resumable *r, sgi_reply *reply);
/* True when `hash` is the digest of the token's secret. */
bool sgi_resumable_token_matches(const sgi_resumable *r,
                                 const uint8_t hash[SGI_DIGEST_SIZE]);
/* Notes that the client has received the log up to this position. */
void sgi_resumable_note_received(sgi_resumable *r, uint64_t seq);
/* True when the log has messages that the client has not received. */
bool sgi_resumable_has_pending(const sgi_resumable *r);

/* The next three functions belong to the dialect's sgi_lasting_call_ops
 * (resumable_channel.c). */
void sgi_resumable_send_entry(sgi_segment_reader *cursor, const sgi_entry *entry);
void sgi_resumable_send_question(sgi_pieces *pieces, sgi_op_question *input);
void sgi_resumable_withdraw_questions(const sgi_pieces *pieces);

#endif
