/* The application checks tokens itself: at once, later, in another callback, or never.
 * The caller may be gone when the decision comes, and listener and runtime may have
 * ended. This file also tests the options of the gate. */
#include <segue/segue_auth.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/bearer_kit.h"

/* ---- the application ---- */

static struct {
    segue_bearer *kept[8]; /* bearers to decide later */
    int count;
    int asked, freed;
    bool keep;
    char header[64], peer[64];
} app;

static void on_bearer(void *user, segue_transport *transport, segue_bearer *bearer)
{
    size_t len = 0;
    const char *token = segue_bearer_token(bearer, &len);
    const char *header = segue_transport_header(transport, "x-more");
    assert_ptr_equal(user, &app);
    assert_int_equal(len, strlen(token));
    snprintf(app.header, sizeof app.header, "%s", header ? header : "");
    snprintf(app.peer, sizeof app.peer, "%s", segue_transport_peer(transport));
    app.asked++;
    if (app.keep) {
        app.kept[app.count++] = bearer;
        return;
    }
    if (strcmp(token, "good") == 0)
        assert_int_equal(segue_bearer_accept(bearer, "ada", "read write", 0), SEGUE_OK);
    else if (strcmp(token, "short") == 0)
        assert_int_equal(segue_bearer_accept(bearer, "ada", NULL, 1764000020000),
                         SEGUE_OK);
    else if (strcmp(token, "old") == 0)
        assert_int_equal(segue_bearer_accept(bearer, "ada", NULL, 1763999999999),
                         SEGUE_OK);
    else if (strcmp(token, "bad") == 0)
        assert_int_equal(segue_bearer_refuse(bearer, "Revoked"), SEGUE_OK);
    segue_bearer_free(bearer);
}

static void free_app(void *user)
{
    assert_ptr_equal(user, &app);
    app.freed++;
}

static void begin(bearer_kit *k, http_caller *c)
{
    memset(&app, 0, sizeof app);
    k->options.on_bearer = on_bearer;
    k->options.user = &app;
    k->options.free_user = free_app;
    bearer_kit_begin(k);
    http_caller_open(&k->s, c);
}

static void end(bearer_kit *k, http_caller *c)
{
    http_caller_close(c);
    bearer_kit_end(k);
    assert_int_equal(app.freed, 1);
}

static char *greet(void)
{
    return http_call("1", "greet", "{\"name\":\"x\"}");
}

static void say(http_caller *c, const char *token)
{
    char *request = bearer_with(greet(), token);
    http_caller_say(c, request);
    free(request);
    http_stage_run(c->s);
}

/* ---- deciding ---- */

static void the_application_decides(void **state)
{
    static const struct {
        const char *token;
        int status;
        const char *challenge;
    } rows[] = {
        {"good", 200, ""},
        {"short", 403, "error=\"insufficient_scope\""},
        {"old", 401, "The token has expired"},
        {"bad", 401, "error_description=\"Revoked\""},
        {"undecided", 503, ""},
        {NULL, 401, "Bearer scope=\"read\", resource_metadata="},
    };
    bearer_kit k = {.options = {.required_scopes = "read"}};
    http_caller c;
    http_reply reply;
    (void)state;
    begin(&k, &c);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            bearer_ask(&c, greet(), rows[i].token, rows[i].status, &reply);
            const char *found = http_reply_header(&reply, "WWW-Authenticate");
            if (!strstr(found, rows[i].challenge) || (!*rows[i].challenge && *found))
                fail_msg("%s: %s", rows[i].token, found);
            bool closed = !strcmp(http_reply_header(&reply, "Connection"), "close");
            http_reply_free(&reply);
            if (closed) {
                http_caller_close(&c);
                http_caller_open(&k.s, &c);
            }
        }
    assert_int_equal(app.asked, 10); /* each request with a token is checked once, and no
                                      * other request is checked */
    end(&k, &c);
}

/* The application's callback sees the request, and the handler sees the caller. */
static void the_callback_sees_the_request(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    begin(&k, &c);
    char *request = greet(), *text = malloc(strlen(request) + 64);
    char *behind = strstr(request, "\r\n") + 2;
    sprintf(text, "%.*sX-More: of it\r\n%s", (int)(behind - request), request, behind);
    free(request);
    bearer_ask(&c, text, "good", 200, &reply);
    assert_string_equal(app.header, "of it");
    assert_memory_equal(app.peer, "127.0.0.1:", 10);
    http_reply_free(&reply);
    end(&k, &c);
}

static void it_may_decide_later(void **state)
{
    bearer_kit k = {0};
    http_caller c, second;
    (void)state;
    begin(&k, &c);
    app.keep = true;
    http_caller_open(&k.s, &second);
    say(&c, "one");
    say(&second, "two");
    assert_int_equal(app.count, 2);
    http_caller_quiet(&c);
    assert_string_equal(segue_bearer_token(app.kept[1], NULL), "two");
    assert_int_equal(segue_bearer_accept(app.kept[1], "bob", NULL, 0), SEGUE_OK);
    assert_int_equal(http_caller_status(&second), 200);
    http_caller_quiet(&c);
    assert_int_equal(segue_bearer_refuse(app.kept[0], NULL), SEGUE_OK);
    assert_int_equal(http_caller_status(&c), 401);
    /* Only the first decision counts. */
    assert_int_equal(segue_bearer_accept(app.kept[0], "x", NULL, 0), SEGUE_E_TERMINAL);
    assert_int_equal(segue_bearer_refuse(app.kept[1], NULL), SEGUE_E_TERMINAL);
    segue_bearer_free(app.kept[0]);
    segue_bearer_free(app.kept[1]);
    http_caller_close(&second);
    end(&k, &c);
}

static void *accept_elsewhere(void *bearer)
{
    segue_bearer_accept(bearer, "ada", NULL, 0);
    segue_bearer_free(bearer);
    return NULL;
}

static void it_may_decide_on_another_thread(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    pthread_t thread;
    (void)state;
    begin(&k, &c);
    app.keep = true;
    for (int i = 0; i < 20; i++) {
        say(&c, "one");
        assert_int_equal(app.count, 1);
        assert_int_equal(pthread_create(&thread, NULL, accept_elsewhere, app.kept[0]), 0);
        assert_int_equal(http_caller_status(&c), 200);
        pthread_join(thread, NULL);
        app.count = 0;
    }
    end(&k, &c);
}

static void it_is_not_waited_for_for_ever(void **state)
{
    bearer_kit k = {.options = {.check_timeout_ms = 3000}};
    http_caller c;
    (void)state;
    begin(&k, &c);
    app.keep = true;
    say(&c, "one");
    http_stage_advance(&k.s, 2900);
    http_caller_quiet(&c);
    http_stage_advance(&k.s, 200);
    assert_int_equal(http_caller_status(&c), 503);
    /* The decision is too late, and the application need not know this. */
    assert_int_equal(segue_bearer_accept(app.kept[0], "ada", NULL, 0), SEGUE_OK);
    assert_int_equal(segue_bearer_accept(app.kept[0], "ada", NULL, 0), SEGUE_E_TERMINAL);
    segue_bearer_free(app.kept[0]);
    end(&k, &c);
}

static void the_caller_may_be_gone(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    (void)state;
    begin(&k, &c);
    app.keep = true;
    for (int i = 0; i < 3; i++) {
        say(&c, "one");
        http_caller_reset(&c);
        http_stage_run(&k.s);
        http_caller_open(&k.s, &c);
    }
    assert_int_equal(app.count, 3);
    assert_int_equal(segue_bearer_accept(app.kept[0], "ada", NULL, 0), SEGUE_OK);
    assert_int_equal(segue_bearer_refuse(app.kept[1], NULL), SEGUE_OK);
    for (int i = 0; i < 3; i++)
        segue_bearer_free(app.kept[i]);
    app.keep = false;
    bearer_ask(&c, greet(), "good", 200, NULL);
    end(&k, &c);
}

static void verdicts_are_checked(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    char reason[202];
    (void)state;
    begin(&k, &c);
    app.keep = true;
    say(&c, "one");
    segue_bearer *b = app.kept[0];
    memset(reason, 'x', sizeof reason - 1);
    reason[201] = 0;
    assert_int_equal(segue_bearer_accept(b, NULL, NULL, 0), SEGUE_E_INVALID);
    assert_int_equal(segue_bearer_accept(b, "", NULL, 0), SEGUE_E_INVALID);
    assert_int_equal(segue_bearer_accept(b, "\xff", NULL, 0), SEGUE_E_INVALID);
    assert_int_equal(segue_bearer_accept(b, "a", "x\"y", 0), SEGUE_E_INVALID);
    assert_int_equal(segue_bearer_accept(b, "a", NULL, -1), SEGUE_E_INVALID);
    assert_int_equal(segue_bearer_refuse(b, "a\r\nb"), SEGUE_E_INVALID);
    assert_int_equal(segue_bearer_refuse(b, "say \"no\""), SEGUE_E_INVALID);
    assert_int_equal(segue_bearer_refuse(b, reason), SEGUE_E_INVALID);
    http_caller_quiet(&c);
    reason[200] = 0;
    assert_int_equal(segue_bearer_refuse(b, reason), SEGUE_OK);
    assert_int_equal(http_caller_status(&c), 401);
    segue_bearer_free(b);
    end(&k, &c);
}

/* The listener ends while a caller waits for the decision. */
static void the_listener_may_close_before(void **state)
{
    bearer_kit k = {.s = {.listen = {.drain_ms = 1000}}};
    http_caller c;
    (void)state;
    begin(&k, &c);
    app.keep = true;
    say(&c, "one");
    segue_listener_close(k.s.listener);
    http_stage_run(&k.s);
    assert_int_equal(app.freed, 0);
    http_stage_advance(&k.s, 1100);
    http_caller_until_closed(&c);
    assert_int_equal(app.freed, 1);
    assert_int_equal(segue_bearer_accept(app.kept[0], "ada", NULL, 0), SEGUE_OK);
    segue_bearer_free(app.kept[0]);
    end(&k, &c);
}

/* The handle outlives the runtime and can still be freed. */
static void the_runtime_may_end_before(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    (void)state;
    begin(&k, &c);
    app.keep = true;
    say(&c, "one");
    segue_listener_free(k.s.listener);
    segue_server_free(k.s.server);
    segue_runtime_free(k.s.rt);
    assert_int_equal(app.freed, 1);
    segue_bearer_free(app.kept[0]);
    fixtures_free(k.s.fixtures);
    assert_int_equal(k.s.mem.live, 0);
    http_caller_close(&c);
    token_key_free(&k.key);
    free(k.set);
}

/* ---- options ---- */

#define SERVERS .authorization_servers = KIT_ISSUER
#define CHECKED SERVERS, .on_bearer = on_bearer

static void options_are_checked(void **state)
{
    static const struct {
        segue_bearer_options options;
        const char *says;
    } rows[] = {
        {{.on_bearer = on_bearer}, "authorization_servers"},
        {{.on_bearer = on_bearer, .authorization_servers = "http://as.example"},
         "authorization_servers"},
        {{.on_bearer = on_bearer, .authorization_servers = KIT_ISSUER " x"},
         "authorization_servers"},
        {{.on_bearer = on_bearer, .authorization_servers = KIT_ISSUER "?a=b"},
         "authorization_servers"},
        {{SERVERS}, "exactly one of"},
        {{CHECKED, .jwks = "{}"}, "exactly one of"},
        {{.authorization_servers = KIT_ISSUER " https://b.example",
          .jwks_url = KIT_ISSUER},
         "a key set belongs to one"},
        {{CHECKED, .resource = "mcp.example.com"}, "resource"},
        {{CHECKED, .resource = "https://mcp.example.com#a"}, "resource"},
        {{CHECKED, .resource = "https://mcp.example.com?a"}, "resource"},
        {{CHECKED, .required_scopes = "a\"b"}, "scopes"},
        {{CHECKED, .scopes_supported = "a\\b"}, "scopes"},
        {{CHECKED, .implied_scopes = "a\tb"}, "scopes"},
        {{CHECKED, .resource_name = "\xff"}, "UTF-8"},
        {{CHECKED, .check_timeout_ms = -2}, "check_timeout_ms is -2"},
        {{CHECKED, .max_tokens = -2}, "max_tokens is -2"},
        {{CHECKED, .issuer = "a b"}, "issuer"},
        {{SERVERS, .jwks = "{\"keys\":[]}"}, "no usable key"},
        {{SERVERS, .jwks = "{"}, "key set"},
        {{SERVERS, .jwks = "{\"keys\":[]}", .algorithms = "RS256 HS256"}, "algorithms"},
        {{SERVERS, .jwks = "{\"keys\":[]}", .algorithms = "none"}, "algorithms"},
        {{SERVERS, .jwks_url = "http://as.example/jwks"}, "jwks_url"},
        {{SERVERS, .jwks_url = "ftp://as.example/jwks"}, "jwks_url"},
    };
    http_stage s = {0};
    memset(&app, 0, sizeof app);
    (void)state;
    http_stage_begin(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        segue_bearer_options bearer = rows[i].options;
        segue_listen_options options = {.struct_size = sizeof options, .bearer = &bearer};
        segue_listener *listener = NULL;
        segue_error *error = NULL;
        bearer.struct_size = sizeof bearer;
        bearer.user = &app;
        bearer.free_user = free_app;
        assert_int_equal(segue_server_listen(s.server, &options, &listener, &error),
                         SEGUE_E_INVALID);
        if (!strstr(segue_error_read(error)->message, rows[i].says))
            fail_msg("%s: %s", rows[i].says, segue_error_read(error)->message);
        segue_error_free(error);
        assert_null(listener);
    }
    http_stage_end(&s);
    assert_int_equal(app.freed, 0); /* the failed call has taken over no argument */
}

static void more_options_are_checked(void **state)
{
    http_stage s = {0};
    segue_bearer_options bearer = {CHECKED};
    segue_listen_options options = {.struct_size = sizeof options, .bearer = &bearer};
    segue_listener *listener = NULL;
    (void)state;
    http_stage_begin(&s);
    bearer.struct_size = sizeof bearer;
    options.address = "0.0.0.0"; /* clients would know no name for this address */
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_INVALID);
    options.address = "unix:./bearer.sock";
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_INVALID);
    options.address = NULL;
    bearer.on_bearer = NULL;
    bearer.jwks_file = "./no-such-file";
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_IO);
    bearer.struct_size = sizeof(size_t) - 1;
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_INVALID);
    struct {
        segue_bearer_options known;
        int32_t unknown;
    } newer = {.unknown = 1};
    newer.known.struct_size = sizeof newer;
    options.bearer = &newer.known;
    assert_int_equal(segue_server_listen(s.server, &options, &listener, NULL),
                     SEGUE_E_VERSION);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_application_decides),
        cmocka_unit_test(the_callback_sees_the_request),
        cmocka_unit_test(it_may_decide_later),
        cmocka_unit_test(it_may_decide_on_another_thread),
        cmocka_unit_test(it_is_not_waited_for_for_ever),
        cmocka_unit_test(the_caller_may_be_gone),
        cmocka_unit_test(verdicts_are_checked),
        cmocka_unit_test(the_listener_may_close_before),
        cmocka_unit_test(the_runtime_may_end_before),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(more_options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
