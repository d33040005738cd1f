/* Prints what --check finds out about each upstream: its revision, its features, its
 * faults, and how to correct the faults. */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_counts(const source *s)
{
    static const char *const words[LISTS] = {"tools", "resources", "templates",
                                             "prompts"};
    for (int list = 0; list < LISTS; list++) {
        size_t count = 0;
        for (const item *i = s->items; i; i = i->next)
            count += i->list == list;
        printf("%s%zu %s", list ? ", " : "  ", count, words[list]);
    }
    printf("\n");
}

static void print_tools(const source *s)
{
    for (const item *i = s->items; i; i = i->next) {
        if (i->list != LIST_TOOLS)
            continue;
        printf("  tool %s%s%s\n", i->key, i->read_only ? ", reads only" : "",
               i->idempotent ? ", idempotent" : "");
    }
}

static void print_open(const source *s)
{
    json peer = {s->peer, strlen(s->peer)}, info = json_get(peer, "serverInfo");
    char *version = json_string(json_get(peer, "protocolVersion"));
    char *name = json_string(json_get(info, "name"));
    char *release = json_string(json_get(info, "version"));
    json can = json_get(peer, "capabilities"), key, value;
    printf("%s: ok, %s %s, protocol %s\n  can:", s->config->name, name ? name : "?",
           release ? release : "?", version ? version : "?");
    for (size_t at = 0; json_next(can, &at, &key, &value);)
        printf(" %.*s", (int)key.n - 2, key.p + 1);
    printf("\n");
    print_counts(s);
    print_tools(s);
    free(version);
    free(name);
    free(release);
}

static void print_failed(const source *s)
{
    const upstream *u = s->upstreams;
    printf("%s: failed, %s\n", s->config->name, u->last_error);
    for (size_t i = upstream_first_error(u); i < u->error_count; i++)
        printf("  | %s\n", u->errors[i % STDERR_LINES]);
    if (s->config->argv)
        printf("  to correct this: run %s yourself, and read what it prints\n",
               s->config->argv[0]);
    else
        printf("  to correct this: check that %s answers, that its path is right (often "
               "/mcp), and whether it needs a header (--header)\n",
               s->config->url);
}

bool check_print(const proxy *p)
{
    bool all = true;
    for (const source *s = source_next(p, NULL); s; s = source_next(p, s)) {
        if (s->stage == SOURCE_FAILED)
            print_failed(s);
        else
            print_open(s);
        if (p->services->next ||
            strcmp(s->service->path, config_default_path(&p->config)))
            printf("  path %s\n", s->service->path);
        all &= s->stage != SOURCE_FAILED;
    }
    fflush(stdout);
    return all;
}
