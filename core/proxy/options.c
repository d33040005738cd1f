#include "options.h"

#include "limits.h"

#include <segue/segue_auth.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE                                                                            \
    "usage: segue-proxy [options] -- COMMAND [ARGUMENT...]\n"                            \
    "       segue-proxy [options] URL\n"                                                 \
    "       segue-proxy [options] --config FILE\n"

/* the column where the texts of --help begin, and the last column */
#define HELP_COLUMN 24
#define HELP_WIDTH 79

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

/* ---- what the options do ---- */

/* What the options change while the arguments are read. */
typedef struct reading {
    config *c;
    char **headers;
    size_t header_count;
    int64_t timeout_ms;
    bool trust_hints;
    bool help;
    bool version;
    segue_bearer_options bearer;
    uint64_t given; /* a set of 1 << index in the table: the options that were given */
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
TEXT_OPTION(take_tokens, r->c->http.tokens_file)
TEXT_OPTION(take_metrics_path, r->c->http.metrics_path)
TEXT_OPTION(take_board_path, r->c->http.board_path)

#define FLAG_OPTION(name, place)                                                         \
    static const char *name(reading *r, const char *value)                               \
    {                                                                                    \
        (void)value;                                                                     \
        place = true;                                                                    \
        return NULL;                                                                     \
    }
FLAG_OPTION(take_cors, r->c->http.cors)
FLAG_OPTION(take_board_read_only, r->c->http.board_read_only)
FLAG_OPTION(take_board_redact, r->c->http.board_redact)
FLAG_OPTION(take_handle, r->c->handle)
FLAG_OPTION(take_trust_hints, r->trust_hints)
FLAG_OPTION(take_check, r->c->check)
FLAG_OPTION(take_help, r->help)
FLAG_OPTION(take_version, r->version)

static const char *take_client_ca(reading *r, const char *value)
{
    r->c->http.client_ca_file = value;
    r->c->http.client_cert_required = 1;
    return NULL;
}

/* Splits an address of the form HOST:PORT, [HOST]:PORT, PORT, unix:PATH or
 * systemd[:NAME]. where: is changed, and belongs to the configuration. */
static bool read_address(segue_listen_options *http, char *where)
{
    if (!strncmp(where, "unix:", 5) || !strncmp(where, "systemd", 7)) {
        http->address = where;
        return true;
    }
    char *colon = strrchr(where, ':'), *end;
    long port = strtol(colon ? colon + 1 : where, &end, 10);
    if (*end || end == (colon ? colon + 1 : where) || port < 0 || port > 65535)
        return false;
    http->port = (int32_t)port;
    http->address = NULL;
    if (!colon)
        return true;
    *colon = 0;
    size_t len = strlen(where);
    if (len > 1 && *where == '[' && where[len - 1] == ']') {
        where[len - 1] = 0;
        where++;
    }
    http->address = !*where                       ? "0.0.0.0"
                    : !strcmp(where, "localhost") ? "127.0.0.1"
                                                  : where;
    return true;
}

static const char *take_listen(reading *r, const char *value)
{
    free(r->c->listen);
    r->c->listen = copy_string(value);
    return r->c->listen && read_address(&r->c->http, r->c->listen)
               ? NULL
               : "this is not HOST:PORT, such as 127.0.0.1:8000, or unix:PATH, or "
                 "systemd";
}

static const char *take_store(reading *r, const char *value)
{
    if (config_store_kind(value) == STORE_UNKNOWN)
        return "this is not a file, redis://HOST:PORT or postgresql://HOST/DATABASE";
    free(r->c->store);
    r->c->store = copy_string(value);
    return NULL;
}

static const char *take_config(reading *r, const char *value)
{
    r->c->file = (char *)(uintptr_t)value;
    return NULL;
}

static const char *take_seal_key(reading *r, const char *value)
{
    unsigned char more;
    FILE *file = fopen(value, "re");
    if (!file)
        return strerror(errno);
    r->c->has_seal_key = fread(r->c->seal_key, 1, SEAL_KEY_SIZE, file) == SEAL_KEY_SIZE &&
                         fread(&more, 1, 1, file) == 0;
    fclose(file);
    return r->c->has_seal_key ? NULL
                              : "this is not a file of 32 random bytes; this makes one: "
                                "head -c 32 /dev/urandom > FILE";
}

#define TIME_OPTION(name, place)                                                         \
    static const char *name(reading *r, const char *value)                               \
    {                                                                                    \
        return read_time(value, &place) ? NULL : "this is not a time, such as 20s";      \
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
        return "this is not a header, such as 'Authorization: Bearer X'";
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
    else if (!strcmp(value, "session"))
        r->c->per = PER_SESSION;
    else
        return "this is not all, principal or session";
    return NULL;
}

static const char *take_on_close(reading *r, const char *value)
{
    r->c->cancel_on_close = !strcmp(value, "cancel");
    return r->c->cancel_on_close || !strcmp(value, "keep") ? NULL
                                                           : "this is not keep or cancel";
}

static const char *take_max_upstreams(reading *r, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);
    r->c->max_upstreams = (int32_t)number;
    return *end || number < 1 || number > 100000 ? "this is not a number from 1 to 100000"
                                                 : NULL;
}

static const char *take_log(reading *r, const char *value)
{
    r->c->log_json = !strcmp(value, "json");
    return r->c->log_json || !strcmp(value, "text") ? NULL : "this is not text or json";
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
    return "this is not debug, info, warning or error";
}

/* ---- the table ---- */

static const struct option {
    const char *name;  /* NULL = the entry is the title of a section */
    const char *value; /* the name of the value; "" = the option has no value */
    take_fn take;
    const char *text;
} table[] = {
#define SECTION(title) {NULL, NULL, NULL, title},
#define OPTION(name, value, take, text) {name, value, take, text},
#include "options.def"
#undef SECTION
#undef OPTION
};

#define OPTIONS (sizeof table / sizeof *table)
_Static_assert(OPTIONS <= 64, "reading.given has one bit for each entry");

static const struct option *find_option(const char *name, size_t len)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (table[i].name && strlen(table[i].name) == len &&
            !strncmp(table[i].name, name, len))
            return &table[i];
    return NULL;
}

/* Prints a text word by word from the column HELP_COLUMN on. at: the present column. */
static void print_text(const char *words, int at)
{
    if (at >= HELP_COLUMN) {
        printf("\n");
        at = 0;
    }
    while (*words) {
        int len = (int)strcspn(words, " ");
        if (at + 1 + len > HELP_WIDTH) {
            printf("\n");
            at = 0;
        }
        if (at < HELP_COLUMN) {
            printf("%*s", HELP_COLUMN - at, "");
            at = HELP_COLUMN;
        } else {
            printf(" ");
            at++;
        }
        printf("%.*s", len, words);
        at += len;
        words += len;
        words += strspn(words, " ");
    }
    printf("\n");
}

static int print_help(void)
{
    printf("%s\nStands in front of MCP servers, and makes their calls durable, resumable "
           "and\nstreamed, in every revision of the protocol.\n",
           USAGE);
    for (size_t i = 0; i < OPTIONS; i++) {
        if (!table[i].name) {
            printf("\n%s:\n", table[i].text);
            continue;
        }
        int at =
            printf("  %s%s%s", table[i].name, *table[i].value ? " " : "", table[i].value);
        print_text(table[i].text, at);
    }
    printf(
        "\nTimes are a number with ms, s, m or h. Exit status: 0 ended well, 1 failed, "
        "2 wrong\narguments, 3 no upstream can be used.\n");
    return 0;
}

static int print_version(void)
{
    printf("segue-proxy %s\n", segue_version());
    return 0;
}

/* Takes the option at *at, and its value. Returns -1, or the exit status when the
 * arguments are wrong. */
static int take_option(reading *r, int argc, char **argv, int *at)
{
    const char *name = argv[*at], *equals = strchr(name, '='), *why;
    const struct option *o =
        find_option(name, equals ? (size_t)(equals - name) : strlen(name));
    bool has_value = o && *o->value;
    if (!o)
        return usage("unknown option ", name);
    if (equals && !has_value)
        return usage("there is a value after an option that has none: ", name);
    if (has_value && !equals && *at + 1 == argc)
        return usage("a value is missing after ", name);
    const char *value = !has_value ? NULL : equals ? equals + 1 : argv[++*at];
    why = o->take(r, value);
    r->given |= UINT64_C(1) << (o - table);
    if (!why)
        return -1;
    fprintf(stderr, "segue-proxy: %s: '%s': %s\n", o->name, value ? value : "", why);
    return 2;
}

/* Options that have no effect without another option. */
static const struct {
    const char *name;
    const char *needed;
} needs[] = {
    {"--path", "--listen"},
    {"--cert", "--listen"},
    {"--key", "--cert"},
    {"--client-ca", "--cert"},
    {"--hosts", "--listen"},
    {"--origins", "--listen"},
    {"--cors", "--listen"},
    {"--issuer", "--listen"},
    {"--tokens", "--listen"},
    {"--jwks-url", "--issuer"},
    {"--jwks-file", "--issuer"},
    {"--resource", "--issuer"},
    {"--scopes", "--issuer"},
    {"--metrics-path", "--listen"},
    {"--board-path", "--listen"},
    {"--board-read-only", "--board-path"},
    {"--board-redact", "--board-path"},
};

static bool is_given(const reading *r, const char *name)
{
    return r->given >> (find_option(name, strlen(name)) - table) & 1;
}

/* Returns -1, or the exit status when an option was given without the one that it
 * needs. */
static int check_needs(const reading *r)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        if (!is_given(r, needs[i].name) || is_given(r, needs[i].needed))
            continue;
        fprintf(stderr, "segue-proxy: %s needs %s\n", needs[i].name, needs[i].needed);
        return 2;
    }
    if (is_given(r, "--tokens") && is_given(r, "--issuer"))
        return usage("--tokens and --issuer exclude each other", "");
    return -1;
}

static int refuse_path(const char *option, const char *path, const char *why)
{
    if (!why)
        return -1;
    fprintf(stderr, "segue-proxy: %s: '%s': %s\n", option, path, why);
    return 2;
}

/* Returns -1, or 2 when an option names no usable path. */
static int check_paths(const config *c)
{
    const char *metrics = c->http.metrics_path, *board = c->http.board_path;
    const char *path = c->http.path;
    int status = -1;
    if (metrics)
        status =
            refuse_path("--metrics-path", metrics, config_check_own_path(c, metrics));
    if (status < 0 && board)
        status = refuse_path("--board-path", board, config_check_own_path(c, board));
    if (status < 0 && path)
        status = refuse_path("--path", path, config_check_path(c, path));
    return status;
}

/* Reads the options up to the first argument that is not an option, and sets *at to the
 * index of that argument. Returns -1, or the exit status when the program must end. */
static int take_options(reading *r, int argc, char **argv, int *at)
{
    for (*at = 1; *at < argc; ++*at) {
        if (*argv[*at] != '-' || !strcmp(argv[*at], "--"))
            return -1;
        int status =
            !strcmp(argv[*at], "-h") ? print_help() : take_option(r, argc, argv, at);
        if (status >= 0 || r->help || r->version)
            return r->help ? print_help() : r->version ? print_version() : status;
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

static int take_upstream(reading *r, int argc, char **argv, int at)
{
    bool is_command = at < argc && !strcmp(argv[at], "--");
    if (r->c->file && at < argc)
        return usage("the upstreams are in the file of --config; remove the argument ",
                     argv[at]);
    if (r->c->file && r->headers)
        return usage("the file of --config has \"headers\"; remove --header", "");
    if (r->c->file)
        return -1;
    if (is_command && at + 1 == argc)
        return usage("a command is missing after --", "");
    if (!is_command && (at + 1 != argc || !config_is_url(argv[at])))
        return at == argc
                   ? usage("name an upstream: a command after --, a URL, or --config", "")
                   : usage("put -- before a command; this is neither an option nor an "
                           "http or https URL: ",
                           argv[at]);
    if (is_command && r->headers)
        return usage("--header needs a URL; this is a command: ", argv[at + 1]);
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
    s->path = copy_string(config_default_path(r->c));
    s->trust_hints = r->trust_hints;
    s->timeout_ms = r->timeout_ms;
    return (is_command ? s->argv != NULL : s->url != NULL) && s->prefix && s->path ? -1
                                                                                   : 1;
}

static int take_bearer(reading *r)
{
    if (!r->bearer.authorization_servers)
        return -1;
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
    c->http.live_path = "/health/live";
    int status = take_options(&r, argc, argv, &at);
    if (status < 0)
        status = check_needs(&r);
    if (status < 0)
        status = check_paths(c);
    if (status < 0)
        status = take_upstream(&r, argc, argv, at);
    if (status < 0)
        status = take_bearer(&r);
    c->trust_hints = r.trust_hints;
    c->timeout_ms = r.timeout_ms;
    free(r.headers);
    c->http.drain_ms = c->drain_ms ? c->drain_ms : 1;
    c->http.idle_drain_ms = IDLE_DRAIN_MS;
    return status;
}
