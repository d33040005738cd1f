/* A call by chance, composed of everything at once: handlers that are random programs, a
 * real server, a real client, and between them a line that cuts, repeats, reorders and
 * dawdles, a server that is killed and a client that begins again. Both ends have a
 * runtime of their own, in this process, on one fake clock. What a seed decides is all
 * decided from the seed, so that a run can be had again.
 *
 *     composition_run(seed);      fails the test, after a line with SEGUE_SEED=<seed>
 *
 * composition_program.c   what handlers do, and what must come of it: the judge
 * composition_plan.c      which row, and what goes wrong when
 * composition_dialects.c  the rows: one for each way of showing a result
 * composition_server.c    the server and its handlers
 * composition_client.c    the application: what it is shown, keeps and checks
 * composition_line.c      bytes between the two, as over a pipe
 * composition_web.c       the same over HTTP
 * composition.c           one run, turn by turn */
#ifndef COMPOSITION_H
#define COMPOSITION_H

#include <stdbool.h>

#include <segue/segue_ext.h>

#include "support/fault_store.h"
#include "support/test_mem.h"

#define COMPOSITION_CALLS 3
#define COMPOSITION_PEOPLE 2
#define COMPOSITION_STEPS 40
#define COMPOSITION_BLOCKS 96
#define COMPOSITION_FIELDS 4

typedef struct composition composition;

/* ---- chance ---- */

typedef struct dice {
    uint64_t state;
} dice;

dice dice_of(uint64_t seed, uint64_t purpose);
/* A number below n; 0 when n is 0. */
uint32_t dice_roll(dice *d, uint32_t n);
/* Once in n. */
bool dice_once_in(dice *d, uint32_t n);

/* ---- rows ---- */

enum {
    ROW_TASK = 1,        /* calls become tasks: nothing may be lost */
    ROW_NUMBERED = 2,    /* the numbers that the client sees are those of the handler */
    ROW_ASKS = 4,        /* the client can be asked */
    ROW_REPEATS = 8,     /* repeats of `loose` are dropped by their numbers */
    ROW_REORDERS = 16,   /* `loose` may come in any order */
    ROW_SAYS_WHY = 32,   /* an error is a segment behind the others (R-1905-44) */
    ROW_LASTS = 64,      /* a call that the client was told it can resume is not lost */
    ROW_ASKS_MUCH = 256, /* of a run: its programs are full of questions */
    ROW_STAYS = 128      /* the client does not begin again: what was shown is confirmed,
                          so nobody would have it any more (R-975-19) */
};

typedef struct composition_row {
    const char *name;
    int32_t era;         /* of the session */
    int32_t task;        /* policy of the tool */
    int32_t no_tasks;    /* of the session */
    uint32_t client_off; /* dialects */
    uint32_t client_on;
    uint32_t server_on;
    uint32_t server_off;
    int32_t promote_after_ms; /* of the tool */
    int32_t tool_flags;
    const char *loose; /* text in messages that may be repeated or reordered */
    uint32_t flags;
} composition_row;

extern const composition_row composition_rows[];
extern const size_t composition_row_count;

/* ---- programs ---- */

typedef enum step_kind {
    STEP_SEND,
    STEP_REPLACE,
    STEP_FIELD,
    STEP_PROGRESS,
    STEP_LOG,
    STEP_STATUS,
    STEP_ASK,
    STEP_CHECKPOINT,
    STEP_PAUSE,
    STEP_DEFER,
    STEP_COMPLETE, /* these three end it */
    STEP_FAIL,
    STEP_ABANDON
} step_kind;

typedef struct program_step {
    step_kind kind;
    int first, count; /* SEND, COMPLETE: blocks */
    int number;       /* FIELD: which; ASK, CHECKPOINT, PROGRESS: a running number */
    int32_t is_error; /* COMPLETE */
    int64_t ms;       /* PAUSE */
    char json[96];    /* FIELD, LOG, COMPLETE (structuredContent) */
} program_step;

/* Block i of a program is its segment i + 1. */
typedef struct program_block {
    bool is_text; /* `bytes` is the text, else the whole block as JSON */
    char *bytes;
    size_t len;
} program_block;

typedef struct program {
    uint32_t largest;
    program_step steps[COMPOSITION_STEPS];
    int count;
    program_block blocks[COMPOSITION_BLOCKS];
    int block_count;
} program;

#define PROGRAM_CODE 4711 /* of STEP_FAIL */

/* largest: of a block, in bytes, or so. */
void program_make(program *p, dice *d, uint32_t flags, uint32_t largest);
void program_free(program *p);
extern const char *const program_fields[COMPOSITION_FIELDS];

/* Where a run goes on that is told that so many segments are stored. */
typedef struct program_place {
    int step;
    int block; /* of the step's: the next one */
} program_place;
program_place program_after(const program *p, uint64_t segments);
/* So many segments are replaced before segment `number`. */
uint64_t program_voided(const program *p, uint64_t number);
/* Which block is this JSON? -1 = none of the program's. */
int program_find(const program *p, const char *json, size_t len);
/* Is it what a client must be told in the end? Else `why` says why not. discard: content
 * is not looked at. */
bool program_judge(const program *p, const char *result, size_t len, bool discard,
                   char *why, size_t size);
const program_step *program_end(const program *p);

/* ---- what goes wrong ---- */

typedef struct composition_plan {
    const composition_row *row;
    bool http;
    bool sqlite;
    bool restartable;          /* the tool goes on after a crash */
    int calls;                 /* at once */
    uint32_t largest;          /* of the blocks */
    int batch;                 /* steps of a handler's turn, at most */
    uint32_t piece;            /* bytes of a turn of the line, at most */
    uint32_t room;             /* bytes that the line holds: how slow its reader may be */
    uint32_t slowness;         /* one turn in this many moves anything */
    int cuts, kills, restarts; /* still to come */
    int repeats, reorders;     /* one in this many; 0 = none */
    int64_t max_queue;         /* of the server */
    size_t read_bytes;         /* of a log that it reads back at once; 0 = usual */
    bool keeps;                /* the store keeps what nobody needs any more */
    int64_t credit;
    bool discard;
    bool cancels; /* the application cancels one of its calls */
    int people;   /* whose calls they are, in turn: each has a session of his own */
    bool asks_much;
    int thinks; /* a question is answered in one turn of so many */
} composition_plan;

void composition_plan_make(composition_plan *plan, uint64_t seed);
void composition_plan_print(const composition_plan *plan, char *out, size_t size);

extern const char *const composition_people[COMPOSITION_PEOPLE];

/* ---- the application ---- */

/* What the application has made of what it was shown. It is kept beside the token. */
typedef struct shown {
    int blocks[COMPOSITION_BLOCKS]; /* those that stand, in order */
    int count;
    int last;             /* of the program, shown so far */
    uint64_t last_number; /* of its segment */
} shown;

/* What it says it is asked for: an operation, and a step of it. */
#define QUESTION_TEXT 64
typedef struct question {
    char key[80];
    char text[QUESTION_TEXT];
} question;

typedef struct app {
    composition *c;
    int index;
    program program;
    segue_request *request;
    shown now;
    shown kept; /* with the token */
    char token[6144];
    bool has_token;
    uint64_t seen; /* highest segment of the program ever shown, of one operation */
    double progress;
    const char *person;                        /* whose call it is */
    int attempt;                               /* which start of it, in its arguments */
    question questions[COMPOSITION_CALLS * 4]; /* that are open */
    int question_count;
    int life; /* which start or resume the callbacks belong to */
    int64_t granted;
    bool started, cancelled, completed, was_told_why;
    bool was_refused; /* a token, of a server that was known; */
    bool lasts;       /* ... and then it was had */
    segue_status status;
    int32_t rpc_code;
    char *result;
    size_t result_len;
} app;

void client_start(composition *c);
/* The process dies: what it has not kept is gone. */
void client_die(composition *c);
/* Ends the session and lets all go, after the last request. */
void client_end(composition *c);
/* Takes a turn: grants, answers. */
void client_turn(composition *c);
bool client_is_done(const composition *c);
void client_judge(composition *c);

/* ---- the server ---- */

typedef struct job job;

void server_start(composition *c);
/* Ends it with its runtime: as it is told (its tasks are let go of), or by a death of its
 * store, after which nothing is heard of it. */
void server_stop(composition *c);
bool server_turn(composition *c);
/* When the next handler wakes; -1 = none sleeps. */
int64_t server_wakes(const composition *c);

/* ---- the line ---- */

typedef struct carrier {
    /* A transport for the client's runtime, and this one of the people. */
    segue_transport *(*open)(composition *c, int person);
    /* Whose it is, at the server; NULL when nobody is there any more. */
    const char *(*whose)(composition *c, segue_transport *transport);
    /* The server is there. */
    void (*serve)(composition *c);
    /* One of the two is about to go: all connections are lost. */
    void (*lose)(composition *c);
    /* Moves bytes; false when there was nothing to do. */
    bool (*turn)(composition *c);
    /* Breaks a connection at some byte to come. */
    void (*cut)(composition *c);
    void (*end)(composition *c);
} carrier;

extern const carrier carrier_line, carrier_web;

/* ---- one run ---- */

struct composition {
    uint64_t seed;
    composition_plan plan;  /* what of it is still to come */
    composition_plan whole; /* as it was drawn */
    dice dice;              /* of the run */
    dice line_dice;         /* of the carrier */
    dice engine_dice[2];    /* randomness of the server, of the client */
    int64_t clock_ms;
    uint64_t turns;
    bool is_traced;
    const carrier *carrier;
    void *carried; /* the carrier's */
    char path[96];

    test_mem server_mem;
    segue_runtime *server_runtime;
    segue_server *server;
    segue_store *store;
    fault_store *faults;
    int dead; /* the store has died: its process is about to */
    int64_t down_until;
    size_t server_base; /* bytes of a server that has just begun */
    job *jobs;
    int kills_done; /* that may have cost something */
    int cuts_done;

    test_mem client_mem;
    segue_runtime *client_runtime;
    segue_session *sessions[COMPOSITION_PEOPLE];
    int life;
    int restarts_done;
    app apps[COMPOSITION_CALLS];
};

void composition_run(uint64_t seed);
/* Prints the seed and what it stands for, and fails the test. */
void composition_fail(composition *c, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
#define composition_check(c, condition)                                                  \
    do {                                                                                 \
        if (!(condition))                                                                \
            composition_fail(c, "%s:%d: %s", __FILE__, __LINE__, #condition);            \
    } while (0)
/* With SEGUE_TEST_LOG in the environment: what passes, and what the library logs. */
void composition_trace(const composition *c, const char *what, const char *text,
                       size_t len);
/* A runtime on the clock of the run; which: 0 = the server's. */
segue_runtime *composition_runtime(composition *c, int which);

#endif
