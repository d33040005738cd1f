/* The keys of an authorization server: given as a text, read from a file, or fetched and
 * kept fresh. Lock held, unless it says otherwise. */
#ifndef SGI_BEARER_KEYS_H
#define SGI_BEARER_KEYS_H

#include "transport/fetch.h"
#include "wire/jwk.h"

typedef struct sgi_bearer_keys {
    segue_runtime *runtime;
    sgi_jwks set;
    bool closed;
    bool loaded;      /* the set came from where it should, once at least */
    const char *path; /* of its file; the owner's, or NULL */
    int64_t age_ms, refresh_ms, timeout_ms;
    /* from a URL */
    sgi_fetcher *fetcher; /* NULL = it does not */
    sgi_fetch *fetch;     /* under way */
    int32_t status;       /* of its answer */
    bool failed;
    sgi_buf body;
    int32_t looks;      /* fetches since the first of the last refresh_ms, */
    int64_t looked_ms;  /* which began then; monotonic */
    bool answered;      /* the newest fetch brought a set */
    int64_t fetched_ms; /* ... and the newest good one ended */
    uint8_t digest[SGI_DIGEST_SIZE];
    sgi_timer deadline;
    /* A fetch is over. changed: the keys are others now. May ask for another. */
    void (*done)(struct sgi_bearer_keys *keys, bool changed);
} sgi_bearer_keys;

/* Lock not held. The texts of the options must last. SEGUE_E_INVALID when the set, or the
 * URL, is none; SEGUE_E_IO for a file that cannot be read. */
segue_status sgi_bearer_keys_open(sgi_bearer_keys *keys, segue_runtime *rt,
                                  const segue_bearer_options *options,
                                  char why[SGI_WHY_SIZE]);
/* Lock not held: reads the file again; the keys stay as they were unless SEGUE_OK, and
 * are not touched any more once they were closed. */
segue_status sgi_bearer_keys_reload(sgi_bearer_keys *keys, char why[SGI_WHY_SIZE]);
/* Nothing is fetched any more; done is not called. Also for one that was not opened. */
void sgi_bearer_keys_close(sgi_bearer_keys *keys);

/* Keys that are old are fetched anew, behind the back of whoever asks. */
void sgi_bearer_keys_look(sgi_bearer_keys *keys);
/* A key is missing: true when done will tell whether it is there now. */
bool sgi_bearer_keys_miss(sgi_bearer_keys *keys);
/* How long nobody looks again, in ms. */
int64_t sgi_bearer_keys_pause(const sgi_bearer_keys *keys);
/* A key that is not there may be there later: nobody could look, or may look now. */
bool sgi_bearer_keys_may_come(const sgi_bearer_keys *keys);

#endif
