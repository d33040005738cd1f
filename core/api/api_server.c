/* Functions of contents and servers. */
#include "api/guard.h"
#include "engine/reverse/reverse.h"
#include "engine/server/call.h"
#include "engine/server/serving.h"
#include "engine/server/shown.h"
#include "engine/server/stats.h"
#include "engine/server/waiting_ops.h"
#include "engine/error.h"
#include "wire/freshness.h"
#include "wire/log_level.h"
#include "store/store.h"
#include "transport/transport.h"

/* ---- content ---- */

segue_status segue_content_new(segue_runtime *runtime, segue_content **out)
{
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_content_new, runtime);
    if (status != SEGUE_OK || !out)
        return status != SEGUE_OK ? status : SEGUE_E_INVALID;
    segue_content *content = sgi_content_new(sgi_runtime_engine(runtime));
    if (!content)
        return SEGUE_E_NOMEM;
    sgi_runtime_ref(runtime);
    *out = content;
    return SEGUE_OK;
}

static bool is_content(const segue_content *content)
{
    return content && content->handle.magic == SGI_MAGIC_CONTENT;
}

/* Returns status. When the content could not be extended, sets *error to the reason. */
static segue_status added(segue_content *content, segue_status status,
                          segue_error **error)
{
    if (status == SEGUE_OK)
        return status;
    const char *why = content->refusal;
    sgi_error_return(error, content->blocks.mem, status, "%s",
                     *why ? why : sgi_status_text(status));
    content->refusal[0] = 0;
    return status;
}

segue_status segue_content_add_text(segue_content *content, const char *text, size_t len,
                                    segue_error **error)
{
    len = sgi_given_len(text, len);
    if (!is_content(content) || (!text && len))
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    return added(content, sgi_content_add_text(content, (sgi_str){text, len}), error);
}

segue_status segue_content_add_blob(segue_content *content, const char *type,
                                    const char *mime_type, const void *data, size_t len,
                                    segue_error **error)
{
    if (!is_content(content) || !type || !mime_type || (!data && len))
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    return added(content, sgi_content_add_blob(content, type, mime_type, data, len),
                 error);
}

/* The type of the engine's functions that add JSON to a content. Such a function parses
 * the JSON under the lock and reports errors in the JSON. */
typedef segue_status (*take_json)(segue_content *content, const char *json, size_t len);

static segue_status add_read(sgi_fn fn, segue_content *content, take_json take,
                             const char *json, size_t len, segue_error **error)
{
    segue_status status = sgi_enter(fn, content, SGI_MAGIC_CONTENT);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = take(content, json, len);
    if (status == SEGUE_OK || !content->refusal[0])
        return sgi_leave_with_error(content, status, error);
    added(content, status, error);
    sgi_leave(content);
    return status;
}

segue_status segue_content_add_json(segue_content *content, const char *json, size_t len,
                                    segue_error **error)
{
    len = sgi_given_len(json, len);
    return add_read(SGI_FN_segue_content_add_json, content, sgi_content_add_json, json,
                    len, error);
}

segue_status segue_content_add_resource_text(segue_content *content, const char *uri,
                                             const char *mime_type, const char *text,
                                             size_t len, segue_error **error)
{
    len = sgi_given_len(text, len);
    if (!is_content(content) || !uri || (!text && len))
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    return added(content,
                 sgi_content_add_resource(content, uri, mime_type, "text",
                                          (sgi_str){text, len}, false),
                 error);
}

segue_status segue_content_add_resource_blob(segue_content *content, const char *uri,
                                             const char *mime_type, const void *data,
                                             size_t len, segue_error **error)
{
    if (!is_content(content) || !uri || (!data && len))
        return sgi_refuse_without_handle(SEGUE_E_INVALID, error);
    return added(content,
                 sgi_content_add_resource(content, uri, mime_type, "blob",
                                          (sgi_str){data, len}, true),
                 error);
}

segue_status segue_content_set_role(segue_content *content, const char *role)
{
    return is_content(content) ? sgi_content_set_role(content, role) : SEGUE_E_INVALID;
}

segue_status segue_content_set_structured(segue_content *content, const char *json,
                                          size_t len, segue_error **error)
{
    len = sgi_given_len(json, len);
    return add_read(SGI_FN_segue_content_set_structured, content,
                    sgi_content_set_structured, json, len, error);
}

segue_status segue_content_set_error(segue_content *content, int32_t is_error)
{
    if (!is_content(content))
        return SEGUE_E_INVALID;
    content->is_error = is_error != 0;
    return SEGUE_OK;
}

void segue_content_free(segue_content *content)
{
    if (!is_content(content))
        return;
    segue_runtime *runtime = sgi_handle_runtime(content);
    sgi_content_free(content);
    sgi_runtime_unref(runtime);
}

/* ---- server ---- */

/* Connects a server with its runtime: `hook`, a function that the runtime calls when it
 * ends, closes the server. The tie is freed together with the server. */
typedef struct server_tie {
    sgi_stop_hook hook;
    segue_runtime *runtime;
    segue_server *server;
    segue_store *store;
} server_tie;

static void runtime_stops(sgi_stop_hook *hook)
{
    sgi_server_shut_down(SGI_OWNER(hook, server_tie, hook)->server);
}

static void server_gone(segue_server *server, void *user)
{
    server_tie *tie = user;
    sgi_runtime_remove_stop_hook(tie->runtime, &tie->hook);
    sgi_runtime_remove_store(tie->runtime, &server->committer);
    sgi_store_unref(tie->store);
    sgi_free(sgi_engine_mem(server->engine), tie, sizeof *tie);
}

static void put_default(int64_t *value, int64_t standard)
{
    if (!*value)
        *value = standard;
}

static void put_default32(int32_t *value, int32_t standard)
{
    if (!*value)
        *value = standard;
}

static bool is_text(const char *text)
{
    return !text || sgi_utf8_valid(sgi_str_of(text), NULL);
}

static bool is_seal_key(const void *key, size_t len)
{
    return key ? len == SGI_AEAD_KEY : !len;
}

/* A numeric option of a server. The value 0 selects its default. */
typedef struct number_option {
    const char *name;
    size_t at;
    bool is_wide;
    int64_t standard;
    int64_t least;
} number_option;

#define NUMBER(name, standard, least)                                                    \
    {                                                                                    \
#name, offsetof(segue_server_options, name),                                     \
            sizeof((segue_server_options *)0)->name == sizeof(int64_t), standard, least  \
    }

static const number_option numbers[] = {
    NUMBER(page_size, 1000, 0),
    NUMBER(max_result_bytes, (int64_t)16 << 20, 0),
    NUMBER(max_log_bytes, (int64_t)64 << 20, 0),
    NUMBER(max_segments, 1000000, 0),
    NUMBER(max_inputs, 64, 0),
    NUMBER(max_tasks, 100, 0),
    NUMBER(max_requests, 65536, 0),
    NUMBER(max_streams, 256, 0),
    NUMBER(max_ttl_ms, (int64_t)24 * 3600 * 1000, -1),
    NUMBER(grace_ms, 5 * 60 * 1000, 0),
    NUMBER(lookups_per_second, 100, 0),
    NUMBER(input_wait_ms, 10 * 60 * 1000, 0),
    NUMBER(fetches_per_second, 1000, 0),
    NUMBER(max_principal_requests, 65536, 0),
    NUMBER(max_principal_bytes, (int64_t)256 << 20, 0),
    NUMBER(max_server_requests, 262144, 0),
    NUMBER(max_server_bytes, (int64_t)1 << 30, 0),
    NUMBER(question_ttl_ms, 0, 0),
    NUMBER(max_events, 0, 0),
    NUMBER(max_event_bytes, 0, 0),
    NUMBER(event_ttl_ms, 0, 0),
    NUMBER(first_turn_ms, 20, 0),
    NUMBER(tool_wait_ms, 0, 0),
};

/* Where the error of a wrong option goes. */
typedef struct refusal {
    const sgi_mem *mem;
    segue_error **error;
} refusal;

#define REFUSE(to, ...)                                                                  \
    sgi_error_return((to)->error, (to)->mem, SEGUE_E_INVALID, __VA_ARGS__)

static segue_status resolve_number(const refusal *to, segue_server_options *o,
                                   const number_option *number)
{
    void *place = (char *)o + number->at;
    int64_t value = number->is_wide ? *(int64_t *)place : *(int32_t *)place;
    if (value < number->least)
        return REFUSE(to, "the server option %s is %lld: it has to be at least %lld",
                      number->name, (long long)value, (long long)number->least);
    if (number->is_wide)
        put_default(place, number->standard);
    else
        put_default32(place, (int32_t)number->standard);
    return SEGUE_OK;
}

static segue_status check_texts(const refusal *to, const segue_server_options *o)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"name", o->name},
                 {"version", o->version},
                 {"title", o->title},
                 {"instructions", o->instructions}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!is_text(texts[i].text))
            return REFUSE(to, "the server option %s is not UTF-8", texts[i].name);
    return SEGUE_OK;
}

static segue_status check_seal_keys(const refusal *to, const segue_server_options *o)
{
    if (!is_seal_key(o->seal_key, o->seal_key_len) ||
        !is_seal_key(o->seal_key_before, o->seal_key_before_len))
        return REFUSE(to, "seal_key and seal_key_before have to be %d bytes long",
                      SGI_AEAD_KEY);
    if (o->seal_key_before && !o->seal_key)
        return REFUSE(to, "seal_key_before is set without seal_key");
    return SEGUE_OK;
}

/* Fills in the defaults of the options and checks them. */
static segue_status resolve_server(const refusal *to, segue_server_options *o)
{
    uint32_t unknown = (o->dialects_on | o->dialects_off) & ~(uint32_t)SGI_DIALECTS_KNOWN;
    segue_status status = SEGUE_OK;
    if (!o->name)
        o->name = "segue";
    if (!o->version)
        o->version = "0";
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == SEGUE_OK; i++)
        status = resolve_number(to, o, &numbers[i]);
    if (status == SEGUE_OK && unknown)
        status = REFUSE(to, "dialects_on or dialects_off has unknown bits: 0x%x",
                        (unsigned)unknown);
    if (status == SEGUE_OK && o->draft_ways & ~(uint32_t)SGI_WAYS_KNOWN)
        status = REFUSE(to, "draft_ways has unknown bits: 0x%x",
                        (unsigned)(o->draft_ways & ~(uint32_t)SGI_WAYS_KNOWN));
    if (status == SEGUE_OK && !sgi_freshness_is_valid(o->list_ttl_ms, o->list_scope))
        status =
            REFUSE(to,
                   "list_ttl_ms is %lld (at most %lld), list_scope is %d: one of "
                   "them is out of range",
                   (long long)o->list_ttl_ms, (long long)SGI_TTL_MAX, (int)o->list_scope);
    if (status == SEGUE_OK && o->log_level &&
        sgi_log_level_parse(sgi_str_of(o->log_level)) < 0)
        status = REFUSE(to, "log_level names no level");
    if (status == SEGUE_OK)
        status = check_texts(to, o);
    return status == SEGUE_OK ? check_seal_keys(to, o) : status;
}

/* Makes a server. store: a reference that the server owns from now on if the function
 * succeeds. `given` is true when the application chose the store. The caller holds the
 * lock. */
static segue_status make_server(segue_runtime *runtime,
                                const segue_server_options *options, segue_store *store,
                                bool given, segue_server **out)
{
    sgi_engine *engine = sgi_runtime_engine(runtime);
    segue_server *server = NULL;
    server_tie *tie = sgi_zalloc(sgi_engine_mem(engine), sizeof *tie);
    if (!tie)
        return SEGUE_E_NOMEM;
    engine->question_tasks = &sgi_reverse_question_tasks;
    segue_status status =
        sgi_server_new(engine, &sgi_serving_mcp, options, given, &server);
    if (status == SEGUE_OK)
        status = sgi_runtime_add_store(runtime, &server->committer, store);
    if (status != SEGUE_OK) {
        if (server) {
            /* the application still owns `user`, because the call failed */
            server->options.free_user = NULL;
            sgi_server_unref(server);
        }
        sgi_free(sgi_engine_mem(engine), tie, sizeof *tie);
        return status;
    }
    *tie = (server_tie){{.fn = runtime_stops}, runtime, server, store};
    server->lists = sgi_store_can_list(store);
    server->forgets = sgi_store_is_volatile(store);
    server->gone = server_gone;
    server->gone_user = tie;
    sgi_runtime_add_stop_hook(runtime, &tie->hook);
    sgi_handle_note_given(server);
    *out = server;
    return SEGUE_OK;
}

/* Sets *out to a counted reference to the server's store: the application's store or,
 * when the application gives none, a new memory store. The caller holds the lock. */
static segue_status take_store(sgi_engine *engine, segue_store *given, segue_store **out)
{
    segue_store_options memory = {.struct_size = sizeof memory};
    memory.allocator = sgi_engine_mem(engine);
    *out = given;
    if (!given)
        return sgi_store_memory_new(&memory, out);
    sgi_store_ref(given);
    return SEGUE_OK;
}

segue_status segue_server_new(segue_runtime *runtime, const segue_server_options *options,
                              segue_server **out, segue_error **error)
{
    segue_server_options full;
    segue_store *store = NULL;
    segue_status status = sgi_check_reentrancy(SGI_FN_segue_server_new, runtime);
    if (status == SEGUE_OK && !out)
        status = SEGUE_E_INVALID;
    if (status == SEGUE_OK)
        status = sgi_copy_struct_in(&full, sizeof full, options);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    sgi_engine *engine = sgi_runtime_engine(runtime);
    status = resolve_server(&(refusal){sgi_engine_mem(engine), error}, &full);
    if (status != SEGUE_OK)
        return status;
    sgi_enter_runtime(runtime);
    status = take_store(engine, full.store, &store);
    if (status == SEGUE_OK)
        status = make_server(runtime, &full, store, full.store != NULL, out);
    if (status != SEGUE_OK && store)
        sgi_store_unref(store);
    return sgi_leave_runtime(runtime, status, error);
}

segue_status segue_server_check(const segue_server_options *options, segue_error **error)
{
    segue_server_options full;
    segue_status status =
        options ? sgi_copy_struct_in(&full, sizeof full, options) : SEGUE_E_INVALID;
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    return resolve_server(&(refusal){&sgi_mem_libc, error}, &full);
}

segue_status segue_server_resource_updated(segue_server *server, const char *uri)
{
    segue_status status =
        sgi_enter(SGI_FN_segue_server_resource_updated, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    if (uri)
        sgi_resource_report_updated(server, sgi_str_of(uri));
    sgi_leave(server);
    return uri ? SEGUE_OK : SEGUE_E_INVALID;
}

/* Gives a text that was written for the application, frees it, and leaves the server. */
static segue_status give_text(segue_server *server, sgi_buf *text, char *buf, size_t *len)
{
    segue_status status;
    if (!len)
        status = SEGUE_E_INVALID;
    else if (text->failed)
        status = SEGUE_E_NOMEM;
    else
        status = sgi_copy_text_out(sgi_buf_str(text), buf, len);
    sgi_buf_free(text);
    sgi_leave(server);
    return status;
}

segue_status segue_server_stats(segue_server *server, char *buf, size_t *len)
{
    sgi_buf text;
    segue_status status = sgi_enter(SGI_FN_segue_server_stats, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    sgi_buf_init(&text, sgi_engine_mem(server->engine));
    sgi_stats_write(server, &text);
    return give_text(server, &text, buf, len);
}

segue_status segue_server_metrics(segue_server *server, char *buf, size_t *len)
{
    sgi_buf text;
    const sgi_metrics_source source = {.server = server};
    segue_status status =
        sgi_enter(SGI_FN_segue_server_metrics, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    if (!sgi_serve_has_metrics()) {
        sgi_leave(server);
        return SEGUE_E_UNSUPPORTED;
    }
    sgi_buf_init(&text, sgi_engine_mem(server->engine));
    sgi_serve_write_metrics(&source, 1, sgi_runtime_resident_bytes(), &text);
    return give_text(server, &text, buf, len);
}

segue_status segue_server_attach(segue_server *server, segue_transport *transport,
                                 segue_error **error)
{
    sgi_conn *conn = NULL;
    segue_status status = sgi_enter(SGI_FN_segue_server_attach, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return sgi_refuse_without_handle(status, error);
    status = sgi_transport_may_attach(transport, sgi_handle_runtime(server));
    if (status == SEGUE_OK)
        status = sgi_server_accept(server, transport, &conn);
    if (status == SEGUE_OK)
        sgi_transport_attach(transport, conn);
    return sgi_leave_with_error(server, status, error);
}

segue_status segue_server_close(segue_server *server)
{
    segue_status status = sgi_enter(SGI_FN_segue_server_close, server, SGI_MAGIC_SERVER);
    if (status != SEGUE_OK)
        return status;
    sgi_server_close(server);
    sgi_leave(server);
    return SEGUE_OK;
}

void segue_server_free(segue_server *server)
{
    if (sgi_enter(SGI_FN_segue_server_free, server, SGI_MAGIC_SERVER) != SEGUE_OK)
        return;
    segue_runtime *runtime = sgi_handle_runtime(server);
    sgi_engine *engine = server->engine;
    sgi_server_on_handle_freed(server);
    sgi_handle_note_freed(engine);
    sgi_runtime_unlock(runtime);
}
