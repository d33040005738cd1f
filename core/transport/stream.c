/* A stream reads while the conversation wants input, and writes the conversation's output
 * one buffer at a time. The stream fetches the next buffer only when the last one is
 * written. Therefore waiting output stays in the engine, where senders can see how much
 * output waits.
 *
 *   running --eof--> at_eof --quiet--> settled --written--> broken
 *      \--write fails-----------------------------------------/
 *
 * The end of the input does not end the conversation at once, because a peer can close
 * its writing side and still read (`printf ... | server`). First the callbacks that are
 * due now run and answer the peer's requests, and the answers are written. The stream
 * stops waiting for a peer that reads nothing for SGI_LINGER_MS. After a failed write,
 * input that the peer has already sent is still read.
 *
 * The loop reads without the lock: its thread is the only reader and owns the scratch
 * buffer. It reads a few times per event; a short read means that no more input has
 * arrived yet. While the application waits for the input in place of the loop (a lent
 * inlet, see runtime/inlet.h), any thread may read it with the lock.
 *
 * Small output of an idle stream is written by the thread that made it
 * (sgi_stream_flush_here), with the lock held and without the watchers, which belong to
 * the loop thread. Bytes that do not fit, or fail, stay in `rest` for the loop's next
 * flush. Large output is left to the loop, so that the thread that made it can
 * continue.
 *
 * SIGPIPE: sockets are written with MSG_NOSIGNAL; around other writes the signal is
 * blocked (sigpipe.h). */
#include "transport/stream.h"

#include "base/thresholds.h"

#include "transport/sigpipe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define READS_PER_EVENT 4
#define DRAIN_READS 64
#define MAX_WRITE SGI_THRESHOLD(stream_write_bytes)
#define MAX_WRITE_HERE SGI_THRESHOLD(stream_here_bytes)

static const char peer_closed[] = "the peer closed the connection";

/* ---- opening ---- */

static void on_readable(sgi_inlet *inlet);
static bool read_here(sgi_inlet *inlet, char *room);
static void on_writable(struct ev_loop *loop, ev_io *watcher, int revents);

static const sgi_inlet_ops inlet_ops = {.readable = on_readable, .read_here = read_here};

static struct ev_loop *loop_of(const sgi_stream *stream)
{
    return sgi_runtime_loop(sgi_transport_runtime(stream->transport));
}

static sgi_engine *engine_of(const sgi_stream *stream)
{
    return sgi_runtime_engine(sgi_transport_runtime(stream->transport));
}

static sgi_conn *conn_of(const sgi_stream *stream)
{
    return sgi_transport_conn(stream->transport);
}

void sgi_stream_init(sgi_stream *stream, segue_transport *transport,
                     const sgi_stream_events *events)
{
    *stream = (sgi_stream){.transport = transport,
                           .events = events,
                           .in = -1,
                           .out = -1,
                           .in_flags = -1,
                           .out_flags = -1};
}

/* Makes the descriptor non-blocking. Returns its old flags, which restore_flags needs, or
 * -1 when nothing was changed. */
static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK) || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        return -1;
    return flags;
}

/* Makes the descriptor blocking again, if set_nonblocking has changed it. Only O_NONBLOCK
 * is cleared, because another process that shares the open file may have changed other
 * flags. */
static void restore_flags(int fd, int *saved)
{
    int flags = *saved < 0 ? -1 : fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    *saved = -1;
}

void sgi_stream_open(sgi_stream *stream, int in, int out)
{
    struct stat kind;
    stream->in = in;
    stream->out = out;
    stream->in_flags = set_nonblocking(in);
    stream->out_flags = set_nonblocking(out);
    stream->out_is_socket = fstat(out, &kind) == 0 && S_ISSOCK(kind.st_mode);
    stream->running = true;
    stream->at_eof = stream->settled = stream->finishing = false;
    if (!stream->rest.mem)
        sgi_buf_init(&stream->rest, sgi_engine_mem(engine_of(stream)));
    stream->rest.len = stream->at = 0;
    sgi_inlet_init(&stream->inlet, sgi_transport_runtime(stream->transport), &inlet_ops,
                   in);
    ev_io_init(&stream->writable, on_writable, out, EV_WRITE);
    stream->writable.data = stream;
    stream->paused = !sgi_conn_wants_input(conn_of(stream));
    if (!stream->paused)
        sgi_inlet_start_waiting(&stream->inlet);
}

/* ---- ending ---- */

void sgi_stream_end_output(sgi_stream *stream)
{
    if (stream->out < 0)
        return;
    ev_io_stop(loop_of(stream), &stream->writable);
    restore_flags(stream->out, &stream->out_flags);
    stream->out = -1;
    stream->rest.len = stream->at = 0;
}

void sgi_stream_stop(sgi_stream *stream)
{
    if (!stream->running)
        return;
    stream->running = false;
    sgi_stream_end_output(stream);
    sgi_inlet_stop_waiting(&stream->inlet);
    restore_flags(stream->in, &stream->in_flags);
    stream->in = -1;
    sgi_engine_clear_timer(engine_of(stream), &stream->linger);
}

void sgi_stream_free(sgi_stream *stream)
{
    if (stream->rest.mem)
        sgi_buf_free(&stream->rest);
}

static void break_off(sgi_stream *stream, const char *why)
{
    if (!stream->running)
        return;
    sgi_stream_stop(stream);
    stream->events->broken(stream->transport, why);
}

static void give_up(sgi_timer *timer)
{
    sgi_stream *stream = SGI_OWNER(timer, sgi_stream, linger);
    if (stream->finishing) {
        stream->finishing = false;
        stream->events->drained(stream->transport);
    } else {
        break_off(stream, peer_closed);
    }
}

/* Restarts the linger timer. Called after each write; the timer ends the wait for a peer
 * that does not read. */
static void start_lingering(sgi_stream *stream)
{
    sgi_engine_set_timer(engine_of(stream), &stream->linger, SGI_LINGER_MS, give_up);
}

/* Called when the conversation has no more output. Reports the end of the stream if the
 * owner is finishing the stream, or if the input has ended. */
static void check_end(sgi_stream *stream)
{
    if (stream->finishing) {
        stream->finishing = false;
        sgi_engine_clear_timer(engine_of(stream), &stream->linger);
        stream->events->drained(stream->transport);
    } else if (stream->settled) {
        break_off(stream, peer_closed);
    }
}

/* ---- reading ---- */

static void input_ended(sgi_stream *stream, int fault)
{
    char why[SGI_WHY_SIZE];
    if (fault && fault != ECONNRESET) {
        sgi_transport_explain(why, "reading failed", fault);
        break_off(stream, why);
        return;
    }
    sgi_inlet_stop_waiting(&stream->inlet);
    stream->at_eof = true;
    start_lingering(stream);
    sgi_carrier_await_quiet(&stream->transport->carrier);
}

static void feed(sgi_stream *stream, const char *bytes, size_t len)
{
    sgi_conn_add_input(conn_of(stream), bytes, len);
    stream->paused = !sgi_conn_wants_input(conn_of(stream));
    if (stream->paused)
        sgi_inlet_stop_waiting(&stream->inlet);
}

/* Reads once without the lock, and handles the bytes with the lock. Returns true when
 * more bytes can be read at once. */
static bool read_once(sgi_stream *stream)
{
    segue_runtime *rt = sgi_transport_runtime(stream->transport);
    char *scratch = sgi_runtime_scratch(rt);
    ssize_t got = read(stream->in, scratch, SGI_READ_SIZE);
    int fault = got < 0 ? errno : 0;
    bool more = false;
    if (fault == EINTR)
        return true;
    if (fault == EAGAIN || fault == EWOULDBLOCK)
        return false;
    sgi_runtime_lock(rt);
    if (got > 0) {
        feed(stream, scratch, (size_t)got);
        more = !sgi_inlet_note_read(&stream->inlet, (size_t)got) && !stream->paused &&
               got == (ssize_t)SGI_READ_SIZE;
    } else {
        input_ended(stream, fault);
    }
    sgi_runtime_unlock(rt);
    return more;
}

static void on_readable(sgi_inlet *inlet)
{
    sgi_stream *stream = SGI_OWNER(inlet, sgi_stream, inlet);
    for (int i = 0; i < READS_PER_EVENT; i++)
        if (!read_once(stream))
            break;
}

/* Reads once on the application's thread. Returns false at the end of the input, or after
 * a read of SGI_FLOOD_SIZE bytes or more. Only the loop handles the end of the input,
 * because the end of the input ends the conversation. */
static bool read_here(sgi_inlet *inlet, char *room)
{
    sgi_stream *stream = SGI_OWNER(inlet, sgi_stream, inlet);
    ssize_t got = read(stream->in, room, SGI_READ_SIZE);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    if (got > 0)
        feed(stream, room, (size_t)got);
    return got > 0 && (size_t)got < SGI_FLOOD_SIZE;
}

void sgi_stream_read_available(sgi_stream *stream)
{
    segue_runtime *rt = sgi_transport_runtime(stream->transport);
    char *scratch = sgi_runtime_scratch(rt);
    for (int i = 0; i < DRAIN_READS && stream->running && !stream->at_eof; i++) {
        if (!conn_of(stream) || !sgi_conn_wants_input(conn_of(stream)))
            break;
        ssize_t got = read(stream->in, scratch, SGI_READ_SIZE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        sgi_conn_add_input(conn_of(stream), scratch, (size_t)got);
    }
}

void sgi_stream_resume_reading(sgi_stream *stream)
{
    if (!stream->running || !stream->paused || stream->at_eof)
        return;
    stream->paused = !sgi_conn_wants_input(conn_of(stream));
    if (!stream->paused)
        sgi_inlet_start_waiting(&stream->inlet);
}

/* ---- writing ---- */

static ssize_t write_some(const sgi_stream *stream)
{
    const char *bytes = stream->rest.p + stream->at;
    size_t len = stream->rest.len - stream->at;
    if (len > MAX_WRITE)
        len = MAX_WRITE;
    if (stream->out_is_socket)
        return send(stream->out, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return write(stream->out, bytes, len);
}

/* Writes the bytes of `rest`. Returns 0 when all bytes are written, otherwise the errno
 * that stopped the writing. A partial write counts as EAGAIN, because it shows that the
 * peer's buffer is full. looping: the runtime whose loop thread makes this call, or
 * NULL. */
static int write_rest(sgi_stream *stream, const segue_runtime *looping)
{
    sgi_sigpipe held;
    int fault = 0;
    if (!stream->out_is_socket)
        sgi_sigpipe_block(&held, looping);
    while (!fault && stream->at < stream->rest.len) {
        size_t asked = stream->rest.len - stream->at;
        ssize_t sent = write_some(stream);
        if (sent >= 0) {
            stream->at += (size_t)sent;
            fault = (size_t)sent < asked && (size_t)sent < MAX_WRITE ? EAGAIN : 0;
        } else if (errno != EINTR) {
            fault = errno == EWOULDBLOCK ? EAGAIN : errno;
        }
    }
    if (!stream->out_is_socket)
        sgi_sigpipe_unblock(&held, fault == EPIPE);
    return fault;
}

static void output_failed(sgi_stream *stream, int fault)
{
    char why[SGI_WHY_SIZE];
    sgi_stream_read_available(stream);
    sgi_transport_explain(why, "writing failed", fault);
    break_off(stream, fault == EPIPE || fault == ECONNRESET ? peer_closed : why);
}

/* Writes the bytes of `rest`. Returns true when all bytes are written. The caller holds
 * the lock, which is released while the function writes. */
static bool push_rest(sgi_stream *stream)
{
    segue_runtime *rt = sgi_transport_runtime(stream->transport);
    stream->writing = true;
    sgi_runtime_unlock(rt);
    size_t before = stream->at;
    int fault = write_rest(stream, rt);
    sgi_runtime_lock(rt);
    stream->writing = false;
    if (stream->linger.slot && stream->at > before)
        start_lingering(stream);
    if (fault == EAGAIN) {
        ev_io_start(loop_of(stream), &stream->writable);
        return false;
    }
    if (fault) {
        output_failed(stream, fault);
        return false;
    }
    ev_io_stop(loop_of(stream), &stream->writable);
    stream->rest.len = stream->at = 0;
    return true;
}

/* Writes one buffer per turn. The engine reports that there is more output, but does not
 * report that there is no more output. Therefore, when the remaining output must be
 * written before the end, the function asks for another flush. */
void sgi_stream_flush(sgi_stream *stream)
{
    if (!stream->running || stream->out < 0 || ev_is_active(&stream->writable))
        return;
    if (stream->rest.len && !push_rest(stream)) /* `rest` has the bytes that flush_here
                                                 * could not write */
        return;
    sgi_conn_take_output(conn_of(stream), &stream->rest);
    if (!stream->rest.len)
        check_end(stream);
    else if (push_rest(stream) && (stream->finishing || stream->settled))
        sgi_carrier_request_work(&stream->transport->carrier, SGI_WORK_FLUSH);
}

bool sgi_stream_flush_here(sgi_stream *stream)
{
    if (!stream->running || stream->out < 0 || stream->writing || stream->at_eof ||
        stream->finishing || stream->rest.len)
        return false;
    sgi_conn_take_output(conn_of(stream), &stream->rest);
    if (stream->rest.len > MAX_WRITE_HERE || write_rest(stream, NULL) != 0)
        return false;
    stream->rest.len = stream->at = 0;
    return true;
}

static void on_writable(struct ev_loop *loop, ev_io *watcher, int revents)
{
    sgi_stream *stream = watcher->data;
    segue_runtime *rt = sgi_transport_runtime(stream->transport);
    (void)loop;
    (void)revents;
    sgi_runtime_lock(rt);
    if (push_rest(stream))
        sgi_stream_flush(stream);
    sgi_runtime_unlock(rt);
}

void sgi_stream_on_quiet(sgi_stream *stream)
{
    if (!stream->running || !stream->at_eof)
        return;
    stream->settled = true;
    if (stream->out < 0)
        break_off(stream, peer_closed);
    else
        sgi_stream_flush(stream);
}

void sgi_stream_finish_output(sgi_stream *stream)
{
    if (!stream->running || stream->finishing)
        return;
    stream->finishing = true;
    start_lingering(stream);
    sgi_stream_flush(stream);
}
