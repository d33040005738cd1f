/* One connection to Redis. hiredis connects and parses replies; this file formats
 * commands and waits. The socket does not block: poll waits for the socket with a time
 * limit. A second descriptor ends the wait when the store closes.
 *
 *     down --open--> up --error, time limit or close--> down
 *
 * After a time limit the connection is closed, because a late reply could be taken for
 * the reply to the next command. The caller decides whether to send the command again
 * (redis_call.c).
 *
 * hiredis writes with write(), which can raise SIGPIPE. The signal is blocked in the
 * calling thread around each write, and is removed if it is pending. Neither the signal
 * settings of the process nor other threads are affected. */
#include "store/redis_link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

int64_t sgi_redis_monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sgi_redis_link_init(sgi_redis_link *link, const sgi_redis_url *url, sgi_str loading,
                         int stop_fd)
{
    *link = (sgi_redis_link){.url = url, .loading = loading, .stop_fd = stop_fd};
}

void sgi_redis_link_close(sgi_redis_link *link)
{
    if (link->context)
        redisFree(link->context);
    sgi_redis_tls_free(link->tls);
    link->context = NULL;
    link->tls = NULL;
}

static bool lose(sgi_redis_link *link, const char *why)
{
    snprintf(link->fault, sizeof link->fault, "%s", why);
    sgi_redis_link_close(link);
    return false;
}

static bool lose_context(sgi_redis_link *link)
{
    const char *text = link->context->errstr;
    return lose(link, *text ? text : "the connection is lost");
}

/* ---- SIGPIPE ---- */

typedef struct held {
    sigset_t old;
    bool was_pending;
} held;

static void hold(held *h)
{
    sigset_t pipe_only, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    h->was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &h->old);
}

static void let(const held *h, bool raised)
{
    static const struct timespec no_time;
    sigset_t pipe_only;
    int error = errno;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    if (raised && !h->was_pending)
        while (sigtimedwait(&pipe_only, NULL, &no_time) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &h->old, NULL);
    errno = error;
}

/* ---- sending and receiving bytes ---- */

/* Waits until the socket is ready. Returns false, after closing the connection, at the
 * deadline or when the store closes. */
static bool await(sgi_redis_link *link, short events, int64_t deadline)
{
    for (;;) {
        int64_t left = deadline - sgi_redis_monotonic_ms();
        struct pollfd fds[] = {{.fd = link->context->fd, .events = events},
                               {.fd = link->stop_fd, .events = POLLIN}};
        if (left < 0)
            left = 0;
        int ready = poll(fds, 2, left > 60000 ? 60000 : (int)left);
        if (fds[1].revents && ready > 0)
            return lose(link, "the store was closed");
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return lose(link, strerror(errno));
        if (!ready && sgi_redis_monotonic_ms() >= deadline)
            return lose(link, "no answer in time");
    }
}

bool sgi_redis_link_flush(sgi_redis_link *link, int64_t deadline)
{
    if (!link->context)
        return false;
    for (;;) {
        int done = 0;
        held h;
        hold(&h);
        int result = redisBufferWrite(link->context, &done);
        let(&h, result != REDIS_OK);
        if (result != REDIS_OK)
            return lose_context(link);
        if (done)
            return true;
        if (!await(link, POLLOUT, deadline))
            return false;
    }
}

bool sgi_redis_link_send(sgi_redis_link *link, const char *bytes, size_t len)
{
    if (!link->context)
        return false;
    if (redisAppendFormattedCommand(link->context, bytes, len) != REDIS_OK)
        return lose_context(link);
    return true;
}

static bool next_reply(sgi_redis_link *link, redisReply **reply)
{
    void *next = NULL;
    if (redisGetReplyFromReader(link->context, &next) != REDIS_OK)
        return lose_context(link);
    *reply = next;
    return true;
}

redisReply *sgi_redis_link_reply(sgi_redis_link *link, int64_t deadline)
{
    redisReply *reply = NULL;
    if (!sgi_redis_link_flush(link, deadline))
        return NULL;
    while (next_reply(link, &reply) && !reply) {
        if (!await(link, POLLIN, deadline))
            return NULL;
        if (redisBufferRead(link->context) != REDIS_OK) {
            lose_context(link);
            return NULL;
        }
    }
    return reply;
}

bool sgi_redis_link_poll(sgi_redis_link *link, redisReply **reply)
{
    *reply = NULL;
    if (!link->context || !next_reply(link, reply))
        return false;
    if (*reply)
        return true;
    struct pollfd fd = {.fd = link->context->fd, .events = POLLIN};
    if (poll(&fd, 1, 0) <= 0)
        return true;
    if (redisBufferRead(link->context) != REDIS_OK)
        return lose_context(link);
    return next_reply(link, reply);
}

/* ---- commands ---- */

void sgi_redis_command_begin(sgi_buf *commands, size_t count)
{
    sgi_buf_add_char(commands, '*');
    sgi_buf_add_uint(commands, count);
    sgi_buf_add_lit(commands, "\r\n");
}

void sgi_redis_arg_begin(sgi_buf *commands, size_t len)
{
    sgi_buf_add_char(commands, '$');
    sgi_buf_add_uint(commands, len);
    sgi_buf_add_lit(commands, "\r\n");
}

void sgi_redis_arg_end(sgi_buf *commands)
{
    sgi_buf_add_lit(commands, "\r\n");
}

void sgi_redis_arg(sgi_buf *commands, const void *bytes, size_t len)
{
    sgi_redis_arg_begin(commands, len);
    sgi_buf_add(commands, bytes, len);
    sgi_redis_arg_end(commands);
}

void sgi_redis_arg_text(sgi_buf *commands, const char *text)
{
    sgi_redis_arg(commands, text, strlen(text));
}

void sgi_redis_arg_int(sgi_buf *commands, int64_t value)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)value);
    sgi_redis_arg(commands, text, (size_t)n);
}

/* ---- opening ---- */

redisReply *sgi_redis_link_execute(sgi_redis_link *link, int count, const char **args,
                                   int64_t deadline)
{
    if (redisAppendCommandArgv(link->context, count, args, NULL) != REDIS_OK) {
        lose_context(link);
        return NULL;
    }
    redisReply *reply = sgi_redis_link_reply(link, deadline);
    if (!reply || reply->type != REDIS_REPLY_ERROR)
        return reply;
    lose(link, reply->str);
    freeReplyObject(reply);
    return NULL;
}

/* Runs one command while the link connects. Returns false when the reply is an error or
 * does not arrive; ignores the contents of any other reply. */
static bool demand(sgi_redis_link *link, int count, const char **args, int64_t deadline)
{
    redisReply *reply = sgi_redis_link_execute(link, count, args, deadline);
    if (reply)
        freeReplyObject(reply);
    return reply != NULL;
}

static bool sign_in(sgi_redis_link *link, int64_t deadline)
{
    const sgi_redis_url *url = link->url;
    char db[16];
    if (*url->password) {
        const char *with_user[] = {"AUTH", url->user, url->password};
        const char *without[] = {"AUTH", url->password};
        if (!demand(link, *url->user ? 3 : 2, *url->user ? with_user : without, deadline))
            return false;
    }
    snprintf(db, sizeof db, "%d", url->db);
    const char *select[] = {"SELECT", db};
    return !url->db || demand(link, 2, select, deadline);
}

/* Asks Redis for the setting appendfsync. Redis replies with an error if the user has no
 * right to read the configuration. */
static redisReply *ask_appendfsync(sgi_redis_link *link, int64_t deadline)
{
    const char *config[] = {"CONFIG", "GET", "appendfsync"};
    if (redisAppendCommandArgv(link->context, 3, config, NULL) == REDIS_OK)
        return sgi_redis_link_reply(link, deadline);
    lose_context(link);
    return NULL;
}

static const char *value_of(const redisReply *pair)
{
    bool ok = pair->type == REDIS_REPLY_ARRAY && pair->elements == 2 &&
              pair->element[1]->type == REDIS_REPLY_STRING;
    return ok ? pair->element[1]->str : NULL;
}

static segue_status inspect(sgi_redis_link *link, int64_t deadline)
{
    const char *command[] = {"INFO"};
    char fault[sizeof link->fault];
    redisReply *config = NULL, *info = sgi_redis_link_execute(link, 1, command, deadline);
    segue_status status = SEGUE_E_STORE;
    if (info && info->type == REDIS_REPLY_STRING)
        config = ask_appendfsync(link, deadline);
    else if (info)
        lose(link, "Redis sent an empty answer to INFO");
    if (config) {
        status = sgi_redis_server_info_read(&link->peer, info->str, value_of(config),
                                            fault, sizeof fault);
        if (status)
            lose(link, fault);
        freeReplyObject(config);
    }
    if (info)
        freeReplyObject(info);
    return status;
}

static bool load_scripts(sgi_redis_link *link, int64_t deadline)
{
    if (!sgi_redis_link_send(link, link->loading.p, link->loading.n))
        return false;
    for (int i = 0; i < SGI_REDIS_SCRIPTS; i++) {
        redisReply *reply = sgi_redis_link_reply(link, deadline);
        if (!reply)
            return false;
        bool ok = reply->type == REDIS_REPLY_STRING && reply->len == SGI_REDIS_SHA;
        if (ok)
            memcpy(link->shas[i], reply->str, SGI_REDIS_SHA);
        else
            lose(link, reply->type == REDIS_REPLY_ERROR ? reply->str : "no script");
        freeReplyObject(reply);
        if (!ok)
            return false;
    }
    return true;
}

static bool connect_socket(sgi_redis_link *link, int64_t deadline)
{
    int64_t left = deadline - sgi_redis_monotonic_ms();
    if (left < 1)
        left = 1;
    struct timeval limit = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
    const sgi_redis_url *url = link->url;
    link->context = url->port ? redisConnectWithTimeout(url->host, url->port, limit)
                              : redisConnectUnixWithTimeout(url->host, limit);
    if (!link->context)
        return lose(link, "out of memory");
    if (link->context->err)
        return lose_context(link);
    fcntl(link->context->fd, F_SETFD, FD_CLOEXEC);
    if (url->tls) {
        held h;
        redisSetTimeout(link->context, limit);
        hold(&h);
        bool ok = sgi_redis_tls_start(link->context, url, &link->tls, link->fault,
                                      sizeof link->fault);
        let(&h, !ok);
        if (!ok) {
            sgi_redis_link_close(link);
            return false;
        }
    }
    int flags = fcntl(link->context->fd, F_GETFL);
    if (flags < 0 || fcntl(link->context->fd, F_SETFL, flags | O_NONBLOCK))
        return lose(link, strerror(errno));
    link->context->flags &= ~REDIS_BLOCK;
    return true;
}

segue_status sgi_redis_link_open(sgi_redis_link *link, int64_t deadline)
{
    sgi_redis_link_close(link);
#ifndef SGI_REDIS_TLS
    if (link->url->tls) {
        lose(link, "this library was built without TLS for Redis");
        return SEGUE_E_UNSUPPORTED;
    }
#endif
    if (!connect_socket(link, deadline) || !sign_in(link, deadline))
        return SEGUE_E_STORE;
    if (!link->loading.n)
        return SEGUE_OK;
    segue_status status = inspect(link, deadline);
    if (!status && !load_scripts(link, deadline))
        status = SEGUE_E_STORE;
    return status;
}
