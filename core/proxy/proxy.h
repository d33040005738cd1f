/* The proxy: upstreams above, one server below, and the calls between them.
 *
 * Everything runs on the thread of main: the runtime is inline. A source is one upstream
 * of the configuration. An upstream is one session of a source: with --per all a source
 * has one upstream, otherwise one for each session or principal below. */
#ifndef PROXY_H
#define PROXY_H

#include "config.h"

#include <segue/segue_ext.h>

typedef struct proxy proxy;
typedef struct source source;
typedef struct upstream upstream;
typedef struct item item;

#define STDERR_LINES 20
#define STDERR_LINE 400

/* What an upstream can do, from its capabilities. */
typedef struct features {
    bool tools;
    bool resources;
    bool subscribe;
    bool prompts;
    bool completions;
    bool keys; /* it honours idempotency keys */
} features;

struct upstream {
    upstream *next;
    source *source;
    char *key; /* the session or principal that it is for; "" = all */
    segue_session *session;
    segue_request *questions; /* takes questions that belong to no call */
    bool open;
    bool closing;
    features can;
    int32_t failures; /* sessions in a row that ended without having been open */
    int64_t calls;    /* that use it now */
    segue_timer *idle;
    /* the last lines of the program's standard error, a ring */
    char errors[STDERR_LINES][STDERR_LINE];
    size_t error_count;
    char last_error[STDERR_LINE];
};

/* The kinds of lists of an upstream, in the order in which they are read. */
enum { LIST_TOOLS, LIST_RESOURCES, LIST_TEMPLATES, LIST_PROMPTS, LISTS };

/* An item of the server below. It is freed when the server has no use for it any more. */
struct item {
    source *source;
    item *next;
    int list;
    bool listed; /* it is in source->items */
    bool seen;   /* while lists are compared */
    char *key;   /* the name, URI or template below */
    char *name;  /* the same above */
    char *json;  /* as lists show it below */
    bool read_only;
    bool idempotent;
    int64_t timeout_ms;
    repeat_policy repeat;
};

struct source {
    source *next;
    proxy *proxy;
    source_config *config;
    upstream *upstreams;
    int32_t count;
    item *items;
    item *any; /* reads URIs that are in no list */
    features can;
    /* lists that are being read, and those to read afterwards */
    int reading;
    unsigned due;
    text listing; /* the items read so far, as an array */
    int64_t listed;
    bool settled; /* its lists were read, or it failed */
    bool failed;
    char *peer; /* what segue_session_peer says; NULL = it was never open */
};

struct proxy {
    config config;
    segue_runtime *runtime;
    segue_store *store;
    segue_server *server;
    segue_listener *listener;
    source *sources;
    const char *capabilities; /* that upstreams see */
    struct handle *handles;
    int32_t handle_count;
    bool serving;
    bool draining;
    bool ending;
    int status; /* the exit status */
};

/* ---- sources and upstreams (source.c, upstream.c) ---- */

bool sources_make(proxy *p);
void sources_free(proxy *p);
/* Returns the upstream for a call, or for the lists when call is NULL. NULL when there
 * are too many, or without memory. */
upstream *source_upstream(source *s, const segue_call *call);
/* Returns the upstream's session, which is opened if there is none. NULL when it cannot
 * be opened now; upstream->last_error says why. */
segue_session *upstream_session(upstream *u);
void upstream_free(upstream *u);
/* A call begins or ends to use the upstream. */
void upstream_use(upstream *u);
void upstream_leave(upstream *u);
/* Adds the last lines of standard error as a JSON array of strings. */
void upstream_add_errors(const upstream *u, text *to);

/* ---- lists (catalog.c) ---- */

/* The source has opened: makes the items that it has without a list. */
void catalog_open(source *s);
/* Reads all lists of a source, or those of a set of 1 << LIST_x, from its first
 * upstream. */
void catalog_read(source *s, unsigned lists);
void catalog_free(source *s);
/* The source has been lost while its lists were read. */
void catalog_lost(source *s);

/* ---- serving (serve.c) ---- */

/* Makes the server, which has the name and instructions of its only source. */
bool serve_make(proxy *p, const source *only);
/* A source has settled: when all have, the server is made and serves. */
void serve_when_settled(proxy *p);
/* Ends the program when the calls under way have ended, or after DRAIN_MS; a second time,
 * at once. Tasks stay in the store. */
void serve_drain(proxy *p);
/* Ends the program with an exit status, when everything under way has been told. */
void proxy_end(proxy *p, int status);

/* Prints what --check found. True when each upstream can be used. */
bool check_print(const proxy *p);

/* ---- calls (relay.c, relay_call.c, relay_items.c) ---- */

void relay_tool(void *user, segue_call *call);
void relay_resource(void *user, segue_call *call);
void relay_prompt(void *user, segue_call *call);
void relay_completion(void *user, segue_call *call);
/* Takes the questions of an upstream that belong to no call. */
void relay_stray_question(void *user, segue_request *request, const char *key,
                          const char *method, const char *params, size_t len);

/* ---- the guard of a child (guard.c) ---- */

/* Runs argv as a child process and ends it, with all of its descendants, when the process
 * parent ends. Returns the exit status. */
int guard_run(long parent, char **argv);

/* ---- log (log.c) ---- */

/* Sets the form of the log for the process. */
void log_begin(bool is_json, int32_t level);
/* Writes one line. event: one word. upstream_name: may be NULL. */
void log_event(int32_t level, const char *event, const char *upstream_name,
               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* A segue_log_fn. */
void log_library(void *user, int32_t level, const char *line);

#endif
