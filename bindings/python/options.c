/* Dicts as option structs. A row of a table is one member of a struct: its name is the
 * key. What is missing or None stays zero, the default; a key that is no member is a
 * TypeError. Callbacks are not set from dicts. Strings are views of the dict's values,
 * good for the one call they are filled for; lists are copied, to be freed after it.
 *
 * A test compares the tables with segue.h, so that no member is forgotten. */
#include "shim.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum member_kind {
    TEXT,  /* const char * */
    INT32, /* also a bool */
    INT64,
    UINT32,
    BYTES, /* const void *, and NAME_len */
    LIST,  /* const char *const *, ends with NULL */
    HANDLE /* a Server or a Store */
} member_kind;

typedef struct option {
    const char *name;
    member_kind kind;
    size_t offset;
    size_t extra; /* BYTES: offset of the length. HANDLE: the kind */
} option;

#define M(type, name, kind)                                                              \
    {                                                                                    \
#name, kind, offsetof(type, name), 0                                             \
    }
#define M_BYTES(type, name)                                                              \
    {                                                                                    \
#name, BYTES, offsetof(type, name), offsetof(type, name##_len)                   \
    }
#define M_HANDLE(type, name, of)                                                         \
    {                                                                                    \
#name, HANDLE, offsetof(type, name), of                                          \
    }
#define END                                                                              \
    {                                                                                    \
        NULL, TEXT, 0, 0                                                                 \
    }

#define T segue_runtime_options
static const option runtime_members[] = {
    M(T, log_level, INT32), M(T, max_message_bytes, INT64), M(T, max_depth, INT32),
    M(T, max_queue_bytes, INT64), END};
#undef T

#define T segue_spawn_options
static const option spawn_members[] = {M(T, argv, LIST),
                                       M(T, env, LIST),
                                       M(T, working_dir, TEXT),
                                       M(T, restart, INT32),
                                       M(T, close_timeout_ms, INT64),
                                       M(T, terminate_timeout_ms, INT64),
                                       END};
#undef T

#define T segue_store_options
static const option store_members[] = {M(T, durability, INT32),
                                       M(T, max_bytes, INT64),
                                       M(T, busy_timeout_ms, INT64),
                                       M(T, timeout_ms, INT64),
                                       M(T, lease_ms, INT64),
                                       M(T, max_principal_operations, INT64),
                                       M(T, max_principal_bytes, INT64),
                                       END};
#undef T

#define T segue_server_options
static const option server_members[] = {M(T, name, TEXT),
                                        M(T, version, TEXT),
                                        M(T, title, TEXT),
                                        M(T, instructions, TEXT),
                                        M_HANDLE(T, store, SGPY_STORE),
                                        M(T, page_size, INT32),
                                        M(T, max_result_bytes, INT64),
                                        M(T, max_log_bytes, INT64),
                                        M(T, max_segments, INT64),
                                        M(T, max_inputs, INT32),
                                        M(T, max_tasks, INT32),
                                        M(T, max_requests, INT32),
                                        M(T, max_streams, INT32),
                                        M(T, max_ttl_ms, INT64),
                                        M(T, grace_ms, INT64),
                                        M(T, lookups_per_second, INT32),
                                        M(T, input_wait_ms, INT64),
                                        M(T, dialects_on, UINT32),
                                        M(T, dialects_off, UINT32),
                                        M(T, fetches_per_second, INT32),
                                        M(T, list_ttl_ms, INT64),
                                        M(T, list_scope, INT32),
                                        M_BYTES(T, seal_key),
                                        M_BYTES(T, seal_key_before),
                                        M(T, question_ttl_ms, INT64),
                                        M(T, max_events, INT64),
                                        M(T, max_event_bytes, INT64),
                                        M(T, event_ttl_ms, INT64),
                                        M(T, max_principal_requests, INT64),
                                        M(T, max_principal_bytes, INT64),
                                        M(T, max_server_requests, INT64),
                                        M(T, max_server_bytes, INT64),
                                        END};
#undef T

#define T segue_item_options
static const option item_members[] = {M(T, flags, INT32),
                                      M(T, task, INT32),
                                      M(T, ttl_ms, INT64),
                                      M(T, poll_ms, INT64),
                                      M(T, promote_after_ms, INT64),
                                      M(T, read_ttl_ms, INT64),
                                      M(T, read_scope, INT32),
                                      M(T, scopes, TEXT),
                                      M(T, resume_min_wait_ms, INT64),
                                      M(T, resume_max_wait_ms, INT64),
                                      END};
#undef T

#define T segue_session_options
static const option session_members[] = {M(T, name, TEXT),
                                         M(T, version, TEXT),
                                         M(T, capabilities, TEXT),
                                         M(T, era, INT32),
                                         M(T, probe_timeout_ms, INT64),
                                         M(T, request_timeout_ms, INT64),
                                         M(T, max_reconnects, INT32),
                                         M(T, first_attempts, INT32),
                                         M(T, max_result_bytes, INT64),
                                         M(T, max_requests, INT32),
                                         M(T, no_idempotency, INT32),
                                         M(T, no_tasks, INT32),
                                         M(T, fill_defaults, INT32),
                                         M(T, cache_bytes, INT64),
                                         M(T, dialects_off, UINT32),
                                         M(T, dialects_on, UINT32),
                                         M_HANDLE(T, host, SGPY_SERVER),
                                         END};
#undef T

#define T segue_request_options
static const option request_members[] = {
    M(T, timeout_ms, INT64), M(T, on_timeout, INT32),
    M(T, credit, INT64),     M(T, discard, INT32),
    M(T, log_level, TEXT),   M(T, idempotency_key, TEXT),
    M(T, ttl_ms, INT64),     M(T, unordered, INT32),
    M(T, no_cache, INT32),   END};
#undef T

#define T segue_http_options
static const option http_members[] = {M(T, ca_file, TEXT),
                                      M(T, cert_file, TEXT),
                                      M(T, key_file, TEXT),
                                      M(T, key_password, TEXT),
                                      M(T, proxy, TEXT),
                                      M(T, unix_socket, TEXT),
                                      M(T, insecure, INT32),
                                      M(T, http1, INT32),
                                      M(T, max_connections, INT32),
                                      M(T, connect_timeout_ms, INT64),
                                      M(T, silence_timeout_ms, INT64),
                                      END};
#undef T

#define T segue_listen_options
static const option listen_members[] = {M(T, address, TEXT),
                                        M(T, port, INT32),
                                        M(T, reuse_port, INT32),
                                        M(T, path, TEXT),
                                        M(T, health_path, TEXT),
                                        M(T, cert_file, TEXT),
                                        M(T, key_file, TEXT),
                                        M(T, client_ca_file, TEXT),
                                        M(T, client_cert_required, INT32),
                                        M(T, hosts, TEXT),
                                        M(T, origins, TEXT),
                                        M(T, cors, INT32),
                                        M(T, unauthenticated_tasks, INT32),
                                        M(T, max_header_bytes, INT64),
                                        M(T, max_connections, INT32),
                                        M(T, max_streams, INT32),
                                        M(T, max_sessions, INT32),
                                        M(T, session_idle_ms, INT64),
                                        M(T, idle_timeout_ms, INT64),
                                        M(T, header_timeout_ms, INT64),
                                        M(T, body_timeout_ms, INT64),
                                        M(T, write_timeout_ms, INT64),
                                        M(T, keepalive_ms, INT64),
                                        M(T, stream_after_ms, INT64),
                                        M(T, drain_ms, INT64),
                                        END};
#undef T

#define T segue_oauth_options
static const option oauth_members[] = {M(T, grant, INT32),
                                       M(T, client_id, TEXT),
                                       M(T, client_secret, TEXT),
                                       M(T, private_key, TEXT),
                                       M(T, issuer, TEXT),
                                       M(T, client_metadata_url, TEXT),
                                       M(T, client_name, TEXT),
                                       M(T, redirect_uri, TEXT),
                                       M(T, scope, TEXT),
                                       M(T, auth_method, TEXT),
                                       M(T, no_registration, INT32),
                                       M(T, consent_timeout_ms, INT64),
                                       END};
#undef T

#define T segue_bearer_options
static const option bearer_members[] = {M(T, resource, TEXT),
                                        M(T, authorization_servers, TEXT),
                                        M(T, scopes_supported, TEXT),
                                        M(T, required_scopes, TEXT),
                                        M(T, implied_scopes, TEXT),
                                        M(T, resource_name, TEXT),
                                        M(T, documentation, TEXT),
                                        M(T, check_timeout_ms, INT64),
                                        M(T, issuer, TEXT),
                                        M(T, audience, TEXT),
                                        M(T, algorithms, TEXT),
                                        M(T, jwks, TEXT),
                                        M(T, jwks_file, TEXT),
                                        M(T, jwks_url, TEXT),
                                        M(T, ca_file, TEXT),
                                        M(T, access_tokens_only, INT32),
                                        M(T, leeway_ms, INT64),
                                        M(T, jwks_age_ms, INT64),
                                        M(T, jwks_refresh_ms, INT64),
                                        M(T, max_tokens, INT32),
                                        END};
#undef T

typedef struct option_struct {
    const char *name;
    size_t size;
    const option *members;
} option_struct;

#define S(which, type, members) [which] = {#type, sizeof(type), members}

static const option_struct shapes[] = {
    S(SEGUE_STRUCT_RUNTIME_OPTIONS, segue_runtime_options, runtime_members),
    S(SEGUE_STRUCT_SPAWN_OPTIONS, segue_spawn_options, spawn_members),
    S(SEGUE_STRUCT_STORE_OPTIONS, segue_store_options, store_members),
    S(SEGUE_STRUCT_SERVER_OPTIONS, segue_server_options, server_members),
    S(SEGUE_STRUCT_ITEM_OPTIONS, segue_item_options, item_members),
    S(SEGUE_STRUCT_SESSION_OPTIONS, segue_session_options, session_members),
    S(SEGUE_STRUCT_REQUEST_OPTIONS, segue_request_options, request_members),
    S(SEGUE_STRUCT_HTTP_OPTIONS, segue_http_options, http_members),
    S(SEGUE_STRUCT_LISTEN_OPTIONS, segue_listen_options, listen_members),
    S(SEGUE_STRUCT_OAUTH_OPTIONS, segue_oauth_options, oauth_members),
    S(SEGUE_STRUCT_BEARER_OPTIONS, segue_bearer_options, bearer_members),
};

/* ---- one member ---- */

static bool fill_list(sgpy_options *kept, const char *const **out, PyObject *value)
{
    PyObject *items = PySequence_Tuple(value);
    if (!items)
        return false;
    Py_ssize_t count = PyTuple_Size(items);
    if (kept->count >= SGPY_OPTION_LISTS) {
        Py_DECREF(items);
        PyErr_SetString(PyExc_ValueError, "too many lists");
        return false;
    }
    const char **texts = calloc((size_t)count + 1, sizeof *texts);
    kept->owned[kept->count] = items;
    kept->lists[kept->count++] = texts;
    if (!texts) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!sgpy_name(PyTuple_GetItem(items, i), false, &texts[i]))
            return false;
    *out = texts;
    return true;
}

static bool fill_number(void *place, member_kind kind, PyObject *value)
{
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return false;
    bool fits = kind == INT64 ||
                (kind == INT32 ? number == (int32_t)number : number == (uint32_t)number);
    if (!fits) {
        PyErr_SetString(PyExc_OverflowError, "the number is too large");
        return false;
    }
    if (kind == INT64)
        *(int64_t *)place = number;
    else if (kind == INT32)
        *(int32_t *)place = (int32_t)number;
    else
        *(uint32_t *)place = (uint32_t)number;
    return true;
}

static bool fill_member(sgpy_options *kept, const option *member, char *target,
                        PyObject *value)
{
    void *place = target + member->offset;
    switch (member->kind) {
    case TEXT:
        return sgpy_name(value, true, place);
    case BYTES:
        return sgpy_view(value, true, place, (size_t *)(void *)(target + member->extra));
    case LIST:
        return fill_list(kept, place, value);
    case HANDLE:
        *(void **)place = sgpy_unwrap(value, (sgpy_kind)member->extra);
        return *(void **)place != NULL;
    default:
        return fill_number(place, member->kind, value);
    }
}

/* ---- a whole dict ---- */

static const option *find_member(const option *members, PyObject *key)
{
    for (; PyUnicode_Check(key) && members->name; members++)
        if (PyUnicode_CompareWithASCIIString(key, members->name) == 0)
            return members;
    return NULL;
}

/* Says which option an exception is about. */
static void name_option(PyObject *key)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (type == PyExc_TypeError || type == PyExc_OverflowError ||
        type == PyExc_ValueError) {
        PyErr_Format(type, "%U: %S", key, value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return;
    }
    PyErr_Restore(type, value, trace);
}

bool sgpy_options_fill(sgpy_options *kept, int32_t which, void *target, PyObject *dict)
{
    const option_struct *shape = &shapes[which];
    PyObject *key, *value;
    Py_ssize_t place = 0;
    memset(kept, 0, sizeof *kept);
    segue_struct_init(target, shape->size, which);
    if (dict == Py_None)
        return true;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "a dict of options is needed, not %R",
                     (PyObject *)Py_TYPE(dict));
        return false;
    }
    while (PyDict_Next(dict, &place, &key, &value)) {
        const option *member = find_member(shape->members, key);
        if (!member) {
            PyErr_Format(PyExc_TypeError, "%s has no %R", shape->name, key);
        } else if (value == Py_None || fill_member(kept, member, target, value)) {
            continue;
        } else {
            name_option(key);
        }
        sgpy_options_free(kept);
        return false;
    }
    return true;
}

void sgpy_options_free(sgpy_options *kept)
{
    for (int i = 0; i < kept->count; i++) {
        Py_XDECREF(kept->owned[i]);
        free(kept->lists[i]);
    }
    kept->count = 0;
}

PyObject *sgpy_option_names(void)
{
    PyObject *all = PyDict_New();
    for (size_t i = 0; all && i < sizeof shapes / sizeof *shapes; i++) {
        if (!shapes[i].name)
            continue;
        PyObject *names = PyList_New(0);
        const option *member = shapes[i].members;
        for (; names && member->name; member++) {
            PyObject *name = PyUnicode_FromString(member->name);
            if (!name || PyList_Append(names, name) < 0)
                Py_CLEAR(names);
            Py_XDECREF(name);
        }
        if (!names || PyDict_SetItemString(all, shapes[i].name, names) < 0)
            Py_CLEAR(all);
        Py_XDECREF(names);
    }
    return all;
}
