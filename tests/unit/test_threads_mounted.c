/* Exchanges by hand with a background runtime: several threads of the application give
 * requests, some of which they give up at once, while the loop waits on its own thread
 * and the callbacks run on the test's thread. The thread sanitizer is the main check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <segue/segue_ext.h>

#include "runtime/state.h"

enum { CALLERS = 3, CALLS = 200, KEPT = 1024 };

static segue_runtime *rt;
static segue_listener *listener;
static atomic_int ended, complete, greeted, refused;
static bool closes; /* true = a caller closes the listener half-way */
/* true = calls are answered later, when their answers have perhaps become streams */
static bool is_late;
/* true = each exchange is closed while its head is given */
static bool cuts;
static segue_call *kept[KEPT];
static size_t kept_first, kept_end;

static void answer(segue_call *call)
{
    segue_call_send_text(call, "Hello", 5, NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void greet(void *user, segue_call *call)
{
    (void)user;
    if (is_late)
        kept[kept_end++ % KEPT] = call;
    else
        answer(call);
}

static void on_head(void *user, segue_exchange *exchange, int32_t status,
                    const segue_http_field *headers, size_t count, const char *bytes,
                    size_t len)
{
    (void)user;
    (void)bytes;
    if (cuts)
        segue_exchange_closed(exchange);
    for (size_t i = 0; i < count; i++)
        if (strlen(headers[i].name) != headers[i].name_len ||
            strlen(headers[i].value) != headers[i].value_len)
            abort();
    if (status == 200 && count && len)
        atomic_fetch_add(&greeted, 1);
    segue_exchange_sent(exchange, len);
}

static void on_body(void *user, segue_exchange *exchange, const char *bytes, size_t len)
{
    (void)user;
    (void)bytes;
    segue_exchange_sent(exchange, len);
}

static void on_end(void *user, segue_exchange *exchange, segue_status status)
{
    (void)user;
    (void)exchange;
    atomic_fetch_add(&ended, 1);
    atomic_fetch_add(&complete, status == SEGUE_OK);
}

/* The key of each call is new, so that each call is in the store. */
static void write_body(char body[512])
{
    static atomic_int next;
    snprintf(
        body, 512,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
        "\"greet\",\"arguments\":{},\"_meta\":{"
        "\"dev.segue/idempotencyKey\":\"key-of-the-call-%d\","
        "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
        atomic_fetch_add(&next, 1));
}

static segue_exchange *begin(const char *body, bool is_whole)
{
    static const segue_http_field fields[] = {
        {"host", SEGUE_TO_NUL, "localhost", SEGUE_TO_NUL},
        {"content-type", SEGUE_TO_NUL, "application/json", SEGUE_TO_NUL},
        {"mcp-protocol-version", SEGUE_TO_NUL, "2026-07-28", SEGUE_TO_NUL},
        {"mcp-method", SEGUE_TO_NUL, "tools/call", SEGUE_TO_NUL},
        {"mcp-name", SEGUE_TO_NUL, "greet", SEGUE_TO_NUL}};
    segue_exchange_head head = SEGUE_EXCHANGE_HEAD_INIT;
    segue_exchange_events events = SEGUE_EXCHANGE_EVENTS_INIT;
    segue_exchange *exchange = NULL;
    head.method = "POST";
    head.target = "/";
    head.headers = fields;
    head.header_count = sizeof fields / sizeof *fields;
    head.peer = "127.0.0.1:1";
    head.local = "127.0.0.1:2";
    head.body = is_whole ? body : NULL;
    head.body_len = is_whole ? SEGUE_TO_NUL : 0;
    head.is_whole = is_whole;
    events.on_head = on_head;
    events.on_body = on_body;
    events.on_end = on_end;
    segue_status status = segue_exchange_open(listener, &head, &events, &exchange, NULL);
    if (status == SEGUE_E_CLOSED && closes)
        atomic_fetch_add(&refused, 1);
    else if (status != SEGUE_OK)
        abort();
    return exchange;
}

/* Every third request is given up at once, and every second one comes in two pieces. */
static void *play_caller(void *user)
{
    (void)user;
    for (int i = 0; i < CALLS; i++) {
        char body[512];
        write_body(body);
        segue_exchange *exchange = begin(body, i % 2 == 0);
        if (!exchange)
            continue;
        if (closes && i == CALLS / 2)
            segue_listener_close(listener);
        if (i % 2) {
            segue_exchange_feed(exchange, body, strlen(body));
            segue_exchange_end(exchange);
        }
        if (i % 3 == 0)
            segue_exchange_closed(exchange);
        segue_exchange_free(exchange);
    }
    return NULL;
}

static void open_server(segue_server **out, segue_store *store)
{
    static const char tool[] =
        "{\"name\":\"greet\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_listen_options listen = SEGUE_LISTEN_OPTIONS_INIT;
    item.on_call = greet;
    if (is_late) /* timers are due all the time */
        listen.stream_after_ms = listen.keepalive_ms = 1;
    options.store = store;
    assert_int_equal(segue_runtime_new(NULL, &rt, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(rt, &options, out, NULL), SEGUE_OK);
    assert_int_equal(
        segue_server_add(*out, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_listener_open(*out, &listen, &listener, NULL), SEGUE_OK);
    assert_int_equal(segue_runtime_start(rt), SEGUE_OK);
}

static void play(segue_store *store)
{
    segue_server *server;
    pthread_t threads[CALLERS];
    int32_t fd;
    ended = complete = greeted = refused = 0;
    kept_first = kept_end = 0;
    open_server(&server, store);
    assert_int_equal(segue_runtime_fd(rt, &fd), SEGUE_OK);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, play_caller, NULL), 0);
    while (atomic_load(&ended) + atomic_load(&refused) < CALLERS * CALLS) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        poll(&ready, 1, kept_first < kept_end ? 1 : 1000);
        if (kept_first < kept_end)
            answer(kept[kept_first++ % KEPT]);
        assert_int_equal(segue_runtime_dispatch(rt, 0, 0, NULL), SEGUE_OK);
    }
    while (kept_first < kept_end) /* of clients that have gone */
        answer(kept[kept_first++ % KEPT]);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    segue_listener_free(listener);
    segue_server_free(server);
    segue_runtime_free(rt);
    segue_store_free(store);
}

static void callers_on_threads(void **state)
{
    (void)state;
    closes = false;
    play(NULL);
    assert_true(atomic_load(&complete) >= CALLERS * CALLS / 2);
    assert_true(atomic_load(&greeted) >= atomic_load(&complete));
}

/* The store has a thread of its own, which wakes the loop and does its free work. */
static void callers_beside_a_store_on_a_thread(void **state)
{
    char directory[] = "/tmp/segue-mounted-XXXXXX", path[64], owners[72];
    segue_store *store;
    (void)state;
    closes = false;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/db", directory);
    snprintf(owners, sizeof owners, "%s-owners", path);
    assert_int_equal(segue_store_sqlite(path, NULL, &store, NULL), SEGUE_OK);
    play(store);
    assert_true(atomic_load(&complete) >= CALLERS * CALLS / 2);
    unlink(path);
    unlink(owners);
    assert_int_equal(rmdir(directory), 0);
}

static void the_listener_closes_meanwhile(void **state)
{
    (void)state;
    closes = true;
    play(NULL);
    assert_int_equal(atomic_load(&ended) + atomic_load(&refused), CALLERS * CALLS);
}

/* Deadlines are set on the threads of the callers, and pass on the loop's thread. */
static void answers_come_late(void **state)
{
    (void)state;
    closes = false;
    is_late = true;
    play(NULL);
    is_late = false;
    assert_true(atomic_load(&complete) >= CALLERS * CALLS / 2);
}

/* A head stays readable as long as on_head runs, also if the exchange ends meanwhile. */
static void exchanges_end_while_their_heads_are_given(void **state)
{
    (void)state;
    closes = false;
    is_late = cuts = true;
    play(NULL);
    is_late = cuts = false;
    assert_int_equal(atomic_load(&ended), CALLERS * CALLS);
}

static void wait_until_the_loop_sleeps(void)
{
    for (bool asleep = false; !asleep;) {
        segue_runtime_dispatch(rt, 1, 0, NULL);
        sgi_runtime_lock(rt);
        asleep = rt->loop.asleep && !rt->loop.work_count;
        sgi_runtime_unlock(rt);
    }
}

/* The listener of a loop that sleeps ends on the thread of the last exchange. It must not
 * stay in memory until something else wakes the loop. */
static void a_listener_ends_with_its_last_exchange(void **state)
{
    segue_server *server;
    bool is_left = true;
    (void)state;
    ended = 0;
    open_server(&server, NULL);
    segue_exchange *exchange = begin("", false);
    wait_until_the_loop_sleeps(); /* the head was read, so the exchange may end */
    segue_listener_close(listener);
    segue_listener_free(listener);
    wait_until_the_loop_sleeps();
    assert_int_equal(segue_exchange_closed(exchange), SEGUE_OK);
    for (int i = 0; i < 1000 && is_left; i++) {
        segue_runtime_dispatch(rt, 1, 0, NULL);
        sgi_runtime_lock(rt);
        is_left = !TAILQ_EMPTY(&rt->loop.retired);
        sgi_runtime_unlock(rt);
    }
    assert_false(is_left);
    assert_int_equal(atomic_load(&ended), 1);
    segue_exchange_free(exchange);
    segue_server_free(server);
    segue_runtime_free(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_on_threads),
        cmocka_unit_test(callers_beside_a_store_on_a_thread),
        cmocka_unit_test(the_listener_closes_meanwhile),
        cmocka_unit_test(answers_come_late),
        cmocka_unit_test(exchanges_end_while_their_heads_are_given),
        cmocka_unit_test(a_listener_ends_with_its_last_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
