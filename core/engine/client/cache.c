/* The key of a cached result is the method, a NUL, and the params without _meta. The
 * members of params are sorted by name, and strings are decoded and written in one way.
 * Numbers and other values are compared as text. Two spellings of one value therefore
 * cost one more exchange, but never give a wrong result.
 *
 * Some requests neither use nor fill the cache. A request for progress or log messages
 * needs an exchange. A request whose _meta has more than the trace may get another
 * result. A round is an answer of the server that asks questions in place of a result.
 * The result of a request that carries the answers of a round, or that followed a round,
 * depends on these answers (2026-07-28 server/utilities/caching, "Cache Key").
 *
 * Cached results become void when a notification reports a change, when a new connection
 * is made, or when an error shows that the results are out of date. Private results also
 * become void when the application changes the headers that contain its credentials.
 * `changes` counts these events. A result is not cached when such an event happened after
 * its request was sent, because the result may be older than the event. */
#include "engine/client/cache.h"

#include "engine/client/request.h"
#include "engine/client/trace.h"
#include "wire/freshness.h"

/* The largest number of members of params. A request with more members does not use the
 * cache. */
#define MEMBERS_MAX 8

struct sgi_kept {
    /* the node in the map of the cache; its key points to a text behind `result`, in the
     * same block of memory */
    sgi_map_node node;
    TAILQ_ENTRY(sgi_kept) link;
    int64_t stale_ms; /* monotonic time from which the result is no longer fresh */
    int32_t scope;
    size_t size;
    size_t len;
    char result[];
};

void sgi_result_cache_init(sgi_result_cache *cache, sgi_engine *engine, int64_t max)
{
    *cache = (sgi_result_cache){.engine = engine, .max = max > 0 ? (size_t)max : 0};
    cache->changes = 1;
    sgi_map_init(&cache->entries, &engine->env);
    TAILQ_INIT(&cache->by_use);
}

static void drop(sgi_result_cache *cache, sgi_kept *kept)
{
    TAILQ_REMOVE(&cache->by_use, kept, link);
    sgi_map_remove(&cache->entries, &kept->node);
    cache->bytes -= kept->size;
    sgi_free(sgi_engine_mem(cache->engine), kept, kept->size);
}

void sgi_result_cache_clear(sgi_result_cache *cache)
{
    cache->changes++;
    while (!TAILQ_EMPTY(&cache->by_use))
        drop(cache, TAILQ_FIRST(&cache->by_use));
}

void sgi_result_cache_free(sgi_result_cache *cache)
{
    sgi_result_cache_clear(cache);
    sgi_map_free(&cache->entries);
}

/* Drops cached results of a method. key: the cache key of the only result to drop; empty
 * = all results of the method are dropped. */
static void forget_some(sgi_result_cache *cache, const char *method, sgi_str key)
{
    sgi_kept *kept, *next;
    cache->changes++;
    SGI_TAILQ_EACH(kept, &cache->by_use, link, next)
        if (key.n ? sgi_str_eq(kept->node.key, key) : !strcmp(kept->node.key.p, method))
            drop(cache, kept);
}

/* ---- the key of a result ---- */

static bool is_cacheable(const char *method)
{
    static const char *const methods[] = {"server/discover", "tools/list",
                                          "prompts/list",    "resources/list",
                                          "resources/read",  "resources/templates/list"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(methods[i], method))
            return true;
    return false;
}

static bool is_only_trace(sgi_json meta)
{
    sgi_json_member member;
    if (meta.n && sgi_json_kind_of(meta) != SGI_JSON_OBJECT)
        return false;
    for (size_t at = 0; meta.n && sgi_json_next_member(meta, &at, &member);)
        if (!sgi_meta_member_is_trace(&member))
            return false;
    return true;
}

/* Sorts the members of params by name. Returns SIZE_MAX for a request that does not use
 * the cache. */
static size_t sort_params(sgi_json params, sgi_json_member sorted[MEMBERS_MAX])
{
    sgi_json_member member;
    size_t count = 0;
    for (size_t at = 0; params.n && sgi_json_next_member(params, &at, &member);) {
        if (sgi_json_key_is(&member, "_meta"))
            continue;
        if (member.escaped || count == MEMBERS_MAX ||
            sgi_json_key_is(&member, "inputResponses") ||
            sgi_json_key_is(&member, "requestState"))
            return SIZE_MAX;
        size_t i = count++;
        for (; i && (member.key.n < sorted[i - 1].key.n ||
                     (member.key.n == sorted[i - 1].key.n &&
                      memcmp(member.key.p, sorted[i - 1].key.p, member.key.n) < 0));
             i--)
            sorted[i] = sorted[i - 1];
        sorted[i] = member;
    }
    return count;
}

static void write_value(sgi_jw *w, sgi_json value, sgi_buf *room)
{
    sgi_buf_truncate(room, 0);
    if (sgi_json_decode(value, room))
        sgi_jw_string(w, sgi_buf_str(room));
    else
        sgi_jw_raw(w, value);
    w->buf->failed |= room->failed;
}

/* Writes the cache key of a request to `out`. Returns false when the request does not use
 * the cache, or when out of memory. */
static bool write_key(const char *method, sgi_json params, sgi_buf *out)
{
    sgi_json_member sorted[MEMBERS_MAX];
    size_t count = sort_params(params, sorted);
    sgi_buf room;
    if (count == SIZE_MAX)
        return false;
    sgi_buf_init(&room, out->mem);
    sgi_buf_add(out, method, strlen(method) + 1);
    sgi_jw w = sgi_jw_to(out);
    sgi_jw_open(&w, '{');
    for (size_t i = 0; i < count; i++) {
        sgi_jw_key_json(&w, sorted[i].key);
        write_value(&w, sorted[i].value, &room);
    }
    sgi_jw_close(&w, '}');
    sgi_buf_free(&room);
    return !out->failed;
}

static bool may_keep(const segue_request *request)
{
    const segue_session *session = request->session;
    return session->cache.max && sgi_facts(session->version)->has_cache_hints &&
           is_cacheable(request->method) && !request->questions.rounds &&
           !request->events.on_progress && !request->log_level &&
           is_only_trace(request->own_meta);
}

/* ---- reading from the cache ---- */

/* Drops the private results when the application's credentials have changed. The new
 * credentials may belong to another user. */
static void heed_credentials(segue_session *session)
{
    sgi_result_cache *cache = &session->cache;
    sgi_kept *kept, *next;
    if (cache->credentials == session->conn->credentials)
        return;
    cache->credentials = session->conn->credentials;
    cache->changes++;
    SGI_TAILQ_EACH(kept, &cache->by_use, link, next)
        if (kept->scope == SEGUE_CACHE_PRIVATE)
            drop(cache, kept);
}

static sgi_kept *find(sgi_result_cache *cache, sgi_str key)
{
    sgi_map_node *node = sgi_map_find(&cache->entries, key);
    sgi_kept *kept = node ? SGI_OWNER(node, sgi_kept, node) : NULL;
    if (kept && sgi_now(&cache->engine->env) >= kept->stale_ms) {
        drop(cache, kept);
        return NULL;
    }
    return kept;
}

bool sgi_result_cache_find(segue_request *request, sgi_json *result)
{
    sgi_result_cache *cache = &request->session->cache;
    sgi_kept *kept = NULL;
    sgi_buf key;
    request->cache_mark = 0;
    if (!may_keep(request))
        return false;
    heed_credentials(request->session);
    request->cache_mark = cache->changes;
    if (request->options.no_cache || !cache->entries.count)
        return false;
    sgi_buf_init(&key, sgi_engine_mem(cache->engine));
    if (write_key(request->method, request->params, &key))
        kept = find(cache, sgi_buf_str(&key));
    sgi_buf_free(&key);
    if (!kept)
        return false;
    TAILQ_REMOVE(&cache->by_use, kept, link);
    TAILQ_INSERT_TAIL(&cache->by_use, kept, link);
    /* the result comes from the cache, so it is not cached again */
    request->cache_mark = 0;
    *result = (sgi_json){kept->result, kept->len};
    sgi_engine_log(cache->engine, SEGUE_LOG_DEBUG, "%s was answered from the cache",
                   request->method);
    return true;
}

/* ---- storing in the cache ---- */

/* Stores the result under the key. An older result with the same key is removed even when
 * the new one cannot be stored. */
static void put(sgi_result_cache *cache, sgi_str key, sgi_json result,
                sgi_freshness freshness)
{
    sgi_map_node *before = sgi_map_find(&cache->entries, key);
    size_t size = sizeof(sgi_kept) + result.n + key.n + 1;
    int64_t now = sgi_now(&cache->engine->env);
    if (before)
        drop(cache, SGI_OWNER(before, sgi_kept, node));
    if (!freshness.ttl_ms || size > cache->max)
        return;
    while (cache->bytes + size > cache->max)
        drop(cache, TAILQ_FIRST(&cache->by_use));
    sgi_kept *kept = sgi_alloc(sgi_engine_mem(cache->engine), size);
    if (!kept)
        return; /* out of memory: the result is not cached */
    *kept = (sgi_kept){.stale_ms = sgi_time_add(now, freshness.ttl_ms),
                       .scope = freshness.scope,
                       .size = size,
                       .len = result.n};
    char *copy = kept->result + result.n;
    memcpy(kept->result, result.p, result.n);
    memcpy(copy, key.p, key.n);
    copy[key.n] = 0;
    sgi_map_put(&cache->entries, &kept->node, (sgi_str){copy, key.n});
    TAILQ_INSERT_TAIL(&cache->by_use, kept, link);
    cache->bytes += size;
}

static bool is_complete(sgi_json result)
{
    sgi_json type = sgi_json_get(result, "resultType");
    return result.n && (!type.n || sgi_json_string_is(type, SGI_STR("complete")));
}

void sgi_result_cache_store(segue_request *request, sgi_json result)
{
    sgi_result_cache *cache = &request->session->cache;
    sgi_freshness freshness;
    sgi_buf key;
    if (!request->cache_mark || !is_complete(result))
        return;
    if (!sgi_freshness_read(result, &freshness)) {
        cache->engine->warnings++;
        sgi_engine_log(
            cache->engine, SEGUE_LOG_WARNING,
            "the answer to %s is not cached: its ttlMs or cacheScope is invalid",
            request->method);
        freshness.ttl_ms = 0;
    }
    heed_credentials(request->session);
    if (request->cache_mark != cache->changes)
        freshness.ttl_ms = 0;
    sgi_buf_init(&key, sgi_engine_mem(cache->engine));
    if ((freshness.ttl_ms || cache->entries.count) &&
        write_key(request->method, request->params, &key))
        put(cache, sgi_buf_str(&key), result, freshness);
    sgi_buf_free(&key);
}

/* ---- results that became void ---- */

/* Removes the cached results that an error shows to be out of date. For example, a
 * refused cursor makes all pages of its list void (server/utilities/caching: "Clients MAY
 * re-fetch before the TTL expires if they have reason to believe the data has
 * changed"). */
void sgi_result_cache_drop_by_error(segue_request *request, sgi_json error)
{
    static const char *const found_in[][2] = {{"tools/call", "tools/list"},
                                              {"prompts/get", "prompts/list"},
                                              {"resources/read", "resources/list"}};
    sgi_result_cache *cache = &request->session->cache;
    int64_t code = 0;
    if (!cache->entries.count)
        return;
    sgi_json_read_int(sgi_json_get(error, "code"), &code);
    if (code != SGI_RPC_INVALID_PARAMS && code != SGI_RPC_METHOD_NOT_FOUND &&
        code != SGI_RPC_HEADER_MISMATCH)
        return;
    for (size_t i = 0; i < sizeof found_in / sizeof *found_in; i++)
        if (!strcmp(request->method, found_in[i][0]))
            forget_some(cache, found_in[i][1], (sgi_str){0});
    if (sgi_json_get(request->params, "cursor").n && is_cacheable(request->method))
        forget_some(cache, request->method, (sgi_str){0});
}

static void forget_resource(sgi_result_cache *cache, sgi_json uri)
{
    sgi_buf params, key;
    sgi_buf_init(&params, sgi_engine_mem(cache->engine));
    sgi_buf_init(&key, sgi_engine_mem(cache->engine));
    sgi_jw w = sgi_jw_to(&params);
    sgi_jw_open(&w, '{');
    sgi_jw_member_raw(&w, "uri", uri);
    sgi_jw_close(&w, '}');
    if (!params.failed && write_key("resources/read", sgi_buf_str(&params), &key))
        forget_some(cache, "resources/read", sgi_buf_str(&key));
    /* the URI cannot be read, so the error may be about any cached resource */
    else
        forget_some(cache, "resources/read", (sgi_str){0});
    sgi_buf_free(&key);
    sgi_buf_free(&params);
}

void sgi_result_cache_drop_by_notification(segue_session *session, sgi_str method,
                                           sgi_json params)
{
    sgi_result_cache *cache = &session->cache;
    if (sgi_str_eq(method, SGI_STR("notifications/tools/list_changed"))) {
        forget_some(cache, "tools/list", (sgi_str){0});
    } else if (sgi_str_eq(method, SGI_STR("notifications/prompts/list_changed"))) {
        forget_some(cache, "prompts/list", (sgi_str){0});
    } else if (sgi_str_eq(method, SGI_STR("notifications/resources/list_changed"))) {
        forget_some(cache, "resources/list", (sgi_str){0});
        forget_some(cache, "resources/templates/list", (sgi_str){0});
    } else if (sgi_str_eq(method, SGI_STR("notifications/resources/updated"))) {
        forget_resource(cache, sgi_json_get(params, "uri"));
    }
}
