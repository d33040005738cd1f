#include "options.h"

#include <segue/segue_auth.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE                                                                            \
    "usage: segue-proxy [options] -- COMMAND [ARGUMENT...]\n"                            \
    "       segue-proxy [options] URL\n"                                                 \
    "       segue-proxy [options] --config FILE\n"

static const char help[] = USAGE
    "\n"
    "Stands in front of MCP servers, and makes their calls durable, resumable and\n"
    "streamed, in every revision of the protocol.\n"
    "\n"
    "The side of the clients:\n"
    "  --listen HOST:PORT    serve Streamable HTTP at /mcp; default: standard input and\n"
    "                        output. Also unix:PATH and systemd\n"
    "  --path PATH           path of the endpoint instead of /mcp\n"
    "  --cert FILE           certificate chain (PEM) for TLS\n"
    "  --key FILE            key of the certificate; default: in the file of --cert\n"
    "  --client-ca FILE      require client certificates of this authority\n"
    "  --hosts NAMES         allowed names in Host, separated by commas\n"
    "  --origins ORIGINS     allowed origins, separated by commas\n"
    "  --cors                web pages of allowed origins may call\n"
    "  --issuer URL          require a JWT of this authorization server\n"
    "  --jwks-url URL        keys of the authorization server\n"
    "  --jwks-file FILE      keys of the authorization server, in a file\n"
    "  --resource URL        the URL by which clients know the endpoint\n"
    "  --scopes SCOPES       scopes that every request needs, separated by blanks\n"
    "\n"
    "Calls:\n"
    "  --store FILE|URL      keep calls in a SQLite file, at redis://HOST:PORT or at\n"
    "                        postgresql://HOST/DATABASE\n"
    "  --on-close keep|cancel\n"
    "                        a call whose client closes its connection continues\n"
    "                        (default), or is cancelled\n"
    "  --task-after TIME     a call that runs longer becomes a task, if the client\n"
    "                        supports tasks; default 20s\n"
    "  --handle              answer a call that runs longer with a handle, if the\n"
    "                        client does not support tasks\n"
    "  --heartbeat TIME      report progress at this interval; default 15s, 0 = never\n"
    "  --trust-hints         send a call again whose tool says that this is harmless\n"
    "  --timeout TIME        the longest time of one call; default: no limit\n"
    "\n"
    "The side of the upstreams (MCP servers):\n"
    "  --config FILE         the upstreams, in the form {\"mcpServers\":{NAME:{...}}}\n"
    "  --header 'NAME: TEXT' send this header to the upstream at URL\n"
    "  --per all|principal   one upstream for all, or one for each principal\n"
    "  --max-upstreams N     the largest number of upstreams; default 100\n"
    "  --idle TIME           end an upstream that is unused for this time; default: "
    "never\n"
    "  --start-timeout TIME  the longest time to wait for the upstreams; default 60s\n"
    "\n"
    "Other:\n"
    "  --drain TIME          how long calls may continue after SIGTERM; default 10s\n"
    "  --log text|json       form of the log on standard error\n"
    "  --log-level LEVEL     debug, info, warning (default) or error\n"
    "  --check               start the upstreams, print what they offer, and end\n"
    "  --help, --version\n"
    "\n"
    "Times are a number with ms, s, m or h. Exit status: 0 ended well, 1 failed, 2 "
    "wrong\n"
    "arguments, 3 no upstream can be used.\n";

static int usage(const char *why, const char *what)
{
    fprintf(stderr, "segue-proxy: %s%s\n%s", why, what, USAGE);
    return 2;
}

/* Reads a duration: a number with the unit ms, s, m or h. A number without a unit counts
 * in seconds. Returns false when the text is malformed. */
static bool read_time(const char *words, int64_t *ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;
    double number = strtod(words, &end);
    if (end == words || !(number >= 0 && number < 1e9))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) != 0)
            continue;
        *ms = (int64_t)(number * (double)units[i].ms);
        return true;
    }
    return false;
}

/* ---- options with a value ---- */

/* What the options change while the arguments are read. */
typedef struct reading {
    config *c;
    char **headers;
    size_t header_count;
    int64_t timeout_ms;
    bool trust_hints;
    segue_bearer_options bearer;
} reading;

typedef const char *(*take_fn)(reading *r, const char *value);

#define TEXT_OPTION(name, place)                                                         \
    static const char *name(reading *r, const char *value)                               \
    {                                                                                    \
        place = value;                                                                   \
        return NULL;                                                                     \
    }
TEXT_OPTION(take_path, r->c->http.path)
TEXT_OPTION(take_cert, r->c->http.cert_file)
TEXT_OPTION(take_key, r->c->http.key_file)
TEXT_OPTION(take_hosts, r->c->http.hosts)
TEXT_OPTION(take_origins, r->c->http.origins)
TEXT_OPTION(take_issuer, r->bearer.authorization_servers)
TEXT_OPTION(take_jwks_url, r->bearer.jwks_url)
TEXT_OPTION(take_jwks_file, r->bearer.jwks_file)
TEXT_OPTION(take_resource, r->bearer.resource)
TEXT_OPTION(take_scopes, r->bearer.required_scopes)

static const char *take_client_ca(reading *r, const char *value)
{
    r->c->http.client_ca_file = value;
    r->c->http.client_cert_required = 1;
    return NULL;
}

static const char *take_listen(reading *r, const char *value)
{
    r->c->listen = copy_string(value);
    return NULL;
}

static const char *take_store(reading *r, const char *value)
{
    r->c->store = copy_string(value);
    return NULL;
}

static const char *take_config(reading *r, const char *value)
{
    r->c->file = (char *)(uintptr_t)value;
    return NULL;
}

#define TIME_OPTION(name, place)                                                         \
    static const char *name(reading *r, const char *value)                               \
    {                                                                                    \
        return read_time(value, &place) ? NULL : "is not a time, such as 20s";           \
    }
TIME_OPTION(take_task_after, r->c->task_after_ms)
TIME_OPTION(take_heartbeat, r->c->heartbeat_ms)
TIME_OPTION(take_timeout, r->timeout_ms)
TIME_OPTION(take_idle, r->c->idle_ms)
TIME_OPTION(take_start_timeout, r->c->start_timeout_ms)
TIME_OPTION(take_drain, r->c->drain_ms)

static const char *take_header(reading *r, const char *value)
{
    char **grown = realloc(r->headers, (r->header_count + 2) * sizeof *grown);
    if (!grown || !strchr(value, ':'))
        return "is not a header, such as 'Authorization: Bearer X'";
    r->headers = grown;
    grown[r->header_count++] = (char *)(uintptr_t)value;
    grown[r->header_count] = NULL;
    return NULL;
}

static const char *take_per(reading *r, const char *value)
{
    if (!strcmp(value, "all"))
        r->c->per = PER_ALL;
    else if (!strcmp(value, "principal"))
        r->c->per = PER_PRINCIPAL;
    else
        return "is not all or principal";
    return NULL;
}

static const char *take_on_close(reading *r, const char *value)
{
    r->c->cancel_on_close = !strcmp(value, "cancel");
    return r->c->cancel_on_close || !strcmp(value, "keep") ? NULL
                                                           : "is not keep or cancel";
}

static const char *take_max_upstreams(reading *r, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);
    r->c->max_upstreams = (int32_t)number;
    return *end || number < 1 || number > 100000 ? "is not a number from 1 to 100000"
                                                 : NULL;
}

static const char *take_log(reading *r, const char *value)
{
    r->c->log_json = !strcmp(value, "json");
    return r->c->log_json || !strcmp(value, "text") ? NULL : "is not text or json";
}

static const char *take_log_level(reading *r, const char *value)
{
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    for (int32_t i = 0; i < 4; i++) {
        if (strcmp(value, levels[i]) != 0)
            continue;
        r->c->log_level = i;
        return NULL;
    }
    return "is not debug, info, warning or error";
}

static const struct {
    const char *name;
    take_fn take;
} with_value[] = {
    {"--listen", take_listen},
    {"--path", take_path},
    {"--cert", take_cert},
    {"--key", take_key},
    {"--client-ca", take_client_ca},
    {"--hosts", take_hosts},
    {"--origins", take_origins},
    {"--issuer", take_issuer},
    {"--jwks-url", take_jwks_url},
    {"--jwks-file", take_jwks_file},
    {"--resource", take_resource},
    {"--scopes", take_scopes},
    {"--store", take_store},
    {"--on-close", take_on_close},
    {"--task-after", take_task_after},
    {"--heartbeat", take_heartbeat},
    {"--timeout", take_timeout},
    {"--config", take_config},
    {"--header", take_header},
    {"--per", take_per},
    {"--max-upstreams", take_max_upstreams},
    {"--idle", take_idle},
    {"--start-timeout", take_start_timeout},
    {"--drain", take_drain},
    {"--log", take_log},
    {"--log-level", take_log_level},
};

static take_fn find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof with_value / sizeof *with_value; i++)
        if (strlen(with_value[i].name) == len && !strncmp(with_value[i].name, name, len))
            return with_value[i].take;
    return NULL;
}

static bool take_flag(reading *r, const char *name)
{
    if (!strcmp(name, "--cors"))
        r->c->http.cors = 1;
    else if (!strcmp(name, "--trust-hints"))
        r->trust_hints = true;
    else if (!strcmp(name, "--handle"))
        r->c->handle = true;
    else if (!strcmp(name, "--check"))
        r->c->check = true;
    else
        return false;
    return true;
}

/* Reads the options up to the first argument that is not an option, and sets *at to the
 * index of that argument. Returns -1, or the exit status when the program must end. */
static int take_options(reading *r, int argc, char **argv, int *at)
{
    for (*at = 1; *at < argc; ++*at) {
        const char *name = argv[*at], *equals = strchr(name, '='), *why;
        take_fn take = find_option(name, equals ? (size_t)(equals - name) : strlen(name));
        if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
            fputs(help, stdout);
            return 0;
        }
        if (!strcmp(name, "--version")) {
            printf("segue-proxy %s\n", segue_version());
            return 0;
        }
        if (*name != '-' || !strcmp(name, "--"))
            return -1;
        if (take_flag(r, name))
            continue;
        if (!take)
            return usage("unknown option ", name);
        if (!equals && *at + 1 == argc)
            return usage("a value is missing after ", name);
        why = take(r, equals ? equals + 1 : argv[++*at]);
        if (why) {
            fprintf(stderr, "segue-proxy: %s %s\n", name, why);
            return 2;
        }
    }
    return -1;
}

/* ---- the upstream of the arguments ---- */

/* Returns a name for an upstream: the last part of its command's path, or the host of its
 * URL. */
static const char *name_of(const char *where)
{
    const char *slash = strrchr(where, '/');
    return slash && slash[1] ? slash + 1 : where;
}

static bool is_url(const char *where)
{
    return !strncmp(where, "http://", 7) || !strncmp(where, "https://", 8);
}

static int take_upstream(reading *r, int argc, char **argv, int at)
{
    bool is_command = at < argc && !strcmp(argv[at], "--");
    if (r->c->file)
        return at < argc ? usage("the upstreams are in the file of --config; remove the "
                                 "argument ",
                                 argv[at])
                         : -1;
    if (is_command && at + 1 == argc)
        return usage("a command is missing after --", "");
    if (!is_command && (at + 1 != argc || !is_url(argv[at])))
        return at == argc
                   ? usage("name an upstream: a command after --, a URL, or --config", "")
                   : usage("put -- before a command; this is neither an option nor a "
                           "URL: ",
                           argv[at]);
    source_config *s = config_add(r->c, name_of(argv[is_command ? at + 1 : at]));
    if (!s)
        return 1;
    if (is_command)
        s->argv = config_copy_list(argv + at + 1);
    else
        s->url = copy_string(argv[at]);
    if (r->headers)
        s->headers = config_copy_list(r->headers);
    s->prefix = copy_string("");
    s->trust_hints = r->trust_hints;
    s->timeout_ms = r->timeout_ms;
    return (is_command ? s->argv != NULL : s->url != NULL) && s->prefix ? -1 : 1;
}

static int take_bearer(reading *r)
{
    if (!r->bearer.authorization_servers)
        return -1;
    if (!r->c->listen)
        return usage("--issuer needs --listen", "");
    r->c->bearer = malloc(sizeof *r->c->bearer);
    if (!r->c->bearer)
        return 1;
    *r->c->bearer = r->bearer;
    r->c->http.bearer = r->c->bearer;
    return -1;
}

int options_read(config *c, int argc, char **argv)
{
    reading r = {.c = c};
    int at;
    r.bearer = SEGUE_BEARER_OPTIONS_INIT;
    *c = (config){.task_after_ms = 20000,
                  .heartbeat_ms = 15000,
                  .max_upstreams = 100,
                  .start_timeout_ms = 60000,
                  .drain_ms = 10000,
                  .log_level = SEGUE_LOG_WARNING};
    c->http = SEGUE_LISTEN_OPTIONS_INIT;
    c->http.health_path = "/health";
    c->http.ready_path = "/health/ready";
    int status = take_options(&r, argc, argv, &at);
    if (status < 0)
        status = take_upstream(&r, argc, argv, at);
    if (status < 0)
        status = take_bearer(&r);
    c->trust_hints = r.trust_hints;
    c->timeout_ms = r.timeout_ms;
    free(r.headers);
    c->http.drain_ms = c->drain_ms ? c->drain_ms : 1;
    return status;
}
