/* A request that can be resumed (SEP-975, core/docs/requirements.md 4): whoever knows its
 * id and its token gets what was not delivered, over another connection, to another run
 * of the server. What is kept for that stands on the operation; the messages are its log,
 * as dialect/pieces.c shows it to the channel that was there last.
 *
 *   ATTACHED --peer parted--> DETACHED --resume--> ATTACHED
 *                                 \-- maxWait --> EXPIRED
 *   ... -- final confirmed --> CLOSED
 *
 * Only while nobody is there does its clock run; a valid request about it sets it back
 * (R-975-5). Its log says when the client parted and when it came again, so the clock
 * goes on over a restart, while no server runs, and at another one (R-975-27). What
 * counts as delivered is confirmed: over a byte stream by being written, over HTTP by the
 * Last-Event-ID of who comes again (R-975-17). */
#ifndef SGI_RESUMABLE_H
#define SGI_RESUMABLE_H

#include "engine/log/notes.h"
#include "engine/serving/peer.h"

#define SGI_RESUME_TAG 8

typedef struct sgi_resumable {
    sgi_op *op;
    char *id;                         /* of its request, canonical JSON */
    char secret[SGI_RANDOM_TEXT + 1]; /* half of the token, until it was told */
    uint8_t hash[SGI_DIGEST_SIZE];    /* ... and its digest */
    char tag[SGI_RESUME_TAG + 1];     /* in the ids of its events */
    int64_t min_wait_ms;              /* 0 = not told */
    int64_t max_wait_ms;              /* 0 = not told */
    char *progress_token;             /* JSON, or NULL */
    int32_t log_level;
    bool partial; /* P */
    sgi_notes notes;
    sgi_notes pieces;      /* P: segments, which may leave when they are confirmed */
    uint64_t last_message; /* position of the newest that is a message */
    uint64_t confirmed;    /* positions: up to here it was delivered, */
    uint64_t handed;       /* ... given to the transport, */
    uint64_t sent;         /* ... written for it */
    sgi_reply *reply;      /* its channel, or NULL */
    sgi_peer *peer;        /* who has, or had, it last; NULL = gone */
    LIST_ENTRY(sgi_resumable) by_peer;
    bool detached;
    bool away;           /* as its log says, */
    int64_t away_ms;     /* ... since then; wall clock */
    uint64_t marked_seq; /* where it says so; 0 = nowhere */
    sgi_timer clock;
    const char *closed; /* why there is nothing more to be had; NULL = there is */
} sgi_resumable;

struct sgi_call_request;

/* The request is one that can be resumed; false when out of memory. Before the operation
 * is stored. */
bool sgi_resumable_make(sgi_op *op, const sgi_reply *reply,
                        const struct sgi_call_request *request);
void sgi_resumable_free(sgi_op *op);

/* Its part of the stored record: a member, and back. Read: false when out of memory or
 * corrupt; an operation that has none is fine. */
void sgi_resumable_write(const sgi_op *op, sgi_jw *w);
bool sgi_resumable_read(sgi_op *op, sgi_json data);

/* Tells the client; once, as the first message. */
void sgi_resumable_tell(sgi_resumable *r, sgi_reply *reply);
/* The reply is its channel from now on; the one before gets nothing more. False: it
 * cannot be, for its id is that of another request in flight. */
bool sgi_resumable_attach(sgi_resumable *r, sgi_reply *reply);
/* The reply is not its channel any more. */
void sgi_resumable_unhook(sgi_reply *reply);
/* The token fits. */
bool sgi_resumable_knows(const sgi_resumable *r, const uint8_t hash[SGI_DIGEST_SIZE]);
/* Somebody who may has asked for it: its time begins anew. */
void sgi_resumable_touch(sgi_resumable *r);
/* After a restart: nobody is there yet. */
void sgi_resumable_wake(sgi_op *op);
/* Has its client been away for too long, as its log says? False for what is no request
 * that can be resumed, and for a task, which has a time of its own. */
bool sgi_resumable_is_over(const sgi_op *op);
/* It comes from the store. What has ended, and was not asked for in time, is closed. */
void sgi_resumable_look(sgi_op *op);

/* Its client went to another server, or from there: what the owner is told. */
void sgi_resumable_elsewhere(sgi_resumable *r, bool away);
/* Another server runs it by now; the client stays. */
void sgi_resumable_moved(sgi_op *op);
/* What its log says, as read anew. */
void sgi_resumable_adopt(sgi_resumable *r, const sgi_resumable *fresh);

/* A progress or log message of its handler. */
segue_status sgi_resumable_note(sgi_op *op, sgi_str message);
/* An entry joins its log. */
void sgi_resumable_note_entry(sgi_resumable *r, const sgi_entry *entry);
/* Makes room in its log for more bytes, by dropping what may be dropped. */
void sgi_resumable_make_room(sgi_resumable *r, size_t bytes, size_t limit);
/* A message that ends at this position is about to be written on its channel. */
void sgi_resumable_mark(sgi_reply *reply, uint64_t seq);
/* Delivered up to here. */
void sgi_resumable_confirm(sgi_resumable *r, uint64_t seq);
/* Is there something that was not delivered? */
bool sgi_resumable_has_pending(const sgi_resumable *r);
/* The text of the id under which its client is asked; JSON. */
void sgi_resumable_ask_id(const sgi_resumable *r, const sgi_input *input, sgi_buf *out);
/* The question that an answer with this id is for; NULL when there is none. The
 * operation is borrowed. */
sgi_input *sgi_resumable_asked(const sgi_peer *peer, sgi_json id, sgi_op **op);

/* ---- what its peer has to tell ---- */

/* Nobody carries the peer's conversation any more, or again; it is lost for good. */
void sgi_resumables_parted(sgi_peer *peer);
void sgi_resumables_rejoined(sgi_peer *peer);
void sgi_resumables_lost(sgi_peer *peer);
/* What was handed to the transport before is written, and what is there now is about to
 * be handed over. True: it is to be asked again, for that to be known. */
bool sgi_resumables_passed(sgi_peer *peer);

#endif
