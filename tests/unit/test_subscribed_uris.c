/* Marks: each change of a resource is reported once. Their number and bytes are
 * bounded. */
#include "engine/server/subscribed_uris.h"
#include "support/fake_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static fake_host host;
static sgi_subscribed_uris *marks;

static int open_marks(void **state)
{
    (void)state;
    fake_host_init(&host, &sgi_mem_libc, 1);
    marks = sgi_subscribed_uris_new(&host.engine.env);
    return marks ? 0 : 1;
}

static int close_marks(void **state)
{
    (void)state;
    sgi_subscribed_uris_free(marks);
    fake_host_free(&host);
    return 0;
}

static void expect_next(const char *uri)
{
    const sgi_subscribed_uri *mark = sgi_subscribed_uris_take_changed(marks);
    if (!uri) {
        assert_null(mark);
        return;
    }
    assert_non_null(mark);
    assert_true(sgi_str_eq((sgi_str){mark->uri, mark->len}, sgi_str_of(uri)));
}

static void each_is_told_once_in_the_order_of_change(void **state)
{
    (void)state;
    assert_int_equal(sgi_subscribed_uris_add(marks, SGI_STR("a")), SEGUE_OK);
    assert_int_equal(sgi_subscribed_uris_add(marks, SGI_STR("b")), SEGUE_OK);
    assert_int_equal(sgi_subscribed_uris_add(marks, SGI_STR("a")), SEGUE_OK);
    expect_next(NULL);
    assert_false(sgi_subscribed_uris_mark_changed(marks, SGI_STR("c")));
    for (int i = 0; i < 3; i++) {
        assert_true(sgi_subscribed_uris_mark_changed(marks, SGI_STR("b")));
        assert_true(sgi_subscribed_uris_mark_changed(marks, SGI_STR("a")));
    }
    expect_next("b");
    assert_true(sgi_subscribed_uris_mark_changed(marks, SGI_STR("b")));
    expect_next("a");
    expect_next("b");
    expect_next(NULL);
}

static void what_is_removed_is_not_told(void **state)
{
    (void)state;
    sgi_subscribed_uris_add(marks, SGI_STR("a"));
    sgi_subscribed_uris_add(marks, SGI_STR("b"));
    sgi_subscribed_uris_mark_changed(marks, SGI_STR("a"));
    sgi_subscribed_uris_mark_changed(marks, SGI_STR("b"));
    sgi_subscribed_uris_remove(marks, SGI_STR("a"));
    sgi_subscribed_uris_remove(marks, SGI_STR("none"));
    expect_next("b");
    expect_next(NULL);
    assert_false(sgi_subscribed_uris_mark_changed(marks, SGI_STR("a")));
    assert_int_equal(marks->bytes, 1);
}

static void nobody_has_none(void **state)
{
    (void)state;
    assert_false(sgi_subscribed_uris_mark_changed(NULL, SGI_STR("a")));
    assert_null(sgi_subscribed_uris_take_changed(NULL));
    sgi_subscribed_uris_free(NULL);
}

static void they_are_bounded(void **state)
{
    static char huge[8192];
    char uri[16];
    (void)state;
    for (int i = 0; i < SGI_SUBSCRIBED_URIS_MAX; i++) {
        snprintf(uri, sizeof uri, "x:%d", i);
        assert_int_equal(sgi_subscribed_uris_add(marks, sgi_str_of(uri)), SEGUE_OK);
    }
    assert_int_equal(sgi_subscribed_uris_add(marks, SGI_STR("y")), SEGUE_E_LIMIT);
    assert_int_equal(sgi_subscribed_uris_add(marks, SGI_STR("x:7")), SEGUE_OK);
    for (int i = 0; i < SGI_SUBSCRIBED_URIS_MAX; i++) {
        snprintf(uri, sizeof uri, "x:%d", i);
        sgi_subscribed_uris_remove(marks, sgi_str_of(uri));
    }
    assert_int_equal(marks->bytes, 0);
    for (size_t i = 0; i < SGI_SUBSCRIBED_URIS_BYTES / sizeof huge; i++) {
        huge[i] = 'x';
        assert_int_equal(sgi_subscribed_uris_add(marks, (sgi_str){huge, sizeof huge}),
                         SEGUE_OK);
    }
    assert_int_equal(sgi_subscribed_uris_add(marks, SGI_STR("y")), SEGUE_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_is_told_once_in_the_order_of_change,
                                        open_marks, close_marks),
        cmocka_unit_test_setup_teardown(what_is_removed_is_not_told, open_marks,
                                        close_marks),
        cmocka_unit_test_setup_teardown(nobody_has_none, open_marks, close_marks),
        cmocka_unit_test_setup_teardown(they_are_bounded, open_marks, close_marks),
    };
    return cmocka_run_group_tests_name("marks", tests, NULL, NULL);
}
