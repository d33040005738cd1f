/* bindings/python: the layer between the generated wrappers (segue.i) and segue.h.
 * Handles become Python objects, callbacks become events, dicts become option structs,
 * statuses become exceptions. The binding is one to one and knows no protocol.
 *
 * Everything runs with the GIL held, except the functions marked "any thread". Functions
 * for any thread touch no Python object and never take the GIL. The shim uses only the
 * limited API of Python 3.10, so that one binary works with all later versions. Therefore
 * the shim must not use formats with "#", nor Py_RETURN_NONE and similar macros, which in
 * the headers of 3.12 and 3.13 rely on immortal objects. */
#ifndef SGPY_SHIM_H
#define SGPY_SHIM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <segue/segue.h>
#include <segue/segue_auth.h>
#include <segue/segue_ext.h>
#include <segue/segue_util.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../common/counting_allocator.h"
#include "../common/custom_transport.h"
#include "../common/events.h"
#include "../common/option_shapes.h"
#include "../common/side_queue.h"

/* ---- kinds of handles ---- */

typedef enum sgpy_kind {
    SGPY_RUNTIME = 0,
    SGPY_TRANSPORT,
    SGPY_STORE,
    SGPY_SERVER,
    SGPY_LISTENER,
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

/* The state of one runtime. It lives as long as the runtime and the handles and
 * callback tables of this runtime. */
typedef struct sgpy_host {
    _Atomic int refs;
    segue_runtime *runtime; /* the runtime; NULL once it is freed */
    PyObject *batch;        /* events of the current batch; NULL = events are dropped */
    uint64_t round;  /* number of the batch (round); a list of segments is valid in one
                      * round only */
    bool busy;       /* a dispatch, run or free is running */
    bool lost;       /* an event was lost, and the loss is not reported yet */
    bool apart;      /* the host is busy, and the GIL is released during the call of
                      * the library */
    PyObject *log;   /* handler of log lines, or NULL */
    PyObject *spare; /* the event that reports lost events; it is made in advance,
                      * because it is needed when memory is short */
    struct sgpy_user *owing; /* list of the users with events that could not be
                              * delivered yet */

    sgb_side_queue side;
    int side_fd; /* eventfd: readable while something is in the side queue */
} sgpy_host;

sgpy_host *sgpy_host_new(void);
sgpy_host *sgpy_host_ref(sgpy_host *host); /* any thread */
void sgpy_host_unref(sgpy_host *host);     /* any thread */

/* Releases the GIL around a call of the library that may run callbacks. */
void sgpy_let_go(void);
/* sgpy_enter takes the GIL back if this thread released it, and sgpy_leave releases it
 * again. Both must surround every use of Python in a callback. The result of sgpy_enter
 * is passed to sgpy_leave. */
bool sgpy_enter(void);
void sgpy_leave(bool entered);

/* Frees the Python objects of the host. Called after the runtime was freed. */
void sgpy_host_end(sgpy_host *host);

/* Appends one event (handler, kind, a, b, c) to the batch and takes over the
 * references a, b and c. A value that is NULL becomes None. Returns false when there
 * is no memory for the event, or when there was no memory for one of the values. The
 * function leaves no exception. */
bool sgpy_push(sgpy_host *host, PyObject *handler, int kind, PyObject *a, PyObject *b,
               PyObject *c);

/* Turns the current exception into an event. where: the function that raised. */
void sgpy_push_exception(sgpy_host *host, const char *where);

typedef struct sgpy_user sgpy_user;
typedef struct sgpy_shelf sgpy_shelf;
/* Moves the side queue into the batch. Without a batch the entries are dropped. */
void sgpy_side_drain(sgpy_host *host);
/* Delivers, at the end of a batch, the events that could not be delivered earlier. */
void sgpy_settle(sgpy_host *host);

/* ---- user: the `user` pointer of a callback table ---- */

enum { SGPY_HOOKS = 3 };

struct sgpy_user {
    sgpy_host *host;             /* a counted reference */
    PyObject *handler;           /* the Python callable that receives the events, or
                                  * NULL */
    PyObject *hooks[SGPY_HOOKS]; /* callables that must answer at once, or NULL */
    PyObject *answer;            /* text that a hook returned, kept for the library */
    sgb_transport *custom;       /* the custom transport of this user; NULL = the user
                                  * has none */
    PyObject *segments;          /* the list of segments in the batch `round`, a borrowed
                                  * reference */
    uint64_t round;
    sgpy_user *next; /* the next user in host->owing */
    uint32_t owed;   /* kinds of the events that still have to be delivered, as bits */
    bool is_listed;  /* true = the user is in host->owing, so it must not be freed now */
    bool is_gone;    /* true = the user was freed while it was in host->owing; its
                      * memory is released when it leaves this list */
    bool is_broken;  /* for a request: true when an event was lost */
};

sgpy_user *sgpy_user_new(sgpy_host *host, PyObject *handler);
void sgpy_user_free(void *user); /* a segue_free_fn */
void sgpy_user_hook(sgpy_user *user, int which, PyObject *callable);
/* Appends an event as sgpy_push does, for the user's handler. An event that cannot be
 * made is lost, and an EXCEPTION event reports the loss. An event for which a program
 * may wait is never lost: it is delivered later, without its values. */
bool sgpy_tell(sgpy_user *user, int kind, PyObject *a, PyObject *b, PyObject *c);

/* ---- handles ---- */

typedef struct sgpy_handle {
    PyObject_HEAD void *ptr; /* the handle; NULL once it is freed or consumed */
    sgpy_host *host;         /* a counted reference; NULL for stores */
    int born;                /* the value of sgpy_forks() when the object was made */
} sgpy_handle;

/* Returns how many forks lie between this process and the process that loaded the
 * module. */
int sgpy_forks(void);

/* Makes the object of a handle. The object owns the handle from then on, even if this
 * fails. */
PyObject *sgpy_wrap(sgpy_kind kind, void *ptr, sgpy_host *host);
/* Makes an object that does not own its handle (a view). The caller must consume the
 * object when the view ends. */
PyObject *sgpy_wrap_view(sgpy_kind kind, void *ptr, sgpy_host *host);
/* Returns the pointer of a usable handle, or NULL with an exception. */
void *sgpy_unwrap(PyObject *object, sgpy_kind kind);
sgpy_host *sgpy_host_of(PyObject *object);
/* Empties the object of a handle that the library has consumed. */
void sgpy_consume(PyObject *object);
/* Frees the handle now. Returns -1 with an exception if the handle was already freed
 * or consumed. */
int sgpy_release(PyObject *object, sgpy_kind kind);
PyObject *sgpy_live_handles(void);

/* ---- values ---- */

/* Raises the exception of a status, with the details of the calling thread's slot if
 * the slot has details. Returns NULL. */
PyObject *sgpy_raise(segue_status status);
/* Raises the exception of a status with this message, for a failure of the binding
 * itself. */
PyObject *sgpy_raise_text(segue_status status, const char *message);
/* Returns the slot for the segue_error of a call on this thread. */
segue_error **sgpy_error_slot(void);
/* Makes the result of functions that send: True for SEGUE_OK, False for
 * SEGUE_E_WOULD_BLOCK, and an exception for any other status. */
PyObject *sgpy_sent(segue_status status);
PyObject *sgpy_set_error_factory(PyObject *factory);

/* Makes (status, message, code, data, retryable), or None. */
PyObject *sgpy_error_info(const segue_error *error);

/* Reads bytes, or str as UTF-8. The text is a view that lives as long as the object.
 * With `optional`, None becomes NULL and length 0. Returns false with an exception for
 * any other value. */
bool sgpy_view(PyObject *object, bool optional, const char **text, size_t *len);
/* Reads a str without NUL, for names. With `optional`, None becomes NULL. */
bool sgpy_name(PyObject *object, bool optional, const char **text);
PyObject *sgpy_bytes(const char *text, size_t len); /* NULL becomes None */
PyObject *sgpy_text(const char *text, size_t len);  /* invalid UTF-8 is escaped */
PyObject *sgpy_string(const char *text);            /* NULL becomes None */
/* Makes a str of a text that identifies a caller. Invalid UTF-8 is an exception and is
 * not escaped. */
PyObject *sgpy_exact(const char *text);
/* Replaces the result `old` by `made` and releases `old`. For generated code. */
PyObject *sgpy_give(PyObject *old, PyObject *made);
PyObject *sgpy_resumed(uint64_t last, const void *data, size_t len);

/* ---- options ---- */

enum { SGPY_OPTION_LISTS = 2 };

/* Owns the memory to which a filled struct points, except the values of the dict. */
typedef struct sgpy_options {
    void *lists[SGPY_OPTION_LISTS];
    PyObject *owned[SGPY_OPTION_LISTS];
    int count;
} sgpy_options;

/* Clears the struct and fills it from a dict (or None). Returns false with an
 * exception on failure. `kept` must be freed after the call of the library. */
bool sgpy_options_fill(sgpy_options *kept, option_shape which, void *target,
                       PyObject *dict);
void sgpy_options_free(sgpy_options *kept);
/* Makes {struct name: (members that a dict can set, ...)}. */
PyObject *sgpy_option_names(void);

/* ---- segments ---- */

PyObject *sgpy_segment_new(const segue_segment *segment);
/* Sets the function that makes Segment.content from a block's JSON. With None,
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
void sgpy_on_open(void *user, segue_session *session);
void sgpy_on_closed(void *user, segue_session *session, const segue_error *error);
void sgpy_on_reconnect(void *user, segue_session *session, int32_t attempt,
                       int64_t delay_ms, const char *reason);
void sgpy_on_notification(void *user, segue_session *session, const char *method,
                          const char *params, size_t len);
void sgpy_on_stderr(void *user, const char *text, size_t len);
void sgpy_on_authorize(void *user, const char *url, const char *state);
/* may be called on any thread */
void sgpy_on_log(void *host, int32_t level, const char *text);

/* The indexes in sgpy_user.hooks. The meaning of an index depends on the callback table:
 * 0 is principal, on_headers, on_bearer or on_assertion; 1 is validate or on_load; 2 is
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
/* Makes the Wire of a transport for its first event. */
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
PyObject *sgpy_server_add(PyObject *server, int item, PyObject *json, PyObject *options,
                          PyObject *handler, bool completion);
PyObject *sgpy_server_attach(PyObject *server, PyObject *transport);
PyObject *sgpy_server_listen(PyObject *server, PyObject *options, PyObject *bearer,
                             PyObject *on_bearer);
PyObject *sgpy_server_stats(PyObject *server);
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

/* Adds types, constants and the functions that run for each message (fast.c). */
int sgpy_init(PyObject *module);
int sgpy_fast_init(PyObject *module);
int sgpy_segment_init(PyObject *module);
int sgpy_handle_init(PyObject *module);

#endif
