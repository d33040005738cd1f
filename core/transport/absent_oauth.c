/* A client without OAuth: it sends the headers of the application and nothing else. */
#include "base/absent.h"
#include "transport/http_ask.h"
#include "transport/http_client.h"

bool sgi_http_ask_wants_token(sgi_http_ask *ask)
{
    (void)ask;
    return false;
}

void sgi_http_ask_admitted(sgi_http_ask *ask)
{
    (void)ask;
}

bool sgi_http_ask_renew(sgi_http_ask *ask)
{
    (void)ask;
    return false;
}

segue_status sgi_http_auth_new(sgi_http_client *client, const char *endpoint,
                               const segue_oauth_options *options)
{
    (void)endpoint;
    (void)options;
    sgi_engine *engine = sgi_runtime_engine(sgi_transport_runtime(&client->base));
    return sgi_refuse(engine, SEGUE_E_UNSUPPORTED, "%s",
                      SGI_ABSENT_TEXT("OAuth", "SEGUE_OAUTH"));
}

void sgi_http_auth_end(sgi_http_auth *auth)
{
    (void)auth;
}

sgi_str sgi_http_auth_header(const sgi_http_auth *auth, uint64_t *token)
{
    (void)auth;
    *token = 0;
    return (sgi_str){0};
}

segue_status sgi_http_authorize(segue_runtime *rt, const char *redirect_url)
{
    (void)rt;
    (void)redirect_url;
    return SEGUE_E_UNSUPPORTED;
}
