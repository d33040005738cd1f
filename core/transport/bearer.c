/* The gate of a listener that requires access tokens: its options and its texts. The
 * protected resource metadata (RFC 9728) and the URL of the metadata are written once,
 * when the listener is made.
 *
 * The metadata is served at three paths. The first is the well-known path of the
 * resource; challenges name this path. The second is the well-known path of the endpoint,
 * in case a proxy shows the endpoint under another path. The third is the well-known path
 * without suffix, for clients that got no challenge (2025-11-25 basic/authorization,
 * "Protected Resource Metadata Discovery Requirements").
 *
 * A challenge names all scopes that the request needs, so that one new token is
 * enough. */
#include "transport/bearer.h"

#include <stdio.h>

#include "base/limit.h"
#include "wire/challenge.h"
#include "wire/json_write.h"
#include "wire/scopes.h"
#include "wire/url.h"

/* ---- options ---- */

static const char **text_slots(segue_bearer_options *o, size_t i)
{
    const char **slots[SGI_BEARER_TEXTS] = {&o->resource,
                                            &o->authorization_servers,
                                            &o->scopes_supported,
                                            &o->required_scopes,
                                            &o->implied_scopes,
                                            &o->resource_name,
                                            &o->documentation,
                                            &o->issuer,
                                            &o->audience,
                                            &o->algorithms,
                                            &o->jwks,
                                            &o->jwks_file,
                                            &o->jwks_url,
                                            &o->ca_file};
    return slots[i];
}

static void put_default(int64_t *value, int64_t standard)
{
    *value = *value == -1 ? 0 : *value ? *value : standard;
}

static void put_defaults(segue_bearer_options *o)
{
    int64_t tokens = o->max_tokens;
    put_default(&o->leeway_ms, 30000);
    put_default(&tokens, 1000);
    o->max_tokens = (int32_t)tokens;
    if (!o->check_timeout_ms)
        o->check_timeout_ms = 10000;
    if (!o->jwks_age_ms)
        o->jwks_age_ms = 600000;
    if (!o->jwks_refresh_ms)
        o->jwks_refresh_ms = 30000;
}

/* True when the text is a URL without query and fragment that is safe from eavesdropping:
 * an https URL, or an http URL on this machine. */
static bool is_place(sgi_str text)
{
    sgi_url url;
    return sgi_url_parse(text, &url) && !url.query.p && !url.has_fragment &&
           (url.https || sgi_url_is_loopback(&url));
}

/* Returns the number of URLs in the list, or 0 when a URL of the list is not valid. */
static int count_servers(sgi_str list)
{
    sgi_str one;
    int count = 0;
    for (; sgi_scopes_next(&list, &one); count++)
        if (!is_place(one))
            return 0;
    return count;
}

static bool is_plain(const char *text)
{
    return sgi_scopes_are_valid(sgi_str_of(text));
}

/* True when each line of the text is a list of valid scopes. */
static bool are_implied(const char *text)
{
    for (; text && *text; text++)
        if (*text != '\n' && !sgi_scopes_are_valid((sgi_str){text, 1}))
            return false;
    return true;
}

static const char *problem_of(const segue_bearer_options *o)
{
    int ways = (o->on_bearer != NULL) + (o->jwks != NULL) + (o->jwks_file != NULL) +
               (o->jwks_url != NULL);
    int servers = count_servers(sgi_str_of(o->authorization_servers));
    if (!servers)
        return "authorization_servers has to be one or more https URLs without query";
    if (ways != 1)
        return "set exactly one of on_bearer, jwks, jwks_file and jwks_url";
    if (servers > 1 && !o->on_bearer)
        return "authorization_servers names several servers, but a key set belongs to "
               "one: name one server, or check tokens with on_bearer";
    if (!is_plain(o->scopes_supported) || !is_plain(o->required_scopes) ||
        !are_implied(o->implied_scopes))
        return "a list of scopes has a character that is not allowed: scopes are words "
               "without quotes and backslashes";
    if (!is_plain(o->issuer) || (o->issuer && strchr(o->issuer, ' ')))
        return "issuer has to be one URL";
    if (!is_plain(o->audience))
        return "audience must not have quotes or backslashes";
    if (!sgi_utf8_valid(sgi_str_of(o->resource_name), NULL) ||
        !sgi_utf8_valid(sgi_str_of(o->documentation), NULL))
        return "resource_name or documentation is not UTF-8";
    return NULL;
}

/* Checks the numbers of the options. Returns false when a number is out of its range;
 * `why` then names the number and its range. */
static bool check_numbers(const segue_bearer_options *o, char why[SGI_WHY_SIZE])
{
    const sgi_range numbers[] = {
        {"bearer: check_timeout_ms", o->check_timeout_ms, 0, INT64_MAX},
        {"bearer: leeway_ms", o->leeway_ms, 0, INT64_MAX},
        {"bearer: jwks_age_ms", o->jwks_age_ms, 0, INT64_MAX},
        {"bearer: jwks_refresh_ms", o->jwks_refresh_ms, 0, INT64_MAX},
        {"bearer: max_tokens", o->max_tokens, 0, INT32_MAX},
    };
    return sgi_ranges_check(numbers, sizeof numbers / sizeof *numbers, why, SGI_WHY_SIZE);
}

static bool read_algorithms(sgi_str list, uint32_t *schemes)
{
    sgi_str one;
    *schemes = 0;
    while (sgi_scopes_next(&list, &one)) {
        sgi_crypto_scheme scheme = sgi_jwa_scheme(one);
        if (!scheme)
            return false;
        *schemes |= 1u << scheme;
    }
    if (!*schemes)
        /* the mask of all schemes except SGI_CRYPTO_NONE */
        *schemes = (1u << SGI_CRYPTO_SCHEMES) - 2;
    return true;
}

static bool copy_texts(sgi_bearer_gate *gate)
{
    for (size_t i = 0; i < SGI_BEARER_TEXTS; i++) {
        const char **slot = text_slots(&gate->options, i);
        if (!*slot)
            continue;
        gate->texts[i] = sgi_text_dup(gate->text.mem, sgi_str_of(*slot));
        if (!gate->texts[i])
            return false;
        *slot = gate->texts[i];
    }
    return true;
}

/* ---- metadata ---- */

static void write_list(sgi_jw *w, const char *name, const char *words)
{
    sgi_str list = sgi_str_of(words), one;
    if (!list.n)
        return;
    sgi_jw_key(w, name);
    sgi_jw_open(w, '[');
    while (sgi_scopes_next(&list, &one))
        sgi_jw_string(w, one);
    sgi_jw_close(w, ']');
}

static void write_metadata(sgi_bearer_gate *gate)
{
    const segue_bearer_options *o = &gate->options;
    sgi_jw w = sgi_jw_to(&gate->metadata);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "resource", sgi_str_of(o->resource));
    write_list(&w, "authorization_servers", o->authorization_servers);
    write_list(&w, "scopes_supported", o->scopes_supported);
    write_list(&w, "bearer_methods_supported", "header");
    if (o->resource_name)
        sgi_jw_member_string(&w, "resource_name", sgi_str_of(o->resource_name));
    if (o->documentation)
        sgi_jw_member_string(&w, "resource_documentation", sgi_str_of(o->documentation));
    sgi_jw_close(&w, '}');
}

static void add_path(sgi_buf *paths, sgi_str path)
{
    sgi_buf_add_lit(paths, SGI_BEARER_METADATA);
    if (path.n > 1)
        sgi_buf_add_str(paths, path);
    sgi_buf_add_char(paths, 0);
}

static bool write_texts(sgi_bearer_gate *gate, const char *path)
{
    sgi_url url;
    if (!sgi_url_parse(sgi_str_of(gate->options.resource), &url))
        return false;
    write_metadata(gate);
    sgi_buf_add_str(&gate->metadata_url, url.origin);
    sgi_buf_add_lit(&gate->metadata_url, SGI_BEARER_METADATA);
    if (url.path.n > 1)
        sgi_buf_add_str(&gate->metadata_url, url.path);
    add_path(&gate->paths, (sgi_str){0});
    add_path(&gate->paths, url.path);
    add_path(&gate->paths, sgi_str_of(path));
    return !gate->metadata.failed && !gate->metadata_url.failed && !gate->paths.failed;
}

bool sgi_bearer_is_metadata_path(const sgi_bearer_gate *gate, sgi_str path)
{
    for (size_t at = 0; at < gate->paths.len;) {
        sgi_str one = sgi_str_of(gate->paths.p + at);
        if (sgi_str_eq(one, path))
            return true;
        at += one.n + 1;
    }
    return false;
}

/* ---- challenges ---- */

sgi_str sgi_bearer_challenge(sgi_bearer_gate *gate, sgi_bearer_verdict verdict,
                             const char *why, const char *lacks)
{
    static const char *const errors[] = {
        [SGI_BEARER_BAD] = "invalid_token",
        [SGI_BEARER_LACKS] = "insufficient_scope",
        [SGI_BEARER_MISPLACED] = "invalid_request",
        [SGI_BEARER_UNCHECKED] = NULL,
    };
    sgi_buf *out = &gate->text, *scopes = &gate->jwt.scopes;
    sgi_buf_reset(out, 4096);
    sgi_buf_reset(scopes, 4096);
    sgi_scopes_join(scopes, gate->required);
    sgi_scopes_join(scopes, sgi_str_of(lacks));
    sgi_challenge_add(out, "error", sgi_str_of(errors[verdict]));
    sgi_challenge_add(out, "error_description", sgi_str_of(why));
    sgi_challenge_add(out, "scope", sgi_buf_str(scopes));
    sgi_challenge_add(out, "resource_metadata", sgi_buf_str(&gate->metadata_url));
    return out->failed || !out->len ? SGI_STR("Bearer") : sgi_buf_str(out);
}

/* ---- making and freeing ---- */

static void free_gate(sgi_bearer_gate *gate)
{
    sgi_bearer_keys_close(&gate->keys);
    sgi_bearer_cache_clear(&gate->cache);
    sgi_jwt_free(&gate->jwt);
    sgi_buf_free(&gate->metadata);
    sgi_buf_free(&gate->metadata_url);
    sgi_buf_free(&gate->paths);
    const sgi_mem *mem = gate->text.mem;
    sgi_buf_free(&gate->text);
    sgi_bearer_tokens_free(&gate->tokens);
    sgi_text_free(mem, gate->tokens_path);
    for (size_t i = 0; i < SGI_BEARER_TEXTS; i++)
        sgi_text_free(mem, gate->texts[i]);
    sgi_free(mem, gate, sizeof *gate);
}

static void unref(sgi_bearer_gate *gate)
{
    if (!--gate->refs)
        free_gate(gate);
}

static int32_t run_free_user(sgi_ready_object *ready, int32_t budget)
{
    sgi_bearer_gate *gate = SGI_OWNER(ready, sgi_bearer_gate, ready);
    sgi_engine *engine = gate->engine;
    segue_free_fn fn = gate->options.free_user;
    void *user = gate->options.user;
    (void)budget;
    unref(gate);
    return sgi_user_data_free(engine, fn, user);
}

void sgi_bearer_gate_end(sgi_bearer_gate *gate, bool taken)
{
    if (!gate)
        return;
    /* Keys and cache are released now, because free_user can be called after the server
     * is gone. */
    sgi_bearer_keys_close(&gate->keys);
    sgi_bearer_cache_clear(&gate->cache);
    if (taken && gate->options.free_user)
        sgi_ready_queue_add(gate->engine, &gate->ready);
    else
        unref(gate);
}

/* Replaces the tokens by those that the file has now. The gate's listener may end
 * meanwhile. */
static segue_status reload_tokens(segue_runtime *rt, sgi_bearer_gate *gate,
                                  char why[SGI_WHY_SIZE])
{
    sgi_bearer_tokens fresh, old;
    sgi_bearer_tokens_init(&fresh, gate->text.mem);
    segue_status status = sgi_bearer_tokens_read(&fresh, gate->tokens_path, why);
    sgi_runtime_lock(rt);
    old = status == SEGUE_OK ? gate->tokens : fresh;
    if (status == SEGUE_OK)
        gate->tokens = fresh;
    if (status == SEGUE_OK && !fresh.count)
        sgi_engine_log(gate->engine, SEGUE_LOG_WARNING,
                       "%s has no token any more: nobody is let in", gate->tokens_path);
    sgi_runtime_unlock(rt);
    sgi_bearer_tokens_free(&old);
    return status == SEGUE_E_INVALID ? SEGUE_E_IO : status;
}

segue_status sgi_bearer_gate_reload(segue_runtime *rt, sgi_bearer_gate *const *gate,
                                    char why[SGI_WHY_SIZE])
{
    sgi_runtime_lock(rt);
    sgi_bearer_gate *mine = *gate;
    bool has_file = mine && (mine->keys.path || mine->tokens_path);
    if (has_file)
        mine->refs++;
    sgi_runtime_unlock(rt);
    if (!has_file)
        return SEGUE_E_STATE;
    segue_status status = mine->tokens_path ? reload_tokens(rt, mine, why)
                                            : sgi_bearer_keys_reload(&mine->keys, why);
    sgi_runtime_lock(rt);
    /* The cache is cleared, because its tokens may be signed with a removed key. */
    if (status == SEGUE_OK)
        sgi_bearer_cache_clear(&mine->cache);
    unref(mine);
    sgi_runtime_unlock(rt);
    return status;
}

static sgi_bearer_gate *make(segue_runtime *rt, const segue_bearer_options *options)
{
    sgi_engine *engine = sgi_runtime_engine(rt);
    const sgi_mem *mem = sgi_engine_mem(engine);
    sgi_bearer_gate *gate = sgi_zalloc(mem, sizeof *gate);
    if (!gate)
        return NULL;
    gate->refs = 1;
    gate->runtime = rt;
    gate->engine = engine;
    gate->options = *options;
    gate->ready.run = run_free_user;
    gate->keys.done = sgi_bearer_on_keys_fetched;
    TAILQ_INIT(&gate->waiting);
    sgi_jwt_init(&gate->jwt, mem);
    sgi_buf_init(&gate->metadata, mem);
    sgi_buf_init(&gate->metadata_url, mem);
    sgi_buf_init(&gate->paths, mem);
    sgi_buf_init(&gate->text, mem);
    sgi_bearer_tokens_init(&gate->tokens, mem);
    sgi_bearer_cache_init(&gate->cache, engine, (size_t)options->max_tokens);
    return gate;
}

static segue_status settle(sgi_bearer_gate *gate, const char *path,
                           char why[SGI_WHY_SIZE])
{
    segue_bearer_options *o = &gate->options;
    sgi_str first = {0}, servers = sgi_str_of(o->authorization_servers);
    sgi_scopes_next(&servers, &first);
    gate->required = sgi_str_of(o->required_scopes);
    gate->rules = (sgi_jwt_rules){
        .issuer = o->issuer ? sgi_str_of(o->issuer) : first,
        .audiences = sgi_str_of(o->audience ? o->audience : o->resource),
        .access_only = o->access_tokens_only != 0,
        .leeway_s = o->leeway_ms / 1000,
    };
    if (!read_algorithms(sgi_str_of(o->algorithms), &gate->rules.schemes)) {
        snprintf(why, SGI_WHY_SIZE, "algorithms names an unknown algorithm");
        return SEGUE_E_INVALID;
    }
    if (!write_texts(gate, path))
        return SEGUE_E_NOMEM;
    if (o->on_bearer)
        return SEGUE_OK;
    segue_status status = sgi_bearer_keys_open(&gate->keys, gate->runtime, o, why);
    gate->keys.done = sgi_bearer_on_keys_fetched;
    return status;
}

/* Gives the gate to the caller, or ends it when it could not be made. */
static segue_status give(segue_runtime *rt, sgi_bearer_gate *gate, segue_status status,
                         sgi_bearer_gate **out)
{
    if (status == SEGUE_OK) {
        *out = gate;
        return SEGUE_OK;
    }
    sgi_runtime_lock(rt);
    sgi_bearer_gate_end(gate, false);
    sgi_runtime_unlock(rt);
    return status;
}

segue_status sgi_bearer_gate_new(segue_runtime *rt, const segue_bearer_options *options,
                                 const char *url, bool is_url, const char *path,
                                 sgi_bearer_gate **out, char why[SGI_WHY_SIZE])
{
    segue_bearer_options full = *options;
    put_defaults(&full);
    const char *problem = problem_of(&full);
    if (!full.resource && is_url)
        full.resource = url;
    if (!problem && !full.resource)
        problem = "the option resource is needed, because the listener has no URL of its "
                  "own that clients could use";
    sgi_url place;
    if (!problem && (!sgi_url_parse(sgi_str_of(full.resource), &place) || place.query.p ||
                     place.has_fragment))
        problem = "resource has to be an http or https URL without query and fragment";
    if (problem)
        snprintf(why, SGI_WHY_SIZE, "bearer: %s", problem);
    if (problem || !check_numbers(&full, why))
        return SEGUE_E_INVALID;
    sgi_bearer_gate *gate = make(rt, &full);
    if (!gate)
        return SEGUE_E_NOMEM;
    segue_status status = copy_texts(gate) ? settle(gate, path, why) : SEGUE_E_NOMEM;
    return give(rt, gate, status, out);
}

segue_status sgi_bearer_gate_new_for_tokens(segue_runtime *rt, const char *path,
                                            sgi_bearer_gate **out, char why[SGI_WHY_SIZE])
{
    segue_bearer_options options = {.max_tokens = -1};
    put_defaults(&options);
    sgi_bearer_gate *gate = make(rt, &options);
    if (!gate)
        return SEGUE_E_NOMEM;
    gate->tokens_path = sgi_text_dup(gate->text.mem, sgi_str_of(path));
    segue_status status = gate->tokens_path
                              ? sgi_bearer_tokens_open(&gate->tokens, path, why)
                              : SEGUE_E_NOMEM;
    return give(rt, gate, status, out);
}
