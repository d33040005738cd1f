/* The fixture server of the stdio scenarios: serves its standard input until it ends.
 * Argument: a SQLite file; without it a memory store. SEGUE_FAULT in the environment says
 * where the store fails or kills the process (fault_store.h). */
#include "support/fault_store.h"
#include "support/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
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

static void gone(void *user)
{
    *(int *)user = 1;
}

int main(int argc, char **argv)
{
    segue_runtime_options options;
    segue_server_options server_options;
    segue_runtime *runtime;
    segue_store *store = NULL;
    segue_server *server;
    segue_transport *transport;
    segue_error *error = NULL;
    int over = 0;
    segue_struct_init(&options, sizeof options, SEGUE_STRUCT_RUNTIME_OPTIONS);
    options.log = log_line;
    segue_struct_init(&server_options, sizeof server_options,
                      SEGUE_STRUCT_SERVER_OPTIONS);
    server_options.name = "fixtures";
    server_options.version = "1";
    server_options.user = &over;
    server_options.free_user = gone;
    const char *plan = getenv("SEGUE_FAULT");
    if (plan) {
        fault_store_plan(fault_store_new_blocking(argc > 1 ? argv[1] : NULL, &store),
                         plan);
    } else if (argc > 1 &&
               segue_store_sqlite(argv[1], NULL, &store, &error) != SEGUE_OK) {
        fprintf(stderr, "%s\n", segue_error_message(error));
        return 1;
    }
    if (!store)
        segue_store_memory(NULL, &store);
    server_options.store = store;
    fixtures *f = fixtures_new(now_ms, NULL);
    if (segue_runtime_new(&options, &runtime, &error) != SEGUE_OK ||
        segue_server_new(runtime, &server_options, &server) != SEGUE_OK ||
        fixtures_add(f, runtime, server) != SEGUE_OK ||
        segue_transport_stdio(runtime, &transport) != SEGUE_OK ||
        segue_server_attach(server, transport) != SEGUE_OK)
        return 1;
    segue_store_free(store);
    segue_server_free(server);
    /* the server ends when its one conversation has ended and no call runs any more */
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
