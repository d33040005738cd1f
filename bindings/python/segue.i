/* segue._segue: the functions of the headers for Python, one to one, made by SWIG (4.1 or
 * newer).
 *
 * SWIG reads the functions from the headers themselves. The shim has the functions that a
 * typemap cannot convert. Functions that take options or callbacks are ignored below, and
 * SWIG wraps sgpy_X under the name X instead. Functions that run for each message are in
 * fast.c, which adds them to the module.
 *
 * Segments and errors are values in Python: segment_X and error_X are the attributes of
 * Segment and the parts of an exception. A test compares the module with core/api/api.def
 * and with _segue.pyi. */
%module _segue

%{
#include "shim.h"
%}

/* SWIG puts this code into the function that initialises the module. The function returns
 * a status from SWIG 4.3 on, and the module before. */
%init %{
#if SWIG_VERSION >= 0x040300
    if (sgpy_init(m) < 0)
        return -1;
#else
    if (sgpy_init(m) < 0)
        return NULL;
#endif
%}

%feature("kwargs");

/* ---- results ---- */

%typemap(out) segue_status {
    if ($1 != SEGUE_OK) {
        sgpy_raise($1);
        SWIG_fail;
    }
    $result = Py_NewRef(Py_None);
}
%typemap(in, numinputs=0) segue_error **error "$1 = sgpy_error_slot();"
%typemap(argout) segue_error **error ""
%typemap(out) const char * "$result = sgpy_string($1);"
%typemap(out) int32_t segue_call_has_scope "$result = PyBool_FromLong($1);"
%typemap(out) int32_t "$result = PyLong_FromLong($1);"
%typemap(out) PyObject * "$result = $1;"

/* ---- handles ---- */

%define SGPY_HANDLE(TYPE, KIND)
%typemap(in) TYPE *, const TYPE * {
    $1 = sgpy_unwrap($input, KIND);
    if (!$1)
        SWIG_fail;
}
%typemap(in, numinputs=0) TYPE **out (TYPE *made) "made = NULL; $1 = &made;"
/* A new handle belongs to the runtime of the handle in the first argument. */
%typemap(argout) TYPE **out
    "$result = sgpy_give($result, sgpy_wrap(KIND, *$1, sgpy_host_of(obj0)));"
%enddef

SGPY_HANDLE(segue_runtime, SGPY_RUNTIME)
SGPY_HANDLE(segue_transport, SGPY_TRANSPORT)
SGPY_HANDLE(segue_server, SGPY_SERVER)
SGPY_HANDLE(segue_listener, SGPY_LISTENER)
SGPY_HANDLE(segue_exchange, SGPY_EXCHANGE)
SGPY_HANDLE(segue_bearer, SGPY_BEARER)
SGPY_HANDLE(segue_call, SGPY_CALL)
SGPY_HANDLE(segue_session, SGPY_SESSION)
SGPY_HANDLE(segue_request, SGPY_REQUEST)
SGPY_HANDLE(segue_task, SGPY_TASK)
SGPY_HANDLE(segue_content, SGPY_CONTENT)

%typemap(in) const segue_content *content {
    $1 = NULL;
    if ($input != Py_None && !($1 = sgpy_unwrap($input, SGPY_CONTENT)))
        SWIG_fail;
}

/* ---- text from Python ---- */

%define SGPY_NAME(NAME, OPTIONAL)
%typemap(in) const char *NAME {
    if (!sgpy_name($input, OPTIONAL, (const char **)&$1))
        SWIG_fail;
}
%enddef

SGPY_NAME(name, false)
SGPY_NAME(key, false)
SGPY_NAME(uri, false)
SGPY_NAME(type, false)
SGPY_NAME(scope, false)
SGPY_NAME(level, false)
SGPY_NAME(trace_parent, false)
SGPY_NAME(method, false)
SGPY_NAME(task_id, false)
SGPY_NAME(token, false)
SGPY_NAME(principal, false)
SGPY_NAME(redirect_url, false)
SGPY_NAME(value, true)
SGPY_NAME(mime_type, true)
SGPY_NAME(role, true)
SGPY_NAME(scopes, true)
SGPY_NAME(reason, true)
SGPY_NAME(message, true)

%define SGPY_VIEW(TYPE, NAME, OPTIONAL)
%typemap(in) (TYPE *NAME, size_t len) {
    const char *view;
    size_t size;
    if (!sgpy_view($input, OPTIONAL, &view, &size))
        SWIG_fail;
    $1 = (void *)view;
    $2 = size;
}
%enddef

SGPY_VIEW(const char, json, false)
SGPY_VIEW(const char, text, false)
SGPY_VIEW(const void, data, false)
SGPY_VIEW(const char, data, true)
SGPY_VIEW(const char, params, true)

%typemap(in) int32_t is_error {
    int truth = PyObject_IsTrue($input);
    if (truth < 0)
        SWIG_fail;
    $1 = truth;
}

/* ---- text and numbers to Python ---- */

%typemap(in, numinputs=0) size_t *len (size_t size) "size = 0; $1 = &size;"
%typemap(in, numinputs=0) (const char **json, size_t *len)
    (const char *view, size_t size)
    "view = NULL; size = 0; $1 = (void *)&view; $2 = &size;"
%typemap(in, numinputs=0) (const char **text, size_t *len)
    (const char *view, size_t size)
    "view = NULL; size = 0; $1 = (void *)&view; $2 = &size;"
%typemap(argout) (const char **json, size_t *len)
    "$result = sgpy_give($result, sgpy_bytes(*$1, *$2));"
%typemap(argout) (const char **text, size_t *len)
    "$result = sgpy_give($result, sgpy_text(*$1, *$2));"
/* The value of a header may be no UTF-8. */
%typemap(in, numinputs=0) (const char **value, size_t *len)
    (const char *view, size_t size)
    "view = NULL; size = 0; $1 = (void *)&view; $2 = &size;"
%typemap(argout) (const char **value, size_t *len)
    "$result = sgpy_give($result, sgpy_bytes(*$1, *$2));"
%typemap(in, numinputs=0) (const char **name, const char **value, size_t *len)
    (const char *title, const char *view, size_t size)
    "title = view = NULL; size = 0; $1 = (void *)&title; $2 = (void *)&view; $3 = &size;"
%typemap(argout) (const char **name, const char **value, size_t *len)
    "$result = sgpy_give($result, sgpy_header(*$1, *$2, *$3));"
%typemap(in, numinputs=0) int64_t *value (int64_t number) "number = 0; $1 = &number;"
%typemap(argout) int64_t *value
    "$result = sgpy_give($result, PyLong_FromLongLong(*$1));"
%typemap(in, numinputs=0) int32_t *fd (int32_t number) "number = -1; $1 = &number;"
%typemap(argout) int32_t *fd "$result = sgpy_give($result, PyLong_FromLong(*$1));"
%typemap(in, numinputs=0) (uint64_t *last_segment, const void **data, size_t *len)
    (uint64_t last, const void *view, size_t size)
    "last = 0; view = NULL; size = 0; $1 = &last; $2 = (void *)&view; $3 = &size;"
%typemap(argout) (uint64_t *last_segment, const void **data, size_t *len)
    "$result = sgpy_give($result, sgpy_resumed(*$1, *$2, *$3));"

/* segue_call_params and segue_bearer_token return a text and set the length of the
 * text. */
%typemap(out) const char *segue_call_params "$result = sgpy_bytes($1, size2);"
%typemap(out) const char *segue_bearer_token "$result = sgpy_text($1, size2);"

/* The headers and the peer of a transport identify a caller. Different texts must become
 * different strings, so invalid UTF-8 is refused. */
%typemap(out) const char *segue_transport_header "$result = sgpy_exact($1);"
%typemap(out) const char *segue_transport_peer "$result = sgpy_exact($1);"

/* FUNCTION returns None for a value that is missing (SEGUE_E_NOT_FOUND). */
%define SGPY_ABSENT_IS_NONE(FUNCTION)
%typemap(out) segue_status FUNCTION {
    if ($1 == SEGUE_E_NOT_FOUND)
        return Py_NewRef(Py_None);
    if ($1 != SEGUE_OK) {
        sgpy_raise($1);
        SWIG_fail;
    }
    $result = NULL;
}
%enddef
SGPY_ABSENT_IS_NONE(segue_call_meta)
SGPY_ABSENT_IS_NONE(segue_call_header)
SGPY_ABSENT_IS_NONE(segue_call_header_at)
SGPY_ABSENT_IS_NONE(segue_call_argument)
SGPY_ABSENT_IS_NONE(segue_call_argument_text)
SGPY_ABSENT_IS_NONE(segue_call_argument_int)
SGPY_ABSENT_IS_NONE(segue_call_resumed)

/* For a function that sends: the Python function returns whether there was room. */
%define SGPY_SENDS(FUNCTION)
%typemap(out) segue_status FUNCTION {
    $result = sgpy_sent($1);
    if (!$result)
        SWIG_fail;
}
%enddef
SGPY_SENDS(segue_call_send)
SGPY_SENDS(segue_call_replace)
SGPY_SENDS(segue_call_set_field)
SGPY_SENDS(segue_call_set_status)
SGPY_SENDS(segue_call_checkpoint)

/* ---- functions that the shim wraps ---- */

%define SGPY_SHIM(NAME)
%ignore segue_ ## NAME;
%rename(NAME) sgpy_ ## NAME;
%enddef

SGPY_SHIM(runtime_new)
SGPY_SHIM(runtime_observe)
SGPY_SHIM(runtime_run)
SGPY_SHIM(runtime_free)
SGPY_SHIM(transport_pair)
SGPY_SHIM(transport_spawn)
SGPY_SHIM(transport_http)
SGPY_SHIM(transport_set_oauth)
SGPY_SHIM(transport_custom)
SGPY_SHIM(transport_feed)
SGPY_SHIM(transport_writable)
SGPY_SHIM(transport_closed)
SGPY_SHIM(store_memory)
SGPY_SHIM(store_sqlite)
SGPY_SHIM(store_redis)
SGPY_SHIM(store_postgres)
SGPY_SHIM(store_custom)
SGPY_SHIM(server_new)
SGPY_SHIM(server_add)
SGPY_SHIM(item_check)
SGPY_SHIM(server_check)
SGPY_SHIM(server_watch_clients)
SGPY_SHIM(server_attach)
SGPY_SHIM(server_listen)
SGPY_SHIM(listener_open)
SGPY_SHIM(exchange_feed)
SGPY_SHIM(server_stats)
SGPY_SHIM(server_metrics)
SGPY_SHIM(call_context)
SGPY_SHIM(call_trace_parent)
SGPY_SHIM(call_watch)
SGPY_SHIM(call_set_completion)
SGPY_SHIM(call_require_input)
SGPY_SHIM(session_open)
SGPY_SHIM(session_peer)
SGPY_SHIM(session_take_input)
SGPY_SHIM(request_resume)
SGPY_SHIM(request_token)
SGPY_SHIM(token_era)
SGPY_SHIM(request_meta)
SGPY_SHIM(task_get)
SGPY_SHIM(task_watch)
SGPY_SHIM(task_cancel)
%rename(runtime_side_fd) sgpy_runtime_side_fd;
%rename(transport_took) sgpy_transport_took;
%rename(store_serve) sgpy_store_serve;
%rename(store_wake) sgpy_store_wake;
%rename(set_error_factory) sgpy_set_error_factory;
%rename(set_block_decoder) sgpy_set_block_decoder;
%rename(live_handles) sgpy_live_handles;
%rename(allocated) sgb_allocated;
%rename(option_names) sgpy_option_names;

PyObject *sgpy_runtime_new(PyObject *options = Py_None, PyObject *log = Py_None,
                           bool track = false);
PyObject *sgpy_runtime_observe(PyObject *runtime, PyObject *handler,
                               PyObject *options = Py_None);
PyObject *sgpy_runtime_run(PyObject *runtime);
PyObject *sgpy_runtime_side_fd(PyObject *runtime);
PyObject *sgpy_runtime_free(PyObject *runtime);
PyObject *sgpy_transport_pair(PyObject *runtime);
PyObject *sgpy_transport_spawn(PyObject *runtime, PyObject *options,
                               PyObject *handler = Py_None);
PyObject *sgpy_transport_http(PyObject *runtime, PyObject *url,
                              PyObject *options = Py_None,
                              PyObject *on_headers = Py_None);
PyObject *sgpy_transport_set_oauth(PyObject *transport, PyObject *options,
                                   PyObject *handler = Py_None,
                                   PyObject *on_assertion = Py_None,
                                   PyObject *on_load = Py_None,
                                   PyObject *on_save = Py_None);
PyObject *sgpy_transport_custom(PyObject *runtime, PyObject *handler,
                                bool reopen = false);
PyObject *sgpy_transport_feed(PyObject *wire, PyObject *data);
PyObject *sgpy_transport_took(PyObject *wire, int64_t count);
PyObject *sgpy_transport_writable(PyObject *wire);
PyObject *sgpy_transport_closed(PyObject *wire);
PyObject *sgpy_store_memory(PyObject *options = Py_None);
PyObject *sgpy_store_sqlite(PyObject *path, PyObject *options = Py_None);
PyObject *sgpy_store_redis(PyObject *url, PyObject *options = Py_None);
PyObject *sgpy_store_postgres(PyObject *url, PyObject *options = Py_None);
PyObject *sgpy_store_custom(PyObject *store, PyObject *options = Py_None);
PyObject *sgpy_store_serve(PyObject *shelf);
PyObject *sgpy_store_wake(PyObject *shelf);
PyObject *sgpy_server_new(PyObject *runtime, PyObject *options = Py_None,
                          PyObject *handler = Py_None, PyObject *principal = Py_None,
                          PyObject *validate = Py_None);
PyObject *sgpy_server_add(PyObject *server, int item, PyObject *json, PyObject *options,
                          PyObject *handler, bool completion = false);
PyObject *sgpy_server_check(PyObject *options);
PyObject *sgpy_item_check(int item, PyObject *json, PyObject *options);
PyObject *sgpy_server_watch_clients(PyObject *server, PyObject *handler);
PyObject *sgpy_server_attach(PyObject *server, PyObject *transport);
PyObject *sgpy_server_listen(PyObject *server, PyObject *options = Py_None,
                             PyObject *bearer = Py_None, PyObject *on_bearer = Py_None);
PyObject *sgpy_listener_open(PyObject *server, PyObject *options = Py_None,
                             PyObject *bearer = Py_None, PyObject *on_bearer = Py_None);
PyObject *sgpy_exchange_feed(PyObject *exchange, PyObject *data);
PyObject *sgpy_server_stats(PyObject *server);
PyObject *sgpy_server_metrics(PyObject *server);
PyObject *sgpy_call_context(PyObject *call);
PyObject *sgpy_call_trace_parent(PyObject *call);
PyObject *sgpy_call_watch(PyObject *call, PyObject *handler);
PyObject *sgpy_call_require_input(PyObject *call, PyObject *key, PyObject *method,
                                  PyObject *params, PyObject *handler);
PyObject *sgpy_call_set_completion(PyObject *call, PyObject *values,
                                   long long total = -1, bool has_more = false);
PyObject *sgpy_session_open(PyObject *runtime, PyObject *transport,
                            PyObject *options = Py_None, PyObject *handler = Py_None,
                            int events = -1, PyObject *validate = Py_None);
PyObject *sgpy_session_peer(PyObject *session);
PyObject *sgpy_session_take_input(PyObject *session, PyObject *handler, int events = -1);
PyObject *sgpy_request_resume(PyObject *session, PyObject *token, PyObject *options,
                              PyObject *handler, int events = -1);
PyObject *sgpy_request_token(PyObject *request);
PyObject *sgpy_token_era(PyObject *runtime, const char *token);
PyObject *sgpy_request_meta(PyObject *request, PyObject *key);
PyObject *sgpy_task_get(PyObject *task, PyObject *handler, int events = -1);
PyObject *sgpy_task_watch(PyObject *task, PyObject *options, PyObject *handler,
                          int events = -1);
PyObject *sgpy_task_cancel(PyObject *task, PyObject *handler, int events = -1);
PyObject *sgpy_set_error_factory(PyObject *factory);
PyObject *sgpy_set_block_decoder(PyObject *callable);
PyObject *sgpy_live_handles(void);
long long sgb_allocated(void);
PyObject *sgpy_option_names(void);

/* ---- functions of fast.c, values, and types ---- */

%ignore segue_runtime_dispatch;
%ignore segue_event_json; /* events come as lines of JSON */
%ignore segue_runtime_cork;
%ignore segue_runtime_uncork;
%ignore segue_call_hold_turn; /* only the shim calls this function */
%ignore segue_call_fail_with;
%ignore segue_client_updated; /* this function and the next two are for gateways */
%ignore segue_client_log;
%ignore segue_client_call;
%ignore segue_timer_start;
%ignore segue_timer_cancel;
%ignore segue_call_send_text;
%ignore segue_call_extend_text;
%ignore segue_call_is_cancelled;
%ignore segue_call_runtime; /* the host of a handle knows its runtime */
%ignore segue_session_runtime;
%ignore segue_status_text;
%ignore segue_store_list; /* for the command segue store, as the next eleven */
%ignore segue_store_show;
%ignore segue_store_entries;
%ignore segue_store_command;
%ignore segue_store_rerun;
%ignore segue_store_remove;
%ignore segue_store_export;
%ignore segue_store_importer_new;
%ignore segue_store_importer_add;
%ignore segue_store_importer_close;
%ignore segue_store_read_stats;
%ignore segue_store_compact;
%ignore segue_request_take_result; /* for the Node addon */
%ignore segue_request_start;
%ignore segue_request_grant;
%ignore segue_request_cancel;
%rename("$ignore", %$isclass) "";
%rename("%(strip:[SEGUE_])s", %$isenumitem) "";
%rename("$ignore", regextarget=1, %$isconstant) "^SEGUE_\w+_(INIT|SIZE|TO_NUL)$";
/* ignored, because store.py defines the constants SEGUE_STORE_... */
%rename("$ignore", regextarget=1, %$isenumitem) "^SEGUE_STORE_";
%rename("%(strip:[segue_])s", %$isfunction) "";
%rename("$ignore", regextarget=1, %$isfunction) "^segue_[a-z]+_free$";
%rename("$ignore", regextarget=1, %$isfunction) "^segue_(segment|error)_";

/* ---- the headers ---- */

%typemap(default) int64_t retry_ms, int64_t ttl_ms, int64_t expires_ms "$1 = 0;"
%typemap(default) double total "$1 = 0;"
%typemap(default) const segue_content *content "$1 = NULL;"
%typemap(default) const char *message, const char *scopes, const char *reason "$1 = NULL;"
%typemap(default) (const char *data, size_t len) "$1 = NULL; $2 = 0;"
%typemap(default) (const char *params, size_t len) "$1 = NULL; $2 = 0;"

%include <stdint.i>
%define SEGUE_API
%enddef
%include "segue/segue.h"
%include "segue/segue_auth.h"
%include "segue/segue_ext.h"
