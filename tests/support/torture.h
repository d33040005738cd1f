/* Torture: a scenario is run once to count its allocations, then again and again with
 * each of them refused, alone, and with all from it on. Whatever happens: nothing crashes
 * or leaks, every request that was accepted ends exactly once and within bounded time, a
 * call that failed has taken nothing, and when memory is back the library works.
 *
 * SEGUE_TORTURE=full tries every allocation; otherwise some TRIES are spread over them.
 * SEGUE_TORTURE=<n> tries only allocation n (both ways), to look at one failure. */
#ifndef TORTURE_H
#define TORTURE_H

#include <segue/segue_ext.h>

#include "support/fixtures.h"
#include "support/item_fixtures.h"
#include "support/test_mem.h"

typedef struct torture torture;

/* One request and what became of it. */
typedef struct asked {
    torture *t;
    segue_request *request;
    int accepted; /* start or resume said SEGUE_OK */
    int completed, freed;
    segue_status refusal; /* what start said when it did not accept */
    segue_status status;
    char result[512];
    int segments;
    uint64_t first, last;
    char question[64]; /* that is to be answered */
    char token[4096];
    int token_after; /* take a token at this segment; 0 = never */
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
    int no_tasks;  /* the clients want none; set before they are opened */
    int resumable; /* the clients declare resumableRequests; likewise */
    int draft;     /* both sides speak DRAFT-2026-v1; set before the server is made */
    int setup;     /* the making of the server fails as well */
    int served;
    size_t fail_at, fail_from;
    char path[64];
    segue_validate_fn validate; /* of the server and its clients; set before it is made */
    int64_t question_ttl_ms;    /* set before the server is made */
    segue_server *host;         /* of the sessions that are opened; NULL = none */
    void (*play)(torture *t); /* run at each turn: another end that the scenario plays */
    void *far;
};

typedef struct torture_scenario {
    const char *name;
    /* Plays it as far as failures let it; true when all went as it should. */
    int (*run)(torture *t);
    int sqlite;
    int32_t era;
    int setup;
} torture_scenario;

/* Runs them as cmocka tests; the result for main. */
int torture_run(const char *group, const torture_scenario *scenarios, size_t count);

/* ---- for scenarios: each returns whether it worked ---- */

/* Runtime, store, server with the fixtures. */
int torture_serve(torture *t);
/* One more client over a pair; NULL when it could not be had. */
segue_session *torture_open(torture *t);
/* The same over a transport of the scenario's own, which is consumed. */
segue_session *torture_open_over(torture *t, segue_transport *transport);
/* Starts tools/call; arguments is JSON. NULL when it was refused. */
asked *torture_call(torture *t, segue_session *session, const char *tool,
                    const char *arguments);
/* Starts a request of any method. */
asked *torture_ask(torture *t, segue_session *session, const char *method,
                   const char *params);
asked *torture_resume(torture *t, segue_session *session, const char *token);
/* By a handle made from the token: how it is, or (watch) what becomes of it. */
asked *torture_look(torture *t, segue_session *session, const char *token, int watch);
/* Lets time pass until it has ended; fails the test when it never does. */
void torture_settle(torture *t, asked *a);
/* Runs until a token was taken or the request has ended. */
void torture_until_token(torture *t, asked *a);
/* Runs what is due. */
void torture_pump(torture *t);

#endif
