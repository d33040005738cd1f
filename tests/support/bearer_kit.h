/* A stage whose listener requires tokens, and an authorization server that the test
 * plays. The authorization server has one key. Unless the test says otherwise, the
 * listener has that key in its key set. */
#ifndef BEARER_KIT_H
#define BEARER_KIT_H

#include "support/http_stage.h"
#include "support/token_maker.h"

#include <segue/segue_auth.h>

#define KIT_NOW 1764000000 /* the stage's wall clock at the start, in seconds */
#define KIT_ISSUER "https://as.example.com"
#define KIT_RESOURCE "https://mcp.example.com/mcp"
#define KIT_METADATA "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
#define KIT_HEADER "{\"alg\":\"ES256\",\"kid\":\"one\",\"typ\":\"at+jwt\"}"

typedef struct bearer_kit {
    http_stage s;
    token_key key;                /* a P-256 key with the id "one" */
    char *set;                    /* the key set (JSON) that contains `key` */
    segue_bearer_options options; /* options of the listener; set before bearer_kit_begin;
                                   * texts have defaults */
    int own_resource;             /* 1 = the listener chooses the resource itself */
} bearer_kit;

/* Starts the stage. Before this call, the test zeroes the kit and sets the members that
 * differ from the defaults. */
void bearer_kit_begin(bearer_kit *k);
/* Ends the stage and checks that all memory was returned. */
void bearer_kit_end(bearer_kit *k);

/* Makes a valid token for this subject with these scopes. The token is valid for
 * `seconds` from the start of the stage. The caller frees the token. */
char *bearer_token(const bearer_kit *k, const char *subject, const char *scopes,
                   int seconds);
/* Makes a token with claims that the test chooses. The caller frees the token. */
char *bearer_token_of(const bearer_kit *k, const char *claims);

/* Returns the request with an Authorization header for this token, and frees the request
 * without it. A NULL token adds nothing. */
char *bearer_with(char *request, const char *token);
/* Sends the request and checks the status. The answer is stored in *reply unless that is
 * NULL. */
void bearer_ask(http_caller *c, char *request, const char *token, int status,
                http_reply *reply);

#endif
