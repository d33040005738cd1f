/* The proxy: the upstreams (MCP servers), the server for the proxy's clients, and the
 * calls between them.
 *
 * Everything runs on the main thread, because the runtime is inline. A service is the
 * server at one path (service.h). A source is one entry of the configuration, which one
 * service offers. An upstream is one session of a source. With --per all a
 * source has one upstream. Otherwise a source has one upstream for each session or
 * principal of the clients. */
#ifndef PROXY_H
#define PROXY_H

#include "config.h"
#include "limits.h"
#include "stages.h"

#include <segue/segue_ext.h>

#include <sys/socket.h>
#include <sys/un.h>

typedef struct proxy proxy;
typedef struct service service;
typedef struct source source;
typedef struct upstream upstream;
typedef struct item item;
typedef struct client client;
typedef struct watched watched;

/* The features that an upstream declares in its capabilities. */
typedef struct features {
    bool tools;
    bool resources;
    bool subscribe;
    bool prompts;
    bool completions;
    bool logging;
    bool keys; /* true when the upstream supports idempotency keys */
    /* true when the results of tasks arrive in segments: of all tasks (SEP-2694), or of
     * tools that say that they may be tasks (SEP-1905) */
    bool event_streams;
    bool streamed_tasks;
} features;

struct upstream {
    upstream *next;
    source *source;
    /* number of references: one of the source, one of each session, transport, request
     * and timer that has callbacks for the upstream */
    int32_t refs;
    bool in_source; /* the upstream is in the list of its source */
    /* the session or principal for which the upstream was opened (client_key); "" = the
     * upstream serves all other clients */
    char *key;
    /* JSON; declared to this upstream; NULL = proxy->capabilities */
    char *capabilities;
    segue_session *session;
    /* the request that receives the upstream's questions which belong to no call */
    segue_request *questions;
    bool open;
    /* true when the last that was heard of the upstream is a failure */
    bool lost;
    bool stateless; /* the upstream remembers nothing between requests (2026-07-28) */
    /* the client of the upstream has gone; the upstream ends with its last call */
    bool retired;
    features can;
    int32_t failures; /* number of sessions in a row that ended before they were open */
    /* runs while the upstream waits for the next attempt to open a session */
    segue_timer *again;
    /* number of calls, and of subscriptions of clients, that use the upstream now */
    int64_t calls;
    segue_timer *idle;
    int32_t strays; /* number of open questions that belong to no call (stray.c) */
    /* The next members belong to watch.c. */
    watched *watched;
    const char *level;      /* the level that was sent last; NULL = none was sent */
    segue_request *listen;  /* subscriptions/listen; NULL = not sent */
    segue_timer *listening; /* sends subscriptions/listen */
    /* the last lines of the program's standard error, as a ring buffer */
    char errors[STDERR_LINES][STDERR_LINE];
    size_t error_count;
    size_t attempt_errors; /* error_count when the last attempt to start it began */
    char last_error[STDERR_LINE];
};

/* The lists of an upstream, in the order in which they are read. */
enum { LIST_TOOLS, LIST_RESOURCES, LIST_TEMPLATES, LIST_PROMPTS, LISTS };
#define ALL_LISTS ((1u << LISTS) - 1)

/* An item of the proxy's server. The item is freed when the server no longer uses it. */
struct item {
    source *source;
    item *next;
    int list;
    bool listed; /* true when the item is in source->items */
    /* used while an old and a new list are compared: true when the item is in the new
     * list */
    bool seen;
    /* the name, URI or template under which the proxy's clients know the item */
    char *key;
    char *name; /* the name, URI or template at the upstream */
    char *json; /* the item's description (JSON) for the proxy's clients */
    bool read_only;
    bool idempotent;
    bool streams; /* the upstream says that the results of the tool may grow */
    int64_t timeout_ms;
    repeat_policy repeat;
};

struct source {
    source *next;
    proxy *proxy;
    service *service;
    /* number of references: one of the configuration, and one of each item and each
     * upstream */
    int32_t refs;
    source_stage stage;
    source_config *config; /* owned by the source */
    /* The next members belong to succession.c. */
    source *replaces; /* the source that this one replaces; NULL = none */
    bool held;        /* true while its lists must not be shown yet */
    upstream *upstreams;
    int32_t count;
    item *items;
    /* the template that reads URIs which are in no list; NULL = another source has it, or
     * no source has resources */
    item *any;
    features can;
    /* reading: the list that is being read, -1 = none; due: a set of 1 << LIST_x, the
     * lists to read later */
    int reading;
    unsigned due;
    /* a set of 1 << LIST_x: the lists of which an item was left out, because another
     * source has its name */
    unsigned lacking;
    /* the items of the present list that were read so far, as a JSON array */
    text listing;
    int64_t listed;
    /* the lists that were read and are not shown yet, as JSON arrays; empty = none */
    text unshown[LISTS];
    char *peer; /* the text of segue_session_peer; NULL = no session was open so far */
};

/* The service manager, such as systemd, that has started the proxy (manager.c). */
typedef struct manager {
    struct sockaddr_un address;
    socklen_t len;       /* of the address; 0 = there is no manager */
    int64_t watchdog_ms; /* time between two signs of life; 0 = none are sent */
    bool failed;         /* true when the last message was not sent */
} manager;

struct proxy {
    config config;
    proxy_stage stage;
    segue_runtime *runtime;
    service *services; /* in the order of the configuration */
    segue_listener *listener;
    size_t base_len;          /* bytes of the listener's URL before its path */
    bool unready;             /* true when no upstream of any service can be used */
    segue_timer *probe;       /* fires when lost upstreams have to be tried */
    bool reload_due;          /* true when the configuration has to be read anew */
    segue_timer *start;       /* fires when the sources have to be settled */
    const char *capabilities; /* JSON; declared to upstreams */
    manager manager;
    int status; /* the exit status */
};

/* ---- sources and upstreams (source.c, upstream.c) ---- */

/* Makes the sources of the configuration, which own its entries from now on, and their
 * services. On failure stores the exit status. */
bool sources_make(proxy *p);
/* Frees all sources of a service. The runtime has ended. */
void sources_free(service *v);
/* Makes a source and adds it to the service of its path. config: the source owns it from
 * now on, also when the function fails and returns NULL. */
source *source_make(proxy *p, source_config *config);
/* Returns the source after this one, of any service. after: NULL = returns the first one.
 * Returns NULL after the last one. */
source *source_next(const proxy *p, const source *after);
/* Opens the first session of a source. When this fails, the source has settled. */
void source_start(source *s);
/* Removes a source from its service: its items are gone at once. Its calls continue, and
 * its sessions end when no call uses them. why: a sentence for the log. */
void source_retire(source *s, const char *why);
void source_ref(source *s);
void source_unref(source *s);
/* True when its lists are shown, or it has failed. */
bool source_has_settled(const source *s);
/* Limits the time until all sources have settled. */
void sources_limit_start(proxy *p);
/* Called when a source has settled: its lists were read, or it has failed. The source may
 * be freed meanwhile. */
void source_settled(source *s);
/* Returns the upstream (session of the source) that a call uses. call NULL: returns
 * the upstream that reads the lists. Returns NULL when there are too many upstreams,
 * or when out of memory. */
upstream *source_upstream(source *s, const segue_call *call);
/* Returns the upstream with this key (client_key), and makes it if there is none. number:
 * that of the session for which it is made; 0 = no session. */
upstream *source_upstream_with_key(source *s, const char *key, uint64_t number);
/* Removes an upstream from its source. */
void source_forget(upstream *u);
/* Returns the source of a service that has this resource: the first source that lists it,
 * otherwise the first source with a template that may match the URI, otherwise the source
 * that reads URIs which are in no list. Returns NULL when no source has resources. */
source *source_of_uri(const service *v, const char *uri);
/* Returns the upstream's session, and opens a session if there is none. When no session
 * can be opened now, returns NULL and stores the reason in upstream->last_error. */
segue_session *upstream_session(upstream *u);
void upstream_free(upstream *u);
void upstream_unref(void *user);
/* upstream_use is called when a call begins to use the upstream, upstream_leave when the
 * call ends. */
void upstream_use(upstream *u);
void upstream_leave(upstream *u);
/* Called when the upstream was lost, or when it has answered. */
void upstream_set_lost(upstream *u, bool lost);
/* Called when the only client of the upstream has gone, or when the configuration no
 * longer has the source. Closes the upstream when its calls have ended. */
void upstream_retire(upstream *u);
/* Lets the next attempt to open a session begin at once. */
void upstream_stop_waiting(upstream *u);
/* Makes the transport to the upstream: starts its program or connects to its URL. */
segue_status upstream_connect(upstream *u, segue_transport **out, segue_error **error);
/* Keeps one line of the program's standard error. */
void upstream_take_error_line(void *user, const char *line, size_t len);
/* Returns the number of the first kept line of the last attempt to start the program; of
 * all attempts when the last one has written nothing. */
size_t upstream_first_error(const upstream *u);
/* Adds the last lines of the program's standard error, as a JSON array of strings. */
void upstream_add_errors(const upstream *u, text *to);

/* ---- lists (catalog.c) ---- */

/* Called when the first session of a source (an entry of the configuration) has
 * opened. Makes the template for URIs that are in no list. */
void catalog_open(source *s);
/* Reads lists of a source from its first upstream. lists: a set of 1 << LIST_x; 0 = reads
 * all lists. */
void catalog_read(source *s, unsigned lists);
void catalog_free(source *s);
/* Gives the proxy's server the items of the lists that were read so far. */
void catalog_show(source *s);
/* Removes all items of a source from the proxy's server. */
void catalog_remove(source *s);
/* Called when the session with the source was lost while the source's lists were read. */
void catalog_lost(source *s);

/* ---- serving (serve.c) ---- */

/* Called when a source has settled: its lists were read, or it has failed. When all
 * sources have settled, makes the servers and begins to serve. */
void serve_when_settled(proxy *p);
/* Serves the paths that have settled since the listener has begun. */
void serve_new_paths(proxy *p);
/* Ends the program when the calls under way have ended, or after config.drain_ms. A
 * second call of this function ends the program at once. Tasks stay in the store. */
void serve_drain(proxy *p);
/* Reports that a source cannot be used, and why. */
void serve_tell_failure(const source *s);
/* Ends the program with this exit status, after all calls under way have been
 * reported. */
void proxy_end(proxy *p, int status);
/* Returns the exit status for a failure of the library: 2 when an argument is wrong. */
int exit_status(segue_status status);

/* ---- readiness (readiness.c) ---- */

/* Called when an upstream was lost, or can be used again, and when a path has begun or
 * ended: /health/ready answers 503 while no upstream can be used. */
void readiness_update(proxy *p);

/* ---- the service manager (manager.c) ---- */

/* Reads from the environment where the manager and its watchdog are, and removes the
 * variables, so that no upstream inherits them. Starts the signs of life. Called before
 * there are threads. */
void manager_begin(proxy *p);
/* state: a message of sd_notify(3), such as READY=1. Does nothing without a manager. */
void manager_tell(proxy *p, const char *state);
void manager_tell_reload(proxy *p);

/* ---- a new configuration (reload.c) ---- */

/* Reads the configuration file and the certificates anew, as soon as all sources have
 * settled. A file that cannot be used changes nothing. */
void reload(proxy *p);
/* Does what waited until the sources have settled. */
void reload_when_settled(proxy *p);

/* ---- sources that replace others (succession.c) ---- */

/* Shows the lists of the sources that are ready, and ends the sources that they
 * replace. */
void successions_settle(proxy *p);

/* Prints what --check has found out. Returns true when each upstream can be used. */
bool check_print(const proxy *p);

/* ---- calls (relay.c, relay_call.c, relay_items.c) ---- */

void relay_tool(void *user, segue_call *call);
void relay_resource(void *user, segue_call *call);
void relay_prompt(void *user, segue_call *call);
void relay_completion(void *user, segue_call *call);

/* ---- log (log.c) ---- */

/* Sets the form and the lowest level of the log for the whole process. */
void log_begin(bool is_json, int32_t level);
/* Writes one line to the log. name: of the event, in events.def. upstream_name: may be
 * NULL. */
void log_event(int32_t level, const char *name, const char *upstream_name,
               const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Returns the function that takes the library's lines of text; NULL = the log is JSON,
 * and log_observe makes it get the library's events. */
segue_log_fn log_of_library(void);
segue_status log_observe(segue_runtime *runtime);

#endif
