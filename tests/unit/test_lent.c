/* A callback of the application reads bytes of an operation without the lock: the answer
 * to a question, or structured content. These bytes do not move while the callback runs,
 * even when the operation is lost to another server and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/cluster/following.h"
#include "engine/server/call.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

#define KEY "k"
#define ANSWER "{\"action\":\"decline\"}"
#define OUTPUT "{\"n\":7}"

static test_mem tm;
static fake_host host;
static segue_server *server;
static segue_call *calls[2]; /* of the first run, and of the one after the return */
static int frees, runs;
static char read_bytes[64]; /* what the callback read, copied after the operation came
                               back */

static void keep(void *user, segue_call *call)
{
    (void)user;
    assert_true(runs < 2);
    calls[runs++] = call;
}

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 41);
    server = fake_server_new(&host);
    sgi_item *item = sgi_item_find(server, SEGUE_ITEM_TOOL, SGI_STR("tool"));
    item->options.on_call = keep;
    item->options.flags = SEGUE_TOOL_RESTARTABLE;
    frees = runs = 0;
    memset(read_bytes, 0, sizeof read_bytes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

static sgi_op *running_task(void)
{
    sgi_op *op = fake_task_new(server);
    fake_store_settle(&host);
    assert_int_equal(sgi_call_start(op, false), SEGUE_OK);
    fake_host_deliver(&host);
    assert_int_equal(runs, 1);
    return op;
}

/* The work of the runtime's own thread while a callback runs: a commit is refused,
 * because another server has the operation, and the store gives it back to this one. */
static void lose_and_regain(sgi_op *op)
{
    host.engine.host.lock(&host);
    assert_int_equal(sgi_op_append(op, SGI_ENTRY_STATUS, SGI_STR("{}")), SEGUE_OK);
    assert_true(fake_store_commit(&host, SEGUE_E_FENCED));
    assert_true(sgi_op_runs_elsewhere(op));
    server->cluster.recovering++;
    sgi_cluster_ref(&server->cluster);
    sgi_followed_take_over(op);
    fake_store_settle(&host);
    fake_host_advance(&host, 1000);
    fake_store_settle(&host);
    host.engine.host.unlock(&host);
}

static void read_later(sgi_op *op, const char *bytes, size_t len)
{
    lose_and_regain(op);
    snprintf(read_bytes, sizeof read_bytes, "%.*s", (int)len, bytes);
}

static void must_be_regained(const sgi_op *op)
{
    fake_store_settle(&host);
    fake_host_advance(&host, 1000);
    fake_host_deliver(&host);
    fake_store_settle(&host);
    assert_false(op->shared->stale);
    assert_true(sgi_op_is_owned_here(op));
    assert_int_equal(runs, 2);
}

/* ---- the answer to a question ---- */

static void take_answer(void *user, segue_call *call, segue_status status,
                        const char *answer, size_t len)
{
    (void)call;
    if (status == SEGUE_OK)
        read_later(user, answer, len);
}

static void free_it(void *user)
{
    (void)user;
    frees++;
}

static void an_answer_stays(void **state)
{
    (void)state;
    sgi_op *op = running_task();
    assert_int_equal(sgi_call_require_input(calls[0], KEY, "elicitation/create", "{}", 2,
                                            take_answer, op, free_it),
                     SEGUE_OK);
    assert_int_equal(
        sgi_op_append(op, SGI_ENTRY_INPUT_ANSWER,
                      SGI_STR("{\"key\":\"" KEY "\",\"response\":" ANSWER "}")),
        SEGUE_OK);
    fake_store_settle(&host);
    fake_host_deliver(&host);
    assert_string_equal(read_bytes, ANSWER);
    assert_int_equal(frees, 1);
    must_be_regained(op);
    sgi_call_free(calls[0]);
    sgi_call_free(calls[1]);
    sgi_op_unref(op);
}

/* ---- structured content ---- */

static segue_status check(void *user, const char *tool, int32_t what, const char *schema,
                          size_t schema_len, const char *value, size_t len, char *reason,
                          size_t size)
{
    (void)user, (void)tool, (void)schema, (void)schema_len, (void)reason, (void)size;
    if (what == SEGUE_VALIDATE_RESULT)
        read_later(calls[0]->op, value, len);
    return SEGUE_OK;
}

static void structured_content_stays(void **state)
{
    (void)state;
    server->options.on_validate = check;
    sgi_item *item = sgi_item_find(server, SEGUE_ITEM_TOOL, SGI_STR("tool"));
    item->has_output = true;
    sgi_op *op = running_task();
    op->output = SGI_OUTPUT_KEPT;
    assert_int_equal(
        sgi_call_set_field(calls[0], "structuredContent", OUTPUT, strlen(OUTPUT)),
        SEGUE_OK);
    fake_store_settle(&host);
    assert_int_equal(sgi_call_complete(calls[0], NULL), SEGUE_OK);
    fake_host_deliver(&host);
    assert_string_equal(read_bytes, OUTPUT);
    must_be_regained(op);
    sgi_call_free(calls[0]);
    sgi_call_free(calls[1]);
    sgi_op_unref(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(structured_content_stays, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
