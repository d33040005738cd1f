/* The stage for tests of the HTTP server: a runtime with the fixtures behind a listener
 * on a free port, time that moves only when told, and raw callers that send bytes to the
 * letter. Everything happens on the test's thread: the server gets its turns while a
 * caller waits, so that a wait ends with what is waited for, or fails the test after
 * PATIENCE_MS of real time. */
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
    int port;                    /* TCP */
    const char *host;            /* to connect to; NULL = 127.0.0.1 */
    uint64_t turns;              /* that the loop was given */
    segue_listen_options listen; /* set before the stage begins; zero = defaults */
    segue_principal_fn principal;
    segue_store *store;                /* shared; NULL = one of the server's own */
    void (*add)(segue_server *server); /* more items, before it listens; NULL = none */
    segue_idle_fn on_idle;             /* user: the stage */
    int64_t max_message;
    uint32_t dialects_on; /* of the server */
} http_stage;

/* Zero it, set what differs, begin. */
void http_stage_begin(http_stage *s);
/* Ends it; all memory must be back. */
void http_stage_end(http_stage *s);
/* Turns until nothing is due. */
void http_stage_run(http_stage *s);
/* Time passes in steps, with what is due on the way. */
void http_stage_advance(http_stage *s, int64_t ms);

typedef struct http_caller {
    http_stage *s;
    int fd;
    char *in; /* NUL-terminated; what was not looked at */
    size_t len;
    bool ended; /* the server has closed it */
    bool reset; /* ... with a reset */
} http_caller;

typedef struct http_reply {
    int status;
    char head[2048]; /* with its empty line */
    char *body;      /* NUL-terminated; NULL for an event stream */
    size_t body_len;
    size_t chunks;
} http_reply;

void http_caller_open(http_stage *s, http_caller *c);
void http_caller_close(http_caller *c);
/* The stage with one caller. */
void http_stage_open(http_stage *s, http_caller *c);
void http_stage_close(http_stage *s, http_caller *c);
/* Closes with a reset. */
void http_caller_reset(http_caller *c);
void http_caller_send(http_caller *c, const char *bytes, size_t len);
void http_caller_say(http_caller *c, const char *text);
/* Byte by byte, with turns between. */
void http_caller_drip(http_caller *c, const char *bytes, size_t len);
/* Reads what is there; false when nothing was. */
bool http_caller_look(http_caller *c);
/* The next answer; of an event stream only the head. Freed by http_reply_free. */
void http_caller_read(http_caller *c, http_reply *reply);
/* The same, and its status. */
int http_caller_status(http_caller *c);
void http_reply_free(http_reply *reply);
/* A header's value, "" when it is missing; lives until the next call. */
const char *http_reply_header(const http_reply *reply, const char *name);
/* The next event of a chunked stream, without its blank line; NULL at the last chunk.
 * Freed by the caller. */
char *http_caller_event(http_caller *c);
/* Waits until the server has closed the connection; fails when bytes come before. */
void http_caller_until_closed(http_caller *c);
/* Nothing comes and it is open. */
void http_caller_quiet(http_caller *c);

/* A request of the modern era with right headers, as text; freed by the caller. name: of
 * the tool or the task, NULL = none; params: members beside _meta, NULL = none. */
char *http_request(const char *id, const char *method, const char *name,
                   const char *params, const char *caps);
char *http_call(const char *id, const char *tool, const char *arguments);
/* A POST of this body, with these header lines behind the usual ones. */
char *http_post(const char *lines, const char *body);

#define HTTP_CAPS_TASKS "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

/* Asks on a connection and returns the answer, whose body must be one JSON text. */
void http_caller_ask(http_caller *c, char *request, http_reply *reply);

#endif
