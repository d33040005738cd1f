/* The token endpoint: how a client authenticates, renewal, clients that act for
 * themselves, and the data that is kept from one process to the next. */
#include <segue/segue_auth.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "support/flow_kit.h"

#define HOUR INT64_C(3600000)
#define TOKEN_URL "https://as.example/token"

static flow_kit k;

static const char *authorization(void)
{
    static char text[512];
    sgi_flow_exchange exchange;
    sgi_flow_get_exchange(k.flow, &exchange);
    snprintf(text, sizeof text, "%.*s", (int)exchange.authorization.n,
             exchange.authorization.p ? exchange.authorization.p : "");
    return text;
}

/* ---- who we are ---- */

static void a_client_shows_itself_as_both_sides_know(void **state)
{
    (void)state;
#define KNOWS(list) ",\"token_endpoint_auth_methods_supported\":[" list "]"
#define SECRET "{\"client_id\":\"c:1\",\"client_secret\":\"s 1\""
    static const char basic[] = "Basic YyUzQTE6cyUyMDE="; /* c%3A1:s%201 */
    static const struct {
        const char *server, *client, *asked, *header, *id, *secret;
    } rows[] = {
        {FLOW_SERVER, SECRET "}", "client_secret_basic", basic, "c:1", NULL},
        {FLOW_SERVER_WITH(KNOWS("\"client_secret_basic\"")), SECRET "}",
         "client_secret_basic", basic, "c:1", NULL},
        {FLOW_SERVER_WITH(KNOWS("\"client_secret_post\"")), SECRET "}",
         "client_secret_post", "", "c:1", "s 1"},
        {FLOW_SERVER_WITH(KNOWS("\"none\"")), SECRET "}", "none", "", "c:1", NULL},
        {FLOW_SERVER_WITH(KNOWS("\"private_key_jwt\"")), "{\"client_id\":\"c:1\"}",
         "none", "", "c:1", NULL},
        /* The registration has priority over the metadata. */
        {FLOW_SERVER, SECRET ",\"token_endpoint_auth_method\":\"client_secret_post\"}",
         "client_secret_basic", "", "c:1", "s 1"},
        {FLOW_SERVER, SECRET ",\"token_endpoint_auth_method\":\"none\"}",
         "client_secret_basic", "", "c:1", NULL},
        {FLOW_SERVER, SECRET ",\"token_endpoint_auth_method\":\"strange\"}",
         "client_secret_basic", basic, "c:1", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[80];
        flow_kit_open(&k);
        flow_discover(&k, FLOW_RESOURCE, rows[i].server);
        flow_expect_post(&k, "https://as.example/register");
        snprintf(wanted, sizeof wanted, "\"token_endpoint_auth_method\":\"%s\"",
                 rows[i].asked);
        assert_non_null(strstr(k.text, wanted));
        flow_answer(&k, 201, rows[i].client);
        flow_expect_browser(&k);
        assert_int_equal(flow_come_back(&k, "code=x"), SEGUE_OK);
        flow_expect_post(&k, TOKEN_URL);
        assert_string_equal(authorization(), rows[i].header);
        flow_assert_member(&k, "client_id", rows[i].id);
        flow_assert_member(&k, "client_secret", rows[i].secret);
        flow_kit_end(&k);
    }
}

static void the_application_may_say_how_it_shows_itself(void **state)
{
    (void)state;
    flow_kit_prepare(&k);
    k.options.client_id = "c";
    k.options.client_secret = "s";
    k.options.auth_method = "client_secret_post";
    flow_kit_begin(&k);
    flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
    flow_expect_browser(&k);
    assert_int_equal(flow_come_back(&k, "code=x"), SEGUE_OK);
    flow_expect_post(&k, TOKEN_URL);
    assert_string_equal(authorization(), "");
    flow_assert_member(&k, "client_secret", "s");
    flow_kit_end(&k);
}

static char *new_key(void)
{
    char *bytes, *text;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    long len = BIO_get_mem_data(bio, &bytes);
    text = calloc(1, (size_t)len + 1);
    memcpy(text, bytes, (size_t)len);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return text;
}

static void assert_part(const char *part, size_t n, const char *text)
{
    sgi_buf decoded;
    sgi_buf_init(&decoded, &sgi_mem_libc);
    assert_true(sgi_buf_add_unbase64(&decoded, (sgi_str){part, n}));
    sgi_buf_terminate(&decoded);
    if (!strstr(decoded.p, text))
        fail_msg("%s is not in %s", text, decoded.p);
    sgi_buf_free(&decoded);
}

static void a_client_with_a_key_signs(void **state)
{
    (void)state;
    char *key = new_key();
    flow_kit_prepare(&k);
    k.options.grant = SEGUE_OAUTH_CLIENT;
    k.options.client_id = "c1";
    k.options.private_key = key;
    flow_kit_begin(&k);
    flow_discover(&k,
                  FLOW_RESOURCE_OF("https://as.example", ",\"scopes_supported\":[\"a\"]"),
                  "{\"issuer\":\"https://as.example\",\"token_endpoint\":\"" TOKEN_URL
                  "\",\"token_endpoint_auth_methods_supported\":[\"private_key_jwt\"]}");
    flow_expect_post(&k, TOKEN_URL);
    flow_assert_member(&k, "grant_type", "client_credentials");
    flow_assert_member(&k, "client_assertion_type",
                       "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    flow_assert_member(&k, "resource", FLOW_ENDPOINT);
    flow_assert_member(&k, "scope", "a");
    const char *jwt = flow_member(&k, "client_assertion");
    const char *claims = strchr(jwt, '.') + 1;
    size_t len = (size_t)(strchr(claims, '.') - claims);
    assert_part(jwt, (size_t)(claims - 1 - jwt), "{\"alg\":\"ES256\",\"typ\":\"JWT\"}");
    assert_part(claims, len,
                "\"iss\":\"c1\",\"sub\":\"c1\",\"aud\":\"https://as.example\"");
    assert_part(claims, len, "\"iat\":1764000000,\"exp\":1764000060");
    assert_int_equal(strlen(claims + len + 1), 86); /* a signature of 64 bytes */
    flow_answer(&k, 200, FLOW_TOKEN("t1", ""));
    flow_assert_token(&k, "t1");
    flow_kit_end(&k);
    free(key);
}

static void a_client_acts_for_whom_an_assertion_names(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a.b", "a.b.c.d", "a.b.c d", "a.b.\xc3\xa9"};
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        bool good = i == sizeof bad / sizeof *bad;
        flow_kit_prepare(&k);
        k.options.grant = SEGUE_OAUTH_ASSERTION;
        k.options.on_assertion =
            /* the kit plays the application's assertion */
            (segue_assertion_fn)(uintptr_t)1;
        flow_kit_begin(&k);
        flow_discover(&k, FLOW_RESOURCE, FLOW_SERVER);
        assert_int_equal(sgi_flow_next_need(k.flow), SGI_FLOW_ASSERTION);
        assert_true(sgi_str_eq(sgi_flow_issuer(k.flow), SGI_STR("https://as.example")));
        assert_true(sgi_str_eq(sgi_flow_resource(k.flow), SGI_STR(FLOW_ENDPOINT)));
        sgi_flow_on_assertion(k.flow, sgi_str_of(good ? "a.b-_9.c" : bad[i]));
        if (!good) {
            flow_assert_failed(&k, "no assertion");
        } else {
            flow_expect_post(&k, TOKEN_URL);
            flow_assert_member(&k, "grant_type",
                               "urn:ietf:params:oauth:grant-type:jwt-bearer");
            flow_assert_member(&k, "assertion", "a.b-_9.c");
            flow_assert_member(&k, "client_id", NULL);
            flow_answer(&k, 400, "{\"error\":\"unauthorized_client\"}");
            flow_assert_failed(&k, "unauthorized_client"); /* nothing else is tried */
        }
        flow_kit_end(&k);
    }
}

/* ---- renewing ---- */

static void a_token_is_renewed_before_its_end(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_enter(&k, FLOW_TOKEN("t1", ",\"expires_in\":3600,\"refresh_token\":\"r1\""));
    fake_host_advance(&k.host, HOUR - 31000);
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    fake_host_advance(&k.host, 1000);
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
    flow_expect_post(&k, TOKEN_URL); /* the server's metadata is known already */
    flow_assert_member(&k, "grant_type", "refresh_token");
    flow_assert_member(&k, "refresh_token", "r1");
    flow_assert_member(&k, "resource", FLOW_ENDPOINT);
    flow_assert_member(&k, "client_id", "c1");
    flow_answer(&k, 200, FLOW_TOKEN("t2", ",\"expires_in\":\"20\""));
    flow_assert_token(&k, "t2");
    assert_false(sgi_flow_token_is_from_grant(k.flow));
    fake_host_advance(&k.host, 14999);
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    fake_host_advance(&k.host, 1);
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
    flow_expect_post(&k, TOKEN_URL);
    flow_assert_member(&k, "refresh_token", "r1"); /* the refresh token stays when the
                                                    * answer has no new one */
    flow_answer(&k, 200, FLOW_TOKEN("t3", ",\"refresh_token\":\"r2\""));
    fake_host_advance(&k.host, 1000 * HOUR);
    /* the token has no known end */
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    flow_assert_token(&k, "t3");
    flow_kit_end(&k);
}

/* Renewal asks no user: when it fails, the old token is sent and the server decides. */
static void a_token_that_cannot_be_renewed_goes_as_it_is(void **state)
{
    (void)state;
    static const struct {
        int32_t status; /* 0 = no answer */
        const char *body;
    } rows[] = {{400, "{\"error\":\"invalid_grant\"}"},
                {401, "{\"error\":\"invalid_client\"}"},
                {503, ""},
                {200, "{}"},
                {0, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        flow_kit_open(&k);
        flow_enter(&k, FLOW_TOKEN("t1", ",\"expires_in\":3600,\"refresh_token\":\"r1\""));
        sgi_flow_on_token_accepted(k.flow, 1);
        fake_host_advance(&k.host, HOUR);
        assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
        flow_expect_post(&k, TOKEN_URL);
        if (rows[i].status)
            flow_answer(&k, rows[i].status, rows[i].body);
        else
            sgi_flow_on_no_answer(k.flow, "broken", true);
        flow_assert_token(&k, "t1");
        assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
        flow_refuse(&k, 401, "Bearer");
        flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
        if (rows[i].status == 400 || rows[i].status == 401)
            flow_expect_browser(&k);
        else
            flow_expect_post(&k, TOKEN_URL); /* the refresh token may still be valid */
        flow_kit_end(&k);
    }
}

static void a_refused_token_is_renewed_if_it_can_be(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_enter(&k, FLOW_TOKEN("t1", ",\"refresh_token\":\"r1\""));
    sgi_flow_on_token_accepted(k.flow, 1);
    flow_refuse(&k, 401, "Bearer");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_expect_post(&k, TOKEN_URL);
    flow_assert_member(&k, "grant_type", "refresh_token");
    flow_answer(&k, 200, FLOW_TOKEN("t2", ""));
    flow_assert_token(&k, "t2");
    flow_refuse(&k, 401, "Bearer"); /* tried once more, because a renewed token may be
                                     * refused */
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_expect_post(&k, TOKEN_URL);
    flow_answer(&k, 400, "{\"error\":\"invalid_grant\"}");
    flow_expect_browser(&k);
    flow_grant(&k, FLOW_TOKEN("t3", ""));
    flow_assert_token(&k, "t3");
    flow_kit_end(&k);
}

static void a_client_that_is_not_known_any_more_registers_once_more(void **state)
{
    (void)state;
    flow_kit_open(&k);
    flow_to_browser(&k);
    assert_int_equal(flow_come_back(&k, "code=x"), SEGUE_OK);
    flow_expect_post(&k, TOKEN_URL);
    flow_answer(&k, 401, "{\"error\":\"invalid_client\"}");
    flow_expect_post(&k, "https://as.example/register");
    flow_answer(&k, 201, "{\"client_id\":\"c2\"}");
    flow_expect_browser(&k);
    flow_assert_member(&k, "client_id", "c2");
    assert_int_equal(flow_come_back(&k, "code=x"), SEGUE_OK);
    flow_expect_post(&k, TOKEN_URL);
    flow_answer(&k, 401, "{\"error\":\"invalid_client\"}");
    flow_assert_failed(&k, "invalid_client");
    flow_kit_end(&k);
}

/* ---- what is kept ---- */

static const char *load(void *user, const char *key, size_t *len)
{
    (void)user;
    (void)key;
    *len = 0;
    return NULL;
}

static void save(void *user, const char *key, const char *json, size_t len)
{
    (void)user;
    (void)key;
    (void)json;
    (void)len;
}

static void keeping(void)
{
    flow_kit_prepare(&k);
    k.options.on_load = load;
    k.options.on_save = save;
    flow_kit_begin(&k);
}

static void expect_load(const char *key, const char *text)
{
    assert_int_equal(sgi_flow_next_need(k.flow), SGI_FLOW_LOAD);
    assert_string_equal(sgi_flow_vault_key(k.flow).p, key);
    char *copy = strdup(text);
    sgi_flow_on_record_loaded(k.flow, sgi_str_of(copy));
    free(copy);
}

static char *expect_save(const char *key)
{
    assert_int_equal(sgi_flow_next_need(k.flow), SGI_FLOW_SAVE);
    assert_string_equal(sgi_flow_vault_key(k.flow).p, key);
    char *text = strdup(sgi_flow_vault_record(k.flow).p);
    sgi_flow_on_record_saved(k.flow);
    return text;
}

#define TOKEN_KEY "token " FLOW_ENDPOINT
#define CLIENT_KEY "client https://as.example"

static void a_later_process_begins_with_what_was_kept(void **state)
{
    (void)state;
    keeping();
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
    expect_load(TOKEN_KEY, "");
    flow_refuse(&k, 401, "Bearer scope=a");
    expect_load(TOKEN_KEY, "");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
    expect_load(CLIENT_KEY, "");
    flow_expect_post(&k, "https://as.example/register");
    flow_answer(&k, 201,
                "{\"client_id\":\"c1\",\"client_secret\":\"s1\","
                "\"client_secret_expires_at\":1764007200}");
    char *client = expect_save(CLIENT_KEY);
    flow_expect_browser(&k);
    assert_int_equal(flow_come_back(&k, "code=x"), SEGUE_OK);
    flow_expect_post(&k, TOKEN_URL);
    flow_answer(&k, 200,
                FLOW_TOKEN("t1", ",\"expires_in\":3600,\"refresh_token\":\"r1\""));
    char *token = expect_save(TOKEN_KEY);
    flow_assert_token(&k, "t1");
    flow_kit_end(&k);

    keeping();
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
    expect_load(TOKEN_KEY, token);
    flow_assert_token(&k, "t1");
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_GO);
    fake_host_advance(&k.host, HOUR);
    assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
    expect_load(TOKEN_KEY, token);
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
    expect_load(CLIENT_KEY, client);
    flow_expect_post(&k, TOKEN_URL);
    flow_assert_member(&k, "refresh_token", "r1");
    assert_string_equal(authorization(), "Basic YzE6czE=");
    flow_answer(&k, 200, FLOW_TOKEN("t2", ""));
    free(expect_save(TOKEN_KEY));
    flow_assert_token(&k, "t2");
    /* A step up keeps the scopes that the earlier process had. */
    uint64_t number;
    sgi_flow_authorization_header(k.flow, &number);
    assert_int_equal(
        sgi_flow_on_token_refused(
            k.flow, 403, SGI_STR("Bearer error=insufficient_scope, scope=a"), number),
        SGI_FLOW_NO);
    flow_kit_end(&k);

    /* The secret of the registration has expired meanwhile. */
    keeping();
    fake_host_advance(&k.host, 2 * HOUR);
    flow_refuse(&k, 401, "Bearer");
    expect_load(TOKEN_KEY, "");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
    expect_load(CLIENT_KEY, client);
    flow_expect_post(&k, "https://as.example/register");
    flow_kit_end(&k);
    free(client);
    free(token);
}

/* A refresh token can be used only once, so two processes must not both use it. */
static void another_process_may_have_renewed_the_token(void **state)
{
    (void)state;
    keeping();
    flow_refuse(&k, 401, "Bearer");
    expect_load(TOKEN_KEY, "{\"access_token\":\"t1\",\"refresh_token\":\"r1\"}");
    flow_assert_token(&k, "t1");
    flow_refuse(&k, 401, "Bearer");
    expect_load(TOKEN_KEY, "{\"access_token\":\"t2\",\"refresh_token\":\"r2\"}");
    flow_assert_token(&k, "t2");
    flow_refuse(&k, 401, "Bearer");
    expect_load(TOKEN_KEY, "{\"access_token\":\"t2\",\"refresh_token\":\"r2\"}");
    flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
    flow_kit_end(&k);
}

static void what_cannot_be_read_was_never_kept(void **state)
{
    (void)state;
    static const char *const tokens[] = {
        "x",
        "[]",
        "{}",
        "{\"access_token\":1}",
        "{\"access_token\":\"\"}",
        "{\"access_token\":\"a b\"}",
        "{\"access_token\":\"a\\r\\nb\"}",
        "{\"access_token\":\"a\\u00e9\"}",
        "{\"access_token\":\"a\",\"refresh_token\":[]}",
        "{\"access_token\":\"a\",\"issuer\":1}",
    };
    static const char *const clients[] = {
        "x",
        "{}",
        "{\"issuer\":\"https://as.example\",\"client_id\":\"c\"}",
        "{\"issuer\":\"https://as.example\",\"client_id\":\"c\","
        "\"redirect_uri\":\"http://localhost:1/\"}",
        "{\"issuer\":\"https://b.example\",\"client_id\":\"c\","
        "\"redirect_uri\":\"" FLOW_REDIRECT "\"}",
        "{\"issuer\":\"https://as.example\",\"redirect_uri\":\"" FLOW_REDIRECT "\"}",
        "{\"issuer\":\"https://as.example\",\"client_id\":\"c\",\"client_secret\":1,"
        "\"redirect_uri\":\"" FLOW_REDIRECT "\"}",
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        keeping();
        assert_int_equal(sgi_flow_before_request(k.flow), SGI_FLOW_WAIT);
        expect_load(TOKEN_KEY, tokens[i]);
        flow_assert_token(&k, NULL);
        flow_kit_end(&k);
    }
    for (size_t i = 0; i < sizeof clients / sizeof *clients; i++) {
        keeping();
        flow_refuse(&k, 401, "Bearer");
        expect_load(TOKEN_KEY, "");
        flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
        flow_get(&k, FLOW_SERVER_URL, 200, FLOW_SERVER);
        expect_load(CLIENT_KEY, clients[i]);
        flow_expect_post(&k, "https://as.example/register");
        flow_kit_end(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_shows_itself_as_both_sides_know),
        cmocka_unit_test(the_application_may_say_how_it_shows_itself),
        cmocka_unit_test(a_client_with_a_key_signs),
        cmocka_unit_test(a_client_acts_for_whom_an_assertion_names),
        cmocka_unit_test(a_token_is_renewed_before_its_end),
        cmocka_unit_test(a_token_that_cannot_be_renewed_goes_as_it_is),
        cmocka_unit_test(a_refused_token_is_renewed_if_it_can_be),
        cmocka_unit_test(a_client_that_is_not_known_any_more_registers_once_more),
        cmocka_unit_test(a_later_process_begins_with_what_was_kept),
        cmocka_unit_test(another_process_may_have_renewed_the_token),
        cmocka_unit_test(what_cannot_be_read_was_never_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
