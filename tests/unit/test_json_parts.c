/* Members of a text that are recorded while it is read. A lookup gives the same values as
 * a walk over the text, and without a record it is a walk. Spans point into the text, so
 * the position shows which way was taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/test_mem.h"
#include "wire/json_read.h"

static const sgi_str trail_names[2][2] = {
    {SGI_STR_INIT("params"), {NULL, 0}},
    {SGI_STR_INIT("_meta"), SGI_STR_INIT("payload")}};
static const sgi_str wanted[] = {SGI_STR_INIT("x"), SGI_STR_INIT("y")};

static test_mem tm;
static sgi_json_reader reader;
static sgi_json_part parts[2];
static sgi_json_error error;

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 0x5a, len);
    return 0;
}

static int set_up(void **state)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    (void)state;
    test_mem_init(&tm);
    sgi_env env = {&tm.mem, &hooks};
    sgi_json_reader_init(&reader, &env, 1 << 20, 4);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_json_reader_free(&reader);
    return tm.live == 0 ? 0 : -1;
}

static bool read_parts(const char *text)
{
    sgi_json_part_names trail = {trail_names, parts, 2, NULL};
    memset(parts, 0x5a, sizeof parts); /* earlier contents must not be used */
    return sgi_json_read_parts(&reader, sgi_str_of(text), NULL, 0, NULL, &error, &trail);
}

static void assert_span(sgi_json got, const char *want)
{
    assert_int_equal(got.n, strlen(want));
    assert_true(sgi_str_eq(got, sgi_str_of(want)));
}

static void assert_picked(const sgi_json_part *part, sgi_json object, const char *x,
                          const char *y)
{
    sgi_json walked[2], picked[2];
    sgi_json_pick(object, wanted, 2, walked);
    sgi_json_pick_part(part, object, wanted, 2, picked);
    for (size_t i = 0; i < 2; i++) {
        assert_ptr_equal(picked[i].p, walked[i].p);
        assert_int_equal(picked[i].n, walked[i].n);
    }
    assert_span(picked[0], x);
    assert_span(picked[1], y);
}

static void parts_are_recorded_on_the_way(void **state)
{
    (void)state;
    assert_true(
        read_parts("{\"id\":1,\"params\" : {\"\\u0078\":[{}], \"_meta\":{\"y\":{\"x\":"
                   "1},\"x\":\"}\"} ,\"y\":2},\"x\":3}"));
    assert_int_equal(parts[0].count, 3);
    assert_int_equal(parts[1].count, 2);
    assert_picked(&parts[0], parts[0].object, "[{}]", "2");
    assert_picked(&parts[1], parts[1].object, "\"}\"", "{\"x\":1}");
}

static void the_first_of_two_names_is_the_part(void **state)
{
    (void)state;
    assert_true(read_parts("{\"params\":{\"payload\":{\"x\":1},\"_meta\":{\"x\":2}}}"));
    assert_picked(&parts[1], parts[1].object, "1", "");
}

static void what_is_no_part_is_walked(void **state)
{
    static const char *const texts[] = {"{\"x\":1}", "[{\"params\":{}}]",
                                        "{\"params\":[],\"_meta\":{}}",
                                        "{\"par\\u0061ms\":{\"x\":1}}"};
    sgi_json other = SGI_STR("{\"y\":7}");
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(read_parts(texts[i]));
        assert_int_equal(parts[0].object.n, 0);
        assert_int_equal(parts[1].object.n, 0);
        assert_picked(&parts[0], other, "", "7");
        assert_picked(&parts[0], (sgi_json){0}, "", "");
    }
}

/* The bound: with one member more than there is room for, all are found by a walk. */
static void a_part_of_many_members_is_walked(void **state)
{
    (void)state;
    assert_true(read_parts("{\"params\":{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,"
                           "\"7\":7,\"x\":8}}"));
    assert_int_equal(parts[0].count, SGI_JSON_PART_MEMBERS);
    assert_picked(&parts[0], parts[0].object, "8", "");
    assert_true(read_parts("{\"params\":{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,"
                           "\"7\":7,\"x\":8,\"y\":9}}"));
    assert_int_equal(parts[0].count, SGI_JSON_PART_MEMBERS + 1);
    assert_picked(&parts[0], parts[0].object, "8", "9");
}

static void a_part_is_judged_as_any_value(void **state)
{
    static const struct {
        const char *text;
        sgi_json_fault fault;
        size_t at;
    } rows[] = {
        {"{\"params\":{\"_meta\":{\"x\":1,\"x\":2}}}", SGI_JSON_DUPLICATE_KEY, 26},
        {"{\"params\":{\"x\":1},\"params\":{}}", SGI_JSON_DUPLICATE_KEY, 18},
        {"{\"params\":{\"_meta\":{\"x\":{\"x\":[]}}}}", SGI_JSON_DEPTH, 29},
        {"{\"params\":{\"x\":1", SGI_JSON_SYNTAX, 16},
        {"{\"params\":{\"x\":1]}", SGI_JSON_SYNTAX, 16},
        {"{\"params\":{\"x\":1,}}", SGI_JSON_SYNTAX, 17},
        {"{\"params\":{", SGI_JSON_SYNTAX, 11},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_json_error plain;
        assert_false(
            sgi_json_read(&reader, sgi_str_of(rows[i].text), NULL, 0, NULL, &plain));
        assert_false(read_parts(rows[i].text));
        assert_int_equal(error.fault, rows[i].fault);
        assert_int_equal(error.at, rows[i].at);
        assert_int_equal(plain.fault, error.fault);
        assert_int_equal(plain.at, error.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_are_recorded_on_the_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_of_two_names_is_the_part, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_part_is_walked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_of_many_members_is_walked, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_part_is_judged_as_any_value, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
