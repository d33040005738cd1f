/* The event stream of a task (E, SEP-2694) on the client. The dialect that follows the
 * task uses it. The stream brings segments, and its events show when tasks/get is due. */
#ifndef SGI_TASK_STREAM_H
#define SGI_TASK_STREAM_H

#include "engine/dialect/rows.h"
#include "engine/dialect/following/follow.h"

/* How the client numbers the segments of a stream when the server does not number
 * them. */
typedef enum sgi_numbering {
    /* the next segment gets the number after the last delivered segment */
    SGI_NUMBERS_GO_ON = 0,
    /* the stream was read from its first event, so the client has counted all segments */
    SGI_NUMBERS_COUNTED,
    /* events are missing and may have been segments, so the number of segments is not
     * known */
    SGI_NUMBERS_LOST,
    /* Like SGI_NUMBERS_LOST, and segments were delivered with wrong numbers. The whole
     * result must be delivered again. */
    SGI_NUMBERS_WRONG
} sgi_numbering;

/* The client's knowledge about the stream of one task. */
typedef struct sgi_task_stream {
    sgi_cli_dialect_state state;
    /* a pointer without a reference, because the request contains this state */
    segue_request *request;
    sgi_tries tries; /* counts the attempts to open the stream by tasks/stream */
    /* the exchange of the open stream; NULL = no stream is open */
    sgi_emitter *emitter;
    sgi_map_node node; /* the node in the map of the session's open streams */
    /* true when the client opens no further stream for this task, although the server
     * offers streams */
    bool off;
    uint64_t next; /* number that the next event must have; 0 = no event has come */
    /* value of `next` at which the stream was opened again because events were missing */
    uint64_t gap;
    uint64_t gap_end; /* number of the last event that came after the missing events */
    /* true when tasks/get has reported the end of the task and the stream has not */
    bool end_seen;
    /* true when the task waits for answers by what the stream says: the last status event
     * said so, or missing events may have said so */
    bool asks;
    uint64_t segment;        /* number of the last segment that came by the stream */
    sgi_numbering numbering; /* how the client numbers the segments */
    /* true when skipped events may have belonged to this stream and not to a dropped one
     * (follow_events.c) */
    bool unsure;
} sgi_task_stream;

/* The largest number of dropped streams that a session remembers. A new dropped stream
 * replaces the oldest one. A late event of a forgotten stream can be taken for the first
 * event of the task's next stream. */
#define SGI_STREAMS_LEFT_MAX 16

/* A stream that the client dropped on a byte stream, where its events may still
 * arrive. */
typedef struct sgi_dropped_stream {
    char *task_id; /* id of the stream's task; NULL = this entry is not used */
    uint64_t next; /* number of the next event that may come from the dropped stream */
    bool late;     /* true when an event has come since the stream was dropped */
} sgi_dropped_stream;

/* The open and the dropped streams of a session. */
typedef struct sgi_session_task_streams {
    sgi_cli_dialect_state state;
    sgi_map open; /* the open streams (sgi_task_stream); the key is the task id */
    sgi_dropped_stream left[SGI_STREAMS_LEFT_MAX];
    size_t left_at; /* index in `left` of the entry for the next dropped stream */
} sgi_session_task_streams;

/* Returns the stream state of a request; NULL before sgi_task_stream_new was called. */
static inline sgi_task_stream *sgi_task_stream_of(const segue_request *request)
{
    return sgi_cli_dialect_state_find(request, &sgi_cli_task_events);
}
static inline sgi_session_task_streams *
sgi_session_task_streams_of(const segue_session *session)
{
    return sgi_cli_dialect_session_state(session, &sgi_cli_task_events);
}

/* ---- client.c ---- */

/* Makes the stream state of a request if it does not exist. Returns false when out of
 * memory. */
bool sgi_task_stream_new(segue_request *request);
/* Opens the stream if it is due. */
void sgi_task_stream_open_if_due(segue_request *request);
void sgi_task_stream_drop(segue_request *request);
void sgi_task_stream_end(segue_request *request);
/* Returns the exchange of the open stream; NULL when no stream is open. */
sgi_emitter *sgi_task_stream_emitter(const segue_request *request);
/* True when the task must be polled, because it has no stream, its stream breaks too
 * often, or the application lacks the questions that the stream has reported. */
bool sgi_task_stream_needs_polling(const segue_request *request);
/* Drops the stream and opens it again after the last received event. */
void sgi_task_stream_reopen(segue_request *request);
/* True when the event may belong to an earlier stream of the task that was dropped.
 * Called for the first event of a stream that was opened without a cursor, and for an
 * event that does not follow the last one. */
bool sgi_task_stream_is_stale_event(segue_request *request, uint64_t seq);

/* ---- follow_events.c ---- */

/* The members of notifications/tasks/event, as views. */
typedef struct sgi_task_event {
    sgi_json seq, type, payload;
    /* the part of the message text that contains payload and is already parsed; NULL =
     * not parsed */
    const sgi_json_part *part;
} sgi_task_event;

void sgi_task_stream_take_event(segue_request *request, const sgi_task_event *event);
/* Notes that the events before next_event will not come. The merged result is incomplete,
 * so the client fetches the whole result. The events may have reported questions, so the
 * client also polls the task until a status event comes. */
void sgi_task_stream_skip_lost_events(segue_request *request, uint64_t next_event);

#endif
