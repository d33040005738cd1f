/* The members that a program can set by name in each options struct, with a dict (Python)
 * or an object (Node). The options.c of each binding includes this file once. Callbacks
 * are not listed. Tests compare the tables with the headers, so that no member is
 * missing. */
#ifndef SEGUE_BINDINGS_OPTION_MEMBERS_H
#define SEGUE_BINDINGS_OPTION_MEMBERS_H

#include <segue/segue_auth.h>
#include <stddef.h>

#include "option_shapes.h"

typedef enum member_kind {
    TEXT,  /* const char * */
    INT32, /* int32_t or bool */
    INT64,
    UINT32,
    BYTES, /* const void *; the member NAME_len has the length */
    LIST,  /* const char *const *; NULL ends the list */
    STORE, /* a handle */
    SERVER
} member_kind;

typedef struct option {
    const char *name;
    member_kind kind;
    size_t offset;
    /* only for BYTES: offset of the member NAME_len, which has the length */
    size_t length;
} option;

#define M(type, name, kind)                                                              \
    {                                                                                    \
#name, kind, offsetof(type, name), 0                                             \
    }
#define M_BYTES(type, name)                                                              \
    {                                                                                    \
#name, BYTES, offsetof(type, name), offsetof(type, name##_len)                   \
    }
#define END                                                                              \
    {                                                                                    \
        NULL, TEXT, 0, 0                                                                 \
    }

#define T segue_runtime_options
static const option runtime_members[] = {M(T, log_level, INT32),
                                         M(T, max_message_bytes, INT64),
                                         M(T, max_depth, INT32),
                                         M(T, max_queue_bytes, INT64),
                                         M(T, lend_input, INT32),
                                         M(T, camel_case, INT32),
                                         END};
#undef T

#define T segue_observer_options
static const option observer_members[] = {M(T, level, INT32),
                                          M(T, max_argument_bytes, INT32), END};
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
                                        M(T, store, STORE),
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
                                        M(T, draft_ways, UINT32),
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
                                        M(T, first_turn_ms, INT64),
                                        M(T, log_level, TEXT),
                                        M(T, tool_wait_ms, INT64),
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
                                      M(T, visibility, INT32),
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
                                         M(T, reconnect_timeout_ms, INT64),
                                         M(T, max_result_bytes, INT64),
                                         M(T, max_requests, INT32),
                                         M(T, no_idempotency, INT32),
                                         M(T, no_tasks, INT32),
                                         M(T, fill_defaults, INT32),
                                         M(T, cache_bytes, INT64),
                                         M(T, dialects_off, UINT32),
                                         M(T, dialects_on, UINT32),
                                         M(T, host, SERVER),
                                         M(T, response_modes, UINT32),
                                         END};
#undef T

#define T segue_request_options
static const option request_members[] = {
    M(T, timeout_ms, INT64),      M(T, on_timeout, INT32), M(T, credit, INT64),
    M(T, discard, INT32),         M(T, log_level, TEXT),   M(T, idempotency_key, TEXT),
    M(T, ttl_ms, INT64),          M(T, unordered, INT32),  M(T, no_cache, INT32),
    M(T, response_modes, UINT32), M(T, seen, INT64),       M(T, no_idempotency, INT32),
    M(T, capabilities, TEXT),     M(T, no_task, INT32),    END};
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
                                      M(T, http_sse, INT32),
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
                                        M(T, max_replay_bytes, INT64),
                                        M(T, idle_timeout_ms, INT64),
                                        M(T, header_timeout_ms, INT64),
                                        M(T, body_timeout_ms, INT64),
                                        M(T, write_timeout_ms, INT64),
                                        M(T, keepalive_ms, INT64),
                                        M(T, stream_after_ms, INT64),
                                        M(T, drain_ms, INT64),
                                        M(T, ready_path, TEXT),
                                        M(T, live_path, TEXT),
                                        M(T, lenient_headers, INT32),
                                        M(T, tokens_file, TEXT),
                                        M(T, idle_drain_ms, INT64),
                                        M(T, metrics_path, TEXT),
                                        M(T, board_path, TEXT),
                                        M(T, board_read_only, INT32),
                                        M(T, board_redact, INT32),
                                        M(T, board_token, TEXT),
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
                                       M(T, allow_private_addresses, INT32),
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
    S(OPTIONS_RUNTIME, segue_runtime_options, runtime_members),
    S(OPTIONS_OBSERVER, segue_observer_options, observer_members),
    S(OPTIONS_SPAWN, segue_spawn_options, spawn_members),
    S(OPTIONS_STORE, segue_store_options, store_members),
    S(OPTIONS_SERVER, segue_server_options, server_members),
    S(OPTIONS_ITEM, segue_item_options, item_members),
    S(OPTIONS_SESSION, segue_session_options, session_members),
    S(OPTIONS_REQUEST, segue_request_options, request_members),
    S(OPTIONS_HTTP, segue_http_options, http_members),
    S(OPTIONS_LISTEN, segue_listen_options, listen_members),
    S(OPTIONS_OAUTH, segue_oauth_options, oauth_members),
    S(OPTIONS_BEARER, segue_bearer_options, bearer_members),
};

#undef M
#undef M_BYTES
#undef END
#undef S

#endif
