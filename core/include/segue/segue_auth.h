/* Segue, authorization over HTTP: functions for clients that get tokens and for servers
 * that check tokens. The conventions of segue.h apply. */
#ifndef SEGUE_AUTH_H
#define SEGUE_AUTH_H

#include <segue/segue.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Authorization of a client --------------------------------------------------- */

/* The party for which a token is requested. */
enum segue_oauth_grant {
    SEGUE_OAUTH_CODE = 0,     /* a user, who agrees in a browser (with PKCE) */
    SEGUE_OAUTH_CLIENT = 1,   /* the client itself (client_credentials) */
    SEGUE_OAUTH_ASSERTION = 2 /* the party that on_assertion names (RFC 7523, section
                                 2.1) */
};

/* Asks the application to open the URL in a browser, so that a user can agree. The
 * browser then returns to redirect_uri, which belongs to the application. Pass the URL
 * that arrives there to segue_runtime_authorize. Both URLs contain `state`. Requests of
 * the transport wait until then. The callback runs once for this URL. */
typedef void (*segue_authorize_fn)(void *user, const char *url, const char *state);

/* Asks for a JWT. The JWT tells the authorization server `issuer` for whom it should make
 * a token for the resource. It is for example the token of a workload, or a JWT that an
 * identity provider made for this server.
 *
 * len       receives the length.
 * Returns   the text, which must live until the next callback of the table; NULL = there
 *           is no JWT. */
typedef const char *(*segue_assertion_fn)(void *user, const char *issuer,
                                          const char *resource, size_t *len);

/* Asks for the text that on_save last received with this key, in this or another process.
 *
 * len       receives the length.
 * Returns   the text, which must live until the next callback of the table; NULL = no
 *           text is stored with this key. */
typedef const char *(*segue_load_fn)(void *user, const char *key, size_t *len);

/* Asks the application to store this text in place of an earlier text with this key.
 * The text is JSON for the library and contains secrets. A key names an endpoint or an
 * authorization server. */
typedef void (*segue_save_fn)(void *user, const char *key, const char *json, size_t len);

typedef struct segue_oauth_options {
    size_t struct_size;
    int32_t grant;         /* a segue_oauth_grant */
    const char *client_id; /* id of a client that was registered before; NULL = none */
    const char *client_secret; /* secret of client_id */
    const char *private_key;   /* PEM; the client signs with this key instead of sending
                                  client_secret (private_key_jwt) */
    const char *issuer;        /* the only authorization server that receives client_id;
                                  NULL = every one that the server names */
    const char *client_metadata_url; /* https URL of a document that describes the client.
                                        The URL is the client's id at authorization
                                        servers that support this */
    const char *client_name;         /* name of the client in a registration; default
                                        "segue" */
    const char *redirect_uri;        /* the URL to which the browser returns: https,
                                        loopback, or a scheme of the application */
    const char *scope;               /* scopes to request when the server names no
                                        scopes */
    const char *auth_method;         /* the method by which the client authenticates at
                                        the token endpoint, e.g. "client_secret_post";
                                        NULL = a method that both sides support */
    int32_t no_registration;         /* 1 = the client does not register itself at the
                                        authorization server */
    /* 1 = the URLs that the server names for authorization (metadata, registration,
     * tokens) may have private addresses. 0 = only three private addresses are allowed:
     * the address of the endpoint, the address of the issuer's host and, for an
     * endpoint on this machine, the address of this machine */
    int32_t allow_private_addresses;
    int64_t consent_timeout_ms; /* the longest time to wait for segue_runtime_authorize;
                                   default 600000 */
    void *user;
    segue_free_fn free_user;
    segue_authorize_fn on_authorize;
    segue_assertion_fn on_assertion;
    segue_load_fn on_load; /* NULL = tokens are lost when the transport ends */
    segue_save_fn on_save;
} segue_oauth_options;
#define SEGUE_OAUTH_OPTIONS_INIT SEGUE_INIT(segue_oauth_options)

/* Makes an HTTP transport get, renew and send access tokens itself (2026-07-28
 * basic/authorization). When the server answers 401, or 403 because a scope is missing,
 * the request waits for a token and is sent again. If no token can be obtained, the
 * request ends with SEGUE_E_UNAUTHORIZED. Tokens are sent only to the transport's
 * endpoint, by https or to this machine.
 *
 * transport a transport of segue_transport_http that is not attached yet.
 * Returns   SEGUE_E_INVALID when options contradict each other, or the URL is neither
 *           https nor on this machine, SEGUE_E_STATE for a transport that is not an HTTP
 *           client, was attached, or sets Authorization, SEGUE_E_EXISTS when the
 *           transport has OAuth options already. */
SEGUE_API segue_status segue_transport_set_oauth(segue_transport *transport,
                                                 const segue_oauth_options *options,
                                                 segue_error **error);

/* Gives the library the URL to which a browser returned, with code, state and iss, or
 * with an error. The state identifies the authorization that waits for the URL. The
 * requests that wait then continue with a token, or end with an error.
 *
 * redirect_url  the URL, or only the part after its question mark.
 * Returns   SEGUE_OK when the URL was accepted, SEGUE_E_NOT_FOUND when no authorization
 *           waits for this state (any more), SEGUE_E_INVALID when the URL has no state or
 *           is malformed. */
SEGUE_API segue_status segue_runtime_authorize(segue_runtime *runtime,
                                               const char *redirect_url);

/* ---- 2 Authorization of HTTP callers ----------------------------------------------- */

/* A listener may require a token from every caller, as a resource server of OAuth
 * (2026-07-28 basic/authorization; RFC 9728, RFC 6750). The listener then serves its
 * metadata at /.well-known/oauth-protected-resource, and also at this path with the path
 * of the endpoint or of the resource appended. A caller without a valid token gets 401
 * with a challenge that names the metadata and the required scopes. A caller whose token
 * lacks a scope of required_scopes, or of the requested item (segue_item_options.scopes),
 * gets 403. A token in the query is refused. Tokens are never logged or passed on.
 *
 * Tokens are checked as JWT (RFC 9068) with the keys of the authorization server, or by
 * on_bearer. The principal of a JWT is its issuer, a blank, and its subject. Operations,
 * sessions and streams belong to the principal that made them, also when the caller later
 * uses another token of the same principal. Event streams that can be resumed end when
 * the token expires. */

/* One token that waits for its check. */
typedef struct segue_bearer segue_bearer;

/* Asks whether a token is valid. The application owns `bearer`: it decides by
 * segue_bearer_accept or segue_bearer_refuse, now or later, on any thread, and frees the
 * handle. The callback runs for every request, before the body is read.
 *
 * transport describes the caller, for segue_transport_header and segue_transport_peer;
 *           valid until the callback returns. */
typedef void (*segue_bearer_fn)(void *user, segue_transport *transport,
                                segue_bearer *bearer);

struct segue_bearer_options {
    size_t struct_size;
    const char *resource; /* URL by which clients know the endpoint and for which they
                             request tokens. NULL = the URL of the listener; required for
                             a Unix socket and for a listener on all addresses */
    const char *authorization_servers; /* issuers (URLs) separated by blanks; required;
                                          without on_bearer exactly one */
    const char *scopes_supported; /* scopes that a client needs at first, separated by
                                     blanks; shown in the metadata; NULL = not shown */
    const char *required_scopes;  /* scopes that every request needs: the token must have
                                     all of them; NULL = none */
    const char *implied_scopes;   /* one line per scope: the scope, then the scopes that
                                     it implies, as in "admin read write\nwrite read";
                                     NULL = none */
    const char *resource_name;    /* name for people, shown in the metadata; NULL =
                                     none */
    const char *documentation;    /* URL of documentation for people, shown in the
                                     metadata; NULL = none */
    int64_t check_timeout_ms;     /* the longest time to wait for keys or for the decision
                                     of on_bearer; then the caller gets 503; default
                                     10000 */

    /* The next members are for tokens that the application checks. */
    void *user;
    segue_free_fn free_user;
    segue_bearer_fn on_bearer; /* NULL = the library checks tokens as JWT with the options
                                  below */

    /* The next members are for tokens that the library checks as JWT. */
    const char *issuer;         /* the required iss; NULL = the URL in
                                   authorization_servers */
    const char *audience;       /* aud must have one of these values, separated by blanks;
                                   NULL = the resource */
    const char *algorithms;     /* accepted signature algorithms, from RS256 RS384 RS512
                                   PS256 PS384 PS512 ES256 ES384 EdDSA; NULL = all of
                                   them */
    const char *jwks;           /* the key set as JSON text; NULL = the key set is in
                                   jwks_file or at jwks_url */
    const char *jwks_file;      /* the file that has the key set (segue_listener_reload
                                   reads it again); NULL = none */
    const char *jwks_url;       /* the URL of the key set: https, or on this machine also
                                   http; NULL = none */
    const char *ca_file;        /* PEM certificates for jwks_url; NULL = certificates of
                                   the system */
    int32_t access_tokens_only; /* 1 = only tokens of type "at+jwt"; 0 = also of type
                                   "JWT" or without a type */
    int64_t leeway_ms;          /* allowed difference of clocks; default 30000, -1 =
                                   none */
    int64_t jwks_age_ms;        /* the age at which keys are fetched again; default
                                   600000 */
    int64_t jwks_refresh_ms;    /* the time in which tokens with unknown keys cause at
                                   most two fetches of the keys; default 30000 */
    int32_t max_tokens; /* the maximum number of valid tokens in the cache; default 1000,
                           -1 = no cache */
};
#define SEGUE_BEARER_OPTIONS_INIT SEGUE_INIT(segue_bearer_options)

/* Returns the token as it was sent.
 *
 * len       receives the length in bytes; may be NULL.
 * Returns   a string that lives as long as the handle; "" for NULL. */
SEGUE_API const char *segue_bearer_token(const segue_bearer *bearer, size_t *len);

/* Accepts the token: the request of the caller is served.
 *
 * principal  a stable name of the caller, not empty.
 * scopes     the scopes that the token grants, separated by blanks; may be NULL.
 * expires_ms the time at which the token expires, in ms since 1970; 0 = never.
 * Returns    SEGUE_OK, also when the caller is gone; SEGUE_E_TERMINAL when the token was
 *            accepted or refused before. */
SEGUE_API segue_status segue_bearer_accept(segue_bearer *bearer, const char *principal,
                                           const char *scopes, int64_t expires_ms);

/* Refuses the token: the caller gets 401 with error="invalid_token".
 *
 * reason    shown to the caller: visible ASCII without quotes and backslashes, at most
 *           200 bytes; NULL = none.
 * Returns   as segue_bearer_accept; SEGUE_E_INVALID for a reason with other
 *           characters. */
SEGUE_API segue_status segue_bearer_refuse(segue_bearer *bearer, const char *reason);

/* Frees the handle. If the token was neither accepted nor refused, the caller gets
 * 503. */
SEGUE_API void segue_bearer_free(segue_bearer *bearer);

/* ---- 3 Tokens in a file ------------------------------------------------------------ */

/* A listener without an authorization server may require one of the tokens in a file
 * (segue_listen_options.tokens_file). Each line of the file has the name of a principal,
 * a blank, and the SHA-256 of its token in hexadecimal digits, so the file does not show
 * the tokens. Empty lines and lines that begin with # are skipped. A principal may have
 * several tokens. A caller without a valid token gets 401 with a challenge that names no
 * authorization server. The tokens have no scopes and do not expire. A token has letters,
 * digits and the characters - . _ ~ + / and =, which stands only at its end. */

/* Checks a file of tokens, as segue_server_listen does.
 *
 * Returns   SEGUE_E_IO when the file cannot be read, SEGUE_E_INVALID when it has a wrong
 *           line or no token, or is no regular file of at most 4 MiB. */
SEGUE_API segue_status segue_tokens_check(segue_runtime *runtime, const char *path,
                                          segue_error **error);

#ifdef __cplusplus
}
#endif

#endif
