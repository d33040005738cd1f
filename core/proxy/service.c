#include "service.h"

#include "client.h"
#include "handle.h"
#include "limits.h"

#include <stdlib.h>
#include <string.h>

static service *find(const proxy *p, const char *path)
{
    for (service *v = p->services; v; v = v->next)
        if (v->stage != SERVICE_ENDED && !strcmp(v->path, path))
            return v;
    return NULL;
}

static void free_service(service *v)
{
    segue_store_free(v->store);
    clients_free(v);
    free(v->path);
    free(v);
}

void service_ref(service *v)
{
    v->refs++;
}

void service_unref(void *user)
{
    service *v = user, **link = &v->proxy->services;
    if (--v->refs || v->proxy->stage == PROXY_ENDING) /* services_free frees it */
        return;
    while (*link != v)
        link = &(*link)->next;
    *link = v->next;
    free_service(v);
}

/* The upstreams without a path of their own use the store as --store names it. */
static segue_status open_own_store(service *v, segue_error **error)
{
    const config *c = &v->proxy->config;
    bool is_default = !strcmp(v->path, config_default_path(c));
    char name[STORE_NAME_SIZE] = "";
    if (!c->store)
        return SEGUE_OK;
    if (!is_default)
        store_name_of(v->path, name);
    segue_status status = store_open(c->store, name, &v->store, error);
    if (status != SEGUE_OK)
        log_event(SEGUE_LOG_ERROR, "store_failed", NULL,
                  "the store%s%s cannot be opened: %s", is_default ? "" : " of the path ",
                  is_default ? "" : v->path,
                  *error ? segue_error_read(*error)->message : segue_status_name(status));
    return status;
}

service *service_at(proxy *p, const char *path, int *status)
{
    segue_error *error = NULL;
    service *v = find(p, path), **end = &p->services;
    if (v)
        return v;
    v = calloc(1, sizeof *v);
    if (!v) {
        *status = 1;
        return NULL;
    }
    *v = (service){.proxy = p, .refs = 1, .path = copy_string(path)};
    segue_status opened = v->path ? open_own_store(v, &error) : SEGUE_E_NOMEM;
    if (opened != SEGUE_OK) {
        segue_error_free(error);
        *status = exit_status(opened);
        free_service(v);
        return NULL;
    }
    while (*end)
        end = &(*end)->next;
    *end = v;
    return v;
}

/* ---- the server ---- */

/* The program ends with its last conversation when it serves standard input, and when it
 * drains. */
static void on_idle(void *user)
{
    service *v = user;
    proxy *p = v->proxy;
    v->idle = true;
    if (p->config.listen && p->stage != PROXY_DRAINING)
        return;
    for (v = p->services; v; v = v->next)
        if (v->stage != SERVICE_MADE && !v->idle)
            return;
    proxy_end(p, p->status);
}

/* Determines the principal of an errand; a segue_principal_fn. Other clients without a
 * token are anonymous. */
static segue_status on_principal(void *user, segue_transport *transport,
                                 const char **principal)
{
    *principal = handle_take_principal(user, transport);
    return SEGUE_OK;
}

static segue_status make_server(service *v, char *const texts[4], segue_error **error)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    const config *c = &v->proxy->config;
    options.name = texts[0] ? texts[0] : "segue-proxy";
    options.version = texts[1] ? texts[1] : segue_version();
    options.title = texts[2];
    options.instructions = texts[3];
    options.store = v->store;
    options.seal_key = c->has_seal_key ? c->seal_key : NULL;
    options.seal_key_len = c->has_seal_key ? SEAL_KEY_SIZE : 0;
    /* the lowest level, so that clients also get the log messages that an upstream sends
     * unasked */
    options.log_level = "debug";
    options.user = v;
    options.free_user = service_unref;
    options.on_idle = on_idle;
    /* an upstream may be away while the proxy starts: its calls wait for its tools */
    options.tool_wait_ms = TOOL_WAIT_MS;
    options.principal = c->handle ? on_principal : NULL;
    service_ref(v);
    segue_status status =
        segue_server_new(v->proxy->runtime, &options, &v->server, error);
    if (status != SEGUE_OK)
        service_unref(v);
    return status;
}

bool service_make_server(service *v, const source *only)
{
    segue_error *error = NULL;
    json peer = {only ? only->peer : NULL, only && only->peer ? strlen(only->peer) : 0};
    json info = json_get(peer, "serverInfo");
    char *texts[] = {json_string(json_get(info, "name")),
                     json_string(json_get(info, "version")),
                     json_string(json_get(info, "title")),
                     json_string(json_get(peer, "instructions"))};
    segue_status status = make_server(v, texts, &error);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    if (status != SEGUE_OK) {
        log_event(SEGUE_LOG_ERROR, "server_failed", NULL,
                  "the path %s cannot be served: %s", v->path,
                  error ? segue_error_read(error)->message : segue_status_name(status));
        segue_error_free(error);
        if (v->proxy->stage == PROXY_STARTING)
            proxy_end(v->proxy, 1);
        return false;
    }
    if (v->proxy->config.handle)
        handles_add_tools(v);
    if (!clients_watch(v))
        log_event(SEGUE_LOG_ERROR, "server_failed", NULL, "out of memory");
    return true;
}

/* ---- the life of a service ---- */

bool service_is_reached(const service *v)
{
    return v->stage == SERVICE_OPEN || v->stage == SERVICE_TOLD;
}

bool service_has_settled(const service *v)
{
    for (const source *s = v->sources; s; s = s->next)
        if (!source_has_settled(s))
            return false;
    return true;
}

/* Clients of the path get 404 from now on. The server answers the calls under way, and
 * leaves the operations of other servers in the store to those that have the tools. */
static void end(service *v)
{
    proxy *p = v->proxy;
    bool was_reached = service_is_reached(v);
    service_enter(v, SERVICE_ENDED);
    v->idle |= !was_reached; /* it has had no client, so on_idle does not come */
    if (was_reached && p->listener) {
        segue_listener_remove(p->listener, v->path);
        log_event(SEGUE_LOG_INFO, "path_removed", NULL,
                  "the path %s is no longer served; its calls continue", v->path);
    }
    handles_end(v);
    if (v->server)
        segue_server_close(v->server);
    segue_server_free(v->server);
    segue_store_free(v->store);
    v->server = NULL;
    v->store = NULL;
    service_unref(v);
}

void services_end_empty(proxy *p)
{
    for (service *v = p->services, *next; v && p->stage != PROXY_CHANGING; v = next) {
        next = v->next;
        if (v->stage != SERVICE_ENDED && !v->sources)
            end(v);
    }
}

void services_let_go(proxy *p)
{
    for (service *v = p->services; v; v = v->next) {
        segue_server_free(v->server);
        v->server = NULL;
    }
}

void services_free(proxy *p)
{
    proxy_enter(p, PROXY_ENDING);
    while (p->services) {
        service *v = p->services;
        p->services = v->next;
        sources_free(v);
        free_service(v);
    }
}
