/* bindings/node: the functions of segue.h for JavaScript, with N-API 8. The binding is
 * one to one: handles become tagged externals, callbacks become events, objects become
 * option structs, statuses become exceptions. The binding knows no protocol and has no
 * defaults.
 *
 *   addon.c    environment, table of functions     handle.c   handles
 *   values.c   text, numbers, exceptions           options.c  option structs
 *   host.c     runtime, wake-up, batch             events.c   callbacks as events
 *   hooks.c    callbacks that answer at once       wire.c     custom transports
 *   front.c    wake-up by a descriptor
 *   The functions of one noun are in runtime.c, transports.c, stores.c, content.c,
 *   serving.c, calls.c or asking.c.
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
#include <stdatomic.h>
#include <stdbool.h>
#include <uchar.h>

#include "../common/counting_allocator.h"
#include "../common/custom_transport.h"
#include "../common/events.h"
#include "../common/option_shapes.h"
#include "../common/plain_block.h"
#include "../common/side_queue.h"

/* ---- kinds ---- */

typedef enum sgnode_kind {
    SGNODE_RUNTIME = 0,
    SGNODE_TRANSPORT,
    SGNODE_STORE,
    SGNODE_SERVER,
    SGNODE_LISTENER,
    SGNODE_EXCHANGE,
    SGNODE_BEARER,
    SGNODE_CALL,
    SGNODE_SESSION,
    SGNODE_REQUEST,
    SGNODE_TASK,
    SGNODE_CONTENT,
    SGNODE_TEXT, /* the long text of a result */
    SGNODE_WIRE, /* the JavaScript object of a custom transport */
    SGNODE_KINDS
} sgnode_kind;

/* ---- environment, and the frame of one call ---- */

typedef struct sgnode_host sgnode_host;
typedef struct sgnode_user sgnode_user;
typedef struct sgnode_box sgnode_box;
typedef struct sgnode_block sgnode_block;
typedef struct sgnode_late sgnode_late;

enum { SGNODE_KNOWN = 256, SGNODE_ARGS = 13 };

/* The state of one environment. The state lives until the environment has ended and all
 * its boxes were freed. */
typedef struct sgnode_env {
    napi_env env;
    long refs;
    /* the JavaScript function that makes exceptions; NULL = plain exceptions */
    napi_ref factory;
    napi_ref gather; /* the JavaScript function that makes an array of its arguments */
    long live[SGNODE_KINDS];
    /* boxes whose tag was already checked; the address of a box gives its index */
    const sgnode_box *known[SGNODE_KNOWN];
    /* the newest block of the scratch memory that calls use */
    sgnode_block *block;
} sgnode_env;

/* The state of one call of a function from JavaScript. */
typedef struct sgnode_frame {
    sgnode_env *self;
    napi_env env;
    napi_value arg[SGNODE_ARGS]; /* the arguments; a missing argument is undefined */
    /* details of a failure, for sgnode_throw; NULL = no details */
    segue_error *error;
} sgnode_frame;

/* A function that JavaScript calls. Returns a value, or NULL with a pending exception.
 * NULL without an exception means undefined. */
typedef napi_value (*sgnode_function)(sgnode_frame *frame);

typedef struct sgnode_row {
    const char *name;
    sgnode_function function;
} sgnode_row;

/* The tables of functions, one for each file. The last row of each table has no name. */
extern const sgnode_row sgnode_library_rows[], sgnode_runtime_rows[],
    sgnode_transport_rows[], sgnode_wire_rows[], sgnode_store_rows[],
    sgnode_content_rows[], sgnode_server_rows[], sgnode_exchange_rows[],
    sgnode_call_rows[], sgnode_client_rows[], sgnode_request_rows[], sgnode_text_rows[];

sgnode_env *sgnode_env_ref(sgnode_env *self);
void sgnode_env_unref(sgnode_env *self);

/* Returns scratch memory that lives until the call ends. Returns NULL with an exception
 * when out of memory. */
void *sgnode_scratch(sgnode_frame *frame, size_t size);

/* ---- host: the state of one runtime ---- */

/* A list of JavaScript values. Making an array from the whole list is several times
 * faster than appending the values to an array one by one. The list is valid as long as
 * the handle scope in which its values were made. */
typedef struct sgnode_list {
    napi_value *items;
    size_t count;
    size_t room;
} sgnode_list;

/* watches the wake-up descriptor of a runtime that lends its input */
typedef struct sgnode_front sgnode_front;
/* counts the library's threads that have called the bell (woken JavaScript) and have not
 * ended */
typedef struct sgnode_watch sgnode_watch;

/* The state of one runtime. The host lives until the runtime and all its handles and
 * callback tables were freed. `bell` is the thread-safe function that wakes the
 * environment's thread. To "ring" is to call the bell. */
struct sgnode_host {
    _Atomic int refs;
    sgnode_env *self;
    segue_runtime *runtime;           /* NULL once the runtime is freed */
    const segue_allocator *allocator; /* of the runtime; NULL = malloc */
    sgnode_list batch;                /* values of the current batch of events */
    bool has_batch;   /* true = a batch is open; false = events are dropped */
    uint64_t batches; /* number of batches that were begun */
    /* list of the users of callback tables with segments that are not in the batch yet */
    sgnode_user *open;
    /* true = runtimeDispatch, runtimeRun or runtimeFree is running */
    bool busy;
    bool is_ended; /* true = the runtime was freed and its threads have ended */
    /* true = the environment will call the host's clean-up hook */
    bool has_hook;
    /* true = Node frees the bell (the function that wakes JavaScript); false = the host
     * frees the bell */
    bool leaves_bell;
    pthread_t owner;   /* the thread of the environment */
    napi_ref log;      /* handler of the library's log lines; NULL = no handler */
    napi_ref observer; /* handler of events; NULL = nobody observes the runtime */
    napi_threadsafe_function bell;
    /* watches the wake-up descriptor; NULL = the runtime wakes JavaScript with the bell
     * instead */
    sgnode_front *front;
    sgnode_watch *watch;

    /* The following members may be used on any thread. */
    /* true = the bell (the function that wakes JavaScript) was called, and its callback
     * has not run yet */
    _Atomic bool rung;
    sgb_side_queue side;
};

sgnode_host *sgnode_host_new(sgnode_env *self);
sgnode_host *sgnode_host_ref(sgnode_host *host); /* any thread */
void sgnode_host_unref(sgnode_host *host);       /* any thread */
/* Makes the bell, the function that wakes JavaScript. The callback of the bell calls
 * on_wake. Sets a clean-up hook that ends the runtime before the environment ends.
 * Returns false on failure. */
bool sgnode_host_open(sgnode_host *host, napi_value on_wake);
/* Frees the runtime and the host's references to JavaScript objects. May be called with
 * or without an open batch. */
void sgnode_host_end(sgnode_host *host);
/* Stops the runtime when the process exits inside a callback of the runtime. */
void sgnode_host_stop(sgnode_host *host);
void sgnode_ring(sgnode_host *host); /* any thread */
void sgnode_wake(void *host);        /* wakes JavaScript; a segue_wake_fn; any thread */

/* The wake-up callback (segue_wake_fn) of a runtime whose wake-up descriptor a front
 * watches. The front itself wakes JavaScript, so this callback only counts the calling
 * thread. Any thread. */
void sgnode_note_thread(void *host);

/* Returns whether a front (a watcher of the wake-up descriptor) can be made. A front
 * needs libuv, which not every program has. */
bool sgnode_front_can_be(void);
/* Makes a front: a watcher that calls on_wake while the descriptor is readable.
 * Returns NULL on failure. */
sgnode_front *sgnode_front_new(napi_env env, int fd, napi_value on_wake);
/* Stops the calls of on_wake without freeing the front (the watcher). Needed when the
 * runtime was stopped, because the descriptor of a stopped runtime stays readable for
 * ever. */
void sgnode_front_rest(sgnode_front *front);
/* Stops the calls of on_wake and frees the front (the watcher). The caller may then
 * close the descriptor. */
void sgnode_front_end(sgnode_front *front);

/* sgnode_batch_begin begins a batch. It returns false with an exception when the host
 * already runs a batch. sgnode_batch_end ends the batch and returns the array of the
 * batch's events. */
bool sgnode_batch_begin(sgnode_frame *frame, sgnode_host *host);
napi_value sgnode_batch_end(sgnode_host *host);
/* Adds a value to the list. Returns false when the value is NULL or when out of
 * memory. */
bool sgnode_list_add(sgnode_list *list, napi_value value);
/* Makes an array of the values in the list and empties the list. Returns NULL with an
 * exception on failure. */
napi_value sgnode_list_end(sgnode_env *self, sgnode_list *list);
/* Adds the segments that were collected for `user` to the batch, as one event. Does
 * nothing when there are no collected segments. */
void sgnode_segments_end(sgnode_user *user);
/* Appends one event to the batch: its handler, its kind and three values. A value that is
 * NULL becomes null. Returns false when the event could not be made. */
bool sgnode_push(sgnode_host *host, napi_ref handler, int kind, napi_value a,
                 napi_value b, napi_value c);
/* Turns the pending exception into an EXCEPTION event. `where` is the name of the
 * function that threw. */
void sgnode_push_exception(sgnode_host *host, const char *where);

/* Appends an entry to the side queue. May be called on any thread. Returns false when the
 * queue has no room, when out of memory, or when the runtime has ended. */
bool sgnode_side_put(sgnode_host *host, int kind, sgnode_user *user, int64_t number,
                     const char *text, size_t len);
void sgnode_on_log(void *host, int32_t level, const char *text); /* any thread */
void sgnode_on_event(void *host, const segue_event *event);      /* any thread */

/* ---- user: the `user` pointer of a callback table ---- */

enum { SGNODE_HOOKS = 3 };

struct sgnode_user {
    /* the host of the runtime that calls this user; a counted reference */
    sgnode_host *host;
    /* the JavaScript function that receives the events; NULL = no handler */
    napi_ref handler;
    napi_ref hooks[SGNODE_HOOKS]; /* functions that must answer at once; NULL = no hook */
    /* the text that a hook returned last; kept, because the library still reads the
     * text */
    char *answer;
    /* the custom transport that calls this user; NULL for other users */
    sgb_transport *custom;
    /* the segments that were collected in the current batch */
    sgnode_list segments;
    /* index in the batch at which the array of segments will be put */
    size_t slot;
    sgnode_user *next; /* the next user in host->open */
    bool is_open;
    uint64_t number; /* number of the segment that was added last */
    uint64_t index;
    bool is_broken; /* for a request or an exchange: true = an event was lost */
    /* for an exchange: the batch that has its last event ANSWER, and the number of values
     * that the batch had after this event */
    uint64_t answer_batch;
    size_t answer_end;
    /* for a request: the box that keeps this user for its next request; NULL = no box
     * keeps this user */
    sgnode_box *keeper;
    /* true = no request uses this user now, and the reference to the handler is weak */
    bool is_idle;
};

/* Makes a user (the object behind the `user` pointer of a callback table) for a
 * handler. Undefined or null as the handler makes a user without a handler. Returns
 * false with an exception when the handler is another value that is not a function. */
bool sgnode_user_new(sgnode_frame *frame, sgnode_host *host, napi_value handler,
                     sgnode_user **user);
bool sgnode_user_hook(sgnode_frame *frame, sgnode_user *user, int which,
                      napi_value function);
/* Frees a user (the object behind the `user` pointer of a callback table). A user that
 * a box keeps becomes idle and is not freed. The function is a segue_free_fn. */
void sgnode_user_free(void *user);
/* Prepares an idle user (of a request that has ended) for another request. Returns
 * false with an exception when the user's handler was collected, or when the user
 * belongs to another runtime. */
bool sgnode_user_again(sgnode_frame *frame, sgnode_user *user, sgnode_host *host);

/* ---- handles ---- */

/* Returns the pointer of a usable handle, or NULL with an exception. */
void *sgnode_unwrap(sgnode_frame *frame, napi_value value, sgnode_kind kind);
/* Does the same as sgnode_unwrap, and sets *host to the host of the handle. */
void *sgnode_unwrap_of(sgnode_frame *frame, napi_value value, sgnode_kind kind,
                       sgnode_host **host);
/* Makes the JavaScript value of a handle. The value owns the handle. On failure the
 * function frees the handle and returns NULL. */
napi_value sgnode_wrap(sgnode_env *self, sgnode_kind kind, void *ptr, sgnode_host *host);
/* Does the same as sgnode_wrap, for a request. The value's box also keeps the user. When
 * the request ends, the user becomes idle, and the value can serve another request. */
napi_value sgnode_wrap_kept(sgnode_env *self, segue_request *request, sgnode_user *user);
/* Returns the box of a kept request that has ended and was freed, and sets *user. Returns
 * NULL with an exception for any other value. */
sgnode_box *sgnode_find_kept(sgnode_frame *frame, napi_value value, sgnode_user **user);
void sgnode_fill_kept(sgnode_box *box, segue_request *request);
/* Frees the request of a box and keeps the box for the next request. */
void sgnode_empty_kept(sgnode_box *box);
/* Makes a JavaScript value for a handle that the value does not own. sgnode_view_end
 * makes the value unusable. */
napi_value sgnode_wrap_view(sgnode_env *self, sgnode_kind kind, void *ptr,
                            sgnode_host *host, sgnode_box **box);
void sgnode_view_end(sgnode_box *box);
/* Marks a handle that the library has consumed as unusable. */
void sgnode_consume(sgnode_frame *frame, napi_value value);
/* Frees the handle that is the first argument: the body of each xFree function. Throws
 * for a handle that was already freed. */
napi_value sgnode_release(sgnode_frame *frame, sgnode_kind kind);
const char *sgnode_kind_name(sgnode_kind kind);

/* ---- long texts of results ---- */

/* Takes the text of the result out of a request that is complete. Makes a string of the
 * text, or a handle of a long text (texts.c); null when there is no text. Returns NULL on
 * failure. */
napi_value sgnode_take_result(sgnode_host *host, segue_request *request,
                              bool *says_error);
void sgnode_late_free(void *late);

/* ---- values in ---- */

bool sgnode_is_none(sgnode_frame *frame,
                    napi_value value); /* returns true for undefined and null */
napi_valuetype sgnode_typeof(sgnode_frame *frame, napi_value value);

/* Reads a string as UTF-8, or the bytes of a Uint8Array. With `optional`, undefined and
 * null give NULL and length 0. Returns false with an exception for any other value. The
 * text lives until the call ends. */
bool sgnode_view(sgnode_frame *frame, napi_value value, bool optional, const char **text,
                 size_t *len);
/* Reads a string that is a name, a key or a token. Refuses a string with a NUL or half a
 * surrogate pair, so that different strings stay different names. */
bool sgnode_name(sgnode_frame *frame, napi_value value, bool optional, const char **text);
/* Reads a string for people. A NUL and half a surrogate pair become U+FFFD. */
bool sgnode_message(sgnode_frame *frame, napi_value value, bool optional,
                    const char **text);

/* The reasons why a string cannot be used as a name. `text` is the string as UTF-8. */
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
/* The next two functions read an integer or a boolean. Undefined and null give
 * `fallback`. */
bool sgnode_int64(sgnode_frame *frame, napi_value value, int64_t fallback,
                  int64_t *number);
bool sgnode_int32(sgnode_frame *frame, napi_value value, int32_t fallback,
                  int32_t *number);
bool sgnode_double(sgnode_frame *frame, napi_value value, double fallback,
                   double *number);
bool sgnode_flag(sgnode_frame *frame, napi_value value, bool *flag);
napi_value sgnode_type_error(sgnode_frame *frame, const char *wanted, const char *what);

/* ---- values out; a function returns NULL when the value cannot be made ---- */

/* The next two functions make a JavaScript string of a text. NULL becomes null. */
napi_value sgnode_text(napi_env env, const char *text, size_t len);
napi_value sgnode_string(napi_env env, const char *text);
/* Makes a JavaScript string of a text that identifies a caller. Throws when the text is
 * not valid UTF-8, because replaced bytes could make two callers equal. */
napi_value sgnode_exact(sgnode_frame *frame, const char *text, const char *what);
napi_value sgnode_bytes(napi_env env, const void *data, size_t len);
napi_value sgnode_number(napi_env env, double number);
napi_value sgnode_bool(napi_env env, bool truth);
napi_value sgnode_null(napi_env env);
/* Makes a JavaScript string of the message of an error. Names of options are in
 * camelCase. */
napi_value sgnode_error_text(napi_env env, const segue_error_view *view);
/* Makes the array [status, message, code, data, retryable] of an error. NULL becomes
 * null. */
napi_value sgnode_error_info(napi_env env, const segue_error *error);

/* Throws the exception of a status, with the details in frame->error. Returns NULL. */
napi_value sgnode_throw(sgnode_frame *frame, segue_status status);
/* Returns NULL (undefined) for SEGUE_OK. Throws for any other status. */
napi_value sgnode_done(sgnode_frame *frame, segue_status status);
/* Makes the result of functions that send: true for SEGUE_OK, false for
 * SEGUE_E_WOULD_BLOCK, and an exception for any other status. */
napi_value sgnode_sent(sgnode_frame *frame, segue_status status);

/* ---- options ---- */

/* Clears the struct and fills it from an object, undefined or null. Returns false with an
 * exception on failure. The texts and lists in the struct live until the call ends. */
bool sgnode_options(sgnode_frame *frame, napi_value object, option_shape which,
                    void *target);
/* Makes an object with the name of each options struct and an array of the names of its
 * members. */
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
void sgnode_on_client_open(void *user, uint64_t client, const char *principal,
                           const char *json, size_t len);
void sgnode_on_client_closed(void *user, uint64_t client);
void sgnode_on_open(void *user, segue_session *session);
void sgnode_on_closed(void *user, segue_session *session, const segue_error *error);
void sgnode_on_reconnect(void *user, segue_session *session, int32_t attempt,
                         int64_t delay_ms, const char *reason);
void sgnode_on_notification(void *user, segue_session *session, const char *method,
                            const char *params, size_t len);
void sgnode_on_stderr(void *user, const char *text, size_t len);
/* Appends a STDERR event without a line, and frees the user. */
void sgnode_on_stderr_end(void *user);
void sgnode_on_authorize(void *user, const char *url, const char *state);

/* The indexes in sgnode_user.hooks. The callback table decides which hook an index means.
 * 0: principal, onHeaders, onBearer or onAssertion. 1: validate or onLoad. 2: onSave. */
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

/* An accessor that copies a text into buf and sets *len. If the buffer is too small,
 * sgnode_read_text calls the accessor again with a larger buffer. */
typedef segue_status (*sgnode_read_fn)(void *handle, char *buf, size_t *len);
segue_status sgnode_read_text(napi_env env, void *handle, sgnode_read_fn read,
                              napi_value *text);
segue_status sgnode_read_token(void *request, char *buf, size_t *len);

/* Makes the Wire, through which JavaScript code of a custom transport calls the
 * library, for the transport's first event TRANSPORT_START. */
napi_value sgnode_wire_show(const sgnode_user *user);

#endif
