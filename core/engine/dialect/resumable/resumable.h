/* Z: a request that can be resumed (SEP-975, core/docs/requirements.md 4). A client that
 * knows the request's id and token gets the messages that were not delivered. It can ask
 * over another connection, and from a later process of the server. Such a request is a
 * lasting call (server/lasting.h).
 *
 *    ATTACHED --peer parted--> DETACHED --resume--> ATTACHED
 *                                 \-- maxWait is over --> EXPIRED
 *    any state -- final message confirmed --> CLOSED
 *
 * The clock runs only while no client is attached. Each valid request about the operation
 * resets it (R-975-5). The log says when the client left and when it came back, so the
 * clock continues after a restart (also for the time during which no server ran) and at
 * another server (R-975-27). A message is delivered when it is confirmed: over a byte
 * stream when it was written, over HTTP by the Last-Event-ID of a client that resumes
 * (R-975-17). */
#ifndef SGI_RESUMABLE_H
#define SGI_RESUMABLE_H

#include "engine/log/notes.h"
#include "engine/server/lasting.h"

#define SGI_RESUME_TAG 8

typedef struct sgi_resumable {
    sgi_lasting lasting;
    char *id; /* id of the request, as canonical JSON */
    /* the secret half of the token; empty when the client has received it */
    char secret[SGI_RANDOM_TEXT + 1];
    uint8_t hash[SGI_DIGEST_SIZE]; /* digest of the secret */
    char tag[SGI_RESUME_TAG + 1];  /* tag in the ids of the stream's events */
    /* the shortest wait that was promised to the client (minWait); 0 = none */
    int64_t min_wait_ms;
    /* the longest wait that was promised to the client (maxWait); 0 = none */
    int64_t max_wait_ms;
    sgi_notes notes;
    sgi_notes pieces;      /* P: counts confirmed segments, which may leave the log */
    uint64_t last_message; /* position of the newest entry that is a message */
    uint64_t handed;       /* position up to which the log was given to the transport */
    bool detached;
    bool away;           /* the log says that the client is away */
    int64_t away_ms;     /* wall clock time at which the client left */
    uint64_t marked_seq; /* position of the newest PRESENCE entry; 0 = none */
    sgi_timer clock;
    /* why nothing more is sent for this request; NULL = the request is not closed */
    const char *closed;
} sgi_resumable;

extern const sgi_lasting_form sgi_resumable_form;

static inline sgi_resumable *sgi_resumable_at(const sgi_lasting *lasting)
{
    return SGI_OWNER(lasting, sgi_resumable, lasting);
}

/* Returns the resumable state of an operation; NULL when the operation is not
 * resumable. */
static inline sgi_resumable *sgi_resumable_of(const sgi_op *op)
{
    const sgi_lasting *lasting = op->served->lasting;
    return lasting && lasting->form == &sgi_resumable_form ? sgi_resumable_at(lasting)
                                                           : NULL;
}

/* Makes the reply the channel of the call. The earlier channel gets no more messages.
 * Returns false when another request in flight has the same id. */
bool sgi_resumable_attach(sgi_resumable *r, sgi_reply *reply);
/* True when this is the digest of the right token. */
bool sgi_resumable_is_token(const sgi_resumable *r, const uint8_t hash[SGI_DIGEST_SIZE]);
/* Notes that the client has received the log up to this position. */
void sgi_resumable_confirm(sgi_resumable *r, uint64_t seq);
/* True when there are messages that the client has not received. */
bool sgi_resumable_has_pending(const sgi_resumable *r);

/* resumable_channel.c: functions of the dialect's sgi_lasting_form. */
void sgi_resumable_send_entry(sgi_segment_reader *cursor, const sgi_entry *entry);
void sgi_resumable_withdraw_questions(const sgi_pieces *pieces);

#endif
