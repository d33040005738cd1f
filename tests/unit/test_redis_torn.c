/* Redis is killed while it writes a commit, and is killed again. Redis up to 8 cuts off
 * the torn command of the transaction, and not the transaction (valkey-io/valkey, pull
 * request 4342). Its file then has a MULTI without an EXEC, and the second start discards
 * the commit that follows. label: threads */
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "support/redis_kit.h"

#include <cmocka.h>

static segue_status append(segue_store *store, uint32_t n, uint64_t seq)
{
    char data[TEST_ENTRY_MAX];
    size_t len = test_entry_fill(data, n, seq);
    return test_commit_one(store, test_write_append(n, seq, data, len));
}

/* Adds the beginning of a transaction to the server's file, as a write that a kill has
 * cut off. */
static void tear(const redis_server *server)
{
    static const char torn[] = "*1\r\n$5\r\nMULTI\r\n"
                               "*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\n1\r\n"
                               "*1\r\n$4\r\nEX";
    char pattern[300];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/appendonlydir/*.incr.aof",
             redis_server_directory(server));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    FILE *file = fopen(found.gl_pathv[found.gl_pathc - 1], "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(torn, sizeof torn - 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    globfree(&found);
}

static void restart(redis_server *server, bool is_torn)
{
    redis_server_signal(server, SIGKILL);
    if (is_torn)
        tear(server);
    assert_true(redis_server_again(server));
}

static void rewrite(redis_server *server)
{
    assert_true(redis_server_do(server, "BGREWRITEAOF") >= 0);
    redis_kit_until(redis_server_info(server, "aof_rewrite_in_progress") == 0 &&
                    redis_server_info(server, "aof_rewrite_scheduled") == 0);
}

static void torn_transaction_is_a_hole_and_a_rewrite_repairs_it(void **state)
{
    (void)state;
    for (int repairs = 0; repairs < 2; repairs++) {
        redis_server_options options = {.appendfsync = "always"};
        redis_server *own;
        assert_true(redis_server_start(&options, &own));
        segue_store *store = redis_kit_open_lasting(redis_server_url(own));
        test_must_create(store, 1);
        test_must_append(store, 1, 1);
        restart(own, true);
        if (repairs)
            rewrite(own);
        test_must_append(store, 1, 2);
        restart(own, false);
        segue_status status = append(store, 1, 3);
        /* a server without the defect has entry 2 without a repair, too */
        if (repairs)
            assert_int_equal(status, SEGUE_OK);
        if (status != SEGUE_OK)
            assert_int_equal(status, SEGUE_E_STATE);
        test_assert_log(store, 1, status == SEGUE_OK ? 3 : 1);
        sgi_store_unref(store);
        redis_server_stop(own);
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(torn_transaction_is_a_hole_and_a_rewrite_repairs_it),
    };
    return cmocka_run_group_tests_name("redis torn", cases, NULL, NULL);
}
