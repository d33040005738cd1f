/* A handle made from a token (segue_task_attach_token). Its requests use whatever the
 * token stands for: a task of any revision, or a request that can be resumed (SEP-975).
 * Answers are translated to task states. The test plays the server. */
#include "support/client_kit.h"
#include "support/world.h"

#include <segue/segue_ext.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define CAPS_SERVER "{\"tools\":{}}"
#define STATUS(id, status, input)                                                        \
    "\"requestId\":%s,\"status\":\"" status "\",\"hasPendingMessage\":false,"            \
    "\"hasInputRequest\":" input,                                                        \
        id

/* A request that was let go: its token and its id. */
typedef struct left {
    char token[4096];
    char id[32];
} left;

static void begin(kit *k)
{
    segue_session_options options = kit_legacy_options();
    options.dialects_on = SEGUE_DIALECT_RESUMABLE;
    kit_begin_2025(k, &options, CAPS_SERVER);
}

static void leave_request(kit *k, left *l)
{
    size_t len = sizeof l->token;
    record *r = kit_call(k, "t");
    const char *call = kit_expect(k, "tools/call");
    snprintf(l->id, sizeof l->id, "%s", json_at(call, "id"));
    kit_say(k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/requests/resumePolicy\","
            "\"params\":{\"requestId\":%s,\"resumeToken\":\"to.ken\",\"maxWait\":60}}",
            l->id);
    assert_int_equal(segue_request_token(r->request, l->token, &len), SEGUE_OK);
    assert_int_equal(segue_request_detach(r->request), SEGUE_OK);
    kit_run(k);
    assert_int_equal(r->status, SEGUE_E_CLOSED);
}

/* Attaches it in a session of its own, as after a restart. */
static segue_task *begin_attached(kit *k, left *l)
{
    kit before = {0};
    segue_task *task = NULL;
    begin(&before);
    leave_request(&before, l);
    kit_end(&before);
    k->chance = 99;
    begin(k);
    assert_int_equal(segue_task_attach_token(k->session, l->token, &task, NULL),
                     SEGUE_OK);
    assert_string_equal(segue_task_id(task), "");
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_UNKNOWN);
    kit_expect_silence(k);
    return task;
}

static record *get(kit *k, segue_task *task)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    assert_int_equal(segue_task_get(task, &events, &r->request), SEGUE_OK);
    kit_run(k);
    return r;
}

static record *watch(kit *k, segue_task *task)
{
    segue_request_events events;
    record *r = kit_record(k, &events);
    assert_int_equal(segue_task_watch(task, NULL, &events, &r->request, NULL), SEGUE_OK);
    kit_run(k);
    return r;
}

static const char *expect_look(kit *k, const left *l)
{
    const char *look = kit_expect(k, "requests/getStatus");
    assert_at(look, "params.requestId", l->id);
    assert_at(look, "params.resumeToken", "\"to.ken\"");
    assert_string_not_equal(json_at(look, "id"), l->id);
    return look;
}

/* ---- a request that can be resumed ---- */

static void a_request_is_asked_for_its_state(void **state)
{
    (void)state;
    left l;
    kit k = {0};
    segue_task *task = begin_attached(&k, &l);
    record *r = get(&k, task);
    kit_result(&k, expect_look(&k, &l), STATUS(l.id, "processing", "false"));
    assert_int_equal(r->status, SEGUE_OK);
    /* the server's answer is passed on unchanged */
    assert_at(r->result, "status", "\"processing\"");
    assert_at(r->result, "hasPendingMessage", "false");
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_WORKING);
    get(&k, task);
    kit_result(&k, expect_look(&k, &l), STATUS(l.id, "processing", "true"));
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_INPUT_REQUIRED);
    get(&k, task);
    kit_result(&k, expect_look(&k, &l), STATUS(l.id, "strange", "true"));
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_INPUT_REQUIRED);
    get(&k, task);
    kit_result(&k, expect_look(&k, &l), STATUS(l.id, "failed", "false"));
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_FAILED);
    get(&k, task);
    kit_result(&k, expect_look(&k, &l), STATUS(l.id, "completed", "true"));
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_FAILED); /* an end is final */
    segue_task_free(task);
    kit_end(&k);
}

static void a_refusal_tells_what_became_of_it(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *data;
        int32_t state;
    } cases[] = {
        {-32602, NULL, SEGUE_TASK_UNKNOWN}, /* the token is unknown, or not known any
                                             * more */
        {-32602, "{\"reason\":17}", SEGUE_TASK_UNKNOWN},
        {-32601, "{}", SEGUE_TASK_UNKNOWN},
        {-32603, "{\"reason\":\"x\"}", SEGUE_TASK_UNKNOWN},
        {-32602, "{\"reason\":\"cancelled\"}", SEGUE_TASK_CANCELLED},
        {-32602, "{\"reason\":\"expired\"}", SEGUE_TASK_CANCELLED},
        {-32602, "{\"reason\":\"completed\"}", SEGUE_TASK_COMPLETED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        left l;
        kit k = {0};
        segue_task *task = begin_attached(&k, &l);
        record *r = get(&k, task);
        kit_error(&k, expect_look(&k, &l), cases[i].code, cases[i].data);
        assert_int_equal(r->status, SEGUE_E_REMOTE);
        assert_int_equal(r->rpc_code, cases[i].code);
        assert_int_equal(segue_task_get_state(task), cases[i].state);
        segue_task_free(task);
        kit_end(&k);
    }
}

static void to_watch_a_request_is_to_resume_it(void **state)
{
    (void)state;
    left l;
    kit k = {0};
    segue_task *task = begin_attached(&k, &l);
    record *r = watch(&k, task);
    const char *again = kit_expect(&k, "requests/resume");
    assert_at(again, "id", l.id);
    assert_at(again, "params.resumeToken", "\"to.ken\"");
    record *seen = get(&k, task); /* a second request runs meanwhile */
    kit_result(&k, expect_look(&k, &l), STATUS(l.id, "processing", "false"));
    assert_int_equal(seen->status, SEGUE_OK);
    /* A member of the tool's result named like that does not belong to the task. */
    kit_result(&k, again, "\"content\":[],\"status\":\"failed\"");
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_COMPLETED);
    r = watch(&k, task);
    kit_error(&k, kit_expect(&k, "requests/resume"), -32603,
              "{\"reason\":\"server_restarted\"}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    /* an end is final */
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_COMPLETED);
    segue_task_free(task);
    kit_end(&k);
}

static void no_message_withdraws_a_request_by_its_token(void **state)
{
    (void)state;
    left l;
    kit k = {0};
    segue_request *request = NULL;
    segue_task *task = begin_attached(&k, &l);
    assert_int_equal(segue_task_cancel(task, NULL, &request), SEGUE_E_UNSUPPORTED);
    assert_null(request);
    kit_expect_silence(&k);
    record *r = watch(&k, task);
    kit_expect(&k, "requests/resume");
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    assert_at(kit_expect(&k, "notifications/cancelled"), "params.requestId", l.id);
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    segue_task_free(task);
    kit_end(&k);
}

static void a_session_without_resuming_says_so(void **state)
{
    (void)state;
    left l;
    kit before = {0};
    begin(&before);
    leave_request(&before, &l);
    kit_end(&before);
    for (int modern = 0; modern < 2; modern++) {
        segue_task *task = NULL;
        kit k = {.chance = 99};
        if (modern)
            kit_begin_modern(&k, NULL, SERVER_TASKS);
        else
            kit_begin_2025(&k, NULL, CAPS_SERVER); /* the server did not declare it */
        assert_int_equal(segue_task_attach_token(k.session, l.token, &task, NULL),
                         SEGUE_OK);
        assert_int_equal(get(&k, task)->status, SEGUE_E_NOT_RESUMABLE);
        assert_int_equal(watch(&k, task)->status, SEGUE_E_NOT_RESUMABLE);
        assert_int_equal(kit_resume(&k, l.token, NULL)->status, SEGUE_E_NOT_RESUMABLE);
        kit_expect_silence(&k);
        kit_call(&k, "t"); /* the session stays usable */
        kit_expect(&k, "tools/call");
        segue_task_free(task);
        kit_end(&k);
    }
}

static void damaged_tokens_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"sg1.", "sg1.x", "sg1.AAAAAAAAAAAAAAAA", "sg1.+1"};
    left l;
    kit k = {0};
    segue_task *task = NULL;
    begin(&k);
    leave_request(&k, &l);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(segue_task_attach_token(k.session, bad[i], &task, NULL),
                         SEGUE_E_INVALID);
    for (size_t i = 4; l.token[i]; i++) {
        char was = l.token[i];
        l.token[i] = was == 'A' ? 'B' : 'A';
        if (l.token[i + 1]) /* the last letter of a token has unused bits */
            assert_int_equal(segue_task_attach_token(k.session, l.token, &task, NULL),
                             SEGUE_E_INVALID);
        l.token[i] = was;
    }
    assert_null(task);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The call was sent with an idempotency key, and no answer came. */
static void a_call_that_is_no_task_yet_has_no_state(void **state)
{
    (void)state;
    kit k = {0};
    char token[4096];
    size_t len = sizeof token;
    segue_task *task = NULL;
    kit_begin_modern(&k, NULL, SERVER_STREAMS);
    record *r = kit_call(&k, "t");
    kit_expect(&k, "tools/call");
    assert_int_equal(segue_request_token(r->request, token, &len), SEGUE_OK);
    assert_int_equal(segue_task_attach_token(k.session, token, &task, NULL),
                     SEGUE_E_UNSUPPORTED);
    assert_null(task);
    kit_end(&k);
}

/* ---- tasks ---- */

static segue_session_options draft_options(void)
{
    segue_session_options options = kit_legacy_options();
    options.dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    return options;
}

typedef enum era { EXTENSION, OF_2025, OF_DRAFT, ERAS } era;

static void begin_era(kit *k, era e)
{
    segue_session_options options = draft_options();
    if (e == EXTENSION) {
        kit_begin_modern(k, NULL, SERVER_TASKS);
    } else if (e == OF_2025) {
        kit_begin_2025(k, NULL, SERVER_2025);
    } else {
        kit_begin(k, &options);
        kit_shake_hands(k, "DRAFT-2026-v1", CAPS_SERVER);
    }
}

#define META                                                                             \
    "\"_meta\":{\"a\":1,\"io.modelcontextprotocol/model-immediate-response\":"           \
    "\"It runs: \\u00e9\"}"
#define TASK_DRAFT                                                                       \
    "\"taskId\":\"T\",\"status\":\"working\",\"createdAt\":\"2026-01-01T00:00:00Z\","    \
    "\"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"ttlSeconds\":60,"                      \
    "\"pollIntervalMilliseconds\":1000"

static const char *call_of(kit *k, era e)
{
    if (e == OF_2025)
        kit_list_tools(k);
    return kit_expect(k, "tools/call");
}

/* Sends the answer that makes the call of this era task T. */
static void make_task(kit *k, era e)
{
    static const char *const made[] = {CREATED("T") "," META, CREATED_2025("T") "," META,
                                       "\"resultType\":\"task\",\"task\":{" TASK_DRAFT
                                       "},\"requestState\":\"s t\"," META};
    kit_result(k, call_of(k, e), "%s", made[e]);
}

static void tokens_of_tasks_are_handles_of_tasks(void **state)
{
    (void)state;
    static const char *const seen[] = {TASK("T", "working"), TASK_2025("T", "working"),
                                       "\"resultType\":\"complete\"," TASK_DRAFT
                                       ",\"requestState\":\"s t\""};
    static const char *const connect_with[] = {"connect with the era \"modern\"",
                                               "connect with the era \"legacy\"",
                                               "connect with the option for draft tasks"};
    for (era e = 0; e < ERAS; e++) {
        char token[4096];
        int32_t named = -1;
        segue_task *task = NULL;
        kit before = {0}, k = {.chance = 99}, other = {.chance = 98};
        begin_era(&before, e);
        record *r = kit_call(&before, "t");
        make_task(&before, e);
        memcpy(token, r->token, sizeof token); /* the token of on_task */
        kit_end(&before);
        begin_era(&k, e);
        assert_int_equal(segue_task_attach_token(k.session, token, &task, NULL),
                         SEGUE_OK);
        assert_string_equal(segue_task_id(task), "T");
        r = get(&k, task);
        const char *look = kit_expect(&k, "tasks/get");
        assert_at(look, "params.taskId", "\"T\"");
        kit_result(&k, look, "%s", seen[e]);
        assert_int_equal(r->status, SEGUE_OK);
        assert_int_equal(segue_task_get_state(task), SEGUE_TASK_WORKING);
        watch(&k, task);
        assert_at(kit_expect(&k, "tasks/get"), "params.taskId", "\"T\"");
        segue_task_free(task);
        kit_end(&k);
        begin_era(&other, (e + 1) % ERAS); /* a server of another era now */
        assert_int_equal(segue_task_attach_token(other.session, token, &task, NULL),
                         SEGUE_OK);
        r = get(&other, task);
        assert_int_equal(r->status, SEGUE_E_NOT_RESUMABLE);
        assert_non_null(strstr(r->message, connect_with[e]));
        assert_int_equal(watch(&other, task)->status, SEGUE_E_NOT_RESUMABLE);
        kit_expect_silence(&other);
        assert_int_equal(segue_token_era(other.runtime, token, &named, NULL), SEGUE_OK);
        assert_int_equal(named, e == EXTENSION ? SEGUE_ERA_MODERN : SEGUE_ERA_LEGACY);
        segue_task_free(task);
        kit_end(&other);
    }
}

/* ---- advice that the server sends with a task ---- */

#define ADVICE "io.modelcontextprotocol/model-immediate-response"

static void read_advice(record *r)
{
    char text[64];
    size_t len = 0;
    assert_int_equal(segue_request_meta(r->request, ADVICE, NULL, &len), SEGUE_OK);
    assert_int_equal(len, strlen("\"It runs: \\u00e9\""));
    assert_int_equal(segue_request_meta(r->request, ADVICE, text, &len),
                     SEGUE_E_TOO_SMALL); /* the buffer has no room for the NUL */
    len = sizeof text;
    assert_int_equal(segue_request_meta(r->request, ADVICE, text, &len), SEGUE_OK);
    assert_string_equal(text, "\"It runs: \\u00e9\"");
    len = sizeof text;
    assert_int_equal(segue_request_meta(r->request, "a", text, &len), SEGUE_OK);
    assert_string_equal(text, "1");
    assert_int_equal(segue_request_meta(r->request, "b", text, &len), SEGUE_E_NOT_FOUND);
    assert_int_equal(segue_request_meta(r->request, NULL, text, &len), SEGUE_E_INVALID);
    assert_int_equal(segue_request_meta(r->request, "a", text, NULL), SEGUE_E_INVALID);
    *(int *)r->user += 1;
}

static void advice_comes_with_the_task(void **state)
{
    (void)state;
    for (era e = 0; e < ERAS; e++) {
        int read = 0;
        size_t len = 0;
        kit k = {0};
        begin_era(&k, e);
        record *r = kit_call(&k, "t");
        r->user = &read;
        r->on_task = read_advice;
        assert_int_equal(segue_request_meta(r->request, "a", NULL, &len),
                         SEGUE_E_NOT_FOUND); /* the advice has not come yet */
        make_task(&k, e);
        assert_int_equal(read, 1);
        read_advice(r); /* the advice of later answers, too */
        record *resumed = kit_resume(&k, r->token, NULL);
        assert_int_equal(segue_request_meta(resumed->request, "a", NULL, &len),
                         SEGUE_E_NOT_FOUND);
        kit_end(&k);
    }
}

static void a_task_without_advice_has_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", ",\"_meta\":{}", ",\"_meta\":17",
                                        ",\"_meta\":[\"a\",1]", ",\"_meta\":null"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t len = 0;
        kit k = {0};
        begin_era(&k, EXTENSION);
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T") "%s", wrong[i]);
        assert_int_equal(segue_request_meta(r->request, "a", NULL, &len),
                         SEGUE_E_NOT_FOUND);
        kit_expect(&k, "tasks/get");
        kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMED("R-975-21 R-975-22 a request is asked for its state by its token",
              a_request_is_asked_for_its_state),
        NAMED("R-975-11 R-975-12 R-975-14 a refusal tells what became of it",
              a_refusal_tells_what_became_of_it),
        NAMED("R-975-9 to watch a request is to resume it",
              to_watch_a_request_is_to_resume_it),
        NAMED("R-975-12 no message withdraws a request by its token",
              no_message_withdraws_a_request_by_its_token),
        NAMED("R-975-1 a session without resuming says so",
              a_session_without_resuming_says_so),
        NAMED("R-975-30 damaged tokens are refused", damaged_tokens_are_refused),
        cmocka_unit_test(a_call_that_is_no_task_yet_has_no_state),
        NAMED("R-2557-62 R-2557-61 tokens of tasks are handles of tasks",
              tokens_of_tasks_are_handles_of_tasks),
        NAMED("R-2557-12 advice to the model comes with the task",
              advice_comes_with_the_task),
        NAMED("R-2557-12 a task without advice has none", a_task_without_advice_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
