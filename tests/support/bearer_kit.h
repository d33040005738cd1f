/* A stage whose listener wants tokens, and an authorization server in the hands of the
 * test: one key, in a set that the listener was given, unless the test says otherwise. */
#ifndef BEARER_KIT_H
#define BEARER_KIT_H

#include "support/http_stage.h"
#include "support/token_maker.h"

#define KIT_NOW 1764000000 /* what the stage's wall clock says at first, in seconds */
#define KIT_ISSUER "https://as.example.com"
#define KIT_RESOURCE "https://mcp.example.com/mcp"
#define KIT_METADATA "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
#define KIT_HEADER "{\"alg\":\"ES256\",\"kid\":\"one\",\"typ\":\"at+jwt\"}"

typedef struct bearer_kit {
    http_stage s;
    token_key key;                /* P-256, "one" */
    char *set;                    /* with that key */
    segue_bearer_options options; /* set before it begins; texts have defaults */
    int own_resource;             /* 1 = the resource is left to the listener */
} bearer_kit;

/* Zero it, set what differs, begin. */
void bearer_kit_begin(bearer_kit *k);
/* Ends the stage; all memory must be back. */
void bearer_kit_end(bearer_kit *k);

/* A good token of this subject, with these scopes, for so many seconds from the beginning
 * of the stage. Freed by the caller. */
char *bearer_token(const bearer_kit *k, const char *subject, const char *scopes,
                   int seconds);
/* The same with claims of the test's own. */
char *bearer_token_of(const bearer_kit *k, const char *claims);

/* The request with an Authorization header of this token; consumes the request; a NULL
 * token adds nothing. */
char *bearer_with(char *request, const char *token);
/* Asks, and expects the status. The answer is kept in *reply when that is not NULL. */
void bearer_ask(http_caller *c, char *request, const char *token, int status,
                http_reply *reply);

#endif
