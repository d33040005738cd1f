/* The settings of an application must fit together. A flow whose text finds no memory
 * ends, whichever text it is, and the next flow works. */
#include <segue/segue_auth.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support/flow_kit.h"

static flow_kit k;

/* ---- settings ---- */

static segue_status made_with(const char *endpoint)
{
    segue_status status = sgi_flow_new(&k.host.engine, endpoint, &k.options, &k.flow);
    if (status == SEGUE_OK)
        sgi_flow_free(k.flow);
    k.flow = NULL;
    return status;
}

static void settings_have_to_fit_together(void **state)
{
    (void)state;
    static const char *const good_uris[] = {"https://a/b", "http://[::1]:8/",
                                            "http://localhost/", "com.example.a:/b"};
    static const char *const bad_uris[] = {
        "", "x", "http://a.example/", "myapp:/b", "https://a/#f", ":", NULL};
    flow_kit_prepare(&k);
    segue_oauth_options good = k.options;
    for (size_t i = 0; i < sizeof good_uris / sizeof *good_uris; i++) {
        k.options.redirect_uri = good_uris[i];
        assert_int_equal(made_with(FLOW_ENDPOINT), SEGUE_OK);
    }
    for (size_t i = 0; i < sizeof bad_uris / sizeof *bad_uris; i++) {
        k.options.redirect_uri = bad_uris[i];
        assert_int_equal(made_with(FLOW_ENDPOINT), SEGUE_E_INVALID);
    }
    k.options = good;
    assert_int_equal(made_with("http://127.0.0.1:1/mcp"), SEGUE_OK);
    assert_int_equal(made_with("http://mcp.example/mcp"), SEGUE_E_INVALID);
    assert_int_equal(made_with("https://u:p@mcp.example/mcp"), SEGUE_E_INVALID);
#define BAD(member, value)                                                               \
    do {                                                                                 \
        k.options = good;                                                                \
        k.options.member = (value);                                                      \
        assert_int_equal(made_with(FLOW_ENDPOINT), SEGUE_E_INVALID);                     \
    } while (0)
    BAD(on_authorize, NULL);
    BAD(grant, 3);
    BAD(grant, -1);
    BAD(grant, SEGUE_OAUTH_CLIENT); /* the client is not named */
    BAD(grant, SEGUE_OAUTH_ASSERTION);
    BAD(client_metadata_url, "http://localhost/c");
    BAD(client_metadata_url, "https://a/");
    BAD(client_metadata_url, "https://a/b#c");
    BAD(issuer, "as");
    BAD(auth_method, "client_secret_jwt");
    BAD(private_key, "key");
    BAD(client_id, "a\nb");
    BAD(client_secret, "\xc3\xa9");
    BAD(client_name, "\xff");
    BAD(consent_timeout_ms, -1);
    k.options = good;
    k.options.grant = SEGUE_OAUTH_CLIENT;
    k.options.client_id = "c";
    assert_int_equal(made_with(FLOW_ENDPOINT), SEGUE_E_INVALID);
    k.options.client_secret = "s";
    assert_int_equal(made_with(FLOW_ENDPOINT), SEGUE_OK);
    flow_kit_end(&k);
}

/* ---- memory ---- */

/* Plays all exchanges; returns how the flow ended. */
static segue_status play(void)
{
    for (int steps = 0; steps < 20; steps++) {
        sgi_flow_exchange exchange;
        switch (sgi_flow_next_need(k.flow)) {
        case SGI_FLOW_NOTHING:
            return sgi_flow_status(k.flow);
        case SGI_FLOW_CONSENT:
            if (flow_come_back(&k, "code=x") != SEGUE_OK)
                sgi_flow_on_consent_timeout(k.flow);
            break;
        case SGI_FLOW_LOAD:
            sgi_flow_on_record_loaded(k.flow,
                                      SGI_STR("{\"access_token\":\"t0\",\"issuer\":1}"));
            break;
        case SGI_FLOW_SAVE:
            sgi_flow_on_record_saved(k.flow);
            break;
        default:
            sgi_flow_get_exchange(k.flow, &exchange);
            if (strstr(exchange.url, "protected"))
                flow_answer(&k, 200, FLOW_RESOURCE);
            else if (strstr(exchange.url, "well-known"))
                flow_answer(&k, 200, FLOW_SERVER);
            else if (strstr(exchange.url, "register"))
                flow_answer(&k, 201, "{\"client_id\":\"c\",\"client_secret\":\"s\"}");
            else
                flow_answer(&k, 200, FLOW_TOKEN("t1", ",\"refresh_token\":\"r\""));
        }
    }
    fail_msg("it does not end");
    return SEGUE_OK;
}

static size_t once(size_t fail_at, size_t fail_from)
{
    static const char challenge[] = "Bearer scope=\"a b\", resource_metadata=\"x\"";
    uint64_t token;
    flow_kit_prepare(&k);
    k.options.on_load = (segue_load_fn)(uintptr_t)1;
    k.options.on_save = (segue_save_fn)(uintptr_t)1;
    test_mem_rearm(&k.tm);
    k.tm.fail_at = fail_at;
    k.tm.fail_from = fail_from;
    segue_status status =
        sgi_flow_new(&k.host.engine, FLOW_ENDPOINT, &k.options, &k.flow);
    if (status == SEGUE_OK) {
        sgi_flow_authorization_header(k.flow, &token);
        sgi_flow_on_token_refused(k.flow, 401, SGI_STR(challenge), token);
        status = play();
    }
    size_t calls = k.tm.calls;
    if (status != SEGUE_OK)
        assert_true(k.tm.failed);
    else if (!k.tm.failed)
        flow_assert_token(&k, "t1");
    assert_true(status == SEGUE_OK || status == SEGUE_E_NOMEM ||
                status == SEGUE_E_UNAUTHORIZED);
    test_mem_rearm(&k.tm); /* memory is back: the flow works */
    if (k.flow) {
        sgi_flow_authorization_header(k.flow, &token);
        sgi_flow_on_token_accepted(k.flow, token);
        assert_int_equal(sgi_flow_on_token_refused(k.flow, 401, SGI_STR("Bearer"), token),
                         SGI_FLOW_WAIT);
        if (play() != SEGUE_OK)
            fail_msg("%zu %zu: %s", fail_at, fail_from, sgi_flow_failure_text(k.flow));
        assert_true(sgi_flow_authorization_header(k.flow, &token).n > 0);
    }
    flow_kit_end(&k);
    return calls;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    size_t calls = once(0, 0);
    assert_in_range(calls, 25, 10000);
    for (size_t i = 1; i <= calls; i++) {
        once(i, 0);
        once(0, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_have_to_fit_together),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
