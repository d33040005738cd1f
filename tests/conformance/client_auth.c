/* The identity of the fixture client for an authorization server: the one in the
 * scenario's context, otherwise a native program that has a metadata document and may be
 * registered. The browser is one GET that does not follow the redirect. It runs inside
 * the callback, because there is nothing else to do meanwhile. */
#include "conformance/client_auth.h"

#include <curl/curl.h>
#include <jansson.h>
#include <segue/segue_auth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BROWSER_SECONDS 10L

/* The suite knows this URL; it need not be readable. */
#define METADATA_URL "https://conformance-test.local/client-metadata.json"

typedef struct identity {
    segue_runtime *runtime;
    json_t *context;
    char *assertion;
    char answer[16384];
    size_t len;
} identity;

static const char *text_of(const json_t *context, const char *name)
{
    return json_string_value(json_object_get(context, name));
}

/* ---- the browser ---- */

static size_t ignore(char *bytes, size_t size, size_t n, void *user)
{
    (void)bytes;
    (void)user;
    return size * n;
}

static void browse(void *user, const char *url, const char *state)
{
    const identity *who = user;
    char *location = NULL;
    CURL *easy = curl_easy_init();
    (void)state;
    if (!easy)
        return;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, BROWSER_SECONDS);
    CURLcode fault = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &location);
    if (fault != CURLE_OK || !location)
        fprintf(stderr, "browser: %s\n",
                fault ? curl_easy_strerror(fault) : "the server did not send it back");
    else
        fprintf(stderr, "browser: %s\n",
                segue_status_name(segue_runtime_authorize(who->runtime, location)));
    curl_easy_cleanup(easy);
}

/* ---- the identity provider ---- */

static size_t take_answer(char *bytes, size_t size, size_t n, void *user)
{
    identity *who = user;
    if (size * n >= sizeof who->answer - who->len)
        return 0;
    memcpy(who->answer + who->len, bytes, size * n);
    who->len += size * n;
    who->answer[who->len] = 0;
    return size * n;
}

static void add(CURL *easy, char **form, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(easy, value ? value : "", 0);
    char *longer = NULL;
    if (escaped && asprintf(&longer, "%s%s%s=%s", *form ? *form : "", *form ? "&" : "",
                            name, escaped) < 0)
        longer = NULL;
    free(*form);
    *form = longer;
    curl_free(escaped);
}

/* Token exchange (RFC 8693): exchanges the user's ID token for an assertion that this
 * authorization server accepts. */
static void exchange(identity *who, const char *issuer, const char *resource)
{
    char *form = NULL;
    CURL *easy = curl_easy_init();
    if (!easy)
        return;
    add(easy, &form, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    add(easy, &form, "requested_token_type", "urn:ietf:params:oauth:token-type:id-jag");
    add(easy, &form, "subject_token", text_of(who->context, "idp_id_token"));
    add(easy, &form, "subject_token_type", "urn:ietf:params:oauth:token-type:id_token");
    add(easy, &form, "client_id", text_of(who->context, "idp_client_id"));
    add(easy, &form, "audience", issuer);
    add(easy, &form, "resource", resource);
    who->len = 0;
    curl_easy_setopt(easy, CURLOPT_URL, text_of(who->context, "idp_token_endpoint"));
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, form ? form : "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, who);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, BROWSER_SECONDS);
    CURLcode fault = curl_easy_perform(easy);
    json_t *answer = fault ? NULL : json_loads(who->answer, 0, NULL);
    const char *token = text_of(answer, "access_token");
    free(who->assertion);
    who->assertion = token ? strdup(token) : NULL;
    json_decref(answer);
    curl_easy_cleanup(easy);
    free(form);
}

static const char *assertion_for(void *user, const char *issuer, const char *resource,
                                 size_t *len)
{
    identity *who = user;
    const char *text = text_of(who->context, "valid_jwt");
    if (!text) {
        exchange(who, issuer, resource);
        text = who->assertion;
    }
    *len = text ? strlen(text) : 0;
    return text;
}

static void forget(void *user)
{
    identity *who = user;
    json_decref(who->context);
    free(who->assertion);
    free(who);
}

/* ---- the identity of the client ---- */

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int32_t grant_of(const char *scenario)
{
    if (begins_with(scenario, "auth/client-credentials"))
        return SEGUE_OAUTH_CLIENT;
    if (begins_with(scenario, "auth/wif") || begins_with(scenario, "auth/enterprise") ||
        begins_with(scenario, "auth/cross-app")) /* the scenario's name in suite 0.1.16 */
        return SEGUE_OAUTH_ASSERTION;
    return SEGUE_OAUTH_CODE;
}

bool conformance_authorize(segue_runtime *runtime, segue_transport *transport,
                           const char *scenario, const char *context_json)
{
    segue_oauth_options options = SEGUE_OAUTH_OPTIONS_INIT;
    if (!scenario || !begins_with(scenario, "auth/"))
        return true;
    identity *who = calloc(1, sizeof *who);
    if (!who)
        return false;
    who->runtime = runtime;
    who->context = context_json ? json_loads(context_json, JSON_ALLOW_NUL, NULL) : NULL;
    options.grant = grant_of(scenario);
    options.client_name = "segue-conformance";
    options.redirect_uri = "http://localhost:3000/callback";
    options.client_metadata_url = METADATA_URL;
    options.client_id = text_of(who->context, "client_id");
    options.client_secret = text_of(who->context, "client_secret");
    options.private_key = text_of(who->context, "private_key_pem");
    options.user = who;
    options.free_user = forget;
    options.on_authorize = browse;
    options.on_assertion = assertion_for;
    segue_status status = segue_transport_set_oauth(transport, &options, NULL);
    if (status == SEGUE_OK)
        return true;
    fprintf(stderr, "client: oauth: %s\n", segue_status_name(status));
    forget(who);
    return false;
}
