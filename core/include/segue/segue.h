/* Segue: MCP (Model Context Protocol) client and server. Results can stream, requests
 * survive a disconnect, and tasks survive a crash.
 *
 * Other headers: easy.h has conveniences for C, segue_auth.h has authorization over HTTP,
 * segue_ext.h has the interfaces for your own stores and transports and for language
 * bindings.
 *
 * Conventions. They hold for every function. The comment of a function says only in what
 * the function differs from them.
 *   - Thread: a function may be called from any thread. "Thread dispatch" means: from the
 *     thread that runs the runtime. "Thread setup" means: from one thread, before or
 *     after the runtime runs.
 *   - Callback: a function may be called inside a callback. "Callback refused" means: not
 *     inside a callback of the same runtime.
 *   - Since: a function exists since version 0.1.
 *   - Returns: a function that can fail returns segue_status. 0 (SEGUE_OK) is success, a
 *     negative value is an error. The comment of a function names its own errors.
 *   - Every function may return these errors: SEGUE_E_INVALID for a NULL handle, a NULL
 *     out-parameter or a malformed argument, SEGUE_E_CLOSED for a handle that was closed,
 *     SEGUE_E_NOMEM when there is no memory.
 *   - A function that fails consumes nothing, runs no callback and leaves out-parameters
 *     unchanged.
 *   - `error` may be NULL. On failure it receives the reason. Free it with
 *     segue_error_free. SEGUE_E_WOULD_BLOCK asks the caller to wait and sets no error.
 *   - `options` and `events` may be NULL, which means defaults and no callbacks, unless
 *     the function needs one of their members.
 *   - `out` receives a handle that the caller owns. One handle has one owner and one
 *     segue_X_free. segue_X_free ignores NULL. It may be called at any time, also in the
 *     handle's own callback, and never implies cancel or close. A thread must not use
 *     a handle while another thread frees it.
 *   - The library copies its inputs before it returns unless the text says "consumed".
 *     Names, ids and tokens are NUL-terminated UTF-8. Payloads and JSON are pointer and
 *     length and need no NUL. The length of a text that ends with a NUL may be given as
 *     SEGUE_TO_NUL (-1). Text from accessors is NUL-terminated.
 *   - `buf, len`: *len is the size of buf and receives the length of the text, without
 *     its NUL. buf may be NULL to ask for the length. SEGUE_E_TOO_SMALL means that the
 *     text and its NUL do not fit into buf.
 *   - A callback never runs inside the call that caused it and holds no lock. Callbacks
 *     of one runtime run one at a time. Every callback table has `user` and `free_user`.
 *     free_user runs once, after the last callback. It does not run when the function
 *     that was given the table fails. Options with `user` follow the same rules.
 *   - Structs of options and callbacks start with struct_size and only grow. Zero means
 *     the default. Initialise each with the SEGUE_X_INIT of its type, for example
 *     `segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;`.
 *   - Durations are int64 milliseconds. An option max_X or X_per_second is the maximum
 *     of the number, or of the number of bytes, that its comment names.
 *
 * Caveats
 *   - A build may leave out HTTP, OAuth, SQLite or Redis (CMake: SEGUE_HTTP and so on).
 *     A function that needs a part that is left out returns SEGUE_E_UNSUPPORTED.
 *   - After fork() a runtime works only in the parent; make a new one in the child.
 *   - A write of the library never raises SIGPIPE: the calling thread blocks the signal
 *     around each write, and all through segue_runtime_run. The library does not change
 *     signal handlers and dispositions. Its own threads have all signals blocked, and a
 *     child process starts with no signal blocked or handled.
 *   - SQLite, libev, libwebsockets, libcurl and OpenSSL allocate memory themselves. All
 *     other memory comes from the runtime's allocator.
 *   - The first listener of a runtime silences libwebsockets' log for the process.
 *   - segue_transport_stdio takes over standard input and output of the process.
 *   - A standard descriptor (0, 1, 2) that is closed stays unusable while the process
 *     lives: segue_runtime_new occupies its number, so that no other file gets it.
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

/* Each SEGUE_X_INIT is a value of one struct type, and the compiler refuses it for
 * another type. In C it is not a constant expression, so a struct with static storage is
 * initialised in another way: `static segue_item_options options = {.struct_size = sizeof
 * options};`. Both ways set all other members to zero. */
#ifdef __cplusplus
#define SEGUE_INIT(type)                                                                 \
    [] {                                                                                 \
        type made = {};                                                                  \
        made.struct_size = sizeof made;                                                  \
        return made;                                                                     \
    }()
extern "C" {
#else
#define SEGUE_INIT(type) ((type){.struct_size = sizeof(type)})
#endif

/* The length of a text or JSON text that ends with a NUL. Lengths of bytes (const void *)
 * are always numbers. */
#define SEGUE_TO_NUL ((size_t)-1)

/* ---- 0 Types ----------------------------------------------------------------------- */

/* The outcome of a call: a segue_status_value. */
typedef int32_t segue_status;

/* The statuses. Each has a name (segue_status_name) and a text (segue_status_text). */
enum segue_status_value {
    SEGUE_OK = 0,             /* success */
    SEGUE_E_INVALID = -1,     /* invalid argument */
    SEGUE_E_CLOSED = -2,      /* the handle is closed */
    SEGUE_E_REENTRANT = -3,   /* this call is not allowed inside a callback */
    SEGUE_E_THREAD = -4,      /* this call is not allowed on this thread */
    SEGUE_E_WOULD_BLOCK = -5, /* too much output waits: continue at on_drain */
    SEGUE_E_NOMEM = -6,       /* out of memory */
    SEGUE_E_VERSION = -7,     /* a struct sets a member of a newer version */
    SEGUE_E_NOT_FOUND = -8,   /* not found */
    SEGUE_E_EXISTS = -9,      /* exists already */
    SEGUE_E_STATE = -10,      /* this call is not possible in the state of the handle */
    SEGUE_E_TERMINAL = -11,   /* the operation has ended */
    SEGUE_E_LIMIT = -12,      /* a limit is reached */
    SEGUE_E_NOT_RESUMABLE = -13,  /* the request or task cannot be resumed */
    SEGUE_E_UNSUPPORTED = -14,    /* the peer or this build does not support this */
    SEGUE_E_CANCELLED = -15,      /* cancelled */
    SEGUE_E_TIMEOUT = -16,        /* timed out */
    SEGUE_E_TOO_SMALL = -17,      /* the buffer is too small */
    SEGUE_E_DISCONNECTED = -100,  /* the connection is lost */
    SEGUE_E_IO = -101,            /* input or output failed */
    SEGUE_E_SPAWN = -102,         /* the program cannot be started */
    SEGUE_E_REFUSED = -103,       /* the peer refused the request, or is not trusted */
    SEGUE_E_UNAUTHORIZED = -104,  /* the peer requires authorization */
    SEGUE_E_PROTOCOL = -200,      /* the peer broke the protocol */
    SEGUE_E_JSON = -201,          /* not valid JSON */
    SEGUE_E_TOO_LARGE = -202,     /* too large: a size limit is exceeded */
    SEGUE_E_NEGOTIATION = -203,   /* no protocol version in common */
    SEGUE_E_INCOMPLETE = -204,    /* the result is incomplete: a part of it was lost */
    SEGUE_E_TASK_LOST = -205,     /* the server does not have the task any more */
    SEGUE_E_REMOTE = -300,        /* the peer answered with an error */
    SEGUE_E_STORE = -400,         /* the store failed */
    SEGUE_E_STORE_FULL = -401,    /* the store is full */
    SEGUE_E_STORE_CORRUPT = -402, /* the store is damaged or of a newer format */
    SEGUE_E_FENCED = -403,        /* another server has taken the operation over */
    SEGUE_E_FATAL = -900          /* internal failure */
};

typedef struct segue_runtime
    segue_runtime; /* an event loop with its timers and connections */
typedef struct segue_transport
    segue_transport;                    /* carries the bytes of one conversation */
typedef struct segue_store segue_store; /* keeps operations that outlive a connection */
typedef struct segue_listener
    segue_listener; /* an address at which a server accepts HTTP */
typedef struct segue_server
    segue_server; /* tools, resources and prompts, and the operations that run them */
typedef struct segue_call segue_call; /* one run of a tool or of another item */
typedef struct segue_session
    segue_session; /* the conversation of a client with one server */
typedef struct segue_request
    segue_request;                    /* one request of a client: one start, one end */
typedef struct segue_task segue_task; /* a task that is addressed by its id or token */
typedef struct segue_content
    segue_content; /* the blocks of a result that is being built */
typedef struct segue_segment segue_segment; /* one piece of a result */
typedef struct segue_segment_batch
    segue_segment_batch;                /* several pieces that arrived together */
typedef struct segue_error segue_error; /* the details of a failure */
typedef struct segue_hooks segue_hooks; /* segue_ext.h: injected clock and random
                                           numbers */

/* Releases the `user` of a callback table. The library calls this function once, after
 * the last callback of the table. */
typedef void (*segue_free_fn)(void *user);

/* ---- 1 Library --------------------------------------------------------------------- */

/* Returns the library version as text, "major.minor.patch".
 *
 * Returns   a static string, never NULL. */
SEGUE_API const char *segue_version(void);

/* Returns the stable name of a status, such as "SEGUE_E_CLOSED".
 *
 * Returns   a static string; "SEGUE_E_UNKNOWN" for a value this version does not know. */
SEGUE_API const char *segue_status_name(segue_status status);

/* Returns what a status means, for people: a few words such as "out of memory", in one
 * line without a full stop.
 *
 * Returns   a static string; "unknown status" for a value this version does not know. */
SEGUE_API const char *segue_status_text(segue_status status);

/* ---- 2 Error ----------------------------------------------------------------------- */

/* An error describes a failure. An error that is passed to a callback is valid until
 * the callback returns. segue_error_copy makes a copy that lives longer. */

/* The contents of an error. The view lives as long as the error. Later versions may add
 * members at the end of the struct. */
typedef struct segue_error_view {
    segue_status status; /* what failed; SEGUE_OK for NULL */
    int32_t rpc_code;    /* the code of the JSON-RPC error that the peer sent; 0 = the
                            failure is local */
    int32_t retryable;   /* 1 = the same call may succeed when it is made again: by its
                            status, or because the peer says when ("retryAfterMs") */
    const char *message; /* one line for a person; never NULL */
    const char *data;    /* `data` of the peer's JSON-RPC error, JSON text; NULL = the
                            error has no data */
    size_t data_len;
    int32_t unsent; /* 1 = the request cannot have reached the server */
} segue_error_view;

/* Returns the contents of an error.
 *
 * Returns   a view, never NULL. For NULL the view has SEGUE_OK and the message "". */
SEGUE_API const segue_error_view *segue_error_read(const segue_error *error);

/* Makes a copy of the error that outlives the callback. */
SEGUE_API segue_status segue_error_copy(const segue_error *error, segue_error **out);

/* Makes an error of the application, for code that reports failures as the library
 * does.
 *
 * status    not SEGUE_OK. message: one line, UTF-8; NULL = segue_status_text.
 * Returns   SEGUE_OK, also without memory: the error then is SEGUE_E_NOMEM. */
SEGUE_API segue_status segue_error_new(segue_status status, const char *message,
                                       segue_error **out);

/* Frees an error that was copied or received from a synchronous call. */
SEGUE_API void segue_error_free(segue_error *error);

/* ---- 3 Runtime --------------------------------------------------------------------- */

/* How severe a line of the log is. */
enum segue_log_level {
    SEGUE_LOG_DEBUG = 0,   /* details of each message */
    SEGUE_LOG_INFO = 1,    /* what happens in normal work */
    SEGUE_LOG_WARNING = 2, /* the library goes on, and somebody should look */
    SEGUE_LOG_ERROR = 3    /* something failed */
};

/* The functions by which the library allocates memory. release and resize receive the
 * size that was last given to alloc or resize. Any thread may call the functions, also
 * several threads at once. alloc and resize may return NULL. */
typedef struct segue_allocator {
    /* returns memory of this size; NULL = there is none */
    void *(*alloc)(void *user, size_t size);
    /* moves memory to another size; after NULL the old memory stays */
    void *(*resize)(void *user, void *ptr, size_t old_size, size_t new_size);
    /* takes memory back */
    void (*release)(void *user, void *ptr, size_t size);
    void *user;
} segue_allocator;

/* Receives one line of log. Any thread may call the callback, also while the library
 * holds its lock, so the callback must not call the library. The text is valid until the
 * callback returns. */
typedef void (*segue_log_fn)(void *user, int32_t level, const char *text);

/* Reports that a background runtime has work for segue_runtime_dispatch. Any thread may
 * call the callback, at most once per dispatch. The callback may only signal another
 * thread and must not call the library. */
typedef void (*segue_wake_fn)(void *user);

typedef struct segue_runtime_options {
    size_t struct_size;
    const segue_allocator *allocator; /* copied; NULL = the library uses malloc */
    void *user;                       /* argument of log and on_wake */
    segue_log_fn log;
    int32_t log_level; /* the lowest level that is logged: a segue_log_level; 0 =
                          SEGUE_LOG_DEBUG */
    segue_wake_fn on_wake;
    const segue_hooks *hooks; /* copied; clock and random numbers for tests; NULL =
                                 none */
    /* The largest JSON-RPC message that is received and the largest JSON text that a
     * function accepts; default 64 MiB. Anything larger gives SEGUE_E_TOO_LARGE. */
    int64_t max_message_bytes;
    int32_t max_depth; /* deepest nesting of JSON; default 512 */
    /* unsent bytes of a connection at which producers wait; default 1 MiB */
    int64_t max_queue_bytes;
    /* 1 = while segue_runtime_dispatch is called often, it reads the pipes of a
     * background runtime, and the private thread does not. The application must then wait
     * on the descriptor of segue_runtime_fd, because on_wake does not report input */
    int32_t lend_input;
    /* 1 = the texts of errors name the options that set limits in camelCase (maxTasks),
     * for bindings whose options are spelled so. The data of an error is the same. */
    int32_t camel_case;
} segue_runtime_options;
#define SEGUE_RUNTIME_OPTIONS_INIT SEGUE_INIT(segue_runtime_options)

/* Makes a runtime: one event loop, its timers and its connections.
 *
 * Returns   SEGUE_E_VERSION when options sets a field that this version does not know,
 *           SEGUE_E_IO when the system refuses a loop or a descriptor. */
SEGUE_API segue_status segue_runtime_new(const segue_runtime_options *options,
                                         segue_runtime **out, segue_error **error);

/* Runs an inline runtime on the calling thread until segue_runtime_stop: input, output
 * and callbacks.
 *
 * Returns   SEGUE_OK once stopped, SEGUE_E_STATE when the runtime runs in the background
 *           or on another thread.
 * Thread    setup
 * Callback  refused (SEGUE_E_REENTRANT) */
SEGUE_API segue_status segue_runtime_run(segue_runtime *runtime);

/* Makes the runtime a background runtime: a private thread does input and output, and
 * callbacks run only in segue_runtime_dispatch.
 *
 * Returns   SEGUE_E_STATE when the runtime was started or run before, SEGUE_E_IO when the
 *           system refuses a thread.
 * Thread    setup
 * Callback  refused (SEGUE_E_REENTRANT) */
SEGUE_API segue_status segue_runtime_start(segue_runtime *runtime);

/* Gives a descriptor to wait on. The descriptor is readable while segue_runtime_dispatch
 * has callbacks to run, and once the runtime was stopped. It is level-triggered; never
 * read from it. Use it with a background runtime only, because an inline runtime finds
 * callbacks only when dispatch reads input. With lend_input the descriptor is also
 * readable while dispatch has input to read, which perhaps causes no callback.
 *
 * fd        receives the descriptor; it belongs to the runtime.
 * Returns   SEGUE_E_STATE once the runtime was run or dispatched inline. */
SEGUE_API segue_status segue_runtime_fd(segue_runtime *runtime, int32_t *fd);

/* Runs callbacks. On an inline runtime the function also does input and output. On a
 * background runtime with lend_input it first reads the input of the transports stdio,
 * fds and spawn, which saves one wake-up per message. The private thread reads this input
 * again after 50 ms without a dispatch, and while there is much input. Input that has
 * arrived is handled before timeouts.
 *
 * timeout_ms  the longest time to wait for work; 0 = do not wait, -1 = no limit.
 * max_events  the largest number of callbacks to run; 0 = all that are due.
 * ran         receives the number of callbacks; may be NULL.
 * Returns     SEGUE_E_THREAD when another thread is dispatching, SEGUE_E_CLOSED once the
 *             runtime was stopped and has nothing left to deliver.
 * Thread      dispatch
 * Callback    refused (SEGUE_E_REENTRANT) */
SEGUE_API segue_status segue_runtime_dispatch(segue_runtime *runtime, int64_t timeout_ms,
                                              int32_t max_events, int32_t *ran);

/* Asks the runtime to stop: segue_runtime_run returns, the background thread ends, and
 * requests in flight complete with SEGUE_E_CLOSED. The function is idempotent and does
 * not wait. A signal handler may call this function, but no other function of the
 * library; reset the handler before segue_runtime_free. */
SEGUE_API segue_status segue_runtime_stop(segue_runtime *runtime);

/* Stops the runtime, joins its threads and frees it. Callbacks that are due, such as
 * on_complete of running requests and every free_user, run on the calling thread. The
 * application may free handles of the runtime afterwards, but must not use them for
 * anything else.
 *
 * Thread    setup
 * Callback  refused (the call is ignored) */
SEGUE_API void segue_runtime_free(segue_runtime *runtime);

/* ---- 4 Transport ------------------------------------------------------------------- */

/* A transport carries one conversation. It is attached once, by segue_server_attach or
 * segue_session_open, which consume it. */

/* Receives one line of the child's standard error, without its newline. Lines can come
 * after on_closed of the session: the child still ends then. free_user follows the last
 * line that the child wrote before its end. */
typedef void (*segue_stderr_fn)(void *user, const char *text, size_t len);

typedef struct segue_spawn_options {
    size_t struct_size;
    const char *const *argv;      /* the command and its arguments, NULL-terminated;
                                     argv[0] is looked up in PATH */
    const char *const *env;       /* the whole environment of the child, "NAME=value",
                                     NULL-terminated; NULL = inherited */
    const char *working_dir;      /* working directory of the child; NULL = inherited */
    int32_t restart;              /* 1 = start the child again when it exits */
    int64_t close_timeout_ms;     /* time between the end of the child's input and
                                     SIGTERM; default 2000 */
    int64_t terminate_timeout_ms; /* time between SIGTERM and SIGKILL; default 2000 */
    void *user;
    segue_free_fn free_user;
    segue_stderr_fn on_stderr; /* NULL = the child inherits standard error, or gets
                                  /dev/null when standard error is closed */
} segue_spawn_options;
#define SEGUE_SPAWN_OPTIONS_INIT SEGUE_INIT(segue_spawn_options)

/* Makes two transports of one runtime that are connected to each other.
 *
 * Effect    one end receives what the other end sends, in order, through the event
 *           loop. */
SEGUE_API segue_status segue_transport_pair(segue_runtime *runtime, segue_transport **a,
                                            segue_transport **b);

/* Makes a transport from this process's standard input and output, one JSON-RPC message
 * per line (2026-07-28 basic/transports/stdio).
 *
 * Effect    while the transport is attached, both descriptors are non-blocking, and so is
 *           everything that shares them (a terminal, standard error). The end of the
 *           transport restores the descriptors.
 * Returns   SEGUE_E_IO when a descriptor is closed. */
SEGUE_API segue_status segue_transport_stdio(segue_runtime *runtime,
                                             segue_transport **out);

/* Makes a transport from two descriptors (pipes, or one socket given twice) with one
 * JSON-RPC message per line.
 *
 * fd_in, fd_out  consumed on success: closed when the transport ends.
 * Returns   SEGUE_E_INVALID for a descriptor that is not open. */
SEGUE_API segue_status segue_transport_fds(segue_runtime *runtime, int32_t fd_in,
                                           int32_t fd_out, segue_transport **out);

/* Makes a transport that starts a child process and speaks to its standard input and
 * output.
 *
 * Effect    the child starts when the transport is attached. Closing the transport shuts
 *           the child down as the specification says: close its input, wait, SIGTERM,
 *           wait, SIGKILL.
 * Returns   SEGUE_E_INVALID without argv. */
SEGUE_API segue_status segue_transport_spawn(segue_runtime *runtime,
                                             const segue_spawn_options *options,
                                             segue_transport **out, segue_error **error);

/* Frees a transport that was never attached. */
SEGUE_API void segue_transport_free(segue_transport *transport);

/* ---- 4.1 HTTP ---------------------------------------------------------------------- */

/* Runs before a request is sent. The callback sets the headers that the request needs,
 * for example a token, with segue_transport_set_header. status is 0 at first. It is 401
 * or 403 when the server refused the request with these headers. The callback then sets
 * other headers, and the request is sent once more. */
typedef void (*segue_headers_fn)(void *user, segue_transport *transport, int32_t status);

/* Whether a transport speaks HTTP+SSE of 2024-11-05 to its server. */
enum segue_http_sse {
    SEGUE_HTTP_SSE_AUTO = 0,  /* if the server refuses initialize with HTTP status 400,
                                 404 or 405 and no JSON-RPC message */
    SEGUE_HTTP_SSE_NEVER = 1, /* no: the refusal is reported */
    SEGUE_HTTP_SSE_ONLY = 2   /* yes: the URL is that of the event stream, and nothing
                                 else is tried */
};

typedef struct segue_http_options {
    size_t struct_size;
    const char *ca_file;        /* certificates to trust, PEM; NULL = the certificates of
                                   the system */
    const char *cert_file;      /* the client's certificate, PEM; NULL = none */
    const char *key_file;       /* the key of cert_file; NULL = cert_file contains it */
    const char *key_password;   /* password of key_file; NULL = none */
    const char *proxy;          /* URL of a proxy; NULL = the proxy of the environment
                                   variables HTTPS_PROXY and NO_PROXY; "" = no proxy */
    const char *unix_socket;    /* path of a Unix socket to use, not the URL's host */
    int32_t insecure;           /* 1 = certificates are not verified */
    int32_t http1;              /* 1 = use HTTP/1.1 even if the server offers HTTP/2 */
    int32_t max_connections;    /* the limit for each of four kinds of exchanges:
                                   requests, streams, streams that listen to a session,
                                   and short messages, which never wait for the other
                                   kinds; default 256 */
    int64_t connect_timeout_ms; /* the longest time to connect; default 10000 */
    int64_t silence_timeout_ms; /* the time of silence, without even a keep-alive comment,
                                   after which a stream counts as broken and is resumed;
                                   default 60000, -1 = never */
    void *user;
    segue_free_fn free_user;
    segue_headers_fn on_headers; /* NULL = requests have only the headers that were set */
    int32_t http_sse;            /* a segue_http_sse */
} segue_http_options;
#define SEGUE_HTTP_OPTIONS_INIT SEGUE_INIT(segue_http_options)

/* Makes a transport to an MCP endpoint (Streamable HTTP, 2025-03-26 to 2026-07-28). If
 * the server refuses initialize with HTTP status 400, 404 or 405 and no JSON-RPC message,
 * the transport tries HTTP+SSE of 2024-11-05 at the same URL, unless options.http_sse
 * says otherwise. There the server's session ends with its event stream, so calls that
 * run at that time fail with SEGUE_E_DISCONNECTED. Each request is an HTTP request of its
 * own, over pooled connections. A stream that breaks is resumed. A call is sent twice
 * only if it has an idempotency key or the server has not run it. Tools with invalid
 * x-mcp-header annotations are left out of tools/list, with a warning in the log.
 *
 * url       http or https.
 * Returns   SEGUE_E_INVALID for a malformed URL or an unknown http_sse, SEGUE_E_IO when a
 *           file of the options cannot be used. */
SEGUE_API segue_status segue_transport_http(segue_runtime *runtime, const char *url,
                                            const segue_http_options *options,
                                            segue_transport **out, segue_error **error);

/* Sets a header that an HTTP transport sends with every request from now on.
 *
 * name      an HTTP token; not a header that the protocol sets itself.
 * value     visible ASCII, spaces and tabs; NULL removes the header.
 * transport not attached yet, or the transport that on_headers received.
 * Returns   SEGUE_E_INVALID for a name or value that cannot be sent, SEGUE_E_STATE when
 *           the transport is not an HTTP client, SEGUE_E_LIMIT for over 64 headers. */
SEGUE_API segue_status segue_transport_set_header(segue_transport *transport,
                                                  const char *name, const char *value,
                                                  segue_error **error);

/* Returns a header of the HTTP request whose principal segue_principal_fn determines.
 * Call it inside segue_principal_fn only.
 *
 * name      in upper or lower case.
 * Returns   the value, which is valid until the callback returns and may be invalid
 *           UTF-8; NULL when the header is missing or was sent more than once, or the
 *           transport is not HTTP.
 * Thread    dispatch */
SEGUE_API const char *segue_transport_header(const segue_transport *transport,
                                             const char *name);

/* Returns a text that identifies the other end: "127.0.0.1:4711", "unix", or the subject
 * of a verified client certificate ("CN=build,O=Example"). Call it inside
 * segue_principal_fn only.
 *
 * Returns   the text, which is valid until the callback returns; "" when unknown.
 * Thread    dispatch */
SEGUE_API const char *segue_transport_peer(const segue_transport *transport);

/* ---- 5 Store ----------------------------------------------------------------------- */

/* A store keeps operations that outlive a connection. One store may serve several
 * servers and several runtimes. segue_ext.h has the interface for your own stores. */

/* What a commit of SQLite or PostgreSQL survives. */
enum segue_durability {
    SEGUE_DURABILITY_NORMAL = 0, /* a commit survives a crash of the process */
    SEGUE_DURABILITY_FULL = 1    /* a commit survives a crash of the machine: one sync per
                                    commit */
};

typedef struct segue_store_options {
    size_t struct_size;
    const segue_allocator *allocator; /* copied; NULL = malloc */
    int32_t durability;               /* sqlite, postgres: a segue_durability */
    int64_t max_bytes;                /* memory: the largest number of payload bytes,
                                         default 256 MiB */
    int64_t busy_timeout_ms;          /* sqlite: the longest time to wait for another
                                         process that locks the file; default 5000 */
    int64_t timeout_ms; /* redis, postgres: the longest time of a call, including its
                           connects and retries; default 5000 */
    int64_t lease_ms;   /* redis, postgres: the time of silence after which a server loses
                           its operations to other servers; default 10000, at least
                           100 */
    int64_t max_principal_operations; /* operations stored for one principal; default no
                                         limit */
    int64_t max_principal_bytes;      /* bytes of one principal's operations and their
                                         logs; default no limit */
} segue_store_options;
#define SEGUE_STORE_OPTIONS_INIT SEGUE_INIT(segue_store_options)

/* Makes a store in memory. When max_bytes is reached, the oldest ended operations are
 * evicted. If no operation has ended, an append fails with SEGUE_E_STORE_FULL. The limits
 * of a principal work in the same way, for the operations of this principal, when an
 * operation begins. The store ends with the process. A client of segue_transport_stdio
 * cannot come back to the same process, so a server with a memory store accepts no
 * idempotency keys over that transport. */
SEGUE_API segue_status segue_store_memory(const segue_store_options *options,
                                          segue_store **out);

/* Opens or creates a SQLite file as a store (WAL, group commit on a private thread).
 * Several processes of one machine may share the file; each opens its own store. Limits
 * of a principal work as in segue_store_memory, except that the log of an operation
 * counts only after the operation has ended.
 *
 * path      file name; created when absent.
 * Returns   SEGUE_E_STORE when the file cannot be opened, SEGUE_E_STORE_CORRUPT when the
 *           file is damaged, of a newer format or not a Segue store. */
SEGUE_API segue_status segue_store_sqlite(const char *path,
                                          const segue_store_options *options,
                                          segue_store **out, segue_error **error);

/* Opens a store on a Redis server (5 or newer, maxmemory-policy noeviction), which many
 * servers may share. The settings of Redis decide what a crash of Redis loses: nothing
 * with appendfsync always, up to the last second with everysec, and everything since the
 * last snapshot without AOF.
 *
 * url       redis://[[user]:password@]host[:port][/db], rediss:// (TLS; ?ca=file) or
 *           unix:///path[?db=0&user=u&password=p]; ?prefix=name separates several stores
 *           on one server.
 * Returns   SEGUE_E_STORE when Redis cannot be reached, refuses or is set to evict keys,
 *           SEGUE_E_STORE_CORRUPT when the stored data has a newer format,
 *           SEGUE_E_UNSUPPORTED when the Redis server is too old or hiredis lacks TLS. */
SEGUE_API segue_status segue_store_redis(const char *url,
                                         const segue_store_options *options,
                                         segue_store **out, segue_error **error);

/* Opens a store in a PostgreSQL database (13 or newer), which many servers may share. The
 * first server makes the tables. The settings of PostgreSQL decide what a crash of
 * PostgreSQL loses. SEGUE_DURABILITY_FULL turns synchronous_commit on if it is off.
 *
 * url       postgresql://[user[:password]@][host[:port],...][/database][?option=value]
 *           for libpq. The options schema=name ("segue"), synchronous_commit=value and
 *           listen=URL (for the connection that waits for changes) are for the store.
 * Returns   SEGUE_E_INVALID when the URL is malformed, SEGUE_E_STORE when the server is
 *           not reached or refuses, SEGUE_E_STORE_CORRUPT when data has a newer format,
 *           SEGUE_E_UNSUPPORTED for an old server or a pooler in transaction mode. */
SEGUE_API segue_status segue_store_postgres(const char *url,
                                            const segue_store_options *options,
                                            segue_store **out, segue_error **error);

/* Frees the handle. The store closes when the last server that uses it is gone. */
SEGUE_API void segue_store_free(segue_store *store);

/* ---- 6 Content --------------------------------------------------------------------- */

/* A content collects the blocks of a result. It is not thread-safe: use it from one
 * thread at a time. */

/* Makes an empty content.
 *
 * runtime   the content uses the runtime's allocator and may outlive the runtime. */
SEGUE_API segue_status segue_content_new(segue_runtime *runtime, segue_content **out);

/* Adds a text block, {"type":"text"}.
 *
 * text      UTF-8.
 * Returns   SEGUE_E_INVALID when the text is not valid UTF-8. */
SEGUE_API segue_status segue_content_add_text(segue_content *content, const char *text,
                                              size_t len, segue_error **error);

/* Adds a block of any type as JSON text, for example an embedded resource, a resource
 * link or a type of your own. For the result of resources/read or prompts/get it adds a
 * whole item of the result's list.
 *
 * json      one JSON object with a string member "type"; or with "uri" and "text" or
 *           "blob"; or with "role" and a block as its "content". A block of a type of the
 *           protocol must have the members that this type requires; a block of another
 *           type is not checked.
 * Returns   SEGUE_E_JSON when json is not valid JSON, SEGUE_E_INVALID when json is not
 *           such an object. */
SEGUE_API segue_status segue_content_add_json(segue_content *content, const char *json,
                                              size_t len, segue_error **error);

/* Adds an image or audio block; the bytes are encoded as base64.
 *
 * type      "image" or "audio".
 * mime_type such as "image/png".
 * Returns   SEGUE_E_INVALID for another type. */
SEGUE_API segue_status segue_content_add_blob(segue_content *content, const char *type,
                                              const char *mime_type, const void *data,
                                              size_t len, segue_error **error);

/* Adds text contents of a resource, for the result of resources/read.
 *
 * uri       the URI of the resource, or of a part of it.
 * mime_type MIME type of the contents; NULL = none.
 * text      UTF-8.
 * Returns   SEGUE_E_INVALID when a text is not valid UTF-8. */
SEGUE_API segue_status segue_content_add_resource_text(segue_content *content,
                                                       const char *uri,
                                                       const char *mime_type,
                                                       const char *text, size_t len,
                                                       segue_error **error);

/* Adds binary contents of a resource; the bytes are encoded as base64.
 *
 * uri       the URI of the resource, or of a part of it.
 * mime_type MIME type of the contents; NULL = none. */
SEGUE_API segue_status segue_content_add_resource_blob(segue_content *content,
                                                       const char *uri,
                                                       const char *mime_type,
                                                       const void *data, size_t len,
                                                       segue_error **error);

/* Makes each block that is added from now on a prompt message with this role.
 *
 * role      "user" or "assistant"; NULL = blocks added from now on are no messages.
 * Returns   SEGUE_E_INVALID for another role. */
SEGUE_API segue_status segue_content_set_role(segue_content *content, const char *role);

/* Sets structuredContent, replacing an earlier value.
 *
 * json      any JSON value.
 * Returns   SEGUE_E_JSON when json is not valid JSON. */
SEGUE_API segue_status segue_content_set_structured(segue_content *content,
                                                    const char *json, size_t len,
                                                    segue_error **error);

/* Marks the result as a tool error (`isError`), which a model receives and can react to.
 *
 * is_error  1 or 0. */
SEGUE_API segue_status segue_content_set_error(segue_content *content, int32_t is_error);

/* Frees a content. */
SEGUE_API void segue_content_free(segue_content *content);

/* ---- 7 Segment --------------------------------------------------------------------- */

/* A segment is one piece of a streamed result. The segment, its view and its text are
 * valid until on_segment returns. Those of a batch are valid until the next segment of
 * the batch is taken, or on_segments returns. */

/* The contents of a segment. Later versions may add members at the end of the struct. */
typedef struct segue_segment_view {
    uint64_t number;  /* number of the segment: 1, 2, 3 and so on without holes */
    uint64_t index;   /* index of the block in the content of the result, from 0. Several
                         segments may have the same index: each text continues the text of
                         the preceding segment with this index */
    int32_t replaces; /* 1 = everything that was delivered before this segment is
                         discarded */
    const char *type; /* type of the content block, such as "text"; "" = the block has no
                         type */
    const char *data; /* the content block as the server sent it, JSON text */
    size_t data_len;
} segue_segment_view;

/* Returns the contents of a segment.
 *
 * Returns   never NULL.
 * Thread    dispatch */
SEGUE_API const segue_segment_view *segue_segment_read(const segue_segment *segment);

/* Decodes the text of a text block.
 *
 * len       receives the length in bytes; may be NULL. The text may hold NUL bytes.
 * Returns   the text, or NULL when the block is not a text block.
 * Thread    dispatch */
SEGUE_API const char *segue_segment_text(const segue_segment *segment, size_t *len);

/* Takes the next segment of a batch that on_segments has received.
 *
 * Returns   NULL when all segments of the batch were taken.
 * Thread    dispatch */
SEGUE_API const segue_segment *segue_segment_batch_next(segue_segment_batch *batch);

/* ---- 8 Server ---------------------------------------------------------------------- */

/* Determines the principal: the identity of the client at the other end. The callback
 * runs once for each attached transport, and over HTTP for each request, before the body
 * is read; segue_transport_header and segue_transport_peer then describe the request.
 * Operations belong to the principal that made them; other principals cannot see that
 * they exist.
 *
 * principal receives a stable name in UTF-8; NULL or "" = the client is anonymous. A name
 *           that is not valid UTF-8 refuses the client. The text must live until the
 *           callback returns.
 * Returns   SEGUE_OK; any other status refuses the client: the connection is closed, or
 *           an HTTP request is answered with 401. */
typedef segue_status (*segue_principal_fn)(void *user, segue_transport *transport,
                                           const char **principal);

/* The kind of value that segue_validate_fn checks. */
enum segue_validation {
    SEGUE_VALIDATE_ARGUMENTS = 1, /* the arguments of a call, against the tool's
                                     inputSchema */
    SEGUE_VALIDATE_RESULT = 2     /* structuredContent, against the tool's outputSchema */
};

/* Checks whether a value fits a JSON Schema. The library has no validator; the
 * application provides one. A server checks the arguments before on_call of a tool, and
 * the result after the handler has ended the call. A session checks, before
 * on_complete, the results of tools whose schemas tools/list has reported. Limit the
 * work, and resolve no $ref over the network: a server's schema is not trusted. A
 * schema without "$schema" is 2020-12.
 *
 * tool      the tool's name. schema, value: JSON texts, valid until the callback returns.
 * reason    an empty buffer of size bytes; the callback writes why the value does not
 *           fit, as one line of UTF-8 with a NUL.
 * Returns   SEGUE_OK when the value fits, SEGUE_E_INVALID when it does not fit; another
 *           status when the callback cannot decide, for example SEGUE_E_UNSUPPORTED for
 *           an unknown dialect of schemas or an unresolved $ref. */
typedef segue_status (*segue_validate_fn)(void *user, const char *tool, int32_t what,
                                          const char *schema, size_t schema_len,
                                          const char *value, size_t value_len,
                                          char *reason, size_t size);

/* The callers for which clients and proxies may cache a result (2026-07-28). */
enum segue_cache_scope {
    SEGUE_CACHE_PRIVATE = 0, /* only for the caller of the request */
    SEGUE_CACHE_PUBLIC = 1 /* for every caller: the result is the same for all of them */
};

/* Runs each time the last conversation of the server has ended and no new one can begin,
 * because no listener is open or drains. Calls and tasks may still run. A program that
 * serves its standard input can stop now; a daemon continues. */
typedef void (*segue_idle_fn)(void *user);

/* The protocol extensions by which a server may offer its operations, in addition to the
 * plain response. Each can be switched on or off by itself (R-C-16). A client sees only
 * the extensions that it asks for. */
enum segue_dialect {
    SEGUE_DIALECT_TASKS_2025 = 1,   /* tasks of 2025-11-25 (SEP-1686); default on */
    SEGUE_DIALECT_STREAMING = 2,    /* SEP-1905: segments of tasks of 2025-11-25 as soon
                                       as they are made; default on */
    SEGUE_DIALECT_DRAFT_TASKS = 4,  /* the protocol version DRAFT-2026-v1 and its tasks
                                       (SEP-2557); default off */
    SEGUE_DIALECT_TASKS = 8,        /* tasks of 2026-07-28 (SEP-2663); default on */
    SEGUE_DIALECT_TASK_EVENTS = 16, /* tasks/stream (SEP-2694); default on */
    SEGUE_DIALECT_PARTIAL = 32,     /* PR 776: results in several responses; default on */
    SEGUE_DIALECT_PARTIAL_RESULTS = 64, /* SEP-2998: notifications with the parts of a
                                           result that exist so far; default on */
    SEGUE_DIALECT_RESUMABLE = 128, /* SEP-975: requests/resume, for calls of tools that
                                      are SEGUE_TOOL_RESUMABLE; default on */
    SEGUE_DIALECT_IMMEDIATE = 256  /* SEP-1905: the answer to a call that asked for a task
                                      is the result, if it is ready; default on */
};

/* Variants of a dialect (a protocol extension) for peers that need them. */
enum segue_draft_way {
    SEGUE_WAY_ONE_RESPONSE = 1,     /* SEP-1905: a request gets only one response. Clients
                                       fetch the other segments */
    SEGUE_WAY_TRACKING = 2,         /* SEP-1905: an immediate result also has a task */
    SEGUE_WAY_UNDECLARED_MODES = 4, /* SEP-1905: the server uses the modes that a request
                                       lists even when its client declared none */
    SEGUE_WAY_FROM_START = 8,       /* SEP-1905: _meta["dev.segue/fromSeqNr"]: 1 in
                                       tasks/result makes the server send all segments
                                       from the first on */
    SEGUE_WAY_NO_PARTIAL_INDEX = 16 /* PR 776: a response does not give the index of its
                                       blocks in the result */
};

typedef struct segue_server_options {
    size_t struct_size;
    const char *name;         /* name of the server; default "segue" */
    const char *version;      /* version of the server; default "0" */
    const char *title;        /* title of the server, for people; NULL = none */
    const char *instructions; /* text for the model that uses the server; NULL = none */
    segue_store *store;       /* the store, which is shared; NULL = the server makes a
                                 memory store */
    void *user;
    segue_free_fn free_user;
    segue_principal_fn principal;  /* NULL = all clients are anonymous */
    int32_t page_size;             /* number of items per page of a list; default 1000 */
    int64_t max_result_bytes;      /* the largest result of a plain call in bytes; default
                                      16 MiB */
    int64_t max_log_bytes;         /* the largest log of one operation in bytes; default
                                      64 MiB */
    int64_t max_segments;          /* segments of one operation; default 1,000,000 */
    int32_t max_inputs;            /* questions of one operation; default 64 */
    int32_t max_tasks;             /* running tasks, and calls that wait for answers,
                                      per principal; default 100 */
    int32_t max_requests;          /* requests in flight per connection; default
                                      65536 */
    int32_t max_streams;           /* open tasks/stream and listen requests per
                                      connection; default 256 */
    int64_t max_ttl_ms;            /* the longest time to live of a task; default 24 h */
    int64_t grace_ms;              /* the time for which an expired task can still be
                                      read; default 5 min */
    int32_t lookups_per_second;    /* failed look-ups of tasks per second and principal;
                                      default 100 */
    segue_idle_fn on_idle;         /* NULL = the end of the last conversation is not
                                      reported */
    int64_t input_wait_ms;         /* the time for which a plain call waits for answers;
                                      default 10 min */
    uint32_t dialects_on;          /* segue_dialect bits to switch on in addition to the
                                      default */
    uint32_t dialects_off;         /* segue_dialect bits to switch off; wins over
                                      dialects_on */
    uint32_t draft_ways;           /* segue_draft_way bits; default 0 = none of them */
    int32_t fetches_per_second;    /* tasks/result with lastSeqNr per second and
                                      principal; a caller that sends more is asked to
                                      wait; default 1000 */
    segue_validate_fn on_validate; /* NULL = schemas are listed, but values are not
                                      checked */
    int64_t list_ttl_ms;           /* the time for which clients of 2026-07-28 may cache
                                      lists and the answer to server/discover; default 0 =
                                      no caching */
    int32_t list_scope;            /* the callers that may share the answers of
                                      list_ttl_ms: segue_cache_scope */
    /* a secret random key of seal_key_len = 32 bytes; NULL = the server makes a key. A
     * store that survives its process keeps the key that a server over HTTP made first,
     * and all such servers on the store use it for cursors and sessions.
     * Servers with the same key accept each other's cursors, continue each other's
     * sessions (Mcp-Session-Id), and take over each other's calls that wait for answers:
     * the tool then runs from its start and finds the answers given so far */
    const void *seal_key;
    size_t seal_key_len;
    const void *seal_key_before; /* the previous key: texts that were sealed with it can
                                    still be opened, so that a key can be replaced */
    size_t seal_key_before_len;
    int64_t question_ttl_ms; /* time to live of a question that is a task. Above 0, all
                                questions to clients of 2025-11-25 that support this are
                                tasks; 0 = default, no question is a task */
    int64_t max_events; /* the number of a task's last events that can be streamed again;
                           0 = default, all. A client that asks for older events gets an
                           error; the result still has their contents. Events that
                           segue_call_replace made void leave the log and no longer count
                           against max_log_bytes */
    int64_t max_event_bytes;        /* bytes of event payloads that are stored for
                                       streaming again; 0 = no limit */
    int64_t event_ttl_ms;           /* the time for which an event is stored for streaming
                                       again; 0 = no limit */
    int64_t max_principal_requests; /* requests in flight of one principal over all
                                       connections; default 65,536 */
    /* bytes in memory of the requests and logs of one principal; default 256 MiB. A
     * principal over the limit cannot begin calls, and its plain calls get no further
     * segments. From half of the limit on, a task waits for its store. Requests that
     * follow or end a running call are always served */
    int64_t max_principal_bytes;
    int64_t max_server_requests; /* requests in flight of all principals together;
                                       default 262,144 */
    int64_t max_server_bytes;    /* bytes in memory of the requests and logs of all
                                       principals; default 1 GiB */
    int64_t first_turn_ms;       /* the longest time for which segue_call_hold_turn
                                    delays the answer to a call; default 20 */
    const char *log_level;       /* the lowest level of the log messages that a client
                                       before 2026-07-28 gets until it sets a level; NULL
                                       = it gets none */
    int64_t tool_wait_ms; /* for servers that learn their tools late, such as gateways:
                             the time for which an interrupted call of a tool that the
                             server does not have waits until the tool is added; 0 =
                             default, such a call fails at once. Above 0, the server
                             takes over no calls before it has a tool of
                             SEGUE_TOOL_RESTARTABLE */
} segue_server_options;
#define SEGUE_SERVER_OPTIONS_INIT SEGUE_INIT(segue_server_options)

/* The kinds of items of a server. Tools are always announced. Resources, prompts and
 * completion are announced only if the server has, or had, such an item when the client
 * connects. */
enum segue_item {
    SEGUE_ITEM_TOOL = 1,              /* has a "name" */
    SEGUE_ITEM_RESOURCE = 2,          /* has a "uri" and a "name" */
    SEGUE_ITEM_RESOURCE_TEMPLATE = 3, /* has a "uriTemplate" and a "name" */
    SEGUE_ITEM_PROMPT = 4,            /* has a "name", and "arguments" if it takes any */
    SEGUE_ITEM_QUESTION = 5,          /* item of a session's host (segue_session_options);
                                         its "method" is "sampling/createMessage" or
                                         "elicitation/create" */
    /* Decides which items of a list a caller sees. Its "method" is "tools/list",
     * "resources/list", "resources/templates/list" or "prompts/list". Its on_call runs
     * before such a list is answered, and before a request names an item of that list:
     * tools/call, resources/read, prompts/get, completion/complete. segue_call_name is ""
     * for a list, and the item's name, URI or template for such a request;
     * segue_call_params are those of the request. The handler sets the field "shown"
     * (segue_call_set_field), an array of the names, URIs or templates that the caller
     * sees, and completes the call. Without the field the caller sees all of them. A
     * hidden item is in no page of the list, and a request that names it is answered as
     * if the server had no such item. A call that fails is the error of the request.
     * Subscriptions to resources do not ask. Adding or removing such an item reports the
     * list as changed. Without such an item no list and no call is slower */
    SEGUE_ITEM_LIST = 6
};

/* Flags of an item of SEGUE_ITEM_LIST. */
enum segue_list_flag {
    SEGUE_LIST_SHOWS_ALL = 1 /* the handler hides nothing: it only runs before the list is
                                answered, and a field "shown" has no effect */
};

/* Flags of a tool. */
enum segue_tool_flag {
    SEGUE_TOOL_INCREMENTAL = 1, /* the tool sends its output in segments */
    SEGUE_TOOL_RESTARTABLE = 2, /* after a crash the tool runs again and continues after
                                   its last segment */
    SEGUE_TOOL_UNSTOPPABLE = 4, /* tasks/cancel has no effect on the tool's tasks, except
                                   in 2025-11-25, where it must cancel every task */
    SEGUE_TOOL_RESUMABLE = 8,   /* before 2026-07-28, a client that declares
                                   resumableRequests may fetch the answer to a call after
                                   it lost its connection (SEP-975) */
    /* each call is stored before its handler runs, also while it is no task yet
     * (promote_after_ms): it continues when its client's connection is lost, has
     * checkpoints, and after a crash it is restarted or ended. No effect over
     * segue_transport_stdio with a memory store */
    SEGUE_TOOL_STORED = 16
};

/* Says whether an item is in its list and whether requests find it. A gateway may list
 * templates that only another server can match, and read URIs that are in no list. */
enum segue_visibility {
    SEGUE_VISIBLE = 0,     /* the item is in its list, and requests find it */
    SEGUE_SERVED_ONLY = 1, /* requests find the item, but it is in no list */
    SEGUE_LISTED_ONLY = 2  /* for a template: it is in its list, but no URI matches it, so
                              it may have any form of RFC 6570 */
};

/* Says whether a call of the tool may become a task: an operation that outlives the
 * connection. */
enum segue_task_policy {
    SEGUE_TASK_NEVER = 0, /* always a plain call */
    SEGUE_TASK_MAY = 1,   /* a task for clients that support tasks, a plain call for
                           others */
    SEGUE_TASK_MUST = 2   /* clients that do not support tasks are refused (-32021) */
};

/* Runs a tool, reads a resource, makes a prompt or completes an argument. The handler
 * owns `call`: it ends the call by segue_call_complete or segue_call_fail, now or later,
 * on any thread, and frees it. In an inline runtime the handler runs on the I/O thread,
 * so do long work on another thread. */
typedef void (*segue_call_fn)(void *user, segue_call *call);

typedef struct segue_item_options {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_call_fn on_call;
    int32_t flags;               /* segue_tool_flag bits, or for SEGUE_ITEM_LIST
                                    segue_list_flag bits; the next four members are for
                                    tools only */
    int32_t task;                /* a segue_task_policy */
    int64_t ttl_ms;              /* time to live of the tool's tasks, counted from their
                                    creation; default 1 h */
    int64_t poll_ms;             /* poll interval that clients should use; default 1000 */
    int64_t promote_after_ms;    /* SEGUE_TASK_MAY: the time after which a call becomes a
                                    task; 0 = at once */
    segue_call_fn on_completion; /* for a prompt or template: suggests values of an
                                    argument (segue_call_set_completion); NULL = no
                                    suggestions */
    int64_t read_ttl_ms;         /* for a resource or template: the time for which its
                                    contents may be cached, unless the call sets another
                                    time; default 0 */
    int32_t read_scope;          /* the callers that may share the cached contents:
                                    segue_cache_scope */
    /* scopes, separated by blanks. Over HTTP a caller's token needs all of them (403
     * otherwise), and a listener without authorization refuses every caller. Over stdio
     * and other byte streams they have no effect. NULL = none */
    const char *scopes;
    int64_t resume_min_wait_ms; /* SEGUE_TOOL_RESUMABLE: the time for which a client
                                   should wait before it comes back after a lost
                                   connection; 0 = the client gets no such time */
    int64_t resume_max_wait_ms; /* SEGUE_TOOL_RESUMABLE: the call is cancelled when the
                                   client does not come back within this time; default 10
                                   min, -1 = 10 min that are not reported to the client */
    int32_t visibility;         /* a segue_visibility */
} segue_item_options;
#define SEGUE_ITEM_OPTIONS_INIT SEGUE_INIT(segue_item_options)

/* Makes a server. It offers tools, resources and prompts and runs their operations.
 *
 * options   the store is shared, not consumed.
 * Returns   SEGUE_E_INVALID for an option that is out of range. */
SEGUE_API segue_status segue_server_new(segue_runtime *runtime,
                                        const segue_server_options *options,
                                        segue_server **out, segue_error **error);

/* Adds an item. Attached clients that listen for changes get a list_changed notification.
 *
 * item      segue_item.
 * json      the item as a list shows it, e.g.
 *           {"name":"add","inputSchema":{"type":"object"}}.
 * options   on_call is required.
 * Returns   SEGUE_E_JSON, SEGUE_E_INVALID when the item lacks a required member, a
 *           template or schema is malformed or an option is not for this kind of item,
 *           SEGUE_E_EXISTS when the server has an item of this kind with the same name,
 *           URI or template. */
SEGUE_API segue_status segue_server_add(segue_server *server, int32_t item,
                                        const char *json, size_t len,
                                        const segue_item_options *options,
                                        segue_error **error);

/* Removes an item. Running calls of the item continue.
 *
 * name      the item's name; for a resource its URI, for a template its text.
 * Returns   SEGUE_E_NOT_FOUND when the server has no such item. */
SEGUE_API segue_status segue_server_remove(segue_server *server, int32_t item,
                                           const char *name);

/* Notifies the clients that subscribed to a resource that the resource has changed.
 * Several changes before the notification is sent are reported once.
 *
 * uri       the URI of the subscription; no item with this URI is needed.
 * Returns   SEGUE_OK, also when no client has subscribed. */
SEGUE_API segue_status segue_server_resource_updated(segue_server *server,
                                                     const char *uri);

/* Serves the client at the other end of a transport. The first attach also recovers the
 * operations that an earlier process left unfinished in the store: restartable tools run
 * again, other operations fail.
 *
 * transport consumed on success.
 * Returns   SEGUE_E_STATE when the transport was attached before, SEGUE_E_INVALID when
 *           the transport belongs to another runtime. */
SEGUE_API segue_status segue_server_attach(segue_server *server,
                                           segue_transport *transport,
                                           segue_error **error);

/* Ends all connections after the queued messages have been sent. Tasks stay in the
 * store. */
SEGUE_API segue_status segue_server_close(segue_server *server);

/* Frees the handle. The server lives while it has connections or running calls. */
SEGUE_API void segue_server_free(segue_server *server);

/* ---- 8.1 Listening ----------------------------------------------------------------- */

typedef struct segue_bearer_options segue_bearer_options; /* segue_auth.h */

typedef struct segue_listen_options {
    size_t struct_size;
    const char *address; /* address to listen on: "127.0.0.1" (default), "::1", "0.0.0.0",
                            "unix:/run/x.sock", "systemd" or "systemd:NAME" for an
                            inherited socket */
    int32_t port;        /* 0 = any free port */
    int32_t reuse_port;  /* 1 = several runtimes share the port (SO_REUSEPORT) */
    const char *path;    /* path of the endpoint; default "/mcp" */
    const char *health_path;      /* path of the health check: GET answers 200 while the
                                     server serves; NULL = none */
    const char *cert_file;        /* certificate chain, PEM, for TLS 1.2 or newer; NULL =
                                     HTTP without TLS */
    const char *key_file;         /* the key of cert_file; NULL = cert_file contains it */
    const char *client_ca_file;   /* client certificates are requested, and verified with
                                     this file; NULL = no client certificates */
    int32_t client_cert_required; /* 1 = clients without a certificate are refused */
    const char *hosts;   /* names that are allowed in the Host header, separated by
                            commas; "*" = any name. NULL = on loopback only names of
                            loopback; elsewhere localhost and addresses, or any name with
                            TLS or bearer */
    const char *origins; /* origins that are allowed in the Origin header, separated by
                            commas; "*" = any; NULL = on loopback the origins of loopback
                            with any port, elsewhere the origin of Host */
    int32_t cors;        /* 1 = web pages of allowed origins may call the server (CORS) */
    int32_t unauthenticated_tasks; /* 1 = anonymous callers from other machines may have
                                      tasks too (R-2557-53) */
    int64_t max_header_bytes;      /* the largest head of a request in bytes; default 32
                                      KiB */
    int32_t max_connections;       /* open connections; default 16384 */
    int32_t max_streams;           /* open event streams per principal; default 1024 */
    int32_t max_sessions;          /* sessions (Mcp-Session-Id) of clients that use
                                      initialize; default 10000 */
    int64_t session_idle_ms;   /* the time after which an unused session ends; default 30
                                  min */
    int64_t max_replay_bytes;  /* the number of bytes of events of one answer that a
                                  session stores for Last-Event-ID; a client that needs
                                  older events gets 410; default 1 MiB */
    int64_t idle_timeout_ms;   /* the time after which an idle connection closes; default
                                  75000 */
    int64_t header_timeout_ms; /* the longest time for a TLS handshake, and for the head
                                  of a request; default 10000 */
    int64_t body_timeout_ms;   /* the longest time for the body of a request; default
                                  30000 */
    int64_t write_timeout_ms;  /* the time after which a peer that reads nothing is
                                  disconnected; default 60000 */
    int64_t keepalive_ms;      /* the time of silence on a stream after which a comment is
                                  sent; default 15000 */
    int64_t stream_after_ms;   /* the time after which an unfinished answer becomes an
                                  event stream, so that proxies see data; default 200 */
    /* The longest time that the end takes after segue_listener_close; default 10000. The
     * listener ends earlier when nobody is left to wait for. It waits for
     * - calls that run, as long as their client is connected or can come back. A call
     *   that was taken over from another server counts once its handler has sent
     *   something: before that the next server can begin it as well;
     * - a client that is connected and has not received all of its answer or stream;
     * - a client that is away, if only this process has the end of its call: the store
     *   ends with the process, or the call is a plain call of a session that began with
     *   initialize. The wait is the time after which the client was asked to come back,
     *   and 1 s more. This time is the poll interval of a task (poll_ms), the retry time
     *   of segue_call_hang_up, or else 1 s. It counts from the end of the call, or from
     *   the client's last request for it if that was later.
     * A client that left before is not waited for, and its result ends with the
     * process. */
    int64_t drain_ms;
    /* how the tokens of callers are checked (segue_auth.h). Every caller needs a token,
     * and the principal function does not run; NULL = callers need no tokens */
    const segue_bearer_options *bearer;
    const char *ready_path;  /* path of the readiness check: GET answers 200 while the
                               server serves and is ready (segue_listener_set_ready),
                               otherwise 503; NULL = none */
    const char *live_path;   /* path of the liveness check: GET answers 200 while the
                               listener runs, also while it closes; NULL = none */
    int32_t lenient_headers; /* 1 = requests about a task may lack the header Mcp-Name,
                                which some clients leave out (FastMCP 4). Such a request
                                is otherwise refused with 400 */
    const char *tokens_file; /* the file that has the tokens of callers (segue_auth.h;
                                segue_listener_reload reads it again). Every caller needs
                                one of them, and the principal function does not run; NULL
                                = none. Excludes bearer */
    int64_t idle_drain_ms;   /* the time for which idle connections stay open after
                                segue_listener_close: a request that is on its way on one
                                of them is refused with 503 then, and not cut, so a load
                                balancer can send it to another server. At most drain_ms;
                                default 0: they close at once */
    /* Path of the metrics of all servers of the listener; NULL = none. GET answers as
     * segue_server_metrics (segue_ext.h), where each sample of a server has the label
     * endpoint, its path. Callers are identified, and Host and Origin checked, as for
     * calls; who is not on this machine, or came through a proxy, and has no name is
     * refused with 403. A build without metrics refuses the option
     * (SEGUE_E_UNSUPPORTED). */
    const char *metrics_path;
    /* Path of the task board (core/docs/board.md), a web page that shows the tasks of the
     * listener's servers; NULL = none. Who may use it is decided as for the metrics. A
     * build without the board refuses the option (SEGUE_E_UNSUPPORTED). */
    const char *board_path;
    segue_store *board_store; /* the board shows this store, whose servers may run or not,
                                 in place of those of the servers; NULL = theirs. The
                                 listener keeps a reference */
    int32_t board_read_only;  /* 1 = the board changes nothing */
    int32_t board_redact;     /* 1 = the board shows neither arguments nor segments,
                                 questions, messages and results */
    const char *board_token;  /* a secret of at least 16 letters, digits and -._~+/, which
                                 may end with =: a request to the board needs it as its
                                 Bearer token, wherever its caller is, and gets 401
                                 without it. Who has it sees all tasks. The page takes it
                                 from its URL (#token=...). Excludes bearer and
                                 tokens_file; NULL = none */
} segue_listen_options;
#define SEGUE_LISTEN_OPTIONS_INIT SEGUE_INIT(segue_listen_options)

/* Serves clients over HTTP: one listening socket offers MCP at one path, in all revisions
 * of Streamable HTTP. segue_listener_add offers more servers at other paths. Like
 * segue_server_attach, the first listener recovers the operations of the server's store.
 *
 * Returns   SEGUE_E_IO when the address or a file cannot be used, SEGUE_E_INVALID for a
 *           malformed address or file of tokens, and for a limit out of range. */
SEGUE_API segue_status segue_server_listen(segue_server *server,
                                           const segue_listen_options *options,
                                           segue_listener **out, segue_error **error);

/* Returns the URL of the endpoint, such as "http://127.0.0.1:40123/mcp"; for a Unix
 * socket "unix:/run/x.sock:/mcp".
 *
 * Returns   the text, which lives as long as the handle; "" for NULL. */
SEGUE_API const char *segue_listener_url(const segue_listener *listener);

/* Serves another server at another path of the listener's address. The options of the
 * listener hold for all its paths. It accepts one set of tokens for all of them, so with
 * bearer, name a resource that covers them, such as "https://mcp.example.com/". The
 * listener closes when one of its servers closes. Give each server a store of its own: a
 * server ends the interrupted operations of its store whose items it does not have.
 *
 * server    a server of the same runtime.
 * path      path of the endpoint, such as "/notes".
 * Returns   SEGUE_E_EXISTS when the listener has the path already, SEGUE_E_INVALID for a
 *           malformed path or a server of another runtime, SEGUE_E_CLOSED when the
 *           listener or the server is closed. */
SEGUE_API segue_status segue_listener_add(segue_listener *listener, segue_server *server,
                                          const char *path, segue_error **error);

/* Ends the service at one path of the listener: new requests there get 404, and another
 * server may get the path. Requests under way are answered, and streams go on. From then
 * on the end of the server does not close the listener, so close the server to end its
 * sessions and streams. When the last path is removed, the listener still listens.
 *
 * path      path of the endpoint.
 * Returns   SEGUE_E_NOT_FOUND when the listener has no server at the path. */
SEGUE_API segue_status segue_listener_remove(segue_listener *listener, const char *path);

/* Reads the certificate files, for new connections, and the key set of jwks_file or the
 * tokens of tokens_file again. A file without tokens lets nobody in then.
 *
 * Returns   SEGUE_E_IO when a file cannot be used: all previous files stay in use;
 *           SEGUE_E_STATE with neither TLS nor jwks_file nor tokens_file. */
SEGUE_API segue_status segue_listener_reload(segue_listener *listener,
                                             segue_error **error);

/* Says whether ready_path answers 200. A listener is ready until it is told otherwise.
 * Requests are served in either case.
 *
 * ready     1 or 0. */
SEGUE_API segue_status segue_listener_set_ready(segue_listener *listener, int32_t ready);

/* Stops listening. Idle connections close after idle_drain_ms; calls may end within
 * drain_ms, which says whom the listener waits for. New requests are refused with 503,
 * Retry-After and "server_ending". Clients of this library send a refused request again,
 * to the server that then listens at the same address. While calls run, a client that
 * lost the connection of a call may come back for the rest with a token, a task id, an
 * idempotency key or an event id. A socket that other processes share (reuse_port,
 * systemd) closes at once, so that they get the new requests. Streams for change
 * notifications end at once. */
SEGUE_API segue_status segue_listener_close(segue_listener *listener);

/* Frees the handle. The listener continues until it, or its server, is closed. */
SEGUE_API void segue_listener_free(segue_listener *listener);

/* ---- 9 Call (inbound) -------------------------------------------------------------- */

/* Runs at most once, when the client wants the call to end. The handler may continue
 * and complete the call; output of a cancelled operation is dropped. */
typedef void (*segue_cancel_fn)(void *user, segue_call *call);

/* Runs after segue_call_send has returned SEGUE_E_WOULD_BLOCK, when segments can be
 * sent again. */
typedef void (*segue_drain_fn)(void *user, segue_call *call);

/* Runs after segue_call_checkpoint, when the bytes are stored: a crash does not lose them
 * any more. Do what must not happen twice afterwards. Of checkpoints that follow each
 * other closely, only the last one is reported. A crash ends a call that is not stored,
 * so its checkpoints are reported at once. */
typedef void (*segue_checkpoint_fn)(void *user, segue_call *call);

/* What happens to a call while it runs (segue_call_watch). */
typedef struct segue_call_events {
    size_t struct_size;
    void *user;
    segue_free_fn free_user;
    segue_cancel_fn on_cancel;
    segue_drain_fn on_drain;
    segue_checkpoint_fn on_checkpoint;
} segue_call_events;
#define SEGUE_CALL_EVENTS_INIT SEGUE_INIT(segue_call_events)

/* Receives the answer to segue_call_require_input.
 *
 * status    SEGUE_OK: the client answered, perhaps that its user declines;
 *           SEGUE_E_REMOTE: the client answered with a JSON-RPC error (before
 *           2026-07-28); SEGUE_E_CANCELLED when the operation ended first.
 * json      for SEGUE_OK the answer, for SEGUE_E_REMOTE the error object with its "code",
 *           otherwise NULL; valid until the callback returns. */
typedef void (*segue_input_fn)(void *user, segue_call *call, segue_status status,
                               const char *json, size_t len);

/* Returns the runtime of a call, for handlers that start requests, timers or threads.
 *
 * Returns   NULL for NULL. */
SEGUE_API segue_runtime *segue_call_runtime(const segue_call *call);

/* Returns the method that runs the handler: "tools/call", "resources/read", "prompts/get"
 * or "completion/complete".
 *
 * Returns   a string that lives as long as the library. */
SEGUE_API const char *segue_call_method(const segue_call *call);

/* Returns the name of the tool or prompt. For resources/read it is the URI, for a
 * completion the prompt's name or the template's text, for a question its method.
 *
 * Returns   a string that lives as long as the call. */
SEGUE_API const char *segue_call_name(const segue_call *call);

/* Returns the principal of the caller: the name from the principal function or from the
 * token. A task that runs again after a crash has the principal that made it.
 *
 * Returns   a string that lives as long as the call; "" for an anonymous caller. */
SEGUE_API const char *segue_call_principal(const segue_call *call);

/* Tells whether the token of the caller grants a scope, directly or by a scope that
 * implies it. Over HTTP without authorization no caller has any scope. Over stdio and
 * other byte streams there are no tokens, and every caller has all scopes.
 *
 * Returns   1 or 0. */
SEGUE_API int32_t segue_call_has_scope(const segue_call *call, const char *scope);

/* Returns the whole params of the request as JSON text.
 *
 * len       receives the length in bytes; no NUL follows the text. NULL gives "".
 * Returns   the text, an object; lives as long as the call. */
SEGUE_API const char *segue_call_params(const segue_call *call, size_t *len);

/* Gives one member of the request's _meta as JSON text, e.g. of "traceparent".
 *
 * json, len receive the text, which lives as long as the call and is not NUL-terminated.
 * Returns   SEGUE_E_NOT_FOUND when the client did not send this member. */
SEGUE_API segue_status segue_call_meta(const segue_call *call, const char *key,
                                       const char **json, size_t *len);

/* Gives a header of the HTTP request that made the call. Over a byte stream there are no
 * headers. A task has those of the request that made it, whatever its client sends later.
 * Headers stay in memory and are not stored, because they hold secrets such as tokens and
 * cookies: a handler that runs again after a restart, or on another server, has none.
 * They count for max_principal_bytes while the call lives.
 *
 * name      in upper or lower case.
 * index     which value, if the request has the header more than once: 0 is the first.
 * value, len receive the value without surrounding blanks, which lives as long as the
 *           call, ends with a NUL and may be invalid UTF-8. len may be NULL.
 * Returns   SEGUE_E_NOT_FOUND when the request has no such value. */
SEGUE_API segue_status segue_call_header(const segue_call *call, const char *name,
                                         size_t index, const char **value, size_t *len);

/* Gives one of all headers of segue_call_header, in the order of the request.
 *
 * index     counts the headers from 0.
 * name      receives the name in lower case, as `value` receives the value.
 * Returns   SEGUE_E_NOT_FOUND when the request has not more than `index` headers. */
SEGUE_API segue_status segue_call_header_at(const segue_call *call, size_t index,
                                            const char **name, const char **value,
                                            size_t *len);

/* Gives one argument as JSON text. The arguments of resources/read are the decoded
 * variables of the template. The client chooses them, so they may contain anything, also
 * "../". The arguments of a completion are "name" and "value" of the argument to
 * complete; segue_call_params has the rest.
 *
 * json, len receive the text, which lives as long as the call and is not NUL-terminated.
 * Returns   SEGUE_E_NOT_FOUND when the caller did not send this argument. */
SEGUE_API segue_status segue_call_argument(const segue_call *call, const char *name,
                                           const char **json, size_t *len);

/* Gives one string argument, decoded. The text may hold NUL bytes.
 *
 * text, len receive the text, which lives as long as the call.
 * Returns   SEGUE_E_NOT_FOUND when the argument is absent, SEGUE_E_INVALID when it is not
 *           a string.
 */
SEGUE_API segue_status segue_call_argument_text(segue_call *call, const char *name,
                                                const char **text, size_t *len);

/* Gives one integer argument.
 *
 * value     receives the number.
 * Returns   SEGUE_E_NOT_FOUND when the argument is absent, SEGUE_E_INVALID when it is not
 *           an integer of 64 bits.
 */
SEGUE_API segue_status segue_call_argument_int(const segue_call *call, const char *name,
                                               int64_t *value);

/* Sets the callbacks of the call, at most once per call.
 *
 * Returns   SEGUE_E_STATE when callbacks were set before. */
SEGUE_API segue_status segue_call_watch(segue_call *call,
                                        const segue_call_events *events);

/* Tells whether the client cancelled the call, by a message or by a disconnect where a
 * disconnect cancels calls.
 *
 * Returns   1 or 0. */
SEGUE_API int32_t segue_call_is_cancelled(const segue_call *call);

/* Emits one segment for each block of the content; its other members become fields.
 *
 * Effect    each segment gets a number, is stored if the call is a task, and is then sent
 *           to the clients that read it.
 * Returns   SEGUE_E_WOULD_BLOCK when too much output waits (no segment was made; on_drain
 *           follows), SEGUE_E_TERMINAL when the operation has ended, SEGUE_E_LIMIT when
 *           the result is too large (the operation then ends with an error). */
SEGUE_API segue_status segue_call_send(segue_call *call, const segue_content *content,
                                       segue_error **error);

/* Emits one text segment of a tool, or one piece of the text of a resource that is read.
 * All pieces of a resource form one text with the resource's URI and MIME type (default
 * "text/plain"). A client that accepts pieces receives each piece when it is made.
 *
 * text      UTF-8.
 * Returns   as segue_call_send, and SEGUE_E_INVALID when the text is not valid UTF-8 or
 *           the call is neither of a tool nor of a resource. */
SEGUE_API segue_status segue_call_send_text(segue_call *call, const char *text,
                                            size_t len, segue_error **error);

/* Emits text that continues a text block of the result. A client that reads the stream
 * receives the text as a separate segment; in the result it is appended to that block.
 * For a task that streams by SEP-1905, and on a server with SEGUE_WAY_NO_PARTIAL_INDEX,
 * the text is a separate block in the result too.
 *
 * index     index of the block, from 0, among the blocks emitted since the last
 *           segue_call_replace. Text that continues a block is not counted.
 * text      UTF-8.
 * Returns   as segue_call_send_text, and SEGUE_E_INVALID when there is no such block yet,
 *           it is not a text block, or the call is not of a tool. */
SEGUE_API segue_status segue_call_extend_text(segue_call *call, int64_t index,
                                              const char *text, size_t len,
                                              segue_error **error);

/* Discards everything emitted so far, for all readers; the next segment starts the
 * result. The blocks that were sent stay in the result of a task that streams by SEP-1905
 * if a server asked for the task by a question, or if the client did not declare
 * experimental["dev.segue/replace"]. Even then, segue_call_extend_text counts from 0
 * again.
 *
 * Returns   as segue_call_send. */
SEGUE_API segue_status segue_call_replace(segue_call *call, segue_error **error);

/* Sets a member of the result other than its list of content: structuredContent or _meta
 * of a tool, the description of a prompt, ttlMs and cacheScope of a resource.
 *
 * json      any JSON value; a later value replaces an earlier one. _meta is merged key by
 *           key.
 * Returns   as segue_call_send; SEGUE_E_JSON; SEGUE_E_INVALID for the list ("content",
 *           "contents", "messages"), "isError" and "resultType", and for an invalid ttlMs
 *           or cacheScope of a resource. */
SEGUE_API segue_status segue_call_set_field(segue_call *call, const char *name,
                                            const char *json, size_t len,
                                            segue_error **error);

/* Sets the suggestions of a completion, the most relevant first. Suggestions set before
 * are replaced. Then end the call by segue_call_complete with NULL.
 *
 * values    count strings, UTF-8; at most 100.
 * total     how many suggestions exist in all; < 0 = unknown.
 * has_more  1 when there are more suggestions than values, else 0.
 * Returns   as segue_call_send; SEGUE_E_INVALID when the call is not a completion, for
 *           more than 100 values and for text that is not UTF-8. */
SEGUE_API segue_status segue_call_set_completion(segue_call *call,
                                                 const char *const *values, size_t count,
                                                 int64_t total, int32_t has_more,
                                                 segue_error **error);

/* Reports progress, if the client asked for it. A task of 2025-11-25 reports progress
 * while its conversation lasts; a task of 2026-07-28 reports none.
 *
 * total     0 = unknown. message: may be NULL.
 * Effect    when max_queue_bytes of output wait for the client, the report waits, too,
 *           and the next one replaces it: the newest wins. The last report arrives
 *           before the answer. A task of 2025-11-25 and a call that can be resumed leave
 *           reports out instead. segue_server_stats counts what was replaced (thinned).
 * Returns   SEGUE_OK, also when no client listens; SEGUE_E_INVALID when progress or total
 *           is not a finite number. */
SEGUE_API segue_status segue_call_progress(segue_call *call, double progress,
                                           double total, const char *message,
                                           segue_error **error);

/* Sends a log message to the client, if the client asked for messages of this level. When
 * the client reads slowly, a message replaces the one that waits, as reports do
 * (segue_call_progress). The last message arrives.
 *
 * level     "debug", "info", "notice", "warning", "error", "critical", "alert",
 *           "emergency".
 * json      any JSON value.
 * Returns   SEGUE_OK, also when no client listens; SEGUE_E_JSON; SEGUE_E_INVALID for an
 *           unknown level. */
SEGUE_API segue_status segue_call_log(segue_call *call, const char *level,
                                      const char *json, size_t len, segue_error **error);

/* Sets the text that describes the state of a task.
 *
 * Returns   as segue_call_send. */
SEGUE_API segue_status segue_call_set_status(segue_call *call, const char *message,
                                             segue_error **error);

/* Asks the client for input, e.g. elicitation/create. A task gets the status
 * input_required. In 2026-07-28 the response to a plain call has all questions asked by
 * the end of the callback; the client must send its answers within input_wait_ms. In
 * earlier revisions each question is a request to the client.
 *
 * key       name of the question, unique in the operation: 1 to 64 of A-Z a-z 0-9 . _ -;
 *           NULL = the library makes one. A later run that asks with the same key gets
 *           the first run's answer.
 * method    method of the question; params: its parameters, JSON text. A task that _meta
 *           names is left out: the library names the task of the call.
 * on_input  called once with the answer, before free_user(user).
 * Returns   SEGUE_E_EXISTS for a key that was used, SEGUE_E_UNSUPPORTED when the client
 *           does not support the question, SEGUE_E_LIMIT when max_inputs, or for a plain
 *           call max_tasks, is reached, SEGUE_E_TERMINAL when the operation has ended. */
SEGUE_API segue_status segue_call_require_input(segue_call *call, const char *key,
                                                const char *method, const char *params,
                                                size_t len, segue_input_fn on_input,
                                                void *user, segue_free_fn free_user,
                                                segue_error **error);

/* Turns a running call into a task now, instead of at promote_after_ms.
 *
 * ttl_ms    time to live; 0 = as the client has asked, or as in the tool's options if the
 *           client has not; -1 = unlimited where the server allows it.
 * Returns   SEGUE_OK, also when the call is a task already; SEGUE_E_UNSUPPORTED when the
 *           tool or the client does not allow tasks, or when the call can be resumed or
 *           is stored without asking for a task; SEGUE_E_LIMIT when the client has
 *           too many tasks; SEGUE_E_STATE while a plain call waits for answers. */
SEGUE_API segue_status segue_call_defer(segue_call *call, int64_t ttl_ms,
                                        segue_error **error);

/* Stores bytes of the application with the call. After a crash the next run of the tool
 * gets the last bytes stored. The bytes of a plain call that asks for a task are stored
 * when it becomes one. on_checkpoint follows, or on_cancel when the store does not take
 * the bytes, and the call has ended with an error.
 *
 * Returns   as segue_call_send; SEGUE_E_STATE when the call is not stored and cannot
 *           become a task. */
SEGUE_API segue_status segue_call_checkpoint(segue_call *call, const void *data,
                                             size_t len, segue_error **error);

/* Reports where an earlier run of this task ended.
 *
 * last_segment  receives the number of the last stored segment, 0 on a first run. This
 *               run continues with the next segment.
 * data, len     receive the last checkpoint, or NULL when there is none; may be NULL. The
 *               checkpoint lives as long as the call.
 * Returns   SEGUE_E_NOT_FOUND on a first run. */
SEGUE_API segue_status segue_call_resumed(const segue_call *call, uint64_t *last_segment,
                                          const void **data, size_t *len);

/* Ends the call with a result: the blocks emitted so far, then the blocks of the content.
 *
 * Effect    on_validate may still make the call fail (-32603) after this function has
 *           returned.
 * content   may be NULL; not consumed. A tool gives blocks, resources/read gives contents
 *           of resources, prompts/get gives messages, a completion gives no content.
 * Returns   SEGUE_E_TERMINAL when the call has ended already, SEGUE_E_INVALID when the
 *           content does not suit the method, or the tool has an outputSchema and gave no
 *           structuredContent (then the call has ended, with -32603). */
SEGUE_API segue_status segue_call_complete(segue_call *call, const segue_content *content,
                                           segue_error **error);

/* Ends the call with a JSON-RPC error. For an error that a model should see, use
 * segue_content_set_error and segue_call_complete instead.
 *
 * code      e.g. -32603; data: JSON text or NULL. -32002 for resources/read means "not
 *           found": the client gets the code of its revision, with the URI as data.
 * Returns   SEGUE_E_TERMINAL, SEGUE_E_JSON, SEGUE_E_INVALID for a code that the protocol
 *           reserves and does not define. */
SEGUE_API segue_status segue_call_fail(segue_call *call, int32_t code,
                                       const char *message, const char *data, size_t len,
                                       segue_error **error);

/* Frees the call. A call that has not ended fails with -32603. After segue_server_close a
 * task does not fail: the store releases the task, and the next server on the store
 * continues or ends it. */
SEGUE_API void segue_call_free(segue_call *call);

/* ---- 10 Session (client) ----------------------------------------------------------- */

/* The revisions that a session may speak. */
enum segue_era {
    SEGUE_ERA_AUTO = 0,   /* the session tries server/discover first, then initialize */
    SEGUE_ERA_MODERN = 1, /* the session uses 2026-07-28 only */
    SEGUE_ERA_LEGACY = 2  /* the session uses initialize only */
};

/* The response modes of SEP-1905, as a set. A client lists the modes that it accepts in
 * a tools/call that asks a server of 2025-11-25 for a task. The server uses only listed
 * modes. When the server offers none of them, it uses a task. */
enum segue_response_mode {
    SEGUE_RESPONSE_TASK = 1,      /* "task": the client fetches the result when the task
                                     has ended */
    SEGUE_RESPONSE_IMMEDIATE = 2, /* "immediate": the response has the result, if it is
                                     ready */
    SEGUE_RESPONSE_STREAMING = 4  /* "streaming": the client receives segments as soon as
                                     they are made */
};

/* A session may have a host: a server of the application that answers the questions of
 * the other end in 2025-11-25, where a question may be a task (basic/utilities/tasks).
 * The session declares each item of SEGUE_ITEM_QUESTION that the host has when the
 * session is opened. The item's handler then gets these questions instead of on_input.
 * The handler gets a call like that of a tool, whose arguments are the params of the
 * question. It sends content (streamed if the server supports SEP-1905), sets fields
 * (role, model and stopReason, or action and content for an elicitation) and completes
 * the call. It cannot ask questions itself. task, flags, ttl_ms and poll_ms of the
 * item, and store, limits and dialects of the host work as for tools; the host's
 * principal function receives the session's transport. The host should serve nothing
 * else. In other revisions on_input gets all questions. */
typedef struct segue_session_options {
    size_t struct_size;
    const char *name;         /* name of the client; default "segue" */
    const char *version;      /* version of the client; default "0" */
    const char *capabilities; /* JSON object, e.g. {"elicitation":{}}; may be NULL. The
                                   library adds the declaration of tasks; a member "tasks"
                                   replaces this declaration in 2025-11-25 */
    int32_t era;              /* the revisions that the session offers: segue_era */
    /* the time for which the session waits for the answer to server/discover; default
     * 5000. Without an answer it sends initialize, since the server may be older or still
     * starting. If the server answers server/discover before it answers initialize, or
     * within this time after it refused initialize, the session uses that answer. No
     * effect with SEGUE_ERA_MODERN. Over HTTP, where old servers refuse server/discover,
     * this is instead the time for which the session waits for the answer to
     * notifications/initialized */
    int64_t probe_timeout_ms;
    int64_t request_timeout_ms; /* the longest time of one request and response on the
                                   wire; default 60000 */
    int32_t max_reconnects;     /* the maximum of reconnects in a row, and separately of
                                   repetitions of a failed tasks/get, tasks/update or
                                   tasks/result; 0 = default 20, -1 = none */
    int64_t max_result_bytes;   /* the largest result of one request in bytes; default 64
                                   MiB */
    int32_t max_requests;       /* requests in flight; default 65536 */
    int32_t no_idempotency;     /* 1 = never send an idempotency key */
    int32_t no_tasks;           /* 1 = do not declare tasks, and ask for none */
    /* 1 = members that an accepted answer to elicitation/create leaves out get the
     * defaults of the schema, for applications that show no form (SEP-1034) */
    int32_t fill_defaults;
    int64_t cache_bytes;   /* number of bytes of the cache of fresh results (ttlMs of
                                   2026-07-28); 0 = default 1 MiB, -1 = no cache */
    uint32_t dialects_off; /* SEGUE_DIALECT_PARTIAL, SEGUE_DIALECT_PARTIAL_RESULTS:
                                   the session does not request segments of a plain call
                                   by this extension */
    /* SEGUE_DIALECT_DRAFT_TASKS: initialize offers DRAFT-2026-v1; of no effect with
     * no_tasks. SEGUE_DIALECT_RESUMABLE: a server before 2026-07-28 may offer to repeat
     * its answers (SEP-975). The session fetches them again when the connection breaks,
     * and such requests have tokens (segue_request_token) */
    uint32_t dialects_on;
    segue_server *host;     /* the server that answers questions (see the comment of this
                               struct); shared; NULL = none */
    int32_t first_attempts; /* the largest number of attempts to connect for the first
                                   time; 0 = max_reconnects + 1 */
    /* the time after the loss of a server within which attempts to reconnect may begin.
     * Over HTTP each request has its own attempts. After this time the session, over HTTP
     * the request, ends with SEGUE_E_DISCONNECTED. 0 = default 60000, -1 = only
     * max_reconnects limits the attempts */
    int64_t reconnect_timeout_ms;
    /* set of segue_response_mode that the session declares to servers of 2025-11-25 and
     * lists in each tools/call that asks for a task; 0 = all. If capabilities has a
     * member "tasks", which declares its own modes, this must be 0 */
    uint32_t response_modes;
} segue_session_options;
#define SEGUE_SESSION_OPTIONS_INIT SEGUE_INIT(segue_session_options)

/* Reports that the session can be used: the server's protocol version and capabilities
 * are known. It runs once per connect, and again when another server continues the
 * session (2025-11-25, servers that share a seal_key). That server does not know the
 * client's subscriptions, so the application must subscribe again. */
typedef void (*segue_open_fn)(void *user, segue_session *session);

/* Reports that the server was lost or could not be reached, and that the next attempt
 * begins after delay_ms. attempt counts the attempts in a row. Over HTTP each request has
 * its own attempts and resumes its own stream; reason then names the request. A newer
 * report replaces one that was not delivered yet. The attempts end with on_open, an
 * answer, or SEGUE_E_DISCONNECTED. */
typedef void (*segue_reconnect_fn)(void *user, segue_session *session, int32_t attempt,
                                   int64_t delay_ms, const char *reason);

/* Reports that the session has ended. error is NULL after segue_session_close. It runs
 * once, as the last callback of the session. */
typedef void (*segue_closed_fn)(void *user, segue_session *session,
                                const segue_error *error);

/* Receives a notification that belongs to no request, e.g.
 * notifications/tools/list_changed. */
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
#define SEGUE_SESSION_EVENTS_INIT SEGUE_INIT(segue_session_events)

/* Opens a session with the server at the other end of a transport. Requests may be
 * started at once; they wait until the session is open.
 *
 * transport consumed on success.
 * Returns   SEGUE_E_STATE when the transport was attached before, SEGUE_E_JSON for
 *           malformed capabilities, SEGUE_E_INVALID when the transport or the host
 *           belongs to another runtime, SEGUE_E_CLOSED when the host has closed. */
SEGUE_API segue_status segue_session_open(segue_runtime *runtime,
                                          segue_transport *transport,
                                          const segue_session_options *options,
                                          const segue_session_events *events,
                                          segue_session **out, segue_error **error);

/* Returns the runtime of a session.
 *
 * Returns   NULL for NULL. */
SEGUE_API segue_runtime *segue_session_runtime(const segue_session *session);

/* Describes the peer as JSON: {"protocolVersion","serverInfo","capabilities",
 * "instructions","isStateless"}. isStateless is true in revisions in which the server
 * remembers nothing of the client between requests (2026-07-28), and left out in others.
 *
 * Returns   SEGUE_E_STATE before on_open. */
SEGUE_API segue_status segue_session_peer(segue_session *session, char *buf, size_t *len);

/* Sends a notification that belongs to no request, for example
 * notifications/roots/list_changed. The server may miss it when the connection breaks.
 *
 * method    not empty.
 * params    JSON object, or NULL.
 * Returns   SEGUE_E_STATE before on_open and while the connection is lost, SEGUE_E_JSON,
 *           SEGUE_E_INVALID when params is not an object. */
SEGUE_API segue_status segue_session_notify(segue_session *session, const char *method,
                                            const char *params, size_t len,
                                            segue_error **error);

/* Ends the session: requests in flight complete with SEGUE_E_CLOSED, the transport
 * closes, on_closed follows. Plain calls are cancelled, except calls whose token was read
 * (segue_request_token) or that have an idempotency_key. The server continues these calls
 * and all tasks. */
SEGUE_API segue_status segue_session_close(segue_session *session);

/* Frees the handle. The session lives until it is closed and its requests have ended. */
SEGUE_API void segue_session_free(segue_session *session);

/* ---- 11 Request (outbound) --------------------------------------------------------- */

/* The order of the callbacks of one request: first on_task, on_resumable, on_segment,
 * on_segments, on_progress, on_log, on_status and on_input in any order and number, then
 * on_complete exactly once, and last free_user. */

/* Receives one segment. Segments come in the order of their numbers unless
 * options.unordered is set, and each number comes once. The segment is valid until the
 * callback returns. */
typedef void (*segue_segment_fn)(void *user, segue_request *request,
                                 const segue_segment *segment);

/* Receives segments that follow one another without another event between them, at least
 * one; segue_segment_batch_next takes them. A batch costs less than a callback for each
 * segment. Its segments count as delivered from the beginning of the callback on, for the
 * credit and for segue_request_token, even those that the callback does not take. The
 * batch is valid until the callback returns. */
typedef void (*segue_segments_fn)(void *user, segue_request *request,
                                  segue_segment_batch *batch);

/* Reports progress. total is 0 when unknown; message may be NULL. */
typedef void (*segue_progress_fn)(void *user, segue_request *request, double progress,
                                  double total, const char *message);

/* Receives a log message of the server for this request. json: the params of
 * notifications/message. */
typedef void (*segue_message_fn)(void *user, segue_request *request, const char *json,
                                 size_t len);

/* Receives a question of the server. Answer it with segue_request_answer, now or later.
 * It runs once per key, and again after a resume while the question is open. In
 * 2026-07-28 a plain request is sent again when all its questions are answered; the
 * server may then ask more, or ask the same again. Without on_input such a request ends
 * with SEGUE_E_UNSUPPORTED. Before 2026-07-28 the server asks by requests of its own.
 * If such a question names a task, it goes to the request of the task. Over HTTP a
 * question on a request's own stream goes to this request, and a question on the
 * session's stream goes to the request that segue_session_take_input started. Any other
 * question goes to the oldest request that has on_input, or else to the request of
 * segue_session_take_input. If neither exists, the server gets an error. */
typedef void (*segue_question_fn)(void *user, segue_request *request, const char *key,
                                  const char *method, const char *params, size_t len);

/* Reports that the request became a task. It runs before the task is polled or streamed,
 * so that the application can store the id, or the token of segue_request_token. */
typedef void (*segue_task_fn)(void *user, segue_request *request, const char *task_id);

/* Reports that the server gave a token to resume the request (SEP-975): the result of
 * segue_request_token has changed and can be stored. It runs again when the server
 * gives another token. For a call that asks for a task, on_task runs instead. */
typedef void (*segue_resumable_fn)(void *user, segue_request *request);

/* Reports a new status or status text of the task. status: "working", "input_required"
 * and so on; message may be NULL. */
typedef void (*segue_task_status_fn)(void *user, segue_request *request,
                                     const char *status, const char *message);

/* Reports the end of the request. SEGUE_OK: json is the result object. SEGUE_E_REMOTE:
 * error is the error that the server answered. Any other status: error describes the
 * local failure, and json is the merged result received so far, or NULL. json and error
 * are valid until the callback returns; segue_request_take_result keeps the json. */
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
    segue_segments_fn on_segments; /* receives the segments in batches; on_segment is then
                                      not called */
} segue_request_events;
#define SEGUE_REQUEST_EVENTS_INIT SEGUE_INIT(segue_request_events)

typedef struct segue_request_options {
    size_t struct_size;
    int64_t timeout_ms;    /* the longest time of the whole request; 0 = no limit */
    int32_t on_timeout;    /* 0 = a timeout leaves a task running, 1 = a timeout cancels
                              the task, and the server has one more second to confirm */
    int64_t credit;        /* number of segments that may be delivered before
                              segue_request_grant; 0 = no limit (delivered as fast as
                              callbacks return) */
    int32_t discard;       /* 1 = segments are delivered, but not collected into the
                              result. A result that arrives in one answer is still
                              complete */
    const char *log_level; /* the lowest level of the log messages to ask for; NULL = ask
                              for none */
    const char *idempotency_key; /* 16 to 128 bytes; sent only to servers that support
                                    keys; NULL = a new random key */
    int64_t ttl_ms;    /* the time for which a server of 2025-11-25 should keep the task;
                          the server decides (R-2557-41); 0 = ask for no time */
    int32_t unordered; /* 1 = segments of a server that streams by SEP-1905 are delivered
                          as they arrive, not in the order of their numbers (R-1905-62). A
                          token covers only the segments before the first missing one, so
                          a resume may deliver some again */
    int32_t no_cache;  /* 1 = ask the server, even if the cache has a fresh result */
    uint32_t response_modes; /* set of segue_response_mode that this tools/call lists;
                                only modes that the session declares count; 0 = all of
                                them. No effect if the params have a member "task" or the
                                call asks for no task */
    int64_t seen; /* for a request that is resumed by a token: the number of the last
                     segment that the application has handled. Segments up to this number
                     are not delivered again, even if the token does not cover them;
                     default 0 */
    int32_t no_idempotency;   /* 1 = send no idempotency key, so that the call is sent at
                               most once */
    const char *capabilities; /* JSON object: in 2026-07-28 the request declares these
                                 capabilities in place of those of the session; the
                                 library adds its own, as it does for the session. No
                                 effect in other revisions. NULL = those of the
                                 session */
    int32_t no_task; /* 1 = the call asks for no task, as with no_tasks of the session: a
                        server of 2026-07-28 then sends progress and log messages until
                        the end. The answer may take longer than request_timeout_ms. No
                        effect in DRAFT-2026-v1 */
} segue_request_options;
#define SEGUE_REQUEST_OPTIONS_INIT SEGUE_INIT(segue_request_options)

/* Sends a request. tools/call ends in one result, whether the server answers with a plain
 * result, a task that is polled or a task that is streamed.
 *
 * method    not empty.
 * params    JSON object, or NULL; the library adds the _meta members of the protocol.
 * out       owned by the caller; may be NULL when no handle is needed.
 * Returns   SEGUE_E_JSON, SEGUE_E_INVALID when params is not an object, SEGUE_E_LIMIT
 *           when too many requests are in flight. */
SEGUE_API segue_status segue_request_start(segue_session *session, const char *method,
                                           const char *params, size_t len,
                                           const segue_request_options *options,
                                           const segue_request_events *events,
                                           segue_request **out, segue_error **error);

/* Receives the server's questions that belong to no other request: for example
 * roots/list, and over HTTP all questions that arrive on the session's stream. Nothing is
 * sent. The request lasts until it is cancelled or the session ends. It does not count
 * against max_requests.
 *
 * events    on_input is required.
 * Returns   SEGUE_E_LIMIT when the session already has such a request. */
SEGUE_API segue_status segue_session_take_input(segue_session *session,
                                                const segue_request_events *events,
                                                segue_request **out, segue_error **error);

/* Continues a request of an earlier connection or process. It delivers the segments that
 * the token and options.seen do not cover, then the one result.
 *
 * token     from segue_request_token.
 * Returns   as segue_request_start; SEGUE_E_INVALID for a token that is damaged. */
SEGUE_API segue_status segue_request_resume(segue_session *session, const char *token,
                                            const segue_request_options *options,
                                            const segue_request_events *events,
                                            segue_request **out, segue_error **error);

/* Gives a token for segue_request_resume, for this or a later process. The token covers
 * the segments whose on_segment has begun, not segments that have only arrived. Keep it
 * secret: whoever has it can use the task.
 *
 * Returns   SEGUE_E_NOT_RESUMABLE when the server offers neither a task nor idempotency
 *           nor resuming, SEGUE_E_TERMINAL from on_complete on, unless its status is
 *           SEGUE_E_CLOSED, SEGUE_E_DISCONNECTED or SEGUE_E_TIMEOUT. */
SEGUE_API segue_status segue_request_token(segue_request *request, char *buf,
                                           size_t *len);

/* Takes the text of the result out of the request, from on_complete on, so that the
 * application need not copy it. The json of on_complete is this text.
 *
 * text      gets the JSON, followed by a NUL. It belongs to the caller, even after the
 *           runtime was freed. Free it with the allocator of the runtime (`size` is the
 *           size of the block), or with free() if the runtime has no allocator.
 * is_error  gets 1 when the result has "isError": true, otherwise 0.
 * Returns   SEGUE_E_STATE before on_complete, SEGUE_E_NOT_FOUND when there is no text or
 *           it was taken. */
SEGUE_API segue_status segue_request_take_result(segue_request *request, char **text,
                                                 size_t *len, size_t *size,
                                                 int32_t *is_error);

/* Tells which session can resume a token of segue_request_token, before there is one.
 *
 * era       gets SEGUE_ERA_MODERN or SEGUE_ERA_LEGACY, or SEGUE_ERA_AUTO when a session
 *           of any revision can resume the token.
 * Returns   SEGUE_E_INVALID for a token that is damaged. */
SEGUE_API segue_status segue_token_era(segue_runtime *runtime, const char *token,
                                       int32_t *era, segue_error **error);

/* Answers a question of on_input.
 *
 * json      the answer, e.g. {"action":"accept","content":{}}.
 * Returns   SEGUE_E_NOT_FOUND when no question with this key is open (the server may have
 *           withdrawn it, or the connection is lost), SEGUE_E_JSON, SEGUE_E_INVALID when
 *           json is not an object, or is no valid answer to elicitation/create: "action"
 *           is accept, decline or cancel, "content" is an object that fits the form
 *           (2026-07-28). The question then stays open. SEGUE_E_TERMINAL from on_complete
 *           on. */
SEGUE_API segue_status segue_request_answer(segue_request *request, const char *key,
                                            const char *json, size_t len,
                                            segue_error **error);

/* Answers a question of on_input by saying that there is no answer, for instance because
 * the model that was to be asked failed. Before 2026-07-28 the server gets this JSON-RPC
 * error. 2026-07-28 has no such errors: elicitation/create is answered
 * {"action":"cancel"}. For sampling or roots, give an answer later or cancel the request.
 * A question of an unknown method is answered {"error":{...}}.
 *
 * code      code of the error, such as -1 (a person refused) or -32603.
 * message   one line, UTF-8. data: any JSON value, or NULL.
 * Returns   as segue_request_answer; SEGUE_E_UNSUPPORTED when 2026-07-28 has no such
 *           answer to the question, which stays open. */
SEGUE_API segue_status segue_request_answer_error(segue_request *request, const char *key,
                                                  int32_t code, const char *message,
                                                  const char *data, size_t len,
                                                  segue_error **error);

/* Allows n more segments to be delivered (options.credit).
 *
 * Returns   SEGUE_E_INVALID for n < 1, SEGUE_E_TERMINAL from on_complete on. */
SEGUE_API segue_status segue_request_grant(segue_request *request, int64_t n);

/* Asks for the end of the request: a task is cancelled on the server, a plain call is
 * withdrawn. on_complete follows with SEGUE_E_CANCELLED, or with the result if the result
 * came first. For a task on_complete follows when the server has confirmed, after 5 s, or
 * at the timeout of the request. If the session is closed before (SEGUE_E_CLOSED), the
 * message to the server may be lost. While the connection is down, the cancel waits for
 * the next connection within these times; when the connection is lost for good, the
 * request ends with SEGUE_E_DISCONNECTED. Segments that have arrived are delivered before
 * on_complete without credit.
 *
 * Returns   SEGUE_E_TERMINAL from on_complete on. */
SEGUE_API segue_status segue_request_cancel(segue_request *request);

/* Stops following a task without cancelling it: on_complete follows with SEGUE_E_CLOSED,
 * or with the result if the result came first. Segments that have arrived are delivered
 * before on_complete, so an application that later continues the task takes the token in
 * on_complete. The task continues and its token stays valid.
 * A call with an idempotency key can be detached as well, whether it becomes a task or
 * not.
 *
 * Returns   SEGUE_E_NOT_RESUMABLE when there is no token, SEGUE_E_TERMINAL from
 *           on_complete on. */
SEGUE_API segue_status segue_request_detach(segue_request *request);

/* Frees the handle. The request continues, and its callbacks still run. */
SEGUE_API void segue_request_free(segue_request *request);

/* ---- 12 Task ----------------------------------------------------------------------- */

/* The states of a task. The last three are final. */
enum segue_task_state {
    SEGUE_TASK_UNKNOWN = 0,        /* a state that this version does not know */
    SEGUE_TASK_WORKING = 1,        /* the tool runs */
    SEGUE_TASK_INPUT_REQUIRED = 2, /* the tool waits for an answer of the client */
    SEGUE_TASK_COMPLETED = 3,      /* there is a result, perhaps one with isError */
    SEGUE_TASK_FAILED = 4,         /* there is an error of JSON-RPC */
    SEGUE_TASK_CANCELLED = 5       /* the task was cancelled */
};

/* Makes a handle for a task whose id is known. Nothing is sent.
 *
 * Returns   SEGUE_E_INVALID for an id that is empty or over 4 KiB. */
SEGUE_API segue_status segue_task_attach(segue_session *session, const char *task_id,
                                         segue_task **out, segue_error **error);

/* Makes a handle from a token of segue_request_token: for a task, or for a request that
 * can be resumed (SEGUE_DIALECT_RESUMABLE). Nothing is sent. If the session has another
 * protocol version than the token, every request of the handle ends with
 * SEGUE_E_NOT_RESUMABLE.
 *
 * Returns   SEGUE_E_INVALID for a token that is damaged, SEGUE_E_UNSUPPORTED for a token
 *           of a call that was no task yet: such a call has no state, and
 *           segue_request_resume continues it. */
SEGUE_API segue_status segue_task_attach_token(segue_session *session, const char *token,
                                               segue_task **out, segue_error **error);

/* Returns the id of the task, or "" for a request that can be resumed.
 *
 * Returns   a string that lives as long as the handle. */
SEGUE_API const char *segue_task_id(const segue_task *task);

/* Asks for the state of the task: on_complete gets the answer of tasks/get, unchanged.
 * For a request that can be resumed it gets the answer of requests/getStatus:
 * {"requestId","status": "processing", "completed" or
 * "failed","hasPendingMessage","hasInputRequest"}. No result is fetched, and the server
 * keeps the request longer. For a task that the server does not know (any more),
 * on_complete gets SEGUE_E_TASK_LOST, and SEGUE_E_REMOTE for such a request.
 *
 * out       the request; may be NULL.
 * Returns   as segue_request_start. */
SEGUE_API segue_status segue_task_get(segue_task *task,
                                      const segue_request_events *events,
                                      segue_request **out);

/* Returns the last state of the task that this session has received. For a request that
 * can be resumed, "processing" is SEGUE_TASK_WORKING, or SEGUE_TASK_INPUT_REQUIRED while
 * the request has a question. An error with the reason "cancelled" or "expired" is
 * SEGUE_TASK_CANCELLED. An error with the reason "completed", after a client has fetched
 * the result, is SEGUE_TASK_COMPLETED.
 *
 * Returns   one of segue_task_state; expect unknown values. */
SEGUE_API int32_t segue_task_get_state(const segue_task *task);

/* Follows the task to its end as an ordinary request: segments from the first that the
 * server still has, questions, then the one result. A handle made from a token continues
 * as segue_request_resume does.
 *
 * out       the request; may be NULL.
 * Returns   as segue_request_start. */
SEGUE_API segue_status segue_task_watch(segue_task *task,
                                        const segue_request_options *options,
                                        const segue_request_events *events,
                                        segue_request **out, segue_error **error);

/* Asks the server to cancel the task. on_complete gets the acknowledgement. A server of
 * 2025-11-25 refuses when the task has ended; on_complete then gets the answer of
 * tasks/get. For a task that the server does not know, it gets SEGUE_E_TASK_LOST.
 *
 * out       the request; may be NULL.
 * Returns   as segue_request_start; SEGUE_E_UNSUPPORTED for a request that can be
 *           resumed: watch it, and cancel the request of segue_task_watch. */
SEGUE_API segue_status segue_task_cancel(segue_task *task,
                                         const segue_request_events *events,
                                         segue_request **out);

/* Frees the handle. The task continues. */
SEGUE_API void segue_task_free(segue_task *task);

#ifdef __cplusplus
}
#endif

#endif
