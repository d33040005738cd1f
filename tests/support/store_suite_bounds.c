/* The cases for stores that limit the operations of a principal. */
#include "support/store_suite_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/store_kit.h"

static void must_end_of(segue_store *store, uint32_t n)
{
    assert_int_equal(test_commit_one(store, test_write_end(n, INT64_MAX)), SEGUE_OK);
}

static segue_status create_of(segue_store *store, uint32_t n, uint8_t principal)
{
    test_record r;
    test_record_init(&r, n);
    memset(r.record.principal, principal, sizeof r.record.principal);
    r.record.created_ms = n;
    return test_commit_one(store, test_write_create(&r));
}

static int32_t exists(void *user, const segue_store_record *record)
{
    (void)user;
    (void)record;
    return 1;
}

static segue_status is_there(segue_store *store, uint32_t n)
{
    char task_id[32];
    snprintf(task_id, sizeof task_id, "task-%u", n);
    return sgi_store_find(store, task_id, NULL, exists, NULL);
}

static void principal_has_so_many_operations(void **state)
{
    segue_store_options options = {.struct_size = sizeof options,
                                   .max_principal_operations = 4};
    segue_store *store = store_suite_open_empty(state, &options);
    for (uint32_t n = 1; n <= 4; n++)
        assert_int_equal(create_of(store, n, 7), SEGUE_OK);
    assert_int_equal(create_of(store, 5, 7), SEGUE_E_STORE_FULL);
    assert_int_equal(is_there(store, 5), SEGUE_E_NOT_FOUND);
    assert_int_equal(create_of(store, 6, 8), SEGUE_OK); /* another principal's operations
                                                         * do not count */
    must_end_of(store, 3);
    must_end_of(store, 2);
    must_end_of(store, 6);
    assert_int_equal(create_of(store, 5, 7), SEGUE_OK);
    assert_int_equal(is_there(store, 2), SEGUE_E_NOT_FOUND);
    assert_int_equal(is_there(store, 3), SEGUE_OK);
    assert_int_equal(is_there(store, 6), SEGUE_OK);
    /* A commit that fails for another reason must not use up the bound. */
    test_record r;
    test_record_init(&r, 9);
    memset(r.record.principal, 7, sizeof r.record.principal);
    segue_store_write bad[] = {test_write_create(&r), test_write_append(9, 5, "x", 1)};
    assert_int_equal(sgi_store_commit(store, bad, 2), SEGUE_E_STATE);
    assert_int_equal(is_there(store, 3), SEGUE_OK);
    assert_int_equal(create_of(store, 9, 7), SEGUE_OK);
    assert_int_equal(is_there(store, 3), SEGUE_E_NOT_FOUND);
    assert_int_equal(create_of(store, 10, 7), SEGUE_E_STORE_FULL);
    sgi_store_unref(store);
}

static void principal_has_so_many_bytes(void **state)
{
    segue_store_options options = {.struct_size = sizeof options,
                                   .max_principal_bytes = 20 * 1024};
    segue_store *store = store_suite_open_empty(state, &options);
    static char data[8 * 1024];
    for (uint32_t n = 1; n <= 2; n++) {
        assert_int_equal(create_of(store, n, 7), SEGUE_OK);
        assert_int_equal(
            test_commit_one(store, test_write_append(n, 1, data, sizeof data)), SEGUE_OK);
        must_end_of(store, n);
    }
    assert_int_equal(create_of(store, 3, 7), SEGUE_OK);
    assert_int_equal(is_there(store, 1), SEGUE_OK);
    assert_int_equal(test_commit_one(store, test_write_append(3, 1, data, sizeof data)),
                     SEGUE_OK);
    must_end_of(store, 3);
    assert_int_equal(create_of(store, 4, 7), SEGUE_OK);
    assert_int_equal(is_there(store, 1), SEGUE_E_NOT_FOUND);
    assert_int_equal(is_there(store, 2), SEGUE_OK);
    sgi_store_unref(store);
}

static void negative_bounds_are_refused(void **state)
{
    const store_suite *suite = *state;
    segue_store *store = NULL;
    segue_store_options bad[] = {{.max_principal_operations = -1},
                                 {.max_principal_bytes = -1}};
    for (size_t i = 0; i < 2; i++) {
        bad[i].struct_size = sizeof bad[i];
        suite->clear();
        assert_int_equal(suite->open(&bad[i], &store), SEGUE_E_INVALID);
    }
    assert_null(store);
}

int store_suite_run_bounds(const store_suite *suite)
{
    struct CMUnitTest cases[] = {
        cmocka_unit_test(principal_has_so_many_operations),
        cmocka_unit_test(principal_has_so_many_bytes),
        cmocka_unit_test(negative_bounds_are_refused),
    };
    return STORE_SUITE_RUN_GROUP(suite, "bounds", cases);
}
