/* An answer to a question of a task, from which the client's data about the task is
 * removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "engine/server/question_wire.h"
#include "support/test_mem.h"

#define ANSWER "\"action\":\"accept\""
#define RELATED "\"io.modelcontextprotocol/related-task\":{\"taskId\":\"t\"}"

static void expect(const sgi_buf *out, sgi_json value, const char *clean)
{
    if (!out->failed &&
        (value.n != strlen(clean) || memcmp(value.p, clean, value.n) != 0))
        fail_msg("%.*s, not %s", (int)value.n, value.p, clean);
}

/* Each allocation is refused once. */
static void an_answer_is_clean_or_has_failed(void **state)
{
    static const char *const rows[][2] = {
        {"{" ANSWER "}", "{" ANSWER "}"},
        {"{" ANSWER ",\"_meta\":{" RELATED "}}", "{" ANSWER "}"},
        {"{" ANSWER ",\"_meta\":{" RELATED ",\"a\":1}}",
         "{" ANSWER ",\"_meta\":{\"a\":1}}"},
    };
    test_mem tm;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool refused = true;
        for (size_t n = 1; refused; n++) {
            sgi_buf out;
            test_mem_init(&tm);
            tm.fail_at = n;
            sgi_buf_init(&out, &tm.mem);
            sgi_json value =
                sgi_question_strip_task_members(sgi_str_of(rows[i][0]), &out);
            refused = tm.failed > 0;
            assert_int_equal(out.failed, refused);
            expect(&out, value, rows[i][1]);
            sgi_buf_free(&out);
            assert_int_equal(tm.live, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_clean_or_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
