/* bindings/node: the functions of segue.h for JavaScript, with N-API 8. The binding is
 * one to one: handles become tagged externals, callbacks become events, objects become
 * option structs, statuses become exceptions. The binding knows no protocol and has no
 * defaults.
 *
 *   addon.c    environment, table of functions     handle.c   handles
 *   values.c   text, numbers, exceptions           options.c  option structs
 *   host.c     runtime, wake-up, batch             events.c   callbacks as events
 *   hooks.c    callbacks that answer at once       wire.c     custom transports
 *   runtime.c transports.c stores.c content.c serving.c calls.c asking.c: the functions,
 *   by noun
 *
 * Everything runs on the thread of the environment, except the functions marked "any
 * thread". Functions for any thread call no function of N-API except
 * napi_call_threadsafe_function. */
#ifndef SGNODE_ADDON_H
#define SGNODE_ADDON_H

#define NAPI_VERSION 8
#include <node_api.h>

#include <pthread.h>
#include <segue/segue.h>
#include <segue/segue_auth.h>
#include <segue/segue_ext.h>
#include <segue/segue_util.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uchar.h>

#include "../common/counting_allocator.h"
#include "../common/custom_transport.h"
#include "../common/events.h"
#include "../common/option_shapes.h"
#include "../common/side_queue.h"

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
    SGNODE_WIRE, /* the JavaScript object of a custom transport */
    SGNODE_KINDS
} sgnode_kind;

/* ---- environment, and the frame of one call ---- */

typedef struct sgnode_host sgnode_host;
typedef struct sgnode_user sgnode_user;
typedef struct sgnode_box sgnode_box;
typedef struct sgnode_block sgnode_block;

enum { SGNODE_KNOWN = 256, SGNODE_ARGS = 8 };

/* The state of one environment. It lives as long as the environment and the boxes of
 * this environment. */
typedef struct sgnode_env {
    napi_env env;
    long refs;
    napi_ref factory; /* function that makes exceptions; NULL = plain exceptions */
    napi_ref gather;  /* function that makes an array of its arguments */
    long live[SGNODE_KINDS];
    const sgnode_box *known[SGNODE_KNOWN]; /* boxes whose tag was already checked, by
                                            * address */
    sgnode_block *block;                   /* scratch memory of calls: the last block */
} sgnode_env;

/* One call of a function from JavaScript. */
typedef struct sgnode_frame {
    sgnode_env *self;
    napi_env env;
    napi_value arg[SGNODE_ARGS]; /* missing arguments are undefined */
    segue_error *error;          /* details of a failure, for sgnode_throw */
} sgnode_frame;

/* A function that JavaScript calls. Returns a value, or NULL with a pending exception.
 * NULL without an exception means undefined. */
typedef napi_value (*sgnode_function)(sgnode_frame *frame);

typedef struct sgnode_row {
    const char *name;
    sgnode_function function;
} sgnode_row;

/* The functions of each file. The last row of each table has no name. */
extern const sgnode_row sgnode_library_rows[], sgnode_runtime_rows[],
    sgnode_transport_rows[], sgnode_wire_rows[], sgnode_store_rows[],
    sgnode_content_rows[], sgnode_server_rows[], sgnode_call_rows[], sgnode_client_rows[],
    sgnode_request_rows[];

sgnode_env *sgnode_env_ref(sgnode_env *self);
void sgnode_env_unref(sgnode_env *self);

/* Returns scratch memory that lives until the call ends, or NULL with an exception. */
void *sgnode_scratch(sgnode_frame *frame, size_t size);

/* ---- host: the state of one runtime ---- */

/* A list of JavaScript values. The list becomes an array in one step, which is several
 * times faster than appending the values one by one. The list is valid as long as the
 * handle scope in which its values were made. */
typedef struct sgnode_list {
    napi_value *items;
    size_t count;
    size_t room;
} sgnode_list;

typedef struct sgnode_front sgnode_front; /* watches the wake-up descriptor of a
                                           * runtime that lends its input */
typedef struct sgnode_watch sgnode_watch; /* counts the library's threads that have
                                           * used the bell */

/* The state of one runtime. It lives as long as the runtime and all its handles and
 * callback tables. `bell` is the thread-safe function that wakes the environment's
 * thread, and a "ring" is one call of it. */
struct sgnode_host {
    _Atomic int refs;
    sgnode_env *self;
    segue_runtime *runtime; /* the runtime; NULL once it is freed */
    sgnode_list batch;      /* values of the current batch of events */
    bool has_batch;         /* true = a batch is open; false = events are dropped */
    sgnode_user *open;      /* users with segments that are not in the batch yet */
    bool busy;              /* a dispatch, run or free is running */
    bool is_ended;          /* the runtime is freed, and its threads are joined */
    bool has_hook;          /* the clean-up hook of the environment is set */
    bool leaves_bell;       /* true = Node frees the bell; false = the host frees it */
    pthread_t owner;        /* thread of the environment */
    napi_ref log;           /* handler of log lines, or NULL */
    napi_threadsafe_function bell;
    sgnode_front *front; /* watches the wake-up descriptor; NULL = the bell is used
                          * instead */
    sgnode_watch *watch;

    /* The following members may be used on any thread. */
    _Atomic bool rung; /* the bell was called, and its callback has not run yet */
    sgb_side_queue side;
};

sgnode_host *sgnode_host_new(sgnode_env *self);
sgnode_host *sgnode_host_ref(sgnode_host *host); /* any thread */
void sgnode_host_unref(sgnode_host *host);       /* any thread */
/* Makes the bell, whose callback calls on_wake, and sets a clean-up hook that ends the
 * runtime before the environment ends. */
bool sgnode_host_open(sgnode_host *host, napi_value on_wake);
/* Frees the runtime and the host's references to JavaScript objects. A batch may be
 * open or not. */
void sgnode_host_end(sgnode_host *host);
/* Stops the runtime from inside one of its callbacks, when the process exits. */
void sgnode_host_stop(sgnode_host *host);
void sgnode_ring(sgnode_host *host); /* any thread */
void sgnode_wake(void *host);        /* any thread; a segue_wake_fn */

/* The wake-up callback of a runtime with a front. The front itself wakes JavaScript, so
 * this callback only counts the calling thread. Any thread; a segue_wake_fn. */
void sgnode_note_thread(void *host);

/* Returns whether this program has libuv. A front needs libuv. */
bool sgnode_front_can_be(void);
/* Makes a front that calls on_wake while the descriptor is readable. Returns NULL when
 * out of memory. */
sgnode_front *sgnode_front_new(napi_env env, int fd, napi_value on_wake);
/* Stops the calls of on_wake. Needed for a stopped runtime, whose descriptor stays
 * readable for ever. */
void sgnode_front_rest(sgnode_front *front);
/* Stops the calls of on_wake and frees the front. The descriptor may then be closed. */
void sgnode_front_end(sgnode_front *front);

/* sgnode_batch_begin begins a batch and returns false with an exception if it fails.
 * sgnode_batch_end ends the batch and returns the array of its events. */
bool sgnode_batch_begin(sgnode_frame *frame, sgnode_host *host);
napi_value sgnode_batch_end(sgnode_host *host);
bool sgnode_list_add(sgnode_list *list, napi_value value); /* adds a value; returns false
                                                            * when the value is NULL */
/* Makes an array of the list and empties the list. Returns NULL with an exception on
 * failure. */
napi_value sgnode_list_end(sgnode_env *self, sgnode_list *list);
/* Adds the collected segments of a user to the batch, as one event. */
void sgnode_segments_end(sgnode_user *user);
/* Appends one event to the batch for JavaScript: its handler, its kind and three values.
 * A value that is NULL becomes null. */
bool sgnode_push(sgnode_host *host, napi_ref handler, int kind, napi_value a,
                 napi_value b, napi_value c);
/* Turns the pending exception into an event. where: the function that threw. */
void sgnode_push_exception(sgnode_host *host, const char *where);

/* Appends an entry to the side queue. Called on any thread. Returns false when there
 * is no room or no memory, or when the runtime has ended. */
bool sgnode_side_put(sgnode_host *host, int kind, sgnode_user *user, int64_t number,
                     const char *text, size_t len);
void sgnode_on_log(void *host, int32_t level, const char *text); /* any thread */

/* ---- user: the `user` pointer of a callback table ---- */

enum { SGNODE_HOOKS = 3 };

struct sgnode_user {
    sgnode_host *host;            /* a counted reference */
    napi_ref handler;             /* the JavaScript function that receives the events, or
                                   * NULL */
    napi_ref hooks[SGNODE_HOOKS]; /* functions that must answer at once, or NULL */
    char *answer;                 /* text that a hook returned, kept for the library */
    sgb_transport *custom;        /* the custom transport of this user, else NULL */
    sgnode_list segments;         /* collected segments of the current batch */
    size_t slot;                  /* index in the batch that is reserved for the array
                                   * of segments */
    sgnode_user *next;            /* the next user in host->open */
    bool is_open;
    uint64_t number; /* number and index of the segment that was added last */
    uint64_t index;
    bool is_broken;     /* for a request: true when an event was lost */
    sgnode_box *keeper; /* for a request: the box that keeps this user for the next
                         * request; NULL = none */
    bool is_idle;       /* no request uses this user, and its reference to the handler is
                         * weak */
};

/* Makes a user for a handler. *user is NULL when the handler is undefined or null.
 * Returns false with an exception when the handler is any other value that is not a
 * function. */
bool sgnode_user_new(sgnode_frame *frame, sgnode_host *host, napi_value handler,
                     sgnode_user **user);
bool sgnode_user_hook(sgnode_frame *frame, sgnode_user *user, int which,
                      napi_value function);
void sgnode_user_free(void *user); /* Frees a user (a segue_free_fn). A user that a box
                                    * keeps becomes idle instead. */
/* Lets an idle user serve another request. Returns false with an exception when its
 * handler was collected or belongs to another runtime. */
bool sgnode_user_again(sgnode_frame *frame, sgnode_user *user, sgnode_host *host);

/* ---- handles ---- */

/* Returns the pointer of a usable handle, or NULL with an exception. */
void *sgnode_unwrap(sgnode_frame *frame, napi_value value, sgnode_kind kind);
/* Does the same as sgnode_unwrap. *host receives the host of the handle. */
void *sgnode_unwrap_of(sgnode_frame *frame, napi_value value, sgnode_kind kind,
                       sgnode_host **host);
/* Makes the value of a handle. The value owns the handle from then on. On failure the
 * function frees the handle and returns NULL. */
napi_value sgnode_wrap(sgnode_env *self, sgnode_kind kind, void *ptr, sgnode_host *host);
/* Does the same as sgnode_wrap, for a request. The box also keeps the user, which becomes
 * idle when the request ends and serves the next request of the same value. */
napi_value sgnode_wrap_kept(sgnode_env *self, segue_request *request, sgnode_user *user);
/* Returns the box and the user of a kept request that has ended and was freed. Returns
 * NULL with an exception for any other value. */
sgnode_box *sgnode_find_kept(sgnode_frame *frame, napi_value value, sgnode_user **user);
void sgnode_fill_kept(sgnode_box *box, segue_request *request);
/* Frees the request of a box and keeps the box for the next request. */
void sgnode_empty_kept(sgnode_box *box);
/* Makes a value for a handle that the value does not own. sgnode_view_end invalidates the
 * value. */
napi_value sgnode_wrap_view(sgnode_env *self, sgnode_kind kind, void *ptr,
                            sgnode_host *host, sgnode_box **box);
void sgnode_view_end(sgnode_box *box);
/* Empties the box of a handle that the library has consumed. */
void sgnode_consume(sgnode_frame *frame, napi_value value);
/* Implements the X_free functions. Throws for a handle that was freed already. */
napi_value sgnode_release(sgnode_frame *frame, sgnode_kind kind);
const char *sgnode_kind_name(sgnode_kind kind);

/* ---- values in ---- */

bool sgnode_is_none(sgnode_frame *frame,
                    napi_value value); /* true for undefined and null */
napi_valuetype sgnode_typeof(sgnode_frame *frame, napi_value value);

/* Reads a string as UTF-8, or the bytes of a Uint8Array. With `optional`, undefined and
 * null give NULL and length 0. False with an exception for any other value. The text
 * lives until the call ends. */
bool sgnode_view(sgnode_frame *frame, napi_value value, bool optional, const char **text,
                 size_t *len);
/* Reads a string for names, keys and tokens. A NUL or half a surrogate pair is refused,
 * so that different strings stay different names. */
bool sgnode_name(sgnode_frame *frame, napi_value value, bool optional, const char **text);
/* Reads a string for people: NUL and half a surrogate pair become U+FFFD. */
bool sgnode_message(sgnode_frame *frame, napi_value value, bool optional,
                    const char **text);

/* The reasons why a string cannot be used as a name. text is the UTF-8 form of the
 * string. */
typedef enum sgnode_flaw {
    SGNODE_FLAWLESS,
    SGNODE_HAS_NUL,
    SGNODE_HAS_HALF_PAIR,
    SGNODE_UNREADABLE
} sgnode_flaw;
sgnode_flaw sgnode_flaw_of(napi_env env, napi_value value, const char *text, size_t len);
/* Reads an array of names into a list that ends with NULL. */
bool sgnode_names(sgnode_frame *frame, napi_value value, const char *const **names,
                  size_t *count);
/* Reads an integer, or a boolean. undefined and null give `fallback`. */
bool sgnode_int64(sgnode_frame *frame, napi_value value, int64_t fallback,
                  int64_t *number);
bool sgnode_int32(sgnode_frame *frame, napi_value value, int32_t fallback,
                  int32_t *number);
bool sgnode_double(sgnode_frame *frame, napi_value value, double fallback,
                   double *number);
bool sgnode_flag(sgnode_frame *frame, napi_value value, bool *flag);
napi_value sgnode_type_error(sgnode_frame *frame, const char *wanted, const char *what);

/* ---- values out; NULL when the value cannot be made ---- */

/* The two functions make a string of the text. A NULL text becomes null. */
napi_value sgnode_text(napi_env env, const char *text, size_t len);
napi_value sgnode_string(napi_env env, const char *text);
/* Makes a string of a text that identifies a caller. Invalid UTF-8 is an exception and
 * does not become U+FFFD. */
napi_value sgnode_exact(sgnode_frame *frame, const char *text, const char *what);
napi_value sgnode_bytes(napi_env env, const void *data, size_t len);
napi_value sgnode_number(napi_env env, double number);
napi_value sgnode_bool(napi_env env, bool truth);
napi_value sgnode_null(napi_env env);
/* Makes [status, message, code, data, retryable], or null. */
napi_value sgnode_error_info(napi_env env, const segue_error *error);

/* Throws the exception of a status, with the details of frame->error. Returns NULL. */
napi_value sgnode_throw(sgnode_frame *frame, segue_status status);
/* Returns undefined for SEGUE_OK, and throws for any other status. */
napi_value sgnode_done(sgnode_frame *frame, segue_status status);
/* Makes the result of functions that send: true for SEGUE_OK, false for
 * SEGUE_E_WOULD_BLOCK, and an exception for any other status. */
napi_value sgnode_sent(sgnode_frame *frame, segue_status status);

/* ---- options ---- */

/* Clears the struct and fills it from an object (or undefined, or null). Returns false
 * with an exception on failure. The texts and lists in the struct live until the call
 * ends. */
bool sgnode_options(sgnode_frame *frame, napi_value object, option_shape which,
                    void *target);
/* Makes {struct name: [members that an object can set]}. */
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

/* The indexes in sgnode_user.hooks. The meaning of an index depends on the callback
 * table: 0 is principal, onHeaders, onBearer or onAssertion; 1 is validate or onLoad; 2
 * is onSave. */
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

/* An accessor that copies a text into buf and sets *len. sgnode_read_text calls the
 * accessor once for the length and once for the text, and again if the text has grown
 * between the two calls. */
typedef segue_status (*sgnode_read_fn)(void *handle, char *buf, size_t *len);
segue_status sgnode_read_text(napi_env env, void *handle, sgnode_read_fn read,
                              napi_value *text);
segue_status sgnode_read_token(void *request, char *buf, size_t *len);

/* Makes the Wire of a transport for its first event. */
napi_value sgnode_wire_show(const sgnode_user *user);

#endif
