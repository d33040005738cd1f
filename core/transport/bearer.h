/* The gate of a listener that requires access tokens. The gate turns an Authorization
 * header into a grant (the caller's rights), or a refusal into a challenge. The gate
 * knows no connections: a request that waits for a verdict has a sgi_bearer_check. The
 * caller of each function holds the lock, unless the function's comment says
 * otherwise.
 *
 *     bearer.c              options and texts: metadata and challenges
 *     bearer_check.c        checking one request
 *     bearer_application.c  asking the application
 *     bearer_keys.c         the keys that sign tokens
 *     bearer_tokens.c       the tokens of a file
 *     bearer_cache.c        valid tokens seen before */
#ifndef SGI_BEARER_H
#define SGI_BEARER_H

#include "transport/bearer_cache.h"
#include "transport/bearer_keys.h"
#include "transport/bearer_tokens.h"
#include "wire/jwt.h"

#define SGI_BEARER_WAITING_MAX 1024 /* maximum number of requests that wait for keys */
#define SGI_BEARER_TEXTS 14
#define SGI_BEARER_METADATA "/.well-known/oauth-protected-resource"

typedef enum sgi_bearer_verdict {
    SGI_BEARER_IN = 0, /* the request is accepted; check->grant has the rights of the
                          token */
    /* the verdict is not known yet; the callback `decided` reports the verdict later */
    SGI_BEARER_WAITING,
    /* the request has no token; the answer is 401 without an error code (RFC 6750 3.1) */
    SGI_BEARER_NONE,
    SGI_BEARER_BAD,       /* the token is not valid; the answer is 401 */
    SGI_BEARER_LACKS,     /* the token lacks a scope; the answer is 403 */
    SGI_BEARER_MISPLACED, /* the token is in the query of the URL; the answer is 400 */
    /* the token could not be checked, for lack of keys, time or memory; the answer is
     * 503 */
    SGI_BEARER_UNCHECKED
} sgi_bearer_verdict;

typedef struct sgi_bearer_gate sgi_bearer_gate;

/* The check of the token of one request. The struct is a member of the object that serves
 * the request. The owner fills the struct with zeros once, before its first use. */
typedef struct sgi_bearer_check {
    sgi_bearer_gate *gate; /* the gate while the check waits; otherwise NULL */
    TAILQ_ENTRY(sgi_bearer_check) link;
    bool for_keys; /* true = the check waits for keys and is in gate->waiting */
    /* the application's handle of the question about the token; NULL = no question is
     * open */
    segue_bearer *asked;
    segue_server *server; /* the server that the request asks */
    sgi_str token;        /* the token, as a view of the request's bytes */
    sgi_bearer_verdict verdict;
    sgi_grant *grant; /* the rights that the token gives, as a counted reference; set
                         when the verdict is IN or LACKS */
    /* with the verdict UNCHECKED: the time in ms after which the client may try again; 0
     * = the default time */
    int64_t retry_ms;
    char why[208]; /* the reason of a refusal, as a text that the client receives */
    /* Called once the verdict is known, perhaps not on the loop thread. */
    void (*decided)(struct sgi_bearer_check *check);
    /* Called with true before the application's callback, and with false after it. The
     * request must not change between the two calls. */
    void (*shown)(struct sgi_bearer_check *check, bool shown);
    segue_transport *transport;
} sgi_bearer_check;

struct sgi_bearer_gate {
    /* number of references: the listener has one, and each thread that reloads the keys
     * has one */
    int32_t refs;
    segue_runtime *runtime;
    sgi_engine *engine;
    /* the options with defaults filled in; the texts of the options are copies in
     * `texts` */
    segue_bearer_options options;
    char *texts[SGI_BEARER_TEXTS];
    sgi_str required;
    sgi_jwt_rules rules;
    sgi_jwt jwt;
    sgi_bearer_keys keys;
    sgi_bearer_cache cache;
    /* the file of tokens and what it has; the path is NULL when tokens are checked in
     * another way */
    char *tokens_path;
    sgi_bearer_tokens tokens;
    TAILQ_HEAD(, sgi_bearer_check) waiting; /* the checks that wait for keys */
    size_t waiting_count;
    sgi_buf metadata;     /* the protected resource metadata, as JSON */
    sgi_buf metadata_url; /* the URL of the metadata; the header WWW-Authenticate of a
                             refusal contains this URL */
    sgi_buf paths;        /* the paths that serve the metadata, each followed by a NUL */
    sgi_buf text;         /* a buffer in which a WWW-Authenticate value or a list of
                             scopes is built */
    sgi_ready_object ready; /* queues the call of the options' free_user */
};

/* Makes a gate. url and path are those of the listener's endpoint. On failure `why`
 * receives the reason. The caller does not hold the lock. */
segue_status sgi_bearer_gate_new(segue_runtime *rt, const segue_bearer_options *options,
                                 const char *url, bool is_url, const char *path,
                                 sgi_bearer_gate **out, char why[SGI_WHY_SIZE]);
/* Makes a gate for the tokens of a file. It has no metadata, because there is no
 * authorization server. */
segue_status sgi_bearer_gate_new_for_tokens(segue_runtime *rt, const char *path,
                                            sgi_bearer_gate **out,
                                            char why[SGI_WHY_SIZE]);
/* Ends the gate and frees its memory. taken: true = the listener was created with this
 * gate, so the application's free_user runs before the memory is freed. */
void sgi_bearer_gate_end(sgi_bearer_gate *gate, bool taken);
/* Reads the file of the keys or tokens again. Returns SEGUE_E_STATE when there is none.
 * *gate is the listener's pointer to its gate. The caller does not hold the lock, so the
 * gate can end during the call. */
segue_status sgi_bearer_gate_reload(segue_runtime *rt, sgi_bearer_gate *const *gate,
                                    char why[SGI_WHY_SIZE]);

bool sgi_bearer_is_metadata_path(const sgi_bearer_gate *gate, sgi_str path);

/* Reads the Bearer token from an Authorization header. Returns false when the header has
 * another scheme. Upper and lower case in the name of the scheme do not matter. */
bool sgi_bearer_read_token(sgi_str header, sgi_str *token);
/* True when the text has the syntax of a Bearer token (b64token, RFC 6750 2.1). */
bool sgi_bearer_is_token(sgi_str text);
/* Checks the token of a request. check->decided and check->shown must be set. If the
 * result is WAITING, `decided` is called once later, unless the check is cancelled. */
sgi_bearer_verdict sgi_bearer_begin_check(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                          sgi_str authorization, sgi_str query);
/* Cancels a check that waits, and sets the verdict of the check to UNCHECKED. Does
 * nothing for a check that does not wait. */
void sgi_bearer_cancel_check(sgi_bearer_check *check);
/* Returns the value of the WWW-Authenticate header for a refusal. The text is valid until
 * the next call of this function. lacks: the scopes that the requested item (such as a
 * tool) needs, or NULL. */
sgi_str sgi_bearer_challenge(sgi_bearer_gate *gate, sgi_bearer_verdict verdict,
                             const char *why, const char *lacks);

/* ---- private to the bearer files ---- */

/* Makes the grant of a valid token: adds the implied scopes and checks the required
 * scopes. */
sgi_bearer_verdict sgi_bearer_make_grant(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                         const char *principal, sgi_str scopes,
                                         int64_t expires_ms);
/* Asks the application about the token. Returns WAITING, or UNCHECKED when the question
 * could not be asked. */
sgi_bearer_verdict sgi_bearer_ask_application(sgi_bearer_gate *gate,
                                              sgi_bearer_check *check);
/* Detaches the application's handle from a cancelled check. A later answer of the
 * application then has no effect. */
void sgi_bearer_ignore_application(segue_bearer *bearer);
void sgi_bearer_on_keys_fetched(sgi_bearer_keys *keys, bool changed);

/* ---- for core/api ---- */

struct segue_bearer {
    sgi_handle handle;
    sgi_ready_object ready; /* queues the callback that asks the application */
    /* the check that waits for the application's answer; NULL = the check was
     * cancelled or decided */
    sgi_bearer_check *check;
    bool decided;
    size_t len;
    char token[];
};

segue_status sgi_bearer_accept(segue_bearer *bearer, const char *principal,
                               sgi_str scopes, int64_t expires_ms);
segue_status sgi_bearer_refuse(segue_bearer *bearer, const char *reason);
void sgi_bearer_free(segue_bearer *bearer);

#endif
