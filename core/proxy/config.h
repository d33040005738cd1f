/* The settings from the arguments and the configuration file. */
#ifndef PROXY_CONFIG_H
#define PROXY_CONFIG_H

#include <segue/segue.h>

#include "text.h"

/* Whether a call whose answer was lost may be sent to the upstream again. */
typedef enum repeat_policy {
    REPEAT_BY_HINT = 0, /* only if the tool's annotations allow it and are trusted */
    REPEAT_NEVER,
    REPEAT_ALWAYS /* the configuration says that the tool may run twice */
} repeat_policy;

/* The settings of the configuration for one tool. */
typedef struct tool_rule {
    struct tool_rule *next;
    char *name;        /* the tool's name at the upstream */
    char *rename;      /* the tool's name for the proxy's clients; NULL = unchanged */
    char *description; /* NULL = unchanged */
    bool hidden;
    int64_t timeout_ms; /* the longest time of one call; 0 = the limit of the upstream */
    repeat_policy repeat;
} tool_rule;

/* One upstream of the configuration: a program or a URL. */
typedef struct source_config {
    struct source_config *next;
    char *name;
    char *prefix; /* text before the names of its tools and prompts */
    /* the command with its arguments, NULL-terminated; NULL = the upstream has a URL */
    char **argv;
    /* variables "NAME=value" that are added to the inherited environment; NULL = none */
    char **env;
    char *dir;
    char *url;
    char **headers; /* headers "Name: value", NULL-terminated; NULL = none */
    bool trust_hints;
    int64_t timeout_ms; /* the longest time of one call; 0 = no limit */
    tool_rule *rules;
} source_config;

/* Whether one upstream of a source serves all clients, or each principal gets its own. */
typedef enum sharing { PER_ALL = 0, PER_PRINCIPAL } sharing;

typedef struct config {
    source_config *sources;
    /* below */
    /* the address of the listener, HOST:PORT or unix:PATH; NULL = standard input and
     * output */
    char *listen;
    segue_listen_options http;
    /* options of segue_auth.h for access tokens; NULL = no tokens are needed */
    segue_bearer_options *bearer;
    char *store; /* the store: a file or redis://...; NULL = in memory */
    /* calls */
    bool cancel_on_close;
    /* after this time a running call becomes a task; -1 = at once, if its client asks for
     * a task */
    int64_t task_after_ms;
    int64_t heartbeat_ms; /* 0 = none */
    bool handle;
    sharing per;
    int32_t max_upstreams; /* the largest number of upstreams of one source */
    int64_t idle_ms;       /* an upstream that is not used ends after this time */
    int64_t start_timeout_ms;
    /* defaults for upstreams of the file that do not set these members */
    bool trust_hints;
    int64_t timeout_ms;
    /* the program */
    char *file; /* of --config */
    bool log_json;
    int32_t log_level; /* a segue_log_level */
    bool check;
} config;

/* Reads a file of the form {"mcpServers":{NAME:{...}}} into config->sources. On failure
 * prints the error and returns false. */
bool config_read_file(config *c, segue_runtime *runtime, const char *path);
/* Adds an upstream. Returns NULL when out of memory. */
source_config *config_add(config *c, const char *name);
tool_rule *config_rule(const source_config *s, const char *tool);
void config_free(config *c);
void config_free_sources(source_config *sources);

/* Copies a NULL-terminated list of texts. config_free_list frees the copy. */
char **config_copy_list(char *const *texts);
void config_free_list(char **texts);

#endif
