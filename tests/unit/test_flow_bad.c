/* Bad servers, bad browsers and missing memory. Each ends the flow with a clear message,
 * or is ignored. No message contains a secret, and no user is asked again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/flow_kit.h"

#define TOKEN_URL "https://as.example/token"

static flow_kit k;

/* ---- metadata ---- */

static void a_resource_that_is_not_ours_ends_the_flow(void **state)
{
    (void)state;
    static const struct {
        const char *body, *why;
    } rows[] = {
        {"{\"resource\":\"https://evil.example/mcp\"}", "another resource: https://evil"},
        {"{\"resource\":\"https://mcp.example/other\"}", "another resource"},
        {"{\"resource\":\"http://mcp.example/api/mcp\"}", "another resource"},
        {"{\"resource\":\"not a url\"}", "another resource"},
        {"{\"resource\":\"\\u0007\\n\"}", "another resource"},
        {"{\"resource\":1}", "another resource"},
        {"{}", "another resource"},
        {FLOW_RESOURCE_OF("ftp://as.example", ""), "no authorization server"},
        {FLOW_RESOURCE_OF("http://as.example", ""), "no authorization server"},
        {FLOW_RESOURCE_OF("http://localhost:1", ""), "no authorization server"},
        {FLOW_RESOURCE_OF("https://u:p@as.example", ""), "no authorization server"},
        {FLOW_RESOURCE_OF("https://as.example#f", ""), "no authorization server"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_open(&k);
        flow_refuse(&k, 401, "Bearer");
        flow_get(&k, FLOW_RESOURCE_URL, 200, rows[i].body);
        flow_assert_failed(&k, rows[i].why);
        flow_kit_end(&k);
    }
}

static void the_first_server_that_may_be_asked_is(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_refuse(&k, 401, "Bearer");
    flow_get(&k, FLOW_RESOURCE_URL, 200,
             "{\"resource\":\"https://mcp.example\",\"authorization_servers\":[1,"
             "\"http://x\",\"https://as.example\",\"https://b.example\"]}");
    flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
    flow_kit_end(&k);
    flow_kit_prepare(&k); /* unless the application knows another one of them */
    k.options.issuer = "https://b.example";
    flow_kit_begin(&k);
    flow_refuse(&k, 401, "Bearer");
    flow_get(&k, FLOW_RESOURCE_URL, 200,
             "{\"resource\":\"https://mcp.example\",\"authorization_servers\":"
             "[\"https://as.example\",\"https://b.example\"]}");
    flow_get(&k, "https://b.example/.well-known/oauth-authorization-server", 200,
             FLOW_SERVER_OF("https://b.example", ""));
    flow_kit_end(&k);
    flow_kit_open(&k); /* the metadata names no server: treated as older metadata without
                        * that list */
    flow_refuse(&k, 401, "Bearer");
    flow_get(&k, FLOW_RESOURCE_URL, 200, "{\"resource\":\"https://mcp.example\"}");
    flow_get(&k, "https://mcp.example/.well-known/oauth-authorization-server", 200,
             FLOW_SERVER_OF("https://mcp.example", ""));
    flow_kit_end(&k);
}

#define SERVER_BUT(issuer, authorize, token, more)                                       \
    "{\"issuer\":" issuer ",\"authorization_endpoint\":" authorize                       \
    ",\"token_endpoint\":" token more "}"
#define ISSUER "\"https://as.example\""
#define AUTHORIZE "\"https://as.example/a\""
#define TOKEN "\"https://as.example/t\""
#define S256 ",\"code_challenge_methods_supported\":[\"S256\"]"

static void a_server_that_cannot_be_trusted_ends_the_flow(void **state)
{
    (void)state;
    static const struct {
        const char *body, *why;
    } rows[] = {
        {SERVER_BUT("\"https://evil.example\"", AUTHORIZE, TOKEN, S256),
         "another issuer"},
        {SERVER_BUT("\"https://as.example/t1\"", AUTHORIZE, TOKEN, S256),
         "another issuer"},
        {SERVER_BUT("\"https://AS.example\"", AUTHORIZE, TOKEN, S256), "another issuer"},
        {SERVER_BUT("\"https://as.example:443\"", AUTHORIZE, TOKEN, S256),
         "another issuer"},
        {SERVER_BUT("1", AUTHORIZE, TOKEN, S256), "another issuer"},
        {SERVER_BUT("null", AUTHORIZE, TOKEN, S256), "another issuer"},
        {"{}", "another issuer"},
        {SERVER_BUT(ISSUER, AUTHORIZE, "null", S256), "no token endpoint"},
        {SERVER_BUT(ISSUER, AUTHORIZE, "\"http://as.example/t\"", S256),
         "no token endpoint"},
        {SERVER_BUT(ISSUER, AUTHORIZE, "\"http://localhost/t\"", S256),
         "no token endpoint"},
        {SERVER_BUT(ISSUER, "null", TOKEN, S256), "no authorization endpoint"},
        {SERVER_BUT(ISSUER, "\"javascript:alert(1)\"", TOKEN, S256),
         "no authorization endpoint"},
        {SERVER_BUT(ISSUER, "\"file:///etc/passwd\"", TOKEN, S256),
         "no authorization endpoint"},
        {SERVER_BUT(ISSUER, AUTHORIZE, TOKEN, S256 ",\"registration_endpoint\":\"x\""),
         "registration endpoint"},
        {SERVER_BUT(ISSUER, AUTHORIZE, TOKEN, ""), "PKCE"},
        {SERVER_BUT(ISSUER, AUTHORIZE, TOKEN,
                    ",\"code_challenge_methods_supported\":[\"plain\"]"),
         "PKCE"},
        {SERVER_BUT(ISSUER, AUTHORIZE, TOKEN,
                    ",\"code_challenge_methods_supported\":\"S256\""),
         "PKCE"},
        {SERVER_BUT(ISSUER, AUTHORIZE, TOKEN, S256), "the server offers no registration"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_open(&k);
        flow_discover(&k, FLOW_RESOURCE, rows[i].body);
        flow_assert_failed(&k, rows[i].why);
        flow_kit_end(&k);
    }
    flow_kit_open(&k); /* two spellings of one URL count as the same URL */
    flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER_OF("https://as.example", ""));
    flow_expect_post(&k, "https://as.example/register");
    flow_kit_end(&k);
    flow_kit_open(&k);
    flow_discover(&k, FLOW_RESOURCE_OF("https://as.example/", ""), FLOW_SERVER);
    flow_expect_post(&k, "https://as.example/register");
    flow_kit_end(&k);
}

/* A URL (place) that fails is not skipped, because an attacker who can make it fail could
 * choose the next URL. */
static void a_place_that_fails_is_not_passed_over(void **state)
{
    (void)state;
    for (int32_t status = 500; status <= 504; status += 4) {
        flow_kit_open(&k);
        flow_refuse(&k, 401, "Bearer");
        flow_get(&k, FLOW_RESOURCE_URL, status, FLOW_RESOURCE);
        flow_assert_put_off(&k, status == 500 ? "HTTP status 500" : "HTTP status 504");
        flow_kit_end(&k);
        flow_kit_open(&k);
        flow_discover(&k, FLOW_RESOURCE, "[]"); /* this URL has no metadata */
        flow_get(&k, FLOW_OPENID_URL, status, FLOW_SERVER);
        flow_assert_put_off(&k, "HTTP status 50");
        flow_kit_end(&k);
    }
    flow_kit_open(&k);
    flow_refuse(&k, 401, "Bearer");
    sgi_flow_on_no_answer(k.flow, "Could not resolve host\n\x1b[2J", true);
    flow_assert_put_off(&k, "the metadata of the resource: Could not resolve host[2J");
    flow_kit_end(&k);
    flow_kit_open(&k);
    flow_refuse(&k, 401, "Bearer");
    sgi_flow_on_no_answer(k.flow, "the certificate has expired", false);
    flow_assert_failed(&k, "the metadata of the resource: the certificate has expired");
    flow_kit_end(&k);
    /* a temporary failure does not mean that the URL has no metadata */
    for (int32_t status = 408; status <= 429; status += 21) {
        flow_kit_open(&k);
        flow_refuse(&k, 401, "Bearer");
        flow_get(&k, FLOW_RESOURCE_URL, status, "");
        flow_assert_put_off(&k, "HTTP status 4");
        flow_kit_end(&k);
    }
}

static void redirects_stay_at_the_origin_and_are_few(void **state)
{
    (void)state;
    static const char *const away[] = {
        "https://evil.example/",    "http://mcp.example/m", "//evil.example/", "", "m",
        "https://mcp.example:444/m"};
    flow_kit_open(&k);
    flow_refuse(&k, 401, "Bearer");
    sgi_flow_on_http_redirect(k.flow, SGI_STR("/1"));
    sgi_flow_on_http_redirect(k.flow, SGI_STR("https://mcp.example/2"));
    sgi_flow_on_http_redirect(k.flow, SGI_STR("/3"));
    flow_get(&k, "https://mcp.example/3", 200, FLOW_RESOURCE);
    flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
    flow_expect_post(&k, "https://as.example/register");
    sgi_flow_on_http_redirect(k.flow, SGI_STR("/r"));
    flow_assert_failed(&k, "the registration is redirected");
    flow_kit_end(&k);
    flow_kit_open(&k);
    flow_refuse(&k, 401, "Bearer");
    for (int i = 0; i < 4; i++)
        sgi_flow_on_http_redirect(k.flow, SGI_STR("/again"));
    flow_get(&k, FLOW_ROOT_URL, 200, FLOW_RESOURCE); /* the URL has no metadata, so the
                                                      * next URL is tried */
    flow_kit_end(&k);
    for (size_t i = 0; i < sizeof away / sizeof *away; i++) {
        flow_kit_open(&k);
        flow_refuse(&k, 401, "Bearer");
        sgi_flow_on_http_redirect(k.flow, sgi_str_of(away[i]));
        flow_get(&k, FLOW_ROOT_URL, 200, FLOW_RESOURCE);
        flow_kit_end(&k);
    }
    flow_kit_open(&k);
    flow_to_browser(&k);
    assert_int_equal(flow_come_back(&k, "code=x"), SEGUE_OK);
    sgi_flow_on_http_redirect(k.flow, SGI_STR("https://as.example/token2"));
    flow_assert_failed(&k, "the token endpoint is redirected");
    flow_kit_end(&k);
}

static void a_challenge_may_not_send_us_into_the_clear(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://mcp.example/m", "http://localhost/m",
                                       "ftp://mcp.example/m", "m", ""};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        char header[100];
        flow_kit_open(&k);
        snprintf(header, sizeof header, "Bearer resource_metadata=\"%s\"", urls[i]);
        flow_refuse(&k, 401, header);
        flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
        flow_kit_end(&k);
    }
}

/* ---- registration and tokens ---- */

static void a_registration_may_be_refused_or_nonsense(void **state)
{
    (void)state;
    static const struct {
        int32_t status;
        const char *body, *why;
    } rows[] = {
        {400, "{\"error\":\"invalid_redirect_uri\",\"error_description\":\"no\\u0007\"}",
         "the registration was refused: invalid_redirect_uri"},
        {403, "", "the registration was answered with HTTP status 403"},
        {201, "", "the answer to the registration is invalid"},
        {201, "{}", "the answer to the registration is invalid"},
        {201, "{\"client_id\":1}", "the answer to the registration is invalid"},
        {201, "{\"client_id\":\"\"}", "the answer to the registration is invalid"},
        {201, "{\"client_id\":\"a\\r\\nb\"}",
         "the answer to the registration is invalid"},
        {201, "{\"client_id\":\"a\",\"client_secret\":{}}",
         "the answer to the registration is invalid"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_open(&k);
        flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
        flow_expect_post(&k, "https://as.example/register");
        flow_answer(&k, rows[i].status, rows[i].body);
        flow_assert_failed(&k, rows[i].why);
        flow_kit_end(&k);
    }
    flow_kit_prepare(&k);
    k.options.no_registration = 1;
    flow_kit_begin(&k);
    flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
    flow_assert_failed(&k, "switched off");
    flow_kit_end(&k);
}

static void what_is_no_bearer_token_is_none(void **state)
{
    (void)state;
    static const struct {
        int32_t status;
        const char *body, *why;
    } rows[] = {
        {200, "", "did not give a bearer token"},
        {200, "[]", "did not give a bearer token"},
        {200, "{\"access_token\":\"SECRET\"}", "did not give a bearer token"},
        {200, "{\"access_token\":\"SECRET\",\"token_type\":\"DPoP\"}",
         "did not give a bearer token"},
        {200, "{\"access_token\":\"SECRET\",\"token_type\":\"bearerx\"}",
         "did not give a bearer token"},
        {200, "{\"token_type\":\"Bearer\"}", "did not give a bearer token"},
        {200, FLOW_TOKEN("", ""), "did not give a bearer token"},
        {200, FLOW_TOKEN("SECRET x", ""), "did not give a bearer token"},
        {200, FLOW_TOKEN("SECRET\\r\\nX: y", ""), "did not give a bearer token"},
        {200, FLOW_TOKEN("SECRET\\u0000", ""), "did not give a bearer token"},
        {200, "{\"access_token\":[\"SECRET\"],\"token_type\":\"Bearer\"}",
         "did not give a bearer token"},
        {400, "{\"error\":\"invalid_grant\",\"access_token\":\"SECRET\"}",
         "the token endpoint was refused: invalid_grant"},
        {400, "SECRET", "HTTP status 400"},
        {302, "SECRET", "HTTP status 302"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_open(&k);
        flow_to_browser(&k);
        flow_answer(&k, 200, "nobody asked"); /* this does not help either */
        flow_expect_browser(&k);
        assert_int_equal(flow_come_back(&k, "code=SECRET"), SEGUE_OK);
        flow_expect_post(&k, TOKEN_URL);
        flow_answer(&k, rows[i].status, rows[i].body);
        flow_assert_failed(&k, rows[i].why);
        assert_null(strstr(sgi_flow_failure_text(k.flow), "SECRET"));
        flow_kit_end(&k);
    }
    flow_kit_open(&k);
    flow_to_browser(&k);
    assert_int_equal(flow_come_back(&k, "code=SECRET"), SEGUE_OK);
    flow_expect_post(&k, TOKEN_URL);
    flow_answer(&k, 500, "{\"error\":1,\"x\":\"SECRET\"}");
    flow_assert_put_off(&k, "HTTP status 500");
    assert_null(strstr(sgi_flow_failure_text(k.flow), "SECRET"));
    flow_kit_end(&k);
}

/* A kept code that could not be exchanged goes only to the server that gave it. */
static void a_code_that_is_kept_goes_to_no_other_server(void **state)
{
    (void)state;
    for (int moves = 0; moves < 2; moves++) {
        flow_kit_open(&k);
        flow_to_browser(&k);
        assert_int_equal(flow_come_back(&k, "code=x1"), SEGUE_OK);
        flow_expect_post(&k, TOKEN_URL);
        flow_answer(&k, 503, "");
        flow_assert_put_off(&k, "the token endpoint was answered with HTTP status 503");
        flow_refuse(&k, 401, "Bearer");
        if (moves) {
            flow_get(&k, FLOW_RESOURCE_URL, 200,
                     FLOW_RESOURCE_OF("https://other.example", ""));
            flow_get(&k, "https://other.example/.well-known/oauth-authorization-server",
                     200, FLOW_SERVER_OF("https://other.example", ""));
            flow_expect_post(&k, "https://other.example/register");
            flow_answer(&k, 201, FLOW_CLIENT);
            flow_expect_browser(&k);
        } else {
            flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
            flow_expect_post(&k, TOKEN_URL);
            flow_assert_member(&k, "code", "x1");
        }
        flow_kit_end(&k);
    }
}

static void an_end_that_is_no_number_is_not_known(void **state)
{
    (void)state;
    static const char *const ends[] = {"\"x\"", "{}",   "-1",   "0",
                                       "1e300", "\"\"", "null", "99999999999999999"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char token[200];
        flow_kit_open(&k);
        snprintf(token, sizeof token,
                 "{\"access_token\":\"t\",\"token_type\":\"bEaReR\",\"refresh_token\":"
                 "\"r\",\"expires_in\":%s}",
                 ends[i]);
        flow_enter(&k, token);
        fake_host_advance(&k.host, 100000000);
        assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
        flow_assert_token(&k, "t");
        flow_kit_end(&k);
    }
}

/* A user is not sent to the browser again and again. */
static void a_server_that_refuses_what_it_asked_for_ends_the_flow(void **state)
{
    (void)state;
    uint64_t token;
    flow_kit_open(&k);
    flow_enter(&k, FLOW_TOKEN("t1", ",\"refresh_token\":\"r\""));
    sgi_flow_authorization_header(k.flow, &token);
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 401, SGI_STR("Bearer"), token),
                     SGI_FLOW_NO);
    flow_assert_failed(&k, "just granted");
    /* other requests were sent with that token, too */
    assert_int_equal(sgi_flow_on_token_refused(k.flow, 401, SGI_STR("Bearer"), token),
                     SGI_FLOW_NO);
    assert_int_equal(sgi_flow_authorization_header(k.flow, &token).n, 0);
    flow_refuse(&k, 401, "Bearer"); /* the next request starts a new flow */
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_expect_browser(&k);
    flow_kit_end(&k);
}

/* ---- the browser ---- */

static void an_answer_by_the_browser_is_looked_at_before_it_is_used(void **state)
{
    (void)state;
    static const char says[] =
        FLOW_SERVER_WITH(",\"authorization_response_iss_parameter_supported\":true");
    static const struct {
        const char *server, *answer, *why; /* why NULL = the answer is accepted */
    } rows[] = {
        {FLOW_SERVER, "code=x", NULL},
        {FLOW_SERVER, "code=x&iss=https%3A%2F%2Fas.example", NULL},
        {FLOW_SERVER, "code=x&iss=https://evil.example", "another issuer"},
        {says, "code=x&iss=https%3A%2F%2Fas.example", NULL},
        {says, "code=x", "does not name its issuer"},
        {says, "code=x&iss=https%3A%2F%2Fas.example%2F", "another issuer"},
        {says, "code=x&iss=https%3A%2F%2FAS.example", "another issuer"},
        {says, "code=x&iss=https%3A%2F%2Fas.example:443", "another issuer"},
        {says, "code=x&iss=", "another issuer"},
        {says, "code=x&iss=https%3A%2F%2Fas.example&iss=b", "another issuer"},
        {says, "error=access_denied&error_description=EVIL&iss=b", "another issuer"},
        {says, "error=access_denied&error_description=EVIL", "does not name"},
        {says, "error=access_denied&iss=https%3A%2F%2Fas.example", "access_denied"},
        {FLOW_SERVER, "error=access_denied&error_description=go%20away",
         "access_denied: go away"},
        {FLOW_SERVER, "error=a%1bb", "no code"},
        {FLOW_SERVER, "error=a&error=b", "no code"},
        {FLOW_SERVER, "", "no code"},
        {FLOW_SERVER, "code=", "no code"},
        {FLOW_SERVER, "code=x&code=y", "no code"},
        {FLOW_SERVER, "code=%zz", "no code"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_prepare(&k);
        k.options.client_id = "c";
        flow_kit_begin(&k);
        flow_discover(&k, FLOW_RESOURCE, rows[i].server);
        flow_expect_browser(&k);
        assert_int_equal(flow_come_back(&k, rows[i].answer), SEGUE_OK);
        if (rows[i].why) {
            flow_assert_failed(&k, rows[i].why);
            assert_null(strstr(sgi_flow_failure_text(k.flow), "EVIL"));
        } else {
            flow_expect_post(&k, TOKEN_URL);
        }
        flow_kit_end(&k);
    }
}

static segue_status back(const char *url)
{
    return sgi_flow_on_browser_redirect(&k.host.engine, sgi_str_of(url));
}

static void an_answer_with_another_state_changes_nothing(void **state)
{
    (void)state;
    char url[300];
    flow_kit_open(&k);
    assert_int_equal(back(FLOW_REDIRECT "?code=x&state=y"), SEGUE_E_NOT_FOUND);
    flow_to_browser(&k);
    assert_int_equal(back(FLOW_REDIRECT "?code=x&state=y"), SEGUE_E_NOT_FOUND);
    assert_int_equal(back(FLOW_REDIRECT "?error=x&state=y"), SEGUE_E_NOT_FOUND);
    assert_int_equal(back(FLOW_REDIRECT "?code=x"), SEGUE_E_INVALID);
    assert_int_equal(back(FLOW_REDIRECT "?code=x&state="), SEGUE_E_INVALID);
    assert_int_equal(back(FLOW_REDIRECT "?code=x&state=%zz"), SEGUE_E_INVALID);
    assert_int_equal(back(FLOW_REDIRECT), SEGUE_E_INVALID);
    assert_int_equal(back(""), SEGUE_E_INVALID);
    snprintf(url, sizeof url, "?code=x&state=%s&state=%s",
             sgi_flow_state_parameter(k.flow).p, sgi_flow_state_parameter(k.flow).p);
    assert_int_equal(back(url), SEGUE_E_INVALID);
    flow_expect_browser(&k);
    snprintf(url, sizeof url, "code=x&state=%s#f", sgi_flow_state_parameter(k.flow).p);
    assert_int_equal(back(url), SEGUE_OK); /* the query alone is enough */
    assert_int_equal(back(url), SEGUE_E_NOT_FOUND);
    flow_expect_post(&k, TOKEN_URL);
    flow_kit_end(&k);
}

static void nobody_may_agree(void **state)
{
    (void)state;
    flow_kit_open(&k);
    assert_int_equal(sgi_flow_consent_timeout_ms(k.flow), 600000);
    sgi_flow_on_consent_timeout(k.flow);
    assert_int_equal(sgi_flow_next_need(k.flow), SGI_FLOW_NOTHING);
    flow_to_browser(&k);
    sgi_flow_on_consent_timeout(k.flow);
    flow_assert_failed(&k, "the user did not agree");
    flow_kit_end(&k);
    flow_kit_open(&k);
    flow_to_browser(&k);
    sgi_flow_stop(k.flow);
    assert_int_equal(sgi_flow_status(k.flow), SEGUE_E_CLOSED);
    flow_kit_end(&k);
    flow_kit_open(&k);
    flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
    flow_expect_post(&k, "https://as.example/register");
    k.host.random_fails = true;
    flow_answer(&k, 201, FLOW_CLIENT);
    flow_assert_failed(&k, "no random bytes");
    flow_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resource_that_is_not_ours_ends_the_flow),
        cmocka_unit_test(the_first_server_that_may_be_asked_is),
        cmocka_unit_test(a_server_that_cannot_be_trusted_ends_the_flow),
        cmocka_unit_test(a_place_that_fails_is_not_passed_over),
        cmocka_unit_test(redirects_stay_at_the_origin_and_are_few),
        cmocka_unit_test(a_challenge_may_not_send_us_into_the_clear),
        cmocka_unit_test(a_registration_may_be_refused_or_nonsense),
        cmocka_unit_test(what_is_no_bearer_token_is_none),
        cmocka_unit_test(a_code_that_is_kept_goes_to_no_other_server),
        cmocka_unit_test(an_end_that_is_no_number_is_not_known),
        cmocka_unit_test(a_server_that_refuses_what_it_asked_for_ends_the_flow),
        cmocka_unit_test(an_answer_by_the_browser_is_looked_at_before_it_is_used),
        cmocka_unit_test(an_answer_with_another_state_changes_nothing),
        cmocka_unit_test(nobody_may_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
