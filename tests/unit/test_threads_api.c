/* The API used by many threads at once: callbacks of a background runtime run on one
 * thread, handlers send and complete on other threads, and clients start, cancel and free
 * on a third group of threads. The thread sanitizer is the main check; the assertions
 * check that nothing is lost.
 *
 * Handlers pass their call to a pool of workers through a queue. No thread sleeps for a
 * fixed time. */
#include <segue/segue.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

enum { WORKERS = 4, CLIENTS = 3, CALLS = 40, SEGMENTS = 5 };

/* ---- the pool: calls wait for a worker ---- */

typedef struct item {
    struct item *next;
    segue_call *call;
} item;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_filled = PTHREAD_COND_INITIALIZER;
static item *pool_items;
static int pool_over;

static void on_call(void *user, segue_call *call)
{
    item *i = malloc(sizeof *i);
    (void)user;
    i->call = call;
    pthread_mutex_lock(&pool_lock);
    i->next = pool_items;
    pool_items = i;
    pthread_cond_signal(&pool_filled);
    pthread_mutex_unlock(&pool_lock);
}

/* Ends the call; `way` chooses how. */
static void work_on(segue_call *call, int way)
{
    char text[32];
    for (int n = 1; n <= SEGMENTS && !segue_call_is_cancelled(call); n++) {
        int len = snprintf(text, sizeof text, "segment %d", n);
        segue_call_progress(call, n, SEGMENTS, NULL, NULL);
        if (segue_call_send_text(call, text, (size_t)len, NULL) != SEGUE_OK)
            break;
    }
    segue_call_set_status(call, "nearly", NULL);
    if (way % 8 == 7)
        segue_call_fail(call, -32603, "on purpose", NULL, 0, NULL);
    else if (way % 8 != 6) /* 6: the worker frees the call without an end */
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void *work(void *user)
{
    (void)user;
    for (int way = 0;; way++) {
        pthread_mutex_lock(&pool_lock);
        while (!pool_items && !pool_over)
            pthread_cond_wait(&pool_filled, &pool_lock);
        item *i = pool_items;
        if (i)
            pool_items = i->next;
        pthread_mutex_unlock(&pool_lock);
        if (!i)
            return NULL;
        work_on(i->call, way);
        free(i);
    }
}

/* ---- the clients ---- */

static atomic_int started, completed, freed, segments;

static void on_segment(void *user, segue_request *request, const segue_segment *segment)
{
    (void)user;
    (void)request;
    assert_true(segue_segment_read(segment)->number > 0);
    atomic_fetch_add(&segments, 1);
}

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    (void)user;
    (void)request;
    (void)json;
    (void)len;
    assert_int_equal(segue_error_read(error)->status, status);
    atomic_fetch_add(&completed, 1);
}

static pthread_mutex_t end_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_ended = PTHREAD_COND_INITIALIZER;

static void on_free(void *user)
{
    (void)user;
    pthread_mutex_lock(&end_lock);
    atomic_fetch_add(&freed, 1);
    pthread_cond_signal(&one_ended);
    pthread_mutex_unlock(&end_lock);
}

static void wait_for_all(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 300;
    pthread_mutex_lock(&end_lock);
    while (atomic_load(&freed) < atomic_load(&started) &&
           pthread_cond_timedwait(&one_ended, &end_lock, &limit) == 0)
        ;
    pthread_mutex_unlock(&end_lock);
    assert_int_equal(atomic_load(&freed), atomic_load(&started));
}

typedef struct client {
    pthread_t thread;
    segue_session *session;
    const char *tool;
} client;

static void *play_client(void *user)
{
    client *c = user;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    char params[64], token[2048];
    int n = snprintf(params, sizeof params, "{\"name\":\"%s\"}", c->tool);
    events.on_segment = on_segment;
    events.on_complete = on_complete;
    events.free_user = on_free;
    for (int i = 0; i < CALLS; i++) {
        segue_request *request;
        size_t len = sizeof token;
        segue_status status = segue_request_start(
            c->session, "tools/call", params, (size_t)n, NULL, &events, &request, NULL);
        if (status != SEGUE_OK) {
            assert_int_equal(status, SEGUE_E_CLOSED);
            continue;
        }
        atomic_fetch_add(&started, 1);
        segue_request_token(request, token, &len);
        segue_request_grant(request, 1);
        if (i % 4 == 1)
            segue_request_cancel(request);
        if (i % 4 == 2)
            segue_request_detach(request);
        segue_request_free(request);
    }
    return NULL;
}

/* ---- the stage ---- */

static segue_runtime *runtime;
static segue_server *server;
static segue_session *sessions[CLIENTS];
static pthread_t dispatcher, workers[WORKERS];
static atomic_int closed;

static void *dispatch(void *user)
{
    (void)user;
    while (segue_runtime_dispatch(runtime, -1, 0, NULL) == SEGUE_OK)
        ;
    return NULL;
}

static void on_closed(void *user, segue_session *session, const segue_error *error)
{
    (void)user;
    (void)session;
    (void)error;
    atomic_fetch_add(&closed, 1);
}

static void add_tool(const char *name, int32_t task)
{
    char json[128];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    int n = snprintf(json, sizeof json,
                     "{\"name\":\"%s\",\"inputSchema\":{\"type\":\"object\"}}", name);
    options.on_call = on_call;
    options.task = task;
    options.flags = SEGUE_TOOL_INCREMENTAL;
    options.poll_ms = 100;
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, json, (size_t)n, &options, NULL),
        SEGUE_OK);
}

static int set_up(void **state)
{
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_session_events events = SEGUE_SESSION_EVENTS_INIT;
    (void)state;
    atomic_store(&started, 0);
    atomic_store(&completed, 0);
    atomic_store(&freed, 0);
    atomic_store(&segments, 0);
    atomic_store(&closed, 0);
    pool_over = 0;
    assert_int_equal(segue_runtime_new(NULL, &runtime, NULL), SEGUE_OK);
    options.max_tasks = CLIENTS * CALLS;
    assert_int_equal(segue_server_new(runtime, &options, &server, NULL), SEGUE_OK);
    add_tool("plain", SEGUE_TASK_NEVER);
    add_tool("task", SEGUE_TASK_MAY);
    events.on_closed = on_closed;
    for (int i = 0; i < CLIENTS; i++) {
        segue_transport *near, *far;
        assert_int_equal(segue_transport_pair(runtime, &near, &far), SEGUE_OK);
        assert_int_equal(segue_server_attach(server, far, NULL), SEGUE_OK);
        assert_int_equal(
            segue_session_open(runtime, near, NULL, &events, &sessions[i], NULL),
            SEGUE_OK);
    }
    assert_int_equal(segue_runtime_start(runtime), SEGUE_OK);
    pthread_create(&dispatcher, NULL, dispatch, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    return 0;
}

/* Frees as a program would at its end: the runtime first, while workers still work. */
static int tear_down(void **state)
{
    (void)state;
    segue_server_free(server);
    segue_runtime_stop(runtime);
    pthread_join(dispatcher, NULL);
    segue_runtime_free(runtime);
    pthread_mutex_lock(&pool_lock);
    pool_over = 1;
    pthread_cond_broadcast(&pool_filled);
    pthread_mutex_unlock(&pool_lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    for (int i = 0; i < CLIENTS; i++)
        segue_session_free(sessions[i]);
    assert_int_equal(atomic_load(&closed), CLIENTS);
    assert_int_equal(atomic_load(&completed), atomic_load(&started));
    assert_int_equal(atomic_load(&freed), atomic_load(&started));
    return 0;
}

static void start_clients(client clients[CLIENTS])
{
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].session = sessions[i];
        clients[i].tool = i % 2 ? "task" : "plain";
        pthread_create(&clients[i].thread, NULL, play_client, &clients[i]);
    }
}

static void join_clients(client clients[CLIENTS])
{
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
}

/* ---- cases ---- */

static void every_call_ends_once(void **state)
{
    (void)state;
    client clients[CLIENTS];
    start_clients(clients);
    join_clients(clients);
    wait_for_all();
    assert_int_equal(atomic_load(&started), CLIENTS * CALLS);
    assert_true(atomic_load(&segments) > 0);
}

static void sessions_close_under_their_calls(void **state)
{
    (void)state;
    client clients[CLIENTS];
    start_clients(clients);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(segue_session_close(sessions[i]), SEGUE_OK);
    join_clients(clients);
}

static void the_server_closes_under_its_calls(void **state)
{
    (void)state;
    client clients[CLIENTS];
    start_clients(clients);
    assert_int_equal(segue_server_close(server), SEGUE_OK);
    join_clients(clients);
}

static void the_runtime_ends_with_everything_in_flight(void **state)
{
    (void)state;
    client clients[CLIENTS];
    start_clients(clients);
    segue_runtime_stop(runtime);
    join_clients(clients);
}

/* Several threads read and end one request at once; its owner frees it last. */
static void *cancel_it(void *user)
{
    char token[2048];
    for (int i = 0; i < 20; i++) {
        size_t len = sizeof token;
        segue_request_token(user, token, &len);
        segue_request_grant(user, 1);
    }
    segue_request_cancel(user);
    return NULL;
}

static void one_request_is_cancelled_by_many(void **state)
{
    (void)state;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.on_complete = on_complete;
    events.free_user = on_free;
    for (int round = 0; round < 10; round++) {
        pthread_t threads[3];
        segue_request *request;
        assert_int_equal(segue_request_start(sessions[0], "tools/call",
                                             "{\"name\":\"task\"}", 15, NULL, &events,
                                             &request, NULL),
                         SEGUE_OK);
        atomic_fetch_add(&started, 1);
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, cancel_it, request);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        segue_request_free(request);
    }
}

/* AS-55: tools come and go while they are listed and called. */
static void *change_tools(void *user)
{
    static const char json[] =
        "{\"name\":\"extra\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    (void)user;
    options.on_call = on_call;
    for (int i = 0; i < 50; i++) {
        segue_server_add(server, SEGUE_ITEM_TOOL, json, sizeof json - 1, &options, NULL);
        segue_server_remove(server, SEGUE_ITEM_TOOL, "extra");
    }
    return NULL;
}

static void tools_change_while_they_are_called(void **state)
{
    (void)state;
    client clients[CLIENTS];
    pthread_t changer;
    pthread_create(&changer, NULL, change_tools, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].session = sessions[i];
        clients[i].tool = "extra";
        pthread_create(&clients[i].thread, NULL, play_client, &clients[i]);
    }
    join_clients(clients);
    pthread_join(changer, NULL);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_call_ends_once),
        CASE(sessions_close_under_their_calls),
        CASE(the_server_closes_under_its_calls),
        CASE(the_runtime_ends_with_everything_in_flight),
        CASE(one_request_is_cancelled_by_many),
        CASE(tools_change_while_they_are_called),
    };
    return cmocka_run_group_tests_name("threads_api", tests, NULL, NULL);
}
