/* Resume tokens: their contents, requests without a token, and the refusal of damaged
 * tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/dialect/task_events/stream.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

static test_mem tm;
static fake_host host;
static segue_session *session;
static const segue_request_options plain = {.struct_size = sizeof plain};

static int set_up(void **state)
{
    (void)state;
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 11);
    session = fake_session_new(&host, NULL);
    fake_session_open(session);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_session_end(session);
    fake_host_free(&host);
    assert_int_equal(tm.live, 0);
    return 0;
}

static segue_request *start(const sgi_request_spec *spec)
{
    segue_request *request = NULL;
    assert_int_equal(sgi_request_new(session, spec, &request), SEGUE_OK);
    return request;
}

static segue_request *follow(const char *task_id, uint64_t event, uint64_t segment)
{
    sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                             .options = &plain,
                             .task_id = sgi_str_of(task_id),
                             .next_event = event,
                             .next_segment = segment};
    return start(&spec);
}

/* Returns the token of a request; the caller frees it. */
static char *token_of(segue_request *request)
{
    sgi_buf out;
    sgi_buf_init(&out, &sgi_mem_libc);
    assert_int_equal(sgi_resume_token_write(request, &out), SEGUE_OK);
    assert_true(sgi_buf_terminate(&out));
    return out.p;
}

static segue_status resume(const char *token, segue_request **out)
{
    return sgi_request_new_from_token(session, token, &plain, NULL, out);
}

static void assert_invalid(const char *token)
{
    segue_request *request = NULL;
    segue_status status = resume(token, &request);
    if (status != SEGUE_E_INVALID)
        print_error("accepted: %s\n", token);
    assert_int_equal(status, SEGUE_E_INVALID);
    assert_null(request);
}

static void a_task_goes_on_behind_what_was_delivered(void **state)
{
    (void)state;
    segue_request *resumed = NULL;
    segue_request *request = follow("task-\xc3\xa4\"\\1", 7, 4);
    char *token = token_of(request);
    sgi_request_unref(request);
    assert_int_equal(resume(token, &resumed), SEGUE_OK);
    assert_string_equal(resumed->task_id, "task-\xc3\xa4\"\\1");
    assert_int_equal(sgi_task_stream_of(resumed)->next, 7);
    assert_int_equal(resumed->numbering.next, 4);
    assert_true(resumed->follow->partial);
    assert_int_equal(resumed->phase, SGI_PHASE_FOLLOW);
    sgi_request_unref(resumed);
    free(token);
}

static void a_task_of_which_nothing_came_starts_at_its_beginning(void **state)
{
    (void)state;
    segue_request *resumed = NULL;
    segue_request *request = follow("t", 0, 1);
    char *token = token_of(request);
    assert_int_equal(resume(token, &resumed), SEGUE_OK);
    assert_int_equal(sgi_task_stream_of(resumed)->next, 0);
    assert_int_equal(resumed->numbering.next, 1);
    assert_false(resumed->follow->partial);
    sgi_request_unref(request);
    sgi_request_unref(resumed);
    free(token);
}

static void take_segment(void *user, segue_request *request, const segue_segment *segment)
{
    (void)request;
    (void)segment;
    ++*(int *)user;
}

/* The token has the state that was reported to the application: here two of five segments
 * are replaced, though the client knows by now that four are. */
static void what_is_void_is_what_was_told_to_be(void **state)
{
    (void)state;
    static int taken; /* static, because queued callbacks run after the test */
    segue_request *resumed = NULL;
    segue_request_options options = {.struct_size = sizeof options, .credit = 4};
    segue_request_events events = {
        .struct_size = sizeof events, .user = &taken, .on_segment = take_segment};
    sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                             .options = &options,
                             .events = &events,
                             .task_id = SGI_STR("t")};
    segue_request *request = start(&spec);
    for (uint64_t number = 1; number <= 5; number++) {
        sgi_deliver_segment(request, number, number, SGI_STR("{}"));
        if (number % 2 == 0)
            sgi_deliver_void_segments(request, number);
    }
    fake_host_deliver(&host);
    assert_int_equal(taken, 4);
    char *token = token_of(request);
    assert_int_equal(resume(token, &resumed), SEGUE_OK);
    assert_int_equal(resumed->numbering.next, 5);
    assert_int_equal(resumed->numbering.voided, 2);
    sgi_request_unref(request);
    sgi_request_unref(resumed);
    free(token);
}

static void a_call_is_sent_again_with_its_key(void **state)
{
    (void)state;
    segue_request *resumed = NULL;
    sgi_request_spec spec = {.method = SGI_STR("tools/call"),
                             .params =
                                 SGI_STR("{\"name\":\"t\",\"arguments\":{\"n\":1e400}}"),
                             .options = &plain};
    segue_request *request = start(&spec);
    char *token = token_of(request);
    assert_int_equal(resume(token, &resumed), SEGUE_OK);
    assert_string_equal(resumed->method, "tools/call");
    assert_string_equal(resumed->params.p,
                        "{\"name\":\"t\",\"arguments\":{\"n\":1e400}}");
    assert_string_equal(resumed->key.text, request->key.text);
    assert_int_equal(resumed->phase, SGI_PHASE_WAIT);
    sgi_request_unref(request);
    sgi_request_unref(resumed);
    free(token);
}

static void there_is_none_for_what_no_server_can_find_again(void **state)
{
    (void)state;
    sgi_buf out;
    sgi_buf_init(&out, &tm.mem);
    sgi_request_spec list = {.method = SGI_STR("tools/list"), .options = &plain};
    segue_request *request = start(&list);
    assert_int_equal(sgi_resume_token_write(request, &out), SEGUE_E_NOT_RESUMABLE);
    sgi_request_fail(request, SEGUE_E_TIMEOUT, "x");
    assert_int_equal(sgi_resume_token_write(request, &out), SEGUE_E_NOT_RESUMABLE);
    fake_host_deliver(&host);
    assert_int_equal(sgi_resume_token_write(request, &out), SEGUE_E_TERMINAL);
    sgi_request_unref(request);
    session->server.idempotency = false;
    sgi_request_spec call = {.method = SGI_STR("tools/call"), .options = &plain};
    request = start(&call);
    assert_int_equal(sgi_resume_token_write(request, &out), SEGUE_E_NOT_RESUMABLE);
    assert_int_equal(out.len, 0);
    sgi_request_unref(request);
}

/* After a loss of the connection the application needs the token to resume. */
static void it_is_there_after_the_end_unless_the_task_has_ended(void **state)
{
    (void)state;
    static const struct {
        segue_status status, token;
    } rows[] = {
        {SEGUE_E_CLOSED, SEGUE_OK},
        {SEGUE_E_DISCONNECTED, SEGUE_OK},
        {SEGUE_E_TIMEOUT, SEGUE_OK},
        {SEGUE_E_UNAUTHORIZED, SEGUE_OK},
        {SEGUE_E_REFUSED, SEGUE_OK},
        {SEGUE_E_PROTOCOL, SEGUE_OK},
        {SEGUE_E_LIMIT, SEGUE_OK},
        {SEGUE_E_NOMEM, SEGUE_OK},
        {SEGUE_E_CANCELLED, SEGUE_E_TERMINAL},
        {SEGUE_E_REMOTE, SEGUE_E_TERMINAL},
        {SEGUE_E_INCOMPLETE, SEGUE_E_TERMINAL},
        {SEGUE_E_TASK_LOST, SEGUE_E_TERMINAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_buf out;
        sgi_buf_init(&out, &tm.mem);
        segue_request *request = follow("t", 1, 1);
        sgi_request_fail(request, rows[i].status, "x");
        /* the end is not reported to the application yet */
        assert_int_equal(sgi_resume_token_write(request, &out), SEGUE_OK);
        sgi_buf_truncate(&out, 0);
        fake_host_deliver(&host);
        assert_int_equal(sgi_resume_token_write(request, &out), rows[i].token);
        sgi_request_unref(request);
        sgi_buf_free(&out);
    }
}

static void a_damaged_token_is_refused_wherever_the_damage_is(void **state)
{
    (void)state;
    segue_request *request = follow("some-task", 3, 2);
    char *token = token_of(request);
    size_t len = strlen(token);
    sgi_request_unref(request);
    for (size_t i = 0; i < len; i++) {
        char kept = token[i];
        token[i] = kept == 'A' ? '_' : 'A';
        assert_invalid(token);
        token[i] = 0;
        assert_invalid(token);
        token[i] = kept;
    }
    char longer[400];
    snprintf(longer, sizeof longer, "%sAAAA", token);
    assert_invalid(longer);
    free(token);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",          "sg1.", "sg2.AAAAAAAAAAAAAAAA",
                                        "sg1.=====", "sg1",  "sg1.AAAAAAAAAAA",
                                        "sg1.A B",   "{}",   "sg1.\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_invalid(texts[i]);
}

/* Makes a token with a valid checksum. Only the maker of a token can give it wrong
 * contents, but the library checks the contents all the same. */
static char *forge(const char *state_text)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_str body = sgi_str_of(state_text);
    sgi_buf bytes, out;
    sgi_buf_init(&bytes, &sgi_mem_libc);
    sgi_buf_init(&out, &sgi_mem_libc);
    sgi_engine_digest(&host.engine, digest, &body, 1);
    sgi_buf_add(&bytes, digest, 8);
    sgi_buf_add_str(&bytes, body);
    sgi_buf_add_lit(&out, "sg1.");
    sgi_buf_add_base64(&out, bytes.p, bytes.len, true);
    sgi_buf_free(&bytes);
    assert_true(sgi_buf_terminate(&out));
    return out.p;
}

static void what_it_holds_must_make_sense(void **state)
{
    (void)state;
    static const char *const states[] = {
        "{\"t\":\"\",\"e\":0,\"s\":1}",
        "{\"t\":\"a\\u0000b\",\"e\":0,\"s\":1}",
        "{\"t\":\"a\",\"e\":-1,\"s\":1}",
        "{\"t\":\"a\",\"e\":0,\"s\":0}",
        "{\"t\":\"a\",\"e\":9223372036854775807,\"s\":1}",
        "{\"t\":\"a\",\"e\":1,\"s\":9223372036854775807}",
        "{\"t\":7,\"e\":0,\"s\":1}",
        "{\"k\":\"key\"}",
        "{\"m\":\"tools/call\"}",
        "{\"m\":7,\"k\":\"key\"}",
        "{\"m\":\"tools/call\",\"k\":\"key\",\"p\":[]}",
        "{\"m\":\"tools/call\",\"k\":\"key\",\"p\":7}",
        "{\"m\":\"tools/call\",\"k\":\"\"}",
        "[]",
        "7",
        "not json",
    };
    segue_request *request = NULL;
    char *token = forge("{\"t\":\"a\",\"e\":5,\"s\":3}");
    assert_int_equal(resume(token, &request), SEGUE_OK);
    sgi_request_unref(request);
    free(token);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        token = forge(states[i]);
        if (resume(token, &request) == SEGUE_OK)
            print_error("%s\n", states[i]);
        assert_invalid(token);
        free(token);
    }
}

static void it_says_which_session_can_resume_it(void **state)
{
    (void)state;
    static const struct {
        const char *state;
        int32_t era;
    } rows[] = {
        {"{\"t\":\"a\",\"e\":5,\"s\":3}", SEGUE_ERA_MODERN},
        {"{\"t\":\"a\",\"e\":0,\"s\":3,\"d\":1}", SEGUE_ERA_LEGACY},
        {"{\"t\":\"a\",\"e\":0,\"s\":3,\"d\":2}", SEGUE_ERA_LEGACY},
        {"{\"m\":\"tools/call\",\"z\":\"z\",\"i\":1}", SEGUE_ERA_LEGACY},
        {"{\"m\":\"tools/call\",\"k\":\"0123456789abcdef\"}", SEGUE_ERA_AUTO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t era = -1;
        char *token = forge(rows[i].state);
        assert_int_equal(sgi_resume_token_era(&host.engine, token, &era), SEGUE_OK);
        assert_int_equal(era, rows[i].era);
        token[strlen(token) - 2] ^= 1;
        assert_int_equal(sgi_resume_token_era(&host.engine, token, &era),
                         SEGUE_E_INVALID);
        free(token);
    }
}

static void without_memory_it_is_said_and_nothing_leaks(void **state)
{
    (void)state;
    segue_request *request = follow("some-task", 3, 2);
    char *token = token_of(request);
    size_t before = tm.live;
    size_t refused = 1;
    for (size_t at = 1; refused; at++) {
        sgi_buf out;
        sgi_buf_init(&out, &tm.mem);
        test_mem_rearm(&tm);
        tm.fail_at = at;
        segue_status status = sgi_resume_token_write(request, &out);
        refused = tm.failed;
        assert_int_equal(status, refused ? SEGUE_E_NOMEM : SEGUE_OK);
        sgi_buf_free(&out);
        assert_int_equal(tm.live, before);
    }
    sgi_request_cancel(request);
    sgi_request_unref(request);
    fake_host_deliver(&host);
    /* the connection is lost, so that resuming sends nothing */
    sgi_conn_on_lost(session->conn, "x");
    before = tm.live;
    refused = 1;
    for (size_t at = 1; refused; at++) {
        segue_request *resumed = NULL;
        test_mem_rearm(&tm);
        tm.fail_at = at;
        segue_status status = resume(token, &resumed);
        refused = tm.failed;
        assert_int_equal(status, refused ? SEGUE_E_NOMEM : SEGUE_OK);
        assert_int_equal(resumed != NULL, !refused);
        if (resumed)
            sgi_request_unref(resumed);
        else
            assert_int_equal(tm.live, before);
    }
    free(token);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_task_goes_on_behind_what_was_delivered),
        CASE(a_task_of_which_nothing_came_starts_at_its_beginning),
        CASE(what_is_void_is_what_was_told_to_be),
        CASE(a_call_is_sent_again_with_its_key),
        CASE(there_is_none_for_what_no_server_can_find_again),
        CASE(it_is_there_after_the_end_unless_the_task_has_ended),
        CASE(a_damaged_token_is_refused_wherever_the_damage_is),
        CASE(other_texts_are_refused),
        CASE(what_it_holds_must_make_sense),
        CASE(it_says_which_session_can_resume_it),
        CASE(without_memory_it_is_said_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
