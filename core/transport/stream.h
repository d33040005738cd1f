/* Bytes through a pair of non-blocking descriptors: the common part of the transports
 * fds, stdio and spawn. Everything runs on the loop thread with the lock held, except
 * the callbacks of watchers. */
#ifndef SGI_STREAM_H
#define SGI_STREAM_H

#include <ev.h>

#include "runtime/inlet.h"
#include "transport/transport.h"

typedef struct sgi_stream sgi_stream;

/* The callbacks run with the lock held. In each callback the owner may close or end
 * any stream. */
typedef struct sgi_stream_events {
    /* Called once per sgi_stream_finish, when all output is written. */
    void (*drained)(segue_transport *transport);
    /* Called once, when the input has ended or a write has failed. The stream has
     * stopped. */
    void (*broken)(segue_transport *transport, const char *why);
} sgi_stream_events;

struct sgi_stream {
    segue_transport *transport;
    const sgi_stream_events *events;
    int in; /* the descriptor to read from; -1 = none */
    int out;
    int in_flags; /* flags of `in` that must be restored; -1 = not changed */
    int out_flags;
    bool out_is_socket;
    bool running;   /* true between sgi_stream_open and the end */
    bool paused;    /* true = reading is stopped, because the engine wants no input now */
    bool at_eof;    /* the input has ended */
    bool settled;   /* after at_eof: the application has had time to answer */
    bool finishing; /* the owner waits for the event `drained` */
    bool writing;   /* the loop thread is writing `rest` without the lock */
    sgi_inlet inlet;
    ev_io writable;
    sgi_timer linger;
    /* output of the conversation; the bytes from `at` on are not written yet */
    sgi_buf rest;
    size_t at;
};

void sgi_stream_init(sgi_stream *stream, segue_transport *transport,
                     const sgi_stream_events *events);
/* Called when the conversation has started. Makes both descriptors non-blocking and
 * starts reading. The descriptors still belong to the owner. */
void sgi_stream_open(sgi_stream *stream, int in, int out);
void sgi_stream_flush(sgi_stream *stream);
/* Writes output without the loop: see flush_here in sgi_carrier_ops. Any thread that
 * holds the lock may call this. */
bool sgi_stream_flush_here(sgi_stream *stream);
void sgi_stream_resume(sgi_stream *stream);
void sgi_stream_quiet(sgi_stream *stream);
/* Calls drained when everything is written, or when nothing could be written for
 * SGI_LINGER_MS. Reading continues. */
void sgi_stream_finish(sgi_stream *stream);
/* Drops the remaining output and no longer uses the output descriptor. */
void sgi_stream_end_output(sgi_stream *stream);
/* Reads the available input without waiting and passes it to the conversation. */
void sgi_stream_drain(sgi_stream *stream);
/* Stops watching, restores the descriptors' flags and no longer uses them. */
void sgi_stream_stop(sgi_stream *stream);
void sgi_stream_free(sgi_stream *stream);

#endif
