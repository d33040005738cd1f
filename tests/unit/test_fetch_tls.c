/* Exchanges over TLS: which servers and clients are trusted. The server is the test's
 * own, with certificates made for the run. libcurl looks up names on threads of its own.
 * label: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <signal.h>
#include <unistd.h>

#include "support/certificates.h"
#include "support/fetch_kit.h"

#define PASSWORD "open sesame"

/* An authority, the certificates that it signed, and another authority that is not
 * trusted. */
static struct {
    char dir[32];
    char ca[64];
    char other_ca[64];
    char server[64];    /* certificate and key, for 127.0.0.1 and here.test */
    char elsewhere[64]; /* certificate and key, for elsewhere.test */
    char client[64];
    char client_key[64]; /* encrypted with the password */
} certs = {.dir = "/tmp/segue_fetch_XXXXXX"};

static void name_file(char path[64], const char *name)
{
    snprintf(path, 64, "%s/%s", certs.dir, name);
}

static int make_certs(void **state)
{
    test_cert ca, other_ca, server, elsewhere, client;
    (void)state;
    assert_non_null(mkdtemp(certs.dir));
    name_file(certs.ca, "ca.pem");
    name_file(certs.other_ca, "other_ca.pem");
    name_file(certs.server, "server.pem");
    name_file(certs.elsewhere, "elsewhere.pem");
    name_file(certs.client, "client.pem");
    name_file(certs.client_key, "client_key.pem");
    test_cert_make(&ca, "authority", TEST_KEY_EC, NULL);
    test_cert_make(&other_ca, "other authority", TEST_KEY_EC, NULL);
    test_cert_make_for(&server, "IP:127.0.0.1,DNS:here.test", &ca);
    test_cert_make_for(&elsewhere, "DNS:elsewhere.test", &ca);
    test_cert_make_for(&client, NULL, &ca);
    test_cert_save(&ca, certs.ca, NULL);
    test_cert_save(&other_ca, certs.other_ca, NULL);
    test_cert_save_both(&server, certs.server);
    test_cert_save_both(&elsewhere, certs.elsewhere);
    test_cert_save(&client, certs.client, NULL);
    test_cert_save_locked(&client, certs.client_key, PASSWORD);
    test_cert *const made[] = {&ca, &other_ca, &server, &elsewhere, &client};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        test_cert_free(made[i]);
    return 0;
}

static int remove_certs(void **state)
{
    const char *const files[] = {certs.ca,        certs.other_ca, certs.server,
                                 certs.elsewhere, certs.client,   certs.client_key};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(files[i]);
    rmdir(certs.dir);
    return 0;
}

typedef struct tls_rig {
    fetch_rig rig;
    char url[64];
} tls_rig;

/* Makes a server that shows `cert` and, with wants_client, requires a certificate of the
 * client. */
static void set_up(tls_rig *t, const char *cert, bool wants_client)
{
    fetch_set_up(&t->rig);
    SSL_CTX *tls = t->rig.peer.tls = SSL_CTX_new(TLS_server_method());
    assert_non_null(tls);
    assert_int_equal(SSL_CTX_use_certificate_chain_file(tls, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(tls, cert, SSL_FILETYPE_PEM), 1);
    if (wants_client) {
        assert_int_equal(SSL_CTX_load_verify_locations(tls, certs.ca, NULL), 1);
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    snprintf(t->url, sizeof t->url, "https://127.0.0.1:%d/mcp", t->rig.peer.port);
}

static void tear_down(tls_rig *t)
{
    SSL_CTX *tls = t->rig.peer.tls;
    fetch_tear_down(&t->rig);
    SSL_CTX_free(tls);
}

/* Plays the server of one exchange until the exchange ends. */
static void play(tls_rig *t, fetch_seen *seen, http_line *line)
{
    fetch_start(&t->rig, seen, "{}");
    RUN_UNTIL(t->rig.rt, http_peer_accept(&t->rig.peer, line) || seen->dones);
    if (line->fd >= 0)
        RUN_UNTIL(t->rig.rt, http_line_asked(line) || seen->dones || line->ended);
    if (line->fd >= 0 && http_line_asked(line))
        http_line_say(line, FETCH_ANSWER("2", "{}"));
    if (line->ended)
        http_line_close(line);
    RUN_UNTIL(t->rig.rt, seen->dones);
}

static void expect(const char *cert, bool wants_client,
                   const sgi_fetch_settings *settings, sgi_fetch_fault fault)
{
    tls_rig t;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    sgi_fetch_settings own = *settings;
    set_up(&t, cert, wants_client);
    own.url = t.url;
    own.proxy = "";
    fetch_connect(&t.rig, &own);
    play(&t, &seen, &line);
    if (seen.fault != fault)
        fail_msg("%d, not %d: %s", (int)seen.fault, (int)fault, seen.text);
    assert_int_equal(seen.heads, fault == SGI_FETCH_OK);
    assert_true(fault == SGI_FETCH_OK || seen.text[0]);
    /* otherwise nothing was sent */
    assert_true(fault == SGI_FETCH_OK || line.in_len == 0);
    http_line_close(&line);
    tear_down(&t);
}

static void an_unknown_authority_is_refused_by_default(void **state)
{
    (void)state;
    expect(certs.server, false, &(sgi_fetch_settings){0}, SGI_FETCH_UNTRUSTED);
    expect(certs.server, false, &(sgi_fetch_settings){.ca_file = certs.other_ca},
           SGI_FETCH_UNTRUSTED);
}

static void an_authority_that_is_named_is_trusted(void **state)
{
    (void)state;
    expect(certs.server, false, &(sgi_fetch_settings){.ca_file = certs.ca}, SGI_FETCH_OK);
}

static void a_certificate_for_another_host_is_refused(void **state)
{
    (void)state;
    expect(certs.elsewhere, false, &(sgi_fetch_settings){.ca_file = certs.ca},
           SGI_FETCH_UNTRUSTED);
}

static void only_who_says_so_trusts_anybody(void **state)
{
    (void)state;
    expect(certs.elsewhere, false, &(sgi_fetch_settings){.insecure = true}, SGI_FETCH_OK);
}

static void a_ca_file_that_is_missing_trusts_nobody(void **state)
{
    (void)state;
    expect(certs.server, false, &(sgi_fetch_settings){.ca_file = "/nonexistent/ca.pem"},
           SGI_FETCH_UNTRUSTED);
}

static void a_client_certificate_is_shown(void **state)
{
    (void)state;
    expect(certs.server, true,
           &(sgi_fetch_settings){.ca_file = certs.ca,
                                 .client_cert = certs.client,
                                 .client_key = certs.client_key,
                                 .key_password = PASSWORD},
           SGI_FETCH_OK);
    expect(certs.server, true,
           &(sgi_fetch_settings){.ca_file = certs.ca, .client_cert = certs.server},
           SGI_FETCH_OK); /* certificate and key in one file */
}

static void a_client_key_that_cannot_be_read_is_a_fault(void **state)
{
    (void)state;
    expect(certs.server, true,
           &(sgi_fetch_settings){.ca_file = certs.ca,
                                 .client_cert = certs.client,
                                 .client_key = certs.client_key,
                                 .key_password = "wrong"},
           SGI_FETCH_UNTRUSTED);
    expect(certs.server, true,
           &(sgi_fetch_settings){.ca_file = certs.ca, .client_cert = "/nonexistent"},
           SGI_FETCH_UNTRUSTED);
}

/* TLS 1.3 reports this to the client only after the client's part of the handshake is
 * done. */
static void a_client_without_certificate_is_turned_away(void **state)
{
    tls_rig t;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    set_up(&t, certs.server, true);
    fetch_connect(&t.rig,
                  &(sgi_fetch_settings){.url = t.url, .proxy = "", .ca_file = certs.ca});
    play(&t, &seen, &line);
    assert_true(seen.fault == SGI_FETCH_UNTRUSTED || seen.fault == SGI_FETCH_BROKEN);
    assert_int_equal(seen.heads, 0);
    http_line_close(&line);
    tear_down(&t);
}

/* A server is killed after it has the first bytes of the handshake. Nothing of the
 * request was sent, and no certificate was refused. */
static void a_server_that_dies_in_the_handshake_is_not_reached(void **state)
{
    (void)state;
    for (int resets = 0; resets < 2; resets++) {
        tls_rig t;
        fetch_seen seen = {0};
        http_line line = {.fd = -1};
        set_up(&t, certs.server, false);
        SSL_CTX *tls = t.rig.peer.tls;
        t.rig.peer.tls = NULL; /* the peer does not answer the handshake */
        fetch_connect(&t.rig, &(sgi_fetch_settings){
                                  .url = t.url, .proxy = "", .ca_file = certs.ca});
        fetch_start(&t.rig, &seen, "{}");
        RUN_UNTIL(t.rig.rt, http_peer_accept(&t.rig.peer, &line));
        RUN_UNTIL(t.rig.rt, http_line_asked(&line) || line.in_len);
        if (resets)
            http_line_reset(&line);
        else
            http_line_close(&line);
        RUN_UNTIL(t.rig.rt, seen.dones);
        if (seen.fault != SGI_FETCH_UNREACHABLE)
            fail_msg("%d: %s", (int)seen.fault, seen.text);
        t.rig.peer.tls = tls;
        tear_down(&t);
    }
}

static void what_is_older_than_tls_1_2_is_refused(void **state)
{
    tls_rig t;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    set_up(&t, certs.server, false);
    SSL_CTX_set_min_proto_version(t.rig.peer.tls, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(t.rig.peer.tls, TLS1_1_VERSION);
    SSL_CTX_set_security_level(t.rig.peer.tls, 0);
    fetch_connect(&t.rig,
                  &(sgi_fetch_settings){.url = t.url, .proxy = "", .insecure = true});
    play(&t, &seen, &line);
    assert_int_equal(seen.fault, SGI_FETCH_UNTRUSTED);
    http_line_close(&line);
    tear_down(&t);
}

static void a_plain_server_is_no_tls_server(void **state)
{
    tls_rig t;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    (void)state;
    set_up(&t, certs.server, false);
    SSL_CTX *tls = t.rig.peer.tls;
    t.rig.peer.tls = NULL;
    fetch_connect(&t.rig, &(sgi_fetch_settings){.url = t.url, .proxy = ""});
    fetch_start(&t.rig, &seen, "{}");
    RUN_UNTIL(t.rig.rt, http_peer_accept(&t.rig.peer, &line));
    http_line_say(&line, "HTTP/1.1 400 Bad Request\r\n\r\n");
    RUN_UNTIL(t.rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_UNTRUSTED);
    http_line_close(&line);
    t.rig.peer.tls = tls;
    tear_down(&t);
}

static void a_tls_connection_is_used_again(void **state)
{
    tls_rig t;
    http_line line = {.fd = -1}, other = {.fd = -1};
    (void)state;
    set_up(&t, certs.server, false);
    fetch_connect(&t.rig,
                  &(sgi_fetch_settings){.url = t.url, .proxy = "", .ca_file = certs.ca});
    for (int i = 0; i < 3; i++)
        assert_int_equal(fetch_exchange(&t.rig, &line, "{}"), 200);
    assert_false(http_peer_accept(&t.rig.peer, &other));
    http_line_close(&line);
    tear_down(&t);
}

/* HTTPS through a proxy is a tunnel: the proxy sees only the host's name. */
static void a_tunnel_goes_through_the_proxy(void **state)
{
    tls_rig t;
    fetch_seen seen = {0};
    http_line line = {.fd = -1};
    char proxy[64];
    (void)state;
    set_up(&t, certs.server, false);
    SSL_CTX *tls = t.rig.peer.tls;
    t.rig.peer.tls = NULL;
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", t.rig.peer.port);
    fetch_connect(&t.rig, &(sgi_fetch_settings){.url = "https://here.test/x",
                                                .proxy = proxy,
                                                .ca_file = certs.ca});
    fetch_start(&t.rig, &seen, "{}");
    RUN_UNTIL(t.rig.rt, http_peer_accept(&t.rig.peer, &line));
    RUN_UNTIL(t.rig.rt, http_line_asked(&line));
    assert_int_equal(strncmp(line.in, "CONNECT here.test:443 HTTP/1.1\r\n", 32), 0);
    assert_null(strstr(line.in, "application/json")); /* the proxy must not see headers of
                                                       * the request */
    http_line_say(&line, "HTTP/1.1 200 Go\r\nContent-Type: proxy/proxy\r\n\r\n");
    http_line_clear(&line);
    line.tls = SSL_new(tls); /* the test is proxy and server in one */
    SSL_set_fd(line.tls, line.fd);
    SSL_set_accept_state(line.tls);
    RUN_UNTIL(t.rig.rt, http_line_asked(&line));
    http_line_say(&line, FETCH_ANSWER("2", "{}"));
    RUN_UNTIL(t.rig.rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_OK);
    assert_string_equal(seen.type, "application/json");
    http_line_close(&line);
    t.rig.peer.tls = tls;
    tear_down(&t);
}

/* dispatch blocks no signal, so a TLS write to a dead socket must raise none. */
static void a_dead_connection_raises_no_sigpipe(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_DFL); /* a SIGPIPE would end the test */
    for (int i = 0; i < 3; i++) {
        tls_rig t;
        http_line line = {.fd = -1}, next = {.fd = -1};
        set_up(&t, certs.server, false);
        fetch_connect(&t.rig, &(sgi_fetch_settings){
                                  .url = t.url, .proxy = "", .ca_file = certs.ca});
        assert_int_equal(fetch_exchange(&t.rig, &line, "{}"), 200);
        http_line_reset(&line);
        assert_int_equal(fetch_exchange(&t.rig, &next, "{}"), 200);
        http_line_reset(&next);
        tear_down(&t); /* the end of TLS is written to a dead socket */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_authority_is_refused_by_default),
        cmocka_unit_test(an_authority_that_is_named_is_trusted),
        cmocka_unit_test(a_certificate_for_another_host_is_refused),
        cmocka_unit_test(only_who_says_so_trusts_anybody),
        cmocka_unit_test(a_ca_file_that_is_missing_trusts_nobody),
        cmocka_unit_test(a_client_certificate_is_shown),
        cmocka_unit_test(a_client_key_that_cannot_be_read_is_a_fault),
        cmocka_unit_test(a_client_without_certificate_is_turned_away),
        cmocka_unit_test(a_server_that_dies_in_the_handshake_is_not_reached),
        cmocka_unit_test(what_is_older_than_tls_1_2_is_refused),
        cmocka_unit_test(a_plain_server_is_no_tls_server),
        cmocka_unit_test(a_tls_connection_is_used_again),
        cmocka_unit_test(a_tunnel_goes_through_the_proxy),
        cmocka_unit_test(a_dead_connection_raises_no_sigpipe),
    };
    signal(SIGPIPE, SIG_IGN); /* for the test's own server */
    return cmocka_run_group_tests_name("fetch_tls", tests, make_certs, remove_certs);
}
