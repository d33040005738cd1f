/* The gate of a listener that asks its callers for tokens: from the Authorization header
 * to a grant, and from a refusal to its challenge. It knows no connection; who waits for
 * a verdict has a check. Lock held, unless it says otherwise.
 *
 *   bearer.c         options, texts: the metadata and the challenges
 *   bearer_check.c   one request
 *   bearer_ask.c     the application is asked
 *   bearer_keys.c, bearer_cache.c */
#ifndef SGI_BEARER_H
#define SGI_BEARER_H

#include "transport/bearer_cache.h"
#include "transport/bearer_keys.h"
#include "wire/jwt.h"

#define SGI_BEARER_WAITING_MAX 1024 /* requests that wait for keys */
#define SGI_BEARER_TEXTS 14
#define SGI_BEARER_METADATA "/.well-known/oauth-protected-resource"

typedef enum sgi_bearer_verdict {
    SGI_BEARER_IN = 0,    /* there is a grant */
    SGI_BEARER_WAITING,   /* told comes later */
    SGI_BEARER_NONE,      /* no token: 401 without an error (RFC 6750 3.1) */
    SGI_BEARER_BAD,       /* 401 */
    SGI_BEARER_LACKS,     /* a scope: 403 */
    SGI_BEARER_MISPLACED, /* a token in the query: 400 */
    SGI_BEARER_UNCHECKED  /* no keys, no time, no memory: 503 */
} sgi_bearer_verdict;

typedef struct sgi_bearer_gate sgi_bearer_gate;

/* One request. Zero it once; belongs to whoever serves the request. */
typedef struct sgi_bearer_check {
    sgi_bearer_gate *gate; /* while it waits */
    TAILQ_ENTRY(sgi_bearer_check) link;
    bool for_keys;       /* it is among those that wait for keys */
    segue_bearer *asked; /* the application has it */
    sgi_str token;       /* the request's */
    sgi_bearer_verdict verdict;
    sgi_grant *grant; /* counted; set with IN and LACKS */
    int64_t retry_ms; /* UNCHECKED: it may come again then; 0 = as usual */
    char why[208];    /* what the caller may be told of a refusal */
    /* The verdict is there. Perhaps not on the loop thread. */
    void (*told)(struct sgi_bearer_check *check);
    /* Around the application's callback: what it is shown stays as it is. */
    void (*shown)(struct sgi_bearer_check *check, bool shown);
    segue_transport *transport;
} sgi_bearer_check;

struct sgi_bearer_gate {
    int32_t refs; /* the listener, and who reloads its keys */
    segue_runtime *runtime;
    sgi_engine *engine;
    segue_server *server;
    segue_bearer_options options; /* numbers resolved; texts owned */
    char *texts[SGI_BEARER_TEXTS];
    sgi_str required;
    sgi_jwt_rules rules;
    sgi_jwt jwt;
    sgi_bearer_keys keys;
    sgi_bearer_cache cache;
    TAILQ_HEAD(, sgi_bearer_check) waiting; /* for keys */
    size_t waiting_count;
    sgi_buf metadata;     /* JSON */
    sgi_buf metadata_url; /* of it, as clients are told */
    sgi_buf paths;        /* where it is served, each with a NUL behind */
    sgi_buf text;         /* for a challenge, or scopes */
    sgi_ready ready;      /* free_user is due */
};

/* Lock not held. url, path: of the endpoint; what is wrong is told in why. */
segue_status sgi_bearer_gate_new(segue_runtime *rt, segue_server *server,
                                 const segue_bearer_options *options, const char *url,
                                 bool is_url, const char *path, sgi_bearer_gate **out,
                                 char why[SGI_WHY_SIZE]);
/* free_user runs if the gate was taken, which is said with `taken`; then the memory
 * goes. */
void sgi_bearer_gate_end(sgi_bearer_gate *gate, bool taken);
/* Lock not held. Reads the file of its keys again, whether it ends meanwhile or not;
 * SEGUE_E_STATE when it has none. *gate: where the listener has it. */
segue_status sgi_bearer_gate_reload(segue_runtime *rt, sgi_bearer_gate *const *gate,
                                    char why[SGI_WHY_SIZE]);

bool sgi_bearer_is_metadata(const sgi_bearer_gate *gate, sgi_str path);

/* What a request says of its caller. told and shown are set. WAITING: told comes, once,
 * unless it is cancelled. */
sgi_bearer_verdict sgi_bearer_begin(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                    sgi_str authorization, sgi_str query);
/* Nobody waits any more; takes one that does not wait. The verdict is UNCHECKED then. */
void sgi_bearer_cancel(sgi_bearer_check *check);
/* The header of a refusal: lives until the next one. lacks: scopes that an item needs, or
 * NULL. */
sgi_str sgi_bearer_challenge(sgi_bearer_gate *gate, sgi_bearer_verdict verdict,
                             const char *why, const char *lacks);

/* ---- between the files ---- */

/* A good token: scopes are completed, and the required ones looked for. */
sgi_bearer_verdict sgi_bearer_grant(sgi_bearer_gate *gate, sgi_bearer_check *check,
                                    const char *principal, sgi_str scopes,
                                    int64_t expires_ms);
/* Asks the application: WAITING, or UNCHECKED. */
sgi_bearer_verdict sgi_bearer_ask(sgi_bearer_gate *gate, sgi_bearer_check *check);
/* Its check is cancelled. */
void sgi_bearer_unask(segue_bearer *bearer);
void sgi_bearer_key_done(sgi_bearer_keys *keys, bool changed);

/* ---- for the api ---- */

struct segue_bearer {
    sgi_handle handle;
    sgi_ready ready;         /* the application is to be asked */
    sgi_bearer_check *check; /* NULL = nobody waits */
    bool decided;
    size_t len;
    char token[];
};

segue_status sgi_bearer_accept(segue_bearer *bearer, const char *principal,
                               sgi_str scopes, int64_t expires_ms);
segue_status sgi_bearer_refuse(segue_bearer *bearer, const char *reason);
void sgi_bearer_free(segue_bearer *bearer);

#endif
