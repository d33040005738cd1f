/* Scopes over HTTP: scopes for all requests, scopes of an item, in each era; the step up
 * (2026-07-28 basic/authorization, "Scope Challenge Handling"); and what a handler sees
 * of its caller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/bearer_kit.h"

#define WHERE "resource_metadata=\"" KIT_METADATA "\""
#define LACKING(scopes)                                                                  \
    "Bearer error=\"insufficient_scope\", error_description=\"The access token "         \
    "lacks a required scope\", scope=\"" scopes "\", " WHERE

static void expect_challenge(const http_reply *reply, const char *challenge)
{
    const char *found = http_reply_header(reply, "WWW-Authenticate");
    if (strcmp(found, challenge) != 0)
        fail_msg("%s\ninstead of\n%s", found, challenge);
}

static int runs;

/* Gives the caller's name, and which of these scopes the caller has. */
static void tell_caller(void *user, segue_call *call)
{
    char text[256];
    (void)user;
    runs++;
    snprintf(text, sizeof text, "[%s] read:%d write:%d", segue_call_principal(call),
             segue_call_has_scope(call, "read"), segue_call_has_scope(call, "write"));
    if (strcmp(segue_call_method(call), "tools/call") == 0)
        segue_call_send_text(call, text, strlen(text), NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void complete_argument(void *user, segue_call *call)
{
    runs++;
    (void)user;
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add(segue_server *server, int32_t type, const char *json, const char *scopes,
                bool completes)
{
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = tell_caller;
    options.scopes = scopes;
    if (completes)
        options.on_completion = complete_argument;
    assert_int_equal(segue_server_add(server, type, json, strlen(json), &options, NULL),
                     SEGUE_OK);
}

static void add_items(segue_server *server)
{
    char scopes[] = "read write"; /* the item has its own copy */
    add(server, SEGUE_ITEM_TOOL, "{\"name\":\"who\"}", NULL, false);
    add(server, SEGUE_ITEM_TOOL, "{\"name\":\"write\"}", scopes, false);
    memset(scopes, 'x', sizeof scopes - 1);
    add(server, SEGUE_ITEM_RESOURCE, "{\"uri\":\"x://y\",\"name\":\"y\"}", "read", false);
    add(server, SEGUE_ITEM_RESOURCE_TEMPLATE,
        "{\"uriTemplate\":\"z://{a}\",\"name\":\"z\"}", "read", true);
    add(server, SEGUE_ITEM_PROMPT, "{\"name\":\"p\"}", "read", true);
    runs = 0;
}

/* ---- scopes for all requests ---- */

static void required_scopes_are_for_everything(void **state)
{
    bearer_kit k = {.options = {.required_scopes = "mcp base",
                                .implied_scopes = "admin mcp\nmcp base"}};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    char *none = bearer_token(&k, "ada", "other", 600);
    char *some = bearer_token(&k, "ada", "base", 600);
    char *all = bearer_token(&k, "ada", "base mcp", 600);
    char *broad = bearer_token(&k, "ada", "admin", 600);
    char *request = http_request("1", "server/discover", NULL, NULL, NULL);
    bearer_ask(&c, strdup(request), none, 403, &reply);
    expect_challenge(&reply, LACKING("mcp base"));
    http_reply_free(&reply);
    bearer_ask(&c, strdup(request), some, 403, NULL);
    /* the same from the remembered token */
    bearer_ask(&c, strdup(request), some, 403, NULL);
    bearer_ask(&c, strdup(request), all, 200, NULL);
    bearer_ask(&c, strdup(request), broad, 200, NULL);
    free(request);
    free(none);
    free(some);
    free(all);
    free(broad);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* ---- scopes of an item ---- */

static const struct {
    const char *method, *name, *params, *needs;
} asks[] = {
    {"tools/call", "write", "\"name\":\"write\"", "mcp read write"},
    {"resources/read", "x://y", "\"uri\":\"x://y\"", "mcp read"},
    {"resources/read", "z://1", "\"uri\":\"z://1\"", "mcp read"},
    {"prompts/get", "p", "\"name\":\"p\"", "mcp read"},
    {"completion/complete", NULL,
     "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"p\"},\"argument\":{\"name\":\"a\","
     "\"value\":\"\"}",
     "mcp read"},
    {"completion/complete", NULL,
     "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"z://"
     "{a}\"},\"argument\":{\"name\":\"a\","
     "\"value\":\"\"}",
     "mcp read"},
};
#define ASKS (sizeof asks / sizeof *asks)

static void expect_lacking(const http_reply *reply, const char *needs)
{
    char challenge[512], data[256];
    snprintf(challenge, sizeof challenge, LACKING("%s"), needs);
    expect_challenge(reply, challenge);
    snprintf(data, sizeof data,
             "\"data\":{\"reason\":\"insufficient_scope\",\"scope\":\"%s\"}",
             needs + 4); /* every caller has "mcp " */
    if (!strstr(reply->body, data) || !strstr(reply->body, "\"id\":1"))
        fail_msg("%s", reply->body);
}

/* Without the scopes the answer is 403, and the handler has not run; with them it
 * runs. */
static void an_item_has_scopes_of_its_own(void **state)
{
    bearer_kit k = {.options = {.required_scopes = "mcp"}};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    add_items(k.s.server);
    http_caller_open(&k.s, &c);
    char *less = bearer_token(&k, "ada", "mcp", 600);
    char *more = bearer_token(&k, "ada", "mcp read write", 600);
    for (size_t i = 0; i < ASKS; i++) {
        char *request =
            http_request("1", asks[i].method, asks[i].name, asks[i].params, NULL);
        bearer_ask(&c, strdup(request), less, 403, &reply);
        expect_lacking(&reply, asks[i].needs);
        http_reply_free(&reply);
        assert_int_equal(runs, 0);
        bearer_ask(&c, request, more, 200, &reply);
        assert_null(strstr(reply.body, "\"error\""));
        http_reply_free(&reply);
        assert_int_equal(runs, 1);
        runs = 0;
    }
    /* Every caller sees that the tool exists. */
    bearer_ask(&c, http_request("2", "tools/list", NULL, NULL, NULL), less, 200, &reply);
    assert_non_null(strstr(reply.body, "\"name\":\"write\""));
    http_reply_free(&reply);
    free(less);
    free(more);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

static void begin_session(http_caller *c, const char *version, const char *token,
                          char lines[256])
{
    char body[256];
    http_reply reply;
    snprintf(body, sizeof body,
             "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
             "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{"
             "\"name\":\"a\",\"version\":\"1\"}}}",
             version);
    bearer_ask(c, http_post("", body), token, 200, &reply);
    snprintf(lines, 256, "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: %s\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"), version);
    http_reply_free(&reply);
}

/* The same in a session, which goes on with the token that grants more. */
static void the_handshake_eras_have_403_too(void **state)
{
    static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26"};
    bearer_kit k = {.options = {.required_scopes = "mcp"}};
    http_reply reply;
    char lines[256], body[512];
    (void)state;
    bearer_kit_begin(&k);
    add_items(k.s.server);
    char *less = bearer_token(&k, "ada", "mcp", 600);
    char *more = bearer_token(&k, "ada", "mcp read write", 600);
    for (size_t v = 0; v < 3; v++) {
        http_caller c;
        http_caller_open(&k.s, &c);
        begin_session(&c, versions[v], less, lines);
        for (size_t i = 0; i < ASKS; i++) {
            snprintf(body, sizeof body,
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}",
                     asks[i].method, asks[i].params);
            bearer_ask(&c, http_post(lines, body), less, 403, &reply);
            expect_lacking(&reply, asks[i].needs);
            http_reply_free(&reply);
            bearer_ask(&c, http_post(lines, body), more, 200, NULL);
        }
        http_caller_close(&c);
    }
    assert_int_equal(runs, 3 * (int)ASKS);
    free(less);
    free(more);
    bearer_kit_end(&k);
}

/* A caller who may not read a resource does not learn of its changes either. */
static void subscriptions_need_what_reading_needs(void **state)
{
    static const char filter[] =
        "\"notifications\":{\"resourceSubscriptions\":[\"x://y\",\"z://1\",\"free://\"]}";
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    char lines[256];
    (void)state;
    bearer_kit_begin(&k);
    add_items(k.s.server);
    http_caller_open(&k.s, &c);
    char *tokens[] = {bearer_token(&k, "ada", "", 600),
                      bearer_token(&k, "ada", "read", 600)};
    begin_session(&c, "2025-11-25", tokens[0], lines);
    for (int may = 0; may < 2; may++) {
        static const char *const uris[] = {"x://y", "z://1", "free://"};
        for (int i = 0; i < 3; i++) {
            char body[256];
            snprintf(body, sizeof body,
                     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\","
                     "\"params\":{\"uri\":\"%s\"}}",
                     uris[i]);
            bearer_ask(&c, http_post(lines, body), tokens[may], may || i == 2 ? 200 : 403,
                       NULL);
        }
        http_caller listener;
        http_caller_open(&k.s, &listener);
        char *request = bearer_with(
            http_request("2", "subscriptions/listen", NULL, filter, NULL), tokens[may]);
        http_caller_say(&listener, request);
        free(request);
        http_caller_read(&listener, &reply);
        assert_int_equal(reply.status, 200);
        http_reply_free(&reply);
        char *ack = http_caller_event(&listener);
        assert_int_equal(strstr(ack, "x://y") != NULL, may);
        assert_int_equal(strstr(ack, "z://1") != NULL, may);
        assert_non_null(strstr(ack, "free://"));
        free(ack);
        http_caller_close(&listener);
    }
    free(tokens[0]);
    free(tokens[1]);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

static void take_answer(void *user, segue_call *call, segue_status status,
                        const char *json, size_t len)
{
    (void)user;
    (void)json;
    (void)len;
    if (status == SEGUE_OK)
        runs++;
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void ask_back(void *user, segue_call *call)
{
    static const char question[] =
        "{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}";
    (void)user;
    assert_int_equal(segue_call_require_input(call, NULL, "elicitation/create", question,
                                              sizeof question - 1, take_answer, NULL,
                                              NULL, NULL),
                     SEGUE_OK);
}

/* The request that brings the answers needs the same scopes as the first one. */
static void answers_need_the_scope_too(void **state)
{
    static const char resource[] = "{\"uri\":\"q://\",\"name\":\"q\"}";
    static const char caps[] = "{\"elicitation\":{}}";
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    char round[512] = "", params[1024];
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    (void)state;
    bearer_kit_begin(&k);
    runs = 0;
    options.on_call = ask_back;
    options.scopes = "read";
    assert_int_equal(segue_server_add(k.s.server, SEGUE_ITEM_RESOURCE, resource,
                                      sizeof resource - 1, &options, NULL),
                     SEGUE_OK);
    http_caller_open(&k.s, &c);
    char *less = bearer_token(&k, "ada", "", 600);
    char *more = bearer_token(&k, "ada", "read", 600);
    bearer_ask(&c, http_request("1", "resources/read", "q://", "\"uri\":\"q://\"", caps),
               more, 200, &reply);
    const char *at = strstr(reply.body, "\"requestState\":\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"requestState\":\"%511[^\"]", round), 1);
    http_reply_free(&reply);
    snprintf(params, sizeof params,
             "\"uri\":\"q://\",\"requestState\":\"%s\",\"inputResponses\":{"
             "\"input-1\":{\"action\":\"accept\",\"content\":{}}}",
             round);
    bearer_ask(&c, http_request("1", "resources/read", "q://", params, caps), less, 403,
               NULL);
    assert_int_equal(runs, 0);
    bearer_ask(&c, http_request("1", "resources/read", "q://", params, caps), more, 200,
               NULL);
    assert_int_equal(runs, 1);
    free(less);
    free(more);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* The other requests of a batch have answers of their own, so the status is 200. */
static void in_a_batch_the_error_says_it(void **state)
{
    static const char batch[] =
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
        "\"name\":\"write\"}},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
        "\"params\":{\"name\":\"who\"}}]";
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    char lines[256];
    (void)state;
    bearer_kit_begin(&k);
    add_items(k.s.server);
    http_caller_open(&k.s, &c);
    char *token = bearer_token(&k, "ada", "read", 600);
    begin_session(&c, "2025-03-26", token, lines);
    bearer_ask(&c, http_post(lines, batch), token, 200, &reply);
    assert_non_null(strstr(reply.body, "\"reason\":\"insufficient_scope\",\"scope\":"
                                       "\"read write\""));
    assert_non_null(strstr(reply.body, "read:1 write:0"));
    http_reply_free(&reply);
    free(token);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* ---- the handler ---- */

static void handlers_see_their_caller(void **state)
{
    bearer_kit k = {.options = {.implied_scopes = "write read"}};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    add_items(k.s.server);
    http_caller_open(&k.s, &c);
    char *ada = bearer_token(&k, "ada", "write", 600);
    char *bob = bearer_token(&k, "bob", "", 600);
    bearer_ask(&c, http_call("1", "who", NULL), ada, 200, &reply);
    assert_non_null(strstr(reply.body, "[" KIT_ISSUER " ada] read:1 write:1"));
    http_reply_free(&reply);
    bearer_ask(&c, http_call("1", "who", NULL), bob, 200, &reply);
    assert_non_null(strstr(reply.body, "[" KIT_ISSUER " bob] read:0 write:0"));
    http_reply_free(&reply);
    free(ada);
    free(bob);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* Without authorization no caller has a scope: items that require one refuse. */
static void an_open_listener_grants_nothing(void **state)
{
    http_stage s = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    http_stage_begin(&s);
    add_items(s.server);
    http_caller_open(&s, &c);
    http_caller_ask(&c, http_call("1", "write", NULL), &reply);
    assert_int_equal(reply.status, 403);
    expect_challenge(&reply, "");
    http_reply_free(&reply);
    http_caller_ask(&c, http_call("1", "who", NULL), &reply);
    assert_non_null(strstr(reply.body, "[] read:0 write:0"));
    http_reply_free(&reply);
    http_caller_close(&c);
    http_stage_end(&s);
}

/* ---- byte streams ---- */

static int ended;

static void on_complete(void *user, segue_request *request, segue_status status,
                        const char *json, size_t len, const segue_error *error)
{
    (void)request;
    (void)len;
    (void)error;
    assert_int_equal(status, SEGUE_OK);
    assert_non_null(strstr(json, user));
    ended++;
}

static void byte_streams_have_no_scopes(void **state)
{
    http_stage s = {0};
    segue_transport *near, *far;
    segue_session *session;
    segue_request_events events = SEGUE_REQUEST_EVENTS_INIT;
    static const char params[] = "{\"name\":\"write\",\"arguments\":{}}";
    (void)state;
    ended = 0;
    http_stage_begin(&s);
    add_items(s.server);
    assert_int_equal(segue_transport_pair(s.rt, &near, &far), SEGUE_OK);
    assert_int_equal(segue_server_attach(s.server, far, NULL), SEGUE_OK);
    assert_int_equal(segue_session_open(s.rt, near, NULL, NULL, &session, NULL),
                     SEGUE_OK);
    events.on_complete = on_complete;
    events.user = "[] read:1 write:1";
    assert_int_equal(segue_request_start(session, "tools/call", params, strlen(params),
                                         NULL, &events, NULL, NULL),
                     SEGUE_OK);
    http_stage_run(&s);
    assert_int_equal(ended, 1);
    segue_session_close(session);
    segue_session_free(session);
    http_stage_end(&s);
}

/* ---- options ---- */

static void scopes_of_an_item_are_checked(void **state)
{
    static const char tool[] = "{\"name\":\"t\"}";
    http_stage s = {0};
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    segue_error *error = NULL;
    (void)state;
    http_stage_begin(&s);
    options.on_call = tell_caller;
    options.scopes = "a\"b";
    assert_int_equal(
        segue_server_add(s.server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, &error),
        SEGUE_E_INVALID);
    assert_non_null(strstr(segue_error_read(error)->message, "scopes"));
    segue_error_free(error);
    options.scopes = "";
    assert_int_equal(
        segue_server_add(s.server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(required_scopes_are_for_everything),
        cmocka_unit_test(an_item_has_scopes_of_its_own),
        cmocka_unit_test(the_handshake_eras_have_403_too),
        cmocka_unit_test(subscriptions_need_what_reading_needs),
        cmocka_unit_test(answers_need_the_scope_too),
        cmocka_unit_test(in_a_batch_the_error_says_it),
        cmocka_unit_test(handlers_see_their_caller),
        cmocka_unit_test(an_open_listener_grants_nothing),
        cmocka_unit_test(byte_streams_have_no_scopes),
        cmocka_unit_test(scopes_of_an_item_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
