#include "support/bearer_kit.h"

#include <segue/segue_auth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
// clang-format off
#include <cmocka.h>
// clang-format on

void bearer_kit_begin(bearer_kit *k)
{
    segue_bearer_options *o = &k->options;
    token_key_make(&k->key, TOKEN_P256, "one");
    const token_key *keys[] = {&k->key};
    k->set = token_key_set(keys, 1);
    o->struct_size = sizeof *o;
    if (!o->authorization_servers)
        o->authorization_servers = KIT_ISSUER;
    if (!o->resource && !k->own_resource)
        o->resource = KIT_RESOURCE;
    if (!o->on_bearer && !o->jwks_file && !o->jwks_url)
        o->jwks = k->set;
    k->s.listen.bearer = o;
    http_stage_begin(&k->s);
}

void bearer_kit_end(bearer_kit *k)
{
    http_stage_end(&k->s);
    token_key_free(&k->key);
    free(k->set);
}

char *bearer_token_of(const bearer_kit *k, const char *claims)
{
    return token_sign(&k->key, "ES256", KIT_HEADER, claims);
}

char *bearer_token(const bearer_kit *k, const char *subject, const char *scopes,
                   int seconds)
{
    char claims[1024];
    snprintf(claims, sizeof claims,
             "{\"iss\":\"" KIT_ISSUER "\",\"aud\":\"" KIT_RESOURCE "\",\"sub\":\"%s\","
             "\"scope\":\"%s\",\"exp\":%d}",
             subject, scopes, KIT_NOW + seconds);
    return bearer_token_of(k, claims);
}

char *bearer_with(char *request, const char *token)
{
    if (!token)
        return request;
    char *behind = strstr(request, "\r\n") + 2;
    size_t size = strlen(request) + strlen(token) + 64;
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, "%.*sAuthorization: Bearer %s\r\n%s", (int)(behind - request),
             request, token, behind);
    free(request);
    return text;
}

void bearer_ask(http_caller *c, char *request, const char *token, int status,
                http_reply *reply)
{
    http_reply own;
    request = bearer_with(request, token);
    http_caller_say(c, request);
    http_caller_read(c, reply ? reply : &own);
    int found = reply ? reply->status : own.status;
    if (found != status)
        fail_msg("%d instead of %d: %s\n%s", found, status, request,
                 reply ? reply->body : own.body);
    if (!reply)
        http_reply_free(&own);
    free(request);
}
