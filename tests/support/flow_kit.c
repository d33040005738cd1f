#include "support/flow_kit.h"

#include "wire/form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
// clang-format off
#include <cmocka.h>
// clang-format on

/* ---- life ---- */

static void browse(void *user, const char *url, const char *state)
{
    (void)user;
    (void)url;
    (void)state;
}

void flow_kit_prepare(flow_kit *k)
{
    *k = (flow_kit){.endpoint = FLOW_ENDPOINT};
    test_mem_init(&k->tm);
    fake_host_init(&k->host, &k->tm.mem, 7);
    k->options.redirect_uri = FLOW_REDIRECT;
    k->options.on_authorize = browse;
}

void flow_kit_begin(flow_kit *k)
{
    assert_int_equal(sgi_flow_new(&k->host.engine, k->endpoint, &k->options, &k->flow),
                     SEGUE_OK);
}

void flow_kit_open(flow_kit *k)
{
    flow_kit_prepare(k);
    flow_kit_begin(k);
}

void flow_kit_end(flow_kit *k)
{
    sgi_flow_free(k->flow);
    assert_true(TAILQ_EMPTY(&k->host.engine.flows));
    fake_host_free(&k->host);
    assert_int_equal(k->tm.live, 0);
}

/* ---- exchanges ---- */

void flow_refuse(flow_kit *k, int32_t status, const char *challenge)
{
    uint64_t token;
    sgi_flow_authorization_header(k->flow, &token);
    assert_int_equal(
        sgi_flow_on_token_refused(k->flow, status, sgi_str_of(challenge), token),
        SGI_FLOW_WAIT);
}

static void expect(flow_kit *k, bool post, const char *url)
{
    sgi_flow_exchange exchange;
    if (sgi_flow_next_need(k->flow) != SGI_FLOW_EXCHANGE)
        fail_msg("%s is not asked: %d %s", url, (int)sgi_flow_next_need(k->flow),
                 sgi_flow_failure_text(k->flow));
    sgi_flow_get_exchange(k->flow, &exchange);
    assert_string_equal(exchange.url, url);
    assert_int_equal(exchange.post, post);
    snprintf(k->text, sizeof k->text, "%.*s", (int)exchange.body.n,
             exchange.body.p ? exchange.body.p : "");
}

void flow_get(flow_kit *k, const char *url, int32_t status, const char *body)
{
    expect(k, false, url);
    flow_answer(k, status, body);
}

void flow_expect_post(flow_kit *k, const char *url)
{
    expect(k, true, url);
}

/* Answers the exchange. The body is a copy, so that the sanitizer finds a view that is
 * kept too long. */
void flow_answer(flow_kit *k, int32_t status, const char *body)
{
    char *copy = strdup(body);
    sgi_flow_on_answer(k->flow, status, sgi_str_of(copy));
    free(copy);
}

void flow_expect_browser(flow_kit *k)
{
    if (sgi_flow_next_need(k->flow) != SGI_FLOW_CONSENT)
        fail_msg("no browser: %d %s", (int)sgi_flow_next_need(k->flow),
                 sgi_flow_failure_text(k->flow));
    snprintf(k->text, sizeof k->text, "%s", sgi_flow_consent_url(k->flow).p);
}

segue_status flow_come_back(flow_kit *k, const char *members)
{
    char url[2048];
    snprintf(url, sizeof url, "%s?state=%s&%s", FLOW_REDIRECT,
             sgi_flow_state_parameter(k->flow).p, members);
    return sgi_flow_on_browser_redirect(&k->host.engine, sgi_str_of(url));
}

/* ---- members ---- */

const char *flow_member(flow_kit *k, const char *name)
{
    sgi_buf value;
    const char *query = strchr(k->text, '?');
    sgi_buf_init(&value, &sgi_mem_libc);
    sgi_form_found found =
        sgi_url_form_find(sgi_str_of(query ? query + 1 : k->text), name, &value);
    assert_true(found == SGI_FORM_ONE || found == SGI_FORM_ABSENT);
    snprintf(k->value, sizeof k->value, "%.*s", (int)value.len, value.p ? value.p : "");
    sgi_buf_free(&value);
    return found == SGI_FORM_ONE ? k->value : NULL;
}

void flow_assert_member(flow_kit *k, const char *name, const char *value)
{
    const char *is = flow_member(k, name);
    if (value && is ? strcmp(is, value) != 0 : value || is)
        fail_msg("%s is %s, not %s", name, is ? is : "absent", value ? value : "absent");
}

/* ---- longer ways ---- */

void flow_discover(flow_kit *k, const char *resource, const char *server)
{
    flow_refuse(k, 401, "Bearer");
    flow_get(k, FLOW_RESOURCE_URL, 200, resource);
    flow_get(k, FLOW_SERVER_URL, 200, server);
}

void flow_to_browser(flow_kit *k)
{
    flow_discover(k, FLOW_RESOURCE, FLOW_SERVER);
    flow_expect_post(k, "https://as.example/register");
    flow_answer(k, 201, FLOW_CLIENT);
    flow_expect_browser(k);
}

void flow_grant(flow_kit *k, const char *token)
{
    assert_int_equal(flow_come_back(k, "code=x1"), SEGUE_OK);
    flow_expect_post(k, "https://as.example/token");
    flow_answer(k, 200, token);
}

void flow_enter(flow_kit *k, const char *token)
{
    flow_to_browser(k);
    flow_grant(k, token);
}

void flow_assert_token(flow_kit *k, const char *token)
{
    uint64_t number;
    sgi_str header = sgi_flow_authorization_header(k->flow, &number);
    if (sgi_flow_next_need(k->flow) != SGI_FLOW_NOTHING ||
        sgi_flow_status(k->flow) != SEGUE_OK)
        fail_msg("not through: %d %s", (int)sgi_flow_next_need(k->flow),
                 sgi_flow_failure_text(k->flow));
    snprintf(k->value, sizeof k->value, "%s%s", token ? "Bearer " : "",
             token ? token : "");
    if (!sgi_str_eq(header, sgi_str_of(k->value)))
        fail_msg("the token is %.*s, not %s", (int)header.n, header.p ? header.p : "",
                 k->value);
    assert_int_equal(number != 0, token != NULL);
}

static void assert_ended(flow_kit *k, segue_status status, const char *why)
{
    assert_int_equal(sgi_flow_next_need(k->flow), SGI_FLOW_NOTHING);
    assert_int_equal(sgi_flow_status(k->flow), status);
    if (!strstr(sgi_flow_failure_text(k->flow), why))
        fail_msg("it says: %s, not: %s", sgi_flow_failure_text(k->flow), why);
}

void flow_assert_failed(flow_kit *k, const char *why)
{
    assert_ended(k, SEGUE_E_UNAUTHORIZED, why);
}

void flow_assert_put_off(flow_kit *k, const char *why)
{
    assert_ended(k, SEGUE_E_DISCONNECTED, why);
}
