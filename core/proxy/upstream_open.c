/* Opens the transport to an upstream: starts its program, or connects to its URL. */
#include "proxy.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GUARD "segue-proxy-guard"

extern char **environ;

/* Returns a copy of the inherited environment with the configuration's variables. A
 * variable of the configuration replaces an inherited one of the same name. The caller
 * frees only the list, not the texts. */
static const char **make_env(char *const *more)
{
    size_t count = 0, own = 0;
    while (environ[count])
        count++;
    while (more[own])
        own++;
    const char **env = malloc((count + own + 1) * sizeof *env);
    if (!env)
        return NULL;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool replaced = false;
        for (size_t j = 0; j < own && !replaced; j++) {
            size_t name = (size_t)(strchr(more[j], '=') - more[j]) + 1;
            replaced = !strncmp(more[j], environ[i], name);
        }
        if (!replaced)
            env[n++] = environ[i];
    }
    for (size_t j = 0; j < own; j++)
        env[n++] = more[j];
    env[n] = NULL;
    return env;
}

/* Returns the path of the guard's program: the file GUARD beside this program, or where
 * the installation puts it. NULL = there is no such file, and this program is the guard,
 * too. room has PATH_MAX bytes. */
static const char *find_guard(char *room)
{
    static const char *const places[] = {GUARD, "../libexec/segue/" GUARD};
    ssize_t len = readlink("/proc/self/exe", room, PATH_MAX - 1);
    while (len > 0 && room[len - 1] != '/')
        len--;
    for (size_t i = 0; len > 0 && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(room + len, PATH_MAX - (size_t)len, "%s", places[i]);
        if (n < PATH_MAX - len && !access(room, X_OK))
            return room;
    }
    return NULL;
}

/* Writes the command that starts the guard. Returns its number of words. */
static size_t write_guard(const char **argv, char *room, const char *parent)
{
    size_t n = 0;
    const char *program = find_guard(room);
    argv[n++] = program ? program : "/proc/self/exe";
    if (!program)
        argv[n++] = "--guard";
    argv[n++] = parent;
    return n;
}

static segue_status spawn(upstream *u, segue_transport **out, segue_error **error)
{
    const source_config *c = u->source->config;
    segue_spawn_options options = SEGUE_SPAWN_OPTIONS_INIT;
    char parent[24], guard[PATH_MAX];
    size_t count = 0;
    while (c->argv[count])
        count++;
    const char **argv = malloc((count + 4) * sizeof *argv);
    const char **env = c->env ? make_env(c->env) : NULL;
    segue_status status = SEGUE_E_NOMEM;
    if (argv && (env || !c->env)) {
        snprintf(parent, sizeof parent, "%ld", (long)getpid());
        size_t first = write_guard(argv, guard, parent);
        for (size_t i = 0; i <= count; i++)
            argv[first + i] = c->argv[i];
        options.argv = argv;
        options.env = env;
        options.working_dir = c->dir;
        options.restart = 1;
        options.user = u;
        options.free_user = upstream_unref;
        options.on_stderr = upstream_take_error_line;
        u->refs++;
        status = segue_transport_spawn(u->source->proxy->runtime, &options, out, error);
        if (status != SEGUE_OK)
            u->refs--;
    }
    free(argv);
    free(env);
    return status;
}

static segue_status set_header(segue_transport *transport, const char *header,
                               segue_error **error)
{
    const char *colon = strchr(header, ':');
    char *name = colon ? strndup(header, (size_t)(colon - header)) : NULL;
    segue_status status = SEGUE_E_INVALID;
    if (name)
        status = segue_transport_set_header(transport, name,
                                            colon + 1 + strspn(colon + 1, " "), error);
    free(name);
    return status;
}

static segue_status connect_http(upstream *u, segue_transport **out, segue_error **error)
{
    const source_config *c = u->source->config;
    segue_transport *transport;
    segue_http_options options = SEGUE_HTTP_OPTIONS_INIT;
    options.http_sse = c->sse ? SEGUE_HTTP_SSE_ONLY : SEGUE_HTTP_SSE_AUTO;
    segue_status status = segue_transport_http(u->source->proxy->runtime, c->url,
                                               &options, &transport, error);
    if (status != SEGUE_OK)
        return status;
    for (size_t i = 0; c->headers && c->headers[i] && status == SEGUE_OK; i++)
        status = set_header(transport, c->headers[i], error);
    if (status == SEGUE_OK)
        *out = transport;
    else
        segue_transport_free(transport);
    return status;
}

segue_status upstream_connect(upstream *u, segue_transport **out, segue_error **error)
{
    return u->source->config->argv ? spawn(u, out, error) : connect_http(u, out, error);
}
