/* The resumptions of an event stream: how often the client may request the rest of a
 * stream that broke, and after which pauses. The pause begins with the retry time of the
 * server, or with 0 if the server gave no retry time. It grows with each resumption in a
 * row that fails.
 *
 * A response that begins is no success yet. Two things end a row of failures: a message,
 * and a stream that lasted for steady_ms, unless the client ended the stream because the
 * server was silent. After a short GET stream of the session that brought a message, the
 * pause is sse_retry_ms and not 0: a stream of an answer ends with the answer, but a
 * server could send a message on each GET stream and end it, for ever. */
#ifndef SGI_RESUMPTIONS_H
#define SGI_RESUMPTIONS_H

#include "wire/sse.h"

typedef struct sgi_resumptions {
    /* the retry time of the server in ms; -1 = the server gave no retry time */
    int64_t retry_ms;
    int32_t count;   /* number of resumptions in a row that failed */
    bool is_endless; /* the stream is a GET stream of the session, which has no answer */
    bool was_short;  /* the last response brought a message, but did not last */
    int64_t opened_ms; /* monotonic time at which the stream began; 0 = it has ended */
} sgi_resumptions;

void sgi_resumptions_init(sgi_resumptions *resumptions, bool is_endless);
/* Notes the begin of a response that is an event stream. */
void sgi_resumptions_on_begin(sgi_resumptions *resumptions, int64_t now);
/* Notes the end of a response. was_silent: the client ended the stream, because nothing
 * came. */
void sgi_resumptions_on_end(sgi_resumptions *resumptions, int64_t now, bool was_silent);
/* True when the stream may be resumed once more. */
bool sgi_resumptions_are_left(const sgi_resumptions *resumptions);
/* True when the server has said when to come again and the stream brought an event: the
 * next resumption is then a poll and not a repair. */
bool sgi_resumptions_are_polls(const sgi_resumptions *resumptions);
/* True when the server has said when to come again. */
bool sgi_resumptions_have_retry_time(const sgi_resumptions *resumptions);
/* Counts one more resumption. Returns the pause before it in ms. */
int64_t sgi_resumptions_begin(sgi_resumptions *resumptions);
/* Notes an event of the stream. */
void sgi_resumptions_on_event(sgi_resumptions *resumptions, const sgi_sse_event *event,
                              bool is_message);

#endif
