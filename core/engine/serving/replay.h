/* Events of one stream of the handshake eras that a client may ask for again with
 * Last-Event-ID (2025-11-25 basic/transports, resumability). Bounded: the oldest go
 * first. A notification may go, and who asks for it is told how many are gone. Whoever
 * lacks anything else, an answer, a part of one, or a question, cannot go on with the
 * stream. Sans-IO, under the engine's lock. */
#ifndef SGI_REPLAY_H
#define SGI_REPLAY_H

#include "base/buf.h"

#define SGI_REPLAY_MAX ((size_t)1024 * 1024) /* bytes, if nobody says how many */

typedef struct sgi_replay {
    size_t most;    /* bytes of events that are kept */
    int64_t stream; /* its number in the session: the first half of an event's id */
    uint64_t next;  /* number of the next event */
    uint64_t first; /* the earliest that is kept */
    uint64_t lost;  /* the newest that is not, and is no notification; 0 = none */
    bool primes;    /* begins with an empty event, so that the client has an id */
    char tag[9];  /* of the request that it is the channel of (resumable.h), "" = none */
    uint64_t at;  /* ... and how far its log has been sent */
    sgi_buf kept; /* the events as they were sent */
    sgi_buf ends; /* sgi_replay_mark each */
} sgi_replay;

typedef struct sgi_replay_mark {
    size_t end; /* of the event, in kept */
    bool is_note;
} sgi_replay_mark;

/* most: 0 = SGI_REPLAY_MAX. */
void sgi_replay_init(sgi_replay *replay, const sgi_mem *mem, size_t most, int64_t stream,
                     bool primes);
void sgi_replay_free(sgi_replay *replay);

/* Appends "id: ..." of the next event. */
void sgi_replay_name(const sgi_replay *replay, sgi_buf *out);
/* Can it be told only at its end how far it goes? Then the name follows it. */
static inline bool sgi_replay_names_last(const sgi_replay *replay)
{
    return replay->tag[0] != 0;
}
/* Appends the empty event. */
void sgi_replay_prime(const sgi_replay *replay, sgi_buf *out);
/* The next event, whole. When it cannot be kept, for lack of memory or because it is
 * larger than all that may be, it is lost to a replay, and what came before it is
 * too. */
void sgi_replay_keep(sgi_replay *replay, sgi_str event, bool is_note);
/* Forgets the older half of what is kept, at least, and gives its memory back. */
void sgi_replay_halve(sgi_replay *replay);
/* Forgets all of it; the numbers go on. */
void sgi_replay_forget(sgi_replay *replay);
/* Bytes of memory it holds. */
size_t sgi_replay_size(const sgi_replay *replay);
/* Is something gone that came after event number `after`, and is no notification? */
static inline bool sgi_replay_lacks(const sgi_replay *replay, uint64_t after)
{
    return after < replay->lost;
}
/* Appends what came after event number `after`, and before it, as a comment, how much of
 * that is gone. */
void sgi_replay_copy(const sgi_replay *replay, uint64_t after, sgi_buf *out);
/* Splits an event's id; false when it is none of ours. */
bool sgi_replay_parse(sgi_str id, int64_t *stream, uint64_t *event);
/* What it says of a request that can be resumed: the tag of its operation (8 characters
 * and a NUL), and how far its log was sent; false when it says nothing of it. */
bool sgi_replay_parse_at(sgi_str id, char tag[9], uint64_t *at);

#endif
