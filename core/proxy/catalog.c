/* Reads the lists of the upstreams page by page, changes their items as the configuration
 * says, and keeps the lists of the proxy's own server equal to them. */
#include "client.h"
#include "limits.h"
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lists that an upstream can have. method: requests the list. member: the member of
 * the result that holds the items. key: the member that identifies an item. */
static const struct {
    const char *method, *member, *key;
    int32_t type;
} lists[LISTS] = {
    [LIST_TOOLS] = {"tools/list", "tools", "name", SEGUE_ITEM_TOOL},
    [LIST_RESOURCES] = {"resources/list", "resources", "uri", SEGUE_ITEM_RESOURCE},
    [LIST_TEMPLATES] = {"resources/templates/list", "resourceTemplates", "uriTemplate",
                        SEGUE_ITEM_RESOURCE_TEMPLATE},
    [LIST_PROMPTS] = {"prompts/list", "prompts", "name", SEGUE_ITEM_PROMPT},
};

/* ---- items ---- */

static void free_item(item *i)
{
    source_unref(i->source);
    free(i->key);
    free(i->name);
    free(i->json);
    free(i);
}

/* The server calls this function when it no longer uses the item. */
static void item_unused(void *user)
{
    free_item(user);
}

static bool is_named(int list)
{
    return list == LIST_TOOLS || list == LIST_PROMPTS;
}

/* Writes the description of an item for the proxy's clients. The name gets the prefix, or
 * the name and description of the configuration replace those of the upstream. */
static void write_item(text *out, const item *i, json value, const tool_rule *rule)
{
    static const char *const name[] = {"name", NULL};
    static const char *const both[] = {"name", "description", NULL};
    bool described = rule && rule->description;
    text_add_str(out, "{");
    if (is_named(i->list)) {
        text_add_key(out, "name");
        text_add_quoted(out, i->key, strlen(i->key));
    }
    if (described) {
        text_add_key(out, "description");
        text_add_quoted(out, rule->description, strlen(rule->description));
    }
    text_add_members(out, value, !is_named(i->list) ? NULL : described ? both : name);
    text_add_str(out, "}");
}

static void read_hints(item *i, json value)
{
    json hints = json_get(value, "annotations");
    i->read_only = json_is_true(json_get(hints, "readOnlyHint"));
    i->idempotent = json_is_true(json_get(hints, "idempotentHint"));
}

/* Notes whether the results of a tool may grow: the tool says so, or the results of
 * its tasks arrive in segments. */
static void read_growth(item *i, json value)
{
    const features *can = &i->source->can;
    json hint = json_get(json_get(value, "annotations"), "streamingHint");
    json support = json_get(json_get(value, "execution"), "taskSupport");
    bool may_be_task = json_is(support, "optional") || json_is(support, "required");
    i->streams =
        json_is_true(hint) || can->event_streams || (can->streamed_tasks && may_be_task);
}

static bool name_item(item *i, const tool_rule *rule)
{
    text key = {.p = NULL};
    if (is_named(i->list))
        text_add_str(&key, i->source->config->prefix ? i->source->config->prefix : "");
    text_add_str(&key, rule && rule->rename ? rule->rename : i->name);
    i->key = key.p;
    return !key.failed;
}

static item *make_item(source *s, int list, json value, bool *hidden)
{
    text out = {.p = NULL};
    item *i = calloc(1, sizeof *i);
    if (!i)
        return NULL;
    i->source = s;
    source_ref(s);
    i->list = list;
    i->name = json_string(json_get(value, lists[list].key));
    if (!i->name) {
        log_event(SEGUE_LOG_WARNING, "item_invalid", s->config->name,
                  "%s has an item without a \"%s\"", lists[list].method, lists[list].key);
        free_item(i);
        *hidden = true;
        return NULL;
    }
    const tool_rule *rule = list == LIST_TOOLS ? config_rule(s->config, i->name) : NULL;
    *hidden = rule && rule->hidden;
    i->timeout_ms = rule && rule->timeout_ms ? rule->timeout_ms : s->config->timeout_ms;
    i->repeat = rule ? rule->repeat : REPEAT_BY_HINT;
    read_hints(i, value);
    read_growth(i, value);
    bool ok = name_item(i, rule);
    if (ok)
        write_item(&out, i, value, rule);
    i->json = out.p;
    if (ok && !out.failed && !*hidden)
        return i;
    free_item(i);
    return NULL;
}

static segue_item_options options_of(const item *i)
{
    const config *c = &i->source->proxy->config;
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = (void *)(uintptr_t)i;
    options.free_user = item_unused;
    options.on_call = relay_resource;
    if (i->list == LIST_TOOLS) {
        options.on_call = relay_tool;
        options.task = SEGUE_TASK_MAY;
        options.promote_after_ms = c->task_after_ms > 0 ? c->task_after_ms : 0;
        /* after a crash, relay_resume decides what happens with the call */
        options.flags = SEGUE_TOOL_RESTARTABLE | SEGUE_TOOL_RESUMABLE;
        if (!c->cancel_on_close)
            options.flags |= SEGUE_TOOL_STORED;
        if (i->streams) /* SEP-1905: clients get each segment when it is made */
            options.flags |= SEGUE_TOOL_INCREMENTAL;
    } else if (i->list == LIST_PROMPTS) {
        options.on_call = relay_prompt;
        options.on_completion = i->source->can.completions ? relay_completion : NULL;
    } else if (i->list == LIST_TEMPLATES) {
        options.visibility = SEGUE_LISTED_ONLY;
        options.on_completion = i->source->can.completions ? relay_completion : NULL;
    }
    return options;
}

/* Adds the item to the proxy's server, which owns the item from now on. */
static void add_item(source *s, item *i)
{
    segue_item_options options = options_of(i);
    segue_error *error = NULL;
    segue_status status = segue_server_add(s->service->server, lists[i->list].type,
                                           i->json, strlen(i->json), &options, &error);
    if (status == SEGUE_OK) {
        item **end = &s->items;
        while (*end)
            end = &(*end)->next;
        *end = i;
        i->listed = true;
        return;
    }
    if (status == SEGUE_E_EXISTS)
        s->lacking |= 1u << i->list;
    log_event(SEGUE_LOG_WARNING, "item_refused", s->config->name, "%s is left out: %s",
              i->key,
              error ? segue_error_read(error)->message : segue_status_name(status));
    segue_error_free(error);
    free_item(i);
}

/* Removes an item from the proxy's server. Calls of the item continue. */
static void remove_item(source *s, item *i)
{
    item **link = &s->items;
    while (*link != i)
        link = &(*link)->next;
    *link = i->next;
    i->listed = false;
    segue_server_remove(s->service->server, lists[i->list].type, i->key);
}

/* ---- comparing ---- */

static void remove_list(source *s, int list)
{
    for (item *i = s->items, *next; i; i = next) {
        next = i->next;
        if (i->list == list)
            remove_item(s, i);
    }
}

static item *find_same(source *s, const item *wanted)
{
    for (item *i = s->items; i; i = i->next)
        if (i->list == wanted->list && !strcmp(i->key, wanted->key))
            return i;
    return NULL;
}

/* Lets the other sources of the service have names that this source no longer has. */
static void offer_names(const source *s)
{
    for (source *other = s->service->sources; other; other = other->next) {
        unsigned lacking = other->lacking;
        if (other == s || !lacking || !other->upstreams->open)
            continue; /* a session that opens reads all lists */
        other->lacking = 0;
        catalog_read(other, lacking);
    }
}

/* Adds, changes and removes items of one list of the proxy's server, so that the list
 * equals the items that were read. */
static void compare(source *s, int list, json read)
{
    json value;
    bool some_went = false;
    s->lacking &= ~(1u << list);
    for (item *i = s->items; i; i = i->next)
        i->seen = i->list != list;
    for (size_t at = 0; json_next(read, &at, NULL, &value);) {
        bool hidden = false;
        item *fresh = make_item(s, list, value, &hidden);
        if (!fresh)
            continue;
        item *old = find_same(s, fresh);
        if (old && !strcmp(old->json, fresh->json)) {
            old->seen = true;
            old->timeout_ms = fresh->timeout_ms;
            old->repeat = fresh->repeat;
            free_item(fresh);
            continue;
        }
        if (old)
            remove_item(s, old);
        fresh->seen = true;
        add_item(s, fresh);
    }
    for (item *i = s->items, *next; i; i = next) {
        next = i->next;
        if (i->seen)
            continue;
        remove_item(s, i);
        some_went = true;
    }
    if (some_went)
        offer_names(s);
}

/* ---- URIs that are in no list ---- */

#define ANY_URI "{+uri}"

/* Adds a template that matches every URI. The proxy's server then declares resources, and
 * clients can read URIs that no list contains, such as URIs in results. The template
 * belongs to the first source that has resources. */
static void add_any(source *s)
{
    static const char json_text[] = "{\"uriTemplate\":\"" ANY_URI "\",\"name\":\"any\"}";
    for (source *other = s->service->sources; other; other = other->next)
        if (other->any)
            return;
    item *i = calloc(1, sizeof *i);
    if (!i)
        return;
    i->source = s;
    source_ref(s);
    i->list = LIST_TEMPLATES;
    segue_item_options options = options_of(i);
    options.visibility = SEGUE_SERVED_ONLY;
    options.on_completion = NULL;
    if (segue_server_add(s->service->server, SEGUE_ITEM_RESOURCE_TEMPLATE, json_text,
                         sizeof json_text - 1, &options, NULL) == SEGUE_OK)
        s->any = i;
    else
        free_item(i);
}

/* Gives the template of a source that ends to another source. */
static void pass_any_on(source *s)
{
    segue_server_remove(s->service->server, SEGUE_ITEM_RESOURCE_TEMPLATE, ANY_URI);
    s->any = NULL;
    for (source *other = s->service->sources; other; other = other->next)
        if (other != s && other->can.resources)
            add_any(other);
}

/* ---- reading ---- */

static void next_list(source *s);

static bool has_list(const source *s, int list)
{
    if (list == LIST_TOOLS)
        return s->can.tools;
    return list == LIST_PROMPTS ? s->can.prompts : s->can.resources;
}

static void show_list(source *s, int list, const text *read)
{
    if (!s->service->server || read->failed)
        return;
    compare(s, list, (json){read->p, read->len});
    if (list == LIST_RESOURCES)
        clients_subscribe_anew(s->service);
}

void catalog_show(source *s)
{
    for (int list = 0; list < LISTS; list++) {
        if (s->unshown[list].p)
            show_list(s, list, &s->unshown[list]);
        text_free(&s->unshown[list]);
    }
}

static void forget_unshown(source *s)
{
    for (int list = 0; list < LISTS; list++)
        text_free(&s->unshown[list]);
}

static void list_is_read(source *s)
{
    text *unshown = &s->unshown[s->reading];
    text_add_str(&s->listing, "]");
    if (s->stage == SOURCE_OFFERED) {
        show_list(s, s->reading, &s->listing);
        text_free(&s->listing);
    } else {
        text_free(unshown);
        *unshown = s->listing;
        s->listing = (text){.p = NULL};
    }
    s->reading = -1;
    next_list(s);
}

static bool ask_page(source *s, json cursor);

/* Takes the items of one page. Returns the cursor of the next page; empty when this was
 * the last page. */
static json take_page(source *s, json result)
{
    json page = json_get(result, lists[s->reading].member), value;
    for (size_t at = 0; json_next(page, &at, NULL, &value);) {
        if (s->listed++ >= ITEMS_MAX)
            continue;
        text_add_str(&s->listing, s->listed > 1 ? "," : "");
        text_add_json(&s->listing, value);
    }
    if (s->listed > ITEMS_MAX) {
        log_event(SEGUE_LOG_WARNING, "list_too_long", s->config->name,
                  "%s has more than %d items, and the rest is left out",
                  lists[s->reading].method, ITEMS_MAX);
        return (json){NULL, 0};
    }
    return json_get(result, "nextCursor");
}

/* The source that should be replaced goes on, because the new one has no lists. */
static void fail_to_replace(source *s, const char *why)
{
    snprintf(s->upstreams->last_error, sizeof s->upstreams->last_error, "%s: %s",
             lists[s->reading].method, why);
    catalog_lost(s);
}

static void on_page(void *user, segue_request *request, segue_status status,
                    const char *result, size_t len, const segue_error *error)
{
    source *s = user;
    (void)request;
    if (s->upstreams && (status == SEGUE_OK || status == SEGUE_E_REMOTE))
        upstream_set_lost(s->upstreams, false);
    if (s->reading < 0)
        return;
    if (status != SEGUE_OK) {
        log_event(SEGUE_LOG_WARNING, "list_failed", s->config->name, "%s: %s",
                  lists[s->reading].method, segue_error_read(error)->message);
        if (s->replaces) {
            fail_to_replace(s, segue_error_read(error)->message);
            return;
        }
        /* the list could not be read, so the items of the last reading are kept */
        s->reading = -1;
        text_free(&s->listing);
        next_list(s);
        return;
    }
    json cursor = take_page(s, (json){result, len});
    if (!cursor.n || *cursor.p != '"' || !ask_page(s, cursor))
        list_is_read(s);
}

static bool ask_page(source *s, json cursor)
{
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    text params = {.p = NULL};
    segue_session *session = s->upstreams ? s->upstreams->session : NULL;
    if (cursor.n) {
        text_add_str(&params, "{\"cursor\":");
        text_add_json(&params, cursor);
        text_add_str(&params, "}");
    }
    events.user = s;
    events.on_complete = on_page;
    options.timeout_ms = s->proxy->config.start_timeout_ms;
    bool ok = session && !params.failed &&
              segue_request_start(session, lists[s->reading].method, params.p, params.len,
                                  &options, &events, NULL, NULL) == SEGUE_OK;
    text_free(&params);
    return ok;
}

static void next_list(source *s)
{
    while (s->reading < 0 && s->due) {
        int list = 0;
        while (!(s->due & 1u << list))
            list++;
        s->due &= ~(1u << list);
        s->reading = list;
        s->listed = 0;
        text_free(&s->listing);
        text_add_str(&s->listing, "[");
        if (!has_list(s, list) || !ask_page(s, (json){NULL, 0}))
            s->reading = -1;
    }
    if (s->reading >= 0)
        return;
    if (s->stage != SOURCE_STARTING) {
        readiness_update(s->proxy); /* a source that had failed can be used now */
    } else {
        log_event(SEGUE_LOG_DEBUG, "lists_read", s->config->name, "its lists were read");
        source_enter(s, SOURCE_READY);
        source_settled(s);
    }
}

void catalog_read(source *s, unsigned wanted)
{
    s->due |= wanted;
    if (s->stage == SOURCE_FAILED)
        source_enter(s, s->replaces ? SOURCE_READY : SOURCE_OFFERED);
    next_list(s);
}

void catalog_lost(source *s)
{
    bool was_starting = s->stage == SOURCE_STARTING;
    s->reading = -1;
    s->due = 0;
    text_free(&s->listing);
    if (s->stage == SOURCE_FAILED)
        return;
    if (!s->peer || s->replaces) {
        forget_unshown(s);
        source_enter(s, SOURCE_FAILED);
    } else if (was_starting) {
        source_enter(s, SOURCE_READY);
    }
    if (was_starting)
        source_settled(s);
}

void catalog_open(source *s)
{
    if (s->can.resources)
        add_any(s);
}

void catalog_remove(source *s)
{
    s->reading = -1; /* an answer that is still to come is ignored */
    s->due = 0;
    text_free(&s->listing);
    forget_unshown(s);
    for (int list = 0; list < LISTS; list++)
        remove_list(s, list);
    if (s->any)
        pass_any_on(s);
    offer_names(s);
}

void catalog_free(source *s)
{
    text_free(&s->listing);
    forget_unshown(s);
}
