/* An engine without a runtime: a host whose lock only counts, a clock that moves when
 * told, seeded chance, and a store in memory that commits and answers when told, or
 * fails. For tests and fuzzers of the engine's own modules.
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

#include "engine/asking/request.h"
#include "engine/serving/server.h"

#define FAKE_EPOCH 1764000000000 /* 2025-11-24T16:00:00Z */

typedef struct fake_row fake_row;
typedef struct fake_record fake_record;

typedef struct fake_host {
    sgi_engine engine;
    segue_hooks hooks;
    int64_t clock_ms; /* monotonic; wall is FAKE_EPOCH + clock_ms */
    uint64_t chance;  /* state of the generator */
    int32_t locked;   /* 1 while the engine runs; user code sees 0 */
    bool no_reopen;   /* what reopen says */
    bool random_fails;
    int32_t wakes, outputs, inputs, closes, reopens, stores, handles, logs;
    sgi_conn *closing; /* the last one that was to be closed */
    segue_server *server;
    sgi_buf said;     /* of sessions; libc memory */
    sgi_commit batch; /* in flight, between take and done */
    bool landed;      /* ... and applied already */
    LIST_HEAD(, fake_record) records;
    TAILQ_HEAD(, fake_row) rows; /* all entries committed, in order */
    int32_t commits;
} fake_host;

/* Begins with the lock held, as a host is when it calls the engine. */
void fake_host_init(fake_host *h, const sgi_mem *mem, uint64_t seed);
void fake_host_free(fake_host *h);
/* Its process dies: what the engine held is not touched any more (the memory is dropped
 * by the caller, whole), what is stored stays, and another engine begins on the clock of
 * the first. */
void fake_host_crash(fake_host *h, const sgi_mem *mem, uint64_t seed);
/* The same for one that has ended as it should: its engine is freed first. */
void fake_host_reboot(fake_host *h, uint64_t seed);
/* Lets time pass, step by step; timers run when they are due. */
void fake_host_advance(fake_host *h, int64_t ms);
/* Delivers what is due to the application; how many callbacks ran. */
int32_t fake_host_deliver(fake_host *h);
/* A number below n. */
uint32_t fake_host_chance(fake_host *h, uint32_t n);

/* ---- operations ---- */

/* A server without limits worth mentioning, with a tool "tool"; tests change its
 * limits. */
segue_server *fake_server_new(fake_host *h);
/* Takes the server down as the end of a runtime does. */
void fake_server_end(segue_server *server);
/* A plain operation; the caller owns a reference. */
sgi_op *fake_op_new(segue_server *server);
/* The same made a task: logged, known to the server, dirty. */
sgi_op *fake_task_new(segue_server *server);

/* The operation as it comes back from what the store holds of it; the caller's. NULL when
 * memory runs out. */
sgi_op *fake_op_replay(fake_host *h, const sgi_op *op);
/* The first part of the state in which two operations differ, NULL when they are equal
 * (R-C-1). */
const char *fake_op_difference(const sgi_op *a, const sgi_op *b);

/* ---- sessions ---- */

/* A session with the usual limits whose connection can be reopened; not started. */
segue_session *fake_session_new(fake_host *h, const segue_session_events *events);
/* Starts it and answers its discovery as a server with tasks, streams and keys does. */
void fake_session_open(segue_session *session);
/* Closes it, takes its transport away and gives the handle up. */
void fake_session_end(segue_session *session);
/* One line from the server, without its newline. */
void fake_session_feed(segue_session *session, const char *line);
/* Takes what the session has to say: lines, NUL-terminated. Lives until the next call. */
const char *fake_session_said(segue_session *session);

/* ---- the store ---- */

/* Takes what is dirty; false when nothing is. Then fake_store_done. */
bool fake_store_take(fake_host *h);
/* What was taken is durable, and nobody has heard of it yet (not so where a creation
 * meets a key that is there: nothing of it is, and so it will end). */
void fake_store_land(fake_host *h);
/* Ends the commit: applied when status is SEGUE_OK, else as if it had never been. */
void fake_store_done(fake_host *h, segue_status status);
/* One commit; false when nothing was dirty. */
bool fake_store_commit(fake_host *h, segue_status status);
/* Answers the oldest job; false when there is none. */
bool fake_store_answer(fake_host *h, segue_status status);
/* Commits and answers until there is nothing left to do. */
void fake_store_settle(fake_host *h);

struct fake_row {
    TAILQ_ENTRY(fake_row) link;
    uint8_t id[SEGUE_STORE_ID_SIZE];
    segue_store_entry entry; /* its data stands behind */
    char data[];
};

struct fake_record {
    LIST_ENTRY(fake_record) link;
    segue_store_record record; /* its texts stand behind */
    uint64_t last_seq;
    int32_t releases;
    char text[];
};

/* The first entry of an operation behind `after`, NULL when there is none. */
const fake_row *fake_store_next(const fake_host *h, const uint8_t *id, uint64_t after);
const fake_record *fake_store_find(const fake_host *h, const uint8_t *id);

#endif
