/* The store suites on a Redis server, as a user with only the permissions that
 * core/README.md lists. label: threads */
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

static const char *const rules[] = {
    "on >word ~{segue}:* resetchannels &{segue}:* -@all",
    "+evalsha +script|load +info +config|get +ping +select +subscribe +publish +time",
    "+get +set +getrange +del +unlink +exists +incr +pexpire",
    "+hget +hmget +hset +hdel +hlen +hgetall +hscan +hexists +hincrby",
    "+sadd +srem +smove +scard +smembers +srandmember +rpush +lrange +llen +ltrim",
    "+zadd +zrem +zcard +zrange +zrangebylex +zrevrangebylex",
    "+xadd +xlen +xrange +xdel",
};

static bool add_user(void)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        ok = redis_server_do(server, "ACL SETUSER store %s", rules[i]) >= 0 && ok;
    return ok;
}

static segue_status open_redis(const segue_store_options *options, segue_store **out)
{
    char message[300], url[140];
    snprintf(url, sizeof url, "%s?user=store&password=word",
             redis_server_unix_url(server));
    segue_status status = sgi_store_redis_new(url, options, out, message, sizeof message);
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
    static const store_suite suite = {"redis", open_redis, clear_redis, 1000};
    if (!redis_server_start(NULL, &server) || !add_user())
        return 1;
    int failures = store_suite_run(&suite) + store_suite_run_allocations(&suite) +
                   store_suite_run_bounds(&suite) + news_suite_run(&suite) +
                   news_suite_run_shared(&suite);
    redis_server_stop(server);
    return failures ? 1 : 0;
}
