/* The paths of the listener at which the upstreams of a configuration are found. */
#include "config.h"

#include <segue/segue_auth.h>

#include <string.h>

const char *config_default_path(const config *c)
{
    return c->http.path ? c->http.path : "/mcp";
}

static bool is_path(const char *path)
{
    for (const char *c = path; *c; c++)
        if (*c <= ' ' || *c >= 127 || *c == '?' || *c == '#')
            return false;
    return *path == '/';
}

static const char misformed[] = "has to begin with / and must not have blanks, ? or #";
static const char taken[] = "is a path that the proxy needs itself";

/* True for the paths of the health checks and of the metadata for authorization. */
static bool is_fixed_path(const config *c, const char *path)
{
    static const char known[] = "/.well-known/";
    return !strcmp(path, c->http.health_path) || !strcmp(path, c->http.ready_path) ||
           !strcmp(path, c->http.live_path) || !strncmp(path, known, sizeof known - 1);
}

static bool is_own_path(const config *c, const char *path)
{
    return is_fixed_path(c, path) ||
           (c->http.metrics_path && !strcmp(path, c->http.metrics_path)) ||
           (c->http.board_path && !strcmp(path, c->http.board_path));
}

const char *config_check_own_path(const config *c, const char *path)
{
    return !is_path(path) ? misformed : is_fixed_path(c, path) ? taken : NULL;
}

const char *config_check_path(const config *c, const char *path)
{
    if (!is_path(path))
        return misformed;
    if (is_own_path(c, path))
        return taken;
    if (!c->listen && !c->check)
        return "needs --listen, because a client at standard input and output has one "
               "server: remove the path, or add --listen";
    if (c->bearer && !c->bearer->resource && strcmp(path, config_default_path(c)) != 0)
        return "needs --resource, the URL with which all paths begin, such as "
               "https://mcp.example.com/";
    return NULL;
}

static bool has_neighbour(const config *c, const source_config *s)
{
    for (const source_config *other = c->sources; other; other = other->next)
        if (other != s && !strcmp(other->path, s->path))
            return true;
    return false;
}

bool config_set_prefixes(config *c)
{
    for (source_config *s = c->sources; s; s = s->next) {
        text prefix = {.p = NULL};
        bool several = has_neighbour(c, s);
        if (s->prefix)
            continue;
        text_add_str(&prefix, several ? s->name : "");
        text_add_str(&prefix, several ? "_" : "");
        if (prefix.failed)
            return false;
        s->prefix = prefix.p;
    }
    return true;
}
