/* Finds the client id for an authorization server (2026-07-28
 * basic/authorization/client-registration). The first of these is used: the client id of
 * the application; the URL of the client's metadata document, if the server accepts such
 * ids; the client that the server has registered before; a new registration.
 *
 * A registration is used only with its issuer. When the option `issuer` names a server,
 * the application's client id and the tokens obtained with it are also used only with
 * that issuer. A registration is replaced, once in a flow, when its secret has expired or
 * when the token endpoint does not know it. */
#include "engine/oauth/flow_state.h"

static const char *const method_names[] = {"none", "client_secret_basic",
                                           "client_secret_post", "private_key_jwt"};

uint32_t sgi_flow_auth_method_from_name(sgi_str name)
{
    for (size_t i = 0; i < sizeof method_names / sizeof *method_names; i++)
        if (sgi_str_eq(name, sgi_str_of(method_names[i])))
            return 1u << i;
    return 0;
}

const char *sgi_flow_auth_method_name(uint32_t method)
{
    size_t i = 0;
    while (i + 1 < sizeof method_names / sizeof *method_names && method != 1u << i)
        i++;
    return method_names[i];
}

/* ---- choosing the client ---- */

static bool is_current(const sgi_flow *flow)
{
    int64_t now_s = sgi_wall_now(&flow->engine->env) / 1000;
    return sgi_flow_text_is_set(flow, SGI_FT_CLIENT_ID) &&
           sgi_str_eq(sgi_flow_text_of(flow, SGI_FT_CLIENT_ISSUER),
                      sgi_flow_text_of(flow, SGI_FT_ISS)) &&
           (!flow->secret_ends || flow->secret_ends > now_s);
}

static void set_client(sgi_flow *flow, sgi_flow_text id, sgi_flow_text secret)
{
    sgi_flow_text_set(flow, SGI_FT_CLIENT_ID, sgi_flow_text_of(flow, id));
    sgi_flow_text_set(flow, SGI_FT_SECRET, sgi_flow_text_of(flow, secret));
    sgi_flow_text_set(flow, SGI_FT_CLIENT_ISSUER, sgi_flow_text_of(flow, SGI_FT_ISS));
    flow->method =
        sgi_flow_auth_method_from_name(sgi_flow_text_of(flow, SGI_FT_SET_METHOD));
    flow->is_dynamic = false;
    flow->secret_ends = 0;
}

/* Uses the client id that the application has set, if it belongs to this issuer. */
static void use_own(sgi_flow *flow)
{
    sgi_str iss = sgi_flow_text_of(flow, SGI_FT_ISS);
    char shown[SGI_FLOW_SHOWN + 1];
    sgi_flow_text bound = sgi_flow_text_is_set(flow, SGI_FT_SET_ISSUER)
                              ? SGI_FT_SET_ISSUER
                              : SGI_FT_TOKEN_ISSUER;
    bool ours = bound == SGI_FT_SET_ISSUER ||
                sgi_str_eq(sgi_flow_text_of(flow, SGI_FT_TOKEN_CLIENT),
                           sgi_flow_text_of(flow, SGI_FT_SET_CLIENT_ID));
    if (ours && sgi_flow_text_is_set(flow, bound) &&
        !sgi_str_eq(sgi_flow_text_of(flow, bound), iss)) {
        sgi_flow_fail(flow,
                      "the resource names the authorization server %s, but client_id "
                      "belongs to another one",
                      sgi_flow_printable(iss, shown));
        return;
    }
    set_client(flow, SGI_FT_SET_CLIENT_ID, SGI_FT_SET_SECRET);
    sgi_flow_obtain_token(flow);
}

static void ask_registration(sgi_flow *flow);

void sgi_flow_choose_client_id(sgi_flow *flow)
{
    if (sgi_flow_is_out_of_memory(flow))
        return;
    if (sgi_flow_text_is_set(flow, SGI_FT_SET_CLIENT_ID)) {
        use_own(flow);
    } else if (flow->grant == SEGUE_OAUTH_ASSERTION) {
        /* the assertion names the client, so the flow needs no registered client id */
        sgi_flow_text_clear(flow, SGI_FT_CLIENT_ID);
        set_client(flow, SGI_FT_SET_CLIENT_ID, SGI_FT_SET_SECRET);
        sgi_flow_obtain_token(flow);
    } else if (flow->knows_documents &&
               sgi_flow_text_is_set(flow, SGI_FT_SET_METADATA_URL)) {
        set_client(flow, SGI_FT_SET_METADATA_URL, SGI_FT_SET_SECRET);
        sgi_flow_obtain_token(flow);
    } else if (is_current(flow)) {
        sgi_flow_obtain_token(flow);
    } else if (flow->has_load) {
        sgi_flow_set_client_record_key(flow);
        sgi_flow_set_stage(flow, SGI_FLOW_LOAD_CLIENT);
        sgi_flow_is_out_of_memory(flow);
    } else {
        ask_registration(flow);
    }
}

void sgi_flow_take_client_record(sgi_flow *flow, sgi_str text)
{
    if (sgi_flow_read_client_record(flow, text) && is_current(flow)) {
        flow->is_dynamic = true;
        sgi_flow_obtain_token(flow);
    } else {
        ask_registration(flow);
    }
}

bool sgi_flow_register_client_anew(sgi_flow *flow)
{
    if (!flow->is_dynamic || flow->registered_anew)
        return false;
    flow->registered_anew = true;
    sgi_flow_drop_token(flow);
    ask_registration(flow);
    return true;
}

/* ---- dynamic registration (RFC 7591) ---- */

/* True for a client on a web server. A program that receives the redirect on the user's
 * machine is a native client (OpenID Connect Dynamic Client Registration, section 2). */
static bool is_web(sgi_str redirect)
{
    sgi_url url;
    return sgi_url_parse(redirect, &url) && !sgi_url_is_loopback(&url);
}

/* Returns the authentication method for a new registration. A client asks for no secret
 * if the server accepts clients without a secret, because a program cannot keep a secret
 * when others can read its files. */
static uint32_t wanted_method(const sgi_flow *flow)
{
    if (sgi_flow_text_is_set(flow, SGI_FT_SET_METHOD))
        return sgi_flow_auth_method_from_name(sgi_flow_text_of(flow, SGI_FT_SET_METHOD));
    if (flow->methods & SGI_AUTH_NONE)
        return SGI_AUTH_NONE;
    if (!flow->methods || flow->methods & SGI_AUTH_BASIC)
        /* basic authentication is the default method (RFC 8414, section 2) */
        return SGI_AUTH_BASIC;
    return flow->methods & SGI_AUTH_POST ? SGI_AUTH_POST : SGI_AUTH_NONE;
}

static void write_list(sgi_jw *w, const char *name, sgi_str one, sgi_str two)
{
    sgi_jw_key(w, name);
    sgi_jw_open(w, '[');
    sgi_jw_string(w, one);
    if (two.n)
        sgi_jw_string(w, two);
    sgi_jw_close(w, ']');
}

static void write_registration(sgi_flow *flow)
{
    sgi_buf *body = sgi_flow_text_begin(flow, SGI_FT_BODY);
    sgi_str redirect = sgi_flow_text_of(flow, SGI_FT_SET_REDIRECT);
    sgi_jw w = sgi_jw_to(body);
    sgi_jw_open(&w, '{');
    sgi_jw_member_string(&w, "client_name", sgi_flow_text_of(flow, SGI_FT_SET_NAME));
    write_list(&w, "redirect_uris", redirect, (sgi_str){0});
    write_list(&w, "grant_types", SGI_STR("authorization_code"),
               SGI_STR("refresh_token"));
    write_list(&w, "response_types", SGI_STR("code"), (sgi_str){0});
    sgi_jw_member_string(&w, "token_endpoint_auth_method",
                         sgi_str_of(sgi_flow_auth_method_name(wanted_method(flow))));
    sgi_jw_member_string(&w, "application_type",
                         is_web(redirect) ? SGI_STR("web") : SGI_STR("native"));
    sgi_jw_close(&w, '}');
}

static void ask_registration(sgi_flow *flow)
{
    char shown[SGI_FLOW_SHOWN + 1];
    sgi_flow_text_clear(flow, SGI_FT_CLIENT_ID);
    sgi_flow_text_clear(flow, SGI_FT_SECRET);
    if (flow->no_registration || flow->grant != SEGUE_OAUTH_CODE ||
        !sgi_flow_text_is_set(flow, SGI_FT_REGISTER)) {
        sgi_flow_fail(flow,
                      "the authorization server %s does not know this client, and %s",
                      sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_ISSUER), shown),
                      flow->no_registration ? "registration is switched off"
                                            : "the server offers no registration");
        return;
    }
    /* a new client could not renew the token of the old client, so the flow ends */
    if (flow->purpose == SGI_FLOW_TO_RENEW) {
        flow->renewed_in_vain = true;
        sgi_flow_finish(flow);
        return;
    }
    sgi_flow_text_set(flow, SGI_FT_URL, sgi_flow_text_of(flow, SGI_FT_REGISTER));
    write_registration(flow);
    sgi_flow_begin_exchange(flow, SGI_FLOW_REGISTER);
}

void sgi_flow_take_registration_answer(sgi_flow *flow, int32_t status, sgi_str body)
{
    sgi_json object;
    int64_t ends = 0;
    if (status < 200 || status > 299) {
        sgi_flow_fail_by_answer(flow, "the registration", status, body);
        return;
    }
    if (!sgi_flow_parse_object(flow, body, &object) ||
        !sgi_flow_read_member(flow, object, "client_id", SGI_FT_CLIENT_ID) ||
        !sgi_flow_text_is_set(flow, SGI_FT_CLIENT_ID) ||
        !sgi_flow_read_member(flow, object, "client_secret", SGI_FT_SECRET) ||
        !sgi_flow_read_member(flow, object, "token_endpoint_auth_method",
                              SGI_FT_SCRATCH)) {
        sgi_flow_text_clear(flow, SGI_FT_CLIENT_ID);
        sgi_flow_fail(flow, "the answer to the registration is invalid");
        return;
    }
    if (sgi_json_read_int(sgi_json_get(object, "client_secret_expires_at"), &ends))
        flow->secret_ends = ends > 0 ? ends : 0;
    else
        flow->secret_ends = 0;
    flow->method = sgi_flow_auth_method_from_name(sgi_flow_text_of(flow, SGI_FT_SCRATCH));
    flow->is_dynamic = true;
    sgi_flow_text_set(flow, SGI_FT_CLIENT_ISSUER, sgi_flow_text_of(flow, SGI_FT_ISS));
    if (!flow->has_save) {
        sgi_flow_obtain_token(flow);
        return;
    }
    sgi_flow_set_client_record_key(flow);
    sgi_flow_write_client_record(flow);
    sgi_flow_set_stage(flow, SGI_FLOW_SAVE_CLIENT);
    sgi_flow_is_out_of_memory(flow);
}
