/* Every function of the public API, driven by one table: each row of api.def needs a
 * probe here, or this file does not compile. A probe calls its function on a handle; all
 * other arguments are valid. NULL and foreign handles are refused. Inside a callback
 * exactly the functions are refused that the table names. The structs follow their size
 * rules. */
#include <segue/segue_ext.h>
#include <segue/segue_auth.h>
#include <segue/easy.h>

#include "support/test_mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* Objects that a probe needs beside its handle. */
static segue_runtime *runtime;
static segue_server *server;
static segue_session *session;
static segue_request *request;
static segue_task *task;
static segue_content *content;
static segue_call *call;
static segue_transport *transport; /* never attached */
static segue_listener *listener;

static void ignore_call(void *user, segue_call *c)
{
    (void)user;
    segue_call_free(c);
}

static void ignore_input(void *user, segue_call *c, segue_status status, const char *json,
                         size_t len)
{
    (void)user;
    (void)c;
    (void)status;
    (void)json;
    (void)len;
}

static void on_input(void *user, segue_request *r, const char *key, const char *method,
                     const char *params, size_t len)
{
    (void)user;
    (void)r;
    (void)key;
    (void)method;
    (void)params;
    (void)len;
}

static void ignore_time(void *user)
{
    (void)user;
}

static void start_custom(void *self, segue_transport *t)
{
    (void)self;
    (void)t;
}

static size_t send_custom(void *self, const char *bytes, size_t len)
{
    (void)self;
    (void)bytes;
    return len;
}

static void close_custom(void *self)
{
    (void)self;
}

static segue_transport_vtable custom_vtable(void)
{
    segue_transport_vtable vtable = SEGUE_TRANSPORT_VTABLE_INIT;
    vtable.start = start_custom;
    vtable.send = send_custom;
    vtable.close = close_custom;
    return vtable;
}

static segue_item_options item_options(void)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = ignore_call;
    return options;
}

static void end_listener(segue_listener *l)
{
    segue_listener_close(l);
    segue_listener_free(l);
}

/* ---- probes ---- */

/* The kind of a function's first parameter; NOTHING = no handle with a magic word. */
enum kind {
    NOTHING,
    RUNTIME,
    SERVER,
    SESSION,
    REQUEST,
    TASK,
    CONTENT,
    CALL,
    TRANSPORT,
    LISTENER,
    BEARER,
    TIMER,
    EXCHANGE
};

/* A probe of a function without a status returns INVALID when the call did nothing. */
#define PROBE(name, ...)                                                                 \
    static segue_status probe_##name(void *h)                                            \
    {                                                                                    \
        __VA_ARGS__                                                                      \
    }
#define STATUS(name, expr) PROBE(name, return expr;)
#define IGNORES(name, expr) PROBE(name, expr; return SEGUE_E_INVALID;)
#define EMPTY(name, expr) PROBE(name, return *(expr) ? SEGUE_OK : SEGUE_E_INVALID;)
#define GIVES(name, type, expr, gone)                                                    \
    PROBE(name, type *out = NULL; segue_status status = expr;                            \
          if (status == SEGUE_OK) gone; else assert_null(out); return status;)

STATUS(segue_version, ((void)h, *segue_version() ? SEGUE_E_INVALID : SEGUE_OK))
STATUS(segue_status_name, ((void)h, *segue_status_name(0) ? SEGUE_E_INVALID : SEGUE_OK))
STATUS(segue_status_text, ((void)h, *segue_status_text(0) ? SEGUE_E_INVALID : SEGUE_OK))
STATUS(segue_error_new, segue_error_new(SEGUE_E_IO, NULL, h))
EMPTY(segue_error_read, segue_error_read(h)->message)
GIVES(segue_error_copy, segue_error, segue_error_copy(h, &out), segue_error_free(out))
IGNORES(segue_error_free, segue_error_free(h))
STATUS(segue_runtime_new, segue_runtime_new(NULL, h, NULL))
STATUS(segue_runtime_run, segue_runtime_run(h))
STATUS(segue_runtime_start, segue_runtime_start(h))
PROBE(segue_runtime_fd, int32_t fd; return segue_runtime_fd(h, &fd);)
STATUS(segue_runtime_dispatch, segue_runtime_dispatch(h, 0, 1, NULL))
STATUS(segue_runtime_cork, segue_runtime_cork(h))
STATUS(segue_runtime_uncork, segue_runtime_uncork(h))
STATUS(segue_runtime_observe, segue_runtime_observe(h, NULL))
PROBE(segue_event_json, size_t len = 0; return segue_event_json(h, NULL, &len);)
PROBE(segue_timer_start, segue_timer *out = NULL;
      segue_status status = segue_timer_start(h, 0, ignore_time, NULL, NULL, &out);
      segue_timer_free(out); return status;)
STATUS(segue_timer_cancel, segue_timer_cancel(h))
IGNORES(segue_timer_free, segue_timer_free(h))
STATUS(segue_json_check, segue_json_check(h, "1", 1, NULL))
PROBE(segue_json_get, const char *value; size_t len;
      return segue_json_get(h, 2, "a", &value, &len);)
PROBE(segue_json_next, const char *value; size_t len, at = 0;
      return segue_json_next(h, 2, &at, NULL, NULL, &value, &len);)
PROBE(segue_json_text, size_t len = 0; return segue_json_text(h, 2, NULL, &len);)
PROBE(segue_json_int, int64_t number; return segue_json_int(h, 1, &number);)
PROBE(segue_json_number, double number; return segue_json_number(h, 1, &number);)
PROBE(segue_json_bool, int32_t is_true; return segue_json_bool(h, 1, &is_true);)
STATUS(segue_json_pairs, segue_json_pairs(h, "a=%d", 1))
STATUS(segue_result_is_error, segue_result_is_error(h, 0) ? SEGUE_OK : SEGUE_E_INVALID)
PROBE(segue_result_text, char *text; return segue_result_text(h, 2, &text);)
PROBE(segue_result_get, const char *value; size_t len;
      return segue_result_get(h, 2, "a", &value, &len);)
PROBE(segue_request_run, char *out = NULL;
      segue_status status = segue_request_run(h, "ping", NULL, 1, &out, NULL); free(out);
      return status;)
PROBE(segue_call_tool, char *out = NULL;
      segue_status status = segue_call_tool(h, "t", NULL, 1, &out, NULL); free(out);
      return status;)
STATUS(segue_call_printf, segue_call_printf(h, "%s", "x"))
STATUS(segue_call_send_lossy, segue_call_send_lossy(h, "x", 1, NULL, NULL))
STATUS(segue_call_runtime, segue_call_runtime(h) ? SEGUE_OK : SEGUE_E_INVALID)
STATUS(segue_session_runtime, segue_session_runtime(h) ? SEGUE_OK : SEGUE_E_INVALID)
PROBE(segue_json_quote, size_t len = 0; return segue_json_quote(h, 1, NULL, &len);)
STATUS(segue_runtime_stop, segue_runtime_stop(h))
IGNORES(segue_runtime_free, segue_runtime_free(h))
PROBE(
    segue_transport_pair, segue_transport *a; segue_transport * b;
    segue_status status = segue_transport_pair(h, &a, &b); if (status == SEGUE_OK) {
        segue_transport_free(a);
        segue_transport_free(b);
    } return status;)
GIVES(segue_transport_stdio, segue_transport, segue_transport_stdio(h, &out),
      segue_transport_free(out))
GIVES(segue_transport_fds, segue_transport, segue_transport_fds(h, -1, -1, &out),
      segue_transport_free(out))
PROBE(segue_transport_spawn, static const char *const argv[] = {"true", NULL};
      segue_transport *out = NULL; segue_spawn_options options = SEGUE_SPAWN_OPTIONS_INIT;
      options.argv = argv;
      segue_status status = segue_transport_spawn(h, &options, &out, NULL);
      segue_transport_free(out); return status;)
GIVES(segue_transport_http, segue_transport,
      segue_transport_http(h, "http://localhost/mcp", NULL, &out, NULL),
      segue_transport_free(out))
STATUS(segue_transport_set_header, segue_transport_set_header(h, "X-Probe", "1", NULL))
PROBE(segue_transport_set_oauth, segue_oauth_options options = SEGUE_OAUTH_OPTIONS_INIT;
      return segue_transport_set_oauth(h, &options, NULL);)
STATUS(segue_runtime_authorize, segue_runtime_authorize(h, "?state=x"))
STATUS(segue_transport_header,
       segue_transport_header(h, "host") ? SEGUE_OK : SEGUE_E_INVALID)
EMPTY(segue_transport_peer, segue_transport_peer(h))
IGNORES(segue_transport_free, segue_transport_free(h))
STATUS(segue_store_memory, segue_store_memory(NULL, h))
STATUS(segue_store_sqlite, segue_store_sqlite("/nowhere/x", NULL, h, NULL))
STATUS(segue_store_redis, segue_store_redis("redis://127.0.0.1:1", NULL, h, NULL))
STATUS(segue_store_postgres,
       segue_store_postgres("postgresql://127.0.0.1:1/", NULL, h, NULL))
IGNORES(segue_store_free, segue_store_free(h))
GIVES(segue_content_new, segue_content, segue_content_new(h, &out),
      segue_content_free(out))
STATUS(segue_content_add_text, segue_content_add_text(h, "x", 1, NULL))
STATUS(segue_content_add_blob,
       segue_content_add_blob(h, "image", "image/png", "x", 1, NULL))
STATUS(segue_content_add_json, segue_content_add_json(h, "{\"type\":\"x\"}", 12, NULL))
STATUS(segue_content_add_resource_text,
       segue_content_add_resource_text(h, "x:y", NULL, "x", 1, NULL))
STATUS(segue_content_add_resource_blob,
       segue_content_add_resource_blob(h, "x:y", NULL, "x", 1, NULL))
STATUS(segue_content_set_role, segue_content_set_role(h, NULL))
STATUS(segue_content_set_structured, segue_content_set_structured(h, "1", 1, NULL))
STATUS(segue_content_set_error, segue_content_set_error(h, 0))
IGNORES(segue_content_free, segue_content_free(h))
EMPTY(segue_segment_read, segue_segment_read(h)->data)
STATUS(segue_segment_text, segue_segment_text(h, NULL) ? SEGUE_OK : SEGUE_E_INVALID)
STATUS(segue_segment_batch_next, segue_segment_batch_next(h) ? SEGUE_OK : SEGUE_E_INVALID)
GIVES(segue_server_new, segue_server, segue_server_new(h, NULL, &out, NULL),
      segue_server_free(out))
PROBE(segue_server_check, (void)h; return segue_server_check(NULL, NULL);)
PROBE(segue_item_check, const char *advice; (void)h;
      return segue_item_check(SEGUE_ITEM_TOOL, NULL, 0, NULL, &advice, NULL);)
PROBE(segue_server_add,
      static const char json[] = "{\"name\":\"p\",\"inputSchema\":{\"type\":\"object\"}}";
      segue_item_options options = item_options();
      return segue_server_add(h, SEGUE_ITEM_TOOL, json, sizeof json - 1, &options, NULL);)
STATUS(segue_server_remove, segue_server_remove(h, SEGUE_ITEM_TOOL, "nothing"))
STATUS(segue_server_resource_updated, segue_server_resource_updated(h, "x:y"))
PROBE(segue_server_stats, size_t len; return segue_server_stats(h, NULL, &len);)
PROBE(segue_server_metrics, size_t len; return segue_server_metrics(h, NULL, &len);)
PROBE(segue_server_attach, segue_transport *a; segue_transport * b;
      if (segue_transport_pair(runtime, &a, &b) != SEGUE_OK) return SEGUE_E_NOMEM;
      segue_status status = segue_server_attach(h, a, NULL);
      if (status != SEGUE_OK) segue_transport_free(a); segue_transport_free(b);
      return status;)
STATUS(segue_server_close, segue_server_close(h))
IGNORES(segue_server_free, segue_server_free(h))
GIVES(segue_server_listen, segue_listener, segue_server_listen(h, NULL, &out, NULL),
      end_listener(out))
EMPTY(segue_listener_url, segue_listener_url(h))
STATUS(segue_listener_reload, segue_listener_reload(h, NULL))
STATUS(segue_listener_add, segue_listener_add(h, NULL, "/", NULL))
STATUS(segue_listener_remove, segue_listener_remove(h, "/"))
STATUS(segue_listener_set_ready, segue_listener_set_ready(h, 1))
STATUS(segue_listener_close, segue_listener_close(h))
IGNORES(segue_listener_free, segue_listener_free(h))
GIVES(segue_listener_open, segue_listener, segue_listener_open(h, NULL, &out, NULL),
      end_listener(out))
STATUS(segue_exchange_open, segue_exchange_open(h, NULL, NULL, NULL, NULL))
STATUS(segue_exchange_feed, segue_exchange_feed(h, "x", 1))
STATUS(segue_exchange_end, segue_exchange_end(h))
STATUS(segue_exchange_sent, segue_exchange_sent(h, 0))
STATUS(segue_exchange_closed, segue_exchange_closed(h))
IGNORES(segue_exchange_free, segue_exchange_free(h))
EMPTY(segue_bearer_token, segue_bearer_token(h, NULL))
STATUS(segue_bearer_accept, segue_bearer_accept(h, "a", NULL, 0))
STATUS(segue_bearer_refuse, segue_bearer_refuse(h, NULL))
STATUS(segue_tokens_check, segue_tokens_check(h, "/", NULL))
IGNORES(segue_bearer_free, segue_bearer_free(h))
EMPTY(segue_call_method, segue_call_method(h))
EMPTY(segue_call_name, segue_call_name(h))
EMPTY(segue_call_principal, segue_call_principal(h))
STATUS(segue_call_has_scope, segue_call_has_scope(h, "a") ? SEGUE_OK : SEGUE_E_INVALID)
EMPTY(segue_call_params, segue_call_params(h, NULL))
PROBE(segue_call_meta, const char *json; size_t len;
      return segue_call_meta(h, "a", &json, &len);)
PROBE(segue_call_header, const char *value; size_t len;
      return segue_call_header(h, "a", 0, &value, &len);)
PROBE(segue_call_header_at, const char *name, *value; size_t len;
      return segue_call_header_at(h, 0, &name, &value, &len);)
STATUS(segue_call_context, segue_call_context(h) ? SEGUE_OK : SEGUE_E_INVALID)
PROBE(segue_call_argument, const char *json; size_t len;
      return segue_call_argument(h, "a", &json, &len);)
PROBE(segue_call_argument_text, const char *text;
      return segue_call_argument_text(h, "a", &text, NULL);)
PROBE(segue_call_argument_int, int64_t n; return segue_call_argument_int(h, "b", &n);)
PROBE(segue_call_watch, segue_call_events events = SEGUE_CALL_EVENTS_INIT;
      return segue_call_watch(h, &events);)
STATUS(segue_call_is_cancelled, segue_call_is_cancelled(h) ? SEGUE_OK : SEGUE_E_INVALID)
STATUS(segue_call_send, segue_call_send(h, content, NULL))
STATUS(segue_call_send_text, segue_call_send_text(h, "x", 1, NULL))
STATUS(segue_call_extend_text, segue_call_extend_text(h, 0, "x", 1, NULL))
STATUS(segue_call_replace, segue_call_replace(h, NULL))
STATUS(segue_call_set_field, segue_call_set_field(h, "a", "1", 1, NULL))
STATUS(segue_call_set_completion, segue_call_set_completion(h, NULL, 0, -1, 0, NULL))
STATUS(segue_call_progress, segue_call_progress(h, 1, 2, NULL, NULL))
STATUS(segue_call_log, segue_call_log(h, "info", "1", 1, NULL))
STATUS(segue_call_set_status, segue_call_set_status(h, "x", NULL))
STATUS(segue_call_require_input, segue_call_require_input(h, NULL, "roots/list", NULL, 0,
                                                          ignore_input, NULL, NULL, NULL))
STATUS(segue_call_hang_up, segue_call_hang_up(h, 1, NULL))
STATUS(segue_call_complete_json, segue_call_complete_json(h, "{}", 2, NULL))
STATUS(segue_call_fail_with, segue_call_fail_with(h, NULL, NULL))
STATUS(segue_call_log_json,
       segue_call_log_json(h, "{\"level\":\"info\",\"data\":1}", 25, NULL))
STATUS(segue_call_log_level, segue_call_log_level(h) ? SEGUE_OK : SEGUE_E_INVALID)
PROBE(segue_server_watch_clients, segue_client_events events = SEGUE_CLIENT_EVENTS_INIT;
      return segue_server_watch_clients(h, &events, NULL);)
STATUS(segue_call_client, segue_call_client(h) ? SEGUE_OK : SEGUE_E_INVALID)
STATUS(segue_client_updated, segue_client_updated(h, 1, "a:b"))
STATUS(segue_client_log,
       segue_client_log(h, 1, "{\"level\":\"info\",\"data\":1}", 25, NULL))
GIVES(segue_client_call, segue_call, segue_client_call(h, 1, &out, NULL),
      segue_call_free(out))
STATUS(segue_call_hold_turn, segue_call_hold_turn(h))
STATUS(segue_call_end_turn, segue_call_end_turn(h))
STATUS(segue_call_set_trace_parent,
       segue_call_set_trace_parent(
           h, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", NULL))
PROBE(segue_call_trace_parent, size_t len = 0;
      return segue_call_trace_parent(h, NULL, &len);)
STATUS(segue_call_defer, segue_call_defer(h, 0, NULL))
STATUS(segue_call_checkpoint, segue_call_checkpoint(h, "x", 1, NULL))
STATUS(segue_call_resumed, segue_call_resumed(h, NULL, NULL, NULL))
STATUS(segue_call_complete, segue_call_complete(h, NULL, NULL))
STATUS(segue_call_fail, segue_call_fail(h, -32603, "x", NULL, 0, NULL))
IGNORES(segue_call_free, segue_call_free(h))
PROBE(segue_session_open, segue_session *out = NULL;
      segue_status status = segue_session_open(h, h ? NULL : transport, NULL, NULL, &out,
                                               NULL);
      assert_null(out); return status;)
PROBE(segue_session_peer, size_t len; return segue_session_peer(h, NULL, &len);)
STATUS(segue_session_notify, segue_session_notify(h, "notifications/x", NULL, 0, NULL))
STATUS(segue_session_close, segue_session_close(h))
IGNORES(segue_session_free, segue_session_free(h))
GIVES(segue_request_start, segue_request,
      segue_request_start(h, "tools/list", NULL, 0, NULL, NULL, &out, NULL),
      segue_request_free(out))
PROBE(segue_session_take_input, segue_request *out = NULL;
      segue_request_events events = SEGUE_REQUEST_EVENTS_INIT; events.on_input = on_input;
      segue_status status = segue_session_take_input(h, &events, &out, NULL);
      segue_request_free(out); return status;)
GIVES(segue_request_resume, segue_request,
      segue_request_resume(h, "sg1.x", NULL, NULL, &out, NULL), segue_request_free(out))
PROBE(segue_request_token, size_t len; return segue_request_token(h, NULL, &len);)
PROBE(segue_request_take_result, char *text; size_t len; size_t size; int32_t is_error;
      return segue_request_take_result(h, &text, &len, &size, &is_error);)
PROBE(segue_token_era, int32_t era; return segue_token_era(h, "t", &era, NULL);)
PROBE(segue_request_meta, size_t len; return segue_request_meta(h, "k", NULL, &len);)
STATUS(segue_request_answer, segue_request_answer(h, "k", "{}", 2, NULL))
STATUS(segue_request_answer_error,
       segue_request_answer_error(h, "k", -32603, "x", NULL, 0, NULL))
STATUS(segue_request_grant, segue_request_grant(h, 1))
STATUS(segue_request_cancel, segue_request_cancel(h))
STATUS(segue_request_detach, segue_request_detach(h))
IGNORES(segue_request_free, segue_request_free(h))
GIVES(segue_task_attach_token, segue_task,
      segue_task_attach_token(h, "sg1.x", &out, NULL), segue_task_free(out))
GIVES(segue_task_attach, segue_task, segue_task_attach(h, "t", &out, NULL),
      segue_task_free(out))
EMPTY(segue_task_id, segue_task_id(h))
STATUS(segue_task_get, segue_task_get(h, NULL, NULL))
STATUS(segue_task_get_state, segue_task_get_state(h) ? SEGUE_OK : SEGUE_E_INVALID)
STATUS(segue_task_watch, segue_task_watch(h, NULL, NULL, NULL, NULL))
STATUS(segue_task_cancel, segue_task_cancel(h, NULL, NULL))
IGNORES(segue_task_free, segue_task_free(h))
PROBE(segue_transport_custom, segue_transport *out = NULL;
      segue_transport_vtable vtable = custom_vtable();
      segue_status status = segue_transport_custom(h, &vtable, NULL, &out);
      segue_transport_free(out); return status;)
STATUS(segue_transport_feed, segue_transport_feed(h, "x", 1))
STATUS(segue_transport_writable, segue_transport_writable(h))
STATUS(segue_transport_closed, segue_transport_closed(h))
STATUS(segue_store_custom, segue_store_custom(h, NULL, NULL, NULL))
STATUS(segue_store_list, segue_store_list(h, NULL, NULL, NULL))
STATUS(segue_store_show, segue_store_show(h, NULL, NULL, NULL, NULL))
STATUS(segue_store_entries, segue_store_entries(h, NULL, 0, NULL, NULL, NULL, NULL))
STATUS(segue_store_command, segue_store_command(h, NULL, "{}", 2, NULL))
STATUS(segue_store_rerun, segue_store_rerun(h, NULL, 0, NULL, NULL, NULL))
STATUS(segue_store_remove, segue_store_remove(h, NULL, NULL))
STATUS(segue_store_export, segue_store_export(h, NULL, NULL, NULL))
STATUS(segue_store_importer_new, segue_store_importer_new(h, NULL))
STATUS(segue_store_importer_add, segue_store_importer_add(h, "{}", 2, NULL))
STATUS(segue_store_importer_close, segue_store_importer_close(h, NULL, NULL, NULL))
STATUS(segue_store_read_stats, segue_store_read_stats(h, NULL))
STATUS(segue_store_compact, segue_store_compact(h, NULL))

/* Reads the kind of the handle from the name: segue_<kind>_... */
static enum kind kind_of(const char *name)
{
    static const struct {
        const char *prefix;
        enum kind kind;
    } kinds[] = {
        {"segue_runtime_new", NOTHING},
        {"segue_runtime_", RUNTIME},
        {"segue_transport_free", TRANSPORT},
        {"segue_transport_feed", TRANSPORT},
        {"segue_transport_writable", TRANSPORT},
        {"segue_transport_closed", TRANSPORT},
        {"segue_transport_set_header", TRANSPORT},
        {"segue_transport_set_oauth", TRANSPORT},
        {"segue_transport_header", TRANSPORT},
        {"segue_transport_peer", TRANSPORT},
        {"segue_transport_", RUNTIME},
        {"segue_content_new", RUNTIME},
        {"segue_content_", CONTENT},
        {"segue_server_check", NOTHING},
        {"segue_server_new", RUNTIME},
        {"segue_server_", SERVER},
        {"segue_client_", SERVER},
        {"segue_call_tool", SESSION},
        {"segue_call_", CALL},
        {"segue_session_open", RUNTIME},
        {"segue_session_", SESSION},
        {"segue_request_start", SESSION},
        {"segue_request_run", SESSION},
        {"segue_request_resume", SESSION},
        {"segue_request_", REQUEST},
        {"segue_task_attach", SESSION},
        {"segue_task_", TASK},
        {"segue_listener_open", SERVER},
        {"segue_listener_", LISTENER},
        {"segue_exchange_open", LISTENER},
        {"segue_exchange_", EXCHANGE},
        {"segue_bearer_", BEARER},
        {"segue_timer_start", RUNTIME},
        {"segue_timer_", TIMER},
        {"segue_json_check", RUNTIME},
        {"segue_tokens_check", RUNTIME},
        {"segue_token_era", RUNTIME},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)))
            return kinds[i].kind;
    return NOTHING;
}

enum { ANY, DISPATCH, SETUP, ALLOWED, REFUSED, LIVE, END };

static const struct row {
    const char *name;
    int callback, terminal;
    segue_status (*fn)(void *);
} rows[] = {
#define SGI_API(name, thread, callback, terminal)                                        \
    {#name, callback, terminal, probe_##name},
#include "api/api.def"
#undef SGI_API
};

#define ROWS (sizeof rows / sizeof *rows)

/* ---- the stage ---- */

static int probed;
static void (*in_handler)(void);

static void on_call(void *user, segue_call *c)
{
    (void)user;
    call = c;
    if (in_handler)
        in_handler();
    probed++;
    segue_call_free(c);
    call = NULL;
}

static int set_up(void **state)
{
    static const char tool[] = "{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = item_options();
    segue_transport_vtable vtable = custom_vtable();
    segue_transport *near, *far;
    (void)state;
    options.on_call = on_call;
    options.task = SEGUE_TASK_MAY;
    probed = 0;
    in_handler = NULL;
    assert_int_equal(segue_runtime_new(NULL, &runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(runtime, NULL, &server, NULL), SEGUE_OK);
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &options, NULL),
        SEGUE_OK);
    assert_int_equal(segue_transport_pair(runtime, &near, &far), SEGUE_OK);
    assert_int_equal(segue_server_attach(server, far, NULL), SEGUE_OK);
    assert_int_equal(segue_session_open(runtime, near, NULL, NULL, &session, NULL),
                     SEGUE_OK);
    assert_int_equal(segue_transport_custom(runtime, &vtable, NULL, &transport),
                     SEGUE_OK);
    assert_int_equal(segue_server_listen(server, NULL, &listener, NULL), SEGUE_OK);
    assert_int_equal(segue_content_new(runtime, &content), SEGUE_OK);
    assert_int_equal(segue_task_attach(session, "id", &task, NULL), SEGUE_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    segue_request_free(request);
    segue_task_free(task);
    segue_content_free(content);
    segue_transport_free(transport);
    segue_session_free(session);
    segue_listener_free(listener);
    segue_server_free(server);
    segue_runtime_free(runtime);
    request = NULL;
    return 0;
}

static void *handle_of(enum kind kind)
{
    /* The last two have tests of their own: test_bearer_application.c and
     * test_timer_api.c. */
    void *const handles[] = {NULL, runtime,   server,   session, request, task, content,
                             call, transport, listener, NULL,    NULL,    NULL};
    return handles[kind];
}

static void start_call(void)
{
    static const char params[] = "{\"name\":\"t\",\"arguments\":{\"a\":\"x\",\"b\":1}}";
    assert_int_equal(segue_request_start(session, "tools/call", params, sizeof params - 1,
                                         NULL, NULL, &request, NULL),
                     SEGUE_OK);
}

static void run_until_probed(void)
{
    for (int i = 0; i < 1000 && !probed; i++)
        segue_runtime_dispatch(runtime, 10, 0, NULL);
    assert_int_equal(probed, 1);
}

/* ---- cases ---- */

static void null_handles_are_refused_or_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].fn(NULL) != SEGUE_E_INVALID)
            fail_msg("%s takes NULL", rows[i].name);
}

static void foreign_handles_are_refused_or_ignored(void **state)
{
    (void)state;
    static _Alignas(16) char nothing[4096];
    start_call();
    for (size_t i = 0; i < ROWS; i++) {
        enum kind kind = kind_of(rows[i].name);
        if (kind == NOTHING)
            continue;
        if (rows[i].fn(nothing) != SEGUE_E_INVALID)
            fail_msg("%s takes what is no handle", rows[i].name);
        for (enum kind other = RUNTIME; other <= LISTENER; other++)
            if (other != kind && handle_of(other) &&
                rows[i].fn(handle_of(other)) != SEGUE_E_INVALID)
                fail_msg("%s takes a handle of kind %d", rows[i].name, other);
    }
}

/* Functions that end something run last, to keep the handles that others need. */
static int is_late(const struct row *row)
{
    return row->terminal == END || !strcmp(row->name, "segue_runtime_stop");
}

static void probe_all_in_a_callback(void)
{
    for (int late = 0; late < 2; late++)
        for (size_t i = 0; i < ROWS; i++) {
            const struct row *row = &rows[i];
            enum kind kind = kind_of(row->name);
            int frees = strstr(row->name, "_free") != NULL;
            if (is_late(row) != late || kind == NOTHING)
                continue;
            if (frees && strcmp(row->name, "segue_runtime_free") != 0)
                continue; /* other tests call this function, because it would end the
                           * handle */
            segue_status status = row->fn(handle_of(kind));
            int refused =
                status == SEGUE_E_REENTRANT || (frees && row->callback == REFUSED);
            if (refused != (row->callback == REFUSED))
                fail_msg("%s in a callback: %s", row->name, segue_status_name(status));
        }
}

static void the_table_says_what_is_refused_in_a_callback(void **state)
{
    (void)state;
    in_handler = probe_all_in_a_callback;
    start_call();
    run_until_probed();
}

/* ---- structs ---- */

static segue_status with_runtime_options(void *options)
{
    segue_runtime *other = NULL;
    segue_status status = segue_runtime_new(options, &other, NULL);
    segue_runtime_free(other);
    return status;
}

static segue_status with_store_options(void *options)
{
    segue_store *store = NULL;
    segue_status status = segue_store_memory(options, &store);
    segue_store_free(store);
    return status;
}

static segue_status with_server_options(void *options)
{
    segue_server *other = NULL;
    segue_status status = segue_server_new(runtime, options, &other, NULL);
    segue_server_free(other);
    return status;
}

static segue_status with_session(void *options, void *events)
{
    segue_transport *a, *b;
    segue_session *other = NULL;
    assert_int_equal(segue_transport_pair(runtime, &a, &b), SEGUE_OK);
    segue_status status = segue_session_open(runtime, a, options, events, &other, NULL);
    if (status != SEGUE_OK)
        segue_transport_free(a);
    segue_transport_free(b);
    segue_session_free(other);
    return status;
}

static segue_status with_session_options(void *options)
{
    return with_session(options, NULL);
}

static segue_status with_session_events(void *events)
{
    return with_session(NULL, events);
}

static segue_status with_request_options(void *options)
{
    return segue_request_start(session, "tools/list", NULL, 0, options, NULL, NULL, NULL);
}

static segue_status with_request_events(void *events)
{
    return segue_request_start(session, "tools/list", NULL, 0, NULL, events, NULL, NULL);
}

static void structs_follow_their_rules_of_size(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        segue_status (*fn)(void *);
    } structs[] = {
        {sizeof(segue_runtime_options), with_runtime_options},
        {sizeof(segue_store_options), with_store_options},
        {sizeof(segue_server_options), with_server_options},
        {sizeof(segue_session_options), with_session_options},
        {sizeof(segue_session_events), with_session_events},
        {sizeof(segue_request_options), with_request_options},
        {sizeof(segue_request_events), with_request_events},
    };
    for (size_t i = 0; i < sizeof structs / sizeof *structs; i++) {
        _Alignas(16) unsigned char bytes[512] = {0};
        size_t size = structs[i].size + 16;
        memcpy(bytes, &size, sizeof size);
        /* a longer struct, zero at the end */
        assert_int_equal(structs[i].fn(bytes), SEGUE_OK);
        bytes[size - 1] = 1;
        assert_int_equal(structs[i].fn(bytes), SEGUE_E_VERSION);
        bytes[size - 1] = 0;
        bytes[structs[i].size] = 1;
        assert_int_equal(structs[i].fn(bytes), SEGUE_E_VERSION);
        memset(bytes, 0xff, sizeof bytes); /* a shorter struct: missing members are not
                                            * read */
        size = sizeof size;
        memcpy(bytes, &size, sizeof size);
        assert_int_equal(structs[i].fn(bytes), SEGUE_OK);
        size = sizeof size - 1; /* shorter than the size member itself */
        memcpy(bytes, &size, sizeof size);
        assert_int_equal(structs[i].fn(bytes), SEGUE_E_INVALID);
    }
}

static void no_error_reads_as_success(void **state)
{
    (void)state;
    const segue_error_view *view = segue_error_read(NULL);
    assert_int_equal(view->status, SEGUE_OK);
    assert_string_equal(view->message, "");
    assert_null(view->data);
}

/* ---- errors that the header names ---- */

static segue_status start(const char *method, const char *params)
{
    return segue_request_start(session, method, params, params ? strlen(params) : 0, NULL,
                               NULL, NULL, NULL);
}

static void arguments_of_requests_are_checked(void **state)
{
    (void)state;
    char long_key[200];
    segue_request_options options;
    memset(long_key, 'k', sizeof long_key);
    long_key[199] = 0;
    assert_int_equal(start("", NULL), SEGUE_E_INVALID);
    assert_int_equal(start("\xff", NULL), SEGUE_E_INVALID);
    assert_int_equal(start("m", "[]"), SEGUE_E_INVALID);
    assert_int_equal(start("m", "{"), SEGUE_E_JSON);
    assert_int_equal(start("m", "{}x"), SEGUE_E_JSON);
    static const char *const keys[] = {"short", NULL, ""};
    for (int i = 0; i < 3; i++) {
        options = SEGUE_REQUEST_OPTIONS_INIT;
        options.idempotency_key = keys[i] ? keys[i] : long_key;
        assert_int_equal(
            segue_request_start(session, "m", NULL, 0, &options, NULL, NULL, NULL),
            SEGUE_E_INVALID);
    }
    options = SEGUE_REQUEST_OPTIONS_INIT;
    options.credit = -1;
    assert_int_equal(
        segue_request_start(session, "m", NULL, 0, &options, NULL, NULL, NULL),
        SEGUE_E_INVALID);
    options.credit = 0;
    options.timeout_ms = -1;
    assert_int_equal(
        segue_request_start(session, "m", NULL, 0, &options, NULL, NULL, NULL),
        SEGUE_E_INVALID);
    segue_task *other = NULL;
    char long_id[4200];
    memset(long_id, 'i', sizeof long_id);
    long_id[4199] = 0;
    assert_int_equal(segue_task_attach(session, "", &other, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_task_attach_token(session, "t", &other, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_task_attach(session, long_id, &other, NULL), SEGUE_E_INVALID);
    long_id[4096] = 0;
    assert_int_equal(segue_task_attach(session, long_id, &other, NULL), SEGUE_OK);
    assert_string_equal(segue_task_id(other), long_id);
    segue_task_free(other);
}

static void tools_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        segue_status status;
    } tools[] = {
        {"{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}", SEGUE_E_EXISTS},
        {"{\"inputSchema\":{\"type\":\"object\"}}", SEGUE_E_INVALID},
        {"{\"name\":7,\"inputSchema\":{\"type\":\"object\"}}", SEGUE_E_INVALID},
        {"{\"name\":\"u\",\"inputSchema\":7}", SEGUE_E_INVALID},
        {"[]", SEGUE_E_INVALID},
        {"{\"name\":", SEGUE_E_JSON},
        {"{\"name\":\"u\",\"inputSchema\":{\"type\":\"object\"}}", SEGUE_OK},
    };
    segue_item_options options = item_options();
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        segue_error *error = NULL;
        segue_status status = segue_server_add(server, SEGUE_ITEM_TOOL, tools[i].json,
                                               strlen(tools[i].json), &options, &error);
        if (status != tools[i].status)
            fail_msg("%s: %s", tools[i].json, segue_status_name(status));
        if (error)
            assert_int_equal(segue_error_read(error)->status, status);
        segue_error_free(error);
    }
    assert_int_equal(segue_server_add(server, 9, "{}", 2, &options, NULL),
                     SEGUE_E_INVALID);
    options.on_call = NULL;
    assert_int_equal(segue_server_add(server, SEGUE_ITEM_TOOL, tools[0].json,
                                      strlen(tools[0].json), &options, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_server_remove(server, SEGUE_ITEM_TOOL, "t"), SEGUE_OK);
    assert_int_equal(segue_server_remove(server, SEGUE_ITEM_TOOL, "t"),
                     SEGUE_E_NOT_FOUND);
}

static void content_is_checked(void **state)
{
    (void)state;
    assert_int_equal(segue_content_add_text(content, "\xc0\x80", 2, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_content_add_blob(content, "video", "video/x", "x", 1, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_content_add_json(content, "{\"type\":1}", 10, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_content_add_json(content, "[]", 2, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_content_add_json(content, "{", 1, NULL), SEGUE_E_JSON);
    assert_int_equal(segue_content_add_json(content, "{\"uri\":\"x:y\"}", 13, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_content_add_json(content, "{\"role\":\"user\"}", 15, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(
        segue_content_add_resource_text(content, "x:y", NULL, "\xff", 1, NULL),
        SEGUE_E_INVALID);
    assert_int_equal(segue_content_add_resource_text(content, "\xff", NULL, "x", 1, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(
        segue_content_add_resource_blob(content, "x:y", "\xff", "x", 1, NULL),
        SEGUE_E_INVALID);
    assert_int_equal(segue_content_set_role(content, "system"), SEGUE_E_INVALID);
    assert_int_equal(segue_content_set_structured(content, "nul", 3, NULL), SEGUE_E_JSON);
    assert_int_equal(segue_content_add_text(content, "", 0, NULL), SEGUE_OK);
}

static void a_transport_is_attached_once_and_to_its_runtime(void **state)
{
    (void)state;
    segue_runtime *other;
    segue_transport *a, *b;
    segue_session *second = NULL;
    assert_int_equal(segue_runtime_new(NULL, &other, NULL), SEGUE_OK);
    assert_int_equal(segue_transport_pair(other, &a, &b), SEGUE_OK);
    assert_int_equal(segue_server_attach(server, a, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_session_open(runtime, a, NULL, NULL, &second, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_session_open(other, a, NULL, NULL, &second, NULL), SEGUE_OK);
    segue_session *third = NULL;
    assert_int_equal(segue_session_open(other, a, NULL, NULL, &third, NULL),
                     SEGUE_E_STATE);
    assert_int_equal(segue_transport_feed(transport, "x", 1), SEGUE_E_STATE);
    assert_int_equal(segue_transport_feed(b, "x", 1),
                     SEGUE_E_INVALID); /* the transport is not a custom one */
    segue_transport_free(b);
    segue_session_free(second);
    segue_runtime_free(other);
}

/* ---- after the end ---- */

static void closed_handles_say_so(void **state)
{
    (void)state;
    segue_request *other = NULL;
    segue_transport *a, *b;
    assert_int_equal(segue_session_close(session), SEGUE_OK);
    assert_int_equal(segue_session_close(session), SEGUE_OK);
    assert_int_equal(segue_request_start(session, "m", NULL, 0, NULL, NULL, &other, NULL),
                     SEGUE_E_CLOSED);
    assert_int_equal(segue_task_get(task, NULL, &other), SEGUE_E_CLOSED);
    assert_int_equal(segue_task_watch(task, NULL, NULL, &other, NULL), SEGUE_E_CLOSED);
    assert_null(other);
    assert_int_equal(segue_transport_pair(runtime, &a, &b), SEGUE_OK);
    assert_int_equal(segue_server_close(server), SEGUE_OK);
    assert_int_equal(segue_server_attach(server, a, NULL), SEGUE_E_CLOSED);
    segue_transport_free(a);
    segue_transport_free(b);
}

static void a_stopped_runtime_lets_its_handles_only_be_freed(void **state)
{
    (void)state;
    segue_transport *a = NULL, *b = NULL;
    int32_t ran;
    assert_int_equal(segue_runtime_stop(runtime), SEGUE_OK);
    assert_int_equal(segue_runtime_stop(runtime), SEGUE_OK);
    assert_int_equal(segue_runtime_start(runtime), SEGUE_E_CLOSED);
    assert_int_equal(segue_transport_pair(runtime, &a, &b), SEGUE_E_CLOSED);
    assert_null(a);
    while (segue_runtime_dispatch(runtime, 0, 0, &ran) == SEGUE_OK)
        ;
    segue_runtime_free(runtime); /* the runtime goes before its handles, which tear_down
                                  * frees */
    runtime = NULL;
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(null_handles_are_refused_or_ignored),
        CASE(foreign_handles_are_refused_or_ignored),
        CASE(the_table_says_what_is_refused_in_a_callback),
        CASE(structs_follow_their_rules_of_size),
        CASE(no_error_reads_as_success),
        CASE(arguments_of_requests_are_checked),
        CASE(tools_are_checked),
        CASE(content_is_checked),
        CASE(a_transport_is_attached_once_and_to_its_runtime),
        CASE(closed_handles_say_so),
        CASE(a_stopped_runtime_lets_its_handles_only_be_freed),
    };
    return cmocka_run_group_tests_name("api_guard", tests, NULL, NULL);
}
