/* One task and everybody who can end it, for the explorer (explorer.h): the real engine
 * of a server and that of a client on one fake clock, with a line between them that
 * moves when told; a second client beside it; a handler that does a thing at a time; a
 * store of which each commit is first taken, then durable, then heard of, or none of it.
 *
 * race_world.c   beginning, lines, deaths, the end
 * race_events.c  what may happen, and making it so
 * race_judge.c   what must hold: after each event, of each message, in the end
 * race_hash.c    when two states are the same */
#ifndef RACE_WORLD_H
#define RACE_WORLD_H

#include "engine/serving/call.h"
#include "support/drop_heap.h"
#include "support/explorer.h"
#include "support/fake_host.h"

#define RACE_TTL_MS 1500
#define RACE_POLL_MS 1000
#define RACE_SEGMENTS 4

/* Budgets: each event may happen so often. */
typedef enum race_event {
    RACE_SERVE,    /* user code that is due at the server runs */
    RACE_TAKE,     /* the store begins a commit */
    RACE_ACK,      /* ... and it is durable, and heard of */
    RACE_REFUSE,   /* ... or fails */
    RACE_LOOK_UP,  /* the store answers a question */
    RACE_SEND,     /* the handler: a segment */
    RACE_ASK,      /* a question */
    RACE_COMPLETE, /* the ends */
    RACE_IS_ERROR,
    RACE_FAIL,
    RACE_GIVE_UP,
    RACE_READ,      /* the client reads a message of the server */
    RACE_CANCEL,    /* its application cancels the request */
    RACE_ANSWER,    /* ... answers the question */
    RACE_OTHER_GET, /* the second client: tasks/get */
    RACE_OTHER_CANCEL,
    RACE_OTHER_WATCH, /* subscriptions/listen; tasks/result of 2025-11-25 */
    RACE_TICK,        /* time passes until the next timer */
    RACE_CRASH,       /* the server dies; what was taken is lost */
    RACE_CRASH_LATE,  /* ... it was durable, and nobody had heard of it */
    RACE_RESTART,     /* it ends as it should, and another one begins */
    RACE_EVENTS
} race_event;

typedef enum race_dialect { RACE_X, RACE_L, RACE_D } race_dialect;

typedef struct race_row {
    const char *name;
    race_dialect dialect;
    int32_t flags;    /* of the tool */
    const char *from; /* events before the first one, by their names */
    uint8_t budget[RACE_EVENTS];
} race_row;

typedef struct race_line {
    char *text;
    size_t len;
} race_line;

#define RACE_QUEUE 64

/* A connection to the server. */
typedef struct race_wire {
    sgi_conn *conn; /* of the server; NULL = there is none */
    char *to_server;
    size_t to_len;
    race_line lines[RACE_QUEUE]; /* of the server, that the client has not read */
    int first, count;
    uint64_t history; /* of both directions */
    char status[20];  /* that it was told last */
    int asked;        /* requests of the second client, for their ids */
} race_wire;

/* What a handler of this life was told. */
typedef struct race_handler {
    segue_call *call; /* while it holds one */
    int runs, cancels, inputs, asked, freed, watched;
    int next_segment;
} race_handler;

typedef struct race_world {
    const race_row *row;
    explorer_world *explorer;
    uint8_t used[RACE_EVENTS];
    int steps;

    drop_heap server_heap, client_heap;
    fake_host server, client;
    int lives;
    int reopens; /* that were obeyed */
    int closes;
    segue_server *handle;
    race_wire wires[2]; /* of the client, of the second one */
    race_handler handler;
    bool broken; /* the store refused: its end need not be stored */

    segue_session *session;
    segue_request *request;
    uint64_t client_history;
    int tasks, completed, freed;
    uint64_t segments; /* that its application was shown */
    bool cancelled;    /* by its application */
    bool finishing;
    char question[80];
    segue_status status;
    bool is_error; /* the result says so */

    int ends;           /* entries of that kind that were appended, of this life */
    int32_t seen_final; /* kind of entry whose effect somebody was told; 0 = none */
} race_world;

void race_world_explorer(race_world *w, const race_row *row, explorer_world *explorer);

/* Prints the path, and fails the test. */
void race_fail(const race_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));
#define race_check(w, condition)                                                         \
    do {                                                                                 \
        if (!(condition))                                                                \
            race_fail((w), "%s:%d: %s", __FILE__, __LINE__, #condition);                 \
    } while (0)

/* ---- race_world.c ---- */

void race_begin(void *user);
void race_finish(void *user);
void race_drop(void *user);
/* The server dies; late: what was taken has become durable. */
void race_crash(race_world *w, bool late);
void race_restart(race_world *w);
/* All that needs no decision: bytes on their way to the server, callbacks of the client,
 * connections. */
void race_settle(race_world *w);
/* The client reads one message. */
void race_read(race_world *w);
/* A line of the second client. */
void race_say(race_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Time passes for both. */
void race_pass(race_world *w);
int64_t race_next_timer(const race_world *w);
/* The operation, if the server has it in memory. */
sgi_op *race_op(const race_world *w);
/* Its record in the store, or NULL. */
const fake_record *race_record(const race_world *w);
void race_history(uint64_t *history, const void *bytes, size_t len);

/* ---- race_events.c ---- */

int race_enabled(void *user, uint8_t events[EXPLORER_EVENTS]);
void race_step(void *user, uint8_t event);
const char *race_name(uint8_t event);
/* What has happened before anything is chosen. */
void race_replay(race_world *w, const char *path);
void race_start_call(race_world *w);
/* Adds the tool. */
void race_add_tool(race_world *w);
void race_let_call_go(race_world *w);

/* ---- race_judge.c ---- */

void race_judge_state(race_world *w);
void race_judge_line(race_world *w, race_wire *wire, sgi_str line);
void race_judge_quiet(race_world *w);
void race_judge_end(race_world *w);
/* The application was shown this segment. */
void race_judge_segment(race_world *w, uint64_t number, sgi_str text);
/* The entry that ended it, in the store; NULL = none. */
const fake_row *race_final(const race_world *w);

/* ---- race_hash.c ---- */

uint64_t race_hash(void *user);

#endif
