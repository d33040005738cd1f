/* Objects as option structs. A row of a table is one member of a struct: its name in
 * camelCase is the key. What is missing, undefined or null stays zero, the default; a key
 * that is no member is a TypeError, so that a misspelt one is not silently without
 * effect. Callbacks are not set from objects. Texts and lists are copies that live until
 * the call ends, as getters may run while an object is read.
 *
 * A test compares the tables with segue.h, so that no member is forgotten. */
#include "addon.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef enum member_kind {
    TEXT,  /* const char * */
    INT32, /* also a boolean */
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
                                        M_HANDLE(T, store, SGNODE_STORE),
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
                                         M_HANDLE(T, host, SGNODE_SERVER),
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

static bool fill_bytes(sgnode_frame *frame, char *target, const option *member,
                       napi_value value)
{
    const char *bytes;
    size_t len;
    if (!sgnode_view(frame, value, false, &bytes, &len))
        return false;
    void *copy = sgnode_scratch(frame, len + 1);
    if (!copy)
        return false;
    memcpy(copy, bytes, len);
    *(const void **)(void *)(target + member->offset) = copy;
    *(size_t *)(void *)(target + member->extra) = len;
    return true;
}

static bool fill_number(sgnode_frame *frame, void *place, member_kind kind,
                        napi_value value)
{
    int64_t number;
    if (kind == INT32)
        return sgnode_int32(frame, value, 0, place);
    if (!sgnode_int64(frame, value, 0, &number))
        return false;
    if (kind == INT64) {
        *(int64_t *)place = number;
    } else if (number >= 0 && number <= UINT32_MAX) {
        *(uint32_t *)place = (uint32_t)number;
    } else {
        napi_throw_range_error(frame->env, "ERR_OUT_OF_RANGE",
                               "a number of 32 bits, not negative, is needed");
        return false;
    }
    return true;
}

static bool fill_member(sgnode_frame *frame, const option *member, char *target,
                        napi_value value)
{
    size_t count;
    void *place = target + member->offset;
    switch (member->kind) {
    case TEXT:
        return sgnode_name(frame, value, false, place);
    case BYTES:
        return fill_bytes(frame, target, member, value);
    case LIST:
        return sgnode_names(frame, value, place, &count);
    case HANDLE:
        *(void **)place = sgnode_unwrap(frame, value, (sgnode_kind)member->extra);
        return *(void **)place != NULL;
    default:
        return fill_number(frame, place, member->kind, value);
    }
}

/* ---- a whole object ---- */

/* The name of a member as JavaScript writes it: max_depth is maxDepth. */
static void make_camel(const char *name, char *camel, size_t size)
{
    size_t len = 0;
    for (; *name && len + 1 < size; name++) {
        if (*name == '_' && name[1])
            camel[len++] = (char)toupper((unsigned char)*++name);
        else
            camel[len++] = *name;
    }
    camel[len] = '\0';
}

static bool is_named(const char *name, const char *key)
{
    for (; *name; name++, key++) {
        if (*name == '_') {
            if (*key != toupper((unsigned char)*++name))
                return false;
        } else if (*key != *name) {
            return false;
        }
    }
    return !*key;
}

static const option *find_member(const option *members, const char *key)
{
    for (; members->name; members++)
        if (is_named(members->name, key))
            return members;
    return NULL;
}

/* Says which option an exception of ours is about. */
static void name_option(sgnode_frame *frame, const char *key)
{
    napi_value error, old, made;
    const char *text;
    size_t len;
    char message[256];
    if (napi_get_and_clear_last_exception(frame->env, &error) != napi_ok)
        return;
    if (napi_get_named_property(frame->env, error, "message", &old) == napi_ok &&
        sgnode_typeof(frame, old) == napi_string &&
        sgnode_view(frame, old, false, &text, &len)) {
        snprintf(message, sizeof message, "%s: %s", key, text);
        made = sgnode_string(frame->env, message);
        if (made)
            napi_set_named_property(frame->env, error, "message", made);
    }
    napi_throw(frame->env, error);
}

static void refuse_key(sgnode_frame *frame, const option_struct *shape, const char *key)
{
    char message[160];
    snprintf(message, sizeof message, "%s has no %.64s", shape->name, key);
    napi_throw_type_error(frame->env, "ERR_INVALID_ARG_VALUE", message);
}

static bool fill_key(sgnode_frame *frame, const option_struct *shape, char *target,
                     napi_value object, napi_value key)
{
    const char *name;
    napi_value value;
    if (!sgnode_name(frame, key, false, &name) ||
        napi_get_property(frame->env, object, key, &value) != napi_ok)
        return false;
    const option *member = find_member(shape->members, name);
    if (!member) {
        refuse_key(frame, shape, name);
        return false;
    }
    if (sgnode_is_none(frame, value) || fill_member(frame, member, target, value))
        return true;
    name_option(frame, name);
    return false;
}

bool sgnode_options(sgnode_frame *frame, napi_value object, int32_t which, void *target)
{
    const option_struct *shape = &shapes[which];
    napi_value keys, key;
    uint32_t count;
    segue_struct_init(target, shape->size, which);
    if (!object || sgnode_is_none(frame, object))
        return true;
    if (sgnode_typeof(frame, object) != napi_object) {
        sgnode_type_error(frame, "an object", shape->name);
        return false;
    }
    if (napi_get_all_property_names(frame->env, object, napi_key_own_only,
                                    napi_key_enumerable | napi_key_skip_symbols,
                                    napi_key_numbers_to_strings, &keys) != napi_ok ||
        napi_get_array_length(frame->env, keys, &count) != napi_ok)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (napi_get_element(frame->env, keys, i, &key) != napi_ok ||
            !fill_key(frame, shape, target, object, key))
            return false;
    return true;
}

static napi_value list_members(sgnode_frame *frame, const option *member)
{
    char camel[64];
    napi_value list;
    if (napi_create_array(frame->env, &list) != napi_ok)
        return NULL;
    for (uint32_t i = 0; member->name; member++, i++) {
        make_camel(member->name, camel, sizeof camel);
        napi_set_element(frame->env, list, i, sgnode_string(frame->env, camel));
    }
    return list;
}

napi_value sgnode_option_names(sgnode_frame *frame)
{
    napi_value all;
    if (napi_create_object(frame->env, &all) != napi_ok)
        return NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].name)
            napi_set_named_property(frame->env, all, shapes[i].name,
                                    list_members(frame, shapes[i].members));
    return all;
}
