/* The stage for scenarios: a server with the fixtures, raw clients that send JSON text,
 * and a clock that only the test moves. A scenario is written once and runs in many ways:
 *
 *   place   PAIR: in this process, fake clock, seeded randomness, a counting allocator
 *           HTTP: the same behind a listener on a Unix socket; every line is a POST
 *           STDIO: a spawned fixture server, real pipes, real time
 *   store   memory, or a SQLite file
 *   drive the bytes that a client writes arrive whole, byte by byte, or cut at random
 *           (HTTP: with some bodies in chunks)
 *
 * HERE means PAIR and HTTP. Nothing here sleeps: a wait ends with the expected message,
 * or fails. */
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
    uint64_t chance;  /* state of the random generator */
    int64_t clock_ms; /* HERE: both clocks; the wall clock is WORLD_EPOCH + clock_ms */
    int64_t wrong_ms; /* HERE: the wall clock shows this much more than the right time */
    test_mem mem;
    segue_runtime *runtime;
    segue_server *server;
    segue_store *store; /* NULL = the server's own, or given by `custom` */
    fixtures *fixtures;
    wire *wires;
    char path[128]; /* path of the SQLite file; chosen by world_begin when empty */
    /* called before the server is made; STDIO: what fixture_server.c accepts */
    void (*tune)(segue_server_options *options);
    segue_store *custom; /* used instead of store_kind; freed by the world */
    const char *fault;   /* STDIO: SEGUE_FAULT of the servers spawned from here on */
    int dead;            /* HERE: the process is dead, its further output is dropped */
    void (*furnish)(struct world *w); /* HERE: adds more items to each server that it
                                       * starts */
    void (*between)(
        struct world *w); /* HERE: called in world_restart when the old server is gone */
    uint64_t log_count;   /* number of log lines at level error */
    uint64_t warn_count;  /* number of log lines at level warning */
    uint64_t info_count;  /* number of log lines at level info */
    char last_info[512];  /* the last log line at level info */
    /* HERE: another server on the same store, which runs when this one does. */
    struct world *beside;
    int slow;   /* `custom` works on a thread of its own */
    int shared; /* the store is or was shared with another server, so its change feed
                 * works in real time */
} world;

#define WORLD_EPOCH 1764000000000 /* 2025-11-24T16:00:00Z */

/* ---- the stage ---- */

/* Starts the stage; fails the test when this is not possible. Before this call, the test
 * zeroes the world and sets the members that differ from the defaults. */
void world_begin(world *w);
/* Opens a SQLite file that several processes share. The store waits for the others for
 * as long as a test waits for a message: a process may stand still on a busy machine. */
segue_status world_open_sqlite(const char *path, segue_store **out, segue_error **error);
/* Ends the stage and checks that nothing leaked. */
void world_end(world *w);
/* HERE: ends the server and its runtime, keeps the store's file (or the memory store),
 * and starts both again. STDIO: kills the server with -9 and spawns another. Wires are
 * gone. */
void world_restart(world *w);
/* HERE: starts `other` as one more server on the store of w. A store in memory is used
 * through the same handle, a file through a new one, or other->custom is used. */
void world_begin_beside(world *w, world *other);
/* HERE: ends the server as world_end does. The world continues without a server. */
void world_stop(world *w);
/* HERE: does all work that is due now. STDIO: does nothing. */
void world_run(world *w);
/* HERE: lets time pass step by step; everything due on the way runs. */
void world_advance(world *w, int64_t ms);
/* HERE: lets time pass in one step. */
void world_jump(world *w, int64_t ms);
/* Returns whether the server knows idempotency keys. A STDIO server with a store in
 * memory does not: no client could come back to that process with a key. */
int world_takes_keys(const world *w);
/* Returns a number below n, from the seeded generator. */
uint32_t world_chance(world *w, uint32_t n);
/* Returns how often a tool ran (HERE). */
int world_runs(const world *w, const char *tool);

/* ---- raw clients ---- */

/* Connects a raw client. principal: NULL = the default one (STDIO: always). */
wire *world_connect(world *w, const char *principal);
/* Breaks the connection (HTTP: all of them) without a goodbye. STDIO: its server dies
 * with it. */
void wire_cut(wire *c);
/* Breaks the connection as wire_cut does, and frees the wire with its texts. Scenarios
 * that connect thousands of times use this function, because each remaining wire costs
 * time in each turn. */
void wire_drop(wire *c);
/* HERE: makes the client stop reading (1) or continue to read (0). */
void wire_stall(wire *c, int stalled);
int wire_is_closed(wire *c); /* 1 = the server has closed it */

/* HERE: gives bytes to the server and lets nothing run yet. HTTP: they are sent once the
 * line is complete. */
void wire_feed(wire *c, const char *bytes, size_t len);
/* Sends one line as the drive says. */
void wire_send(wire *c, const char *line);
/* Sends a request of the modern era. params are members ("\"name\":\"x\"") or NULL.
 * caps is the object of the client's capabilities, NULL = {}; see CAPS_TASKS and
 * others below. */
void wire_ask(wire *c, const char *id, const char *method, const char *params,
              const char *caps);
/* Returns the text of the request that wire_ask sends, without its newline. The caller
 * frees the text. */
char *wire_line(const char *id, const char *method, const char *params, const char *caps);
void wire_notify(wire *c, const char *method, const char *params);
/* Sends a request without _meta, which is a request of the handshake eras. */
void wire_ask_plain(wire *c, const char *id, const char *method, const char *params);

#define CAPS_TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"
#define CAPS_ALL                                                                         \
    "{\"elicitation\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

/* Returns "ms" as an argument for a job that something else must precede. Over STDIO,
 * where real time passes, it is three seconds. The text lives until the next call. */
const char *world_lasting(const world *w, int ms);

/* Returns the next message, in order. Returns NULL when the server sends nothing (HERE),
 * or nothing for one second (STDIO). The text lives until the wire ends. */
const char *wire_next(wire *c);
/* Waits for the next message, which must come. Returns NULL when none came or the
 * connection has ended. */
const char *wire_due(wire *c);
/* Waits for the response with this id (JSON text). Messages before it are kept for
 * wire_next and the others. Fails the test when the response does not come. */
const char *wire_response(wire *c, const char *id);
/* Waits for the next notification of this method; fails the test when none comes. */
const char *wire_notification(wire *c, const char *method);
/* Waits for the next request of this method from the server. Its id fits in WIRE_ID
 * bytes. */
#define WIRE_ID 128
const char *wire_request(wire *c, const char *method);
/* Sends a request and returns the response. */
const char *wire_do(wire *c, const char *id, const char *method, const char *params,
                    const char *caps);
const char *wire_do_plain(wire *c, const char *id, const char *method,
                          const char *params);
/* Waits until the server has ended the conversation. */
void wire_until_closed(wire *c);
/* Checks that the server sends nothing more. Over STDIO the function cannot know this,
 * and checks nothing. */
void wire_quiet(wire *c);
/* HTTP: fails the test unless the last whole answer had this status. */
void wire_expect_status(const wire *c, int status);
/* HTTP: returns the id of the last event that arrived (lives as long as the wire).
 * wire_after sets the event that later POSTs name. */
const char *wire_last_event(const wire *c);
void wire_after(wire *c, const char *event);
/* Returns everything the server ever wrote on this wire. */
const char *wire_history(const wire *c);

/* Calls a tool as a task and returns the task id (lives as long as the wire). */
const char *wire_make_task(wire *c, const char *id, const char *tool,
                           const char *arguments, const char *caps);
/* Sends a request about a task and returns the response; more: members beside taskId. */
const char *wire_task(wire *c, const char *id, const char *method, const char *task_id,
                      const char *more);
/* Repeats tasks/get until the task has this status ("a" or "a|b"). Time passes in steps
 * of 50 ms (HERE). */
const char *wire_get_until(wire *c, const char *task_id, const char *status,
                           const char *caps);
/* Repeats tasks/get until the question with the key is listed. Questions that a handler
 * asks together are listed one after the other. */
const char *wire_get_until_asked(wire *c, const char *task_id, const char *key);
/* Repeats tasks/get until the task has this status message, with the capabilities of the
 * tasks extension. */
const char *wire_get_until_says(wire *c, const char *task_id, const char *message);

/* ---- JSON of messages ---- */

/* Returns the value at a path such as "result.content.0.text" as JSON text, or "" when
 * absent. Names with dots in them cannot be reached: search the text around them. */
const char *json_at(const char *message, const char *path);
/* Fails the test unless the value at path is this JSON text. */
#define assert_at(message, path, expected)                                               \
    assert_at_(message, path, expected, __FILE__, __LINE__)
void assert_at_(const char *message, const char *path, const char *expected,
                const char *file, int line);
/* Fails the test unless the error has this code. */
#define assert_code(message, code) assert_at(message, "error.code", #code)
/* Returns whether any object in the message has a member of this name. */
int json_mentions(const char *message, const char *name);

/* Compares a message with tests/golden/<name>.json after ids, time stamps and tokens
 * became placeholders. Writes the file when the environment has SEGUE_GOLDEN=write. */
void assert_golden(const char *message, const char *name);

/* Returns the number at a path of the server's statistics. */
long world_stat(const world *w, const char *path);

/* ---- the matrix ---- */

enum {
    ONLY_HERE = 1,   /* the scenario needs the fake clock, several wires or access to the
                      * server's inside */
    ONE_DRIVE = 2,   /* the scenario runs with one drive, because the way in which bytes
                      * are cut does not matter */
    ONLY_SQLITE = 4, /* the scenario tests data that survives a restart */
    ONLY_STDIO = 8,  /* the scenario needs processes */
    NOT_HTTP = 16,   /* the scenario tests something that HTTP does not have, and a
                      * comment names it */
    ONLY_HTTP = 32,  /* the scenario tests something that only HTTP has */
    ONLY_KEYED = 64  /* the scenario tests idempotency keys (world_takes_keys) */
};

typedef struct scenario {
    const char *name; /* "AS-33 creates a task" */
    void (*run)(world *w);
    int flags;
    void (*tune)(segue_server_options *options);
} scenario;

/* Runs every scenario over the places, stores and drives that its flags allow, as cmocka
 * tests named "<name> [place store drive]"; returns the exit code for main. With
 * SEGUE_SCENARIO in the environment only scenarios run whose name, with its brackets,
 * contains it. */
int scenarios_run(const scenario *scenarios, size_t count);
/* Does what scenarios_run does, and calls `prepare` with each world before the world
 * begins. */
int scenarios_run_prepared(const scenario *scenarios, size_t count,
                           void (*prepare)(world *w));

#endif
