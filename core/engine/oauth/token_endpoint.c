/* The token endpoint (OAuth 2.1, section 3.2) gives a token for a code, a refresh token,
 * an assertion, or the client's credentials alone.
 *
 * The client authenticates by the method of its registration, else by a method that
 * client and server support. A refused refresh token is dropped, and the flow continues
 * without it. A client that the endpoint does not know is registered again. Every other
 * failure ends the flow: nothing is tried twice.
 *
 * Only tokens of type Bearer are accepted, because other types need more than a header
 * with the token. */
#include "engine/oauth/flow_state.h"

#define ASSERTION_MS 60000 /* time in ms for which a signed client assertion is valid */
/* The time in ms before the end of a token's life at which the token is renewed. A token
 * with a short life is renewed in the last quarter of its life. */
#define RENEW_EARLY_MS 30000
#define LIFE_MOST_S (INT64_C(10) * 365 * 24 * 3600)

#define JWT_BEARER "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define JWT_CLIENT "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

/* ---- client authentication ---- */

static uint32_t choose_method(const sgi_flow *flow)
{
    uint32_t known = flow->methods;
    if (flow->method)
        return flow->method;
    if (sgi_flow_text_is_set(flow, SGI_FT_SET_KEY) && (!known || known & SGI_AUTH_JWT))
        return SGI_AUTH_JWT;
    if (!sgi_flow_text_is_set(flow, SGI_FT_SECRET))
        return SGI_AUTH_NONE;
    if (!known || known & SGI_AUTH_BASIC)
        return SGI_AUTH_BASIC;
    return known & SGI_AUTH_POST ? SGI_AUTH_POST : SGI_AUTH_NONE;
}

/* Writes client id and secret for Basic authentication. Each of them is form-encoded
 * before both are encoded as base64 (RFC 6749, section 2.3.1). */
static void show_basic(sgi_flow *flow)
{
    sgi_buf *scratch = sgi_flow_text_begin(flow, SGI_FT_SCRATCH);
    sgi_url_form_escape(scratch, sgi_flow_text_of(flow, SGI_FT_CLIENT_ID));
    sgi_buf_add_char(scratch, ':');
    sgi_url_form_escape(scratch, sgi_flow_text_of(flow, SGI_FT_SECRET));
    sgi_flow_text_set(flow, SGI_FT_BASIC, SGI_STR("Basic "));
    sgi_buf_add_base64(&flow->text[SGI_FT_BASIC], scratch->p, scratch->len, false);
}

static void add_part(sgi_buf *out, const sgi_buf *part)
{
    if (part->failed)
        out->failed = true;
    else
        sgi_buf_add_base64(out, part->p, part->len, true);
}

static const char *algorithm_of(sgi_crypto_scheme scheme)
{
    switch (scheme) {
    case SGI_CRYPTO_RS256:
        return "RS256";
    case SGI_CRYPTO_ES256:
        return "ES256";
    case SGI_CRYPTO_ES384:
        return "ES384";
    case SGI_CRYPTO_EDDSA:
        return "EdDSA";
    default:
        return NULL;
    }
}

static void write_claims(sgi_flow *flow, sgi_buf *part, const char *id)
{
    int64_t now = sgi_wall_now(&flow->engine->env);
    sgi_buf_reset(part, SIZE_MAX);
    sgi_jw w = sgi_jw_to(part);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "iss", sgi_flow_text_of(flow, SGI_FT_CLIENT_ID));
    sgi_jw_member_string(&w, "sub", sgi_flow_text_of(flow, SGI_FT_CLIENT_ID));
    sgi_jw_member_string(&w, "aud", sgi_flow_text_of(flow, SGI_FT_ISS));
    sgi_jw_member_string(&w, "jti", sgi_str_of(id));
    sgi_jw_member_int(&w, "iat", now / 1000);
    sgi_jw_member_int(&w, "exp", (now + ASSERTION_MS) / 1000);
    sgi_jw_close(&w, '}');
}

/* Writes a client assertion and signs it with the client's key: the method
 * private_key_jwt (RFC 7523, section 2.2). The only audience of the assertion is the
 * issuer. */
static bool show_key(sgi_flow *flow)
{
    sgi_str pem = sgi_flow_text_of(flow, SGI_FT_SET_KEY);
    const char *algorithm = algorithm_of(sgi_crypto_pem_scheme(pem));
    char id[SGI_RANDOM_TEXT + 1];
    sgi_buf part, jwt;
    if (!algorithm || !sgi_engine_random_text(flow->engine, id))
        return false;
    sgi_buf_init(&part, sgi_engine_mem(flow->engine));
    sgi_buf_init(&jwt, sgi_engine_mem(flow->engine));
    sgi_jw w = sgi_jw_to(&part);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "alg", sgi_str_of(algorithm));
    sgi_jw_member_string(&w, "typ", SGI_STR("JWT"));
    sgi_jw_close(&w, '}');
    add_part(&jwt, &part);
    sgi_buf_add_char(&jwt, '.');
    write_claims(flow, &part, id);
    add_part(&jwt, &part);
    sgi_buf_reset(&part, SIZE_MAX);
    bool ok = !jwt.failed && sgi_crypto_sign(pem, sgi_buf_str(&jwt), &part);
    sgi_buf_add_char(&jwt, '.');
    add_part(&jwt, &part);
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "client_assertion_type",
                     SGI_STR(JWT_CLIENT));
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "client_assertion", sgi_buf_str(&jwt));
    flow->text[SGI_FT_BODY].failed |= jwt.failed || part.failed;
    sgi_buf_free(&part);
    sgi_buf_free(&jwt);
    return ok;
}

/* Adds the client's authentication to the request and sends the request. */
static void send_request(sgi_flow *flow)
{
    sgi_buf *body = &flow->text[SGI_FT_BODY];
    uint32_t method = choose_method(flow);
    sgi_flow_text_clear(flow, SGI_FT_BASIC);
    sgi_url_form_add(body, "resource", sgi_flow_text_of(flow, SGI_FT_RESOURCE));
    if (method == SGI_AUTH_BASIC)
        show_basic(flow);
    /* With Basic, RFC 6749 (3.2.1) needs no client id in the body. But some servers read
     * the client id only there, for example the server of the Python SDK. */
    if (sgi_flow_text_is_set(flow, SGI_FT_CLIENT_ID))
        sgi_url_form_add(body, "client_id", sgi_flow_text_of(flow, SGI_FT_CLIENT_ID));
    if (method == SGI_AUTH_POST)
        sgi_url_form_add(body, "client_secret", sgi_flow_text_of(flow, SGI_FT_SECRET));
    if (method == SGI_AUTH_JWT && !show_key(flow)) {
        if (!sgi_flow_is_out_of_memory(flow))
            sgi_flow_fail(flow, "private_key cannot sign");
        return;
    }
    sgi_flow_text_set(flow, SGI_FT_URL, sgi_flow_text_of(flow, SGI_FT_TOKEN_URL));
    sgi_flow_begin_exchange(flow, SGI_FLOW_TOKEN);
}

/* ---- the requests for each grant ---- */

static void begin_body(sgi_flow *flow, sgi_str grant)
{
    sgi_flow_text_begin(flow, SGI_FT_BODY);
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "grant_type", grant);
}

static bool can_refresh(const sgi_flow *flow)
{
    return sgi_flow_text_is_set(flow, SGI_FT_REFRESH) && !flow->refresh_tried &&
           flow->purpose != SGI_FLOW_TO_STEP_UP &&
           sgi_str_eq(sgi_flow_text_of(flow, SGI_FT_TOKEN_ISSUER),
                      sgi_flow_text_of(flow, SGI_FT_ISS)) &&
           sgi_str_eq(sgi_flow_text_of(flow, SGI_FT_TOKEN_CLIENT),
                      sgi_flow_text_of(flow, SGI_FT_CLIENT_ID));
}

/* Sends a refresh request with the refresh token. The request names no scopes, so the new
 * token has the same scopes as the old one. */
static void refresh(sgi_flow *flow)
{
    flow->refreshing = flow->refresh_tried = true;
    begin_body(flow, SGI_STR("refresh_token"));
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "refresh_token",
                     sgi_flow_text_of(flow, SGI_FT_REFRESH));
    send_request(flow);
}

static void send_with_scopes(sgi_flow *flow)
{
    if (sgi_flow_text_is_set(flow, SGI_FT_ASKED))
        sgi_url_form_add(&flow->text[SGI_FT_BODY], "scope",
                         sgi_flow_text_of(flow, SGI_FT_ASKED));
    send_request(flow);
}

static void ask_for_ourselves(sgi_flow *flow)
{
    sgi_flow_choose_scopes(flow);
    if (flow->grant == SEGUE_OAUTH_ASSERTION) {
        sgi_flow_set_stage(flow, SGI_FLOW_VOUCH);
        sgi_flow_is_out_of_memory(flow);
        return;
    }
    begin_body(flow, SGI_STR("client_credentials"));
    send_with_scopes(flow);
}

/* True for a text of three base64url parts with dots between them, which is the form of a
 * JWT (RFC 7515, section 3.1). */
static bool is_jwt(sgi_str text)
{
    size_t dots = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                    (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
        if (!fits)
            return false;
        dots += c == '.';
    }
    return text.n && dots == 2;
}

void sgi_flow_on_assertion(sgi_flow *flow, sgi_str assertion)
{
    if (flow->stage != SGI_FLOW_VOUCH)
        return;
    if (!is_jwt(assertion)) {
        sgi_flow_fail(flow,
                      "on_assertion gave no assertion for this authorization server");
        return;
    }
    begin_body(flow, SGI_STR(JWT_BEARER));
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "assertion", assertion);
    send_with_scopes(flow);
}

void sgi_flow_obtain_token(sgi_flow *flow)
{
    flow->refreshing = false;
    if (sgi_flow_is_out_of_memory(flow))
        return;
    if (sgi_flow_text_is_set(flow, SGI_FT_TOKEN_ISSUER) &&
        !sgi_str_eq(sgi_flow_text_of(flow, SGI_FT_TOKEN_ISSUER),
                    sgi_flow_text_of(flow, SGI_FT_ISS)))
        /* the token belongs to another issuer; dropping it also drops the scopes that
         * were requested there */
        sgi_flow_drop_token(flow);
    if (sgi_flow_text_is_set(flow, SGI_FT_CODE) && flow->purpose != SGI_FLOW_TO_RENEW) {
        sgi_flow_redeem_code(flow);
    } else if (can_refresh(flow)) {
        refresh(flow);
    } else if (flow->grant != SEGUE_OAUTH_CODE) {
        ask_for_ourselves(flow);
    } else if (flow->purpose == SGI_FLOW_TO_RENEW) {
        flow->renewed_in_vain = true;
        sgi_flow_finish(flow);
    } else {
        sgi_flow_ask_consent(flow);
    }
}

void sgi_flow_redeem_code(sgi_flow *flow)
{
    begin_body(flow, SGI_STR("authorization_code"));
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "code",
                     sgi_flow_text_of(flow, SGI_FT_CODE));
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "code_verifier",
                     sgi_flow_text_of(flow, SGI_FT_VERIFIER));
    sgi_url_form_add(&flow->text[SGI_FT_BODY], "redirect_uri",
                     sgi_flow_text_of(flow, SGI_FT_SET_REDIRECT));
    send_request(flow);
}

/* ---- the answer of the endpoint ---- */

void sgi_flow_drop_token(sgi_flow *flow)
{
    sgi_flow_text_clear(flow, SGI_FT_HEADER);
    sgi_flow_text_clear(flow, SGI_FT_REFRESH);
    sgi_flow_text_clear(flow, SGI_FT_ASKED);
    sgi_flow_text_clear(flow, SGI_FT_TOKEN_ISSUER);
    sgi_flow_text_clear(flow, SGI_FT_TOKEN_CLIENT);
    flow->renew_ms = 0;
    flow->is_granted = flow->accepted = false;
}

static void refused(sgi_flow *flow, int32_t status, sgi_str body)
{
    bool unknown = sgi_flow_error_is(flow, body, "invalid_client") ||
                   sgi_flow_error_is(flow, body, "unauthorized_client");
    bool was_kept = flow->code_is_kept && sgi_flow_text_is_set(flow, SGI_FT_CODE);
    if (sgi_flow_failure_is_temporary(flow, status, body)) {
        sgi_flow_fail_by_answer(flow, "the token endpoint", status, body);
        return;
    }
    sgi_flow_text_clear(flow, SGI_FT_CODE);
    if (unknown && flow->purpose != SGI_FLOW_TO_RENEW &&
        sgi_flow_register_client_anew(flow))
        return;
    if (flow->refreshing || was_kept) {
        if (flow->refreshing)
            sgi_flow_text_clear(flow, SGI_FT_REFRESH);
        sgi_flow_obtain_token(flow);
        return;
    }
    sgi_flow_fail_by_answer(flow, "the token endpoint", status, body);
}

/* Reads the lifetime of a token in seconds; returns 0 when it is not known. The value may
 * be a number or, from some servers, a string with a number. */
static int64_t read_life(sgi_json value)
{
    int64_t seconds = 0;
    sgi_str text;
    if (sgi_json_plain_string(value, &text))
        value = text;
    if (value.n > 12 || !sgi_json_read_int(value, &seconds) || seconds <= 0)
        return 0;
    return seconds < LIFE_MOST_S ? seconds : LIFE_MOST_S;
}

static bool is_bearer(sgi_str type)
{
    static const char name[] = "bearer";
    for (size_t i = 0; i < type.n; i++)
        if (i >= sizeof name - 1 || (type.p[i] | 32) != name[i])
            return false;
    return type.n == sizeof name - 1;
}

static void keep_token(sgi_flow *flow, sgi_json object)
{
    int64_t life_ms = read_life(sgi_json_get(object, "expires_in")) * 1000;
    int64_t early_ms = life_ms / 4 < RENEW_EARLY_MS ? life_ms / 4 : RENEW_EARLY_MS;
    flow->renew_ms = life_ms ? sgi_wall_now(&flow->engine->env) + life_ms - early_ms : 0;
    flow->serial++;
    flow->is_granted = !flow->refreshing;
    flow->accepted = flow->renewed_in_vain = false;
    sgi_flow_text_set(flow, SGI_FT_TOKEN_ISSUER, sgi_flow_text_of(flow, SGI_FT_ISS));
    sgi_flow_text_set(flow, SGI_FT_TOKEN_CLIENT,
                      sgi_flow_text_of(flow, SGI_FT_CLIENT_ID));
    if (!flow->has_save) {
        sgi_flow_finish(flow);
        return;
    }
    sgi_flow_set_token_record_key(flow);
    sgi_flow_write_token_record(flow);
    sgi_flow_set_stage(flow, SGI_FLOW_SAVE_TOKEN);
    sgi_flow_is_out_of_memory(flow);
}

void sgi_flow_take_token_answer(sgi_flow *flow, int32_t status, sgi_str body)
{
    sgi_json object;
    if (status < 200 || status > 299) {
        refused(flow, status, body);
        return;
    }
    sgi_flow_text_clear(flow, SGI_FT_CODE);
    sgi_flow_text_clear(flow, SGI_FT_VERIFIER);
    bool fits = sgi_flow_parse_object(flow, body, &object) &&
                sgi_flow_read_member(flow, object, "token_type", SGI_FT_SCRATCH) &&
                is_bearer(sgi_flow_text_of(flow, SGI_FT_SCRATCH)) &&
                sgi_flow_read_member(flow, object, "access_token", SGI_FT_SCRATCH) &&
                sgi_flow_text_is_set(flow, SGI_FT_SCRATCH);
    if (fits && memchr(sgi_flow_text_of(flow, SGI_FT_SCRATCH).p, ' ',
                       sgi_flow_text_of(flow, SGI_FT_SCRATCH).n))
        fits = false;
    if (!fits) {
        sgi_flow_fail(flow, "the token endpoint did not give a bearer token");
        return;
    }
    sgi_flow_text_set(flow, SGI_FT_HEADER, SGI_STR("Bearer "));
    sgi_buf_add_str(&flow->text[SGI_FT_HEADER], sgi_flow_text_of(flow, SGI_FT_SCRATCH));
    bool keeps = flow->refreshing && !sgi_json_get(object, "refresh_token").n;
    if (!keeps && !sgi_flow_read_member(flow, object, "refresh_token", SGI_FT_REFRESH))
        sgi_flow_text_clear(flow, SGI_FT_REFRESH);
    if (sgi_flow_is_out_of_memory(flow))
        /* after a failed allocation the texts may belong to two different tokens, so all
         * texts are dropped */
        sgi_flow_drop_token(flow);
    else
        keep_token(flow, object);
}
