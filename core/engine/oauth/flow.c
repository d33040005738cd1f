/* The life of a flow.
 *
 *   IDLE --401--> LOAD_TOKEN -> RESOURCE -> SERVER -> LOAD_CLIENT -> REGISTER
 *    ^               |                                                  -> SAVE_CLIENT
 *    |               v
 *    +-------- SAVE_TOKEN <- TOKEN <------- AGREE (the browser) or VOUCH
 *
 * Each stage except IDLE waits for an answer or for a user. Stages that have nothing to
 * do are skipped. For example, known metadata of an issuer is not fetched again, and
 * without a vault nothing is loaded. The records in the vault are read again each time,
 * because another process may have renewed the token.
 *
 * One flow is under way at a time, and all requests wait for it. The flow ends with a
 * token or with a reason (`why`). When renewing ahead of time fails, the client uses the
 * old token until the server refuses it.
 *
 * A temporary failure ends the flow, for example when the authorization server is down or
 * busy. Such an end is not final: a later request starts a new flow. The code of a user
 * who agreed is kept until the token endpoint has answered about it, so that the user is
 * not asked twice.
 *
 * A flow also ends when the server refuses a token that was just granted, or asks for
 * scopes that were requested before. So no server can send a user to the browser again
 * and again.
 *
 * A failed allocation sets `starved` and ends the flow at its next step. No message
 * contains a token, a secret or a code. */
#include "engine/oauth/flow_state.h"

#include "wire/challenge.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define REDIRECTS_MAX 3

/* ---- the stage ---- */

#define TO(stage) (1u << SGI_FLOW_##stage)
#define TO_A_TOKEN (TO(AGREE) | TO(VOUCH) | TO(TOKEN))

/* The allowed changes of the stage. Every stage may also change to IDLE, which ends the
 * flow. IDLE -> RESOURCE, VOUCH or TOKEN: the flow has no vault. RESOURCE -> RESOURCE and
 * SERVER -> SERVER: the flow tries the next URL, or follows a redirect.
 * TOKEN -> REGISTER: the authorization server does not know the client any more.
 * TOKEN -> AGREE, VOUCH or TOKEN: the refresh token or the kept code was refused. A
 * change that is not in the table is a defect of the caller and stops a debug build. */
static const unsigned moves[] = {
    [SGI_FLOW_IDLE] = TO(LOAD_TOKEN) | TO(RESOURCE) | TO(VOUCH) | TO(TOKEN),
    [SGI_FLOW_LOAD_TOKEN] = TO(RESOURCE) | TO(LOAD_CLIENT) | TO(VOUCH) | TO(TOKEN),
    [SGI_FLOW_RESOURCE] =
        TO(RESOURCE) | TO(SERVER) | TO(LOAD_CLIENT) | TO(REGISTER) | TO_A_TOKEN,
    [SGI_FLOW_SERVER] = TO(SERVER) | TO(LOAD_CLIENT) | TO(REGISTER) | TO_A_TOKEN,
    [SGI_FLOW_LOAD_CLIENT] = TO(REGISTER) | TO(AGREE) | TO(TOKEN),
    [SGI_FLOW_REGISTER] = TO(SAVE_CLIENT) | TO(AGREE) | TO(TOKEN),
    [SGI_FLOW_SAVE_CLIENT] = TO(AGREE) | TO(TOKEN),
    [SGI_FLOW_AGREE] = TO(TOKEN),
    [SGI_FLOW_VOUCH] = TO(TOKEN),
    [SGI_FLOW_TOKEN] = TO(SAVE_TOKEN) | TO(REGISTER) | TO_A_TOKEN,
    [SGI_FLOW_SAVE_TOKEN] = 0,
};

void sgi_flow_set_stage(sgi_flow *flow, sgi_flow_stage to)
{
    assert(to == SGI_FLOW_IDLE || moves[flow->stage] & 1u << to);
    (void)moves;
    flow->stage = to;
}

/* ---- freeing a flow ---- */

void sgi_flow_free(sgi_flow *flow)
{
    if (!flow)
        return;
    sgi_flow_stop_waiting_for_browser(flow);
    for (size_t i = 0; i < SGI_FLOW_TEXTS; i++)
        sgi_buf_free(&flow->text[i]);
    sgi_free(sgi_engine_mem(flow->engine), flow, sizeof *flow);
}

void sgi_flow_set_change_callback(sgi_flow *flow, void (*moved)(void *user), void *user)
{
    flow->moved = moved;
    flow->moved_user = user;
}

/* ---- the end of a flow ---- */

void sgi_flow_finish(sgi_flow *flow)
{
    sgi_flow_stop_waiting_for_browser(flow);
    sgi_flow_set_stage(flow, SGI_FLOW_IDLE);
    flow->starved = false;
    for (size_t i = 0; i < SGI_FLOW_TEXTS; i++)
        if (flow->text[i].failed)
            sgi_buf_reset(&flow->text[i], SIZE_MAX);
    if (flow->status != SEGUE_OK && flow->purpose <= SGI_FLOW_TO_RENEW) {
        flow->renewed_in_vain = true;
        flow->status = SEGUE_OK;
    }
}

void sgi_flow_stop(sgi_flow *flow)
{
    flow->status = SEGUE_E_CLOSED;
    sgi_flow_finish(flow);
}

void sgi_flow_fail(sgi_flow *flow, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sgi_text_vformat(flow->why, sizeof flow->why, format, args);
    va_end(args);
    flow->status = SEGUE_E_UNAUTHORIZED;
    sgi_flow_finish(flow);
}

void sgi_flow_fail_temporarily(sgi_flow *flow, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sgi_text_vformat(flow->why, sizeof flow->why, format, args);
    va_end(args);
    flow->status = SEGUE_E_DISCONNECTED;
    sgi_flow_finish(flow);
}

segue_status sgi_flow_status(const sgi_flow *flow)
{
    return flow->status;
}

const char *sgi_flow_failure_text(const sgi_flow *flow)
{
    return flow->why;
}

/* ---- functions for requests ---- */

static bool must_renew(const sgi_flow *flow)
{
    bool can =
        sgi_flow_text_is_set(flow, SGI_FT_REFRESH) || flow->grant != SEGUE_OAUTH_CODE;
    return sgi_flow_text_is_set(flow, SGI_FT_HEADER) && can && !flow->renewed_in_vain &&
           flow->renew_ms && sgi_wall_now(&flow->engine->env) >= flow->renew_ms;
}

static void renew(sgi_flow *flow)
{
    flow->purpose = SGI_FLOW_TO_RENEW;
    if (sgi_flow_text_is_set(flow, SGI_FT_KNOWN))
        sgi_flow_choose_client_id(flow);
    else
        sgi_flow_discover(flow);
}

/* Continues the flow after the token record was read from the vault. is_new: the token in
 * the record differs from the token of the flow. */
static void go_on(sgi_flow *flow, bool is_new)
{
    flow->looked = true;
    if (sgi_flow_is_out_of_memory(flow))
        return;
    if (flow->purpose == SGI_FLOW_TO_BEGIN)
        is_new = true;
    if (is_new && !must_renew(flow))
        sgi_flow_finish(flow);
    else if (flow->purpose <= SGI_FLOW_TO_RENEW)
        renew(flow);
    else
        sgi_flow_discover(flow);
}

static void begin(sgi_flow *flow, sgi_flow_purpose purpose)
{
    flow->purpose = purpose;
    flow->status = SEGUE_OK;
    flow->why[0] = 0;
    flow->refresh_tried = flow->refreshing = flow->registered_anew = false;
    flow->code_is_kept = sgi_flow_text_is_set(flow, SGI_FT_CODE);
    if (flow->has_load) {
        sgi_flow_set_token_record_key(flow);
        sgi_flow_set_stage(flow, SGI_FLOW_LOAD_TOKEN);
        sgi_flow_is_out_of_memory(flow);
    } else {
        go_on(flow, false);
    }
}

sgi_flow_verdict sgi_flow_before_request(sgi_flow *flow)
{
    if (flow->stage == SGI_FLOW_IDLE) {
        if (!flow->looked && flow->has_load)
            begin(flow, SGI_FLOW_TO_BEGIN);
        else if (must_renew(flow))
            begin(flow, SGI_FLOW_TO_RENEW);
    }
    if (flow->stage == SGI_FLOW_IDLE || (flow->purpose == SGI_FLOW_TO_STEP_UP &&
                                         sgi_flow_text_is_set(flow, SGI_FT_HEADER)))
        return SGI_FLOW_GO;
    return SGI_FLOW_WAIT;
}

sgi_str sgi_flow_authorization_header(const sgi_flow *flow, uint64_t *serial)
{
    *serial = sgi_flow_text_is_set(flow, SGI_FT_HEADER) ? flow->serial : 0;
    return sgi_flow_text_of(flow, SGI_FT_HEADER);
}

bool sgi_flow_token_is_from_grant(const sgi_flow *flow)
{
    return flow->is_granted;
}

void sgi_flow_on_token_accepted(sgi_flow *flow, uint64_t serial)
{
    flow->accepted |= serial && serial == flow->serial;
}

/* Ends the flow because access was refused. The reason contains the error in the server's
 * challenge. */
static sgi_flow_verdict refuse(sgi_flow *flow, sgi_str challenge, const char *why)
{
    char said[SGI_FLOW_SHOWN + 1] = "";
    if (sgi_challenge_find(challenge, "error_description",
                           sgi_flow_text_begin(flow, SGI_FT_SCRATCH)))
        sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_SCRATCH), said);
    flow->status = SEGUE_E_UNAUTHORIZED;
    snprintf(flow->why, sizeof flow->why, "%s%s%s", why, *said ? ": " : "", said);
    return SGI_FLOW_NO;
}

/* Stores the URL of the resource's metadata from the server's challenge, if this URL is
 * allowed. */
static void note_metadata(sgi_flow *flow, sgi_str challenge)
{
    sgi_buf *found = sgi_flow_text_begin(flow, SGI_FT_SCRATCH);
    if (sgi_challenge_find(challenge, "resource_metadata", found) &&
        sgi_flow_url_is_allowed(flow, sgi_buf_str(found)))
        sgi_flow_text_set(flow, SGI_FT_METADATA_URL, sgi_buf_str(found));
}

sgi_flow_verdict sgi_flow_on_token_refused(sgi_flow *flow, int32_t status,
                                           sgi_str challenge, uint64_t serial)
{
    bool has_token = sgi_flow_text_is_set(flow, SGI_FT_HEADER);
    bool is_lack =
        status == 403 &&
        sgi_challenge_find(challenge, "error",
                           sgi_flow_text_begin(flow, SGI_FT_SCRATCH)) &&
        sgi_str_eq(sgi_flow_text_of(flow, SGI_FT_SCRATCH), SGI_STR("insufficient_scope"));
    if (status != 401 && !is_lack)
        return SGI_FLOW_OTHER;
    if (flow->stage != SGI_FLOW_IDLE)
        return SGI_FLOW_WAIT;
    if (has_token && serial != flow->serial)
        return SGI_FLOW_GO;
    if (status == 401 && has_token && flow->is_granted && !flow->accepted) {
        flow->vain = serial;
        sgi_flow_drop_token(flow);
    }
    if (serial && serial == flow->vain)
        return refuse(flow, challenge,
                      "the server refuses an access token that was just granted");
    sgi_challenge_find(challenge, "scope", sgi_flow_text_begin(flow, SGI_FT_WANTED));
    if (is_lack && sgi_scopes_cover(sgi_flow_text_of(flow, SGI_FT_ASKED),
                                    sgi_flow_text_of(flow, SGI_FT_WANTED)))
        return refuse(
            flow, challenge,
            "the server requires scopes that the authorization server did not grant");
    note_metadata(flow, challenge);
    if (sgi_flow_is_out_of_memory(flow))
        return SGI_FLOW_NO;
    begin(flow, is_lack ? SGI_FLOW_TO_STEP_UP : SGI_FLOW_TO_ENTER);
    if (flow->stage != SGI_FLOW_IDLE)
        return SGI_FLOW_WAIT;
    return flow->status == SEGUE_OK ? SGI_FLOW_GO : SGI_FLOW_NO;
}

/* ---- the next step of a flow ---- */

sgi_flow_need sgi_flow_next_need(const sgi_flow *flow)
{
    switch (flow->stage) {
    case SGI_FLOW_IDLE:
        return SGI_FLOW_NOTHING;
    case SGI_FLOW_LOAD_TOKEN:
    case SGI_FLOW_LOAD_CLIENT:
        return SGI_FLOW_LOAD;
    case SGI_FLOW_SAVE_TOKEN:
    case SGI_FLOW_SAVE_CLIENT:
        return SGI_FLOW_SAVE;
    case SGI_FLOW_AGREE:
        return SGI_FLOW_CONSENT;
    case SGI_FLOW_VOUCH:
        return SGI_FLOW_ASSERTION;
    default:
        return SGI_FLOW_EXCHANGE;
    }
}

sgi_str sgi_flow_vault_key(const sgi_flow *flow)
{
    return sgi_flow_text_of(flow, SGI_FT_URL);
}

sgi_str sgi_flow_vault_record(const sgi_flow *flow)
{
    return sgi_flow_text_of(flow, SGI_FT_RECORD);
}

sgi_str sgi_flow_issuer(const sgi_flow *flow)
{
    return sgi_flow_text_of(flow, SGI_FT_ISS);
}

sgi_str sgi_flow_resource(const sgi_flow *flow)
{
    return sgi_flow_text_of(flow, SGI_FT_RESOURCE);
}

sgi_str sgi_flow_consent_url(const sgi_flow *flow)
{
    return sgi_flow_text_of(flow, SGI_FT_URL);
}

sgi_str sgi_flow_state_parameter(const sgi_flow *flow)
{
    return sgi_flow_text_of(flow, SGI_FT_STATE);
}

int64_t sgi_flow_consent_timeout_ms(const sgi_flow *flow)
{
    return flow->patience_ms;
}

void sgi_flow_on_record_loaded(sgi_flow *flow, sgi_str text)
{
    if (text.n > SGI_FLOW_BODY_MAX)
        text.n = 0;
    if (flow->stage == SGI_FLOW_LOAD_TOKEN)
        go_on(flow, sgi_flow_read_token_record(flow, text));
    else if (flow->stage == SGI_FLOW_LOAD_CLIENT)
        sgi_flow_take_client_record(flow, text);
}

void sgi_flow_on_record_saved(sgi_flow *flow)
{
    sgi_flow_text_clear(flow, SGI_FT_RECORD);
    if (flow->stage == SGI_FLOW_SAVE_TOKEN)
        sgi_flow_finish(flow);
    else if (flow->stage == SGI_FLOW_SAVE_CLIENT)
        sgi_flow_obtain_token(flow);
}

bool sgi_flow_url_is_allowed(const sgi_flow *flow, sgi_str text)
{
    sgi_url url, endpoint;
    return sgi_url_parse(text, &url) && !url.has_fragment &&
           (url.https ||
            (sgi_url_is_loopback(&url) &&
             sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_ENDPOINT), &endpoint) &&
             sgi_url_is_loopback(&endpoint)));
}

void sgi_flow_begin_exchange(sgi_flow *flow, sgi_flow_stage stage)
{
    sgi_buf_terminate(&flow->text[SGI_FT_URL]);
    if (sgi_flow_is_out_of_memory(flow))
        return;
    if (sgi_flow_url_is_allowed(flow, sgi_flow_text_of(flow, SGI_FT_URL)))
        sgi_flow_set_stage(flow, stage);
    else
        sgi_flow_fail(flow, "the URL of the authorization server is not allowed: the URL "
                            "has to be https");
}

static const char *name_of(const sgi_flow *flow)
{
    switch (flow->stage) {
    case SGI_FLOW_RESOURCE:
        return "the metadata of the resource";
    case SGI_FLOW_SERVER:
        return "the metadata of the authorization server";
    case SGI_FLOW_REGISTER:
        return "the registration";
    default:
        return "the token endpoint";
    }
}

void sgi_flow_get_exchange(const sgi_flow *flow, sgi_flow_exchange *exchange)
{
    sgi_url url, endpoint, issuer;
    bool forms = flow->stage == SGI_FLOW_TOKEN;
    *exchange = (sgi_flow_exchange){.url = flow->text[SGI_FT_URL].p,
                                    .post = forms || flow->stage == SGI_FLOW_REGISTER};
    exchange->public_only = !flow->allows_private;
    if (sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_URL), &url) &&
        sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_ENDPOINT), &endpoint)) {
        exchange->at_endpoint = sgi_url_same_origin(&url, &endpoint);
        exchange->same_host = sgi_url_same_host(&url, &endpoint);
        exchange->is_local = sgi_url_is_loopback(&endpoint);
        if (exchange->at_endpoint ||
            (sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_SET_ISSUER), &issuer) &&
             sgi_url_same_host(&url, &issuer)))
            /* the application itself has set the host of this URL, so the host may have a
             * private address */
            exchange->public_only = false;
    }
    if (!exchange->post)
        return;
    exchange->type = forms ? SGI_STR("application/x-www-form-urlencoded")
                           : SGI_STR("application/json");
    exchange->body = sgi_flow_text_of(flow, SGI_FT_BODY);
    if (forms)
        exchange->authorization = sgi_flow_text_of(flow, SGI_FT_BASIC);
}

void sgi_flow_on_answer(sgi_flow *flow, int32_t status, sgi_str body)
{
    sgi_flow_stage stage = flow->stage;
    if (stage == SGI_FLOW_TOKEN || stage == SGI_FLOW_REGISTER) {
        sgi_flow_text_clear(flow, SGI_FT_BODY);
        sgi_flow_text_clear(flow, SGI_FT_BASIC);
    }
    if (stage == SGI_FLOW_RESOURCE)
        sgi_flow_take_resource_metadata(flow, status, body);
    else if (stage == SGI_FLOW_SERVER)
        sgi_flow_take_server_metadata(flow, status, body);
    else if (stage == SGI_FLOW_REGISTER)
        sgi_flow_take_registration_answer(flow, status, body);
    else if (stage == SGI_FLOW_TOKEN)
        sgi_flow_take_token_answer(flow, status, body);
    if (flow->stage != SGI_FLOW_IDLE)
        sgi_flow_is_out_of_memory(flow);
}

void sgi_flow_on_http_redirect(sgi_flow *flow, sgi_str location)
{
    sgi_url from, to;
    sgi_buf *next = sgi_flow_text_begin(flow, SGI_FT_SCRATCH);
    bool reads = flow->stage == SGI_FLOW_RESOURCE || flow->stage == SGI_FLOW_SERVER;
    if (!reads) {
        sgi_flow_fail(flow, "%s is redirected, and redirects are not followed here",
                      name_of(flow));
        return;
    }
    if (flow->redirects++ < REDIRECTS_MAX &&
        sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_URL), &from) &&
        sgi_url_resolve_location(&from, location, next) &&
        sgi_url_parse(sgi_buf_str(next), &to) && sgi_url_same_origin(&from, &to)) {
        sgi_flow_text_set(flow, SGI_FT_URL, sgi_buf_str(next));
        sgi_flow_begin_exchange(flow, flow->stage);
    } else {
        /* the redirect is not allowed, so the URL counts as a URL without metadata */
        sgi_flow_on_answer(flow, 404, (sgi_str){0});
    }
}

void sgi_flow_on_no_answer(sgi_flow *flow, const char *why, bool passes)
{
    char shown[SGI_FLOW_SHOWN + 1];
    if (flow->stage == SGI_FLOW_IDLE)
        return;
    sgi_flow_printable(sgi_str_of(why), shown);
    if (passes)
        sgi_flow_fail_temporarily(flow, "%s: %s", name_of(flow), shown);
    else
        sgi_flow_fail(flow, "%s: %s", name_of(flow), shown);
}

void sgi_flow_on_consent_timeout(sgi_flow *flow)
{
    if (flow->stage == SGI_FLOW_AGREE)
        sgi_flow_fail(flow,
                      "the user did not agree in the browser within consent_timeout_ms");
}
