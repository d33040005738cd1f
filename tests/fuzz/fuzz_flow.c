/* A flow of authorization against servers, browsers and stores that return anything, in
 * any order. A token must be sent only if it can stand in a header. Nothing may go to a
 * URL that is not https. There must be a state whenever a browser is open. A waiting flow
 * must wait for a pending event.
 *
 * Input: one byte sets the options. Then follow one byte for each step and its answer: a
 * valid text, perhaps with one byte changed, or bytes of the input. */
#include "support/fake_host.h"
#include "support/fuzz_input.h"
#include "support/test_mem.h"

#include "engine/oauth/flow.h"
#include "wire/url.h"

#include <segue/segue_auth.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS 200

static const char *const texts[] = {
    "{\"resource\":\"https://mcp.example/mcp\",\"authorization_servers\":"
    "[\"https://as.example\"],\"scopes_supported\":[\"a\",\"b\"]}",
    "{\"issuer\":\"https://as.example\",\"authorization_endpoint\":"
    "\"https://as.example/authorize?x\",\"token_endpoint\":\"https://as.example/token\","
    "\"registration_endpoint\":\"https://as.example/register\","
    "\"code_challenge_methods_supported\":[\"S256\"],\"scopes_supported\":"
    "[\"offline_access\"],\"authorization_response_iss_parameter_supported\":true}",
    "{\"client_id\":\"c\",\"client_secret\":\"s\",\"client_secret_expires_at\":0}",
    "{\"access_token\":\"t\",\"token_type\":\"Bearer\",\"expires_in\":60,"
    "\"refresh_token\":\"r\",\"scope\":\"a\"}",
    "{\"error\":\"invalid_client\",\"error_description\":\"no\"}",
    "{\"access_token\":\"k\",\"refresh_token\":\"q\",\"issuer\":\"https://as.example\","
    "\"client_id\":\"c\",\"scope\":\"a\",\"renew_at\":1}",
    "{\"issuer\":\"https://as.example\",\"client_id\":\"c\",\"redirect_uri\":"
    "\"http://localhost:1/\"}",
    "Bearer scope=\"a c\", error=\"insufficient_scope\", "
    "resource_metadata=\"https://mcp.example/m\"",
    "code=x&iss=https%3A%2F%2Fas.example",
    "error=access_denied",
    "https://as.example/other",
    "/other",
};

static char *text_of(fuzz_input *in)
{
    uint32_t which = fuzz_below(in, sizeof texts / sizeof *texts + 1);
    if (which == sizeof texts / sizeof *texts) {
        size_t n = fuzz_byte(in);
        char *raw = calloc(1, n + 1);
        for (size_t i = 0; i < n; i++)
            raw[i] = (char)fuzz_byte(in);
        return raw;
    }
    char *text = strdup(texts[which]);
    if (fuzz_one_in(in, 4))
        text[fuzz_byte(in) % strlen(text)] = (char)fuzz_byte(in);
    return text;
}

static void browse(void *user, const char *url, const char *state)
{
    (void)user;
    (void)url;
    (void)state;
}

static const char *vouch(void *user, const char *issuer, const char *resource,
                         size_t *len)
{
    (void)user;
    (void)issuer;
    (void)resource;
    (void)len;
    return NULL;
}

static const char *load(void *user, const char *key, size_t *len)
{
    (void)user;
    (void)key;
    (void)len;
    return NULL;
}

static void save(void *user, const char *key, const char *json, size_t len)
{
    (void)user;
    (void)key;
    (void)json;
    (void)len;
}

/* ---- checks ---- */

/* A scheme is compared without regard to case (RFC 3986, 3.1). */
static void check_url(const char *text)
{
    sgi_url url;
    fuzz_check(sgi_url_parse(sgi_str_of(text), &url) && url.https && !url.has_fragment);
}

static void check(const sgi_flow *flow)
{
    uint64_t token;
    sgi_flow_exchange exchange;
    sgi_str header = sgi_flow_authorization_header(flow, &token);
    fuzz_check(!header.n == !token);
    fuzz_check(!header.n || (header.n > 7 && !memcmp(header.p, "Bearer ", 7)));
    for (size_t i = 7; i < header.n; i++)
        fuzz_check(header.p[i] > ' ' && header.p[i] <= '~');
    fuzz_check(strlen(sgi_flow_failure_text(flow)) < SGI_FLOW_WHY_SIZE);
    if (sgi_flow_next_need(flow) == SGI_FLOW_EXCHANGE) {
        sgi_flow_get_exchange(flow, &exchange);
        check_url(exchange.url);
        fuzz_check(exchange.post || !exchange.body.n);
        for (size_t i = 0; i < exchange.authorization.n; i++)
            fuzz_check(exchange.authorization.p[i] >= ' ');
    } else if (sgi_flow_next_need(flow) == SGI_FLOW_CONSENT) {
        fuzz_check(sgi_flow_state_parameter(flow).n == SGI_RANDOM_TEXT);
        fuzz_check(strstr(sgi_flow_consent_url(flow).p,
                          sgi_flow_state_parameter(flow).p) != NULL);
        check_url(sgi_flow_consent_url(flow).p);
    }
}

/* ---- steps ---- */

static void request(sgi_flow *flow, fuzz_input *in)
{
    uint64_t token;
    if (sgi_flow_before_request(flow) != SGI_FLOW_GO) {
        fuzz_check(sgi_flow_next_need(flow) != SGI_FLOW_NOTHING);
        return;
    }
    sgi_flow_authorization_header(flow, &token);
    if (fuzz_one_in(in, 3)) {
        sgi_flow_on_token_accepted(flow, token);
        return;
    }
    char *challenge = text_of(in);
    sgi_flow_verdict verdict = sgi_flow_on_token_refused(
        flow, fuzz_one_in(in, 2) ? 403 : 401, sgi_str_of(challenge), token);
    free(challenge);
    bool waits = sgi_flow_next_need(flow) != SGI_FLOW_NOTHING;
    fuzz_check((verdict == SGI_FLOW_WAIT) <= waits);
    if (verdict == SGI_FLOW_NO)
        fuzz_check(*sgi_flow_failure_text(flow) != 0);
}

static void answer(sgi_flow *flow, fuzz_input *in, const char *text)
{
    static const int32_t statuses[] = {200, 201, 400, 401, 404, 500, 302, 199};
    switch (fuzz_below(in, 8)) {
    case 0:
        sgi_flow_on_http_redirect(flow, sgi_str_of(text));
        break;
    case 1:
        sgi_flow_on_no_answer(flow, text, fuzz_one_in(in, 2));
        break;
    default:
        sgi_flow_on_answer(flow, statuses[fuzz_below(in, 8) & fuzz_byte(in)],
                           sgi_str_of(text));
    }
}

static void come_back(fake_host *host, const sgi_flow *flow, const char *text)
{
    char url[600];
    snprintf(url, sizeof url, "http://localhost:1/?state=%s&%.400s",
             sgi_flow_state_parameter(flow).p, text);
    sgi_flow_on_browser_redirect(&host->engine, sgi_str_of(url));
}

static void go_on(fake_host *host, sgi_flow *flow, fuzz_input *in)
{
    char *text = text_of(in);
    switch (sgi_flow_next_need(flow)) {
    case SGI_FLOW_NOTHING:
        request(flow, in);
        break;
    case SGI_FLOW_LOAD:
        sgi_flow_on_record_loaded(flow, sgi_str_of(text));
        break;
    case SGI_FLOW_SAVE:
        fuzz_check(sgi_flow_vault_record(flow).n > 0);
        sgi_flow_on_record_saved(flow);
        break;
    case SGI_FLOW_ASSERTION:
        sgi_flow_on_assertion(flow, sgi_str_of(text));
        break;
    case SGI_FLOW_CONSENT:
        if (fuzz_one_in(in, 8))
            sgi_flow_on_consent_timeout(flow);
        else
            come_back(host, flow, text);
        break;
    case SGI_FLOW_EXCHANGE:
        answer(flow, in, text);
        break;
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    fake_host host;
    test_mem tm;
    sgi_flow *flow = NULL;
    uint8_t set = fuzz_byte(&in);
    segue_oauth_options options = {
        .grant = set & 1 ? SEGUE_OAUTH_CODE : (set >> 1) % 3,
        .client_id = set & 8 ? "own" : NULL,
        .client_secret = set & 16 ? "secret" : NULL,
        .client_metadata_url = set & 32 ? "https://app.example/c" : NULL,
        .redirect_uri = "http://localhost:1/",
        .on_authorize = browse,
        .on_assertion = vouch,
        .on_load = set & 64 ? load : NULL,
        .on_save = set & 128 ? save : NULL,
    };
    test_mem_init(&tm);
    fake_host_init(&host, &tm.mem, 1);
    if (sgi_flow_new(&host.engine, "https://mcp.example/mcp", &options, &flow) ==
        SEGUE_OK) {
        for (int i = 0; i < STEPS && in.left; i++) {
            uint8_t what = fuzz_byte(&in);
            if (what == 255)
                fake_host_advance(&host, 60000);
            else if (what >= 250)
                tm.fail_at = tm.calls + (what - 249u);
            go_on(&host, flow, &in);
            check(flow);
        }
    }
    sgi_flow_free(flow);
    fake_host_free(&host);
    fuzz_check(tm.live == 0);
    return 0;
}
