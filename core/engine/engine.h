/* engine: the protocol, sans-IO. Bytes and time go in, bytes and events come out; it owns
 * operations, conversations and requests, and never touches a socket, clock, thread or
 * file.
 *
 * Everything here runs under one lock, which the host (runtime) holds around every call
 * into the engine and which the engine lets go only around user code (sgi_user_begin /
 * _end). What user code is due stands in the ready queue, one link per object, so
 * queueing an event cannot fail and the queue is as long as there are objects. */
#ifndef SGI_ENGINE_H
#define SGI_ENGINE_H

#include "base/buf.h"
#include "base/crypto.h"
#include "base/map.h"
#include "base/timer.h"
#include "engine/asking/places.h"
#include "wire/json_read.h"
#include "wire/json_write.h"

typedef struct sgi_conn sgi_conn;
typedef struct sgi_keeper sgi_keeper;

/* Digest as the engine sees it, and sgi_aead; base/crypto.c is linked by the runtime. */
typedef bool (*sgi_digest_fn)(const sgi_hasher *hasher, uint8_t out[SGI_DIGEST_SIZE],
                              const sgi_str *parts, size_t count);

/* What the engine asks of the one who runs it. All are called under the lock and return
 * at once; none may call back into the engine. */
typedef struct sgi_host {
    void *user;
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void (*log)(void *user, int32_t level, const char *text);
    void (*wake)(void *user); /* work appeared: ready queue, output, store or timer */
    void (*output)(void *user, sgi_conn *conn);    /* take bytes with sgi_conn_output */
    void (*input)(void *user, sgi_conn *conn);     /* may be read again */
    void (*close)(void *user, sgi_conn *conn);     /* close once the output is out */
    bool (*reopen)(void *user, sgi_conn *conn);    /* connect again now; false = cannot */
    void (*store)(void *user, sgi_keeper *keeper); /* the keeper has something to do */
    void (*retain)(void *user);  /* a public handle was handed out: outlive it */
    void (*release)(void *user); /* ... and was freed */
} sgi_host;

/* An object for which user code is due. run delivers at most budget callbacks and returns
 * how many it ran; it re-queues itself when more is left. */
typedef struct sgi_ready {
    TAILQ_ENTRY(sgi_ready) link;
    bool queued;
    int32_t (*run)(struct sgi_ready *ready, int32_t budget);
} sgi_ready;

TAILQ_HEAD(sgi_ready_list, sgi_ready);

TAILQ_HEAD(sgi_flow_list, sgi_flow);

/* Bytes of a reason that a function is refused for. */
#define SGI_REFUSAL 256

typedef struct sgi_engine {
    sgi_env env;
    sgi_host host;
    sgi_digest_fn digest;
    sgi_hasher *hasher; /* for it; the host's, may be NULL */
    const sgi_aead *aead;
    int32_t log_level;
    size_t max_message; /* bytes of one message in */
    size_t max_queue;   /* unsent bytes of a connection before producers wait */
    sgi_json_reader reader;
    sgi_buf scratch;   /* for one text, within one call */
    sgi_buf fold_room; /* for the result of one plain call */
    sgi_timers timers;
    sgi_places places; /* what is known of servers that were asked before */
    struct sgi_ready_list ready;
    struct sgi_flow_list flows; /* authorizations whose browser is out */
    uint64_t warnings;          /* protocol warnings: dropped and counted */
    char refusal
        [SGI_REFUSAL]; /* why the call of the application is refused; "" = not said */
} sgi_engine;

static inline const sgi_mem *sgi_engine_mem(const sgi_engine *engine)
{
    return engine->env.mem;
}

static inline bool sgi_engine_digest(const sgi_engine *engine,
                                     uint8_t out[SGI_DIGEST_SIZE], const sgi_str *parts,
                                     size_t count)
{
    return engine->digest(engine->hasher, out, parts, count);
}

void sgi_engine_init(sgi_engine *engine, const sgi_env *env, const sgi_host *host,
                     sgi_digest_fn digest, const sgi_aead *aead);
/* Once, before the first text is read. */
void sgi_engine_set_limits(sgi_engine *engine, size_t max_message, int32_t max_depth,
                           size_t max_queue);
void sgi_engine_free(sgi_engine *engine);

void sgi_ready_add(sgi_engine *engine, sgi_ready *ready);
void sgi_ready_remove(sgi_engine *engine, sgi_ready *ready);
/* Delivers up to budget callbacks; returns how many ran. */
int32_t sgi_engine_deliver(sgi_engine *engine, int32_t budget);

/* Around user code: nothing that another thread may free or grow is touched between. */
static inline void sgi_user_begin(sgi_engine *engine)
{
    engine->host.unlock(engine->host.user);
}

static inline void sgi_user_end(sgi_engine *engine)
{
    engine->host.lock(engine->host.user);
}

/* The last callback of a table; NULL = none. How many ran: what had `user` is free by
 * then. */
static inline int32_t sgi_user_free(sgi_engine *engine, segue_free_fn free_user,
                                    void *user)
{
    if (!free_user)
        return 0;
    sgi_user_begin(engine);
    free_user(user);
    sgi_user_end(engine);
    return 1;
}

/* Sets a timer relative to now; when there is no memory for it, it is not set and the
 * failure is logged: what it guards then lasts until something else ends it. */
void sgi_engine_timer(sgi_engine *engine, sgi_timer *timer, int64_t delay_ms,
                      sgi_timer_fn fn);
void sgi_engine_timer_clear(sgi_engine *engine, sgi_timer *timer);

void sgi_engine_log(sgi_engine *engine, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says why a call of the application is refused, for the segue_error that it may want
 * (sgi_leave_telling), and returns the status. */
segue_status sgi_refuse(sgi_engine *engine, segue_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Validates a JSON text of the application; a refusal says where it is wrong. error may
 * be NULL; *value receives the text, trimmed. */
segue_status sgi_engine_json(sgi_engine *engine, const char *text, size_t len,
                             sgi_json *value, sgi_json_error *error);

/* Random text of the alphabet A-Z a-z 0-9 - _ : 22 characters hold 132 bits. */
#define SGI_RANDOM_TEXT 22
bool sgi_engine_random_text(sgi_engine *engine, char out[SGI_RANDOM_TEXT + 1]);

/* RFC 3339 in UTC with milliseconds. */
#define SGI_STAMP_SIZE 64
void sgi_stamp(int64_t wall_ms, char out[SGI_STAMP_SIZE]);

#endif
