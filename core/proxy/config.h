/* What the arguments and the configuration file say. */
#ifndef PROXY_CONFIG_H
#define PROXY_CONFIG_H

#include <segue/segue.h>

#include "text.h"

/* When a call whose answer was lost may be sent to the upstream again. */
typedef enum repeat_policy {
    REPEAT_BY_HINT = 0, /* when the tool's annotations allow it and are trusted */
    REPEAT_NEVER,
    REPEAT_ALWAYS /* the configuration says that the tool may run twice */
} repeat_policy;

/* What the configuration says about one tool. */
typedef struct tool_rule {
    struct tool_rule *next;
    char *name;        /* the name at the upstream */
    char *rename;      /* the name below; NULL = unchanged */
    char *description; /* NULL = unchanged */
    bool hidden;
    int64_t timeout_ms; /* 0 = that of the upstream */
    repeat_policy repeat;
} tool_rule;

/* One upstream of the configuration: a program or a URL. */
typedef struct source_config {
    struct source_config *next;
    char *name;
    char *prefix; /* before the names of its tools and prompts */
    char **argv;  /* NULL-terminated; NULL = it has a URL */
    char **env;   /* "NAME=value" in addition to the inherited ones; NULL = none */
    char *dir;
    char *url;
    char **headers; /* "Name: value", NULL-terminated; NULL = none */
    bool trust_hints;
    int64_t timeout_ms; /* the longest time of one call; 0 = no limit */
    tool_rule *rules;
} source_config;

/* How many upstreams a source has. */
typedef enum sharing { PER_ALL = 0, PER_PRINCIPAL } sharing;

typedef struct config {
    source_config *sources;
    /* below */
    char *listen; /* HOST:PORT or unix:PATH; NULL = standard input and output */
    segue_listen_options http;
    segue_bearer_options *bearer; /* segue_auth.h; NULL = no tokens */
    char *store;                  /* NULL, a file, or redis://... */
    /* calls */
    bool cancel_on_close;
    int64_t task_after_ms; /* -1 = a call becomes a task at once where a client asks */
    int64_t heartbeat_ms;  /* 0 = none */
    bool handle;
    sharing per;
    int32_t max_upstreams; /* the largest number of instances of one upstream */
    int64_t idle_ms;       /* an unused instance ends after this time */
    int64_t start_timeout_ms;
    /* for upstreams of the file that say nothing else */
    bool trust_hints;
    int64_t timeout_ms;
    /* the program */
    char *file; /* of --config */
    bool log_json;
    int32_t log_level; /* a segue_log_level */
    bool check;
} config;

/* Reads a file of the form {"mcpServers":{NAME:{...}}} into config->sources. False after
 * an error, which was printed. */
bool config_read_file(config *c, segue_runtime *runtime, const char *path);
/* Adds an upstream. NULL without memory. */
source_config *config_add(config *c, const char *name);
tool_rule *config_rule(const source_config *s, const char *tool);
void config_free(config *c);
void config_free_sources(source_config *sources);

/* Copies a NULL-terminated list of texts; config_free_list frees it. */
char **config_copy_list(char *const *texts);
void config_free_list(char **texts);

#endif
