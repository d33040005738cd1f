/* A flow of authorization against servers that the test plays, exchange by exchange,
 * without a network: fake clock, seeded randomness, counting allocator.
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

#include "engine/oauth/flow.h"
#include "support/fake_host.h"
#include "support/test_mem.h"

#include <segue/segue_auth.h>

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
    segue_oauth_options options; /* options of the client, for a user who agrees; set
                                  * before the flow begins */
    sgi_flow *flow;
    char text[16384]; /* the URL or body that was read last */
    char value[8192]; /* the member of `text` that was read last */
} flow_kit;

void flow_kit_prepare(flow_kit *k);
void flow_kit_begin(flow_kit *k);
/* Does what flow_kit_prepare and flow_kit_begin do. */
void flow_kit_open(flow_kit *k);
/* Ends the kit and checks that all memory was returned. */
void flow_kit_end(flow_kit *k);

/* Reports to the flow that a request with the current token was refused, which starts an
 * authorization. */
void flow_refuse(flow_kit *k, int32_t status, const char *challenge);
/* Checks that the next exchange is this GET, and answers it. */
void flow_get(flow_kit *k, const char *url, int32_t status, const char *body);
/* Checks that the next exchange is this POST, and puts its body into k->text. */
void flow_expect_post(flow_kit *k, const char *url);
void flow_answer(flow_kit *k, int32_t status, const char *body);
/* Checks that the browser is opened, and puts its URL into k->text. */
void flow_expect_browser(flow_kit *k);
/* Plays the return of the browser with the state and these members after "state=...&". */
segue_status flow_come_back(flow_kit *k, const char *members);

/* Returns a member of k->text, which is a form or a URL with a query; NULL when it is
 * missing. The value lives until the next call. */
const char *flow_member(flow_kit *k, const char *name);
void flow_assert_member(flow_kit *k, const char *name, const char *value);

/* Plays the 401 answer and both discoveries with these documents. */
void flow_discover(flow_kit *k, const char *resource, const char *server);
/* Plays all steps until the browser is opened. */
void flow_to_browser(flow_kit *k);
/* Plays the steps after the browser was opened: the browser returns, and the code is
 * exchanged for this token. */
void flow_grant(flow_kit *k, const char *token);
/* Plays a whole flow. */
void flow_enter(flow_kit *k, const char *token);

/* Checks that the flow succeeded and sends this token; NULL = none. */
void flow_assert_token(flow_kit *k, const char *token);
/* Checks that the flow failed and that this text is part of the reason. */
void flow_assert_failed(flow_kit *k, const char *why);
/* Checks that the flow failed because a server was out of reach, so that a later attempt
 * may succeed. */
void flow_assert_put_off(flow_kit *k, const char *why);

#endif
