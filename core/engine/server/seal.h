/* A sealed text: the server makes the text for a client, and the client sends the text
 * back. Only the server can make, read or change such a text. The text is valid for one
 * kind, one owner and one subject (for example a method and its parameters), until its
 * expiry. For any other use the text is refused like a forged text. The same content
 * always gives the same text.
 *
 * A server without a given key makes a random key. Its texts become invalid when the
 * server ends, unless the store keeps the key (kept_key.h). Servers with the same key can
 * open each other's texts. With two keys, the first key seals and both keys open, so a
 * key can be replaced while texts of the old key are in use. This code does no input or
 * output; its functions are called under the engine's lock. */
#ifndef SGI_SEAL_H
#define SGI_SEAL_H

#include "engine/engine.h"

/* The use of a sealed text. The numbers are part of the sealed content, so they must
 * never change. */
typedef enum sgi_seal_kind {
    SGI_SEAL_ROUND = 1,  /* the requestState of a round (server/rounds.h) */
    SGI_SEAL_CURSOR = 2, /* the nextCursor of a list */
    SGI_SEAL_TASK = 3,   /* the requestState of a task of DRAFT-2026-v1 */
    SGI_SEAL_SESSION = 4 /* an Mcp-Session-Id of servers that share a key */
} sgi_seal_kind;

typedef struct sgi_seal {
    sgi_engine *engine;
    uint8_t keys[2][SGI_AEAD_KEY];
    int32_t count;
    /* the application has set the key, so other servers may have the same key */
    bool shared;
    /* the store keeps the key (kept_key.h), so other servers on the store have the same
     * key */
    bool kept;
} sgi_seal;

/* The use, the owner and the subject for which a sealed text is valid. */
typedef struct sgi_seal_purpose {
    sgi_seal_kind kind;
    const uint8_t *owner; /* digest of the principal */
    const sgi_str *what;  /* the texts of the subject, in a fixed order */
    size_t count;         /* at most SGI_SEAL_PARTS */
} sgi_seal_purpose;

#define SGI_SEAL_PARTS 4

/* Initializes a seal. key, older: the new and the old key, SGI_AEAD_KEY bytes each, which
 * are copied; older can be NULL. key = NULL: a random key is made. Returns false when the
 * system gives no random bytes. */
bool sgi_seal_init(sgi_seal *seal, sgi_engine *engine, const void *key,
                   const void *older);

/* Seals with this key of SGI_AEAD_KEY bytes from now on, which the store keeps. The key
 * is copied. What was sealed with the random key can still be opened. */
void sgi_seal_set_kept_key(sgi_seal *seal, const uint8_t *key);

/* True when other servers can have the same key. */
static inline bool sgi_seal_is_common(const sgi_seal *seal)
{
    return seal->shared || seal->kept;
}

/* Seals these bytes and appends the sealed text to `out`. The text has only the
 * characters A-Z a-z 0-9 - _. expires_ms: wall clock time; 0 = the text never expires.
 * Returns false and sets out->failed when out of memory. */
bool sgi_seal_write(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                    int64_t expires_ms, sgi_str bytes, sgi_buf *out);

/* Opens a sealed text and appends its bytes to `out`. Returns SEGUE_E_INVALID when no key
 * of this server has sealed the text for this use, SEGUE_E_TIMEOUT when the text has
 * expired, and SEGUE_E_NOMEM when out of memory. */
segue_status sgi_seal_open(const sgi_seal *seal, const sgi_seal_purpose *good_for,
                           sgi_str text, sgi_buf *out);

#endif
