/* A listener that requires tokens (2026-07-28 and 2025-11-25 basic/authorization; RFC
 * 9728, RFC 6750): which callers are accepted, what the others are told, and where they
 * learn how to get a token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/bearer_kit.h"

#define CLAIMS(iss, aud, more)                                                           \
    "{\"iss\":\"" iss "\",\"aud\":\"" aud "\",\"sub\":\"ada\"" more "}"
#define SOON ",\"exp\":1764000600"
#define WHERE "resource_metadata=\"" KIT_METADATA "\""

static char *greet(void)
{
    return http_call("1", "greet", "{\"name\":\"x\"}");
}

static void expect_challenge(const http_reply *reply, const char *challenge)
{
    const char *found = http_reply_header(reply, "WWW-Authenticate");
    if (strcmp(found, challenge) != 0)
        fail_msg("%s\ninstead of\n%s", found, challenge);
}

/* ---- who is accepted ---- */

/* The connection goes on: the same client comes again with a token. */
static void no_token_is_told_where_to_get_one(void **state)
{
    bearer_kit k = {.options = {.required_scopes = "mcp"}};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    bearer_ask(&c, greet(), NULL, 401, &reply);
    expect_challenge(&reply, "Bearer scope=\"mcp\", " WHERE);
    assert_non_null(strstr(reply.body, "\"code\":-32600"));
    assert_string_equal(http_reply_header(&reply, "Connection"), "");
    http_reply_free(&reply);
    char *token = bearer_token(&k, "ada", "mcp", 600);
    for (int i = 0; i < 3; i++)
        bearer_ask(&c, greet(), token, 200, NULL);
    /* the connection does not stand for a caller */
    bearer_ask(&c, greet(), NULL, 401, NULL);
    free(token);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

static char *with_authorization(const char *value)
{
    char line[256];
    snprintf(line, sizeof line, "Authorization: %s\r\n", value);
    return http_post(line, "{}");
}

static void other_schemes_are_no_token(void **state)
{
    static const char *const values[] = {"Basic YTpi", "Bearerx y", "DPoP x", "", "Bea"};
    static const char *const empty[] = {"Bearer",    "Bearer ",    "Bearer a b",
                                        "Bearer =",  "Bearer a=b", "Bearer \"x\"",
                                        "Bearer a,b"};
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        bearer_ask(&c, with_authorization(values[i]), NULL, 401, &reply);
        expect_challenge(&reply, "Bearer " WHERE);
        http_reply_free(&reply);
    }
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        bearer_ask(&c, with_authorization(empty[i]), NULL, 401, &reply);
        expect_challenge(&reply, "Bearer error=\"invalid_token\", error_description="
                                 "\"The token is malformed\", " WHERE);
        http_reply_free(&reply);
    }
    /* Any case and more blanks are accepted; a malformed token is refused like any bad
     * one. */
    char *token = bearer_token(&k, "ada", "", 600);
    char line[2048];
    snprintf(line, sizeof line, "authorization:  bEARER   %s  \r\n", token);
    char *request = greet(), *behind = strstr(request, "\r\n") + 2;
    char *text = malloc(strlen(request) + strlen(line) + 1);
    sprintf(text, "%.*s%s%s", (int)(behind - request), request, line, behind);
    bearer_ask(&c, text, NULL, 200, NULL);
    free(request);
    free(token);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* Each wrong claim is refused, and the answer contains no part of the token. */
static void bad_tokens_are_refused(void **state)
{
    static const struct {
        const char *claims;
        const char *why;
    } rows[] = {
        {CLAIMS("https://other.example", KIT_RESOURCE, SOON),
         "The token comes from another issuer"},
        {CLAIMS(KIT_ISSUER, "https://other.example/mcp", SOON),
         "The token is for another audience"},
        {CLAIMS(KIT_ISSUER, KIT_RESOURCE, ",\"exp\":1763999000"),
         "The token has expired"},
        {CLAIMS(KIT_ISSUER, KIT_RESOURCE, SOON ",\"nbf\":1764000100"),
         "The token is not valid yet"},
        {CLAIMS(KIT_ISSUER, KIT_RESOURCE, ""), "A claim of the token is malformed"},
    };
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    char challenge[512];
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *token = bearer_token_of(&k, rows[i].claims);
        bearer_ask(&c, greet(), token, 401, &reply);
        snprintf(challenge, sizeof challenge,
                 "Bearer error=\"invalid_token\", error_description=\"%s\", " WHERE,
                 rows[i].why);
        expect_challenge(&reply, challenge);
        assert_null(strstr(reply.body, token));
        http_reply_free(&reply);
        free(token);
    }
    http_caller_close(&c);
    bearer_kit_end(&k);
}

static void forged_tokens_are_refused(void **state)
{
    static const char good[] = CLAIMS(KIT_ISSUER, KIT_RESOURCE, SOON);
    static const char nobody[] = "{\"alg\":\"ES256\",\"kid\":\"two\"}";
    bearer_kit k = {0};
    http_caller c;
    token_key other;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    token_key_make(&other, TOKEN_P256, "one");
    char *pem = token_key_pem(&k.key);
    char *tokens[] = {
        token_sign(NULL, "none", "{\"alg\":\"none\"}", good),
        token_sign(NULL, "none", KIT_HEADER, good),
        token_sign_hs(pem, strlen(pem), "{\"alg\":\"HS256\",\"kid\":\"one\"}", good),
        token_sign(&other, "ES256", KIT_HEADER, good),
        token_sign(&k.key, "ES256", nobody, good),
        bearer_token_of(&k, good),
    };
    size_t count = sizeof tokens / sizeof *tokens;
    /* the token is remembered as accepted */
    bearer_ask(&c, greet(), tokens[count - 1], 200, NULL);
    /* with one changed byte it is another token */
    tokens[count - 1][strlen(tokens[count - 1]) - 9] ^= 1;
    for (size_t i = 0; i < count; i++) {
        bearer_ask(&c, greet(), tokens[i], 401, NULL);
        free(tokens[i]);
    }
    char *nameless = token_sign(&k.key, "ES256", "{\"alg\":\"ES256\"}", good);
    bearer_ask(&c, greet(), nameless, 200, NULL); /* only one key fits */
    free(nameless);
    free(pem);
    token_key_free(&other);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

static char *in_query(const char *query)
{
    char *request = malloc(512);
    sprintf(request,
            "POST /mcp?%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
            "application/json\r\nContent-Length: 2\r\n\r\n{}",
            query);
    return request;
}

static void tokens_have_one_place(void **state)
{
    static const char *const queries[] = {"access_token=x", "a=b&access_token=x",
                                          "access_token=", "access_token",
                                          "access_token=x&access_token=y"};
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    char *token = bearer_token(&k, "ada", "", 600);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        bearer_ask(&c, in_query(queries[i]), i % 2 ? token : NULL, 400, &reply);
        assert_non_null(strstr(http_reply_header(&reply, "WWW-Authenticate"),
                               "Bearer error=\"invalid_request\""));
        http_reply_free(&reply);
    }
    bearer_ask(&c, in_query("token=x&my_access_token=y"), NULL, 401, NULL);
    /* Two headers with a token are ambiguous. */
    bearer_ask(&c, bearer_with(greet(), token), token, 400, NULL);
    bearer_ask(&c, greet(), token, 200, NULL);
    free(token);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

static void large_tokens_are_refused(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    char large[40 * 1024];
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    memset(large, 'a', sizeof large);
    large[17 * 1024] = 0;
    bearer_ask(&c, greet(), large, 401, NULL);
    large[17 * 1024] = 'a';
    large[sizeof large - 1] = 0;
    bearer_ask(&c, greet(), large, 431, NULL); /* the headers are too large */
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* A refused caller cannot make the server hold a long body. */
static void long_bodies_of_nobody_are_not_read(void **state)
{
    bearer_kit k = {0};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    http_caller_say(&c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                        "application/json\r\nContent-Length: 3000000\r\n\r\n{");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 401);
    http_reply_free(&reply);
    http_caller_until_closed(&c);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* ---- metadata ---- */

static void ask_for(http_caller *c, const char *method, const char *path, int status,
                    http_reply *reply)
{
    char request[512];
    snprintf(request, sizeof request,
             "%s %s HTTP/1.1\r\nHost: mcp.example.com\r\nOrigin: https://page.example\r\n"
             "Access-Control-Request-Method: GET\r\n"
             "Access-Control-Request-Headers: mcp-protocol-version\r\n\r\n",
             method, path);
    http_caller_say(c, request);
    http_caller_read(c, reply);
    if (reply->status != status)
        fail_msg("%s %s: %d", method, path, reply->status);
}

#define METADATA                                                                         \
    "{\"resource\":\"" KIT_RESOURCE "\",\"authorization_servers\":[\"" KIT_ISSUER        \
    "\",\"https://b.example/x\"],\"scopes_supported\":[\"read\",\"write\"],"             \
    "\"bearer_methods_supported\":[\"header\"],\"resource_name\":\"My \\\"server\\\"\"," \
    "\"resource_documentation\":\"https://docs.example\"}"

/* Metadata is given without a token. */
static void on_bearer(void *user, segue_transport *transport, segue_bearer *bearer)
{
    (void)user;
    (void)transport;
    (void)bearer;
    fail();
}

static void metadata_is_for_everybody(void **state)
{
    static const char *const paths[] = {"/.well-known/oauth-protected-resource",
                                        "/.well-known/oauth-protected-resource/mcp",
                                        "/.well-known/oauth-protected-resource/inner"};
    bearer_kit k = {
        .options = {.authorization_servers = KIT_ISSUER "  https://b.example/x ",
                    .on_bearer = on_bearer,
                    .scopes_supported = "read write",
                    .resource_name = "My \"server\"",
                    .documentation = "https://docs.example"},
        .s = {.listen = {.path = "/inner"}}};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    for (size_t i = 0; i < 3; i++) {
        ask_for(&c, "GET", paths[i], 200, &reply);
        assert_string_equal(reply.body, METADATA);
        assert_string_equal(http_reply_header(&reply, "Content-Type"),
                            "application/json");
        assert_string_equal(http_reply_header(&reply, "Access-Control-Allow-Origin"),
                            "*");
        assert_non_null(strstr(http_reply_header(&reply, "Cache-Control"), "max-age="));
        http_reply_free(&reply);
        ask_for(&c, "OPTIONS", paths[i], 204, &reply);
        assert_string_equal(http_reply_header(&reply, "Access-Control-Allow-Origin"),
                            "*");
        assert_string_equal(http_reply_header(&reply, "Access-Control-Allow-Headers"),
                            "mcp-protocol-version");
        http_reply_free(&reply);
        ask_for(&c, "POST", paths[i], 405, &reply);
        assert_string_equal(http_reply_header(&reply, "Allow"), "GET, HEAD, OPTIONS");
        http_reply_free(&reply);
    }
    ask_for(&c, "GET", "/.well-known/oauth-protected-resource/other", 403, &reply);
    http_reply_free(&reply); /* like any other path: this Host is not served */
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* The listener's own URL is the resource when none is set. */
static void the_listener_is_its_own_resource(void **state)
{
    bearer_kit k = {.own_resource = 1};
    http_caller c;
    http_reply reply;
    char expected[256], claims[512];
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    bearer_ask(&c, greet(), NULL, 401, &reply);
    snprintf(expected, sizeof expected,
             "Bearer resource_metadata=\"http://127.0.0.1:%d"
             "/.well-known/oauth-protected-resource/mcp\"",
             k.s.port);
    expect_challenge(&reply, expected);
    http_reply_free(&reply);
    snprintf(claims, sizeof claims,
             "{\"iss\":\"" KIT_ISSUER "\",\"aud\":\"http://127.0.0.1:%d/mcp\","
             "\"sub\":\"ada\",\"exp\":1764000600}",
             k.s.port);
    char *token = bearer_token_of(&k, claims);
    bearer_ask(&c, greet(), token, 200, NULL);
    free(token);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* The health path is for machines without a token; browsers may read refusals. */
static void what_needs_no_token(void **state)
{
    bearer_kit k = {.s = {.listen = {.health_path = "/health", .cors = 1}}};
    http_caller c;
    http_reply reply;
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    http_caller_say(&c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(http_caller_status(&c), 200);
    http_caller_say(&c, "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: "
                        "http://localhost\r\nAccess-Control-Request-Headers: "
                        "authorization\r\n\r\n");
    assert_int_equal(http_caller_status(&c), 204);
    http_caller_say(&c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: "
                        "http://localhost\r\nContent-Type: application/json\r\n"
                        "Content-Length: 2\r\n\r\n{}");
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 401);
    assert_non_null(strstr(http_reply_header(&reply, "Access-Control-Expose-Headers"),
                           "WWW-Authenticate"));
    http_reply_free(&reply);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

/* ---- a stream that ends with its token ---- */

/* The listener closes meanwhile, so the connection stays open. The next request is on it
 * already, and is refused at once. */
static void what_waits_behind_an_expired_stream_is_refused(void **state)
{
    static const char opens[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
        "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}";
    static const char call[] =
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":"
        "{\"name\":\"slow_compute\",\"arguments\":{\"ms\":1000000}}}";
    bearer_kit k = {.s = {.listen = {.drain_ms = 3600000,
                                     .idle_drain_ms = 3600000,
                                     .stream_after_ms = 100}}};
    http_caller c;
    http_reply reply;
    char lines[512];
    (void)state;
    bearer_kit_begin(&k);
    http_caller_open(&k.s, &c);
    char *token = bearer_token(&k, "ada", "mcp", 60);
    bearer_ask(&c, http_post("", opens), token, 200, &reply);
    snprintf(lines, sizeof lines,
             "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %s\r\n",
             http_reply_header(&reply, "Mcp-Session-Id"));
    http_reply_free(&reply);
    char *request = bearer_with(http_post(lines, call), token);
    http_caller_say(&c, request);
    free(request);
    http_stage_advance(&k.s, 300);
    assert_int_equal(http_caller_status(&c), 200);
    free(token);
    token = bearer_token(&k, "ada", "mcp", 600);
    request = bearer_with(greet(), token);
    http_caller_say(&c, request);
    free(request);
    segue_listener_close(k.s.listener);
    http_stage_run(&k.s);
    http_stage_advance(&k.s, 130000);
    char *event;
    while ((event = http_caller_event(&c)))
        free(event);
    http_caller_read(&c, &reply);
    assert_int_equal(reply.status, 503);
    assert_non_null(strstr(reply.body, "\"reason\":\"server_ending\""));
    http_reply_free(&reply);
    http_caller_until_closed(&c);
    free(token);
    http_caller_close(&c);
    bearer_kit_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_token_is_told_where_to_get_one),
        cmocka_unit_test(other_schemes_are_no_token),
        cmocka_unit_test(bad_tokens_are_refused),
        cmocka_unit_test(forged_tokens_are_refused),
        cmocka_unit_test(tokens_have_one_place),
        cmocka_unit_test(large_tokens_are_refused),
        cmocka_unit_test(long_bodies_of_nobody_are_not_read),
        cmocka_unit_test(metadata_is_for_everybody),
        cmocka_unit_test(the_listener_is_its_own_resource),
        cmocka_unit_test(what_needs_no_token),
        cmocka_unit_test(what_waits_behind_an_expired_stream_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
