/* The pool in front of malloc: blocks are used again, the pool has a limit, blocks may
 * outlive it, and plain calls take no memory from malloc once everything is warm.
 *
 * label: threads */
#include "runtime/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "runtime/state.h"

#ifdef __SANITIZE_ADDRESS__
#define KEEPS 0 /* the pool keeps nothing there (runtime/pool.h) */
#else
#define KEEPS 1
#endif

static void blocks_are_used_again(void **state)
{
    sgi_mem mem;
    (void)state;
    assert_true(sgi_pool_open(&mem));
    for (size_t size = 1; size < 6000; size += size < 2000 ? 1 : 500) {
        char *first = sgi_alloc(&mem, size);
        memset(first, 'x', size);
        sgi_free(&mem, first, size);
        uint64_t taken = sgi_pool_taken(&mem);
        char *second = sgi_alloc(&mem, size);
        memset(second, 'y', size);
        if (KEEPS && size <= 4096)
            assert_int_equal(sgi_pool_taken(&mem), taken);
        sgi_free(&mem, second, size);
    }
    sgi_pool_close(&mem);
}

static void a_block_that_grows_keeps_its_bytes(void **state)
{
    sgi_mem mem;
    size_t size = 1;
    (void)state;
    assert_true(sgi_pool_open(&mem));
    char *block = sgi_alloc(&mem, size);
    block[0] = 0;
    for (; size < 20000; size += 7) {
        block = sgi_realloc(&mem, block, size, size + 7);
        memset(block + size, (int)(size % 251), 7);
    }
    for (size_t at = 1; at < 20000; at += 7)
        assert_int_equal((unsigned char)block[at], at % 251);
    block = sgi_realloc(&mem, block, size, 2);
    assert_int_equal(block[1], 1);
    sgi_free(&mem, block, 2);
    sgi_pool_close(&mem);
}

/* Frees more than the pool keeps. The rest goes back to malloc, and must be taken
 * again. */
static void the_pool_has_a_limit(void **state)
{
    enum { BLOCKS = 1000, SIZE = 1000 };
    sgi_mem mem;
    void *blocks[BLOCKS];
    (void)state;
    assert_true(sgi_pool_open(&mem));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = sgi_alloc(&mem, SIZE);
        for (int i = 0; i < BLOCKS; i++)
            sgi_free(&mem, blocks[i], SIZE);
    }
    uint64_t taken = sgi_pool_taken(&mem);
    assert_true(taken > BLOCKS + 400);
    assert_true(!KEEPS || taken < 2 * BLOCKS - 400);
    sgi_pool_close(&mem);
}

static void blocks_outlive_the_pool(void **state)
{
    sgi_mem mem;
    (void)state;
    assert_true(sgi_pool_open(&mem));
    void *small = sgi_alloc(&mem, 10);
    void *large = sgi_alloc(&mem, 10000);
    sgi_pool_close(&mem);
    sgi_free(&mem, small, 10);
    small = sgi_alloc(&mem, 10);
    sgi_free(&mem, large, 10000);
    sgi_free(&mem, small, 10);
}

static void *use_the_pool(void *user)
{
    void *kept[64] = {NULL};
    for (size_t i = 0; i < 20000; i++) {
        size_t at = i % 64;
        sgi_free(user, kept[at], at * 40 + 1);
        kept[at] = sgi_alloc(user, at * 40 + 1);
        memset(kept[at], (int)at, at * 40 + 1);
    }
    for (size_t at = 0; at < 64; at++)
        sgi_free(user, kept[at], at * 40 + 1);
    return NULL;
}

static void threads_share_the_pool(void **state)
{
    pthread_t threads[4];
    sgi_mem mem;
    (void)state;
    assert_true(sgi_pool_open(&mem));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_the_pool, &mem), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sgi_pool_close(&mem);
}

/* ---- plain calls ---- */

typedef struct stage {
    segue_runtime *runtime;
    segue_server *server;
    segue_session *session;
    int ended;
} stage;

static void echo(void *user, segue_call *call)
{
    segue_content *content;
    const char *text = "";
    size_t len = 0;
    segue_call_argument_text(call, "text", &text, &len);
    assert_int_equal(segue_content_new(user, &content), SEGUE_OK);
    segue_content_add_text(content, text, len, NULL);
    segue_call_complete(call, content, NULL);
    segue_content_free(content);
    segue_call_free(call);
}

static void begin(stage *s)
{
    static const char tool[] =
        "{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options item = SEGUE_ITEM_OPTIONS_INIT;
    segue_server_options options = SEGUE_SERVER_OPTIONS_INIT;
    segue_transport *a, *b;
    assert_int_equal(segue_runtime_new(NULL, &s->runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(s->runtime, &options, &s->server, NULL), SEGUE_OK);
    item.on_call = echo;
    item.user = s->runtime;
    item.task = SEGUE_TASK_NEVER;
    assert_int_equal(
        segue_server_add(s->server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &item, NULL),
        SEGUE_OK);
    assert_int_equal(segue_transport_pair(s->runtime, &a, &b), SEGUE_OK);
    assert_int_equal(segue_server_attach(s->server, a, NULL), SEGUE_OK);
    assert_int_equal(segue_session_open(s->runtime, b, NULL, NULL, &s->session, NULL),
                     SEGUE_OK);
}

static void on_end(void *user, segue_request *request, segue_status status,
                   const char *json, size_t len, const segue_error *error)
{
    (void)request;
    (void)len;
    (void)error;
    assert_int_equal(status, SEGUE_OK);
    assert_non_null(strstr(json, "a text of an echo"));
    ((stage *)user)->ended++;
}

static void call(stage *s, int count)
{
    static const char params[] =
        "{\"name\":\"echo\",\"arguments\":{\"text\":\"a text of an echo\"}}";
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    events.user = s;
    events.on_complete = on_end;
    for (int goal = s->ended + count; s->ended < goal;) {
        int before = s->ended;
        assert_int_equal(segue_request_start(s->session, "tools/call", params,
                                             sizeof params - 1, NULL, &events, NULL,
                                             NULL),
                         SEGUE_OK);
        while (s->ended == before)
            segue_runtime_dispatch(s->runtime, 1000, 0, NULL);
    }
}

/* Counts client and server together. What a plain call keeps for a while, as the ids of
 * ended calls, has found its size after the first calls. */
static void a_plain_call_takes_no_memory(void **state)
{
    stage s = {0};
    (void)state;
    begin(&s);
    call(&s, 500);
    uint64_t taken = sgi_pool_taken(&s.runtime->mem);
    call(&s, 500);
    if (KEEPS)
        assert_int_equal(sgi_pool_taken(&s.runtime->mem), taken);
    segue_session_free(s.session);
    segue_server_free(s.server);
    segue_runtime_free(s.runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_used_again),
        cmocka_unit_test(a_block_that_grows_keeps_its_bytes),
        cmocka_unit_test(the_pool_has_a_limit),
        cmocka_unit_test(blocks_outlive_the_pool),
        cmocka_unit_test(threads_share_the_pool),
        cmocka_unit_test(a_plain_call_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
