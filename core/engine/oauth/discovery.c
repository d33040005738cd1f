/* Finds the authorization server of the endpoint (2026-07-28
 * basic/authorization/authorization-server-discovery):
 *
 *   1. The client fetches the resource's metadata (RFC 9728): at the URL in the
 *      server's challenge (WWW-Authenticate), else at the well-known URL of the path,
 *      else at the well-known URL of the host.
 *   2. The first allowed authorization server of this metadata is used. Without metadata,
 *      the endpoint's own host is used, as in 2025-03-26.
 *   3. The client fetches the metadata of the authorization server (RFC 8414, OpenID
 *      Connect), at two or three well-known URLs.
 *
 * A URL that answers with anything but JSON counts as a URL without metadata, because
 * hosts answer unknown paths with a page or a redirect. A URL that fails (5xx, 429, no
 * connection) ends the flow. Otherwise an attacker who causes the failure could choose
 * the next URL. Metadata of another resource or another issuer also ends the flow. */
#include "engine/oauth/flow_state.h"

#define WELL_KNOWN "/.well-known/"

static void ask_next_resource(sgi_flow *flow);
static void ask_next_server(sgi_flow *flow);

static sgi_str without_slash(sgi_str path)
{
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    return path;
}

/* Writes a URL from the origin of `base`, the well-known name and, if with_path is true,
 * the path of `base`. behind: true = the well-known name follows the path; false = the
 * path follows the well-known name. */
static void compose(sgi_flow *flow, const sgi_url *base, const char *name, bool with_path,
                    bool behind)
{
    sgi_buf *url = sgi_flow_text_begin(flow, SGI_FT_URL);
    sgi_str path = without_slash(base->path);
    sgi_buf_add_str(url, base->origin);
    if (with_path && behind)
        sgi_buf_add_str(url, path);
    sgi_buf_add_lit(url, WELL_KNOWN);
    sgi_buf_add_str(url, sgi_str_of(name));
    if (with_path && !behind)
        sgi_buf_add_str(url, path);
    if (with_path && base->query.p) {
        sgi_buf_add_char(url, '?');
        sgi_buf_add_str(url, base->query);
    }
}

/* True when the response shows that the URL has no metadata. */
static bool is_empty(sgi_flow *flow, int32_t status, sgi_str body, sgi_json *object)
{
    return status < 200 ||
           (status >= 300 &&
            !sgi_flow_failure_is_temporary(flow, status, (sgi_str){0})) ||
           (status < 300 && !sgi_flow_parse_object(flow, body, object));
}

static bool lists(sgi_json list, sgi_str name)
{
    sgi_json item;
    if (sgi_json_kind_of(list) != SGI_JSON_ARRAY)
        return false;
    for (size_t at = 0; sgi_json_next_item(list, &at, &item);)
        if (sgi_json_string_is(item, name))
            return true;
    return false;
}

/* ---- metadata of the resource ---- */

void sgi_flow_discover(sgi_flow *flow)
{
    flow->candidate = 0;
    flow->has_resource = false;
    ask_next_resource(flow);
}

/* Uses the endpoint's own host as the authorization server, because no metadata was
 * found. 2025-03-26 does the same. */
static void assume_host(sgi_flow *flow, const sgi_url *endpoint)
{
    sgi_flow_text_set(flow, SGI_FT_RESOURCE, sgi_flow_text_of(flow, SGI_FT_ENDPOINT));
    sgi_flow_text_clear(flow, SGI_FT_OFFERED);
    sgi_flow_text_clear(flow, SGI_FT_METADATA_URL);
    sgi_flow_text_set(flow, SGI_FT_ISSUER, endpoint->origin);
    flow->candidate = 0;
    ask_next_server(flow);
}

static void ask_next_resource(sgi_flow *flow)
{
    sgi_url endpoint;
    sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_ENDPOINT), &endpoint);
    bool has_path = without_slash(endpoint.path).n > 0 || endpoint.query.p;
    size_t place = flow->candidate++;
    flow->redirects = 0;
    if (place == 0 && sgi_flow_text_is_set(flow, SGI_FT_METADATA_URL)) {
        sgi_flow_text_set(flow, SGI_FT_URL, sgi_flow_text_of(flow, SGI_FT_METADATA_URL));
    } else if (place <= 1 && has_path) {
        flow->candidate = 2;
        compose(flow, &endpoint, "oauth-protected-resource", true, false);
    } else if (place <= 2) {
        flow->candidate = 3;
        compose(flow, &endpoint, "oauth-protected-resource", false, false);
    } else {
        assume_host(flow, &endpoint);
        return;
    }
    sgi_flow_text_clear(flow, SGI_FT_BODY);
    sgi_flow_begin_exchange(flow, SGI_FLOW_RESOURCE);
}

static void take_offered(sgi_flow *flow, sgi_json list)
{
    sgi_json item;
    size_t count = 0;
    sgi_flow_text_clear(flow, SGI_FT_OFFERED);
    if (sgi_json_kind_of(list) != SGI_JSON_ARRAY)
        return;
    for (size_t at = 0;
         count++ < SGI_FLOW_OFFERED_MAX && sgi_json_next_item(list, &at, &item);) {
        sgi_flow_text_begin(flow, SGI_FT_SCRATCH);
        if (sgi_json_decode(item, &flow->text[SGI_FT_SCRATCH]))
            sgi_flow_add_scopes(&flow->text[SGI_FT_OFFERED],
                                sgi_flow_text_of(flow, SGI_FT_SCRATCH));
    }
}

/* Chooses the issuer from the list in the metadata: the issuer of the application's
 * options if the list contains it, else the first allowed URL. Without a list, uses the
 * endpoint's host. Returns false when no URL of the list is allowed. */
static bool take_issuer(sgi_flow *flow, sgi_json list, const sgi_url *endpoint)
{
    sgi_json item;
    size_t at = 0, count = 0;
    bool known = sgi_flow_text_is_set(flow, SGI_FT_SET_ISSUER) &&
                 lists(list, sgi_flow_text_of(flow, SGI_FT_SET_ISSUER));
    if (sgi_json_kind_of(list) == SGI_JSON_ARRAY)
        for (; sgi_json_next_item(list, &at, &item); count++) {
            if (known &&
                !sgi_json_string_is(item, sgi_flow_text_of(flow, SGI_FT_SET_ISSUER)))
                continue;
            sgi_flow_text_clear(flow, SGI_FT_ISSUER);
            if (sgi_json_decode(item, &flow->text[SGI_FT_ISSUER]) &&
                sgi_flow_url_is_allowed(flow, sgi_flow_text_of(flow, SGI_FT_ISSUER)))
                return true;
        }
    sgi_flow_text_set(flow, SGI_FT_ISSUER, endpoint->origin);
    return count == 0;
}

void sgi_flow_take_resource_metadata(sgi_flow *flow, int32_t status, sgi_str body)
{
    sgi_json object = {0};
    sgi_url endpoint, resource;
    char shown[SGI_FLOW_SHOWN + 1];
    if (is_empty(flow, status, body, &object)) {
        if (!sgi_flow_is_out_of_memory(flow))
            ask_next_resource(flow);
        return;
    }
    if (status >= 300) {
        sgi_flow_fail_by_answer(flow, "the metadata of the resource", status, body);
        return;
    }
    sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_ENDPOINT), &endpoint);
    if (!sgi_flow_read_member(flow, object, "resource", SGI_FT_RESOURCE) ||
        !sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_RESOURCE), &resource) ||
        !sgi_url_covers(&resource, &endpoint)) {
        sgi_flow_fail(flow, "the metadata of the resource describes another resource: %s",
                      sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_RESOURCE), shown));
        return;
    }
    take_offered(flow, sgi_json_get(object, "scopes_supported"));
    if (!take_issuer(flow, sgi_json_get(object, "authorization_servers"), &endpoint)) {
        sgi_flow_fail(flow, "the metadata of the resource names no authorization server "
                            "with an allowed URL");
        return;
    }
    flow->has_resource = true;
    flow->candidate = 0;
    ask_next_server(flow);
}

/* ---- metadata of the authorization server ---- */

/* Sets the URLs of the endpoints that 2025-03-26 assumes for a server without
 * metadata. */
static void assume_endpoints(sgi_flow *flow)
{
    static const struct {
        sgi_flow_text which;
        const char *path;
    } places[] = {{SGI_FT_AUTHORIZE, "/authorize"},
                  {SGI_FT_TOKEN_URL, "/token"},
                  {SGI_FT_REGISTER, "/register"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        sgi_flow_text_set(flow, places[i].which, sgi_flow_text_of(flow, SGI_FT_ISSUER));
        sgi_buf_add_str(&flow->text[places[i].which], sgi_str_of(places[i].path));
    }
    sgi_flow_text_set(flow, SGI_FT_ISS, sgi_flow_text_of(flow, SGI_FT_ISSUER));
    sgi_flow_text_set(flow, SGI_FT_KNOWN, sgi_flow_text_of(flow, SGI_FT_ISSUER));
    flow->methods = 0;
    flow->knows_documents = flow->names_itself = flow->offline = false;
    sgi_flow_choose_client_id(flow);
}

static void have_no_metadata(sgi_flow *flow)
{
    char shown[SGI_FLOW_SHOWN + 1];
    if (flow->has_resource)
        sgi_flow_fail(flow, "the authorization server %s has no metadata",
                      sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_ISSUER), shown));
    else
        assume_endpoints(flow);
}

static void ask_next_server(sgi_flow *flow)
{
    sgi_url issuer;
    if (sgi_flow_is_out_of_memory(flow))
        return;
    if (sgi_flow_text_is_set(flow, SGI_FT_KNOWN) &&
        sgi_str_eq(sgi_flow_text_of(flow, SGI_FT_KNOWN),
                   sgi_flow_text_of(flow, SGI_FT_ISSUER))) {
        sgi_flow_choose_client_id(flow);
        return;
    }
    sgi_flow_text_clear(flow, SGI_FT_KNOWN);
    /* the stored code comes from another issuer, and must not be sent to the present
     * one */
    sgi_flow_text_clear(flow, SGI_FT_CODE);
    sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_ISSUER), &issuer);
    bool has_path = without_slash(issuer.path).n > 0;
    size_t place = flow->candidate++;
    flow->redirects = 0;
    if (place == 0)
        compose(flow, &issuer, "oauth-authorization-server", true, false);
    else if (place == 1)
        compose(flow, &issuer, "openid-configuration", true, false);
    else if (place == 2 && has_path)
        compose(flow, &issuer, "openid-configuration", true, true);
    else {
        have_no_metadata(flow);
        return;
    }
    sgi_flow_text_clear(flow, SGI_FT_BODY);
    sgi_flow_begin_exchange(flow, SGI_FLOW_SERVER);
}

static uint32_t read_methods(sgi_json list)
{
    uint32_t methods = 0;
    for (uint32_t method = SGI_AUTH_NONE; method <= SGI_AUTH_JWT; method <<= 1)
        if (lists(list, sgi_str_of(sgi_flow_auth_method_name(method))))
            methods |= method;
    return methods;
}

/* True when both issuers are the same text (RFC 8414, section 3.3). Two issuers without a
 * path may differ in a slash at the end, because both texts are the same URL. */
static bool is_issuer(sgi_str named, sgi_str wanted)
{
    sgi_url url;
    return sgi_str_eq(named, wanted) ||
           (sgi_url_parse(named, &url) && !without_slash(url.path).n && !url.query.p &&
            sgi_str_eq(without_slash(named), without_slash(wanted)));
}

static bool is_place(const sgi_flow *flow, sgi_flow_text which, bool needed)
{
    return sgi_flow_text_is_set(flow, which)
               ? sgi_flow_url_is_allowed(flow, sgi_flow_text_of(flow, which))
               : !needed;
}

/* Checks the metadata of the authorization server. Returns NULL when it can be used, else
 * a text that says what is wrong. */
static const char *check_server(sgi_flow *flow, sgi_json object)
{
    bool code = flow->grant == SEGUE_OAUTH_CODE;
    if (!sgi_flow_read_member(flow, object, "issuer", SGI_FT_ISS) ||
        !is_issuer(sgi_flow_text_of(flow, SGI_FT_ISS),
                   sgi_flow_text_of(flow, SGI_FT_ISSUER)))
        return "describes another issuer";
    if (!sgi_flow_read_member(flow, object, "token_endpoint", SGI_FT_TOKEN_URL) ||
        !is_place(flow, SGI_FT_TOKEN_URL, true))
        return "has no token endpoint with an allowed URL";
    if (!sgi_flow_read_member(flow, object, "authorization_endpoint", SGI_FT_AUTHORIZE) ||
        !is_place(flow, SGI_FT_AUTHORIZE, code))
        return "has no authorization endpoint with an allowed URL";
    if (!sgi_flow_read_member(flow, object, "registration_endpoint", SGI_FT_REGISTER) ||
        !is_place(flow, SGI_FT_REGISTER, false))
        return "has a registration endpoint whose URL is not allowed";
    if (code &&
        !lists(sgi_json_get(object, "code_challenge_methods_supported"), SGI_STR("S256")))
        return "does not state that PKCE with S256 is supported";
    return NULL;
}

void sgi_flow_take_server_metadata(sgi_flow *flow, int32_t status, sgi_str body)
{
    sgi_json object = {0};
    char shown[SGI_FLOW_SHOWN + 1];
    if (is_empty(flow, status, body, &object)) {
        ask_next_server(flow);
        return;
    }
    if (status >= 300) {
        sgi_flow_fail_by_answer(flow, "the metadata of the authorization server", status,
                                body);
        return;
    }
    const char *problem = check_server(flow, object);
    if (problem) {
        sgi_flow_fail(flow, "the metadata of the authorization server %s %s",
                      sgi_flow_printable(sgi_flow_text_of(flow, SGI_FT_ISSUER), shown),
                      problem);
        return;
    }
    flow->methods =
        read_methods(sgi_json_get(object, "token_endpoint_auth_methods_supported"));
    flow->knows_documents =
        sgi_json_kind_of(sgi_json_get(object, "client_id_metadata_document_supported")) ==
        SGI_JSON_TRUE;
    flow->names_itself =
        sgi_json_kind_of(sgi_json_get(
            object, "authorization_response_iss_parameter_supported")) == SGI_JSON_TRUE;
    flow->offline =
        lists(sgi_json_get(object, "scopes_supported"), SGI_STR("offline_access"));
    sgi_flow_text_set(flow, SGI_FT_KNOWN, sgi_flow_text_of(flow, SGI_FT_ISSUER));
    sgi_flow_choose_client_id(flow);
}
