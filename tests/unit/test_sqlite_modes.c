/* The modes of a store's files: only the owner may read them, unless the user decided
 * otherwise, since the files contain the arguments and results of tasks. */
#include "support/sqlite_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static const char *const beside[] = {"x.db", "x.db-wal", "x.db-shm", "x.db-owners"};

static void expect_modes(mode_t mode)
{
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        struct stat info;
        assert_int_equal(stat(test_path(beside[i]), &info), 0);
        if ((info.st_mode & 07777) != mode)
            fail_msg("%s is %o", beside[i], (unsigned)info.st_mode);
    }
}

static void a_new_file_is_its_owners_alone(void **state)
{
    static const mode_t masks[] = {0, 022, 077};
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        mode_t before = umask(masks[i]);
        segue_store *store = test_must_open("x.db");
        expect_modes(0600);
        segue_store_free(store);
        umask(before);
        test_clear_directory();
    }
}

/* No temporary file is left. */
static void making_it_leaves_nothing_behind(void **state)
{
    (void)state;
    segue_store *store = test_must_open("x.db");
    /* The directory also has the entries "." and "..". */
    assert_int_equal(test_count_files(test_directory), 4 + 2);
    segue_store_free(store);
}

/* An existing file keeps its mode, so that a group can share a store. */
static void a_file_that_is_there_keeps_its_mode(void **state)
{
    (void)state;
    mode_t before = umask(0);
    test_write_file("x.db", "", 0);
    assert_int_equal(chmod(test_path("x.db"), 0660), 0);
    segue_store *store = test_must_open("x.db");
    expect_modes(0660);
    segue_store_free(store);
    umask(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_new_file_is_its_owners_alone, test_directory_setup),
        cmocka_unit_test_setup(making_it_leaves_nothing_behind, test_directory_setup),
        cmocka_unit_test_setup(a_file_that_is_there_keeps_its_mode, test_directory_setup),
    };
    if (test_directory_make())
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_directory_remove();
    return failed;
}
