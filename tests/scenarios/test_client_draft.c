/* A client and the tasks of DRAFT-2026-v1 (SEP-2557), from a server that the test plays:
 * how the draft is negotiated, what the client sends back with each request about a task,
 * and how it follows a task to its end. */
#include "support/client_kit.h"
#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define DRAFT "DRAFT-2026-v1"
#define SERVER                                                                           \
    "\"protocolVersion\":\"" DRAFT "\",\"capabilities\":{\"tools\":{}},"                 \
    "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}"
#define STAMPED_AT(second)                                                               \
    "\"createdAt\":\"2026-01-01T00:00:00Z\",\"lastUpdatedAt\":\"2026-01-01T00:"          \
    "00:" second "Z\",\"ttl\":60,\"pollInterval\":1000"
#define HEAD(id, status)                                                                 \
    "\"taskId\":\"" id "\",\"status\":\"" status "\"," STAMPED_AT("00")
#define MADE(id) "\"resultType\":\"task\",\"task\":{" HEAD(id, "working") "}"
#define SEEN(id, status) "\"resultType\":\"task\"," HEAD(id, status)
#define STATE(text) ",\"requestState\":" text
#define QUESTION(key)                                                                    \
    "\"" key "\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"?\"}}"
#define ASKS(id, questions)                                                              \
    SEEN(id, "input_required") ",\"inputRequests\":{" questions "}"
#define YES "{\"action\":\"accept\",\"content\":{\"a\":1}}"
#define STATUS(members)                                                                  \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/"                             \
    "status\",\"params\":{" members "}}"

static segue_session_options offering(void)
{
    segue_session_options options = kit_legacy_options();
    options.dialects_on = SEGUE_DIALECT_DRAFT_TASKS;
    options.capabilities = "{\"elicitation\":{}}";
    return options;
}

static void shake_hands(kit *k)
{
    assert_at(kit_shake_hands(k, DRAFT, SERVER_PLAIN), "params.protocolVersion",
              "\"" DRAFT "\"");
}

static void begin_session(kit *k)
{
    segue_session_options options = offering();
    kit_begin(k, &options);
    shake_hands(k);
    assert_int_equal(k->opened, 1);
}

/* Makes a call that has become task T and was not polled yet. */
static record *begin(kit *k, const char *created)
{
    begin_session(k);
    record *r = kit_call(k, "t");
    const char *call = kit_expect(k, "tools/call");
    assert_at(call, "params.task", "");
    kit_result(k, call, "%s", created);
    return r;
}

static const char *look(kit *k)
{
    kit_advance(k, 1200);
    const char *get = kit_expect(k, "tasks/get");
    assert_at(get, "params.taskId", "\"T\"");
    return get;
}

static void end_well(kit *k, record *r, const char *get)
{
    kit_result(k, get, SEEN("T", "completed") "," RESULT);
    assert_int_equal(r->status, SEGUE_OK);
    assert_int_equal(r->segments, 2);
    kit_end(k);
}

static void answer(record *r, const char *key, const char *json)
{
    assert_int_equal(record_answer(r, key, json), SEGUE_OK);
}

/* The rounds of a plain call: each begins its pieces anew, in pieces of other sizes. What
 * was shown in an earlier round is not shown again (found by the simulation). */
static void pieces_of_a_later_round_are_not_shown_again(void **state)
{
#define BLOCK(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define PIECE(blocks, meta)                                                              \
    "\"content\":[" blocks "],\"_meta\":{\"hasMore\":true," meta "}"
    (void)state;
    kit k = {0};
    begin_session(&k);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    kit_result(&k, call, PIECE(BLOCK("a"), "\"index\":0"));
    kit_result(&k, call, PIECE(BLOCK("b"), "\"index\":1"));
    kit_result(&k, call, PIECE(BLOCK("c"), "\"index\":2"));
    kit_result(&k, call,
               "\"resultType\":\"incomplete\",\"inputRequests\":{" QUESTION("q") "}");
    answer(r, "q", YES);
    kit_run(&k);
    call = kit_expect(&k, "tools/call");
    assert_at(call, "params.inputResponses.q.action", "\"accept\"");
    kit_result(
        &k, call,
        PIECE(BLOCK("a") "," BLOCK("b"), "\"mergeStrategy\":\"replace\",\"index\":0"));
    kit_result(&k, call, PIECE(BLOCK("c"), "\"index\":2"));
    assert_int_equal(r->segments, 3);
    kit_result(&k, call, "\"content\":[" BLOCK("d") "],\"_meta\":{\"index\":3}");
    assert_int_equal(r->segments, 4);
    assert_int_equal(r->status, SEGUE_OK);
    assert_at(r->result, "content",
              "[" BLOCK("a") "," BLOCK("b") "," BLOCK("c") "," BLOCK("d") "]");
    kit_end(&k);
#undef BLOCK
#undef PIECE
}

static record *call_with_logs(kit *k)
{
    segue_request_options options = SEGUE_REQUEST_OPTIONS_INIT;
    options.log_level = "debug";
    return kit_start(k, "tools/call", "{\"name\":\"t\"}", &options);
}

static void set_level(kit *k, const char *level)
{
    const char *wish = kit_expect(k, "logging/setLevel");
    assert_at(wish, "params.level", level);
    kit_result(k, wish, "\"_meta\":{}");
}

/* What the application sets while a call runs is not undone by the next round of the
 * call. */
static void a_later_log_level_holds_for_further_rounds(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = offering();
    kit_begin(&k, &options);
    kit_shake_hands(&k, DRAFT, "{\"tools\":{},\"logging\":{}}");
    call_with_logs(&k);
    set_level(&k, "\"debug\"");
    kit_result(&k, kit_expect(&k, "tools/call"), "\"content\":[]");
    record *r = call_with_logs(&k);
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"incomplete\",\"inputRequests\":{" QUESTION("q") "}");
    kit_start(&k, "logging/setLevel", "{\"level\":\"critical\"}", NULL);
    set_level(&k, "\"critical\"");
    answer(r, "q", YES);
    kit_run(&k);
    kit_result(&k, kit_expect(&k, "tools/call"), "\"content\":[]");
    assert_int_equal(r->status, SEGUE_OK);
    kit_end(&k);
}

/* ---- negotiation ---- */

static void it_is_offered_only_when_switched_on(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = offering();
    options.dialects_on = 0;
    kit_begin(&k, &options);
    const char *request = kit_expect(&k, "initialize");
    assert_at(request, "params.protocolVersion", "\"2025-11-25\"");
    kit_result(&k, request, SERVER);
    /* the client did not ask for it */
    assert_int_equal(k.closed_status, SEGUE_E_NEGOTIATION);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    options = offering();
    options.no_tasks = 1;
    kit_begin(&k, &options);
    assert_at(kit_expect(&k, "initialize"), "params.protocolVersion", "\"2025-11-25\"");
    kit_end(&k);
}

static void a_server_may_choose_another(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = offering();
    kit_begin(&k, &options);
    kit_handshake_2025(&k, SERVER_2025);
    assert_int_equal(k.opened, 1);
    record *r = kit_call(&k, "t");
    kit_list_tools(&k);
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.task", "{}");
    kit_result(&k, call, MADE("T")); /* the draft's other members are ignored, its task id
                                      * counts */
    assert_int_equal(r->completed, 0);
    kit_end(&k);
}

static void a_server_that_refuses_it_is_asked_again(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = offering();
    kit_begin(&k, &options);
    const char *request = kit_expect(&k, "initialize");
    assert_at(request, "params.protocolVersion", "\"" DRAFT "\"");
    kit_error(&k, request, -32602, NULL);
    request = kit_expect(&k, "initialize");
    assert_at(request, "params.protocolVersion", "\"2025-11-25\"");
    kit_error(&k, request, -32602, NULL);
    assert_int_equal(k.closed_status, SEGUE_E_NEGOTIATION);
    kit_end(&k);
}

static void an_unknown_switch_is_refused(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = offering();
    kit_begin(&k, &options);
    options.dialects_on = SEGUE_DIALECT_TASKS;
    segue_session *other = NULL;
    assert_int_equal(
        segue_session_open(k.runtime, k.transport, &options, NULL, &other, NULL),
        SEGUE_E_INVALID);
    assert_null(other);
    kit_end(&k);
}

/* ---- until the result ---- */

static void a_task_is_followed_to_its_result(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    const char *get = look(&k);
    assert_at(get, "params.requestState", "");
    assert_at(get, "params.inputResponses", "");
    kit_result(&k, get, SEEN("T", "working"));
    end_well(&k, r, look(&k));
}

static void result_type_may_be_missing(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, "\"task\":{" HEAD("T", "working") "}");
    kit_result(&k, look(&k), HEAD("T", "working"));
    end_well(&k, r, look(&k));
}

static void plain_results_stay_plain(void **state)
{
    (void)state;
    kit k = {0};
    begin_session(&k);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"task\":7");
    assert_int_equal(r->status, SEGUE_OK);
    r = kit_start(&k, "tools/list", NULL, NULL);
    kit_result(&k, kit_expect(&k, "tools/list"), MADE("T"));
    assert_int_equal(r->status, SEGUE_E_PROTOCOL); /* it cannot be a task */
    r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), "\"resultType\":\"task\",\"task\":7");
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_end(&k);
}

static void failures_are_the_servers(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k),
               SEEN("T", "failed") ",\"error\":{\"code\":-32603,\"message\":\"No\"}");
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32603);
    kit_end(&k);
}

static void a_lost_task_is_lost(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_error(&k, look(&k), -32602, NULL);
    assert_int_equal(r->status, SEGUE_E_TASK_LOST);
    kit_end(&k);
}

/* ---- requestState ---- */

static void the_latest_state_goes_back(void **state)
{
    static const char *const odd[] = {"\"b\"", "\"\"", "\"\\u0000\\\"\\/\"",
                                      "\"\xf0\x9f\x98\x80 \\ud83d\\ude00\""};
    (void)state;
    kit k = {0};
    record *r = begin(&k, "\"resultType\":\"task\",\"task\":{" HEAD("T", "working")
                              STATE("\"a\"") "}");
    const char *get = look(&k);
    assert_at(get, "params.requestState", "\"a\"");
    for (size_t i = 0; i < 4; i++) {
        kit_result(&k, get, "%s" STATE("%s"), SEEN("T", "working"), odd[i]);
        get = look(&k);
        assert_at(get, "params.requestState", odd[i]);
    }
    kit_result(&k, get, SEEN("T", "working") STATE("\"b\""));
    kit_say(&k, STATUS(HEAD("T", "working") STATE("\"c\"")));
    get = look(&k);
    assert_at(get, "params.requestState", "\"c\"");
    kit_say(&k, STATUS(HEAD("T", "working"))); /* without a requestState: nothing is
                                                * cleared */
    /* requestState of another task */
    kit_say(&k, STATUS(HEAD("U", "working") STATE("\"u\"")));
    /* an error does not clear it either */
    kit_error(&k, get, -32603, NULL);
    get = look(&k);
    assert_at(get, "params.requestState", "\"c\"");
    kit_result(&k, get, SEEN("T", "working")); /* an answer without a requestState clears
                                                * it */
    get = look(&k);
    assert_at(get, "params.requestState", "");
    /* a value that is no string counts as none */
    kit_result(&k, get, SEEN("T", "working") STATE("7"));
    get = look(&k);
    assert_at(get, "params.requestState", "");
    end_well(&k, r, get);
}

static void a_cancel_takes_it_too(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), SEEN("T", "working") STATE("\"b\""));
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(&k);
    const char *cancel = kit_expect(&k, "tasks/cancel");
    assert_at(cancel, "params.requestState", "\"b\"");
    assert_int_equal(r->completed, 0);
    /* a second cancel is not sent */
    assert_int_equal(segue_request_cancel(r->request), SEGUE_OK);
    kit_run(&k);
    kit_expect_silence(&k);
    kit_result(&k, cancel, SEEN("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), SEEN("T", "working"));
    segue_request_cancel(r->request);
    kit_run(&k);
    assert_at(kit_expect(&k, "tasks/cancel"), "params.requestState", "");
    kit_end(&k);
}

/* Two polls of one handle, answered in reverse order: the answer that came last
 * counts. */
static void the_last_that_arrived_counts(void **state)
{
    (void)state;
    kit k = {0};
    segue_task *task;
    segue_request_events events;
    const char *gets[2];
    begin_session(&k);
    assert_int_equal(segue_task_attach(k.session, "T", &task, NULL), SEGUE_OK);
    for (int i = 0; i < 2; i++) {
        record *r = kit_record(&k, &events);
        assert_int_equal(segue_task_get(task, &events, &r->request), SEGUE_OK);
        kit_run(&k);
        gets[i] = kit_expect(&k, "tasks/get");
    }
    kit_result(&k, gets[1], SEEN("T", "working") STATE("\"b\""));
    kit_result(&k, gets[0], SEEN("T", "working") STATE("\"a\""));
    record *r = kit_record(&k, &events);
    assert_int_equal(segue_task_get(task, &events, &r->request), SEGUE_OK);
    kit_run(&k);
    assert_at(kit_expect(&k, "tasks/get"), "params.requestState", "\"a\"");
    segue_task_free(task);
    kit_end(&k);
}

static void a_handle_keeps_it(void **state)
{
    (void)state;
    kit k = {0};
    segue_task *task;
    segue_request_events events;
    begin_session(&k);
    assert_int_equal(segue_task_attach(k.session, "T", &task, NULL), SEGUE_OK);
    record *r = kit_record(&k, &events);
    assert_int_equal(segue_task_get(task, &events, &r->request), SEGUE_OK);
    kit_run(&k);
    const char *get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.requestState", "");
    kit_result(&k, get, SEEN("T", "working") STATE("\"h\""));
    assert_int_equal(r->status, SEGUE_OK);
    r = kit_record(&k, &events);
    assert_int_equal(segue_task_watch(task, NULL, &events, &r->request, NULL), SEGUE_OK);
    kit_run(&k);
    get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.requestState", "\"h\"");
    kit_result(&k, get, SEEN("T", "working") STATE("\"i\""));
    record *other = kit_record(&k, &events);
    assert_int_equal(segue_task_cancel(task, &events, &other->request), SEGUE_OK);
    kit_run(&k);
    const char *cancel = kit_expect(&k, "tasks/cancel");
    assert_at(cancel, "params.requestState", "\"i\"");
    kit_result(&k, cancel, SEEN("T", "cancelled"));
    assert_int_equal(other->status, SEGUE_OK);
    assert_int_equal(segue_task_get_state(task), SEGUE_TASK_CANCELLED);
    kit_result(&k, look(&k), SEEN("T", "cancelled"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    segue_task_free(task);
    kit_end(&k);
}

static void a_token_has_it(void **state)
{
    (void)state;
    kit k = {0};
    char token[4096];
    record *r = begin(&k, "\"resultType\":\"task\",\"task\":{" HEAD("T", "working")
                              STATE("\"\\u0000t\"") "}");
    snprintf(token, sizeof token, "%s", r->token);
    assert_true(token[0]);
    kit_end(&k);
    memset(&k, 0, sizeof k);
    begin_session(&k);
    r = kit_resume(&k, token, NULL);
    const char *get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.requestState", "\"\\u0000t\"");
    end_well(&k, r, get);
    memset(&k, 0, sizeof k);
    kit_begin_2025(&k, NULL, SERVER_2025); /* another version does not know the task */
    r = kit_resume(&k, token, NULL);
    kit_run(&k);
    assert_int_equal(r->status, SEGUE_E_NOT_RESUMABLE);
    kit_end(&k);
}

/* ---- members of the extension are ignored ---- */

static void states_of_the_extension_are_ignored(void **state)
{
    (void)state;
    kit k = {0};
    kit_begin_modern(&k, NULL, SERVER_TASKS);
    kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), CREATED("T") STATE("\"x\""));
    const char *get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.requestState", "");
    kit_result(&k, get, TASK("T", "working") STATE("\"x\""));
    assert_at(look(&k), "params.requestState", "");
    kit_end(&k);
}

/* ---- questions ---- */

static void answers_go_with_the_next_look(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), ASKS("T", QUESTION("k1") "," QUESTION("k2")) STATE("\"s\""));
    answer(r, "k1", YES);
    const char *get = kit_expect(&k, "tasks/get"); /* sent at once */
    assert_at(get, "params.inputResponses", "{\"k1\":" YES "}");
    assert_at(get, "params.requestState", "\"s\"");
    answer(r, "k2", "{\"action\":\"decline\"}"); /* waits for the answer to that
                                                  * request */
    kit_expect_silence(&k);
    kit_result(&k, get, ASKS("T", QUESTION("k2")));
    get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.inputResponses", "{\"k2\":{\"action\":\"decline\"}}");
    kit_result(&k, get, SEEN("T", "working"));
    get = look(&k);
    assert_at(get, "params.inputResponses", ""); /* no answer is sent twice */
    assert_string_equal(r->last_key, "k2");
    end_well(&k, r, get);
}

static void answers_go_again_when_they_were_lost(void **state)
{
    (void)state;
    kit k = {.can_reopen = 1};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), ASKS("T", QUESTION("k")));
    answer(r, "k", YES);
    assert_at(kit_expect(&k, "tasks/get"), "params.inputResponses", "{\"k\":" YES "}");
    kit_cut(&k);
    shake_hands(&k);
    const char *get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.inputResponses", "{\"k\":" YES "}");
    kit_error(&k, get, -32603, NULL);
    get = look(&k);
    assert_at(get, "params.inputResponses", "{\"k\":" YES "}");
    kit_result(&k, get, SEEN("T", "working"));
    end_well(&k, r, look(&k));
}

/* -32602 may mean the answer or the task: a tasks/get without answers decides. */
static void a_refused_answer_is_asked_for_anew(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), ASKS("T", QUESTION("k")));
    answer(r, "k", "{\"action\":\"accept\",\"content\":{\"x\":1}}");
    kit_error(&k, kit_expect(&k, "tasks/get"), -32602, NULL);
    const char *get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.inputResponses", "");
    kit_result(&k, get, ASKS("T", QUESTION("k")));
    answer(r, "k", YES);
    get = kit_expect(&k, "tasks/get");
    assert_at(get, "params.inputResponses", "{\"k\":" YES "}");
    kit_error(&k, get, -32602, NULL);
    kit_error(&k, kit_expect(&k, "tasks/get"), -32602, NULL);
    assert_int_equal(r->status, SEGUE_E_TASK_LOST);
    kit_end(&k);
}

static void a_round_has_its_older_name(void **state)
{
    (void)state;
    kit k = {0};
    begin_session(&k);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"),
               "\"resultType\":\"incomplete\",\"inputRequests\":{" QUESTION(
                   "k") "},\"requestState\":\"round\"");
    answer(r, "k", YES);
    const char *call = kit_expect(&k, "tools/call");
    assert_at(call, "params.inputResponses", "{\"k\":" YES "}");
    assert_at(call, "params.requestState", "\"round\"");
    kit_result(&k, call, MADE("T")); /* the state of a round is not that of the task
                                      * (C-16) */
    const char *get = look(&k);
    assert_at(get, "params.requestState", "");
    end_well(&k, r, get);
}

/* An application that always gives the same answer does not flood the server. */
static void many_refused_answers_are_too_many(void **state)
{
    (void)state;
    kit k = {.quiet = 1};
    record *r = begin(&k, MADE("T"));
    const char *get = look(&k);
    int64_t begun = k.clock_ms;
    int asked = 0;
    while (!r->completed && asked < 100) {
        kit_result(&k, get, ASKS("T", QUESTION("k")));
        assert_int_equal(record_answer(r, "k", YES), SEGUE_OK);
        asked++;
        while ((get = kit_heard(&k)) == NULL || !*json_at(get, "params.inputResponses")) {
            if (get)
                kit_result(&k, get, ASKS("T", QUESTION("k")));
            kit_advance(&k, 100);
        }
        kit_error(&k, get, -32602, NULL);
        get = kit_heard(&k);
    }
    assert_int_equal(r->status, SEGUE_E_REMOTE);
    assert_int_equal(r->rpc_code, -32602);
    assert_non_null(strstr(r->message, "(max_reconnects: 20)"));
    assert_int_equal(asked, 21);
    assert_true(k.clock_ms - begun > 60000);
    kit_end(&k);
}

/* ---- notifications of the server ---- */

static void news_makes_the_client_look(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    const char *late = look(&k);
    kit_say(&k, STATUS(HEAD("T", "completed")));
    kit_expect_silence(&k); /* a poll is under way */
    kit_result(&k, late, SEEN("T", "working"));
    const char *get = kit_expect(&k, "tasks/get");
    assert_non_null(strstr(r->log, "completed"));
    /* that status was older */
    assert_null(strstr(strstr(r->log, "completed"), "working"));
    end_well(&k, r, get);
}

/* A server whose store fails reports that the task has failed, and another server
 * continues the task. The end stays the end, so the client gives up. */
static void an_end_that_is_contradicted_ends_the_request(void **state)
{
    (void)state;
    kit k = {0};
    segue_session_options options = offering();
    options.max_reconnects = 3;
    kit_begin(&k, &options);
    shake_hands(&k);
    record *r = kit_call(&k, "t");
    kit_result(&k, kit_expect(&k, "tools/call"), "%s", MADE("T"));
    kit_say(&k, STATUS(HEAD("T", "failed")));
    /* the first poll is older than the notification */
    for (int i = 0; i < 2; i++)
        kit_result(&k, kit_expect(&k, "tasks/get"), ASKS("T", QUESTION("k")));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r->completed, 0);
        kit_result(&k, look(&k), ASKS("T", QUESTION("k")));
    }
    assert_int_equal(r->completed, 1);
    assert_int_equal(r->status, SEGUE_E_PROTOCOL);
    kit_advance(&k, 5000);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* The server reports an end and dies before the end is stored. The next server runs the
 * task again, and the task ends in another way. */
static void an_end_that_was_lost_is_not_waited_for(void **state)
{
    static const char *const ends[] = {
        SEEN("T", "completed") "," RESULT,
        SEEN("T", "failed") ",\"error\":{\"code\":-32603,\"message\":\"torn\"}"};
    (void)state;
    for (int failed = 0; failed < 2; failed++) {
        kit k = {0};
        record *r = begin(&k, MADE("T"));
        kit_result(&k, look(&k), SEEN("T", "working"));
        kit_say(&k,
                failed ? STATUS(HEAD("T", "completed")) : STATUS(HEAD("T", "failed")));
        kit_result(&k, kit_expect(&k, "tasks/get"), ASKS("T", QUESTION("k")));
        answer(r, "k", YES);
        kit_run(&k);
        const char *get = kit_expect(&k, "tasks/get");
        assert_at(get, "params.inputResponses.k.action", "\"accept\"");
        kit_result(&k, get, SEEN("T", "working"));
        kit_result(&k, look(&k), "%s", ends[failed]);
        assert_int_equal(r->status, failed ? SEGUE_E_REMOTE : SEGUE_OK);
        kit_end(&k);
    }
}

static void news_of_a_question_makes_it_look(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), SEEN("T", "working"));
    kit_say(&k,
            STATUS("\"taskId\":\"T\",\"status\":\"input_required\"," STAMPED_AT("05")));
    kit_result(&k, kit_expect(&k, "tasks/get"), ASKS("T", QUESTION("k")));
    (void)r;
    kit_say(&k, STATUS(HEAD("T", "working"))); /* older than the known status */
    kit_expect_silence(&k);
    kit_end(&k);
}

static void progress_goes_on(void **state)
{
    (void)state;
    kit k = {0};
    begin_session(&k);
    record *r = kit_call(&k, "t");
    const char *call = kit_expect(&k, "tools/call");
    const char *token = json_at(call, "params._meta.progressToken");
    kit_result(&k, call, MADE("T"));
    kit_say(&k,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
            "\"progressToken\":%s,\"progress\":1}}",
            token);
    assert_non_null(strstr(r->log, "progress"));
    kit_end(&k);
}

/* ---- cancel ---- */

static void a_refused_cancel_is_looked_into(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), SEEN("T", "working"));
    segue_request_cancel(r->request);
    kit_run(&k);
    kit_error(&k, kit_expect(&k, "tasks/cancel"), -32602, NULL);
    end_well(&k, r, kit_expect(&k, "tasks/get"));
}

static void a_wish_that_is_not_granted_ends_the_request(void **state)
{
    (void)state;
    kit k = {0};
    record *r = begin(&k, MADE("T"));
    kit_result(&k, look(&k), SEEN("T", "working"));
    segue_request_cancel(r->request);
    kit_run(&k);
    kit_result(&k, kit_expect(&k, "tasks/cancel"), SEEN("T", "working"));
    assert_int_equal(r->status, SEGUE_E_CANCELLED);
    kit_advance(&k, 5000);
    kit_expect_silence(&k);
    kit_end(&k);
}

/* ---- spellings of numbers in other drafts ---- */

/* Polls by the interval, and gives up when the time to live is over and the server does
 * not answer: this shows both numbers. ttl_ms 0: no time to live. */
static void assert_times(kit *k, record *r, int64_t poll_ms, int64_t ttl_ms)
{
    int64_t begun = k->clock_ms;
    int64_t patience = ttl_ms ? ttl_ms + 31000 : 300000;
    const char *get = kit_expect(k, "tasks/get");
    kit_result(k, get, "\"taskId\":\"T\",\"status\":\"working\"");
    kit_advance(k, poll_ms * 8 / 10);
    kit_expect_silence(k);
    kit_advance(k, poll_ms * 4 / 10);
    get = kit_expect(k, "tasks/get");
    while (!r->completed && k->clock_ms - begun < patience) {
        if (get)
            kit_error(k, get, -32603, NULL);
        if (!r->completed)
            kit_advance(k, 500);
        get = kit_heard(k);
    }
    assert_int_equal(r->completed, ttl_ms != 0);
    assert_true(k->clock_ms - begun >= ttl_ms);
    if (ttl_ms)
        assert_int_equal(r->status, SEGUE_E_TASK_LOST);
}

#define NUMBERS(members)                                                                 \
    "\"resultType\":\"task\",\"task\":{\"taskId\":\"T\",\"status\":\"working\","         \
    "\"createdAt\":\"2026-01-01T00:00:00Z\",\"lastUpdatedAt\":"                          \
    "\"2026-01-01T00:00:00Z\"," members "}"

static void times_are_read_by_their_names(void **state)
{
    static const struct {
        const char *created;
        int64_t poll_ms, ttl_ms;
        int modern;
    } spellings[] = {
        {NUMBERS("\"ttlSeconds\":60,\"pollIntervalMilliseconds\":500"), 500, 60000, 0},
        {NUMBERS("\"ttlSeconds\":60,\"pollIntervalMilliseconds\":500"), 500, 60000, 1},
        {NUMBERS("\"ttlMs\":60000,\"pollIntervalMs\":500"), 500, 60000, 0},
        {NUMBERS("\"ttlMs\":60000,\"pollIntervalMs\":500"), 500, 60000, 1},
        {NUMBERS("\"ttl\":60,\"pollInterval\":2000"), 2000, 60000, 0},
        {NUMBERS("\"ttl\":null,\"pollInterval\":2000"), 2000, 0, 0},
        {NUMBERS("\"ttl\":9223372036854775807"), 1000, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        kit k = {0};
        if (spellings[i].modern)
            kit_begin_modern(&k, NULL, SERVER_TASKS);
        else
            begin_session(&k);
        record *r = kit_call(&k, "t");
        kit_result(&k, kit_expect(&k, "tools/call"), "%s", spellings[i].created);
        assert_times(&k, r, spellings[i].poll_ms, spellings[i].ttl_ms);
        kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_a_later_round_are_not_shown_again),
        cmocka_unit_test(it_is_offered_only_when_switched_on),
        cmocka_unit_test(a_server_may_choose_another),
        cmocka_unit_test(a_server_that_refuses_it_is_asked_again),
        cmocka_unit_test(an_unknown_switch_is_refused),
        cmocka_unit_test(a_task_is_followed_to_its_result),
        cmocka_unit_test(result_type_may_be_missing),
        cmocka_unit_test(plain_results_stay_plain),
        cmocka_unit_test(failures_are_the_servers),
        cmocka_unit_test(a_lost_task_is_lost),
        NAMED("AS-51 the latest requestState goes back, byte by byte",
              the_latest_state_goes_back),
        NAMED("AS-51 tasks/cancel takes the requestState too", a_cancel_takes_it_too),
        NAMED("AS-52 the requestState that arrived last counts",
              the_last_that_arrived_counts),
        cmocka_unit_test(a_handle_keeps_it),
        cmocka_unit_test(a_token_has_it),
        NAMED("AS-53 requestState of the extension is ignored",
              states_of_the_extension_are_ignored),
        NAMED("AS-45 answers go with tasks/get, each once",
              answers_go_with_the_next_look),
        cmocka_unit_test(answers_go_again_when_they_were_lost),
        cmocka_unit_test(a_refused_answer_is_asked_for_anew),
        cmocka_unit_test(a_round_has_its_older_name),
        cmocka_unit_test(many_refused_answers_are_too_many),
        NAMED("AS-69 an end that was reported stays the end", news_makes_the_client_look),
        NAMED("R-2557-47 an end that is contradicted ends the request",
              an_end_that_is_contradicted_ends_the_request),
        NAMED("AS-69 an end that was lost is not waited for",
              an_end_that_was_lost_is_not_waited_for),
        cmocka_unit_test(news_of_a_question_makes_it_look),
        cmocka_unit_test(a_later_log_level_holds_for_further_rounds),
        cmocka_unit_test(progress_goes_on),
        NAMED("AS-54 a refused cancel is followed by tasks/get",
              a_refused_cancel_is_looked_into),
        NAMED("AS-56 a cancel that is not granted ends the request",
              a_wish_that_is_not_granted_ends_the_request),
        NAMED("AS-77 times are read by their names", times_are_read_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
