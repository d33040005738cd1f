/* Archives: what a store takes, it passes again, byte by byte. Wrong archives are refused
 * with a reason, and what was made before stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <segue/segue_ext.h>

#include "../support/test_mem.h"
#include "base/thresholds.h"
#include "store/store.h"

#define START "{\"archive\":1,\"records\":2}"
#define ZEROS "AAAAAAAAAAAAAAAAAAAAAA=="
#define HASH "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
#define OPERATION(task, id, more)                                                        \
    "{\"operation\":{\"taskId\":\"" task "\",\"id\":\"" id "\"," more                    \
    "\"principal\":\"" HASH "\",\"createdMs\":5,\"text\":\"{}\"}}"
#define ENTRY(seq, more)                                                                 \
    "{\"entry\":{\"seq\":" #seq "," more "\"kind\":1,\"atMs\":7,\"text\":\"x\"}}"
#define LIVE "{\"state\":{\"ended\":0}}"
#define ENDED "{\"state\":{\"ended\":1,\"purgeMs\":9}}"
#define END(n) "{\"end\":{\"operations\":" #n "}}"

/* An ended operation that has a key, a live one without entries, and one that lacks
 * dropped entries. Its last entry is no text. */
static const char *const whole[] = {
    START,
    OPERATION("t1", "AQAAAAAAAAAAAAAAAAAAAA==", "\"key\":\"" HASH "\","),
    ENTRY(1, "\"segment\":1,\"event\":1,"),
    ENTRY(2, ""),
    ENDED,
    OPERATION("t2", "AgAAAAAAAAAAAAAAAAAAAA==", ""),
    LIVE,
    OPERATION("t3 \\\"\\u0001\303\244", "AwAAAAAAAAAAAAAAAAAAAA==", ""),
    ENTRY(3, ""),
    ENTRY(4, "\"segment\":8,"),
    "{\"entry\":{\"seq\":9,\"kind\":7,\"atMs\":7,\"base64\":\"/wD+\"}}",
    LIVE,
    END(3),
};
#define WHOLE (sizeof whole / sizeof *whole)

static test_mem tm;

static segue_store *memory_store(void)
{
    segue_store_options options = SEGUE_STORE_OPTIONS_INIT;
    segue_store *store;
    options.allocator = &tm.mem;
    assert_int_equal(segue_store_memory(&options, &store), SEGUE_OK);
    return store;
}

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return tm.blocks == 0 ? 0 : -1;
}

/* Takes lines; returns the status of the first one that fails. */
static segue_status take(segue_store_importer *importer, const char *const *lines,
                         size_t count, segue_error **error)
{
    segue_status status = SEGUE_OK;
    for (size_t i = 0; i < count && status == SEGUE_OK; i++)
        status = segue_store_importer_add(importer, lines[i], SEGUE_TO_NUL, error);
    return status;
}

static void take_whole(segue_store *store, uint64_t made, uint64_t present)
{
    segue_store_importer *importer;
    uint64_t counts[3] = {99, 99, 99};
    assert_int_equal(segue_store_importer_new(store, &importer), SEGUE_OK);
    assert_int_equal(take(importer, whole, WHOLE, NULL), SEGUE_OK);
    assert_int_equal(
        segue_store_importer_close(importer, &counts[0], &counts[1], &counts[2]),
        SEGUE_OK);
    assert_int_equal(counts[2], 0);
    assert_int_equal(counts[0], made);
    assert_int_equal(counts[1], present);
}

/* An archive has its operations in the order of their ids here, as all are equally
 * old. */
static int32_t compare_line(void *user, const char *line, size_t len)
{
    size_t *at = user;
    assert_true(*at < WHOLE);
    assert_int_equal(len, strlen(whole[*at]));
    assert_memory_equal(line, whole[*at], len);
    ++*at;
    return 0;
}

static void expect_whole(segue_store *store)
{
    size_t at = 0;
    assert_int_equal(segue_store_export(store, compare_line, &at, NULL), SEGUE_OK);
    assert_int_equal(at, WHOLE);
}

static void take_and_pass(segue_store *store)
{
    take_whole(store, 3, 0);
    expect_whole(store);
    take_whole(store, 0, 3); /* nothing of it changes */
    expect_whole(store);
}

static void a_memory_store_passes_what_it_took(void **state)
{
    (void)state;
    segue_store *store = memory_store();
    take_and_pass(store);
    segue_store_free(store);
}

static void a_sqlite_store_passes_what_it_took(void **state)
{
    char path[] = "/tmp/segue-archive-XXXXXX", side[64];
    static const char *const suffixes[] = {"", "-wal", "-shm", "-owners"};
    segue_store *store;
    (void)state;
    close(mkstemp(path));
    assert_int_equal(segue_store_sqlite(path, NULL, &store, NULL), SEGUE_OK);
    take_and_pass(store);
    segue_store_free(store);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(side, sizeof side, "%s%s", path, suffixes[i]);
        unlink(side);
    }
}

static int32_t note_claim(void *user, const segue_store_record *record)
{
    char *claimed = user;
    claimed[strlen(claimed)] = record->task_id[1];
    return 0;
}

static void what_has_not_ended_is_taken_over(void **state)
{
    char claimed[8] = "";
    (void)state;
    segue_store *store = memory_store();
    take_whole(store, 3, 0);
    assert_int_equal(sgi_store_claim(store, note_claim, claimed), SEGUE_OK);
    assert_string_equal(claimed, "23");
    segue_store_free(store);
}

static int32_t stop_at_three(void *user, const char *line, size_t len)
{
    (void)line;
    (void)len;
    return ++*(int *)user == 3;
}

static void an_export_that_is_stopped_is_not_whole(void **state)
{
    int lines = 0;
    (void)state;
    segue_store *store = memory_store();
    take_whole(store, 3, 0);
    assert_int_equal(segue_store_export(store, stop_at_three, &lines, NULL),
                     SEGUE_E_CANCELLED);
    assert_int_equal(lines, 3);
    segue_store_free(store);
}

/* Each case ends with the line that is refused. */
static void wrong_archives_are_refused(void **state)
{
    static const struct {
        const char *why;
        const char *lines[6];
    } cases[] = {
        {"no JSON", {"{"}},
        {"no line of an archive", {"{}"}},
        {"no line of an archive", {"[]"}},
        {"no archive", {"{\"archive\":1}"}},
        {"no archive", {"{\"archive\":\"1\",\"records\":2}"}},
        {"no archive", {START, START}},
        {"format", {"{\"archive\":2,\"records\":2}"}},
        {"newer", {"{\"archive\":1,\"records\":3}"}},
        {"begins", {OPERATION("t", ZEROS, "")}},
        {"begins", {START, OPERATION("t", ZEROS, ""), OPERATION("u", ZEROS, "")}},
        {"operation", {START, "{\"operation\":{}}"}},
        {"operation", {START, OPERATION("", ZEROS, "")}},
        {"operation", {START, OPERATION("a\\u0000b", ZEROS, "")}},
        {"operation", {START, OPERATION("t", "AAAA", "")}},
        {"operation", {START, OPERATION("t", "no base64", "")}},
        {"operation", {START, OPERATION("t", ZEROS, "\"key\":\"AAAA\",")}},
        {"entry", {START, ENTRY(1, "")}},
        {"entry", {START, OPERATION("t", ZEROS, ""), ENTRY(0, "")}},
        {"entry", {START, OPERATION("t", ZEROS, ""), ENTRY(-1, "")}},
        {"entry", {START, OPERATION("t", ZEROS, ""), ENTRY(2, ""), ENTRY(2, "")}},
        {"entry", {START, OPERATION("t", ZEROS, ""), "{\"entry\":{\"seq\":1}}"}},
        {"state", {START, LIVE}},
        {"state", {START, OPERATION("t", ZEROS, ""), "{\"state\":{\"ended\":\"no\"}}"}},
        {"open", {START, "{\"gone\":1}"}},
        {"before its last", {START, OPERATION("t", ZEROS, ""), END(1)}},
        {"lacks", {START, OPERATION("t", ZEROS, ""), LIVE, END(2)}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        segue_store *store = memory_store();
        segue_store_importer *importer;
        segue_error *error = NULL;
        size_t count = 0;
        while (count < 6 && cases[i].lines[count])
            count++;
        assert_int_equal(segue_store_importer_new(store, &importer), SEGUE_OK);
        assert_int_equal(take(importer, cases[i].lines, count - 1, NULL), SEGUE_OK);
        assert_int_equal(take(importer, &cases[i].lines[count - 1], 1, &error),
                         SEGUE_E_INVALID);
        if (!strstr(segue_error_read(error)->message, cases[i].why))
            fail_msg("case %zu: %s", i, segue_error_read(error)->message);
        segue_error_free(error);
        assert_int_equal(take(importer, whole, 1, NULL), SEGUE_E_STATE);
        assert_int_equal(segue_store_importer_close(importer, NULL, NULL, NULL),
                         SEGUE_E_INCOMPLETE);
        segue_store_free(store);
    }
}

static void a_part_of_an_archive_makes_its_operations(void **state)
{
    (void)state;
    for (size_t lines = 0; lines < WHOLE; lines++) {
        segue_store *store = memory_store();
        segue_store_importer *importer;
        uint64_t made = 99;
        assert_int_equal(segue_store_importer_new(store, &importer), SEGUE_OK);
        assert_int_equal(take(importer, whole, lines, NULL), SEGUE_OK);
        assert_int_equal(segue_store_importer_close(importer, &made, NULL, NULL),
                         SEGUE_E_INCOMPLETE);
        assert_int_equal(made, (lines >= 5) + (lines >= 7) + (lines >= 12));
        segue_store_free(store);
    }
}

static void an_operation_that_is_gone_is_not_made(void **state)
{
    static const char *const lines[] = {START, OPERATION("t", ZEROS, ""), ENTRY(1, ""),
                                        "{\"gone\":1}", END(1)};
    segue_store_importer *importer;
    uint64_t made = 99;
    (void)state;
    segue_store *store = memory_store();
    assert_int_equal(segue_store_importer_new(store, &importer), SEGUE_OK);
    assert_int_equal(take(importer, lines, 5, NULL), SEGUE_OK);
    assert_int_equal(segue_store_importer_close(importer, &made, NULL, NULL), SEGUE_OK);
    assert_int_equal(made, 0);
    segue_store_free(store);
}

/* Notes the last digit of an entry's number. */
static int32_t note_number(void *user, const char *line, size_t len)
{
    char *numbers = user;
    (void)len;
    numbers[strlen(numbers)] = line[strcspn(line, ",") - 1];
    return 0;
}

/* The store had lost entries, and the end stands behind a large gap. */
static void the_end_of_a_torn_log_is_taken(void **state)
{
    static const char *const lines[] = {
        START,
        OPERATION("t", ZEROS, ""),
        ENTRY(1, ""),
        ENTRY(2, ""),
        "{\"entry\":{\"seq\":16777219,\"kind\":9,\"atMs\":5,\"text\":\"{}\"}}",
        "{\"entry\":{\"seq\":16777220,\"kind\":9,\"atMs\":5,\"text\":\"{}\"}}",
        "{\"state\":{\"ended\":1}}",
        END(1)};
    segue_store_importer *importer;
    uint64_t made = 99;
    char numbers[32] = "";
    (void)state;
    segue_store *store = memory_store();
    assert_int_equal(segue_store_importer_new(store, &importer), SEGUE_OK);
    assert_int_equal(take(importer, lines, 8, NULL), SEGUE_OK);
    assert_int_equal(segue_store_importer_close(importer, &made, NULL, NULL), SEGUE_OK);
    assert_int_equal(made, 1);
    assert_int_equal(segue_store_entries(store, "t", 0, note_number, numbers, NULL, NULL),
                     SEGUE_OK);
    assert_string_equal(numbers, "1234");
    segue_store_free(store);
}

static int32_t ignore_line(void *user, const char *line, size_t len)
{
    (void)user;
    (void)line;
    (void)len;
    return 0;
}

/* Each allocation fails once: the call says so, and the operations before it stay. */
static void missing_memory_is_reported(void **state)
{
    (void)state;
    for (size_t at = 1, failed = 1; failed; at++) {
        segue_store *store = memory_store();
        segue_store_importer *importer = NULL;
        test_mem_rearm(&tm);
        tm.fail_at = at;
        segue_status status = segue_store_importer_new(store, &importer);
        if (importer) {
            status = take(importer, whole, WHOLE, NULL);
            segue_store_importer_close(importer, NULL, NULL, NULL);
        }
        if (status == SEGUE_OK)
            status = segue_store_export(store, ignore_line, NULL, NULL);
        failed = tm.failed;
        if (status != SEGUE_E_NOMEM && status != SEGUE_OK)
            fail_msg("allocation %zu: status %d", at, (int)status);
        test_mem_rearm(&tm);
        if (failed && status == SEGUE_OK)
            expect_whole(store); /* the store did without this memory */
        segue_store_free(store);
    }
}

/* What fails for one operation is left out, and the others are made. */
static void expect_left_out(segue_store *store, const char *const *lines, size_t count,
                            segue_status wanted, const char *why)
{
    segue_store_importer *importer;
    uint64_t made = 99, left_out = 99;
    int failures = 0;
    assert_int_equal(segue_store_importer_new(store, &importer), SEGUE_OK);
    for (size_t i = 0; i < count; i++) {
        segue_error *error = NULL;
        segue_status status =
            segue_store_importer_add(importer, lines[i], SEGUE_TO_NUL, &error);
        failures += status != SEGUE_OK;
        if (status != SEGUE_OK) {
            assert_int_equal(status, wanted);
            assert_non_null(strstr(segue_error_read(error)->message, why));
        }
        segue_error_free(error);
    }
    assert_int_equal(failures, 1);
    assert_int_equal(segue_store_importer_close(importer, &made, NULL, &left_out),
                     SEGUE_OK);
    assert_int_equal(made, 1);
    assert_int_equal(left_out, 1);
}

#define OTHER_ID "BQAAAAAAAAAAAAAAAAAAAA=="

static void another_operation_with_the_id_or_the_key_is_told(void **state)
{
    static const char *const same_id[] = {START, OPERATION("t1", OTHER_ID, ""),
                                          LIVE,  OPERATION("t9", ZEROS, ""),
                                          LIVE,  END(2)};
    static const char *const same_key[] = {
        START, OPERATION("t8", OTHER_ID, "\"key\":\"" HASH "\","),
        LIVE,  OPERATION("t9", ZEROS, ""),
        LIVE,  END(2)};
    (void)state;
    for (int key = 0; key < 2; key++) {
        segue_store *store = memory_store();
        take_whole(store, 3, 0);
        expect_left_out(store, key ? same_key : same_id, 6, SEGUE_E_EXISTS, "another");
        segue_store_free(store);
    }
}

#ifdef SGI_KNOBS
static void an_operation_with_too_many_entries_is_left_out(void **state)
{
    static const char *const lines[] = {
        START, OPERATION("t", ZEROS, ""),    ENTRY(2, ""), ENTRY(3, ""), ENTRY(4, ""),
        LIVE,  OPERATION("u", OTHER_ID, ""), ENTRY(3, ""), LIVE,         END(2)};
    (void)state;
    segue_store *store = memory_store();
    uint64_t was = sgi_thresholds.archive_entries;
    sgi_thresholds.archive_entries = 3;
    expect_left_out(store, lines, 10, SEGUE_E_LIMIT, "more entries");
    sgi_thresholds.archive_entries = was;
    segue_store_free(store);
}
#endif

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_memory_store_passes_what_it_took),
        CASE(a_sqlite_store_passes_what_it_took),
        CASE(what_has_not_ended_is_taken_over),
        CASE(an_export_that_is_stopped_is_not_whole),
        CASE(wrong_archives_are_refused),
        CASE(a_part_of_an_archive_makes_its_operations),
        CASE(an_operation_that_is_gone_is_not_made),
        CASE(the_end_of_a_torn_log_is_taken),
        CASE(another_operation_with_the_id_or_the_key_is_told),
        CASE(missing_memory_is_reported),
#ifdef SGI_KNOBS
        CASE(an_operation_with_too_many_entries_is_left_out),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
