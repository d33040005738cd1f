/* Torture: a scenario runs once to count its allocations. Then the scenario runs again
 * for each allocation n: once with only allocation n refused, and once with n and all
 * later allocations refused. Nothing may crash or leak. Every accepted request ends
 * exactly once and within bounded time. A failed call takes over no argument. When memory
 * is available again, the library works.
 *
 * SEGUE_TORTURE=full tries every allocation; otherwise TRIES of them are spread evenly.
 * SEGUE_TORTURE=<n> tries only allocation n (both ways), to look at one failure. */
#ifndef TORTURE_H
#define TORTURE_H

#include <segue/segue_ext.h>

#include "support/fixtures.h"
#include "support/item_fixtures.h"
#include "support/test_mem.h"

typedef struct torture torture;

/* One request and its outcome. */
typedef struct asked {
    torture *t;
    segue_request *request;
    int accepted; /* 1 = start or resume returned SEGUE_OK */
    int completed, freed;
    segue_status refusal; /* the status of start when it did not accept */
    segue_status status;
    char result[512];
    int segments;
    uint64_t first, last;
    char question[64]; /* key of the question still to be answered */
    char token[4096];
    int token_after; /* the number of the segment at which a token is taken; 0 = never */
} asked;

#define MAX_ASKED 8
#define MAX_SESSIONS 4

struct torture {
    int64_t clock_ms;
    uint64_t chance;
    test_mem mem;
    segue_runtime *runtime;
    segue_store *store;
    segue_server *server;
    fixtures *fixtures;
    segue_session *sessions[MAX_SESSIONS];
    int session_count;
    int sessions_closed, sessions_freed;
    asked asked[MAX_ASKED];
    int asked_count;
    int sqlite; /* the store is a file, with a thread of its own */
    int32_t era;
    int no_tasks;  /* the clients want no tasks; set before they are opened */
    int resumable; /* the clients declare resumableRequests; set before they are opened */
    int draft;     /* both sides use DRAFT-2026-v1; set before the server is made */
    int setup;     /* allocations of making the server fail as well */
    int served;
    size_t fail_at, fail_from;
    char path[64];
    segue_validate_fn validate; /* validator of the server and its clients; set before the
                                 * server is made */
    int64_t question_ttl_ms;    /* set before the server is made */
    segue_server *host;         /* host of the sessions that are opened; NULL = none */
    void (*play)(torture *t);   /* called at each turn, for another end that the scenario
                               * plays */
    void *far;
};

typedef struct torture_scenario {
    const char *name;
    /* Plays the scenario as far as failures allow; returns true when all succeeded. */
    int (*run)(torture *t);
    int sqlite;
    int32_t era;
    int setup;
} torture_scenario;

/* Runs the scenarios as cmocka tests; returns the exit code for main. */
int torture_run(const char *group, const torture_scenario *scenarios, size_t count);

/* ---- for scenarios: each returns whether it worked ---- */

/* Makes runtime, store, and server with the fixtures. */
int torture_serve(torture *t);
/* Opens one more client over a pair; NULL when that failed. */
segue_session *torture_open(torture *t);
/* Opens one more client over a transport of the scenario, which is consumed. */
segue_session *torture_open_over(torture *t, segue_transport *transport);
/* Starts tools/call; arguments is JSON. Returns NULL when it was refused. */
asked *torture_call(torture *t, segue_session *session, const char *tool,
                    const char *arguments);
/* Starts a request of any method. */
asked *torture_ask(torture *t, segue_session *session, const char *method,
                   const char *params);
asked *torture_resume(torture *t, segue_session *session, const char *token);
/* Makes a handle from the token and reads the status of its request, or with `watch`
 * follows it to the end. */
asked *torture_look(torture *t, segue_session *session, const char *token, int watch);
/* Lets time pass until the request has ended; fails the test when it never does. */
void torture_settle(torture *t, asked *a);
/* Runs until a token was taken or the request has ended. */
void torture_until_token(torture *t, asked *a);
/* Does the work that is due. */
void torture_pump(torture *t);

#endif
