/* Segments that a client has seen and that come again in another way: in a second
 * exchange, or after a token. Each is shown once (C-9). test_composition.c found these
 * cases. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"

static void whole_after_a_cut(void **state)
{
    segue_session_options options;
    kit k = {.can_reopen = 1};
    (void)state;
    options = kit_legacy_options();
#define SERVER "{\"tools\":{},\"experimental\":{\"dev.segue/idempotency\":{}}}"
    kit_begin_2025(&k, &options, SERVER);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"content\":[" BLOCK("a") "],\"_meta\":{\"hasMore\":true,"
                                          "\"dev.segue/seq\":1}");
    kit_cut(&k);
    kit_handshake_2025(&k, SERVER);
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"content\":[" BLOCK("a") "," BLOCK("b") "]");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_end(&k);
}

/* A queue that the application had not read to its end. */
static void behind_what_was_seen(void **state)
{
    static const int64_t wrong[] = {-1, INT64_MIN, INT64_C(9007199254740993), INT64_MAX};
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    kit first = {0}, second = {0};
    char token[4096], told[4120];
    size_t len = sizeof token;
    (void)state;
    kit_begin_modern(&first, NULL, SERVER_STREAMS);
    record *r = kit_call(&first, "t");
    kit_result(&first, kit_expect(&first, "tools/call"), CREATED("T"));
    kit_expect(&first, "tasks/stream");
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    kit_end(&first);
    kit_begin_modern(&second, NULL, SERVER_STREAMS);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.seen = wrong[i];
        assert_int_equal(
            segue_request_resume(second.session, token, &options, NULL, NULL, NULL),
            SEGUE_E_INVALID);
    }
    snprintf(told, sizeof told, "%s+1", token); /* nothing may follow a token */
    assert_int_equal(segue_request_resume(second.session, told, NULL, NULL, NULL, NULL),
                     SEGUE_E_INVALID);
    options.seen = 1;
    r = kit_resume(&second, token, &options);
    r->last_segment = 1;
    const char *stream = kit_expect(&second, "tasks/stream");
    kit_segment(&second, "T", 0, 1, "a");
    kit_segment(&second, "T", 1, 2, "b");
    kit_result(&second, stream, FINAL);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 1);
    assert_non_null(strstr(r->log, "segment 2 b\n"));
    assert_at(r->result, "content", "[" BLOCK("a") "," BLOCK("b") "]");
    kit_end(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("C-9 a whole answer in a second exchange", whole_after_a_cut),
        NAMED("C-9 a token and how far its reader came", behind_what_was_seen),
    };
    return cmocka_run_group_tests_name("client_again", tests, NULL, NULL);
}
