/* The settings of the proxy, from its arguments and its configuration file. */
#ifndef PROXY_CONFIG_H
#define PROXY_CONFIG_H

#include <segue/segue.h>

#include "text.h"

#define SEAL_KEY_SIZE 32 /* bytes */

/* Whether a call whose answer was lost may be sent to the upstream again. */
typedef enum repeat_policy {
    /* only if the configuration trusts the tool's annotations and they allow a
     * repetition */
    REPEAT_BY_HINT = 0,
    REPEAT_NEVER,
    REPEAT_ALWAYS /* always: the configuration says that the tool may run twice */
} repeat_policy;

/* The settings of the configuration for one tool. */
typedef struct tool_rule {
    struct tool_rule *next;
    char *name;        /* the tool's name at the upstream */
    char *rename;      /* the tool's name for the proxy's clients; NULL = unchanged */
    char *description; /* the tool's description for clients; NULL = unchanged */
    bool hidden;
    /* the longest duration of one call in ms; 0 = the limit of the upstream */
    int64_t timeout_ms;
    repeat_policy repeat;
} tool_rule;

/* One upstream of the configuration: a program or a URL. */
typedef struct source_config {
    struct source_config *next;
    char *name;
    char *path; /* the path of the listener at which clients find the upstream */
    /* text that is put before the names of the upstream's tools and prompts */
    char *prefix;
    /* the command with its arguments, NULL-terminated; NULL = the upstream has a URL */
    char **argv;
    /* texts "NAME=value", NULL-terminated, that are added to the inherited environment;
     * NULL = nothing is added */
    char **env;
    char *dir;
    char *url;
    bool sse; /* true when the URL is that of an event stream of 2024-11-05 (HTTP+SSE) */
    /* texts "Name: value", NULL-terminated, that are sent as HTTP headers; NULL = no
     * headers */
    char **headers;
    bool trust_hints;
    int64_t timeout_ms; /* the longest duration of one call in ms; 0 = no limit */
    tool_rule *rules;
} source_config;

/* PER_ALL: one upstream of a source serves all clients. PER_PRINCIPAL: each principal
 * gets its own upstream. PER_SESSION: each session of a client gets its own upstream;
 * clients of 2026-07-28 over HTTP, which have no sessions, share one per principal. */
typedef enum sharing { PER_ALL = 0, PER_PRINCIPAL, PER_SESSION } sharing;

typedef struct config {
    source_config *sources;
    /* The next members are about the server for the proxy's clients. */
    /* the address for clients: HOST:PORT or unix:PATH; NULL = standard input and
     * output */
    char *listen;
    segue_listen_options http;
    /* the check of access tokens (segue_auth.h); NULL = clients need no token */
    segue_bearer_options *bearer;
    char *store; /* the store: a file, or a URL such as redis://...; NULL = in memory */
    /* the key that proxies on the same store share, so that a session of one goes on at
     * another one */
    unsigned char seal_key[SEAL_KEY_SIZE];
    bool has_seal_key;
    /* The next members are about calls and upstreams. */
    bool cancel_on_close;
    /* time in ms after which a running call becomes a task; -1 = a call is a task from
     * the start if its client asks for a task */
    int64_t task_after_ms;
    /* pause in ms between two reports of progress to a client; 0 = no reports */
    int64_t heartbeat_ms;
    bool handle;
    sharing per;
    /* the largest number of upstreams (sessions) that one source (an entry of the
     * configuration) has at once */
    int32_t max_upstreams;
    int64_t idle_ms; /* time in ms after which an unused upstream is closed */
    int64_t start_timeout_ms;
    int64_t drain_ms; /* time in ms for which calls may continue after SIGTERM */
    /* These two members are used for upstreams whose entry in the file does not set
     * them. */
    bool trust_hints;
    int64_t timeout_ms;
    /* The next members are about the program itself. */
    char *file; /* the configuration file (--config); NULL = no file */
    bool log_json;
    int32_t log_level; /* a segue_log_level */
    bool check;
} config;

/* What a value of --store names. */
typedef enum store_kind {
    STORE_UNKNOWN = 0,
    STORE_SQLITE,
    STORE_REDIS,
    STORE_POSTGRES
} store_kind;
store_kind config_store_kind(const char *where);
/* True when the text is an http or https URL with a host. */
bool config_is_url(const char *where);

/* Returns the path of upstreams that name none. */
const char *config_default_path(const config *c);
/* Returns what is wrong with a path for upstreams; NULL = nothing. */
const char *config_check_path(const config *c, const char *path);
/* Returns what is wrong with the path of the metrics or of the board; NULL = nothing. */
const char *config_check_own_path(const config *c, const char *path);
/* Gives each upstream without a prefix one. Upstreams that share a path get their names
 * as prefixes, so that their tools have different names. */
bool config_set_prefixes(config *c);

/* Reads a file of the form {"mcpServers":{NAME:{...}}} into config->sources. On failure,
 * prints the error and returns false. */
bool config_read_file(config *c, segue_runtime *runtime, const char *path);
/* Adds an upstream. Returns NULL when out of memory. */
source_config *config_add(config *c, const char *name);
tool_rule *config_rule(const source_config *s, const char *tool);
void config_free(config *c);
void config_free_sources(source_config *sources);
/* True when both entries name the same program or URL with the same environment and
 * headers at the same path, so that a session of one serves the other. */
bool config_is_same_server(const source_config *a, const source_config *b);
/* True when, besides, the tools are named, described and limited in the same way. */
bool config_is_same(const source_config *a, const source_config *b);

/* Copies a NULL-terminated list of texts. config_free_list frees the copy. */
char **config_copy_list(char *const *texts);
void config_free_list(char **texts);

#endif
