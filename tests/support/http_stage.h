/* The stage for tests of the HTTP server: a runtime with the fixtures behind a listener
 * on a free port, a clock that only the test moves, and raw callers that send exact
 * bytes. Everything happens on the test's thread. The server runs while a caller waits,
 * so a wait either ends with the expected event or fails the test after PATIENCE_MS of
 * real time. */
#ifndef HTTP_STAGE_H
#define HTTP_STAGE_H

#include <stdbool.h>

#include <segue/segue_ext.h>

#include "support/fixtures.h"
#include "support/item_fixtures.h"
#include "support/test_mem.h"

#define PATIENCE_MS 120000

typedef struct http_stage {
    test_mem mem;
    int64_t clock_ms;
    uint64_t chance;
    segue_runtime *rt;
    segue_server *server;
    segue_listener *listener;
    fixtures *fixtures;
    int port;                    /* port of TCP */
    const char *host;            /* address to connect to; NULL = 127.0.0.1 */
    uint64_t turns;              /* number of turns that the loop was given */
    segue_listen_options listen; /* options of the listener, set before the stage begins;
                                  * zero = defaults */
    segue_principal_fn principal;
    segue_store *store;                /* a shared store; NULL = the server makes its own
                                        * store */
    void (*add)(segue_server *server); /* adds more items before the server listens; NULL
                                        * = none */
    segue_idle_fn on_idle;             /* user: the stage */
    int64_t max_message;
    uint32_t dialects_on; /* dialects of the server to switch on */
    bool by_hand;         /* the listener has no socket (mount_stage.h) */
} http_stage;

/* Starts the stage. Before this call, the test zeroes the stage and sets the members that
 * differ from the defaults. */
void http_stage_begin(http_stage *s);
/* Ends the stage and checks that all memory was returned. */
void http_stage_end(http_stage *s);
/* Runs turns of the loop until nothing is due. */
void http_stage_run(http_stage *s);
/* Moves the clock in steps and does the work that becomes due. */
void http_stage_advance(http_stage *s, int64_t ms);

typedef struct http_caller {
    http_stage *s;
    int fd;
    char *in; /* received bytes that were not read yet, NUL-terminated */
    size_t len;
    bool ended; /* the server has closed the connection */
    bool reset; /* the server closed the connection with a reset */
} http_caller;

typedef struct http_reply {
    int status;
    char head[2048]; /* the head of the answer, with its empty line */
    char *body;      /* NUL-terminated; NULL for an event stream */
    size_t body_len;
    size_t chunks;
} http_reply;

void http_caller_open(http_stage *s, http_caller *c);
void http_caller_close(http_caller *c);
/* Starts the stage and connects one caller. */
void http_stage_open(http_stage *s, http_caller *c);
void http_stage_close(http_stage *s, http_caller *c);
/* Closes the connection with a reset. */
void http_caller_reset(http_caller *c);
void http_caller_send(http_caller *c, const char *bytes, size_t len);
void http_caller_say(http_caller *c, const char *text);
/* Sends byte by byte, with turns of the server in between. */
void http_caller_drip(http_caller *c, const char *bytes, size_t len);
/* Reads the bytes that have arrived; returns false when none have. */
bool http_caller_look(http_caller *c);
/* Waits for the next answer. Of an event stream it waits only for the head.
 * http_reply_free frees the reply. */
void http_caller_read(http_caller *c, http_reply *reply);
/* Waits for the next answer and returns its status. */
int http_caller_status(http_caller *c);
void http_reply_free(http_reply *reply);
/* Returns a header's value, or "" when the header is missing. The value lives until the
 * next call. */
const char *http_reply_header(const http_reply *reply, const char *name);
/* Returns the next event of a chunked stream, without its blank line; NULL at the last
 * chunk. The caller frees the event. */
char *http_caller_event(http_caller *c);
/* Waits until the server has closed the connection; fails when bytes arrive before the
 * end. */
void http_caller_until_closed(http_caller *c);
/* Checks that nothing arrives and that the connection is open. */
void http_caller_quiet(http_caller *c);

/* Returns a request of the modern era with correct headers, as text that the caller
 * frees. name: of the tool or the task, NULL = none; params: members beside _meta, NULL =
 * none. */
char *http_request(const char *id, const char *method, const char *name,
                   const char *params, const char *caps);
char *http_call(const char *id, const char *tool, const char *arguments);
/* Returns a POST of this body, with these header lines behind the usual ones. */
char *http_post(const char *lines, const char *body);

/* Begins a session of 2025-11-25 and writes the header lines of its later requests. */
void http_stage_begin_session(http_stage *s, char lines[160]);
/* Starts a task and writes its id. */
void http_stage_start_task(http_stage *s, const char *tool, const char *arguments,
                           char id[64]);

#define HTTP_CAPS_TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

/* Sends the request and reads the answer, whose body must be one JSON text. */
void http_caller_ask(http_caller *c, char *request, http_reply *reply);

#endif
