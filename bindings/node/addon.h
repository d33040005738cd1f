/* bindings/node: segue.h as functions of JavaScript, by N-API 8. It binds one to one:
 * handles as tagged externals, callbacks as events, objects as option structs, statuses
 * as exceptions. It knows no protocol and has no defaults.
 *
 *   addon.c    environment, table of functions     handle.c   handles
 *   values.c   text, numbers, exceptions           options.c  option structs
 *   host.c     runtime, doorbell, batch            events.c   callbacks as events
 *   hooks.c    questions answered at once          wire.c     transports of one's own
 *   runtime.c transports.c stores.c content.c serving.c calls.c asking.c: the functions,
 *   by noun
 *
 * Everything runs on the thread of the environment, but for what is marked "any thread":
 * that part calls no function of N-API but napi_call_threadsafe_function. */
#ifndef SGNODE_ADDON_H
#define SGNODE_ADDON_H

#define NAPI_VERSION 8
#include <node_api.h>

#include <pthread.h>
#include <segue/segue.h>
#include <segue/segue_ext.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uchar.h>

/* ---- kinds ---- */

typedef enum sgnode_kind {
    SGNODE_RUNTIME = 0,
    SGNODE_TRANSPORT,
    SGNODE_STORE,
    SGNODE_SERVER,
    SGNODE_LISTENER,
    SGNODE_BEARER,
    SGNODE_CALL,
    SGNODE_SESSION,
    SGNODE_REQUEST,
    SGNODE_TASK,
    SGNODE_CONTENT,
    SGNODE_WIRE, /* JavaScript's side of a transport of its own */
    SGNODE_KINDS
} sgnode_kind;

/* Kinds of events; node/src/constants.ts says what each carries. */
enum sgnode_event {
    SGNODE_CALLED = 0,
    SGNODE_COMPLETION,
    SGNODE_CANCEL,
    SGNODE_DRAIN,
    SGNODE_INPUT,
    SGNODE_IDLE,
    SGNODE_OPEN,
    SGNODE_CLOSED,
    SGNODE_NOTIFICATION,
    SGNODE_SEGMENTS,
    SGNODE_PROGRESS,
    SGNODE_LOG,
    SGNODE_QUESTION,
    SGNODE_BECAME_TASK,
    SGNODE_STATUS,
    SGNODE_COMPLETE,
    SGNODE_STDERR,
    SGNODE_AUTHORIZE,
    SGNODE_RUNTIME_LOG,
    SGNODE_EXCEPTION,
    SGNODE_TRANSPORT_START,
    SGNODE_TRANSPORT_SEND,
    SGNODE_TRANSPORT_CLOSE,
    SGNODE_TRANSPORT_PAUSE,
    SGNODE_TRANSPORT_REOPEN,
    SGNODE_TRANSPORT_FREE,
    SGNODE_RECONNECT,
    SGNODE_CALLED_NOW,
    SGNODE_BECAME_RESUMABLE,
    SGNODE_EVENTS
};

/* ---- environment, and one call of a function ---- */

typedef struct sgnode_host sgnode_host;
typedef struct sgnode_user sgnode_user;
typedef struct sgnode_wire sgnode_wire;
typedef struct sgnode_box sgnode_box;
typedef struct sgnode_block sgnode_block;

enum { SGNODE_KNOWN = 256, SGNODE_ARGS = 8 };

/* What the addon keeps for one environment: it has no other state. Lives as long as the
 * environment and every box. */
typedef struct sgnode_env {
    napi_env env;
    long refs;
    napi_ref factory; /* what makes exceptions; NULL = plain ones */
    napi_ref gather;  /* makes an array of its arguments */
    long live[SGNODE_KINDS];
    const sgnode_box *known[SGNODE_KNOWN]; /* boxes whose tag was looked at, by address */
    sgnode_block *block;                   /* scratch memory of calls: the last block */
} sgnode_env;

/* One call of a function of JavaScript. */
typedef struct sgnode_frame {
    sgnode_env *self;
    napi_env env;
    napi_value arg[SGNODE_ARGS]; /* those not given are undefined */
    segue_error *error;          /* detail of a failure, for sgnode_throw */
} sgnode_frame;

/* NULL with an exception, or a value; NULL without one is undefined. */
typedef napi_value (*sgnode_function)(sgnode_frame *frame);

typedef struct sgnode_row {
    const char *name;
    sgnode_function function;
} sgnode_row;

/* The functions of each file; the last row has no name. */
extern const sgnode_row sgnode_library_rows[], sgnode_runtime_rows[],
    sgnode_transport_rows[], sgnode_wire_rows[], sgnode_store_rows[],
    sgnode_content_rows[], sgnode_server_rows[], sgnode_call_rows[], sgnode_client_rows[],
    sgnode_request_rows[];

sgnode_env *sgnode_env_ref(sgnode_env *self);
void sgnode_env_unref(sgnode_env *self);

/* Scratch memory until the call ends; NULL with an exception. */
void *sgnode_scratch(sgnode_frame *frame, size_t size);

/* ---- host: what the addon keeps for one runtime ---- */

/* Values that become an array: all at once, which is several times as fast as one by
 * one. Good as long as the handle scope they were made in. */
typedef struct sgnode_list {
    napi_value *items;
    size_t count;
    size_t room;
} sgnode_list;

typedef struct sgnode_side sgnode_side;   /* one entry of the side queue */
typedef struct sgnode_front sgnode_front; /* waits for a runtime that lends */
typedef struct sgnode_watch sgnode_watch; /* the library's threads that have rung */

/* Lives as long as the runtime and all handles and callback tables of it. */
struct sgnode_host {
    _Atomic int refs;
    sgnode_env *self;
    segue_runtime *runtime; /* NULL once freed */
    sgnode_list batch;      /* values of the events so far */
    bool has_batch;         /* else events are dropped */
    sgnode_user *open;      /* users whose segments are not in the batch yet */
    bool busy;              /* a dispatch, run or free is under way */
    bool is_ended;          /* the runtime is freed, and its threads are joined */
    bool has_hook;          /* the clean-up hook is set */
    bool leaves_bell;       /* the bell is Node's to take down */
    pthread_t owner;        /* thread of the environment */
    napi_ref log;           /* handler of log lines; NULL = none */
    napi_threadsafe_function bell;
    sgnode_front *front; /* NULL = the bell is rung instead */
    sgnode_watch *watch;

    /* any thread: */
    _Atomic bool rung; /* the bell has been rung, and not been heard */
    pthread_mutex_t mutex;
    sgnode_side *first, **last;
    size_t side_count;     /* log lines in the queue */
    _Atomic bool side_due; /* the queue is not empty; may be read without the mutex */
};

sgnode_host *sgnode_host_new(sgnode_env *self);
sgnode_host *sgnode_host_ref(sgnode_host *host); /* any thread */
void sgnode_host_unref(sgnode_host *host);       /* any thread */
/* Makes the bell, whose ring calls on_wake, and sees to it that the runtime ends before
 * the environment does. */
bool sgnode_host_open(sgnode_host *host, napi_value on_wake);
/* Frees the runtime, with a batch (from begin) or without, and what the host has of
 * JavaScript. */
void sgnode_host_end(sgnode_host *host);
/* Stops the runtime from inside of one of its callbacks, as the process exits. */
void sgnode_host_stop(sgnode_host *host);
void sgnode_ring(sgnode_host *host); /* any thread */
void sgnode_wake(void *host);        /* any thread; a segue_wake_fn */

/* Of a runtime with a front, which rings nobody: any thread; a segue_wake_fn. */
void sgnode_note_thread(void *host);

/* A program that runs addons has what a front needs. */
bool sgnode_front_can_be(void);
/* Calls on_wake while the descriptor is readable. NULL: there is no memory. */
sgnode_front *sgnode_front_new(napi_env env, int fd, napi_value on_wake);
/* No call any more: the descriptor of a stopped runtime is readable for ever. */
void sgnode_front_rest(sgnode_front *front);
/* The same, and the descriptor may be closed. */
void sgnode_front_end(sgnode_front *front);

/* Begins a batch, and ends one: the array. False with an exception. */
bool sgnode_batch_begin(sgnode_frame *frame, sgnode_host *host);
napi_value sgnode_batch_end(sgnode_host *host);
bool sgnode_list_add(sgnode_list *list, napi_value value); /* NULL: false */
/* The array of a list, which is empty then; NULL with an exception. */
napi_value sgnode_list_end(sgnode_env *self, sgnode_list *list);
/* Puts the segments of a user into the batch. */
void sgnode_segments_end(sgnode_user *user);
/* Appends (handler, kind, a, b, c) to the batch; NULL is null. */
bool sgnode_push(sgnode_host *host, napi_ref handler, int kind, napi_value a,
                 napi_value b, napi_value c);
/* Turns the current exception into an event. */
void sgnode_push_exception(sgnode_host *host, const char *where);

/* Any thread: puts an entry at the end of the side queue and rings. The user is one of a
 * transport, or NULL. False when there is no room or memory. */
bool sgnode_side_put(sgnode_host *host, int kind, sgnode_user *user, int64_t number,
                     const char *text, size_t len);
void sgnode_on_log(void *host, int32_t level, const char *text); /* any thread */

/* Allocator that counts, for leak checks. */
const segue_allocator *sgnode_tracking(void);
long long sgnode_allocated(void);

/* ---- user: what a callback table points to ---- */

enum { SGNODE_HOOKS = 3 };

struct sgnode_user {
    sgnode_host *host;            /* a reference */
    napi_ref handler;             /* or NULL */
    napi_ref hooks[SGNODE_HOOKS]; /* functions that are asked at once, or NULL */
    char *answer;                 /* text that a hook gave, kept for the library */
    sgnode_wire *wire;            /* of a transport of JavaScript's own, else NULL */
    sgnode_list segments;         /* of this batch */
    size_t slot;                  /* place in the batch of their array */
    sgnode_user *next;            /* in host->open */
    bool is_open;
    uint64_t number; /* of the last segment, and its index */
    uint64_t index;
    bool is_broken;     /* of a request: an event is missing */
    sgnode_box *keeper; /* of a request: keeps it for the next one; NULL = none */
    bool is_idle;       /* no request has it; its reference to the handler is weak */
};

/* What is undefined or null gives NULL; what is no function, false with an exception. */
bool sgnode_user_new(sgnode_frame *frame, sgnode_host *host, napi_value handler,
                     sgnode_user **user);
bool sgnode_user_hook(sgnode_frame *frame, sgnode_user *user, int which,
                      napi_value function);
void sgnode_user_free(void *user); /* a segue_free_fn; one that is kept becomes idle */
/* Makes a user that is idle serve another request. False with an exception: nobody holds
 * the handler any more, or another runtime has it. */
bool sgnode_user_again(sgnode_frame *frame, sgnode_user *user, sgnode_host *host);

/* ---- handles ---- */

/* The pointer of a handle that can be used, or NULL with an exception. */
void *sgnode_unwrap(sgnode_frame *frame, napi_value value, sgnode_kind kind);
/* As sgnode_unwrap; *host receives whose it is. */
void *sgnode_unwrap_of(sgnode_frame *frame, napi_value value, sgnode_kind kind,
                       sgnode_host **host);
/* Makes the value of a handle, which owns it from then on, also when this fails: NULL. */
napi_value sgnode_wrap(sgnode_env *self, sgnode_kind kind, void *ptr, sgnode_host *host);
/* As sgnode_wrap of a request; its box keeps the user, which becomes idle with the end of
 * the request, for the next one that uses the value again. */
napi_value sgnode_wrap_kept(sgnode_env *self, segue_request *request, sgnode_user *user);
/* The box, and the user, of a request that has ended and was freed; NULL with an
 * exception. */
sgnode_box *sgnode_find_kept(sgnode_frame *frame, napi_value value, sgnode_user **user);
void sgnode_fill_kept(sgnode_box *box, segue_request *request);
/* Frees the request of a box. */
void sgnode_empty_kept(sgnode_box *box);
/* The value of a handle that is not owned; whoever made it takes it back. */
napi_value sgnode_wrap_view(sgnode_env *self, sgnode_kind kind, void *ptr,
                            sgnode_host *host, sgnode_box **box);
void sgnode_view_end(sgnode_box *box);
/* Takes the pointer out: the library consumed it. */
void sgnode_consume(sgnode_frame *frame, napi_value value);
/* X_free: an exception for one that was freed before. */
napi_value sgnode_release(sgnode_frame *frame, sgnode_kind kind);
const char *sgnode_kind_name(sgnode_kind kind);

/* ---- values in ---- */

bool sgnode_is_none(sgnode_frame *frame, napi_value value); /* undefined or null */
napi_valuetype sgnode_typeof(sgnode_frame *frame, napi_value value);

/* A string as UTF-8, or the bytes of a Uint8Array. undefined and null give NULL, 0 when
 * `optional`. False with an exception for anything else. Good until the call ends. */
bool sgnode_view(sgnode_frame *frame, napi_value value, bool optional, const char **text,
                 size_t *len);
/* A string without NUL and without half a surrogate pair, for names, keys and tokens:
 * each string is another name. */
bool sgnode_name(sgnode_frame *frame, napi_value value, bool optional, const char **text);
/* One for people: NUL and half a surrogate pair become U+FFFD. */
bool sgnode_message(sgnode_frame *frame, napi_value value, bool optional,
                    const char **text);

/* What keeps a string from crossing as a name; text is its UTF-8. */
typedef enum sgnode_flaw {
    SGNODE_FLAWLESS,
    SGNODE_HAS_NUL,
    SGNODE_HAS_HALF_PAIR,
    SGNODE_UNREADABLE
} sgnode_flaw;
sgnode_flaw sgnode_flaw_of(napi_env env, napi_value value, const char *text, size_t len);
/* An array of names; ends with NULL. */
bool sgnode_names(sgnode_frame *frame, napi_value value, const char *const **names,
                  size_t *count);
/* A whole number, or a boolean; undefined and null give `fallback`. */
bool sgnode_int64(sgnode_frame *frame, napi_value value, int64_t fallback,
                  int64_t *number);
bool sgnode_int32(sgnode_frame *frame, napi_value value, int32_t fallback,
                  int32_t *number);
bool sgnode_double(sgnode_frame *frame, napi_value value, double fallback,
                   double *number);
bool sgnode_flag(sgnode_frame *frame, napi_value value, bool *flag);
napi_value sgnode_type_error(sgnode_frame *frame, const char *wanted, const char *what);

/* ---- values out; NULL when there is none to be had ---- */

napi_value sgnode_text(napi_env env, const char *text, size_t len); /* NULL is null */
napi_value sgnode_string(napi_env env, const char *text);           /* NULL is null */
/* Text that tells callers apart: what is no UTF-8 is an exception, not U+FFFD. */
napi_value sgnode_exact(sgnode_frame *frame, const char *text, const char *what);
napi_value sgnode_bytes(napi_env env, const void *data, size_t len);
napi_value sgnode_number(napi_env env, double number);
napi_value sgnode_bool(napi_env env, bool truth);
napi_value sgnode_null(napi_env env);
/* [status, message, code, data, retryable], or null. */
napi_value sgnode_error_info(napi_env env, const segue_error *error);

/* Throws for a status, with the detail of frame->error; returns NULL. */
napi_value sgnode_throw(sgnode_frame *frame, segue_status status);
/* undefined, or an exception. */
napi_value sgnode_done(sgnode_frame *frame, segue_status status);
/* What functions that send return: true, false for SEGUE_E_WOULD_BLOCK, or an
 * exception. */
napi_value sgnode_sent(sgnode_frame *frame, segue_status status);

/* ---- options ---- */

/* Zeroes the struct, and fills it from an object (or undefined, or null). False with an
 * exception. What it points to is good until the call ends. */
bool sgnode_options(sgnode_frame *frame, napi_value object, int32_t which, void *target);
/* {struct name: [members]} that objects can set. */
napi_value sgnode_option_names(sgnode_frame *frame);

/* ---- callbacks: C tables whose user is an sgnode_user ---- */

void sgnode_request_table(segue_request_events *table, sgnode_user *user, int32_t events);
void sgnode_on_call(void *user, segue_call *call);
void sgnode_on_completion(void *user, segue_call *call);
void sgnode_on_cancel(void *user, segue_call *call);
void sgnode_on_drain(void *user, segue_call *call);
void sgnode_on_input(void *user, segue_call *call, segue_status status, const char *json,
                     size_t len);
void sgnode_on_idle(void *user);
void sgnode_on_open(void *user, segue_session *session);
void sgnode_on_closed(void *user, segue_session *session, const segue_error *error);
void sgnode_on_reconnect(void *user, segue_session *session, int32_t attempt,
                         int64_t delay_ms, const char *reason);
void sgnode_on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len);
void sgnode_on_stderr(void *user, const char *text, size_t len);
void sgnode_on_authorize(void *user, const char *url, const char *state);

/* Hooks: 0 = principal, onHeaders, onBearer or onAssertion; 1 = validate or onLoad; 2 =
 * onSave. */
enum { SGNODE_HOOK_FIRST = 0, SGNODE_HOOK_SECOND = 1, SGNODE_HOOK_THIRD = 2 };
segue_status sgnode_ask_principal(void *user, segue_transport *transport,
                                  const char **principal);
segue_status sgnode_ask_validate(void *user, const char *tool, int32_t what,
                                 const char *schema, size_t schema_len, const char *value,
                                 size_t value_len, char *reason, size_t size);
void sgnode_ask_headers(void *user, segue_transport *transport, int32_t status);
void sgnode_ask_bearer(void *user, segue_transport *transport, segue_bearer *bearer);
const char *sgnode_ask_assertion(void *user, const char *issuer, const char *resource,
                                 size_t *len);
const char *sgnode_ask_load(void *user, const char *key, size_t *len);
void sgnode_ask_save(void *user, const char *key, const char *json, size_t len);

/* Text of an accessor that is asked for its length first, and again if it grew. */
typedef segue_status (*sgnode_read_fn)(void *handle, char *buf, size_t *len);
segue_status sgnode_read_text(napi_env env, void *handle, sgnode_read_fn read,
                              napi_value *text);
segue_status sgnode_read_token(void *request, char *buf, size_t *len);

/* The Wire of a transport, for its first event; and what frees it. */
napi_value sgnode_wire_show(sgnode_user *user);
void sgnode_wire_free(void *wire);

#endif
