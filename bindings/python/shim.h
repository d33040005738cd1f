/* bindings/python: the layer between the generated wrappers (segue.i) and segue.h.
 * Handles become Python objects, callbacks become events, dicts become option structs,
 * statuses become exceptions. The binding is one to one and knows no protocol.
 *
 * Everything runs with the GIL held, except the functions marked "any thread". Functions
 * for any thread touch no Python object and never take the GIL.
 *
 * The shim uses only the limited API of Python 3.10, so that one binary works with all
 * later versions. Therefore the shim must not use formats with "#". The shim must also
 * not use Py_RETURN_NONE and similar macros: in the headers of 3.12 and 3.13 these macros
 * rely on immortal objects. */
#ifndef SGPY_SHIM_H
#define SGPY_SHIM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <segue/segue.h>
#include <segue/segue_auth.h>
#include <segue/segue_ext.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../common/counting_allocator.h"
#include "../common/custom_transport.h"
#include "../common/events.h"
#include "../common/option_shapes.h"
#include "../common/plain_block.h"
#include "../common/side_queue.h"

/* ---- kinds of handles ---- */

typedef enum sgpy_kind {
    SGPY_RUNTIME = 0,
    SGPY_TRANSPORT,
    SGPY_STORE,
    SGPY_SERVER,
    SGPY_LISTENER,
    SGPY_EXCHANGE,
    SGPY_BEARER,
    SGPY_CALL,
    SGPY_SESSION,
    SGPY_REQUEST,
    SGPY_TASK,
    SGPY_CONTENT,
    SGPY_WIRE,  /* the Python object of a custom transport */
    SGPY_SHELF, /* the Python object of a custom store */
    SGPY_KINDS
} sgpy_kind;

/* ---- host: the state of one runtime ---- */

/* The state of one runtime. The host lives until the runtime and all its handles and
 * callback tables were freed. */
typedef struct sgpy_host {
    _Atomic int refs;
    segue_runtime *runtime; /* NULL once the runtime is freed */
    /* events of the current batch; NULL = there is no batch, and events are dropped */
    PyObject *batch;
    /* number of the current batch; a list of segments is valid only in the batch with its
     * number */
    uint64_t round;
    bool busy; /* true = runtime_dispatch, runtime_run or runtime_free is running */
    bool lost; /* true = an event was lost, and the loss is not reported yet */
    /* true = the host is busy, and the GIL is released during the call of the library */
    bool apart;
    PyObject *log;      /* handler of the library's log lines; NULL = no handler */
    PyObject *observer; /* handler of events; NULL = nobody observes the runtime */
    /* the event that reports lost events; made in advance, because events are lost when
     * memory is short */
    PyObject *spare;
    /* list of the users of callback tables with events that could not be delivered yet */
    struct sgpy_user *owing;

    sgb_side_queue side;
    int side_fd; /* an eventfd, which is readable while the side queue has entries */
} sgpy_host;

sgpy_host *sgpy_host_new(void);
sgpy_host *sgpy_host_ref(sgpy_host *host); /* any thread */
void sgpy_host_unref(sgpy_host *host);     /* any thread */

/* Releases the GIL before a call of the library that may run callbacks. */
void sgpy_let_go(void);
/* The next two functions must surround every use of Python in a callback. sgpy_enter
 * takes the GIL if this thread had released it, and returns whether it took the GIL.
 * sgpy_leave gets this result and releases the GIL again if sgpy_enter took it. */
bool sgpy_enter(void);
void sgpy_leave(bool entered);

/* Frees the host's references to Python objects. Called after the runtime was freed. */
void sgpy_host_end(sgpy_host *host);

/* The members of an event, a tuple. */
enum {
    SGPY_EVENT_HANDLER,
    SGPY_EVENT_KIND,
    SGPY_EVENT_A,
    SGPY_EVENT_B,
    SGPY_EVENT_C,
    SGPY_EVENT_SIZE
};

/* Appends one event (handler, kind, a, b, c) to the batch and takes over the references
 * a, b and c. A value that is NULL becomes None. Returns false when out of memory, also
 * when making one of the values has failed. The function leaves no exception. */
bool sgpy_push(sgpy_host *host, PyObject *handler, int kind, PyObject *a, PyObject *b,
               PyObject *c);

/* Turns the current exception into an EXCEPTION event. `where` is the name of the
 * function that raised. */
void sgpy_push_exception(sgpy_host *host, const char *where);

typedef struct sgpy_user sgpy_user;
typedef struct sgpy_shelf sgpy_shelf;
/* Moves the entries of the side queue into the batch. Without a batch the entries are
 * dropped. */
void sgpy_side_drain(sgpy_host *host);
/* Called at the end of a batch. Delivers the events that could not be delivered
 * before. */
void sgpy_settle(sgpy_host *host);

/* ---- user: the `user` pointer of a callback table ---- */

enum { SGPY_HOOKS = 3 };

struct sgpy_user {
    /* the host of the runtime that calls this user; a counted reference */
    sgpy_host *host;
    /* the Python callable that receives the events; NULL = no handler */
    PyObject *handler;
    PyObject *hooks[SGPY_HOOKS]; /* callables that must answer at once; NULL = no hook */
    /* the text that a hook returned last; kept, because the library still reads the
     * text */
    PyObject *answer;
    /* the custom transport that calls this user; NULL for other users */
    sgb_transport *custom;
    /* the list of segments in the batch whose number is in `round`; a borrowed
     * reference */
    PyObject *segments;
    uint64_t round;
    sgpy_user *next; /* the next user in host->owing */
    uint32_t owed;   /* the kinds of the events that must still be delivered, as bits */
    /* true = this struct is in the list host->owing, so its memory must not be freed
     * now */
    bool is_listed;
    /* true = sgpy_user_free was called; if this struct is in the list host->owing, its
     * memory is freed when it leaves the list */
    bool is_gone;
    bool is_broken; /* for a request or an exchange: true = an event was lost */
};

sgpy_user *sgpy_user_new(sgpy_host *host, PyObject *handler);
void sgpy_user_free(void *user); /* a segue_free_fn */
void sgpy_user_hook(sgpy_user *user, int which, PyObject *callable);
/* Appends an event for the user's handler, as sgpy_push does. An event that cannot be
 * made is lost, and an EXCEPTION event reports the loss. If a program may wait for the
 * event, the event is delivered later, without its values. Returns false when the event
 * could not be appended now. */
bool sgpy_tell(sgpy_user *user, int kind, PyObject *a, PyObject *b, PyObject *c);

/* ---- handles ---- */

typedef struct sgpy_handle {
    PyObject_HEAD void *ptr; /* the handle; NULL once the handle is freed or consumed */
    /* host of the handle's runtime; a counted reference; NULL for a store */
    sgpy_host *host;
    int born; /* the value of sgpy_forks() when the object was made */
} sgpy_handle;

/* Returns the number of forks between the process that loaded the module and this
 * process. Returns 0 in the process that loaded the module. */
int sgpy_forks(void);

/* Makes the Python object of a handle. The object owns the handle. On failure the
 * function frees the handle and returns NULL with an exception. */
PyObject *sgpy_wrap(sgpy_kind kind, void *ptr, sgpy_host *host);
/* Makes an object that does not own its handle (a view). The caller must call
 * sgpy_consume when the view ends. */
PyObject *sgpy_wrap_view(sgpy_kind kind, void *ptr, sgpy_host *host);
/* Returns the pointer of a usable handle, or NULL with an exception. */
void *sgpy_unwrap(PyObject *object, sgpy_kind kind);
sgpy_host *sgpy_host_of(PyObject *object);
/* Marks a handle that the library has consumed as unusable. */
void sgpy_consume(PyObject *object);
/* Frees a handle now. Returns -1 with an exception if the handle was already freed or
 * consumed. */
int sgpy_release(PyObject *object, sgpy_kind kind);
PyObject *sgpy_live_handles(void);

/* ---- values ---- */

/* Raises the exception of a status, with the details in the calling thread's slot, and
 * empties the slot. Returns NULL. */
PyObject *sgpy_raise(segue_status status);
/* Raises the exception of a status with this message, for a failure of the binding
 * itself. Returns NULL. */
PyObject *sgpy_raise_text(segue_status status, const char *message);
/* Empties and returns the calling thread's slot for a segue_error. A function of the
 * library gets the slot as its argument `error`. */
segue_error **sgpy_error_slot(void);
/* Makes the result of functions that send: True for SEGUE_OK, False for
 * SEGUE_E_WOULD_BLOCK, and an exception for any other status. */
PyObject *sgpy_sent(segue_status status);
PyObject *sgpy_set_error_factory(PyObject *factory);

/* Makes the tuple (status, message, code, data, retryable) of an error. NULL becomes
 * None. */
PyObject *sgpy_error_info(const segue_error *error);

/* Reads bytes, or a str as UTF-8. The text lives as long as the object. With `optional`,
 * None gives NULL and length 0. Returns false with an exception for any other value. */
bool sgpy_view(PyObject *object, bool optional, const char **text, size_t *len);
/* Reads a str that is a name. Refuses a str with a NUL. With `optional`, None gives NULL.
 * Returns false with an exception on failure. */
bool sgpy_name(PyObject *object, bool optional, const char **text);
PyObject *sgpy_bytes(const char *text, size_t len); /* NULL becomes None */
PyObject *sgpy_text(const char *text, size_t len);  /* invalid UTF-8 is escaped */
PyObject *sgpy_string(const char *text);            /* NULL becomes None */
/* Makes a str of a text that identifies a caller. Raises when the text is not valid
 * UTF-8, because escaped bytes could make two callers equal. */
PyObject *sgpy_exact(const char *text);
/* Returns `made` in place of the result `old`, which is released. Generated code calls
 * this function. */
PyObject *sgpy_give(PyObject *old, PyObject *made);
PyObject *sgpy_header(const char *name, const char *value, size_t len);
PyObject *sgpy_resumed(uint64_t last, const void *data, size_t len);

/* ---- options ---- */

enum { SGPY_OPTION_LISTS = 2 };

/* Owns the lists to which a filled struct points. The struct also points to values of the
 * dict, which sgpy_options does not own. */
typedef struct sgpy_options {
    void *lists[SGPY_OPTION_LISTS];
    PyObject *owned[SGPY_OPTION_LISTS];
    int count;
} sgpy_options;

/* Clears the struct and fills it from a dict or None. Returns false with an exception on
 * failure. The caller must free `kept` after the call of the library. */
bool sgpy_options_fill(sgpy_options *kept, option_shape which, void *target,
                       PyObject *dict);
void sgpy_options_free(sgpy_options *kept);
/* Makes a dict with the name of each options struct and a list of the names of its
 * members. */
PyObject *sgpy_option_names(void);

/* ---- segments ---- */

PyObject *sgpy_segment_new(const segue_segment *segment);
bool sgpy_is_segment(PyObject *object);
/* Returns the number of an object for which sgpy_is_segment is true. */
uint64_t sgpy_segment_number(PyObject *object);
/* Sets the function that makes Segment.content from the JSON of a block. With None,
 * Segment.content is the JSON itself. */
PyObject *sgpy_set_block_decoder(PyObject *callable);

/* ---- callbacks: C tables whose user is an sgpy_user ---- */

void sgpy_request_table(segue_request_events *table, sgpy_user *user, int32_t events);
void sgpy_on_call(void *user, segue_call *call);
void sgpy_on_completion(void *user, segue_call *call);
void sgpy_on_cancel(void *user, segue_call *call);
void sgpy_on_drain(void *user, segue_call *call);
void sgpy_on_input(void *user, segue_call *call, segue_status status, const char *json,
                   size_t len);
void sgpy_on_idle(void *user);
void sgpy_on_client_open(void *user, uint64_t client, const char *principal,
                         const char *json, size_t len);
void sgpy_on_client_closed(void *user, uint64_t client);
void sgpy_on_open(void *user, segue_session *session);
void sgpy_on_closed(void *user, segue_session *session, const segue_error *error);
void sgpy_on_reconnect(void *user, segue_session *session, int32_t attempt,
                       int64_t delay_ms, const char *reason);
void sgpy_on_notification(void *user, segue_session *session, const char *method,
                          const char *params, size_t len);
void sgpy_on_stderr(void *user, const char *text, size_t len);
/* Appends a STDERR event without a line, and frees the user. */
void sgpy_on_stderr_end(void *user);
void sgpy_on_authorize(void *user, const char *url, const char *state);
/* May be called on any thread. */
void sgpy_on_log(void *host, int32_t level, const char *text);
void sgpy_on_event(void *host, const segue_event *event);

/* The indexes in sgpy_user.hooks. The callback table decides which hook an index means.
 * 0: principal, on_headers, on_bearer or on_assertion. 1: validate or on_load. 2:
 * on_save. */
enum { SGPY_HOOK_FIRST = 0, SGPY_HOOK_SECOND = 1, SGPY_HOOK_THIRD = 2 };
segue_status sgpy_ask_principal(void *user, segue_transport *transport,
                                const char **principal);
segue_status sgpy_ask_validate(void *user, const char *tool, int32_t what,
                               const char *schema, size_t schema_len, const char *value,
                               size_t value_len, char *reason, size_t size);
void sgpy_ask_headers(void *user, segue_transport *transport, int32_t status);
void sgpy_ask_bearer(void *user, segue_transport *transport, segue_bearer *bearer);
const char *sgpy_ask_assertion(void *user, const char *issuer, const char *resource,
                               size_t *len);
const char *sgpy_ask_load(void *user, const char *key, size_t *len);
void sgpy_ask_save(void *user, const char *key, const char *json, size_t len);

/* ---- functions with callbacks or options, which segue.i wraps ---- */

PyObject *sgpy_runtime_new(PyObject *options, PyObject *log, bool track);
PyObject *sgpy_runtime_observe(PyObject *runtime, PyObject *handler, PyObject *options);
PyObject *sgpy_runtime_run(PyObject *runtime);
PyObject *sgpy_dispatch(PyObject *runtime, long long timeout_ms, int max_events);
PyObject *sgpy_runtime_side_fd(PyObject *runtime);
PyObject *sgpy_runtime_free(PyObject *runtime);
PyObject *sgpy_transport_pair(PyObject *runtime);
PyObject *sgpy_transport_spawn(PyObject *runtime, PyObject *options, PyObject *handler);
PyObject *sgpy_transport_http(PyObject *runtime, PyObject *url, PyObject *options,
                              PyObject *on_headers);
PyObject *sgpy_transport_set_oauth(PyObject *transport, PyObject *options,
                                   PyObject *handler, PyObject *on_assertion,
                                   PyObject *on_load, PyObject *on_save);
PyObject *sgpy_transport_custom(PyObject *runtime, PyObject *handler, bool reopen);
PyObject *sgpy_transport_feed(PyObject *wire, PyObject *data);
PyObject *sgpy_transport_took(PyObject *wire, int64_t count);
PyObject *sgpy_transport_writable(PyObject *wire);
PyObject *sgpy_transport_closed(PyObject *wire);
/* Makes the Wire, through which Python code of a custom transport calls the library,
 * for the transport's first event TRANSPORT_START. */
PyObject *sgpy_wire_show(const sgpy_user *user);
PyObject *sgpy_store_memory(PyObject *options);
PyObject *sgpy_store_sqlite(PyObject *path, PyObject *options);
PyObject *sgpy_store_redis(PyObject *url, PyObject *options);
PyObject *sgpy_store_postgres(PyObject *url, PyObject *options);
PyObject *sgpy_store_custom(PyObject *store, PyObject *options);
PyObject *sgpy_store_serve(PyObject *shelf);
PyObject *sgpy_store_wake(PyObject *shelf);
void sgpy_shelf_free(void *shelf);
PyObject *sgpy_server_new(PyObject *runtime, PyObject *options, PyObject *handler,
                          PyObject *principal, PyObject *validate);
PyObject *sgpy_exchange_open(PyObject *listener, PyObject *method, PyObject *target,
                             PyObject *headers, PyObject *handler, PyObject *peer,
                             PyObject *local, bool is_tls, PyObject *principal,
                             PyObject *body, bool is_whole, PyObject *context);
PyObject *sgpy_exchange_feed(PyObject *exchange, PyObject *data);
PyObject *sgpy_server_add(PyObject *server, int item, PyObject *json, PyObject *options,
                          PyObject *handler, bool completion);
PyObject *sgpy_server_attach(PyObject *server, PyObject *transport);
PyObject *sgpy_server_listen(PyObject *server, PyObject *options, PyObject *bearer,
                             PyObject *on_bearer);
PyObject *sgpy_listener_open(PyObject *server, PyObject *options, PyObject *bearer,
                             PyObject *on_bearer);
PyObject *sgpy_server_stats(PyObject *server);
PyObject *sgpy_server_check(PyObject *options);
PyObject *sgpy_server_metrics(PyObject *server);
PyObject *sgpy_call_trace_parent(PyObject *call);
PyObject *sgpy_item_check(int item, PyObject *json, PyObject *options);
PyObject *sgpy_server_watch_clients(PyObject *server, PyObject *handler);
PyObject *sgpy_call_context(PyObject *call);
PyObject *sgpy_call_watch(PyObject *call, PyObject *handler);
PyObject *sgpy_call_require_input(PyObject *call, PyObject *key, PyObject *method,
                                  PyObject *params, PyObject *handler);
PyObject *sgpy_call_set_completion(PyObject *call, PyObject *values, long long total,
                                   bool has_more);
PyObject *sgpy_session_open(PyObject *runtime, PyObject *transport, PyObject *options,
                            PyObject *handler, int events, PyObject *validate);
PyObject *sgpy_session_peer(PyObject *session);
PyObject *sgpy_session_take_input(PyObject *session, PyObject *handler, int events);
PyObject *sgpy_request_token(PyObject *request);
PyObject *sgpy_token_era(PyObject *runtime, const char *token);
PyObject *sgpy_token_now(segue_request *request);
PyObject *sgpy_request_meta(PyObject *request, PyObject *key);
PyObject *sgpy_request_start(PyObject *session, PyObject *method, PyObject *params,
                             PyObject *options, PyObject *handler, int events);
PyObject *sgpy_request_resume(PyObject *session, PyObject *token, PyObject *options,
                              PyObject *handler, int events);
PyObject *sgpy_task_get(PyObject *task, PyObject *handler, int events);
PyObject *sgpy_task_watch(PyObject *task, PyObject *options, PyObject *handler,
                          int events);
PyObject *sgpy_task_cancel(PyObject *task, PyObject *handler, int events);

/* ---- module ---- */

/* Adds the types, the constants and the functions of fast.c to the module. Returns -1
 * with an exception on failure. */
int sgpy_init(PyObject *module);
int sgpy_fast_init(PyObject *module);
int sgpy_segment_init(PyObject *module);
int sgpy_segment_queue_init(PyObject *module);
int sgpy_handle_init(PyObject *module);

#endif
