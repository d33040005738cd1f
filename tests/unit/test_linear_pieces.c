/* The work for a result in pieces is proportional to its size, on both sides, also when
 * texts go on (R-776-30 to R-776-32). Debug builds count the work (linear_work.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/log/fold.h"
#include "support/client_kit.h"
#include "support/legacy_wire.h"
#include "support/linear_work.h"
#include "support/test_mem.h"
#include "support/world.h"

#ifdef SGI_COUNT_WORK

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define MORE "\"_meta\":{\"hasMore\":true}"

static void expect_rows_linear(const char *what, uint64_t (*work)(size_t row, int n),
                               size_t row)
{
    expect_linear(what, work(row, LINEAR_FIRST), work(row, 2 * LINEAR_FIRST),
                  work(row, 4 * LINEAR_FIRST));
}

/* ---- the fold of client and server ---- */

static test_mem tm;

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static segue_hooks chances = {.struct_size = sizeof chances, .random = no_chance};
static sgi_env env = {&tm.mem, &chances};

/* Adds a text of 10 n bytes with these members after the text. */
static void add_long_text(sgi_fold *fold, int n, const char *members)
{
    text t = {0};
    text_add(&t, "{\"type\":\"text\",\"text\":\"");
    for (int i = 0; i < n; i++)
        text_add(&t, "0123456789");
    text_add(&t, "\"%s}", members);
    assert_true(sgi_fold_add_indexed_segment(fold, fold->count, (sgi_json){t.p, t.len}));
    free(t.p);
}

static void add_pieces(sgi_fold *fold, int n, uint64_t place)
{
    for (int i = 0; i < n; i++)
        assert_true(sgi_fold_add_indexed_segment(fold, place, SGI_STR(TEXT("a"))));
}

static void the_last_goes_on(sgi_fold *fold, int n)
{
    add_long_text(fold, n, "");
    add_pieces(fold, n, 0);
}

static void one_with_members_goes_on(sgi_fold *fold, int n)
{
    add_long_text(fold, n, ",\"annotations\":{}");
    add_pieces(fold, n, 0);
}

static void an_earlier_one_goes_on(sgi_fold *fold, int n)
{
    add_long_text(fold, n, "");
    add_long_text(fold, 1, "");
    add_pieces(fold, n, 0);
}

static void each_goes_on(sgi_fold *fold, int n)
{
    for (int i = 0; i < n; i++)
        add_long_text(fold, 1, "");
    for (int i = 0; i < n; i++)
        add_pieces(fold, 1, (uint64_t)i);
}

static const struct {
    const char *what;
    void (*play)(sgi_fold *, int);
} folds[] = {
    {"the last text goes on", the_last_goes_on},
    {"a text with members goes on", one_with_members_goes_on},
    {"an earlier text goes on", an_earlier_one_goes_on},
    {"each text goes on", each_goes_on},
};

static uint64_t fold_work(size_t row, int n)
{
    sgi_fold fold;
    sgi_buf out;
    sgi_fold_init(&fold, &env);
    sgi_buf_init(&out, &tm.mem);
    uint64_t before = sgi_work;
    folds[row].play(&fold, n);
    sgi_fold_write_blocks(&fold, &out);
    uint64_t work = sgi_work - before;
    assert_false(sgi_fold_failed(&fold) || out.failed);
    sgi_buf_free(&out);
    sgi_fold_free(&fold);
    return work;
}

static void folding_is_linear(void **state)
{
    (void)state;
    test_mem_init(&tm);
    for (size_t row = 0; row < sizeof folds / sizeof *folds; row++)
        expect_rows_linear(folds[row].what, fold_work, row);
    assert_int_equal(tm.live, 0);
}

/* ---- a whole client ---- */

static const char *ask(kit *k, const char *method, const char *params, record **r)
{
    *r = kit_start(k, method, params, NULL);
    return kit_expect(k, method);
}

static void tools_in_pieces(kit *k, int n)
{
    record *r;
    const char *call = ask(k, "tools/list", NULL, &r);
    for (int i = 0; i < n; i++)
        kit_result(k, call, "\"tools\":[{\"name\":\"t%d\",\"inputSchema\":{}}]," MORE, i);
    kit_result(k, call, "\"tools\":[]");
    assert_int_equal(r->status, SEGUE_OK);
}

static void a_text_of_a_resource(kit *k, int n)
{
    record *r;
    const char *call = ask(k, "resources/read", "{\"uri\":\"test://x\"}", &r);
    for (int i = 0; i < n; i++)
        kit_result(k, call,
                   "\"contents\":[{\"uri\":\"test://x\",\"text\":\"%010d\"}],"
                   "\"_meta\":{\"hasMore\":true,\"index\":0}",
                   i);
    kit_result(k, call, "\"contents\":[]");
    assert_int_equal(r->status, SEGUE_OK);
}

static void messages_of_a_prompt(kit *k, int n)
{
    record *r;
    const char *call = ask(k, "prompts/get", "{\"name\":\"p\"}", &r);
    for (int i = 0; i < n; i++)
        kit_result(k, call,
                   "\"messages\":[{\"role\":\"user\",\"content\":" TEXT("a") "}]," MORE);
    kit_result(k, call, "\"messages\":[]");
    assert_int_equal(r->status, SEGUE_OK);
}

/* Writes the content of piece number i: the first piece is a text of 10 n bytes. */
static void write_content(text *t, int i, int n)
{
    text_add(t, "\"content\":[{\"type\":\"text\",\"text\":\"");
    for (int k = 0; k < (i ? 1 : n); k++)
        text_add(t, "0123456789");
    text_add(t, "\",\"annotations\":{}}]");
}

static void texts_by_event(kit *k, int n)
{
    record *r = kit_call(k, "t");
    kit_result(k, kit_expect(k, "tools/call"), CREATED("T"));
    kit_expect(k, "tasks/stream");
    for (int i = 0; i < n; i++) {
        text t = {0};
        write_content(&t, i, n);
        kit_say(
            k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/event\",\"params\":"
            "{\"taskId\":\"T\",\"seq\":%d,\"type\":\"dev.segue.content.partial\","
            "\"payload\":{\"segment\":%d,\"index\":0,%s}}}",
            i, i + 1, t.p);
        free(t.p);
    }
    kit_run(k);
    assert_int_equal(r->segments, n);
    segue_request_cancel(r->request);
    kit_run(k);
}

static const struct {
    const char *what;
    void (*play)(kit *, int);
    const char *capabilities; /* of a modern server; NULL = a server of 2025-11-25 */
} clients[] = {
    {"a list in pieces", tools_in_pieces, NULL},
    {"the text of a resource", a_text_of_a_resource, NULL},
    {"the messages of a prompt", messages_of_a_prompt, NULL},
    {"texts by event", texts_by_event, SERVER_STREAMS},
};

static uint64_t client_work(size_t row, int n)
{
    kit k = {.quiet = 1};
    if (clients[row].capabilities)
        kit_begin_modern(&k, NULL, clients[row].capabilities);
    else
        kit_begin_2025(&k, NULL, SERVER_PLAIN);
    uint64_t before = sgi_work;
    clients[row].play(&k, n);
    uint64_t work = sgi_work - before;
    kit_end(&k);
    return work;
}

static void clients_are_linear(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof clients / sizeof *clients; row++)
        expect_rows_linear(clients[row].what, client_work, row);
}

/* ---- a whole server ---- */

static int parts; /* how many pieces the handler sends */

static void extend(void *user, segue_call *call)
{
    (void)user;
    assert_int_equal(segue_call_send_text(call, "a", 1, NULL), SEGUE_OK);
    assert_int_equal(segue_call_send_text(call, "b", 1, NULL), SEGUE_OK);
    for (int i = 0; i < parts; i++)
        assert_int_equal(segue_call_extend_text(call, i % 2, "0123456789", 10, NULL),
                         SEGUE_OK);
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

static void read_text(void *user, segue_call *call)
{
    (void)user;
    for (int i = 0; i < parts; i++)
        assert_int_equal(segue_call_send_text(call, "0123456789", 10, NULL), SEGUE_OK);
    assert_int_equal(segue_call_complete(call, NULL, NULL), SEGUE_OK);
    segue_call_free(call);
}

static void add(world *w, int32_t type, const char *json, segue_call_fn on_call)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = on_call;
    assert_int_equal(
        segue_server_add(w->server, type, json, strlen(json), &options, NULL), SEGUE_OK);
}

static void add_fixtures(world *w, int n)
{
    char json[128];
    parts = n;
    add(w, SEGUE_ITEM_TOOL, "{\"name\":\"extend\",\"inputSchema\":{\"type\":\"object\"}}",
        extend);
    add(w, SEGUE_ITEM_RESOURCE, "{\"uri\":\"test://long\",\"name\":\"n\"}", read_text);
    for (int i = 0; i < n; i++) {
        snprintf(json, sizeof json, "{\"name\":\"prompt%d\"}", i);
        add(w, SEGUE_ITEM_PROMPT, json, extend);
    }
}

static const struct {
    const char *what, *method, *params;
} servers[] = {
    {"a text that goes on, in pieces", "tools/call",
     "\"name\":\"extend\",\"_meta\":{\"allowPartial\":true}"},
    {"a text that goes on, whole", "tools/call", "\"name\":\"extend\""},
    {"the text of a resource, in pieces", "resources/read",
     "\"uri\":\"test://long\",\"_meta\":{\"allowPartial\":true}"},
    {"the text of a resource, whole", "resources/read", "\"uri\":\"test://long\""},
    {"a long page, in pieces", "prompts/list", "\"_meta\":{\"allowPartial\":true}"},
    {"a long page, whole", "prompts/list", NULL},
};

static void long_pages(segue_server_options *options)
{
    options->page_size = 1 << 20;
}

static uint64_t server_work(size_t row, int n)
{
    world w = {.place = WORLD_PAIR, .tune = long_pages};
    const char *answer;
    world_begin(&w);
    add_fixtures(&w, n);
    wire *c = legacy_connect(&w, NULL, NULL);
    uint64_t before = sgi_work;
    wire_ask_plain(c, "7", servers[row].method, servers[row].params);
    do
        answer = wire_response(c, "7");
    while (!strcmp(json_at(answer, "result._meta.hasMore"), "true"));
    uint64_t work = sgi_work - before;
    assert_at(answer, "error", "");
    world_end(&w);
    return work;
}

static void servers_are_linear(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof servers / sizeof *servers; row++)
        expect_rows_linear(servers[row].what, server_work, row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_is_linear),
        NAMED("R-776-30 R-776-31 R-776-32 clients are linear", clients_are_linear),
        NAMED("R-776-30 R-776-31 R-776-32 servers are linear", servers_are_linear),
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
