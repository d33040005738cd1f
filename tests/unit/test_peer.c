/* The serving side of a conversation while the application is asked for the principal.
 * The lock is open then, and the connection or even the server may end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/server/peer.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

static test_mem tm;
static fake_host host;
static segue_server *server;
static sgi_conn *conn;
static bool leaves; /* the connection ends while the application is asked */
static int asked;

static segue_status who_is_it(void *user, segue_transport *transport,
                              const char **principal)
{
    assert_ptr_equal(user, &asked);
    assert_ptr_equal(transport, &tm);
    assert_int_equal(host.locked, 0);
    asked++;
    *principal = "somebody";
    if (leaves) { /* as another thread would do it */
        host.engine.host.lock(&host);
        sgi_conn_detach(conn);
        sgi_server_unref(server);
        host.engine.host.unlock(&host);
    }
    return SEGUE_OK;
}

static int set_up(void **state)
{
    (void)state;
    asked = 0;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 51);
    server = fake_server_new(&host);
    server->options.principal = who_is_it;
    server->options.user = &asked;
    assert_int_equal(sgi_server_accept(server, &tm, &conn), SEGUE_OK);
    sgi_conn_start(conn);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void nothing_is_read_before_it_is_known_who_asks(void **state)
{
    (void)state;
    leaves = false;
    assert_false(sgi_conn_wants_input(conn));
    fake_host_deliver(&host);
    assert_int_equal(asked, 1);
    assert_true(sgi_conn_wants_input(conn));
    assert_true(host.inputs > 0);
    sgi_conn_detach(conn);
    fake_server_end(server);
}

static void conversation_and_server_may_go_while_it_is_asked(void **state)
{
    (void)state;
    leaves = true;
    fake_host_deliver(&host);
    assert_int_equal(asked, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_is_read_before_it_is_known_who_asks),
        CASE(conversation_and_server_may_go_while_it_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
