/* The library's reading of a validator's answer: three verdicts, and a reason that is one
 * line of UTF-8, whatever the validator wrote to the buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "engine/validation.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

static fake_host host;
static segue_status says;
static const char *leaves;

static segue_status ask(void *user, const char *tool, int32_t what, const char *schema,
                        size_t schema_len, const char *value, size_t value_len,
                        char *reason, size_t size)
{
    assert_ptr_equal(user, &host);
    assert_string_equal(tool, "t");
    assert_int_equal(what, SEGUE_VALIDATE_RESULT);
    assert_memory_equal(schema, "{}", schema_len);
    assert_memory_equal(value, "[1]", value_len);
    assert_int_equal(size, SGI_REASON_SIZE);
    assert_int_equal(reason[0], 0);
    assert_int_equal(host.locked, 0); /* the validator runs without the runtime's lock */
    if (leaves)
        memcpy(reason, leaves, strlen(leaves) + 1);
    else
        memset(reason, 'x', size);
    return says;
}

static segue_status validate(segue_status verdict, const char *text, char *reason)
{
    sgi_validation validation = {.fn = ask,
                                 .user = &host,
                                 .tool = "t",
                                 .what = SEGUE_VALIDATE_RESULT,
                                 .schema = SGI_STR("{}"),
                                 .value = SGI_STR("[1]")};
    says = verdict;
    leaves = text;
    segue_status status = sgi_validate(&host.engine, &validation);
    assert_int_equal(host.locked, 1);
    snprintf(reason, SGI_REASON_SIZE, "%s", validation.reason);
    return status;
}

static void there_are_three_verdicts(void **state)
{
    (void)state;
    char reason[SGI_REASON_SIZE];
    assert_int_equal(validate(SEGUE_OK, "", reason), SEGUE_OK);
    assert_int_equal(validate(SEGUE_E_INVALID, "", reason), SEGUE_E_INVALID);
    assert_string_equal(reason, "the value does not fit the schema");
    assert_int_equal(validate(SEGUE_E_NOMEM, "", reason), SEGUE_E_UNSUPPORTED);
    assert_string_equal(reason, "the schema cannot be checked");
    assert_int_equal(validate(7, "why", reason), SEGUE_E_UNSUPPORTED);
    assert_string_equal(reason, "why");
}

static void a_reason_is_one_line_of_text(void **state)
{
    (void)state;
    char reason[SGI_REASON_SIZE];
    validate(SEGUE_E_INVALID, "one\r\ntwo", reason);
    assert_string_equal(reason, "one");
    validate(SEGUE_E_INVALID, "\ntwo", reason);
    assert_string_equal(reason, "the value does not fit the schema");
    /* The validator's text ends within a character. */
    validate(SEGUE_E_INVALID, "gr\xc3\xbc\xc3", reason);
    assert_string_equal(reason, "gr\xc3\xbc");
    validate(SEGUE_E_INVALID, NULL, reason); /* the validator's text has no NUL */
    assert_int_equal(strlen(reason), SGI_REASON_SIZE - 1);
}

int main(void)
{
    static test_mem tm;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_three_verdicts),
        cmocka_unit_test(a_reason_is_one_line_of_text),
    };
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_host_free(&host);
    return failed;
}
