/* A transport on two descriptors, or on standard input and output. At the end of the
 * transport, descriptors of the application are closed. Standard input and output stay
 * open, because the numbers 0 and 1 must not be reused for other files. Their flags are
 * restored, because the shell that started the process can share them. */
#include "transport/stream.h"

#include <unistd.h>

#include "runtime/standard_fds.h"

typedef struct fds {
    segue_transport base;
    sgi_stream stream;
    int in;
    int out;
    bool owned;
} fds;

static fds *fds_of(segue_transport *transport)
{
    return SGI_OWNER(transport, fds, base);
}

static void start(segue_transport *transport)
{
    fds *f = fds_of(transport);
    if (!f->owned)
        sgi_conn_set_uses_stdio(sgi_transport_conn(transport));
    sgi_conn_start(sgi_transport_conn(transport));
    sgi_stream_open(&f->stream, f->in, f->out);
}

static void resume(segue_transport *transport)
{
    sgi_stream_resume_reading(&fds_of(transport)->stream);
}

static void quiet(segue_transport *transport)
{
    sgi_stream_on_quiet(&fds_of(transport)->stream);
}

static void flush(segue_transport *transport)
{
    sgi_stream_flush(&fds_of(transport)->stream);
}

static bool flush_here(segue_transport *transport)
{
    return sgi_stream_flush_here(&fds_of(transport)->stream);
}

static void finish(segue_transport *transport)
{
    sgi_stream_finish_output(&fds_of(transport)->stream);
}

static void on_broken(segue_transport *transport, const char *why)
{
    sgi_conn_on_lost(sgi_transport_conn(transport), why);
    sgi_transport_end(transport);
}

static void release(segue_transport *transport)
{
    fds *f = fds_of(transport);
    sgi_stream_stop(&f->stream);
    if (!f->owned)
        return;
    f->owned = false;
    close(f->in);
    if (f->out != f->in)
        close(f->out);
}

static void destroy(segue_transport *transport)
{
    fds *f = fds_of(transport);
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(transport->carrier.runtime));
    sgi_stream_free(&f->stream);
    sgi_free(mem, f, sizeof *f);
}

static const sgi_transport_ops ops = {
    .start = start,
    .resume = resume,
    .quiet = quiet,
    .flush = flush,
    .flush_here = flush_here,
    .close = finish,
    .release = release,
    .destroy = destroy,
};

static const sgi_stream_events events = {.drained = sgi_transport_end,
                                         .broken = on_broken};

static segue_status make(segue_runtime *rt, int in, int out, bool owned,
                         segue_transport **result)
{
    const sgi_mem *mem = sgi_engine_mem(sgi_runtime_engine(rt));
    fds *f = sgi_zalloc(mem, sizeof *f);
    if (!f)
        return SEGUE_E_NOMEM;
    f->in = in;
    f->out = out;
    f->owned = owned;
    sgi_stream_init(&f->stream, &f->base, &events);
    segue_status status = sgi_transport_init(&f->base, rt, &ops, false, SGI_GRACE_MS);
    if (status != SEGUE_OK)
        sgi_free(mem, f, sizeof *f);
    else
        *result = &f->base;
    return status;
}

segue_status sgi_transport_fds(segue_runtime *rt, int32_t fd_in, int32_t fd_out,
                               segue_transport **out)
{
    if (!sgi_fd_is_open(fd_in) || !sgi_fd_is_open(fd_out))
        return SEGUE_E_INVALID;
    return make(rt, fd_in, fd_out, true, out);
}

segue_status sgi_transport_stdio(segue_runtime *rt, segue_transport **out)
{
    if (!sgi_fd_is_open(STDIN_FILENO) || !sgi_fd_is_open(STDOUT_FILENO))
        return SEGUE_E_IO;
    return make(rt, STDIN_FILENO, STDOUT_FILENO, false, out);
}
