/* The structured content that an operation remembers to check its end when the log has
 * left memory: the last one that was set, none after a replacement, and the same after a
 * restart; also with missing memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "engine/server/task.h"
#include "support/fake_host.h"
#include "support/small_validator.h"
#include "support/test_mem.h"

static test_mem tm;
static fake_host host;
static segue_server *server;
static sgi_op *op;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 31);
    server = fake_server_new(&host);
    server->options.on_validate = small_validate;
    op = fake_task_new(server);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_mem_rearm(&tm);
    sgi_op_unref(op);
    fake_server_end(server);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

static void promise(void)
{
    sgi_item *item = sgi_item_find(server, SEGUE_ITEM_TOOL, SGI_STR("tool"));
    item->has_output = true;
    sgi_item_unref(op->served->item);
    sgi_served_set_item(op, item);
}

static segue_status append(sgi_entry_kind kind, const char *payload)
{
    return sgi_op_append(op, kind, sgi_str_of(payload));
}

static void the_last_one_is_remembered(void **state)
{
    (void)state;
    promise();
    assert_null(op->head.result->structured);
    append(SGI_ENTRY_FIELDS, "{\"_meta\":{\"structuredContent\":1}}");
    assert_null(op->head.result->structured);
    append(SGI_ENTRY_FIELDS, "{\"structuredContent\":{\"n\":1}}");
    append(SGI_ENTRY_FIELDS, "{\"structuredContent\":null,\"x\":1}");
    append(SGI_ENTRY_FIELDS, "{\"x\":2}");
    assert_string_equal(op->head.result->structured, "null");
    append(SGI_ENTRY_REPLACE, "{}");
    assert_null(op->head.result->structured);
}

static void a_tool_that_promises_nothing_takes_no_room(void **state)
{
    (void)state;
    append(SGI_ENTRY_FIELDS, "{\"structuredContent\":1}");
    assert_null(op->head.result->structured);
}

static void without_a_validator_that_it_is_there_will_do(void **state)
{
    (void)state;
    server->options.on_validate = NULL;
    promise();
    append(SGI_ENTRY_FIELDS, "{\"structuredContent\":{\"large\":1}}");
    assert_non_null(op->head.result->structured);
    assert_int_equal(op->head.result->structured_len, 0);
}

static void it_comes_back_from_the_store(void **state)
{
    (void)state;
    promise();
    append(SGI_ENTRY_FIELDS, "{\"structuredContent\":[1]}");
    append(SGI_ENTRY_REPLACE, "{}");
    append(SGI_ENTRY_FIELDS, "{\"structuredContent\":[2]}");
    append(SGI_ENTRY_SEGMENT, "{\"type\":\"text\",\"text\":\"t\"}");
    while (fake_store_commit(&host, SEGUE_OK))
        continue;
    sgi_op *copy = fake_op_replay(&host, op);
    assert_non_null(copy);
    assert_string_equal(
        copy->head.result->structured ? copy->head.result->structured : "-", "[2]");
    sgi_op_unref(copy);
}

static void without_memory_it_is_known_to_be_lost(void **state)
{
    (void)state;
    promise();
    append(SGI_ENTRY_FIELDS, "{\"structuredContent\":[1]}");
    for (size_t n = 1; n < 10; n++) {
        test_mem_rearm(&tm);
        tm.fail_at = n;
        segue_status status = append(SGI_ENTRY_FIELDS, "{\"structuredContent\":[2]}");
        test_mem_rearm(&tm);
        bool is_new =
            op->head.result->structured && !strcmp(op->head.result->structured, "[2]");
        assert_true(status == SEGUE_OK ? is_new || op->head.result->structured_lost
                                       : status == SEGUE_E_NOMEM);
        assert_int_equal(append(SGI_ENTRY_FIELDS, "{\"structuredContent\":[1]}"),
                         SEGUE_OK);
        assert_false(op->head.result->structured_lost);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_one_is_remembered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tool_that_promises_nothing_takes_no_room,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_validator_that_it_is_there_will_do,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_comes_back_from_the_store, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_memory_it_is_known_to_be_lost, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
