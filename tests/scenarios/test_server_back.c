/* A server process is killed in the middle of a task, and another server begins on the
 * same SQLite file and port. The client gets the next segment after one look for the
 * server (engine/client/probing.h), and nothing else on the way waits for a timer: the
 * clock of the new server stands still, and the clock of the client moves by one look.
 *
 * The first server is a child, so that the system ends it as it ends any killed process:
 * its connections, its listener, and its lock on the number of the owner. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "support/http_script.h"
#include "support/http_stage.h"
#include "support/sqlite_kit.h"

#include "base/thresholds.h"

#define OF_FIRST 3 /* segments that the first server sends */
#define LOOK_MS SGI_THRESHOLD(probe_first_ms)
#define SPREAD_MS 2 /* the random change of a pause of LOOK_MS */

/* ---- servers ---- */

static segue_call *held;

/* Sends a few segments in its first run. In its second run it sends one more and ends. */
static void count_on(void *user, segue_call *call)
{
    uint64_t done = 0;
    (void)user;
    bool again = segue_call_resumed(call, &done, NULL, NULL) == SEGUE_OK;
    for (int i = 0; i < (again ? 1 : OF_FIRST); i++)
        segue_call_send_text(call, "more ", 5, NULL);
    if (again) {
        segue_call_complete(call, NULL, NULL);
        segue_call_free(call);
    } else {
        held = call;
    }
}

static void add_count_on(segue_server *server)
{
    static const char tool[] = "{\"name\":\"count_on\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = count_on;
    options.flags = SEGUE_TOOL_INCREMENTAL | SEGUE_TOOL_RESTARTABLE;
    options.task = SEGUE_TASK_MUST;
    segue_server_add(server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &options, NULL);
}

/* port: 0 = a free one */
static void begin_server(http_stage *s, segue_store *store, int port)
{
    *s = (http_stage){.add = add_count_on, .store = store};
    s->listen.port = port;
    http_stage_begin(s);
}

/* The first server, which serves until it is killed. */
static void serve(int to, int from, uint32_t n)
{
    http_stage s;
    (void)from;
    (void)n;
    begin_server(&s, test_child_open(), 0);
    test_child_say(to, (uint64_t)s.port);
    while (segue_runtime_dispatch(s.rt, 1000, 0, NULL) == SEGUE_OK) {
    }
    TEST_CHILD_CHECK(held);
}

/* ---- the client ---- */

static void connect_client(kit *k, int port)
{
    char url[64];
    segue_http_options options = SEGUE_HTTP_OPTIONS_INIT;
    options.proxy = "";
    k->transport_gone = 1; /* the library's own transport is freed by itself */
    kit_prepare(k, 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/mcp", port);
    assert_int_equal(segue_transport_http(k->runtime, url, &options, &k->transport, NULL),
                     SEGUE_OK);
    kit_open(k, NULL);
}

#define UNTIL(k, condition)                                                              \
    for (int64_t until_ = script_deadline(); !(condition); kit_run(k))                   \
    script_check(until_, #condition, __FILE__, __LINE__)

/* ---- the tests ---- */

/* most_ms: the time that the client may need beyond the outage. */
static void goes_on_after(int64_t outage_ms, int64_t most_ms)
{
    kit k = {0};
    http_stage s;
    uint64_t port = 0;
    test_clear_directory();
    test_child first = test_child_start(serve, 0);
    assert_true(test_child_hear(&first, &port));
    connect_client(&k, (int)port);
    record *r = kit_call(&k, "count_on");
    UNTIL(&k, r->segments == OF_FIRST);
    /* the client tries at once, and may still find the listener of the dying process */
    assert_int_equal(kill(first.pid, SIGKILL), 0);
    UNTIL(&k, strstr(k.last_warning, "2 times in a row"));
    assert_int_equal(WTERMSIG(test_child_end(&first, 0)), SIGKILL);
    kit_advance(&k, outage_ms);

    segue_store *store = test_must_open("db");
    begin_server(&s, store, (int)port);
    int64_t began_ms = s.clock_ms;
    kit_advance(&k, most_ms);
    for (int64_t until = script_deadline(); !r->completed; kit_run(&k)) {
        http_stage_run(&s);
        script_check(until, "the end of the task", __FILE__, __LINE__);
    }
    assert_int_equal(s.clock_ms, began_ms);
    assert_int_equal(r->segments, OF_FIRST + 1);
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
    http_stage_end(&s);
    segue_store_free(store);
}

static void a_killed_server_costs_one_look(void **state)
{
    (void)state;
    goes_on_after(0, LOOK_MS + SPREAD_MS);
    goes_on_after(100, LOOK_MS + SPREAD_MS);
    goes_on_after(900, LOOK_MS + SPREAD_MS);
}

static void a_killed_server_that_was_away_costs_a_share(void **state)
{
    (void)state;
    goes_on_after(5000, 1000);
    goes_on_after(20000, 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_server_costs_one_look),
        cmocka_unit_test(a_killed_server_that_was_away_costs_a_share),
    };
    if (test_directory_make())
        return 1;
    int failures = cmocka_run_group_tests_name("server_back", tests, NULL, NULL);
    test_directory_remove();
    return failures ? 1 : 0;
}
