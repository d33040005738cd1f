/* segue_request_take_result: the text of a result leaves its request without a copy. */
#include "support/client_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define BLOCKS "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]"
#define WHOLE "\"resultType\":\"complete\"," BLOCKS

typedef struct taken {
    char *text;
    size_t len, size;
    int32_t is_error;
    segue_status again;
} taken;

static segue_status take(segue_request *request, taken *to)
{
    return segue_request_take_result(request, &to->text, &to->len, &to->size,
                                     &to->is_error);
}

static void take_twice(record *r)
{
    taken *to = r->user, other = {0};
    assert_int_equal(take(r->request, to), SEGUE_OK);
    to->again = take(r->request, &other);
}

/* Frees the text as an application with an allocator does. */
static void give_back(kit *k, taken *from)
{
    k->mem.mem.release(k->mem.mem.user, from->text, from->size);
    from->text = NULL;
}

static record *call(kit *k, taken *to, const char *result)
{
    taken early;
    record *r = kit_call(k, "t");
    r->user = to;
    r->on_complete = take_twice;
    const char *said = kit_expect(k, "tools/call");
    assert_int_equal(take(r->request, &early), SEGUE_E_STATE);
    kit_result(k, said, "%s", result);
    assert_int_equal(r->completed, 1);
    return r;
}

static void the_text_is_that_of_on_complete(void **state)
{
    (void)state;
    kit k = {0};
    taken got = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = call(&k, &got, WHOLE);
    assert_string_equal(got.text, r->result);
    assert_int_equal(got.len, strlen(r->result));
    assert_true(got.size > got.len);
    assert_int_equal(got.is_error, 0);
    assert_int_equal(got.again, SEGUE_E_NOT_FOUND);
    give_back(&k, &got);
    call(&k, &got, WHOLE ",\"is\\u0045rror\":true");
    assert_int_equal(got.is_error, 1);
    give_back(&k, &got);
    call(&k, &got, WHOLE ",\"isError\":false,\"x\":{\"isError\":true}");
    assert_int_equal(got.is_error, 0);
    give_back(&k, &got);
    kit_end(&k);
}

static void a_result_without_text_is_not_found(void **state)
{
    (void)state;
    kit k = {0};
    taken got = {0};
    kit_begin_modern(&k, NULL, SERVER_PLAIN);
    record *r = kit_call(&k, "t");
    kit_error(&k, kit_expect(&k, "tools/call"), -32000, NULL);
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(take(r->request, &got), SEGUE_E_NOT_FOUND);
    assert_null(got.text);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_that_of_on_complete),
        cmocka_unit_test(a_result_without_text_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
