/* Server-sent events: bytes in any split to events, and events to bytes (WHATWG HTML,
 * "event stream interpretation"; AS-117). Sans-IO, for one thread at a time.
 *
 * An event is reported with its blank line, so one that the stream ends in is dropped.
 * Unlike a browser, the reader also reports events that bring an id or a retry time but
 * no data: a priming event (2025-11-25 basic/transports, `id: x` with empty data) is how
 * a client gets its first id. Its data is empty and is nobody's message. */
#ifndef SGI_SSE_H
#define SGI_SSE_H

#include "base/buf.h"

/* Longer reconnection times are taken as this one: a day. */
#define SGI_SSE_MAX_RETRY_MS INT64_C(86400000)
/* Longer ids are ignored: they have to fit into a request header. The id before stays,
 * so that a resumed stream repeats events rather than losing them. */
#define SGI_SSE_MAX_ID 4096

typedef struct sgi_sse_event {
    sgi_str type;    /* "message" when the stream names none */
    sgi_str data;    /* its lines joined by LF */
    sgi_str last_id; /* of the stream, as of this event; empty = none */
    int64_t retry_ms;
    bool has_data;
    bool has_id; /* this event set last_id */
    bool has_retry;
} sgi_sse_event;

typedef enum sgi_sse_step {
    SGI_SSE_MORE = 0, /* the input is used up */
    SGI_SSE_EVENT,    /* *event is the next one */
    SGI_SSE_TOO_LONG, /* an event over the limit begins to be skipped, its id too */
    SGI_SSE_FAILED    /* no memory to keep an event; it is skipped, its id too */
} sgi_sse_step;

typedef struct sgi_sse {
    sgi_buf partial;  /* the beginning of a line whose end has not come */
    sgi_buf text;     /* data that is not borrowed, from data_at on */
    sgi_buf type;     /* of the event in the making */
    sgi_buf id;       /* of the event in the making */
    sgi_buf last_id;  /* of the last event that was complete */
    sgi_str borrowed; /* data that still stands in the caller's input */
    size_t data_at;
    size_t max_event;
    size_t used; /* bytes of the event's lines so far, without line ends and comments */
    int64_t retry_ms;
    uint8_t bom; /* bytes of a byte order mark seen; more than it has = past it */
    bool is_borrowed;
    bool has_data;
    bool has_type;
    bool has_id;
    bool has_retry;
    bool given;      /* the event was handed out: it goes with the next call */
    bool after_cr;   /* an LF here belongs to the line before */
    bool discarding; /* inside a line of which nothing is kept */
    bool skipping;   /* inside an event that is lost */
} sgi_sse;

/* max_event bounds the bytes of the lines of one event. */
void sgi_sse_init(sgi_sse *sse, const sgi_mem *mem, size_t max_event);
void sgi_sse_free(sgi_sse *sse);
/* The stream is a new one: an unfinished event is dropped. The last id stays, it is what
 * a client resumes with. */
void sgi_sse_reset(sgi_sse *sse);
/* Takes the next event out of *input and shortens it. What *event points to is valid
 * until the next call; it may stand in the input. After MORE nothing does. */
sgi_sse_step sgi_sse_next(sgi_sse *sse, sgi_str *input, sgi_sse_event *event);
/* Would the end of the stream here cut an event? */
bool sgi_sse_is_mid_event(const sgi_sse *sse);
/* Empty = none, or one that the stream has reset. */
sgi_str sgi_sse_last_id(const sgi_sse *sse);

/* ---- writing; failure is the buffer's ---- */

/* One event. id empty = none, else without NUL and line ends; retry_ms negative = none.
 * Line ends in json are white space between its tokens and become blanks. */
void sgi_sse_write_event(sgi_buf *out, sgi_str id, int64_t retry_ms, sgi_str json);
/* Gives the client an id before there is any message. */
void sgi_sse_write_priming(sgi_buf *out, sgi_str id, int64_t retry_ms);
/* How long the client waits before it connects again; only between events. */
void sgi_sse_write_retry(sgi_buf *out, int64_t retry_ms);
/* A comment, to keep a quiet connection open; only between events. */
void sgi_sse_write_keep_alive(sgi_buf *out);

#endif
