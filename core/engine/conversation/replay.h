/* The stored events of one HTTP stream, in the versions that begin with `initialize`. A
 * client can request the events again with Last-Event-ID (2025-11-25 basic/transports,
 * resumability). The memory is limited: the oldest events are dropped first. If only
 * notifications were dropped, a comment in the stream gives the number of dropped events.
 * If a response, a part of a response or a question was dropped, the client cannot resume
 * the stream. This code does no input or output; its functions are called under the
 * engine's lock. */
#ifndef SGI_REPLAY_H
#define SGI_REPLAY_H

#include "base/thresholds.h"
#include "base/buf.h"

#define SGI_REPLAY_MAX SGI_THRESHOLD(replay_bytes)

typedef struct sgi_replay {
    size_t most; /* maximum number of bytes of the stored events */
    /* number of the stream within its session; the ids of the stream's events begin with
     * this number */
    int64_t stream;
    uint64_t next; /* number of the next event */
    /* number of the oldest stored event; equal to `next` when no event is stored */
    uint64_t first;
    /* number of the newest dropped event that was not a notification; 0 = no such
     * event */
    uint64_t lost;
    /* the stream begins with an event without data, which gives the client a first event
     * id */
    bool primes;
    /* tag of the lasting call (its client can leave and come back) to which this stream
     * belongs; "" = the stream belongs to no lasting call */
    char tag[9];
    /* position in the log of the lasting call, which is written into the id of the next
     * event */
    uint64_t at;
    sgi_buf kept; /* the stored events, one after another, as they were sent */
    sgi_buf ends; /* an array with one sgi_replay_event_end for each stored event */
} sgi_replay;

typedef struct sgi_replay_event_end {
    size_t end; /* position in `kept` at which the event ends */
    bool is_note;
} sgi_replay_event_end;

/* Makes an empty replay. most: maximum number of bytes; 0 = SGI_REPLAY_MAX. */
void sgi_replay_init(sgi_replay *replay, const sgi_mem *mem, size_t most, int64_t stream,
                     bool primes);
void sgi_replay_free(sgi_replay *replay);

/* Appends the line "id: ..." of the next event to `out`. */
void sgi_replay_write_next_id(const sgi_replay *replay, sgi_buf *out);
/* True when the id of an event is written after the data of the event. The ids of a
 * lasting call contain the position in the log, which is known only at the end of the
 * event. */
static inline bool sgi_replay_id_follows_event(const sgi_replay *replay)
{
    return replay->tag[0] != 0;
}
/* Appends an event without data to `out`. The event gives the client a first event id. */
void sgi_replay_write_priming_event(const sgi_replay *replay, sgi_buf *out);
/* Stores the next event, which must be complete. is_note: the event is a notification.
 * When out of memory, or when the event alone exceeds the limit, this event and all
 * earlier events are dropped. */
void sgi_replay_keep(sgi_replay *replay, sgi_str event, bool is_note);
/* Drops at least the older half of the stored events and frees their memory. */
void sgi_replay_drop_half(sgi_replay *replay);
/* Drops all stored events. The numbers of later events continue after the dropped
 * events. */
void sgi_replay_drop_all(sgi_replay *replay);
/* Returns the number of bytes of memory that the stored events use. */
size_t sgi_replay_size(const sgi_replay *replay);
/* True when an event after number `after` was dropped and this event was not a
 * notification. */
static inline bool sgi_replay_has_gap(const sgi_replay *replay, uint64_t after)
{
    return after < replay->lost;
}
/* Appends the stored events after number `after` to `out`. If events after `after` were
 * dropped, a comment with their number is written first. */
void sgi_replay_copy(const sgi_replay *replay, uint64_t after, sgi_buf *out);
/* Reads the numbers of stream and event from an event id. Returns false when this library
 * did not make the id. */
bool sgi_replay_parse_id(sgi_str id, int64_t *stream, uint64_t *event);
/* Reads the tag of a lasting call (8 characters and a NUL) from an event id, and the
 * position up to which the log of the call was sent. Returns false when the id has no
 * tag. */
bool sgi_replay_parse_id_position(sgi_str id, char tag[9], uint64_t *at);

#endif
