/* The building blocks of the checks of client.c: a session with a server that is spawned
 * or reached over HTTP, requests, and waiting for their outcome. */
#ifndef PROBE_H
#define PROBE_H

#include <segue/segue.h>
#include <segue/segue_auth.h>

/* ERA_OLD: a handshake that ends at an older version. */
enum era { ERA_MODERN = 1, ERA_LEGACY = 2, ERA_FALLBACK = 4, ERA_OLD = 8, ERA_ALL = 7 };

typedef struct peer {
    segue_runtime *runtime;
    const char *const *argv; /* a command, or one URL */
    int era;
    const char *version;              /* the version that the session must get */
    const segue_oauth_options *oauth; /* over HTTP; NULL = no tokens */
    segue_session *session;
    int opens;
    int closes;
    int acknowledged;
    int list_changes;
    int logs;    /* log messages that belonged to no request */
    int updates; /* updates of resources */
    int resource_lists;
    int prompt_lists;
    int declines; /* 1 = it declines the server's questions */
} peer;

/* One request and everything that was reported about it. */
typedef struct exchange {
    peer *owner;
    segue_request *request;
    int done;
    segue_status status;
    int32_t code;
    char *json;
    char *text; /* texts of all segments, joined */
    size_t text_len;
    int progress_count;
    int progress_in_order;
    int log_count;
    int asked; /* number of the server's questions */
    int tasks; /* number of tasks that it has become */
    char task_id[128];
} exchange;

/* Returns a reason for a failed check; the text lives until the next call. */
const char *because(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns whether the server is reached over HTTP. */
int is_http(const peer *p);
/* Makes the tap in front of the server break all connections; returns 0 when there is no
 * tap. */
int cut_connections(const peer *p);

/* Opens p->session; p->runtime, argv, era and version are set, the rest is reset. A
 * timeout of 0 is the default. */
segue_status open_session(peer *p, int32_t era, int32_t restart,
                          int64_t request_timeout_ms);
/* Closes and frees p->session; returns 0 when on_closed did not come. */
int close_session(peer *p);

/* Runs the loop until *counter reaches target; returns 0 when that takes too long. */
int wait_for(peer *p, const int *counter, int target);
void run_for(peer *p, int64_t ms);

segue_status start(peer *p, exchange *x, const char *method, const char *params,
                   const segue_request_options *options);
/* Follows a task to its end. */
segue_status watch(peer *p, exchange *x, segue_task *task);
/* Starts a request and waits for its end; returns NULL when its status was SEGUE_OK. */
const char *ask(peer *p, exchange *x, const char *method, const char *params);
/* Prints the outcome of a check; reason: what the check returned. */
void report(const char *what, const char *reason);
/* Sends a request whose result must contain a text. */
const char *expect(peer *p, const char *method, const char *params, const char *part);
/* Call a tool whose text is known, and the tool that greets. */
const char *expect_text(peer *p, const char *params, const char *text, size_t len);
const char *greet(peer *p);
/* Frees the contents of an exchange; one that has not ended is cancelled. */
void clear(exchange *x);

#endif
