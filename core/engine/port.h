/* The functions of the engine that code outside the engine uses, mainly the transports.
 * The struct of the engine is private (engine.h). The functions are called under the
 * engine's lock, unless a comment says otherwise. */
#ifndef SGI_PORT_H
#define SGI_PORT_H

#include "base/buf.h"
#include "base/crypto.h"
#include "base/limit.h"
#include "base/timer.h"
#include "wire/json_read.h"

typedef struct sgi_engine sgi_engine;
typedef struct sgi_conn sgi_conn;

/* An object that has callbacks of the application to run. `run` runs at most `budget`
 * callbacks and returns the number of callbacks that it ran. If the object has more
 * callbacks to run, `run` queues the object again. */
typedef struct sgi_ready_object {
    TAILQ_ENTRY(sgi_ready_object) link;
    bool queued;
    int32_t (*run)(struct sgi_ready_object *ready, int32_t budget);
} sgi_ready_object;

void sgi_ready_queue_add(sgi_engine *engine, sgi_ready_object *ready);
void sgi_ready_queue_remove(sgi_engine *engine, sgi_ready_object *ready);

/* ---- what the host has given to the engine ---- */

/* Returns the clocks, random bytes and memory of the engine. Can be called with or
 * without the lock. */
static inline const sgi_env *sgi_engine_env(const sgi_engine *engine)
{
    return (const sgi_env *)(const void *)engine;
}

static inline const sgi_mem *sgi_engine_mem(const sgi_engine *engine)
{
    return sgi_engine_env(engine)->mem;
}

bool sgi_engine_digest(const sgi_engine *engine, uint8_t out[SGI_DIGEST_SIZE],
                       const sgi_str *parts, size_t count);
/* Returns the reader for JSON from a peer. The reader enforces the limits of a
 * message. */
sgi_json_reader *sgi_engine_json_reader(sgi_engine *engine);
/* Describes a limit that was reached (base/limit.h), with the option's name as the
 * application writes it, and counts it. advice can be NULL. */
sgi_limit_text sgi_engine_describe_limit(sgi_engine *engine, const char *what,
                                         sgi_limit limit, const char *reason,
                                         const char *advice);
/* Returns the maximum size of a received message, in bytes. */
size_t sgi_engine_max_message(const sgi_engine *engine);
/* Returns the maximum number of unsent bytes of a connection. */
size_t sgi_engine_max_queue(const sgi_engine *engine);

/* ---- calling user code ---- */

/* sgi_user_code_begin releases the lock, and sgi_user_code_end takes the lock again.
 * Between these two calls, the caller must not use memory that another thread can free or
 * move. */
void sgi_user_code_begin(sgi_engine *engine);
void sgi_user_code_end(sgi_engine *engine);
/* Calls free_user with the argument `user`, as the last callback of a table of callbacks.
 * Does nothing when free_user is NULL. Returns the number of calls (0 or 1). Afterwards
 * `user` must not be used. */
int32_t sgi_user_data_free(sgi_engine *engine, segue_free_fn free_user, void *user);
/* sgi_engine_ref notes that the application has got a public handle, so that the
 * runtime outlives the handle. sgi_engine_unref notes that the handle was freed. */
void sgi_engine_ref(sgi_engine *engine);
void sgi_engine_unref(sgi_engine *engine);

/* ---- time, logging, refusals ---- */

/* Sets a timer that fires after delay_ms. When out of memory, the failure is logged and
 * the timer never fires, so work that the timer should end does not end. */
void sgi_engine_set_timer(sgi_engine *engine, sgi_timer *timer, int64_t delay_ms,
                          sgi_timer_fn fn);
void sgi_engine_clear_timer(sgi_engine *engine, sgi_timer *timer);

void sgi_engine_log(sgi_engine *engine, int32_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Counts one received input that was dropped because it violates the protocol. */
void sgi_engine_count_violation(sgi_engine *engine);

/* Notes the reason why a call of the application is refused. The application can get the
 * reason as a segue_error (sgi_leave_with_error). Returns `status`. */
segue_status sgi_refuse(sgi_engine *engine, segue_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Clears the reason of an earlier refusal. Called at the beginning of each API call. */
void sgi_refuse_clear_reason(sgi_engine *engine);
/* Returns the reason of the refusal; "" = no reason was given. The text is valid until
 * the lock is released. */
const char *sgi_refusal_text(const sgi_engine *engine);

#endif
