/* A gate without memory: each allocation of a request fails in turn, alone and with all
 * later ones. No caller is taken for another. No valid token is refused as invalid. No
 * memory leaks. When memory is available again, the next request is served. */
#include <segue/segue_auth.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/bearer_kit.h"

#define MOST 400

static void tell_caller(void *user, segue_call *call)
{
    const char *name = segue_call_principal(call);
    (void)user;
    if (segue_call_has_scope(call, "read") &&
        segue_call_send_text(call, name, strlen(name), NULL) == SEGUE_OK)
        segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add_tool(segue_server *server)
{
    static const char tool[] = "{\"name\":\"who\"}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.on_call = tell_caller;
    options.scopes = "read";
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, sizeof tool - 1, &options, NULL),
        SEGUE_OK);
}

static void on_bearer(void *user, segue_transport *transport, segue_bearer *bearer)
{
    (void)user;
    (void)transport;
    segue_bearer_accept(bearer, segue_bearer_token(bearer, NULL), "write", 0);
    segue_bearer_free(bearer);
}

/* Checks the answer; returns true when its status is 200. */
static bool judge(http_caller *c, const char *name, int denied)
{
    http_reply reply;
    while (http_caller_look(c))
        ;
    if (c->ended && !c->len)
        return false; /* the connection was cut */
    http_caller_read(c, &reply);
    int status = reply.status;
    if (status == 200 && reply.body && !strstr(reply.body, "\"error\"") &&
        !strstr(reply.body, name))
        fail_msg("%s is not %s", reply.body, name);
    http_reply_free(&reply);
    if (status != 200 && status != 503 && status != 500 && status != denied)
        fail_msg("%d", status);
    return status == 200;
}

/* scopes: the scopes that the token grants. denied: 403 if a needed scope is missing. */
static void drive(bearer_kit *k, bool is_jwt, const char *scopes, int denied)
{
    size_t failures = 0;
    for (int all = 0; all < 2; all++) {
        bool failed = true;
        for (size_t at = 1; failed; at++) {
            http_caller c;
            char name[32];
            assert_true(at < MOST);
            snprintf(name, sizeof name, "user%d-%zu", all, at);
            char *token = is_jwt ? bearer_token(k, name, scopes, 600) : strdup(name);
            char *request = bearer_with(http_call("1", "who", NULL), token);
            http_caller_open(&k->s, &c);
            http_stage_run(&k->s); /* the server accepts the connection */
            test_mem_rearm(&k->s.mem);
            k->s.mem.fail_at = all ? 0 : at;
            k->s.mem.fail_from = all ? at : 0;
            http_caller_say(&c, request);
            http_stage_run(&k->s);
            failed = k->s.mem.failed > 0;
            test_mem_rearm(&k->s.mem);
            http_stage_advance(&k->s, 1100); /* an end without memory is tried again */
            failures += failed;
            judge(&c, name, denied);
            http_caller_close(&c);
            http_caller_open(&k->s, &c);
            http_caller_say(&c, request);
            http_stage_run(&k->s);
            assert_int_equal(judge(&c, name, denied), !denied);
            http_caller_close(&c);
            free(request);
            free(token);
        }
    }
    print_message("%zu failures\n", failures);
    assert_true(failures > 20);
}

static void tokens_are_checked_without_memory(void **state)
{
    bearer_kit k = {.s = {.listen = {.stream_after_ms = 60000}},
                    .options = {.implied_scopes = "write read", .max_tokens = 5}};
    (void)state;
    bearer_kit_begin(&k);
    add_tool(k.s.server);
    drive(&k, true, "write", 0);
    bearer_kit_end(&k);
}

static void refusals_need_little_memory(void **state)
{
    bearer_kit k = {.s = {.listen = {.stream_after_ms = 60000}}};
    (void)state;
    bearer_kit_begin(&k);
    add_tool(k.s.server);
    drive(&k, true, "other", 403);
    bearer_kit_end(&k);
}

static void the_application_is_asked_without_memory(void **state)
{
    bearer_kit k = {.s = {.listen = {.stream_after_ms = 60000}},
                    .options = {.implied_scopes = "write read", .on_bearer = on_bearer}};
    (void)state;
    bearer_kit_begin(&k);
    add_tool(k.s.server);
    drive(&k, false, NULL, 0);
    bearer_kit_end(&k);
}

/* Making a gate without memory takes over no argument, and the next attempt succeeds. */
static void listening_fails_cleanly(void **state)
{
    bearer_kit k = {.options = {.scopes_supported = "a b", .required_scopes = "a"}};
    segue_bearer_options bearer;
    segue_listen_options options = {.struct_size = sizeof options, .bearer = &bearer};
    bool failed = true;
    (void)state;
    bearer_kit_begin(&k);
    bearer = k.options;
    for (size_t at = 1; failed; at++) {
        segue_listener *listener = NULL;
        assert_true(at < MOST);
        test_mem_rearm(&k.s.mem);
        k.s.mem.fail_at = at;
        segue_status status = segue_server_listen(k.s.server, &options, &listener, NULL);
        failed = k.s.mem.failed > 0;
        test_mem_rearm(&k.s.mem);
        /* An allocation for a timer or a log line may fail without harm. */
        if (status == SEGUE_OK) {
            segue_listener_close(listener);
            segue_listener_free(listener);
            http_stage_run(&k.s);
        } else if (status != SEGUE_E_NOMEM && status != SEGUE_E_INVALID) {
            fail_msg("%s", segue_status_name(status));
        }
        assert_true(failed || status == SEGUE_OK);
    }
    bearer_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_checked_without_memory),
        cmocka_unit_test(refusals_need_little_memory),
        cmocka_unit_test(the_application_is_asked_without_memory),
        cmocka_unit_test(listening_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
