/* One task, and all parties that can end the task, for the explorer (explorer.h). The
 * real engines of a server and of a client run on one fake clock, with a line between
 * them that the events move. The world also has a second client, a handler that takes one
 * step at a time, and a store. The store takes a commit, makes it durable and reports it
 * in separate events, or refuses it.
 *
 * race_world.c   beginning, lines, deaths, the end
 * race_events.c  which events may happen, and playing them
 * race_judge.c   what must hold: after each event, for each message, at the end
 * race_hash.c    when two states are the same */
#ifndef RACE_WORLD_H
#define RACE_WORLD_H

#include "engine/server/call.h"
#include "support/drop_heap.h"
#include "support/explorer.h"
#include "support/fake_host.h"

#define RACE_TTL_MS 1500
#define RACE_POLL_MS 1000
#define RACE_SEGMENTS 4

/* The events of the world. A row has a budget for each event: the number of times that
 * the event may happen. */
typedef enum race_event {
    RACE_SERVE,    /* due callbacks of the server run */
    RACE_TAKE,     /* the store begins a commit */
    RACE_ACK,      /* the commit becomes durable and is reported */
    RACE_REFUSE,   /* the commit fails */
    RACE_LOOK_UP,  /* the store answers a lookup */
    RACE_SEND,     /* the handler sends a segment */
    RACE_ASK,      /* the handler asks a question */
    RACE_COMPLETE, /* this event and the next ones up to RACE_GIVE_UP: the handler ends in
                    * one of its ways */
    RACE_IS_ERROR,
    RACE_FAIL,
    RACE_GIVE_UP,
    RACE_READ,      /* the client reads a message of the server */
    RACE_CANCEL,    /* the client's application cancels the request */
    RACE_ANSWER,    /* the client's application answers the question */
    RACE_OTHER_GET, /* the second client sends tasks/get */
    RACE_OTHER_CANCEL,
    RACE_OTHER_WATCH, /* the second client sends subscriptions/listen, in 2025-11-25
                       * tasks/result */
    RACE_TICK,        /* time passes until the next timer */
    RACE_CRASH,       /* the server dies; the commit under way is lost */
    RACE_CRASH_LATE,  /* the server dies; the commit under way is durable, but was not
                       * reported */
    RACE_RESTART,     /* the server ends in order, and another one begins */
    RACE_EVENTS
} race_event;

typedef enum race_dialect { RACE_X, RACE_L, RACE_D } race_dialect;

typedef struct race_row {
    const char *name;
    race_dialect dialect;
    int32_t flags;    /* flags of the tool */
    const char *from; /* names of the events that are played before the search */
    uint8_t budget[RACE_EVENTS];
} race_row;

typedef struct race_line {
    char *text;
    size_t len;
} race_line;

#define RACE_QUEUE 64

/* A connection to the server. */
typedef struct race_wire {
    sgi_conn *conn; /* the server's end; NULL = not connected */
    char *to_server;
    size_t to_len;
    race_line lines[RACE_QUEUE]; /* lines from the server that the client has not read */
    int first, count;
    uint64_t history; /* hash of the bytes in both directions */
    char status[20];  /* the status that the server reported last */
    int asked;        /* number of requests of the second client, for their ids */
} race_wire;

/* The state of the handler of the current server. */
typedef struct race_handler {
    segue_call *call; /* set while the handler holds a call */
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
    int reopens; /* number of reopens that the stage carried out */
    int closes;
    segue_server *handle;
    race_wire wires[2]; /* wires of the client and of the second client */
    race_handler handler;
    bool broken; /* the store has refused a commit, so the end of the task need not be
                  * stored */

    segue_session *session;
    segue_request *request;
    uint64_t client_history;
    int tasks, completed, freed;
    uint64_t segments; /* number of segments that the client's application was shown */
    bool cancelled;    /* the client's application has cancelled */
    bool finishing;
    char question[80];
    segue_status status;
    bool is_error; /* the result has isError */

    int ends;           /* final entries appended in this server's life */
    int32_t seen_final; /* kind of the final entry that a client has seen; 0 = none */
} race_world;

void race_world_explorer(race_world *w, const race_row *row, explorer_world *explorer);

/* Prints the path and fails the test. */
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
/* The server dies. late: the commit under way has become durable. */
void race_crash(race_world *w, bool late);
void race_restart(race_world *w);
/* Plays everything that needs no decision: bytes to the server, callbacks of the client,
 * connections. */
void race_settle(race_world *w);
/* Lets the client read one message. */
void race_read(race_world *w);
/* Sends a line from the second client. */
void race_say(race_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Moves the clocks of both engines. */
void race_pass(race_world *w);
int64_t race_next_timer(const race_world *w);
/* Returns the operation if the server has it in memory. */
sgi_op *race_op(const race_world *w);
/* Returns the operation's record in the store, or NULL. */
const fake_record *race_record(const race_world *w);
void race_history(uint64_t *history, const void *bytes, size_t len);

/* ---- race_events.c ---- */

int race_enabled(void *user, uint8_t events[EXPLORER_EVENTS]);
void race_step(void *user, uint8_t event);
const char *race_name(uint8_t event);
/* Plays the events that happened before the search begins. */
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
/* Checks a segment that the application was shown. */
void race_judge_segment(race_world *w, uint64_t number, sgi_str text);
/* Returns the stored entry that ended the task; NULL = none. */
const fake_row *race_final(const race_world *w);

/* ---- race_hash.c ---- */

uint64_t race_hash(void *user);

#endif
