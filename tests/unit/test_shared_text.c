/* Texts that several owners share, and the memory store that keeps the text of a record
 * in place of a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/shared_text.h"
#include "store/store.h"
#include "support/test_mem.h"

#define TASK "task-1"
#define DATA "{\"tool\":\"t\"}"
#define DATA_AT 10

static test_mem server_mem, store_mem;
static segue_store *store;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&server_mem);
    test_mem_init(&store_mem);
    segue_store_options options = SEGUE_STORE_OPTIONS_INIT;
    options.allocator = &store_mem.mem;
    return sgi_store_memory_new(&options, &store);
}

static int tear_down(void **state)
{
    (void)state;
    sgi_store_unref(store);
    assert_int_equal(store_mem.live, 0);
    assert_int_equal(server_mem.live, 0);
    return 0;
}

static sgi_shared_text *new_text(void)
{
    sgi_shared_text *text = sgi_shared_text_new(&server_mem.mem, DATA_AT + sizeof DATA);
    assert_non_null(text);
    memcpy(text->bytes, TASK, sizeof TASK);
    memcpy(text->bytes + DATA_AT, DATA, sizeof DATA);
    return text;
}

static segue_status create(sgi_shared_text *text, bool shares)
{
    segue_store_record record = {.id = {1},
                                 .task_id = text->bytes,
                                 .data = text->bytes + DATA_AT,
                                 .data_len = strlen(DATA),
                                 .purge_ms = INT64_MAX,
                                 .shared = shares ? text : NULL};
    segue_store_write write = {.kind = SEGUE_STORE_CREATE, .record = &record};
    memcpy(write.id, record.id, sizeof write.id);
    return sgi_store_commit(store, &write, 1);
}

static int32_t see(void *user, const segue_store_record *record)
{
    assert_string_equal(record->task_id, TASK);
    assert_int_equal(record->data_len, strlen(DATA));
    assert_memory_equal(record->data, DATA, record->data_len);
    assert_null(record->shared);
    *(const char **)user = record->data;
    return 0;
}

static const char *find(void)
{
    const char *data = NULL;
    assert_int_equal(sgi_store_find(store, TASK, NULL, see, &data), SEGUE_OK);
    return data;
}

static void the_last_owner_frees(void **state)
{
    (void)state;
    sgi_shared_text *text = new_text();
    assert_ptr_equal(sgi_shared_text_ref(text), text);
    sgi_shared_text_unref(text);
    assert_true(server_mem.live > 0);
    sgi_shared_text_unref(text);
    sgi_shared_text_unref(NULL);
    assert_int_equal(server_mem.live, 0);
    assert_null(sgi_shared_text_new(&server_mem.mem, SIZE_MAX / 2));
    test_mem_rearm(&server_mem);
    server_mem.fail_at = 1;
    assert_null(sgi_shared_text_new(&server_mem.mem, 1));
}

static void the_store_keeps_the_text(void **state)
{
    (void)state;
    sgi_shared_text *text = new_text();
    assert_int_equal(create(text, true), SEGUE_OK);
    const char *kept = text->bytes + DATA_AT;
    sgi_shared_text_unref(text);
    assert_ptr_equal(find(), kept);
    segue_store_write write = {.kind = SEGUE_STORE_DELETE, .id = {1}};
    assert_int_equal(sgi_store_commit(store, &write, 1), SEGUE_OK);
}

static void the_store_copies_what_is_not_shared(void **state)
{
    (void)state;
    sgi_shared_text *text = new_text();
    assert_int_equal(create(text, false), SEGUE_OK);
    sgi_shared_text_unref(text);
    assert_int_equal(server_mem.live, 0);
    find();
}

static void a_failed_commit_keeps_nothing(void **state)
{
    (void)state;
    segue_status status = SEGUE_E_NOMEM;
    size_t failures = 0;
    for (size_t at = 1; status == SEGUE_E_NOMEM; at++) {
        sgi_shared_text *text = new_text();
        test_mem_rearm(&store_mem);
        store_mem.fail_at = at;
        status = create(text, at % 2);
        failures += status == SEGUE_E_NOMEM;
        test_mem_rearm(&store_mem);
        sgi_shared_text_unref(text);
        if (status == SEGUE_E_NOMEM)
            assert_int_equal(server_mem.live, 0);
    }
    assert_int_equal(status, SEGUE_OK);
    assert_true(failures > 1);
    find();
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_last_owner_frees),
        CASE(the_store_keeps_the_text),
        CASE(the_store_copies_what_is_not_shared),
        CASE(a_failed_commit_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
