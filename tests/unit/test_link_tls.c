/* Links with TLS: which clients are accepted, what is refused, certificates that
 * change. */
#include "support/link_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "support/fake_engine.h"

/* Plain HTTP and noise end the link with a reason, and nothing is delivered. */
static void what_is_not_tls_is_refused(void **state)
{
    char noise[300];
    rig r;
    (void)state;
    rig_begin(&r, TLS, false);
    for (int i = 0; i < 50; i++) {
        size_t len = sizeof noise;
        peer p = peer_meet(&r, 0);
        owner *o = &r.owners[(r.count - 1) % 8];
        for (size_t at = 0; at < len; at++)
            noise[at] = (char)(((size_t)i * 8191 + at) * 2654435761u >> 13);
        if (i == 0)
            len = (size_t)snprintf(noise, sizeof noise, "GET / HTTP/1.1\r\n\r\n");
        else if (i % 2)
            memcpy(noise, "\x16\x03\x01\x00\x80\x01\x00\x00\x7c\x03\x03", 11);
        peer_say(&p, noise, len);
        shutdown(p.fd, SHUT_WR);
        RUN_UNTIL(r.rt, o->closes == 1);
        assert_int_equal(o->got, 0);
        assert_true(strstr(o->why, "handshake failed") || strstr(o->why, "peer closed"));
        if (i == 0)
            assert_non_null(strstr(o->why, "http request"));
        peer_part(&p);
    }
    rig_end(&r);
}

/* Connects a client; returns how it was refused, or its subject. */
static const char *admit(rig *r, const client_setup *setup)
{
    static char subject[128];
    sgi_buf text;
    peer p = peer_meet(r, 0);
    owner *o = &r->owners[(r->count - 1) % 8];
    peer_begin_tls(&p, setup);
    bool up = peer_shake_hands(r, &p) && peer_say(&p, "x", 1) == 1;
    RUN_UNTIL(r->rt, !up || o->got || o->closes);
    snprintf(subject, sizeof subject, "%s", "refused");
    if (o->got) {
        sgi_buf_init(&text, &sgi_mem_libc);
        WITH_LOCK(r, if (!sgi_link_add_cert_subject(o->link, &text))
                         sgi_buf_add_lit(&text, "-"));
        snprintf(subject, sizeof subject, "%.*s", (int)text.len, text.p);
        sgi_buf_free(&text);
    } else {
        RUN_UNTIL(r->rt, o->closes == 1);
    }
    peer_part(&p);
    return subject;
}

static void client_certificates_are_verified(void **state)
{
    static const client_setup none = {NULL, 0, NULL}, known = {&rig_client_cert, 0, NULL},
                              unknown = {&rig_strange_cert, 0, NULL},
                              known_1_2 = {&rig_client_cert, TLS1_2_VERSION, NULL};
    (void)state;
    for (int mode = 0; mode < 3; mode++) {
        sgi_tls_files files = rig_old_files();
        rig r;
        files.client_ca = mode ? rig_path("ca") : NULL;
        files.client_required = mode == 2;
        rig_begin_runtime(&r, false);
        rig_listen(&r, TLS, &files);
        const char *subject = mode ? "CN=Ada\\, \xc3\xa9" : "-";
        assert_string_equal(admit(&r, &none), mode == 2 ? "refused" : "-");
        assert_string_equal(admit(&r, &known), subject);
        assert_string_equal(admit(&r, &known_1_2), subject);
        assert_string_equal(admit(&r, &unknown), mode ? "refused" : "-");
        rig_end(&r);
    }
}

static void old_versions_and_other_protocols_are_refused(void **state)
{
    static const client_setup tls11 = {NULL, TLS1_1_VERSION, NULL},
                              tls12 = {NULL, TLS1_2_VERSION, NULL},
                              h2 = {NULL, 0, "\x02h2"},
                              both = {NULL, 0, "\x02h2\x08http/1.1"};
    rig r;
    (void)state;
    rig_begin(&r, TLS, false);
    assert_string_equal(admit(&r, &tls11), "refused");
    assert_string_equal(admit(&r, &tls12), "-");
    assert_string_equal(admit(&r, &h2), "refused");
    assert_string_equal(admit(&r, &both), "-");
    rig_end(&r);
}

static void renegotiation_is_refused(void **state)
{
    static const client_setup tls12 = {NULL, TLS1_2_VERSION, NULL};
    char got[16];
    rig r;
    (void)state;
    rig_begin(&r, TLS, false);
    r.echo = true;
    peer p = peer_meet(&r, 0);
    peer_begin_tls(&p, &tls12);
    assert_true(peer_shake_hands(&r, &p));
    assert_true(SSL_renegotiate(p.ssl));
    int n = NOTHING;
    SSL_do_handshake(p.ssl);
    for (int i = 0; i < 5000 && n == NOTHING; i++) {
        rig_turn(&r);
        n = peer_hear(&p, got, sizeof got);
    }
    assert_int_equal(n, BROKEN);
    peer_part(&p);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    rig_end(&r);
}

static void assert_served(peer *p, const char *name)
{
    char text[64];
    X509 *cert = SSL_get0_peer_certificate(p->ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, text,
                              sizeof text);
    assert_string_equal(text, name);
}

/* Lets a gate use other files, if they can be used. */
static segue_status reload(sgi_link_gate *gate, const sgi_tls_files *files, char *why)
{
    sgi_tls_setup *fresh = NULL;
    segue_status status = sgi_link_gate_read(gate, files, &fresh, why);
    if (status == SEGUE_OK)
        sgi_link_gate_use(gate, fresh);
    return status;
}

static void a_reload_is_for_new_connections(void **state)
{
    char why[SGI_WHY_SIZE];
    rig r;
    (void)state;
    rig_begin(&r, TLS, false);
    r.echo = true;
    peer before = peer_meet_as(&r, TLS, 0);
    assert_served(&before, "old");
    sgi_tls_files bad[] = {{.cert = rig_path("new"), .key = rig_path("old.key")},
                           {.cert = rig_path("none"), .key = rig_path("new.key")},
                           {.cert = rig_path("garbage"), .key = rig_path("new.key")},
                           {.cert = rig_path("new"), .key = rig_path("garbage")},
                           {.cert = rig_path("new")},
                           {.key = rig_path("new.key")}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        *why = 0;
        assert_int_equal(reload(r.gate, &bad[i], why), SEGUE_E_INVALID);
        assert_true(strlen(why) > 10);
        assert_null(strstr(why, "unknown reason"));
        assert_int_equal(i == 1, strstr(why, "No such file") != NULL);
    }
    peer still = peer_meet_as(&r, TLS, 0);
    assert_served(&still, "old");
    sgi_tls_files fresh = {.cert = rig_path("new"), .key = rig_path("new.key")};
    assert_int_equal(reload(r.gate, &fresh, why), SEGUE_OK);
    peer after = peer_meet_as(&r, TLS, 0);
    assert_served(&after, "new");
    peer_say(&before, "alive", 5);
    peer_hear_all(&r, &before, 5);
    peer_part(&before);
    peer_part(&still);
    peer_part(&after);
    rig_end(&r);
}

static void a_gate_without_tls_has_nothing_to_reload(void **state)
{
    sgi_tls_files files = rig_old_files();
    sgi_tls_files lacking = {.cert = rig_path("old"), .client_required = true};
    char why[SGI_WHY_SIZE] = "";
    sgi_link_gate *gate = NULL;
    rig r;
    (void)state;
    rig_begin(&r, TCP, false);
    assert_int_equal(reload(r.gate, &files, why), SEGUE_E_STATE);
    assert_int_equal(sgi_link_gate_new(r.rt, &lacking, &gate, why), SEGUE_E_INVALID);
    assert_null(gate);
    rig_end(&r);
}

/* A TLS peer that closes its side ends the link, and so does one that only begins a
 * handshake. */
static void a_tls_end_is_an_end(void **state)
{
    rig r;
    (void)state;
    rig_begin(&r, TLS, false);
    peer p = peer_meet_as(&r, TLS, 0);
    SSL_shutdown(p.ssl);
    RUN_UNTIL(r.rt, r.owners[0].closes == 1);
    assert_string_equal(r.owners[0].why, "the peer closed the connection");
    assert_int_equal(peer_hear_end(&r, &p, NULL), 0);
    peer half = peer_meet(&r, 0);
    peer_say(&half, "\x16\x03\x01", 3);
    peer_part(&half);
    RUN_UNTIL(r.rt, r.owners[1].closes == 1);
    peer_part(&p);
    rig_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_tls_is_refused),
        cmocka_unit_test(client_certificates_are_verified),
        cmocka_unit_test(old_versions_and_other_protocols_are_refused),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(a_reload_is_for_new_connections),
        cmocka_unit_test(a_gate_without_tls_has_nothing_to_reload),
        cmocka_unit_test(a_tls_end_is_an_end),
    };
    return cmocka_run_group_tests(tests, rig_files_make, rig_files_remove);
}
