/* An engine without a runtime. Its host has a lock that only counts, a clock that the
 * test moves, seeded randomness, and a store in memory that commits, answers or fails on
 * command. The fake host serves tests and fuzzers of the engine's own modules.
 *
 *     fake_host h;
 *     fake_host_init(&h, &tm.mem, 1);
 *     segue_server *server = fake_server_new(&h);
 *     sgi_op *op = fake_task_new(server);
 *     ... sgi_op_append ... fake_store_commit(&h, SEGUE_OK) ...
 *     fake_server_end(server);
 *     fake_host_free(&h);
 */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include "engine/client/request.h"
#include "engine/server/server.h"

#define FAKE_EPOCH 1764000000000 /* 2025-11-24T16:00:00Z */

typedef struct fake_row fake_row;
typedef struct fake_record fake_record;

typedef struct fake_host {
    sgi_engine engine;
    segue_hooks hooks;
    int64_t clock_ms; /* monotonic; the wall clock is FAKE_EPOCH + clock_ms */
    uint64_t chance;  /* state of the random generator */
    int32_t locked;   /* 1 while the engine runs; 0 in user code */
    bool no_reopen;   /* reopen fails */
    bool random_fails;
    int32_t wakes, outputs, inputs, closes, reopens, stores, handles, logs;
    sgi_conn *closing; /* the last connection that the engine closed */
    segue_server *server;
    sgi_buf said;     /* output of the sessions, in memory of libc */
    sgi_commit batch; /* the commit in flight, between take and done */
    bool landed;      /* the commit in flight was applied already */
    bool torn;        /* claims say that the end of the log may be lost */
    LIST_HEAD(, fake_record) records;
    TAILQ_HEAD(, fake_row) rows; /* all committed entries, in order */
    int32_t commits;
} fake_host;

/* Prepares the host with the lock held, because a host holds the lock when it calls the
 * engine. */
void fake_host_init(fake_host *h, const sgi_mem *mem, uint64_t seed);
void fake_host_free(fake_host *h);
/* Plays the death of the process. The memory of the engine is not touched any more (the
 * caller frees it as a whole), stored data stays, and a new engine starts on the clock of
 * the old engine. */
void fake_host_crash(fake_host *h, const sgi_mem *mem, uint64_t seed);
/* Starts a new engine after an engine that ended in order. The caller frees the old
 * engine first. */
void fake_host_reboot(fake_host *h, uint64_t seed);
/* Lets time pass step by step; timers run when they are due. */
void fake_host_advance(fake_host *h, int64_t ms);
/* Delivers due callbacks to the application; returns how many ran. */
int32_t fake_host_deliver(fake_host *h);
/* Returns a random number below n. */
uint32_t fake_host_chance(fake_host *h, uint32_t n);

/* ---- operations ---- */

/* Makes a server with very high limits and a tool "tool"; tests change its limits. */
segue_server *fake_server_new(fake_host *h);
/* Ends the server as the end of a runtime does, unless the test has done so. */
void fake_server_end(segue_server *server);
/* Makes a plain operation; the caller owns a reference. */
sgi_op *fake_op_new(segue_server *server);
/* Makes an operation that is a task: logged, known to the server, dirty. */
sgi_op *fake_task_new(segue_server *server);

/* Rebuilds the operation from what the store holds; the caller owns it. Returns NULL when
 * memory runs out. */
sgi_op *fake_op_replay(fake_host *h, const sgi_op *op);
/* Returns the first part of the state in which two operations differ; NULL when they are
 * equal (R-C-1). */
const char *fake_op_difference(const sgi_op *a, const sgi_op *b);

/* ---- sessions ---- */

/* Makes a session with the default limits and a connection that can be reopened. The
 * session is not started. */
segue_session *fake_session_new(fake_host *h, const segue_session_events *events);
/* Starts the session and answers its discovery as a server with tasks, streams and
 * keys. */
void fake_session_open(segue_session *session);
/* Closes the session, takes its transport away and frees the handle. */
void fake_session_end(segue_session *session);
/* Feeds one line from the server, given without its newline. */
void fake_session_feed(segue_session *session, const char *line);
/* Takes the output of the session: lines, NUL-terminated. The text lives until the next
 * call. */
const char *fake_session_said(segue_session *session);

/* ---- the store ---- */

/* Takes dirty writes for a commit, which fake_store_done ends; returns false when nothing
 * is dirty. */
bool fake_store_take(fake_host *h);
/* Makes the taken commit durable, but does not report it yet. A commit that creates an
 * operation with an existing key stays unapplied, and fake_store_done reports the
 * conflict. */
void fake_store_land(fake_host *h);
/* Ends the commit: with SEGUE_OK it is applied, otherwise it is dropped. */
void fake_store_done(fake_host *h, segue_status status);
/* Takes and ends one commit; returns false when nothing was dirty. */
bool fake_store_commit(fake_host *h, segue_status status);
/* Answers the oldest job of the store; returns false when there is no job. */
bool fake_store_answer(fake_host *h, segue_status status);
/* Commits writes and answers jobs until none are left. */
void fake_store_settle(fake_host *h);

struct fake_row {
    TAILQ_ENTRY(fake_row) link;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_store_entry entry; /* its data is stored in `data` */
    char data[];
};

struct fake_record {
    LIST_ENTRY(fake_record) link;
    segue_store_record record; /* its texts are stored in `text` */
    uint64_t last_seq;
    int32_t releases;
    char text[];
};

/* Returns the first entry of an operation behind `after`; NULL when there is none. */
const fake_row *fake_store_next(const fake_host *h, const uint8_t *id, uint64_t after);
const fake_record *fake_store_find(const fake_host *h, const uint8_t *id);

#endif
