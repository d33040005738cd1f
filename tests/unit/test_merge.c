/* Several responses to one request are merged into one result: core/docs/requirements.md
 * 3.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/dialect/partial/merge.h"
#include "support/test_mem.h"

#define T(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define AT(n, text) "{\"type\":\"text\",\"index\":" #n ",\"text\":\"" text "\"}"
#define C(blocks) "\"content\":[" blocks "]"
#define META(members) ",\"_meta\":{" members "}"
#define MORE "\"hasMore\":true"
#define INDEX(n) MORE ",\"index\":" #n
#define SEQ(n) ",\"dev.segue/seq\":" #n
#define RESPONSES_MAX 6

typedef struct row {
    const char *responses[RESPONSES_MAX];
    const char *result; /* NULL = the last response is wrong */
    const char *seen;   /* indices of the blocks, in order of arrival; NULL = not
                         * checked */
    uint32_t warnings;
} row;

static const row rows[] = {
    /* AS-79: lists are joined, blocks stay as they are (R-776-7). */
    {{"{" C(T("a")) META(MORE) "}", "{" C(T("b")) "}"},
     "{" C(T("a") "," T("b")) "}",
     "01",
     0},
    /* AS-81: an empty last response, and a last response alone. */
    {{"{" C(T("a")) META(MORE) "}", "{" C("") "}"}, "{" C(T("a")) "}", "0", 0},
    {{"{" C(T("a")) "}"}, "{" C(T("a")) "}", "0", 0},
    {{"{}"}, "{" C("") "}", "", 0},
    /* AS-82: the example, with both spellings of an index. */
    {{"{" C(T("con")) META(INDEX(0)) "}", "{" C(T("tent 1.")) META(INDEX(0)) "}",
      "{" C(T("cont")) META(INDEX(1)) "}", "{" C(T("ent 2.")) META("\"index\":1") "}"},
     "{" C(T("content 1.") "," T("content 2.")) "}",
     "0011",
     0},
    {{"{" C(AT(0, "con")) META(MORE) "}", "{" C(AT(0, "tent 1.")) META(MORE) "}",
      "{" C(AT(1, "cont")) META(MORE) "}", "{" C(AT(1, "ent 2.")) "}"},
     "{" C(T("content 1.") "," T("content 2.")) "}",
     "0011",
     0},
    /* C-9: repeated segments are recognized by their number, a whole response or its
     * beginning; a repeated replacement replaces nothing. */
    {{"{" C(T("a") "," T("b")) META(INDEX(0) SEQ(1)) "}",
      "{" C(T("a") "," T("b")) META(INDEX(0) SEQ(1)) "}",
      "{" C(T("b") "," T("c")) META(INDEX(1) SEQ(2)) "}", "{" C(T("d")) "}"},
     "{" C(T("a") "," T("b") "," T("c") "," T("d")) "}",
     "0123",
     0},
    {{"{" C(T("x")) META(INDEX(0) SEQ(1)) "}",
      "{" C(T("a")) META(INDEX(0) SEQ(2) ",\"mergeStrategy\":\"replace\"") "}",
      "{" C(T("b")) META(INDEX(1) SEQ(3)) "}",
      "{" C(T("a")) META(INDEX(0) SEQ(2) ",\"mergeStrategy\":\"replace\"") "}",
      "{" C(T("c")) META("\"index\":2" SEQ(4)) "}"},
     "{" C(T("a") "," T("b") "," T("c")) "}",
     "0012",
     0},
    {{"{" C(T("a") "," T("b")) META(INDEX(0)) "}",
      "{" C(T("c") "," T("d")) META("\"index\":1") "}"},
     "{" C(T("a") "," T("bc") "," T("d")) "}",
     "0112",
     0},
    {{"{" C(AT(0, "a")) META(MORE) "}", "{" C(T("b")) "}"},
     "{" C(T("a") "," T("b")) "}",
     "01",
     0},
    {{"{" C(T("\\u00e9\\n")) META(INDEX(0)) "}",
      "{" C(T("\\\"")) META("\"index\":0") "}"},
     "{" C(T("\\u00e9\\n\\\"")) "}",
     NULL,
     0},
    {{"{" C("{\"type\":\"text\",\"text\":\"a\",\"x\":1}") META(INDEX(0)) "}",
      "{" C("{\"type\":\"text\",\"text\":\"b\",\"x\":2}") META("\"index\":0") "}"},
     "{" C("{\"type\":\"text\",\"x\":2,\"text\":\"ab\"}") "}",
     NULL,
     0},
    {{"{" C("{\"type\":\"image\",\"data\":\"YQ==\"}") META(INDEX(0)) "}",
      "{" C("{\"type\":\"image\",\"data\":\"Yg==\"}") META("\"index\":0") "}"},
     "{" C("{\"type\":\"image\",\"data\":\"Yg==\"}") "}",
     "00",
     1},
    {{"{" C(T("a")) META(INDEX(5)) "}"}, NULL, NULL, 0},
    {{"{" C(T("a")) META(INDEX(-1)) "}"}, NULL, NULL, 0},
    {{"{" C(T("a")) META(INDEX("0")) "}"}, NULL, NULL, 0},
    {{"{" C(T("a")) META(INDEX(0.5)) "}"}, NULL, NULL, 0},
    {{"{" C(AT(5, "a")) "}"}, NULL, NULL, 0},
    {{"{" C(AT(-1, "a")) "}"}, NULL, NULL, 0},
    {{"{" C(AT("0", "a")) "}"}, NULL, NULL, 0},
    {{"{" C(AT(0.5, "a")) "}"}, NULL, NULL, 0},
    {{"{" C(AT(1e300, "a")) "}"}, NULL, NULL, 0},
    {{"{\"content\":{}}"}, NULL, NULL, 0},
    {{"{\"content\":[1]}"}, NULL, NULL, 0},
    {{"{\"content\":\"a\"}"}, NULL, NULL, 0},
    /* AS-83: strategies. */
    {{"{" C(T("a")) ",\"structuredContent\":1" META(MORE) "}",
      "{" C(T("b")) META("\"mergeStrategy\":\"replace\"," MORE) "}", "{" C(T("c")) "}"},
     "{" C(T("b") "," T("c")) "}",
     "001",
     0},
    {{"{\"structuredContent\":{\"a\":1,\"b\":{\"x\":1}}" META(MORE) "}",
      "{\"structuredContent\":{\"b\":{\"y\":2},\"c\":3}" META(
          "\"mergeStrategy\":\"append\"") "}"},
     "{" C("") ",\"structuredContent\":{\"a\":1,\"b\":{\"y\":2},\"c\":3}}",
     "",
     0},
    {{"{\"structuredContent\":[1]" META(MORE) "}",
      "{\"structuredContent\":[2,3]" META("\"mergeStrategy\":\"append\"") "}"},
     "{" C("") ",\"structuredContent\":[1,2,3]}",
     "",
     0},
    {{"{\"structuredContent\":[1]" META(MORE) "}",
      "{\"structuredContent\":{}" META("\"mergeStrategy\":\"append\"") "}"},
     "{" C("") ",\"structuredContent\":{}}",
     "",
     0},
    {{"{" C(T("a")) META("\"mergeStrategy\":\"deep\"") "}"}, NULL, NULL, 0},
    {{"{" C(T("a")) META("\"mergeStrategy\":1") "}"}, NULL, NULL, 0},
    /* AS-84: other members. */
    {{"{\"structuredContent\":{\"a\":1},\"isError\":true,\"x\":1" META(
          "\"k\":1,\"l\":1," INDEX(0)) "}",
      "{\"structuredContent\":{\"b\":2},\"isError\":false" META(
          "\"k\":2,\"dev.segue/seq\":1") "}"},
     "{" C("") ",\"x\":1,\"structuredContent\":{\"b\":2},\"isError\":false,"
               "\"_meta\":{\"l\":1,\"k\":2}}",
     "",
     0},
    {{"{" C(T("a")) META("\"hasMore\":false,\"mergeStrategy\":\"append\"") "}"},
     "{" C(T("a")) "}",
     "0",
     0},
};

static test_mem tm;

static int32_t no_chance(void *user, void *bytes, size_t len)
{
    (void)user;
    memset(bytes, 7, len);
    return 0;
}

static segue_hooks chances = {.struct_size = sizeof chances, .random = no_chance};
static sgi_env counted = {&tm.mem, &chances};

static void see(void *user, uint64_t index, sgi_json block)
{
    char *seen = user;
    assert_int_equal(block.p[0], '{');
    assert_false(sgi_json_get(block, "index").n);
    sprintf(seen + strlen(seen), "%d", (int)index);
}

/* Returns the text that the row has, or NULL; the caller frees it. */
static char *merge_row(const row *r, sgi_merged *merged, char *seen, uint32_t *warnings)
{
    sgi_partial_merge merge;
    sgi_buf out;
    char *text = NULL;
    sgi_partial_merge_init(&merge, &counted, "content");
    *merged = SGI_MERGED;
    for (size_t i = 0; i < RESPONSES_MAX && r->responses[i] && *merged == SGI_MERGED; i++)
        *merged = sgi_partial_merge_add(&merge, sgi_str_of(r->responses[i]), see, seen);
    sgi_buf_init(&out, &tm.mem);
    sgi_jw w = sgi_jw_to(&out);
    sgi_jw_open(&w, '{');
    sgi_partial_merge_write(&merge, &w);
    sgi_jw_close(&w, '}');
    if (*merged == SGI_MERGED && sgi_buf_terminate(&out) && !out.failed)
        text = strdup(out.p);
    assert_true(*merged != SGI_MERGE_WRONG || merge.wrong);
    *warnings = merge.warnings;
    sgi_buf_free(&out);
    sgi_partial_merge_free(&merge);
    assert_int_equal(tm.live, 0);
    return text;
}

static void every_row(void **state)
{
    (void)state;
    test_mem_init(&tm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        char seen[64] = "";
        uint32_t warnings;
        sgi_merged merged;
        char *text = merge_row(r, &merged, seen, &warnings);
        assert_int_equal(merged, r->result ? SGI_MERGED : SGI_MERGE_WRONG);
        if (r->result)
            assert_string_equal(text, r->result);
        if (r->seen)
            assert_string_equal(seen, r->seen);
        assert_int_equal(warnings, r->warnings);
        free(text);
    }
}

static void without_memory(void **state)
{
    (void)state;
    test_mem_init(&tm);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t at = 1; rows[i].result; at++) {
            char seen[64] = "";
            uint32_t warnings;
            sgi_merged merged;
            test_mem_rearm(&tm);
            tm.fail_at = at;
            char *text = merge_row(&rows[i], &merged, seen, &warnings);
            if (text) /* a map that cannot grow is only slower */
                assert_string_equal(text, rows[i].result);
            free(text);
            if (!tm.failed)
                break;
        }
    }
}

static void other_lists(void **state)
{
    sgi_partial_merge merge;
    sgi_buf out;
    (void)state;
    test_mem_init(&tm);
    sgi_partial_merge_init(&merge, &counted, "messages");
    assert_int_equal(sgi_partial_merge_add(&merge,
                                           SGI_STR("{\"messages\":[{\"role\":\"user\"}],"
                                                   "\"content\":1}"),
                                           NULL, NULL),
                     SGI_MERGED);
    sgi_buf_init(&out, &tm.mem);
    sgi_jw w = sgi_jw_to(&out);
    sgi_jw_open(&w, '{');
    sgi_partial_merge_write(&merge, &w);
    sgi_jw_close(&w, '}');
    assert_true(sgi_buf_terminate(&out));
    assert_string_equal(out.p, "{\"messages\":[{\"role\":\"user\"}],\"content\":1}");
    sgi_buf_free(&out);
    sgi_partial_merge_free(&merge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(other_lists),
    };
    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
