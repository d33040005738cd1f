/* The ways to a token: the URLs at which metadata is requested, the identification of the
 * client, and the requested scopes (2026-07-28 basic/authorization). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/crypto.h"
#include "support/flow_kit.h"
#include "wire/url.h"

static flow_kit k;

/* ---- the whole way ---- */

static void assert_pkce(char challenge[64], const char *verifier)
{
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_buf text;
    sgi_buf_init(&text, &sgi_mem_libc);
    assert_int_equal(strlen(verifier), 43);
    assert_true(sgi_crypto_sha256(digest, sgi_str_of(verifier)));
    sgi_buf_add_base64(&text, digest, sizeof digest, true);
    assert_true(sgi_str_eq(sgi_buf_str(&text), sgi_str_of(challenge)));
    sgi_buf_free(&text);
}

static void a_client_registers_asks_and_gets_a_token(void **state)
{
    (void)state;
    char challenge[64];
    flow_kit_open(&k);
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    flow_assert_token(&k, NULL);
    flow_discover(&k, FLOW_RESOURCE,
                  FLOW_SERVER_WITH(",\"token_endpoint_auth_methods_supported\":"
                                   "[\"client_secret_post\",\"none\"]"));
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
    flow_expect_post(&k, "https://as.example/register");
    assert_string_equal(
        k.text, "{\"client_name\":\"segue\",\"redirect_uris\":[\"" FLOW_REDIRECT
                "\"],\"grant_types\":[\"authorization_code\",\"refresh_token\"],"
                "\"response_types\":[\"code\"],\"token_endpoint_auth_method\":\"none\","
                "\"application_type\":\"native\"}");
    flow_answer(&k, 201, FLOW_CLIENT);
    flow_expect_browser(&k);
    assert_ptr_equal(strstr(k.text, "https://as.example/authorize?"), k.text);
    flow_assert_member(&k, "response_type", "code");
    flow_assert_member(&k, "client_id", "c1");
    flow_assert_member(&k, "redirect_uri", FLOW_REDIRECT);
    flow_assert_member(&k, "code_challenge_method", "S256");
    flow_assert_member(&k, "resource", FLOW_ENDPOINT);
    flow_assert_member(&k, "scope", NULL);
    flow_assert_member(&k, "prompt", NULL);
    flow_assert_member(&k, "state", sgi_flow_state_parameter(k.flow).p);
    assert_int_equal(sgi_flow_state_parameter(k.flow).n, SGI_RANDOM_TEXT);
    snprintf(challenge, sizeof challenge, "%s", flow_member(&k, "code_challenge"));
    assert_int_equal(flow_come_back(&k, "code=x%2F1"), SEGUE_OK);
    flow_expect_post(&k, "https://as.example/token");
    flow_assert_member(&k, "grant_type", "authorization_code");
    flow_assert_member(&k, "code", "x/1");
    flow_assert_member(&k, "redirect_uri", FLOW_REDIRECT);
    flow_assert_member(&k, "client_id", "c1");
    flow_assert_member(&k, "client_secret", NULL);
    flow_assert_member(&k, "resource", FLOW_ENDPOINT);
    assert_pkce(challenge, flow_member(&k, "code_verifier"));
    flow_answer(&k, 200, FLOW_TOKEN("t1", ",\"expires_in\":3600"));
    flow_assert_token(&k, "t1");
    assert_true(sgi_flow_token_is_from_grant(k.flow));
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    flow_kit_end(&k);
}

static void all_who_are_refused_wait_for_one_flow(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_to_browser(&k);
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 401, SGI_STR("Bearer"), 0),
                     SGI_FLOW_WAIT);
    assert_int_equal(sgi_flow_on_token_refused(
                         k.flow, 403, SGI_STR("Bearer error=insufficient_scope"), 0),
                     SGI_FLOW_WAIT);
    flow_expect_browser(&k);
    flow_grant(&k, FLOW_TOKEN("t1", ""));
    flow_assert_token(&k, "t1");
    /* A refusal that comes late. The request is sent again with the current token. */
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 401, SGI_STR("Bearer"), 0),
                     SGI_FLOW_GO);
    flow_assert_token(&k, "t1");
    flow_kit_end(&k);
}

static void other_refusals_are_no_matter_of_authorization(void **state)
{
    (void)state;
    flow_kit_open(&k);
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 403, SGI_STR(""), 0),
                     SGI_FLOW_OTHER);
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 403, SGI_STR("Bearer scope=a"), 0),
                     SGI_FLOW_OTHER);
    assert_int_equal(sgi_flow_on_token_refused(
                         k.flow, 403, SGI_STR("Bearer error=\"invalid_token\""), 0),
                     SGI_FLOW_OTHER);
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 404, SGI_STR(""), 0),
                     SGI_FLOW_OTHER);
    assert_int_equal(sgi_flow_next_need(k.flow), SGI_FLOW_NOTHING);
    flow_kit_end(&k);
}

/* ---- places ---- */

static void the_resource_is_looked_for_in_order(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_refuse(&k, 401, "Bearer resource_metadata=\"https://else.example/m.json\"");
    flow_get(&k, "https://else.example/m.json", 404, "");
    flow_get(&k, FLOW_RESOURCE_URL, 200, "<html>");
    flow_get(&k, FLOW_ROOT_URL, 200, FLOW_RESOURCE);
    flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
    flow_expect_post(&k, "https://as.example/register");
    flow_kit_end(&k);
}

static void places_of_other_endpoints(void **state)
{
    (void)state;
    static const struct {
        const char *endpoint, *first, *second;
    } rows[] = {
        {"https://a.example", "https://a.example/.well-known/oauth-protected-resource",
         NULL},
        {"https://a.example/", "https://a.example/.well-known/oauth-protected-resource",
         NULL},
        {"https://a.example/m/",
         "https://a.example/.well-known/oauth-protected-resource/m",
         "https://a.example/.well-known/oauth-protected-resource"},
        {"http://localhost:8/m?x=1#f",
         "http://localhost:8/.well-known/oauth-protected-resource/m?x=1",
         "http://localhost:8/.well-known/oauth-protected-resource"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sgi_url url;
        char server[200];
        flow_kit_prepare(&k);
        k.endpoint = rows[i].endpoint;
        flow_kit_begin(&k);
        flow_refuse(&k, 401, "");
        flow_get(&k, rows[i].first, 404, "");
        if (rows[i].second)
            flow_get(&k, rows[i].second, 401, "");
        assert_true(sgi_url_parse(sgi_str_of(rows[i].endpoint), &url));
        snprintf(server, sizeof server, "%.*s/.well-known/oauth-authorization-server",
                 (int)url.origin.n, url.origin.p);
        flow_get(&k, server, 404, "");
        flow_kit_end(&k);
    }
}

static void metadata_of_a_server_is_looked_for_in_order(void **state)
{
    (void)state;
    static const char *const places[] = {
        "https://as.example/.well-known/oauth-authorization-server/t1",
        "https://as.example/.well-known/openid-configuration/t1",
        "https://as.example/t1/.well-known/openid-configuration"};
    for (size_t found = 0; found < 4; found++) {
        flow_kit_open(&k);
        flow_refuse(&k, 401, "Bearer");
        flow_get(&k, FLOW_RESOURCE_URL, 200,
                 FLOW_RESOURCE_OF("https://as.example/t1", ""));
        for (size_t i = 0; i < found && i < 3; i++)
            flow_get(&k, places[i], 404, "");
        if (found < 3) {
            flow_get(&k, places[found], 200, FLOW_SERVER_OF("https://as.example/t1", ""));
            flow_expect_post(&k, "https://as.example/t1/register");
        } else {
            flow_assert_failed(&k, "has no metadata");
        }
        flow_kit_end(&k);
    }
    flow_kit_open(&k);
    flow_refuse(&k, 401, "Bearer");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_get(&k, FLOW_SERVER_URL, 404, "");
    flow_get(&k, FLOW_OPENID_URL, 404, "");
    flow_assert_failed(&k, "has no metadata");
    flow_kit_end(&k);
}

/* 2025-03-26: servers have no metadata of the resource, or no metadata at all. */
static void old_servers_serve_at_their_own_host(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_refuse(&k, 401, "");
    flow_get(&k, FLOW_RESOURCE_URL, 404, "");
    flow_get(&k, FLOW_ROOT_URL, 404, "");
    flow_get(&k, "https://mcp.example/.well-known/oauth-authorization-server", 200,
             FLOW_SERVER_OF("https://mcp.example", ""));
    flow_expect_post(&k, "https://mcp.example/register");
    flow_kit_end(&k);
    flow_kit_open(&k);
    flow_refuse(&k, 401, "");
    flow_get(&k, FLOW_RESOURCE_URL, 404, "");
    flow_get(&k, FLOW_ROOT_URL, 404, "");
    flow_get(&k, "https://mcp.example/.well-known/oauth-authorization-server", 404, "");
    flow_get(&k, "https://mcp.example/.well-known/openid-configuration", 404, "");
    flow_expect_post(&k, "https://mcp.example/register");
    flow_answer(&k, 201, FLOW_CLIENT);
    flow_expect_browser(&k);
    assert_ptr_equal(strstr(k.text, "https://mcp.example/authorize?"), k.text);
    flow_assert_member(&k, "resource", FLOW_ENDPOINT);
    assert_int_equal(flow_come_back(&k, "code=x"), SEGUE_OK);
    flow_expect_post(&k, "https://mcp.example/token");
    flow_answer(&k, 200, FLOW_TOKEN("t", ""));
    flow_assert_token(&k, "t");
    flow_kit_end(&k);
}

/* ---- who the client is ---- */

static void a_client_is_who_it_says_then_its_document_then_registered(void **state)
{
    (void)state;
    static const char documents[] =
        FLOW_SERVER_WITH(",\"client_id_metadata_document_supported\":true");
    static const char document[] = "https://app.example/client.json";
    static const struct {
        const char *own, *document, *server, *id; /* NULL = the client registers */
    } rows[] = {
        {"own", document, documents, "own"}, {NULL, document, documents, document},
        {NULL, document, FLOW_SERVER, NULL}, {NULL, NULL, documents, NULL},
        {"own", NULL, FLOW_SERVER, "own"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_prepare(&k);
        k.options.client_id = rows[i].own;
        k.options.client_metadata_url = rows[i].document;
        flow_kit_begin(&k);
        flow_discover(&k, FLOW_RESOURCE, rows[i].server);
        if (rows[i].id) {
            flow_expect_browser(&k);
            flow_assert_member(&k, "client_id", rows[i].id);
        } else {
            flow_expect_post(&k, "https://as.example/register");
        }
        flow_kit_end(&k);
    }
}

static void a_client_on_another_machine_is_a_web_application(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"https://app.example/cb", "web"},
        {"http://127.0.0.1:9/cb", "native"},
        {"https://localhost/cb", "native"},
        {"com.example.app:/cb", "native"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[64];
        flow_kit_prepare(&k);
        k.options.redirect_uri = rows[i][0];
        k.options.client_name = "n\"\xc3\xa9";
        flow_kit_begin(&k);
        flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
        flow_expect_post(&k, "https://as.example/register");
        snprintf(wanted, sizeof wanted, "\"application_type\":\"%s\"", rows[i][1]);
        assert_non_null(strstr(k.text, wanted));
        assert_non_null(strstr(k.text, "\"client_name\":\"n\\\"\xc3\xa9\""));
        flow_kit_end(&k);
    }
}

/* SEP-2352: credentials of one authorization server are never used at another. */
static void at_another_server_a_client_registers_anew(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_discover(
        &k, FLOW_RESOURCE_OF("https://as.example", ",\"scopes_supported\":[\"old\"]"),
        FLOW_SERVER);
    flow_expect_post(&k, "https://as.example/register");
    flow_answer(&k, 201, FLOW_CLIENT);
    flow_expect_browser(&k);
    flow_assert_member(&k, "scope", "old");
    flow_grant(&k, FLOW_TOKEN("t1", ",\"refresh_token\":\"r1\""));
    sgi_flow_on_token_accepted(k.flow, 1);
    flow_refuse(&k, 401, "Bearer");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE_OF("https://b.example", ""));
    flow_get(&k, "https://b.example/.well-known/oauth-authorization-server", 200,
             FLOW_SERVER_OF("https://b.example", ""));
    flow_expect_post(&k, "https://b.example/register");
    flow_answer(&k, 201, "{\"client_id\":\"c2\"}");
    flow_expect_browser(&k);
    flow_assert_member(&k, "client_id", "c2");
    flow_assert_member(&k, "scope", NULL);
    flow_kit_end(&k);
}

static void a_client_id_goes_to_its_own_server_only(void **state)
{
    (void)state;
    flow_kit_prepare(&k);
    k.options.client_id = "own";
    k.options.issuer = "https://other.example";
    flow_kit_begin(&k);
    flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
    flow_assert_failed(&k, "belongs to another one");
    flow_kit_end(&k);
    flow_kit_prepare(&k);
    k.options.client_id = "own";
    flow_kit_begin(&k);
    flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
    flow_expect_browser(&k);
    flow_grant(&k, FLOW_TOKEN("t1", ""));
    sgi_flow_on_token_accepted(k.flow, 1);
    flow_refuse(&k, 401, "Bearer");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE_OF("https://b.example", ""));
    flow_get(&k, "https://b.example/.well-known/oauth-authorization-server", 200,
             FLOW_SERVER_OF("https://b.example", ""));
    flow_assert_failed(&k, "belongs to another one");
    flow_kit_end(&k);
}

/* ---- scopes ---- */

static void
scopes_are_those_of_the_challenge_the_resource_or_the_application(void **state)
{
    (void)state;
    static const char offered[] =
        FLOW_RESOURCE_OF("https://as.example", ",\"scopes_supported\":[\"a\",\"b\",1]");
    static const char offline[] =
        FLOW_SERVER_WITH(",\"scopes_supported\":[\"offline_access\"]");
    static const struct {
        const char *challenge, *resource, *set, *server, *scope, *prompt;
    } rows[] = {
        {"Bearer scope=\"x y\"", offered, "z", FLOW_SERVER, "x y", NULL},
        {"Bearer", offered, "z", FLOW_SERVER, "a b", NULL},
        {"Bearer", FLOW_RESOURCE, "z z q", FLOW_SERVER, "z q", NULL},
        {"Bearer", FLOW_RESOURCE, NULL, FLOW_SERVER, NULL, NULL},
        {"Bearer scope=\"\"", FLOW_RESOURCE, NULL, FLOW_SERVER, NULL, NULL},
        {"Bearer scope=x", FLOW_RESOURCE, NULL, offline, "x offline_access", "consent"},
        {"Bearer", FLOW_RESOURCE, NULL, offline, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_prepare(&k);
        k.options.client_id = "c";
        k.options.scope = rows[i].set;
        flow_kit_begin(&k);
        flow_refuse(&k, 401, rows[i].challenge);
        flow_get(&k, FLOW_RESOURCE_URL, 200, rows[i].resource);
        flow_get(&k, FLOW_SERVER_URL, 200, rows[i].server);
        flow_expect_browser(&k);
        flow_assert_member(&k, "scope", rows[i].scope);
        flow_assert_member(&k, "prompt", rows[i].prompt);
        flow_kit_end(&k);
    }
}

#define LACKS(scope) "Bearer error=\"insufficient_scope\", scope=\"" scope "\""

/* SEP-2350: scopes that were granted before are requested again. */
static void a_step_up_asks_for_more_and_not_again(void **state)
{
    (void)state;
    uint64_t token;
    flow_kit_prepare(&k);
    k.options.client_id = "c";
    flow_kit_begin(&k);
    flow_refuse(&k, 401, "Bearer scope=\"a\"");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
    flow_expect_browser(&k);
    flow_grant(&k, FLOW_TOKEN("t1", ",\"refresh_token\":\"r1\""));
    flow_refuse(&k, 403, LACKS("b"));
    /* other requests continue with the current token */
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_expect_browser(&k); /* a refresh would grant no further scopes */
    flow_assert_member(&k, "scope", "a b");
    flow_grant(&k, FLOW_TOKEN("t2", ""));
    flow_assert_token(&k, "t2");
    sgi_flow_authorization_header(k.flow, &token);
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 403, SGI_STR(LACKS("b")), token),
                     SGI_FLOW_NO);
    assert_non_null(strstr(sgi_flow_failure_text(k.flow), "did not grant"));
    assert_int_equal(sgi_flow_on_token_refused(
                         k.flow, 403, SGI_STR("Bearer error=insufficient_scope"), token),
                     SGI_FLOW_NO);
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    flow_refuse(&k, 403, LACKS("b c"));
    flow_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_registers_asks_and_gets_a_token),
        cmocka_unit_test(all_who_are_refused_wait_for_one_flow),
        cmocka_unit_test(other_refusals_are_no_matter_of_authorization),
        cmocka_unit_test(the_resource_is_looked_for_in_order),
        cmocka_unit_test(places_of_other_endpoints),
        cmocka_unit_test(metadata_of_a_server_is_looked_for_in_order),
        cmocka_unit_test(old_servers_serve_at_their_own_host),
        cmocka_unit_test(a_client_is_who_it_says_then_its_document_then_registered),
        cmocka_unit_test(a_client_on_another_machine_is_a_web_application),
        cmocka_unit_test(at_another_server_a_client_registers_anew),
        cmocka_unit_test(a_client_id_goes_to_its_own_server_only),
        cmocka_unit_test(
            scopes_are_those_of_the_challenge_the_resource_or_the_application),
        cmocka_unit_test(a_step_up_asks_for_more_and_not_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
