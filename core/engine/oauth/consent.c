/* Lets the user agree in a browser (2026-07-28 basic/authorization, "Authorization
 * Response Validation"). The browser is sent to a URL with PKCE (RFC 7636), the resource
 * (RFC 8707) and a state of 132 random bits. Then the browser comes back to the redirect
 * URI with parameters.
 *
 * The state shows to which flow an answer belongs. An answer with an unknown state
 * changes nothing. A state is valid once. Next the issuer is checked (RFC 9207), before
 * any other parameter is read. Even an error is not reported if it comes from another
 * issuer. */
#include "engine/oauth/flow_state.h"

#define VERIFIER_BYTES 32

static bool make_secrets(sgi_flow *flow, char challenge[64])
{
    uint8_t bytes[VERIFIER_BYTES], digest[SGI_DIGEST_SIZE];
    char state[SGI_RANDOM_TEXT + 1];
    sgi_buf *verifier = sgi_flow_text_begin(flow, SGI_FT_VERIFIER);
    if (!sgi_random(&flow->engine->env, bytes, sizeof bytes) ||
        !sgi_engine_random_text(flow->engine, state))
        return false;
    sgi_buf_add_base64(verifier, bytes, sizeof bytes, true);
    sgi_flow_text_set(flow, SGI_FT_STATE, sgi_str_of(state));
    if (verifier->failed || !sgi_buf_terminate(&flow->text[SGI_FT_STATE]) ||
        !sgi_crypto_sha256(digest, sgi_buf_str(verifier)))
        return false;
    sgi_buf *scratch = sgi_flow_text_begin(flow, SGI_FT_SCRATCH);
    sgi_buf_add_base64(scratch, digest, sizeof digest, true);
    if (scratch->failed || scratch->len >= 64)
        return false;
    memcpy(challenge, scratch->p, scratch->len);
    challenge[scratch->len] = 0;
    return true;
}

/* Writes the URL that the browser opens. The URL of the authorization endpoint may
 * already have a query (RFC 6749, section 3.1). */
static void write_url(sgi_flow *flow, const char *challenge)
{
    sgi_buf *url = &flow->text[SGI_FT_URL];
    sgi_str asked = sgi_flow_text_of(flow, SGI_FT_ASKED);
    sgi_url place;
    sgi_flow_text_set(flow, SGI_FT_URL, sgi_flow_text_of(flow, SGI_FT_AUTHORIZE));
    sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_AUTHORIZE), &place);
    sgi_buf_add_char(url, place.query.p ? '&' : '?');
    sgi_url_form_add(url, "response_type", SGI_STR("code"));
    sgi_url_form_add(url, "client_id", sgi_flow_text_of(flow, SGI_FT_CLIENT_ID));
    sgi_url_form_add(url, "redirect_uri", sgi_flow_text_of(flow, SGI_FT_SET_REDIRECT));
    sgi_url_form_add(url, "code_challenge", sgi_str_of(challenge));
    sgi_url_form_add(url, "code_challenge_method", SGI_STR("S256"));
    sgi_url_form_add(url, "state", sgi_flow_text_of(flow, SGI_FT_STATE));
    sgi_url_form_add(url, "resource", sgi_flow_text_of(flow, SGI_FT_RESOURCE));
    if (asked.n)
        sgi_url_form_add(url, "scope", asked);
    /* with offline_access, OpenID Connect requires the prompt "consent" (section 11) */
    if (sgi_scopes_cover(asked, SGI_STR("offline_access")))
        sgi_url_form_add(url, "prompt", SGI_STR("consent"));
    sgi_buf_terminate(url);
}

void sgi_flow_ask_consent(sgi_flow *flow)
{
    char challenge[64];
    sgi_flow_choose_scopes(flow);
    sgi_flow_text_clear(flow, SGI_FT_CODE);
    flow->code_is_kept = false;
    if (make_secrets(flow, challenge))
        write_url(flow, challenge);
    else if (!sgi_flow_is_out_of_memory(flow))
        sgi_flow_fail(flow, "no random bytes are available");
    if (flow->stage == SGI_FLOW_IDLE || sgi_flow_is_out_of_memory(flow))
        return;
    sgi_flow_set_stage(flow, SGI_FLOW_AGREE);
    flow->listed = true;
    TAILQ_INSERT_TAIL(&flow->engine->flows, flow, link);
}

void sgi_flow_stop_waiting_for_browser(sgi_flow *flow)
{
    if (flow->listed)
        TAILQ_REMOVE(&flow->engine->flows, flow, link);
    flow->listed = false;
    sgi_flow_text_clear(flow, SGI_FT_STATE);
}

/* ---- the browser's answer ---- */

static sgi_str query_of(sgi_str redirect)
{
    const char *mark = redirect.n ? memchr(redirect.p, '?', redirect.n) : NULL;
    if (mark)
        redirect = (sgi_str){mark + 1, redirect.n - (size_t)(mark + 1 - redirect.p)};
    const char *fragment = redirect.n ? memchr(redirect.p, '#', redirect.n) : NULL;
    if (fragment)
        redirect.n = (size_t)(fragment - redirect.p);
    return redirect;
}

static sgi_flow *find(sgi_engine *engine, sgi_str state)
{
    sgi_flow *flow;
    TAILQ_FOREACH(flow, &engine->flows, link) {
        sgi_str own = sgi_flow_text_of(flow, SGI_FT_STATE);
        if (own.n == state.n && sgi_crypto_equal(own.p, state.p, own.n))
            return flow;
    }
    return NULL;
}

/* Checks the issuer in the answer. Returns true when the answer has the expected issuer.
 * Also returns true when the answer has no issuer and the authorization server did not
 * announce an issuer in its answers. Otherwise ends the flow and returns false. */
static bool check_issuer(sgi_flow *flow, sgi_str query)
{
    sgi_buf *iss = &flow->text[SGI_FT_SCRATCH];
    switch (sgi_url_form_find(query, "iss", iss)) {
    case SGI_FORM_NOMEM:
        sgi_flow_is_out_of_memory(flow);
        return false;
    case SGI_FORM_ABSENT:
        if (!flow->names_itself)
            return true;
        sgi_flow_fail(flow, "the redirect from the browser does not name its issuer");
        return false;
    case SGI_FORM_ONE:
        if (sgi_str_eq(sgi_buf_str(iss), sgi_flow_text_of(flow, SGI_FT_ISS)))
            return true;
        break;
    case SGI_FORM_MALFORMED:
        break;
    }
    sgi_flow_fail(flow, "the redirect from the browser comes from another issuer");
    return false;
}

static void take_error(sgi_flow *flow, sgi_str query)
{
    char error[SGI_FLOW_SHOWN + 1], text[SGI_FLOW_SHOWN + 1];
    sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_SCRATCH), error);
    *text = 0;
    if (sgi_url_form_find(query, "error_description", &flow->text[SGI_FT_SCRATCH]) ==
        SGI_FORM_ONE)
        sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_SCRATCH), text);
    sgi_flow_fail(flow, "the user or the authorization server refused access: %s%s%s",
                  error, *text ? ": " : "", text);
}

static void take_answer(sgi_flow *flow, sgi_str query)
{
    if (!check_issuer(flow, query))
        return;
    sgi_form_found error = sgi_url_form_find(query, "error", &flow->text[SGI_FT_SCRATCH]);
    if (error == SGI_FORM_ONE) {
        take_error(flow, query);
        return;
    }
    sgi_form_found code = sgi_url_form_find(query, "code", &flow->text[SGI_FT_CODE]);
    if (sgi_flow_is_out_of_memory(flow))
        return;
    if (error != SGI_FORM_ABSENT || code != SGI_FORM_ONE ||
        !sgi_flow_text_is_set(flow, SGI_FT_CODE))
        sgi_flow_fail(flow, "the redirect from the browser has no code");
    else
        sgi_flow_redeem_code(flow);
}

segue_status sgi_flow_on_browser_redirect(sgi_engine *engine, sgi_str redirect)
{
    sgi_str query = query_of(redirect);
    sgi_buf state;
    sgi_buf_init(&state, sgi_engine_mem(engine));
    sgi_form_found found = sgi_url_form_find(query, "state", &state);
    sgi_flow *flow =
        found == SGI_FORM_ONE && state.len ? find(engine, sgi_buf_str(&state)) : NULL;
    bool is_text = found == SGI_FORM_ONE && state.len;
    sgi_buf_free(&state);
    if (found == SGI_FORM_NOMEM)
        return SEGUE_E_NOMEM;
    if (!flow)
        return is_text ? SEGUE_E_NOT_FOUND : SEGUE_E_INVALID;
    sgi_flow_stop_waiting_for_browser(flow);
    take_answer(flow, query);
    if (flow->moved)
        flow->moved(flow->moved_user);
    return SEGUE_OK;
}
