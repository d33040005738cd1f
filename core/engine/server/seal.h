/* A sealed text: the server gives it to a client, the client sends it back, and nobody
 * else can make, read or change it. The text is valid for one kind, one owner and one
 * subject (for example a method and its parameters), until its end. For any other use it
 * is refused in the same way as a forged text. The same content is sealed to the same
 * text.
 *
 * A server without a given key makes a random one, so its texts are valid as long as the
 * server. Servers with the same key open each other's texts. With two keys the first one
 * seals and both open, so a key can be replaced while texts of the old one are in use.
 * This file does no input or output; it is used under the engine's lock. */
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
    /* the application gave the key, so other servers may have the same key */
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

/* Initializes a seal. key, older: SGI_AEAD_KEY bytes, which are copied, or NULL. Without
 * a key, a random one is made. Returns false when the system gives no random bytes. */
bool sgi_seal_init(sgi_seal *seal, sgi_engine *engine, const void *key,
                   const void *older);

/* Seals these bytes and appends the text, which has the characters A-Z a-z 0-9 - _.
 * expires_ms: wall clock; 0 = never. Returns false when out of memory: `out` has then
 * failed. */
bool sgi_seal_write(const sgi_seal *seal, const sgi_sealed_for *good_for,
                    int64_t expires_ms, sgi_str bytes, sgi_buf *out);

/* Opens a sealed text and appends its bytes to `out`. SEGUE_E_INVALID: no key of this
 * server sealed the text for this purpose. SEGUE_E_TIMEOUT: the text has expired.
 * SEGUE_E_NOMEM. */
segue_status sgi_seal_open(const sgi_seal *seal, const sgi_sealed_for *good_for,
                           sgi_str text, sgi_buf *out);

#endif
