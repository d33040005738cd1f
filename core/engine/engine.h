/* The engine is the protocol without input and output (sans-IO). Bytes and the time go
 * in; bytes and events come out. The engine owns operations, conversations and requests,
 * and never uses a socket, clock, thread or file.
 *
 * All code of the engine runs under one lock. The host (runtime) holds the lock around
 * every call into the engine, and the engine releases the lock only around user code
 * (sgi_user_code_begin / _end). An object that has user code to run joins the ready queue
 * by a link in the object itself. So queueing cannot fail, and the queue never has more
 * entries than objects exist. */
#ifndef SGI_ENGINE_H
#define SGI_ENGINE_H

#include "base/map.h"
#include "engine/era_memory.h"
#include "engine/port.h"
#include "wire/json_shape.h"
#include "wire/json_write.h"

typedef struct sgi_committer sgi_committer;

/* Hashes parts of a text to a digest. The runtime gives the engine this function, which
 * is that of base/crypto.c. */
typedef bool (*sgi_digest_fn)(sgi_hasher *hasher, uint8_t out[SGI_DIGEST_SIZE],
                              const sgi_str *parts, size_t count);

/* Functions of the host (the runtime) that the engine calls. The engine calls them under
 * the lock. They return at once and must not call the engine. */
typedef struct sgi_host_functions {
    void *user;
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void (*log)(void *user, int32_t level, const char *text);
    /* called when there is work: a callback in the ready queue, output, work for a store,
     * or a timer */
    void (*wake)(void *user);
    /* called when sgi_conn_take_output has bytes for the transport */
    void (*output)(void *user, sgi_conn *conn);
    /* called when the transport may read input of this conversation again */
    void (*input)(void *user, sgi_conn *conn);
    /* must close the connection when the output was sent */
    void (*close)(void *user, sgi_conn *conn);
    /* connects the transport again now; returns false when this is impossible */
    bool (*reopen)(void *user, sgi_conn *conn);
    /* called when the committer has a commit or a job for the store */
    void (*store)(void *user, sgi_committer *committer);
    /* called when the application has got a public handle; the host (the runtime) must
     * then outlive the handle */
    void (*retain)(void *user);
    /* called when the application has freed a public handle */
    void (*release)(void *user);
    /* returns the newest format of records and entries that the committer's store takes
     * (base/records.h); NULL = the store takes every format of this library */
    int32_t (*records)(void *user, const sgi_committer *committer);
} sgi_host_functions;

TAILQ_HEAD(sgi_ready_object_list, sgi_ready_object);

TAILQ_HEAD(sgi_flow_list, sgi_flow);

/* Size of the text with the reason why a call of the application was refused. */
#define SGI_REFUSAL 256
/* number of memories for the shapes of earlier messages (wire/json_shape.h); a power of
 * two */
#define SGI_SHAPE_MEMORIES 4

struct sgi_engine {
    sgi_env env; /* must be the first member, because of sgi_engine_env */
    /* Functions of engine/reverse (reverse/reverse.h) that the rooms client and server
     * call. */
    const struct sgi_question_host_ops *hosting;
    const struct sgi_question_task_ops *question_tasks;
    sgi_host_functions host;
    sgi_digest_fn digest;
    sgi_hasher *hasher; /* first argument of `digest`; the runtime owns it; can be NULL */
    const sgi_aead *aead;
    int32_t log_level;
    segue_observer_options observer; /* event.h; on_event is NULL while nobody observes */
    size_t max_message;              /* maximum size of a received message, in bytes */
    /* maximum number of unsent bytes of a connection; at this number no more messages are
     * produced */
    size_t max_queue;
    /* blocks of memory can be freed after the runtime, on any thread, because the memory
     * is the runtime's own pool (runtime/pool.h) */
    bool memory_outlives;
    bool is_camel; /* true = texts name options in camelCase (maxTasks) */
    sgi_json_reader reader;
    /* the shapes of earlier messages; a memory serves several conversations */
    sgi_json_shapes shapes[SGI_SHAPE_MEMORIES];
    /* buffer for one text; the content is valid only during one call of an engine
     * function */
    sgi_buf scratch;
    sgi_buf fold_room; /* buffer in which the result of a plain call is merged */
    sgi_timers timers;
    /* the endpoints whose servers last needed `initialize` */
    sgi_era_memory eras;
    struct sgi_ready_object_list ready;
    /* the OAuth flows that wait for the browser's redirect */
    struct sgi_flow_list flows;
    /* how often each limit was reached */
    uint64_t limit_hits[SGI_LIMIT_COUNT];
    /* number of received messages that were dropped because they violate the protocol */
    uint64_t warnings;
    /* The reason why the current call of the application is refused; "" = no reason was
     * given. */
    char refusal[SGI_REFUSAL];
};

void sgi_engine_init(sgi_engine *engine, const sgi_env *env,
                     const sgi_host_functions *host, sgi_digest_fn digest,
                     const sgi_aead *aead);
/* Sets the limits. Called once, before the first input is read. */
void sgi_engine_set_limits(sgi_engine *engine, size_t max_message, int32_t max_depth,
                           size_t max_queue);
void sgi_engine_free(sgi_engine *engine);

/* Returns the memory for the shapes of a peer's messages, which other peers may share.
 * whose: any address that stands for the peer; it is not read. NULL = no memory. */
sgi_json_shapes *sgi_engine_shapes_of(sgi_engine *engine, const void *whose);

/* Runs callbacks of the application, at most `budget`. Returns the number of callbacks
 * that ran. */
int32_t sgi_engine_run_callbacks(sgi_engine *engine, int32_t budget);

/* Validates a JSON text of the application. If the text is invalid, the refusal says
 * where the fault is. On SEGUE_OK, *value is the text without the white space around it.
 * error can be NULL. */
segue_status sgi_engine_check_json(sgi_engine *engine, const char *text, size_t len,
                                   sgi_json *value, sgi_json_error *error);

/* Writes a random text of 22 characters from A-Z a-z 0-9 - _, with 132 random bits.
 * Returns false when the system gives no random bytes. */
#define SGI_RANDOM_TEXT 22
bool sgi_engine_random_text(sgi_engine *engine, char out[SGI_RANDOM_TEXT + 1]);

/* Writes the id of an operation as text: the time in 7 characters (42 bits of ms, until
 * the year 2109), and a random text. Until then the text begins with a letter or "_", so
 * no command line takes it for an option.
 * sgi_operation_id makes an id of bytes: 6 bytes of time and 10 random ones. Ids
 * that are made one after the other are neighbours in the indexes of a store, which then
 * writes fewer pages. Both return false when the system gives no random bytes. */
#define SGI_OPERATION_TEXT (7 + SGI_RANDOM_TEXT)
bool sgi_operation_text(const sgi_env *env, char out[SGI_OPERATION_TEXT + 1]);
bool sgi_operation_id(const sgi_env *env, uint8_t id[SEGUE_STORE_ID_SIZE]);

/* Writes a wall clock time in RFC 3339, in UTC with milliseconds. */
#define SGI_STAMP_SIZE 64
void sgi_timestamp_write(int64_t wall_ms, char out[SGI_STAMP_SIZE]);

#endif
