/* Segue, extension API: your own transports and stores, injected clock and random numbers
 * for tests, and functions that only bindings and some servers need. Stable within a
 * minor version, not between minor versions. The conventions of segue.h apply. */
#ifndef SEGUE_EXT_H
#define SEGUE_EXT_H

#include <segue/segue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Hooks ----------------------------------------------------------------------- */

/* The clocks and the random numbers of a runtime. If hooks are set, timers follow the
 * injected monotonic clock, which is read at each segue_runtime_dispatch. */
struct segue_hooks {
    size_t struct_size;
    void *user;
    int64_t (*monotonic_ms)(void *user); /* a clock that never goes back */
    int64_t (*wall_ms)(void *user); /* wall clock: milliseconds since 1970-01-01 UTC */
    /* Fills len bytes with random values; returns 0 for success. */
    int32_t (*random)(void *user, void *bytes, size_t len);
};
#define SEGUE_HOOKS_INIT SEGUE_INIT(segue_hooks)

/* ---- 2 Output that is held back ---------------------------------------------------- */

/* Holds output back until the matching segue_runtime_uncork. Messages of all sessions and
 * threads are then sent in as few writes as possible. Use it to send several messages in
 * a row, for example once per turn of a language's event loop. Without a cork each
 * message is sent at once; on pipes and sockets of a background runtime the sending
 * thread writes it. Calls may be nested. The runtime may send messages earlier when it
 * wakes up for another reason. Limits count the messages that are held back, so do not
 * wait for answers before uncork. */
SEGUE_API segue_status segue_runtime_cork(segue_runtime *runtime);

/* Ends one segue_runtime_cork. The last uncork sends the messages that were held back.
 *
 * Returns   SEGUE_E_STATE when nothing is corked. */
SEGUE_API segue_status segue_runtime_uncork(segue_runtime *runtime);

/* ---- 2.1 Timers -------------------------------------------------------------------- */

/* A timer of the application in the loop of a runtime. */
typedef struct segue_timer segue_timer;

/* Runs when the time of a timer is over. */
typedef void (*segue_timer_fn)(void *user);

/* Runs a callback once, after a time. To run code on the thread that dispatches, start a
 * timer of 0 ms on any other thread.
 *
 * delay_ms  0 or more; by the clock of the runtime.
 * on_time   runs once, then free_user(user). When the runtime is freed before, only
 *           free_user runs.
 * out       may be NULL when the timer is never cancelled.
 * Returns   SEGUE_OK. */
SEGUE_API segue_status segue_timer_start(segue_runtime *runtime, int64_t delay_ms,
                                         segue_timer_fn on_time, void *user,
                                         segue_free_fn free_user, segue_timer **out);

/* Stops a timer. on_time does not run any more; free_user follows.
 *
 * Returns   SEGUE_OK, SEGUE_E_TERMINAL when on_time has begun.
 */
SEGUE_API segue_status segue_timer_cancel(segue_timer *timer);

/* Frees the handle. The timer continues. */
SEGUE_API void segue_timer_free(segue_timer *timer);

/* ---- 2.2 Events -------------------------------------------------------------------- */

/* One event: a call has ended, a commit has failed, and so on. All events and their
 * fields are in core/docs/logs-and-traces.md. No event has a result, a token, a header, a
 * whole id of a task or, unless the observer asks for them, arguments. A text is NULL,
 * and a number is -1, when the event does not have the field. Texts are valid until the
 * callback returns. */
typedef struct segue_event {
    size_t struct_size;
    const char *name; /* a static string, such as "call_ended" */
    int32_t level;    /* a segue_log_level */
    int64_t time_ms;  /* wall clock: milliseconds since 1970-01-01 UTC */
    /* the name of the server */
    const char *server;
    /* the name of the server at the other end */
    const char *upstream;
    /* the address of the listener */
    const char *address;
    /* the method, such as tools/call */
    const char *method;
    /* the name of the tool or prompt, or the URI of the resource */
    const char *item;
    /* the method of the question, such as elicitation/create */
    const char *question;
    /* modern (2026-07-28) or legacy (earlier revisions) */
    const char *era;
    /* how it ended: ok, or the reason */
    const char *status;
    /* the first 12 characters of the id of the task */
    const char *task;
    /* the span that the work belongs to (W3C traceparent) */
    const char *trace_parent;
    /* the option whose limit was reached */
    const char *limit;
    /* the beginning of the arguments, if the observer wants it */
    const char *arguments;
    /* a sentence for people */
    const char *message;
    /* the duration, in microseconds */
    int64_t duration_us;
    /* the number of things that the event is about */
    int64_t count;
} segue_event;
#define SEGUE_EVENT_INIT SEGUE_INIT(segue_event)

/* Receives an event. Any thread may call the callback, one at a time for each runtime and
 * while the library holds the lock of the runtime. So the callback must return soon and
 * must not call the library, except segue_event_json. */
typedef void (*segue_event_fn)(void *user, const segue_event *event);

typedef struct segue_observer_options {
    size_t struct_size;
    void *user;
    segue_event_fn on_event; /* required */
    int32_t level;           /* the lowest level that is reported: a segue_log_level */
    /* the number of bytes of a call's arguments that call_started has; 0 = no event has
     * arguments. Arguments can be secret */
    int32_t max_argument_bytes;
} segue_observer_options;
#define SEGUE_OBSERVER_OPTIONS_INIT SEGUE_INIT(segue_observer_options)

/* Sets the observer of the runtime: it receives the events of all servers and sessions
 * from now on, in place of an earlier observer. Without an observer, events cost nothing.
 *
 * observer  copied; NULL = nobody observes. No event reaches the earlier observer after
 *           the function has returned.
 * Returns   SEGUE_OK. */
SEGUE_API segue_status segue_runtime_observe(segue_runtime *runtime,
                                             const segue_observer_options *observer);

/* Gives an event as one line of JSON, without its end:
 * {"time":"2026-07-28T12:00:00.000Z","level":"info","event":"call_ended",...}. Texts are
 * cut off after 2048 bytes. The application may give events of its own. It may call this
 * function in a segue_event_fn, too. */
SEGUE_API segue_status segue_event_json(const segue_event *event, char *buf, size_t *len);

/* ---- 3 Calls ----------------------------------------------------------------------- */

/* Extends the first turn of the handler, which otherwise ends when on_call returns. For
 * bindings, whose handlers run after on_call. A call that ends in its first turn is
 * answered at once if the client accepts the response mode "immediate" for tasks
 * (2025-11-25).
 *
 * The turn ends by segue_call_end_turn, at the end of the call, at its first question, or
 * after the server's first_turn_ms.
 *
 * Returns   SEGUE_OK; SEGUE_E_STATE when the call's answer does not wait for the turn, or
 *           the turn is over. */
SEGUE_API segue_status segue_call_hold_turn(segue_call *call);

/* Ends the first turn (segue_call_hold_turn) of a handler whose call continues.
 *
 * Returns   SEGUE_OK, also when the turn was not extended or is over. */
SEGUE_API segue_status segue_call_end_turn(segue_call *call);

/* Names the span that the handler has made for the call (W3C Trace Context). The events
 * of the call have it as their trace_parent from now on, in place of the caller's. It is
 * not stored. The caller's trace is: when the handler runs again on another server, the
 * call is in the same trace.
 *
 * trace_parent  such as "00-<32 hexadecimal digits>-<16>-<2>".
 * Returns       SEGUE_OK; SEGUE_E_INVALID for another form. */
SEGUE_API segue_status segue_call_set_trace_parent(segue_call *call,
                                                   const char *trace_parent,
                                                   segue_error **error);

/* Returns the trace of the call as a traceparent: the span that was set, else the
 * caller's, from _meta or from the header traceparent. A call that an earlier process
 * began has what was stored.
 *
 * Returns   SEGUE_E_NOT_FOUND when the call is in no trace. */
SEGUE_API segue_status segue_call_trace_parent(segue_call *call, char *buf, size_t *len);

/* Ends the event stream of a call, and lets the client come back for the rest (2025-11-25
 * basic/transports, "Sending Messages to the Server"). Use it for a call that sends
 * nothing for a long time, so that no connection waits for the call. The call continues.
 * Its messages are kept for the client, which is asked to come back after retry_ms.
 *
 * retry_ms  the time until the client comes back; 0 = 1000.
 * Returns   SEGUE_OK, also when the client has disconnected already; SEGUE_E_UNSUPPORTED,
 *           without effect, when the client could not come back: it is not connected over
 *           HTTP, speaks 2026-07-28 or accepts no event streams, the call is a task, or,
 *           before 2025-11-25, nothing has been sent yet; SEGUE_E_TERMINAL. */
SEGUE_API segue_status segue_call_hang_up(segue_call *call, int64_t retry_ms,
                                          segue_error **error);

/* Ends the call with a whole result that another server made. The list of blocks (or
 * contents, or messages) and all other members pass unchanged, even blocks of unknown
 * types and members of later revisions. The result is not checked against a schema. What
 * belongs to the other server is left out: its name and its task in _meta, and before
 * 2026-07-28 ttlMs and cacheScope of a resource.
 *
 * json      the result, an object. "resultType" is set as the client's revision requires.
 * Returns   as segue_call_complete; SEGUE_E_JSON. */
SEGUE_API segue_status segue_call_complete_json(segue_call *call, const char *json,
                                                size_t len, segue_error **error);

/* Ends the call with the JSON-RPC error that another server answered: code, message and
 * data pass unchanged. Only the code of a resource that is not found becomes the code of
 * the client's revision. A local error is sent with the code -32603.
 *
 * why       e.g. from segue_complete_fn.
 * Returns   SEGUE_OK, SEGUE_E_TERMINAL. */
SEGUE_API segue_status segue_call_fail_with(segue_call *call, const segue_error *why,
                                            segue_error **error);

/* Sends a log message as segue_call_log does. The message has all members of json.
 *
 * json      the params of notifications/message: an object with "level" and "data", and
 *           perhaps "logger". "_meta" is left out.
 * Returns   as segue_call_log. */
SEGUE_API segue_status segue_call_log_json(segue_call *call, const char *json, size_t len,
                                           segue_error **error);

/* Returns the lowest level of the log messages that the client of the call wants now.
 *
 * Returns   a static string, such as "info"; NULL = the client wants none.
 */
SEGUE_API const char *segue_call_log_level(const segue_call *call);

/* Returns the context of the exchange by hand (segue_exchange_head) that made the call.
 *
 * Returns   the pointer, which lives as long as the call; NULL when the request came in
 *           another way, the application gave no context, an earlier process began the
 *           call, or the runtime ends. */
SEGUE_API void *segue_call_context(const segue_call *call);

/* ---- 4 Requests -------------------------------------------------------------------- */

/* Gives one member of _meta as JSON text: _meta of the answer by which the request became
 * a task. Call it in on_task or later. For example, the member
 * "io.modelcontextprotocol/model-immediate-response" (2025-11-25, basic/utilities/tasks)
 * is a text to give to the model while the task runs.
 *
 * Returns   SEGUE_E_NOT_FOUND when the server did not send the member, the request is not
 *           a task, or it was resumed by a token. */
SEGUE_API segue_status segue_request_meta(segue_request *request, const char *key,
                                          char *buf, size_t *len);

/* ---- 5 Server ---------------------------------------------------------------------- */

/* Checks an item as segue_server_add does, without a server, so that a mistake is found
 * where the item is declared. The check is stricter in one point: the URI of a resource
 * or template has to be one of RFC 3986, with a scheme and without blanks. A server also
 * accepts other URIs, because a gateway passes on what another server has.
 *
 * options   on_call is not needed. No callback runs, not even free_user.
 * advice    receives a text with static storage when the item is valid and the
 *           specification advises against it, such as a tool whose name has a blank;
 *           otherwise NULL.
 * Returns   SEGUE_E_JSON, SEGUE_E_INVALID. The error names the item and what is wrong. */
SEGUE_API segue_status segue_item_check(int32_t item, const char *json, size_t len,
                                        const segue_item_options *options,
                                        const char **advice, segue_error **error);

/* Checks the options of a server as segue_server_new does, without a runtime, so that a
 * mistake is found where the options are written. No callback runs, not even free_user.
 *
 * Returns   SEGUE_E_INVALID. The error names the option and what is wrong. */
SEGUE_API segue_status segue_server_check(const segue_server_options *options,
                                          segue_error **error);

/* The result of segue_server_stats: a JSON object of objects of integers. Later versions
 * may add members.
 *
 *   operations  now: known (tasks and keyed calls in memory), running (calls that have
 *               not ended), followed (operations of other servers on the store),
 *               lingering (ended operations in memory), recovering (operations that are
 *               taken over from servers that ended). Since the start: calls, tasks,
 *               takenOver (from servers that ended), fenced (operations that another
 *               server took over), letters (commands from other servers), segments (that
 *               handlers sent), segmentBytes
 *   use         now: requests (in flight), logBytes (requests and logs in memory),
 *               replayBytes (events kept for Last-Event-ID), principals, sessions,
 *               streams (that are open). Since the start: streamsOpened, refused
 *               (requests that a limit refused), thinned (progress and log messages that
 *               newer ones replaced, as their client reads slowly)
 *   queues      now: commit (operations with entries to write), commitBytes (size of
 *               these entries), retry (operations whose end could not be written),
 *               questions (requests to the store without an answer)
 *   store       since the start: commits, writes, failures, retries, commitUs (mean,
 *               p50, p99 and max of the duration of a commit, in microseconds); and the
 *               members of segue_store_stats that the store knows: operations, bytes,
 *               evicted and purged
 *   resumes     since the start: streams (that clients came back to), bytes (sent again
 *               on these streams), repaired (fetches of segments that a client had
 *               missed) */

/* Gives the statistics of the server in the JSON form above. */
SEGUE_API segue_status segue_server_stats(segue_server *server, char *buf, size_t *len);

/* Gives the metrics of the server in the text format of Prometheus, version 0.0.4.
 * core/docs/metrics.md lists them. Each number of segue_server_stats is a metric, such as
 * segue_store_commits_total. Further ones count calls by item, era and end, and measure
 * their durations. Arguments, principals, ids, and names that the server does not have
 * are in no label. What was counted of an item leaves the metrics with the item.
 *
 * Returns   SEGUE_E_UNSUPPORTED from a library that was built without metrics. */
SEGUE_API segue_status segue_server_metrics(segue_server *server, char *buf, size_t *len);

/* ---- 5.1 Clients of a server ------------------------------------------------------- */

/* An application that keeps state for each session learns here of which session a call is
 * (segue_call_client), and when the session has ended (on_closed). A gateway passes on to
 * another server what its clients do outside of calls, and passes back what that server
 * sends outside of calls. The functions of this section name a client by its number,
 * which the server gives once. A client is one session: a connection over a byte stream,
 * or over HTTP a session that began with initialize. Over HTTP 2026-07-28 has no
 * sessions, and there each request subscriptions/listen counts as a client. Numbers are
 * of this process: after a restart, and on another server of the same store, a session
 * that continues (seal_key) is another client. */

/* Reports a new client.
 *
 * principal  as segue_call_principal.
 * json       {"protocolVersion","capabilities","clientInfo","isSession"}: what the client
 *            declared. isSession is false for a request subscriptions/listen. Of a
 *            session that began on another server (seal_key), only the revision and the
 *            kinds of questions that the client answers are known; clientInfo is
 *            absent. */
typedef void (*segue_client_open_fn)(void *user, uint64_t client, const char *principal,
                                     const char *json, size_t len);

/* Reports that a client has gone. Its subscriptions have ended without further reports.
 * It is the last report about the client. */
typedef void (*segue_client_closed_fn)(void *user, uint64_t client);

/* Reports that the client has subscribed to a resource (subscribed is 1), or that its
 * subscription has ended (0). The server has answered the client already. A change that
 * was undone before its report is not reported. */
typedef void (*segue_client_subscription_fn)(void *user, uint64_t client, const char *uri,
                                             int32_t subscribed);

/* Reports the lowest level of log messages that the client wants (logging/setLevel). Only
 * the last of several levels is reported. */
typedef void (*segue_client_level_fn)(void *user, uint64_t client, const char *level);

/* Reports that the client has sent notifications/roots/list_changed. */
typedef void (*segue_client_roots_fn)(void *user, uint64_t client);

/* The callbacks may be NULL. */
typedef struct segue_client_events {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_client_open_fn on_open;
    segue_client_closed_fn on_closed;
    segue_client_subscription_fn on_subscription;
    segue_client_level_fn on_level;
    segue_client_roots_fn on_roots_changed;
} segue_client_events;
#define SEGUE_CLIENT_EVENTS_INIT SEGUE_INIT(segue_client_events)

/* Watches the clients of a server from now on.
 *
 * Returns   SEGUE_E_STATE when the server has begun to serve, SEGUE_E_EXISTS when its
 *           clients are watched already. */
SEGUE_API segue_status segue_server_watch_clients(segue_server *server,
                                                  const segue_client_events *events,
                                                  segue_error **error);

/* Returns the number of the client that made the call. The server must watch its clients.
 *
 * Returns   0 over HTTP in 2026-07-28, for a call that an earlier process began, and when
 *           the server does not watch its clients. */
SEGUE_API uint64_t segue_call_client(const segue_call *call);

/* Notifies one client that a resource has changed, if the client has subscribed to it.
 *
 * Returns   SEGUE_OK, also when the client has not subscribed; SEGUE_E_NOT_FOUND when the
 *           client has gone. */
SEGUE_API segue_status segue_client_updated(segue_server *server, uint64_t client,
                                            const char *uri);

/* Sends a log message to one client, outside of calls, if the client wants messages of
 * this level. The message is dropped when the client cannot get it now, because over HTTP
 * it has no stream of its session open, or because it reads too slowly.
 *
 * json      the params of notifications/message, as for segue_call_log_json.
 * Returns   SEGUE_OK, also when the message was dropped; SEGUE_E_NOT_FOUND when the
 *           client has gone; SEGUE_E_JSON, SEGUE_E_INVALID. */
SEGUE_API segue_status segue_client_log(segue_server *server, uint64_t client,
                                        const char *json, size_t len,
                                        segue_error **error);

/* Makes a call by which the server asks the client outside of a request. Ask by
 * segue_call_require_input, as often as max_inputs allows; then end and free the call,
 * whose result reaches no client. A question waits until the client has sent
 * notifications/initialized, and over HTTP until the client has opened the stream of its
 * session. The call is cancelled when the client goes.
 *
 * out       receives the call.
 * Returns   SEGUE_E_NOT_FOUND when the client has gone, SEGUE_E_UNSUPPORTED when it
 *           speaks 2026-07-28, where a server asks only during a request. */
SEGUE_API segue_status segue_client_call(segue_server *server, uint64_t client,
                                         segue_call **out, segue_error **error);

/* ---- 6 Custom transport ------------------------------------------------------------ */

/* The functions of a transport of your own. The transport carries one JSON-RPC message
 * per line, as stdio does. All functions are called on the runtime's I/O thread, without
 * a lock, one at a time. A function of the library that is refused in a callback is
 * refused in these functions too. The handle is valid until `free` is called. */
typedef struct segue_transport_vtable {
    size_t struct_size;
    /* Starts the transport when it is attached. May call segue_transport_feed and
     * segue_transport_closed. */
    void (*start)(void *self, segue_transport *transport);
    /* Sends bytes and returns how many of them it accepted. If it accepted fewer than
     * len, call segue_transport_writable when it can accept bytes again. */
    size_t (*send)(void *self, const char *bytes, size_t len);
    /* Closes the transport: no more bytes will be sent. Call segue_transport_closed
     * afterwards. */
    void (*close)(void *self);
    /* Asks the application to pause or to continue. paused = 1: the library has too much
     * unread input, so feed no more input until the next call, which has paused = 0.
     * Optional. */
    void (*pause)(void *self, int32_t paused);
    /* Connects again after a loss. Returns 0 when the attempt has begun. Without this
     * function (NULL) a loss is final. */
    int32_t (*reopen)(void *self);
    /* Frees the transport. This is the last call. For a transport that was never
     * attached it runs on the thread that frees the handle. */
    void (*free)(void *self);
} segue_transport_vtable;
#define SEGUE_TRANSPORT_VTABLE_INIT SEGUE_INIT(segue_transport_vtable)

/* Makes a transport from your own functions.
 *
 * vtable    copied. self: freed by vtable->free, once.
 * Returns   SEGUE_E_INVALID when start, send or close is missing. */
SEGUE_API segue_status segue_transport_custom(segue_runtime *runtime,
                                              const segue_transport_vtable *vtable,
                                              void *self, segue_transport **out);

/* Hands over bytes that were received.
 *
 * bytes     copied, all or none. They may begin and end anywhere, also inside a message.
 * Returns   SEGUE_E_CLOSED, SEGUE_E_STATE before the transport is attached,
 *           SEGUE_E_WOULD_BLOCK when more than max_queue_bytes (1 MiB) wait already: feed
 *           again after pause(0). */
SEGUE_API segue_status segue_transport_feed(segue_transport *transport, const char *bytes,
                                            size_t len);

/* Tells the library that send can take bytes again. May be called inside send.
 *
 * Returns   SEGUE_E_CLOSED, SEGUE_E_STATE before the transport is attached. */
SEGUE_API segue_status segue_transport_writable(segue_transport *transport);

/* Tells the library that the connection has ended. Bytes that were fed before are still
 * read.
 *
 * Returns   SEGUE_E_CLOSED when it was called before, SEGUE_E_STATE before the transport
 *           is attached. */
SEGUE_API segue_status segue_transport_closed(segue_transport *transport);

/* ---- 6.1 HTTP exchanges by hand ---------------------------------------------------- */

/* An application that has an HTTP server already serves MCP with it: it gives each
 * request to a listener without a socket, and sends the answer that it gets. Sessions,
 * streams, limits, the rules for Host, Origin and CORS, tokens and principals are those
 * of segue_server_listen.
 *
 *   open ---- feed ... end ----------> the request is complete
 *        `--- on_head, on_body ... --> on_end, once, after everything else
 *
 * The answer may come before the request is complete, for example a refusal. */

/* One HTTP request and its answer, which the application carries. */
typedef struct segue_exchange segue_exchange;

/* Opens a listener without a socket.
 *
 * options   NULL = the defaults. address, port, reuse_port and the options of TLS must be
 *           absent. path: NULL = the server has every path that reaches the listener,
 *           except the paths of checks, of metadata and of segue_listener_add.
 *           max_connections limits the open exchanges. idle_timeout_ms and
 *           header_timeout_ms have no meaning. A bearer needs `resource`.
 * out       close and free it as the listener of segue_server_listen; its URL is its
 *           path.
 * Returns   SEGUE_E_INVALID, SEGUE_E_CLOSED when the server is closed, SEGUE_E_IO when a
 *           file of keys or tokens cannot be read. */
SEGUE_API segue_status segue_listener_open(segue_server *server,
                                           const segue_listen_options *options,
                                           segue_listener **out, segue_error **error);

/* A header of a request or an answer. Neither text has a line end. */
typedef struct segue_http_field {
    const char *name;  /* in upper or lower case */
    size_t name_len;   /* SEGUE_TO_NUL in a request: name ends with a NUL */
    const char *value; /* without blanks at its ends */
    size_t value_len;
} segue_http_field;

/* The head of a request, and perhaps its body. */
typedef struct segue_exchange_head {
    size_t struct_size;
    const char *method; /* such as "POST" */
    /* the path below the place where the application has mounted the server, and the
     * query; percent-encoded as the client sent it. For a request to
     * /.well-known/oauth-protected-resource, the whole path */
    const char *target;
    /* all headers. The pseudo-header :authority of HTTP/2 is the Host if there is no
     * other. Headers about the connection and the framing of the body are ignored */
    const segue_http_field *headers;
    size_t header_count;
    /* the client's address, such as "127.0.0.1:4711", "[::1]:4711" or "unix"; NULL = not
     * known, so the client counts as one of another machine */
    const char *peer;
    /* the address at which the client reached the server, in the same forms, or a name.
     * It decides which Host and Origin are allowed by default, as the address of a
     * listener does. NULL = not known: only names of loopback are allowed */
    const char *local;
    int32_t is_tls; /* 1 = the client's connection uses TLS */
    /* the caller that the application has found; then the listener asks for no token and
     * the server's principal function does not run. NULL or "" = the application has
     * found none */
    const char *principal;
    const char *body; /* the first bytes of the body; may be NULL */
    size_t body_len;
    int32_t is_whole; /* 1 = the body is complete, so no feed and end follow */
    /* data of the application about the request, such as what its middleware has found,
     * for segue_call_context; may be NULL. free_context(context) runs once, as a
     * callback, when the exchange and the handlers of its calls have ended. Neither is
     * taken when segue_exchange_open fails. free_context may be NULL */
    void *context;
    segue_free_fn free_context;
} segue_exchange_head;
#define SEGUE_EXCHANGE_HEAD_INIT SEGUE_INIT(segue_exchange_head)

/* Gives the head of the answer, and the bytes of the body that are there already (len may
 * be 0): once, before the first on_body. Names are in lower case. content-length is among
 * them if the length is known, and never transfer-encoding, connection and date. The
 * texts end with a NUL; everything is valid only inside the callback. */
typedef void (*segue_exchange_head_fn)(void *user, segue_exchange *exchange,
                                       int32_t status, const segue_http_field *headers,
                                       size_t count, const char *bytes, size_t len);

/* Gives more bytes of the body, which are valid only inside the callback. At most 256 KiB
 * come before segue_exchange_sent says that bytes were sent; then the answer waits, and
 * the call that makes it waits as for any slow client. */
typedef void (*segue_exchange_body_fn)(void *user, segue_exchange *exchange,
                                       const char *bytes, size_t len);

/* Says that segue_exchange_feed has room again, after SEGUE_E_WOULD_BLOCK. */
typedef void (*segue_exchange_room_fn)(void *user, segue_exchange *exchange);

/* Ends the exchange; free_user(user) follows.
 *
 * status  SEGUE_OK: the answer is complete. SEGUE_E_CLOSED: it is not; without on_head
 *         answer 503, else cut the client's connection, so that the client notices. */
typedef void (*segue_exchange_end_fn)(void *user, segue_exchange *exchange,
                                      segue_status status);

/* on_room may be NULL. */
typedef struct segue_exchange_events {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_exchange_head_fn on_head;
    segue_exchange_body_fn on_body;
    segue_exchange_room_fn on_room;
    segue_exchange_end_fn on_end;
} segue_exchange_events;
#define SEGUE_EXCHANGE_EVENTS_INIT SEGUE_INIT(segue_exchange_events)

/* Gives a request to a listener of segue_listener_open. Everything is copied.
 *
 * events    no callback runs before the function returns.
 * Returns   SEGUE_E_INVALID for a method, target or header that HTTP does not allow, or a
 *           principal that is not UTF-8: answer 400. SEGUE_E_LIMIT when max_connections
 *           exchanges are open, SEGUE_E_CLOSED when the listener is closed: answer 503.
 *           SEGUE_E_STATE for a listener with a socket. */
SEGUE_API segue_status segue_exchange_open(segue_listener *listener,
                                           const segue_exchange_head *head,
                                           const segue_exchange_events *events,
                                           segue_exchange **out, segue_error **error);

/* Gives more bytes of the body.
 *
 * bytes     copied, all or none.
 * Returns   SEGUE_E_WOULD_BLOCK when more than max_queue_bytes (1 MiB) wait already: feed
 *           again after on_room. SEGUE_E_STATE after the end of the body, SEGUE_E_CLOSED
 *           when the answer needs no more of the body: drop the rest. */
SEGUE_API segue_status segue_exchange_feed(segue_exchange *exchange, const char *bytes,
                                           size_t len);

/* Says that the body is complete.
 *
 * Returns   SEGUE_E_STATE when it was complete before, SEGUE_E_CLOSED as for feed. */
SEGUE_API segue_status segue_exchange_end(segue_exchange *exchange);

/* Says that len bytes of the body were sent to the client, or at least taken by a
 * connection that holds few of them. A client that takes nothing for write_timeout_ms is
 * given up.
 *
 * len       not more than on_head and on_body have given and was not said yet.
 * Returns   SEGUE_E_INVALID; SEGUE_OK, also after the end. */
SEGUE_API segue_status segue_exchange_sent(segue_exchange *exchange, size_t len);

/* Says that the client's connection is gone. A call that cannot be resumed is cancelled.
 * on_end follows, and no other callback.
 *
 * Returns   SEGUE_OK, SEGUE_E_CLOSED when the exchange has ended or this was said before.
 */
SEGUE_API segue_status segue_exchange_closed(segue_exchange *exchange);

/* Frees the handle. The exchange continues; its callbacks get the handle, which is then
 * valid only inside the callback. */
SEGUE_API void segue_exchange_free(segue_exchange *exchange);

/* ---- 7 Custom store ---------------------------------------------------------------- */

#define SEGUE_STORE_ID_SIZE 16   /* bytes of the id of an operation */
#define SEGUE_STORE_HASH_SIZE 32 /* bytes of a key or a principal, as a hash */

/* The record of an operation: its constant data and two values that change, ended and
 * purge_ms. The pointers are valid only during the call, so a store must copy their
 * contents. */
typedef struct segue_store_record {
    uint8_t id[SEGUE_STORE_ID_SIZE]; /* id inside the store, never on the wire */
    const char *task_id;             /* id of the task that clients see: unique,
                                        NUL-terminated */
    int32_t has_key;                 /* 1 = the operation has an idempotency_key, which is
                                        unique; 0 = none */
    uint8_t idempotency_key[SEGUE_STORE_HASH_SIZE]; /* a hash; has_key says whether */
    uint8_t principal[SEGUE_STORE_HASH_SIZE];       /* a hash of the owner's name */
    int32_t ended;                                  /* a value of segue_store_ended */
    int64_t created_ms; /* time at which the operation was made; wall clock */
    int64_t purge_ms;   /* time after which the operation may be deleted; wall clock;
                           INT64_MAX = never */
    const char *data;   /* bytes whose meaning the store does not know */
    size_t data_len;
    void *shared; /* for the stores of this library; a store of an application
                           ignores it when it gets a record, and sets it to NULL when it
                           gives one */
} segue_store_record;

/* One entry of an operation's log. Entries never change. */
typedef struct segue_store_entry {
    uint64_t seq;     /* number of the entry: 1, 2, 3 and so on per operation; it stays
                         the same when other entries are dropped */
    uint64_t segment; /* number of the entry's segment, or of the last segment that the
                         entry voids; 0 = none */
    uint64_t event;   /* number of the entry's event + 1; 0 = the entry has no event */
    int32_t kind;     /* a number that the store keeps and does not understand */
    int64_t at_ms;    /* time at which the entry was made; wall clock */
    const char *data; /* bytes whose meaning the store does not know */
    size_t data_len;
} segue_store_entry;

/* Whether an operation has ended. */
enum segue_store_ended {
    SEGUE_STORE_LIVE = 0,  /* the operation has not ended */
    SEGUE_STORE_ENDED = 1, /* the operation has ended; its final entry is in the log */
    SEGUE_STORE_TORN = 2   /* in a claim: the operation has not ended, but the store may
                              have lost its newest entries, which clients may have seen.
                              The server ends the operation instead of running it again */
};

/* The kinds of writes. */
enum segue_store_write_kind {
    SEGUE_STORE_CREATE = 1,  /* makes an operation from `record` */
    SEGUE_STORE_APPEND = 2,  /* adds `entry` to the log of operation `id` */
    SEGUE_STORE_END = 3,     /* ends operation `id`, which may be deleted after
                                purge_ms. entry.seq is 0, or the number of the first
                                entry in this commit. Then earlier entries may be
                                missing, because the store has lost them */
    SEGUE_STORE_DELETE = 4,  /* deletes operation `id` */
    SEGUE_STORE_RELEASE = 5, /* the server gives up the operation with this `id`, which
                                has not ended; the next claim finds the operation */
    SEGUE_STORE_DROP = 6,    /* the entries of operation `id` that have the kind
                                entry.kind and a number up to entry.seq are no longer
                                needed. The last entry of the log is always needed. A
                                store need not delete entries */
    SEGUE_STORE_TAKEN = 7    /* the letters (forwarded commands) of operation `id` up
                                to number entry.seq have been carried out, and their
                                effects are in this or an earlier commit. entry.event:
                                the last number of the log, including this commit. A
                                store that can lose commits returns SEGUE_E_STATE when
                                its log is shorter, and SEGUE_E_NOT_FOUND when it lacks
                                the operation */
};

/* One write of a commit. */
typedef struct segue_store_write {
    int32_t kind; /* a segue_store_write_kind, which says what is used */
    uint8_t id[SEGUE_STORE_ID_SIZE];  /* the operation */
    const segue_store_record *record; /* CREATE: the new operation */
    segue_store_entry entry; /* APPEND: the new entry; END, DROP, TAKEN: numbers */
    int64_t purge_ms;        /* END: when the operation may be deleted; wall clock */
} segue_store_write;

/* Receives one record. Returns 0 to continue, 1 to stop. */
typedef int32_t (*segue_store_record_fn)(void *user, const segue_store_record *record);

/* Receives one entry. Returns 0 to continue, 1 to stop. */
typedef int32_t (*segue_store_entry_fn)(void *user, const segue_store_entry *entry);

/* News: reports of what other instances did to operations. A store that several
 * servers share delivers news to each of them. Each operation has one owner: the store
 * instance that created or claimed it last. Only the owner may write to the operation.
 * Other instances follow the log of the operation and send the owner letters
 * (forwarded commands). */
enum segue_store_news_kind {
    SEGUE_STORE_GREW = 1,    /* another instance wrote to operation `id`, or the
                                operation is gone */
    SEGUE_STORE_LETTER = 2,  /* a forwarded command for operation `id`, which this
                                instance owns; `number` and `data` are set */
    SEGUE_STORE_ORPHANS = 3, /* other instances have ended: a claim will find their
                                operations */
    SEGUE_STORE_MISSED = 4,  /* reports of changes were lost: every followed operation
                                counts as grown */
    SEGUE_STORE_DOUBT = 5    /* commits may be lost, or the lease has expired: the server
                                commits a TAKEN for each operation that it runs, and gets
                                SEGUE_E_FENCED for each operation that another instance
                                took over */
};

/* One item of news. */
typedef struct segue_store_news {
    int32_t kind;                    /* a segue_store_news_kind */
    uint8_t id[SEGUE_STORE_ID_SIZE]; /* the operation, if the kind has one */
    uint64_t number;  /* number of a letter (a forwarded command): higher than the
                        numbers of all earlier letters for that operation */
    const char *data; /* the letter */
    size_t data_len;
} segue_store_news;

/* Receives one item of news (a change that another instance made). Returns 0 to
 * continue, 1 to stop. After 1 the same item is delivered again later. */
typedef int32_t (*segue_store_news_fn)(void *user, const segue_store_news *news);

/* Statistics of a store; -1 = the store does not know the value. */
typedef struct segue_store_stats {
    size_t struct_size;
    int64_t operations; /* number of operations in the store */
    int64_t bytes;      /* number of bytes that the store occupies */
    int64_t evicted;    /* number of operations that were removed early to make room,
                           since the store was opened */
    int64_t purged;     /* number of operations that were removed after their purge_ms,
                           since the store was opened */
} segue_store_stats;
#define SEGUE_STORE_STATS_INIT SEGUE_INIT(segue_store_stats)

/* The functions of a store. Calls come one at a time. A blocking store is called on a
 * separate thread. A non-blocking store is called under the library's lock: it must not
 * call the library. The functions that look into a store call it without that lock. */
typedef struct segue_store_vtable {
    size_t struct_size;
    /* 1 = calls may take long, so the store is called on a separate thread. */
    int32_t blocking;
    /* 1 = owners have leases: while this instance cannot reach the store, other
     * instances may take its operations over, and the store then refuses its writes
     * (SEGUE_E_FENCED). Such a store needs the four functions for news. A commit that
     * fails with SEGUE_E_STORE is repeated, one operation at a time, until it returns
     * another status; until then no failure is reported to a client. The first try may
     * have been applied: a CREATE or APPEND that repeats stored bytes exactly must
     * succeed while this instance owns the operation.
     * 0 = an operation whose commit fails with SEGUE_E_STORE ends with an error. */
    int32_t leased;
    /* 1 = the contents of the store are lost when the process ends. */
    int32_t forgets;
    /* Applies all writes or none; they are durable when it returns SEGUE_OK.
     * SEGUE_E_TIMEOUT: another user of the store did not let it go in time, and nothing
     * was applied. Such a commit is repeated until it returns another status; until then
     * no failure is reported to a client.
     * SEGUE_E_EXISTS: the task id or idempotency key of a CREATE exists.
     * SEGUE_E_STORE_FULL: no room now. SEGUE_E_STATE: an APPEND would repeat a number or
     * leave a hole. SEGUE_E_NOT_FOUND: an APPEND or END to an unknown operation, and in
     * a store that can lose commits also a TAKEN with entry.event; a DELETE, RELEASE,
     * DROP or other TAKEN of an unknown operation succeeds, and so does a RELEASE of an
     * operation that has ended or is not owned. SEGUE_E_FENCED: an APPEND, END, DROP or
     * TAKEN to an operation that another instance owns now, or a repeated CREATE of such
     * an operation. */
    segue_status (*commit)(void *self, const segue_store_write *writes, size_t count);
    /* Finds a record by task id, or by idempotency key when task_id is NULL, and passes
     * it to fn. SEGUE_E_NOT_FOUND when no record matches. */
    segue_status (*find)(void *self, const char *task_id, const uint8_t *idempotency_key,
                         segue_store_record_fn fn, void *user);
    /* Passes the entries of an operation with seq > after to fn, in order. */
    segue_status (*read)(void *self, const uint8_t *id, uint64_t after,
                         segue_store_entry_fn fn, void *user);
    /* Passes to fn the operations that have not ended and whose owner is gone, and makes
     * this store instance their owner. Each operation is passed once: servers that share
     * the handle claim in turn, and an operation belongs to the server that received it
     * until RELEASE. A server claims in portions of 256: when fn has stopped, the
     * operations that were not passed have no owner, and the next claim passes them. An
     * unreadable record is not passed and holds up no other one; the function then
     * returns SEGUE_E_STORE_CORRUPT. */
    segue_status (*claim)(void *self, segue_store_record_fn fn, void *user);
    /* Deletes operations whose purge_ms has passed. *next_ms receives the time of the
     * next call. Optional. */
    segue_status (*purge)(void *self, int64_t now_ms, int64_t *next_ms);
    /* Frees the store. This is the last call. */
    void (*free)(void *self);
    /* Passes the operations of a principal to fn, newest first: sorted by created_ms,
     * then by the bytes of the task id, both descending. The list starts after the given
     * pair (created_ms, task_id), or with the newest operation when task_id is NULL.
     * Optional: without this function a server has no tasks/list. */
    segue_status (*list)(void *self, const uint8_t *principal, int64_t created_ms,
                         const char *task_id, segue_store_record_fn fn, void *user);

    /* The next four functions are for a store to which other processes write too. Set
     * all four or none. */

    /* Sets the function to call when there is news (a change that another instance
     * made). The store may call it from any thread, also inside its other functions,
     * but without holding a lock. NULL = call nothing any more: when set_wake returns,
     * the last call must have returned. set_wake may run at the same time as other
     * functions. */
    void (*set_wake)(void *self, void (*wake)(void *user), void *user);
    /* Starts (on 1) or stops (on 0) the reports (news) that the log of the operation
     * has grown. Returns SEGUE_E_NOT_FOUND when the operation is gone. Earlier entries
     * are not news: they are read after follow has returned. A server that closes
     * stops the news of each operation. When a stop fails, the server skips the
     * remaining operations: their news is ignored, and a start may follow later. */
    segue_status (*follow)(void *self, const uint8_t *id, int32_t on);
    /* Stores a letter (a forwarded command) for the owner of the operation, or for the
     * owner after a claim, until TAKEN. Returns SEGUE_E_NOT_FOUND when the operation is
     * gone, SEGUE_E_TERMINAL when it has ended, and SEGUE_E_LIMIT when 64 letters wait
     * for it. */
    segue_status (*post)(void *self, const uint8_t *id, const char *data, size_t len);
    /* Passes the news to fn. Letters (forwarded commands) come in order, each once
     * while this instance owns the operation; a claim delivers waiting letters again.
     * *within_ms receives the time until the next call without a wake-up; -1 = no such
     * call. The calls also keep the lease of this instance alive. A leased store whose
     * calls may take longer than a lease needs a separate thread for this. */
    segue_status (*news)(void *self, segue_store_news_fn fn, void *user,
                         int64_t *within_ms);

    /* Gives the statistics. Must be fast, because it is called after commits. Optional
     * for every store. */
    void (*stats)(void *self, segue_store_stats *stats);
    /* Returns the newest format of records and entries that a server may write: 1 or 2
     * (core/docs/upgrades.md). A store to which servers of several versions write returns
     * a format that all of them read, and never a lower one than before. May be called at
     * any time from any thread, and must return at once. Optional: without this function
     * servers write the newest format that they know. */
    int32_t (*records)(void *self);
    /* Passes some operations to fn, of any principal and in any order, beginning at
     * *place; 0 = the beginning. *place receives the place where the next call goes on,
     * and 0 when all were passed. Other calls come between two of these, so one call
     * should pass a few hundred operations at most. An operation that is made or deleted
     * meanwhile may be missing, and an operation may be passed twice. An unreadable
     * record is not passed and holds up no other one; the function then returns
     * SEGUE_E_STORE_CORRUPT, and the scan goes on at *place. When fn has stopped, *place
     * is not used any more. Optional: without this function the tools for stores cannot
     * list. */
    segue_status (*scan)(void *self, uint64_t *place, segue_store_record_fn fn,
                         void *user);
    /* Gives the room of deleted operations back to the system. May take long. Optional:
     * segue_store_compact. */
    segue_status (*compact)(void *self);
} segue_store_vtable;
#define SEGUE_STORE_VTABLE_INIT SEGUE_INIT(segue_store_vtable)

/* Makes a store from your own functions.
 *
 * vtable    copied. self: freed by vtable->free, once.
 * options   only the allocator is used; may be NULL.
 * Returns   SEGUE_E_INVALID when commit, find, read or claim is missing, when only some
 *           of the four functions for news are set, or when the store is leased and has
 *           none of them. */
SEGUE_API segue_status segue_store_custom(const segue_store_vtable *vtable, void *self,
                                          const segue_store_options *options,
                                          segue_store **out);

/* ---- looking into a store ----
 *
 * For tools: the operations of a store as JSON texts. The servers of the store may run or
 * not. These functions claim nothing, so interrupted operations stay for the next server.
 * They use the store at once, on the calling thread, and may block. Operations that
 * servers keep for themselves, such as a kept seal_key, are not shown. */

/* Receives one JSON object on one line, valid during the call. May call the library.
 * Returns 0 to continue, 1 to stop. */
typedef int32_t (*segue_store_json_fn)(void *user, const char *json, size_t len);

/* Shows a summary of each operation, the newest first: {"taskId","kind","tool","by",
 * "dialect","status","statusMessage","isError","createdAt","lastUpdatedAt",
 * "deletedAfter","keyed","restartable","entries","segments","bytes","checkpointBytes",
 * "questions","unreadable"}. Times are those of MCP (ISO 8601). kind: "task" or "call".
 * by: the name of the principal. status: as of a task of 2026-07-28. bytes: of the data
 * of all entries of the log. questions: the open ones, {"key","method","params"}. tool,
 * by, dialect, statusMessage and deletedAfter may be missing. restartable: true for a
 * task that can run again from a segment (segue_store_rerun), else missing. unreadable:
 * true when a part is not what a server writes, else missing.
 *
 * Cost      reads the log of each operation that is shown.
 * Returns   SEGUE_E_UNSUPPORTED when the store cannot scan; SEGUE_E_STORE_CORRUPT when
 *           all were shown but those whose records cannot be read; SEGUE_E_NOMEM; a
 *           status of the store. */
SEGUE_API segue_status segue_store_list(segue_store *store, segue_store_json_fn fn,
                                        void *user, segue_error **error);

/* Shows the summary of one operation, with "params", the parameters of the call.
 *
 * Returns   SEGUE_E_NOT_FOUND without such an operation; a status of the store. */
SEGUE_API segue_status segue_store_show(segue_store *store, const char *task_id,
                                        segue_store_json_fn fn, void *user,
                                        segue_error **error);

/* Shows each entry of the log of one operation with a number above `after`, in order:
 * {"seq","kind","at","segment","data"}. kind: segment, fields, replace, status, question,
 * answer, checkpoint, result, error, cancelled, expired, notification, presence, anew
 * (the handler began its blocks anew), task. data: JSON; bytes that are no JSON are in
 * "base64" instead.
 *
 * ended     receives 1 when the operation had ended before its log was read, so that
 *           nothing follows; may be NULL.
 * Returns   SEGUE_E_NOT_FOUND without such an operation; a status of the store. */
SEGUE_API segue_status segue_store_entries(segue_store *store, const char *task_id,
                                           uint64_t after, segue_store_json_fn fn,
                                           void *user, int32_t *ended,
                                           segue_error **error);

/* Sends a command to the server that runs an operation, or to the next one that takes it
 * over: {"cancel":1}, or {"answer":{"key":KEY,"response":RESULT}} for an open question.
 *
 * Returns   SEGUE_OK when the store keeps the command; SEGUE_E_INVALID for another text;
 *           SEGUE_E_NOT_FOUND without such an operation or open question;
 *           SEGUE_E_TERMINAL when the operation has ended; SEGUE_E_LIMIT when 64 commands
 *           wait for it; a status of the store. */
SEGUE_API segue_status segue_store_command(segue_store *store, const char *task_id,
                                           const char *json, size_t len,
                                           segue_error **error);

/* Makes a new task with the arguments and the principal of another one, which may run or
 * have ended, and with its first `segments` segments, and passes its summary to fn. The
 * next server of the store that looks for interrupted operations goes on behind them, as
 * if it took over a task whose server was killed there. Its tool has to be restartable.
 * Without segments it begins anew: without the checkpoints and the answers of the other.
 *
 * Returns   SEGUE_E_NOT_FOUND without such an operation; SEGUE_E_UNSUPPORTED for a call
 *           that is no task, and for a tool not known to be restartable;
 *           SEGUE_E_INVALID when the task has made fewer segments; a status of the
 *           store. */
SEGUE_API segue_status segue_store_rerun(segue_store *store, const char *task_id,
                                         uint64_t segments, segue_store_json_fn fn,
                                         void *user, segue_error **error);

/* Deletes an operation that has ended. Servers that have it in memory may show it until
 * they restart.
 *
 * Returns   SEGUE_E_NOT_FOUND; SEGUE_E_STATE when the operation has not ended; a status
 *           of the store. */
SEGUE_API segue_status segue_store_remove(segue_store *store, const char *task_id,
                                          segue_error **error);

/* ---- archives: all operations of a store as lines ---- */

/* Passes all operations of a store as an archive: lines of JSON, which another store of
 * any kind takes with segue_store_importer_add. Servers may use the store meanwhile; each
 * operation is passed as it is when its turn comes. The archive has all that the store
 * has, also parameters, results and a kept seal_key: keep it as secret as the store.
 * Commands that wait for an operation are not in it.
 *
 * fn        receives each line without its line end; may call the library.
 * Returns   SEGUE_E_UNSUPPORTED when the store cannot scan; SEGUE_E_CANCELLED when fn has
 *           stopped, so that the archive is not whole; SEGUE_E_STORE_CORRUPT when the
 *           archive is whole but for operations that cannot be read; SEGUE_E_NOMEM; a
 *           status of the store. */
SEGUE_API segue_status segue_store_export(segue_store *store, segue_store_json_fn fn,
                                          void *user, segue_error **error);

/* Takes the lines of an archive into a store. One thread at a time may use it. */
typedef struct segue_store_importer segue_store_importer;

/* Makes an importer, which holds a reference to the store. */
SEGUE_API segue_status segue_store_importer_new(segue_store *store,
                                                segue_store_importer **out);

/* Takes the next line of an archive, without its line end. An operation is made in one
 * commit, when its last line has come; a server that looks for interrupted operations
 * then takes over one that has not ended. An operation that the store has already is left
 * as it is.
 *
 * len       SEGUE_TO_NUL = up to the NUL.
 * Returns   SEGUE_E_INVALID for another text, and for an archive of a newer format, and
 *           SEGUE_E_NOMEM: no further line is taken (SEGUE_E_STATE). After any other
 *           status one operation is left out, and the next line may follow:
 *           SEGUE_E_EXISTS when another operation has its task id or key; SEGUE_E_LIMIT
 *           for more than 1,048,576 entries, dropped ones included; SEGUE_E_UNSUPPORTED
 *           when entries of it were dropped, and the store does not delete what is
 *           dropped; a status of the store. */
SEGUE_API segue_status segue_store_importer_add(segue_store_importer *importer,
                                                const char *line, size_t len,
                                                segue_error **error);

/* Frees the importer.
 *
 * made, present, left_out   receive the numbers of the operations that were made, that
 *                           the store had already, and that failed; may be NULL.
 * Returns   SEGUE_E_INCOMPLETE when the last line of the archive did not come: what was
 *           made stays. */
SEGUE_API segue_status segue_store_importer_close(segue_store_importer *importer,
                                                  uint64_t *made, uint64_t *present,
                                                  uint64_t *left_out);

/* Gives the statistics of the store; members that it does not know are -1.
 *
 * stats     begins as SEGUE_STORE_STATS_INIT.
 * Returns   SEGUE_E_INVALID for a struct_size that the library does not know. */
SEGUE_API segue_status segue_store_read_stats(segue_store *store,
                                              segue_store_stats *stats);

/* Gives the room of deleted operations back to the system, so that the file of a SQLite
 * store becomes smaller. Other users of the store wait meanwhile.
 *
 * Returns   SEGUE_E_UNSUPPORTED for a store that cannot do this: Redis does it by itself,
 *           and PostgreSQL uses the room again by itself and gives it back to the system
 *           with VACUUM FULL; SEGUE_E_TIMEOUT while another user of the store does not
 *           let it go; a status of the store. */
SEGUE_API segue_status segue_store_compact(segue_store *store, segue_error **error);

#ifdef __cplusplus
}
#endif

#endif
