/* The HTTP server behind TLS: a call, a certificate that names the caller, garbage, plain
 * text and renegotiation. The tests of links cover TLS itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "support/bearer_kit.h"
#include "support/certificates.h"

/* the SHA-256 of "secret" and of "other" */
#define SECRET "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
#define OTHER "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"

static char directory[] = "/tmp/segue_http_XXXXXX";
static char ca_file[64], cert_file[64], key_file[64];
static test_cert authority, server_cert, client_cert;

static int make_files(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(ca_file, sizeof ca_file, "%s/ca", directory);
    snprintf(cert_file, sizeof cert_file, "%s/cert", directory);
    snprintf(key_file, sizeof key_file, "%s/key", directory);
    test_cert_make(&authority, "authority", TEST_KEY_EC, NULL);
    test_cert_make(&server_cert, "server", TEST_KEY_EC, &authority);
    test_cert_make(&client_cert, "Ada", TEST_KEY_EC, &authority);
    test_cert_save(&authority, ca_file, NULL);
    test_cert_save(&server_cert, cert_file, key_file);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(ca_file);
    unlink(cert_file);
    unlink(key_file);
    rmdir(directory);
    test_cert_free(&authority);
    test_cert_free(&server_cert);
    test_cert_free(&client_cert);
    return 0;
}

static void begin(http_stage *s, http_caller *c)
{
    s->listen.cert_file = cert_file;
    s->listen.key_file = key_file;
    http_stage_begin(s);
    assert_memory_equal(segue_listener_url(s->listener), "https://", 8);
    http_caller_open(s, c);
}

/* ---- a TLS client whose bytes go through a caller ---- */

typedef struct tls_client {
    SSL_CTX *context;
    SSL *ssl;
    http_caller *c;
} tls_client;

static void tls_open(tls_client *t, http_caller *c, const test_cert *cert, int version)
{
    t->c = c;
    t->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(t->context, version);
    assert_int_equal(SSL_CTX_load_verify_locations(t->context, ca_file, NULL), 1);
    SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
    if (cert) {
        SSL_CTX_use_certificate(t->context, cert->cert);
        SSL_CTX_use_PrivateKey(t->context, cert->key);
    }
    t->ssl = SSL_new(t->context);
    SSL_set_bio(t->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(t->ssl);
}

static void tls_close(tls_client *t)
{
    SSL_free(t->ssl);
    SSL_CTX_free(t->context);
}

/* Moves bytes both ways once. */
static void tls_move(tls_client *t)
{
    char bytes[4096];
    int len;
    while ((len = BIO_read(SSL_get_wbio(t->ssl), bytes, sizeof bytes)) > 0)
        http_caller_send(t->c, bytes, (size_t)len);
    http_stage_run(t->c->s);
    http_caller_look(t->c);
    if (t->c->len)
        BIO_write(SSL_get_rbio(t->ssl), t->c->in, (int)t->c->len);
    t->c->len = 0;
}

static void tls_handshake(tls_client *t)
{
    for (int i = 0; i < 1000 && SSL_do_handshake(t->ssl) != 1; i++)
        tls_move(t);
    assert_true(SSL_is_init_finished(t->ssl));
}

static void tls_ask(tls_client *t, char *request, char *answer, int size)
{
    int len = 0, got;
    assert_true(SSL_write(t->ssl, request, (int)strlen(request)) > 0);
    free(request);
    for (int i = 0; i < 1000; i++) {
        tls_move(t);
        while ((got = SSL_read(t->ssl, answer + len, size - 1 - len)) > 0)
            len += got;
        answer[len] = 0;
        if (strstr(answer, "\r\n\r\n") && answer[len - 1] == '}')
            return;
    }
    fail_msg("no answer: %s", answer);
}

/* ---- cases ---- */

static char seen[128];

static segue_status see_peer(void *user, segue_transport *transport,
                             const char **principal)
{
    (void)user;
    snprintf(seen, sizeof seen, "%s", segue_transport_peer(transport));
    *principal = seen;
    return SEGUE_OK;
}

static void a_call_over_tls(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    for (int i = 0; i < 2; i++) {
        http_stage s = {.listen = {.client_ca_file = ca_file}, .principal = see_peer};
        http_caller c;
        tls_client t;
        char answer[4096] = "";
        begin(&s, &c);
        tls_open(&t, &c, &client_cert, versions[i]);
        tls_handshake(&t);
        for (int k = 0; k < 2; k++) {
            tls_ask(&t, http_call("1", "greet", NULL), answer, sizeof answer);
            assert_memory_equal(answer, "HTTP/1.1 200 OK", 15);
            assert_non_null(strstr(answer, "Hello"));
        }
        assert_non_null(strstr(seen, "CN=Ada"));
        tls_close(&t);
        http_stage_close(&s, &c);
    }
}

static void what_is_no_tls_is_not_answered_as_http(void **state)
{
    static const char *const texts[] = {
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\x16\x03\x01\x7f\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        "\r\n\r\n\r\n\r\n\r\n\r\n"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        http_stage s = {0};
        http_caller c;
        begin(&s, &c);
        uint64_t before = s.turns;
        http_caller_say(&c, texts[i]);
        http_stage_run(&s);
        http_caller_look(&c); /* at most an alert comes */
        assert_true(c.len < 64);
        assert_null(c.len ? strstr(c.in, "HTTP") : NULL);
        c.len = 0;
        http_caller_until_closed(&c);
        assert_true(s.turns - before < 2000);
        http_stage_close(&s, &c);
    }
}

/* A silent client and an incomplete handshake get the time limit of a request's head.
 * After the handshake the limit between requests applies. */
static void a_handshake_has_its_time(void **state)
{
    (void)state;
    for (int said = 0; said < 2; said++) {
        http_stage s = {.listen = {.header_timeout_ms = 1000, .idle_timeout_ms = 60000}};
        http_caller c;
        begin(&s, &c);
        if (said)
            http_caller_send(&c, "\x16\x03\x01\x00\x80\x01", 6);
        http_stage_run(&s);
        http_stage_advance(&s, 900);
        http_caller_look(&c);
        assert_false(c.ended);
        http_stage_advance(&s, 200);
        http_caller_until_closed(&c);
        http_stage_close(&s, &c);
    }
}

static void who_has_shaken_hands_may_take_his_time(void **state)
{
    http_stage s = {.listen = {.header_timeout_ms = 1000, .idle_timeout_ms = 60000}};
    http_caller c;
    tls_client t;
    char answer[4096] = "";
    (void)state;
    begin(&s, &c);
    http_stage_advance(&s, 900);
    tls_open(&t, &c, NULL, TLS1_3_VERSION);
    tls_handshake(&t);
    tls_move(&t); /* the end of the handshake is still on its way */
    http_stage_advance(&s, 30000);
    tls_ask(&t, http_call("1", "greet", NULL), answer, sizeof answer);
    assert_memory_equal(answer, "HTTP/1.1 200 OK", 15);
    http_stage_advance(&s, 61000);
    tls_move(&t);
    tls_move(&t);
    assert_true(c.ended);
    tls_close(&t);
    http_stage_close(&s, &c);
}

static void renegotiation_is_refused(void **state)
{
    http_stage s = {0};
    http_caller c;
    tls_client t;
    char answer[4096] = "";
    (void)state;
    begin(&s, &c);
    tls_open(&t, &c, NULL, TLS1_2_VERSION);
    tls_handshake(&t);
    uint64_t before = s.turns;
    SSL_renegotiate(t.ssl);
    int finished = 0;
    for (int i = 0; i < 50 && !c.ended; i++) {
        finished |= SSL_do_handshake(t.ssl) == 1 && !SSL_renegotiate_pending(t.ssl);
        tls_move(&t);
    }
    assert_false(finished);
    assert_true(s.turns - before < 1000);
    tls_close(&t);
    http_caller_close(&c);
    http_caller_open(&s, &c); /* other callers are served */
    tls_open(&t, &c, NULL, TLS1_3_VERSION);
    tls_handshake(&t);
    tls_ask(&t, http_call("1", "greet", NULL), answer, sizeof answer);
    tls_close(&t);
    http_stage_close(&s, &c);
}

static void files_are_read_again(void **state)
{
    http_stage s = {0};
    http_caller c;
    (void)state;
    begin(&s, &c);
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_OK);
    assert_int_equal(truncate(cert_file, 0), 0);
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_E_IO);
    tls_client t;
    char answer[4096] = "";
    tls_open(&t, &c, NULL, TLS1_3_VERSION); /* the earlier certificates stay in use */
    tls_handshake(&t);
    tls_ask(&t, http_call("1", "greet", NULL), answer, sizeof answer);
    tls_close(&t);
    test_cert_save(&server_cert, cert_file, key_file);
    http_stage_close(&s, &c);
}

/* Asks over a new connection with a token. */
static void ask_with(http_stage *s, const char *token, const char *status)
{
    http_caller c;
    tls_client t;
    char answer[4096] = "";
    http_caller_open(s, &c);
    tls_open(&t, &c, NULL, TLS1_3_VERSION);
    tls_handshake(&t);
    tls_ask(&t, bearer_with(http_call("1", "greet", NULL), token), answer, sizeof answer);
    tls_close(&t);
    http_caller_close(&c);
    assert_memory_equal(answer, status, strlen(status));
}

static void write_tokens(const char *file, const char *digest)
{
    FILE *to = fopen(file, "we");
    assert_non_null(to);
    fprintf(to, "ada %s\n", digest);
    assert_int_equal(fclose(to), 0);
}

/* One file that cannot be used keeps all files as they were. */
static void new_tokens_need_usable_certificates(void **state)
{
    http_stage s = {0};
    http_caller c;
    char tokens[64];
    (void)state;
    snprintf(tokens, sizeof tokens, "%s/tokens", directory);
    write_tokens(tokens, SECRET);
    s.listen.tokens_file = tokens;
    begin(&s, &c);
    http_caller_close(&c);
    ask_with(&s, "secret", "HTTP/1.1 200");
    write_tokens(tokens, OTHER);
    assert_int_equal(truncate(cert_file, 0), 0);
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_E_IO);
    ask_with(&s, "secret", "HTTP/1.1 200");
    ask_with(&s, "other", "HTTP/1.1 401");
    test_cert_save(&server_cert, cert_file, key_file);
    assert_int_equal(segue_listener_reload(s.listener, NULL), SEGUE_OK);
    ask_with(&s, "secret", "HTTP/1.1 401");
    ask_with(&s, "other", "HTTP/1.1 200");
    unlink(tokens);
    http_stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_over_tls),
        cmocka_unit_test(what_is_no_tls_is_not_answered_as_http),
        cmocka_unit_test(a_handshake_has_its_time),
        cmocka_unit_test(who_has_shaken_hands_may_take_his_time),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(files_are_read_again),
        cmocka_unit_test(new_tokens_need_usable_certificates),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
