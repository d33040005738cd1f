/* Reads the configuration file, and compares its entries. The file has the form of
 * "mcpServers" in host applications (programs that use MCP servers), with additional
 * members for the proxy. */
#include "proxy.h"

#include <segue/easy.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)4 * 1024 * 1024)

/* ---- kinds of values ---- */

static bool begins_with(const char *where, const char *beginning)
{
    return !strncmp(where, beginning, strlen(beginning));
}

store_kind config_store_kind(const char *where)
{
    if (begins_with(where, "redis://") || begins_with(where, "rediss://") ||
        begins_with(where, "unix://"))
        return STORE_REDIS;
    if (begins_with(where, "postgresql://") || begins_with(where, "postgres://"))
        return STORE_POSTGRES;
    return *where && !strstr(where, "://") ? STORE_SQLITE : STORE_UNKNOWN;
}

bool config_is_url(const char *where)
{
    size_t scheme = begins_with(where, "http://")    ? 7
                    : begins_with(where, "https://") ? 8
                                                     : 0;
    return scheme && where[scheme] && where[scheme] != '/';
}

/* ---- lists and upstreams ---- */

void config_free_list(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}

/* Adds a text to the list, which owns the text from now on. Returns false when out of
 * memory. */
static bool add_to_list(char ***list, char *element)
{
    size_t count = 0;
    while (*list && (*list)[count])
        count++;
    char **grown = element ? realloc(*list, (count + 2) * sizeof *grown) : NULL;
    if (!grown) {
        free(element);
        return false;
    }
    grown[count] = element;
    grown[count + 1] = NULL;
    *list = grown;
    return true;
}

char **config_copy_list(char *const *texts)
{
    char **copy = NULL;
    for (size_t i = 0; texts && texts[i]; i++) {
        if (!add_to_list(&copy, copy_string(texts[i]))) {
            config_free_list(copy);
            return NULL;
        }
    }
    return copy;
}

source_config *config_add(config *c, const char *name)
{
    source_config *s = calloc(1, sizeof *s), **end = &c->sources;
    if (!s)
        return NULL;
    s->name = copy_string(name);
    while (*end)
        end = &(*end)->next;
    *end = s;
    return s->name ? s : NULL;
}

tool_rule *config_rule(const source_config *s, const char *tool)
{
    tool_rule *rule = s->rules;
    while (rule && strcmp(rule->name, tool) != 0)
        rule = rule->next;
    return rule;
}

static void free_rules(tool_rule *rule)
{
    while (rule) {
        tool_rule *next = rule->next;
        free(rule->name);
        free(rule->rename);
        free(rule->description);
        free(rule);
        rule = next;
    }
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_list(char *const *a, char *const *b)
{
    size_t i = 0;
    while (a && b && a[i] && same_text(a[i], b[i]))
        i++;
    return a && b ? same_text(a[i], b[i]) : a == b;
}

bool config_is_same_server(const source_config *a, const source_config *b)
{
    return same_list(a->argv, b->argv) && same_list(a->env, b->env) &&
           same_text(a->dir, b->dir) && same_text(a->url, b->url) && a->sse == b->sse &&
           same_list(a->headers, b->headers) && same_text(a->path, b->path);
}

static bool same_rule(const tool_rule *a, const tool_rule *b)
{
    return same_text(a->name, b->name) && same_text(a->rename, b->rename) &&
           same_text(a->description, b->description) && a->hidden == b->hidden &&
           a->timeout_ms == b->timeout_ms && a->repeat == b->repeat;
}

bool config_is_same(const source_config *a, const source_config *b)
{
    const tool_rule *x = a->rules, *y = b->rules;
    for (; x && y && same_rule(x, y); x = x->next)
        y = y->next;
    return !x && !y && config_is_same_server(a, b) && same_text(a->prefix, b->prefix) &&
           a->trust_hints == b->trust_hints && a->timeout_ms == b->timeout_ms;
}

void config_free_sources(source_config *s)
{
    while (s) {
        source_config *next = s->next;
        free(s->name);
        free(s->path);
        free(s->prefix);
        config_free_list(s->argv);
        config_free_list(s->env);
        free(s->dir);
        free(s->url);
        config_free_list(s->headers);
        free_rules(s->rules);
        free(s);
        s = next;
    }
}

void config_free(config *c)
{
    config_free_sources(c->sources);
    c->sources = NULL;
    free(c->listen);
    free(c->store);
}

/* ---- the file ---- */

/* Where an error was found: the file and the upstream, for the error message. */
typedef struct place {
    const char *file;
    const char *upstream;
} place;

static bool wrong(const place *at, const char *member, const char *why)
{
    log_event(SEGUE_LOG_ERROR, "config_invalid", NULL, "%s: mcpServers.%s.%s %s",
              at->file, at->upstream, member, why);
    return false;
}

static bool take_string(const place *at, json object, const char *member, char **to)
{
    json value = json_get(object, member);
    if (!value.n)
        return true;
    *to = json_string(value);
    return *to || wrong(at, member, "is not a string");
}

static bool take_bool(const place *at, json object, const char *member, bool *to)
{
    json value = json_get(object, member);
    if (!value.n)
        return true;
    *to = json_is_true(value);
    return *to || (value.n == 5 && !memcmp(value.p, "false", 5)) ||
           wrong(at, member, "is not true or false");
}

static bool take_strings(const place *at, json object, const char *member, char ***to)
{
    json list = json_get(object, member), element;
    if (list.n && !json_is_array(list))
        return wrong(at, member, "is not a list of strings");
    for (size_t i = 0; json_next(list, &i, NULL, &element);)
        if (!add_to_list(to, json_string(element)))
            return wrong(at, member, "is not a list of strings");
    return true;
}

/* Reads an object of strings into a list of texts "NAME<between>value". */
static bool take_pairs(const place *at, json object, const char *member,
                       const char *between, char ***to)
{
    json pairs = json_get(object, member), key, element;
    if (pairs.n && !json_is_object(pairs))
        return wrong(at, member, "is not an object of strings");
    for (size_t i = 0; json_next(pairs, &i, &key, &element);) {
        char *name = json_string(key), *value = json_string(element);
        text pair = {.p = NULL};
        if (name && value) {
            text_add_str(&pair, name);
            text_add_str(&pair, between);
            text_add_str(&pair, value);
        }
        bool ok = pair.p && !pair.failed && add_to_list(to, pair.p);
        free(name);
        free(value);
        if (!ok)
            return wrong(at, member, "is not an object of strings");
    }
    return true;
}

static bool take_ms(const place *at, json object, const char *member, int64_t *to)
{
    json value = json_get(object, member);
    int64_t ms = json_int(value, -1);
    if (!value.n)
        return true;
    *to = ms;
    return ms >= 0 || wrong(at, member, "is not a number of milliseconds");
}

static bool take_repeat(const place *at, json object, repeat_policy *to)
{
    json value = json_get(object, "repeat");
    if (!value.n || json_is(value, "hint"))
        *to = REPEAT_BY_HINT;
    else if (json_is(value, "never"))
        *to = REPEAT_NEVER;
    else if (json_is(value, "always"))
        *to = REPEAT_ALWAYS;
    else
        return wrong(at, "repeat", "is not hint, never or always");
    return true;
}

/* The members of the form that are not in this list belong to the hosts. */
static const char *const source_members[] = {
    "command", "args",    "env",        "cwd",   "url",      "headers", "type",
    "prefix",  "timeout", "trustHints", "tools", "disabled", "path",
};
static const char *const rule_members[] = {"name", "description", "hidden", "timeout",
                                           "repeat"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Finds the next member of an object that is not in the list. at: as of json_next. */
static char *next_unknown(json object, size_t *at, const char *const *known, size_t count)
{
    json key, value;
    while (json_next(object, at, &key, &value)) {
        size_t i = 0;
        while (i < count && !json_is(key, known[i]))
            i++;
        if (i == count)
            return json_string(key);
    }
    return NULL;
}

static void tell_unknown(const place *at, json object)
{
    size_t i = 0;
    for (char *name;
         (name = next_unknown(object, &i, source_members, COUNT(source_members)));
         free(name))
        log_event(SEGUE_LOG_WARNING, "config_ignored", NULL,
                  "%s: mcpServers.%s.%s is unknown and has no effect", at->file,
                  at->upstream, name);
}

static bool check_rule(const place *at, json object)
{
    size_t i = 0;
    char *name = next_unknown(object, &i, rule_members, COUNT(rule_members));
    bool ok = !name || wrong(at, name, "is unknown");
    free(name);
    return ok;
}

static bool take_rule(const place *at, source_config *s, json name, json object)
{
    char where[256];
    tool_rule *rule = calloc(1, sizeof *rule);
    if (!rule)
        return wrong(at, "tools", "cannot be read: out of memory");
    rule->next = s->rules;
    s->rules = rule;
    rule->name = json_string(name);
    if (!rule->name || !json_is_object(object))
        return wrong(at, "tools", "is not an object of objects");
    snprintf(where, sizeof where, "%s.tools.%s", at->upstream, rule->name);
    place inner = {at->file, where};
    return check_rule(&inner, object) &&
           take_bool(&inner, object, "hidden", &rule->hidden) &&
           take_string(&inner, object, "name", &rule->rename) &&
           take_string(&inner, object, "description", &rule->description) &&
           take_ms(&inner, object, "timeout", &rule->timeout_ms) &&
           take_repeat(&inner, object, &rule->repeat);
}

static bool take_rules(const place *at, source_config *s, json object)
{
    json tools = json_get(object, "tools"), name, rule;
    if (tools.n && !json_is_object(tools))
        return wrong(at, "tools", "is not an object of objects");
    for (size_t i = 0; json_next(tools, &i, &name, &rule);)
        if (!take_rule(at, s, name, rule))
            return false;
    return true;
}

static bool take_source(const place *at, source_config *s, json object)
{
    char *command = NULL;
    bool trusts = false;
    if (!json_is_object(object))
        return wrong(at, "command", "is missing, because this is not an object");
    if (!take_string(at, object, "command", &command))
        return false;
    if (command && !add_to_list(&s->argv, command))
        return wrong(at, "command", "cannot be read: out of memory");
    if (!take_strings(at, object, "args", &s->argv) ||
        !take_pairs(at, object, "env", "=", &s->env) ||
        !take_string(at, object, "cwd", &s->dir) ||
        !take_string(at, object, "url", &s->url) ||
        !take_pairs(at, object, "headers", ": ", &s->headers) ||
        !take_string(at, object, "prefix", &s->prefix) ||
        !take_ms(at, object, "timeout", &s->timeout_ms) || !take_rules(at, s, object) ||
        !take_bool(at, object, "trustHints", &trusts))
        return false;
    s->trust_hints |= trusts;
    s->sse = json_is(json_get(object, "type"), "sse");
    tell_unknown(at, object);
    if (!command == !s->url)
        return wrong(at, "command", "or \"url\" is needed, and only one of them");
    if (s->url && !config_is_url(s->url))
        return wrong(at, "url", "is not an http or https URL");
    return true;
}

/* Reads the path, which is the default path if the entry has none. */
static bool take_path(const place *at, const config *c, source_config *s, json object)
{
    if (!take_string(at, object, "path", &s->path))
        return false;
    const char *why = s->path ? config_check_path(c, s->path) : NULL;
    if (!s->path)
        s->path = copy_string(config_default_path(c));
    if (!s->path)
        why = "cannot be read: out of memory";
    return !why || wrong(at, "path", why);
}

static bool tell_no_memory(const char *path)
{
    log_event(SEGUE_LOG_ERROR, "config_invalid", NULL, "%s: out of memory", path);
    return false;
}

static bool take_all(config *c, const char *path, json servers)
{
    json key, object;
    if (!json_is_object(servers)) {
        log_event(SEGUE_LOG_ERROR, "config_invalid", NULL,
                  "%s has no object \"mcpServers\"", path);
        return false;
    }
    for (size_t i = 0; json_next(servers, &i, &key, &object);) {
        char *name = json_string(key);
        place at = {path, name ? name : "?"};
        bool disabled = false, ok = take_bool(&at, object, "disabled", &disabled);
        source_config *s = ok && !disabled && name ? config_add(c, name) : NULL;
        bool no_memory = ok && !disabled && !s;
        if (s) {
            s->trust_hints = c->trust_hints;
            s->timeout_ms = c->timeout_ms;
        }
        ok = ok && (disabled ||
                    (s && take_source(&at, s, object) && take_path(&at, c, s, object)));
        free(name);
        if (no_memory)
            return tell_no_memory(path);
        if (!ok)
            return false;
    }
    if (!c->sources)
        log_event(SEGUE_LOG_ERROR, "config_invalid", NULL, "%s names no upstream", path);
    if (c->sources && !config_set_prefixes(c))
        return tell_no_memory(path);
    return c->sources != NULL;
}

static bool read_text(const char *path, text *to)
{
    char room[8192];
    size_t got;
    FILE *file = fopen(path, "re");
    while (file && (got = fread(room, 1, sizeof room, file)) > 0 && to->len <= FILE_MAX)
        text_add(to, room, got);
    const char *why = !file || ferror(file) ? strerror(errno)
                      : to->len > FILE_MAX  ? "the file is over 4 MiB"
                      : to->failed          ? "out of memory"
                      : !to->len            ? "the file is empty"
                                            : NULL;
    if (file)
        fclose(file);
    if (why)
        log_event(SEGUE_LOG_ERROR, "config_invalid", NULL, "%s: %s", path, why);
    return !why;
}

bool config_read_file(config *c, segue_runtime *runtime, const char *path)
{
    text file = {.p = NULL};
    segue_error *error = NULL;
    bool ok = read_text(path, &file);
    if (ok && segue_json_check(runtime, file.p, file.len, &error) != SEGUE_OK) {
        log_event(SEGUE_LOG_ERROR, "config_invalid", NULL, "%s: %s", path,
                  segue_error_read(error)->message);
        segue_error_free(error);
        ok = false;
    }
    ok = ok && take_all(c, path, json_get((json){file.p, file.len}, "mcpServers"));
    text_free(&file);
    return ok;
}
