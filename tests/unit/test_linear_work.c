/* The work for a peer's input is proportional to its size, whatever it contains: four
 * times the input causes about four times the work. Debug builds count the work done on
 * bytes (SGI_WORK). No clock is involved, so a busy machine changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/dialect/partial/merge.h"
#include "engine/dialect/tasks_2025/tracker.h"
#include "support/client_kit.h"
#include "support/fake_host.h"
#include "support/linear_work.h"
#include "support/test_mem.h"
#include "support/world.h"

#ifdef SGI_COUNT_WORK

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"

static test_mem tm;

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static segue_hooks chances = {.struct_size = sizeof chances, .random = no_chance};
static sgi_env env = {&tm.mem, &chances};

/* ---- input of a hostile peer: n times ---- */

/* Makes {"x0":0,"x1":1,...}. */
static text object_of(const char *prefix, int n)
{
    text t = {0};
    text_add(&t, "{");
    for (int i = 0; i < n; i++)
        text_add(&t, "%s\"%s%d\":%d", i ? "," : "", prefix, i, i);
    text_add(&t, "}");
    return t;
}

static void take(sgi_partial_merge *merge, const char *json, size_t len)
{
    assert_int_equal(sgi_partial_merge_add(merge, (sgi_json){json, len}, NULL, NULL),
                     SGI_MERGED);
}

/* Two responses with n different names each. */
static void many_names(sgi_partial_merge *merge, int n)
{
    text a = object_of("a", n), b = object_of("b", n);
    take(merge, a.p, a.len);
    take(merge, b.p, b.len);
    free(a.p);
    free(b.p);
}

/* Two responses with n different names each, which must be decoded. */
static void escaped_names(sgi_partial_merge *merge, int n)
{
    text a = object_of("\\u0061", n), b = object_of("\\u0062", n);
    take(merge, a.p, a.len);
    take(merge, b.p, b.len);
    free(a.p);
    free(b.p);
}

/* n responses with one name each. */
static void names_one_by_one(sgi_partial_merge *merge, int n)
{
    char json[64];
    for (int i = 0; i < n; i++)
        take(merge, json, (size_t)snprintf(json, sizeof json, "{\"n%d\":%d}", i, i));
}

static void meta_one_by_one(sgi_partial_merge *merge, int n)
{
    char json[96];
    for (int i = 0; i < n; i++)
        take(merge, json,
             (size_t)snprintf(json, sizeof json, "{\"_meta\":{\"n%d\":%d}}", i, i));
}

static void arrays_go_on(sgi_partial_merge *merge, int n)
{
    static const char json[] =
        "{\"_meta\":{\"mergeStrategy\":\"append\"},\"structuredContent\":[1,[2],{}]}";
    for (int i = 0; i < n; i++)
        take(merge, json, sizeof json - 1);
}

static void objects_go_on(sgi_partial_merge *merge, int n)
{
    char json[160];
    for (int i = 0; i < n; i++)
        take(merge, json,
             (size_t)snprintf(json, sizeof json,
                              "{\"_meta\":{\"mergeStrategy\":\"append\"},"
                              "\"structuredContent\":{\"n%d\":%d}}",
                              i, i));
}

/* One text in n pieces, each with a member of its own. */
static void a_text_goes_on(sgi_partial_merge *merge, int n)
{
    char json[160];
    for (int i = 0; i < n; i++)
        take(merge, json,
             (size_t)snprintf(json, sizeof json,
                              "{\"content\":[{\"index\":0,\"type\":\"text\","
                              "\"text\":\"0123456789\",\"n%d\":1}]}",
                              i));
}

static void blocks_one_by_one(sgi_partial_merge *merge, int n)
{
    static const char json[] = "{\"content\":[" BLOCK("a") "]}";
    for (int i = 0; i < n; i++)
        take(merge, json, sizeof json - 1);
}

static void blocks_at_once(sgi_partial_merge *merge, int n)
{
    text t = {0};
    text_add(&t, "{\"content\":[");
    for (int i = 0; i < n; i++)
        text_add(&t, "%s{}", i ? "," : "");
    text_add(&t, "]}");
    take(merge, t.p, t.len);
    free(t.p);
}

static uint64_t merge_work(void (*send)(sgi_partial_merge *, int), int n)
{
    sgi_partial_merge merge;
    sgi_buf out;
    sgi_partial_merge_init(&merge, &env, "content");
    sgi_buf_init(&out, &tm.mem);
    uint64_t before = sgi_work;
    send(&merge, n);
    sgi_jw w = sgi_jw_to(&out);
    sgi_jw_open(&w, '{');
    sgi_partial_merge_write(&merge, &w);
    sgi_jw_close(&w, '}');
    uint64_t work = sgi_work - before;
    assert_false(out.failed);
    sgi_buf_free(&out);
    sgi_partial_merge_free(&merge);
    return work;
}

/* ---- the comparison ---- */

static void merging_is_linear(void **state)
{
    static const struct {
        const char *what;
        void (*send)(sgi_partial_merge *, int);
    } rows[] = {
        {"many names", many_names},
        {"escaped names", escaped_names},
        {"names one by one", names_one_by_one},
        {"_meta one by one", meta_one_by_one},
        {"arrays that go on", arrays_go_on},
        {"objects that go on", objects_go_on},
        {"a text that goes on", a_text_goes_on},
        {"blocks one by one", blocks_one_by_one},
        {"blocks at once", blocks_at_once},
    };
    (void)state;
    test_mem_init(&tm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_linear(rows[i].what, merge_work(rows[i].send, LINEAR_FIRST),
                      merge_work(rows[i].send, 2 * LINEAR_FIRST),
                      merge_work(rows[i].send, 4 * LINEAR_FIRST));
    assert_int_equal(tm.live, 0);
}

/* Events of a task that set one field each: the fold of client and server. */
static uint64_t fold_work(int n)
{
    char json[64];
    sgi_fold fold;
    sgi_fold_init(&fold, &env);
    uint64_t before = sgi_work;
    for (int i = 0; i < n; i++) {
        int len = snprintf(json, sizeof json, "{\"n%d\":%d}", i, i);
        sgi_fold_add_fields(&fold, (sgi_json){json, (size_t)len});
        sgi_fold_add_segment(&fold, SGI_STR(BLOCK("a")));
    }
    uint64_t work = sgi_work - before;
    assert_false(sgi_fold_failed(&fold));
    sgi_fold_free(&fold);
    return work;
}

static void folding_is_linear(void **state)
{
    (void)state;
    test_mem_init(&tm);
    expect_linear("fields of events", fold_work(LINEAR_FIRST),
                  fold_work(2 * LINEAR_FIRST), fold_work(4 * LINEAR_FIRST));
    assert_int_equal(tm.live, 0);
}

/* ---- a whole client ---- */

/* Returns the client's work for a request that the server answers with n parts. */
static uint64_t client_work(void (*play)(kit *, int), int n)
{
    kit k = {.quiet = 1};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    uint64_t before = sgi_work;
    play(&k, n);
    uint64_t work = sgi_work - before;
    kit_end(&k);
    return work;
}

static void list_tools(kit *k, int n)
{
    text t = {0};
    record *r = kit_start(k, "tools/list", NULL, NULL);
    for (int i = 0; i < n; i++)
        text_add(
            &t,
            "%s{\"name\":\"t%d\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
            "\"a\":{\"type\":\"string\",\"x-mcp-header\":\"H%d\"}}}}",
            i ? "," : "", i, i);
    kit_result(k, kit_expect(k, "tools/list"),
               "\"resultType\":\"complete\",\"tools\":[%s],\"ttlMs\":1000,"
               "\"cacheScope\":\"private\"",
               t.p);
    kit_run(k);
    assert_int_equal(r->status, SEGUE_OK);
    free(t.p);
}

static void notify(kit *k, int n)
{
    for (int i = 0; i < n; i++)
        kit_say(k, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x%d\",\"params\":{}}",
                i);
    kit_run(k);
}

/* A task whose stream has n events of one segment each. */
static void stream_events(kit *k, int n)
{
    record *r = kit_call(k, "t");
    kit_result(k, kit_expect(k, "tools/call"), CREATED("T"));
    kit_expect(k, "tasks/stream");
    for (int i = 0; i < n; i++)
        kit_segment(k, "T", i, i + 1, "a");
    kit_run(k);
    assert_int_equal(r->segments, n);
    segue_request_cancel(r->request);
}

static void tell_of_tasks(kit *k, int n)
{
    record *r = kit_call(k, "t");
    kit_result(k, kit_expect(k, "tools/call"), CREATED("T"));
    for (int i = 0; i < n; i++)
        kit_say(k,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":"
                "{\"taskId\":\"%s%d\",\"status\":\"working\",\"statusMessage\":\"%d\"}}",
                i % 2 ? "T" : "U", i, i);
    kit_run(k);
    segue_request_cancel(r->request);
}

static void tell_progress(kit *k, int n)
{
    record *r = kit_call(k, "t");
    char token[64];
    snprintf(token, sizeof token, "%s",
             json_at(kit_expect(k, "tools/call"), "params._meta.progressToken"));
    for (int i = 0; i < n; i++)
        kit_say(k,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
                "{\"progressToken\":%s,\"progress\":%d}}",
                token, i);
    kit_run(k);
    segue_request_cancel(r->request);
}

static void answer_nobody(kit *k, int n)
{
    for (int i = 0; i < n; i++)
        kit_say(k, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}", 1000000 + i);
    kit_run(k);
}

static void ask_anything(kit *k, int n)
{
    for (int i = 0; i < n; i++)
        kit_say(k, "{\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"ping\"}", i);
    kit_run(k);
}

static void ask_questions(kit *k, int n)
{
    text t = {0};
    record *r = kit_call(k, "t");
    for (int i = 0; i < n / 8; i++) /* n / 8 of the 1,024 questions that are allowed */
        text_add(&t,
                 "%s\"k%d\":{\"method\":\"elicitation/"
                 "create\",\"params\":{\"message\":\"?\"}}",
                 i ? "," : "", i);
    kit_result(k, kit_expect(k, "tools/call"),
               "\"resultType\":\"input_required\",\"requestState\":\"s\","
               "\"inputRequests\":{%s}",
               t.p);
    kit_run(k);
    assert_false(r->completed);
    free(t.p);
    segue_request_cancel(r->request);
    kit_run(k);
}

static void clients_are_linear(void **state)
{
    static const struct {
        const char *what;
        void (*play)(kit *, int);
    } rows[] = {
        {"tools of a list", list_tools},     {"notifications", notify},
        {"events of a task", stream_events}, {"states of tasks", tell_of_tasks},
        {"progress", tell_progress},         {"answers to nothing", answer_nobody},
        {"requests", ask_anything}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_linear(rows[i].what, client_work(rows[i].play, LINEAR_FIRST),
                      client_work(rows[i].play, 2 * LINEAR_FIRST),
                      client_work(rows[i].play, 4 * LINEAR_FIRST));
}

/* Keys of questions are searched one by one, but there are 1,024 at most. This test
 * bounds the cost of all 1,024 keys. */
static void questions_are_few(void **state)
{
    (void)state;
    assert_true(client_work(ask_questions, 8 * 1024) < 32 * 1024 * 1024);
}

/* ---- bounds ---- */

static void names_are_bounded(void **state)
{
    sgi_partial_merge merge;
    (void)state;
    test_mem_init(&tm);
    sgi_partial_merge_init(&merge, &env, "content");
    merge.fields.fields.max = 3;
    take(&merge, "{\"a\":1,\"b\":2}", 13);
    take(&merge, "{\"b\":3,\"c\":4}", 13);
    assert_int_equal(sgi_partial_merge_add(&merge, SGI_STR("{\"d\":1}"), NULL, NULL),
                     SGI_MERGE_LIMIT);
    assert_true(sgi_fold_failed(&merge.fields));
    assert_true(sgi_fold_size(&merge.fields) == SIZE_MAX);
    sgi_partial_merge_free(&merge);
    assert_int_equal(tm.live, 0);
}

static void blocks_are_bounded(void **state)
{
    sgi_partial_merge merge;
    (void)state;
    test_mem_init(&tm);
    sgi_partial_merge_init(&merge, &env, "content");
    merge.max_blocks = 2;
    take(&merge, "{\"content\":[{},{}]}", 19);
    assert_int_equal(
        sgi_partial_merge_add(&merge, SGI_STR("{\"content\":[{}]}"), NULL, NULL),
        SGI_MERGE_LIMIT);
    sgi_partial_merge_free(&merge);
    assert_int_equal(tm.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_is_linear),  cmocka_unit_test(folding_is_linear),
        cmocka_unit_test(clients_are_linear), cmocka_unit_test(questions_are_few),
        cmocka_unit_test(names_are_bounded),  cmocka_unit_test(blocks_are_bounded),
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
