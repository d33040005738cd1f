/* The stored events of one stream of the handshake eras. A client may request them again
 * with Last-Event-ID (2025-11-25 basic/transports, resumability). The memory is limited:
 * the oldest events are dropped first. When only notifications were dropped, a comment in
 * the stream says how many. When a response, a part of a response or a question was
 * dropped, the client cannot resume the stream. This code does no input or output; its
 * functions are called under the engine's lock. */
#ifndef SGI_REPLAY_H
#define SGI_REPLAY_H

#include "base/thresholds.h"
#include "base/buf.h"

#define SGI_REPLAY_MAX SGI_THRESHOLD(replay_bytes)

typedef struct sgi_replay {
    size_t most; /* the largest number of bytes of the stored events */
    /* number of the stream within its session; an event's id begins with it */
    int64_t stream;
    uint64_t next;  /* number of the next event */
    uint64_t first; /* number of the earliest stored event */
    /* number of the newest dropped event that was no notification; 0 = none */
    uint64_t lost;
    /* the stream begins with an event without data, from which the client learns an id */
    bool primes;
    char tag[9]; /* tag of the lasting call to which this stream belongs; "" = none */
    /* position in the log of the lasting call up to which the client got entries */
    uint64_t at;
    sgi_buf kept; /* the stored events, in the form in which they were sent */
    sgi_buf ends; /* a sgi_replay_mark for each event */
} sgi_replay;

typedef struct sgi_replay_mark {
    size_t end; /* position in `kept` at which the event ends */
    bool is_note;
} sgi_replay_mark;

/* Makes an empty replay. most: 0 = SGI_REPLAY_MAX. */
void sgi_replay_init(sgi_replay *replay, const sgi_mem *mem, size_t most, int64_t stream,
                     bool primes);
void sgi_replay_free(sgi_replay *replay);

/* Appends the line "id: ..." of the next event. */
void sgi_replay_write_next_id(const sgi_replay *replay, sgi_buf *out);
/* True when the id of an event is written after its data. For a lasting call the id
 * contains the position in the log, which is known only at the end of the event. */
static inline bool sgi_replay_id_follows_event(const sgi_replay *replay)
{
    return replay->tag[0] != 0;
}
/* Appends an empty event, from which the client learns an id. */
void sgi_replay_write_priming_event(const sgi_replay *replay, sgi_buf *out);
/* Stores the next event, which must be complete. When there is no memory, or the event
 * alone exceeds the limit, the event and all earlier events are dropped. */
void sgi_replay_keep(sgi_replay *replay, sgi_str event, bool is_note);
/* Drops at least the older half of the stored events and frees their memory. */
void sgi_replay_drop_half(sgi_replay *replay);
/* Drops all stored events. Later events get the next numbers. */
void sgi_replay_drop_all(sgi_replay *replay);
/* Returns the number of bytes of memory that the replay holds. */
size_t sgi_replay_size(const sgi_replay *replay);
/* True when one of the events after number `after` was dropped and was no
 * notification. */
static inline bool sgi_replay_has_gap(const sgi_replay *replay, uint64_t after)
{
    return after < replay->lost;
}
/* Appends the stored events after number `after`. A comment in front of them says how
 * many events were dropped. */
void sgi_replay_copy(const sgi_replay *replay, uint64_t after, sgi_buf *out);
/* Splits the id of an event into the numbers of stream and event. Returns false when the
 * id was not made by this library. */
bool sgi_replay_parse(sgi_str id, int64_t *stream, uint64_t *event);
/* Reads from an event's id the tag of a lasting call (8 characters and a NUL), and the
 * position up to which the log of the call was sent. Returns false when the id has no
 * tag. */
bool sgi_replay_parse_at(sgi_str id, char tag[9], uint64_t *at);

#endif
