/* A sealed text is made by the server for a client, and the client sends it back. Only
 * the server can make, read or change such a text. It is valid until its end for one
 * kind, one owner and one subject (for example a method and its parameters). For any
 * other use it is refused like a forged text. The same content always gives the same
 * text.
 *
 * A server without a given key makes a random key, so its texts become invalid when the
 * server ends. Servers with the same key can open each other's texts. With two keys, the
 * first one seals and both open, so a key can be replaced while texts of the old key are
 * in use. This code does no input or output; its functions are called under the engine's
 * lock. */
#ifndef SGI_SEAL_H
#define SGI_SEAL_H

#include "engine/engine.h"

/* What a sealed text is for. The numbers are part of the sealed content, so they never
 * change. */
typedef enum sgi_seal_kind {
    SGI_SEAL_ROUND = 1,  /* requestState of a round (server/rounds.h) */
    SGI_SEAL_CURSOR = 2, /* nextCursor of a list */
    SGI_SEAL_TASK = 3,   /* requestState of a task of DRAFT-2026-v1 */
    SGI_SEAL_SESSION = 4 /* Mcp-Session-Id of servers that share a key */
} sgi_seal_kind;

typedef struct sgi_seal {
    sgi_engine *engine;
    uint8_t keys[2][SGI_AEAD_KEY];
    int32_t count;
    /* the application has set the key, so other servers may have the same key */
    bool shared;
} sgi_seal;

/* The owner and the subject for which a sealed text is valid. */
typedef struct sgi_sealed_for {
    sgi_seal_kind kind;
    const uint8_t *owner; /* digest of the principal */
    const sgi_str *what;  /* the subject: several texts, in this order */
    size_t count;         /* at most SGI_SEAL_PARTS */
} sgi_sealed_for;

#define SGI_SEAL_PARTS 4

/* Initializes a seal. key, older: SGI_AEAD_KEY bytes each, which are copied; or NULL. key
 * NULL = a random key is made. Returns false when the system gives no random bytes. */
bool sgi_seal_init(sgi_seal *seal, sgi_engine *engine, const void *key,
                   const void *older);

/* Seals these bytes and appends the sealed text, which has only the characters A-Z a-z
 * 0-9 - _. expires_ms: wall clock; 0 = never. Returns false when out of memory; `out` has
 * then failed. */
bool sgi_seal_write(const sgi_seal *seal, const sgi_sealed_for *good_for,
                    int64_t expires_ms, sgi_str bytes, sgi_buf *out);

/* Opens a sealed text and appends its bytes to `out`. SEGUE_E_INVALID: no key of this
 * server has sealed the text for this purpose. SEGUE_E_TIMEOUT: the text has expired.
 * SEGUE_E_NOMEM: out of memory. */
segue_status sgi_seal_open(const sgi_seal *seal, const sgi_sealed_for *good_for,
                           sgi_str text, sgi_buf *out);

#endif
