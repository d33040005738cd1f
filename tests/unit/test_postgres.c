/* The store suites on a PostgreSQL server, as a user with only the permissions that
 * core/README.md lists. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/news_suite.h"
#include "support/postgres_server.h"
#include "support/store_kit.h"
#include "support/store_suite.h"

#include <cmocka.h>

static postgres_server *server;

/* The schema is made by its owner; the servers then have the rights to use it. */
static bool add_user(void)
{
    segue_store *store = NULL;
    char message[300] = "";
    if (sgi_store_postgres_new(postgres_server_unix_url(server), NULL, &store, message,
                               sizeof message)) {
        print_error("%s\n", message);
        return false;
    }
    sgi_store_unref(store);
    return postgres_server_do(
               server, "CREATE ROLE store LOGIN; GRANT USAGE ON SCHEMA segue TO store; "
                       "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "
                       "segue TO store; REVOKE ALL ON SCHEMA public FROM PUBLIC") >= 0;
}

static segue_status open_postgres(const segue_store_options *options, segue_store **out)
{
    char message[300], url[240];
    snprintf(url, sizeof url, "%s&user=store", postgres_server_unix_url(server));
    segue_status status =
        sgi_store_postgres_new(url, options, out, message, sizeof message);
    if (status && status != SEGUE_E_NOMEM)
        print_error("%s\n", message);
    return status;
}

static void clear_postgres(void)
{
    postgres_server_do(server,
                       "TRUNCATE segue.owner, segue.lease, segue.operation, segue.log, "
                       "segue.garbage, segue.letter, segue.follow");
}

/* With an argument, only the cases run in which memory runs out. They take as long as all
 * others, because each connects to the server anew. */
int main(int argc, char **argv)
{
    static const store_suite suite = {"postgres", open_postgres, clear_postgres, 1000};
    if (!postgres_server_start(NULL, &server) || !add_user())
        return 1;
    (void)argv;
    int failures = argc > 1 ? store_suite_run_allocations(&suite)
                            : store_suite_run(&suite) + store_suite_run_bounds(&suite) +
                                  news_suite_run(&suite) + news_suite_run_shared(&suite);
    postgres_server_stop(server);
    return failures ? 1 : 0;
}
