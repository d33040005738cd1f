/* The functions of easy.h that read and write JSON. */
#include <segue/easy.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static const char object[] = " {\"a\": [1, \"x\\u00e9\", {}], \"b\\n\":null,\"c\":-7} ";
#define OBJECT object, sizeof object - 1

static void members_are_found(void **state)
{
    const char *value = NULL;
    size_t len = 0;
    int64_t number = 0;
    (void)state;
    assert_int_equal(segue_json_get(OBJECT, "c", &value, &len), SEGUE_OK);
    assert_int_equal(len, 2);
    assert_int_equal(segue_json_int(value, len, &number), SEGUE_OK);
    assert_int_equal(number, -7);
    assert_int_equal(segue_json_get(OBJECT, "b\n", &value, &len), SEGUE_OK);
    assert_memory_equal(value, "null", 4);
    assert_int_equal(segue_json_int(value, len, &number), SEGUE_E_INVALID);
    assert_int_equal(segue_json_get(OBJECT, "d", &value, &len), SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_json_get("[1]", 3, "a", &value, &len), SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_json_get(NULL, 0, "a", &value, &len), SEGUE_E_INVALID);
}

static void parts_are_stepped_through(void **state)
{
    const char *key = NULL, *value = NULL, *list = NULL;
    size_t key_len = 0, len = 0, list_len = 0, at = 0, count = 0;
    (void)state;
    while (segue_json_next(OBJECT, &at, &key, &key_len, &value, &len) == SEGUE_OK)
        count++;
    assert_int_equal(count, 3);
    assert_int_equal(key_len, 3);
    assert_memory_equal(key, "\"c\"", 3);
    assert_int_equal(segue_json_get(OBJECT, "a", &list, &list_len), SEGUE_OK);
    at = count = 0;
    while (segue_json_next(list, list_len, &at, &key, &key_len, &value, &len) == SEGUE_OK)
        count++;
    assert_int_equal(count, 3);
    assert_int_equal(key_len, 0);
    assert_memory_equal(value, "{}", 2);
    at = 0;
    assert_int_equal(segue_json_next("5", 1, &at, NULL, NULL, &value, &len),
                     SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_json_next(OBJECT, &at, &key, NULL, &value, &len),
                     SEGUE_E_INVALID);
}

static void strings_are_decoded_and_written(void **state)
{
    char room[32];
    size_t len = sizeof room;
    (void)state;
    assert_int_equal(segue_json_text("\"x\\u00e9\"", 9, room, &len), SEGUE_OK);
    assert_string_equal(room, "x\xc3\xa9");
    assert_int_equal(len, 3);
    len = 3;
    assert_int_equal(segue_json_text("\"x\\u00e9\"", 9, room, &len), SEGUE_E_TOO_SMALL);
    assert_int_equal(len, 3);
    assert_int_equal(segue_json_text("1", 1, room, &len), SEGUE_E_INVALID);
    len = sizeof room;
    assert_int_equal(segue_json_quote("a\"\n", 3, room, &len), SEGUE_OK);
    assert_string_equal(room, "\"a\\\"\\n\"");
    assert_int_equal(segue_json_quote("\xff", 1, room, &len), SEGUE_E_INVALID);
}

static void a_text_is_checked_within_the_limits(void **state)
{
    segue_runtime_options options = SEGUE_RUNTIME_OPTIONS_INIT;
    segue_runtime *runtime = NULL;
    segue_error *error = NULL;
    (void)state;
    options.max_depth = 2;
    assert_int_equal(segue_runtime_new(&options, &runtime, NULL), SEGUE_OK);
    assert_int_equal(segue_json_check(runtime, "[[]]", 4, &error), SEGUE_OK);
    assert_null(error);
    assert_int_equal(segue_json_check(runtime, "[[[]]]", 6, &error), SEGUE_E_JSON);
    assert_non_null(error);
    segue_error_free(error);
    error = NULL;
    assert_int_equal(segue_json_check(runtime, "{\"a\":}", 6, &error), SEGUE_E_JSON);
    assert_non_null(strstr(segue_error_read(error)->message, "byte 5"));
    segue_error_free(error);
    segue_runtime_free(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(parts_are_stepped_through),
        cmocka_unit_test(strings_are_decoded_and_written),
        cmocka_unit_test(a_text_is_checked_within_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
