/* The store suite on a Redis server, and what only Redis can show. label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/news_suite.h"
#include "support/redis_server.h"
#include "support/store_kit.h"
#include "support/store_suite.h"

#include <cmocka.h>

static redis_server *server;

static segue_status open_redis(const segue_store_options *options, segue_store **out)
{
    char message[300];
    segue_status status = sgi_store_redis_new(redis_server_unix_url(server), options, out,
                                              message, sizeof message);
    if (status && status != SEGUE_E_NOMEM)
        print_error("%s\n", message);
    return status;
}

static void clear_redis(void)
{
    redis_server_do(server, "FLUSHALL");
}

int main(void)
{
    static const store_suite suite = {"redis", open_redis, clear_redis};
    if (!redis_server_start(NULL, &server))
        return 1;
    int failures = store_suite_run(&suite) + store_suite_run_bounds(&suite) +
                   news_suite_run(&suite) + news_suite_run_shared(&suite);
    redis_server_stop(server);
    return failures ? 1 : 0;
}
