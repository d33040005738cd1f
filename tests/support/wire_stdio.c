/* Wires to a spawned fixture server: real pipes, real time. */
#include "support/world_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static segue_status some_principal(void *user, segue_transport *transport,
                                   const char **principal)
{
    (void)user;
    (void)transport;
    *principal = NULL;
    return SEGUE_OK;
}

/* Passes the options that the scenario changes to the process. Only numbers, and whether
 * there is a principal function, can be passed. */
static void tell_options(const world *w)
{
    segue_server_options o = SEGUE_SERVER_OPTIONS_INIT;
    char text[320];
    if (!w->tune)
        return;
    o.principal = some_principal;
    w->tune(&o);
    snprintf(text, sizeof text,
             "principal=%d page_size=%d max_tasks=%d max_ttl_ms=%lld dialects_on=%u "
             "dialects_off=%u question_ttl_ms=%lld",
             o.principal != NULL, (int)o.page_size, (int)o.max_tasks,
             (long long)o.max_ttl_ms, (unsigned)o.dialects_on, (unsigned)o.dialects_off,
             (long long)o.question_ttl_ms);
    setenv("SEGUE_OPTIONS", text, 1);
}

static void connect(wire *c)
{
    int in[2], out[2];
    const char *program = getenv("SEGUE_FIXTURE_SERVER");
    if (!program)
        program = SEGUE_FIXTURE_SERVER;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    c->child = fork();
    if (c->child == 0) {
        /* A failed scenario must leave no server behind. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        tell_options(c->w);
        if (c->w->fault)
            setenv("SEGUE_FAULT", c->w->fault, 1);
        execl(program, program, c->w->store_kind == WORLD_SQLITE ? c->w->path : NULL,
              NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c->to = in[1];
    c->from = out[0];
    fcntl(c->from, F_SETFL, O_NONBLOCK);
}

static void cut(wire *c)
{
    if (c->child <= 0)
        return;
    kill(c->child, SIGKILL);
    close(c->to);
    close(c->from);
    waitpid(c->child, NULL, 0);
    c->child = 0;
    c->closed = 1;
}

static void stall(wire *c)
{
    (void)c;
    fail_msg("a wire over stdio does not stall");
}

static void send_line(wire *c, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(c->to, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* the server is gone: a caller that waits for an answer reports
                     * that */
        text += n;
        len -= (size_t)n;
    }
}

static int look(wire *c)
{
    (void)c;
    return 0;
}

static void nothing(wire *c)
{
    (void)c;
}

int wire_stdio_read(wire *c, int timeout_ms)
{
    struct pollfd p = {.fd = c->from, .events = POLLIN};
    char bytes[65536];
    if (c->closed || poll(&p, 1, timeout_ms) <= 0)
        return 0;
    ssize_t n = read(c->from, bytes, sizeof bytes);
    if (n <= 0) {
        c->closed = 1;
        return 0;
    }
    wire_received(c, bytes, (size_t)n);
    return 1;
}

const wire_ops wire_stdio = {connect,   cut,  stall, send_line,
                             send_line, look, cut,   nothing};
