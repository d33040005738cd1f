/* Passes lines of a child's standard error to the application. The loop thread cuts the
 * input into lines and queues them; the thread that runs callbacks delivers them. There
 * are two buffers: `queue` is filled under the lock, while `current` is delivered without
 * the lock. Therefore a line does not move during its callback.
 *
 * Each buffer holds at most MAX_WAITING bytes. Further lines are dropped and not left in
 * the pipe, because a child must not block when the application does not read its log. A
 * line then reports how many bytes were dropped.
 *
 * A line is stored as its length, its bytes and a NUL. The transport owns the relay until
 * sgi_stderr_relay_end; from then on the queue of callbacks owns the relay. */
#include "transport/stderr_relay.h"

#include <stdio.h>

#define MAX_LINE 8192
#define MAX_WAITING ((size_t)256 * 1024)

struct sgi_stderr_relay {
    sgi_engine *engine;
    sgi_ready_object ready;
    segue_stderr_fn fn;
    void *user;
    segue_free_fn free_user;
    sgi_buf queue;
    sgi_buf current;
    size_t at;
    size_t dropped; /* number of bytes that were dropped since the last queued line */
    bool ended;
    size_t partial_len;
    char partial[MAX_LINE];
};

static void free_relay(sgi_stderr_relay *relay)
{
    sgi_ready_queue_remove(relay->engine, &relay->ready);
    sgi_buf_free(&relay->queue);
    sgi_buf_free(&relay->current);
    sgi_free(sgi_engine_mem(relay->engine), relay, sizeof *relay);
}

/* ---- queuing lines ---- */

static bool add_line(sgi_stderr_relay *relay, const char *text, size_t len)
{
    size_t before = relay->queue.len;
    sgi_buf_add(&relay->queue, &len, sizeof len);
    sgi_buf_add(&relay->queue, text, len);
    sgi_buf_add_char(&relay->queue, 0);
    if (relay->queue.failed) {
        sgi_buf_truncate(&relay->queue, before);
        return false;
    }
    sgi_ready_queue_add(relay->engine, &relay->ready);
    return true;
}

static void add_notice(sgi_stderr_relay *relay)
{
    char text[80];
    if (!relay->dropped)
        return;
    int len = snprintf(text, sizeof text,
                       "%zu bytes of the program's standard error were dropped",
                       relay->dropped);
    if (add_line(relay, text, (size_t)len))
        relay->dropped = 0;
}

static void push_line(sgi_stderr_relay *relay, const char *text, size_t len)
{
    size_t waiting = relay->queue.len + (relay->current.len - relay->at);
    if (waiting + len > MAX_WAITING) {
        relay->dropped += len;
        return;
    }
    add_notice(relay);
    if (relay->dropped || !add_line(relay, text, len))
        relay->dropped += len;
}

static void push_partial(sgi_stderr_relay *relay)
{
    push_line(relay, relay->partial, relay->partial_len);
    relay->partial_len = 0;
}

void sgi_stderr_relay_add(sgi_stderr_relay *relay, const char *bytes, size_t len)
{
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t take = end ? (size_t)(end - bytes) : len;
        size_t room = MAX_LINE - relay->partial_len;
        bool cut = take > room;
        if (cut)
            take = room;
        memcpy(relay->partial + relay->partial_len, bytes, take);
        relay->partial_len += take;
        if (cut || end)
            push_partial(relay);
        if (end && !cut)
            take++;
        bytes += take;
        len -= take;
    }
}

void sgi_stderr_relay_end(sgi_stderr_relay *relay)
{
    if (relay->partial_len)
        push_partial(relay);
    add_notice(relay);
    relay->ended = true;
    sgi_ready_queue_add(relay->engine, &relay->ready);
}

/* ---- delivering lines ---- */

/* Returns the next line, NUL-terminated, or NULL when no line waits. */
static const char *next_line(sgi_stderr_relay *relay, size_t *len)
{
    if (relay->at == relay->current.len) {
        sgi_buf filled = relay->queue;
        sgi_buf_reset(&relay->current, MAX_LINE);
        relay->queue = relay->current;
        relay->current = filled;
        relay->at = 0;
    }
    if (relay->at == relay->current.len)
        return NULL;
    memcpy(len, relay->current.p + relay->at, sizeof *len);
    const char *text = relay->current.p + relay->at + sizeof *len;
    relay->at += sizeof *len + *len + 1;
    return text;
}

/* Frees the relay, and calls free_user as the last callback. */
static int32_t finish(sgi_stderr_relay *relay)
{
    sgi_engine *engine = relay->engine;
    segue_free_fn free_user = relay->free_user;
    void *user = relay->user;
    free_relay(relay);
    return sgi_user_data_free(engine, free_user, user);
}

static int32_t deliver(sgi_ready_object *ready, int32_t budget)
{
    sgi_stderr_relay *relay = SGI_OWNER(ready, sgi_stderr_relay, ready);
    int32_t ran = 0;
    const char *text;
    size_t len;
    while (ran < budget && (text = next_line(relay, &len))) {
        sgi_user_code_begin(relay->engine);
        relay->fn(relay->user, text, len);
        sgi_user_code_end(relay->engine);
        ran++;
    }
    if (ran < budget && relay->ended)
        return ran + finish(relay);
    if (ran == budget)
        sgi_ready_queue_add(relay->engine, &relay->ready);
    return ran;
}

sgi_stderr_relay *sgi_stderr_relay_new(sgi_engine *engine, segue_stderr_fn fn, void *user,
                                       segue_free_fn free_user)
{
    sgi_stderr_relay *relay = sgi_zalloc(sgi_engine_mem(engine), sizeof *relay);
    if (!relay)
        return NULL;
    relay->engine = engine;
    relay->ready.run = deliver;
    relay->fn = fn;
    relay->user = user;
    relay->free_user = free_user;
    sgi_buf_init(&relay->queue, sgi_engine_mem(engine));
    sgi_buf_init(&relay->current, sgi_engine_mem(engine));
    return relay;
}

void sgi_stderr_relay_free(sgi_stderr_relay *relay)
{
    if (relay)
        free_relay(relay);
}
