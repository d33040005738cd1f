/* A primary, a replica that replaces it, and an address that leads to either. The replica
 * becomes a primary while the first server still takes commits. These commits are lost,
 * as with a replication that lags behind. In each run the same commits are lost. */
#include "support/redis_pair.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void direct_to(redis_pair *s, const redis_server *server)
{
    cutting_options options = {.target_port = redis_server_port(server)};
    if (s->proxy) {
        options.port = cutting_proxy_port(s->proxy);
        cutting_proxy_stop(s->proxy);
    }
    assert_true(cutting_proxy_start(&options, &s->proxy));
    snprintf(s->url, sizeof s->url, "%s", redis_kit_through(s->proxy));
}

/* Waits until the second server has all data of the first. */
static void sync_up(const redis_pair *s)
{
    redis_kit_until(redis_server_info(s->second, "master_last_io_seconds_ago") >= 0 &&
                    redis_server_info(s->second, "slave_repl_offset") ==
                        redis_server_info(s->first, "master_repl_offset"));
}

void redis_pair_begin(redis_pair *s)
{
    static const char *const extra[] = {"--repl-diskless-sync-delay", "0", NULL};
    redis_server_options options = {.extra = extra};
    *s = (redis_pair){0};
    assert_true(redis_server_start(&options, &s->first));
    assert_true(redis_server_start(&options, &s->second));
    assert_true(redis_server_do(s->second, "REPLICAOF 127.0.0.1 %d",
                                redis_server_port(s->first)) >= 0);
    sync_up(s); /* this gives the replica's data another replication id */
    direct_to(s, s->first);
}

void redis_pair_end(redis_pair *s)
{
    cutting_proxy_stop(s->proxy);
    redis_server_stop(s->first);
    redis_server_stop(s->second);
}

void redis_pair_part(redis_pair *s)
{
    sync_up(s);
    assert_true(redis_server_do(s->second, "REPLICAOF NO ONE") >= 0);
}

void redis_pair_fail_over(redis_pair *s)
{
    redis_server_signal(s->first, SIGKILL);
    direct_to(s, s->second);
}
