/* The resumptions of an event stream: how often the client may request the rest of a
 * stream that broke, and after which pauses. The pause begins with the retry time of the
 * server, or with 0 if the server gave no retry time. It grows with each resumption in a
 * row that brings no event. */
#ifndef SGI_RESUMPTIONS_H
#define SGI_RESUMPTIONS_H

#include "wire/sse.h"

typedef struct sgi_resumptions {
    /* the retry time of the server in ms; -1 = the server gave no retry time */
    int64_t retry_ms;
    int32_t count; /* number of resumptions in a row that brought no event */
} sgi_resumptions;

void sgi_resumptions_init(sgi_resumptions *resumptions);
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
