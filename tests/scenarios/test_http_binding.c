/* An operation, a session and a stream belong to their creator (2025-11-25 basic,
 * security: "MUST bind"; R-0-5). With another principal's token each of their handles is
 * answered like an unknown one, byte for byte. With another token of the same principal
 * it works. Streams do not outlive the token that opened them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/bearer_kit.h"

#define NOBODYS "AAAAAAAAAAAAAAAAAAAAAA"
#define CAPS "{\"elicitation\":{},\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

typedef struct scene {
    bearer_kit k;
    http_caller c;
    char *ada, *ada_again, *bob, *evil;
} scene;

static void begin(scene *s)
{
    s->k.s.listen.keepalive_ms = 100000000;
    bearer_kit_begin(&s->k);
    http_caller_open(&s->k.s, &s->c);
    s->ada = bearer_token(&s->k, "ada", "", 600);
    s->ada_again = bearer_token(&s->k, "ada", "more", 900);
    s->bob = bearer_token(&s->k, "bob", "", 600);
    s->evil = bearer_token(&s->k, "ada ada", "", 600);
}

static void free_tokens(scene *s)
{
    free(s->ada);
    free(s->ada_again);
    free(s->bob);
    free(s->evil);
}

static void end(scene *s)
{
    free_tokens(s);
    http_caller_close(&s->c);
    bearer_kit_end(&s->k);
}

static void take_text(const char *body, const char *member, char value[512])
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":\"", member);
    const char *at = strstr(body, key);
    if (!at)
        fail_msg("no %s in %s", member, body);
    assert_int_equal(sscanf(at + strlen(key), "%511[^\"]", value), 1);
}

/* Returns the answer to a request with this token, after replacing the handle and the
 * token in it. */
static char *answer(scene *s, char *request, const char *token)
{
    http_reply reply;
    request = bearer_with(request, token);
    http_caller_say(&s->c, request);
    free(request);
    http_caller_read(&s->c, &reply);
    char *text = malloc(reply.body_len + 32);
    sprintf(text, "%d %s", reply.status, reply.body ? reply.body : "(a stream)");
    http_reply_free(&reply);
    return text;
}

/* ---- 2026-07-28 ---- */

static char *about(const char *method, const char *task)
{
    char params[640];
    snprintf(params, sizeof params, "\"taskId\":\"%s\"%s", task,
             strcmp(method, "tasks/update") ? "" : ",\"inputResponses\":{}");
    return http_request("2", method, task, params, CAPS);
}

static void make_task(scene *s, const char *token, char task[512])
{
    http_reply reply;
    bearer_ask(&s->c,
               http_request("1", "tools/call", "hang",
                            "\"name\":\"hang\",\"arguments\":{}", CAPS),
               token, 200, &reply);
    take_text(reply.body, "taskId", task);
    http_reply_free(&reply);
}

static void tasks_belong_to_the_subject(void **state)
{
    static const char *const methods[] = {"tasks/get", "tasks/update", "tasks/cancel",
                                          "tasks/stream"};
    scene s = {0};
    char task[512];
    (void)state;
    begin(&s);
    make_task(&s, s.ada, task);
    for (size_t i = 0; i < 4; i++) {
        char *unknown = answer(&s, about(methods[i], NOBODYS), s.ada);
        char *foreign = answer(&s, about(methods[i], task), s.bob);
        char *similar = answer(&s, about(methods[i], task), s.evil);
        assert_non_null(strstr(unknown, "-32602"));
        assert_string_equal(foreign, unknown);
        assert_string_equal(similar, unknown);
        free(unknown);
        free(foreign);
        free(similar);
    }
    char *mine = answer(&s, about("tasks/get", task), s.ada_again);
    assert_non_null(strstr(mine, "\"status\":\"working\""));
    free(mine);
    end(&s);
}

static void subscriptions_leave_foreign_tasks_out(void **state)
{
    scene s = {0};
    http_reply reply;
    char task[512], params[1100];
    (void)state;
    begin(&s);
    make_task(&s, s.ada, task);
    snprintf(params, sizeof params, "\"notifications\":{\"taskIds\":[\"%s\"]}", task);
    char *request =
        bearer_with(http_request("2", "subscriptions/listen", NULL, params, CAPS), s.bob);
    http_caller_say(&s.c, request);
    free(request);
    http_caller_read(&s.c, &reply);
    assert_int_equal(reply.status, 200);
    char *event = http_caller_event(&s.c);
    assert_null(strstr(event, task));
    free(event);
    http_reply_free(&reply);
    end(&s);
}

static void request_states_belong_to_the_subject(void **state)
{
    static const char ask[] = "\"name\":\"ask_once\",\"arguments\":{}";
    scene s = {0};
    http_reply reply;
    char round[512], params[1024], wrong[1024];
    (void)state;
    begin(&s);
    bearer_ask(&s.c, http_request("1", "tools/call", "ask_once", ask, CAPS), s.ada, 200,
               &reply);
    take_text(reply.body, "requestState", round);
    http_reply_free(&reply);
    snprintf(params, sizeof params,
             "%s,\"requestState\":\"%s\",\"inputResponses\":{\"input-1\":{\"action\":"
             "\"accept\",\"content\":{\"confirm\":true}}}",
             ask, round);
    snprintf(wrong, sizeof wrong, "%s,\"requestState\":\"" NOBODYS "\"", ask);
    char *unknown =
        answer(&s, http_request("2", "tools/call", "ask_once", wrong, CAPS), s.ada);
    char *foreign =
        answer(&s, http_request("2", "tools/call", "ask_once", params, CAPS), s.bob);
    assert_non_null(strstr(unknown, "-32602"));
    assert_string_equal(foreign, unknown);
    free(unknown);
    free(foreign);
    bearer_ask(&s.c, http_request("3", "tools/call", "ask_once", params, CAPS),
               s.ada_again, 200, &reply);
    assert_non_null(strstr(reply.body, "\"resultType\":\"complete\""));
    http_reply_free(&reply);
    end(&s);
}

/* ---- the handshake eras ---- */

static void begin_session(scene *s, const char *token, char lines[256])
{
    http_reply reply;
    bearer_ask(&s->c,
               http_post("", "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\","
                             "\"params\":{\"protocolVersion\":\"2025-11-25\","
                             "\"capabilities\":{},\"clientInfo\":{\"name\":\"a\","
                             "\"version\":\"1\"}}}"),
               token, 200, &reply);
    snprintf(lines, 256, "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    assert_non_null(
        strstr(reply.body, "\"tasks\":{\"list\":{}")); /* callers have names */
    http_reply_free(&reply);
}

static char *bare(const char *method, const char *lines, const char *more)
{
    char *request = malloc(1024);
    snprintf(request, 1024, "%s /mcp HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n", method,
             lines, more);
    return request;
}

#define ANOTHER "Mcp-Session-Id: nobodys\r\nMCP-Protocol-Version: 2025-11-25\r\n"

static void sessions_belong_to_the_subject(void **state)
{
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}";
    static const char note[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}";
    scene s = {0};
    char lines[256];
    (void)state;
    begin(&s);
    begin_session(&s, s.ada, lines);
    for (int foreign = 0; foreign < 2; foreign++) {
        const char *named = foreign ? lines : ANOTHER;
        const char *token = foreign ? s.bob : s.ada;
        char *requests[] = {http_post(named, list), http_post(named, note),
                            bare("GET", named, ""), bare("DELETE", named, ""),
                            bare("GET", named, "Last-Event-ID: 1-1\r\n")};
        for (size_t i = 0; i < 5; i++) {
            char *text = answer(&s, requests[i], token);
            assert_memory_equal(text, "404 ", 4);
            assert_non_null(strstr(text, "Unknown session: Mcp-Session-Id is not known "
                                         "here, or its session has ended"));
            free(text);
        }
    }
    bearer_ask(&s.c, http_post(lines, list), s.ada_again, 200, NULL);
    bearer_ask(&s.c, bare("DELETE", lines, ""), s.ada_again, 204, NULL);
    end(&s);
}

/* Streamed events are not given to another principal who knows the session and an event
 * id. */
static void events_belong_to_the_subject(void **state)
{
    static const char call[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\","
                               "\"params\":{\"name\":\"slow_compute\",\"arguments\":{"
                               "\"ms\":5000}}}";
    scene s = {0};
    http_caller later;
    http_reply reply;
    char lines[256], id[64], last[128];
    (void)state;
    begin(&s);
    begin_session(&s, s.ada, lines);
    char *request = bearer_with(http_post(lines, call), s.ada);
    http_caller_say(&s.c, request);
    free(request);
    http_stage_advance(&s.k.s, 300);
    http_caller_read(&s.c, &reply);
    char *event = http_caller_event(&s.c);
    const char *at = strstr(event, "id: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "id: %63s", id), 1);
    snprintf(last, sizeof last, "Last-Event-ID: %s\r\n", id);
    free(event);
    http_reply_free(&reply);
    http_caller_reset(&s.c);
    http_stage_run(&s.k.s);
    http_caller_open(&s.k.s, &s.c);
    bearer_ask(&s.c, bare("GET", lines, last), s.bob, 404, NULL);
    http_stage_advance(&s.k.s, 6000);
    http_caller_open(&s.k.s, &later);
    request = bearer_with(bare("GET", lines, last), s.ada_again);
    http_caller_say(&later, request);
    free(request);
    http_caller_read(&later, &reply);
    assert_int_equal(reply.status, 200);
    event = http_caller_event(&later);
    assert_non_null(strstr(event, "\"id\":7"));
    free(event);
    http_reply_free(&reply);
    http_caller_close(&later);
    end(&s);
}

static void legacy_tasks_belong_to_the_subject(void **state)
{
    static const char *const methods[] = {"tasks/get", "tasks/result", "tasks/cancel"};
    scene s = {0};
    http_reply reply;
    char ada[256], bob[256], task[512], body[1024];
    (void)state;
    begin(&s);
    begin_session(&s, s.ada, ada);
    begin_session(&s, s.bob, bob);
    bearer_ask(&s.c,
               http_post(ada, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                              "\"params\":{\"name\":\"hang\",\"task\":{}}}"),
               s.ada, 200, &reply);
    take_text(reply.body, "taskId", task);
    http_reply_free(&reply);
    for (size_t i = 0; i < 3; i++) {
        char *texts[2];
        for (int foreign = 0; foreign < 2; foreign++) {
            snprintf(body, sizeof body,
                     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"%s\",\"params\":{"
                     "\"taskId\":\"%s\"}}",
                     methods[i], foreign ? task : NOBODYS);
            texts[foreign] =
                answer(&s, http_post(foreign ? bob : ada, body), foreign ? s.bob : s.ada);
        }
        assert_non_null(strstr(texts[0], "-32602"));
        assert_string_equal(texts[1], texts[0]);
        free(texts[0]);
        free(texts[1]);
    }
    static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tasks/list\"}";
    char *theirs = answer(&s, http_post(bob, list), s.bob);
    char *own = answer(&s, http_post(ada, list), s.ada_again);
    assert_null(strstr(theirs, task));
    assert_non_null(strstr(own, task));
    free(theirs);
    free(own);
    end(&s);
}

/* ---- after a crash ---- */

static char seen[128];

static void let_go(void *user, segue_call *call)
{
    (void)user;
    segue_call_free(call);
}

/* Notes the caller, as far as the handler knows it. */
static void note_caller(void *user, segue_call *call)
{
    (void)user;
    snprintf(seen, sizeof seen, "[%s] read:%d write:%d", segue_call_principal(call),
             segue_call_has_scope(call, "read"), segue_call_has_scope(call, "write"));
    segue_call_events events = SEGUE_CALL_EVENTS_INIT;
    events.on_cancel = let_go;
    segue_call_watch(call, &events);
}

static void add_noting(segue_server *server)
{
    static const char tool[] = "{\"name\":\"note\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = note_caller;
    options.flags = SEGUE_TOOL_RESTARTABLE;
    options.task = SEGUE_TASK_MUST;
    options.scopes = "read";
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &options, NULL),
        SEGUE_OK);
}

/* The next run has the permissions and the principal of the first. */
static void a_task_remembers_its_caller(void **state)
{
    scene s = {0};
    segue_store *store;
    char task[512];
    http_reply reply;
    (void)state;
    assert_int_equal(segue_store_memory(NULL, &store), SEGUE_OK);
    for (int run = 0; run < 2; run++) {
        s = (scene){.k = {.s = {.store = store, .add = add_noting}}};
        *seen = 0;
        begin(&s);
        char *reader = bearer_token(&s.k, "ada", "read", 600);
        if (!run) {
            bearer_ask(&s.c,
                       http_request("1", "tools/call", "note",
                                    "\"name\":\"note\",\"arguments\":{}", CAPS),
                       reader, 200, &reply);
            take_text(reply.body, "taskId", task);
            http_reply_free(&reply);
        }
        http_stage_run(&s.k.s);
        assert_string_equal(seen, "[" KIT_ISSUER " ada] read:1 write:0");
        char *foreign = answer(&s, about("tasks/get", task), s.bob);
        char *mine = answer(&s, about("tasks/get", task), s.ada_again);
        assert_non_null(strstr(foreign, "-32602"));
        assert_non_null(strstr(mine, "\"status\":\"working\""));
        free(foreign);
        free(mine);
        free(reader);
        end(&s); /* the stage ends while the handler works */
    }
    segue_store_free(store);
}

/* ---- the end of a token ---- */

static void expect_stream(http_caller *c, char *request, const char *token)
{
    http_reply reply;
    request = bearer_with(request, token);
    http_caller_say(c, request);
    free(request);
    http_caller_read(c, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(http_reply_header(&reply, "Content-Type"), "text/event-stream");
    http_reply_free(&reply);
}

/* The time includes the leeway. The session stays, and a request with the next token
 * resumes. */
static void streams_end_with_their_token(void **state)
{
    scene s = {0};
    http_caller modern;
    char lines[256];
    (void)state;
    begin(&s);
    begin_session(&s, s.ada, lines);
    http_caller_open(&s.k.s, &modern);
    expect_stream(&s.c, bare("GET", lines, ""), s.ada);
    expect_stream(&modern,
                  http_request("2", "subscriptions/listen", NULL,
                               "\"notifications\":{\"toolsListChanged\":true}", CAPS),
                  s.ada);
    free(http_caller_event(&s.c)); /* skips the event with the retry time */
    free(http_caller_event(&modern));
    http_stage_advance(&s.k.s, 628000);
    http_caller_quiet(&s.c);
    http_caller_quiet(&modern);
    http_stage_advance(&s.k.s, 2000);
    assert_null(http_caller_event(&s.c));
    http_caller_until_closed(&s.c);
    assert_null(http_caller_event(&modern));
    http_caller_until_closed(&modern);
    http_caller_close(&modern);
    http_caller_close(&s.c);
    http_caller_open(&s.k.s, &s.c);
    bearer_ask(&s.c, bare("GET", lines, ""), s.ada, 401, NULL);
    expect_stream(&s.c, bare("GET", lines, ""), s.ada_again);
    end(&s);
}

/* A call is not cut off at its token's end: its client was accepted, and nothing would be
 * left to resume. */
static void a_call_outlives_its_token(void **state)
{
    scene s = {0};
    (void)state;
    begin(&s);
    http_caller_close(&s.c);
    http_stage_advance(&s.k.s, 590000);
    http_caller_open(&s.k.s, &s.c);
    char *request = bearer_with(http_call("1", "slow_compute", "{\"ms\":100000}"), s.ada);
    http_caller_say(&s.c, request);
    free(request);
    http_stage_advance(&s.k.s, 110000);
    http_reply reply;
    http_caller_read(&s.c, &reply);
    assert_int_equal(reply.status, 200);
    http_reply_free(&reply);
    char *event = http_caller_event(&s.c);
    assert_non_null(strstr(event, "\"id\":1"));
    free(event);
    assert_null(http_caller_event(&s.c));
    bearer_ask(&s.c, http_call("2", "greet", "{\"name\":\"x\"}"), s.ada, 401, NULL);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_belong_to_the_subject),
        cmocka_unit_test(subscriptions_leave_foreign_tasks_out),
        cmocka_unit_test(request_states_belong_to_the_subject),
        cmocka_unit_test(sessions_belong_to_the_subject),
        cmocka_unit_test(events_belong_to_the_subject),
        cmocka_unit_test(legacy_tasks_belong_to_the_subject),
        cmocka_unit_test(a_task_remembers_its_caller),
        cmocka_unit_test(streams_end_with_their_token),
        cmocka_unit_test(a_call_outlives_its_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
