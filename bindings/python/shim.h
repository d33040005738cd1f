/* bindings/python: what stands between the generated wrappers (segue.i) and segue.h:
 * handles as Python objects, callbacks as events, dicts as option structs, statuses as
 * exceptions. It binds one to one and knows no protocol.
 *
 * Everything runs with the GIL held, but for what is marked "any thread": that part
 * touches no Python object and never takes the GIL. The shim keeps to the limited API of
 * Python 3.10, so that one binary can serve all versions from there on. Two things it
 * must not use for that: Py_RETURN_NONE and its kind, which in the headers of 3.12 and
 * 3.13 count on objects that are immortal, and formats with "#". */
#ifndef SGPY_SHIM_H
#define SGPY_SHIM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <segue/segue.h>
#include <segue/segue_ext.h>
#include <stdatomic.h>
#include <stdbool.h>

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
    SGPY_WIRE,  /* Python's side of a transport of its own */
    SGPY_SHELF, /* ... of a store of its own */
    SGPY_KINDS
} sgpy_kind;

/* Kinds of events; _segue.pyi says what each carries. */
enum sgpy_event {
    SGPY_CALLED = 0,
    SGPY_COMPLETION,
    SGPY_CANCEL,
    SGPY_DRAIN,
    SGPY_INPUT,
    SGPY_IDLE,
    SGPY_OPEN,
    SGPY_CLOSED,
    SGPY_NOTIFICATION,
    SGPY_SEGMENTS,
    SGPY_PROGRESS,
    SGPY_LOG,
    SGPY_QUESTION,
    SGPY_BECAME_TASK,
    SGPY_STATUS,
    SGPY_COMPLETE,
    SGPY_STDERR,
    SGPY_AUTHORIZE,
    SGPY_RUNTIME_LOG,
    SGPY_EXCEPTION,
    SGPY_TRANSPORT_START,
    SGPY_TRANSPORT_SEND,
    SGPY_TRANSPORT_CLOSE,
    SGPY_TRANSPORT_PAUSE,
    SGPY_TRANSPORT_REOPEN,
    SGPY_TRANSPORT_FREE,
    SGPY_RECONNECT,
    SGPY_CALLED_NOW,
    SGPY_BECAME_RESUMABLE,
    SGPY_EVENTS
};

/* ---- host: what the shim keeps for one runtime ---- */

typedef struct sgpy_side sgpy_side; /* one entry of the side queue */

/* Lives as long as the runtime and all handles and callback tables of it. */
typedef struct sgpy_host {
    _Atomic int refs;
    segue_runtime *runtime; /* NULL once freed */
    PyObject *batch; /* list of events being collected; NULL = events are dropped */
    uint64_t round;  /* number of the batch: a list of segments is of one round */
    bool busy;       /* a dispatch, run or free is under way */
    bool lost;       /* an event could not be made, which is not told yet */
    bool apart;      /* ... with the GIL let go around the library */
    PyObject *log;   /* handler of log lines; NULL = none */
    PyObject *spare; /* the event that tells of lost ones, made in good time */
    struct sgpy_user *owing; /* users that have something to hear yet */

    /* any thread, under the mutex: */
    pthread_mutex_t mutex;
    sgpy_side *first, **last;
    size_t side_count;     /* log lines in the queue */
    int side_fd;           /* eventfd: readable while side_due */
    _Atomic bool side_due; /* the queue is not empty; may be read without the mutex */
} sgpy_host;

sgpy_host *sgpy_host_new(void);
sgpy_host *sgpy_host_ref(sgpy_host *host); /* any thread */
void sgpy_host_unref(sgpy_host *host);     /* any thread */

/* Lets the GIL go around a call of the library in which callbacks may come. */
void sgpy_let_go(void);
/* Around every use of Python in a callback: takes the GIL back if this thread let it go.
 * What enter returns goes to leave. */
bool sgpy_enter(void);
void sgpy_leave(bool entered);

/* Ends what the host has of Python, after the runtime. */
void sgpy_host_end(sgpy_host *host);

/* Appends (handler, kind, a, b, c) to the batch; takes over the references a, b, c, of
 * which any may be NULL for None. False when there is no memory for it, or was none for
 * one of them; no exception is left. */
bool sgpy_push(sgpy_host *host, PyObject *handler, int kind, PyObject *a, PyObject *b,
               PyObject *c);

/* Turns the current exception into an event. */
void sgpy_push_exception(sgpy_host *host, const char *where);

/* Any thread: puts an entry at the end of the side queue and rings. text may be NULL; the
 * user is one of a transport, or NULL. False when there is no room or memory. */
typedef struct sgpy_user sgpy_user;
typedef struct sgpy_wire sgpy_wire;
typedef struct sgpy_shelf sgpy_shelf;
bool sgpy_side_put(sgpy_host *host, int kind, sgpy_user *user, int64_t number,
                   const char *text, size_t len);
/* Moves the side queue into the batch; without one it is dropped. */
void sgpy_side_drain(sgpy_host *host);
/* Tells at the end of a batch what could not be told before. */
void sgpy_settle(sgpy_host *host);

/* Allocator that counts, for leak checks. */
const segue_allocator *sgpy_tracking(void);
long long sgpy_allocated(void);

/* ---- user: what a callback table points to ---- */

enum { SGPY_HOOKS = 3 };

struct sgpy_user {
    sgpy_host *host;             /* a reference */
    PyObject *handler;           /* or NULL */
    PyObject *hooks[SGPY_HOOKS]; /* callables that are asked at once, or NULL */
    PyObject *answer;            /* text that a hook gave, kept for the library */
    sgpy_wire *wire;             /* of a transport of Python's own, else NULL */
    PyObject *segments;          /* list in the batch of this round, borrowed */
    uint64_t round;
    sgpy_user *next; /* in host->owing */
    uint32_t owed;   /* kinds of events it has to hear yet */
    bool is_listed;  /* in host->owing: not to be freed */
    bool is_gone;    /* ... but by who takes it out */
    bool is_broken;  /* of a request: an event is missing */
};

sgpy_user *sgpy_user_new(sgpy_host *host, PyObject *handler);
void sgpy_user_free(void *user); /* a segue_free_fn */
void sgpy_user_hook(sgpy_user *user, int which, PyObject *callable);
/* As sgpy_push, to the user's handler. What cannot be told is lost, which an EXCEPTION
 * tells, but for what somebody may wait for: that follows, without what came with it. */
bool sgpy_tell(sgpy_user *user, int kind, PyObject *a, PyObject *b, PyObject *c);

/* ---- handles ---- */

typedef struct sgpy_handle {
    PyObject_HEAD void *ptr; /* NULL once freed or consumed */
    sgpy_host *host;         /* a reference; NULL for stores */
    int born;                /* sgpy_forks() when it was made */
} sgpy_handle;

/* How often this process, or those it came from, were forked since the module is here. */
int sgpy_forks(void);

/* Makes the object of a handle, which it owns from then on, also when this fails. */
PyObject *sgpy_wrap(sgpy_kind kind, void *ptr, sgpy_host *host);
/* An object that does not own: whoever made it consumes it when the view ends. */
PyObject *sgpy_wrap_view(sgpy_kind kind, void *ptr, sgpy_host *host);
/* The pointer of a handle that can be used, or NULL with an exception. */
void *sgpy_unwrap(PyObject *object, sgpy_kind kind);
sgpy_host *sgpy_host_of(PyObject *object);
/* Takes the pointer out: the library consumed it. */
void sgpy_consume(PyObject *object);
/* Frees the handle now. A second time, or after consume: an exception, -1. */
int sgpy_release(PyObject *object, sgpy_kind kind);
PyObject *sgpy_live_handles(void);

/* ---- values ---- */

/* Raises for a status; takes the detail of the calling thread's slot, if there is one.
 * Returns NULL. */
PyObject *sgpy_raise(segue_status status);
/* The same for a failure of the binding's own. */
PyObject *sgpy_raise_text(segue_status status, const char *message);
/* Where a call of this thread shall put its segue_error. */
segue_error **sgpy_error_slot(void);
/* What functions that send return: True, False for SEGUE_E_WOULD_BLOCK, or an
 * exception. */
PyObject *sgpy_sent(segue_status status);
PyObject *sgpy_set_error_factory(PyObject *factory);

/* (status, message, code, data, retryable), or None. */
PyObject *sgpy_error_info(const segue_error *error);

/* bytes, or str as UTF-8: a view that lives as long as the object. None gives NULL, 0
 * when `optional`. False with an exception for anything else. */
bool sgpy_view(PyObject *object, bool optional, const char **text, size_t *len);
/* str without NUL, for names. None gives NULL when `optional`. */
bool sgpy_name(PyObject *object, bool optional, const char **text);
PyObject *sgpy_bytes(const char *text, size_t len); /* NULL gives None */
PyObject *sgpy_text(const char *text, size_t len);  /* what is no UTF-8 is escaped */
PyObject *sgpy_string(const char *text);            /* NULL gives None */
/* Text that tells callers apart: what is no UTF-8 is an exception, not escaped. */
PyObject *sgpy_exact(const char *text);
/* For generated code: `made` in the place of `old`, which is given up. */
PyObject *sgpy_give(PyObject *old, PyObject *made);
PyObject *sgpy_resumed(uint64_t last, const void *data, size_t len);

/* ---- options ---- */

enum { SGPY_OPTION_LISTS = 2 };

/* Keeps what a filled struct points to beside the dict's own values. */
typedef struct sgpy_options {
    void *lists[SGPY_OPTION_LISTS];
    PyObject *owned[SGPY_OPTION_LISTS];
    int count;
} sgpy_options;

/* Zeroes the struct, and fills it from a dict (or None). False with an exception. `kept`
 * is to be freed after the call of the library. */
bool sgpy_options_fill(sgpy_options *kept, int32_t which, void *target, PyObject *dict);
void sgpy_options_free(sgpy_options *kept);
/* {struct name: (members, ...)} that dicts can fill. */
PyObject *sgpy_option_names(void);

/* ---- segments ---- */

PyObject *sgpy_segment_new(const segue_segment *segment);
/* What makes Segment.content of the JSON of a block; None = the JSON itself. */
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
/* any thread: */
void sgpy_on_log(void *host, int32_t level, const char *text);

/* Hooks: 0 = principal, on_headers, on_bearer or on_assertion; 1 = validate or on_load; 2
 * = on_save. */
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

/* ---- what segue.i wraps beside segue.h: functions with callbacks or options ---- */

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
/* The Wire of a transport, for its first event; and what frees it. */
PyObject *sgpy_wire_show(sgpy_user *user);
void sgpy_wire_free(void *wire);
PyObject *sgpy_store_memory(PyObject *options);
PyObject *sgpy_store_sqlite(PyObject *path, PyObject *options);
PyObject *sgpy_store_redis(PyObject *url, PyObject *options);
PyObject *sgpy_store_custom(PyObject *store, PyObject *options);
PyObject *sgpy_store_serve(PyObject *shelf);
PyObject *sgpy_store_ring(PyObject *shelf);
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

/* Types, constants and the functions that are called for each message (fast.c). */
int sgpy_init(PyObject *module);
int sgpy_fast_init(PyObject *module);
int sgpy_segment_init(PyObject *module);
int sgpy_handle_init(PyObject *module);

#endif
