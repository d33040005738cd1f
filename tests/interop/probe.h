/* What the checks of client.c are made of: a session with a server that is spawned or
 * reached over HTTP, requests, and waiting for what becomes of them. */
#ifndef PROBE_H
#define PROBE_H

#include <segue/segue.h>

/* ERA_OLD: a handshake that ends at an older version. */
enum era { ERA_MODERN = 1, ERA_LEGACY = 2, ERA_FALLBACK = 4, ERA_OLD = 8, ERA_ALL = 7 };

typedef struct peer {
    segue_runtime *runtime;
    const char *const *argv; /* a command, or one URL */
    int era;
    const char *version;              /* that the session must come to have */
    const segue_oauth_options *oauth; /* over HTTP; NULL = no tokens */
    segue_session *session;
    int opens;
    int closes;
    int acknowledged;
    int list_changes;
    int logs;    /* that came when no request asked for them */
    int updates; /* of resources */
    int resource_lists;
    int prompt_lists;
    int declines; /* it declines what the server asks */
} peer;

/* One request and all that was said about it. */
typedef struct exchange {
    peer *owner;
    segue_request *request;
    int done;
    segue_status status;
    int32_t code;
    char *json;
    char *text; /* of all text segments */
    size_t text_len;
    int progress_count;
    int progress_in_order;
    int log_count;
    int asked; /* questions of the server */
    int tasks; /* that it has become */
    char task_id[128];
    int rank; /* how many ended before it */
} exchange;

/* A reason for a failed check; the text lives until the next call. */
const char *because(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Is the server reached over HTTP? */
int is_http(const peer *p);
/* Has the tap before the server break all connections; 0 when there is none. */
int cut_connections(const peer *p);

/* p->runtime, argv, era and version are set; the rest is reset. A timeout of 0 is the
 * default. */
segue_status open_session(peer *p, int32_t era, int32_t restart,
                          int64_t request_timeout_ms);
/* Closes and frees p->session; 0 when on_closed did not come. */
int close_session(peer *p);

/* Runs the loop until *counter reaches target; 0 when it takes too long. */
int wait_for(peer *p, const int *counter, int target);
void run_for(peer *p, int64_t ms);

/* From here on the rank of exchanges that end is counted. */
void start_ranking(void);
segue_status start(peer *p, exchange *x, const char *method, const char *params,
                   const segue_request_options *options);
/* Follows a task to its end. */
segue_status watch(peer *p, exchange *x, segue_task *task);
/* Starts a request and waits for its end; NULL when that was SEGUE_OK. */
const char *ask(peer *p, exchange *x, const char *method, const char *params);
/* Prints what became of a check; reason as it returned it. */
void report(const char *what, const char *reason);
/* A request whose result must hold a text. */
const char *expect(peer *p, const char *method, const char *params, const char *part);
/* A call of a tool whose text is known, and of the one that greets. */
const char *expect_text(peer *p, const char *params, const char *text, size_t len);
const char *greet(peer *p);
/* Frees what an exchange has; one that has not ended is cancelled. */
void clear(exchange *x);

#endif
