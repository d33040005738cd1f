/* Several servers at the paths of one listener (segue_listener_add). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/bearer_kit.h"
#include "transport/http_listener.h"

typedef struct stage {
    bearer_kit kit;
    http_stage *s;
    segue_server *notes; /* the server at /notes */
    http_caller c;
} stage;

static void tell_name(void *user, segue_call *call)
{
    char text[200];
    snprintf(text, sizeof text, "%s for %s", (const char *)user,
             segue_call_principal(call));
    segue_call_send_text(call, text, strlen(text), NULL);
    segue_call_complete(call, NULL, NULL);
    segue_call_free(call);
}

static void add_where(segue_server *server, const char *name)
{
    static const char tool[] =
        "{\"name\":\"where\",\"inputSchema\":{\"type\":\"object\"}}";
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    options.user = (void *)(uintptr_t)name;
    options.on_call = tell_name;
    assert_int_equal(
        segue_server_add(server, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
}

static void add_first(segue_server *server)
{
    add_where(server, "first");
}

static void add_notes(stage *t)
{
    assert_int_equal(segue_server_new(t->s->rt, NULL, &t->notes, NULL), SEGUE_OK);
    add_where(t->notes, "notes");
    assert_int_equal(segue_listener_add(t->s->listener, t->notes, "/notes", NULL),
                     SEGUE_OK);
    http_stage_run(t->s);
}

static void begin(stage *t)
{
    *t = (stage){.s = &t->kit.s};
    t->s->listen.health_path = "/health";
    t->s->add = add_first;
    http_stage_begin(t->s);
    add_notes(t);
    http_caller_open(t->s, &t->c);
}

static void end(stage *t)
{
    http_caller_close(&t->c);
    segue_server_free(t->notes);
    http_stage_end(t->s);
}

/* Returns the request for another path, and frees the request. */
static char *at(const char *path, char *request)
{
    char *rest = strstr(request, " /mcp ") + strlen(" /mcp");
    size_t size = strlen(request) + strlen(path) + 1;
    char *changed = malloc(size);
    snprintf(changed, size, "POST %s%s", path, rest);
    free(request);
    return changed;
}

static void ask(stage *t, const char *path, const char *token, int status,
                const char *what)
{
    http_reply reply;
    bearer_ask(&t->c, at(path, http_call("1", "where", "{}")), token, status, &reply);
    if (!strstr(reply.body, what))
        fail_msg("%s\nhas no %s", reply.body, what);
    http_reply_free(&reply);
}

/* One connection asks both servers in turn. */
static void each_path_has_its_server(void **state)
{
    stage t;
    (void)state;
    begin(&t);
    for (int i = 0; i < 3; i++) {
        ask(&t, "/mcp", NULL, 200, "first for ");
        ask(&t, "/notes", NULL, 200, "notes for ");
        ask(&t, "/notes", NULL, 200, "notes for ");
        ask(&t, "/other", NULL, 404, "no such path");
        ask(&t, "/note", NULL, 404, "no such path");
    }
    http_caller_say(&t.c, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert_int_equal(http_caller_status(&t.c), 200);
    end(&t);
}

static void a_session_belongs_to_its_path(void **state)
{
    static const char hello[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{"
        "\"name\":\"c\",\"version\":\"1\"}}}";
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}";
    stage t;
    http_reply reply;
    char line[400];
    (void)state;
    begin(&t);
    bearer_ask(&t.c, at("/notes", http_post("", hello)), NULL, 200, &reply);
    snprintf(line, sizeof line,
             "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %s\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    bearer_ask(&t.c, at("/mcp", http_post(line, ping)), NULL, 404, NULL);
    bearer_ask(&t.c, at("/notes", http_post(line, ping)), NULL, 200, NULL);
    end(&t);
}

/* The grants of a token, which the listener caches, are those of one server. */
static void a_token_is_valid_at_each_path(void **state)
{
    stage t = {.s = &t.kit.s};
    (void)state;
    t.s->add = add_first;
    t.kit.options.resource = "https://mcp.example.com/";
    bearer_kit_begin(&t.kit);
    add_notes(&t);
    http_caller_open(t.s, &t.c);
    char *token = bearer_token_of(&t.kit, "{\"iss\":\"" KIT_ISSUER
                                          "\",\"aud\":\"https://mcp.example.com/\","
                                          "\"sub\":\"ada\",\"exp\":1764000600}");
    for (int i = 0; i < 3; i++) {
        ask(&t, "/mcp", token, 200, "first for " KIT_ISSUER " ada");
        ask(&t, "/notes", token, 200, "notes for " KIT_ISSUER " ada");
        ask(&t, "/notes", NULL, 401, "");
    }
    free(token);
    http_caller_close(&t.c);
    segue_server_free(t.notes);
    bearer_kit_end(&t.kit);
}

static void refused(stage *t, segue_server *server, const char *path, segue_status status,
                    const char *what)
{
    segue_error *error = NULL;
    assert_int_equal(segue_listener_add(t->s->listener, server, path, &error), status);
    if (!strstr(segue_error_read(error)->message, what))
        fail_msg("%s\nhas no %s", segue_error_read(error)->message, what);
    segue_error_free(error);
}

static void wrong_endpoints_are_refused(void **state)
{
    stage t;
    segue_runtime *other;
    segue_server *stranger;
    (void)state;
    begin(&t);
    refused(&t, t.notes, "/mcp", SEGUE_E_EXISTS, "has the path /mcp already");
    refused(&t, t.notes, "/notes", SEGUE_E_EXISTS, "has the path /notes already");
    refused(&t, t.notes, "/health", SEGUE_E_EXISTS, "has the path /health already");
    refused(&t, t.notes, "notes", SEGUE_E_INVALID, "path has to begin with /");
    refused(&t, t.notes, "/a b", SEGUE_E_INVALID, "path has to begin with /");
    assert_int_equal(segue_listener_add(t.s->listener, t.notes, NULL, NULL),
                     SEGUE_E_INVALID);
    assert_int_equal(segue_runtime_new(NULL, &other, NULL), SEGUE_OK);
    assert_int_equal(segue_server_new(other, NULL, &stranger, NULL), SEGUE_OK);
    refused(&t, stranger, "/stranger", SEGUE_E_INVALID, "another runtime");
    segue_server_free(stranger);
    segue_runtime_free(other);
    /* one server may have several paths */
    assert_int_equal(segue_listener_add(t.s->listener, t.notes, "/more", NULL), SEGUE_OK);
    http_stage_run(t.s);
    ask(&t, "/more", NULL, 200, "notes for ");
    end(&t);
}

static void the_end_of_one_server_ends_the_listener(void **state)
{
    stage t;
    (void)state;
    begin(&t);
    assert_int_equal(segue_server_close(t.notes), SEGUE_OK);
    http_stage_run(t.s);
    http_caller_until_closed(&t.c);
    refused(&t, t.notes, "/late", SEGUE_E_CLOSED, "closed");
    end(&t);
}

static void remove_path(stage *t, const char *path)
{
    assert_int_equal(segue_listener_remove(t->s->listener, path), SEGUE_OK);
    assert_int_equal(segue_listener_remove(t->s->listener, path), SEGUE_E_NOT_FOUND);
    http_stage_run(t->s);
}

static void a_removed_path_is_gone_and_the_others_stay(void **state)
{
    stage t;
    (void)state;
    begin(&t);
    assert_int_equal(segue_listener_remove(t.s->listener, NULL), SEGUE_E_INVALID);
    assert_int_equal(segue_listener_remove(t.s->listener, "/other"), SEGUE_E_NOT_FOUND);
    ask(&t, "/notes", NULL, 200, "notes for "); /* the connection is at the path */
    remove_path(&t, "/notes");
    ask(&t, "/notes", NULL, 404, "no such path");
    ask(&t, "/mcp", NULL, 200, "first for ");
    assert_int_equal(segue_server_close(t.notes), SEGUE_OK); /* and no listener */
    segue_server_free(t.notes);
    http_stage_run(t.s);
    ask(&t, "/mcp", NULL, 200, "first for ");
    add_notes(&t); /* another server has the path now */
    ask(&t, "/notes", NULL, 200, "notes for ");
    remove_path(&t, "/mcp"); /* the first one, too */
    ask(&t, "/mcp", NULL, 404, "no such path");
    ask(&t, "/notes", NULL, 200, "notes for ");
    end(&t);
}

/* A balancer asks for the health on a connection that has asked the path before. */
static void a_health_check_does_not_hold_a_removed_path(void **state)
{
    stage t;
    http_reply reply;
    (void)state;
    begin(&t);
    ask(&t, "/notes", NULL, 200, "notes for ");
    remove_path(&t, "/notes");
    for (int i = 0; i < 2; i++) {
        http_caller_ask(&t.c, strdup("GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
                        &reply);
        assert_int_equal(reply.status, 200);
        http_reply_free(&reply);
    }
    const sgi_http_endpoint *first = STAILQ_FIRST(&t.s->listener->endpoints);
    assert_null(STAILQ_NEXT(first, link));
    end(&t);
}

static void never_opens(sgi_server_listener *server_listener)
{
    (void)server_listener;
}

/* A listener waits until all its servers have read their stores. One of them cannot, and
 * loses its path. */
static void a_removed_path_is_not_waited_for(void **state)
{
    stage t;
    segue_listener *listener;
    segue_server *mute;
    segue_listen_options listen = SEGUE_LISTEN_OPTIONS_INIT;
    (void)state;
    begin(&t);
    assert_int_equal(segue_server_new(t.s->rt, NULL, &mute, NULL), SEGUE_OK);
    listen.path = "/mute";
    assert_int_equal(segue_server_listen(mute, &listen, &listener, NULL), SEGUE_OK);
    STAILQ_FIRST(&listener->endpoints)->server_listener.open = never_opens;
    assert_int_equal(segue_listener_add(listener, t.notes, "/notes", NULL), SEGUE_OK);
    http_stage_run(t.s);
    assert_false(listener->acceptor.running);
    assert_int_equal(segue_listener_remove(listener, "/mute"), SEGUE_OK);
    http_stage_run(t.s);
    assert_true(listener->acceptor.running);
    segue_listener_free(listener);
    segue_server_free(mute);
    end(&t);
}

/* A connection that has asked no path needs a server, too. */
static void a_listener_without_paths_refuses_until_it_has_one(void **state)
{
    stage t;
    http_caller fresh;
    (void)state;
    begin(&t);
    remove_path(&t, "/mcp");
    remove_path(&t, "/notes");
    http_caller_open(t.s, &fresh);
    http_caller_say(&fresh, "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert_int_equal(http_caller_status(&fresh), 200);
    http_caller_close(&fresh);
    ask(&t, "/notes", NULL, 404, "no such path");
    assert_int_equal(segue_listener_add(t.s->listener, t.notes, "/notes", NULL),
                     SEGUE_OK);
    ask(&t, "/notes", NULL, 200, "notes for ");
    end(&t);
}

static segue_call *kept;

static void keep(void *user, segue_call *call)
{
    (void)user;
    kept = call;
}

/* The answer comes after the server has lost its path and was closed. */
static void a_call_under_way_is_answered(void **state)
{
    static const char tool[] =
        "{\"name\":\"wait\",\"inputSchema\":{\"type\":\"object\"}}";
    stage t;
    segue_item_options options = SEGUE_ITEM_OPTIONS_INIT;
    (void)state;
    begin(&t);
    options.on_call = keep;
    assert_int_equal(
        segue_server_add(t.notes, SEGUE_ITEM_TOOL, tool, strlen(tool), &options, NULL),
        SEGUE_OK);
    char *request = at("/notes", http_call("1", "wait", "{}"));
    http_caller_say(&t.c, request);
    free(request);
    http_stage_run(t.s);
    assert_non_null(kept);
    remove_path(&t, "/notes");
    assert_int_equal(segue_server_close(t.notes), SEGUE_OK);
    segue_server_free(t.notes);
    t.notes = NULL;
    http_stage_run(t.s);
    segue_call_send_text(kept, "late", 4, NULL);
    segue_call_complete(kept, NULL, NULL);
    segue_call_free(kept);
    http_reply reply;
    http_caller_read(&t.c, &reply);
    assert_int_equal(reply.status, 200);
    assert_non_null(strstr(reply.body, "late"));
    http_reply_free(&reply);
    ask(&t, "/mcp", NULL, 200, "first for ");
    end(&t);
}

/* The rights of a token that was seen at a path end with its server. */
static void a_token_outlives_a_server_that_accepted_it(void **state)
{
    stage t = {.s = &t.kit.s};
    (void)state;
    t.s->add = add_first;
    t.kit.options.resource = "https://mcp.example.com/";
    bearer_kit_begin(&t.kit);
    add_notes(&t);
    http_caller_open(t.s, &t.c);
    char *token = bearer_token_of(&t.kit, "{\"iss\":\"" KIT_ISSUER
                                          "\",\"aud\":\"https://mcp.example.com/\","
                                          "\"sub\":\"ada\",\"exp\":1764000600}");
    ask(&t, "/notes", token, 200, "notes for " KIT_ISSUER " ada");
    remove_path(&t, "/notes");
    segue_server_close(t.notes);
    segue_server_free(t.notes);
    ask(&t, "/mcp", token, 200, "first for " KIT_ISSUER " ada");
    add_notes(&t);
    ask(&t, "/notes", token, 200, "notes for " KIT_ISSUER " ada");
    free(token);
    http_caller_close(&t.c);
    segue_server_free(t.notes);
    bearer_kit_end(&t.kit);
}

static void a_lack_of_memory_adds_nothing(void **state)
{
    stage t;
    (void)state;
    begin(&t);
    for (size_t call = 1; call <= 2; call++) {
        t.s->mem.fail_at = t.s->mem.calls + call;
        refused(&t, t.notes, "/more", SEGUE_E_NOMEM, "memory");
    }
    ask(&t, "/more", NULL, 404, "no such path");
    assert_int_equal(segue_listener_add(t.s->listener, t.notes, "/more", NULL), SEGUE_OK);
    ask(&t, "/more", NULL, 200, "notes for ");
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_has_its_server),
        cmocka_unit_test(a_session_belongs_to_its_path),
        cmocka_unit_test(a_token_is_valid_at_each_path),
        cmocka_unit_test(wrong_endpoints_are_refused),
        cmocka_unit_test(the_end_of_one_server_ends_the_listener),
        cmocka_unit_test(a_lack_of_memory_adds_nothing),
        cmocka_unit_test(a_removed_path_is_gone_and_the_others_stay),
        cmocka_unit_test(a_listener_without_paths_refuses_until_it_has_one),
        cmocka_unit_test(a_health_check_does_not_hold_a_removed_path),
        cmocka_unit_test(a_removed_path_is_not_waited_for),
        cmocka_unit_test(a_call_under_way_is_answered),
        cmocka_unit_test(a_token_outlives_a_server_that_accepted_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
