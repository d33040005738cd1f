/* The stage for scenarios: a server with the fixtures, raw clients that speak JSON text,
 * and time that moves only when told. One scenario is written once and driven many ways:
 *
 *   place   PAIR: in this process, fake clock, seeded chance, an allocator that counts
 *           HTTP: the same behind a listener on a Unix socket; every line is a POST
 *           STDIO: a spawned fixture server, real pipes, real time
 *   store   memory, or a SQLite file
 *   drive   what a client writes arrives whole, byte by byte, or cut at random (HTTP:
 *           with bodies in chunks, by chance)
 *
 * Where it says HERE both PAIR and HTTP are meant. Nothing here sleeps: a wait ends with
 * the message that is waited for, or fails. */
#ifndef WORLD_H
#define WORLD_H

#include <segue/segue_ext.h>

#include "support/fixtures.h"
#include "support/item_fixtures.h"
#include "support/test_mem.h"
#include "wire/json_read.h"

typedef enum world_place { WORLD_PAIR, WORLD_STDIO, WORLD_HTTP } world_place;
typedef enum world_store { WORLD_MEMORY, WORLD_SQLITE } world_store;
typedef enum world_drive { WORLD_WHOLE, WORLD_BYTES, WORLD_RANDOM } world_drive;

typedef struct wire wire;

typedef struct world {
    world_place place;
    world_store store_kind;
    world_drive drive;
    uint64_t chance;  /* state of the generator */
    int64_t clock_ms; /* HERE: both clocks; wall is WORLD_EPOCH + clock_ms */
    test_mem mem;
    segue_runtime *runtime;
    segue_server *server;
    segue_store *store; /* NULL = the server's own, or given by `custom` */
    fixtures *fixtures;
    wire *wires;
    char path[128]; /* of the SQLite file; chosen by world_begin when empty */
    /* before the server is made; STDIO: what fixture_server.c can be told */
    void (*tune)(segue_server_options *options);
    segue_store *custom; /* used instead of store_kind; freed by the world */
    const char *fault;   /* STDIO: SEGUE_FAULT of the servers spawned from here on */
    int dead;            /* HERE: the process is gone, what it still says is not heard */
    void (*furnish)(struct world *w); /* HERE: adds what a server it starts has besides */
    void (*between)(
        struct world *w); /* HERE: in world_restart, when the old one is gone */
    uint64_t log_count;   /* lines of log at level error */
    uint64_t warn_count;  /* lines of log at level warning */
    uint64_t info_count;  /* ... and at level info, */
    char last_info[512];  /* of which this was the last */
    /* HERE: another server on the same store, that runs when this one does */
    struct world *beside;
    int slow;   /* `custom` works on a thread of its own */
    int shared; /* its store is, or was, another's too: its news come in real time */
} world;

#define WORLD_EPOCH 1764000000000 /* 2025-11-24T16:00:00Z */

/* ---- the stage ---- */

/* Starts it; fails the test when it cannot. Zero a world, set what differs, begin. */
void world_begin(world *w);
/* Ends it and checks that nothing leaked. */
void world_end(world *w);
/* HERE: ends the server and its runtime, keeps the store's file (or the memory store),
 * and starts them again. STDIO: kills the server with -9 and spawns another. Wires are
 * gone. */
void world_restart(world *w);
/* HERE: begins `other` as one more server on the store of w: the same handle of a store
 * in memory, a handle of its own of a file, or other->custom. */
void world_begin_beside(world *w, world *other);
/* HERE: its server ends, as by world_end, and the world lives on without one. */
void world_stop(world *w);
/* HERE: runs until nothing is due now. STDIO: nothing to do. */
void world_run(world *w);
/* HERE: lets time pass, step by step, everything due on the way runs. */
void world_advance(world *w, int64_t ms);
/* HERE: lets time pass at once. */
void world_jump(world *w, int64_t ms);
/* Does its server know idempotency keys? Not over STDIO with a store in memory: nobody
 * could come back to that process with one. */
int world_takes_keys(const world *w);
/* A number below n, from the seeded generator. */
uint32_t world_chance(world *w, uint32_t n);
/* How often a tool ran (HERE). */
int world_runs(const world *w, const char *tool);

/* ---- raw clients ---- */

/* Connects a raw client. principal: NULL = nobody in particular (STDIO: always). */
wire *world_connect(world *w, const char *principal);
/* The connection breaks (HTTP: all of them), without a goodbye. STDIO: the server behind
 * it dies with it. */
void wire_cut(wire *c);
/* The same, and its texts and itself are gone: for scenarios that connect thousands of
 * times, as each wire that is left is looked at in each turn. */
void wire_drop(wire *c);
/* HERE: the client stops reading (1), or goes on (0). */
void wire_stall(wire *c, int stalled);
int wire_is_closed(wire *c); /* by the server */

/* HERE: hands bytes to the server and lets nothing run yet. HTTP: once the line has its
 * end. */
void wire_feed(wire *c, const char *bytes, size_t len);
/* Sends one line as the drive says. */
void wire_send(wire *c, const char *line);
/* Sends a request of the modern era: params are members ("\"name\":\"x\"") or NULL; caps
 * is the client capabilities object, NULL = {}; CAPS_TASKS and so on below. */
void wire_ask(wire *c, const char *id, const char *method, const char *params,
              const char *caps);
/* The text of that request, without its newline; freed by the caller. */
char *wire_line(const char *id, const char *method, const char *params, const char *caps);
void wire_notify(wire *c, const char *method, const char *params);
/* The same without _meta: a request of the handshake eras. */
void wire_ask_plain(wire *c, const char *id, const char *method, const char *params);

#define CAPS_TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"
#define CAPS_ALL                                                                         \
    "{\"elicitation\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

/* "ms" as an argument, of a job that something has to come before the end of: STDIO,
 * where time passes by itself, three seconds. Good until the next call. */
const char *world_lasting(const world *w, int ms);

/* The next message, in order; NULL when the server has nothing to say (HERE) or for one
 * second (STDIO). Lives until the wire ends. */
const char *wire_next(wire *c);
/* The next message, which is due: waited for as any that must come. NULL when there is
 * none, or the connection has ended. */
const char *wire_due(wire *c);
/* The response with this id (JSON text); what comes before it is kept for wire_next and
 * the others. Fails the test when it does not come. */
const char *wire_response(wire *c, const char *id);
/* The next notification of this method; fails the test when none comes. */
const char *wire_notification(wire *c, const char *method);
/* The same for a request of the server. Its id has room in WIRE_ID bytes. */
#define WIRE_ID 128
const char *wire_request(wire *c, const char *method);
/* Asks and returns the response. */
const char *wire_do(wire *c, const char *id, const char *method, const char *params,
                    const char *caps);
const char *wire_do_plain(wire *c, const char *id, const char *method,
                          const char *params);
/* Waits until the server has ended the conversation. */
void wire_until_closed(wire *c);
/* Nothing more comes (HERE; STDIO cannot know and says so by not checking). */
void wire_quiet(wire *c);
/* HTTP: fails the test unless the last whole answer had this status. */
void wire_expect_status(const wire *c, int status);
/* HTTP: the id of the last event that was heard (valid as long as the wire); what is
 * posted from now on names this one. */
const char *wire_last_event(const wire *c);
void wire_after(wire *c, const char *event);
/* Everything the server ever wrote on this wire, for grep. */
const char *wire_history(const wire *c);

/* Calls a tool as a task and returns its id (lives as long as the wire). */
const char *wire_make_task(wire *c, const char *id, const char *tool,
                           const char *arguments, const char *caps);
/* Asks something about a task and returns the response; more: members beside taskId. */
const char *wire_task(wire *c, const char *id, const char *method, const char *task_id,
                      const char *more);
/* tasks/get until the status is as wanted ("a" or "a|b"); time passes in steps of 50 ms
 * (HERE). */
const char *wire_get_until(wire *c, const char *task_id, const char *status,
                           const char *caps);
/* The same for its message, with what every extension client says of itself. */
const char *wire_get_until_says(wire *c, const char *task_id, const char *message);

/* ---- JSON of messages ---- */

/* The value at a path such as "result.content.0.text" as JSON text, or "" when absent.
 * Names with dots in them cannot be reached: search the text around them. */
const char *json_at(const char *message, const char *path);
/* Fails the test unless the value at path is this JSON text. */
#define assert_at(message, path, expected)                                               \
    assert_at_(message, path, expected, __FILE__, __LINE__)
void assert_at_(const char *message, const char *path, const char *expected,
                const char *file, int line);
/* Fails the test unless the error has this code. */
#define assert_code(message, code) assert_at(message, "error.code", #code)
/* Is there a member of this name anywhere in the message? */
int json_mentions(const char *message, const char *name);

/* Compares a message with tests/golden/<name>.json after replacing ids, stamps and tokens
 * by placeholders; writes the file when the environment has SEGUE_GOLDEN=write. */
void assert_golden(const char *message, const char *name);

/* ---- the matrix ---- */

enum {
    ONLY_HERE = 1,   /* needs the fake clock, several wires or a look inside */
    ONE_DRIVE = 2,   /* the way bytes are cut does not matter */
    ONLY_SQLITE = 4, /* speaks of what survives */
    ONLY_STDIO = 8,  /* needs processes */
    NOT_HTTP = 16,   /* speaks of what HTTP has not; a comment says of what */
    ONLY_HTTP = 32,  /* speaks of what only HTTP has */
    ONLY_KEYED = 64  /* speaks of idempotency keys: world_takes_keys */
};

typedef struct scenario {
    const char *name; /* "AS-33 creates a task" */
    void (*run)(world *w);
    int flags;
    void (*tune)(segue_server_options *options);
} scenario;

/* Runs every scenario over the places, stores and drives its flags allow, as cmocka
 * tests named "<name> [place store drive]"; the result for main. SEGUE_SCENARIO in the
 * environment: only those whose name, with its brackets, contains it. */
int scenarios_run(const scenario *scenarios, size_t count);
/* The same; prepare is called with each world before it begins. */
int scenarios_run_prepared(const scenario *scenarios, size_t count,
                           void (*prepare)(world *w));

#endif
