/* Stands in for the client's OAuth functions in a library that was built without OAuth.
 * The client then sends only the application's headers. */
#include "base/absent.h"
#include "transport/http_client_exchange.h"
#include "transport/http_client.h"

bool sgi_client_exchange_wants_token(sgi_client_exchange *exchange)
{
    (void)exchange;
    return false;
}

void sgi_client_exchange_on_token_accepted(sgi_client_exchange *exchange)
{
    (void)exchange;
}

bool sgi_client_exchange_retry_with_new_token(sgi_client_exchange *exchange)
{
    (void)exchange;
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

void sgi_http_auth_release(sgi_http_auth *auth)
{
    (void)auth;
}

sgi_str sgi_http_auth_header(const sgi_http_auth *auth, uint64_t *token)
{
    (void)auth;
    *token = 0;
    return (sgi_str){0};
}

segue_status sgi_http_pass_redirect(segue_runtime *rt, const char *redirect_url)
{
    (void)rt;
    (void)redirect_url;
    return SEGUE_E_UNSUPPORTED;
}
