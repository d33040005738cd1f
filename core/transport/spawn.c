/* A server in a child process, connected through the child's standard input and output.
 *
 *   ABSENT --start, reopen--> RUNNING --close: output is sent----\
 *      ^                          \---input ended, broken--> CLOSING: its input is closed
 *      |                                                         | close_timeout
 *      |                                                         v
 *      |                                                     TERMINATING: SIGTERM
 *      |                                                         | terminate_timeout
 *      |                                                         v
 *      \------ the child has ended: reaped, from any stage - KILLED: SIGKILL
 *
 * Output that a child wrote before it ended is still read, even if the conversation asks
 * for this output only later. `reaped` marks a child that has ended while some of its
 * output is unread.
 *
 * A loss is reported to the conversation once per child (`up`), with a text about how
 * the child ended. When the child's output ends first, the report waits up to TELL_MS for
 * the exit status, which that text describes. A failure to start is reported as a loss
 * right after the start.
 *
 * The transport outlives its conversation until the child is reaped, so no zombie is
 * left. The transport ends when the child is gone and `over` says that no other child
 * will be needed. When the runtime is freed, `release` kills a child that still lives
 * after the timeouts. */
#include "transport/stream.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "transport/child.h"
#include "transport/stderr_relay.h"

#define DEFAULT_TIMEOUT_MS 2000
#define TELL_MS 100
#define KILL_GRACE_MS 500
#define READS_PER_EVENT 4

typedef enum stage { ABSENT = 0, RUNNING, CLOSING, TERMINATING, KILLED } stage;

typedef struct spawn {
    segue_transport base;
    sgi_stream stream;
    sgi_child_command *command;
    int64_t close_ms;
    int64_t terminate_ms;
    bool with_err;
    /* relays the child's standard error to the application; NULL when the options have
     * neither on_stderr nor free_user */
    sgi_stderr_relay *relay;
    sgi_child child;
    stage stage;
    bool up;    /* true = the conversation was started, and no loss was reported since */
    bool over;  /* true = the transport ends together with this child */
    bool again; /* true = a reopen was requested while the previous child still exists */
    /* true = the child has ended and was reaped; `why` tells how the child ended */
    bool reaped;
    ev_io exited;
    ev_io complains;
    sgi_timer next_stage;
    sgi_timer tell;
    char why[SGI_WHY_SIZE];
} spawn;

static spawn *spawn_of(segue_transport *transport)
{
    return SGI_OWNER(transport, spawn, base);
}

static sgi_engine *engine_of(const spawn *s)
{
    return sgi_runtime_engine(sgi_transport_runtime(&s->base));
}

static struct ev_loop *loop_of(const spawn *s)
{
    return sgi_runtime_loop(sgi_transport_runtime(&s->base));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the conversation ---- */

static void tell_lost(spawn *s, const char *why)
{
    if (!s->up)
        return;
    s->up = false;
    sgi_conn_on_lost(sgi_transport_conn(&s->base), why);
    if (!s->base.carrier.can_reopen) {
        s->over = true;
        sgi_transport_detach(&s->base);
    }
}

static void tell_now(sgi_timer *timer)
{
    spawn *s = SGI_OWNER(timer, spawn, tell);
    tell_lost(s, s->why);
}

/* ---- standard error ---- */

/* Reads the child's standard error once. Returns true when more bytes can be read at
 * once. The caller holds the lock, because the lines are queued under the lock. */
static bool read_complaint(spawn *s)
{
    char *scratch = sgi_runtime_scratch(sgi_transport_runtime(&s->base));
    ssize_t got = read(s->child.err, scratch, SGI_READ_SIZE);
    if (got > 0) {
        sgi_stderr_relay_add(s->relay, scratch, (size_t)got);
        return got == (ssize_t)SGI_READ_SIZE;
    }
    if (got < 0 && errno == EINTR)
        return true;
    if (got == 0)
        ev_io_stop(loop_of(s), &s->complains);
    return false;
}

static void read_complaints(spawn *s)
{
    for (int i = 0; i < READS_PER_EVENT && read_complaint(s); i++)
        ;
}

static void on_complaint(struct ev_loop *loop, ev_io *watcher, int revents)
{
    spawn *s = watcher->data;
    (void)loop;
    (void)revents;
    sgi_runtime_lock(sgi_transport_runtime(&s->base));
    read_complaints(s);
    sgi_runtime_unlock(sgi_transport_runtime(&s->base));
}

/* ---- shutdown ---- */

static void enter_stage(spawn *s, stage next);

static void on_patience_over(sgi_timer *timer)
{
    spawn *s = SGI_OWNER(timer, spawn, next_stage);
    enter_stage(s, s->stage == CLOSING ? TERMINATING : KILLED);
}

/* Enters a stage of the child's shutdown (2026-07-28 basic/transports/stdio,
 * shutdown). */
static void enter_stage(spawn *s, stage next)
{
    s->stage = next;
    if (next == CLOSING) {
        sgi_stream_end_output(&s->stream);
        close_fd(&s->child.in);
        sgi_engine_set_timer(engine_of(s), &s->next_stage, s->close_ms, on_patience_over);
    } else if (next == TERMINATING) {
        sgi_child_signal(&s->child, SIGTERM);
        sgi_engine_set_timer(engine_of(s), &s->next_stage, s->terminate_ms,
                             on_patience_over);
    } else {
        sgi_child_signal(&s->child, SIGKILL);
    }
}

/* ---- starting and reaping a child ---- */

static void launch(spawn *s);

static void forget_child(spawn *s)
{
    sgi_stream_stop(&s->stream);
    ev_io_stop(loop_of(s), &s->exited);
    ev_io_stop(loop_of(s), &s->complains);
    sgi_engine_clear_timer(engine_of(s), &s->next_stage);
    sgi_engine_clear_timer(engine_of(s), &s->tell);
    sgi_child_close(&s->child);
    s->stage = ABSENT;
    s->reaped = false;
}

/* Decides what happens after a child is gone: the transport ends, starts another child,
 * or waits for a reopen. */
static void go_on(spawn *s, const char *why)
{
    tell_lost(s, why);
    if (s->over) {
        sgi_transport_end(&s->base);
    } else if (s->again) {
        s->again = false;
        launch(s);
    }
}

static void describe_exit(const sgi_child_exit *how, char why[SGI_WHY_SIZE])
{
    if (!how->known)
        snprintf(why, SGI_WHY_SIZE, "the program has ended");
    else if (how->killed)
        snprintf(why, SGI_WHY_SIZE, "the program was ended by signal %d", how->value);
    else
        snprintf(why, SGI_WHY_SIZE, "the program exited with status %d", how->value);
}

/* Handles the end of a child whose output was read to its end or is no longer needed. */
static void bury_child(spawn *s)
{
    if (s->with_err)
        read_complaints(s);
    forget_child(s);
    sgi_engine_log(engine_of(s), SEGUE_LOG_INFO, "%s: %s", s->command->argv[0], s->why);
    go_on(s, s->why);
}

/* Handles the end of a child once the child's output pipe is empty. The function does not
 * wait for the end of the pipe, because a grandchild can keep the pipe open. */
static void bury_once_read(spawn *s)
{
    sgi_stream_read_available(&s->stream);
    bool unread = s->stage == RUNNING && s->stream.running && !s->over &&
                  !sgi_conn_wants_input(sgi_transport_conn(&s->base));
    if (!unread)
        bury_child(s);
}

static void on_exit_of_child(struct ev_loop *loop, ev_io *watcher, int revents)
{
    spawn *s = watcher->data;
    segue_runtime *rt = sgi_transport_runtime(&s->base);
    sgi_child_exit how;
    (void)revents;
    sgi_runtime_lock(rt);
    if (sgi_child_reap(&s->child, false, &how)) {
        ev_io_stop(loop, &s->exited);
        s->reaped = true;
        describe_exit(&how, s->why);
        bury_once_read(s);
    }
    sgi_runtime_unlock(rt);
}

static void on_drained(segue_transport *transport)
{
    spawn *s = spawn_of(transport);
    if (s->reaped)
        bury_child(s);
    else if (s->stage == RUNNING)
        enter_stage(s, CLOSING);
}

static void on_broken(segue_transport *transport, const char *why)
{
    spawn *s = spawn_of(transport);
    if (s->reaped) {
        bury_child(s);
        return;
    }
    snprintf(s->why, sizeof s->why, "%s", why);
    if (s->stage == RUNNING)
        enter_stage(s, CLOSING);
    close_fd(&s->child.out);
    sgi_engine_set_timer(engine_of(s), &s->tell, TELL_MS, tell_now);
}

static void watch(spawn *s)
{
    ev_io_init(&s->exited, on_exit_of_child, s->child.pidfd, EV_READ);
    s->exited.data = s;
    ev_io_start(loop_of(s), &s->exited);
    ev_io_init(&s->complains, on_complaint, s->child.err, EV_READ);
    s->complains.data = s;
    if (s->with_err)
        ev_io_start(loop_of(s), &s->complains);
    sgi_stream_open(&s->stream, s->child.out, s->child.in);
}

static void launch(spawn *s)
{
    segue_runtime *rt = sgi_transport_runtime(&s->base);
    char what[SGI_WHY_SIZE - 64], why[SGI_WHY_SIZE];
    if (!sgi_runtime_is_open(rt)) {
        sgi_transport_end(&s->base); /* the runtime is ending, so no child is started */
        return;
    }
    sgi_runtime_unlock(rt);
    int fault = sgi_child_start(&s->child, s->command, s->with_err);
    sgi_runtime_lock(rt);
    s->up = true;
    sgi_conn_start(sgi_transport_conn(&s->base));
    if (fault == 0) {
        s->stage = RUNNING;
        watch(s);
        return;
    }
    snprintf(what, sizeof what, "cannot start %s%s%s", s->command->argv[0],
             s->command->dir ? " in " : "", s->command->dir ? s->command->dir : "");
    sgi_transport_explain(why, what, fault);
    go_on(s, why);
}

/* ---- the transport ---- */

static void start(segue_transport *transport)
{
    launch(spawn_of(transport));
}

static void reopen(segue_transport *transport)
{
    spawn *s = spawn_of(transport);
    if (s->stage != ABSENT)
        s->again = true;
    else
        launch(s);
}

static void resume(segue_transport *transport)
{
    spawn *s = spawn_of(transport);
    if (s->reaped)
        bury_once_read(s);
    else
        sgi_stream_resume_reading(&s->stream);
}

static void quiet(segue_transport *transport)
{
    sgi_stream_on_quiet(&spawn_of(transport)->stream);
}

static void flush(segue_transport *transport)
{
    sgi_stream_flush(&spawn_of(transport)->stream);
}

static bool flush_here(segue_transport *transport)
{
    return sgi_stream_flush_here(&spawn_of(transport)->stream);
}

static void finish(segue_transport *transport)
{
    spawn *s = spawn_of(transport);
    s->over = true;
    if (s->reaped)
        bury_child(s);
    else if (s->stage == RUNNING)
        sgi_stream_finish_output(&s->stream);
    else if (s->stage == ABSENT)
        sgi_transport_end(transport);
}

/* Kills a child that still lives when the runtime is freed. */
static void kill_child(spawn *s)
{
    segue_runtime *rt = sgi_transport_runtime(&s->base);
    sgi_child_exit how;
    sgi_child_signal(&s->child, SIGKILL);
    sgi_runtime_unlock(rt);
    sgi_child_reap(&s->child, true, &how);
    sgi_runtime_lock(rt);
    if (s->with_err)
        read_complaints(s);
}

static void release(segue_transport *transport)
{
    spawn *s = spawn_of(transport);
    if (s->stage != ABSENT) {
        kill_child(s);
        forget_child(s);
    }
    if (s->relay)
        sgi_stderr_relay_end(s->relay);
    s->relay = NULL;
}

static void destroy(segue_transport *transport)
{
    spawn *s = spawn_of(transport);
    const sgi_mem *mem = sgi_engine_mem(engine_of(s));
    sgi_stream_free(&s->stream);
    sgi_child_command_free(mem, s->command);
    sgi_free(mem, s, sizeof *s);
}

static const sgi_transport_ops ops = {
    .start = start,
    .reopen = reopen,
    .resume = resume,
    .quiet = quiet,
    .flush = flush,
    .flush_here = flush_here,
    .close = finish,
    .release = release,
    .destroy = destroy,
};

static const sgi_stream_events events = {.drained = on_drained, .broken = on_broken};

static int64_t or_default(int64_t ms)
{
    return ms > 0 ? ms : DEFAULT_TIMEOUT_MS;
}

static spawn *make(const sgi_mem *mem, sgi_engine *engine,
                   const segue_spawn_options *options)
{
    spawn *s = sgi_zalloc(mem, sizeof *s);
    if (!s)
        return NULL;
    s->close_ms = or_default(options->close_timeout_ms);
    s->terminate_ms = or_default(options->terminate_timeout_ms);
    s->with_err = options->on_stderr != NULL;
    s->child = (sgi_child){0, -1, -1, -1, -1};
    s->command = sgi_child_command_copy(mem, options);
    bool relays = options->on_stderr || options->free_user;
    if (relays)
        s->relay = sgi_stderr_relay_new(engine, options->on_stderr, options->user,
                                        options->free_user);
    if (s->command && (s->relay || !relays))
        return s;
    sgi_stderr_relay_free(s->relay);
    sgi_child_command_free(mem, s->command);
    sgi_free(mem, s, sizeof *s);
    return NULL;
}

segue_status sgi_transport_spawn(segue_runtime *rt, const segue_spawn_options *options,
                                 segue_transport **out)
{
    sgi_engine *engine = sgi_runtime_engine(rt);
    const sgi_mem *mem = sgi_engine_mem(engine);
    spawn *s = make(mem, engine, options);
    if (!s)
        return SEGUE_E_NOMEM;
    sgi_stream_init(&s->stream, &s->base, &events);
    segue_status status = sgi_transport_init(
        &s->base, rt, &ops, options->restart != 0,
        sgi_time_add(sgi_time_add(s->close_ms, s->terminate_ms), KILL_GRACE_MS));
    if (status != SEGUE_OK) {
        sgi_stderr_relay_free(s->relay);
        sgi_child_command_free(mem, s->command);
        sgi_free(mem, s, sizeof *s);
        return status;
    }
    *out = &s->base;
    return SEGUE_OK;
}
