/* A stream moves bytes through a pair of non-blocking descriptors. It is the common part
 * of the transports fds, stdio and spawn. Everything runs on the loop thread with the
 * lock held, except the callbacks of watchers. */
#ifndef SGI_STREAM_H
#define SGI_STREAM_H

#include <ev.h>

#include "runtime/inlet.h"
#include "transport/transport.h"

typedef struct sgi_stream sgi_stream;

/* The events of a stream. The callbacks run with the lock held. In each callback the
 * owner may close or end any stream. */
typedef struct sgi_stream_events {
    /* Called once for each call of sgi_stream_finish_output, when all output is
     * written. */
    void (*drained)(segue_transport *transport);
    /* Called once, when the input has ended or a write has failed. The stream has already
     * stopped. */
    void (*broken)(segue_transport *transport, const char *why);
} sgi_stream_events;

struct sgi_stream {
    segue_transport *transport;
    const sgi_stream_events *events;
    int in; /* the descriptor to read from; -1 = no descriptor */
    int out;
    /* the original flags of `in`, which must be restored; -1 = the flags were not
     * changed */
    int in_flags;
    int out_flags;
    bool out_is_socket;
    bool running; /* true = the stream was opened and has not ended */
    bool paused;  /* true = reading is stopped, because the engine wants no input now */
    bool at_eof;  /* true = the input has ended */
    /* true = the input has ended, and the callbacks that answer it have run */
    bool settled;
    bool finishing; /* true = the owner waits for the event `drained` */
    bool writing;   /* true = the loop thread is writing `rest` without the lock */
    sgi_inlet inlet;
    ev_io writable;
    sgi_timer linger;
    /* output of the conversation; the bytes from position `at` on are not written yet */
    sgi_buf rest;
    size_t at;
};

void sgi_stream_init(sgi_stream *stream, segue_transport *transport,
                     const sgi_stream_events *events);
/* Called when the conversation has started. Makes both descriptors non-blocking and
 * starts reading. The owner still has to close the descriptors. */
void sgi_stream_open(sgi_stream *stream, int in, int out);
void sgi_stream_flush(sgi_stream *stream);
/* Writes output without the loop, as flush_here of sgi_carrier_ops requires. Any thread
 * that holds the lock may call the function. */
bool sgi_stream_flush_here(sgi_stream *stream);
void sgi_stream_resume_reading(sgi_stream *stream);
void sgi_stream_on_quiet(sgi_stream *stream);
/* Makes the stream call `drained` when all output is written, or when nothing could be
 * written for SGI_LINGER_MS. Reading continues. */
void sgi_stream_finish_output(sgi_stream *stream);
/* Drops the remaining output. Afterwards the stream does not use the output
 * descriptor. */
void sgi_stream_end_output(sgi_stream *stream);
/* Reads the input that is available without waiting, and passes it to the
 * conversation. */
void sgi_stream_read_available(sgi_stream *stream);
/* Stops the stream: stops its watchers and restores the descriptors' flags. Afterwards
 * the stream does not use the descriptors. */
void sgi_stream_stop(sgi_stream *stream);
void sgi_stream_free(sgi_stream *stream);

#endif
