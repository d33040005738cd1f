#include "support/auth_script.h"

#include "support/world.h"

#include <segue/segue_auth.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#define JSON "Content-Type: application/json\r\n"

/* ---- the application ---- */

static void hand_in(auth_script *a)
{
    char url[256];
    snprintf(url, sizeof url, "http://localhost:3000/callback?code=x1&state=%s",
             a->state);
    assert_int_equal(segue_runtime_authorize(a->s.k.runtime, url), SEGUE_OK);
}

static void browse(void *user, const char *url, const char *state)
{
    auth_script *a = user;
    assert_int_equal(a->freed, 0);
    a->asked++;
    snprintf(a->url, sizeof a->url, "%s", url);
    snprintf(a->state, sizeof a->state, "%s", state);
    if (a->agrees)
        hand_in(a);
    assert_non_null(strstr(url, state)); /* the application still uses the URL and the
                                          * state */
}

static void save(void *user, const char *key, const char *json, size_t len)
{
    auth_script *a = user;
    a->saves++;
    assert_int_equal(strlen(json), len);
    snprintf(a->key, sizeof a->key, "%s", key);
    snprintf(a->kept, sizeof a->kept, "%s", json);
}

static const char *load(void *user, const char *key, size_t *len)
{
    auth_script *a = user;
    a->loads++;
    if (strncmp(key, "token ", 6) != 0 || !*a->stored)
        return NULL;
    *len = strlen(a->stored);
    return a->stored;
}

static void let_go(void *user)
{
    ((auth_script *)user)->freed++;
}

/* ---- life ---- */

void auth_prepare(auth_script *a)
{
    *a = (auth_script){0};
    script_prepare(&a->s);
    snprintf(a->origin, sizeof a->origin, "http://127.0.0.1:%d", a->s.peer.port);
    a->options = SEGUE_OAUTH_OPTIONS_INIT;
    a->options.redirect_uri = "http://localhost:3000/callback";
    a->options.user = a;
    a->options.free_user = let_go;
    a->options.on_authorize = browse;
    a->options.on_load = load;
    a->options.on_save = save;
}

void auth_make(auth_script *a)
{
    kit_prepare(&a->s.k, 0);
    if (a->s.background)
        assert_int_equal(segue_runtime_start(a->s.k.runtime), SEGUE_OK);
    assert_int_equal(segue_transport_http(a->s.k.runtime, a->s.url, &a->s.options,
                                          &a->s.k.transport, NULL),
                     SEGUE_OK);
    assert_int_equal(segue_transport_set_oauth(a->s.k.transport, &a->options, NULL),
                     SEGUE_OK);
}

void auth_connect(auth_script *a)
{
    auth_make(a);
    script_connect(&a->s, NULL);
}

void auth_end(auth_script *a)
{
    script_end(&a->s);
    assert_int_equal(a->freed, 1);
}

/* ---- by hand ---- */

heard *auth_expect(auth_script *a, const char *method, const char *path)
{
    char wanted[256];
    heard *h = script_expect(&a->s, "");
    snprintf(wanted, sizeof wanted, "%s %s HTTP/1.1\r\n", method, path);
    if (strncmp(h->text, wanted, strlen(wanted)) != 0)
        fail_msg("expected %s, heard %s%s", wanted, h->text, h->body);
    if (strcmp(path, "/mcp") != 0) {
        assert_header(h, "Mcp-Method", NULL);
        if (!strstr(h->text, "Authorization: Basic"))
            assert_header(h, "Authorization", NULL); /* the token must not be sent to this
                                                      * server */
    }
    return h;
}

void auth_refuse(heard *h, const char *status, const char *challenge)
{
    char headers[512];
    snprintf(headers, sizeof headers, "WWW-Authenticate: %s\r\n", challenge);
    script_say(h, status, headers, "");
}

static void say_resource(auth_script *a, heard *h)
{
    char body[512];
    snprintf(body, sizeof body,
             "{\"resource\":\"%s/mcp\",\"authorization_servers\":[\"%s\"]}", a->origin,
             a->origin);
    script_say(h, "200 OK", JSON, body);
}

static void say_server(auth_script *a, heard *h)
{
    char body[1024];
    snprintf(body, sizeof body,
             "{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s/authorize\","
             "\"token_endpoint\":\"%s/token\",\"registration_endpoint\":\"%s/register\","
             "\"code_challenge_methods_supported\":[\"S256\"],"
             "\"token_endpoint_auth_methods_supported\":[\"none\"]}",
             a->origin, a->origin, a->origin, a->origin);
    script_say(h, "200 OK", JSON, body);
}

void auth_resource(auth_script *a)
{
    say_resource(a, auth_expect(a, "GET", "/.well-known/oauth-protected-resource/mcp"));
}

void auth_metadata(auth_script *a)
{
    auth_resource(a);
    say_server(a, auth_expect(a, "GET", "/.well-known/oauth-authorization-server"));
}

void auth_register(auth_script *a)
{
    heard *h = auth_expect(a, "POST", "/register");
    assert_header(h, "Content-Type", "application/json");
    snprintf(a->body, sizeof a->body, "%s", h->body);
    script_say(h, "201 Created", JSON, "{\"client_id\":\"c1\"}");
}

void auth_discover(auth_script *a)
{
    heard *h = script_expect(&a->s, "server/discover");
    int asked = a->asked;
    assert_header(h, "Authorization", NULL);
    auth_refuse(h, "401 Unauthorized", "Bearer");
    auth_metadata(a);
    auth_register(a);
    script_until(&a->s, a->asked > asked);
}

void auth_agree(auth_script *a)
{
    hand_in(a);
}

void auth_decline(auth_script *a)
{
    char url[256];
    snprintf(url, sizeof url, "?error=access_denied&state=%s", a->state);
    assert_int_equal(segue_runtime_authorize(a->s.k.runtime, url), SEGUE_OK);
}

void auth_token(auth_script *a, const char *token, const char *members)
{
    char body[512];
    heard *h = auth_expect(a, "POST", "/token");
    assert_header(h, "Content-Type", "application/x-www-form-urlencoded");
    assert_header(h, "Accept", "application/json");
    snprintf(a->body, sizeof a->body, "%s", h->body);
    snprintf(body, sizeof body, "{\"access_token\":\"%s\",\"token_type\":\"Bearer\"%s}",
             token, members);
    script_say(h, "200 OK", JSON, body);
}

void auth_enter(auth_script *a, const char *members)
{
    auth_connect(a);
    auth_discover(a);
    auth_agree(a);
    auth_token(a, "t1", members);
    script_discover(&a->s, SERVER_PLAIN);
}

/* ---- by itself ---- */

static void serve_message(auth_script *a, heard *h)
{
    char wanted[100];
    const char *is = heard_header(h, "Authorization");
    snprintf(wanted, sizeof wanted, "Bearer %s", a->right);
    if (!*a->right || !is || strcmp(is, wanted) != 0) {
        auth_refuse(h, "401 Unauthorized", "Bearer scope=\"s\"");
        return;
    }
    a->served++;
    if (strcmp(json_at(h->body, "method"), "\"server/discover\"") == 0)
        script_result(h,
                      "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"]"
                      ",\"capabilities\":" SERVER_PLAIN
                      ",\"ttlMs\":0,\"cacheScope\":\"private\"");
    else
        script_result(h, "\"resultType\":\"complete\",\"content\":[]");
}

bool auth_serve(auth_script *a)
{
    char body[256];
    heard *h = script_next(&a->s);
    if (!h)
        return false;
    h->looked = true;
    if (strstr(h->text, "protected-resource")) {
        say_resource(a, h);
    } else if (strstr(h->text, "well-known")) {
        say_server(a, h);
    } else if (strncmp(h->text, "POST /register", 14) == 0) {
        script_say(h, "201 Created", JSON, "{\"client_id\":\"c1\"}");
    } else if (strncmp(h->text, "POST /token", 11) == 0) {
        snprintf(a->right, sizeof a->right, "t%d", ++a->tokens);
        snprintf(body, sizeof body,
                 "{\"access_token\":\"%s\",\"token_type\":\"Bearer\","
                 "\"refresh_token\":\"r\"}",
                 a->right);
        script_say(h, "200 OK", JSON, body);
    } else {
        serve_message(a, h);
    }
    return true;
}
