/* Tests of the counters (shares) that say which entries of a log may be dropped. */
#include "engine/log/notes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static void the_oldest_share_goes_first(void **state)
{
    (void)state;
    sgi_droppable_entries notes = {0};
    size_t bytes = 0;
    assert_false(sgi_droppable_entries_drop_oldest(&notes, &bytes));
    for (uint64_t seq = 1; seq <= 6; seq++) {
        sgi_droppable_entries_add(&notes, seq, 10, 20);
        bytes += 10;
    }
    assert_true(sgi_droppable_entries_drop_oldest(&notes, &bytes));
    assert_int_equal(notes.dropped, 2);
    assert_int_equal(bytes, 40);
    assert_true(sgi_droppable_entries_drop_oldest(&notes, &bytes));
    assert_true(sgi_droppable_entries_drop_oldest(&notes, &bytes));
    assert_int_equal(notes.dropped, 6);
    assert_int_equal(bytes, 0);
    assert_false(sgi_droppable_entries_drop_oldest(&notes, &bytes));
    assert_int_equal(notes.all_bytes, 0);
}

/* All entries are counted, in a bounded number of shares. */
static void shares_are_bounded(void **state)
{
    (void)state;
    sgi_droppable_entries notes = {0};
    size_t bytes = 0;
    for (uint64_t seq = 1; seq <= 1000; seq++) {
        sgi_droppable_entries_add(&notes, seq, 7, 1);
        bytes += 7;
        assert_true(notes.count <= SGI_DROPPABLE_GROUPS);
    }
    int drops = 0;
    while (sgi_droppable_entries_drop_oldest(&notes, &bytes))
        drops++;
    assert_int_equal(drops, SGI_DROPPABLE_GROUPS);
    assert_int_equal(bytes, 0);
    assert_int_equal(notes.dropped, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_share_goes_first),
        cmocka_unit_test(shares_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
