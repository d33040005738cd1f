/* Server-sent events: reads events from bytes that are split in any way, and writes
 * events (WHATWG HTML, "event stream interpretation"; AS-117). This code does no I/O;
 * one thread at a time uses an object.
 *
 * An event is reported at its blank line, so an event that the stream cuts off is
 * dropped. Unlike a browser, the reader also reports events that have an id or a retry
 * time but no data. A priming event (2025-11-25 basic/transports, `id: x` with empty
 * data) gives a client its first id; its empty data is not a message. */
#ifndef SGI_SSE_H
#define SGI_SSE_H

#include "base/buf.h"

/* Maximum reconnection time (a day); a longer one is treated as this maximum. */
#define SGI_SSE_MAX_RETRY_MS INT64_C(86400000)
/* Maximum length of an id. A longer id is ignored, because an id must fit into a
 * request header. The preceding id stays valid, so a resumed stream repeats events
 * instead of losing some. */
#define SGI_SSE_MAX_ID 4096

typedef struct sgi_sse_event {
    sgi_str type;    /* type of the event; "message" when the stream names none */
    sgi_str data;    /* the data lines of the event, joined by LF */
    sgi_str last_id; /* the last id of the stream up to this event; empty = the stream
                      * had no id */
    int64_t retry_ms;
    bool has_data;
    bool has_id; /* this event itself has an id, which is last_id */
    bool has_retry;
} sgi_sse_event;

typedef enum sgi_sse_step {
    SGI_SSE_MORE = 0, /* the input is used up */
    SGI_SSE_EVENT,    /* *event is the next event of the stream */
    SGI_SSE_TOO_LONG, /* an event is over the limit; the event and its id are skipped */
    SGI_SSE_FAILED    /* out of memory for an event; the event and its id are skipped */
} sgi_sse_step;

typedef struct sgi_sse {
    sgi_buf partial;  /* the beginning of a line whose end has not arrived */
    sgi_buf text;     /* the event's data from data_at on, unless is_borrowed is set */
    sgi_buf type;     /* type of the unfinished event */
    sgi_buf id;       /* id of the unfinished event */
    sgi_buf last_id;  /* the last id of the complete events */
    sgi_str borrowed; /* the event's data, while they are still in the caller's input */
    size_t data_at;
    size_t max_event;
    /* number of bytes of the event's lines so far, without line ends and comments */
    size_t used;
    int64_t retry_ms;
    /* number of bytes of a byte order mark that were read; BOM_PAST = no mark can come
     * any more */
    uint8_t bom;
    bool is_borrowed;
    bool has_data;
    bool has_type;
    bool has_id;
    bool has_retry;
    bool given;      /* the last event was returned, so the next call clears it */
    bool after_cr;   /* the last byte was a CR; an LF that follows it is skipped */
    bool discarding; /* the reader is inside a line that is dropped */
    bool skipping;   /* the reader is inside an event that is lost */
} sgi_sse;

/* Initialises a reader. max_event: maximum number of bytes in the lines of one event. */
void sgi_sse_init(sgi_sse *sse, const sgi_mem *mem, size_t max_event);
void sgi_sse_free(sgi_sse *sse);
/* Prepares the reader for a new stream: an unfinished event is dropped. The last id
 * stays, because the client resumes with this id. */
void sgi_sse_reset(sgi_sse *sse);
/* Reads the next event from *input and removes the read bytes. *event points into the
 * input or the reader and is valid until the next call. After MORE nothing points into
 * the input. */
sgi_sse_step sgi_sse_next(sgi_sse *sse, sgi_str *input, sgi_sse_event *event);
/* True when an event is incomplete. The event would be lost if the stream ended here. */
bool sgi_sse_is_mid_event(const sgi_sse *sse);
/* Returns the last id of the stream. The id is empty when the stream had no id, or
 * when the stream has cleared its id. */
sgi_str sgi_sse_last_id(const sgi_sse *sse);

/* ---- writing; on failure out->failed is set ---- */

/* Writes one event. id: without NUL and line ends; empty = no id. retry_ms: negative =
 * none. json: its line ends, which are white space between tokens, become blanks. */
void sgi_sse_write_event(sgi_buf *out, sgi_str id, int64_t retry_ms, sgi_str json);
/* Writes an event without a message, which gives the client an id. */
void sgi_sse_write_priming(sgi_buf *out, sgi_str id, int64_t retry_ms);
/* Writes the time that the client should wait before it reconnects. Allowed only
 * between two events. */
void sgi_sse_write_retry(sgi_buf *out, int64_t retry_ms);
/* Writes a comment that keeps a quiet connection open. Allowed only between two
 * events. */
void sgi_sse_write_keep_alive(sgi_buf *out);

#endif
