/* Server-sent events: reads events from bytes that are split in any way, and writes
 * events (WHATWG HTML, "event stream interpretation"). A line may end in CR LF, CR or LF
 * (AS-117). The functions do no input or output; only one thread at a time may use an
 * object.
 *
 * An event is reported at its blank line, so an event that the end of the stream cuts off
 * is dropped. Unlike a browser, the reader also reports events that have an id or a retry
 * time but no data. A priming event (2025-11-25 basic/transports, `id: x` with empty
 * data) gives a client its first id; its empty data is not a message. */
#ifndef SGI_SSE_H
#define SGI_SSE_H

#include "base/buf.h"

/* Maximum reconnection time in ms (one day). A longer time is shortened to this
 * maximum. */
#define SGI_SSE_MAX_RETRY_MS INT64_C(86400000)
/* Maximum length of an id in bytes. A longer id is ignored, because an id must fit into a
 * request header. The previous id then stays valid, so a resumed stream repeats events
 * instead of losing events. */
#define SGI_SSE_MAX_ID 4096

typedef struct sgi_sse_event {
    sgi_str type; /* type of the event; "message" when the stream names no type */
    sgi_str data; /* the data lines of the event, joined by LF */
    /* the newest id of the stream up to this event; empty = the stream had no id */
    sgi_str last_id;
    int64_t retry_ms;
    bool has_data;
    bool has_id; /* true = this event has an id of its own, which is last_id */
    bool has_retry;
} sgi_sse_event;

typedef enum sgi_sse_step {
    SGI_SSE_MORE = 0, /* the input is used up */
    SGI_SSE_EVENT,    /* *event is the next event of the stream */
    /* an event is over the limit; the reader skips the event and its id */
    SGI_SSE_TOO_LONG,
    /* out of memory for an event; the reader skips the event and its id */
    SGI_SSE_FAILED
} sgi_sse_step;

typedef struct sgi_sse {
    sgi_buf partial; /* the beginning of a line whose end has not arrived */
    /* the data of the current event, from data_at on; not used if is_borrowed is set */
    sgi_buf text;
    sgi_buf type;    /* type of the current, unfinished event */
    sgi_buf id;      /* id of the current, unfinished event */
    sgi_buf last_id; /* the newest id of the complete events */
    /* the data of the current event, as a view of the caller's input; used if is_borrowed
     * is set */
    sgi_str borrowed;
    size_t data_at;
    size_t max_event;
    /* number of bytes of the current event's lines so far, without line ends and
     * comments */
    size_t used;
    int64_t retry_ms;
    /* number of bytes of a byte order mark that were read; BOM_PAST = the beginning of
     * the stream is over */
    uint8_t bom;
    bool is_borrowed;
    bool has_data;
    bool has_type;
    bool has_id;
    bool has_retry;
    bool given;      /* true = the last event was returned, so the next call clears it */
    bool after_cr;   /* true = the last byte was a CR, so an LF that follows is skipped */
    bool discarding; /* true = the rest of the current line is dropped */
    bool skipping;   /* true = the current event is lost, and its lines are dropped */
} sgi_sse;

/* Initialises a reader. max_event: maximum number of bytes in the lines of one event. */
void sgi_sse_init(sgi_sse *sse, const sgi_mem *mem, size_t max_event);
void sgi_sse_free(sgi_sse *sse);
/* Prepares the reader for a new stream: drops an unfinished event, and keeps the last id,
 * with which the client resumes. */
void sgi_sse_reset(sgi_sse *sse);
/* Reads the next event from *input and removes the read bytes from *input. *event points
 * into the input or into the reader and is valid until the next call. After the result
 * MORE, no view points into the input. */
sgi_sse_step sgi_sse_next(sgi_sse *sse, sgi_str *input, sgi_sse_event *event);
/* True when an event has begun and is incomplete. Such an event is lost if the stream
 * ends now. */
bool sgi_sse_is_mid_event(const sgi_sse *sse);
/* Returns the newest id of the stream; empty when the stream had no id, or has cleared
 * its id. */
sgi_str sgi_sse_last_id(const sgi_sse *sse);

/* ---- writing; on failure out->failed is set ---- */

/* Writes one event with a message. id: without NUL and line ends; empty = no id.
 * retry_ms: negative = no retry time. json: the message; its line ends, which are white
 * space between tokens, become blanks. */
void sgi_sse_write_event(sgi_buf *out, sgi_str id, int64_t retry_ms, sgi_str json);
/* Writes an event without a message. The event gives the client an id. */
void sgi_sse_write_priming(sgi_buf *out, sgi_str id, int64_t retry_ms);
/* Writes the time in ms that the client has to wait before it reconnects. Allowed only
 * between two events. */
void sgi_sse_write_retry(sgi_buf *out, int64_t retry_ms);
/* Writes a comment that keeps a quiet connection open. Allowed only between two
 * events. */
void sgi_sse_write_keep_alive(sgi_buf *out);

#endif
