/* The serving side of a conversation while the application is asked for the principal.
 * The lock is open then, and the connection or even the server may end. Also a peer that
 * sends and never reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/server/call.h"
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

/* ---- a peer that never reads ---- */

static void free_when_cancelled(void *user, segue_call *call, segue_status status,
                                const char *json, size_t len)
{
    (void)user, (void)json, (void)len;
    assert_int_equal(status, SEGUE_E_CANCELLED);
    host.engine.host.lock(&host);
    sgi_call_free(call);
    host.engine.host.unlock(&host);
}

static void ask(void *user, segue_call *call)
{
    enum { MESSAGE = 4000 };
    static const char
        begin[] = "{\"message\":\"",
        end[] = "\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}";
    char params[MESSAGE + 100];
    (void)user;
    memset(params, 'x', sizeof params);
    memcpy(params, begin, sizeof begin - 1);
    memcpy(params + MESSAGE, end, sizeof end - 1);
    host.engine.host.lock(&host);
    segue_status status =
        sgi_call_require_input(call, NULL, "elicitation/create", params,
                               MESSAGE + sizeof end - 1, free_when_cancelled, NULL, NULL);
    host.engine.host.unlock(&host);
    assert_int_equal(status, SEGUE_OK);
}

static void feed(const char *line)
{
    sgi_conn_add_input(conn, line, strlen(line));
    fake_host_deliver(&host);
}

/* Each round leaves a question and its withdrawal unsent, and no response. Without a
 * limit on them the memory would grow with each round. */
static void questions_of_cancelled_calls_count_while_they_are_unsent(void **state)
{
    enum { ROUNDS = 2000 };
    segue_item_options item = {.struct_size = sizeof item, .on_call = ask};
    char line[200];
    int rounds = 0;
    (void)state;
    leaves = false;
    fake_host_deliver(&host);
    assert_int_equal(
        sgi_item_add(server, SEGUE_ITEM_TOOL, SGI_STR("{\"name\":\"ask\"}"), &item, NULL),
        SEGUE_OK);
    feed("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
         "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},"
         "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n");
    feed("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    for (; rounds < ROUNDS && sgi_conn_wants_input(conn); rounds++) {
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"ask\"}}\n",
                 rounds + 1);
        feed(line);
        snprintf(line, sizeof line,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                 "\"params\":{\"requestId\":%d}}\n",
                 rounds + 1);
        feed(line);
    }
    assert_in_range(rounds, 200, ROUNDS - 1);
    assert_in_range(conn->out.len, host.engine.max_queue, 2 * host.engine.max_queue);
    sgi_conn_detach(conn);
    fake_server_end(server);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_is_read_before_it_is_known_who_asks),
        CASE(conversation_and_server_may_go_while_it_is_asked),
        CASE(questions_of_cancelled_calls_count_while_they_are_unsent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
