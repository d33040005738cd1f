/* A sealed text: what a server gives a client to bring back, and nobody else can make,
 * read or change. It says what it is good for: a kind, an owner and a subject (a method
 * and its parameters, say), until when; brought for anything else it is as good as made
 * up, and nothing tells the two apart. The same is sealed to the same text.
 *
 * A server makes itself a key, so that its texts end with it. Servers that were given the
 * same key open each other's; of two keys the first one seals and both open, so that a
 * key can be replaced while texts of the old one are about. Sans-IO, under the engine's
 * lock. */
#ifndef SGI_SEAL_H
#define SGI_SEAL_H

#include "engine/engine.h"

/* What a text is for; part of what is sealed, so never renumbered. */
typedef enum sgi_seal_kind {
    SGI_SEAL_ROUND = 1,  /* requestState of a round (serving/rounds.h) */
    SGI_SEAL_CURSOR = 2, /* nextCursor of a list */
    SGI_SEAL_TASK = 3,   /* requestState of a task of DRAFT-2026-v1 */
    SGI_SEAL_SESSION = 4 /* Mcp-Session-Id of servers that share a key */
} sgi_seal_kind;

typedef struct sgi_seal {
    sgi_engine *engine;
    uint8_t keys[2][SGI_AEAD_KEY];
    int32_t count;
    bool shared; /* the key was given: other servers have it */
} sgi_seal;

/* Whom and what a text is good for. */
typedef struct sgi_sealed_for {
    sgi_seal_kind kind;
    const uint8_t *owner; /* digest of the principal */
    const sgi_str *what;  /* the subject, in parts */
    size_t count;         /* at most SGI_SEAL_PARTS */
} sgi_sealed_for;

#define SGI_SEAL_PARTS 4

/* key, older: SGI_AEAD_KEY bytes or NULL, copied; without a key it is made by chance.
 * False when there is no chance to be had. */
bool sgi_seal_init(sgi_seal *seal, sgi_engine *engine, const void *key,
                   const void *older);

/* Appends the text of these bytes, in A-Z a-z 0-9 - _. expires_ms: wall clock; 0 = never.
 * False when out of memory: out has failed then. */
bool sgi_seal_write(const sgi_seal *seal, const sgi_sealed_for *good_for,
                    int64_t expires_ms, sgi_str bytes, sgi_buf *out);

/* Appends the bytes. SEGUE_E_INVALID when it was not sealed by one of the keys for just
 * this, SEGUE_E_TIMEOUT when its time is over, SEGUE_E_NOMEM. */
segue_status sgi_seal_open(const sgi_seal *seal, const sgi_sealed_for *good_for,
                           sgi_str text, sgi_buf *out);

#endif
