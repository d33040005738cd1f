/* The merge of segments and fields into a result (R-C-8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/log/fold.h"
#include "support/test_mem.h"

static test_mem tm;

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static segue_hooks chances = {.struct_size = sizeof chances, .random = no_chance};
static sgi_env counted = {&tm.mem, &chances};
static sgi_fold fold;

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    sgi_fold_init(&fold, &counted);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_fold_free(&fold);
    assert_int_equal(tm.live, 0);
    return 0;
}

static int32_t fixed_random(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 5, len);
    return 0;
}

/* The output must be JSON without a repeated key, whatever the input was. */
static void assert_json(sgi_str text)
{
    segue_hooks hooks = {.struct_size = sizeof hooks, .random = fixed_random};
    sgi_env env = {&sgi_mem_libc, &hooks};
    sgi_json_reader reader;
    sgi_json_error error;
    sgi_json_reader_init(&reader, &env, 1 << 20, 64);
    bool passed = sgi_json_read(&reader, text, NULL, 0, NULL, &error);
    if (!passed)
        print_error("%s at %zu: %.*s\n", sgi_json_fault_text(error.fault), error.at,
                    (int)text.n, text.p);
    sgi_json_reader_free(&reader);
    assert_true(passed);
}

static void assert_result(bool is_error, sgi_str extra, const char *expected)
{
    sgi_buf out;
    sgi_buf_init(&out, &sgi_mem_libc);
    sgi_jw w = sgi_jw_to(&out);
    sgi_jw_open(&w, '{');
    sgi_fold_write(&fold, &w, is_error, extra);
    sgi_jw_close(&w, '}');
    assert_true(sgi_buf_terminate(&out));
    assert_string_equal(out.p, expected);
    assert_json(sgi_buf_str(&out));
    sgi_buf_free(&out);
}

static void add_fields(const char *json)
{
    sgi_fold_add_fields(&fold, sgi_str_of(json));
}

static void nothing_folds_to_empty_content(void **state)
{
    (void)state;
    assert_result(false, (sgi_str){0}, "{\"content\":[]}");
    assert_int_equal(fold.count, 0);
    assert_int_equal(sgi_fold_size(&fold), 0);
}

static void segments_keep_their_order(void **state)
{
    (void)state;
    sgi_fold_add_segment(&fold, SGI_STR("{\"a\":1}"));
    sgi_fold_add_segment(&fold, SGI_STR("{\"b\":2}"));
    sgi_fold_add_segment(&fold, SGI_STR("{\"a\":1}"));
    assert_int_equal(fold.count, 3);
    assert_result(false, (sgi_str){0}, "{\"content\":[{\"a\":1},{\"b\":2},{\"a\":1}]}");
}

static void the_last_value_of_a_field_wins(void **state)
{
    (void)state;
    add_fields("{\"structuredContent\":{\"a\":1,\"b\":2},\"x\":1}");
    add_fields("{\"y\":[],\"structuredContent\":{\"c\":3}}");
    add_fields("{\"x\":null}");
    assert_result(false, (sgi_str){0},
                  "{\"content\":[],\"y\":[],\"structuredContent\":{\"c\":3},\"x\":null}");
}

static void meta_is_merged_key_by_key_and_no_deeper(void **state)
{
    (void)state;
    add_fields("{\"_meta\":{\"a\":{\"p\":1},\"b\":1}}");
    add_fields("{\"_meta\":{\"a\":{\"q\":2},\"c\":3}}");
    assert_result(false, (sgi_str){0},
                  "{\"content\":[],\"_meta\":{\"b\":1,\"a\":{\"q\":2},\"c\":3}}");
}

static void meta_of_ours_stands_before_that_of_the_tool(void **state)
{
    (void)state;
    assert_result(false, SGI_STR("\"ours\":1"),
                  "{\"content\":[],\"_meta\":{\"ours\":1}}");
    add_fields("{\"_meta\":{\"its\":2}}");
    assert_result(true, SGI_STR("\"ours\":1"),
                  "{\"content\":[],\"isError\":true,\"_meta\":{\"ours\":1,\"its\":2}}");
}

static void a_meta_that_is_no_object_is_replaced_as_any_field(void **state)
{
    (void)state;
    add_fields("{\"_meta\":{\"a\":1}}");
    add_fields("{\"_meta\":7}");
    assert_result(false, (sgi_str){0}, "{\"content\":[],\"_meta\":7}");
    add_fields("{\"_meta\":{\"b\":1}}");
    assert_result(false, (sgi_str){0}, "{\"content\":[],\"_meta\":{\"b\":1}}");
}

/* Names are compared decoded: two spellings of one name are one field. */
static void an_escaped_name_is_the_same_field(void **state)
{
    (void)state;
    add_fields("{\"name\":1,\"keep\":2}");
    add_fields("{\"\\u006eame\":3}");
    assert_result(false, (sgi_str){0}, "{\"content\":[],\"keep\":2,\"\\u006eame\":3}");
    sgi_fold_drop_replaced(&fold, fold.segments);
    add_fields("{\"_meta\":{\"a\":1,\"b\":1}}");
    add_fields("{\"_\\u006deta\":{\"\\u0061\":2}}");
    assert_result(false, (sgi_str){0},
                  "{\"content\":[],\"_meta\":{\"b\":1,\"\\u0061\":2}}");
}

static void an_escaped_name_may_be_very_long(void **state)
{
    (void)state;
    sgi_buf name;
    sgi_buf_init(&name, &sgi_mem_libc);
    sgi_buf_add_lit(&name, "{\"");
    for (int i = 0; i < 5000; i++)
        sgi_buf_add_lit(&name, "\\u0061");
    sgi_buf_add_lit(&name, "\":1}");
    assert_true(sgi_buf_terminate(&name));
    add_fields("{\"a\":0}");
    add_fields(name.p);
    add_fields(name.p);
    add_fields("{\"a\":2}");
    sgi_fields_walk walk = {0};
    assert_true(sgi_fields_next(&fold.fields, &walk));
    assert_int_equal(walk.field->name_len, 30000);
    assert_true(sgi_fields_next(&fold.fields, &walk));
    assert_false(sgi_fields_next(&fold.fields, &walk));
    sgi_buf_free(&name);
}

static void replace_throws_away_what_came_before(void **state)
{
    (void)state;
    sgi_fold_add_segment(&fold, SGI_STR("1"));
    add_fields("{\"a\":1,\"_meta\":{\"m\":1}}");
    sgi_fold_drop_replaced(&fold, 7); /* six more have left the log */
    assert_int_equal(fold.voided, 7);
    assert_int_equal(fold.segments, 7);
    sgi_fold_add_segment(&fold, SGI_STR("2"));
    add_fields("{\"b\":1}");
    assert_int_equal(fold.count, 1);
    assert_result(false, (sgi_str){0}, "{\"content\":[2],\"b\":1}");
}

static void empty_objects_add_nothing(void **state)
{
    (void)state;
    add_fields("{}");
    assert_result(false, (sgi_str){0}, "{\"content\":[]}");
    add_fields("{ \"a\" : 1 }");
    add_fields("{ }");
    assert_result(false, (sgi_str){0}, "{\"content\":[],\"a\":1}");
}

static void run_all(void)
{
    sgi_fold_add_segment(&fold, SGI_STR("{\"type\":\"text\",\"text\":\"one\"}"));
    add_fields("{\"a\":1,\"_meta\":{\"m\":1}}");
    add_fields("{\"b\":1,\"_meta\":{\"n\":1}}");
    add_fields("{\"\\u0062\":2}");
    sgi_fold_add_segment(&fold, SGI_STR("{\"type\":\"text\",\"text\":\"two\"}"));
    sgi_fold_add_indexed_segment(&fold, 0,
                                 SGI_STR("{\"type\":\"text\",\"text\":\"more\"}"));
}

static void without_memory_it_fails_and_says_so(void **state)
{
    (void)state;
    size_t refused = 1;
    for (size_t at = 1; refused; at++) {
        test_mem_rearm(&tm);
        tm.fail_at = at;
        run_all();
        refused = tm.failed;
        bool failed = sgi_fold_failed(&fold); /* a map that cannot grow is only slower */
        assert_true(refused || !failed);
        sgi_buf out;
        sgi_buf_init(&out, &sgi_mem_libc);
        sgi_jw w = sgi_jw_to(&out);
        sgi_jw_open(&w, '{');
        sgi_fold_write(&fold, &w, false, (sgi_str){0});
        assert_int_equal(out.failed, failed);
        sgi_buf_free(&out);
        sgi_fold_free(&fold);
        sgi_fold_init(&fold, &counted);
        assert_int_equal(tm.live, 0);
    }
}

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define OTHER "{\"type\":\"text\",\"text\":\"c\",\"annotations\":{}}"

/* Pieces of one message: texts are joined, and a single block stands by itself. */
static void a_message_has_its_text_in_one(void **state)
{
    (void)state;
    fold.is_message = true;
    assert_result(false, (sgi_str){0}, "{\"content\":[]}");
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("a\\n")));
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("\\u0062")));
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("")));
    assert_result(false, (sgi_str){0}, "{\"content\":" BLOCK("a\\n\\u0062") "}");
    sgi_fold_add_segment(&fold, SGI_STR(OTHER));
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("d")));
    assert_result(false, (sgi_str){0},
                  "{\"content\":[" BLOCK("a\\n\\u0062") "," OTHER "," BLOCK("d") "]}");
    sgi_fold_drop_replaced(&fold, fold.segments);
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("e")));
    assert_result(false, (sgi_str){0}, "{\"content\":" BLOCK("e") "}");
}

/* A text block can be extended wherever it stands, whatever other members it has. */
static void texts_go_on_in_their_blocks(void **state)
{
    (void)state;
    assert_false(sgi_fold_add_indexed_segment(&fold, 1, SGI_STR(BLOCK("x"))));
    assert_true(sgi_fold_add_indexed_segment(&fold, 0, SGI_STR(OTHER)));
    assert_true(sgi_fold_add_indexed_segment(&fold, 0, SGI_STR(BLOCK("d"))));
    assert_true(sgi_fold_add_indexed_segment(&fold, 1, SGI_STR(BLOCK("a\\n"))));
    assert_true(sgi_fold_add_indexed_segment(&fold, 1, SGI_STR(BLOCK("\\u0062"))));
    assert_true(sgi_fold_add_indexed_segment(&fold, 2, SGI_STR("{\"type\":\"image\"}")));
    assert_true(sgi_fold_add_indexed_segment(&fold, 1, SGI_STR(BLOCK("c"))));
    assert_true(sgi_fold_add_indexed_segment(&fold, 0, SGI_STR(BLOCK("e"))));
    assert_true(sgi_fold_add_indexed_segment(&fold, 1, SGI_STR(BLOCK("d"))));
    assert_false(sgi_fold_add_indexed_segment(&fold, 2, SGI_STR(BLOCK("x"))));
    assert_false(sgi_fold_add_indexed_segment(&fold, 0, SGI_STR("{\"type\":\"image\"}")));
    assert_false(sgi_fold_add_indexed_segment(&fold, 4, SGI_STR(BLOCK("x"))));
    assert_true(sgi_fold_has_joined_segments(&fold));
    assert_int_equal(fold.segments, 8);
    assert_result(
        false, (sgi_str){0},
        "{\"content\":[{\"type\":\"text\",\"text\":\"cde\",\"annotations\":{}}," BLOCK(
            "a\\n\\u0062cd") ",{\"type\":\"image\"}]}");
    sgi_fold_drop_replaced(&fold, fold.segments);
    assert_int_equal(fold.voided, 8);
    assert_false(sgi_fold_has_joined_segments(&fold));
    assert_false(sgi_fold_add_indexed_segment(&fold, 1, SGI_STR(BLOCK("x"))));
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("f")));
    assert_result(false, (sgi_str){0}, "{\"content\":[" BLOCK("f") "]}");
}

/* More text blocks than the head of the list of texts can count. */
static void many_texts_go_on(void **state)
{
    sgi_buf expected;
    (void)state;
    sgi_buf_init(&expected, &sgi_mem_libc);
    sgi_buf_add_lit(&expected, "{\"content\":[");
    for (int i = 0; i < 200; i++) {
        assert_true(sgi_fold_add_indexed_segment(
            &fold, (uint64_t)i, i % 3 ? SGI_STR(BLOCK("a")) : SGI_STR("{}")));
        sgi_buf_add(&expected, ",", i ? 1 : 0);
        sgi_buf_add_str(&expected, i % 3 ? SGI_STR(BLOCK("ab")) : SGI_STR("{}"));
    }
    sgi_buf_add_lit(&expected, "]}");
    assert_true(sgi_buf_terminate(&expected));
    for (int i = 199; i >= 0; i--)
        assert_int_equal(
            sgi_fold_add_indexed_segment(&fold, (uint64_t)i, SGI_STR(BLOCK("b"))),
            i % 3 != 0);
    assert_result(false, (sgi_str){0}, expected.p);
    sgi_buf_free(&expected);
}

/* ---- the result that is moved ---- */

/* Moves the result, which must be what is written. */
static void assert_moved(bool is_error)
{
    sgi_buf written, moved;
    sgi_buf_init(&written, &sgi_mem_libc);
    sgi_buf_init(&moved, &sgi_mem_libc);
    sgi_jw w = sgi_jw_to(&written);
    sgi_jw_open(&w, '{');
    sgi_fold_write(&fold, &w, is_error, (sgi_str){0});
    sgi_jw_close(&w, '}');
    moved.mem = &tm.mem;
    assert_true(sgi_fold_move(&fold, is_error, &moved));
    assert_true(sgi_buf_terminate(&written) && sgi_buf_terminate(&moved));
    assert_string_equal(moved.p, written.p);
    assert_json(sgi_buf_str(&moved));
    sgi_buf_free(&written);
    sgi_buf_free(&moved);
}

static void with_opening(void)
{
    sgi_fold_free(&fold);
    sgi_fold_init(&fold, &counted);
    fold.opening = SGI_FOLD_OPENING;
}

static void what_is_moved_is_what_is_written(void **state)
{
    (void)state;
    with_opening();
    assert_moved(false); /* no block */
    with_opening();
    add_fields("{\"structuredContent\":[],\"_meta\":{\"a\":1}}");
    assert_moved(true);
    with_opening();
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("a")));
    assert_int_equal(sgi_fold_size(&fold), strlen(BLOCK("a")));
    sgi_fold_add_segment(&fold, SGI_STR("{}"));
    add_fields("{\"structuredContent\":[],\"_meta\":{\"a\":1}}");
    assert_moved(false);
    assert_int_equal(fold.count, 0);
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("b")));
    assert_moved(true);
    with_opening();
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("void")));
    sgi_fold_drop_replaced(&fold, 1);
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("c")));
    assert_moved(false);
    with_opening();
    for (uint64_t i = 0; i < 3; i++)
        sgi_fold_add_indexed_segment(&fold, i, SGI_STR(BLOCK("d")));
    sgi_fold_add_indexed_segment(&fold, 2, SGI_STR(BLOCK("last")));
    assert_moved(false);
    with_opening();
    for (uint64_t i = 0; i < 3; i++)
        sgi_fold_add_indexed_segment(&fold, i, SGI_STR(BLOCK("e")));
    sgi_fold_add_indexed_segment(&fold, 0, SGI_STR(BLOCK("joined later")));
    assert_moved(true);
}

static void the_fields_say_whether_it_is_an_error(void **state)
{
    (void)state;
    assert_false(sgi_fold_is_error(&fold));
    add_fields("{\"isError\":false,\"x\":true}");
    assert_false(sgi_fold_is_error(&fold));
    add_fields("{\"is\\u0045rror\":true}");
    assert_true(sgi_fold_is_error(&fold));
}

static void without_memory_nothing_is_moved(void **state)
{
    (void)state;
    with_opening();
    sgi_buf fields;
    sgi_buf_init(&fields, &sgi_mem_libc);
    sgi_buf_add_lit(&fields, "{\"x\":\"");
    for (int i = 0; i < 5000; i++)
        sgi_buf_add_char(&fields, 'x');
    sgi_buf_add_lit(&fields, "\"}");
    sgi_fold_add_segment(&fold, SGI_STR(BLOCK("a")));
    sgi_fold_add_fields(&fold, sgi_buf_str(&fields));
    sgi_buf_free(&fields);
    sgi_buf moved;
    sgi_buf_init(&moved, &tm.mem);
    test_mem_rearm(&tm);
    tm.fail_at = 1;
    assert_false(sgi_fold_move(&fold, false, &moved));
    test_mem_rearm(&tm);
    assert_int_equal(fold.count, 1);
    assert_moved(false);
    sgi_buf_free(&moved);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nothing_folds_to_empty_content),
        CASE(segments_keep_their_order),
        CASE(the_last_value_of_a_field_wins),
        CASE(meta_is_merged_key_by_key_and_no_deeper),
        CASE(meta_of_ours_stands_before_that_of_the_tool),
        CASE(a_meta_that_is_no_object_is_replaced_as_any_field),
        CASE(an_escaped_name_is_the_same_field),
        CASE(an_escaped_name_may_be_very_long),
        CASE(replace_throws_away_what_came_before),
        CASE(empty_objects_add_nothing),
        CASE(a_message_has_its_text_in_one),
        CASE(texts_go_on_in_their_blocks),
        CASE(many_texts_go_on),
        CASE(without_memory_it_fails_and_says_so),
        CASE(what_is_moved_is_what_is_written),
        CASE(the_fields_say_whether_it_is_an_error),
        CASE(without_memory_nothing_is_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
