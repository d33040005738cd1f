/* The event stream of a task (E, SEP-2694) on the client, used by the dialect that
 * follows the task. The stream brings segments, and its events show when tasks/get is
 * due. */
#ifndef SGI_TASK_STREAM_H
#define SGI_TASK_STREAM_H

#include "engine/dialect/rows.h"
#include "engine/dialect/following/follow.h"

/* How the client numbers the segments of a stream when the server gives no numbers. */
typedef enum sgi_count {
    /* the next segment has the number after the last delivered one */
    SGI_COUNT_ON = 0,
    /* the stream was read from its first event, so all segments are counted */
    SGI_COUNT_ALL,
    SGI_COUNT_LOST, /* missing events may have been segments, so the count is not known */
    /* Like SGI_COUNT_LOST, but segments were delivered with wrong numbers: the whole
     * result has to be delivered again. */
    SGI_COUNT_WRONG
} sgi_count;

/* What the client knows of the stream of one task. */
typedef struct sgi_task_stream {
    sgi_cli_state state;
    segue_request *request; /* not a counted reference: the request contains this state */
    sgi_tries tries;        /* counts the attempts of tasks/stream */
    sgi_emitter *emitter;   /* the exchange of the open stream, or NULL */
    sgi_map_node node;      /* node of the map of the session's open streams */
    /* no further stream is opened for this task, although the server offers streams */
    bool off;
    uint64_t next; /* number of the next event */
    /* value of `next` when the stream was opened again because of a gap */
    uint64_t gap;
    uint64_t gap_end; /* number of the last event that arrived after the gap */
    /* tasks/get has reported the end of the task, but the stream has not */
    bool end_seen;
    uint64_t segment; /* number of the last segment of the stream */
    sgi_count count;  /* how the segments are counted */
    /* skipped events may have belonged to this stream (follow_events.c) */
    bool unsure;
} sgi_task_stream;

/* The largest number of dropped streams that a session remembers. A new one replaces the
 * oldest one. When a stream is no longer remembered, a late event of it can be taken for
 * the first event of the task's next stream. */
#define SGI_STREAMS_LEFT_MAX 16

/* A stream that was dropped on a byte stream. Its events may still arrive. */
typedef struct sgi_left_stream {
    char *task_id; /* id of the task; NULL = the entry is free */
    uint64_t next; /* number of the next event of the dropped stream */
} sgi_left_stream;

/* The open and the dropped streams of a session. */
typedef struct sgi_open_streams {
    sgi_cli_state state;
    sgi_map open; /* the open streams (sgi_task_stream), by task id */
    sgi_left_stream left[SGI_STREAMS_LEFT_MAX];
    size_t left_at; /* index of the entry that is used for the next dropped stream */
} sgi_open_streams;

/* Returns the stream state of a request; NULL before sgi_task_stream_begin. */
static inline sgi_task_stream *sgi_task_stream_of(const segue_request *request)
{
    return sgi_cli_state_of(request, &sgi_cli_task_events);
}
static inline sgi_open_streams *sgi_open_streams_of(const segue_session *session)
{
    return sgi_cli_session_state(session, &sgi_cli_task_events);
}

/* ---- client.c ---- */

/* Makes the stream state of a request, if there is none. Returns false when out of
 * memory. */
bool sgi_task_stream_begin(segue_request *request);
/* Opens the stream if it is due. */
void sgi_task_stream_open_if_due(segue_request *request);
void sgi_task_stream_drop(segue_request *request);
void sgi_task_stream_end(segue_request *request);
/* Returns the exchange of the open stream; NULL = no stream is open. */
sgi_emitter *sgi_task_stream_emitter(const segue_request *request);
/* True when the task has to be polled, because there is no stream or it breaks too
 * often. */
bool sgi_task_stream_is_missing(const segue_request *request);
/* Drops the stream and opens it again behind the last received event. */
void sgi_task_stream_reopen(segue_request *request);
/* True when the event may belong to an earlier stream of the task that was dropped.
 * Called for the first event of a stream that was opened without a cursor. */
bool sgi_task_stream_is_stale_event(segue_request *request, uint64_t seq);

/* ---- follow_events.c ---- */

/* The members of notifications/tasks/event, as views. */
typedef struct sgi_task_event {
    sgi_json seq, type, payload;
    /* the part of the text that contains payload and was parsed ahead, or NULL */
    const sgi_json_part *part;
} sgi_task_event;

void sgi_task_stream_take_event(segue_request *request, const sgi_task_event *event);
/* Notes that the missing events before next_event will not come. The merged result is
 * incomplete, so the whole result is fetched. */
void sgi_task_stream_skip_lost_events(segue_request *request, uint64_t next_event);

#endif
