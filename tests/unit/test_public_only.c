/* The addresses to which a server may lead a client: public addresses, and the server's
 * own address. The address of the connection decides, after the lookup of its name. */
#include "support/auth_script.h"
#include "support/fetch_kit.h"
#include "transport/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- addresses ---- */

static void ranges_are_told_apart(void **state)
{
    static const char *const special[] = {"0.0.0.0",
                                          "10.0.0.1",
                                          "10.255.255.255",
                                          "100.64.0.1",
                                          "100.127.255.254",
                                          "127.0.0.1",
                                          "127.255.255.255",
                                          "169.254.169.254",
                                          "172.16.0.1",
                                          "172.31.255.255",
                                          "192.0.0.1",
                                          "192.0.2.1",
                                          "192.168.0.1",
                                          "198.18.0.1",
                                          "198.19.255.255",
                                          "224.0.0.1",
                                          "239.1.1.1",
                                          "240.0.0.1",
                                          "255.255.255.255",
                                          "[::]",
                                          "[::1]",
                                          "[::ffff:127.0.0.1]",
                                          "[::ffff:10.0.0.1]",
                                          "[::ffff:0:1]",
                                          "[::10.0.0.1]",
                                          "[fc00::1]",
                                          "[fdff::1]",
                                          "[fe80::1]",
                                          "[febf::1]",
                                          "[fec0::1]",
                                          "[ff02::1]",
                                          "[64:ff9b::10.0.0.1]",
                                          "[64:ff9b:1::1]",
                                          "[2002:0a00:0001::1]",
                                          "[2001:0::1]",
                                          "[2001:db8::1]",
                                          "[fd00:ec2::254]",
                                          "2130706433",
                                          "0x7f.1",
                                          "0177.0.0.1",
                                          "127.1"};
    static const char *const open[] = {
        "1.1.1.1",          "9.255.255.255",      "11.0.0.0",
        "100.63.255.255",   "100.128.0.0",        "126.255.255.255",
        "128.0.0.1",        "169.253.0.1",        "169.255.0.1",
        "172.15.255.255",   "172.32.0.0",         "192.167.0.1",
        "192.169.0.1",      "198.17.0.1",         "198.20.0.1",
        "223.255.255.255",  "[2606:4700::1111]",  "[2a00::1]",
        "[::ffff:1.1.1.1]", "[64:ff9b::1.1.1.1]", "[2002:0101:0101::1]"};
    sgi_ip_address address;
    (void)state;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (!sgi_ip_address_parse(sgi_str_of(special[i]), &address) ||
            sgi_ip_address_is_public(&address))
            fail_msg("%s", special[i]);
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (!sgi_ip_address_parse(sgi_str_of(open[i]), &address) ||
            !sgi_ip_address_is_public(&address))
            fail_msg("%s", open[i]);
    assert_false(sgi_ip_address_parse(SGI_STR("example.org"), &address));
    assert_false(sgi_ip_address_parse(SGI_STR("[]"), &address));
    assert_false(sgi_ip_address_parse(SGI_STR(""), &address));
}

/* ---- connections ---- */

static const sgi_ip_address local = {AF_INET, {127, 0, 0, 1}};
static const sgi_ip_address other = {AF_INET, {10, 0, 0, 1}};

static void is_shut_out(fetch_rig *rig, const char *url)
{
    fetch_seen seen = {0};
    snprintf(rig->named, sizeof rig->named, "%s", url);
    rig->public_only = true;
    fetch_start(rig, &seen, NULL);
    RUN_UNTIL(rig->rt, seen.dones);
    assert_int_equal(seen.fault, SGI_FETCH_SHUT_OUT);
    assert_int_equal(seen.heads, 0);
    assert_non_null(strstr(seen.text, "is not a public address"));
    assert_non_null(strstr(seen.text, "allow_private_addresses"));
    rig->public_only = false;
    rig->named[0] = 0;
}

static void connections_to_private_addresses_are_not_made(void **state)
{
    fetch_rig rig;
    http_line line = {.fd = -1};
    char url[64];
    (void)state;
    fetch_begin(&rig, NULL);
    int port = atoi(strrchr(rig.url, ':') + 1);
    /* A connection to a private address exists: requests that must stay public do not use
     * it. */
    assert_int_equal(fetch_exchange(&rig, &line, NULL), 200);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    is_shut_out(&rig, url);
    snprintf(url, sizeof url, "http://localhost:%d/", port);
    is_shut_out(&rig, url);
    snprintf(url, sizeof url, "http://2130706433:%d/", port);
    is_shut_out(&rig, url);
    rig.excepted = &other;
    is_shut_out(&rig, url);
    rig.excepted = &local;
    rig.public_only = true;
    http_line again = {.fd = -1};
    assert_int_equal(fetch_exchange(&rig, &again, NULL), 200);
    http_line_close(&again);
    http_line_close(&line);
    fetch_tear_down(&rig);
}

/* A proxy looks up names itself, and the application chose it. Only a private address in
 * the URL is refused. */
static void a_proxy_is_not_asked_for_private_addresses(void **state)
{
    fetch_rig rig;
    (void)state;
    fetch_set_up(&rig);
    fetch_connect(&rig, &(sgi_fetch_settings){.proxy = "http://127.0.0.1:9"});
    is_shut_out(&rig, "http://10.0.0.1/");
    is_shut_out(&rig, "http://[::ffff:10.0.0.1]/");
    fetch_tear_down(&rig);
}

/* ---- authorization ---- */

static void say_where(heard *h, const char *origin, const char *server)
{
    char body[512];
    snprintf(body, sizeof body,
             "{\"resource\":\"%s/mcp\",\"authorization_servers\":[\"%s\"]}", origin,
             server);
    script_say(h, "200 OK", "Content-Type: application/json\r\n", body);
}

/* Metadata names an authorization server that only this machine could reach. */
static void discovery_does_not_follow_to_private_addresses(void **state)
{
    static const char *const servers[] = {"https://10.0.0.1", "https://169.254.169.254",
                                          "https://[fd00::1]:8443"};
    (void)state;
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        auth_script a;
        auth_prepare(&a);
        auth_connect(&a);
        auth_refuse(script_expect(&a.s, "server/discover"), "401 Unauthorized", "Bearer");
        say_where(auth_expect(&a, "GET", "/.well-known/oauth-protected-resource/mcp"),
                  a.origin, servers[i]);
        script_until(&a.s, a.s.k.closed);
        assert_int_equal(a.s.k.closed_status, SEGUE_E_UNAUTHORIZED);
        assert_int_equal(a.asked, 0);
        auth_end(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_told_apart),
        cmocka_unit_test(connections_to_private_addresses_are_not_made),
        cmocka_unit_test(a_proxy_is_not_asked_for_private_addresses),
        cmocka_unit_test(discovery_does_not_follow_to_private_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
