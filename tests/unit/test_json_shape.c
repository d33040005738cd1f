/* Texts that have the shape of an earlier text, or nearly. A reader that remembers must
 * say the same as a reader that does not: verdict, position of the fault, members and
 * parts. To add a case, add a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../support/test_mem.h"
#include "wire/json_shape.h"

#define MEMBERS 16

static const sgi_str trail_names[2][2] = {
    {SGI_STR_INIT("params"), {NULL, 0}},
    {SGI_STR_INIT("_meta"), SGI_STR_INIT("payload")}};

static const char *const texts[] = {
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
    "call\",\"params\":{\"name\":\"echo\","
    "\"arguments\":{\"a\":1},\"_meta\":{\"v\":\"2026\",\"caps\":{\"x\":{}}}}}",
    "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"tools/"
    "call\",\"params\":{\"name\":\"echo\","
    "\"arguments\":{\"a\":1},\"_meta\":{\"v\":\"2026\",\"caps\":{\"x\":{}}}}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
    "call\",\"params\":{\"name\":\"echo\","
    "\"arguments\":{\"a\":2},\"_meta\":{\"v\":\"2026\",\"caps\":{\"x\":{}},\"p\":4}}}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{}}}",
    "{ \"jsonrpc\" : \"2.0\" , \"id\":1,\"method\":\"ping\" }",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":[1,2,{\"b\":null}]}}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"payload\":{\"a\":1,\"b\":true}}"
    "}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"payload\":{\"a\":10,\"b\":true}}"
    "}",
    "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"payload\":{\"a\":1.5,\"b\":true}"
    "}}",
    "{\"json\\u0072pc\":\"2.0\",\"method\":\"n\",\"params\":{\"a\\tb\":1}}",
    "{\"params\":{\"a\":1},\"jsonrpc\":\"2.0\",\"id\":\"\xc3\xa9\"}",
    "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10}",
    "{\"params\":1,\"_meta\":{\"v\":\"2026\"}}",
    "{\"params\":{\"_meta\":{\"a\":1},\"payload\":{\"b\":2}}}",
    "{\"params\":{\"_meta\":1,\"payload\":{\"b\":2}}}",
    "{\"params\":{\"_meta\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,"
    "\"h\":8,"
    "\"i\":9}}}",
    "{\"params\":{\"payload\":{\"b\":3},\"_meta\":{\"a\":1}}}",
    "{\"params\":{\"payload\":{\"b\":4},\"_meta\":{\"a\":1}}}",
    "{\"params\":{\"payload\":4,\"_meta\":{\"a\":1}}}",
    "[1,2]",
    "{}",
    "7",
    /* refused */
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"jsonrpc\":\"2.0\"}",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"id\":1}",
    "{\"jsonrpc\":\"2.0\"x\"id\":1}",
    "{\"jsonrpc\":\"2.0\",\"id\":1",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
    "call\",\"params\":{\"name\":\"echo\","
    "\"arguments\":{\"a\":1},\"_meta\":{\"v\":\"2026\",\"v\":\"2026\"}}}",
    "{\"a\":1,\"b\":2,\"a\":1}",
    "{\"jsonrpc\":\"2.0\" \"id\":1}",
};
#define TEXTS (sizeof texts / sizeof *texts)

static test_mem tm;
static sgi_json_reader fresh, remembering;
static sgi_json_shapes shapes;

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
    sgi_json_reader_init(&fresh, &env, 1 << 20, 8);
    sgi_json_reader_init(&remembering, &env, 1 << 20, 8);
    sgi_json_shapes_init(&shapes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sgi_json_reader_free(&fresh);
    sgi_json_reader_free(&remembering);
    return tm.live == 0 ? 0 : -1;
}

typedef struct outcome {
    bool passed;
    size_t count;
    sgi_json_member members[MEMBERS];
    sgi_json_part parts[2];
    sgi_json_error error;
} outcome;

static void read_text(outcome *o, sgi_json_reader *reader, sgi_str text,
                      sgi_json_shapes *memory)
{
    *o = (outcome){0};
    sgi_json_part_names trail = {trail_names, o->parts, 2, memory};
    o->passed = sgi_json_read_parts(reader, text, o->members, MEMBERS, &o->count,
                                    &o->error, &trail);
}

static void assert_same_members(const sgi_json_member *a, const sgi_json_member *b,
                                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(a[i].key.p, b[i].key.p);
        assert_int_equal(a[i].key.n, b[i].key.n);
        assert_int_equal(a[i].escaped, b[i].escaped);
        assert_ptr_equal(a[i].value.p, b[i].value.p);
        assert_int_equal(a[i].value.n, b[i].value.n);
    }
}

/* Reads the text with both readers from a block that ends where the text ends, and
 * compares what they say. */
static void compare(sgi_str text)
{
    outcome a, b;
    char *block = malloc(text.n ? text.n : 1);
    assert_non_null(block);
    memcpy(block, text.p, text.n);
    sgi_str copy = {block, text.n};
    read_text(&a, &fresh, copy, NULL);
    read_text(&b, &remembering, copy, &shapes);
    assert_int_equal(a.passed, b.passed);
    assert_int_equal(a.error.fault, b.error.fault);
    assert_int_equal(a.error.at, b.error.at);
    assert_int_equal(a.count, b.count);
    if (a.passed) {
        assert_same_members(a.members, b.members, a.count < MEMBERS ? a.count : MEMBERS);
        for (size_t i = 0; i < 2; i++) {
            const sgi_json_part *one = &a.parts[i], *other = &b.parts[i];
            assert_ptr_equal(one->object.p, other->object.p);
            assert_int_equal(one->object.n, other->object.n);
            if (!one->object.n)
                continue;
            assert_int_equal(one->count, other->count);
            assert_same_members(
                one->members, other->members,
                one->count < SGI_JSON_PART_MEMBERS ? one->count : SGI_JSON_PART_MEMBERS);
        }
    }
    free(block);
}

static void every_text_is_read_the_same_after_every_other(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEXTS; i++) {
        sgi_json_shapes_init(&shapes);
        compare(sgi_str_of(texts[i]));
        for (size_t j = 0; j < TEXTS; j++)
            compare(sgi_str_of(texts[j]));
    }
}

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1103515245u + 12345u;
    return *random >> 8;
}

/* One byte of a text is replaced, removed or doubled. */
static void changed_texts_are_read_the_same(void **state)
{
    (void)state;
    static const char bytes[] = "{}[],:\"\\0123xe.- \n\t\xc3";
    uint32_t random = 11;
    char text[512];
    for (int i = 0; i < 60000; i++) {
        const char *origin = texts[next_random(&random) % TEXTS];
        size_t len = strlen(origin), at = next_random(&random) % len;
        memcpy(text, origin, len);
        switch (next_random(&random) % 4) {
        case 0:
            text[at] = bytes[next_random(&random) % (sizeof bytes - 1)];
            break;
        case 1:
            memmove(text + at, text + at + 1, len - at - 1);
            len--;
            break;
        case 2:
            memmove(text + at + 1, text + at, len - at);
            len++;
            break;
        default:
            break;
        }
        compare((sgi_str){text, len});
    }
}

static void read_with(const char *text)
{
    outcome o;
    read_text(&o, &remembering, sgi_str_of(text), &shapes);
    assert_true(o.passed);
}

/* The newest shape. */
static const sgi_json_shape *newest(void)
{
    return &shapes.list[shapes.order[0]];
}

static void values_that_differ_become_holes(void **state)
{
    (void)state;
    read_with(texts[0]);
    assert_int_equal(newest()->hole_count, 0);
    assert_int_equal(newest()->len, strlen(texts[0]));
    read_with(texts[0]);
    assert_int_equal(shapes.missed, 0);
    read_with(texts[1]);
    assert_int_equal(shapes.missed, 1);
    assert_int_equal(newest()->hole_count, 1);
    assert_int_equal(newest()->len, strlen(texts[0]));
    read_with("{\"jsonrpc\":\"2.0\",\"id\":\"an id\",\"method\":\"tools/call\","
              "\"params\":{\"name\":\"echo\",\"arguments\":{\"a\":1},"
              "\"_meta\":{\"v\":\"2026\",\"caps\":{\"x\":{}}}}}");
    assert_int_equal(shapes.missed, 0);
    assert_int_equal(newest()->count, 4);
    assert_int_equal(newest()->parts[0].count, 3);
    assert_int_equal(newest()->parts[1].count, 2);
}

/* Other members are another shape. The one that was used last stands first. */
static void several_shapes_are_remembered(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        read_with(texts[0]);
        read_with(texts[3]);
        read_with(texts[4]);
        read_with(texts[6]);
    }
    assert_int_equal(shapes.missed, 0);
    assert_int_equal(newest()->len, strlen(texts[6]));
    read_with(texts[11]);
    read_with(texts[3]);
    assert_int_equal(shapes.missed, 0);
    read_with(texts[0]);
    assert_int_equal(shapes.missed, 1);
}

/* After several texts in a row without a shape, whole objects are holes. */
static void arguments_with_other_members_have_a_shape_in_the_end(void **state)
{
    (void)state;
    static const char *const arguments[] = {
        "{\"a\":1}", "{\"b\":1}", "{\"c\":{}}", "{}", "{\"d\":[1]}", "{\"e\":{\"f\":2}}"};
    char text[128];
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
            snprintf(text, sizeof text,
                     "{\"method\":\"tools/call\",\"params\":{\"arguments\":%s}}",
                     arguments[i]);
            compare(sgi_str_of(text));
            assert_true(round == 0 || shapes.missed == 0);
        }
    /* the depth is that of the text, the maximum of the reader is 8 */
    compare(SGI_STR("{\"method\":\"tools/call\",\"params\":{\"arguments\":"
                    "[[[[[[1]]]]]]}}"));
    assert_int_equal(shapes.missed, 0);
    compare(SGI_STR("{\"method\":\"tools/call\",\"params\":{\"arguments\":"
                    "[[[[[[[1]]]]]]]}}"));
    assert_int_equal(shapes.missed, 0);
}

/* The newest shape has a hole where the text has a space, and the next shape fits. */
static void a_shape_that_does_not_fit_leaves_no_error(void **state)
{
    (void)state;
    compare(SGI_STR("{\"a\": 1,\"b\":1}"));
    compare(SGI_STR("{\"a\": 2,\"b\":1}"));
    compare(SGI_STR("{\"a\":1}"));
    compare(SGI_STR("{\"a\":2}"));
    compare(SGI_STR("{\"a\": 3,\"b\":1}"));
    assert_int_equal(shapes.missed, 0);
}

/* A hole with a huge object leaves as little memory as a text without a shape. */
static void an_unusual_text_leaves_no_memory(void **state)
{
    (void)state;
    enum { KEYS = 200000 };
    sgi_buf text;
    sgi_buf_init(&text, &tm.mem);
    compare(SGI_STR("{\"id\":1,\"a\":1}"));
    compare(SGI_STR("{\"id\":2,\"a\":\"x\"}"));
    sgi_buf_add_lit(&text, "{\"id\":3,\"a\":{\"b\":1");
    for (int i = 0; i < KEYS; i++) {
        sgi_buf_add_lit(&text, ",\"k");
        sgi_buf_add_int(&text, i);
        sgi_buf_add_lit(&text, "\":1");
    }
    sgi_buf_add_lit(&text, "}}");
    remembering.max_bytes = 1 << 25;
    fresh.max_bytes = 1 << 25;
    compare(sgi_buf_str(&text));
    assert_int_equal(shapes.missed, 0);
    assert_true(remembering.key_cap < KEYS / 4);
    assert_true(remembering.table_cap < KEYS / 4);
    sgi_buf_free(&text);
}

/* A peer whose texts never repeat pays for few lessons. */
static void learning_is_bounded(void **state)
{
    (void)state;
    char text[64];
    uint32_t learned = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t before = shapes.credit;
        snprintf(text, sizeof text, "{\"k%d\":1}", i);
        read_with(text);
        learned += shapes.credit < before;
    }
    assert_int_equal(shapes.missed, 1000);
    assert_in_range(learned, 100, 1000 / SGI_JSON_SHAPE_PRICE + SGI_JSON_SHAPE_CREDIT);
}

static void a_text_that_is_too_long_is_not_remembered(void **state)
{
    (void)state;
    static char text[SGI_JSON_SHAPE_TEXT + 2];
    outcome o;
    memset(text, ' ', sizeof text);
    memcpy(text, "{\"a\":1}", 7);
    read_text(&o, &remembering, (sgi_str){text, SGI_JSON_SHAPE_BYTES + 1}, &shapes);
    assert_true(o.passed);
    assert_int_equal(newest()->len, 0);
    read_text(&o, &remembering, (sgi_str){text, SGI_JSON_SHAPE_BYTES}, &shapes);
    assert_int_equal(newest()->len, SGI_JSON_SHAPE_BYTES);
    /* a long string is a hole, and the shape of its text is short */
    memset(text, 'x', sizeof text);
    memcpy(text, "{\"b\":\"", 6);
    memcpy(text + SGI_JSON_SHAPE_TEXT - 1, "\"}", 2);
    read_text(&o, &remembering, (sgi_str){text, SGI_JSON_SHAPE_TEXT + 1}, &shapes);
    assert_true(o.passed);
    assert_int_equal(newest()->len, SGI_JSON_SHAPE_BYTES);
    memcpy(text + SGI_JSON_SHAPE_TEXT - 2, "\"}", 2);
    read_text(&o, &remembering, (sgi_str){text, SGI_JSON_SHAPE_TEXT}, &shapes);
    assert_int_equal(newest()->len, strlen("{\"b\":0}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_text_is_read_the_same_after_every_other,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(changed_texts_are_read_the_same, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(values_that_differ_become_holes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(several_shapes_are_remembered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            arguments_with_other_members_have_a_shape_in_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shape_that_does_not_fit_leaves_no_error, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_unusual_text_leaves_no_memory, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(learning_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_text_that_is_too_long_is_not_remembered, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
