/* The keys of an authorization server. The keys are given as a text, read from a file, or
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
    bool loaded; /* true = a key set was loaded at least once */
    /* path of the key file, as a view of the owner's text; NULL = the keys are not from a
     * file */
    const char *path;
    int64_t age_ms, refresh_ms, timeout_ms;
    /* The remaining members are used only for keys from a URL. */
    sgi_fetcher *fetcher; /* fetches the keys; NULL = the keys are not from a URL */
    sgi_fetch *fetch;     /* the running fetch */
    int32_t status;       /* HTTP status of the running fetch */
    bool failed;
    sgi_buf body;
    int32_t looks; /* number of fetches in the current window, a period in which
                      fetches are limited */
    /* the time at which the current window of fetches began; monotonic clock, in ms */
    int64_t looked_ms;
    bool answered;      /* true = the last fetch brought a key set */
    int64_t fetched_ms; /* the end of the last successful fetch; monotonic clock, in ms */
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_timer deadline;
    /* Called when a fetch has ended. changed: true = the fetch has changed the key set.
     * The callback may start another fetch. */
    void (*done)(struct sgi_bearer_keys *keys, bool changed);
} sgi_bearer_keys;

/* Opens the keys that the options name. The texts of the options must stay valid. Returns
 * SEGUE_E_INVALID when the key set or the URL is invalid, and SEGUE_E_IO when the file
 * cannot be read. The caller does not hold the lock. */
segue_status sgi_bearer_keys_open(sgi_bearer_keys *keys, segue_runtime *rt,
                                  const segue_bearer_options *options,
                                  char why[SGI_WHY_SIZE]);
/* Reads the key file again. The keys are replaced only if the function returns SEGUE_OK,
 * and never after sgi_bearer_keys_close. The caller does not hold the lock. */
segue_status sgi_bearer_keys_reload(sgi_bearer_keys *keys, char why[SGI_WHY_SIZE]);
/* Ends the running fetch without calling `done`, and frees the keys. May be called for
 * keys that were never opened. */
void sgi_bearer_keys_close(sgi_bearer_keys *keys);

/* Starts a fetch in the background if the keys are older than age_ms. */
void sgi_bearer_keys_refresh(sgi_bearer_keys *keys);
/* Called when a token's key is missing. Starts a fetch if none is running and another
 * fetch is allowed. Returns true when a fetch is running; `done` is called at the end of
 * this fetch. */
bool sgi_bearer_keys_fetch_missing(sgi_bearer_keys *keys);
/* Returns the time in ms until another fetch is allowed. */
int64_t sgi_bearer_keys_pause_ms(const sgi_bearer_keys *keys);
/* True when a later fetch can bring a missing key: the keys are from a URL, and the last
 * fetch brought no key set. */
bool sgi_bearer_keys_may_come(const sgi_bearer_keys *keys);

#endif
