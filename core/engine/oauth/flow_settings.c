/* Checks the options of the application once, before the first request. Options that
 * contradict each other are refused here and not in the middle of a flow. Examples: a
 * grant without its data, a redirect URI on which any program can listen, an endpoint to
 * which the token would travel unencrypted, a private key that cannot sign. */
#include "engine/oauth/flow_state.h"

#define PATIENCE_MS INT64_C(600000)

#define SETTING(member, which)                                                           \
    {                                                                                    \
#member, offsetof(segue_oauth_options, member), which                            \
    }

static const struct {
    const char *name;
    size_t offset;
    sgi_flow_text which;
} settings[] = {
    SETTING(client_id, SGI_FT_SET_CLIENT_ID),
    SETTING(client_secret, SGI_FT_SET_SECRET),
    SETTING(private_key, SGI_FT_SET_KEY),
    SETTING(issuer, SGI_FT_SET_ISSUER),
    SETTING(client_metadata_url, SGI_FT_SET_METADATA_URL),
    SETTING(client_name, SGI_FT_SET_NAME),
    SETTING(redirect_uri, SGI_FT_SET_REDIRECT),
    SETTING(scope, SGI_FT_SET_SCOPE),
    SETTING(auth_method, SGI_FT_SET_METHOD),
};

static segue_status refuse(const sgi_flow *flow, const char *why)
{
    return sgi_refuse(flow->engine, SEGUE_E_INVALID, "%s", why);
}

static bool is_plain(sgi_str text, bool lines)
{
    for (size_t i = 0; i < text.n; i++)
        if ((text.p[i] < ' ' || text.p[i] > '~') &&
            !(lines && (text.p[i] == '\n' || text.p[i] == '\r')))
            return false;
    return true;
}

static segue_status take_settings(sgi_flow *flow, const segue_oauth_options *options)
{
    segue_status status = SEGUE_OK;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *const *at =
            (const void *)((const char *)options + settings[i].offset);
        sgi_str text = sgi_str_of(*at);
        bool name = settings[i].which == SGI_FT_SET_NAME;
        bool plain = name ? sgi_utf8_valid(text, NULL)
                          : is_plain(text, settings[i].which == SGI_FT_SET_KEY);
        if (!plain)
            status = sgi_refuse(flow->engine, SEGUE_E_INVALID, "%s is not %s",
                                settings[i].name, name ? "UTF-8" : "visible ASCII");
        sgi_flow_text_set(flow, settings[i].which, text);
    }
    if (!sgi_flow_text_is_set(flow, SGI_FT_SET_NAME))
        sgi_flow_text_set(flow, SGI_FT_SET_NAME, SGI_STR("segue"));
    flow->grant = options->grant;
    flow->patience_ms = options->consent_timeout_ms;
    if (!flow->patience_ms)
        flow->patience_ms = PATIENCE_MS;
    flow->has_load = options->on_load != NULL;
    flow->has_save = options->on_save != NULL;
    flow->no_registration = options->no_registration != 0;
    flow->allows_private = options->allow_private_addresses != 0;
    return flow->patience_ms > 0 ? status : refuse(flow, "consent_timeout_ms is below 0");
}

/* True for a redirect URI that the library accepts: with https, on this machine, or with
 * a scheme of the application's own (RFC 8252, section 7). */
static bool is_redirect(sgi_str uri)
{
    sgi_url url;
    size_t n = 0;
    while (n < uri.n && uri.p[n] != ':')
        n++;
    if (!n || n == uri.n)
        return false;
    if (!sgi_url_parse(uri, &url))
        return memchr(uri.p, '.', n) != NULL;
    return !url.has_fragment && (url.https || sgi_url_is_loopback(&url));
}

static bool is_document(sgi_str text)
{
    sgi_url url;
    return sgi_url_parse(text, &url) && url.https && url.path.n > 1 && !url.has_fragment;
}

/* Checks each text of the options. Returns SEGUE_E_INVALID when a text is wrong. */
static segue_status check_texts(const sgi_flow *flow)
{
    sgi_url url;
    if (!sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_ENDPOINT), &url) ||
        !(url.https || sgi_url_is_loopback(&url)))
        return refuse(flow, "the URL of the transport has to be https or on this "
                            "machine, because the token would be sent unencrypted");
    if (sgi_flow_text_is_set(flow, SGI_FT_SET_ISSUER) &&
        !sgi_url_parse(sgi_flow_text_of(flow, SGI_FT_SET_ISSUER), &url))
        return refuse(flow, "issuer is not a URL");
    if (sgi_flow_text_is_set(flow, SGI_FT_SET_METADATA_URL) &&
        !is_document(sgi_flow_text_of(flow, SGI_FT_SET_METADATA_URL)))
        return refuse(flow, "client_metadata_url has to be an https URL with a path");
    if (sgi_flow_text_is_set(flow, SGI_FT_SET_METHOD) &&
        !sgi_flow_auth_method_from_name(sgi_flow_text_of(flow, SGI_FT_SET_METHOD)))
        return refuse(flow, "auth_method is not known");
    if (sgi_flow_text_is_set(flow, SGI_FT_SET_KEY) &&
        sgi_crypto_pem_scheme(sgi_flow_text_of(flow, SGI_FT_SET_KEY)) == SGI_CRYPTO_NONE)
        return refuse(flow, "private_key has to be a private key in PEM that can sign");
    return SEGUE_OK;
}

/* Checks that the options contain the data that the chosen kind of grant needs. */
static segue_status check_grant(const sgi_flow *flow, const segue_oauth_options *options)
{
    bool proof = sgi_flow_text_is_set(flow, SGI_FT_SET_SECRET) ||
                 sgi_flow_text_is_set(flow, SGI_FT_SET_KEY);
    switch (flow->grant) {
    case SEGUE_OAUTH_CODE:
        if (!options->on_authorize)
            return refuse(flow, "SEGUE_OAUTH_CODE needs on_authorize");
        return is_redirect(sgi_flow_text_of(flow, SGI_FT_SET_REDIRECT))
                   ? SEGUE_OK
                   : refuse(flow, "SEGUE_OAUTH_CODE needs a redirect_uri that is https, "
                                  "on this machine, or has a scheme with a dot");
    case SEGUE_OAUTH_CLIENT:
        return proof && sgi_flow_text_is_set(flow, SGI_FT_SET_CLIENT_ID)
                   ? SEGUE_OK
                   : refuse(flow, "SEGUE_OAUTH_CLIENT needs client_id, and client_secret "
                                  "or private_key");
    case SEGUE_OAUTH_ASSERTION:
        return options->on_assertion
                   ? SEGUE_OK
                   : refuse(flow, "SEGUE_OAUTH_ASSERTION needs on_assertion");
    default:
        return sgi_refuse(flow->engine, SEGUE_E_INVALID,
                          "grant is %d: no such grant exists", (int)flow->grant);
    }
}

segue_status sgi_flow_new(sgi_engine *engine, const char *endpoint,
                          const segue_oauth_options *options, sgi_flow **out)
{
    sgi_flow *flow = sgi_zalloc(sgi_engine_mem(engine), sizeof *flow);
    if (!flow)
        return SEGUE_E_NOMEM;
    flow->engine = engine;
    for (size_t i = 0; i < SGI_FLOW_TEXTS; i++)
        sgi_buf_init(&flow->text[i], sgi_engine_mem(engine));
    sgi_str url = sgi_str_of(endpoint);
    const char *fragment = url.n ? memchr(url.p, '#', url.n) : NULL;
    sgi_flow_text_set(flow, SGI_FT_ENDPOINT,
                      (sgi_str){url.p, fragment ? (size_t)(fragment - url.p) : url.n});
    segue_status status = take_settings(flow, options);
    if (sgi_flow_is_out_of_memory(flow))
        status = SEGUE_E_NOMEM;
    if (status == SEGUE_OK)
        status = check_texts(flow);
    if (status == SEGUE_OK)
        status = check_grant(flow, options);
    if (status == SEGUE_OK)
        *out = flow;
    else
        sgi_flow_free(flow);
    return status;
}
