/* Bytes through a pair of descriptors, non-blocking: the part that fds, stdio and spawn
 * have in common. Loop thread, lock held, except where a watcher calls. */
#ifndef SGI_STREAM_H
#define SGI_STREAM_H

#include <ev.h>

#include "runtime/inlet.h"
#include "transport/transport.h"

typedef struct sgi_stream sgi_stream;

/* Lock held. The owner closes or ends what it likes in either. */
typedef struct sgi_stream_events {
    /* All output is written; once per sgi_stream_finish. */
    void (*drained)(segue_transport *transport);
    /* Nothing more comes in, or nothing more can be written. Once; the stream has
     * stopped. */
    void (*broken)(segue_transport *transport, const char *why);
} sgi_stream_events;

struct sgi_stream {
    segue_transport *transport;
    const sgi_stream_events *events;
    int in; /* -1 = not there */
    int out;
    int in_flags; /* to be restored; -1 = nothing was changed */
    int out_flags;
    bool out_is_socket;
    bool running;   /* between open and the end */
    bool paused;    /* not read: the engine is ahead of its reader */
    bool at_eof;    /* the input has ended */
    bool settled;   /* ... and the application has had time to answer it */
    bool finishing; /* the owner waits for drained */
    bool writing;   /* the loop thread writes `rest`, without the lock */
    sgi_inlet inlet;
    ev_io writable;
    sgi_timer linger;
    sgi_buf rest; /* taken from the conversation, from `at` on not written yet */
    size_t at;
};

void sgi_stream_init(sgi_stream *stream, segue_transport *transport,
                     const sgi_stream_events *events);
/* The conversation was started: makes both descriptors non-blocking and begins to read.
 * They stay the owner's. */
void sgi_stream_open(sgi_stream *stream, int in, int out);
void sgi_stream_flush(sgi_stream *stream);
/* Any thread, lock held: see sgi_carrier_ops. */
bool sgi_stream_flush_here(sgi_stream *stream);
void sgi_stream_resume(sgi_stream *stream);
void sgi_stream_quiet(sgi_stream *stream);
/* Calls drained when everything is written, or nothing could be for SGI_LINGER_MS. Input
 * goes on being read. */
void sgi_stream_finish(sgi_stream *stream);
/* Forgets the output and its descriptor, with what is left to write. */
void sgi_stream_end_output(sgi_stream *stream);
/* Reads and feeds what is there without waiting. */
void sgi_stream_drain(sgi_stream *stream);
/* Stops watching, restores the descriptors' flags and forgets both. */
void sgi_stream_stop(sgi_stream *stream);
void sgi_stream_free(sgi_stream *stream);

#endif
