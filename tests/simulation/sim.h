/* The whole system from one seed: servers, clients, the store between the servers and
 * the network between all. The engines are real, and so are the runtimes and the
 * transports; clock, randomness, store and network belong to the run. Whatever happens is
 * written into a history, which judge.c judges while it grows.
 *
 *     sim_run(seed, NULL, &outcome);
 *
 * plan.c      what the seed means: everything that may go wrong, and how often
 * sim.c       one run, turn by turn
 * faults.c    what goes wrong between the turns
 * server.c    servers and their handlers, which play programs
 * client.c    clients, and the applications that call
 * child.c     servers that are child processes of their clients
 * line.c      the bytes between the two, as over a pipe
 * clock.c     the clock of the run, for the libraries of the system
 * watch.c     a resource that clients watch
 * wishes.c    time limits of calls, and their log messages
 * foreign.c   what servers of others do
 * web.c       the same over HTTP
 * gateway.c   requests that get a status of HTTP in place of an answer
 * judge.c     the history and the promises
 * main.c      many seeds, traces, and the shrinker
 *
 * Programs of handlers, rows of dialects and dice are those of the compositions. */
#ifndef SIM_H
#define SIM_H

#include <stdio.h>

#include <segue/segue_ext.h>

#include "simulation/judge.h"
#include "support/composition.h"
#include "support/shared_store.h"
#include "support/test_mem.h"

#define SIM_SERVERS 3
#define SIM_CLIENTS 4
#define SIM_CALLS 6

enum { SIM_MEMORY, SIM_SQLITE, SIM_REDIS, SIM_POSTGRES, SIM_STORES };
enum { SIM_STICKY, SIM_IN_TURN, SIM_AT_RANDOM };

/* ---- plan.c ---- */

typedef enum sim_knob {
#define PLAN(name, calm) SIM_##name,
#include "simulation/plan.def"
#undef PLAN
    SIM_KNOBS
} sim_knob;

typedef struct sim_plan {
    int64_t at[SIM_KNOBS];
} sim_plan;

extern const char *const sim_knob_names[SIM_KNOBS];
extern const int64_t sim_knob_calm[SIM_KNOBS];

void sim_plan_make(sim_plan *plan, uint64_t seed);
/* Makes a plan possible that the shrinker has changed. */
void sim_plan_fit(sim_plan *plan);
void sim_plan_print(const sim_plan *plan, char *out, size_t size);
const composition_row *sim_row(const sim_plan *plan);
/* Returns whether calls live in the memory of one server alone. */
bool sim_forgets_calls(const sim_plan *plan);

/* ---- the processes ---- */

typedef struct sim sim;
typedef struct sim_job sim_job;

typedef struct sim_server {
    sim *s;
    int index;
    int lives;
    test_mem mem;
    dice dice;
    segue_runtime *runtime; /* NULL = the process is down */
    segue_server *server;
    segue_store *store;
    shared_store *instance;
    int is_dead;        /* nothing leaves the process any more */
    bool hung_up;       /* the client of a child has closed the pipe */
    int fuse;           /* the messages that a child reads until it dies; 0 = it lives */
    int64_t ends_at;    /* the server has closed, and its process ends at this time */
    int64_t down_until; /* the time at which the process starts again */
    int64_t paused_until; /* the process stands still until this time */
    int64_t away_until;   /* the store is out of reach until this time */
    int64_t wall_off;
    int version; /* the change of the watched resource that it has reported */
    size_t base; /* bytes that the process held right after its start */
    sim_job *jobs;
} sim_server;

typedef struct sim_question {
    char key[80];
    char text[QUESTION_TEXT];
    int64_t asked_ms;
} sim_question;

typedef struct sim_client sim_client;

/* What a client does about the resource that it watches. */
typedef struct sim_watch {
    bool subscribes, reads; /* these requests are due */
    bool busy;              /* one of them is under way */
    bool listens;           /* subscriptions/listen is under way (2026-07-28) */
    int64_t again_ms;       /* nothing is sent before this time */
    int knows;              /* the last change that it has read; -1 = none */
} sim_watch;

typedef struct sim_app {
    sim *s;
    int index;
    sim_client *client;
    const char *person;
    program program;
    segue_request *request;
    int attempt;
    int life; /* callbacks of an earlier life are ignored */
    char token[6144];
    bool has_token;
    int last; /* the last block that was shown */
    int kept_last;
    bool started, completed, cancelled;
    bool withdrawn; /* the result says that another caller cancelled the call */
    bool heard;     /* a log message has arrived */
    int64_t granted;
    sim_question questions[SIM_CALLS * 4];
    int question_count;
} sim_app;

struct sim_client {
    sim *s;
    int index;
    const char *person;
    test_mem mem;
    dice dice;
    segue_runtime *runtime;
    segue_session *session;
    sim_watch watch;
    bool hushed;           /* it has raised the level of log messages */
    int server;            /* the server that a sticky balancer has chosen */
    int refused;           /* number of requests that the gateway answers itself */
    int64_t refused_until; /* until this time it answers all requests */
};

/* ---- the network ---- */

typedef struct sim_carrier {
    segue_transport *(*open)(sim_client *client);
    /* Returns the principal of a transport at a server; NULL when it is gone. */
    const char *(*whose)(sim_server *server, segue_transport *transport);
    void (*serve)(sim_server *server);
    /* Breaks all connections of a server, or of a client. */
    void (*lose_server)(sim_server *server);
    void (*lose_client)(sim_client *client);
    bool (*turn)(sim *s);
    /* Plans a break at a later byte. hole: true = the bytes vanish first. */
    void (*cut)(sim *s, bool hole);
    void (*end)(sim *s);
} sim_carrier;

extern const sim_carrier sim_line, sim_web;

/* ---- watch.c ---- */

/* Returns the callbacks of a session that watches; NULL = it does not. */
const segue_session_events *sim_watch_events(sim_client *client);
void sim_watch_turn(sim_client *client);
/* Adds the resource to a server that has just started. */
void sim_watch_serve(sim_server *server);
/* Reports changes that the server has not reported. */
void sim_watch_report(sim_server *server);
/* Changes the resource, and waits until each client knows. */
void sim_watch_settle(sim *s, void (*turn)(sim *s));

/* ---- wishes.c ---- */

#define SIM_REQUEST_MS (10 * 60 * 1000) /* request_timeout_ms of the sessions */

/* The names of the caller and of its operation in the history. */
#define SIM_WHO "c%d %d.%d"
#define SIM_WHO_OF(a) (a)->index, (a)->index % SIM_CALLS, (a)->attempt

void sim_wishes_set(const sim_app *a, segue_request_options *options);
/* Tells the judge what the call asks for. */
void sim_wishes_tell(const sim_app *a);
/* Takes a log message {"level":"L","data":{"step":N,"of":"O","run":R}}. */
void sim_wishes_hear(sim_app *a, const char *json, size_t len);
/* Raises the level of log messages, as planned. */
void sim_wishes_turn(sim_client *client);

/* ---- child.c ---- */

/* Returns the child of a client, after starting it if it does not run; NULL = a dead
 * child is not gone yet. */
sim_server *sim_child_start(sim_client *client);
/* The pipe to the server has no other end any more. */
void sim_child_hang_up(sim_server *child);
void sim_child_reads(sim_server *child, const char *bytes, size_t n);
/* The child dies, and from now on after each start, as often as planned. */
void sim_child_begin_to_crash(sim_server *child);

/* ---- foreign.c ---- */

/* Returns the number of the segment that no task of the run shows; 0 = there is none. */
int sim_gap(const sim *s);

/* Changes a message of the server as the plan says. Returns its length; 0 = the message
 * is not sent. */
size_t sim_leave_gap(const sim *s, char *text, size_t n);

/* ---- one run ---- */

struct sim {
    uint64_t seed;
    sim_plan plan;
    int64_t left[SIM_KNOBS]; /* what is still to come */
    dice dice, line_dice;
    int64_t now_ms; /* true time */
    uint64_t turns;
    uint64_t digest; /* of everything that happened */
    FILE *trace;
    FILE *history;
    judge *judge;
    const sim_carrier *carrier;
    void *carried;
    char path[96];
    shared_place *place;
    sim_server servers[SIM_SERVERS];
    sim_client clients[SIM_CLIENTS];
    sim_app apps[2 * SIM_CALLS]; /* the second half resumes tokens of the first */
    sim_server *crashing; /* the child that dies again and again; NULL = none yet */
    int crash_at;         /* the message at which it dies */
    int next_server;      /* of a balancer that takes the servers in turn */
    bool is_calm;
    int runs;
    int version; /* the number of the last change of the watched resource */
    int gap;     /* the segment that tasks do not show; 0 = none */
};

/* ---- clock.c ---- */

/* From now on the monotonic clock of the system shows the time of this run; NULL = it
 * shows its own time again. */
void sim_clock_show(const sim *s);
/* Frees the runtime, while the clock goes on. */
void sim_end_runtime(segue_runtime *runtime);

typedef struct sim_outcome {
    uint64_t digest;
    int64_t ms;
    uint64_t turns;
} sim_outcome;

/* Plays one run; plan NULL = the plan of the seed. A broken promise ends the process with
 * status 1, after a line that says which. */
void sim_run(uint64_t seed, const sim_plan *plan, FILE *trace, FILE *history,
             sim_outcome *outcome);

static inline int64_t sim_planned(const sim *s, sim_knob knob)
{
    return s->plan.at[knob];
}

void sim_fail(sim *s, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
#define sim_check(s, condition)                                                          \
    do {                                                                                 \
        if (!(condition))                                                                \
            sim_fail((s), "%s:%d: %s", __FILE__, __LINE__, #condition);                  \
    } while (0)
/* Adds a line to the history, and has it judged. */
void sim_tell(sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds bytes to the digest of the run, and to its trace. */
void sim_note(sim *s, const char *what, const char *text, size_t len);
void sim_fault(sim *s, const char *name);
/* Shows in a trace what happens to a server. A trace does not change the run. */
void sim_show(const sim_server *server, const char *what, int64_t number);
segue_runtime *sim_runtime(sim *s, test_mem *mem, sim_server *server, sim_client *client);
bool sim_dispatch(sim *s, segue_runtime *runtime);
/* Returns the server to which the balancer leads a client; NULL = all are down. */
sim_server *sim_balance(sim_client *client);
/* Returns the first server from this index on that is up; NULL = all are down. */
sim_server *sim_next_up(sim *s, int from);
bool sim_is_up(const sim_server *server);
bool sim_is_paused(const sim_server *server);

/* ---- faults.c ---- */

/* Lets things go wrong that are due. */
void sim_go_wrong(sim *s);
/* Ends processes that have died, and starts those whose time has come. */
void sim_put_right(sim *s);
/* Returns whether nothing is wrong, and nothing is left to go wrong. */
bool sim_is_all_well(const sim *s);

/* ---- servers and clients ---- */

void sim_server_start(sim_server *server);
/* Closes the server. Its process goes on until ends_at, and meanwhile its handlers end
 * or give up. */
void sim_server_close(sim_server *server);
/* Ends the process: in order, or by death. */
void sim_server_end(sim_server *server, bool dies);
bool sim_server_turn(sim_server *server);
/* Returns the time at which its next handler wakes; -1 = none sleeps. */
int64_t sim_server_wakes(const sim_server *server);

void sim_client_start(sim_client *client);
void sim_client_die(sim_client *client);
void sim_client_end(sim_client *client);
bool sim_client_turn(sim_client *client);
/* Returns the level that a handler gives to its log message with this number. */
int sim_log_level(int number);
/* Tells the judge of messages, unless pauses are tiny. */
void sim_client_sends(const sim_client *client, int messages);
bool sim_clients_done(const sim *s);

/* Writes the digest of a block, as both sides do. */
uint64_t sim_block_digest(const program *p, int block);

#endif
