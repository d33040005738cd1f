/* The fixture server of the stdio scenarios: serves its standard input until that ends.
 * Argument: a SQLite file; without it a memory store. SEGUE_FAULT in the environment says
 * where the store fails or kills the process (fault_store.h). SEGUE_OPTIONS changes
 * options of the server: numbers by name, separated by blanks. */
#include "support/fault_store.h"
#include "support/fixtures.h"
#include "support/item_fixtures.h"
#include "support/model_fixtures.h"
#include "support/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_ms(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void log_line(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level >= SEGUE_LOG_ERROR || getenv("SEGUE_TEST_LOG"))
        fprintf(stderr, "fixture server: %s\n", text);
}

/* Gives every caller the anonymous principal, but through a function. */
static segue_status say_nobody(void *user, segue_transport *transport,
                               const char **principal)
{
    (void)user;
    (void)transport;
    *principal = NULL;
    return SEGUE_OK;
}

static int set_option(segue_server_options *options, const char *name, long long value)
{
    if (!strcmp(name, "principal"))
        options->principal = value ? say_nobody : NULL;
    else if (!strcmp(name, "page_size"))
        options->page_size = (int32_t)value;
    else if (!strcmp(name, "max_tasks"))
        options->max_tasks = (int32_t)value;
    else if (!strcmp(name, "max_ttl_ms"))
        options->max_ttl_ms = value;
    else if (!strcmp(name, "question_ttl_ms"))
        options->question_ttl_ms = value;
    else if (!strcmp(name, "dialects_on"))
        options->dialects_on = (uint32_t)value;
    else if (!strcmp(name, "dialects_off"))
        options->dialects_off = (uint32_t)value;
    else
        return 0;
    return 1;
}

static int set_options(segue_server_options *options, const char *text)
{
    char name[32];
    long long value;
    int n;
    for (; sscanf(text, " %31[a-z_]=%lld%n", name, &value, &n) == 2; text += n)
        if (!set_option(options, name, value))
            return 0;
    return !*text;
}

static void gone(void *user)
{
    *(int *)user = 1;
}

int main(int argc, char **argv)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_server_options server_options = SEGUE_SERVER_OPTIONS_INIT;
    segue_runtime *runtime;
    segue_store *store = NULL;
    segue_server *server;
    segue_transport *transport;
    segue_error *error = NULL;
    int over = 0;
    options.log = log_line;
    server_options.name = "fixtures";
    server_options.version = "1";
    server_options.user = &over;
    server_options.free_user = gone;
    server_options.principal = say_nobody;
    const char *differs = getenv("SEGUE_OPTIONS");
    if (differs && !set_options(&server_options, differs)) {
        fprintf(stderr, "fixture server: cannot be told: %s\n", differs);
        return 1;
    }
    const char *plan = getenv("SEGUE_FAULT");
    if (plan) {
        fault_store_plan(fault_store_new_blocking(argc > 1 ? argv[1] : NULL, &store),
                         plan);
    } else if (argc > 1 && world_open_sqlite(argv[1], &store, &error) != SEGUE_OK) {
        fprintf(stderr, "%s\n", segue_error_read(error)->message);
        return 1;
    }
    if (!store)
        segue_store_memory(NULL, &store);
    server_options.store = store;
    fixtures *f = fixtures_new(now_ms, NULL);
    if (segue_runtime_new(&options, &runtime, &error) != SEGUE_OK ||
        segue_server_new(runtime, &server_options, &server, NULL) != SEGUE_OK ||
        fixtures_add(f, runtime, server) != SEGUE_OK ||
        item_fixtures_add(runtime, server) != SEGUE_OK ||
        (server_options.question_ttl_ms &&
         model_tools_add(runtime, server) != SEGUE_OK) ||
        segue_transport_stdio(runtime, &transport) != SEGUE_OK ||
        segue_server_attach(server, transport, NULL) != SEGUE_OK)
        return 1;
    segue_store_free(store);
    segue_server_free(server);
    /* The server ends when its one conversation has ended and no call runs any more. */
    while (!over) {
        int64_t wait = fixtures_tick(f);
        if (segue_runtime_dispatch(runtime, wait, 0, NULL) != SEGUE_OK)
            break;
    }
    segue_runtime_free(runtime);
    fixtures_tick(f);
    fixtures_free(f);
    return 0;
}
