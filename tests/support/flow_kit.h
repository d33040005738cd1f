/* A flow of authorization against servers that the test plays, exchange by exchange,
 * without a network: fake clock, seeded chance, counting allocator.
 *
 *     flow_kit k;
 *     flow_kit_prepare(&k);
 *     k.options.scope = "read";
 *     flow_kit_begin(&k);
 *     flow_refuse(&k, 401, "Bearer");
 *     flow_get(&k, FLOW_RESOURCE_URL, 200, FLOW_RESOURCE);
 *     ...
 *     flow_kit_end(&k); */
#ifndef FLOW_KIT_H
#define FLOW_KIT_H

#include "engine/authorizing/flow.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

#define FLOW_ENDPOINT "https://mcp.example/api/mcp"
#define FLOW_RESOURCE_URL                                                                \
    "https://mcp.example/.well-known/oauth-protected-resource/api/mcp"
#define FLOW_ROOT_URL "https://mcp.example/.well-known/oauth-protected-resource"
#define FLOW_SERVER_URL "https://as.example/.well-known/oauth-authorization-server"
#define FLOW_OPENID_URL "https://as.example/.well-known/openid-configuration"
#define FLOW_REDIRECT "http://localhost:3000/callback"

#define FLOW_RESOURCE_OF(issuer, more)                                                   \
    "{\"resource\":\"" FLOW_ENDPOINT "\",\"authorization_servers\":[\"" issuer           \
    "\"]" more "}"
#define FLOW_RESOURCE FLOW_RESOURCE_OF("https://as.example", "")
#define FLOW_SERVER_OF(issuer, more)                                                     \
    "{\"issuer\":\"" issuer "\",\"authorization_endpoint\":\"" issuer                    \
    "/authorize\",\"token_endpoint\":\"" issuer                                          \
    "/token\",\"registration_endpoint\":\"" issuer                                       \
    "/register\",\"code_challenge_methods_supported\":[\"S256\"]" more "}"
#define FLOW_SERVER_WITH(more) FLOW_SERVER_OF("https://as.example", more)
#define FLOW_SERVER FLOW_SERVER_WITH("")
#define FLOW_CLIENT "{\"client_id\":\"c1\",\"token_endpoint_auth_method\":\"none\"}"
#define FLOW_TOKEN(name, more)                                                           \
    "{\"access_token\":\"" name "\",\"token_type\":\"Bearer\"" more "}"

typedef struct flow_kit {
    test_mem tm;
    fake_host host;
    const char *endpoint;
    segue_oauth_options options; /* a user who agrees; set before the flow begins */
    sgi_flow *flow;
    char text[16384]; /* the last URL or body looked at */
    char value[8192]; /* the last member of it */
} flow_kit;

void flow_kit_prepare(flow_kit *k);
void flow_kit_begin(flow_kit *k);
/* Both. */
void flow_kit_open(flow_kit *k);
/* All memory must be back. */
void flow_kit_end(flow_kit *k);

/* A request with the token there is was refused, which begins a flow. */
void flow_refuse(flow_kit *k, int32_t status, const char *challenge);
/* The next exchange is this GET; answers it. */
void flow_get(flow_kit *k, const char *url, int32_t status, const char *body);
/* The next exchange is this POST; its body is then k->text. */
void flow_expect_post(flow_kit *k, const char *url);
void flow_answer(flow_kit *k, int32_t status, const char *body);
/* Expects the browser; the URL is then k->text. */
void flow_expect_browser(flow_kit *k);
/* The browser comes back with this behind state=...& */
segue_status flow_come_back(flow_kit *k, const char *members);

/* A member of k->text, a form or a URL with one; NULL when it is missing. Lives until the
 * next call. */
const char *flow_member(flow_kit *k, const char *name);
void flow_assert_member(flow_kit *k, const char *name, const char *value);

/* 401 and both discoveries, with these documents. */
void flow_discover(flow_kit *k, const char *resource, const char *server);
/* ... and the registration; the browser is out. */
void flow_to_browser(flow_kit *k);
/* The browser is out: it comes back, and the code is redeemed for this. */
void flow_grant(flow_kit *k, const char *token);
/* All of it. */
void flow_enter(flow_kit *k, const char *token);

/* It is through, and sends this token; NULL = none. */
void flow_assert_token(flow_kit *k, const char *token);
/* It is through without success, and says this somewhere. */
void flow_assert_failed(flow_kit *k, const char *why);
/* It is through without success, as somebody was out of reach: it may succeed later. */
void flow_assert_put_off(flow_kit *k, const char *why);

#endif
