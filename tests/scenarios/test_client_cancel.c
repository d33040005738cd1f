/* The client cancels a task, in each revision: it sends the cancel to the server, and the
 * request ends with the answer. Before that, the client does everything to get the cancel
 * through. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "engine/dialect/following/late_task.h"

#define GRACE_MS 5000
#define RESULT_2025 "\"content\":[{\"type\":\"text\",\"text\":\"a\"}]"

/* The messages of a server of one revision. */
typedef struct era {
    const char *name;
    void (*shake)(kit *k);
    const char *created, *working, *cancelled, *completed, *acknowledged;
    bool fetches; /* tasks/result brings the result */
} era;

static void shake_modern(kit *k)
{
    kit_handshake(k, SERVER_TASKS);
}

static void shake_streams(kit *k)
{
    kit_handshake(k, SERVER_STREAMS);
}

static void shake_2025(kit *k)
{
    kit_handshake_2025(k, SERVER_2025);
}

static void shake_draft(kit *k)
{
    kit_shake_hands(k, "DRAFT-2026-v1", "{\"tools\":{}}");
}

#define DRAFT(status)                                                                    \
    "\"taskId\":\"T\",\"status\":\"" status                                              \
    "\",\"createdAt\":\"2026-01-01T00:00:00Z\",\"lastUpdatedAt\":\"2026-01-01T00:00:"    \
    "00Z\",\"ttl\":60,\"pollInterval\":1000"

static const era eras[] = {
    {"2026-07-28", shake_modern, CREATED("T"), TASK("T", "working"),
     TASK("T", "cancelled"), TASK("T", "completed") "," RESULT,
     "\"resultType\":\"complete\"", false},
    {"2026-07-28, streamed", shake_streams, CREATED("T"), TASK("T", "working"),
     TASK("T", "cancelled"), TASK("T", "completed") "," RESULT,
     "\"resultType\":\"complete\"", false},
    {"2025-11-25", shake_2025, CREATED_2025("T"), TASK_2025("T", "working"),
     TASK_2025("T", "cancelled"), TASK_2025("T", "completed"),
     TASK_2025("T", "cancelled"), true},
    {"DRAFT-2026-v1", shake_draft,
     "\"resultType\":\"task\",\"task\":{" DRAFT("working") "}",
     "\"resultType\":\"task\"," DRAFT("working"),
     "\"resultType\":\"task\"," DRAFT("cancelled"),
     "\"resultType\":\"task\"," DRAFT("completed") "," RESULT,
     "\"resultType\":\"task\"," DRAFT("cancelled"), false},
};
#define ERAS (sizeof eras / sizeof *eras)

/* For the next call, which is then cancelled. */
static int64_t times_out_ms;

/* Makes a call that has been sent. */
static record *begin_call(kit *k, const era *e, const char **call)
{
    segue_session_options options = kit_legacy_options();
    bool modern = !strncmp(e->name, "2026", 4);
    if (e->shake == shake_draft)
        options.dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    kit_begin(k, modern ? NULL : &options);
    e->shake(k);
    segue_request_options wanted = SEGUE_REQUEST_OPTIONS_INIT;
    wanted.timeout_ms = times_out_ms;
    wanted.on_timeout = 1;
    record *r = kit_start(k, "tools/call", "{\"name\":\"t\"}", &wanted);
    if (e->fetches)
        kit_list_tools(k);
    *call = kit_expect(k, "tools/call");
    return r;
}

/* Makes a call that has become task T. */
static record *begin(kit *k, const era *e)
{
    const char *call;
    record *r = begin_call(k, e, &call);
    kit_result(k, call, "%s", e->created);
    return r;
}

/* Returns the next line of this method and skips others before it. */
static const char *hear(kit *k, const char *method)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", method);
    for (const char *line; (line = kit_heard(k));)
        if (!strcmp(json_at(line, "method"), quoted))
            return line;
    fail_msg("%s was not said", method);
    return NULL;
}

/* Skips all lines so far without an answer; returns the last tasks/get, or NULL. */
static const char *pass_over_all(kit *k)
{
    const char *get = NULL;
    for (const char *line; (line = kit_heard(k));)
        if (!strcmp(json_at(line, "method"), "\"tasks/get\""))
            get = line;
    return get;
}

static const char *hear_cancel(kit *k)
{
    const char *cancel = hear(k, "tasks/cancel");
    assert_at(cancel, "params.taskId", "\"T\"");
    return cancel;
}

static void the_answer_is_the_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        record *r = begin(&k, &eras[i]);
        const char *get = pass_over_all(&k);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        const char *cancel = hear_cancel(&k);
        if (get)
            kit_result(&k, get, "%s", eras[i].working);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        kit_advance(&k, GRACE_MS - 100);
        kit_expect_silence(&k); /* sent only once, and no poll meanwhile */
        assert_int_equal(r->completed, 0);
        kit_result(&k, cancel, "%s", eras[i].acknowledged);
        assert_int_equal(r->completed, 1);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        assert_int_equal(segue_request_cancel(r->request), SEGUE_E_TERMINAL);
        kit_end(&k);
    }
}

static void without_an_answer_it_ends_all_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        record *r = begin(&k, &eras[i]);
        segue_request_cancel(r->request);
        const char *cancel = hear_cancel(&k);
        kit_advance(&k, GRACE_MS);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        assert_string_equal(r->message, "the request was cancelled, but the server has "
                                        "not confirmed it: the tool may still run");
        /* the request has ended already */
        kit_result(&k, cancel, "%s", eras[i].acknowledged);
        kit_end(&k);
    }
}

/* A temporary refusal does not end the request either. But a server that does not know
 * the method will never answer better. */
static void a_refusal_is_no_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        record *r = begin(&k, &eras[i]);
        segue_request_cancel(r->request);
        kit_error(&k, hear_cancel(&k), -32603, NULL);
        kit_advance(&k, 100);
        kit_expect_silence(&k);
        kit_advance(&k, 200);
        kit_error(&k, hear_cancel(&k), -32000, "{\"retryAfterMs\":2000}");
        kit_advance(&k, 1500);
        kit_expect_silence(&k);
        kit_advance(&k, 800);
        kit_result(&k, hear_cancel(&k), "%s", eras[i].acknowledged);
        assert_string_equal(r->message, "cancelled");
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        kit_end(&k);
    }
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        record *r = begin(&k, &eras[i]);
        segue_request_cancel(r->request);
        kit_error(&k, hear_cancel(&k), -32601, NULL);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        assert_string_equal(r->message, "the request was cancelled, but the server has "
                                        "not confirmed it: the tool may still run");
        kit_end(&k);
    }
}

/* The request ends with the reason of the application's cancel, whoever reports the end
 * first. */
static void a_timeout_stays_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * ERAS; i++) {
        const era *e = &eras[i / 2];
        bool is_lost = i % 2;
        kit k = {.can_reopen = is_lost};
        times_out_ms = 500;
        record *r = begin(&k, e);
        times_out_ms = 0;
        const char *get = pass_over_all(&k);
        kit_advance(&k, 550);
        const char *cancel = hear_cancel(&k);
        if (is_lost) { /* the server got the cancel, its answer was lost */
            kit_cut(&k);
            e->shake(&k);
            kit_advance(&k, 300);
            kit_error(&k, hear_cancel(&k), -32602, NULL);
            get = hear(&k, "tasks/get");
        }
        if (get)
            kit_result(&k, get, "%s", e->cancelled);
        else
            kit_result(&k, cancel, "%s", e->acknowledged);
        assert_int_equal(r->status, SEGUE_E_TIMEOUT);
        kit_end(&k);
    }
}

static void its_own_time_is_not_prolonged(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        times_out_ms = 1000;
        record *r = begin(&k, &eras[i]);
        times_out_ms = 0;
        kit_advance(&k, 800);
        segue_request_cancel(r->request);
        kit_advance(&k, 210);
        assert_int_equal(r->status, SEGUE_E_TIMEOUT);
        kit_end(&k);
    }
}

/* A refusal means that the task had ended before: the request has that end
 * (R-2557-63). */
static void too_late_brings_the_result(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        record *r = begin(&k, &eras[i]);
        const char *get = pass_over_all(&k);
        segue_request_cancel(r->request);
        kit_error(&k, hear_cancel(&k), -32602, NULL);
        for (int looks = 0; !r->completed; looks++) {
            assert_true(looks < 3); /* an open stream may bring more */
            get = get ? get : hear(&k, "tasks/get");
            kit_result(&k, get, "%s", eras[i].completed);
            if (eras[i].fetches)
                kit_result(&k, hear(&k, "tasks/result"), RESULT_2025);
            kit_advance(&k, 1200);
            get = NULL;
        }
        assert_int_equal(r->status, SEGUE_OK);
        kit_end(&k);
    }
}

/* Within its time limit the cancel goes out on the next connection; a lost cancel is sent
 * again. */
static void the_next_connection_brings_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * ERAS; i++) {
        const era *e = &eras[i / 2];
        kit k = {.can_reopen = 1};
        record *r = begin(&k, e);
        pass_over_all(&k);
        if (i % 2) {
            segue_request_cancel(r->request);
            hear_cancel(&k);
        }
        kit_cut(&k);
        segue_request_cancel(r->request);
        e->shake(&k);
        kit_advance(&k, 1000);
        kit_result(&k, hear_cancel(&k), "%s", e->acknowledged);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        kit_end(&k);
    }
}

static void without_a_connection_it_ends_after_its_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {.can_reopen = 1};
        record *r = begin(&k, &eras[i]);
        kit_cut(&k); /* the next server does not answer */
        segue_request_cancel(r->request);
        kit_advance(&k, GRACE_MS - 20);
        assert_int_equal(r->completed, 0);
        kit_advance(&k, 20);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        kit_end(&k);
    }
}

/* A resumed request is a task at once: it can be cancelled before anything was sent. */
static void a_token_is_enough(void **state)
{
    (void)state;
    kit first = {0}, k = {0};
    char token[4096];
    size_t len = sizeof token;
    record *r = begin(&first, &eras[0]);
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    kit_end(&first);
    kit_begin(&k, NULL);
    r = kit_resume(&k, token, NULL);
    segue_request_cancel(r->request);
    kit_handshake(&k, SERVER_TASKS);
    kit_result(&k, hear_cancel(&k), "\"resultType\":\"complete\"");
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_end(&k);
}

static void cancel_it(record *r)
{
    segue_request_cancel(r->request);
}

static void the_first_word_of_it_may_cancel_it(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    r->on_task = cancel_it;
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T"));
    kit_result(&k, kit_expect(&k, "tasks/cancel"), "\"resultType\":\"complete\"");
    kit_expect_silence(&k); /* no stream was opened */
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_end(&k);
}

/* The question for the status says of an unknown task what following it says. */
static void the_status_of_an_unknown_task_says_that_it_is_lost(void **state)
{
    (void)state;
    for (int legacy = 0; legacy < 2; legacy++) {
        kit k = {0};
        segue_task *task;
        segue_request_events events;
        segue_session_options options = kit_legacy_options();
        kit_begin(&k, legacy ? &options : NULL);
        if (legacy)
            shake_2025(&k);
        else
            shake_modern(&k);
        record *r = kit_record(&k, &events);
        assert_int_equal(segue_task_attach(k.session, "T", &task, NULL), SEGUE_OK);
        assert_int_equal(segue_task_get(task, &events, &r->request), SEGUE_OK);
        kit_error(&k, kit_expect(&k, "tasks/get"), -32602, NULL);
        assert_int_equal(r->status, SEGUE_E_TASK_LOST);
        assert_int_equal(r->rpc_code, -32602);
        segue_task_free(task);
        kit_end(&k);
    }
}

/* Before 2026-07-28 a second cancel is refused, as for an unknown task. The status of the
 * task is the answer. */
static void a_second_cancel_is_quiet(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        kit k = {0};
        segue_task *task;
        segue_request_events events;
        segue_session_options options = kit_legacy_options();
        kit_begin(&k, &options);
        shake_2025(&k);
        record *r = kit_record(&k, &events);
        assert_int_equal(segue_task_attach(k.session, "T", &task, NULL), SEGUE_OK);
        assert_int_equal(segue_task_cancel(task, &events, &r->request), SEGUE_OK);
        kit_error(&k, kit_expect(&k, "tasks/cancel"), -32602, NULL);
        const char *get = kit_expect(&k, "tasks/get");
        assert_at(get, "params.taskId", "\"T\"");
        if (known)
            kit_result(&k, get, TASK_2025("T", "cancelled"));
        else
            kit_error(&k, get, -32602, NULL);
        assert_int_equal(r->status, known ? SEGUE_OK : SEGUE_E_TASK_LOST);
        kit_expect_silence(&k);
        segue_task_free(task);
        kit_end(&k);
    }
}

/* ---- before the task's id is known ---- */

/* The task was made before the server got the cancel. A server that knows keys finds the
 * call by its key, so the client does not wait for its answer. */
static void a_late_answer_that_names_a_task_cancels_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        const char *call;
        record *r = begin_call(&k, &eras[i], &call);
        bool keyed = strstr(call, "idempotencyKey");
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        kit_run(&k);
        assert_int_equal(r->status, SEGUE_E_CANCELLED);
        assert_at(kit_expect(&k, "notifications/cancelled"), "params.requestId",
                  json_at(call, "id"));
        kit_result(&k, call, "%s", eras[i].created);
        if (!keyed)
            kit_result(&k, hear_cancel(&k), "%s", eras[i].acknowledged);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* The call had sent pieces of its result before it became a task. Pieces that arrive
 * after the cancel are not the answer. */
static void a_late_piece_is_not_the_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ERAS; i++) {
        kit k = {0};
        const char *call;
        record *r = begin_call(&k, &eras[i], &call);
        bool keyed = strstr(call, "idempotencyKey");
        segue_request_cancel(r->request);
        kit_run(&k);
        kit_expect(&k, "notifications/cancelled");
        for (int piece = 0; piece < 2; piece++)
            kit_result(&k, call, "\"content\":[],\"_meta\":{\"hasMore\":true}");
        kit_result(&k, call, "%s", eras[i].created);
        if (!keyed)
            kit_result(&k, hear_cancel(&k), "%s", eras[i].acknowledged);
        kit_expect_silence(&k);
        kit_end(&k);
    }
}

/* A still later answer, and one that names no task, is dropped. */
static void a_late_answer_is_waited_for_in_bounds(void **state)
{
    (void)state;
    kit k = {0};
    const char *calls[SGI_LATE_CALLS_MAX + 1];
    record *r = begin_call(&k, &eras[0], &calls[0]);
    for (int i = 0; i <= SGI_LATE_CALLS_MAX; i++) {
        if (i) {
            r = kit_call(&k, "t");
            calls[i] = kit_expect(&k, "tools/call");
        }
        assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
        kit_expect(&k, "notifications/cancelled");
    }
    kit_result(&k, calls[SGI_LATE_CALLS_MAX], CREATED("T"));
    kit_result(&k, calls[0], "\"resultType\":\"complete\",\"content\":[]");
    kit_expect_silence(&k);
    kit_result(&k, calls[1], CREATED("T"));
    hear_cancel(&k);
    kit_advance(&k, 60000);
    while (kit_heard(&k)) /* the cancel's own request, which gets no answer */
        ;
    kit_result(&k, calls[2], CREATED("T"));
    kit_expect_silence(&k);
    kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_of_an_unknown_task_says_that_it_is_lost),
        cmocka_unit_test(a_second_cancel_is_quiet),
        cmocka_unit_test(a_late_answer_that_names_a_task_cancels_it),
        cmocka_unit_test(a_late_piece_is_not_the_answer),
        cmocka_unit_test(a_late_answer_is_waited_for_in_bounds),
        cmocka_unit_test(the_answer_is_the_end),
        cmocka_unit_test(without_an_answer_it_ends_all_the_same),
        cmocka_unit_test(a_refusal_is_no_answer),
        cmocka_unit_test(a_timeout_stays_one),
        cmocka_unit_test(its_own_time_is_not_prolonged),
        cmocka_unit_test(too_late_brings_the_result),
        cmocka_unit_test(the_next_connection_brings_it),
        cmocka_unit_test(without_a_connection_it_ends_after_its_time),
        cmocka_unit_test(a_token_is_enough),
        cmocka_unit_test(the_first_word_of_it_may_cancel_it),
    };
    return cmocka_run_group_tests_name("client_cancel", tests, NULL, NULL);
}
