/* A client over HTTP that authorizes itself, against a server that is everything at once:
 * endpoint, metadata, authorization server, and the user at the browser. Played by hand,
 * one exchange at a time, or by auth_serve, which lets in who has the right token.
 *
 *     auth_script a;
 *     auth_prepare(&a);
 *     auth_connect(&a);
 *     auth_discover(&a);      401, metadata, registration: the browser is out
 *     auth_agree(&a);
 *     auth_token(&a, "t1", ",\"expires_in\":3600");
 *     script_discover(&a.s, SERVER_PLAIN);
 *     auth_end(&a); */
#ifndef AUTH_SCRIPT_H
#define AUTH_SCRIPT_H

#include "support/http_script.h"

typedef struct auth_script {
    http_script s;
    segue_oauth_options options; /* of a user who agrees; set before auth_connect */
    char origin[64];
    int asked; /* how often the browser was sent */
    int freed;
    int agrees; /* the user agrees at once, inside the callback */
    char url[2048];
    char state[64];
    char body[4096]; /* of the last POST to the authorization server */
    char key[256];   /* of the last text kept */
    char kept[2048];
    char stored[2048]; /* what on_load gives for the token; "" = none */
    int loads, saves;
    char right[64]; /* token that auth_serve lets in */
    int tokens;     /* that auth_serve gave */
    int served;     /* messages that auth_serve let in */
} auth_script;

void auth_prepare(auth_script *a);
/* Makes the runtime and the transport; nothing is asked yet. */
void auth_make(auth_script *a);
/* ... and opens the session. */
void auth_connect(auth_script *a);
void auth_end(auth_script *a);

/* The next request, which must have this method and path. */
heard *auth_expect(auth_script *a, const char *method, const char *path);
/* Answers 401, or what else is the status line. */
void auth_refuse(heard *h, const char *status, const char *challenge);
/* Plays the metadata of the resource; issuer: this server. */
void auth_resource(auth_script *a);
/* The same, and the metadata of the authorization server. */
void auth_metadata(auth_script *a);
void auth_register(auth_script *a);
/* server/discover is refused, and all up to the browser. */
void auth_discover(auth_script *a);
/* The browser comes back with a code. */
void auth_agree(auth_script *a);
/* The browser comes back with an error. */
void auth_decline(auth_script *a);
/* Answers the token endpoint; members: further ones. */
void auth_token(auth_script *a, const char *token, const char *members);
/* All of it; the session is open. */
void auth_enter(auth_script *a, const char *members);

/* Answers whatever has been asked; true when there was something. Tokens are named t1,
 * t2, ... and the latest one is right. */
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
