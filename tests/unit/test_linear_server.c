/* The work of a server is proportional to the size of a client's input, whatever it
 * contains (test_linear_work.c has the input from a server). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/legacy_wire.h"
#include "support/linear_work.h"
#include "support/world_inside.h"

#ifdef SGI_COUNT_WORK

static void say(wire *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(wire *c, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    wire_feed(c, line, (size_t)len);
    world_run(c->w);
}

/* One call with n arguments. */
static void many_arguments(world *w, int n)
{
    text t = {0};
    wire *c = legacy_connect(w, "Ada", NULL);
    text_add(&t, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{"
                 "\"name\":\"story\",\"arguments\":{\"n\":1");
    for (int i = 0; i < n; i++)
        text_add(&t, ",\"a%d\":%d", i, i);
    text_add(&t, "}}}\n");
    wire_feed(c, t.p, t.len);
    free(t.p);
}

static void many_capabilities(world *w, int n)
{
    text t = {0};
    wire *c = world_connect(w, "Ada");
    text_add(&t, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{"
                 "\"protocolVersion\":\"2025-11-25\",\"clientInfo\":{\"name\":\"a\","
                 "\"version\":\"1\"},\"capabilities\":{\"roots\":{}");
    for (int i = 0; i < n; i++)
        text_add(&t, ",\"c%d\":{}", i);
    text_add(&t, "}}}\n");
    wire_feed(c, t.p, t.len);
    free(t.p);
}

static void a_batch(world *w, int n)
{
    text t = {0};
    wire *c = legacy_connect_as(w, "Ada", "2025-03-26", NULL);
    for (int i = 0; i < n; i++)
        text_add(&t, "%s{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}",
                 i ? "," : "[", i);
    text_add(&t, "]\n");
    wire_feed(c, t.p, t.len);
    free(t.p);
}

static void many_requests(world *w, int n)
{
    wire *c = legacy_connect(w, "Ada", NULL);
    for (int i = 0; i < n; i++)
        say(c, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n", i + 10);
}

static void many_cancels(world *w, int n)
{
    wire *c = legacy_connect(w, "Ada", NULL);
    for (int i = 0; i < n; i++)
        say(c,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
            "\"requestId\":%d}}\n",
            i);
}

static void answers_to_nothing(world *w, int n)
{
    wire *c = legacy_connect(w, "Ada", NULL);
    for (int i = 0; i < n; i++)
        say(c, "{\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"result\":{}}\n", i);
}

/* Each call is kept under its idempotency key. */
static void many_keys(world *w, int n)
{
    wire *c = legacy_connect(w, "Ada", NULL);
    for (int i = 0; i < n; i++) {
        say(c,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
            "\"name\":\"greet\",\"arguments\":{},\"_meta\":{"
            "\"dev.segue/idempotencyKey\":\"%032d\"}}}\n",
            i + 10, i);
    }
}

static void many_tasks(world *w, int n)
{
    wire *c = legacy_connect(w, "Ada", "{}");
    for (int i = 0; i < n; i++) {
        say(c,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
            "\"name\":\"story\",\"arguments\":{\"n\":1},\"task\":{\"ttl\":3600000}}}\n",
            i + 10);
    }
}

/* SGI_SUBSCRIBED_URIS_MAX subscriptions at most, so n / 4 of them. */
static void subscriptions(world *w, int n)
{
    wire *c = legacy_connect(w, "Ada", NULL);
    for (int i = 0; i < n / 4; i++)
        say(c,
            "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"resources/"
            "subscribe\",\"params\":"
            "{\"uri\":\"test://watched/%d\"}}\n",
            i + 10, i);
}

/* A smaller batch is read in one piece. */
#define FIRST 2000

static void generous(segue_server_options *options)
{
    options->max_tasks = 1 << 20;
    options->max_requests = 1 << 20;
}

/* Returns how often the tool of the row ran; 0 for a row without a tool. */
static int runs(const world *w)
{
    return world_runs(w, "story") + world_runs(w, "greet");
}

static uint64_t server_work(void (*play)(world *, int), int n, int calls)
{
    world w = {.place = WORLD_PAIR, .tune = generous};
    world_begin(&w);
    uint64_t before = sgi_work;
    play(&w, n);
    world_run(&w);
    uint64_t work = sgi_work - before;
    assert_int_equal(runs(&w), calls);
    world_end(&w);
    return work;
}

static void servers_are_linear(void **state)
{
    static const struct {
        const char *what;
        void (*play)(world *, int);
        int calls; /* calls of the tool, for each of n */
        int once;  /* further calls of the tool, independent of n */
    } rows[] = {
        {"arguments of a call", many_arguments, 0, 1},
        {"capabilities", many_capabilities, 0, 0},
        {"a batch", a_batch, 0, 0},
        {"requests", many_requests, 0, 0},
        {"cancels of nothing", many_cancels, 0, 0},
        {"answers to nothing", answers_to_nothing, 0, 0},
        {"keys", many_keys, 1, 0},
        {"tasks", many_tasks, 1, 0},
        {"subscriptions", subscriptions, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t work[3];
        for (int k = 0; k < 3; k++) {
            int n = FIRST << k;
            work[k] = server_work(rows[i].play, n, rows[i].calls * n + rows[i].once);
        }
        expect_linear(rows[i].what, work[0], work[1], work[2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("this build does not count work: a debug build does");
    return 0;
}

#endif
