/* Random calls that combine everything at once: handlers that are random programs, a
 * real server, a real client, and between them a line that cuts, repeats, reorders and
 * delays. The server is killed and the client restarts. Both ends have a runtime of
 * their own, in this process, on one fake clock. The seed alone determines the whole run,
 * so a run can be repeated.
 *
 *     composition_run(seed);      fails the test, after a line with SEGUE_SEED=<seed>
 *
 * composition_program.c what handlers do, and the check of the outcome composition_plan.c
 * which row, and what goes wrong when
 * composition_dialects.c  the rows: one for each way of showing a result
 * composition_server.c    the server and its handlers
 * composition_client.c    the application: what it is shown, keeps and checks
 * composition_line.c      the bytes between the two, as over a pipe
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
#define COMPOSITION_ASKS 8 /* a client of 2026-07-28 ends a call after ten rounds */

typedef struct composition composition;

/* ---- chance ---- */

typedef struct dice {
    uint64_t state;
} dice;

dice dice_of(uint64_t seed, uint64_t purpose);
/* Returns a number below n; 0 when n is 0. */
uint32_t dice_roll(dice *d, uint32_t n);
/* Returns true once in n times. */
bool dice_once_in(dice *d, uint32_t n);

/* ---- rows ---- */

enum {
    ROW_TASK = 1,         /* calls become tasks, so nothing may be lost */
    ROW_NUMBERED = 2,     /* the client sees the segment numbers of the handler */
    ROW_ASKS = 4,         /* the server can ask the client */
    ROW_REPEATS = 8,      /* the client drops repeats of `loose` by their numbers */
    ROW_REORDERS = 16,    /* messages with `loose` may come in any order */
    ROW_SAYS_WHY = 32,    /* an error is a segment behind the others (R-1905-44) */
    ROW_LASTS = 64,       /* a call is not lost once the client knows that it can be
                          * resumed */
    ROW_ASKS_MUCH = 256,  /* flag of a run: its programs ask many questions */
    ROW_NAMES_TASK = 512, /* each call is told its task before its result */
    ROW_STAYS = 128       /* the client does not restart: segments that were shown are
                          * confirmed, so nobody keeps them any more (R-975-19) */
};

typedef struct composition_row {
    const char *name;
    int32_t era;         /* era of the session */
    int32_t task;        /* task policy of the tool */
    int32_t no_tasks;    /* no_tasks of the session's options */
    uint32_t client_off; /* dialects that the client switches off */
    uint32_t client_on;
    uint32_t server_on;
    uint32_t server_off;
    uint32_t server_ways;     /* flags of segue_draft_way */
    int32_t promote_after_ms; /* promote_after_ms of the tool */
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
    STEP_COMPLETE, /* the last three kinds end a program */
    STEP_FAIL,
    STEP_ABANDON
} step_kind;

typedef struct program_step {
    step_kind kind;
    int first, count; /* SEND, COMPLETE: which blocks */
    int number;       /* FIELD: which field; ASK, CHECKPOINT, PROGRESS: a running
                       * number */
    int32_t is_error; /* COMPLETE: the result is an error */
    int64_t ms;       /* PAUSE: how long */
    char json[96];    /* FIELD, LOG, COMPLETE (structuredContent): the value */
} program_step;

/* Block i of a program becomes segment i + 1. */
typedef struct program_block {
    bool is_text; /* true = `bytes` is the text of the block; false = `bytes` is the block
                   * as JSON */
    char *bytes;
    size_t len;
} program_block;

typedef struct program {
    uint32_t largest;
    program_step steps[COMPOSITION_STEPS];
    int count;
    int asks; /* steps that ask */
    program_block blocks[COMPOSITION_BLOCKS];
    int block_count;
} program;

#define PROGRAM_CODE 4711 /* error code of STEP_FAIL */

/* largest: approximate maximum size of a block, in bytes. */
void program_make(program *p, dice *d, uint32_t flags, uint32_t largest);
void program_free(program *p);
extern const char *const program_fields[COMPOSITION_FIELDS];

/* The point at which a new run of a program continues when some segments are already
 * stored. */
typedef struct program_place {
    int step;
    int block; /* the next block of the step */
} program_place;
program_place program_after(const program *p, uint64_t segments);
/* Returns how many segments are replaced before segment `number`. */
uint64_t program_voided(const program *p, uint64_t number);
/* Returns the index of the block with this JSON; -1 = the program has no such block. */
int program_find(const program *p, const char *json, size_t len);
/* Returns whether this is the result that a client must get in the end. If it is not,
 * `why` has the reason. With discard the content is not checked. */
bool program_judge(const program *p, const char *result, size_t len, bool discard,
                   char *why, size_t size);
const program_step *program_end(const program *p);

/* ---- what goes wrong ---- */

typedef struct composition_plan {
    const composition_row *row;
    bool http;
    bool sqlite;
    bool restartable;          /* the tool continues after a crash */
    int calls;                 /* number of calls at once */
    uint32_t largest;          /* approximate maximum size of a block */
    int batch;                 /* maximum number of steps in one turn of a handler */
    uint32_t piece;            /* maximum number of bytes in one turn of the line */
    uint32_t room;             /* bytes that the line holds: how slow its reader may be */
    uint32_t slowness;         /* one turn in this many moves bytes */
    int cuts, kills, restarts; /* the numbers of cuts, kills and restarts that are still
                                * to come */
    int repeats, reorders;     /* one message in this many; 0 = none */
    int64_t max_queue;         /* queue limit of the server */
    size_t read_bytes;         /* bytes of a log that the server reads back at once; 0 =
                                * default */
    bool keeps;                /* the store keeps entries that nothing needs any more */
    int64_t credit;
    bool discard;
    bool cancels; /* the application cancels one of its calls */
    int people;   /* number of principals; they take the calls in turn, and each has a
                   * session */
    bool asks_much;
    int thinks; /* a question is answered in one turn of this many */
} composition_plan;

void composition_plan_make(composition_plan *plan, uint64_t seed);
void composition_plan_print(const composition_plan *plan, char *out, size_t size);

extern const char *const composition_people[COMPOSITION_PEOPLE];

/* ---- the application ---- */

/* The state of the result after the segments that the application received. The
 * application saves this state with the token. */
typedef struct shown {
    int blocks[COMPOSITION_BLOCKS]; /* indices of the blocks that stand, in order */
    int count;
    int last;             /* index of the last block that the application received */
    uint64_t last_number; /* segment number of that block */
} shown;

/* The text of a question: it names the operation that asks, and the step. */
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
    shown kept; /* saved together with the token */
    char token[6144];
    bool has_token;
    uint64_t seen; /* the highest segment number of one operation that the application
                    * received */
    double progress;
    const char *person;                        /* the principal of the call */
    int attempt;                               /* the number of the call's start, as its
                                                * arguments give it */
    question questions[COMPOSITION_CALLS * 4]; /* open questions */
    int question_count;
    int life; /* the number of the start or resume to which the callbacks belong */
    int64_t granted;
    bool started, cancelled, completed, was_told_why;
    bool was_refused; /* a known server refused a token */
    bool lasts;       /* after a refusal, the token was given after all */
    segue_status status;
    int32_t rpc_code;
    char *result;
    size_t result_len;
} app;

void client_start(composition *c);
/* Plays the death of the client's process, which loses everything that it has not
 * saved. */
void client_die(composition *c);
/* Ends the sessions and frees all, after the last request. */
void client_end(composition *c);
/* Takes a turn: grants credit and answers questions. */
void client_turn(composition *c);
bool client_is_done(const composition *c);
void client_judge(composition *c);

/* ---- the server ---- */

typedef struct job job;

void server_start(composition *c);
/* Ends the server and its runtime. The server either shuts down and releases its tasks,
 * or its store dies and the server sends nothing more. */
void server_stop(composition *c);
bool server_turn(composition *c);
/* Returns the time at which the next handler wakes; -1 = no handler sleeps. */
int64_t server_wakes(const composition *c);

/* ---- the line ---- */

typedef struct carrier {
    /* Opens a transport for the client's runtime and this principal. */
    segue_transport *(*open)(composition *c, int person);
    /* Returns the principal of a transport at the server; NULL when the connection is
     * gone. */
    const char *(*whose)(composition *c, segue_transport *transport);
    /* Called when the server has started. */
    void (*serve)(composition *c);
    /* Breaks all connections. Called before the client or the server ends. */
    void (*lose)(composition *c);
    /* Moves bytes; returns false when there was nothing to do. */
    bool (*turn)(composition *c);
    /* Plans a break of a connection at a later byte. */
    void (*cut)(composition *c);
    void (*end)(composition *c);
} carrier;

extern const carrier carrier_line, carrier_web;

/* ---- one run ---- */

struct composition {
    uint64_t seed;
    composition_plan plan;  /* counts down what is still to come */
    composition_plan whole; /* the plan as it was drawn */
    dice dice;              /* randomness of the run */
    dice line_dice;         /* randomness of the carrier */
    dice engine_dice[2];    /* randomness of the server and of the client */
    int64_t clock_ms;
    uint64_t turns;
    bool is_traced;
    const carrier *carrier;
    void *carried; /* state of the carrier */
    char path[96];

    test_mem server_mem;
    segue_runtime *server_runtime;
    segue_server *server;
    segue_store *store;
    fault_store *faults;
    int dead; /* the store has died, so its process is about to die */
    int64_t down_until;
    size_t server_base; /* bytes that the server held right after its start */
    job *jobs;
    int kills_done; /* kills that may have lost something */
    int cuts_done;

    test_mem client_mem;
    segue_runtime *client_runtime;
    segue_session *sessions[COMPOSITION_PEOPLE];
    int life;
    int restarts_done;
    app apps[COMPOSITION_CALLS];
};

void composition_run(uint64_t seed);
/* Prints the seed and its plan, and fails the test. */
void composition_fail(composition *c, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
#define composition_check(c, condition)                                                  \
    do {                                                                                 \
        if (!(condition))                                                                \
            composition_fail(c, "%s:%d: %s", __FILE__, __LINE__, #condition);            \
    } while (0)
/* With SEGUE_TEST_LOG in the environment, prints the messages and the log of the
 * library. */
void composition_trace(const composition *c, const char *what, const char *text,
                       size_t len);
/* Makes a runtime on the clock of the run. which: 0 = for the server, 1 = for the
 * client. */
segue_runtime *composition_runtime(composition *c, int which);

#endif
