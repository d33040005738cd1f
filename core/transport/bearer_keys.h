/* The keys of an authorization server. They are given as a text, read from a file, or
 * fetched from a URL and kept up to date. The caller of each function holds the lock,
 * unless the function's comment says otherwise. */
#ifndef SGI_BEARER_KEYS_H
#define SGI_BEARER_KEYS_H

#include "transport/fetch.h"
#include "wire/jwk.h"

typedef struct sgi_bearer_keys {
    segue_runtime *runtime;
    sgi_jwks set;
    bool closed;
    bool loaded;      /* a key set was loaded at least once */
    const char *path; /* the file with the keys (a view of the owner's text), or NULL */
    int64_t age_ms, refresh_ms, timeout_ms;
    /* The following members are only used for keys from a URL. */
    sgi_fetcher *fetcher; /* fetches the keys; NULL = the keys are not from a URL */
    sgi_fetch *fetch;     /* the running fetch */
    int32_t status;       /* HTTP status of the running fetch */
    bool failed;
    sgi_buf body;
    int32_t looks; /* number of fetches in the current window of refresh_ms */
    /* the time at which the current window of refresh_ms began; monotonic clock */
    int64_t looked_ms;
    bool answered;      /* true = the last fetch brought a key set */
    int64_t fetched_ms; /* the time at which the last successful fetch ended */
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_timer deadline;
    /* Called when a fetch has ended. changed: the fetch has changed the set of keys.
     * The function may start another fetch. */
    void (*done)(struct sgi_bearer_keys *keys, bool changed);
} sgi_bearer_keys;

/* Opens the keys. The texts of the options must stay valid. Returns SEGUE_E_INVALID
 * when the key set or the URL is invalid, and SEGUE_E_IO when the file cannot be read.
 * The caller does not hold the lock. */
segue_status sgi_bearer_keys_open(sgi_bearer_keys *keys, segue_runtime *rt,
                                  const segue_bearer_options *options,
                                  char why[SGI_WHY_SIZE]);
/* Reads the file again. The keys are replaced only on SEGUE_OK, and never after
 * sgi_bearer_keys_close. The caller does not hold the lock. */
segue_status sgi_bearer_keys_reload(sgi_bearer_keys *keys, char why[SGI_WHY_SIZE]);
/* Ends the running fetch without calling `done`. May be called when the keys were never
 * opened. */
void sgi_bearer_keys_close(sgi_bearer_keys *keys);

/* Starts a fetch in the background if the keys are old. */
void sgi_bearer_keys_refresh(sgi_bearer_keys *keys);
/* Called when a token's key is missing. Returns true when a fetch is running; `done`
 * is called at its end. */
bool sgi_bearer_keys_fetch_missing(sgi_bearer_keys *keys);
/* Returns the time in ms until another fetch is allowed. */
int64_t sgi_bearer_keys_pause_ms(const sgi_bearer_keys *keys);
/* True when a later fetch may bring a missing key: the last fetch failed, or another
 * fetch is allowed now. */
bool sgi_bearer_keys_may_come(const sgi_bearer_keys *keys);

#endif
