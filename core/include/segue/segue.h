/* Segue: MCP (Model Context Protocol) client and server with results that stream,
 * requests that survive a disconnect and tasks that survive a crash.
 *
 * Conventions (said once, true for every function below)
 *   - A function that can fail returns segue_status: 0 is success, a negative value an
 *     error. On failure nothing was taken, no callback will run and out-parameters are
 *     unchanged.
 *   - A NULL handle, a NULL out-parameter or a malformed argument gives SEGUE_E_INVALID;
 *     a handle that was closed gives SEGUE_E_CLOSED; SEGUE_E_NOMEM is always possible.
 *   - Where a function ends with `segue_error **error`, that may be NULL; on failure it
 *     receives the reason, free it with segue_error_free. SEGUE_E_WOULD_BLOCK asks to
 *     wait and has no reason.
 *   - One handle, one owner, one segue_X_free. Free takes NULL, may be called at any
 *     time, also in the handle's own callback, and never implies cancel or close. No use
 *     of a handle may race its free.
 *   - Inputs are copied before return unless the text says "consumed". Names, ids and
 *     tokens are NUL-terminated UTF-8; payloads and JSON are pointer and length and need
 *     no NUL. Text from accessors is NUL-terminated and comes with its length.
 *   - A callback is never run inside the call that caused it, holds no lock, and
 *     callbacks of one runtime run one at a time. Every callback table carries `user` and
 *     `free_user`; free_user runs once, after the last callback. If the call that took
 *     the table fails, nothing was taken and free_user does not run.
 *   - Structs of options and callbacks start with struct_size; fill them with
 *     segue_struct_init and zero means "default". They only grow.
 *   - Thread tags: "any" = from any thread; "dispatch" = from the thread that runs the
 *     runtime; "setup" = one thread, before or after the runtime runs.
 *   - Durations are int64 milliseconds.
 *
 * Caveats
 *   - A build may leave out HTTP, OAuth, SQLite or Redis (CMake: SEGUE_HTTP and so on).
 *     A function that needs a part which is not there returns SEGUE_E_UNSUPPORTED.
 *   - After fork() a runtime works only in the parent; make a new one in the child.
 *   - A write of the library never raises SIGPIPE: around it, and all through
 *     segue_runtime_run, the signal is blocked in the calling thread. Signal handlers and
 *     dispositions are left alone; threads of the library have all signals blocked, and a
 *     child process starts with none blocked or handled.
 *   - SQLite, libev, libwebsockets, libcurl and OpenSSL allocate by their own means,
 *     everything else goes through the runtime's allocator.
 *   - The first listener of a runtime silences libwebsockets' log for the process.
 *   - segue_transport_stdio takes over standard input and output of the process.
 *   - A standard descriptor (0, 1, 2) that is closed stays unusable while the process
 *     lives: segue_runtime_new takes its number, so that nothing else is opened under it.
 */
#ifndef SEGUE_H
#define SEGUE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SEGUE_API __attribute__((visibility("default")))
#else
#define SEGUE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 0 Types ----------------------------------------------------------------------- */

typedef int32_t segue_status;

enum segue_status_value {
    SEGUE_OK = 0,
    SEGUE_E_INVALID = -1,
    SEGUE_E_CLOSED = -2,
    SEGUE_E_REENTRANT = -3,
    SEGUE_E_THREAD = -4,
    SEGUE_E_WOULD_BLOCK = -5,
    SEGUE_E_NOMEM = -6,
    SEGUE_E_VERSION = -7,
    SEGUE_E_NOT_FOUND = -8,
    SEGUE_E_EXISTS = -9,
    SEGUE_E_STATE = -10,
    SEGUE_E_TERMINAL = -11,
    SEGUE_E_LIMIT = -12,
    SEGUE_E_NOT_RESUMABLE = -13,
    SEGUE_E_UNSUPPORTED = -14,
    SEGUE_E_CANCELLED = -15,
    SEGUE_E_TIMEOUT = -16,
    SEGUE_E_TOO_SMALL = -17,
    SEGUE_E_DISCONNECTED = -100,
    SEGUE_E_IO = -101,
    SEGUE_E_SPAWN = -102,
    SEGUE_E_REFUSED = -103,
    SEGUE_E_UNAUTHORIZED = -104,
    SEGUE_E_PROTOCOL = -200,
    SEGUE_E_JSON = -201,
    SEGUE_E_TOO_LARGE = -202,
    SEGUE_E_NEGOTIATION = -203,
    SEGUE_E_INCOMPLETE = -204,
    SEGUE_E_TASK_LOST = -205,
    SEGUE_E_REMOTE = -300,
    SEGUE_E_STORE = -400,
    SEGUE_E_STORE_FULL = -401,
    SEGUE_E_STORE_CORRUPT = -402,
    SEGUE_E_FENCED = -403,
    SEGUE_E_FATAL = -900
};

typedef struct segue_runtime segue_runtime;
typedef struct segue_transport segue_transport;
typedef struct segue_store segue_store;
typedef struct segue_listener segue_listener;
typedef struct segue_bearer segue_bearer;
typedef struct segue_server segue_server;
typedef struct segue_call segue_call;
typedef struct segue_session segue_session;
typedef struct segue_request segue_request;
typedef struct segue_task segue_task;
typedef struct segue_content segue_content;
typedef struct segue_segment segue_segment;
typedef struct segue_error segue_error;
typedef struct segue_hooks segue_hooks; /* segue_ext.h: injected clock and randomness */

/* Releases the `user` of a callback table. Called once, after the table's last
 * callback. */
typedef void (*segue_free_fn)(void *user);

/* ---- 1 Library --------------------------------------------------------------------- */

/* Structs that segue_struct_init knows. */
enum segue_struct_kind {
    SEGUE_STRUCT_RUNTIME_OPTIONS = 1,
    SEGUE_STRUCT_SPAWN_OPTIONS = 2,
    SEGUE_STRUCT_STORE_OPTIONS = 3,
    SEGUE_STRUCT_SERVER_OPTIONS = 4,
    SEGUE_STRUCT_ITEM_OPTIONS = 5,
    SEGUE_STRUCT_CALL_EVENTS = 6,
    SEGUE_STRUCT_SESSION_OPTIONS = 7,
    SEGUE_STRUCT_SESSION_EVENTS = 8,
    SEGUE_STRUCT_REQUEST_OPTIONS = 9,
    SEGUE_STRUCT_REQUEST_EVENTS = 10,
    SEGUE_STRUCT_HOOKS = 11,
    SEGUE_STRUCT_TRANSPORT_VTABLE = 12,
    SEGUE_STRUCT_STORE_VTABLE = 13,
    SEGUE_STRUCT_HTTP_OPTIONS = 14,
    SEGUE_STRUCT_LISTEN_OPTIONS = 15,
    SEGUE_STRUCT_OAUTH_OPTIONS = 16,
    SEGUE_STRUCT_BEARER_OPTIONS = 17
};

/* Returns the library version as text, "major.minor.patch".
 *
 * Returns   a static string, never NULL.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_version(void);

/* Zeroes an options or callback struct and sets its struct_size.
 *
 * ptr       the struct; size = sizeof(*ptr) as the caller was compiled.
 * which     one of segue_struct_kind.
 * Returns   SEGUE_OK, or SEGUE_E_INVALID for an unknown kind or a size too small to hold
 *           struct_size.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_struct_init(void *ptr, size_t size, int32_t which);

/* Returns the stable name of a status, such as "SEGUE_E_CLOSED".
 *
 * Returns   a static string; "SEGUE_E_UNKNOWN" for a value this version does not know.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_status_name(segue_status status);

/* ---- 2 Error ----------------------------------------------------------------------- */

/* Detail of a failure. Out of memory uses one static object, so reporting never
 * allocates. All accessors take NULL. An error given to a callback is borrowed: copy it
 * to keep it. */

/* Returns the status the error stands for; SEGUE_OK for NULL.
 *
 * Returns   the status.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_error_status(const segue_error *error);

/* Returns one line of text for a person.
 *
 * Returns   a string that lives as long as the error; "" for NULL.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_error_message(const segue_error *error);

/* Returns the JSON-RPC error code the peer sent.
 *
 * Returns   the code, 0 when the failure is local.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API int32_t segue_error_rpc_code(const segue_error *error);

/* Returns the `data` member of the peer's JSON-RPC error as JSON text.
 *
 * len       receives the length in bytes; may be NULL.
 * Returns   the text, or NULL when there is none.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_error_data(const segue_error *error, size_t *len);

/* Tells whether the same call may succeed when it is made again.
 *
 * Returns   1 or 0.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API int32_t segue_error_is_retryable(const segue_error *error);

/* Makes a copy that outlives the callback.
 *
 * out       owned by the caller, free with segue_error_free.
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_error_copy(const segue_error *error, segue_error **out);

/* Frees a copied error, or one received from a synchronous call.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_error_free(segue_error *error);

/* ---- 3 Runtime --------------------------------------------------------------------- */

enum segue_log_level {
    SEGUE_LOG_DEBUG = 0,
    SEGUE_LOG_INFO = 1,
    SEGUE_LOG_WARNING = 2,
    SEGUE_LOG_ERROR = 3
};

/* Memory for everything the library allocates itself. `size` is what was asked for at
 * alloc or resize. Called from any thread, also from several at once. May return NULL. */
typedef struct segue_allocator {
    void *(*alloc)(void *user, size_t size);
    void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size);
    void (*release)(void *user, void *ptr, size_t size);
    void *user;
} segue_allocator;

/* One line of log. May be called from any thread, also while the library holds its lock:
 * it must not call back into the library. The text dies when the callback returns. */
typedef void (*segue_log_fn)(void *user, int32_t level, const char *text);

/* Doorbell of a background runtime: there is work for segue_runtime_dispatch. Called from
 * any thread, at most once per dispatch, may only signal; must not call the library. */
typedef void (*segue_wake_fn)(void *user);

typedef struct segue_runtime_options {
    size_t struct_size;
    const segue_allocator *allocator; /* copied; NULL = malloc */
    void *user;                       /* for log and wake */
    segue_log_fn log;
    int32_t log_level; /* lowest level that is logged; SEGUE_LOG_DEBUG is 0 */
    segue_wake_fn on_wake;
    const segue_hooks *hooks; /* copied; tests inject clock and randomness */
    /* One JSON-RPC message that comes in, and one text of JSON that is handed in, which
     * is SEGUE_E_TOO_LARGE beyond; default 64 MiB. */
    int64_t max_message_bytes;
    int32_t max_depth; /* JSON nesting; default 512 */
    int64_t
        max_queue_bytes; /* unsent bytes per connection before producers wait; 1 MiB */
    /* 1 = a background runtime leaves reading pipes to segue_runtime_dispatch while that
     * is called often: wait for segue_runtime_fd, on_wake does not tell of input */
    int32_t lend_input;
} segue_runtime_options;

/* Makes a runtime: one event loop, its timers and its connections.
 *
 * options   NULL = defaults; copied.
 * out       owned by the caller, free with segue_runtime_free.
 * error     optional detail on failure, free with segue_error_free; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_VERSION when options sets a field unknown here, SEGUE_E_IO
 *           when the system refuses a loop or a descriptor.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_new(const segue_runtime_options *options,
                                         segue_runtime **out, segue_error **error);

/* Runs an inline runtime on the calling thread until segue_runtime_stop: input, output
 * and callbacks.
 *
 * Returns   SEGUE_OK once stopped, SEGUE_E_STATE when the runtime runs in the background
 *           or on another thread.
 * Thread    setup
 * Callback  refused (SEGUE_E_REENTRANT)
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_run(segue_runtime *runtime);

/* Makes the runtime a background one: a private thread does input and output, callbacks
 * run only in segue_runtime_dispatch.
 *
 * Returns   SEGUE_OK, SEGUE_E_STATE when it was started or run before, SEGUE_E_IO when no
 *           thread can be had.
 * Thread    setup
 * Callback  refused (SEGUE_E_REENTRANT)
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_start(segue_runtime *runtime);

/* Gives a descriptor that is readable while segue_runtime_dispatch has callbacks to run,
 * and once the runtime was stopped. Level-triggered; wait on it, never read it. For a
 * background runtime: an inline one finds its callbacks in input that only dispatch
 * reads. With lend_input it is also readable while there is input for dispatch to read,
 * which may lead to no callback.
 *
 * fd        receives the descriptor; it belongs to the runtime.
 * Returns   SEGUE_OK, SEGUE_E_STATE once the runtime was run or dispatched inline.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_fd(segue_runtime *runtime, int32_t *fd);

/* Runs callbacks. On an inline runtime this also does input and output. On a background
 * one with lend_input it first reads what has come by stdio, fds and spawn: one wake-up
 * less for each message. When no dispatch comes for 50 ms, and for input in great
 * amounts, the private thread reads as ever. Deadlines heed input that is there.
 *
 * timeout_ms  longest wait for something to do; 0 = do not wait, -1 = no limit.
 * max_events  stop after so many callbacks; 0 = until none is due.
 * ran         receives the number of callbacks; may be NULL.
 * Returns     SEGUE_OK, SEGUE_E_THREAD when another thread is dispatching, SEGUE_E_CLOSED
 *             once the runtime was stopped and has nothing left to deliver.
 * Thread      dispatch
 * Callback    refused (SEGUE_E_REENTRANT)
 * Since       0.1
 */
SEGUE_API segue_status segue_runtime_dispatch(segue_runtime *runtime, int64_t timeout_ms,
                                              int32_t max_events, int32_t *ran);

/* Holds output back until the matching segue_runtime_uncork: what is sent meanwhile, of
 * all conversations and by all threads, leaves in as few writes as it can. For whoever
 * sends several messages in a row, such as a language's event loop once per turn. Without
 * it each message leaves at once; on pipes and sockets of a background runtime it is the
 * sending thread that writes it. Calls nest. Not a promise: a loop that is awake for
 * other reasons takes along what there is. Limits count what is held back; do not wait
 * for answers before uncork.
 *
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_cork(segue_runtime *runtime);

/* Ends what one segue_runtime_cork began; the last one sends what was held back.
 *
 * Returns   SEGUE_OK, SEGUE_E_STATE when nothing is corked.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_uncork(segue_runtime *runtime);

/* Asks the runtime to stop: segue_runtime_run returns, the background thread ends. What
 * is in flight completes with SEGUE_E_CLOSED. Idempotent; does not wait. A signal handler
 * may call this function, and no other of the library; reset the handler before
 * segue_runtime_free.
 *
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_stop(segue_runtime *runtime);

/* Stops the runtime, joins its threads, runs what callbacks are due (on_complete and
 * free_user of everything that lives) on the calling thread, and frees it. Handles of the
 * runtime that were not freed stay valid to free, and only to free.
 *
 * Returns   nothing.
 * Thread    setup
 * Callback  refused (the call is ignored)
 * Since     0.1
 */
SEGUE_API void segue_runtime_free(segue_runtime *runtime);

/* ---- 4 Transport ------------------------------------------------------------------- */

/* A transport carries one conversation. It is attached once, by segue_server_attach or
 * segue_session_open, which consume it. */

/* One line of the child's standard error, without its newline. */
typedef void (*segue_stderr_fn)(void *user, const char *text, size_t len);

typedef struct segue_spawn_options {
    size_t struct_size;
    const char *const *argv;      /* NULL-terminated; argv[0] is looked up in PATH */
    const char *const *env;       /* NULL-terminated "NAME=value"; NULL = inherit */
    const char *working_dir;      /* NULL = inherit */
    int32_t restart;              /* 1 = start it again when it exits */
    int64_t close_timeout_ms;     /* wait after closing its input; default 2000 */
    int64_t terminate_timeout_ms; /* wait after SIGTERM before SIGKILL; default 2000 */
    void *user;
    segue_free_fn free_user;
    segue_stderr_fn on_stderr; /* NULL = the child inherits standard error; /dev/null
                                  where that is closed */
} segue_spawn_options;

/* Makes two transports of one runtime that are connected to each other.
 *
 * Effect    what one end sends the other receives, in order, through the event loop.
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_pair(segue_runtime *runtime, segue_transport **a,
                                            segue_transport **b);

/* Makes a transport of this process's standard input and output, one JSON-RPC message per
 * line (2026-07-28 basic/transports/stdio).
 *
 * Effect    sets both descriptors non-blocking while attached, which whoever shares them
 *           (a terminal, standard error) sees, and restores them at the end.
 * Returns   SEGUE_OK, SEGUE_E_IO when a descriptor is closed.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_stdio(segue_runtime *runtime,
                                             segue_transport **out);

/* Makes a transport of two descriptors (pipes, or one socket given twice), framed as
 * stdio.
 *
 * fd_in, fd_out  consumed on success: closed when the transport ends.
 * Returns   SEGUE_OK, SEGUE_E_INVALID for a descriptor that is not open.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_fds(segue_runtime *runtime, int32_t fd_in,
                                           int32_t fd_out, segue_transport **out);

/* Makes a transport that starts a child process and speaks to its standard input and
 * output.
 *
 * Effect    the child starts when the transport is attached. Closing shuts it down by the
 *           order of the specification: close its input, wait, SIGTERM, wait, SIGKILL.
 * options   copied; user and free_user as for a callback table.
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_INVALID without argv.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_spawn(segue_runtime *runtime,
                                             const segue_spawn_options *options,
                                             segue_transport **out, segue_error **error);

/* Frees a transport that was never attached.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_transport_free(segue_transport *transport);

/* ---- 4.1 HTTP ---------------------------------------------------------------------- */

/* Before a request leaves: say with segue_transport_set_header what it needs, for example
 * a token. status is 0, or 401 or 403 when the server refused the request with the
 * headers that were set: set others and it is sent once more. */
typedef void (*segue_headers_fn)(void *user, segue_transport *transport, int32_t status);

typedef struct segue_http_options {
    size_t struct_size;
    const char *ca_file;        /* PEM; NULL = the certificates of the system */
    const char *cert_file;      /* client certificate, PEM; NULL = none */
    const char *key_file;       /* its key; NULL = in cert_file */
    const char *key_password;   /* NULL = none */
    const char *proxy;          /* NULL = HTTPS_PROXY and NO_PROXY; "" = none */
    const char *unix_socket;    /* connect here, whatever host the URL names */
    int32_t insecure;           /* 1 = certificates are not verified */
    int32_t http1;              /* 1 = HTTP/1.1 even where HTTP/2 is offered */
    int32_t max_connections;    /* requests at once, as many streams, as many that listen
                                  to a session, and as many short messages, which wait
                                  for none of the others; default 256 */
    int64_t connect_timeout_ms; /* default 10000 */
    int64_t silence_timeout_ms; /* a stream that is silent for so long, without even a
                                   keep-alive comment, is taken for broken and resumed;
                                   default 60000, -1 = never */
    void *user;
    segue_free_fn free_user;
    segue_headers_fn on_headers; /* NULL = no more than what was set */
} segue_http_options;

/* Makes a transport to an MCP endpoint (Streamable HTTP, 2025-03-26 to 2026-07-28). Each
 * request travels by itself, over pooled connections; a stream that breaks is resumed,
 * and a call is not sent twice unless it has an idempotency key or was never run. Tools
 * whose x-mcp-header annotations are invalid are left out of tools/list, with a warning
 * in the log.
 *
 * url       http or https.
 * options   NULL = defaults; copied; user and free_user as for a callback table.
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_INVALID for a URL that is none, SEGUE_E_IO when a file of
 *           the options cannot be used.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_http(segue_runtime *runtime, const char *url,
                                            const segue_http_options *options,
                                            segue_transport **out, segue_error **error);

/* Sets a header of all requests of an HTTP transport from now on.
 *
 * name      an HTTP token; not one that the protocol sets itself.
 * value     visible ASCII, spaces and tabs; NULL takes the header out again.
 * transport one that is not attached yet, or the one that on_headers was given.
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_INVALID for a name or value that cannot be sent,
 *           SEGUE_E_STATE for a transport that is no HTTP client, SEGUE_E_LIMIT for more
 *           than 64 headers.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_set_header(segue_transport *transport,
                                                  const char *name, const char *value,
                                                  segue_error **error);

/* Returns a header of the HTTP request whose principal is asked for: inside
 * segue_principal_fn only.
 *
 * name      in any case.
 * Returns   the value, which dies with the callback; NULL when it is missing, was sent
 *           more than once, or the transport is not HTTP. HTTP allows bytes in it that
 *           are no UTF-8.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_transport_header(const segue_transport *transport,
                                             const char *name);

/* Returns who is at the other end: "127.0.0.1:4711", "unix", or, once a client
 * certificate was verified, its subject ("CN=build,O=Example"). Inside segue_principal_fn
 * only.
 *
 * Returns   the text, which dies with the callback; "" when unknown.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_transport_peer(const segue_transport *transport);

/* ---- 4.2 Authorization of a client ------------------------------------------------- */

/* Who is it that a token is asked for? */
enum segue_oauth_grant {
    SEGUE_OAUTH_CODE = 0,     /* a user, who agrees in a browser (with PKCE) */
    SEGUE_OAUTH_CLIENT = 1,   /* the client itself (client_credentials) */
    SEGUE_OAUTH_ASSERTION = 2 /* whom on_assertion names (RFC 7523, section 2.1) */
};

/* A user has to agree: open the URL in a browser. Where it comes back to, redirect_uri,
 * is the application's; what it came back with goes to segue_runtime_authorize. state
 * stands in both URLs. Nothing is called again for this URL; requests wait meanwhile. */
typedef void (*segue_authorize_fn)(void *user, const char *url, const char *state);

/* Asks for a JWT by which the authorization server, `issuer`, is told for whom a token to
 * the resource shall be: the token of a workload, or what an identity provider gave for
 * this server.
 *
 * len       receives the length.
 * Returns   the text, which must live until the next callback of the table; NULL when
 *           there is none. */
typedef const char *(*segue_assertion_fn)(void *user, const char *issuer,
                                          const char *resource, size_t *len);

/* Asks for what on_save was given last under this key, here or in another process.
 *
 * len       receives the length.
 * Returns   the text, which must live until the next callback of the table; NULL when
 *           there is none. */
typedef const char *(*segue_load_fn)(void *user, const char *key, size_t *len);

/* Keep this text, which replaces what was kept under the key. It is JSON of the
 * library's and holds secrets. Keys name an endpoint or an authorization server. */
typedef void (*segue_save_fn)(void *user, const char *key, const char *json, size_t len);

typedef struct segue_oauth_options {
    size_t struct_size;
    int32_t grant;             /* segue_oauth_grant */
    const char *client_id;     /* when the client was registered beforehand */
    const char *client_secret; /* of client_id */
    const char *private_key;   /* PEM: the client signs instead (private_key_jwt) */
    const char *issuer;        /* that knows client_id; no other gets it. NULL = any that
                                  the server names */
    const char *client_metadata_url; /* https: what stands there describes the client, and
                                        the URL is its id where that is supported */
    const char *client_name;         /* in a registration; default "segue" */
    const char *redirect_uri;        /* https, loopback, or a scheme of the application */
    const char *scope;               /* asked for where the server names none */
    const char *auth_method;         /* of the token endpoint, e.g. "client_secret_post";
                                        NULL = what both sides know */
    int32_t no_registration;         /* 1 = no dynamic registration */
    /* 1 = what the server names for authorization (metadata, registration, tokens) may
     * be at addresses that are not public. 0 = only the endpoint's own address, the host
     * of issuer, and, for an endpoint on this machine, this machine may be that */
    int32_t allow_private_addresses;
    int64_t consent_timeout_ms; /* wait for segue_runtime_authorize; default 600000 */
    void *user;
    segue_free_fn free_user;
    segue_authorize_fn on_authorize;
    segue_assertion_fn on_assertion;
    segue_load_fn on_load; /* NULL = nothing is kept beyond the transport's life */
    segue_save_fn on_save;
} segue_oauth_options;

/* Has an HTTP transport get, renew and send access tokens by itself (2026-07-28
 * basic/authorization): when the server answers 401, or 403 for the lack of a scope, the
 * request waits for a token and goes again; when none is to be had it ends with
 * SEGUE_E_UNAUTHORIZED. Tokens go to the transport's endpoint only, by https, or to this
 * machine.
 *
 * transport of segue_transport_http, not attached yet.
 * options   copied; user and free_user as for a callback table. error: may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_INVALID when the options do not go together, or the URL is
 *           neither https nor on this machine, SEGUE_E_STATE for a transport that is no
 *           HTTP client, was attached, or sets Authorization, SEGUE_E_EXISTS when it was
 *           called before.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_transport_set_oauth(segue_transport *transport,
                                                 const segue_oauth_options *options,
                                                 segue_error **error);

/* Hands in the URL that a browser was sent back to, with its code, state and iss, or an
 * error. Whose it is tells the state; what it is worth, the requests that wait.
 *
 * redirect_url  or what stands behind its question mark.
 * Returns   SEGUE_OK when it was taken, SEGUE_E_NOT_FOUND when nobody waits for this
 *           state (any more), SEGUE_E_INVALID when it has none or cannot be read.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_runtime_authorize(segue_runtime *runtime,
                                               const char *redirect_url);

/* ---- 5 Store ----------------------------------------------------------------------- */

/* Where operations that outlive a connection are kept. One store may serve several
 * servers and several runtimes. segue_ext.h has the interface for stores of your own. */

enum segue_durability {
    SEGUE_DURABILITY_NORMAL = 0, /* survives a crash of the process */
    SEGUE_DURABILITY_FULL = 1 /* survives a crash of the machine: one sync per commit */
};

typedef struct segue_store_options {
    size_t struct_size;
    const segue_allocator *allocator; /* copied; NULL = malloc */
    int32_t durability;               /* sqlite: segue_durability */
    int64_t max_bytes;                /* memory: payload bytes kept, default 256 MiB */
    int64_t busy_timeout_ms;          /* sqlite: wait for another process, default 5000 */
    int64_t timeout_ms; /* redis: a call, connecting and repeating in it, default 5000 */
    int64_t lease_ms;   /* redis: silence until others take over, default 10000; >= 100 */
    int64_t max_principal_operations; /* kept of one principal at most */
    int64_t max_principal_bytes;      /* ... with their logs; both default to no bound */
} segue_store_options;

/* Makes a store in memory. When max_bytes is reached the oldest ended operations are
 * evicted; when none is left an append fails with SEGUE_E_STORE_FULL. The same, when a
 * new operation takes a principal over its bounds, for the operations of that principal.
 * It ends with the process: over segue_transport_stdio, whose client cannot come back to
 * the same process, a server on it takes no idempotency keys.
 *
 * options   NULL = defaults; copied.
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_store_memory(const segue_store_options *options,
                                          segue_store **out);

/* Opens or creates a SQLite file as a store (WAL, group commit on a thread of its own).
 * Several processes of one machine may share it, each with a store of its own. Bounds of
 * a principal are kept as in memory; the log of an operation counts once it has ended.
 *
 * path      file name; created when absent.
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_STORE when it cannot be opened, SEGUE_E_STORE_CORRUPT when
 *           the file is damaged, of a newer format or not a Segue store.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_store_sqlite(const char *path,
                                          const segue_store_options *options,
                                          segue_store **out, segue_error **error);

/* Opens a store on a Redis server (5 or newer, maxmemory-policy noeviction), which many
 * servers may share. What it survives is a setting of Redis: appendfsync always loses
 * nothing, everysec may lose the last second, without AOF all since the last snapshot.
 *
 * url       redis://[[user]:password@]host[:port][/db], rediss:// (TLS; ?ca=file) or
 *           unix:///path[?db=0&user=u&password=p]; ?prefix=name for a store of its own.
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_STORE when it cannot be reached, refuses or would evict,
 *           SEGUE_E_STORE_CORRUPT when what is there is of a newer format,
 *           SEGUE_E_UNSUPPORTED for too old a server, or a hiredis without TLS.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_store_redis(const char *url,
                                         const segue_store_options *options,
                                         segue_store **out, segue_error **error);

/* Gives the handle up. The store closes when the last server that uses it is gone.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_store_free(segue_store *store);

/* ---- 6 Content --------------------------------------------------------------------- */

/* The blocks of a result, in the making. Not thread-safe: one thread at a time. */

/* Makes an empty content.
 *
 * runtime   whose allocator is used; the content may outlive it.
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_new(segue_runtime *runtime, segue_content **out);

/* Adds a text block, {"type":"text"}.
 *
 * text      UTF-8.
 * Returns   SEGUE_OK, SEGUE_E_INVALID when the text is not valid UTF-8.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_add_text(segue_content *content, const char *text,
                                              size_t len, segue_error **error);

/* Adds an image or audio block; the bytes are encoded as base64.
 *
 * type      "image" or "audio".
 * mime_type such as "image/png".
 * Returns   SEGUE_OK, SEGUE_E_INVALID for another type.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_add_blob(segue_content *content, const char *type,
                                              const char *mime_type, const void *data,
                                              size_t len, segue_error **error);

/* Adds a block of any type as JSON text: embedded resource, resource link, one of your
 * own. Or, for the result of resources/read or prompts/get, a whole item of its list.
 *
 * json      one JSON object with a string member "type"; or with "uri" and "text" or
 *           "blob"; or with "role" and a block as its "content". A block of a type that
 *           the protocol knows has the members that this type requires; one of another
 *           type passes as it is.
 * Returns   SEGUE_OK, SEGUE_E_JSON when it is not valid JSON, SEGUE_E_INVALID when it is
 *           not such an object.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_add_json(segue_content *content, const char *json,
                                              size_t len, segue_error **error);

/* Adds contents of a resource that are text, for the result of resources/read.
 *
 * uri       of the resource, or of a part of it.
 * mime_type NULL = not told.
 * text      UTF-8.
 * Returns   SEGUE_OK, SEGUE_E_INVALID when a text is not valid UTF-8.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_add_resource_text(segue_content *content,
                                                       const char *uri,
                                                       const char *mime_type,
                                                       const char *text, size_t len,
                                                       segue_error **error);

/* Adds contents of a resource that are bytes; they are encoded as base64.
 *
 * uri       of the resource, or of a part of it.
 * mime_type NULL = not told.
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_add_resource_blob(segue_content *content,
                                                       const char *uri,
                                                       const char *mime_type,
                                                       const void *data, size_t len,
                                                       segue_error **error);

/* From here on each block that is added is a message of a prompt, said by this role.
 *
 * role      "user" or "assistant"; NULL = blocks are blocks again.
 * Returns   SEGUE_OK, SEGUE_E_INVALID for another role.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_set_role(segue_content *content, const char *role);

/* Sets structuredContent, replacing an earlier value.
 *
 * json      any JSON value.
 * Returns   SEGUE_OK, SEGUE_E_JSON when it is not valid JSON.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_set_structured(segue_content *content,
                                                    const char *json, size_t len,
                                                    segue_error **error);

/* Marks the result as a tool error (`isError`), which a model sees and can act on.
 *
 * is_error  1 or 0.
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_content_set_error(segue_content *content, int32_t is_error);

/* Frees a content.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_content_free(segue_content *content);

/* ---- 7 Segment --------------------------------------------------------------------- */

/* One piece of a streamed result; lives inside on_segment only. */

/* Returns the segment's number: 1, 2, 3, ... without holes.
 *
 * Returns   the number; 0 for NULL.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API uint64_t segue_segment_number(const segue_segment *segment);

/* Returns the place of the segment in the content of the result, from 0. Several segments
 * may have one place: the text of the later ones goes on where that of the first ends.
 *
 * Returns   the place; 0 for NULL.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API uint64_t segue_segment_index(const segue_segment *segment);

/* Tells whether what was delivered before this segment is void: the tool has replaced it.
 *
 * Returns   1 or 0.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API int32_t segue_segment_replaces(const segue_segment *segment);

/* Returns the content block's type, such as "text".
 *
 * Returns   a string that dies with the callback; "" when the block has none.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_segment_get_type(const segue_segment *segment);

/* Returns the content block as the server sent it, JSON text.
 *
 * len       receives the length in bytes; may be NULL.
 * Returns   the text; dies with the callback.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_segment_data(const segue_segment *segment, size_t *len);

/* Returns the decoded text of a text block.
 *
 * len       receives the length in bytes; may be NULL. The text may hold NUL bytes.
 * Returns   the text, or NULL when the block is not a text block; dies with the callback.
 * Thread    dispatch
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_segment_text(const segue_segment *segment, size_t *len);

/* ---- 8 Server ---------------------------------------------------------------------- */

/* Who is at the other end? Called once for each attached transport, and over HTTP for
 * each request, before its body is read, where segue_transport_header and
 * segue_transport_peer tell what it says of itself. Operations belong to the principal
 * that made them; another one cannot see that they exist.
 *
 * principal receives a stable name in UTF-8; NULL or "" means "nobody in particular". A
 *           name that is no UTF-8 refuses. The text must live until the callback
 *           returns.
 * Returns   SEGUE_OK; anything else refuses: the connection is closed, an HTTP request
 *           answered 401. */
typedef segue_status (*segue_principal_fn)(void *user, segue_transport *transport,
                                           const char **principal);

/* What is asked of segue_validate_fn. */
enum segue_validation {
    SEGUE_VALIDATE_ARGUMENTS = 1, /* of a call, against the tool's inputSchema */
    SEGUE_VALIDATE_RESULT = 2     /* structuredContent, against its outputSchema */
};

/* Does a value fit a JSON Schema? The library has no validator of its own: this is where
 * an application puts the one it trusts. On a server it is asked before on_call of a
 * tool, and after its end about what it gave; in a session, before on_complete, about
 * what tools gave whose schemas tools/list has told. Bound its work, and resolve no $ref
 * over the network: a server's schema is a stranger's. Without "$schema" it is 2020-12.
 *
 * tool      its name. schema, value: JSON texts, valid until it returns.
 * reason    room for size bytes, empty: one line of UTF-8 with a NUL, why not.
 * Returns   SEGUE_OK when it fits, SEGUE_E_INVALID when it does not; anything else when
 *           that cannot be told, as SEGUE_E_UNSUPPORTED for another dialect of schemas or
 *           a $ref that was not resolved. */
typedef segue_status (*segue_validate_fn)(void *user, const char *tool, int32_t what,
                                          const char *schema, size_t schema_len,
                                          const char *value, size_t value_len,
                                          char *reason, size_t size);

/* For whom a result may be kept by clients and what is between (2026-07-28). */
enum segue_cache_scope {
    SEGUE_CACHE_PRIVATE = 0, /* for the one that asked */
    SEGUE_CACHE_PUBLIC = 1   /* for anybody: nothing in it depends on who asks */
};

/* The last conversation of the server has ended, each time it happens, and no listener
 * may bring another: those that were closed have drained. Calls and tasks may still run:
 * a program that serves its standard input stops here, a daemon goes on. */
typedef void (*segue_idle_fn)(void *user);

/* How a server may show its operations, beside the plain response. Each is a switch of
 * its own (R-C-16); what a client does not ask for it never sees. */
enum segue_dialect {
    SEGUE_DIALECT_TASKS_2025 = 1,   /* tasks of 2025-11-25 (SEP-1686); on */
    SEGUE_DIALECT_STREAMING = 2,    /* SEP-1905: their segments as they are made; on */
    SEGUE_DIALECT_DRAFT_TASKS = 4,  /* tasks of DRAFT-2026-v1 (SEP-2557), and that
                                        version with them; off */
    SEGUE_DIALECT_TASKS = 8,        /* io.modelcontextprotocol/tasks (SEP-2663); on */
    SEGUE_DIALECT_TASK_EVENTS = 16, /* tasks/stream (SEP-2694); on */
    SEGUE_DIALECT_PARTIAL = 32,     /* PR 776: a result in several responses; on */
    SEGUE_DIALECT_PARTIAL_RESULTS = 64, /* SEP-2998: notifications with what is there of
                                           a result; on */
    SEGUE_DIALECT_RESUMABLE = 128,    /* SEP-975: requests/resume, for calls of tools that
                                      are SEGUE_TOOL_RESUMABLE; on */
    SEGUE_DIALECT_IMMEDIATE = 256,    /* SEP-1905: a result that is ready is the answer to
                                        a call that asked for a task; on */
    SEGUE_DIALECT_ONE_RESPONSE = 512, /* SEP-1905 without a second response to a request:
                                        segments are fetched (R-1905-66); off */
    SEGUE_DIALECT_TRACKING = 1024, /* an immediate result has a task (R-1905-13); off */
    SEGUE_DIALECT_UNDECLARED_MODES = 2048, /* the list of a request counts also when its
                                        client declared no modes (R-1905-8); off */
    SEGUE_DIALECT_FROM_START = 4096, /* tasks/result takes _meta["dev.segue/fromSeqNr"]: 1
                                        (R-1905-32); off */
    SEGUE_DIALECT_PARTIAL_INDEX = 8192 /* PR 776: each response says where its blocks
                                           stand in the result (R-776-10); on */
};

typedef struct segue_server_options {
    size_t struct_size;
    const char *name;         /* default "segue" */
    const char *version;      /* default "0" */
    const char *title;        /* NULL = none */
    const char *instructions; /* NULL = none */
    segue_store *store;       /* shared; NULL = a memory store of its own */
    void *user;
    segue_free_fn free_user;
    segue_principal_fn principal;  /* NULL = everybody is nobody in particular */
    int32_t page_size;             /* items per page of a list; default 1000 */
    int64_t max_result_bytes;      /* collected for a plain call; default 16 MiB */
    int64_t max_log_bytes;         /* log of one operation; default 64 MiB */
    int64_t max_segments;          /* segments of one operation; default 1,000,000 */
    int32_t max_inputs;            /* questions of one operation; default 64 */
    int32_t max_tasks;             /* live tasks per principal, and calls that ask; 100 */
    int32_t max_requests;          /* requests in flight per connection; default 1024 */
    int32_t max_streams;           /* open tasks/stream and listen per connection; 256 */
    int64_t max_ttl_ms;            /* longest time to live of a task; default 24 h */
    int64_t grace_ms;              /* an expired task stays readable; default 5 min */
    int32_t lookups_per_second;    /* failed task look-ups per principal; default 100 */
    segue_idle_fn on_idle;         /* NULL = nobody wants to know */
    int64_t input_wait_ms;         /* a plain call waits for answers; default 10 min */
    uint32_t dialects_on;          /* segue_dialect bits, beside those that are on */
    uint32_t dialects_off;         /* segue_dialect bits; wins over dialects_on */
    int32_t fetches_per_second;    /* tasks/result with lastSeqNr, per principal, beyond
                                     which callers are told to wait; default 1000 */
    segue_validate_fn on_validate; /* NULL = schemas are told, not checked */
    int64_t list_ttl_ms;           /* lists, and what discover says, stay fresh so long
                                      for clients of 2026-07-28; default 0 = not at all */
    int32_t list_scope;            /* ... for: segue_cache_scope */
    const void *seal_key; /* seal_key_len = 32 bytes, secret and random; NULL = one of the
                             server's own. Servers with the same key open each other's
                             cursors, take up sessions (Mcp-Session-Id) that began at
                             another, and take over each other's calls that ask: the tool
                             runs from its start and finds the answers given so far */
    size_t seal_key_len;
    const void *seal_key_before; /* opens too, but seals nothing: to replace a key */
    size_t seal_key_before_len;
    int64_t question_ttl_ms; /* clients of 2025-11-25 that take it are asked as
                                     tasks which live so long; 0 = default, never */
    int64_t max_events; /* how many events of a task can be streamed again; 0 = default,
                           all. Who comes for older ones is told that they are gone; the
                           result has what they said. Those that segue_call_replace made
                           void leave the log, and count no more against its limit */
    int64_t max_event_bytes;        /* ... and so much of their payloads; 0 = all */
    int64_t event_ttl_ms;           /* ... and those that are no older; 0 = all */
    int64_t max_principal_requests; /* in flight, of one principal over all connections;
                                       default 65,536 */
    int64_t max_principal_bytes;    /* of requests and logs of one principal in memory;
                                       default 256 MiB. Who is beyond it begins no
                                       further call, and a plain call gets no further
                                       segment; a task waits for its store from half of
                                       it on. What looks after a call that runs, or ends
                                       it, is let in */
    int64_t max_server_requests;    /* the same of all together; default 262,144 */
    int64_t max_server_bytes;       /* ... default 1 GiB */
    int64_t first_turn_ms;          /* segue_call_hold_turn: how long a first turn may be;
                                       default 20 */
} segue_server_options;

/* What a server serves. Tools are always announced; resources, prompts and completion
 * are announced to clients that connect when there is, or was, such an item. */
enum segue_item {
    SEGUE_ITEM_TOOL = 1,              /* has a "name" */
    SEGUE_ITEM_RESOURCE = 2,          /* a "uri" and a "name" */
    SEGUE_ITEM_RESOURCE_TEMPLATE = 3, /* a "uriTemplate" and a "name" */
    SEGUE_ITEM_PROMPT = 4,            /* a "name", and "arguments" if it takes any */
    SEGUE_ITEM_QUESTION = 5           /* of the host of a session (segue_session_options):
                                         a "method", "sampling/createMessage" or
                                         "elicitation/create" */
};

/* Flags of a tool. */
enum segue_tool_flag {
    SEGUE_TOOL_INCREMENTAL = 1, /* its output comes in pieces */
    SEGUE_TOOL_RESTARTABLE = 2, /* after a crash it is run again, from its last segment */
    SEGUE_TOOL_UNSTOPPABLE = 4, /* tasks/cancel has no effect on its tasks; but 2025-11-25
                                   wants every task to be cancelled then */
    SEGUE_TOOL_RESUMABLE = 8    /* before 2026-07-28, clients that declare
                                   resumableRequests may come again for the answer to a
                                   call when they were cut off (SEP-975) */
};

/* May a call of the tool become a task, an operation that outlives the connection? */
enum segue_task_policy {
    SEGUE_TASK_NEVER = 0,
    SEGUE_TASK_MAY = 1, /* a task for clients that can take one, else a plain call */
    SEGUE_TASK_MUST = 2 /* clients that cannot take one are refused (-32021) */
};

/* Runs a tool, reads a resource, makes a prompt or completes an argument. `call` is owned
 * by the handler from here on: it ends the call by segue_call_complete or
 * segue_call_fail, now or later, on any thread, and frees it. In an inline runtime the
 * handler runs on the I/O thread: long work belongs elsewhere. */
typedef void (*segue_call_fn)(void *user, segue_call *call);

typedef struct segue_item_options {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_call_fn on_call;
    int32_t flags;               /* segue_tool_flag; this and the next four: tools */
    int32_t task;                /* segue_task_policy */
    int64_t ttl_ms;              /* of its tasks; default 1 h */
    int64_t poll_ms;             /* poll interval told to clients; default 1000 */
    int64_t promote_after_ms;    /* MAY: become a task after so long; 0 = at once */
    segue_call_fn on_completion; /* a prompt, or a template: suggests values of an
                                 argument (segue_call_set_completion); NULL = none */
    int64_t read_ttl_ms;         /* a resource, or a template: what is read stays fresh so
                                    long, unless the call says otherwise; default 0 */
    int32_t read_scope;          /* ... for: segue_cache_scope */
    const char *scopes;          /* separated by blanks: over HTTP a caller's token needs
                                    all of them (403 otherwise), and without
                                    authorization there nobody gets in; over stdio and
                                    other byte streams they mean nothing; NULL = none */
    int64_t resume_min_wait_ms;  /* SEGUE_TOOL_RESUMABLE: a client that was cut off waits
                                    so long before it comes again; 0 = it is not told */
    int64_t resume_max_wait_ms;  /* ... and comes within this time, or the call is
                                    cancelled; default 10 min, -1 = nothing is promised */
} segue_item_options;

/* Makes a server: tools, resources and prompts, and the operations they run.
 *
 * options   NULL = defaults; copied; the store is shared, not consumed.
 * error     optional detail, such as the option that is out of range; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_INVALID for an option that is out of range.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_new(segue_runtime *runtime,
                                        const segue_server_options *options,
                                        segue_server **out, segue_error **error);

/* Adds an item. Attached clients that listen are told (list_changed).
 *
 * item      segue_item.
 * json      the item as it is listed, e.g.
 *           {"name":"add","inputSchema":{"type":"object"}}.
 * options   copied; on_call is required.
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_JSON, SEGUE_E_INVALID when the item lacks what it needs, a
 *           template or schema is none or an option is not for it, SEGUE_E_EXISTS when
 *           there is one of its kind and name, URI or template.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_add(segue_server *server, int32_t item,
                                        const char *json, size_t len,
                                        const segue_item_options *options,
                                        segue_error **error);

/* Removes an item. Calls that run go on.
 *
 * name      its name; of a resource its URI, of a template its text.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_remove(segue_server *server, int32_t item,
                                           const char *name);

/* Tells the clients that subscribed to a resource that it has changed. Each is told once,
 * however often that happens before it can be told.
 *
 * uri       as the clients named it; there need be no such item.
 * Returns   SEGUE_OK, also when nobody subscribed.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_resource_updated(segue_server *server,
                                                     const char *uri);

/* What segue_server_stats says: an object of objects of integers. There may be more of
 * them with time.
 *
 *   operations  known (tasks and keyed calls in memory), running (handlers), followed
 *               (of other servers on the store), lingering (ended), recovering; and since
 *               the start: calls, tasks, takenOver (of servers that had gone), fenced
 *               (that another server had taken over), letters (from other servers)
 *   use         requests (in flight), logBytes (requests and logs in memory), replayBytes
 *               (kept for Last-Event-ID), principals, sessions; refused (by a limit)
 *   queues      commit (operations with something to write), commitBytes, retry (whose
 *               end could not be written), questions (to the store)
 *   store       commits, writes, failures, commitUs (mean, p50, p99, max: microseconds);
 *               what the store knows of: operations, bytes, evicted, purged
 *   resumes     streams (that clients came back to), bytes (sent again for that),
 *               repaired (fetches of segments that a client had missed) */

/* Says how the server is, as JSON (above).
 *
 * buf       receives the text and a NUL; NULL = only the length is wanted.
 * len       room in buf; receives the length without the NUL.
 * Returns   SEGUE_OK, SEGUE_E_TOO_SMALL, SEGUE_E_NOMEM.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_stats(segue_server *server, char *buf, size_t *len);

/* Serves the client at the other end of a transport. The first attach also recovers what
 * an earlier process left in the store: restartable tools run again, other operations
 * fail.
 *
 * transport consumed on success.
 * Returns   SEGUE_OK, SEGUE_E_STATE when the transport was attached before,
 *           SEGUE_E_INVALID when it belongs to another runtime.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_attach(segue_server *server,
                                           segue_transport *transport,
                                           segue_error **error);

/* Ends all connections after what is queued has been sent. Tasks stay in the store.
 *
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_close(segue_server *server);

/* Gives the handle up. The server lives while it has connections or running calls.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_server_free(segue_server *server);

/* ---- 8.1 Listening ----------------------------------------------------------------- */

typedef struct segue_bearer_options segue_bearer_options; /* 8.2 */

typedef struct segue_listen_options {
    size_t struct_size;
    const char *address; /* "127.0.0.1" (default), "::1", "0.0.0.0", "unix:/run/x.sock",
                            "systemd" or "systemd:NAME" for an inherited socket */
    int32_t port;        /* 0 = one that is free */
    int32_t reuse_port;  /* 1 = several runtimes share the port (SO_REUSEPORT) */
    const char *path;    /* of the endpoint; default "/mcp" */
    const char *health_path;    /* GET answers 200 while the server serves; NULL = none */
    const char *cert_file;      /* PEM chain: TLS 1.2 or newer; NULL = plain text */
    const char *key_file;       /* NULL = in cert_file */
    const char *client_ca_file; /* client certificates are asked for and verified */
    int32_t client_cert_required; /* 1 = no connection without one */
    const char *hosts;   /* comma-separated names that Host may have; "*" = any; NULL = on
                            loopback its own names, elsewhere localhost and addresses,
                            with TLS or bearer any */
    const char *origins; /* comma-separated; "*" = any; NULL = those of loopback,
                            elsewhere that of Host */
    int32_t cors;        /* 1 = browsers of allowed origins may call */
    int32_t unauthenticated_tasks; /* 1 = tasks also for callers from other machines whom
                                      no principal function names (R-2557-53) */
    int64_t max_header_bytes;      /* of one request; default 32 KiB */
    int32_t max_connections;       /* default 16384 */
    int32_t max_streams;           /* open event streams per principal; default 1024 */
    int32_t max_sessions;     /* wire sessions of the handshake eras; default 10000 */
    int64_t session_idle_ms;  /* such a session ends unused; default 30 min */
    int64_t max_replay_bytes; /* of the events of one answer that such a session keeps for
                                  Last-Event-ID; who lacks a part of the answer is told
                                  410; default 1 MiB */
    int64_t idle_timeout_ms;  /* between requests; default 75000 */
    int64_t header_timeout_ms; /* for a request's head, and before that for the handshake
                                  of TLS; default 10000 */
    int64_t body_timeout_ms;   /* for its body; default 30000 */
    int64_t write_timeout_ms;  /* a peer that takes nothing; default 60000 */
    int64_t keepalive_ms;      /* comment on a silent stream; default 15000 */
    int64_t stream_after_ms;   /* an answer that takes longer becomes a stream, so that
                                  proxies see life; default 200 */
    int64_t drain_ms;          /* calls may end so long after close; default 10000 */
    const segue_bearer_options *bearer; /* every caller needs a token (8.2), and the
                                           principal function is not asked; NULL = no */
} segue_listen_options;

/* Serves clients over HTTP: MCP at one path of one listening socket, all revisions of
 * Streamable HTTP at once.
 *
 * options   NULL = defaults; copied.
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_IO when the address cannot be had or a certificate not be
 *           used, SEGUE_E_INVALID for an address or limit that is none.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_server_listen(segue_server *server,
                                           const segue_listen_options *options,
                                           segue_listener **out, segue_error **error);

/* Returns the URL of the endpoint, such as "http://127.0.0.1:40123/mcp"; for a Unix
 * socket "unix:/run/x.sock:/mcp".
 *
 * Returns   the text, which lives as long as the handle; "" for NULL.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_listener_url(const segue_listener *listener);

/* Reads the certificate files again, for connections to come, and the key set of
 * jwks_file.
 *
 * error     optional detail; may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_IO when they cannot be used: the ones before stay in force;
 *           SEGUE_E_STATE with neither TLS nor jwks_file.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_listener_reload(segue_listener *listener,
                                             segue_error **error);

/* Stops listening. Idle connections close; calls may end within drain_ms. Nothing new is
 * begun: it is refused with 503 and "server_ending", and clients send it to the next
 * server. As long as calls run, who was cut off from one may come back for the rest, with
 * a token, a task id, a key or an event's id; where the store ends with the process, also
 * for a result that was not fetched yet. A socket that others share (reuse_port, systemd)
 * closes at once instead. Streams for changes end at once.
 *
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_listener_close(segue_listener *listener);

/* Gives the handle up; the listener goes on until it, or its server, is closed.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_listener_free(segue_listener *listener);

/* ---- 8.2 Authorization of HTTP callers --------------------------------------------- */

/* A listener may ask every caller for a token, as a resource server of OAuth (2026-07-28
 * basic/authorization; RFC 9728, RFC 6750). It then serves its metadata at
 * /.well-known/oauth-protected-resource, and below it at the path of the endpoint and of
 * the resource; answers 401 to whoever has no good token, with a challenge that names the
 * metadata and the required scopes; and 403 to whose token lacks a scope that everything,
 * or the item that is asked for, needs (segue_item_options.scopes). A token that stands
 * in the query is refused. No token is logged, or told to anybody.
 *
 * Tokens are checked as JWT (RFC 9068) with the keys of the authorization server, or by
 * on_bearer. Of a JWT the principal is its issuer, a blank, and its subject. An
 * operation, a session and a stream belong to the principal that made them, whatever
 * token of his he brings later; event streams that can be resumed end when the token
 * does. */

/* A token waits for a verdict. `bearer` is owned by the callback's receiver from here
 * on: he decides by segue_bearer_accept or segue_bearer_refuse, now or later, on any
 * thread, and frees it. Asked for every request, before its body is read.
 *
 * transport the caller, for segue_transport_header and segue_transport_peer; dies with
 *           the callback. */
typedef void (*segue_bearer_fn)(void *user, segue_transport *transport,
                                segue_bearer *bearer);

struct segue_bearer_options {
    size_t struct_size;
    const char *resource; /* URL by which clients know the endpoint: they ask for tokens
                             for it. NULL = the listener's, if it has one (not on a Unix
                             socket, and not on all addresses at once) */
    const char *authorization_servers; /* issuers (URLs) separated by blanks; required;
                                          without on_bearer it is one */
    const char *scopes_supported; /* told in the metadata: what is needed to begin with;
                                     blanks between; NULL = not told */
    const char *required_scopes;  /* every request needs all of them; NULL = none */
    const char *implied_scopes;   /* lines: a scope, then those that it stands for too:
                                     "admin read write\nwrite read"; NULL = none */
    const char *resource_name;    /* for people, in the metadata; NULL = none */
    const char *documentation;    /* URL, the same */
    int64_t check_timeout_ms;     /* keys, or on_bearer; then 503; default 10000 */

    /* By the application: */
    void *user;
    segue_free_fn free_user;
    segue_bearer_fn on_bearer; /* NULL = tokens are JWT, see below */

    /* As JWT: */
    const char *issuer;   /* iss; NULL = that of authorization_servers */
    const char *audience; /* aud has one of these, separated by blanks; NULL = the
                               resource */
    const char
        *algorithms;       /* those that are taken, of RS256 RS384 RS512 PS256 PS384 PS512
                               ES256 ES384 EdDSA; NULL = all of them */
    const char *jwks;      /* the key set as JSON; or */
    const char *jwks_file; /* ... in a file (segue_listener_reload); or */
    const char *jwks_url;  /* ... of the issuer: https, on this machine http too */
    const char *ca_file;   /* for jwks_url; PEM; NULL = certificates of the system */
    int32_t access_tokens_only; /* 1 = only type "at+jwt"; else also "JWT", and none */
    int64_t leeway_ms;          /* clocks may be apart; default 30000, -1 = not at all */
    int64_t jwks_age_ms;        /* keys are fetched anew when so old; default 600000 */
    int64_t jwks_refresh_ms;    /* an unknown key has them fetched at most twice in this
                                   time; default 30000 */
    int32_t max_tokens; /* good ones that are remembered; default 1000, -1 = none */
};

/* Returns the token as it was sent.
 *
 * len       receives the length in bytes; may be NULL.
 * Returns   a string that lives as long as the handle; "" for NULL.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_bearer_token(const segue_bearer *bearer, size_t *len);

/* Lets the caller in.
 *
 * principal  who he is: a stable name, not empty.
 * scopes     what the token grants, separated by blanks; may be NULL.
 * expires_ms when it ends, since 1970; 0 = it does not.
 * Returns    SEGUE_OK, also when the caller is gone; SEGUE_E_TERMINAL when it was decided
 *            before.
 * Thread     any
 * Callback   allowed
 * Since      0.1
 */
SEGUE_API segue_status segue_bearer_accept(segue_bearer *bearer, const char *principal,
                                           const char *scopes, int64_t expires_ms);

/* Refuses the token: 401, error="invalid_token".
 *
 * reason    told to the caller: visible ASCII without quotes and backslashes, at most 200
 *           bytes; NULL = none.
 * Returns   as segue_bearer_accept; SEGUE_E_INVALID for another reason.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_bearer_refuse(segue_bearer *bearer, const char *reason);

/* Frees the handle. What was not decided could not be: the caller gets 503.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_bearer_free(segue_bearer *bearer);

/* ---- 9 Call (inbound) -------------------------------------------------------------- */

/* The client wants the call to end. Runs at most once. The handler may go on and
 * complete; what it then says of a cancelled operation is dropped. */
typedef void (*segue_cancel_fn)(void *user, segue_call *call);

/* segue_call_send said SEGUE_E_WOULD_BLOCK and there is room again. */
typedef void (*segue_drain_fn)(void *user, segue_call *call);

typedef struct segue_call_events {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_cancel_fn on_cancel;
    segue_drain_fn on_drain;
} segue_call_events;

/* The answer to segue_call_require_input.
 *
 * status    SEGUE_OK: the client's answer, which may be that its user declines;
 *           SEGUE_E_REMOTE: it answered with a JSON-RPC error (before 2026-07-28);
 *           SEGUE_E_CANCELLED when the operation ended first.
 * json      the answer, of SEGUE_E_REMOTE the error object with its "code", else NULL;
 *           dies with the callback. */
typedef void (*segue_input_fn)(void *user, segue_call *call, segue_status status,
                               const char *json, size_t len);

/* Returns the method that runs the handler: "tools/call", "resources/read", "prompts/get"
 * or "completion/complete".
 *
 * Returns   a string that lives as long as the library.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_call_method(const segue_call *call);

/* Returns the name of the tool or prompt; of resources/read the URI that is read; of a
 * completion the prompt's name or the template's text; of a question its method.
 *
 * Returns   a string that lives as long as the call.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_call_name(const segue_call *call);

/* Returns who calls: the name that the principal function gave, or that of the token. A
 * task that is run again after a crash has the one who made it.
 *
 * Returns   a string that lives as long as the call; "" for nobody in particular.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_call_principal(const segue_call *call);

/* Tells whether the token of the caller grants a scope, itself or by one that implies it.
 * Over HTTP without authorization nobody has any. Over stdio and other byte streams there
 * are no tokens, and everybody has all.
 *
 * Returns   1 or 0.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API int32_t segue_call_has_scope(const segue_call *call, const char *scope);

/* Returns the whole params of the request as JSON text.
 *
 * len       receives the length in bytes; may be NULL.
 * Returns   the text, an object; lives as long as the call.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_call_params(const segue_call *call, size_t *len);

/* Gives one member of the request's _meta as JSON text, e.g. of "traceparent".
 *
 * json, len receive the text, which lives as long as the call and is not NUL-terminated.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND when the client did not send it.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_meta(const segue_call *call, const char *key,
                                       const char **json, size_t *len);

/* Gives one argument as JSON text. Arguments of resources/read are the variables of the
 * template, decoded: they come from strangers and may hold anything, "../" too. Those of
 * a completion are "name" and "value" of the argument; the rest is in the params.
 *
 * json, len receive the text, which lives as long as the call and is not NUL-terminated.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND when the caller did not send it.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_argument(const segue_call *call, const char *name,
                                           const char **json, size_t *len);

/* Gives one string argument, decoded. The text may hold NUL bytes.
 *
 * text, len receive the text, which lives as long as the call.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND when absent, SEGUE_E_INVALID when not a string.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_argument_text(segue_call *call, const char *name,
                                                const char **text, size_t *len);

/* Gives one integer argument.
 *
 * value     receives the number.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND when absent, SEGUE_E_INVALID when it is not an
 *           integer of 64 bits.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_argument_int(const segue_call *call, const char *name,
                                               int64_t *value);

/* Sets the callbacks of the call. At most once.
 *
 * events    copied.
 * Returns   SEGUE_OK, SEGUE_E_STATE when set before.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_watch(segue_call *call,
                                        const segue_call_events *events);

/* Tells whether the client cancelled, or left where leaving means cancel.
 *
 * Returns   1 or 0.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API int32_t segue_call_is_cancelled(const segue_call *call);

/* Emits one segment for each block of the content; other members become fields.
 *
 * Effect    numbered, durable when the call is a task, then seen by whoever reads it.
 * Returns   SEGUE_OK, SEGUE_E_WOULD_BLOCK when too much is unwritten (nothing was taken;
 *           on_drain follows), SEGUE_E_TERMINAL when the operation has ended,
 *           SEGUE_E_LIMIT when it is too large (the operation then ends with an error).
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_send(segue_call *call, const segue_content *content,
                                       segue_error **error);

/* Emits one text segment of a tool.
 *
 * text      UTF-8.
 * Returns   as segue_call_send, and SEGUE_E_INVALID when the text is not valid UTF-8 or
 *           it is no tool that runs.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_send_text(segue_call *call, const char *text,
                                            size_t len, segue_error **error);

/* Emits text that goes on in a block of the result: a segment of its own for whoever
 * reads along, whose text stands in that block in the end. A task that streams by
 * SEP-1905 has no word for it, nor has a server without SEGUE_DIALECT_PARTIAL_INDEX:
 * there the text is a block of its own in the result, too.
 *
 * index     the place of the block, from 0: blocks count as they were emitted, since the
 *           last segue_call_replace; text that goes on is none.
 * text      UTF-8.
 * Returns   as segue_call_send_text, and SEGUE_E_INVALID when there is no such block yet,
 *           or it is no text.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_extend_text(segue_call *call, int64_t index,
                                              const char *text, size_t len,
                                              segue_error **error);

/* Throws away what was emitted so far, for everybody; the next segment starts the result.
 * Of no effect for a task that streams by SEP-1905 to a client that did not declare
 * experimental["dev.segue/replace"], or to a server that asked: what it was sent stays in
 * the result. segue_call_extend_text counts from 0 again there, too.
 *
 * Returns   as segue_call_send.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_replace(segue_call *call, segue_error **error);

/* Sets a member of the result beside its list: structuredContent or _meta of a tool, the
 * description of a prompt, ttlMs and cacheScope of what was read.
 *
 * json      any JSON value; the last one set wins. _meta is merged key by key.
 * Returns   as segue_call_send; SEGUE_E_JSON; SEGUE_E_INVALID for the list ("content",
 *           "contents", "messages"), "isError" and "resultType", and for a ttlMs or
 *           cacheScope of what was read that is none.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_set_field(segue_call *call, const char *name,
                                            const char *json, size_t len,
                                            segue_error **error);

/* Sets the suggestions of a completion, in the order of their relevance; the last ones
 * set win. segue_call_complete with NULL then ends the call.
 *
 * values    count strings, UTF-8; at most 100.
 * total     how many there are; < 0 = not told.
 * has_more  1 when there are more than these, else 0.
 * Returns   as segue_call_send; SEGUE_E_INVALID when it is no completion, for more than
 *           100 values and for what is not UTF-8.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_set_completion(segue_call *call,
                                                 const char *const *values, size_t count,
                                                 int64_t total, int32_t has_more,
                                                 segue_error **error);

/* Reports progress, if the client asked for it. A task of 2025-11-25 has it for as long
 * as its conversation lasts, one of 2026-07-28 not at all.
 *
 * total     0 = unknown. message: may be NULL.
 * Returns   SEGUE_OK, also when nobody listens; SEGUE_E_INVALID when one of the two is
 *           no finite number.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_progress(segue_call *call, double progress,
                                           double total, const char *message,
                                           segue_error **error);

/* Sends a log message to the client that asked for this level.
 *
 * level     "debug", "info", "notice", "warning", "error", "critical", "alert",
 *           "emergency".
 * json      any JSON value.
 * Returns   SEGUE_OK, also when nobody listens; SEGUE_E_JSON; SEGUE_E_INVALID for a
 *           level.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_log(segue_call *call, const char *level,
                                      const char *json, size_t len, segue_error **error);

/* Sets the text that describes the state of a task.
 *
 * Returns   as segue_call_send.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_set_status(segue_call *call, const char *message,
                                             segue_error **error);

/* Asks the client for input, e.g. elicitation/create. A task waits as input_required. A
 * plain call of 2026-07-28 is answered with all that was asked by the end of the
 * callback, and goes on when the client comes again, at most input_wait_ms later; before,
 * each question is a request to the client.
 *
 * key       names the question, once in the operation: 1 to 64 of A-Z a-z 0-9 . _ -;
 *           NULL = any. A later run that asks the same finds the answer of the first.
 * method    of the question; params its JSON.
 * on_input  called once with the answer. user: freed by free_user after it.
 * Returns   SEGUE_OK, SEGUE_E_EXISTS for a key that was used, SEGUE_E_UNSUPPORTED when
 *           the client cannot be asked this, SEGUE_E_LIMIT for max_inputs, and of a plain
 *           call for max_tasks, SEGUE_E_TERMINAL.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_require_input(segue_call *call, const char *key,
                                                const char *method, const char *params,
                                                size_t len, segue_input_fn on_input,
                                                void *user, segue_free_fn free_user,
                                                segue_error **error);

/* Ends the event stream of a call, and lets the client come back for the rest
 * (2025-11-25 basic/transports, "Sending Messages to the Server"): for a call that will
 * be silent for long, so that no connection waits for it. The call runs on. What it says
 * meanwhile is kept for the client, which is told to come again after retry_ms.
 *
 * retry_ms  0 = 1000.
 * Returns   SEGUE_OK, also when the client is away already; SEGUE_E_UNSUPPORTED, without
 *           effect, when it could not come back: it is not connected over HTTP, speaks
 *           2026-07-28, or takes no event streams, the call is a task, or, before
 *           2025-11-25, nothing has been sent to it yet; SEGUE_E_TERMINAL.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_hang_up(segue_call *call, int64_t retry_ms,
                                          segue_error **error);

/* Lets the first turn of the handler go on after on_call has returned: for bindings,
 * whose handlers run then. What is done in its first turn is answered at once where a
 * client takes tasks that way (2025-11-25, response mode "immediate").
 *
 * The turn ends by segue_call_end_turn, with the end of the call, with its first
 * question, and after first_turn_ms of the server.
 *
 * Returns   SEGUE_OK; SEGUE_E_STATE when no answer waits for the turn, or it is over.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_hold_turn(segue_call *call);

/* Ends the first turn of a handler that has not ended its call in it.
 *
 * Returns   SEGUE_OK, also when the turn is not held, or no more.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_end_turn(segue_call *call);

/* Turns a running call into a task now, instead of at promote_after_ms.
 *
 * ttl_ms    0 = as the tool says; -1 = unlimited where the server allows it.
 * Returns   SEGUE_OK, also when it is a task already; SEGUE_E_UNSUPPORTED when the tool
 *           or the client rules tasks out; SEGUE_E_LIMIT when the client has too many;
 *           SEGUE_E_STATE while a plain call waits for answers.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_defer(segue_call *call, int64_t ttl_ms,
                                        segue_error **error);

/* Stores bytes of the tool's own beside the task; the next run finds the last ones.
 *
 * Returns   as segue_call_send; SEGUE_E_STATE when the call is not a task.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_checkpoint(segue_call *call, const void *data,
                                             size_t len, segue_error **error);

/* Tells where an earlier run of this task ended.
 *
 * last_segment  receives the last durable segment's number, 0 on a first run. The run
 *               goes on with the next one.
 * data, len     receive the last checkpoint, NULL when there is none; may be NULL. They
 *               live as long as the call.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND on a first run.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_resumed(const segue_call *call, uint64_t *last_segment,
                                          const void **data, size_t *len);

/* Ends the call with a result: what was emitted, then the blocks of the content.
 *
 * Effect    on_validate may still make it fail (-32603), after this has returned.
 * content   may be NULL; not consumed. A tool gives blocks, resources/read contents of
 *           resources, prompts/get messages, a completion nothing.
 * Returns   SEGUE_OK, SEGUE_E_TERMINAL when it has ended already, SEGUE_E_INVALID when
 *           the content is not of what the method gives, or the tool has an outputSchema
 *           and gave no structuredContent (then the call has ended, with -32603).
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_complete(segue_call *call, const segue_content *content,
                                           segue_error **error);

/* Ends the call with a JSON-RPC error. For an error that a model should see, complete
 * with segue_content_set_error instead.
 *
 * code      e.g. -32603; data: JSON text or NULL. -32002 of resources/read is "not
 *           found": each revision is told its own code, and the URI as data.
 * Returns   SEGUE_OK, SEGUE_E_TERMINAL, SEGUE_E_JSON, SEGUE_E_INVALID for a code that the
 *           protocol reserves and does not define.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_call_fail(segue_call *call, int32_t code,
                                       const char *message, const char *data, size_t len,
                                       segue_error **error);

/* Frees the call. One that has not ended fails with -32603; after segue_server_close a
 * task does not, but is let go in the store: the next server on it goes on with it, or
 * ends it.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_call_free(segue_call *call);

/* ---- 10 Session (client) ----------------------------------------------------------- */

enum segue_era {
    SEGUE_ERA_AUTO = 0,   /* find out: server/discover, then initialize */
    SEGUE_ERA_MODERN = 1, /* 2026-07-28 only */
    SEGUE_ERA_LEGACY = 2  /* initialize only */
};

/* The modes of SEP-1905, as a set: what a client takes in answer to a tools/call that
 * asks a server of 2025-11-25 for a task. Such a server uses no other, but the task, when
 * it offers none of those that are listed. */
enum segue_response_mode {
    SEGUE_RESPONSE_TASK = 1,      /* "task": the result is fetched when it is done */
    SEGUE_RESPONSE_IMMEDIATE = 2, /* "immediate": the result itself, if it is ready */
    SEGUE_RESPONSE_STREAMING = 4  /* "streaming": segments as they are made */
};

/* A session may have a host: a server of the application that answers what the other end
 * asks in 2025-11-25, where that may be a task (basic/utilities/tasks). Each item of
 * SEGUE_ITEM_QUESTION that it has when the session is opened is declared, and is asked
 * instead of on_input, with params.task or without. The handler gets a call like that of
 * a tool, whose arguments are the params of the question: it sends content, which streams
 * to a server that takes SEP-1905, sets fields (role, model and stopReason; of an
 * elicitation action and content), and completes. It asks nothing back. task, flags,
 * ttl_ms and poll_ms of the item, and store, limits and dialects of the host mean what
 * they mean for tools; principal is called with the session's transport. The host should
 * serve nothing else. In other revisions questions come to on_input. */
typedef struct segue_session_options {
    size_t struct_size;
    const char *name;           /* of the client; default "segue" */
    const char *version;        /* default "0" */
    const char *capabilities;   /* JSON object, e.g. {"elicitation":{}}; may be NULL;
                                     tasks are declared without being named; a member
                                     "tasks" replaces what 2025-11-25 is told of them */
    int32_t era;                /* segue_era */
    int64_t probe_timeout_ms;   /* so long server/discover may be unanswered, then it is
                                     a server of the handshake eras, or one that starts:
                                     what it answers before initialize is answered, or
                                     so long after it refused that, is taken; default
                                     5000. Not with SEGUE_ERA_MODERN, and not
                                     over HTTP, where such servers refuse it: there so
                                     long notifications/initialized is waited for */
    int64_t request_timeout_ms; /* of one exchange on the wire; default 60000 */
    int32_t max_reconnects;     /* in a row; so often tasks/get, tasks/update and
                                   tasks/result that fail are sent again, too, each by
                                   itself; 0 = default 20, -1 = none */
    int64_t max_result_bytes;   /* collected for one request; default 64 MiB */
    int32_t max_requests;       /* in flight; default 4096 */
    int32_t no_idempotency;     /* 1 = never send an idempotency key */
    int32_t no_tasks;           /* 1 = do not declare tasks, and do not ask for any */
    int32_t fill_defaults;      /* 1 = what an accepted answer to elicitation/create
                                     leaves out has the default of its schema: for
                                     applications that show no form (SEP-1034) */
    int64_t cache_bytes;        /* of results that are kept while they are fresh (ttlMs of
                                   2026-07-28); 0 = default 1 MiB, -1 = none are */
    uint32_t dialects_off;      /* SEGUE_DIALECT_PARTIAL, _PARTIAL_RESULTS: segments of a
                                   plain call are not asked for in this way */
    uint32_t dialects_on;       /* SEGUE_DIALECT_DRAFT_TASKS: initialize offers
                                   DRAFT-2026-v1; of no effect with no_tasks.
                                   SEGUE_DIALECT_RESUMABLE: a server of the handshake eras
                                   may say how its answers can be asked for again; they
                                   are, when the connection breaks, and such requests have
                                   tokens (segue_request_token) */
    segue_server *host;         /* see above; shared; NULL = none */
    int32_t first_attempts;     /* to connect before it was ever open; 0 = as many as may
                                   follow each other later, max_reconnects + 1 */
    int64_t reconnect_timeout_ms; /* so long a server that is lost is tried to be reached
                                   again, from the loss on, and over HTTP by each request
                                   in its pauses; no attempt begins later. Then the
                                   session, over HTTP the request, ends with
                                   SEGUE_E_DISCONNECTED. 0 = default 60000, -1 = as long
                                   as max_reconnects allows */
    uint32_t response_modes;      /* set of segue_response_mode: declared to servers of
                                   2025-11-25, and listed by each tools/call that asks
                                   for a task; 0 = all. Not with a member "tasks" of
                                   capabilities, which declares its own */
} segue_session_options;

/* The session can be used: the server's era and capabilities are known. Once per connect,
 * and again when another server goes on with the session (2025-11-25, servers that share
 * a seal_key): it does not know what the client had subscribed to. */
typedef void (*segue_open_fn)(void *user, segue_session *session);

/* The server was lost, or could not be reached: after delay_ms it is tried again, for the
 * attempt-th time in a row. Over HTTP each request tries for itself, and its stream is
 * taken up again; reason names it then. What is told while an earlier one waits to be
 * told replaces that. The end of it is on_open, an answer, or SEGUE_E_DISCONNECTED. */
typedef void (*segue_reconnect_fn)(void *user, segue_session *session, int32_t attempt,
                                   int64_t delay_ms, const char *reason);

/* The session has ended; error is NULL after segue_session_close. Once, the last
 * callback. */
typedef void (*segue_closed_fn)(void *user, segue_session *session,
                                const segue_error *error);

/* A notification that belongs to no request, e.g. notifications/tools/list_changed. */
typedef void (*segue_notification_fn)(void *user, segue_session *session,
                                      const char *method, const char *params, size_t len);

typedef struct segue_session_events {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_open_fn on_open;
    segue_closed_fn on_closed;
    segue_notification_fn on_notification;
    segue_validate_fn on_validate; /* a result that does not fit ends its request with
                                      SEGUE_E_PROTOCOL; NULL = results are not checked */
    segue_reconnect_fn on_reconnect;
} segue_session_events;

/* Opens a conversation with the server at the other end of a transport. Requests may be
 * started at once; they wait until the session is open.
 *
 * transport consumed on success. options, events: may be NULL; copied.
 * Returns   SEGUE_OK, SEGUE_E_STATE when the transport was attached before, SEGUE_E_JSON
 *           for capabilities, SEGUE_E_INVALID when the transport or the host is of
 *           another runtime, SEGUE_E_CLOSED when the host has closed.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_session_open(segue_runtime *runtime,
                                          segue_transport *transport,
                                          const segue_session_options *options,
                                          const segue_session_events *events,
                                          segue_session **out, segue_error **error);

/* Describes the peer as JSON: {"protocolVersion","serverInfo","capabilities",
 * "instructions"}.
 *
 * buf, len  in: capacity; out: bytes needed, without the NUL. buf may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_TOO_SMALL, SEGUE_E_STATE before on_open.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_session_peer(segue_session *session, char *buf, size_t *len);

/* Ends the session: requests in flight complete with SEGUE_E_CLOSED, the transport
 * closes, on_closed follows. Plain calls are cancelled; those go on whose token was asked
 * for or whose idempotency_key was given. Tasks on the server go on.
 *
 * Returns   SEGUE_OK.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_session_close(segue_session *session);

/* Gives the handle up. The session lives until it is closed and its requests have ended.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_session_free(segue_session *session);

/* ---- 11 Request (outbound) --------------------------------------------------------- */

/* Order for one request: on_task, on_resumable, on_segment, on_progress, on_log,
 * on_status and on_input as they come, then on_complete exactly once, then free_user.
 * Nothing after. */

/* One segment, in order unless the options say otherwise, each number once. The segment
 * dies with the callback. */
typedef void (*segue_segment_fn)(void *user, segue_request *request,
                                 const segue_segment *segment);

/* Progress; total is 0 when unknown; message may be NULL. */
typedef void (*segue_progress_fn)(void *user, segue_request *request, double progress,
                                  double total, const char *message);

/* A log message of the server for this request: the params of notifications/message. */
typedef void (*segue_message_fn)(void *user, segue_request *request, const char *json,
                                 size_t len);

/* The server asks: answer with segue_request_answer, now or later. Once per key, and
 * again after a resume while the question is open. In 2026-07-28 a request that is no
 * task is sent again when all its questions are answered; should the server then ask
 * more, or the same again, they come anew, and without on_input it ends with
 * SEGUE_E_UNSUPPORTED. Before, the server asks by requests of its own, as many as it
 * likes, and one that names no request is for the oldest that has on_input; without any,
 * for the one that stands for the session (segue_request_start), else the server gets an
 * error. */
typedef void (*segue_question_fn)(void *user, segue_request *request, const char *key,
                                  const char *method, const char *params, size_t len);

/* The request became a task. Runs before the first look at it, so that the id, or the
 * token of segue_request_token, can be stored. */
typedef void (*segue_task_fn)(void *user, segue_request *request, const char *task_id);

/* The server gave a token by which the request can be asked for again (SEP-975): that of
 * segue_request_token is new, and can be stored. Again when the server gives another. Of
 * a call that asks for a task on_task tells the token. */
typedef void (*segue_resumable_fn)(void *user, segue_request *request);

/* The task's status or its text changed: "working", "input_required", ...; text or
 * NULL. */
typedef void (*segue_task_status_fn)(void *user, segue_request *request,
                                     const char *status, const char *message);

/* The end. status SEGUE_OK: json is the result object. SEGUE_E_REMOTE: error tells what
 * the server answered. Any other: error tells what happened here; json is what was
 * received so far, merged, or NULL. Both die with the callback. */
typedef void (*segue_complete_fn)(void *user, segue_request *request, segue_status status,
                                  const char *json, size_t len, const segue_error *error);

typedef struct segue_request_events {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_segment_fn on_segment;
    segue_progress_fn on_progress;
    segue_message_fn on_log;
    segue_question_fn on_input;
    segue_task_fn on_task;
    segue_task_status_fn on_status;
    segue_complete_fn on_complete;
    segue_resumable_fn on_resumable;
} segue_request_events;

typedef struct segue_request_options {
    size_t struct_size;
    int64_t timeout_ms;    /* whole request; 0 = none */
    int32_t on_timeout;    /* 0 = leave a task running, 1 = cancel it: the server has
                              one more second to confirm that */
    int64_t credit;        /* segments that may be delivered before segue_request_grant;
                              0 = no limit (delivered as fast as callbacks return) */
    int32_t discard;       /* 1 = segments are delivered, not collected into the result;
                              what comes whole, in one answer, stays whole */
    const char *log_level; /* ask for log messages from this level on; NULL = none */
    const char *idempotency_key; /* 16 to 128 bytes; sent to servers that know keys, and
                                    to no others; NULL = a fresh one */
    int64_t ttl_ms;    /* how long a server of 2025-11-25 shall keep the task: a wish, the
                          server decides (R-2557-41); 0 = none is said */
    int32_t unordered; /* 1 = segments are delivered as they come, not in the order of
                          their numbers, where the server streams by SEP-1905: the number
                          tells their place (R-1905-62). A token covers those below the
                          first that is missing: some may come again after a resume */
    int32_t no_cache;  /* 1 = ask the server, even if a result of before is fresh */
    uint32_t response_modes; /* set of segue_response_mode that this tools/call lists, of
                                those that the session declares; 0 = all of these. Of no
                                effect with a member "task" of the params, and where no
                                task is asked for */
} segue_request_options;

/* Sends a request. tools/call ends in one result whatever the server answers: a plain
 * result, a task that is polled, or a task that is streamed.
 *
 * method    "" = none, with params NULL and on_input: nothing is sent, the request stands
 *           for the session, until it is cancelled or that ends. It is asked what no
 *           other can be, as for the roots; over HTTP all that the session's stream asks.
 *           There is one, beside max_requests: SEGUE_E_LIMIT.
 * params    JSON object, or NULL; _meta members of the protocol are added.
 * options   NULL = defaults; copied. events: NULL = none; copied.
 * out       owned by the caller; may be NULL when no handle is wanted.
 * Returns   SEGUE_OK, SEGUE_E_JSON, SEGUE_E_INVALID when params is not an object,
 *           SEGUE_E_LIMIT when too many are in flight.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_start(segue_session *session, const char *method,
                                           const char *params, size_t len,
                                           const segue_request_options *options,
                                           const segue_request_events *events,
                                           segue_request **out, segue_error **error);

/* Goes on with a request of an earlier connection or process: segments after those the
 * token covers, then the one result.
 *
 * token     from segue_request_token; perhaps followed by "+17": segments up to that
 *           number do not come again, though the token does not cover them.
 * Returns   as segue_request_start; SEGUE_E_INVALID for a token that is damaged.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_resume(segue_session *session, const char *token,
                                            const segue_request_options *options,
                                            const segue_request_events *events,
                                            segue_request **out, segue_error **error);

/* Gives a text that segue_request_resume takes, here or in another process, another day.
 * It covers the segments whose on_segment has begun, however many more have arrived. It
 * is a secret: it opens the task.
 *
 * buf, len  in: capacity; out: bytes needed, without the NUL. buf may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_TOO_SMALL, SEGUE_E_NOT_RESUMABLE when the server offers
 *           neither a task nor idempotency nor resuming, SEGUE_E_TERMINAL from
 *           on_complete on, unless that says SEGUE_E_CLOSED, _DISCONNECTED or _TIMEOUT.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_token(segue_request *request, char *buf,
                                           size_t *len);

/* Gives one member of the _meta of the answer by which the request became a task, as JSON
 * text: from on_task on. "io.modelcontextprotocol/model-immediate-response" (2025-11-25,
 * basic/utilities/tasks) is a text to give to the model while the task runs.
 *
 * buf, len  in: capacity; out: bytes needed, without the NUL. buf may be NULL.
 * Returns   SEGUE_OK, SEGUE_E_TOO_SMALL, SEGUE_E_NOT_FOUND when the server did not say
 *           it, or the request is no task, or one of a token.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_meta(segue_request *request, const char *key,
                                          char *buf, size_t *len);

/* Answers a question of on_input.
 *
 * json      the answer, e.g. {"action":"accept","content":{}}.
 * Returns   SEGUE_OK, SEGUE_E_NOT_FOUND for a key that is not open (any more: the server
 *           may have withdrawn it, or its connection be lost), SEGUE_E_JSON,
 *           SEGUE_E_INVALID when it is no object, or that to elicitation/create has no
 *           "action" of accept, decline and cancel, a "content" that is no object, or one
 *           that does not fit the form (2026-07-28): the question stays open.
 *           SEGUE_E_TERMINAL from on_complete on.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_answer(segue_request *request, const char *key,
                                            const char *json, size_t len,
                                            segue_error **error);

/* Answers a question of on_input by saying that there is no answer, for instance because
 * the model that was to be asked failed. Before 2026-07-28 the server gets this JSON-RPC
 * error. 2026-07-28 has no errors here: a question to a person (elicitation/create) is
 * answered {"action":"cancel"}; for a model or the roots, answer it after all, or cancel
 * the request. A question of a method that nobody knows is answered {"error":{...}}.
 *
 * code      of the error, such as -1 (a person refused) or -32603.
 * message   one line, UTF-8. data: any JSON value, or NULL.
 * Returns   as segue_request_answer; SEGUE_E_UNSUPPORTED when 2026-07-28 has no such
 *           answer to the question, which stays open.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_answer_error(segue_request *request, const char *key,
                                                  int32_t code, const char *message,
                                                  const char *data, size_t len,
                                                  segue_error **error);

/* Allows n more segments to be delivered (options.credit).
 *
 * Returns   SEGUE_OK, SEGUE_E_INVALID for n < 1, SEGUE_E_TERMINAL from on_complete on.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_grant(segue_request *request, int64_t n);

/* Asks for the end of the request: a task is cancelled on the server, a plain call is
 * withdrawn. on_complete follows with SEGUE_E_CANCELLED, or with the result if that came
 * first. That of a task follows once the server has confirmed it, or after 5 s, or with
 * the timeout of the request: a session that is closed before (SEGUE_E_CLOSED) may take
 * the message along unsent. While the connection is down it waits for the next one, so
 * long; a connection that is lost for good ends it with SEGUE_E_DISCONNECTED. Segments
 * that have arrived still come before on_complete, and wait for no credit.
 *
 * Returns   SEGUE_OK, SEGUE_E_TERMINAL from on_complete on.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_cancel(segue_request *request);

/* Lets go of a task without cancelling it: on_complete follows with SEGUE_E_CLOSED, or
 * with the result if that came first. The task goes on and its token stays good. So does
 * a call that has a token by its idempotency key, whether it becomes a task or not.
 *
 * Returns   SEGUE_OK, SEGUE_E_NOT_RESUMABLE when there is no token, SEGUE_E_TERMINAL
 *           from on_complete on.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_request_detach(segue_request *request);

/* Gives the handle up. The request goes on; its callbacks still run.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_request_free(segue_request *request);

/* ---- 12 Task ----------------------------------------------------------------------- */

enum segue_task_state {
    SEGUE_TASK_UNKNOWN = 0,
    SEGUE_TASK_WORKING = 1,
    SEGUE_TASK_INPUT_REQUIRED = 2,
    SEGUE_TASK_COMPLETED = 3,
    SEGUE_TASK_FAILED = 4,
    SEGUE_TASK_CANCELLED = 5
};

/* Makes a handle of a task whose id is known, or of what a token stands for: a task, or a
 * request that can be resumed (SEGUE_DIALECT_RESUMABLE). Nothing is sent. In a session of
 * another protocol version than the token's, whatever is asked of the handle ends with
 * SEGUE_E_NOT_RESUMABLE.
 *
 * task_id   the id, or a text of segue_request_token: what begins with "sg1." is one.
 * Returns   SEGUE_OK, SEGUE_E_INVALID for an id that is empty or over 4 KiB, or a token
 *           that is damaged, SEGUE_E_UNSUPPORTED for a token of a call that was no task
 *           yet: it has no state, segue_request_resume goes on with it.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_task_attach(segue_session *session, const char *task_id,
                                         segue_task **out, segue_error **error);

/* Returns the id; of a request that can be resumed, "".
 *
 * Returns   a string that lives as long as the handle.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API const char *segue_task_id(const segue_task *task);

/* Asks for the state of the task: on_complete gets the answer of tasks/get, unchanged. Of
 * a request that can be resumed, the answer of requests/getStatus: {"requestId","status":
 * "processing", "completed" or "failed","hasPendingMessage","hasInputRequest"}. It takes
 * nothing, and the server keeps the request for another while. Of what the server does
 * not know (any more) the answer is its error: SEGUE_E_REMOTE.
 *
 * out       the request; may be NULL.
 * Returns   as segue_request_start.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_task_get(segue_task *task,
                                      const segue_request_events *events,
                                      segue_request **out);

/* Returns the state that this session last saw of the task. Of a request that can be
 * resumed, "processing" is SEGUE_TASK_WORKING, or SEGUE_TASK_INPUT_REQUIRED while it has
 * a question; an error that names the reason "cancelled" or "expired" is
 * SEGUE_TASK_CANCELLED, and "completed", when its result has been taken by somebody,
 * SEGUE_TASK_COMPLETED.
 *
 * Returns   one of segue_task_state; expect unknown values.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API int32_t segue_task_get_state(const segue_task *task);

/* Follows the task to its end as an ordinary request: segments from the first retained
 * one, questions, then the one result. With a token: as segue_request_resume.
 *
 * out       the request; may be NULL.
 * Returns   as segue_request_start.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_task_watch(segue_task *task,
                                        const segue_request_options *options,
                                        const segue_request_events *events,
                                        segue_request **out, segue_error **error);

/* Asks the server to cancel the task; on_complete gets the acknowledgement, or, where a
 * server of 2025-11-25 refuses since the task has ended, what tasks/get says of it.
 *
 * out       the request; may be NULL.
 * Returns   as segue_request_start; SEGUE_E_UNSUPPORTED for a request that can be
 *           resumed: watch it, and cancel that.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API segue_status segue_task_cancel(segue_task *task,
                                         const segue_request_events *events,
                                         segue_request **out);

/* Frees the handle; the task is not touched.
 *
 * Returns   nothing.
 * Thread    any
 * Callback  allowed
 * Since     0.1
 */
SEGUE_API void segue_task_free(segue_task *task);

#ifdef __cplusplus
}
#endif

#endif
