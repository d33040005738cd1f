/* Operations that a server knows, and when it forgets them: defects that the
 * interleavings of tests/model found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/fake_host.h"
#include "support/test_mem.h"

static test_mem tm;
static fake_host host;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 31);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

/* The store takes longer than the task lives. A request during this time must not get
 * another copy of the operation, because that copy would never end. */
static void an_end_that_is_not_stored_is_not_forgotten(void **state)
{
    (void)state;
    segue_server *server = fake_server_new(&host);
    sgi_op *op = fake_task_new(server);
    op->ttl_ms = 1000;
    sgi_server_start_ttl(op);
    fake_store_settle(&host);
    assert_int_equal(sgi_op_end(op, SGI_ENTRY_RESULT, SGI_STR("{}")), SEGUE_OK);
    fake_host_advance(&host, 2000);
    assert_true(sgi_op_is_known(op));
    fake_store_settle(&host);
    fake_host_advance(&host, 0);
    assert_false(sgi_op_is_known(op));
    sgi_op_unref(op);
    fake_server_end(server);
}

/* A server ends while it still looks for operations of an earlier server: it releases
 * these operations, and none of them runs. */
static void a_server_dies_while_it_recovers(void **state)
{
    uint8_t id[SEGUE_STORE_ID_SIZE];
    (void)state;
    segue_server *server = fake_server_new(&host);
    sgi_op *op = fake_task_new(server);
    memcpy(id, op->id, sizeof id);
    fake_store_settle(&host);
    sgi_op_unref(op);
    fake_server_end(server);
    int32_t releases = fake_store_find(&host, id)->releases;
    server = fake_server_new(&host);
    server->stage = SGI_SERVER_NEW;
    sgi_server_start_recovery(server);
    assert_int_equal(server->stage, SGI_SERVER_RECOVERING);
    fake_server_end(server);
    assert_int_equal(fake_store_find(&host, id)->releases, releases + 1);
    assert_int_equal(fake_store_find(&host, id)->last_seq, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_end_that_is_not_stored_is_not_forgotten),
        CASE(a_server_dies_while_it_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
