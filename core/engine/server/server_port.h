/* The functions by which the HTTP transport uses a server. The caller of every function
 * holds the runtime's lock. */
#ifndef SGI_SERVER_PORT_H
#define SGI_SERVER_PORT_H

#include "base/limit.h"
#include "engine/port.h"
#include "wire/http1_head.h"

typedef struct sgi_principal sgi_principal;
typedef struct sgi_grant sgi_grant;
typedef struct sgi_app_context sgi_app_context;

/* ---- listeners (stages.c) ---- */

/* A listening socket that brings new conversations. The server calls `open` and `close`
 * under the lock; both functions must not call the engine. */
typedef struct sgi_server_listener {
    LIST_ENTRY(sgi_server_listener) link;
    /* called when recovery has ended: the listener begins to accept connections */
    void (*open)(struct sgi_server_listener *listener);
    /* called when the server closes: the listener accepts no more connections */
    void (*close)(struct sgi_server_listener *listener);
} sgi_server_listener;

/* Adds a listener and a reference to the server, which the listener holds until its
 * removal. Returns SEGUE_E_CLOSED when the server has closed. `open` is called when
 * recovery has ended, perhaps before this function returns. */
segue_status sgi_server_add_listener(segue_server *server, sgi_server_listener *listener);
void sgi_server_remove_listener(segue_server *server, sgi_server_listener *listener);
/* True when the server accepts no new work. */
bool sgi_serve_is_closed(const segue_server *server);
/* True while a client may come back to this server: its call runs here; or its call has
 * ended, the client has not received the outcome, no other server has the outcome, and
 * the client can still be expected (returning.c). */
bool sgi_serve_client_may_return(const segue_server *server);

/* Returns what writes the server's operations to its store. */
struct sgi_committer *sgi_serve_committer(segue_server *server);

/* ---- metrics (metrics_families.c) ---- */

/* A server whose metrics are written. */
typedef struct sgi_metrics_source {
    const segue_server *server;
    const char *endpoint; /* value of the label `endpoint`; NULL = no such label */
} sgi_metrics_source;

/* False when the library was built without metrics. */
bool sgi_serve_has_metrics(void);
/* Appends the metrics of the servers, which are of one runtime and differ, in the text
 * format of Prometheus. resident: number of bytes of the process in memory; negative =
 * not known. */
void sgi_serve_write_metrics(const sgi_metrics_source *sources, size_t count,
                             int64_t resident, sgi_buf *out);

/* ---- the caller over HTTP (identify.c) ---- */

/* A request to the application to name the principal of a transport. `identified` runs
 * from the ready queue with the lock held, perhaps on another thread than the loop
 * thread. Until then the caller keeps this struct and the transport in memory. who: the
 * principal, a borrowed pointer; NULL unless the status is SEGUE_OK. named: the
 * application gave a name. */
typedef struct sgi_serve_identification {
    sgi_ready_object ready;
    segue_server *server;
    void *transport;
    void (*identified)(struct sgi_serve_identification *identifying, segue_status status,
                       sgi_principal *who, bool named);
} sgi_serve_identification;

/* True when the application has a function that names principals. Without that function,
 * no caller has a name. */
bool sgi_serve_can_identify_callers(const segue_server *server);
/* Queues the request to the application. Until `identified` has run, the transport must
 * stay in memory and the server must have a listener. */
void sgi_serve_identify_caller(segue_server *server,
                               sgi_serve_identification *identifying, void *transport);
/* Ends a request to the application. Can be called before or after `identified` has
 * run. */
void sgi_serve_cancel_identifying(sgi_serve_identification *identifying);
/* Returns the principal that all callers without a name share, with a reference that the
 * caller owns. Returns NULL when out of memory. */
sgi_principal *sgi_serve_anonymous_principal(segue_server *server);
/* Returns the principal of this name, as sgi_serve_anonymous_principal does. */
sgi_principal *sgi_serve_named_principal(segue_server *server, const char *name);
/* Returns the digest of a principal, as the records of its operations have it. */
const uint8_t *sgi_serve_principal_digest(const sgi_principal *who);
void sgi_serve_ref_principal(sgi_principal *who);
/* Drops a reference to a principal. who can be NULL. */
void sgi_serve_unref_principal(sgi_principal *who);

/* ---- the rights of a token (grant.c) ---- */

/* Makes a grant (the rights that an access token gives) for the principal of this name,
 * with these scopes, until expires_ms (wall clock time; INT64_MAX = no end). The caller
 * owns a reference to the grant. Returns NULL when out of memory. */
sgi_grant *sgi_serve_new_grant(segue_server *server, const char *principal,
                               sgi_str scopes, int64_t expires_ms);
void sgi_grant_ref(sgi_grant *grant);
/* Drops a reference to a grant (the rights that an access token gives). grant can be
 * NULL. */
void sgi_grant_unref(sgi_grant *grant);
/* Returns the principal of the grant, without adding a reference. */
sgi_principal *sgi_grant_principal(const sgi_grant *grant);
int64_t sgi_grant_expires(const sgi_grant *grant);
sgi_str sgi_grant_scopes(const sgi_grant *grant);

/* ---- the context of an exchange by hand (origin.c) ---- */

/* Makes the context that the application gives with an exchange by hand. The caller owns
 * a reference. free_user runs from the ready queue, when the last reference is dropped.
 * Returns NULL when out of memory. */
sgi_app_context *sgi_serve_new_context(sgi_engine *engine, void *user,
                                       segue_free_fn free_user);
/* Drops a reference to a context. context can be NULL. */
void sgi_serve_unref_context(sgi_app_context *context);
/* Frees a context that has one reference, without a call of free_user. context can be
 * NULL. */
void sgi_serve_free_unused_context(sgi_app_context *context);

/* ---- serving HTTP (serve_http.c) ---- */

/* The headers of an HTTP request, as views. The text of a missing header is empty. */
typedef struct sgi_http_request_head {
    sgi_str version;    /* MCP-Protocol-Version */
    sgi_str method;     /* Mcp-Method */
    sgi_str name;       /* Mcp-Name */
    sgi_str session;    /* Mcp-Session-Id */
    sgi_str last_event; /* Last-Event-ID */
    bool takes_events;  /* the header Accept has text/event-stream */
    bool lenient;       /* a request about a task may lack Mcp-Name */
    /* the client is on another machine and has no principal, so the client gets no
     * tasks */
    bool stranger;
    bool ending; /* the listener is closing, so the server begins no new work */
    /* the rights (grant) that the request's access token gives, a borrowed pointer; NULL
     * = the request has no token */
    sgi_grant *grant;
    int32_t max_streams;
    int32_t max_sessions;
    int64_t session_idle_ms;
    /* maximum number of bytes of stored events of one stream; 0 = the default */
    int64_t max_replay;
    /* Returns the value of any header. name: the header's name in lower case. Sets *more
     * to true when the request has the header more than once. */
    sgi_str (*find)(void *user, sgi_str name, bool *more);
    void *user;
    /* all headers, for handlers; NULL = handlers see no headers */
    const sgi_http1_head *all;
    /* the application's context of an exchange by hand, a borrowed pointer; NULL = there
     * is none */
    sgi_app_context *context;
} sgi_http_request_head;

/* The server's decision about a request. status = 0: the answer comes through `conn`, now
 * or later. Any other status: `conn` is NULL, and the answer is this status with the text
 * `problem` (NULL for 2xx). */
typedef struct sgi_http_serve_verdict {
    int32_t status;
    /* the request was refused because the server is closing (wire/ending.h) */
    bool ending;
    const char *problem;
    sgi_conn *conn;
    /* the limit that `problem` names; its name is NULL when `problem` names no limit */
    sgi_limit limit;
} sgi_http_serve_verdict;

/* The state of an exchange's answer. The transport reads this state before and after each
 * call of sgi_conn_take_output. */
typedef struct sgi_http_answer_state {
    /* the server has not decided yet whether the answer is one JSON text or an event
     * stream, so the transport cannot write the HTTP head */
    bool open;
    /* the answer is an event stream; false = the answer is one JSON text */
    bool is_events;
    /* the last part of the answer was taken as output, or is the next output */
    bool answered;
    /* a disconnected client can resume the answer, or can safely send the request
     * again */
    bool resumable;
    /* the exchange answers a call that this server runs, so no other server can answer */
    bool calls;
    /* the stream carries only the server's own messages, not an answer to a request */
    bool listens;
    int32_t status;
    /* value of the header Mcp-Session-Id in the answer; NULL = the answer lacks this
     * header */
    const char *session;
    /* Value of the header Dev-Segue-Server, which names the server process; NULL = the
     * answer lacks this header. The answer to initialize and the GET stream have the
     * header, in a session that other servers can continue. */
    const char *server;
    /* for status 403: the scopes that the caller's token lacks; NULL = no scope is
     * missing */
    const char *lacks;
} sgi_http_answer_state;

/* Serves a POST with this body. who: a borrowed pointer. spare: a spare conversation that
 * sgi_serve_end_exchange returned earlier, or NULL. If the spare conversation serves the
 * request, *spare becomes NULL, and the next sgi_serve_end_exchange returns it again. If
 * the verdict has no `conn`, the caller keeps the spare conversation. */
void sgi_serve_post(segue_server *server, sgi_principal *who,
                    const sgi_http_request_head *head, sgi_str body, void *transport,
                    sgi_conn **spare, sgi_http_serve_verdict *verdict);
/* Serves a GET, by which a client opens its GET stream or resumes a stream, in versions
 * that begin with `initialize`. */
void sgi_serve_get(segue_server *server, sgi_principal *who,
                   const sgi_http_request_head *head, void *transport,
                   sgi_http_serve_verdict *verdict);
/* Serves a DELETE, by which a client ends its session, in versions that begin with
 * `initialize`. The verdict never has a `conn`. */
void sgi_serve_delete(segue_server *server, sgi_principal *who,
                      const sgi_http_request_head *head, sgi_http_serve_verdict *verdict);
/* Sets *answer to the present state of the exchange's answer. Changes nothing else. */
void sgi_serve_get_answer_state(const sgi_conn *conn, sgi_http_answer_state *answer);
/* Makes the answer an event stream, unless the form of the answer is already decided.
 * Called when the answer takes long. */
void sgi_serve_open_stream(sgi_conn *conn);
/* Reports that a transport leaves an exchange, because the transport has sent the answer
 * or has lost its connection. Does nothing when another transport now carries the
 * exchange. Returns a conversation that the transport can pass to sgi_serve_post for the
 * next request (a spare conversation), or NULL. */
sgi_conn *sgi_serve_end_exchange(sgi_conn *conn, void *transport);
void sgi_serve_free_spare_conn(sgi_conn *spare);

#endif
