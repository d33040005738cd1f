/* A client over HTTP that authorizes itself. The test plays the whole other side:
 * endpoint, metadata, authorization server, and the user at the browser. The test plays
 * the other side step by step, or auth_serve plays it and accepts every request with the
 * right token.
 *
 *     auth_script a;
 *     auth_prepare(&a);
 *     auth_connect(&a);
 *     auth_discover(&a);      401, metadata, registration: the browser is open
 *     auth_agree(&a);
 *     auth_token(&a, "t1", ",\"expires_in\":3600");
 *     script_discover(&a.s, SERVER_PLAIN);
 *     auth_end(&a); */
#ifndef AUTH_SCRIPT_H
#define AUTH_SCRIPT_H

#include "support/http_script.h"

#include <segue/segue_auth.h>

typedef struct auth_script {
    http_script s;
    segue_oauth_options options; /* options of the client, for a user who agrees; set
                                  * before auth_connect */
    char origin[64];
    int asked; /* the number of times that the browser was opened */
    int freed;
    int agrees; /* 1 = the user agrees at once, inside the callback */
    char url[2048];
    char state[64];
    char body[4096]; /* body of the last POST to the authorization server */
    char key[256];   /* key of the text that was saved last */
    char kept[2048];
    char stored[2048]; /* the token that on_load returns; "" = none */
    int loads, saves;
    char right[64]; /* the token that auth_serve accepts */
    int tokens;     /* number of tokens that auth_serve issued */
    int served;     /* number of messages that auth_serve accepted */
} auth_script;

void auth_prepare(auth_script *a);
/* Makes the runtime and the transport. The client sends nothing yet. */
void auth_make(auth_script *a);
/* Does what auth_make does, and opens the session. */
void auth_connect(auth_script *a);
void auth_end(auth_script *a);

/* Returns the next request, which must have this method and path. */
heard *auth_expect(auth_script *a, const char *method, const char *path);
/* Answers a request with this status line, normally 401, and this challenge. */
void auth_refuse(heard *h, const char *status, const char *challenge);
/* Answers the request for the metadata of the resource. The metadata name this server as
 * issuer. */
void auth_resource(auth_script *a);
/* Answers the requests for the metadata of the resource and of the authorization
 * server. */
void auth_metadata(auth_script *a);
void auth_register(auth_script *a);
/* Refuses server/discover with 401 and plays all steps until the browser is opened. */
void auth_discover(auth_script *a);
/* Plays the browser that returns with a code. */
void auth_agree(auth_script *a);
/* Plays the browser that returns with an error. */
void auth_decline(auth_script *a);
/* Answers the request to the token endpoint; `members` are added to the answer. */
void auth_token(auth_script *a, const char *token, const char *members);
/* Plays all steps until the session is open. */
void auth_enter(auth_script *a, const char *members);

/* Answers all requests that have arrived; returns true when there was one. The tokens are
 * named t1, t2, ... and only the latest one is accepted. */
bool auth_serve(auth_script *a);
#define auth_serve_until(a, condition)                                                   \
    do {                                                                                 \
        int64_t serve_until_ = script_deadline();                                        \
        while (!(condition)) {                                                           \
            auth_serve(a);                                                               \
            script_pump(&(a)->s);                                                        \
            script_check(serve_until_, #condition, __FILE__, __LINE__);                  \
        }                                                                                \
    } while (0)

#endif
